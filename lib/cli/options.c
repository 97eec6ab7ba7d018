/*
 * Explains options that the parser refuses: names the option that a user may have meant,
 * or the tools that have it.
 *
 * What options a tool has is read from its lines of help, which gengetopt makes from the
 * same .ggo as the parser: no second list can be wrong.
 */
#include "private.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

bool cli_option_refused;

/* ---- the nearest name ---------------------------------------------------- */

enum {
    LONGEST_NAME = 40, /* bytes of an option's name */
    MOST_TOOLS = 6     /* tools that a message lists */
};

static size_t
min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The edit distance of Damerau and Levenshtein, restricted so that no part is edited
 * twice: how many letters must be inserted, deleted, replaced or exchanged with their
 * neighbour. Dynamic programming over prefixes of a (rows, of which three are kept) and
 * of b. SIZE_MAX if a name is longer than LONGEST_NAME. */
static size_t
distance(const char *a, const char *b)
{
    size_t row[3][LONGEST_NAME + 1], na = strlen(a), nb = strlen(b);
    if (na > LONGEST_NAME || nb > LONGEST_NAME)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] =
                min(min(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min(now[j], before[j - 2] + 1);
        }
    }
    return row[na % 3][nb];
}

bool
cli_is_nearer(const char *meant, const char *name, size_t *least)
{
    size_t far = distance(meant, name);
    /* One slip in a short name, one more for each four letters. */
    if (far >= *least || far > 1 + strlen(name) / 4)
        return false;
    *least = far;
    return true;
}

/* ---- the options of a tool ----------------------------------------------- */

/* Reads the name of an option from its line of help, "  -o, --output=FILE  ...". *valued:
 * the option takes a value. False: the line does not begin the help of an option. */
static bool
read_option(const char *line, char name[LONGEST_NAME + 1], bool *valued)
{
    size_t indent = strspn(line, " ");
    const char *at =
        indent <= 6 && line[indent] == '-' ? strstr(line + indent, "--") : NULL;
    size_t len = at ? strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;
    if (len == 0 || len > LONGEST_NAME)
        return false;
    memcpy(name, at + 2, len);
    name[len] = '\0';
    *valued = at[2 + len] == '=';
    return true;
}

/* Counts the options of a tool that `given` may stand for: those whose names begin with
 * it, or one if it is a whole name, as getopt_long() does. *valued: the last of them
 * takes a value. Their names are added to `list`, unless it is NULL. */
static size_t
count_options(const struct cli_program *program, const char *given, bool *valued,
              char *list, size_t room)
{
    char option[LONGEST_NAME + 1];
    size_t n = 0;
    for (size_t i = 0; program->options[i]; i++) {
        bool takes;
        if (!read_option(program->options[i], option, &takes) ||
            strncmp(option, given, strlen(given)) != 0)
            continue;
        *valued = takes;
        if (strcmp(option, given) == 0)
            return 1;
        n++;
        if (list)
            rec_list_name(list, room, option);
    }
    return n;
}

/* Is there a short option with this letter, "  -o, --output=FILE"? *valued: it takes a
 * value. */
static bool
has_letter(const struct cli_program *program, int letter, bool *valued)
{
    char start[] = "  -?, --", name[LONGEST_NAME + 1];
    start[3] = (char)letter;
    for (size_t i = 0; program->options[i]; i++)
        if (strncmp(program->options[i], start, strlen(start)) == 0)
            return read_option(program->options[i], name, valued);
    return false;
}

/* Lists the tools and modes that have an option. The list stays empty if more than
 * MOST_TOOLS have it: so long a list helps nobody. */
static void
list_tools_with(const char *option, char *list, size_t room)
{
    size_t n = 0;
    *list = '\0';
    for (const struct cli_tool_option *row = cli_tool_options; row->option; row++)
        if (strcmp(row->option, option) == 0 && ++n <= MOST_TOOLS)
            rec_list_name(list, room, row->tool);
    if (n > MOST_TOOLS)
        *list = '\0';
}

/* Explains an option that the tool does not have: other tools that have it, or else the
 * most similar option of this tool. */
static void
explain_unknown(const char *name, const struct cli_program *program, const char *given)
{
    char option[LONGEST_NAME + 1], nearest[LONGEST_NAME + 1] = "", tools[200];
    size_t least = SIZE_MAX;
    bool valued;
    for (size_t i = 0; program->options[i]; i++)
        if (read_option(program->options[i], option, &valued) &&
            cli_is_nearer(given, option, &least))
            strcpy(nearest, option);
    list_tools_with(given, tools, sizeof tools);
    if (*tools)
        fprintf(stderr, "%s: there is no option --%s here: it belongs to %s\n", name,
                given, tools);
    else if (*nearest)
        fprintf(stderr, "%s: there is no option --%s; is it --%s?\n", name, given,
                nearest);
    else
        fprintf(stderr, "%s: there is no option --%s (--help lists them)\n", name, given);
}

/* Copies the name out of --NAME or --NAME=VALUE. False: the word is neither. */
static bool
cut_name(const char *word, char name[LONGEST_NAME + 1])
{
    size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    if (n > 0)
        snprintf(name, LONGEST_NAME + 1, "%.*s",
                 (int)(n < LONGEST_NAME ? n : LONGEST_NAME), word + 2);
    return n > 0;
}

void
cli_explain_option(const char *name, const struct cli_program *program, const char *word,
                   int letter)
{
    char given[LONGEST_NAME + 1];
    bool valued = false;
    if (cut_name(word, given) && count_options(program, given, &valued, NULL, 0) == 0)
        explain_unknown(name, program, given);
    else if (strncmp(word, "--", 2) == 0)
        fprintf(stderr, "%s: option --%s %s\n", name, given,
                valued ? "needs a value" : "has no value");
    else if (has_letter(program, letter, &valued))
        fprintf(stderr, "%s: option -%c needs a value\n", name, letter);
    else
        fprintf(stderr, "%s: there is no option -%c (--help lists them)\n", name,
                isgraph(letter) ? letter : '?');
}

/* Goes through the command line as getopt_long() will: it must know which words are
 * values of options, so that a value which begins with -- is not taken for an option. */
bool
cli_check_options(const char *name, const struct cli_program *program, int argc,
                  char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *word = argv[i];
        char given[LONGEST_NAME + 1], several[200] = "";
        bool valued = false;
        if (cut_name(word, given)) {
            if (count_options(program, given, &valued, several, sizeof several) > 1) {
                fprintf(stderr, "%s: option --%s may be any of %s\n", name, given,
                        several);
                return false;
            }
            valued = valued && !strchr(word, '=');
        } else if (*word == '-') {
            /* In -qj4 and -qj 4, the value of j is what follows it: in the same word, or,
             * if j is the last letter, the next word. */
            const char *at = word + 1;
            while (*at && !(has_letter(program, *at, &valued) && valued))
                at++;
            valued = *at && !at[1];
        }
        i += valued; /* skip the next word: it is the option's value */
    }
    return true;
}
