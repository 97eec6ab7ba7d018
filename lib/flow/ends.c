/* When flows end: a tree of minima. At an event the ends of hundreds of flows change, and
 * one is taken. So changes must be cheap: most of them change no minimum. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* The least child of a node. */
static double
least_child(const double *child)
{
    double a = child[0] < child[1] ? child[0] : child[1];
    double b = child[2] < child[3] ? child[2] : child[3];
    double c = child[4] < child[5] ? child[4] : child[5];
    double d = child[6] < child[7] ? child[6] : child[7];
    a = a < b ? a : b;
    c = c < d ? c : d;
    return a < c ? a : c;
}

bool
ends_reserve(struct ends *ends, size_t n, struct rec_error *err)
{
    struct ends grown = {.levels = 0};
    size_t size = ENDS_FAN * ENDS_FAN;

    if (ends->levels && n <= ends->size[0])
        return true;
    while (size < n)
        size *= 2;
    /* Each level is filled up to whole nodes of the next. */
    for (;; size = (size + ENDS_FAN - 1) / ENDS_FAN) {
        int k = grown.levels;
        grown.size[k] = size == 1 ? 1 : (size + ENDS_FAN - 1) / ENDS_FAN * ENDS_FAN;
        grown.least[k] = malloc(grown.size[k] * sizeof(double));
        if (!grown.least[k]) {
            ends_free(&grown);
            return rec_fail_memory(err);
        }
        for (size_t i = 0; i < grown.size[k]; i++)
            grown.least[k][i] = (double)INFINITY;
        grown.levels++;
        if (size == 1)
            break;
    }
    for (size_t i = 0; ends->levels && i < ends->size[0]; i++)
        ends_set(&grown, i, ends->least[0][i]);
    ends_free(ends);
    *ends = grown;
    return true;
}

void
ends_set(struct ends *ends, size_t i, double time)
{
    double old = ends->least[0][i];
    ends->least[0][i] = time;
    for (int k = 1; k < ends->levels; k++) {
        double *least = &ends->least[k][i /= ENDS_FAN], before = *least;
        if (time < before)
            *least = time;
        else if (old == before)
            *least = least_child(&ends->least[k - 1][i * ENDS_FAN]);
        if (*least == before)
            return;
        old = before;
        time = *least;
    }
}

double
ends_first(const struct ends *ends)
{
    return ends->levels ? ends->least[ends->levels - 1][0] : (double)INFINITY;
}

/* Of the times below node i of level k. Returns the end of the list. */
static uint32_t *
collect(const struct ends *ends, int k, size_t i, double time, uint32_t *list)
{
    if (!(ends->least[k][i] <= time))
        return list;
    if (k == 0) {
        *list = (uint32_t)i;
        return list + 1;
    }
    for (size_t child = i * ENDS_FAN; child < (i + 1) * ENDS_FAN; child++)
        list = collect(ends, k - 1, child, time, list);
    return list;
}

size_t
ends_until(const struct ends *ends, double time, uint32_t *list)
{
    if (!ends->levels)
        return 0;
    return (size_t)(collect(ends, ends->levels - 1, 0, time, list) - list);
}

void
ends_free(struct ends *ends)
{
    for (int k = 0; k < ends->levels; k++)
        free(ends->least[k]);
    *ends = (struct ends){.levels = 0};
}
