/*
 * rampipe/train.h - training on spot instances that come and go: the fleet, and two
 * models of pipeline-parallel training, elastic and redundant.
 */
#ifndef RAMPIPE_TRAIN_H
#define RAMPIPE_TRAIN_H

#include "rampipe/event.h"
#include "rampipe/spot.h"

REC_BEGIN_DECLS

/* ---- the fleet ----------------------------------------------------------- */

enum train_state { TRAIN_ACTIVE, TRAIN_STANDBY, TRAIN_PREPARING, TRAIN_NSTATES };

/** Which instances a preemption takes when it names none: instances drawn at random; the
 * instances that came first, or last; the instances with the lowest names (numbers within
 * a name are compared as numbers, so a9 is lower than a10). */
enum train_victims { TRAIN_RANDOM, TRAIN_OLDEST, TRAIN_NEWEST, TRAIN_LOWEST };

/** The instances of a cluster, in the order in which they came. More than TRAIN_FLEET_MAX
 * at once are REC_DATA. Adding, choosing, removing or moving one of n instances costs
 * O(log n). The same calls with the same seed choose the same victims. */
struct train_fleet;

enum { TRAIN_FLEET_MAX = 1 << 20 };

struct train_instance {
    char *name; /* owned by the fleet until the instance is taken away; if the trace
                   gives no name, the next free number */
    enum train_state state;
    uint32_t place; /* its position, 0, 1, ..., in the last train_fleet_move() of it */
    bool leaving;   /* chosen or named by a preemption, and not taken away yet */
    double ready;   /* when its preparation ends or ended, in the model's unit of time */
};

/** `seed` and `stream` (rampipe/random.h) select the generator that draws random victims.
 * Free the fleet with train_fleet_free(). NULL: out of memory. */
struct train_fleet *train_fleet_new(enum train_victims victims, uint32_t seed,
                                    uint32_t stream,
                                    struct rec_error *err) REC_MUST_CHECK;
void train_fleet_free(struct train_fleet *fleet);
uint64_t train_fleet_count(const struct train_fleet *fleet, enum train_state state);
/** Fills in the number of instances in each state, and returns their sum, which is
 * train_fleet_size(). */
uint64_t train_fleet_counts(const struct train_fleet *fleet,
                            uint64_t count[TRAIN_NSTATES]);
uint64_t train_fleet_size(const struct train_fleet *fleet);
/** The number of instances that are not leaving. */
uint64_t train_fleet_staying(const struct train_fleet *fleet);
/** Walks over the instances in the order in which they came: fills in the next one.
 * *at is the walk's position; it starts at 0. False: all have been visited. */
bool train_fleet_next(const struct train_fleet *fleet, size_t *at,
                      struct train_instance *instance);
/** True if `count` more instances would not exceed TRAIN_FLEET_MAX; else REC_DATA. */
bool train_fleet_fits(const struct train_fleet *fleet, uint64_t count,
                      struct rec_error *err) REC_MUST_CHECK;
/**
 * Adds instances until `count` are added or the fleet has `capacity` instances; *added
 * says how many were. `ids` are their names, separated by commas; empty: they have no
 * names. The names of instances that are refused for want of room are remembered, so that
 * train_fleet_leave() can tell them from unknown names. `ready` must not be less than
 * that of an instance added earlier. A name that a staying instance has is REC_DATA.
 */
bool train_fleet_add(struct train_fleet *fleet, uint64_t count, struct rec_str ids,
                     uint64_t capacity, enum train_state state, double ready,
                     uint64_t *added, struct rec_error *err) REC_MUST_CHECK;
/** Marks the named instances as leaving: train_fleet_choose() does not choose them, and
 * their names may be used again. A name that never came, or that left before, is
 * REC_DATA; a name that was refused is skipped. */
bool train_fleet_leave(struct train_fleet *fleet, struct rec_str ids,
                       struct rec_error *err) REC_MUST_CHECK;
/** Chooses `count` of the staying instances, or all of them if there are fewer, and marks
 * them as leaving. */
bool train_fleet_choose(struct train_fleet *fleet, uint64_t count,
                        struct rec_error *err) REC_MUST_CHECK;
/** Takes away the instance that was marked as leaving first, or `last`, and copies it to
 * *gone, without its name. False: no instance is leaving. */
