/*
 * A pass of a layer that is cut at what its tensor, context and expert groups exchange.
 *
 *     forward   norm | gather | queries  keys  attention  projection | reduce | norm ...
 *
 * An exchange that blocks begins behind the op before it, and the next op waits for it.
 * Of one that overlaps, the stack's exposed share blocks, and the rest runs beside: what
 * is gathered beside the ops that read it, what is reduced beside the ops that make it,
 * keys and values beside attention. The ops behind them wait for the rest, so that it
 * holds them up if it takes longer than the ops that it runs beside.
 */
#include "program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WAITS = 8, NAME_ROOM = 12 };

struct cutting {
    struct parallel_making *mk;
    const struct parallel_item *item;
    uint32_t stage, j, n; /* layer j of n of the stage */
    bool last;            /* of the pass */
    bool ok;
    double work;  /* seconds that have no node yet */
    double spent; /* seconds of all work of the layer */
    double flops; /* of the layer */
    unsigned nodes;
    int64_t wait[WAITS]; /* exchanges that the next node waits for */
    unsigned nwaits;
    struct parallel_traffic traffic;
};

/* ---- ops and exchanges ------------------------------------------------- */

static void
work(struct cutting *c, double seconds)
{
    c->work += seconds;
    c->spent += seconds;
}

static void
wait_for(struct cutting *c, int64_t exchange)
{
    if (exchange != PARALLEL_NONE && c->nwaits < WAITS)
        c->wait[c->nwaits++] = exchange;
}

/* An op of the work so far. */
static void
flush(struct cutting *c, bool end)
{
    struct parallel_node *node;
    char inner[NAME_ROOM] = "";
    uint32_t index;
    if (!c->ok)
        return;
    if (!end)
        snprintf(inner, sizeof inner, ".%u", c->nodes);
    node = parallel_add_pass_node(c->mk, c->item, c->stage,
                                  end && c->last ? UINT32_MAX : c->j, inner, c->work);
    if (!node) {
        c->ok = false;
        return;
    }
    node->flops = end ? c->flops : 0;
    index = parallel_node_index(c->mk, node);
    for (unsigned i = 0; i < c->nwaits && c->ok; i++)
        c->ok = parallel_await_one(c->mk, c->wait[i], index);
    c->nwaits = 0;
    c->work = 0;
    c->nodes++;
}

/* Begins an exchange behind the work so far. */
static int64_t
begin(struct cutting *c, enum parallel_group group, const char *what, const char *kind,
      double bytes)
{
    int64_t which = PARALLEL_NONE;
    if (!c->ok || bytes <= 0 || parallel_group_size(c->mk, group) < 2)
        return which;
    if (c->nodes == 0 || c->work > 0)
        flush(c, false);
    c->ok = c->ok && parallel_exchange_behind(c->mk, what, kind, group, bytes,
                                              c->mk->before[0], &which);
    return which;
}

/* One that the next op waits for. */
static void
block(struct cutting *c, enum parallel_group group, const char *what, const char *kind,
      double bytes)
{
    if (c->ok && bytes > 0 && c->nwaits > 0 && parallel_group_size(c->mk, group) > 1)
        flush(c, false); /* one after the other */
    wait_for(c, begin(c, group, what, kind, bytes));
}

/* Those that were begun must be over now. */
static void
await(struct cutting *c, const int64_t *which, unsigned n)
{
    bool any = false;
    for (unsigned i = 0; i < n; i++)
        any = any || which[i] != PARALLEL_NONE;
    if (any && c->work > 0)
        flush(c, false);
    for (unsigned i = 0; i < n; i++)
        wait_for(c, which[i]);
}

/* The share of an exchange that blocks. */
static double
exposed(const struct cutting *c, unsigned overlap)
{
    const struct parallel_question *q = c->mk->q;
    return q->mix.overlap & overlap ? fmin(1, parallel_exposed(&q->mix, &q->machine)) : 1;
}

/* ---- halves of a layer -------------------------------------------------- */

/* What is around the ops of a tensor group: beside[] are those that run beside them. */
static void
open_tensor(struct cutting *c, int64_t beside[2])
{
    double bytes = c->traffic.tensor, x = exposed(c, PARALLEL_OVERLAP_TP);
    bool sequence = c->mk->q->mix.sequence;
    beside[0] = beside[1] = PARALLEL_NONE;
    if (!(c->mk->inner & PARALLEL_OVERLAP_TP))
        return;
    if (sequence) {
        block(c, PARALLEL_TENSOR, "tp-gather", "all-gather", x * bytes);
        beside[0] =
            begin(c, PARALLEL_TENSOR, "tp-gather-beside", "all-gather", (1 - x) * bytes);
    }
    beside[1] = begin(c, PARALLEL_TENSOR, "tp-reduce-beside",
                      sequence ? "reduce-scatter" : "all-reduce", (1 - x) * bytes);
}

