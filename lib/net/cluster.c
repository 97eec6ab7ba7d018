/* The cluster's record and the names of its servers. */
#include "rampipe/net.h"

#include <stdio.h>

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

bool
net_check(const struct net_cluster *cluster, struct rec_error *err)
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

uint32_t
net_servers(const struct net_cluster *cluster)
{
    return cluster->shape[0] * cluster->shape[1] * cluster->shape[2];
}

size_t
net_format_server(const struct net_cluster *cluster, uint32_t server,
                  char name[NET_NAME_MAX])
{
    uint32_t s = server % cluster->shape[2], rack = server / cluster->shape[2];
    return (size_t)snprintf(name, NET_NAME_MAX, "%u-%u-%u", rack / cluster->shape[1],
                            rack % cluster->shape[1], s);
}

bool
net_parse_server(const struct net_cluster *cluster, struct rec_str name, uint32_t *server)
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

bool
net_read(const struct rec_reader *reader, const struct rec *rec,
         struct net_cluster *cluster, struct rec_error *err)
{
    struct rec_error inner;
    uint64_t n, all = 1;

    if (!rec_need(reader, rec, err))
        return false;
    if (!rec_str_is(rec->field[1], "ramp"))
        return rec_reader_fail(reader, err,
                               "a cluster of kind '%.*s' is not known here, only ramp",
                               (int)rec->field[1].len, rec->field[1].ptr);
    for (size_t i = 0; i < 3; i++) {
        if (!rec_get_count(reader, rec, 2 + i, &n, err))
            return false;
        if (n < 1 || n > 1u << 20 || (all *= n) > 1u << 24)
            return rec_reader_fail(
                reader, err, "a cluster has from 1 to %u servers, got %llu as %s",
                1u << 24, (unsigned long long)n, rec_spec_of(rec)->fields[1 + i].name);
        cluster->shape[i] = (uint32_t)n;
    }
    cluster->propagation = NET_RAMP_PROPAGATION;
    cluster->io = NET_RAMP_IO;
    if (!rec_get_number(reader, rec, 5, &cluster->bandwidth, err) ||
        !rec_get_number(reader, rec, 6, &cluster->memory, err) ||
        !rec_key_number(reader, rec, "propagation", &cluster->propagation, err) ||
        !rec_key_number(reader, rec, "io", &cluster->io, err))
        return false;
    return net_check(cluster, &inner) || rec_reader_fail(reader, err, "%s", inner.text);
}

void
net_write(const struct net_cluster *cluster, struct rec_writer *writer)
{
    rec_begin(writer, "cluster");
    rec_text_field(writer, "ramp");
    for (int i = 0; i < 3; i++)
        rec_uint_field(writer, cluster->shape[i]);
    rec_num_field(writer, cluster->bandwidth);
    rec_num_field(writer, cluster->memory);
    rec_num_key(writer, "propagation", cluster->propagation);
    rec_num_key(writer, "io", cluster->io);
    rec_end(writer);
}
