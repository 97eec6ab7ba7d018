/* tracegen preempt: traces of a spot cluster, drawn from a model. */
#include "ggo/tracegen-preempt.h"
#define CLI_SEED true
#define CLI_UNSHOWN "runs",
#include "main.h"

#include "rampipe/spot.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOURLY = SPOT_EMPIRICAL + 1, START_MAX = 1 << 30 };

/* Chances by hour of day that the later simulator published. */
static const double published_addition[24] = {.05, .05, .05, .5,  .5,  .5,  .05, .05,
                                              .05, .05, .05, .05, .05, .05, .05, 0,
                                              0,   0,   0,   0,   0,   0,   0,   .05};
static const double published_removal[24] = {.05, .05, .05, .01, .01, .01, .05, .05,
                                             .05, .05, .05, .05, .05, .05, .05, .25,
                                             .25, .25, .25, .25, .25, .25, .25, .05};

struct preempt {
    struct cli *cli;
    struct spot_model model;
    size_t process, clock;
    struct spot_drawing drawing;
    struct spot_hourly hourly;
    bool minutes_given;
    uint64_t seed, runs, events;
    struct spot_trace
        *trace; /* --compare: collects the events; else NULL, they are written */
};

/* ---- options ------------------------------------------------------------- */

/* An option that replaces a figure of the model. */
static bool
figure(struct preempt *p, const char *option, const char *text, double *value)
{
    return !text || cli_amount(p->cli, option, text, false, value);
}

static bool
read_figures(struct preempt *p, const struct tracegen_preempt_args *args)
{
    struct spot_model *m = &p->model;
    if (!figure(p, "preempt-chance", args->preempt_chance_arg,
                &m->chance_preempt_minute) ||
        !figure(p, "preempt-mean", args->preempt_mean_arg, &m->preempt_mean) ||
        !figure(p, "preempt-std", args->preempt_std_arg, &m->preempt_std) ||
        !figure(p, "add-chance", args->add_chance_arg, &m->chance_add_minute) ||
        !figure(p, "add-mean", args->add_mean_arg, &m->regular_mean) ||
        !figure(p, "add-std", args->add_std_arg, &m->regular_std) ||
        !figure(p, "big-chance", args->big_chance_arg, &m->prob_big))
        return false;
    return !(m->prob_big > 1) || cli_usage(p->cli, "--big-chance must be at most 1");
}

/* Reads one chance for all hours, or 24. */
static bool
read_chances(struct cli *cli, const char *option, const char *text, double chance[24])
{
    struct rec_str rest = rec_str(text), part;
    int n = 0;
    while (rec_str_split(&rest, ',', &part)) {
        double x;
        if (!rec_parse_num(part, &x) || !(x >= 0 && x <= 1) || n == 24)
            return cli_usage(cli,
                             "--%s must be a chance in [0, 1], or 24 of them "
                             "separated by commas, got '%s'",
                             option, text);
        chance[n++] = x;
    }
    if (n != 1 && n != 24)
        return cli_usage(cli, "--%s has %d chances, needs 1 or 24", option, n);
    for (; n < 24; n++)
        chance[n] = chance[0];
    return true;
}

static bool
read_hourly(struct preempt *p, const struct tracegen_preempt_args *args)
{
    struct spot_hourly *h = &p->hourly;
    uint64_t hour;
    memcpy(h->addition, published_addition, sizeof h->addition);
    memcpy(h->removal, published_removal, sizeof h->removal);
    if (!cli_count(p->cli, "desired", args->desired_arg, 1, 1000000, &h->desired) ||
        !cli_count(p->cli, "start-hour", args->start_hour_arg, 0, 23, &hour))
        return false;
    h->start_hour = (unsigned)hour;
    if (args->removal_given &&
        !read_chances(p->cli, "removal", args->removal_arg, h->removal))
        return false;
    h->random_addition =
        args->addition_given && strcasecmp(args->addition_arg, "random") == 0;
    return !args->addition_given || h->random_addition ||
           read_chances(p->cli, "addition", args->addition_arg, h->addition);
}

