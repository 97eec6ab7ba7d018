/* partition [OPTION]... [FILE]... - graphs and jobs -> partitioned graphs and jobs. */
#include "ggo/partition.h"
#define CLI_UNSHOWN "limit",
#define CLI_SEED (args.policy_given && strcasecmp(args.policy_arg, "random") == 0)
#include "main.h"

#include "graph_times.h"
#include "partition_policy.h"
#include "ramp_shape.h"

#include <stdlib.h>

enum { PARTS_MAX = 65536 };

struct partition {
    struct cli *cli;
    struct graph_partition how;
    struct graph_reading reading;
    struct graph result;
    double made; /* ops and deps of all results, on which there is a limit */
    struct rec_limit limit;
    bool warned;
    const char **new_name; /* per graph of the reading: what it is called now */
    size_t nnames, name_room;
    struct rec_arena arena;
    uint32_t *legal; /* numbers of parts, with --legal-parts */
    char *held;      /* comments and unknown records met inside a graph */
    size_t held_len, held_room;
};

/* OP:N */
static bool
read_item(struct rec_str text, struct graph_split_op *item)
{
    const char *colon = text.len ? memrchr(text.ptr, ':', text.len) : NULL;
    struct rec_str parts;
    uint64_t n;
    if (!colon || colon == text.ptr)
        return false;
    item->op = (struct rec_str){text.ptr, (size_t)(colon - text.ptr)};
    parts = (struct rec_str){colon + 1, text.len - item->op.len - 1};
    if (!rec_parse_uint(parts, &n) || n < 1 || n > PARTS_MAX)
        return false;
    item->parts = (uint32_t)n;
    return true;
}

/* Appends an item to the list; an op may be named only once. */
static bool
add_item(struct partition *p, struct rec_map *named, struct graph_split_op item,
         struct graph_split_op **list, size_t *room)
{
    if (rec_map_get(named, item.op) != REC_NONE)
        return cli_usage(p->cli, "--split names op '%.*s' twice", (int)item.op.len,
                         item.op.ptr);
    if (!rec_map_add(named, item.op, p->how.nlist, &p->cli->err) ||
        !rec_grow(list, room, p->how.nlist + 1, sizeof **list, &p->cli->err))
        return false;
    (*list)[p->how.nlist++] = item;
    return true;
}

/* OP:N,OP:N */
static bool
read_list(struct partition *p, const char *text, struct graph_split_op **list)
{
    struct rec_str rest = rec_str(text), part;
    struct graph_split_op item;
    struct rec_map named = {0};
    size_t room = 0;
    bool ok = true;
    while (ok && rec_str_split(&rest, ',', &part))
        ok = read_item(part, &item)
                 ? add_item(p, &named, item, list, &room)
                 : cli_usage(p->cli,
                             "--split must be OP:N,OP:N... with N from 1 to 65536, got "
                             "'%s'",
                             text);
    rec_map_free(&named);
    p->how.list = *list;
    return ok;
}

/* The numbers of parts that have a block on a cluster of a shape: 1 and even numbers, for
 * the SiP-ML rule makes no others. */
static bool
read_legal_parts(struct partition *p, const char *text)
{
    struct net *net = ramp_shape(p->cli, "legal-parts", text);
    uint32_t most = net ? net_servers(net) : 0;
    most = most < PARTS_MAX ? most : PARTS_MAX;
    if (net && !(p->legal = calloc(most, sizeof *p->legal)))
        rec_fail_memory(&p->cli->err);
    for (uint32_t k = 1; p->legal && k <= most; k++)
        if ((k == 1 || k % 2 == 0) && net_is_legal(net, k))
            p->legal[p->how.nlegal++] = k;
    p->how.legal = p->legal;
    net_free(net);
    return p->legal != NULL;
}

static bool
read_options(struct partition *p, const struct partition_args *args,
             struct graph_split_op **list)
{
    static const char *const sizes[] = {"reference", "gradient", NULL};
    static const char *const sync[] = {"deps", "all-gather", "all-reduce", NULL};
    struct cli *cli = p->cli;
    uint64_t degree;
    size_t size, gradients;

    if (!cli_count(cli, "degree", args->degree_arg, 1, PARTS_MAX, &degree) ||
        !cli_seconds(cli, "quantum", args->quantum_arg, false, &p->how.quantum) ||
        !cli_choice(cli, "sizes", args->sizes_arg, sizes, &size) ||
        !cli_choice(cli, "sync", args->sync_arg, sync, &gradients))
        return false;
    if (degree > 1 && degree % 2)
        return cli_usage(cli, "--degree must be 1 or even, got '%s'", args->degree_arg);
    if (args->split_given && (args->degree_given || args->quantum_given))
        return cli_usage(
            cli,
            "--split says the numbers of parts itself: leave out --degree and --quantum");
    if (!cli_limit(cli, args->limit_arg, &p->limit))
        return false;
    p->how.degree = (uint32_t)degree;
    p->how.gradients = (enum graph_gradients)gradients;
    p->how.sizes = size ? GRAPH_SIZES_GRADIENT : GRAPH_SIZES_REFERENCE;
    if (!args->policy_given && (args->max_degree_given || args->shape_given ||
                                args->cluster_given || args->seed_given))
        return cli_usage(cli,
                         "--max-degree, --shape, --cluster and --seed are for --policy");
    if (args->shape_given && args->cluster_given)
        return cli_usage(cli,
                         "--shape describes a cluster, too: leave it out, or --cluster");
    if (args->split_given && args->legal_parts_given)
        return cli_usage(
            cli, "--split says the numbers of parts itself: leave out --legal-parts");
    return (!args->legal_parts_given || read_legal_parts(p, args->legal_parts_arg)) &&
           (!args->split_given || read_list(p, args->split_arg, list));
}

