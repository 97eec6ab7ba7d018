/*
 * A runner within an allocation of Slurm. srun carries its input, its standard error and
 * its exit status. Its output is copied by this process, since srun does not report a
 * full disk or a closed pipe. A signal is passed to the runner by scancel, and the runner
 * ends its tasks in its own way; srun itself would send them SIGKILL.
 */
#include "private.h"
#include "slurm.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct allocation {
    struct run_pool pool; /* only its part for signals is used */
    char name[100];       /* of the job */
    pid_t pid;
    int output;
    int error; /* of writing what it printed, an errno */
    bool ending;
};

/* ---- the end before the end ------------------------------------------------ */

static bool
cancel(struct allocation *a, const char *state, const char *how)
{
    struct run_words words = {0};
    struct rec_error err;
    char *said = NULL;
    if (run_words_split(&words, "scancel --quiet --me", &err) &&
        run_words_add(&words, &err, "--name=%s", a->name) &&
        run_words_add(&words, &err, "--state=%s", state) &&
        (!how || run_words_add(&words, &err, "--signal=%s", how)))
        said = run_slurm_ask(&words, &a->pool.launch.mask, &err);
    run_words_free(&words);
    free(said);
    return said != NULL;
}

/* Ends the job: cancels it if it is pending, sends it SIGTERM if it runs. The second
 * time, or if that fails, srun gets SIGTERM and ends the job at once. */
static void
end_job(struct allocation *a)
{
    if (a->ending || !cancel(a, "PENDING", NULL) || !cancel(a, "RUNNING", "TERM"))
        kill(a->pid, SIGTERM);
    a->ending = true;
}

/* ---- its output -------------------------------------------------------------- */

/* Copies some output. False: there is no more. After an error of writing the rest is read
 * and dropped, so that the runner is not blocked while it ends. */
static bool
copy_output(struct allocation *a)
{
    char bytes[1 << 16];
    ssize_t n = read(a->output, bytes, sizeof bytes), written = 0;
    if (n <= 0)
        return n < 0 && errno == EINTR;
    while (a->error == 0 && written < n) {
        ssize_t w = write(STDOUT_FILENO, bytes + written, (size_t)(n - written));
        if (w >= 0)
            written += w;
        else if (errno == EAGAIN)
            poll(&(struct pollfd){STDOUT_FILENO, POLLOUT, 0}, 1, -1);
        else if (errno != EINTR) {
            a->error = errno;
            end_job(a);
        }
    }
    return true;
}

static void
follow(struct allocation *a)
{
    struct signalfd_siginfo info;
    struct pollfd at[2] = {{a->pool.events, POLLIN, 0}, {a->output, POLLIN, 0}};
    do {
        at[1].revents = 0;
        if (poll(at, 2, -1) < 0)
            continue;
        while (read(a->pool.events, &info, sizeof info) == sizeof info)
            if (info.ssi_signo != SIGCHLD) {
                a->pool.signal = (int)info.ssi_signo;
                end_job(a);
            }
    } while (at[1].revents == 0 || copy_output(a));
}

/* ---- the whole ----------------------------------------------------------------- */

static bool
make_command(struct run_words *words, const char *name,
             const struct run_slurm_options *options, char *const runner[],
             struct rec_error *err)
{
    if (!run_words_split(words, "srun --quiet --nodes=1 --ntasks=1", err) ||
        !run_words_add(words, err, "--job-name=%s", name) ||
        !(options->cores ? run_words_add(words, err, "--cpus-per-task=%u", options->cores)
                         : run_words_add(words, err, "--exclusive")) ||
        (options->memory > 0 &&
         !run_words_add(words, err, "--mem=%.0fK", ceil(options->memory / 1024))) ||
        (options->live && !run_words_add(words, err, "--unbuffered")) ||
        (!options->input && !run_words_add(words, err, "--input=none")) ||
        !run_words_split(words, options->options, err))
        return false;
    for (; *runner; runner++)
        if (!run_words_add(words, err, "%s", *runner))
            return false;
    return true;
}

static bool
judge(const struct allocation *a, int status, struct rec_error *err)
{
    if (a->pool.signal || a->error == EPIPE)
        return true;
    if (a->error)
        return rec_fail(err, REC_IO, "<stdout>: %s", strerror(a->error));
    if (WIFEXITED(status) && WEXITSTATUS(status) < 128)
        return true;
    return rec_fail(err, REC_IO,
                    "the job was ended by signal %d before its tasks had ended",
                    WIFEXITED(status) ? WEXITSTATUS(status) - 128 : WTERMSIG(status));
}

bool
run_in_slurm(const struct run_slurm_options *options, char *const runner[],
             int *exit_status, int *signal_number, struct rec_error *err)
{
    struct allocation a = {.pool = {.events = -1}, .output = -1};
    struct run_words words = {0};
    char host[65] = "";
    int status = 0;
    bool ok;

    *exit_status = *signal_number = 0;
    gethostname(host, sizeof host - 1);
    snprintf(a.name, sizeof a.name, "runtasks-%s-%ld", host, (long)getpid());
    setenv("SLURM_EXIT_ERROR", "4", 1); /* srun's own errors; its default, 1, means here
                                         * that a task failed */
    unsetenv("SLURM_JOB_ID");           /* else srun makes a step of that job */
    unsetenv("SLURM_JOBID");
    ok = make_command(&words, a.name, options, runner, err) &&
         run_watch_signals(&a.pool, err) &&
         run_slurm_spawn(&words, STDIN_FILENO, false, &a.pool.launch.mask, &a.pid,
                         &a.output, err);
    if (ok) {
        follow(&a);
        close(a.output);
        while (waitpid(a.pid, &status, 0) < 0 && errno == EINTR)
            ;
        ok = judge(&a, status, err);
        *exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        *signal_number = a.error == EPIPE ? SIGPIPE : a.pool.signal;
    }
    if (a.pool.events >= 0) {
        close(a.pool.events);
        sigprocmask(SIG_SETMASK, &a.pool.launch.mask, NULL);
    }
    run_words_free(&words);
    return ok;
}
