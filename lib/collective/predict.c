/* Answers a question from what was measured, by laws, or by data sheets. */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Compares versions by their numbers: 2.29.2 is newer than 2.3. */
static int
compare_versions(const char *a, const char *b)
{
    while (*a || *b) {
        char *enda, *endb;
        unsigned long x = strtoul(a, &enda, 10), y = strtoul(b, &endb, 10);
        if (x != y)
            return x < y ? -1 : 1;
        if (enda == a && endb == b)
            return strcmp(a, b);
        a = *enda == '.' ? enda + 1 : enda;
        b = *endb == '.' ? endb + 1 : endb;
    }
    return 0;
}

/* A series without a type holds for all types. */
static bool
is_what(const struct collective_what *series, const struct collective_what *ask)
{
    return strcmp(series->kind, ask->kind) == 0 && series->hidden == ask->hidden &&
           series->topk == ask->topk && series->experts == ask->experts &&
           series->sms == ask->sms &&
           (!series->dtype[0] || strcmp(series->dtype, ask->dtype) == 0);
}

/* Does the series replace `other`, which answers the same? Then it is of the version that
 * was asked for, of a newer one, or of the same but later in the table. */
static bool
is_better(const struct collective_series *series, const struct collective_series *other,
          const char *version)
{
    bool is = strcmp(series->version, version) == 0;
    bool other_is = strcmp(other->version, version) == 0;
    return is != other_is ? is : compare_versions(series->version, other->version) >= 0;
}

/* Gathers the series of a system that answer a question but for ranks and nodes, of the
 * version that was asked for, or else of the newest. Of two that hold for the same group
 * one of the type that was asked for counts, then the later in the table. */
static void
gather(struct collective_groups *groups, const struct collective_table *table,
       const struct collective_what *what, const char *system, const char *version)
{
    const struct collective_series *best = NULL;
    groups->table = table;
    groups->n = 0;
    for (size_t i = 0; i < table->nseries; i++) {
        const struct collective_series *s = &table->series[i];
        if (strcmp(s->system, system) == 0 && is_what(&s->what, what) &&
            (!best || is_better(s, best, version)))
            best = s;
    }
    for (size_t i = table->nseries; best && i-- > 0;) {
        const struct collective_series *s = &table->series[i];
        size_t same = 0;
        if (strcmp(s->system, system) != 0 || !is_what(&s->what, what) ||
            strcmp(s->version, best->version) != 0)
            continue;
        while (same < groups->n && (groups->series[same]->ranks != s->ranks ||
                                    groups->series[same]->nodes != s->nodes))
            same++;
        if (same < groups->n && s->what.dtype[0] && !groups->series[same]->what.dtype[0])
            groups->series[same] = s;
        else if (same == groups->n && groups->n < COLLECTIVE_GROUPS_MAX)
            groups->series[groups->n++] = s;
    }
}

/* The time on a system that was measured. False: no law covers it. */
static bool
on_system(const struct collective_groups *groups, uint64_t ranks, uint64_t nodes,
          double size, struct collective_answer *answer)
{
    const struct collective_fabric *fabric;
    double from, to;

    if (groups->n == 0)
        return false;
    answer->largest = 0;
    answer->beyond = false;
    for (size_t i = 0; i < groups->n; i++) {
        collective_range(groups->table, groups->series[i], &from, &to);
        answer->largest = fmax(answer->largest, to);
    }
    for (size_t i = 0; i < groups->n; i++) {
        const struct collective_series *s = groups->series[i];
        if (s->ranks != ranks || s->nodes != nodes)
            continue;
        answer->seconds = collective_curve(groups->table, s, size);
        answer->how = COLLECTIVE_STATE;
        collective_range(groups->table, s, &from, &to);
        snprintf(answer->law, sizeof answer->law, "%s%s%s: %s", s->system,
                 s->version[0] ? ", library " : "", s->version,
                 size < from || size > to ? "the last state, beyond the measured sizes"
                                          : "its states");
        return true;
    }
    fabric = collective_fabric_find(groups->table, groups->series[0]->system);
    if (nodes > 1)
        return collective_law_nodes(groups, ranks, nodes, size, fabric, answer);
    /* Two GPUs over NVLink say nothing about four over PCIe. */
    return (!fabric || fabric->link != COLLECTIVE_PAIRS) &&
           collective_law_ranks(groups, ranks, size, answer);
}

