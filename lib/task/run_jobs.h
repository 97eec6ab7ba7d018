/* What the files of tasks as jobs share: run_jobs.c the jobs and what becomes of them,
 * run_submit.c how a task becomes one. */
#ifndef RAMPIPE_TASK_RUN_JOBS_H
#define RAMPIPE_TASK_RUN_JOBS_H

#include "run.h"
#include "slurm.h"

enum { PATH = 64 };

struct job {
    const char *id; /* Slurm's number; NULL: not submitted */
    bool lives;
    uint8_t gone; /* queries in a row in which Slurm did not list the job */
};

struct run_jobs {
    char folder[24];
    struct slurm_words words;
    struct rec_map ids; /* of jobs -> tasks */
    struct rec_arena arena;
    struct job *job; /* of each task */
    size_t n, room;  /* n: the number of tasks that have been submitted or skipped */
    size_t edge;     /* the first edge to a task that is not submitted */
    uint32_t *ended; /* tasks whose result files exist */
    size_t nended, ended_room;
    double asked, pause;
    enum which { NONE, PENDING, ALL } cancelled;
    bool left, away; /* left: not waited for; away: Slurm did not answer */
};

/* FOLDER/N.KIND */
void run_jobs_name_file(const struct run_jobs *jobs, char path[PATH], uint32_t task,
                        const char *kind);
/* A file of the folder, whole or not there. */
bool run_jobs_write_file(const char *path, const char *text,
                         struct rec_error *err) REC_MUST_CHECK;
/* Submits some of those that have come. */
bool run_jobs_submit(struct run *run) REC_MUST_CHECK;

#endif
