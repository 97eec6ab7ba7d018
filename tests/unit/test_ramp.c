/* Allocation on RAMP: shapes, blocks, memory. */
#include "../../lib/place/ramp.h"
#include "graphs.h"
#include "published.h"

#include "rampipe/place.h"

static struct net_ramp
cluster(uint32_t c, uint32_t r, uint32_t s, double memory)
{
    return (struct net_ramp)RAMP(c, r, s, memory);
}

/* The heuristic that users call so. */
static const struct place_kind *
find_heuristic(const char *name)
{
    return place_kind_find(rec_str(name));
}

/* One placement, made anew: outcome and the servers of the ops as "2a=0-0-1 ...". */
struct placed {
    enum place_outcome outcome;
    char text[4000];
    uint32_t nheld, nused;
};

/* `text`: the graph's records; `taken`: names of servers of other jobs. */
static struct placed
place(struct net_ramp on, const char *heuristic, const char *meta, const char *text,
      const char *taken)
{
    struct graph g = graph_text(text);
    struct placed result = {.text = ""};
    struct place_plan plan;
    struct place_placement placement;
    struct rec_error err = {.text = ""};
    struct place_options options = {&on.net, find_heuristic(heuristic),
                                    *meta ? meta : NULL};
    uint32_t server;
    struct place_vacancy *vacancy = place_vacancy_new(options.kind, &on.net, &err);
    struct place_placer *placer;
    struct rec_str rest = rec_str(taken), name;

    while (*taken && rec_str_split(&rest, ' ', &name)) {
        assert_true(net_parse_server(&on.net, name, &server, &err));
        place_set_free(vacancy, server, false);
    }
    placer = place_placer_new(&options, &err);
    if (!place_plan_make(&g, &plan, &err))
        fail_msg("%s", err.text);
    assert_true(place_on(placer, &plan, vacancy, &placement, &err));
    result.outcome = placement.outcome;
    if (result.outcome == PLACE_PLACED) {
        result.nheld = placement.nheld;
        result.nused = placement.nused;
        for (size_t u = 0; u < g.nunits; u++)
            for (uint32_t j = 0; j < g.unit[u].parts; j++) {
                uint32_t member = g.unit[u].first + j;
                char at[NET_NAME_MAX];
                assert_true(place_is_free(vacancy, placement.server[member]));
                net_format_server(&on.net, placement.server[member], at);
                sprintf(result.text + strlen(result.text), "%s%s=%s",
                        *result.text ? " " : "", g.op[g.member[member]].id, at);
            }
    }
    place_placer_free(placer);
    place_plan_free(&plan);
    graph_free(&g);
    place_vacancy_free(vacancy);
    return result;
}

/* The records of an op of k parts, memory `each` a part. */
static const char *
parts_of(const char *op, int k, double each)
{
    static char text[2][6000];
    static int turn;
    char *at = text[turn ^= 1];
    at[0] = '\0';
    for (int j = 0; j < k; j++) {
        char letters[GRAPH_LETTERS_MAX];
        graph_part_letters((uint32_t)j, letters);
        if (k == 1)
            at += sprintf(at, "op g %s forward 1 %g\n", op, each);
        else
            at += sprintf(at, "op g %s%s forward 1 %g of=%s part=%d/%d\n", op, letters,
                          each, op, j + 1, k);
    }
    return text[turn];
}

static const char *
graph_with(const char *first, const char *second, const char *third)
{
    static char text[20000];
    snprintf(text, sizeof text, "graph g m\n%s%s%s", first, second, third);
    return text;
}

/* The servers of one op with k parts on an empty cluster. */
static void
expect_servers(struct net_ramp on, const char *heuristic, const char *meta, int k,
               const char *taken, const char *servers)
{
    struct placed p =
        place(on, heuristic, meta, graph_with(parts_of("x", k, 1), "", ""), taken);
    char ours[2000] = "";
    for (char *at = p.text; (at = strchr(at, '='));) {
        sprintf(ours + strlen(ours), "%s%.*s", *ours ? " " : "",
                (int)strcspn(at + 1, " "), at + 1);
        at++;
    }
    if (p.outcome != PLACE_PLACED)
        strcpy(ours, place_outcome_name(p.outcome));
    if (strcmp(ours, servers) != 0)
        fail_msg("%d parts (taken: %s): got %s, expected %s", k, taken, ours, servers);
}

