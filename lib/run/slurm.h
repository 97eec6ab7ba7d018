/* Slurm's commands, which both ways to run tasks with Slurm use. */
#ifndef RAMPIPE_RUN_SLURM_H
#define RAMPIPE_RUN_SLURM_H

#include "rampipe/record.h"

#include <signal.h>
#include <sys/types.h>

/* A command, word by word. Starts as {0}. */
struct run_words {
    char **word; /* NULL ends them */
    size_t n, room;
};

bool run_words_add(struct run_words *words, struct rec_error *err, const char *format,
                   ...) REC_PRINTF(3, 4) REC_MUST_CHECK;
/* Adds all words of a text that is quoted as in a shell. */
bool run_words_split(struct run_words *words, const char *text,
                     struct rec_error *err) REC_MUST_CHECK;
/* Removes all words but the first n. */
void run_words_cut(struct run_words *words, size_t n);
void run_words_free(struct run_words *words);

/* Starts a command. Its standard output can be read from *output; with `all` its standard
 * error, too. `input` is its standard input, `mask` its signal mask. */
bool run_slurm_spawn(const struct run_words *words, int input, bool all,
                     const sigset_t *mask, pid_t *pid, int *output,
                     struct rec_error *err) REC_MUST_CHECK;
/* Runs a command. Returns all that it prints, owned by the caller. NULL: it could not be
 * run, or its exit status was not 0 (*err). */
char *run_slurm_ask(const struct run_words *words, const sigset_t *mask,
                    struct rec_error *err) REC_MUST_CHECK;

#endif
