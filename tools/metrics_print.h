/* The formats of metrics. */
#ifndef RAMPIPE_METRICS_PRINT_H
#define RAMPIPE_METRICS_PRINT_H

#include "rampipe/cli.h"
#include "rampipe/json.h"
#include "rampipe/metrics.h"

enum metrics_format { METRICS_TABLE, METRICS_TSV, METRICS_CSV, METRICS_JSON };

/* The figures of all groups; as a table those of the total, or with `by` a line a
 * group. */
bool metrics_print(struct cli *cli, struct metrics *metrics, const char *by,
                   enum metrics_format format) REC_MUST_CHECK;
bool metrics_print_series(struct cli *cli, const struct metrics *metrics,
                          enum metrics_format format) REC_MUST_CHECK;
/** The main quantity of each group in so many bins. */
bool metrics_print_histogram(struct cli *cli, struct metrics *metrics, size_t bins,
                             enum metrics_format format) REC_MUST_CHECK;

/** The figures of two streams side by side, and the errors of cases of the same name. */
bool metrics_print_comparison(struct cli *cli, struct metrics *predicted,
                              struct metrics *actual,
                              enum metrics_format format) REC_MUST_CHECK;

/* ---- for all of them ----------------------------------------------------- */

void metrics_put_text(struct cli *cli, const char *text);
/** A field of a line of TSV or CSV: the first has nothing before it. */
void metrics_put_field(struct cli *cli, enum metrics_format format, bool first,
                       const char *text);
void metrics_put_number(struct cli *cli, enum metrics_format format, bool first,
                        double value);
/** Starts a document with what all have: {"provenance": [...], NAME: */
struct json *metrics_open_json(struct cli *cli, int lines, const char *name);
/** A number that a person reads at a glance, with its unit if that stands with it. */
void metrics_format_value(char text[32], double value, const char *unit);
/** The unit of a number if it stands behind it or above it, else "". */
const char *metrics_unit_apart(const char *unit);

#endif
