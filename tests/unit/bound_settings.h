/*
 * Random settings for tests of bounds: a small cluster of any kind, a way of placing,
 * graphs that are placed in different ways, and a stream of jobs.
 */
#ifndef RAMPIPE_TESTS_BOUND_SETTINGS_H
#define RAMPIPE_TESTS_BOUND_SETTINGS_H

#include "graphs.h"
#include "rampipe/alloc.h"
#include "rampipe/net_ramp.h"
#include "unit.h"

enum { GRAPHS = 3, OPS = 9, JOBS = 14 };

static struct rec_error err;

static double
pick(const double *value, size_t n)
{
    return value[random_below(n)];
}
#define PICK(...)                       \
    pick((const double[]){__VA_ARGS__}, \
         sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* ---- a setting --------------------------------------------------------------------- */

/* An island; jobs are placed on it by near. */
static struct net *
random_island(void)
{
    char text[100];
    struct net *net;
    sprintf(text, "island:%u,%g,%g,%g%s", 1 + (uint32_t)random_below(20),
            PICK(1e12, 1e9, 1e6), PICK(0, 1e-6, 0.1, 3),
            PICK(INFINITY, INFINITY, 40, 20, 10),
            random_below(2) ? ",algorithm=ring" : "");
    net = net_parse(text, &err);
    assert_non_null(net);
    return net;
}

/* A network with links and routes; jobs are placed on it by near. */
static struct net *
random_network(void)
{
    static const char *const kinds[] = {
        "fat-tree:2x2x3,%g,%g,%g,gpus=2,adapters=1,inside=%g%s",
        "rail:2,2,3,%1$g,%2$g,%4$g,%3$g,taper=2%5$s",
        "torus:3x4,%g,%g,%g,bandwidth_y=%g%s", "dragonfly:3,2,2,%g,%g,%g,global=%g%s"};
    static const char *const algorithms[] = {"", ",algorithm=ring", ",algorithm=tree",
                                             ",algorithm=halving-doubling"};
    char text[200];
    struct net *net;
    sprintf(text, kinds[random_below(4)], PICK(1e12, 1e9, 1e6), PICK(0, 1e-6, 0.1, 3),
            PICK(INFINITY, INFINITY, 40, 20, 10), PICK(1e12, 1e9),
            algorithms[random_below(4)]);
    net = net_parse(text, &err);
    if (!net)
        fail_msg("%s: %s", text, err.text);
    return net;
}

static struct net *
random_cluster(void)
{
    static const uint32_t shapes[][3] = {
        {1, 1, 1}, {1, 1, 5}, {2, 1, 1}, {2, 2, 2}, {2, 2, 8}, {3, 2, 3}, {3, 3, 1},
        {3, 3, 3}, {4, 1, 2}, {4, 4, 1}, {4, 4, 2}, {4, 2, 4}, {6, 2, 3}, {5, 1, 3}};
    struct net_ramp ramp = {.bandwidth = PICK(1.6e12, 1e9, 1e6),
                            .net.memory = PICK(INFINITY, INFINITY, 40, 20, 10),
                            .propagation = PICK(0, 50e-9, 0.1, 3),
                            .io = PICK(0, 100e-9, 0.05),
                            .collective_rate = random_below(2) ? NET_COLLECTIVE_PUBLISHED
                                                               : NET_COLLECTIVE_NODE};
    size_t n = sizeof shapes / sizeof *shapes;
    struct net *net;
    memcpy(ramp.shape, shapes[random_below(n)], sizeof ramp.shape);
    switch (random_below(4)) {
    case 0: return random_island();
    case 1: return random_network();
    }
    net = net_ramp_new(&ramp, &err);
    assert_non_null(net);
    return net;
}

static uint32_t
random_parts(const struct net *cluster)
{
    uint32_t k;
    do
        k = 1 + (uint32_t)random_below(random_below(3) ? 6 : 16);
    while (!net_is_legal(cluster, k));
    return k;
}

static void
add_op(struct graph *graph, const char *id, const char *of, uint32_t part, uint32_t parts,
       enum graph_pass pass, const char *pair)
{
    double compute = PICK(0, 1, 1, 2, 3, 5, 8) * PICK(1, 1, 0.1);
    struct graph_op op = {.id = id,
                          .of = of,
                          .extra = "",
                          /* A job that takes no time but to send a byte is refused. */
                          .compute = graph->nops == 0 ? fmax(compute, 0.1) : compute,
                          .memory = PICK(0, 1, 2, 5),
                          .activation = PICK(0, 1e3, 1e6),
                          .param = PICK(0, 1e6),
                          .part = part,
                          .parts = parts,
                          .pass = pass};
    assert_true(graph_add_op(graph, &op, pair, &err));
}

static void
add_dep(struct graph *graph, const char *from, const char *to, bool sync)
{
    double bytes = PICK(0, 1, 1e3, 1e6, 3e6, 1e9);
    assert_true(
        graph_add_dep(graph, rec_str(from), rec_str(to), bytes, sync, "", 0, &err));
}

/* Whole ops, most with twins, else some of the last ones are backward; few enough lie
 * side by side that some wait for others. */
static void
make_whole(struct graph *graph, uint32_t n, bool tasks)
{
    bool twins = !tasks && random_below(4);
    uint32_t nforward = twins || random_below(2) ? n : (uint32_t)random_below(n);
    char id[20], pair[20], to[20];
    assert_true(graph_start(graph, rec_str("g"), rec_str("m"), "", &err));
    for (uint32_t i = 0; i < n; i++) {
        sprintf(id, "%u", i + 1);
        sprintf(pair, "%u", 2 * n - i);
        add_op(graph, id, NULL, 1, 1,
               tasks          ? GRAPH_TASK
               : i < nforward ? GRAPH_FORWARD
                              : GRAPH_BACKWARD,
               twins ? pair : NULL);
        if (twins)
            add_op(graph, pair, NULL, 1, 1, GRAPH_BACKWARD, NULL);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) {
            if (random_below(n) > (j == i + 1 ? n / 2 : 1))
                continue;
            sprintf(id, "%u", i + 1);
            sprintf(to, "%u", j + 1);
            add_dep(graph, id, to, false);
            sprintf(id, "%u", 2 * n - i);
            sprintf(to, "%u", 2 * n - j);
            if (twins)
                add_dep(graph, to, id, false);
        }
    if (twins && random_below(4)) {
        sprintf(id, "%u", n);
        sprintf(to, "%u", n + 1);
        add_dep(graph, id, to, false);
    }
    assert_true(graph_close(graph, &err));
}

/* As partition makes them: of few different numbers of parts. */
static void
make_split(struct graph *graph, const struct net *cluster)
{
    uint32_t parts[2 * OPS], rank[2 * OPS], of[3];
    struct graph whole = {0};
    struct graph_split split = {.parts = parts,
                                .rank = rank,
                                .sizes = random_below(2) ? GRAPH_SIZES_REFERENCE
                                                         : GRAPH_SIZES_GRADIENT};
    make_whole(&whole, 1 + (uint32_t)random_below(OPS), false);
    for (int i = 0; i < 3; i++)
        of[i] = random_parts(cluster);
    for (uint32_t i = 0; i < whole.nops; i++) {
        uint32_t pair = whole.op[i].pair;
        parts[i] = pair != GRAPH_NONE && pair < i ? parts[pair] : of[random_below(3)];
        rank[i] = i;
    }
    if (!graph_split(&whole, &split, rec_str("g"), "", graph, &err))
        fail_msg("%s", err.text);
    graph_free(&whole);
}

/* Parts of uneven length with deps here and there, and twins in another order. */
static void
make_uneven(struct graph *graph, const struct net *cluster)
{
    uint32_t parts[OPS], n = 1 + (uint32_t)random_below(OPS);
    char id[30], of[30], pair[20];
    assert_true(graph_start(graph, rec_str("g"), rec_str("m"), "", &err));
    for (uint32_t i = 0; i < n; i++) {
        bool twin = random_below(2);
        parts[i] = random_parts(cluster);
        for (uint32_t j = 0; j < parts[i]; j++) {
            sprintf(id, "f%u_%u", i, j);
            sprintf(of, "f%u", i);
            sprintf(pair, "b%u_%u", i, (j + 1) % parts[i]);
            add_op(graph, id, of, j + 1, parts[i], GRAPH_FORWARD, twin ? pair : NULL);
            sprintf(id, "b%u_%u", i, j);
            sprintf(of, "b%u", i);
            if (twin)
                add_op(graph, id, of, j + 1, parts[i], GRAPH_BACKWARD, NULL);
        }
    }
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a; b < n; b++) {
            uint64_t density = 1 + random_below(4), join = random_below(n) <= 1;
            for (uint32_t i = 0; i < parts[a]; i++)
                for (uint32_t j = 0; j < parts[b]; j++) {
                    sprintf(id, "f%u_%u", a, i);
                    sprintf(of, "f%u_%u", b, j);
                    if (a == b ? i != j && !random_below(3)
                               : join && random_below(4) < density)
                        add_dep(graph, id, of, a == b);
                }
        }
    if (!graph_close(graph, &err))
        fail_msg("%s", err.text);
}

