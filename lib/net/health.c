/*
 * Stragglers and faults: servers that are slow or late, links that degrade, fail and
 * recover. They are parts of a cluster of any kind.
 *
 *     server  NAME                     speed=F  delay=SECONDS
 *     fault   TIME FROM TO FACTOR      both=1
 *
 * Servers are known when their record comes. Links are known when the cluster is closed:
 * until then a fault is kept as its record says it (`said`).
 */
#include "health.h"

#include <stdlib.h>

/* Pairs of a speed and a delay are numbered as they come. Number 0 is that of healthy
 * servers. */
struct pace {
    double speed, delay;
};

struct said {
    double time, factor;
    const char *from, *to; /* names of nodes */
    const char *file;
    uint64_t line;
    bool both;
};

struct health {
    uint32_t *class; /* per server; NULL: no server record has come */
    bool *has;       /* per server: it has a record */
    struct pace *pace;
    size_t npaces, pace_room;
    struct rec_map paces; /* struct pace -> its number */
    struct said *said;
    size_t nsaid, said_room;
    struct net_fault *fault;
    size_t nfaults, fault_room;
    struct rec_arena arena; /* of texts, and of the keys of `paces` */
};

void
health_free(struct net *net)
{
    struct health *h = net ? net->health : NULL;
    if (!h)
        return;
    free(h->class);
    free(h->has);
    free(h->pace);
    free(h->said);
    free(h->fault);
    rec_map_free(&h->paces);
    rec_arena_free(&h->arena);
    free(h);
    net->health = NULL;
}

/* ---- stragglers ------------------------------------------------------------ */

/* The number of a pair of speed and delay. */
static bool
find_pace(struct health *h, struct pace pace, uint32_t *number, struct rec_error *err)
{
    struct rec_str key = {(const char *)&pace, sizeof pace};
    const char *kept;
    *number = rec_map_get(&h->paces, key);
    if (*number != REC_NONE)
        return true;
    if (!rec_grow(&h->pace, &h->pace_room, h->npaces + 1, sizeof *h->pace, err) ||
        !(kept = rec_arena_copy(&h->arena, key, err)))
        return false;
    *number = (uint32_t)h->npaces;
    h->pace[h->npaces++] = pace;
    return rec_map_add(&h->paces, (struct rec_str){kept, key.len}, *number, err);
}

static bool
open_servers(struct health *h, uint32_t n, struct rec_error *err)
{
    uint32_t number;
    h->class = calloc(n, sizeof *h->class);
    h->has = calloc(n, sizeof *h->has);
    return h->class && h->has ? find_pace(h, (struct pace){1, 0}, &number, err)
                              : rec_fail_memory(err);
}

static bool
add_server(struct net *net, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    struct health *h = net->health;
    struct pace pace = {1, 0};
    struct rec_error why;
    uint32_t server;
    if (!h->has && !open_servers(h, net_servers(net), err))
        return false;
    if (!net_parse_server(net, rec->field[1], &server, &why))
        return rec_reader_fail(reader, err, "%s", why.text);
    if (h->has[server])
        return rec_reader_fail(reader, err, "server '%.*s' has a server record already",
                               (int)rec->field[1].len, rec->field[1].ptr);
    if (!rec_key_number(reader, rec, "speed", &pace.speed, err) ||
        !rec_key_number(reader, rec, "delay", &pace.delay, err))
        return false;
    if (!(pace.speed > 0))
        return rec_reader_fail(reader, err,
                               "speed of server '%.*s' must be > 0 and at most 1, got 0",
                               (int)rec->field[1].len, rec->field[1].ptr);
    if (pace.speed > 1)
        pace.speed = 1; /* by rounding */
    pace.delay += 0.0;  /* -0 is 0 */
    h->has[server] = true;
    return find_pace(h, pace, &h->class[server], err);
}

bool
net_has_stragglers(const struct net *net)
{
    return net->health && net->health->npaces > 1;
}

uint32_t
net_pace_class(const struct net *net, uint32_t server)
{
    return net_has_stragglers(net) ? net->health->class[server] : 0;
}

void
net_pace(const struct net *net, uint32_t server, double *speed, double *delay)
{
    uint32_t number = net_pace_class(net, server);
    struct pace pace = number ? net->health->pace[number] : (struct pace){1, 0};
    *speed = pace.speed;
    *delay = pace.delay;
}

/* ---- faults ---------------------------------------------------------------- */

