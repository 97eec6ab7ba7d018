/* runtasks [OPTION]... [FILE]... - runs tasks, and writes the records of their results.
 * */
#include "ggo/runtasks.h"
#define CLI_UNSHOWN "log", "engine", "slurm-options", "listen", "orphans",
#define CLI_PATHS "logs", "resume",
#include "main.h"

#include "runtasks_slurm.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum engine { LOCAL, SLURM, SLURM_JOBS };

/* ---- options ------------------------------------------------------------- */

/* Processors that this program may use. */
static uint64_t
count_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint64_t)CPU_COUNT(&set);
    return (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
}

static bool
read_engine(struct cli *cli, const struct runtasks_args *args, size_t *engine)
{
    static const char *const engines[] = {"local", "slurm", "slurm-jobs", NULL};
    if (!cli_choice(cli, "engine", args->engine_arg, engines, engine))
        return false;
    if (*engine == LOCAL && args->slurm_options_given)
        return cli_usage(cli, "--slurm-options is for --engine slurm and slurm-jobs");
    if (*engine == SLURM_JOBS && (args->jobs_given || args->memory_given))
        return cli_usage(
            cli,
            "with --engine slurm-jobs Slurm divides cores and memory among the tasks: "
            "leave out --jobs and --memory");
    if (*engine == SLURM_JOBS && args->resume_given)
        return cli_usage(
            cli,
            "--engine slurm-jobs cannot be used with --resume: jobs of a killed run may "
            "still be running");
    return true;
}

static bool
read_service(struct cli *cli, const struct runtasks_args *args, bool *cancel)
{
    static const char *const orphans[] = {"finish", "cancel", NULL};
    size_t which;
    if (!cli_choice(cli, "orphans", args->orphans_arg, orphans, &which))
        return false;
    *cancel = which == 1;
    if (!args->listen_given)
        return !args->orphans_given || cli_usage(cli, "--orphans is for --listen");
    if (cli->nfiles > 0 || args->output_given || args->partial_given ||
        args->progress_given)
        return cli_usage(
            cli,
            "with --listen, tasks come from clients, and results go to them: leave out "
            "FILE, --output, --partial and --progress");
    return (*args->listen_arg && strlen(args->listen_arg) <= RUN_SOCKET_MAX) ||
           cli_usage(cli, "--listen: the path of a socket must have 1 to %d bytes",
                     RUN_SOCKET_MAX);
}

static bool
read_options(struct cli *cli, const struct runtasks_args *args,
             struct run_options *options)
{
    uint64_t cores = count_processors();
    options->memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if ((args->jobs_given &&
         !cli_count(cli, "jobs", args->jobs_arg, 1, 100000, &cores)) ||
        (args->memory_given &&
         !cli_bytes(cli, "memory", args->memory_arg, true, &options->memory)) ||
        !cli_count(cli, "retries", args->retries_arg, 0, 1000000, &options->retries) ||
        !cli_seconds(cli, "backoff", args->backoff_arg, false, &options->backoff) ||
        !cli_seconds(cli, "grace", args->grace_arg, false, &options->grace))
        return false;
    if (args->log_given && args->resume_given &&
        strcmp(args->log_arg, args->resume_arg) != 0)
        return cli_usage(cli, "--resume appends to its own log: leave out --log");
    options->cores = (uint32_t)cores;
    options->fail_fast = args->fail_fast_given;
    options->brief = args->brief_given;
    options->logs = args->logs_arg;
    options->log = args->resume_given ? args->resume_arg : args->log_arg;
    options->resume = args->resume_given;
    options->again = args->again_in_place_given;
    options->content = args->check_content_given;
    options->unchecked = args->no_check_outputs_given;
    options->durable = args->durable_given;
    options->silent = args->listen_given && !cli->verbose;
    if (options->again && !options->resume)
        return cli_usage(cli, "--again-in-place is for --resume");
    if (options->content && !options->log)
        return cli_usage(cli, "--check-content is for --log and --resume");
    options->slurm = args->slurm_options_given ? args->slurm_options_arg : "";
    return true;
}

