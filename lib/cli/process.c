/* What a tool asks of its process: descriptors 0 to 2, and no litter behind a signal. */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void
cli_guard_descriptors(void)
{
    /* Opened the wrong way round: reading input that is closed fails, as does writing. */
    static const int mode[] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode[fd]) != fd)
            _exit(REC_IO); /* nowhere to say why */
}

/* The unfinished file, the processes that were started; read by the handler. */
static char *volatile litter;
static struct stat litter_is; /* (its name may be that of another writer's file by now) */
static volatile pid_t group;

static void
remove_litter(int signal_number)
{
    struct stat is;
    if (litter && stat(litter, &is) == 0 && is.st_dev == litter_is.st_dev &&
        is.st_ino == litter_is.st_ino)
        unlink(litter);
    if (group)
        kill(-group, SIGKILL);
    raise(signal_number); /* as it is without a handler, see SA_RESETHAND */
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
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(deadly[i], &action, NULL); /* not what nohup ignores */
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
    litter = NULL;
    free(path);
}
