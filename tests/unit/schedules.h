/* Pipelines as graphs: p stages, m microbatches, v chunks a stage, in the orders of
 * GPipe, 1F1B and interleaved 1F1B (Narayanan et al., SC 2021). Each stage is a server
 * whose ops have an order; a chunk holds its activation, 1 byte, from forward to
 * backward. */
#ifndef RAMPIPE_TEST_SCHEDULES_H
#define RAMPIPE_TEST_SCHEDULES_H

#include "rampipe/sim.h"

#include <stdio.h>
#include <stdlib.h>

struct pipeline {
    uint32_t p, m, v;
    bool gpipe;
    const double *forward, *backward; /* of a stage and microbatch, all its chunks */
    double transfer;                  /* between neighbours */
    bool chained; /* a dep from each op of a stage to the next, and no order */
    /* Made: */
    struct graph graph;
    uint32_t *server, *turn, *placed;
    double *seconds;
};

/* Chunk c of stage r is the pipeline's part s = c p + r of p v; microbatch i. */
static inline uint32_t
pipeline_op(const struct pipeline *pipe, bool backward, uint32_t i, uint32_t s)
{
    return 2 * (i * pipe->p * pipe->v + s) + backward;
}

/* The k-th forward or backward of stage r: groups of p microbatches, chunk after chunk;
 * of one chunk that is just the k-th microbatch. */
static inline uint32_t
pipeline_nth(const struct pipeline *pipe, bool backward, uint32_t r, uint32_t k)
{
    uint32_t p = pipe->p, v = pipe->v, chunk = k % (p * v) / p,
             i = k / (p * v) * p + k % p;
    if (v == 1)
        return pipeline_op(pipe, backward, k, r);
    return pipeline_op(pipe, backward, i, (backward ? v - 1 - chunk : chunk) * p + r);
}

/* Lists the ops of stage r: w forwards, then a forward and a backward in turn. */
static inline void
pipeline_list(const struct pipeline *pipe, uint32_t r, uint32_t *list)
{
    uint32_t n = pipe->m * pipe->v, w, f = 0, b = 0, at = 0;
    if (pipe->gpipe)
        w = n;
    else if (pipe->v == 1)
        w = pipe->p - 1 - r;
    else
        w = 2 * (pipe->p - 1 - r) + (pipe->v - 1) * pipe->p;
    while (f < n && f < w)
        list[at++] = pipeline_nth(pipe, false, r, f++);
    while (b < n) {
        if (f < n)
            list[at++] = pipeline_nth(pipe, false, r, f++);
        list[at++] = pipeline_nth(pipe, true, r, b++);
    }
}

static inline bool
pipeline_add_dep(struct pipeline *pipe, uint32_t src, uint32_t dst, bool moves,
                 struct rec_error *err)
{
    char from[16], to[16];
    snprintf(from, sizeof from, "%u", src);
    snprintf(to, sizeof to, "%u", dst);
    pipe->seconds[pipe->graph.ndeps] = moves ? pipe->transfer : 0;
    return graph_add_dep(&pipe->graph, rec_str(from), rec_str(to), 1, false, "", 0, err);
}

static inline bool
pipeline_add_ops(struct pipeline *pipe, struct rec_error *err)
{
    uint32_t parts = pipe->p * pipe->v;
    for (uint32_t i = 0; i < pipe->m; i++)
        for (uint32_t s = 0; s < parts; s++)
            for (int backward = 0; backward < 2; backward++) {
                uint32_t n = pipeline_op(pipe, backward, i, s), r = s % pipe->p;
                char id[16], extra[40];
                struct graph_op op = {.id = id, .extra = "", .part = 1, .parts = 1};
                snprintf(id, sizeof id, "%u", n);
                snprintf(extra, sizeof extra, "\thold=1\trelease=%u", n + 1);
                op.compute = (backward ? pipe->backward : pipe->forward)[r] / pipe->v;
                op.pass = GRAPH_TASK;
                if (!backward && !pipe->chained)
                    op.extra = extra;
                pipe->server[n] = r;
                pipe->placed[n] = n;
                if (!graph_add_op(&pipe->graph, &op, NULL, err))
                    return false;
            }
    return true;
}

static inline bool
pipeline_add_deps(struct pipeline *pipe, struct rec_error *err)
{
    uint32_t last = pipe->p * pipe->v - 1;
    for (uint32_t i = 0; i < pipe->m; i++) {
        for (uint32_t s = 0; s < last; s++)
            if (!pipeline_add_dep(pipe, pipeline_op(pipe, false, i, s),
                                  pipeline_op(pipe, false, i, s + 1), pipe->p > 1, err) ||
                !pipeline_add_dep(pipe, pipeline_op(pipe, true, i, s + 1),
                                  pipeline_op(pipe, true, i, s), pipe->p > 1, err))
                return false;
        if (!pipeline_add_dep(pipe, pipeline_op(pipe, false, i, last),
                              pipeline_op(pipe, true, i, last), false, err))
            return false;
    }
    return true;
}

/* Puts the ops of each stage in order, by their turns or by deps. */
static inline bool
pipeline_order(struct pipeline *pipe, struct rec_error *err)
{
    uint32_t n = 2 * pipe->m * pipe->v, last = pipe->p * pipe->v - 1;
    uint32_t *list = malloc((n + 1) * sizeof *list);
    bool ok = list;
    for (uint32_t r = 0; ok && r < pipe->p; r++) {
        pipeline_list(pipe, r, list);
        for (uint32_t k = 0; k < n; k++)
            pipe->turn[list[k]] = k;
        for (uint32_t k = 1; ok && pipe->chained && k < n; k++) {
            bool there =
                list[k] == list[k - 1] + 1 && list[k - 1] / 2 % (last + 1) == last;
            ok = there || pipeline_add_dep(pipe, list[k - 1], list[k], false, err);
        }
    }
    free(list);
    return ok;
}

/* Makes the graph of a pipeline, and where its ops go. */
static inline bool
pipeline_make(struct pipeline *pipe, struct rec_error *err)
{
    size_t nops = 2 * (size_t)pipe->m * pipe->p * pipe->v;
    pipe->server = malloc(nops * sizeof *pipe->server);
    pipe->turn = malloc(nops * sizeof *pipe->turn);
    pipe->placed = malloc(nops * sizeof *pipe->placed);
    pipe->seconds = malloc(3 * nops * sizeof *pipe->seconds);
    return pipe->server && pipe->turn && pipe->placed && pipe->seconds &&
           graph_start(&pipe->graph, rec_str("g"), rec_str("pipeline"), "", err) &&
           pipeline_add_ops(pipe, err) && pipeline_add_deps(pipe, err) &&
           pipeline_order(pipe, err) && graph_close(&pipe->graph, err);
}

static inline struct sim_placed
pipeline_placed(const struct pipeline *pipe)
{
    return (struct sim_placed){.graph = &pipe->graph,
                               .nservers = pipe->p,
                               .server = pipe->server,
                               .placed = pipe->placed,
                               .dep_seconds = pipe->seconds,
                               .turn = pipe->chained ? NULL : pipe->turn};
}

static inline void
pipeline_free(struct pipeline *pipe)
{
    graph_free(&pipe->graph);
    free(pipe->server);
    free(pipe->turn);
    free(pipe->placed);
    free(pipe->seconds);
}

#endif
