/* A learned chooser: one score an alternative, the highest wins; nothing if all are below 0. */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct alloc_scorer *
alloc_scorer_new(uint32_t units, struct rec_error *err)
{
    struct alloc_scorer *s = calloc(1, sizeof *s);
    if (s && (s->weight = calloc(alloc_scorer_size(units), sizeof *s->weight))) {
        s->units = units;
        return s;
    }
    free(s);
    rec_fail_memory(err);
    return NULL;
}

void
alloc_scorer_free(void *self)
{
    struct alloc_scorer *s = self;
    if (s)
        free(s->weight);
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

/* tanh(x), with the same bits on every machine. */
static double
squash(double x)
{
    double e = rng_exp(-2 * fabs(x)), y = (1 - e) / (1 + e);
    return x < 0 ? -y : y;
}

double
alloc_scorer_score(const struct alloc_scorer *s, const double feature[ALLOC_FEATURES])
{
    double sum = dot(s->weight, feature);
    const double *unit = s->weight + ALLOC_FEATURES;
    for (uint32_t u = 0; u < s->units; u++, unit += ALLOC_FEATURES + 1)
        sum += unit[ALLOC_FEATURES] * squash(dot(unit, feature));
    return sum;
}

bool
alloc_scorer_decide(void *self, struct alloc_question *q, uint32_t *choice,
                    struct rec_error *err)
{
    const struct alloc_scorer *s = self;
    uint32_t n = alloc_question_count(q);
    double best = -INFINITY, feature[ALLOC_FEATURES];
    bool any = false;
    *choice = ALLOC_NONE;
    for (uint32_t i = 0; i < n; i++) {
        const struct alloc_alternative *alternative = alloc_question_try(q, i, err);
        double score;
        if (!alternative)
            return false;
        if (alternative->cause)
            continue;
        if (!alloc_question_features(q, i, feature, err))
            return false;
        any = true;
        score = alloc_scorer_score(s, feature);
        if (*choice == ALLOC_NONE ? score >= 0 : score > best) {
            best = score;
            *choice = i;
        }
    }
    if (any && *choice == ALLOC_NONE)
        *choice = ALLOC_REFUSED;
    return true;
}

/* ---- records ------------------------------------------------------------- */

static int
find_feature(struct rec_str name)
{
    for (int i = 0; i < ALLOC_FEATURES; i++)
        if (rec_str_is(name, alloc_features[i].name))
            return i;
    return -1;
}

static bool
grow_units(struct alloc_scorer *s, uint32_t units, struct rec_error *err)
{
    size_t have = alloc_scorer_size(s->units), want = alloc_scorer_size(units);
    double *weight;
    if (units <= s->units)
        return true;
    if (!(weight = realloc(s->weight, want * sizeof *weight)))
        return rec_fail_memory(err);
    for (size_t i = have; i < want; i++)
        weight[i] = NAN;
    s->weight = weight;
    s->units = units;
    return true;
}

/* Where the weight of a record goes: NULL, and *err. */
static double *
place_of(struct alloc_scorer *s, const struct rec_reader *reader, const struct rec *rec,
         struct rec_error *err)
{
    struct rec_str input = rec->field[1], rest = input, word, key;
    uint64_t unit = 0;
    int feature = find_feature(input);
    bool output = rec_str_split(&rest, '-', &word) && rec_str_is(word, "unit") &&
                  rec_parse_uint(rest, &unit);
    if (rec_find_key(rec, "unit", &key) &&
        (!rec_parse_uint(key, &unit) || unit < 1 || output)) {
        rec_reader_fail(reader, err, "unit must be 1 to %d, and of a feature's weight",
                        ALLOC_UNITS_MAX);
        return NULL;
    }
    if (feature < 0 && !output) {
        rec_reader_fail(reader, err, "there is no feature '%.*s'; see ramp-alloc(1)",
                        (int)input.len, input.ptr);
        return NULL;
    }
    if (unit > ALLOC_UNITS_MAX || (output && unit < 1)) {
        rec_reader_fail(reader, err, "unit must be 1 to %d", ALLOC_UNITS_MAX);
        return NULL;
    }
    if (!grow_units(s, (uint32_t)unit, err))
        return NULL;
    if (unit == 0)
        return &s->weight[feature];
    return &s->weight[alloc_scorer_size((uint32_t)unit - 1) +
                      (output ? ALLOC_FEATURES : (size_t)feature)];
}

/* Reads a stream of weights, all of which are NAN; so are those that do not come. */
static bool
read_weights(struct alloc_scorer *s, struct rec_reader *reader, struct rec_error *err)
{
    struct rec rec;
    bool found = false;
    int status;
    while ((status = rec_next(reader, &rec, err)) > 0) {
        double *place;
        if (rec.type != REC_WEIGHT)
            continue;
        found = true;
        if (!rec_need(reader, &rec, err) || !(place = place_of(s, reader, &rec, err)))
            return false;
        if (!isnan(*place))
            return rec_reader_fail(reader, err, "the weight of '%.*s' stands twice",
                                   (int)rec.field[1].len, rec.field[1].ptr);
        if (!rec_get_number(reader, &rec, 2, place, err))
            return false;
    }
    return status == 0 && (found || rec_fail(err, REC_DATA, "%s: there are no weights",
                                             rec_reader_file(reader)));
}

struct alloc_scorer *
alloc_scorer_read(const char *path, struct rec_error *err)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, err);
    struct alloc_scorer *s = reader ? alloc_scorer_new(0, err) : NULL;
    for (int i = 0; s && i < ALLOC_FEATURES; i++)
        s->weight[i] = NAN;
    if (s && !read_weights(s, reader, err)) {
        alloc_scorer_free(s);
        s = NULL;
    }
    for (size_t i = 0; s && i < alloc_scorer_size(s->units); i++)
        if (isnan(s->weight[i]))
            s->weight[i] = 0;
    rec_reader_close(reader);
    return s;
}

void *
alloc_scorer_open(const struct alloc_choice *choice, struct rec_error *err)
{
    return alloc_scorer_read(choice->argument, err);
}

static void
write_weight(struct rec_writer *writer, const char *input, double value, uint32_t unit)
{
    rec_begin(writer, "weight");
    rec_text_field(writer, input);
    rec_num_field(writer, value);
    if (unit)
        rec_uint_key(writer, "unit", unit);
    rec_end(writer);
}

void
alloc_scorer_write(const struct alloc_scorer *s, struct rec_writer *writer)
{
    const double *weight = s->weight;
    for (uint32_t unit = 0; unit <= s->units; unit++) {
        char output[24];
        for (int i = 0; i < ALLOC_FEATURES; i++)
            write_weight(writer, alloc_features[i].name, *weight++, unit);
        snprintf(output, sizeof output, "unit-%u", unit);
        if (unit)
            write_weight(writer, output, *weight++, 0);
    }
}
