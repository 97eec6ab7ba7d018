/* tracegen fit: a measured log -> its events, or the figures of a model. */
#include "ggo/tracegen-fit.h"
#include "main.h"

#include "rampipe/spot.h"

static void
pass_on(void *context, const struct rec *rec)
{
    struct cli *cli = context;
    rec_put_line(cli->writer, rec->line);
}

/* Writes the model under the name of the first file without directories and extensions:
 * "log" for /a/b/log.csv.gz. */
static void
put_model(struct cli *cli, const struct spot_model *model)
{
    char name[200];
    const char *file = cli->nfiles > 0 ? cli->files[0] : "-";
    const char *base = strrchr(file, '/');
    size_t len;

    base = base ? base + 1 : file;
    len = strcspn(base, ".");
    if (len >= sizeof name)
        len = sizeof name - 1;
    memcpy(name, base, len);
    name[len] = '\0';
    for (char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '_';
    spot_model_write(model, rec_is_text(rec_str(name)) && len > 0 ? name : "-",
                     cli->writer);
}

/* The published rates count the time up to the last event. If the trace was observed for
 * much longer, they are too high. Without a time there are none. */
static void
warn_of_tail(struct cli *cli, const struct spot_trace *trace,
             const struct spot_model *model)
{
    double minutes = (trace->end - trace->start) / 60;
    if (model->total_minutes > 0 && minutes > 1.1 * model->total_minutes)
        cli_warn(
            cli,
            "the trace lasts %.6g minutes, but its last change is after %.6g: the "
            "figures per minute are of that time only, as published, and so too high",
            minutes, model->total_minutes);
}

static bool
run(struct cli *cli, const struct tracegen_fit_args *args)
{
    static const char *const clocks[] = {"auto", "relative", "epoch", NULL};
    struct spot_log_options options = {.repair = args->repair_given,
                                       .warn = cli_warn_text,
                                       .note = cli_note_text,
                                       .other = pass_on,
                                       .context = cli};
    struct spot_trace trace = {0};
    struct spot_model model;
    size_t clock;
    bool ok;

    if (!cli_choice(cli, "clock", args->clock_arg, clocks, &clock))
        return false;
    options.clock = (enum spot_clock)clock;
    spot_model_clear(&model);
    ok = cli_open_filter(cli) && spot_log_read(cli->reader, &options, &trace, &cli->err);
    if (ok && args->stats_given) {
        ok = spot_model_fit(&trace, &model, &cli->err);
        if (ok) {
            warn_of_tail(cli, &trace, &model);
            put_model(cli, &model);
        }
    } else if (ok) {
        spot_write_trace(cli->writer, trace.start, trace.end,
                         trace.populated ? &trace.instances : NULL);
        for (size_t i = 0; i < trace.n; i++)
            spot_write_event(cli->writer, &trace.event[i]);
    }
    spot_model_free(&model);
    spot_trace_free(&trace);
    return ok;
}
