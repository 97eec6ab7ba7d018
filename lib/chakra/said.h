/* The attributes of a node, for read.c. */
#ifndef RAMPIPE_CHAKRA_SAID_H
#define RAMPIPE_CHAKRA_SAID_H

#include "private.h"

#include <proto/chakra.pb-c.h>

/* The values of a node's attributes; NAN or NULL: it does not have the attribute. */
struct said {
    double is_cpu_op, num_ops, tensor_size, comm_type, comm_size, comm_src, comm_dst,
        comm_tag, tid;
    const char *pg_name;
    /* attributes "rampipe.*", which chakra_write() writes: */
    const char *op, *pass, *keys, *pair, *of, *dep_keys, *lane, *order;
    double part, parts, param, activation, memory, compute, bytes, placed, priority, join,
        dep, sync;
    const Chakra__Counts *deps;
    const Chakra__Doubles *dep_bytes;
    const Chakra__Texts *deps_keys;
};

/* Collects the attributes of a node. Texts and lists are borrowed from the message. */
struct said chakra_hear(const Chakra__Node *message);

#endif
