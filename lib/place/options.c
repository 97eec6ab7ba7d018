/* Ways of placing as users write them: one, a list, and those that a policy was trained
 * with. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

const struct place_kind *
place_kind_find(struct rec_str name)
{
    const struct place_kind *const *kind = place_kinds;
    while (*kind && (strlen((*kind)->name) != name.len ||
                     strncasecmp((*kind)->name, name.ptr, name.len) != 0))
        kind++;
    return *kind;
}

const struct place_kind *
place_kind_of(const struct net *net)
{
    const struct place_kind *const *kind = place_kinds;
    while (*kind && !(*kind)->suits(net))
        kind++;
    return *kind;
}

/* Tries the argument, so that a wrong one is found where it is given. */
static bool
check_argument(const struct place_options *options, const char *text,
               struct rec_error *err)
{
    struct rec_error wrong;
    void *own;
    if (!options->kind->argument)
        return rec_fail(err, REC_USAGE, "%s takes no argument, got '%s'",
                        options->kind->name, text);
    if ((own = options->kind->open(options, &wrong)))
        options->kind->close(own);
    else if (wrong.code != REC_USAGE)
        *err = wrong;
    else
        rec_fail(err, REC_USAGE, "%s: the argument %s", text, wrong.text);
    return own;
}

bool
place_options_parse(struct place_options *options, const char *text,
                    struct rec_error *err)
{
    size_t len = text ? strcspn(text, ":") : 0;
    const struct place_kind *named =
        text ? place_kind_find((struct rec_str){text, len}) : NULL;
    char known[200] = "", where[NET_TEXT_MAX];
    options->kind = named ? named : place_kind_of(options->net);
    options->argument = named && text[len] ? text + len + 1 : NULL;
    if (!named) {
        for (size_t i = 0; place_kinds[i]; i++)
            if (place_kinds[i]->suits(options->net))
                (void)rec_list_name(known, sizeof known, place_kinds[i]->name);
        return !text ||
               rec_fail(err, REC_USAGE, "must be one of %s, got '%s'", known, text);
    }
    net_describe(options->net, where);
    if (!named->suits(options->net))
        return rec_fail(err, REC_USAGE, "%s is for %s, not for %s: take %s", named->name,
                        named->network, where, place_kind_of(options->net)->name);
    return !options->argument || check_argument(options, text, err);
}

void
place_options_name(const struct place_options *options, char name[PLACE_NAME_MAX])
{
    const char *number = options->argument ? options->argument : "1";
    if (options->kind->numbered)
        snprintf(name, PLACE_NAME_MAX, "%s:%s", options->kind->name, number);
    else
        snprintf(name, PLACE_NAME_MAX, "%s", options->kind->name);
}

struct place_ways
place_ways_suiting(struct place_ways ways, const struct net *net)
{
    struct place_ways suiting = {.n = 0};
    for (uint32_t i = 0; i < ways.n; i++)
        if (ways.range[i].kind->suits(net))
            suiting.range[suiting.n++] = ways.range[i];
    return suiting;
}

uint64_t
place_options_number(const struct place_options *options)
{
    uint64_t number = 1;
    (void)(options->kind->numbered && options->argument &&
           rec_parse_uint(rec_str(options->argument), &number));
    return number;
}

/* Puts a range at a place among the others. */
static bool
insert(struct place_ways *ways, uint32_t at, struct place_range range,
       struct rec_error *err)
{
    if (ways->n == PLACE_RANGES)
        return rec_fail(err, REC_USAGE, "must have at most %d names and ranges",
                        PLACE_RANGES);
    memmove(&ways->range[at + 1], &ways->range[at], (ways->n - at) * sizeof range);
    ways->range[at] = range;
    ways->n++;
    return true;
}

/* Adds a way behind all others. */
static bool
append_way(struct place_ways *ways, const struct place_options *way,
           struct rec_error *err)
{
    struct place_range *last = ways->n ? &ways->range[ways->n - 1] : NULL;
    uint32_t number = way->kind->numbered ? (uint32_t)place_options_number(way) : 0;
    if (!last || last->kind != way->kind || number != last->last + 1)
        return insert(ways, ways->n, (struct place_range){way->kind, number, number},
                      err);
    last->last = number;
    return true;
}

