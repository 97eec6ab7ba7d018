/* onnx2graph [OPTION]... [FILE.onnx] - read a model in ONNX's format, write its graph and
 * a job. */
#include "ggo/onnx2graph.h"
#include "main.h"

#include "rampipe/device.h"
#include "rampipe/onnx.h"

enum { DIMENSIONS_MAX = 32, INPUTS_MAX = 32 };

struct settings {
    struct onnx_options options;
    struct onnx_dimension dimension[DIMENSIONS_MAX];
    char *names;  /* owned copy of --dimension, to which `dimension` points */
    char *inputs; /* owned copy of --input, to which `data` points */
    const char *data[INPUTS_MAX];
    enum device_precision precision;
    uint64_t steps;
    char name[300];
};

/* Reads --dimension NAME=N,NAME=N,... A name may contain '=': the last one is the
 * mark. */
static bool
read_dimensions(struct cli *cli, const char *list, struct settings *settings)
{
    struct onnx_options *options = &settings->options;
    char *next, *name = settings->names = strdup(list);
    uint64_t size;
    if (!name)
        return rec_fail_memory(&cli->err);
    for (; name; name = next) {
        char *mark = strrchr(name, '=');
        next = strchr(name, ',');
        if (next) {
            *next++ = '\0';
            mark = strrchr(name, '=');
        }
        if (!mark || mark == name || !rec_parse_uint(rec_str(mark + 1), &size) ||
            size < 1 || size > INT32_MAX)
            return cli_usage(cli, "--dimension must be NAME=N,..., N from 1, got '%s'",
                             list);
        if (options->ndimensions == DIMENSIONS_MAX)
            return cli_usage(cli, "--dimension names more than %d", DIMENSIONS_MAX);
        *mark = '\0';
        for (size_t i = 0; i < options->ndimensions; i++)
            if (strcmp(settings->dimension[i].name, name) == 0)
                return cli_usage(cli, "--dimension names '%s' twice", name);
        settings->dimension[options->ndimensions++] =
            (struct onnx_dimension){.name = name, .size = (int64_t)size};
    }
    return true;
}

/* Reads --input NAME,NAME,... */
static bool
read_inputs(struct cli *cli, const char *list, struct settings *settings)
{
    struct onnx_options *options = &settings->options;
    char *next, *name = settings->inputs = strdup(list);
    if (!name)
        return rec_fail_memory(&cli->err);
    options->data = settings->data;
    for (; name; name = next) {
        next = strchr(name, ',');
        if (next)
            *next++ = '\0';
        if (!*name)
            return cli_usage(cli, "--input must be NAME,NAME,..., got '%s'", list);
        if (options->ndata == INPUTS_MAX)
            return cli_usage(cli, "--input names more than %d", INPUTS_MAX);
        settings->data[options->ndata++] = name;
    }
    return true;
}

/* Chooses the name of the graph: models/resnet50.onnx.gz gives resnet50. */
static bool
choose_name(struct cli *cli, const struct onnx2graph_args *args, const char *path,
            char name[300])
{
    const char *base = strrchr(path, '/');
    struct rec_str from = rec_str(strcmp(path, "-") == 0 ? "stdin"
                                  : base                 ? base + 1
                                                         : path);
    static const char *const endings[] = {".gz", ".onnx"};
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(endings[i]);
        if (from.len > n && memcmp(from.ptr + from.len - n, endings[i], n) == 0)
            from.len -= n;
    }
    if (args->name_given)
        from = rec_str(args->name_arg);
    snprintf(name, 300, "%.*s", (int)from.len, from.ptr);
    if (args->name_given && (!*name || strpbrk(name, ",=\t\r\n") || !rec_is_text(from)))
        return cli_usage(cli,
                         "--name must be a name without comma, '=' or TAB, in UTF-8");
    for (char *p = name; *p; p++)
        if (*p == ',' || *p == '=' || (unsigned char)*p < ' ' || *p == 0x7f)
            *p = '_';
    return rec_is_text(rec_str(name)) ||
           cli_usage(cli,
                     "%s: a graph is called as its file, and the name is no UTF-8: "
                     "give --name",
                     path);
}

