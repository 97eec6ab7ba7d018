/* Linear programs: optima known by hand, starts, what has no solution. */
#include "unit.h"

#include "rampipe/linear.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define PROGRAM(r, c, e) (&(struct linear_program){r, c, e, COUNT(r), COUNT(c), COUNT(e)})

/* x + y <= 4, x + 3 y <= 6, 3 x + 2 y: (4, 0) has 12, (3, 1) 11, (0, 2) 4. Were x at most
 * 2.5, y would be 3.5 / 3: 7.5 + 7 / 3. */
static void
test_two_rows(void **state)
{
    struct linear_row rows[] = {{-INFINITY, 4, LINEAR_OWN}, {-INFINITY, 6, LINEAR_OWN}};
    struct linear_column columns[] = {{3, 100}, {2, 100}};
    struct linear_entry entries[] = {{0, 0, 1}, {0, 1, 1}, {1, 0, 1}, {1, 1, 3}};
    struct rec_error err;
    double optimum;
    (void)state;
    assert_true(linear_solve(PROGRAM(rows, columns, entries), &optimum, &err));
    assert_near(optimum, 12, 1e-9);
    columns[0].most = 2.5;
    assert_true(linear_solve(PROGRAM(rows, columns, entries), &optimum, &err));
    assert_near(optimum, 7.5 + 7.0 / 3, 1e-9);
}

/* Half of each of three, each two of which are at most 1: 1.5, where whole ones have
 * 1. */
static void
test_fraction(void **state)
{
    struct linear_row rows[3];
    struct linear_column columns[3];
    struct linear_entry entries[6];
    struct rec_error err;
    double optimum;
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        rows[i] = (struct linear_row){-INFINITY, 1, LINEAR_OWN};
        columns[i] = (struct linear_column){1, 1};
        entries[2 * i] = (struct linear_entry){i, i, 1};
        entries[2 * i + 1] = (struct linear_entry){i, (i + 1) % 3, 1};
    }
    assert_true(linear_solve(PROGRAM(rows, columns, entries), &optimum, &err));
    assert_near(optimum, 1.5, 1e-9);
}

/* Guesses the whole parts of x, which is feasible if all rows only say "at most". */
static void
round_down(void *context, const double *x, double *guess)
{
    for (uint32_t j = 0; j < *(const uint32_t *)context; j++)
        guess[j] = floor(x[j] + 1e-9);
}

/* The same three in whole numbers: one. And a knapsack: 9 x + 10 y + 11 z <= 20 of at
 * most one each, most of 5 x + 6 y + 7 z. In parts it is z and 9/10 of y, 12.4; whole, x
 * and z, 12, which is what 12.4 rounded down allows: with y and z 21 are too many. */
static void
test_whole(void **state)
{
    struct linear_row rows[3], weight[] = {{-INFINITY, 20, LINEAR_OWN}};
    struct linear_column columns[3], things[] = {{5, 1}, {6, 1}, {7, 1}};
    struct linear_entry entries[6], weights[] = {{0, 0, 9}, {0, 1, 10}, {0, 2, 11}};
    uint32_t n = 3;
    struct linear_whole_options options = {0, 100, round_down, &n};
    struct linear_whole whole;
    struct rec_error err;
    double optimum;
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        rows[i] = (struct linear_row){-INFINITY, 1, LINEAR_OWN};
        columns[i] = (struct linear_column){1, 1};
        entries[2 * i] = (struct linear_entry){i, i, 1};
        entries[2 * i + 1] = (struct linear_entry){i, (i + 1) % 3, 1};
    }
    assert_true(
        linear_solve_whole(PROGRAM(rows, columns, entries), &options, &whole, &err));
    assert_true(whole.bound == 1 && whole.found == 1 && whole.nodes >= 1);
    assert_true(linear_solve(PROGRAM(weight, things, weights), &optimum, &err));
    assert_near(optimum, 12.4, 1e-9);
    options.guess = NULL;
    assert_true(
        linear_solve_whole(PROGRAM(weight, things, weights), &options, &whole, &err));
    assert_true(whole.bound == 12 && whole.found == 12);
}

/* x0 + 2 x1 + ... + 2 x9 = 9, most of x1 + ... + x9, each at most 1: 4.5 in parts, 4
 * whole, with x0 = 1. A search of one node ends with the linear bound rounded down; it
 * may not have found a solution. */
static void
test_limit(void **state)
{
    struct linear_row rows[] = {{9, 9, 0}};
    struct linear_column columns[10] = {{0, 9}};
    struct linear_entry entries[10] = {{0, 0, 1}};
    struct linear_whole_options options = {1, 1, NULL, NULL};
    struct linear_whole whole;
    struct rec_error err;
    (void)state;
    for (uint32_t j = 1; j < 10; j++) {
        columns[j] = (struct linear_column){1, 1};
        entries[j] = (struct linear_entry){0, j, 2};
    }
    assert_true(
        linear_solve_whole(PROGRAM(rows, columns, entries), &options, &whole, &err));
    assert_true(whole.bound == 4 && whole.nodes == 1);
    assert_true(whole.found == 4 || whole.found < 0);
    options.nodes = 1000;
    assert_true(
        linear_solve_whole(PROGRAM(rows, columns, entries), &options, &whole, &err));
    assert_true(whole.bound == 4 && whole.found == 4);
}

/* Equations and rows with a least: x - y = 1, 2 <= x + y <= 3, most of -x: x = 1.5, from
 * a start with x in the first row. Prices below 0 are of the least of a row. */
static void
test_start(void **state)
{
    struct linear_row rows[] = {{1, 1, 0}, {2, 3, LINEAR_OWN}};
    struct linear_column columns[] = {{-1, 5}, {0, 5}};
    struct linear_entry entries[] = {{0, 0, 1}, {0, 1, -1}, {1, 0, 1}, {1, 1, 1}};
    struct rec_error err;
    double optimum;
    (void)state;
    assert_true(linear_solve(PROGRAM(rows, columns, entries), &optimum, &err));
    assert_near(optimum, -1.5, 1e-9);
}

/* Nothing is feasible; GLPK would end the process on an entry that is there twice. */
static void
test_unsolved(void **state)
{
    struct linear_row rows[] = {{3, 3, LINEAR_OWN}};
    struct linear_column columns[] = {{1, 1}};
    struct linear_entry entries[] = {{0, 0, 1}};
    struct linear_entry twice[] = {{0, 0, 1}, {0, 0, 1}};
    struct rec_error err = {.code = REC_OK};
    double optimum;
    (void)state;
    assert_false(linear_solve(PROGRAM(rows, columns, entries), &optimum, &err));
    assert_int_equal(err.code, REC_BUG);
    assert_non_null(strstr(err.text, "1 rows and 1 columns was not solved"));
    assert_false(linear_solve(PROGRAM(rows, columns, twice), &optimum, &err));
    rows[0].least = rows[0].most = 1; /* and the next is none the worse */
    assert_true(linear_solve(PROGRAM(rows, columns, entries), &optimum, &err));
    assert_near(optimum, 1, 1e-9);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_rows), cmocka_unit_test(test_fraction),
        cmocka_unit_test(test_whole),    cmocka_unit_test(test_limit),
        cmocka_unit_test(test_start),    cmocka_unit_test(test_unsolved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
