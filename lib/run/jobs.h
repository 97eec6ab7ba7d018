/* The declarations that the files of tasks as jobs of Slurm share: submit.c submits jobs,
 * jobs.c follows them and takes their results. */
#ifndef RAMPIPE_RUN_JOBS_H
#define RAMPIPE_RUN_JOBS_H

#include "private.h"
#include "slurm.h"

enum { PATH = 64 /* bytes of a path in the folder */ };

struct run_job {
    const char *id; /* Slurm's number; NULL: not submitted */
    bool lives;     /* submitted, and its end is not known */
    uint8_t gone;   /* queries in a row in which Slurm did not list the job */
};

struct run_jobs {
    char folder[24];
    struct run_words words; /* the command that is being made */
    struct rec_map ids;     /* Slurm's number of a job -> task */
    struct rec_arena arena;
    struct run_job *job; /* of each task */
    size_t n, room;      /* n: the number of tasks that have been submitted or skipped */
    size_t edge;         /* the first edge to a task that is not submitted */
    uint32_t *ended;     /* tasks whose result files exist */
    size_t nended, ended_room;
    double asked, pause; /* time of the last query; time until the next one, seconds */
    enum which { NONE, PENDING, ALL } cancelled; /* the jobs that have been cancelled */
    bool left, away; /* left: jobs may still run, but are not waited for; away: Slurm did
                      * not answer the last query */
};

/* Writes the path FOLDER/TASK.KIND. */
void run_jobs_name_file(const struct run_jobs *jobs, char path[PATH], uint32_t task,
                        const char *kind);
/* Writes a file of the folder. */
bool run_jobs_write_file(const char *path, const char *text,
                         struct rec_error *err) REC_MUST_CHECK;
/* Submits some of the tasks that have been read. */
bool run_jobs_submit(struct run *run) REC_MUST_CHECK;

#endif
