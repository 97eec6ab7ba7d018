/* Names of objects in their normal form, and the words of commands. */
#include "rampipe/task.h"

/* The length of `text` without its last component, "a/b/" of "a/b/c/"; it ends in /. */
static size_t
cut_component(const char *text, size_t n)
{
    for (n--; n > 0 && text[n - 1] != '/';)
        n--;
    return n;
}

/* Is there a component in front that a .. can remove? Not the root, nor another .. */
static bool
can_go_back(const char *text, size_t n)
{
    return n > 0 && !(n == 1 && *text == '/') &&
           !(n >= 3 && memcmp(text + n - 3, "../", 3) == 0 &&
             (n == 3 || text[n - 4] == '/'));
}

bool
task_normalise(char *text, struct rec_str name)
{
    struct rec_str rest = name, part;
    bool absolute = name.len > 0 && *name.ptr == '/', below;
    size_t n = 0;

    if (name.len == 0 || name.len > TASK_NAME_MAX || rec_str_is(name, "@"))
        return false;
    if (*name.ptr == '@') {
        memcpy(text, name.ptr, name.len);
        text[name.len] = '\0';
        return true;
    }
    below = name.ptr[name.len - 1] == '/';
    if (absolute)
        text[n++] = '/';
    while (rec_str_split(&rest, '/', &part)) {
        if (part.len == 0 || rec_str_is(part, "."))
            continue;
        if (rec_str_is(part, "..") && can_go_back(text, n)) {
            n = cut_component(text, n);
            continue;
        }
        if (rec_str_is(part, "..") && absolute) /* .. of the root is the root */
            continue;
        memcpy(text + n, part.ptr, part.len);
        n += part.len;
        text[n++] = '/';
    }
    if (n == 0)
        memcpy(text, "./", (n = 2));
    if (!below && n > 1)
        n--;
    text[n] = '\0';
    return true;
}

/* The number of .. at the beginning of a relative name. */
static size_t
levels_up(const char *name)
{
    size_t n = 0;
    while (strncmp(name + 3 * n, "..", 2) == 0 &&
           (name[3 * n + 2] == '/' || name[3 * n + 2] == '\0'))
        if (name[3 * n++ + 2] == '\0')
            break;
    return n;
}

/* Is `b` the object `a`, the folder `a` itself or below it? As in the tree of hazards.h,
 * the folder where the tasks run, or one above it, has all relative names that do not go
 * up further. */
static bool
covers(const char *a, const char *b)
{
    size_t n = strlen(a), up = levels_up(a);
    if (strcmp(a, b) == 0)
        return true;
    if (*a == '@' || *b == '@' || n == 0 || a[n - 1] != '/')
        return false;
    if (strcmp(a, "./") == 0 || (up > 0 && n == 3 * up))
        return *b != '/' && levels_up(b) <= up;
    return strncmp(a, b, n) == 0 || (strlen(b) == n - 1 && memcmp(a, b, n - 1) == 0);
}

bool
task_overlap(const char *a, const char *b)
{
    return covers(a, b) || covers(b, a);
}

struct rec_str
task_output(const char *name, const char **kind)
{
    static const char *const kinds[] = {".stdout", ".stderr", ".result"};
    size_t n = strlen(name);
    for (size_t i = 0; *name == '@' && n >= 9 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name + n - 7, kinds[i]) == 0) {
            *kind = kinds[i] + 1;
            return (struct rec_str){name + 1, n - 8};
        }
    return (struct rec_str){NULL, 0};
}

int
task_word(struct rec_str *rest, char *word)
{
    const char *p = rest->ptr, *end = p + rest->len;
    char quote = 0;

    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (p == end) {
        *rest = (struct rec_str){end, 0};
        return 0;
    }
    for (; p < end && (quote || (*p != ' ' && *p != '\t')); p++) {
        if (*p == quote)
            quote = 0;
        else if (!quote && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (*p == '\\' && quote != '\'' &&
                 (!quote || (p + 1 < end && strchr("\"\\$`", p[1])))) {
            if (++p == end)
                return -1;
            *word++ = *p;
        } else
            *word++ = *p;
    }
    *word = '\0';
    *rest = (struct rec_str){p, (size_t)(end - p)};
    return quote ? -1 : 1;
}
