/*
 * Bytes to standard output, to a device or FIFO, or to a file that is whole or is not
 * there: it is written under another name in the same folder, and takes its own name,
 * synced, when all is written.
 */
#include "private.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PACKED_SIZE = 1 << 16, LINKS_MAX = 40 };

struct rec_output {
    char *path;           /* what the file will be called; NULL: standard output */
    char *temporary;      /* what it is called until then; NULL: it is written directly */
    int fd;               /* -1: none */
    struct rec_sink sink; /* of no file */
    bool packing;
    z_stream z;
    unsigned char packed[PACKED_SIZE];
};

/* ---- where to write ------------------------------------------------------ */

static char *
join(struct rec_str folder, const char *name)
{
    char *path;
    return asprintf(&path, "%.*s%s", (int)folder.len, folder.ptr, name) < 0 ? NULL : path;
}

/* Up to the last slash, and with it. */
static struct rec_str
folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return (struct rec_str){path, slash ? (size_t)(slash + 1 - path) : 0};
}

/* Names of descriptors that are open already, which nothing can take the place of. */
static bool
is_descriptor(const char *path)
{
    return strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/dev/std", 8) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

/* Where links lead: the file, there or not yet, that -o means. NULL: errno. */
static char *
follow(const char *path)
{
    char *at = strdup(path);
    for (int links = 0; at && !is_descriptor(at); links++) {
        char target[PATH_MAX], *next;
        ssize_t len = readlink(at, target, sizeof target - 1);
        if (len < 0)
            break;
        target[len] = '\0';
        next = join(*target == '/' ? rec_str("") : folder_of(at), target);
        free(at);
        at = next;
        if (links == LINKS_MAX) {
            free(at);
            errno = ELOOP;
            return NULL;
        }
    }
    return at;
}

/* Opens a new file beside the one it will replace, with the mode of that one. */
static bool
open_beside(struct rec_output *output, const struct stat *old)
{
    for (unsigned n = 0; output->fd < 0; n++) {
        char name[64];
        snprintf(name, sizeof name, ".rampipe-%ld-%u", (long)getpid(), n);
        free(output->temporary);
        if (!(output->temporary = join(folder_of(output->path), name)))
            return false;
        output->fd =
            open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output->fd < 0 && errno != EEXIST && errno != EINTR) {
            free(output->temporary);
            output->temporary = NULL;
            return false;
        }
    }
    return !old || fchmod(output->fd, old->st_mode & 0777) == 0;
}

static bool
open_path(struct rec_output *output, const char *path)
{
    struct stat old;
    bool there;
    if (!(output->path = follow(path)))
        return false;
    there = stat(output->path, &old) == 0;
    if (!is_descriptor(output->path) && (!there || S_ISREG(old.st_mode)))
        return (!there || access(output->path, W_OK) == 0) &&
               open_beside(output, there ? &old : NULL);
    do
        output->fd = open(output->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    while (output->fd < 0 && errno == EINTR);
    return output->fd >= 0;
}

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

struct rec_output *
rec_output_open(const char *path)
{
    struct rec_output *output = calloc(1, sizeof *output);
    if (!output)
        return NULL;
    output->fd = path ? -1 : STDOUT_FILENO;
    if (path && !open_path(output, path)) {
        int why = errno;
        rec_output_close(output, false);
        errno = why;
        return NULL;
    }
    if (path && ends_with(path, ".gz")) {
        if (deflateInit2(&output->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                         Z_DEFAULT_STRATEGY) != Z_OK) {
            rec_output_close(output, false);
            errno = ENOMEM;
            return NULL;
        }
        output->packing = true;
    }
    return output;
}

struct rec_output *
rec_output_open_sink(const struct rec_sink *sink)
{
    struct rec_output *output = calloc(1, sizeof *output);
    if (!output)
        return NULL;
    output->fd = -1;
    output->sink = *sink;
    return output;
}

const char *
rec_output_temporary(const struct rec_output *output)
{
    return output->temporary;
}

/* ---- writing ------------------------------------------------------------- */

static int
write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n >= 0) {
            bytes += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) { /* a descriptor that somebody made non-blocking */
            struct pollfd ready = {fd, POLLOUT, 0};
            if (poll(&ready, 1, -1) < 0 && errno != EINTR)
                return errno;
        } else if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* Deflates what z.next_in has, and with Z_FINISH the rest and the end. */
static int
pack(struct rec_output *output, int flush)
{
    int status, failed;
    do {
        output->z.next_out = output->packed;
        output->z.avail_out = PACKED_SIZE;
        status = deflate(&output->z, flush);
        failed = write_all(output->fd, (char *)output->packed,
                           PACKED_SIZE - output->z.avail_out);
        if (failed)
            return failed;
    } while (output->z.avail_out == 0 || (flush == Z_FINISH && status == Z_OK));
    return 0;
}

int
rec_output_write(struct rec_output *output, const char *bytes, size_t len)
{
    if (output->sink.put)
        return output->sink.put(output->sink.context, bytes, len);
    if (!output->packing)
        return write_all(output->fd, bytes, len);
    output->z.next_in = (z_const Bytef *)(uintptr_t)bytes;
    output->z.avail_in = (unsigned)len;
    return pack(output, Z_NO_FLUSH);
}

static int
sync_file(int fd)
{
    while (fsync(fd) != 0)
        if (errno == EINVAL || errno == EROFS)
            break; /* there is no disk to wait for */
        else if (errno != EINTR)
            return errno;
    return 0;
}

int
rec_output_close(struct rec_output *output, bool keep)
{
    int failed = 0;
    if (output->packing) {
        if (keep || !output->temporary)
            failed = pack(output, Z_FINISH);
        deflateEnd(&output->z);
    }
    keep = keep && !failed;
    if (keep && output->temporary)
        failed = sync_file(output->fd);
    if (output->fd >= 0 && close(output->fd) != 0 && errno != EINTR && !failed)
        failed = errno;
    if (keep && output->temporary && !failed &&
        rename(output->temporary, output->path) != 0)
        failed = errno;
    if (output->temporary && (!keep || failed))
        unlink(output->temporary);
    free(output->temporary);
    free(output->path);
    free(output);
    return failed;
}
