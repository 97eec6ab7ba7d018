/* Jobs that come in rounds, each kind once in a round, as `tracegen jobs --sampling
 * remove-and-repeat` and `cycle` make them: which kinds are still to come is known. */
#ifndef RAMPIPE_ALLOC_ROUNDS_H
#define RAMPIPE_ALLOC_ROUNDS_H

#include <stdint.h>

enum { ROUNDS_KINDS = 16 }; /* at most; streams with more kinds have no rounds here */

/* Starts as all 0. */
struct rounds {
    uint32_t n; /* kinds, in ascending order of their times */
    struct {
        uint64_t key;
        double sequential; /* time of a step, seconds */
    } kind[ROUNDS_KINDS];
    uint32_t come;  /* bit i: kind i has come in this round */
    uint64_t whole; /* rounds of the same kinds before this one, without a break */
};

/* A job of a kind has arrived. Kinds have different keys. */
void rounds_arrive(struct rounds *rounds, uint64_t key, double sequential);
/* Bit i: kind i is still to come in this round; when all have come, all of the next one
 * are. 0: jobs have not come in two whole rounds of two kinds or more. */
uint32_t rounds_left(const struct rounds *rounds);
/* The same after a kind of them, by its number, has come. */
uint32_t rounds_left_after(const struct rounds *rounds, uint32_t left, uint32_t kind);
/* The number of a kind; rounds->n: it has not come. */
uint32_t rounds_find(const struct rounds *rounds, uint64_t key);

#endif
