/*
 * The bound of ramp-alloc bound against what is placed: random clusters, graphs and free
 * servers, and random streams of jobs. What a graph needs at least is never more than
 * what a placement has, and no stream starts more jobs than its bound.
 *
 *     BOUND_SETTINGS=100000 build/tests/unit/test_bound   more, and how near they come
 */
#include "../../lib/alloc/price.h"
#include "graphs.h"
#include "rampipe/net_ramp.h"
#include "unit.h"

enum { GRAPHS = 3, OPS = 9, JOBS = 14 };

static struct rec_error err;

static double
pick(const double *value, size_t n)
{
    return value[random_below(n)];
}
#define PICK(...)                       \
    pick((const double[]){__VA_ARGS__}, \
         sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* ---- a setting --------------------------------------------------------------------- */

/* An island; jobs are placed on it by near. */
static struct net *
random_island(void)
{
    char text[100];
    struct net *net;
    sprintf(text, "island:%u,%g,%g,%g%s", 1 + (uint32_t)random_below(20),
            PICK(1e12, 1e9, 1e6), PICK(0, 1e-6, 0.1, 3),
            PICK(INFINITY, INFINITY, 40, 20, 10),
            random_below(2) ? ",algorithm=ring" : "");
    net = net_parse(text, &err);
    assert_non_null(net);
    return net;
}

/* A network with links and routes; jobs are placed on it by near. */
static struct net *
random_network(void)
{
    static const char *const kinds[] = {
        "fat-tree:2x2x3,%g,%g,%g,gpus=2,adapters=1,inside=%g%s",
        "rail:2,2,3,%1$g,%2$g,%4$g,%3$g,taper=2%5$s",
        "torus:3x4,%g,%g,%g,bandwidth_y=%g%s", "dragonfly:3,2,2,%g,%g,%g,global=%g%s"};
    static const char *const algorithms[] = {"", ",algorithm=ring", ",algorithm=tree",
                                             ",algorithm=halving-doubling"};
    char text[200];
    struct net *net;
    sprintf(text, kinds[random_below(4)], PICK(1e12, 1e9, 1e6), PICK(0, 1e-6, 0.1, 3),
            PICK(INFINITY, INFINITY, 40, 20, 10), PICK(1e12, 1e9),
            algorithms[random_below(4)]);
    net = net_parse(text, &err);
    if (!net)
        fail_msg("%s: %s", text, err.text);
    return net;
}

static struct net *
random_cluster(void)
{
    static const uint32_t shapes[][3] = {
        {1, 1, 1}, {1, 1, 5}, {2, 1, 1}, {2, 2, 2}, {2, 2, 8}, {3, 2, 3}, {3, 3, 1},
        {3, 3, 3}, {4, 1, 2}, {4, 4, 1}, {4, 4, 2}, {4, 2, 4}, {6, 2, 3}, {5, 1, 3}};
    struct net_ramp ramp = {.bandwidth = PICK(1.6e12, 1e9, 1e6),
                            .net.memory = PICK(INFINITY, INFINITY, 40, 20, 10),
                            .propagation = PICK(0, 50e-9, 0.1, 3),
                            .io = PICK(0, 100e-9, 0.05),
                            .collective_rate = random_below(2) ? NET_COLLECTIVE_PUBLISHED
                                                               : NET_COLLECTIVE_NODE};
    size_t n = sizeof shapes / sizeof *shapes;
    struct net *net;
    memcpy(ramp.shape, shapes[random_below(n)], sizeof ramp.shape);
    switch (random_below(4)) {
    case 0: return random_island();
    case 1: return random_network();
    }
    net = net_ramp_new(&ramp, &err);
    assert_non_null(net);
    return net;
}

static uint32_t
random_parts(const struct net *cluster)
{
    uint32_t k;
    do
        k = 1 + (uint32_t)random_below(random_below(3) ? 6 : 16);
    while (!net_is_legal(cluster, k));
    return k;
}

static void
add_op(struct graph *graph, const char *id, const char *of, uint32_t part, uint32_t parts,
       enum graph_pass pass, const char *pair)
{
    struct graph_op op = {.id = id,
                          .of = of,
                          .extra = "",
                          .compute = PICK(0, 1, 1, 2, 3, 5, 8) * PICK(1, 1, 0.1),
                          .memory = PICK(0, 1, 2, 5),
                          .activation = PICK(0, 1e3, 1e6),
                          .param = PICK(0, 1e6),
                          .part = part,
                          .parts = parts,
                          .pass = pass};
    assert_true(graph_add_op(graph, &op, pair, &err));
}

static void
add_dep(struct graph *graph, const char *from, const char *to, bool sync)
{
    double bytes = PICK(0, 1, 1e3, 1e6, 3e6, 1e9);
    assert_true(
        graph_add_dep(graph, rec_str(from), rec_str(to), bytes, sync, "", 0, &err));
}

/* Whole ops, most with twins; few enough lie side by side that some wait for others. */
static void
make_whole(struct graph *graph, uint32_t n, bool tasks)
{
    bool twins = !tasks && random_below(4);
    char id[20], pair[20], to[20];
    assert_true(graph_start(graph, rec_str("g"), rec_str("m"), "", &err));
    for (uint32_t i = 0; i < n; i++) {
        sprintf(id, "%u", i + 1);
        sprintf(pair, "%u", 2 * n - i);
        add_op(graph, id, NULL, 1, 1, tasks ? GRAPH_TASK : GRAPH_FORWARD,
               twins ? pair : NULL);
        if (twins)
            add_op(graph, pair, NULL, 1, 1, GRAPH_BACKWARD, NULL);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) {
            if (random_below(n) > (j == i + 1 ? n / 2 : 1))
                continue;
            sprintf(id, "%u", i + 1);
            sprintf(to, "%u", j + 1);
            add_dep(graph, id, to, false);
            sprintf(id, "%u", 2 * n - i);
            sprintf(to, "%u", 2 * n - j);
            if (twins)
                add_dep(graph, to, id, false);
        }
    if (twins && random_below(4)) {
        sprintf(id, "%u", n);
        sprintf(to, "%u", n + 1);
        add_dep(graph, id, to, false);
    }
    assert_true(graph_close(graph, &err));
}

/* As partition makes them: of few different numbers of parts. */
static void
make_split(struct graph *graph, const struct net *cluster)
{
    uint32_t parts[2 * OPS], rank[2 * OPS], of[3];
    struct graph whole = {0};
    struct graph_split split = {.parts = parts,
                                .rank = rank,
                                .sizes = random_below(2) ? GRAPH_SIZES_REFERENCE
                                                         : GRAPH_SIZES_GRADIENT};
    make_whole(&whole, 1 + (uint32_t)random_below(OPS), false);
    for (int i = 0; i < 3; i++)
        of[i] = random_parts(cluster);
    for (uint32_t i = 0; i < whole.nops; i++) {
        uint32_t pair = whole.op[i].pair;
        parts[i] = pair != GRAPH_NONE && pair < i ? parts[pair] : of[random_below(3)];
        rank[i] = i;
    }
    if (!graph_split(&whole, &split, rec_str("g"), "", graph, &err))
        fail_msg("%s", err.text);
    graph_free(&whole);
}

/* Parts of uneven length with deps here and there, and twins in another order. */
static void
make_uneven(struct graph *graph, const struct net *cluster)
{
    uint32_t parts[OPS], n = 1 + (uint32_t)random_below(OPS);
    char id[30], of[30], pair[20];
    assert_true(graph_start(graph, rec_str("g"), rec_str("m"), "", &err));
    for (uint32_t i = 0; i < n; i++) {
        bool twin = random_below(2);
        parts[i] = random_parts(cluster);
        for (uint32_t j = 0; j < parts[i]; j++) {
            sprintf(id, "f%u_%u", i, j);
            sprintf(of, "f%u", i);
            sprintf(pair, "b%u_%u", i, (j + 1) % parts[i]);
            add_op(graph, id, of, j + 1, parts[i], GRAPH_FORWARD, twin ? pair : NULL);
            sprintf(id, "b%u_%u", i, j);
            sprintf(of, "b%u", i);
            if (twin)
                add_op(graph, id, of, j + 1, parts[i], GRAPH_BACKWARD, NULL);
        }
    }
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a; b < n; b++) {
            uint64_t density = 1 + random_below(4), join = random_below(n) <= 1;
            for (uint32_t i = 0; i < parts[a]; i++)
                for (uint32_t j = 0; j < parts[b]; j++) {
                    sprintf(id, "f%u_%u", a, i);
                    sprintf(of, "f%u_%u", b, j);
                    if (a == b ? i != j && !random_below(3)
                               : join && random_below(4) < density)
                        add_dep(graph, id, of, a == b);
                }
        }
    if (!graph_close(graph, &err))
        fail_msg("%s", err.text);
}

