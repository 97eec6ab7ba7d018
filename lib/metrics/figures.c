/*
 * Computes the results of a reducer: figures, which are quotients of sums, and statistics
 * of distributions. Figures are computed anew each time that they are asked for; nothing
 * here changes what was reduced.
 */
#include "engine.h"

#include <math.h>
#include <stdlib.h>

/* ---- statistics of a distribution ---------------------------------------- */

enum statistic { COUNT, MEAN, ERROR, DEVIATION, LEAST, P50, P95, P99, MOST };
static const char *const statistic_names[METRICS_STATISTICS] = {
    "count", "mean", "se", "sd", "min", "p50", "p95", "p99", "max"};
_Static_assert(MOST + 1 == METRICS_STATISTICS, "a name each");

static double
statistic(struct metrics_dist *dist, enum statistic which)
{
    if (dist->n == 0 && which != COUNT)
        return NAN;
    switch (which) {
    case COUNT: return (double)dist->n;
    case MEAN: return dist->mean;
    case ERROR: return metrics_dist_deviation(dist) / sqrt((double)dist->n);
    case DEVIATION: return metrics_dist_deviation(dist);
    case LEAST: return dist->least;
    case P50: return metrics_dist_quantile(dist, 0.5);
    case P95: return metrics_dist_quantile(dist, 0.95);
    case P99: return metrics_dist_quantile(dist, 0.99);
    case MOST: return dist->most;
    }
    return NAN;
}

void
metrics_describe(bool independent, struct metrics_dist *dist,
                 struct metrics_figure *figure)
{
    figure->n = 0;
    for (int i = 0; i < METRICS_STATISTICS; i++) {
        if (i == ERROR && !independent)
            continue;
        figure->statistic[figure->n] = statistic_names[i];
        figure->value[figure->n++] = statistic(dist, (enum statistic)i);
    }
}

/* ---- terms: the sums of a family, and numbers derived from them --------------- */

/* Fills the terms from the sums of a group, or of an interval; then `group` is the total.
 * A sum is unknown if no case of the group has its amount, and some case lacks it. */
static void
fill_terms(const struct metrics *m, const struct group *group, const double *sum,
           double seconds, double term[])
{
    for (size_t i = 0; i < m->family->nsums; i++) {
        bool lacking = (group->unknown & ~group->known) >> i & 1;
        term[i] = lacking ? (double)NAN : sum[i];
    }
    term[m->family->nsums] = 1;
    if (m->family->derive)
        m->family->derive(m->state, m->seen, seconds, group->id != 0, term);
}

/* From the first moment of all cases to the last. */
static struct metrics_span
span_of(const struct metrics *m)
{
    struct metrics_span all = {NAN, NAN};
    for (size_t i = 0; i < METRICS_MOMENTS; i++) {
        all.from = fmin(all.from, m->seen[i].from);
        all.to = fmax(all.to, m->seen[i].to);
    }
    return all;
}

/* The time of a group is that of all cases: rates of groups then add up to the rate of
 * the total. */
static void
fill_group_terms(const struct metrics *m, const struct group *group, double term[])
{
    struct metrics_span all = span_of(m);
    fill_terms(m, group, group->sum, all.to - all.from, term);
}

static double
ratio(double amount, double per)
{
    return per > 0 ? amount / per : (double)NAN;
}

/* ---- figures ------------------------------------------------------------- */

const struct metrics_family *
metrics_family_of(const struct metrics *m)
{
    return m->family;
}

uint64_t
metrics_cases(const struct metrics *m)
{
    return m->runs ? metrics_runs_count(m->runs) + (m->cases > 0) : m->cases;
}

size_t
metrics_ngroups(const struct metrics *m)
{
    return m->runs ? metrics_runs_ngroups(m->runs) : m->ngroups;
}

const char *
metrics_group_name(const struct metrics *m, size_t group)
{
    return m->runs ? metrics_runs_group(m->runs, group) : m->group[group].name;
}

static void
set_quotient(struct metrics_figure *figure, const struct metrics_quotient *quotient,
             const double term[])
{
    *figure = (struct metrics_figure){
        .name = quotient->name,
        .unit = quotient->unit,
        .n = 1,
        .statistic = {"value"},
        .value = {ratio(term[quotient->amount], term[quotient->per])}};
}

/* Computes the k-th figure of a label in a group. */
static void
set_labelled(const struct metrics *m, const struct group *group,
             const struct label *label, size_t k, const double term[],
             struct metrics_figure *figure)
{
    const struct metrics_family *family = m->family;
    const struct metrics_quotient *quotient = &family->label_figures[k];
    uint64_t n = 0, *rare;
    if (label->index < family->nlabels)
        n = group->labelled[label->index];
    else if ((rare = metrics_labelled(m, group->id, label->index)))
        n = *rare;
    set_quotient(figure, quotient, term);
    figure->name = m->label_figure[label->index * family->nlabel_figures + k];
    figure->value[0] = ratio((double)n, term[quotient->per]);
}

