/* footprint [OPTION]... [FILE]... - fill in the memory of ops that training holds, or
 * find the largest batch that fits. */
#include "ggo/footprint.h"
#include "main.h"

#include "rampipe/device.h"

enum { BATCH_MAX = 1000000000 };

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

/* --largest-batch: finds the largest batch of each graph. */
static bool
fit_all(struct cli *cli, struct device_fit *fit)
{
    struct rec rec;
    int status;
    while ((status = cli_next(cli, &rec)) > 0)
        if (!device_fit_take(fit, cli->reader, &rec, cli->writer, &cli->err))
            return false;
    return status == 0 && device_fit_end(fit, cli->writer, &cli->err) &&
           (fit->graphs > 0 ||
            rec_fail(&cli->err, REC_NO, "no graph came, so there is no batch to find"));
}

/* Reads --largest-batch, and the options that are allowed only together with it. */
static bool
read_fit(struct cli *cli, const struct footprint_args *args, struct device_fit *fit)
{
    uint64_t batch = 0;
    if (!args->largest_batch_given)
        return (!args->memory_given && !args->batch_given) ||
               cli_usage(cli, "--%s is for --largest-batch",
                         args->memory_given ? "memory" : "batch");
    if (!args->memory_given)
        return cli_usage(cli, "--largest-batch needs --memory, that of a server: 80GB");
    if (!cli_bytes(cli, "memory", args->memory_arg, false, &fit->memory) ||
        (args->batch_given &&
         !cli_count(cli, "batch", args->batch_arg, 1, BATCH_MAX, &batch)))
        return false;
    fit->batch = (double)batch;
    return fit->memory > 0 || cli_usage(cli, "--memory must be > 0");
}

static bool
run(struct cli *cli, const struct footprint_args *args)
{
    static const char *const rules[] = {"training", "published", NULL};
    struct device_footprint footprint = {.precision = DEVICE_NPRECISIONS};
    struct device_fit fit = {.memory = 0};
    const char *names[8];
    bool ok;
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
    footprint.optimizer = fit.optimizer =
        rule == 0 ? &device_optimizers[optimizer] : NULL;
    footprint.precision = fit.precision = (enum device_precision)precision;
    /* After an error the output has no #end: MEMORY that was not filled in must not be
     * taken for the memory of training. */
    cli->cut = true;
    ok = read_fit(cli, args, &fit) && cli_open_filter(cli) &&
         (args->largest_batch_given ? fit_all(cli, &fit) : fill_all(cli, &footprint));
    device_fit_free(&fit);
    return ok;
}
