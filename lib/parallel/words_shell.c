/* Reads words as a shell does. Nothing is run. See words_shell.h. */
#include "words_shell.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
parallel_shell_perhaps(const struct parallel_shell *r)
{
    return r->branches > 0 || r->groups > 0 || r->line >= OTHERWISE;
}

static bool
put(struct parallel_shell *r, const char *text, size_t n)
{
    if (!rec_grow(&r->word, &r->size, r->length + n + 1, 1, r->err))
        return false;
    memcpy(r->word + r->length, text, n);
    r->length += n;
    r->word[r->length] = '\0';
    return true;
}

struct parallel_variable *
parallel_shell_variable(const struct parallel_shell *r, const char *name, size_t n)
{
    for (size_t i = r->n; i-- > 0;)
        if (strlen(r->variable[i].name) == n &&
            strncmp(r->variable[i].name, name, n) == 0)
            return &r->variable[i];
    return NULL;
}

size_t
parallel_shell_name(const char *text)
{
    size_t n = 0;
    while (isalpha((unsigned char)text[n]) || text[n] == '_' ||
           (n > 0 && isdigit((unsigned char)text[n])))
        n++;
    return n;
}

/* Behind ${NAME: a value for a variable that has none, which ends at }. */
static bool
expand_else(struct parallel_shell *r, const char *name, size_t n,
            const struct parallel_variable *v)
{
    const char *end = r->at;
    bool sets = false;
    for (int depth = 1; *end && (depth += (*end == '{') - (*end == '}')) > 0;)
        end++;
    if (*r->at == ':')
        r->at++;
    if (*r->at == '-' || *r->at == '=') {
        char *value = NULL;
        bool ok = true, open;
        sets = *r->at == '=';
        if (asprintf(&value, "%.*s", (int)(end - r->at - 1), r->at + 1) < 0)
            return rec_fail_memory(r->err);
        open = strchr(value, '$') != NULL;
        if (!v || !*v->value) {
            r->unknown = r->unknown || open;
            ok = put(r, value, strlen(value)) &&
                 (!sets || parallel_shell_assign(r, name, n, value, open));
        }
        free(value);
        if (!ok)
            return false;
    } else
        r->unknown = true; /* a part of its value, or an entry of a list */
    r->at = *end ? end + 1 : end;
    return true;
}

/* Whole numbers, names, + - * / and parentheses, up to what ends them. NAN: something
 * else. */
static double
calculate(struct parallel_shell *r, const char **at, int level)
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
    n = parallel_shell_name(*at);
    if (**at == '(') {
        ++*at;
        value = calculate(r, at, level + 1);
        *at += **at == ')';
    } else if (n > 0) {
        struct parallel_variable *v = parallel_shell_variable(r, *at, n);
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
arithmetic(struct parallel_shell *r, double *value)
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
expand(struct parallel_shell *r)
{
    bool braces = *r->at == '{';
    const char *name = r->at + braces;
    size_t n = parallel_shell_name(name);
    struct parallel_variable *v;
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
    v = parallel_shell_variable(r, name, n);
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
expand_marked(struct parallel_shell *r)
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

void
parallel_shell_unmark(struct parallel_shell *r)
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
separate(struct parallel_shell *r, bool *joins)
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
    if (c == '(' && r->branches == 0 && parallel_shell_perhaps(r))
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
skip(struct parallel_shell *r)
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
find_end(struct parallel_shell *r)
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
int
parallel_shell_next(struct parallel_shell *r)
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
        parallel_shell_unmark(r);
    return any;
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
int
parallel_shell_opens(const struct parallel_shell *r)
{
    static const char *const open[] = {"if", "case", NULL};
    static const char *const close[] = {"fi", "esac", NULL};
    if (!r->begins || !r->word)
        return 0;
    return is_one_of(r->word, open) ? 1 : is_one_of(r->word, close) ? -1 : 0;
}

/* What the word means for those behind it. */
void
parallel_shell_follow(struct parallel_shell *r)
{
    static const char *const tests[] = {"test", "grep", "which", "command", NULL};
    static const char *const before[] = {"if",    "then",  "elif", "else", "do", "{",
                                         "while", "until", "!",    "time", NULL};
    int change = parallel_shell_opens(r);
    if (r->end && r->at > r->end) {
        r->branches = r->outside;
        r->end = NULL;
    }
    r->branches += change + (r->branches == 0 && change < 0);
    if (r->begins && strcmp(r->word, "do") == 0)
        r->loops++;
    else if (r->begins && strcmp(r->word, "done") == 0 && r->loops > 0)
        r->loops--;
    if (r->begins && strcmp(r->word, "{") == 0 && parallel_shell_perhaps(r))
        r->groups++;
    if (r->begins && strcmp(r->word, "}") == 0 && r->groups > 0) {
        r->groups--;
        r->line = TESTED;
    }
    if (r->word[0] == ']' || (r->begins && is_one_of(r->word, tests)))
        r->line = r->line == ALWAYS ? TESTED : r->line == OTHERWISE ? PERHAPS : r->line;
    r->begins = r->begins && is_one_of(r->word, before);
}
