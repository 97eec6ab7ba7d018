/* Measured logs of spot clusters: foreign CSV -> a trace. Rows are first read into lists,
 * of counts, terminations and events, since several files may be of one cluster and rows
 * may be out of order; then the lists are sorted and become a trace. The kinds of log are
 * described at spot_log_read() in rampipe/spot.h. */
#include "rampipe/csv.h"
#include "rampipe/spot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum kind { COUNTS, TERMINATIONS, EVENTS, SAMPLES };

/* A row that was understood. */
struct entry {
    double time;      /* seconds; since 1970 in all kinds but EVENTS */
    double count;     /* of instances, or of terminations; not in EVENTS */
    bool add;         /* EVENTS: the node is added, not removed */
    const char *node; /* EVENTS: its name */
    uint64_t line;
    uint64_t order; /* in its list: equal times stay in the order of the rows */
    const char *file;
};

struct entries {
    struct entry *entry;
    size_t n, room;
};

struct log {
    const struct spot_log_options *options;
    struct entries counts, terminations, events;
    bool has_terminations, has_samples;
    enum kind kind;
    const char *file; /* that `kind` is the kind of: another file may have another one */
    size_t time_column, count_column;
    struct rec_arena *arena;
};

/* A row is wrong, as `format` says. 0: repairs are allowed, and a warning says what was
 * done with the row (`mended`, such as "dropped"); -1: *err, which says what a repair
 * would do. */
REC_PRINTF(6, 7)
static int
refuse(struct log *log, const char *file, uint64_t line, const char *mended,
       struct rec_error *err, const char *format, ...)
{
    struct rec_error why;
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rec_fail_at(&why, file, line, "%s", text);
    if (!log->options->repair) {
        rec_fail_at(err, file, line, "%s (with a repair, the row is %s)", text, mended);
        return -1;
    }
    if (log->options->warn) {
        snprintf(text, sizeof text, "%.340s: %s", why.text, mended);
        log->options->warn(log->options->context, text);
    }
    return 0;
}

/* ---- fields -------------------------------------------------------------- */

/* Reads n digits and, unless it is '\0', the `mark` behind them; *text moves on. */
static bool
parse_digits(const char **text, int n, char mark, int *value)
{
    *value = 0;
    for (int i = 0; i < n; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        *value = *value * 10 + (**text - '0');
    }
    return mark == '\0' || *(*text)++ == mark;
}

/* Seconds since 1970 of a date YYYY-MM-DD and a clock HH:MM:SS (UTC) with `tail` behind
 * it. If `clock` is NULL, it follows the date after a T. timegm() takes a 31 April for 1
 * May; if the day or month has changed in what it gives back, there is no such day. */
static bool
parse_moment(const char *date, const char *clock, const char *tail, double *seconds)
{
    struct tm t = {0}, again;
    time_t moment;
    if (!parse_digits(&date, 4, '-', &t.tm_year) ||
        !parse_digits(&date, 2, '-', &t.tm_mon) ||
        !parse_digits(&date, 2, '\0', &t.tm_mday) ||
        (clock ? *date != '\0' : *date++ != 'T'))
        return false;
    if (!clock)
        clock = date;
    if (!parse_digits(&clock, 2, ':', &t.tm_hour) ||
        !parse_digits(&clock, 2, ':', &t.tm_min) ||
        !parse_digits(&clock, 2, '\0', &t.tm_sec) || strcmp(clock, tail) != 0)
        return false;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    again = t;
    moment = timegm(&again);
    *seconds = (double)moment;
    return again.tm_mday == t.tm_mday && again.tm_mon == t.tm_mon && t.tm_hour < 24 &&
           t.tm_min < 60 && t.tm_sec < 60;
}

/* A count must be an integer that a double holds exactly, up to 2^53. 1: *count; else as
 * refuse(). */
static int
parse_count(struct log *log, const char *file, const struct csv_row *row, size_t column,
            double *count, struct rec_error *err)
{
    struct rec_str text = row->field[column];
    if (rec_parse_num(text, count) && *count >= 0 && *count == floor(*count) &&
        *count <= 9007199254740992)
        return 1;
    return refuse(log, file, row->line, "dropped", err,
                  "the number of instances must be an integer >= 0, got '%.40s'",
                  text.ptr);
}

/* ---- rows ---------------------------------------------------------------- */

