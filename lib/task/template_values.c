/* The values of a template's parameters: from itself, from options, from CSV. */
#include "template.h"

#include "rampipe/csv.h"

#include <stdlib.h>

/* ---- lists --------------------------------------------------------------- */

/* The length of the integer at the beginning of a text; 0: there is none. */
static size_t
integer_length(struct rec_str text)
{
    size_t minus = text.len > 0 && *text.ptr == '-', n = minus;
    while (n < text.len && text.ptr[n] >= '0' && text.ptr[n] <= '9')
        n++;
    return n > minus ? n : 0;
}

/* Reads a range A..B. Returns 1; 0: it is another text; -1: a range that is not valid. */
static int
read_range(struct rec_str text, struct value *value)
{
    size_t first = integer_length(text), last = first + 2;
    struct rec_str end;
    if (first == 0 || last >= text.len || memcmp(text.ptr + first, "..", 2) != 0)
        return 0;
    end = (struct rec_str){text.ptr + last, text.len - last};
    if (integer_length(end) != end.len)
        return 0;
    *value = (struct value){.text = {NULL, 0}, .width = (int)first};
    return rec_parse_uint((struct rec_str){text.ptr, first}, &value->from) &&
                   rec_parse_uint(end, &value->to) && value->from <= value->to &&
                   first < 20
               ? 1
               : -1;
}

bool
template_add_value(struct task_template *t, struct parameter *parameter,
                   struct rec_str text, bool ranges, struct rec_error *err)
{
    struct value value = {.text = text};
    if (ranges && read_range(text, &value) < 0)
        return rec_fail(err, REC_USAGE,
                        "a range A..B must count up, from 0 and below 2^64, got '%.*s'",
                        REC_SAID(text));
    if (!rec_grow(&t->value, &t->value_room, t->nvalue + 1, sizeof *t->value, err))
        return false;
    if (parameter->n == 0)
        parameter->first = t->nvalue;
    t->value[t->nvalue++] = value;
    parameter->n++;
    return true;
}

/* ---- options ------------------------------------------------------------- */

static bool
no_such_parameter(const struct task_template *t, struct rec_str name,
                  struct rec_error *err)
{
    char names[300] = "";
    for (size_t i = 0; i < t->nparameter; i++) {
        bool again = false;
        for (size_t j = 0; j < i && !again; j++)
            again = strcmp(t->parameter[i].name, t->parameter[j].name) == 0;
        if (!again && !rec_list_name(names, sizeof names, t->parameter[i].name))
            break;
    }
    return rec_fail(err, REC_USAGE, "'%.*s' is not a parameter of %s (parameters: %s)",
                    REC_SAID(name), t->file, *names ? names : "none");
}

/* Is it UTF-8 without control characters, except line ends? */
static bool
is_value(struct rec_str text)
{
    struct rec_str line;
    while (rec_str_split(&text, '\n', &line))
        if (!rec_is_text(line))
            return false;
    return true;
}

/* Adds one value of an option's list, without its escapes. A value with escapes is never
 * a range. */
static bool
add_escaped(struct task_template *t, struct parameter *parameter, struct rec_str part,
            struct rec_error *err)
{
    char *text;
    const char *kept = NULL;
    if (!task_is_escaped(part))
        return rec_fail(err, REC_USAGE,
                        "a %% must begin an escape such as %%2C, got '%.*s'",
                        REC_SAID(part));
    if (!(text = malloc(part.len + 1)))
        return rec_fail_memory(err);
    task_unescape(text, part);
    if (!is_value(rec_str(text)))
        rec_fail(err, REC_USAGE, "a value must be UTF-8 without control characters");
    else
        kept = rec_arena_copy(&t->arena, rec_str(text), err);
    free(text);
    return kept &&
           template_add_value(t, parameter, rec_str(kept), strlen(kept) == part.len, err);
}

bool
task_template_set(struct task_template *t, struct rec_str name, struct rec_str values,
                  struct rec_error *err)
{
    struct parameter given = {.column = REC_NONE};
    struct rec_str part;
    bool found = false;

    for (size_t i = 0; i < t->nparameter; i++) {
        struct parameter *parameter = &t->parameter[i];
        if (!rec_str_is(name, parameter->name))
            continue;
        if (parameter->given)
            return rec_fail(err, REC_USAGE, "'%s' is given twice", parameter->name);
        while (!found && rec_str_split(&values, ',', &part))
            if (!add_escaped(t, &given, part, err))
                return false;
        parameter->first = given.first;
        parameter->n = given.n;
        parameter->given = found = true;
    }
    return found || no_such_parameter(t, name, err);
}

