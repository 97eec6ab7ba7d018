/* What the parts of plan train share. */
#ifndef RAMPIPE_PLAN_TRAIN_H
#define RAMPIPE_PLAN_TRAIN_H

#include "rampipe/cli.h"
#include "rampipe/parallel_search.h"

/* ---- rules (plan-train_rules.c) ------------------------------------------------ */

/* Reads KEY=VALUE or KEY=LEAST..MOST, with commas between, and adds the rules. */
bool plan_rules(struct cli *cli, const char *option, const char *text, bool forbid,
                struct parallel_plan *plan) REC_MUST_CHECK;
/* Numbers of devices: N,N,... or LEAST..MOST, doubling. *count is owned by the caller. */
bool plan_counts(struct cli *cli, const char *text, uint32_t **count,
                 size_t *n) REC_MUST_CHECK;

/* What a device, a link or an island is multiplied by. */
struct plan_vary {
    const struct plan_knob *knob;
    double least, most;
    uint64_t points;
};
struct plan_knob {
    const char *name;
    /* Changes a copy of the machine, and what a device may need. False: this factor
       leaves nothing whole. */
    bool (*turn)(struct parallel_machine *machine, double *memory, double factor);
};
bool plan_varies(struct cli *cli, const char *text, struct plan_vary **vary,
                 size_t *n) REC_MUST_CHECK;

/* ---- tables (plan-train_table.c) ------------------------------------------------- */

struct plan_row {
    struct parallel_ranked ranked;
    struct parallel_planned planned;
};
/* A mix as tp=8 pp=4 ...; degrees of 1 are left out. */
enum { PLAN_MIX_MAX = 160 };
void plan_format_mix(const struct parallel_mix *mix, char text[PLAN_MIX_MAX]);
void plan_print(struct cli *cli, const struct parallel_plan *plan,
                const struct plan_row *row, size_t n);

/* ---- reasons (plan-train_why.c) --------------------------------------------------- */

/* Why there is no row: *err becomes REC_NO. Returns false. */
bool plan_fail(const struct parallel_search *search, const struct parallel_found *found,
               struct rec_error *err);
void plan_explain(struct cli *cli, const struct parallel_search *search,
                  const struct parallel_ranked *row, const struct parallel_ranked *best);
/* What the mixes of a search for `rule` lack against the best of a search without it. */
bool plan_why(struct cli *cli, const struct parallel_search *search,
              const struct parallel_ranked *best) REC_MUST_CHECK;
/* What mixes lack that differ from the row in one choice. */
bool plan_neighbours(struct cli *cli, const struct parallel_search *search,
                     const struct parallel_ranked *row) REC_MUST_CHECK;

#endif
