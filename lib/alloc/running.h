/*
 * The jobs that run on a cluster, the servers that they hold, and when they end. Each
 * call takes O(log n) besides the servers of the job; memory is proportional to the
 * number of jobs that have run at once.
 */
#ifndef RAMPIPE_ALLOC_RUNNING_H
#define RAMPIPE_ALLOC_RUNNING_H

#include "rampipe/alloc.h"
#include "rampipe/event.h"
#include "rampipe/sim.h"

/* A running job. */
struct running {
    struct sim_layout *layout; /* held; NULL: nobody asks for it */
    uint64_t *taken;           /* its servers, bit s % 64 of taken[s / 64]; owned */
    bool runs;                 /* false: the entry is unused */
    uint32_t nservers;
    double finish;  /* seconds */
    uint64_t marks; /* of its servers, XORed */
    uint64_t mark;  /* of its servers and its end, see admission_state() */
};

struct occupancy {
    size_t nwords;           /* of a set of servers */
    uint64_t *held;          /* servers of running jobs, a bit for each */
    uint64_t marks;          /* of these, XORed */
    uint64_t state;          /* XOR of the marks of the running jobs */
    uint32_t nfree;          /* servers */
    uint64_t *owner;         /* per server, see alloc_admission_owners() */
    bool anonymous;          /* owner[] does not tell of jobs: nobody asks */
    struct event_queue ends; /* of running jobs; key: index in running */
    struct running *running;
    size_t nrunning, running_room;
    uint32_t *vacant; /* indexes of unused entries of running */
    size_t nvacant, vacant_room;
    uint64_t started; /* jobs so far */
};

/* Starts as {0}. The cluster is empty, and all of its servers are in service. */
bool occupancy_init(struct occupancy *occupancy, uint32_t nservers, size_t nwords,
                    struct rec_error *err) REC_MUST_CHECK;
/* Releases the layouts of jobs that run, too. */
void occupancy_free(struct occupancy *occupancy);
/* Takes a server out of service, if it is not yet. False: it is. */
bool occupancy_set_down(struct occupancy *occupancy, uint32_t server);
/* Lets a job run: layout, taken, nservers, finish and marks are read. `taken` is copied,
 * the layout is held. */
bool occupancy_start(struct occupancy *occupancy, const struct running *job,
                     struct rec_error *err) REC_MUST_CHECK;
/* When the next job ends, seconds; INFINITY: none runs. */
double occupancy_next_end(const struct occupancy *occupancy);
/* The job that ends next; one must run. */
const struct running *occupancy_next(const struct occupancy *occupancy);
/* Ends it. */
bool occupancy_end(struct occupancy *occupancy, struct rec_error *err) REC_MUST_CHECK;

#endif
