/* Reads the files of ranks into nodes. A node that chakra_write() wrote ("ours") has
 * attributes rampipe.*, from which its op is restored exactly; the op of a foreign node
 * is made of the standard attributes. Nothing in a file is trusted: texts become parts of
 * records, so they are checked or cleaned. */
#include "said.h"

#include <stdio.h>
#include <stdlib.h>

/* The bytes that one message may take when unpacked: a short message can ask for very
 * many. */
#define UNPACKED_MAX ((size_t)1 << 30)

struct chakra_traces *
chakra_traces_new(struct rec_error *err)
{
    struct chakra_traces *traces = calloc(1, sizeof *traces);
    if (!traces)
        rec_fail_memory(err);
    return traces;
}

void
chakra_traces_free(struct chakra_traces *traces)
{
    if (!traces)
        return;
    rec_arena_free(&traces->arena);
    free(traces->file);
    free(traces->node);
    free(traces->parent);
    free(traces->link);
    free(traces->gate);
    free(traces->part);
    free(traces->member);
    free(traces->group);
    free(traces->group_rank);
    free(traces);
}

bool
chakra_fail(const struct chakra_traces *traces, const struct chakra_node *node,
            struct rec_error *err, const char *format, ...)
{
    char text[500];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return rec_fail(err, REC_DATA, "%s: node %llu: %s",
                    rec_input_name(traces->file[node->file].path),
                    (unsigned long long)node->id, text);
}

/* ---- unpacking ------------------------------------------------------------- */

/* The memory of one message, and why getting more failed. */
struct unpacking {
    size_t used;  /* bytes */
    bool starved; /* malloc() failed */
    bool excess;  /* more than UNPACKED_MAX was asked for */
};

static void *
get_memory(void *context, size_t size)
{
    struct unpacking *unpacking = context;
    void *memory;
    if (size > UNPACKED_MAX - unpacking->used) {
        unpacking->excess = true;
        return NULL;
    }
    unpacking->used += size;
    memory = malloc(size);
    unpacking->starved = unpacking->starved || !memory;
    return memory;
}

