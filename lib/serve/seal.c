/* Seals a pipeline whose records have all come: checks that they fit each other, and puts
 * stages and edges in order. */
#include "station.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool fail_at(struct rec_error *err, struct serve_place place, const char *format,
                    ...) REC_PRINTF(3, 4);
static bool
fail_at(struct rec_error *err, struct serve_place place, const char *format, ...)
{
    char text[500];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return rec_fail_at(err, place.file, place.line, "%s", text);
}

static int
compare_points(const void *a, const void *b)
{
    const struct serve_point *x = a, *y = b;
    if (x->batch != y->batch)
        return x->batch < y->batch ? -1 : 1;
    return (x->place.line > y->place.line) - (x->place.line < y->place.line);
}

/* Sorts a profile's points by batch. Batches must differ, and begin with 1: a replica
 * takes a single query if no more wait. */
static bool
seal_profile(const struct serve_pipeline *p, struct serve_profile *profile,
             struct rec_error *err)
{
    struct serve_point *point = profile->point;
    const char *model = p->name[profile->model], *hardware = p->name[profile->hardware];
    qsort(point, profile->n, sizeof *point, compare_points);
    for (size_t i = 1; i < profile->n; i++)
        if (point[i].batch == point[i - 1].batch)
            return fail_at(err, point[i].place,
                           "the profile of '%s' on '%s' has batch %llu twice", model,
                           hardware, (unsigned long long)point[i].batch);
    return point[0].batch == 1 ||
           fail_at(err, point[0].place,
                   "the profile of '%s' on '%s' starts with batch %llu, must start with "
                   "1: a replica does not wait for a batch to fill",
                   model, hardware, (unsigned long long)point[0].batch);
}

/* Beyond its points a profile says nothing. */
static bool
check_batch(const struct serve_pipeline *p, const struct serve_profile *profile,
            uint32_t batch, struct serve_place place, struct rec_error *err)
{
    return batch <= serve_largest(profile) ||
           fail_at(err, place,
                   "BATCH %u is larger than the largest batch of the profile of '%s' on "
                   "'%s', %llu",
                   batch, p->name[profile->model], p->name[profile->hardware],
                   (unsigned long long)serve_largest(profile));
}

/* Rungs run on the hardware of the config, which may come after them. */
static bool
check_rungs(const struct serve_pipeline *p, struct rec_error *err)
{
    for (size_t i = 0; i < p->nrungs; i++) {
        const struct serve_rung *rung = &p->rung[i];
        uint32_t profile = p->stage[rung->stage].config.profile;
        if (profile != REC_NONE &&
            !check_batch(p, &p->profile[profile], rung->batch, rung->place, err))
            return false;
    }
    return true;
}

/* config->profile, until now the index of the hardware's name, becomes that of the
 * profile. */
static bool
seal_config(const struct serve_pipeline *p, struct serve_stage *stage,
            struct rec_error *err)
{
    struct serve_config *config = &stage->config;
    const char *model, *hardware;
    if (!config->place.line)
        return true;
    model = p->name[stage->model];
    hardware = p->name[config->profile];
    config->profile = serve_profile_find(p, stage->model, config->profile);
    if (config->profile == REC_NONE)
        return fail_at(err, config->place, "there is no profile of '%s' on '%s'", model,
                       hardware);
    return check_batch(p, &p->profile[config->profile], config->batch, config->place,
                       err);
}

static bool
check_model(const struct serve_pipeline *p, const struct serve_stage *stage,
            struct rec_error *err)
{
    if (stage->model == REC_NONE)
        return true;
    for (size_t i = 0; i < p->nprofiles; i++)
        if (p->profile[i].model == stage->model)
            return true;
    return fail_at(err, stage->place, "there is no profile of the model '%s'",
                   p->name[stage->model]);
}

/* Counts the parents of stages. A stage that no edge leads to gets one from the
 * source. */
static bool
add_entries(struct serve_pipeline *p, struct rec_error *err)
{
    for (size_t i = 0; i < p->nedges; i++)
        if (p->edge[i].dst != REC_NONE)
            p->stage[p->edge[i].dst].parents++;
    for (uint32_t s = 0; s < p->nstages; s++)
        if (p->stage[s].parents == 0) {
            struct serve_edge edge = {REC_NONE, s, 1, REC_NONE, p->stage[s].place};
            if (!serve_add_edge(p, edge, err))
                return false;
            p->stage[s].parents++;
        }
    return true;
}

/* Fills p->out with the edges by their source: a counting sort, which keeps the order of
 * the records among edges of one source. */
