/* What sim elastic and sim redundant share: options, runs, records. */
#ifndef RAMPIPE_SIM_TRAINING_H
#define RAMPIPE_SIM_TRAINING_H

#include "rampipe/cli.h"
#include "rampipe/event.h"

/* The values of the options of tools/sim_training.ggo, as the user gave them. */
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
    double until; /* end of the simulated time, seconds; INFINITY: of the trace */
    struct rec_limit limit; /* on steps of a run */
    uint64_t seed;          /* of the first run */
    uint64_t runs;          /* that have ended */
    uint32_t stream;        /* of the random numbers that choose victims */
    size_t victims;
    double price, on_demand_price; /* US$ an instance-hour */

    const struct event_model *model;
    /* Makes a run of the model, which free_run() frees. NULL: cli->err says why. */
    void *(*new_run)(struct training *training, uint32_t seed);
    void (*free_run)(void *run);
};

/* Reads the shared options. */
bool training_read(struct training *training, const struct training_options *options);
/* Reads the whole input; each of its streams is a run. */
bool training_run(struct training *training);
/* Writes a state record; the counts are of active, standby and preparing instances. */
void training_write_state(struct training *training, double time, const uint64_t count[3],
                          const char *phase);
/* Writes the account records; seconds, and instance-seconds, by account. */
void training_write_accounts(struct training *training, const double seconds[4],
                             const double instance_seconds[4]);
/* Writes keys of a trained record: instance-seconds by state, and prices. */
void training_write_keys(struct training *training, const double by_state[3]);

#endif
