/* Reading templates from YAML. The fields of each kind of map are a table of rows (name,
 * function, offset), so that a field that has no row is an error with a list of names. */
#include "template.h"

#include <stdlib.h>

struct field {
    const char *name;
    bool (*take)(struct task_template *t, const struct yaml_value *value, void *to,
                 struct rec_error *err);
    size_t offset; /* of the member that the function sets */
};

static bool fail_at(const struct task_template *t, uint64_t line, struct rec_error *err,
                    const char *format, ...) REC_PRINTF(4, 5);

static bool
fail_at(const struct task_template *t, uint64_t line, struct rec_error *err,
        const char *format, ...)
{
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return rec_fail_at(err, t->file, line, "%s", text);
}

static bool
need(const struct task_template *t, const struct yaml_value *value, enum yaml_kind kind,
     const char *what, struct rec_error *err)
{
    static const char *const kinds[] = {"a text", "a list", "a map"};
    return value->kind == kind || fail_at(t, value->line, err, "%s must be %s, and is %s",
                                          what, kinds[kind], kinds[value->kind]);
}

/* Takes all members of a map, each by the function of its row. */
static bool
take_fields(struct task_template *t, const struct yaml_value *map, const char *what,
            const struct field *fields, void *to, struct rec_error *err)
{
    if (!need(t, map, YAML_MAP, what, err))
        return false;
    for (const struct yaml_value *member = map->item; member; member = member->next) {
        const struct field *field = fields;
        char names[300] = "";
        while (field->name && strcmp(field->name, member->key) != 0)
            field++;
        if (!field->name) {
            for (field = fields; field->name; field++)
                rec_list_name(names, sizeof names, field->name);
            return fail_at(t, member->line, err,
                           "%s has no field '%.60s'; its fields are %s", what,
                           member->key, names);
        }
        if (field->take && !field->take(t, member, (char *)to + field->offset, err))
            return false;
    }
    return true;
}

/* ---- patterns ------------------------------------------------------------ */

static bool
add_piece(struct task_template *t, struct pattern *pattern, struct rec_str text,
          uint32_t parameter, struct rec_error *err)
{
    if (text.len == 0)
        return true;
    if (!rec_grow(&t->piece, &t->piece_room, t->npiece + 1, sizeof *t->piece, err))
        return false;
    t->piece[t->npiece++] = (struct piece){text, parameter};
    pattern->n++;
    return true;
}

/* Adds the {name} with which a text begins, and cuts it off the text. */
static bool
add_parameter(struct task_template *t, struct pattern *pattern, struct rec_str *text,
              struct rec_error *err)
{
    const char *end = memchr(text->ptr, '}', text->len);
    struct rec_str name = {text->ptr + 1, end ? (size_t)(end - text->ptr) - 1 : 0};
    uint32_t parameter;
    char names[300] = "";

    if (!end)
        return fail_at(t, pattern->line, err,
                       "a { is not closed by a }: write {{ for { itself, got '%.60s'",
                       text->ptr);
    parameter = rec_map_get(&t->names, name);
    if (parameter == REC_NONE) {
        const struct part *part = &t->part[t->npart];
        for (size_t i = 0; i < part->nparameters; i++)
            rec_list_name(names, sizeof names,
                          t->parameter[part->first_parameter + i].name);
        return fail_at(
            t, pattern->line, err,
            "{%.*s} is not a parameter of this template (parameters: %s); write {{ for "
            "{ itself",
            REC_SAID(name), *names ? names : "none");
    }
    text->ptr += name.len + 2;
    text->len -= name.len + 2;
    return add_piece(t, pattern, name, parameter, err);
}

/* Appends a text to a pattern, the last one that was begun. */
static bool
compile(struct task_template *t, struct pattern *pattern, struct rec_str text,
        struct rec_error *err)
{
    while (text.len > 0) {
        size_t n = 0;
        while (n < text.len && text.ptr[n] != '{' && text.ptr[n] != '}')
            n++;
        if (n + 1 < text.len && text.ptr[n] == text.ptr[n + 1]) { /* {{ or }} */
            if (!add_piece(t, pattern, (struct rec_str){text.ptr, n + 1}, REC_NONE, err))
                return false;
            n += 2;
        } else if (!add_piece(t, pattern, (struct rec_str){text.ptr, n}, REC_NONE, err))
            return false;
        else if (n < text.len && text.ptr[n] == '}')
            return fail_at(t, pattern->line, err,
                           "a } has no { in front of it: write }} for } itself");
        text.ptr += n;
        text.len -= n;
        if (text.len > 0 && n == 0 && !add_parameter(t, pattern, &text, err))
            return false;
    }
    return true;
}

