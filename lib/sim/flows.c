/*
 * A courier whose batches share the links of the network max-min fairly. A batch is the
 * deps of an exchange that leave an op together, and its pieces are what it sends to each
 * server: so an exchange is sent as its deps say, from each server to each other one. But
 * colls, and sync deps of which the cluster has an algorithm, are sent in the rounds of
 * that algorithm.
 */
#include "rounds.h"

#include <stdlib.h>
#include <string.h>

/* What the courier of a company keeps. */
struct sender {
    struct sim_carrier *carrier;
    const struct net *net;
    struct sim_rounds rounds;
    /* Of the batch that leaves: bytes to each slot, and the slots that get some. */
    double *bytes;
    uint32_t *slot;
    size_t bytes_room, slot_room;
};

/* ---- a batch leaves ------------------------------------------------------------ */

static void
add_slot(struct sender *c, const struct graph_dep *dep, const uint32_t *slot, uint32_t *n)
{
    uint32_t to = slot[dep->dst];
    if (to == slot[dep->src])
        return;
    if (c->bytes[to] == 0)
        c->slot[(*n)++] = to;
    c->bytes[to] += dep->bytes;
}

/* Sums the bytes that the op of a dep sends to each slot but its own in an exchange,
 * bytes[slot], and lists these slots. A message is the dep alone: an op with many would
 * else look through all of them for each. */
static bool
list_slots(struct sender *c, const struct sim_layout *layout, uint32_t dep_sent,
           uint32_t exchange, uint32_t *n, struct rec_error *err)
{
    const struct graph *graph = layout->where.graph;
    const uint32_t *slot = layout->where.slot;
    uint32_t op = graph->dep[dep_sent].src;
    uint32_t nout = graph->out_start[op + 1] - graph->out_start[op];
    size_t room = c->bytes_room;
    *n = 0;
    if (!rec_grow(&c->bytes, &c->bytes_room, layout->where.nslots, sizeof *c->bytes,
                  err) ||
        !rec_grow(&c->slot, &c->slot_room, nout + 1, sizeof *c->slot, err))
        return false;
    for (; room < c->bytes_room; room++)
        c->bytes[room] = 0;
    if (layout->exchanges.exchange[exchange].kind == GRAPH_MESSAGE) {
        add_slot(c, &graph->dep[dep_sent], slot, n);
        return true;
    }
    for (uint32_t i = graph->out_start[op]; i < graph->out_start[op + 1]; i++)
        if (layout->exchanges.of_dep[graph->out[i]] == exchange)
            add_slot(c, &graph->dep[graph->out[i]], slot, n);
    return true;
}

/* True if an exchange is sent in rounds. */
static bool
has_rounds(const struct sender *c, const struct sim_layout *layout, uint32_t exchange)
{
    enum graph_exchange_kind kind = layout->exchanges.exchange[exchange].kind;
    return kind > GRAPH_SYNC_ALL ||
           (kind == GRAPH_SYNC_ALL && strcmp(net_algorithm(c->net), "direct") != 0);
}

/* A batch of a collective whose time alone was measured takes at least as long. */
static bool
wait_measured(struct sender *c, const struct sim_member *member, uint32_t exchange,
              uint32_t batch, double time, struct rec_error *err)
{
    struct net_exchange e;
    double seconds;
    bool measured;
    return sim_rounds_exchange(&c->rounds, member, exchange, &e, err) &&
           net_measured(member->net, &e, &measured, &seconds, err) &&
           (!measured ||
            sim_carrier_wait(c->carrier, batch, time, time + seconds, true, err));
}

