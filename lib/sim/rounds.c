#include "rounds.h"

#include <math.h>
#include <stdlib.h>

#define NONE UINT32_MAX

struct sim_going {
    uint32_t member, exchange;
    uint32_t missing; /* batches that have not left */
    uint64_t *token;  /* of the batches that have; rounds go by the first one */
    size_t ntokens, room;
    struct net_rounds rounds;
    uint32_t next; /* round that has not started */
    double until;  /* it takes at least till then, if its time was measured; else 0 */
    bool ended;    /* the round before has, at this instant */
};

static void
free_going(struct sim_going *going)
{
    net_rounds_free(&going->rounds);
    free(going->token);
}

void
sim_rounds_free(struct sim_rounds *r)
{
    for (size_t i = 0; i < r->n; i++)
        free_going(&r->going[i]);
    free(r->going);
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
    const struct sim_member *member = sim_carrier_member(carrier, going->token[0]);
    const struct net_round *round = &going->rounds.round[going->next++];
    struct net_exchange e;
    struct walk walk = {round, &e, 0};
    struct net_transfer t;
    double latency = 0, start;
    uint32_t batch;

    if (!sim_rounds_exchange(r, member, going->exchange, &e, err) ||
        !sim_carrier_begin(carrier, going->token[0], going->exchange, time, &batch, err))
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
    return sim_carrier_begin(carrier, going->token[0], going->exchange, time, &batch,
                             err) &&
           sim_carrier_wait(carrier, batch, time, until, true, err);
}

/* All batches have left. */
static bool
start(struct sim_rounds *r, struct sim_carrier *carrier, struct sim_going *going,
      double time, struct rec_error *err)
{
    const struct sim_member *member = sim_carrier_member(carrier, going->token[0]);
    struct net_exchange e;
    bool measured;
    if (!sim_rounds_exchange(r, member, going->exchange, &e, err) ||
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

static struct sim_going *
find(struct sim_rounds *r, uint32_t member, uint32_t exchange)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->going[i].member == member && r->going[i].exchange == exchange)
            return &r->going[i];
    return NULL;
}

bool
sim_rounds_send(struct sim_rounds *r, struct sim_carrier *carrier, uint64_t token,
                uint32_t op, uint32_t exchange, double time, struct rec_error *err)
{
    const struct sim_member *member = sim_carrier_member(carrier, token);
    struct sim_going *going = find(r, member->number, exchange);
    if (!going) {
        if (!rec_grow(&r->going, &r->room, r->n + 1, sizeof *r->going, err))
            return false;
        going = &r->going[r->n++];
        *going = (struct sim_going){
            .member = member->number,
            .exchange = exchange,
            .missing = op == NONE ? 1 : count_senders(member->layout, op, exchange)};
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
    for (size_t i = 0; i < r->n; i++)
        if (r->going[i].missing == 0 && r->going[i].token[0] == token) {
            r->going[i].ended = true;
            r->nended++;
            return false;
        }
    return true;
}

bool
sim_rounds_advance(struct sim_rounds *r, struct sim_carrier *carrier, double time,
                   sim_arrived *arrived, void *context, struct rec_error *err)
{
    for (size_t i = r->n; r->nended > 0 && i-- > 0;) {
        struct sim_going *going = &r->going[i];
        if (!going->ended)
            continue;
        going->ended = false;
        r->nended--;
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
        free_going(going);
        *going = r->going[--r->n];
    }
    return true;
}

bool
sim_rounds_take(struct sim_rounds *r, struct sim_rounds *from, uint32_t member,
                struct rec_error *err)
{
    for (size_t i = from->n; i-- > 0;) {
        if (from->going[i].member != member)
            continue;
        if (!rec_grow(&r->going, &r->room, r->n + 1, sizeof *r->going, err))
            return false;
        r->going[r->n++] = from->going[i];
        from->going[i] = from->going[--from->n];
    }
    return true;
}
