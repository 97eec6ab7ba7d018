/*
 * The learned chooser: every alternative that can start gets a score, and the highest one
 * wins if it is at least 0 (struct alloc_scorer).
 */
#include "private.h"
#include "value.h"

#include <math.h>
#include <stdlib.h>

bool
scorer_add_experts(struct alloc_scorer *s, uint32_t n, struct rec_error *err)
{
    struct alloc_expert *expert =
        realloc(s->expert, (s->nexperts + n) * sizeof *s->expert);
    if (!expert)
        return rec_fail_memory(err);
    s->expert = expert;
    for (; n > 0; n--) {
        struct alloc_expert *e = &expert[s->nexperts];
        *e = (struct alloc_expert){
            .weight = calloc(alloc_scorer_size(s->units), sizeof *e->weight)};
        if (!e->weight)
            return rec_fail_memory(err);
        s->nexperts++;
    }
    return true;
}

struct alloc_scorer *
alloc_scorer_new(uint32_t units, uint32_t nexperts, struct rec_error *err)
{
    struct alloc_scorer *s = calloc(1, sizeof *s);
    if (!s)
        rec_fail_memory(err);
    else {
        s->units = units;
        if (scorer_add_experts(s, nexperts, err))
            return s;
    }
    alloc_scorer_free(s);
    return NULL;
}

void
alloc_scorer_free(void *self)
{
    struct alloc_scorer *s = self;
    if (!s)
        return;
    for (uint32_t e = 0; e < s->nexperts; e++) {
        alloc_value_free(s->expert[e].value);
        free(s->expert[e].weight);
    }
    free(s->expert);
    free(s);
}

size_t
alloc_scorer_size(uint32_t units)
{
    return ALLOC_FEATURES + (size_t)units * (ALLOC_FEATURES + 1);
}

static double
dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < ALLOC_FEATURES; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The square of the distance of a center from a regime. */
static double
distance(const struct alloc_expert *expert, const double regime[ALLOC_REGIME])
{
    double far = 0;
    for (int i = 0; i < ALLOC_REGIME; i++) {
        double x = (regime[i] - expert->center[i]) / alloc_regime[i].unit;
        far += x * x;
    }
    return far;
}

const struct alloc_value *
alloc_scorer_valued(const struct alloc_scorer *s, uint32_t expert)
{
    const struct alloc_value *found = NULL;
    double nearest = INFINITY;
    for (uint32_t e = 0; e < s->nexperts; e++) {
        const struct alloc_expert *own = &s->expert[expert], *other = &s->expert[e];
        double far = distance(other, own->center);
        if (other->value && far < nearest && strcmp(other->cluster, own->cluster) == 0) {
            nearest = far;
            found = s->expert[e].value;
        }
    }
    return found;
}

uint32_t
alloc_scorer_nearest(const struct alloc_scorer *s, uint32_t expert,
                     const double regime[ALLOC_REGIME])
{
    const char *cluster = s->expert[expert].cluster;
    double nearest = distance(&s->expert[expert], regime);
    for (uint32_t e = 0; e < s->nexperts; e++) {
        double far = distance(&s->expert[e], regime);
        if (far < nearest && strcmp(s->expert[e].cluster, cluster) == 0) {
            nearest = far;
            expert = e;
        }
    }
    return expert;
}

static bool
has_expert(const struct alloc_scorer *s, const char *cluster)
{
    for (uint32_t e = 0; e < s->nexperts; e++)
        if (strcmp(s->expert[e].cluster, cluster) == 0)
            return true;
    return false;
}

/* Whose experts decide here: those with this text in `cluster`. NULL: all of them. */
static const char *
whose(const struct alloc_scorer *s, const struct net *net, char text[NET_TEXT_MAX])
{
    bool named = false;
    for (uint32_t e = 0; e < s->nexperts; e++)
        named = named || *s->expert[e].cluster;
    if (!named)
        return NULL;
    if (net) {
        net_describe(net, text);
        if (has_expert(s, text))
            return text;
    }
    return has_expert(s, "") ? "" : NULL;
}

bool
scorer_is_foreign(const struct alloc_scorer *s, const struct net *net)
{
    char text[NET_TEXT_MAX];
    return s->nexperts > 0 && *s->expert[0].cluster && !whose(s, net, text);
}

/* The expert whose center is nearest to the regime among the features: of those for this
 * cluster; if there are none, of those for any; if there are none, of all. The cluster
 * may be NULL. Those that wait for more than `jobs` count only if there are no others. */
