/* Clusters of any kind. The functions of net.h call those of the cluster's kind here, so
 * that no other room needs to know which kinds there are. */
#include "health.h"
#include "levels.h"

#include <stdio.h>
#include <stdlib.h>

/* The kind of that name. NULL: there is none, and `known` (200 bytes) lists all. */
static const struct net_kind *
find_kind(struct rec_str name, char known[200])
{
    known[0] = '\0';
    for (size_t i = 0; net_kinds[i]; i++) {
        if (rec_str_is(name, net_kinds[i]->name))
            return net_kinds[i];
        (void)rec_list_name(known, 200, net_kinds[i]->name);
    }
    return NULL;
}

bool
net_is_kind(struct rec_str name)
{
    char known[200];
    return find_kind(name, known) != NULL;
}

struct net *
net_read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    const struct net_kind *kind;
    char known[200];
    if (!rec_need(reader, rec, err))
        return NULL;
    if ((kind = find_kind(rec->field[1], known))) {
        struct net *net = kind->read(reader, rec, err);
        if (!net || !net->measured.node || net_key_system(reader, rec, net, err))
            return net;
        net_free(net);
        return NULL;
    }
    rec_reader_fail(reader, err, "the kind of a cluster must be one of %s, got '%.*s'",
                    known, REC_SAID(rec->field[1]));
    return NULL;
}

/* Writes the record that a description stands for: KIND, its fields, those that were left
 * out by the kind's defaults, and the keys. The text holds it: ':' and ',' become
 * TABs. */
static bool
write_record(const struct net_kind *kind, struct rec_str list, char *line, size_t room,
             struct rec_error *err)
{
    size_t nfields = 0, len, given = 0;
    const struct rec_spec *spec;
    struct rec_str keys = {NULL, 0}, one;
    for (size_t i = 0; (spec = rec_spec_of_kind(REC_CLUSTER, i)); i++)
        if (strcmp(spec->kind, kind->name) == 0)
            nfields = spec->nfields - 1;
    len = (size_t)snprintf(line, room, "cluster\t%s", kind->name);
    while (list.ptr && list.len && len < room) {
        struct rec_str rest = list;
        if (!rec_str_split(&rest, ',', &one) || memchr(one.ptr, '=', one.len)) {
            keys = list;
            break;
        }
        list = rest;
        given++;
        len += (size_t)snprintf(line + len, room - len, "\t%.*s", (int)one.len, one.ptr);
    }
    for (; given < nfields && len < room; given++) {
        const char *value = kind->defaults ? kind->defaults[given] : NULL;
        if (!value)
            return rec_fail(err, REC_USAGE,
                            "%s needs %zu fields (see rampipe(5), cluster), got %zu",
                            kind->name, nfields, given);
        len += (size_t)snprintf(line + len, room - len, "\t%s", value);
    }
    while (keys.ptr && rec_str_split(&keys, ',', &one) && len < room)
        len += (size_t)snprintf(line + len, room - len, "\t%.*s", (int)one.len, one.ptr);
    if (len < room)
        len += (size_t)snprintf(line + len, room - len, "\n");
    return len < room || rec_fail(err, REC_USAGE, "the text is too long");
}

/* Keys of records that are not known pass through. But a description has none that do
 * nothing, as a taper of an island, or one that is misspelt. */
static bool
check_keys(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    struct rec_str key;
    return !rec_unknown_key(reader, rec, &key) ||
           rec_fail(err, REC_USAGE, "%s has no key '%.*s' (see rampipe(5), cluster)",
                    rec->spec->kind, REC_SAID(key));
}

struct net *
net_parse(const char *text, struct rec_error *err)
{
    const char *colon = strchr(text, ':');
    struct rec_str name = {text, colon ? (size_t)(colon - text) : strlen(text)};
    char known[200], line[1000];
    const struct net_kind *kind = find_kind(name, known);
    struct rec_reader *reader;
    struct net *net = NULL;
    struct rec rec;
    int status;

    if (!kind) {
        rec_fail(err, REC_USAGE, "the kind of a cluster must be one of %s, got '%.*s'",
                 known, REC_SAID(name));
        return NULL;
    }
    if (!write_record(kind, rec_str(colon ? colon + 1 : ""), line, sizeof line, err) ||
        !(reader = rec_reader_open_text(text, rec_str(line), err)))
        return NULL;
    status = rec_next(reader, &rec, err);
    if (status > 0)
        net = net_read(reader, &rec, err);
    if (net && (!check_keys(reader, &rec, err) || !net_close(net, err))) {
        net_free(net);
        net = NULL;
    }
    if (!net && err->code == REC_DATA)
        err->code = REC_USAGE;
    rec_reader_close(reader);
    return net;
}

