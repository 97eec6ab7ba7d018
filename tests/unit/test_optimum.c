/*
 * The bounds of ramp-alloc bound around the optimum, which is found here by trying all
 * schedules of a few jobs on a few servers. A job may be placed on any subset of the free
 * servers, by the rules of its heuristic:
 *
 *     jobs that an annealed schedule starts <= optimum <= bound of whole jobs <= linear
 *
 *     EVERY=1 build/tests/unit/test_optimum   2,000 settings instead of 500, with figures
 */
#include "../../lib/alloc/price.h"
#include "bound_settings.h"

enum { SERVERS = 5, FEW = 6, SETS = 1 << SERVERS };

/* What an alternative may get: servers, as a set of bits, until a time. */
struct option {
    uint32_t servers;
    double finish;
    uint32_t shown; /* the least set of free servers on which it gets these */
};

struct search {
    const struct setting *s;
    const struct stream *stream;
    struct option option[GRAPHS][SETS]; /* per graph: finish is the time of a step */
    uint32_t noptions[GRAPHS];
    uint32_t in_service, best;
};

/* All that a graph gets on any set of servers, without simulating any job. */
static void
find_options(struct search *search, struct pricer *pricer, uint32_t graph)
{
    uint32_t n = net_servers(search->s->cluster);
    for (uint32_t set = 0; set < 1u << n; set++) {
        const struct trial *trial;
        struct option o = {.shown = set};
        if (set & ~search->in_service)
            continue;
        for (uint32_t i = 0; i < n; i++)
            if (search->in_service >> i & 1 && !(set >> i & 1))
                pricer_take(pricer, i);
        assert_true(pricer_forget(pricer, &err));
        trial = pricer_try(pricer, graph, &err);
        assert_non_null(trial);
        for (uint32_t i = 0; i < trial->nservers; i++)
            o.servers |= 1u << trial->servers[i];
        o.finish = trial->cost.step.seconds;
        if (trial->outcome == PLACE_PLACED)
            search->option[graph][search->noptions[graph]++] = o;
        for (uint32_t i = 0; i < n; i++)
            if (search->in_service >> i & 1 && !(set >> i & 1))
                pricer_give_back(pricer, i);
    }
}

/* Adds an option, unless another one has no more servers for no longer: what can start
 * later on some servers can start on more. */
static void
add_option(struct option *option, uint32_t *n, struct option o)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++)
        if ((option[i].servers & ~o.servers) == 0 && option[i].finish <= o.finish)
            return;
    for (uint32_t i = 0; i < *n; i++)
        if ((o.servers & ~option[i].servers) != 0 || o.finish > option[i].finish)
            option[kept++] = option[i];
    option[kept++] = o;
    *n = kept;
}

