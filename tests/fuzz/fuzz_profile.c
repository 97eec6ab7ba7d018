/* Any bytes as a profile: refused with a message, or a graph that reads back as it is. */
#include "fuzz.h"

#include "rampipe/input.h"

static void
write_graph(const struct graph *graph, const char *path)
{
    struct rec_error err;
    struct rec_writer *writer = rec_writer_open(path, NULL, &err);
    if (!writer)
        abort();
    graph_write(graph, writer);
    if (!rec_writer_close(writer, true, &err))
        abort();
}

/* Reads the records that write_graph() wrote. */
static void
read_graph(struct graph *graph, const char *path)
{
    struct rec_error err = {.text = ""};
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &err);
    struct rec rec;
    int status;
    if (!reader)
        abort();
    while ((status = rec_next(reader, &rec, &err)) > 0)
        if (!rec_check(reader, &rec, &err) || !graph_read(graph, reader, &rec, &err))
            break;
    if (status != 0 || !graph_close(graph, &err)) {
        fprintf(stderr, "not read back: %s\n", err.text);
        abort();
    }
    rec_reader_close(reader);
}

static void
compare(int a, int b)
{
    static char x[1 << 16], y[1 << 16];
    ssize_t n, m;
    off_t at = 0;
    do {
        n = pread(a, x, sizeof x, at);
        m = pread(b, y, sizeof y, at);
        if (n < 0 || n != m || memcmp(x, y, (size_t)n) != 0)
            abort();
        at += n;
    } while (n > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], first_path[64], second_path[64];
    const char *name = path;
    int fd = fuzz_file(data, size, path), first, second;
    struct input_profile_options options = {1e-3, INPUT_MEMORY_TOTAL,
                                            !(size && data[size - 1] == ' ')};
    struct graph graph = {0}, again = {0};
    struct input_head head = {.provenance = NULL};
    struct rec_error err = {.code = REC_OK, .text = ""};
    struct rec_reader *reader;

    reader = rec_reader_open(&name, 1, NULL, &err);
    if (reader) {
        if (input_read_head(reader, &head, &err) &&
            input_read_profile(&graph, reader, &options, rec_str("g"), rec_str("m"),
                               &head, &err)) {
            first = fuzz_file(NULL, 0, first_path);
            second = fuzz_file(NULL, 0, second_path);
            write_graph(&graph, first_path);
            read_graph(&again, first_path);
            write_graph(&again, second_path);
            compare(first, second);
            close(first);
            close(second);
        } else if (err.text[0] == '\0' || err.code == REC_OK || err.code == REC_BUG)
            abort();
        rec_reader_close(reader);
    }
    input_head_free(&head);
    graph_free(&graph);
    graph_free(&again);
    close(fd);
    return 0;
}
