/*
 * A tuner at work, which only its files see: tuner.c remembers arrivals and changes, and
 * has a table of the rules; published.c and damped.c are a rule each.
 */
#ifndef RAMPIPE_SERVE_TUNING_H
#define RAMPIPE_SERVE_TUNING_H

#include "tuner.h"

#include <math.h>

/* What rounding may add to a number. */
#define ROUNDING 1e-12

struct tuner_window {
    double seconds;
    uint64_t most;  /* arrivals that were planned for */
    uint64_t limit; /* more arrivals than this are a reason to do something now */
    double spread;  /* damped: see damped.c */
};

struct tuned {
    uint32_t planned;  /* replicas; 0: the stage has no model */
    uint32_t replicas; /* with those that start */
    uint32_t working;
    uint32_t batch; /* now; */
    uint32_t small;
    uint32_t large; /* that of most throughput */
    const struct serve_profile *profile;
    double load;    /* that was planned for, queries/s */
    double backlog; /* damped: an estimate of the queries that wait */
    double offered; /* replicas that the planned load keeps busy */
};

/* A change that is due: of replicas or, if `ordered` is NAN, of the batch. */
struct tuner_change {
    uint32_t stage, value;
    double ordered, time; /* seconds */
};

struct serve_tuner;

/* What one rule of tuning does. */
struct tuner_rule {
    /* Stages and windows are read. */
    void (*open)(struct serve_tuner *tuner);
    /* A query arrived at `time`, and is remembered. */
    bool (*arrived)(struct serve_tuner *tuner, double time, struct rec_error *err);
    /* Nothing has changed for a while: would fewer replicas do? Sets tuner->look. */
    bool (*look)(struct serve_tuner *tuner, double time, struct rec_error *err);
    /* US$ an hour of a stage in a static plan for the highest rate over half a minute so
     * far; NAN, or no function: not known. */
    double (*fixed)(const struct serve_tuner *tuner, uint32_t stage);
};

extern const struct tuner_rule serve_tuner_published, serve_tuner_damped;

struct serve_tuner {
    const struct serve_pipeline *pipeline;
    const struct tuner_rule *rule;
    struct serve_tuning tuning;
    enum serve_service service;
    uint64_t counted; /* damped: arrivals from this one on count */
    double rate;      /* that was planned for, queries/s */
    double unsure;    /* damped: upper end of the interval of the rate, over the rate */
    double busiest;   /* published: the highest planned utilisation of a stage */
    struct tuned *stage;
    size_t nstages;
    struct tuner_window *window; /* the envelope's */
    size_t nwindows;
    struct tuner_window recent; /* published: one more */
    double widest;              /* arrivals are remembered for so long, seconds */
    double *ring;               /* arrivals, seconds */
    size_t room;                /* a power of two, or 0 */
    uint64_t oldest, arrivals;
    double flowed;
    double first_arrival;        /* seconds */
    double highest;              /* damped: rate over half a minute so far, queries/s */
    double met;                  /* the highest rate that replicas are for, queries/s */
    double look;                 /* when it looks next whether fewer would do, seconds */
    struct tuner_change *change; /* that are due, in order of time */
    size_t first, nchanges, change_room;
};

/* After some seconds, and not at the same instant even if the number is too large for
 * them. */
static inline double
tuner_after(double time, double seconds)
{
    return fmax(time + seconds, nextafter(time, (double)INFINITY));
}

/* A number of replicas as it may be ordered. */
static inline uint32_t
tuner_round_up(double replicas)
{
    double n = ceil(replicas * (1 - ROUNDING));
    return (uint32_t)fmin(fmax(n, 1), SERVE_REPLICAS_MAX);
}

/* The i-th arrival, of those that are remembered. */
static inline double
tuner_arrival(const struct serve_tuner *tuner, uint64_t i)
{
    return tuner->ring[i & (tuner->room - 1)];
}

/* A window that ends at `time` holds more than its limit. */
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

/* The first arrival since which less than `age` seconds are over at `time`. */
uint64_t serve_tuner_since(const struct serve_tuner *tuner, double time, double age);
/* A stage will have so many replicas from `time` on; those that are new were ordered at
 * `ordered`. The next look is a quiet time later. */
bool serve_tuner_order(struct serve_tuner *tuner, uint32_t stage, uint32_t replicas,
                       double ordered, double time, struct rec_error *err) REC_MUST_CHECK;
/* A stage will have batches of so many from `time` on. */
bool serve_tuner_resize(struct serve_tuner *tuner, uint32_t stage, uint32_t batch,
                        double time, struct rec_error *err) REC_MUST_CHECK;

#endif
