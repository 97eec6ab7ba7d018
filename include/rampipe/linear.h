/*
 * rampipe/linear.h - linear programs, solved by the simplex of GLPK. No other room
 * includes GLPK.
 *
 *     most of  sum value[j] x[j]   with   0 <= x[j] <= most[j]
 *                                  and    least[i] <= sum factor[i,j] x[j] <= most[i]
 */
#ifndef RAMPIPE_LINEAR_H
#define RAMPIPE_LINEAR_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct linear_column {
    double value, most; /* `most` is finite */
};

/** A row that has no column in the first basis, see linear_row.start. */
#define LINEAR_OWN UINT32_MAX

struct linear_row {
    double least, most; /* `least` may be -INFINITY; if both are equal, an equation */
    /* The column of this row in the first basis, or LINEAR_OWN. At the start this column
     * has the value that satisfies the row, and columns that no row names are 0. No two
     * rows name the same column. The search is much faster from a feasible start. */
    uint32_t start;
};

/** A factor that is not 0. There is at most one for a row and a column. */
struct linear_entry {
    uint32_t row, column;
    double factor;
};

/** All arrays are borrowed. */
struct linear_program {
    const struct linear_row *row;
    const struct linear_column *column;
    const struct linear_entry *entry;
    size_t nrows, ncolumns, nentries;
};

/**
 * Solves a program. *optimum is not less than the true optimum, and greater by at most
 * 1e-6 * max(1, *optimum), whatever rounding did to the simplex: it is computed from the
 * prices of the dual program, which bound the value of every feasible x, and compared
 * with the value of the simplex's x. REC_BUG: the two do not agree, or no optimum was
 * found. GLPK's environment of the calling thread is created by the call and freed.
 */
bool linear_solve(const struct linear_program *program, double *optimum,
                  struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
