/*
 * The family of tasks. A log of tasks that were run has attempt records (one for each
 * time that a task was started), and a done or block record when a task has ended. A
 * prediction has task records, whose cost= is the time of a task, and one done record, of
 * the whole graph of tasks.
 *
 * An attempt with status 0 counts as a task that is done. The done record counts only
 * behind an attempt with another status, which some tasks may have and still be done.
 */
#include "private.h"

#include <math.h>

/* clang-format off */

enum { KEY_USER, KEY_SYSTEM, KEY_BEGAN, KEY_COST, KEY_STEPS, KEY_SEQUENTIAL, KEY_MEMORY };
static const char *const keys[] = {"user", "system", "began", "cost", "steps",
                                   "sequential", "memory"};

enum { AT_DONE, AT_FAILED, AT_SKIPPED, AT_END, WHILE_RUNNING, NMOMENTS };
enum {
    DONE, FAILED, SKIPPED,
    ATTEMPTS,
    TASK_SECONDS,      /* of attempts that did not fail */
    RUN_SECONDS,       /* of all attempts */
    PROCESSOR_SECONDS, /* of all attempts */
    /* the terms that are derived */
    ONE, TASKS, MAKESPAN, HORIZON,
    NTERMS
};
static const struct metrics_sum sums[] = {
    [DONE] = {AT_DONE, false},
    [FAILED] = {AT_FAILED, false},
    [SKIPPED] = {AT_SKIPPED, false},
    [ATTEMPTS] = {AT_END, false},
    [TASK_SECONDS] = {AT_DONE, false},
    [RUN_SECONDS] = {WHILE_RUNNING, true},
    [PROCESSOR_SECONDS] = {AT_END, false},
};

enum { TIME, PROCESSOR, MEMORY };
static const struct metrics_quantity quantities[] = {
    {"task time", "s", NULL},
    {"processor time", "s", NULL},
    {"memory", "B", NULL},
};

static const struct metrics_quotient figures[] = {
    {"tasks", "", TASKS, ONE},
    {"done", "", DONE, ONE},
    {"failed", "", FAILED, ONE},
    {"skipped", "", SKIPPED, ONE},
    {"attempts", "", ATTEMPTS, ONE},
    {"makespan", "s", MAKESPAN, ONE},
    {"total task time", "s", TASK_SECONDS, ONE},
    {"total running time", "s", RUN_SECONDS, ONE},
    {"total processor time", "s", PROCESSOR_SECONDS, ONE},
    {"parallelism", "", RUN_SECONDS, MAKESPAN},
    {"processors in use", "", PROCESSOR_SECONDS, MAKESPAN},
    {"busy", "%", PROCESSOR_SECONDS, RUN_SECONDS},
};

static const struct metrics_show shown[] = {
    {"done", "done", "value"},
    {"attempts", "attempts", "value"},
    {"mean", "task time", "mean"},
    {"p95", "task time", "p95"},
    {"busy", "busy", "value"},
};

static const struct metrics_quotient series[] = {
    {"done", "", DONE, ONE},
    {"failed", "", FAILED, ONE},
    {"skipped", "", SKIPPED, ONE},
    {"running", "", RUN_SECONDS, HORIZON},
};

/* clang-format on */

_Static_assert(NTERMS <= METRICS_MOST && NMOMENTS <= METRICS_MOMENTS, "room for all");

/* A log may have several runs. Times in it count from the beginning of their run; they
 * are put on the time line of the first run. */
struct state {
    bool some;    /* the beginning of the first run is known: */
    double began; /* seconds since 1970 */
    double later; /* seconds by which the present run began later */
    /* The last attempt's status was not 0. If the task may end with any status, a done
     * record follows. */
    bool doubtful;
};

static void
set_moment(struct metrics_case *one, int moment, double from, double to)
{
    one->at[moment] = (struct metrics_span){from, to};
}

static void
set_done(struct metrics_case *one, double end, double seconds)
{
    set_moment(one, AT_DONE, end, end);
    one->amount[TASK_SECONDS] = one->quantity[TIME] = seconds;
}

/* ---- what was run ----------------------------------------------------------- */

static bool
take_attempt(struct state *state, const struct rec_reader *reader, const struct rec *rec,
             const double key[], struct metrics_case *one, struct rec_error *err)
{
    double start, end, processor = key[KEY_USER] + key[KEY_SYSTEM];
    struct rec_str status;
    if (!rec_get_number(reader, rec, 3, &start, err) ||
        !rec_get_later(reader, rec, 4, start, &end, err) ||
        !rec_get_id(reader, rec, 5, &status, err))
        return false;
    if (!state->some && !isnan(key[KEY_BEGAN])) {
        state->some = true;
        state->began = key[KEY_BEGAN];
    }
    state->later = isnan(key[KEY_BEGAN]) ? 0 : fmax(0, key[KEY_BEGAN] - state->began);
    set_moment(one, WHILE_RUNNING, state->later + start, state->later + end);
    set_moment(one, AT_END, state->later + end, state->later + end);
    one->amount[PROCESSOR_SECONDS] = processor;
    state->doubtful = !rec_str_is(status, "0");
    if (state->doubtful)
        return true;
    set_done(one, state->later + end, end - start);
    one->quantity[PROCESSOR] = processor;
    one->quantity[MEMORY] = key[KEY_MEMORY];
    return true;
}

