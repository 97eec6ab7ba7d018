/* The formats of metrics. */
#ifndef RAMPIPE_METRICS_PRINT_H
#define RAMPIPE_METRICS_PRINT_H

#include "rampipe/cli.h"
#include "rampipe/metrics.h"

enum metrics_format { METRICS_TABLE, METRICS_TSV, METRICS_CSV, METRICS_JSON };

void metrics_print(struct cli *cli, struct metrics *metrics, enum metrics_format format);
/* Figures in a format for programs; `figures` emits them. */
void metrics_print_figures(struct cli *cli, enum metrics_format format,
                           void (*figures)(void *of, metrics_emit *emit, void *context),
                           void *of);
void metrics_print_training(struct cli *cli, struct metrics_training *training,
                            enum metrics_format format);
void metrics_print_series(struct cli *cli, const struct metrics *metrics,
                          const struct metrics_series *series,
                          enum metrics_format format);

#endif
