/*
 * shim.so - preloaded, it runs a program again and again with one fault at a time, and
 * judges every run. Nothing of the program needs to know.
 *
 *     FAULTS='memory EIO' FAULT_LOG=wrong LD_PRELOAD=build/tests/fault/shim.so sim in.rec
 *
 *     constructor --- runs the program once without a fault: what is right
 *                 |
 *                 +-- for each kind, n = 1, 2, ... until a run makes fewer calls than n:
 *                 |     fork --- main(), whose n-th call fails
 *                 |      |
 *                 |     judge() the status, both outputs, the folder; a wrong one is
 *                 |     told, with the stack of the call that failed
 *                 |
 *                 +-- runs it once more without a fault if it writes files, and shows the
 *                     first run as if it were the only one
 *
 * Right is a run that does as the one without a fault, or one with exit status 4 or 70,
 * one line of message more, and no output that looks whole but is not. Kinds:
 *
 *     memory      the n-th malloc(), calloc() or realloc() fails
 *     memory+     and all after it
 *     EIO ENOSPC  the n-th call that opens, reads, writes, waits, closes, syncs or
 *                 renames fails
 *     EINTR       it is interrupted; close() has closed then, as Linux does
 *     EAGAIN      the n-th read() or write() finds a descriptor that would block
 *     short       the n-th read() or write() does one byte
 *     storm       all of them are interrupted, would block, and are short, in turn
 *     INT TERM    the signal comes as the n-th call ends: the program dies of it, or ends
 *     KILL        it is killed then
 *
 * FAULT_STEP=1 tries every n; with FAULT_STEP=K, 12 without it, n is followed by n + 1 +
 * n/K. FAULT_SAME=K lets at most K calls fail that have the same stack: the same
 * functions make them from the same places. FAULT_SEEN=FILE counts them over all runs
 * with this file. Of the calls from one n up to the next the first fails whose stack is
 * still to be tried, if there is one.
 *
 * FAULT_FOLDER=NAME is a folder that holds one file, which -o writes: after a run that
 * failed it holds what it held before, after any other what is right, and nothing else.
 * FAULT_COUNT=FILE gets a line for each run. FAULT_AT=N: the program runs once, with the
 * fault at call N, and nobody judges it.
 *
 * Out of reach is what libc calls itself, such as stdio's write().
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- kinds of faults ------------------------------------------------------- */

enum what { MEMORY, FAIL, INTERRUPT, BLOCK, SHORT, STORM, SIGNAL, LOOK };

static const struct kind {
    const char *name;
    enum what what;
    int value; /* MEMORY: all after it too; FAIL: errno; SIGNAL: which */
} kinds[] = {
    {"memory", MEMORY, 0},     {"memory+", MEMORY, 1},      {"EIO", FAIL, EIO},
    {"ENOSPC", FAIL, ENOSPC},  {"EINTR", INTERRUPT, EINTR}, {"EAGAIN", BLOCK, EAGAIN},
    {"short", SHORT, 0},       {"storm", STORM, 0},         {"INT", SIGNAL, SIGINT},
    {"TERM", SIGNAL, SIGTERM}, {"KILL", SIGNAL, SIGKILL},
};

/* Shared by the one who judges and the run. */
static struct {
    long calls; /* that could have failed */
    int depth;
    void *stack[24]; /* of the call that did */
    bool writes;     /* a file; known of a run that looks */
} * run;

static const struct kind *chosen; /* what main() will have */
static const struct kind *kind;   /* NULL: no faults */
static long fault_at;

/* With FAULT_SAME: what the run without a fault calls, and the stack of each call. Shared
 * as *run. */
enum { STACKS = 1 << 22 };
static struct calls {
    long n;
    uint64_t stack[STACKS + 1]; /* of call 1, 2, ... */
} * calls_of;                   /* MEMORY, FAIL */
static const struct kind look = {"look", LOOK, 0};
static uint64_t hash_stack(void *const *stack, int depth);

/* What this thread calls now is not called by the program. */
static __thread bool aside;

