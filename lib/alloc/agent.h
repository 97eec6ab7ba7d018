/* The process of an agent, for agent.c. */
#ifndef RAMPIPE_ALLOC_AGENT_H
#define RAMPIPE_ALLOC_AGENT_H

#include "rampipe/alloc.h"

#include <sys/types.h>

struct agent_process {
    pid_t pid;    /* leads a process group of its own; 0: there is none */
    int to, from; /* descriptors of the pipes to its standard input and from its output */
};

/* Runs `command` in a shell, in a process group of its own, and calls `started` with that
 * group (may be NULL) before any signal is handled. The kernel kills the shell when this
 * process dies. */
bool agent_start(struct agent_process *process, const char *command,
                 void (*started)(pid_t), struct rec_error *err) REC_MUST_CHECK;
/* Waits until the shell has ended, `seconds` at most, and kills what is left of its
 * group. *status is the shell's, as waitpid() gives it. False: it has not ended. */
bool agent_wait(struct agent_process *process, double seconds,
                int *status) REC_MUST_CHECK;
/* Kills its process group, and waits until all of it has ended; process->pid is 0 then.
 * *status is the shell's. */
void agent_kill(struct agent_process *process, int *status);
/* Writes a status as a verb: "ended with exit status 1", "died of SIGSEGV". */
void agent_describe_status(int status, char *text, size_t room);
/* A monotonic clock, seconds. */
double agent_now(void);

#endif
