/*
 * rampipe/cli.h - what all tools share: diagnostics, exit status, progress, option
 * values.
 *
 * A tool's main() is made by tools/main.h: it parses the options that gengetopt knows,
 * fills a struct cli, calls the tool's run() and turns what it returns into messages and
 * an exit status. Only tools use this room; the library never prints and never exits.
 */
#ifndef RAMPIPE_CLI_H
#define RAMPIPE_CLI_H

#include "rampipe/record.h"

/** One run of one tool. Strings belong to argv or to the option parser. */
struct cli {
    const char *tool;         /* "partition" */
    const char *const *files; /* operands: inputs in order */
    size_t nfiles;
    const char *output; /* -o; NULL: standard output */
    char *provenance;   /* own #@ line; owned */
    bool quiet, verbose, partial;
    bool progress;             /* report from the first second on, terminal or not */
    struct rec_reader *reader; /* opened by cli_open_*; closed by cli_finish */
    struct rec_writer *writer;
    struct rec_error err;     /* why run() failed */
    uint64_t records;         /* counted by cli_next */
    double started, reported; /* seconds, CLOCK_MONOTONIC */
};

/**
 * Fills the common part. `dump` lists the options in effect, one name="value" a line, as
 * gengetopt's dump does; it is reordered into the provenance line, without options that
 * do not change the result and without directories.
 */
bool cli_start(struct cli *cli, const char *version, const char *dump) REC_MUST_CHECK;

/** Closes reader and writer, prints the message if any, returns the exit status. */
int cli_finish(struct cli *cli, bool ok);

/** Opens the writer: a record stream with provenance, or plain text. */
bool cli_open_writer(struct cli *cli, bool stream) REC_MUST_CHECK;
/** Opens reader and writer as the two ends of a filter: header and provenance forwarded.
 */
bool cli_open_filter(struct cli *cli) REC_MUST_CHECK;
/** Ends the output stream and starts another, which is what `seed` instead of the seed on
 * the command line would have made. */
bool cli_next_stream(struct cli *cli, uint64_t seed) REC_MUST_CHECK;
/** Opens only the reader; nothing of the stream is forwarded. */
bool cli_open_reader(struct cli *cli) REC_MUST_CHECK;

/** rec_next() on cli->reader, with progress, and -1 as soon as the output has failed. */
int cli_next(struct cli *cli, struct rec *rec) REC_MUST_CHECK;
/** Shows progress if it is time; for loops that do not read. `what` is counted. */
void cli_progress(struct cli *cli, uint64_t done, const char *what);

/** "tool: text" on stderr. Warnings and notes obey -q and -v. */
void cli_error(const char *tool, const char *text);
void cli_warn(const struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);
void cli_note(const struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);

/** REC_USAGE "--option must be ..., got 'text'". Returns false. */
bool cli_usage(struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);

/* Option values: strict, or a usage error that names the option. */
bool cli_amount(struct cli *cli, const char *option, const char *text, bool allow_inf,
                double *value) REC_MUST_CHECK;
bool cli_count(struct cli *cli, const char *option, const char *text, uint64_t least,
               uint64_t most, uint64_t *value) REC_MUST_CHECK;
/** The index of `text` in a NULL-terminated list of words. */
bool cli_choice(struct cli *cli, const char *option, const char *text,
                const char *const *words, size_t *index) REC_MUST_CHECK;
/** CxRxS, three integers >= 1. */
bool cli_shape(struct cli *cli, const char *option, const char *text,
               uint32_t shape[3]) REC_MUST_CHECK;

#endif
