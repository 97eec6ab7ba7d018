/*
 * What the files of a resumed run ask of its log and its list: resume.c chooses the tasks
 * that run again, given.c looks after the files that no task of the list makes.
 *
 * Words: a turn is one begin of a task, or a change from outside (struct run_turn).
 * `source`: the tasks of the list that write a name before a task reads it.
 */
#ifndef RAMPIPE_RUN_TURNS_H
#define RAMPIPE_RUN_TURNS_H

#include "private.h"

/* A name that a task reads or writes, and the tasks that wrote it before in the list. */
struct run_name {
    const char *text;
    bool below; /* it stands for everything below a folder */
    struct run_list source;
};

/* ---- turns.c ---- */
/* Name number i of a task; the names that it reads come first, then those it writes. */
struct run_name run_name_of(const struct run *run, uint32_t task, uint32_t i);
/* The task of the list with the id of the task whose turn it was, even if its record has
 * changed since. REC_NONE: a change from outside, or no such task. */
uint32_t run_turn_task(const struct run *run, uint32_t turn);
bool run_turn_is_change(const struct run *run, uint32_t turn);
/* Was it the turn of a task that is not in the list? Unknown, thus false, as long as the
 * input has not ended: the task may still come. */
bool run_turn_is_stranger(const struct run *run, uint32_t turn);
/* Did a turn write something that overlaps `name` and that the task writes, too? */
bool run_turn_writes_same(const struct run *run, uint32_t turn, const char *name,
                          uint32_t task);
/* The turns that wrote what a name holds now; valid as those of run_journal_last(). */
bool run_find_last(const struct run *run, const char *name,
                   const struct task_edge **turns, size_t *n) REC_MUST_CHECK;
/* Does any task of the list write this name? Assumed while the input has not ended. */
bool run_find_writer(const struct run *run, const char *name, bool *any) REC_MUST_CHECK;

/* ---- given.c ---- */
/* Compares all files of the log with their last state there. Each one that differs gets a
 * turn: somebody outside the run has changed it. */
bool run_verify_files(struct run *run) REC_MUST_CHECK;
/* Checks the names that a task reads and that no earlier task makes, and the folders that
 * it reads: are they as before the run? `act`: makes them so; false only checks, so that
 * nothing is removed before it is sure that the run is not refused. REC_DATA: such a file
 * is lost. */
bool run_check_given(struct run *run, uint32_t task, bool act) REC_MUST_CHECK;
/* A file that a task wrote which is not in the list, or no longer writes it, counts as a
 * file that was there before the run: it must not be removed. */
void run_keep_of_others(struct run *run);

#endif
