/*
 * Splitting ops into parts: the SiP-ML rule for how many, and the two rules for the bytes
 * of deps: those of the published simulator, and gradient sizes, which are those that
 * data have. Parts are named by letters, and parts of twins with the same letter are
 * twins.
 */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t
graph_parts(double compute, double quantum, uint32_t degree)
{
    double parts = 2 * ceil(ceil(compute / quantum) / 2);
    if (!(parts < degree)) /* also when quantum is 0 */
        parts = compute > 0 ? degree : 1;
    return parts < 1 ? 1 : (uint32_t)parts;
}

void
graph_part_letters(uint32_t i, char letters[GRAPH_LETTERS_MAX])
{
    char reversed[GRAPH_LETTERS_MAX];
    int n = 0;
    for (uint64_t rest = (uint64_t)i + 1; rest > 0; rest = (rest - 1) / 26)
        reversed[n++] = (char)('a' + (rest - 1) % 26);
    for (int j = 0; j < n; j++)
        letters[j] = reversed[n - 1 - j];
    letters[n] = '\0';
}

/* One run of graph_split(). */
struct splitter {
    const struct graph *from;
    const struct graph_split *split;
    struct graph *to;
    char src[300], dst[300], pair[300];
};

enum { NAME_ROOM = 300 };

/* Reference sizes use an op's memory as the size of its output. Where footprint has
 * filled in the memory of training, that is something else, so the graph is refused. */
static bool
check_sizes(const struct splitter *s, struct rec_error *err)
{
    struct rec_str optimizer;
    return s->split->sizes != GRAPH_SIZES_REFERENCE ||
           !graph_key(s->from, "optimizer", &optimizer) ||
           graph_fail(s->from, s->from->nops ? s->from->op[0].line : 0, err,
                      "graph '%s' has optimizer=, so its MEMORY is what training takes, "
                      "from which the sizes of deps do not follow: partition it before "
                      "MEMORY is filled in, or use gradient sizes",
                      s->from->id);
}

static bool
check_input(struct splitter *s, struct rec_error *err)
{
    if (!graph_refuse_colls(s->from,
                            "cannot be split with the ops of its group: write the colls "
                            "among parts into the graph that is partitioned",
                            err))
        return false;
    for (size_t i = 0; i < s->from->nops; i++) {
        const struct graph_op *op = &s->from->op[i];
        if (op->of)
            return graph_fail(s->from, op->line, err,
                              "op '%s' is already a part of '%s'; partition takes graphs "
                              "that are not partitioned",
                              op->id, op->of);
        if (strlen(op->id) > NAME_ROOM - 40)
            return graph_fail(s->from, op->line, err,
                              "the name of op '%.30s...' is too long to split it",
                              op->id);
    }
    return true;
}

/* The name of part j of an op. */
static void
part_name(const struct splitter *s, uint32_t op, uint32_t j, char name[NAME_ROOM])
{
    const char *id = s->from->op[op].id;
    size_t len = strlen(id);
    memcpy(name, id, len + 1); /* check_input() has compared it with NAME_ROOM */
    if (s->split->parts[op] > 1)
        graph_part_letters(j, name + len);
}

/* Part j of an op is on one slot with part j of the op that releases what it holds. */
static bool
put_release(const struct splitter *s, const struct graph_op *op, struct rec_str release,
            uint32_t j, FILE *out, struct rec_error *err)
{
    uint32_t to =
        graph_find(s->from, release); /* graph_close() has seen that it exists */
    uint32_t k = s->split->parts[op - s->from->op];
    char name[NAME_ROOM];
    if (s->split->parts[to] != k)
        return graph_fail(s->from, op->line, err,
                          "op '%s' releases what op '%s' holds, so they must get equally "
                          "many parts, not %u and %u",
                          s->from->op[to].id, op->id, s->split->parts[to], k);
    part_name(s, to, j, name);
    fprintf(out, "\trelease=%s", name);
    return true;
}

/* Writes number `key` of an op, divided among its parts. */
static bool
put_share(const struct splitter *s, const struct graph_op *op, struct rec_str key,
          struct rec_str value, FILE *out, struct rec_error *err)
{
    char number[REC_NUM_MAX];
    double work;
    if (!rec_parse_num(value, &work) || !(work >= 0) || !isfinite(work))
        return graph_fail(s->from, op->line, err,
                          "op '%s': %.*s must be a number >= 0, got '%.*s'", op->id,
                          (int)key.len, key.ptr, REC_SAID(value));
    rec_format_num(number, work / s->split->parts[op - s->from->op]);
    fprintf(out, "\t%.*s=%s", (int)key.len, key.ptr, number);
    return true;
}

