/* Transformers under parallelism: counts of parameters and operations, schedules of
 * pipelines. */
#include "unit.h"

#include "models.h"
#include "rampipe/parallel.h"

#include <string.h>

enum { FIELDS = 24, LIST = 64 };

/* Opens a file of ../shared/golden/parallel behind its header; NULL: it is not here. */
static FILE *
open_golden(const char *name)
{
    char path[4096], head[1000];
    FILE *file;
    snprintf(path, sizeof path, "%s/../shared/golden/parallel/%s", getenv("ROOT"), name);
    file = fopen(path, "r");
    if (file)
        assert_non_null(fgets(head, sizeof head, file));
    return file;
}

static void
split(char *line, char *field[FIELDS])
{
    char *rest = line;
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < FIELDS; i++) {
        field[i] = strsep(&rest, "\t");
        if (!field[i])
            field[i] = line + strlen(line);
    }
}

/* ---- counts ---------------------------------------------------------------- */

/* A model of model.tsv: id layers hidden heads kv head_dim ffn vocab seq mlp experts topk
 * expert_ffn params published gbs flop flop_full note. (It leaves out Qwen3's norms of
 * queries and keys: 2 x 128 a layer.) */
static struct input_transformer
golden_model(char *field[FIELDS])
{
    bool gelu = strcmp(field[9], "gelu") == 0, gated = strcmp(field[9], "swiglu") == 0;
    return (struct input_transformer){
        .layers = (unsigned)atoi(field[1]),
        .width = (unsigned)atoi(field[2]),
        .heads = (unsigned)atoi(field[3]),
        .kv_heads = (unsigned)atoi(field[4]),
        .head_width = (unsigned)atoi(field[5]),
        .inner = (unsigned)atoi(field[6]),
        .words = (unsigned)atoi(field[7]),
        .positions = gelu ? (unsigned)atoi(field[8]) : 0,
        .experts = (unsigned)atoi(field[10]),
        .experts_used = (unsigned)atoi(field[11]),
        .expert_inner = (unsigned)atoi(field[12]),
        .causal = true,
        .rms = gated,
        .gated = gated,
        .norm_before = true,
        .norm_final = true,
        .head = true,
        .tied = gelu,
        .attention_bias = gelu,
        .output_bias = gelu,
        .mlp_bias = gelu,
    };
}

static double
flops(char *field[FIELDS], double attention, bool again)
{
    struct input_transformer t = golden_model(field);
    struct parallel_style style = {.no_dropout = true};
    struct parallel_model model;
    double n;
    assert_true(parallel_model_make(&t, atof(field[8]), &style, &model, NULL));
    n = parallel_model_flops(&model, atof(field[15]), attention, again);
    if (*field[13] && parallel_model_params(&model) != atof(field[13]))
        fail_msg("%s: %.0f parameters and not %s", field[0],
                 parallel_model_params(&model), field[13]);
    parallel_model_free(&model);
    return n;
}

/* model.tsv: parameters to the unit. Its operations have nine digits, unless they are
 * integers; the note says whether attention counts in full. Those of MPT are its own
 * count, in which each parameter, also of embeddings, costs 6 a token. */
static void
test_counts(void **state)
{
    FILE *file = open_golden("model.tsv");
    char line[4000], *field[FIELDS];
    int rows = 0;
    (void)state;
    if (!file)
        skip();
    while (fgets(line, sizeof line, file)) {
        split(line, field);
        if (!*field[16])
            continue;
        double attention = strstr(field[18], "halved") ? 0.5 : 1;
        double count = flops(field, attention, false);
        if (strncmp(field[0], "model-mpt", 9) == 0)
            count =
                6 * atof(field[13]) * atof(field[8]) +
                12 * atof(field[1]) * atof(field[2]) * atof(field[8]) * atof(field[8]);
        if (fabs(count / atof(field[16]) - 1) >= 1e-8)
            fail_msg("%s: %.12g and not %s", field[0], count, field[16]);
        if (*field[17])
            assert_near(flops(field, attention, true) / atof(field[17]), 1, 1e-8);
        rows++;
    }
    fclose(file);
    assert_true(rows >= 40);
}