static bool
add_fault(struct net *net, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct health *h = net->health;
    struct said said = {.line = rec_reader_line(reader)};
    const struct said *last = h->nsaid ? &h->said[h->nsaid - 1] : NULL;
    const char *file = rec_reader_file(reader);
    uint64_t both = 0;
    if (!net->kind->link)
        return rec_reader_fail(reader, err,
                               "a cluster of kind %s has no links, so none can fail",
                               net->kind->name);
    if (!rec_get_number(reader, rec, 1, &said.time, err) ||
        !rec_get_number(reader, rec, 4, &said.factor, err) ||
        !rec_key_count(reader, rec, "both", &both, err))
        return false;
    if (both > 1)
        return rec_reader_fail(reader, err, "both must be 0 or 1, got %llu",
                               (unsigned long long)both);
    if (last && said.time < last->time)
        return rec_reader_fail(reader, err,
                               "faults stand in order of time: %.17g comes after %.17g",
                               said.time, last->time);
    said.both = both;
    said.factor = said.factor > 1 ? 1 : said.factor; /* by rounding */
    said.file = last && strcmp(last->file, file) == 0
                    ? last->file
                    : rec_arena_copy(&h->arena, rec_str(file), err);
    if (!said.file || !(said.from = rec_arena_copy(&h->arena, rec->field[2], err)) ||
        !(said.to = rec_arena_copy(&h->arena, rec->field[3], err)) ||
        !rec_grow(&h->said, &h->said_room, h->nsaid + 1, sizeof *h->said, err))
        return false;
    h->said[h->nsaid++] = said;
    return true;
}

/* The links of the faults, while they are looked for. Fault i has the ends 2 i and
 * 2 i + 1, and the directions 2 i (the link FROM its node, TO the other) and 2 i + 1
 * (back). */
struct search {
    uint32_t *node;     /* per end */
    uint32_t (*way)[2]; /* per direction: the nodes */
    uint32_t *next;     /* per direction: another one with the same nodes; or NONE */
    bool *found;        /* per direction */
};

#define NONE REC_NONE

/* Finds the nodes that the faults name: their names are looked up while those of all
 * nodes pass by. */
static bool
find_nodes(const struct net *net, const struct health *h, uint32_t *node,
           struct rec_error *err)
{
    size_t n = 2 * h->nsaid;
    struct rec_map ends = {NULL, 0, 0}; /* name -> the first end that has it */
    uint32_t *first = malloc(n * sizeof *first);
    bool ok = first || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < n; i++) {
        const struct said *said = &h->said[i / 2];
        struct rec_str name = rec_str(i % 2 ? said->to : said->from);
        node[i] = NONE;
        first[i] = rec_map_get(&ends, name);
        if (first[i] == NONE)
            ok = rec_map_add(&ends, name, first[i] = i, err);
    }
    for (uint32_t i = 0; ok && i < net_nodes(net); i++) {
        char name[NET_NODE_MAX];
        size_t len = net_format_node(net, i, name);
        uint32_t end = rec_map_get(&ends, (struct rec_str){name, len});
        if (end != NONE)
            node[end] = i;
    }
    for (size_t i = 0; ok && i < n; i++)
        node[i] = node[first[i]];
    rec_map_free(&ends);
    free(first);
    return ok;
}

/* Makes the faults of link i, in the order of their records. */
static bool
add_faults(struct health *h, const struct search *s, uint32_t way, uint32_t link,
           struct rec_error *err)
{
    for (; way != NONE; way = s->next[way]) {
        const struct said *said = &h->said[way / 2];
        s->found[way] = true;
        if (!rec_grow(&h->fault, &h->fault_room, h->nfaults + 1, sizeof *h->fault, err))
            return false;
        h->fault[h->nfaults++] =
            (struct net_fault){said->time, said->factor, link, said->file, said->line};
    }
    return true;
}

/* Goes through all links, and makes the faults of those that are named. */
static bool
find_links(const struct net *net, struct health *h, struct search *s,
           struct rec_error *err)
{
    struct rec_map ways = {NULL, 0, 0}; /* two nodes -> the first direction */
    bool ok = true;
    for (uint32_t i = 0; ok && i < 2 * h->nsaid; i++) {
        struct rec_str key = {(const char *)s->way[i], sizeof s->way[i]};
        uint32_t first;
        s->next[i] = NONE;
        s->found[i] = i % 2 && !h->said[i / 2].both;
        if (s->found[i])
            continue;
        s->way[i][0] = s->node[i];
        s->way[i][1] = s->node[i ^ 1];
        first = rec_map_get(&ways, key);
        if (first == NONE)
            ok = rec_map_add(&ways, key, i, err);
        else {
            s->next[i] = s->next[first];
            s->next[first] = i;
        }
    }
    for (uint32_t i = 0; ok && i < net_links(net); i++) {
        struct net_link link;
        uint32_t ends[2];
        net_link(net, i, &link);
        ends[0] = link.from;
        ends[1] = link.to;
        ok = add_faults(
            h, s, rec_map_get(&ways, (struct rec_str){(const char *)ends, sizeof ends}),
            i, err);
    }
    rec_map_free(&ways);
    return ok;
}