static bool
keep(struct entries *list, struct entry entry, struct rec_error *err)
{
    if (!rec_grow(&list->entry, &list->room, list->n + 1, sizeof *list->entry, err))
        return false;
    entry.order = list->n;
    list->entry[list->n++] = entry;
    return true;
}

/* If the times of counts step back, a repair believes the later row: it replaces the rows
 * of its time and after. (Terminations and events are sorted instead, in
 * keep_event().) */
static int
keep_count(struct log *log, struct entry entry, struct rec_error *err)
{
    struct entries *list = &log->counts;
    size_t n = list->n;
    if (n > 0 && log->kind == SAMPLES && entry.time == list->entry[n - 1].time)
        list->n--; /* of two samples in one second the later one counts */
    else if (n > 0 && entry.time < list->entry[n - 1].time) {
        int status =
            refuse(log, entry.file, entry.line,
                   "kept, and replaces earlier rows of the same or a later time", err,
                   "time steps back by %g s", list->entry[n - 1].time - entry.time);
        if (status < 0)
            return status;
        while (list->n > 0 && list->entry[list->n - 1].time >= entry.time)
            list->n--;
    }
    return keep(list, entry, err) ? 1 : -1;
}

static int
keep_event(struct log *log, struct entries *list, struct entry entry,
           struct rec_error *err)
{
    if (list->n > 0 && entry.time < list->entry[list->n - 1].time &&
        refuse(log, entry.file, entry.line, "sorted", err, "time steps back by %g s",
               list->entry[list->n - 1].time - entry.time) < 0)
        return -1;
    return keep(list, entry, err) ? 1 : -1;
}

static int
take_timestamped(struct log *log, const char *file, const struct csv_row *row,
                 struct rec_error *err)
{
    struct entry entry = {.file = file, .line = row->line};
    size_t most =
        log->time_column > log->count_column ? log->time_column : log->count_column;
    int status;
    if (row->nfields <= most)
        return refuse(log, file, row->line, "dropped", err,
                      "the row has %zu fields, needs %zu", row->nfields, most + 1);
    if (!parse_moment(row->field[log->time_column].ptr, NULL, "Z", &entry.time))
        return refuse(log, file, row->line, "dropped", err,
                      "a timestamp must be YYYY-MM-DDTHH:MM:SSZ, got '%.40s'",
                      row->field[log->time_column].ptr);
    status = parse_count(log, file, row, log->count_column, &entry.count, err);
    if (status <= 0)
        return status;
    return log->kind == COUNTS ? keep_count(log, entry, err)
                               : keep_event(log, &log->terminations, entry, err);
}

static int
take_sample(struct log *log, const char *file, const struct csv_row *row,
            struct rec_error *err)
{
    struct entry entry = {.file = file, .line = row->line};
    int status;
    if (row->nfields != 3)
        return refuse(log, file, row->line, "dropped", err,
                      "a row must be date, time, count; this one has %zu fields",
                      row->nfields);
    if (!parse_moment(row->field[0].ptr, row->field[1].ptr, "", &entry.time))
        return refuse(log, file, row->line, "dropped", err,
                      "date and time must be YYYY-MM-DD, HH:MM:SS, got '%.40s, %.40s'",
                      row->field[0].ptr, row->field[1].ptr);
    status = parse_count(log, file, row, 2, &entry.count, err);
    return status <= 0 ? status : keep_count(log, entry, err);
}

static int
take_event(struct log *log, const char *file, const struct csv_row *row,
           struct rec_error *err)
{
    struct entry entry = {.file = file, .line = row->line};
    double ms;
    if (row->nfields != 3)
        return refuse(
            log, file, row->line, "dropped", err,
            "a row must be milliseconds, add or remove, node; this one has %zu fields",
            row->nfields);
    if (!rec_parse_num(row->field[0], &ms) || !(ms >= 0) || ms > 1000 * SPOT_TIME_MAX)
        return refuse(log, file, row->line, "dropped", err,
                      "milliseconds must be a number from 0 to 1e15, got '%.40s'",
                      row->field[0].ptr);
    entry.add = rec_str_is(row->field[1], "add");
    if (!entry.add && !rec_str_is(row->field[1], "remove"))
        return refuse(log, file, row->line, "dropped", err,
                      "expected add or remove, got '%.40s'", row->field[1].ptr);
    if (row->field[2].len == 0 || strpbrk(row->field[2].ptr, ",=\t\r\n") ||
        !rec_is_text(row->field[2]))
        return refuse(log, file, row->line, "dropped", err,
                      "a node's name must be text without comma, '=', TAB or line end, "
                      "got '%.40s'",
                      row->field[2].ptr);
    entry.time = ms / 1000;
    entry.node = rec_arena_copy(log->arena, row->field[2], err);
    return entry.node ? keep_event(log, &log->events, entry, err) : -1;
}

