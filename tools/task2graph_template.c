/* Tasks from a template: its options. */
#include "task2graph_template.h"

#include <stdio.h>

static struct task_template *
read_file(struct cli *cli, const char *path)
{
    struct rec_reader_options options = {.partial = false};
    struct rec_reader *reader = rec_reader_open(&path, 1, &options, &cli->err);
    struct task_template *template =
        reader ? task_template_read(reader, &cli->err) : NULL;
    rec_reader_close(reader);
    return template;
}

/* --set NAME=VALUE,... */
static bool
set_values(struct cli *cli, struct task_template *template, const char *text)
{
    struct rec_str values = rec_str(text), name;
    struct rec_error err;
    if (!strchr(text, '='))
        return cli_usage(cli, "--set must be NAME=VALUE,..., got '%s'", text);
    (void)rec_str_split(&values, '=', &name);
    if (task_template_set(template, name, values, &cli->err))
        return true;
    err = cli->err;
    return err.code == REC_USAGE && cli_usage(cli, "--set: %s", err.text);
}

/* Rows of CSV, if they are asked for, or there is a value that only they can give. */
static bool
read_rows(struct cli *cli, struct task_template *template, const char *path)
{
    struct rec_error lacking;
    double tasks;
    bool lacks = !task_template_count(template, &tasks, &lacking), ok;

    if (!lacks && cli->nfiles == 0)
        return !cli->partial ||
               cli_usage(
                   cli, "--partial is for a list of tasks or CSV, and only a template is "
                        "read: leave it out");
    if (strcmp(path, "-") == 0 && cli_is_standard(cli))
        return lacks && cli->nfiles == 0
                   ? cli_usage(cli, "%s by --set, or in a FILE of CSV", lacking.text)
                   : cli_usage(cli,
                               "--template - and the CSV cannot both be standard input");
    if (!cli_open_reader(cli))
        return false;
    ok = task_template_rows(template, cli->reader, &cli->err);
    if (!ok && lacks && cli->nfiles == 0 && rec_reader_bytes(cli->reader) == 0) {
        enum rec_code code = cli->err.code;
        rec_fail(&cli->err, code, "%s by --set, or by CSV (standard input is empty)",
                 lacking.text);
    }
    return ok;
}

struct task_template *
template_open(struct cli *cli, const struct template_options *options)
{
    struct task_template *template;
    struct rec_limit limit;
    double tasks;
    bool ok;

    if (!cli_limit(cli, options->limit, &limit))
        return NULL;
    template = read_file(cli, options->path);
    ok = template != NULL;
    for (unsigned i = 0; ok && i < options->nset; i++)
        ok = set_values(cli, template, options->set[i]);
    ok = ok && read_rows(cli, template, options->path) &&
         task_template_count(template, &tasks, &cli->err) &&
         rec_limit(&limit, tasks, "tasks", &cli->err);
    if (ok)
        return template;
    task_template_free(template);
    return NULL;
}
