/* Reading task files, the form that people write (rampipe/task.h), line by line. */
#include "rampipe/task.h"

#include <math.h>
#include <stdlib.h>

void
task_file_free(struct task_file *file)
{
    task_free(&file->task);
    free(file->word);
    *file = (struct task_file){0};
}

/* The next word of a line, owned by the task; *word is NULL at the end of the line. */
static bool
next_word(struct task_file *file, const struct rec_reader *reader, struct rec_str *rest,
          const char **word, struct rec_error *err)
{
    int more;
    *word = NULL;
    if (!rec_grow(&file->word, &file->room, rest->len + 3, 1, err))
        return false;
    if ((more = task_word(rest, file->word)) < 0)
        return rec_reader_fail(reader, err, "a quote is not closed");
    return more == 0 ||
           (*word = rec_arena_copy(&file->task.arena, rec_str(file->word), err)) != NULL;
}

static bool
add_name(struct task_file *file, const struct rec_reader *reader,
         struct task_names *names, const char *name, struct rec_error *err)
{
    size_t n = strlen(name);
    if (!rec_grow(&file->word, &file->room, n + 3, 1, err))
        return false;
    if (!task_normalise(file->word, rec_str(name)))
        return rec_reader_fail(reader, err, "a name is empty, or longer than %d bytes",
                               TASK_NAME_MAX);
    if (!rec_grow(&names->name, &names->room, names->n + 1, sizeof *names->name, err) ||
        !(names->name[names->n] =
              rec_arena_copy(&file->task.arena, rec_str(file->word), err)))
        return false;
    names->n++;
    return true;
}