/* A done record counts only behind an attempt with a status other than 0, of a task that
 * may end so (ok=any); any other task was counted with its attempt. */
static bool
take_done(struct state *state, const struct rec_reader *reader, const struct rec *rec,
          struct metrics_case *one, struct rec_error *err)
{
    double start, end;
    if (!rec_get_number(reader, rec, 4, &start, err) ||
        !rec_get_later(reader, rec, 5, start, &end, err))
        return false;
    if (state->doubtful)
        set_done(one, state->later + end, end - start);
    state->doubtful = false;
    return true;
}

static bool
take_block(const struct state *state, const struct rec_reader *reader,
           const struct rec *rec, struct metrics_case *one, struct rec_error *err)
{
    double time;
    if (!rec_get_number(reader, rec, 2, &time, err))
        return false;
    time += state->later;
    set_moment(one, rec_str_is(rec->field[3], "failed") ? AT_FAILED : AT_SKIPPED, time,
               time);
    return true;
}

/* ---- what is predicted ------------------------------------------------------ */

static bool
take_predicted(const struct rec_reader *reader, const struct rec *rec, const double key[],
               struct metrics_case *one, struct rec_error *err)
{
    double start, end, seconds = key[KEY_STEPS] * key[KEY_SEQUENTIAL];
    if (rec->type == REC_TASK) {
        set_done(one, 0, key[KEY_COST]);
        one->amount[TASK_SECONDS] = 0; /* the done record of the graph has the sum */
        return true;
    }
    if (rec->type != REC_DONE)
        return true;
    if (!rec_get_number(reader, rec, 4, &start, err) ||
        !rec_get_later(reader, rec, 5, start, &end, err))
        return false;
    set_moment(one, WHILE_RUNNING, start, end);
    set_moment(one, AT_END, end, end);
    set_moment(one, AT_DONE, end, end);
    one->amount[DONE] = 0;
    one->amount[TASK_SECONDS] = seconds;
    one->amount[RUN_SECONDS] = end > start ? seconds / (end - start) : 0;
    one->amount[ATTEMPTS] = one->amount[PROCESSOR_SECONDS] = NAN;
    return true;
}

static bool
take(void *kept, const struct rec_reader *reader, const struct rec *rec,
     const double key[], struct metrics_case *one, struct rec_error *err)
{
    struct state *state = kept;
    one->named = one->predicted == (rec->type == REC_TASK);
    if (one->predicted)
        return take_predicted(reader, rec, key, one, err);
    switch (rec->type) {
    case REC_ATTEMPT: return take_attempt(state, reader, rec, key, one, err);
    case REC_DONE: return take_done(state, reader, rec, one, err);
    case REC_BLOCK: return take_block(state, reader, rec, one, err);
    default: return true; /* a task record in a log, before its attempts */
    }
}

static bool
name_group(const struct rec *rec, const double key[], const char *by,
           char text[METRICS_NAME_MAX], struct rec_str *name)
{
    (void)key, (void)text;
    if (rec->type != REC_ATTEMPT)
        name->ptr = NULL;
    else if (strcmp(by, "status") == 0)
        *name = rec->field[5];
    else
        return false;
    return true;
}

static void
derive(const void *kept, const struct metrics_span seen[], double seconds, bool part,
       double term[])
{
    (void)kept, (void)part;
    term[TASKS] = term[DONE] + term[FAILED] + term[SKIPPED];
    term[MAKESPAN] = seen[WHILE_RUNNING].to - seen[WHILE_RUNNING].from;
    term[HORIZON] = seconds;
}

static const struct metrics_record cases[] = {
    {REC_ATTEMPT, NULL}, {REC_DONE, "task"}, {REC_BLOCK, "task"}, {REC_TASK, NULL}};
static const struct metrics_lead lead = {.log = REC_ATTEMPT, .prediction = REC_TASK};

const struct metrics_family metrics_tasks = {
    METRICS_NEEDED("tasks", cases, keys, sums, quantities, figures, shown, take),
    .lead = &lead,
    .series = METRICS_LIST(series),
    .state_size = sizeof(struct state),
    .name_group = name_group,
    .derive = derive,
};
