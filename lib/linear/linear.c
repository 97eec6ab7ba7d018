/*
 * Linear programs through GLPK's simplex. What the simplex computes is rounded, so its
 * optimum is not used as it is: bound() turns its dual prices into a value that is proven
 * to be an upper bound, whatever the prices are. Whole numbers are found by GLPK's branch
 * and bound, which begins at that optimum.
 */
#include "rampipe/linear.h"

#include <glpk.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

/* When GLPK runs out of memory or finds a misuse, it calls an error hook, and ends the
 * process if the hook returns. So the hook must leave by longjmp(). */
struct solver {
    const struct linear_program *program;
    jmp_buf out;
    double value;      /* of the objective, as the simplex says */
    double *price;     /* per row: its dual value */
    int *row, *column; /* of the entries; arrays and indexes begin at 1, as in GLPK */
    double *factor;
    int status; /* 0: solved; else GLPK's error, or minus the status of its solution */
    /* Only for whole numbers: */
    const struct linear_whole_options *options; /* NULL: without */
    struct linear_whole *whole;
    bool branches; /* the root is not whole: a guess has been asked for */
    double best;   /* bound of the branches that are open when the search is stopped */
    double *x, *y; /* per column: of a node; a guess, or the solution found */
};

static void
leave(void *context)
{
    struct solver *s = context;
    longjmp(s->out, 1);
}

/* GLPK's terminal hook: a result other than 0 suppresses its output. */
static int
hush(void *context, const char *text)
{
    (void)context, (void)text;
    return 1;
}

static void
fill_rows(const struct linear_program *p, glp_prob *lp)
{
    glp_add_rows(lp, (int)p->nrows);
    for (size_t i = 0; i < p->nrows; i++) {
        const struct linear_row *row = &p->row[i];
        int type = row->least == row->most ? GLP_FX : isinf(row->least) ? GLP_UP : GLP_DB;
        glp_set_row_bnds(lp, (int)i + 1, type, row->least, row->most);
    }
}

static void
fill_columns(const struct linear_program *p, glp_prob *lp)
{
    glp_add_cols(lp, (int)p->ncolumns);
    for (size_t j = 0; j < p->ncolumns; j++) {
        const struct linear_column *column = &p->column[j];
        glp_set_obj_coef(lp, (int)j + 1, column->value);
        glp_set_col_bnds(lp, (int)j + 1, column->most > 0 ? GLP_DB : GLP_FX, 0,
                         column->most);
    }
}

/* Sets the first basis. GLPK begins with all rows basic and all columns nonbasic at 0; a
 * row with a start column is an equation, and exchanges places with that column. */
static void
fill_start(const struct linear_program *p, glp_prob *lp)
{
    for (size_t i = 0; i < p->nrows; i++)
        if (p->row[i].start != LINEAR_OWN) {
            glp_set_row_stat(lp, (int)i + 1, GLP_NS);
            glp_set_col_stat(lp, (int)p->row[i].start + 1, GLP_BS);
        }
}

/* ---- whole numbers ------------------------------------------------------- */

/* Gives GLPK a guess of its user, from the optimum of the node at hand. */
static void
offer_guess(struct solver *s, glp_tree *tree)
{
    glp_prob *lp = glp_ios_get_prob(tree);
    for (size_t j = 0; j < s->program->ncolumns; j++)
        s->x[j] = glp_get_col_prim(lp, (int)j + 1);
    s->options->guess(s->options->context, s->x, s->y + 1);
    glp_ios_heur_sol(tree, s->y);
}

/* Called by GLPK in each node. */
static void
watch(glp_tree *tree, void *context)
{
    struct solver *s = context;
    int nodes, best;
    if (glp_ios_reason(tree) == GLP_IHEUR) {
        s->branches = true;
        if (s->options->guess)
            offer_guess(s, tree);
    }
    glp_ios_tree_size(tree, NULL, NULL, &nodes);
    s->whole->nodes = (uint64_t)nodes;
    if (s->whole->nodes < s->options->nodes || !s->branches ||
        glp_ios_reason(tree) != GLP_ISELECT)
        return;
    if ((best = glp_ios_best_node(tree)) != 0) {
        s->best = glp_ios_node_bound(tree, best);
        glp_ios_terminate(tree);
    }
}

