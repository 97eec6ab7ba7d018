/*
 * What states are worth (lib/alloc/value.c, value_train.c): the network by hand, its
 * inputs of blocks, and a value whose weights are all 0, which decides as the rule first:
 * rollouts of one future with it count the same jobs (discount 1) and so decide the same.
 */
#include "rollouts.h"

#include "../../lib/alloc/value.h"

/* One with 32 units in the second layer, and without inputs of servers in their order. */
static struct alloc_value *
new_value(const char *cluster, uint32_t servers, uint32_t units, const uint32_t *size,
          uint32_t nshapes, double work, const double *kind, uint32_t nkinds)
{
    struct alloc_value form = {.servers = servers,
                               .units = units,
                               .second = 32,
                               .nshapes = nshapes,
                               .work = work,
                               .nkinds = nkinds};
    snprintf(form.cluster, sizeof form.cluster, "%s", cluster);
    for (uint32_t i = 0; i < nshapes; i++)
        form.size[i] = size[i];
    for (uint32_t i = 0; i < nkinds; i++)
        form.kind[i] = kind[i];
    return value_new(&form, &err);
}

/* Two servers. Server 1 is free in s ln 2, where s is the first scale, 3/5 of the mean
 * work: its inputs are 1 - 2^-1, 1 - 2^-3, 1 - 2^-9 and 1 - 2^-27. Unit 5 of the first
 * layer has the bias 1 and weights 2 and -4 of the first input of both servers: 1 - 4 / 2
 * = -1 becomes 0, and without the job 1. Unit 3 of the second layer has the bias 0.25 and
 * weight 3 of that unit, and the result is 10 and twice this: 10.5, or 16.5. If all of it
 * is discounted by a half, starting a job is worth 5.25, and refusing it 8.25 - 1. */
static void
test_network(void **state)
{
    struct alloc_value *v = new_value("", 2, 16, NULL, 0, 5, NULL, 0);
    struct value_option option = {2, 3 * log(2)};
    struct value_sets *sets;
    struct value_state now;
    float input[VALUE_SCALES];
    double worth;
    (void)state;
    assert_non_null(v);
    v->discount = 0.5;
    value_first_bias(v)[5] = 1;
    value_first(v, 0)[5] = 2;
    value_first(v, 4)[5] = -4;
    value_second(v, 5)[3] = 3;
    value_second_bias(v)[3] = 0.25;
    value_third(v)[3] = 2;
    *value_third_bias(v) = 10;
    sets = value_sets_new(v, NULL, &err);
    assert_non_null(sets);
    value_server(sets, 3 * log(2), input);
    for (int i = 0; i < VALUE_SCALES; i++)
        assert_near(input[i], 1 - pow(2, -pow(3, i)), 1e-6);
    value_sets_work(sets, 10); /* it is for jobs of 5 server-seconds */
    value_empty(sets, 0, &now);
    assert_near(value_worth(sets, &now), 16.5, 1e-6);
    assert_int_equal(value_choose(sets, &now, &option, 1, &worth), 1);
    assert_near(worth, 8.25 - 1, 1e-6);
    value_add(sets, &now, 2, 3 * log(2));
    assert_near(value_worth(sets, &now), 10.5, 1e-6);
    value_add(sets, &now, 1, INFINITY); /* -1 + 2 */
    assert_near(value_worth(sets, &now), 16.5, 1e-6);
    /* with nothing to lose, a job starts */
    value_third(v)[3] = 0;
    value_empty(sets, 0, &now);
    assert_int_equal(value_choose(sets, &now, &option, 1, &worth), 0);
    assert_near(worth, 5, 1e-6);
    value_sets_free(sets);
    /* one for jobs of any size: with jobs of ten times as much work, times are a tenth */
    v->work = 0;
    sets = value_sets_new(v, NULL, &err);
    assert_non_null(sets);
    value_sets_work(sets, 50);
    value_server(sets, 30 * log(2), input);
    for (int i = 0; i < VALUE_SCALES; i++)
        assert_near(input[i], 1 - pow(2, -pow(3, i)), 1e-6);
    value_sets_free(sets);
    alloc_value_free(v);
}

