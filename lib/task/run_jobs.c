/*
 * Tasks as jobs of Slurm, which knows the graph and starts them.
 *
 *     a task --- FOLDER/N.task --- sbatch --- RUNNER in the job --- FOLDER/N.rec
 *                                  afterok: it reads what another wrote; afterany: order only
 *
 * A task is submitted as soon as it is known, so that it stands in the queue while what is
 * before it runs. When what it reads has not come to be, its job stays in the queue until all
 * that is before it has ended, and is cancelled then, not before (--kill-on-invalid-dep=no):
 * to what comes after it, its end says that they have ended, too.
 */
#include "run.h"
#include "slurm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    AT_ONCE = 16,  /* jobs that are submitted before others are looked at */
    A_CALL = 1000, /* jobs in one command */
    PATH = 64
};

/* Slurm is asked how jobs are after so long, then after twice that, ...; seconds. */
static const double FIRST_PAUSE = 0.2, LONGEST_PAUSE = 5;

struct job {
    const char *id; /* Slurm's number; NULL: not submitted */
    bool lives;
    uint8_t gone; /* so often it was not there when Slurm was asked */
};

struct run_jobs {
    char folder[24];
    struct slurm_words words;
    struct rec_map ids; /* of jobs -> tasks */
    struct rec_arena arena;
    struct job *job; /* of each task */
    size_t n, room;  /* n: so many tasks have been seen to */
    size_t edge;     /* the first that leads to those that have not */
    uint32_t *ended; /* tasks whose results are there */
    size_t nended, ended_room;
    double asked, pause;
    enum which { NONE, PENDING, ALL } cancelled;
    bool left, away; /* left: not waited for; away: Slurm did not answer */
};

/* ---- the folder ---------------------------------------------------------------- */

static void
name_file(const struct run_jobs *jobs, char path[PATH], uint32_t task, const char *kind)
{
    snprintf(path, PATH, "%s/%u.%s", jobs->folder, task, kind);
}

/* A file of the folder, whole or not there. */
static bool
write_file(const char *path, const char *text, struct rec_error *err)
{
    FILE *file = fopen(path, "we");
    bool ok = file && fputs(text, file) >= 0;
    ok = (!file || fclose(file) == 0) && ok;
    return ok || rec_fail(err, REC_IO, "%s: %s", path, strerror(errno));
}

bool
run_jobs_open(struct run *run)
{
    struct run_jobs *jobs = run->jobs = calloc(1, sizeof *jobs);
    char path[PATH];
    if (!jobs)
        return rec_fail_memory(run->err);
    jobs->pause = FIRST_PAUSE;
    strcpy(jobs->folder, ".runtasks-XXXXXX");
    if (!mkdtemp(jobs->folder)) {
        rec_fail(run->err, REC_IO, "%s: cannot make the folder: %s", jobs->folder,
                 strerror(errno));
        *jobs->folder = '\0';
        return false;
    }
    snprintf(path, sizeof path, "%s/run", jobs->folder);
    return write_file(path, "#!/bin/sh\nexec \"$@\"\n", run->err);
}

static void
remove_folder(const struct run_jobs *jobs)
{
    DIR *folder = opendir(jobs->folder);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(jobs->folder);
}

void
run_jobs_close(struct run *run)
{
    struct run_jobs *jobs = run->jobs;
    if (!jobs)
        return;
    if (*jobs->folder && !jobs->left)
        remove_folder(jobs);
    slurm_free(&jobs->words);
    rec_map_free(&jobs->ids);
    rec_arena_free(&jobs->arena);
    free(jobs->job);
    free(jobs->ended);
    free(jobs);
}

/* ---- a task's file --------------------------------------------------------------- */

static void
put_path(FILE *out, const char *path)
{
    for (; *path; path++)
        fprintf(out, strchr(",%\t", *path) ? "%%%02X" : "%c", (unsigned char)*path);
}

