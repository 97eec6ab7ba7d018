/* What the two halves of redundant computation share: the simulation (redundant.c), and
 * what losses do to the pipelines (redundant_losses.c). All times are milliseconds. */
#ifndef RAMPIPE_REDUNDANT_PRIVATE_H
#define RAMPIPE_REDUNDANT_PRIVATE_H

#include "ledger.h"
#include "rampipe/metrics.h"

/* A place in the pipelines, as they were formed; the fleet knows whose it is. */
struct place {
    bool there;   /* its instance is, */
    bool doubled; /* and does the work of the next place too, whose instance is gone */
};

/* A preemption of this instant. */
struct removal {
    uint64_t count;
    bool named;
};

struct train_redundant {
    struct train_redundant_options options;
    struct train_redundant_sink sink;
    struct spot_order order; /* records; seconds */
    bool opened;             /* begin and population are known */
    const struct train_redundant_profile *profile;
    const struct train_redundant_speed **speed; /* of its stages, by pipelines */
    size_t nspeeds;
    struct train_redundant_result result;
    struct train_fleet *fleet; /* active: in a pipeline; standby: ready */
    struct train_ledger ledger;
    enum train_redundant_status status;
    uint64_t pipelines, stages, waiting;
    struct place *place; /* pipeline by pipeline */
    size_t place_room;
    uint64_t doubled;                   /* places */
    double step_ms, next_step, timeout; /* INFINITY: none will come */
    bool global; /* the rendezvous is of all; else of those that run */
    bool broken; /* one of those that meet is gone */
    bool fallback, handled;
    uint64_t fallback_steps;
    double fallback_time;
    uint64_t steps;
    bool configured; /* at least once, */
    double first;    /* then */

    double now;
    struct metrics_dist lifetime, gap; /* gap: from removal to removal */
    double last_removal;               /* NAN: none */
    struct removal *removal;
    size_t nremovals, removal_room;

    struct train_mark step_start, last; /* last: the end of the last step */
    struct train_mark changed;          /* when the number of instances last changed */
    double first_came, first_number;    /* when the first came, and how many; NAN: none */
    double inverse_cost;                /* sum over steps of 1 / (US$ an hour) */
    bool done;
};

/* How things stand, told. */
void train_redundant_tell(struct train_redundant *redundant, const char *event);
/* The moment that is. */
static inline struct train_mark
train_redundant_mark(const struct train_redundant *redundant)
{
    return (struct train_mark){redundant->now, redundant->ledger.all};
}
void train_redundant_start_rendezvous(struct train_redundant *redundant, bool global,
                                      const char *event);
/* Remembers a preemption; train_redundant_end_instant() carries it out, after the
 * additions. */
bool train_redundant_keep_removal(struct train_redundant *redundant,
                                  const struct spot_event *event,
                                  struct rec_error *err) REC_MUST_CHECK;
bool train_redundant_end_instant(struct train_redundant *redundant,
                                 struct rec_error *err) REC_MUST_CHECK;
/* The life of an instance ends at `time`. */
bool train_redundant_end_life(struct train_redundant *redundant,
                              const struct train_instance *instance, double time,
                              struct rec_error *err) REC_MUST_CHECK;

#endif
