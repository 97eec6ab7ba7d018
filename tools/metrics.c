/* metrics [OPTION]... [FILE]... - results of simulations -> figures. */
#include "ggo/metrics.h"
#define CLI_PATHS "compare",
#include "main.h"

#include "metrics_print.h"

#include <math.h>
#include <unistd.h>

enum { BINS_MOST = 1000000000 /* bins that --histogram takes */ };

/* The options, read. */
struct wanted {
    size_t format;
    double seconds;     /* width of the intervals of --series; 0: no series */
    double slo;         /* seconds; NAN: none */
    uint64_t bins;      /* 0: no histogram */
    const char *family; /* the one that is asked for; NULL: what the stream has */
    const char *by;     /* what makes groups; NULL: nothing does */
    uint64_t most;      /* groups of that family */
    struct rec_limit limit;
};

static bool
read_seconds(struct cli *cli, const char *option, const char *text, double *seconds)
{
    return cli_seconds(cli, option, text, false, seconds) &&
           (*seconds > 0 || cli_usage(cli, "--%s must be > 0, got '%s'", option, text));
}

static void
free_reducers(struct metrics **reducer)
{
    for (size_t i = 0; reducer && reducer[i]; i++)
        metrics_free(reducer[i]);
    free(reducer);
}

static struct metrics *
make_reducer(struct cli *cli, const struct metrics_family *family,
             const struct metrics_args *args, const struct wanted *wanted)
{
    struct metrics *reducer =
        metrics_new(family, wanted->by, wanted->seconds, args->runs_given, &cli->err);
    if (!reducer)
        return NULL;
    metrics_limit(reducer, wanted->limit);
    metrics_set_objective(reducer, wanted->slo);
    if (!args->compare_given || metrics_keep(reducer, &cli->err))
        return reducer;
    metrics_free(reducer);
    return NULL;
}

/* Makes a reducer for each family: the stream shows only at its end which family it
 * belongs to. The array ends with NULL, and has room for one more. NULL: cli->err. */
static struct metrics **
make_reducers(struct cli *cli, const struct metrics_args *args,
              const struct wanted *wanted)
{
    struct metrics **reducer;
    size_t n = 0;
    while (metrics_family(n))
        n++;
    reducer = calloc(n + 2, sizeof *reducer);
    if (!reducer)
        rec_fail_memory(&cli->err);
    for (size_t i = 0; reducer && i < n; i++)
        if (!(reducer[i] = make_reducer(cli, metrics_family(i), args, wanted))) {
            free_reducers(reducer);
            return NULL;
        }
    return reducer;
}

static const char *
name_of(const struct metrics *reducer)
{
    return metrics_family_name(metrics_family_of(reducer));
}

/* Links and exchanges come beside the results of jobs, and are reduced when they are
 * asked for. */
static bool
is_beside(const struct metrics *reducer)
{
    return strcmp(name_of(reducer), "links") == 0 ||
           strcmp(name_of(reducer), "exchanges") == 0;
}

/* Do the cases of a reducer belong to another family? */
static bool
is_covered(struct metrics *const reducer[], size_t which)
{
    for (size_t i = 0; reducer[i]; i++)
        if (i != which && metrics_covers(reducer[i], reducer[which]))
            return true;
    return false;
}

/* Completes the message about a record that was refused with the option that caused it,
 * or that would help. Returns false. */
static bool
explain(struct cli *cli, const struct metrics *reducer, const struct metrics_args *args)
{
    struct rec_error why = cli->err;
    bool asked = args->links_given || args->explain_given;
    if (why.code == REC_USAGE)
        return cli_usage(cli, "--series: %s", why.text);
    if (metrics_mixed(reducer) && !asked && !args->runs_given && !args->compare_given)
        rec_fail(&cli->err, why.code, "%s (if each stream is a run, say --runs)",
                 why.text);
    return false;
}

/* Gives a record to all reducers. One that refuses it matters only if its cases do not
 * belong to another family, which takes the record. */
