#include "rounds.h"

#include <math.h>
#include <stdlib.h>

#define NONE UINT32_MAX

struct sim_going {
    struct what {
        uint32_t member, exchange;
    } what;
    uint32_t missing; /* batches that have not left */
    uint32_t at;      /* its index in `going` */
    uint64_t first;   /* rounds go by the token of the first batch */
    uint64_t *token;  /* of the batches that have left */
    size_t ntokens, room;
    struct net_rounds rounds;
    uint32_t next; /* round that has not started */
    double until;  /* it takes at least till then, if its time was measured; else 0 */
};

static void
free_going(struct sim_going *going)
{
    net_rounds_free(&going->rounds);
    free(going->token);
    free(going);
}

void
sim_rounds_free(struct sim_rounds *r)
{
    for (size_t i = 0; i < r->n; i++)
        free_going(r->going[i]);
    free(r->going);
    free(r->ended);
    rec_map_free(&r->by_what);
    rec_map_free(&r->by_first);
    free(r->server);
    *r = (struct sim_rounds){.n = 0};
}

bool
sim_rounds_exchange(struct sim_rounds *r, const struct sim_member *member,
                    uint32_t exchange, struct net_exchange *e, struct rec_error *err)
{
    const struct graph_exchanges *all = &member->layout->exchanges;
    const struct graph_exchange *one = &all->exchange[exchange];
    if (!rec_grow(&r->server, &r->server_room, one->n, sizeof *r->server, err))
        return false;
    for (uint32_t i = 0; i < one->n; i++)
        r->server[i] = member->servers[all->member[one->first + i]];
    *e = (struct net_exchange){one->kind, r->server, one->n, one->bytes, one->flow};
    return true;
}

/* ---- rounds --------------------------------------------------------------------- */

/* The transfers of a round, listed or each to each. */
struct walk {
    const struct net_round *round;
    const struct net_exchange *exchange;
    uint64_t at;
};

static bool
next_transfer(struct walk *w, struct net_transfer *transfer)
{
    const struct net_exchange *e = w->exchange;
    if (w->round->transfer) {
        if (w->at == w->round->n)
            return false;
        *transfer = w->round->transfer[w->at++];
        return true;
    }
    if (w->at % (e->n + 1) == 0)
        w->at++; /* that is a member and itself */
    if (w->at >= (uint64_t)e->n * e->n)
        return false;
    *transfer =
        (struct net_transfer){e->server[w->at / e->n], e->server[w->at % e->n], 1};
    w->at++;
    return true;
}

/* A round waits for the largest of the latencies that its transfers have; then all send.
 * Without bytes it only waits. */
static bool
start_round(struct sim_rounds *r, struct sim_carrier *carrier, struct sim_going *going,
            double time, struct rec_error *err)
{
    const struct sim_member *member = sim_carrier_member(carrier, going->first);
    const struct net_round *round = &going->rounds.round[going->next++];
    struct net_exchange e;
    struct walk walk = {round, &e, 0};
    struct net_transfer t;
    double latency = 0, start;
    uint32_t batch;

    if (!sim_rounds_exchange(r, member, going->what.exchange, &e, err) ||
        !sim_carrier_begin(carrier, going->first, going->what.exchange, time, &batch,
                           err))
        return false;
    if (sim_carrier_folds(carrier, round, e.n))
        return sim_carrier_fold(carrier, batch, round, e.server, e.n, time, err);
    while (next_transfer(&walk, &t))
        latency = fmax(latency, sim_carrier_latency(carrier, t.from, t.to));
    start = time + round->latencies * latency;
    if (!(round->bytes > 0))
        return sim_carrier_wait(carrier, batch, time, start, false, err);
    walk.at = 0;
    while (next_transfer(&walk, &t))
        if (!sim_carrier_send_at(carrier, batch, t.from, t.to, t.share * round->bytes,
                                 time, start, err))
            return false;
    return true;
}

/* All rounds have ended before the measured time is over. */
static bool
wait_for(struct sim_carrier *carrier, struct sim_going *going, double time,
         struct rec_error *err)
{
    double until = going->until;
    uint32_t batch;
    going->until = 0;
    return sim_carrier_begin(carrier, going->first, going->what.exchange, time, &batch,
                             err) &&
           sim_carrier_wait(carrier, batch, time, until, true, err);
}

/* All batches have left. */
static bool
start(struct sim_rounds *r, struct sim_carrier *carrier, struct sim_going *going,
      double time, struct rec_error *err)
{
    const struct sim_member *member = sim_carrier_member(carrier, going->first);
    struct net_exchange e;
    bool measured;
    if (!sim_rounds_exchange(r, member, going->what.exchange, &e, err) ||
        !net_rounds_make(member->net, &e, &going->rounds, err) ||
        !net_measured(member->net, &e, &measured, &going->until, err))
        return false;
    going->until = measured ? time + going->until : 0;
    return going->rounds.n > 0
               ? start_round(r, carrier, going, time, err)
               : rec_fail(err, REC_BUG, "an exchange of one server was sent");
}

/* ---- batches --------------------------------------------------------------------- */

