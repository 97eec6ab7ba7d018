/* The formats of metrics. */
#ifndef RAMPIPE_METRICS_PRINT_H
#define RAMPIPE_METRICS_PRINT_H

#include "rampipe/cli.h"
#include "rampipe/json.h"
#include "rampipe/metrics.h"

enum metrics_format { METRICS_TABLE, METRICS_TSV, METRICS_CSV, METRICS_JSON };

/** Prints the figures of all groups. A table shows all figures of the total or, with
 * `by`, one line of figures for each group. */
bool metrics_print(struct cli *cli, struct metrics *metrics, const char *by,
                   enum metrics_format format) REC_MUST_CHECK;
/** Prints the figures of each interval. */
bool metrics_print_series(struct cli *cli, const struct metrics *metrics,
                          enum metrics_format format) REC_MUST_CHECK;
/** Prints the histogram of the main quantity of each group. */
bool metrics_print_histogram(struct cli *cli, struct metrics *metrics, size_t bins,
                             enum metrics_format format) REC_MUST_CHECK;

/** Prints the figures of two streams side by side, and the errors of cases of the same
 * name. */
bool metrics_print_comparison(struct cli *cli, struct metrics *predicted,
                              struct metrics *actual,
                              enum metrics_format format) REC_MUST_CHECK;

/* ---- helpers of all of these -------------------------------------------------- */

void metrics_put_text(struct cli *cli, const char *text);
/** Prints a field of a line of TSV or CSV, and a separator before it unless it is the
 * first. */
void metrics_put_field(struct cli *cli, enum metrics_format format, bool first,
                       const char *text);
void metrics_put_number(struct cli *cli, enum metrics_format format, bool first,
                        double value);
/** Starts a JSON document with what all documents have: {"provenance": [...], NAME: */
struct json *metrics_open_json(struct cli *cli, int lines, const char *name);
/** Formats a number for a person, with few digits. Units that take a prefix (s, B, B/s,
 * FLOP/s) and % are part of the text. */
void metrics_format_value(char text[32], double value, const char *unit);
/** The unit if metrics_format_value() does not put it into the text, else "". */
const char *metrics_unit_apart(const char *unit);

#endif
