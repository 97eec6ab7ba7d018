/* collective [OPTION]... [FILE]... - predict how long a collective takes alone. */
#include "ggo/collective.h"
#define CLI_PATHS "collective-table",
#include "main.h"

#include "rampipe/collective.h"

static bool
read_tables(struct cli *cli, const struct collective_args *args,
            struct collective_table *table)
{
    const char *path = args->collective_table_arg;
    struct rec_reader *reader;
    bool ok = collective_table_read_shipped(table, &cli->err);
    if (ok && args->alone_given) {
        if (!path)
            return cli_usage(cli, "--alone needs --collective-table");
        table->nseries = table->npieces = table->nchecks = 0;
    }
    if (!ok || !path)
        return ok;
    reader = rec_reader_open(&path, 1, NULL, &cli->err);
    ok = reader && collective_table_read(table, reader, &cli->err);
    rec_reader_close(reader);
    return ok;
}

static bool
list(struct cli *cli, const struct collective_table *table)
{
    rec_printf(cli->writer, "%-20s %-34s %5s %5s  %s\n", "system", "kind", "ranks",
               "nodes", "version, or exchange of tokens (--with)");
    for (size_t i = 0; i < table->nseries; i++) {
        const struct collective_series *s = &table->series[i];
        rec_printf(cli->writer, "%-20s %-34s %5llu %5llu  %s", s->system, s->what.kind,
                   (unsigned long long)s->ranks, (unsigned long long)s->nodes,
                   s->version);
        if (s->what.hidden)
            rec_printf(cli->writer, "hidden=%llu,topk=%llu,experts=%llu",
                       (unsigned long long)s->what.hidden,
                       (unsigned long long)s->what.topk,
                       (unsigned long long)s->what.experts);
        if (s->what.sms)
            rec_printf(cli->writer, ",sms=%llu", (unsigned long long)s->what.sms);
        if (s->what.dtype[0])
            rec_printf(cli->writer, ",dtype=%s", s->what.dtype);
        rec_printf(cli->writer, "\n");
    }
    rec_printf(cli->writer, "\n%-20s %6s %8s %8s %8s %8s\n", "predictions of", "rows",
               "mean", "p90", "worst", "trivial");
    for (size_t i = 0; i < table->nchecks; i++) {
        const struct collective_check *c = &table->check[i];
        rec_printf(cli->writer, "%-20s %6llu %7.1f%% %7.1f%% %7.1f%%", c->name,
                   (unsigned long long)c->rows, c->mean * 100, c->p90 * 100,
                   c->worst * 100);
        if (c->trivial > 0)
            rec_printf(cli->writer, " %7.1f%%", c->trivial * 100);
        rec_printf(cli->writer, "\n");
    }
    return true;
}

/* The question of the options as a record, which the caller owns. */
static char *
write_question(struct cli *cli, const struct collective_args *args)
{
    const char *nodes = args->nodes_given ? args->nodes_arg : "1";
    struct rec_text text;
    uint64_t count;
    double size;
    bool ok = args->tokens_given
                  ? cli_count(cli, "tokens", args->tokens_arg, 1, UINT32_MAX, &count)
                  : cli_bytes(cli, "bytes", args->bytes_arg, false, &size);
    if (!ok || !cli_check_keys(cli, "with", args->with_arg) ||
        !cli_count(cli, "ranks", args->ranks_arg, 2, UINT32_MAX, &count) ||
        !cli_count(cli, "nodes", nodes, 1, UINT32_MAX, &count) ||
        !rec_text_open(&text, &cli->err))
        return NULL;
    fprintf(text.out, "collective\tc1\t%s\t%s\t%s\t%s\t", args->system_arg,
            args->kind_arg, args->ranks_arg, nodes);
    if (args->tokens_given)
        fprintf(text.out, "%s", args->tokens_arg);
    else {
        char number[REC_NUM_MAX];
        rec_format_num(number, size);
        fprintf(text.out, "%s", number);
    }
    if (args->gpu_given)
        fprintf(text.out, "\tgpu=%s", args->gpu_arg);
    return cli_close_question(cli, &text, args->with_arg);
}

