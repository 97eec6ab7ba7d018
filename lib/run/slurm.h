/* Slurm's commands, which both ways to run tasks with Slurm use. */
#ifndef RAMPIPE_RUN_SLURM_H
#define RAMPIPE_RUN_SLURM_H

#include "rampipe/record.h"

#include <signal.h>
#include <sys/types.h>

/* A command, word by word. Starts as {0}. */
struct slurm_words {
    char **word; /* NULL ends them */
    size_t n, room;
};

bool slurm_add(struct slurm_words *words, struct rec_error *err, const char *format, ...)
    REC_PRINTF(3, 4) REC_MUST_CHECK;
/* Adds all words of a text that is quoted as in a shell. */
bool slurm_split(struct slurm_words *words, const char *text,
                 struct rec_error *err) REC_MUST_CHECK;
/* Removes all words but the first n. */
void slurm_cut(struct slurm_words *words, size_t n);
void slurm_free(struct slurm_words *words);

/* Starts a command. Its standard output can be read from *output; with `all` its standard
 * error, too. `input` is its standard input, `mask` its signal mask. */
bool slurm_spawn(const struct slurm_words *words, int input, bool all,
                 const sigset_t *mask, pid_t *pid, int *output,
                 struct rec_error *err) REC_MUST_CHECK;
/* Runs a command. Returns all that it prints, owned by the caller. NULL: it could not be
 * run, or its exit status was not 0 (*err). */
char *slurm_ask(const struct slurm_words *words, const sigset_t *mask,
                struct rec_error *err) REC_MUST_CHECK;

#endif
