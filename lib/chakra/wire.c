/* Splits a file into its messages, each of which follows its length (a varint), without
 * reading the whole file into memory. */
#include "private.h"

#include <stdlib.h>

/* The longest message, 64 MiB: the default limit of protobuf's own libraries. */
#define MESSAGE_MAX ((uint64_t)64 << 20)
enum { CHUNK = 1 << 16 };

struct chakra_wire {
    const char *name;
    struct rec_input *input;
    char chunk[CHUNK];
    size_t at, end; /* chunk[at], ..., chunk[end - 1] have not been taken yet */
    uint8_t *message;
    size_t room;
    uint64_t messages;
};

struct chakra_wire *
chakra_wire_open(const char *path, struct rec_error *err)
{
    struct chakra_wire *wire = calloc(1, sizeof *wire);
    if (!wire) {
        rec_fail_memory(err);
        return NULL;
    }
    wire->name = rec_input_name(path);
    wire->input = rec_input_open(path, err);
    if (!wire->input) {
        free(wire);
        return NULL;
    }
    return wire;
}

void
chakra_wire_close(struct chakra_wire *wire)
{
    if (!wire)
        return;
    rec_input_close(wire->input);
    free(wire->message);
    free(wire);
}

/* Makes bytes available in the chunk. 1: there are some; 0: the end of the file; -1:
 * *err. */
static int
fill(struct chakra_wire *wire, struct rec_error *err)
{
    ptrdiff_t n;
    if (wire->at < wire->end)
        return 1;
    n = rec_input_read(wire->input, wire->chunk, CHUNK, false, err);
    wire->at = 0;
    wire->end = n > 0 ? (size_t)n : 0;
    return n > 0 ? 1 : (int)n;
}

static int
fail_cut(const struct chakra_wire *wire, struct rec_error *err)
{
    rec_fail(err, REC_IO, "%s: the file is cut in message %llu", wire->name,
             (unsigned long long)wire->messages + 1);
    return -1;
}

/* Reads the length of the next message. 1: *length is set; 0: the end of the file, or a
 * length of 0, which ends reading, too; -1: *err. A varint of more than ten bytes becomes
 * a length that is refused. */
static int
take_length(struct chakra_wire *wire, uint64_t *length, struct rec_error *err)
{
    *length = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        int status = fill(wire, err);
        uint64_t byte;
        if (status <= 0)
            return status < 0 ? -1 : shift == 0 ? 0 : fail_cut(wire, err);
        byte = (unsigned char)wire->chunk[wire->at++];
        *length |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return *length > 0;
    }
    *length = UINT64_MAX;
    return 1;
}

int
chakra_wire_next(struct chakra_wire *wire, const uint8_t **bytes, size_t *size,
                 struct rec_error *err)
{
    uint64_t length;
    size_t have = 0;
    int status = take_length(wire, &length, err);
    if (status <= 0)
        return status;
    if (length > MESSAGE_MAX) {
        rec_fail(err, REC_DATA,
                 "%s: message %llu has a length of more than %llu bytes: is the file an "
                 "execution trace in Chakra's format?",
                 wire->name, (unsigned long long)wire->messages + 1,
                 (unsigned long long)MESSAGE_MAX);
        return -1;
    }
    /* memory grows with the bytes read, since the length may be wrong */
    while (have < length) {
        size_t n;
        if ((status = fill(wire, err)) <= 0)
            return status < 0 ? -1 : fail_cut(wire, err);
        n = wire->end - wire->at;
        n = n < length - have ? n : (size_t)length - have;
        if (!rec_grow(&wire->message, &wire->room, have + n, 1, err))
            return -1;
        memcpy(wire->message + have, wire->chunk + wire->at, n);
        wire->at += n;
        have += n;
    }
    wire->messages++;
    *bytes = wire->message;
    *size = have;
    return 1;
}
