/*
 * schedule [STAGES MICROBATCHES] - one step of a pipeline in the order of 1F1B, a million
 * ops by default: by strict lanes, against the same order by a dep from each op of a
 * stage to the next; and what it costs that activations are held.
 */
#include "../unit/schedules.h"

#include <time.h>

enum { ROUNDS = 5, STAGES = 64 };

static double
step_seconds(const struct pipeline *pipe, double *makespan)
{
    struct sim_placed placed = pipeline_placed(pipe);
    struct sim_step step;
    struct rec_error err;
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    if (!sim_step(&placed, NULL, &step, &err)) {
        fprintf(stderr, "schedule: %s\n", err.text);
        exit(1);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    *makespan = step.seconds;
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int
main(int argc, char **argv)
{
    double forward[STAGES], backward[STAGES], seconds[3][ROUNDS], makespan[3];
    struct pipeline pipe[3]; /* by lanes, by deps, by lanes and with what is held */
    uint32_t p = argc > 2 ? (uint32_t)atoi(argv[1]) : STAGES,
             m = argc > 2 ? (uint32_t)atoi(argv[2]) : 8192;
    struct rec_error err;

    for (uint32_t i = 0; i < STAGES; i++) {
        forward[i] = 1;
        backward[i] = 2;
    }
    for (int i = 0; i < 3; i++) {
        pipe[i] = (struct pipeline){.p = p < STAGES ? p : STAGES,
                                    .m = m,
                                    .v = 1,
                                    .forward = forward,
                                    .backward = backward,
                                    .transfer = 0.01,
                                    .chained = i == 1,
                                    .lean = i < 2};
        if (!pipeline_make(&pipe[i], &err)) {
            fprintf(stderr, "schedule: %s\n", err.text);
            return 1;
        }
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 3; i++)
            seconds[i][round] = step_seconds(&pipe[i], &makespan[i]);
    for (int i = 0; i < 3; i++)
        qsort(seconds[i], ROUNDS, sizeof seconds[i][0], compare);
    if (makespan[0] != makespan[1] || makespan[0] != makespan[2]) {
        fprintf(stderr, "schedule: %.17g, %.17g and %.17g are not the same makespan\n",
                makespan[0], makespan[1], makespan[2]);
        return 1;
    }
    printf("schedule, 1F1B of %zu ops, by lanes\t%.1f\tM ops/s\t\n", pipe[0].graph.nops,
           1e-6 * (double)pipe[0].graph.nops / seconds[0][ROUNDS / 2]);
    printf("schedule, 1F1B by lanes, against deps from op to op\t%.2f\tx\t<= 1\n",
           seconds[0][ROUNDS / 2] / seconds[1][ROUNDS / 2]);
    printf("schedule, 1F1B with activations held, against without\t%.2f\tx\t\n",
           seconds[2][ROUNDS / 2] / seconds[0][ROUNDS / 2]);
    for (int i = 0; i < 3; i++)
        pipeline_free(&pipe[i]);
    return 0;
}