/* Branches from the optimum of the simplex. s->y becomes the best solution; without one
 * its first number is NAN. */
static void
branch(struct solver *s, glp_prob *lp)
{
    size_t n = s->program->ncolumns;
    glp_iocp options;
    for (size_t j = s->options->first; j < n; j++)
        glp_set_col_kind(lp, (int)j + 1, GLP_IV);
    glp_init_iocp(&options);
    options.br_tech = GLP_BR_DTH;
    options.bt_tech = GLP_BT_BLB;
    options.mir_cuts = options.gmi_cuts = GLP_ON;
    options.cb_func = watch;
    options.cb_info = s;
    s->best = -INFINITY;
    s->status = glp_intopt(lp, &options);
    if (s->status == GLP_ESTOP)
        s->status = 0;
    s->y[0] = NAN;
    if (glp_mip_status(lp) == GLP_OPT || glp_mip_status(lp) == GLP_FEAS)
        for (size_t j = 0; j < n; j++)
            s->y[j] = glp_mip_col_val(lp, (int)j + 1);
}

static void
solve(struct solver *s)
{
    const struct linear_program *p = s->program;
    glp_prob *lp = glp_create_prob();
    glp_smcp options;

    glp_set_obj_dir(lp, GLP_MAX);
    fill_rows(p, lp);
    fill_columns(p, lp);
    glp_load_matrix(lp, (int)p->nentries, s->row, s->column, s->factor);
    fill_start(p, lp);
    glp_init_smcp(&options);
    s->status = glp_simplex(lp, &options);
    if (s->status == 0 && glp_get_status(lp) != GLP_OPT)
        s->status = -glp_get_status(lp);
    s->value = glp_get_obj_val(lp);
    for (size_t i = 0; i < p->nrows; i++)
        s->price[i] = glp_get_row_dual(lp, (int)i + 1);
    if (s->options && s->status == 0)
        branch(s, lp);
}

/* Solves in a GLPK environment of its own, which frees everything at once even after the
 * error hook. False: out of memory. */
static bool
run_glpk(struct solver *s)
{
    bool ok;
    if (glp_init_env() > 1)
        return false;
    glp_term_hook(hush, NULL);
    glp_error_hook(leave, s);
    ok = setjmp(s->out) == 0;
    if (ok)
        solve(s);
    glp_free_env();
    return ok;
}

/*
 * An upper bound of the optimum by weak duality. For any prices y of the rows and any
 * feasible x, with left = value - y A,
 *     value x = y A x + left x
 *            <= sum over the rows of y[i] * (y[i] > 0 ? most[i] : least[i])
 *             + sum over the columns with left[j] > 0 of left[j] * most[j].
 * A negative price of a row without `least` would give no bound, and is set to 0. `left`
 * has room for a number per column.
 */
static double
bound(const struct solver *s, double *left)
{
    const struct linear_program *p = s->program;
    double sum = 0;
    for (size_t i = 0; i < p->nrows; i++) {
        if (s->price[i] < 0 && isinf(p->row[i].least))
            s->price[i] = 0;
        if (s->price[i] != 0)
            sum += s->price[i] * (s->price[i] > 0 ? p->row[i].most : p->row[i].least);
    }
    for (size_t j = 0; j < p->ncolumns; j++)
        left[j] = p->column[j].value;
    for (size_t k = 0; k < p->nentries; k++)
        left[p->entry[k].column] -= s->price[p->entry[k].row] * p->entry[k].factor;
    for (size_t j = 0; j < p->ncolumns; j++)
        if (left[j] > 0)
            sum += left[j] * p->column[j].most;
    return sum;
}

/* The bound holds whatever the simplex did; that it agrees with the value of its x shows
 * that it is also tight. */
