/*
 * A kind of cluster that the suite does not have: P pods of N servers. It shows, and
 * kind.bats tests, that one file adds a kind to all tools: this one is linked into them
 * before the library.
 *
 *     cluster pods P N BANDWIDTH LATENCY MEMORY taper=T
 *
 * A server is p.n. A message of S bytes takes LATENCY + S / BANDWIDTH in a pod; from pod
 * to pod it takes the latency twice, and has 1 / T of the bandwidth.
 */
#include "rampipe/net_kind.h"

#include <stdio.h>

struct pods {
    struct net net; /* the first member of every cluster */
    uint32_t n[2];  /* pods, servers of a pod */
    double bandwidth, latency, taper;
};

static const struct net_kind net_pods;
#define PODS(net) ((const struct pods *)(net))

static struct net *
read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    static const char *const names[] = {"cluster", "pod", "server"};
    struct pods p = {.net.kind = &net_pods, .taper = 1};
    if (!net_get_counts(reader, rec, 2, 2, p.n, err) ||
        !rec_get_number(reader, rec, 4, &p.bandwidth, err) ||
        !rec_get_number(reader, rec, 5, &p.latency, err) ||
        !rec_get_number(reader, rec, 6, &p.net.memory, err) ||
        !rec_key_number(reader, rec, "taper", &p.taper, err))
        return NULL;
    net_set_levels(&p.net, 2, names, p.n);
    return net_keep(&p.net, sizeof p, err);
}

static void
write(const struct net *net, struct rec_writer *writer)
{
    rec_uint_field(writer, PODS(net)->n[0]);
    rec_uint_field(writer, PODS(net)->n[1]);
    rec_num_field(writer, PODS(net)->bandwidth);
    rec_num_field(writer, PODS(net)->latency);
    rec_num_field(writer, net->memory);
    rec_num_key(writer, "taper", PODS(net)->taper);
}

static void
describe(const struct net *net, char text[NET_TEXT_MAX])
{
    snprintf(text, NET_TEXT_MAX, "%u pods of %u", PODS(net)->n[0], PODS(net)->n[1]);
}

static bool
alone(const struct net *net, const struct net_exchange *e, size_t n, double *seconds,
      struct rec_error *err)
{
    (void)err;
    for (; n > 0; n--, e++, seconds++) {
        bool far = false, message = e->kind == GRAPH_MESSAGE || e->kind == GRAPH_SEND;
        double bytes = message ? e->bytes : e->flow / e->n;
        for (uint32_t i = 1; e->server && i < e->n; i++)
            far = far || e->server[i] / PODS(net)->n[1] != e->server[0] / PODS(net)->n[1];
        if (!e->server && e->kind == GRAPH_COLLECTIVE) /* others may take part */
            bytes = e->flow / net_servers(net);
        *seconds = (message ? 1 : e->n - 1.0) * (far ? 2 : 1) * PODS(net)->latency +
                   bytes * (far ? PODS(net)->taper : 1) / PODS(net)->bandwidth;
    }
    return true;
}

static const struct net_kind net_pods = {.name = "pods",
                                         .mark = '.',
                                         .read = read,
                                         .write = write,
                                         .describe = describe,
                                         .sync = GRAPH_SYNC_BY_UNIT,
                                         .alone = alone};

/* The tables, with the kind and its record behind those of the suite. */
const struct net_kind *const net_kinds[] = {NET_KINDS, &net_pods, NULL};

static const struct rec_spec record = {
    .kind = "pods",
    .about = "P pods of N servers.",
    .example = "cluster\tpods\t2\t2\t1\t1\t1",
    .type = REC_CLUSTER,
    .whole = REC_OTHER,
    .nfields = 6,
    .fields =
        (const struct rec_field_spec[]){
            {"KIND", REC_KIND_ID, "pods"},
            {"P", REC_KIND_COUNT, "pods"},
            {"N", REC_KIND_COUNT, "servers of a pod"},
            {"BANDWIDTH", REC_KIND_AMOUNT, "of a server, bytes/s"},
            {"LATENCY", REC_KIND_AMOUNT, "of a message in a pod, seconds"},
            {"MEMORY", REC_KIND_LIMIT, "of a server, bytes"},
            {0}},
    .keys = (const struct rec_field_spec[]){
        {"taper", REC_KIND_AMOUNT, "bandwidth in a pod over that between pods"}, {0}}};
const struct rec_spec *const rec_more_kinds[] = {&record, NULL};
