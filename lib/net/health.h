/* What net.c and routes.c take from health.c: the records of stragglers and faults. */
#ifndef RAMPIPE_NET_HEALTH_H
#define RAMPIPE_NET_HEALTH_H

#include "rampipe/net_kind.h"

/* A server or fault record. */
bool health_add(struct net *net, const struct rec_reader *reader, const struct rec *rec,
                struct rec_error *err) REC_MUST_CHECK;
/* Finds the links of the faults. */
bool health_close(struct net *net, struct rec_error *err) REC_MUST_CHECK;
void health_write(const struct net *net, struct rec_writer *writer);
/* `net` may be NULL. */
void health_free(struct net *net);

#endif
