/*
 * Submitting tasks as jobs of Slurm. FOLDER/N.task holds the record of task N, and the
 * job runs this program on it: so timeouts, retries and streams are as in a local run.
 * Slurm gets the resources of the task and the jobs that it waits for.
 */
#include "jobs.h"

#include <stdio.h>
#include <stdlib.h>

/* Jobs to submit before events are looked at again: sbatch takes some milliseconds. */
enum { SUBMITS_PER_STEP = 16 };

/* ---- a task's file --------------------------------------------------------------- */

/* Escapes a path as a value of a record. */
static void
put_path(FILE *out, const char *path)
{
    for (; *path; path++)
        fprintf(out, strchr(",%\t", *path) ? "%%%02X" : "%c", (unsigned char)*path);
}

/* Writes READS without names @ID.result: the runner in the job knows no other task, and
 * would refuse the result of one. */
static void
put_reads(FILE *out, struct rec_str reads)
{
    struct rec_str name;
    bool any = false;
    while (rec_str_split(&reads, ',', &name)) {
        static const char result[] = ".result";
        size_t n = sizeof result - 1;
        if (name.len > n && *name.ptr == '@' &&
            memcmp(name.ptr + name.len - n, result, n) == 0)
            continue;
        fprintf(out, "%c%.*s", any ? ',' : '\t', (int)name.len, name.ptr);
        any = true;
    }
    if (!any)
        fputs("\t-", out);
}

/* The record of a task as the runner in the job gets it: as it came, except that its
 * streams are files. stdin=@ID.stdout becomes the path of that output, and an output that
 * the task does not name goes to FOLDER/N.out, so that it can be shown here if the task
 * fails. Owned by the caller; NULL: an error. */
static char *
make_record(struct run *run, uint32_t task, struct rec_error *err)
{
    const struct run_task *t = &run->graph.task[task];
    const bool logs = run->options->logs;
    struct rec_str rest = {t->line, strlen(t->line) - 1}, field;
    struct rec_text text;
    char *input, path[PATH];
    if (!run_find_input(run, t, &input))
        return NULL;
    if (!rec_text_open(&text, err)) {
        free(input);
        return NULL;
    }
    fputs("task", text.out);
    for (size_t i = 0; rec_str_split(&rest, '\t', &field); i++)
        if (i == 3)
            put_reads(text.out, field);
        else if (i > 0 &&
                 !(field.len > 6 && memcmp(field.ptr, "stdin=", 6) == 0 && i > 5))
            fprintf(text.out, "\t%.*s", (int)field.len, field.ptr);
    if (input) {
        fputs("\tstdin=", text.out);
        put_path(text.out, input);
    }
    run_jobs_name_file(run->jobs, path, task, "out");
    if (!t->standard_output && !logs && !t->call)
        fprintf(text.out, "\tstdout=%s", path);
    if (!t->standard_error && !logs && !t->call)
        fprintf(text.out, "\tstderr=%s", path);
    fputc('\n', text.out);
    free(input);
    return rec_text_close(&text, err);
}

/* ---- submitting ------------------------------------------------------------------ */

/* Adds --dependency= with the jobs of all tasks that this one waits for and that have not
 * ended. jobs->edge remembers how far the edges have been used: they are in the order of
 * the tasks, as submission is. */
static bool
add_dependencies(struct run *run, uint32_t task)
{
    struct run_jobs *jobs = run->jobs;
    const struct run_graph *graph = &run->graph;
    struct rec_text text;
    char *list, separator = '=';
    bool ok;
    if (!rec_text_open(&text, run->err))
        return false;
    for (; jobs->edge < graph->nedges && graph->edge[jobs->edge].dst <= task;
         jobs->edge++) {
        const struct run_edge *e = &graph->edge[jobs->edge];
        if (e->dst < task || !jobs->job[e->src].lives)
            continue;
        fprintf(text.out, "%c%s:%s", separator,
                e->hazard == TASK_RAW ? "afterok" : "afterany", jobs->job[e->src].id);
        separator = ',';
    }
    if (!(list = rec_text_close(&text, run->err)))
        return false;
    ok = !*list || run_words_add(&jobs->words, run->err, "--dependency%s", list);
    free(list);
    return ok;
}

/* The longest time that all attempts of a task and the pauses between them can take,
 * minutes; 0: no limit, or one of more than a year. A minute is added for the runner. */
static double
longest(const struct run *run, const struct run_task *t)
{
    const struct run_options *o = run->options;
    double retries = (double)(t->retries == TASK_NOT_GIVEN ? o->retries : t->retries),
           seconds =
               (t->timeout + o->grace) * (retries + 1) + o->backoff * (exp2(retries) - 1);
    return seconds < 365 * 86400. ? ceil(seconds / 60) + 1 : 0;
}

