/*
 * Futures on small clusters (lib/alloc/future.c) against those that an admission plays: a
 * rule of which nothing is known but how it decides gets the latter. On random small
 * clusters, graphs and streams (bound_settings.h), rollouts decide the same with both.
 */
#include "bound_settings.h"

/* What rollouts decided: per job, the graph, or GRAPHS: it is blocked; and its end. */
struct decided {
    uint32_t n, graph[JOBS];
    double finish[JOBS];
};

static bool
note(void *context, const struct alloc_decision *decision, struct rec_error *error)
{
    struct decided *decided = context;
    uint32_t graph = 0;
    (void)error;
    while (!decision->cause && strcmp(names[graph], decision->graph->id) != 0)
        graph++;
    decided->graph[decided->n] = decision->cause ? GRAPHS : graph;
    decided->finish[decided->n++] = decision->cause ? 0 : decision->finish;
    return true;
}

/* How rollouts are played. */
struct how {
    const struct alloc_chooser *base;
    struct place_options more;
    uint32_t nmore, horizon, seed;
    char futures[8];
};

/* `base` by itself, or improved by rollouts. */
static struct decided
play(struct setting *s, const struct stream *stream, const struct how *how,
     const struct alloc_chooser *base, bool improved)
{
    struct decided decided = {0};
    struct alloc_choosing alone = {.chooser = base};
    struct alloc_choosing rollout = {.chooser = alloc_chooser_find(rec_str("rollout"))};
    struct alloc_admission_options options = {.placer = s->placer,
                                              .more = &how->more,
                                              .nmore = how->nmore,
                                              .choosing = improved ? &rollout : &alone,
                                              .down = stream->down,
                                              .ndown = stream->ndown};
    struct alloc_choice choice = {.argument = how->futures,
                                  .admission = &options,
                                  .store = &s->store,
                                  .base = &alone,
                                  .horizon = how->horizon,
                                  .seed = how->seed};
    struct alloc_admission *admission;
    rollout.self = rollout.chooser->open(&choice, &err);
    assert_non_null(rollout.self);
    admission = alloc_admission_new(&options, &s->store, note, &decided, &err);
    assert_non_null(admission);
    for (uint32_t i = 0; i < stream->njobs; i++)
        if (!alloc_admission_advance(admission, &stream->job[i], &err) ||
            !alloc_admission_arrive(admission, &stream->job[i], &err))
            fail_msg("%s", err.text);
    assert_true(alloc_admission_end(admission, &err));
    assert_int_equal(decided.n, stream->njobs);
    alloc_admission_free(admission);
    rollout.chooser->free(rollout.self);
    return decided;
}

static struct how
random_how(const struct setting *s)
{
    static const char *const rules[] = {"first", "fastest", "fewest-servers"};
    struct how how = {.base = alloc_chooser_find(rec_str(rules[random_below(3)])),
                      .more = s->placer,
                      .nmore = (uint32_t)random_below(2),
                      .horizon = 1 + (uint32_t)random_below(12),
                      .seed = (uint32_t)random_below(1000)};
    do
        how.more.kind = place_kinds[random_below(count_kinds())];
    while (!how.more.kind->suits(s->cluster) || how.more.kind->argument);
    how.more.argument = NULL;
    sprintf(how.futures, "%u", 1 + (uint32_t)random_below(40));
    return how;
}

static bool
is_same(const struct decided *a, const struct decided *b, uint32_t j)
{
    return a->graph[j] == b->graph[j] && a->finish[j] == b->finish[j];
}

/* Rollouts that never change what the base decides would be the same, too, so those that
 * do are counted. */
static void
test_same(void **state)
{
    uint32_t changed = 0;
    (void)state;
    for (int i = 0; i < 400; i++) {
        struct setting s;
        struct stream stream;
        struct how how;
        struct alloc_chooser unknown;
        struct decided small, general, base;
        make_setting(&s, 64);
        make_stream(&stream, &s, JOBS);
        how = random_how(&s);
        assert_non_null(how.base->better);
        unknown = *how.base;
        unknown.better = NULL;
        base = play(&s, &stream, &how, how.base, false);
        small = play(&s, &stream, &how, how.base, true);
        general = play(&s, &stream, &how, &unknown, true);
        for (uint32_t j = 0; j < stream.njobs; j++) {
            if (!is_same(&small, &general, j))
                fail_msg("setting %d, %s, job %u", i, how.base->name, j);
            changed += !is_same(&small, &base, j);
        }
        free_setting(&s);
    }
    assert_true(changed > 200); /* 318 of 5,600 */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