static void
make_graph(struct graph *graph, const struct net *cluster)
{
    uint64_t which = random_below(10);
    *graph = (struct graph){0};
    if (which == 0)
        make_whole(graph, 1 + (uint32_t)random_below(OPS), true);
    else if (which <= 2)
        make_uneven(graph, cluster);
    else
        make_split(graph, cluster);
}

struct setting {
    struct net *cluster;
    char meta[40];
    struct place_options placer;
    struct graph graph[GRAPHS];
    struct graph *list[GRAPHS];
    struct graph_store store;
};

static const char *const names[GRAPHS] = {"g0", "g1", "g2"};

static uint64_t
count_kinds(void)
{
    uint64_t n = 0;
    while (place_kinds[n])
        n++;
    return n;
}

static void
make_setting(struct setting *s)
{
    const struct net_ramp *ramp;
    *s = (struct setting){.cluster = random_cluster()};
    s->placer.net = s->cluster;
    do
        s->placer.kind = place_kinds[random_below(count_kinds())];
    while (!s->placer.kind->suits(s->cluster));
    if ((ramp = net_ramp_of(s->cluster)) && s->placer.kind->argument) {
        const uint32_t *n = ramp->shape;
        sprintf(s->meta, "%ux%ux%u", 1 + (uint32_t)random_below(n[0]),
                1 + (uint32_t)random_below(n[1]), 1 + (uint32_t)random_below(n[2]));
        s->placer.argument = s->meta;
    }
    for (size_t i = 0; i < GRAPHS; i++) {
        make_graph(&s->graph[i], s->cluster);
        s->graph[i].id = names[i]; /* where the name was is the arena's */
        s->list[i] = &s->graph[i];
        assert_true(rec_map_add(&s->store.index, rec_str(names[i]), (uint32_t)i, &err));
    }
    s->store.graph = s->list;
    s->store.ngraphs = GRAPHS;
}

