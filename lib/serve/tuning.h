/*
 * The inside of a tuner, which only its files see: tuner.c remembers arrivals and
 * changes, and has the table of rules; published.c and damped.c are one rule each.
 */
#ifndef RAMPIPE_SERVE_TUNING_H
#define RAMPIPE_SERVE_TUNING_H

#include "tuner.h"

#include <math.h>

/* More than what rounding adds to a number, relative to it. */
#define ROUNDING 1e-12

struct tuner_window {
    double seconds;
    uint64_t most;  /* the most arrivals that were planned for */
    uint64_t limit; /* if it holds more arrivals than this, the rule must look closer */
    double spread;  /* damped: see damped.c */
};

/* A stage as the tuner sees it. */
struct tuned {
    uint32_t planned;  /* planned replicas; 0: the stage has no model */
    uint32_t replicas; /* replicas that work or were ordered */
    uint32_t working;  /* replicas that work */
    uint32_t batch;    /* the batch now; */
    uint32_t small;    /* as planned; */
    uint32_t large;    /* of most throughput */
    double speed;      /* serve_throughput() with the batch now, queries/s */
    const struct serve_profile *profile;
    double load;    /* the load that was planned for, queries/s */
    double backlog; /* damped: an estimate of the queries that wait */
    double offered; /* number of replicas that the planned load keeps busy */
};

/* A change that will be made at `time`. */
struct tuner_change {
    uint32_t stage;
    uint32_t value;       /* the new number of replicas or, if `ordered` is NAN, batch */
    double ordered, time; /* seconds */
};

struct serve_tuner;

/* What one rule of tuning does. */
struct tuner_rule {
    /* Called once, when the stages and windows have been read. */
    void (*open)(struct serve_tuner *tuner);
    /* A query arrived at `time`; it is in the ring already. */
    bool (*arrived)(struct serve_tuner *tuner, double time, struct rec_error *err);
    /* Called at tuner->look: would fewer replicas do? Sets the next tuner->look. */
    bool (*look)(struct serve_tuner *tuner, double time, struct rec_error *err);
    /* As serve_tuner_fixed(); NULL: the rule does not know it. */
    double (*fixed)(const struct serve_tuner *tuner, uint32_t stage);
};

extern const struct tuner_rule serve_tuner_published, serve_tuner_damped;

struct serve_tuner {
    const struct serve_pipeline *pipeline;
    const struct tuner_rule *rule;
    struct serve_tuning tuning;
    enum serve_service service;
    uint64_t counted; /* damped: number of the first arrival that counts */
    double rate;      /* the planned rate, queries/s */
    double unsure;  /* damped: upper end of the planned rate's interval, divided by it */
    double busiest; /* published: the highest planned utilisation of a stage */
    struct tuned *stage;
    size_t nstages;
    struct tuner_window *window; /* the envelope's */
    size_t nwindows;
    struct tuner_window
        recent;    /* published: the window that removed replicas come back by */
    double widest; /* how long arrivals are remembered, seconds */
    double *ring;  /* times of arrivals, seconds: number i is at i % room */
    size_t room;   /* a power of two, or 0 */
    uint64_t oldest,
        arrivals;         /* numbers of the oldest arrival in the ring, and of the next */
    double flowed;        /* damped: the time up to which backlogs are estimated */
    double first_arrival; /* seconds */
    double highest;       /* damped: the highest rate over half a minute, queries/s */
    double met;           /* the highest rate that replicas suffice for, queries/s */
    double look;          /* time of the next look whether fewer would do, seconds */
    struct tuner_change *change; /* those from `first` are due, in order of time */
    size_t first, nchanges, change_room; /* of `change` */
};

/* The time `seconds` after `time`, and always later than `time`: if `time` is large, the
 * sum may round to it. */
static inline double
tuner_after(double time, double seconds)
{
    return fmax(time + seconds, nextafter(time, (double)INFINITY));
}

/* Rounds a number of replicas up to one that may be ordered. */
static inline uint32_t
tuner_round_up(double replicas)
{
    double n = ceil(replicas * (1 - ROUNDING));
    return (uint32_t)fmin(fmax(n, 1), SERVE_REPLICAS_MAX);
}

/* The time of arrival number i, which must be in the ring. */
static inline double
tuner_arrival(const struct serve_tuner *tuner, uint64_t i)
{
    return tuner->ring[i & (tuner->room - 1)];
}

/* Does the window that ends at `time` hold more arrivals than its limit? Takes O(1): only
 * the arrival that would be one too many is looked at. */
static inline bool
tuner_is_beyond(const struct serve_tuner *tuner, const struct tuner_window *window,
                double time)
{
    return tuner->arrivals -
                   (tuner->oldest > tuner->counted ? tuner->oldest : tuner->counted) >
               window->limit &&
           time - tuner_arrival(tuner, tuner->arrivals - 1 - window->limit) <
               window->seconds;
}

/* The number of the first arrival that is younger than `age` seconds at `time`. */
uint64_t serve_tuner_since(const struct serve_tuner *tuner, double time, double age);
/* The stage will have `replicas` from `time` on; new ones are ordered at `ordered`. The
 * next look is tuning.quiet seconds after `time`. */
bool serve_tuner_order(struct serve_tuner *tuner, uint32_t stage, uint32_t replicas,
                       double ordered, double time, struct rec_error *err) REC_MUST_CHECK;
/* The stage will take batches of at most `batch` from `time` on. */
bool serve_tuner_resize(struct serve_tuner *tuner, uint32_t stage, uint32_t batch,
                        double time, struct rec_error *err) REC_MUST_CHECK;

#endif
