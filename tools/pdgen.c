/* pdgen [OPTION]... ARCHITECTURE - the profile of a named network on a named device. */
#include "ggo/pdgen.h"
#include "main.h"

#include "rampipe/input.h"

#include <math.h>

static const char *const precisions[] = {"fp32", "tf32", "fp16", "bf16", NULL};

static bool
list(struct cli *cli)
{
    rec_printf(cli->writer, "%-12s %14s  %s\n", "architecture", "parameters",
               "what it is");
    for (const struct input_network_spec *s = input_networks; s->name; s++) {
        struct input_network network;
        if (!input_network_build(s, 1, 0, &network, &cli->err))
            return false;
        rec_printf(cli->writer, "%-12s %14.0f  %s\n", s->name,
                   input_network_params(&network), s->about);
        input_network_free(&network);
    }
    rec_printf(cli->writer, "\n%-12s %9s %9s %9s %9s %9s  TFLOP/s and GB/s, from\n",
               "device", "fp32", "tf32", "fp16", "bf16", "memory");
    for (const struct input_device *d = input_devices; d->name; d++) {
        rec_printf(cli->writer, "%-12s", d->name);
        for (int p = 0; p < INPUT_NPRECISIONS; p++)
            rec_printf(cli->writer, d->peak[p] > 0 ? " %9.1f" : "         -",
                       d->peak[p] / 1e12);
        rec_printf(cli->writer, " %9.0f  %s\n", d->bandwidth / 1e9, d->source);
    }
    return true;
}

static bool
find_spec(struct cli *cli, const struct input_network_spec **spec)
{
    const char *names[20];
    size_t n = 0, index = 0;
    if (cli->nfiles != 1)
        return cli_usage(cli,
                         "name one architecture (%spdgen --list shows them), got %zu",
                         cli->prefix, cli->nfiles);
    for (; input_networks[n].name; n++)
        names[n] = input_networks[n].name;
    names[n] = NULL;
    if (!cli_choice(cli, "ARCHITECTURE", cli->files[0], names, &index))
        return false;
    *spec = &input_networks[index];
    return true;
}

static bool
find_roofline(struct cli *cli, const struct pdgen_args *args, struct input_roofline *r)
{
    const char *names[20];
    size_t n = 0, device = 0, precision = 0;

    for (; input_devices[n].name; n++)
        names[n] = input_devices[n].name;
    names[n] = NULL;
    if (!cli_choice(cli, "device", args->device_arg, names, &device) ||
        !cli_choice(cli, "precision", args->precision_arg, precisions, &precision) ||
        !cli_amount(cli, "efficiency", args->efficiency_arg, false, &r->efficiency))
        return false;
    r->peak = input_devices[device].peak[precision];
    r->bandwidth = input_devices[device].bandwidth;
    r->bytes = precision == INPUT_FP32 || precision == INPUT_TF32 ? 4 : 2;
    if (args->peak_given && !cli_amount(cli, "peak", args->peak_arg, false, &r->peak))
        return false;
    if (args->bandwidth_given &&
        !cli_rate(cli, "bandwidth", args->bandwidth_arg, false, &r->bandwidth))
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
check_times(struct cli *cli, const struct input_network *network,
            const struct input_roofline *r)
{
    for (size_t i = 0; i < network->nlayers; i++)
        if (!isfinite(1e3 * input_backward_seconds(&network->layer[i], r)))
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

/* What the profile is of, for people and for pd2graph. */
static void
put_head(struct cli *cli, const struct pdgen_args *args,
         const struct input_network_spec *spec, const struct input_network *network)
{
    rec_put_line(cli->writer, rec_str(cli->provenance));
    rec_printf(cli->writer, "# network: %s\n# device: %s\n# precision: %s\n", spec->name,
               args->device_arg, args->precision_arg);
    rec_printf(cli->writer, "# batch: %.0f\n", network->batch);
    if (spec->sequence > 0)
        rec_printf(cli->writer, "# sequence: %.0f\n", network->sequence);
}

static void
put_profile(struct cli *cli, const struct input_network *network,
            const struct input_roofline *r)
{
    for (size_t i = 0; i < network->nlayers; i++) {
        const struct input_layer *layer = &network->layer[i];
        rec_printf(cli->writer, "node%zu -- %s -- ", i + 1, layer->text);
        put_number(cli, "forward_compute_time", 1e3 * input_forward_seconds(layer, r));
        put_number(cli, ", backward_compute_time",
                   1e3 * input_backward_seconds(layer, r));
        put_number(cli, ", activation_size", layer->out * r->bytes);
        put_number(cli, ", parameter_size", layer->params * r->bytes);
        rec_printf(cli->writer, "\n");
    }
    for (size_t i = 0; i < network->nlayers; i++)
        for (uint32_t j = 0; j < network->layer[i].ninputs; j++)
            rec_printf(cli->writer, "\tnode%u -- node%zu\n",
                       network->layer[i].input[j] + 1, i + 1);
}

static bool
run(struct cli *cli, const struct pdgen_args *args)
{
    const struct input_network_spec *spec = NULL;
    struct input_roofline roofline;
    struct input_network network;
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
    if (!input_network_build(spec, (double)batch, (double)sequence, &network, &cli->err))
        return false;
    ok = check_times(cli, &network, &roofline) && cli_open_writer(cli, false);
    if (ok) {
        put_head(cli, args, spec, &network);
        put_profile(cli, &network, &roofline);
    }
    input_network_free(&network);
    return ok;
}