static bool
take_record(struct cli *cli, struct rec_reader *reader, const struct rec *rec,
            struct metrics *const reducer[], const struct metrics_args *args)
{
    const char *asked = args->links_given     ? "links"
                        : args->explain_given ? "exchanges"
                                              : "";
    for (size_t i = 0; reducer[i]; i++)
        if ((!is_beside(reducer[i]) || strcmp(name_of(reducer[i]), asked) == 0) &&
            metrics_take(reducer[i], reader, rec, &cli->err) < 0 &&
            (cli->err.code != REC_DATA || !is_covered(reducer, i)))
            return explain(cli, reducer[i], args);
    return true;
}

/* Gives all records of a stream to the reducers. `reader` NULL: those of the input. */
static bool
read_all(struct cli *cli, struct rec_reader *reader, struct metrics *const reducer[],
         const struct metrics_args *args)
{
    struct rec rec;
    int status;

    while ((status = reader ? rec_next(reader, &rec, &cli->err) : cli_next(cli, &rec)) >
           0)
        if (!take_record(cli, reader ? reader : cli->reader, &rec, reducer, args))
            return false;
    return status == 0;
}

/* Fills cli->err: the input has no results. Lists the records that would be some. */
static void
say_none(struct cli *cli)
{
    char list[200] = "";
    const char *name;
    for (size_t i = 0; metrics_family(i); i++)
        for (size_t k = 0; (name = metrics_family_record(metrics_family(i), k)); k++)
            rec_list_name(list, sizeof list, name);
    rec_fail(&cli->err, REC_NO,
             "no results came (%s records): put %smetrics behind %ssim", list,
             cli->prefix, cli->prefix);
}

/* The reducer of the family that is asked for. NULL: cli->err. */
static struct metrics *
find_asked(struct cli *cli, struct metrics *const reducer[], const char *family)
{
    bool links = strcmp(family, "links") == 0;
    for (size_t i = 0; reducer[i]; i++)
        if (strcmp(name_of(reducer[i]), family) == 0 && metrics_cases(reducer[i]) > 0)
            return reducer[i];
    rec_fail(&cli->err, REC_NO, "no %s records came: say %ssim --contention --%s",
             links ? "load" : "explain", cli->prefix, links ? "links" : "explain");
    return NULL;
}

/* The reducer of the family that the stream belongs to. NULL: cli->err. */
static struct metrics *
choose(struct cli *cli, struct metrics *const reducer[], const struct wanted *wanted)
{
    struct metrics *chosen = NULL;
    if (wanted->family)
        return find_asked(cli, reducer, wanted->family);
    for (size_t i = 0; reducer[i]; i++) {
        if (metrics_cases(reducer[i]) == 0 || is_covered(reducer, i) ||
            is_beside(reducer[i]))
            continue;
        if (chosen) {
            rec_fail(&cli->err, REC_DATA,
                     "the stream has both %s and %s: reduce them apart", name_of(chosen),
                     name_of(reducer[i]));
            return NULL;
        }
        chosen = reducer[i];
    }
    if (!chosen)
        say_none(cli);
    return chosen;
}

/* --links and --explain: another family, and groups of its own. */
static bool
read_family(struct cli *cli, const struct metrics_args *args, struct wanted *wanted)
{
    bool asked = args->links_given || args->explain_given;
    wanted->by = args->by_arg;
    if (!asked)
        return !args->most_given || cli_usage(cli, "--most needs --links or --explain");
    wanted->family = args->links_given ? "links" : "exchanges";
    if (!wanted->by)
        wanted->by = args->links_given ? "link" : "exchange";
    if (args->links_given && args->explain_given)
        return cli_usage(cli, "give --links or --explain, not both");
    if (args->runs_given || args->series_given || args->histogram_given ||
        args->compare_given)
        return cli_usage(
            cli, "--links and --explain print figures of one run: give no --runs, "
                 "--series, --histogram, --compare");
    return cli_count(cli, "most", args->most_arg, 1, 1 << 30, &wanted->most);
}

