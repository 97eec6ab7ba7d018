/* runtasks --engine slurm: this program again, in an allocation of Slurm. */
#include "runtasks_slurm.h"

#include "ggo/runtasks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *
slurm_program(struct cli *cli)
{
    char *path = realpath("/proc/self/exe", NULL);
    if (!path)
        rec_fail(&cli->err, REC_IO, "/proc/self/exe: %s", strerror(errno));
    return path;
}

/* An option as it was given. */
struct given {
    const char *name, *value; /* value: NULL for one that has none */
    bool given;
};

/* Lists the given options that the runner in the allocation needs. `tells`: it shows its
 * progress. */
static size_t
list_options(const struct runtasks_args *args, bool tells, struct given list[])
{
    const struct given all[] = {
        {"jobs", args->jobs_arg, args->jobs_given},
        {"memory", args->memory_arg, args->memory_given},
        {"retries", args->retries_arg, args->retries_given},
        {"backoff", args->backoff_arg, args->backoff_given},
        {"grace", args->grace_arg, args->grace_given},
        {"fail-fast", NULL, args->fail_fast_given},
        {"logs", args->logs_arg, args->logs_given},
        {"log", args->log_arg, args->log_given},
        {"resume", args->resume_arg, args->resume_given},
        {"again-in-place", NULL, args->again_in_place_given},
        {"check-content", NULL, args->check_content_given},
        {"no-check-outputs", NULL, args->no_check_outputs_given},
        {"durable", NULL, args->durable_given},
        {"listen", args->listen_arg, args->listen_given},
        {"orphans", args->orphans_arg, args->orphans_given},
        {"brief", NULL, args->brief_given},
        {"output", args->output_arg, args->output_given},
        {"quiet", NULL, args->quiet_given},
        {"verbose", NULL, args->verbose_given},
        {"partial", NULL, args->partial_given},
        {"progress", NULL, tells},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].given)
            list[n++] = all[i];
    return n;
}

static bool
run_words(struct cli *cli, const struct run_slurm_options *slurm, char *words[],
          int *status)
{
    int number;
    if (!run_in_slurm(slurm, words, status, &number, &cli->err))
        return false;
    if (number)
        raise(number);
    return true;
}

bool
slurm_run(struct cli *cli, const struct runtasks_args *args,
          const struct run_options *options, int *status)
{
    struct given list[32];
    /* the runner in the allocation sees no terminal: this program decides for it */
    bool tells = args->progress_given ||
                 (!args->listen_given && !args->quiet_given && isatty(STDERR_FILENO));
    size_t nlist = list_options(args, tells, list), n = 0;
    struct run_slurm_options slurm = {.options = options->slurm,
                                      .cores = args->jobs_given ? options->cores : 0,
                                      .memory = args->memory_given ? options->memory : 0,
                                      .input = cli->nfiles == 0 && !args->listen_given,
                                      .live = tells};
    char **words = calloc(nlist + cli->nfiles + 3, sizeof *words);
    bool ok = words || rec_fail_memory(&cli->err);

    cli_end_progress(); /* the runner in the allocation shows it */

    ok = ok && (words[n++] = slurm_program(cli));
    for (size_t i = 0; ok && i < nlist; i++)
        ok = asprintf(&words[n++], list[i].value ? "--%s=%s" : "--%s", list[i].name,
                      list[i].value) >= 0 ||
             rec_fail_memory(&cli->err);
    ok = ok && ((words[n++] = strdup("--")) || rec_fail_memory(&cli->err));
    for (size_t i = 0; ok && i < cli->nfiles; i++) {
        slurm.input = slurm.input || strcmp(cli->files[i], "-") == 0;
        ok = (words[n++] = strdup(cli->files[i])) || rec_fail_memory(&cli->err);
    }
    ok = ok && run_words(cli, &slurm, words, status);
    while (words && n > 0)
        free(words[--n]);
    free(words);
    return ok;
}
