/*
 * The operator Einsum: a sum of products over the indices that the result does not have,
 * such as "bhqd,bhkd->bhqk". An index of two operands belongs to one of four classes,
 * which make it a batch of matrix products:
 *
 *     in both operands and the result   BATCH     in one operand and the result   M, N
 *     in both, but not in the result    K         in one operand alone      summed before
 *
 * An index is a letter, or a dimension of "...", counted from its last one, since "..."
 * of operands of different ranks are aligned at the end.
 */
#include "private.h"

enum { LETTERS = 52, INDICES = LETTERS + ONNX_RANK_MAX, OPERANDS = 2 };

/* The indices of an operand, or of the result. */
struct term {
    uint32_t n;                   /* indices */
    uint32_t open;                /* of these, the indices for which "..." stands */
    uint8_t index[ONNX_RANK_MAX]; /* below LETTERS: a letter */
    bool dots;                    /* it has "..." */
};

struct sum {
    size_t noperands;
    struct term operand[OPERANDS], result;
    const struct onnx_tensor *in[OPERANDS];
    int64_t extent[INDICES]; /* length of an index; -1: no operand has it */
    bool in_operand[OPERANDS][INDICES], in_result[INDICES];
};

/* The index of a letter, from 0: capitals first, as ONNX orders them; -1: no letter. */
static int
letter(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    return c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

/* ---- the equation --------------------------------------------------------- */

/* Reads a term, up to ',', "->" or the end. `open` is the number of dimensions for which
 * "..." stands. */
static bool
read_term(struct onnx_node *node, const char **at, const char *end, uint32_t open,
          struct term *term)
{
    *term = (struct term){.n = 0};
    for (; *at < end && **at != ',' && **at != '-'; ++*at) {
        int c = letter(**at);
        if (**at == ' ')
            continue;
        if (c >= 0 && term->n < ONNX_RANK_MAX) {
            term->index[term->n++] = (uint8_t)c;
            continue;
        }
        if (c >= 0 || end - *at < 3 || memcmp(*at, "...", 3) != 0 || term->dots)
            return onnx_fail(node,
                             "its equation must be of letters, at most %d in a term, and "
                             "one '...'",
                             ONNX_RANK_MAX);
        *at += 2;
        term->dots = true;
        term->open = open;
        if (term->n + open > ONNX_RANK_MAX)
            return onnx_fail(node, "a term of its equation has more than %d dimensions",
                             ONNX_RANK_MAX);
        while (open > 0)
            term->index[term->n++] = (uint8_t)(LETTERS + --open);
    }
    return true;
}

/* Counts the letters of the term that begins at `at`. */
static uint32_t
count_letters(const char *at, const char *end)
{
    uint32_t n = 0;
    for (; at < end && *at != ',' && *at != '-'; at++)
        n += letter(*at) >= 0;
    return n;
}

static bool
read_operands(struct onnx_node *node, struct sum *s, const char **at, const char *end)
{
    for (s->noperands = 0;; ++*at) {
        const struct onnx_tensor *in = onnx_in(node, s->noperands);
        struct term *term = &s->operand[s->noperands];
        uint32_t letters = count_letters(*at, end);
        if (s->noperands == OPERANDS)
            return onnx_fail(node,
                             "more than %d operands, which could be multiplied in "
                             "any order, are not covered: let the model multiply two "
                             "at a time",
                             OPERANDS);
        if (!in)
            return onnx_fail(node, "its equation has more terms than it has inputs");
        if (!read_term(node, at, end, in->rank > letters ? in->rank - letters : 0, term))
            return false;
        if (term->n != in->rank)
            return onnx_fail(node,
                             "term %zu of its equation has %u indices, input %zu %u",
                             s->noperands + 1, term->n, s->noperands + 1, in->rank);
        s->in[s->noperands++] = in;
        if (*at == end || **at == '-')
            break;
    }
    return s->noperands == node->nin ||
           onnx_fail(node, "its equation has fewer terms than it has inputs");
}

/* The largest number of dimensions that "..." stands for. */
static uint32_t
most_open(const struct sum *s)
{
    uint32_t most = 0;
    for (size_t k = 0; k < s->noperands; k++)
        most = s->operand[k].open > most ? s->operand[k].open : most;
    return most;
}

/* Makes the result of an equation without "->": the dimensions of "...", then the letters
 * that occur once, from A to z. */
static bool
make_result(struct onnx_node *node, struct sum *s)
{
    struct term *result = &s->result;
    uint32_t count[LETTERS] = {0}, open = most_open(s);
    *result = (struct term){.open = open, .dots = true};
    while (open > 0)
        result->index[result->n++] = (uint8_t)(LETTERS + --open);
    for (size_t k = 0; k < s->noperands; k++)
        for (uint32_t i = 0; i < s->operand[k].n; i++)
            if (s->operand[k].index[i] < LETTERS)
                count[s->operand[k].index[i]]++;
    for (uint32_t i = 0; i < LETTERS; i++) {
        if (count[i] != 1)
            continue;
        if (result->n == ONNX_RANK_MAX)
            return onnx_fail(node, "its output has more than %d dimensions",
                             ONNX_RANK_MAX);
        result->index[result->n++] = (uint8_t)i;
    }
    return true;
}

static bool
read_equation(struct onnx_node *node, struct sum *s)
{
    const Onnx__Attribute *said = onnx_attribute(node->message, "equation");
    const char *at = said && said->s.len ? (const char *)said->s.data : "";
    const char *end = at + (said ? said->s.len : 0);
    if (at == end)
        return onnx_fail(node, "it has no equation");
    if (!read_operands(node, s, &at, end))
        return false;
    if (at == end)
        return make_result(node, s);
    if (end - at < 2 || at[1] != '>')
        return onnx_fail(node, "its equation has a '-' without '>'");
    at += 2;
    if (!read_term(node, &at, end, most_open(s), &s->result))
        return false;
    return at == end || onnx_fail(node, "its equation goes on behind its result");
}

/* ---- extents -------------------------------------------------------------- */

static const char *
index_name(uint8_t index, char name[4])
{
    const char text[2] = {(char)(index < 26 ? 'A' + index : 'a' + index - 26), '\0'};
    return strcpy(name, index < LETTERS ? text : "...");
}

/* Finds the length of each index, and which operands have it. An operand whose dimension
 * is broadcast from 1 counts as not having the index. */
static bool
read_extents(struct onnx_node *node, struct sum *s)
{
    char name[4];
    for (uint32_t i = 0; i < INDICES; i++)
        s->extent[i] = -1;
    for (size_t k = 0; k < s->noperands; k++)
        for (uint32_t i = 0; i < s->operand[k].n; i++) {
            uint8_t index = s->operand[k].index[i];
            int64_t *extent = &s->extent[index], dim = s->in[k]->dim[i];
            bool stretches = index >= LETTERS; /* dimensions of "..." are broadcast */
            if (*extent == -1 || (stretches && *extent == 1))
                *extent = dim;
            else if (*extent != dim && !(stretches && dim == 1))
                return onnx_fail(
                    node, "index '%s' has length %lld in one place, %lld in another",
                    index_name(index, name), (long long)*extent, (long long)dim);
        }
    for (size_t k = 0; k < s->noperands; k++)
        for (uint32_t i = 0; i < s->operand[k].n; i++)
            if (s->in[k]->dim[i] == s->extent[s->operand[k].index[i]])
                s->in_operand[k][s->operand[k].index[i]] = true;
    for (uint32_t i = 0; i < s->result.n; i++) {
        uint8_t index = s->result.index[i];
        if (s->extent[index] == -1)
            return onnx_fail(node, "its result has an index that no operand has");
        if (s->in_result[index])
            return onnx_fail(node, "its result has an index twice");
        s->in_result[index] = true;
        node->out.dim[node->out.rank++] = s->extent[index];
    }
    for (uint32_t i = LETTERS; i < INDICES; i++)
        if (s->extent[i] != -1 && !s->in_result[i])
            return onnx_fail(node, "its result must have '...', too");
    return onnx_count(&node->out) || onnx_fail(node, "its output has too many elements");
}

/* ---- work ----------------------------------------------------------------- */

/* Adds to *flops the operations for summing operand k over the indices that it has alone:
 * one for each of its elements, if there is such an index. */
static void
sum_alone(const struct sum *s, size_t k, double *flops)
{
    const bool *other = s->in_operand[1 - k];
    bool any = false;
    double elements = 1;
    for (uint32_t i = 0; i < INDICES; i++) {
        if (!s->in_operand[k][i])
            continue;
        any = any || (!s->in_result[i] && (s->noperands == 1 || !other[i]));
        elements *= (double)s->extent[i];
    }
    *flops += any ? elements : 0;
}

/* Counts the product of two operands, from which the indices of one operand alone have
 * been summed. It is a matrix product if an index of both is summed, else element by
 * element. */
static void
multiply(struct onnx_node *node, const struct sum *s)
{
    double gemm[4] = {1, 1, 1, 1}; /* BATCH, M, N, K */
    bool contracts = false, left = onnx_is_parameter(node, 0);
    for (uint32_t i = 0; i < INDICES; i++) {
        bool a = s->in_operand[0][i], b = s->in_operand[1][i];
        if (a && b && s->in_result[i])
            gemm[0] *= (double)s->extent[i];
        else if (a && b) {
            gemm[3] *= (double)s->extent[i];
            contracts = true;
        } else if ((a || b) && s->in_result[i])
            /* M are the rows of the data, N the columns of the weight, on either side */
            gemm[a != (left && !onnx_is_parameter(node, 1)) ? 1 : 2] *=
                (double)s->extent[i];
    }
    if (!contracts) {
        node->flops += node->out.count;
        return;
    }
    node->flops += 2 * gemm[0] * gemm[1] * gemm[2] * gemm[3];
    node->kind = "matmul";
    memcpy(node->gemm, gemm, sizeof gemm);
}

bool
onnx_einsum(struct onnx_node *node)
{
    struct sum s = {.noperands = 0};
    if (!read_equation(node, &s) || !read_extents(node, &s))
        return false;
    node->flops = 0;
    for (size_t k = 0; k < s.noperands; k++)
        sum_alone(&s, k, &node->flops);
    if (s.noperands == 2)
        multiply(node, &s);
    return isfinite(node->flops) ||
           onnx_fail(node, "it is more work than can be counted");
}
