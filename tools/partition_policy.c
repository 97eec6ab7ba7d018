/* partition --policy: each partitioned graph is written when the first job needs it. */
#include "partition_policy.h"

#include "ggo/partition.h"
#include "net_option.h"
#include "ramp_shape.h"
#include "rampipe/alloc.h"
#include "rampipe/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A partitioned graph that is not in the output yet, and that the current job needs. */
struct wanted {
    const struct graph *graph;
    uint32_t degree;
};

struct policy {
    struct cli *cli;
    struct graph_partition *how;
    const struct alloc_policy *policy;
    struct alloc_offer offer;
    uint32_t valid[ALLOC_DEGREES_MAX], offered[ALLOC_DEGREES_MAX];
    struct graph_reading reading; /* has the graphs as they came */
    struct rec_map written;       /* "graph/degree", once it is in the output */
    struct rec_arena arena;
    char *list; /* the alternatives of a job */
    size_t list_len, list_room;
    struct wanted *wanted; /* those of them that are not in the output yet */
    size_t nwanted, wanted_room;
    /* Ops and deps of all graphs that were made, and alternatives of jobs (see
     * count_alternatives()), against `limit`. */
    double made;
    struct rec_limit limit;
    bool warned;
    bool assumed;  /* no option says what the cluster is, and degrees depend on it */
    uint32_t most; /* the largest degree that may be offered */
};

void
partition_warn(const struct cli *cli, const struct graph *graph, bool *warned)
{
    struct rec_str family, parts;
    if (*warned || !graph_key(graph, "family", &family) ||
        !rec_str_is(family, "transformer") || !graph_key(graph, "parts", &parts) ||
        rec_str_is(parts, "1"))
        return;
    cli_warn(cli,
             "graph '%s' is of a transformer: each part of its ops sends to each "
             "part of the next op, which is no tensor parallelism",
             graph->id);
    *warned = true;
}

static bool
read_policy(struct policy *p, const struct partition_args *args)
{
    static const char *const changed[] = {"degree", "split"};
    const bool given[] = {args->degree_given, args->split_given};
    struct cli *cli = p->cli;
    char name[32];
    const char *colon = strchr(args->policy_arg, ':');
    size_t choice = 0,
           len = colon ? (size_t)(colon - args->policy_arg) : strlen(args->policy_arg);
    uint64_t most, seed, limit;
    struct net *net;

    for (int i = 0; i < 2; i++)
        if (given[i])
            return cli_usage(cli, "--policy chooses the degrees itself: leave out --%s",
                             changed[i]);
    snprintf(name, sizeof name, "%.*s", (int)len, args->policy_arg);
    if (!cli_choose_row(cli, "policy", name, alloc_policies, sizeof *alloc_policies,
                        &choice) ||
        !cli_count(cli, "max-degree", args->max_degree_arg, 1, 65536, &most) ||
        !cli_count(cli, "seed", args->seed_arg, 0, UINT32_MAX, &seed) ||
        !cli_limit(cli, args->limit_arg, &p->limit))
        return false;
    p->policy = &alloc_policies[choice];
    p->most = (uint32_t)most;
    p->assumed = !args->cluster_given && !args->shape_given &&
                 strcmp(p->policy->name, "none") != 0;
    limit = most;
    if (colon &&
        (!p->policy->limited || !rec_parse_uint(rec_str(colon + 1), &limit) || limit < 1))
        return cli_usage(cli,
                         "only sip-ml takes a number, sip-ml:N with N >= 1, got '%s'",
                         args->policy_arg);
    p->offer.limit = limit > most ? (uint32_t)most : (uint32_t)limit;
    p->offer.valid = p->valid;
    net = args->cluster_given ? net_option(cli, "cluster", args->cluster_arg)
                              : ramp_shape(cli, "shape", args->shape_arg);
    if (!net)
        return false;
    p->offer.nvalid = alloc_valid_degrees(net, (uint32_t)most, p->valid);
    net_free(net);
    p->offer.rng = rng_new((uint32_t)seed, 0, &cli->err);
    return p->offer.rng != NULL;
}

/* Puts "graph/degree" on the list, and among what is wanted if it is not in the
 * output. */
static bool
offer(struct policy *p, const struct graph *graph, uint32_t degree)
{
    struct rec_error *err = &p->cli->err;
    size_t need = strlen(graph->id) + 20;
    struct rec_str id;
    const char *kept;
    bool ok;

    if (!rec_grow(&p->list, &p->list_room, p->list_len + need, 1, err))
        return false;
    if (p->list_len)
        p->list[p->list_len++] = ',';
    id.ptr = p->list + p->list_len;
    id.len = (size_t)snprintf(p->list + p->list_len, need, "%s/%u", graph->id, degree);
    p->list_len += id.len;
    if (rec_map_get(&p->written, id) != REC_NONE)
        return true;
    kept = rec_arena_copy(&p->arena, id, err);
    ok = kept && rec_map_add(&p->written, (struct rec_str){kept, id.len}, degree, err);
    p->how->degree = degree;
    if (!ok || !graph_partition_count(graph, p->how, &p->made, err) ||
        !rec_grow(&p->wanted, &p->wanted_room, p->nwanted + 1, sizeof *p->wanted, err))
        return false;
    p->wanted[p->nwanted++] = (struct wanted){graph, degree};
    return true;
}

