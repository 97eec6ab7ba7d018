/*
 * Tasks as jobs of Slurm, which gets the graph as dependencies and starts the jobs.
 *
 *     a task --- FOLDER/N.task --- sbatch --- RUNNER in the job --- FOLDER/N.rec
 *                                  afterok: needs the other's data; afterany: order only
 *
 * A task is submitted as soon as it is read, so that it gains priority in the queue while
 * earlier tasks run. If a task that it needs fails, its job can never start. The job must
 * stay in the queue (--kill-on-invalid-dep=no) until all jobs that it waits for have
 * ended, and is cancelled then: later jobs wait for its end only, and take it as a sign
 * that those jobs have ended as well.
 */
#include "jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JOBS_PER_COMMAND = 1000 /* a command line has a limited length */ };

/* Time between two queries of the states of jobs, seconds: it doubles from the first
 * value to the longest, for each query is work for Slurm's controller. */
static const double FIRST_PAUSE = 0.2, LONGEST_PAUSE = 5;

/* ---- the folder ---------------------------------------------------------------- */

void
run_jobs_name_file(const struct run_jobs *jobs, char path[PATH], uint32_t task,
                   const char *kind)
{
    snprintf(path, PATH, "%s/%u.%s", jobs->folder, task, kind);
}

bool
run_jobs_write_file(const char *path, const char *text, struct rec_error *err)
{
    FILE *file = fopen(path, "we");
    bool ok = file && fputs(text, file) >= 0;
    ok = (!file || fclose(file) == 0) && ok;
    return ok || rec_fail(err, REC_IO, "%s: %s", path, strerror(errno));
}

/* Makes the folder for the files of jobs, in the present folder, which all nodes share.
 * sbatch takes a script, not a command: FOLDER/run is a script that runs its arguments.
 * */
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
    return run_jobs_write_file(path, "#!/bin/sh\nexec \"$@\"\n", run->err);
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
    run_words_free(&jobs->words);
    rec_map_free(&jobs->ids);
    rec_arena_free(&jobs->arena);
    free(jobs->job);
    free(jobs->ended);
    free(jobs);
}

bool
run_jobs_all_submitted(const struct run *run)
{
    return run->jobs->n == run->graph.n;
}

/* ---- cancelling ------------------------------------------------------------------ */

/* Cancels the living jobs of n tasks (`tasks` NULL: of the first n). `state`: only jobs
 * in this state of Slurm; NULL: in any. */
static bool
cancel(struct run *run, const uint32_t *tasks, size_t n, const char *state)
{
    struct run_jobs *jobs = run->jobs;
    for (size_t i = 0; i < n;) {
        size_t before;
        char *said;
        run_words_cut(&jobs->words, 0);
        if (!run_words_split(&jobs->words, "scancel --quiet", run->err) ||
            (state && !run_words_add(&jobs->words, run->err, "--state=%s", state)))
            return false;
        before = jobs->words.n;
        for (; i < n && jobs->words.n < before + JOBS_PER_COMMAND; i++) {
            size_t task = tasks ? tasks[i] : i;
            if (task < jobs->n && jobs->job[task].lives &&
                !run_words_add(&jobs->words, run->err, "%s", jobs->job[task].id))
                return false;
        }
        if (jobs->words.n == before)
            continue;
        if (!(said = run_slurm_ask(&jobs->words, &run->pool->launch.mask, run->err)))
            return false;
        free(said);
    }
    return true;
}

/* The job counts as running, for the tally, from its submission until here. */
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

/* Reads an attempt record of the runner in a job, and converts its times, which count
 * from the start of that runner, to times of this run. */
