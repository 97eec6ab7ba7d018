/*
 * A courier whose batches share the links of the network max-min fairly (lib/flow).
 *
 *     batch     the deps of an exchange that leave an op together
 *     piece     what a batch sends to one server: it waits for the latency of its route,
 *               then it is a flow over the links of the route
 *     carrier   the pieces of the jobs of one company, and the links that they share
 *
 * A batch arrives when all its pieces have. So an exchange is sent as its deps say, from
 * each server to each other one.
 */
#include "rampipe/flow.h"

#include "private.h"

#include <math.h>
#include <stdlib.h>

/* ---- carriers ---------------------------------------------------------------- */

struct piece {
    uint32_t sent;     /* index of its batch; NONE: it is free */
    uint32_t from, to; /* servers */
    uint32_t flow;     /* NONE: it waits for its latency */
    double bytes;      /* that are left, while it waits */
    uint32_t version;  /* counts its uses: the start of an older one is void */
    uint32_t next;     /* free piece */
};

/* A batch on its way. */
struct sent {
    uint64_t token;
    uint32_t pieces; /* that have not arrived */
    uint32_t next;   /* free batch */
};

struct carrier {
    const struct net *net; /* NULL: no member has come */
    struct flow_links *links;
    uint32_t *route;           /* room for one */
    struct event_queue starts; /* of pieces; key: version, piece (32 bits each) */
    struct piece *piece;
    struct sent *sent;
    size_t npieces, piece_room, nsent, sent_room;
    uint32_t free_piece, free_sent; /* NONE: none is free */
    struct sim_member *member;
    size_t nmembers, member_room;
    /* Of the batch that leaves: bytes to each slot, and the slots that get some. */
    double *bytes;
    uint32_t *slot;
    size_t bytes_room, slot_room;
    /* While events happen: who is told of arrivals. */
    sim_arrived *arrived;
    void *context;
};

static uint32_t
take_piece(struct carrier *c, struct rec_error *err)
{
    uint32_t i = c->free_piece;
    if (i != NONE) {
        c->free_piece = c->piece[i].next;
        return i;
    }
    if (!rec_grow(&c->piece, &c->piece_room, c->npieces + 1, sizeof *c->piece, err))
        return NONE;
    c->piece[c->npieces].version = 0;
    return (uint32_t)c->npieces++;
}

static void
free_piece(struct carrier *c, uint32_t i)
{
    c->piece[i].version++;
    c->piece[i].sent = NONE;
    c->piece[i].next = c->free_piece;
    c->free_piece = i;
}

static uint32_t
take_sent(struct carrier *c, uint64_t token, struct rec_error *err)
{
    uint32_t i = c->free_sent;
    if (i != NONE)
        c->free_sent = c->sent[i].next;
    else if (rec_grow(&c->sent, &c->sent_room, c->nsent + 1, sizeof *c->sent, err))
        i = (uint32_t)c->nsent++;
    if (i != NONE)
        c->sent[i] = (struct sent){token, 0, NONE};
    return i;
}

static const struct sim_member *
member_of(const struct carrier *c, uint64_t token)
{
    const struct sim_member *member = c->member;
    while (member->number != token >> 32)
        member++;
    return member;
}

/* ---- pieces ------------------------------------------------------------------ */

static bool
start_piece(struct carrier *c, uint32_t i, double time, struct rec_error *err)
{
    struct piece *piece = &c->piece[i];
    struct flow_spec spec = {.id = i, .bytes = piece->bytes, .weight = 1};
    spec.n = net_route(c->net, piece->from, piece->to, c->route);
    spec.link = c->route;
    return flow_start(c->links, time, &spec, &piece->flow, err);
}

static double
latency_of(const struct carrier *c, uint32_t from, uint32_t to)
{
    uint32_t n = net_route(c->net, from, to, c->route);
    struct net_link link;
    double seconds = 0;
    for (uint32_t i = 0; i < n; i++) {
        net_link(c->net, c->route[i], &link);
        seconds += link.latency;
    }
    return seconds;
}

/* A batch sends `bytes` from one server to another; the flow starts at `start`, which is
 * not before `now`. */