/* The data sheets of both systems. */
struct sheets {
    const struct collective_fabric *to, *from;
};

/* How many times as fast the link is. */
static double
link_ratio(const struct sheets *sheets, uint64_t ranks)
{
    return collective_fabric_bandwidth(sheets->to, ranks) /
           collective_fabric_bandwidth(sheets->from, ranks);
}

static bool
has_other_link(const struct sheets *sheets, uint64_t ranks)
{
    double ratio = link_ratio(sheets, ranks);
    return ratio < 1 || ratio > 1;
}

/* The ratio of latency and that of bandwidth; see scale(). */
static void
ratios(const struct sheets *sheets, const struct collective_ask *ask, double *latency,
       double *bandwidth)
{
    const struct collective_fabric *to = sheets->to, *from = sheets->from;
    bool nccl = collective_bus_factor(ask->what.kind, 2) > 0;
    double link = link_ratio(sheets, ask->ranks);

    *latency = to->latency / from->latency;
    *bandwidth = link * (to->reach / from->reach);
    if (ask->nodes > 1)
        *bandwidth = to->adapter / from->adapter;
    if (nccl)
        return;
    if (ask->nodes > 1 || !has_other_link(sheets, ask->ranks))
        *latency = 1;
    if (ask->nodes == 1)
        *bandwidth = ask->what.sms > 0 ? 1 : link;
}

/*
 * Scales the time of a measured system. Libraries choose their states by estimates from
 * latency and bandwidth. So two systems are in the same state where their sizes are in
 * the ratio of latency x bandwidth, and their times then are in that of latency:
 *
 *     t(S) = l t'(S / (l b))      l, b: latency and bandwidth of this one over that one
 *
 * Exchanges of tokens have kernels of their own, so b has no share that NCCL reaches. If
 * both links are equally fast, l is 1: NCCL's latency on such systems differs by what
 * these kernels do not wait for. Otherwise the generations differ, and l is as of NCCL.
 * Kernels that were lent some processors (sms) move bytes as fast as these do, not as the
 * link, so b is 1 for them, but no link carries more than its bandwidth. A node of the
 * relative may have another number of GPUs, so that its only group is another one.
 *
 * Whether more than two GPUs reach each other over PCIe depends on the machine and is not
 * on a data sheet. For them a ring of steps is taken, each of which is as fast as between
 * two, so that a machine whose GPUs must go through host memory is slower than this.
 */
