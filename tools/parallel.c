/* parallel [OPTION]... [FILE]... - write a training step under parallelism as a graph. */
#include "ggo/parallel.h"
#include "mix_keys.h"
#define CLI_PATHS \
    "gemm-table", "attention-table", "stacks", "devices", "cluster", "schedule", "args",
#define CLI_WORDS mix_words
#include "main.h"

#include <stdlib.h>

static bool
write_all(struct cli *cli, const struct mix_options *options, struct mix_tables *tables,
          struct parallel_graph *graph)
{
    struct rec rec;
    int status;
    if (!cli_open_filter(cli))
        return false;
    while ((status = cli_next(cli, &rec)) > 0) {
        struct rec_reader *reader = NULL;
        char *line = NULL;
        bool ok;
        if (rec.type == REC_CLUSTER)
            return rec_reader_fail(cli->reader, &cli->err,
                                   "the stream has a cluster, and the step brings its "
                                   "own: take the record out, and say --cluster");
        ok = rec.type != REC_TRAINING ||
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
    if (status == 0 && graph->idle)
        mix_warn_idle(cli, 1, 1);
    return status == 0;
}

/* In the order of enum parallel_overlap. */
static bool
read_colls(struct cli *cli, const char *text, unsigned *colls)
{
    static const char *const words[] = {"tp", "pp", "dp", "cp", "ep", "all"};
    enum { ALL = sizeof words / sizeof *words - 1 };
    struct rec_str rest = rec_str(text), part;
    while (rec_str_split(&rest, ',', &part)) {
        unsigned i = 0;
        while (i <= ALL && !rec_str_is(part, words[i]))
            i++;
        if (i > ALL)
            return cli_usage(cli,
                             "--colls must list tp, cp, ep, dp, pp, or be all, "
                             "got '%s'",
                             text);
        *colls |= i == ALL ? (1U << ALL) - 1 : 1U << i;
    }
    return true;
}

/* An order is that of the passes of a device: it says nothing of a graph. */
static bool
check_orders(struct cli *cli, const struct parallel_args *args)
{
    const char *also = args->steps_given    ? "steps"
                       : args->unfold_given ? "unfold"
                       : args->colls_given  ? "colls"
                                            : NULL;
    return !args->orders_given || !also ||
           cli_usage(cli, "--orders writes no graph: leave out --%s", also);
}

static bool
run(struct cli *cli, const struct parallel_args *args)
{
    const struct mix_options options = MIX_OPTIONS(args);
    struct mix_tables t = {.net = NULL};
    struct parallel_graph graph = {.net = NULL};
    bool ok = check_orders(cli, args) &&
              (!args->colls_given || read_colls(cli, args->colls_arg, &graph.colls)) &&
              cli_limit(cli, args->limit_arg, &graph.limit) &&
              cli_count(cli, "steps", args->steps_arg, 1, UINT32_MAX, &graph.steps) &&
              mix_tables_read(cli, &options, false, &t);
    const struct parallel_tables tables = {&t.stacks, &t.devices, &t.collectives,
                                           &t.own,    t.kernels,  0};
    graph.tables = &tables;
    t.colls = args->colls_given;
    graph.unfold = args->unfold_given;
    graph.orders = args->orders_given;
    graph.net = t.net;
    t.net = NULL;
    ok = ok && write_all(cli, &options, &t, &graph);
    net_free(graph.net);
    mix_tables_free(&t);
    return ok;
}
