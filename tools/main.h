/*
 * The main() of every tool and mode. Include it once, after the header that
 * scripts/make-options makes from the .ggo, which defines TOOL, TOOL_NAME and the modes.
 * The tool must define run(). Before the include it may define
 *
 *     CLI_SEED      a condition on *args: if it holds, the provenance names the seed in
 *                   effect, even if --seed was not given
 *     CLI_UNSHOWN   options that do not change the records: "map", "brief",
 *     CLI_PATHS     options whose value is a path: "profile",
 *     CLI_WORDS     a function that may put other words into argv before it is parsed,
 *                   and returns how many there are
 */
#ifndef RAMPIPE_MAIN_H
#define RAMPIPE_MAIN_H

#include "rampipe/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef CLI_UNSHOWN
#define CLI_UNSHOWN
#endif
#ifndef CLI_PATHS
#define CLI_PATHS
#endif

#define CLI_JOIN_NOW(a, b) a##b
#define CLI_JOIN(a, b) CLI_JOIN_NOW(a, b)
#define CLI_ARGS struct CLI_JOIN(TOOL, _args)
#define CLI_TEXT(what) CLI_JOIN(TOOL, _args##what) /* gengetopt's texts */
#define CLI_PARSE(what) CLI_JOIN(parse_, CLI_JOIN(TOOL, what))

/* The tool: opens its input and output, does its job. False: cli->err says why. */
static bool run(struct cli *cli, const CLI_ARGS *args);

static const struct cli_mode cli_modes[] = {TOOL_MODES{NULL, NULL, NULL}};

/* Parses a command line, or words that were made from a --config file. `initialize` sets
 * *args to defaults first; otherwise options that *args has already keep their values.
 * Nonzero: an option is wrong, and a message was written. */
static int
cli_parse_words(int argc, char **argv, CLI_ARGS *args, int initialize)
{
    const struct cli_program program = {.name = TOOL_NAME, .options = CLI_TEXT(_help)};
    struct CLI_PARSE(_params) params;
    int status;
    if (!cli_check_options(argv[0], &program, argc, argv)) {
        if (initialize)
            CLI_PARSE(_init)(args);
        return 1;
    }
    CLI_PARSE(_params_init)(&params);
    params.check_required = 0;
    params.initialize = initialize;
    params.override = 0;
    params.print_errors = 0;
    cli_option_refused = false;
    status = CLI_PARSE(_ext)(argc, argv, args, &params);
    if (cli_option_refused)
        cli_explain_option(argv[0], &program, argv[optind > 1 ? optind - 1 : 1], optopt);
    return status;
}

/* Tries to parse one line of a --config file. False: a message names the line. Each line
 * is tried by itself, because the parser cannot say which of many words is wrong. */
static bool
cli_try_line(const char *name, const char *path, const struct cli_option *option)
{
    CLI_ARGS args;
    char where[300];
    char *words[] = {where, option->word, NULL};
    bool ok;
    snprintf(where, sizeof where, "%s: %s:%llu", name, path,
             (unsigned long long)option->line);
    ok = cli_parse_words(2, words, &args, 1) == 0;
    if (ok && (args.config_given || args.help_given || args.version_given)) {
        fprintf(stderr, "%s: %s belongs to the command line\n", where, option->word);
        ok = false;
    }
    CLI_PARSE(_free)(&args);
    return ok;
}

/* Takes from a --config file the options that the command line does not give. Returns the
 * exit status. */
static int
cli_parse_config(const char *name, const char *path, CLI_ARGS *args)
{
    struct cli_config config = {.n = 0};
    struct rec_error err = {.code = REC_USAGE};
    char where[300], **words = NULL, **inputs = args->inputs;
    unsigned ninputs = args->inputs_num;
    bool ok = cli_config_read(&config, path, &err) &&
              ((words = calloc(config.n + 2, sizeof *words)) || rec_fail_memory(&err));
    if (!ok)
        fprintf(stderr, "%s: --config: %s\n", name, err.text);
    for (size_t i = 0; ok && i < config.n; i++) {
        words[i + 1] = config.option[i].word;
        ok = cli_try_line(name, path, &config.option[i]);
    }
    snprintf(where, sizeof where, "%s: %s", name, path);
    if (ok) {
        words[0] = where;
        ok = cli_parse_words((int)config.n + 1, words, args, 0) == 0;
        args->inputs = inputs; /* input files come from the command line only */
        args->inputs_num = ninputs;
    }
    free(words);
    cli_config_free(&config);
    return ok ? REC_OK : err.code == REC_IO ? REC_IO : REC_USAGE;
}

