/* What the two sets of rules of elastic training share. */
#ifndef RAMPIPE_ELASTIC_PRIVATE_H
#define RAMPIPE_ELASTIC_PRIVATE_H

#include "ledger.h"

struct train_elastic_addition {
    uint64_t count;
    char *ids; /* owned; NULL: none */
};

struct train_elastic {
    struct train_elastic_options options;
    struct train_elastic_sink sink;
    struct spot_order order; /* records */
    struct train_fleet *fleet;
    struct train_ledger ledger;
    struct train_elastic_result result;
    enum train_elastic_phase phase;
    double now;          /* all before is spent */
    int64_t step;        /* iterations done and not lost = the one that runs */
    int64_t last_saved;  /* the last iteration in a checkpoint; -1: none */
    double step_end;     /* of the one that runs */
    double reconfig_end; /* NAN: none (published rules) */
    bool saving;         /* a checkpoint is being written */
    double save_end;
    int64_t save_step;
    /* Where the work ended that a checkpoint holds. */
    struct train_mark saved; /* of the one that is being written */
    struct train_mark safe;  /* of the last one */

    bool opened;                        /* begin and population are known, */
    bool begun;                         /* and all instances that were there then */
    bool open;                          /* an instant has events: */
    uint64_t lost;                      /* active instances lost in it */
    uint64_t before;                    /* the population before */
    uint64_t limit;                     /* additions may not make it larger */
    struct train_elastic_addition *add; /* its additions */
    size_t nadds, add_room;
    struct rec_map arriving; /* their ids, which live in ->add */

    /* published rules */
    uint64_t ticks;      /* done */
    uint64_t population; /* between the last tick and the next */
    bool last_is_step;   /* the last row */
    double last_time;
    uint64_t last_size;
};

/* The first of the sizes of a profile that is not less; n if there is none. */
size_t train_elastic_profile_find(const struct train_elastic_profile *profile,
                                  double size);
void train_elastic_spend(struct train_elastic *elastic, double time);
void train_elastic_tell_state(struct train_elastic *elastic, double time);
void train_elastic_tell_step(struct train_elastic *elastic, double time, uint64_t size);
void train_elastic_tell_reconfig(struct train_elastic *elastic, uint64_t size,
                                 double since);
struct train_mark train_elastic_mark(const struct train_elastic *elastic, double time);
double train_elastic_roll_back(struct train_elastic *elastic);
bool train_elastic_add(struct train_elastic *elastic,
                       struct rec_error *err) REC_MUST_CHECK;

/* Published rules: the first row; the tick at now, whose events were taken; when the next
 * one is; a tick without events; all of those before `time`. */
void train_elastic_tick_start(struct train_elastic *elastic);
bool train_elastic_tick(struct train_elastic *elastic,
                        struct rec_error *err) REC_MUST_CHECK;
double train_elastic_next_tick(const struct train_elastic *elastic);
bool train_elastic_tick_alone(struct train_elastic *elastic, double time,
                              struct rec_error *err) REC_MUST_CHECK;
bool train_elastic_tick_until(struct train_elastic *elastic, double time,
                              struct rec_error *err) REC_MUST_CHECK;

#endif
