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
 *     rate ------------------ counters of links                                  C
 *                             counters: what is busy, bytes in flight, instances C
 *
 * Slices that overlap on a track, or that have no track, are put on lanes: each on the
 * lowest lane that is free. Source: Perfetto's importer (json_trace_parser_impl.cc).
 * Times in the trace are microseconds with three decimals, that is whole nanoseconds, so
 * that slices which follow each other do not overlap by rounding.
 */
#ifndef RAMPIPE_TIMELINE_H
#define RAMPIPE_TIMELINE_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct timeline;

/** Which records are shown. */
struct timeline_options {
    double from, to; /* only records that overlap with this span, seconds */
    const char *job; /* only records of this job; NULL: of all. The caller keeps it */
    uint64_t links;  /* counters of so many links of the trace, the most loaded ones */
    bool sends;      /* transfers and their arrows, too */
};

/** Makes an empty timeline. `options` is copied. NULL: out of memory, *err is filled. */
struct timeline *timeline_new(const struct timeline_options *options,
                              struct rec_error *err) REC_MUST_CHECK;
void timeline_free(struct timeline *timeline);
/** Takes the next record of any type, and keeps it if it is shown. */
bool timeline_take(struct timeline *timeline, const struct rec_reader *reader,
                   const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** The i-th type of record that a timeline shows, from i = 0; NULL if i is past the last
 * one. */
const char *timeline_record(size_t i);
/** The number of slices that are shown. */
uint64_t timeline_count(const struct timeline *timeline);
/** Did any record come that could be shown, whether the options leave it out or not? */
bool timeline_any(const struct timeline *timeline);
/** When all records are taken: writes the trace, in order of time. Time O(n log n) in the
 * number of slices. */
bool timeline_write(struct timeline *timeline, struct rec_writer *writer,
                    struct rec_error *err) REC_MUST_CHECK;
/** As timeline_write(), but draws a Gantt chart as SVG: a row for each track, a bar for
 * each slice, a line for each transfer. */
bool timeline_draw(struct timeline *timeline, struct rec_writer *writer,
                   struct rec_error *err) REC_MUST_CHECK;
/** As timeline_write(), but writes a page of HTML that shows the timeline in a browser,
 * without a network. `provenance` is the caller's own #@ line, which the page shows below
 * those of the streams. */
bool timeline_write_page(struct timeline *timeline, const char *provenance,
                         struct rec_writer *writer, struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
