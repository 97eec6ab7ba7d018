/*
 * Classes of flows that are alike, by colour refinement. A pass enumerates all flows:
 * each flow's colour is a hash of its links' colours, and is added to each of its
 * links. Sums of hashes do not depend on the order, so they are those of multisets.
 * Then links take new colours from their old ones and these sums. When this tells no
 * more links apart than before, the classes of the pass are final.
 */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/** A link's colour, and the sum of the colours of its flows: both are needed at once. */
struct tint {
    uint64_t colour, sum;
};

/** A class during a pass. */
struct found {
    uint64_t colour;
    double flows, bytes, delay;
    uint32_t group;
    uint32_t first, n; /* links of one of its flows, in via[] */
};

struct flow_search {
    struct tint *tint; /* per link */
    uint32_t nlinks;
    uint64_t *sorted; /* per link: room to sort colours */
    struct found *found;
    size_t nfound, found_room;
    uint32_t *via;
    size_t nvia, via_room;
    uint32_t *slot; /* a hash table of found[]; FLOW_NONE: free */
    size_t nslots;  /* a power of two */
    uint32_t *link; /* of all classes, by colour */
    double *crossing;
};

static inline uint64_t
mix_number(uint64_t seed, double value)
{
    uint64_t bits;
    value += 0.0; /* -0 is 0 */
    memcpy(&bits, &value, sizeof bits);
    return rec_mix(seed ^ bits);
}

/* What distinguishes flows whatever their links. */
static inline uint64_t
colour_apart(const struct flow_route *route)
{
    return mix_number(mix_number(rec_mix(route->group), route->delay), route->bytes);
}

/* The sum of what colours a flow, but for a link of a fan. */
static inline uint64_t
sum_of(const struct flow_search *search, const struct flow_route *route, uint64_t apart)
{
    uint64_t sum = apart;
    for (uint32_t i = 0; i < route->n; i++)
        sum += search->tint[route->link[i]].colour;
    return sum;
}

/* ---- classes of a pass ----------------------------------------------------- */

/* Where a colour is in the table, or the free slot where it would be. */
static size_t
find_slot(const struct flow_search *search, uint64_t colour)
{
    size_t i = colour & (search->nslots - 1);
    while (search->slot[i] != FLOW_NONE &&
           search->found[search->slot[i]].colour != colour)
        i = (i + 1) & (search->nslots - 1);
    return i;
}

/* Makes the table twice as large, or large enough for the first classes. */
static bool
grow_table(struct flow_search *search, struct rec_error *err)
{
    size_t nslots = search->nslots ? 2 * search->nslots : 256;
    uint32_t *slot = malloc(nslots * sizeof *slot);
    if (!slot)
        return rec_fail_memory(err);
    free(search->slot);
    search->slot = slot;
    search->nslots = nslots;
    for (size_t i = 0; i < nslots; i++)
        slot[i] = FLOW_NONE;
    for (size_t i = 0; i < search->nfound; i++)
        slot[find_slot(search, search->found[i].colour)] = (uint32_t)i;
    return true;
}

/* The class of a colour; a new one, if there is none. `fan` is the link of the fan;
 * FLOW_NONE: none. Returns FLOW_NONE: *err. */
static uint32_t
find_class(struct flow_search *search, uint64_t colour, const struct flow_route *route,
           uint32_t fan, uint32_t most, struct rec_error *err)
{
    uint32_t n = route->n + (fan != FLOW_NONE);
    size_t at = find_slot(search, colour);
    if (search->slot[at] != FLOW_NONE)
        return search->slot[at];
    if (search->nfound >= most) {
        rec_fail(err, REC_NO, "there are more than %u classes of flows that are alike",
                 most);
        return FLOW_NONE;
    }
    if (!rec_grow(&search->found, &search->found_room, search->nfound + 1,
                  sizeof *search->found, err) ||
        !rec_grow(&search->via, &search->via_room, search->nvia + n, sizeof *search->via,
                  err) ||
        (2 * search->nfound >= search->nslots && !grow_table(search, err)))
        return FLOW_NONE;
    at = find_slot(search, colour);
    search->slot[at] = (uint32_t)search->nfound;
    search->found[search->nfound] = (struct found){.colour = colour,
                                                   .bytes = route->bytes,
                                                   .delay = route->delay,
                                                   .group = route->group,
                                                   .first = (uint32_t)search->nvia,
                                                   .n = n};
    if (route->n > 0)
        memcpy(search->via + search->nvia, route->link, route->n * sizeof *search->via);
    if (fan != FLOW_NONE)
        search->via[search->nvia + route->n] = fan;
    search->nvia += n;
    return (uint32_t)search->nfound++;
}

static inline bool
check_link(const struct flow_search *search, uint32_t link, struct rec_error *err)
{
    return link < search->nlinks ||
           rec_fail(err, REC_DATA, "a flow: there is no link %u, only %u links", link,
                    search->nlinks);
}

