/* Planners against trying everything: the exact one finds what is best of all
 * configurations of random small pipelines, each simulated whole; the published one never
 * finds better. */
#include "unit.h"

#include "rampipe/serve.h"

enum { QUERIES = 120, REPLICAS = 2, STAGES_MAX = 4 };

static struct serve_pipeline
read_pipeline(const char *text)
{
    static const char *const file[] = {"in"};
    struct serve_pipeline pipeline = {0};
    struct rec_error err;
    struct rec_reader *reader;
    struct rec rec;
    int status;
    write_file("in", text, strlen(text));
    assert_non_null(reader = rec_reader_open(file, 1, NULL, &err));
    while ((status = rec_next(reader, &rec, &err)) > 0)
        assert_int_equal(serve_pipeline_take(&pipeline, reader, &rec, &err), 1);
    assert_int_equal(status, 0);
    rec_reader_close(reader);
    assert_true(serve_pipeline_seal(&pipeline, &err));
    return pipeline;
}

/* Up to four stages, some without a model, edges forward only, some with a probability;
 * two kinds of hardware, batches of 1 and 4. */
static void
draw_pipeline(char *text, size_t room)
{
    size_t n = 2 + random_below(STAGES_MAX - 1), at = 0, models = 0;
    for (size_t h = 0; h < 2; h++)
        at += (size_t)snprintf(text + at, room - at, "price\th%zu\t%d\n", h,
                               1 + (int)random_below(4));
    for (size_t m = 0; m < n; m++)
        for (size_t h = 0; h < 2; h++) {
            double rate = 5 + (double)random_below(20);
            at += (size_t)snprintf(
                text + at, room - at,
                "profile\tm%zu\th%zu\t1\t1\t%g\nprofile\tm%zu\th%zu\t4\t1\t%g\n", m, h,
                rate, m, h, rate * (1 + (double)random_below(40) / 10));
        }
    for (size_t s = 0; s < n; s++) {
        bool passes = models >= 3 || (s > 0 && random_below(5) == 0);
        models += !passes;
        at += (size_t)snprintf(text + at, room - at,
                               passes ? "stage\ts%zu\t-\n" : "stage\ts%zu\tm%zu\n", s, s);
    }
    for (size_t s = 0; s < n; s++)
        for (size_t t = s + 1; t < n; t++)
            if (random_below(2))
                at += (size_t)snprintf(text + at, room - at, "edge\ts%zu\ts%zu%s\n", s, t,
                                       random_below(4) ? "" : "\tp=0.5");
    assert_true(at < room);
}

/* ---- trying everything --------------------------------------------------- */

struct sample {
    double slo;
    uint64_t late;
};

static bool
count_late(void *context, const struct serve_reply *reply, struct rec_error *err)
{
    struct sample *sample = context;
    (void)err;
    sample->late += reply->finish - reply->arrival > sample->slo;
    return true;
}

struct trial {
    const struct serve_pipeline *pipeline;
    const double *arrival;
    const struct serve_objective *objective;
    struct serve_config config[STAGES_MAX];
    double share[STAGES_MAX]; /* of the queries that go there */
    double best_cost, best_rate;
    uint64_t tried;
};

static void
simulate(struct trial *trial, double cost, double rate)
{
    const struct serve_objective *o = trial->objective;
    struct sample sample = {o->slo, 0};
    struct serve_sink sink = {count_late, NULL, &sample};
    struct rec_error err;
    struct serve_sim *sim =
        serve_sim_new(trial->pipeline, trial->config, &o->options, &sink, &err);
    assert_non_null(sim);
    for (size_t i = 0; i < QUERIES; i++)
        assert_true(serve_sim_query(sim, trial->arrival[i], rec_str("q"), &err));
    assert_true(serve_sim_advance(sim, INFINITY, &err));
    for (uint32_t s = 0; s < trial->pipeline->nstages; s++)
        trial->share[s] = (double)serve_sim_usage(sim, s).queries / QUERIES;
    serve_sim_free(sim);
    trial->tried++;
    if (sample.late > QUERIES / 10 || cost > o->budget)
        return;
    if (o->goal == SERVE_LEAST_COST
            ? cost < trial->best_cost
            : rate > trial->best_rate ||
                  (rate == trial->best_rate && cost < trial->best_cost)) {
        trial->best_cost = cost;
        trial->best_rate = rate;
    }
}

static void
try_all(struct trial *trial, uint32_t s, double cost, double rate)
{
    const struct serve_pipeline *p = trial->pipeline;
    if (s == p->nstages) {
        simulate(trial, cost, rate);
        return;
    }
    if (p->stage[s].model == REC_NONE) {
        try_all(trial, s + 1, cost, rate);
        return;
    }
    for (uint32_t i = 0; i < p->nprofiles; i++)
        for (size_t k = 0;
             p->profile[i].model == p->stage[s].model && k < p->profile[i].n; k++)
            for (uint32_t r = 1; r <= REPLICAS; r++) {
                uint32_t batch = (uint32_t)p->profile[i].point[k].batch;
                double one = r * serve_throughput(&p->profile[i], SERVE_BATCH, batch);
                trial->config[s] =
                    (struct serve_config){.profile = i, .batch = batch, .replicas = r};
                try_all(trial, s + 1, cost + r * p->price[p->profile[i].hardware],
                        fmin(rate, one / trial->share[s]));
            }
}