bool
metrics_figure(struct metrics *m, size_t group, size_t i, struct metrics_figure *figure)
{
    return m->runs ? metrics_runs_figure(m->runs, group, i, figure)
                   : metrics_run_figure(m, group, i, figure);
}

/* Figures come in this order: the family's, those of each label, and distributions. */
bool
metrics_run_figure(struct metrics *m, size_t group, size_t i,
                   struct metrics_figure *figure)
{
    const struct metrics_family *family = m->family;
    const struct group *g = &m->group[group];
    size_t nlabelled = m->nlabels * family->nlabel_figures;
    double term[METRICS_MOST];

    if (i < m->nfigures) {
        fill_group_terms(m, g, term);
        set_quotient(figure, &family->figures[m->figure[i]], term);
        return true;
    }
    i -= m->nfigures;
    if (i < nlabelled) {
        fill_group_terms(m, g, term);
        set_labelled(m, g, &m->label[i / family->nlabel_figures],
                     i % family->nlabel_figures, term, figure);
        return true;
    }
    i -= nlabelled;
    if (i >= m->nquantities)
        return false;
    i = m->quantity[i];
    *figure = (struct metrics_figure){.name = family->quantities[i].name,
                                      .unit = family->quantities[i].unit};
    metrics_describe(family->independent, &g->dist[i], figure);
    return true;
}

double
metrics_label_rows(const struct metrics *m)
{
    size_t unknown = m->nlabels - m->family->nlabels;
    return (double)m->ngroups * (double)unknown * (double)m->family->nlabel_figures;
}

/* ---- columns ------------------------------------------------------------- */

bool
metrics_find_shown(const struct metrics_family *family, const struct metrics_show *show,
                   size_t *figure, size_t *which)
{
    *which = 0;
    for (*figure = 0; *figure < family->nfigures; ++*figure)
        if (strcmp(show->figure, family->figures[*figure].name) == 0)
            return strcmp(show->statistic, "value") == 0;
    for (size_t i = 0; i < family->nquantities; i++, ++*figure)
        if (strcmp(show->figure, family->quantities[i].name) == 0)
            for (; *which < METRICS_STATISTICS; ++*which)
                if (strcmp(show->statistic, statistic_names[*which]) == 0)
                    return true;
    return false;
}

/* The value of figure i of a group, counted as metrics_find_shown() does. */
static struct metrics_value
column_value(struct metrics *m, size_t group, size_t i, size_t which)
{
    const struct metrics_family *family = m->family;
    struct metrics_dist *dist = m->group[group].dist;
    const struct metrics_quotient *quotient = &family->figures[i];
    double term[METRICS_MOST];

    if (i >= family->nfigures) {
        i -= family->nfigures;
        return (struct metrics_value){NULL, family->quantities[i].unit,
                                      statistic(&dist[i], (enum statistic)which)};
    }
    fill_group_terms(m, &m->group[group], term);
    return (struct metrics_value){NULL, quotient->unit,
                                  ratio(term[quotient->amount], term[quotient->per])};
}

bool
metrics_column(struct metrics *m, size_t group, size_t i, struct metrics_value *value)
{
    const struct metrics_show *show;
    size_t at, which;

    if (i >= m->nshown)
        return false;
    show = &m->family->shown[m->shown[i]];
    if (m->runs)
        return metrics_runs_mean(m->runs, group, show, value);
    if (!metrics_find_shown(m->family, show, &at, &which))
        return false;
    *value = column_value(m, group, at, which);
    value->name = show->title;
    return true;
}

/* ---- which figures are shown --------------------------------------------- */

/* Has any group a value of figure or quantity i, counted as metrics_find_shown() does? */
static bool
has_value(const struct metrics *m, size_t i)
{
    const struct metrics_family *family = m->family;
    double term[METRICS_MOST];
    if (i >= family->nfigures) /* the total has the values of all groups */
        return m->group[0].dist[i - family->nfigures].n > 0;
    for (size_t g = 0; g < m->ngroups; g++) {
        fill_group_terms(m, &m->group[g], term);
        if (isfinite(
                ratio(term[family->figures[i].amount], term[family->figures[i].per])))
            return true;
    }
    return false;
}

/* Is figure or quantity i, counted as metrics_find_shown() does, one of the optional ones
 * at the end of its list? */
static bool
is_optional(const struct metrics_family *family, size_t i)
{
    return i < family->nfigures ? i + family->noptional_figures >= family->nfigures
                                : i - family->nfigures + family->noptional_quantities >=
                                      family->nquantities;
}

/* Is a column shown? */
static bool
is_shown(const struct metrics *m, const struct metrics_show *show)
{
    struct metrics_value value;
    size_t at, which;
    if (m->runs)
        return metrics_runs_mean(m->runs, 0, show, &value);
    return metrics_find_shown(m->family, show, &at, &which) &&
           (!is_optional(m->family, at) || has_value(m, at));
}