/* The record as it came, but what others print is a file, and so is what nobody asked for. */
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
        if (i > 0 && !(field.len > 6 && memcmp(field.ptr, "stdin=", 6) == 0 && i > 5))
            fprintf(text.out, "\t%.*s", (int)field.len, field.ptr);
    if (input) {
        fputs("\tstdin=", text.out);
        put_path(text.out, input);
    }
    name_file(run->jobs, path, task, "out");
    if (!t->standard_output && !logs)
        fprintf(text.out, "\tstdout=%s", path);
    if (!t->standard_error && !logs)
        fprintf(text.out, "\tstderr=%s", path);
    fputc('\n', text.out);
    free(input);
    return rec_text_close(&text, err);
}

/* ---- submitting ------------------------------------------------------------------ */

/* --dependency= of all that has not ended. */
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
    ok = !*list || slurm_add(&jobs->words, run->err, "--dependency%s", list);
    free(list);
    return ok;
}

/* Longest time of all attempts and what is between them, minutes; 0: any. */
static double
longest(const struct run *run, const struct run_task *t)
{
    const struct task_run_options *o = run->options;
    double retries = (double)(t->retries ? t->retries : o->retries),
           seconds =
               (t->timeout + o->grace) * (retries + 1) + o->backoff * (exp2(retries) - 1);
    return seconds < 365 * 86400. ? ceil(seconds / 60) + 1 : 0;
}

static bool
add_resources(struct run *run, uint32_t task)
{
    const struct run_task *t = &run->graph.task[task];
    struct slurm_words *words = &run->jobs->words;
    double minutes = longest(run, t);
    return slurm_add(words, run->err, "--job-name=%.64s", t->id) &&
           slurm_add(words, run->err, "--output=%s/%u.err", run->jobs->folder, task) &&
           slurm_add(words, run->err, "--cpus-per-task=%u", t->cores) &&
           (t->memory <= 0 ||
            slurm_add(words, run->err, "--mem=%.0fK", ceil(t->memory / 1024))) &&
           (minutes <= 0 || slurm_add(words, run->err, "--time=%.0f", minutes)) &&
           add_dependencies(run, task) &&
           /* what it reads will not come to be: it only stands for what is before it */
           (t->cause == REC_NONE || slurm_add(words, run->err, "--hold"));
}

/* The runner, and how it is to run this task. */
static bool
add_runner(struct run *run, uint32_t task)
{
    const struct task_run_options *o = run->options;
    struct slurm_words *words = &run->jobs->words;
    const char *folder = run->jobs->folder;
    char backoff[REC_NUM_MAX], grace[REC_NUM_MAX];
    backoff[rec_format_num(backoff, o->backoff)] = '\0';
    grace[rec_format_num(grace, o->grace)] = '\0';
    return slurm_add(words, run->err, "%s/run", folder) &&
           slurm_add(words, run->err, "%s", o->runner) &&
           slurm_add(words, run->err, "--quiet") &&
           slurm_add(words, run->err, "--jobs=%u", run->graph.task[task].cores) &&
           slurm_add(words, run->err, "--memory=inf") &&
           slurm_add(words, run->err, "--retries=%llu", (unsigned long long)o->retries) &&
           slurm_add(words, run->err, "--backoff=%s", backoff) &&
           slurm_add(words, run->err, "--grace=%s", grace) &&
           (!o->logs || slurm_add(words, run->err, "--logs=%s", o->logs)) &&
           (!o->unchecked || slurm_add(words, run->err, "--no-check-outputs")) &&
           (!o->durable || slurm_add(words, run->err, "--durable")) &&
           slurm_add(words, run->err, "--output=%s/%u.rec", folder, task) &&
           slurm_add(words, run->err, "%s/%u.task", folder, task);
}

static bool
make_command(struct run *run, uint32_t task)
{
    struct slurm_words *words = &run->jobs->words;
    slurm_cut(words, 0);
    return slurm_split(words,
                       "sbatch --parsable --nodes=1 --ntasks=1 --no-requeue "
                       "--kill-on-invalid-dep=no",
                       run->err) &&
           add_resources(run, task) &&
           slurm_split(words, run->options->slurm, run->err) && add_runner(run, task);
}

