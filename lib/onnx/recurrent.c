/* The operators RNN, GRU and LSTM. Each of their steps is a product of input and state
 * with the weights of all gates, followed by the gates' functions, element by element.
 * The cells are as onnx.ai defines them. */
#include "private.h"

#include <stdio.h>
#include <strings.h>

enum { X, W, R, B, LENGTHS, STATE_H, STATE_C, PEEPHOLES, INPUTS };

/* A kind of cell. Operations are counted per element of its state and per step. */
struct cell {
    const char *name;
    int64_t gates;
    size_t inputs, outputs; /* the most that its operator has */
    double sums;            /* products and sums, except those with weights */
    size_t nfunctions;
    const char *function[3]; /* the functions if the node names no others */
    double times[3];         /* how many gates apply each function */
};

static const struct cell cells[] = {
    {"RNN", 1, STATE_H + 1, 2, 0, 1, {"Tanh"}, {1}},
    /* r * h; (1 - z) * n + z * h */
    {"GRU", 3, STATE_H + 1, 2, 5, 2, {"Sigmoid", "Tanh"}, {2, 1}},
    /* f * c + i * n; o * tanh(c) */
    {"LSTM", 4, INPUTS, 3, 4, 3, {"Sigmoid", "Tanh", "Tanh"}, {3, 1, 1}},
};

/* Operations per element of the functions that a node may name. Functions that are also
 * operators take as many as those do (operators.c). */
static const struct function {
    const char *name;
    double each;
} functions[] = {
    {"Relu", 1},     {"Tanh", 8},      {"Sigmoid", 4},    {"HardSigmoid", 1},
    {"Affine", 2},   {"LeakyRelu", 1}, {"Elu", 4},        {"ThresholdedRelu", 1},
    {"Softsign", 3}, {"Softplus", 8},  {"ScaledTanh", 10}};

struct recurrence {
    const struct cell *cell;
    int64_t steps, samples, width, state, directions;
    bool samples_first;
};

static bool
is_shape(const struct onnx_tensor *tensor, uint32_t rank, int64_t a, int64_t b, int64_t c)
{
    const int64_t dim[3] = {a, b, c};
    if (tensor->rank != rank)
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (tensor->dim[i] != dim[i])
            return false;
    return true;
}

static bool
read_directions(struct onnx_node *node, struct recurrence *r)
{
    const Onnx__Attribute *said = onnx_attribute(node->message, "direction");
    static const struct {
        const char *name;
        int64_t n;
    } directions[] = {{"forward", 1}, {"reverse", 1}, {"bidirectional", 2}};
    r->directions = said ? 0 : 1;
    for (size_t i = 0; said && i < 3; i++)
        if (said->s.len == strlen(directions[i].name) &&
            memcmp(said->s.data, directions[i].name, said->s.len) == 0)
            r->directions = directions[i].n;
    return r->directions > 0 ||
           onnx_fail(node, "direction must be forward, reverse or bidirectional");
}

/* Checks the shape of an input, unless the node leaves it out. `shape` has `rank` sizes
 * that count. */
static bool
check_input(struct onnx_node *node, size_t i, const char *name, uint32_t rank,
            const int64_t shape[3])
{
    const struct onnx_tensor *in = onnx_in(node, i);
    if (!in || is_shape(in, rank, shape[0], shape[1], shape[2]))
        return true;
    if (rank == 1)
        return onnx_fail(node, "%s must have %lld elements", name, (long long)shape[0]);
    if (rank == 2)
        return onnx_fail(node, "%s must be %lld by %lld", name, (long long)shape[0],
                         (long long)shape[1]);
    return onnx_fail(node, "%s must be %lld by %lld by %lld", name, (long long)shape[0],
                     (long long)shape[1], (long long)shape[2]);
}

static bool
check_inputs(struct onnx_node *node, const struct recurrence *r)
{
    const int64_t gates = r->cell->gates * r->state, d = r->directions;
    const int64_t w[3] = {d, gates, r->width}, back[3] = {d, gates, r->state};
    const int64_t b[3] = {d, 2 * gates, 0}, lengths[3] = {r->samples, 0, 0};
    const int64_t peepholes[3] = {d, 3 * r->state, 0};
    int64_t state[3] = {d, r->samples, r->state};
    if (r->samples_first) {
        state[0] = r->samples;
        state[1] = d;
    }
    for (size_t i = r->cell->inputs; i < node->nin; i++)
        if (onnx_in(node, i))
            return onnx_fail(node, "it has more than %zu inputs", r->cell->inputs);
    return check_input(node, W, "W", 3, w) && check_input(node, R, "R", 3, back) &&
           check_input(node, B, "B", 2, b) &&
           check_input(node, LENGTHS, "sequence_lens", 1, lengths) &&
           check_input(node, STATE_H, "initial_h", 3, state) &&
           check_input(node, STATE_C, "initial_c", 3, state) &&
           check_input(node, PEEPHOLES, "P", 2, peepholes);
}

