/* What the files of lib/cli share with each other and with nobody else. */
#ifndef RAMPIPE_CLI_PRIVATE_H
#define RAMPIPE_CLI_PRIVATE_H

#include "rampipe/cli.h"

/* The bytes of the input files; 0 if one of them is no file, or standard input is not. */
uint64_t cli_input_bytes(const struct cli *cli);
/* Takes the line of progress off the terminal, if there is one. */
void cli_clear_progress(const struct cli *cli);
/* The stage's own #@ line; NULL: out of memory. */
char *cli_make_provenance(const struct cli *cli, const char *dump);

/* Opens descriptors 0, 1 and 2 if they are closed, so that no file gets their number. */
void cli_guard_descriptors(void);
/* Until it is released, a signal that ends the process removes this file (NULL: none). */
bool cli_guard_file(const char *path, struct rec_error *err) REC_MUST_CHECK;
void cli_release_file(void);

#endif
