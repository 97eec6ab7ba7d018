/* Reading tasks from records, and writing them as records. */
#include "rampipe/task.h"

#include <math.h>
#include <stdlib.h>

/* Indices of the fields of a task record. */
enum { ID = 1, TIMEOUT, READS, WRITES, COMMAND };

void
task_free(struct task *task)
{
    free(task->reads.name);
    free(task->writes.name);
    rec_arena_free(&task->arena);
    *task = (struct task){0};
}

/* ---- escapes ------------------------------------------------------------- */

static int
hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

bool
task_is_escaped(struct rec_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        int high, low;
        if (text.ptr[i] != '%')
            continue;
        if (text.len - i < 3 || (high = hex(text.ptr[i + 1])) < 0 ||
            (low = hex(text.ptr[i + 2])) < 0 || high + low == 0)
            return false;
        i += 2;
    }
    return true;
}

char *
task_unescape(char *to, struct rec_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            c = (char)(hex(text.ptr[i + 1]) * 16 + hex(text.ptr[i + 2]));
            i += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return to + 1;
}

static void
put_escaped(struct rec_writer *writer, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == ',' || c == '%' || c < 0x20 || c == 0x7f) {
            char escape[3] = {'%', digits[c / 16], digits[c % 16]};
            rec_put_bytes(writer, escape, 3);
        } else
            rec_put_bytes(writer, text, 1);
    }
}

/* ---- reading ------------------------------------------------------------- */

static bool
add_name(struct task_names *names, const char *name, struct rec_error *err)
{
    if (!rec_grow(&names->name, &names->room, names->n + 1, sizeof *names->name, err))
        return false;
    names->name[names->n++] = name;
    return true;
}

/* Reads a name, without its escapes and normalised; owned by the task. NULL: *err. */
static const char *
read_name(struct task *task, const struct rec_reader *reader, struct rec_str text,
          const char *what, struct rec_error *err)
{
    char *raw = malloc(text.len + 1), *name = malloc(text.len + 3);
    const char *kept = NULL;
    if (!raw || !name)
        rec_fail_memory(err);
    else if (!task_is_escaped(text))
        rec_reader_fail(reader, err,
                        "%s: a %% must begin an escape such as %%2C, got '%.*s'", what,
                        REC_SAID(text));
    else {
        task_unescape(raw, text);
        if (!task_normalise(name, rec_str(raw)))
            rec_reader_fail(reader, err,
                            "%s has a name that is empty, or longer than %d bytes", what,
                            TASK_NAME_MAX);
        else
            kept = rec_arena_copy(&task->arena, rec_str(name), err);
    }
    free(raw);
    free(name);
    return kept;
}

static bool
read_names(struct task *task, const struct rec_reader *reader, struct rec_str list,
           const char *what, struct task_names *names, struct rec_error *err)
{
    struct rec_str part;
    if (rec_str_is(list, "-"))
        return true;
    while (rec_str_split(&list, ',', &part)) {
        const char *name = read_name(task, reader, part, what, err);
        if (!name || !add_name(names, name, err))
            return false;
    }
    return true;
}

/* Reads a key whose value keeps its escapes; *value is NULL if there is no such key. */
static bool
read_text(struct task *task, const struct rec_reader *reader, const struct rec *rec,
          const char *key, const char **value, struct rec_error *err)
{
    struct rec_str text;
    *value = NULL;
    if (!rec_find_key(rec, key, &text))
        return true;
    if (!task_is_escaped(text))
        return rec_reader_fail(reader, err, "%s: a %% must begin an escape such as %%2C",
                               key);
    return (*value = rec_arena_copy(&task->arena, text, err)) != NULL;
}

/* Reads the file of a stream, and adds it to the names that the task reads or writes. */
static bool
read_stream(struct task *task, const struct rec_reader *reader, const struct rec *rec,
            const char *key, const char **value, struct task_names *names,
            struct rec_error *err)
{
    struct rec_str text;
    *value = NULL;
    return !rec_find_key(rec, key, &text) ||
           ((*value = read_name(task, reader, text, key, err)) &&
            add_name(names, *value, err));
}

static bool
check_command(const struct rec_reader *reader, struct rec_str command,
              struct rec_error *err)
{
    char *word = malloc(command.len + 1);
    size_t words = 0;
    int more = -1;
    if (!word)
        return rec_fail_memory(err);
    while ((more = task_word(&command, word)) > 0)
        words++;
    free(word);
    if (more < 0)
        return rec_reader_fail(reader, err, "COMMAND has a quote that is not closed");
    return words > 0 || rec_reader_fail(reader, err, "COMMAND is empty");
}

static bool
read_numbers(struct task *task, const struct rec_reader *reader, const struct rec *rec,
             struct rec_error *err)
{
    uint64_t cores = 1;
    task->cost = NAN;
    if (!rec_get_number(reader, rec, TIMEOUT, &task->timeout, err) ||
        !rec_key_number(reader, rec, "cost", &task->cost, err) ||
        !rec_key_number(reader, rec, "memory", &task->memory, err) ||
        !rec_key_count(reader, rec, "cores", &cores, err) ||
        !rec_key_count(reader, rec, "retries", &task->retries, err))
        return false;
    if (cores < 1 || cores > UINT32_MAX)
        return rec_reader_fail(reader, err, "cores must be at least 1");
    task->cores = (uint32_t)cores;
    return true;
}

/* Is each part of the environment NAME=VALUE? Without '=' it would be a command of
 * env(1). */