/* All ways to go on from this job, after `started`. */
static void
try_all(struct search *search, uint32_t index, uint32_t started, struct option *running)
{
    const struct graph_job *job = &search->stream->job[index];
    struct option option[GRAPHS * SETS];
    uint32_t n = 0, unused = search->in_service;
    if (started > search->best)
        search->best = started;
    if (started + search->stream->njobs - index <= search->best)
        return;
    for (uint32_t i = 0; i < started; i++)
        if (running[i].finish > job->arrival)
            unused &= ~running[i].servers;
    for (uint32_t g = 0; g < GRAPHS; g++) {
        if (!memmem(job->graphs.ptr, job->graphs.len, names[g], 2))
            continue;
        for (uint32_t i = 0; i < search->noptions[g]; i++) {
            struct option o = search->option[g][i];
            if ((o.shown & ~unused) == 0 &&
                o.finish * job->steps <= job->deadline * (1 + 1e-9)) {
                o.finish = job->arrival + o.finish * job->steps;
                add_option(option, &n, o);
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        running[started] = option[i];
        try_all(search, index + 1, started + 1, running);
    }
    try_all(search, index + 1, started, running);
}

static uint32_t
optimum(struct setting *s, const struct stream *stream)
{
    struct search search = {.s = s, .stream = stream};
    struct option running[FEW];
    struct pricer *pricer =
        pricer_new(&s->placer, &s->store, SIM_LAYOUTS_MAX_ALLOC, false, &err);
    assert_non_null(pricer);
    search.in_service = (1u << net_servers(s->cluster)) - 1;
    for (uint32_t i = 0; i < stream->ndown; i++)
        if (search.in_service >> stream->down[i] & 1) {
            search.in_service &= ~(1u << stream->down[i]);
            pricer_set_down(pricer, stream->down[i]);
        }
    for (uint32_t g = 0; g < GRAPHS; g++)
        find_options(&search, pricer, g);
    try_all(&search, 0, 0, running);
    pricer_free(pricer);
    return search.best;
}

static struct alloc_relaxed
bounds(struct setting *s, const struct stream *stream, uint64_t nodes)
{
    const struct alloc_relaxation_options options = {.placer = s->placer,
                                                     .down = stream->down,
                                                     .ndown = stream->ndown,
                                                     .limit = {.most = 1e6},
                                                     .nodes = nodes};
    struct alloc_relaxation *r = alloc_relaxation_new(&options, &s->store, &err);
    struct alloc_relaxed relaxed;
    assert_non_null(r);
    for (uint32_t i = 0; i < stream->njobs; i++)
        assert_true(alloc_relaxation_arrive(r, &stream->job[i], &err));
    if (!alloc_relaxation_solve(r, &relaxed, &err))
        fail_msg("%s", err.text);
    alloc_relaxation_free(r);
    return relaxed;
}

static uint64_t
annealed(struct setting *s, const struct stream *stream, uint64_t steps)
{
    const struct alloc_annealing_options options = {.placer = s->placer,
                                                    .down = stream->down,
                                                    .ndown = stream->ndown,
                                                    .steps = steps,
                                                    .seed = 1};
    struct alloc_annealing *a = alloc_annealing_new(&options, &s->store, &err);
    uint64_t reached;
    assert_non_null(a);
    for (uint32_t i = 0; i < stream->njobs; i++)
        assert_true(alloc_annealing_arrive(a, &stream->job[i], &err));
    if (!alloc_annealing_run(a, &reached, &err))
        fail_msg("%s", err.text);
    alloc_annealing_free(a);
    return reached;
}

static void
test_the_optimum_lies_between(void **state)
{
    uint32_t all = (uint32_t)part_of(2000), reaches = 0, whole = 0, sharper = 0,
             tight = 0;
    struct setting s;
    struct stream stream;
    (void)state;
    for (uint32_t i = 0; i < all; i++) {
        struct alloc_relaxed relaxed;
        uint64_t reached;
        uint32_t best;
        make_setting(&s, SERVERS);
        make_stream(&stream, &s, FEW);
        best = optimum(&s, &stream);
        relaxed = bounds(&s, &stream, i % 5 ? 1000 : 1);
        reached = annealed(&s, &stream, i % 5 ? 300 : 1);
        if (reached > best || best > relaxed.whole ||
            (double)relaxed.whole > relaxed.accepted + 1e-6 ||
            relaxed.found > relaxed.whole || (i % 5 && relaxed.found < relaxed.whole))
            fail_msg(
                "setting %u, %s: a schedule starts %llu, the optimum is %u, the bound "
                "of whole jobs is %llu (%llu found in %llu nodes), the linear one %.9g",
                i, s.placer.kind->name, (unsigned long long)reached, best,
                (unsigned long long)relaxed.whole, (unsigned long long)relaxed.found,
                (unsigned long long)relaxed.nodes, relaxed.accepted);
        reaches += reached == best;
        whole += best == relaxed.whole;
        sharper += (double)relaxed.whole < floor(relaxed.accepted + 1e-6);
        tight += best < stream.njobs;
        free_setting(&s);
    }
    if (all > 500)
        print_message("of %u settings: %u schedules and %u bounds of whole jobs are the "
                      "optimum, %u bounds are sharper than the linear one rounded down\n",
                      all, reaches, whole, sharper);
    /* None of them is trivial. */
    assert_true(reaches > all * 9 / 10 && whole > all / 2 && whole < all);
    assert_true(tight > all / 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_optimum_lies_between)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
