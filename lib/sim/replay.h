/*
 * lib/sim/replay.h - the state of a replay.
 *
 *     replay.c   takes the records of the stream, and checks the rules of a plan
 *     jobs.c     the jobs, from their start to their end; who waits for whose servers
 */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include "company.h"
#include "faults.h"

#define NONE UINT32_MAX

/* The servers of a job, where jobs share links. */
struct claim {
    uint32_t n, awaits; /* servers; those that others still have */
    uint32_t *after;    /* per slot: the job that gets the server next; NONE: none yet */
    uint32_t server[];  /* per slot; `after` lies behind it */
};

/* A job, from its record to its end. */
struct live {
    char *id, *graphs; /* what `job` points to; owned. id NULL: this place is free */
    struct graph_job job;
    struct sim_layout *layout; /* NULL: it has not started */
    struct sim_cost cost;
    double start, finish; /* seconds; INFINITY: not known */
    double waited;        /* for its servers, seconds */
    double alone;   /* a step if no other job sends and all links are well, seconds */
    double healthy; /* the same if all servers are healthy; NAN: all are */
    struct sim_first
        *first;          /* what is asked of its first step; owned; NULL: nobody asks */
    uint64_t number;     /* of its start; 0: it has no alloc yet */
    struct claim *claim; /* owned; NULL: no job shares links, or there is no alloc yet */
};

struct sim_replay {
    struct sim_replay_sink sink;
    struct event_clock *clock; /* the one that gave the last record; borrowed */
    double until;              /* the end of the simulated time, seconds */
    struct net *net;           /* owned; NULL: none has come */
    bool net_open;             /* its links may still come */
    const struct collective_table *table; /* of measured times; NULL: there is none */
    struct graph_stream stream;           /* checks that records fit each other */

    struct sim_layout **layout; /* in the order in which they came; NULL: forgotten */
    size_t nlayouts, layout_room;
    struct sim_layouts pool;

    struct live *live;
    uint32_t *vacant; /* indices of free places in `live` */
    size_t nlive, live_room, nvacant, vacant_room;
    struct event_queue
        ends;          /* key: number of the start, index in `live` (32 bits each) */
    uint64_t *holder;  /* per server: number of the start that had it last; 0: none */
    double *free_at;   /* per server: when that job ends if it runs alone from its alloc
                          record on, seconds */
    uint32_t *servers; /* scratch: those of an alloc record */
    size_t servers_room;
    uint64_t waiting; /* jobs neither started nor blocked in the simulated time */
    uint64_t starts;  /* jobs that have started; the number of the last start */
    bool past;        /* the last record is beyond the simulated time */

    /* Where jobs share links: */
    double exact;                    /* as of sim_replay_share() */
    struct sim_companies *companies; /* NULL: they share none */
    struct sim_faults *faults;       /* NULL: links do not change */
    struct taken {
        uint32_t job, slot;
    } * taken;     /* per server: the job that had it last, and its slot there */
    uint32_t *due; /* jobs that start at `freed`, when the last of their servers got
                      free, seconds */
    size_t ndue, due_room;
    double freed;
    double left; /* when the last job ended, or left at the end of the simulated time */
};

/** Starts a job on its servers, at `time`, seconds. */
bool sim_jobs_start(struct sim_replay *r, uint32_t index, const uint32_t *servers,
                    double time, struct rec_error *err) REC_MUST_CHECK;
/** Forgets a job; its place is free for another one. */
bool sim_jobs_forget(struct sim_replay *r, uint32_t index,
                     struct rec_error *err) REC_MUST_CHECK;
/** All jobs have ended or left: tells the sink what the links have carried. */
bool sim_jobs_loads(struct sim_replay *r, struct rec_error *err) REC_MUST_CHECK;
/** The time of the next event, seconds; INFINITY: there is none. */
double sim_jobs_next(struct sim_replay *r);
/** Ends the jobs that finish by `time`, in order of finish, then of start. */
bool sim_jobs_advance(struct sim_replay *r, double time,
                      struct rec_error *err) REC_MUST_CHECK;
/** All jobs that have an alloc record are unfinished at the end of the simulated time:
 * first those whose end is known, in order of it; then the others, in order of their
 * alloc records. */
bool sim_jobs_leave_all(struct sim_replay *r, struct rec_error *err) REC_MUST_CHECK;
/** One job is unfinished. */
bool sim_jobs_leave(struct sim_replay *r, uint32_t index,
                    struct rec_error *err) REC_MUST_CHECK;

/* Where jobs share links: */

/** Lets them share links from now on. */
bool sim_jobs_share(struct sim_replay *r, struct rec_error *err) REC_MUST_CHECK;
/** Keeps the servers of a job, which are in `servers`. */
bool sim_jobs_claim(struct sim_replay *r, uint32_t index,
                    struct rec_error *err) REC_MUST_CHECK;
/** The job gets the server of a slot after the one that had it last. True if that one
 * still has it. */
bool sim_jobs_queue(struct sim_replay *r, uint32_t index, uint32_t slot);

#endif
