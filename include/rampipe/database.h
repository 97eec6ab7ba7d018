/*
 * rampipe/database.h - record streams as tables of an SQLite database.
 *
 *     stream  id, file, provenance                         one row for each stream
 *     done    stream, job, graph, arrival, ..., other      one row for each record
 *     block   stream, job, time, cause, ..., other
 *
 * The columns of a type are the fields and known keys of its row in the table of records
 * (of the rows of all its kinds, if it has kinds), in lower case. Numbers are REAL,
 * counts INTEGER, everything else TEXT. If a key has the name of a field, its column is
 * NAME_key. A field or key that a record does not have is NULL. `other` is a JSON object
 * of the keys that the table of records does not know; its values are texts. Rows are in
 * the order of their records. Each stream is one transaction. Only this room includes
 * SQLite.
 */
#ifndef RAMPIPE_DATABASE_H
#define RAMPIPE_DATABASE_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct database;

/** Makes a new database for the types whose wanted[type] is true. It is in a file without
 * a name in TMPDIR (or /tmp); database_write() copies it out. `name` stands for its file
 * name in messages; the caller keeps it. NULL: *err is filled. */
struct database *database_new(const char *name, const bool wanted[REC_NTYPES],
                              struct rec_error *err) REC_MUST_CHECK;
/** Opens a database to add streams to. A missing file, tables and columns are made. The
 * caller keeps `path`. NULL: *err is filled. */
struct database *database_open(const char *path, const bool wanted[REC_NTYPES],
                               struct rec_error *err) REC_MUST_CHECK;
/** Takes the next record of any type. A mark ends the stream and commits its rows. */
bool database_take(struct database *database, const struct rec_reader *reader,
                   const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** Call it at the end of all input. Commits the stream that is still open, which is one
 * without header, and makes the tables even if there was no record. */
bool database_finish(struct database *database, struct rec_error *err) REC_MUST_CHECK;
/** Writes the bytes of a new database, after database_finish(). Then it can only be
 * freed. */
bool database_write(struct database *database, struct rec_writer *writer,
                    struct rec_error *err) REC_MUST_CHECK;
/** The number of committed streams, and of the rows in them. */
uint64_t database_streams(const struct database *database);
uint64_t database_rows(const struct database *database);
/** Closes the database, and rolls back a stream that has not ended. `database` may be
 * NULL. */
void database_free(struct database *database);

/** Does the file begin as an SQLite database does? False also if there is no file. */
bool database_is_there(const char *path);

REC_END_DECLS

#endif
