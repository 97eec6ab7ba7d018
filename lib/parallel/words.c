/* Reads scripts and files of arguments. See rampipe/parallel_words.h. */
#include "words_shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys -------------------------------------------------------------------- */

struct parallel_arg *
parallel_words_arg(const struct parallel_words *args, const char *key)
{
    for (size_t i = 0; i < args->n; i++)
        if (strcmp(args->arg[i].key, key) == 0)
            return &args->arg[i];
    return NULL;
}

const char *
parallel_words_find(const struct parallel_words *args, const char *key)
{
    const struct parallel_arg *a = parallel_words_arg(args, key);
    return a ? a->value : NULL;
}

bool
parallel_words_set(struct parallel_words *args, const char *key, const char *value,
                   struct rec_error *err)
{
    struct parallel_arg *a = parallel_words_arg(args, key);
    char both[80];
    if (a && strcmp(key, "overlap") == 0) {
        if (strstr(a->value, value))
            return true;
        snprintf(both, sizeof both, "%s,%s", a->value, value);
        value = both;
    }
    if (!a) {
        if (!rec_grow(&args->arg, &args->room, args->n + 1, sizeof *args->arg, err))
            return false;
        a = &args->arg[args->n++];
        a->key = key;
    }
    a->value = rec_arena_copy(&args->arena, rec_str(value), err);
    return a->value != NULL;
}

bool
parallel_words_ignore(struct parallel_words *args, const char *word,
                      struct rec_error *err)
{
    size_t have = args->unused ? strlen(args->unused) : 0;
    if (!rec_grow(&args->unused, &args->unused_room, have + strlen(word) + 3, 1, err))
        return false;
    sprintf(args->unused + have, "%s%s", have ? ", " : "", word);
    return true;
}

/* Nodes that are said behind the number of all devices count: what is said last does. */
static bool
count_devices(struct parallel_shell *r, const char *key)
{
    const char *nodes = parallel_words_find(r->args, ".nodes");
    const char *each = parallel_words_find(r->args, ".each");
    char text[32];
    if (!nodes || !each || !parallel_words_find(r->args, "gpus") ||
        (strcmp(key, ".nodes") != 0 && strcmp(key, ".each") != 0) ||
        nodes[strspn(nodes, "0123456789")] || each[strspn(each, "0123456789")])
        return true; /* 1:4 nodes, or devices "auto", say no number */
    snprintf(text, sizeof text, "%.0f", strtod(nodes, NULL) * strtod(each, NULL));
    return parallel_words_set(r->args, "gpus", text, r->err);
}

static bool
set(struct parallel_shell *r, const char *key, const char *value)
{
    const char *is = parallel_words_find(r->args, key);
    bool same = is && (strcmp(key, "overlap") == 0 ? strstr(is, value) != NULL
                                                   : strcmp(is, value) == 0);
    if (parallel_shell_perhaps(r) && !same)
        return rec_fail(r->err, REC_DATA,
                        "%s depends on a condition, which is not known without running "
                        "the script",
                        r->said);
    return parallel_words_set(r->args, key, value, r->err) && count_devices(r, key);
}

static bool
ignore(struct parallel_shell *r, const char *word)
{
    return parallel_words_ignore(r->args, word, r->err);
}

static bool
is_one_of(const char *value, const char *const *words)
{
    while (*words && strcmp(value, *words) != 0)
        words++;
    return *words != NULL;
}

/* 1 or 0; what is said last counts, so that 0 is kept, too. */
static bool
take_truth(struct parallel_shell *r, const struct parallel_arg_row *row,
           const char *value)
{
    static const char *const yes[] = {"1",   "True", "true", "TRUE", "Yes", "yes",
                                      "YES", "on",   "On",   "ON",   NULL};
    static const char *const no[] = {"",   "0",  "False", "false", "FALSE", "No",
                                     "no", "NO", "off",   "Off",   "OFF",   NULL};
    if (is_one_of(value, yes))
        return set(r, row->key, "1");
    return is_one_of(value, no)
               ? set(r, row->key, "0")
               : rec_fail(r->err, REC_DATA, "%s must be True or False, got '%.40s'",
                          r->said, value);
}

