/* et2graph [OPTION]... [FILE]... - read execution traces in Chakra's format, write a
 * graph and its layout. */
#include "ggo/et2graph.h"
#include "main.h"

#include "net_option.h"
#include "ramp_network.h"
#include "rampipe/chakra.h"

#include <stdlib.h>

struct settings {
    size_t sharing; /* enum chakra_server */
    uint64_t steps;
    struct ramp_network network; /* what the other options describe */
    struct net *net;             /* owned; NULL: none yet */
    uint32_t *server;            /* of each slot; owned; NULL: slot i is on server i */
};

/* A file and its rank. */
struct source {
    const char *path;
    uint32_t rank;
};

static bool
read_settings(struct cli *cli, const struct et2graph_args *args,
              struct settings *settings)
{
    static const char *const servers[] = {"rank", "thread", "op", NULL};
    bool asked;
    *settings = (struct settings){.network.options = RAMP_NETWORK_OPTIONS(args)};
    asked = ramp_network_asked(&settings->network);
    if (args->no_job_given && (asked || args->cluster_given || args->steps_given))
        return cli_usage(cli, "--no-job writes no cluster and no job");
    if (args->cluster_given && asked)
        return cli_usage(cli, "--cluster says all of the cluster: leave out --shape, "
                              "--bandwidth, --propagation and --io");
    if (!cli_choice(cli, "server", args->server_arg, servers, &settings->sharing) ||
        !cli_count(cli, "steps", args->steps_arg, 1, GRAPH_STEPS_MAX, &settings->steps) ||
        !ramp_network_read(cli, &settings->network))
        return false;
    if (args->name_given && (!*args->name_arg || strpbrk(args->name_arg, ",=\t\r\n") ||
                             !rec_is_text(rec_str(args->name_arg))))
        return cli_usage(cli,
                         "--name must be a name without comma, '=' or TAB, in UTF-8");
    return true;
}

/* ---- names of files ------------------------------------------------------ */

/* Splits the name of a file: returns trace for a/trace.12.et.gz, and sets *rank to 12. If
 * the name has no rank, *rank stays as it is. */
static struct rec_str
split_name(const char *path, uint32_t *rank)
{
    const char *slash = strrchr(path, '/'), *dot;
    struct rec_str base = rec_str(slash ? slash + 1 : path), digits;
    uint64_t number;
    if (base.len > 3 && memcmp(base.ptr + base.len - 3, ".gz", 3) == 0)
        base.len -= 3;
    if (base.len <= 3 || memcmp(base.ptr + base.len - 3, ".et", 3) != 0)
        return base;
    base.len -= 3;
    dot = memrchr(base.ptr, '.', base.len);
    if (!dot || dot == base.ptr)
        return base;
    digits = (struct rec_str){dot + 1, (size_t)(base.ptr + base.len - dot) - 1};
    if (!rec_parse_uint(digits, &number) || number >= GRAPH_SLOTS_MAX)
        return base;
    *rank = (uint32_t)number;
    base.len = (size_t)(dot - base.ptr);
    return base;
}

static int
by_rank(const void *x, const void *y)
{
    const struct source *a = x, *b = y;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static bool
sort_sources(struct cli *cli, struct source *source, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        source[i].path = cli->nfiles ? cli->files[i] : "-";
        source[i].rank = (uint32_t)i;
        (void)split_name(source[i].path, &source[i].rank);
    }
    qsort(source, n, sizeof *source, by_rank);
    for (size_t i = 1; i < n; i++)
        if (source[i].rank == source[i - 1].rank)
            return cli_usage(cli, "%s and %s are both of rank %u", source[i - 1].path,
                             source[i].path, source[i].rank);
    return true;
}

/* Chooses the name of the graph: that of its first file, or --name. */
static bool
choose_name(struct cli *cli, const struct et2graph_args *args, const char *path,
            char name[300])
{
    uint32_t rank;
    struct rec_str base =
        strcmp(path, "-") == 0 ? rec_str("stdin") : split_name(path, &rank);
    if (args->name_given)
        base = rec_str(args->name_arg);
    snprintf(name, 300, "%.*s", (int)base.len, base.ptr);
    rec_clean_id(name);
    return rec_is_text(rec_str(name)) ||
           cli_usage(cli,
                     "%s: a graph is called as its file, and the name is no UTF-8: "
                     "give --name",
                     path);
}

/* ---- records ------------------------------------------------------------- */

/* Takes the cluster that the files name, and the servers of the job there. *taken is
 * false if they name none, or if the layout has other slots now. */
static bool
take_cluster(struct cli *cli, struct settings *settings,
             const struct chakra_traces *traces, const struct graph_layout *layout,
             bool *taken)
{
    size_t n;
    const char *record = chakra_cluster(traces, &n);
    *taken = record && n == layout->nslots;
    if (!*taken)
        return true;
    settings->server = malloc(n * sizeof *settings->server);
    if (!settings->server)
        return rec_fail_memory(&cli->err);
    if (!(settings->net = net_find_record("the cluster in the files", record, &cli->err)))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!net_parse_server(settings->net, rec_str(chakra_server(traces, i)),
                              &settings->server[i], &cli->err))
            return false;
    return true;
}