static bool
read_settings(struct cli *cli, const struct onnx2graph_args *args,
              struct settings *settings)
{
    uint64_t batch = 0;
    size_t precision;
    if (cli->nfiles > 1)
        return cli_usage(cli, "one FILE is one model, got %zu", cli->nfiles);
    if (args->no_job_given && args->steps_given)
        return cli_usage(cli, "--steps is of the job, which --no-job leaves out");
    if (!cli_choice(cli, "precision", args->precision_arg, device_precisions,
                    &precision) ||
        !cli_count(cli, "steps", args->steps_arg, 1, GRAPH_STEPS_MAX, &settings->steps) ||
        (args->batch_given &&
         !cli_count(cli, "batch", args->batch_arg, 1, 1000000, &batch)) ||
        (args->dimension_given && !read_dimensions(cli, args->dimension_arg, settings)) ||
        (args->input_given && !read_inputs(cli, args->input_arg, settings)))
        return false;
    settings->precision = (enum device_precision)precision;
    settings->options.batch = (double)batch;
    settings->options.dimension = settings->dimension;
    return choose_name(cli, args, cli->nfiles ? cli->files[0] : "-", settings->name);
}

static bool
write_graph(struct cli *cli, const struct settings *settings, bool job,
            const struct input_network *network)
{
    const struct device_roofline none = {.precision = settings->precision};
    struct graph graph = {0};
    bool ok = input_network_graph(network, settings->name, &none, &graph, &cli->err) &&
              cli_open_writer(cli, true);
    if (ok)
        graph_write(&graph, cli->writer);
    if (ok && job)
        graph_write_job(&graph, settings->steps, cli->writer);
    graph_free(&graph);
    return ok;
}

/* Sums the network up for -v. */
static void
say(struct cli *cli, const struct input_network *network)
{
    double flops = 0;
    for (size_t i = 0; i < network->nlayers; i++)
        if (strcmp(network->layer[i].kind, "memory") != 0)
            flops += network->layer[i].flops;
    cli_note(cli,
             "%zu layers, %.0f parameters, %.9g GFLOP forward in convolutions and "
             "matrix products, batch %.0f",
             network->nlayers, input_network_params(network), flops / 1e9,
             network->batch);
}

/* Says which inputs were taken for weights, since this was guessed; and that none was, if
 * one may be and there are no other parameters. */
static void
warn_of_inputs(struct cli *cli, const struct onnx_inputs *inputs, double parameters)
{
    if (inputs->weights == 0 && parameters == 0 && inputs->guessed)
        cli_warn(cli,
                 "the model has no parameters: all its inputs are taken for data, %s "
                 "(--input NAME,... says which are)",
                 inputs->data);
    if (inputs->weights == 0)
        return;
    cli_warn(cli,
             "inputs without values that are taken for weights: %zu%s%s%s; for data: %s "
             "(--input NAME,... says which are data)",
             inputs->weights, *inputs->unsure ? " (by their shape alone: " : "",
             inputs->unsure, *inputs->unsure ? ")" : "", inputs->data);
}

static void
warn_of_dimensions(struct cli *cli, const struct onnx_inputs *inputs)
{
    if (*inputs->samples)
        cli_warn(cli,
                 "inputs differ in their first dimension (%s): the batch of the file is "
                 "taken to be %.0f",
                 inputs->samples, inputs->batch);
    if (*inputs->unknown)
        cli_warn(cli, "--dimension: the file has no dimension %s", inputs->unknown);
}

static bool
run(struct cli *cli, const struct onnx2graph_args *args)
{
    struct settings settings = {.names = NULL, .inputs = NULL};
    struct input_network network = {0};
    struct onnx_inputs inputs;
    bool ok = read_settings(cli, args, &settings) &&
              onnx_read(cli->nfiles ? cli->files[0] : "-", &settings.options, &network,
                        &inputs, &cli->err);
    if (ok) {
        if (!args->input_given)
            warn_of_inputs(cli, &inputs, input_network_params(&network));
        warn_of_dimensions(cli, &inputs);
        say(cli, &network);
        ok = write_graph(cli, &settings, !args->no_job_given, &network);
    }
    input_network_free(&network);
    free(settings.names);
    free(settings.inputs);
    return ok;
}
