/*
 * Writes record streams into an SQLite database: each stream is a transaction, each
 * record a row. So a stream that is cut or wrong leaves nothing behind, and several
 * programs can add to one database at a time.
 *
 * A new database is made in a file without a name and copied out when it is whole,
 * because a database may be written to a pipe, or compressed, as any other output.
 */
#include "private.h"

#include "rampipe/json.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* How long to wait while another process has the database locked, in milliseconds. */
#define PATIENCE 600000

struct database {
    const char *name; /* for messages */
    sqlite3 *db;
    int fd;                                   /* file of a new database; or -1 */
    struct database_table *table[REC_NTYPES]; /* NULL: the type is not wanted */
    sqlite3_stmt *stream;                     /* inserts into the table of streams */
    bool made;                                /* the tables exist */
    bool open;                                /* a stream has begun */
    bool headed;                              /* it has a header, */
    uint64_t header;                          /* which is number ... of the input */
    sqlite3_int64 id;                         /* the id of the open stream */
    uint64_t streams, rows;                   /* committed so far */
    uint64_t pending;                         /* rows of the stream that is open */
    struct rec_writer *text;                  /* writes JSON to `other` */
    char *other;                              /* the text of the column `other` */
    size_t other_len, other_room;
};

/* ---- errors -------------------------------------------------------------- */

/* Fills *err from the status of SQLite's last call: the operating system's reason, if
 * there is one, says more than SQLite's. Returns false. */
static bool
fail(const struct database *d, int status, struct rec_error *err)
{
    int why = d->db && sqlite3_system_errno(d->db) ? sqlite3_system_errno(d->db) : errno;
    switch (status & 0xff) {
    case SQLITE_NOMEM: return rec_fail_memory(err);
    case SQLITE_NOTADB:
        return rec_fail(err, REC_DATA, "%s: this is no SQLite database", d->name);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return rec_fail(err, REC_IO, "%s: another program has had it for %d minutes",
                        d->name, PATIENCE / 60000);
    case SQLITE_FULL: return rec_fail(err, REC_IO, "%s: %s", d->name, strerror(ENOSPC));
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return rec_fail(err, REC_IO, "%s: %s", d->name,
                        why ? strerror(why) : sqlite3_errstr(status));
    default:
        return rec_fail(err, REC_DATA, "%s: %s", d->name,
                        d->db ? sqlite3_errmsg(d->db) : sqlite3_errstr(status));
    }
}

static bool
run(struct database *d, const char *sql, struct rec_error *err)
{
    int status = sqlite3_exec(d->db, sql, NULL, NULL, NULL);
    return status == SQLITE_OK || fail(d, status, err);
}

static bool
prepare(struct database *d, const char *sql, sqlite3_stmt **statement,
        struct rec_error *err)
{
    int status =
        sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    return status == SQLITE_OK || fail(d, status, err);
}

/* ---- opening and closing ------------------------------------------------- */

/* The sink of d->text: appends to d->other. */
static int
put_other(void *context, const char *bytes, size_t len)
{
    struct database *d = context;
    if (!rec_grow(&d->other, &d->other_room, d->other_len + len + 1, 1, NULL))
        return ENOMEM;
    memcpy(d->other + d->other_len, bytes, len);
    d->other_len += len;
    return 0;
}

/* Makes the object and its tables' columns, without opening a file. NULL: *err. */
static struct database *
make(const char *name, const bool wanted[REC_NTYPES], struct rec_error *err)
{
    struct database *d = calloc(1, sizeof *d);
    struct rec_sink sink = {put_other, d};
    bool ok;
    if (!d) {
        rec_fail_memory(err);
        return NULL;
    }
    d->name = name;
    d->fd = -1;
    d->text = rec_writer_open_sink(&sink, name, NULL, err);
    ok = d->text != NULL;
    for (int type = REC_MARK + 1; type < REC_NTYPES && ok; type++) {
        if (!wanted[type])
            continue;
        d->table[type] = calloc(1, sizeof *d->table[type]);
        if (d->table[type])
            database_fill_table(d->table[type], (enum rec_type)type);
        else
            ok = rec_fail_memory(err);
    }
    if (ok)
        return d;
    database_free(d);
    return NULL;
}

/* Opens a database in a temporary file, and removes the file's name: the kernel frees its
 * space when the process ends, however that happens. "unix-none" is SQLite's way to open
 * a file without locks, which nobody else could use. */
