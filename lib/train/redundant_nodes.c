/* Training with redundant computation: instances that come and go. */
#include "redundant_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODES_MAX = 1 << 14 }; /* tables have a few pipelines of a few stages */

/* The index of a node by name, nnodes if there is none. */
static size_t
find_named(const struct train_redundant *r, struct rec_str id)
{
    size_t i = rec_map_get(&r->names, id) == REC_NONE ? r->nnodes : 0;
    while (i < r->nnodes && !rec_str_is(id, r->node[i].name))
        i++;
    return i;
}

/* The node that has a coordinate, NULL if none has it. */
static struct node *
find_holder(struct train_redundant *r, struct coordinate c)
{
    for (size_t i = 0; i < r->nnodes; i++)
        for (int k = 0; k < r->node[i].ncoordinates; k++)
            if (r->node[i].coordinate[k].pipeline == c.pipeline &&
                r->node[i].coordinate[k].stage == c.stage)
                return &r->node[i];
    return NULL;
}

/* The number of nodes is about to change. */
static void
mark_change(struct train_redundant *r)
{
    r->changed = r->now;
    r->changed_nodes_ms = r->nodes_ms;
}

bool
train_redundant_add_node(struct train_redundant *r, struct rec_str id,
                         struct rec_error *err)
{
    struct node node = {.serial = r->serials, .start = r->now, .status = CREATING};
    char number[24];
    if (id.len > 0 && find_named(r, id) < r->nnodes)
        return train_fleet_fail(err, id, true);
    while (id.len == 0 || find_named(r, id) < r->nnodes) {
        int len =
            snprintf(number, sizeof number, "%llu", (unsigned long long)r->numbers++);
        id = (struct rec_str){number, (size_t)len};
    }
    if (!rec_grow(&r->node, &r->node_room, r->nnodes + 1, sizeof *r->node, err))
        return false;
    if (r->nnodes == NODES_MAX)
        return rec_fail(err, REC_DATA, "there are more than %d instances", NODES_MAX);
    if (!(node.name = strndup(id.ptr, id.len)))
        return rec_fail_memory(err);
    if (!rec_map_add(&r->names, rec_str(node.name), 0, err)) {
        free(node.name);
        return false;
    }
    mark_change(r);
    if (r->first_node == TRAIN_REDUNDANT_NEVER)
        r->first_node = r->now;
    r->first_nodes += r->first_node == r->now;
    r->serials++;
    r->node[r->nnodes++] = node;
    r->count[CREATING]++;
    r->result.added++;
    if (r->next_ready == TRAIN_REDUNDANT_NEVER)
        r->next_ready = r->now + r->profile->creation_ms;
    train_redundant_tell(r, "add");
    return true;
}

bool
train_redundant_keep_value(struct sample *sample, int64_t ms, struct rec_error *err)
{
    if (!rec_grow(&sample->value, &sample->room, sample->n + 1, sizeof *sample->value,
                  err))
        return false;
    sample->value[sample->n++] = (double)ms;
    return true;
}

/* Training goes on if the stage before can take over; else the failure is fatal. */
static bool
is_fatal(struct train_redundant *r, const struct node *gone)
{
    struct coordinate c = gone->coordinate[0], before = c;
    struct node *neighbour;
    if (gone->status != RUNNING)
        return false;
    if (gone->ncoordinates == 2)
        return true;
    before.stage = (c.stage > 0 ? c.stage : r->stages) - 1;
    neighbour = find_holder(r, before);
    if (!neighbour)
        return false;
    if (neighbour->ncoordinates == 2)
        return true;
    neighbour->coordinate[neighbour->ncoordinates++] = c;
    r->doubled++;
    return false;
}

static void
lose_step(struct train_redundant *r)
{
    double ms = (double)(r->now - r->step_start);
    double all = r->nodes_ms - r->start_nodes_ms;
    if (r->status != TRAIN_REDUNDANT_RUNNING)
        return;
    r->result.seconds[TRAIN_USEFUL] -= ms / 1000;
    r->result.seconds[TRAIN_WASTED] += ms / 1000;
    r->result.instance_seconds[TRAIN_USEFUL] -= all / 1000;
    r->result.instance_seconds[TRAIN_WASTED] += all / 1000;
}

