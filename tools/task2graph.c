/* task2graph [OPTION]... [FILE]... - tasks -> the graph of which must wait for which. */
#include "ggo/task2graph.h"
#define CLI_PATHS "template", "costs",
#include "main.h"

#include "task2graph_template.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct reading {
    struct cli *cli;
    enum task_form form;
    const char *name;
    double cost;
    bool job;
    struct task_list *list;
    struct task task;
    struct task_file file;
    struct task_template *template; /* NULL: tasks are read */
    unsigned fences;                /* of it */
    struct task_costs costs;        /* measured */
    uint64_t tasks, unmeasured;
};

static bool
read_options(struct reading *r, const struct task2graph_args *args)
{
    if (args->dot_given + args->makefile_given + args->check_given > 1)
        return cli_usage(r->cli, "give one of --dot, --makefile and --check");
    r->form = args->dot_given        ? TASK_DOT
              : args->makefile_given ? TASK_MAKEFILE
              : args->check_given    ? TASK_CHECK
                                     : TASK_GRAPH;
    if (r->form != TASK_GRAPH &&
        (args->no_job_given || args->costs_given || args->cost_given))
        return cli_usage(r->cli, "--%s cannot be used with --dot, --makefile or --check",
                         args->no_job_given  ? "no-job"
                         : args->costs_given ? "costs"
                                             : "cost");
    if (args->name_given && (args->makefile_given || args->check_given))
        return cli_usage(r->cli, "--name cannot be used with --makefile or --check");
    r->job = !args->no_job_given;
    r->name = args->name_arg;
    if (!*r->name || strpbrk(r->name, ",=\t\r\n") || !rec_is_text(rec_str(r->name)))
        return cli_usage(
            r->cli, "--name must be UTF-8, not empty, and have no comma, '=' or TAB");
    if (args->costs_given && args->template_given && strcmp(args->costs_arg, "-") == 0)
        return cli_usage(r->cli, "--costs with --template must be a file, not -");
    if (!args->template_given && (args->set_given || args->limit_given))
        return cli_usage(r->cli, "--%s needs --template",
                         args->set_given ? "set" : "limit");
    return cli_seconds(r->cli, "cost", args->cost_arg, false, &r->cost);
}

/* ---- measured costs ------------------------------------------------------ */

static bool
read_costs(struct reading *r, const char *path)
{
    struct cli *cli = r->cli;
    struct rec_reader_options options = {
        .partial = cli->partial, .log = true, .warn = cli_warn_text, .context = cli};
    struct rec_reader *reader;
    bool ok;
    if (strcmp(path, "-") == 0 && cli_is_standard(cli))
        return cli_usage(cli, "--costs - and the tasks cannot both be standard input");
    reader = rec_reader_open(&path, 1, &options, &cli->err);
    ok = reader && task_costs_read(&r->costs, reader, &cli->err);
    rec_reader_close(reader);
    return ok;
}

/* Sets the cost of a task to its measured time. False: it is not known. */
static bool
measure(struct reading *r, struct task *task)
{
    double seconds = task_costs_get(&r->costs, task);
    r->tasks++;
    if (!isnan(seconds))
        task->cost = seconds;
    else
        r->unmeasured++;
    return !isnan(seconds);
}

static void
say_unmeasured(const struct reading *r, const char *path)
{
    if (r->unmeasured > 0)
        cli_warn(
            r->cli,
            "%llu of %llu tasks have not succeeded in %s: their costs are not measured",
            (unsigned long long)r->unmeasured, (unsigned long long)r->tasks, path);
}

/* Writes the record unchanged, except for its cost. */
static void
put_with_cost(struct rec_writer *w, const struct rec *rec, double cost)
{
    bool there = false;
    rec_begin(w, "task");
    for (size_t i = 1; i < rec->nfields; i++) {
        bool is_cost =
            i > 5 && rec->field[i].len > 5 && memcmp(rec->field[i].ptr, "cost=", 5) == 0;
        if (is_cost)
            rec_num_key(w, "cost", cost);
        else
            rec_str_field(w, rec->field[i]);
        there = there || is_cost;
    }
    if (!there)
        rec_num_key(w, "cost", cost);
    rec_end(w);
}

