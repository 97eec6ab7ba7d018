/* Reads a PipeDream profile, the text that its profiler writes, into a graph. Two lines
 * of a profile, and what they become:
 *
 *     node1 -- Conv2d(3, 64) -- forward_compute_time=0.5, ...      an op
 *     \tnode1 -- node2                                             a dep
 *
 * The type of a node may itself hold commas and dashes, so a node's line is cut at its
 * first and at its last " -- ". */
#include "rampipe/input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct rec_str dashes = {" -- ", 4};

struct profile {
    struct rec_reader *reader;
    const struct input_profile_options *options;
    struct graph graph;          /* forward ops */
    struct input_twin *backward; /* backward[i] is the twin of graph.op[i] */
    size_t backward_room;
};

static struct rec_str
trim(struct rec_str s)
{
    while (s.len && (*s.ptr == ' ' || *s.ptr == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* Splits *rest at the last " -- ": *last becomes what follows it, and *rest what is
 * before it. False: there is none. */
static bool
cut_last(struct rec_str *rest, struct rec_str *last)
{
    for (size_t i = rest->len; i >= dashes.len; i--)
        if (memcmp(rest->ptr + i - dashes.len, dashes.ptr, dashes.len) == 0) {
            *last = (struct rec_str){rest->ptr + i, rest->len - i};
            rest->len = i - dashes.len;
            return true;
        }
    return false;
}

/* Splits *rest at the first " -- ": *first becomes what is before it, and *rest what
 * follows it. False: there is none. */
static bool
cut_first(struct rec_str *rest, struct rec_str *first)
{
    const char *at = memmem(rest->ptr, rest->len, dashes.ptr, dashes.len);
    if (!at)
        return false;
    *first = (struct rec_str){rest->ptr, (size_t)(at - rest->ptr)};
    rest->ptr = at + dashes.len;
    rest->len -= first->len + dashes.len;
    return true;
}

static bool
fail(const struct profile *p, struct rec_error *err, const char *what, struct rec_str s)
{
    return rec_reader_fail(p->reader, err, "%s, got '%.*s'", what, REC_SAID(s));
}

/* node12 -> 12 */
static bool
read_node_id(const struct profile *p, struct rec_str s, char id[16],
             struct rec_error *err)
{
    uint64_t n;
    s = trim(s);
    if (s.len <= 4 || memcmp(s.ptr, "node", 4) != 0 ||
        !rec_parse_uint((struct rec_str){s.ptr + 4, s.len - 4}, &n) || n > 1000000000)
        return fail(p, err, "the name of a node must be 'node' and a number", s);
    snprintf(id, 16, "%llu", (unsigned long long)n);
    return true;
}

/* A number >= 0, or a list of them, [a; b; c], which counts as its sum. */
static bool
read_figure(struct rec_str s, double *value)
{
    struct rec_str part;
    double x;
    s = trim(s);
    *value = 0;
    if (s.len >= 2 && *s.ptr == '[' && s.ptr[s.len - 1] == ']') {
        s.ptr++;
        s.len -= 2;
        if (trim(s).len == 0)
            return true;
        while (rec_str_split(&s, ';', &part)) {
            if (!rec_parse_num(trim(part), &x) || !isfinite(x) || x < 0)
                return false;
            *value += x;
        }
        return isfinite(*value);
    }
    return rec_parse_num(s, value) && isfinite(*value) && *value >= 0;
}

enum { FORWARD, BACKWARD, ACTIVATION, PARAMETER, NFIGURES };
static const char *const figure_name[NFIGURES] = {
    "forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"};

/* "forward_compute_time=0.5, backward_compute_time=1, ..., stage_id=0" */
static bool
read_figures(const struct profile *p, struct rec_str s, const char *id,
             double figure[NFIGURES], struct rec_str *stage, struct rec_error *err)
{
    struct rec_str part, name;
    bool seen[NFIGURES] = {false};
    int i;

    while (rec_str_split(&s, ',', &part)) {
        part = trim(part);
        if (!rec_str_split(&part, '=', &name) || !part.ptr)
            return fail(p, err, "the figures of a node are name=value", name);
        if (rec_str_is(name, "stage_id")) {
            *stage = part;
            continue;
        }
        for (i = 0; i < NFIGURES && !rec_str_is(name, figure_name[i]); i++)
            ;
        if (i == NFIGURES)
            return fail(p, err,
                        "the figures of a node are forward_compute_time, "
                        "backward_compute_time, activation_size, parameter_size and "
                        "stage_id",
                        name);
        if (seen[i])
            return fail(p, err, "a figure may be given only once", name);
        seen[i] = true;
        if (!read_figure(part, &figure[i]))
            return rec_reader_fail(p->reader, err,
                                   "node %s: %s must be a number >= 0, got '%.*s'", id,
                                   figure_name[i], REC_SAID(part));
    }
    for (i = 0; i < NFIGURES; i++)
        if (!seen[i])
            return rec_reader_fail(p->reader, err, "node %s: %s is missing", id,
                                   figure_name[i]);
    return true;
}

/* Makes a text fit for a field of a record: control characters become blanks, and text
 * that is not UTF-8 is refused. */
static bool
make_clean(const struct rec_reader *reader, char *text, struct rec_error *err)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return rec_is_text(rec_str(text)) ||
           rec_reader_fail(reader, err, "a name must be UTF-8, got '%.60s'", text);
}

/* The length of a text cut to at most `most` bytes, without splitting a UTF-8
 * character. */
static int
cut(struct rec_str text, size_t most)
{
    if (text.len <= most)
        return (int)text.len;
    while (most > 0 && ((unsigned char)text.ptr[most] & 0xc0) == 0x80)
        most--;
    return (int)most;
}

/* ---- the head ------------------------------------------------------------ */

/* Splits "# network: vgg16" into network and vgg16. False: the comment has another
 * form. */
static bool
split_comment(struct rec_str line, struct rec_str *key, struct rec_str *value)
{
    *value = (struct rec_str){line.ptr + 1, line.len - 1};
    if (!rec_str_split(value, ':', key) || !value->ptr)
        return false;
    *key = trim(*key);
    *value = trim(*value);
    return value->len > 0;
}

/* Keeps the value of a comment whose key is known; other comments are skipped. */
static bool
take_comment(struct rec_reader *reader, struct input_head *head, struct rec_str line,
             struct rec_error *err)
{
    struct rec_str key, value;
    uint64_t batch;
    char *text;

    if (!split_comment(line, &key, &value))
        return true;
    text = rec_str_is(key, "network")  ? head->network
           : rec_str_is(key, "family") ? head->family
           : rec_str_is(key, "device") ? head->device
           : rec_str_is(key, "batch")  ? head->batch
                                       : NULL;
    if (!text)
        return true;
    if (text == head->batch && !rec_parse_uint(value, &batch))
        return rec_reader_fail(reader, err, "batch must be an integer >= 0, got '%.*s'",
                               REC_SAID(value));
    snprintf(text, INPUT_NAME_MAX, "%.*s", cut(value, INPUT_NAME_MAX - 1), value.ptr);
    return make_clean(reader, text, err);
}

static bool
take_provenance(struct input_head *head, struct rec_str line, struct rec_error *err)
{
    if (!rec_grow(&head->provenance, &head->room, head->used + line.len + 2, 1, err))
        return false;
    memcpy(head->provenance + head->used, line.ptr, line.len);
    memcpy(head->provenance + head->used + line.len, "\n", 2);
    head->used += line.len + 1;
    return true;
}

bool
input_read_head(struct rec_reader *reader, struct input_head *head, struct rec_error *err)
{
    struct rec_str line;
    int status;
    *head = (struct input_head){.used = 0};
    while ((status = rec_peek_line(reader, &line, err)) > 0) {
        if (line.len == 0 || line.ptr[0] != '#')
            return true;
        if (rec_next_line(reader, &line, err) < 0)
            return false;
        if (line.len > 1 && line.ptr[1] == '@' ? !take_provenance(head, line, err)
                                               : !take_comment(reader, head, line, err))
            return false;
    }
    return status == 0;
}

void
input_head_free(struct input_head *head)
{
    free(head->provenance);
    *head = (struct input_head){.used = 0};
}

/* ---- nodes and edges ----------------------------------------------------- */

/* Makes the keys of an op: "Conv2d(3, 64)" becomes "\ttype=Conv2d"; the stage is a key if
 * the node has one. */
static bool
make_extra(const struct rec_reader *reader, struct rec_str type, struct rec_str stage,
           char *text, size_t room, struct rec_error *err)
{
    const char *end = type.len ? memchr(type.ptr, '(', type.len) : NULL;
    int n = 0;
    type = trim(end ? (struct rec_str){type.ptr, (size_t)(end - type.ptr)} : type);
    text[0] = '\0';
    if (type.len)
        n = snprintf(text, room, "\ttype=%.*s", cut(type, 100), type.ptr);
    if (n && !make_clean(reader, text + 1, err))
        return false;
    if (stage.len)
        snprintf(text + n, room - (size_t)n, "\tstage=%.*s", (int)stage.len, stage.ptr);
    return true;
}

/* The stage may follow the figures as a part of its own, " -- stage_id=N", as PipeDream's
 * optimizer writes it, or be one of the figures. */
static bool
read_node(struct profile *p, struct rec_str line, struct rec_error *err)
{
    struct rec_str name, figures, stage = {NULL, 0};
    struct graph_op op = {.part = 1, .parts = 1, .pass = GRAPH_FORWARD};
    double figure[NFIGURES];
    char id[16], extra[256];
    uint64_t n;

    if (!cut_first(&line, &name) || !read_node_id(p, name, id, err))
        return false;
    if (!cut_last(&line, &figures))
        return fail(p, err, "a node is 'nodeN -- Type -- figures'", line);
    if (figures.len > 9 && memcmp(figures.ptr, "stage_id=", 9) == 0) {
        stage = trim((struct rec_str){figures.ptr + 9, figures.len - 9});
        if (!cut_last(&line, &figures))
            return fail(p, err, "a node is 'nodeN -- Type -- figures'", line);
    }
    if (!read_figures(p, figures, id, figure, &stage, err))
        return false;
    if (stage.ptr && (stage.len > 18 || !rec_parse_uint(stage, &n)))
        return fail(p, err, "stage_id must be an integer >= 0", stage);
    if (!make_extra(p->reader, line, stage, extra, sizeof extra, err))
        return false;
    op.id = id;
    op.extra = extra;
    op.line = (uint32_t)rec_reader_line(p->reader);
    op.compute = figure[FORWARD] * p->options->time_unit;
    op.activation = figure[ACTIVATION];
    op.param = figure[PARAMETER];
    op.memory = op.activation;
    if (p->options->memory == INPUT_MEMORY_TOTAL)
        op.memory += op.param;
    if (!isfinite(op.memory))
        return rec_reader_fail(p->reader, err, "node %s: its memory is too large", id);
    if (!rec_grow(&p->backward, &p->backward_room, p->graph.nops + 1, sizeof *p->backward,
                  err))
        return false;
    p->backward[p->graph.nops] =
        (struct input_twin){figure[BACKWARD] * p->options->time_unit, NULL};
    return graph_add_op(&p->graph, &op, NULL, err);
}

/* An edge. Edges may name nodes of later lines, so they are kept until all nodes are
 * known. */
struct edge {
    char src[16], dst[16];
    uint32_t line;
};

static bool
read_edge(const struct profile *p, struct rec_str line, struct edge *edge,
          struct rec_error *err)
{
    struct rec_str src;
    edge->line = (uint32_t)rec_reader_line(p->reader);
    if (!cut_first(&line, &src))
        return fail(p, err, "a line is 'nodeN -- Type -- figures' or 'nodeA -- nodeB'",
                    line);
    return read_node_id(p, src, edge->src, err) && read_node_id(p, line, edge->dst, err);
}

/* A line with two or more " -- " is a node, a line with one is an edge. */
static bool
is_node(struct rec_str line)
{
    struct rec_str part;
    return cut_first(&line, &part) && cut_first(&line, &part);
}

static bool
read_lines(struct profile *p, struct edge **edge, size_t *nedges, struct rec_error *err)
{
    struct rec_str line;
    size_t room = 0;
    int status;

    while ((status = rec_next_line(p->reader, &line, err)) > 0) {
        line = trim(line);
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        if (is_node(line)) {
            if (!read_node(p, line, err))
                return false;
        } else if (!rec_grow(edge, &room, *nedges + 1, sizeof **edge, err) ||
                   !read_edge(p, line, &(*edge)[(*nedges)++], err))
            return false;
    }
    if (status == 0 && p->graph.nops == 0)
        return rec_fail_at(err, rec_reader_file(p->reader), 1,
                           "the profile is empty: it has no nodes");
    return status == 0;
}

static bool
build_forward(struct profile *p, const struct edge *edge, size_t nedges,
              struct rec_error *err)
{
    for (size_t i = 0; i < nedges; i++)
        if (!graph_add_dep(&p->graph, rec_str(edge[i].src), rec_str(edge[i].dst), 0,
                           false, "", edge[i].line, err))
            return false;
    return graph_close(&p->graph, err);
}

bool
input_read_profile(struct graph *graph, struct rec_reader *reader,
                   const struct input_profile_options *options, struct rec_str id,
                   struct rec_str model, const struct input_head *head,
                   struct rec_error *err)
{
    struct profile p = {.reader = reader, .options = options};
    struct edge *edge = NULL;
    size_t nedges = 0;
    char keys[3 * INPUT_NAME_MAX + 40] = "";
    bool ok = graph_start(&p.graph, id, model, "", err);

    if (head)
        snprintf(keys, sizeof keys, "%s%s%s%s%s%s", *head->device ? "\tdevice=" : "",
                 head->device, *head->batch ? "\tbatch=" : "", head->batch,
                 *head->family ? "\tfamily=" : "", head->family);
    p.graph.file = rec_reader_file(reader);
    ok = ok && read_lines(&p, &edge, &nedges, err) &&
         build_forward(&p, edge, nedges, err) &&
         graph_start(graph, id, model, keys, err) &&
         input_mirror(&p.graph, options->mirror ? p.backward : NULL, graph, err);
    free(edge);
    free(p.backward);
    graph_free(&p.graph);
    return ok;
}