/* The published numbers of parameters of all models for which parallel training is
 * modelled. The 18 others are refused: encoders, images, MLPs beside attention. */
static void
test_published(void **state)
{
    const struct parallel_style style = {0};
    const char *path = "config.json";
    size_t counted = 0;
    (void)state;
    for (size_t i = 0; i < NMODELS; i++) {
        struct input_transformer t;
        struct parallel_model model;
        struct rec_error err = {.text = ""};
        char left[INPUT_LEFT_MAX];
        double sequence;
        write_file(path, models[i].config, strlen(models[i].config));
        struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &err);
        assert_non_null(reader);
        assert_true(input_transformer_read(reader, &t, &sequence, left, &err));
        rec_reader_close(reader);
        if (parallel_model_make(&t, sequence, &style, &model, &err)) {
            if (parallel_model_params(&model) != models[i].params)
                fail_msg("%s: %.0f, published %.0f", models[i].name,
                         parallel_model_params(&model), models[i].params);
            parallel_model_free(&model);
            counted++;
        } else if (!strstr(err.text, "is not modelled"))
            fail_msg("%s: %s", models[i].name, err.text);
        input_transformer_free(&t);
    }
    assert_int_equal(counted, NMODELS - 18);
}

/* ---- schedules -------------------------------------------------------------- */

static uint32_t
read_list(const char *text, double *list, uint32_t n)
{
    uint32_t i = 0;
    for (char *end; i < n; i++) {
        list[i] = strtod(text, &end);
        if (end == text)
            break;
        text = *end == ',' ? end + 1 : end;
    }
    return i;
}

/* schedule.tsv: makespan, idle share, and the most chunks in flight of each device. */
static void
test_schedules(void **state)
{
    FILE *file = open_golden("schedule.tsv");
    char line[4000], *field[FIELDS];
    int rows = 0;
    (void)state;
    if (!file)
        skip();
    while (fgets(line, sizeof line, file)) {
        double forward[LIST], backward[LIST], f[8 * LIST], b[8 * LIST], flight[LIST];
        uint32_t inflight[LIST];
        struct parallel_run run = {.inflight = inflight};
        struct rec_error err = {.text = ""};
        split(line, field);
        struct parallel_pipe pipe = {.stages = (uint32_t)atoi(field[2]),
                                     .microbatches = (uint32_t)atoi(field[3]),
                                     .chunks = (uint32_t)atoi(field[4]),
                                     .forward = f,
                                     .backward = b,
                                     .transfer = atof(field[7])};
        assert_true(pipe.stages <= LIST && pipe.chunks <= 8);
        bool one = read_list(field[5], forward, LIST) == 1;
        read_list(field[6], backward, LIST);
        for (uint32_t i = 0; i < pipe.stages * pipe.chunks; i++) {
            f[i] = forward[one ? 0 : i % pipe.stages] / pipe.chunks;
            b[i] = backward[one ? 0 : i % pipe.stages] / pipe.chunks;
        }
        if (!parallel_run(parallel_schedule_find(field[1]), &pipe, &run, &err))
            fail_msg("%s: %s", field[0], err.text);
        assert_near(run.seconds / atof(field[8]), 1, 1e-12);
        assert_near(run.idle, atof(field[9]), 1e-9);
        one = read_list(field[10], flight, LIST) == 1;
        for (uint32_t r = 0; r < pipe.stages; r++)
            assert_int_equal(inflight[r], (uint32_t)flight[one ? 0 : r]);
        rows++;
    }
    fclose(file);
    assert_true(rows >= 60);
}

/* m microbatches through p stages whose forward, backward and weight passes take 1 s
 * each. */
