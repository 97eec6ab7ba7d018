/* tracegen MODE [OPTION]... [FILE]... - random traces, and their models. */
#include "ggo/tracegen.h"
#define CLI_SEED (args.inputs_num > 0 && strcmp(args.inputs[0], "fit") != 0)
#include "main.h"

#include "tracegen_modes.h"

enum { JOBS = 1, FIT = 2, PREEMPT = 4 };

/* An option of another mode would do nothing. */
static bool
check_options(struct cli *cli, const struct gengetopt_args_info *args, unsigned mode)
{
#define OPTION(name, text, modes)       \
    {                                   \
        text, args->name##_given, modes \
    }
    const struct {
        const char *name;
        unsigned given, modes;
    } options[] = {OPTION(jobs, "jobs", JOBS),
                   OPTION(until, "until", JOBS),
                   OPTION(interarrival, "interarrival", JOBS),
                   OPTION(steps, "steps", JOBS),
                   OPTION(deadline_fraction, "deadline-fraction", JOBS),
                   OPTION(sampling, "sampling", JOBS),
                   OPTION(prefix, "prefix", JOBS),
                   OPTION(seed, "seed", JOBS | PREEMPT),
                   OPTION(stats, "stats", FIT),
                   OPTION(repair, "repair", FIT | PREEMPT),
                   OPTION(minutes, "minutes", PREEMPT),
                   OPTION(process, "process", PREEMPT),
                   OPTION(interval, "interval", PREEMPT),
                   OPTION(counts, "counts", PREEMPT),
                   OPTION(preempt_chance, "preempt-chance", PREEMPT),
                   OPTION(preempt_mean, "preempt-mean", PREEMPT),
                   OPTION(preempt_std, "preempt-std", PREEMPT),
                   OPTION(add_chance, "add-chance", PREEMPT),
                   OPTION(add_mean, "add-mean", PREEMPT),
                   OPTION(add_std, "add-std", PREEMPT),
                   OPTION(big_chance, "big-chance", PREEMPT),
                   OPTION(start, "start", PREEMPT),
                   OPTION(capacity, "capacity", PREEMPT),
                   OPTION(desired, "desired", PREEMPT),
                   OPTION(removal, "removal", PREEMPT),
                   OPTION(addition, "addition", PREEMPT),
                   OPTION(start_hour, "start-hour", PREEMPT),
                   OPTION(runs, "runs", PREEMPT),
                   OPTION(compare, "compare", PREEMPT)};
#undef OPTION
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !(options[i].modes & mode))
            return cli_usage(cli, "--%s does nothing in this mode, see --help",
                             options[i].name);
    return true;
}

static bool
run(struct cli *cli, const struct gengetopt_args_info *args)
{
    static const char *const modes[] = {"jobs", "fit", "preempt", NULL};
    static bool (*const mode_run[])(struct cli *, const struct gengetopt_args_info *) = {
        tracegen_jobs, tracegen_fit, tracegen_preempt};
    size_t mode = 0;

    if (cli->nfiles == 0)
        return cli_usage(cli,
                         "the first operand is the mode: tracegen jobs, tracegen fit "
                         "or tracegen preempt");
    if (!cli_choice(cli, "MODE", cli->files[0], modes, &mode))
        return false;
    cli->files++;
    cli->nfiles--;
    return check_options(cli, args, 1u << mode) && mode_run[mode](cli, args);
}