/* Two servers, of which the first may never be free: that is worth 4, all else 0. To take
 * both is worth 4 more than to take the second alone, and is done with a margin below
 * that. With any margin it is better than to refuse the job, if it cannot start else. */
static void
test_margin(void **state)
{
    struct alloc_value *v = new_value("", 2, 16, NULL, 0, 5, NULL, 0);
    const struct value_option option[] = {{2, INFINITY}, {3, INFINITY}};
    struct value_sets *sets;
    struct value_state now;
    double worth;
    (void)state;
    assert_non_null(v);
    v->discount = 1;
    value_first(v, 0)[5] = 1;
    value_second(v, 5)[3] = 1;
    value_third(v)[3] = 4;
    sets = value_sets_new(v, NULL, &err);
    assert_non_null(sets);
    value_empty(sets, 0, &now);
    for (int margin = 0; margin <= 5; margin++) {
        v->margin = margin;
        assert_int_equal(value_choose(sets, &now, option, 2, &worth), margin < 4);
        assert_near(worth, margin < 4 ? 4 : 0, 1e-6);
        assert_int_equal(value_choose(sets, &now, option + 1, 1, &worth), 0);
        assert_near(worth, 4, 1e-6);
    }
    value_sets_free(sets);
    alloc_value_free(v);
}

/* An island of four servers has three blocks of two, of one shape, 01, 12 and 23, and two
 * of three, 012 and 123. Server 0 is free in s ln 2 and server 1 in twice that, so at
 * scale s the blocks have the inputs 3/4, 3/4, 0 and 3/4, 3/4. With server 3 out of
 * service they are 3/4, 3/4, 1 and 3/4, 1. A unit that adds six of the mean over blocks
 * of two and eight of the least of blocks of three says 3 + 6, and then 5 + 6. */
static void
test_blocks(void **state)
{
    struct net *net = net_parse("island:4,1e9,1e-6,1e9", &err);
    uint32_t size[VALUE_SHAPES], nshapes;
    struct alloc_value *v;
    struct value_sets *sets;
    struct value_state now;
    float input[4 * VALUE_SCALES];
    (void)state;
    assert_non_null(net);
    assert_true(value_shapes_of(net, size, &nshapes, &err));
    assert_int_equal(nshapes, 2);
    assert_int_equal(size[0], 2);
    assert_int_equal(size[1], 3);
    v = new_value("a cluster", 4, 128, size, nshapes, 5, NULL, 0);
    assert_non_null(v);
    assert_int_equal(value_inputs(v), 32);
    value_first(v, 16)[7] = 6;
    value_first(v, 28)[7] = 8;
    value_second(v, 7)[0] = 1;
    value_third(v)[0] = 1;
    sets = value_sets_new(v, net, &err);
    assert_non_null(sets);
    value_empty(sets, 0, &now);
    assert_near(value_worth(sets, &now), 0, 1e-6);
    value_add(sets, &now, 1, 3 * log(2));
    value_add(sets, &now, 2, 6 * log(2));
    value_blocks(sets, &now, input);
    for (int i = 0; i < VALUE_SCALES; i++) {
        double busy = 1 - pow(2, -2 * pow(3, i)); /* of server 1 */
        assert_near(input[i], 2. / 3 * busy, 1e-6);
        assert_near(input[VALUE_SCALES + i], 0, 1e-6);
        assert_near(input[2 * VALUE_SCALES + i], busy, 1e-6);
        assert_near(input[3 * VALUE_SCALES + i], busy, 1e-6);
    }
    assert_near(value_worth(sets, &now), 9, 1e-5);
    value_add(sets, &now, 8, INFINITY);
    assert_near(value_worth(sets, &now), 11, 1e-5);
    /* another weight: 2 of server 0, which is server 3 in the other image, where nobody
     * has a weight, and 2 of blocks of two: 4 and 2 */
    value_first(v, 0)[7] = 2;
    value_sets_forget(sets);
    value_empty(sets, 0, &now);
    value_add(sets, &now, 1, INFINITY);
    assert_near(value_worth(sets, &now), 3, 1e-5);
    value_sets_free(sets);
    /* the cluster has no shape of four servers */
    v->size[1] = 4;
    assert_null(value_sets_new(v, net, &err));
    assert_string_equal(err.text,
                        "the value for a cluster has inputs for other shapes of "
                        "blocks");
    alloc_value_free(v);
    net_free(net);
}

