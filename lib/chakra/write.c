/* Writes the trace of a slot. Node ids: op i is node i, and dep k has nodes nops + 2k
 * (send) and nops + 2k + 1 (receive), and entry k of the groups of colls has node nops +
 * 2 ndeps + k, so that all slots can be written on their own. */
#include "plan.h"

#include <proto/chakra.pb-c.h>
#include <stdio.h>
#include <stdlib.h>

/* More than any node has attributes: standard ones and rampipe.*. */
enum { ATTRIBUTES_MAX = 32 };

/* The node that is being written, and the memory to which its message points. */
struct draft {
    const struct chakra_plan *plan;
    struct rec_writer *writer;
    Chakra__Node node;
    Chakra__Attribute attribute[ATTRIBUTES_MAX], *list[ATTRIBUTES_MAX];
    Chakra__Counts deps, parents;
    Chakra__Doubles bytes;
    Chakra__Texts keys;
    bool any_bytes, any_keys;
    size_t room[4]; /* entries of parents, deps, bytes and keys */
    uint8_t *packed;
    size_t packed_room;
    char *text; /* remember() keeps it until the node is written */
    size_t text_room;
    char order[24]; /* order= of the op of the node */
    struct rec_error *err;
};

/* ---- messages -------------------------------------------------------------- */

/* Writes a message after its length, a varint: seven bits per byte, the lowest first. */
static bool
put_message(struct draft *d, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message), n = 0;
    char length[10];
    if (!rec_grow(&d->packed, &d->packed_room, size + 1, 1, d->err))
        return false;
    protobuf_c_message_pack(message, d->packed);
    for (uint64_t rest = size; n == 0 || rest > 0; rest >>= 7)
        length[n++] = (char)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    rec_put_bytes(d->writer, length, n);
    rec_put_bytes(d->writer, (const char *)d->packed, size);
    return rec_writer_ok(d->writer, d->err);
}