static bool
open_nameless(struct database *d, struct rec_error *err)
{
    const char *folder = getenv("TMPDIR");
    char *path;
    int status;
    if (asprintf(&path, "%s/rampipe-XXXXXX", folder && *folder ? folder : "/tmp") < 0)
        return rec_fail_memory(err);
    d->fd = mkostemp(path, O_CLOEXEC);
    if (d->fd < 0) {
        rec_fail(err, REC_IO, "%s: %s", path, strerror(errno));
        free(path);
        return false;
    }
    status = sqlite3_open_v2(path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                             "unix-none");
    unlink(path);
    free(path);
    return status == SQLITE_OK || fail(d, status, err);
}

/* Nobody can see the file before it is whole, and a failure drops all of it. So it needs
 * neither a journal nor syncing, which makes it much faster to write. */
struct database *
database_new(const char *name, const bool wanted[REC_NTYPES], struct rec_error *err)
{
    struct database *d = make(name, wanted, err);
    sigset_t all, before;
    bool ok;
    if (!d)
        return NULL;
    sigfillset(&all);
    /* A signal while the file has a name would leave it behind. */
    sigprocmask(SIG_SETMASK, &all, &before);
    ok = open_nameless(d, err);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (ok && run(d,
                  "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
                  "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -16384",
                  err))
        return d;
    database_free(d);
    return NULL;
}

struct database *
database_open(const char *path, const bool wanted[REC_NTYPES], struct rec_error *err)
{
    struct database *d = make(path, wanted, err);
    int status;
    if (!d)
        return NULL;
    /* A database that does not exist is created at its path, not beside it. If several
     * programs begin at the same time, they all open the same file, and each adds to it
     * in transactions. */
    status = sqlite3_open_v2(
        path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
        NULL);
    if (status == SQLITE_OK)
        status = sqlite3_busy_timeout(d->db, PATIENCE);
    if (status == SQLITE_OK)
        return d;
    fail(d, status, err);
    database_free(d);
    return NULL;
}

/* Closes the connection to SQLite, which rolls back an open transaction. */
static void
close_database(struct database *d)
{
    for (int type = 0; type < REC_NTYPES; type++)
        if (d->table[type]) {
            sqlite3_finalize(d->table[type]->insert);
            d->table[type]->insert = NULL;
        }
    sqlite3_finalize(d->stream);
    d->stream = NULL;
    sqlite3_close(d->db);
    d->db = NULL;
}

void
database_free(struct database *d)
{
    struct rec_error ignored;
    if (!d)
        return;
    close_database(d);
    for (int type = 0; type < REC_NTYPES; type++)
        free(d->table[type]);
    if (d->text && !rec_writer_close(d->text, false, &ignored))
        d->text = NULL;
    if (d->fd >= 0)
        close(d->fd);
    free(d->other);
    free(d);
}

bool
database_is_there(const char *path)
{
    char magic[16] = "";
    FILE *file = fopen(path, "re");
    bool is = file && fread(magic, 1, sizeof magic, file) == sizeof magic &&
              memcmp(magic, "SQLite format 3", sizeof magic) == 0;
    if (file)
        fclose(file);
    return is;
}

uint64_t
database_streams(const struct database *d)
{
    return d->streams;
}

uint64_t
database_rows(const struct database *d)
{
    return d->rows;
}

/* ---- tables -------------------------------------------------------------- */

/* Adds the columns that an existing table lacks: an older version of rampipe, whose table
 * of records had fewer keys, may have made it. */
static bool
add_columns(struct database *d, const struct database_table *table, const char *name,
            struct rec_error *err)
{
    bool there[DATABASE_COLUMNS + 1] = {false};
    sqlite3_stmt *info;
    char sql[200];
    int status;
    snprintf(sql, sizeof sql, "SELECT name FROM pragma_table_info('%s')", name);
    if (!prepare(d, sql, &info, err))
        return false;
    while ((status = sqlite3_step(info)) == SQLITE_ROW) {
        const char *column = (const char *)sqlite3_column_text(info, 0);
        for (size_t i = 0; column && i < table->ncolumns; i++)
            there[i] = there[i] || strcasecmp(column, table->column[i].name) == 0;
    }
    sqlite3_finalize(info);
    if (status != SQLITE_DONE)
        return fail(d, status, err);
    for (size_t i = 0; i < table->ncolumns; i++) {
        snprintf(sql, sizeof sql, "ALTER TABLE \"%s\" ADD COLUMN \"%s\" %s", name,
                 table->column[i].name, database_affinity(&table->column[i]));
        if (!there[i] && !run(d, sql, err))
            return false;
    }
    return true;
}

