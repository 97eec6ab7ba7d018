/* Where the time of a training went, kept alike by both models. */
#ifndef RAMPIPE_TRAIN_LEDGER_H
#define RAMPIPE_TRAIN_LEDGER_H

#include "rampipe/train.h"

/* A moment of a model's clock, and the instance-time spent until then. */
struct train_mark {
    double time, all;
};

struct train_ledger {
    double unit; /* of the model's clock: so many make a second */
    double all;  /* instance-time spent, in that unit */
    double seconds[TRAIN_NACCOUNTS], instance_seconds[TRAIN_NACCOUNTS];
    double by_state[TRAIN_NSTATES]; /* instance-seconds */
    /* what was told last */
    bool told;
    int told_phase;
    uint64_t told_count[TRAIN_NSTATES];
};

/* A span of time passes, for the fleet as it is. */
void train_ledger_spend(struct train_ledger *ledger, const struct train_fleet *fleet,
                        enum train_account account, double span);
/* Time, and instance-time, was of another account than was thought. */
void train_ledger_move(struct train_ledger *ledger, enum train_account from,
                       enum train_account to, double span, double all);
/* The work since a mark is lost. */
void train_ledger_roll_back(struct train_ledger *ledger, struct train_mark mark,
                            double now);
/* True if the phase (a number of the model's) or the fleet's counts are not what they
 * were when this was true last; fills them in. */
bool train_ledger_news(struct train_ledger *ledger, const struct train_fleet *fleet,
                       int phase, uint64_t count[TRAIN_NSTATES]);
/* Copies the sums to a model's result. */
void train_ledger_report(const struct train_ledger *ledger,
                         double seconds[TRAIN_NACCOUNTS],
                         double instance_seconds[TRAIN_NACCOUNTS],
                         double by_state[TRAIN_NSTATES]);

#endif
