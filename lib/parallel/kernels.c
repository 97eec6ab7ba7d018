/*
 * How long kernels take: matrix products in tiles and waves, attention, and what only
 * moves bytes. A stack's share says what its products reach beside this form; where a
 * table of measured kernels has the kernel, its time stands as it is.
 */
#include "private.h"

#include <math.h>

/* Rows and columns of a tile, and what share of the largest tiles' speed it reaches: a
 * small one loads more for each multiply-add (fitted to
 * measured products of A100). */
static const struct {
    double m, n, share;
} tiles[] = {{256, 128, 1}, {128, 256, 1}, {128, 128, 0.86}, {64, 128, 0.7}};

/* A tile takes as long as so many more elements of k: it starts and ends. */
static const double start = 140;

/* Kernels lose if sizes are no multiples of 64, and much more if none of 8. */
static double
alignment(double m, double n, double k)
{
    double worst = 1;
    const double size[] = {m, n, k};
    for (int i = 0; i < 3; i++) {
        double slow = fmod(size[i], 8) != 0 ? 2.1 : fmod(size[i], 64) != 0 ? 1.4 : 1;
        worst = slow > worst ? slow : worst;
    }
    return worst;
}

double
parallel_product(const struct parallel_machine *machine, const struct parallel_product *p,
                 double *measured)
{
    double peak = machine->peak[p->precision] * machine->stack->share, best = INFINITY;
    double element = p->precision == PARALLEL_BF16  ? 2
                     : p->precision == PARALLEL_FP8 ? 1
                                                    : 0.5625;
    double bytes = p->count * (element * (p->m * p->k + p->k * p->n) +
                               (p->accumulate ? 8 : 2) * p->m * p->n);
    double known = parallel_measured_product(machine, p);
    if (known > 0) {
        *measured += known;
        return known;
    }
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        double all = p->count * ceil(p->m / tiles[i].m) * ceil(p->n / tiles[i].n);
        double waves = ceil(all / machine->processors);
        double seconds = waves * machine->processors * 2 * tiles[i].m * tiles[i].n *
                         (p->k + start) / (peak * tiles[i].share);
        best = seconds < best ? seconds : best;
    }
    best *= alignment(p->m, p->n, p->k);
    return fmax(machine->launch + best, parallel_move(machine, bytes));
}

double
parallel_move(const struct parallel_machine *machine, double bytes)
{
    if (bytes <= 0)
        return 0;
    return machine->launch + bytes / (machine->bandwidth * machine->stack->memory);
}