static void
give_back(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static ProtobufCMessage *
unpack(struct chakra_reading *r, const ProtobufCMessageDescriptor *of,
       const uint8_t *bytes, size_t size)
{
    struct unpacking unpacking = {0};
    ProtobufCAllocator memory = {get_memory, give_back, &unpacking};
    ProtobufCMessage *message = protobuf_c_message_unpack(of, &memory, size, bytes);
    r->messages++;
    if (!message && unpacking.starved)
        rec_fail_memory(r->err);
    else if (!message)
        rec_fail(r->err, REC_DATA, "%s: message %llu %s", r->name,
                 (unsigned long long)r->messages,
                 unpacking.excess ? "needs more than 1 GiB of memory"
                                  : "is damaged: it is not a protobuf message");
    return message;
}

/* ---- nodes ----------------------------------------------------------------- */

uint64_t
chakra_micros(double seconds)
{
    double micros = round(seconds * 1e6);
    return micros < 0x1p63 ? (uint64_t)micros : (uint64_t)1 << 63;
}

int64_t
chakra_size(double bytes)
{
    double whole = round(bytes);
    return whole < 1 ? 1 : whole < 0x1p62 ? (int64_t)whole : (int64_t)1 << 62;
}

static bool
is_amount(double value)
{
    return value >= 0 && isfinite(value);
}

/* A number as a count; `none` if it is no count, such as NAN. */
static uint64_t
count_of(double value, uint64_t none)
{
    return value >= 0 && value < 0x1p53 ? (uint64_t)value : none;
}

/* Reads the size of a message. comm_size is an integer; rampipe.bytes has the exact
 * number, which holds if it rounds to comm_size: another program may have changed
 * comm_size. */
static bool
read_size(struct chakra_reading *r, struct chakra_node *node, const struct said *said)
{
    node->bytes = isnan(said->comm_size) ? 0 : said->comm_size;
    if (!is_amount(node->bytes))
        return chakra_fail(r->traces, node, r->err, "comm_size must be a number >= 0");
    if (is_amount(said->bytes) && (double)chakra_size(said->bytes) == node->bytes)
        node->bytes = said->bytes;
    return true;
}

static bool
read_parents(struct chakra_reading *r, struct chakra_node *node,
             const Chakra__Node *message, const struct said *said)
{
    struct chakra_traces *t = r->traces;
    size_t n = message->n_data_parent, all = n + message->n_control_parent;
    node->first = t->nparents;
    node->nparents = n;
    node->ncontrol = message->n_control_parent;
    if (!rec_grow(&t->parent, &t->parent_room, t->nparents + all + 1, sizeof *t->parent,
                  r->err))
        return false;
    for (size_t i = n; i < all; i++)
        t->parent[t->nparents + i].id = message->control_parent[i - n];
    t->nparents += all;
    for (size_t i = 0; i < n; i++) {
        struct chakra_parent *parent = &t->parent[node->first + i];
        *parent = (struct chakra_parent){message->data_parent[i], CHAKRA_LAST, 0, ""};
        if (said->deps && i < said->deps->n_value) /* chakra_write() wrote it */
            parent->order = said->deps->value[i];
        if (said->dep_bytes && i < said->dep_bytes->n_value &&
            is_amount(said->dep_bytes->value[i]))
            parent->bytes = said->dep_bytes->value[i];
        if (said->deps_keys && i < said->deps_keys->n_value &&
            *said->deps_keys->value[i] &&
            (!chakra_check_keys(r, REC_DEP, said->deps_keys->value[i]) ||
             !(parent->keys = chakra_keep(r, said->deps_keys->value[i]))))
            return false;
    }
    return true;
}

static void
put_number(FILE *out, const char *key, double value)
{
    char text[REC_NUM_MAX];
    rec_format_num(text, value);
    fprintf(out, "\t%s=%s", key, text);
}

/* Makes the key bytes= of an op say the size of its message. They differ if another
 * program has changed comm_size, which then holds. */
static bool
set_bytes(struct chakra_reading *r, struct chakra_node *node)
{
    static const char key[] = "\tbytes=";
    const char *at = strstr(node->op.extra, key), *end;
    struct rec_text text;
    double value;
    if (node->type == CHAKRA_COMP || !at)
        return true;
    end = at + sizeof key - 1 + strcspn(at + sizeof key - 1, "\t");
    if (rec_parse_num(
            (struct rec_str){at + sizeof key - 1, (size_t)(end - at) - (sizeof key - 1)},
            &value) &&
        value == node->bytes)
        return true;
    if (!rec_text_open(&text, r->err))
        return false;
    fwrite(node->op.extra, 1, (size_t)(at - node->op.extra), text.out);
    put_number(text.out, "bytes", node->bytes);
    fputs(end, text.out);
    return chakra_keep_written(r, &text, &node->op.extra);
}

static bool
read_lane(struct chakra_reading *r, struct chakra_node *node, const struct said *said)
{
    node->turn = GRAPH_NO_ORDER;
    if (said->lane && (!chakra_check_id(r, node, said->lane) ||
                       !(node->lane = chakra_keep(r, said->lane))))
        return false;
    return !said->order || rec_parse_uint(rec_str(said->order), &node->turn) ||
           chakra_fail(r->traces, node, r->err,
                       "attribute rampipe.order must be an integer >= 0, got '%.40s'",
                       said->order);
}

/* Restores the op from which chakra_write() made a node. */
static bool
read_ours(struct chakra_reading *r, struct chakra_node *node, const struct said *said)
{
    static const char *const passes[] = {"forward", "backward"};
    struct graph_op *op = &node->op;
    const char *keys = said->keys ? said->keys : "";
    node->ours = true;
    op->pass = GRAPH_TASK;
    for (int i = 0; said->pass && i < 2; i++)
        if (strcmp(said->pass, passes[i]) == 0)
            op->pass = (enum graph_pass)i;
    if (!chakra_check_id(r, node, said->op) || !(op->id = chakra_keep(r, said->op)) ||
        !chakra_check_keys(r, REC_OP, keys) || !(op->extra = chakra_keep(r, keys)) ||
        !set_bytes(r, node) ||
        (said->pair && (!chakra_check_id(r, node, said->pair) ||
                        !(node->pair = chakra_keep(r, said->pair)))) ||
        (said->of &&
         (!chakra_check_id(r, node, said->of) || !(op->of = chakra_keep(r, said->of)))))
        return false;
    if (is_amount(said->compute) &&
        chakra_micros(said->compute) == chakra_micros(op->compute))
        op->compute = said->compute;
    op->memory = is_amount(said->memory) ? said->memory : 0;
    op->param = is_amount(said->param) ? said->param : NAN;
    op->activation = is_amount(said->activation) ? said->activation : NAN;
    op->part = (uint32_t)(said->part < 0x1p31 ? count_of(said->part, 1) : 0);
    op->parts = (uint32_t)(said->parts < 0x1p31 ? count_of(said->parts, 1) : 1);
    if (isnan(said->part))
        op->part = op->parts = 1;
    if (op->part < 1 || op->part > op->parts || (op->parts > 1 && !op->of))
        return chakra_fail(
            r->traces, node, r->err,
            "attributes rampipe.part, .parts and .of are no part of an op");
    node->order = node->id;
    node->placed = count_of(said->placed, node->id);
    node->priority = isfinite(said->priority) ? said->priority : NAN;
    node->join = count_of(said->join, CHAKRA_LAST);
    return read_lane(r, node, said);
}

/* Makes the keys of a foreign node's op. */
static bool
write_keys(struct chakra_reading *r, struct chakra_node *node,
           const Chakra__Node *message, const struct said *said)
{
    static const char *const words[CHAKRA_NTYPES] = {
        [CHAKRA_SEND] = CHAKRA_WORD_SEND, [CHAKRA_RECV] = CHAKRA_WORD_RECV};
    struct rec_text text;
    if (!rec_text_open(&text, r->err))
        return false;
    if (*message->name) {
        fputs("\ttype=", text.out);
        chakra_put_clean(text.out, message->name);
    }
    if (!isnan(said->num_ops))
        put_number(text.out, "flops", said->num_ops);
    if (!isnan(said->tensor_size))
        put_number(text.out, "moved", said->tensor_size);
    if (node->type != CHAKRA_COMP) {
        fprintf(text.out, "\tcoll=%s",
                node->type == CHAKRA_COLL ? chakra_collectives[node->collective]
                                          : words[node->type]);
        put_number(text.out, "bytes", node->bytes);
        if (*node->group) {
            fputs("\tgroup=", text.out);
            chakra_put_clean(text.out, node->group);
        }
    }
    return chakra_keep_written(r, &text, &node->op.extra);
}

/* Makes the op of a foreign node. */
static bool
read_foreign(struct chakra_reading *r, struct chakra_node *node,
             const Chakra__Node *message, const struct said *said)
{
    char id[48];
    snprintf(id, sizeof id, "%u.%llu", node->rank, (unsigned long long)node->id);
    node->op.part = node->op.parts = 1;
    node->op.param = node->op.activation = node->priority = NAN;
    node->op.pass = GRAPH_TASK;
    node->order = node->placed = node->join = CHAKRA_LAST;
    node->turn = GRAPH_NO_ORDER;
    if ((!isnan(said->num_ops) && !is_amount(said->num_ops)) ||
        (!isnan(said->tensor_size) && !is_amount(said->tensor_size)))
        return chakra_fail(r->traces, node, r->err,
                           "num_ops and tensor_size must be numbers >= 0");
    if (strstr(message->name, "process_group:init") && message->inputs &&
        !chakra_read_groups(r, node, message->inputs->values))
        return false;
    return (node->op.id = chakra_keep(r, id)) && write_keys(r, node, message, said);
}

/* Reads the type of a node and the attributes of communication. A node of a type of
 * communication without comm_size is a call on a CPU, which starts or awaits it: it
 * counts as computation. Barriers have no size. */
static bool
read_type(struct chakra_reading *r, struct chakra_node *node, uint32_t type,
          const struct said *said)
{
    bool barrier = type == CHAKRA_COLL && said->comm_type == CHAKRA_BARRIER &&
                   !(said->is_cpu_op > 0);
    node->type = CHAKRA_COMP;
    if (type == CHAKRA_INVALID || type >= CHAKRA_NTYPES)
        return chakra_fail(r->traces, node, r->err,
                           "its type must be from 1 to %d, got %u", CHAKRA_NTYPES - 1,
                           type);
    if (type < CHAKRA_SEND || (isnan(said->comm_size) && !barrier))
        return true;
    node->type = (enum chakra_type)type;
    node->src = isnan(said->comm_src) ? node->rank : said->comm_src;
    node->dst = isnan(said->comm_dst) ? node->rank : said->comm_dst;
    node->tag = isnan(said->comm_tag) ? 0 : said->comm_tag;
    if (!read_size(r, node, said))
        return false;
    if (type != CHAKRA_COLL)
        return true;
    if (!(said->comm_type >= 0 && said->comm_type <= CHAKRA_BARRIER))
        return chakra_fail(r->traces, node, r->err,
                           "comm_type of a collective must be from 0 to %d",
                           CHAKRA_BARRIER);
    node->collective = (uint32_t)said->comm_type;
    for (size_t i = 0; said->dims && i < said->dims->n_value; i++)
        node->partly = node->partly || !said->dims->value[i];
    node->group = chakra_keep(r, said->pg_name ? said->pg_name : "");
    return node->group != NULL;
}

/* Reads the dep between a send and its receive. Such a node carries a dep, and is no op,
 * if it has the attribute rampipe.dep and not rampipe.op. */
static bool
read_carried(struct chakra_reading *r, struct chakra_node *node, const struct said *said)
{
    bool sync = !isnan(said->sync);
    node->carried = (struct chakra_parent){.id = count_of(said->sync, 0),
                                           .order = count_of(said->dep, CHAKRA_LAST),
                                           .bytes = node->bytes,
                                           .keys = ""};
    node->sync = sync;
    node->carries = !said->op && node->type != CHAKRA_COMP && node->type != CHAKRA_COLL &&
                    node->carried.order != CHAKRA_LAST;
    return !said->dep_keys || (chakra_check_keys(r, REC_DEP, said->dep_keys) &&
                               (node->carried.keys = chakra_keep(r, said->dep_keys)));
}

/* Reads a node that chakra_write() made of a coll: its parents on this rank take part. */
static bool
read_coll(struct chakra_reading *r, struct chakra_node *node, const Chakra__Node *message,
          const struct said *said)
{
    const char *keys = said->coll_keys ? said->coll_keys : "";
    node->ours = node->carries = true;
    node->type = CHAKRA_COMP;
    node->coll = count_of(said->coll, 0);
    node->coll_kind = GRAPH_SEND;
    node->coll_bytes = said->coll_bytes;
    if (!read_size(r, node, said) || !read_lane(r, node, said) ||
        !chakra_check_id(r, node, said->coll_id) ||
        !chakra_check_keys(r, REC_COLL, keys) ||
        !(node->coll_id = chakra_keep(r, said->coll_id)) ||
        !(node->coll_keys = chakra_keep(r, keys)))
        return false;
    return message->type != CHAKRA_COLL ||
           chakra_coll_kind((uint32_t)count_of(said->comm_type, REC_NONE),
                            &node->coll_kind) ||
           chakra_fail(r->traces, node, r->err,
                       "it is the coll '%.60s', but no coll has its comm_type",
                       said->coll_id);
}

static bool
add_node(struct chakra_reading *r, const Chakra__Node *message)
{
    struct chakra_traces *t = r->traces;
    struct said said = chakra_hear(message);
    struct chakra_node *node;
    if (t->nnodes >= GRAPH_NONE / 4)
        return rec_fail(r->err, REC_DATA, "%s: too many nodes", r->name);
    if (!rec_grow(&t->node, &t->node_room, t->nnodes + 1, sizeof *t->node, r->err))
        return false;
    node = &t->node[t->nnodes];
    *node = (struct chakra_node){.id = message->id,
                                 .file = (uint32_t)t->nfiles - 1,
                                 .rank = t->file[t->nfiles - 1].rank,
                                 .thread = said.tid,
                                 .group = "",
                                 .gate = REC_NONE,
                                 .coll = CHAKRA_LAST};
    node->op.compute = (double)message->duration_micros / 1e6;
    if (said.coll_id && count_of(said.coll, CHAKRA_LAST) != CHAKRA_LAST) {
        if (!read_parents(r, node, message, &said) || !read_coll(r, node, message, &said))
            return false;
    } else if (!read_type(r, node, message->type, &said) ||
               !read_parents(r, node, message, &said) || !read_carried(r, node, &said))
        return false;
    else if (said.op ? !read_ours(r, node, &said)
                     : !node->carries && !read_foreign(r, node, message, &said))
        return false;
    t->file[t->nfiles - 1].end = (uint32_t)++t->nnodes;
    return true;
}

/* ---- files ----------------------------------------------------------------- */

/* Keeps the text of attribute *a as *kept if its name is `name`. All files must have the
 * same text, whose lines are text. `barred` are characters that it must not have; with a
 * comma among them it is an id, and must not be empty. */
static bool
take_name(struct chakra_reading *r, const Chakra__Attribute *a, const char *name,
          const char *barred, const char **kept)
{
    struct rec_str rest, line;
    bool ok;
    if (strcmp(a->name, name) != 0 || a->value_case != CHAKRA__ATTRIBUTE__VALUE_TEXT)
        return true;
    rest = rec_str(a->text);
    if (*kept && strcmp(*kept, a->text) != 0)
        return rec_fail(r->err, REC_DATA,
                        "%s: %s is '%s', in a file before it is '%s': the ranks must be "
                        "of one graph",
                        r->name, name, a->text, *kept);
    ok = !strpbrk(a->text, barred) && (*a->text || !strchr(barred, ','));
    while (ok && rec_str_split(&rest, '\n', &line))
        ok = rec_is_text(line);
    if (!ok)
        return rec_fail(r->err, REC_DATA, "%s: %s is no valid name", r->name, name);
    return (*kept = chakra_keep(r, a->text)) != NULL;
}

static bool
take_metadata(struct chakra_reading *r, const Chakra__Metadata *metadata)
{
    struct chakra_traces *t = r->traces;
    for (size_t i = 0; i < metadata->n_attribute; i++) {
        const Chakra__Attribute *a = metadata->attribute[i];
        if (!take_name(r, a, "rampipe.graph", ",=\t\n", &t->graph) ||
            !take_name(r, a, "rampipe.model", "\t\n", &t->model) ||
            !take_name(r, a, "rampipe.keys", "\n", &t->keys) ||
            !take_name(r, a, "rampipe.layout", ",=\t\n", &t->layout) ||
            !take_name(r, a, "rampipe.cluster", "", &t->cluster) ||
            !take_name(r, a, "rampipe.server", ",\t\n", &t->file[t->nfiles - 1].server))
            return false;
    }
    return !t->keys || chakra_check_keys(r, REC_GRAPH, t->keys);
}

static bool
read_message(struct chakra_reading *r, const uint8_t *bytes, size_t size)
{
    bool first = r->messages == 0, ok;
    ProtobufCMessage *message =
        unpack(r, first ? &chakra__metadata__descriptor : &chakra__node__descriptor,
               bytes, size);
    if (!message)
        return false;
    ok = first ? take_metadata(r, (const Chakra__Metadata *)message)
               : add_node(r, (const Chakra__Node *)message);
    protobuf_c_message_free_unpacked(message, NULL);
    return ok;
}

bool
chakra_read(struct chakra_traces *traces, const char *path, uint32_t rank,
            struct rec_error *err)
{
    struct chakra_reading r = {
        .traces = traces, .name = rec_input_name(path), .err = err};
    struct chakra_wire *wire;
    const uint8_t *bytes;
    size_t size;
    int status;
    if (!rec_grow(&traces->file, &traces->file_room, traces->nfiles + 1,
                  sizeof *traces->file, err))
        return false;
    traces->file[traces->nfiles].server = NULL;
    traces->file[traces->nfiles].path = path;
    traces->file[traces->nfiles].rank = rank;
    traces->file[traces->nfiles].first = (uint32_t)traces->nnodes;
    traces->file[traces->nfiles++].end = (uint32_t)traces->nnodes;
    if (!(wire = chakra_wire_open(path, err)))
        return false;
    while ((status = chakra_wire_next(wire, &bytes, &size, err)) > 0)
        if (!read_message(&r, bytes, size)) {
            status = -1;
            break;
        }
    chakra_wire_close(wire);
    if (status == 0 && r.messages == 0)
        return rec_fail(err, REC_IO,
                        "%s: the file is empty, so it is not an execution trace", r.name);
    return status == 0;
}

const char *
chakra_cluster(const struct chakra_traces *traces, size_t *nfiles)
{
    *nfiles = traces->nfiles;
    for (size_t i = 0; i < traces->nfiles; i++)
        if (!traces->file[i].server)
            return NULL;
    return traces->cluster;
}

const char *
chakra_server(const struct chakra_traces *traces, size_t file)
{
    return traces->file[file].server;
}