/* What text says of a value, as full=full selective=selective. */
static bool
map(const char *text, const char *value, char *to, size_t size)
{
    size_t n = strlen(value);
    for (const char *at = text; at && *at;) {
        const char *end = strchr(at, ' ');
        size_t length = end ? (size_t)(end - at) : strlen(at);
        if (length > n && strncmp(at, value, n) == 0 && at[n] == '=') {
            snprintf(to, size, "%.*s", (int)(length - n - 1), at + n + 1);
            return true;
        }
        at = end ? end + 1 : NULL;
    }
    return false;
}

static bool
take(struct parallel_shell *r, const struct parallel_arg_row *row, const char *said,
     const char *value)
{
    char to[40];
    r->said = said;
    switch (row->how) {
    case PARALLEL_ARG_FLAG: return set(r, row->key, row->text);
    case PARALLEL_ARG_TRUE: return take_truth(r, row, value);
    case PARALLEL_ARG_MAP:
        return map(row->text, value, to, sizeof to)
                   ? set(r, row->key, to)
                   : rec_fail(r->err, REC_DATA, "%s %.40s is not modelled; what is: %s",
                              said, value, row->text);
    case PARALLEL_ARG_REFUSE:
        return rec_fail(r->err, REC_DATA, "%s is not modelled", said);
    default:
        if (strcmp(value, "null") == 0 || strcmp(value, "None") == 0 ||
            (strcmp(row->key, "vp") == 0 && strcmp(value, "0") == 0))
            return true;
        return *value ? set(r, row->key, value)
                      : rec_fail(r->err, REC_DATA, "%s has no value", said);
    }
}

/* ---- arguments and variables --------------------------------------------------- */

static const struct parallel_arg_row *
find_row(const struct parallel_arg_row *rows, const char *word, size_t n)
{
    for (; rows->word; rows++) {
        size_t i = 0;
        while (i < n &&
               (word[i] == '_' && rows->word[i] == '-' ? '-' : word[i]) == rows->word[i])
            i++;
        if (i == n && rows->word[n] == '\0')
            return rows;
    }
    return NULL;
}

static bool
has_value(const struct parallel_arg_row *row)
{
    return row->how == PARALLEL_ARG_VALUE || row->how == PARALLEL_ARG_MAP;
}

bool
parallel_words_knows(const char *word, bool *valued)
{
    const struct parallel_arg_row *row;
    size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    *valued = false;
    if (n == 0 || !(row = find_row(parallel_arg_rows, word + 2, n)))
        return false;
    *valued = has_value(row) && word[2 + n] != '=';
    return true;
}

static bool read_words(struct parallel_shell *r);

/* A value that has arguments itself, as GPT_ARGS="--num-layers 24 ...". */
static bool
read_inside(struct parallel_shell *r, const char *value)
{
    struct parallel_shell inside = {.args = r->args,
                                    .at = value,
                                    .err = r->err,
                                    .depth = r->depth + 1,
                                    .begins = true,
                                    .branches = parallel_shell_perhaps(r),
                                    .loops = r->loops};
    bool ok = r->depth > 3 ? rec_fail(r->err, REC_DATA, "too many values in values")
                           : read_words(&inside);
    free(inside.word);
    free(inside.variable);
    return ok;
}

