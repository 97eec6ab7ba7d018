/*
 * Writing out templates. The combinations of values are counted like an odometer: nothing
 * is stored for each, so a template may make more tasks than fit into memory. Equal tasks
 * are known by their name and a hash of all texts that they are made of.
 */
#include "template.h"

#include <math.h>
#include <stdlib.h>

/* ---- combinations -------------------------------------------------------- */

/* Sets ->now of a parameter to its present value: of its column in the present row, or of
 * its list, where one entry may be a range of numbers. */
static void
bind(struct task_template *t, struct parameter *parameter)
{
    const struct value *value;
    if (parameter->column != REC_NONE) {
        parameter->now = rec_str(t->cell[t->at_row * t->ncolumns + parameter->column]);
        return;
    }
    value = &t->value[parameter->first + parameter->place];
    parameter->now = value->text;
    if (!value->text.ptr) {
        snprintf(parameter->number, sizeof parameter->number, "%0*llu", value->width,
                 (unsigned long long)(value->from + parameter->offset));
        parameter->now = rec_str(parameter->number);
    }
}

static struct parameter *
parameter_of(struct task_template *t, size_t i)
{
    return &t->parameter[t->part[t->at_part].first_parameter + i];
}

/* Sets all parameters of the document to their first values, or those of the row. */
static void
restart(struct task_template *t)
{
    for (size_t i = 0; i < t->part[t->at_part].nparameters; i++) {
        struct parameter *parameter = parameter_of(t, i);
        parameter->place = 0;
        parameter->offset = 0;
        bind(t, parameter);
    }
}

/* The next combination of listed values, the last parameter changing fastest. */
static bool
turn(struct task_template *t)
{
    for (size_t i = t->part[t->at_part].nparameters; i-- > 0;) {
        struct parameter *parameter = parameter_of(t, i);
        const struct value *value;
        bool more = true;
        if (parameter->column != REC_NONE)
            continue;
        value = &t->value[parameter->first + parameter->place];
        if (!value->text.ptr && parameter->offset < value->to - value->from)
            parameter->offset++;
        else {
            more = parameter->place + 1 < parameter->n;
            parameter->place = more ? parameter->place + 1 : 0;
            parameter->offset = 0;
        }
        bind(t, parameter);
        if (more)
            return true;
    }
    return false;
}

/* Goes on to the next task: of the combination, else of the next combination, else of the
 * next row, else of the next document. False: there is none. */
static bool
go_on(struct task_template *t)
{
    const struct part *part = &t->part[t->at_part];
    if (t->begun && ++t->at_step < part->n)
        return true;
    t->at_step = 0;
    if (t->begun && turn(t))
        return true;
    if (t->begun)
        t->at_row++;
    for (t->begun = true; t->at_part < t->npart; t->at_part++, t->at_row = 0)
        if (t->at_row < (t->part[t->at_part].columns ? t->nrows : 1)) {
            restart(t);
            return true;
        }
    return false;
}

/* ---- texts --------------------------------------------------------------- */

/* Reports an error in a text of the template, with the values that its parameters have:
 * the error may be in the values. */
static bool fail_at(const struct task_template *t, uint64_t line, struct rec_error *err,
                    const char *format, ...) REC_PRINTF(4, 5);

static bool
fail_at(const struct task_template *t, uint64_t line, struct rec_error *err,
        const char *format, ...)
{
    const struct part *part = &t->part[t->at_part];
    char text[sizeof err->text], values[400] = "", value[100];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (size_t i = 0; i < part->nparameters; i++) {
        const struct parameter *parameter = &t->parameter[part->first_parameter + i];
        struct rec_str now = parameter->now;
        snprintf(value, sizeof value, "%.40s=%.*s", parameter->name,
                 (int)(now.len < 50 ? now.len : 50), now.ptr);
        if (!rec_list_name(values, sizeof values, value))
            break;
    }
    return rec_fail_at(err, t->file, line, "%s%s%s%s", text, *values ? " (with " : "",
                       values, *values ? ")" : "");
}

static bool
put(struct text *text, const char *bytes, size_t n, struct rec_error *err)
{
    if (!rec_grow(&text->bytes, &text->room, text->used + n + 1, 1, err))
        return false;
    if (n > 0)
        memcpy(text->bytes + text->used, bytes, n);
    text->used += n;
    text->bytes[text->used] = '\0';
    return true;
}