static void
make_graph(struct graph *graph, const struct net *cluster)
{
    uint64_t which = random_below(10);
    *graph = (struct graph){0};
    if (which == 0)
        make_whole(graph, 1 + (uint32_t)random_below(OPS), true);
    else if (which <= 2)
        make_uneven(graph, cluster);
    else
        make_split(graph, cluster);
}

struct setting {
    struct net *cluster;
    char meta[40];
    struct place_options placer;
    struct graph graph[GRAPHS];
    struct graph *list[GRAPHS];
    struct graph_store store;
};

static const char *const names[GRAPHS] = {"g0", "g1", "g2"};

static uint64_t
count_kinds(void)
{
    uint64_t n = 0;
    while (place_kinds[n])
        n++;
    return n;
}

/* On a cluster of at most so many servers. */
static void
make_setting(struct setting *s, uint32_t most)
{
    const struct net_ramp *ramp;
    *s = (struct setting){.cluster = random_cluster()};
    while (net_servers(s->cluster) > most) {
        net_free(s->cluster);
        s->cluster = random_cluster();
    }
    s->placer.net = s->cluster;
    do
        s->placer.kind = place_kinds[random_below(count_kinds())];
    while (!s->placer.kind->suits(s->cluster));
    if ((ramp = net_ramp_of(s->cluster)) && s->placer.kind->argument) {
        const uint32_t *n = ramp->shape;
        if (s->placer.kind->numbered)
            sprintf(s->meta, "%u", 1 + (uint32_t)random_below(9));
        else
            sprintf(s->meta, "%ux%ux%u", 1 + (uint32_t)random_below(n[0]),
                    1 + (uint32_t)random_below(n[1]), 1 + (uint32_t)random_below(n[2]));
        s->placer.argument = s->meta;
    }
    for (size_t i = 0; i < GRAPHS; i++) {
        make_graph(&s->graph[i], s->cluster);
        s->graph[i].id = names[i]; /* where the name was is the arena's */
        s->list[i] = &s->graph[i];
        assert_true(rec_map_add(&s->store.index, rec_str(names[i]), (uint32_t)i, &err));
    }
    s->store.graph = s->list;
    s->store.ngraphs = GRAPHS;
}

