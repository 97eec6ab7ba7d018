/* pdgen [OPTION]... ARCHITECTURE - write the profile of a named network on a named
 * device. */
#include "ggo/pdgen.h"
#define CLI_PATHS "devices", "transformer",
#include "main.h"

#include "device_options.h"
#include "rampipe/input.h"
#include "rampipe/parallel_step.h"

#include <math.h>

/* The steps of a job, as many as pd2graph gives it by default. */
enum { JOB_STEPS = 50 };

static bool
list(struct cli *cli, const struct device_table *table)
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
    for (size_t i = 0; i < table->ndevices; i++) {
        const struct device *d = &table->device[i];
        if (device_find(table, d->name) != d)
            continue;
        rec_printf(cli->writer, "%-12s", d->name);
        for (int p = 0; p < DEVICE_NPRECISIONS; p++)
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

/* The name of a network follows from its file: models/llama-2-7b.json gives llama-2-7b,
 * and .../llama/config.json gives llama. */
static void
name_of_config(const char *path, char *name, size_t room)
{
    const char *end = path + strlen(path), *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    if (strcmp(base, "config.json") == 0 && base > path + 1) {
        end = base - 1;
        base = memrchr(path, '/', (size_t)(end - path));
        base = base ? base + 1 : path;
    } else if (end - base > 5 && strcmp(end - 5, ".json") == 0)
        end -= 5;
    snprintf(name, room, "%.*s", (int)(end - base), base);
    rec_clean_id(name);
}

/* A network that is not in the table: one of --transformer, or a changed copy. */
struct config {
    struct input_network_spec spec;
    struct input_transformer transformer;
    char name[200];
};

static bool
read_transformer(struct cli *cli, const char *path, struct config *config)
{
    struct rec_reader *reader;
    char left[INPUT_LEFT_MAX] = "";
    bool ok;
    if (cli->nfiles > 0)
        return cli_usage(cli, "--transformer takes no ARCHITECTURE, got '%s'",
                         cli->files[0]);
    reader = rec_reader_open(&path, 1, NULL, &cli->err);
    ok = reader && input_transformer_read(reader, &config->transformer,
                                          &config->spec.sequence, left, &cli->err);
    if (ok && *left)
        cli_warn(cli, "%s: keys that are not understood, and left out: %s",
                 rec_reader_file(reader), left);
    rec_reader_close(reader);
    name_of_config(strcmp(path, "-") == 0 ? "stdin" : path, config->name,
                   sizeof config->name);
    config->spec.name = config->name;
    config->spec.transformer = &config->transformer;
    return ok && (rec_is_text(rec_str(config->name)) ||
                  cli_usage(cli, "--transformer: the name of the file must be UTF-8"));
}

/* Computes the times of all layers, forward and backward, in milliseconds. They must be
 * finite: pd2graph refuses other profiles. */
static bool
find_times(struct cli *cli, const struct input_network *network,
           const struct device_roofline *r, double *times)
{
    double bytes = device_element(r->precision);
    for (size_t i = 0; i < network->nlayers; i++) {
        const struct device_work work[] = {
            input_forward_work(&network->layer[i], bytes),
            input_backward_work(&network->layer[i], bytes)};
        struct rec_error why;
        for (size_t k = 0; k < 2; k++) {
            double *time = &times[2 * i + k];
            if (!device_seconds(r, &work[k], time, &why) && isfinite(*time))
                return rec_fail(&cli->err, why.code, "node%zu: %s", i + 1, why.text);
            if (!isfinite(*time *= 1e3))
                return cli_usage(cli,
                                 "node%zu takes longer than a number can say: raise "
                                 "--peak, --bandwidth or --efficiency",
                                 i + 1);
        }
    }
    return true;
}

static void
put_number(struct cli *cli, const char *key, double value)
{
    char number[REC_NUM_MAX];
    rec_format_num(number, value);
    rec_printf(cli->writer, "%s=%s", key, number);
}

/* Writes the comment lines that describe the profile, for people and for pd2graph. */
static void
put_head(struct cli *cli, const struct input_network_spec *spec,
         const struct input_network *network, const struct device_roofline *roofline)
{
    rec_put_line(cli->writer, rec_str(cli->provenance));
    rec_printf(cli->writer, "# network: %s\n", spec->name);
    if (*input_network_family(network))
        rec_printf(cli->writer, "# family: %s\n", input_network_family(network));
    rec_printf(cli->writer, "# device: %s\n# precision: %s\n", roofline->device,
               device_precisions[roofline->precision]);
    rec_printf(cli->writer, "# batch: %.0f\n", network->batch);
    if (spec->sequence > 0)
        rec_printf(cli->writer, "# sequence: %.0f\n", network->sequence);
}

static void
put_profile(struct cli *cli, const struct input_network *network, double bytes,
            const double *times)
{
    for (size_t i = 0; i < network->nlayers; i++) {
        const struct input_layer *layer = &network->layer[i];
        rec_printf(cli->writer, "node%zu -- %s -- ", i + 1, layer->text);
        put_number(cli, "forward_compute_time", times[2 * i]);
        put_number(cli, ", backward_compute_time", times[2 * i + 1]);
        put_number(cli, ", activation_size", layer->out * bytes);
        put_number(cli, ", parameter_size", layer->params * bytes);
        rec_printf(cli->writer, "\n");
    }
    for (size_t i = 0; i < network->nlayers; i++)
        for (size_t j = 0; j < network->layer[i].ninputs; j++)
            rec_printf(cli->writer, "\tnode%u -- node%zu\n",
                       network->read[network->layer[i].first + j] + 1, i + 1);
}

static bool
write_profile(struct cli *cli, const struct input_network_spec *spec,
              const struct input_network *network, const struct device_roofline *r)
{
    double *times = calloc(network->nlayers, 2 * sizeof *times);
    bool ok = (times || rec_fail_memory(&cli->err)) &&
              find_times(cli, network, r, times) && cli_open_writer(cli, false);
    if (ok) {
        put_head(cli, spec, network, r);
        put_profile(cli, network, device_element(r->precision), times);
    }
    free(times);
    return ok;
}

static bool
write_graph(struct cli *cli, bool job, const struct input_network_spec *spec,
            const struct input_network *network, const struct device_roofline *r)
{
    struct graph graph = {0};
    bool ok = input_network_graph(network, spec->name, r, &graph, &cli->err) &&
              cli_open_writer(cli, true);
    if (ok)
        graph_write(&graph, cli->writer);
    if (ok && job)
        graph_write_job(&graph, JOB_STEPS, cli->writer);
    graph_free(&graph);
    return ok;
}

static bool
takes_images(const struct input_network_spec *spec)
{
    return spec->sequence == 0 || spec->transformer->patch > 0;
}

/* Builds the network that the options describe, for their batch and sequence. */
static bool
build(struct cli *cli, const struct pdgen_args *args, double bytes, struct config *config,
      const struct input_network_spec **spec, struct input_network *network)
{
    static const char *const attentions[] = {"fused", "unfused", NULL};
    uint64_t batch, sequence = 0;
    size_t attention;
    *spec = &config->spec;
    if (!(args->transformer_given ? read_transformer(cli, args->transformer_arg, config)
                                  : find_spec(cli, spec)) ||
        !cli_count(cli, "batch", args->batch_arg, 1, 1000000, &batch) ||
        !cli_choice(cli, "attention",
                    args->attention_given ? args->attention_arg : "fused", attentions,
                    &attention))
        return false;
    if (args->sequence_given && takes_images(*spec))
        return cli_usage(cli, "--sequence is for transformers of text, %s takes images",
                         (*spec)->name);
    if (args->sequence_given && !cli_count(cli, "sequence", args->sequence_arg, 1,
                                           (uint64_t)(*spec)->sequence, &sequence))
        return false;
    if (args->attention_given && (*spec)->sequence == 0)
        return cli_usage(cli, "--attention is for transformers, %s takes images",
                         (*spec)->name);
    if (attention == 1) {
        config->transformer = *(*spec)->transformer;
        config->transformer.score_passes = input_score_passes(bytes);
        config->spec = **spec;
        config->spec.transformer = &config->transformer;
        *spec = &config->spec;
    }
    return input_network_build(*spec, (double)batch, (double)sequence, network,
                               &cli->err);
}

/* Writes the training record of a transformer. */
static bool
write_shapes(struct cli *cli, const struct pdgen_args *args)
{
    struct config config = {0};
    const struct input_network_spec *spec = &config.spec;
    uint64_t sequence;
    bool ok = args->transformer_given
                  ? read_transformer(cli, args->transformer_arg, &config)
                  : find_spec(cli, &spec);
    if (ok && (!spec->transformer || takes_images(spec)))
        ok = cli_usage(cli, "--shapes is for transformers of text, '%s' is none",
                       spec->name);
    sequence = ok ? (uint64_t)spec->sequence : 0;
    ok = ok &&
         (!args->sequence_given || cli_count(cli, "sequence", args->sequence_arg, 1,
                                             (uint64_t)spec->sequence, &sequence)) &&
         cli_open_writer(cli, true) &&
         parallel_training_write(spec->transformer, spec->name, (double)sequence,
                                 cli->writer, &cli->err);
    input_transformer_free(&config.transformer);
    return ok;
}

/* An option that would do nothing beside --list. */
static const char *
list_ignores(const struct pdgen_args *args)
{
    return args->device_given        ? "device"
           : args->precision_given   ? "precision"
           : args->efficiency_given  ? "efficiency"
           : args->peak_given        ? "peak"
           : args->bandwidth_given   ? "bandwidth"
           : args->batch_given       ? "batch"
           : args->sequence_given    ? "sequence"
           : args->attention_given   ? "attention"
           : args->transformer_given ? "transformer"
           : args->graph_given       ? "graph"
                                     : NULL;
}

static bool
run(struct cli *cli, const struct pdgen_args *args)
{
    const struct device_options options = DEVICE_OPTIONS(args);
    const struct input_network_spec *spec;
    struct input_network network = {0};
    struct device_roofline roofline;
    struct device_table table = {0};
    struct config config = {0};
    bool ok;

    if (args->list_given && cli->nfiles > 0)
        return cli_usage(cli, "--list takes no ARCHITECTURE, got '%s'", cli->files[0]);
    if (args->list_given && list_ignores(args))
        return cli_usage(cli, "--list shows all networks and devices: leave out --%s",
                         list_ignores(args));
    if (args->no_job_given && !args->graph_given)
        return cli_usage(cli, "--no-job is for --graph: a profile has no job");
    if (args->shapes_given)
        return args->graph_given || args->list_given
                   ? cli_usage(cli, "--shapes and --%s exclude each other",
                               args->graph_given ? "graph" : "list")
                   : write_shapes(cli, args);
    ok = device_options_read(cli, &options, &table, &roofline);
    if (args->list_given)
        ok = ok && cli_open_writer(cli, false) && list(cli, &table);
    else
        ok = ok &&
             build(cli, args, device_element(roofline.precision), &config, &spec,
                   &network) &&
             (args->graph_given
                  ? write_graph(cli, !args->no_job_given, spec, &network, &roofline)
                  : write_profile(cli, spec, &network, &roofline));
    input_network_free(&network);
    input_transformer_free(&config.transformer);
    device_table_free(&table);
    return ok;
}
