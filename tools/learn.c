/* learn [OPTION]... [FILE]... - graphs and jobs -> the weights of a chooser. */
#include "ggo/learn.h"
#define CLI_SEED true
#define CLI_UNSHOWN "minutes", "threads", "held-out",
#define CLI_PATHS "init",
#include "main.h"

#include "graph_times.h"
#include "learn_inputs.h"
#include "learn_single.h"
#include "net_option.h"
#include "rampipe/learn.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* The first seed of held-out episodes; training must not use those. */
enum { HELD_OUT = 1000001 };

struct learning {
    struct cli *cli;
    struct learn_options options;
    struct learn_course_options course; /* what all worlds have in common */
    struct alloc_cluster *clusters;
    uint32_t nclusters;
    struct learn_inputs inputs;
    struct learn_world *worlds;
    struct learn_settings settings;
    size_t cluster_room;
    struct rec_arena arena;
    uint32_t units;
    uint64_t held_out;    /* 0 without -v */
    uint64_t generations; /* there were */
    bool select;          /* --select */
    struct learn_single single;
    struct alloc_scorer *start, *scorer; /* the first may be NULL */
};

static volatile sig_atomic_t interrupted; /* the signal; 0: none */

/* Ends the training, with what is learned so far as the result. A second signal changes
 * nothing: timeout(1) sends two. */
static void
interrupt(int number)
{
    interrupted = number;
}

static bool
is_interrupted(void)
{
    return interrupted != 0;
}

/* ---- options ------------------------------------------------------------- */

/* --shape, a list: a cluster of each. With --cluster there is one. */
static bool
read_clusters(struct learning *l, const struct learn_args *args)
{
    struct ramp_cluster_options options = RAMP_CLUSTER_OPTIONS(args);
    struct rec_str rest = rec_str(args->shape_arg), shape;
    struct cli *cli = l->cli;
    options.several = true;
    while (rec_str_split(&rest, ',', &shape)) {
        struct net *net = NULL;
        options.shape = rec_arena_copy(&l->arena, shape, &cli->err);
        if (!options.shape ||
            !rec_grow(&l->clusters, &l->cluster_room, l->nclusters + 1,
                      sizeof *l->clusters, &cli->err) ||
            (args->cluster_given &&
             !(net = net_option(cli, "cluster", args->cluster_arg))))
            return false;
        l->clusters[l->nclusters] = (struct alloc_cluster){.net = NULL};
        if (!ramp_cluster_read(cli, &options, net, &l->clusters[l->nclusters++]))
            return false;
    }
    return true;
}

/* blocking, work, completion or cost:PRICE. */
static bool
read_objective(struct learning *l, const char *text)
{
    static const char *const names[] = {"blocking", "work", "completion", "cost:PRICE",
                                        NULL};
    size_t objective = LEARN_COST;
    struct rec_str rest = rec_str(text), word;
    rec_str_split(&rest, ':', &word);
    if (!rec_str_is(word, "cost")) {
        if (!cli_choice(l->cli, "objective", text, names, &objective))
            return false;
    } else if (!rec_parse_num(rest, &l->course.price) || !(l->course.price > 0) ||
               isinf(l->course.price))
        return cli_usage(l->cli, "--objective cost:PRICE needs a price above 0, got '%s'",
                         text);
    l->course.objective = (enum learn_objective)objective;
    return true;
}

/* What excludes each other, or would do nothing. */
static bool
check_options(const struct learning *l, const struct learn_args *args)
{
    struct cli *cli = l->cli;
    if (args->shared_flag && args->by_shape_flag)
        return cli_usage(cli, "--shared and --by-shape exclude each other");
    if (args->init_given && args->units_given)
        return cli_usage(
            cli,
            "--units cannot change the number of hidden units in the file of --init");
    if (args->select_flag && (args->generations_given || args->minutes_given ||
                              args->final_given || args->sigma_given))
        return cli_usage(cli, "--select trains nothing: leave --generations, --minutes, "
                              "--final and --sigma out");
    if (l->options.generations == 0 && !args->select_flag &&
        (args->minutes_given || (args->final_given && l->options.final > 0) ||
         args->sigma_given))
        return cli_usage(cli,
                         "--generations 0 trains no weights: leave --minutes, --final "
                         "and --sigma out");
    if ((args->value_jobs_given || args->value_units_given || args->value_margin_given) &&
        !args->values_given)
        return cli_usage(
            cli, "--value-jobs, --value-units and --value-margin are for --values");
    if (args->taught_given != args->teacher_given ||
        (args->taught_jobs_given && !args->taught_given))
        return cli_usage(cli, "--taught needs a --teacher, which is, as --taught-jobs, "
                              "for nothing else");
    if (args->held_out_given && l->held_out > 0 && !cli->verbose)
        return cli_usage(cli, "--held-out is for -v, which tells what comes of it");
    return true;
}

