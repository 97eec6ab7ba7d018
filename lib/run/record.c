/* The result records of a run, attempt, done and block, and its warnings. */
#include "private.h"

#include <stdarg.h>
#include <stdlib.h>

/* ---- time ---------------------------------------------------------------- */

double
run_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Rounded, so that a time is short in the records and reads back as the same number. */
double
run_now(const struct run *run)
{
    return round(1e6 * (run_seconds(CLOCK_MONOTONIC) - run->origin)) / 1e6;
}

/* ---- records ------------------------------------------------------------- */

void
run_put_end(struct run *run, uint32_t task, double start, double end, double busy,
            const char *status)
{
    const struct run_task *t = &run->graph.task[task];
    struct rec_writer *w = run->writer;
    bool done = t->state == RUN_DONE;
    if (done && run->options->brief)
        return;
    rec_begin(w, done ? "done" : "block");
    rec_text_field(w, t->id);
    if (done) {
        rec_text_field(w, "tasks");
        rec_num_field(w, t->arrival);
        rec_num_field(w, start);
        rec_num_field(w, end);
        rec_uint_key(w, "servers", t->cores);
        if (!isnan(busy))
            rec_num_key(w, "busy", busy);
    } else {
        /* A task that ended earlier may be recorded later; readers of a stream of block
         * records rely on times that do not decrease. */
        run->told = fmax(run->told, end);
        rec_num_field(w, run->told);
        rec_text_field(w, status                 ? "failed"
                          : t->cause != REC_NONE ? "input_failed"
                                                 : "not_started");
        if (status) {
            rec_num_key(w, "start", start);
            rec_uint_key(w, "servers", t->cores);
            rec_text_key(w, "status", status);
        } else if (t->cause != REC_NONE)
            rec_text_key(w, "task", run->graph.task[t->cause].id);
        rec_num_key(w, "arrival", t->arrival);
    }
    rec_end(w);
}

static void
put_number(FILE *out, const char *key, double value)
{
    char text[REC_NUM_MAX];
    text[rec_format_num(text, value)] = '\0';
    fprintf(out, "\t%s%s", key, text);
}

/* For a call these are known only if its worker gives them. */
static void
put_used(FILE *out, const struct run_attempt *attempt)
{
    if (!isnan(attempt->user))
        put_number(out, "user=", attempt->user);
    if (!isnan(attempt->system))
        put_number(out, "system=", attempt->system);
    if (!isnan(attempt->memory))
        put_number(out, "memory=", attempt->memory);
}

static void
put_given(FILE *out, const struct run_attempt *attempt)
{
    if (attempt->result)
        fprintf(out, "\tresult=%s", attempt->result);
    if (attempt->standard_output)
        fprintf(out, "\tstdout=%s", attempt->standard_output);
    if (attempt->standard_error)
        fprintf(out, "\tstderr=%s", attempt->standard_error);
}

bool
run_put_attempt(struct run *run, const struct run_task *task,
                const struct run_attempt *attempt)
{
    struct rec_text record;
    char *line;
    bool ok;
    /* not asprintf(): the one of glibc writes beyond its buffer if it gets no memory */
    if (!rec_text_open(&record, run->err))
        return false;
    fprintf(record.out, "attempt\t%s\t%u", task->id, task->attempts);
    put_number(record.out, "", attempt->start);
    put_number(record.out, "", attempt->end);
    fprintf(record.out, "\t%s", attempt->status);
    put_used(record.out, attempt);
    fprintf(record.out, "\thost=%s", attempt->host);
    put_number(record.out, "began=", run->began);
    put_given(record.out, attempt);
    fputc('\n', record.out);
    if (!(line = rec_text_close(&record, run->err)))
        return false;
    if (!run->options->brief)
        rec_put_line(run->writer, (struct rec_str){line, strlen(line) - 1});
    ok = run_log_end(run, task, attempt->ok, line);
    free(line);
    return ok;
}

/* Writes the done record of a task that an earlier run finished. Its times are those of
 * its attempt and count from the start of that run; its arrival is not in the log, so the
 * start stands for it. */
static void
repeat_done(struct run *run, const struct run_task *task, struct rec_str line)
{
    struct rec_writer *w = run->writer;
    struct rec_str field, start = {0}, end = {0};
    for (size_t i = 0; i < 5 && rec_str_split(&line, '\t', &field); i++) {
        start = end;
        end = field;
    }
    rec_begin(w, "done");
    rec_text_field(w, task->id);
    rec_text_field(w, "tasks");
    rec_str_field(w, start);
    rec_str_field(w, start);
    rec_str_field(w, end);
    rec_uint_key(w, "servers", task->cores);
    rec_end(w);
}

bool
run_repeat(struct run *run, uint32_t task)
{
    struct run_task *t = &run->graph.task[task];
    const char *line = run->log.logged[t->logged].attempt,
               *result = strstr(line, "\tresult=");
    if (result) {
        result += strlen("\tresult=");
        if (!(t->result = strndup(result, strcspn(result, "\t"))))
            return rec_fail_memory(run->err);
    }
    if (run->options->brief)
        return true;
    rec_put_line(run->writer, rec_str(line));
    repeat_done(run, t, rec_str(line));
    return true;
}

void
run_warn(struct run *run, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    run->options->warn(run->options->context, text);
}
