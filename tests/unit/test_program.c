/* The passes of a step that are cut at what tensor, context and expert groups exchange:
 * run by a plain simulation of lanes, they take what the whole passes take. */
#include "unit.h"

#include "../../lib/parallel/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A device whose links have no latency, so that half an exchange takes half the time; on
 * an island of the same links an exchange takes what the form says. */
static struct parallel_stack stack = {.name = "s",
                                      .share = 0.7,
                                      .memory = 0.8,
                                      .attention = 0.5,
                                      .exposed = 0.3,
                                      .host = 2e-6,
                                      .adapter = 1,
                                      .gradient = 4,
                                      .held = 4,
                                      .device = "",
                                      .precision = ""};
static const struct parallel_machine machine = {.peak = {1e15, 2e15},
                                                .processors = 132,
                                                .launch = 1e-6,
                                                .bandwidth = 3e12,
                                                .memory = 8e10,
                                                .node = 64,
                                                .inside = 6e11,
                                                .adapter = 1e10,
                                                .stack = &stack};
#define ISLAND "island:64,4.68e11,0,8e10"

struct setting {
    uint32_t tp, cp, pp, vp, dp, ep, etp;
    bool experts, sequence, deal_heads;
    unsigned overlap;
    enum parallel_recompute recompute;
    uint32_t again, zero;
    const char *schedule;
};

enum { LAYERS = 12, HEADS = 16, WIDTH = 2048, WORDS = 8000, TOKENS = 4096, SAMPLES = 16 };

static void
ask(const struct setting *s, struct parallel_question *q)
{
    const struct input_transformer t = {.layers = LAYERS,
                                        .width = WIDTH,
                                        .heads = HEADS,
                                        .kv_heads = 4,
                                        .head_width = WIDTH / HEADS,
                                        .inner = 4 * WIDTH,
                                        .expert_inner = s->experts ? 2 * WIDTH : 0,
                                        .experts = s->experts ? 8 : 0,
                                        .experts_used = s->experts ? 2 : 0,
                                        .words = WORDS,
                                        .causal = true,
                                        .norm_before = true,
                                        .norm_final = true,
                                        .gated = true,
                                        .rms = true,
                                        .head = true};
    const struct parallel_style style = {.no_dropout = true};
    struct rec_error err;
    *q = (struct parallel_question){.t = t, .sequence = TOKENS, .machine = machine};
    assert_true(parallel_model_make(&t, TOKENS, &style, &q->model, &err));
    q->mix = (struct parallel_mix){.tp = s->tp,
                                   .cp = s->cp,
                                   .pp = s->pp,
                                   .vp = s->vp,
                                   .dp = s->dp,
                                   .ep = s->ep,
                                   .etp = s->etp,
                                   .zero = s->zero,
                                   .sequence = s->sequence,
                                   .deal_heads = s->deal_heads,
                                   .micro = 1,
                                   .global = SAMPLES,
                                   .recompute = s->recompute,
                                   .again = s->again,
                                   .overlap = s->overlap,
                                   .schedule =
                                       parallel_schedule_find(s->schedule ? s->schedule
                                                              : s->vp > 1 ? "interleaved"
                                                                          : "1f1b")};
}

/* ---- a plain simulation --------------------------------------------------- */

static const struct parallel_program *sorted;