static bool
check_route(const struct flow_search *search, const struct flow_route *route,
            struct rec_error *err)
{
    if (!(route->bytes >= 0 && route->bytes < (double)INFINITY))
        return rec_fail(err, REC_DATA,
                        "a flow: the bytes must be a finite number >= 0, got %g",
                        route->bytes);
    if (!(route->delay >= 0 && route->delay < (double)INFINITY))
        return rec_fail(err, REC_DATA,
                        "a flow: the delay must be a finite number >= 0, got %g",
                        route->delay);
    if (route->weight == 0)
        return rec_fail(err, REC_DATA, "a flow: the weight must be at least 1, got 0");
    for (uint32_t i = 0; i < route->n; i++)
        if (!check_link(search, route->link[i], err))
            return false;
    for (uint32_t i = 0; i < route->nfan; i++)
        if (!check_link(search, route->fan[i], err))
            return false;
    return true;
}

/* Counts the flows of a fan, each of which has a class. *total: the sum of their colours.
 * Neighbours mostly have one colour, so it is found once for them all. */
static bool
count_fan(struct flow_search *search, const struct flow_route *route, uint64_t rest,
          uint32_t most, uint64_t *total, struct rec_error *err)
{
    uint64_t colour = 0, tint = 0;
    uint32_t class = FLOW_NONE;
    for (uint32_t i = 0; i < route->nfan; i++) {
        struct tint *one = &search->tint[route->fan[i]];
        if (class == FLOW_NONE || one->colour != tint) {
            tint = one->colour;
            colour = rec_mix(rest + tint);
            class = find_class(search, colour, route, route->fan[i], most, err);
            if (class == FLOW_NONE)
                return false;
            colour *= route->weight;
        }
        search->found[class].flows += route->weight;
        one->sum += colour;
        *total += colour;
    }
    return true;
}

/* Enumerates all flows. *flows: how many there are. */
static bool
pass(struct flow_search *search, const struct flow_source *source, uint32_t most,
     double *flows, struct rec_error *err)
{
    struct flow_route route = {.n = 0}, last = {.bytes = -1};
    uint64_t apart = 0, last_colour = 0;
    uint32_t class = FLOW_NONE;

    for (size_t i = 0; i < search->nslots; i++)
        search->slot[i] = FLOW_NONE;
    search->nfound = search->nvia = 0;
    source->rewind(source->self);
    while (source->next(source->self, &route)) {
        uint64_t rest, total = 0;
        if (!check_route(search, &route, err))
            return false;
        if (route.bytes != last.bytes || route.delay != last.delay ||
            route.group != last.group) {
            apart = colour_apart(&route);
            last = route;
        }
        rest = sum_of(search, &route, apart);
        if (route.nfan > 0) {
            if (!count_fan(search, &route, rest, most, &total, err))
                return false;
        } else {
            uint64_t colour = rec_mix(rest);
            if (class == FLOW_NONE || colour != last_colour) {
                class = find_class(search, colour, &route, FLOW_NONE, most, err);
                if (class == FLOW_NONE)
                    return false;
                last_colour = colour;
            }
            search->found[class].flows += route.weight;
            total = colour * route.weight;
        }
        for (uint32_t i = 0; i < route.n; i++)
            search->tint[route.link[i]].sum += total;
    }
    *flows = 0;
    for (size_t i = 0; i < search->nfound; i++)
        *flows += search->found[i].flows;
    return true;
}

/* ---- colours of links ------------------------------------------------------- */

static int
by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the colours of all links into sorted[], each once. Returns their number. */
static uint32_t
sort_colours(struct flow_search *search)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < search->nlinks; i++)
        search->sorted[i] = search->tint[i].colour;
    if (search->nlinks > 0)
        qsort(search->sorted, search->nlinks, sizeof *search->sorted, by_value);
    for (uint32_t i = 0; i < search->nlinks; i++)
        if (n == 0 || search->sorted[i] != search->sorted[n - 1])
            search->sorted[n++] = search->sorted[i];
    return n;
}

/* Refines the colours until nothing new is told apart. */
static bool
refine(struct flow_classes *classes, const struct flow_source *source, uint32_t most,
       struct rec_error *err)
{
    struct flow_search *search = classes->search;
    uint32_t colours = sort_colours(search), finer;
    for (;;) {
        double flows;
        for (uint32_t i = 0; i < search->nlinks; i++)
            search->tint[i].sum = 0;
        if (!pass(search, source, most, &flows, err))
            return false;
        if (classes->passes++ > 0 && flows != classes->flows)
            return rec_fail(err, REC_BUG, "flows: a source gave %.17g flows, then %.17g",
                            classes->flows, flows);
        classes->flows = flows;
        for (uint32_t i = 0; i < search->nlinks; i++) {
            uint64_t colour = search->tint[i].colour;
            search->tint[i].colour = rec_mix(colour ^ rec_mix(search->tint[i].sum));
            search->tint[i].sum = colour;
        }
        finer = sort_colours(search);
        if (finer == colours)
            break;
        colours = finer;
    }
    /* The classes are those of the colours before the last step. */
    for (uint32_t i = 0; i < search->nlinks; i++)
        search->tint[i].colour = search->tint[i].sum;
    classes->ncolours = sort_colours(search);
    return true;
}

