/* Reads scripts and files of arguments. See rampipe/parallel_words.h. */
#include "words.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A variable that the text has set. */
struct variable {
    const char *name, *value;
    bool used;    /* it gave a key, or stands in another value */
    bool unknown; /* its value is not known without running something */
};

struct reading {
    struct parallel_words *args;
    const char *at; /* what is left of the text */
    struct rec_error *err;
    struct variable *variable; /* owned */
    size_t n, room;
    char *word; /* owned */
    size_t length, size;
    bool unknown; /* of the word: it has something that is not known here */
    int depth;    /* of values that have words themselves */
    int branches; /* of if and case that are open */
    int groups;   /* of { and ( that are open and perhaps run */
    bool begins;  /* the next word is that of a command */
    /* a test stands in it; behind ||, until && without a test; behind a test and && */
    enum { ALWAYS, TESTED, OTHERWISE, PERHAPS } line;
    const char *end;  /* of the document that is read; or NULL */
    int outside;      /* the branches that are open around it */
    const char *said; /* the word that is taken */
};

/* Does it depend on the run whether what is read now counts? */
static bool
perhaps(const struct reading *r)
{
    return r->branches > 0 || r->groups > 0 || r->line >= OTHERWISE;
}

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
count_devices(struct reading *r, const char *key)
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
set(struct reading *r, const char *key, const char *value)
{
    const char *is = parallel_words_find(r->args, key);
    bool same = is && (strcmp(key, "overlap") == 0 ? strstr(is, value) != NULL
                                                   : strcmp(is, value) == 0);
    if (perhaps(r) && !same)
        return rec_fail(r->err, REC_DATA,
                        "%s depends on a condition, which is not known without running "
                        "the script",
                        r->said);
    return parallel_words_set(r->args, key, value, r->err) && count_devices(r, key);
}

static bool
ignore(struct reading *r, const char *word)
{
    return parallel_words_ignore(r->args, word, r->err);
}

