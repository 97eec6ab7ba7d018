/* The settings of learn: clusters and inputs, loads, fractions and steps. */
#ifndef RAMPIPE_LEARN_SETTINGS_H
#define RAMPIPE_LEARN_SETTINGS_H

#include "rampipe/cli.h"
#include "rampipe/learn.h"

/* Starts as {.cli, .loads, .fractions, .steps}: the texts of the options. */
struct learn_settings {
    struct cli *cli;
    const char *loads, *fractions, *steps;
    struct learn_setting *setting;
    bool several;         /* worlds, or distributions of steps */
    uint32_t n, nexperts; /* settings of the same load and fraction are for one expert */
    size_t room;
    struct rec_arena arena;
};

/* Checks the options. False: cli->err. */
bool learn_settings_check(struct learn_settings *settings) REC_MUST_CHECK;
/* Makes the settings: in each world each of the steps with each load and fraction. False:
 * cli->err. */
bool learn_settings_make(struct learn_settings *settings,
                         const struct learn_world *worlds,
                         uint32_t nworlds) REC_MUST_CHECK;
/* Tells the figures of a setting on `episodes` episodes, with seeds from `seed` on, in
 * which the scorer decides. False: cli->err; REC_OK: it was interrupted. */
bool learn_settings_judge(const struct learn_settings *settings, uint32_t number,
                          const struct learn_world *worlds, struct alloc_scorer *scorer,
                          uint32_t seed, uint32_t episodes) REC_MUST_CHECK;
void learn_settings_free(struct learn_settings *settings);

#endif