/* Sizes of exchanges of tokens are tokens, those of others bytes. A kind that no series
 * has is refused later. */
static bool
check_size(struct cli *cli, const struct collective_args *args,
           const struct collective_table *table)
{
    const char *kind = args->kind_arg;
    bool bytes = collective_bus_factor(kind, 2) > 0, known = bytes;
    for (size_t i = 0; i < table->nseries && !known; i++)
        known = strcmp(table->series[i].what.kind, kind) == 0;
    return !known || bytes == (args->bytes_given > 0) ||
           cli_usage(cli, "--%s: the size of %s is in %s", bytes ? "tokens" : "bytes",
                     kind, bytes ? "bytes (--bytes)" : "tokens of a rank (--tokens)");
}

/* Answers the question of the options. */
static bool
answer_options(struct cli *cli, const struct collective_args *args,
               const struct collective_table *table, struct collective_count *count)
{
    struct rec_reader *reader = NULL;
    struct rec rec;
    char *line;
    bool ok;

    if (!args->kind_given || !args->ranks_given ||
        args->bytes_given == args->tokens_given)
        return cli_usage(cli, "--system needs --kind, --ranks, and --bytes or --tokens");
    if (cli->nfiles > 0)
        return cli_usage(cli, "with --system no file is read, got '%s'", cli->files[0]);
    if (!check_size(cli, args, table))
        return false;
    line = write_question(cli, args);
    ok = line && cli_open_question(cli, "with", line, &reader, &rec) &&
         collective_answer_record(table, reader, &rec, cli->writer, count, &cli->err);
    rec_reader_close(reader);
    free(line);
    return ok;
}

static bool
answer_all(struct cli *cli, const struct collective_table *table,
           struct collective_count *count)
{
    struct rec rec;
    int status;
    if (!cli_open_filter(cli))
        return false;
    while ((status = cli_next(cli, &rec)) > 0)
        if (!collective_answer_record(table, cli->reader, &rec, cli->writer, count,
                                      &cli->err))
            return false;
    if (status == 0 && count->asked == 0)
        cli_warn(cli, "no collective record came, so there was nothing to answer");
    return status == 0;
}

static bool
check_options(struct cli *cli, const struct collective_args *args)
{
    const char *alone = args->gpu_given      ? "gpu"
                        : args->kind_given   ? "kind"
                        : args->ranks_given  ? "ranks"
                        : args->nodes_given  ? "nodes"
                        : args->bytes_given  ? "bytes"
                        : args->tokens_given ? "tokens"
                        : args->with_given   ? "with"
                                             : NULL;
    if (args->list_given && (args->system_given || cli->nfiles > 0))
        return cli_usage(cli, "--list answers no question: leave out %s",
                         args->system_given ? "--system" : cli->files[0]);
    return args->system_given || !alone || cli_usage(cli, "--%s needs --system", alone);
}

static bool
run(struct cli *cli, const struct collective_args *args)
{
    struct collective_table table = {.nseries = 0};
    struct collective_count count = {.asked = 0};
    bool ok = check_options(cli, args) && read_tables(cli, args, &table);

    if (ok && args->list_given)
        ok = cli_open_writer(cli, false) && list(cli, &table);
    else if (ok)
        ok = args->system_given ? answer_options(cli, args, &table, &count)
                                : answer_all(cli, &table, &count);
    if (ok && count.unchecked > 0)
        cli_warn(cli,
                 "no error= in %llu of %llu answers: their law was never checked for "
                 "such a question",
                 (unsigned long long)count.unchecked,
                 (unsigned long long)(count.asked - count.refused));
    if (ok && count.refused > 0)
        ok = rec_fail(&cli->err, REC_NO,
                      "%llu of %llu questions have no answer (how=none): law= says why",
                      (unsigned long long)count.refused, (unsigned long long)count.asked);
    collective_table_free(&table);
    return ok;
}
