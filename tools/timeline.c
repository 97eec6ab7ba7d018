/* timeline [OPTION]... [FILE]... - shows what happened when: a trace for Perfetto, a page
 * for a browser, a picture for a paper. */
#include "ggo/timeline.h"
#include "main.h"

#include "rampipe/timeline.h"

static bool
read_all(struct cli *cli, struct timeline *timeline)
{
    struct rec rec;
    int status;
    while ((status = cli_next(cli, &rec)) > 0)
        if (!timeline_take(timeline, cli->reader, &rec, &cli->err))
            return false;
    return status == 0;
}

/* If there is nothing to show, fills cli->err with the reason. */
static bool
check_any(struct cli *cli, const struct timeline *timeline)
{
    char list[100] = "";
    const char *name;
    if (timeline_count(timeline) > 0)
        return true;
    if (timeline_any(timeline))
        return rec_fail(&cli->err, REC_NO,
                        "--job, --from and --to leave nothing to show");
    for (size_t i = 0; (name = timeline_record(i)); i++)
        rec_list_name(list, sizeof list, name);
    return rec_fail(
        &cli->err, REC_NO,
        "the input has no records to show (%s): put %stimeline behind %sruntasks, "
        "%ssim --timeline, %ssim serve --trace or %ssim elastic",
        list, cli->prefix, cli->prefix, cli->prefix, cli->prefix, cli->prefix);
}

static bool
write_all(struct cli *cli, const struct timeline_args *args, struct timeline *timeline)
{
    if (args->html_given)
        return timeline_write_page(timeline, cli->provenance, cli->writer, &cli->err);
    return (args->svg_given ? timeline_draw : timeline_write)(timeline, cli->writer,
                                                              &cli->err);
}

static bool
run(struct cli *cli, const struct timeline_args *args)
{
    struct timeline *timeline = NULL;
    struct timeline_options show = {.job = args->job_arg, .sends = !args->no_sends_given};
    bool ok = (cli->gathers = true) &&
              cli_seconds(cli, "from", args->from_arg, false, &show.from) &&
              cli_seconds(cli, "to", args->to_arg, true, &show.to) &&
              (show.from <= show.to || cli_usage(cli, "--from is after --to")) &&
              (!args->svg_given || !args->html_given ||
               cli_usage(cli, "give --svg or --html, not both")) &&
              cli_count(cli, "links", args->links_arg, 0, 1 << 30, &show.links) &&
              (!args->links_given || (!args->svg_given && !args->html_given) ||
               cli_usage(cli, "--links is for the trace: --svg and --html show no "
                              "counters of links")) &&
              cli_open_reader(cli) && (timeline = timeline_new(&show, &cli->err)) &&
              read_all(cli, timeline) && check_any(cli, timeline) &&
              cli_open_writer(cli, false) && write_all(cli, args, timeline);
    timeline_free(timeline);
    return ok;
}