/* Two of four servers are free in s ln 2, where s is the first scale, one in 2 s ln 2,
 * and one is free: in their order they have the first inputs 3/4, 1/2, 1/2 and 0. A unit
 * that adds 4 of the first of these, 8 of the third and 16 of the fourth says 3 + 4,
 * whichever servers they are. The last of 64 units of the second layer takes it twice. */
static void
test_order(void **state)
{
    const struct alloc_value form = {
        .servers = 4, .units = 16, .second = 64, .ordered = true, .work = 5};
    struct alloc_value *v = value_new(&form, &err);
    struct value_sets *sets;
    (void)state;
    assert_non_null(v);
    assert_int_equal(value_ordered_at(v), 16);
    assert_int_equal(value_inputs(v), 32);
    value_first(v, 16)[5] = 4;
    value_first(v, 24)[5] = 8;
    value_first(v, 28)[5] = 16;
    value_second(v, 5)[63] = 2;
    value_third(v)[63] = 1;
    sets = value_sets_new(v, NULL, &err);
    assert_non_null(sets);
    for (uint32_t late = 0; late < 4; late++) {
        uint32_t open = (late + 1) % 4;
        uint64_t others = 15 & ~((uint64_t)1 << late) & ~((uint64_t)1 << open);
        struct value_state now;
        value_empty(sets, 0, &now);
        if (late % 2)
            value_add(sets, &now, others, 3 * log(2));
        value_add(sets, &now, (uint64_t)1 << late, 6 * log(2));
        if (late % 2 == 0)
            value_add(sets, &now, others, 3 * log(2));
        assert_near(value_worth(sets, &now), 14, 1e-5);
    }
    value_sets_free(sets);
    alloc_value_free(v);
}

/* The slope of half the squared error by each weight is the error times how the worth
 * changes with the weight, which moving the weight a little up and down tells. */
static void
test_slope(void **state)
{
    struct net *net = net_parse("island:4,1e9,1e-6,1e9", &err);
    struct alloc_value form = {.servers = 4,
                               .units = 16,
                               .second = 64,
                               .ordered = true,
                               .work = 5,
                               .nkinds = 2,
                               .kind = {0.5, 1.5}};
    const float step = 1e-3F;
    struct alloc_value *v;
    struct value_sets *sets;
    struct value_state now;
    float *slope, input[100] = {0};
    double error;
    (void)state;
    assert_non_null(net);
    assert_true(value_shapes_of(net, form.size, &form.nshapes, &err));
    assert_non_null(v = value_new(&form, &err));
    assert_true(value_inputs(v) <= 100);
    for (size_t i = 0; i < value_weights(v); i++)
        v->weight[i] = (float)sin((double)(7 * i));
    assert_non_null(slope = calloc(value_weights(v), sizeof *slope));
    assert_non_null(sets = value_sets_new(v, net, &err));
    value_empty(sets, 1, &now);
    value_add(sets, &now, 4, 3);
    value_add(sets, &now, 1, 1);
    value_server(sets, 1, input);
    value_server(sets, 3, input + 2 * VALUE_SCALES);
    value_blocks(sets, &now, input + 4 * VALUE_SCALES);
    value_kinds(v, 1, input + value_kinds_at(v));
    error = value_slope(sets, input, 3, slope);
    assert_near(error, value_worth(sets, &now) - 3, 1e-5);
    for (size_t i = 0; i < value_weights(v); i++) {
        double worth[2];
        float weight = v->weight[i];
        for (int up = 0; up < 2; up++) {
            v->weight[i] = weight + (up ? step : -step);
            value_sets_forget(sets);
            value_empty(sets, 1, &now);
            value_add(sets, &now, 4, 3);
            value_add(sets, &now, 1, 1);
            worth[up] = value_worth(sets, &now);
        }
        v->weight[i] = weight;
        assert_near((double)slope[i], error * (worth[1] - worth[0]) / (2 * (double)step),
                    0.01 * fabs(error));
    }
    value_sets_free(sets);
    alloc_value_free(v);
    net_free(net);
    free(slope);
}

