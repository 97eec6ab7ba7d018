/*
 * A courier for layouts whose deps have channels (transfer records). A channel leads from
 * one slot to another and sends one dep at a time: the ready one that goes first, which
 * interrupts others. All other deps take their own time, whatever else is sent.
 *
 * A dep with a channel is a batch of its own. It takes the time of its exchange on the
 * channel, of which it keeps what is left while it waits.
 */
#include "private.h"

#include "channels.h"

#include <math.h>
#include <stdlib.h>

/* A dep with a channel. */
struct transfer {
    double rank, left; /* the lower rank goes first; seconds that are left */
    uint64_t batch;
    uint32_t channel;
};

struct channel {
    uint32_t *ready; /* a heap of transfers; the first one is sent */
    uint32_t n;
    uint32_t sending; /* NONE: nothing */
    uint32_t version; /* counts what was sent or interrupted: older ends are void */
    double since;     /* when it began to send that, seconds */
};

struct sim_channels {
    const struct sim_placed *placed;
    const struct graph_layout *layout;
    struct transfer *transfer; /* as layout->transfer */
    struct channel *channel;
    uint32_t *heap; /* of all channels */
    uint32_t nchannels;
    double *of_coll;           /* per exchange of a coll: its seconds; NULL: no colls */
    struct event_queue ends;   /* of channels; key: version, channel (32 bits each) */
    struct event_queue others; /* key: the batch */
};

/* ---- which channels there are ------------------------------------------------- */

/* A transfer by its channel. */
struct on {
    uint32_t from, to, transfer;
    uint64_t channel;
};

static int
by_channel(const void *a, const void *b)
{
    const struct on *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->channel != y->channel)
        return x->channel < y->channel ? -1 : 1;
    return x->transfer < y->transfer ? -1 : x->transfer > y->transfer;
}

static int
by_rank(const void *a, const void *b, void *context)
{
    const struct sim_channels *c = context;
    const struct graph_transfer *x = &c->layout->transfer[*(const uint32_t *)a];
    const struct graph_transfer *y = &c->layout->transfer[*(const uint32_t *)b];
    double s = c->placed->dep_seconds[x->dep], t = c->placed->dep_seconds[y->dep];
    if (isnan(x->priority) != isnan(y->priority))
        return isnan(x->priority) ? 1 : -1;
    if (!isnan(x->priority) && x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    if (s != t)
        return s < t ? -1 : 1;
    return x->dep < y->dep ? -1 : x->dep > y->dep;
}

/* Numbers the channels, and gives each its part of the heap. */
static void
number_channels(struct sim_channels *c, struct on *on)
{
    const struct graph *graph = c->layout->graph;
    size_t n = c->layout->ntransfers;
    for (uint32_t i = 0; i < n; i++) {
        const struct graph_transfer *transfer = &c->layout->transfer[i];
        const struct graph_dep *dep = &graph->dep[transfer->dep];
        on[i] = (struct on){c->layout->slot[dep->src], c->layout->slot[dep->dst], i,
                            transfer->channel};
    }
    qsort(on, n, sizeof *on, by_channel);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || on[i].from != on[i - 1].from || on[i].to != on[i - 1].to ||
            on[i].channel != on[i - 1].channel)
            c->channel[c->nchannels++] =
                (struct channel){.ready = c->heap + i, .sending = NONE};
        c->transfer[on[i].transfer].channel = c->nchannels - 1;
    }
}

/* Colls are on no channel, and known to the courier by their exchanges only. */
static bool
time_colls(struct sim_channels *c, struct rec_error *err)
{
    const struct sim_placed *placed = c->placed;
    size_t n = placed->coll_exchange ? placed->graph->ncolls : 0, most = 0;
    for (size_t i = 0; i < n; i++)
        if (placed->coll_exchange[i] != GRAPH_NONE && placed->coll_exchange[i] >= most)
            most = placed->coll_exchange[i] + 1;
    if (most && !(c->of_coll = calloc(most, sizeof *c->of_coll)))
        return rec_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        if (placed->coll_exchange[i] != GRAPH_NONE)
            c->of_coll[placed->coll_exchange[i]] = placed->coll_seconds[i];
    return true;
}

struct sim_channels *
sim_channels_new(const struct graph_layout *layout, const struct sim_placed *placed,
                 struct rec_error *err)
{
    struct sim_channels *c = calloc(1, sizeof *c);
    size_t n = layout->ntransfers;
    struct on *on = malloc((n + 1) * sizeof *on);
    uint32_t *order = malloc((n + 1) * sizeof *order);
    bool ok = (c && on && order) || rec_fail_memory(err);
    if (ok) {
        c->placed = placed;
        c->layout = layout;
        c->transfer = calloc(n + 1, sizeof *c->transfer);
        c->channel = calloc(n + 1, sizeof *c->channel);
        c->heap = malloc((n + 1) * sizeof *c->heap);
        ok = (c->transfer && c->channel && c->heap) || rec_fail_memory(err);
    }
    ok = ok && time_colls(c, err);
    if (ok) {
        number_channels(c, on);
        for (uint32_t i = 0; i < n; i++)
            order[i] = i;
        qsort_r(order, n, sizeof *order, by_rank, c);
        for (uint32_t i = 0; i < n; i++)
            c->transfer[order[i]].rank = i;
    } else {
        sim_channels_free(c);
        c = NULL;
    }
    free(on);
    free(order);
    return c;
}

