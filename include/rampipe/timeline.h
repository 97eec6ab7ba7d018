/*
 * rampipe/timeline.h - what happened when, as a picture: records with a start and an end become
 * a trace in the Trace Event Format, which Perfetto and chrome://tracing open.
 *
 *     attempt, run --- slices on tracks of a process (host, job)   X
 *     send ----------- slices that may overlap                     b, e
 *     dep ------------ arrows between the slices of tasks          s, f
 *     block ---------- marks                                       i
 *                      counters: running, bytes in flight          C
 *
 * What overlaps on a track, or has none, goes to the lowest lane that is free. Source: Perfetto's
 * importer (json_trace_parser_impl.cc); times are microseconds, in whole nanoseconds, so that
 * slices which follow each other do not overlap by rounding.
 */
#ifndef RAMPIPE_TIMELINE_H
#define RAMPIPE_TIMELINE_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct timeline;

/** What overlaps with the time between `from` and `to`, seconds, is shown. NULL: *err. */
struct timeline *timeline_new(double from, double to,
                              struct rec_error *err) REC_MUST_CHECK;
void timeline_free(struct timeline *timeline);
/** Takes any record; what is shown is kept. */
bool timeline_take(struct timeline *timeline, const struct rec_reader *reader,
                   const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** The records that it shows, i = 0, 1, ...; NULL: there are no more. */
const char *timeline_record(size_t i);
/** How many slices there are, those outside of the time not counted. */
uint64_t timeline_count(const struct timeline *timeline);
/** Did any come, outside of the time too? */
bool timeline_any(const struct timeline *timeline);
/** All records are taken: writes the trace, in order of time. Time O(n log n). */
bool timeline_write(struct timeline *timeline, struct rec_writer *writer,
                    struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