/* Back to front, an island of four has the same blocks. In a cluster of 4x4x2 servers,
 * where blocks do not go round, the servers of all racks can change places, all racks of
 * all groups can be numbered back to front, and both. A state is worth the same as its
 * images, whatever the weights are. */
static void
test_images(void **state)
{
    static const struct {
        const char *net;
        uint32_t servers, n, last[VALUE_IMAGES]; /* where the first server is */
    } case_of[] = {{"island:4,1e9,1e-6,1e9", 4, 2, {0, 3}},
                   {"ramp:4,4,2", 32, 4, {0, 1, 31, 30}}};
    (void)state;
    for (int c = 0; c < 2; c++) {
        struct net *net = net_parse(case_of[c].net, &err);
        uint32_t size[VALUE_SHAPES], nshapes, n = case_of[c].servers;
        struct alloc_value *v;
        struct value_sets *sets;
        struct value_state now;
        double worth[VALUE_IMAGES] = {0};
        assert_non_null(net);
        assert_int_equal(net_servers(net), n);
        assert_true(value_shapes_of(net, size, &nshapes, &err));
        v = new_value("a cluster", n, 16, size, nshapes, 5, NULL, 0);
        assert_non_null(v);
        for (size_t i = 0; i < value_weights(v); i++)
            v->weight[i] = (float)sin((double)i);
        assert_non_null(sets = value_sets_new(v, net, &err));
        assert_int_equal(value_images(sets), case_of[c].n);
        for (uint32_t i = 0; i < case_of[c].n; i++) {
            assert_int_equal(value_image(sets, i, 0), case_of[c].last[i]);
            value_empty(sets, 0, &now);
            for (uint32_t s = 0; s < n; s += 2)
                value_add(sets, &now, (uint64_t)1 << value_image(sets, i, s), 1 + s);
            worth[i] = value_worth(sets, &now);
            assert_near(worth[i], worth[0], 1e-4);
        }
        /* and not the same as another state */
        value_empty(sets, 0, &now);
        for (uint32_t s = 1; s < n; s += 2)
            value_add(sets, &now, (uint64_t)1 << s, 1 + s);
        assert_true(fabs(value_worth(sets, &now) - worth[0]) > 1e-2);
        value_sets_free(sets);
        alloc_value_free(v);
        net_free(net);
    }
}

/* Kinds 7, 5 and 9, in the order of their times, come in rounds. In the third round 9 has
 * come, and then all have. Then 5 comes twice: nothing is known before two more rounds
 * are whole. */
static void
test_rounds(void **state)
{
    static const struct {
        uint64_t key;
        uint32_t left;
    } coming[] = {{9, 0}, {5, 0}, {7, 0}, {5, 0}, {9, 0}, {7, 0}, {9, 3}, {7, 2}, {5, 7},
                  {7, 6}, {5, 4}, {5, 0}, {7, 0}, {9, 0}, {9, 0}, {7, 0}, {5, 0}, {7, 6}};
    struct rounds rounds = {0};
    (void)state;
    for (size_t i = 0; i < sizeof coming / sizeof *coming; i++) {
        rounds_arrive(&rounds, coming[i].key,
                      coming[i].key == 7 ? 1 : (double)coming[i].key);
        if (rounds_left(&rounds) != coming[i].left)
            fail_msg("after job %zu %u are left", i, rounds_left(&rounds));
    }
    assert_int_equal(rounds_find(&rounds, 9), 2);
    assert_int_equal(rounds_find(&rounds, 8), 3);
    assert_int_equal(rounds_left_after(&rounds, 6, 1), 4);
    assert_int_equal(rounds_left_after(&rounds, 4, 2), 7);
    /* seventeen kinds are too many */
    for (uint64_t i = 0; i < 51; i++)
        rounds_arrive(&rounds, i % 17, 1);
    assert_int_equal(rounds_left(&rounds), 0);
}