/* Counts a call, of any thread; true if it is to fail. */
static bool
is_due(enum what what)
{
    void *stack[24];
    long number;
    if (!kind || aside)
        return false;
    if (kind == &look && what <= FAIL) {
        number = __atomic_add_fetch(&calls_of[what].n, 1, __ATOMIC_RELAXED);
        aside = true; /* backtrace() may allocate */
        if (number <= STACKS)
            calls_of[what].stack[number] = hash_stack(stack, backtrace(stack, 24));
        aside = false;
    }
    if (kind->what != what)
        return false;
    number = __atomic_add_fetch(&run->calls, 1, __ATOMIC_RELAXED);
    if (what == STORM)
        return true;
    if (number == fault_at) {
        aside = true;
        run->depth = backtrace(run->stack, 24);
        aside = false;
    }
    return number == fault_at || (what == MEMORY && kind->value && number > fault_at);
}

#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (!real)                     \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

/* ---- memory ---------------------------------------------------------------- */

static bool
no_memory(void)
{
    if (!is_due(MEMORY))
        return false;
    errno = ENOMEM;
    return true;
}

void *
malloc(size_t size)
{
    REAL(malloc);
    return no_memory() ? NULL : real(size);
}

void *
calloc(size_t n, size_t size)
{
    REAL(calloc);
    return no_memory() ? NULL : real(n, size);
}

void *
realloc(void *old, size_t size)
{
    REAL(realloc);
    return no_memory() ? NULL : real(old, size);
}

/* ASan asks in each thread that starts where its stack is, and dies if it cannot know. */
int
pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    REAL(pthread_getattr_np);
    int status;
    aside = true;
    status = real(thread, attributes);
    aside = false;
    return status;
}

/* ---- files ----------------------------------------------------------------- */

/* True: the call fails with errno, before it does anything. */
static bool
is_refused(void)
{
    if (is_due(FAIL) || is_due(INTERRUPT)) {
        errno = kind->value;
        return true;
    }
    return false;
}

/* A signal comes while the call ends. */
static void
end_call(void)
{
    int error = errno;
    if (is_due(SIGNAL))
        raise(kind->value);
    errno = error;
}

/* How much of `size` a read or write does; 0: fails with errno. */
static size_t
share(size_t size)
{
    if (is_refused())
        return 0;
    if (is_due(BLOCK)) {
        errno = EAGAIN;
        return 0;
    }
    if (is_due(STORM)) {
        size_t few = 1 + (size_t)run->calls % 97 * 5;
        if (run->calls % 4 < 2) {
            errno = run->calls % 4 ? EAGAIN : EINTR;
            return 0;
        }
        return few < size ? few : size;
    }
    return is_due(SHORT) ? 1 : size;
}

ssize_t
read(int fd, void *to, size_t size)
{
    REAL(read);
    size_t few = size ? share(size) : 0;
    ssize_t n = size && !few ? -1 : real(fd, to, few);
    end_call();
    return n;
}

ssize_t
write(int fd, const void *from, size_t size)
{
    REAL(write);
    size_t few = size ? share(size) : 0;
    ssize_t n = size && !few ? -1 : real(fd, from, few);
    end_call();
    return n;
}

int
open(const char *path, int flags, ...)
{
    REAL(open);
    int fd = -1;
    va_list more;
    va_start(more, flags);
    if (kind == &look && flags & (O_WRONLY | O_RDWR))
        run->writes = true;
    if (!is_refused())
        fd = real(path, flags, va_arg(more, int));
    va_end(more);
    end_call();
    return fd;
}

int
close(int fd)
{
    REAL(close);
    bool refused = is_refused();
    int error = errno, status = real(fd);
    if (refused)
        errno = error;
    end_call();
    return refused ? -1 : status;
}

/* Thousands of runs need not wait for the disk. */
int
fsync(int fd)
{
    REAL(fsync);
    int status = is_refused() ? -1 : kind ? 0 : real(fd);
    end_call();
    return status;
}

ssize_t
send(int fd, const void *from, size_t size, int flags)
{
    REAL(send);
    ssize_t n = real(fd, from, size, flags);
    end_call();
    return n;
}

