/* What the files of lib/database share: database.c the streams, columns.c the tables. */
#ifndef RAMPIPE_DATABASE_PRIVATE_H
#define RAMPIPE_DATABASE_PRIVATE_H

#include "rampipe/database.h"

#include <sqlite3.h>

enum {
    DATABASE_COLUMNS = 128, /* columns of a table, at most */
    DATABASE_NAME = 40      /* bytes of a column's name, with its NUL */
};

struct database_column {
    char name[DATABASE_NAME];
    const struct rec_field_spec *spec; /* the field or key that the column holds */
    size_t len;                        /* bytes of spec->name */
    char affinity;                     /* SQLite's type: 'R'EAL, 'I'NTEGER or 'T'EXT */
    bool field;                        /* spec is a field, not a key */
};

/* The table of a type of record. Its columns leave out the first one, the id of the
 * stream, and the last one, `other`. */
struct database_table {
    struct database_column column[DATABASE_COLUMNS];
    size_t ncolumns;
    sqlite3_stmt *insert; /* NULL until the first stream has begun */
};

/* Fills the columns of a type. */
void database_fill_table(struct database_table *table, enum rec_type type);
/* The index of the column of a field or key; ncolumns: there is none. The search begins
 * at the column `hint`, and goes round. */
size_t database_find_column(const struct database_table *table, bool field,
                            struct rec_str label, size_t hint);

/* The text of an SQL statement, which the caller frees. NULL: *err. */
char *database_create_text(const struct database_table *table, enum rec_type type,
                           struct rec_error *err);
char *database_insert_text(const struct database_table *table, enum rec_type type,
                           struct rec_error *err);
/* The SQL type of a column: "REAL", "INTEGER" or "TEXT". */
const char *database_affinity(const struct database_column *column);

#endif
