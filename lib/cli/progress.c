/*
 * Shows progress: one line for a whole pipeline, without being asked on a terminal.
 *
 * A handler of a timer's signal writes the line. So a tool that computes for long without
 * reading shows progress, too, and no code looks at a clock for each record. The handler
 * formats numbers by hand, because printf() must not be called in a handler. It only
 * reads what cli_next(), the reader and cli_progress() store.
 */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_LINE_US = 1000000, NEXT_LINES_US = 500000 }; /* timer, in microseconds */

/* Shared with the handler. */
static struct cli *volatile told;       /* the tool that runs; NULL: the timer is off */
static volatile sig_atomic_t shown;     /* a line is on the terminal */
static volatile sig_atomic_t has_floor; /* this process may show progress */
static volatile sig_atomic_t busy;      /* the share in *told is being changed */

double
cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the inputs ---------------------------------------------------------- */

/* Calls see() on the status of each input (NULL if there is none) until it returns false.
 * Returns false in that case. */
static bool
see_inputs(const struct cli *cli, bool (*see)(void *context, const struct stat *status),
           void *context)
{
    static const char *const standard_input[] = {"-"};
    const char *const *files = cli->nfiles ? cli->files : standard_input;
    for (size_t i = 0; i < (cli->nfiles ? cli->nfiles : 1); i++) {
        struct stat status;
        int failed = strcmp(files[i], "-") == 0 ? fstat(STDIN_FILENO, &status)
                                                : stat(files[i], &status);
        if (!see(context, failed ? NULL : &status))
            return false;
    }
    return true;
}

static bool
add_bytes(void *context, const struct stat *status)
{
    uint64_t *sum = context;
    if (!status || !S_ISREG(status->st_mode))
        return false;
    *sum += (uint64_t)status->st_size;
    return true;
}

uint64_t
cli_input_bytes(const struct cli *cli)
{
    uint64_t sum = 0;
    return see_inputs(cli, add_bytes, &sum) ? sum : 0;
}

static bool
is_no_pipe(void *context, const struct stat *status)
{
    (void)context;
    return !status || !(S_ISFIFO(status->st_mode) || S_ISSOCK(status->st_mode));
}

/* ---- the floor: which process of a pipeline shows progress ---------------------- */

/*
 * All processes of a pipeline belong to one process group and share the terminal. The one
 * that has the floor holds a lock on a byte of the terminal; the byte's offset is the
 * number of the process group. The kernel releases the lock when the process ends.
 *
 * A stage that reads a pipe asks for the floor when its first record has arrived. By then
 * the stage before it, if it is one of ours, has asked already. So the first of our
 * stages gets the floor, whatever program feeds it.
 */
void
cli_ask_floor(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    lock.l_start = getpgrp();
    if (told && !has_floor)
        has_floor = fcntl(STDERR_FILENO, F_SETLK, &lock) == 0;
}

void
cli_ask_floor_at_once(const struct cli *cli)
{
    if (told && see_inputs(cli, is_no_pipe, NULL))
        cli_ask_floor();
}

/* ---- the line ------------------------------------------------------------ */

struct line {
    char text[400];
    size_t n; /* bytes used */
};

/* Appends a text, as much as there is room for. */
static void
put(struct line *line, const char *text)
{
    while (*text && line->n < sizeof line->text)
        line->text[line->n++] = *text++;
}

/* Appends a count: 1,200,000. */
static void
put_count(struct line *line, double x)
{
    char digits[40], *p = digits + sizeof digits - 1;
    uint64_t n = x < 1e18 ? (uint64_t)x : (uint64_t)1e18;
    *p = '\0';
    for (int i = 0; i == 0 || n > 0; i++, n /= 10) {
        if (i > 0 && i % 3 == 0)
            *--p = ',';
        *--p = (char)('0' + n % 10);
    }
    put(line, p);
}

/* Appends a time in seconds: 20 s, 1 min 20 s, 2 h 5 min. */
static void
put_time(struct line *line, double seconds)
{
    double unit = seconds < 3600 ? 60 : 3600, part = unit / 60;
    seconds = part * floor(seconds / part + 0.5); /* rounded to whole parts */
    if (seconds >= unit) {
        put_count(line, floor(seconds / unit));
        put(line, unit > 60 ? " h " : " min ");
    }
    put_count(line, fmod(seconds, unit) / part);
    put(line, unit > 60 ? " min" : " s");
}

/* Appends a share in per cent: at most 99, because the work has not ended. */
static void
put_share(struct line *line, double share, const char *of)
{
    put_count(line, 100 * fmin(share, 0.99));
    put(line, of);
}

/* Appends the time left at `speed`, in shares a second; nothing if it is not known. */
static void
put_left(struct line *line, double share, double speed)
{
    if (!(speed > 0) || (1 - share) / speed > 1e8)
        return;
    put_time(line, fmax(1 - share, 0) / speed);
    put(line, " left, ");
}

static void
put_rate(struct line *line, double n, double seconds)
{
    put(line, ", ");
    put_count(line, n / seconds);
    put(line, "/s");
}

/* The recent speed in shares a second: a moving average over the ticks of the timer.
 * The average since the start would mislead, because graphs are read fast and the jobs
 * behind them slowly. */
