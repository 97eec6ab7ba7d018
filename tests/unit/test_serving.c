/* Serving: queues whose figures are known, laws that hold of any pipeline. */
#include "unit.h"

#include "rampipe/serve.h"

static void
read_pipeline(struct serve_pipeline *pipeline, const char *text)
{
    static const char *const file[] = {"in"};
    struct rec_error err;
    struct rec rec;
    struct rec_reader *reader;
    int status;
    write_file("in", text, strlen(text));
    *pipeline = (struct serve_pipeline){0};
    assert_non_null(reader = rec_reader_open(file, 1, NULL, &err));
    while ((status = rec_next(reader, &rec, &err)) > 0)
        assert_int_equal(serve_pipeline_take(pipeline, reader, &rec, &err), 1);
    assert_int_equal(status, 0);
    if (!serve_pipeline_seal(pipeline, &err) ||
        !serve_pipeline_configured(pipeline, &err))
        fail_msg("%s", err.text);
    rec_reader_close(reader);
}

enum { STAGES = 8, QUERIES = 200000 };

/* What was seen of queries that are called 0, 1, 2, ...; of stages, that are called 0, 1,
 * ... */
struct seen {
    size_t replies, drops, visits[STAGES];
    double latest, waited[STAGES], busy[STAGES], enqueued[STAGES];
    double wait[QUERIES]; /* of the stage 0 */
    double arrival[QUERIES], finish[QUERIES];
    bool been[QUERIES][STAGES];
};

static struct seen seen;

static size_t
number_of(struct rec_str id)
{
    uint64_t number;
    assert_true(rec_parse_uint(id, &number));
    return number;
}

static bool
see_reply(void *context, const struct serve_reply *reply, struct rec_error *err)
{
    size_t q = number_of(reply->id);
    (void)context;
    (void)err;
    assert_true(reply->finish >= seen.latest && reply->finish >= reply->arrival);
    seen.latest = reply->finish;
    seen.arrival[q] = reply->arrival;
    seen.finish[q] = reply->finish;
    if (reply->dropped)
        seen.drops++;
    else
        seen.replies++;
    return true;
}

static bool
see_visit(void *context, const struct serve_visit *visit, struct rec_error *err)
{
    size_t q = number_of(visit->id), s = (size_t)(*visit->stage - '0');
    (void)context;
    (void)err;
    assert_false(seen.been[q][s]); /* each stage once */
    seen.been[q][s] = true;
    seen.visits[s]++;
    seen.waited[s] += visit->started - visit->enqueued;
    seen.busy[s] += (visit->finished - visit->started) / visit->batch;
    if (s == 0)
        seen.wait[q] = visit->started - visit->enqueued;
    return true;
}

static struct serve_sim *
start(const struct serve_pipeline *pipeline, double drop_after, double warmup)
{
    static const struct serve_sink sink = {see_reply, see_visit, NULL};
    struct serve_options options = {SERVE_BATCH, drop_after, warmup, 1, 1};
    struct rec_error err;
    struct serve_sim *sim = serve_sim_new(pipeline, NULL, &options, &sink, &err);
    assert_non_null(sim);
    seen = (struct seen){.latest = 0};
    return sim;
}

static void
put_query(struct serve_sim *sim, size_t q, double time)
{
    char id[24];
    struct rec_error err;
    snprintf(id, sizeof id, "%zu", q);
    assert_true(serve_sim_query(sim, time, rec_str(id), &err));
}

static void
end(struct serve_sim *sim)
{
    struct rec_error err;
    assert_true(serve_sim_advance(sim, INFINITY, &err));
}

/* Queries at random times, `rate` a second, or every 1/rate seconds. */
static void
put_queries(struct serve_sim *sim, size_t n, double rate, bool even)
{
    double time = 0;
    random_state = 7;
    for (size_t q = 0; q < n; q++) {
        time += even ? 1 / rate : -log(1 - (double)(random64() >> 11) / 0x1p53) / rate;
        put_query(sim, q, time);
    }
    end(sim);
}

/* ---- queues of one stage ------------------------------------------------- */

/* The mean wait of all queries is `want`, by 4.5 standard errors, which are those of 50
 * means of as many queries, one after the other, and are small. */
