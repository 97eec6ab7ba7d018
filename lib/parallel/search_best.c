/* The best mixes of a search: a pool by the closed form, and their simulation. */
#include "search.h"

#include <math.h>
#include <stdlib.h>

/* What orders mixes of the same time: memory, then the degrees, so that the simpler one
 * comes first. */
static int
compare_mixes(const struct parallel_mix *a, const struct parallel_mix *b)
{
    for (int i = 0; i < PARALLEL_CHOICES; i++) {
        uint32_t x = parallel_chosen(a, (enum parallel_choice)i);
        uint32_t y = parallel_chosen(b, (enum parallel_choice)i);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static int
compare(double a_seconds, double a_memory, const struct parallel_mix *a, double b_seconds,
        double b_memory, const struct parallel_mix *b)
{
    if (a_seconds != b_seconds)
        return a_seconds < b_seconds ? -1 : 1;
    if (a_memory != b_memory)
        return a_memory < b_memory ? -1 : 1;
    return compare_mixes(a, b);
}

static int
compare_entries(const void *a, const void *b)
{
    const struct pool_entry *x = a, *y = b;
    return compare(x->closed.seconds, x->closed.memory, &x->mix, y->closed.seconds,
                   y->closed.memory, &y->mix);
}

static int
compare_ranked(const void *a, const void *b)
{
    const struct parallel_ranked *x = a, *y = b;
    return compare(x->step.seconds, parallel_memory_sum(&x->step.memory), &x->mix,
                   y->step.seconds, parallel_memory_sum(&y->step.memory), &y->mix);
}

/* ---- the pool ------------------------------------------------------------------ */

static void
swap(struct pool *pool, size_t i, size_t j)
{
    struct pool_entry entry = pool->entry[i];
    pool->entry[i] = pool->entry[j];
    pool->entry[j] = entry;
}

static bool
worse(const struct pool *pool, size_t i, size_t j)
{
    return compare_entries(&pool->entry[i], &pool->entry[j]) > 0;
}

static void
sink(struct pool *pool)
{
    size_t i = 0, child;
    while ((child = 2 * i + 1) < pool->n) {
        if (child + 1 < pool->n && worse(pool, child + 1, child))
            child++;
        if (!worse(pool, child, i))
            return;
        swap(pool, i, child);
        i = child;
    }
}

static void
leave_out(struct pool *pool, double seconds)
{
    if (!pool->full || seconds < pool->left)
        pool->left = seconds;
    pool->full = true;
}

bool
pool_refuses(struct pool *pool, double seconds)
{
    if (pool->n < pool->limit || seconds <= pool->entry[0].closed.seconds)
        return false;
    leave_out(pool, seconds);
    return true;
}

bool
pool_add(struct pool *pool, const struct parallel_mix *mix,
         const struct parallel_closed *closed, struct rec_error *err)
{
    const struct pool_entry entry = {*mix, *closed};
    if (pool->n == pool->limit) {
        if (compare_entries(&entry, pool->entry) >= 0) {
            leave_out(pool, closed->seconds);
            return true;
        }
        leave_out(pool, pool->entry[0].closed.seconds);
        pool->entry[0] = entry;
        sink(pool);
        return true;
    }
    if (!rec_grow(&pool->entry, &pool->room, pool->n + 1, sizeof *pool->entry, err))
        return false;
    pool->entry[pool->n] = entry;
    for (size_t i = pool->n++; i > 0 && worse(pool, i, (i - 1) / 2); i = (i - 1) / 2)
        swap(pool, i, (i - 1) / 2);
    return true;
}

/* ---- simulation ------------------------------------------------------------------ */

static bool
simulate(struct walk *w, const struct pool_entry *entry, struct rec_error *err)
{
    const struct parallel_search *s = w->search;
    struct parallel_found *found = w->found;
    struct parallel_ranked ranked = {.mix = entry->mix, .closed = entry->closed};
    found->simulated++;
    if (!parallel_step(s->model, &ranked.mix, &w->machine, &ranked.step, err))
        return err->code == REC_DATA; /* it is no mix after all */
    if (parallel_memory_sum(&ranked.step.memory) > s->memory)
        return true;
    for (size_t i = found->n++;; i--) { /* found->best has room for one more */
        if (i == 0 || compare_ranked(&found->best[i - 1], &ranked) <= 0) {
            found->best[i] = ranked;
            break;
        }
        found->best[i] = found->best[i - 1];
    }
    if (found->n > s->top)
        found->n = s->top;
    return true;
}

bool
search_simulate(struct walk *w, struct rec_error *err)
{
    const struct parallel_search *s = w->search;
    struct parallel_found *found = w->found;
    struct pool *pool = &w->pool;
    size_t i = 0;
    found->best = calloc(s->top + 1, sizeof *found->best);
    if (!found->best)
        return rec_fail_memory(err);
    if (pool->n > 0)
        qsort(pool->entry, pool->n, sizeof *pool->entry, compare_entries);
    for (; i < pool->n; i++) {
        bool enough = found->n == s->top && found->best[s->top - 1].step.seconds <=
                                                pool->entry[i].closed.seconds;
        if (enough)
            break;
        if (!simulate(w, &pool->entry[i], err))
            return false;
    }
    found->bound = i < pool->n  ? pool->entry[i].closed.seconds
                   : pool->full ? pool->left
                                : INFINITY;
    return true;
}
