/* What single experts of learn get besides their weights: values (--values), and what
 * they learn from a teacher (--taught). */
#ifndef RAMPIPE_LEARN_SINGLE_H
#define RAMPIPE_LEARN_SINGLE_H

#include "learn_settings.h"
#include "ramp_cluster.h"

struct learn_single {
    struct cli *cli;
    const struct learn_options *options;
    const struct learn_settings *settings;
    const struct alloc_cluster *clusters;
    struct alloc_scorer *scorer; /* has the experts */
    bool begun;                  /* they are those of --init, not of this training */
    bool shared;                 /* all settings are for one expert */
    const char *values;          /* numbers of experts, from 1; NULL: none */
    uint64_t value_jobs;         /* 0: none; the margin alone is set */
    uint32_t value_units;
    double value_margin; /* NAN: not given */
    const char *taught;  /* numbers of experts; NULL: none */
    const char *teacher;
    uint64_t taught_jobs;
    bool changed; /* an expert has got a value, or has been taught */
};

/* Values and lessons draw jobs with fewer seeds than this from options->seed on, if there
 * are so many experts. */
uint64_t learn_single_seeds(const struct learn_single *single, uint32_t nexperts);
/* Checks the numbers of experts. False: cli->err. */
bool learn_single_check(const struct learn_single *single) REC_MUST_CHECK;
/* An expert without a value of its own goes on from that of the nearest expert. After an
 * interrupt, what is not yet complete is left out, also in the provenance. False:
 * cli->err. */
bool learn_single_train(struct learn_single *single) REC_MUST_CHECK;

#endif
