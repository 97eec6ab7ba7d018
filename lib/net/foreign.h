/*
 * lib/net/foreign.h - networks that others describe, written as records.
 *
 *     foreign.c   ASTRA-sim and SimAI; which of all it is
 *     matrix.c    nvidia-smi topo -m
 */
#ifndef NET_FOREIGN_H
#define NET_FOREIGN_H

#include "rampipe/net.h"

#include <stdio.h>

/** Writes a link in both directions: bytes/s and seconds. */
void net_foreign_link(FILE *out, const char *from, const char *to, double bandwidth,
                      double latency);
/** Writes the records of the matrix that a reader has. */
bool net_foreign_matrix(struct rec_reader *reader, const struct net_assumed *assumed,
                        FILE *out, struct rec_error *err) REC_MUST_CHECK;

#endif
