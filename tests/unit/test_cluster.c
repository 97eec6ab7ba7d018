/* Admission and replay. */
#include "graphs.h"
#include "published.h"

#include "../../lib/alloc/price.h"
#include "rampipe/alloc.h"
#include "rampipe/event.h"

enum { JOBS = 2000 };

/* What an admission decided, as records too; and a checker of its own. */
struct log {
    const struct net_ramp *cluster;
    double until[64]; /* per server: when it comes free, as we count */
    double now;
    size_t ndecisions, nstarted, nlayouts;
    char id[JOBS][16];
    const char *cause[JOBS];
    double time[JOBS], finish[JOBS];
    double server_seconds;
    FILE *records;
};

static bool
note(void *context, const struct alloc_decision *d, struct rec_error *err)
{
    struct log *log = context;
    size_t n = log->ndecisions++;
    char name[NET_NAME_MAX];
    (void)err;
    assert_true(d->time >= log->now); /* in order of time */
    log->now = d->time;
    snprintf(log->id[n], sizeof *log->id, "%.*s", (int)d->job.id.len, d->job.id.ptr);
    log->time[n] = d->time;
    log->cause[n] = d->cause;
    log->finish[n] = d->finish;
    assert_true(d->time >= d->job.arrival);
    if (d->cause) {
        fprintf(log->records, "block\t%s\t%.17g\t%s\n", log->id[n], d->time, d->cause);
        return true;
    }
    log->nstarted++;
    assert_same(d->finish, d->time + d->job.steps * d->cost->step.seconds);
    if (d->new_layout) {
        log->nlayouts++;
        fprintf(log->records, "layout\t%s\t%s\t%u\n", d->layout->where.id, d->graph->id,
                d->layout->where.nslots);
        for (uint32_t turn = 0; turn < d->graph->nops; turn++)
            for (uint32_t i = 0; i < d->graph->nops; i++)
                if (d->layout->where.placed[i] == turn)
                    fprintf(log->records, "place\t%s\t%s\t%u\n", d->layout->where.id,
                            d->graph->op[i].id, d->layout->where.slot[i]);
    }
    fprintf(log->records, "alloc\t%s\t%s\t%s\t%.17g\t", log->id[n], d->graph->id,
            d->layout->where.id, d->time);
    for (uint32_t i = 0; i < d->layout->where.nslots; i++) {
        uint32_t server = d->servers[i];
        if (log->until[server] > d->time)
            fail_msg("job %s takes server %u, which is taken", log->id[n], server);
        log->until[server] = d->finish;
        log->server_seconds += d->finish - d->time;
        net_format_server(&log->cluster->net, server, name);
        fprintf(log->records, "%s%s", i ? "," : "", name);
    }
    fputc('\n', log->records);
    return true;
}

