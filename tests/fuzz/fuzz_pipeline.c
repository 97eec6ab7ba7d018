/* Any bytes as a stream of graphs and jobs: partitioned, placed, simulated, replayed. */
#include "fuzz.h"

#include "rampipe/alloc.h"
#include "rampipe/event.h"
#include "../unit/published.h"

#include <math.h>

static struct rec_writer *output;

static bool
decide(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    const struct net *net = context;
    (void)err;
    if (decision->cause)
        return true;
    /* work in = work out, as far as doubles tell seconds apart in so long a step */
    if (fabs(decision->cost->step.busy - decision->cost->step.sequential) >
        1e-6 * decision->cost->step.sequential + 1e-12 * decision->cost->step.seconds)
        abort();
    for (uint32_t i = 0; i < decision->layout->where.nslots; i++)
        if (decision->servers[i] >= net_servers(net))
            abort();
    return true;
}

static bool
take(struct graph_store *store, struct alloc_admission *admission,
     struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    struct graph_job job;
    if (!rec_continues(rec, REC_GRAPH)) {
        const struct graph *open = store->reading;
        if (!graph_store_end(store, err))
            return false;
        if (open && open->nops < 40) {
            struct graph_partition how = {
                .degree = 4, .quantum = 1e-3, .sizes = GRAPH_SIZES_REFERENCE};
            struct graph split = {0};
            if (graph_partition(open, &how, &split, err))
                graph_write(&split, output);
            graph_free(&split);
        }
    }
    if (rec_is_part(rec, REC_GRAPH))
        return graph_store_read(store, reader, rec, err);
    if (rec->type != REC_JOB)
        return true;
    return graph_read_job(reader, rec, &job, err) &&
           alloc_admission_advance(admission, &job, err) &&
           alloc_admission_arrive(admission, &job, err);
}

static void
replay(const char *path)
{
    struct rec_error err;
    struct sim_replay_sink sink = {0};
    struct sim_replay *replay = sim_replay_new(&sink, INFINITY, &err);
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &err);
    struct event_clock clock = {0};
    struct rec rec;
    bool ok =
        replay && reader && event_clock_add(&clock, &sim_replay_model, replay, &err);
    while (ok && rec_next(reader, &rec, &err) > 0)
        ok = event_clock_take(&clock, reader, &rec, &err) >= 0;
    if (ok)
        ok = event_clock_end(&clock, INFINITY, &err);
    event_clock_free(&clock);
    sim_replay_free(replay);
    rec_reader_close(reader);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct net_ramp cluster = {.net = RAMP_NET(2, 2, 2, NET_RAMP_MEMORY),
                               .shape = {2, 2, 2},
                               .bandwidth = NET_RAMP_BANDWIDTH,
                               .propagation = NET_RAMP_PROPAGATION,
                               .io = NET_RAMP_IO};
    const struct alloc_choosing first = {.chooser = &alloc_choosers[0]};
    struct alloc_admission_options options = {
        .choosing = &first,
        .placer = {.net = &cluster.net,
                   .kind = place_kinds[size % 3], /* those of RAMP */
                   .argument = "2x2x1"},
        .queue = size % 3};
    char path[64];
    const char *name = path;
    int fd = fuzz_file(bytes, size, path);
    struct rec_error err;
    struct graph_store store = {0};
    struct alloc_admission *admission =
        alloc_admission_new(&options, &store, decide, &cluster.net, &err);
    struct rec_reader *reader = rec_reader_open(&name, 1, NULL, &err);
    struct rec rec;
    bool ok = admission && reader;

    output = rec_writer_open("/dev/null", NULL, &err);
    if (!ok || !output)
        abort();
    while (ok && rec_next(reader, &rec, &err) > 0)
        ok = take(&store, admission, reader, &rec, &err);
    if (ok && graph_store_end(&store, &err))
        ok = alloc_admission_end(admission, &err);
    if (!rec_writer_close(output, true, &err))
        abort();
    alloc_admission_free(admission);
    graph_store_free(&store);
    rec_reader_close(reader);
    replay(path);
    close(fd);
    return 0;
}
