/*
 * The bound of ramp-alloc bound against what is placed: random clusters, graphs and free
 * servers, and random streams of jobs. What a graph needs at least is never more than
 * what a placement has, and no stream starts more jobs than its bound.
 *
 *     BOUND_SETTINGS=100000 build/tests/unit/test_bound   more, and how near they come
 */
#include "../../lib/alloc/price.h"
#include "bound_settings.h"

static uint64_t
settings(int usual)
{
    const char *more = getenv("BOUND_SETTINGS");
    return (uint64_t)(more ? atoi(more) : part_of(usual));
}

static void
say(const struct setting *s, uint64_t i, const char *what, double bound, double found)
{
    char where[NET_TEXT_MAX];
    net_describe(s->cluster, where);
    fail_msg("setting %llu, %s, %s: %s at least %.17g, and one has %.17g",
             (unsigned long long)i, where, s->placer.kind->name, what, bound, found);
}

/* ---- placements -------------------------------------------------------------------- */

/* Frees some servers: here and there, or a few blocks that lie anywhere. */
static void
free_some(struct pricer *pricer, const struct net *cluster)
{
    const struct net_ramp *ramp = net_ramp_of(cluster);
    uint32_t servers = net_servers(cluster), line[3] = {1, 1, servers};
    const uint32_t *n = ramp ? ramp->shape : line;
    if (random_below(2)) {
        uint64_t density = 1 + random_below(9);
        for (uint32_t i = 0; i < servers; i++)
            if (random_below(10) < density && !place_is_free(pricer_vacancy(pricer), i))
                pricer_give_back(pricer, i);
        return;
    }
    for (uint64_t blocks = 1 + random_below(3); blocks > 0; blocks--) {
        uint32_t at[3], size[3];
        for (int d = 0; d < 3; d++) {
            size[d] = 1 + (uint32_t)random_below(n[d]);
            at[d] = (uint32_t)random_below(n[d] - size[d] + 1);
        }
        for (uint32_t i = 0; i < servers; i++) {
            uint32_t s = i % n[2], r = i / n[2] % n[1], c = i / n[2] / n[1];
            if (c - at[0] < size[0] && r - at[1] < size[1] && s - at[2] < size[2] &&
                !place_is_free(pricer_vacancy(pricer), i))
                pricer_give_back(pricer, i);
        }
    }
}

/* Over all settings: of steps, the floor divided by the least found. */
static double ratio_sum, ratio_least = 1;
static uint64_t ratios, exact;

static void
try_placements(struct setting *s, uint64_t setting)
{
    uint32_t servers = net_servers(s->cluster);
    struct pricer *pricer =
        pricer_new(&s->placer, &s->store, SIM_LAYOUTS_MAX_ALLOC, false, &err);
    struct floor floor[GRAPHS];
    double least[GRAPHS], waiting[GRAPHS];
    enum place_outcome outcome;
    assert_non_null(pricer);
    for (uint32_t g = 0; g < GRAPHS; g++) {
        least[g] = INFINITY;
        assert_true(pricer_try_least(pricer, g, &outcome, &waiting[g], &err));
        assert_true(pricer_floor(pricer, g, &floor[g], &err));
    }
    for (int turn = 0; turn < 12; turn++) {
        for (uint32_t i = 0; turn > 0 && i < servers; i++)
            if (place_is_free(pricer_vacancy(pricer), i))
                pricer_take(pricer, i);
        if (turn > 0)
            free_some(pricer, s->cluster);
        for (uint32_t g = 0; g < GRAPHS; g++) {
            const struct trial *trial = pricer_try(pricer, g, &err);
            assert_non_null(trial);
            if (trial->outcome != PLACE_PLACED)
                continue;
            if (floor[g].servers == 0)
                say(s, setting, "no placement, which needs", 1, trial->nservers);
            if (floor[g].servers > trial->nservers)
                say(s, setting, "servers", floor[g].servers, trial->nservers);
            if (floor[g].step > trial->cost.step.seconds)
                say(s, setting, "a step", floor[g].step, trial->cost.step.seconds);
            if (isfinite(waiting[g]) &&
                waiting[g] > trial->cost.step.seconds * (1 + 2e-9))
                say(s, setting, "a step after waiting", waiting[g],
                    trial->cost.step.seconds);
            least[g] = fmin(least[g], trial->cost.step.seconds);
        }
    }
    for (uint32_t g = 0; g < GRAPHS; g++)
        if (least[g] < (double)INFINITY && least[g] > 0 &&
            net_longest_route(s->cluster) <= 2) {
            ratio_sum += floor[g].step / least[g];
            ratio_least = fmin(ratio_least, floor[g].step / least[g]);
            exact += floor[g].step > least[g] * (1 - 1e-6);
            ratios++;
        }
    pricer_free(pricer);
}

