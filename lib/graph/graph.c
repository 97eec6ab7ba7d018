/*
 * Building and reading graphs. A dep may name ops that come later, so an op is created
 * when it is first named; until it is defined its compute is NAN. All texts of a graph
 * are in its arena, and are freed with it.
 */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void
graph_free(struct graph *graph)
{
    free(graph->op);
    free(graph->dep);
    free(graph->out_start);
    free(graph->out);
    free(graph->in_start);
    free(graph->in);
    free(graph->out_to);
    free(graph->pair);
    free(graph->pair_start);
    free(graph->parents);
    free(graph->unit);
    free(graph->member);
    free(graph->end);
    free(graph->row);
    free(graph->row_start);
    free(graph->row_order);
    free(graph->hold);
    free(graph->coll);
    free(graph->coll_op);
    free(graph->after);
    free(graph->coll_of);
    free(graph->coll_of_start);
    rec_map_free(&graph->coll_index);
    rec_map_free(&graph->index);
    rec_arena_free(&graph->arena);
    *graph = (struct graph){0};
}

/* The message names the file and line of the wrong record if they are known, as in a
 * graph that was read, and else the graph. */
bool
graph_fail(const struct graph *graph, uint32_t line, struct rec_error *err,
           const char *format, ...)
{
    char text[500];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (graph->file && line)
        return rec_fail_at(err, graph->file, line, "%s", text);
    return rec_fail(err, REC_DATA, "graph '%s': %s", graph->id, text);
}

bool
graph_start(struct graph *graph, struct rec_str id, struct rec_str model,
            const char *extra, struct rec_error *err)
{
    graph_free(graph);
    graph->open = true;
    graph->id = rec_arena_copy(&graph->arena, id, err);
    graph->model = rec_arena_copy(&graph->arena, model, err);
    graph->extra = rec_arena_copy(&graph->arena, rec_str(extra), err);
    return graph->id && graph->model && graph->extra;
}

/* A comma would separate names in a list, and '=' would make a key of a name. */
uint32_t
graph_intern(struct graph *graph, struct rec_str id, uint32_t line, struct rec_error *err)
{
    uint32_t i = rec_map_get(&graph->index, id);
    struct graph_op *op;
    if (i != REC_NONE)
        return i;
    if (id.len == 0 || memchr(id.ptr, ',', id.len) || memchr(id.ptr, '=', id.len)) {
        graph_fail(
            graph, line, err,
            "'%.*s' is not a name for an op: a name is not empty, and has no ',' and "
            "no '='",
            (int)id.len, id.ptr);
        return GRAPH_NONE;
    }
    if (graph->nops == GRAPH_NONE - 1 ||
        !rec_grow(&graph->op, &graph->op_room, graph->nops + 1, sizeof *graph->op, err))
        return GRAPH_NONE;
    op = &graph->op[graph->nops];
    *op = (struct graph_op){.id = rec_arena_copy(&graph->arena, id, err),
                            .pair = GRAPH_NONE,
                            .compute = NAN}; /* NAN: named, not defined */
    op->line = line;
    if (!op->id || !rec_map_add(&graph->index, (struct rec_str){op->id, id.len},
                                (uint32_t)graph->nops, err))
        return GRAPH_NONE;
    return (uint32_t)graph->nops++;
}

/* Defines the op `id` as *from; the texts are copied, those with ptr NULL are absent. */
static bool
define_op(struct graph *graph, struct rec_str id, const struct graph_op *from,
          struct rec_str pair, struct rec_str of, struct rec_str extra,
          struct rec_error *err)
{
    uint32_t i = graph_intern(graph, id, from->line, err);
    struct graph_op *op;
    const char *name;

    if (i == GRAPH_NONE)
        return false;
    if (!isnan(graph->op[i].compute))
        return graph_fail(graph, from->line, err, "op '%.*s' is defined twice",
                          (int)id.len, id.ptr);
    op = &graph->op[i];
    name = op->id;
    *op = *from;
    op->id = name;
    op->pair = GRAPH_NONE;
    op->pair_id = op->of = NULL;
    op->extra = "";
    if (pair.ptr && !(op->pair_id = rec_arena_copy(&graph->arena, pair, err)))
        return false;
    if (of.ptr && !(op->of = rec_arena_copy(&graph->arena, of, err)))
        return false;
    return extra.len == 0 || (op->extra = rec_arena_copy(&graph->arena, extra, err));
}

