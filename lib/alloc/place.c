/* Placing a plan: on the parents' servers, or in the first free block of a legal shape.
 */
#include "rampipe/alloc.h"

#include <math.h>
#include <stdlib.h>

struct alloc_placer {
    struct net_cluster cluster;
    enum alloc_heuristic heuristic;
    uint32_t meta[3];
    uint32_t nservers;
    /* The job being placed: */
    const bool *taken;
    uint32_t nfree;               /* servers not taken */
    uint32_t origin[3], limit[3]; /* the block it may use */
    bool saw_block;               /* a free block was there, without memory */
    double *used;                 /* per server, bytes; 0 when not touched */
    uint32_t *held, nheld, nused;
    bool *is_held;
    uint32_t *server; /* per member of the graph */
    size_t server_room;
    uint32_t *block; /* servers of the block that is tried */
    size_t block_room;
};

const char *
alloc_outcome_name(enum alloc_outcome outcome)
{
    static const char *const names[] = {"placed", "no_servers", "no_block", "no_memory"};
    return names[outcome];
}

struct alloc_placer *
alloc_placer_new(const struct net_cluster *cluster, enum alloc_heuristic heuristic,
                 const uint32_t meta[3], struct rec_error *err)
{
    struct alloc_placer *a = calloc(1, sizeof *a);
    if (a) {
        a->cluster = *cluster;
        a->heuristic = heuristic;
        if (heuristic == ALLOC_BLOCK)
            memcpy(a->meta, meta, sizeof a->meta);
        a->nservers = net_servers(cluster);
        a->used = calloc(a->nservers, sizeof *a->used);
        a->held = calloc(a->nservers, sizeof *a->held);
        a->is_held = calloc(a->nservers, sizeof *a->is_held);
    }
    if (!a || !a->used || !a->held || !a->is_held) {
        alloc_placer_free(a);
        rec_fail_memory(err);
        return NULL;
    }
    return a;
}

void
alloc_placer_free(struct alloc_placer *a)
{
    if (!a)
        return;
    free(a->used);
    free(a->held);
    free(a->is_held);
    free(a->server);
    free(a->block);
    free(a);
}

/* Wraps a coordinate around: it is less than 2n. */
static inline uint32_t
wrap(uint32_t x, uint32_t n)
{
    return x < n ? x : x - n;
}

/* The server at an offset from the block's origin; blocks wrap around the cluster. */
static inline uint32_t
server_at(const struct alloc_placer *a, uint32_t c, uint32_t r, uint32_t s)
{
    const uint32_t *n = a->cluster.shape;
    uint32_t rack = wrap(a->origin[0] + c, n[0]) * n[1] + wrap(a->origin[1] + r, n[1]);
    return rack * n[2] + wrap(a->origin[2] + s, n[2]);
}

/* Is there room for so many bytes more? Rounding of sums of parts is forgiven. */
static bool
has_room(const struct alloc_placer *a, uint32_t server, double bytes)
{
    return a->used[server] + bytes <= a->cluster.memory * (1 + 1e-12);
}

static void
hold(struct alloc_placer *a, uint32_t server)
{
    if (a->is_held[server])
        return;
    a->is_held[server] = true;
    a->held[a->nheld++] = server;
}

/* ---- on the parents' servers --------------------------------------------- */

/* Puts the parts of a step on the servers of one of its parents, if the rule allows. */
static bool
place_with_parent(struct alloc_placer *a, const struct alloc_plan *plan,
                  const struct alloc_step *step, uint32_t parent)
{
    const struct graph_unit *unit = &plan->graph->unit[step->unit];
    const struct graph_unit *above = &plan->graph->unit[plan->step[parent].unit];
    const uint32_t *list = a->server + above->first;
    uint32_t placed;

    if (a->heuristic == ALLOC_BLOCK ? unit->parts % above->parts != 0
                                    : unit->parts != above->parts)
        return false;
    for (placed = 0; placed < unit->parts; placed++) {
        uint32_t server = list[placed % above->parts];
        if (!has_room(a, server, step->memory))
            break;
        a->used[server] += step->memory;
        a->server[unit->first + placed] = server;
    }
    if (placed == unit->parts)
        return true;
    while (placed-- > 0)
        a->used[list[placed % above->parts]] -= step->memory;
    return false;
}

