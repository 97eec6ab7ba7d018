/* A kind of station that is not the library's: HACKING, A kind of station. It shows what
 * the engine of lib/serve asks of a kind, and what it does for any kind. */
#include "unit.h"

#include "../../lib/serve/station.h"

/* ---- a kind of station ------------------------------------------------------ */

/* A query is served at once, whatever else is served, and for the time of a batch of one
 * divided by the replicas that there are when it comes (they share the work). */
struct delay {
    struct serve_station station;
    double seconds; /* of one query on one replica */
    struct serve_token inside[8];
    uint32_t n;
};

static bool
open_delay(struct serve_station *station, const struct serve_options *options,
           struct rec_error *err)
{
    struct delay *delay = (struct delay *)station;
    (void)err;
    delay->seconds = serve_seconds(station->profile, options->service, 1);
    station->replicas = station->config->replicas;
    return true;
}

static bool
come_delay(struct serve_sim *sim, struct serve_station *station,
           const struct serve_token *token, uint32_t n, double time,
           struct rec_error *err)
{
    struct delay *delay = (struct delay *)station;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(delay->n < sizeof delay->inside / sizeof *delay->inside);
        delay->inside[delay->n] = (struct serve_token){token[i].query, time};
        station->busy++;
        if (!serve_push(sim, station, time + delay->seconds / station->replicas,
                        SERVE_ENDS, delay->n++, err))
            return false;
    }
    return true;
}

static bool
happen_delay(struct serve_sim *sim, struct serve_station *station,
             enum serve_moment moment, uint32_t slot, double time, struct rec_error *err)
{
    const struct serve_token *token = &((struct delay *)station)->inside[slot];
    assert_int_equal(moment, SERVE_ENDS);
    station->busy--;
    return serve_leave(sim, station, token, 1, token->enqueued, time, err);
}

static bool
change_delay(struct serve_sim *sim, struct serve_station *station,
             const struct serve_change *change, struct rec_error *err)
{
    (void)sim;
    (void)err;
    station->replicas = change->replicas;
    return true;
}

static int closed;

static void
close_delay(struct serve_station *station)
{
    (void)station; /* it owns nothing */
    closed++;
}

static const struct serve_station_kind delays = {
    sizeof(struct delay), open_delay, come_delay, happen_delay, change_delay, close_delay,
};

/* ---- its figures ------------------------------------------------------------- */

/* Two stages in a row: d delays for 0.25 s, b is a replica that takes 0.125 s a query. */
static const char two[] = "profile\td\th\t1\t0.25\t4\nprofile\tb\th\t1\t0.125\t8\n"
                          "stage\td\td\nstage\tb\tb\nedge\td\tb\n"
                          "config\td\th\t1\t1\nconfig\tb\th\t1\t1\n";

static void
read_two(struct serve_pipeline *pipeline)
{
    static const char *const file[] = {"in"};
    struct rec_error err;
    struct rec rec;
    struct rec_reader *reader;
    int status;
    write_file("in", two, strlen(two));
    *pipeline = (struct serve_pipeline){0};
    assert_non_null(reader = rec_reader_open(file, 1, NULL, &err));
    while ((status = rec_next(reader, &rec, &err)) > 0)
        assert_int_equal(serve_pipeline_take(pipeline, reader, &rec, &err), 1);
    assert_int_equal(status, 0);
    assert_true(serve_pipeline_seal(pipeline, &err));
    rec_reader_close(reader);
    assert_ptr_equal(pipeline->stage[0].kind, &serve_batches);
    pipeline->stage[0].kind = &delays;
}

enum { QUERIES = 4 };
static double replied[QUERIES], left[QUERIES]; /* by query: the times */
static uint32_t order[QUERIES], nreplies;

static bool
see_reply(void *context, const struct serve_reply *reply, struct rec_error *err)
{
    uint64_t q;
    (void)context;
    (void)err;
    assert_true(rec_parse_uint(reply->id, &q));
    assert_null(reply->dropped);
    replied[q] = reply->finish;
    order[nreplies++] = (uint32_t)q;
    return true;
}