/* sbatch says ID or ID;CLUSTER in its last line. */
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
        return rec_fail(err, REC_IO, "sbatch: no number of a job, but '%.*s'",
                        (int)strcspn(said, "\n"), said);
    if (!(id = rec_arena_copy(&jobs->arena, line, err)) ||
        !rec_map_add(&jobs->ids, rec_str(id), task, err))
        return false;
    jobs->job[task] = (struct job){.id = id, .lives = true};
    return true;
}

static bool
submit(struct run *run, uint32_t task)
{
    struct run_jobs *jobs = run->jobs;
    char path[PATH], *text = make_record(run, task, run->err);
    bool ok = text;
    name_file(jobs, path, task, "task");
    ok = ok && write_file(path, text, run->err) && make_command(run, task);
    free(text);
    if (!ok || !(text = slurm_ask(&jobs->words, &run->launch.mask, run->err)))
        return false;
    ok = keep_id(jobs, task, text, run->err);
    free(text);
    if (!ok)
        return false;
    run->tally->running++;
    return run_log_begin(run, task);
}

static bool
submit_some(struct run *run)
{
    struct run_jobs *jobs = run->jobs;
    run->graph.nready = 0; /* that is Slurm's */
    if (!rec_grow(&jobs->job, &jobs->room, run->graph.n, sizeof *jobs->job, run->err))
        return false;
    for (int i = 0; i < AT_ONCE && jobs->n < run->graph.n && !run->stopped; i++) {
        uint32_t task = (uint32_t)jobs->n++;
        jobs->job[task] = (struct job){.lives = false};
        if (run->graph.task[task].state == RUN_WAITS && !submit(run, task))
            return false;
    }
    return true;
}

bool
run_jobs_all_submitted(const struct run *run)
{
    return run->jobs->n == run->graph.n;
}

/* ---- cancelling ------------------------------------------------------------------ */

/* Of those jobs that live. `state`: only those in it. */
static bool
cancel(struct run *run, const uint32_t *tasks, size_t n, const char *state)
{
    struct run_jobs *jobs = run->jobs;
    for (size_t i = 0; i < n;) {
        size_t before;
        char *said;
        slurm_cut(&jobs->words, 0);
        if (!slurm_split(&jobs->words, "scancel --quiet", run->err) ||
            (state && !slurm_add(&jobs->words, run->err, "--state=%s", state)))
            return false;
        before = jobs->words.n;
        for (; i < n && jobs->words.n < before + A_CALL; i++) {
            size_t task = tasks ? tasks[i] : i;
            if (task < jobs->n && jobs->job[task].lives &&
                !slurm_add(&jobs->words, run->err, "%s", jobs->job[task].id))
                return false;
        }
        if (jobs->words.n == before)
            continue;
        if (!(said = slurm_ask(&jobs->words, &run->launch.mask, run->err)))
            return false;
        free(said);
    }
    return true;
}

static void
end_job(struct run *run, uint32_t task)
{
    run->tally->running -= run->jobs->job[task].lives;
    run->jobs->job[task].lives = false;
}

bool
run_jobs_drop(struct run *run, const uint32_t *tasks, size_t n)
{
    if (!cancel(run, tasks, n, NULL))
        return false;
    for (size_t i = 0; i < n; i++)
        if (tasks[i] < run->jobs->n)
            end_job(run, tasks[i]);
    return true;
}

void
run_jobs_leave(struct run *run)
{
    run->tally->running = 0;
    run->jobs->left = true;
}

/* ---- results --------------------------------------------------------------------- */

static bool
read_attempt(const struct run *run, double arrival, const struct rec_reader *reader,
             const struct rec *rec, uint64_t *number, struct run_attempt *attempt,
             char status[64], char host[65])
{
    double began = run->began;
    struct rec_str name = {0};
    attempt->user = attempt->system = attempt->memory = 0;
    if (!rec_check(reader, rec, run->err) ||
        !rec_get_number(reader, rec, 3, &attempt->start, run->err) ||
        !rec_get_number(reader, rec, 4, &attempt->end, run->err) ||
        !rec_key_number(reader, rec, "user", &attempt->user, run->err) ||
        !rec_key_number(reader, rec, "system", &attempt->system, run->err) ||
        !rec_key_number(reader, rec, "memory", &attempt->memory, run->err) ||
        !rec_key_number(reader, rec, "began", &began, run->err) ||
        !rec_parse_uint(rec->field[2], number))
        return false;
    /* the clock there may be behind this one's */
    began = fmax(began - run->began, arrival - attempt->start);
    attempt->start = round(1e6 * (attempt->start + began)) / 1e6;
    attempt->end = fmax(attempt->start, round(1e6 * (attempt->end + began)) / 1e6);
    snprintf(status, 64, "%.*s", (int)rec->field[5].len, rec->field[5].ptr);
    if (rec_find_key(rec, "host", &name))
        snprintf(host, 65, "%.*s", (int)name.len, name.ptr);
    attempt->status = status;
    attempt->host = host;
    return true;
}

