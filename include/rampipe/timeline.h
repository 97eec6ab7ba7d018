/*
 * rampipe/timeline.h - what happened when, as a picture: records with a start and an end
 * become a trace in the Trace Event Format, which Perfetto and chrome://tracing open,
 * SVG, or a page that shows itself in a browser.
 *
 *     attempt, run, visit --- slices on tracks of a process (host, job, stage)   X
 *     state, train ---------- phases, iterations                                 X
 *     send, visit ----------- slices that may overlap: on the way, waiting       b, e
 *     dep, send ------------- arrows between slices                              s, f
 *     block, train ---------- marks                                              i
 *                             counters: what is busy, bytes in flight, instances C
 *
 * What overlaps on a track, or has none, goes to the lowest lane that is free. Source:
 * Perfetto's importer (json_trace_parser_impl.cc); times are microseconds, in whole
 * nanoseconds, so that slices which follow each other do not overlap by rounding.
 */
#ifndef RAMPIPE_TIMELINE_H
#define RAMPIPE_TIMELINE_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct timeline;

/** What is shown. */
struct timeline_options {
    double from, to; /* what overlaps with the time between, seconds */
    const char *job; /* only what is of this job; NULL: all. Borrowed */
    bool sends;      /* transfers and their arrows, too */
};

/** NULL: *err. */
struct timeline *timeline_new(const struct timeline_options *options,
                              struct rec_error *err) REC_MUST_CHECK;
void timeline_free(struct timeline *timeline);
/** Takes any record; what is shown is kept. */
bool timeline_take(struct timeline *timeline, const struct rec_reader *reader,
                   const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** The records that it shows, i = 0, 1, ...; NULL: there are no more. */
const char *timeline_record(size_t i);
/** How many slices there are, those that are not shown not counted. */
uint64_t timeline_count(const struct timeline *timeline);
/** Did any come, of those too? */
bool timeline_any(const struct timeline *timeline);
/** All records are taken: writes the trace, in order of time. Time O(n log n). */
bool timeline_write(struct timeline *timeline, struct rec_writer *writer,
                    struct rec_error *err) REC_MUST_CHECK;
/** Instead: a Gantt chart as SVG, a row a track, a bar a slice, a line a transfer. */
bool timeline_draw(struct timeline *timeline, struct rec_writer *writer,
                   struct rec_error *err) REC_MUST_CHECK;
/** Instead: a page of HTML that shows it, with all that it needs inside, no network.
 * `provenance` is the caller's own line, below those of the streams. Time O(n log n). */
bool timeline_write_page(struct timeline *timeline, const char *provenance,
                         struct rec_writer *writer, struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
