/* What net.c takes from levels.c. */
#ifndef RAMPIPE_NET_LEVELS_H
#define RAMPIPE_NET_LEVELS_H

#include "rampipe/net_kind.h"

bool levels_parse(const struct net *net, struct rec_str name, uint32_t *server);
/* The geometry by levels, and how many numbers it has for a server. */
size_t levels_numbers(const struct net *net);
bool levels_geometry(const struct net *net, const uint32_t *server, uint32_t n,
                     uint32_t *numbers, struct rec_error *err);

/** net_alone() of a cluster that has a table of measured times. */
bool net_alone_measured(const struct net *net, const struct net_exchange *exchange,
                        size_t n, double *seconds, struct rec_error *err) REC_MUST_CHECK;
/** Reads the key system=. */
bool net_key_system(const struct rec_reader *reader, const struct rec *rec,
                    struct net *net, struct rec_error *err) REC_MUST_CHECK;

#endif