/* Searches keys as `extra` has them, each with a TAB before it. */
static bool
find_key(const char *extra, const char *key, struct rec_str *value)
{
    struct rec_str rest, name;
    if (!strstr(extra, key)) /* so it mostly is, and splitting takes longer */
        return false;
    rest = rec_str(extra);
    while (rec_str_split(&rest, '\t', value))
        if (rec_str_split(value, '=', &name) && value->ptr && rec_str_is(name, key))
            return true;
    return false;
}

bool
graph_key(const struct graph *graph, const char *key, struct rec_str *value)
{
    return find_key(graph->extra, key, value);
}

bool
graph_op_key(const struct graph_op *op, const char *key, struct rec_str *value)
{
    return find_key(op->extra, key, value);
}

uint32_t
graph_find(const struct graph *graph, struct rec_str id)
{
    uint32_t i = rec_map_get(&graph->index, id);
    return i == REC_NONE ? GRAPH_NONE : i;
}

static struct rec_str
optional(const char *text)
{
    return text ? rec_str(text) : (struct rec_str){NULL, 0};
}

bool
graph_add_op(struct graph *graph, const struct graph_op *op, const char *pair,
             struct rec_error *err)
{
    graph->holds = graph->holds || (op->extra && graph_has_hold(op->extra));
    return define_op(graph, rec_str(op->id), op, optional(pair), optional(op->of),
                     optional(op->extra), err);
}

/* True if op i has this name. Names are short, so a loop is faster than strncmp(). */
static inline bool
is_op(const struct graph *graph, uint32_t i, struct rec_str id)
{
    const char *name = i < graph->nops ? graph->op[i].id : NULL;
    size_t j = 0;
    while (name && j < id.len && name[j] == id.ptr[j])
        j++;
    return name && j == id.len && !name[j];
}

/* The op that a dep names. Deps come in rows: it is most likely op `next`, else `other`.
 */
static uint32_t
end_of_dep(struct graph *graph, struct rec_str id, uint32_t next, uint32_t other,
           uint32_t line, struct rec_error *err)
{
    return is_op(graph, next, id)    ? next
           : is_op(graph, other, id) ? other
                                     : graph_intern(graph, id, line, err);
}

bool
graph_add_dep(struct graph *graph, struct rec_str src, struct rec_str dst, double bytes,
              bool sync, const char *extra, uint32_t line, struct rec_error *err)
{
    const struct graph_dep *last =
        graph->ndeps ? &graph->dep[graph->ndeps - 1] : &(struct graph_dep){0};
    uint32_t from = end_of_dep(graph, src, last->src, last->src + 1, line, err), to;
    const char *kept = "";
    bool goes_on = from == last->src;
    if (from == GRAPH_NONE)
        return false;
    /* A row of sync deps leaves out the op that it leaves. */
    to = end_of_dep(graph, dst, last->dst + 1, goes_on ? last->dst + 2 : graph->row_head,
                    line, err);
    if (to == GRAPH_NONE)
        return false;
    if (from == to)
        return graph_fail(graph, line, err, "op '%.*s' depends on itself", (int)src.len,
                          src.ptr);
    if (*extra && !(kept = rec_arena_copy(&graph->arena, rec_str(extra), err)))
        return false;
    if (graph->ndeps == GRAPH_NONE - 1 ||
        (graph->ndeps == graph->dep_room &&
         !rec_grow(&graph->dep, &graph->dep_room, graph->ndeps + 1, sizeof *graph->dep,
                   err)))
        return false;
    graph->row_head = goes_on ? graph->row_head : to;
    graph->dep[graph->ndeps++] = (struct graph_dep){.src = from,
                                                    .dst = to,
                                                    .line = line,
                                                    .sync = sync,
                                                    .bytes = bytes,
                                                    .extra = kept};
    return true;
}

/* ---- records ------------------------------------------------------------- */

/* The keys of a record that this room does not read, each with a TAB before it: they are
 * written again as they came. */
struct extras {
    char *text;
    size_t len, room;
};