/* ---- which kind ---------------------------------------------------------- */

static bool
find_column(const struct csv_row *row, const char *name, size_t *column)
{
    for (*column = 0; *column < row->nfields; ++*column)
        if (rec_str_is(row->field[*column], name))
            return true;
    return false;
}

/* Finds out the kind of log from a file's first row. 1: the row is a header; 2: it is a
 * row of the log; -1: *err. */
static int
recognise(struct log *log, const char *file, const struct csv_row *row,
          struct rec_error *err)
{
    double number;
    log->file = file;
    if (find_column(row, "timestamp", &log->time_column)) {
        log->kind = COUNTS;
        if (find_column(row, "count", &log->count_column))
            return 1;
        log->kind = TERMINATIONS;
        log->has_terminations = true;
        if (find_column(row, "number", &log->count_column))
            return 1;
    }
    if (row->nfields == 3 &&
        (rec_str_is(row->field[1], "add") || rec_str_is(row->field[1], "remove"))) {
        log->kind = EVENTS;
        return 2;
    }
    if (row->nfields == 3 &&
        parse_moment(row->field[0].ptr, row->field[1].ptr, "", &number)) {
        log->kind = SAMPLES;
        log->has_samples = true;
        return 2;
    }
    rec_fail_at(err, file, row->line,
                "unknown log: it starts with neither 'timestamp,count', nor "
                "'timestamp,number', nor a row 'milliseconds,add|remove,node', nor one "
                "'YYYY-MM-DD, HH:MM:SS, count'");
    return -1;
}

static bool
read_rows(struct log *log, struct rec_reader *reader, struct csv_source *source,
          struct rec_error *err)
{
    struct csv_row row;
    int status;
    while ((status = csv_source_next(source, &row, err)) > 0) {
        const char *file = rec_reader_file(reader);
        if (file != log->file) {
            status = recognise(log, file, &row, err);
            if (status == 1)
                continue;
        }
        if (status > 0)
            status = log->kind == EVENTS    ? take_event(log, file, &row, err)
                     : log->kind == SAMPLES ? take_sample(log, file, &row, err)
                                            : take_timestamped(log, file, &row, err);
        if (status < 0)
            break;
    }
    return status == 0;
}

/* ---- rows -> trace ------------------------------------------------------- */