bool train_fleet_take(struct train_fleet *fleet, bool last, struct train_instance *gone);
/** True if a staying instance has this name. */
bool train_fleet_has(const struct train_fleet *fleet, struct rec_str id);
/** Sets *err to REC_DATA: the name `id` is `added` although an instance has it, or else
 * is preempted although none has it. Returns false. */
bool train_fleet_fail(struct rec_error *err, struct rec_str id, bool added);
/** Moves each preparing instance whose `ready` is at most `now` to standby. */
void train_fleet_settle(struct train_fleet *fleet, double now);
/** When the next preparing instance will be ready; INFINITY if none is preparing. */
double train_fleet_next_ready(const struct train_fleet *fleet);
/** Moves the first `count` instances of one state to another, or all if there are fewer,
 * and numbers them from 0 in `place`. */
void train_fleet_move(struct train_fleet *fleet, enum train_state from,
                      enum train_state to, uint64_t count);

/* ---- where the time went ------------------------------------------------- */

enum train_account {
    TRAIN_USEFUL,      /* training whose result was kept */
    TRAIN_WASTED,      /* training whose result was lost */
    TRAIN_RECONFIGURE, /* a reconfiguration or rendezvous */
    TRAIN_STALL,       /* too few instances to train */
    TRAIN_NACCOUNTS
};

/* ---- elastic training ---------------------------------------------------- */

/*
 * Active instances form pipelines of `depth` stages; their number is a multiple of
 * `depth`. Iterations follow each other without a pause. A checkpoint is written while
 * they run; the next checkpoint starts when the first iteration ends after the previous
 * one is complete. Training stops when an active instance is lost, or when enough standby
 * instances wait for one more pipeline. It then returns to the last complete checkpoint
 * and resumes after the time of a reconfiguration, with as many pipelines as the
 * instances can form. Source: the elastic simulator in the notebook of Thorpe et al.,
 * "Bamboo" (NSDI 2023). The rules "published" and "later" are its two versions, with
 * their 5-second ticks. The rules "sane" are exact in time and free of their faults.
 */

/** The time of an iteration as a function of the number of active instances. */
struct train_elastic_profile {
    double *size, *seconds; /* an iteration of size[i] instances takes seconds[i]; sizes
                               ascend */
    size_t n, room, seconds_room;
    double reconfigure, checkpoint; /* duration of each, seconds */
};

/** Adds a point; points may come in any order of size. Two points of one size are
 * REC_DATA. */
bool train_elastic_profile_add(struct train_elastic_profile *profile, double size,
                               double seconds, struct rec_error *err) REC_MUST_CHECK;
/**
 * Reads reconfig.csv, loop_times_0.csv and async-checkpoint_0.csv of a directory by the
 * published rules: each time is a mean, rounded to whole seconds, half to even. The first
 * reconfiguration is not counted. The time of an iteration is the column of training
 * time, without the start of the checkpoint's thread.
 */
bool train_elastic_profile_read(struct train_elastic_profile *profile,
                                const char *directory,
                                struct rec_error *err) REC_MUST_CHECK;
/** The seconds of an iteration on `size` > 0 instances. Between two measured sizes the
 * time is interpolated linearly; above the largest size it is the time of the largest;
 * below the smallest it grows as 1/size. The profile must have at least one point. */
double train_elastic_iteration(const struct train_elastic_profile *profile, double size);
void train_elastic_profile_free(struct train_elastic_profile *profile);

enum train_elastic_rules {
    TRAIN_ELASTIC_SANE,
    TRAIN_ELASTIC_PUBLISHED,
    TRAIN_ELASTIC_LATER
};

struct train_elastic_options {
    const struct train_elastic_profile *profile;
    double load;       /* time to load a checkpoint, added to each reconfiguration by the
                          sane rules only; seconds */
    double prepare;    /* from the addition of an instance until it is ready, seconds */
    uint64_t depth;    /* stages of a pipeline */
    uint64_t start;    /* instances at the start */
    uint64_t capacity; /* additions beyond this number of instances are refused */
    bool start_given;  /* `start` holds even if a trace record says another number */
    double begin, end; /* of the run, seconds. A trace record replaces `begin`, and also
                          `end` if that is INFINITY, which means: not known yet */
    enum train_victims victims;
    uint32_t seed, stream; /* of the generator that draws random victims */
    enum train_elastic_rules rules;
    double tick;     /* length of a tick, seconds; 0: no ticks. The rules "published" and
                        "later" need one */
    bool grow_saved; /* a new pipeline waits until the running checkpoint is complete
                        (sane rules only) */
    struct rec_limit limit; /* on the iterations, or the ticks, of a run */
};

