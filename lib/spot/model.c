/* The model of a spot trace: functions that fit, write and read its figures. Most figures
 * are those of the notebook of Thorpe et al. (2023), with its names. The others are the
 * Weibull distributions of the spacings, fitted by maximum likelihood, and the lists of
 * spacings and counts. */
#include "rampipe/random.h"
#include "rampipe/spot.h"

#include <gsl/gsl_roots.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the table of figures ------------------------------------------------ */

/* A figure's key in the record is its name in struct spot_model; `at` is its offset
 * there. The order is that in which they are written. */
static const struct {
    const char *key;
    size_t at;
} figures[] = {
#define FIGURE(name)                             \
    {                                            \
#name, offsetof(struct spot_model, name) \
    }
    FIGURE(node_rows),
    FIGURE(term_rows),
    FIGURE(mttp_mean_s),
    FIGURE(mttp_std_s),
    FIGURE(total_minutes),
    FIGURE(total_preemptions),
    FIGURE(total_additions),
    FIGURE(preemptions_per_minute),
    FIGURE(additions_per_minute),
    FIGURE(chance_preempt_minute),
    FIGURE(chance_add_minute),
    FIGURE(add_events),
    FIGURE(big_adds),
    FIGURE(prob_big),
    FIGURE(prob_regular),
    FIGURE(regular_mean),
    FIGURE(regular_std),
    FIGURE(preempt_mean),
    FIGURE(preempt_std),
    FIGURE(alt_true_mttp_s),
    FIGURE(alt_true_mttp_std_s),
    FIGURE(alt_big_mean),
    FIGURE(preempt_shape),
    FIGURE(preempt_scale_s),
    FIGURE(add_shape),
    FIGURE(add_scale_s),
    FIGURE(start_instances),
    FIGURE(max_instances),
#undef FIGURE
};
enum { NFIGURES = sizeof figures / sizeof *figures };

static const struct {
    const char *key;
    size_t at;
} lists[] = {
    {"preempt_spacings", offsetof(struct spot_model, preempt_spacings)},
    {"add_spacings", offsetof(struct spot_model, add_spacings)},
    {"preempt_counts", offsetof(struct spot_model, preempt_counts)},
    {"add_counts", offsetof(struct spot_model, add_counts)},
};
enum { NLISTS = sizeof lists / sizeof *lists };

static double *
figure(struct spot_model *model, size_t i)
{
    return (double *)(void *)((char *)model + figures[i].at);
}

static struct spot_values *
list(struct spot_model *model, size_t i)
{
    return (struct spot_values *)(void *)((char *)model + lists[i].at);
}

void
spot_model_clear(struct spot_model *model)
{
    *model = (struct spot_model){0};
    for (size_t i = 0; i < NFIGURES; i++)
        *figure(model, i) = NAN;
}

void
spot_model_free(struct spot_model *model)
{
    for (size_t i = 0; i < NLISTS; i++) {
        free(list(model, i)->at);
        *list(model, i) = (struct spot_values){0};
    }
}

bool
spot_values_add(struct spot_values *v, double value, double weight, struct rec_error *err)
{
    v->total += weight;
    if (v->n > 0 && v->at[v->n - 1].value == value) {
        v->at[v->n - 1].weight += weight;
        return true;
    }
    if (!rec_grow(&v->at, &v->room, v->n + 1, sizeof *v->at, err))
        return false;
    v->loose = v->loose || (v->n > 0 && value < v->at[v->n - 1].value);
    v->at[v->n++] = (struct spot_value){value, weight};
    return true;
}

