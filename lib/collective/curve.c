/* The time of a measured series at any size. */
#include "private.h"

#include <math.h>

/* The chord between two states is steeper, or flatter, than both of them by this factor:
 * the time jumps there, and neither state says where. */
#define JUMP 1.15

static double
line(const struct collective_piece *piece, double size)
{
    return piece->latency + size / piece->rate;
}

/* Seconds for each byte up to the end of piece i, or from its beginning on. Of one that
 * was measured at one size only, that of the chord from or to its other neighbour;
 * `chord` if it has none. */
static double
slope(const struct collective_piece *piece, size_t i, size_t n, bool after, double chord)
{
    const struct collective_piece *p = &piece[i];
    if (p->from < p->to)
        return 1 / p->rate;
    if (after ? i + 1 == n : i == 0)
        return chord;
    p = &piece[after ? i : i - 1];
    return fmax(0, (line(p + 1, p[1].from) - line(p, p->to)) / (p[1].from - p->to));
}

/*
 * The time between piece i - 1 and piece i. Seconds for each byte are those of the former
 * up to the switch, and those of the latter behind it:
 *
 *   - both lines cross in between: the library changes to the faster one there, or a pipe
 *     fills, and the lines make a corner. Measured times round it off: the geometric mean
 *     of corner and chord is nearest.
 *   - they do not: the time jumps at a size that is not known. The chord is between the
 *     two states, so it is wrong by less than the jump wherever that is.
 */
static double
between(const struct collective_piece *piece, size_t i, size_t n, double size)
{
    const struct collective_piece *a = &piece[i - 1], *b = &piece[i];
    double from = line(a, a->to), to = line(b, b->from);
    double chord = (to - from) / (b->from - a->to);
    double before = slope(piece, i - 1, n, false, chord);
    double after = slope(piece, i, n, true, chord);
    double left = from + before * (size - a->to), right = to - after * (b->from - size);
    double middle = from + chord * (size - a->to), corner;

    if (chord <= 0)
        return sqrt(from * to);
    if (chord > JUMP * fmax(before, after) || chord < fmin(before, after) / JUMP)
        return middle;
    corner = before > after ? fmin(left, right) : fmax(left, right);
    return sqrt(middle * fmin(fmax(corner, from), to));
}

double
collective_curve(const struct collective_table *table,
                 const struct collective_series *series, double size)
{
    const struct collective_piece *piece = table->piece + series->first;
    size_t last = series->npieces - 1, i = 0;

    while (i < last && size > piece[i].to)
        i++;
    if (i > 0 && size < piece[i].from)
        return between(piece, i, series->npieces, size);
    /* Beyond the largest size, a state without a rate gets slower in proportion. */
    if (size > piece[i].to && isinf(piece[i].rate))
        return piece[i].latency * size / piece[i].to;
    return line(&piece[i], size);
}

double
collective_floor(const struct collective_table *table,
                 const struct collective_series *series)
{
    return collective_curve(table, series, 0);
}

void
collective_range(const struct collective_table *table,
                 const struct collective_series *series, double *from, double *to)
{
    *from = table->piece[series->first].from;
    *to = table->piece[series->first + series->npieces - 1].to;
}
