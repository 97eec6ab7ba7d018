/* Clusters of any kind. The functions of net.h call those of the cluster's kind here, so
 * that layouts, replay and the simulators need not know which kinds there are. */
#include "rampipe/net.h"

#include <stdio.h>

const struct net_kind *const net_kinds[] = {&net_ramp, NULL};

bool
net_check(const struct net_cluster *cluster, struct rec_error *err)
{
    if (!(cluster->bandwidth > 0))
        return rec_fail(err, REC_DATA, "the bandwidth of a node must be > 0");
    return cluster->kind->check(cluster, err);
}

uint32_t
net_servers(const struct net_cluster *cluster)
{
    return cluster->kind->servers(cluster);
}

size_t
net_format_server(const struct net_cluster *cluster, uint32_t server,
                  char name[NET_NAME_MAX])
{
    return cluster->kind->format(cluster, server, name);
}

bool
net_parse_server(const struct net_cluster *cluster, struct rec_str name, uint32_t *server)
{
    return cluster->kind->parse(cluster, name, server);
}

bool
net_read(const struct rec_reader *reader, const struct rec *rec,
         struct net_cluster *cluster, struct rec_error *err)
{
    struct rec_error inner;
    char known[200] = "";

    if (!rec_need(reader, rec, err))
        return false;
    *cluster = (struct net_cluster){.kind = NULL};
    for (size_t i = 0; net_kinds[i]; i++) {
        if (rec_str_is(rec->field[1], net_kinds[i]->name))
            cluster->kind = net_kinds[i];
        rec_list_name(known, sizeof known, net_kinds[i]->name);
    }
    if (!cluster->kind)
        return rec_reader_fail(
            reader, err, "the kind of a cluster must be one of %s, got '%.*s'", known,
            (int)(rec->field[1].len < 60 ? rec->field[1].len : 60), rec->field[1].ptr);
    /* net_check() knows no record; its error gets the file and line here. */
    return cluster->kind->read(cluster, reader, rec, err) &&
           (net_check(cluster, &inner) || rec_reader_fail(reader, err, "%s", inner.text));
}

void
net_write(const struct net_cluster *cluster, struct rec_writer *writer)
{
    rec_begin(writer, "cluster");
    rec_text_field(writer, cluster->kind->name);
    cluster->kind->write(cluster, writer);
    rec_end(writer);
}

void
net_servers_field(const struct net_cluster *cluster, const uint32_t *server, uint32_t n,
                  struct rec_writer *writer)
{
    char name[NET_NAME_MAX];
    for (uint32_t i = 0; i < n; i++) {
        size_t len = net_format_server(cluster, server ? server[i] : i, name);
        rec_put_bytes(writer, i ? "," : "\t", 1);
        rec_put_bytes(writer, name, len);
    }
}

size_t
net_geometry_numbers(const struct net_cluster *cluster, uint32_t n)
{
    return (size_t)cluster->kind->numbers * n;
}

bool
net_geometry(const struct net_cluster *cluster, const uint32_t *server, uint32_t n,
             uint32_t *numbers, struct rec_error *err)
{
    return cluster->kind->geometry(cluster, server, n, numbers, err);
}

bool
net_transfer_times(const struct net_cluster *cluster, const struct graph *graph,
                   const uint32_t *server_of_op, double *seconds,
                   struct net_traffic *traffic, struct rec_error *err)
{
    return cluster->kind->transfer_times(cluster, graph, server_of_op, seconds, traffic,
                                         err);
}
