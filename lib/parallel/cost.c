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
    double kernels;           /* forward; twice as many backward */
    double known, known_back; /* of the seconds: what a table says */
};

/* Words of which a rank makes scores. Megatron-LM and its relatives fill them up so that
 * each rank has a multiple of 128. */
static double
words(const struct at *at)
{
    if (at->machine->stack->unpadded && at->mix->tp == 1)
        return at->model->t.words;
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

bool
parallel_turned(const struct parallel_mix *mix, const struct parallel_machine *machine)
{
    return mix->blocks || machine->peak[PARALLEL_FP4] <= 0;
}

/*
 * Bytes that casting an element of a product's input moves. The product for the gradient
 * of the weights may need a copy of its own, parallel_turned(). In 4 bits that copy is
 * turned by a Hadamard matrix, from what is read again.
 */
static double
cast_bytes(const struct parallel_mix *mix, const struct parallel_machine *machine,
           enum parallel_precision precision, bool weights)
{
    switch (precision) {
    case PARALLEL_BF16: return 0;
    case PARALLEL_FP8:
        return ELEMENT + (weights && parallel_turned(mix, machine) ? 2 : 1);
    default: return (ELEMENT + 0.5625) * (weights ? 2 : 1);
    }
}

static double
time_cast(const struct at *at, const struct parallel_product *p, bool weights)
{
    return parallel_move(at->machine,
                         p->count * p->m * p->k *
                             cast_bytes(at->mix, at->machine, p->precision, weights));
}

/* Backward multiplies twice: for the gradient of the input, and of the weights. */
static struct op_time
time_product(const struct at *at, const struct parallel_op *op)
{
    struct parallel_product p = product_of(at, op), input = p, weight = p;
    bool trained = !parallel_frozen(at->mix, op);
    struct op_time t = {.kernels = 1};
    input.pass = KERNEL_INPUT, weight.pass = KERNEL_WEIGHT;
    input.k = p.n, input.n = p.k;
    weight.m = p.k, weight.k = p.m, weight.n = p.n;
    weight.accumulate = true;
    t.forward = parallel_product(at->machine, &p, &t.known) + time_cast(at, &p, trained);
    t.backward = parallel_product(at->machine, &input, &t.known_back) +
                 time_cast(at, &input, trained) +
                 (trained ? parallel_product(at->machine, &weight, &t.known_back) : 0);
    return t;
}

bool
parallel_adapted(const struct parallel_mix *mix, const struct parallel_op *op)
{
    static const struct {
        const char *name;
        unsigned on;
    } places[] = {
        {"QKV", PARALLEL_ADAPT_QKV},    {"Q up", PARALLEL_ADAPT_QKV},
        {"KV up", PARALLEL_ADAPT_QKV},  {"projection", PARALLEL_ADAPT_PROJECTION},
        {"MLP up", PARALLEL_ADAPT_MLP}, {"MLP down", PARALLEL_ADAPT_MLP}};
    for (size_t i = 0; mix->lora > 0 && i < sizeof places / sizeof *places; i++)
        if (strcmp(op->name, places[i].name) == 0)
            return mix->adapters & places[i].on;
    return false;
}

/*
 * An adapter of rank r multiplies an input of k elements by k x r and r x n: so little,
 * unless r is large, that its bytes decide (Hu et al., "LoRA", 2021, with dropout).
 * Elements moved forward:
 * dropout reads and writes k and writes a mask of a byte, the first product reads k; the
 * second writes n, the sum reads two and writes one of n. Backward: both products read
 * the gradient of n; the gradient of the first weights reads k; that of the input is
 * written, masked (read, written, the mask) and added (read twice, written).
 */
static struct op_time
time_adapter(const struct at *at, const struct parallel_op *op)
{
    struct parallel_product p = product_of(at, op);
    double forward = 3.5 * p.k + 4 * p.n, backward = 7.5 * p.k + 2 * p.n;
    double products = 2 * p.m * at->mix->lora * (op->k + op->n) / at->mix->tp /
                      (at->machine->peak[PARALLEL_BF16] * at->machine->stack->share);
    return (struct op_time){
        fmax(parallel_move(at->machine, ELEMENT * p.count * p.m * forward), products),
        fmax(parallel_move(at->machine, ELEMENT * p.count * p.m * backward),
             2 * products),
        4, 0, 0};
}

/* Keys for which a query computes scores, on the full square. */
static double
keys(const struct at *at, const struct parallel_kind *kind)
{
    double n = at->model->sequence, w = kind->window;
    /* the full square of a window is twice what its mask leaves */
    return w > 0 && w < n ? 2 * (w - w * w / (2 * n)) : n;
}

/*
 * Kernels of causal attention are slow on short sequences: the blocks on the diagonal are
 * computed whole, and blocks start and end. The measured kernels of A100, H100 and B200
 * follow s / (s + 800) within 7 %; those that multiply in 8 bits are 1.26 times as fast,
 * not twice (../shared/golden/measured/attention-forward.tsv, products above 0.2 TFLOP).
 */
static double
attention_rate(const struct at *at, const struct parallel_kind *kind)
{
    static const double start = 800, in_8_bits = 1.26;
    double s = at->model->sequence / (at->mix->deal_heads ? 1 : at->mix->cp);
    double w = kind->window;
    double rate = at->machine->peak[PARALLEL_BF16] * at->machine->stack->attention;
    s = w > 0 && w < s ? w : s;
    return rate * s / (s + start) * (at->mix->attention_fp8 ? in_8_bits : 1);
}

static struct op_time
time_attention(const struct at *at, const struct parallel_kind *kind,
               const struct parallel_op *op)
{
    double heads = (double)at->model->t.heads / at->mix->tp;
    double flops = 2 * at->tokens * keys(at, kind) * heads * (op->k + op->n);
    double seconds = flops / attention_rate(at, kind);
    struct op_time t = {seconds, 2.5 * seconds, 1, 0, 0};
    t.known = parallel_measured_attention(at->model, at->mix, at->machine, kind, op,
                                          KERNEL_FORWARD);
    t.known_back = parallel_measured_attention(at->model, at->mix, at->machine, kind, op,
                                               KERNEL_BACKWARD);
    t.forward = t.known > 0 ? t.known : t.forward;
    t.backward = t.known_back > 0 ? t.known_back : t.backward;
    return t;
}

/* A product for each sequence and head: on a context rank for its queries, or for all
 * queries of the heads that it was dealt. */
static struct op_time
time_scores(const struct at *at, const struct parallel_op *op)
{
    double s = at->model->sequence, cp = at->mix->cp,
           dealt = at->mix->deal_heads ? cp : 1;
    struct parallel_product p = {
        .m = s * dealt / cp, .k = op->k, .n = s, .batched = true};
    double t, none = 0;
    p.count = at->mix->micro * at->model->t.heads / (at->mix->tp * dealt);
    if (strcmp(op->name, "values") == 0)
        p.k = s, p.n = op->k;
    t = parallel_product(at->machine, &p, &none);
    return (struct op_time){t, 2 * t, 1, 0, 0};
}

bool
parallel_softmax_joined(const struct parallel_model *model,
                        const struct parallel_mix *mix)
{
    uint64_t ranks = (uint64_t)mix->tp * (mix->deal_heads ? mix->cp : 1);
    return (uint64_t)mix->micro * model->t.heads / ranks % 4 == 0;
}

/*
 * Softmax as ops of PyTorch (forward_torch_softmax() of Megatron-LM): a cast to 32 bits,
 * a product with the scale, the mask, softmax and a cast back. They move 6 + 8 + 8 + 8 +
 * 6 bytes a score, and backward 6 + 8 + 8 + 12 + 6; the kernel that joins them moves 4
 * and 6.
 */
static const double softmax_more = 32, softmax_more_back = 34;
enum { SOFTMAX_KERNELS = 5 };

static struct op_time
time_move(const struct at *at, const struct parallel_op *op)
{
    double by = parallel_divided(op->split, at->mix);
    double n = at->tokens * (op->matched ? at->model->sequence : 1) / by;
    double moved = ELEMENT * op->moved, back = ELEMENT * op->moved_back;
    double kernels = op->kernels;
    if (op->matched && !parallel_softmax_joined(at->model, at->mix)) {
        moved += softmax_more * at->model->t.heads;
        back += softmax_more_back * at->model->t.heads;
        kernels = SOFTMAX_KERNELS;
    }
    return (struct op_time){parallel_move(at->machine, n * moved),
                            parallel_move(at->machine, n * back), kernels, 0, 0};
}

double
parallel_weight_cast(const struct parallel_mix *mix,
                     const struct parallel_machine *machine)
{
    double bytes = cast_bytes(mix, machine, mix->precision, true);
    /* what is gathered in 8 bits is cast already, and perhaps turned */
    return mix->gather_fp8 && mix->precision == PARALLEL_FP8 ? 2 * (bytes - 3) : bytes;
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
        if (parallel_adapted(at->mix, op)) {
            struct op_time more = time_adapter(at, op);
            forward->moves += more.forward;
            backward->moves += more.backward;
            t.kernels += more.kernels;
        }
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
    forward->measured += t.known;
    backward->measured += t.known_back;
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

void
parallel_segment_times(const struct parallel_model *model, const struct parallel_mix *mix,
                       const struct parallel_machine *machine,
                       const struct parallel_kind *kind,
                       double forward[PARALLEL_SEGMENTS],
                       double backward[PARALLEL_SEGMENTS])
{
    struct at at = {model, mix, machine, parallel_tokens(model, mix)};
    double kernels = 0;
    for (unsigned i = 0; i < PARALLEL_SEGMENTS; i++)
        forward[i] = backward[i] = 0;
    for (unsigned i = 0; i < kind->nops; i++) {
        struct parallel_parts one = {0}, back = {0};
        add_op(&at, kind, &kind->op[i], &one, &back, &kernels);
        forward[kind->op[i].segment] += parallel_parts_sum(&one);
        backward[kind->op[i].segment] += parallel_parts_sum(&back);
    }
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
        if (parallel_runs_again(mix, op, products))
            add_op(&at, kind, op, again, &ignored, &kernels);
        products += op->does == PARALLEL_PRODUCT;
    }
    return kernels;
}
