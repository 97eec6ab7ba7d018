/*
 * What rollouts decide on the random small clusters and streams of bound_settings.h.
 */
#ifndef RAMPIPE_TESTS_ROLLOUTS_H
#define RAMPIPE_TESTS_ROLLOUTS_H

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
    const struct alloc_chooser *base; /* which a test gives to play() */
    struct place_options more;
    uint32_t nmore, horizon, seed;
    char futures[8];
};

/* `base` by itself, or improved by rollouts. */
static struct decided
play(struct setting *s, const struct stream *stream, const struct how *how,
     struct alloc_choosing *base, bool improved)
{
    struct decided decided = {0};
    struct alloc_choosing rollout = {.chooser = alloc_chooser_find(rec_str("rollout"))};
    struct alloc_admission_options options = {.placer = s->placer,
                                              .more = &how->more,
                                              .nmore = how->nmore,
                                              .choosing = improved ? &rollout : base,
                                              .down = stream->down,
                                              .ndown = stream->ndown};
    struct alloc_choice choice = {.argument = how->futures,
                                  .admission = &options,
                                  .store = &s->store,
                                  .base = base,
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

#endif
