/* The inside of a planner, which only its files see: plan.c has what all share, greedy.c
 * and exact.c are the two ways to plan, hold.c judges plans by other queries. */
#ifndef RAMPIPE_SERVE_PLANNER_H
#define RAMPIPE_SERVE_PLANNER_H

#include "private.h"

/* A hardware with a batch, which a stage may be given. */
struct serve_choice_option {
    uint32_t profile;
    uint32_t batch;
    double price;    /* of a replica, US$ an hour */
    double rate;     /* the highest of a replica, queries/s */
    double alone;    /* time of a batch of one, seconds */
    double shortest; /* least time of a batch of 1 to `batch` queries, seconds */
};

/* All options of a stage, in order of price, hardware, batch. */
struct serve_menu {
    struct serve_choice_option *option;
    size_t n, room;
    double shortest; /* least time of any batch, seconds; 0: the stage has no model */
    double cheapest; /* least price of a replica, US$ an hour */
    double head,
        tail;        /* the least time that queries take before and behind it, seconds */
    uint64_t visits; /* queries of the sample that come to it */
};

struct serve_choice {
    uint32_t option; /* index in the stage's menu */
    uint32_t replicas;
};

/* The result of simulating a configuration. */
struct serve_verdict {
    bool met;       /* enough queries meet the objective */
    double latency; /* if met: the percentile, seconds */
    uint64_t late;  /* if met: queries that miss it */
};

struct serve_planner {
    const struct serve_pipeline *pipeline;
    const double *arrival;
    size_t n;
    struct serve_objective objective;
    uint64_t allowed;        /* queries that may be late */
    double margin;           /* more than the rounding of any time, seconds */
    struct serve_menu *menu; /* per stage */
    struct rec_map known;    /* bytes of the choices -> index in `verdict` */
    struct serve_verdict *verdict;
    size_t nverdicts, verdict_room;
    struct rec_arena arena;
    struct serve_config *config; /* scratch, per stage */
    double *latency;             /* scratch, per query */
    double *end;                 /* scratch, per stage */
    uint64_t simulations;
};

static inline bool
serve_has_model(const struct serve_planner *planner, uint32_t stage)
{
    return planner->pipeline->stage[stage].model != REC_NONE;
}

static inline const struct serve_choice_option *
serve_chosen(const struct serve_planner *planner, uint32_t stage,
             struct serve_choice choice)
{
    return &planner->menu[stage].option[choice.option];
}

/* How many of n queries may be late. */
uint64_t serve_allowed(size_t n, double percentile);
/* The k-th smallest of n values, k from 0, in O(n) on average; reorders the values. */
double serve_select(double *value, size_t n, size_t k);

/* In what follows, `choice` has one for each stage, unless `stage` is given, too. */

/* Fills planner->config from the choices. */
void serve_set_configs(struct serve_planner *planner, const struct serve_choice *choice);
/* The price of all replicas, US$ an hour. */
double serve_cost(const struct serve_planner *planner, const struct serve_choice *choice);
/* The rate of queries at the pipeline, queries/s, that would keep the stage just busy:
 * only a part of the queries may come to it. */
double serve_capacity(const struct serve_planner *planner, uint32_t stage,
                      struct serve_choice choice);
/* The least capacity of all stages; *least: that stage. */
double serve_bottleneck(const struct serve_planner *planner,
                        const struct serve_choice *choice, uint32_t *least);
/* Would too many queries be late whatever else is chosen, as the stage's throughput is
 * too low? */
bool serve_too_slow(const struct serve_planner *planner, uint32_t stage,
                    struct serve_choice choice);
/* Counts one more simulation, and checks the limit on them. */
bool serve_count_simulation(struct serve_planner *planner,
                            struct rec_error *err) REC_MUST_CHECK;
/* Simulates the pipeline, unless its verdict is known already. */
bool serve_judge(struct serve_planner *planner, const struct serve_choice *choice,
                 struct serve_verdict *verdict, struct rec_error *err) REC_MUST_CHECK;
/* Makes the plan of choices that meet the objective. */
bool serve_make_plan(struct serve_planner *planner, const struct serve_choice *choice,
                     struct serve_plan *plan, struct rec_error *err) REC_MUST_CHECK;
/* REC_NO if no choice meets the objective, as even the least times of a way through the
 * pipeline are too long. */
bool serve_can_meet(struct serve_planner *planner, struct rec_error *err) REC_MUST_CHECK;

#endif