enum train_elastic_phase {
    TRAIN_ELASTIC_TRAINING,
    TRAIN_ELASTIC_RECONFIGURING,
    TRAIN_ELASTIC_STALLED
};

/** An event of the run: the start of an iteration, or of a reconfiguration. */
struct train_elastic_row {
    double time;   /* seconds */
    bool reconfig; /* a reconfiguration; else an iteration */
    int64_t id;    /* the number of the iteration or of the reconfiguration, from 0 */
    uint64_t size; /* active instances; of a reconfiguration: before they regroup */
    /* of a reconfiguration only */
    uint64_t after; /* active instances once it is over */
    int64_t redo;   /* the iteration that will start next */
    double since;   /* work done since this time is lost; NAN: none was done */
};

struct train_elastic_result {
    double begin, end; /* seconds */
    int64_t steps;     /* iterations done and not lost */
    int64_t lost; /* iterations done and lost; -1 is possible by the rules "published"
                          and "later", which resume at iteration 1 if none was saved */
    uint64_t iterations, reconfigurations, checkpoints;
    uint64_t start;       /* instances at the start */
    uint64_t preempted;   /* instances */
    uint64_t lost_active; /* of the preempted instances, those that were active */
    uint64_t added, refused;
    double seconds[TRAIN_NACCOUNTS], instance_seconds[TRAIN_NACCOUNTS];
    double by_state[TRAIN_NSTATES]; /* instance-seconds */
};

/** Functions that are called with what happens; each may be NULL. */
struct train_elastic_sink {
    /* an iteration or a reconfiguration starts */
    void (*train)(void *context, const struct train_elastic_row *row);
    /* the phase or the number of instances in a state has changed */
    void (*state)(void *context, double time, enum train_elastic_phase phase,
                  const uint64_t count[TRAIN_NSTATES]);
    /* the run is over; called by train_elastic_model only */
    void (*end)(void *context, const struct train_elastic_result *result);
    void *context;
};

struct train_elastic;

/**
 * Elastic training as a model of rampipe/sim.h; `self` is a struct train_elastic. It
 * takes the records of one trace. Without a trace record the run starts at
 * `options.begin` and ends with the last event.
 */
extern const struct event_model train_elastic_model;

/** *options and *sink are copied, what they point to is borrowed. Free the result with
 * train_elastic_free(). NULL: out of memory. */
struct train_elastic *train_elastic_new(const struct train_elastic_options *options,
                                        const struct train_elastic_sink *sink,
                                        struct rec_error *err) REC_MUST_CHECK;
/** Takes the next event; events come in order of time. The events of one instant happen
 * together, losses before additions. With ticks, an event that would be seen at a tick at
 * or after the end is ignored, as in the original. */
bool train_elastic_take(struct train_elastic *elastic, const struct spot_event *event,
                        struct rec_error *err) REC_MUST_CHECK;
/** Runs until `end` (seconds), or until the last event if that is later, and fills in
 * *result. */
bool train_elastic_finish(struct train_elastic *elastic, double end,
                          struct train_elastic_result *result,
                          struct rec_error *err) REC_MUST_CHECK;
void train_elastic_free(struct train_elastic *elastic);

/* ---- redundant computation ----------------------------------------------- */

/*
 * Instances form pipelines of stages. Each instance also computes the stage that follows
 * its own, so that the loss of one instance only slows training down (a fallback); the
 * loss of two neighbours is fatal. New instances wait until a rendezvous forms a new
 * configuration. The step that runs during a fatal failure is lost; all other steps
 * count. Source: the later simulator of Thorpe et al., "Bamboo" (NSDI 2023), with three
 * of its faults mended: a fatal failure ends the running step, only the newest rendezvous
 * counts, and numbers of pipelines that are not in the table are not formed. The clock
 * counts milliseconds, as the original's does.
 */

/** The time of a step on this number of pipelines, each of `stages` stages. */
struct train_redundant_speed {
    uint64_t stages, pipelines;
    int64_t ms;
};

