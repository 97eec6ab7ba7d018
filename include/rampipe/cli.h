/*
 * rampipe/cli.h - what all tools share: the frame, diagnostics, exit status, progress,
 * option values.
 *
 *     main() --- cli_main() --- the tool, or the mode that the first operand names
 *                                 |
 *                               cli_start(), run(), cli_finish()
 *
 * A tool's main() and the parsing of its options are made by tools/main.h. Only tools use
 * this room; the rest of the library never prints and never exits.
 */
#ifndef RAMPIPE_CLI_H
#define RAMPIPE_CLI_H

#include "rampipe/record.h"

#include <sys/types.h>

REC_BEGIN_DECLS

/* ---- programs ------------------------------------------------------------ */

/** What a tool, or a mode of one, says of itself; texts are gengetopt's. */
struct cli_program {
    const char *name; /* "partition", "sim elastic" */
    const char *version;
    const char *usage, *purpose, *description;
    const char *const *options; /* lines of help, NULL ends them */
    const char *const *unshown; /* options that do not change the records; NULL ends */
    const char *const *paths;   /* options whose value is a path; NULL ends */
};

/** A mode of a tool, its first operand. */
struct cli_mode {
    const char *name; /* "elastic"; NULL ends a list */
    int (*main)(int argc, char **argv, const char *prefix);
    const char *purpose;
};

/**
 * The main() of a tool called `name`: runs the mode that argv[1] names, else the tool's
 * own `entry`. Somebody may have installed the tool as PREFIXname: the prefix is found in
 * argv[0], and goes into messages and help. Descriptors 0, 1 and 2 that are closed are
 * kept from being given to files. Returns the exit status.
 */
int cli_main(int argc, char **argv, const char *name, const struct cli_mode *modes,
             int (*entry)(int argc, char **argv, const char *prefix));

/**
 * Prints --help: texts wrapped at 79 columns, examples (lines that start with two blanks,
 * 0x1f for the others) one command a line, continued with a backslash. ^ before the name
 * of a tool stands for the prefix. `modes` may be NULL. False: out of memory.
 */
bool cli_help(const struct cli_program *program, const struct cli_mode *modes,
              const char *prefix) REC_MUST_CHECK;

/** False: an abbreviation stands for several options, of which getopt_long() would take
 * the first; it is said on standard error. */
bool cli_check_options(const char *name, const struct cli_program *program, int argc,
                       char *const *argv) REC_MUST_CHECK;

/** The parser of options sets it when getopt_long() has refused one, without a
 * message. */
extern bool cli_option_refused;

/** Says on standard error what is wrong with an option that getopt_long() refused: the
 * word of the command line, and the letter if it was a short one. `name` is who says
 * it. */
void cli_explain_option(const char *name, const struct cli_program *program,
                        const char *word, int letter);

/** Options from a file, in order; starts as {0}. */
struct cli_config {
    struct cli_option {
        char *word;    /* "--name=value", or "--name" */
        uint64_t line; /* where it stands */
    } * option;
    size_t n, room;
};

/** Reads a file of options: one name="value" a line (name=value, name value, name), empty
 * lines and # comments. False: *err; free it all the same. */
bool cli_config_read(struct cli_config *config, const char *path,
                     struct rec_error *err) REC_MUST_CHECK;
void cli_config_free(struct cli_config *config);

/** One run of one tool. Strings belong to argv or to the option parser. */
struct cli {
    const struct cli_program *program;
    const char *prefix;       /* "" or what the tools were installed with, "rp-" */
    const char *const *files; /* operands: inputs in order */
    size_t nfiles;
    const char *output; /* -o; NULL: standard output */
    char *provenance;   /* own #@ line; owned */
    bool quiet, verbose, partial;
    bool progress; /* asked for: report whatever the input is */
    /* On a "no" (REC_NO) the output gets no end, and no file takes its place: what is
     * there of it is no result. */
    bool cut;
    struct rec_reader *reader; /* opened by cli_open_*; closed by cli_finish */
    struct rec_writer *writer;
    struct rec_error err; /* why run() failed */
    uint64_t records;     /* counted by cli_next */
    uint64_t bytes;       /* of the input files; 0: not all are files */
    double started;       /* seconds, CLOCK_MONOTONIC */
    /* Progress: */
    bool ended;   /* cli_next has come to the end */
    bool gathers; /* the tool's: most is done when all has been read */
    double share; /* cli_progress_share's, and what it was at the time `since` */
    double base, since;
    uint64_t done;
    char what[128];
};

/**
 * Fills the common part. `dump` lists the options in effect, one name="value" a line, as
 * gengetopt's dump does; it is reordered into the provenance line, without options that
 * do not change the result and without directories.
 */
bool cli_start(struct cli *cli, const char *dump) REC_MUST_CHECK;

