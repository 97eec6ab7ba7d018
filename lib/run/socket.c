/*
 * The socket of a service. Only its user may connect, and its file exists only while the
 * service accepts: it is made under another name, and renamed when it listens. A client
 * may so wait for the file, and connect as soon as it is there.
 */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool
fail(const char *path, struct rec_error *err)
{
    return rec_fail(err, REC_IO, "%s: cannot listen: %s", path, strerror(errno));
}

static void
set_address(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "%s", path);
}

/* Is the path free: no file, or a socket to which connect() is refused, as of a service
 * that was killed? */
static bool
is_free(const char *path, struct rec_error *err)
{
    struct sockaddr_un address;
    struct stat status;
    int fd, why;
    if (lstat(path, &status) != 0)
        return errno == ENOENT || fail(path, err);
    if (!S_ISSOCK(status.st_mode))
        return rec_fail(err, REC_IO,
                        "%s: cannot listen: the file exists, and is not a socket", path);
    if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0)
        return fail(path, err);
    set_address(&address, path);
    why = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    close(fd);
    return why == ECONNREFUSED || why == ENOENT ||
           rec_fail(err, REC_IO, "%s: cannot listen: the socket is in use", path);
}

/* Opens and locks the folder of the socket, so that two services do not both find the
 * path free and replace each other's socket. -1: *err. */
static int
lock_folder(const char *path, struct rec_error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    int fd;
    if (!folder) {
        rec_fail_memory(err);
        return -1;
    }
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0)
        fail(path, err);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
        ; /* a file system without locks: go on without one */
    return fd;
}

/* Makes a listening socket under another name in the folder. The path through /proc/self
 * is short, whatever the folder: sun_path has room for 107 bytes. The file must be our
 * own and closed to others, which a file system may not support. -1: *err. */
static int
make_socket(int folder, const char *path, char name[40], struct stat *own,
            struct rec_error *err)
{
    struct sockaddr_un address;
    char whole[80];
    mode_t mask;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ok;
    if (fd < 0) {
        fail(path, err);
        return -1;
    }
    snprintf(name, 40, ".rampipe-socket-%ld", (long)getpid());
    snprintf(whole, sizeof whole, "/proc/self/fd/%d/%s", folder, name);
    set_address(&address, whole);
    unlinkat(folder, name, 0); /* left by a killed process that had this number */
    mask = umask(0177);
    ok = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    umask(mask);
    if (ok && fstatat(folder, name, own, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISSOCK(own->st_mode) && (own->st_mode & 077) == 0 && own->st_uid == geteuid() &&
        listen(fd, SOMAXCONN) == 0)
        return fd;
    fail(path, err);
    close(fd);
    if (ok)
        unlinkat(folder, name, 0);
    return -1;
}

int
run_socket_open(const char *path, struct stat *own, struct rec_error *err)
{
    int folder, fd = -1;
    char name[40];
    if ((folder = lock_folder(path, err)) < 0)
        return -1;
    if (is_free(path, err) && (fd = make_socket(folder, path, name, own, err)) >= 0 &&
        renameat(folder, name, AT_FDCWD, path) != 0) {
        fail(path, err);
        unlinkat(folder, name, 0);
        close(fd);
        fd = -1;
    }
    close(folder);
    return fd;
}

void
run_socket_close(int fd, const char *path, const struct stat *own)
{
    struct stat now;
    close(fd);
    if (lstat(path, &now) == 0 && now.st_dev == own->st_dev && now.st_ino == own->st_ino)
        unlink(path);
}

bool
run_socket_send(int fd, const char *bytes, size_t n, size_t *sent)
{
    while (*sent < n) {
        ssize_t some = send(fd, bytes + *sent, n - *sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (some >= 0)
            *sent += (size_t)some;
        else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
            return true;
        else if (errno != EINTR)
            return false;
    }
    return true;
}
