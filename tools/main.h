/*
 * The main() of every tool. Include it once, after the header that gengetopt made from
 * the tool's .ggo; it needs the tool's own run(). A tool that has --seed defines CLI_SEED
 * before, a condition on `args`: when it holds, the seed in effect is in the provenance.
 */
#ifndef RAMPIPE_MAIN_H
#define RAMPIPE_MAIN_H

#include "rampipe/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The tool: opens its ends, does its job. False: cli->err says why. */
static bool run(struct cli *cli, const struct gengetopt_args_info *args);

static bool
parse(int argc, char **argv, struct gengetopt_args_info *args)
{
    struct cmdline_parser_params params;
    cmdline_parser_params_init(&params);
    params.check_required = 0;
    if (argc > 0)
        argv[0] = CMDLINE_PARSER_PACKAGE; /* messages start with the tool's name */
    if (cmdline_parser_ext(argc, argv, args, &params) != 0)
        return false;
    params.initialize = 0;
    params.override = 0;
    return !args->config_given ||
           cmdline_parser_config_file(args->config_arg, args, &params) == 0;
}

/* --help and --version print and exit inside the parser: a full disk shows only here. */
static void
check_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    cli_error(CMDLINE_PARSER_PACKAGE, "<stdout>: cannot write");
    _exit(REC_IO);
}

int
main(int argc, char **argv)
{
    struct gengetopt_args_info args;
    struct cli cli = {.tool = CMDLINE_PARSER_PACKAGE};
    char *dump = NULL;
    size_t len;
    FILE *out;
    bool ok;
    int status;

    atexit(check_stdout);
    if (!parse(argc, argv, &args)) {
        cmdline_parser_free(&args);
        return REC_USAGE; /* the parser said why */
    }
#ifdef CLI_SEED
    if (CLI_SEED && !args.seed_given) {
        args.seed_given = 1;
        args.seed_orig = strdup(args.seed_arg);
    }
#endif
    cli.files = (const char *const *)args.inputs;
    cli.nfiles = args.inputs_num;
    cli.output = args.output_arg;
    cli.quiet = args.quiet_given;
    cli.verbose = args.verbose_given;
    cli.partial = args.partial_given;
    cli.progress = args.progress_given;
    out = open_memstream(&dump, &len);
    if (out) {
        cmdline_parser_dump(out, &args);
        fclose(out);
    }
    ok = out ? cli_start(&cli, CMDLINE_PARSER_VERSION, dump) : rec_fail_memory(&cli.err);
    free(dump);
    ok = ok && run(&cli, &args);
    status = cli_finish(&cli, ok);
    cmdline_parser_free(&args);
    return status;
}

#endif
