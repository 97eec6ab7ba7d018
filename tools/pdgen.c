/* pdgen [OPTION]... ARCHITECTURE - the profile of a named network on a named device. */
#include "ggo/pdgen.h"
#include "main.h"

#include "rampipe/architecture.h"

#include <math.h>

static const char *const precisions[] = {"fp32", "tf32", "fp16", "bf16", NULL};

static bool
list(struct cli *cli)
{
    rec_printf(cli->writer, "%-12s %14s  %s\n", "architecture", "parameters",
               "what it is");
    for (const struct arch_spec *s = arch_specs; s->name; s++) {
        struct arch arch;
        if (!arch_build(s, 1, 0, &arch, &cli->err))
            return false;
        rec_printf(cli->writer, "%-12s %14.0f  %s\n", s->name, arch_params(&arch),
                   s->about);
        arch_free(&arch);
    }
    rec_printf(cli->writer, "\n%-12s %9s %9s %9s %9s %9s  TFLOP/s and GB/s, from\n",
               "device", "fp32", "tf32", "fp16", "bf16", "memory");
    for (const struct arch_device *d = arch_devices; d->name; d++) {
        rec_printf(cli->writer, "%-12s", d->name);
        for (int p = 0; p < ARCH_NPRECISIONS; p++)
            rec_printf(cli->writer, d->peak[p] > 0 ? " %9.1f" : "         -",
                       d->peak[p] / 1e12);
        rec_printf(cli->writer, " %9.0f  %s\n", d->bandwidth / 1e9, d->source);
    }
    return true;
}

static bool
find_spec(struct cli *cli, const struct arch_spec **spec)
{
    const char *names[20];
    size_t n = 0, index = 0;
    if (cli->nfiles != 1)
        return cli_usage(cli, "name one architecture (pdgen --list shows them), got %zu",
                         cli->nfiles);
    for (; arch_specs[n].name; n++)
        names[n] = arch_specs[n].name;
    names[n] = NULL;
    if (!cli_choice(cli, "ARCHITECTURE", cli->files[0], names, &index))
        return false;
    *spec = &arch_specs[index];
    return true;
}

static bool
find_roofline(struct cli *cli, const struct gengetopt_args_info *args,
              struct arch_roofline *r)
{
    const char *names[20];
    size_t n = 0, device = 0, precision = 0;

    for (; arch_devices[n].name; n++)
        names[n] = arch_devices[n].name;
    names[n] = NULL;
    if (!cli_choice(cli, "device", args->device_arg, names, &device) ||
        !cli_choice(cli, "precision", args->precision_arg, precisions, &precision) ||
        !cli_amount(cli, "efficiency", args->efficiency_arg, false, &r->efficiency))
        return false;
    r->peak = arch_devices[device].peak[precision];
    r->bandwidth = arch_devices[device].bandwidth;
    r->bytes = precision == ARCH_FP32 || precision == ARCH_TF32 ? 4 : 2;
    if (args->peak_given && !cli_amount(cli, "peak", args->peak_arg, false, &r->peak))
        return false;
    if (args->bandwidth_given &&
        !cli_amount(cli, "bandwidth", args->bandwidth_arg, false, &r->bandwidth))
        return false;
    if (r->peak <= 0)
        return cli_usage(cli,
                         args->peak_given ? "--peak must be > 0"
                                          : "device %s does not have precision %s",
                         args->device_arg, args->precision_arg);
    if (r->bandwidth <= 0)
        return cli_usage(cli, "--bandwidth must be > 0");
    if (r->efficiency <= 0 || r->efficiency > 1)
        return cli_usage(cli, "--efficiency must be > 0 and at most 1, got '%s'",
                         args->efficiency_arg);
    return true;
}

/* A profile holds finite times only; pd2graph refuses others. */
static bool
check_times(struct cli *cli, const struct arch *arch, const struct arch_roofline *r)
{
    for (size_t i = 0; i < arch->nlayers; i++)
        if (!isfinite(1e3 * arch_backward_seconds(&arch->layer[i], r)))
            return cli_usage(cli,
                             "node%zu takes longer than a number can say: raise --peak, "
                             "--bandwidth or --efficiency",
                             i + 1);
    return true;
}

static void
put_number(struct cli *cli, const char *key, double value)
{
    char number[REC_NUM_MAX];
    rec_format_num(number, value);
    rec_printf(cli->writer, "%s=%s", key, number);
}

static void
put_profile(struct cli *cli, const struct arch *arch, const struct arch_roofline *r)
{
    for (size_t i = 0; i < arch->nlayers; i++) {
        const struct arch_layer *layer = &arch->layer[i];
        rec_printf(cli->writer, "node%zu -- %s -- ", i + 1, layer->text);
        put_number(cli, "forward_compute_time", 1e3 * arch_forward_seconds(layer, r));
        put_number(cli, ", backward_compute_time", 1e3 * arch_backward_seconds(layer, r));
        put_number(cli, ", activation_size", layer->out * r->bytes);
        put_number(cli, ", parameter_size", layer->params * r->bytes);
        rec_printf(cli->writer, "\n");
    }
    for (size_t i = 0; i < arch->nlayers; i++)
        for (uint32_t j = 0; j < arch->layer[i].ninputs; j++)
            rec_printf(cli->writer, "\tnode%u -- node%zu\n", arch->layer[i].input[j] + 1,
                       i + 1);
}

static bool
run(struct cli *cli, const struct gengetopt_args_info *args)
{
    const struct arch_spec *spec = NULL;
    struct arch_roofline roofline;
    struct arch arch;
    uint64_t batch, sequence = 0;
    bool ok;

    if (args->list_given && cli->nfiles > 0)
        return cli_usage(cli, "--list takes no ARCHITECTURE, got '%s'", cli->files[0]);
    if (args->list_given)
        return cli_open_writer(cli, false) && list(cli);
    if (!find_spec(cli, &spec) || !find_roofline(cli, args, &roofline) ||
        !cli_count(cli, "batch", args->batch_arg, 1, 1000000, &batch))
        return false;
    if (args->sequence_given && spec->sequence == 0)
        return cli_usage(cli, "--sequence is for transformers, %s takes images",
                         spec->name);
    if (args->sequence_given && !cli_count(cli, "sequence", args->sequence_arg, 1,
                                           (uint64_t)spec->sequence, &sequence))
        return false;
    if (!arch_build(spec, (double)batch, (double)sequence, &arch, &cli->err))
        return false;
    ok = check_times(cli, &arch, &roofline) && cli_open_writer(cli, false);
    if (ok)
        put_profile(cli, &arch, &roofline);
    arch_free(&arch);
    return ok;
}
