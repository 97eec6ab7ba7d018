/*
 * rampipe/train.h - training on spot instances that come and go: the fleet, and two
 * models of pipeline-parallel training, elastic and redundant.
 */
#ifndef RAMPIPE_TRAIN_H
#define RAMPIPE_TRAIN_H

#include "rampipe/sim.h"
#include "rampipe/spot.h"

REC_BEGIN_DECLS

/* ---- the fleet ----------------------------------------------------------- */

enum train_state { TRAIN_ACTIVE, TRAIN_STANDBY, TRAIN_PREPARING, TRAIN_NSTATES };

/** Which instances a preemption takes when it names none: drawn; those that came first or
 * last; those with the lowest names (numbers in names count as numbers). */
enum train_victims { TRAIN_RANDOM, TRAIN_OLDEST, TRAIN_NEWEST, TRAIN_LOWEST };

/** Instances, in the order in which they came; more than TRAIN_FLEET_MAX at once are
 * REC_DATA. What is done to one of n costs O(log n), whoever it is. Of two fleets to
 * which the same is done, the same leave. */
struct train_fleet;

enum { TRAIN_FLEET_MAX = 1 << 20 };

struct train_instance {
    char *name; /* the fleet's, until it goes; the next free number if none is given */
    enum train_state state;
    uint32_t place; /* 0, 1, ... among those that came to their state with it */
    bool leaving;
    double ready; /* when it is or was prepared, in the model's unit of time */
};

/** `seed` and `stream` (rampipe/random.h) are of random victims. Free it with
 * train_fleet_free(). NULL: out of memory. */
struct train_fleet *train_fleet_new(enum train_victims victims, uint32_t seed,
                                    uint32_t stream,
                                    struct rec_error *err) REC_MUST_CHECK;
void train_fleet_free(struct train_fleet *fleet);
uint64_t train_fleet_count(const struct train_fleet *fleet, enum train_state state);
/** Of all states; returns the sum, train_fleet_size(). */
uint64_t train_fleet_counts(const struct train_fleet *fleet,
                            uint64_t count[TRAIN_NSTATES]);
uint64_t train_fleet_size(const struct train_fleet *fleet);
/** Those that do not leave. */
uint64_t train_fleet_staying(const struct train_fleet *fleet);
/** The next instance in the order in which they came: *at starts at 0. False: no more. */
bool train_fleet_next(const struct train_fleet *fleet, size_t *at,
                      struct train_instance *instance);
/** `count` more would not be too many for a fleet; REC_DATA if they would. */
bool train_fleet_fits(const struct train_fleet *fleet, uint64_t count,
                      struct rec_error *err) REC_MUST_CHECK;
/**
 * Adds `count` instances, or only so many that the fleet is no larger than `capacity`;
 * the first ids are taken. Those refused are remembered. None is ready before those that
 * came before it. An id that is there already is REC_DATA.
 */
bool train_fleet_add(struct train_fleet *fleet, uint64_t count, struct rec_str ids,
                     uint64_t capacity, enum train_state state, double ready,
                     uint64_t *added, struct rec_error *err) REC_MUST_CHECK;
/** These will leave: their names are free again, and they are not chosen. An id that
 * never came, or left before, is REC_DATA; one that was refused is passed over. */
bool train_fleet_leave(struct train_fleet *fleet, struct rec_str ids,
                       struct rec_error *err) REC_MUST_CHECK;
/** Chooses `count` of those that stay, or all of them, to leave too. */
bool train_fleet_choose(struct train_fleet *fleet, uint64_t count,
                        struct rec_error *err) REC_MUST_CHECK;
/** Takes away the first of those that leave, or the last; *gone has no name. False: none
 * leaves. */
bool train_fleet_take(struct train_fleet *fleet, bool last, struct train_instance *gone);
/** Somebody of this name is there and stays. */
bool train_fleet_has(const struct train_fleet *fleet, struct rec_str id);
/** REC_DATA: an id is added that is there, or preempted that is not. Returns false. */
bool train_fleet_fail(struct rec_error *err, struct rec_str id, bool added);
/** Instances whose time has come go from preparing to standby. */
void train_fleet_settle(struct train_fleet *fleet, double now);
/** When the next instance will be ready; INFINITY if none is being prepared. */
double train_fleet_next_ready(const struct train_fleet *fleet);
/** Moves the first `count` instances of one state, or all, to another. */
void train_fleet_move(struct train_fleet *fleet, enum train_state from,
                      enum train_state to, uint64_t count);

/* ---- where the time went ------------------------------------------------- */

enum train_account {
    TRAIN_USEFUL,
    TRAIN_WASTED,
    TRAIN_RECONFIGURE,
    TRAIN_STALL,
    TRAIN_NACCOUNTS
};

/* ---- elastic training ---------------------------------------------------- */

