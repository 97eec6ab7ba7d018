/*
 * rampipe/linear.h - linear programs, solved by the simplex of GLPK, and the same with
 * whole numbers, by its branch and bound. No other room includes GLPK.
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

/** What branch and bound found of a program in whole numbers. */
struct linear_whole {
    double bound;   /* no solution in whole numbers has a greater value */
    double found;   /* the value of the best solution found; -INFINITY: none was */
    uint64_t nodes; /* of the tree of branches, the root included */
};

struct linear_whole_options {
    /* The columns from this one on are whole numbers. Their values are whole numbers,
     * too, and those of the other columns are 0; these become whole if the first are. */
    uint32_t first;
    uint64_t nodes; /* the search ends when the tree has so many; at least 1 */
    /* Makes a feasible guess[ncolumns] of the optimum of a node, x[ncolumns]; it is used
     * if it is better than what has been found. May be NULL. */
    void (*guess)(void *context, const double *x, double *guess);
    void *context;
};

/**
 * The program in whole numbers. The search counts nodes and not time, so it gives the
 * same result in each run. The value of `found` is that of a solution whose rows were
 * checked. `bound` believes the simplex of each node to 1e-3, by which GLPK cuts branches
 * off that cannot hold one more; at the root it is at most what linear_solve() proves.
 * REC_BUG as there.
 */
bool linear_solve_whole(const struct linear_program *program,
                        const struct linear_whole_options *options,
                        struct linear_whole *whole, struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
