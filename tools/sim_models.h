/* The models that sim knows, one file each. */
#ifndef RAMPIPE_SIM_MODELS_H
#define RAMPIPE_SIM_MODELS_H

#include "rampipe/cli.h"
#include "rampipe/spot.h"

struct gengetopt_args_info;

/* Jobs on a RAMP cluster: graphs, layouts, jobs, allocs -> done. */
bool sim_ramp(struct cli *cli, const struct gengetopt_args_info *args);
/* Training on spot instances: trace, add, preempt -> train, state, account, trained. */
bool sim_elastic(struct cli *cli, const struct gengetopt_args_info *args);
bool sim_redundant(struct cli *cli, const struct gengetopt_args_info *args);

/* ---- what the two models of training share (sim_training.c) -------------- */

struct training {
    struct cli *cli;
    const struct gengetopt_args_info *args;
    bool brief;
    double until; /* INFINITY: as the trace says */
    uint64_t seed;
    size_t victims;
    double price, on_demand_price; /* US$ an instance-hour */

    /* of the run */
    struct spot_order order;
    bool running;
    uint64_t runs; /* begun */

    /* of the model */
    void *model;
    bool (*begin)(struct training *training, uint32_t seed);
    bool (*take)(struct training *training, const struct spot_event *event);
    bool (*finish)(struct training *training, double end);
    bool needs_end; /* a run has no end of its own */
};

/* Reads the options they share. */
bool training_options(struct training *training);
/* Every stream of the input is a run. */
bool training_run(struct training *training);
/* A state record; counts are of active, standby and preparing instances. */
void training_write_state(struct training *training, double time, const uint64_t count[3],
                          const char *phase);
/* account records. */
void training_write_accounts(struct training *training, const double seconds[4],
                             const double instance_seconds[4]);
/* Keys of a trained record: instance-seconds by state, prices. */
void training_write_keys(struct training *training, const double by_state[3]);

#endif