void
sim_channels_free(struct sim_channels *c)
{
    if (!c)
        return;
    event_queue_free(&c->ends);
    event_queue_free(&c->others);
    free(c->transfer);
    free(c->channel);
    free(c->heap);
    free(c->of_coll);
    free(c);
}

/* ---- a channel ------------------------------------------------------------------ */

static bool
goes_before(const struct sim_channels *c, uint32_t a, uint32_t b)
{
    return c->transfer[a].rank < c->transfer[b].rank;
}

static void
push_ready(const struct sim_channels *c, struct channel *channel, uint32_t transfer)
{
    uint32_t i = channel->n++;
    for (; i > 0 && goes_before(c, transfer, channel->ready[(i - 1) / 2]);
         i = (i - 1) / 2)
        channel->ready[i] = channel->ready[(i - 1) / 2];
    channel->ready[i] = transfer;
}

static void
pop_ready(const struct sim_channels *c, struct channel *channel)
{
    uint32_t last = channel->ready[--channel->n], i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= channel->n)
            break;
        if (child + 1 < channel->n &&
            goes_before(c, channel->ready[child + 1], channel->ready[child]))
            child++;
        if (!goes_before(c, channel->ready[child], last))
            break;
        channel->ready[i] = channel->ready[child];
        i = child;
    }
    channel->ready[i] = last;
}

/* Sends what goes first. */
static bool
choose(struct sim_channels *c, uint32_t number, double time, struct rec_error *err)
{
    struct channel *channel = &c->channel[number];
    uint32_t first = channel->n ? channel->ready[0] : NONE;
    if (first == channel->sending)
        return true;
    if (channel->sending != NONE) {
        struct transfer *interrupted = &c->transfer[channel->sending];
        interrupted->left = fmax(0, interrupted->left - (time - channel->since));
    }
    channel->sending = first;
    channel->since = time;
    channel->version++;
    return first == NONE ||
           event_queue_push(
               &c->ends,
               (struct event_entry){time + c->transfer[first].left,
                                    (uint64_t)channel->version << 32 | number},
               err);
}

/* ---- the courier ------------------------------------------------------------------ */

static const struct graph_transfer *
transfer_of(const struct sim_channels *c, uint32_t dep)
{
    uint32_t i = c->layout->transfer_of[dep];
    return i == GRAPH_NONE ? NULL : &c->layout->transfer[i];
}

/* Deps without a channel are batches by their time, as without this courier. A dep with
 * one has a key of its own that is longer than any time: those that take none come first,
 * as the machine lets them arrive at once. */
static double
key(void *self, const struct sim_placed *placed, uint32_t dep)
{
    const struct sim_channels *c = self;
    double seconds = placed->dep_seconds[dep];
    return seconds > 0 && transfer_of(c, dep) ? 1e300 * (1 + ldexp(dep, -32)) : seconds;
}

static bool
send(void *self, uint64_t batch, uint32_t dep, uint32_t exchange, double time,
     struct rec_error *err)
{
    struct sim_channels *c = self;
    uint32_t i = dep == GRAPH_NONE ? GRAPH_NONE : c->layout->transfer_of[dep];
    struct transfer *transfer;
    if (i == GRAPH_NONE) {
        double seconds =
            dep == GRAPH_NONE ? c->of_coll[exchange] : c->placed->dep_seconds[dep];
        return event_queue_push(&c->others, (struct event_entry){time + seconds, batch},
                                err);
    }
    transfer = &c->transfer[i];
    transfer->batch = batch;
    transfer->left = c->placed->dep_seconds[dep];
    push_ready(c, &c->channel[transfer->channel], i);
    return choose(c, transfer->channel, time, err);
}

static bool
is_void(const struct sim_channels *c, struct event_entry event)
{
    return c->channel[(uint32_t)event.key].version != event.key >> 32;
}

static double
next(void *self)
{
    struct sim_channels *c = self;
    double other = c->others.n ? c->others.event[0].time : (double)INFINITY;
    while (c->ends.n && is_void(c, c->ends.event[0]))
        event_queue_pop(&c->ends);
    return c->ends.n ? fmin(c->ends.event[0].time, other) : other;
}

static bool
advance(void *self, double time, sim_arrived *arrived, void *context,
        struct rec_error *err)
{
    struct sim_channels *c = self;
    while (c->others.n && c->others.event[0].time <= time)
        arrived(context, event_queue_pop(&c->others).key);
    while (c->ends.n && c->ends.event[0].time <= time) {
        struct event_entry event = event_queue_pop(&c->ends);
        struct channel *channel = &c->channel[(uint32_t)event.key];
        if (is_void(c, event))
            continue;
        arrived(context, c->transfer[channel->sending].batch);
        channel->sending = NONE;
        pop_ready(c, channel);
        if (!choose(c, (uint32_t)event.key, time, err))
            return false;
    }
    return true;
}

const struct sim_courier sim_channels_courier = {"channels", key, send, next, advance};