static bool
keep_extra(struct extras *extras, struct rec_str key, struct rec_str value,
           struct rec_error *err)
{
    size_t need = extras->len + key.len + value.len + 3;
    if (!rec_grow(&extras->text, &extras->room, need, 1, err))
        return false;
    extras->text[extras->len] = '\t';
    /* In the record the value stands right behind the key and its '=': one copy takes
     * all three. */
    memcpy(extras->text + extras->len + 1, key.ptr, key.len + 1 + value.len);
    extras->len = need - 1;
    extras->text[extras->len] = '\0';
    return true;
}

static bool
read_part(const struct rec_reader *reader, const struct rec *rec, struct rec_str value,
          struct graph_op *op, struct rec_error *err)
{
    uint64_t i, n;
    if (!rec_parse_part(value, &i, &n) || n >= GRAPH_NONE)
        return rec_bad_text(reader, rec, rec_key_spec(rec, rec_str("part")), value, err);
    op->part = (uint32_t)i;
    op->parts = (uint32_t)n;
    return true;
}

static bool
read_pass(const struct rec_reader *reader, const struct rec *rec, enum graph_pass *pass,
          struct rec_error *err)
{
    struct rec_str s = rec->field[3];
    if (rec_str_is(s, "forward"))
        *pass = GRAPH_FORWARD;
    else if (rec_str_is(s, "backward"))
        *pass = GRAPH_BACKWARD;
    else if (rec_str_is(s, "task"))
        *pass = GRAPH_TASK;
    else
        return rec_bad_field(reader, rec, 3, err);
    return true;
}

/* What an op holds is kept as text, too: graph_close() finds the op that releases it. */
static bool
read_hold(struct graph *graph, const struct rec_reader *reader, const struct rec *rec,
          struct rec_str key, struct rec_str value, struct rec_error *err)
{
    graph->holds = true;
    return rec_check_text(reader, rec, rec_key_spec(rec, key), value, err);
}

/* A key of an op: one that the room reads, or one that is kept as text. */
static bool
read_op_key(struct graph *graph, const struct rec_reader *reader, const struct rec *rec,
            struct rec_str key, struct rec_str value, struct graph_op *op,
            struct rec_str *pair, struct rec_str *of, struct extras *extras,
            struct rec_error *err)
{
    if (rec_str_is(key, "pair"))
        *pair = value;
    else if (rec_str_is(key, "of"))
        *of = value;
    else if (rec_str_is(key, "part"))
        return read_part(reader, rec, value, op, err);
    else if (rec_str_is(key, "activation"))
        return rec_key_number(reader, rec, "activation", &op->activation, err);
    else if (rec_str_is(key, "param"))
        return rec_key_number(reader, rec, "param", &op->param, err);
    else
        return (!graph_is_hold(key) || read_hold(graph, reader, rec, key, value, err)) &&
               keep_extra(extras, key, value, err);
    return true;
}

static bool
read_op(struct graph *graph, const struct rec_reader *reader, const struct rec *rec,
        struct extras *extras, struct rec_error *err)
{
    struct graph_op op = {.activation = NAN, .param = NAN, .part = 1, .parts = 1};
    struct rec_str key, value, pair = {NULL, 0}, of = {NULL, 0};
    size_t at = 0;
    int status;

    op.line = (uint32_t)rec_reader_line(reader);
    if (!read_pass(reader, rec, &op.pass, err) ||
        !rec_get_number(reader, rec, 4, &op.compute, err) ||
        !rec_get_number(reader, rec, 5, &op.memory, err))
        return false;
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        if (!read_op_key(graph, reader, rec, key, value, &op, &pair, &of, extras, err))
            return false;
    if (status < 0)
        return false;
    if (!of.ptr && op.parts > 1)
        return rec_reader_fail(reader, err, "a part needs of=OP, the op it belongs to");
    return define_op(graph, rec->field[2], &op, pair, of,
                     (struct rec_str){extras->text, extras->len}, err);
}

