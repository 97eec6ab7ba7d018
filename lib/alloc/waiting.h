/*
 * Jobs that wait for servers: in the order in which they are tried, and by when each must
 * have started. All in O(log n); memory is that of the jobs that wait now.
 */
#ifndef RAMPIPE_ALLOC_WAITING_H
#define RAMPIPE_ALLOC_WAITING_H

#include "rampipe/alloc.h"

struct waiter {
    struct graph_job job; /* its texts are behind it, owned */
    char *texts;          /* NULL: the place is empty */
    uint64_t key;         /* of its events: its number, counted from 1, and its place */
    double latest;  /* it must start by then, seconds: its last chance, with allowance */
    uint32_t graph; /* of a block record */
};

/* Starts as {0}. */
struct waiters {
    struct waiter *waiter;
    uint32_t *vacant; /* unused places */
    size_t nplaces, room, nvacant, vacant_room;
    size_t n;                 /* jobs that wait */
    uint32_t counted;         /* jobs that have waited so far */
    struct sim_queue order;   /* those that went are passed over when they come up, */
    struct sim_queue chances; /* and thrown out when they are more than those that wait */
};

/* A job begins to wait. Jobs are tried in order of `size`, those of one size in order of
 * coming; `chance`: its last one, seconds, not finite: it has none. Texts are copied. */
bool waiters_add(struct waiters *waiters, const struct waiter *waiter, double size,
                 double chance, struct rec_error *err) REC_MUST_CHECK;
/* The job that is to be tried first, NULL: none waits. Valid until the next is added. */
struct waiter *waiters_first(struct waiters *waiters);
/* When the next last chance is, seconds; INFINITY: there is none. */
double waiters_next_chance(struct waiters *waiters);
/* Takes the next last chance, which must be there, off, and gives its job. */
struct waiter *waiters_take_chance(struct waiters *waiters);
/* Another chance for a job whose last one was taken. */
bool waiters_give_chance(struct waiters *waiters, const struct waiter *waiter,
                         double time, struct rec_error *err) REC_MUST_CHECK;
bool waiters_remove(struct waiters *waiters, struct waiter *waiter,
                    struct rec_error *err) REC_MUST_CHECK;
void waiters_free(struct waiters *waiters);

#endif
