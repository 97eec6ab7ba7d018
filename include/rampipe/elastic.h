/*
 * rampipe/elastic.h - pipeline-parallel training on spot instances that come and go.
 *
 * Active instances form pipelines of `depth` stages; their number is a multiple of it.
 * Iterations follow each other; a checkpoint is written beside them, the next one from
 * the first iteration that ends after it. When an active instance is lost, or enough
 * others wait for one more pipeline, training stops, goes back to the last checkpoint,
 * and goes on after the time of a reconfiguration with as many pipelines as there are
 * instances for. Source: the elastic simulator in the notebook of Thorpe et al., "Bamboo"
 * (NSDI 2023); rules "published" and "later" are its two versions, with their 5-second
 * ticks, "sane" is exact in time and free of their faults.
 */
#ifndef RAMPIPE_ELASTIC_H
#define RAMPIPE_ELASTIC_H

#include "rampipe/spot.h"

/* ---- the fleet ----------------------------------------------------------- */

enum fleet_state { FLEET_ACTIVE, FLEET_STANDBY, FLEET_PREPARING, FLEET_NSTATES };

/** Which instances a preemption takes when it names none: drawn; those that came first or
 * last; those with the lowest names (numbers in names count as numbers). */
enum fleet_victims { FLEET_RANDOM, FLEET_OLDEST, FLEET_NEWEST, FLEET_LOWEST };

struct fleet; /* instances, in the order in which they came */

struct fleet *fleet_new(enum fleet_victims victims, uint32_t seed,
                        struct rec_error *err) REC_MUST_CHECK;
void fleet_free(struct fleet *fleet);
uint64_t fleet_count(const struct fleet *fleet, enum fleet_state state);
uint64_t fleet_size(const struct fleet *fleet);
/**
 * Adds `count` instances, or only so many that the fleet is no larger than `capacity`;
 * the first ids are taken. Those refused are remembered. An id that is there already is
 * REC_DATA.
 */
bool fleet_add(struct fleet *fleet, uint64_t count, struct rec_str ids, uint64_t capacity,
               enum fleet_state state, double ready, uint64_t *added,
               struct rec_error *err) REC_MUST_CHECK;
/** Takes instances away, at most as many as there are; *active counts those that were
 * active. An id that never came, or went before, is REC_DATA. */
bool fleet_preempt(struct fleet *fleet, uint64_t count, struct rec_str ids,
                   uint64_t *taken, uint64_t *active,
                   struct rec_error *err) REC_MUST_CHECK;
bool fleet_has(const struct fleet *fleet, struct rec_str id);
/** REC_DATA: an id is added that is there, or preempted that is not. Returns false. */
bool fleet_fail(struct rec_error *err, struct rec_str id, bool added);
/** Instances whose time has come go from preparing to standby. */
void fleet_settle(struct fleet *fleet, double now);
/** When the next instance will be ready; INFINITY if none is being prepared. */
double fleet_next_ready(const struct fleet *fleet);
/** Moves the first `count` instances of one state to another. */
void fleet_move(struct fleet *fleet, enum fleet_state from, enum fleet_state to,
                uint64_t count);

/* ---- training ------------------------------------------------------------ */

/** Time of an iteration by the number of active instances. */
struct elastic_profile {
    double *size, *seconds; /* ascending sizes */
    size_t n, room, seconds_room;
    double reconfigure, checkpoint; /* seconds */
};

bool elastic_profile_add(struct elastic_profile *profile, double size, double seconds,
                         struct rec_error *err) REC_MUST_CHECK;
/**
 * Reads reconfig.csv, loop_times_0.csv and async-checkpoint_0.csv of a directory, as
 * published: means, rounded to whole seconds, half to even; the first reconfiguration
 * does not count; an iteration is its training time.
 */
bool elastic_profile_read(struct elastic_profile *profile, const char *directory,
                          struct rec_error *err) REC_MUST_CHECK;
/** Between two sizes the time is interpolated linearly; above the largest it is that of
 * the largest; below the smallest it grows as 1/size. */
double elastic_iteration(const struct elastic_profile *profile, double size);
void elastic_profile_free(struct elastic_profile *profile);

enum elastic_rules { ELASTIC_SANE, ELASTIC_PUBLISHED, ELASTIC_LATER };

struct elastic_options {
    const struct elastic_profile *profile;
    double load; /* added to each reconfiguration, not in the published rules; seconds */
    double prepare;           /* from an instance's addition until it is ready, seconds */
    uint64_t depth;           /* stages of a pipeline */
    uint64_t start, capacity; /* instances at the start, at most */
    double begin, end; /* of the run, seconds; end may be INFINITY: not known yet */
    enum fleet_victims victims;
    uint32_t seed;
    enum elastic_rules rules;
    double tick;     /* seconds; 0: none. The published rules need one */
    bool grow_saved; /* a new pipeline waits for the running checkpoint (sane only) */
};

enum elastic_phase { ELASTIC_TRAINING, ELASTIC_RECONFIGURING, ELASTIC_STALLED };

/** What happened. `step`: iteration `id` starts. */
struct elastic_row {
    double time;
    bool reconfig;
    int64_t id;
    uint64_t size;
    /* reconfig only */
    uint64_t after; /* active instances once it is over */
    int64_t redo;   /* the iteration that will be next */
    double since;   /* work since then is lost; NAN: none was done */
};

/** Calls may be NULL. */
struct elastic_sink {
    void (*train)(void *context, const struct elastic_row *row);
    void (*state)(void *context, double time, enum elastic_phase phase,
                  const uint64_t count[FLEET_NSTATES]);
    void *context;
};

enum elastic_account {
    ELASTIC_USEFUL,
    ELASTIC_WASTED,
    ELASTIC_RECONFIGURE,
    ELASTIC_STALL,
    ELASTIC_NACCOUNTS
};

struct elastic_result {
    double begin, end; /* seconds */
    int64_t steps;     /* iterations done and not lost */
    int64_t lost;      /* done and lost; published rules: may be -1 */
    uint64_t iterations, reconfigurations, checkpoints;
    uint64_t start; /* instances at the start */
    uint64_t preempted, lost_active, added, refused;
    double seconds[ELASTIC_NACCOUNTS], instance_seconds[ELASTIC_NACCOUNTS];
    double by_state[FLEET_NSTATES]; /* instance-seconds */
};

struct elastic;

/** `options` is copied, what it points to is borrowed. */
struct elastic *elastic_new(const struct elastic_options *options,
                            const struct elastic_sink *sink,
                            struct rec_error *err) REC_MUST_CHECK;
/** Events come in order of time; those of one instant happen at once, losses first. What
 * would be seen after the last tick before the end is not seen. */
bool elastic_take(struct elastic *elastic, const struct spot_event *event,
                  struct rec_error *err) REC_MUST_CHECK;
/** Goes on to the end, or to the last event if that is later. */
bool elastic_finish(struct elastic *elastic, double end, struct elastic_result *result,
                    struct rec_error *err) REC_MUST_CHECK;
void elastic_free(struct elastic *elastic);

#endif
