/* The formats of metrics. */
#ifndef RAMPIPE_METRICS_PRINT_H
#define RAMPIPE_METRICS_PRINT_H

#include "rampipe/cli.h"
#include "rampipe/metrics.h"

enum metrics_format { METRICS_TABLE, METRICS_TSV, METRICS_CSV, METRICS_JSON };

/* The figures of all groups; as a table those of the total, or with `by` a line a group. */
bool metrics_print(struct cli *cli, struct metrics *metrics, const char *by,
                   enum metrics_format format) REC_MUST_CHECK;
bool metrics_print_series(struct cli *cli, const struct metrics *metrics,
                          enum metrics_format format) REC_MUST_CHECK;

#endif