/* A variable with a value whose words from `added` on are new. */
static bool
assign(struct parallel_shell *r, const char *name, size_t length, const char *value,
       size_t added, bool unknown)
{
    const struct parallel_arg_row *row = find_row(parallel_variable_rows, name, length);
    struct parallel_variable *is = parallel_shell_variable(r, name, length);
    bool same = is && !is->unknown && strcmp(is->value, value) == 0;
    bool changes = is && r->loops > 0 && !same; /* perhaps once more */
    struct parallel_variable v = {.used = row != NULL || (added > 0 && is->used),
                                  .unknown = unknown || changes ||
                                             (parallel_shell_perhaps(r) && !same)};
    char said[64];
    snprintf(said, sizeof said, "%.*s", (int)length, name);
    if (!(v.name = rec_arena_copy(&r->args->arena, rec_str(said), r->err)) ||
        !(v.value = rec_arena_copy(&r->args->arena, rec_str(value), r->err)) ||
        !rec_grow(&r->variable, &r->room, r->n + 1, sizeof v, r->err))
        return false;
    if (added > 0)
        is->used = true;
    if (strstr(v.value + added, "--")) {
        v.used = true;
        if (!read_inside(r, v.value + added))
            return false;
    }
    r->variable[r->n++] = v;
    if (!row)
        return true;
    return unknown || changes
               ? rec_fail(r->err, REC_DATA,
                          "the value of %s is not known without running the script", said)
               : take(r, row, said, v.value);
}

bool
parallel_shell_assign(struct parallel_shell *r, const char *name, size_t length,
                      const char *value, bool unknown)
{
    return assign(r, name, length, value, 0, unknown);
}

/* NAME+=VALUE. What the script has not set may be set around it. */
static bool
append(struct parallel_shell *r, const char *name, size_t length, const char *value,
       bool unknown)
{
    const struct parallel_variable *is = parallel_shell_variable(r, name, length);
    size_t before = is ? strlen(is->value) : 0;
    char *both = malloc(before + strlen(value) + 1);
    bool ok;
    if (!both)
        return rec_fail_memory(r->err);
    strcpy(both, is ? is->value : "");
    strcpy(both + before, value);
    ok = assign(r, name, length, both, before, unknown || !is || is->unknown);
    free(both);
    return ok;
}

/* Another value comes on the same line of words. */
static bool
goes_on(const struct parallel_shell *r)
{
    const char *at = r->at;
    for (; *at == ' ' || *at == '\t' || strncmp(at, "\\\n", 2) == 0; at++)
        at += *at == '\\';
    return parallel_shell_name(at) > 0;
}

/* --name or --name=value; the next word may be its value. */
static bool
read_argument(struct parallel_shell *r)
{
    size_t n = strcspn(r->word + 2, "=");
    const struct parallel_arg_row *row = find_row(parallel_arg_rows, r->word + 2, n);
    bool joined = r->word[2 + n] == '=', ok = true;
    char said[100];
    const struct parallel_shell was = *r;
    snprintf(said, sizeof said, "--%.*s", (int)n, r->word + 2);
    if (joined) {
        memmove(r->word, r->word + 3 + n, strlen(r->word + 3 + n) + 1);
    } else if (!row || has_value(row)) {
        ok = parallel_shell_next(r) >= 0;
        if (ok && !r->unknown &&
            (r->length == 0 || strncmp(r->word, "--", 2) == 0 ||
             parallel_shell_opens(r) != 0 || (!row && r->begins))) {
            r->at = was.at; /* it has no value, or it is not known whether it has */
            r->line = was.line;
            r->groups = was.groups;
            if (r->word)
                r->word[0] = '\0';
        }
        r->begins = false;
    }
    if (!ok)
        return false;
    if (!row)
        return ignore(r, said);
    if (joined && row->how == PARALLEL_ARG_FLAG)
        return rec_fail(r->err, REC_DATA, "%s takes no value", said);
    if (has_value(row) && r->unknown)
        return rec_fail(r->err, REC_DATA,
                        "the value of %s is not known without running the script", said);
    if (row->key && strcmp(row->key, ".cp") == 0 && !joined && goes_on(r))
        return rec_fail(r->err, REC_DATA,
                        "%s with a value for each layer is not modelled", said);
    return take(r, row, said, r->word ? r->word : "");
}

/* A name behind for or select, and those behind read: the script gives them values when
 * it runs. unset takes them. */
enum naming { NAMES_NONE, NAMES_ONE, NAMES_ALL, NAMES_NO_MORE };

