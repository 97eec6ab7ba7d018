/*
 * Writes bytes to standard output, to a device or FIFO, or to a regular file. A regular
 * file is never seen half written: it is written under a temporary name in the same
 * directory, synced, and renamed when all is written.
 *
 * A writer that was killed leaves its temporary file behind. The next writer of the same
 * file removes it. To find it without reading the directory, temporary names are made of
 * the host's name, the file's name and a small number. To know that its writer is dead,
 * each writer holds a lock (flock) on its temporary file, which the kernel releases
 * however the process ends: a temporary file without a lock is litter. A process number
 * in the name would not do, since another process may have that number by now, or in
 * another container. The host's name is in it because some network file systems do not
 * show locks to other hosts. A writer that cannot lock its file uses a name of another
 * form, which nobody removes.
 */
#include "private.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    PACKED_SIZE = 1 << 16, /* bytes of compressed output per write */
    LINKS_MAX = 40,        /* symbolic links that may lead to a file, as in Linux */
    PLACES = 8             /* temporary names that are always searched for litter */
};

struct rec_output {
    char *path;           /* the file's final name; NULL: standard output or a sink */
    char *temporary;      /* its name until it is whole; NULL: it is written directly */
    int fd;               /* -1: none */
    int old;              /* claimed: the file that may be replaced; -1: there was none */
    bool claimed;         /* rec_output_claim() was called */
    struct rec_sink sink; /* put != NULL: all bytes go there */
    bool packing;         /* compress with gzip */
    z_stream z;
};

/* ---- where to write ------------------------------------------------------ */

static char *
join(struct rec_str folder, const char *name)
{
    char *path;
    return asprintf(&path, "%.*s%s", (int)folder.len, folder.ptr, name) < 0 ? NULL : path;
}

/* The directory of a path, with its last slash; "" if it has none. A view. */
static struct rec_str
folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return (struct rec_str){path, slash ? (size_t)(slash + 1 - path) : 0};
}

/* Does the path name a descriptor that is open already? Such a name cannot be replaced by
 * a new file. */