/* ---- rows ---------------------------------------------------------------- */

static bool
fail_row(const struct rec_reader *reader, const struct csv_row *row,
         struct rec_error *err, const char *text)
{
    return rec_fail_at(err, rec_reader_file(reader), row->line, "%s", text);
}

/* Takes the first row: the names of the parameters to which the columns belong. */
static bool
read_names(struct task_template *t, const struct rec_reader *reader,
           const struct csv_row *row, struct rec_error *err)
{
    char text[sizeof err->text];
    for (size_t i = 0; i < row->nfields; i++) {
        bool found = false;
        for (size_t k = 0; k < t->nparameter; k++) {
            struct parameter *parameter = &t->parameter[k];
            if (!rec_str_is(row->field[i], parameter->name))
                continue;
            if (parameter->given) {
                snprintf(text, sizeof text, "'%.60s' is given twice", parameter->name);
                return fail_row(reader, row, err, text);
            }
            parameter->given = found = true;
            parameter->column = (uint32_t)i;
        }
        if (!found) {
            bool known = no_such_parameter(t, row->field[i], err);
            snprintf(text, sizeof text, "%.900s", err->text);
            return known || fail_row(reader, row, err, text);
        }
    }
    for (size_t k = 0; k < t->npart; k++)
        for (size_t i = 0; i < t->part[k].nparameters; i++)
            if (t->parameter[t->part[k].first_parameter + i].column != REC_NONE)
                t->part[k].columns = true;
    t->ncolumns = row->nfields;
    return true;
}

static bool
read_cells(struct task_template *t, const struct rec_reader *reader,
           const struct csv_row *row, struct rec_error *err)
{
    char text[100];
    if (row->nfields != t->ncolumns) {
        snprintf(text, sizeof text,
                 "a row must have %zu fields, as the first one, got %zu", t->ncolumns,
                 row->nfields);
        return fail_row(reader, row, err, text);
    }
    if (!rec_grow(&t->cell, &t->cell_room, t->ncells + row->nfields, sizeof *t->cell,
                  err))
        return false;
    for (size_t i = 0; i < row->nfields; i++) {
        if (!is_value(row->field[i]))
            return fail_row(reader, row, err,
                            "a value must be UTF-8 without control characters");
        if (!(t->cell[t->ncells] = rec_arena_copy(&t->arena, row->field[i], err)))
            return false;
        t->ncells++;
    }
    t->nrows++;
    return true;
}

bool
task_template_rows(struct task_template *t, struct rec_reader *reader,
                   struct rec_error *err)
{
    struct csv_source *source = csv_source_new(reader, err);
    struct csv_row row;
    int status = -1;
    bool ok = source != NULL;

    if (ok && (status = csv_source_next(source, &row, err)) == 0)
        ok = rec_reader_fail(reader, err,
                             "the first row must have the names of parameters");
    for (ok = ok && status > 0 && read_names(t, reader, &row, err); ok;
         ok = read_cells(t, reader, &row, err))
        if ((status = csv_source_next(source, &row, err)) <= 0)
            break;
    csv_source_free(source);
    return ok && status == 0;
}

/* ---- how many ------------------------------------------------------------ */

static double
count_values(const struct task_template *t, const struct parameter *parameter)
{
    double n = 0;
    if (parameter->column != REC_NONE)
        return 1;
    for (size_t i = 0; i < parameter->n; i++) {
        const struct value *value = &t->value[parameter->first + i];
        n += value->text.ptr ? 1 : (double)(value->to - value->from) + 1;
    }
    return n;
}

bool
task_template_count(const struct task_template *t, double *tasks, struct rec_error *err)
{
    *tasks = 0;
    for (size_t k = 0; k < t->npart; k++) {
        const struct part *part = &t->part[k];
        double n = (double)part->n * (part->columns ? (double)t->nrows : 1);
        for (size_t i = 0; i < part->nparameters; i++) {
            const struct parameter *parameter = &t->parameter[part->first_parameter + i];
            double values = count_values(t, parameter);
            if (values == 0)
                return rec_fail(
                    err, REC_USAGE, "parameter '%s' (%s:%llu) has no value: give it one",
                    parameter->name, t->file, (unsigned long long)parameter->line);
            n *= values;
        }
        *tasks += n;
    }
    return true;
}