static uint32_t
find_range(const struct place_ways *ways, struct place_range range)
{
    uint32_t i = 0;
    while (i < ways->n &&
           (ways->range[i].kind != range.kind || ways->range[i].first != range.first ||
            ways->range[i].last != range.last))
        i++;
    return i;
}

bool
place_ways_add(struct place_ways *ways, const struct place_options *first,
               const struct place_options *more, uint32_t n, struct rec_error *err)
{
    struct place_ways added = {.n = 0};
    uint32_t at = 0;
    for (uint32_t i = 0; i <= n; i++)
        if (!append_way(&added, i ? &more[i - 1] : first, err))
            return false;
    for (uint32_t i = 0; i < added.n; i++) {
        uint32_t known = find_range(ways, added.range[i]);
        if (known == ways->n) {
            known = at;
            if (!insert(ways, at, added.range[i], err))
                return false;
        }
        at = known + 1;
    }
    return true;
}

void
place_ways_format(struct place_ways ways, char text[PLACE_WAYS_MAX])
{
    size_t length = 0;
    *text = '\0';
    for (uint32_t i = 0; i < ways.n && length < PLACE_WAYS_MAX; i++) {
        const struct place_range *r = &ways.range[i];
        char number[30] = "";
        if (r->first)
            snprintf(number, sizeof number, r->first < r->last ? ":%u-%u" : ":%u",
                     r->first, r->last);
        length += (size_t)snprintf(text + length, PLACE_WAYS_MAX - length, "%s%s%s",
                                   length ? "," : "", r->kind->name, number);
    }
}

/* A number of a numbered way. */
static bool
read_number(struct rec_str text, uint32_t *number)
{
    uint64_t n;
    bool ok = rec_parse_uint(text, &n) && n >= 1 && n <= PLACE_PLACES_MAX;
    *number = ok ? (uint32_t)n : 0;
    return ok;
}

/* Reads NAME of a kind, or NAME:NUMBER or NAME:NUMBER-NUMBER of a numbered one, whose
 * numbers ascend in the whole list. */
static bool
read_range(struct rec_str text, const struct place_ways *before, struct place_range *r)
{
    struct rec_str last = text, name, first;
    (void)rec_str_split(&last, ':', &name);
    *r = (struct place_range){.kind = place_kind_find(name)};
    if (!r->kind || (!r->kind->numbered && name.len != text.len))
        return false;
    if (r->kind->numbered && name.len == text.len)
        r->first = r->last = 1;
    else if (r->kind->numbered) {
        (void)rec_str_split(&last, '-', &first);
        if (!read_number(first, &r->first) ||
            !read_number(last.ptr ? last : first, &r->last))
            return false;
    }
    for (uint32_t i = 0; i < before->n; i++)
        if (before->range[i].kind == r->kind && before->range[i].last >= r->first)
            return false;
    return r->first <= r->last;
}

bool
place_ways_parse(struct place_ways *ways, struct rec_str text, struct rec_error *err)
{
    struct rec_str way;
    *ways = (struct place_ways){.n = 0};
    while (rec_str_split(&text, ',', &way)) {
        struct place_range range;
        char known[PLACE_WAYS_MAX] = "";
        for (uint32_t i = 0; place_kinds[i]; i++) {
            char row[PLACE_NAME_MAX];
            snprintf(row, sizeof row, "%s%s", place_kinds[i]->name,
                     place_kinds[i]->numbered ? ":1-N" : "");
            rec_list_name(known, sizeof known, row);
        }
        if (!read_range(way, ways, &range))
            return rec_fail(err, REC_DATA,
                            "the heuristic must be one of %s, each once and with N "
                            "ascending, got '%.*s'",
                            known, REC_SAID(way));
        if (!insert(ways, ways->n, range, err))
            return rec_fail(err, REC_DATA,
                            "the policy has more than %d heuristics and ranges",
                            PLACE_RANGES);
    }
    return true;
}

/* If the way does not suit the network, it is left out. */
static bool
leave_out(struct place_list *list, const struct net *net, const char *text, bool *out,
          struct rec_error *err)
{
    size_t length = strcspn(text, ":");
    struct place_options way = {.kind = place_kind_find((struct rec_str){text, length}),
                                .argument = text[length] ? text + length + 1 : NULL};
    *out = way.kind && !way.kind->suits(net);
    return !*out || append_way(&list->left_out, &way, err);
}