/* All attempts but the last are told; that is *attempt. */
static bool
read_attempts(struct run *run, uint32_t task, struct rec_reader *reader,
              struct run_attempt *attempt, char status[64], char host[65])
{
    struct run_task *t = &run->graph.task[task];
    struct rec rec;
    int read;
    t->attempts = 0;
    while ((read = rec_next(reader, &rec, run->err)) > 0) {
        uint64_t number;
        attempt->ok = attempt->ok || rec.type == REC_DONE;
        if (rec.type != REC_ATTEMPT)
            continue;
        if ((t->attempts > 0 && !run_put_attempt(run, t, attempt)) ||
            !read_attempt(run, t->arrival, reader, &rec, &number, attempt, status, host))
            return false;
        t->attempts = (uint32_t)number;
    }
    return read == 0;
}

static int
open_written(const struct run_jobs *jobs, uint32_t task, const char *kind)
{
    char path[PATH];
    name_file(jobs, path, task, kind);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static bool
conclude(struct run *run, uint32_t task, struct run_attempt *attempt, const char *kind)
{
    static const char *const kinds[] = {"task", "out", "err", "rec"};
    bool ok;
    end_job(run, task);
    attempt->output = open_written(run->jobs, task, kind);
    ok = run_conclude(run, task, attempt);
    if (attempt->output >= 0)
        close(attempt->output);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char path[PATH];
        name_file(run->jobs, path, task, kinds[i]);
        unlink(path);
    }
    return ok;
}

static bool
take_result(struct run *run, uint32_t task)
{
    struct run_attempt attempt = {.ok = false};
    struct rec_reader *reader;
    char path[PATH], status[64], host[65] = "-";
    const char *file = path;
    bool ok;
    name_file(run->jobs, path, task, "rec");
    if (!(reader = rec_reader_open(&file, 1, NULL, run->err)))
        return false;
    ok = read_attempts(run, task, reader, &attempt, status, host);
    rec_reader_close(reader);
    if (!ok)
        end_job(run, task); /* it is not read again */
    return ok && conclude(run, task, &attempt, "out");
}