/* ---- records ------------------------------------------------------------- */

static bool
take_fence(struct reading *r, struct rec_str id)
{
    char *name = strndup(id.ptr, id.len);
    bool ok = name ? task_list_fence(r->list, name, &r->cli->err) ||
                         rec_locate(r->cli->reader, &r->cli->err)
                   : rec_fail_memory(&r->cli->err);
    free(name);
    return ok;
}

static bool
take_record(struct reading *r, const struct rec *rec)
{
    struct cli *cli = r->cli;
    bool measured = false;
    if (rec->type == REC_TASK) {
        if (!task_read(&r->task, cli->reader, rec, &cli->err))
            return false;
        measured = measure(r, &r->task);
        if (!task_list_add(r->list, &r->task, &cli->err))
            return rec_locate(cli->reader, &cli->err);
    } else if (rec->type == REC_FENCE) {
        struct rec_str id;
        if (!rec_need(cli->reader, rec, &cli->err) ||
            !rec_get_id(cli->reader, rec, 1, &id, &cli->err) || !take_fence(r, id))
            return false;
    } else if (rec->type == REC_GRAPH)
        return rec_reader_fail(cli->reader, &cli->err, "the stream has a graph already");
    if (measured)
        put_with_cost(cli->writer, rec, r->task.cost);
    else if (r->form == TASK_GRAPH)
        rec_put_line(cli->writer, rec->line);
    return true;
}

static bool
read_records(struct reading *r)
{
    struct rec rec;
    int status;
    while ((status = cli_next(r->cli, &rec)) > 0)
        if (!take_record(r, &rec))
            return false;
    return status == 0;
}

/* ---- task files ---------------------------------------------------------- */

static bool
add_written(struct reading *r)
{
    struct rec_error *err = &r->cli->err, why;
    (void)measure(r, &r->file.task);
    if (r->form == TASK_GRAPH)
        task_write(r->cli->writer, &r->file.task);
    if (task_list_add(r->list, &r->file.task, err))
        return true;
    why = *err;
    return why.code == REC_DATA && rec_fail_at(err, rec_reader_file(r->cli->reader),
                                               r->file.line, "%s", why.text);
}

static bool
add_fence(struct reading *r)
{
    char id[24];
    snprintf(id, sizeof id, "fence-%u", ++r->fences);
    if (r->form == TASK_GRAPH) {
        rec_begin(r->cli->writer, "fence");
        rec_text_field(r->cli->writer, id);
        rec_end(r->cli->writer);
    }
    return task_list_fence(r->list, id, &r->cli->err) ||
           rec_locate(r->cli->reader, &r->cli->err);
}

static bool
read_lines(struct reading *r)
{
    struct cli *cli = r->cli;
    struct rec_str line;
    enum task_line kind;
    int status, whole;

    while ((status = rec_next_line(cli->reader, &line, &cli->err)) > 0) {
        if ((rec_reader_line(cli->reader) & 0xfff) == 1)
            cli_progress(cli, rec_reader_line(cli->reader), 0, "lines");
        do {
            whole = task_file_take(&r->file, cli->reader, line, &kind, &cli->err);
            if (whole < 0 || (whole > 0 && !add_written(r)))
                return false;
            if (kind == TASK_LINE_FENCE && !add_fence(r))
                return false;
        } while (kind == TASK_LINE_AGAIN);
    }
    if (status < 0)
        return false;
    whole = task_file_end(&r->file, cli->reader, &cli->err);
    return whole >= 0 && (whole == 0 || add_written(r));
}

/* Returns 1 if the input is records, 0 if it is a task file, -1 on an error: records
 * begin with a header, or with "task" or "fence" and a TAB. */
