/* Instances of a spot cluster: who is there, in which state, and who goes. */
#include "rampipe/elastic.h"
#include "rampipe/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct fleet_instance {
    const char *name; /* in ->names; if the trace gives none, the next number */
    enum fleet_state state;
    double ready; /* when it will have been prepared, seconds */
};

struct fleet {
    struct fleet_instance *instance; /* in the order in which they came */
    size_t n, room;
    uint64_t count[FLEET_NSTATES];
    uint64_t numbers; /* given so far to instances without a name */
    enum fleet_victims victims;
    struct rng *rng;
    struct rec_map there;   /* names of the instances */
    struct rec_map refused; /* names that found no room */
    struct rec_arena names;
    bool *gone; /* scratch */
    size_t gone_room;
    size_t *order; /* scratch */
    size_t order_room;
};

struct fleet *
fleet_new(enum fleet_victims victims, uint32_t seed, struct rec_error *err)
{
    struct fleet *fleet = calloc(1, sizeof *fleet);
    if (!fleet) {
        rec_fail_memory(err);
        return NULL;
    }
    fleet->victims = victims;
    if (victims != FLEET_RANDOM || (fleet->rng = rng_new(seed, 0, err)))
        return fleet;
    free(fleet);
    return NULL;
}

void
fleet_free(struct fleet *fleet)
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
fleet_count(const struct fleet *fleet, enum fleet_state state)
{
    return fleet->count[state];
}

uint64_t
fleet_size(const struct fleet *fleet)
{
    return fleet->n;
}

bool
fleet_has(const struct fleet *fleet, struct rec_str id)
{
    return rec_map_get(&fleet->there, id) != REC_NONE;
}

bool
fleet_fail(struct rec_error *err, struct rec_str id, bool added)
{
    return rec_fail(
        err, REC_DATA, "instance '%.*s' is %s", (int)(id.len < 80 ? id.len : 80), id.ptr,
        added ? "added, but it is there already" : "preempted, but it is not there");
}

/* The index of an instance by name, n if there is none. */
static size_t
find(const struct fleet *fleet, struct rec_str id)
{
    size_t i = fleet_has(fleet, id) ? 0 : fleet->n;
    while (i < fleet->n && !rec_str_is(id, fleet->instance[i].name))
        i++;
    return i;
}

static bool
add_one(struct fleet *fleet, struct rec_str id, enum fleet_state state, double ready,
        struct rec_error *err)
{
    char number[24];
    struct fleet_instance *instance;
    if (id.len > 0 && fleet_has(fleet, id))
        return fleet_fail(err, id, true);
    while (id.len == 0 || fleet_has(fleet, id)) {
        int len =
            snprintf(number, sizeof number, "%llu", (unsigned long long)fleet->numbers++);
        id = (struct rec_str){number, (size_t)len};
    }
    if (!rec_grow(&fleet->instance, &fleet->room, fleet->n + 1, sizeof *instance, err))
        return false;
    instance = &fleet->instance[fleet->n];
    *instance = (struct fleet_instance){NULL, state, ready};
    if (!(instance->name = rec_arena_copy(&fleet->names, id, err)) ||
        !rec_map_add(&fleet->there, rec_str(instance->name), 0, err))
        return false;
    fleet->n++;
    fleet->count[state]++;
    return true;
}

static bool
refuse(struct fleet *fleet, struct rec_str id, struct rec_error *err)
{
    const char *name;
    if (id.len == 0 || rec_map_get(&fleet->refused, id) != REC_NONE)
        return true;
    name = rec_arena_copy(&fleet->names, id, err);
    return name && rec_map_add(&fleet->refused, rec_str(name), 0, err);
}

bool
fleet_add(struct fleet *fleet, uint64_t count, struct rec_str ids, uint64_t capacity,
          enum fleet_state state, double ready, uint64_t *added, struct rec_error *err)
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
    const struct fleet *fleet = context;
    int order = strverscmp(fleet->instance[*x].name, fleet->instance[*y].name);
    return order ? order : *x < *y ? -1 : *x > *y;
}

/* Marks `count` <= n victims in ->gone. */
static bool
choose(struct fleet *fleet, size_t count, struct rec_error *err)
{
    if (!rec_grow(&fleet->order, &fleet->order_room, fleet->n, sizeof *fleet->order, err))
        return false;
    for (size_t i = 0; i < fleet->n; i++)
        fleet->order[i] = fleet->victims == FLEET_NEWEST ? fleet->n - 1 - i : i;
    if (fleet->victims == FLEET_LOWEST)
        qsort_r(fleet->order, fleet->n, sizeof *fleet->order, by_name, fleet);
    for (size_t i = 0; i < count; i++) {
        if (fleet->victims == FLEET_RANDOM) {
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
mark_named(struct fleet *fleet, struct rec_str ids, struct rec_error *err)
{
    struct rec_str id;
    while (rec_str_split(&ids, ',', &id)) {
        size_t i = find(fleet, id);
        if (i == fleet->n && rec_map_get(&fleet->refused, id) != REC_NONE) {
            rec_map_remove(&fleet->refused, id);
            continue;
        }
        if (i == fleet->n || fleet->gone[i])
            return fleet_fail(err, id, false);
        fleet->gone[i] = true;
    }
    return true;
}

bool
fleet_preempt(struct fleet *fleet, uint64_t count, struct rec_str ids, uint64_t *taken,
              uint64_t *active, struct rec_error *err)
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
        enum fleet_state state = fleet->instance[i].state;
        if (!fleet->gone[i]) {
            fleet->instance[kept++] = fleet->instance[i];
            continue;
        }
        rec_map_remove(&fleet->there, rec_str(fleet->instance[i].name));
        ++*taken;
        *active += state == FLEET_ACTIVE;
        fleet->count[state]--;
    }
    fleet->n = kept;
    return true;
}

/* ---- states -------------------------------------------------------------- */

void
fleet_settle(struct fleet *fleet, double now)
{
    for (size_t i = 0; fleet->count[FLEET_PREPARING] > 0 && i < fleet->n; i++) {
        struct fleet_instance *instance = &fleet->instance[i];
        if (instance->state == FLEET_PREPARING && instance->ready <= now) {
            instance->state = FLEET_STANDBY;
            fleet->count[FLEET_PREPARING]--;
            fleet->count[FLEET_STANDBY]++;
        }
    }
}

double
fleet_next_ready(const struct fleet *fleet)
{
    double next = INFINITY;
    for (size_t i = 0; fleet->count[FLEET_PREPARING] > 0 && i < fleet->n; i++)
        if (fleet->instance[i].state == FLEET_PREPARING)
            next = fmin(next, fleet->instance[i].ready);
    return next;
}

void
fleet_move(struct fleet *fleet, enum fleet_state from, enum fleet_state to,
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