static struct pattern
begin_pattern(const struct task_template *t, uint64_t line)
{
    return (struct pattern){t->npiece, 0, line};
}

/* A block of YAML ends in a newline that nobody means. */
static struct rec_str
text_of(const struct yaml_value *value)
{
    struct rec_str text = rec_str(value->text);
    while (!value->plain && text.len > 0 && text.ptr[text.len - 1] == '\n')
        text.len--;
    return text;
}

static bool
take_pattern(struct task_template *t, const struct yaml_value *value, void *to,
             struct rec_error *err)
{
    struct pattern *pattern = to;
    if (!need(t, value, YAML_TEXT, value->key ? value->key : "each item of the list",
              err))
        return false;
    *pattern = begin_pattern(t, value->line);
    return compile(t, pattern, text_of(value), err);
}

static bool
push_pattern(struct task_template *t, struct patterns *list, struct pattern pattern,
             struct rec_error *err)
{
    if (!rec_grow(&t->pattern, &t->pattern_room, t->npattern + 1, sizeof *t->pattern,
                  err))
        return false;
    if (list->n == 0)
        list->first = t->npattern;
    t->pattern[t->npattern++] = pattern;
    list->n++;
    return true;
}

/* Adds a text, or a list of texts, as patterns, each with `front` before it. */
static bool
add_patterns(struct task_template *t, const struct yaml_value *value,
             struct patterns *list, const char *front, struct rec_error *err)
{
    if (value->kind == YAML_MAP)
        return need(t, value, YAML_LIST, value->key, err);
    for (const struct yaml_value *item = value->kind == YAML_LIST ? value->item : value;
         item; item = value->kind == YAML_LIST ? item->next : NULL) {
        struct pattern pattern = begin_pattern(t, item->line);
        if (!need(t, item, YAML_TEXT, "each item of the list", err) ||
            !compile(t, &pattern, rec_str(front), err) ||
            !compile(t, &pattern, text_of(item), err) ||
            !push_pattern(t, list, pattern, err))
            return false;
    }
    return true;
}

static bool
take_patterns(struct task_template *t, const struct yaml_value *value, void *to,
              struct rec_error *err)
{
    return add_patterns(t, value, to, "", err);
}

/* ---- what a task reads and writes ---------------------------------------- */

static bool
take_keys(struct task_template *t, const struct yaml_value *value, void *to,
          struct rec_error *err)
{
    return add_patterns(t, value, to, "@", err);
}

static const struct field object_fields[] = {
    {"files", take_patterns, 0}, {"keys", take_keys, 0}, {NULL, NULL, 0}};

static bool
take_objects(struct task_template *t, const struct yaml_value *value, void *to,
             struct rec_error *err)
{
    if (value->kind == YAML_MAP)
        return take_fields(t, value, value->key, object_fields, to, err);
    return add_patterns(t, value, to, "", err);
}

/* ---- executables --------------------------------------------------------- */

static bool
take_env(struct task_template *t, const struct yaml_value *value, void *to,
         struct rec_error *err)
{
    if (!need(t, value, YAML_MAP, value->key, err))
        return false;
    for (const struct yaml_value *item = value->item; item; item = item->next) {
        struct pattern pattern = begin_pattern(t, item->line);
        if (!need(t, item, YAML_TEXT, item->key, err))
            return false;
        if (*item->key == '\0' || strchr(item->key, '='))
            return fail_at(
                t, item->line, err,
                "the name of an environment variable must not be empty or contain '=', "
                "got '%.60s'",
                item->key);
        if (!compile(t, &pattern, rec_str(item->key), err) ||
            !compile(t, &pattern, rec_str("="), err) ||
            !compile(t, &pattern, text_of(item), err) ||
            !push_pattern(t, to, pattern, err))
            return false;
    }
    return true;
}

#define AT(type, member) offsetof(struct type, member)

static const struct field executable_fields[] = {
    {"target", take_pattern, AT(executable, target)},
    {"arguments", take_patterns, AT(executable, arguments)},
    {"cwd", take_pattern, AT(executable, cwd)},
    {"env", take_env, AT(executable, env)},
    {"ranks", take_pattern, AT(executable, ranks)},
    {NULL, NULL, 0}};

/* `to` is the step. */
static bool
take_executables(struct task_template *t, const struct yaml_value *value, void *to,
                 struct rec_error *err)
{
    struct step *step = to;
    if (!need(t, value, YAML_LIST, value->key, err))
        return false;
    step->first = t->nexecutable;
    for (const struct yaml_value *item = value->item; item; item = item->next) {
        struct executable executable = {.line = item->line};
        if (!take_fields(t, item, "an executable", executable_fields, &executable, err))
            return false;
        if (!executable.target.line)
            return fail_at(t, item->line, err, "an executable needs a target");
        if (!rec_grow(&t->executable, &t->executable_room, t->nexecutable + 1,
                      sizeof *t->executable, err))
            return false;
        t->executable[t->nexecutable++] = executable;
        step->n++;
    }
    return true;
}

