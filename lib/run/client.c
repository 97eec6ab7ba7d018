/*
 * A client of a service: the stream that it sends is the input of a run, and the output
 * of that run is sent back to it.
 *
 *     begin(): name, log --- run_prepare() --- finish(): #end, or error record --- close
 *
 * Output that the client has not read yet is kept in memory without a limit: a client
 * that does not read must not block the service.
 */
#include "private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    NAME_MAX_BYTES = 64,
    SENT_MAX_BYTES = 1 << 16 /* sent bytes that may stay in front of unsent ones */
};

struct run_client {
    struct run run; /* once ->begun, until ->ended */
    struct run_options options;
    struct run_tally tally;
    struct rec_error err;
    char name[NAME_MAX_BYTES + 1], *log, *logs;
    int socket;
    bool begun, ended; /* ended: its stream is complete, and the run is freed */
    bool deaf;         /* it does not read any more */
    bool mute;         /* nothing more comes from it */
    bool told;         /* all output is sent, and our side is closed */
    char *out;         /* nout bytes of output, of which `sent` have been sent */
    size_t nout, sent, room;
};

/* ---- its output --------------------------------------------------------------- */

/* Takes bytes from the writer. Sent bytes are removed only when they are many and more
 * than half of the buffer, so that each byte is moved once on average. */
static int
put(void *context, const char *bytes, size_t len)
{
    struct run_client *client = context;
    if (client->deaf)
        return 0;
    if (client->sent > SENT_MAX_BYTES && client->sent > client->nout / 2) {
        client->nout -= client->sent;
        memmove(client->out, client->out + client->sent, client->nout);
        client->sent = 0;
    }
    if (!rec_grow(&client->out, &client->room, client->nout + len, 1, NULL))
        return ENOMEM;
    memcpy(client->out + client->nout, bytes, len);
    client->nout += len;
    return 0;
}

static void
drop_output(struct run_client *client)
{
    client->deaf = true;
    free(client->out);
    client->out = NULL;
    client->nout = client->sent = client->room = 0;
}

static void
send_more(struct run_client *client)
{
    if (!run_socket_send(client->socket, client->out, client->nout, &client->sent))
        drop_output(client);
    else if (client->sent == client->nout)
        client->nout = client->sent = 0;
}

/* Writes the reason why its run could not go on. Messages are cut at a number of bytes,
 * maybe within a UTF-8 character: then all bytes beyond ASCII are replaced. */
static void
put_error(struct run_client *client)
{
    char *text = client->run.first.text;
    bool utf8 = rec_is_text(rec_str(text));
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || (!utf8 && (unsigned char)*c >= 0x80))
            *c = '?';
    rec_begin(client->run.writer, "error");
    rec_text_field(client->run.writer, text);
    rec_end(client->run.writer);
}

/* Ends the client's stream and frees its run. The stream gets its #end only if it is
 * whole: tasks were not cut off by an error, by the client or by a signal. */
static void
finish(struct run_client *client)
{
    struct run *run = &client->run;
    struct rec_error err;
    bool whole = !run->failed && !run->gone && run->pool->signals == 0;
    if (client->begun)
        run_put_not_started(run);
    if (run->failed || run->gone)
        put_error(client);
    if (run->failed && run->first.code == REC_IO) {
        char text[1200];
        snprintf(text, sizeof text, "client '%s': %s", client->name, run->first.text);
        run->options->warn(run->options->context, text);
    }
    if (!rec_writer_close(run->writer, whole, &err)) /* the output found no memory */
        drop_output(client);
    rec_reader_close(run->reader);
    run_free(run);
    client->mute = client->mute || run->gone;
    client->ended = true;
}

void
run_client_tell(struct run_client *client)
{
    struct run *run = &client->run;
    struct rec_error err;
    if (!client->ended && client->begun && run_is_over(run))
        finish(client);
    if (!client->ended) {
        rec_writer_flush(run->writer);
        if (!rec_writer_ok(run->writer, &err))
            drop_output(client);
    }
    send_more(client);
    if (client->ended && client->nout == 0 && !client->told) {
        client->told = true;
        shutdown(client->socket, SHUT_WR);
    }
}

/* ---- opening and closing -------------------------------------------------------- */

/* Opens the writer and the reader of the connection. The reader borrows client->name, so
 * its messages have the client's own name as soon as take_name() has read it. */
