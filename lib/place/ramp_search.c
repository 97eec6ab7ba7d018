/*
 * Placing the units of a plan: on the servers of a parent, or in the first free block of
 * a legal shape. Three things keep the search for blocks fast on a large cluster. The
 * free servers of a rack are the bits of a word, so all starts of a block in a rack are
 * found by shifts and ANDs. The vacancy remembers per shape before which rack no free
 * block starts (struct place_ramp_bound). And within a job, the search for a shape goes on
 * where it stopped for the last unit (struct place_ramp_fill).
 */
#include "private.h"

#include <math.h>
#include <stdlib.h>

const char *
place_outcome_name(enum place_outcome outcome)
{
    static const char *const names[] = {"placed", "no_servers", "no_block", "no_memory"};
    return names[outcome];
}

struct place_placer *
place_placer_new(const struct place_options *options, struct rec_error *err)
{
    struct place_placer *p = calloc(1, sizeof *p);
    if (!p) {
        rec_fail_memory(err);
        return NULL;
    }
    p->options = *options;
    p->nservers = net_servers(options->net);
    p->used = calloc(p->nservers, sizeof *p->used);
    p->held = calloc(p->nservers, sizeof *p->held);
    p->is_held = calloc(p->nservers, sizeof *p->is_held);
    if (p->used && p->held && p->is_held)
        return p;
    rec_fail_memory(err);
    place_placer_free(p);
    return NULL;
}

void
place_placer_free(struct place_placer *p)
{
    if (!p)
        return;
    free(p->used);
    free(p->held);
    free(p->is_held);
    free(p->server);
    free(p->block);
    free(p->order);
    free(p);
}

/* Wraps a coordinate around: it is less than 2n. */
static inline uint32_t
wrap(uint32_t x, uint32_t n)
{
    return x < n ? x : x - n;
}

/* The index of a rack at an offset from the origin of the box. */
static inline uint32_t
rack_at(const struct place_placer *p, uint32_t c, uint32_t r)
{
    const uint32_t *n = place_ramp_shape(p);
    return wrap(p->origin[0] + c, n[0]) * n[1] + wrap(p->origin[1] + r, n[1]);
}

uint32_t
place_ramp_server(const struct place_placer *p, uint32_t c, uint32_t r, uint32_t s)
{
    uint32_t n = place_ramp_shape(p)[2];
    return rack_at(p, c, r) * n + wrap(p->origin[2] + s, n);
}

/* True if a server has room for `bytes` more. The tolerance is for the rounding of sums:
 * n parts of 1/n of its memory must fit. */
static bool
has_room(const struct place_placer *p, uint32_t server, double bytes)
{
    return p->used[server] + bytes <= net_memory(p->options.net) * (1 + 1e-12);
}

void
place_hold(struct place_placer *p, uint32_t server)
{
    if (p->is_held[server])
        return;
    p->is_held[server] = true;
    p->held[p->nheld++] = server;
}

/* ---- on the parents' servers --------------------------------------------- */

/* Puts the parts of a step on the servers of one of its parents, if the rules allow it
 * and all servers have room; else what was placed is taken back. */
static bool
place_with_parent(struct place_placer *p, const struct place_plan *plan,
                  const struct place_step *step, uint32_t parent)
{
    const struct graph_unit *unit = &plan->graph->unit[step->unit];
    const struct graph_unit *above = &plan->graph->unit[plan->step[parent].unit];
    const uint32_t *list = p->server + above->first;
    uint32_t placed;

    if (p->notebook ? unit->parts % above->parts != 0 : unit->parts != above->parts)
        return false;
    for (placed = 0; placed < unit->parts; placed++) {
        uint32_t server = list[placed % above->parts];
        if (!has_room(p, server, step->memory))
            break;
        p->used[server] += step->memory;
        p->server[unit->first + placed] = server;
    }
    if (placed == unit->parts)
        return true;
    while (placed-- > 0)
        p->used[list[placed % above->parts]] -= step->memory;
    return false;
}

/* ---- in a block ---------------------------------------------------------- */

/* Appends a server to the block that is tried; false: the server is not free. */
static inline bool
collect(struct place_placer *p, uint32_t *n, uint32_t server)
{
    p->block[(*n)++] = server;
    return place_is_free(p->vacancy, server);
}