/* Refuses options of other processes than the one asked for: they would do nothing. */
static bool
check_process(struct preempt *p, const struct tracegen_preempt_args *args)
{
    bool hourly = args->desired_given || args->removal_given || args->addition_given ||
                  args->start_hour_given;
    bool drawn = args->preempt_chance_given || args->preempt_mean_given ||
                 args->preempt_std_given || args->add_chance_given ||
                 args->add_mean_given || args->add_std_given || args->big_chance_given ||
                 args->counts_given || args->start_given || args->capacity_given;
    if (p->process == HOURLY && (drawn || args->interval_given))
        return cli_usage(p->cli,
                         "--process hourly takes --desired, --removal, "
                         "--addition and --start-hour, but no other option of the model");
    if (p->process != HOURLY && hourly)
        return cli_usage(p->cli, "--desired, --removal, --addition and --start-hour "
                                 "belong to --process hourly");
    if (p->process != SPOT_COIN && args->interval_given)
        return cli_usage(p->cli, "--interval belongs to --process coin");
    return true;
}

static bool
read_options(struct preempt *p, const struct tracegen_preempt_args *args)
{
    static const char *const processes[] = {"coin",      "exponential", "weibull",
                                            "empirical", "hourly",      NULL};
    static const char *const counts[] = {"folded", "empirical", NULL};
    static const char *const clocks[] = {"auto", "relative", "epoch", NULL};
    struct cli *cli = p->cli;
    struct spot_drawing *d = &p->drawing;
    size_t how = 0;

    p->minutes_given = args->minutes_given;
    d->minutes = 1440;
    d->start = 0;
    d->capacity = UINT64_MAX;
    d->bounded = args->capacity_given || args->start_given;
    if (!cli_choice(cli, "process", args->process_arg, processes, &p->process) ||
        !cli_choice(cli, "clock", args->clock_arg, clocks, &p->clock) ||
        !check_process(p, args) ||
        (args->counts_given &&
         !cli_choice(cli, "counts", args->counts_arg, counts, &how)))
        return false;
    d->process = p->process == HOURLY ? SPOT_COIN : (enum spot_process)p->process;
    d->empirical_counts = args->counts_given && how == 1;
    if ((args->minutes_given &&
         !cli_amount(cli, "minutes", args->minutes_arg, false, &d->minutes)) ||
        !cli_amount(cli, "interval", args->interval_arg, false, &d->interval) ||
        (args->start_given &&
         !cli_count(cli, "start", args->start_arg, 0, START_MAX, &d->start)) ||
        (args->capacity_given &&
         !cli_count(cli, "capacity", args->capacity_arg, 0, START_MAX, &d->capacity)) ||
        !cli_count(cli, "seed", args->seed_arg, 0, UINT32_MAX, &p->seed) ||
        !cli_count(cli, "runs", args->runs_arg, 1, UINT32_MAX, &p->runs) ||
        !cli_limit(cli, args->limit_arg, &d->limit))
        return false;
    d->traces = (double)p->runs;
    if (d->interval < 1e-3)
        return cli_usage(cli, "--interval must be at least 0.001");
    if (p->seed + p->runs - 1 > UINT32_MAX)
        return cli_usage(cli, "--seed plus --runs must stay below 2^32");
    if ((args->repair_given || args->clock_given) && !args->compare_given)
        return cli_usage(cli, "--%s needs a log: give --compare LOG",
                         args->repair_given ? "repair" : "clock");
    if (args->compare_given && p->runs > 1)
        return cli_usage(cli, "--compare tests one run: give no --runs");
    if (d->start > d->capacity)
        return cli_usage(cli, "--start is more than --capacity");
    return read_hourly(p, args);
}

/* ---- the model ----------------------------------------------------------- */

/* Does a model have to be read? Not if chances are given by options, or by the hour; but
 * a FILE that is given is read all the same. */
static bool
needs_input(const struct preempt *p, const struct tracegen_preempt_args *args)
{
    return p->cli->nfiles > 0 || (p->process != HOURLY && !args->preempt_chance_given &&
                                  !args->add_chance_given);
}

/* Says that a model that may wait on standard input was not read, if there are no
 * additions, or no preemptions, without it. If both chances are given, standard input is
 * more likely that of a loop, or a pipe of make. */
static void
warn_of_input(const struct preempt *p)
{
    const struct spot_model *m = &p->model;
    bool adds = !isnan(m->chance_add_minute), preempts = !isnan(m->chance_preempt_minute);
    struct stat input;
    if (p->process != HOURLY && !(adds && preempts) && fstat(STDIN_FILENO, &input) == 0 &&
        (S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode)))
        cli_warn(p->cli,
                 "there are no %s: standard input was not read, since a chance is given. "
                 "Give - as FILE to read a model there, or --%s-chance",
                 adds ? "preemptions" : "additions", adds ? "preempt" : "add");
}