/*
 * What each heuristic does with four parts on an empty 4x4x2 (meta-block 2x2x2). Shapes
 * in order: i = 1, p = 4 is square (2,2,1), flat (4,1,1); i = 2, p = 2 is flat (2,1,2),
 * (2,2,1). The notebook takes the flat ones first, within its meta-block. Compact needs
 * two groups, for one has room for p = 1 only, i = 4 > S; then (2,1,2) needs one rack of
 * each.
 */
static const struct {
    const char *heuristic, *servers;
} four_parts[] = {
    {"first-fit", "0-0-0 0-1-0 1-0-0 1-1-0"}, {"block", "0-0-0 0-0-1 1-0-0 1-0-1"},
    {"compact", "0-0-0 0-0-1 1-0-0 1-0-1"},   {"compact-2", "0-1-0 0-1-1 1-1-0 1-1-1"},
    {"compact-3", "0-2-0 0-2-1 1-2-0 1-2-1"}, {"compact-back", "2-3-0 2-3-1 3-3-0 3-3-1"},
    {"free-block", "0-0-0 0-1-0 1-0-0 1-1-0"}};

static void
test_every_heuristic(void **state)
{
    size_t n = sizeof four_parts / sizeof *four_parts;
    (void)state;
    for (size_t k = 0; place_kinds[k]; k++) {
        const struct place_kind *h = place_kinds[k];
        size_t i = 0;
        if (!h->suits(&published.net))
            continue;
        while (i < n && strcmp(four_parts[i].heuristic, h->name) != 0)
            i++;
        if (i == n)
            fail_msg("heuristic %s has no line in four_parts", h->name);
        expect_servers(cluster(4, 4, 2, 100), h->name, h->numbered ? "1" : "2x2x2", 4, "",
                       four_parts[i].servers);
    }
}

/*
 * First fit, 4x4x2: factor pairs (k/i, i). 4: i=1, p=4=2*2 -> (2,2,1): c outer, then r.
 * 2: i=1: p=2 no square; flat needs 2<=C, 2<=R, 1<=S -> (2,1,1). 8: i=1: p=8 no square,
 * 8 > 4; i=2: p=4 -> (2,2,2). 6: i=1: 6 > 4; i=2: p=3 -> (3,1,2). 16: i=1: (4,4,1).
 */
static void
test_shapes_first_fit(void **state)
{
    struct net_ramp c = cluster(4, 4, 2, 100);
    (void)state;
    expect_servers(c, "first-fit", "", 1, "", "0-0-0");
    expect_servers(c, "first-fit", "", 2, "", "0-0-0 1-0-0");
    expect_servers(c, "first-fit", "", 4, "", "0-0-0 0-1-0 1-0-0 1-1-0");
    expect_servers(c, "first-fit", "", 6, "", "0-0-0 0-0-1 1-0-0 1-0-1 2-0-0 2-0-1");
    expect_servers(c, "first-fit", "", 8, "",
                   "0-0-0 0-0-1 0-1-0 0-1-1 1-0-0 1-0-1 1-1-0 1-1-1");
    expect_servers(c, "first-fit", "", 16, "",
                   "0-0-0 0-1-0 0-2-0 0-3-0 1-0-0 1-1-0 1-2-0 1-3-0 "
                   "2-0-0 2-1-0 2-2-0 2-3-0 3-0-0 3-1-0 3-2-0 3-3-0");
    expect_servers(c, "first-fit", "", 10, "", "no_block"); /* (5,..) > 4 */
    expect_servers(c, "first-fit", "", 34, "", "no_block"); /* more than servers */
}

/*
 * The next shape is tried when the first has no free place: on 2x2x2 four parts are
 * (2,2,1), then of i=1 (4,..) no, of i=2 (p=2 no square) (2,1,2), then (2,2,1) again.
 * With 0-0-0 taken (2,2,1) stands at l=1; with 0-0-1 too, (2,1,2) at rack 1.
 */