static bool
add_piece(struct carrier *c, uint32_t sent, const struct piece *like, double now,
          double start, struct rec_error *err)
{
    uint32_t i = take_piece(c, err), version;
    if (i == NONE)
        return false;
    version = c->piece[i].version;
    c->piece[i] = *like;
    c->piece[i].sent = sent;
    c->piece[i].flow = NONE;
    c->piece[i].version = version;
    c->sent[sent].pieces++;
    return start > now
               ? event_queue_push(
                     &c->starts, (struct event_entry){start, (uint64_t)version << 32 | i},
                     err)
               : start_piece(c, i, now, err);
}

/* ---- a batch leaves ------------------------------------------------------------ */

/* Sums the bytes that an op sends to each slot but its own in an exchange, bytes[slot],
 * and lists these slots. */
static bool
list_slots(struct carrier *c, const struct sim_layout *layout, uint32_t op,
           uint32_t exchange, uint32_t *n, struct rec_error *err)
{
    const struct graph *graph = layout->where.graph;
    const uint32_t *slot = layout->where.slot;
    uint32_t nout = graph->out_start[op + 1] - graph->out_start[op];
    size_t room = c->bytes_room;
    *n = 0;
    if (!rec_grow(&c->bytes, &c->bytes_room, layout->where.nslots, sizeof *c->bytes,
                  err) ||
        !rec_grow(&c->slot, &c->slot_room, nout + 1, sizeof *c->slot, err))
        return false;
    for (; room < c->bytes_room; room++)
        c->bytes[room] = 0;
    for (uint32_t i = graph->out_start[op]; i < graph->out_start[op + 1]; i++) {
        const struct graph_dep *dep = &graph->dep[graph->out[i]];
        uint32_t to = slot[dep->dst];
        if (layout->exchanges.of_dep[graph->out[i]] != exchange || to == slot[op])
            continue;
        if (c->bytes[to] == 0)
            c->slot[(*n)++] = to;
        c->bytes[to] += dep->bytes;
    }
    return true;
}

/* Only what each part sends to each other one can be sent so. */
static bool
check_direct(const struct carrier *c, const struct sim_layout *layout, uint32_t exchange,
             struct rec_error *err)
{
    const char *algorithm = net_algorithm(c->net);
    return layout->exchanges.exchange[exchange].kind != GRAPH_SYNC_ALL ||
           strcmp(algorithm, "direct") == 0 ||
           rec_fail(err, REC_DATA,
                    "with contention sync deps are sent directly, but the cluster has "
                    "algorithm=%s",
                    algorithm);
}

static bool
send(void *self, uint64_t batch, uint32_t dep, uint32_t exchange, double time,
     struct rec_error *err)
{
    struct carrier *c = self;
    const struct sim_member *member = member_of(c, batch);
    const struct sim_layout *layout = member->layout;
    uint32_t op = layout->where.graph->dep[dep].src, n = 0, sent;
    uint32_t from = member->servers[layout->where.slot[op]];
    bool ok = check_direct(c, layout, exchange, err) &&
              list_slots(c, layout, op, exchange, &n, err) &&
              (sent = take_sent(c, batch, err)) != NONE;
    for (uint32_t i = 0; ok && i < n; i++) {
        struct piece piece = {.from = from,
                              .to = member->servers[c->slot[i]],
                              .bytes = c->bytes[c->slot[i]]};
        ok = add_piece(c, sent, &piece, time, time + latency_of(c, from, piece.to), err);
    }
    for (uint32_t i = 0; i < n; i++)
        c->bytes[c->slot[i]] = 0;
    return ok;
}

/* ---- events -------------------------------------------------------------------- */

static double
next(void *self)
{
    const struct carrier *c = self;
    double start = c->starts.n ? c->starts.event[0].time : INFINITY;
    return c->links ? fmin(start, flow_next(c->links)) : start;
}

static void
end_piece(void *context, uint64_t id, double time)
{
    struct carrier *c = context;
    struct sent *sent = &c->sent[c->piece[id].sent];
    (void)time;
    if (--sent->pieces == 0) {
        sent->next = c->free_sent;
        c->free_sent = c->piece[id].sent;
        c->arrived(c->context, sent->token);
    }
    free_piece(c, (uint32_t)id);
}