static bool
open_ends(struct run_client *client, const struct run_service *service,
          struct rec_error *err)
{
    struct rec_sink sink = {.put = put, .context = client};
    struct rec_reader_options options = {.warn = client->options.warn,
                                         .context = client->options.context};
    if (!(client->run.writer =
              rec_writer_open_sink(&sink, "client", service->provenance, err)))
        return false;
    options.tie = client->run.writer;
    client->run.reader =
        rec_reader_open_descriptor(client->name, client->socket, &options, err);
    return client->run.reader != NULL;
}

struct run_client *
run_client_open(struct run_pool *pool, const struct run_service *service, int fd,
                uint64_t number, struct rec_error *err)
{
    struct run_client *client = calloc(1, sizeof *client);
    struct rec_error none;
    if (!client) {
        rec_fail_memory(err);
        close(fd);
        return NULL;
    }
    client->socket = fd;
    client->options = *pool->options;
    client->run.err = &client->err;
    client->run.tally = &client->tally;
    client->run.turn = ++pool->turns;
    run_init(&client->run, pool, &client->options);
    snprintf(client->name, sizeof client->name, "client-%llu",
             (unsigned long long)number);
    if (open_ends(client, service, err))
        return client;
    if (client->run.writer && !rec_writer_close(client->run.writer, false, &none))
        drop_output(client);
    client->ended = true;
    run_client_free(client);
    return NULL;
}

void
run_client_free(struct run_client *client)
{
    struct rec_error none;
    if (!client->ended) {
        if (!rec_writer_close(client->run.writer, false, &none))
            drop_output(client);
        rec_reader_close(client->run.reader);
        run_free(&client->run);
    }
    close(client->socket);
    free(client->log);
    free(client->logs);
    free(client->out);
    free(client);
}

struct run *
run_client_run(struct run_client *client)
{
    return client->begun && !client->ended ? &client->run : NULL;
}

void
run_client_add_tally(const struct run_client *client, struct run_tally *tally)
{
    tally->known += client->tally.known;
    tally->before += client->tally.before;
    tally->done += client->tally.done;
    tally->failed += client->tally.failed;
    tally->skipped += client->tally.skipped;
}

/* ---- its beginning -------------------------------------------------------------- */

/* The name becomes a part of paths (NAME.log), hence no slash and no dot in front. */
static bool
is_name(struct rec_str name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    for (size_t i = 0; i < name.len; i++)
        if (!memchr(allowed, name.ptr[i], sizeof allowed - 1))
            return false;
    return name.len >= 1 && name.len <= NAME_MAX_BYTES && *name.ptr != '.';
}

static bool
take_name(struct run_client *client, const struct rec *rec)
{
    struct rec_error *err = client->run.err;
    struct rec_str name;
    if (!rec_need(client->run.reader, rec, err))
        return false;
    name = rec->field[1];
    if (!is_name(name))
        return rec_reader_fail(
            client->run.reader, err,
            "the name of a client must be 1 to %d of the characters A-Z a-z 0-9 . _ -, "
            "and must not begin with a dot",
            NAME_MAX_BYTES);
    memcpy(client->name, name.ptr, name.len);
    client->name[name.len] = '\0';
    return true;
}

/* The path FOLDER/NAME with an ending, owned by the caller. NULL: *err. */
static char *
make_path(const char *folder, const char *name, const char *ending, struct rec_error *err)
{
    size_t size = strlen(folder) + strlen(name) + strlen(ending) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s%s", folder, name, ending);
    else
        rec_fail_memory(err);
    return path;
}

/* Sets its log file and makes its folder of logs, if the service has these options. */
static bool
make_paths(struct run_client *client)
{
    struct run_options *o = &client->options;
    struct stat status;
    if ((o->log &&
         !(client->log = make_path(o->log, client->name, ".log", client->run.err))) ||
        (o->logs &&
         !(client->logs = make_path(o->logs, client->name, "", client->run.err))))
        return false;
    o->log = client->log;
    o->logs = client->logs;
    return !o->logs || mkdir(o->logs, 0777) == 0 ||
           (stat(o->logs, &status) == 0 && S_ISDIR(status.st_mode)) ||
           rec_fail(client->run.err, REC_IO, "%s: cannot make the folder", o->logs);
}

