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
    for (uint32_t i = 0; place_kinds[i]; i++)
        if (!place_kinds[i]->suits(net)) {
            ways.kinds &= ~((uint32_t)1 << i);
            if (place_kinds[i]->numbered)
                ways.places = 0;
        }
    return ways;
}

/* The number of a numbered way. */
static uint64_t
number_of(const struct place_options *options)
{
    uint64_t number = 1;
    (void)(options->argument && rec_parse_uint(rec_str(options->argument), &number));
    return number;
}

static uint32_t
row_of(const struct place_kind *kind)
{
    uint32_t row = 0;
    while (place_kinds[row] != kind)
        row++;
    return row;
}

void
place_ways_add(struct place_ways *ways, const struct place_options *first,
               const struct place_options *more, uint32_t n)
{
    for (uint32_t i = 0; i <= n; i++) {
        const struct place_options *way = i ? &more[i - 1] : first;
        ways->kinds |= (uint32_t)1 << row_of(way->kind);
        if (way->kind->numbered && number_of(way) > ways->places)
            ways->places = (uint32_t)number_of(way);
    }
}

void
place_ways_format(struct place_ways ways, char text[PLACE_WAYS_MAX])
{
    size_t length = 0;
    *text = '\0';
    for (uint32_t i = 0; place_kinds[i] && length < PLACE_WAYS_MAX; i++) {
        char number[20] = "";
        if (!(ways.kinds >> i & 1))
            continue;
        if (place_kinds[i]->numbered)
            snprintf(number, sizeof number, ":1-%u", ways.places);
        length += (size_t)snprintf(text + length, PLACE_WAYS_MAX - length, "%s%s%s",
                                   length ? "," : "", place_kinds[i]->name, number);
    }
}

/* The largest number of NUMBER or NUMBER-NUMBER; nothing is 1. */
static bool
read_places(struct rec_str numbers, struct place_ways *ways)
{
    struct rec_str number;
    uint64_t places;
    bool ok = true;
    ways->places = 1;
    while (ok && rec_str_split(&numbers, '-', &number))
        if ((ok = rec_parse_uint(number, &places) && places <= PLACE_PLACES_MAX))
            ways->places = (uint32_t)places;
    return ok;
}

bool
place_ways_parse(struct place_ways *ways, struct rec_str text, struct rec_error *err)
{
    struct rec_str way;
    *ways = (struct place_ways){0, 0};
    while (rec_str_split(&text, ',', &way)) {
        struct rec_str rest = way, name;
        char known[PLACE_WAYS_MAX] = "";
        const struct place_kind *kind;
        (void)rec_str_split(&rest, ':', &name);
        for (uint32_t i = 0; place_kinds[i]; i++) {
            char row[PLACE_NAME_MAX];
            snprintf(row, sizeof row, "%s%s", place_kinds[i]->name,
                     place_kinds[i]->numbered ? ":1-N" : "");
            rec_list_name(known, sizeof known, row);
        }
        if (!(kind = place_kind_find(name)) ||
            (kind->numbered ? !read_places(rest, ways) : name.len != way.len))
            return rec_fail(err, REC_DATA, "the heuristic must be one of %s, got '%.*s'",
                            known, REC_SAID(way));
        ways->kinds |= (uint32_t)1 << row_of(kind);
    }
    return true;
}

/* True if the way does not suit the network: it is left out. */
static bool
leaves_out(struct place_list *list, const struct net *net, const char *text)
{
    size_t length = strcspn(text, ":");
    struct place_options way = {.kind = place_kind_find((struct rec_str){text, length}),
                                .argument = text[length] ? text + length + 1 : NULL};
    if (!way.kind || way.kind->suits(net))
        return false;
    place_ways_add(&list->left_out, &way, NULL, 0);
    return true;
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
            if (number_of(&more[i]) >= number_of(&more[list->n]))
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
    while (ok && (way = strsep(&rest, ",")))
        ok = ((rest || list->n > 0) && leaves_out(list, net, way)) ||
             add(list, net, way, err);
    return ok;
}

void
place_list_free(struct place_list *list)
{
    free(list->options);
    free(list->text);
    *list = (struct place_list){.n = 0};
}
