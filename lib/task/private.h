/* What the files of this room share. */
#ifndef TASK_PRIVATE_H
#define TASK_PRIVATE_H

#include "rampipe/task.h"

/** %2C is a comma, ... False: a % begins no such escape, or one of a NUL. */
bool task_is_escaped(struct rec_str text) REC_MUST_CHECK;
/** Writes such a text without its escapes; `to` has room for it and a NUL. Returns what
 * is behind that. */
char *task_unescape(char *to, struct rec_str text);
/** The ID of @ID.stdout, @ID.stderr or @ID.result, a part of `name`, and which it is;
 * {NULL}: it is another name. */
struct rec_str task_output(const char *name, const char **kind);

#endif
