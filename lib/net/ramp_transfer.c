/*
 * The times of transfers in a RAMP, and which deps are one collective. Formulas and rules
 * are those of the ddls simulator, to the byte: its results are compared with ours. The
 * work is O(ops + deps).
 */
#include "private.h"

#include <math.h>
#include <stdlib.h>

double
net_ramp_one_to_one_seconds(const struct net_cluster *cluster, double bytes)
{
    double rate = cluster->bandwidth / cluster->shape[0];
    return cluster->propagation + 2 * cluster->io + bytes / rate;
}

double
net_ramp_collective_seconds(const struct net_cluster *cluster, uint32_t g, uint32_t r,
                            uint32_t s, double bytes)
{
    uint32_t x = cluster->shape[0];
    uint32_t sub[4] = {g, g < s ? g : s, r, (s + x - 1) / x};
    bool node = cluster->collective_rate == NET_COLLECTIVE_NODE;
    double rate = cluster->bandwidth / x, communicate = 0, compute = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t d = sub[i], transceivers;
        double hops, intensity, flops;
        bytes = ceil(bytes / d);
        if (d < 2)
            continue;
        transceivers = x / (d - 1);
        if (transceivers < 1)
            transceivers = 1;
        communicate += cluster->propagation + 2 * cluster->io +
                       bytes / (node ? transceivers * rate : transceivers * rate / x);
        hops = ceil(log2(d));
        intensity = hops / ((d + 1) * 2.0); /* two bytes a number */
        flops = fmin(2e12 * intensity, 130e12);
        compute += hops * bytes / 2 / flops;
    }
    return 2 * communicate + compute;
}

/* The server of an op: communication group, rack, position in the rack. */
struct place {
    uint32_t at[3];
};

/* One pass over the deps of a placed graph. */
struct traffic {
    const struct net_cluster *cluster;
    const struct graph *graph;
    const uint32_t *server; /* of each op */
    struct place *place;    /* of each op */
    double *seconds;        /* of each dep; UNKNOWN: not a part of a collective so far */
    struct net_traffic *count;
    int32_t
        *balance; /* per server: deps it sends minus deps it receives; 0 between uses */
    uint32_t *seen[3]; /* per value of each coordinate: the last stamp that had it */
    uint32_t stamp;    /* number of the collective */
    uint32_t *back;    /* per op: the sync dep from it to the current op; or GRAPH_NONE */
    uint32_t *dep;     /* deps of the current group */
    size_t ndeps, room;
    /* The last cost of a pair; index: bits of the coordinates in which the two differ. */
    struct {
        double bytes, seconds;
    } pair[8];
};

static const double UNKNOWN = -1;

/* Counts the distinct values of each coordinate over both ends of the group's deps. */
static void
count_geometry(struct traffic *t, uint32_t distinct[3])
{
    t->stamp++;
    memset(distinct, 0, 3 * sizeof *distinct);
    for (size_t i = 0; i < 2 * t->ndeps; i++) {
        const struct graph_dep *dep = &t->graph->dep[t->dep[i / 2]];
        const uint32_t *at = t->place[i % 2 ? dep->dst : dep->src].at;
        for (int d = 0; d < 3; d++)
            if (t->seen[d][at[d]] != t->stamp) {
                t->seen[d][at[d]] = t->stamp;
                distinct[d]++;
            }
    }
}

/* Gives all deps of the group the time of one collective with all their bytes. */
static void
set_collective(struct traffic *t)
{
    uint32_t distinct[3];
    double bytes = 0, seconds;
    for (size_t i = 0; i < t->ndeps; i++)
        bytes += t->graph->dep[t->dep[i]].bytes;
    count_geometry(t, distinct);
    seconds = net_ramp_collective_seconds(t->cluster, distinct[0], distinct[1],
                                          distinct[2], bytes);
    for (size_t i = 0; i < t->ndeps; i++)
        t->seconds[t->dep[i]] = seconds;
    t->count->collectives++;
}

/* True if each server sends as many deps of the group as it receives: the published rule
 * for which deps are one collective. */
static bool
is_collective(struct traffic *t)
{
    bool balanced = true;
    for (size_t i = 0; i < t->ndeps; i++) {
        const struct graph_dep *dep = &t->graph->dep[t->dep[i]];
        t->balance[t->server[dep->src]]++;
        t->balance[t->server[dep->dst]]--;
    }
    for (size_t i = 0; i < t->ndeps; i++) {
        const struct graph_dep *dep = &t->graph->dep[t->dep[i]];
        uint32_t both[2] = {t->server[dep->src], t->server[dep->dst]};
        for (int e = 0; e < 2; e++) {
            balanced = balanced && t->balance[both[e]] == 0;
            t->balance[both[e]] = 0;
        }
    }
    return balanced && t->ndeps > 0;
}

/* The deps, sync deps left out, that leave (or enter) the parts of a unit. */
static bool
collect(struct traffic *t, const struct graph_unit *unit, bool leaving,
        struct rec_error *err)
{
    const uint32_t *start = leaving ? t->graph->out_start : t->graph->in_start;
    const uint32_t *list = leaving ? t->graph->out : t->graph->in;
    t->ndeps = 0;
    for (uint32_t j = 0; j < unit->parts; j++) {
        uint32_t op = t->graph->member[unit->first + j];
        if (!rec_grow(&t->dep, &t->room, t->ndeps + start[op + 1] - start[op] + 1,
                      sizeof *t->dep, err))
            return false;
        for (uint32_t i = start[op]; i < start[op + 1]; i++)
            if (!t->graph->dep[list[i]].sync)
                t->dep[t->ndeps++] = list[i];
    }
    return true;
}