static bool
advance(void *self, double time, sim_arrived *arrived, void *context,
        struct rec_error *err)
{
    struct carrier *c = self;
    c->arrived = arrived;
    c->context = context;
    if (!flow_advance(c->links, time, end_piece, c, err))
        return false;
    while (c->starts.n && c->starts.event[0].time <= time) {
        struct event_entry start = event_queue_pop(&c->starts);
        uint32_t i = (uint32_t)start.key;
        if (c->piece[i].version == start.key >> 32 && !start_piece(c, i, time, err))
            return false;
    }
    return true;
}

static const struct sim_courier courier = {"flows", sim_key_by_exchange, send, next,
                                           advance};

/* ---- companies ------------------------------------------------------------------ */

/* The links that the jobs on a list of servers may use. */
struct used {
    uint32_t *link; /* in order */
    uint32_t n;
};

struct sim_flows {
    struct rec_map index; /* servers -> used[] */
    struct rec_arena arena;
    struct used *used;
    size_t nused, room, bytes;
};

enum { USED_MAX = 64 << 20 }; /* bytes of the lists that are kept */

struct sim_flows *
sim_flows_new(struct rec_error *err)
{
    struct sim_flows *flows = calloc(1, sizeof *flows);
    if (!flows)
        rec_fail_memory(err);
    return flows;
}

static void
forget_used(struct sim_flows *flows)
{
    for (size_t i = 0; i < flows->nused; i++)
        free(flows->used[i].link);
    rec_map_free(&flows->index);
    rec_arena_free(&flows->arena);
    flows->nused = flows->bytes = 0;
}

void
sim_flows_free(struct sim_flows *flows)
{
    if (!flows)
        return;
    forget_used(flows);
    free(flows->used);
    free(flows);
}

/* Marks the links of all routes among the servers of a member. */
static bool
mark_links(const struct sim_member *member, bool *is_used)
{
    const struct net *net = member->net;
    uint32_t n = member->layout->where.nslots;
    uint32_t *route = malloc(((size_t)net_longest_route(net) + 1) * sizeof *route);
    if (!route)
        return false;
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            uint32_t hops =
                a == b ? 0
                       : net_route(net, member->servers[a], member->servers[b], route);
            for (uint32_t i = 0; i < hops; i++)
                is_used[route[i]] = true;
        }
    free(route);
    return true;
}

static bool
list_used(const struct sim_member *member, struct used *used)
{
    uint32_t nlinks = net_links(member->net);
    bool *is_used = calloc((size_t)nlinks + 1, sizeof *is_used);
    bool ok = is_used && mark_links(member, is_used);
    *used = (struct used){.n = 0};
    for (uint32_t i = 0; ok && i < nlinks; i++)
        used->n += is_used[i];
    ok = ok && (used->link = malloc((used->n + (size_t)1) * sizeof *used->link));
    for (uint32_t i = 0, n = 0; ok && i < nlinks; i++)
        if (is_used[i])
            used->link[n++] = i;
    free(is_used);
    return ok;
}

/* The links that a member may use; NULL: out of memory. */
static const struct used *
find_used(struct sim_flows *flows, const struct sim_member *member)
{
    struct rec_str key = {(const char *)member->servers,
                          member->layout->where.nslots * sizeof *member->servers};
    uint32_t i = rec_map_get(&flows->index, key);
    struct rec_error err;
    struct used *used;
    if (i != REC_NONE)
        return &flows->used[i];
    if (!rec_grow(&flows->used, &flows->room, flows->nused + 1, sizeof *used, &err) ||
        !list_used(member, used = &flows->used[flows->nused]))
        return NULL;
    flows->bytes += used->n * sizeof *used->link + key.len;
    key.ptr = rec_arena_copy(&flows->arena, key, &err);
    if (!key.ptr || !rec_map_add(&flows->index, key, (uint32_t)flows->nused, &err)) {
        free(used->link);
        return NULL;
    }
    flows->nused++;
    return used;
}

/* Two jobs share links if routes among the servers of both have one in common. What
 * cannot be found out for lack of memory counts as shared, which costs only time. */