static bool
scale(const struct collective_groups *groups, const struct sheets *sheets,
      const struct collective_ask *ask, struct collective_answer *answer)
{
    const struct collective_fabric *to = sheets->to, *from = sheets->from;
    bool nccl = collective_bus_factor(ask->what.kind, 2) > 0;
    double l, b, size, n = (double)ask->ranks;
    uint64_t group = ask->ranks; /* of the relative */
    bool steps = ask->nodes == 1 && ask->ranks > 2 && from->link == COLLECTIVE_PCIE &&
                 collective_fabric_slots(to, ask->ranks);

    if (ask->nodes > 1 && (to->adapter <= 0 || from->adapter <= 0))
        return false;
    /* How fast several ranks of a node are together depends on its adapters. */
    if (ask->nodes > 1 && ask->ranks > ask->nodes && nccl &&
        (to->adapters == 0 || to->adapters != from->adapters))
        return false;
    ratios(sheets, ask, &l, &b);
    size = ask->size / (l * b);
    if (steps) {
        double floor, two;
        if (!on_system(groups, ask->ranks, 1, 0, answer))
            return false;
        floor = answer->seconds;
        if (!on_system(groups, 2, 1, 0, answer))
            return false;
        two = answer->seconds;
        if (!on_system(groups, 2, 1, 2 * size / n, answer))
            return false;
        answer->seconds = floor + (n - 1) * fmax(0, answer->seconds - two);
    } else if (!on_system(groups, ask->ranks, ask->nodes, size, answer) &&
               (ask->nodes > 1 || !collective_law_one_group(groups, ask->ranks, size,
                                                            &answer->seconds, &group)))
        return false;
    answer->seconds *= l;
    answer->apart =
        !nccl && has_other_link(sheets, ask->ranks) ? "tokens-generation" : NULL;
    if (answer->apart && ask->what.sms > 0 && ask->nodes == 1)
        answer->seconds =
            fmax(answer->seconds,
                 collective_tokens_least(&ask->what, ask->ranks, ask->size,
                                         collective_fabric_bandwidth(to, ask->ranks)));
    answer->how = COLLECTIVE_SHEET;
    snprintf(answer->law, sizeof answer->law,
             "data sheet %s: %s%s times %.3g in latency, %.3g in bandwidth", to->name,
             groups->series[0]->system,
             nccl && groups->series[0]->what.dtype[0] ? " of integers" : "", l, b);
    if (answer->beyond)
        snprintf(answer->law + strlen(answer->law),
                 sizeof answer->law - strlen(answer->law),
                 "; larger groups of one node were never checked");
    if (group != ask->ranks)
        snprintf(answer->law + strlen(answer->law),
                 sizeof answer->law - strlen(answer->law), ", its group of %llu ranks",
                 (unsigned long long)group);
    return true;
}

/* How unlike two fabrics are for a group of this size. Times of an unknown version of the
 * library may be of another kind, as kernel times that include waiting. */
static double
distance(const struct collective_fabric *to, const struct collective_fabric *from,
         uint64_t ranks, const struct collective_series *series)
{
    bool slots = collective_fabric_slots(to, ranks);
    return fabs(log(collective_fabric_bandwidth(to, ranks) /
                    collective_fabric_bandwidth(from, ranks))) +
           (slots == collective_fabric_slots(from, ranks) ? 0 : 100) +
           (to->link == from->link ? 0 : 1) + (series->version[0] ? 0 : 1) -
           (strcmp(to->like, series->system) == 0 ? 1000 : 0);
}

/* Orders systems that are equally alike: the one that was measured more thoroughly, then
 * by name. */
static bool
comes_first(const struct collective_series *a, const struct collective_series *b)
{
    return a->of_system != b->of_system ? a->of_system > b->of_system
                                        : strcmp(a->system, b->system) < 0;
}

/* Tries the measured systems one after the other, the most alike first. */
static bool
by_sheet(const struct collective_table *table, const struct collective_fabric *fabric,
         const struct collective_ask *ask, struct collective_answer *answer)
{
    double last = -INFINITY;
    const struct collective_series *tried = NULL; /* of the last one */
    struct collective_what what = ask->what;
    bool nccl = collective_bus_factor(ask->what.kind, 2) > 0;
    for (;;) {
        const struct collective_series *best = NULL;
        const struct collective_fabric *from = NULL;
        double least = INFINITY;
        struct collective_groups groups;
        for (size_t i = 0; i < table->nseries; i++) {
            const struct collective_series *s = &table->series[i];
            const struct collective_fabric *f;
            double d;
            if (!is_what(&s->what, &ask->what) ||
                !(f = collective_fabric_find(table, s->system)))
                continue;
            d = distance(fabric, f, ask->ranks, s);
            if (d < last || (!(d > last) && !comes_first(tried, s)))
                continue;
            if (d < least || (!(d > least) && comes_first(s, best))) {
                least = d;
                best = s;
                from = f;
            }
        }
        if (!best || least > 50) /* another kind of link says nothing */
            return false;
        /* Switches that add do so with floating-point numbers. Where they do not, all
         * reductions are as those of integers. */
        what.dtype = nccl && from->adds > fabric->adds ? "int8" : ask->what.dtype;
        gather(&groups, table, &what, best->system, ask->version);
        if (scale(&groups, &(struct sheets){fabric, from}, ask, answer))
            return true;
        last = least;
        tried = best;
    }
}

/* The case under which predictions of this kind were checked. Data sheets were not
 * checked over several nodes, rings not beyond the largest group of a node. */