static bool
read_model(struct preempt *p)
{
    struct cli *cli = p->cli;
    bool found = false;
    struct rec rec;
    int status;

    while ((status = cli_next(cli, &rec)) > 0) {
        if (rec.type != REC_MODEL) {
            if (!p->trace)
                rec_put_line(cli->writer, rec.line);
            continue;
        }
        if (found)
            return rec_reader_fail(cli->reader, &cli->err,
                                   "a second model: %stracegen preempt draws from one",
                                   cli->prefix);
        found = true;
        if (!spot_model_read(&p->model, cli->reader, &rec, &cli->err))
            return false;
    }
    if (status == 0 && !found)
        return rec_fail(
            &cli->err, REC_DATA,
            "no model record came: put %stracegen fit --stats before, or give "
            "--preempt-chance and --add-chance",
            cli->prefix);
    return status == 0;
}

/* ---- drawing ------------------------------------------------------------- */

/* Shows progress: `part` (0 to 1) of the present run is drawn. */
static void
tell(struct preempt *p, double part)
{
    double ended = (double)(p->drawing.seed - p->seed);
    cli_progress_share(p->cli, (ended + part) / (double)p->runs, (uint64_t)ended, "runs");
}

static bool
take(void *context, const struct spot_event *event, struct rec_error *err)
{
    struct preempt *p = context;
    if ((++p->events & 0xfff) == 0)
        tell(p, event->time / (60 * p->drawing.minutes));
    if (p->trace)
        return spot_trace_add(p->trace, *event, err);
    if (!rec_writer_ok(p->cli->writer, err))
        return false;
    spot_write_event(p->cli->writer, event);
    return true;
}

static bool
draw(struct preempt *p, uint64_t seed)
{
    static const uint64_t none = 0;
    const struct spot_drawing *d = &p->drawing;
    const uint64_t *instances = p->process == HOURLY ? &none
                                : d->bounded         ? &d->start
                                                     : NULL;
    p->drawing.seed = p->hourly.seed = (uint32_t)seed;
    p->hourly.minutes = d->minutes;
    p->hourly.limit = d->limit;
    p->hourly.traces = d->traces;
    if (p->trace) {
        p->trace->end = d->minutes * 60;
        p->trace->populated = instances != NULL;
        p->trace->instances = instances ? *instances : 0;
    } else
        spot_write_trace(p->cli->writer, 0, d->minutes * 60, instances);
    return p->process == HOURLY ? spot_draw_hourly(&p->hourly, take, p, &p->cli->err)
                                : spot_draw(&p->model, d, take, p, &p->cli->err);
}

static bool
draw_runs(struct preempt *p)
{
    for (uint64_t i = 0; i < p->runs; i++) {
        if (i > 0 && !cli_next_stream(p->cli, "seed", p->seed + i))
            return false;
        if (!draw(p, p->seed + i))
            return false;
        tell(p, 1);
    }
    return true;
}

/* ---- goodness of fit ----------------------------------------------------- */

static void
put_test(struct cli *cli, const char *quantity, const struct spot_values *drawn,
         const struct spot_values *measured)
{
    struct spot_ks ks = spot_ks_test(drawn, measured);
    double value[] = {ks.n, ks.m, ks.d, ks.p};
    rec_begin(cli->writer, quantity);
    for (size_t i = 0; i < 4; i++)
        if (isnan(value[i]))
            rec_text_field(cli->writer, "-");
        else
            rec_num_field(cli->writer, value[i]);
    rec_end(cli->writer);
}