static int
cli_parse(int argc, char **argv, CLI_ARGS *args)
{
    if (cli_parse_words(argc, argv, args, 1) != 0)
        return REC_USAGE; /* the parser has said why */
    return args->config_given ? cli_parse_config(argv[0], args->config_arg, args)
                              : REC_OK;
}

/* Prints --help or --version. Flushing here reports a full disk or a closed output. */
static int
cli_say(const CLI_ARGS *args, const struct cli_program *program, const char *prefix)
{
    bool ok = true;
    if (args->help_given)
        ok = cli_help(program, cli_modes, prefix);
    else
        printf("%s%s %s\n", prefix, program->name, program->version);
    if (ok && fflush(stdout) == 0 && !ferror(stdout))
        return REC_OK;
    fprintf(stderr, "%s%s: %s\n", prefix, program->name,
            ok ? "<stdout>: cannot write" : "out of memory");
    return REC_IO;
}

/* Fills *cli from the options that all tools have, runs the tool, and finishes. */
static int
cli_run(const struct cli_program *program, const CLI_ARGS *args, const char *prefix)
{
    struct cli cli = {.program = program,
                      .prefix = prefix,
                      .files = (const char *const *)args->inputs,
                      .nfiles = args->inputs_num,
                      .output = args->output_arg,
                      .quiet = args->quiet_given,
                      .verbose = args->verbose_given,
                      .partial = args->partial_given,
                      .progress = args->progress_given};
    struct rec_text text;
    char *dump = NULL;
    bool ok = rec_text_open(&text, &cli.err);

    if (ok) {
        CLI_PARSE(_dump)(text.out, (CLI_ARGS *)(uintptr_t)args);
        dump = rec_text_close(&text, &cli.err);
        ok = dump && cli_start(&cli, dump);
    }
    free(dump);
    return cli_finish(&cli, ok && run(&cli, args));
}

#ifdef TOOL_MODE_MAIN
int
TOOL_MODE_MAIN(int argc, char **argv, const char *prefix)
#else
static int
cli_tool_main(int argc, char **argv, const char *prefix)
#endif
{
    static const char *const unshown[] = {CLI_UNSHOWN NULL};
    static const char *const paths[] = {CLI_PATHS NULL};
    const struct cli_program program = {.name = TOOL_NAME,
                                        .version = TOOL_VERSION,
                                        .usage = CLI_TEXT(_usage),
                                        .purpose = CLI_TEXT(_purpose),
                                        .description = CLI_TEXT(_description),
                                        .options = CLI_TEXT(_help),
                                        .unshown = unshown,
                                        .paths = paths};
    CLI_ARGS args;
    char name[128];
    int status;

    snprintf(name, sizeof name, "%s%s", prefix, TOOL_NAME);
    if (argc > 0)
        argv[0] = name; /* the option parser begins its messages with it */
#ifdef CLI_WORDS
    argc = CLI_WORDS(argc, argv);
#endif
    status = cli_parse(argc, argv, &args);
    if (status == REC_OK) {
#ifdef CLI_SEED
        if (CLI_SEED && !args.seed_given) {
            args.seed_given = 1;
            args.seed_orig = need_memory(strdup(args.seed_arg));
        }
#endif
        status = args.help_given || args.version_given ? cli_say(&args, &program, prefix)
                                                       : cli_run(&program, &args, prefix);
    }
    CLI_PARSE(_free)(&args);
    return status;
}

#ifndef TOOL_MODE_MAIN
int
main(int argc, char **argv)
{
    return cli_main(argc, argv, TOOL_NAME, cli_modes, cli_tool_main);
}
#endif

#endif