/* ---- in a block ---------------------------------------------------------- */

/* Tests the servers collected in a->block; takes them if all are free with room. */
static bool
take_block(struct alloc_placer *a, const struct graph_unit *unit, double memory)
{
    bool room = true;
    for (uint32_t i = 0; i < unit->parts; i++) {
        if (a->taken[a->block[i]])
            return false;
        room = room && has_room(a, a->block[i], memory);
    }
    if (!room) {
        a->saw_block = true;
        return false;
    }
    for (uint32_t i = 0; i < unit->parts; i++) {
        a->used[a->block[i]] += memory;
        a->server[unit->first + i] = a->block[i];
        hold(a, a->block[i]);
    }
    return true;
}

/* Tries a shape at every origin inside the job's block. */
static bool
try_shape(struct alloc_placer *a, uint32_t p, uint32_t q, uint32_t t,
          const struct graph_unit *unit, double memory)
{
    const uint32_t *m = a->limit;
    if (p > m[0] || q > m[1] || t > m[2])
        return false;
    for (uint32_t i = 0; i + p <= m[0]; i++)
        for (uint32_t j = 0; j + q <= m[1]; j++)
            for (uint32_t l = 0; l + t <= m[2]; l++) {
                uint32_t n = 0;
                if (a->taken[server_at(a, i, j, l)])
                    continue;
                for (uint32_t c = 0; c < p; c++)
                    for (uint32_t r = 0; r < q; r++)
                        for (uint32_t s = 0; s < t; s++)
                            a->block[n++] = server_at(a, i + c, j + r, l + s);
                if (take_block(a, unit, memory))
                    return true;
            }
    return false;
}

static bool
try_diagonal(struct alloc_placer *a, const struct graph_unit *unit, double memory)
{
    uint32_t k = unit->parts;
    const uint32_t *m = a->limit;
    for (uint32_t i = 0; i + k <= m[0]; i++)
        for (uint32_t j = 0; j + k <= m[1]; j++)
            for (uint32_t l = 0; l < m[2]; l++) {
                for (uint32_t t = 0; t < k; t++)
                    a->block[t] = server_at(a, i + t, j + t, l);
                if (take_block(a, unit, memory))
                    return true;
            }
    return false;
}

static bool
try_shapes(struct alloc_placer *a, bool square, bool flat, const struct graph_unit *unit,
           double memory)
{
    struct net_shapes w = {a->limit, unit->parts, 1, 0, square, flat, {0}};
    while (net_next_shape(&w))
        if (try_shape(a, w.shape[0], w.shape[1], w.shape[2], unit, memory))
            return true;
    return false;
}

static bool
place_in_block(struct alloc_placer *a, const struct graph_unit *unit, double memory)
{
    const uint32_t *m = a->limit;
    bool placed;

    if (unit->parts > (uint64_t)m[0] * m[1] * m[2] || unit->parts > a->nfree)
        return false;
    if (a->heuristic == ALLOC_FIRST_FIT) /* the simulator's order */
        placed = try_shapes(a, true, true, unit, memory);
    else /* the notebook's shapes first, then those it lacks */
        placed = try_shapes(a, false, true, unit, memory) ||
                 try_shapes(a, true, false, unit, memory);
    return placed || try_diagonal(a, unit, memory) ||
           try_shape(a, unit->parts, 1, 1, unit, memory);
}

/* ---- the whole plan ------------------------------------------------------ */