static bool
compare(struct preempt *p, const char *path, bool repair)
{
    struct cli *cli = p->cli;
    struct spot_log_options options = {.repair = repair,
                                       .clock = (enum spot_clock)p->clock,
                                       .warn = cli_warn_text,
                                       .note = cli_note_text,
                                       .context = cli};
    struct spot_trace log = {0};
    struct spot_model drawn, measured;
    struct rec_reader *reader;
    bool ok;

    spot_model_clear(&drawn);
    spot_model_clear(&measured);
    reader = rec_reader_open(&path, 1, &(struct rec_reader_options){0}, &cli->err);
    ok = reader && spot_log_read(reader, &options, &log, &cli->err) &&
         spot_model_fit(&log, &measured, &cli->err) && draw(p, p->seed) &&
         spot_model_fit(p->trace, &drawn, &cli->err);
    if (ok) {
        rec_printf(cli->writer, "quantity\tdrawn\tmeasured\tD\tp\n");
        put_test(cli, "preempt_spacing", &drawn.preempt_spacings,
                 &measured.preempt_spacings);
        put_test(cli, "add_spacing", &drawn.add_spacings, &measured.add_spacings);
        put_test(cli, "preempt_count", &drawn.preempt_counts, &measured.preempt_counts);
        put_test(cli, "add_count", &drawn.add_counts, &measured.add_counts);
    }
    rec_reader_close(reader);
    spot_model_free(&drawn);
    spot_model_free(&measured);
    spot_trace_free(&log);
    return ok;
}

/* Refuses figures of a kind of event that nothing would be drawn by. `chance` is NAN if
 * neither the model nor an option has one; 0 is used by all processes: no such event
 * comes. */
static bool
check_figures(struct preempt *p, const char *kind, bool chance_given, bool size_given,
              double chance, double shape, const struct spot_values *spacings)
{
    bool listed = p->process == SPOT_WEIBULL || p->process == SPOT_EMPIRICAL;
    /* without spacings, the drawing is refused for want of them */
    if (listed && chance_given && chance > 0 && (spacings->n > 0 || shape > 0))
        return cli_usage(p->cli,
                         "--%s-chance above 0 does nothing with --process weibull and "
                         "empirical, which draw the model's spacings: give --process "
                         "coin or exponential",
                         kind);
    if (size_given && isnan(chance))
        return cli_usage(p->cli, "--%s-mean and the like do nothing without --%s-chance",
                         kind, kind);
    return !(size_given && p->drawing.empirical_counts) ||
           cli_usage(p->cli,
                     "--%s-mean and the like do nothing with empirical counts: "
                     "give --counts folded",
                     kind);
}

/* Takes from the model what options did not say: length, counts, instances at the
 * start. */
static bool
complete(struct preempt *p, const struct tracegen_preempt_args *args)
{
    const struct spot_model *m = &p->model;
    struct spot_drawing *d = &p->drawing;

    if (!p->minutes_given && m->total_minutes > 0)
        d->minutes = m->total_minutes;
    if (d->minutes > SPOT_TIME_MAX / 60)
        return cli_usage(p->cli, "--minutes, or the model's, must be at most %g",
                         SPOT_TIME_MAX / 60);
    if (!args->counts_given && p->process != SPOT_COIN)
        d->empirical_counts = m->preempt_counts.n + m->add_counts.n > 0;
    if (!check_figures(p, "preempt", args->preempt_chance_given,
                       args->preempt_mean_given || args->preempt_std_given,
                       m->chance_preempt_minute, m->preempt_shape,
                       &m->preempt_spacings) ||
        !check_figures(p, "add", args->add_chance_given,
                       args->add_mean_given || args->add_std_given ||
                           args->big_chance_given,
                       m->chance_add_minute, m->add_shape, &m->add_spacings))
        return false;
    if (args->start_given || !(m->start_instances > 0))
        return true;
    if (m->start_instances > START_MAX)
        return cli_usage(p->cli,
                         "the model has %g instances at the start, at most are %d",
                         m->start_instances, START_MAX);
    d->start = (uint64_t)fmin(m->start_instances, (double)d->capacity);
    return true;
}

static bool
run(struct cli *cli, const struct tracegen_preempt_args *args)
{
    struct preempt p = {.cli = cli};
    struct spot_trace trace = {0};
    bool ok = read_options(&p, args);

    spot_model_clear(&p.model);
    if (args->compare_given)
        p.trace = &trace;
    if (ok && needs_input(&p, args)) {
        ok = args->compare_given ? cli_open_writer(cli, false) && cli_open_reader(cli)
                                 : cli_open_filter(cli);
        ok = ok && read_model(&p);
    } else
        ok = ok && cli_open_writer(cli, !args->compare_given);
    ok = ok && read_figures(&p, args) && complete(&p, args);
    ok = ok && (args->compare_given ? compare(&p, args->compare_arg, args->repair_given)
                                    : draw_runs(&p));
    if (ok && !needs_input(&p, args))
        warn_of_input(&p);
    spot_model_free(&p.model);
    spot_trace_free(&trace);
    return ok;
}
