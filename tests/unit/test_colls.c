/* Colls: random steps against a plain simulator, and the bytes that their rounds send. */
#include "graphs.h"

#include "rampipe/net.h"
#include "rampipe/sim.h"

enum { OPS = 24, COLLS = 20, SERVERS = 5 };

/* ---- random steps ---------------------------------------------------------- */

/* Each op has a lane of its own, so that it starts when its parents' deps have arrived.
 * All times are multiples of 1/4, so that equal instants are equal numbers. */
struct world {
    struct graph graph;
    uint32_t server[OPS], lane[OPS], placed[OPS];
    double dep_seconds[OPS * OPS], coll_seconds[COLLS];
    double op_end[OPS], start[COLLS], end[COLLS]; /* by the plain simulator */
    double seen_start[COLLS], seen_end[COLLS];    /* by sim_step() */
    double ready[COLLS];
};

static void
put_group(FILE *out, uint32_t last)
{
    uint32_t n = 2 + draw(3), step = 1 + draw(last / n);
    for (uint32_t i = 0; i < n && (i < 2 || i * step < last); i++)
        fprintf(out, "%so%u", i ? "," : "", i * step);
}

/* Deps and colls lead from ops of lower numbers to higher ones. */
static void
make_world(struct world *w)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    *w = (struct world){.graph = {.id = NULL}};
    fprintf(out, "graph g m\n");
    for (uint32_t c = 0; c < COLLS; c++) {
        uint32_t last = 4 + draw(OPS - 8);
        const char *lane[] = {"", " lane=x", " lane=x", " lane=y"};
        fprintf(out, "coll g c%u all-reduce 8 ops=", c);
        put_group(out, last);
        fprintf(out, "%s\n", lane[draw(4)]);
        for (uint32_t i = draw(3); i > 0; i--)
            fprintf(out, "dep g c%u o%u 0\n", c, last + i);
        w->coll_seconds[c] = 0.25 * (1 + draw(8));
    }
    for (uint32_t i = 0; i < OPS; i++) {
        fprintf(out, "op g o%u forward %g 1\n", i, 0.25 * (1 + draw(8)));
        if (i > 2 && draw(2))
            fprintf(out, "dep g o%u o%u 1\n", i - 1 - draw(3), i);
        w->server[i] = draw(SERVERS);
    }
    fclose(out);
    w->graph = graph_text(text);
    free(text);
    for (uint32_t i = 0; i < OPS; i++) /* ops have the order of names in colls */
        w->lane[i] = w->placed[i] = i;
    for (size_t d = 0; d < w->graph.ndeps; d++)
        w->dep_seconds[d] = 0.25 * draw(4);
}

static bool
is_ready(const struct world *w, uint32_t op, double now)
{
    const struct graph *g = &w->graph;
    for (size_t d = 0; d < g->ndeps; d++)
        if (g->dep[d].dst == op && !(w->op_end[g->dep[d].src] + w->dep_seconds[d] <= now))
            return false;
    for (size_t d = 0; d < g->nafter; d++)
        if (g->after[d].dst == op && !(w->end[g->after[d].src] <= now))
            return false;
    return true;
}

static bool
share_server(const struct world *w, uint32_t a, uint32_t b)
{
    const struct graph_coll *x = &w->graph.coll[a], *y = &w->graph.coll[b];
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t j = 0; j < y->n; j++)
            if (w->server[w->graph.coll_op[x->first + i]] ==
                w->server[w->graph.coll_op[y->first + j]])
                return true;
    return false;
}

/* By the text of the rule: a coll starts unless another one of its lane has a server in
 * common with it, was ready before it, and has not ended. */
static bool
may_start(const struct world *w, uint32_t c, double now)
{
    const struct graph_coll *coll = w->graph.coll;
    if (!(w->ready[c] <= now))
        return false;
    for (uint32_t b = 0; coll[c].lane && b < COLLS; b++)
        if (b != c && coll[b].lane && strcmp(coll[b].lane, coll[c].lane) == 0 &&
            (w->ready[b] < w->ready[c] || (w->ready[b] == w->ready[c] && b < c)) &&
            !(w->end[b] <= now) && share_server(w, b, c))
            return false;
    return true;
}

static bool
has_ended(const struct world *w, uint32_t c, double now)
{
    const struct graph_coll *coll = &w->graph.coll[c];
    for (uint32_t i = 0; i < coll->n; i++)
        if (!(w->op_end[w->graph.coll_op[coll->first + i]] <= now))
            return false;
    return true;
}