/* A value of kinds whose times are as 1 to 3 has the weights 4 and 1 for them, which it
 * says as they are: with the first, 4, with both, 5, and where nothing is known three
 * quarters of it, 3.75. Times of 1.05 to 3 are the same within a tenth, 1.3 to 3 are not;
 * nor is it told of three kinds. */
static void
test_kinds(void **state)
{
    const double kind[] = {0.5, 1.5};
    const struct {
        uint32_t left;
        double worth;
    } case_of[] = {{1, 4}, {2, 1}, {3, 5}, {0, 3.75}};
    struct alloc_value *v = new_value("", 1, 16, NULL, 0, 5, kind, 2);
    struct rounds rounds = {0};
    struct value_sets *sets;
    (void)state;
    assert_non_null(v);
    value_first(v, value_kinds_at(v))[2] = 4;
    value_first(v, value_kinds_at(v) + 1)[2] = 1;
    value_second(v, 2)[0] = 1;
    value_third(v)[0] = 1;
    sets = value_sets_new(v, NULL, &err);
    assert_non_null(sets);
    for (int i = 0; i < 4; i++) {
        struct value_state now;
        float second[VALUE_SECOND], input[VALUE_SCALES + 2] = {0}, sum[ALLOC_VALUE_UNITS];
        value_empty(sets, case_of[i].left, &now);
        assert_near(value_worth(sets, &now), case_of[i].worth, 1e-6);
        value_kinds(v, case_of[i].left, input + value_kinds_at(v));
        value_shared(v, input, sum);
        assert_near(value_of_sums(v, sum, second), case_of[i].worth, 1e-6);
    }
    value_sets_free(sets);
    for (uint32_t i = 0; i < 6; i++)
        rounds_arrive(&rounds, i % 2, i % 2 ? 3 : 1.05);
    assert_int_equal(value_left(v, &rounds), 3);
    rounds.kind[0].sequential = 1.3;
    assert_int_equal(value_left(v, &rounds), 0);
    rounds = (struct rounds){0};
    for (uint32_t i = 0; i < 9; i++)
        rounds_arrive(&rounds, i % 3, i % 3 + 1);
    assert_int_equal(rounds_left(&rounds), 7);
    assert_int_equal(value_left(v, &rounds), 0);
    alloc_value_free(v);
}

static void
test_same(void **state)
{
    uint32_t blocked = 0;
    (void)state;
    for (int i = 0; i < 300; i++) {
        struct setting s;
        struct stream stream;
        struct alloc_choosing first = {.chooser = alloc_chooser_find(rec_str("first"))};
        struct alloc_choosing learned = {.chooser =
                                             alloc_chooser_find(rec_str("learned"))};
        struct alloc_scorer *scorer = alloc_scorer_new(0, 1, &err);
        char text[NET_TEXT_MAX];
        uint32_t size[VALUE_SHAPES], nshapes;
        struct decided one, other;
        struct how how = {
            .horizon = 1 + (uint32_t)random_below(8), .seed = 1, .futures = "1"};
        assert_non_null(scorer);
        make_setting(&s, 64);
        make_stream(&stream, &s, JOBS);
        net_describe(s.placer.net, text);
        assert_true(value_shapes_of(s.placer.net, size, &nshapes, &err));
        scorer->expert[0].value =
            new_value(text, net_servers(s.placer.net), 256, size, nshapes, 0, NULL, 0);
        assert_non_null(scorer->expert[0].value);
        scorer->expert[0].value->discount = 1;
        learned.self = scorer;
        one = play(&s, &stream, &how, &first, true);
        other = play(&s, &stream, &how, &learned, true);
        for (uint32_t j = 0; j < stream.njobs; j++) {
            if (one.finish[j] != other.finish[j])
                fail_msg("setting %d, job %u: %g and %g", i, j, one.finish[j],
                         other.finish[j]);
            blocked += one.finish[j] == 0;
        }
        alloc_scorer_free(scorer);
        free_setting(&s);
    }
    assert_true(blocked > 500);
}

