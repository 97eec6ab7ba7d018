/* Instances of a spot cluster: who is there, in which state, and who goes. */
#include "rampipe/train.h"
#include "rampipe/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct train_instance {
    const char *name; /* in ->names; if the trace gives none, the next number */
    enum train_state state;
    double ready; /* when it will have been prepared, seconds */
};

struct train_fleet {
    struct train_instance *instance; /* in the order in which they came */
    size_t n, room;
    uint64_t count[TRAIN_NSTATES];
    uint64_t numbers; /* given so far to instances without a name */
    enum train_victims victims;
    struct rng *rng;
    struct rec_map there;   /* names of the instances */
    struct rec_map refused; /* names that found no room */
    struct rec_arena names;
    bool *gone; /* scratch */
    size_t gone_room;
    size_t *order; /* scratch */
    size_t order_room;
};

struct train_fleet *
train_fleet_new(enum train_victims victims, uint32_t seed, struct rec_error *err)
{
    struct train_fleet *fleet = calloc(1, sizeof *fleet);
    if (!fleet) {
        rec_fail_memory(err);
        return NULL;
    }
    fleet->victims = victims;
    if (victims != TRAIN_RANDOM || (fleet->rng = rng_new(seed, 0, err)))
        return fleet;
    free(fleet);
    return NULL;
}

void
train_fleet_free(struct train_fleet *fleet)
{
    if (!fleet)
        return;
    rng_free(fleet->rng);
    free(fleet->instance);
    free(fleet->gone);
    free(fleet->order);
    rec_map_free(&fleet->there);
    rec_map_free(&fleet->refused);
    rec_arena_free(&fleet->names);
    free(fleet);
}

uint64_t
train_fleet_count(const struct train_fleet *fleet, enum train_state state)
{
    return fleet->count[state];
}

uint64_t
train_fleet_size(const struct train_fleet *fleet)
{
    return fleet->n;
}

bool
train_fleet_has(const struct train_fleet *fleet, struct rec_str id)
{
    return rec_map_get(&fleet->there, id) != REC_NONE;
}

bool
train_fleet_fail(struct rec_error *err, struct rec_str id, bool added)
{
    return rec_fail(
        err, REC_DATA, "instance '%.*s' is %s", (int)(id.len < 80 ? id.len : 80), id.ptr,
        added ? "added, but it is there already" : "preempted, but it is not there");
}

/* The index of an instance by name, n if there is none. */
static size_t
find(const struct train_fleet *fleet, struct rec_str id)
{
    size_t i = train_fleet_has(fleet, id) ? 0 : fleet->n;
    while (i < fleet->n && !rec_str_is(id, fleet->instance[i].name))
        i++;
    return i;
}

static bool
add_one(struct train_fleet *fleet, struct rec_str id, enum train_state state,
        double ready, struct rec_error *err)
{
    char number[24];
    struct train_instance *instance;
    if (id.len > 0 && train_fleet_has(fleet, id))
        return train_fleet_fail(err, id, true);
    while (id.len == 0 || train_fleet_has(fleet, id)) {
        int len =
            snprintf(number, sizeof number, "%llu", (unsigned long long)fleet->numbers++);
        id = (struct rec_str){number, (size_t)len};
    }
    if (!rec_grow(&fleet->instance, &fleet->room, fleet->n + 1, sizeof *instance, err))
        return false;
    instance = &fleet->instance[fleet->n];
    *instance = (struct train_instance){NULL, state, ready};
    if (!(instance->name = rec_arena_copy(&fleet->names, id, err)) ||
        !rec_map_add(&fleet->there, rec_str(instance->name), 0, err))
        return false;
    fleet->n++;
    fleet->count[state]++;
    return true;
}

static bool
refuse(struct train_fleet *fleet, struct rec_str id, struct rec_error *err)
{
    const char *name;
    if (id.len == 0 || rec_map_get(&fleet->refused, id) != REC_NONE)
        return true;
    name = rec_arena_copy(&fleet->names, id, err);
    return name && rec_map_add(&fleet->refused, rec_str(name), 0, err);
}

bool
train_fleet_add(struct train_fleet *fleet, uint64_t count, struct rec_str ids,
                uint64_t capacity, enum train_state state, double ready, uint64_t *added,
                struct rec_error *err)
{
    *added = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct rec_str id = {NULL, 0};
        if (ids.ptr)
            rec_str_split(&ids, ',', &id);
        if (fleet->n < capacity) {
            if (!add_one(fleet, id, state, ready, err))
                return false;
            ++*added;
        } else if (!ids.ptr && id.len == 0) {
            break; /* the others have no names to remember */
        } else if (!refuse(fleet, id, err))
            return false;
    }
    return true;
}

