/*
 * What links carry over time: rate records, each of which says at what rate a job sends
 * over a link for a while. The counter of a link is their sum at each instant.
 */
#include "private.h"

#include <stdlib.h>

/* A rate begins or ends. */
struct change {
    int64_t at;
    double more; /* bytes/s */
    uint32_t link;
};

void
timeline_links_free(struct timeline_links *links)
{
    rec_map_free(&links->names);
    free(links->link);
    free(links->rate);
    *links = (struct timeline_links){.nlinks = 0};
}

bool
timeline_add_rate(struct timeline *t, struct rec_str name, double capacity,
                  const struct timeline_rate *rate, double bytes, struct rec_error *err)
{
    struct timeline_links *links = &t->links;
    struct timeline_rate *kept;
    uint32_t i = rec_map_get(&links->names, name);
    const char *copy;
    if (i == REC_NONE) {
        i = (uint32_t)links->nlinks;
        if (!rec_grow(&links->link, &links->link_room, i + (size_t)1, sizeof *links->link,
                      err) ||
            !(copy = rec_arena_copy(&t->arena, name, err)) ||
            !rec_map_add(&links->names, (struct rec_str){copy, name.len}, i, err))
            return false;
        links->link[links->nlinks++] = (struct timeline_link){.name = copy};
    }
    if (!rec_grow(&links->rate, &links->rate_room, links->nrates + 1, sizeof *links->rate,
                  err))
        return false;
    kept = &links->rate[links->nrates++];
    *kept = *rate;
    kept->link = i;
    links->link[i].seconds += capacity > 0 ? bytes / capacity : 0;
    links->link[i].memory = capacity < 0;
    return true;
}

static int
by_load(const void *a, const void *b, void *context)
{
    const struct timeline_link *link = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (link[x].seconds != link[y].seconds)
        return link[x].seconds > link[y].seconds ? -1 : 1;
    return (x > y) - (x < y);
}

/* Marks the links that get a counter. */
static bool
choose(struct timeline_links *links, uint64_t most, struct rec_error *err)
{
    uint32_t *order = malloc((links->nlinks + 1) * sizeof *order);
    if (!order)
        return rec_fail_memory(err);
    for (size_t i = 0; i < links->nlinks; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, links->nlinks, sizeof *order, by_load, links->link);
    for (size_t i = 0; i < links->nlinks; i++) {
        struct timeline_link *link = &links->link[order[i]];
        link->shown = link->memory || most > 0;
        most -= !link->memory && most > 0;
    }
    free(order);
    return true;
}

static int
by_link(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->link != y->link)
        return x->link < y->link ? -1 : 1;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->more > y->more) - (x->more < y->more); /* sums do not depend on jobs */
}

/* One value for each instant at which the rate of a link changes. */
static size_t
add_up(const struct change *change, size_t n, struct timeline_point *point)
{
    size_t found = 0;
    double sum = 0;
    uint32_t under_way = 0;
    for (size_t i = 0; i < n; i++) {
        bool last = i + 1 == n || change[i + 1].link != change[i].link;
        sum += change[i].more;
        under_way += change[i].more > 0 ? 1 : -1u;
        if (under_way == 0)
            sum = 0; /* removes rounding errors of the sum */
        if (last || change[i + 1].at != change[i].at)
            point[found++] = (struct timeline_point){change[i].at, sum, change[i].link};
    }
    return found;
}

static bool
find_processes(struct timeline *t, const struct timeline_point *point, size_t n,
               struct rec_error *err)
{
    struct timeline_links *links = &t->links;
    bool some[2] = {false, false};
    for (size_t i = 0; i < n; i++)
        some[links->link[point[i].link].memory] = true;
    return (!some[0] ||
            timeline_find_process(t, rec_str("links, bytes/s"), &links->process, err)) &&
           (!some[1] ||
            timeline_find_process(t, rec_str("memory, bytes"), &links->memory, err));
}

bool
timeline_make_points(struct timeline *t, struct timeline_point **point, size_t *n,
                     struct rec_error *err)
{
    struct timeline_links *links = &t->links;
    struct change *change = malloc((2 * links->nrates + 1) * sizeof *change);
    size_t changes = 0;
    *n = 0;
    *point = malloc((2 * links->nrates + 1) * sizeof **point);
    if (!change || !*point || !choose(links, t->most, err)) {
        free(change);
        return rec_fail_memory(err);
    }
    for (size_t i = 0; i < links->nrates; i++) {
        const struct timeline_rate *rate = &links->rate[i];
        if (!links->link[rate->link].shown || rate->to <= rate->from || rate->rate <= 0)
            continue;
        change[changes++] = (struct change){rate->from, rate->rate, rate->link};
        change[changes++] = (struct change){rate->to, -rate->rate, rate->link};
    }
    if (changes > 1)
        qsort(change, changes, sizeof *change, by_link);
    *n = add_up(change, changes, *point);
    free(change);
    return find_processes(t, *point, *n, err);
}