/* Goes through time by quarters of a second. */
static double
simulate_plainly(struct world *w)
{
    double last = 0;
    for (uint32_t i = 0; i < OPS; i++)
        w->op_end[i] = INFINITY;
    for (uint32_t c = 0; c < COLLS; c++)
        w->ready[c] = w->start[c] = w->end[c] = INFINITY;
    for (double now = 0; now < 200; now += 0.25) {
        for (uint32_t i = 0; i < OPS; i++)
            if (isinf(w->op_end[i]) && is_ready(w, i, now))
                w->op_end[i] = now + w->graph.op[i].compute;
        for (uint32_t c = 0; c < COLLS; c++)
            if (isinf(w->ready[c]) && has_ended(w, c, now))
                w->ready[c] = now;
        for (uint32_t c = 0; c < COLLS; c++)
            if (isinf(w->end[c]) && may_start(w, c, now)) {
                w->start[c] = now;
                w->end[c] = now + w->coll_seconds[c];
            }
    }
    for (uint32_t i = 0; i < OPS; i++)
        last = fmax(last, w->op_end[i]);
    for (uint32_t c = 0; c < COLLS; c++)
        last = fmax(last, w->end[c]);
    for (size_t d = 0; d < w->graph.ndeps; d++)
        last = fmax(last, w->op_end[w->graph.dep[d].src] + w->dep_seconds[d]);
    return last;
}

static void
see_coll(void *context, uint32_t coll, double start, double end)
{
    struct world *w = context;
    assert_true(isinf(w->seen_end[coll]));
    w->seen_start[coll] = start;
    w->seen_end[coll] = end;
}

static void
test_random(void **state)
{
    uint32_t waited = 0;
    (void)state;
    random_state = 25;
    for (int i = 0; i < 300; i++) {
        struct world w;
        struct sim_observer observer = {.coll = see_coll, .context = &w};
        struct sim_placed placed = {.nservers = SERVERS, .nlanes = OPS};
        struct rec_error err;
        struct sim_step step;
        double seconds;
        make_world(&w);
        placed.graph = &w.graph;
        placed.server = w.server;
        placed.lane = w.lane;
        placed.placed = w.placed;
        placed.dep_seconds = w.dep_seconds;
        placed.coll_seconds = w.coll_seconds;
        seconds = simulate_plainly(&w);
        for (uint32_t c = 0; c < COLLS; c++)
            w.seen_start[c] = w.seen_end[c] = INFINITY;
        assert_true(sim_step(&placed, &observer, &step, &err));
        assert_true(step.seconds == seconds);
        assert_int_equal(step.events, OPS + w.graph.ndeps + w.graph.nafter + COLLS);
        for (uint32_t c = 0; c < COLLS; c++) {
            assert_true(w.seen_start[c] == w.start[c] && w.seen_end[c] == w.end[c]);
            waited += w.start[c] > w.ready[c];
        }
        graph_free(&w.graph);
    }
    assert_true(waited > 300); /* lanes do matter in these graphs */
}

/* ---- bytes ------------------------------------------------------------------- */

/* What the rounds of an exchange send in all. */
static double
sum_rounds(const char *cluster, enum graph_exchange_kind kind, uint32_t n, double bytes)
{
    static const uint32_t server[] = {3, 1, 0, 2, 7, 5, 6, 4};
    struct net_exchange e = {kind, server, n, bytes, graph_coll_bytes(kind, bytes, n)};
    struct net_rounds rounds = {.n = 0};
    struct rec_error err;
    struct net *net = net_parse(cluster, &err);
    double sum = 0;
    assert_non_null(net);
    assert_true(net_rounds_make(net, &e, &rounds, &err));
    for (uint32_t i = 0; i < rounds.n; i++) {
        const struct net_round *round = &rounds.round[i];
        if (!round->transfer)
            sum += n * (n - 1.0) * round->bytes;
        for (uint32_t j = 0; round->transfer && j < round->n; j++)
            sum += round->transfer[j].share * round->bytes;
    }
    net_rounds_free(&rounds);
    net_free(net);
    return sum;
}

/*
 * Each algorithm sends what the kind must send at least: in an all-gather of S each of n
 * servers gets (n - 1) / n S from others, in a reduce-scatter it is the other way round,
 * an all-reduce is both, in a broadcast each but the root gets S. But a broadcast by the
 * last two clusters' algorithms is a scatter and then an all-gather.
 */
static void
test_bytes(void **state)
{
    static const char *const cluster[] = {
        "island:8,1e9,0,1", "island:8,1e9,0,1,algorithm=ring",
        "island:8,1e9,0,1,algorithm=tree", "island:8,1e9,0,1,algorithm=halving-doubling",
        "rail:2,4,4,1e9,0,1e9,1,algorithm=hierarchical"};
    (void)state;
    for (size_t i = 0; i < sizeof cluster / sizeof *cluster; i++)
        for (enum graph_exchange_kind kind = GRAPH_ALL_REDUCE; kind <= GRAPH_SEND; kind++)
            for (uint32_t n = kind == GRAPH_SEND ? 2 : 8; n >= 2; n -= 2) {
                double sum =
                    sum_rounds(cluster[i], kind, n, kind == GRAPH_BARRIER ? 0 : 840);
                double least = graph_coll_bytes(kind, kind == GRAPH_BARRIER ? 0 : 840, n);
                if (i >= 3 && (kind == GRAPH_BROADCAST || kind == GRAPH_REDUCE))
                    assert_true(sum > least && sum < 1.7 * least);
                else
                    assert_true(fabs(sum - least) <= 1e-9 * least);
            }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
