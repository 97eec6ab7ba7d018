/* Tasks as rules of a Makefile: names of targets, and recipes. */
#include "makefile.h"

#include <math.h>
#include <stdlib.h>

void
task_make_target(struct rec_writer *w, const char *id)
{
    rec_printf(w, "task-");
    for (; *id; id++) {
        unsigned char c = (unsigned char)*id;
        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
            c == '-' || c == '.' || c == '/')
            rec_put_bytes(w, id, 1);
        else
            rec_printf(w, "_%02X", c);
    }
}

/* Writes a word of a recipe, quoted so that neither make nor the shell changes it. */
static void
put_word(struct rec_writer *w, const char *text)
{
    rec_put_bytes(w, "'", 1);
    for (; *text; text++) {
        if (*text == '\'')
            rec_printf(w, "'\\''");
        else if (*text == '$')
            rec_printf(w, "$$");
        else
            rec_put_bytes(w, text, 1);
    }
    rec_put_bytes(w, "'", 1);
}

/* As put_word(), for a text with the escapes of a record. */
static bool
put_unescaped(struct rec_writer *w, struct rec_str text, struct rec_error *err)
{
    char *plain = malloc(text.len + 1);
    if (!plain)
        return rec_fail_memory(err);
    task_unescape(plain, text);
    put_word(w, plain);
    free(plain);
    return true;
}

/* Writes what stands in front of a command: the change to its folder, its environment. */
static bool
put_place(struct rec_writer *w, const struct task *task, struct rec_error *err)
{
    struct rec_str env = rec_str(task->env ? task->env : ""), part;
    if (task->cwd) {
        /* a subshell: its streams are opened outside the folder; - is an option of cd */
        rec_printf(w, "( cd %s", *task->cwd == '-' ? "./" : "");
        if (!put_unescaped(w, rec_str(task->cwd), err))
            return false;
        rec_printf(w, " && ");
    }
    if (env.len == 0)
        return true;
    rec_printf(w, "env ");
    while (rec_str_split(&env, ',', &part)) {
        if (!put_unescaped(w, part, err))
            return false;
        rec_put_bytes(w, " ", 1);
    }
    return true;
}

bool
task_make_command(struct rec_writer *w, const struct task *task, struct rec_error *err)
{
    struct rec_str rest = rec_str(task->command);
    char *word = malloc(rest.len + 1);
    const char *const stream[] = {task->standard_input, task->standard_output,
                                  task->standard_error};
    static const char *const arrow[] = {" <", " >", " 2>"};
    if (!word)
        return rec_fail_memory(err);
    rec_printf(w, "\t%s@", task->ok_any ? "-" : "");
    if (!put_place(w, task, err)) {
        free(word);
        return false;
    }
    for (size_t i = 0; task_word(&rest, word) > 0; i++) {
        if (i > 0)
            rec_put_bytes(w, " ", 1);
        put_word(w, word);
    }
    free(word);
    if (task->cwd)
        rec_printf(w, " )");
    for (size_t i = 0; i < 3; i++)
        if (i == 2 && stream[1] && stream[2] && strcmp(stream[1], stream[2]) == 0)
            rec_printf(w, " 2>&1"); /* opened twice, one would overwrite the other */
        else if (stream[i]) {
            rec_printf(w, "%s", arrow[i]);
            put_word(w, stream[i]);
        }
    rec_put_bytes(w, "\n", 1);
    return true;
}

/* ---- what make cannot do ------------------------------------------------- */

/* A line end ends a recipe, even between quotes. In records it is an escape, %0A. */
static bool
has_line_end(const char *text, bool escaped)
{
    return text && (escaped ? strstr(text, "%0A") || strstr(text, "%0a")
                            : strchr(text, '\n') != NULL);
}

bool
task_make_check(const struct task *task, struct rec_error *err)
{
    if (task->call)
        return rec_fail(
            err, REC_DATA,
            "task '%.200s' is a call, and make has no workers to give it to: run it "
            "with runtasks",
            task->id);
    if (task->standard_input && *task->standard_input == '@')
        return rec_fail(err, REC_DATA,
                        "task '%.200s' has stdin=%.200s, and make keeps no output of "
                        "tasks: read the file of its stdout= or stderr=",
                        task->id, task->standard_input);
    return !(has_line_end(task->cwd, true) || has_line_end(task->env, true) ||
             has_line_end(task->standard_input, false) ||
             has_line_end(task->standard_output, false) ||
             has_line_end(task->standard_error, false)) ||
           rec_fail(err, REC_DATA,
                    "task '%.200s' has a line end in cwd=, env= or a stream, which a "
                    "Makefile cannot hold: run it with runtasks",
                    task->id);
}

bool
task_make_drops(const struct task *task)
{
    return !isinf(task->timeout) || task->cores > 1 || task->memory > 0 ||
           (task->retries != TASK_NOT_GIVEN && task->retries > 0);
}
