/*
 * rampipe/linear.h - linear programs, solved by GLPK's simplex, which is known here and
 * nowhere else.
 *
 *     most of  sum value[j] x[j]   with   0 <= x[j] <= most[j]
 *                                  and    least[i] <= sum factor[i,j] x[j] <= most[i]
 */
#ifndef RAMPIPE_LINEAR_H
#define RAMPIPE_LINEAR_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct linear_column {
    double value, most; /* most is finite */
};

/** The row is its own at the start, see below. */
#define LINEAR_OWN UINT32_MAX

struct linear_row {
    double least, most; /* least may be -INFINITY; equal: an equation */
    /* Where the search starts: each row has a column that makes up for what the others
     * are, another one for each, or LINEAR_OWN; all others are 0. From a start that is
     * feasible it is much faster. */
    uint32_t start;
};

/** At most one of a row and a column; not 0. */
struct linear_entry {
    uint32_t row, column;
    double factor;
};

/** The arrays are the caller's. */
struct linear_program {
    const struct linear_row *row;
    const struct linear_column *column;
    const struct linear_entry *entry;
    size_t nrows, ncolumns, nentries;
};

/**
 * *optimum is not less than the true one, and at most 1e-6 of it (and of 1) more,
 * whatever rounding did to the simplex: what is given is the value of its prices (the
 * dual program), which bounds that of any x, summed here, and held against that of its x.
 * REC_BUG: they do not agree, or there is no x. GLPK's environment of the calling thread
 * is made for it and freed.
 */
bool linear_solve(const struct linear_program *program, double *optimum,
                  struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