static bool
see_visit(void *context, const struct serve_visit *visit, struct rec_error *err)
{
    uint64_t q;
    (void)context;
    (void)err;
    assert_true(rec_parse_uint(visit->id, &q));
    if (strcmp(visit->stage, "d") == 0) {
        assert_true(visit->enqueued == visit->started && visit->batch == 1);
        left[q] = visit->finished;
    }
    return true;
}

static struct serve_sim *
start(const struct serve_pipeline *pipeline, const struct serve_sink *sink)
{
    struct serve_options options = {.drop_after = INFINITY, .seed = 1};
    struct rec_error err;
    struct serve_sim *sim = serve_sim_new(pipeline, NULL, &options, sink, &err);
    assert_non_null(sim);
    nreplies = 0;
    return sim;
}

/* Queries at 0, 1/16, 1/8 and 3/16 s; just before the last one stage d gets 4 replicas in
 * place of 1, which were ordered at 1/16 s. */
static void
play_queries(struct serve_sim *sim)
{
    static const struct serve_change change = {
        .stage = 0, .replicas = 4, .batch = 1, .ordered = 0.0625, .time = 0.1875};
    static const char *const id[QUERIES] = {"0", "1", "2", "3"};
    struct rec_error err;
    for (size_t q = 0; q < QUERIES; q++) {
        if (q == 3)
            assert_true(serve_sim_change(sim, &change, &err));
        assert_true(serve_sim_query(sim, (double)q / 16, rec_str(id[q]), &err));
    }
    assert_true(serve_sim_advance(sim, INFINITY, &err));
}

/* Queries 0, 1, 2 leave d after 1/4 s, at 0.25, 0.3125, 0.375; query 3 after 1/16 s, at
 * 0.25, but after query 0, whose end was announced before. So b, which takes 1/8 s each,
 * serves 0, 3, 1, 2 without a pause from 0.25 s on. */
static void
check_times(void)
{
    static const double reply[QUERIES] = {0.375, 0.625, 0.75, 0.5};
    static const uint32_t by_time[QUERIES] = {0, 3, 1, 2};
    assert_int_equal(nreplies, QUERIES);
    for (size_t q = 0; q < QUERIES; q++) {
        assert_true(replied[q] == reply[q]);
        assert_int_equal(order[q], by_time[q]);
    }
}

/*
 * d: busy 3 x 1/4 + 1/16 = 0.8125 replica-seconds, and nothing waits: so the longest
 * queue is a query that comes. Paid: 1 replica until 0.1875 s, then 4 to the end at 0.75
 * s, and 3 from their order at 0.0625 s to 0.1875 s: 0.1875 + 2.25 + 0.375 = 2.8125.
 * b: queries 3, 1, 2 wait 0.125, 0.1875, 0.25 s: 0.5625; all three are there at 0.375 s,
 * when query 2 comes from d before b has finished query 0 (of equal times, the stage in
 * front comes first). Busy 4 x 1/8; paid from the first query to the end.
 */
static void
a_kind_of_a_test_is_served(void **state)
{
    static const struct serve_sink sink = {see_reply, see_visit, NULL};
    static const double leaves[QUERIES] = {0.25, 0.3125, 0.375, 0.25};
    struct serve_pipeline pipeline;
    struct serve_sim *sim;
    struct serve_usage d, b;
    (void)state;
    read_two(&pipeline);
    closed = 0;
    sim = start(&pipeline, &sink);
    play_queries(sim);
    check_times();
    for (size_t q = 0; q < QUERIES; q++)
        assert_true(left[q] == leaves[q]);
    d = serve_sim_usage(sim, 0);
    b = serve_sim_usage(sim, 1);
    assert_true(d.busy == 0.8125 && d.waiting == 0 && d.replicas == 2.8125);
    assert_true(d.queries == 4 && d.batches == 4 && d.longest == 1);
    assert_true(b.busy == 0.5 && b.waiting == 0.5625 && b.replicas == 0.75);
    assert_true(b.queries == 4 && b.batches == 4 && b.longest == 3);
    /* 4 queries come to and leave each of two stages, and b begins 4 batches */
    assert_int_equal(serve_sim_events(sim), 4 + 8 + 8 + 4);
    serve_sim_free(sim);
    assert_int_equal(closed, 1);
    serve_pipeline_free(&pipeline);
}

