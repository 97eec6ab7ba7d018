/* How long the layers of a virtual stage take for one microbatch, forward and backward,
 * and what they exchange. */
#include "private.h"

#include <math.h>
#include <string.h>

enum { ELEMENT = 2 };

/* ---- ops ------------------------------------------------------------------- */

struct at {
    const struct parallel_model *model;
    const struct parallel_mix *mix;
    const struct parallel_machine *machine;
    double tokens; /* of a microbatch, on a rank */
};

/* Seconds of an op by pass. */
struct op_time {
    double forward, backward;
    double kernels; /* forward; twice as many backward */
};

static double
words(const struct at *at)
{
    /* The vocabulary is filled up so that each rank has a multiple of 128 words. */
    return 128 * ceil(at->model->t.words / (128.0 * at->mix->tp));
}

/* The product of an op on one rank. */
static struct parallel_product
product_of(const struct at *at, const struct parallel_op *op)
{
    const struct parallel_mix *mix = at->mix;
    struct parallel_product p = {
        .m = at->tokens * op->rows, .k = op->k, .n = op->n, .count = 1};
    switch (op->split) {
    case PARALLEL_TOKENS: p.m /= parallel_divided(PARALLEL_TOKENS, mix); break;
    case PARALLEL_COLUMNS:
        p.n = (op->n - op->kv) / mix->tp + op->kv / parallel_divided_kv(at->model, mix);
        break;
    case PARALLEL_INNER: p.k /= mix->tp; break;
    case PARALLEL_VOCABULARY: p.n = words(at); break;
    case PARALLEL_EXPERTS:
    case PARALLEL_EXPERTS_INNER:
        p.count = (double)at->model->t.experts / mix->ep;
        p.m *= (double)mix->etp / mix->tp / p.count;
        if (p.m < 1) /* not every expert of the rank gets a token */
            p.count *= p.m, p.m = 1;
        if (op->split == PARALLEL_EXPERTS)
            p.n /= mix->etp;
        else
            p.k /= mix->etp;
        break;
    default: break;
    }
    if (op->split != PARALLEL_VOCABULARY && op->split != PARALLEL_TOKENS)
        p.precision = mix->precision;
    return p;
}

static double
time_cast(const struct at *at, const struct parallel_product *p)
{
    double element = p->precision == PARALLEL_FP8 ? 1 : 0.5625;
    return p->precision == PARALLEL_BF16
               ? 0
               : parallel_move(at->machine, p->count * p->m * p->k * (2 + element));
}

/* Backward multiplies twice: for the gradient of the input, and of the weights. */
static struct op_time
time_product(const struct at *at, const struct parallel_op *op)
{
    struct parallel_product p = product_of(at, op), input = p, weight = p;
    double forward = parallel_product(at->machine, &p) + time_cast(at, &p);
    input.k = p.n, input.n = p.k;
    weight.m = p.k, weight.k = p.m, weight.n = p.n;
    weight.accumulate = true;
    return (struct op_time){
        forward,
        parallel_product(at->machine, &input) + time_cast(at, &input) +
            (parallel_frozen(at->mix, op) ? 0 : parallel_product(at->machine, &weight)),
        1,
    };
}

/* Keys for which a query computes scores, on the full square. */
static double
keys(const struct at *at, const struct parallel_kind *kind)
{
    double n = at->model->sequence, w = kind->window;
    /* the full square of a window is twice what its mask leaves */
    return w > 0 && w < n ? 2 * (w - w * w / (2 * n)) : n;
}

static struct op_time
time_attention(const struct at *at, const struct parallel_kind *kind,
               const struct parallel_op *op)
{
    double heads = (double)at->model->t.heads / at->mix->tp;
    double flops = 2 * at->tokens * keys(at, kind) * heads * (op->k + op->n);
    double peak =
        at->machine->peak[at->mix->attention_fp8 ? PARALLEL_FP8 : PARALLEL_BF16];
    double rate = peak * at->machine->stack->attention;
    return (struct op_time){flops / rate, 2.5 * flops / rate, 1};
}

/* A product for each sequence and head. */
static struct op_time
time_scores(const struct at *at, const struct parallel_op *op)
{
    double s = at->model->sequence;
    struct parallel_product p = {.m = s, .k = op->k, .n = s};
    double t;
    p.count = at->mix->micro * at->model->t.heads / (double)at->mix->tp;
    if (strcmp(op->name, "values") == 0)
        p.k = s, p.n = op->k;
    t = parallel_product(at->machine, &p);
    return (struct op_time){t, 2 * t, 1};
}

static struct op_time
time_move(const struct at *at, const struct parallel_op *op)
{
    double by = parallel_divided(op->split, at->mix);
    double n = at->tokens * ELEMENT * (op->matched ? at->model->sequence : 1) / by;
    return (struct op_time){parallel_move(at->machine, n * op->moved),
                            parallel_move(at->machine, n * op->moved_back), 1};
}

/* ---- layers ---------------------------------------------------------------- */

static void
add_op(const struct at *at, const struct parallel_kind *kind,
       const struct parallel_op *op, struct parallel_parts *forward,
       struct parallel_parts *backward, double *kernels)
{
    struct op_time t;
    switch (op->does) {
    case PARALLEL_PRODUCT:
        t = time_product(at, op);
        forward->products += t.forward;
        backward->products += t.backward;
        break;
    case PARALLEL_ATTENTION:
        t = time_attention(at, kind, op);
        forward->attention += t.forward;
        backward->attention += t.backward;
        break;
    case PARALLEL_SCORES:
        t = time_scores(at, op);
        forward->attention += t.forward;
        backward->attention += t.backward;
        break;
    default:
        t = time_move(at, op);
        forward->moves += t.forward;
        backward->moves += t.backward;
    }
    *kernels += t.kernels;
}

double
parallel_layer_time(const struct parallel_model *model, const struct parallel_mix *mix,
                    const struct parallel_machine *machine,
                    const struct parallel_kind *kind, struct parallel_parts *forward,
                    struct parallel_parts *backward)
{
    struct at at = {model, mix, machine, parallel_tokens(model, mix)};
    double kernels = 0;
    memset(forward, 0, sizeof *forward);
    memset(backward, 0, sizeof *backward);
    for (unsigned i = 0; i < kind->nops; i++)
        add_op(&at, kind, &kind->op[i], forward, backward, &kernels);
    return kernels;
}

double
parallel_again_time(const struct parallel_model *model, const struct parallel_mix *mix,
                    const struct parallel_machine *machine,
                    const struct parallel_kind *kind, struct parallel_parts *again)
{
    struct at at = {model, mix, machine, parallel_tokens(model, mix)};
    struct parallel_parts ignored = {0};
    double kernels = 0;
    unsigned products = 0;
    memset(again, 0, sizeof *again);
    for (unsigned i = 0; i < kind->nops; i++) {
        const struct parallel_op *op = &kind->op[i];
        bool core = op->core || op->does == PARALLEL_SCORES;
        bool product = op->does == PARALLEL_PRODUCT;
        if (mix->recompute == PARALLEL_FULL ||
            (mix->recompute == PARALLEL_SELECTIVE && core) ||
            (mix->recompute == PARALLEL_HALF && (!product || products % 2 == 1)))
            add_op(&at, kind, op, again, &ignored, &kernels);
        products += product;
    }
    return kernels;
}
