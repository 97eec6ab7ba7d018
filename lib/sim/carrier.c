#include "carrying.h"
#include "faults.h"

#include <math.h>
#include <stdlib.h>

uint32_t
sim_carrier_take_piece(struct sim_carrier *c, struct rec_error *err)
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
release_piece(struct sim_carrier *c, uint32_t i)
{
    c->piece[i].version++;
    c->piece[i].sent = NONE;
    c->piece[i].next = c->free_piece;
    c->free_piece = i;
}

bool
sim_carrier_begin(struct sim_carrier *c, uint64_t token, uint32_t exchange, double time,
                  uint32_t *batch, struct rec_error *err)
{
    const struct sim_member *member;
    *batch = c->free_sent;
    if (*batch != NONE)
        c->free_sent = c->sent[*batch].next;
    else if (rec_grow(&c->sent, &c->sent_room, c->nsent + 1, sizeof *c->sent, err))
        *batch = (uint32_t)c->nsent++;
    if (*batch != NONE)
        c->sent[*batch] = (struct sent){.token = token, .exchange = exchange};
    if (*batch != NONE && c->why.asked && (member = sim_carrier_member(c, token)))
        sim_reasons_send(member->first, exchange, time);
    return *batch != NONE;
}

const struct sim_member *
sim_carrier_member(const struct sim_carrier *c, uint64_t token)
{
    for (size_t i = 0; i < c->nmembers; i++)
        if (c->member[i].number == token >> 32)
            return &c->member[i];
    return NULL;
}

/* What happened before `time` is added to what is asked of first steps. */
static inline bool
pass(struct sim_carrier *c, double time, struct rec_error *err)
{
    return !c->why.asked || sim_reasons_pass(c, time, err);
}

/* ---- routes ------------------------------------------------------------------ */

const struct known_route *
sim_carrier_route(const struct sim_carrier *c, uint32_t from, uint32_t to,
                  const uint32_t **link)
{
    uint32_t i = (uint32_t)rec_mix((uint64_t)from << 32 | to) % KNOWN_ROUTES;
    struct known_route *known = &c->known[i];
    uint32_t *route = c->route + (size_t)i * c->longest;
    struct net_link one;
    *link = route;
    if (known->from == from && known->to == to)
        return known;
    *known = (struct known_route){from, to, net_route(c->net, from, to, route), 0};
    for (uint32_t k = 0; k < known->n; k++) {
        net_link(c->net, route[k], &one);
        known->latency += one.latency;
    }
    return known;
}

double
sim_carrier_latency(const struct sim_carrier *c, uint32_t from, uint32_t to)
{
    const uint32_t *link;
    return from == to ? 0 : sim_carrier_route(c, from, to, &link)->latency;
}

/* ---- pieces ------------------------------------------------------------------ */

static bool
start_piece(struct sim_carrier *c, uint32_t i, double time, struct rec_error *err)
{
    struct piece *piece = &c->piece[i];
    struct flow_spec spec = {.id = i, .bytes = piece->bytes, .weight = 1};
    if (c->fold)
        return sim_folded_start(c, i, time, NULL, 0, 0, err);
    if (piece->from != piece->to)
        spec.n = sim_carrier_route(c, piece->from, piece->to, &spec.link)->n;
    return flow_start(c->links, time, &spec, &piece->flow, err);
}

/* A batch sends `bytes` from one server to another; the flow starts at `start`, which is
 * not before `now`. */
static bool
add_piece(struct sim_carrier *c, uint32_t sent, const struct piece *like, double now,
          double start, struct rec_error *err)
{
    uint32_t i, version;
    if (!pass(c, now, err) || (i = sim_carrier_take_piece(c, err)) == NONE)
        return false;
    version = c->piece[i].version;
    c->piece[i] = *like;
    c->piece[i].sent = sent;
    c->piece[i].flow = NONE;
    c->piece[i].version = version;
    c->sent[sent].pieces++;
    if (c->fold && like->group == NONE && !sim_folded_join(c, i, err))
        return false;
    /* What is folded starts with all else of its instant, for which classes are found
     * once. */
    return start > now || c->fold
               ? event_queue_push(
                     &c->starts, (struct event_entry){start, (uint64_t)version << 32 | i},
                     err)
               : start_piece(c, i, now, err);
}

bool
sim_carrier_send(struct sim_carrier *c, uint32_t batch, uint32_t from, uint32_t to,
                 double bytes, double time, struct rec_error *err)
{
    return sim_carrier_send_at(c, batch, from, to, bytes, time,
                               time + sim_carrier_latency(c, from, to), err);
}

bool
sim_carrier_send_at(struct sim_carrier *c, uint32_t batch, uint32_t from, uint32_t to,
                    double bytes, double time, double start, struct rec_error *err)
{
    struct piece piece = {.from = from, .to = to, .bytes = bytes, .group = NONE};
    return add_piece(c, batch, &piece, time, start, err);
}