static bool
write_wanted(struct policy *p)
{
    bool ok = true;
    for (size_t i = 0; ok && i < p->nwanted; i++) {
        struct graph result = {0};
        p->how->degree = p->wanted[i].degree;
        ok = graph_partition(p->wanted[i].graph, p->how, &result, &p->cli->err);
        if (ok) {
            partition_warn(p->cli, &result, &p->warned);
            graph_write(&result, p->cli->writer);
        }
        graph_free(&result);
    }
    p->nwanted = 0;
    return ok;
}

/*
 * Counts n more alternatives of a job against the limit. The names of alternatives are
 * written for each job, so a short record could make a long one. As many alternatives as
 * its record has bytes are free: they only make the output larger by a constant factor.
 */
static bool
count_alternatives(struct policy *p, const struct rec *rec, uint32_t n, double *all)
{
    double before = fmax(*all, (double)rec->line.len);
    *all += n;
    p->made += fmax(*all - before, 0);
    return rec_limit(&p->limit, p->made, "ops, deps and alternatives of jobs",
                     &p->cli->err);
}

static bool
take_job(struct policy *p, const struct rec *rec)
{
    struct cli *cli = p->cli;
    struct rec_str rest, id;
    const struct graph_job *job = &p->reading.job;
    const struct graph_store *store = &p->reading.store;
    double all = 0;

    p->list_len = 0;
    for (rest = job->graphs; rec_str_split(&rest, ',', &id);) {
        const struct graph *graph = store->graph[graph_store_find(store, id)];
        uint32_t n;
        p->offer.sequential = graph_sequential(graph) * job->steps;
        p->offer.deadline = job->deadline;
        n = p->policy->offer(&p->offer, p->offered);
        for (uint32_t i = 0; i < n; i++)
            if (!offer(p, graph, p->offered[i]))
                return false;
        if (!count_alternatives(p, rec, n, &all))
            return false;
    }
    if (!write_wanted(p))
        return false;
    rec_begin(cli->writer, "job");
    rec_str_field(cli->writer, job->id);
    rec_str_field(cli->writer, (struct rec_str){p->list, p->list_len});
    for (size_t i = 3; i < rec->nfields; i++)
        rec_str_field(cli->writer, rec->field[i]);
    rec_end(cli->writer);
    return true;
}

/* Warns of a cluster in the stream, unless it holds the degrees that are offered anyway.
 * One that cannot be read is left to the allocator. */
static bool
take_cluster(struct policy *p, const struct rec *rec)
{
    struct rec_error err = {.code = REC_DATA};
    uint32_t *valid = p->offered, n = 0;
    struct net *net = net_read(p->cli->reader, rec, &err);
    bool read = net && net_close(net, &err);
    if (read)
        n = alloc_valid_degrees(net, p->most, valid);
    net_free(net);
    if (!read && err.code != REC_DATA) {
        p->cli->err = err;
        return false;
    }
    if (n != p->offer.nvalid || memcmp(valid, p->valid, n * sizeof *valid) != 0)
        cli_warn(p->cli, "the stream has a cluster, but the degrees are for that of "
                         "--shape: give --cluster");
    return true;
}

static bool
take(struct policy *p, const struct rec *rec)
{
    enum graph_taken taken;
    if (rec->type == REC_CLUSTER && p->assumed && !take_cluster(p, rec))
        return false;
    if (!graph_reading_take(&p->reading, p->cli->reader, rec, &taken, &p->cli->err))
        return false;
    if (taken == GRAPH_JOB_TAKEN)
        return take_job(p, rec);
    if (taken == GRAPH_NOT_TAKEN)
        rec_put_line(p->cli->writer, rec->line);
    return true;
}

bool
partition_by_policy(struct cli *cli, const struct partition_args *args,
                    struct graph_partition *how, const char *advice)
{
    struct policy *p = calloc(1, sizeof *p);
    struct rec rec;
    int status = 0;
    bool ok;

    if (!p)
        return rec_fail_memory(&cli->err);
    p->cli = cli;
    p->how = how;
    p->reading.store.advice = advice;
    ok = read_policy(p, args) && cli_open_filter(cli);
    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(p, &rec);
    ok = ok && status == 0 && graph_reading_end(&p->reading, &cli->err);
    rng_free(p->offer.rng);
    graph_reading_free(&p->reading);
    rec_map_free(&p->written);
    rec_arena_free(&p->arena);
    free(p->list);
    free(p->wanted);
    free(p);
    return ok;
}
