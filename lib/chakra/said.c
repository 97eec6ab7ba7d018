/* Reads the attributes of a node into a struct, by a table of their names. */
#include "said.h"

#define NUMBER(name, field)                             \
    {                                                   \
        name, offsetof(struct said, field), SAID_NUMBER \
    }
#define TEXT(name, field)                             \
    {                                                 \
        name, offsetof(struct said, field), SAID_TEXT \
    }
#define LIST(name, field, list)                  \
    {                                            \
        name, offsetof(struct said, field), list \
    }

enum said_kind {
    SAID_NUMBER,
    SAID_TEXT,
    SAID_COUNTS,
    SAID_DOUBLES,
    SAID_BOOLS,
    SAID_TEXTS
};

static const struct {
    const char *name;
    size_t at;
    enum said_kind kind;
} attributes[] = {
    NUMBER("is_cpu_op", is_cpu_op),
    NUMBER("num_ops", num_ops),
    NUMBER("tensor_size", tensor_size),
    NUMBER("comm_type", comm_type),
    NUMBER("comm_size", comm_size),
    NUMBER("comm_src", comm_src),
    NUMBER("comm_dst", comm_dst),
    NUMBER("comm_tag", comm_tag),
    NUMBER("tid", tid),
    TEXT("pg_name", pg_name),
    TEXT("rampipe.op", op),
    TEXT("rampipe.pass", pass),
    TEXT("rampipe.keys", keys),
    TEXT("rampipe.pair", pair),
    TEXT("rampipe.of", of),
    TEXT("rampipe.dep_key", dep_keys),
    TEXT("rampipe.lane", lane),
    TEXT("rampipe.order", order),
    NUMBER("rampipe.part", part),
    NUMBER("rampipe.parts", parts),
    NUMBER("rampipe.param", param),
    NUMBER("rampipe.activation", activation),
    NUMBER("rampipe.memory", memory),
    NUMBER("rampipe.compute", compute),
    NUMBER("rampipe.bytes", bytes),
    NUMBER("rampipe.placed", placed),
    NUMBER("rampipe.priority", priority),
    NUMBER("rampipe.join", join),
    NUMBER("rampipe.dep", dep),
    NUMBER("rampipe.sync", sync),
    NUMBER("rampipe.coll", coll),
    NUMBER("rampipe.coll_bytes", coll_bytes),
    TEXT("rampipe.coll_id", coll_id),
    TEXT("rampipe.coll_keys", coll_keys),
    LIST("involved_dim", dims, SAID_BOOLS),
    LIST("rampipe.deps", deps, SAID_COUNTS),
    LIST("rampipe.dep_bytes", dep_bytes, SAID_DOUBLES),
    LIST("rampipe.dep_keys", deps_keys, SAID_TEXTS),
};

/* The value of an attribute of any type of number, since the writers of traces use
 * different types for the same attribute. */
static double
number_of(const Chakra__Attribute *a)
{
    switch (a->value_case) {
    case CHAKRA__ATTRIBUTE__VALUE_DOUBLE_VALUE: return a->double_value;
    case CHAKRA__ATTRIBUTE__VALUE_FLOAT_VALUE: return (double)a->float_value;
    case CHAKRA__ATTRIBUTE__VALUE_INT32_VALUE: return a->int32_value;
    case CHAKRA__ATTRIBUTE__VALUE_INT64_VALUE: return (double)a->int64_value;
    case CHAKRA__ATTRIBUTE__VALUE_UINT32_VALUE: return a->uint32_value;
    case CHAKRA__ATTRIBUTE__VALUE_UINT64_VALUE: return (double)a->uint64_value;
    case CHAKRA__ATTRIBUTE__VALUE_SINT32_VALUE: return a->sint32_value;
    case CHAKRA__ATTRIBUTE__VALUE_SINT64_VALUE: return (double)a->sint64_value;
    case CHAKRA__ATTRIBUTE__VALUE_FIXED32_VALUE: return a->fixed32_value;
    case CHAKRA__ATTRIBUTE__VALUE_FIXED64_VALUE: return (double)a->fixed64_value;
    case CHAKRA__ATTRIBUTE__VALUE_SFIXED32_VALUE: return a->sfixed32_value;
    case CHAKRA__ATTRIBUTE__VALUE_SFIXED64_VALUE: return (double)a->sfixed64_value;
    case CHAKRA__ATTRIBUTE__VALUE_BOOL_VALUE: return a->bool_value;
    default: return NAN;
    }
}

static void
hear(struct said *said, const Chakra__Attribute *a)
{
    size_t i = 0, n = sizeof attributes / sizeof *attributes;
    char *at;
    while (i < n && strcmp(attributes[i].name, a->name) != 0)
        i++;
    if (i == n)
        return;
    at = (char *)said + attributes[i].at;
    switch (attributes[i].kind) {
    case SAID_NUMBER: *(double *)at = number_of(a); break;
    case SAID_TEXT:
        if (a->value_case == CHAKRA__ATTRIBUTE__VALUE_TEXT)
            *(const char **)at = a->text;
        break;
    case SAID_COUNTS:
        if (a->value_case == CHAKRA__ATTRIBUTE__VALUE_COUNTS)
            *(const Chakra__Counts **)at = a->counts;
        break;
    case SAID_DOUBLES:
        if (a->value_case == CHAKRA__ATTRIBUTE__VALUE_DOUBLES)
            *(const Chakra__Doubles **)at = a->doubles;
        break;
    case SAID_BOOLS:
        if (a->value_case == CHAKRA__ATTRIBUTE__VALUE_BOOLS)
            *(const Chakra__Bools **)at = a->bools;
        break;
    default:
        if (a->value_case == CHAKRA__ATTRIBUTE__VALUE_TEXTS)
            *(const Chakra__Texts **)at = a->texts;
    }
}

struct said
chakra_hear(const Chakra__Node *message)
{
    struct said said = {0};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].kind == SAID_NUMBER)
            *(double *)((char *)&said + attributes[i].at) = NAN;
    for (size_t i = 0; i < message->n_attribute; i++)
        hear(&said, message->attribute[i]);
    return said;
}