/* How long each expert is trained, and how it begins. */
static bool
read_training(struct learning *l, const struct learn_args *args)
{
    struct learn_options *o = &l->options;
    struct cli *cli = l->cli;
    uint64_t seed, units, final, threads = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    double minutes = args->generations_given && !args->minutes_given ? INFINITY : 1;

    o->generations = UINT64_MAX;
    if (!cli_count(cli, "jobs", args->jobs_arg, 1, 100000000, &l->course.jobs) ||
        (args->minutes_given &&
         !cli_amount(cli, "minutes", args->minutes_arg, false, &minutes)) ||
        (args->generations_given && !cli_count(cli, "generations", args->generations_arg,
                                               0, 100000000, &o->generations)) ||
        (args->threads_given &&
         !cli_count(cli, "threads", args->threads_arg, 1, 1024, &threads)) ||
        !cli_count(cli, "units", args->units_arg, 0, ALLOC_UNITS_MAX, &units) ||
        !cli_amount(cli, "sigma", args->sigma_arg, false, &o->sigma) ||
        !cli_count(cli, "held-out", args->held_out_arg, 0, 1000000, &l->held_out) ||
        !cli_count(cli, "final", args->final_arg, 0, 100000, &final) ||
        !cli_count(cli, "seed", args->seed_arg, 0, UINT32_MAX / 2, &seed))
        return false;
    if (!(o->sigma > 0))
        return cli_usage(cli, "--sigma must be above 0");
    l->select = args->select_flag;
    if (l->select) {
        o->generations = final = 0;
        minutes = INFINITY;
    }
    o->seed = (uint32_t)seed;
    o->threads = (uint32_t)threads;
    o->final = (uint32_t) final;
    o->seconds = 60 * minutes;
    o->by_shape = args->by_shape_flag;
    l->units = (uint32_t)units;
    l->course.stop = is_interrupted;
    l->inputs.apart = args->apart_flag;
    return true;
}

/* Values of states, and what experts are taught. */
static bool
read_values(struct learning *l, const struct learn_args *args)
{
    struct learn_single *single = &l->single;
    struct cli *cli = l->cli;
    uint64_t units = 0;
    *single = (struct learn_single){.cli = cli,
                                    .options = &l->options,
                                    .settings = &l->settings,
                                    .value_margin = NAN,
                                    .shared = args->shared_flag};
    if (!cli_count(cli, "value-jobs", args->value_jobs_arg, 0, 1000000000000,
                   &single->value_jobs) ||
        (args->value_units_given && !cli_count(cli, "value-units", args->value_units_arg,
                                               16, ALLOC_VALUE_UNITS, &units)) ||
        (args->value_margin_given &&
         !cli_amount(cli, "value-margin", args->value_margin_arg, false,
                     &single->value_margin)) ||
        !cli_count(cli, "taught-jobs", args->taught_jobs_arg, 1, 1000000000000,
                   &single->taught_jobs))
        return false;
    if (single->value_jobs > 0 && single->value_jobs < ALLOC_VALUE_STREAMS)
        return cli_usage(cli,
                         "--value-jobs must be 0 or at least %d, a job in each stream",
                         ALLOC_VALUE_STREAMS);
    if (units % 16)
        return cli_usage(cli, "--value-units must be a multiple of 16");
    single->value_units = (uint32_t)units;
    single->values = args->values_given ? args->values_arg : NULL;
    single->taught = args->taught_given ? args->taught_arg : NULL;
    single->teacher = args->teacher_arg;
    return true;
}

/* The policy that training begins with. Jobs are placed as it was trained. */
static bool
read_start(struct learning *l, const struct learn_args *args)
{
    struct cli *cli = l->cli;
    if (!(l->start = alloc_scorer_read(args->init_arg, &cli->err)))
        return false;
    for (uint32_t e = 0;
         (l->options.generations > 0 || l->select) && e < l->start->nexperts; e++)
        if (l->start->expert[e].value)
            return cli_usage(cli,
                             "%s has values of states, which training would drop: keep "
                             "them with --generations 0",
                             args->init_arg);
    for (uint32_t i = 0; !args->heuristic_given && i < l->nclusters; i++)
        if (!alloc_cluster_follow(cli, l->start->ways, &l->clusters[i]))
            return false;
    return true;
}

static bool
read_options(struct learning *l, const struct learn_args *args)
{
    l->settings = (struct learn_settings){.cli = l->cli,
                                          .loads = args->loads_arg,
                                          .fractions = args->fractions_arg,
                                          .steps = args->steps_arg};
    if (!read_clusters(l, args) || !learn_settings_check(&l->settings) ||
        !read_objective(l, args->objective_arg) || !read_training(l, args) ||
        !check_options(l, args) || !read_values(l, args))
        return false;
    if (!l->cli->verbose)
        l->held_out = 0;
    return !args->init_given || read_start(l, args);
}