/*
 * Active instances form pipelines of `depth` stages; their number is a multiple of it.
 * Iterations follow each other; a checkpoint is written beside them, the next one from
 * the first iteration that ends after it. When an active instance is lost, or enough
 * others wait for one more pipeline, training stops, goes back to the last checkpoint,
 * and goes on after the time of a reconfiguration with as many pipelines as there are
 * instances for. Source: the elastic simulator in the notebook of Thorpe et al., "Bamboo"
 * (NSDI 2023); rules "published" and "later" are its two versions, with their 5-second
 * ticks, "sane" is exact in time and free of their faults.
 */

/** Time of an iteration by the number of active instances. */
struct train_elastic_profile {
    double *size, *seconds; /* ascending sizes */
    size_t n, room, seconds_room;
    double reconfigure, checkpoint; /* seconds */
};

bool train_elastic_profile_add(struct train_elastic_profile *profile, double size,
                               double seconds, struct rec_error *err) REC_MUST_CHECK;
/**
 * Reads reconfig.csv, loop_times_0.csv and async-checkpoint_0.csv of a directory, as
 * published: means, rounded to whole seconds, half to even; the first reconfiguration
 * does not count; an iteration is its training time.
 */
bool train_elastic_profile_read(struct train_elastic_profile *profile,
                                const char *directory,
                                struct rec_error *err) REC_MUST_CHECK;
/** Between two sizes the time is interpolated linearly; above the largest it is that of
 * the largest; below the smallest it grows as 1/size. */
double train_elastic_iteration(const struct train_elastic_profile *profile, double size);
void train_elastic_profile_free(struct train_elastic_profile *profile);

enum train_elastic_rules {
    TRAIN_ELASTIC_SANE,
    TRAIN_ELASTIC_PUBLISHED,
    TRAIN_ELASTIC_LATER
};

struct train_elastic_options {
    const struct train_elastic_profile *profile;
    double load; /* added to each reconfiguration, not in the published rules; seconds */
    double prepare;           /* from an instance's addition until it is ready, seconds */
    uint64_t depth;           /* stages of a pipeline */
    uint64_t start, capacity; /* instances at the start, at most */
    bool start_given;         /* else a trace record may say how many are there */
    double begin, end; /* of the run, seconds; a trace record says its own begin, and
                                 its end if this is INFINITY: not known yet */
    enum train_victims victims;
    uint32_t seed, stream; /* of random victims */
    enum train_elastic_rules rules;
    double tick;     /* seconds; 0: none. The published rules need one */
    bool grow_saved; /* a new pipeline waits for the running checkpoint (sane only) */
    struct rec_limit limit; /* on iterations, or ticks, of a run */
};

enum train_elastic_phase {
    TRAIN_ELASTIC_TRAINING,
    TRAIN_ELASTIC_RECONFIGURING,
    TRAIN_ELASTIC_STALLED
};

/** What happened. `step`: iteration `id` starts. */
struct train_elastic_row {
    double time;
    bool reconfig;
    int64_t id;
    uint64_t size;
    /* reconfig only */
    uint64_t after; /* active instances once it is over */
    int64_t redo;   /* the iteration that will be next */
    double since;   /* work since then is lost; NAN: none was done */
};

struct train_elastic_result {
    double begin, end; /* seconds */
    int64_t steps;     /* iterations done and not lost */
    int64_t lost;      /* done and lost; published rules: may be -1 */
    uint64_t iterations, reconfigurations, checkpoints;
    uint64_t start; /* instances at the start */
    uint64_t preempted, lost_active, added, refused;
    double seconds[TRAIN_NACCOUNTS], instance_seconds[TRAIN_NACCOUNTS];
    double by_state[TRAIN_NSTATES]; /* instance-seconds */
};

/** Calls may be NULL. */
struct train_elastic_sink {
    void (*train)(void *context, const struct train_elastic_row *row);
    void (*state)(void *context, double time, enum train_elastic_phase phase,
                  const uint64_t count[TRAIN_NSTATES]);
    void (*end)(void *context, const struct train_elastic_result *result); /* a model's */
    void *context;
};

struct train_elastic;

/**
 * Elastic training as a model; `self` is a struct train_elastic. It takes the records of
 * one trace; without a trace record it starts at 0, and ends with the last event.
 */
extern const struct sim_model train_elastic_model;

/** `options` is copied, what it points to is borrowed. */
struct train_elastic *train_elastic_new(const struct train_elastic_options *options,
                                        const struct train_elastic_sink *sink,
                                        struct rec_error *err) REC_MUST_CHECK;
/** Events come in order of time; those of one instant happen at once, losses first. What
 * would be seen after the last tick before the end is not seen. */
bool train_elastic_take(struct train_elastic *elastic, const struct spot_event *event,
                        struct rec_error *err) REC_MUST_CHECK;
/** Goes on to the end, or to the last event if that is later. */
bool train_elastic_finish(struct train_elastic *elastic, double end,
                          struct train_elastic_result *result,
                          struct rec_error *err) REC_MUST_CHECK;
void train_elastic_free(struct train_elastic *elastic);

/* ---- redundant computation ----------------------------------------------- */

