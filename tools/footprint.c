/* footprint [OPTION]... [FILE]... - ops with what training holds in memory. */
#include "ggo/footprint.h"
#include "main.h"

#include "rampipe/device.h"

static bool
fill_all(struct cli *cli, struct device_footprint *footprint)
{
    struct rec rec;
    int status;
    while ((status = cli_next(cli, &rec)) > 0)
        if (!device_footprint_take(footprint, cli->reader, &rec, cli->writer, &cli->err))
            return false;
    if (status < 0 || !device_footprint_end(footprint, &cli->err))
        return false;
    if (footprint->filled == 0)
        return rec_fail(&cli->err, REC_NO,
                        "no op has param= or activation=, so there is nothing to fill");
    if (footprint->kept > 0)
        cli_warn(cli,
                 "%llu of %llu ops have neither param= nor activation=: they keep their "
                 "memory",
                 (unsigned long long)footprint->kept,
                 (unsigned long long)(footprint->kept + footprint->filled));
    return true;
}

static bool
run(struct cli *cli, const struct footprint_args *args)
{
    static const char *const rules[] = {"training", "published", NULL};
    struct device_footprint footprint = {.precision = DEVICE_NPRECISIONS};
    const char *names[8];
    size_t n = 0, rule, optimizer, precision = DEVICE_NPRECISIONS;

    for (; device_optimizers[n].name; n++)
        names[n] = device_optimizers[n].name;
    names[n] = NULL;
    if (!cli_choice(cli, "memory-rule", args->memory_rule_arg, rules, &rule) ||
        !cli_choice(cli, "optimizer", args->optimizer_arg, names, &optimizer) ||
        (args->precision_given && !cli_choice(cli, "precision", args->precision_arg,
                                              device_precisions, &precision)))
        return false;
    if (rule == 1 && (args->optimizer_given || args->precision_given))
        return cli_usage(cli, "--%s is for --memory-rule training",
                         args->optimizer_given ? "optimizer" : "precision");
    footprint.optimizer = rule == 0 ? &device_optimizers[optimizer] : NULL;
    footprint.precision = (enum device_precision)precision;
    cli->cut = true; /* what was not filled must not pass for the memory of training */
    return cli_open_filter(cli) && fill_all(cli, &footprint);
}
