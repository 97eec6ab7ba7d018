/*
 * Reads bytes from a file, a pipe or a descriptor, and decompresses gzip.
 *
 * This file calls zlib's inflate() rather than gzread(), for two reasons: a cut file is
 * certain only after gzclose(), when the stage has used the records already; and gzread()
 * ignores garbage behind the last gzip member. inflate() shows both at once.
 */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { RAW_SIZE = 1 << 16 /* bytes of compressed input read at a time */ };

struct rec_input {
    const char *name;
    int fd;              /* -1: the input is `text` */
    bool borrowed;       /* the caller closes fd */
    struct rec_str text; /* the bytes in memory that were not read yet */
    bool may_block;      /* fd is no regular file: a read may wait */
    enum { UNKNOWN, PLAIN, GZIP } format;
    bool member_open;   /* gzip: inside a member (a file may have several) */
    bool file_ended;    /* gzip: read() has returned 0 */
    uint64_t bytes;     /* read from fd so far */
    z_stream z;         /* gzip: the decompressor */
    unsigned char *raw; /* gzip: RAW_SIZE bytes of compressed input */
};

const char *
rec_input_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

struct rec_input *
rec_input_open(const char *path, struct rec_error *err)
{
    struct rec_input *input = calloc(1, sizeof *input);
    struct stat status;

    if (!input) {
        rec_fail_memory(err);
        return NULL;
    }
    input->name = rec_input_name(path);
    do
        input->fd =
            strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    while (input->fd < 0 && errno == EINTR);
    if (input->fd < 0) {
        rec_fail(err, REC_IO, "%s: %s", input->name, strerror(errno));
        free(input);
        return NULL;
    }
    input->may_block = fstat(input->fd, &status) != 0 || !S_ISREG(status.st_mode);
    return input;
}

struct rec_input *
rec_input_open_text(const char *name, struct rec_str text, struct rec_error *err)
{
    struct rec_input *input = calloc(1, sizeof *input);
    if (!input) {
        rec_fail_memory(err);
        return NULL;
    }
    input->name = name;
    input->fd = -1;
    input->text = text;
    return input;
}

struct rec_input *
rec_input_open_descriptor(const char *name, int fd, struct rec_error *err)
{
    struct rec_input *input = rec_input_open_text(name, (struct rec_str){NULL, 0}, err);
    if (!input)
        return NULL;
    input->fd = fd;
    input->borrowed = input->may_block = true;
    input->format = PLAIN; /* recognising gzip would mean to wait for two bytes */
    return input;
}

bool
rec_input_may_block(const struct rec_input *input)
{
    return input->may_block;
}

int
rec_input_fd(const struct rec_input *input)
{
    return input->fd;
}

bool
rec_input_ready(const struct rec_input *input)
{
    struct pollfd in = {input->fd, POLLIN, 0};
    int n;
    /* A decompressor that still has input, or that filled the last output buffer to its
     * end and so may hold back more, needs no further read. */
    if (!input->may_block ||
        (input->format == GZIP && (input->z.avail_in > 0 || input->z.avail_out == 0)))
        return true;
    while ((n = poll(&in, 1, 0)) < 0 && errno == EINTR)
        ;
    return n != 0; /* if poll() failed, read() will say why */
}

uint64_t
rec_input_bytes(const struct rec_input *input)
{
    return input->bytes;
}

uint64_t
rec_input_taken(const struct rec_input *input)
{
    return input->bytes - (input->format == GZIP ? input->z.avail_in : 0);
}

void
rec_input_close(struct rec_input *input)
{
    if (!input)
        return;
    if (input->format == GZIP)
        inflateEnd(&input->z);
    if (input->fd > STDIN_FILENO && !input->borrowed)
        close(input->fd);
    free(input->raw);
    free(input);
}

/* Reads up to `room` bytes as they are in the input, and waits for the first of them. 0:
 * the end; -1: *err. */
static ptrdiff_t
read_file(struct rec_input *input, void *to, size_t room, struct rec_error *err)
{
    ssize_t n;
    if (input->fd < 0) {
        size_t some = input->text.len < room ? input->text.len : room;
        memcpy(to, input->text.ptr, some);
        input->text.ptr += some;
        input->text.len -= some;
        return (ptrdiff_t)some;
    }
    while ((n = read(input->fd, to, room)) < 0) {
        struct pollfd ready = {input->fd, POLLIN, 0};
        if (errno == EAGAIN) { /* a descriptor that somebody made non-blocking */
            if (poll(&ready, 1, -1) < 0 && errno != EINTR)
                break;
        } else if (errno != EINTR)
            break;
    }
    if (n < 0)
        rec_fail(err, REC_IO, "%s: %s", input->name, strerror(errno));
    else
        input->bytes += (uint64_t)n;
    return n;
}

