/* The durations of tasks in an earlier run, from the attempt records in its log or its
 * output. */
#include "rampipe/task.h"

#include <math.h>
#include <stdlib.h>

struct task_cost {
    double good;  /* of the last attempt with exit status 0, seconds; NAN: none */
    double ended; /* of the last attempt with any exit status (ok=any), seconds; NAN */
};

static struct task_cost *
find(struct task_costs *costs, struct rec_str id, struct rec_error *err)
{
    uint32_t at = rec_map_get(&costs->ids, id);
    const char *kept;
    if (at != REC_NONE)
        return &costs->cost[at];
    if (!rec_grow(&costs->cost, &costs->room, costs->n + 1, sizeof *costs->cost, err) ||
        !(kept = rec_arena_copy(&costs->arena, id, err)) ||
        !rec_map_add(&costs->ids, (struct rec_str){kept, id.len}, (uint32_t)costs->n,
                     err))
        return NULL;
    costs->cost[costs->n] = (struct task_cost){NAN, NAN};
    return &costs->cost[costs->n++];
}

static bool
take(struct task_costs *costs, const struct rec_reader *reader, const struct rec *rec,
     struct rec_error *err)
{
    double start, end;
    uint64_t status;
    struct task_cost *cost;
    if (rec->type != REC_ATTEMPT)
        return true;
    if (!rec_check(reader, rec, err) || !rec_get_number(reader, rec, 3, &start, err) ||
        !rec_get_later(reader, rec, 4, start, &end, err) ||
        !(cost = find(costs, rec->field[1], err)))
        return false;
    if (!rec_parse_uint(rec->field[5], &status))
        return true;
    cost->ended = end - start;
    if (status == 0)
        cost->good = end - start;
    return true;
}

bool
task_costs_read(struct task_costs *costs, struct rec_reader *reader,
                struct rec_error *err)
{
    struct rec rec;
    int status;
    while ((status = rec_next(reader, &rec, err)) > 0)
        if (!take(costs, reader, &rec, err))
            return false;
    return status == 0;
}

double
task_costs_get(const struct task_costs *costs, const struct task *task)
{
    uint32_t at = rec_map_get(&costs->ids, rec_str(task->id));
    if (at == REC_NONE)
        return NAN;
    return task->ok_any ? costs->cost[at].ended : costs->cost[at].good;
}

void
task_costs_free(struct task_costs *costs)
{
    rec_map_free(&costs->ids);
    rec_arena_free(&costs->arena);
    free(costs->cost);
}