void
metrics_find_present(struct metrics *m)
{
    const struct metrics_family *family = m->family;
    m->nfigures = m->nquantities = m->nshown = 0;
    for (size_t i = 0; i < family->nfigures + family->nquantities; i++) {
        if (is_optional(family, i) && !has_value(m, i))
            continue;
        if (i < family->nfigures)
            m->figure[m->nfigures++] = i;
        else
            m->quantity[m->nquantities++] = i - family->nfigures;
    }
    for (size_t i = 0; i < family->nshown; i++)
        if (is_shown(m, &family->shown[i]))
            m->shown[m->nshown++] = i;
}

/* ---- histogram ----------------------------------------------------------- */

bool
metrics_histogram(struct metrics *m, size_t group, size_t bins,
                  struct metrics_histogram *histogram, struct rec_error *err)
{
    const struct metrics_quantity *quantity = &m->family->quantities[0];
    struct metrics_dist *dist = &m->group[group].dist[0];
    *histogram = (struct metrics_histogram){
        .name = quantity->name, .unit = quantity->unit, .n = dist->n};
    return metrics_dist_bins(dist, bins, &histogram->bin, &histogram->nbins, err);
}

/* ---- series -------------------------------------------------------------- */

size_t
metrics_nintervals(const struct metrics *m)
{
    return m->nintervals;
}

/* The sums of an interval: those of its node in each level, added up in room[]. */
static const double *
sums_of(const struct metrics *m, size_t interval, double room[])
{
    size_t n = m->family->nsums;
    const double *own = m->level[0].sum + interval * n;
    if (m->nlevels == 1)
        return own;
    memcpy(room, own, n * sizeof *room);
    for (size_t k = 1; k < m->nlevels; k++)
        for (size_t i = 0; interval >> k < m->level[k].n && i < n; i++)
            room[i] += m->level[k].sum[(interval >> k) * n + i];
    return room;
}

/* How long an interval is. The last one ends with the run for what lasts; what is counted
 * at a moment, such as the bytes of a job that is done, is counted for the whole length:
 * the run ends with such a moment, however soon the interval has begun. An interval in
 * which a case only ends at its first moment counts whole. */
static double
seconds_of(const struct metrics *m, size_t interval, size_t amount)
{
    bool lasts = amount < m->family->nsums && m->family->sums[amount].rate;
    double rest = span_of(m).to - (double)interval * m->seconds;
    return lasts && rest > 0 ? fmin(rest, m->seconds) : m->seconds;
}

bool
metrics_interval(const struct metrics *m, size_t interval, size_t i,
                 struct metrics_value *value)
{
    const struct metrics_family *family = m->family;
    const struct metrics_quotient *quotient;
    double sums[METRICS_MOST], term[METRICS_MOST];

    if (i > family->nseries)
        return false;
    if (i == 0) {
        *value = (struct metrics_value){"time", "s", (double)interval * m->seconds};
        return true;
    }
    quotient = &family->series[i - 1];
    fill_terms(m, &m->group[0], sums_of(m, interval, sums),
               seconds_of(m, interval, quotient->amount), term);
    *value = (struct metrics_value){quotient->name, quotient->unit,
                                    ratio(term[quotient->amount], term[quotient->per])};
    return true;
}

/* ---- the largest groups --------------------------------------------------------- */

struct ranked {
    double value;
    struct group group;
};

static int
by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value && !(isnan(x->value) && isnan(y->value)))
        return isnan(y->value) || x->value > y->value ? -1 : 1;
    return metrics_compare_names(x->group.name, y->group.name);
}

static double
value_of(struct metrics *m, size_t group, const char *name, const char *statistic)
{
    struct metrics_figure figure;
    for (size_t i = 0; metrics_figure(m, group, i, &figure); i++)
        for (size_t k = 0; strcmp(figure.name, name) == 0 && k < figure.n; k++)
            if (strcmp(figure.statistic[k], statistic) == 0)
                return figure.value[k];
    return NAN;
}

bool
metrics_rank(struct metrics *m, const char *figure, const char *statistic, size_t most,
             struct rec_error *err)
{
    size_t n = m->ngroups - 1;
    struct ranked *list = malloc((n + 1) * sizeof *list);
    if (!list)
        return rec_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        list[i] = (struct ranked){value_of(m, i + 1, figure, statistic), m->group[i + 1]};
    if (n > 0)
        qsort(list, n, sizeof *list, by_value);
    for (size_t i = 0; i < n; i++) {
        m->group[i + 1] = list[i].group;
        for (size_t k = 0; i >= most && k < m->family->nquantities; k++)
            metrics_dist_free(&list[i].group.dist[k]);
        if (i >= most)
            free(list[i].group.dist);
    }
    m->ngroups = 1 + (n < most ? n : most);
    free(list);
    return true;
}
