/*
 * Which servers of a RAMP are free. Each server is a bit, and a rack begins with a new
 * word, so that the placer looks at a whole rack at once. On large clusters a bound is
 * kept for each shape that is looked for: the rack before which no free block of it
 * starts. Taking servers leaves a bound true; a server that comes free lowers those of
 * all shapes whose blocks could contain it.
 */
#include "ramp.h"

#include "rampipe/net_ramp.h"

#include <stdlib.h>

/* On clusters with at most this many racks no bounds are kept, because a search there
 * takes less time than keeping them. */
enum { RACKS_WITHOUT_BOUNDS = 64 };

static void
set_some(struct place_ramp_index *v, uint32_t rack, bool some)
{
    uint32_t r = rack % v->racks;
    uint64_t *word = &v->some[rack / v->racks * v->group + r / 64];
    uint64_t bit = (uint64_t)1 << r % 64;
    *word = some ? *word | bit : *word & ~bit;
}

void *
place_ramp_index_new(const struct net *net, struct rec_error *err)
{
    struct place_ramp_index *v = calloc(1, sizeof *v);
    uint32_t racks, full;
    if (!v) {
        rec_fail_memory(err);
        return NULL;
    }
    v->rack = net_ramp_of(net)->shape[2];
    v->words = (v->rack + 63) / 64;
    v->racks = net_ramp_of(net)->shape[1];
    racks = net_servers(net) / v->rack;
    v->group = (v->racks + 63) / 64;
    v->free = calloc((size_t)racks * v->words, sizeof *v->free);
    v->some = calloc((size_t)racks / v->racks * v->group, sizeof *v->some);
    if (racks > RACKS_WITHOUT_BOUNDS)
        v->bound = calloc(PLACE_RAMP_BOUNDS, sizeof *v->bound);
    if (!v->free || !v->some || (racks > RACKS_WITHOUT_BOUNDS && !v->bound)) {
        place_ramp_index_free(v);
        rec_fail_memory(err);
        return NULL;
    }
    full = v->rack / 64; /* words of a rack that have 64 servers */
    for (uint32_t i = 0; i < racks; i++)
        for (uint32_t w = 0; w < v->words; w++)
            v->free[i * v->words + w] =
                w < full ? ~(uint64_t)0 : ((uint64_t)1 << v->rack % 64) - 1;
    for (uint32_t i = 0; i < racks; i++)
        set_some(v, i, true);
    return v;
}

void
place_ramp_index_free(void *index)
{
    struct place_ramp_index *v = index;
    if (!v)
        return;
    free(v->free);
    free(v->some);
    free(v->bound);
    for (struct place_ramp_list *l = v->begun; l; l = l->next) {
        free(l->mask);
        free(l->server);
    }
    free(v->lists);
    free(v);
}

uint32_t
place_ramp_next(const struct place_ramp_index *v, uint32_t c, uint32_t r)
{
    const uint64_t *some = v->some + (size_t)c * v->group;
    uint32_t w = r / 64;
    uint64_t bits = some[w] & ~(uint64_t)0 << r % 64;
    while (bits == 0)
        if (++w == v->group)
            return v->racks;
        else
            bits = some[w];
    return w * 64 + (uint32_t)__builtin_ctzll(bits);
}

uint32_t *
place_ramp_bound(const struct place_ramp_index *v, const uint32_t shape[3])
{
    struct place_ramp_bound *bound;
    if (!v->bound)
        return NULL;
    bound = &v->bound[place_ramp_hash(shape)];
    if (memcmp(bound->shape, shape, sizeof bound->shape) != 0) {
        memcpy(bound->shape, shape, sizeof bound->shape);
        bound->rack = 0;
    }
    return &bound->rack;
}

/* A server of this rack came free, so a block with a part in the rack may be free now.
 * The first rack at which such a block of a shape starts is shape[0] - 1 groups and
 * shape[1] - 1 racks before it. */
static void
lower_bounds(struct place_ramp_index *v, uint32_t rack)
{
    uint32_t c = rack / v->racks, r = rack % v->racks;
    for (size_t i = 0; i < PLACE_RAMP_BOUNDS; i++) {
        struct place_ramp_bound *bound = &v->bound[i];
        uint32_t group = c < bound->shape[0] ? 0 : c - bound->shape[0] + 1;
        uint32_t first = r < bound->shape[1] ? 0 : r - bound->shape[1] + 1;
        if (group * v->racks + first < bound->rack)
            bound->rack = group * v->racks + first;
    }
}

void
place_ramp_index_set(void *index, uint32_t server, bool free)
{
    struct place_ramp_index *v = index;
    uint32_t rack = server / v->rack, s = server % v->rack;
    uint64_t *words = v->free + (size_t)rack * v->words, some = 0;
    words[s / 64] ^= (uint64_t)1 << s % 64;
    for (uint32_t w = 0; w < v->words; w++)
        some |= words[w];
    set_some(v, rack, some != 0);
    if (free && v->bound)
        lower_bounds(v, rack);
}