static void
test_next_shape(void **state)
{
    struct net_ramp c = cluster(2, 2, 2, 100);
    (void)state;
    expect_servers(c, "first-fit", "", 4, "0-0-0", "0-0-1 0-1-1 1-0-1 1-1-1");
    expect_servers(c, "first-fit", "", 4, "0-0-0 0-0-1", "0-1-0 0-1-1 1-1-0 1-1-1");
    expect_servers(c, "first-fit", "", 4, "0-0-0 1-1-1", "no_block");
}

/*
 * The search looks at the racks' free servers word by word; a rack of 70 servers has more
 * than a word. The same rules hold: with the first 66 of each rack taken, (2,2,1) stands
 * at 66, and with 1-1-66 taken as well, at 67.
 */
static void
test_long_rack(void **state)
{
    struct net_ramp c = cluster(2, 2, 70, 100);
    char taken[66 * 4 * 8] = "";
    (void)state;
    for (int i = 0; i < 4 * 66; i++)
        sprintf(taken + strlen(taken), "%s%d-%d-%d", *taken ? " " : "", i / 132,
                i / 66 % 2, i % 66);
    expect_servers(c, "first-fit", "", 4, taken, "0-0-66 0-1-66 1-0-66 1-1-66");
    strcat(taken, " 1-1-66");
    expect_servers(c, "first-fit", "", 4, taken, "0-0-67 0-1-67 1-0-67 1-1-67");
}

/*
 * The notebook's order: flat shapes of all pairs first, then the square ones. Four parts
 * on 4x4x2: flat of i=1: 4<=4 -> (4,1,1), where first fit has (2,2,1). Eight parts in
 * 2x2x2 have no flat shape and take the square one that the notebook lacks.
 */
static void
test_shapes_block(void **state)
{
    (void)state;
    expect_servers(cluster(4, 4, 2, 100), "block", "4x4x2", 4, "",
                   "0-0-0 1-0-0 2-0-0 3-0-0");
    expect_servers(cluster(4, 2, 4, 100), "block", "2x2x2", 4, "",
                   "0-0-0 0-0-1 1-0-0 1-0-1");
    expect_servers(cluster(4, 2, 4, 100), "block", "2x2x2", 8, "",
                   "0-0-0 0-0-1 0-1-0 0-1-1 1-0-0 1-0-1 1-1-0 1-1-1");
    expect_servers(cluster(4, 2, 4, 100), "block", "2x1x1", 4, "", "no_block");
    expect_servers(cluster(4, 2, 4, 100), "block", "4x4x2", 1, "", "no_block");
}

/*
 * A 2x2x2 meta-block in 3x3x3 with only 2-0-2 and what it wraps to free: origin (2,2,2)
 * wraps in all three coordinates, to {2,0}x{2,0}x{2,0}.
 */
static void
test_wrap_around(void **state)
{
    char taken[400] = "";
    struct net_ramp c = cluster(3, 3, 3, 100);
    struct placed p;
    (void)state;
    for (int i = 0; i < 27; i++)
        if (i / 9 == 1 || i / 3 % 3 == 1 || i % 3 == 1)
            sprintf(taken + strlen(taken), "%s%d-%d-%d", *taken ? " " : "", i / 9,
                    i / 3 % 3, i % 3);
    expect_servers(c, "block", "2x2x2", 2, taken, "2-2-2 0-2-2");
    expect_servers(c, "block", "2x2x2", 8, taken,
                   "2-2-2 2-2-0 2-0-2 2-0-0 0-2-2 0-2-0 0-0-2 0-0-0");
    p = place(c, "block", "2x2x2", graph_with(parts_of("x", 2, 1), "", ""), taken);
    assert_int_equal(p.nused, 2);
    assert_int_equal(p.nheld, 8); /* all of the meta-block is the job's */
    /* First fit's own blocks do not wrap: only single servers are left to it. */
    expect_servers(c, "first-fit", "", 2, taken, "no_block");
}

/*
 * The diagonal: k servers (i+t, j+t, l). Two parts on 2x2x1 with 0-1-0 and 1-0-0 taken:
 * no (2,1,1) and no (1,2,1) is free, but 0-0-0 and 1-1-0 are.
 */