static int
by_time(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void
sort(struct entries *list)
{
    if (list->n > 0)
        qsort(list->entry, list->n, sizeof *list->entry, by_time);
}

static bool
add_counted(struct spot_trace *trace, double time, enum spot_kind kind, double count,
            struct rec_error *err)
{
    struct spot_event event = {.time = time, .kind = kind};
    if (count <= 0)
        return true;
    event.count = (uint64_t)count;
    return spot_trace_add(trace, event, err);
}

/* How far the counts are from what the events of the trace leave there. */
struct strayed {
    double there, most;       /* instances by the events so far; the largest difference */
    const struct entry *from; /* the first row that differs, */
    double then;              /* and `there` at that row */
};

static void
compare_count(struct strayed *strayed, const struct entry *row)
{
    if (row->count != strayed->there && !strayed->from) {
        strayed->from = row;
        strayed->then = strayed->there;
    }
    strayed->most = fmax(strayed->most, fabs(strayed->there - row->count));
}

/* A count that falls without a termination, or does not fall after one, is not in the
 * trace: that must not go unsaid. */
static void
warn_of_strayed(const struct log *log, const struct strayed *strayed)
{
    const struct entry *row = strayed->from;
    char text[500];
    if (!row || !log->options->warn)
        return;
    snprintf(
        text, sizeof text,
        "%.200s:%llu: the counts do not fit the terminations: %.15g instances are "
        "there, but %.15g by the terminations and rises so far, of which the trace is "
        "made (later they differ by up to %.15g)",
        row->file, (unsigned long long)row->line, row->count, strayed->then,
        strayed->most);
    log->options->warn(log->options->context, text);
}

/* A trace of the changes of the count, merged with the terminations, if there is a log of
 * them. Then a count that falls tells nothing new: the terminations say how many went,
 * and when. Of a time, terminations come before additions. */
static bool
build_from_counts(const struct log *log, struct spot_trace *trace, struct rec_error *err)
{
    const struct entry *row = log->counts.entry, *gone = log->terminations.entry;
    size_t n = log->counts.n, ngone = log->terminations.n, j = 0;
    double origin = row[0].time;
    struct strayed strayed = {.there = row[0].count};

    for (size_t i = 0; i < n; i++) {
        double change = i > 0 ? row[i].count - row[i - 1].count : 0;
        if (log->has_samples && i > 0 && change == 0)
            continue;
        if (!rec_grow(&trace->row, &trace->row_room, trace->nrows + 1, sizeof *trace->row,
                      err))
            return false;
        trace->row[trace->nrows++] = row[i].time - origin;
        for (; j < ngone && gone[j].time <= row[i].time; j++) {
            strayed.there -= gone[j].count;
            if (!add_counted(trace, gone[j].time - origin, SPOT_PREEMPT, gone[j].count,
                             err))
                return false;
        }
        strayed.there += fmax(0, change);
        if (log->has_terminations)
            compare_count(&strayed, &row[i]);
        if (!log->has_terminations &&
            !add_counted(trace, row[i].time - origin, SPOT_PREEMPT, -change, err))
            return false;
        if (!add_counted(trace, row[i].time - origin, SPOT_ADD, change, err))
            return false;
    }
    for (; j < ngone; j++)
        if (!add_counted(trace, gone[j].time - origin, SPOT_PREEMPT, gone[j].count, err))
            return false;
    warn_of_strayed(log, &strayed);
    trace->populated = true;
    trace->instances = (uint64_t)row[0].count;
    trace->start = 0;
    trace->end = row[n - 1].time - origin;
    if (ngone > 0 && gone[ngone - 1].time - origin > trace->end)
        trace->end = gone[ngone - 1].time - origin;
    return true;
}

/* Rows of one time and kind have become one event, with the names of all their nodes. */
static bool
flush_nodes(struct spot_trace *trace, const struct entry *entry, uint64_t count,
            char *ids, size_t len, struct rec_error *err)
{
    struct spot_event event = {.time = entry->time,
                               .kind = entry->add ? SPOT_ADD : SPOT_PREEMPT,
                               .count = count,
                               .ids = {ids, len}};
    return count == 0 || spot_trace_add(trace, event, err);
}

/* Do the log's times count from 1970? `first` is the first of them, seconds. */
static bool
is_epoch(const struct spot_log_options *options, double first)
{
    const double year = 365 * 86400.0;
    char text[200];
    if (options->clock != SPOT_CLOCK_AUTO || first <= year)
        return options->clock == SPOT_CLOCK_EPOCH;
    if (options->note) {
        snprintf(text, sizeof text,
                 "the first time is beyond a year, so times are taken as counted from "
                 "1970, and the trace starts at %.15g s",
                 first);
        options->note(options->context, text);
    }
    return true;
}

/* A trace of nodes that are added and removed. `there` has the names of those that are
 * there: a row that contradicts it is refused, or dropped by a repair. */
static bool
build_from_events(struct log *log, struct spot_trace *trace, struct rec_error *err)
{
    const struct entry *row = log->events.entry;
    struct rec_map there = {0};
    char *ids = NULL;
    size_t n = log->events.n, len = 0, room = 0;
    uint64_t count = 0;
    bool ok = true;

    for (size_t i = 0; ok && i < n; i++) {
        struct rec_str node = rec_str(row[i].node);
        bool known = rec_map_get(&there, node) != REC_NONE;
        if (i > 0 && (row[i].time != row[i - 1].time || row[i].add != row[i - 1].add)) {
            ok = flush_nodes(trace, &row[i - 1], count, ids, len, err);
            count = len = 0;
        }
        if (ok && known == row[i].add) {
            ok = refuse(log, row[i].file, row[i].line, "dropped", err,
                        known ? "node '%.80s' is added, but it is there already"
                              : "node '%.80s' is removed, but it is not there",
                        row[i].node) == 0;
            continue;
        }
        if (row[i].add)
            ok = ok && rec_map_add(&there, node, 0, err);
        else
            rec_map_remove(&there, node);
        ok = ok && rec_grow(&ids, &room, len + node.len + 1, 1, err);
        if (ok) {
            if (len > 0)
                ids[len++] = ',';
            memcpy(ids + len, node.ptr, node.len);
            len += node.len;
            count++;
        }
    }
    ok = ok && flush_nodes(trace, &row[n - 1], count, ids, len, err);
    rec_map_free(&there);
    free(ids);
    if (!ok)
        return false;
    trace->populated = true;
    trace->start = is_epoch(log->options, row[0].time) ? row[0].time : 0;
    trace->end = row[n - 1].time;
    return true;
}

/* A clock that was asked for would do nothing if the input is no log of milliseconds. */
static bool
needs_no_clock(const struct spot_log_options *options, const char *file,
               struct rec_error *err)
{
    return options->clock == SPOT_CLOCK_AUTO ||
           rec_fail(err, REC_USAGE,
                    "%s: only times of a log of milliseconds have a clock to choose",
                    file);
}

static bool
build(struct log *log, const char *file, struct spot_trace *trace, struct rec_error *err)
{
    if (log->events.n > 0 && log->counts.n + log->terminations.n > 0)
        return rec_fail(err, REC_DATA,
                        "%s: a log of events and a log of counts cannot be read together",
                        file);
    sort(&log->events);
    sort(&log->terminations);
    if (log->events.n > 0)
        return build_from_events(log, trace, err);
    if (!needs_no_clock(log->options, file, err))
        return false;
    if (log->counts.n > 0) {
        if (log->terminations.n > 0 &&
            log->terminations.entry[0].time < log->counts.entry[0].time)
            return rec_fail_at(err, log->terminations.entry[0].file,
                               log->terminations.entry[0].line,
                               "a termination comes before the first count");
        return build_from_counts(log, trace, err);
    }
    return log->has_terminations
               ? rec_fail(err, REC_DATA,
                          "%s: terminations need the log of counts too: give both files",
                          file)
               : rec_fail(err, REC_DATA, "%s: the log has no rows", file);
}

/* ---- records ------------------------------------------------------------- */

/* A stream of records needs no log to be understood. Without a trace record, the trace is
 * from the first event to the last. Streams may be concatenated; only one may have a
 * trace. */
static bool
read_records(struct rec_reader *reader, const struct spot_log_options *options,
             struct spot_trace *trace, struct rec_error *err)
{
    struct spot_order order = {0};
    struct spot_event event;
    struct rec rec;
    bool ended = false;
    int status;

    while ((status = rec_next(reader, &rec, err)) > 0) {
        int taken;
        if (ended &&
            (rec.type == REC_TRACE || rec.type == REC_ADD || rec.type == REC_PREEMPT))
            return rec_reader_fail(
                reader, err,
                "a second trace begins here, but a model is fitted to one trace");
        taken = spot_read(&order, reader, &rec, &event, err);
        if (taken < 0 || (taken > 0 && !spot_trace_add(trace, event, err)))
            return false;
        if (taken == 0 && rec.type != REC_TRACE && options->other)
            options->other(options->context, &rec);
        ended = ended || (rec.type == REC_MARK && order.begun);
    }
    if (status < 0)
        return false;
    if (!order.framed && trace->n > 0) {
        order.start = trace->event[0].time;
        order.end = trace->event[trace->n - 1].time;
    }
    trace->start = order.start;
    trace->end = order.end;
    trace->populated = order.populated;
    trace->instances = order.instances;
    return trace->n > 0 ||
           rec_fail(err, REC_DATA, "%s: the stream has no preempt or add records",
                    rec_reader_file(reader));
}

/* A log in CSV has neither a # at its start nor a TAB. */
static bool
is_record(struct rec_str line)
{
    return (line.len > 0 && line.ptr[0] == '#') ||
           memchr(line.ptr, '\t', line.len) != NULL;
}

bool
spot_log_read(struct rec_reader *reader, const struct spot_log_options *options,
              struct spot_trace *trace, struct rec_error *err)
{
    struct log log = {.options = options, .arena = &trace->arena};
    struct csv_source *source;
    struct rec_str line;
    int status = rec_peek_line(reader, &line, err);
    bool ok;

    if (status < 0)
        return false;
    if (status > 0 && is_record(line))
        return needs_no_clock(options, rec_reader_file(reader), err) &&
               read_records(reader, options, trace, err);
    source = csv_source_new(reader, err);
    ok = source && read_rows(&log, reader, source, err) &&
         build(&log, rec_reader_file(reader), trace, err);
    csv_source_free(source);
    free(log.counts.entry);
    free(log.terminations.entry);
    free(log.events.entry);
    return ok;
}