/* Makes the table of a type if it does not exist, and the statement that adds a row. */
static bool
make_table(struct database *d, enum rec_type type, struct rec_error *err)
{
    struct database_table *table = d->table[type];
    char *create = database_create_text(table, type, err);
    char *insert = create ? database_insert_text(table, type, err) : NULL;
    bool ok = insert && run(d, create, err) &&
              (d->fd >= 0 || add_columns(d, table, rec_spec(type)->name, err)) &&
              prepare(d, insert, &table->insert, err);
    free(create);
    free(insert);
    return ok;
}

static bool
make_tables(struct database *d, struct rec_error *err)
{
    if (!run(d,
             "CREATE TABLE IF NOT EXISTS stream "
             "(id INTEGER PRIMARY KEY, file TEXT, provenance TEXT)",
             err))
        return false;
    for (int type = 0; type < REC_NTYPES; type++)
        if (d->table[type] && !make_table(d, (enum rec_type)type, err))
            return false;
    return prepare(d, "INSERT INTO stream (file, provenance) VALUES (?, ?)", &d->stream,
                   err);
}

/* ---- streams ------------------------------------------------------------- */

/* Adds a row of the values that are bound to the statement. */
static bool
insert(struct database *d, sqlite3_stmt *statement, struct rec_error *err)
{
    int status = sqlite3_step(statement);
    sqlite3_reset(statement);
    return status == SQLITE_DONE || fail(d, status, err);
}

/* Begins a transaction; the first one also makes the tables. IMMEDIATE takes the lock for
 * writing at once, where waiting is possible: a transaction that has read already would
 * fail when another program writes. */
static bool
begin(struct database *d, struct rec_error *err)
{
    if (!run(d, "BEGIN IMMEDIATE", err) || (!d->made && !make_tables(d, err)))
        return false;
    return d->made = true;
}

/* Commits the open transaction, and counts the stream, if it is one. */
static bool
end_stream(struct database *d, struct rec_error *err)
{
    if (!run(d, "COMMIT", err))
        return false;
    d->streams += d->open;
    d->rows += d->open ? d->pending : 0;
    d->open = false;
    return true;
}

/* Begins a stream with its first record, unless it is open: its row in the table of
 * streams has the file and the provenance. A stream without a header, or that was cut, is
 * ended by the header of the next. */
static bool
begin_stream(struct database *d, const struct rec_reader *reader, bool mark,
             struct rec_error *err)
{
    bool headed = mark || rec_reader_headed(reader); /* at its #end, too */
    uint64_t header = rec_reader_streams(reader);
    int status;
    if (d->open && d->headed == headed && d->header == header)
        return true;
    if ((d->open && !end_stream(d, err)) || !begin(d, err))
        return false;
    d->headed = headed;
    d->header = header;
    status = sqlite3_bind_text(d->stream, 1, rec_reader_file(reader), -1, SQLITE_STATIC);
    if (status == SQLITE_OK)
        status = sqlite3_bind_text(
            d->stream, 2, headed ? rec_reader_provenance(reader) : "", -1, SQLITE_STATIC);
    if (status != SQLITE_OK)
        return fail(d, status, err);
    if (!insert(d, d->stream, err))
        return false;
    d->id = sqlite3_last_insert_rowid(d->db);
    d->pending = 0;
    return d->open = true;
}

bool
database_finish(struct database *d, struct rec_error *err)
{
    return d->open ? end_stream(d, err)
                   : d->made || (begin(d, err) && end_stream(d, err));
}

/* ---- records ------------------------------------------------------------- */

/* Checks a value, and binds it to its column. SQL counts parameters from 1, and the first
 * one is the stream's id: hence column + 2. */
static bool
bind(struct database *d, const struct rec_reader *reader, const struct rec *rec,
     size_t column, const struct rec_field_spec *spec, struct rec_str text,
     struct rec_error *err)
{
    sqlite3_stmt *statement = d->table[rec->type]->insert;
    int at = (int)column + 2, status;
    uint64_t count;
    double number;
    switch (d->table[rec->type]->column[column].affinity) {
    case 'I':
        if (!rec_check_text(reader, rec, spec, text, err))
            return false;
        if (!rec_parse_uint(text, &count) || count > INT64_MAX)
            return rec_reader_fail(reader, err,
                                   "%s: %.*s is more than SQLite's integers hold",
                                   spec->name, (int)text.len, text.ptr);
        status = sqlite3_bind_int64(statement, at, (sqlite3_int64)count);
        break;
    case 'R':
        if (!rec_read_number(reader, rec, spec, text, &number, err))
            return false;
        status = sqlite3_bind_double(statement, at, number);
        break;
    default:
        if (!rec_check_text(reader, rec, spec, text, err))
            return false;
        status = sqlite3_bind_text(statement, at, text.ptr, (int)text.len, SQLITE_STATIC);
        break;
    }
    return status == SQLITE_OK || fail(d, status, err);
}

