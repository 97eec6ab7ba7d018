/* What the files of lib/cli share with each other and with nobody else. */
#ifndef RAMPIPE_CLI_PRIVATE_H
#define RAMPIPE_CLI_PRIVATE_H

#include "rampipe/cli.h"

#include <signal.h>

/* The bytes of the input files; 0 if one of them is no file, or standard input is not. */
uint64_t cli_input_bytes(const struct cli *cli);

/* Shows a line of progress from time to time, if that was asked for or standard error is
 * a terminal; the tool and its inputs are known. */
void cli_start_progress(struct cli *cli);
/* This process is the one that tells, if none of its pipeline or job on this terminal
 * does so. */
void cli_ask_floor(void);
/* The same before anything is read, unless an input is a pipe. */
void cli_ask_floor_at_once(const struct cli *cli);
/* Around what is written to standard error: takes the line off, and shows none
 * meanwhile. */
void cli_begin_message(sigset_t *before);
void cli_end_message(const sigset_t *before);

/* The stage's own #@ line; NULL: out of memory. */
char *cli_make_provenance(const struct cli *cli, const char *dump);

/* cli->err says of an input that it could not be read: what it may be instead, and which
 * tool reads it; ^ stands for the prefix. NULL: not known, or this tool reads such
 * files. */
const char *cli_guess_input(const struct cli *cli);

/* Is `name` so near to what was `meant` that it may be a slip, and nearer than *least
 * before? */
bool cli_is_nearer(const char *meant, const char *name, size_t *least);

/* An option of a tool or mode, without those of all tools; scripts/make-option-table
 * makes the table of all of them, which a row without names ends. */
struct cli_tool_option {
    const char *option, *tool;
};
extern const struct cli_tool_option cli_tool_options[];

/* Opens descriptors 0, 1 and 2 if they are closed, so that no file gets their number. */
void cli_guard_descriptors(void);
/* Until it is released, a signal that ends the process removes this file (NULL: none). */
bool cli_guard_file(const char *path, struct rec_error *err) REC_MUST_CHECK;
void cli_release_file(void);

#endif