/* A piece from a server to itself has no links, and ends when it starts. */
bool
sim_carrier_wait(struct sim_carrier *c, uint32_t batch, double time, double until,
                 bool measured, struct rec_error *err)
{
    uint32_t server = measured ? NONE : 0;
    struct piece piece = {.from = server, .to = server, .group = NONE};
    return add_piece(c, batch, &piece, time, until, err);
}

/* Transfers that send different shares are pieces of their own. */
static bool
has_shares(const struct net_round *round)
{
    for (uint32_t i = 0; round->transfer && i < round->n; i++)
        if (round->transfer[i].share != 1)
            return true;
    return false;
}

bool
sim_carrier_folds(const struct sim_carrier *c, const struct net_round *round, uint32_t n)
{
    bool many = c->fold ? n > 1 : !round->transfer && n >= c->fold_least;
    return many && !has_shares(round);
}

bool
sim_carrier_fold(struct sim_carrier *c, uint32_t batch, const struct net_round *round,
                 const uint32_t *server, uint32_t n, double time, struct rec_error *err)
{
    struct piece piece = {.bytes = round->bytes};
    uint32_t groups;
    if (!sim_folded_open(c, err))
        return false;
    groups = sim_fold_groups(c->fold);
    if (!sim_fold_add(c->fold, round->transfer, server, round->transfer ? round->n : n,
                      &piece.group, err))
        return false;
    c->stale = c->stale || sim_fold_groups(c->fold) > groups;
    return add_piece(c, batch, &piece, time,
                     time + round->latencies * sim_fold_latency(c->fold, piece.group),
                     err);
}

bool
sim_carrier_capacity(struct sim_carrier *c, double time, uint32_t link, double capacity,
                     struct rec_error *err)
{
    if (!pass(c, time, err))
        return false;
    if (!c->fold)
        return flow_capacity(c->links, time, link, capacity, err);
    c->capacity[link] = capacity;
    c->stale = true;
    return sim_folded_refresh(c, NULL, time, err);
}

void
sim_carrier_fold_from(struct sim_carrier *c, uint32_t servers)
{
    c->fold_least = servers;
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
    const struct sim_member *member;
    if (--sent->pieces == 0) {
        if (c->why.asked && (member = sim_carrier_member(c, sent->token)))
            sim_reasons_arrive(member->first, sent->exchange, time);
        sent->next = c->free_sent;
        c->free_sent = c->piece[id].sent;
        c->arrived(c->context, sent->token);
    }
    release_piece(c, (uint32_t)id);
}

bool
sim_carrier_advance(struct sim_carrier *c, double time, sim_arrived *arrived,
                    void *context, struct rec_error *err)
{
    c->arrived = arrived;
    c->context = context;
    if (!pass(c, time, err) || !flow_advance(c->links, time, end_piece, c, err))
        return false;
    if (c->fold && c->starts.n && c->starts.event[0].time <= time &&
        !sim_folded_refresh(c, NULL, time, err))
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
            return sim_folded_link(c, flow_bottleneck(c->links, flow));
    }
    return NONE;
}

/* ---- what the links carry ------------------------------------------------------ */

static void
take_loads(struct sim_carrier *c)
{
    const struct flow_classes *found = c->classes.found;
    if (c->loads)
        sim_loads_take(c->loads, c->links, found ? found->colour : NULL,
                       found ? found->ncolours : 0);
}

bool
sim_carrier_count(struct sim_carrier *c, double time, struct rec_error *err)
{
    if (!c->loads || !c->links)
        return true;
    if (flow_next(c->links) > time && !flow_advance(c->links, time, end_piece, c, err))
        return false;
    take_loads(c);
    return true;
}

/* ---- members ----------------------------------------------------------------- */

struct sim_carrier *
sim_carrier_new(struct rec_error *err)
{
    struct sim_carrier *c = calloc(1, sizeof *c);
    if (!c)
        rec_fail_memory(err);
    else
        *c = (struct sim_carrier){
            .free_piece = NONE, .free_sent = NONE, .fold_least = SIM_CARRIER_FOLD};
    return c;
}

void
sim_carrier_free(struct sim_carrier *c)
{
    if (!c)
        return;
    if (c->links)
        take_loads(c);
    flow_links_free(c->links);
    sim_folded_close(c);
    event_queue_free(&c->starts);
    free(c->known);
    free(c->route);
    free(c->piece);
    free(c->sent);
    free(c->member);
    free(c->why.name);
    free(c->why.head);
    free(c->why.job);
    free(c->why.list);
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
    if (n == 0 && net_servers(net) > 1) { /* one server sends nothing */
        free(capacity);
        net_describe(net, text);
        return rec_fail(err, REC_DATA,
                        "no links are known of %s, so nothing can contend for them",
                        text);
    }
    c->longest = net_longest_route(net);
    c->known = calloc(KNOWN_ROUTES, sizeof *c->known);
    c->route = malloc((size_t)KNOWN_ROUTES * (c->longest + 1) * sizeof *c->route);
    ok = (ok && c->known && c->route) || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < n; i++) {
        net_link(net, i, &link);
        capacity[i] = link.capacity;
    }
    if (ok && pool && member->health == SIM_AS_IT_IS)
        sim_faults_apply(pool->faults, capacity);
    ok = ok && (c->links = flow_links_new(n, capacity, err));
    c->net = net;
    c->loads = member->loads;
    free(capacity);
    return ok;
}