/* Settings of the same load and fraction share an expert; with --by-shape only those on
 * the same shape, with --shared all settings do. */
static bool
set_experts(struct learning *l)
{
    struct rec_error *err = &l->cli->err;
    struct rec_map shapes = {.nslots = 0}; /* description -> its number */
    uint32_t nshapes = 0;
    bool ok = true;
    for (uint32_t i = 0; ok && i < l->settings.n; i++) {
        struct learn_setting *setting = &l->settings.setting[i];
        char text[NET_TEXT_MAX] = "";
        uint32_t shape;
        const char *copy;
        if (l->single.shared)
            setting->expert = 0;
        if (l->options.by_shape)
            net_describe(l->worlds[setting->world].course.admission.placer.net, text);
        if ((shape = rec_map_get(&shapes, rec_str(text))) == REC_NONE) {
            shape = nshapes++;
            ok = (copy = rec_arena_copy(&l->arena, rec_str(text), err)) &&
                 rec_map_add(&shapes, rec_str(copy), shape, err);
        }
        setting->expert += shape * l->settings.nexperts;
    }
    rec_map_free(&shapes);
    l->options.nexperts = l->single.shared ? 1 : nshapes * l->settings.nexperts;
    return ok;
}

/* Makes the worlds: an input on each cluster, all inputs on one, or each on its own. */
static bool
make_worlds(struct learning *l)
{
    struct rec_error *err = &l->cli->err;
    uint32_t n = l->inputs.n > l->nclusters ? l->inputs.n : l->nclusters;
    if (l->inputs.n > 1 && l->nclusters > 1 && l->inputs.n != l->nclusters)
        return cli_usage(l->cli, "--shape has %u shapes, but there are %u inputs",
                         l->nclusters, l->inputs.n);
    if (!(l->worlds = calloc(n, sizeof *l->worlds)))
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        struct learn_input *in = l->inputs.input[l->inputs.n > 1 ? i : 0];
        const struct alloc_cluster *cluster = &l->clusters[l->nclusters > 1 ? i : 0];
        struct learn_course_options *course = &l->worlds[i].course;
        if (in->ntemplates == 0)
            return rec_fail(err, REC_DATA,
                            "the input has no job records: training needs alternatives "
                            "of jobs, from which it chooses");
        *course = l->course;
        course->templates = in->templates;
        course->ntemplates = in->ntemplates;
        course->admission.placer = cluster->placer;
        course->admission.more = cluster->more;
        course->admission.nmore = cluster->nmore;
        course->admission.down = cluster->down;
        course->admission.ndown = cluster->ndown;
        l->worlds[i].store = &in->reading.store;
    }
    l->options.worlds = l->worlds;
    l->options.nworlds = n;
    if (!learn_settings_make(&l->settings, l->worlds, n) || !set_experts(l))
        return false;
    l->options.settings = l->settings.setting;
    l->options.nsettings = l->settings.n;
    return true;
}

/* ---- training ------------------------------------------------------------ */

/* Does training draw the jobs of held-out episodes, too, if it takes so many
 * generations? */
static bool
meets_held_out(const struct learning *l, uint64_t generations)
{
    const struct learn_options *o = &l->options;
    const struct alloc_scorer *had = l->start ? l->start : l->scorer;
    bool trained = o->generations > 0 || l->select;
    uint32_t nexperts = trained ? o->nexperts : had ? had->nexperts : 1;
    uint64_t n = trained ? learn_seeds(o, generations) : 0;
    uint64_t singly = learn_single_seeds(&l->single, nexperts);
    n = n < singly ? singly : n;
    return n > 0 && l->held_out > 0 && o->seed + n > HELD_OUT &&
           o->seed < HELD_OUT + l->held_out;
}

/* If time ends the training, the number of generations is not yet known: judge() looks
 * again. */
static bool
check_seed(const struct learning *l)
{
    const struct learn_options *o = &l->options;
    bool timed = !isinf(o->seconds) || o->generations == UINT64_MAX;
    return !meets_held_out(l, timed ? 0 : o->generations) ||
           cli_usage(
               l->cli,
               "--seed %u: training would draw the jobs of held-out episodes, whose "
               "seeds are %d to %llu; give another one, or --held-out 0",
               o->seed, HELD_OUT, (unsigned long long)(HELD_OUT + l->held_out - 1));
}

static void
tell(void *context, const struct learn_progress *p)
{
    struct learning *l = context;
    char what[100] = "generations";
    if (isnan(p->share))
        snprintf(what, sizeof what, "generations, comparing what they came to");
    else if (p->generation > 0)
        snprintf(what, sizeof what, "generations, value %.4f, sigma %.3f", p->value,
                 p->sigma);
    cli_progress_share(l->cli, p->share, p->generation, what);
}