static void
check_mean_wait(double want)
{
    enum { GROUPS = 50, EACH = QUERIES / GROUPS };
    double mean = 0, square = 0, error;
    for (size_t g = 0; g < GROUPS; g++) {
        double sum = 0;
        for (size_t q = g * EACH; q < (g + 1) * EACH; q++)
            sum += seen.wait[q];
        mean += sum / EACH / GROUPS;
        square += sum / EACH * (sum / EACH) / GROUPS;
    }
    error = sqrt((square - mean * mean) / (GROUPS - 1));
    assert_true(error < 0.05 * want);
    if (fabs(mean - want) > 4.5 * error)
        fail_msg("mean wait %g, not %g, standard error %g", mean, want, error);
}

enum { STATES = 250 };

static void
poisson(double mean, double chance[STATES])
{
    chance[0] = exp(-mean);
    for (size_t k = 1; k < STATES; k++)
        chance[k] = chance[k - 1] * mean / (double)k;
}

/* Adds a share of a queue of n to which so many more come. */
static void
add_shifted(double to[STATES], size_t n, double share, const double chance[STATES])
{
    for (size_t k = 0; n + k < STATES; k++)
        to[n + k] += share * chance[k];
}

/*
 * Poisson arrivals of rate l, one replica, which takes min(K, b) of K that wait and is
 * busy for s(n) with n. N that wait when it is done are a Markov chain: it waits for the
 * first query, if N = 0, then for the delay d, in which Poisson(l d) come, so K = max(N,
 * 1) + that; N' = K - n + Poisson(l s(n)). In a cycle of [N = 0] / l + d + s(n) seconds
 * the queue holds max(N, 1) d + l d^2 / 2, then (K - n) s + l s^2 / 2 query-seconds. By
 * renewal and Little, the mean wait is the mean of those, by that of the cycle and by l.
 * (Without delay this is Bailey's queue, with b = 1 Pollaczek and Khinchine's.)
 */
static double
bulk_wait(double l, size_t b, double d, const double s[])
{
    static double here[STATES], taken[STATES], next[STATES], during[STATES],
        after[9][STATES];
    double area = 0, cycle = 0;
    memset(here, 0, sizeof here);
    here[0] = 1;
    poisson(l * d, during);
    for (size_t n = 1; n <= b; n++)
        poisson(l * s[n], after[n]);
    for (int round = 0; round < 1000; round++) {
        memset(taken, 0, sizeof taken);
        memset(next, 0, sizeof next);
        for (size_t n = 0; n < STATES; n++)
            add_shifted(taken, n ? n : 1, here[n], during);
        for (size_t k = 1; k < STATES; k++)
            add_shifted(next, k < b ? 0 : k - b, taken[k], after[k < b ? k : b]);
        memcpy(here, next, sizeof here);
    }
    for (size_t n = 0; n < STATES; n++) {
        area += here[n] * ((double)(n ? n : 1) * d + l * d * d / 2);
        cycle += here[n] * ((n ? 0 : 1 / l) + d);
    }
    for (size_t k = 1; k < STATES; k++) {
        size_t n = k < b ? k : b;
        area += taken[k] * ((double)(k - n) * s[n] + l * s[n] * s[n] / 2);
        cycle += taken[k] * s[n];
    }
    return area / cycle / l;
}

/*
 * M/D/c (Crommelin 1932): who is served at t is gone at t + D, who comes meanwhile is
 * not, so those in the system at t + D are max(N - c, 0) + Poisson(l D). Its stationary
 * distribution is that at any time; the queue is what is beyond c, and Little.
 */
static double
crommelin_wait(double l, double D, size_t c)
{
    static double here[STATES], next[STATES], during[STATES];
    double queue = 0;
    memset(here, 0, sizeof here);
    here[0] = 1;
    poisson(l * D, during);
    for (int round = 0; round < 1000; round++) {
        memset(next, 0, sizeof next);
        for (size_t n = 0; n < STATES; n++)
            add_shifted(next, n > c ? n - c : 0, here[n], during);
        memcpy(here, next, sizeof here);
    }
    for (size_t n = c; n < STATES; n++)
        queue += here[n] * (double)(n - c);
    return queue / l;
}

