/* steptime [OPTION]... [FILE]... - predict how long a training step takes. */
#include "ggo/steptime.h"
#include "mix_keys.h"
#define CLI_PATHS \
    "gemm-table", "attention-table", "stacks", "devices", "cluster", "schedule", "args",
#define CLI_WORDS mix_words
#include "main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
answer_all(struct cli *cli, const struct mix_options *options, struct mix_tables *t,
           struct parallel_count *count)
{
    const struct parallel_tables tables = {
        &t->stacks, &t->devices, &t->collectives,
        &t->own,    t->kernels,  t->net ? net_servers(t->net) : 0};
    struct rec rec;
    int status;
    if (!cli_open_filter(cli))
        return false;
    while ((status = cli_next(cli, &rec)) > 0) {
        struct rec_reader *reader = NULL;
        char *line = NULL;
        bool changed = rec.type == REC_TRAINING && mix_options_any(options, t), ok = true;
        mix_warn_cluster(cli, options, &rec);
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
    if (status == 0 && count->unknown > 0)
        cli_warn(cli,
                 "of %llu of %llu questions the tables of measured kernels have nothing: "
                 "no kernel of the device and type, or none that is like theirs",
                 (unsigned long long)count->unknown, (unsigned long long)count->asked);
    if (status == 0 && count->idle > 0)
        mix_warn_idle(cli, count->idle, count->asked);
    return status == 0;
}

/* 15T: K, M, B and T are thousands. */
static bool
read_money(struct cli *cli, const struct steptime_args *args,
           struct parallel_count *count)
{
    static const char units[] = "KMBT";
    const char *text = args->tokens_given ? args->tokens_arg : "0";
    size_t n = strlen(text);
    const char *unit = n > 0 ? strchr(units, text[n - 1]) : NULL;
    char number[32];
    snprintf(number, sizeof number, "%.*s", (int)(unit ? n - 1 : n), text);
    if (!cli_amount(cli, "tokens", number, false, &count->tokens) ||
        (args->price_given &&
         !cli_amount(cli, "price", args->price_arg, false, &count->price)))
        return false;
    for (const char *u = units; unit && u <= unit; u++)
        count->tokens *= 1000;
    return !args->price_given || args->tokens_given ||
           cli_usage(cli, "--price needs --tokens");
}

static bool
read_jitter(struct cli *cli, const char *text, double *jitter)
{
    return cli_amount(cli, "jitter", text, false, jitter) &&
           (*jitter < 1 || cli_usage(cli, "--jitter must be below 1, got '%s'", text));
}

/* A list answers no question, so nothing of one may be given. */
static bool
check_list(struct cli *cli, const struct steptime_args *args,
           const struct mix_options *options, const struct mix_tables *t)
{
    const char *also = args->jitter_given            ? "--jitter"
                       : args->stages_given          ? "--stages"
                       : args->near_given            ? "--near"
                       : args->tokens_given          ? "--tokens"
                       : mix_options_any(options, t) ? "the options of a mix"
                       : options->kernels[0]         ? "--gemm-table"
                       : options->kernels[1]         ? "--attention-table"
                       : cli->nfiles > 0             ? cli->files[0]
                                                     : NULL;
    return !args->list_given || !also ||
           cli_usage(cli, "--list answers no question: leave out %s", also);
}

static bool
run(struct cli *cli, const struct steptime_args *args)
{
    const struct mix_options options = MIX_OPTIONS(args);
    struct mix_tables t = {.net = NULL};
    struct parallel_count count = {.stages = args->stages_given};
    uint64_t near = 0;
    bool ok =
        read_money(cli, args, &count) &&
        (!args->jitter_given || read_jitter(cli, args->jitter_arg, &count.jitter)) &&
        (!args->near_given || cli_count(cli, "near", args->near_arg, 1, 1000, &near)) &&
        mix_tables_read(cli, &options, args->alone_given, &t) &&
        check_list(cli, args, &options, &t);
    count.near = (uint32_t)near;
    if (ok && args->list_given)
        ok = cli_open_writer(cli, false) && list(cli, &t.stacks);
    else if (ok)
        ok = answer_all(cli, &options, &t, &count);
    if (ok && count.refused > 0)
        ok = rec_fail(&cli->err, REC_NO,
                      "%llu of %llu questions have no answer (how=none): law= says why",
                      (unsigned long long)count.refused, (unsigned long long)count.asked);
    mix_tables_free(&t);
    return ok;
}