/* Puts a unit on the free servers in p->block, if all have room for a part. If not, notes
 * how much its fullest server has left, which explains why the job was blocked. */
static bool
take_block(struct place_placer *p, const struct graph_unit *unit, double memory)
{
    double left = INFINITY;
    bool room = true;
    for (uint32_t i = 0; i < unit->parts; i++) {
        room = room && has_room(p, p->block[i], memory);
        left = fmin(left, net_memory(p->options.net) - p->used[p->block[i]]);
    }
    if (!room) {
        p->saw_block = true;
        p->most = fmax(p->most, left);
        return false;
    }
    for (uint32_t i = 0; i < unit->parts; i++) {
        p->used[p->block[i]] += memory;
        p->server[unit->first + i] = p->block[i];
        place_hold(p, p->block[i]);
    }
    return true;
}

/* Bit s of the result: `length` free servers start at position s of a rack of n <= 64,
 * and may wrap around. After each round bit s says that `have` servers from s on are
 * free; a round at most doubles that, so there are log2(length) of them. */
static inline uint64_t
runs_of(uint64_t free, uint32_t length, uint32_t n)
{
    uint32_t have = 1;
    for (; free && have < length; have *= 2) {
        uint32_t more = have * 2 <= length ? have : length - have;
        free &= free >> more | free << (n - more);
    }
    return free;
}

/* True if the servers of a rack are the bits of one word. */
static inline bool
has_words(const struct place_placer *p)
{
    return place_ramp_shape(p)[2] <= 64;
}

/* True if the box of the job is the whole cluster, for which bounds are kept. */
static bool
is_anywhere(const struct place_placer *p)
{
    return has_words(p) && !p->origin[0] && !p->origin[1] && !p->origin[2] &&
           memcmp(p->limit, place_ramp_shape(p), sizeof p->limit) == 0;
}

/* Bit s of the result: a block of free servers of this shape may start at (i, j, s),
 * counted from the origin of the box. For racks of more than 64 servers all bits are set,
 * and search() tries each position. */
static inline uint64_t
starts_of(const struct place_placer *p, uint32_t i, uint32_t j, const uint32_t shape[3])
{
    uint32_t n = place_ramp_shape(p)[2];
    uint64_t starts = ~(uint64_t)0;
    if (!has_words(p))
        return starts;
    if (shape[2] == 0)
        for (uint32_t k = 0; starts && k < shape[0]; k++)
            starts &= p->vacancy->free[rack_at(p, i + k, j + k)];
    else
        for (uint32_t c = 0; starts && c < shape[0]; c++)
            for (uint32_t r = 0; starts && r < shape[1]; r++)
                starts &=
                    runs_of(p->vacancy->free[rack_at(p, i + c, j + r)], shape[2], n);
    /* Positions are counted from the box's origin; the block must end inside the box. */
    if (p->origin[2] && starts)
        starts = (starts >> p->origin[2] | starts << (n - p->origin[2]));
    return starts & ~(uint64_t)0 >> (63 - (p->limit[2] - (shape[2] ? shape[2] : 1)));
}

/* Takes the block of a shape at an offset in the box, if it is free and has room. */
static bool
try_origin(struct place_placer *p, const uint32_t at[3], const uint32_t shape[3],
           const struct graph_unit *unit, double memory)
{
    uint32_t n = 0;
    bool free = true;
    for (uint32_t c = 0; free && c < shape[0]; c++)
        for (uint32_t r = 0; free && r < shape[1]; r++)
            for (uint32_t s = 0; free && s < shape[2]; s++)
                free =
                    collect(p, &n, place_ramp_server(p, at[0] + c, at[1] + r, at[2] + s));
    return free && take_block(p, unit, memory);
}

/* The same of a diagonal: k servers, each in its own communication group and rack. */
static bool
try_diagonal(struct place_placer *p, const uint32_t at[3], const struct graph_unit *unit,
             double memory)
{
    uint32_t n = 0;
    bool free = true;
    while (free && n < unit->parts)
        free = collect(p, &n, place_ramp_server(p, at[0] + n, at[1] + n, at[2]));
    return free && take_block(p, unit, memory);
}

/* Tries a shape at every position inside the box, from at[] on; at[] becomes where it
 * stopped. *bound becomes the first rack at which a free block starts, whether it had
 * room or not; `bound` may be NULL. */