/* Finds an empty meta-block, wrapping around, and holds all of it. */
static bool
reserve_meta_block(struct alloc_placer *a)
{
    const uint32_t *n = a->cluster.shape, *m = a->meta;
    if (m[0] > n[0] || m[1] > n[1] || m[2] > n[2])
        return false;
    memcpy(a->limit, m, sizeof a->limit);
    for (uint32_t o = 0; o < a->nservers; o++) {
        bool free = true;
        a->origin[0] = o / n[2] / n[1];
        a->origin[1] = o / n[2] % n[1];
        a->origin[2] = o % n[2];
        for (uint32_t c = 0; free && c < m[0]; c++)
            for (uint32_t r = 0; free && r < m[1]; r++)
                for (uint32_t s = 0; free && s < m[2]; s++)
                    free = !a->taken[server_at(a, c, r, s)];
        if (free)
            return true;
    }
    return false;
}

static void
hold_meta_block(struct alloc_placer *a)
{
    for (uint32_t c = 0; c < a->meta[0]; c++)
        for (uint32_t r = 0; r < a->meta[1]; r++)
            for (uint32_t s = 0; s < a->meta[2]; s++)
                hold(a, server_at(a, c, r, s));
}

static void
forget_job(struct alloc_placer *a)
{
    for (uint32_t i = 0; i < a->nheld; i++) {
        a->used[a->held[i]] = 0;
        a->is_held[a->held[i]] = false;
    }
    a->nheld = a->nused = 0;
}

/* The twins of the placed ops stand on their servers. */
static void
place_twins(struct alloc_placer *a, const struct alloc_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct graph_unit *unit = &plan->graph->unit[plan->step[i].unit];
        for (uint32_t j = unit->first; j < unit->first + unit->parts; j++)
            a->server[plan->twin[j]] = a->server[j];
    }
}

static enum alloc_outcome
place_all(struct alloc_placer *a, const struct alloc_plan *plan)
{
    a->nfree = 0;
    for (uint32_t i = 0; i < a->nservers; i++)
        a->nfree += !a->taken[i];
    if (a->nfree == 0)
        return ALLOC_NO_SERVERS;
    memset(a->origin, 0, sizeof a->origin);
    memcpy(a->limit, a->cluster.shape, sizeof a->limit);
    if (a->heuristic == ALLOC_BLOCK && !reserve_meta_block(a))
        return ALLOC_NO_BLOCK;
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct alloc_step *step = &plan->step[i];
        bool placed = false;
        a->saw_block = false;
        for (uint32_t j = 0; !placed && j < step->nparents; j++)
            placed =
                place_with_parent(a, plan, step, plan->parent[step->first_parent + j]);
        if (!placed && !place_in_block(a, &plan->graph->unit[step->unit], step->memory))
            return a->saw_block ? ALLOC_NO_MEMORY : ALLOC_NO_BLOCK;
    }
    return ALLOC_PLACED;
}

bool
alloc_place(struct alloc_placer *a, const struct alloc_plan *plan, const bool *taken,
            enum alloc_outcome *outcome, struct alloc_placement *placement,
            struct rec_error *err)
{
    uint32_t largest = 1;
    forget_job(a);
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->graph->unit[plan->step[i].unit].parts > largest)
            largest = plan->graph->unit[plan->step[i].unit].parts;
    if (!rec_grow(&a->server, &a->server_room, plan->graph->nops, sizeof *a->server,
                  err) ||
        !rec_grow(&a->block, &a->block_room, largest, sizeof *a->block, err))
        return false;
    a->taken = taken;
    *outcome = place_all(a, plan);
    if (*outcome != ALLOC_PLACED)
        return true;
    place_twins(a, plan);
    a->nused = a->nheld;
    if (a->heuristic == ALLOC_BLOCK)
        hold_meta_block(a);
    *placement = (struct alloc_placement){a->server, a->held, a->nheld, a->nused};
    return true;
}