static struct parallel_run
equal_passes(const char *name, uint32_t p, uint32_t m, uint32_t *inflight)
{
    const struct parallel_schedule *schedule = parallel_schedule_find(name);
    double one[2 * LIST], two[2 * LIST];
    uint32_t chunks = schedule->vshape ? 2 : 1;
    struct parallel_pipe pipe = {.stages = p,
                                 .chunks = chunks,
                                 .microbatches = m,
                                 .forward = one,
                                 .backward = schedule->split ? one : two,
                                 .weight = schedule->split ? one : NULL};
    struct parallel_run run = {.inflight = inflight};
    for (int i = 0; i < 2 * LIST; i++) {
        one[i] = 1.0 / chunks;
        two[i] = 2.0 / chunks;
    }
    assert_true(parallel_run(schedule, &pipe, &run, NULL));
    return run;
}

/* Chunks, of forward 1 s and backward 2 s a stage, and any number of microbatches of at
 * least p: groups of n >= p, the last of which is whole or has p, too, so that no device
 * waits for it: m (f + b) + (p - 1) (f + b) / v, and device 0 holds 2 (p - 1) + (v - 1) n
 * + 1 chunks, or all m v. 18 microbatches on 8 stages make two groups of 9. */
static void
test_groups(void **state)
{
    (void)state;
    for (uint32_t p = 2; p <= 8; p++)
        for (uint32_t v = 2; v <= 4; v++)
            for (uint32_t m = p; m < 5 * p; m++) {
                double f[4 * 8], b[4 * 8];
                uint32_t inflight[8], n = p, most;
                struct parallel_pipe pipe = {.stages = p,
                                             .chunks = v,
                                             .microbatches = m,
                                             .forward = f,
                                             .backward = b};
                struct parallel_run run = {.inflight = inflight};
                while (m / n * n != m && m - m / n * n < p)
                    n++;
                assert_true((p != 8 || m != 18 || n == 9) && (m % p != 0 || n == p));
                for (uint32_t i = 0; i < p * v; i++)
                    f[i] = 1.0 / v, b[i] = 2.0 / v;
                assert_true(parallel_run(parallel_schedule_find("interleaved"), &pipe,
                                         &run, NULL));
                assert_near(run.seconds, 3.0 * m + (p - 1) * 3.0 / v, 1e-9);
                most = 2 * (p - 1) + (v - 1) * n + 1;
                assert_int_equal(inflight[0], most < m * v ? most : m * v);
            }
}

static uint32_t
largest(const uint32_t *list, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = list[i] > most ? list[i] : most;
    return most;
}

/* Passes of 1 s, m >= 2p. 1F1B with a whole backward pass of 2 s: each device works 3m,
 * and
 * waits (p - 1) forward and 2 (p - 1) back. With a split one the way back is as long as
 * that forward, (p - 1), and weight gradients fill 2 (p - 1) of the holes: a third of the
 * bubble, in the same memory of p microbatches. In the shape of a V the first input comes
 * to the last device after (p - 1) / 2; little is lost otherwise, in 2p half ones. */
static void
test_zero_bubble(void **state)
{
    uint32_t inflight[LIST];
    (void)state;
    for (uint32_t p = 2; p <= 32; p++)
        for (uint32_t m = 2 * p; m <= 5 * p; m += p - 1) {
            assert_near(equal_passes("1f1b", p, m, inflight).seconds, 3 * (m + p - 1),
                        1e-9);
            assert_near(equal_passes("zero-bubble", p, m, inflight).seconds,
                        3 * m + p - 1, 1e-9);
            assert_int_equal(largest(inflight, p), p);
            double v = equal_passes("v", p, m, inflight).seconds;
            assert_true(v >= 3 * m + (p - 1) / 2.0 - 1e-9);
            assert_true(v <= 3 * m + 0.75 * (p - 1));
            assert_true(largest(inflight, p) <= 2 * p);
        }
}

/* Work in = work out for random times: each device's time is its work and its waiting. A
 * transfer never makes a step shorter, and no schedule is shorter than the busiest device
 * or than the way of one microbatch. */