static bool
check_env(const struct task *task, struct rec_error *err)
{
    struct rec_str rest = rec_str(task->env ? task->env : "a="), part;
    while (rec_str_split(&rest, ',', &part))
        if (!memchr(part.ptr, '=', part.len) || *part.ptr == '=')
            return rec_fail(err, REC_DATA,
                            "env of task '%s' must be NAME=VALUE,..., got '%.*s'",
                            task->id, REC_SAID(part));
    return true;
}

/* A worker has one set of streams for all its calls, so a call cannot redirect them. */
bool
task_check_form(const struct task *task, struct rec_error *err)
{
    if (!check_env(task, err))
        return false;
    if ((task->standard_output && *task->standard_output == '@') ||
        (task->standard_error && *task->standard_error == '@'))
        return rec_fail(err, REC_DATA,
                        "stdout= and stderr= of task '%s' must be files, not @NAMEs",
                        task->id);
    return !task->call ||
           !(task->standard_input || task->standard_output || task->standard_error) ||
           rec_fail(err, REC_DATA,
                    "task '%s' is a call, which uses the streams of its worker: leave "
                    "out stdin=, stdout= and stderr=",
                    task->id);
}

/* Reads the keys whose values are texts and names. */
static bool
read_keys(struct task *task, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    return read_text(task, reader, rec, "cwd", &task->cwd, err) &&
           read_text(task, reader, rec, "env", &task->env, err) &&
           read_text(task, reader, rec, "call", &task->call, err) &&
           read_stream(task, reader, rec, "stdin", &task->standard_input, &task->reads,
                       err) &&
           read_stream(task, reader, rec, "stdout", &task->standard_output, &task->writes,
                       err) &&
           read_stream(task, reader, rec, "stderr", &task->standard_error, &task->writes,
                       err);
}

bool
task_read(struct task *task, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct rec_str id, ok;

    rec_arena_free(&task->arena);
    task->reads.n = task->writes.n = 0;
    task->memory = 0;
    task->retries = TASK_NOT_GIVEN;
    if (!rec_need(reader, rec, err) || !rec_get_id(reader, rec, ID, &id, err) ||
        !read_numbers(task, reader, rec, err) ||
        !check_command(reader, rec->field[COMMAND], err))
        return false;
    task->ok_any = rec_find_key(rec, "ok", &ok);
    if (task->ok_any && !rec_str_is(ok, "any"))
        return rec_reader_fail(reader, err, "ok must be any");
    return (task->id = rec_arena_copy(&task->arena, id, err)) &&
           (task->command = rec_arena_copy(&task->arena, rec->field[COMMAND], err)) &&
           read_names(task, reader, rec->field[READS], "READS", &task->reads, err) &&
           read_names(task, reader, rec->field[WRITES], "WRITES", &task->writes, err) &&
           read_keys(task, reader, rec, err) &&
           (task_check_form(task, err) || rec_locate(reader, err));
}

/* ---- a stream of them ----------------------------------------------------- */

bool
task_check_take(struct task_check *check, const struct rec_reader *reader,
                const struct rec *rec, struct rec_error *err)
{
    int added;
    if (rec->type != REC_TASK)
        return true;
    if (!task_read(&check->task, reader, rec, err))
        return false;
    added = rec_ids_add(&check->ids, rec->field[ID], err);
    return added > 0 ||
           (added == 0 &&
            rec_reader_fail(reader, err, "task '%s' comes twice", check->task.id));
}

void
task_check_free(struct task_check *check)
{
    task_free(&check->task);
    rec_ids_free(&check->ids);
}

/* ---- writing ------------------------------------------------------------- */

/* Writes names, except those of streams, which have keys of their own. Streams are told
 * by their address, not their text: a file may be listed and be a stream as well. A lone
 * "-" would mean none: the file of that name is ./-. */
static void
put_names(struct rec_writer *writer, const struct task_names *names, const char *one,
          const char *other)
{
    const char *last = NULL;
    size_t n = 0;
    rec_text_field(writer, "");
    for (size_t i = 0; i < names->n; i++) {
        if (names->name[i] == one || names->name[i] == other)
            continue;
        if (n++ > 0) {
            put_escaped(writer, last);
            rec_put_bytes(writer, ",", 1);
        }
        last = names->name[i];
    }
    if (n == 1 && strcmp(last, "-") == 0)
        rec_put_bytes(writer, "./", 2);
    put_escaped(writer, n > 0 ? last : "-");
}

static void
put_stream(struct rec_writer *writer, const char *key, const char *name)
{
    if (!name)
        return;
    rec_text_key(writer, key, "");
    put_escaped(writer, name);
}

void
task_write(struct rec_writer *writer, const struct task *task)
{
    rec_begin(writer, "task");
    rec_text_field(writer, task->id);
    rec_num_field(writer, task->timeout);
    put_names(writer, &task->reads, task->standard_input, NULL);
    put_names(writer, &task->writes, task->standard_output, task->standard_error);
    rec_text_field(writer, task->command);
    if (!isnan(task->cost))
        rec_num_key(writer, "cost", task->cost);
    if (task->cores > 1)
        rec_uint_key(writer, "cores", task->cores);
    if (task->memory > 0)
        rec_num_key(writer, "memory", task->memory);
    if (task->cwd)
        rec_text_key(writer, "cwd", task->cwd);
    if (task->env)
        rec_text_key(writer, "env", task->env);
    put_stream(writer, "stdin", task->standard_input);
    put_stream(writer, "stdout", task->standard_output);
    put_stream(writer, "stderr", task->standard_error);
    if (task->call)
        rec_text_key(writer, "call", task->call);
    if (task->retries != TASK_NOT_GIVEN)
        rec_uint_key(writer, "retries", task->retries);
    if (task->ok_any)
        rec_text_key(writer, "ok", "any");
    rec_end(writer);
}
