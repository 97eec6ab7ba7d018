/* The instances of a spot cluster, their states, and the choice of a preemption's
 * victims.
 *
 *     slot    0   1   2   3   4   5       slots are in the order in which instances came
 *     name    a1  a2      a4      a6      the instances of slots 2 and 4 are gone
 *     state   A   A       S       P       active, standby, preparing
 *
 * An instance that goes leaves a gap. The gaps are closed when there is no free slot and
 * at least half of the slots are gaps, so that closing them costs O(1) per instance on
 * average. A map finds an instance by its name. To find the k-th instance of a state, or
 * the k-th staying one, in O(log n), there is a bit for each slot, in blocks of 64, and a
 * binary indexed tree of the numbers of bits (Fenwick, "A new data structure for
 * cumulative frequency tables", 1994) over the blocks.
 */
#include "rampipe/train.h"
#include "rampipe/random.h"

#include <math.h>
#include <stdlib.h>

/* There is one count for each state, and one for the instances that are not leaving. */
enum { STAYING = TRAIN_NSTATES, NCOUNTED };

/* Slot i holds instance i. It also holds entry i of three arrays of the same length; of
 * these entries, only `at` belongs to instance i. */
struct slot {
    struct train_instance instance; /* name NULL: a gap */
    uint32_t drawn; /* entry i of the permutation that draw() shuffles; i between draws */
    uint32_t heap;  /* node i of the heap of names: a slot */
    uint32_t at;    /* the node of the heap that holds this slot */
};

enum { SLOTS = 64 }; /* slots per block */

/* Block i. `is` has a bit for each slot of the block, the lowest for the first. `sum` is
 * a node of the binary indexed tree: the number of bits in the last 2^k blocks up to and
 * with this one, where 2^k is the largest power of two that divides i + 1. */
struct block {
    uint64_t is[NCOUNTED];
    uint32_t sum[NCOUNTED];
};

struct train_fleet {
    struct slot *slot;
    struct block *block;
    size_t n, room, block_room;
    uint32_t count[NCOUNTED];
    uint64_t numbers; /* the next number for an instance without a name */
    enum train_victims victims;
    struct rng *rng;   /* draws random victims; else NULL */
    uint32_t *leaving; /* [first, end): slots of leaving instances, in order of choice */
    size_t first, end, leaving_room;
    struct rec_map there;   /* name of a staying instance -> its slot */
    struct rec_map refused; /* names of instances that were refused for want of room */
    struct rec_arena names; /* owns the names in `refused` */
};

struct train_fleet *
train_fleet_new(enum train_victims victims, uint32_t seed, uint32_t stream,
                struct rec_error *err)
{
    struct train_fleet *fleet = calloc(1, sizeof *fleet);
    if (!fleet) {
        rec_fail_memory(err);
        return NULL;
    }
    fleet->victims = victims;
    if (victims != TRAIN_RANDOM || (fleet->rng = rng_new(seed, stream, err)))
        return fleet;
    free(fleet);
    return NULL;
}

