/*
 * An island: N servers behind one switch that never blocks, as the GPUs of a node that
 * are joined by NVSwitch. Each server has a link of BANDWIDTH into it and one out of it.
 *
 *     cluster island N BANDWIDTH LATENCY MEMORY
 *
 * The time of an exchange alone follows from what each server sends and receives. A
 * message of S bytes takes LATENCY + S / BANDWIDTH. In a group of n servers each sends to
 * each other one, round after round: n - 1 rounds of LATENCY, and F bytes that cross in
 * all, n servers at BANDWIDTH each. For the sync deps of an op, of S bytes each, that is
 * a direct all-reduce: (n - 1) (LATENCY + S / BANDWIDTH). With algorithm=ring it is one
 * of a ring, which sends less: 2 (n - 1) (LATENCY + S / (n BANDWIDTH)) (Patarasuk and
 * Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).
 */
#include "rampipe/net_kind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct island {
    struct net net;
    uint32_t servers;
    double bandwidth; /* of a server, in each direction, bytes/s */
    double latency;   /* of a message, seconds */
    bool ring;        /* sync deps are an all-reduce on a ring */
};

static const struct island *
of(const struct net *net)
{
    return (const struct island *)net;
}

static bool
read_keys(struct island *island, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct rec_str how;
    if (!rec_find_key(rec, "algorithm", &how))
        return true;
    island->ring = rec_str_is(how, "ring");
    return island->ring || rec_str_is(how, "direct") ||
           rec_reader_fail(reader, err, "algorithm must be ring or direct, got '%.*s'",
                           (int)(how.len < 60 ? how.len : 60), how.ptr);
}

static struct net *
read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    static const char *const names[] = {"island", "server"};
    struct island i = {.net.kind = &net_island};
    if (!net_get_counts(reader, rec, 2, 1, &i.servers, err) ||
        !rec_get_number(reader, rec, 3, &i.bandwidth, err) ||
        !rec_get_number(reader, rec, 4, &i.latency, err) ||
        !rec_get_number(reader, rec, 5, &i.net.memory, err) ||
        !read_keys(&i, reader, rec, err))
        return NULL;
    if (!(i.bandwidth > 0)) {
        rec_reader_fail(reader, err, "the bandwidth of a server must be > 0");
        return NULL;
    }
    net_set_levels(&i.net, 1, names, &i.servers);
    return net_keep(&i.net, sizeof i, err);
}

static void
write(const struct net *net, struct rec_writer *writer)
{
    rec_uint_field(writer, of(net)->servers);
    rec_num_field(writer, of(net)->bandwidth);
    rec_num_field(writer, of(net)->latency);
    rec_num_field(writer, net->memory);
    if (of(net)->ring)
        rec_text_key(writer, "algorithm", "ring");
}

static void
describe(const struct net *net, char text[NET_TEXT_MAX])
{
    snprintf(text, NET_TEXT_MAX, "an island of %u server%s", of(net)->servers,
             of(net)->servers == 1 ? "" : "s");
}

static double
one_alone(const struct net *net, const struct net_exchange *e)
{
    const struct island *island = of(net);
    double n = e->n, rounds = n - 1, each = e->flow / n; /* bytes that a server sends */
    if (e->kind == GRAPH_MESSAGE)
        return island->latency + e->bytes / island->bandwidth;
    if (e->n < 2)
        return 0;
    /* Without servers this is a lower bound: more servers than these may take part in a
     * collective, as those of other ops. */
    if (!e->server && e->kind == GRAPH_COLLECTIVE)
        each = e->flow / island->servers;
    if (island->ring && e->kind == GRAPH_SYNC_ALL) {
        each = 2 * each / n; /* each / (n - 1) is S */
        rounds = 2 * (n - 1);
    }
    return rounds * island->latency + each / island->bandwidth;
}

static void
alone(const struct net *net, const struct net_exchange *exchange, size_t n,
      double *seconds)
{
    for (size_t i = 0; i < n; i++)
        seconds[i] = one_alone(net, &exchange[i]);
}

const struct net_kind net_island = {.name = "island",
                                    .mark = '.',
                                    .read = read,
                                    .write = write,
                                    .describe = describe,
                                    .sync = GRAPH_SYNC_BY_UNIT,
                                    .alone = alone};