static int
by_value(const void *a, const void *b)
{
    const struct spot_value *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

void
spot_values_settle(struct spot_values *v)
{
    size_t n = 0;
    if (!v->loose)
        return;
    qsort(v->at, v->n, sizeof *v->at, by_value);
    for (size_t i = 1; i < v->n; i++)
        if (v->at[i].value == v->at[n].value)
            v->at[n].weight += v->at[i].weight;
        else
            v->at[++n] = v->at[i];
    v->n = n + 1;
    v->loose = false;
}

static void
settle_all(struct spot_model *model)
{
    for (size_t i = 0; i < NLISTS; i++)
        spot_values_settle(list(model, i));
}

/* ---- fitting ------------------------------------------------------------- */

/* Mean and sample deviation of the values in [least, most]; NAN if there are none. In two
 * passes: the sum of integers is exact, and squares are taken of differences from the
 * mean, which lose no digits. */
static void
mean_and_std(const struct spot_values *v, double least, double most, double *mean,
             double *std)
{
    double n = 0, sum = 0, square = 0;
    for (size_t i = 0; i < v->n; i++)
        if (v->at[i].value >= least && v->at[i].value <= most) {
            n += v->at[i].weight;
            sum += v->at[i].weight * v->at[i].value;
        }
    *mean = sum / n;
    for (size_t i = 0; i < v->n; i++)
        if (v->at[i].value >= least && v->at[i].value <= most)
            square +=
                v->at[i].weight * (v->at[i].value - *mean) * (v->at[i].value - *mean);
    *std = n > 1 ? sqrt(square / (n - 1)) : n == 1 ? 0 : NAN;
}

struct likelihood {
    const struct spot_values *values;
    double *log; /* ln of each value */
    double mean; /* of the logarithms, weighted */
};

/* The left side of the likelihood equation of the shape k. It rises with k, and is 0 at
 * the most likely shape: sum(x^k ln x)/sum(x^k) - 1/k - mean(ln x). Powers are divided by
 * that of the largest value, so that none overflows. */
static double
shape_equation(double k, void *context)
{
    const struct likelihood *l = context;
    const struct spot_values *v = l->values;
    double top = 0, bottom = 0, largest = l->log[v->n - 1];
    for (size_t i = 0; i < v->n; i++) {
        double power = v->at[i].weight * rng_exp(k * (l->log[i] - largest));
        top += power * l->log[i];
        bottom += power;
    }
    return top / bottom - 1 / k - l->mean;
}

/* Maximum likelihood (Cohen 1965): the shape by Brent's method, the scale by a formula
 * from it. If the shape is outside [low, high], *shape and *scale stay as they are (NAN):
 * spacings that are nearly equal, for example, have a larger shape. */
static bool
find_shape(struct likelihood *likelihood, double *shape, double *scale,
           struct rec_error *err)
{
    const struct spot_values *v = likelihood->values;
    gsl_function f = {shape_equation, likelihood};
    gsl_root_fsolver *solver;
    double sum = 0, low = 1e-3, high = 1e3;

    if (shape_equation(low, likelihood) > 0 || shape_equation(high, likelihood) < 0)
        return true;
    if (!(solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent)))
        return rec_fail_memory(err);
    gsl_root_fsolver_set(solver, &f, low, high);
    for (int i = 0; i < 200; i++) {
        gsl_root_fsolver_iterate(solver);
        low = gsl_root_fsolver_x_lower(solver);
        high = gsl_root_fsolver_x_upper(solver);
        if (high - low <= 1e-13 * high)
            break;
    }
    *shape = gsl_root_fsolver_root(solver);
    gsl_root_fsolver_free(solver);
    for (size_t i = 0; i < v->n; i++)
        sum += v->at[i].weight * rng_pow(v->at[i].value, *shape);
    *scale = rng_pow(sum / v->total, 1 / *shape);
    return true;
}

static bool
fit_weibull(const struct spot_values *v, double *shape, double *scale,
            struct rec_error *err)
{
    struct likelihood l = {.values = v};
    bool ok;
    if (v->n < 2)
        return true;
    if (!(l.log = calloc(v->n, sizeof *l.log)))
        return rec_fail_memory(err);
    for (size_t i = 0; i < v->n; i++) {
        l.log[i] = rng_log(v->at[i].value);
        l.mean += v->at[i].weight * l.log[i];
    }
    l.mean /= v->total;
    ok = find_shape(&l, shape, scale, err);
    free(l.log);
    return ok;
}

/* Counts of a walk over the events; times in seconds. */
struct walk {
    struct spot_values changes;  /* spacings between rows, seconds */
    double rows, last_row;       /* number of rows, time of the last one */
    double term_rows, last_term; /* times with preemptions */
    double adds, last_add;       /* times with additions */
    double population;           /* instances that are there */
};

static bool
take_row(struct walk *w, double time, struct rec_error *err)
{
    bool ok = w->rows == 0 || spot_values_add(&w->changes, time - w->last_row, 1, err);
    w->rows++;
    w->last_row = time;
    return ok;
}

