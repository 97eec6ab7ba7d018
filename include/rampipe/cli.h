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

/** The description of a tool, or of a mode of a tool. Its texts are made by gengetopt. */
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
 * The main() of a tool called `name`: runs the mode that argv[1] names, or else the
 * tool's own `entry`. If the tools were installed with a prefix (PREFIXname), the prefix
 * is taken from argv[0], and goes into messages and help. If descriptor 0, 1 or 2 is
 * closed, it is opened on /dev/null, so that no file gets its number. Returns the exit
 * status.
 */
int cli_main(int argc, char **argv, const char *name, const struct cli_mode *modes,
             int (*entry)(int argc, char **argv, const char *prefix));

/**
 * The main() of a mode that is a program of its own: runs that program in the place of
 * this process, with the same arguments. `program` is its file, in ../libexec/rampipe
 * beside the folder of the tool; `name` begins the message. `argv` is the mode's, so the
 * word before it is the tool's name. Returns only if the program cannot be run: the exit
 * status, after a message.
 */
int cli_run_apart(const char *program, const char *name, char **argv, const char *prefix);

/**
 * Prints --help. Text is wrapped at 79 columns. An example is a line that starts with two
 * blanks; its other blanks are 0x1f (by scripts/make-options). If it is too long for one
 * line, it is printed one command a line, continued with a backslash. ^ before the name
 * of a tool stands for the prefix. `modes` may be NULL. False: out of memory.
 */
bool cli_help(const struct cli_program *program, const struct cli_mode *modes,
              const char *prefix) REC_MUST_CHECK;

/** Checks the abbreviated options of a command line. False, with a message on standard
 * error: one may stand for several options (getopt_long() would take the first). */
bool cli_check_options(const char *name, const struct cli_program *program, int argc,
                       char *const *argv) REC_MUST_CHECK;

/** Set by the option parser when getopt_long() has refused an option. No message was
 * written then: call cli_explain_option(). */
extern bool cli_option_refused;

/** Explains on standard error why getopt_long() refused an option. `word` is the word of
 * the command line, `letter` the option's letter if it is a short one. `name` begins the
 * message. */
void cli_explain_option(const char *name, const struct cli_program *program,
                        const char *word, int letter);

/** Options from a file, in order; starts as {0}. */
struct cli_config {
    struct cli_option {
        char *word;    /* "--name=value", or "--name" */
        uint64_t line; /* its line in the file */
    } * option;
    size_t n, room;
};

/** Reads a file of options: one name="value" a line (also name=value, name value, name);
 * empty lines and # comments are skipped. False: *err is filled; call cli_config_free()
 * in that case, too. */
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
    bool progress; /* --progress: report even without a terminal */
    /* Set by the tool: on a "no" (REC_NO) what was written so far is not a result. The
     * stream then gets no trailer, and a file is removed. */
    bool cut;
    struct rec_reader *reader; /* opened by cli_open_*; closed by cli_finish */
    struct rec_writer *writer;
    struct rec_error err; /* why run() failed */
    uint64_t records;     /* counted by cli_next */
    uint64_t bytes;       /* size of the input files; 0: not all are regular files */
    double started;       /* seconds, CLOCK_MONOTONIC */
    /* Progress: */
    bool ended;   /* cli_next has come to the end */
    bool gathers; /* set by the tool: most of its work begins when all has been read */
    double share; /* share, done and what: the last arguments of cli_progress_share() */
    double base;  /* the share when this work began */
    double since; /* when this work began: seconds, CLOCK_MONOTONIC */
    uint64_t done;
    char what[128];
};

/**
 * Starts a run: progress and provenance. `dump` lists the options in effect, one
 * name="value" a line, as gengetopt's dump does. The provenance line is made from it,
 * without options that do not change the result, and without the directories of paths.
 * False: cli->err.
 */
bool cli_start(struct cli *cli, const char *dump) REC_MUST_CHECK;

/** Closes reader and writer, prints the message if any, returns the exit status. */
int cli_finish(struct cli *cli, bool ok);

/* ---- the two ends -------------------------------------------------------- */

/** Opens the writer: a record stream with provenance, or plain text. If a signal ends the
 * program, the unfinished file is removed. */
bool cli_open_writer(struct cli *cli, bool stream) REC_MUST_CHECK;
/** Registers a process group that is killed if a signal ends the program; 0 removes
 * it. */
void cli_guard_group(pid_t group);
/** Opens reader and writer as the ends of a filter: header and provenance forwarded. */
bool cli_open_filter(struct cli *cli) REC_MUST_CHECK;
/** Puts this value of an option into the provenance line. Call it before the writer is
 * opened. */
