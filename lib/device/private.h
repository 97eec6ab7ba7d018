/* What the files of lib/device share with each other and with nobody else. */
#ifndef RAMPIPE_DEVICE_PRIVATE_H
#define RAMPIPE_DEVICE_PRIVATE_H

#include "rampipe/device.h"

extern const char device_shipped[];
extern const uint64_t device_shipped_size;

/* The value of precision=, if the record has it. */
bool device_key_precision(const struct rec_reader *reader, const struct rec *rec,
                          enum device_precision *precision,
                          struct rec_error *err) REC_MUST_CHECK;

/* Bytes that training holds a byte of param=, of a graph record's precision=, or
 * `precision` if it does not say its own; 1 without optimizer, which is the published
 * rule. */
bool device_read_parameter(const struct device_optimizer *optimizer,
                           enum device_precision precision,
                           const struct rec_reader *reader, const struct rec *rec,
                           double *parameter, struct rec_error *err) REC_MUST_CHECK;

/* A graph that ended without an op, as lib/graph refuses it. False. `file` and `line` are
 * those of its graph record. */
bool device_fail_no_ops(const char *file, uint64_t line, const char *graph,
                        struct rec_error *err);

#endif
