/* The state of elastic training, and the functions that the sane rules (elastic.c) and
 * the published rules (elastic_tick.c) share. Times are seconds. */
#ifndef RAMPIPE_ELASTIC_PRIVATE_H
#define RAMPIPE_ELASTIC_PRIVATE_H

#include "ledger.h"

/* An addition that is carried out at the end of its instant. */
struct train_elastic_addition {
    uint64_t count;
    char *ids; /* owned; NULL: none */
};

struct train_elastic {
    struct train_elastic_options options;
    struct train_elastic_sink sink;
    struct spot_order order; /* what the records of the trace have said */
    struct train_fleet *fleet;
    struct train_ledger ledger;
    struct train_elastic_result result;
    enum train_elastic_phase phase;
    double now;          /* the ledger accounts for all time until now */
    int64_t step;        /* the iteration that runs = iterations done and not lost */
    int64_t last_saved;  /* the last iteration in a complete checkpoint; -1: none */
    double step_end;     /* when the running iteration ends */
    double reconfig_end; /* published rules: NAN if no reconfiguration runs */
    bool saving;         /* a checkpoint is being written: */
    double save_end;     /* when it will be complete */
    int64_t save_step;   /* the last iteration that it holds */
    /* the end of the work that a checkpoint holds */
    struct train_mark saved; /* of the checkpoint that is being written */
    struct train_mark safe;  /* of the last complete checkpoint */

    bool opened; /* the begin of the run and its first instances are known */
    bool begun;  /* the additions at the begin are over, and training has started */
    /* the events of one instant are collected, for their order decides the result */
    bool open;       /* events of the instant `now` have been taken */
    uint64_t lost;   /* active instances lost in this instant */
    uint64_t before; /* instances before this instant */
    uint64_t limit;  /* additions may not make the fleet larger than this */
    struct train_elastic_addition *add; /* additions of this instant */
    size_t nadds, add_room;
    struct rec_map arriving; /* the names in ->add, which owns them */

    /* published rules only */
    uint64_t ticks;      /* ticks that are done */
    uint64_t population; /* instances between the last tick and the next */
    bool last_is_step;   /* the last row told was an iteration, not a reconfiguration: */
    double last_time;    /* its time */
    uint64_t last_size;  /* its number of active instances */
};

/* The index of the profile's first size that is >= `size`; profile->n if there is
 * none. */
size_t train_elastic_profile_find(const struct train_elastic_profile *profile,
                                  double size);
/* Accounts for the time from now until `time`, and moves the clock there. */
void train_elastic_spend(struct train_elastic *elastic, double time);
/* Tells the sink of a changed phase or fleet; of a new iteration; of a
 * reconfiguration. */
void train_elastic_tell_state(struct train_elastic *elastic, double time);
void train_elastic_tell_step(struct train_elastic *elastic, double time, uint64_t size);
void train_elastic_tell_reconfig(struct train_elastic *elastic, uint64_t size,
                                 double since);
/* The mark of a past time since which the number of instances has not changed. */
struct train_mark train_elastic_mark(const struct train_elastic *elastic, double time);
/* Takes back the iterations since the last complete checkpoint. Returns the time from
 * which work is lost; NAN if none was done. */
double train_elastic_roll_back(struct train_elastic *elastic);
/* Carries out the additions of this instant. */
bool train_elastic_add(struct train_elastic *elastic,
                       struct rec_error *err) REC_MUST_CHECK;

/* Published rules: writes the first row. */
void train_elastic_tick_start(struct train_elastic *elastic);
/* Carries out the tick at `now`, whose events have been taken. */
bool train_elastic_tick(struct train_elastic *elastic,
                        struct rec_error *err) REC_MUST_CHECK;
/* The time of the next tick. */
double train_elastic_next_tick(const struct train_elastic *elastic);
/* Carries out the tick at `time`, at which no event happens. */
bool train_elastic_tick_alone(struct train_elastic *elastic, double time,
                              struct rec_error *err) REC_MUST_CHECK;
/* Carries out all ticks before `time`, none of which has events. */
bool train_elastic_tick_until(struct train_elastic *elastic, double time,
                              struct rec_error *err) REC_MUST_CHECK;

#endif
