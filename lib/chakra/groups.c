/* Process groups: the ranks for which a name stands. PyTorch describes them in the inputs
 * of a node, which are JSON in a text of Python, as in
 *
 *     ['[{"pg_name": "1", "pg_desc": "dp", "ranks": [0, 2], "group_size": 2}]']
 *
 * with a backslash before each quote or without. So keys are looked for, whatever stands
 * around them. No description is nested. */
#include "said.h"

#include <stdlib.h>

/* What stands behind a key and its colon in text[0..n); {NULL, 0}: it is not there. */
static struct rec_str
find_key(const char *text, size_t n, const char *key)
{
    size_t len = strlen(key);
    for (size_t i = 1; i + len < n; i++) {
        size_t at = i + len;
        if (!strchr("\"'", text[i - 1]) || strncmp(text + i, key, len) != 0 ||
            !strchr("\\\"'", text[at]))
            continue;
        while (at < n && strchr("\\\"' :", text[at]))
            at++;
        return (struct rec_str){text + at, n - at};
    }
    return (struct rec_str){NULL, 0};
}

static int
by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Reads a list of ranks, as [0, 2], behind those of the other groups. */
static bool
read_ranks(struct chakra_reading *r, struct rec_str list, uint32_t *n, bool *valid)
{
    struct chakra_traces *t = r->traces;
    const char *end = memchr(list.ptr, ']', list.len);
    struct rec_str rest, word;
    uint64_t rank;
    *n = 0;
    *valid = list.len > 0 && *list.ptr == '[' && end;
    if (!*valid || end == list.ptr + 1)
        return true;
    rest = (struct rec_str){list.ptr + 1, (size_t)(end - list.ptr) - 1};
    while (*valid && rec_str_split(&rest, ',', &word)) {
        while (word.len && *word.ptr == ' ') {
            word.ptr++;
            word.len--;
        }
        *valid = rec_parse_uint(word, &rank) && rank < GRAPH_SLOTS_MAX;
        if (!*valid)
            break;
        if (!rec_grow(&t->group_rank, &t->group_rank_room, t->ngroup_ranks + *n + 1,
                      sizeof *t->group_rank, r->err))
            return false;
        t->group_rank[t->ngroup_ranks + (*n)++] = (uint32_t)rank;
    }
    if (*valid && *n > 0) /* no rank: there may be no array yet */
        qsort(t->group_rank + t->ngroup_ranks, *n, sizeof *t->group_rank, by_number);
    for (uint32_t i = 1; *valid && i < *n; i++)
        *valid =
            t->group_rank[t->ngroup_ranks + i] != t->group_rank[t->ngroup_ranks + i - 1];
    return true;
}

/* Takes a group, unless the file of another rank has described it. */
static bool
add_group(struct chakra_reading *r, const struct chakra_node *node, struct rec_str name,
          uint32_t n)
{
    struct chakra_traces *t = r->traces;
    char *copy = strndup(name.ptr, name.len);
    const struct chakra_group *known = copy ? chakra_find_group(t, copy) : NULL;
    const char *kept = copy && !known ? chakra_keep(r, copy) : NULL;
    free(copy);
    if (known)
        return (known->n == n && (n == 0 || memcmp(t->group_rank + known->first,
                                                   t->group_rank + t->ngroup_ranks,
                                                   n * sizeof *t->group_rank) == 0)) ||
               chakra_fail(t, node, r->err,
                           "process group '%s' has other ranks in a node before it",
                           known->name);
    if (!kept)
        return copy ? false : rec_fail_memory(r->err);
    if (!rec_grow(&t->group, &t->group_room, t->ngroups + 1, sizeof *t->group, r->err))
        return false;
    t->group[t->ngroups++] = (struct chakra_group){kept, t->ngroup_ranks, n};
    t->ngroup_ranks += n;
    return true;
}

bool
chakra_read_groups(struct chakra_reading *r, const struct chakra_node *node,
                   const char *text)
{
    const char *end;
    for (; (text = strchr(text, '{')) && (end = strchr(text, '}')); text = end) {
        size_t len = (size_t)(end - text);
        struct rec_str name = find_key(text, len, "pg_name");
        struct rec_str ranks = find_key(text, len, "ranks");
        uint32_t n;
        bool valid;
        if (!name.ptr || !ranks.ptr)
            continue;
        for (size_t i = 0; i < name.len; i++)
            if (strchr("\\\"',", name.ptr[i]))
                name.len = i;
        if (!read_ranks(r, ranks, &n, &valid))
            return false;
        if (!valid)
            return chakra_fail(r->traces, node, r->err,
                               "the ranks of process group '%.*s' must be a list of "
                               "different integers >= 0",
                               REC_SAID(name));
        if (!add_group(r, node, name, n))
            return false;
    }
    return true;
}

const struct chakra_group *
chakra_find_group(const struct chakra_traces *t, const char *name)
{
    for (size_t i = 0; i < t->ngroups; i++)
        if (strcmp(t->group[i].name, name) == 0)
            return &t->group[i];
    return NULL;
}