/* All events of one instant count as one: `added` and `preempted` are their instances. */
static bool
take_instant(struct spot_model *m, struct walk *w, double time, double added,
             double preempted, struct rec_error *err)
{
    bool ok = true;
    if (preempted > 0) {
        ok = (w->term_rows == 0 ||
              spot_values_add(&m->preempt_spacings, time - w->last_term, 1, err)) &&
             spot_values_add(&m->preempt_counts, preempted, 1, err);
        w->term_rows++;
        w->last_term = time;
    }
    if (ok && added > 0) {
        ok = (w->adds == 0 ||
              spot_values_add(&m->add_spacings, time - w->last_add, 1, err)) &&
             spot_values_add(&m->add_counts, added, 1, err);
        w->adds++;
        w->last_add = time;
    }
    w->population = fmax(0, w->population - preempted + added);
    m->max_instances = fmax(m->max_instances, w->population);
    return ok;
}

/* If the log had counts (trace->nrows > 0), its rows are the rows. Otherwise the start is
 * a row, and so is each later time with an event. */
static bool
walk_events(const struct spot_trace *trace, struct spot_model *m, struct walk *w,
            struct rec_error *err)
{
    double added, preempted;
    size_t i = 0;

    m->start_instances = m->max_instances = w->population = (double)trace->instances;
    for (size_t r = 0; r < trace->nrows; r++)
        if (!take_row(w, trace->row[r], err))
            return false;
    if (trace->nrows == 0 && !take_row(w, trace->start, err))
        return false;
    while (i < trace->n) {
        double time = trace->event[i].time;
        added = preempted = 0;
        for (; i < trace->n && trace->event[i].time == time; i++)
            *(trace->event[i].kind == SPOT_ADD ? &added : &preempted) +=
                (double)trace->event[i].count;
        if (trace->populated && trace->instances == 0 && time == trace->start) {
            m->start_instances = m->max_instances = w->population = added;
            added = 0; /* these instances were there when the log began */
        }
        if (trace->nrows == 0 && time > trace->start && added + preempted > 0 &&
            !take_row(w, time, err))
            return false;
        if (!take_instant(m, w, time, added, preempted, err))
            return false;
    }
    return true;
}

static void
share_of_big(struct spot_model *m)
{
    double n = 0, sum = 0;
    for (size_t i = 0; i < m->add_counts.n; i++)
        if (m->add_counts.at[i].value > SPOT_BIG) {
            n += m->add_counts.at[i].weight;
            sum += m->add_counts.at[i].weight * m->add_counts.at[i].value;
        }
    m->big_adds = n;
    if (m->add_events > 0) {
        m->prob_big = n / m->add_events;
        m->prob_regular = (m->add_events - n) / m->add_events;
    } else
        m->prob_big = m->prob_regular = 0;
    if (n > 0)
        m->alt_big_mean = sum / n;
}

static double
sum_of(const struct spot_values *v)
{
    double sum = 0;
    for (size_t i = 0; i < v->n; i++)
        sum += v->at[i].weight * v->at[i].value;
    return sum;
}

/* Lists are filled in the order of the events, and settled (sorted) before they are
 * used. */
bool
spot_model_fit(const struct spot_trace *trace, struct spot_model *m,
               struct rec_error *err)
{
    struct walk w = {0};
    bool ok;

    spot_model_clear(m);
    ok = walk_events(trace, m, &w, err);
    settle_all(m);
    ok = ok &&
         fit_weibull(&m->preempt_spacings, &m->preempt_shape, &m->preempt_scale_s, err) &&
         fit_weibull(&m->add_spacings, &m->add_shape, &m->add_scale_s, err);
    m->node_rows = w.rows;
    m->term_rows = w.term_rows;
    m->add_events = w.adds;
    mean_and_std(&w.changes, 0, INFINITY, &m->mttp_mean_s, &m->mttp_std_s);
    mean_and_std(&m->preempt_spacings, 0, INFINITY, &m->alt_true_mttp_s,
                 &m->alt_true_mttp_std_s);
    mean_and_std(&m->add_counts, 0, SPOT_BIG, &m->regular_mean, &m->regular_std);
    mean_and_std(&m->preempt_counts, 0, INFINITY, &m->preempt_mean, &m->preempt_std);
    m->total_preemptions = sum_of(&m->preempt_counts);
    m->total_additions = sum_of(&m->add_counts);
    m->total_minutes = sum_of(&w.changes) / 60;
    if (m->total_minutes > 0) {
        m->preemptions_per_minute = m->total_preemptions / m->total_minutes;
        m->additions_per_minute = m->total_additions / m->total_minutes;
        m->chance_preempt_minute = m->term_rows / m->total_minutes;
        m->chance_add_minute = m->add_events / m->total_minutes;
    }
    share_of_big(m);
    free(w.changes.at);
    return ok;
}