/* Chooses the cluster: that of --cluster, that of the files, or the one that the other
 * options describe. *by_options: it is that, of which they may say only a part. */
static bool
choose_cluster(struct cli *cli, const struct et2graph_args *args,
               struct settings *settings, const struct chakra_traces *traces,
               const struct graph_layout *layout, bool *by_options)
{
    bool taken = false;
    *by_options = false;
    if (args->cluster_given &&
        !(settings->net = net_option(cli, "cluster", args->cluster_arg)))
        return false;
    if (!args->cluster_given && !ramp_network_asked(&settings->network) &&
        !take_cluster(cli, settings, traces, layout, &taken))
        return false;
    *by_options = !args->cluster_given && !taken;
    if (*by_options &&
        !(settings->net = ramp_network_make(cli, &settings->network, layout->nslots)))
        return false;
    if (net_servers(settings->net) < layout->nslots)
        return cli_usage(cli, "--%s must have %u servers or more, got %u",
                         args->cluster_given ? "cluster" : "shape", layout->nslots,
                         net_servers(settings->net));
    return true;
}

static bool
write_all(struct cli *cli, const struct settings *settings, bool job,
          const struct graph *graph, const struct graph_layout *layout)
{
    const struct net *net = settings->net;
    if (!cli_open_writer(cli, true))
        return false;
    if (job)
        net_write(net, cli->writer);
    graph_write(graph, cli->writer);
    if (job)
        graph_write_job(graph, settings->steps, cli->writer);
    if (!graph_layout_write(layout, cli->writer, &cli->err))
        return false;
    if (job) {
        graph_begin_alloc(cli->writer, rec_str(graph->id), layout, 0);
        net_servers_field(net, settings->server, layout->nslots, cli->writer);
        rec_end(cli->writer);
    }
    return true;
}

/* ---- the tool ------------------------------------------------------------ */

/* Warns of what was left out, and of collectives whose other members are missing. */
static void
warn_of(struct cli *cli, const struct chakra_counts *counts)
{
    const struct {
        uint64_t n;
        const char *what;
    } said[] = {{counts->self, "dependencies of nodes on themselves"},
                {counts->dangling, "on nodes that are not there"},
                {counts->sends, "sends"},
                {counts->receives, "receives"}};
    char text[300] = "", one[80];
    for (size_t i = 0; i < 4; i++) {
        if (said[i].n == 0)
            continue;
        snprintf(one, sizeof one, "%llu %s%s", (unsigned long long)said[i].n,
                 said[i].what, i >= 2 ? " without their other end" : "");
        (void)rec_list_name(text, sizeof text, one);
    }
    if (*text)
        cli_warn(cli, "left out: %s", text);
}

/* Do bytes go from one server to another? */
static bool
communicates(const struct graph *graph, const struct graph_layout *layout)
{
    for (size_t i = 0; i < graph->ndeps; i++)
        if (graph->dep[i].bytes > 0 &&
            layout->slot[graph->dep[i].src] != layout->slot[graph->dep[i].dst])
            return true;
    for (size_t i = 0; i < graph->ncolls; i++)
        if (graph->coll[i].bytes > 0)
            return true;
    return false;
}

static bool
convert(struct cli *cli, const struct et2graph_args *args, struct settings *settings,
        struct chakra_traces *traces, const char *name)
{
    struct graph graph = {0};
    struct graph_layout layout;
    struct chakra_counts counts;
    bool by_options,
        ok = chakra_build(traces, name, (enum chakra_server)settings->sharing, &graph,
                          &layout, &counts, &cli->err);
    if (ok) {
        warn_of(cli, &counts);
        cli_note(cli, "%s: %zu ops, %zu deps, %u servers", graph.id, graph.nops,
                 graph.ndeps, layout.nslots);
        ok = choose_cluster(cli, args, settings, traces, &layout, &by_options);
        if (ok && by_options && !args->no_job_given && communicates(&graph, &layout))
            ramp_network_warn(cli, &settings->network);
        ok = ok && write_all(cli, settings, !args->no_job_given, &graph, &layout);
    }
    graph_layout_free(&layout);
    graph_free(&graph);
    return ok;
}

static bool
run(struct cli *cli, const struct et2graph_args *args)
{
    size_t n = cli->nfiles ? cli->nfiles : 1;
    struct source *source = calloc(n, sizeof *source);
    struct chakra_traces *traces = NULL;
    struct settings settings = {.net = NULL};
    char name[300];
    bool ok = (source || rec_fail_memory(&cli->err)) &&
              read_settings(cli, args, &settings) && sort_sources(cli, source, n) &&
              choose_name(cli, args, source[0].path, name) &&
              (traces = chakra_traces_new(&cli->err));
    for (size_t i = 0; ok && i < n; i++) {
        ok = chakra_read(traces, source[i].path, source[i].rank, &cli->err);
        cli_progress(cli, i + 1, n, "files");
    }
    ok = ok && convert(cli, args, &settings, traces, name);
    chakra_traces_free(traces);
    net_free(settings.net);
    free(settings.server);
    free(source);
    return ok;
}
