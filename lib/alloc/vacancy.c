/* Which servers are free: a bit each, a word or more a rack, so that a search for runs of
 * them looks at a whole rack at once. */
#include "placer.h"

#include <stdlib.h>

struct alloc_vacancy *
alloc_vacancy_new(const struct net_cluster *cluster, struct rec_error *err)
{
    struct alloc_vacancy *v = calloc(1, sizeof *v);
    uint32_t servers = net_servers(cluster);
    if (!v) {
        rec_fail_memory(err);
        return NULL;
    }
    v->rack = cluster->shape[2];
    v->words = (v->rack + 63) / 64;
    v->free = calloc((size_t)servers / v->rack * v->words, sizeof *v->free);
    if (!v->free) {
        alloc_vacancy_free(v);
        rec_fail_memory(err);
        return NULL;
    }
    for (uint32_t i = 0; i < servers; i++)
        alloc_set_free(v, i, true);
    return v;
}

void
alloc_vacancy_free(struct alloc_vacancy *v)
{
    if (!v)
        return;
    free(v->free);
    free(v);
}

bool
alloc_is_free(const struct alloc_vacancy *v, uint32_t server)
{
    uint32_t s = server % v->rack;
    return v->free[server / v->rack * v->words + s / 64] >> s % 64 & 1;
}

void
alloc_set_free(struct alloc_vacancy *v, uint32_t server, bool free)
{
    uint32_t s = server % v->rack;
    uint64_t *word = &v->free[server / v->rack * v->words + s / 64];
    uint64_t bit = (uint64_t)1 << s % 64;
    if (free == ((*word & bit) != 0))
        return;
    *word ^= bit;
    v->n += free ? 1 : UINT32_MAX; /* - 1 */
}

uint32_t
alloc_count_free(const struct alloc_vacancy *v)
{
    return v->n;
}
