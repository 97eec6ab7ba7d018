/*
 * Any records as graphs: stored, partitioned, placed on a small cluster and run for a
 * step. Refused with a message, or the invariants hold.
 */
#include "fuzz.h"

#include "rampipe/alloc.h"
#include "../unit/published.h"

#include <math.h>

static const struct net_ramp cluster = {.net = RAMP_NET(3, 2, 2, 1e6),
                                        .shape = {3, 2, 2},
                                        .bandwidth = 1e9,
                                        .propagation = 1e-9,
                                        .io = 1e-9};

/* A failure must say what is wrong, and may not be rampipe's. */
static void
require_message(const struct rec_error *err)
{
    if (err->text[0] == '\0' || err->code == REC_OK || err->code == REC_BUG) {
        fprintf(stderr, "message: %s\n", err->text);
        abort();
    }
}

static void
run_step(const struct graph *graph, const struct place_placement *placement)
{
    struct rec_error err = {.code = REC_OK, .text = ""};
    struct graph_layout where;
    struct sim_layout *layout;
    struct sim_cost cost;

    require(graph_layout_start(&where, rec_str("L"), graph, placement->nheld, &err),
            "a layout needs little memory");
    for (uint32_t i = 0; i < graph->nops; i++) {
        uint32_t server = placement->server[i], slot = 0;
        while (slot < placement->nheld && placement->held[slot] != server)
            slot++;
        require(slot < placement->nheld,
                "an op is on a server that the job does not hold");
        graph_layout_place(&where, graph->member[i], slot);
    }
    layout = sim_layout_new(&where, &err);
    require(layout != NULL, "the layout is whole");
    require(layout->memory <= cluster.net.memory * (1 + 1e-9), "memory is enough");
    if (sim_layout_cost(layout, &cluster.net, placement->held, &cost, &err)) {
        const struct sim_step *s = &cost.step;
        double close = 1e-9 * (s->seconds + s->sequential);
        require(fabs(s->busy - s->sequential) <= close, "busy is the sum of compute");
        require(s->comm <= s->seconds + close, "comm is a part of the step");
        require(s->comp <= s->seconds + close, "comp is a part of the step");
        require(s->seconds <= s->comm + s->comp + close, "nothing waits for nothing");
        require(s->busy <= s->seconds * s->used + close,
                "a server runs one op at a time");
    } else
        require_message(&err);
    sim_layout_free(layout);
}

static void
place(const struct graph *graph, const struct place_kind *heuristic)
{
    struct place_options options = {&cluster.net, heuristic,
                                    heuristic->numbered ? "2" : "2x2x2"};
    struct rec_error err = {.code = REC_OK, .text = ""};
    struct place_vacancy *vacancy = place_vacancy_new(heuristic, &cluster.net, &err);
    struct place_placer *placer = place_placer_new(&options, &err);
    struct place_placement placement;
    struct place_plan plan;

    place_set_free(vacancy, 1, false);
    if (place_plan_make(graph, &plan, &err)) {
        require(place_on(placer, &plan, vacancy, &placement, &err),
                "allocation needs little memory");
        for (uint32_t i = 0; placement.outcome == PLACE_PLACED && i < placement.nheld;
             i++)
            require(placement.held[i] < 12 && placement.held[i] != 1, "it is free");
        if (placement.outcome == PLACE_PLACED)
            run_step(graph, &placement);
        place_plan_free(&plan);
    } else
        require_message(&err);
    place_placer_free(placer);
    place_vacancy_free(vacancy);
}

static void
split(const struct graph *graph)
{
    static const struct graph_partition ways[] = {
        {.degree = 4, .quantum = 1},
        {.degree = 2, .quantum = 0, .sizes = GRAPH_SIZES_GRADIENT},
        {.degree = 2, .quantum = 0, .gradients = GRAPH_GRADIENTS_REDUCED}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct rec_error err = {.code = REC_OK, .text = ""};
        struct graph parts = {0};
        if (graph_partition(graph, &ways[i], &parts, &err)) {
            double before = graph_sequential(graph);
            double after = graph_sequential(&parts);
            require(!(fabs(before - after) > 1e-9 * before), "compute is conserved");
            for (size_t h = 0; place_kinds[h]; h++)
                if (place_kinds[h]->suits(&cluster.net))
                    place(&parts, place_kinds[h]);
        } else
            require_message(&err);
        graph_free(&parts);
    }
    place(graph, place_kinds[0]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const char *name = path;
    int fd = fuzz_file(data, size, path), status = 0;
    struct rec_error err = {.code = REC_OK, .text = ""};
    struct rec_reader *reader;
    struct graph_store store = {0};
    struct rec rec;
    bool ok = true;

    reader = rec_reader_open(&name, 1, NULL, &err);
    while (ok && reader && (status = rec_next(reader, &rec, &err)) > 0) {
        if (!rec_continues(&rec, REC_GRAPH))
            ok = graph_store_end(&store, &err);
        if (ok && rec_is_part(&rec, REC_GRAPH))
            ok = graph_store_read(&store, reader, &rec, &err);
    }
    ok = ok && reader && status == 0 && graph_store_end(&store, &err);
    if (!ok)
        require_message(&err);
    for (size_t i = 0; ok && i < store.ngraphs; i++)
        split(store.graph[i]);
    graph_store_free(&store);
    rec_reader_close(reader);
    close(fd);
    return 0;
}