/* The keys of part j of an op: the op's, with flops=, moved= and hold= divided among its
 * parts. The caller frees the text. NULL: *err. */
static char *
part_extra(const struct splitter *s, const struct graph_op *op, uint32_t j,
           struct rec_error *err)
{
    struct rec_str rest = rec_str(op->extra), field, value, key;
    struct rec_text text;
    struct rec_error unused;
    bool ok = true;

    if (!rec_text_open(&text, err))
        return NULL;
    rec_str_split(&rest, '\t', &field); /* empty: each key has a TAB before it */
    while (ok && rec_str_split(&rest, '\t', &field)) {
        value = field;
        rec_str_split(&value, '=', &key);
        if (rec_str_is(key, "release"))
            ok = put_release(s, op, value, j, text.out, err);
        else if (rec_str_is(key, "flops") || rec_str_is(key, "moved") ||
                 rec_str_is(key, "hold"))
            ok = put_share(s, op, key, value, text.out, err);
        else
            fprintf(text.out, "\t%.*s", (int)field.len, field.ptr);
    }
    if (ok)
        return rec_text_close(&text, err);
    free(rec_text_close(&text, &unused));
    return NULL;
}

/* True if the keys of a part are not those of its op, and whether they differ from part
 * to part. A release= of a whole op may be wrong, too: the other op may get parts. */
static bool
changes_extra(const struct graph_op *op, bool holds, uint32_t k, bool *differ)
{
    *differ = holds && strstr(op->extra, "\trelease=");
    return *differ ||
           (k > 1 && (strstr(op->extra, "\tflops=") || strstr(op->extra, "\tmoved=") ||
                      (holds && strstr(op->extra, "\thold="))));
}

static bool
add_part_ops(struct splitter *s, uint32_t i, struct graph_op *part, struct rec_error *err)
{
    const struct graph_op *op = &s->from->op[i];
    bool differ, changes = changes_extra(op, s->from->holds, part->parts, &differ),
                 ok = true;
    char *extra = NULL;
    for (uint32_t j = 0; ok && j < part->parts; j++) {
        part_name(s, i, j, s->src);
        part->part = j + 1;
        if (op->pair != GRAPH_NONE)
            part_name(s, op->pair, j, s->pair);
        if (changes && (j == 0 || differ)) {
            free(extra);
            extra = part_extra(s, op, j, err);
            part->extra = extra;
        }
        ok = (extra || !changes) &&
             graph_add_op(s->to, part, op->pair != GRAPH_NONE ? s->pair : NULL, err);
    }
    free(extra);
    return ok;
}

static bool
add_parts(struct splitter *s, uint32_t i, struct rec_error *err)
{
    const struct graph_op *op = &s->from->op[i];
    uint32_t k = s->split->parts[i];
    struct graph_op part = *op;

    part.compute /= k;
    part.memory /= k;
    part.activation /= k;
    part.param /= k;
    part.parts = k;
    part.id = s->src;
    part.of = k > 1 ? op->id : NULL;
    return add_part_ops(s, i, &part, err);
}

/*
 * The published simulator splits one op after the other. Each split gives the deps of the
 * op new sizes: the memory that the part at the other end has then, divided by the parts.
 * So what is left in the end depends on which end is split first; the four cases here are
 * the results.
 */
static double
reference_bytes(const struct splitter *s, const struct graph_dep *dep)
{
    uint32_t u = dep->src, v = dep->dst;
    uint32_t ku = s->split->parts[u], kv = s->split->parts[v];
    double mu = s->from->op[u].memory, mv = s->from->op[v].memory;
    if (ku == 1)
        return kv == 1 ? mu : mu / kv;
    if (kv == 1)
        return mv / ku;
    return s->split->rank[u] < s->split->rank[v] ? mu / ku / kv : mv / kv / ku;
}

/* A forward dep carries its source's activation, a backward one the gradient of it. */
static bool
dep_bytes(const struct splitter *s, const struct graph_dep *dep, double *bytes,
          struct rec_error *err)
{
    const struct graph_op *src = &s->from->op[dep->src], *dst = &s->from->op[dep->dst];
    const struct graph_op *carries = src;

