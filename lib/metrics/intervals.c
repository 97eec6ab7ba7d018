/* The intervals of time that a case belongs to. */
#include "engine.h"

#include <math.h>

/* A case that covers more intervals than this is added to nodes of higher levels. Shorter
 * cases are added to each interval: another order of adding would change the last digits
 * of their results. */
enum { LONG = 1024 };

/* The sums of a node. All nodes before it in its level are made, too. NULL: *err. */
static double *
make_node(struct metrics *m, size_t level, size_t node, struct rec_error *err)
{
    struct level *at = &m->level[level];
    size_t n = m->family->nsums;
    if (!rec_grow(&at->sum, &at->room, (node + 1) * n, sizeof *at->sum, err))
        return NULL;
    if (node >= at->n) {
        memset(at->sum + at->n * n, 0, (node + 1 - at->n) * n * sizeof *at->sum);
        at->n = node + 1;
        m->nlevels = level < m->nlevels ? m->nlevels : level + 1;
    }
    return at->sum + node * n;
}

/* Makes all intervals from 0 up to a time in seconds. */
static bool
make_intervals(struct metrics *m, double time, struct rec_error *err)
{
    double need = floor(time / m->seconds) + 1;
    if (!rec_limit(&m->limit, need, "rows", err))
        return false;
    if (!(need < (double)((uint64_t)1 << METRICS_LEVELS)))
        return rec_fail_memory(err);
    if ((size_t)need > m->nintervals)
        m->nintervals = (size_t)need;
    return make_node(m, 0, (size_t)need - 1, err) != NULL;
}

/* The seconds of a span that lie in interval i. */
static double
share(const struct metrics *m, struct metrics_span at, size_t i)
{
    return fmin(at.to, (double)(i + 1) * m->seconds) -
           fmax(at.from, (double)i * m->seconds);
}

/* Adds an amount to each of the intervals from, ..., to - 1, with as few nodes as
 * possible. In each level, the nodes at the two ends that have no partner in the range
 * get the amount; the parents of the others go on. */
static bool
spread_long(struct metrics *m, size_t sum, size_t from, size_t to, double amount,
            struct rec_error *err)
{
    for (size_t k = 0; from < to; k++, from /= 2, to /= 2) {
        size_t odd[2], n = 0;
        if (from % 2 == 1)
            odd[n++] = from++;
        if (to % 2 == 1)
            odd[n++] = --to;
        while (n > 0) {
            double *node = make_node(m, k, odd[--n], err);
            if (!node)
                return false;
            node[sum] += amount;
        }
    }
    return true;
}

bool
metrics_spread_case(struct metrics *m, const struct metrics_case *one,
                    struct rec_error *err)
{
    const struct metrics_family *family = m->family;
    size_t n = family->nsums;

    for (size_t s = 0; s < n; s++) {
        struct metrics_span at = one->at[family->sums[s].at];
        double amount = one->amount[s];
        size_t first, last;
        if (isnan(at.from))
            continue;
        if (!make_intervals(m, at.to, err))
            return false;
        if (isnan(amount))
            continue;
        first = (size_t)(at.from / m->seconds);
        last = (size_t)(at.to / m->seconds);
        if (!family->sums[s].rate) {
            m->level[0].sum[last * n + s] += amount;
            continue;
        }
        if (last - first > LONG) {
            if (!spread_long(m, s, first + 1, last, amount * m->seconds, err))
                return false;
            m->level[0].sum[first * n + s] += amount * share(m, at, first);
            first = last;
        }
        for (size_t i = first;
             i < m->nintervals && fmax(at.from, (double)i * m->seconds) < at.to; i++)
            m->level[0].sum[i * n + s] += amount * share(m, at, i);
    }
    return true;
}
