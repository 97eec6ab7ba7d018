/*
 * Placing the units of a plan, in any way: a unit goes to the servers of a parent if that
 * is possible, else to those that the kind finds for it.
 */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *
place_outcome_name(enum place_outcome outcome)
{
    static const char *const names[] = {"placed", "no_servers", "no_block", "no_memory"};
    return names[outcome];
}

const struct place_kind *
place_kind_find(struct rec_str name)
{
    const struct place_kind *const *kind = place_kinds;
    while (*kind && !rec_str_is(name, (*kind)->name))
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
    return own || rec_fail(err, wrong.code, "%s: the argument %s", text, wrong.text);
}

bool
place_options_parse(struct place_options *options, const char *text,
                    struct rec_error *err)
{
    size_t len = text ? strcspn(text, ":") : 0;
    char known[200] = "", where[NET_TEXT_MAX];
    options->kind = place_kind_of(options->net);
    options->argument = NULL;
    for (size_t i = 0; text && place_kinds[i]; i++) {
        const struct place_kind *kind = place_kinds[i];
        if (strlen(kind->name) == len && strncasecmp(text, kind->name, len) == 0) {
            options->kind = kind;
            options->argument = text[len] ? text + len + 1 : NULL;
            net_describe(options->net, where);
            if (!kind->suits(options->net))
                return rec_fail(err, REC_USAGE, "%s is for %s, not for %s: take %s",
                                kind->name, kind->network, where,
                                place_kind_of(options->net)->name);
            return !options->argument || check_argument(options, text, err);
        }
        if (kind->suits(options->net))
            (void)rec_list_name(known, sizeof known, kind->name);
    }
    return !text || rec_fail(err, REC_USAGE, "must be one of %s, got '%s'", known, text);
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

struct place_ways
place_ways_of(const struct place_options *first, const struct place_options *more,
              uint32_t n)
{
    struct place_ways ways = {0, 0};
    for (uint32_t i = 0; i <= n; i++) {
        const struct place_options *way = i ? &more[i - 1] : first;
        ways.kinds |= (uint32_t)1 << row_of(way->kind);
        if (way->kind->numbered && number_of(way) > ways.places)
            ways.places = (uint32_t)number_of(way);
    }
    return ways;
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

/* Writes a way of placing, and a range as all that are in it. */
static bool
spread(FILE *out, const char *way, struct rec_error *err)
{
    const char *colon = strchr(way, ':'), *dash = colon ? strchr(colon, '-') : NULL;
    struct rec_str name = {way, colon ? (size_t)(colon - way) : 0};
    const struct place_kind *kind = place_kind_find(name);
    uint64_t first, last;
    if (!dash || !kind || !kind->numbered) {
        fputs(way, out);
        return true;
    }
    if (!rec_parse_uint((struct rec_str){colon + 1, (size_t)(dash - colon - 1)},
                        &first) ||
        !rec_parse_uint(rec_str(dash + 1), &last) || first < 1 || first > last ||
        last > PLACE_PLACES_MAX)
        return rec_fail(err, REC_USAGE, "has a wrong range %s: take %s:1-%d at most", way,
                        kind->name, PLACE_PLACES_MAX);
    for (uint64_t i = first; i <= last; i++)
        fprintf(out, "%s%.*s:%llu", i > first ? "," : "", (int)name.len, name.ptr,
                (unsigned long long)i);
    return true;
}

/* The list with all ranges spread; to be freed. NULL: *err. */
static char *
spread_all(const char *text, struct rec_error *err)
{
    char *spread_out = NULL, *copy = strdup(text), *rest = copy, *way;
    size_t size;
    FILE *out = copy ? open_memstream(&spread_out, &size) : NULL;
    bool ok = out || rec_fail_memory(err);
    for (bool first = true; ok && (way = strsep(&rest, ",")); first = false) {
        if (!first)
            fputc(',', out);
        ok = spread(out, way, err);
    }
    if (out && fclose(out) != 0 && ok)
        ok = rec_fail_memory(err);
    free(copy);
    if (ok)
        return spread_out;
    free(spread_out);
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
        ok = add(list, net, way, err);
    return ok;
}

void
place_list_free(struct place_list *list)
{
    free(list->options);
    free(list->text);
    *list = (struct place_list){.n = 0};
}

struct place_placer *
place_placer_new(const struct place_options *options, struct rec_error *err)
{
    struct place_placer *p = calloc(1, sizeof *p);
    if (!p) {
        rec_fail_memory(err);
        return NULL;
    }
    p->options = *options;
    p->nservers = net_servers(options->net);
    p->memory = net_memory(options->net);
    p->used = calloc(p->nservers, sizeof *p->used);
    p->held = calloc(p->nservers, sizeof *p->held);
    p->is_held = calloc(p->nservers, sizeof *p->is_held);
    if (!p->used || !p->held || !p->is_held)
        rec_fail_memory(err);
    else if ((p->own = options->kind->open(options, err)))
        return p;
    place_placer_free(p);
    return NULL;
}

void
place_placer_free(struct place_placer *p)
{
    if (!p)
        return;
    if (p->own)
        p->options.kind->close(p->own);
    free(p->used);
    free(p->held);
    free(p->is_held);
    free(p->server);
    free(p->block);
    free(p->order);
    free(p);
}

void
place_hold(struct place_placer *p, uint32_t server)
{
    if (p->is_held[server])
        return;
    p->is_held[server] = true;
    p->held[p->nheld++] = server;
}

/* ---- units --------------------------------------------------------------- */

/* Puts the parts of a step on the servers of one of its parents, if the rule allows it
 * and all servers have room; else what was placed is taken back. */
static bool
place_with_parent(struct place_placer *p, const struct place_plan *plan,
                  const struct place_step *step, uint32_t parent)
{
    const struct graph_unit *unit = &plan->graph->unit[step->unit];
    const struct graph_unit *above = &plan->graph->unit[plan->step[parent].unit];
    const uint32_t *list = p->server + above->first;
    uint32_t placed;

    if (p->multiples ? unit->parts % above->parts != 0 : unit->parts != above->parts)
        return false;
    for (placed = 0; placed < unit->parts; placed++) {
        uint32_t server = list[placed % above->parts];
        if (!place_has_room(p, server, step->memory))
            break;
        p->used[server] += step->memory;
        p->server[unit->first + placed] = server;
    }
    if (placed == unit->parts)
        return true;
    while (placed-- > 0)
        p->used[list[placed % above->parts]] -= step->memory;
    return false;
}

bool
place_take(struct place_placer *p, const struct graph_unit *unit, double memory)
{
    double left = INFINITY;
    bool room = true;
    for (uint32_t i = 0; i < unit->parts; i++) {
        room = room && place_has_room(p, p->block[i], memory);
        left = fmin(left, p->memory - p->used[p->block[i]]);
    }
    if (!room) {
        p->saw_block = true;
        p->most = fmax(p->most, left);
        return false;
    }
    for (uint32_t i = 0; i < unit->parts; i++) {
        p->used[p->block[i]] += memory;
        p->server[unit->first + i] = p->block[i];
        place_hold(p, p->block[i]);
    }
    return true;
}

static int
by_use(const void *a, const void *b, void *context)
{
    const double *used = context;
    double x = used[*(const uint32_t *)a], y = used[*(const uint32_t *)b];
    return (x > y) - (x < y);
}

void
place_note_room(struct place_placer *p, uint32_t k, uint32_t *list)
{
    uint32_t empty = p->vacancy->n - p->nheld;
    double left = p->memory;
    if (k > empty) {
        memcpy(list, p->held, p->nheld * sizeof *list);
        qsort_r(list, p->nheld, sizeof *list, by_use, p->used);
        left -= p->used[list[k - empty - 1]];
    }
    p->saw_block = true;
    p->most = left > p->most ? left : p->most;
}

/* Only the servers that the last job held are cleared: a cluster may have millions. */
static void
forget_job(struct place_placer *p)
{
    for (uint32_t i = 0; i < p->nheld; i++) {
        p->used[p->held[i]] = 0;
        p->is_held[p->held[i]] = false;
    }
    p->nheld = p->nused = 0;
    p->jobs++;
}

/* place_units() of a light plan. */
static enum place_outcome
place_kinds_of(struct place_placer *p, const struct place_plan *plan)
{
    for (uint32_t k = 0; k < plan->nkinds; k++) {
        p->failed = plan->step[plan->kind[k]].unit;
        if (!p->options.kind->find(p, &plan->graph->unit[p->failed], 0))
            return PLACE_NO_BLOCK;
    }
    p->nused = p->nheld;
    return PLACE_PLACED;
}

enum place_outcome
place_units(struct place_placer *p, const struct place_plan *plan)
{
    const struct place_kind *kind = p->options.kind;
    forget_job(p);
    if (p->light)
        return place_kinds_of(p, plan);
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct place_step *step = &plan->step[i];
        bool placed = false;
        p->saw_block = false;
        p->failed = step->unit;
        for (uint32_t j = 0; !placed && j < step->nparents; j++)
            placed =
                place_with_parent(p, plan, step, plan->parent[step->first_parent + j]);
        if (!placed && !kind->find(p, &plan->graph->unit[step->unit], step->memory))
            return p->saw_block ? PLACE_NO_MEMORY : PLACE_NO_BLOCK;
    }
    p->nused = p->nheld;
    return PLACE_PLACED;
}

/* ---- the whole plan ------------------------------------------------------ */

/* place_placement.left: looks at all servers for the failed unit again. It asks for an
 * infinite amount of memory, so that all of them are refused and noted in p->most. */
static double
find_room(struct place_placer *p, const struct place_plan *plan)
{
    if (plan->tasks)
        return p->most;
    p->jobs++; /* what was found for this job is void */
    p->most = 0;
    return p->options.kind->find(p, &plan->graph->unit[p->failed], INFINITY) ? 0
                                                                             : p->most;
}

/* Puts the twins of the placed ops on the same servers. */
static void
place_twins(struct place_placer *p, const struct place_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct graph_unit *unit = &plan->graph->unit[plan->step[i].unit];
        for (uint32_t j = unit->first; j < unit->first + unit->parts; j++)
            p->server[plan->twin[j]] = p->server[j];
    }
}

