/*
 * The search for the first free block of a legal shape in a RAMP. Three things keep it
 * fast on a large cluster. The free servers of a rack are the bits of a word, so all
 * starts of a block in a rack are found by shifts and ANDs. The index remembers per shape
 * before which rack no free block starts (struct place_ramp_bound). And within a job, the
 * search for a shape goes on where it stopped for the last unit (struct place_ramp_fill).
 */
#include "ramp.h"

#include "rampipe/net_ramp.h"

#include <stdlib.h>

/* Wraps a coordinate around: it is less than 2n. */
static inline uint32_t
wrap(uint32_t x, uint32_t n)
{
    return x < n ? x : x - n;
}

/* The index of a rack at an offset from the origin of the box. */
static inline uint32_t
rack_at(const struct place_ramp *ramp, uint32_t c, uint32_t r)
{
    const uint32_t *n = ramp->shape;
    return wrap(ramp->origin[0] + c, n[0]) * n[1] + wrap(ramp->origin[1] + r, n[1]);
}

uint32_t
place_ramp_server(const struct place_ramp *ramp, uint32_t c, uint32_t r, uint32_t s)
{
    uint32_t n = ramp->shape[2];
    return rack_at(ramp, c, r) * n + wrap(ramp->origin[2] + s, n);
}

/* ---- in a block ---------------------------------------------------------- */

