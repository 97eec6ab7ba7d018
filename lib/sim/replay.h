/*
 * lib/sim/replay.h - the state of a replay.
 *
 *     replay.c   takes the records of the stream, and checks RAMP's rules
 *     jobs.c     the jobs, from their start to their end
 */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include "rampipe/event.h"
#include "rampipe/sim.h"

/* A job, from its record to its end. */
struct live {
    char *id, *graphs; /* what `job` points to; owned. id NULL: this place is free */
    struct graph_job job;
    struct sim_layout *layout; /* NULL: it has not started */
    struct sim_cost cost;
    double start, finish; /* seconds */
};

struct sim_replay {
    struct sim_replay_sink sink;
    struct event_clock *clock;  /* the one that gave the last record; borrowed */
    double until;               /* the end of the simulated time, seconds */
    struct net *net;            /* owned; NULL: none has come */
    struct graph_stream stream; /* checks that records fit each other */

    struct sim_layout **layout; /* in the order in which they came; NULL: forgotten */
    size_t nlayouts, layout_room;
    struct sim_layouts pool;

    struct live *live;
    uint32_t *vacant; /* indices of free places in `live` */
    size_t nlive, live_room, nvacant, vacant_room;
    struct event_queue
        ends;          /* key: number of the start, index in `live` (32 bits each) */
    uint64_t *holder;  /* per server: number of the start that had it last; 0: none */
    double *free_at;   /* per server: when that job ends, seconds */
    uint32_t *servers; /* scratch: those of an alloc record */
    size_t servers_room;
    uint64_t waiting; /* jobs neither started nor blocked in the simulated time */
    uint64_t starts;  /* jobs that have started; the number of the last start */
    bool past;        /* the last record is beyond the simulated time */
};

/** Forgets a job; its place is free for another one. */
bool sim_jobs_forget(struct sim_replay *r, uint32_t index,
                     struct rec_error *err) REC_MUST_CHECK;
/** What the sink is told of a job. */
struct sim_done sim_jobs_describe(const struct sim_replay *r, const struct live *live);
/** Ends the jobs that finish by `time`, in order of finish, then of start. */
bool sim_jobs_advance(struct sim_replay *r, double time,
                      struct rec_error *err) REC_MUST_CHECK;
/** A job is unfinished at the end of the simulated time. */
bool sim_jobs_leave(struct sim_replay *r, uint32_t index,
                    struct rec_error *err) REC_MUST_CHECK;

#endif
