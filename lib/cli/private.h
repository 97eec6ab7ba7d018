/* What the files of lib/cli share with each other and with nobody else. */
#ifndef RAMPIPE_CLI_PRIVATE_H
#define RAMPIPE_CLI_PRIVATE_H

#include "rampipe/cli.h"

#include <signal.h>

/* The size of all inputs in bytes; 0 if one of them is not a regular file. */
uint64_t cli_input_bytes(const struct cli *cli);

/* Starts the timer that shows progress, if --progress was given or standard error is a
 * terminal. */
void cli_start_progress(struct cli *cli);
/* Asks for the floor: the right to show progress, which one process of a pipeline has at
 * a time. Does nothing if another process has it. */
void cli_ask_floor(void);
/* As cli_ask_floor(), before anything is read, unless an input is a pipe. */
void cli_ask_floor_at_once(const struct cli *cli);
/* Call these around a message to standard error: they erase the line of progress, and
 * keep the timer from showing another one in between. */
void cli_begin_message(sigset_t *before);
void cli_end_message(const sigset_t *before);

/* The stage's own #@ line; NULL: out of memory. */
char *cli_make_provenance(const struct cli *cli, const char *dump);

/* If cli->err is about an input file: what kind of file it is, and which tool reads it.
 * ^ stands for the prefix. NULL: not known, or this tool reads such files. */
const char *cli_guess_input(const struct cli *cli);

/* Is `name` so similar to the word that a user wrote (`meant`) that this may be a slip,
 * and more similar than all names before? *least is the smallest distance so far. */
bool cli_is_nearer(const char *meant, const char *name, size_t *least);

/* An option of a tool or mode; the options that all tools have are left out.
 * scripts/make-option-table makes the table of them, which ends with a row of NULLs. */
struct cli_tool_option {
    const char *option, *tool;
};
extern const struct cli_tool_option cli_tool_options[];

/* Opens descriptors 0, 1 and 2 if they are closed, so that no file gets their number. */
void cli_guard_descriptors(void);
/* Registers a file that is removed if a signal ends the process, until
 * cli_release_file(). `path` is copied; NULL: nothing to do. */
bool cli_guard_file(const char *path, struct rec_error *err) REC_MUST_CHECK;
void cli_release_file(void);

#endif
