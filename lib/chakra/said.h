/* The attributes and texts of a file that is being read (said.c, text.c). */
#ifndef RAMPIPE_CHAKRA_SAID_H
#define RAMPIPE_CHAKRA_SAID_H

#include "private.h"

#include <proto/chakra.pb-c.h>
#include <stdio.h>

/* The values of a node's attributes; NAN or NULL: it does not have the attribute. */
struct said {
    double is_cpu_op, num_ops, tensor_size, comm_type, comm_size, comm_src, comm_dst,
        comm_tag, tid;
    const char *pg_name;
    /* attributes "rampipe.*", which chakra_write() writes: */
    const char *op, *pass, *keys, *pair, *of, *dep_keys, *lane, *order, *coll_id,
        *coll_keys;
    double part, parts, param, activation, memory, compute, bytes, placed, priority, join,
        dep, sync, coll, coll_bytes;
    const Chakra__Counts *deps;
    const Chakra__Doubles *dep_bytes;
    const Chakra__Texts *deps_keys;
    const Chakra__Bools *dims;
};

/* Collects the attributes of a node. Texts and lists are borrowed from the message. */
struct said chakra_hear(const Chakra__Node *message);

/* ---- texts (text.c) -------------------------------------------------------- */

/* The file that is being read. */
struct chakra_reading {
    struct chakra_traces *traces;
    const char *name;
    uint64_t messages;
    struct rec_error *err;
};

/* Copies a text to the arena of the traces. NULL: *err. */
const char *chakra_keep(struct chakra_reading *r, const char *text);
/* Closes a text and copies it to the arena, as *kept. */
bool chakra_keep_written(struct chakra_reading *r, struct rec_text *text,
                         const char **kept);
/* Writes a foreign name as text of a record: bytes that no field may hold, such as
 * control characters and damaged UTF-8, become _. */
void chakra_put_clean(FILE *out, const char *text);
/* Refuses an id in an attribute rampipe.* that no record may hold: such a file was
 * changed after chakra_write() wrote it. */
bool chakra_check_id(struct chakra_reading *r, const struct chakra_node *node,
                     const char *text);
/* Reads the process groups that a node describes in its inputs (groups.c). */
bool chakra_read_groups(struct chakra_reading *r, const struct chakra_node *node,
                        const char *text);
/* Checks a list of keys in an attribute rampipe.*, each of which follows a TAB. */
bool chakra_check_keys(struct chakra_reading *r, enum rec_type type, const char *keys);

#endif