/* Begins to decompress; `bytes` were read to recognise the format. */
static ptrdiff_t
start_gzip(struct rec_input *input, const char *bytes, size_t n, struct rec_error *err)
{
    input->raw = malloc(RAW_SIZE);
    /* zlib: a window of 2^15 bytes, + 16 for gzip's header and trailer */
    if (!input->raw || inflateInit2(&input->z, 15 + 16) != Z_OK) {
        rec_fail_memory(err);
        return -1;
    }
    memcpy(input->raw, bytes, n);
    input->format = GZIP;
    input->member_open = true;
    input->z.next_in = input->raw;
    input->z.avail_in = (unsigned)n;
    return 0;
}

/* Called after the end of a member. Skips zero bytes, with which some archivers pad a
 * file, and begins the next member if there is one. Anything else is an error. */
static ptrdiff_t
next_member(struct rec_input *input, struct rec_error *err)
{
    while (input->z.avail_in > 0 && *input->z.next_in == 0) {
        input->z.next_in++;
        input->z.avail_in--;
    }
    if (input->z.avail_in == 0)
        return 0;
    if (*input->z.next_in != 0x1f) {
        rec_fail(err, REC_IO, "%s: garbage after the end of the gzip data", input->name);
        return -1;
    }
    inflateReset(&input->z);
    input->member_open = true;
    return 0;
}

/*
 * Decompresses until there is at least one byte of output. Input can end well only
 * between two members. `pending`: the last call filled its output, so inflate() may hold
 * more bytes, and is called once without new input. If it then reports Z_BUF_ERROR, it
 * held none.
 */
static ptrdiff_t
read_gzip(struct rec_input *input, char *to, size_t room, bool patient,
          struct rec_error *err)
{
    bool pending = input->member_open && input->z.avail_out == 0;
    input->z.next_out = (unsigned char *)to;
    input->z.avail_out = (unsigned)(room < 1u << 30 ? room : 1u << 30);
    for (;;) {
        size_t got;
        int status;
        if (!input->member_open && next_member(input, err) != 0)
            return -1;
        if (input->z.avail_in == 0 && !input->file_ended && !pending) {
            ptrdiff_t n;
            if (patient && !rec_input_ready(input))
                return REC_INPUT_WAITS;
            n = read_file(input, input->raw, RAW_SIZE, err);
            if (n < 0)
                return -1;
            input->file_ended = n == 0;
            input->z.next_in = input->raw;
            input->z.avail_in = (unsigned)n;
            continue;
        }
        if (!input->member_open)
            return 0;
        if (input->z.avail_in == 0 && !pending) {
            rec_fail(err, REC_IO, "%s: the gzip data are cut", input->name);
            return -1;
        }
        status = inflate(&input->z, Z_NO_FLUSH);
        if (status == Z_BUF_ERROR && pending) {
            pending = false;
            continue;
        }
        pending = false;
        got = (size_t)((char *)input->z.next_out - to);
        if (status == Z_STREAM_END)
            input->member_open = false;
        else if (status != Z_OK) {
            rec_fail(err, REC_IO, "%s: the gzip data are damaged (%s)", input->name,
                     input->z.msg ? input->z.msg : "zlib error");
            return -1;
        }
        if (got > 0)
            return (ptrdiff_t)got;
    }
}

ptrdiff_t
rec_input_read(struct rec_input *input, char *to, size_t room, bool patient,
               struct rec_error *err)
{
    if (input->format == UNKNOWN) {
        size_t most = room < RAW_SIZE ? room : RAW_SIZE;
        ptrdiff_t n = 0, more;
        do {
            more = read_file(input, to + n, most - (size_t)n, err);
            if (more < 0)
                return -1;
            n += more;
            /* A pipe may deliver the two bytes that mark a gzip one by one. */
        } while (n == 1 && more > 0 && to[0] == '\x1f');
        if (n == 1 && to[0] == '\x1f') {
            rec_fail(err, REC_IO, "%s: the gzip data are cut", input->name);
            return -1;
        }
        if (n < 2 || to[0] != '\x1f' || to[1] != '\x8b') {
            input->format = PLAIN;
            return n;
        }
        if (start_gzip(input, to, (size_t)n, err) != 0)
            return -1;
    }
    if (input->format == PLAIN)
        return read_file(input, to, room, err);
    return read_gzip(input, to, room, patient, err);
}