static int
by_time(const void *a, const void *b)
{
    const struct net_fault *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->link != y->link)
        return x->link < y->link ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void
name_link(const struct net *net, uint32_t i, char from[NET_NODE_MAX],
          char to[NET_NODE_MAX])
{
    struct net_link link;
    net_link(net, i, &link);
    net_format_node(net, link.from, from);
    net_format_node(net, link.to, to);
}

static bool
check_faults(const struct net *net, const struct health *h, const struct search *s,
             struct rec_error *err)
{
    char from[NET_NODE_MAX], to[NET_NODE_MAX];
    for (size_t i = 0; i < 2 * h->nsaid; i++) {
        const struct said *said = &h->said[i / 2];
        if (s->found[i])
            continue;
        if (net_links(net) == 0)
            return rec_fail_at(err, said->file, said->line, "this cluster has no links");
        name_link(net, 0, from, to);
        return rec_fail_at(err, said->file, said->line,
                           "there is no link from '%.60s' to '%.60s'; one of this "
                           "cluster leads from '%s' to '%s'",
                           i % 2 ? said->to : said->from, i % 2 ? said->from : said->to,
                           from, to);
    }
    for (size_t i = 1; i < h->nfaults; i++) {
        const struct net_fault *f = &h->fault[i];
        if (f->time != f[-1].time || f->link != f[-1].link)
            continue;
        name_link(net, f->link, from, to);
        return rec_fail_at(err, f->file, f->line,
                           "the link from '%s' to '%s' changes twice at %.17g", from, to,
                           f->time);
    }
    return true;
}

bool
health_close(struct net *net, struct rec_error *err)
{
    struct health *h = net->health;
    struct search s = {.node = NULL};
    size_t n = h ? 2 * h->nsaid : 0;
    bool ok;
    if (n == 0 || h->fault) /* closed already */
        return true;
    s.node = malloc(n * sizeof *s.node);
    s.way = calloc(n, sizeof *s.way);
    s.next = malloc(n * sizeof *s.next);
    s.found = malloc(n * sizeof *s.found);
    ok = (s.node && s.way && s.next && s.found) || rec_fail_memory(err);
    ok = ok && find_nodes(net, h, s.node, err) && find_links(net, h, &s, err);
    if (ok && h->nfaults)
        qsort(h->fault, h->nfaults, sizeof *h->fault, by_time);
    ok = ok && check_faults(net, h, &s, err);
    free(s.node);
    free(s.way);
    free(s.next);
    free(s.found);
    return ok;
}

size_t
net_faults(const struct net *net, const struct net_fault **fault)
{
    *fault = net->health ? net->health->fault : NULL;
    return net->health ? net->health->nfaults : 0;
}

/* ---- both ------------------------------------------------------------------ */

bool
health_add(struct net *net, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    if (!net->health && !(net->health = calloc(1, sizeof *net->health)))
        return rec_fail_memory(err);
    return rec->type == REC_SERVER ? add_server(net, reader, rec, err)
                                   : add_fault(net, reader, rec, err);
}

void
health_write(const struct net *net, struct rec_writer *writer)
{
    const struct health *h = net->health;
    for (uint32_t i = 0; net_has_stragglers(net) && i < net_servers(net); i++) {
        struct pace pace = h->pace[h->class[i]];
        if (h->class[i] == 0)
            continue;
        rec_begin(writer, "server");
        net_servers_field(net, &i, 1, writer);
        if (pace.speed < 1)
            rec_num_key(writer, "speed", pace.speed);
        if (pace.delay > 0)
            rec_num_key(writer, "delay", pace.delay);
        rec_end(writer);
    }
    for (size_t i = 0; h && i < h->nsaid; i++) {
        const struct said *said = &h->said[i];
        rec_begin(writer, "fault");
        rec_num_field(writer, said->time);
        rec_text_field(writer, said->from);
        rec_text_field(writer, said->to);
        rec_num_field(writer, said->factor);
        if (said->both)
            rec_uint_key(writer, "both", 1);
        rec_end(writer);
    }
}