static enum naming
names(const char *command)
{
    return strcmp(command, "for") == 0 || strcmp(command, "select") == 0 ? NAMES_ONE
           : strcmp(command, "read") == 0                                ? NAMES_ALL
           : strcmp(command, "unset") == 0                               ? NAMES_NO_MORE
                                                                         : NAMES_NONE;
}

static bool
name_variable(struct parallel_shell *r, enum naming *naming)
{
    struct parallel_variable *v;
    char *name;
    bool ok;
    if (*naming == NAMES_NO_MORE && !parallel_shell_variable(r, r->word, strlen(r->word)))
        return true;
    name = strdup(r->word);
    ok = name ? assign(r, name, strlen(name), "", 0, *naming != NAMES_NO_MORE)
              : rec_fail_memory(r->err);
    free(name);
    v = ok ? &r->variable[r->n - 1] : NULL;
    if (v)
        v->used = true;
    if (*naming == NAMES_ONE)
        *naming = NAMES_NONE;
    return ok;
}

static bool
read_words(struct parallel_shell *r)
{
    enum naming naming = NAMES_NONE;
    int status;
    while ((status = parallel_shell_next(r)) > 0) {
        size_t n = parallel_shell_name(r->word);
        bool ok = true, begins = r->begins;
        parallel_shell_follow(r);
        naming = begins ? names(r->word) : naming;
        if (strncmp(r->word, "--", 2) == 0 && strpbrk(r->word, " \t\n"))
            continue; /* a variable that was read when it was set */
        if (strncmp(r->word, "--", 2) == 0 && r->word[2])
            ok = read_argument(r);
        else if (n > 0 && r->word[n + (r->word[n] == '+')] == '=') {
            char *word = strdup(r->word); /* the value may have words itself */
            bool list = *r->at == '(';    /* whose words come next */
            if (!word)
                return rec_fail_memory(r->err);
            ok = word[n] == '+'
                     ? list || append(r, word, n, word + n + 2, r->unknown)
                     : parallel_shell_assign(r, word, n, word + n + 1, r->unknown);
            if (ok && list && word[n] != '+')
                r->variable[r->n - 1].used = true;
            free(word);
        } else if (naming && !begins && n > 0 && r->word[n] == '\0')
            ok = name_variable(r, &naming);
        else if (strcmp(r->word, "source") == 0 || strcmp(r->word, ".") == 0) {
            char file[120];
            ok = parallel_shell_next(r) >= 0;
            r->begins = false;
            if (ok && r->length > 0)
                parallel_shell_unmark(r);
            snprintf(file, sizeof file, "source %.100s", r->word);
            ok = ok && ignore(r, file);
        }
        if (!ok)
            return false;
    }
    return status == 0;
}

/* ---- the whole -------------------------------------------------------------------- */

static char *
read_all(struct rec_reader *reader, struct rec_error *err)
{
    struct rec_text text;
    struct rec_str line;
    int status;
    char *all;
    if (!rec_text_open(&text, err))
        return NULL;
    while ((status = rec_next_line(reader, &line, err)) > 0)
        fprintf(text.out, "%.*s\n", (int)line.len, line.ptr);
    all = rec_text_close(&text, err);
    if (status == 0)
        return all;
    free(all);
    return NULL;
}

bool
parallel_words_read(struct parallel_words *args, struct rec_reader *reader,
                    struct rec_error *err)
{
    struct parallel_shell r = {.args = args, .err = err, .begins = true};
    char *all = read_all(reader, err);
    bool ok = all != NULL;
    r.at = all;
    ok = ok && read_words(&r);
    for (size_t i = 0; ok && i < r.n; i++)
        ok = r.variable[i].used || ignore(&r, r.variable[i].name);
    free(r.word);
    free(r.variable);
    free(all);
    return ok;
}

void
parallel_words_free(struct parallel_words *args)
{
    free(args->arg);
    free(args->unused);
    rec_arena_free(&args->arena);
    *args = (struct parallel_words){0};
}
