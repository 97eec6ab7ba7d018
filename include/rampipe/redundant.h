/*
 * rampipe/redundant.h - pipeline-parallel training with redundant computation.
 *
 * Instances form pipelines of stages. Each also keeps the stage that follows its own, so
 * that the loss of one only slows the others down (fallback); the loss of two neighbours
 * is fatal. Instances that come wait until a rendezvous makes a new configuration. A step
 * that runs when a fatal failure comes is lost, all others count. Source: the later
 * simulator of Thorpe et al., "Bamboo" (NSDI 2023), without three of its faults: a fatal
 * failure ends the running step, only the newest rendezvous counts, and pipelines that
 * the table does not have are not formed. Its clock counts milliseconds; so does this
 * one.
 */
#ifndef RAMPIPE_REDUNDANT_H
#define RAMPIPE_REDUNDANT_H

#include "rampipe/elastic.h"

/** Time of a step by the number of pipelines, of `stages` stages. */
struct redundant_speed {
    uint64_t stages, pipelines;
    int64_t ms;
};

/** The table of a network, read from a file of lines KEY TAB VALUE. */
struct redundant_profile {
    const char *name;
    double samples;              /* a step */
    uint64_t steps;              /* of the whole training; 0: not given */
    uint64_t stages;             /* of a pipeline */
    int64_t creation_ms;         /* from the addition of an instance until it is ready */
    int64_t global_ms, local_ms; /* a rendezvous */
    double slowdown;             /* of a step after a loss, >= 1 */
    double price, on_demand_price;              /* US$ an instance-hour */
    double on_demand_instances, on_demand_step; /* step: seconds */
    struct redundant_speed *speed;
    size_t nspeeds, room;
    struct rec_arena arena;
};

/** Reads a profile; times in it are seconds. Free it in any case. */
bool redundant_profile_read(struct redundant_profile *profile, const char *path,
                            struct rec_error *err) REC_MUST_CHECK;
void redundant_profile_free(struct redundant_profile *profile);

enum redundant_status { REDUNDANT_STOPPED, REDUNDANT_RENDEZVOUS, REDUNDANT_RUNNING };

/** What happened, and how things stand after it. */
struct redundant_row {
    double time;       /* seconds */
    const char *event; /* add, ready, remove, fallback, fatal, rendezvous_global,
                          rendezvous_local, redo (it starts again), config, step */
    uint64_t pipelines, stages, instances, waiting, steps, fatal;
    enum redundant_status status;
};

struct redundant_sink {
    void (*train)(void *context, const struct redundant_row *row); /* may be NULL */
    void (*state)(void *context, double time, enum redundant_status status, bool degraded,
                  const uint64_t count[FLEET_NSTATES]); /* may be NULL */
    void *context;
};

struct redundant_options {
    const struct redundant_profile *profile;
    uint64_t steps; /* ends after so many; 0: never */
    double price;   /* US$ an instance-hour */
    enum fleet_victims victims;
    uint32_t seed;
    double begin;   /* seconds */
    uint64_t start; /* instances that are added at the start */
};

struct redundant_result {
    double begin, end;  /* seconds */
    double first, last; /* start of the first step, end of the last; NAN: none */
    uint64_t steps, fatal, rendezvous, preempted, lost_active, added;
    double seconds[ELASTIC_NACCOUNTS], instance_seconds[ELASTIC_NACCOUNTS];
    double by_state[FLEET_NSTATES]; /* instance-seconds; active: in a pipeline */
    double degraded;                /* seconds */
    /* NAN if there is nothing to average; seconds */
    double lifetime_mean, lifetime_median, lifetime_stdev;
    double preemption_mean, preemption_median, preemption_stdev;
    double instances, cost;    /* averages up to the last step; cost: US$ an hour */
    double performance, value; /* samples/s; of it for a US$ an hour, averaged by step */
};

struct redundant;

struct redundant *redundant_new(const struct redundant_options *options,
                                const struct redundant_sink *sink,
                                struct rec_error *err) REC_MUST_CHECK;
/** Events come in order of time; of one instant, additions are first. Once the steps
 * asked for are done, they change nothing. */
bool redundant_take(struct redundant *redundant, const struct spot_event *event,
                    struct rec_error *err) REC_MUST_CHECK;
/** Goes on to the end, or until the steps are done. */
bool redundant_finish(struct redundant *redundant, double end,
                      struct redundant_result *result,
                      struct rec_error *err) REC_MUST_CHECK;
void redundant_free(struct redundant *redundant);

#endif
