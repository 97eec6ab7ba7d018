/* The state of training with redundant computation, shared by the simulation
 * (redundant.c) and the effect of losses (redundant_losses.c). All times are
 * milliseconds. */
#ifndef RAMPIPE_REDUNDANT_PRIVATE_H
#define RAMPIPE_REDUNDANT_PRIVATE_H

#include "ledger.h"
#include "rampipe/metrics.h"

/* The place of one stage of one pipeline. Its instance is the fleet's active instance
 * with this number in train_instance.place. */
struct place {
    bool there; /* its instance has not gone */
    /* its instance also does the work of the next place, whose own instance is gone */
    bool doubled;
};

/* A preemption of this instant that is still to be carried out. */
struct removal {
    uint64_t count; /* instances */
    bool named;     /* its victims have names, and are marked as leaving already */
};

struct train_redundant {
    struct train_redundant_options options;
    struct train_redundant_sink sink;
    struct spot_order order; /* what the records of the trace have said; seconds */
    bool opened;             /* the begin of the run and its first instances are known */
    const struct train_redundant_profile *profile;
    const struct train_redundant_speed **speed; /* ascending numbers of pipelines */
    size_t nspeeds;
    struct train_redundant_result result;
    struct train_fleet *fleet; /* active: in a pipeline; standby: ready */
    struct train_ledger ledger;
    enum train_redundant_status status;
    uint64_t pipelines, stages, waiting;
    struct place *place; /* place i is stage i % stages of pipeline i / stages */
    size_t place_room;
    uint64_t doubled;        /* places whose instance does two stages */
    double step_ms;          /* time of a step at present */
    double next_step;        /* when the running step ends; INFINITY: none runs */
    double timeout;          /* when the rendezvous ends; INFINITY: there is none */
    bool global;             /* the rendezvous is global, else local */
    bool broken;             /* an instance that takes part in the rendezvous is gone */
    bool fallback;           /* steps are slowed down since a loss: */
    bool handled;            /* the step that ran then has been prolonged */
    uint64_t fallback_steps; /* the number of steps done then */
    double fallback_time;    /* the time of the loss */
    uint64_t steps;          /* done */
    bool configured;         /* there has been a configuration */
    double first;            /* the time of the first configuration */

    double now;
    struct metrics_dist lifetime; /* of instances that are gone */
    struct metrics_dist gap;      /* from one removal to the next */
    double last_removal;          /* NAN: there was none */
    struct removal *removal;      /* of this instant, in order */
    size_t nremovals, removal_room;

    struct train_mark step_start; /* start of the running step */
    struct train_mark last;       /* end of the last step */
    struct train_mark changed;    /* last change of the number of instances */
    double first_came;            /* when the first instances came; NAN: none has come */
    double first_number;          /* how many came then */
    double inverse_cost;          /* sum over steps of 1 / (US$ per hour) */
    bool done;                    /* the steps that were asked for are done */
};

/* Tells the sink of an event, and of the cluster's state after it. */
void train_redundant_tell(struct train_redundant *redundant, const char *event);
/* The mark of the present moment. */
static inline struct train_mark
train_redundant_mark(const struct train_redundant *redundant)
{
    return (struct train_mark){redundant->now, redundant->ledger.all};
}
/* Starts a rendezvous, and tells of it as `event`. */
void train_redundant_start_rendezvous(struct train_redundant *redundant, bool global,
                                      const char *event);
/* Keeps a preemption until train_redundant_end_instant() carries it out, after the
 * additions of its instant. */
bool train_redundant_keep_removal(struct train_redundant *redundant,
                                  const struct spot_event *event,
                                  struct rec_error *err) REC_MUST_CHECK;
/* Carries out the preemptions that were kept. */
bool train_redundant_end_instant(struct train_redundant *redundant,
                                 struct rec_error *err) REC_MUST_CHECK;
/* Adds the life of an instance, which ends at `time`, to the distribution of
 * lifetimes. */
bool train_redundant_end_life(struct train_redundant *redundant,
                              const struct train_instance *instance, double time,
                              struct rec_error *err) REC_MUST_CHECK;

#endif