static bool
is_true(const char *value)
{
    static const char *const yes[] = {"1", "True", "true", "TRUE", "yes", "on"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (strcmp(value, yes[i]) == 0)
            return true;
    return false;
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
take(struct reading *r, const struct parallel_arg_row *row, const char *said,
     const char *value)
{
    char to[40];
    r->said = said;
    switch (row->how) {
    case PARALLEL_ARG_FLAG: return set(r, row->key, row->text);
    case PARALLEL_ARG_TRUE: return !is_true(value) || set(r, row->key, row->text);
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

/* ---- words ------------------------------------------------------------------- */

static bool
put(struct reading *r, const char *text, size_t n)
{
    if (!rec_grow(&r->word, &r->size, r->length + n + 1, 1, r->err))
        return false;
    memcpy(r->word + r->length, text, n);
    r->length += n;
    r->word[r->length] = '\0';
    return true;
}

static struct variable *
look_up(const struct reading *r, const char *name, size_t n)
{
    for (size_t i = r->n; i-- > 0;)
        if (strlen(r->variable[i].name) == n &&
            strncmp(r->variable[i].name, name, n) == 0)
            return &r->variable[i];
    return NULL;
}

static size_t
name_length(const char *text)
{
    size_t n = 0;
    while (isalpha((unsigned char)text[n]) || text[n] == '_' ||
           (n > 0 && isdigit((unsigned char)text[n])))
        n++;
    return n;
}

static bool assign(struct reading *r, const char *name, size_t length, const char *value,
                   bool unknown);

/* Behind ${NAME: a value for a variable that has none, which ends at }. */
static bool
expand_else(struct reading *r, const char *name, size_t n, const struct variable *v)
{
    const char *end = r->at;
    bool sets = false;
    for (int depth = 1; *end && (depth += (*end == '{') - (*end == '}')) > 0;)
        end++;
    if (*r->at == ':')
        r->at++;
    if (*r->at == '-' || *r->at == '=') {
        char value[200];
        sets = *r->at == '=';
        snprintf(value, sizeof value, "%.*s", (int)(end - r->at - 1), r->at + 1);
        if (!v || !*v->value) {
            r->unknown = r->unknown || strchr(value, '$');
            if (!put(r, value, strlen(value)) ||
                (sets && !assign(r, name, n, value, strchr(value, '$') != NULL)))
                return false;
        }
    } else
        r->unknown = true; /* a part of its value, or an entry of a list */
    r->at = *end ? end + 1 : end;
    return true;
}

/* Whole numbers, names, + - * / and parentheses, up to what ends them. NAN: something
 * else. */
static double
calculate(struct reading *r, const char **at, int level)
{
    double value = NAN;
    size_t n;
    *at += strspn(*at, " \t\n${}");
    if (level > 60) /* sums, products and single ones in turn */
        return value;
    if (level % 3 < 2) {
        const char *marks = level % 3 == 0 ? "+-" : "*/";
        value = calculate(r, at, level + 1);
        while (**at && strchr(marks, **at)) {
            char mark = *(*at)++;
            double other = calculate(r, at, level + 1);
            value = mark == '+'   ? value + other
                    : mark == '-' ? value - other
                    : mark == '*' ? value * other
                                  : trunc(value / other);
        }
        return value;
    }
    n = name_length(*at);
    if (**at == '(') {
        ++*at;
        value = calculate(r, at, level + 1);
        *at += **at == ')';
    } else if (n > 0) {
        struct variable *v = look_up(r, *at, n);
        char *end = NULL;
        if (v && !v->unknown && *v->value)
            value = strtod(v->value, &end);
        if (v)
            v->used = true;
        if (end && *end)
            value = NAN;
        *at += n;
    } else if (isdigit((unsigned char)**at)) {
        char *end;
        value = strtod(*at, &end);
        *at = end;
    }
    *at += strspn(*at, " \t\n}");
    return value;
}

/* $((...)). False: it is something else, or not known. */
static bool
arithmetic(struct reading *r, double *value)
{
    const char *at = r->at + 2;
    if (strncmp(r->at, "((", 2) != 0)
        return false;
    *value = calculate(r, &at, 0);
    if (strncmp(at, "))", 2) != 0 || !(fabs(*value) < 1e15))
        return false;
    r->at = at + 2;
    return true;
}

/* Behind a dollar. */
static bool
expand(struct reading *r)
{
    bool braces = *r->at == '{';
    const char *name = r->at + braces;
    size_t n = name_length(name);
    struct variable *v;
    if (*r->at == '(') { /* a command, or arithmetic */
        char text[32];
        double value;
        int depth = 0;
        if (arithmetic(r, &value)) {
            snprintf(text, sizeof text, "%.0f", value);
            return put(r, text, strlen(text));
        }
        for (; *r->at; r->at++) {
            depth += (*r->at == '(') - (*r->at == ')');
            if (depth == 0)
                break;
        }
        r->at += *r->at != '\0';
        r->unknown = true;
        return true;
    }
    if (n == 0) {
        r->unknown = true;
        return true;
    }
    v = look_up(r, name, n);
    r->at = name + n;
    if (braces && *r->at != '}') {
        if (v && *v->value && *r->at != '[' && !put(r, v->value, strlen(v->value)))
            return false;
        r->unknown = r->unknown || (v && v->unknown);
        if (v)
            v->used = true;
        return expand_else(r, name, n, v);
    }
    r->at += braces;
    r->unknown = r->unknown || !v || v->unknown;
    if (v)
        v->used = true;
    return !v || put(r, v->value, strlen(v->value));
}

/* Stands in a text of several words where something is not known: only the word that it
 * is in is not known then. */
static const char UNKNOWN = '\1';

static bool
expand_marked(struct reading *r)
{
    bool before = r->unknown, ok;
    size_t at = r->length;
    r->unknown = false;
    ok = expand(r);
    if (ok && r->unknown && (r->length == at || !strchr(r->word + at, UNKNOWN)))
        ok = put(r, &UNKNOWN, 1);
    r->unknown = r->unknown || before;
    return ok;
}

static void
unmark(struct reading *r)
{
    char *to = r->word;
    for (const char *from = r->word; *from; from++)
        if (*from != UNKNOWN)
            *to++ = *from;
    *to = '\0';
    r->length = (size_t)(to - r->word);
}

static bool
separates(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';' || c == '(' ||
           c == ')' || c == '&' || c == '|';
}

/* What stands between words at *r->at. Behind a test and &&, and behind ||, commands are
 * perhaps run, and so is a group in parentheses there. */
static void
separate(struct reading *r, bool *joins)
{
    char c = *r->at++;
    bool twice = (c == '&' || c == '|') && *r->at == c;
    if ((c == '\n' && !*joins) || c == ';')
        r->line = ALWAYS;
    else if (twice && c == '|')
        r->line = OTHERWISE;
    else if (twice && r->line != PERHAPS)
        r->line = r->line == TESTED ? PERHAPS : ALWAYS;
    else if (c == '(' && *r->at == '(' && r->begins && r->line == ALWAYS)
        r->line = TESTED;
    if (c == '(' && r->branches == 0 && perhaps(r))
        r->groups++;
    else if (c == ')' && r->branches == 0 && r->groups > 0)
        r->groups--;
    if (c != ' ' && c != '\t' && c != '\r') {
        r->begins = true;
        *joins = twice || (c == '\n' && *joins);
    }
    r->at += twice;
}

/* Goes to the next word. */
static void
skip(struct reading *r)
{
    bool joins = false; /* a line that ends in && or || goes on */
    for (;;) {
        if (r->at[0] == '\\' && r->at[1] == '\n')
            r->at += 2;
        else if (separates(*r->at))
            separate(r, &joins);
        else if (*r->at == '#')
            r->at += strcspn(r->at, "\n");
        else
            return;
    }
}

/* Behind <<: notes where the document ends that begins on the next line. The branches in
 * it, which may be another language's, end with it. */
static void
find_end(struct reading *r)
{
    const char *word = r->at + strspn(r->at, "<-"), *line;
    size_t n;
    word += strspn(word, " \t\"'\\");
    n = strcspn(word, " \t\r\n\"';&|()<>");
    for (line = strchr(word, '\n'); n > 0 && line; line = strchr(line, '\n')) {
        line += 1 + strspn(line + 1, "\t");
        if (strncmp(line, word, n) == 0 &&
            strspn(line + n, " \r") == strcspn(line + n, "\n")) {
            r->end = line;
            r->outside = r->branches;
            return;
        }
    }
}

/* 1: r->word is the next word; 0: the end; -1: *err. */
static int
next_word(struct reading *r)
{
    char quote = '\0';
    bool any = false;
    r->length = 0;
    r->unknown = false;
    skip(r);
    while (*r->at && (quote || !separates(*r->at))) {
        char c = *r->at++;
        any = true;
        if (quote == '\'' ? c == '\'' : c == quote && quote)
            quote = '\0';
        else if (!quote && (c == '\'' || c == '"'))
            quote = c;
        else if (c == UNKNOWN)
            r->unknown = true;
        else if (!quote && strncmp(r->at - 1, "<<<", 3) == 0)
            r->at += 2;
        else if (!quote && !r->end && c == '<' && *r->at == '<') {
            find_end(r);
            r->at++;
        } else if (c == '$' && quote != '\'') {
            if (!expand_marked(r))
                return -1;
        } else if (c == '\\' && quote != '\'' && *r->at) {
            if (*r->at != '\n' && !put(r, r->at, 1))
                return -1;
            r->at++;
        } else if (!put(r, &c, 1))
            return -1;
    }
    if (any && !put(r, "", 0))
        return -1;
    if (any && !strpbrk(r->word, " \t\n")) /* it is one word: r->unknown is enough */
        unmark(r);
    return any;
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

static bool read_words(struct reading *r);

/* A value that has arguments itself, as GPT_ARGS="--num-layers 24 ...". */
static bool
read_inside(struct reading *r, const char *value)
{
    struct reading inside = {.args = r->args,
                             .at = value,
                             .err = r->err,
                             .depth = r->depth + 1,
                             .begins = true,
                             .branches = perhaps(r)};
    bool ok = r->depth > 3 ? rec_fail(r->err, REC_DATA, "too many values in values")
                           : read_words(&inside);
    free(inside.word);
    free(inside.variable);
    return ok;
}

static bool
assign(struct reading *r, const char *name, size_t length, const char *value,
       bool unknown)
{
    const struct parallel_arg_row *row = find_row(parallel_variable_rows, name, length);
    const struct variable *is = look_up(r, name, length);
    bool same = is && !is->unknown && strcmp(is->value, value) == 0;
    struct variable v = {.used = row != NULL,
                         .unknown = unknown || (perhaps(r) && !same)};
    char said[64];
    snprintf(said, sizeof said, "%.*s", (int)length, name);
    if (!(v.name = rec_arena_copy(&r->args->arena, rec_str(said), r->err)) ||
        !(v.value = rec_arena_copy(&r->args->arena, rec_str(value), r->err)) ||
        !rec_grow(&r->variable, &r->room, r->n + 1, sizeof v, r->err))
        return false;
    if (strstr(v.value, "--")) {
        v.used = true;
        if (!read_inside(r, v.value))
            return false;
    }
    r->variable[r->n++] = v;
    if (!row)
        return true;
    return unknown
               ? rec_fail(r->err, REC_DATA,
                          "the value of %s is not known without running the script", said)
               : take(r, row, said, v.value);
}

static bool
is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words != NULL;
}

/* 1: the word opens a branch of the script; -1: it closes one. Only where a command may
 * stand: "echo what if" does not. */
static int
opens(const struct reading *r)
{
    static const char *const open[] = {"if", "case", NULL}, *const close[] = {
                                                                "fi", "esac", NULL};
    if (!r->begins || !r->word)
        return 0;
    return is_one_of(r->word, open) ? 1 : is_one_of(r->word, close) ? -1 : 0;
}

/* What the word means for those behind it. */
static void
follow(struct reading *r)
{
    static const char *const tests[] = {"test", "grep", "which", "command", NULL},
                             *const before[] = {"if", "then", "elif",  "else",
                                                "do", "{",    "while", "until",
                                                "!",  "time", NULL};
    int change = opens(r);
    if (r->end && r->at > r->end) {
        r->branches = r->outside;
        r->end = NULL;
    }
    r->branches += change + (r->branches == 0 && change < 0);
    if (r->begins && strcmp(r->word, "{") == 0 && perhaps(r))
        r->groups++;
    if (r->begins && strcmp(r->word, "}") == 0 && r->groups > 0) {
        r->groups--;
        r->line = TESTED;
    }
    if (r->word[0] == ']' || (r->begins && is_one_of(r->word, tests)))
        r->line = r->line == ALWAYS ? TESTED : r->line == OTHERWISE ? PERHAPS : r->line;
    r->begins = r->begins && is_one_of(r->word, before);
}

/* --name or --name=value; the next word may be its value. */
static bool
read_argument(struct reading *r)
{
    size_t n = strcspn(r->word + 2, "=");
    const struct parallel_arg_row *row = find_row(parallel_arg_rows, r->word + 2, n);
    bool joined = r->word[2 + n] == '=', ok = true;
    char said[100];
    const struct reading was = *r;
    snprintf(said, sizeof said, "--%.*s", (int)n, r->word + 2);
    if (joined) {
        memmove(r->word, r->word + 3 + n, strlen(r->word + 3 + n) + 1);
    } else if (!row || has_value(row)) {
        ok = next_word(r) >= 0;
        if (ok && !r->unknown &&
            (r->length == 0 || strncmp(r->word, "--", 2) == 0 || opens(r) != 0 ||
             (!row && r->begins))) {
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
    if (has_value(row) && r->unknown)
        return rec_fail(r->err, REC_DATA,
                        "the value of %s is not known without running the script", said);
    return take(r, row, said, r->word ? r->word : "");
}

static bool
read_words(struct reading *r)
{
    int status;
    while ((status = next_word(r)) > 0) {
        size_t n = name_length(r->word);
        bool ok = true;
        follow(r);
        if (strncmp(r->word, "--", 2) == 0 && strpbrk(r->word, " \t\n"))
            continue; /* a variable that was read when it was set */
        if (strncmp(r->word, "--", 2) == 0 && r->word[2])
            ok = read_argument(r);
        else if (n > 0 && r->word[n] == '=') {
            char *word = strdup(r->word); /* the value may have words itself */
            bool list = *r->at == '(';    /* whose words come next */
            ok = word ? assign(r, word, n, word + n + 1, r->unknown)
                      : rec_fail_memory(r->err);
            if (ok && list)
                r->variable[r->n - 1].used = true;
            free(word);
        } else if (strcmp(r->word, "source") == 0 || strcmp(r->word, ".") == 0) {
            char file[120];
            ok = next_word(r) >= 0;
            r->begins = false;
            if (ok && r->length > 0)
                unmark(r);
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
    struct reading r = {.args = args, .err = err, .begins = true};
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
