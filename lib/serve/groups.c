/* The groups of stages that a search treats separately. Two stages are in one group if
 * they share an ancestor with a model, or one is an ancestor of the other: then what is
 * chosen for one may change what happens at the other. */
#include "search.h"

#include <stdlib.h>

bool
serve_new_set(const struct search *search, struct late *late, struct rec_error *err)
{
    late->n = 0;
    late->bit = calloc(search->words + 1, sizeof *late->bit);
    return late->bit || rec_fail_memory(err);
}

void
serve_free_solution(struct solution *solution)
{
    free(solution->choice);
    free(solution->late.bit);
}

/* ---- groups -------------------------------------------------------------- */

/* Goes back from stage `at` along its edges to the nearest stages with a model. `seen`
 * marks stages that it came to already: several ways may lead to one. */
static void
find_parents(const struct serve_planner *planner, uint32_t at, bool *seen,
             struct parents *parents)
{
    const struct serve_pipeline *p = planner->pipeline;
    for (size_t e = 0; e < p->nedges; e++) {
        uint32_t src = p->edge[e].src;
        if (p->edge[e].dst != at || src == REC_NONE || seen[src])
            continue;
        seen[src] = true;
        if (serve_has_model(planner, src))
            parents->stage[parents->n++] = src;
        else
            find_parents(planner, src, seen, parents);
    }
}

static bool
make_parents(struct search *search, struct rec_error *err)
{
    size_t n = search->planner->pipeline->nstages;
    bool *seen = calloc(n + 1, sizeof *seen), ok = seen || rec_fail_memory(err);
    for (uint32_t s = 0; ok && s < n; s++) {
        search->parents[s].stage = calloc(n, sizeof(uint32_t));
        ok = search->parents[s].stage || rec_fail_memory(err);
        memset(seen, 0, n * sizeof *seen);
        if (ok && serve_has_model(search->planner, s))
            find_parents(search->planner, s, seen, &search->parents[s]);
    }
    free(seen);
    return ok;
}

/* A stage joins the groups of all its parents, which become one group. This is O(n^2),
 * and n is at most SERVE_STAGES_MAX. */
static void
unite_groups(const struct search *search, uint32_t *group_of)
{
    size_t n = search->planner->pipeline->nstages;
    for (uint32_t s = 0; s < n; s++)
        group_of[s] = s;
    for (uint32_t s = 0; s < n; s++)
        for (size_t i = 0; i < search->parents[s].n; i++) {
            uint32_t from = group_of[search->parents[s].stage[i]];
            for (size_t k = 0; k < n; k++)
                if (group_of[k] == from)
                    group_of[k] = group_of[s];
        }
}

static bool
make_groups(struct search *search, struct rec_error *err)
{
    const struct serve_planner *planner = search->planner;
    const struct serve_pipeline *p = planner->pipeline;
    uint32_t *group_of = calloc(p->nstages + 1, sizeof *group_of);
    size_t n = 0;

    if (!group_of)
        return rec_fail_memory(err);
    unite_groups(search, group_of);
    for (uint32_t id = 0; id < p->nstages; id++) {
        struct group *group = &search->group[search->ngroups];
        group->stage = search->order + n;
        for (size_t k = 0; k < p->nstages; k++) {
            uint32_t s = p->order[k];
            if (group_of[s] != id || !serve_has_model(planner, s))
                continue;
            group->stage[group->n++] = s;
            group->cheapest += planner->menu[s].cheapest;
        }
        n += group->n;
        search->ngroups += group->n > 0;
    }
    free(group_of);
    return true;
}

bool
serve_open_search(struct search *search, struct rec_error *err)
{
    size_t n = search->planner->pipeline->nstages + 1;
    search->words = (search->planner->n + 63) / 64;
    search->group = calloc(n, sizeof *search->group);
    search->order = calloc(n, sizeof *search->order);
    search->parents = calloc(n, sizeof *search->parents);
    search->level = calloc(n, sizeof *search->level);
    search->level_of = calloc(n, sizeof *search->level_of);
    search->choice = calloc(n, sizeof *search->choice);
    search->best = calloc(n, sizeof *search->best);
    search->joint = calloc(n, sizeof *search->joint);
    if (!search->group || !search->order || !search->parents || !search->level ||
        !search->level_of || !search->choice || !search->best || !search->joint)
        return rec_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        if (!serve_new_set(search, &search->level[i].late, err) ||
            !serve_new_set(search, &search->joint[i], err))
            return false;
    return make_parents(search, err) && make_groups(search, err);
}

void
serve_close_search(struct search *search)
{
    size_t n = search->planner->pipeline->nstages + 1;
    for (size_t i = 0; search->level && i < n; i++) {
        free(search->level[i].trail.batch);
        free(search->level[i].trail.member);
        free(search->level[i].late.bit);
    }
    for (size_t i = 0; search->joint && i < n; i++)
        free(search->joint[i].bit);
    for (size_t g = 0; search->group && g < n; g++) {
        for (size_t i = 0; i < search->group[g].nsolutions; i++)
            serve_free_solution(&search->group[g].solution[i]);
        free(search->group[g].solution);
    }
    free(search->group);
    for (size_t i = 0; search->parents && i < n; i++)
        free(search->parents[i].stage);
    free(search->order);
    free(search->parents);
    free(search->level);
    free(search->level_of);
    free(search->choice);
    free(search->best);
    free(search->joint);
}
