/*
 * Times of collectives that were measured. A cluster whose record has system= may be
 * given a table of rampipe/collective.h, which says how long its collectives take alone.
 * In its terms
 *
 *   sync deps of an op         are an all-reduce of the size of one of them,
 *   deps of a collective       an all-to-all of what a member sends,
 *   a barrier                  an all-reduce of no bytes,
 *
 * and the members are ranks, equally many in each node. Messages are no collectives: they
 * take the time of their route.
 */
#include "levels.h"

#include "rampipe/collective.h"

#include <stdlib.h>

bool
net_key_system(const struct rec_reader *reader, const struct rec *rec, struct net *net,
               struct rec_error *err)
{
    struct rec_str system;
    if (!rec_find_key(rec, "system", &system))
        return true;
    if (system.len == 0 || system.len >= sizeof net->measured.system)
        return rec_reader_fail(reader, err, "system must have 1 to %zu bytes, got '%.*s'",
                               sizeof net->measured.system - 1, REC_SAID(system));
    memcpy(net->measured.system, system.ptr, system.len);
    net->measured.system[system.len] = '\0';
    return true;
}

bool
net_measure(struct net *net, const struct collective_table *table, struct rec_error *err)
{
    char text[NET_TEXT_MAX];
    net->measured.table = table;
    if (net->measured.system[0])
        return true;
    net_describe(net, text);
    return rec_fail(
        err, REC_DATA,
        "measured times of collectives are those of a system, but %s has no "
        "system=%s",
        text, net->measured.node ? "" : ", which island, fat-tree and rail may have");
}

/* The kind of an exchange in a table, and its size. NULL: it is none. */
static const char *
table_kind(const struct net_exchange *e, double *size)
{
    double n = e->n;
    *size = e->bytes;
    switch (e->kind) {
    case GRAPH_SYNC_ALL: *size = e->flow / (n * (n - 1)); return "all-reduce";
    case GRAPH_COLLECTIVE: *size = e->bytes / n; return "all-to-all";
    case GRAPH_BARRIER: *size = 0; return "all-reduce";
    case GRAPH_ALL_REDUCE: return "all-reduce";
    case GRAPH_ALL_GATHER: return "all-gather";
    case GRAPH_REDUCE_SCATTER: return "reduce-scatter";
    case GRAPH_ALL_TO_ALL: return "all-to-all";
    case GRAPH_BROADCAST: return "broadcast";
    case GRAPH_REDUCE: return "reduce";
    default: return NULL;
    }
}

/* Over how many nodes the members are spread, evenly; 0: *err. */
static uint32_t
count_nodes(const struct net *net, const struct net_exchange *e, struct rec_error *err)
{
    uint32_t size = net->measured.node, n = 0;
    uint32_t *node = malloc(((size_t)e->n + 1) * sizeof *node);
    uint32_t *here = calloc((size_t)e->n + 1, sizeof *here);
    bool ok = (node && here) || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < e->n; i++)
        node[i] = e->server[i] / size;
    ok = ok && net_rename(node, e->n, 1, net_servers(net) / size, err);
    for (uint32_t i = 0; ok && i < e->n; i++) {
        n = node[i] > n ? node[i] : n;
        here[node[i]]++;
    }
    for (uint32_t j = 1; ok && j <= n; j++)
        if (here[j] != here[1])
            ok = rec_fail(err, REC_DATA,
                          "the %u servers of a collective are spread unevenly over %u "
                          "nodes: no table of measured times says how long that takes",
                          e->n, n);
    free(node);
    free(here);
    return ok ? n : 0;
}

bool
net_measured(const struct net *net, const struct net_exchange *e, bool *is,
             double *seconds, struct rec_error *err)
{
    struct collective_ask ask = {
        .system = net->measured.system, .gpu = "", .version = ""};
    struct collective_answer answer;
    struct rec_error why;
    const char *kind = net->measured.table ? table_kind(e, &ask.size) : NULL;
    *is = kind != NULL;
    *seconds = 0;
    if (!kind || !e->server || e->n < 2)
        return true; /* 0 is a lower bound of any servers */
    ask.what.kind = kind;
    ask.what.dtype = "";
    ask.ranks = e->n;
    if (!(ask.nodes = count_nodes(net, e, err)))
        return false;
    if (!collective_seconds(net->measured.table, &ask, &answer, &why)) {
        bool unknown = why.code == REC_DATA; /* no series has the kind */
        return rec_fail(err, why.code == REC_NO ? REC_DATA : why.code,
                        "%s of %u ranks over %u node%s: %s", kind, e->n,
                        (uint32_t)ask.nodes, ask.nodes > 1 ? "s" : "",
                        unknown ? "the table has no series of this kind" : why.text);
    }
    if (ask.size > answer.largest)
        return rec_fail(err, REC_DATA,
                        "%s of %u ranks over %u node%s on %s: the table has sizes up to "
                        "%.15g bytes, not %.15g",
                        kind, e->n, (uint32_t)ask.nodes, ask.nodes > 1 ? "s" : "",
                        ask.system, answer.largest, ask.size);
    *seconds = answer.seconds;
    return true;
}

/* Two exchanges of which one is known take equally long if these are equal. */
static bool
is_same(const struct net_exchange *a, const struct net_exchange *b)
{
    return a->kind == b->kind && a->n == b->n && a->bytes == b->bytes &&
           a->flow == b->flow && (a->server == NULL) == (b->server == NULL) &&
           (!a->server || memcmp(a->server, b->server, a->n * sizeof *a->server) == 0);
}

bool
net_alone_measured(const struct net *net, const struct net_exchange *exchange, size_t n,
                   double *seconds, struct rec_error *err)
{
    size_t first = 0; /* of those at hand that no table knows */
    const struct net_exchange *last = NULL;
    double time = 0;
    for (size_t i = 0; i < n; i++) {
        bool is = true;
        if (!last || !is_same(last, &exchange[i])) {
            if (!net_measured(net, &exchange[i], &is, &time, err))
                return false;
            if (!is)
                continue;
            last = &exchange[i];
        }
        if (first < i &&
            !net->kind->alone(net, exchange + first, i - first, seconds + first, err))
            return false;
        seconds[i] = time;
        first = i + 1;
    }
    return first == n ||
           net->kind->alone(net, exchange + first, n - first, seconds + first, err);
}