static int
compare(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Those whose results are there, in the order in which they were submitted: none before one
 * that it waited for. */
static bool
find_results(struct run *run)
{
    struct run_jobs *jobs = run->jobs;
    DIR *folder = opendir(jobs->folder);
    struct dirent *entry;
    bool ok =
        folder || rec_fail(run->err, REC_IO, "%s: %s", jobs->folder, strerror(errno));
    jobs->nended = 0;
    while (ok && (entry = readdir(folder))) {
        char *end;
        unsigned long task = strtoul(entry->d_name, &end, 10);
        if (end == entry->d_name || strcmp(end, ".rec") != 0 || task >= jobs->n ||
            !jobs->job[task].lives)
            continue;
        ok = rec_grow(&jobs->ended, &jobs->ended_room, jobs->nended + 1,
                      sizeof *jobs->ended, run->err);
        if (ok)
            jobs->ended[jobs->nended++] = (uint32_t)task;
    }
    if (folder)
        closedir(folder);
    if (jobs->nended > 0)
        qsort(jobs->ended, jobs->nended, sizeof *jobs->ended, compare);
    return ok;
}

static bool
take_results(struct run *run)
{
    bool ok = find_results(run);
    for (size_t i = 0; ok && i < run->jobs->nended; i++)
        ok = !run->jobs->job[run->jobs->ended[i]].lives ||
             take_result(run, run->jobs->ended[i]);
    return ok;
}

/* ---- jobs that ended without a result --------------------------------------------- */

static bool
is_alive(struct rec_str state)
{
    static const char *const dead[] = {"BOOT_FAIL", "CANCELLED",     "COMPLETED",
                                       "DEADLINE",  "FAILED",        "NODE_FAIL",
                                       "PREEMPTED", "OUT_OF_MEMORY", "REVOKED",
                                       "TIMEOUT",   "SPECIAL_EXIT",  "missing"};
    for (size_t i = 0; i < sizeof dead / sizeof *dead; i++)
        if (rec_str_eq(state, rec_str(dead[i])))
            return false;
    return true;
}

/* A result may be seen later than its job's end: it has until Slurm is asked again. */
static bool
take_lost(struct run *run, uint32_t task, struct rec_str state)
{
    struct job *job = &run->jobs->job[task];
    struct run_attempt attempt = {.host = "-"};
    char status[32];
    if (++job->gone < 2)
        return true;
    if (run->stopped) { /* it was cancelled */
        end_job(run, task);
        return true;
    }
    snprintf(status, sizeof status, "%.*s", (int)state.len, state.ptr);
    attempt.status = status;
    attempt.start = attempt.end = run_now(run);
    run->graph.task[task].attempts++;
    return conclude(run, task, &attempt, "err");
}

/* What Slurm says of each job, lines ID STATE; of one that it has forgotten, nothing. */
static bool
take_states(struct run *run, const char *said)
{
    struct run_jobs *jobs = run->jobs;
    struct rec_str rest = rec_str(said), line, id;
    struct rec_str *state = calloc(jobs->n + 1, sizeof *state);
    bool ok = state || rec_fail_memory(run->err);
    for (size_t i = 0; ok && i < jobs->n; i++)
        state[i] = rec_str("missing");
    while (ok && rec_str_split(&rest, '\n', &line)) {
        uint32_t task;
        if (rec_str_split(&line, ' ', &id) &&
            (task = rec_map_get(&jobs->ids, id)) != REC_NONE)
            state[task] = line;
    }
    for (size_t i = 0; ok && i < jobs->n; i++)
        if (jobs->job[i].lives && !is_alive(state[i]))
            ok = take_lost(run, (uint32_t)i, state[i]);
    free(state);
    return ok;
}

/* That Slurm does not answer says nothing of the jobs; but of those that are to end nothing
 * more can be found out. */
static bool
ask(struct run *run)
{
    struct run_jobs *jobs = run->jobs;
    struct rec_error err;
    char *said = NULL;
    bool ok;
    slurm_cut(&jobs->words, 0);
    if (slurm_split(&jobs->words, "squeue --me --states=all --noheader --format=%A\\ %T",
                    &err))
        said = slurm_ask(&jobs->words, &run->launch.mask, &err);
    if (!said) {
        if (!jobs->away)
            run->options->warn(run->options->context, err.text);
        jobs->away = true;
        if (run->stopped)
            run_jobs_leave(run);
        return true;
    }
    jobs->away = false;
    ok = take_states(run, said);
    free(said);
    return ok;
}

/* After a failure or bad input what waits is cancelled, after a signal all is. */
static bool
cancel_what_must(struct run *run)
{
    struct run_jobs *jobs = run->jobs;
    enum which what = run->ending ? ALL : run->stopped ? PENDING : NONE;
    if (what <= jobs->cancelled)
        return true;
    jobs->cancelled = what;
    jobs->pause = FIRST_PAUSE;
    return cancel(run, NULL, jobs->n, what == ALL ? NULL : "PENDING");
}

bool
run_jobs_step(struct run *run)
{
    struct run_jobs *jobs = run->jobs;
    double time = run_now(run);
    if (!submit_some(run) || !take_results(run) || !cancel_what_must(run))
        return false;
    if (run->tally->running == 0 || time < jobs->asked + jobs->pause)
        return true;
    jobs->asked = time;
    jobs->pause = fmin(2 * jobs->pause, LONGEST_PAUSE);
    return ask(run);
}