/* ---- the record ---------------------------------------------------------- */

static void
write_list(struct rec_writer *writer, const char *key, const struct spot_values *v)
{
    if (v->n == 0)
        return;
    rec_text_key(writer, key, "");
    for (size_t i = 0; i < v->n; i++) {
        char text[2 * REC_NUM_MAX + 2], weight[REC_NUM_MAX];
        size_t len = rec_format_num(text, v->at[i].value);
        rec_format_num(weight, v->at[i].weight);
        len += (size_t)snprintf(text + len, sizeof text - len, ":%s%s", weight,
                                i + 1 < v->n ? "," : "");
        rec_put_bytes(writer, text, len);
    }
}

/* A key that is a COUNT in the table of records must be written as an integer: a large
 * count must not become 1e18. */
static void
write_figure(struct rec_writer *writer, const char *key, double value)
{
    const struct rec_field_spec *row = rec_spec_of_kind(REC_MODEL, 0)->keys;
    while (strcmp(row->name, key) != 0)
        row++;
    if (row->kind == REC_KIND_COUNT)
        rec_uint_key(writer, key, value < 0x1p64 ? (uint64_t)value : UINT64_MAX);
    else
        rec_num_key(writer, key, value);
}

void
spot_model_write(const struct spot_model *model, const char *name,
                 struct rec_writer *writer)
{
    struct spot_model *m = (struct spot_model *)(uintptr_t)model;
    rec_begin(writer, "model");
    rec_text_field(writer, "spot");
    rec_text_field(writer, name);
    for (size_t i = 0; i < NFIGURES; i++)
        if (!isnan(*figure(m, i)))
            write_figure(writer, figures[i].key, *figure(m, i));
    for (size_t i = 0; i < NLISTS; i++)
        write_list(writer, lists[i].key, list(m, i));
    rec_end(writer);
}

static bool
read_list(struct spot_values *v, struct rec_str text, struct rec_error *err)
{
    struct rec_str part, value;
    double x, weight;
    while (rec_str_split(&text, ',', &part)) {
        if (!rec_str_split(&part, ':', &value) || !rec_parse_num(value, &x) ||
            !(x >= 0) || isinf(x) || !part.ptr || !rec_parse_num(part, &weight) ||
            !(weight > 0) || isinf(weight))
            return rec_fail(err, REC_DATA, "a list of values must be VALUE:WEIGHT,...");
        if (!spot_values_add(v, x, weight, err))
            return false;
    }
    return true;
}

static bool
read_key(struct spot_model *model, const struct rec_reader *reader, const struct rec *rec,
         struct rec_str key, struct rec_str value, struct rec_error *err)
{
    for (size_t i = 0; i < NFIGURES; i++)
        if (rec_str_is(key, figures[i].key))
            return rec_read_number(reader, rec, rec_key_spec(rec, key), value,
                                   figure(model, i), err);
    for (size_t i = 0; i < NLISTS; i++)
        if (rec_str_is(key, lists[i].key))
            return read_list(list(model, i), value, err) || rec_locate(reader, err);
    return true;
}

bool
spot_model_read(struct spot_model *model, const struct rec_reader *reader,
                const struct rec *rec, struct rec_error *err)
{
    struct rec_str key, value;
    size_t at = 0;
    int status;

    if (!rec_need(reader, rec, err))
        return false;
    if (!rec_str_is(rec->field[1], "spot"))
        return rec_reader_fail(reader, err, "the model is of kind '%.*s', not spot",
                               (int)rec->field[1].len, rec->field[1].ptr);
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        if (!read_key(model, reader, rec, key, value, err))
            return false;
    settle_all(model);
    return status == 0;
}