void
train_fleet_free(struct train_fleet *fleet)
{
    if (!fleet)
        return;
    for (size_t i = 0; i < fleet->n; i++)
        free(fleet->slot[i].instance.name);
    rng_free(fleet->rng);
    free(fleet->slot);
    free(fleet->block);
    free(fleet->leaving);
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
train_fleet_counts(const struct train_fleet *fleet, uint64_t count[TRAIN_NSTATES])
{
    uint64_t sum = 0;
    for (int s = 0; s < TRAIN_NSTATES; s++)
        sum += count[s] = fleet->count[s];
    return sum;
}

uint64_t
train_fleet_size(const struct train_fleet *fleet)
{
    return fleet->count[STAYING] + (fleet->end - fleet->first);
}

uint64_t
train_fleet_staying(const struct train_fleet *fleet)
{
    return fleet->count[STAYING];
}

bool
train_fleet_next(const struct train_fleet *fleet, size_t *at,
                 struct train_instance *instance)
{
    while (*at < fleet->n && !fleet->slot[*at].instance.name)
        ++*at;
    if (*at == fleet->n)
        return false;
    *instance = fleet->slot[(*at)++].instance;
    return true;
}

bool
train_fleet_has(const struct train_fleet *fleet, struct rec_str id)
{
    return rec_map_get(&fleet->there, id) != REC_NONE;
}

bool
train_fleet_fail(struct rec_error *err, struct rec_str id, bool added)
{
    return rec_fail(err, REC_DATA, "instance '%.*s' is %s", REC_SAID(id),
                    added ? "added, but it is there already"
                          : "preempted, but it is not there");
}

/* ---- counting ------------------------------------------------------------ */

static size_t
blocks(const struct train_fleet *fleet)
{
    return (fleet->n + SLOTS - 1) / SLOTS;
}

/* Adds the n instances that `bits` selects in a block to the count `what`, or removes
 * them if `are` is false. */
static void
mark_all(struct train_fleet *fleet, size_t block, uint64_t bits, uint32_t n, int what,
         bool are)
{
    uint32_t change = are ? n : -n;
    fleet->count[what] += change;
    fleet->block[block].is[what] ^= bits;
    for (size_t i = block + 1; i <= blocks(fleet); i += i & -i)
        fleet->block[i - 1].sum[what] += change;
}

static void
mark(struct train_fleet *fleet, size_t slot, int what, bool is)
{
    mark_all(fleet, slot / SLOTS, UINT64_C(1) << slot % SLOTS, 1, what, is);
}

/* The slot of the k-th (0, 1, ...) instance that is counted as `what`; there must be one.
 * Descends the binary indexed tree: `at` is the number of blocks that lie before the
 * result, and k becomes the number of instances still to skip. */
static size_t
find(const struct train_fleet *fleet, int what, uint64_t k)
{
    size_t at = 0, step = 1, n = blocks(fleet);
    uint64_t bits;
    while (step <= n / 2)
        step *= 2;
    for (; step > 0; step /= 2)
        if (at + step <= n && fleet->block[at + step - 1].sum[what] <= k) {
            at += step;
            k -= fleet->block[at - 1].sum[what];
        }
    for (bits = fleet->block[at].is[what]; k > 0; k--)
        bits &= bits - 1;
    return at * SLOTS + (size_t)__builtin_ctzll(bits);
}

/* ---- a binary heap of the staying instances, the lowest name at its root ------ */

/* strverscmp(3) compares numbers within names as numbers. */
static bool
is_lower(const struct train_fleet *fleet, uint32_t a, uint32_t b)
{
    return strverscmp(fleet->slot[a].instance.name, fleet->slot[b].instance.name) < 0;
}

static void
put(struct train_fleet *fleet, size_t at, uint32_t slot)
{
    fleet->slot[at].heap = slot;
    fleet->slot[slot].at = (uint32_t)at;
}

/* Puts a slot into a heap of n nodes, of which node `at` is free: moves the free node up
 * or down until the slot belongs there. */
static void
sift(struct train_fleet *fleet, size_t at, size_t n, uint32_t slot)
{
    const struct slot *s = fleet->slot;
    size_t child;
    for (; at > 0 && is_lower(fleet, slot, s[(at - 1) / 2].heap); at = (at - 1) / 2)
        put(fleet, at, s[(at - 1) / 2].heap);
    while ((child = 2 * at + 1) < n) {
        child += child + 1 < n && is_lower(fleet, s[child + 1].heap, s[child].heap);
        if (is_lower(fleet, slot, s[child].heap))
            break;
        put(fleet, at, s[child].heap);
        at = child;
    }
    put(fleet, at, slot);
}

/* ---- instances come ------------------------------------------------------ */

/* Appends an empty block; ->block has room for it. Its sums include those of the earlier
 * blocks in its range. */
static void
add_block(struct train_fleet *fleet)
{
    size_t n = blocks(fleet);
    struct block block = {{0}, {0}};
    for (size_t step = 1; (n + 1) % (2 * step) == 0; step *= 2)
        for (int i = 0; i < NCOUNTED; i++)
            block.sum[i] += fleet->block[n - step].sum[i];
    fleet->block[n] = block;
}

/* Puts an instance into the next free slot; ->slot and ->block have room for it. */
static bool
enter(struct train_fleet *fleet, struct train_instance instance, struct rec_error *err)
{
    size_t n = fleet->n;

    if (!rec_map_add(&fleet->there, rec_str(instance.name), (uint32_t)n, err))
        return false;
    fleet->slot[n] = (struct slot){.instance = instance, .drawn = (uint32_t)n};
    if (n % SLOTS == 0)
        add_block(fleet);
    fleet->n++;
    mark(fleet, n, (int)instance.state, true);
    mark(fleet, n, STAYING, true);
    if (fleet->victims == TRAIN_LOWEST)
        sift(fleet, fleet->count[STAYING] - 1, fleet->count[STAYING], (uint32_t)n);
    return true;
}

/* Closes the gaps. No instance may be leaving, for ->leaving holds slot numbers. Entering
 * the instances again rebuilds all tables; no slot is overwritten before it was read,
 * since instances only move down. */
static bool
close_gaps(struct train_fleet *fleet, struct rec_error *err)
{
    size_t n = fleet->n;
    bool ok = true;
    fleet->n = 0;
    memset(fleet->count, 0, sizeof fleet->count);
    rec_map_clear(&fleet->there);
    for (size_t i = 0; ok && i < n; i++)
        if (fleet->slot[i].instance.name)
            ok = enter(fleet, fleet->slot[i].instance, err);
    return ok;
}

bool
train_fleet_fits(const struct train_fleet *fleet, uint64_t count, struct rec_error *err)
{
    return count <= TRAIN_FLEET_MAX - train_fleet_size(fleet) ||
           rec_fail(err, REC_DATA, "there are more than %d instances", TRAIN_FLEET_MAX);
}

static bool
make_room(struct train_fleet *fleet, struct rec_error *err)
{
    if (fleet->n > 0 && fleet->n == fleet->room && fleet->first == fleet->end &&
        fleet->count[STAYING] <= fleet->n / 2)
        return close_gaps(fleet, err);
    return rec_grow(&fleet->slot, &fleet->room, fleet->n + 1, sizeof *fleet->slot, err) &&
           rec_grow(&fleet->block, &fleet->block_room, fleet->n / SLOTS + 1,
                    sizeof *fleet->block, err);
}

/* Adds one instance. Without a name (id.len 0) it gets the next number that is not a name
 * already. */
static bool
add_one(struct train_fleet *fleet, struct rec_str id, enum train_state state,
        double ready, struct rec_error *err)
{
    struct train_instance instance = {.state = state, .ready = ready};
    char number[REC_NUM_MAX];
    if (id.len > 0 && train_fleet_has(fleet, id))
        return train_fleet_fail(err, id, true);
    while (id.len == 0 || train_fleet_has(fleet, id)) {
        id.len = rec_format_num(number, (double)fleet->numbers++);
        id.ptr = number;
    }
    if (!make_room(fleet, err))
        return false;
    if (!(instance.name = strndup(id.ptr, id.len)))
        return rec_fail_memory(err);
    if (enter(fleet, instance, err))
        return true;
    free(instance.name);
    return false;
}

/* Remembers the name of an instance that was refused: the trace may preempt it later. */
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
    uint64_t size = train_fleet_size(fleet);
    uint64_t room = capacity > size ? capacity - size : 0;
    *added = 0;
    if (!train_fleet_fits(fleet, count < room ? count : room, err))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        struct rec_str id = {NULL, 0};
        if (ids.ptr)
            rec_str_split(&ids, ',', &id);
        if (train_fleet_size(fleet) < capacity) {
            if (!add_one(fleet, id, state, ready, err))
                return false;
            ++*added;
        } else if (!ids.ptr && id.len == 0) {
            break; /* the rest is refused too, and has no names to remember */
        } else if (!refuse(fleet, id, err))
            return false;
    }
    return true;
}