/* Keeps a line that stands inside a graph and is not a part of it: it is written behind
 * the graph. */
static bool
hold(struct partition *p, struct rec_str line)
{
    if (!rec_grow(&p->held, &p->held_room, p->held_len + line.len + 1, 1, &p->cli->err))
        return false;
    memcpy(p->held + p->held_len, line.ptr, line.len);
    p->held_len += line.len;
    p->held[p->held_len++] = '\n';
    return true;
}

static bool
remember(struct partition *p)
{
    const char *name = rec_arena_copy(&p->arena, rec_str(p->result.id), &p->cli->err);
    if (!name || !rec_grow(&p->new_name, &p->name_room, p->nnames + 1,
                           sizeof *p->new_name, &p->cli->err))
        return false;
    p->new_name[p->nnames++] = name;
    return true;
}

static bool
split(void *context, const struct graph *graph, struct rec_error *err)
{
    struct partition *p = context;
    if (!graph_partition_count(graph, &p->how, &p->made, err) ||
        !rec_limit(&p->limit, p->made, "ops and deps", err) ||
        !graph_partition(graph, &p->how, &p->result, err) || !remember(p))
        return false;
    partition_warn(p->cli, &p->result, &p->warned);
    cli_note(p->cli, "%s: %zu ops and %zu deps", p->result.id, p->result.nops,
             p->result.ndeps);
    graph_write(&p->result, p->cli->writer);
    rec_put_bytes(p->cli->writer, p->held, p->held_len);
    p->held_len = 0;
    return true;
}

static bool
write_job(struct partition *p, const struct rec *rec)
{
    struct rec_writer *writer = p->cli->writer;
    struct rec_str rest, id;
    bool first = true;

    rec_begin(writer, "job");
    rec_str_field(writer, rec->field[1]);
    rest = p->reading.job.graphs;
    while (rec_str_split(&rest, ',', &id)) {
        uint32_t i = rec_map_get(&p->reading.ids, id);
        if (i == REC_NONE)
            return rec_reader_fail(p->cli->reader, &p->cli->err,
                                   "job '%.*s' refers to graph '%.*s', which has not "
                                   "come before",
                                   (int)rec->field[1].len, rec->field[1].ptr, (int)id.len,
                                   id.ptr);
        rec_put_bytes(writer, first ? "\t" : ",", 1);
        rec_put_bytes(writer, p->new_name[i], strlen(p->new_name[i]));
        first = false;
    }
    for (size_t i = 3; i < rec->nfields; i++)
        rec_str_field(writer, rec->field[i]);
    rec_end(writer);
    return true;
}

static bool
take(struct partition *p, const struct rec *rec)
{
    enum graph_taken taken;
    if (!graph_reading_take(&p->reading, p->cli->reader, rec, &taken, &p->cli->err))
        return false;
    if (taken == GRAPH_PART_TAKEN)
        return true;
    if (taken == GRAPH_JOB_TAKEN)
        return write_job(p, rec);
    if (p->reading.graph.open)
        return hold(p, rec->line);
    rec_put_line(p->cli->writer, rec->line);
    return true;
}

static bool
run(struct cli *cli, const struct partition_args *args)
{
    struct partition p = {.cli = cli};
    struct graph_split_op *list = NULL;
    char advice[GRAPH_TIMES_MAX];
    struct rec rec;
    int status = 0;
    bool ok = read_options(&p, args, &list);

    p.reading.whole = split;
    p.reading.context = &p;
    p.reading.store.advice = graph_times_advice(cli, args->allow_zero_given, advice);
    if (ok && args->policy_given)
        ok = partition_by_policy(cli, args, &p.how, p.reading.store.advice);
    else {
        ok = ok && cli_open_filter(cli);
        while (ok && (status = cli_next(cli, &rec)) > 0)
            ok = take(&p, &rec);
        ok = ok && status == 0 && graph_reading_end(&p.reading, &cli->err);
    }
    free(list);
    free(p.legal);
    free(p.held);
    free(p.new_name);
    rec_arena_free(&p.arena);
    graph_free(&p.result);
    graph_reading_free(&p.reading);
    return ok;
}