static void
test_random(void **state)
{
    (void)state;
    for (int n = part_of(2000); n > 0; n--) {
        double f[LIST], b[LIST], w[LIST], last[8];
        const struct parallel_schedule *schedule = parallel_schedules[random_below(5)];
        struct parallel_pipe pipe = {.stages = 1 + (uint32_t)random_below(8),
                                     .forward = f,
                                     .backward = b,
                                     .weight = schedule->split ? w : NULL};
        struct parallel_run run = {.last = last}, slower = {0};
        double work[8] = {0}, way = 0, all = 0, most = 0, end = 0;
        bool many = strcmp(schedule->name, "interleaved") == 0;
        pipe.chunks = schedule->vshape ? 2 : many ? 2 + (uint32_t)random_below(3) : 1;
        pipe.microbatches = 1 + (uint32_t)random_below(6);
        if (many) /* not always whole groups */
            pipe.microbatches =
                pipe.stages * pipe.microbatches + (uint32_t)random_below(pipe.stages);
        for (uint32_t i = 0; i < pipe.stages * pipe.chunks; i++) {
            uint32_t chunk, r = parallel_device(schedule, pipe.stages, i, &chunk);
            assert_int_equal(parallel_stage(schedule, pipe.stages, r, chunk), i);
            f[i] = 1 + (double)random_below(9);
            b[i] = 1 + (double)random_below(9);
            w[i] = 1 + (double)random_below(9);
            way += f[i] + b[i];
            work[r] += (f[i] + b[i] + (schedule->split ? w[i] : 0)) * pipe.microbatches;
        }
        assert_true(parallel_run(schedule, &pipe, &run, NULL));
        for (uint32_t r = 0; r < pipe.stages; r++) {
            all += work[r];
            most = fmax(most, work[r]);
            end = fmax(end, last[r]);
        }
        assert_near(run.idle, 1 - all / (pipe.stages * run.seconds), 1e-12);
        assert_true(run.seconds >= most && run.seconds >= way && run.seconds == end);
        pipe.transfer = 1;
        assert_true(parallel_run(schedule, &pipe, &slower, NULL));
        /* (a V finds another order for other times) */
        assert_true(slower.seconds >= run.seconds || schedule->vshape);
        pipe.busy = pipe.transfer = 20;
        assert_true(parallel_run(schedule, &pipe, &slower, NULL));
        if (pipe.stages > 1) /* the first device sends as many messages */
            assert_true(slower.seconds >= 20 * pipe.microbatches);
    }
}

/* A link that is slower than the stages carries one message after the other: GPipe on two
 * devices takes the way of the first microbatch, and m - 1 messages more each way. */
static void
test_link(void **state)
{
    const double f[] = {1, 2}, b[] = {3, 4};
    struct parallel_pipe pipe = {
        .stages = 2, .chunks = 1, .forward = f, .backward = b, .transfer = 10};
    struct parallel_run run = {0};
    (void)state;
    for (pipe.microbatches = 1; pipe.microbatches < 9; pipe.microbatches++) {
        pipe.busy = 10;
        assert_true(parallel_run(parallel_schedule_find("gpipe"), &pipe, &run, NULL));
        assert_near(run.seconds, 30 + 2 * 10 * (pipe.microbatches - 1.0), 1e-12);
        pipe.busy = 0; /* as long as the slowest stage */
        assert_true(parallel_run(parallel_schedule_find("gpipe"), &pipe, &run, NULL));
        assert_near(run.seconds, 30 + (2 + 4) * (pipe.microbatches - 1.0), 1e-12);
    }
}

/* Many microbatches: what follows from the steady state is what all of them take, one
 * after the other, to twelve digits: stages that are alike, unlike, and so little unlike
 * that the slowest one is felt only after many periods; transfers; a last group of
 * microbatches that is short. The peaks are those of all, too. */