static void
test_diagonal(void **state)
{
    struct net_ramp c = cluster(2, 2, 1, 100);
    (void)state;
    expect_servers(c, "first-fit", "", 2, "0-1-0 1-0-0", "0-0-0 1-1-0");
    expect_servers(c, "first-fit", "", 2, "0-1-0 1-0-0 0-0-0", "no_block");
    /* k <= R limits the diagonal: three parts need (3,1,1) on 3x1x1, and there is one. */
    expect_servers(cluster(3, 1, 1, 100), "first-fit", "", 3, "", "0-0-0 1-0-0 2-0-0");
    expect_servers(cluster(4, 2, 1, 100), "first-fit", "", 3, "0-0-0 1-1-0 2-0-0",
                   "no_block");
}

/*
 * Memory is per server. x takes 6 of 10 on 0-0-0; its child y (5) does not fit there,
 * though 0-0-0 and others together have plenty: it goes to the next free server. With
 * memory 5 for y on a cluster of one server the job has no memory.
 */
static void
test_memory(void **state)
{
    struct placed p;
    (void)state;
    p = place(cluster(2, 1, 1, 10), "first-fit", "",
              graph_with(parts_of("x", 1, 6), parts_of("y", 1, 5), "dep g x y 1\n"), "");
    assert_string_equal(p.text, "x=0-0-0 y=1-0-0");
    p = place(cluster(1, 1, 1, 10), "first-fit", "",
              graph_with(parts_of("x", 1, 6), parts_of("y", 1, 5), "dep g x y 1\n"), "");
    assert_int_equal(p.outcome, PLACE_NO_MEMORY);
    p = place(cluster(1, 1, 1, 10), "first-fit", "",
              graph_with(parts_of("x", 1, 6), parts_of("y", 1, 4), "dep g x y 1\n"), "");
    assert_string_equal(p.text, "x=0-0-0 y=0-0-0"); /* 6 + 4 = 10: just */
    p = place(cluster(1, 1, 1, 10), "first-fit", "",
              graph_with(parts_of("x", 1, 6), "", ""), "0-0-0");
    assert_int_equal(p.outcome, PLACE_NO_SERVERS);
    /* Ten parts of 0.1 in 1: their rounded sum may not be refused. */
    p = place(cluster(1, 1, 1, 1), "first-fit", "",
              "graph g m\nop g 1 forward 1 0.1\nop g 2 forward 1 0.1\n"
              "op g 3 forward 1 0.1\nop g 4 forward 1 0.1\nop g 5 forward 1 0.1\n"
              "op g 6 forward 1 0.1\nop g 7 forward 1 0.1\nop g 8 forward 1 0.1\n"
              "op g 9 forward 1 0.1\nop g 10 forward 1 0.1\n",
              "");
    assert_int_equal(p.outcome, PLACE_PLACED);
}

/*
 * Rollback of a parent: x's two parts lie on 0-0-0 and 1-0-0 (4 of 10 each), w's one (5)
 * on 0-0-0 too. y (two parts of 5) would fit 1-0-0 but not 0-0-0 (1 left), so nothing of
 * it may stay there: it takes the next block (2,1,1), at rack 1. z (6) then finds 1 left
 * on 0-0-0, 5 on 0-1-0, but 6 on 1-0-0.
 */
static void
test_parent_rollback(void **state)
{
    char text[2000];
    struct placed p;
    (void)state;
    snprintf(text, sizeof text, "graph g m\n%s%s", parts_of("x", 2, 4),
             parts_of("w", 1, 5));
    strcat(text, parts_of("y", 2, 5));
    strcat(text, parts_of("z", 1, 6));
    strcat(text, "dep g xa ya 1\ndep g xb ya 1\ndep g xa yb 1\ndep g xb yb 1\n"
                 "dep g ya z 1\ndep g yb z 1\n");
    p = place(cluster(2, 2, 1, 10), "first-fit", "", text, "");
    assert_string_equal(p.text, "xa=0-0-0 xb=1-0-0 w=0-0-0 ya=0-1-0 yb=1-1-0 z=1-0-0");
}

/*
 * A failed placement leaves the placer clean: the same placer then places a job
 * that needs all the memory of every server.
 */