/* A job of 1 s comes to one server every 10 s, and about half of the jobs have less time
 * than that, and are blocked. So by a value that says 0 a refused job costs 1 for itself,
 * and in a future of one job the share of such jobs so far. Ten futures tell it but for a
 * tenth, since their jobs are drawn evenly; drawn independently, they would err by .16
 * (standard deviation). */
struct even {
    struct alloc_choosing rollout;
    uint32_t njobs, late; /* that came, and that had too little time */
    uint32_t ndecisions;
};

static bool
count_job(void *self, const struct graph_job *job, struct rec_error *error)
{
    struct even *e = self;
    e->njobs++;
    e->late += job->deadline < 1;
    return e->rollout.chooser->arrive(e->rollout.self, job, error);
}

static bool
check_worth(void *self, struct alloc_question *question, uint32_t *choice,
            struct rec_error *error)
{
    struct even *e = self;
    double worth[2];
    bool ok = e->rollout.chooser->judge(e->rollout.self, question, choice, worth, error);
    if (e->njobs >= 2 && *choice != ALLOC_NONE) {
        assert_near(worth[1], -1 - (double)e->late / e->njobs, 0.1 + 1e-9);
        e->ndecisions++;
    }
    return ok;
}

static bool
take_decision(void *context, const struct alloc_decision *decision,
              struct rec_error *error)
{
    (void)context;
    (void)decision;
    (void)error;
    return true;
}

static void
test_even(void **state)
{
    const struct alloc_chooser checker = {
        .name = "check", .observes = true, .arrive = count_job, .decide = check_worth};
    struct graph graph = graph_text("graph g m\nop g a task 1 1\n"), *list[] = {&graph};
    struct graph_store store = {.graph = list, .ngraphs = 1};
    struct net *net = net_parse("ramp:1,1,1,1e12,inf", &err);
    struct even even = {.rollout.chooser = alloc_chooser_find(rec_str("rollout"))};
    struct alloc_choosing choosing = {.chooser = &checker, .self = &even};
    struct alloc_choosing learned = {.chooser = alloc_chooser_find(rec_str("learned"))};
    struct alloc_scorer *scorer = alloc_scorer_new(0, 1, &err);
    struct alloc_admission_options options = {
        .placer = {.net = net, .kind = place_kinds[0]}, .choosing = &choosing};
    struct alloc_choice choice = {.argument = "10",
                                  .admission = &options,
                                  .store = &store,
                                  .base = &learned,
                                  .seed = 1};
    struct alloc_admission *admission;
    char text[NET_TEXT_MAX];
    (void)state;
    assert_non_null(net);
    assert_non_null(scorer);
    assert_true(place_kinds[0]->suits(net));
    assert_true(rec_map_add(&store.index, rec_str("g"), 0, &err));
    net_describe(net, text);
    scorer->expert[0].value = new_value(text, 1, 16, NULL, 0, 0, NULL, 0);
    assert_non_null(scorer->expert[0].value);
    scorer->expert[0].value->discount = 1;
    learned.self = scorer;
    assert_non_null(even.rollout.self = even.rollout.chooser->open(&choice, &err));
    admission = alloc_admission_new(&options, &store, take_decision, NULL, &err);
    assert_non_null(admission);
    for (int i = 0; i < 200; i++) {
        struct graph_job job = {.id = rec_str("j"),
                                .graphs = rec_str("g"),
                                .arrival = 10 * i,
                                .steps = 1,
                                .deadline = random_below(2) ? 0.5 : 5};
        if (!alloc_admission_advance(admission, &job, &err) ||
            !alloc_admission_arrive(admission, &job, &err))
            fail_msg("%s", err.text);
    }
    assert_true(alloc_admission_end(admission, &err));
    assert_true(even.ndecisions > 60);
    alloc_admission_free(admission);
    even.rollout.chooser->free(even.rollout.self);
    alloc_scorer_free(scorer);
    rec_map_free(&store.index);
    graph_free(&graph);
    net_free(net);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_network), cmocka_unit_test(test_margin),
        cmocka_unit_test(test_blocks),  cmocka_unit_test(test_order),
        cmocka_unit_test(test_slope),   cmocka_unit_test(test_images),
        cmocka_unit_test(test_rounds),  cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_same),    cmocka_unit_test(test_even)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
