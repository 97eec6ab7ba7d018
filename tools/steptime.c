/* steptime [OPTION]... [FILE]... - predict how long a training step takes. */
#include "ggo/steptime.h"
#define CLI_PATHS "stacks", "devices",
#include "main.h"

#include "rampipe/parallel_step.h"

struct tables {
    struct parallel_stacks stacks;
    struct device_table devices;
    struct collective_table collectives;
};

static bool
read_tables(struct cli *cli, const struct steptime_args *args, struct tables *t)
{
    struct rec_reader *reader;
    bool ok = device_table_read_shipped(&t->devices, &cli->err) &&
              collective_table_read_shipped(&t->collectives, &cli->err);
    if (ok && args->alone_given && !args->stacks_given)
        return cli_usage(cli, "--alone needs --stacks");
    if (ok && !args->alone_given)
        ok = parallel_stacks_read_shipped(&t->stacks, &cli->err);
    if (ok && args->stacks_given) {
        const char *path = args->stacks_arg;
        reader = rec_reader_open(&path, 1, NULL, &cli->err);
        ok = reader && parallel_stacks_read(&t->stacks, reader, &cli->err);
        rec_reader_close(reader);
    }
    if (ok && args->devices_given) {
        const char *path = args->devices_arg;
        reader = rec_reader_open(&path, 1, NULL, &cli->err);
        ok = reader && device_table_read(&t->devices, reader, &cli->err);
        rec_reader_close(reader);
    }
    return ok;
}

static void
print_percent(struct cli *cli, double share)
{
    if (share < 0)
        rec_printf(cli->writer, " %7s", "-");
    else
        rec_printf(cli->writer, " %6.1f%%", 100 * share);
}

static bool
list(struct cli *cli, const struct parallel_stacks *stacks)
{
    rec_printf(cli->writer, "%-22s %-28s %-10s %5s %7s %7s\n", "stack", "device",
               "precision", "rows", "fitted", "others");
    for (size_t i = 0; i < stacks->n; i++) {
        const struct parallel_stack *s = &stacks->stack[i];
        rec_printf(cli->writer, "%-22s %-28s %-10s %5llu", s->name, s->device,
                   s->precision, (unsigned long long)s->rows);
        print_percent(cli, s->rows > 0 ? s->fit : -1);
        print_percent(cli, s->error);
        rec_printf(cli->writer, "\n");
    }
    return true;
}

static bool
answer_all(struct cli *cli, const struct tables *t, struct parallel_count *count)
{
    const struct parallel_tables tables = {&t->stacks, &t->devices, &t->collectives};
    struct rec rec;
    int status;
    if (!cli_open_filter(cli))
        return false;
    while ((status = cli_next(cli, &rec)) > 0)
        if (!parallel_answer_record(&tables, cli->reader, &rec, cli->writer, count,
                                    &cli->err))
            return false;
    if (status == 0 && count->asked == 0)
        cli_warn(cli, "no training record came, so there was nothing to answer");
    return status == 0;
}

static bool
run(struct cli *cli, const struct steptime_args *args)
{
    struct tables t = {.stacks = {.n = 0}};
    struct parallel_count count = {0, 0};
    bool ok = read_tables(cli, args, &t);
    if (ok && args->list_given)
        ok = cli_open_writer(cli, false) && list(cli, &t.stacks);
    else if (ok)
        ok = answer_all(cli, &t, &count);
    if (ok && count.refused > 0)
        ok = rec_fail(&cli->err, REC_NO,
                      "%llu of %llu questions have no answer (how=none): law= says why",
                      (unsigned long long)count.refused, (unsigned long long)count.asked);
    parallel_stacks_free(&t.stacks);
    device_table_free(&t.devices);
    collective_table_free(&t.collectives);
    return ok;
}
