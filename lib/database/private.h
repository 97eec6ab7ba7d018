/* What the files of lib/database share: database.c the streams, columns.c the tables. */
#ifndef RAMPIPE_DATABASE_PRIVATE_H
#define RAMPIPE_DATABASE_PRIVATE_H

#include "rampipe/database.h"

#include <sqlite3.h>

enum { DATABASE_COLUMNS = 100, DATABASE_NAME = 40 };

struct database_column {
    char name[DATABASE_NAME];
    const struct rec_field_spec *spec; /* of the field or key */
    size_t len;                        /* of its name */
    char affinity;                     /* REAL, INTEGER or TEXT: R, I, T */
    bool field;
};

/* The table of a type of record. */
struct database_table {
    struct database_column column[DATABASE_COLUMNS];
    size_t ncolumns;
    sqlite3_stmt *insert; /* NULL until the first stream has begun */
};

/* Fills the columns of a type. */
void database_fill_table(struct database_table *table, enum rec_type type);
/* The number of a column, looked for from `hint` on; ncolumns: there is none. */
size_t database_find_column(const struct database_table *table, bool field,
                            struct rec_str label, size_t hint);

/* Statements as text, to free() by the caller. NULL: *err. */
char *database_create_text(const struct database_table *table, enum rec_type type,
                           struct rec_error *err);
char *database_insert_text(const struct database_table *table, enum rec_type type,
                           struct rec_error *err);
/* What SQLite calls the values of a column. */
const char *database_affinity(const struct database_column *column);

#endif
