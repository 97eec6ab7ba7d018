/* The process of an agent, for agent.c. */
#ifndef RAMPIPE_ALLOC_AGENT_H
#define RAMPIPE_ALLOC_AGENT_H

#include "rampipe/alloc.h"

#include <sys/types.h>

struct agent_process {
    pid_t pid;    /* leads a process group of its own; 0: there is none */
    int to, from; /* its standard input and output: descriptors */
};

/* Runs `command` in a shell. It is killed when this process dies. */
bool agent_start(struct agent_process *process, const char *command,
                 void (*started)(pid_t), struct rec_error *err) REC_MUST_CHECK;
/* Waits until it has ended, so many seconds at most, and kills what is left of its group.
 * False: it has not ended. */
bool agent_wait(struct agent_process *process, double seconds,
                int *status) REC_MUST_CHECK;
/* Kills its group, and takes leave of it. */
void agent_kill(struct agent_process *process, int *status);
/* "ended with exit status 1", "died of SIGSEGV" */
void agent_describe_status(int status, char *text, size_t room);
/* A clock that only goes on, seconds. */
double agent_now(void);

#endif