/* ---- instances go -------------------------------------------------------- */

/* Marks one instance as leaving; ->leaving has room for it. In the heap, the last node
 * takes the place of the one that is removed. */
static void
leave(struct train_fleet *fleet, uint32_t slot)
{
    struct train_instance *instance = &fleet->slot[slot].instance;
    instance->leaving = true;
    fleet->leaving[fleet->end++] = slot;
    rec_map_remove(&fleet->there, rec_str(instance->name));
    mark(fleet, slot, STAYING, false);
    if (fleet->victims == TRAIN_LOWEST) {
        size_t n = fleet->count[STAYING], at = fleet->slot[slot].at;
        if (at < n)
            sift(fleet, at, n, fleet->slot[n].heap);
    }
}

bool
train_fleet_leave(struct train_fleet *fleet, struct rec_str ids, struct rec_error *err)
{
    struct rec_str id;
    while (rec_str_split(&ids, ',', &id)) {
        uint32_t slot = rec_map_get(&fleet->there, id);
        if (slot != REC_NONE) {
            if (!rec_grow(&fleet->leaving, &fleet->leaving_room, fleet->end + 1,
                          sizeof *fleet->leaving, err))
                return false;
            leave(fleet, slot);
        } else if (rec_map_get(&fleet->refused, id) != REC_NONE)
            rec_map_remove(&fleet->refused, id);
        else
            return train_fleet_fail(err, id, false);
    }
    return true;
}