int
rename(const char *from, const char *to)
{
    REAL(rename);
    int status = is_refused() ? -1 : real(from, to);
    end_call();
    return status;
}

int
fchmod(int fd, mode_t mode)
{
    REAL(fchmod);
    int status = is_refused() ? -1 : real(fd, mode);
    end_call();
    return status;
}

/* Whoever cleans up may be interrupted too. */
int
unlink(const char *path)
{
    REAL(unlink);
    int status = real(path);
    end_call();
    return status;
}

int
poll(struct pollfd *fds, nfds_t n, int timeout)
{
    REAL(poll);
    if (is_refused())
        return -1;
    if (is_due(STORM) && run->calls % 2) {
        errno = EINTR;
        return -1;
    }
    return real(fds, n, timeout);
}

/* Under a sanitizer: what the judge keeps is no leak of the run. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));
void __lsan_do_leak_check(void) __attribute__((weak));

/* ---- running ---------------------------------------------------------------- */

struct text {
    char *bytes;
    size_t size;
};

struct result {
    int status; /* of waitpid() */
    struct text out, err, file;
    int nfiles; /* in the folder */
};

static int log_fd = 2, count_fd = -1, spool[3];
static const char *folder, *program;

static void
give_up(const char *what)
{
    dprintf(2, "shim: %s: %s\n", what, strerror(errno));
    _exit(99);
}

static struct text
read_all(int fd)
{
    struct stat status;
    struct text text = {NULL, 0};
    if (fd < 0 || fstat(fd, &status) != 0)
        return text;
    text.bytes = malloc((size_t)status.st_size + 1);
    if (!text.bytes)
        give_up("memory");
    while (text.size < (size_t)status.st_size) {
        ssize_t n = pread(fd, text.bytes + text.size, (size_t)status.st_size - text.size,
                          (off_t)text.size);
        if (n <= 0)
            give_up("reading what was written");
        text.size += (size_t)n;
    }
    text.bytes[text.size] = '\0';
    return text;
}

static bool
same(struct text a, struct text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
}

static void
look_into_folder(struct result *result)
{
    DIR *dir = folder ? opendir(folder) : NULL;
    struct dirent *entry;
    if (folder && !dir)
        give_up(folder);
    while (dir && (entry = readdir(dir))) {
        int fd;
        if (entry->d_name[0] == '.' &&
            strspn(entry->d_name, ".") == strlen(entry->d_name))
            continue;
        if (result->nfiles++ > 0)
            continue;
        fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
        result->file = read_all(fd);
        close(fd);
    }
    if (dir)
        closedir(dir);
}

/* Forks. In the run itself returns false; its results are then in *result. */
static bool
run_once(const struct kind *now, long n, struct result *result)
{
    pid_t child;
    memset(run, 0, sizeof *run);
    for (int fd = 1; fd < 3; fd++)
        if (ftruncate(spool[fd], 0) != 0 || lseek(spool[fd], 0, SEEK_SET) != 0)
            give_up("spooling");
    lseek(0, 0, SEEK_SET);
    child = fork();
    if (child < 0)
        give_up("fork");
    if (child == 0) {
        for (int fd = 1; fd < 3; fd++)
            if (dup2(spool[fd], fd) != fd)
                give_up("dup2");
        for (int fd = 1; fd < 3; fd++)
            close(spool[fd]);
        if (log_fd > 2)
            close(log_fd);
        if (count_fd > 2)
            close(count_fd);
        if (__lsan_enable)
            __lsan_enable();
        alarm(60);
        fault_at = n;
        chosen = now;
        return false;
    }
    *result = (struct result){0};
    while (waitpid(child, &result->status, 0) < 0)
        if (errno != EINTR)
            give_up("waitpid");
    result->out = read_all(spool[1]);
    result->err = read_all(spool[2]);
    look_into_folder(result);
    return true;
}

static void
forget(struct result *result)
{
    free(result->out.bytes);
    free(result->err.bytes);
    free(result->file.bytes);
}

/* ---- stacks that were tried -------------------------------------------------- */

/* Where the program and its libraries are: each time elsewhere, but of the same size. */
static struct module {
    uintptr_t begin, end;
} modules[64];
static int nmodules;