static bool
remove_node(struct train_redundant *r, size_t i, struct rec_error *err)
{
    struct node gone = r->node[i];
    bool fatal;

    if (!train_redundant_keep_value(&r->lifetime, r->now - gone.start, err) ||
        (r->last_removal != TRAIN_REDUNDANT_NEVER &&
         !train_redundant_keep_value(&r->gap, r->now - r->last_removal, err)))
        return false;
    mark_change(r);
    r->last_removal = r->now;
    memmove(&r->node[i], &r->node[i + 1], (--r->nnodes - i) * sizeof *r->node);
    rec_map_remove(&r->names, rec_str(gone.name));
    free(gone.name);
    r->count[gone.status]--;
    r->result.preempted++;
    r->result.lost_active += gone.status == RUNNING;
    r->doubled -= gone.ncoordinates == 2;
    r->nleaving -= gone.leaving;
    train_redundant_find_next_ready(r);
    fatal = is_fatal(r, &gone);
    if (fatal) {
        bool ok;
        r->result.fatal++;
        lose_step(r);
        ok = train_redundant_start_rendezvous(r, true, "rendezvous_global", err);
        train_redundant_tell(r, "fatal");
        return ok;
    }
    train_redundant_tell(r, "remove");
    if (r->status == TRAIN_REDUNDANT_RUNNING && !r->fallback) {
        r->fallback = true;
        r->handled = false;
        r->fallback_steps = r->steps;
        r->fallback_time = r->now;
        r->step_ms = (int64_t)((double)r->step_ms * r->profile->slowdown);
        train_redundant_tell(r, "fallback");
    }
    return true;
}

/* An unnamed victim, of those that are not named; there is one. */
static size_t
choose(struct train_redundant *r)
{
    size_t chosen = r->nnodes, left = 0, nth = 0;
    for (size_t i = 0; i < r->nnodes; i++)
        left += !r->node[i].leaving;
    if (r->options.victims == TRAIN_RANDOM)
        nth = rng_below(r->rng, (uint32_t)left);
    else if (r->options.victims == TRAIN_NEWEST)
        nth = left - 1;
    for (size_t i = 0; i < r->nnodes; i++) {
        if (r->node[i].leaving)
            continue;
        if (r->options.victims != TRAIN_LOWEST) {
            if (nth-- == 0)
                return i;
        } else if (chosen == r->nnodes ||
                   strverscmp(r->node[i].name, r->node[chosen].name) < 0)
            chosen = i;
    }
    return chosen;
}

/* Named nodes are there: train_redundant_keep_removal() looked. */
static bool
remove_nodes(struct train_redundant *r, uint64_t count, struct rec_str ids,
             struct rec_error *err)
{
    struct rec_str id;
    while (ids.len > 0 && rec_str_split(&ids, ',', &id)) {
        size_t i = find_named(r, id);
        count--;
        if (i < r->nnodes && !remove_node(r, i, err))
            return false;
    }
    for (; count > 0 && r->nleaving < r->nnodes; count--)
        if (!remove_node(r, choose(r), err))
            return false;
    return true;
}

/* The removals of an instant come after its additions. */
bool
train_redundant_end_instant(struct train_redundant *r, struct rec_error *err)
{
    bool ok = true;
    if (r->nremovals == 0)
        return true;
    for (size_t i = 0; i < r->nremovals; i++) {
        ok = ok && remove_nodes(r, r->removal_count[i], rec_str(r->removal[i]), err);
        free(r->removal[i]);
    }
    r->nremovals = 0;
    return ok;
}

bool
train_redundant_keep_removal(struct train_redundant *r, const struct spot_event *event,
                             struct rec_error *err)
{
    char *ids = event->ids.len > 0 ? strndup(event->ids.ptr, event->ids.len) : strdup("");
    struct rec_str rest = event->ids, id;

    if (!ids)
        return rec_fail_memory(err);
    while (rest.len > 0 && rec_str_split(&rest, ',', &id)) {
        size_t i = find_named(r, id);
        if (i == r->nnodes || r->node[i].leaving) {
            free(ids);
            return train_fleet_fail(err, id, false);
        }
        r->node[i].leaving = true;
        r->nleaving++;
    }
    if (!rec_grow(&r->removal, &r->removal_room, r->nremovals + 1, sizeof *r->removal,
                  err) ||
        !rec_grow(&r->removal_count, &r->count_room, r->nremovals + 1,
                  sizeof *r->removal_count, err)) {
        free(ids);
        return false;
    }
    r->removal[r->nremovals] = ids;
    r->removal_count[r->nremovals++] = event->count;
    return true;
}