/** Closes reader and writer, prints the message if any, returns the exit status. */
int cli_finish(struct cli *cli, bool ok);

/* ---- the two ends -------------------------------------------------------- */

/** Opens the writer: a record stream with provenance, or plain text. A signal that ends
 * the program takes away the file that is not whole. */
bool cli_open_writer(struct cli *cli, bool stream) REC_MUST_CHECK;
/** A signal that ends the program kills this process group, too; 0: none any more. */
void cli_guard_group(pid_t group);
/** Opens reader and writer as the ends of a filter: header and provenance forwarded. */
bool cli_open_filter(struct cli *cli) REC_MUST_CHECK;
/** Before the writer is opened: its provenance says that this option had this value. */
bool cli_set_provenance(struct cli *cli, const char *option,
                        uint64_t value) REC_MUST_CHECK;
/** Ends the output stream and starts another, which is what `value` of this option
 * instead of the one on the command line would have made. */
bool cli_next_stream(struct cli *cli, const char *option, uint64_t value) REC_MUST_CHECK;
/** The streams of a filter that begin from now on are what `value` of this option would
 * have made. */
bool cli_change_provenance(struct cli *cli, const char *option,
                           uint64_t value) REC_MUST_CHECK;
/** Opens only the reader; nothing of the stream is forwarded. */
bool cli_open_reader(struct cli *cli) REC_MUST_CHECK;

/** Is standard input one of the inputs? */
bool cli_is_standard(const struct cli *cli);

/** rec_next() on cli->reader, with progress, and -1 as soon as the output has failed. */
int cli_next(struct cli *cli, struct rec *rec) REC_MUST_CHECK;

/**
 * Progress is shown by itself when standard error is a terminal and the work takes over a
 * second, by the first tool of a pipeline that still works: how much of its input files
 * it has read, or how many records if there are pipes, how fast, and that it works on
 * when all has been read. For loops that do not read: `done` of `all` (0: unknown) are
 * counted, `what` they are called. Cheap: it leaves numbers behind for those who show
 * them.
 */
void cli_progress(struct cli *cli, uint64_t done, uint64_t all, const char *what);
/** The same with the share, 0 to 1, of all that is to be done; < 0: unknown, so the rate
 * is shown; NAN: neither is. A share that is less than before is that of other work. */
void cli_progress_share(struct cli *cli, double share, uint64_t done, const char *what);

/** No more progress is shown, and the line that is there is taken off the terminal:
 * another program tells. cli_finish() does it, too. */
void cli_end_progress(void);

/** A clock that only goes on, seconds. */
double cli_now(void);

/* ---- messages ------------------------------------------------------------ */

/** "tool: text" on stderr; warnings and what is said obey -q, notes need -v. */
void cli_warn(const struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);
void cli_tell(const struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);
void cli_note(const struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);

/* ---- option values: strict, or a usage error that names the option ------- */

/** REC_USAGE "--option must be ..., got 'text'". Returns false. */
bool cli_usage(struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);
/** A number >= 0. */
bool cli_amount(struct cli *cli, const char *option, const char *text, bool allow_inf,
                double *value) REC_MUST_CHECK;
/** A time in seconds, or with a unit: ns, us, ms, s, min, h, d. */
bool cli_seconds(struct cli *cli, const char *option, const char *text, bool allow_inf,
                 double *value) REC_MUST_CHECK;
/** A size in bytes, or with a unit: B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB. */
bool cli_bytes(struct cli *cli, const char *option, const char *text, bool allow_inf,
               double *value) REC_MUST_CHECK;
/** A rate in bytes/s, or a size with a unit and /s: 1.6TB/s; or in bits: 400Gbit/s,
 * 400Gb/s, 400Gbps. Units are taken in upper or lower case, behind blanks, too, but b and
 * B where both are units. */
bool cli_rate(struct cli *cli, const char *option, const char *text, bool allow_inf,
              double *value) REC_MUST_CHECK;
bool cli_count(struct cli *cli, const char *option, const char *text, uint64_t least,
               uint64_t most, uint64_t *value) REC_MUST_CHECK;
/** --limit: a number >= 1, or inf. */
bool cli_limit(struct cli *cli, const char *text, struct rec_limit *limit) REC_MUST_CHECK;
/** The index of `text`, in upper or lower case, in a NULL-terminated list of words. */
bool cli_choice(struct cli *cli, const char *option, const char *text,
                const char *const *words, size_t *index) REC_MUST_CHECK;
/** The index of the row called `text` in a table whose rows of `size` bytes begin with
 * their name; a NULL name ends it. */
bool cli_choose_row(struct cli *cli, const char *option, const char *text,
                    const void *rows, size_t size, size_t *index) REC_MUST_CHECK;

REC_END_DECLS

#endif
