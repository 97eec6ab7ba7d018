/* Declarations that the files of this room share. */
#ifndef TASK_PRIVATE_H
#define TASK_PRIVATE_H

#include "rampipe/task.h"

/** Are all escapes of a text valid? An escape is %XX, as %2C for a comma. False: a % does
 * not begin an escape, or begins that of a NUL. */
bool task_is_escaped(struct rec_str text) REC_MUST_CHECK;
/** Writes a text with valid escapes without them; `to` must have room for the text
 * and a NUL. Returns the address behind the NUL. */
char *task_unescape(char *to, struct rec_str text);
/** The ID in @ID.stdout, @ID.stderr or @ID.result, as a part of `name`; *kind: the part
 * behind the dot. {NULL}: it is another name. */
struct rec_str task_output(const char *name, const char **kind);

#endif