static int
by_lane(const void *a, const void *b)
{
    const struct parallel_node *x = &sorted->node[*(const uint32_t *)a];
    const struct parallel_node *y = &sorted->node[*(const uint32_t *)b];
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Lanes of devices run strictly in order; a node begins when all before it have ended. */
static double
run(const struct parallel_program *p)
{
    size_t n = p->nnodes, done = 0, before = 1;
    uint32_t *list = calloc(n, sizeof *list), *waiting = calloc(n, sizeof *waiting);
    double *ready = calloc(n, sizeof *ready), last = 0;
    bool *ended = calloc(n, sizeof *ended);
    size_t *first = calloc(n, sizeof *first);
    size_t *next = calloc(p->nedges + 1, sizeof *next);
    for (uint32_t i = 0; i < n; i++)
        list[i] = i;
    for (size_t i = 0; i < p->nedges; i++) {
        waiting[p->edge[i].to]++;
        next[i] = first[p->edge[i].from]; /* a list of the edges of each node */
        first[p->edge[i].from] = i + 1;
    }
    sorted = p;
    qsort(list, n, sizeof *list, by_lane);
    while (done < n && done != before) {
        double lane = 0;
        bool stuck = false;
        before = done;
        for (size_t i = 0; i < n; i++) {
            const struct parallel_node *node = &p->node[list[i]];
            const struct parallel_node *prior = i > 0 ? &p->node[list[i - 1]] : NULL;
            if (!prior || prior->device != node->device || prior->lane != node->lane)
                lane = 0, stuck = false;
            stuck = stuck || waiting[list[i]] > 0;
            if (stuck)
                continue;
            if (!ended[list[i]]) {
                ready[list[i]] = fmax(lane, ready[list[i]]) + node->seconds;
                ended[list[i]] = true;
                done++;
                for (size_t e = first[list[i]]; e > 0; e = next[e - 1]) {
                    uint32_t to = p->edge[e - 1].to;
                    ready[to] = fmax(ready[to], ready[list[i]]);
                    waiting[to]--;
                }
                last = fmax(last, ready[list[i]]);
            }
            lane = ready[list[i]];
        }
    }
    assert_int_equal(done, n);
    free(list);
    free(waiting);
    free(ready);
    free(ended);
    free(first);
    free(next);
    return last;
}

static void
make(const struct parallel_question *q, unsigned colls, bool unfold,
     struct parallel_program *program)
{
    struct rec_error err = {.code = REC_OK};
    struct parallel_graph graph = {.unfold = unfold, .colls = colls, .steps = 1};
    struct parallel_times times = {0};
    graph.net = net_parse(ISLAND, &err);
    assert_non_null(graph.net);
    *program = (struct parallel_program){0};
    if (!parallel_times_make(&q->model, &q->mix, &q->machine, &times, &err) ||
        !parallel_program_make(program, &graph, q, &times, &err))
        fail_msg("%s", err.text);
    parallel_times_free(&times);
    net_free(graph.net);
}

enum {
    TP = PARALLEL_OVERLAP_TP,
    CP = PARALLEL_OVERLAP_CP,
    EP = PARALLEL_OVERLAP_EP,
    ALL = TP | CP | EP
};
static const struct setting settings[] = {
    /* t c p v D e etp */
    {2, 1, 1, 1, 4, 1, 1, false, false, false, 0, 0, 0, 0, NULL},
    {2, 1, 1, 1, 4, 1, 1, false, true, false, TP, 0, 0, 0, NULL},
    {2, 1, 2, 3, 4, 1, 1, false, false, false, TP, 0, 0, 0, NULL},
    {4, 1, 2, 1, 4, 1, 1, false, true, false, TP, PARALLEL_FULL, 0, 0, NULL},
    {4, 1, 2, 1, 4, 1, 1, false, true, false, 0, PARALLEL_FULL, 3, 1, NULL},
    {1, 4, 1, 1, 4, 1, 1, false, false, false, 0, 0, 0, 0, NULL},
    {1, 4, 2, 1, 4, 1, 1, false, false, false, CP, PARALLEL_FULL, 0, 0, NULL},
    {2, 2, 2, 1, 4, 1, 1, false, true, true, CP | TP, PARALLEL_HALF, 0, 0, NULL},
    {2, 2, 2, 1, 4, 1, 1, false, true, false, CP | TP, 0, 0, 3, NULL},
    {1, 1, 2, 1, 4, 4, 1, true, false, false, 0, 0, 0, 0, NULL},
    {2, 1, 1, 1, 4, 4, 1, true, true, false, EP | TP, PARALLEL_FULL, 0, 0, NULL},
    {2, 2, 1, 1, 4, 4, 2, true, false, false, EP | TP | CP, 0, 0, 0, NULL},
    {4, 1, 2, 1, 4, 1, 1, false, true, false, TP, 0, 0, 0, "zero-bubble"},
    {2, 2, 4, 1, 2, 1, 1, false, true, false, TP | CP, 0, 0, 0, "gpipe"},
};

/* Cut anywhere, a step takes what the whole takes. */
static void
test_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (unsigned colls = 0; colls <= ALL; colls++) {
            struct parallel_question q;
            struct parallel_program program;
            struct parallel_step step;
            struct rec_error err;
            double seconds;
            if ((colls & ALL) != colls ||
                (colls != 0 && colls != ALL && (i + colls) % 4 != 0 && part_of(4) < 4))
                continue;
            ask(&settings[i], &q);
            assert_true(parallel_step(&q.model, &q.mix, &q.machine, &step, &err));
            make(&q, colls, false, &program);
            seconds = run(&program);
            if (fabs(seconds / step.seconds - 1) > 1e-9)
                fail_msg("setting %zu, colls %u: %.15g, whole %.15g", i, colls, seconds,
                         step.seconds);
            parallel_program_free(&program);
            parallel_model_free(&q.model);
        }
}