/* One stage of batches up to `batch`, `replicas`, `delay`; a batch of 1 takes 0.1 s, of 4
 * 0.16 s; y(2), y(3) on the line between 0.1 and 0.04. */
static void
serve_one(size_t batch, size_t replicas, double delay, double rate, bool even)
{
    struct serve_pipeline pipeline;
    struct serve_sim *sim;
    char text[300];
    snprintf(text, sizeof text,
             "profile\tm\th\t1\t1\t10\nprofile\tm\th\t4\t1\t25\nstage\t0\tm\n"
             "config\t0\th\t%zu\t%zu\tdelay=%.17g\n",
             batch, replicas, delay);
    read_pipeline(&pipeline, text);
    sim = start(&pipeline, INFINITY, 0);
    put_queries(sim, QUERIES, rate, even);
    assert_int_equal(seen.replies, QUERIES);
    serve_sim_free(sim);
    serve_pipeline_free(&pipeline);
}

static const double seconds[] = {0, 0.1, 2 * 0.08, 3 * 0.06, 0.16};

static void
one_replica_is_m_d_1(void **state)
{
    (void)state;
    for (double rho = 0.3; rho < 0.9; rho += 0.25) {
        double want = rho * 0.1 / (2 * (1 - rho)), at_once = 0;
        serve_one(1, 1, 0, rho / 0.1, false);
        check_mean_wait(want);
        assert_near(bulk_wait(rho / 0.1, 1, 0, seconds), want, 1e-9);
        assert_near(crommelin_wait(rho / 0.1, 0.1, 1), want, 1e-9);
        /* Poisson arrivals see time averages: 1 - rho find it idle. Neighbours agree, so
         * the error is larger than that of independent ones, less than five times. */
        for (size_t q = 0; q < QUERIES; q++)
            at_once += seen.wait[q] == 0;
        assert_near(at_once / QUERIES, 1 - rho, 5 * 4 * sqrt(rho * (1 - rho) / QUERIES));
    }
}

static void
replicas_are_m_d_c(void **state)
{
    (void)state;
    /* Tables of M/D/2 have a mean wait of 0.177 D at a load of 0.5, 1/2 of M/M/2's 1/3,
     * and some more. */
    assert_near(crommelin_wait(10, 0.1, 2) / 0.1, 0.177, 0.001);
    serve_one(1, 2, 0, 16, false);
    check_mean_wait(crommelin_wait(16, 0.1, 2));
    serve_one(1, 5, 0, 45, false);
    check_mean_wait(crommelin_wait(45, 0.1, 5));
}

static void
batches_are_bailey_s_queue(void **state)
{
    (void)state;
    serve_one(4, 1, 0, 20, false);
    check_mean_wait(bulk_wait(20, 4, 0, seconds));
    serve_one(3, 1, 0, 8, false);
    check_mean_wait(bulk_wait(8, 3, 0, seconds));
    serve_one(4, 1, 0.03, 16, false);
    check_mean_wait(bulk_wait(16, 4, 0.03, seconds));
}

/* Even arrivals, deterministic service: nobody waits while there is room, and each waits
 * D - 1/l longer than the one before where there is not. */
static void
even_arrivals_are_d_d_1(void **state)
{
    (void)state;
    serve_one(1, 1, 0, 9.9, true);
    for (size_t q = 0; q < QUERIES; q++)
        assert_true(seen.wait[q] == 0);
    serve_one(1, 1, 0, 12.5, true);
    for (size_t q = 0; q < QUERIES; q++)
        assert_near(seen.wait[q], (double)q * (0.1 - 0.08), 1e-6);
}

/* ---- several stages ------------------------------------------------------ */

#define ABC "profile\ta\th\t1\t1\t10\nprofile\tb\th\t1\t1\t8\nprofile\tc\th\t1\t1\t20\n"

/* Friedman 1965: how long a query is in a row of stages with constant times does not
 * depend on their order; behind a stage nobody waits at one that is as fast, or
 * faster. */