static int
has_records(struct cli *cli)
{
    struct rec_str line;
    int status = rec_peek_line(cli->reader, &line, &cli->err);
    struct rec_str word = line;
    if (status <= 0)
        return status < 0 ? -1 : 1; /* nothing: what reads records says so */
    (void)rec_str_split(&line, '\t', &word);
    return rec_str_is(word, "#rampipe") || rec_str_is(word, "task") ||
           rec_str_is(word, "fence");
}

/* ---- templates ----------------------------------------------------------- */

static bool
open_template(struct reading *r, const struct task2graph_args *args)
{
    const struct template_options options = {args->template_arg, args->limit_arg,
                                             args->set_arg, args->set_given};
    r->template = template_open(r->cli, &options);
    return r->template && cli_open_writer(r->cli, r->form == TASK_GRAPH);
}

static bool
write_out(struct reading *r)
{
    struct cli *cli = r->cli;
    int status;
    for (uint64_t i = 0;
         (status = task_template_next(r->template, &r->task, &cli->err)) > 0; i++) {
        cli_progress(cli, i, 0, "tasks");
        if (!rec_writer_ok(cli->writer, &cli->err))
            return false;
        (void)measure(r, &r->task);
        if (r->form == TASK_GRAPH)
            task_write(cli->writer, &r->task);
        if (!task_list_add(r->list, &r->task, &cli->err))
            return false;
    }
    return status == 0;
}

/* ---- the tool ------------------------------------------------------------ */

static bool
open_tasks(struct reading *r)
{
    return r->form == TASK_GRAPH
               ? cli_open_filter(r->cli)
               : cli_open_reader(r->cli) && cli_open_writer(r->cli, false);
}

static void
write_job(struct reading *r)
{
    struct rec_writer *w = r->cli->writer;
    rec_begin(w, "job");
    rec_text_field(w, r->name);
    rec_text_field(w, r->name);
    rec_uint_field(w, 0);
    rec_uint_field(w, 1);
    rec_text_field(w, "inf");
    rec_end(w);
}

static void
warn_of_late(struct cli *cli, const struct task_late *late)
{
    if (late->n == 1)
        cli_warn(
            cli,
            "'%s' does not exist, and is read before task '%s' writes it: '%s' stands "
            "too late in the list",
            late->name, late->writer, late->writer);
    if (late->n > 1)
        cli_warn(
            cli,
            "%llu names do not exist, and are read before a task writes them; the first "
            "is '%s': task '%s' stands too late in the list",
            (unsigned long long)late->n, late->name, late->writer);
}

static bool
run(struct cli *cli, const struct task2graph_args *args)
{
    struct reading r = {.cli = cli};
    int records = -1;
    bool ok =
        read_options(&r, args) &&
        (!args->costs_given || read_costs(&r, args->costs_arg)) &&
        (args->template_given ? open_template(&r, args)
                              : open_tasks(&r) && (records = has_records(cli)) >= 0);
    r.list = ok ? task_list_new(r.form, cli->writer, r.name, r.cost, &cli->err) : NULL;
    ok = ok && r.list &&
         (r.template ? write_out(&r)
          : records  ? read_records(&r)
                     : read_lines(&r));
    if (ok && task_list_count(r.list) == 0)
        ok = rec_fail(&cli->err, REC_DATA, "there are no tasks");
    ok = ok && task_list_end(r.list, &cli->err);
    if (ok && r.form == TASK_GRAPH && r.job)
        write_job(&r);
    if (ok)
        warn_of_late(cli, task_list_late(r.list));
    if (ok && task_list_dropped(r.list) > 0)
        cli_warn(cli,
                 "tasks whose timeout=, retries=, cores= or memory= is left out, since "
                 "make knows none of them: %llu",
                 (unsigned long long)task_list_dropped(r.list));
    if (ok && args->costs_given)
        say_unmeasured(&r, args->costs_arg);
    task_costs_free(&r.costs);
    task_template_free(r.template);
    task_list_free(r.list);
    task_file_free(&r.file);
    task_free(&r.task);
    return ok;
}
