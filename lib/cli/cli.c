/*
 * The frame of every tool: start, open, next, finish; and its messages.
 *
 * It holds what must be the same in all tools: which failure gives which exit status, in
 * which order the ends are closed, and that a result which is not whole never looks
 * whole.
 */
#include "private.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- start and finish ---------------------------------------------------- */

bool
cli_start(struct cli *cli, const char *dump)
{
    /* A filter ends quietly when its reader has gone away (as before `| head`), even if
     * the parent process ignores SIGPIPE, which a child inherits. */
    signal(SIGPIPE, SIG_DFL);
    cli->started = cli_now();
    cli_start_progress(cli);
    cli->provenance = cli_make_provenance(cli, dump);
    return cli->provenance || rec_fail_memory(&cli->err);
}

/* Prints cli->err, and if the input is a file of another kind, which tool reads it. */
static void
print_error(const struct cli *cli, int status)
{
    const char *guess =
        status == REC_DATA || status == REC_IO ? cli_guess_input(cli) : NULL;
    fprintf(stderr, "%s%s: %s", cli->prefix, cli->program->name, cli->err.text);
    if (guess)
        fputs("; the file is ", stderr);
    for (const char *p = guess ? guess : ""; *p; p++)
        if (*p == '^')
            fputs(cli->prefix, stderr);
        else
            fputc(*p, stderr);
    fputc('\n', stderr);
}

/* A well-formed "no" ends the stream as success does, unless the tool has set cli->cut.
 * An error while closing the output counts only if nothing failed before: the first error
 * is the cause. */
int
cli_finish(struct cli *cli, bool ok)
{
    struct rec_error late;
    int status = ok ? REC_OK : (int)cli->err.code;
    bool whole = ok || (status == REC_NO && !cli->cut);

    cli_end_progress();
    rec_reader_close(cli->reader);
    if (cli->writer && !rec_writer_close(cli->writer, whole, &late) &&
        (ok || status == REC_NO)) {
        cli->err = late;
        status = REC_IO;
    }
    cli_release_file();
    if (status != REC_OK)
        print_error(cli, status);
    free(cli->provenance);
    return status;
}

/* ---- the two ends -------------------------------------------------------- */

static bool
open_writer(struct cli *cli, bool stream)
{
    sigset_t all, before;
    bool ok;
    sigfillset(&all);
    /* A signal between creating the temporary file and registering it would leave it. */
    sigprocmask(SIG_SETMASK, &all, &before);
    cli->writer =
        rec_writer_open(cli->output, stream ? cli->provenance : NULL, &cli->err);
    ok = cli->writer && cli_guard_file(rec_writer_temporary(cli->writer), &cli->err);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ok;
}

static bool
open_reader(struct cli *cli, struct rec_writer *tie)
{
    struct rec_reader_options options = {
        .partial = cli->partial, .tie = tie, .warn = cli_warn_text, .context = cli};
    cli->bytes = cli_input_bytes(cli);
    cli->reader = rec_reader_open(cli->files, cli->nfiles, &options, &cli->err);
    cli_ask_floor_at_once(cli);
    return cli->reader != NULL;
}

bool
cli_open_writer(struct cli *cli, bool stream)
{
    cli_ask_floor_at_once(cli);
    return open_writer(cli, stream);
}

bool
cli_open_filter(struct cli *cli)
{
    return open_writer(cli, true) && open_reader(cli, cli->writer);
}

bool
cli_open_reader(struct cli *cli)
{
    return open_reader(cli, NULL);
}

bool
cli_is_standard(const struct cli *cli)
{
    for (size_t i = 0; i < cli->nfiles; i++)
        if (strcmp(cli->files[i], "-") == 0)
            return true;
    return cli->nfiles == 0;
}

/* The writer is asked first: after a failed write, the work on the rest of the input
 * would be in vain. */
int
cli_next(struct cli *cli, struct rec *rec)
{
    int status;
    if (cli->writer && !rec_writer_ok(cli->writer, &cli->err))
        return -1;
    if ((status = rec_next(cli->reader, rec, &cli->err)) <= 0)
        cli->ended = true;
    else if (++cli->records == 1)
        cli_ask_floor();
    return status;
}

/* ---- messages ------------------------------------------------------------ */

static void
say(const struct cli *cli, const char *kind, const char *format, va_list args)
{
    sigset_t before;
    cli_begin_message(&before);
    fprintf(stderr, "%s%s: %s", cli->prefix, cli->program->name, kind);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    cli_end_message(&before);
}

void
cli_warn(const struct cli *cli, const char *format, ...)
{
    va_list args;
    if (cli->quiet)
        return;
    va_start(args, format);
    say(cli, "warning: ", format, args);
    va_end(args);
}

void
cli_warn_text(void *cli, const char *text)
{
    cli_warn(cli, "%s", text);
}

void
cli_note_text(void *cli, const char *text)
{
    cli_note(cli, "%s", text);
}

void
cli_tell(const struct cli *cli, const char *format, ...)
{
    va_list args;
    if (cli->quiet)
        return;
    va_start(args, format);
    say(cli, "", format, args);
    va_end(args);
}

void
cli_note(const struct cli *cli, const char *format, ...)
{
    va_list args;
    if (!cli->verbose)
        return;
    va_start(args, format);
    say(cli, "", format, args);
    va_end(args);
}
