/* Groups of one node with other numbers of ranks than were measured. */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double
collective_bus_factor(const char *kind, uint64_t ranks)
{
    static const struct {
        const char *kind;
        double factor;
    } rows[] = {
        {"all-reduce", 2}, {"all-gather", 1}, {"reduce-scatter", 1}, {"all-to-all", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(kind, rows[i].kind) == 0)
            return rows[i].factor * (double)(ranks - 1) / (double)ranks;
    return strcmp(kind, "send-recv") == 0 ? 1 : 0;
}

static struct collective_near
near_ranks(const struct collective_groups *groups, uint64_t ranks)
{
    struct collective_near near = {NULL, NULL, NULL};
    for (size_t i = 0; i < groups->n; i++) {
        const struct collective_series *s = groups->series[i];
        if (s->nodes != 1)
            continue;
        if (s->ranks > ranks) {
            if (!near.above || s->ranks < near.above->ranks)
                near.above = s;
        } else if (!near.below || s->ranks > near.below->ranks) {
            near.second = near.below;
            near.below = s;
        } else if (!near.second || s->ranks > near.second->ranks)
            near.second = s;
    }
    return near;
}

/*
 * A ring of n ranks takes n - 1 steps (twice in an all-reduce), each with a piece of
 * S / n bytes, and the library chooses its protocol by the piece:
 *
 *     t(n, S) = c + (n - 1) step(S / n)
 *
 * So at pieces of one size, the time of two groups and with it that of any other one lies
 * on a line in n. A switch of states is where it is in other groups with such a piece,
 * not where it is with such a buffer. An all-to-all sends n - 1 pieces, likewise.
 *
 * Beyond both groups the line would also carry on what their measurements are off, and
 * between two groups next to each other it may fall. There a further rank costs at least
 * its piece, at the bandwidth of the larger group with its largest buffers.
 */
static double
ring(const struct collective_groups *groups, const struct collective_series *a,
     const struct collective_series *b, uint64_t ranks, double size)
{
    double piece = size / (double)ranks;
    double steps = (double)(ranks - a->ranks) / (double)(b->ranks - a->ranks);
    double from = collective_curve(groups->table, a, piece * (double)a->ranks);
    double to = collective_curve(groups->table, b, piece * (double)b->ranks);

    if (ranks > b->ranks) {
        double least, largest, further = (double)(ranks - b->ranks);
        collective_range(groups->table, b, &least, &largest);
        least = (collective_curve(groups->table, b, 2 * largest) -
                 collective_curve(groups->table, b, largest)) *
                piece / largest;
        return fmax(from + (to - from) * steps, to + least * further);
    }
    return from + (to - from) * steps;
}

/* The logarithm of the factor from series a to b around a size. The mean over nearby
 * sizes has less of the jitter of single measurements. */
static double
growth(const struct collective_groups *groups, const struct collective_series *a,
       const struct collective_series *b, double size)
{
    double from, to, sum = 0;
    enum { HALF = 3 };
    collective_range(groups->table, b, &from, &to);
    for (int j = -HALF; j <= HALF; j++) {
        double probe = fmin(fmax(ldexp(size, j), from), to);
        sum += log(collective_curve(groups->table, b, probe) /
                   collective_curve(groups->table, a, probe));
    }
    return sum / (2 * HALF + 1);
}

/* The time of a series without half of the variance of single measurements: a parabola
 * through the logarithms at five sizes (Savitzky and Golay, "Smoothing and
 * Differentiation of Data", 1964). At the ends of what was measured there are no five. */
static double
smooth(const struct collective_groups *groups, const struct collective_series *b,
       double size)
{
    static const double weight[] = {-3 / 35., 12 / 35., 17 / 35., 12 / 35., -3 / 35.};
    double from, to, sum = 0;
    enum { HALF = 2 };
    collective_range(groups->table, b, &from, &to);
    if (ldexp(size, -HALF) < from || ldexp(size, HALF) > to)
        return collective_curve(groups->table, b, size);
    for (int j = -HALF; j <= HALF; j++)
        sum += weight[j + HALF] * log(collective_curve(groups->table, b, ldexp(size, j)));
    return exp(sum);
}

bool
collective_law_ranks(const struct collective_groups *groups, uint64_t ranks, double size,
                     struct collective_answer *answer)
{
    struct collective_near near = near_ranks(groups, ranks);
    const struct collective_series *a = near.above ? near.below : near.second;
    const struct collective_series *b = near.above ? near.above : near.below;
    bool is_ring;

    if (!a || !b)
        return false;
    is_ring = collective_bus_factor(b->what.kind, 2) > 0;
    if (is_ring)
        answer->seconds = ring(groups, a, b, ranks, size);
    else if (near.above) {
        double share = log((double)ranks / (double)a->ranks) /
                       log((double)b->ranks / (double)a->ranks);
        answer->seconds = pow(collective_curve(groups->table, a, size), 1 - share) *
                          pow(collective_curve(groups->table, b, size), share);
    } else {
        /* Each further doubling of the ranks costs the factor of the last one. */
        double doublings = log2((double)ranks / (double)b->ranks) /
                           log2((double)b->ranks / (double)a->ranks);
        answer->seconds =
            smooth(groups, b, size) * exp(growth(groups, a, b, size) * doublings);
    }
    answer->how = COLLECTIVE_RANKS;
    answer->beyond = is_ring && !near.above;
    snprintf(
        answer->law, sizeof answer->law, "%s: %s of %llu and %llu ranks%s", b->system,
        is_ring ? "a ring of such pieces, from those" : "growth by doublings, from those",
        (unsigned long long)a->ranks, (unsigned long long)b->ranks,
        answer->beyond ? "; larger groups of one node were never checked" : "");
    return answer->seconds > 0;
}