/* ---- victims ------------------------------------------------------------- */

static int
by_name(const void *a, const void *b, void *context)
{
    const size_t *x = a, *y = b;
    const struct train_fleet *fleet = context;
    int order = strverscmp(fleet->instance[*x].name, fleet->instance[*y].name);
    return order ? order : *x < *y ? -1 : *x > *y;
}

/* Marks `count` <= n victims in ->gone. */
static bool
choose(struct train_fleet *fleet, size_t count, struct rec_error *err)
{
    if (!rec_grow(&fleet->order, &fleet->order_room, fleet->n, sizeof *fleet->order, err))
        return false;
    for (size_t i = 0; i < fleet->n; i++)
        fleet->order[i] = fleet->victims == TRAIN_NEWEST ? fleet->n - 1 - i : i;
    if (fleet->victims == TRAIN_LOWEST)
        qsort_r(fleet->order, fleet->n, sizeof *fleet->order, by_name, fleet);
    for (size_t i = 0; i < count; i++) {
        if (fleet->victims == TRAIN_RANDOM) {
            size_t j = i + rng_below(fleet->rng, (uint32_t)(fleet->n - i));
            size_t other = fleet->order[i];
            fleet->order[i] = fleet->order[j];
            fleet->order[j] = other;
        }
        fleet->gone[fleet->order[i]] = true;
    }
    return true;
}

static bool
mark_named(struct train_fleet *fleet, struct rec_str ids, struct rec_error *err)
{
    struct rec_str id;
    while (rec_str_split(&ids, ',', &id)) {
        size_t i = find(fleet, id);
        if (i == fleet->n && rec_map_get(&fleet->refused, id) != REC_NONE) {
            rec_map_remove(&fleet->refused, id);
            continue;
        }
        if (i == fleet->n || fleet->gone[i])
            return train_fleet_fail(err, id, false);
        fleet->gone[i] = true;
    }
    return true;
}

bool
train_fleet_preempt(struct train_fleet *fleet, uint64_t count, struct rec_str ids,
                    uint64_t *taken, uint64_t *active, struct rec_error *err)
{
    size_t kept = 0;

    *taken = *active = 0;
    if (fleet->n == 0 && ids.len == 0)
        return true;
    if (!rec_grow(&fleet->gone, &fleet->gone_room, fleet->n + 1, sizeof *fleet->gone,
                  err))
        return false;
    memset(fleet->gone, 0, fleet->n * sizeof *fleet->gone);
    if (ids.len > 0 ? !mark_named(fleet, ids, err)
                    : !choose(fleet, count < fleet->n ? (size_t)count : fleet->n, err))
        return false;
    for (size_t i = 0; i < fleet->n; i++) {
        enum train_state state = fleet->instance[i].state;
        if (!fleet->gone[i]) {
            fleet->instance[kept++] = fleet->instance[i];
            continue;
        }
        rec_map_remove(&fleet->there, rec_str(fleet->instance[i].name));
        ++*taken;
        *active += state == TRAIN_ACTIVE;
        fleet->count[state]--;
    }
    fleet->n = kept;
    return true;
}

/* ---- states -------------------------------------------------------------- */

void
train_fleet_settle(struct train_fleet *fleet, double now)
{
    for (size_t i = 0; fleet->count[TRAIN_PREPARING] > 0 && i < fleet->n; i++) {
        struct train_instance *instance = &fleet->instance[i];
        if (instance->state == TRAIN_PREPARING && instance->ready <= now) {
            instance->state = TRAIN_STANDBY;
            fleet->count[TRAIN_PREPARING]--;
            fleet->count[TRAIN_STANDBY]++;
        }
    }
}

double
train_fleet_next_ready(const struct train_fleet *fleet)
{
    double next = INFINITY;
    for (size_t i = 0; fleet->count[TRAIN_PREPARING] > 0 && i < fleet->n; i++)
        if (fleet->instance[i].state == TRAIN_PREPARING)
            next = fmin(next, fleet->instance[i].ready);
    return next;
}

void
train_fleet_move(struct train_fleet *fleet, enum train_state from, enum train_state to,
                 uint64_t count)
{
    for (size_t i = 0; count > 0 && i < fleet->n; i++)
        if (fleet->instance[i].state == from) {
            fleet->instance[i].state = to;
            fleet->count[from]--;
            fleet->count[to]++;
            count--;
        }
}
