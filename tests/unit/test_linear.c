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
        cmocka_unit_test(test_two_rows),
        cmocka_unit_test(test_fraction),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_unsolved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