static bool
read_recurrence(struct onnx_node *node, struct recurrence *r)
{
    /* the largest state, so that products of it and of small numbers do not overflow */
    enum { STATE_MAX = 1 << 30 };
    const struct onnx_tensor *x = onnx_in(node, X), *w = onnx_in(node, W),
                             *back = onnx_in(node, R);
    while (strcmp(r->cell->name, node->op->name) != 0)
        r->cell++;
    r->samples_first = onnx_integer(node->message, "layout", 0) != 0;
    if (!x || !w || !back || x->rank != 3 || back->rank != 3)
        return onnx_fail(node, "X, W and R must be there, of 3 dimensions each");
    r->steps = x->dim[r->samples_first ? 1 : 0];
    r->samples = x->dim[r->samples_first ? 0 : 1];
    r->width = x->dim[2];
    r->state = back->dim[2];
    if (r->state < 1 || r->state > STATE_MAX ||
        onnx_integer(node->message, "hidden_size", r->state) != r->state)
        return onnx_fail(node, "hidden_size must be the last dimension of R, %lld",
                         (long long)r->state);
    if (onnx_integer(node->message, "input_forget", 0) != 0)
        return onnx_fail(node, "gates that are coupled by input_forget are not covered");
    return read_directions(node, r) && check_inputs(node, r);
}

/* The first output, Y, has the states after all steps; Y_h and Y_c have the state after
 * the last one. */
static bool
shape_states(struct onnx_node *node, const struct recurrence *r)
{
    struct onnx_tensor *out = &node->out;
    bool all = node->output == 0;
    if (node->output >= r->cell->outputs)
        return onnx_fail(node, "it has more than %zu outputs", r->cell->outputs);
    if (r->samples_first)
        out->dim[out->rank++] = r->samples;
    if (all)
        out->dim[out->rank++] = r->steps;
    out->dim[out->rank++] = r->directions;
    if (!r->samples_first)
        out->dim[out->rank++] = r->samples;
    out->dim[out->rank++] = r->state;
    return onnx_count(out) || onnx_fail(node, "its output has too many elements");
}

/* Finds the operations per element of function i. The list of names is that of the first
 * direction, followed by that of the second. False: the function is not known, *err. */
static bool
read_function(struct onnx_node *node, const struct recurrence *r, size_t i, double *each)
{
    const Onnx__Attribute *said = onnx_attribute(node->message, "activations");
    const char *usual = r->cell->function[i % r->cell->nfunctions];
    ProtobufCBinaryData name = {strlen(usual), (uint8_t *)(uintptr_t)usual};
    char text[ONNX_NAME_MAX], clean[ONNX_NAME_MAX];
    if (said && said->n_strings > 0) {
        if (said->n_strings != r->cell->nfunctions * (size_t)r->directions)
            return onnx_fail(node, "activations must be a list of %zu, got %zu",
                             r->cell->nfunctions * (size_t)r->directions,
                             said->n_strings);
        name = said->strings[i];
    }
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (name.len == strlen(functions[k].name) &&
            strncasecmp((const char *)name.data, functions[k].name, name.len) == 0) {
            *each = functions[k].each;
            return true;
        }
    snprintf(text, sizeof text, "%.*s", (int)(name.len < 60 ? name.len : 60),
             name.len ? (const char *)name.data : "");
    return onnx_fail(node, "the activation '%s' is not known", onnx_clean(text, clean));
}

/* Sums up the operations of the functions on the whole state of one sample, in one step,
 * in all directions. */
static bool
count_functions(struct onnx_node *node, const struct recurrence *r, double *sum)
{
    double each = 0;
    *sum = 0;
    for (size_t i = 0; i < r->cell->nfunctions * (size_t)r->directions; i++) {
        if (!read_function(node, r, i, &each))
            return false;
        *sum += each * r->cell->times[i % r->cell->nfunctions] * (double)r->state;
    }
    return true;
}

/* As in all layers, adding a bias to a product costs nothing. Every sample is taken to
 * have all steps, since the data say how long each is. The six operations of peepholes
 * are a product and a sum for each of three gates. */
bool
onnx_recurrent(struct onnx_node *node)
{
    struct recurrence r = {.cell = cells};
    double states, functions_each, product, others;
    if (!read_recurrence(node, &r) || !shape_states(node, &r) ||
        !count_functions(node, &r, &functions_each))
        return false;
    states = (double)r.directions * (double)r.state;
    product = 2 * (double)r.cell->gates * ((double)r.width + (double)r.state);
    others = r.cell->sums + (onnx_in(node, PEEPHOLES) ? 6 : 0);
    others += onnx_number(node->message, "clip") > 0 ? (double)r.cell->gates : 0;
    node->flops = (double)r.steps * (double)r.samples *
                  (states * (product + others) + functions_each);
    return true;
}