/* protobuf-c's texts are not const, although packing does not change them. */
static char *
loose(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Starts a node without attributes and parents. The lists keep their memory from node to
 * node. */
static void
start_node(struct draft *d, uint64_t id, enum chakra_type type, const char *name)
{
    chakra__node__init(&d->node);
    d->node.id = id;
    d->node.type = type;
    d->node.name = loose(name);
    d->node.attribute = d->list;
    d->parents.n_value = d->deps.n_value = d->bytes.n_value = d->keys.n_value = 0;
    d->any_bytes = d->any_keys = false;
}

/* Names are borrowed until the node is written. */
static Chakra__Attribute *
add_attribute(struct draft *d, const char *name, Chakra__Attribute__ValueCase kind)
{
    Chakra__Attribute *a = &d->attribute[d->node.n_attribute];
    chakra__attribute__init(a);
    a->name = loose(name);
    a->value_case = kind;
    d->list[d->node.n_attribute++] = a;
    return a;
}

static void
add_text(struct draft *d, const char *name, const char *text)
{
    if (text && *text)
        add_attribute(d, name, CHAKRA__ATTRIBUTE__VALUE_TEXT)->text = loose(text);
}

static void
add_double(struct draft *d, const char *name, double value)
{
    add_attribute(d, name, CHAKRA__ATTRIBUTE__VALUE_DOUBLE_VALUE)->double_value = value;
}

static void
add_count(struct draft *d, const char *name, uint64_t value)
{
    add_attribute(d, name, CHAKRA__ATTRIBUTE__VALUE_UINT64_VALUE)->uint64_value = value;
}

static void
add_int64(struct draft *d, const char *name, int64_t value)
{
    add_attribute(d, name, CHAKRA__ATTRIBUTE__VALUE_INT64_VALUE)->int64_value = value;
}

static void
add_int32(struct draft *d, const char *name, uint32_t value)
{
    add_attribute(d, name, CHAKRA__ATTRIBUTE__VALUE_INT32_VALUE)->int32_value =
        (int32_t)(value & INT32_MAX);
}

/* Adds comm_size, an integer from 1, and the exact bytes if they are another number. */
static void
add_size(struct draft *d, double bytes)
{
    int64_t size = chakra_size(bytes);
    add_int64(d, "comm_size", size);
    if ((double)size != bytes)
        add_double(d, "rampipe.bytes", bytes);
}

/* Says that the node does not run on a CPU. */
static void
add_runs_on(struct draft *d)
{
    add_attribute(d, "is_cpu_op", CHAKRA__ATTRIBUTE__VALUE_BOOL_VALUE)->bool_value = 0;
}

/* Joins two texts to one that stays until the next call. NULL: *err. */
static const char *
remember(struct draft *d, const char *before, const char *text, size_t len)
{
    size_t n = strlen(before);
    if (!rec_grow(&d->text, &d->text_room, n + len + 1, 1, d->err))
        return NULL;
    memcpy(d->text, before, n);
    memcpy(d->text + n, text, len);
    d->text[n + len] = '\0';
    return d->text;
}

/* ---- deps ------------------------------------------------------------------ */

static uint32_t
slot_of(const struct draft *d, uint32_t op)
{
    return d->plan->layout->slot[op];
}

/* The id of the send that carries a dep; its receive has the next id. */
static uint64_t
send_id(const struct draft *d, uint32_t dep)
{
    return d->plan->graph->nops + 2 * (uint64_t)dep;
}

/* The id of the node of a coll on the slot of an entry of its group. */
static uint64_t
coll_id(const struct draft *d, uint32_t entry)
{
    const struct graph *graph = d->plan->graph;
    return graph->nops + 2 * (uint64_t)graph->ndeps + entry;
}

/* Does a dep need a send and a receive? It does if its ends are on two slots. A sync dep
 * always does: as a data dependency it would make the op wait. */
static bool
is_carried(const struct draft *d, uint32_t dep)
{
    const struct chakra_plan *plan = d->plan;
    const struct graph_dep *at = &plan->graph->dep[dep];
    return plan->dst[dep] != GRAPH_NONE && plan->message[at->src] != dep &&
           (at->sync || slot_of(d, at->src) != slot_of(d, plan->dst[dep]));
}

/* Appends a data parent. The four lists are parallel; the lists of bytes and keys are
 * only written if one of their entries says something. */
static bool
add_parent(struct draft *d, uint64_t id, uint64_t order, double bytes, const char *keys)
{
    size_t n = d->parents.n_value;
    if (!rec_grow(&d->parents.value, &d->room[0], n + 1, sizeof(uint64_t), d->err) ||
        !rec_grow(&d->deps.value, &d->room[1], n + 1, sizeof(uint64_t), d->err) ||
        !rec_grow(&d->bytes.value, &d->room[2], n + 1, sizeof(double), d->err) ||
        !rec_grow(&d->keys.value, &d->room[3], n + 1, sizeof(char *), d->err))
        return false;
    d->parents.value[n] = id;
    d->deps.value[n] = order;
    d->bytes.value[n] = bytes;
    d->keys.value[n] = loose(keys);
    d->any_bytes = d->any_bytes || bytes != 0;
    d->any_keys = d->any_keys || *keys;
    d->parents.n_value = d->deps.n_value = d->bytes.n_value = d->keys.n_value = n + 1;
    return true;
}

/* Adds the list of parents to the node. */
static void
put_parents(struct draft *d)
{
    if (d->parents.n_value == 0)
        return;
    d->node.data_parent = d->parents.value;
    d->node.n_data_parent = d->parents.n_value;
    add_attribute(d, "rampipe.deps", CHAKRA__ATTRIBUTE__VALUE_COUNTS)->counts = &d->deps;
    if (d->any_bytes)
        add_attribute(d, "rampipe.dep_bytes", CHAKRA__ATTRIBUTE__VALUE_DOUBLES)->doubles =
            &d->bytes;
    if (d->any_keys)
        add_attribute(d, "rampipe.dep_keys", CHAKRA__ATTRIBUTE__VALUE_TEXTS)->texts =
            &d->keys;
}

/* Adds the deps that an op waits for as data dependencies, on nodes of the same file: on
 * the source itself, or on the receive that carries the dep. */
static bool
add_parents(struct draft *d, uint32_t op)
{
    const struct chakra_plan *plan = d->plan;
    for (uint32_t i = plan->in_start[op]; i < plan->in_start[op + 1]; i++) {
        uint32_t dep = plan->in[i];
        const struct graph_dep *at = &plan->graph->dep[dep];
        bool carried = is_carried(d, dep);
        if (at->sync || plan->message[op] == dep)
            continue;
        if (!add_parent(d, carried ? send_id(d, dep) + 1 : at->src, dep,
                        carried ? 0 : at->bytes, carried ? "" : at->extra))
            return false;
    }
    for (uint32_t i = plan->after_start ? plan->after_start[op] : 0;
         plan->after_start && i < plan->after_start[op + 1]; i++) {
        uint32_t after = plan->after_in[i];
        if (!add_parent(d, coll_id(d, plan->after_entry[after]),
                        plan->graph->ndeps + (uint64_t)after, 0,
                        plan->graph->after[after].extra))
            return false;
    }
    put_parents(d);
    return true;
}

/* Writes the send or the receive that carries a dep. */
static bool
put_carrier(struct draft *d, uint32_t dep, bool send)
{
    const struct graph *graph = d->plan->graph;
    const struct graph_dep *at = &graph->dep[dep];
    uint32_t dst = d->plan->dst[dep];
    uint64_t parent = at->src;
    const char *keys =
        remember(d, at->sync ? "\tkind=sync" : "", at->extra, strlen(at->extra));
    if (!keys)
        return false;
    start_node(d, send_id(d, dep) + !send, send ? CHAKRA_SEND : CHAKRA_RECV,
               graph->op[send ? at->src : dst].id);
    if (send) {
        d->node.data_parent = &parent;
        d->node.n_data_parent = 1;
    }
    add_runs_on(d);
    add_int32(d, "comm_src", slot_of(d, at->src));
    add_int32(d, "comm_dst", slot_of(d, dst));
    add_int32(d, "comm_tag", dep);
    add_size(d, at->bytes);
    add_count(d, "rampipe.dep", dep);
    if (!send)
        add_text(d, "rampipe.dep_key", keys);
    if (at->sync)
        add_count(d, "rampipe.sync", dst);
    return put_message(d, &d->node.base);
}

/* ---- ops ------------------------------------------------------------------- */

/* The value of a key that is a number >= 0; 0 if the op has no such key. */
static double
key_number(const struct graph_op *op, const char *key)
{
    struct rec_str text;
    double value;
    return graph_op_key(op, key, &text) && rec_parse_num(text, &value) && value >= 0 &&
                   isfinite(value)
               ? value
               : 0;
}

/* Adds the operations and bytes that ASTRA-sim's roofline needs. */
static void
add_work(struct draft *d, const struct graph_op *op)
{
    double flops = key_number(op, "flops"), moved = key_number(op, "moved");
    if (flops > 0)
        add_int64(d, "num_ops", chakra_size(flops));
    if (moved > 0)
        add_count(d, "tensor_size", (uint64_t)chakra_size(moved));
}

/* Makes the node a send, a receive or a collective if its op is one. */
static bool
add_communication(struct draft *d, uint32_t op)
{
    const struct graph_op *at = &d->plan->graph->op[op];
    uint32_t dep = d->plan->message[op], collective = chakra_collective_of(at);
    const char *name;
    struct rec_str group;
    if (dep != GRAPH_NONE) {
        const struct graph_dep *message = &d->plan->graph->dep[dep];
        d->node.type = message->src == op ? CHAKRA_SEND : CHAKRA_RECV;
        add_int32(d, "comm_src", slot_of(d, message->src));
        add_int32(d, "comm_dst", slot_of(d, message->dst));
        add_int32(d, "comm_tag", dep);
        add_size(d, message->bytes);
        add_count(d, "rampipe.dep", dep);
    } else if (collective != REC_NONE) {
        d->node.type = CHAKRA_COLL;
        add_int64(d, "comm_type", collective);
        add_size(d, key_number(at, "bytes"));
        if (d->plan->join[op] != GRAPH_NONE)
            add_count(d, "rampipe.join", d->plan->join[op]);
        if (graph_op_key(at, "group", &group)) {
            if (!(name = remember(d, "", group.ptr, group.len)))
                return false;
            add_text(d, "pg_name", name);
        }
    }
    return true;
}

/* Adds, as attributes rampipe.*, what the format cannot express, unless it is the value
 * that reading assumes. */
static void
add_rest(struct draft *d, uint32_t op)
{
    static const char *const passes[] = {"forward", "backward", ""};
    const struct graph *graph = d->plan->graph;
    const struct graph_op *at = &graph->op[op];
    const struct graph_layout *layout = d->plan->layout;
    double priority = layout->priority ? layout->priority[op] : (double)NAN;
    add_text(d, "rampipe.op", at->id);
    add_text(d, "rampipe.pass", passes[at->pass]);
    add_text(d, "rampipe.keys", at->extra);
    if ((double)d->node.duration_micros / 1e6 != at->compute)
        add_double(d, "rampipe.compute", at->compute);
    if (at->memory != 0)
        add_double(d, "rampipe.memory", at->memory);
    if (!isnan(at->param))
        add_double(d, "rampipe.param", at->param);
    if (!isnan(at->activation))
        add_double(d, "rampipe.activation", at->activation);
    if (at->pair != GRAPH_NONE)
        add_text(d, "rampipe.pair", graph->op[at->pair].id);
    if (at->of) {
        add_text(d, "rampipe.of", at->of);
        add_count(d, "rampipe.part", at->part);
        add_count(d, "rampipe.parts", at->parts);
    }
    if (layout->placed[op] != op)
        add_count(d, "rampipe.placed", layout->placed[op]);
    if (!isnan(priority))
        add_double(d, "rampipe.priority", priority);
    add_text(d, "rampipe.lane", graph_layout_lane_name(layout, op));
    if (layout->order && layout->order[op] != GRAPH_NO_ORDER) {
        snprintf(d->order, sizeof d->order, "%llu",
                 (unsigned long long)layout->order[op]);
        add_text(d, "rampipe.order", d->order); /* a text: a double is not exact */
    }
}

static bool
put_op(struct draft *d, uint32_t op)
{
    const struct graph_op *at = &d->plan->graph->op[op];
    start_node(d, op, CHAKRA_COMP, at->id);
    d->node.duration_micros = chakra_micros(at->compute);
    add_runs_on(d);
    add_work(d, at);
    if (!add_communication(d, op))
        return false;
    add_rest(d, op);
    return add_parents(d, op) && put_message(d, &d->node.base);
}

/* Writes an op, before it the receives of its deps, and after it the sends. */
static bool
put_all(struct draft *d, uint32_t op)
{
    const struct chakra_plan *plan = d->plan;
    bool ok = true;
    for (uint32_t i = plan->in_start[op]; ok && i < plan->in_start[op + 1]; i++)
        ok = !is_carried(d, plan->in[i]) || put_carrier(d, plan->in[i], false);
    ok = ok && put_op(d, op);
    for (uint32_t i = plan->graph->out_start[op];
         ok && i < plan->graph->out_start[op + 1]; i++)
        ok = !is_carried(d, plan->graph->out[i]) ||
             put_carrier(d, plan->graph->out[i], true);
    return ok;
}

/* ---- colls ----------------------------------------------------------------- */

/* A collective, or of a send a send and a receive; on one slot it does nothing. */
static void
add_exchange(struct draft *d, const struct graph_coll *coll, uint32_t entry)
{
    const struct chakra_plan *plan = d->plan;
    uint32_t c = plan->entry_coll[entry], type = chakra_coll_type(coll->kind);
    const uint32_t *ends = &plan->graph->coll_op[coll->first];
    if (type == REC_NONE && plan->coll_slots[c] < 2)
        return;
    add_runs_on(d);
    if (type != REC_NONE) {
        d->node.type = CHAKRA_COLL;
        add_int64(d, "comm_type", type);
        if (plan->coll_slots[c] < plan->layout->nslots)
            add_text(d, "pg_name", coll->id);
    } else {
        d->node.type = entry == coll->first ? CHAKRA_SEND : CHAKRA_RECV;
        add_int32(d, "comm_src", slot_of(d, ends[0]));
        add_int32(d, "comm_dst", slot_of(d, ends[1]));
        add_int32(d, "comm_tag", (uint32_t)plan->graph->ndeps + c);
    }
    if (coll->kind != GRAPH_BARRIER)
        add_int64(
            d, "comm_size",
            chakra_size(chakra_coll_share(coll->kind, coll->bytes, plan->coll_slots[c])));
}

/* Writes the node of a coll on the slot of an entry of its group, the first one there. */
static bool
put_coll(struct draft *d, uint32_t entry)
{
    const struct chakra_plan *plan = d->plan;
    const struct graph *graph = plan->graph;
    const struct graph_coll *coll = &graph->coll[plan->entry_coll[entry]];
    start_node(d, coll_id(d, entry), CHAKRA_COMP, coll->id);
    add_exchange(d, coll, entry);
    add_count(d, "rampipe.coll", plan->entry_coll[entry]);
    add_text(d, "rampipe.coll_id", coll->id);
    add_text(d, "rampipe.coll_keys", coll->extra);
    add_double(d, "rampipe.coll_bytes", coll->bytes);
    add_text(d, "rampipe.lane", coll->lane);
    for (uint32_t k = entry; k != GRAPH_NONE; k = plan->entry_next[k])
        if (!add_parent(d, graph->coll_op[k], k - coll->first, 0, ""))
            return false;
    put_parents(d);
    return put_message(d, &d->node.base);
}

static bool
put_colls(struct draft *d, uint32_t op)
{
    const struct chakra_plan *plan = d->plan;
    bool ok = true;
    if (!plan->entry_start)
        return true;
    for (uint32_t i = plan->entry_start[op]; ok && i < plan->entry_start[op + 1]; i++)
        ok = put_coll(d, plan->op_entry[i]);
    return ok;
}

/* The first message of a file. The start of a node serves to collect its attributes. */
static bool
put_metadata(struct draft *d, uint32_t slot)
{
    const struct graph *graph = d->plan->graph;
    Chakra__Metadata metadata;
    chakra__metadata__init(&metadata);
    start_node(d, 0, CHAKRA_INVALID, "");
    add_text(d, "rampipe.graph", graph->id);
    add_text(d, "rampipe.model", graph->model);
    add_text(d, "rampipe.keys", graph->extra);
    add_text(d, "rampipe.layout", d->plan->layout->id);
    if (d->plan->cluster) {
        add_text(d, "rampipe.cluster", d->plan->cluster);
        add_text(d, "rampipe.server", d->plan->server[slot]);
    }
    metadata.version = loose("0.0.4");
    metadata.attribute = d->list;
    metadata.n_attribute = d->node.n_attribute;
    return put_message(d, &metadata.base);
}

bool
chakra_write(const struct chakra_plan *plan, uint32_t slot, struct rec_writer *writer,
             struct rec_error *err)
{
    struct draft *d = calloc(1, sizeof *d);
    bool ok;
    if (!d)
        return rec_fail_memory(err);
    d->plan = plan;
    d->writer = writer;
    d->err = err;
    d->deps = (Chakra__Counts)CHAKRA__COUNTS__INIT;
    d->parents = (Chakra__Counts)CHAKRA__COUNTS__INIT;
    d->bytes = (Chakra__Doubles)CHAKRA__DOUBLES__INIT;
    d->keys = (Chakra__Texts)CHAKRA__TEXTS__INIT;
    ok = put_metadata(d, slot);
    for (uint32_t i = plan->slot_start[slot]; ok && i < plan->slot_start[slot + 1]; i++)
        ok = plan->folded[plan->slot_op[i]] ||
             (put_all(d, plan->slot_op[i]) && put_colls(d, plan->slot_op[i]));
    free(d->parents.value);
    free(d->deps.value);
    free(d->bytes.value);
    free(d->keys.value);
    free(d->packed);
    free(d->text);
    free(d);
    return ok;
}