/* ---- tasks --------------------------------------------------------------- */

static const struct field time_fields[] = {
    {"days", take_pattern, DAYS * sizeof(struct pattern)},
    {"hours", take_pattern, HOURS * sizeof(struct pattern)},
    {"minutes", take_pattern, MINUTES * sizeof(struct pattern)},
    {"seconds", take_pattern, SECONDS * sizeof(struct pattern)},
    {NULL, NULL, 0}};

static bool
take_timeout(struct task_template *t, const struct yaml_value *value, void *to,
             struct rec_error *err)
{
    struct pattern *timeout = to;
    if (value->kind == YAML_TEXT)
        return take_pattern(t, value, &timeout[SECONDS], err);
    return take_fields(t, value, "timeout", time_fields, to, err);
}

static bool
take_type(struct task_template *t, const struct yaml_value *value, void *to,
          struct rec_error *err)
{
    if (!need(t, value, YAML_TEXT, value->key, err))
        return false;
    *(bool *)to = strcmp(value->text, "job") == 0;
    return *(bool *)to || strcmp(value->text, "process") == 0 ||
           fail_at(t, value->line, err,
                   "type must be process, or job (started by mpiexec), got '%.60s'",
                   value->text);
}

/* "parameters" stands beside them where the document is the one task. */
static const struct field step_fields[] = {{"name", take_pattern, AT(step, name)},
                                           {"type", take_type, AT(step, job)},
                                           {"executables", take_executables, 0},
                                           {"reads", take_objects, AT(step, reads)},
                                           {"writes", take_objects, AT(step, writes)},
                                           {"timeout", take_timeout, AT(step, timeout)},
                                           {"cores", take_pattern, AT(step, cores)},
                                           {"memory", take_pattern, AT(step, memory)},
                                           {"cost", take_pattern, AT(step, cost)},
                                           {"retries", take_pattern, AT(step, retries)},
                                           {"ok", take_pattern, AT(step, ok)},
                                           {"stdin", take_pattern, AT(step, input)},
                                           {"stdout", take_pattern, AT(step, output)},
                                           {"stderr", take_pattern, AT(step, error)},
                                           {"parameters", NULL, 0},
                                           {NULL, NULL, 0}};

static bool
add_step(struct task_template *t, const struct yaml_value *map, struct rec_error *err)
{
    struct step step = {.line = map->line};
    if (!take_fields(t, map, "a task", step_fields, &step, err))
        return false;
    if (!step.name.line)
        return fail_at(t, map->line, err, "a task needs a name");
    if (step.n == 0)
        return fail_at(t, map->line, err,
                       "a task needs at least one executable (executables: ...)");
    if (!step.job && step.n > 1)
        return fail_at(
            t, map->line, err,
            "a process must have exactly one executable; a job (type: job) may have "
            "several");
    for (size_t i = 0; !step.job && i < step.n; i++)
        if (t->executable[step.first + i].ranks.line)
            return fail_at(
                t, t->executable[step.first + i].ranks.line, err,
                "a process has no ranks: add type: job, or give cores instead");
    if (!rec_grow(&t->step, &t->step_room, t->nstep + 1, sizeof *t->step, err))
        return false;
    t->step[t->nstep++] = step;
    t->part[t->npart].n++;
    return true;
}

/* ---- parameters ---------------------------------------------------------- */

static bool
is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    const char *end = text + strspn(text, letters);
    while (end > text && *end && (strchr(letters, *end) || strchr("-0123456789", *end)))
        end++;
    return end > text && !*end;
}

static struct parameter *
add_parameter_name(struct task_template *t, const char *name, uint64_t line,
                   struct rec_error *err)
{
    if (!is_name(name)) {
        fail_at(t, line, err,
                "a parameter's name is a letter, then letters, digits, _ and -, got "
                "'%.60s'",
                name);
        return NULL;
    }
    if (rec_map_get(&t->names, rec_str(name)) != REC_NONE) {
        fail_at(t, line, err, "parameter '%.60s' comes twice", name);
        return NULL;
    }
    if (!rec_grow(&t->parameter, &t->parameter_room, t->nparameter + 1,
                  sizeof *t->parameter, err) ||
        !rec_map_add(&t->names, rec_str(name), (uint32_t)t->nparameter, err))
        return NULL;
    t->parameter[t->nparameter] =
        (struct parameter){.name = name, .line = line, .column = REC_NONE};
    t->part[t->npart].nparameters++;
    return &t->parameter[t->nparameter++];
}

