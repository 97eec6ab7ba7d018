/* The accounts of time that elastic and redundant training both keep. */
#ifndef RAMPIPE_TRAIN_LEDGER_H
#define RAMPIPE_TRAIN_LEDGER_H

#include "rampipe/train.h"

/* A moment of a model's clock, and the instance-time that was spent until then, in the
 * clock's unit. The difference of two marks is the work between them. */
struct train_mark {
    double time, all;
};

struct train_ledger {
    double unit; /* units of the model's clock per second: 1 or 1000 */
    double all;  /* instance-time spent so far, in the clock's unit */
    double seconds[TRAIN_NACCOUNTS], instance_seconds[TRAIN_NACCOUNTS];
    double by_state[TRAIN_NSTATES]; /* instance-seconds */
    /* the last news of train_ledger_news() */
    bool told; /* there were any */
    int told_phase;
    uint64_t told_count[TRAIN_NSTATES];
};

/* Adds a span of time, during which the fleet was as it is now, to an account. */
void train_ledger_spend(struct train_ledger *ledger, const struct train_fleet *fleet,
                        enum train_account account, double span);
/* Moves a span of time, and its instance-time `all`, from one account to another. */
void train_ledger_move(struct train_ledger *ledger, enum train_account from,
                       enum train_account to, double span, double all);
/* Moves the useful time since a mark to the wasted time, since its work is lost. */
void train_ledger_roll_back(struct train_ledger *ledger, struct train_mark mark,
                            double now);
/* Fills in the fleet's counts. Returns true if they or the phase (a number of the
 * model's) have changed since the last call. */
bool train_ledger_news(struct train_ledger *ledger, const struct train_fleet *fleet,
                       int phase, uint64_t count[TRAIN_NSTATES]);
/* Copies the sums to a model's result. */
void train_ledger_report(const struct train_ledger *ledger,
                         double seconds[TRAIN_NACCOUNTS],
                         double instance_seconds[TRAIN_NACCOUNTS],
                         double by_state[TRAIN_NSTATES]);

#endif