static int
add_module(struct dl_phdr_info *info, size_t size, void *more)
{
    struct module *module = modules + nmodules;
    (void)size;
    (void)more;
    if (nmodules == sizeof modules / sizeof *modules)
        return 1;
    module->begin = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            module->end =
                info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    nmodules++;
    return 0;
}

static uint64_t
hash(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15U;
    return sum ^ sum >> 29;
}

static uint64_t
hash_stack(void *const *stack, int depth)
{
    uint64_t sum = 0;
    for (int i = 0; i < depth; i++) {
        uintptr_t at = (uintptr_t)stack[i];
        for (int m = 0; m < nmodules; m++)
            if (at >= modules[m].begin && at < modules[m].end)
                sum = hash(sum, (uint64_t)m << 48 | (at - modules[m].begin));
    }
    return sum;
}

/* Counts of stacks that were tried, in a table that all processes with the file share. */
enum { SLOTS = 1 << 20 };
static struct slot {
    uint64_t stack; /* with the program and the kind; 0: free */
    int64_t tried;
} * slots;

/* True, and counted: fewer than `most` calls with the stack have failed. */
static bool
take_stack(const struct kind *now, uint64_t stack, int64_t most)
{
    for (const char *c = program; *c; c++)
        stack = hash(stack, (unsigned char)*c);
    stack = hash(stack, (uint64_t)(now - kinds)) | 1;
    for (uint64_t i = stack >> 40, n = 0; n < SLOTS; i++, n++) {
        struct slot *slot = slots + i % SLOTS;
        uint64_t none = 0;
        if (__atomic_compare_exchange_n(&slot->stack, &none, stack, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
            none == stack)
            return __atomic_load_n(&slot->tried, __ATOMIC_RELAXED) < most &&
                   __atomic_fetch_add(&slot->tried, 1, __ATOMIC_RELAXED) < most;
    }
    return true;
}

/* The first call from n up to before `next` that is to fail; 0: none. */
static long
pick_call(const struct kind *now, const struct calls *calls, long n, long next,
          int64_t most)
{
    for (; n < next && n <= calls->n; n++)
        if (n > STACKS || take_stack(now, calls->stack[n], most))
            return n;
    return 0;
}

/* Maps the file, or none, and where stacks are kept. */
static void
keep_stacks(const char *path)
{
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (path && (fd < 0 || ftruncate(fd, SLOTS * sizeof *slots) != 0))
        give_up(path);
    slots = mmap(NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE,
                 path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    calls_of = mmap(NULL, 2 * sizeof *calls_of, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED || calls_of == MAP_FAILED)
        give_up("mmap");
    if (path)
        close(fd);
    dl_iterate_phdr(add_module, NULL);
}

/* ---- judging ----------------------------------------------------------------- */

static int
count_lines(struct text text)
{
    int n = 0;
    for (size_t i = 0; i < text.size; i++)
        n += text.bytes[i] == '\n';
    return n;
}

static bool
looks_whole(struct text text)
{
    return text.size >= 6 && memcmp(text.bytes + text.size - 6, "\n#end\n", 6) == 0;
}

/* Does the last line start with the program's name? */
static bool
names_program(struct text text)
{
    const char *last = memrchr(text.bytes, '\n', text.size - 1);
    return strncmp(last ? last + 1 : text.bytes, program, strlen(program)) == 0;
}

/* What is wrong with a run; NULL: nothing. */
static const char *
judge(const struct kind *now, const struct result *right, const struct result *old,
      const struct result *got)
{
    int status = WIFEXITED(got->status) ? WEXITSTATUS(got->status) : -1;
    int extra = count_lines(got->err) - count_lines(right->err);

    if (folder && got->nfiles != 1)
        return "it left another file, or none";
    if (folder && !same(got->file, right->file) && !same(got->file, old->file))
        return "the file is neither the old one nor right";
    if (got->status == right->status && same(got->out, right->out) &&
        same(got->err, right->err))
        return same(got->file, right->file) ? NULL : "it succeeded without a result";
    if (now->what == SIGNAL)
        return WIFSIGNALED(got->status) && WTERMSIG(got->status) == now->value &&
                       got->err.size == 0
                   ? NULL
                   : "it neither died of the signal nor ended well";
    if (WIFSIGNALED(got->status))
        return "it died of a signal";
    if (now->what == BLOCK || now->what == SHORT || now->what == STORM)
        return "it did not wait, or go on";
    if (got->status == right->status && (status == 0 || status == 1))
        return same(got->out, right->out) ? "its messages differ" : "its output differs";
    if (got->status != right->status && status != 4 && status != 70)
        return "its exit status is wrong";
    if (got->err.size == 0 || got->err.bytes[got->err.size - 1] != '\n' || extra > 1)
        return "it has no message of one line";
    if (!names_program(got->err))
        return "its message names no program";
    if (looks_whole(got->out) && !same(got->out, right->out))
        return "its output looks whole";
    return NULL;
}

static void
tell(const struct kind *now, long n, const char *wrong, const struct result *got)
{
    char command[400] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t len = read(fd, command, sizeof command - 1);
    close(fd);
    for (ssize_t i = 0; i < len - 1; i++)
        if (command[i] == '\0' || command[i] == '\n')
            command[i] = ' ';
    dprintf(log_fd, "%s: %s %ld: %s (%s %d)\n%.*s", command, now->name, n, wrong,
            WIFSIGNALED(got->status) ? "signal" : "status",
            WIFSIGNALED(got->status) ? WTERMSIG(got->status) : WEXITSTATUS(got->status),
            (int)(got->err.size < 500 ? got->err.size : 500), got->err.bytes);
    backtrace_symbols_fd(run->stack, run->depth, log_fd);
}

/* ---- all runs ---------------------------------------------------------------- */

static const struct kind *
find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds + i;
    errno = EINVAL;
    give_up(name);
    return NULL;
}

/* Standard input that cannot be read again is kept. */
static void
keep_input(void)
{
    char bytes[4096];
    ssize_t n;
    int copy;
    if (lseek(0, 0, SEEK_CUR) >= 0 || errno == EBADF)
        return;
    copy = memfd_create("input", 0);
    while ((n = read(0, bytes, sizeof bytes)) > 0)
        if (write(copy, bytes, (size_t)n) != n)
            give_up("keeping the input");
    dup2(copy, 0);
    close(copy);
}

static void
show(const struct result *result)
{
    size_t done = 0;
    if (result->err.size > 0 && write(2, result->err.bytes, result->err.size) < 0)
        _exit(99);
    while (done < result->out.size) {
        ssize_t n = write(1, result->out.bytes + done, result->out.size - done);
        if (n <= 0)
            _exit(99);
        done += (size_t)n;
    }
    if (WIFSIGNALED(result->status))
        raise(WTERMSIG(result->status));
    _exit(WEXITSTATUS(result->status));
}

static int
open_append(const char *name)
{
    const char *path = getenv(name);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (path && (fd < 0 || (fd = fcntl(fd, F_DUPFD_CLOEXEC, 100)) < 0))
        give_up(path);
    return fd;
}

static void
put_back(const struct result *old)
{
    DIR *dir = folder ? opendir(folder) : NULL;
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        int fd;
        if (entry->d_name[0] == '.')
            continue;
        fd = openat(dirfd(dir), entry->d_name, O_WRONLY | O_TRUNC);
        if (fd < 0 || write(fd, old->file.bytes, old->file.size) < 0)
            give_up("putting the old file back");
        close(fd);
    }
    if (dir)
        closedir(dir);
}

