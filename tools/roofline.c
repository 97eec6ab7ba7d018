/* roofline [OPTION]... [FILE]... - fill in the time of ops from their work and a
 * device. */
#include "ggo/roofline.h"
#define CLI_PATHS "devices",
#include "main.h"

#include "device_options.h"

static bool
fill_all(struct cli *cli, struct device_fill *fill)
{
    struct rec rec;
    int status;
    while ((status = cli_next(cli, &rec)) > 0)
        if (!device_fill_take(fill, cli->reader, &rec, cli->writer, &cli->err))
            return false;
    if (status < 0 || !device_fill_end(fill, cli->writer, &cli->err))
        return false;
    if (fill->filled == 0)
        return rec_fail(&cli->err, REC_NO,
                        "no op has flops= or moved=, so there is nothing to fill");
    if (fill->kept > 0)
        cli_warn(cli,
                 "%llu of %llu ops have neither flops= nor moved=: they keep their "
                 "times, and their graphs do not say device=%s",
                 (unsigned long long)fill->kept,
                 (unsigned long long)(fill->kept + fill->filled), fill->roofline->device);
    return true;
}

static bool
run(struct cli *cli, const struct roofline_args *args)
{
    const struct device_options options = DEVICE_OPTIONS(args);
    struct device_table table;
    struct device_roofline roofline;
    struct device_fill fill = {.roofline = &roofline,
                               .keep_times = args->keep_times_given,
                               .option = "--keep-times"};
    uint64_t batch = 0;
    bool ok = device_options_read(cli, &options, &table, &roofline) &&
              (!args->batch_given ||
               cli_count(cli, "batch", args->batch_arg, 1, 1000000, &batch));
    fill.batch = (double)batch;
    /* After an error the output has no #end: it lacks a graph, or has times of another
     * device. */
    cli->cut = true;
    ok = ok && cli_open_filter(cli) && fill_all(cli, &fill);
    device_fill_free(&fill);
    device_table_free(&table);
    return ok;
}
