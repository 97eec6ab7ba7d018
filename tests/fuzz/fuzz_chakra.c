/*
 * Any bytes as the execution traces of two ranks, split at a mark: refused with a
 * message, or a graph and a layout come of them that are whole, and what is written of
 * them makes the same again (unless their attributes are already ours, and have been
 * tampered with).
 */
#include "fuzz.h"

#include "rampipe/chakra.h"

/* Nodes and deps as text; free() it. */
struct text {
    char *bytes;
    size_t used, room;
};

static int
put(void *context, const char *bytes, size_t len)
{
    struct text *text = context;
    require(rec_grow(&text->bytes, &text->room, text->used + len + 1, 1, NULL),
            "memory is enough");
    memcpy(text->bytes + text->used, bytes, len);
    text->used += len;
    return 0;
}

static struct rec_writer *
open_writer(struct text *text)
{
    struct rec_error err;
    struct rec_sink sink = {put, text};
    struct rec_writer *writer = rec_writer_open_sink(&sink, "text", NULL, &err);
    require(writer != NULL, "memory is enough");
    return writer;
}

/* The graph and its layout of files; false: refused. */
static bool
build(const char *const *path, uint32_t n, enum chakra_server server, struct graph *graph,
      struct graph_layout *layout, struct chakra_traces **traces, struct rec_error *err)
{
    struct chakra_counts counts;
    bool ok = (*traces = chakra_traces_new(err)) != NULL;
    *layout = (struct graph_layout){.id = NULL};
    for (uint32_t i = 0; ok && i < n; i++)
        ok = chakra_read(*traces, path[i], i, err);
    return ok && chakra_build(*traces, "g", server, graph, layout, &counts, err);
}

static struct text
records(const struct graph *graph, const struct graph_layout *layout)
{
    struct text text = {0};
    struct rec_error err;
    struct rec_writer *writer = open_writer(&text);
    graph_write(graph, writer);
    require(graph_layout_write(layout, writer, &err) &&
                rec_writer_close(writer, true, &err),
            "writing to memory");
    return text;
}

/* The records are what reading them back says, so that no text breaks out of its
 * field. */
static void
require_records(const struct text *text)
{
    struct rec_error err = {.code = REC_OK};
    char path[64];
    const char *name = path;
    int fd = fuzz_file((const uint8_t *)text->bytes, text->used, path), status;
    struct rec_reader *reader = rec_reader_open(&name, 1, NULL, &err);
    struct graph_stream stream = {0};
    struct graph_said said;
    struct rec rec;
    while ((status = rec_next(reader, &rec, &err)) > 0)
        if (!rec_check(reader, &rec, &err) ||
            !graph_stream_take(&stream, reader, &rec, &said, &err))
            break;
    if (status != 0 || !graph_stream_end(&stream, &err)) {
        fprintf(stderr, "%s\n%.*s\n", err.text, (int)text->used, text->bytes);
        require(false, "what is written can be read");
    }
    graph_stream_free(&stream);
    rec_reader_close(reader);
    close(fd);
}

/* Traces of the graph make the same records. */
static void
require_same(const struct graph *graph, const struct graph_layout *layout, bool ours)
{
    enum { MOST = 16 };
    struct rec_error err = {.code = REC_OK, .text = ""};
    struct text before = records(graph, layout), after;
    char path[MOST][64];
    const char *name[MOST];
    int fd[MOST];
    struct chakra_traces *traces;
    struct graph_layout other;
    struct graph again = {0};
    struct chakra_plan *plan = chakra_plan_new(graph, layout, &err);
    require(plan || (graph->ncolls > 0 && err.code == REC_DATA),
            "all but an op on a slot that takes no part in its coll can be written");
    require_records(&before);
    if (!plan) {
        free(before.bytes);
        return;
    }
    for (uint32_t s = 0; layout->nslots <= MOST && s < layout->nslots; s++) {
        struct text text = {0};
        struct rec_writer *writer = open_writer(&text);
        require(chakra_write(plan, s, writer, &err) &&
                    rec_writer_close(writer, true, &err),
                "a slot is written");
        fd[s] = fuzz_file((const uint8_t *)text.bytes, text.used, path[s]);
        name[s] = path[s];
        free(text.bytes);
    }
    if (layout->nslots <= MOST) {
        bool built =
            build(name, layout->nslots, CHAKRA_RANK, &again, &other, &traces, &err);
        require(built || ours, err.text);
        after = built ? records(&again, &other) : (struct text){0};
        if (!ours && (before.used != after.used ||
                      memcmp(before.bytes, after.bytes, after.used))) {
            fprintf(stderr, "%.*s----\n%.*s", (int)before.used, before.bytes,
                    (int)after.used, after.bytes);
            require(false, "it is the same");
        }
        for (uint32_t s = 0; s < layout->nslots; s++)
            close(fd[s]);
        graph_layout_free(&other);
        graph_free(&again);
        chakra_traces_free(traces);
        free(after.bytes);
    }
    chakra_plan_free(plan);
    free(before.bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char mark[] = "\n==\n";
    const uint8_t *split = memmem(data, size, mark, 4);
    size_t first = split ? (size_t)(split - data) : size;
    struct rec_error err = {.code = REC_OK, .text = ""};
    char path[2][64];
    const char *name[2] = {path[0], path[1]};
    int fd[2] = {fuzz_file(data, first, path[0]), -1};
    if (split)
        fd[1] = fuzz_file(split + 4, size - first - 4, path[1]);
    for (enum chakra_server server = CHAKRA_RANK; server <= CHAKRA_OP; server++) {
        struct chakra_traces *traces;
        struct graph_layout layout;
        struct graph graph = {0};
        if (build(name, split ? 2 : 1, server, &graph, &layout, &traces, &err))
            require_same(&graph, &layout, memmem(data, size, "rampipe.", 8) != NULL);
        else
            require(err.text[0] && err.code != REC_OK && err.code != REC_BUG,
                    "a message says what is wrong");
        graph_layout_free(&layout);
        graph_free(&graph);
        chakra_traces_free(traces);
    }
    close(fd[0]);
    if (split)
        close(fd[1]);
    return 0;
}