/* A text without the blanks around it. */
static struct rec_str
trim(struct rec_str s)
{
    while (s.len > 0 && (*s.ptr == ' ' || *s.ptr == '\t'))
        s = (struct rec_str){s.ptr + 1, s.len - 1};
    while (s.len > 0 && strchr(" \t\r", s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* Adds names up to the end of the line, or up to "->" or "|", which is then *end. In
 * quotes these are names. */
static bool
add_names(struct task_file *file, const struct rec_reader *reader, struct rec_str *rest,
          struct task_names *names, const char **end, struct rec_error *err)
{
    for (;;) {
        *rest = trim(*rest);
        bool bare = rest->len > 0 && (*rest->ptr == '-' || *rest->ptr == '|');
        if (!next_word(file, reader, rest, end, err))
            return false;
        if (!*end || (bare && (strcmp(*end, "->") == 0 || strcmp(*end, "|") == 0)))
            return true;
        if (!add_name(file, reader, names, *end, err))
            return false;
    }
}

static bool
set_once(struct task_file *file, const struct rec_reader *reader, const char **text,
         struct rec_str value, struct rec_error *err)
{
    if (*text)
        return rec_reader_fail(reader, err, "task '%s' has this field twice",
                               file->task.id);
    if (value.len == 0)
        return rec_reader_fail(reader, err, "a value is missing");
    if (memchr(value.ptr, '\t', value.len))
        return rec_reader_fail(reader, err, "a value must not contain a TAB");
    return (*text = rec_arena_copy(&file->task.arena, value, err)) != NULL;
}

/* Sets a text that keeps its escapes in the record: cwd, env, call. */
static bool
set_text(struct task_file *file, const struct rec_reader *reader, const char **text,
         struct rec_str value, struct rec_error *err)
{
    if (!task_is_escaped(value))
        return rec_reader_fail(reader, err, "a %% must begin an escape such as %%2C");
    return set_once(file, reader, text, value, err);
}

/* Sets the command; all its words are read once, to see that its quotes are closed. */
static bool
set_command(struct task_file *file, const struct rec_reader *reader, struct rec_str text,
            struct rec_error *err)
{
    struct rec_str rest = text;
    const char *word;
    if (!set_once(file, reader, &file->task.command, text, err))
        return false;
    do
        if (!next_word(file, reader, &rest, &word, err))
            return false;
    while (word);
    return true;
}

/* ---- settings ------------------------------------------------------------ */

static bool
set_number(const struct rec_reader *reader, struct rec_str text, bool limit,
           double *value, struct rec_error *err)
{
    return (rec_parse_num(text, value) && *value >= 0 && (limit || !isinf(*value))) ||
           rec_reader_fail(reader, err, "a number >= 0 is needed, got '%.*s'",
                           REC_SAID(text));
}

static bool
set_count(const struct rec_reader *reader, struct rec_str text, uint64_t least,
          uint64_t *value, struct rec_error *err)
{
    return (rec_parse_uint(text, value) && *value >= least && *value < UINT32_MAX) ||
           rec_reader_fail(reader, err, "an integer >= %llu is needed, got '%.*s'",
                           (unsigned long long)least, REC_SAID(text));
}

/* Sets the file of a stream, which the task thereby reads or writes. */
static bool
set_stream(struct task_file *file, const struct rec_reader *reader, struct rec_str value,
           const char **stream, struct task_names *names, struct rec_error *err)
{
    const char *name, *more;
    if (!next_word(file, reader, &value, &name, err) ||
        !next_word(file, reader, &value, &more, err))
        return false;
    if (!name || more || *stream)
        return rec_reader_fail(
            reader, err, "stdin, stdout and stderr must each be one file, given once");
    if (!add_name(file, reader, names, name, err))
        return false;
    *stream = names->name[names->n - 1];
    return true;
}

static const char settings[] =
    "reads, writes, run, cost, cores, memory, timeout, cwd, env, stdin, stdout, stderr, "
    "call, retries and ok";

/* A field that is a number, or ok, replaces what stands before it: it may come once. */
static bool
is_first(struct task_file *file, const struct rec_reader *reader, struct rec_str key,
         struct rec_error *err)
{
    static const char *const single[] = {"cost",    "cores",   "memory",
                                         "timeout", "retries", "ok"};
    for (unsigned i = 0; i < sizeof single / sizeof *single; i++) {
        if (!rec_str_is(key, single[i]))
            continue;
        if (file->given & 1u << i)
            return rec_reader_fail(reader, err, "task '%s' has this field twice",
                                   file->task.id);
        file->given |= 1u << i;
    }
    return true;
}

static bool
set(struct task_file *file, const struct rec_reader *reader, struct rec_str line,
    struct rec_error *err)
{
    struct task *task = &file->task;
    struct rec_str key = line, value;
    const char *end;
    uint64_t cores;

    key.len = 0;
    while (key.len < line.len && !strchr(" \t", line.ptr[key.len]))
        key.len++;
    value = trim((struct rec_str){line.ptr + key.len, line.len - key.len});
    if (!is_first(file, reader, key, err))
        return false;
    if (rec_str_is(key, "reads"))
        return add_names(file, reader, &value, &task->reads, &end, err) &&
               (!end ||
                rec_reader_fail(reader, err,
                                "'%s' may stand only in the first line of a task", end));
    if (rec_str_is(key, "writes"))
        return add_names(file, reader, &value, &task->writes, &end, err) &&
               (!end ||
                rec_reader_fail(reader, err,
                                "'%s' may stand only in the first line of a task", end));
    if (rec_str_is(key, "run"))
        return set_command(file, reader, value, err);
    if (rec_str_is(key, "cost"))
        return set_number(reader, value, false, &task->cost, err);
    if (rec_str_is(key, "memory"))
        return set_number(reader, value, false, &task->memory, err);
    if (rec_str_is(key, "timeout"))
        return set_number(reader, value, true, &task->timeout, err);
    if (rec_str_is(key, "retries"))
        return set_count(reader, value, 0, &task->retries, err);
    if (rec_str_is(key, "cwd"))
        return set_text(file, reader, &task->cwd, value, err);
    if (rec_str_is(key, "env"))
        return set_text(file, reader, &task->env, value, err);
    if (rec_str_is(key, "call"))
        return set_text(file, reader, &task->call, value, err);
    if (rec_str_is(key, "stdin"))
        return set_stream(file, reader, value, &task->standard_input, &task->reads, err);
    if (rec_str_is(key, "stdout"))
        return set_stream(file, reader, value, &task->standard_output, &task->writes,
                          err);
    if (rec_str_is(key, "stderr"))
        return set_stream(file, reader, value, &task->standard_error, &task->writes, err);
    if (rec_str_is(key, "ok"))
        return (task->ok_any = rec_str_is(value, "any")) ||
               rec_reader_fail(reader, err, "ok must be any");
    if (rec_str_is(key, "cores")) {
        if (!set_count(reader, value, 1, &cores, err))
            return false;
        task->cores = (uint32_t)cores;
        return true;
    }
    return rec_reader_fail(reader, err, "a task has no field '%.*s'; its fields are %s",
                           REC_SAID(key), settings);
}

/* ---- lines --------------------------------------------------------------- */

/* NAME: [READS] [-> WRITES] [| COMMAND] */
static bool
begin(struct task_file *file, const struct rec_reader *reader, struct rec_str line,
      struct rec_error *err)
{
    struct task *task = &file->task;
    struct rec_str rest = line, id;
    const char *end;

    if (!memchr(line.ptr, ':', line.len))
        return rec_reader_fail(
            reader, err,
            "a task must begin with NAME: READS -> WRITES | COMMAND (its other fields "
            "follow on indented lines)");
    (void)rec_str_split(&rest, ':', &id);
    id = trim(id);
    if (id.len == 0 || memchr(id.ptr, ',', id.len) || memchr(id.ptr, '=', id.len) ||
        memchr(id.ptr, '\t', id.len))
        return rec_reader_fail(
            reader, err,
            "the name of a task must not be empty or contain a comma, '=' or TAB");
    rec_arena_free(&task->arena);
    *task =
        (struct task){.timeout = INFINITY,
                      .cost = NAN,
                      .retries = TASK_NOT_GIVEN,
                      .cores = 1,
                      .reads = {.name = task->reads.name, .room = task->reads.room},
                      .writes = {.name = task->writes.name, .room = task->writes.room}};
    file->open = true;
    file->given = 0;
    file->line = rec_reader_line(reader);
    if (!(task->id = rec_arena_copy(&task->arena, id, err)) ||
        !add_names(file, reader, &rest, &task->reads, &end, err))
        return false;
    if (end && strcmp(end, "->") == 0 &&
        !add_names(file, reader, &rest, &task->writes, &end, err))
        return false;
    if (end && strcmp(end, "->") == 0)
        return rec_reader_fail(reader, err, "'->' stands twice");
    return !end || set_command(file, reader, trim(rest), err);
}

/* A task is complete only here: its command may be given on any of its lines. */
int
task_file_end(struct task_file *file, const struct rec_reader *reader,
              struct rec_error *err)
{
    struct rec_error why;
    if (!file->open)
        return 0;
    file->open = false;
    if (!file->task.command)
        rec_fail(&why, REC_DATA, "task '%s' has no command", file->task.id);
    else if (task_check_form(&file->task, &why))
        return 1;
    rec_fail_at(err, rec_reader_file(reader), file->line, "%s", why.text);
    return -1;
}

static bool
is_fence(struct rec_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != '-')
            return false;
    return text.len >= 3;
}

int
task_file_take(struct task_file *file, const struct rec_reader *reader,
               struct rec_str line, enum task_line *kind, struct rec_error *err)
{
    bool indented = line.len > 0 && strchr(" \t", *line.ptr);
    struct rec_str text = trim(line);

    *kind = TASK_LINE_USED;
    if (!rec_is_text(line)) {
        rec_reader_fail(reader, err, "the line is not UTF-8 text");
        return -1;
    }
    if (text.len > 0 && *text.ptr == '#')
        return 0;
    if (text.len > 0 && indented) {
        if (!file->open) {
            rec_reader_fail(reader, err,
                            "an indented line must stand below the first line of a task");
            return -1;
        }
        return set(file, reader, text, err) ? 0 : -1;
    }
    /* a line that is not indented ends the open task; the caller passes it once more */
    if (file->open) {
        *kind = TASK_LINE_AGAIN;
        return task_file_end(file, reader, err);
    }
    if (text.len == 0)
        return 0;
    if (is_fence(text)) {
        *kind = TASK_LINE_FENCE;
        return 0;
    }
    return begin(file, reader, text, err) ? 0 : -1;
}
