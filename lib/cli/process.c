/*
 * The process of a tool: descriptors 0 to 2 are open, a deadly signal leaves neither an
 * unfinished file nor processes that the tool has started, and a mode may be a program of
 * its own.
 */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void
cli_guard_descriptors(void)
{
    /* Standard input is opened for writing and standard output for reading, so that using
     * them fails, as it would on a closed descriptor. Messages are dropped. */
    static const int mode[] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode[fd]) != fd)
            _exit(REC_IO); /* no message: there may be no standard error */
}

/* What the signal handler reads: */
static char *volatile litter; /* the path of the unfinished file; NULL: none */
static struct stat litter_is; /* its identity: its path may be another's by now */
static volatile pid_t group;  /* the process group to kill; 0: none */

/* The signal handler: it calls only functions that are safe there (signal-safety(7)).
 * SA_RESETHAND has restored the default action, so that raise() ends the process with
 * this signal, as the parent expects to see it. */
static void
remove_litter(int signal_number)
{
    struct stat is;
    if (litter && stat(litter, &is) == 0 && is.st_dev == litter_is.st_dev &&
        is.st_ino == litter_is.st_ino)
        unlink(litter);
    if (group)
        kill(-group, SIGKILL);
    raise(signal_number);
}

static void
catch_signals(void)
{
    static const int deadly[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGALRM,
                                 SIGXCPU, SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT};
    struct sigaction action = {.sa_handler = remove_litter,
                               .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        struct sigaction old;
        /* A signal that the parent ignores (nohup) stays ignored, and a handler that the
         * tool has installed stays in place. */
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(deadly[i], &action, NULL);
    }
}

bool
cli_guard_file(const char *path, struct rec_error *err)
{
    if (!path)
        return true;
    if (stat(path, &litter_is) != 0)
        return rec_fail(err, REC_IO, "%s: %s", path, strerror(errno));
    if (!(litter = strdup(path)))
        return rec_fail_memory(err);
    catch_signals();
    return true;
}

void
cli_guard_group(pid_t leader)
{
    group = leader;
    if (leader)
        catch_signals();
}

void
cli_release_file(void)
{
    char *path = litter;
    litter = NULL; /* first: a handler between the two must not read freed memory */
    free(path);
}

/* The program is found from the file of this process, not from argv[0], which need not be
 * a path, and may be that of a link. */
int
cli_run_apart(const char *program, const char *name, char **argv, const char *prefix)
{
    char path[PATH_MAX + 100];
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
    while (len > 0 && path[len - 1] != '/')
        len--;
    snprintf(path + (len > 0 ? len : 0), sizeof path - PATH_MAX, "../libexec/rampipe/%s",
             program);
    execv(path, argv - 1);
    fprintf(stderr, "%s%s: cannot run %s: %s\n", prefix, name, path, strerror(errno));
    return REC_IO;
}
