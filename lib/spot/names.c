/* The names of a spot cluster's instances, as the records of a trace tell them: an
 * instance that is there cannot be added, and one that is not cannot be preempted. */
#include "rampipe/spot.h"

#include <stdlib.h>

/* Names keep their index while they are there; gaps are filled first, so that memory
 * follows the number of instances there, not the number of all that ever came. */
static bool
add(struct spot_names *names, struct rec_str id, struct rec_error *err)
{
    uint32_t i;
    if (names->ngaps)
        i = names->gap[--names->ngaps];
    else if (rec_grow(&names->name, &names->room, names->n + 1, sizeof *names->name, err))
        i = (uint32_t)names->n++;
    else
        return false;
    names->name[i] = strndup(id.ptr, id.len);
    if (!names->name[i])
        return rec_fail_memory(err);
    return rec_map_add(&names->there, rec_str(names->name[i]), i, err);
}

static bool
remove_one(struct spot_names *names, struct rec_str id, uint32_t i, struct rec_error *err)
{
    rec_map_remove(&names->there, id);
    free(names->name[i]);
    names->name[i] = NULL;
    if (!rec_grow(&names->gap, &names->gap_room, names->ngaps + 1, sizeof *names->gap,
                  err))
        return false;
    names->gap[names->ngaps++] = i;
    return true;
}

/* A named instance comes or goes. False with *wrong: it cannot, as it is there already or
 * is not there. After unnamed events that is not sure, and the trace is believed. */
static bool
happen(struct spot_names *names, bool comes, struct rec_str id, bool *wrong,
       struct rec_error *err)
{
    uint32_t i = rec_map_get(&names->there, id);
    if (comes && i != REC_NONE) {
        *wrong = !names->some_gone;
        return !*wrong;
    }
    if (comes)
        return add(names, id, err);
    if (i != REC_NONE)
        return remove_one(names, id, i, err);
    *wrong = !names->some_unnamed;
    return !*wrong;
}

bool
spot_names_take(struct spot_names *names, const struct spot_order *order,
                const struct spot_event *event, const struct rec_reader *reader,
                struct rec_error *err)
{
    bool comes = event->kind == SPOT_ADD, wrong = false;
    struct rec_str rest = event->ids, id;

    /* the instances at the trace's start have no names */
    names->some_unnamed = names->some_unnamed || order->instances > 0;
    if (event->ids.len == 0 && event->count > 0) {
        names->some_unnamed = names->some_unnamed || comes;
        names->some_gone = names->some_gone || !comes;
    }
    while (event->ids.len > 0 && rec_str_split(&rest, ',', &id))
        if (!happen(names, comes, id, &wrong, err))
            return wrong ? rec_reader_fail(reader, err, "instance '%.*s' is %s",
                                           REC_SAID(id),
                                           comes ? "added, but it is there already"
                                                 : "preempted, but it is not there")
                         : false;
    return true;
}

void
spot_names_free(struct spot_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
    free(names->gap);
    rec_map_free(&names->there);
    *names = (struct spot_names){.n = 0};
}