static bool
solve_and_check(struct solver *s, double *left, double *optimum, struct rec_error *err)
{
    const struct linear_program *p = s->program;
    for (size_t k = 0; k < p->nentries; k++) {
        s->row[k + 1] = (int)p->entry[k].row + 1;
        s->column[k + 1] = (int)p->entry[k].column + 1;
        s->factor[k + 1] = p->entry[k].factor;
    }
    if (!run_glpk(s))
        return rec_fail_memory(err);
    *optimum = bound(s, left);
    if (s->status == 0 && fabs(*optimum - s->value) <= 1e-6 * fmax(1, fabs(*optimum)))
        return true;
    return rec_fail(
        err, REC_BUG,
        "a linear program of %zu rows and %zu columns was not solved (%d): %.17g "
        "is not %.17g",
        p->nrows, p->ncolumns, s->status, s->value, *optimum);
}

/* Solves with or without whole numbers: s has what is asked for. */
static bool
start(struct solver *s, double *optimum, struct rec_error *err)
{
    const struct linear_program *p = s->program;
    size_t n = p->nentries + 1;
    double *left = calloc(p->ncolumns + 1, sizeof *left);
    bool ok;

    s->price = calloc(p->nrows + 1, sizeof *s->price);
    s->row = calloc(n, sizeof *s->row);
    s->column = calloc(n, sizeof *s->column);
    s->factor = calloc(n, sizeof *s->factor);
    ok = left && s->price && s->row && s->column && s->factor;
    ok = ok ? solve_and_check(s, left, optimum, err) : rec_fail_memory(err);
    free(left);
    free(s->price);
    free(s->row);
    free(s->column);
    free(s->factor);
    return ok;
}

bool
linear_solve(const struct linear_program *program, double *optimum, struct rec_error *err)
{
    struct solver s = {.program = program};
    return start(&s, optimum, err);
}

/* The value of s->y in whole numbers; -INFINITY if there is none, or if it breaks a row.
 * `sum` has room for a number per row. */
static double
value_of(struct solver *s, double *sum)
{
    const struct linear_program *p = s->program;
    double value = 0;
    if (isnan(s->y[0]))
        return -INFINITY;
    for (size_t j = 0; j < p->ncolumns; j++) {
        s->y[j] = round(s->y[j]);
        if (s->y[j] < 0 || s->y[j] > p->column[j].most)
            return -INFINITY;
        value += p->column[j].value * s->y[j];
    }
    for (size_t k = 0; k < p->nentries; k++)
        sum[p->entry[k].row] += p->entry[k].factor * s->y[p->entry[k].column];
    for (size_t i = 0; i < p->nrows; i++)
        if (sum[i] < p->row[i].least || sum[i] > p->row[i].most)
            return -INFINITY;
    return value;
}

bool
linear_solve_whole(const struct linear_program *program,
                   const struct linear_whole_options *options, struct linear_whole *whole,
                   struct rec_error *err)
{
    struct solver s = {.program = program, .options = options, .whole = whole};
    double *sum = calloc(program->nrows + 1, sizeof *sum), optimum;
    bool ok;

    s.x = calloc(program->ncolumns + 1, sizeof *s.x);
    s.y = calloc(program->ncolumns + 1, sizeof *s.y);
    *whole = (struct linear_whole){.nodes = 1};
    ok = sum && s.x && s.y ? start(&s, &optimum, err) : rec_fail_memory(err);
    if (ok) {
        whole->found = value_of(&s, sum); /* whole, as the optimum: bounds round down */
        /* The linear optimum may be rounded to just below a whole number. What was found
         * can be had, so no bound is below it. */
        whole->bound =
            fmax(whole->found, fmin(floor(optimum + 1e-6), floor(s.best + 1e-3)));
        if (isinf(whole->bound))
            ok =
                rec_fail(err, REC_BUG,
                         "a program in whole numbers of %zu rows and %zu columns was not "
                         "solved",
                         program->nrows, program->ncolumns);
    }
    free(sum);
    free(s.x);
    free(s.y);
    return ok;
}