/*
 * Instances form pipelines of stages. Each also keeps the stage that follows its own, so
 * that the loss of one only slows the others down (fallback); the loss of two neighbours
 * is fatal. Instances that come wait until a rendezvous makes a new configuration. A step
 * that runs when a fatal failure comes is lost, all others count. Source: the later
 * simulator of Thorpe et al., "Bamboo" (NSDI 2023), without three of its faults: a fatal
 * failure ends the running step, only the newest rendezvous counts, and pipelines that
 * the table does not have are not formed. Its clock counts milliseconds; so does this
 * one.
 */

/** Time of a step by the number of pipelines, of `stages` stages. */
struct train_redundant_speed {
    uint64_t stages, pipelines;
    int64_t ms;
};

/** The table of a network, read from a file of lines KEY TAB VALUE. */
struct train_redundant_profile {
    const char *name;
    double samples;              /* a step */
    uint64_t steps;              /* of the whole training; 0: not given */
    uint64_t stages;             /* of a pipeline */
    int64_t creation_ms;         /* from the addition of an instance until it is ready */
    int64_t global_ms, local_ms; /* a rendezvous */
    double slowdown;             /* of a step after a loss, >= 1 */
    double price, on_demand_price;              /* US$ an instance-hour */
    double on_demand_instances, on_demand_step; /* step: seconds */
    struct train_redundant_speed *speed;
    size_t nspeeds, room;
    struct rec_arena arena;
};

/** Reads a profile; times in it are seconds. Free it in any case. */
bool train_redundant_profile_read(struct train_redundant_profile *profile,
                                  const char *path, struct rec_error *err) REC_MUST_CHECK;
void train_redundant_profile_free(struct train_redundant_profile *profile);

enum train_redundant_status {
    TRAIN_REDUNDANT_STOPPED,
    TRAIN_REDUNDANT_RENDEZVOUS,
    TRAIN_REDUNDANT_RUNNING
};

/** What happened, and how things stand after it. */
struct train_redundant_row {
    double time;       /* seconds */
    const char *event; /* add, ready, remove, fallback, fatal, rendezvous_global,
                          rendezvous_local, redo (it starts again), config, step */
    uint64_t pipelines, stages, instances, waiting, steps, fatal;
    enum train_redundant_status status;
};

struct train_redundant_options {
    const struct train_redundant_profile *profile;
    uint64_t steps; /* ends after so many; 0: never */
    double price;   /* US$ an instance-hour */
    enum train_victims victims;
    uint32_t seed, stream; /* of random victims */
    double begin,
        end; /* of the run, as of an elastic one; with steps it may stay INFINITY */
    uint64_t start; /* instances that are added at the start, if no trace says it */
    struct rec_limit limit; /* on steps of a run */
};

struct train_redundant_result {
    double begin, end;  /* seconds */
    double first, last; /* start of the first step, end of the last; NAN: none */
    uint64_t steps, fatal, rendezvous, preempted, lost_active, added;
    double seconds[TRAIN_NACCOUNTS], instance_seconds[TRAIN_NACCOUNTS];
    double by_state[TRAIN_NSTATES]; /* instance-seconds; active: in a pipeline */
    double degraded;                /* seconds */
    /* NAN if there is nothing to average; seconds; medians are exact up to METRICS_EXACT
     * values, within METRICS_ERROR beyond (rampipe/metrics.h) */
    double lifetime_mean, lifetime_median, lifetime_stdev;
    double preemption_mean, preemption_median, preemption_stdev;
    double instances, cost;    /* averages up to the last step; cost: US$ an hour */
    double performance, value; /* samples/s; of it for a US$ an hour, averaged by step */
};

/** Calls may be NULL. */
struct train_redundant_sink {
    void (*train)(void *context, const struct train_redundant_row *row);
    void (*state)(void *context, double time, enum train_redundant_status status,
                  bool degraded, const uint64_t count[TRAIN_NSTATES]);
    void (*end)(void *context,
                const struct train_redundant_result *result); /* a model's */
    void *context;
};

struct train_redundant;

/** Redundant computation as a model, like train_elastic_model. */
extern const struct sim_model train_redundant_model;

struct train_redundant *train_redundant_new(const struct train_redundant_options *options,
                                            const struct train_redundant_sink *sink,
                                            struct rec_error *err) REC_MUST_CHECK;
/** Events come in order of time; of one instant, additions are first. A name that leaves
 * at an instant may come again at it: the newcomer is another instance. Once the steps
 * asked for are done, events change nothing. */
bool train_redundant_take(struct train_redundant *redundant,
                          const struct spot_event *event,
                          struct rec_error *err) REC_MUST_CHECK;
/** Goes on to the end, or until the steps are done. */
bool train_redundant_finish(struct train_redundant *redundant, double end,
                            struct train_redundant_result *result,
                            struct rec_error *err) REC_MUST_CHECK;
void train_redundant_free(struct train_redundant *redundant);

REC_END_DECLS

#endif
