/* parallel [OPTION]... [FILE]... - write a training step under parallelism as a graph. */
#include "ggo/parallel.h"
#define CLI_PATHS "stacks", "devices", "cluster",
#include "main.h"
#include "mix_keys.h"

#include <stdlib.h>

static bool
write_all(struct cli *cli, const struct mix_options *options,
          const struct mix_tables *tables, struct parallel_graph *graph)
{
    struct rec rec;
    int status;
    if (!cli_open_filter(cli))
        return false;
    while ((status = cli_next(cli, &rec)) > 0) {
        struct rec_reader *reader = NULL;
        char *line = NULL;
        bool ok = rec.type != REC_TRAINING ||
                  (reader = mix_keys_apply(cli, options, tables, &rec, &line));
        ok = ok && parallel_graph_record(graph, reader ? reader : cli->reader, &rec,
                                         cli->writer, &cli->err);
        rec_reader_close(reader);
        free(line);
        if (!ok)
            return false;
    }
    if (status == 0 && !graph->written)
        return rec_fail(&cli->err, REC_DATA, "no training record came");
    return status == 0;
}

static bool
run(struct cli *cli, const struct parallel_args *args)
{
    const struct mix_options options = MIX_OPTIONS(args);
    struct mix_tables t = {.net = NULL};
    struct parallel_graph graph = {.net = NULL};
    bool ok = cli_count(cli, "steps", args->steps_arg, 1, UINT32_MAX, &graph.steps) &&
              mix_tables_read(cli, &options, false, &t);
    const struct parallel_tables tables = {&t.stacks, &t.devices, &t.collectives, 0};
    graph.tables = &tables;
    graph.net = t.net;
    t.net = NULL;
    ok = ok && write_all(cli, &options, &t, &graph);
    net_free(graph.net);
    mix_tables_free(&t);
    return ok;
}