static bool
search(struct place_placer *p, const uint32_t shape[3], const struct graph_unit *unit,
       double memory, uint32_t at[3], uint32_t *bound)
{
    const uint32_t *m = p->limit, racks = place_ramp_shape(p)[1];
    uint32_t length = shape[2] ? shape[2] : 1;
    for (; at[0] + shape[0] <= m[0]; at[0]++, at[1] = at[2] = 0)
        for (; at[1] + shape[1] <= m[1]; at[1]++, at[2] = 0) {
            uint64_t starts = starts_of(p, at[0], at[1], shape);
            if (starts && bound) {
                *bound = at[0] * racks + at[1];
                bound = NULL;
            }
            for (; starts && at[2] + length <= m[2]; at[2]++)
                if ((!has_words(p) || starts >> at[2] & 1) &&
                    (shape[2] ? try_origin(p, at, shape, unit, memory)
                              : try_diagonal(p, at, unit, memory)))
                    return true;
        }
    if (bound)
        *bound = m[0] * racks;
    return false;
}

/*
 * Puts a unit into the first block of a shape that is free and has room. While a job is
 * placed, servers only become fuller: a block that lacked memory for one unit lacks it
 * for every later unit that needs as much. So the search goes on where it stopped, unless
 * the unit needs less memory than that one did.
 */
static bool
try_shape(struct place_placer *p, const uint32_t shape[3], const struct graph_unit *unit,
          double memory)
{
    const uint32_t *m = p->limit, racks = place_ramp_shape(p)[1];
    struct place_ramp_fill *fill = &p->fill[place_ramp_hash(shape)];
    bool found, saw_block = p->saw_block,
                known = fill->job == p->jobs && memory >= fill->memory &&
                        memcmp(fill->shape, shape, sizeof fill->shape) == 0;
    uint32_t *bound =
        !known && is_anywhere(p) ? place_ramp_bound(p->vacancy, shape) : NULL;

    if (shape[0] > m[0] || shape[1] > m[1] || shape[2] > m[2])
        return false;
    if (!known) {
        *fill = (struct place_ramp_fill){.job = p->jobs};
        memcpy(fill->shape, shape, sizeof fill->shape);
        fill->at[0] = bound ? *bound / racks : 0;
        fill->at[1] = bound ? *bound % racks : 0;
    }
    fill->memory = memory;
    p->saw_block = fill->full;
    found = search(p, shape, unit, memory, fill->at, bound);
    fill->full = p->saw_block;
    p->saw_block = p->saw_block || saw_block;
    return found;
}

static bool
try_shapes(struct place_placer *p, bool square, bool flat, const struct graph_unit *unit,
           double memory)
{
    struct net_ramp_shapes w = {p->within, unit->parts, 1, 0, square, flat, {0}};
    while (net_ramp_next_shape(&w))
        if (try_shape(p, w.shape, unit, memory))
            return true;
    return false;
}

static bool
place_in_block(struct place_placer *p, const struct graph_unit *unit, double memory)
{
    const uint32_t *m = p->limit, column[3] = {unit->parts, 1, 1};
    const uint32_t diagonal[3] = {unit->parts, unit->parts, 0};
    bool placed;

    if (unit->parts > (uint64_t)m[0] * m[1] * m[2] || unit->parts > p->vacancy->n)
        return false;
    if (p->notebook) /* the notebook's shapes first, then those it lacks */
        placed = try_shapes(p, false, true, unit, memory) ||
                 try_shapes(p, true, false, unit, memory);
    else /* the simulator's order */
        placed = try_shapes(p, true, true, unit, memory);
    return placed || try_shape(p, diagonal, unit, memory) ||
           try_shape(p, column, unit, memory);
}

/* ---- the whole plan ------------------------------------------------------ */

/* Only the servers that the last job held are cleared: a cluster may have millions. */
static void
forget_job(struct place_placer *p)
{
    for (uint32_t i = 0; i < p->nheld; i++) {
        p->used[p->held[i]] = 0;
        p->is_held[p->held[i]] = false;
    }
    p->nheld = p->nused = 0;
    p->jobs++;
}

