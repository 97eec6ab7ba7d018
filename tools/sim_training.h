/* What the two models of training on spot instances share: runs, options, records. */
#ifndef RAMPIPE_SIM_TRAINING_H
#define RAMPIPE_SIM_TRAINING_H

#include "rampipe/cli.h"
#include "rampipe/sim.h"

/* The options they share, as given (tools/sim_training.ggo). */
struct training_options {
    bool brief, price_given, on_demand_price_given;
    const char *until, *victims, *seed, *stream, *limit, *price, *on_demand_price;
};
#define TRAINING_OPTIONS(args)                                            \
    {                                                                     \
        .brief = (args)->brief_given, .price_given = (args)->price_given, \
        .on_demand_price_given = (args)->on_demand_price_given,           \
        .until = (args)->until_arg, .victims = (args)->victims_arg,       \
        .seed = (args)->seed_arg, .stream = (args)->stream_arg,           \
        .limit = (args)->limit_arg, .price = (args)->price_arg,           \
        .on_demand_price = (args)->on_demand_price_arg                    \
    }

struct training {
    struct cli *cli;
    bool brief;
    double until;           /* INFINITY: as the trace says */
    struct rec_limit limit; /* on steps of a run */
    uint64_t seed, runs;    /* runs: that ended */
    uint32_t stream;        /* of random victims */
    size_t victims;
    double price, on_demand_price; /* US$ an instance-hour */

    const struct sim_model *model;
    /* A run of the model's; NULL: cli->err. free_run() frees it. */
    void *(*new_run)(struct training *training, uint32_t seed);
    void (*free_run)(void *run);
};

/* Reads the options they share. */
bool training_read(struct training *training, const struct training_options *options);
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
