/* How many decisions a second the batch of learn_batch.h takes, with random actions that
 * can start. usage: batch INPUT COPIES STEPS INTERARRIVAL */
#include "rampipe/learn_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int
main(int argc, char **argv)
{
    struct learn_batch_options options = {
        .cluster = "ramp:4,4,2,1.6e12,80e9,propagation=50e-9,io=100e-9",
        .fraction = "uniform:0.1:1",
        .steps = "fixed:50",
        .jobs = 1000};
    struct learn_batch_arrays to = {0};
    struct learn_batch *batch;
    uint32_t n, actions, random = 1, seed = 1;
    int32_t *action;
    clock_t start = 0;
    char why[500];
    long steps, warm;
    if (argc != 5)
        return 2;
    options.input = argv[1];
    options.copies = n = (uint32_t)atoi(argv[2]);
    steps = atol(argv[3]);
    warm = steps / 2;
    options.interarrival = argv[4];
    if (!(batch = learn_batch_open(&options, why, sizeof why))) {
        fprintf(stderr, "batch: %s\n", why);
        return 1;
    }
    actions = learn_batch_actions(batch);
    to.feature = calloc((size_t)n * actions * learn_batch_features(), sizeof *to.feature);
    to.mask = calloc((size_t)n * actions, sizeof *to.mask);
    to.reward = calloc(n, sizeof *to.reward);
    to.ended = calloc(n, sizeof *to.ended);
    action = calloc(n, sizeof *action);
    if (!to.feature || !to.mask || !to.reward || !to.ended || !action)
        return 1;
    learn_batch_use(batch, &to);
    for (uint32_t i = 0; i < n; i++)
        if (!learn_batch_reset(batch, i, seed++))
            return 1;
    for (long s = 0; s < steps; s++) {
        if (s == warm)
            start = clock();
        for (uint32_t i = 0; i < n; i++) {
            const uint8_t *mask = to.mask + (size_t)i * actions;
            uint32_t can = 0;
            for (uint32_t a = 1; a < actions; a++)
                can += mask[a];
            random = random * 1664525 + 1013904223;
            can = can ? (random >> 16) % can + 1 : 0;
            action[i] = 0;
            for (uint32_t a = 1; a < actions && can; a++)
                if (mask[a] && --can == 0)
                    action[i] = (int32_t)a;
        }
        if (!learn_batch_step(batch, action))
            return 1;
        for (uint32_t i = 0; i < n; i++)
            if (to.ended[i] && !learn_batch_reset(batch, i, seed++))
                return 1;
    }
    printf("%.0f\n",
           (double)(steps - warm) * n * CLOCKS_PER_SEC / (double)(clock() - start));
    learn_batch_close(batch);
    free(to.feature);
    free(to.mask);
    free(to.reward);
    free(to.ended);
    free(action);
    return 0;
}
