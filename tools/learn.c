/* learn [OPTION]... [FILE]... - graphs and jobs -> the weights of a chooser. */
#include "ggo/learn.h"
#define CLI_SEED true
#define CLI_UNSHOWN "minutes", "threads", "held-out",
#define CLI_PATHS "init",
#include "main.h"

#include "graph_times.h"
#include "net_option.h"
#include "ramp_cluster.h"
#include "rampipe/learn.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* The first seed of held-out episodes; those of training are smaller. */
enum { HELD_OUT = 1000001 };
/* Experts are compared in each other's settings: memory grows with the square. */
enum { SETTINGS_MAX = 10000 };

struct learning {
    struct cli *cli;
    struct learn_options options;
    struct alloc_cluster cluster;
    struct graph_reading reading;
    struct rec_map known; /* alternatives -> template */
    struct rec_arena arena;
    struct learn_template *templates;
    struct learn_setting *settings;
    size_t template_room, setting_room;
    uint32_t units;
    uint64_t held_out;
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

static bool
check_dist(struct learning *l, const char *option, const char *text)
{
    struct rec_error err;
    struct rng_dist *dist = rng_dist_new(text, 1, 1, &err);
    rng_dist_free(dist);
    if (dist)
        return true;
    if (err.code == REC_USAGE)
        return cli_usage(l->cli, "--%s: %s", option, err.text);
    l->cli->err = err;
    return false;
}

/* The next item of a list that is separated by commas. An item may have commas itself, as
 * "pmf:1=0.5,2=0.5": a piece with "=" and no ":" before it belongs to the last item. */
static bool
next_item(struct rec_str *rest, struct rec_str *item)
{
    struct rec_str more, ahead;
    if (!rec_str_split(rest, ',', item))
        return false;
    for (ahead = *rest; rec_str_split(&ahead, ',', &more); *rest = ahead) {
        const char *equals = memchr(more.ptr, '=', more.len);
        if (!equals || memchr(more.ptr, ':', (size_t)(equals - more.ptr)))
            break;
        item->len = (size_t)(more.ptr + more.len - item->ptr);
    }
    return true;
}

static bool
add_setting(struct learning *l, const char *interarrival, struct rec_str fraction)
{
    uint32_t n = l->options.nsettings;
    const char *copy = rec_arena_copy(&l->arena, fraction, &l->cli->err);
    if (!copy || !check_dist(l, "fractions", copy) ||
        !rec_grow(&l->settings, &l->setting_room, n + 1, sizeof *l->settings,
                  &l->cli->err))
        return false;
    l->settings[n] = (struct learn_setting){interarrival, copy};
    l->options.nsettings++;
    return true;
}

/* The interarrival distribution of a load: a number is the mean of an exponential one. */
static const char *
copy_interarrival(struct learning *l, struct rec_str load)
{
    static const char exponential[] = "exponential:";
    struct rec_error *err = &l->cli->err;
    const char *copy = NULL;
    double mean;
    char *text;
    if (!rec_parse_num(load, &mean))
        copy = rec_arena_copy(&l->arena, load, err);
    else if (!(text = malloc(sizeof exponential + load.len)))
        rec_fail_memory(err);
    else {
        sprintf(text, "%s%.*s", exponential, (int)load.len, load.ptr);
        copy = rec_arena_copy(&l->arena, rec_str(text), err);
        free(text);
    }
    return copy && check_dist(l, "loads", copy) ? copy : NULL;
}

/* Adds a load with each of the fractions, or if it is LOAD@FRACTION, with its own. */
static bool
add_load(struct learning *l, struct rec_str own, const char *fractions)
{
    struct rec_str rest = rec_str(fractions), load, fraction;
    const char *interarrival;

    rec_str_split(&own, '@', &load);
    if (!(interarrival = copy_interarrival(l, load)))
        return false;
    if (own.ptr)
        return add_setting(l, interarrival, own);
    while (next_item(&rest, &fraction))
        if (!add_setting(l, interarrival, fraction))
            return false;
    return true;
}

static bool
read_settings(struct learning *l, const struct learn_args *args)
{
    struct rec_str rest = rec_str(args->loads_arg), load;
    while (next_item(&rest, &load))
        if (!add_load(l, load, args->fractions_arg))
            return false;
    if (l->options.nsettings > SETTINGS_MAX)
        return cli_usage(l->cli, "--loads and --fractions make %u pairs, at most are %d",
                         l->options.nsettings, SETTINGS_MAX);
    l->options.settings = l->settings;
    l->options.course.steps = args->steps_arg;
    return check_dist(l, "steps", args->steps_arg);
}

static bool
read_options(struct learning *l, const struct learn_args *args)
{
    struct ramp_cluster_options cluster = RAMP_CLUSTER_OPTIONS(args);
    struct learn_options *o = &l->options;
    struct cli *cli = l->cli;
    struct net *net = NULL;
    uint64_t seed, units, final, threads = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    double minutes = args->generations_given && !args->minutes_given ? INFINITY : 1;

    o->generations = UINT64_MAX;
    cluster.several = true;
    if ((args->cluster_given && !(net = net_option(cli, "cluster", args->cluster_arg))) ||
        !ramp_cluster_read(cli, &cluster, net, &l->cluster) || !read_settings(l, args) ||
        !cli_count(cli, "jobs", args->jobs_arg, 1, 100000000, &o->course.jobs) ||
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
    if (args->init_given && args->units_given)
        return cli_usage(
            cli,
            "--units cannot change the number of hidden units in the file of --init");
    o->seed = (uint32_t)seed;
    o->threads = (uint32_t)threads;
    o->final = (uint32_t) final;
    o->course.stop = is_interrupted;
    o->seconds = 60 * minutes;
    o->course.admission.placer = l->cluster.placer;
    o->course.admission.more = l->cluster.more;
    o->course.admission.nmore = l->cluster.nmore;
    o->course.admission.down = l->cluster.down;
    o->course.admission.ndown = l->cluster.ndown;
    o->experts = !args->shared_flag;
    l->units = (uint32_t)units;
    return !args->init_given ||
           (l->start = alloc_scorer_read(args->init_arg, &cli->err)) != NULL;
}

/* ---- the input ----------------------------------------------------------- */

static bool
take_job(struct learning *l)
{
    struct cli *cli = l->cli;
    const struct graph_job *job = &l->reading.job;
    struct rec_str rest, id;
    const struct graph_store *store = &l->reading.store;
    uint32_t n = l->options.course.ntemplates;
    const char *graphs;

    if (rec_map_get(&l->known, job->graphs) != REC_NONE)
        return true;
    rest = job->graphs;
    rec_str_split(&rest, ',', &id);
    if (!(graphs = rec_arena_copy(&l->arena, job->graphs, &cli->err)) ||
        !rec_grow(&l->templates, &l->template_room, n + 1, sizeof *l->templates,
                  &cli->err) ||
        !rec_map_add(&l->known, rec_str(graphs), n, &cli->err))
        return false;
    l->templates[n] = (struct learn_template){
        rec_str(graphs), graph_sequential(store->graph[graph_store_find(store, id)])};
    l->options.course.ntemplates++;
    return true;
}

static bool
read_input(struct learning *l)
{
    struct cli *cli = l->cli;
    enum graph_taken taken;
    struct rec rec;
    int status;
    while ((status = cli_next(cli, &rec)) > 0)
        if (!graph_reading_take(&l->reading, cli->reader, &rec, &taken, &cli->err) ||
            (taken == GRAPH_JOB_TAKEN && !take_job(l)))
            return false;
    if (status < 0 || !graph_reading_end(&l->reading, &cli->err))
        return false;
    l->options.course.templates = l->templates;
    return l->options.course.ntemplates > 0 ||
           rec_fail(
               &cli->err, REC_DATA,
               "the input has no job records: training needs alternatives of jobs, from "
               "which it chooses");
}

/* ---- training ------------------------------------------------------------ */

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

/* Reports the blocking rate on episodes that were not used in training. */
static bool
judge(struct learning *l)
{
    const struct alloc_choosing choosing = {
        .chooser = alloc_chooser_find(rec_str("learned")), .self = l->scorer};
    struct learn_course_options options = l->options.course;
    struct rec_error *err = &l->cli->err;
    struct learn_course *course;
    bool ok = true;

    options.admission.choosing = &choosing;
    if (l->held_out == 0 ||
        !(course = learn_course_new(&options, &l->reading.store, err)))
        return l->held_out == 0;
    for (uint32_t s = 0; ok && s < l->options.nsettings; s++) {
        const struct learn_setting *setting = &l->settings[s];
        double n = (double)l->held_out, sum = 0, squares = 0, blocking = 0;
        for (uint32_t i = 0; ok && i < l->held_out; i++) {
            cli_progress(l->cli, s * l->held_out + i, l->options.nsettings * l->held_out,
                         "held-out episodes");
            ok = learn_course_run(course, setting, HELD_OUT + i, &blocking, err);
            sum += blocking;
            squares += blocking * blocking;
        }
        if (ok)
            cli_note(l->cli, "%s, %s: blocking rate %.4f, standard error %.4f",
                     setting->interarrival, setting->fraction, sum / n,
                     n > 1 ? sqrt(fmax(0, squares / n - sum / n * (sum / n)) / (n - 1))
                           : (double)NAN);
    }
    learn_course_free(course);
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
    uint64_t generations = 0;
    bool stopped = false;

    if (l->options.generations == 0) {
        l->scorer = l->start ? l->start : alloc_scorer_new(l->units, 1, &cli->err);
        l->start = NULL;
        if (l->scorer)
            alloc_cluster_compare(cli, &l->cluster, "the policy", l->scorer->heuristics);
    } else {
        l->scorer = learn_train(&l->options, &l->reading.store, l->start, l->units,
                                &generations, &stopped, &cli->err);
        if (stopped && l->scorer)
            cli_warn(
                cli,
                "interrupted after %llu generations: the result is the mean over the "
                "last third of them",
                (unsigned long long)generations);
        else if (stopped)
            rec_fail(
                &cli->err, REC_IO,
                "interrupted before the first generation was over: there is no result");
    }
    return l->scorer && cli_set_provenance(cli, "generations", generations) &&
           (!stopped || cli_set_provenance(cli, "final", 0));
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
    ok = train(l) && judge(l);
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

    l.reading.store.advice = graph_times_advice(cli, args->allow_zero_given, advice);
    cli->gathers = true;
    l.options.tell = tell;
    l.options.context = &l;
    ok = read_options(&l, args) && cli_open_reader(cli) && read_input(&l) &&
         train_and_judge(&l) && cli_open_writer(cli, true);
    if (ok)
        alloc_scorer_write(l.scorer, cli->writer);
    alloc_cluster_free(&l.cluster);
    graph_reading_free(&l.reading);
    rec_map_free(&l.known);
    rec_arena_free(&l.arena);
    free(l.templates);
    free(l.settings);
    alloc_scorer_free(l.start);
    alloc_scorer_free(l.scorer);
    return ok;
}