/* Appends a server to the block that is tried; false: the server is not free. */
static inline bool
collect(struct place_placer *p, uint32_t *n, uint32_t server)
{
    p->block[(*n)++] = server;
    return place_bit(p->vacancy, server);
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
has_words(const struct place_ramp *ramp)
{
    return ramp->shape[2] <= 64;
}

/* True if the box of the job is the whole cluster, for which bounds are kept. */
static bool
is_anywhere(const struct place_ramp *ramp)
{
    return has_words(ramp) && !ramp->origin[0] && !ramp->origin[1] && !ramp->origin[2] &&
           memcmp(ramp->limit, ramp->shape, sizeof ramp->limit) == 0;
}

/* Bit s of the result: a block of free servers of this shape may start at (i, j, s),
 * counted from the origin of the box. For racks of more than 64 servers all bits are set,
 * and search() tries each position. */
static inline uint64_t
starts_of(const struct place_ramp *ramp, uint32_t i, uint32_t j, const uint32_t shape[3])
{
    uint32_t n = ramp->shape[2];
    uint64_t starts = ~(uint64_t)0;
    if (!has_words(ramp))
        return starts;
    if (shape[2] == 0)
        for (uint32_t k = 0; starts && k < shape[0]; k++)
            starts &= ramp->index->free[rack_at(ramp, i + k, j + k)];
    else
        for (uint32_t c = 0; starts && c < shape[0]; c++)
            for (uint32_t r = 0; starts && r < shape[1]; r++)
                starts &=
                    runs_of(ramp->index->free[rack_at(ramp, i + c, j + r)], shape[2], n);
    /* Positions are counted from the box's origin; the block must end inside the box. */
    if (ramp->origin[2] && starts)
        starts = (starts >> ramp->origin[2] | starts << (n - ramp->origin[2]));
    return starts & ~(uint64_t)0 >> (63 - (ramp->limit[2] - (shape[2] ? shape[2] : 1)));
}

/* Takes the block of a shape at an offset in the box, if it is free and has room. */
static bool
try_origin(struct place_placer *p, const uint32_t at[3], const uint32_t shape[3],
           const struct graph_unit *unit, double memory)
{
    const struct place_ramp *ramp = place_ramp_of(p);
    uint32_t n = 0;
    bool free = true;
    for (uint32_t c = 0; free && c < shape[0]; c++)
        for (uint32_t r = 0; free && r < shape[1]; r++)
            for (uint32_t s = 0; free && s < shape[2]; s++)
                free = collect(p, &n,
                               place_ramp_server(ramp, at[0] + c, at[1] + r, at[2] + s));
    return free && place_take(p, unit, memory);
}

/* The same of a diagonal: k servers, each in its own communication group and rack. */
static bool
try_diagonal(struct place_placer *p, const uint32_t at[3], const struct graph_unit *unit,
             double memory)
{
    const struct place_ramp *ramp = place_ramp_of(p);
    uint32_t n = 0;
    bool free = true;
    while (free && n < unit->parts)
        free = collect(p, &n, place_ramp_server(ramp, at[0] + n, at[1] + n, at[2]));
    return free && place_take(p, unit, memory);
}

/* The next row of the box, at `at` or behind it, whose first rack has a free server: no
 * block starts in a full rack. In a fragmented cluster most are full. */
static inline bool
next_row(const struct place_ramp *ramp, uint32_t at[3], uint32_t rows)
{
    const uint32_t *n = ramp->shape;
    uint32_t c = wrap(ramp->origin[0] + at[0], n[0]);
    for (uint32_t r, next; at[1] + rows <= ramp->limit[1]; at[1] += n[1] - r, at[2] = 0) {
        r = wrap(ramp->origin[1] + at[1], n[1]);
        next = place_ramp_next(ramp->index, c, r);
        if (next == r)
            return true;
        if (next < n[1]) {
            at[1] += next - r;
            at[2] = 0;
            return at[1] + rows <= ramp->limit[1];
        }
    }
    return false;
}

/* Tries a shape at every position inside the box, from at[] on; at[] becomes where it
 * stopped. *bound becomes the first rack at which a free block starts, whether it had
 * room or not; `bound` may be NULL. */
static bool
search(struct place_placer *p, const uint32_t shape[3], const struct graph_unit *unit,
       double memory, uint32_t at[3], uint32_t *bound)
{
    const struct place_ramp *ramp = place_ramp_of(p);
    const uint32_t *m = ramp->limit, racks = ramp->shape[1];
    uint32_t length = shape[2] ? shape[2] : 1;
    for (; at[0] + shape[0] <= m[0]; at[0]++, at[1] = at[2] = 0)
        for (; next_row(ramp, at, shape[1]); at[1]++, at[2] = 0) {
            uint64_t starts = starts_of(ramp, at[0], at[1], shape);
            if (starts && bound) {
                *bound = at[0] * racks + at[1];
                bound = NULL;
            }
            for (; starts && at[2] + length <= m[2]; at[2]++)
                if ((!has_words(ramp) || starts >> at[2] & 1) &&
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
    struct place_ramp *ramp = place_ramp_of(p);
    const uint32_t *m = ramp->limit, racks = ramp->shape[1];
    struct place_ramp_fill *fill = &ramp->fill[place_ramp_hash(shape)];
    bool found, saw_block = p->saw_block,
                known = fill->job == p->jobs && memory >= fill->memory &&
                        memcmp(fill->shape, shape, sizeof fill->shape) == 0;
    uint32_t *bound =
        !known && is_anywhere(ramp) ? place_ramp_bound(ramp->index, shape) : NULL;

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
    struct net_ramp_shapes w = {
        place_ramp_of(p)->within, unit->parts, 1, 0, square, flat, {0}};
    while (net_ramp_next_shape(&w))
        if (try_shape(p, w.shape, unit, memory))
            return true;
    return false;
}

/* ---- light plans on up to 64 servers ------------------------------------- */

/*
 * Where memory is no limit, whether a block may be taken depends only on which servers
 * are free. On a small cluster, therefore, the blocks of each number of parts in each box
 * are listed once, as masks; then the first free one is found by comparing masks.
 */

/* Adds the blocks of a shape, or if shape[2] is 0 the diagonals, at all positions. False:
 * out of memory. */
static bool
list_shape(struct place_ramp *ramp, const uint32_t shape[3], struct place_ramp_list *l)
{
    const uint32_t *m = ramp->limit;
    uint32_t length = shape[2] ? shape[2] : 1, at[3];
    for (at[0] = 0; at[0] + shape[0] <= m[0]; at[0]++)
        for (at[1] = 0; at[1] + shape[1] <= m[1]; at[1]++)
            for (at[2] = 0; at[2] + length <= m[2]; at[2]++) {
                uint32_t *server;
                struct rec_error err;
                if (!rec_grow(&l->mask, &l->mask_room, l->n + 1, sizeof *l->mask, &err) ||
                    !rec_grow(&l->server, &l->server_room, (size_t)(l->n + 1) * l->parts,
                              sizeof *l->server, &err))
                    return false;
                server = l->server + (size_t)l->n * l->parts;
                for (uint32_t i = 0; i < l->parts; i++) {
                    uint32_t rest = i / length;
                    server[i] =
                        shape[2] ? place_ramp_server(ramp, at[0] + rest / shape[1],
                                                     at[1] + rest % shape[1],
                                                     at[2] + i % length)
                                 : place_ramp_server(ramp, at[0] + i, at[1] + i, at[2]);
                }
                l->mask[l->n] = 0;
                for (uint32_t i = 0; i < l->parts; i++)
                    l->mask[l->n] |= (uint64_t)1 << server[i];
                l->n++;
            }
    return true;
}

/* Fills a list with the blocks in the box. False: out of memory. */
static bool
fill_list(const struct place_placer *p, struct place_ramp_list *l, uint32_t parts)
{
    struct place_ramp *ramp = place_ramp_of(p);
    const uint32_t column[3] = {parts, 1, 1}, diagonal[3] = {parts, parts, 0};
    struct net_ramp_shapes w = {ramp->within, parts, 1, 0, true, true, {0}};
    if (!l->parts) {
        l->next = ramp->index->begun;
        ramp->index->begun = l;
    }
    l->n = 0;
    l->parts = parts;
    while (net_ramp_next_shape(&w))
        if (!list_shape(ramp, w.shape, l))
            return false;
    l->known = list_shape(ramp, diagonal, l) && list_shape(ramp, column, l);
    l->first = l->n; /* where no server is free */
    return l->known;
}

/* The lists of the box: element i is that of i + 1 parts. NULL: out of memory. */
static inline struct place_ramp_list *
lists_of(const struct place_placer *p)
{
    struct place_ramp *ramp = place_ramp_of(p);
    struct place_ramp_index *index = ramp->index;
    const uint32_t *n = ramp->shape, *o = ramp->origin, *m = ramp->limit;
    size_t groups = o[0] * n[0] + m[0] - 1, racks = o[1] * n[1] + m[1] - 1;
    if (!index->lists) {
        size_t nlists = (size_t)n[0] * n[0] * n[1] * n[1] * p->nservers;
        index->lists = calloc(nlists, sizeof *index->lists);
    }
    return index->lists ? index->lists + (groups * n[1] * n[1] + racks) * p->nservers
                        : NULL;
}

/* Searches the list of a number of parts. All alternatives of a job ask for the same
 * servers, so each list remembers its last answer. False: out of memory. */
static inline bool
search_list(const struct place_placer *p, struct place_ramp_list *l, uint32_t parts)
{
    uint64_t taken = ~p->vacancy->free[0];
    if (!l->known && !fill_list(p, l, parts))
        return false;
    if (l->free == ~taken)
        return true;
    l->free = ~taken;
    for (l->first = 0; l->first < l->n && l->mask[l->first] & taken;)
        l->first++;
    return true;
}

/* place_ramp_find() by a list that has been searched. */
static bool
find_listed(struct place_placer *p, const struct graph_unit *unit,
            const struct place_ramp_list *l)
{
    if (l->first == l->n)
        return false;
    memcpy(p->block, l->server + (size_t)l->first * l->parts,
           l->parts * sizeof *p->block);
    return place_take(p, unit, 0);
}

/* Notes in which boxes of limit[0] groups and limit[1] racks there are free blocks of
 * each kind. False: out of memory. */
static bool
search_boxes(struct place_placer *p, struct place_ramp_fits *f)
{
    struct place_ramp *ramp = place_ramp_of(p);
    const uint32_t *n = ramp->shape, *m = ramp->limit;
    f->n = 0;
    for (uint32_t c = 0; c + m[0] <= n[0]; c++)
        for (uint32_t r = 0; r + m[1] <= n[1]; r++) {
            struct place_ramp_list *lists;
            bool fits = true;
            ramp->origin[0] = c;
            ramp->origin[1] = r;
            if (!(lists = lists_of(p)))
                return false;
            /* Most parts first: those fail most often. */
            for (uint64_t rest = f->kinds; fits && rest;) {
                uint32_t last = 63 - (uint32_t)__builtin_clzll(rest);
                if (!search_list(p, &lists[last], last + 1))
                    return false;
                fits = lists[last].first < lists[last].n;
                rest ^= (uint64_t)1 << last;
            }
            if (fits)
                f->rack[f->n++] = (uint8_t)(c * n[1] + r);
        }
    return true;
}

/* Finds the boxes of the least groups, with all their racks, and then of the least racks.
 * False: out of memory. */
static bool
find_boxes(struct place_placer *p, struct place_ramp_fits *f)
{
    struct place_ramp *ramp = place_ramp_of(p);
    const uint32_t *n = ramp->shape;
    uint32_t *m = ramp->limit;
    m[0] = 0;
    m[1] = n[1];
    do {
        m[0]++;
        if (!search_boxes(p, f))
            return false;
    } while (f->n == 0 && m[0] < n[0]);
    if (f->n > 0) {
        m[1] = 0;
        do { /* it ends: with all racks the plan fits */
            m[1]++;
            if (!search_boxes(p, f))
                return false;
        } while (f->n == 0);
    }
    f->limit[0] = m[0];
    f->limit[1] = m[1];
    return true;
}

const struct place_ramp_fits *
place_ramp_fits(struct place_placer *p, const struct place_plan *plan)
{
    static const struct place_ramp_fits nowhere;
    struct place_ramp_fits *f;
    uint64_t kinds = 0;
    if (!p->light || p->nservers > 64)
        return NULL;
    if (plan->largest > p->vacancy->n)
        return &nowhere;
    for (uint32_t k = 0; k < plan->nkinds; k++) {
        uint32_t parts = plan->graph->unit[plan->step[plan->kind[k]].unit].parts;
        kinds |= parts ? (uint64_t)1 << (parts - 1) : 0;
    }
    if (!kinds)
        return NULL;
    f = &place_ramp_of(p)->index->fits[rec_mix(kinds) % PLACE_RAMP_FITS];
    if (f->kinds == kinds && f->free == p->vacancy->free[0])
        return f;
    *f = (struct place_ramp_fits){.free = p->vacancy->free[0], .kinds = kinds};
    if (find_boxes(p, f))
        return f;
    f->kinds = 0;
    return NULL;
}

/* ---- a unit -------------------------------------------------------------- */

bool
place_ramp_find(struct place_placer *p, const struct graph_unit *unit, double memory)
{
    const struct place_ramp *ramp = place_ramp_of(p);
    const uint32_t *m = ramp->limit, column[3] = {unit->parts, 1, 1};
    const uint32_t diagonal[3] = {unit->parts, unit->parts, 0};
    struct place_ramp_list *list;
    bool placed;

    if (unit->parts > (uint64_t)m[0] * m[1] * m[2] || unit->parts > p->vacancy->n)
        return false;
    /* Without memory for the list the search does the same. */
    if (p->light && !ramp->notebook && p->nservers <= 64 && unit->parts &&
        (list = lists_of(p)) && search_list(p, list + unit->parts - 1, unit->parts))
        return find_listed(p, unit, list + unit->parts - 1);
    if (ramp->notebook) /* the notebook's shapes first, then those it lacks */
        placed = try_shapes(p, false, true, unit, memory) ||
                 try_shapes(p, true, false, unit, memory);
    else /* the simulator's order */
        placed = try_shapes(p, true, true, unit, memory);
    return placed || try_shape(p, diagonal, unit, memory) ||
           try_shape(p, column, unit, memory);
}
