/* What the attributes of a node say; of lib/chakra alone. */
#ifndef RAMPIPE_CHAKRA_SAID_H
#define RAMPIPE_CHAKRA_SAID_H

#include "private.h"

#include <proto/chakra.pb-c.h>

/* What a node's attributes may say; NAN, NULL: they do not. */
struct said {
    double is_cpu_op, num_ops, tensor_size, comm_type, comm_size, comm_src, comm_dst,
        comm_tag, tid;
    const char *pg_name;
    /* chakra_write()'s: */
    const char *op, *pass, *keys, *pair, *of, *dep_keys;
    double part, parts, param, activation, memory, compute, bytes, placed, priority, join,
        dep, sync;
    const Chakra__Counts *deps;
    const Chakra__Doubles *dep_bytes;
    const Chakra__Texts *deps_keys;
};

/* Texts and lists are the message's. */
struct said chakra_hear(const Chakra__Node *message);

#endif
