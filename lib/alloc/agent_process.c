/*
 * The process of an agent: a shell that runs its command, with a pipe to its standard
 * input and one from its standard output. It leads a process group, so that everything
 * that it starts can be killed with it.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double
agent_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Runs in the child. The tool's other descriptors are closed by exec(). The child dies
 * with its parent; if the parent has died before prctl() was called, getppid() says
 * so. */
static _Noreturn void
run_command(const char *command, int pipes[2][2], pid_t parent, const sigset_t *mask)
{
    sigprocmask(SIG_SETMASK, mask, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(pipes[0][0], 0) == 0 && dup2(pipes[1][1], 1) == 1)
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static void
close_pipe(const int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

bool
agent_start(struct agent_process *process, const char *command, void (*started)(pid_t),
            struct rec_error *err)
{
    sigset_t all, mask;
    int pipes[2][2] = {{-1, -1}, {-1, -1}}; /* its standard input, its standard output */
    pid_t parent = getpid();
    bool ok;
    /* Block all signals until `started` knows the agent's process group: a handler that
     * ran earlier would leave the agent alive. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask);
    /* Become the parent of processes that the agent leaves behind, so that they can be
     * reaped. */
    ok = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && pipe2(pipes[0], O_CLOEXEC) == 0 &&
         pipe2(pipes[1], O_CLOEXEC) == 0 && (process->pid = fork()) >= 0;
    if (ok && process->pid == 0)
        run_command(command, pipes, parent, &mask);
    if (ok) {
        /* The child does the same: whichever runs first, the group exists from then
         * on. */
        setpgid(process->pid, process->pid);
        if (started)
            started(process->pid);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (!ok) {
        rec_fail(err, REC_IO, "agent '%s' cannot be started: %s", command,
                 strerror(errno));
        process->pid = 0;
        process->to = process->from = -1;
        close_pipe(pipes[0]);
        close_pipe(pipes[1]);
        return false;
    }
    close(pipes[0][0]);
    close(pipes[1][1]);
    process->to = pipes[0][1];
    process->from = pipes[1][0];
    return true;
}

/* Asks every millisecond, because no call waits for a process with a timeout. WNOWAIT
 * leaves the process a zombie until agent_kill(): so its id cannot be given to another
 * process whose group would be killed instead. */
bool
agent_wait(struct agent_process *process, double seconds, int *status)
{
    static const struct timespec pause = {0, 1000000};
    double until = agent_now() + seconds;
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        int failed =
            waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if (failed == 0 && info.si_pid == 0) {
            if (agent_now() >= until)
                return false;
            nanosleep(&pause, NULL);
        } else if (failed == 0 || errno != EINTR)
            break;
    }
    agent_kill(process, status);
    return true;
}

void
agent_kill(struct agent_process *process, int *status)
{
    kill(-process->pid, SIGKILL); /* a leader that has ended keeps its exit status */
    while (waitpid(process->pid, status, 0) < 0 && errno == EINTR)
        ;
    /* Its orphans became children of this process, see agent_start(). */
    while (waitpid(-process->pid, NULL, 0) > 0 || errno == EINTR)
        ;
    process->pid = 0;
}

void
agent_describe_status(int status, char *text, size_t room)
{
    const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    if (WIFEXITED(status))
        snprintf(text, room, "ended with exit status %d", WEXITSTATUS(status));
    else if (name)
        snprintf(text, room, "died of SIG%s", name);
    else
        snprintf(text, room, "died of signal %d", WTERMSIG(status));
}
