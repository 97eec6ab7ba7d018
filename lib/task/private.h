/* What the files of this room share. */
#ifndef TASK_PRIVATE_H
#define TASK_PRIVATE_H

#include "rampipe/task.h"

/** %2C is a comma, ... In place; false: a % that begins no such escape, or of a NUL. */
bool task_unescape(char *text) REC_MUST_CHECK;

#endif
