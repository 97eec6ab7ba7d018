/* Reads a file into the message of the protobuf schema (onnx.proto), and reads attributes
 * of nodes. protobuf-c does the unpacking; here are its limit of memory, and the
 * difference between a file that is cut and one that is damaged. */
#include "private.h"

#include <stdlib.h>

/* The bytes that an unpacked message may take in addition to the file's size: a few bytes
 * of a damaged file can ask for very many. */
#define UNPACKED_MORE ((size_t)1 << 30)

struct bytes {
    uint8_t *at;
    size_t used, room;
};

static bool
read_bytes(const char *path, struct bytes *bytes, struct rec_error *err)
{
    enum { CHUNK = 1 << 16 };
    struct rec_input *input = rec_input_open(path, err);
    ptrdiff_t n = input ? 1 : -1;
    while (n > 0) {
        n = -1;
        if (!rec_grow(&bytes->at, &bytes->room, bytes->used + CHUNK, 1, err))
            break;
        n = rec_input_read(input, (char *)bytes->at + bytes->used, CHUNK, false, err);
        bytes->used += n > 0 ? (size_t)n : 0;
    }
    rec_input_close(input);
    return n == 0;
}

/* Reads a varint of the protobuf format. False: it does not end before the file does, or
 * has more than ten bytes. */
static bool
take_varint(const struct bytes *bytes, size_t *at, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < bytes->used && shift < 64; shift += 7) {
        uint8_t byte = bytes->at[(*at)++];
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Does the last field of the outermost message end beyond the end of the file? Then the
 * file was cut; a file that is damaged elsewhere looks different. The number behind `key`
 * is the wire type: 0 varint, 1 and 5 fixed sizes, 2 length and bytes. */
static bool
is_cut(const struct bytes *bytes)
{
    size_t at = 0;
    while (at < bytes->used) {
        uint64_t key, n;
        if (!take_varint(bytes, &at, &key))
            return bytes->used - at < 10;
        switch (key & 7) {
        case 0:
            if (!take_varint(bytes, &at, &n))
                return at == bytes->used;
            continue;
        case 1: n = 8; break;
        case 5: n = 4; break;
        case 2:
            if (!take_varint(bytes, &at, &n))
                return at == bytes->used;
            break;
        default: return false;
        }
        if (n > bytes->used - at)
            return true;
        at += (size_t)n;
    }
    return false;
}

/* The memory of a message, and why getting more failed. */
struct unpacking {
    size_t left;  /* bytes that may still be used */
    bool starved; /* malloc() failed */
    bool excess;  /* more than `left` was asked for */
};

static void *
get_memory(void *context, size_t size)
{
    struct unpacking *unpacking = context;
    void *memory;
    if (size > unpacking->left) {
        unpacking->excess = true;
        return NULL;
    }
    unpacking->left -= size;
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

static Onnx__Model *
unpack(const char *name, const struct bytes *bytes, struct rec_error *err)
{
    struct unpacking unpacking = {.left = UNPACKED_MORE + bytes->used};
    ProtobufCAllocator memory = {get_memory, give_back, &unpacking};
    Onnx__Model *model = onnx__model__unpack(&memory, bytes->used, bytes->at);
    if (model)
        return model;
    if (unpacking.starved)
        rec_fail_memory(err);
    else if (unpacking.excess)
        rec_fail(err, REC_DATA, "%s: it needs 1 GiB more of memory than it has bytes",
                 name);
    else if (is_cut(bytes))
        rec_fail(err, REC_IO, "%s: the file is cut, or no ONNX model", name);
    else
        rec_fail(err, REC_DATA, "%s: it is damaged, or no ONNX model: no protobuf", name);
    return NULL;
}

Onnx__Model *
onnx_message_read(const char *path, struct rec_error *err)
{
    struct bytes bytes = {.at = NULL};
    Onnx__Model *model = NULL;
    if (read_bytes(path, &bytes, err) &&
        (bytes.used > 0 ||
         rec_fail(err, REC_IO, "%s: there is nothing in it", rec_input_name(path))))
        model = unpack(rec_input_name(path), &bytes, err);
    free(bytes.at);
    if (model && (!model->graph || model->graph->n_node == 0)) {
        rec_fail(err, REC_DATA, "%s: there is no graph in it: is it an ONNX model?",
                 rec_input_name(path));
        onnx_message_free(model);
        model = NULL;
    }
    return model;
}

void
onnx_message_free(Onnx__Model *model)
{
    ProtobufCAllocator memory = {get_memory, give_back, NULL};
    if (model)
        onnx__model__free_unpacked(model, &memory);
}

const Onnx__Attribute *
onnx_attribute(const Onnx__Node *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (strcmp(node->attribute[i]->name, name) == 0)
            return node->attribute[i];
    return NULL;
}

double
onnx_number(const Onnx__Node *node, const char *name)
{
    const Onnx__Attribute *attribute = onnx_attribute(node, name);
    return attribute ? (double)attribute->f : 0;
}

int64_t
onnx_integer(const Onnx__Node *node, const char *name, int64_t otherwise)
{
    const Onnx__Attribute *attribute = onnx_attribute(node, name);
    return attribute ? attribute->i : otherwise;
}

bool
onnx_is_float(int32_t element)
{
    enum { FLOAT = 1, FLOAT16 = 10, DOUBLE = 11, BFLOAT16 = 16 };
    return element == FLOAT || element == FLOAT16 || element == DOUBLE ||
           element == BFLOAT16;
}

const char *
onnx_clean(const char *name, char text[ONNX_NAME_MAX])
{
    size_t n = 0;
    for (; *name && n + 1 < ONNX_NAME_MAX; name++)
        text[n++] = *name < ' ' || *name > '~' ? '_' : *name;
    text[n] = '\0';
    return text;
}
