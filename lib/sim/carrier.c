#include "carrier.h"

#include "faults.h"
#include "rampipe/flow.h"

#include <math.h>
#include <stdlib.h>

#define NONE FLOW_NONE

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

struct sim_carrier {
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
    /* While events happen: who is told of arrivals. */
    sim_arrived *arrived;
    void *context;
};

static uint32_t
take_piece(struct sim_carrier *c, struct rec_error *err)
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
free_piece(struct sim_carrier *c, uint32_t i)
{
    c->piece[i].version++;
    c->piece[i].sent = NONE;
    c->piece[i].next = c->free_piece;
    c->free_piece = i;
}

bool
sim_carrier_begin(struct sim_carrier *c, uint64_t token, uint32_t *batch,
                  struct rec_error *err)
{
    *batch = c->free_sent;
    if (*batch != NONE)
        c->free_sent = c->sent[*batch].next;
    else if (rec_grow(&c->sent, &c->sent_room, c->nsent + 1, sizeof *c->sent, err))
        *batch = (uint32_t)c->nsent++;
    if (*batch != NONE)
        c->sent[*batch] = (struct sent){token, 0, NONE};
    return *batch != NONE;
}

const struct sim_member *
sim_carrier_member(const struct sim_carrier *c, uint64_t token)
{
    const struct sim_member *member = c->member;
    while (member->number != token >> 32)
        member++;
    return member;
}

/* ---- pieces ------------------------------------------------------------------ */

static bool
start_piece(struct sim_carrier *c, uint32_t i, double time, struct rec_error *err)
{
    struct piece *piece = &c->piece[i];
    struct flow_spec spec = {.id = i, .bytes = piece->bytes, .weight = 1};
    spec.n = net_route(c->net, piece->from, piece->to, c->route);
    spec.link = c->route;
    return flow_start(c->links, time, &spec, &piece->flow, err);
}

static double
latency_of(const struct sim_carrier *c, uint32_t from, uint32_t to)
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
add_piece(struct sim_carrier *c, uint32_t sent, const struct piece *like, double now,
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

bool
sim_carrier_send(struct sim_carrier *c, uint32_t batch, uint32_t from, uint32_t to,
                 double bytes, double time, struct rec_error *err)
{
    struct piece piece = {.from = from, .to = to, .bytes = bytes};
    return add_piece(c, batch, &piece, time, time + latency_of(c, from, to), err);
}

/* ---- events -------------------------------------------------------------------- */

double
sim_carrier_next(struct sim_carrier *c)
{
    double start = c->starts.n ? c->starts.event[0].time : INFINITY;
    return c->links ? fmin(start, flow_next(c->links)) : start;
}

static void
end_piece(void *context, uint64_t id, double time)
{
    struct sim_carrier *c = context;
    struct sent *sent = &c->sent[c->piece[id].sent];
    (void)time;
    if (--sent->pieces == 0) {
        sent->next = c->free_sent;
        c->free_sent = c->piece[id].sent;
        c->arrived(c->context, sent->token);
    }
    free_piece(c, (uint32_t)id);
}

bool
sim_carrier_advance(struct sim_carrier *c, double time, sim_arrived *arrived,
                    void *context, struct rec_error *err)
{
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

uint32_t
sim_carrier_still(struct sim_carrier *c, uint32_t member)
{
    uint32_t flow = flow_still(c->links, 0);
    for (; flow != NONE; flow = flow_still(c->links, flow + 1)) {
        const struct piece *piece = &c->piece[flow_id(c->links, flow)];
        if (c->sent[piece->sent].token >> 32 == member)
            return flow_bottleneck(c->links, flow);
    }
    return NONE;
}

/* ---- members ----------------------------------------------------------------- */

struct sim_carrier *
sim_carrier_new(struct rec_error *err)
{
    struct sim_carrier *c = calloc(1, sizeof *c);
    if (!c)
        rec_fail_memory(err);
    else
        c->free_piece = c->free_sent = NONE;
    return c;
}

void
sim_carrier_free(struct sim_carrier *c)
{
    if (!c)
        return;
    flow_links_free(c->links);
    event_queue_free(&c->starts);
    free(c->route);
    free(c->piece);
    free(c->sent);
    free(c->member);
    free(c);
}

static bool
open_links(struct sim_carrier *c, const struct sim_member *member, struct rec_error *err)
{
    const struct sim_layouts *pool = member->layout->pool;
    const struct net *net = member->net;
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
    if (ok && pool && member->health == SIM_AS_IT_IS)
        sim_faults_apply(pool->faults, capacity);
    ok = ok && (c->links = flow_links_new(n, capacity, err));
    c->net = net;
    free(capacity);
    return ok;
}

/* Moves what a member has on its way in another carrier. */
static bool
move_pieces(struct sim_carrier *c, const struct sim_member *member,
            struct sim_carrier *from, double time, struct rec_error *err)
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
            ok = sim_carrier_begin(c, from->sent[old].token, &sent[old], err);
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

bool
sim_carrier_take(struct sim_carrier *c, const struct sim_member *member,
                 struct sim_carrier *from, double time, struct rec_error *err)
{
    if ((!c->net && !open_links(c, member, err)) ||
        !rec_grow(&c->member, &c->member_room, c->nmembers + 1, sizeof *c->member, err))
        return false;
    c->member[c->nmembers++] = *member;
    return !from || move_pieces(c, member, from, time, err);
}
