/* The accounts of a run: how much time, and instance-time (time multiplied by the number
 * of instances), was useful, wasted, spent on reconfigurations, or stalled. */
#include "ledger.h"

void
train_ledger_spend(struct train_ledger *ledger, const struct train_fleet *fleet,
                   enum train_account account, double span)
{
    uint64_t count[TRAIN_NSTATES];
    double all = span * (double)train_fleet_counts(fleet, count), unit = ledger->unit;
    ledger->seconds[account] += span / unit;
    ledger->instance_seconds[account] += all / unit;
    for (int s = 0; s < TRAIN_NSTATES; s++)
        if (count[s] > 0)
            ledger->by_state[s] += span * (double)count[s] / unit;
    ledger->all += all;
}

void
train_ledger_move(struct train_ledger *ledger, enum train_account from,
                  enum train_account to, double span, double all)
{
    ledger->seconds[from] -= span / ledger->unit;
    ledger->seconds[to] += span / ledger->unit;
    ledger->instance_seconds[from] -= all / ledger->unit;
    ledger->instance_seconds[to] += all / ledger->unit;
}

void
train_ledger_roll_back(struct train_ledger *ledger, struct train_mark mark, double now)
{
    train_ledger_move(ledger, TRAIN_USEFUL, TRAIN_WASTED, now - mark.time,
                      ledger->all - mark.all);
}

bool
train_ledger_news(struct train_ledger *ledger, const struct train_fleet *fleet, int phase,
                  uint64_t count[TRAIN_NSTATES])
{
    bool same = ledger->told && ledger->told_phase == phase;
    train_fleet_counts(fleet, count);
    for (int s = 0; s < TRAIN_NSTATES; s++)
        same = same && count[s] == ledger->told_count[s];
    ledger->told = true;
    ledger->told_phase = phase;
    memcpy(ledger->told_count, count, sizeof ledger->told_count);
    return !same;
}

void
train_ledger_report(const struct train_ledger *ledger, double seconds[TRAIN_NACCOUNTS],
                    double instance_seconds[TRAIN_NACCOUNTS],
                    double by_state[TRAIN_NSTATES])
{
    memcpy(seconds, ledger->seconds, sizeof ledger->seconds);
    memcpy(instance_seconds, ledger->instance_seconds, sizeof ledger->instance_seconds);
    memcpy(by_state, ledger->by_state, sizeof ledger->by_state);
}
