/* RAMP, a kind of cluster: its record, the names of its servers, and their geometry. The
 * server c-r-s has the index (c * R + r) * S + s. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

bool
net_parse_shape(const char *text, uint32_t shape[3], struct rec_error *err)
{
    struct rec_str rest = rec_str(text), part;
    uint64_t n, all = 1;
    bool ok = true;
    for (int i = 0; ok && i < 3; i++) {
        ok = rec_str_split(&rest, 'x', &part) && rec_parse_uint(part, &n) && n >= 1 &&
             n <= 1u << 20 && (all *= n) <= 1u << 24;
        shape[i] = ok ? (uint32_t)n : 0;
    }
    return (ok && !rest.ptr) ||
           rec_fail(err, REC_USAGE,
                    "must be CxRxS, three integers >= 1 whose product is at most %u, "
                    "got '%s'",
                    1u << 24, text);
}

static bool
check(const struct net_cluster *cluster, struct rec_error *err)
{
    const uint32_t *n = cluster->shape;
    if (n[1] > n[0])
        return rec_fail(err, REC_DATA,
                        "a RAMP has at most as many racks as communication groups "
                        "(R <= C), got %ux%ux%u",
                        n[0], n[1], n[2]);
    if (cluster->bandwidth <= 0)
        return rec_fail(err, REC_DATA, "the bandwidth of a node must be > 0");
    return true;
}

static uint32_t
servers(const struct net_cluster *cluster)
{
    return cluster->shape[0] * cluster->shape[1] * cluster->shape[2];
}

static size_t
format(const struct net_cluster *cluster, uint32_t server, char name[NET_NAME_MAX])
{
    uint32_t s = server % cluster->shape[2], rack = server / cluster->shape[2];
    return (size_t)snprintf(name, NET_NAME_MAX, "%u-%u-%u", rack / cluster->shape[1],
                            rack % cluster->shape[1], s);
}

static bool
parse(const struct net_cluster *cluster, struct rec_str name, uint32_t *server)
{
    struct rec_str part;
    uint64_t n;
    uint32_t index = 0;
    for (int i = 0; i < 3; i++) {
        if (!rec_str_split(&name, '-', &part) || !rec_parse_uint(part, &n) ||
            n >= cluster->shape[i])
            return false;
        index = index * cluster->shape[i] + (uint32_t)n;
    }
    *server = index;
    return !name.ptr;
}

static bool
read_rates(struct net_cluster *cluster, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    static const char *const names[] = {"published", "node", NULL};
    struct rec_str rate;
    if (!rec_get_number(reader, rec, 5, &cluster->bandwidth, err) ||
        !rec_get_number(reader, rec, 6, &cluster->memory, err) ||
        !rec_key_number(reader, rec, "propagation", &cluster->propagation, err) ||
        !rec_key_number(reader, rec, "io", &cluster->io, err))
        return false;
    if (!rec_find_key(rec, "collective_rate", &rate))
        return true;
    for (int i = 0; names[i]; i++)
        if (rec_str_is(rate, names[i])) {
            cluster->collective_rate = (enum net_collective_rate)i;
            return true;
        }
    return rec_reader_fail(reader, err,
                           "collective_rate must be published or node, got '%.*s'",
                           (int)(rate.len < 60 ? rate.len : 60), rate.ptr);
}

static bool
read(struct net_cluster *cluster, const struct rec_reader *reader, const struct rec *rec,
     struct rec_error *err)
{
    uint64_t n, all = 1;
    cluster->propagation = NET_RAMP_PROPAGATION;
    cluster->io = NET_RAMP_IO;
    for (size_t i = 0; i < 3; i++) {
        if (!rec_get_count(reader, rec, 2 + i, &n, err))
            return false;
        if (n < 1 || n > 1u << 20 || (all *= n) > 1u << 24)
            return rec_reader_fail(
                reader, err, "a cluster has from 1 to %u servers, got %llu as %s",
                1u << 24, (unsigned long long)n, rec->spec->fields[1 + i].name);
        cluster->shape[i] = (uint32_t)n;
    }
    return read_rates(cluster, reader, rec, err);
}

static void
write(const struct net_cluster *cluster, struct rec_writer *writer)
{
    for (int i = 0; i < 3; i++)
        rec_uint_field(writer, cluster->shape[i]);
    rec_num_field(writer, cluster->bandwidth);
    rec_num_field(writer, cluster->memory);
    rec_num_key(writer, "propagation", cluster->propagation);
    rec_num_key(writer, "io", cluster->io);
    if (cluster->collective_rate == NET_COLLECTIVE_NODE)
        rec_text_key(writer, "collective_rate", "node");
}

/*
 * Two lists of servers cost the same if one becomes the other by renaming communication
 * groups, racks and positions: the time of a transfer depends only on how many of each it
 * touches. So in the geometry the values of each coordinate are numbered in the order in
 * which they first appear.
 */
static bool
geometry(const struct net_cluster *cluster, const uint32_t *server, uint32_t n,
         uint32_t *numbers, struct rec_error *err)
{
    const uint32_t *shape = cluster->shape;
    uint32_t *name[3], next[3] = {0};
    bool ok = true;
    for (int d = 0; d < 3; d++)
        ok = (name[d] = calloc(shape[d], sizeof *name[d])) && ok;
    for (uint32_t i = 0; ok && i < n; i++) {
        uint32_t rack = server[i] / shape[2];
        uint32_t at[3] = {rack / shape[1], rack % shape[1], server[i] % shape[2]};
        for (int d = 0; d < 3; d++) {
            if (!name[d][at[d]])
                name[d][at[d]] = ++next[d];
            numbers[3 * i + (uint32_t)d] = name[d][at[d]];
        }
    }
    for (int d = 0; d < 3; d++)
        free(name[d]);
    return ok || rec_fail_memory(err);
}

const struct net_kind net_ramp = {
    "ramp", check, servers, format,   parse,
    read,   write, 3,       geometry, net_ramp_transfer_times};