static void
free_setting(struct setting *s)
{
    for (size_t i = 0; i < GRAPHS; i++)
        graph_free(&s->graph[i]);
    rec_map_free(&s->store.index);
    net_free(s->cluster);
}

/* ---- streams ----------------------------------------------------------------------- */

struct stream {
    uint32_t njobs;
    struct graph_job job[JOBS];
    char id[JOBS][8], graphs[JOBS][20];
    uint32_t down[3], ndown;
};

static void
make_stream(struct stream *stream, const struct setting *s, uint32_t njobs)
{
    double at = 0;
    stream->njobs = njobs;
    stream->ndown = random_below(3) ? 0 : (uint32_t)random_below(4);
    for (uint32_t i = 0; i < stream->ndown; i++)
        stream->down[i] = (uint32_t)random_below(net_servers(s->cluster));
    for (uint32_t i = 0; i < njobs; i++) {
        uint64_t among = 1 + random_below((1 << GRAPHS) - 1);
        char *graphs = stream->graphs[i];
        *graphs = '\0';
        for (uint32_t g = 0; g < GRAPHS; g++)
            if (among >> g & 1)
                sprintf(graphs + strlen(graphs), "%s%s", *graphs ? "," : "", names[g]);
        sprintf(stream->id[i], "%u", i);
        at += PICK(0, 0, 0, 1, 4, 20);
        stream->job[i] = (struct graph_job){.id = rec_str(stream->id[i]),
                                            .graphs = rec_str(graphs),
                                            .arrival = at,
                                            .steps = (double)(1 + random_below(3)),
                                            .deadline = PICK(4, 12, 40, INFINITY)};
    }
}

#endif