void
net_write(const struct net *net, struct rec_writer *writer)
{
    rec_begin(writer, "cluster");
    rec_text_field(writer, net->kind->name);
    net->kind->write(net, writer);
    if (net->measured.system[0])
        rec_text_key(writer, "system", net->measured.system);
    rec_end(writer);
    if (net->kind->write_parts)
        net->kind->write_parts(net, writer);
    health_write(net, writer);
}

void
net_free(struct net *net)
{
    health_free(net);
    if (net && net->kind->free)
        net->kind->free(net);
    else
        free(net);
}

struct net *
net_keep(const struct net *net, size_t size, struct rec_error *err)
{
    struct net *kept = malloc(size);
    if (kept)
        memcpy(kept, net, size);
    else
        rec_fail_memory(err);
    return kept;
}

uint32_t
net_servers(const struct net *net)
{
    return net->level[0].servers;
}

double
net_memory(const struct net *net)
{
    return net->memory;
}

void
net_describe(const struct net *net, char text[NET_TEXT_MAX])
{
    net->kind->describe(net, text);
}

bool
net_parse_server(const struct net *net, struct rec_str name, uint32_t *server,
                 struct rec_error *err)
{
    char text[NET_TEXT_MAX];
    if (net->kind->find_server ? net->kind->find_server(net, name, server)
                               : levels_parse(net, name, server))
        return true;
    net_describe(net, text);
    return rec_fail(err, REC_DATA, "there is no server '%.*s' in %s", REC_SAID(name),
                    text);
}

void
net_servers_field(const struct net *net, const uint32_t *server, uint32_t n,
                  struct rec_writer *writer)
{
    char name[NET_NAME_MAX];
    for (uint32_t i = 0; i < n; i++) {
        size_t len = net_format_server(net, server ? server[i] : i, name);
        rec_put_bytes(writer, i ? "," : "\t", 1);
        rec_put_bytes(writer, name, len);
    }
}

size_t
net_levels(const struct net *net, const struct net_level **level)
{
    *level = net->level;
    return net->nlevels;
}

bool
net_has_block(const struct net *net, uint32_t parts)
{
    return net->kind->has_block ? net->kind->has_block(net, parts)
                                : parts >= 1 && parts <= net_servers(net);
}

bool
net_is_legal(const struct net *net, uint32_t parts)
{
    return net->kind->is_legal ? net->kind->is_legal(net, parts)
                               : net_has_block(net, parts);
}

void
net_format_legal_parts(const struct net *net, char *text, size_t room)
{
    uint32_t servers = net_servers(net);
    char range[40];
    text[0] = '\0';
    for (uint32_t k = 1, last; k <= servers; k = last + 1) {
        last = k;
        if (!net_is_legal(net, k))
            continue;
        while (last < servers && net_is_legal(net, last + 1))
            last++;
        if (last <= k + 1)
            snprintf(range, sizeof range, "%u", last = k);
        else
            snprintf(range, sizeof range, "%u to %u", k, last);
        if (!rec_list_name(text, room, range))
            return;
    }
}

bool
net_takes_any(const struct net *net)
{
    return !net->kind->has_block;
}

uint64_t
net_count_blocks(const struct net *net, uint32_t k)
{
    uint32_t servers = net_servers(net);
    if (net->kind->count_blocks)
        return net->kind->count_blocks(net, k);
    return k >= 1 && k <= servers ? servers - k + 1 : 0;
}

void
net_block(const struct net *net, uint32_t k, uint64_t which, uint32_t *server)
{
    if (net->kind->block)
        net->kind->block(net, k, which, server);
    else
        for (uint32_t i = 0; i < k; i++)
            server[i] = (uint32_t)which + i;
}

size_t
net_geometry_numbers(const struct net *net, uint32_t n)
{
    size_t each = net->kind->geometry ? net->kind->numbers : levels_numbers(net);
    return (each + net_has_stragglers(net)) * n;
}

bool
net_geometry(const struct net *net, const uint32_t *server, uint32_t n, uint32_t *numbers,
             struct rec_error *err)
{
    uint32_t *last = numbers + net_geometry_numbers(net, n) - n;
    for (uint32_t i = 0; net_has_stragglers(net) && i < n; i++)
        last[i] = net_pace_class(net, server[i]);
    if (net->kind->geometry)
        return net->kind->geometry(net, server, n, numbers, err);
    return levels_geometry(net, server, n, numbers, err);
}

enum graph_sync
net_sync(const struct net *net)
{
    return net->kind->sync;
}

enum graph_same
net_same(const struct net *net)
{
    return net->kind->uniform ? GRAPH_SAME_BYTES : GRAPH_SAME_SLOTS;
}

bool
net_alone(const struct net *net, const struct net_exchange *exchange, size_t n,
          double *seconds, struct rec_error *err)
{
    if (net->measured.table)
        return net_alone_measured(net, exchange, n, seconds, err);
    return net->kind->alone(net, exchange, n, seconds, err);
}