static bool
read_options(struct cli *cli, const struct metrics_args *args, struct wanted *wanted)
{
    static const char *const formats[] = {"table", "tsv", "csv", "json", NULL};
    bool person = !cli->output && isatty(STDOUT_FILENO);
    *wanted = (struct wanted){.format = person ? METRICS_TABLE : METRICS_TSV, .slo = NAN};
    return (!args->format_given ||
            cli_choice(cli, "format", args->format_arg, formats, &wanted->format)) &&
           read_family(cli, args, wanted) &&
           cli_limit(cli, args->limit_arg, &wanted->limit) &&
           (!args->series_given ||
            read_seconds(cli, "series", args->series_arg, &wanted->seconds)) &&
           (!args->slo_given || read_seconds(cli, "slo", args->slo_arg, &wanted->slo)) &&
           (!args->slo_given || !args->histogram_given ||
            cli_usage(cli,
                      "--slo prints a share, and a histogram has none: leave one out")) &&
           (!args->histogram_given || cli_count(cli, "histogram", args->histogram_arg, 1,
                                                BINS_MOST, &wanted->bins)) &&
           (!args->by_given || !args->series_given ||
            cli_usage(cli, "--series counts all cases together: give no --by")) &&
           (!args->runs_given || !args->series_given ||
            cli_usage(cli, "--series is for one run: give no --runs")) &&
           (!args->runs_given || !args->histogram_given ||
            cli_usage(cli, "--histogram is for one run: give no --runs")) &&
           (!args->series_given || !args->histogram_given ||
            cli_usage(cli, "give --histogram or --series, not both")) &&
           (!args->compare_given ||
            (!args->runs_given && !args->series_given && !args->histogram_given) ||
            cli_usage(cli, "--compare is for the figures of one run: give no --%s",
                      args->runs_given     ? "runs"
                      : args->series_given ? "series"
                                           : "histogram")) &&
           (!args->compare_given || strcmp(args->compare_arg, "-") != 0 ||
            !cli_is_standard(cli) ||
            cli_usage(cli, "--compare - and the input are both standard input")) &&
           (!args->by_given || rec_is_text(rec_str(args->by_arg)) ||
            cli_usage(cli, "--by must be UTF-8"));
}

/* Checks the options that only some families have. */
static bool
suits(struct cli *cli, const struct metrics *reducer, const struct metrics_args *args)
{
    if (args->series_given && metrics_nintervals(reducer) == 0)
        return cli_usage(cli, "--series: %s have no series", name_of(reducer));
    if (args->slo_given && !metrics_has_objective(metrics_family_of(reducer)))
        return cli_usage(cli, "--slo: %s have no latency", name_of(reducer));
    if (args->runs_given && !metrics_has_runs(reducer))
        return cli_usage(
            cli,
            "--runs is for jobs, queries and tasks: statistics of %s are over many "
            "runs anyway",
            name_of(reducer));
    return true;
}

/* Checks the limit on rows of labels: each group has rows for each label, so a small
 * input may ask for very many. */
static bool
has_room(struct cli *cli, const struct metrics *reducer, const struct wanted *wanted)
{
    return rec_limit(&wanted->limit, metrics_label_rows(reducer),
                     "rows of causes or stages", &cli->err);
}