static void
test_job_rollback(void **state)
{
    struct net_ramp on = cluster(2, 1, 1, 10);
    struct graph bad = graph_text("graph g m\nop g 1 forward 1 9\nop g 2 forward 1 9\n"
                                  "op g 3 forward 1 9\n");
    struct graph good =
        graph_text("graph g m\nop g 1 forward 1 10\nop g 2 forward 1 10\n");
    struct place_plan plan_bad, plan_good;
    struct place_placement placement;
    struct rec_error err;
    struct place_options options = {&on.net, find_heuristic("first-fit"), NULL};
    struct place_vacancy *all = place_vacancy_new(options.kind, &on.net, &err);
    struct place_placer *a = place_placer_new(&options, &err);
    (void)state;
    assert_true(place_plan_make(&bad, &plan_bad, &err));
    assert_true(place_plan_make(&good, &plan_good, &err));
    for (int i = 0; i < 3; i++) {
        assert_true(place_on(a, &plan_bad, all, &placement, &err));
        assert_int_equal(placement.outcome, PLACE_NO_MEMORY);
        assert_true(place_on(a, &plan_good, all, &placement, &err));
        assert_int_equal(placement.outcome, PLACE_PLACED);
        assert_int_equal(placement.nheld, 2);
    }
    place_placer_free(a);
    place_vacancy_free(all);
    place_plan_free(&plan_bad);
    place_plan_free(&plan_good);
    graph_free(&bad);
    graph_free(&good);
}

#define DEPS_2_4                                                   \
    "dep g xa ya 1\ndep g xb ya 1\ndep g xa yb 1\ndep g xb yb 1\n" \
    "dep g xa yc 1\ndep g xb yc 1\ndep g xa yd 1\ndep g xb yd 1\n"

/*
 * Four parts after a parent of two. block: they go round the parent's servers evenly.
 * first-fit asks for equally many: they get a block of their own, (2,2,1).
 * Three after two: no multiple, a block of its own in both.
 */
static void
test_multiple_of_parent(void **state)
{
    char text[3000];
    struct placed p;
    (void)state;
    snprintf(text, sizeof text, "graph g m\n%s", parts_of("x", 2, 1));
    strcat(text, parts_of("y", 4, 1));
    strcat(text, DEPS_2_4);
    p = place(cluster(4, 4, 2, 10), "block", "4x4x2", text, "");
    assert_string_equal(p.text, "xa=0-0-0 xb=1-0-0 ya=0-0-0 yb=1-0-0 yc=0-0-0 yd=1-0-0");
    p = place(cluster(4, 4, 2, 10), "first-fit", "", text, "");
    assert_string_equal(p.text, "xa=0-0-0 xb=1-0-0 ya=0-0-0 yb=0-1-0 yc=1-0-0 yd=1-1-0");
    snprintf(text, sizeof text, "graph g m\n%s", parts_of("x", 2, 1));
    strcat(text, parts_of("y", 3, 1));
    strcat(text, "dep g xa ya 1\ndep g xa yb 1\ndep g xa yc 1\n");
    p = place(cluster(4, 4, 2, 10), "block", "4x4x2", text, "");
    assert_string_equal(p.text, "xa=0-0-0 xb=1-0-0 ya=0-0-0 yb=1-0-0 yc=2-0-0");
}

/* A twin goes where its op is; its memory counts once, the larger of the two. */
static void
test_twins(void **state)
{
    struct placed p =
        place(cluster(2, 1, 1, 10), "first-fit", "",
              "graph g m\nop g 1 forward 1 6 pair=4\n"
              "op g 2 forward 1 4 pair=3\nop g 4 backward 1 3\n"
              "op g 3 backward 1 2\ndep g 1 2 1\ndep g 2 3 1\ndep g 3 4 1\n",
              "");
    (void)state;
    assert_string_equal(p.text, "1=0-0-0 2=0-0-0 4=0-0-0 3=0-0-0");
}

