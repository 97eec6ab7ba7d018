/* Rounds of jobs (rounds.h). */
#include "rounds.h"

#include <stdbool.h>

static uint32_t
all_of(const struct rounds *r)
{
    return ((uint32_t)1 << r->n) - 1;
}

uint32_t
rounds_find(const struct rounds *r, uint64_t key)
{
    uint32_t i = 0;
    while (i < r->n && r->kind[i].key != key)
        i++;
    return i;
}

/* Adds a kind in the first round, in which all kinds so far have come. */
static void
add(struct rounds *r, uint64_t key, double sequential)
{
    uint32_t i = r->n++;
    for (; i > 0 && r->kind[i - 1].sequential > sequential; i--)
        r->kind[i] = r->kind[i - 1];
    r->kind[i].key = key;
    r->kind[i].sequential = sequential;
    r->come = all_of(r);
}

void
rounds_arrive(struct rounds *r, uint64_t key, double sequential)
{
    uint32_t i = rounds_find(r, key);
    bool is_whole = r->come == all_of(r);
    if (i == r->n && r->whole == 0 && r->n < ROUNDS_KINDS) {
        add(r, key, sequential);
    } else if (i < r->n && is_whole) {
        r->whole++;
        r->come = (uint32_t)1 << i;
    } else if (i < r->n && !(r->come >> i & 1)) {
        r->come |= (uint32_t)1 << i;
    } else {
        *r = (struct rounds){0};
        add(r, key, sequential);
    }
}

uint32_t
rounds_left(const struct rounds *r)
{
    if (r->whole < 2 || r->n < 2)
        return 0;
    return r->come == all_of(r) ? r->come : all_of(r) & ~r->come;
}

uint32_t
rounds_left_after(const struct rounds *r, uint32_t left, uint32_t kind)
{
    left &= ~((uint32_t)1 << kind);
    return left ? left : all_of(r);
}
