/* Lanes in a strict order, and what ops hold over time: schedules of pipelines, and
 * random steps against brute force. */
#include "unit.h"

#include "schedules.h"

#include <string.h>

enum { STAGES = 64 };

static void
run(struct pipeline *pipe, struct sim_step *step, double *peak)
{
    struct rec_error err = {.text = ""};
    struct sim_placed placed;
    if (!pipeline_make(pipe, &err))
        fail_msg("%s", err.text);
    placed = pipeline_placed(pipe);
    placed.peak = peak;
    if (!sim_step(&placed, NULL, step, &err))
        fail_msg("%s", err.text);
    pipeline_free(pipe);
}

/* Reads numbers separated by commas; one stands for all stages. */
static void
read_list(const char *text, uint32_t p, double *list)
{
    for (uint32_t i = 0; i < p; i++) {
        char *end;
        list[i] = strtod(text, &end);
        assert_true(end > text);
        if (*end == ',')
            text = end + 1;
    }
}

/* One row: id schedule stages microbatches chunks forward backward transfer makespan
 * idle_share peak_inflight. The golden idle shares have nine digits. */
static void
check_row(char *line)
{
    double forward[STAGES], backward[STAGES], inflight[STAGES], peak[STAGES], makespan,
        idle;
    struct pipeline pipe = {.forward = forward, .backward = backward};
    struct sim_step step;
    char *field[11], *rest = line;

    for (int i = 0; i < 11; i++)
        assert_non_null(field[i] = strsep(&rest, "\t"));
    pipe.gpipe = strcmp(field[1], "gpipe") == 0;
    pipe.p = (uint32_t)atoi(field[2]);
    pipe.m = (uint32_t)atoi(field[3]);
    pipe.v = (uint32_t)atoi(field[4]);
    assert_true(pipe.p <= STAGES);
    read_list(field[5], pipe.p, forward);
    read_list(field[6], pipe.p, backward);
    read_list(field[10], pipe.p, inflight);
    pipe.transfer = atof(field[7]);
    makespan = atof(field[8]);
    idle = atof(field[9]);
    run(&pipe, &step, peak);
    if (fabs(step.seconds / makespan - 1) > 1e-12)
        fail_msg("%s: %.17g, not %.17g", field[0], step.seconds, makespan);
    assert_near(1 - step.busy / (pipe.p * step.seconds), idle, 1e-9);
    for (uint32_t r = 0; r < pipe.p; r++)
        if (peak[r] != inflight[r])
            fail_msg("%s: stage %u holds %g, not %g", field[0], r, peak[r], inflight[r]);
}

/* The exact makespans and activations of ../shared/golden/parallel/schedule.tsv. */
static void
test_golden(void **state)
{
    char path[4096], *text, *rest, *line;
    size_t rows = 0;
    FILE *file;
    (void)state;

    snprintf(path, sizeof path, "%s/../shared/golden/parallel/schedule.tsv",
             getenv("ROOT") ? getenv("ROOT") : ".");
    file = fopen(path, "r");
    if (!file)
        skip();
    fclose(file);
    text = rest = read_file(path, NULL);
    strsep(&rest, "\n"); /* names of columns */
    while ((line = strsep(&rest, "\n")) && *line) {
        check_row(line);
        rows++;
    }
    assert_true(rows > 100);
    free(text);
}

/*
 * Activations (chunks whose backward has not run) that stage r of p keeps, from the order
 * of its list alone: it has run w forwards before its first backward, then a forward
 * comes before each backward, so the most is w + 1, after the first of these forwards, or
 * all n = m v if there are no more. GPipe: w = n. 1F1B: w = p-1-r, so min(m, p-r).
 * Interleaved: w = 2(p-1-r) + (v-1)p.
 *
 * Times, all stages equal, f and b of a stage, no transfer: the last stage gets its first
 * microbatch after (p-1) f/v and works m (f+b) without a break; then (p-1) b/v pass on
 * the way back. So m (f+b) + (p-1)(f+b)/v; GPipe and 1F1B have v = 1.
 */
static void
test_closed_forms(void **state)
{
    const double f = 1, b = 2;
    double forward[STAGES], backward[STAGES], peak[STAGES];
    struct sim_step step;
    (void)state;

    for (int i = 0; i < STAGES; i++) {
        forward[i] = f;
        backward[i] = b;
    }
    for (uint32_t p = 1; p <= 5; p++)
        for (uint32_t m = 1; m <= 12; m++)
            for (uint32_t v = 1; v <= (p > 1 && m % p == 0 ? 3 : 1); v++)
                for (int gpipe = 0; gpipe < (v == 1 ? 2 : 1); gpipe++) {
                    struct pipeline pipe = {.p = p,
                                            .m = m,
                                            .v = v,
                                            .gpipe = gpipe,
                                            .forward = forward,
                                            .backward = backward};
                    run(&pipe, &step, peak);
                    assert_near(step.seconds, m * (f + b) + (p - 1) * (f + b) / v, 1e-9);
                    for (uint32_t r = 0; r < p; r++) {
                        uint32_t w = v == 1 ? p - 1 - r : 2 * (p - 1 - r) + (v - 1) * p;
                        double most = gpipe || w + 1 > m * v ? m * v : w + 1;
                        assert_true(peak[r] == most);
                    }
                }
}

