/*
 * Tasks as rules of a Makefile, for list.c.
 */
#ifndef RAMPIPE_TASK_MAKEFILE_H
#define RAMPIPE_TASK_MAKEFILE_H

#include "rampipe/task.h"

/* Writes a task's name as a target: bytes that may mean something to make become _XX. */
void task_make_target(struct rec_writer *w, const char *id);
/* Can make run the task? REC_DATA: it cannot. */
bool task_make_check(const struct task *task, struct rec_error *err) REC_MUST_CHECK;
/* Has the task limits or retries, which make does not know? */
bool task_make_drops(const struct task *task);
/* Writes the line of a recipe that runs a task. */
bool task_make_command(struct rec_writer *w, const struct task *task,
                       struct rec_error *err) REC_MUST_CHECK;

#endif
