/* What the files of lib/device share: the shipped table, keys of graphs, a message. */
#ifndef RAMPIPE_DEVICE_PRIVATE_H
#define RAMPIPE_DEVICE_PRIVATE_H

#include "rampipe/device.h"

/* The text of traces/devices.rec (shipped.c). */
extern const char device_shipped[];
extern const uint64_t device_shipped_size;

/* Reads precision=; *precision stays as it is if the record does not have the key. */
bool device_key_precision(const struct rec_reader *reader, const struct rec *rec,
                          enum device_precision *precision,
                          struct rec_error *err) REC_MUST_CHECK;

/* Finds the bytes that training holds for each byte of param=, for a graph record. Its
 * precision is its precision= or, without that key, `precision`. Without optimizer, by
 * the published rule, *parameter becomes 1. */
bool device_read_parameter(const struct device_optimizer *optimizer,
                           enum device_precision precision,
                           const struct rec_reader *reader, const struct rec *rec,
                           double *parameter, struct rec_error *err) REC_MUST_CHECK;

/* Sets *err: the graph whose graph record is at `file` and `line` has ended without an
 * op. Returns false. lib/graph refuses such graphs, too. */
bool device_fail_no_ops(const char *file, uint64_t line, const char *graph,
                        struct rec_error *err);

#endif