bool cli_set_provenance(struct cli *cli, const char *option,
                        uint64_t value) REC_MUST_CHECK;
/** The same with a value that needs no quotes, as a list of numbers. NULL: the option is
 * left out. */
bool cli_set_provenance_text(struct cli *cli, const char *option,
                             const char *value) REC_MUST_CHECK;
/** Ends the output stream and starts another, whose provenance has this value of the
 * option: the command line that would have made the stream alone. */
bool cli_next_stream(struct cli *cli, const char *option, uint64_t value) REC_MUST_CHECK;
/** Puts this value of the option into the provenance of all streams of a filter that
 * begin from now on. */
bool cli_change_provenance(struct cli *cli, const char *option,
                           uint64_t value) REC_MUST_CHECK;
/** Opens only the reader; nothing of the stream is forwarded. */
bool cli_open_reader(struct cli *cli) REC_MUST_CHECK;

/** Is standard input one of the inputs? */
bool cli_is_standard(const struct cli *cli);

/** rec_next() on cli->reader, with progress; returns -1 also if the output has failed. */
int cli_next(struct cli *cli, struct rec *rec) REC_MUST_CHECK;

/**
 * Reports progress of a loop that does not read records: `done` of `all` (0: unknown)
 * things are done; `what` is their name, in the plural. Cheap: it only stores the numbers
 * that a timer shows.
 *
 * Tools need not call it while they read: if standard error is a terminal and the work
 * takes more than a second, the first tool of a pipeline that is still working shows how
 * much of its input files it has read (or how many records, if the input is a pipe), and
 * how fast.
 */
void cli_progress(struct cli *cli, uint64_t done, uint64_t all, const char *what);
/** As cli_progress(), with the share of the work that is done, from 0 to 1. < 0: unknown,
 * and the rate is shown instead. NAN: unknown, and no rate is shown. A share that is less
 * than the one before begins another piece of work, with its own estimate of time. */
void cli_progress_share(struct cli *cli, double share, uint64_t done, const char *what);

/** Stops showing progress and erases its line, so that another program can use the
 * terminal. cli_finish() calls it, too. */
void cli_end_progress(void);

/** Seconds on a clock that is never set back (CLOCK_MONOTONIC). */
double cli_now(void);

/* ---- messages ------------------------------------------------------------ */

/** Write "tool: text" on standard error: a warning or a plain message unless -q, a note
 * only with -v. */
void cli_warn(const struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);
void cli_tell(const struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);
void cli_note(const struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);
/** The same of a text, for those who call back with their context, a struct cli. */
void cli_warn_text(void *cli, const char *text);
void cli_note_text(void *cli, const char *text);

/* ---- option values: strict, or a usage error that names the option ------- */

/** REC_USAGE "--option must be ..., got 'text'". Returns false. */
bool cli_usage(struct cli *cli, const char *format, ...) REC_PRINTF(2, 3);
/** A number >= 0. */
bool cli_amount(struct cli *cli, const char *option, const char *text, bool allow_inf,
                double *value) REC_MUST_CHECK;
/** A time in seconds, or with a unit: ns, us, ms, s, min, h, d. */
bool cli_seconds(struct cli *cli, const char *option, const char *text, bool allow_inf,
                 double *value) REC_MUST_CHECK;
/** A question as a record, of which an option may give keys: KEY=VALUE,... (NULL: none).
 * cli_check_keys() sees that they are of this form; cli_close_question() puts them behind
 * the fields, ends the line, and returns it to the caller, who frees it. */
bool cli_check_keys(struct cli *cli, const char *option, const char *keys) REC_MUST_CHECK;
char *cli_close_question(struct cli *cli, struct rec_text *text,
                         const char *keys) REC_MUST_CHECK;
/** Reads the question, and opens the writer for its answer. A key that its record does
 * not have is refused: it would do nothing. The caller closes *reader, also after an
 * error. */
bool cli_open_question(struct cli *cli, const char *option, const char *line,
                       struct rec_reader **reader, struct rec *rec) REC_MUST_CHECK;
/** A size in bytes, or with a unit: B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB. */
bool cli_bytes(struct cli *cli, const char *option, const char *text, bool allow_inf,
               double *value) REC_MUST_CHECK;
/** A rate in bytes/s, or with a unit: 1.6TB/s, or in bits, 400Gbit/s, 400Gb/s, 400Gbps.
 * In all these functions blanks may precede the unit, and its case does not matter,
 * except where it tells bits (b) from bytes (B). */
bool cli_rate(struct cli *cli, const char *option, const char *text, bool allow_inf,
              double *value) REC_MUST_CHECK;
/** An integer from `least` to `most`. */
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
