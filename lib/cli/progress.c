/* Progress: one line for a whole pipeline, from the stage that reads a file. */
#include "private.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double
cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t
cli_input_bytes(const struct cli *cli)
{
    static const char *const standard_input[] = {"-"};
    const char *const *files = cli->nfiles ? cli->files : standard_input;
    uint64_t sum = 0;
    for (size_t i = 0; i < (cli->nfiles ? cli->nfiles : 1); i++) {
        struct stat status;
        int failed = strcmp(files[i], "-") == 0 ? fstat(STDIN_FILENO, &status)
                                                : stat(files[i], &status);
        if (failed || !S_ISREG(status.st_mode))
            return 0;
        sum += (uint64_t)status.st_size;
    }
    return sum;
}

void
cli_clear_progress(const struct cli *cli)
{
    if (cli->reported > cli->started)
        fputs("\r\033[K", stderr);
}

/* A stage that waits for another leaves the telling to that one. */
static bool
is_first(const struct cli *cli)
{
    return !cli->reader || cli->bytes > 0;
}

void
cli_progress(struct cli *cli, uint64_t done, uint64_t all, const char *what)
{
    double t, share = 0;
    if (!cli->progress && (cli->quiet || !is_first(cli) || !isatty(STDERR_FILENO)))
        return;
    t = cli_now();
    if (t - cli->reported < 1)
        return;
    cli->reported = t;
    t -= cli->started;
    if (all == 0 && cli->bytes > 0)
        share = (double)rec_reader_bytes(cli->reader) / (double)cli->bytes;
    else if (all > 0)
        share = (double)done / (double)all;
    fprintf(stderr, "\r%s%s: ", cli->prefix, cli->program->name);
    if (share > 0 && share <= 1)
        fprintf(stderr, "%.0f %%, %.0f s left, ", 100 * share, t / share - t);
    fprintf(stderr, "%llu %s, %.0f s\033[K", (unsigned long long)done, what, t);
    fflush(stderr);
}
