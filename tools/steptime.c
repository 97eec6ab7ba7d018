/* steptime [OPTION]... [FILE]... - predict how long a training step takes. */
#include "ggo/steptime.h"
#define CLI_PATHS "stacks", "devices", "cluster",
#include "main.h"
#include "mix_keys.h"

#include <stdlib.h>

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
    rec_printf(cli->writer, "%-26s %-24s %-9s %5s %7s %7s %7s\n", "stack", "device",
               "precision", "rows", "fitted", "unseen", "like");
    for (size_t i = 0; i < stacks->n; i++) {
        const struct parallel_stack *s = &stacks->stack[i];
        rec_printf(cli->writer, "%-26s %-24s %-9s %5llu", s->name, s->device,
                   s->precision, (unsigned long long)s->rows);
        print_percent(cli, s->rows > 0 ? s->fit : -1);
        print_percent(cli, s->error);
        print_percent(cli, s->like);
        rec_printf(cli->writer, "\n");
    }
    return true;
}

static bool
answer_all(struct cli *cli, const struct mix_options *options, const struct mix_tables *t,
           double jitter, struct parallel_count *count)
{
    const struct parallel_tables tables = {&t->stacks, &t->devices, &t->collectives,
                                           jitter};
    struct rec rec;
    int status;
    if (!cli_open_filter(cli))
        return false;
    while ((status = cli_next(cli, &rec)) > 0) {
        struct rec_reader *reader = NULL;
        char *line = NULL;
        bool changed = rec.type == REC_TRAINING && mix_options_any(options), ok = true;
        if (changed)
            ok = (reader = mix_keys_apply(cli, options, t, &rec, &line)) != NULL;
        ok = ok && parallel_answer_record(&tables, reader ? reader : cli->reader, &rec,
                                          cli->writer, count, &cli->err);
        rec_reader_close(reader);
        free(line);
        if (!ok)
            return false;
    }
    if (status == 0 && count->asked == 0)
        cli_warn(cli, "no training record came, so there was nothing to answer");
    return status == 0;
}

static bool
read_jitter(struct cli *cli, const char *text, double *jitter)
{
    return cli_amount(cli, "jitter", text, false, jitter) &&
           (*jitter < 1 || cli_usage(cli, "--jitter must be below 1, got '%s'", text));
}

static bool
run(struct cli *cli, const struct steptime_args *args)
{
    const struct mix_options options = MIX_OPTIONS(args);
    struct mix_tables t = {.net = NULL};
    struct parallel_count count = {0, 0};
    double jitter = 0;
    bool ok = (!args->jitter_given || read_jitter(cli, args->jitter_arg, &jitter)) &&
              mix_tables_read(cli, &options, args->alone_given, &t);
    if (ok && args->list_given)
        ok = cli_open_writer(cli, false) && list(cli, &t.stacks);
    else if (ok)
        ok = answer_all(cli, &options, &t, jitter, &count);
    if (ok && count.refused > 0)
        ok = rec_fail(&cli->err, REC_NO,
                      "%llu of %llu questions have no answer (how=none): law= says why",
                      (unsigned long long)count.refused, (unsigned long long)count.asked);
    mix_tables_free(&t);
    return ok;
}
