/* Any bytes as a PipeDream profile: a graph that writes and reads back, or an error. */
#include "fuzz.h"

#include "rampipe/graph.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct graph_profile_options options = {1e-3, GRAPH_MEMORY_TOTAL, size % 2 == 0};
    char path[64];
    const char *name = path;
    int fd = fuzz_file(bytes, size, path);
    struct rec_error err;
    struct rec_reader *reader = rec_reader_open(&name, 1, NULL, &err);
    struct graph graph = {0}, again = {0};
    struct rec rec;

    if (!reader)
        abort();
    if (graph_read_profile(&graph, reader, &options, rec_str("g"), rec_str("g"), &err)) {
        char out[64];
        const char *copy = out;
        int fd2 = fuzz_file(NULL, 0, out);
        struct rec_writer *writer = rec_writer_open(out, NULL, &err);
        struct rec_reader *second;
        graph_write(&graph, writer);
        if (!rec_writer_close(writer, true, &err) ||
            !(second = rec_reader_open(&copy, 1, NULL, &err)))
            abort();
        while (rec_next(second, &rec, &err) > 0)
            if (!graph_read(&again, second, &rec, &err))
                abort();
        if (!graph_close(&again, &err) || again.nops != graph.nops ||
            again.ndeps != graph.ndeps ||
            graph_sequential(&again) != graph_sequential(&graph))
            abort();
        rec_reader_close(second);
        close(fd2);
    }
    graph_free(&graph);
    graph_free(&again);
    rec_reader_close(reader);
    close(fd);
    return 0;
}