static void
close_tensor(struct cutting *c, const int64_t beside[2])
{
    double bytes = c->traffic.tensor, x = exposed(c, PARALLEL_OVERLAP_TP);
    if (!(c->mk->inner & PARALLEL_OVERLAP_TP))
        return;
    block(c, PARALLEL_TENSOR, "tp-reduce",
          c->mk->q->mix.sequence ? "reduce-scatter" : "all-reduce", x * bytes);
    await(c, beside, 2);
}

/* Keys and values go round while attention is computed; backward their gradients do,
 * too. */
static void
ring(struct cutting *c, double core, bool backward)
{
    double bytes = c->traffic.keys, x = exposed(c, PARALLEL_OVERLAP_CP);
    int64_t beside[2] = {PARALLEL_NONE, PARALLEL_NONE};
    block(c, PARALLEL_CONTEXT, "cp-gather", "all-gather", x * bytes);
    if (backward)
        block(c, PARALLEL_CONTEXT, "cp-reduce", "reduce-scatter", x * bytes);
    if (x < 1) {
        beside[0] =
            begin(c, PARALLEL_CONTEXT, "cp-gather-beside", "all-gather", (1 - x) * bytes);
        if (backward)
            beside[1] = begin(c, PARALLEL_CONTEXT, "cp-reduce-beside", "reduce-scatter",
                              (1 - x) * bytes);
    }
    work(c, core);
    await(c, beside, 2);
}

static void
attention_half(struct cutting *c, const double *segment, bool backward)
{
    double first = segment[backward ? PARALLEL_PROJECTION : PARALLEL_QUERIES];
    double core = segment[PARALLEL_CORE];
    int64_t beside[2];
    open_tensor(c, beside);
    work(c, first);
    if (!(c->mk->inner & PARALLEL_OVERLAP_CP))
        work(c, core);
    else if (!c->mk->q->mix.deal_heads)
        ring(c, core, backward);
    else {
        block(c, PARALLEL_CONTEXT, "cp-deal", "all-to-all",
              backward ? c->traffic.result : c->traffic.keys);
        work(c, core);
        block(c, PARALLEL_CONTEXT, "cp-deal", "all-to-all",
              backward ? c->traffic.keys : c->traffic.result);
    }
    work(c, segment[backward ? PARALLEL_QUERIES : PARALLEL_PROJECTION]);
    close_tensor(c, beside);
}

static void
mlp_half(struct cutting *c, const struct parallel_kind *kind, const double *segment,
         bool backward)
{
    const struct parallel_question *q = c->mk->q;
    bool tensor = parallel_tensor_times(&q->model, &q->mix, kind) > 1;
    double x = exposed(c, PARALLEL_OVERLAP_EP);
    double bytes =
        c->mk->inner & PARALLEL_OVERLAP_EP && kind->experts ? c->traffic.dispatched : 0;
    int64_t beside[2], tokens[2];
    if (tensor)
        open_tensor(c, beside);
    work(c, segment[backward ? PARALLEL_RETURN : PARALLEL_ROUTE]);
    block(c, PARALLEL_EXPERT, "ep-dispatch", "all-to-all", x * bytes);
    tokens[0] =
        begin(c, PARALLEL_EXPERT, "ep-dispatch-beside", "all-to-all", (1 - x) * bytes);
    tokens[1] =
        begin(c, PARALLEL_EXPERT, "ep-combine-beside", "all-to-all", (1 - x) * bytes);
    work(c, segment[PARALLEL_MLP]);
    block(c, PARALLEL_EXPERT, "ep-combine", "all-to-all", x * bytes);
    await(c, tokens, 2);
    work(c, segment[backward ? PARALLEL_ROUTE : PARALLEL_RETURN]);
    if (tensor)
        close_tensor(c, beside);
}

static void
one_way(struct cutting *c, const struct parallel_kind *kind, const double *segment,
        bool backward)
{
    work(c, segment[backward ? PARALLEL_BEHIND : PARALLEL_BEFORE]);
    if (backward)
        mlp_half(c, kind, segment, true);
    else
        attention_half(c, segment, false);
    work(c, segment[PARALLEL_MIDDLE]);
    if (backward)
        attention_half(c, segment, true);
    else
        mlp_half(c, kind, segment, false);
    work(c, segment[backward ? PARALLEL_BEFORE : PARALLEL_BEHIND]);
}

/* ---- a layer ------------------------------------------------------------ */

