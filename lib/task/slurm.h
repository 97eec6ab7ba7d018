/* What the two ways to run tasks with Slurm share: its commands. */
#ifndef RAMPIPE_TASK_SLURM_H
#define RAMPIPE_TASK_SLURM_H

#include "rampipe/task.h"

#include <signal.h>
#include <sys/types.h>

/* A command, word by word. Starts as {0}. */
struct slurm_words {
    char **word; /* NULL ends them */
    size_t n, room;
};

bool slurm_add(struct slurm_words *words, struct rec_error *err, const char *format, ...)
    REC_PRINTF(3, 4) REC_MUST_CHECK;
/* All words of a text in a shell's quotes. */
bool slurm_split(struct slurm_words *words, const char *text,
                 struct rec_error *err) REC_MUST_CHECK;
/* The first n are kept. */
void slurm_cut(struct slurm_words *words, size_t n);
void slurm_free(struct slurm_words *words);

/* Starts a command; what it prints can be read from *output, what it complains of, too,
 * if `all`. `input` is its standard input; its signals are those of `mask`. */
bool slurm_spawn(const struct slurm_words *words, int input, bool all,
                 const sigset_t *mask, pid_t *pid, int *output,
                 struct rec_error *err) REC_MUST_CHECK;
/* Runs a command; all that it says, the caller's. NULL: *err; its status was not 0. */
char *slurm_ask(const struct slurm_words *words, const sigset_t *mask,
                struct rec_error *err) REC_MUST_CHECK;

#endif