/* Writes a pattern, with the present values, into t->text, and mixes it into t->mark. */
static bool
fill(struct task_template *t, const struct pattern *pattern, struct rec_error *err)
{
    t->text.used = 0;
    if (!put(&t->text, "", 0, err))
        return false;
    for (size_t i = 0; i < pattern->n; i++) {
        const struct piece *piece = &t->piece[pattern->first + i];
        struct rec_str part = piece->parameter == REC_NONE
                                  ? piece->text
                                  : t->parameter[piece->parameter].now;
        if (!put(&t->text, part.ptr, part.len, err))
            return false;
    }
    t->mark = (t->mark ^ rec_hash((struct rec_str){t->text.bytes, t->text.used})) *
              0x9e3779b97f4a7c15u;
    return true;
}

/* Copies a text; the copy is owned by the task. NULL: *err. */
static const char *
keep(struct task *task, const struct text *text, struct rec_error *err)
{
    return rec_arena_copy(&task->arena, (struct rec_str){text->bytes, text->used}, err);
}

/* ---- commands ------------------------------------------------------------ */

/* A word of the command, quoted for a shell if need be. */
static bool
put_word(struct task_template *t, struct rec_str word, uint64_t line,
         struct rec_error *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_@%+=:,./-";
    struct text *command = &t->command;
    bool quote = word.len == 0;

    for (size_t i = 0; i < word.len; i++) {
        if ((unsigned char)word.ptr[i] < ' ' || word.ptr[i] == 0x7f)
            return fail_at(
                t, line, err,
                "a word of a command must not contain a TAB, line end or control "
                "character: put a script into a file, or separate its commands by ;");
        quote = quote || !memchr(plain, word.ptr[i], sizeof plain - 1);
    }
    if (!put(command, " ", command->used > 0, err) || !put(command, "'", quote, err))
        return false;
    for (size_t i = 0; i < word.len; i++)
        if (word.ptr[i] == '\'' ? !put(command, "'\\''", 4, err)
                                : !put(command, word.ptr + i, 1, err))
            return false;
    return put(command, "'", quote, err);
}

static bool
put_words(struct task_template *t, const char *words, struct rec_error *err)
{
    return put(&t->command, " ", t->command.used > 0, err) &&
           put(&t->command, words, strlen(words), err);
}

static bool
put_pattern(struct task_template *t, const struct pattern *pattern, struct rec_error *err)
{
    return fill(t, pattern, err) &&
           put_word(t, (struct rec_str){t->text.bytes, t->text.used}, pattern->line, err);
}

static bool
put_patterns(struct task_template *t, const struct patterns *list, struct rec_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        if (!put_pattern(t, &t->pattern[list->first + i], err))
            return false;
    return true;
}

/* An integer; *value is left if it is not given. */
static bool
get_count(struct task_template *t, const struct pattern *pattern, const char *what,
          uint64_t least, uint64_t most, uint64_t *value, struct rec_error *err)
{
    if (!pattern->line)
        return true;
    if (!fill(t, pattern, err))
        return false;
    return (rec_parse_uint(rec_str(t->text.bytes), value) && *value >= least &&
            *value <= most) ||
           fail_at(t, pattern->line, err, "%s must be an integer >= %llu, got '%.60s'",
                   what, (unsigned long long)least, t->text.bytes);
}

/* Puts env(1) in front of one of several executables of a job, with its folder and
 * variables: the cwd= and env= of the task would be those of mpiexec. */
static bool
put_own(struct task_template *t, const struct executable *e, struct rec_error *err)
{
    if (!e->cwd.line && e->env.n == 0)
        return true;
    return put_words(t, "env", err) &&
           (!e->cwd.line || (put_words(t, "-C", err) && put_pattern(t, &e->cwd, err))) &&
           put_patterns(t, &e->env, err);
}

/* "mpiexec -n RANKS TARGET ARGUMENT... : -n RANKS TARGET ...", or without type job the
 * executable alone. *ranks are those of all. */
static bool
put_command(struct task_template *t, const struct step *step, uint64_t *ranks,
            struct rec_error *err)
{
    t->command.used = 0;
    *ranks = 0;
    if (step->job && !put_words(t, "mpiexec", err))
        return false;
    for (size_t i = 0; i < step->n; i++) {
        const struct executable *e = &t->executable[step->first + i];
        char words[60];
        uint64_t n = 1;
        if (!get_count(t, &e->ranks, "ranks", 1, UINT32_MAX, &n, err))
            return false;
        *ranks += n;
        snprintf(words, sizeof words, "%s-n %llu", i ? ": " : "", (unsigned long long)n);
        if ((step->job && !put_words(t, words, err)) ||
            (step->n > 1 && !put_own(t, e, err)) || !put_pattern(t, &e->target, err))
            return false;
        if (t->text.used == 0)
            return fail_at(t, e->target.line, err, "target is empty");
        if (!put_patterns(t, &e->arguments, err))
            return false;
    }
    return true;
}