/* For each op that sends a sync dep to `op`: sets back[] to that dep, or clears it
 * again. So the dep in the other direction is found without a search. */
static void
mark_back(struct traffic *t, uint32_t op, bool set)
{
    const struct graph *graph = t->graph;
    for (uint32_t i = graph->in_start[op]; i < graph->in_start[op + 1]; i++)
        if (graph->dep[graph->in[i]].sync)
            t->back[graph->dep[graph->in[i]].src] = set ? graph->in[i] : GRAPH_NONE;
}

/* The time of a collective of two ops. The last result for each of the 8 geometries is
 * kept, because the pairs of a unit follow each other and have the same bytes. */
static double
pair_seconds(struct traffic *t, uint32_t a, uint32_t b, double bytes)
{
    const uint32_t *x = t->place[a].at, *y = t->place[b].at;
    uint32_t g = x[0] != y[0], r = x[1] != y[1], s = x[2] != y[2], k = g * 4 + r * 2 + s;
    if (t->pair[k].bytes != bytes) {
        t->pair[k].bytes = bytes;
        t->pair[k].seconds =
            net_ramp_collective_seconds(t->cluster, g + 1, r + 1, s + 1, bytes);
    }
    return t->pair[k].seconds;
}

/* Each pair of sync deps x -> y, y -> x is a collective of its own. */
static void
set_sync(struct traffic *t, uint32_t op)
{
    const struct graph *graph = t->graph;
    mark_back(t, op, true);
    for (uint32_t i = graph->out_start[op]; i < graph->out_start[op + 1]; i++) {
        uint32_t out = graph->out[i];
        const struct graph_dep *dep = &graph->dep[out];
        uint32_t back = t->back[dep->dst];
        double bytes = dep->bytes, seconds;
        if (!dep->sync || (back != GRAPH_NONE && dep->dst < op))
            continue; /* the pair was done when dep->dst was `op` */
        if (back != GRAPH_NONE)
            bytes += graph->dep[back].bytes;
        seconds = pair_seconds(t, op, dep->dst, bytes);
        t->seconds[out] = seconds;
        if (back != GRAPH_NONE)
            t->seconds[back] = seconds;
        t->count->collectives++;
    }
    mark_back(t, op, false);
}

/* The collectives of all units that are split: deps that leave a forward unit, deps that
 * enter a backward one, and sync deps. */
static bool
set_groups(struct traffic *t, struct rec_error *err)
{
    const struct graph *graph = t->graph;
    for (size_t u = 0; u < graph->nunits; u++) {
        const struct graph_unit *unit = &graph->unit[u];
        bool backward = graph->op[graph->member[unit->first]].pass == GRAPH_BACKWARD;
        if (unit->parts == 1 || (backward && unit->twin == GRAPH_NONE))
            continue;
        if (!collect(t, unit, !backward, err))
            return false;
        if (is_collective(t))
            set_collective(t);
        for (uint32_t j = 0; j < unit->parts; j++)
            set_sync(t, graph->member[unit->first + j]);
    }
    return true;
}

/* Sets the times of the other deps, and 0 for those that are not flows, also if they are
 * part of a collective. */
static void
set_others(struct traffic *t)
{
    double bytes = 0, seconds = 0;
    for (size_t d = 0; d < t->graph->ndeps; d++) {
        const struct graph_dep *dep = &t->graph->dep[d];
        if (t->server[dep->src] == t->server[dep->dst] || dep->bytes == 0) {
            t->seconds[d] = 0;
            continue;
        }
        t->count->flows++;
        t->count->flow_bytes += dep->bytes;
        if (t->seconds[d] != UNKNOWN)
            continue;
        if (dep->bytes != bytes) { /* deps of one op's parts follow each other */
            bytes = dep->bytes;
            seconds = net_ramp_one_to_one_seconds(t->cluster, bytes);
        }
        t->seconds[d] = seconds;
    }
}

static bool
start(struct traffic *t, struct rec_error *err)
{
    const uint32_t *n = t->cluster->shape;
    size_t nops = t->graph->nops;
    bool ok;
    t->balance = calloc(net_servers(t->cluster), sizeof *t->balance);
    t->back = malloc((nops + 1) * sizeof *t->back);
    t->place = malloc((nops + 1) * sizeof *t->place);
    ok = t->balance && t->back && t->place;
    for (int d = 0; d < 3; d++) {
        t->seen[d] = calloc(n[d], sizeof *t->seen[d]);
        ok = ok && t->seen[d];
    }
    if (!ok)
        return rec_fail_memory(err);
    memset(t->back, 0xff, nops * sizeof *t->back);
    for (size_t i = 0; i < nops; i++) {
        uint32_t rack = t->server[i] / n[2];
        t->place[i] =
            (struct place){{rack / n[1], rack % n[1], t->server[i] - rack * n[2]}};
    }
    for (int k = 0; k < 8; k++)
        t->pair[k].bytes = -1;
    for (size_t d = 0; d < t->graph->ndeps; d++)
        t->seconds[d] = UNKNOWN;
    return true;
}

bool
net_ramp_transfer_times(const struct net_cluster *cluster, const struct graph *graph,
                        const uint32_t *server_of_op, double *seconds,
                        struct net_traffic *traffic, struct rec_error *err)
{
    struct traffic t = {.cluster = cluster,
                        .graph = graph,
                        .server = server_of_op,
                        .seconds = seconds,
                        .count = traffic};
    bool ok;

    *traffic = (struct net_traffic){0};
    ok = start(&t, err) && set_groups(&t, err);
    if (ok)
        set_others(&t);
    free(t.balance);
    free(t.back);
    free(t.place);
    free(t.dep);
    for (int d = 0; d < 3; d++)
        free(t.seen[d]);
    return ok;
}
