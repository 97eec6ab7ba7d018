/*
 * The tables of a database: which columns a type of record has, and the SQL statements
 * that make a table and add a row. All comes from the table of records, so a new key
 * becomes a column without a change here.
 */
#include "private.h"

#include <ctype.h>
#include <stdio.h>

static char
affinity_of(enum rec_kind kind)
{
    switch (kind) {
    case REC_KIND_COUNT: return 'I';
    case REC_KIND_NUMBER:
    case REC_KIND_AMOUNT:
    case REC_KIND_LIMIT:
    case REC_KIND_FRACTION:
    case REC_KIND_LATER:
    case REC_KIND_PAST: return 'R';
    default: return 'T';
    }
}

const char *
database_affinity(const struct database_column *column)
{
    return column->affinity == 'I'   ? "INTEGER"
           : column->affinity == 'R' ? "REAL"
                                     : "TEXT";
}

/* ---- columns ------------------------------------------------------------- */

size_t
database_find_column(const struct database_table *table, bool field, struct rec_str label,
                     size_t hint)
{
    size_t n = table->ncolumns;
    /* Most records have their keys in the order of the table, so the column behind the
     * last one found is nearly always the right one. */
    for (size_t i = 0; i < n; i++) {
        size_t at = hint + i < n ? hint + i : hint + i - n;
        const struct database_column *column = &table->column[at];
        if (column->len == label.len && column->field == field &&
            memcmp(label.ptr, column->spec->name, label.len) == 0)
            return at;
    }
    return n;
}

static bool
is_taken(const struct database_table *table, const char *name)
{
    for (size_t i = 0; i < table->ncolumns; i++)
        if (strcmp(table->column[i].name, name) == 0)
            return true;
    return false;
}

/* Adds a column for each field or key of a list, unless the table has it already: several
 * kinds of a type may have the same field or key. A key with the name of a field gets
 * _key behind its name. */
static void
add_columns(struct database_table *table, const struct rec_field_spec *specs, bool field)
{
    for (; specs->name; specs++) {
        struct database_column *column = &table->column[table->ncolumns];
        size_t n = 0;
        if (table->ncolumns == DATABASE_COLUMNS ||
            database_find_column(table, field, rec_str(specs->name), 0) < table->ncolumns)
            continue;
        *column = (struct database_column){.spec = specs,
                                           .len = strlen(specs->name),
                                           .affinity = affinity_of(specs->kind),
                                           .field = field};
        for (; n < DATABASE_NAME - 5 && specs->name[n]; n++)
            column->name[n] = (char)tolower((unsigned char)specs->name[n]);
        if (is_taken(table, column->name))
            strcpy(column->name + n, "_key");
        table->ncolumns++;
    }
}

void
database_fill_table(struct database_table *table, enum rec_type type)
{
    const struct rec_spec *kind;
    add_columns(table, rec_spec(type)->fields, true);
    for (size_t i = 0; (kind = rec_spec_of_kind(type, i)); i++)
        add_columns(table, kind->fields, true);
    add_columns(table, rec_spec(type)->keys, false);
    for (size_t i = 0; (kind = rec_spec_of_kind(type, i)); i++)
        add_columns(table, kind->keys, false);
}

/* ---- statements ---------------------------------------------------------- */

/* Names are quoted, because some are words of SQL: group, from, to. */
char *
database_create_text(const struct database_table *table, enum rec_type type,
                     struct rec_error *err)
{
    struct rec_text text;
    if (!rec_text_open(&text, err))
        return NULL;
    fprintf(text.out,
            "CREATE TABLE IF NOT EXISTS \"%s\" (stream INTEGER NOT NULL REFERENCES "
            "stream (id)",
            rec_spec(type)->name);
    for (size_t i = 0; i < table->ncolumns; i++)
        fprintf(text.out, ", \"%s\" %s", table->column[i].name,
                database_affinity(&table->column[i]));
    fprintf(text.out, ", other TEXT)");
    return rec_text_close(&text, err);
}

char *
database_insert_text(const struct database_table *table, enum rec_type type,
                     struct rec_error *err)
{
    struct rec_text text;
    if (!rec_text_open(&text, err))
        return NULL;
    fprintf(text.out, "INSERT INTO \"%s\" (stream", rec_spec(type)->name);
    for (size_t i = 0; i < table->ncolumns; i++)
        fprintf(text.out, ", \"%s\"", table->column[i].name);
    fprintf(text.out, ", other) VALUES (?");
    for (size_t i = 0; i <= table->ncolumns; i++)
        fprintf(text.out, ", ?");
    fprintf(text.out, ")");
    return rec_text_close(&text, err);
}
