/*
 * Turns the records of a training run into slices and marks. They have only one time
 * each: a slice lasts from one record to the next, so it is kept open until then.
 */
#include "private.h"

#include <stdio.h>

/* The two tracks of training: phases and iterations. */
static const struct timeline_row state_row = {.type = REC_STATE,
                                              .look = TIMELINE_OP,
                                              .start = 1,
                                              .counter = "instances",
                                              .lane = "lane"},
                                 iteration_row = {.type = REC_TRAIN,
                                                  .look = TIMELINE_ITERATION,
                                                  .end = 1,
                                                  .lane = "lane"};

/* Adds a slice of a training run, if it has a length and is shown. */
static bool
add_training(struct timeline *t, const struct timeline_row *row, const char *track,
             struct rec_str name, struct timeline_slice *slice, struct rec_error *err)
{
    uint32_t process;
    slice->row = row;
    slice->track = slice->src = slice->dst = REC_NONE;
    return slice->from >= slice->to || !timeline_shows(t, slice->from, slice->to) ||
           (timeline_find_run(t, rec_str("training"), true, &process, err) &&
            timeline_find_group(t, process, rec_str(track), row->lane, &slice->group,
                                err) &&
            timeline_find_name(t, rec_str(track), name, &slice->name, err) &&
            timeline_add_slice(t, slice, err));
}

/* Ends the phase that has begun, if there is one. */
static bool
end_state(struct timeline *t, int64_t time, struct rec_error *err)
{
    struct timeline_training *run = &t->training;
    if (!run->stateful)
        return true;
    run->stateful = false;
    run->state.to = time;
    return add_training(t, &state_row, "phase", rec_str(run->phase), &run->state, err);
}

/* A state record ends a phase and begins the next. */
bool
timeline_take_state(struct timeline *t, const struct rec_reader *reader,
                    const struct rec *rec, struct rec_error *err)
{
    struct timeline_training *run = &t->training;
    struct rec_str phase = {"state", 5};
    double time;
    t->any = true;
    (void)rec_find_key(rec, "phase", &phase);
    if (!timeline_get_seconds(reader, rec, 1, &time, err) ||
        !end_state(t, timeline_nanoseconds(time), err))
        return false;
    if (t->job)
        return true;
    run->state =
        (struct timeline_slice){.from = timeline_nanoseconds(time), .look = TIMELINE_OP};
    for (unsigned i = TIMELINE_TRAINING; i <= TIMELINE_STALLED; i++)
        if (rec_str_is(phase, timeline_looks[i].name))
            run->state.look = (enum timeline_look)i;
    run->stateful = true;
    return (run->phase = rec_arena_copy(&t->arena, phase, err)) &&
           (run->state.line = rec_arena_copy(&t->arena, rec->line, err));
}

/* A step event ends an iteration, whose beginning is known unless something has broken
 * the chain of iterations, and begins the next. */
static bool
take_step(struct timeline *t, const struct rec_reader *reader, const struct rec *rec,
          int64_t time, struct rec_error *err)
{
    char number[24];
    uint64_t iterations;
    struct timeline_training *run = &t->training;
    struct timeline_slice slice = {
        .from = run->iteration, .to = time, .look = TIMELINE_ITERATION};
    bool iterating = run->iterating;
    run->iterating = true;
    run->iteration = time;
    if (!rec_get_count(reader, rec, 3, &iterations, err))
        return false;
    snprintf(number, sizeof number, "%llu", (unsigned long long)iterations);
    return !iterating ||
           ((slice.line = rec_arena_copy(&t->arena, rec->line, err)) &&
            add_training(t, &iteration_row, "iterations", rec_str(number), &slice, err));
}

/* An event of training: a step, or a mark. Some events break off an iteration; config
 * begins one. */
bool
timeline_take_train(struct timeline *t, const struct rec_reader *reader,
                    const struct rec *rec, struct rec_error *err)
{
    static const char *const ends[] = {"reconfig", "rendezvous_global",
                                       "rendezvous_local", "redo", "fatal"};
    struct timeline_training *run = &t->training;
    struct timeline_mark mark = {.type = REC_TRAIN};
    double time;
    t->any = true;
    if (!timeline_get_seconds(reader, rec, 1, &time, err))
        return false;
    if (t->job)
        return true;
    mark.at = timeline_nanoseconds(time);
    if (rec_str_is(rec->field[2], "step"))
        return take_step(t, reader, rec, mark.at, err);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (rec_str_is(rec->field[2], ends[i]))
            run->iterating = false;
    if (rec_str_is(rec->field[2], "config")) {
        run->iterating = true;
        run->iteration = mark.at;
    }
    return !timeline_shows(t, mark.at, mark.at) ||
           (timeline_find_run(t, rec_str("training"), true, &mark.process, err) &&
            (mark.line = rec_arena_copy(&t->arena, rec->line, err)) &&
            timeline_add_mark(t, &mark, err));
}

bool
timeline_take_trained(struct timeline *t, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_error *err)
{
    double end;
    t->training.iterating = false;
    return timeline_get_seconds(reader, rec, 3, &end, err) &&
           end_state(t, timeline_nanoseconds(end), err);
}