/* Reports how the result does on episodes that were not used in training. */
static bool
judge(struct learning *l)
{
    struct rec_error *err = &l->cli->err;
    bool ok = true;
    if (meets_held_out(l, l->generations)) {
        cli_warn(l->cli,
                 "--seed %u: in %llu generations training has come to the seeds of "
                 "held-out episodes, which are left out",
                 l->options.seed, (unsigned long long)l->generations);
        return true;
    }
    for (uint32_t s = 0; ok && l->held_out > 0 && s < l->settings.n; s++)
        ok = learn_settings_judge(&l->settings, s, l->worlds, l->scorer, HELD_OUT,
                                  (uint32_t)l->held_out);
    if (!ok && err->code == REC_OK) {
        cli_warn(l->cli, "interrupted before all held-out episodes had run");
        return true;
    }
    return ok;
}

/* Trains. The provenance gets the number of generations, and --final 0 if it was
 * interrupted: run again, that command gives the same result without an interrupt. */
static bool
train(struct learning *l)
{
    struct cli *cli = l->cli;
    bool stopped = false;

    if (l->options.generations == 0 && !l->select) {
        l->scorer = l->start ? l->start : alloc_scorer_new(l->units, 1, &cli->err);
        l->start = NULL;
        if (l->scorer &&
            !alloc_cluster_compare(cli, &l->clusters[0], "the policy", l->scorer->ways))
            return false;
    } else {
        l->scorer = learn_train(&l->options, l->start, l->units, &l->generations,
                                &stopped, &cli->err);
        if (stopped && l->scorer)
            cli_warn(
                cli,
                "interrupted after %llu generations: the result is the mean over the "
                "last third of them",
                (unsigned long long)l->generations);
        else if (stopped)
            rec_fail(
                &cli->err, REC_IO,
                "interrupted before the first generation was over: there is no result");
    }
    return l->scorer &&
           (l->select || cli_set_provenance(cli, "generations", l->generations)) &&
           (!stopped || cli_set_provenance(cli, "final", 0));
}

/* Trains values and lessons. Without generations the policy is then for the heuristics of
 * this training. */
static bool
train_singly(struct learning *l)
{
    const struct alloc_cluster *cluster = &l->clusters[0];
    l->single.clusters = l->clusters;
    l->single.scorer = l->scorer;
    l->single.begun = l->options.generations == 0 && !l->select;
    if (!learn_single_check(&l->single) || !learn_single_train(&l->single))
        return false;
    if (l->options.generations > 0 || l->select ||
        (!l->single.values && !l->single.taught))
        return true;
    if (!l->single.changed)
        return rec_fail(&l->cli->err, REC_IO,
                        "interrupted before an expert had learned: there is no result");
    l->scorer->ways = (struct place_ways){.n = 0};
    for (uint32_t i = 0; i < l->nclusters; i++, cluster++)
        if (!place_ways_add(&l->scorer->ways, &cluster->placer, cluster->more,
                            cluster->nmore, &l->cli->err))
            return false;
    return true;
}

/* SIGINT and SIGTERM end training and judging, not the tool, which then writes its
 * result. */
static bool
train_and_judge(struct learning *l)
{
    struct sigaction action = {.sa_handler = interrupt}, before[2];
    bool ok;
    sigaction(SIGINT, &action, &before[0]);
    sigaction(SIGTERM, &action, &before[1]);
    ok = train(l) && train_singly(l) && judge(l);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    return ok;
}

static bool
run(struct cli *cli, const struct learn_args *args)
{
    struct learning l = {.cli = cli};
    char advice[GRAPH_TIMES_MAX];
    bool ok;

    l.inputs.cli = cli;
    l.inputs.advice = graph_times_advice(cli, args->allow_zero_given, advice);
    cli->gathers = true;
    l.options.tell = tell;
    l.options.context = &l;
    ok = read_options(&l, args) && cli_open_reader(cli) && learn_inputs_read(&l.inputs) &&
         make_worlds(&l) && check_seed(&l) && train_and_judge(&l) &&
         cli_open_writer(cli, true);
    if (ok && l.inputs.made_len > 0)
        rec_writer_next(cli->writer, l.inputs.made, cli->provenance);
    if (ok)
        alloc_scorer_write(l.scorer, cli->writer);
    for (uint32_t i = 0; i < l.nclusters; i++)
        alloc_cluster_free(&l.clusters[i]);
    free(l.clusters);
    learn_inputs_free(&l.inputs);
    free(l.worlds);
    learn_settings_free(&l.settings);
    rec_arena_free(&l.arena);
    alloc_scorer_free(l.start);
    alloc_scorer_free(l.scorer);
    return ok;
}