static void
the_order_of_a_row_does_not_matter(void **state)
{
    static const char *const row[] = {
        ABC "stage\t0\ta\nstage\t1\tb\nstage\t2\tc\n",
        ABC "stage\t0\tc\nstage\t1\ta\nstage\t2\tb\n",
        ABC "stage\t0\tb\nstage\t1\tb\nstage\t2\tb\n",
    };
    enum { N = 5000 };
    static double first[N];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct serve_pipeline pipeline;
        struct serve_sim *sim;
        char text[500];
        snprintf(text, sizeof text,
                 "%sedge\t0\t1\nedge\t1\t2\nconfig\t0\th\t1\t1\nconfig\t1\th\t1\t1\n"
                 "config\t2\th\t1\t1\n",
                 row[i]);
        read_pipeline(&pipeline, text);
        sim = start(&pipeline, INFINITY, 0);
        put_queries(sim, N, 7, false);
        for (size_t q = 0; q < N; q++) {
            double latency = seen.finish[q] - seen.arrival[q];
            if (i == 0)
                first[q] = latency;
            else if (i == 1)
                assert_near(latency, first[q], 1e-9);
            else /* two more of the slowest, in place of the others, without waiting */
                assert_near(latency, first[q] + 2 * 0.125 - 0.1 - 0.05, 1e-9);
        }
        if (i == 2)
            assert_near(seen.waited[1] + seen.waited[2], 0, 1e-9);
        serve_sim_free(sim);
        serve_pipeline_free(&pipeline);
    }
}

/* 0 (0.1 s) and 1 (0.125 s) side by side, then 2 (0.05 s). */
#define FORK                                                              \
    ABC "stage\t0\ta\nstage\t1\tb\nstage\t2\tc\nedge\t0\t2\nedge\t1\t2\n" \
        "config\t0\th\t1\t9\nconfig\t1\th\t1\t9\nconfig\t2\th\t1\t9\n"

static void
a_join_waits_for_the_slower_branch(void **state)
{
    struct serve_pipeline pipeline;
    struct serve_sim *sim;
    (void)state;
    read_pipeline(&pipeline, FORK);
    sim = start(&pipeline, INFINITY, 0);
    put_queries(sim, 1000, 50, true);
    for (size_t q = 0; q < 1000; q++)
        assert_near(seen.finish[q] - seen.arrival[q], 0.125 + 0.05, 1e-9);
    assert_int_equal(seen.visits[2], 1000);
    serve_sim_free(sim);
    serve_pipeline_free(&pipeline);
}

/* Of n queries a share p takes an edge, by 4 standard errors; those that take another
 * edge do so or not whether they take this one; and which they are does not depend on how
 * stages are run. */
static void
edges_are_taken_by_their_share(void **state)
{
    static const char *const how[] = {"1\t1", "1\t9"};
    enum { N = 20000 };
    static bool been[N][3];
    double p = 0.3, r = 0.8;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct serve_pipeline pipeline;
        struct serve_sim *sim;
        size_t both = 0;
        char text[500];
        snprintf(text, sizeof text,
                 ABC "stage\t0\ta\nstage\t1\tb\nstage\t2\tc\nedge\t0\t1\tp=%g\n"
                     "edge\t0\t2\tp=%g\nconfig\t0\th\t%s\nconfig\t1\th\t1\t1\n"
                     "config\t2\th\t1\t1\n",
                 p, r, how[i]);
        read_pipeline(&pipeline, text);
        sim = start(&pipeline, INFINITY, 0);
        put_queries(sim, N, 8, false);
        assert_int_equal(seen.replies, N);
        assert_near((double)seen.visits[1] / N, p, 4 * sqrt(p * (1 - p) / N));
        assert_near((double)seen.visits[2] / N, r, 4 * sqrt(r * (1 - r) / N));
        for (size_t q = 0; q < N; q++) {
            both += seen.been[q][1] && seen.been[q][2];
            for (size_t s = 0; s < 3; s++)
                if (i == 0)
                    been[q][s] = seen.been[q][s];
                else
                    assert_int_equal(been[q][s], seen.been[q][s]);
        }
        assert_near((double)both / N, p * r, 4 * sqrt(p * r * (1 - p * r) / N));
        serve_sim_free(sim);
        serve_pipeline_free(&pipeline);
    }
}