/* ---- the tests ----------------------------------------------------------- */

static void
draw_arrivals(double *arrival)
{
    double time = 0;
    for (size_t i = 0; i < QUERIES; i++) {
        arrival[i] = time;
        if (random_below(3)) /* a third comes at once with others */
            time += (double)random_below(1000) / 4000;
    }
}

/* Both goals; of throughput within twice the least cost. */
static void
compare(const struct serve_pipeline *pipeline, const double *arrival, double slo,
        enum serve_goal goal, double budget, double *least, unsigned *found)
{
    struct serve_objective objective = {.goal = goal,
                                        .slo = slo,
                                        .percentile = 90,
                                        .budget = budget,
                                        .replicas = REPLICAS,
                                        .options = {.drop_after = INFINITY, .seed = 7}};
    struct trial trial = {.pipeline = pipeline,
                          .arrival = arrival,
                          .objective = &objective,
                          .best_cost = INFINITY,
                          .best_rate = -INFINITY};
    struct serve_plan plan = {0}, greedy = {0};
    struct rec_error err = {.code = REC_OK};
    struct serve_planner *planner;
    bool ok, some;

    for (uint32_t s = 0; s < pipeline->nstages; s++) {
        trial.share[s] = 1;
        for (uint32_t i = (uint32_t)pipeline->nprofiles; i-- > 0;)
            if (pipeline->profile[i].model == pipeline->stage[s].model)
                trial.config[s] =
                    (struct serve_config){.profile = i, .batch = 1, .replicas = 1};
    }
    simulate(&trial, INFINITY, 0); /* for the shares */
    try_all(&trial, 0, 0, INFINITY);
    *least = trial.best_cost;
    some = !isinf(trial.best_cost);
    *found += some;

    planner = serve_planner_new(pipeline, arrival, QUERIES, &objective, &err);
    assert_non_null(planner);
    if (serve_plan_greedily(planner, &greedy, &err)) {
        assert_true(some);
        assert_true(goal == SERVE_LEAST_COST
                        ? greedy.cost >= trial.best_cost - 1e-9
                        : greedy.throughput <= trial.best_rate * (1 + 1e-12));
    } else
        assert_int_equal(err.code, REC_NO);
    serve_planner_free(planner);

    /* from nothing, so that the search must find it by itself */
    planner = serve_planner_new(pipeline, arrival, QUERIES, &objective, &err);
    ok = serve_plan_exactly(planner, &plan, &err);
    assert_int_equal(ok, some);
    if (ok && goal == SERVE_LEAST_COST) {
        assert_near(plan.cost, trial.best_cost, 1e-9);
        assert_near(plan.bound, trial.best_cost, 1e-9);
    } else if (ok) {
        assert_near(plan.throughput, trial.best_rate, 1e-9 * trial.best_rate);
        assert_near(plan.cost, trial.best_cost, 1e-9);
    } else
        assert_int_equal(err.code, REC_NO);
    assert_true(serve_planner_simulations(planner) < trial.tried);
    serve_planner_free(planner);

    /* and from what the published planner found */
    if (some && greedy.config) {
        planner = serve_planner_new(pipeline, arrival, QUERIES, &objective, &err);
        assert_true(serve_plan_exactly(planner, &greedy, &err));
        assert_near(goal == SERVE_LEAST_COST ? greedy.cost : greedy.throughput,
                    goal == SERVE_LEAST_COST ? trial.best_cost : trial.best_rate, 1e-9);
        serve_planner_free(planner);
    }
    serve_plan_free(&greedy);
    serve_plan_free(&plan);
}

static void
test_against_all(void **state)
{
    unsigned found = 0, pipelines = 40;
    double arrival[QUERIES], least, rate;
    char text[4000];
    (void)state;
    for (unsigned i = 0; i < pipelines; i++) {
        struct serve_pipeline pipeline;
        double slo = 0.1 + (double)random_below(100) / 100;
        draw_pipeline(text, sizeof text);
        pipeline = read_pipeline(text);
        draw_arrivals(arrival);
        compare(&pipeline, arrival, slo, SERVE_LEAST_COST, INFINITY, &least, &found);
        if (!isinf(least))
            compare(&pipeline, arrival, slo, SERVE_MOST_THROUGHPUT, 1.5 * least, &rate,
                    &found);
        serve_pipeline_free(&pipeline);
    }
    assert_true(found >= pipelines / 2); /* most of them have a plan, twice */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