static void
free_setting(struct setting *s)
{
    for (size_t i = 0; i < GRAPHS; i++)
        graph_free(&s->graph[i]);
    rec_map_free(&s->store.index);
    net_free(s->cluster);
}

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
        pricer_new(&s->placer, &s->store, SIM_LAYOUTS_MAX_ALLOC, &err);
    struct floor floor[GRAPHS];
    double least[GRAPHS];
    assert_non_null(pricer);
    for (uint32_t g = 0; g < GRAPHS; g++) {
        least[g] = INFINITY;
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
        make_setting(&s);
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

struct stream {
    struct graph_job job[JOBS];
    char id[JOBS][8], graphs[JOBS][20];
    uint32_t down[3], ndown;
};

static void
make_stream(struct stream *stream, const struct setting *s)
{
    double at = 0;
    stream->ndown = random_below(3) ? 0 : (uint32_t)random_below(4);
    for (uint32_t i = 0; i < stream->ndown; i++)
        stream->down[i] = (uint32_t)random_below(net_servers(s->cluster));
    for (uint32_t i = 0; i < JOBS; i++) {
        uint64_t among = 1 + random_below((1 << GRAPHS) - 1);
        char *graphs = stream->graphs[i];
        *graphs = '\0';
        for (uint32_t g = 0; g < GRAPHS; g++)
            if (among >> g & 1)
                sprintf(graphs + strlen(graphs), "%s%s", *graphs ? "," : "", names[g]);
        sprintf(stream->id[i], "%u", i);
        at += PICK(0, 0, 0, 1, 4, 20);
        stream->job[i] = (struct graph_job){.id = rec_str(stream->id[i]),
                                            .graphs = rec_str(graphs),
                                            .arrival = at,
                                            .steps = (double)(1 + random_below(3)),
                                            .deadline = PICK(4, 12, 40, INFINITY)};
    }
}

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
        make_setting(&s);
        make_stream(&stream, &s);
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
