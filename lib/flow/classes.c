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

/** Links of a set of fans that have one colour. */
struct shade {
    uint64_t colour;
    uint64_t now, sum; /* of the flows over one of them: of this fan, of all so far */
    uint32_t links;
    uint32_t skipped; /* of this fan */
};

/** What a pass knows of a set of fans. */
struct set {
    const uint32_t *fan; /* NULL: it had none so far */
    uint32_t n;
    size_t first; /* their part of shade_of[] */
    size_t shade, shades;
};

struct flow_search {
    struct tint *tint; /* per link */
    uint32_t nlinks;
    uint64_t *sorted; /* per link: room to sort colours */
    struct found *found;
    size_t nfound, found_room;
    uint32_t *via;
    size_t nvia, via_room;
    struct set *set;
    size_t nsets, set_room;
    uint32_t *shade_of; /* per link of each set: its shade, counted from set->shade */
    size_t nshade_of, shade_of_room;
    struct shade *shade;
    size_t nshades, shade_room;
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
    return route->skip <= route->nfan && route->nskip <= route->nfan - route->skip
               ? true
               : rec_fail(err, REC_DATA, "a fan: it skips links that it does not have");
}

/* The shade of a link of the set that is the last one; a new one, if there is none.
 * Neighbours mostly have one colour. */
static bool
find_shade(struct flow_search *search, struct set *set, uint64_t colour, uint32_t *shade,
           struct rec_error *err)
{
    if (set->shades > 0 && search->shade[set->shade + *shade].colour == colour)
        return true;
    for (*shade = 0; *shade < set->shades; ++*shade)
        if (search->shade[set->shade + *shade].colour == colour)
            break;
    if (*shade < set->shades)
        return true;
    if (!rec_grow(&search->shade, &search->shade_room, search->nshades + 1,
                  sizeof *search->shade, err))
        return false;
    search->shade[search->nshades++] = (struct shade){.colour = colour};
    set->shades++;
    return true;
}

/* The set of a fan. Its links are sorted into shades when its first fan comes. NULL:
 * *err. */
static struct set *
find_set(struct flow_search *search, const struct flow_route *route,
         struct rec_error *err)
{
    size_t before = search->nsets;
    struct set *set;
    uint32_t shade = 0;
    if (route->set >= before) {
        if (!rec_grow(&search->set, &search->set_room, (size_t)route->set + 1,
                      sizeof *search->set, err))
            return NULL;
        search->nsets = (size_t)route->set + 1;
        memset(search->set + before, 0, (search->nsets - before) * sizeof *search->set);
    }
    set = &search->set[route->set];
    if (set->fan == route->fan && set->n == route->nfan)
        return set;
    if (set->fan) {
        rec_fail(err, REC_BUG, "flows: two fans of set %u differ", route->set);
        return NULL;
    }
    if (!rec_grow(&search->shade_of, &search->shade_of_room,
                  search->nshade_of + route->nfan, sizeof *search->shade_of, err))
        return NULL;
    *set = (struct set){route->fan, route->nfan, search->nshade_of, search->nshades, 0};
    search->nshade_of += route->nfan;
    for (uint32_t i = 0; i < route->nfan; i++) {
        if (!check_link(search, route->fan[i], err) ||
            !find_shade(search, set, search->tint[route->fan[i]].colour, &shade, err))
            return NULL;
        search->shade_of[set->first + i] = shade;
        search->shade[set->shade + shade].links++;
    }
    return set;
}

/* A link of the set whose shade this is, none of those that the fan skips. */
static uint32_t
link_of_shade(const struct flow_search *search, const struct set *set, uint32_t shade,
              const struct flow_route *route)
{
    uint32_t i = 0;
    while (search->shade_of[set->first + i] != shade ||
           (i >= route->skip && i < route->skip + route->nskip))
        i++;
    return set->fan[i];
}

/* Counts the flows of a fan: those over links of one colour have one class. *total: the
 * sum of their colours. What they add to the links of the fan, these get at the end. */
static bool
count_fan(struct flow_search *search, const struct flow_route *route, uint64_t rest,
          uint32_t most, uint64_t *total, struct rec_error *err)
{
    struct set *set = find_set(search, route, err);
    const uint32_t *shade_of;
    struct shade *shade;
    if (!set)
        return false;
    shade_of = search->shade_of + set->first;
    shade = search->shade + set->shade;
    for (uint32_t i = route->skip; i < route->skip + route->nskip; i++)
        shade[shade_of[i]].skipped++;
    for (uint32_t k = 0; k < set->shades; k++) {
        double flows = (double)(shade[k].links - shade[k].skipped) * route->weight;
        uint64_t colour = rec_mix(rest + shade[k].colour);
        size_t at = find_slot(search, colour);
        uint32_t class = search->slot[at];
        shade[k].skipped = 0;
        shade[k].now = 0;
        if (!(flows > 0))
            continue;
        if (class == FLOW_NONE)
            class = find_class(search, colour, route,
                               link_of_shade(search, set, k, route), most, err);
        if (class == FLOW_NONE)
            return false;
        search->found[class].flows += flows;
        shade[k].now = colour * route->weight;
        shade[k].sum += shade[k].now;
        *total += colour * (uint64_t)flows;
    }
    for (uint32_t i = route->skip; i < route->skip + route->nskip; i++)
        search->tint[route->fan[i]].sum -= shade[shade_of[i]].now;
    return true;
}

/* The links of fans get what their shades have. */
static void
end_sets(struct flow_search *search)
{
    for (size_t s = 0; s < search->nsets; s++) {
        const struct set *set = &search->set[s];
        for (uint32_t i = 0; i < set->n; i++)
            search->tint[set->fan[i]].sum +=
                search->shade[set->shade + search->shade_of[set->first + i]].sum;
    }
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
    search->nsets = search->nshade_of = search->nshades = 0;
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
    end_sets(search);
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
        free(classes->search->set);
        free(classes->search->shade_of);
        free(classes->search->shade);
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