static bool
read_attempt(const struct run *run, double arrival, const struct rec_reader *reader,
             const struct rec *rec, uint64_t *number, struct run_attempt *attempt,
             char status[64], char host[65])
{
    double began = run->began;
    struct rec_str name = {0};
    if (!rec_check(reader, rec, run->err) ||
        !rec_get_number(reader, rec, 3, &attempt->start, run->err) ||
        !rec_get_number(reader, rec, 4, &attempt->end, run->err) ||
        !rec_key_number(reader, rec, "user", &attempt->user, run->err) ||
        !rec_key_number(reader, rec, "system", &attempt->system, run->err) ||
        !rec_key_number(reader, rec, "memory", &attempt->memory, run->err) ||
        !rec_key_number(reader, rec, "began", &began, run->err) ||
        !rec_parse_uint(rec->field[2], number))
        return false;
    /* The clock of that machine may be slow: no attempt starts before its task came. */
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

/* Copies the value of a key of a call's attempt; *text is NULL if it is not there. */
static bool
keep_given(struct run_jobs *jobs, const struct rec *rec, const char *key,
           const char **text, struct rec_error *err)
{
    struct rec_str given;
    *text = NULL;
    return !rec_find_key(rec, key, &given) ||
           (*text = rec_arena_copy(&jobs->arena, given, err));
}

/* Reads the attempts of a task. Writes the records of all but the last, which is left in
 * *attempt for run_conclude(). */
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
        if (t->attempts > 0 && !run_put_attempt(run, t, attempt))
            return false;
        attempt->user = attempt->system = attempt->memory = t->call ? NAN : 0;
        if (!keep_given(run->jobs, &rec, "result", &attempt->result, run->err) ||
            !keep_given(run->jobs, &rec, "stdout", &attempt->standard_output, run->err) ||
            !keep_given(run->jobs, &rec, "stderr", &attempt->standard_error, run->err) ||
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
    run_jobs_name_file(jobs, path, task, kind);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Ends a task, by the file FOLDER/TASK.`kind` as its output, and removes its files. */
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
        run_jobs_name_file(run->jobs, path, task, kinds[i]);
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
    run_jobs_name_file(run->jobs, path, task, "rec");
    if (!(reader = rec_reader_open(&file, 1, NULL, run->err)))
        return false;
    ok = read_attempts(run, task, reader, &attempt, status, host);
    rec_reader_close(reader);
    if (!ok)
        end_job(run, task); /* a broken result must not be read again */
    return ok && conclude(run, task, &attempt, "out");
}

static int
compare(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Finds the jobs whose results are there, sorted by task, so that no task ends before one
 * that it waited for. Reads the folder once instead of looking for a file of each job. */
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

/* A result may end other jobs (run_jobs_drop), so each job is looked at again. */
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

/* May a job in this state of Slurm still run? States that are not known count as alive.
 * */
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

/* A job has ended, but its result is not there. On a network file system the result may
 * be seen later than the end of the job, so it is lost only if it is still missing when
 * Slurm is asked the second time. Then the word of Slurm is the status of the attempt. */
static bool
take_lost(struct run *run, uint32_t task, struct rec_str state)
{
    struct run_job *job = &run->jobs->job[task];
    struct run_attempt attempt = {.host = "-"};
    char status[32];
    if (++job->gone < 2)
        return true;
    if (run->stopped) { /* this run has cancelled it: its task was not started */
        end_job(run, task);
        return true;
    }
    snprintf(status, sizeof status, "%.*s", (int)state.len, state.ptr);
    attempt.status = status;
    attempt.start = attempt.end = run_now(run);
    run->graph.task[task].attempts++;
    return conclude(run, task, &attempt, "err");
}

/* Takes the states of all jobs, lines "ID STATE". Slurm forgets jobs some minutes after
 * their end: a job without a line is "missing". */
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

/* Asks Slurm for the states of jobs. If it does not answer, its jobs may still run, so
 * the run goes on, with one warning; but if the run is being stopped it does not wait for
 * jobs of which it can learn nothing. */
static bool
ask(struct run *run)
{
    struct run_jobs *jobs = run->jobs;
    struct rec_error err;
    char *said = NULL;
    bool ok;
    run_words_cut(&jobs->words, 0);
    if (run_words_split(&jobs->words,
                        "squeue --me --states=all --noheader --format=%A\\ %T", &err))
        said = run_slurm_ask(&jobs->words, &run->pool->launch.mask, &err);
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

/* Cancels pending jobs if nothing more shall start, all jobs if the run shall end. */
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

/* Results are files, and cheap to look for: they are taken at each step, while Slurm is
 * asked after growing pauses only for jobs that ended without a result. */
bool
run_jobs_step(struct run *run)
{
    struct run_jobs *jobs = run->jobs;
    double time = run_now(run);
    if (!run_jobs_submit(run) || !take_results(run) || !cancel_what_must(run))
        return false;
    if (run->tally->running == 0 || time < jobs->asked + jobs->pause)
        return true;
    jobs->asked = time;
    jobs->pause = fmin(2 * jobs->pause, LONGEST_PAUSE);
    return ask(run);
}
