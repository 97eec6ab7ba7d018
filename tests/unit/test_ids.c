/* A bounded memory of ids. */
#include "unit.h"

#include "rampipe/record.h"

/* At least the last REC_IDS_KEPT ids are known again, and what is older than twice as
 * many is not. */
static void
ids_are_remembered_for_a_while(void **state)
{
    enum { MANY = 2 * REC_IDS_KEPT + 10 };
    struct rec_ids ids = {0};
    struct rec_error err;
    int i;
    struct rec_str id = {(const char *)&i, sizeof i};
    (void)state;
    for (i = 0; i < MANY; i++)
        if (rec_ids_add(&ids, id, &err) != 1)
            fail_msg("%d is new", i);
    for (i = MANY - REC_IDS_KEPT; i < MANY; i++)
        if (rec_ids_add(&ids, id, &err) != 0)
            fail_msg("%d was there", i);
    i = 0;
    assert_int_equal(rec_ids_add(&ids, id, &err), 1);
    assert_int_equal(rec_ids_add(&ids, id, &err), 0);
    assert_true((ids.size[0] + ids.size[1]) * sizeof *ids.hash[0] <= 32 << 20);
    rec_ids_free(&ids);
}

/* Jobs end in another order than they came in: those that run ahead are not hashed. */
static void
ids_that_run_ahead(void **state)
{
    enum { BLOCKS = 100, SIZE = 5000 };
    struct rec_ids ids = {0};
    struct rec_error err;
    char id[40];
    (void)state;
    for (int again = 0; again < 2; again++)
        for (int b = 0; b < BLOCKS; b++)
            for (int i = SIZE; i > 0; i--) { /* each block backwards, but for its first */
                int number = b * SIZE + (i == SIZE ? 1 : i + 1);
                snprintf(id, sizeof id, "j%d", number);
                if (rec_ids_add(&ids, rec_str(id), &err) != !again)
                    fail_msg("%s is %s", id, again ? "new" : "known");
            }
    assert_int_equal(ids.size[0], 0);
    assert_int_equal(ids.nruns, 1);
    rec_ids_free(&ids);
}

/* Ids that count on are known for good, each by its own prefix and its zeros; a run that
 * reaches what was there before knows that. */
static void
ids_that_count_on(void **state)
{
    static const char *const once[] = {
        "0",   "a0", "a00", "a",   "9007199254740993123456",
        "b7",  "b9", "b8",  "",    "x1y",
        "007", "7",  "07",  "a01", "a1"};
    struct rec_ids ids = {0};
    struct rec_error err;
    char id[40];
    (void)state;
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < sizeof once / sizeof *once; i++)
            if (rec_ids_add(&ids, rec_str(once[i]), &err) != !again)
                fail_msg("'%s' is %s", once[i], again ? "new" : "known");
    assert_int_equal(rec_ids_add(&ids, rec_str("b10"), &err), 1);
    for (int i = 1; i < 3 * REC_IDS_RUNS; i++) { /* more runs than there are: hashed */
        snprintf(id, sizeof id, "c%d", 10 * i);
        assert_int_equal(rec_ids_add(&ids, rec_str(id), &err), 1);
        assert_int_equal(rec_ids_add(&ids, rec_str(id), &err), 0);
    }
    for (int i = 0; i < 40 * REC_IDS_RUNS; i++) {
        bool there = i % 10 == 0 && i > 0 && i < 30 * REC_IDS_RUNS;
        snprintf(id, sizeof id, "c%d", i);
        if (rec_ids_add(&ids, rec_str(id), &err) != !there)
            fail_msg("%s", id);
    }
    rec_ids_free(&ids);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_remembered_for_a_while),
        cmocka_unit_test(ids_that_run_ahead),
        cmocka_unit_test(ids_that_count_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