    if (s->split->sizes == GRAPH_SIZES_REFERENCE) {
        *bytes = reference_bytes(s, dep);
        return true;
    }
    if (src->pass == GRAPH_BACKWARD && dst->pass == GRAPH_BACKWARD)
        carries = dst->pair == GRAPH_NONE ? dst : &s->from->op[dst->pair];
    if (isnan(carries->activation))
        return graph_fail(s->from, carries->line, err,
                          "gradient sizes need activation= of op '%s'", carries->id);
    *bytes = carries->activation / s->split->parts[dep->src] / s->split->parts[dep->dst];
    return true;
}

static bool
add_deps(struct splitter *s, const struct graph_dep *dep, struct rec_error *err)
{
    double bytes = 0;
    if (!dep_bytes(s, dep, &bytes, err))
        return false;
    for (uint32_t i = 0; i < s->split->parts[dep->src]; i++) {
        part_name(s, dep->src, i, s->src);
        for (uint32_t j = 0; j < s->split->parts[dep->dst]; j++) {
            part_name(s, dep->dst, j, s->dst);
            if (!graph_add_dep(s->to, rec_str(s->src), rec_str(s->dst), bytes, dep->sync,
                               dep->extra, 0, err))
                return false;
        }
    }
    return true;
}

/* Joins the parts of a backward op by a coll. */
static bool
add_coll(struct splitter *s, uint32_t op, double bytes, struct rec_error *err)
{
    bool reduced = s->split->gradients == GRAPH_GRADIENTS_REDUCED;
    uint32_t k = s->split->parts[op];
    struct graph_coll coll = {.kind = reduced ? GRAPH_ALL_REDUCE : GRAPH_ALL_GATHER,
                              .bytes = reduced ? bytes / k : bytes,
                              .line = s->from->op[op].line};
    struct rec_str none = {NULL, 0};
    struct rec_text text;
    char *ops;
    bool ok;
    if (!rec_text_open(&text, err))
        return false;
    for (uint32_t i = 0; i < k; i++) {
        part_name(s, op, i, s->src);
        fprintf(text.out, "%s%s", i ? "," : "", s->src);
    }
    if (!(ops = rec_text_close(&text, err)))
        return false;
    snprintf(s->dst, sizeof s->dst, "sync-%s", s->from->op[op].id);
    ok = graph_add_coll(s->to, &coll, rec_str(s->dst), rec_str(ops), none, none, err);
    free(ops);
    return ok;
}

/* Joins the parts of a backward op to each other: they exchange their gradients. */
static bool
add_sync(struct splitter *s, uint32_t op, struct rec_error *err)
{
    const struct graph_op *from = &s->from->op[op];
    uint32_t k = s->split->parts[op];
    double bytes = s->split->sizes == GRAPH_SIZES_GRADIENT ? from->param : from->memory;

    if (from->pass != GRAPH_BACKWARD || k == 1)
        return true;
    if (isnan(bytes))
        return graph_fail(s->from, from->line, err,
                          "gradient sizes need param= of op '%s'", from->id);
    if (s->split->gradients != GRAPH_GRADIENTS_DEPS)
        return add_coll(s, op, bytes, err);
    for (uint32_t i = 0; i < k; i++) {
        part_name(s, op, i, s->src);
        for (uint32_t j = 0; j < k; j++) {
            part_name(s, op, j, s->dst);
            if (i != j && !graph_add_dep(s->to, rec_str(s->src), rec_str(s->dst),
                                         bytes / k, true, "", 0, err))
                return false;
        }
    }
    return true;
}

static bool
fill(struct splitter *s, struct rec_error *err)
{
    for (uint32_t i = 0; i < s->from->nops; i++)
        if (!add_parts(s, i, err))
            return false;
    for (size_t d = 0; d < s->from->ndeps; d++)
        if (!add_deps(s, &s->from->dep[d], err))
            return false;
    for (uint32_t i = 0; i < s->from->nops; i++)
        if (!add_sync(s, i, err))
            return false;
    return true;
}

bool
graph_split(const struct graph *from, const struct graph_split *split, struct rec_str id,
            const char *extra, struct graph *to, struct rec_error *err)
{
    struct splitter *s = calloc(1, sizeof *s);
    bool ok;

    if (!s)
        return rec_fail_memory(err);
    s->from = from;
    s->split = split;
    s->to = to;
    ok = check_sizes(s, err) && check_input(s, err) &&
         graph_start(to, id, rec_str(from->model), extra, err);
    if (ok) {
        to->file = from->file;
        to->holds = true; /* so that graph_add_op() need not look for the keys */
    }
    ok = ok && fill(s, err);
    to->holds = from->holds;
    free(s);
    return ok && graph_close(to, err);
}
