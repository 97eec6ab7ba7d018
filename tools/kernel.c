/* kernel [OPTION]... [FILE]... - predict how long a kernel takes on a device. */
#include "ggo/kernel.h"
#define CLI_PATHS "gemm-table", "attention-table", "devices",
#include "main.h"

#include "rampipe/kernel.h"

static bool
read_tables(struct cli *cli, const struct kernel_args *args, struct kernel_table *table)
{
    return (args->alone_given || kernel_table_read_shipped(table, &cli->err)) &&
           (!args->gemm_table_given ||
            kernel_table_read_file(table, args->gemm_table_arg, &cli->err)) &&
           (!args->attention_table_given ||
            kernel_table_read_file(table, args->attention_table_arg, &cli->err));
}

static void
list(struct cli *cli, const struct kernel_table *table)
{
    rec_printf(cli->writer, "%-36s %7s\n", "law", "kernels");
    for (size_t i = 0; i < table->nlaws; i++)
        rec_printf(cli->writer, "%-36s %7zu\n", kernel_law_name(table, i),
                   kernel_law_kernels(table, i));
    rec_printf(cli->writer, "\n%-42s %6s %8s %8s %8s\n", "predictions of", "rows", "mean",
               "p90", "worst");
    for (size_t i = 0; i < table->nchecks; i++) {
        const struct kernel_check *c = &table->check[i];
        rec_printf(cli->writer, "%-42s %6llu %7.1f%% %7.1f%% %7.1f%%\n", c->name,
                   (unsigned long long)c->rows, c->mean * 100, c->p90 * 100,
                   c->worst * 100);
    }
}

/* The question of the options as a record, which the caller owns. */
static char *
write_question(struct cli *cli, const struct kernel_args *args)
{
    struct rec_text text;
    if (!cli_check_keys(cli, "with", args->with_arg) || !rec_text_open(&text, &cli->err))
        return NULL;
    fprintf(text.out, "kernel\tk1\t%s\t%s\t%s\t%s", args->device_arg, args->op_arg,
            args->dtype_arg, args->shape_arg);
    if (args->pass_given)
        fprintf(text.out, "\tpass=%s", args->pass_arg);
    return cli_close_question(cli, &text, args->with_arg);
}

static bool
answer_options(struct cli *cli, const struct kernel_args *args,
               struct kernel_asked *asked, struct kernel_count *count)
{
    struct rec_reader *reader = NULL;
    struct rec rec;
    char *line;
    bool ok;

    if (!args->shape_given)
        return cli_usage(cli, "--device needs --shape");
    if (cli->nfiles > 0)
        return cli_usage(cli, "with --device no file is read, got '%s'", cli->files[0]);
    line = write_question(cli, args);
    ok = line && cli_open_question(cli, "with", line, &reader, &rec) &&
         kernel_answer_record(asked, reader, &rec, cli->writer, args->why_given, count,
                              &cli->err);
    rec_reader_close(reader);
    free(line);
    return ok;
}

static bool
answer_all(struct cli *cli, const struct kernel_args *args, struct kernel_asked *asked,
           struct kernel_count *count)
{
    struct rec rec;
    int status;
    if (!cli_open_filter(cli))
        return false;
    while ((status = cli_next(cli, &rec)) > 0)
        if (!kernel_answer_record(asked, cli->reader, &rec, cli->writer, args->why_given,
                                  count, &cli->err))
            return false;
    if (status == 0 && count->asked == 0)
        cli_warn(cli, "no kernel record came, so there was nothing to answer");
    return status == 0;
}

static bool
answer(struct cli *cli, const struct kernel_args *args, struct kernel_table *table)
{
    struct kernel_count count = {.asked = 0};
    struct kernel_asked *asked = kernel_asked_new(table, &cli->err);
    bool ok = asked && (args->device_given ? answer_options(cli, args, asked, &count)
                                           : answer_all(cli, args, asked, &count));
    kernel_asked_free(asked);
    if (ok && count.how[KERNEL_SHEET] > 0)
        cli_warn(cli,
                 "%llu of %llu times come from data sheets and another device "
                 "(how=sheet), since no such kernel of the device was measured",
                 (unsigned long long)count.how[KERNEL_SHEET],
                 (unsigned long long)count.asked);
    if (ok && count.how[KERNEL_TILES] > 0)
        cli_warn(cli,
                 "%llu of %llu times come from the form alone (how=tiles), since no "
                 "similar kernel was measured",
                 (unsigned long long)count.how[KERNEL_TILES],
                 (unsigned long long)count.asked);
    if (ok && count.refused > 0)
        ok = rec_fail(&cli->err, REC_NO,
                      "%llu of %llu questions have no answer (how=none): law= says why",
                      (unsigned long long)count.refused, (unsigned long long)count.asked);
    return ok;
}

static bool
check_options(struct cli *cli, const struct kernel_args *args)
{
    const char *alone = args->op_given      ? "op"
                        : args->shape_given ? "shape"
                        : args->dtype_given ? "dtype"
                        : args->pass_given  ? "pass"
                        : args->with_given  ? "with"
                                            : NULL;
    if (args->list_given && (args->device_given || args->why_given || cli->nfiles > 0))
        return cli_usage(cli, "--list answers no question: leave out %s",
                         args->device_given ? "--device"
                         : args->why_given  ? "--why"
                                            : cli->files[0]);
    return args->device_given || !alone || cli_usage(cli, "--%s needs --device", alone);
}

static bool
run(struct cli *cli, const struct kernel_args *args)
{
    struct device_table devices = {.ndevices = 0};
    struct kernel_table table = {.devices = &devices};
    bool ok = check_options(cli, args) &&
              device_table_read_with(&devices, args->devices_arg, &cli->err) &&
              read_tables(cli, args, &table);

    if (ok)
        ok = args->list_given ? cli_open_writer(cli, false) : answer(cli, args, &table);
    if (ok && args->list_given)
        list(cli, &table);
    kernel_table_free(&table);
    device_table_free(&devices);
    return ok;
}