static bool
print(struct cli *cli, struct metrics *reducer, const struct metrics_args *args,
      const struct wanted *wanted)
{
    enum metrics_format format = (enum metrics_format)wanted->format;
    bool figures = !args->series_given && !args->histogram_given;
    double bins = (double)wanted->bins * (double)metrics_ngroups(reducer);

    if (!suits(cli, reducer, args) ||
        (figures && format != METRICS_TABLE && !has_room(cli, reducer, wanted)) ||
        !rec_limit(&wanted->limit, bins, "rows", &cli->err) ||
        !metrics_end(reducer, &cli->err) || !cli_open_writer(cli, false))
        return false;
    if (wanted->family &&
        !metrics_rank(
            reducer, args->links_given ? "utilisation" : "beyond the times alone",
            args->links_given ? "mean" : "value", (size_t)wanted->most, &cli->err))
        return false;
    if (args->series_given)
        return metrics_print_series(cli, reducer, format);
    if (args->histogram_given)
        return metrics_print_histogram(cli, reducer, (size_t)wanted->bins, format);
    return metrics_print(cli, reducer, wanted->by, format);
}

/* ---- two streams --------------------------------------------------------- */

static bool
read_predicted(struct cli *cli, struct metrics *const reducer[],
               const struct metrics_args *args)
{
    const char *path = args->compare_arg;
    struct rec_reader_options options = {
        .partial = cli->partial, .warn = cli_warn_text, .context = cli};
    struct rec_reader *reader = rec_reader_open(&path, 1, &options, &cli->err);
    bool ok = reader && read_all(cli, reader, reducer, args);
    rec_reader_close(reader);
    return ok;
}

/* The reducer of the predicted stream that can be compared with the actual one: one of
 * the same family, or `prediction`, which reads the stream as a prediction of that
 * family. NULL: cli->err. */
static struct metrics *
match(struct cli *cli, struct metrics *const reducer[], struct metrics *prediction,
      const struct metrics *actual, const char *path)
{
    const char *other = NULL;
    for (size_t i = 0; reducer[i]; i++) {
        if (metrics_cases(reducer[i]) == 0 || is_covered(reducer, i) ||
            is_beside(reducer[i]))
            continue;
        if (metrics_family_of(reducer[i]) == metrics_family_of(actual))
            return reducer[i];
        other = name_of(reducer[i]);
    }
    if (prediction && metrics_cases(prediction) > 0)
        return prediction;
    rec_fail(&cli->err, REC_DATA, "--compare: the input has %s, %s has %s",
             name_of(actual), strcmp(path, "-") == 0 ? "<stdin>" : path,
             other ? other : "none");
    return NULL;
}

static bool
compare(struct cli *cli, struct metrics *actual, const struct metrics_args *args,
        const struct wanted *wanted)
{
    struct metrics **reducer = make_reducers(cli, args, wanted), *prediction, *predicted;
    size_t n = 0;
    bool ok = suits(cli, actual, args) && reducer, predicts = false;
    while (ok && reducer[n])
        n++;
    prediction = ok ? make_reducer(cli, metrics_family_of(actual), args, wanted) : NULL;
    if ((ok = prediction != NULL)) {
        predicts = metrics_predict(prediction);
        reducer[n] = prediction;
        ok = read_predicted(cli, reducer, args);
        reducer[n] = NULL;
    }
    ok = ok &&
         (predicted = match(cli, reducer, predicts ? prediction : NULL, actual,
                            args->compare_arg)) &&
         has_room(cli, predicted, wanted) && has_room(cli, actual, wanted) &&
         metrics_end(predicted, &cli->err) && metrics_end(actual, &cli->err) &&
         cli_open_writer(cli, false) &&
         metrics_print_comparison(cli, predicted, actual,
                                  (enum metrics_format)wanted->format);
    metrics_free(prediction);
    free_reducers(reducer);
    return ok;
}

static bool
run(struct cli *cli, const struct metrics_args *args)
{
    struct metrics **reducer = NULL, *chosen = NULL;
    struct wanted wanted;
    bool ok = read_options(cli, args, &wanted) && cli_open_reader(cli) &&
              (reducer = make_reducers(cli, args, &wanted)) &&
              read_all(cli, NULL, reducer, args) &&
              (chosen = choose(cli, reducer, &wanted)) &&
              (args->compare_given ? compare(cli, chosen, args, &wanted)
                                   : print(cli, chosen, args, &wanted));

    free_reducers(reducer);
    return ok;
}