/* Seconds of a pass without the exchanges that it is cut at. */
static double
computed(const struct parallel_making *mk, const struct parallel_passes *p, unsigned pass)
{
    const struct parallel_parts *parts =
        pass == PARALLEL_FORWARD ? &p->forward : &p->backward;
    return parallel_part_seconds(mk, p, pass) -
           (mk->inner & PARALLEL_OVERLAP_TP ? parts->tensor : 0) -
           (mk->inner & PARALLEL_OVERLAP_CP ? parts->context : 0) -
           (mk->inner & PARALLEL_OVERLAP_EP ? parts->expert : 0);
}

static const struct parallel_cut *
cut_of(struct parallel_making *mk, const struct parallel_kind *kind)
{
    struct parallel_cut *cut = &mk->cut[kind - mk->q->model.kind];
    const struct parallel_question *q = mk->q;
    struct parallel_mix mix = q->mix;
    double ignored[PARALLEL_SEGMENTS];
    if (cut->known)
        return cut;
    parallel_segment_times(&q->model, &mix, &q->machine, kind, cut->forward,
                           cut->backward);
    if (mk->split) { /* gradients of weights are passes of their own */
        mix.frozen = PARALLEL_PART_ALL;
        parallel_segment_times(&q->model, &mix, &q->machine, kind, ignored,
                               cut->backward);
    }
    if (mix.recompute == PARALLEL_SELECTIVE || mix.recompute == PARALLEL_HALF) {
        struct parallel_parts again;
        parallel_again_time(&q->model, &q->mix, &q->machine, kind, &again);
        cut->again = parallel_parts_sum(&again);
    }
    cut->known = true;
    return cut;
}

static void
cut_layer(struct cutting *c)
{
    struct parallel_making *mk = c->mk;
    const struct parallel_question *q = mk->q;
    struct parallel_chunk chunk = parallel_chunk_of(&q->mix, &q->model, c->stage);
    const struct parallel_kind *kind = &q->model.kind[q->model.of[chunk.first + c->j]];
    const struct parallel_cut *cut = cut_of(mk, kind);
    const struct parallel_passes *passes =
        parallel_times_kind(mk->times, &q->model, &q->mix, c->stage, c->j);
    bool backward = c->item->pass == PARALLEL_BACKWARD;
    double before = c->spent;
    if (backward && q->mix.recompute == PARALLEL_FULL &&
        c->j < parallel_again(&q->mix, c->stage))
        one_way(c, kind, cut->forward, false);
    else if (backward)
        work(c, cut->again);
    one_way(c, kind, backward ? cut->backward : cut->forward, backward);
    /* what the host adds, and exchanges that it is not cut at */
    work(c, fmax(0, computed(mk, passes, c->item->pass) - (c->spent - before)));
}

/* The embedding, forward, and the head, backward, exchange activations. */
static void
cut_end(struct cutting *c, uint32_t number, bool exchanges)
{
    struct parallel_making *mk = c->mk;
    double bytes = c->traffic.tensor;
    work(c, computed(mk, &mk->times->kind[number], c->item->pass));
    if (!exchanges || !(mk->inner & PARALLEL_OVERLAP_TP))
        return;
    if (mk->q->mix.sequence)
        block(c, PARALLEL_TENSOR, "tp-gather", "all-gather", bytes);
    block(c, PARALLEL_TENSOR, "tp-reduce",
          mk->q->mix.sequence ? "reduce-scatter" : "all-reduce", bytes);
}

bool
parallel_cut_pass(struct parallel_making *mk, const struct parallel_item *item,
                  uint32_t stage, uint32_t j, bool last)
{
    const struct parallel_question *q = mk->q;
    struct parallel_chunk chunk = parallel_chunk_of(&q->mix, &q->model, stage);
    bool forward = item->pass == PARALLEL_FORWARD;
    struct cutting c = {
        .mk = mk,
        .item = item,
        .stage = stage,
        .j = j,
        .n = chunk.layers,
        .last = last,
        .ok = true,
        .flops = parallel_pass_flops(mk, item->pass, stage, j, chunk.layers > 0 ? 1 : 0),
        .traffic = parallel_traffic_of(&q->model, &q->mix)};
    bool embedding = chunk.embedding && j == 0;
    bool head = chunk.head && (chunk.layers == 0 || j == chunk.layers - 1);
    uint32_t before[] = {mk->before[0], mk->before[1]};
    if (embedding && forward)
        cut_end(&c, q->model.nkinds, true);
    if (head && !forward)
        cut_end(&c, q->model.nkinds + 1, true);
    if (chunk.layers > 0)
        cut_layer(&c);
    if (embedding && !forward)
        cut_end(&c, q->model.nkinds, false);
    if (head && forward)
        cut_end(&c, q->model.nkinds + 1, false);
    if (last)
        work(&c, parallel_blocked(mk, item->pass, stage));
    flush(&c, true);
    /* for what counts layers, it is one op */
    mk->before[1] = before[0];
    mk->before[2] = before[1];
    return c.ok;
}