static double
speed_of(double share, double seconds)
{
    static double speed, last, time;
    double now = (share - last) / (seconds - time);
    speed = time > 0 ? speed + 0.2 * (now - speed) : now;
    last = share;
    time = seconds;
    return speed;
}

/* Appends the progress of a tool that reads records. The share of the input that was read
 * is the share of the work that is done only if the tool works while it reads (not
 * `gathers`), and not during ticks in which it is still busy with one record (not
 * `goes_on`). Otherwise the line says "read", and no time left. */
static void
put_reading(struct line *line, const struct cli *cli, double seconds)
{
    static uint64_t before;
    double used = cli->reader ? rec_reader_used(cli->reader) : 0;
    bool reads = cli->reader && !cli->ended, goes_on = cli->records > before;
    before = cli->records;
    if (reads && cli->bytes == 0 && cli->records == 0) {
        put(line, used > 0 ? "reading" : "waiting for input");
        return;
    }
    if (reads && cli->bytes > 0) {
        double share = used / (double)cli->bytes;
        bool whole = goes_on && !cli->gathers;
        put_share(line, share, whole ? " %, " : " % read, ");
        if (whole)
            put_left(line, share, speed_of(share, seconds));
    }
    if (cli->records > 0) {
        put_count(line, (double)cli->records);
        put(line, cli->ended ? " records read" : " records");
    }
    if (reads && cli->records > 0 && cli->bytes == 0)
        put_rate(line, (double)cli->records, seconds);
    else if (!reads || !goes_on)
        put(line, cli->records > 0 ? ", working" : "working");
}

/* Appends the progress that the tool has reported by cli_progress(). */
static void
put_told(struct line *line, const struct cli *cli, double now)
{
    if (cli->share >= 0) {
        put_share(line, cli->share, " %, ");
        put_left(line, cli->share, (cli->share - cli->base) / (now - cli->since));
    }
    put_count(line, (double)cli->done);
    put(line, " ");
    put(line, cli->what);
    if (cli->share < 0)
        put_rate(line, (double)cli->done, now - cli->started);
}

static void
show(const struct cli *cli)
{
    static const char erase[] = "\033[K"; /* erases the rest of a longer line before */
    double now = cli_now(), seconds = now - cli->started;
    struct winsize size = {.ws_col = 0};
    struct line line = {.n = 0};
    ssize_t ignored;

    put(&line, "\r");
    put(&line, cli->prefix);
    put(&line, cli->program->name);
    put(&line, ": ");
    if (*cli->what)
        put_told(&line, cli, now);
    else
        put_reading(&line, cli, seconds);
    put(&line, ", ");
    put_time(&line, seconds);
    /* A line longer than the terminal is wide would wrap, and \r could not overwrite
     * it. */
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 &&
        line.n > size.ws_col)
        line.n = size.ws_col;
    if (line.n > sizeof line.text - strlen(erase))
        line.n = sizeof line.text - strlen(erase);
    put(&line, erase);
    ignored = write(STDERR_FILENO, line.text, line.n);
    (void)ignored;
    shown = 1;
}

/* ---- the timer ----------------------------------------------------------- */

/* At each tick, a process without the floor asks again, for the one that had it may have
 * ended. A tool that reads a pipe does not, until it has read everything: an upstream
 * stage that is still working should get the floor. */
static bool
may_ask(const struct cli *cli)
{
    return !cli->reader || cli->ended || cli->bytes > 0;
}

static void
tick(int signal_number)
{
    int error = errno;
    const struct cli *cli = told;
    (void)signal_number;
    if (cli && !has_floor && may_ask(cli))
        cli_ask_floor();
    if (cli && has_floor && !busy)
        show(cli);
    errno = error;
}

void
cli_start_progress(struct cli *cli)
{
    const struct itimerval timer = {{0, NEXT_LINES_US},
                                    {FIRST_LINE_US / 1000000, FIRST_LINE_US % 1000000}};
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    if (!cli->progress && (cli->quiet || !isatty(STDERR_FILENO)))
        return;
    told = cli;
    has_floor = cli->progress;
    if (sigaction(SIGALRM, &action, NULL) != 0 ||
        setitimer(ITIMER_REAL, &timer, NULL) != 0)
        told = NULL;
}

/* Erases the line of progress from the terminal, if there is one. */
static void
clear(void)
{
    if (shown)
        fputs("\r\033[K", stderr);
    shown = 0;
}

void
cli_end_progress(void)
{
    static const struct itimerval none;
    if (told)
        setitimer(ITIMER_REAL, &none, NULL);
    told = NULL;
    clear();
}

void
cli_begin_message(sigset_t *before)
{
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, before);
    clear();
}

void
cli_end_message(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void
cli_progress_share(struct cli *cli, double share, uint64_t done, const char *what)
{
    if (cli != told)
        return;
    if (!*cli->what)
        cli_ask_floor(); /* this tool works now, and no longer waits for its input */
    busy = 1;
    if (!*cli->what || !(share >= cli->share)) { /* another piece of work begins */
        cli->base = share;
        cli->since = cli_now();
    }
    cli->share = share;
    cli->done = done;
    snprintf(cli->what, sizeof cli->what, "%s", what);
    busy = 0;
}

void
cli_progress(struct cli *cli, uint64_t done, uint64_t all, const char *what)
{
    cli_progress_share(cli, all > 0 ? (double)done / (double)all : -1, done, what);
}