enum place_outcome
place_units(struct place_placer *p, const struct place_plan *plan)
{
    forget_job(p);
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct place_step *step = &plan->step[i];
        bool placed = false;
        p->saw_block = false;
        p->failed = step->unit;
        for (uint32_t j = 0; !placed && j < step->nparents; j++)
            placed =
                place_with_parent(p, plan, step, plan->parent[step->first_parent + j]);
        if (!placed && !place_in_block(p, &plan->graph->unit[step->unit], step->memory))
            return p->saw_block ? PLACE_NO_MEMORY : PLACE_NO_BLOCK;
    }
    p->nused = p->nheld;
    return PLACE_PLACED;
}

/* place_placement.left: looks at all blocks for the failed unit again. It asks for an
 * infinite amount of memory, so that every free block is refused and noted in p->most. */
static double
find_room(struct place_placer *p, const struct place_plan *plan)
{
    if (plan->tasks)
        return net_memory(p->options.net);
    p->jobs++; /* makes p->fill void, so that the search starts at the first block */
    p->most = 0;
    return place_in_block(p, &plan->graph->unit[p->failed], INFINITY) ? 0 : p->most;
}

/* Puts the twins of the placed ops on the same servers. */
static void
place_twins(struct place_placer *p, const struct place_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct graph_unit *unit = &plan->graph->unit[plan->step[i].unit];
        for (uint32_t j = unit->first; j < unit->first + unit->parts; j++)
            p->server[plan->twin[j]] = p->server[j];
    }
}

/* Makes room for a plan, and sets the box to the whole cluster and the rules to those of
 * the simulator; a heuristic may change both. */
static bool
start_job(struct place_placer *p, const struct place_plan *plan,
          const struct place_vacancy *vacancy, struct rec_error *err)
{
    if (!rec_grow(&p->server, &p->server_room, plan->graph->nops, sizeof *p->server,
                  err) ||
        !rec_grow(&p->block, &p->block_room, plan->largest, sizeof *p->block, err))
        return false;
    forget_job(p);
    p->vacancy = vacancy;
    p->notebook = false;
    p->failed = plan->nsteps ? plan->step[0].unit : 0;
    memset(p->origin, 0, sizeof p->origin);
    memcpy(p->limit, place_ramp_shape(p), sizeof p->limit);
    memcpy(p->within, place_ramp_shape(p), sizeof p->within);
    return true;
}

bool
place_on(struct place_placer *p, const struct place_plan *plan,
         const struct place_vacancy *vacancy, struct place_placement *placement,
         struct rec_error *err)
{
    enum place_outcome outcome = PLACE_NO_SERVERS;
    if (!start_job(p, plan, vacancy, err))
        return false;
    if (vacancy->n > 0 && plan->tasks && !place_tasks(p, plan, &outcome, err))
        return false;
    if (vacancy->n > 0 && !plan->tasks)
        outcome = p->options.heuristic->place(p, plan);
    if (outcome == PLACE_PLACED)
        place_twins(p, plan);
    *placement =
        (struct place_placement){outcome,
                                 p->failed,
                                 outcome == PLACE_NO_MEMORY ? find_room(p, plan) : 0,
                                 p->server,
                                 p->held,
                                 p->nheld,
                                 p->nused,
                                 plan->tasks ? p->order : NULL};
    return true;
}

bool
place_is_light(const struct place_placer *p, const struct place_plan *plan)
{
    return p->options.heuristic->whole && !plan->tasks &&
           plan->memory <= net_memory(p->options.net);
}

bool
place_light(struct place_placer *p, const struct place_plan *plan,
            const struct place_vacancy *vacancy, struct place_placement *placement,
            struct rec_error *err)
{
    enum place_outcome outcome = vacancy->n ? PLACE_PLACED : PLACE_NO_SERVERS;
    if (!start_job(p, plan, vacancy, err))
        return false;
    for (uint32_t k = 0; outcome == PLACE_PLACED && k < plan->nkinds; k++) {
        p->failed = plan->step[plan->kind[k]].unit;
        if (!place_in_block(p, &plan->graph->unit[p->failed], 0))
            outcome = PLACE_NO_BLOCK;
    }
    *placement = (struct place_placement){.outcome = outcome,
                                          .failed = p->failed,
                                          .server = p->server,
                                          .held = p->held,
                                          .nheld = p->nheld,
                                          .nused = p->nheld};
    return true;
}