static const struct collective_check *
find_check(const struct collective_table *table, const struct collective_ask *ask,
           const struct collective_answer *answer, const struct collective_fabric *fabric)
{
    static const char *const names[] = {"size", "ranks", "nodes", "sheet"};
    enum collective_how how = answer->how;
    bool tokens = !(collective_bus_factor(ask->what.kind, 2) > 0);
    char name[40];
    if (answer->beyond || (how == COLLECTIVE_SHEET && ask->nodes > 1))
        return NULL;
    if (answer->apart)
        snprintf(name, sizeof name, "%s", answer->apart);
    else
        snprintf(name, sizeof name, "%s%s%s", tokens ? "tokens-" : "", names[how],
                 how != COLLECTIVE_SHEET || tokens              ? ""
                 : !fabric || fabric->link == COLLECTIVE_NVLINK ? "-nvlink"
                                                                : "-pcie");
    for (size_t i = table->nchecks; i-- > 0;)
        if (strcmp(table->check[i].name, name) == 0)
            return &table->check[i];
    return NULL;
}

/* No series has the kind: lists those that some have. */
static bool
refuse_kind(const struct collective_table *table, const char *kind, struct rec_error *err)
{
    char list[700] = "";
    for (size_t i = 0; i < table->nseries; i++) {
        size_t j = 0;
        while (strcmp(table->series[j].what.kind, table->series[i].what.kind) != 0)
            j++;
        if (j == i)
            rec_list_name(list, sizeof list, table->series[i].what.kind);
    }
    return rec_fail(err, REC_DATA, "KIND must be one of %s, got '%.60s'", list, kind);
}

/* Why there is no answer. */
static bool
refuse(const struct collective_table *table, const struct collective_ask *ask,
       const struct collective_fabric *fabric, struct rec_error *err)
{
    bool kind = false, what = false;
    for (size_t i = 0; i < table->nseries; i++) {
        kind = kind || strcmp(table->series[i].what.kind, ask->what.kind) == 0;
        what = what || is_what(&table->series[i].what, &ask->what);
    }
    if (!kind)
        return refuse_kind(table, ask->what.kind, err);
    if (!what)
        return rec_fail(err, REC_NO,
                        "%s was not measured with hidden=%llu topk=%llu experts=%llu "
                        "sms=%llu dtype=%.20s, and there is no law for these",
                        ask->what.kind, (unsigned long long)ask->what.hidden,
                        (unsigned long long)ask->what.topk,
                        (unsigned long long)ask->what.experts,
                        (unsigned long long)ask->what.sms, ask->what.dtype);
    if (!fabric)
        return rec_fail(err, REC_NO,
                        "system '%.60s' was not measured, and no fabric record has the "
                        "beginning of its name, so there is no data sheet",
                        ask->system);
    return rec_fail(err, REC_NO,
                    "no law covers %s of %llu ranks over %llu nodes on %.60s: too few "
                    "other groups were measured",
                    ask->what.kind, (unsigned long long)ask->ranks,
                    (unsigned long long)ask->nodes, ask->system);
}

bool
collective_seconds(const struct collective_table *table, const struct collective_ask *ask,
                   struct collective_answer *answer, struct rec_error *err)
{
    const struct collective_fabric *fabric = collective_fabric_find(table, ask->system);
    struct collective_groups groups;

    if (!fabric)
        fabric = collective_fabric_find(table, ask->gpu);
    *answer = (struct collective_answer){.seconds = 0};
    if (ask->ranks < 2)
        return rec_fail(err, REC_DATA, "a group needs at least 2 ranks");
    gather(&groups, table, &ask->what, ask->system, ask->version);
    if (!on_system(&groups, ask->ranks, ask->nodes, ask->size, answer) &&
        !(fabric && by_sheet(table, fabric, ask, answer)))
        return refuse(table, ask, fabric, err);
    answer->busbw =
        ask->size / answer->seconds * collective_bus_factor(ask->what.kind, ask->ranks);
    answer->check = find_check(table, ask, answer, fabric);
    return true;
}