/* The bytes of a dep. */
static bool
read_bytes(struct graph *graph, const struct rec_reader *reader, const struct rec *rec,
           double *bytes, struct rec_error *err)
{
    struct rec_str text = rec->field[4];
    if (text.len > 0 && text.len == graph->bytes_read.len &&
        memcmp(text.ptr, graph->bytes_read.text, text.len) == 0) {
        *bytes = graph->bytes_read.value;
        return true;
    }
    if (!rec_get_number(reader, rec, 4, bytes, err))
        return false;
    graph->bytes_read.len = text.len <= sizeof graph->bytes_read.text ? text.len : 0;
    memcpy(graph->bytes_read.text, text.ptr, graph->bytes_read.len);
    graph->bytes_read.value = *bytes;
    return true;
}

static bool
read_dep(struct graph *graph, const struct rec_reader *reader, const struct rec *rec,
         struct extras *extras, struct rec_error *err)
{
    struct rec_str key, value;
    double bytes;
    bool sync = false;
    size_t at = 0;
    int status;

    if (!read_bytes(graph, reader, rec, &bytes, err))
        return false;
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0) {
        if (rec_str_is(key, "kind") && rec_str_is(value, "sync"))
            sync = true;
        else if (!keep_extra(extras, key, value, err))
            return false;
    }
    return status == 0 && graph_add_dep(graph, rec->field[2], rec->field[3], bytes, sync,
                                        extras->len ? extras->text : "",
                                        (uint32_t)rec_reader_line(reader), err);
}

static enum graph_exchange_kind
kind_of(struct rec_str word)
{
    size_t i = 0; /* rec_is_kind() has seen that there is such a word */
    while (!rec_str_is(word, rec_exchange_name(i)))
        i++;
    return (enum graph_exchange_kind)(GRAPH_ALL_REDUCE + i);
}

static bool
read_coll(struct graph *graph, const struct rec_reader *reader, const struct rec *rec,
          struct extras *extras, struct rec_error *err)
{
    struct graph_coll coll = {.line = (uint32_t)rec_reader_line(reader)};
    struct rec_str key, value, id, ops = {NULL, 0}, lane = {NULL, 0};
    size_t at = 0;
    int status;

    if (!rec_get_id(reader, rec, 2, &id, err) ||
        !rec_get_number(reader, rec, 4, &coll.bytes, err))
        return false;
    if (!rec_is_kind(rec->field[3], REC_KIND_EXCHANGE))
        return rec_bad_field(reader, rec, 3, err);
    coll.kind = kind_of(rec->field[3]);
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0) {
        if (rec_str_is(key, "ops"))
            ops = value;
        else if (rec_str_is(key, "lane"))
            lane = value;
        else if (!keep_extra(extras, key, value, err))
            return false;
    }
    if (status < 0)
        return false;
    if (!ops.ptr)
        return rec_reader_fail(reader, err,
                               "coll '%.*s' needs ops=A,B,..., the ops of its group",
                               REC_SAID(id));
    if (!rec_check_text(reader, rec, rec_key_spec(rec, rec_str("ops")), ops, err))
        return false;
    return graph_add_coll(graph, &coll, id, ops, lane,
                          (struct rec_str){extras->text, extras->len}, err);
}

static bool
read_graph(struct graph *graph, const struct rec_reader *reader, const struct rec *rec,
           struct extras *extras, struct rec_error *err)
{
    struct rec_str key, value;
    size_t at = 0;
    int status;
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        if (!keep_extra(extras, key, value, err))
            return false;
    if (status < 0 || !graph_start(graph, rec->field[1], rec->field[2],
                                   extras->len ? extras->text : "", err))
        return false;
    graph->file = rec_reader_file(reader);
    graph->line = (uint32_t)rec_reader_line(reader);
    return true;
}

bool
graph_read(struct graph *graph, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    struct extras extras = {0};
    bool ok;
    if (!rec_need(reader, rec, err))
        return false;
    if (rec->type == REC_GRAPH)
        ok = read_graph(graph, reader, rec, &extras, err);
    else if (!graph->open || !rec_str_is(rec->field[1], graph->id))
        ok = rec_reader_fail(
            reader, err,
            "the records of graph '%.*s' must come together, behind its graph record",
            REC_SAID(rec->field[1]));
    else if (rec->type == REC_OP)
        ok = read_op(graph, reader, rec, &extras, err);
    else if (rec->type == REC_COLL)
        ok = read_coll(graph, reader, rec, &extras, err);
    else
        ok = read_dep(graph, reader, rec, &extras, err);
    free(extras.text);
    return ok;
}
