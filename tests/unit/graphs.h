/* What the tests of graph, ramp and sim share: text as a file, graphs from text. */
#ifndef TESTS_GRAPHS_H
#define TESTS_GRAPHS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rampipe/input.h"

/* A reader over `text`; close with close_text(). Only one is open at a time. */
static char text_path[64];
static int text_fd = -1;

static inline struct rec_reader *
open_text(const char *text)
{
    static const char *files[1];
    struct rec_error err;
    struct rec_reader *reader;
    size_t len = strlen(text);
    text_fd = memfd_create("text", 0);
    assert_true(text_fd >= 0 && write(text_fd, text, len) == (ssize_t)len);
    snprintf(text_path, sizeof text_path, "/proc/self/fd/%d", text_fd);
    files[0] = text_path;
    reader = rec_reader_open(files, 1, NULL, &err);
    assert_non_null(reader);
    return reader;
}

static inline void
close_text(struct rec_reader *reader)
{
    rec_reader_close(reader);
    close(text_fd);
}

/* Records are easier to read with blanks for TABs. Freed by the caller. */
static inline char *
tabs(const char *text)
{
    char *copy = strdup(text);
    for (char *p = copy; *p; p++)
        if (*p == ' ')
            *p = '\t';
    return copy;
}

/* Reads graph, op and dep records (blanks for TABs) and closes the graph. */
static inline bool
try_graph_text(struct graph *graph, const char *text, struct rec_error *err)
{
    char *copy = tabs(text);
    struct rec_reader *reader = open_text(copy);
    struct rec rec;
    int status = 0;
    bool ok = true;
    while (ok && (status = rec_next(reader, &rec, err)) > 0)
        ok = graph_read(graph, reader, &rec, err);
    ok = ok && status == 0 && graph_close(graph, err);
    graph->file = NULL;
    close_text(reader);
    free(copy);
    return ok;
}

static inline struct graph
graph_text(const char *text)
{
    struct graph graph = {0};
    struct rec_error err = {.text = ""};
    if (!try_graph_text(&graph, text, &err))
        fail_msg("%s", err.text);
    return graph;
}

static inline bool
try_profile(struct graph *graph, const char *text,
            const struct input_profile_options *options, struct rec_error *err)
{
    struct rec_reader *reader = open_text(text);
    bool ok =
        input_read_profile(graph, reader, options, rec_str("g"), rec_str("m"), NULL, err);
    graph->file = NULL;
    close_text(reader);
    return ok;
}

static inline uint32_t
op_of(const struct graph *graph, const char *id)
{
    uint32_t op = graph_find(graph, rec_str(id));
    if (op == GRAPH_NONE)
        fail_msg("the graph has no op %s", id);
    return op;
}

/* The dep between two ops, NULL if there is none. */
static inline const struct graph_dep *
find_dep(const struct graph *graph, const char *src, const char *dst)
{
    uint32_t u = op_of(graph, src), v = op_of(graph, dst);
    for (size_t d = 0; d < graph->ndeps; d++)
        if (graph->dep[d].src == u && graph->dep[d].dst == v)
            return &graph->dep[d];
    return NULL;
}

static inline double
dep_size(const struct graph *graph, const char *src, const char *dst)
{
    const struct graph_dep *dep = find_dep(graph, src, dst);
    if (!dep)
        fail_msg("the graph has no dep %s -> %s", src, dst);
    return dep->bytes;
}

static inline void
assert_same(double ours, double expected)
{
    if (!(ours == expected))
        fail_msg("got %.17g, expected %.17g", ours, expected);
}

static inline void
assert_near(double ours, double expected)
{
    if (!(fabs(ours - expected) <= 1e-9 * fmax(fabs(ours), fabs(expected))))
        fail_msg("got %.17g, expected %.17g", ours, expected);
}

/* A small random generator, the same everywhere (splitmix64). */
static uint64_t random_state;

static inline uint32_t
draw(uint32_t below)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % below);
}

/* Every op in `degree` parts. */
static inline struct graph
partitioned(const char *text, uint32_t degree)
{
    struct graph g = graph_text(text), to = {0};
    struct graph_partition how = {.degree = degree};
    struct rec_error err = {.text = ""};
    if (!graph_partition(&g, &how, &to, &err))
        fail_msg("%s", err.text);
    graph_free(&g);
    return to;
}

#define CHAIN_OF_THREE                                                                \
    "graph g m\nop g 1 forward 1e-6 100 pair=6\nop g 2 forward 3e-6 2000 pair=5\n"    \
    "op g 3 forward 2e-6 300 pair=4\nop g 6 backward 1e-6 100\n"                      \
    "op g 5 backward 4e-6 2000\nop g 4 backward 2e-6 300\ndep g 1 2 1\ndep g 2 3 1\n" \
    "dep g 3 4 1\ndep g 4 5 1\ndep g 5 6 1\n"

#endif
