/* Links and routes of kinds that have them, the parts of a cluster, and what the records
 * of several kinds have in common. */
#include "health.h"
#include "levels.h"

/* ---- links and routes ------------------------------------------------------ */

uint32_t
net_links(const struct net *net)
{
    return net->routes.links;
}

void
net_link(const struct net *net, uint32_t i, struct net_link *link)
{
    net->kind->link(net, i, link);
}

uint32_t
net_nodes(const struct net *net)
{
    return net->routes.nodes;
}

size_t
net_format_node(const struct net *net, uint32_t node, char name[NET_NODE_MAX])
{
    if (node < net_servers(net))
        return net_format_server(net, node, name);
    net->kind->node_name(net, node, name);
    return strlen(name);
}

/* The words of its name that are no numbers: a rail has leaves of its own. */
void
net_format_level(const struct net *net, uint32_t node, char name[NET_NODE_MAX])
{
    char text[NET_NODE_MAX];
    struct rec_str rest, word;
    size_t len = 0;
    if (node < net_servers(net) || net->kind->server_name) {
        strcpy(name,
               node < net_servers(net) ? net->level[net->nlevels - 1].name : "node");
        return;
    }
    rest = (struct rec_str){text, net_format_node(net, node, text)};
    while (rec_str_split(&rest, ' ', &word)) {
        if (word.len == 0 || (word.ptr[0] >= '0' && word.ptr[0] <= '9'))
            continue;
        if (len)
            name[len++] = ' ';
        memcpy(name + len, word.ptr, word.len);
        len += word.len;
    }
    name[len] = '\0';
}

uint32_t
net_longest_route(const struct net *net)
{
    return net->routes.longest;
}

uint32_t
net_route(const struct net *net, uint32_t from, uint32_t to, uint32_t *link)
{
    return from == to ? 0 : net->kind->route(net, from, to, link);
}

/* ---- parts ----------------------------------------------------------------- */

bool
net_add(struct net *net, const struct rec_reader *reader, const struct rec *rec,
        struct rec_error *err)
{
    if (!rec_need(reader, rec, err))
        return false;
    if (rec->type == REC_SERVER || rec->type == REC_FAULT)
        return health_add(net, reader, rec, err);
    if (net->kind->add)
        return net->kind->add(net, reader, rec, err);
    return rec_reader_fail(reader, err, "a cluster of kind %s has no %s records",
                           net->kind->name, rec->spec->name);
}

bool
net_close(struct net *net, struct rec_error *err)
{
    return (!net->kind->close || net->kind->close(net, err)) && health_close(net, err);
}

bool
net_reading_take(struct net_reading *r, const struct rec_reader *reader,
                 const struct rec *rec, bool *taken, struct rec_error *err)
{
    bool part = rec_is_part(rec, REC_CLUSTER);
    if (taken)
        *taken = part;
    if (!rec_continues(rec, REC_CLUSTER) && !net_reading_end(r, err))
        return false;
    if (!part)
        return true;
    if (rec->type != REC_CLUSTER)
        return r->open ? net_add(r->net, reader, rec, err)
                       : rec_reader_fail(reader, err,
                                         "this %s record is part of no cluster: it must "
                                         "stand behind a cluster record",
                                         rec->spec->name);
    if (r->net)
        return rec_reader_fail(reader, err, "this is the second cluster record");
    r->net = net_read(reader, rec, err);
    r->open = r->net;
    return r->open;
}

bool
net_reading_end(struct net_reading *r, struct rec_error *err)
{
    bool open = r->open;
    r->open = false;
    return !open || net_close(r->net, err);
}

/* ---- fields and keys -------------------------------------------------------- */

uint32_t
net_get_shape(const struct rec_reader *reader, const struct rec *rec, size_t index,
              uint32_t room, uint32_t *count, struct rec_error *err)
{
    struct rec_str rest = rec->field[index], part;
    uint64_t one, all = 1;
    uint32_t n = 0;
    while (n < room && rec_str_split(&rest, 'x', &part)) {
        if (!rec_parse_uint(part, &one) || one < 1 || one > 1u << 24 ||
            (all *= one) > 1u << 24)
            break;
        count[n++] = (uint32_t)one;
        if (!rest.ptr)
            return n;
    }
    rec_reader_fail(reader, err,
                    "%s must be up to %u integers >= 1 joined by 'x', whose product is "
                    "at most %u, got '%.*s'",
                    rec->spec->fields[index - 1].name, room, 1u << 24,
                    REC_SAID(rec->field[index]));
    return 0;
}

bool
net_get_rates(const struct rec_reader *reader, const struct rec *rec, size_t first,
              double *bandwidth, double *latency, double *memory, struct rec_error *err)
{
    if (!rec_get_number(reader, rec, first, bandwidth, err) ||
        !rec_get_number(reader, rec, first + 1, latency, err) ||
        !rec_get_number(reader, rec, first + 2, memory, err))
        return false;
    return *bandwidth > 0 || rec_reader_fail(reader, err, "%s must be > 0, got 0",
                                             rec->spec->fields[first - 1].name);
}

bool
net_key_bandwidth(const struct rec_reader *reader, const struct rec *rec, const char *key,
                  double *bandwidth, struct rec_error *err)
{
    struct rec_str text;
    if (!rec_find_key(rec, key, &text))
        return true;
    if (!rec_key_number(reader, rec, key, bandwidth, err))
        return false;
    return *bandwidth > 0 || rec_reader_fail(reader, err, "%s must be > 0, got 0", key);
}

static const char *const algorithms[] = {
    "direct", "ring", "tree", "halving-doubling", "hierarchical", "in-switch", "torus"};

static bool
has_algorithm(const struct net *net, enum net_algorithm how)
{
    return how == NET_HIERARCHICAL ? net->routes.node > 1
           : how == NET_IN_SWITCH  ? net->routes.in_switch
           : how == NET_TORUS      ? net->kind->by_dimension != NULL
                                   : true;
}

bool
net_key_algorithm(const struct rec_reader *reader, const struct rec *rec, struct net *net,
                  struct rec_error *err)
{
    struct rec_str how;
    char known[120] = "";
    if (!rec_find_key(rec, "algorithm", &how))
        return true;
    for (int i = 0; i < NET_ALGORITHMS; i++) {
        if (!has_algorithm(net, (enum net_algorithm)i))
            continue;
        if (rec_str_is(how, algorithms[i])) {
            net->routes.algorithm = (enum net_algorithm)i;
            return true;
        }
        (void)rec_list_name(known, sizeof known, algorithms[i]);
    }
    return rec_reader_fail(reader, err,
                           "algorithm of this %s must be one of %s, got '%.*s'",
                           net->kind->name, known, REC_SAID(how));
}

const char *
net_algorithm(const struct net *net)
{
    return algorithms[net->routes.algorithm];
}

void
net_write_algorithm(const struct net *net, struct rec_writer *writer)
{
    if (net->routes.algorithm != NET_DIRECT)
        rec_text_key(writer, "algorithm", algorithms[net->routes.algorithm]);
}

bool
net_check_links(const struct rec_reader *reader, double links, double nodes,
                struct rec_error *err)
{
    const double most = 1 << 30;
    return (links <= most && nodes <= most) ||
           rec_reader_fail(reader, err,
                           "a cluster has up to %.0f links and nodes, got %.0f links and "
                           "%.0f nodes",
                           most, links, nodes);
}
