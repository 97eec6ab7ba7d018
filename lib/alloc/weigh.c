/* Weighing what a value says with futures (weigh.h). */
#include "weigh.h"

#include <math.h>

/* Futures of all answers so far that count in the variance of each: where few futures
 * happen to be all the same, it is not 0. */
enum { LENT = 20 };

double
weigh(struct weighing *w, double says, const double *answer, const double *base,
      uint32_t n)
{
    double mean = 0, squares = 0, chance, own;
    for (uint32_t i = 0; i < n; i++)
        mean += (answer[i] - base[i]) / n;
    if (n == 1)
        return mean;
    for (uint32_t i = 0; i < n; i++) {
        double d = answer[i] - base[i] - mean;
        squares += d * d;
    }
    w->variances += squares / (n - 1);
    w->n++;
    chance = (squares + LENT * w->variances / (double)w->n) / (n - 1 + LENT) / n;
    w->errors += (mean - says) * (mean - says) - chance;
    own = fmax(w->errors / (double)w->n, 0);
    return own + chance > 0 ? (mean * own + says * chance) / (own + chance) : mean;
}