/* A store of graphs from texts: each text's graph has its own id. */
static struct graph_store
store_of(const char *records)
{
    struct graph_store store = {0};
    struct rec_error err = {.text = ""};
    char *copy = tabs(records);
    struct rec_reader *reader = open_text(copy);
    struct rec rec;
    bool ok = true;
    while (ok && rec_next(reader, &rec, &err) > 0) {
        if (rec.type == REC_GRAPH)
            ok = graph_store_end(&store, &err);
        ok = ok && graph_store_read(&store, reader, &rec, &err);
    }
    if (!ok || !graph_store_end(&store, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < store.ngraphs; i++)
        store.graph[i]->file = NULL;
    close_text(reader);
    free(copy);
    return store;
}

static struct alloc_admission *
admit_by(const struct place_kind *heuristic, struct log *log, struct graph_store *store,
         const struct net_ramp *on, size_t queue, enum alloc_order order, size_t layouts)
{
    static struct alloc_choosing first;
    struct alloc_admission_options options = {.placer = {&on->net, heuristic, NULL},
                                              .choosing = &first,
                                              .queue = queue,
                                              .order = order,
                                              .layouts = layouts};
    struct rec_error err;
    first.chooser = &alloc_choosers[0];
    memset(log, 0, sizeof *log);
    log->cluster = on;
    log->records = tmpfile();
    return alloc_admission_new(&options, store, note, log, &err);
}

static struct alloc_admission *
admission(struct log *log, struct graph_store *store, const struct net_ramp *on,
          size_t queue, enum alloc_order order)
{
    return admit_by(place_kinds[0], log, store, on, queue, order, 0);
}

static void
arrive(struct alloc_admission *a, struct log *log, const char *id, const char *graphs,
       double arrival, double steps, double deadline)
{
    struct graph_job job = {.id = rec_str(id),
                            .graphs = rec_str(graphs),
                            .arrival = arrival,
                            .steps = steps,
                            .deadline = deadline};
    struct rec_error err = {.text = ""};
    if (!alloc_admission_advance(a, &job, &err))
        fail_msg("%s", err.text);
    fprintf(log->records, "job\t%s\t%s\t%.17g\t%g\t%.17g\n", id, graphs, arrival, steps,
            deadline);
    if (!alloc_admission_arrive(a, &job, &err))
        fail_msg("%s", err.text);
}

static void
finish(struct alloc_admission *a, struct graph_store *store, struct log *log)
{
    struct rec_error err = {.text = ""};
    if (!alloc_admission_end(a, &err))
        fail_msg("%s", err.text);
    alloc_admission_free(a);
    graph_store_free(store);
    fclose(log->records);
}

/* The decision on a job. */
static size_t
decided(const struct log *log, const char *id)
{
    for (size_t i = 0; i < log->ndecisions; i++)
        if (strcmp(log->id[i], id) == 0)
            return i;
    fail_msg("job %s was not decided", id);
    return 0;
}

static void
expect_start(const struct log *log, const char *id, double time, double end)
{
    size_t i = decided(log, id);
    if (log->cause[i])
        fail_msg("job %s: %s", id, log->cause[i]);
    assert_near(log->time[i], time);
    assert_near(log->finish[i], end);
}

static void
expect_block(const struct log *log, const char *id, double time, const char *cause)
{
    size_t i = decided(log, id);
    assert_non_null(log->cause[i]);
    assert_string_equal(log->cause[i], cause);
    assert_near(log->time[i], time);
}

static const struct net_ramp single = {.net = RAMP_NET(1, 1, 1, 100),
                                       .shape = {1, 1, 1},
                                       .bandwidth = 1e9,
                                       .propagation = 1e-9,
                                       .io = 1e-9};

#define ONE "graph g m\nop g 1 forward 1 1\n"   /* 1 s a step */
#define FAT "graph f m\nop f 1 forward 1 101\n" /* more than a server has */
#define LONG "graph h m\nop h 1 forward 7 1\n"

/* One server: a job runs 0..10; one at 9.999 is blocked; one at 10 starts: ends come
 * before arrivals of the same instant. */
static void
test_ends_first(void **state)
{
    struct graph_store store = store_of(ONE FAT);
    struct log log;
    struct alloc_admission *a = admission(&log, &store, &single, 0, ALLOC_FIFO);
    (void)state;
    arrive(a, &log, "a", "g", 0, 10, INFINITY);
    arrive(a, &log, "b", "g", 9.999, 10, INFINITY);
    arrive(a, &log, "c", "g", 10, 10, INFINITY);
    arrive(a, &log, "d", "f", 20, 10, INFINITY);
    arrive(a, &log, "e", "f,g", 20, 1, INFINITY); /* the second alternative */
    arrive(a, &log, "f", "g", 30, 0, 0);          /* no steps: over at once */
    arrive(a, &log, "g", "g", 30, 1, INFINITY);
    expect_start(&log, "a", 0, 10);
    expect_block(&log, "b", 9.999, "no_servers");
    expect_start(&log, "c", 10, 20);
    expect_block(&log, "d", 20, "no_memory");
    expect_start(&log, "e", 20, 21);
    expect_start(&log, "f", 30, 30);
    expect_start(&log, "g", 30, 31);
    finish(a, &store, &log);
}

/* Queue of two, first in first out: b waits to 10, c to 15, d finds the queue full. */
static void
test_fifo(void **state)
{
    struct graph_store store = store_of(ONE);
    struct log log;
    struct alloc_admission *a = admission(&log, &store, &single, 2, ALLOC_FIFO);
    (void)state;
    arrive(a, &log, "a", "g", 0, 10, INFINITY);
    arrive(a, &log, "b", "g", 1, 5, INFINITY);
    arrive(a, &log, "c", "g", 2, 1, INFINITY);
    arrive(a, &log, "d", "g", 3, 1, INFINITY);
    arrive(a, &log, "e", "g", 15.5, 1, INFINITY); /* b has ended: room to wait */
    assert_int_equal(log.ndecisions, 4);          /* a, b, c, d */
    finish(a, &store, &log);
    expect_start(&log, "b", 10, 15);
    expect_start(&log, "c", 15, 16);
    expect_block(&log, "d", 3, "queue_full");
    expect_start(&log, "e", 16, 17);
}

/* Shortest first: of b (5), c (1), d (7 a step) that wait, c goes first, then b, d. */
static void
test_shortest(void **state)
{
    struct graph_store store = store_of(ONE LONG);
    struct log log;
    struct alloc_admission *a = admission(&log, &store, &single, 10, ALLOC_SHORTEST);
    (void)state;
    arrive(a, &log, "a", "g", 0, 10, INFINITY);
    arrive(a, &log, "d", "h", 1, 1, INFINITY);
    arrive(a, &log, "b", "g", 2, 5, INFINITY);
    arrive(a, &log, "c", "g", 3, 1, INFINITY);
    finish(a, &store, &log);
    expect_start(&log, "c", 10, 11);
    expect_start(&log, "b", 11, 16);
    expect_start(&log, "d", 16, 23);
}

/* What can never start, not even on an empty cluster, does not hold up the queue: it is
 * turned away when it comes. */
static void
test_never(void **state)
{
    struct graph_store store = store_of(ONE FAT);
    struct log log;
    struct alloc_admission *a = admission(&log, &store, &single, 10, ALLOC_FIFO);
    (void)state;
    arrive(a, &log, "a", "g", 0, 10, INFINITY);
    arrive(a, &log, "b", "f", 1, 1, INFINITY);
    arrive(a, &log, "c", "g", 2, 1, INFINITY);
    finish(a, &store, &log);
    expect_block(&log, "b", 1, "no_memory");
    expect_start(&log, "c", 10, 11);
}

/*
 * Blocked when the completion time exceeds the deadline by more than 1e-9 of it: 10 s
 * against 10, 10/(1 + 0.9e-9) and 10/(1 + 1.1e-9). The same at a late arrival, where a
 * sum of times is rounded: 1e9 + 11e-3 has a rounding error of 4e-8. Waiting counts: g,
 * which runs 10 s, must start within 18.9 - 10 s of 326.
 */
static void
test_deadline(void **state)
{
    struct graph_store store = store_of(ONE "graph k m\nop k 1 forward 1e-3 1\n");
    struct log log;
    struct alloc_admission *a = admission(&log, &store, &single, 1, ALLOC_FIFO);
    (void)state;
    arrive(a, &log, "a", "g", 0, 10, 10);
    arrive(a, &log, "b", "g", 100, 10, 10 / (1 + 0.9e-9));
    arrive(a, &log, "c", "g", 200, 10, 10 / (1 + 1.1e-9));
    arrive(a, &log, "d", "g", 300, 10, 20);
    arrive(a, &log, "e", "g", 305, 10, 15.1); /* starts at 310, takes 15 */
    arrive(a, &log, "f", "g", 325, 10, 20);
    arrive(a, &log, "g", "g", 326, 10, 18.9); /* at 335 it would take 19 */
    for (int i = 0; i < 100; i++) {
        char id[16];
        snprintf(id, sizeof id, "late%d", i);
        arrive(a, &log, id, "k", 1e9 + i / 3.0, 11, 11e-3);
        assert_int_equal(decided(&log, id) + 1, log.ndecisions);
        assert_null(log.cause[log.ndecisions - 1]);
    }
    finish(a, &store, &log);
    expect_start(&log, "a", 0, 10);
    expect_start(&log, "b", 100, 110);
    expect_block(&log, "c", 200, "deadline");
    expect_start(&log, "e", 310, 320);
    expect_block(&log, "g", 326 + 18.9 - 10, "deadline");
}

#define PAIR \
    "graph p m\nop p 1a forward 5 1 of=1 part=1/2\nop p 1b forward 5 1 of=1 part=2/2\n"

/*
 * Two servers; a has one of them until 100. b, at the head of the queue, needs both for
 * 10 s and has a deadline of 30: its last chance is at 2 + 30 - 10. Then it goes, and c,
 * which needs one and has waited behind it, starts; d, which waits for both without a
 * deadline, holds up e, as the order says. f comes when its own last chance is over.
 */
static void
test_last_chance(void **state)
{
    static const struct net_ramp pair = {.net = RAMP_NET(2, 1, 1, 100),
                                         .shape = {2, 1, 1},
                                         .bandwidth = 1e9,
                                         .propagation = 1e-9,
                                         .io = 1e-9};
    struct graph_store store = store_of(ONE PAIR);
    struct log log;
    struct alloc_admission *a = admission(&log, &store, &pair, 10, ALLOC_FIFO);
    (void)state;
    arrive(a, &log, "a", "g", 0, 100, INFINITY);
    arrive(a, &log, "b", "p", 2, 2, 30);
    arrive(a, &log, "c", "g", 3, 7, INFINITY);
    arrive(a, &log, "d", "p", 4, 1, INFINITY);
    arrive(a, &log, "e", "g", 5, 1, INFINITY);
    arrive(a, &log, "f", "p", 6, 2, 9);
    finish(a, &store, &log);
    expect_block(&log, "b", 22, "deadline");
    expect_start(&log, "c", 22, 29);
    expect_start(&log, "d", 100, 105);
    expect_start(&log, "e", 105, 106);
    expect_block(&log, "f", 6, "deadline");
}

static int placements;

/* First fit, which counts how often it is asked. */
static enum place_outcome
place_counting(struct place_placer *placer, const struct place_plan *plan)
{
    placements++;
    return place_kinds[0]->place(placer, plan);
}

/* Ten jobs, one after the other on an empty server, are placed once: what a heuristic
 * gave is remembered. */
static void
test_remembered(void **state)
{
    struct place_kind counting = *place_kinds[0];
    struct graph_store store = store_of(ONE);
    struct log log;
    struct alloc_admission *a;
    (void)state;
    counting.place = place_counting;
    counting.whole = false; /* a light plan is placed without it */
    a = admit_by(&counting, &log, &store, &single, 0, ALLOC_FIFO, 0);
    placements = 0;
    for (int i = 0; i < 10; i++) {
        char id[] = {(char)('a' + i), '\0'};
        arrive(a, &log, id, "g", 10 * i, 1, INFINITY);
        expect_start(&log, id, 10 * i, 10 * i + 1);
    }
    finish(a, &store, &log);
    assert_int_equal(placements, 1);
}

/*
 * Two servers and a graph of two parts, in two ways. With one server taken no way has a
 * block, and the second need not search. With both free again it must: that the first way
 * failed before says nothing of now.
 */
static void
test_ways_that_fail(void **state)
{
    const struct net_ramp two = {.net = RAMP_NET(2, 1, 1, 100),
                                 .shape = {2, 1, 1},
                                 .bandwidth = 1e9,
                                 .propagation = 0,
                                 .io = 0};
    struct graph_store store = store_of(PAIR);
    struct place_options way[2] = {{.net = &two.net}, {.net = &two.net}};
    struct rec_error err = {.text = ""};
    struct pricer *p;
    (void)state;
    assert_true(place_options_parse(&way[0], "first-fit", &err));
    assert_true(place_options_parse(&way[1], "compact", &err));
    p = pricer_new(&way[0], &store, 0, false, &err);
    assert_true(p && pricer_add_way(p, &way[1], &err));
    assert_int_equal(pricer_try_way(p, 0, 0, &err)->outcome, PLACE_PLACED);
    pricer_take(p, 0);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(pricer_try_way(p, 0, i, &err)->outcome, PLACE_NO_BLOCK);
    pricer_take(p, 1);
    pricer_give_back(p, 0); /* the other one is free: not yet known */
    assert_int_equal(pricer_try_way(p, 0, 0, &err)->outcome, PLACE_NO_BLOCK);
    pricer_give_back(p, 1); /* of way 0 it is known, of way 1 not */
    assert_int_equal(pricer_try_way(p, 0, 0, &err)->outcome, PLACE_PLACED);
    assert_int_equal(pricer_try_way(p, 0, 1, &err)->outcome, PLACE_PLACED);
    pricer_free(p);
    graph_store_free(&store);
}

/* ---- replay -------------------------------------------------------------- */

struct tally {
    size_t done;
    double server_seconds, last;
    const struct log *log;
};

static bool
tally_done(void *context, const struct sim_done *done, struct rec_error *err)
{
    struct tally *tally = context;
    char id[16];
    size_t i;
    (void)err;
    snprintf(id, sizeof id, "%.*s", (int)done->job.id.len, done->job.id.ptr);
    i = decided(tally->log, id);
    assert_same(done->start, tally->log->time[i]);
    assert_same(done->finish, tally->log->finish[i]); /* the very number */
    assert_true(done->finish >= tally->last);         /* in order of time */
    tally->last = done->finish;
    tally->done++;
    tally->server_seconds += done->layout->where.nslots * (done->finish - done->start);
    return true;
}

static void
replay(struct log *log, size_t layouts, const char *graphs)
{
    struct tally tally = {.log = log};
    struct sim_replay_sink sink = {.done = tally_done, .context = &tally};
    struct rec_error err = {.text = ""};
    struct sim_replay *r = sim_replay_new(&sink, INFINITY, &err);
    struct event_clock clock = {0};
    char *text, *head = tabs(graphs), cluster[200];
    long size = ftell(log->records);
    struct rec_reader *reader;
    struct rec rec;
    int status;

    if (r && layouts)
        sim_replay_keep(r, layouts);
    snprintf(cluster, sizeof cluster,
             "cluster\tramp\t%u\t%u\t%u\t%.17g\t%.17g\t"
             "propagation=%.17g\tio=%.17g\n",
             log->cluster->shape[0], log->cluster->shape[1], log->cluster->shape[2],
             log->cluster->bandwidth, log->cluster->net.memory, log->cluster->propagation,
             log->cluster->io);
    text = calloc(strlen(head) + strlen(cluster) + (size_t)size + 1, 1);
    strcat(strcpy(text, cluster), head);
    rewind(log->records);
    assert_int_equal(fread(text + strlen(text), 1, (size_t)size, log->records), size);
    reader = open_text(text);
    assert_true(r && event_clock_add(&clock, &sim_replay_model, r, &err));
    while ((status = rec_next(reader, &rec, &err)) > 0)
        if (event_clock_take(&clock, reader, &rec, &err) < 0)
            fail_msg("%s", err.text);
    assert_int_equal(status, 0);
    if (!event_clock_end(&clock, INFINITY, &err))
        fail_msg("%s", err.text);
    event_clock_free(&clock);
    sim_replay_free(r);
    close_text(reader);
    assert_int_equal(tally.done, log->nstarted);
    assert_near(tally.server_seconds, log->server_seconds);
    free(head);
    free(text);
}

/*
 * Random jobs on 4x4x2, with and without a queue: every job is decided once, no server is
 * taken twice (checked in note()), and the replay of the decisions, which checks the
 * rules itself, agrees with each start and finish and on the server-seconds. In the last
 * rounds only two idle layouts are kept: more are written, but none is named that the
 * replay, which keeps four, has forgotten.
 */
static void
test_conservation(void **state)
{
    static struct log log;
    (void)state;
    random_state = 11;
    for (int round = 0; round < 8; round++) {
        size_t layouts = round < 4 ? 0 : 3000;
        char *graphs = NULL;
        size_t size;
        FILE *out = open_memstream(&graphs, &size);
        struct graph_store store;
        struct alloc_admission *a;
        double time = 0;

        for (int k = 1; k <= 8; k *= 2) {
            struct graph g = partitioned(CHAIN_OF_THREE, k == 1 ? 1 : (uint32_t)k);
            fprintf(out, "graph g/%d m\n", k);
            for (size_t i = 0; i < g.nops; i++) {
                const struct graph_op *op = &g.op[i];
                fprintf(out, "op g/%d %s %s %.17g %.17g pair=%s", k, op->id,
                        op->pass ? "backward" : "forward", op->compute, op->memory,
                        g.op[op->pair].id);
                if (op->of)
                    fprintf(out, " of=%s part=%u/%u", op->of, op->part, op->parts);
                fputc('\n', out);
            }
            for (size_t d = 0; d < g.ndeps; d++)
                fprintf(out, "dep g/%d %s %s %.17g%s\n", k, g.op[g.dep[d].src].id,
                        g.op[g.dep[d].dst].id, g.dep[d].bytes,
                        g.dep[d].sync ? " kind=sync" : "");
            graph_free(&g);
        }
        fclose(out);
        store = store_of(graphs);
        a = admit_by(place_kinds[0], &log, &store, &published, round % 2 ? 5 : 0,
                     round / 2 % 2 ? ALLOC_SHORTEST : ALLOC_FIFO, layouts);
        for (int job = 0; job < 1000; job++) {
            static const char *const asks[] = {"g/1", "g/2", "g/8,g/4", "g/8"};
            char id[16];
            snprintf(id, sizeof id, "j%d", job);
            time += draw(100) * 1e-5;
            arrive(a, &log, id, asks[draw(4)], time, 1 + draw(1000),
                   draw(3) ? (double)INFINITY : 5e-3);
        }
        {
            struct rec_error err;
            assert_true(alloc_admission_end(a, &err));
        }
        assert_int_equal(log.ndecisions, 1000);
        assert_true(log.nstarted > 100 && log.nstarted < 1000);
        assert_true(layouts ? log.nlayouts > 50 : log.nlayouts < 10);
        replay(&log, 2 * layouts, graphs);
        finish(a, &store, &log);
        free(graphs);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_first),   cmocka_unit_test(test_fifo),
        cmocka_unit_test(test_shortest),     cmocka_unit_test(test_never),
        cmocka_unit_test(test_deadline),     cmocka_unit_test(test_last_chance),
        cmocka_unit_test(test_remembered),   cmocka_unit_test(test_ways_that_fail),
        cmocka_unit_test(test_conservation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