static void
same(double a, double b)
{
    if (fabs(a / b - 1) > 1e-12)
        fail_msg("%.17g, not %.17g", a, b);
}

static double
sum_of(const struct parallel_program *p, uint32_t device, enum parallel_group group,
       const char *kind)
{
    double sum = 0;
    for (size_t i = 0; i < p->nswaps; i++)
        if (p->swap[i].device == device && p->swap[i].group == group &&
            strcmp(p->swap[i].kind, kind) == 0)
            sum += p->swap[i].bytes;
    return sum;
}

/*
 * Bytes by formula (../shared/reference/parallel.md, 2.2, 2.5, 2.6): a tensor group
 * all-reduces 2 T h four times a layer and microbatch, and once for each end; with
 * sequence parallelism it gathers and scatters as much each. Context ranks gather keys
 * and values of the whole sequence, 2 2 s g d / t, forward and backward, and scatter
 * their gradients. Tokens go to 2 of 8 experts on 4 ranks and come back, both forward and
 * backward, and are on 4 (1 - (3/4)^2) = 7/4 ranks in the mean. Overlap moves bytes, but
 * there are as many.
 */
static void
test_bytes(void **state)
{
    static const unsigned overlaps[] = {0, ALL};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct setting dense = {2,     2,     1, 1, 4, 1, 1,   false,
                                false, false, 0, 0, 0, 0, NULL};
        struct setting mixed = {1,     1,     1, 1, 4, 4, 1,   true,
                                false, false, 0, 0, 0, 0, NULL};
        double m = SAMPLES / 4, T = TOKENS / 2, kv = 2.0 * 4 * WIDTH / HEADS;
        struct parallel_question q;
        struct parallel_program p;
        dense.overlap = mixed.overlap = overlaps[i];
        ask(&dense, &q);
        make(&q, ALL, true, &p);
        same(sum_of(&p, 0, PARALLEL_TENSOR, "all-reduce"),
             m * (4 * LAYERS + 2) * 2 * T * WIDTH);
        same(sum_of(&p, 0, PARALLEL_CONTEXT, "all-gather"),
             m * LAYERS * 2 * 2 * TOKENS * kv / 2);
        same(sum_of(&p, 0, PARALLEL_CONTEXT, "reduce-scatter"),
             m * LAYERS * 2 * TOKENS * kv / 2);
        parallel_program_free(&p);
        q.mix.sequence = true;
        make(&q, ALL, true, &p);
        same(sum_of(&p, 0, PARALLEL_TENSOR, "all-gather"),
             m * (4 * LAYERS + 2) * 2 * T * WIDTH);
        same(sum_of(&p, 0, PARALLEL_TENSOR, "reduce-scatter"),
             m * (4 * LAYERS + 2) * 2 * T * WIDTH);
        parallel_program_free(&p);
        parallel_model_free(&q.model);
        ask(&mixed, &q);
        make(&q, ALL, true, &p);
        same(sum_of(&p, 0, PARALLEL_EXPERT, "all-to-all"),
             m * LAYERS * 4 * 2 * TOKENS * WIDTH * 1.75);
        parallel_program_free(&p);
        parallel_model_free(&q.model);
    }
}

/* Shares of exchanges that run beside hold nothing up as long as they are short; on links
 * that are ten times as slow they do: a step takes longer than what the stack exposes. */
static void
test_slow(void **state)
{
    const struct setting s = {2, 1, 1, 1, 4, 1, 1, false, true, false, TP, 0, 0, 0, NULL};
    struct parallel_question q;
    struct parallel_program program;
    struct parallel_step step;
    struct rec_error err;
    double exchange, ops, seconds;
    (void)state;
    ask(&s, &q);
    assert_true(parallel_step(&q.model, &q.mix, &q.machine, &step, &err));
    make(&q, ALL, false, &program);
    exchange = step.parts.tensor / 0.3; /* but for the ends, which do not overlap */
    ops = step.seconds - step.parts.tensor;
    for (size_t i = 0; i < program.nnodes; i++)
        if (program.node[i].lane == PARALLEL_LANE_TENSOR)
            program.node[i].seconds *= 20;
    seconds = run(&program);
    assert_true(seconds > 1.05 * (ops + 20 * step.parts.tensor));
    assert_true(seconds < ops + 20 * exchange);
    parallel_program_free(&program);
    parallel_model_free(&q.model);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole),
                                       cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_slow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