/* ---- fields -------------------------------------------------------------- */

static bool
get_number(struct task_template *t, const struct pattern *pattern, const char *what,
           bool allow_inf, double *value, struct rec_error *err)
{
    if (!pattern->line)
        return true;
    if (!fill(t, pattern, err))
        return false;
    return (rec_parse_num(rec_str(t->text.bytes), value) && *value >= 0 &&
            (allow_inf || isfinite(*value))) ||
           fail_at(t, pattern->line, err, "%s must be a number >= 0%s, got '%.60s'", what,
                   allow_inf ? " or inf" : "", t->text.bytes);
}

static bool
get_timeout(struct task_template *t, const struct step *step, struct task *task,
            struct rec_error *err)
{
    static const struct {
        const char *name;
        double seconds;
    } unit[NTIMES] = {{"days", 86400}, {"hours", 3600}, {"minutes", 60}, {"timeout", 1}};
    double sum = 0;
    bool given = false;
    for (size_t i = 0; i < NTIMES; i++) {
        double value = 0;
        if (!get_number(t, &step->timeout[i], unit[i].name, true, &value, err))
            return false;
        given = given || step->timeout[i].line;
        sum += value * unit[i].seconds;
    }
    task->timeout = given ? sum : (double)INFINITY;
    return true;
}

/* The name of an object, normalised; NULL: *err. */
static const char *
get_name(struct task_template *t, struct task *task, const struct pattern *pattern,
         struct rec_error *err)
{
    char *name;
    const char *kept = NULL;
    if (!fill(t, pattern, err))
        return NULL;
    name = malloc(t->text.used + 3);
    if (!name)
        rec_fail_memory(err);
    else if (!task_normalise(name, rec_str(t->text.bytes)))
        fail_at(t, pattern->line, err,
                "a name that a task reads or writes is empty, or longer than %d bytes",
                TASK_NAME_MAX);
    else
        kept = rec_arena_copy(&task->arena, rec_str(name), err);
    free(name);
    return kept;
}

static bool
add_name(struct task_names *names, const char *name, struct rec_error *err)
{
    if (!name ||
        !rec_grow(&names->name, &names->room, names->n + 1, sizeof *names->name, err))
        return false;
    names->name[names->n++] = name;
    return true;
}

static bool
get_names(struct task_template *t, struct task *task, const struct patterns *list,
          struct task_names *names, struct rec_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        if (!add_name(names, get_name(t, task, &t->pattern[list->first + i], err), err))
            return false;
    return true;
}

static bool
get_stream(struct task_template *t, struct task *task, const struct pattern *pattern,
           const char **stream, struct task_names *names, struct rec_error *err)
{
    *stream = NULL;
    return !pattern->line ||
           ((*stream = get_name(t, task, pattern, err)) && add_name(names, *stream, err));
}

static bool
get_id(struct task_template *t, const struct step *step, struct task *task,
       struct rec_error *err)
{
    const char *id;
    if (!fill(t, &step->name, err))
        return false;
    id = t->text.bytes;
    if (*id == '\0' || strpbrk(id, ",=\t\n") || !rec_is_text(rec_str(id)))
        return fail_at(
            t, step->name.line, err,
            "name must be a text without comma, =, TAB or line end, got '%.60s'", id);
    return (task->id = keep(task, &t->text, err)) != NULL;
}

/* Appends a pattern, with the escapes of a record, to t->command, used as scratch. */
static bool
put_escaped(struct task_template *t, const struct pattern *pattern, struct rec_error *err)
{
    if (!fill(t, pattern, err))
        return false;
    for (const char *p = t->text.bytes; *p; p++) {
        bool plain = *p != ',' && *p != '%' && (unsigned char)*p >= 0x20 && *p != 0x7f;
        char escape[4];
        snprintf(escape, sizeof escape, "%%%02X", (unsigned)(unsigned char)*p);
        if (!put(&t->command, plain ? p : escape, plain ? 1 : 3, err))
            return false;
    }
    return true;
}

