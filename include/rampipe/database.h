/*
 * rampipe/database.h - record streams as tables of an SQLite database.
 *
 *     stream  id, file, provenance                         a row a stream
 *     done    stream, job, graph, arrival, ..., other      a row a record
 *     block   stream, job, time, cause, ..., other
 *
 * The columns of a type are the fields and known keys of its row in the table of records
 * (of all its kinds), in lower case: numbers are REAL, counts INTEGER, all else TEXT; a
 * key that is called as a field has _key behind its name. What a record does not have is
 * NULL. `other` is a JSON object of the keys that the table does not know, texts all.
 * Rows stand in the order of their records. A stream is a transaction. SQLite is known
 * here and nowhere else.
 */
#ifndef RAMPIPE_DATABASE_H
#define RAMPIPE_DATABASE_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct database;

/** A new database for the types of which wanted[type] is true. It is in a file of TMPDIR
 * (or /tmp) that has no name; database_write() has its bytes. `name` is what messages
 * call it; borrowed. NULL: *err. */
struct database *database_new(const char *name, const bool wanted[REC_NTYPES],
                              struct rec_error *err) REC_MUST_CHECK;
/** A database to add to: it, and tables and columns that it lacks, are made. */
struct database *database_open(const char *path, const bool wanted[REC_NTYPES],
                               struct rec_error *err) REC_MUST_CHECK;
/** Takes any record. A mark ends the stream, and what came of it stays. */
bool database_take(struct database *database, const struct rec_reader *reader,
                   const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** The end of all input: ends the stream without header that is open, if there is one. */
bool database_finish(struct database *database, struct rec_error *err) REC_MUST_CHECK;
/** Writes a new database that is finished, and closes it. */
bool database_write(struct database *database, struct rec_writer *writer,
                    struct rec_error *err) REC_MUST_CHECK;
/** Of the streams that have ended. */
uint64_t database_streams(const struct database *database);
uint64_t database_rows(const struct database *database);
/** Closes it; of a stream that has not ended nothing stays. `database` may be NULL. */
void database_free(struct database *database);

/** Does the file begin as an SQLite database does? False, too, if it is not there. */
bool database_is_there(const char *path);

REC_END_DECLS

#endif