/* The order by deps from each op of a stage to the next gives the same times. */
static void
test_chained(void **state)
{
    const double forward[] = {1, 3, 2, 1}, backward[] = {2, 5, 1, 4};
    (void)state;
    for (uint32_t v = 1; v <= 2; v++)
        for (uint32_t m = 4; m <= 12; m += 4) {
            struct pipeline pipe = {.p = 4,
                                    .m = m,
                                    .v = v,
                                    .forward = forward,
                                    .backward = backward,
                                    .transfer = 0.5};
            struct sim_step ordered, chained;
            run(&pipe, &ordered, NULL);
            pipe.chained = true;
            run(&pipe, &chained, NULL);
            assert_true(ordered.seconds == chained.seconds);
            assert_true(ordered.busy == chained.busy && ordered.comm == chained.comm);
        }
}

/* ---- memory over time ------------------------------------------------------ */

enum { OPS = 12, SERVERS = 2 };

struct watch {
    double end[OPS];       /* of the ops */
    double bytes[SERVERS]; /* held, as told last */
    double most[SERVERS];  /* of what was told */
    double at[SERVERS];    /* when it was told last */
    uint32_t told[SERVERS];
};

static void
see_run(void *context, uint32_t op, double start, double end)
{
    struct watch *watch = context;
    (void)start;
    watch->end[op] = end;
}

static void
see_hold(void *context, uint32_t server, double time, double bytes)
{
    struct watch *watch = context;
    assert_true(bytes >= 0);
    assert_true(!watch->told[server] || time >= watch->at[server]);
    watch->bytes[server] = bytes;
    watch->most[server] = fmax(watch->most[server], bytes);
    watch->at[server] = time;
    watch->told[server]++;
}

/* What is held on a server right after `time`. */
static double
held_at(const struct graph *graph, const struct watch *watch, const uint32_t *server,
        uint32_t which, double time)
{
    double sum = 0;
    for (size_t i = 0; i < graph->nholds; i++) {
        const struct graph_hold *hold = &graph->hold[i];
        if (server[hold->op] == which && watch->end[hold->op] <= time &&
            (hold->release == GRAPH_NONE || watch->end[hold->release] > time))
            sum += hold->bytes;
    }
    return sum;
}

/*
 * Random steps: ops on two servers hold random bytes, of which an op that comes later in
 * the graph releases some. Against the ends that an observer saw: the peak of each server
 * is the most that is held right after the end of an op; what the observer is told is
 * never negative and zero in the end: what was held was released.
 */
static void
test_random_holds(void **state)
{
    double lasting = 0, freed = 0;
    (void)state;
    for (int round = 0; round < part_of(4000); round++) {
        struct watch watch = {.end = {0}};
        struct sim_observer observer = {
            .run = see_run, .hold = see_hold, .context = &watch};
        uint32_t server[OPS], placed[OPS];
        double seconds[OPS * OPS] = {0}, peak[SERVERS], memory[SERVERS] = {5, 7};
        struct graph graph = {0};
        struct rec_error err = {.text = ""};
        struct sim_placed on = {.graph = &graph,
                                .nservers = SERVERS,
                                .server = server,
                                .placed = placed,
                                .dep_seconds = seconds,
                                .memory = memory,
                                .peak = peak};
        struct sim_step step;
        char id[16], to[16], extra[60];

        assert_true(graph_start(&graph, rec_str("g"), rec_str("m"), "", &err));
        for (uint32_t i = 0; i < OPS; i++) {
            server[i] = (uint32_t)random_below(SERVERS);
            placed[i] = i;
        }
        for (uint32_t i = 0; i < OPS; i++) {
            struct graph_op op = {.id = id, .extra = "", .part = 1, .parts = 1};
            uint32_t next = i + 1;
            while (next < OPS && (server[next] != server[i] || random_below(3) == 0))
                next++;
            snprintf(id, sizeof id, "%u", i);
            op.compute = (double)(1 + random_below(3));
            op.pass = GRAPH_TASK;
            if (random_below(4))
                op.extra = extra;
            snprintf(extra, sizeof extra, "\thold=%g", 0.1 * (double)random_below(100));
            if (next < OPS) {
                snprintf(extra + strlen(extra), 20, "\trelease=%u", next);
                snprintf(to, sizeof to, "%u", next);
                assert_true(graph_add_dep(&graph, rec_str(id), rec_str(to), 1, false, "",
                                          0, &err));
            }
            assert_true(graph_add_op(&graph, &op, NULL, &err));
        }
        if (!graph_close(&graph, &err) || !sim_step(&on, &observer, &step, &err))
            fail_msg("%s", err.text);
        for (uint32_t s = 0; s < SERVERS; s++) {
            double most = 0;
            for (uint32_t i = 0; i < OPS; i++)
                most = fmax(most, held_at(&graph, &watch, server, s, watch.end[i]));
            assert_near(peak[s], memory[s] + most, 1e-9);
            assert_near(watch.most[s], most, 1e-9);
            assert_true(watch.bytes[s] == 0);
        }
        assert_true(step.peak_memory == fmax(peak[0], peak[1]));
        assert_true(step.peak_memory == peak[step.peak_server]);
        if (step.peak_op != GRAPH_NONE) {
            double then = watch.end[step.peak_op];
            assert_int_equal(server[step.peak_op], step.peak_server);
            assert_near(step.peak_memory,
                        memory[step.peak_server] +
                            held_at(&graph, &watch, server, step.peak_server, then),
                        1e-9);
        }
        for (size_t i = 0; i < graph.nholds; i++)
            *(graph.hold[i].release == GRAPH_NONE ? &lasting : &freed) += 1;
        graph_free(&graph);
    }
    assert_true(lasting > 100 && freed > 100);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_chained),
        cmocka_unit_test(test_random_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
