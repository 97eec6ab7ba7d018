/*
 * step [PROFILE] - events per second of one training step: on a profile split 16 ways,
 * and on layered random graphs of 1e4, 1e5 and 1e6 ops (about four deps an op), whose
 * time per event should grow like a logarithm. Peak memory is that of the largest.
 */
#include "rampipe/alloc.h"
#include "../unit/published.h"
#include "rampipe/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { SERVERS = 256, WIDTH = 1000, MAX_DEPS = 7, ROUNDS = 7 };

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
die(const struct rec_error *err)
{
    fprintf(stderr, "step: %s\n", err->text);
    exit(1);
}

/* xorshift64: the same graphs on every machine. */
static uint64_t
draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Layers of WIDTH ops; each op but those of the first has 1 to MAX_DEPS parents in the
 * layer before. */
static void
make_layered(struct graph *graph, uint32_t nops)
{
    struct rec_error err;
    uint64_t state = 88172645463325252u;
    char id[16], parent[16];

    if (!graph_start(graph, rec_str("layered"), rec_str("layered"), "", &err))
        die(&err);
    for (uint32_t i = 0; i < nops; i++) {
        struct graph_op op = {.id = id, .extra = "", .part = 1, .parts = 1};
        snprintf(id, sizeof id, "%u", i);
        op.compute = 1e-3 * (double)(1 + draw(&state) % 1000);
        op.pass = GRAPH_TASK;
        if (!graph_add_op(graph, &op, NULL, &err))
            die(&err);
    }
    for (uint32_t i = WIDTH; i < nops; i++) {
        uint32_t layer = i / WIDTH - 1, n = 1 + (uint32_t)(draw(&state) % MAX_DEPS);
        uint32_t first = (uint32_t)(draw(&state) % WIDTH);
        snprintf(id, sizeof id, "%u", i);
        for (uint32_t j = 0; j < n; j++) {
            snprintf(parent, sizeof parent, "%u",
                     layer * WIDTH + (first + 37 * j) % WIDTH);
            if (!graph_add_dep(graph, rec_str(parent), rec_str(id),
                               (double)(1 + draw(&state) % 1000000), false, "", 0, &err))
                die(&err);
        }
    }
    if (!graph_close(graph, &err))
        die(&err);
}

/* Simulates the graph with op i on server i mod SERVERS. Takes the median processor time
 * of ROUNDS. */
static double
rate(const struct graph *graph, double *per_event)
{
    const struct net_ramp cluster = {.net = RAMP_NET(16, 16, 1, 1e18),
                                     .shape = {16, 16, 1},
                                     .bandwidth = NET_RAMP_BANDWIDTH,
                                     .propagation = NET_RAMP_PROPAGATION,
                                     .io = NET_RAMP_IO};
    struct rec_error err;
    uint32_t *server = malloc((graph->nops + 1) * sizeof *server);
    uint32_t *placed = malloc((graph->nops + 1) * sizeof *placed);
    double *seconds = malloc((graph->ndeps + 1) * sizeof *seconds), took[ROUNDS];
    struct sim_placed input = {.graph = graph,
                               .nservers = SERVERS,
                               .server = server,
                               .placed = placed,
                               .dep_seconds = seconds};
    struct graph_exchanges e;
    struct sim_step step;

    if (!server || !placed || !seconds)
        exit(1);
    for (uint32_t i = 0; i < graph->nops; i++) {
        server[i] = i % SERVERS;
        placed[i] = i;
    }
    if (!graph_exchanges_make(graph, server, SERVERS, net_sync(&cluster.net),
                              net_same(&cluster.net), &e, &err))
        die(&err);
    for (size_t d = 0; d < graph->ndeps; d++) {
        const struct graph_exchange *one = &e.exchange[e.of_dep[d]];
        seconds[d] = 0;
        if (e.of_dep[d] != GRAPH_NONE &&
            !net_alone(&cluster.net,
                       &(struct net_exchange){one->kind, e.member + one->first, one->n,
                                              one->bytes, one->flow},
                       1, &seconds[d], &err))
            die(&err);
    }
    graph_exchanges_free(&e);
    for (int round = 0; round < ROUNDS; round++) {
        double t = now();
        if (!sim_step(&input, NULL, &step, &err))
            die(&err);
        took[round] = now() - t;
    }
    qsort(took, ROUNDS, sizeof *took, compare);
    free(server);
    free(placed);
    free(seconds);
    *per_event = took[ROUNDS / 2] / (double)step.events;
    return (double)step.events / took[ROUNDS / 2];
}

static void
bench_profile(const char *path)
{
    struct input_profile_options options = {1e-3, INPUT_MEMORY_TOTAL, true};
    struct graph_partition how = {.degree = 16, .quantum = 1e-6};
    struct graph graph = {0}, split = {0};
    struct rec_error err;
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &err);
    double per_event;

    if (!reader ||
        !input_read_profile(&graph, reader, &options, rec_str("profile"),
                            rec_str("profile"), NULL, &err) ||
        !graph_partition(&graph, &how, &split, &err))
        die(&err);
    printf("step, profile split 16 ways (%zu ops, %zu deps)\t%.1f\tM events/s\t>= 10\n",
           split.nops, split.ndeps, rate(&split, &per_event) / 1e6);
    graph_free(&graph);
    graph_free(&split);
    rec_reader_close(reader);
}

int
main(int argc, char **argv)
{
    double first = 0, per_event;
    struct rusage usage;
    size_t records = 0;
    long before;

    if (argc > 1)
        bench_profile(argv[1]);
    getrusage(RUSAGE_SELF, &usage);
    before = usage.ru_maxrss;
    for (uint32_t nops = 10000; nops <= 1000000; nops *= 10) {
        struct graph graph = {0};
        make_layered(&graph, nops);
        printf("step, layered graph (%zu ops, %zu deps)\t%.1f\tM events/s\t%s\n",
               graph.nops, graph.ndeps, rate(&graph, &per_event) / 1e6,
               nops == 100000 ? ">= 10" : "");
        if (nops == 10000)
            first = per_event;
        records = graph.nops + graph.ndeps;
        graph_free(&graph);
    }
    printf("step, time per event at 1e6 ops / at 1e4 ops\t%.2f\tx\tnear 1\n",
           per_event / first);
    getrusage(RUSAGE_SELF, &usage);
    printf("step, peak memory per op or dep at 1e6 ops\t%.0f\tbytes\t<= 200\n",
           1024.0 * (double)(usage.ru_maxrss - before) / (double)records);
    return 0;
}