/* If memory never binds, the first unit of each number of parts says where all go. */
static void
check_kinds(struct place_placer *placer, const struct place_plan *plan,
            const struct place_vacancy *vacancy)
{
    struct place_placement all, kinds;
    struct rec_error err = {.text = ""};
    uint32_t server[20], held[20];
    assert_true(place_on(placer, plan, vacancy, &all, &err));
    assert_true(plan->graph->nops <= 20 && all.nheld <= 20);
    memcpy(server, all.server, plan->graph->nops * sizeof *server);
    memcpy(held, all.held, all.nheld * sizeof *held);
    assert_true(place_light(placer, plan, vacancy, &kinds, &err));
    assert_int_equal(kinds.outcome, all.outcome);
    if (all.outcome != PLACE_PLACED) {
        assert_int_equal(kinds.failed, all.failed);
        return;
    }
    assert_int_equal(kinds.nheld, all.nheld);
    assert_memory_equal(kinds.held, held, all.nheld * sizeof *held);
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct graph_unit *unit = &plan->graph->unit[plan->step[i].unit], *first;
        uint32_t k = 0;
        do
            first = &plan->graph->unit[plan->step[plan->kind[k++]].unit];
        while (first->parts != unit->parts);
        assert_memory_equal(server + unit->first, kinds.server + first->first,
                            unit->parts * sizeof *server);
    }
}

/*
 * What a vacancy remembers of where blocks may start is right, however servers come and
 * go: placing on it gives what placing on a new one of the same servers does, by each
 * heuristic.
 */
static void
check_remembered(struct net_ramp on)
{
    uint32_t nservers = net_servers(&on.net);
    struct rec_error err = {.text = ""};
    struct place_vacancy *old = place_vacancy_new(&place_ramp_first_fit, &on.net, &err);
    int light = 0;
    random_state = 5;
    for (int step = 0; step < 2000; step++) {
        const struct place_kind *h = place_kinds[draw(nservers > 64 ? 6 : 7)];
        int parts = (int)(1 + draw(6));
        struct graph g =
            graph_text(graph_with(parts_of("x", parts, 2),
                                  parts_of("y", 1 + (int)draw(3), 1 + (int)draw(2)), ""));
        struct place_options options = {&on.net, h, h->numbered ? "2" : "2x2x2"};
        struct place_vacancy *new = place_vacancy_new(h, &on.net, &err);
        struct place_placer *placer[2] = {place_placer_new(&options, &err),
                                          place_placer_new(&options, &err)};
        struct place_placement got[2];
        struct place_plan plan;
        for (int i = 0; i < 6; i++)
            place_set_free(old, draw(nservers), draw(10) < (step % 40 < 20 ? 2 : 6));
        for (uint32_t s = 0; s < nservers; s++)
            place_set_free(new, s, place_is_free(old, s));
        assert_true(place_plan_make(&g, &plan, &err));
        assert_true(place_on(placer[0], &plan, old, &got[0], &err));
        assert_true(place_on(placer[1], &plan, new, &got[1], &err));
        assert_int_equal(got[0].outcome, got[1].outcome);
        assert_int_equal(got[0].failed, got[1].failed);
        if (got[0].outcome == PLACE_PLACED)
            assert_memory_equal(got[0].server, got[1].server,
                                g.nops * sizeof *got[0].server);
        if (place_is_light(placer[0], &plan)) {
            check_kinds(placer[0], &plan, old);
            light++;
        }
        for (int i = 0; i < 2; i++)
            place_placer_free(placer[i]);
        place_vacancy_free(new);
        place_plan_free(&plan);
        graph_free(&g);
    }
    assert_in_range(light, 100, 1900); /* memory binds in others */
    place_vacancy_free(old);
}

/* On up to 64 servers other things are remembered than on more. */
static void
test_remembered(void **state)
{
    (void)state;
    check_remembered(cluster(11, 6, 2, 3));
    check_remembered(cluster(4, 4, 2, 3));
    check_remembered(cluster(4, 3, 5, 3));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_heuristic),
        cmocka_unit_test(test_remembered),
        cmocka_unit_test(test_shapes_first_fit),
        cmocka_unit_test(test_next_shape),
        cmocka_unit_test(test_long_rack),
        cmocka_unit_test(test_shapes_block),
        cmocka_unit_test(test_wrap_around),
        cmocka_unit_test(test_diagonal),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_parent_rollback),
        cmocka_unit_test(test_job_rollback),
        cmocka_unit_test(test_multiple_of_parent),
        cmocka_unit_test(test_twins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