static bool
add_resources(struct run *run, uint32_t task)
{
    const struct run_task *t = &run->graph.task[task];
    struct run_words *words = &run->jobs->words;
    double minutes = longest(run, t);
    return run_words_add(words, run->err, "--job-name=%.64s", t->id) &&
           run_words_add(words, run->err, "--output=%s/%u.err", run->jobs->folder,
                         task) &&
           run_words_add(words, run->err, "--cpus-per-task=%u", t->cores) &&
           (t->memory <= 0 ||
            run_words_add(words, run->err, "--mem=%.0fK", ceil(t->memory / 1024))) &&
           (minutes <= 0 || run_words_add(words, run->err, "--time=%.0f", minutes)) &&
           add_dependencies(run, task) &&
           /* A task that it needs has failed: its job never starts, but later jobs wait
            * for it in place of the jobs that it waits for (jobs.c). */
           (t->cause == REC_NONE || run_words_add(words, run->err, "--hold"));
}

/* Adds the command of the job: the runner, with the options of this run. */
static bool
add_runner(struct run *run, uint32_t task)
{
    const struct run_options *o = run->options;
    struct run_words *words = &run->jobs->words;
    const char *folder = run->jobs->folder;
    char backoff[REC_NUM_MAX], grace[REC_NUM_MAX];
    backoff[rec_format_num(backoff, o->backoff)] = '\0';
    grace[rec_format_num(grace, o->grace)] = '\0';
    return run_words_add(words, run->err, "%s/run", folder) &&
           run_words_add(words, run->err, "%s", o->runner) &&
           run_words_add(words, run->err, "--quiet") &&
           run_words_add(words, run->err, "--jobs=%u", run->graph.task[task].cores) &&
           run_words_add(words, run->err, "--memory=inf") &&
           run_words_add(words, run->err, "--retries=%llu",
                         (unsigned long long)o->retries) &&
           run_words_add(words, run->err, "--backoff=%s", backoff) &&
           run_words_add(words, run->err, "--grace=%s", grace) &&
           (!o->logs || run_words_add(words, run->err, "--logs=%s", o->logs)) &&
           (!o->unchecked || run_words_add(words, run->err, "--no-check-outputs")) &&
           (!o->durable || run_words_add(words, run->err, "--durable")) &&
           run_words_add(words, run->err, "--output=%s/%u.rec", folder, task) &&
           run_words_add(words, run->err, "%s/%u.task", folder, task);
}

static bool
make_command(struct run *run, uint32_t task)
{
    struct run_words *words = &run->jobs->words;
    run_words_cut(words, 0);
    return run_words_split(words,
                           "sbatch --parsable --nodes=1 --ntasks=1 --no-requeue "
                           "--kill-on-invalid-dep=no",
                           run->err) &&
           add_resources(run, task) &&
           run_words_split(words, run->options->slurm, run->err) && add_runner(run, task);
}

/* Keeps the number of a job: sbatch --parsable prints ID or ID;CLUSTER on a line of its
 * own, maybe behind lines of the site's plugins. */
static bool
keep_id(struct run_jobs *jobs, uint32_t task, char *said, struct rec_error *err)
{
    struct rec_str rest = rec_str(said), line = {0};
    const char *id;
    while (rest.len > 0 && rec_str_split(&rest, '\n', &line) &&
           strspn(line.ptr, "0123456789") == 0)
        ;
    line.len = strspn(line.ptr ? line.ptr : "", "0123456789");
    if (line.len == 0)
        return rec_fail(err, REC_IO,
                        "sbatch: must print the number of the job, got '%.*s'",
                        (int)strcspn(said, "\n"), said);
    if (!(id = rec_arena_copy(&jobs->arena, line, err)) ||
        !rec_map_add(&jobs->ids, rec_str(id), task, err))
        return false;
    jobs->job[task] = (struct run_job){.id = id, .lives = true};
    return true;
}

static bool
submit(struct run *run, uint32_t task)
{
    struct run_jobs *jobs = run->jobs;
    char path[PATH], *text = make_record(run, task, run->err);
    bool ok = text;
    run_jobs_name_file(jobs, path, task, "task");
    ok = ok && run_jobs_write_file(path, text, run->err) && make_command(run, task);
    free(text);
    if (!ok || !(text = run_slurm_ask(&jobs->words, &run->pool->launch.mask, run->err)))
        return false;
    ok = keep_id(jobs, task, text, run->err);
    free(text);
    if (!ok)
        return false;
    run->tally->running++;
    return run_log_begin(run, task);
}

bool
run_jobs_submit(struct run *run)
{
    struct run_jobs *jobs = run->jobs;
    run->graph.nready = 0; /* Slurm decides what is ready: the heap is not used */
    if (!rec_grow(&jobs->job, &jobs->room, run->graph.n, sizeof *jobs->job, run->err))
        return false;
    for (int i = 0; i < SUBMITS_PER_STEP && jobs->n < run->graph.n && !run->stopped;
         i++) {
        uint32_t task = (uint32_t)jobs->n++;
        jobs->job[task] = (struct run_job){.lives = false};
        if (run->graph.task[task].state == RUN_WAITS && !submit(run, task))
            return false;
    }
    return true;
}