static bool
send(void *self, uint64_t token, uint32_t dep, uint32_t exchange, double time,
     struct rec_error *err)
{
    struct sender *c = self;
    const struct sim_member *member = sim_carrier_member(c->carrier, token);
    const struct sim_layout *layout;
    uint32_t op, from, n = 0, batch;
    bool ok;
    if (!member)
        return rec_fail(err, REC_BUG, "a batch was sent for a job that was not taken");
    layout = member->layout;
    op = dep == GRAPH_NONE ? GRAPH_NONE : layout->where.graph->dep[dep].src;
    if (has_rounds(c, layout, exchange))
        return sim_rounds_send(&c->rounds, c->carrier, token, op, exchange, time, err);
    from = member->servers[layout->where.slot[op]];
    ok = list_slots(c, layout, dep, exchange, &n, err) &&
         sim_carrier_begin(c->carrier, token, exchange, time, &batch, err) &&
         wait_measured(c, member, exchange, batch, time, err);
    for (uint32_t i = 0; ok && i < n; i++)
        ok = sim_carrier_send(c->carrier, batch, from, member->servers[c->slot[i]],
                              c->bytes[c->slot[i]], time, err);
    for (uint32_t i = 0; i < n; i++)
        c->bytes[c->slot[i]] = 0;
    return ok;
}

static double
next(void *self)
{
    return sim_carrier_next(((struct sender *)self)->carrier);
}

/* Who is told of arrivals. */
struct listener {
    struct sim_rounds *rounds;
    sim_arrived *arrived;
    void *context;
};

static void
hear(void *context, uint64_t token)
{
    const struct listener *l = context;
    if (sim_rounds_arrived(l->rounds, token))
        l->arrived(l->context, token);
}

static bool
advance(void *self, double time, sim_arrived *arrived, void *context,
        struct rec_error *err)
{
    struct sender *c = self;
    struct listener listener = {&c->rounds, arrived, context};
    return sim_carrier_advance(c->carrier, time, hear, &listener, err) &&
           sim_rounds_advance(&c->rounds, c->carrier, time, arrived, context, err);
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
    struct rec_error err;
    struct net_each *each =
        net_each_new(member->net, member->servers, member->layout->where.nslots, &err);
    struct net_fan fan;
    if (!each)
        return false;
    while (net_each_next(each, &fan)) {
        for (uint32_t i = 0; i < fan.n; i++)
            is_used[fan.route[i]] = true;
        for (uint32_t i = 0; i < fan.skip; i++)
            is_used[fan.tip[i]] = true;
        for (uint32_t i = fan.skip + fan.nskip; i < fan.ntips; i++)
            is_used[fan.tip[i]] = true;
    }
    net_each_free(each);
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

static bool
uses(void *self, const struct sim_member *member, uint32_t link)
{
    struct sim_flows *flows = self;
    const struct used *used;
    uint32_t from = 0, to;
    if (flows->bytes > USED_MAX)
        forget_used(flows);
    if (!(used = find_used(flows, member)))
        return true;
    for (to = used->n; from < to;) {
        uint32_t middle = from + (to - from) / 2;
        if (used->link[middle] < link)
            from = middle + 1;
        else
            to = middle;
    }
    return from < used->n && used->link[from] == link;
}

static uint32_t
still(void *self, uint32_t member)
{
    return sim_carrier_still(((struct sender *)self)->carrier, member);
}

static bool
count(void *self, double time, struct rec_error *err)
{
    return sim_carrier_count(((struct sender *)self)->carrier, time, err);
}

static void
close(void *self)
{
    struct sender *c = self;
    if (!c)
        return;
    sim_carrier_free(c->carrier);
    sim_rounds_free(&c->rounds);
    free(c->bytes);
    free(c->slot);
    free(c);
}

static void *
open(void *self, struct rec_error *err)
{
    struct sender *c = calloc(1, sizeof *c);
    (void)self;
    if (!c)
        rec_fail_memory(err);
    else if (!(c->carrier = sim_carrier_new(err))) {
        close(c);
        c = NULL;
    }
    return c;
}

static bool
take(void *self, const struct sim_member *member, void *from, double time,
     struct rec_error *err)
{
    struct sender *c = self, *before = from;
    c->net = member->net;
    return sim_carrier_take(c->carrier, member, before ? before->carrier : NULL, time,
                            err) &&
           (!before || sim_rounds_take(&c->rounds, &before->rounds, member->number, err));
}

const struct sim_sharing sim_flows_sharing = {"flows", &courier, shares, open, take,
                                              close,   uses,     still,  count};