/* Working directory and environment of the one executable. */
static bool
get_own(struct task_template *t, const struct step *step, struct task *task,
        struct rec_error *err)
{
    const struct executable *e = &t->executable[step->first];
    task->cwd = task->env = NULL;
    t->command.used = 0;
    if (step->n == 1 && e->cwd.line &&
        (!put_escaped(t, &e->cwd, err) || !(task->cwd = keep(task, &t->command, err))))
        return false;
    t->command.used = 0;
    for (size_t i = 0; step->n == 1 && i < e->env.n; i++)
        if (!put(&t->command, ",", i > 0, err) ||
            !put_escaped(t, &t->pattern[e->env.first + i], err))
            return false;
    return t->command.used == 0 || (task->env = keep(task, &t->command, err)) != NULL;
}

static bool
get_numbers(struct task_template *t, const struct step *step, struct task *task,
            uint64_t ranks, struct rec_error *err)
{
    uint64_t cores = ranks;
    task->cost = NAN;
    task->memory = 0;
    task->retries = TASK_NOT_GIVEN;
    if (!get_timeout(t, step, task, err) ||
        !get_number(t, &step->cost, "cost", false, &task->cost, err) ||
        !get_number(t, &step->memory, "memory", false, &task->memory, err) ||
        !get_count(t, &step->cores, "cores", 1, UINT32_MAX, &cores, err) ||
        !get_count(t, &step->retries, "retries", 0, UINT64_MAX, &task->retries, err))
        return false;
    if (cores > UINT32_MAX)
        return fail_at(t, step->line, err, "there are more than %u ranks", UINT32_MAX);
    task->cores = (uint32_t)cores;
    task->ok_any = step->ok.line != 0;
    if (!task->ok_any || !fill(t, &step->ok, err))
        return !task->ok_any;
    return strcmp(t->text.bytes, "any") == 0 ||
           fail_at(t, step->ok.line, err, "ok must be any, got '%.60s'", t->text.bytes);
}

static bool
make_task(struct task_template *t, const struct step *step, struct task *task,
          struct rec_error *err)
{
    uint64_t ranks;
    rec_arena_free(&task->arena);
    task->reads.n = task->writes.n = 0;
    t->mark = (uint64_t)(step - t->step);
    return get_id(t, step, task, err) && put_command(t, step, &ranks, err) &&
           (task->command = keep(task, &t->command, err)) &&
           get_own(t, step, task, err) && get_numbers(t, step, task, ranks, err) &&
           get_names(t, task, &step->reads, &task->reads, err) &&
           get_names(t, task, &step->writes, &task->writes, err) &&
           get_stream(t, task, &step->input, &task->standard_input, &task->reads, err) &&
           get_stream(t, task, &step->output, &task->standard_output, &task->writes,
                      err) &&
           get_stream(t, task, &step->error, &task->standard_error, &task->writes, err);
}

/* Returns 1 if a task is new, 0 if an equal one came before, -1 if a different one of the
 * same name did, or on an error (*err). */
static int
remember(struct task_template *t, const struct step *step, const struct task *task,
         struct rec_error *err)
{
    uint32_t known = rec_map_get(&t->ids, rec_str(task->id));
    const char *id;
    if (known != REC_NONE && t->known[known] == t->mark)
        return 0;
    if (known != REC_NONE) {
        fail_at(t, step->name.line, err,
                "another task is also called '%.60s': put the parameters in which they "
                "differ into the name",
                task->id);
        return -1;
    }
    if (!rec_grow(&t->known, &t->known_room, t->nknown + 1, sizeof *t->known, err) ||
        !(id = rec_arena_copy(&t->arena, rec_str(task->id), err)) ||
        !rec_map_add(&t->ids, rec_str(id), (uint32_t)t->nknown, err))
        return -1;
    t->known[t->nknown++] = t->mark;
    return 1;
}

int
task_template_next(struct task_template *t, struct task *task, struct rec_error *err)
{
    while (go_on(t)) {
        const struct step *step = &t->step[t->part[t->at_part].first + t->at_step];
        int status = make_task(t, step, task, err) ? remember(t, step, task, err) : -1;
        if (status != 0)
            return status;
    }
    return 0;
}

void
task_template_free(struct task_template *t)
{
    if (!t)
        return;
    yaml_source_free(t->source);
    rec_arena_free(&t->arena);
    rec_map_free(&t->names);
    rec_map_free(&t->ids);
    free(t->piece);
    free(t->pattern);
    free(t->executable);
    free(t->step);
    free(t->parameter);
    free(t->value);
    free(t->part);
    free(t->cell);
    free(t->text.bytes);
    free(t->command.bytes);
    free(t->known);
    free(t);
}