static bool
is_descriptor(const char *path)
{
    return strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/dev/std", 8) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

/* Follows symbolic links to the file to be written, which need not exist yet: rename()
 * would replace a link instead of the file that it leads to. The caller frees the result.
 * NULL: errno. */
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

static uint32_t
sum_of(const char *text)
{
    return libdeflate_crc32(0, text, strlen(text));
}

/* The n-th temporary name of the file. If `found`, the next writer of the file can find
 * it by its name; otherwise the name has the process number, which nobody else makes. */
static char *
temporary_name(const struct rec_output *output, unsigned n, bool found)
{
    struct rec_str folder = folder_of(output->path);
    char name[64], host[HOST_NAME_MAX + 1] = "";
    (void)!gethostname(host, sizeof host - 1);
    if (found)
        snprintf(name, sizeof name, ".rampipe-%08x-%08x-%u", sum_of(host),
                 sum_of(output->path + folder.len), n);
    else
        snprintf(name, sizeof name, ".rampipe-%ld-%u", (long)getpid(), n);
    return join(folder, name);
}

/* Is the open file still the one at this path? */
static bool
is_at(int fd, const char *path)
{
    struct stat open, named;
    return fstat(fd, &open) == 0 && lstat(path, &named) == 0 &&
           open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/* Removes a temporary file whose writer is gone, if there is one. Whoever removes or
 * renames such a file holds its lock. So between is_at() and unlink() no other file can
 * come to have this name. */
static void
remove_litter(const char *path)
{
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(fd, path))
        unlink(path);
    close(fd);
}

/* Creates the temporary file. 0; EEXIST: the name is taken; or another errno. */
static int
make_temporary(struct rec_output *output)
{
    do
        output->fd =
            open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    while (output->fd < 0 && errno == EINTR);
    return output->fd < 0 ? errno : 0;
}

/* Locks the temporary file. False: it is closed and gone. Either the file system has no
 * locks, or another writer took the file for litter before it was locked. */
static bool
lock_temporary(struct rec_output *output)
{
    int failed = flock(output->fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (!failed && is_at(output->fd, output->temporary))
        return true;
    if (failed && failed != EWOULDBLOCK) /* (a writer that holds the lock unlinks it) */
        unlink(output->temporary);
    close(output->fd);
    output->fd = -1;
    return false;
}

/* Creates the temporary file in the directory of the file that it will replace, with the
 * mode of that file. Several processes may write the same file at a time, each under its
 * own number. So litter may have a higher number than the first free one, and the first
 * PLACES names are all searched. */
static bool
open_beside(struct rec_output *output, const struct stat *old)
{
    bool locks = true;
    for (unsigned n = 0; n < PLACES; n++) {
        char *path = temporary_name(output, n, true);
        if (!path)
            return false;
        remove_litter(path);
        free(path);
    }
    for (unsigned n = 0; output->fd < 0; n++) {
        int failed;
        free(output->temporary);
        if (!(output->temporary = temporary_name(output, n, locks)))
            return false;
        if (locks && n >= PLACES)
            remove_litter(output->temporary);
        failed = make_temporary(output);
        if (failed && failed != EEXIST) {
            free(output->temporary);
            output->temporary = NULL;
            errno = failed;
            return false;
        }
        if (!failed && locks)
            locks = lock_temporary(output);
    }
    return !old || fchmod(output->fd, old->st_mode & 0777) == 0;
}

/* Opens the file at `path`: through a temporary file if it is a regular file or does not
 * exist, directly otherwise. False: errno. */
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
    output->old = -1;
    if (path && !open_path(output, path)) {
        int why = errno;
        rec_output_close(output, false);
        errno = why;
        return NULL;
    }
    if (path && ends_with(path, ".gz")) {
        /* zlib: 15 + 16 writes gzip's header and trailer, 8 is the default memory
         * level */
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
    output->fd = output->old = -1;
    output->sink = *sink;
    return output;
}

const char *
rec_output_temporary(const struct rec_output *output)
{
    return output->temporary;
}

/* ---- writing ------------------------------------------------------------- */

/* Writes all bytes. 0, or an errno. */
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

/* Compresses and writes the bytes at z.next_in; with Z_FINISH, also what zlib holds back,
 * and gzip's trailer. 0, or an errno. */
static int
pack(struct rec_output *output, int flush)
{
    unsigned char packed[PACKED_SIZE];
    int status, failed;
    do {
        output->z.next_out = packed;
        output->z.avail_out = PACKED_SIZE;
        status = deflate(&output->z, flush);
        failed = write_all(output->fd, (char *)packed, PACKED_SIZE - output->z.avail_out);
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

int
rec_output_probe(const struct rec_output *output)
{
    struct pollfd end = {output->fd, 0, 0};
    if (poll(&end, 1, 0) <= 0 || !(end.revents & POLLERR))
        return 0;
    raise(SIGPIPE); /* as write() does */
    return EPIPE;
}

/* Waits until the file is on the disk. 0, or an errno. */
static int
sync_file(int fd)
{
    while (fsync(fd) != 0)
        if (errno == EINVAL || errno == EROFS)
            break; /* fsync(2): the file is of a kind that cannot be synced */
        else if (errno != EINTR)
            return errno;
    return 0;
}

/* Renames the temporary file to its final name. 0, or an errno. EEXIST: the output was
 * claimed, and another file has come to that name. */
static int
take_place(const struct rec_output *output)
{
    if (output->claimed && output->old < 0) {
        if (renameat2(AT_FDCWD, output->temporary, AT_FDCWD, output->path,
                      RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EINVAL && errno != ENOSYS)
            return errno;
        /* The file system does not have RENAME_NOREPLACE. link() does not replace either,
         * but the file has two names for a moment. */
        if (link(output->temporary, output->path) != 0)
            return errno;
        unlink(output->temporary);
        return 0;
    }
    if (output->claimed) {
        /* Another process that wants to replace the same file waits for this lock. When
         * it gets the lock, it sees that its old file is no longer the one at this
         * path. */
        while (flock(output->old, LOCK_EX) != 0 && errno == EINTR)
            ;
        if (!is_at(output->old, output->path))
            return EEXIST;
    }
    return rename(output->temporary, output->path) == 0 ? 0 : errno;
}

/* Syncs the directory, so that the new name, too, survives a power cut. Its failure is
 * not reported: the new file is in place now, and after a power cut either the old or the
 * new file is there, whole. */
static void
sync_folder(const char *path)
{
    struct rec_str folder = folder_of(path);
    char *name = folder.len ? strndup(folder.ptr, folder.len) : strdup(".");
    int fd = name ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)!sync_file(fd);
        close(fd);
    }
    free(name);
}

int
rec_output_close(struct rec_output *output, bool keep)
{
    int failed = 0, lock = -1;
    if (output->packing) {
        if (keep || !output->temporary)
            failed = pack(output, Z_FINISH);
        deflateEnd(&output->z);
    }
    keep = keep && !failed;
    if (keep && output->temporary)
        failed = sync_file(output->fd);
    /* close() may report a failed write, so it comes before the rename. The duplicate
     * keeps the lock meanwhile, or another writer would take the file for litter. */
    if (output->temporary)
        lock = fcntl(output->fd, F_DUPFD_CLOEXEC, 0);
    if (output->fd >= 0 && close(output->fd) != 0 && errno != EINTR && !failed)
        failed = errno;
    if (keep && output->temporary && !failed && (failed = take_place(output)) == 0)
        sync_folder(output->path);
    if (output->temporary && (!keep || failed))
        unlink(output->temporary);
    if (lock >= 0)
        close(lock);
    if (output->old >= 0)
        close(output->old);
    free(output->temporary);
    free(output->path);
    free(output);
    return failed;
}

int
rec_output_claim(struct rec_output *output)
{
    if (!output->temporary)
        return 0;
    output->claimed = true;
    output->old = open(output->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return output->old < 0 && errno != ENOENT ? errno : 0;
}
