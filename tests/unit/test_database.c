/* Databases: the tables of all types of records, streams that stay and that do not, calls
 * that fail. */
#include "../../lib/database/private.h"
#include "unit.h"

#include <unistd.h>

/* Every type of record becomes a table that SQLite takes, with each field and key in a
 * column of its own. */
static void
test_tables(void **state)
{
    (void)state;
    for (int type = REC_MARK + 1; type < REC_NTYPES; type++) {
        static struct database_table table;
        const struct rec_spec *spec = rec_spec((enum rec_type)type), *kind;
        struct rec_error err;
        sqlite3 *db;
        char *create, *insert;
        sqlite3_stmt *statement;
        table = (struct database_table){.ncolumns = 0};
        database_fill_table(&table, (enum rec_type)type);
        assert_true(table.ncolumns > 0 && table.ncolumns < DATABASE_COLUMNS);
        for (size_t i = 0; i < table.ncolumns; i++)
            for (size_t k = 0; k < i; k++)
                assert_string_not_equal(table.column[i].name, table.column[k].name);
        /* kinds that share a key agree on what it is */
        for (size_t i = 0; (kind = rec_spec_of_kind((enum rec_type)type, i)); i++)
            for (const struct rec_field_spec *key = kind->keys; key->name; key++) {
                size_t at = database_find_column(&table, false, rec_str(key->name), 0);
                assert_true(at < table.ncolumns);
                assert_int_equal(table.column[at].spec->kind, key->kind);
            }
        assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
        assert_non_null(create = database_create_text(&table, (enum rec_type)type, &err));
        assert_non_null(insert = database_insert_text(&table, (enum rec_type)type, &err));
        if (sqlite3_exec(db, create, NULL, NULL, NULL) != SQLITE_OK)
            fail_msg("%s: %s", spec->name, sqlite3_errmsg(db));
        assert_int_equal(sqlite3_prepare_v2(db, insert, -1, &statement, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_bind_parameter_count(statement), table.ncolumns + 2);
        sqlite3_finalize(statement);
        sqlite3_close(db);
        free(create);
        free(insert);
    }
}

/* A table that is somebody else's, a folder, a view, a database that somebody has. */
static void
test_refused(void **state)
{
    bool wanted[REC_NTYPES] = {[REC_DONE] = true};
    static const char *const bad[] = {
        "create view done as select 1", "create table stream (name)",
        "create table stream (id integer primary key, file, provenance); "
        "create trigger t before insert on stream begin select raise(abort, 'no'); end"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        static const char record[] = "done\tj\tg\t0\t0\t1\n";
        const char *const files[] = {"records"}, *path = "database";
        struct rec_error err = {.code = REC_OK};
        struct database *database;
        struct rec_reader *reader;
        struct rec rec;
        sqlite3 *db;
        bool ok = true;
        int status;
        write_file(files[0], record, sizeof record - 1);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, bad[i], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        assert_true(database_is_there(path));
        assert_non_null(database = database_open(path, wanted, &err));
        assert_non_null(reader = rec_reader_open(files, 1, NULL, &err));
        while (ok && (status = rec_next(reader, &rec, &err)) > 0)
            ok = database_take(database, reader, &rec, &err);
        assert_false(ok);
        assert_int_equal(err.code, REC_DATA);
        assert_non_null(strstr(err.text, path));
        assert_int_equal(database_streams(database), 0);
        rec_reader_close(reader);
        database_free(database);
        unlink(path);
        assert_false(database_is_there(path));
    }
}

/* No folder for what is not whole. */
static void
test_nowhere(void **state)
{
    bool wanted[REC_NTYPES] = {[REC_DONE] = true};
    const char *before = getenv("TMPDIR");
    struct rec_error err;
    char *kept = before ? strdup(before) : NULL;
    (void)state;
    setenv("TMPDIR", "/nowhere/at-all", 1);
    assert_null(database_new("name", wanted, &err));
    assert_int_equal(err.code, REC_IO);
    assert_non_null(strstr(err.text, "/nowhere/at-all/rampipe-"));
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    assert_null(database_open("/nowhere/at-all", wanted, &err));
    assert_int_equal(err.code, REC_IO);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
