/*
 * Pieces that are folded: a round of many servers is carried as classes of flows that are
 * alike (fold.h), and so is all else that may be on the same links. Links of one colour
 * are one link then.
 *
 * Classes are found for what was sent so far. If something new is sent, or the capacity
 * of a link changes, they are found anew. While something is under way, links that were
 * told apart stay so: new classes are parts of old ones, so flows that are under way are
 * split, and each part goes on with what is left of its bytes.
 */
#include "carrying.h"

#include <stdlib.h>

uint32_t
sim_folded_link(const struct sim_carrier *c, uint32_t link)
{
    uint32_t i = 0;
    if (!c->fold || link == NONE)
        return link;
    while (c->classes.found->colour[i] != link)
        i++;
    return i;
}

bool
sim_folded_join(struct sim_carrier *c, uint32_t i, struct rec_error *err)
{
    struct net_transfer transfer = {c->piece[i].from, c->piece[i].to, 1};
    uint32_t groups = sim_fold_groups(c->fold);
    if (!sim_fold_add(c->fold, &transfer, NULL, 1, &c->piece[i].group, err))
        return false;
    c->stale = c->stale || sim_fold_groups(c->fold) > groups;
    return true;
}

bool
sim_folded_open(struct sim_carrier *c, struct rec_error *err)
{
    uint32_t n = net_links(c->net);
    if (c->fold)
        return true;
    if (!(c->capacity = malloc(((size_t)n + 1) * sizeof *c->capacity)))
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        struct flow_load load;
        flow_load(c->links, i, &load); /* a capacity may have changed */
        c->capacity[i] = load.capacity;
    }
    if (!(c->fold = sim_fold_new(c->net, err)))
        return false;
    for (uint32_t i = 0; i < c->npieces; i++)
        if (c->piece[i].sent != NONE && !sim_folded_join(c, i, err))
            return false;
    c->stale = true;
    return true;
}

void
sim_folded_close(struct sim_carrier *c)
{
    sim_fold_free(c->fold);
    sim_classes_free(&c->classes);
    free(c->capacity);
}

/* ---- new classes ------------------------------------------------------------- */

static bool
is_under_way(const struct piece *piece)
{
    return piece->sent != NONE && piece->flow != NONE;
}

/* Links that were told apart stay so while something is under way. */
static uint32_t *
make_labels(const struct sim_carrier *c, const struct sim_classes *beside, bool under_way)
{
    uint32_t n = net_links(c->net), *label = calloc((size_t)n + 1, sizeof *label);
    for (uint32_t i = 0; label && i < n; i++) {
        uint64_t name = under_way && c->classes.found ? c->classes.found->colour[i] : 0;
        if (beside)
            name = rec_mix(name ^ rec_mix(beside->found->colour[i] + (uint64_t)1));
        label[i] = (uint32_t)name;
    }
    return label;
}

/* A class belongs to another one, of which it is a part, or all. */
static bool
is_part(const struct sim_classes *classes, uint32_t k, const struct sim_classes *of,
        uint32_t group, uint32_t class)
{
    struct flow_route route;
    flow_classes_example(classes->found, k, &route);
    route.group = group;
    return flow_classes_of(of->found, &route) == class;
}

bool
sim_folded_start(struct sim_carrier *c, uint32_t i, double time,
                 const struct sim_classes *within, uint32_t group, uint32_t class,
                 struct rec_error *err)
{
    const struct sim_classes *classes = &c->classes;
    struct piece like = c->piece[i];
    bool first = true;
    for (uint32_t k = classes->first[like.group]; k < classes->first[like.group + 1];
         k++) {
        const struct flow_class *one = &classes->found->of[classes->class[k]];
        struct flow_spec spec = {.bytes = like.bytes,
                                 .weight = one->flows,
                                 .link = one->link,
                                 .n = one->n,
                                 .crossing = one->crossing};
        if (within && !is_part(classes, classes->class[k], within, group, class))
            continue;
        if (!first) {
            uint32_t version;
            i = sim_carrier_take_piece(c, err);
            if (i == NONE)
                return false;
            version = c->piece[i].version;
            c->piece[i] = like;
            c->piece[i].version = version;
            c->sent[like.sent].pieces++;
        }
        first = false;
        c->piece[i].class = classes->class[k];
        spec.id = i;
        if (!flow_start(c->links, time, &spec, &c->piece[i].flow, err))
            return false;
    }
    return !first || rec_fail(err, REC_BUG, "a class of flows was lost");
}

/* Starts again what was under way on links that are no longer used. */
static bool
move_over(struct sim_carrier *c, struct flow_links *links,
          const struct sim_classes *before, double time, struct rec_error *err)
{
    /* Parts get pieces that are free now, so it is listed before what is to be moved. */
    uint32_t *list = malloc((c->npieces + 1) * sizeof *list);
    size_t n = 0;
    bool ok = list || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < c->npieces; i++)
        if (is_under_way(&c->piece[i]))
            list[n++] = i;
    for (size_t k = 0; ok && k < n; k++) {
        struct piece *piece = &c->piece[list[k]];
        ok = flow_stop(links, time, piece->flow, &piece->bytes, err) &&
             sim_folded_start(c, list[k], time, before->found ? before : NULL,
                              piece->group, piece->class, err);
    }
    free(list);
    return ok;
}

bool
sim_folded_refresh(struct sim_carrier *c, const struct sim_classes *beside, double time,
                   struct rec_error *err)
{
    struct flow_links *links = c->links;
    struct sim_classes before = c->classes;
    bool under_way = false, ok;
    uint32_t *label;

    if (!c->stale && !beside)
        return true;
    for (size_t i = 0; i < c->npieces; i++)
        under_way = under_way || is_under_way(&c->piece[i]);
    label = make_labels(c, beside, under_way);
    c->classes = (struct sim_classes){.found = NULL};
    c->links = NULL;
    ok = (label || rec_fail_memory(err)) &&
         sim_fold_find(c->fold, c->capacity, label, &c->classes, err) &&
         (c->links = flow_links_new(c->classes.found->ncolours,
                                    c->classes.found->capacity, err)) &&
         move_over(c, links, &before, time, err);
    c->stale = !ok;
    c->why.named = false;
    if (c->loads)
        sim_loads_take(c->loads, links, before.found ? before.found->colour : NULL,
                       before.found ? before.found->ncolours : 0);
    free(label);
    sim_classes_free(&before);
    flow_links_free(links);
    return ok;
}