/* ---- laws ---------------------------------------------------------------- */

/* Whatever is dropped: every query ends once; Little's law, the integral of the queue is
 * the sum of waits (of those who were dropped, too, so here only an inequality); the
 * integral of busy replicas is the sum of service times; never more than there are. */
static void
nothing_is_lost(void **state)
{
    (void)state;
    for (double drop_after = 0.1; drop_after < 1e3; drop_after *= 3) {
        struct serve_pipeline pipeline;
        struct serve_sim *sim;
        double span;
        read_pipeline(&pipeline, FORK);
        pipeline.stage[0].config.replicas = 1;
        sim = start(&pipeline, drop_after, 0);
        put_queries(sim, 5000, 11, false);
        assert_int_equal(seen.replies + seen.drops, 5000);
        assert_true(drop_after > 60 ? seen.drops == 0 : seen.drops > 0);
        span = serve_sim_now(sim) - serve_sim_begin(sim);
        for (uint32_t s = 0; s < 3; s++) {
            struct serve_usage usage = serve_sim_usage(sim, s);
            assert_int_equal(usage.queries, seen.visits[s]);
            assert_near(usage.busy, seen.busy[s], 1e-6);
            assert_true(usage.waiting >= seen.waited[s] - 1e-6);
            if (seen.drops == 0)
                assert_near(usage.waiting, seen.waited[s], 1e-6);
            assert_near(usage.replicas, span * pipeline.stage[s].config.replicas, 1e-6);
            assert_true(usage.busy <= usage.replicas);
        }
        serve_sim_free(sim);
        serve_pipeline_free(&pipeline);
    }
}

/* Stage 0 has so many replicas from a time on. */
static void
change(struct serve_sim *sim, uint32_t replicas, double time)
{
    struct rec_error err;
    struct serve_change change = {
        .replicas = replicas, .batch = 1, .ordered = time, .time = time};
    assert_true(serve_sim_change(sim, &change, &err));
}

/*
 * One replica of 0.1 s; queries at 1, 1, 1, 2; a second replica from 0.5 s, before there
 * is anything, to 1.05 s, when it is busy till 1.1 s; four from 3 s, when all is done,
 * on. Replica-seconds from the first query to the end, at 3 s: 2 until 1.1 s, then 1,
 * four for no time. The third query waits 0.1 s. From 1.05 s on: 0.1 - 0.05 s less of
 * each.
 */
static void
usage_is_of_the_run(void **state)
{
    (void)state;
    for (int warm = 0; warm < 2; warm++) {
        struct serve_pipeline pipeline;
        struct serve_sim *sim;
        struct serve_usage usage;
        double less = warm ? 0.05 : 0;
        read_pipeline(&pipeline, ABC "stage\t0\ta\nconfig\t0\th\t1\t1\n");
        sim = start(&pipeline, INFINITY, warm ? 1.05 : 0);
        change(sim, 2, 0.5);
        for (size_t q = 0; q < 3; q++)
            put_query(sim, q, 1);
        change(sim, 1, 1.05);
        put_query(sim, 3, 2);
        end(sim);
        change(sim, 4, 3);
        usage = serve_sim_usage(sim, 0);
        assert_true(serve_sim_begin(sim) == 1 && serve_sim_now(sim) == 3);
        assert_near(usage.replicas, 2 * (0.1 - less) + 1.9, 1e-12);
        assert_near(usage.busy, 2 * (0.1 - less) + 0.1 + 0.1, 1e-12);
        assert_near(usage.waiting, 0.1 - less, 1e-12);
        assert_int_equal(usage.longest, 1);
        assert_int_equal(seen.replies, warm ? 1 : 4);
        serve_sim_free(sim);
        serve_pipeline_free(&pipeline);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_replica_is_m_d_1),
        cmocka_unit_test(replicas_are_m_d_c),
        cmocka_unit_test(batches_are_bailey_s_queue),
        cmocka_unit_test(even_arrivals_are_d_d_1),
        cmocka_unit_test(the_order_of_a_row_does_not_matter),
        cmocka_unit_test(a_join_waits_for_the_slower_branch),
        cmocka_unit_test(edges_are_taken_by_their_share),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(usage_is_of_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