/* ---- a kind that is wrong ------------------------------------------------------ */

static bool
lose(struct serve_sim *sim, struct serve_station *station,
     const struct serve_token *token, uint32_t n, double time, struct rec_error *err)
{
    (void)sim;
    (void)station;
    (void)token;
    (void)n;
    (void)time;
    (void)err;
    return true;
}

/* A station that does nothing with its queries: without a check, their replies would just
 * be missing. */
static void
a_lost_query_is_noticed(void **state)
{
    static const struct serve_station_kind loses = {
        sizeof(struct delay), open_delay, lose, happen_delay, change_delay, close_delay};
    struct serve_pipeline pipeline;
    struct serve_sim *sim;
    struct rec_error err;
    (void)state;
    read_two(&pipeline);
    pipeline.stage[0].kind = &loses;
    sim = start(&pipeline, &(struct serve_sink){.context = NULL});
    assert_true(serve_sim_query(sim, 1, rec_str("0"), &err));
    assert_true(serve_sim_advance(sim, 100, &err)); /* it may still be on its way */
    assert_false(serve_sim_advance(sim, INFINITY, &err));
    assert_int_equal(err.code, REC_BUG);
    serve_sim_free(sim);
    serve_pipeline_free(&pipeline);
}

/* ---- alone ------------------------------------------------------------------- */

/* The batches of a stage that is simulated alone. */
struct record {
    struct serve_trailed batch[QUERIES];
    uint32_t member[QUERIES], n;
};

static bool
record_batch(void *context, const struct serve_token *token, uint32_t n, double time,
             struct rec_error *err)
{
    struct record *record = context;
    (void)err;
    assert_true(n == 1 && record->n < QUERIES);
    record->batch[record->n] = (struct serve_trailed){time, record->n};
    record->member[record->n++] = token->query;
    return true;
}

/* Queries 0, 3, 1, 2 were in a batch each, which ended at these times. */
static void
check_record(const struct record *record, const double *ends)
{
    static const uint32_t by_time[QUERIES] = {0, 3, 1, 2};
    assert_int_equal(record->n, QUERIES);
    for (size_t i = 0; i < QUERIES; i++) {
        assert_int_equal(record->member[i], by_time[i]);
        assert_true(record->batch[i].finish == ends[i]);
    }
}

/* The planner simulates one stage at a time, behind what it recorded of the stages before
 * it. So d alone, and b behind it, have the times that they have together. */
static void
it_is_simulated_alone_and_played_back(void **state)
{
    static const double d_ends[QUERIES] = {0.25, 0.25, 0.3125, 0.375};
    static const double b_ends[QUERIES] = {0.375, 0.5, 0.625, 0.75};
    struct record d = {.n = 0}, b = {.n = 0};
    struct serve_trail trail = {d.batch, d.member, QUERIES, 0, QUERIES, 0};
    struct serve_pipeline pipeline;
    struct serve_sim *sim;
    struct rec_error err;
    (void)state;
    read_two(&pipeline);
    sim = start(&pipeline, &(struct serve_sink){.context = &d});
    serve_sim_only(sim, 0, record_batch);
    play_queries(sim);
    check_record(&d, d_ends);
    assert_int_equal(serve_sim_usage(sim, 1).queries, 0);
    serve_sim_free(sim);
    sim = start(&pipeline, &(struct serve_sink){.context = &b});
    serve_sim_only(sim, 1, record_batch);
    assert_true(serve_sim_play(sim, 0, &trail, &err));
    play_queries(sim);
    check_record(&b, b_ends);
    serve_sim_free(sim);
    serve_pipeline_free(&pipeline);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_of_a_test_is_served),
        cmocka_unit_test(a_lost_query_is_noticed),
        cmocka_unit_test(it_is_simulated_alone_and_played_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