static bool
shares(void *self, const struct sim_member *a, const struct sim_member *b)
{
    struct sim_flows *flows = self;
    const struct used *x, *y;
    if (flows->bytes > USED_MAX)
        forget_used(flows);
    /* the first list moves when the second one is added */
    if (!find_used(flows, a) || !(y = find_used(flows, b)) || !(x = find_used(flows, a)))
        return true;
    for (uint32_t i = 0, k = 0; i < x->n && k < y->n;)
        if (x->link[i] == y->link[k])
            return true;
        else if (x->link[i] < y->link[k])
            i++;
        else
            k++;
    return false;
}

static void *
open(void *self, struct rec_error *err)
{
    struct carrier *c = calloc(1, sizeof *c);
    (void)self;
    if (!c)
        rec_fail_memory(err);
    else
        c->free_piece = c->free_sent = NONE;
    return c;
}

static void
close(void *carrier)
{
    struct carrier *c = carrier;
    flow_links_free(c->links);
    event_queue_free(&c->starts);
    free(c->route);
    free(c->piece);
    free(c->sent);
    free(c->member);
    free(c->bytes);
    free(c->slot);
    free(c);
}

static bool
open_links(struct carrier *c, const struct net *net, struct rec_error *err)
{
    uint32_t n = net_links(net);
    double *capacity = malloc(((size_t)n + 1) * sizeof *capacity);
    struct net_link link;
    char text[NET_TEXT_MAX];
    bool ok = capacity != NULL;
    if (n == 0) {
        free(capacity);
        net_describe(net, text);
        return rec_fail(err, REC_DATA,
                        "no links are known of %s, so nothing can contend for them",
                        text);
    }
    c->route = malloc(((size_t)net_longest_route(net) + 1) * sizeof *c->route);
    ok = (ok && c->route) || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < n; i++) {
        net_link(net, i, &link);
        capacity[i] = link.capacity;
    }
    ok = ok && (c->links = flow_links_new(n, capacity, err));
    c->net = net;
    free(capacity);
    return ok;
}

/* Moves what a member has on its way in another carrier. */
static bool
move_pieces(struct carrier *c, const struct sim_member *member, struct carrier *from,
            double time, struct rec_error *err)
{
    uint32_t *sent = malloc((from->nsent + 1) * sizeof *sent);
    double *start = malloc((from->npieces + 1) * sizeof *start);
    bool ok = (sent && start) || rec_fail_memory(err);
    for (size_t i = 0; ok && i < from->nsent; i++)
        sent[i] = NONE;
    for (size_t i = 0; ok && i < from->npieces; i++)
        start[i] = time;
    for (size_t i = 0; ok && i < from->starts.n; i++) {
        struct event_entry event = from->starts.event[i];
        if (from->piece[(uint32_t)event.key].version == event.key >> 32)
            start[(uint32_t)event.key] = event.time;
    }
    for (uint32_t i = 0; ok && i < from->npieces; i++) {
        struct piece *piece = &from->piece[i];
        uint32_t old = piece->sent;
        if (old == NONE || from->sent[old].token >> 32 != member->number)
            continue;
        if (piece->flow != NONE)
            ok = flow_stop(from->links, time, piece->flow, &piece->bytes, err);
        if (ok && sent[old] == NONE)
            ok = (sent[old] = take_sent(c, from->sent[old].token, err)) != NONE;
        ok = ok && add_piece(c, sent[old], piece, time, start[i], err);
        if (--from->sent[old].pieces == 0) {
            from->sent[old].next = from->free_sent;
            from->free_sent = old;
        }
        free_piece(from, i);
    }
    free(sent);
    free(start);
    return ok;
}

static bool
take(void *carrier, const struct sim_member *member, void *from, double time,
     struct rec_error *err)
{
    struct carrier *c = carrier;
    if ((!c->net && !open_links(c, member->net, err)) ||
        !rec_grow(&c->member, &c->member_room, c->nmembers + 1, sizeof *c->member, err))
        return false;
    c->member[c->nmembers++] = *member;
    return !from || move_pieces(c, member, from, time, err);
}

const struct sim_sharing sim_flows_sharing = {"flows", &courier, shares,
                                              open,    take,     close};
