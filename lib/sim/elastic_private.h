/* What the two sets of rules of elastic training share. */
#ifndef RAMPIPE_ELASTIC_PRIVATE_H
#define RAMPIPE_ELASTIC_PRIVATE_H

#include "rampipe/elastic.h"

/* A moment, and the instance-seconds spent until then. */
struct elastic_mark {
    double time, all;
};

struct elastic_addition {
    uint64_t count;
    char *ids; /* owned; NULL: none */
};

struct elastic {
    struct elastic_options options;
    struct elastic_sink sink;
    struct fleet *fleet;
    struct elastic_result result;
    enum elastic_phase phase;
    double now;          /* all before is spent */
    double all;          /* instance-seconds spent */
    int64_t step;        /* iterations done and not lost = the one that runs */
    int64_t last_saved;  /* the last iteration in a checkpoint; -1: none */
    double step_end;     /* of the one that runs */
    double reconfig_end; /* NAN: none (published rules) */
    bool saving;         /* a checkpoint is being written */
    double save_end;
    int64_t save_step;
    struct elastic_mark saved; /* work that a checkpoint holds ended here: of the one that
                                  is being written, */
    struct elastic_mark safe;  /* and of the last one */

    bool begun;                   /* the first instances are known */
    bool open;                    /* an instant has events: */
    uint64_t lost;                /* active instances lost in it */
    uint64_t before;              /* the population before */
    uint64_t limit;               /* additions may not make it larger */
    struct elastic_addition *add; /* its additions */
    size_t nadds, add_room;
    struct rec_map arriving; /* their ids, which live in ->add */

    /* what was told last */
    bool told;
    enum elastic_phase told_phase;
    uint64_t told_count[FLEET_NSTATES];

    /* published rules */
    uint64_t ticks;      /* done */
    uint64_t population; /* between the last tick and the next */
    bool last_is_step;   /* the last row */
    double last_time;
    uint64_t last_size;
};

void elastic_spend(struct elastic *elastic, double time);
void elastic_tell_state(struct elastic *elastic, double time);
void elastic_tell_step(struct elastic *elastic, double time, uint64_t size);
void elastic_tell_reconfig(struct elastic *elastic, uint64_t size, double since);
double elastic_roll_back(struct elastic *elastic);
bool elastic_add(struct elastic *elastic, struct rec_error *err) REC_MUST_CHECK;

/* Published rules: the first row; the ticks before `time`; the tick at now. */
void elastic_tick_start(struct elastic *elastic);
bool elastic_tick_until(struct elastic *elastic, double time,
                        struct rec_error *err) REC_MUST_CHECK;
bool elastic_tick(struct elastic *elastic, struct rec_error *err) REC_MUST_CHECK;

#endif