/* ---- the network of classes --------------------------------------------------- */

static uint32_t
number_of(const struct flow_search *search, uint32_t ncolours, uint64_t colour)
{
    const uint64_t *at = bsearch(&colour, search->sorted, ncolours, sizeof *at, by_value);
    return (uint32_t)(at - search->sorted);
}

/* Numbers the colours of the links, and writes the classes with them. */
static bool
write_classes(struct flow_classes *classes, const double *capacity, struct rec_error *err)
{
    struct flow_search *search = classes->search;
    uint32_t used = 0;
    size_t room = search->nvia > 0 ? search->nvia : 1;

    classes->colour = malloc((search->nlinks + (size_t)1) * sizeof *classes->colour);
    classes->capacity = calloc(classes->ncolours + (size_t)1, sizeof *classes->capacity);
    classes->links = calloc(classes->ncolours + (size_t)1, sizeof *classes->links);
    classes->of = malloc((search->nfound + 1) * sizeof *classes->of);
    search->link = malloc(room * sizeof *search->link);
    search->crossing = malloc(room * sizeof *search->crossing);
    if (!classes->colour || !classes->capacity || !classes->links || !classes->of ||
        !search->link || !search->crossing)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < search->nlinks; i++) {
        uint32_t colour = number_of(search, classes->ncolours, search->tint[i].colour);
        classes->colour[i] = colour;
        classes->capacity[colour] = capacity[i];
        classes->links[colour]++;
    }
    for (size_t k = 0; k < search->nfound; k++) {
        const struct found *found = &search->found[k];
        uint32_t n = 0, *link = search->link + used;
        double *crossing = search->crossing + used;
        for (uint32_t i = 0; i < found->n; i++) {
            uint32_t colour = classes->colour[search->via[found->first + i]], at = 0;
            while (at < n && link[at] != colour)
                at++;
            if (at == n) {
                link[n] = colour;
                crossing[n++] = 0;
            }
            crossing[at] += found->flows / classes->links[colour];
        }
        classes->of[classes->n++] = (struct flow_class){
            found->flows, found->bytes, found->delay, found->group, link, crossing, n};
        used += n;
    }
    return true;
}

struct flow_classes *
flow_classes_find(uint32_t n, const double *capacity, const uint32_t *label,
                  const struct flow_source *source, uint32_t most, struct rec_error *err)
{
    struct flow_classes *classes = calloc(1, sizeof *classes);
    struct flow_search *search = classes ? calloc(1, sizeof *search) : NULL;
    bool ok;

    if (classes)
        classes->search = search;
    if (search) {
        search->nlinks = n;
        search->tint = malloc((n + (size_t)1) * sizeof *search->tint);
        search->sorted = malloc((n + (size_t)1) * sizeof *search->sorted);
    }
    ok = search && search->tint && search->sorted;
    if (!ok)
        rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < n; i++) {
        search->tint[i].colour = mix_number(label ? rec_mix(label[i]) : 0, capacity[i]);
        ok = flow_check_capacity(i, capacity[i], err);
    }
    if (ok && grow_table(search, err) && refine(classes, source, most, err) &&
        write_classes(classes, capacity, err))
        return classes;
    flow_classes_free(classes);
    return NULL;
}

void
flow_classes_free(struct flow_classes *classes)
{
    if (!classes)
        return;
    if (classes->search) {
        free(classes->search->tint);
        free(classes->search->sorted);
        free(classes->search->found);
        free(classes->search->via);
        free(classes->search->slot);
        free(classes->search->link);
        free(classes->search->crossing);
        free(classes->search);
    }
    free(classes->of);
    free(classes->capacity);
    free(classes->links);
    free(classes->colour);
    free(classes);
}

uint32_t
flow_classes_of(const struct flow_classes *classes, const struct flow_route *route)
{
    const struct flow_search *search = classes->search;
    uint64_t sum;
    if (!check_route(search, route, NULL))
        return FLOW_NONE;
    sum = sum_of(search, route, colour_apart(route));
    if (route->nfan > 0)
        sum += search->tint[route->fan[0]].colour;
    return search->slot[find_slot(search, rec_mix(sum))];
}

void
flow_classes_example(const struct flow_classes *classes, uint32_t k,
                     struct flow_route *route)
{
    const struct found *found = &classes->search->found[k];
    *route = (struct flow_route){.link = classes->search->via + found->first,
                                 .n = found->n,
                                 .group = found->group,
                                 .weight = 1,
                                 .bytes = found->bytes,
                                 .delay = found->delay};
}
