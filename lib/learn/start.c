/*
 * The policies that training can start from, as weights of features. For each setting the
 * best of them is where the search begins, so it does not have to find these simple rules
 * by itself. learn.h has the formulas.
 */
#include "start.h"

/* One weight of a policy. */
struct term {
    const char *feature;
    double weight;
};

/* Sets all weights to 0, and those of the terms to `size` times theirs. */
static void
set(double *weight, double size, const struct term *term, size_t nterms)
{
    for (int i = 0; i < ALLOC_FEATURES; i++) {
        weight[i] = 0;
        for (size_t k = 0; k < nterms; k++)
            if (term[k].feature && strcmp(alloc_features[i].name, term[k].feature) == 0)
                weight[i] = size * term[k].weight;
    }
}

/* Takes jobs on d servers and on no other number: the score is a parabola in h(n) with
 * its peak at h(d). With a reserve it takes only short jobs (of less than the mean work)
 * if no block of d servers would be free when the next job is due. */
static void
prefer(uint32_t servers, uint32_t d, bool reserve, double size, double *weight)
{
    double h = rng_log1p(d) / rng_log1p(servers);
    double sharp = 20 * rng_log1p(servers) * rng_log1p(servers);
    const struct term terms[] = {{"one", (reserve ? 0 : 1) - sharp * h * h},
                                 {"height", 2 * sharp * h},
                                 {"height2", -sharp},
                                 {"block-1", reserve ? 1 / h : 0},
                                 {"size", reserve ? -1 : 0}};
    set(weight, size, terms, sizeof terms / sizeof *terms);
}

/* Prefers many servers for little work, so that large blocks are free again soon. Refuses
 * alternatives that are worth less than `least`. */
static void
pack(double least, double size, double *weight)
{
    const struct term terms[] = {{"height", 2},  {"work", -1},   {"overhead", -1},
                                 {"block-1", 3}, {"block-3", 3}, {"free-1", -2},
                                 {"free-3", -2}, {"one", -least}};
    set(weight, size, terms, sizeof terms / sizeof *terms);
}

/* Take the fewest servers that meet the deadline, and refuse no job. Where few jobs come,
 * hardly anything is better. Of equally many servers the first one takes the first
 * alternative, the second what leaves the largest block, now and later, and the third
 * what leaves the most blocks. Which of them is best depends on the shape of the cluster.
 */
static const struct term fewest[LEARN_FEWEST][7] = {
    {{"one", 50}, {"servers", -50}},
    {{"one", 50}, {"servers", -50}, {"block-1", 5}, {"block-3", 5}, {"block-9", 5}},
    {{"one", 50},
     {"servers", -50},
     {"share-1", 3},
     {"share-2", 3},
     {"share-3", 3},
     {"share-4", 3},
     {"share-8", 3}}};

/* Takes the least work that meets the deadline, unless it is more than a limit: a half,
 * and `steep` times the free share of the cluster, in mean works. All jobs are worth the
 * same, and a server-second has a price that rises as the cluster fills (Talluri and van
 * Ryzin, "The Theory and Practice of Revenue Management", 2004: bid prices). */
static void
price(double steep, double size, double *weight)
{
    const struct term terms[] = {{"one", 0.5 + steep}, {"full", -steep}, {"work", -1},
                                 {"servers", -1},      {"block-1", 0.1}, {"block-3", 0.1},
                                 {"block-9", 0.1}};
    set(weight, size, terms, sizeof terms / sizeof *terms);
}

uint32_t
learn_starts(uint32_t servers, double size, double weight[LEARN_STARTS][ALLOC_FEATURES])
{
    uint32_t n = 0;
    for (int i = 0; i < LEARN_FEWEST; i++)
        set(weight[n++], size, fewest[i], sizeof fewest[i] / sizeof *fewest[i]);
    price(5, size, weight[n++]);
    price(40, size, weight[n++]);
    set(weight[n++], size, NULL, 0);
    for (uint64_t d = 1; d <= servers; d *= 2)
        for (int reserve = 0; reserve < 2; reserve++)
            prefer(servers, (uint32_t)d, reserve, size, weight[n++]);
    for (int least = 0; least <= 2; least++)
        pack(least / 2., size, weight[n++]);
    return n;
}
