/* The order in which algorithms take the members of an exchange. */
#include "rounds.h"

#include <stdlib.h>

void
members_free(struct members *m)
{
    free(m->server);
    free(m->first);
}

bool
members_sort(const struct net *net, const uint32_t *server, uint32_t n, struct members *m,
             struct rec_error *err)
{
    uint32_t size = net->routes.node > 1 ? net->routes.node : net_servers(net);
    uint32_t *node = malloc(((size_t)n + 1) * sizeof *node);
    bool ok;
    *m = (struct members){.n = n};
    m->server = malloc(((size_t)n + 1) * sizeof *m->server);
    m->first = calloc((size_t)n + 2, sizeof *m->first);
    ok = (node && m->server && m->first) || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < n; i++)
        node[i] = net->routes.node > 1 ? server[i] / size : i;
    ok = ok &&
         (net->routes.node <= 1 || net_rename(node, n, 1, net_servers(net) / size, err));
    for (uint32_t i = 0; ok && i < n; i++) {
        node[i] += net->routes.node <= 1; /* as net_rename() does, from 1 on */
        m->nodes = node[i] > m->nodes ? node[i] : m->nodes;
        m->first[node[i]]++;
    }
    if (ok)
        m->least = n;
    for (uint32_t j = 0; ok && j < m->nodes; j++) {
        uint32_t here = m->first[j + 1];
        m->least = here < m->least ? here : m->least;
        m->most = here > m->most ? here : m->most;
        m->first[j + 1] += m->first[j];
    }
    /* first[j] is now where node j begins, and moves on while its servers are put there:
     * then it is where node j ends, which is the next one's beginning. */
    for (uint32_t i = 0; ok && i < n; i++)
        m->server[m->first[node[i] - 1]++] = server[i];
    for (uint32_t j = m->nodes; ok && j > 0; j--)
        m->first[j] = m->first[j - 1];
    if (ok)
        m->first[0] = 0;
    else
        members_free(m);
    free(node);
    return ok;
}

/* Orders positions in a list by what they lie in on each level, the largest first. */
static int
by_levels(const void *a, const void *b, void *of)
{
    const uint32_t *x = (const uint32_t *)of + *(const uint32_t *)a * NET_LEVELS_MAX;
    const uint32_t *y = (const uint32_t *)of + *(const uint32_t *)b * NET_LEVELS_MAX;
    for (int i = 0; i < NET_LEVELS_MAX; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

bool
members_by_levels(const struct net *net, const uint32_t *server, uint32_t n,
                  uint32_t *sorted, struct rec_error *err)
{
    uint32_t *block = calloc(((size_t)n + 1) * NET_LEVELS_MAX, sizeof *block);
    bool ok = block || rec_fail_memory(err);
    for (uint32_t j = 0; ok && j < net->nlevels; j++) {
        for (uint32_t i = 0; i < n; i++)
            block[i * NET_LEVELS_MAX + j] = server[i] / net->level[j].servers;
        ok = net_rename(block + j, n, NET_LEVELS_MAX,
                        net_servers(net) / net->level[j].servers, err);
    }
    for (uint32_t i = 0; ok && i < n; i++)
        sorted[i] = i;
    if (ok)
        qsort_r(sorted, n, sizeof *sorted, by_levels, block);
    for (uint32_t i = 0; ok && i < n; i++)
        sorted[i] = server[sorted[i]];
    free(block);
    return ok;
}
