/* A planner at work, which only its files see: plan.c, greedy.c, exact.c. */
#ifndef RAMPIPE_SERVE_PLANNER_H
#define RAMPIPE_SERVE_PLANNER_H

#include "private.h"

/* A batch on a hardware. */
struct serve_choice_option {
    uint32_t profile;
    uint32_t batch;
    double price;    /* of a replica, US$ an hour */
    double rate;     /* of a replica, queries/s at most */
    double alone;    /* time of a batch of one, seconds */
    double shortest; /* of a batch of any size up to this, seconds */
};

/* What there is to choose for a stage; options by price, hardware, batch. */
struct serve_menu {
    struct serve_choice_option *option;
    size_t n, room;
    double shortest;   /* of all, seconds; 0: the stage has no model */
    double cheapest;   /* a replica, US$ an hour */
    double head, tail; /* the least time before and behind it, seconds */
    uint64_t visits;   /* queries of the sample that go there */
};

/* What is chosen for a stage. */
struct serve_choice {
    uint32_t option, replicas;
};

/* What simulating a configuration said. */
struct serve_verdict {
    bool met;
    double latency; /* met: the percentile */
    uint64_t late;  /* met: how many */
};

struct serve_planner {
    const struct serve_pipeline *pipeline;
    const double *arrival;
    size_t n;
    struct serve_objective objective;
    uint64_t allowed;        /* queries that may be late */
    double margin;           /* seconds: rounding of times */
    struct serve_menu *menu; /* per stage */
    struct rec_map known;    /* choices -> index of verdict */
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

/* planner->config as it is chosen. */
void serve_set_configs(struct serve_planner *planner, const struct serve_choice *choice);
/* US$ an hour. */
double serve_cost(const struct serve_planner *planner, const struct serve_choice *choice);
/* Queries/s that a stage could take of all that come to the pipeline. */
double serve_capacity(const struct serve_planner *planner, uint32_t stage,
                      struct serve_choice choice);
/* The least of all stages, *least: where. */
double serve_bottleneck(const struct serve_planner *planner,
                        const struct serve_choice *choice, uint32_t *least);
/* Too many queries would be late by the throughput of the stage alone. */
bool serve_too_slow(const struct serve_planner *planner, uint32_t stage,
                    struct serve_choice choice);
/* One more simulation is within the limit. */
bool serve_count_simulation(struct serve_planner *planner,
                            struct rec_error *err) REC_MUST_CHECK;
/* Simulates the pipeline, or remembers. */
bool serve_judge(struct serve_planner *planner, const struct serve_choice *choice,
                 struct serve_verdict *verdict, struct rec_error *err) REC_MUST_CHECK;
/* The plan of a choice that meets the objective. */
bool serve_make_plan(struct serve_planner *planner, const struct serve_choice *choice,
                     struct serve_plan *plan, struct rec_error *err) REC_MUST_CHECK;
/* REC_NO if the objective cannot be met whatever is chosen: by the least times of a way
 * through the pipeline. */
bool serve_can_meet(struct serve_planner *planner, struct rec_error *err) REC_MUST_CHECK;

#endif