static const struct alloc_expert *
expert_for(const struct alloc_scorer *s, const struct net *net, uint64_t jobs,
           const double feature[ALLOC_FEATURES])
{
    const struct alloc_expert *found = &s->expert[0];
    double nearest = INFINITY, regime[ALLOC_REGIME];
    bool waits = true; /* the one found */
    char text[NET_TEXT_MAX];
    const char *cluster = whose(s, net, text);
    for (int i = 0; i < ALLOC_REGIME; i++)
        regime[i] = feature[alloc_regime[i].feature];
    for (uint32_t e = 0; s->nexperts > 1 && e < s->nexperts; e++) {
        const struct alloc_expert *expert = &s->expert[e];
        double far = distance(expert, regime);
        bool early = jobs <= expert->after;
        if ((cluster && strcmp(expert->cluster, cluster) != 0) || (early && !waits))
            continue;
        if (far < nearest || (waits && !early)) {
            nearest = far;
            found = expert;
            waits = early;
        }
    }
    return found;
}

static const struct alloc_expert *
expert_asked(const struct alloc_scorer *s, const struct alloc_question *q,
             const double feature[ALLOC_FEATURES])
{
    return expert_for(s, pricer_net(q->pricer), q->features->arrivals.n, feature);
}

/* Adds what four hidden units say. Their sums are taken side by side, so that additions
 * need not wait for each other. */
static double
add_four(double all, const double *unit, const double *feature)
{
    enum { WIDTH = ALLOC_FEATURES + 1 };
    double sum[4] = {0};
    for (int i = 0; i < ALLOC_FEATURES; i++)
        for (int u = 0; u < 4; u++)
            sum[u] += unit[u * WIDTH + i] * feature[i];
    for (int u = 0; u < 4; u++)
        all += unit[u * WIDTH + ALLOC_FEATURES] * rng_tanh(sum[u]);
    return all;
}

/* `weight` is laid out as in struct alloc_expert. */
static double
score_of(const double *weight, uint32_t units, const double *feature)
{
    double sum = dot(weight, feature);
    const double *unit = weight + ALLOC_FEATURES;
    uint32_t u = 0;
    for (; u + 4 <= units; u += 4, unit += 4 * (ALLOC_FEATURES + 1))
        sum = add_four(sum, unit, feature);
    for (; u < units; u++, unit += ALLOC_FEATURES + 1)
        sum += unit[ALLOC_FEATURES] * rng_tanh(dot(unit, feature));
    return sum;
}

double
alloc_scorer_score(const struct alloc_scorer *s, uint64_t jobs,
                   const double feature[ALLOC_FEATURES])
{
    return score_of(expert_for(s, NULL, jobs, feature)->weight, s->units, feature);
}

bool
scorer_value(void *scorer, struct alloc_question *q, struct alloc_value **value,
             struct rec_error *err)
{
    const struct alloc_scorer *s = scorer;
    double feature[ALLOC_FEATURES];
    bool any = false;
    *value = NULL;
    for (uint32_t e = 0; e < s->nexperts; e++)
        any = any || (s->expert[e].value && value_suits(s->expert[e].value, q));
    for (uint32_t i = 0, n = alloc_question_count(q); any && i < n; i++) {
        const struct alloc_alternative *alternative = alloc_question_try(q, i, err);
        if (!alternative)
            return false;
        if (alternative->cause || alternative->repeats)
            continue;
        if (!alloc_question_features(q, i, feature, err))
            return false;
        *value = expert_asked(s, q, feature)->value;
        if (*value && !(value_suits(*value, q) && value_knows(*value, q)))
            *value = NULL;
        return true;
    }
    return true;
}

bool
alloc_scorer_judge(void *self, struct alloc_question *q, uint32_t *choice, double *worths,
                   struct rec_error *err)
{
    const struct alloc_scorer *s = self;
    uint32_t n = alloc_question_count(q);
    double best = -INFINITY, feature[ALLOC_FEATURES];
    const double *weight = NULL; /* of one expert: alternatives have the same regime */
    struct alloc_value *value;
    if (!scorer_value(self, q, &value, err))
        return false;
    if (value)
        return value_decide(value, q, choice, worths, err);
    *choice = ALLOC_NONE;
    for (uint32_t i = 0; i < n; i++) {
        const struct alloc_alternative *alternative = alloc_question_try(q, i, err);
        double score;
        if (!alternative)
            return false;
        if (alternative->cause || alternative->repeats)
            continue;
        if (!alloc_question_features(q, i, feature, err))
            return false;
        if (!weight)
            weight = expert_asked(s, q, feature)->weight;
        score = score_of(weight, s->units, feature);
        if (*choice == ALLOC_NONE ? score >= 0 : score > best) {
            best = score;
            *choice = i;
        }
    }
    /* Without a weight no alternative can start: then the job may wait, and is not
     * refused. */
    if (weight && *choice == ALLOC_NONE)
        *choice = ALLOC_REFUSED;
    return true;
}

bool
alloc_scorer_decide(void *self, struct alloc_question *q, uint32_t *choice,
                    struct rec_error *err)
{
    return alloc_scorer_judge(self, q, choice, NULL, err);
}
