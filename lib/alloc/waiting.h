/*
 * Jobs that wait for servers, in the order in which they are tried, and the time by which
 * each must have started: its last chance. Each call takes O(log n), amortized; memory
 * is proportional to the number of jobs that wait now.
 */
#ifndef RAMPIPE_ALLOC_WAITING_H
#define RAMPIPE_ALLOC_WAITING_H

#include "rampipe/alloc.h"
#include "rampipe/event.h"

struct waiter {
    struct graph_job job; /* its id and graphs are views of `texts` */
    char *texts;          /* owned; NULL: the entry is unused */
    uint64_t key;         /* of its events: its number, from 1, << 32 | its index */
    double latest;        /* its last chance with the allowance for rounding, seconds */
    uint32_t graph;       /* that a block record would name */
};

/* Starts as {0}. */
struct waiters {
    struct waiter *waiter;
    uint32_t *vacant; /* indexes of unused entries of waiter[] */
    size_t nplaces, room, nvacant, vacant_room;
    size_t n;         /* jobs that wait */
    uint32_t counted; /* jobs that have waited so far */
    /* Events that name jobs by their keys. An event of a job that no longer waits is
     * skipped when it comes up, and removed when there are more of them than of jobs. */
    struct event_queue order; /* "time" is the size: the order in which jobs are tried */
    struct event_queue chances; /* time is the last chance, seconds */
};

/* Adds a job. Jobs are tried in order of `size`, and those of equal size in order of
 * their arrival here. `chance` is its last chance, seconds; not finite: it has none.
 * Texts are copied. */
bool waiters_add(struct waiters *waiters, const struct waiter *waiter, double size,
                 double chance, struct rec_error *err) REC_MUST_CHECK;
/* The job that is to be tried first; NULL: none waits. Valid until a job is added. */
struct waiter *waiters_first(struct waiters *waiters);
/* The time of the earliest last chance, seconds; INFINITY: there is none. */
double waiters_next_chance(struct waiters *waiters);
/* Removes the earliest last chance, which must exist, and returns its job. */
struct waiter *waiters_take_chance(struct waiters *waiters);
/* Adds a chance for a job whose last chance was removed. */
bool waiters_give_chance(struct waiters *waiters, const struct waiter *waiter,
                         double time, struct rec_error *err) REC_MUST_CHECK;
bool waiters_remove(struct waiters *waiters, struct waiter *waiter,
                    struct rec_error *err) REC_MUST_CHECK;
void waiters_free(struct waiters *waiters);

#endif