/* A floor of 0 would pass, so that it is near is asked, too; not on networks whose routes
 * differ, where it takes the best of each. */
static void
test_no_placement_needs_less(void **state)
{
    struct setting s;
    (void)state;
    for (uint64_t i = 0; i < settings(2000); i++) {
        make_setting(&s, UINT32_MAX);
        try_placements(&s, i);
        free_setting(&s);
    }
    if (getenv("BOUND_SETTINGS"))
        print_message(
            "%llu graphs: the floor is %.4g of the least step found, at least %.4g, "
            "and the same in %.4g\n",
            (unsigned long long)ratios, ratio_sum / (double)ratios, ratio_least,
            (double)exact / (double)ratios);
    assert_true(ratio_sum > 0.78 * (double)ratios); /* 0.806 of all settings */
    assert_true((double)exact > 0.4 * (double)ratios);
}

/* ---- streams ----------------------------------------------------------------------- */

static bool
count_start(void *context, const struct alloc_decision *decision, struct rec_error *error)
{
    (void)error;
    *(uint32_t *)context += decision->cause == NULL;
    return true;
}

/* How many jobs a rule starts. */
static uint32_t
started(struct setting *s, const struct stream *stream, const char *rule)
{
    struct alloc_choosing choosing = {0};
    struct alloc_choice choice = {.argument = NULL};
    struct alloc_admission_options options = {.placer = s->placer,
                                              .choosing = &choosing,
                                              .down = stream->down,
                                              .ndown = stream->ndown};
    struct alloc_admission *admission;
    uint32_t n = 0;
    assert_true(alloc_choosing_open(&choosing, rule, &choice, &err));
    admission = alloc_admission_new(&options, &s->store, count_start, &n, &err);
    assert_non_null(admission);
    for (uint32_t i = 0; i < JOBS; i++)
        if (!alloc_admission_advance(admission, &stream->job[i], &err) ||
            !alloc_admission_arrive(admission, &stream->job[i], &err))
            fail_msg("%s", err.text);
    assert_true(alloc_admission_end(admission, &err));
    alloc_admission_free(admission);
    alloc_choosing_close(&choosing);
    return n;
}

static double
bound_of(struct setting *s, const struct stream *stream)
{
    struct alloc_relaxation_options options = {.placer = s->placer,
                                               .down = stream->down,
                                               .ndown = stream->ndown,
                                               .limit = {.most = 1e6}};
    struct alloc_relaxation *relaxation = alloc_relaxation_new(&options, &s->store, &err);
    struct alloc_relaxed relaxed;
    assert_non_null(relaxation);
    for (uint32_t i = 0; i < JOBS; i++)
        if (!alloc_relaxation_arrive(relaxation, &stream->job[i], &err))
            fail_msg("%s", err.text);
    assert_true(alloc_relaxation_solve(relaxation, &relaxed, &err));
    alloc_relaxation_free(relaxation);
    return relaxed.accepted;
}

/* The optimum is certain to 1e-6 of it, and rounded to 1e-6. */
static void
test_no_stream_starts_more(void **state)
{
    static const char *const rules[] = {"first", "fastest", "fewest-servers"};
    struct setting s;
    struct stream stream;
    uint64_t reached = 0, all = settings(2000);
    (void)state;
    for (uint64_t i = 0; i < all; i++) {
        double bound;
        uint32_t n;
        make_setting(&s, UINT32_MAX);
        make_stream(&stream, &s, JOBS);
        bound = bound_of(&s, &stream);
        n = started(&s, &stream, rules[random_below(3)]);
        if (n > bound + 3e-5)
            say(&s, i, "blocked jobs", JOBS - bound, JOBS - n);
        reached += n > bound - 3e-5;
        free_setting(&s);
    }
    if (getenv("BOUND_SETTINGS"))
        print_message("%llu of %llu streams reach their bound\n",
                      (unsigned long long)reached, (unsigned long long)all);
    assert_true(reached > all / 5 && reached < all);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_placement_needs_less),
        cmocka_unit_test(test_no_stream_starts_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