/* Adds a way of placing to a list; NULL: the default. */
static bool
add(struct place_list *list, const struct net *net, const char *text,
    struct rec_error *err)
{
    struct place_options *more =
        realloc(list->options, (list->n + 1) * sizeof *list->options);
    if (!more)
        return rec_fail_memory(err);
    list->options = more;
    more[list->n] = (struct place_options){.net = net};
    if (!place_options_parse(&more[list->n], text, err))
        return false;
    for (uint32_t i = 0; i < list->n; i++)
        if (more[i].kind == more[list->n].kind) {
            if (!more[i].kind->numbered)
                return rec_fail(err, REC_USAGE, "names %s twice", more[i].kind->name);
            if (place_options_number(&more[i]) >= place_options_number(&more[list->n]))
                return rec_fail(err, REC_USAGE, "must name %s in ascending order",
                                more[i].kind->name);
        }
    list->n++;
    return true;
}

/* A text that grows. */
struct text {
    char *text; /* owned */
    size_t n, room;
};

/* Adds a way, with a comma before it if it is not the first. */
static bool
append(struct text *t, const char *way, size_t length, struct rec_error *err)
{
    bool is_first = !t->text;
    if (!rec_grow(&t->text, &t->room, t->n + length + 2, 1, err))
        return false;
    if (!is_first)
        t->text[t->n++] = ',';
    memcpy(t->text + t->n, way, length);
    t->n += length;
    t->text[t->n] = '\0';
    return true;
}

/* Adds a way of placing, or all that are in a range. */
static bool
spread(struct text *t, const char *way, struct rec_error *err)
{
    const char *colon = strchr(way, ':'), *dash = colon ? strchr(colon, '-') : NULL;
    struct rec_str name = {way, colon ? (size_t)(colon - way) : 0};
    const struct place_kind *kind = place_kind_find(name);
    uint64_t first, last;
    if (!dash || !kind || !kind->numbered)
        return append(t, way, strlen(way), err);
    if (!rec_parse_uint((struct rec_str){colon + 1, (size_t)(dash - colon - 1)},
                        &first) ||
        !rec_parse_uint(rec_str(dash + 1), &last) || first < 1 || first > last ||
        last > PLACE_PLACES_MAX)
        return rec_fail(err, REC_USAGE, "has a wrong range %s: take %s:1-%d at most", way,
                        kind->name, PLACE_PLACES_MAX);
    for (uint64_t i = first; i <= last; i++) {
        char one[PLACE_NAME_MAX];
        int length =
            snprintf(one, sizeof one, "%s:%llu", kind->name, (unsigned long long)i);
        if (!append(t, one, (size_t)length, err))
            return false;
    }
    return true;
}

/* The list with all ranges spread; to be freed. NULL: *err. */
static char *
spread_all(const char *text, struct rec_error *err)
{
    struct text spread_out = {0};
    char *copy = strdup(text), *rest = copy, *way;
    bool ok = copy || rec_fail_memory(err);
    while (ok && (way = strsep(&rest, ",")))
        ok = spread(&spread_out, way, err);
    free(copy);
    if (ok)
        return spread_out.text;
    free(spread_out.text);
    return NULL;
}

bool
place_list_parse(struct place_list *list, const struct net *net, const char *text,
                 struct rec_error *err)
{
    struct place_ways all = {.n = 0};
    char *rest, *way;
    bool ok = true;
    if (!text)
        return add(list, net, NULL, err);
    if (strcasecmp(text, "any") == 0) {
        for (size_t i = 0; ok && place_kinds[i]; i++)
            ok = place_kinds[i]->numbered || !place_kinds[i]->suits(net) ||
                 add(list, net, place_kinds[i]->name, err);
        return ok;
    }
    if (!(rest = list->text = spread_all(text, err)))
        return false;
    while (ok && (way = strsep(&rest, ","))) {
        bool out = false;
        ok = ((!rest && list->n == 0) || leave_out(list, net, way, &out, err)) &&
             (out || (add(list, net, way, err) &&
                      append_way(&all, &list->options[list->n - 1], err)));
    }
    return ok;
}

void
place_list_free(struct place_list *list)
{
    free(list->options);
    free(list->text);
    *list = (struct place_list){.n = 0};
}