static void
test_steady(void **state)
{
    static const char *const names[] = {"1f1b", "interleaved", "zero-bubble"};
    (void)state;
    for (int n = part_of(300); n > 0; n--) {
        const struct parallel_schedule *schedule =
            parallel_schedule_find(names[random_below(3)]);
        struct parallel_schedule all = *schedule;
        double f[LIST], b[LIST], w[LIST], last[2][8];
        uint32_t inflight[2][8], p = 1 + (uint32_t)random_below(8);
        double unlike = random_below(3) == 0 ? 0 : random_below(2) ? 1 : 1e-5;
        bool many = strcmp(schedule->name, "interleaved") == 0;
        struct parallel_pipe pipe = {.stages = p,
                                     .chunks = many ? 2 + (uint32_t)random_below(3) : 1,
                                     .microbatches = p * (6 + (uint32_t)random_below(60)),
                                     .forward = f,
                                     .backward = b,
                                     .weight = schedule->split ? w : NULL,
                                     .transfer = 0.1 * (double)random_below(5)};
        struct parallel_run run[2] = {{.inflight = inflight[0], .last = last[0]},
                                      {.inflight = inflight[1], .last = last[1]}};
        pipe.microbatches += many ? 0 : (uint32_t)random_below(p);
        if (random_below(2)) { /* messages, one after the other, may take the longest */
            pipe.transfer *= 1 + (double)random_below(20);
            pipe.busy = pipe.transfer / (1 + (double)random_below(2));
        }
        for (uint32_t i = 0; i < p * pipe.chunks; i++) {
            f[i] = 1 + unlike * (double)random_below(10);
            b[i] = 2 + unlike * (double)random_below(10);
            w[i] = 1 + unlike * (double)random_below(10);
        }
        all.periodic = false;
        assert_true(schedule->periodic);
        assert_true(parallel_run(schedule, &pipe, &run[0], NULL));
        assert_true(parallel_run(&all, &pipe, &run[1], NULL));
        assert_near(run[0].seconds / run[1].seconds, 1, 1e-12);
        assert_near(run[0].idle, run[1].idle, 1e-11);
        for (uint32_t r = 0; r < p; r++) {
            assert_near(last[0][r] / last[1][r], 1, 1e-12);
            assert_int_equal(inflight[0][r], inflight[1][r]);
        }
    }
}

/* A thousand million microbatches take no longer than a few: 1F1B of equal stages is (m +
 * p - 1) (f + b). */
static void
test_endless(void **state)
{
    const double f[] = {1, 1, 1, 1}, b[] = {2, 2, 2, 2};
    struct parallel_pipe pipe = {.stages = 4,
                                 .chunks = 1,
                                 .microbatches = 1000000000,
                                 .forward = f,
                                 .backward = b};
    struct parallel_run run = {0};
    (void)state;
    assert_true(parallel_run(parallel_schedule_find("1f1b"), &pipe, &run, NULL));
    assert_near(run.seconds / (3 * 1000000003.0), 1, 1e-14);
}

/* What has no order is refused with what would do. */
static void
test_refused(void **state)
{
    static const struct {
        const char *name;
        uint32_t p, v, m;
        const char *says;
    } bad[] = {
        {"1f1b", 4, 2, 8, "one chunk a device, and not 2"},
        {"interleaved", 4, 2, 3, "as many microbatches as stages: 4 would do, and not 3"},
        {"interleaved", 4, 1, 8, "at least 2 chunks"},
        {"v", 4, 1, 8, "2 chunks a device, and not 1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct parallel_pipe pipe = {
            .stages = bad[i].p, .chunks = bad[i].v, .microbatches = bad[i].m};
        struct rec_error err = {.text = ""};
        struct parallel_run run = {0};
        assert_false(
            parallel_run(parallel_schedule_find(bad[i].name), &pipe, &run, &err));
        assert_non_null(strstr(err.text, bad[i].says));
    }
    assert_null(parallel_schedule_find("2f2b"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),      cmocka_unit_test(test_published),
        cmocka_unit_test(test_schedules),   cmocka_unit_test(test_groups),
        cmocka_unit_test(test_zero_bubble), cmocka_unit_test(test_random),
        cmocka_unit_test(test_link),        cmocka_unit_test(test_steady),
        cmocka_unit_test(test_endless),     cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