static void
sort_edges(struct serve_pipeline *p)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < p->nedges; i++)
        if (p->edge[i].src == REC_NONE)
            p->nentries++;
        else
            p->stage[p->edge[i].src].nedges++;
    at = (uint32_t)p->nentries;
    for (size_t s = 0; s < p->nstages; s++) {
        p->stage[s].first_edge = at;
        at += p->stage[s].nedges;
        p->stage[s].nedges = 0;
    }
    at = 0;
    for (uint32_t i = 0; i < p->nedges; i++) {
        struct serve_stage *src =
            p->edge[i].src == REC_NONE ? NULL : &p->stage[p->edge[i].src];
        p->out[src ? src->first_edge + src->nedges++ : at++] = i;
    }
}

/* A stage that has an edge to stage `s` and could not be put in order either; there is
 * one if `s` could not be. */
static uint32_t
waits_for(const struct serve_pipeline *p, uint32_t s)
{
    for (size_t i = 0; i < p->nedges; i++)
        if (p->edge[i].dst == s && p->edge[i].src != REC_NONE &&
            p->stage[p->edge[i].src].rank == REC_NONE)
            return p->edge[i].src;
    return s;
}

/* Names the stages of a circle. Every stage that could not be put in order has such a
 * parent, so going back from parent to parent, as many times as there are stages, ends in
 * a circle. */
static bool
fail_circle(const struct serve_pipeline *p, struct rec_error *err)
{
    char list[300] = "";
    uint32_t s = 0, start;
    while (p->stage[s].rank != REC_NONE)
        s++;
    for (size_t step = 0; step < p->nstages; step++)
        s = waits_for(p, s);
    start = s;
    do
        rec_list_name(list, sizeof list, p->stage[s].name);
    while ((s = waits_for(p, s)) != start);
    return fail_at(err, p->stage[start].place,
                   "the pipeline has a circle of stages that wait for each other: %s",
                   list);
}

/* Topological order; of the stages that could come next, the one whose record came first
 * comes. `left` counts a stage's parents that are not in order yet. O(n^2) for n stages,
 * of which there are at most SERVE_STAGES_MAX. */
static bool
sort_stages(struct serve_pipeline *p, struct rec_error *err)
{
    uint32_t *left = calloc(p->nstages + 1, sizeof *left);
    size_t n = 0;
    if (!left)
        return rec_fail_memory(err);
    for (size_t s = 0; s < p->nstages; s++) {
        p->stage[s].rank = REC_NONE;
        left[s] = p->stage[s].parents;
    }
    for (size_t i = 0; i < p->nentries; i++)
        left[p->edge[p->out[i]].dst]--;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t s = 0; s < p->nstages && !more; s++)
            if (p->stage[s].rank == REC_NONE && left[s] == 0) {
                p->stage[s].rank = (uint32_t)n;
                p->order[n++] = s;
                more = true;
                for (uint32_t e = 0; e < p->stage[s].nedges; e++) {
                    uint32_t dst = p->edge[p->out[p->stage[s].first_edge + e]].dst;
                    if (dst != REC_NONE)
                        left[dst]--;
                }
            }
    }
    free(left);
    return n == p->nstages || fail_circle(p, err);
}

bool
serve_pipeline_seal(struct serve_pipeline *p, struct rec_error *err)
{
    p->sealed = true;
    for (size_t i = 0; i < p->nprofiles; i++)
        if (!seal_profile(p, &p->profile[i], err))
            return false;
    for (size_t s = 0; s < p->nstages; s++) {
        if (!check_model(p, &p->stage[s], err) || !seal_config(p, &p->stage[s], err))
            return false;
        p->stage[s].kind = p->stage[s].model == REC_NONE ? NULL : &serve_batches;
    }
    if (!check_rungs(p, err) || !add_entries(p, err))
        return false;
    p->order = calloc(p->nstages + 1, sizeof *p->order);
    p->out = calloc(p->nedges + 1, sizeof *p->out);
    if (!p->order || !p->out)
        return rec_fail_memory(err);
    sort_edges(p);
    return sort_stages(p, err);
}

bool
serve_pipeline_configured(const struct serve_pipeline *p, struct rec_error *err)
{
    for (size_t s = 0; s < p->nstages; s++)
        if (p->stage[s].model != REC_NONE && p->stage[s].config.profile == REC_NONE)
            return fail_at(err, p->stage[s].place, "stage '%s' has no config",
                           p->stage[s].name);
    return p->nstages > 0 ||
           rec_fail(err, REC_DATA, "there is no stage to serve queries");
}
