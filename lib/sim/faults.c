#include "faults.h"

#include <math.h>
#include <stdlib.h>

struct changed {
    uint32_t link;
    double factor; /* not 1 */
};

struct sim_faults {
    const struct net *net;
    const struct net_fault *fault; /* those of the cluster */
    size_t n, happened;
    struct changed *changed; /* links that are not well, in order */
    size_t nchanged, room;
};

struct sim_faults *
sim_faults_new(const struct net *net, struct rec_error *err)
{
    struct sim_faults *f = calloc(1, sizeof *f);
    if (!f) {
        rec_fail_memory(err);
        return NULL;
    }
    f->net = net;
    f->n = net_faults(net, &f->fault);
    return f;
}

void
sim_faults_free(struct sim_faults *f)
{
    if (!f)
        return;
    free(f->changed);
    free(f);
}

double
sim_faults_next(const struct sim_faults *f)
{
    return f && f->happened < f->n ? f->fault[f->happened].time : (double)INFINITY;
}

/* Index of the first changed link that is not before this one. */
static size_t
position(const struct sim_faults *f, uint32_t link)
{
    size_t from = 0, to = f->nchanged;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (f->changed[middle].link < link)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static double
factor_of(const struct sim_faults *f, uint32_t link)
{
    size_t i = position(f, link);
    return i < f->nchanged && f->changed[i].link == link ? f->changed[i].factor : 1;
}

static bool
uses(const struct sim_member *member, uint32_t link)
{
    const struct sim_layouts *pool = member->layout->pool;
    return pool->sharing->uses && pool->sharing->uses(pool->shared, member, link);
}

bool
sim_faults_touch(const struct sim_member *member)
{
    const struct sim_faults *f = member->layout->pool->faults;
    double time = sim_faults_next(f);
    for (size_t i = f->happened; i < f->n && f->fault[i].time == time; i++)
        if (f->fault[i].factor != factor_of(f, f->fault[i].link) &&
            uses(member, f->fault[i].link))
            return true;
    return false;
}

static bool
change(struct sim_faults *f, uint32_t link, double factor, struct rec_error *err)
{
    size_t i = position(f, link);
    bool is_there = i < f->nchanged && f->changed[i].link == link;
    if (!rec_grow(&f->changed, &f->room, f->nchanged + 1, sizeof *f->changed, err))
        return false;
    if (is_there)
        memmove(f->changed + i, f->changed + i + 1,
                (--f->nchanged - i) * sizeof *f->changed);
    if (factor == 1)
        return true;
    memmove(f->changed + i + 1, f->changed + i, (f->nchanged++ - i) * sizeof *f->changed);
    f->changed[i] = (struct changed){link, factor};
    return true;
}

bool
sim_faults_happen(struct sim_faults *f, struct rec_error *err)
{
    double time = sim_faults_next(f);
    for (; f->happened < f->n && f->fault[f->happened].time == time; f->happened++)
        if (!change(f, f->fault[f->happened].link, f->fault[f->happened].factor, err))
            return false;
    return true;
}

bool
sim_faults_failed(const struct sim_faults *f)
{
    for (size_t i = 0; f && i < f->nchanged; i++)
        if (f->changed[i].factor == 0)
            return true;
    return false;
}

void
sim_faults_apply(const struct sim_faults *f, double *capacity)
{
    for (size_t i = 0; f && i < f->nchanged; i++)
        capacity[f->changed[i].link] *= f->changed[i].factor;
}

static bool
put(struct sim_state *state, const void *bytes, size_t n, struct rec_error *err)
{
    if (!rec_grow(&state->bytes, &state->room, state->n + n, 1, err))
        return false;
    memcpy(state->bytes + state->n, bytes, n);
    state->n += n;
    return true;
}

/* The changed links among those of the member, and its servers: they lie to these links
 * as no others may. */
bool
sim_faults_state(const struct sim_member *member, uint32_t number,
                 struct sim_state *state, struct rec_error *err)
{
    const struct sim_layouts *pool = member->layout->pool;
    const struct sim_faults *f = pool ? pool->faults : NULL;
    size_t before = state->n;
    for (size_t i = 0; f && member->health == SIM_AS_IT_IS && i < f->nchanged; i++) {
        const struct changed *one = &f->changed[i];
        if (!uses(member, one->link))
            continue;
        if ((state->n == before && !put(state, &number, sizeof number, err)) ||
            !put(state, &one->link, sizeof one->link, err) ||
            !put(state, &one->factor, sizeof one->factor, err))
            return false;
    }
    return state->n == before ||
           put(state, member->servers,
               member->layout->where.nslots * sizeof *member->servers, err);
}

bool
sim_faults_stop(const struct sim_faults *f, uint32_t link, struct rec_str job,
                struct rec_error *err)
{
    char from[NET_NODE_MAX], to[NET_NODE_MAX];
    const struct net_fault *failed = f->fault;
    struct net_link ends;
    for (size_t i = 0; i < f->happened; i++)
        if (f->fault[i].link == link && f->fault[i].factor == 0)
            failed = &f->fault[i];
    net_link(f->net, link, &ends);
    net_format_node(f->net, ends.from, from);
    net_format_node(f->net, ends.to, to);
    return rec_fail_at(
        err, failed->file, failed->line,
        "the link from '%s' to '%s' fails at %.17g and never recovers, but "
        "job '%.*s' needs it: it would never end",
        from, to, failed->time, REC_SAID(job));
}