/* Is the first operand a mode that is a program of its own? Then the faults wait for that
 * program (cli_run_apart() in include/rampipe/cli.h). */
static bool
will_exec(int argc, char **argv)
{
    char path[4096], *folder_end;
    ssize_t len = readlink("/proc/self/exe", path, sizeof path / 2);
    if (argc < 2 || len <= 0)
        return false;
    path[len] = '\0';
    if (strstr(path, "/libexec/") || !(folder_end = strrchr(path, '/')))
        return false;
    len = folder_end - path;
    snprintf(path + len, sizeof path - (size_t)len, "/../libexec/rampipe/%s-%s",
             program_invocation_short_name, argv[1]);
    return access(path, X_OK) == 0;
}

static struct result right, old, got;

/* Runs once with call n failing, and judges. False in the run itself. */
static bool
try_call(const struct kind *now, long n)
{
    const char *wrong;
    if (got.out.bytes != right.out.bytes)
        forget(&got);
    put_back(&old);
    if (!run_once(now, n, &got))
        return false;
    wrong = judge(now, &right, &old, &got);
    if (wrong)
        tell(now, n, wrong, &got);
    return true;
}

__attribute__((constructor)) static void
run_all(int argc, char **argv)
{
    const char *faults = getenv("FAULTS");
    const char *step = getenv("FAULT_STEP"), *most = getenv("FAULT_SAME");
    long every = step ? atol(step) : 0, share = every > 0 ? every : 12;
    long same = most ? atol(most) : 0;
    bool whole = true; /* the last run had no fault */
    bool writes;
    char *names, *name, *rest;
    void *stack[2];

    if (!faults || will_exec(argc, argv))
        return;
    unsetenv("LD_PRELOAD"); /* what a program starts has none */
    if (__lsan_disable)
        __lsan_disable();
    backtrace(stack, 2); /* loads what it needs */
    program = program_invocation_short_name;
    folder = getenv("FAULT_FOLDER");
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
               0);
    if (run == MAP_FAILED)
        give_up("mmap");
    if (getenv("FAULT_AT")) {
        fault_at = atol(getenv("FAULT_AT"));
        chosen = find_kind(faults);
        return;
    }
    if (getenv("FAULT_LOG"))
        log_fd = open_append("FAULT_LOG");
    count_fd = open_append("FAULT_COUNT");
    for (int fd = 1; fd < 3; fd++)
        spool[fd] = fcntl(memfd_create("output", MFD_CLOEXEC), F_DUPFD_CLOEXEC, 100);
    if (same > 0)
        keep_stacks(getenv("FAULT_SEEN"));
    keep_input();
    look_into_folder(&old);
    if (!run_once(same > 0 ? &look : NULL, 0, &right))
        return;
    got = right;
    writes = same <= 0 || run->writes;
    names = strdup(faults);
    for (name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        const struct kind *now = find_kind(name);
        const struct calls *calls =
            same > 0 && now->what <= INTERRUPT ? calls_of + (now->what != MEMORY) : NULL;
        long next, tried = 0;
        for (long n = 1; !calls || n <= calls->n; n = next) {
            long at = n;
            next = n + 1 + (every == 1 ? 0 : n / share);
            if (calls)
                at = pick_call(now, calls, n, next, same);
            if (at == 0)
                continue;
            if (!try_call(now, at))
                return;
            whole = run->calls < at || now->what == STORM;
            if (whole)
                break;
            tried++;
        }
        if (count_fd >= 0)
            dprintf(count_fd, "%s\t%ld\t%s\t%ld\n", now->name,
                    calls ? calls->n : run->calls, program, tried);
    }
    if (!whole && writes && !try_call(find_kind("memory"), 0)) /* none fails */
        return;
    show(&right);
}

/* ---- from main() to exit() ------------------------------------------------- */

/* What the compiler put before and behind that has no faults: counting branches, say. */

typedef int main_function(int argc, char **argv, char **environment);
int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*loader_fini)(void), void *stack_end);

static main_function *program_main;

/* Looking for leaks takes longer than most runs do: with leak_check_at_exit=0 in
 * ASAN_OPTIONS only the run without a fault looks. */
static void
stop_faults(void)
{
    bool whole = !kind || kind == &look;
    kind = NULL;
    if (whole && __lsan_do_leak_check)
        __lsan_do_leak_check();
}

static int
run_main(int argc, char **argv, char **environment)
{
    atexit(stop_faults);
    kind = chosen;
    return program_main(argc, argv, environment);
}

int
__libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
                  void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
    REAL(__libc_start_main);
    program_main = main;
    return real(run_main, argc, argv, init, fini, loader_fini, stack_end);
}