/* Draws n of the staying instances without replacement: the first n steps of a
 * Fisher-Yates shuffle of the numbers 0, 1, ..., where number k stands for the k-th
 * staying instance. ->drawn is the identity before and after, so the time of a draw does
 * not depend on the size of the fleet. */
static void
draw(struct train_fleet *fleet, uint32_t n)
{
    uint32_t *slot = fleet->leaving + fleet->end, of = fleet->count[STAYING];
    struct slot *s = fleet->slot;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = i + rng_below(fleet->rng, of - i), other = s[j].drawn;
        s[j].drawn = s[i].drawn;
        s[i].drawn = other;
        slot[i] = (uint32_t)find(fleet, STAYING, other);
    }
    /* Restore the identity. Besides the first n entries, entry k >= n has changed only
     * if its number k was drawn, and so is now among the first n. */
    for (uint32_t i = 0; i < n; i++) {
        if (s[i].drawn >= n)
            s[s[i].drawn].drawn = s[i].drawn;
        s[i].drawn = i;
    }
    for (uint32_t i = 0; i < n; i++)
        leave(fleet, slot[i]);
}

/* The slot of the next victim, if victims are not drawn. */
static uint32_t
next_victim(const struct train_fleet *fleet)
{
    uint32_t last = fleet->count[STAYING] - 1;
    if (fleet->victims == TRAIN_LOWEST)
        return fleet->slot[0].heap;
    return (uint32_t)find(fleet, STAYING, fleet->victims == TRAIN_NEWEST ? last : 0);
}

bool
train_fleet_choose(struct train_fleet *fleet, uint64_t n, struct rec_error *err)
{
    if (n > fleet->count[STAYING])
        n = fleet->count[STAYING];
    if (n == 0)
        return true;
    if (!rec_grow(&fleet->leaving, &fleet->leaving_room, fleet->end + n,
                  sizeof *fleet->leaving, err))
        return false;
    if (fleet->victims == TRAIN_RANDOM)
        draw(fleet, (uint32_t)n);
    else
        while (n-- > 0)
            leave(fleet, next_victim(fleet));
    return true;
}

bool
train_fleet_take(struct train_fleet *fleet, bool last, struct train_instance *gone)
{
    uint32_t slot;
    if (fleet->first == fleet->end)
        return false;
    slot = fleet->leaving[last ? --fleet->end : fleet->first++];
    if (fleet->first == fleet->end)
        fleet->first = fleet->end = 0;
    *gone = fleet->slot[slot].instance;
    mark(fleet, slot, (int)gone->state, false);
    free(gone->name);
    gone->name = fleet->slot[slot].instance.name = NULL;
    return true;
}

/* ---- states -------------------------------------------------------------- */

/* Works block by block, and so updates the tree once for up to 64 instances. */
void
train_fleet_move(struct train_fleet *fleet, enum train_state from, enum train_state to,
                 uint64_t n)
{
    uint32_t moved = 0;
    while (moved < n && fleet->count[from] > 0) {
        size_t block = find(fleet, (int)from, 0) / SLOTS;
        uint64_t all = fleet->block[block].is[from], rest = all;
        uint32_t before = moved;
        for (; rest > 0 && moved < n; rest &= rest - 1) {
            struct slot *s = &fleet->slot[block * SLOTS + (size_t)__builtin_ctzll(rest)];
            s->instance.state = to;
            s->instance.place = moved++;
        }
        mark_all(fleet, block, all ^ rest, moved - before, (int)from, false);
        mark_all(fleet, block, all ^ rest, moved - before, (int)to, true);
    }
}

/* The first preparing instance is the next to be ready: none is ready before one that
 * came earlier (a condition of train_fleet_add()). */
double
train_fleet_next_ready(const struct train_fleet *fleet)
{
    return fleet->count[TRAIN_PREPARING] == 0
               ? INFINITY
               : fleet->slot[find(fleet, TRAIN_PREPARING, 0)].instance.ready;
}

void
train_fleet_settle(struct train_fleet *fleet, double now)
{
    while (train_fleet_next_ready(fleet) <= now)
        train_fleet_move(fleet, TRAIN_PREPARING, TRAIN_STANDBY, 1);
}