/* Makes a folder if it does not exist. */
static bool
make_folder(struct cli *cli, const char *option, const char *path)
{
    struct stat status;
    if (!path || mkdir(path, 0777) == 0 ||
        (stat(path, &status) == 0 && S_ISDIR(status.st_mode)))
        return true;
    return rec_fail(&cli->err, REC_IO, "--%s: %s: cannot make the folder", option, path);
}

/* ---- what the runner says ------------------------------------------------ */

static void
tell(void *context, const struct run_tally *t)
{
    char what[100];
    snprintf(what, sizeof what,
             "of %llu tasks done, %llu running, %llu failed or skipped",
             (unsigned long long)t->known, (unsigned long long)t->running,
             (unsigned long long)(t->failed + t->skipped));
    cli_progress(context, t->before + t->done, t->open ? 0 : t->known, what);
}

static void
show(void *context, const char *bytes, size_t n)
{
    const struct cli *cli = context;
    if (!cli->quiet)
        fwrite(bytes, 1, n, stderr);
}

static void
note_tally(const struct cli *cli, const struct run_tally *tally)
{
    cli_note(cli, "%llu tasks: %llu done, %llu failed, %llu skipped, %llu done before",
             (unsigned long long)tally->known, (unsigned long long)tally->done,
             (unsigned long long)tally->failed, (unsigned long long)tally->skipped,
             (unsigned long long)tally->before);
}

/* Clients are told how their tasks went: that one failed is not this program's
 * failure. */
static bool
serve(struct cli *cli, const struct run_options *options, const char *socket)
{
    struct run_service service = {.socket = socket, .provenance = cli->provenance};
    struct run_tally tally;
    int signal_number;
    if (!run_serve(options, &service, &tally, &signal_number, &cli->err))
        return false;
    if (signal_number)
        raise(signal_number);
    note_tally(cli, &tally);
    return true;
}

static bool
run_here(struct cli *cli, const struct run_options *options, const char *socket)
{
    struct run_tally tally;
    int signal_number;
    if (socket)
        return serve(cli, options, socket);
    if (!cli_open_filter(cli))
        return false;
    if (!run_tasks(options, cli->reader, cli->writer, &tally, &signal_number,
                   &cli->err)) {
        size_t used = strlen(cli->err.text);
        if (tally.lost)
            snprintf(cli->err.text + used, sizeof cli->err.text - used,
                     " (--again-in-place uses it as it is)");
        return false;
    }
    if (signal_number)
        raise(signal_number);
    note_tally(cli, &tally);
    return tally.failed + tally.skipped == 0 ||
           rec_fail(&cli->err, REC_NO, "%llu of %llu tasks failed, %llu were not run",
                    (unsigned long long)tally.failed, (unsigned long long)tally.known,
                    (unsigned long long)tally.skipped);
}

static bool
run_as_jobs(struct cli *cli, struct run_options *options, const char *socket)
{
    char *program = slurm_program(cli);
    bool ok;
    options->runner = program;
    options->cores = UINT32_MAX;
    options->memory = INFINITY;
    ok = program && run_here(cli, options, socket);
    free(program);
    return ok;
}

static bool
run(struct cli *cli, const struct runtasks_args *args)
{
    struct run_options options = {
        .tell = tell, .warn = cli_warn_text, .show = show, .context = cli};
    size_t engine;
    int status;
    if (!read_engine(cli, args, &engine) || !read_service(cli, args, &options.cancel) ||
        !read_options(cli, args, &options) ||
        !(args->listen_given
              ? make_folder(cli, args->resume_given ? "resume" : "log", options.log)
              : !options.log || run_check_log(options.log, cli->output, cli->files,
                                              cli->nfiles, &cli->err)) ||
        !make_folder(cli, "logs", options.logs))
        return false;
    if (engine == LOCAL)
        return run_here(cli, &options, args->listen_arg);
    if (engine == SLURM_JOBS)
        return run_as_jobs(cli, &options, args->listen_arg);
    if (!slurm_run(cli, args, &options, &status))
        return false;
    if (status != REC_OK)
        exit(status); /* the runner in the allocation has said why */
    return true;
}
