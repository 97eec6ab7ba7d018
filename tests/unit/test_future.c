/*
 * Futures on small clusters (lib/alloc/future.c) against those that an admission plays: a
 * rule of which nothing is known but how it decides gets the latter. On random small
 * clusters, graphs and streams (bound_settings.h), rollouts decide the same with both.
 */
#include "rollouts.h"

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
        struct alloc_choosing rule = {0}, other = {.chooser = &unknown};
        struct decided small, general, base;
        make_setting(&s, 64);
        make_stream(&stream, &s, JOBS);
        how = random_how(&s);
        assert_non_null(how.base->better);
        rule.chooser = how.base;
        unknown = *how.base;
        unknown.better = NULL;
        base = play(&s, &stream, &how, &rule, false);
        small = play(&s, &stream, &how, &rule, true);
        general = play(&s, &stream, &how, &other, true);
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
