/* Which servers are free. The kind of placing is told of every change, so that it can
 * keep an index that makes its searches fast. */
#include "private.h"

#include <stdlib.h>

struct place_vacancy *
place_vacancy_new(const struct place_kind *kind, const struct net *net,
                  struct rec_error *err)
{
    struct place_vacancy *v = calloc(1, sizeof *v);
    uint32_t servers = net_servers(net);
    if (!v) {
        rec_fail_memory(err);
        return NULL;
    }
    v->kind = kind;
    if (!(v->free = calloc(servers / 64 + 1, sizeof *v->free)))
        rec_fail_memory(err);
    else if (!kind->index_new || (v->index = kind->index_new(net, err))) {
        v->n = servers;
        memset(v->free, 0xff, servers / 64 * sizeof *v->free);
        v->free[servers / 64] = ((uint64_t)1 << servers % 64) - 1;
        return v;
    }
    place_vacancy_free(v);
    return NULL;
}

void
place_vacancy_free(struct place_vacancy *v)
{
    if (!v)
        return;
    if (v->index)
        v->kind->index_free(v->index);
    free(v->free);
    free(v);
}

uint32_t
place_count_free(const struct place_vacancy *v)
{
    return v->n;
}

bool
place_is_free(const struct place_vacancy *v, uint32_t server)
{
    return place_bit(v, server);
}

void
place_set_free(struct place_vacancy *v, uint32_t server, bool free)
{
    if (free == place_bit(v, server))
        return;
    v->free[server / 64] ^= (uint64_t)1 << server % 64;
    v->n += free ? 1 : UINT32_MAX; /* - 1 */
    if (v->index)
        v->kind->index_set(v->index, server, free);
}