/* Binds the keys that have no column to `other`, as a JSON object. */
static bool
bind_other(struct database *d, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    const struct database_table *table = d->table[rec->type];
    struct json *json = json_new(d->text, 0, err);
    struct rec_error ignored;
    struct rec_str key, value;
    size_t next = 0;
    int more, status;
    if (!json)
        return false;
    d->other_len = 0;
    json_open_map(json);
    while ((more = rec_next_key(reader, rec, &next, &key, &value, err)) > 0)
        if (database_find_column(table, false, key, 0) == table->ncolumns) {
            json_str(json, key);
            json_str(json, value);
        }
    json_close_map(json);
    if (!json_close(json, more < 0 ? &ignored : err) || more < 0)
        return false;
    rec_writer_flush(d->text);
    if (!rec_writer_ok(d->text, err))
        return false;
    while (d->other_len > 0 && d->other[d->other_len - 1] == '\n')
        d->other_len--;
    status = sqlite3_bind_text(table->insert, (int)table->ncolumns + 2, d->other,
                               (int)d->other_len, SQLITE_STATIC);
    return status == SQLITE_OK || fail(d, status, err);
}

/* Binds all fields and keys of a record to their columns. */
static bool
bind_all(struct database *d, const struct rec_reader *reader, const struct rec *rec,
         struct rec_error *err)
{
    const struct database_table *table = d->table[rec->type];
    struct rec_str key, value;
    size_t next = 0, at = 0, found;
    bool unknown = false;
    int more;
    for (size_t i = 0; i < rec->spec->nfields; i++, at++) {
        const struct rec_field_spec *spec = &rec->spec->fields[i];
        at = database_find_column(table, true, rec_str(spec->name), at);
        if (!bind(d, reader, rec, at, spec, rec->field[i + 1], err))
            return false;
    }
    while ((more = rec_next_key(reader, rec, &next, &key, &value, err)) > 0) {
        found = database_find_column(table, false, key, at);
        unknown = unknown || found == table->ncolumns;
        if (found == table->ncolumns)
            continue;
        if (!bind(d, reader, rec, found, table->column[found].spec, value, err))
            return false;
        at = found + 1;
    }
    return more == 0 && (!unknown || bind_other(d, reader, rec, err));
}

static bool
take_record(struct database *d, const struct rec_reader *reader, const struct rec *rec,
            struct rec_error *err)
{
    sqlite3_stmt *statement = d->table[rec->type]->insert;
    int status;
    /* bind() checks the values. Only a record whose kind has no row is checked here: then
     * rec_check() fails, and its message lists the kinds. */
    if (!rec_need(reader, rec, err) ||
        (!rec->spec->kind && !rec->spec->example && !rec_check(reader, rec, err)))
        return false;
    sqlite3_clear_bindings(statement);
    status = sqlite3_bind_int64(statement, 1, d->id);
    if (status != SQLITE_OK)
        return fail(d, status, err);
    if (!bind_all(d, reader, rec, err) || !insert(d, statement, err))
        return false;
    d->pending++;
    return true;
}

bool
database_take(struct database *d, const struct rec_reader *reader, const struct rec *rec,
              struct rec_error *err)
{
    if (rec->type == REC_COMMENT)
        return true;
    if (!begin_stream(d, reader, rec->type == REC_MARK, err))
        return false;
    if (rec->type == REC_MARK)
        return end_stream(d, err);
    return !d->table[rec->type] ? rec_need(reader, rec, err)
                                : take_record(d, reader, rec, err);
}

/* ---- the bytes of a new one ---------------------------------------------- */

bool
database_write(struct database *d, struct rec_writer *writer, struct rec_error *err)
{
    enum { PIECE = 1 << 16 };
    char *piece = malloc(PIECE);
    ssize_t n = 0;
    bool ok = piece || rec_fail_memory(err);
    close_database(d);
    for (off_t at = 0; ok && (n = pread(d->fd, piece, PIECE, at)) > 0; at += n) {
        rec_put_bytes(writer, piece, (size_t)n);
        ok = rec_writer_ok(writer, err);
    }
    if (ok && n < 0)
        ok = rec_fail(err, REC_IO, "%s: %s", d->name, strerror(errno));
    free(piece);
    return ok;
}