/* How many ops of the unit of `op` send in an exchange. */
static uint32_t
count_senders(const struct sim_layout *layout, uint32_t op, uint32_t exchange)
{
    const struct graph *graph = layout->where.graph;
    const struct graph_unit *unit = &graph->unit[graph->op[op].unit];
    uint32_t n = 0;
    for (uint32_t j = 0; j < unit->parts; j++) {
        uint32_t part = graph->member[unit->first + j], i = graph->out_start[part];
        while (i < graph->out_start[part + 1] &&
               layout->exchanges.of_dep[graph->out[i]] != exchange)
            i++;
        n += i < graph->out_start[part + 1];
    }
    return n;
}

static struct rec_str
what_key(const struct what *what)
{
    return (struct rec_str){(const char *)what, sizeof *what};
}

static struct rec_str
first_key(const uint64_t *token)
{
    return (struct rec_str){(const char *)token, sizeof *token};
}

/* Adds `going`, which the rounds own from now on. */
static bool
enter(struct sim_rounds *r, struct sim_going *going, struct rec_error *err)
{
    uint32_t at = (uint32_t)r->n;
    if (!rec_grow(&r->going, &r->room, r->n + 1, sizeof *r->going, err) ||
        !rec_grow(&r->ended, &r->ended_room, r->n + 1, sizeof *r->ended, err) ||
        !rec_map_add(&r->by_what, what_key(&going->what), at, err))
        return false;
    if (!rec_map_add(&r->by_first, first_key(&going->first), at, err)) {
        rec_map_remove(&r->by_what, what_key(&going->what));
        return false;
    }
    going->at = at;
    r->going[r->n++] = going;
    return true;
}

/* Takes `going` out; the last one gets its place. False: out of memory, which cannot be
 * while the maps have room for one more. */
static bool
leave(struct sim_rounds *r, struct sim_going *going, struct rec_error *err)
{
    struct sim_going *last = r->going[--r->n];
    uint32_t at = going->at;
    rec_map_remove(&r->by_what, what_key(&going->what));
    rec_map_remove(&r->by_first, first_key(&going->first));
    if (last == going)
        return true;
    rec_map_remove(&r->by_what, what_key(&last->what));
    rec_map_remove(&r->by_first, first_key(&last->first));
    r->going[at] = last;
    last->at = at;
    return rec_map_add(&r->by_what, what_key(&last->what), at, err) &&
           rec_map_add(&r->by_first, first_key(&last->first), at, err);
}

bool
sim_rounds_send(struct sim_rounds *r, struct sim_carrier *carrier, uint64_t token,
                uint32_t op, uint32_t exchange, double time, struct rec_error *err)
{
    const struct sim_member *member = sim_carrier_member(carrier, token);
    struct what what = {member->number, exchange};
    uint32_t at = rec_map_get(&r->by_what, what_key(&what));
    struct sim_going *going = at == REC_NONE ? calloc(1, sizeof *going) : r->going[at];
    if (!going)
        return rec_fail_memory(err);
    if (at == REC_NONE) {
        going->what = what;
        going->first = token;
        going->missing = op == NONE ? 1 : count_senders(member->layout, op, exchange);
        if (!enter(r, going, err)) {
            free_going(going);
            return false;
        }
    }
    if (!rec_grow(&going->token, &going->room, going->ntokens + 1, sizeof *going->token,
                  err))
        return false;
    going->token[going->ntokens++] = token;
    return --going->missing > 0 || start(r, carrier, going, time, err);
}

bool
sim_rounds_arrived(struct sim_rounds *r, uint64_t token)
{
    uint32_t at = rec_map_get(&r->by_first, first_key(&token));
    if (at == REC_NONE || r->going[at]->missing > 0)
        return true;
    r->ended[r->nended++] = at;
    return false;
}

static int
compare_falling(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

bool
sim_rounds_advance(struct sim_rounds *r, struct sim_carrier *carrier, double time,
                   sim_arrived *arrived, void *context, struct rec_error *err)
{
    /* From the last one down: what leaves moves only those that are done with. */
    size_t nended = r->nended;
    bool ok = true;
    if (nended > 1)
        qsort(r->ended, nended, sizeof *r->ended, compare_falling);
    r->nended = 0;
    for (size_t i = 0; ok && i < nended; i++) {
        struct sim_going *going = r->going[r->ended[i]];
        if (going->next < going->rounds.n) {
            if (!start_round(r, carrier, going, time, err))
                return false;
            continue;
        }
        if (going->until > time) {
            if (!wait_for(carrier, going, time, err))
                return false;
            continue;
        }
        for (size_t k = 0; k < going->ntokens; k++)
            arrived(context, going->token[k]);
        ok = leave(r, going, err);
        free_going(going);
    }
    return ok;
}

bool
sim_rounds_take(struct sim_rounds *r, struct sim_rounds *from, uint32_t member,
                struct rec_error *err)
{
    for (size_t i = from->n; i-- > 0;) {
        struct sim_going *going = from->going[i];
        if (going->what.member != member)
            continue;
        if (!leave(from, going, err) || !enter(r, going, err)) {
            free_going(going);
            return false;
        }
    }
    return true;
}