/** The table of a network, read from a file of lines KEY TAB VALUE. */
struct train_redundant_profile {
    const char *name;
    double samples;              /* per step */
    uint64_t steps;              /* of the whole training; 0: not given */
    uint64_t stages;             /* of a pipeline */
    int64_t creation_ms;         /* from the addition of an instance until it is ready */
    int64_t global_ms, local_ms; /* duration of a global, of a local rendezvous */
    double slowdown; /* time of a step after a loss over the time before, >= 1 */
    double price, on_demand_price; /* US$ per instance-hour */
    double on_demand_instances;    /* of the on-demand cluster to compare with */
    double on_demand_step;         /* time of a step there, seconds */
    struct train_redundant_speed *speed;
    size_t nspeeds, room;
    struct rec_arena arena;
};

/** Reads a profile, in whose file times are seconds. Free *profile even if this fails. */
bool train_redundant_profile_read(struct train_redundant_profile *profile,
                                  const char *path, struct rec_error *err) REC_MUST_CHECK;
void train_redundant_profile_free(struct train_redundant_profile *profile);

enum train_redundant_status {
    TRAIN_REDUNDANT_STOPPED,
    TRAIN_REDUNDANT_RENDEZVOUS,
    TRAIN_REDUNDANT_RUNNING
};

/** An event of the run, and the state of the cluster after it. */
struct train_redundant_row {
    double time;       /* seconds */
    const char *event; /* add, ready, remove, fallback, fatal, rendezvous_global,
                          rendezvous_local, redo (the rendezvous starts again), config,
                          step */
    uint64_t pipelines, stages, instances, waiting, steps, fatal;
    enum train_redundant_status status;
};

struct train_redundant_options {
    const struct train_redundant_profile *profile;
    uint64_t steps; /* the run ends after this number of steps; 0: no such end */
    double price;   /* US$ per instance-hour */
    enum train_victims victims;
    uint32_t seed, stream;  /* of the generator that draws random victims */
    double begin, end;      /* as in struct train_elastic_options; `end` may stay INFINITY
                               if `steps` is given */
    uint64_t start;         /* instances added at the start if no trace record says it */
    struct rec_limit limit; /* on the steps of a run */
};

struct train_redundant_result {
    double begin, end;  /* seconds */
    double first, last; /* start of the first step, end of the last; NAN: none */
    uint64_t steps, fatal, rendezvous, preempted, lost_active, added;
    double seconds[TRAIN_NACCOUNTS], instance_seconds[TRAIN_NACCOUNTS];
    double by_state[TRAIN_NSTATES]; /* instance-seconds; active: in a pipeline */
    double degraded;                /* time of training in fallback, seconds */
    /* seconds; NAN if there is no value. Medians are exact up to METRICS_EXACT values,
     * and within METRICS_ERROR beyond (rampipe/metrics.h) */
    double lifetime_mean, lifetime_median, lifetime_stdev; /* from addition to removal */
    double preemption_mean, preemption_median, preemption_stdev; /* between removals */
    double instances;   /* mean number of instances from the begin to the last step */
    double cost;        /* of these instances, US$ per hour */
    double performance; /* samples/s from the first step's start to the last step's end */
    double value;       /* samples/s per US$ per hour, the published mean over steps */
};

/** Functions that are called with what happens, as in struct train_elastic_sink; each may
 * be NULL. */
struct train_redundant_sink {
    void (*train)(void *context, const struct train_redundant_row *row);
    void (*state)(void *context, double time, enum train_redundant_status status,
                  bool degraded, const uint64_t count[TRAIN_NSTATES]);
    void (*end)(void *context, const struct train_redundant_result *result);
    void *context;
};

struct train_redundant;

/** Redundant computation as a model, like train_elastic_model. */
extern const struct event_model train_redundant_model;

/** *options and *sink are copied, what they point to is borrowed. Free the result with
 * train_redundant_free(). NULL: out of memory. */
struct train_redundant *train_redundant_new(const struct train_redundant_options *options,
                                            const struct train_redundant_sink *sink,
                                            struct rec_error *err) REC_MUST_CHECK;
/** Takes the next event; events come in order of time. At one instant, additions happen
 * before preemptions. A name that leaves and comes at the same instant is the name of two
 * instances: the one that was there leaves, and a new one takes the name. Once
 * `options.steps` are done, events change nothing. */
bool train_redundant_take(struct train_redundant *redundant,
                          const struct spot_event *event,
                          struct rec_error *err) REC_MUST_CHECK;
/** Runs until `end` (seconds) or until the steps are done, and fills in *result. */
bool train_redundant_finish(struct train_redundant *redundant, double end,
                            struct train_redundant_result *result,
                            struct rec_error *err) REC_MUST_CHECK;
void train_redundant_free(struct train_redundant *redundant);

REC_END_DECLS

#endif
