/* Any bytes as a log of a spot cluster, strict and repaired; what is read is fitted, and
 * trained on by all rules. The same bytes as a model and as a table. */
#include "fuzz.h"

#include "rampipe/train.h"

#include <math.h>

/* a = b, within rounding of sums of about `size`. */
static void
same(double a, double b, double size)
{
    if (!(fabs(a - b) <= 1e-6 + 1e-9 * fabs(size)))
        abort();
}

static void
check(const double seconds[], const double instance_seconds[], const double by_state[],
      double time)
{
    double sum = 0, accounts = 0, states = 0;
    for (int i = 0; i < TRAIN_NACCOUNTS; i++) {
        sum += seconds[i];
        accounts += instance_seconds[i];
    }
    for (int i = 0; i < TRAIN_NSTATES; i++)
        states += by_state[i];
    same(sum, time, time);
    same(accounts, states, states);
}

static void
train_elastic(const struct spot_trace *trace, enum train_elastic_rules rules)
{
    static double size[] = {16, 64}, seconds[] = {18, 8};
    const struct train_elastic_profile profile = {
        .size = size, .seconds = seconds, .n = 2, .reconfigure = 88, .checkpoint = 89};
    const struct train_elastic_options options = {
        .profile = &profile,
        .prepare = 180,
        .depth = 16,
        .capacity = 64,
        .seed = 1,
        .start = trace->instances < 64 ? trace->instances : 64,
        .begin = trace->start,
        .end = trace->end,
        .rules = rules,
        .tick = rules == TRAIN_ELASTIC_SANE ? 0 : 5};
    const struct train_elastic_sink sink = {0};
    struct train_elastic_result r;
    struct rec_error err;
    struct train_elastic *e = train_elastic_new(&options, &sink, &err);
    bool ok = e != NULL;
    for (size_t i = 0; ok && i < trace->n; i++)
        ok = train_elastic_take(e, &trace->event[i], &err);
    if (ok && train_elastic_finish(e, trace->end, &r, &err)) {
        check(r.seconds, r.instance_seconds, r.by_state, r.end - r.begin);
        if ((int64_t)r.iterations != r.steps + r.lost)
            abort();
    }
    train_elastic_free(e);
}

static void
train_redundant(const struct spot_trace *trace)
{
    static struct train_redundant_speed speed[] = {{3, 1, 4000}, {3, 2, 2000}};
    const struct train_redundant_profile profile = {.name = "x",
                                                    .samples = 1,
                                                    .stages = 3,
                                                    .creation_ms = 45000,
                                                    .global_ms = 30000,
                                                    .local_ms = 20000,
                                                    .slowdown = 1.5,
                                                    .speed = speed,
                                                    .nspeeds = 2};
    const struct train_redundant_options options = {
        .profile = &profile,
        .price = 1,
        .seed = 1,
        .begin = trace->start,
        .end = trace->end,
        .start = trace->instances < 64 ? trace->instances : 64};
    const struct train_redundant_sink sink = {0};
    struct train_redundant_result r;
    struct rec_error err;
    struct train_redundant *run = train_redundant_new(&options, &sink, &err);
    bool ok = run != NULL;
    for (size_t i = 0; ok && i < trace->n; i++)
        ok = train_redundant_take(run, &trace->event[i], &err);
    if (ok && train_redundant_finish(run, trace->end, &r, &err))
        check(r.seconds, r.instance_seconds, r.by_state, r.end - r.begin);
    train_redundant_free(run);
}

static bool
ignore(void *context, const struct spot_event *event, struct rec_error *err)
{
    (void)context;
    (void)err;
    if (event->count == 0)
        abort();
    return true;
}

static void
draw(const struct spot_model *model)
{
    struct rec_error err;
    for (enum spot_process p = SPOT_COIN; p <= SPOT_EMPIRICAL; p++) {
        struct spot_drawing drawing = {.process = p,
                                       .empirical_counts = p % 2,
                                       .minutes = 100,
                                       .interval = 60,
                                       .seed = 1,
                                       .limit = {1e6, NULL}};
        if (model->chance_preempt_minute < 100 && model->chance_add_minute < 100 &&
            !spot_draw(model, &drawing, ignore, NULL, &err) && err.code != REC_USAGE)
            abort();
    }
}

/* More instances say nothing new. */
static bool
is_small(const struct spot_trace *trace)
{
    uint64_t most = 10000, n = 0;
    for (size_t i = 0; i < trace->n && n <= most; i++)
        n += trace->event[i].count <= most ? trace->event[i].count : most + 1;
    return n <= most;
}

static void
read_log(const char *path, bool repair)
{
    const struct spot_log_options options = {.repair = repair};
    struct spot_trace trace = {0};
    struct spot_model model;
    struct rec_error err;
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &err);

    spot_model_clear(&model);
    if (reader && spot_log_read(reader, &options, &trace, &err)) {
        for (size_t i = 1; i < trace.n; i++)
            if (trace.event[i].time < trace.event[i - 1].time)
                abort();
        if (spot_model_fit(&trace, &model, &err))
            draw(&model);
        /* months of steps say nothing new */
        if (trace.end - trace.start < 1e5) {
            train_elastic(&trace, TRAIN_ELASTIC_SANE);
            train_elastic(&trace, TRAIN_ELASTIC_PUBLISHED);
            train_elastic(&trace, TRAIN_ELASTIC_LATER);
            if (is_small(&trace))
                train_redundant(&trace);
        }
    }
    spot_model_free(&model);
    spot_trace_free(&trace);
    rec_reader_close(reader);
}

/* The same bytes as models, and as the table of a network. */
static void
read_model(const char *path)
{
    struct rec_error err;
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &err);
    struct train_redundant_profile profile;
    struct spot_model model;
    struct rec rec;

    spot_model_clear(&model);
    while (reader && rec_next(reader, &rec, &err) > 0)
        if (rec.type == REC_MODEL && spot_model_read(&model, reader, &rec, &err))
            draw(&model);
    spot_model_free(&model);
    rec_reader_close(reader);
    if (train_redundant_profile_read(&profile, path, &err) && profile.stages == 0)
        abort();
    train_redundant_profile_free(&profile);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    int fd = fuzz_file(bytes, size, path);
    read_log(path, false);
    read_log(path, true);
    read_model(path);
    close(fd);
    return 0;
}
