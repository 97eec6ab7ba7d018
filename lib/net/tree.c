/* Fat trees of switches. */
#include "tree.h"

#include <math.h>
#include <stdio.h>

/* A taper has been rounded, so what is near a whole number is one: 21 / 1.4 is not 15. */
#define SAME 1e-9

/* What the switches of a level are called, in a tree of n levels. */
static const char *
level_name(const struct tree *t, uint32_t level)
{
    if (t->n == 1)
        return "switch";
    return level == 0 ? "leaf" : level + 1 < t->n ? "aggregation" : "spine";
}

bool
tree_make(struct tree *t, const struct rec_reader *reader, struct rec_error *err)
{
    double ends = 1, wide = 1, links, nodes = 0;
    for (uint32_t s = 0; s < t->n; s++)
        ends *= t->down[s];
    t->ends = (uint32_t)ends;
    links = 2 * ends;
    for (uint32_t s = 0; s < t->n; s++) {
        double up = t->down[s] / t->taper[s];
        t->width[s] = (uint32_t)wide;
        t->size[s] = t->down[s] * (s ? t->size[s - 1] : 1);
        t->blocks[s] = t->ends / t->size[s];
        nodes += t->blocks[s] * wide;
        if (s + 1 == t->n)
            break;
        if (fabs(up - round(up)) <= SAME * up)
            up = round(up);
        if (!(up >= 1) || up != floor(up))
            return rec_reader_fail(reader, err,
                                   "the %s switches have %u links down each: with a "
                                   "taper of %.10g they would have %.10g links up, which "
                                   "must be a whole number >= 1",
                                   level_name(t, s), t->down[s], t->taper[s], up);
        wide *= up;
        links += 2 * t->blocks[s] * wide;
        if (!net_check_links(reader, links, nodes, err))
            return false;
    }
    t->cable[0] = t->node[0] = 0;
    for (uint32_t s = 1; s < t->n; s++) {
        t->cable[s] =
            t->cable[s - 1] + (s > 1 ? t->blocks[s - 2] : t->ends) * t->width[s - 1];
        t->node[s] = t->node[s - 1] + t->blocks[s - 1] * t->width[s - 1];
    }
    t->links = (uint32_t)links;
    t->nodes = (uint32_t)nodes;
    return net_check_links(reader, links, nodes, err);
}

void
tree_link(const struct tree *t, uint32_t i, struct net_link *link, uint32_t *end)
{
    uint32_t cable = i / 2, s = t->n - 1, block, w, below, above;
    while (cable < t->cable[s])
        s--;
    cable -= t->cable[s];
    block = cable / t->width[s];
    w = cable % t->width[s];
    above = t->node[s] + block / t->down[s] * t->width[s] + w;
    below = UINT32_MAX;
    if (s > 0)
        below = t->node[s - 1] + block * t->width[s - 1] + w % t->width[s - 1];
    else
        *end = block;
    *link = i % 2 ? (struct net_link){above, below, t->bandwidth, t->latency}
                  : (struct net_link){below, above, t->bandwidth, t->latency};
}

/* On level s a message leaves what it is in there by the cable to the switch that leads
 * to its destination, and is led down by the cable from that switch. This is asked for
 * millions of times, so nothing is divided twice. */
uint32_t
tree_route(const struct tree *t, uint32_t from, uint32_t to, uint32_t base,
           uint32_t *link)
{
    uint32_t down[TREE_MAX], out = from, in = to, n = 0, s = 0;
    for (;; s++) {
        uint32_t way = t->cable[s] + (s ? to % t->width[s] : 0);
        link[n++] = base + 2 * (way + out * t->width[s]);
        down[s] = base + 2 * (way + in * t->width[s]) + 1;
        out = from / t->size[s];
        in = to / t->size[s];
        if (out == in)
            break;
    }
    for (s++; s-- > 0;)
        link[n++] = down[s];
    return n;
}

void
tree_name(const struct tree *t, uint32_t node, char name[NET_NODE_MAX])
{
    uint32_t s = t->n - 1, block, w;
    int len;
    while (node < t->node[s])
        s--;
    node -= t->node[s];
    block = node / t->width[s];
    w = node % t->width[s];
    len = snprintf(name, NET_NODE_MAX, "%s", level_name(t, s));
    for (uint32_t up = t->n - 1; up > s; up--) {
        uint32_t part = t->size[up - 1] / t->size[s]; /* blocks of level s in one */
        len += snprintf(name + len, (size_t)(NET_NODE_MAX - len), "%c%u",
                        up == t->n - 1 ? ' ' : '.', block / part);
        block %= part;
    }
    if (t->width[s] > 1 || s + 1 == t->n)
        snprintf(name + len, (size_t)(NET_NODE_MAX - len), "%c%u",
                 s + 1 == t->n ? ' ' : '.', w);
}