static bool
add_own_value(struct task_template *t, struct parameter *parameter,
              const struct yaml_value *value, struct rec_error *err)
{
    return need(t, value, YAML_TEXT, "each value of a parameter", err) &&
           (template_add_value(t, parameter, text_of(value), value->plain, err) ||
            (err->code == REC_USAGE && fail_at(t, value->line, err, "%s", err->text)));
}

/* name: (to be given), name: value, or name: [value, ...] */
static bool
read_parameter(struct task_template *t, const struct yaml_value *value,
               struct rec_error *err)
{
    struct parameter *parameter = add_parameter_name(t, value->key, value->line, err);
    if (!parameter)
        return false;
    if (value->kind == YAML_TEXT)
        return (value->plain && *value->text == '\0') ||
               add_own_value(t, parameter, value, err);
    if (!need(t, value, YAML_LIST, value->key, err))
        return false;
    if (!value->item)
        return fail_at(
            t, value->line, err,
            "the list of values is empty: leave it out if the values are given later");
    for (const struct yaml_value *item = value->item; item; item = item->next)
        if (!add_own_value(t, parameter, item, err))
            return false;
    return true;
}

static bool
read_parameters(struct task_template *t, const struct yaml_value *value,
                struct rec_error *err)
{
    if (value->kind == YAML_TEXT)
        return (value->plain && *value->text == '\0') ||
               fail_at(t, value->line, err,
                       "parameters must be a list of names, or a map of names and "
                       "values");
    for (const struct yaml_value *item = value->item; item; item = item->next)
        if (value->kind == YAML_MAP
                ? !read_parameter(t, item, err)
                : !need(t, item, YAML_TEXT, "the name of a parameter", err) ||
                      !add_parameter_name(t, item->text, item->line, err))
            return false;
    return true;
}

/* ---- documents ----------------------------------------------------------- */

static const struct yaml_value *
member(const struct yaml_value *map, const char *name)
{
    const struct yaml_value *value = map->item;
    while (value && strcmp(value->key, name) != 0)
        value = value->next;
    return value;
}

static bool
take_tasks(struct task_template *t, const struct yaml_value *value, void *to,
           struct rec_error *err)
{
    (void)to;
    if (!need(t, value, YAML_LIST, value->key, err))
        return false;
    for (const struct yaml_value *item = value->item; item; item = item->next) {
        const struct yaml_value *inner =
            item->kind == YAML_MAP ? member(item, "parameters") : NULL;
        if (inner)
            return fail_at(t, inner->line, err,
                           "parameters belong to the template, not to one of its tasks");
        if (!add_step(t, item, err))
            return false;
    }
    return value->item || fail_at(t, value->line, err, "there are no tasks");
}

static const struct field document_fields[] = {
    {"parameters", NULL, 0}, {"tasks", take_tasks, 0}, {NULL, NULL, 0}};

static bool
read_document(struct task_template *t, const struct yaml_value *value,
              struct rec_error *err)
{
    const struct yaml_value *parameters;
    if (!need(t, value, YAML_MAP, "a template (parameters: ..., tasks: ...)", err) ||
        !rec_grow(&t->part, &t->part_room, t->npart + 1, sizeof *t->part, err))
        return false;
    t->part[t->npart] = (struct part){t->nstep, 0, t->nparameter, 0, false};
    rec_map_clear(&t->names);
    parameters = member(value, "parameters");
    if (parameters && !read_parameters(t, parameters, err))
        return false;
    if (member(value, "tasks")
            ? !take_fields(t, value, "a template of tasks", document_fields, t, err)
            : !add_step(t, value, err))
        return false;
    t->npart++;
    return true;
}

struct task_template *
task_template_read(struct rec_reader *reader, struct rec_error *err)
{
    struct task_template *t = calloc(1, sizeof *t);
    const struct yaml_value *document;
    int status = -1;

    if (!t)
        rec_fail_memory(err);
    else if ((t->file =
                  rec_arena_copy(&t->arena, rec_str(rec_reader_file(reader)), err)) &&
             (t->source = yaml_source_new(reader, err)))
        while ((status = yaml_source_next(t->source, &document, err)) > 0)
            if (!read_document(t, document, err)) {
                status = -1;
                break;
            }
    if (status == 0 && t->npart > 0)
        return t;
    if (status == 0)
        rec_fail_at(err, t->file, 1,
                    "the file has no template (parameters: ..., tasks: ...)");
    task_template_free(t);
    return NULL;
}