/* Two clients of one name at a time would share a log file: the second is refused. */
static bool
open_run(struct run_client *client, struct run_client *const *others, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (others[i] != client && others[i]->begun && !others[i]->ended &&
            strcmp(others[i]->name, client->name) == 0)
            return rec_fail(client->run.err, REC_DATA,
                            "client '%s': another client of this name has not ended yet",
                            client->name);
    return make_paths(client) && run_open(&client->run) &&
           (!client->options.runner || run_jobs_open(&client->run));
}

/* Takes the first record of the client, and opens its run. A header is required, for only
 * a stream with a header must have an #end: otherwise a connection that breaks would look
 * like the end of the list. */
static bool
begin(struct run_client *client, const struct rec *rec, struct run_client *const *others,
      size_t n)
{
    struct run *run = &client->run;
    client->begun = true;
    if (rec->type != REC_MARK && !rec_reader_headed(run->reader))
        return rec_reader_fail(
            run->reader, run->err,
            "a client must first send the header '#rampipe', TAB, 1, so that #end can "
            "show that its stream is complete");
    if ((rec->type == REC_CLIENT && !take_name(client, rec)) ||
        !open_run(client, others, n))
        return false;
    run->ended = rec->type == REC_MARK;
    return rec->type == REC_CLIENT || run_take(run, rec);
}

/* Ends a client whose connection broke before its first record: it has no run. */
static void
forget(struct run_client *client)
{
    struct rec_error none;
    if (!rec_writer_close(client->run.writer, false, &none))
        drop_output(client);
    rec_reader_close(client->run.reader);
    run_free(&client->run);
    client->ended = client->mute = true;
}

void
run_client_prepare(struct run_client *client, struct run_client *const *others, size_t n)
{
    struct run *run = &client->run;
    struct rec rec;
    int status = 1;
    while (!client->begun && !client->ended && status == 1) {
        status = rec_try_next(run->reader, &rec, run->err);
        if (status == 0 || (status < 0 && run->err->code == REC_IO))
            forget(client);
        else if (status < 0) {
            client->begun = true;
            run_give_up(run);
        } else if (status == 1 && rec.type == REC_COMMENT)
            rec_put_line(run->writer, rec.line);
        else if (status == 1 && !begin(client, &rec, others, n))
            run_give_up(run);
    }
    if (client->begun && !client->ended && !run->failed && !run_prepare(run))
        run_give_up(run);
}

/* ---- events ---------------------------------------------------------------------- */

struct pollfd
run_client_poll(const struct run_client *client, double *left)
{
    const struct run *run = &client->run;
    bool reads = !client->ended && (!client->begun || run_listens(run));
    bool drains = !client->mute && (client->ended || (client->begun && run->ended));
    struct pollfd at = {client->deaf ? -1 : client->socket, 0, 0};
    *left = client->begun && !client->ended ? run_next(run) : INFINITY;
    if (client->deaf && reads)
        *left = 0; /* the socket is not polled, but may hold input from before */
    if (reads || drains)
        at.events |= POLLIN;
    if (client->sent < client->nout)
        at.events |= POLLOUT;
    return at;
}

/* Reads and drops input that comes after the end of the stream, in order to notice when
 * the client closes its side. */
static void
drain(struct run_client *client)
{
    char bytes[1 << 14];
    ssize_t n = recv(client->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    client->mute = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void
run_client_take_events(struct run_client *client, short events)
{
    struct run *run = &client->run;
    bool runs = client->begun && !client->ended;
    if ((events & POLLIN) && !client->mute && (client->ended || (runs && run->ended)))
        drain(client);
    if (!(events & (POLLHUP | POLLERR | POLLNVAL)))
        return;
    drop_output(client); /* both directions are closed: nobody will read it */
    if (runs && client->options.cancel)
        run_end_running(run);
    if (runs && (run->ended || client->options.cancel) && !run->gone && !run->failed) {
        rec_fail(&run->first, REC_IO, "client '%s' has closed the connection",
                 client->name);
        run->gone = run->ended = true;
    }
}

/* Not before the client has closed its side: close() with unread input would reset the
 * connection, and the client could lose the end of its output. */
bool
run_client_is_over(const struct run_client *client)
{
    return client->ended && (client->deaf || (client->told && client->mute) ||
                             client->run.pool->signals > 0);
}