/* When the pieces of a carrier start that wait; `time` of others. NULL: *err. */
static double *
list_starts(const struct sim_carrier *c, double time, struct rec_error *err)
{
    double *start = malloc((c->npieces + 1) * sizeof *start);
    if (!start)
        rec_fail_memory(err);
    for (size_t i = 0; start && i < c->npieces; i++)
        start[i] = time;
    for (size_t i = 0; start && i < c->starts.n; i++) {
        struct event_entry event = c->starts.event[i];
        if (c->piece[(uint32_t)event.key].version == event.key >> 32)
            start[(uint32_t)event.key] = event.time;
    }
    return start;
}

static bool
is_of(const struct sim_carrier *c, uint32_t i, const struct sim_member *member)
{
    uint32_t sent = c->piece[i].sent;
    return sent != NONE && c->sent[sent].token >> 32 == member->number;
}

/* A piece of another carrier gets its group here, and loses it if it is one transfer. */
static bool
find_group(struct sim_carrier *c, const struct sim_carrier *from, struct piece *piece,
           struct rec_error *err)
{
    const struct net_transfer *transfer;
    const uint32_t *server;
    uint32_t n, groups = c->fold ? sim_fold_groups(c->fold) : 0;
    if (piece->group == NONE)
        return true;
    sim_fold_group(from->fold, piece->group, &transfer, &server, &n);
    if (transfer && n == 1) {
        *piece = (struct piece){.from = transfer->from,
                                .to = transfer->to,
                                .bytes = piece->bytes,
                                .group = NONE};
        return true;
    }
    if (!sim_folded_open(c, err) ||
        !sim_fold_add(c->fold, transfer, server, n, &piece->group, err))
        return false;
    c->stale = c->stale || sim_fold_groups(c->fold) > groups;
    return true;
}

/* Takes a piece out of the carrier `from`; `batch` is its batch here. If it is a class of
 * flows there, its flows are found among the classes here, which must be parts of those:
 * *told_apart, once they are. */
static bool
move_piece(struct sim_carrier *c, struct sim_carrier *from, uint32_t i, uint32_t batch,
           double time, double start, bool *told_apart, struct rec_error *err)
{
    struct piece piece = from->piece[i];
    uint32_t old = piece.sent, group = piece.group, moved;
    bool first, part = piece.group != NONE && piece.flow != NONE;
    if (piece.flow != NONE &&
        !flow_stop(from->links, time, piece.flow, &piece.bytes, err))
        return false;
    if (--from->sent[old].pieces == 0) {
        from->sent[old].next = from->free_sent;
        from->free_sent = old;
    }
    release_piece(from, i);
    if (!find_group(c, from, &piece, err))
        return false;
    if (!part || piece.group == NONE)
        return add_piece(c, batch, &piece, time, start, err);
    if ((moved = sim_carrier_take_piece(c, err)) == NONE)
        return false;
    piece.version = c->piece[moved].version;
    piece.sent = batch;
    piece.flow = NONE;
    c->piece[moved] = piece;
    c->sent[batch].pieces++;
    first = !*told_apart;
    *told_apart = true;
    return sim_folded_refresh(c, first ? &from->classes : NULL, time, err) &&
           sim_folded_start(c, moved, time, &from->classes, group, piece.class, err);
}

/* Moves what a member has on its way in another carrier. */
static bool
move_pieces(struct sim_carrier *c, const struct sim_member *member,
            struct sim_carrier *from, double time, struct rec_error *err)
{
    uint32_t *sent = malloc((from->nsent + 1) * sizeof *sent);
    double *start = list_starts(from, time, err);
    bool ok = start && (sent || rec_fail_memory(err)), told_apart = false;
    for (size_t i = 0; ok && i < from->nsent; i++)
        sent[i] = NONE;
    for (uint32_t i = 0; ok && i < from->npieces; i++) {
        uint32_t old = from->piece[i].sent;
        if (!is_of(from, i, member))
            continue;
        if (sent[old] == NONE)
            ok = sim_carrier_begin(c, from->sent[old].token, from->sent[old].exchange,
                                   time, &sent[old], err);
        ok = ok && move_piece(c, from, i, sent[old], time, start[i], &told_apart, err);
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
    if (!pass(c, time, err) || (from && !pass(from, time, err)))
        return false;
    if (!c->why.asked)
        c->why.passed = time;
    c->why.asked = c->why.asked || sim_first_is_watched(member->first);
    c->member[c->nmembers++] = *member;
    return !from || move_pieces(c, member, from, time, err);
}