/* Makes room for a plan. */
static bool
start_job(struct place_placer *p, const struct place_plan *plan,
          const struct place_vacancy *vacancy, struct rec_error *err)
{
    if (!rec_grow(&p->server, &p->server_room, plan->graph->nops, sizeof *p->server,
                  err) ||
        !rec_grow(&p->block, &p->block_room, plan->largest, sizeof *p->block, err))
        return false;
    forget_job(p);
    p->vacancy = vacancy;
    p->multiples = false;
    p->light = false;
    p->failed = plan->nsteps ? plan->step[0].unit : 0;
    return true;
}

/* Whether there are servers at all; if so, the kind gets ready for the units of a job. */
static enum place_outcome
begin_units(struct place_placer *p, const struct place_plan *plan)
{
    return p->vacancy->n ? p->options.kind->begin(p, plan) : PLACE_NO_SERVERS;
}

bool
place_on(struct place_placer *p, const struct place_plan *plan,
         const struct place_vacancy *vacancy, struct place_placement *placement,
         struct rec_error *err)
{
    enum place_outcome outcome = PLACE_NO_SERVERS;
    if (!start_job(p, plan, vacancy, err))
        return false;
    if (vacancy->n > 0 && plan->tasks && !place_tasks(p, plan, &outcome, err))
        return false;
    if (!plan->tasks && (outcome = begin_units(p, plan)) == PLACE_PLACED)
        outcome = p->options.kind->place(p, plan);
    if (outcome == PLACE_PLACED)
        place_twins(p, plan);
    *placement =
        (struct place_placement){outcome,
                                 p->failed,
                                 outcome == PLACE_NO_MEMORY ? find_room(p, plan) : 0,
                                 p->server,
                                 p->held,
                                 p->nheld,
                                 p->nused,
                                 plan->tasks ? p->order : NULL};
    return true;
}

bool
place_is_light(const struct place_placer *p, const struct place_plan *plan)
{
    return p->options.kind->whole && !plan->tasks && plan->memory <= p->memory;
}

bool
place_light(struct place_placer *p, const struct place_plan *plan,
            const struct place_vacancy *vacancy, struct place_placement *placement,
            struct rec_error *err)
{
    enum place_outcome outcome;
    if (!start_job(p, plan, vacancy, err))
        return false;
    p->light = true;
    if ((outcome = begin_units(p, plan)) == PLACE_PLACED)
        outcome = p->options.kind->whole ? p->options.kind->place(p, plan)
                                         : place_units(p, plan);
    *placement = (struct place_placement){.outcome = outcome,
                                          .failed = p->failed,
                                          .server = p->server,
                                          .held = p->held,
                                          .nheld = p->nheld,
                                          .nused = p->nheld};
    return true;
}
