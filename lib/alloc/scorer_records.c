/*
 * The weights of the learned chooser as records. Those of features that a file does not
 * name are 0. But learn names all of them: if one is missing in what it wrote, a line was
 * lost.
 */
#include "private.h"
#include "value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* With larger weights a score might be no number, and no job would start. */
#define WEIGHT_MOST 1e100

static int
find_feature(struct rec_str name)
{
    for (int i = 0; i < ALLOC_FEATURES; i++)
        if (rec_str_is(name, alloc_features[i].name))
            return i;
    return -1;
}

/* While weights are read, NAN marks those that have not come yet, so that one that comes
 * twice is an error. In the end they become 0. */
static void
clear(double *weight, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        weight[i] = NAN;
}

/* The number of hidden units is the largest that a record names: all experts get as
 * many. */
static bool
grow_units(struct alloc_scorer *s, uint32_t units, struct rec_error *err)
{
    size_t have = alloc_scorer_size(s->units), want = alloc_scorer_size(units);
    if (units <= s->units)
        return true;
    for (uint32_t e = 0; e < s->nexperts; e++) {
        double *weight = realloc(s->expert[e].weight, want * sizeof *weight);
        if (!weight)
            return rec_fail_memory(err);
        s->expert[e].weight = weight;
        clear(weight, have, want);
    }
    s->units = units;
    return true;
}

/* Returns where the weight of a record is stored. Its input is a feature, which unit=K
 * puts into hidden unit K, or it is "unit-K", the output of that unit. NULL: *err. */
static double *
place_of(struct alloc_scorer *s, const struct rec_reader *reader, const struct rec *rec,
         struct rec_error *err)
{
    struct rec_str input = rec->field[1], rest = input, word, key;
    double *weight;
    uint64_t unit = 0;
    int feature = find_feature(input);
    bool output = rec_str_split(&rest, '-', &word) && rec_str_is(word, "unit") &&
                  rec_parse_uint(rest, &unit);
    if (rec_find_key(rec, "unit", &key) &&
        (!rec_parse_uint(key, &unit) || unit < 1 || output)) {
        rec_reader_fail(reader, err,
                        "unit must be 1 to %d, and only weights of features may have it",
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
    weight = s->expert[s->nexperts - 1].weight;
    if (unit == 0)
        return &weight[feature];
    return &weight[alloc_scorer_size((uint32_t)unit - 1) +
                   (output ? ALLOC_FEATURES : (size_t)feature)];
}

static bool
read_weight(struct alloc_scorer *s, const struct rec_reader *reader,
            const struct rec *rec, struct rec_error *err)
{
    double *place;
    if (!rec_need(reader, rec, err))
        return false;
    if (s->nexperts == 0) {
        if (!scorer_add_experts(s, 1, err))
            return false;
        clear(s->expert[0].weight, 0, alloc_scorer_size(s->units));
    }
    if (!(place = place_of(s, reader, rec, err)))
        return false;
    if (!isnan(*place))
        return rec_reader_fail(reader, err, "there are two weights of '%.*s'",
                               (int)rec->field[1].len, rec->field[1].ptr);
    if (!rec_get_number(reader, rec, 2, place, err))
        return false;
    return fabs(*place) <= WEIGHT_MOST ||
           rec_reader_fail(reader, err, "a weight must be from -1e100 to 1e100");
}

/* Opens an expert: the weight records that follow are its weights. A file without expert
 * records has one expert, whose center does not matter. */
static bool
read_expert(struct alloc_scorer *s, bool first, const struct rec_reader *reader,
            const struct rec *rec, struct rec_error *err)
{
    struct alloc_expert *expert;
    struct rec_str cluster;
    uint64_t number;
    if (!rec_need(reader, rec, err) || !rec_get_count(reader, rec, 1, &number, err))
        return false;
    if (first && s->nexperts > 0)
        return rec_reader_fail(reader, err,
                               "weights must not come before the first expert record");
    if (number != s->nexperts + 1)
        return rec_reader_fail(
            reader, err,
            "experts must be numbered 1, 2, ...: expert %u must come here, "
            "got %llu",
            s->nexperts + 1, (unsigned long long)number);
    if (!scorer_add_experts(s, 1, err))
        return false;
    expert = &s->expert[s->nexperts - 1];
    clear(expert->weight, 0, alloc_scorer_size(s->units));
    for (int i = 0; i < ALLOC_REGIME; i++) {
        const char *name = alloc_features[alloc_regime[i].feature].name;
        expert->center[i] = NAN;
        if (!rec_key_number(reader, rec, name, &expert->center[i], err))
            return false;
        if (isnan(expert->center[i]))
            return rec_reader_fail(reader, err, "the expert has no %s=", name);
    }
    if (!rec_key_count(reader, rec, "after", &expert->after, err))
        return false;
    if (rec_find_key(rec, "cluster", &cluster)) {
        if (cluster.len >= sizeof expert->cluster)
            return rec_reader_fail(reader, err, "cluster= must have fewer than %zu bytes",
                                   sizeof expert->cluster);
        snprintf(expert->cluster, sizeof expert->cluster, "%.*s", (int)cluster.len,
                 cluster.ptr);
    }
    return true;
}

static bool
read_policy(struct alloc_scorer *s, const struct rec_reader *reader,
            const struct rec *rec, struct rec_error *err)
{
    struct rec_error wrong;
    if (!rec_need(reader, rec, err))
        return false;
    if (s->ways.n)
        return rec_reader_fail(reader, err, "there are two policy records");
    return place_ways_parse(&s->ways, rec->field[1], &wrong) ||
           rec_reader_fail(reader, err, "%s", wrong.text);
}

/* The value of the last expert. */
static bool
read_value(struct alloc_scorer *s, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    struct alloc_expert *expert = s->nexperts ? &s->expert[s->nexperts - 1] : NULL;
    if (!expert || expert->value)
        return rec_reader_fail(reader, err,
                               "a value must come after the weights of an "
                               "expert, one for each");
    return (expert->value = value_read(reader, rec, err)) != NULL;
}

/* Does the provenance of the stream say that learn wrote it? */
static bool
is_from_learn(const struct rec_reader *reader)
{
    struct rec_str rest = rec_str(rec_reader_provenance(reader)), line;
    static const char begin[] = "#@\tlearn ";
    while (rec_str_split(&rest, '\n', &line))
        if (line.len >= sizeof begin - 1 &&
            memcmp(line.ptr, begin, sizeof begin - 1) == 0)
            return true;
    return false;
}

/* Of a file that learn wrote: are all weights there? */
static bool
check_weights(const struct alloc_scorer *s, const char *file, struct rec_error *err)
{
    enum { WIDTH = ALLOC_FEATURES + 1 };
    size_t size = alloc_scorer_size(s->units);
    for (size_t i = 0; i < s->nexperts * size; i++) {
        size_t at = i % size, inside = at - ALLOC_FEATURES;
        char unit[40] = "", input[24];
        if (!isnan(s->expert[i / size].weight[at]))
            continue;
        if (at >= ALLOC_FEATURES && inside % WIDTH == ALLOC_FEATURES)
            snprintf(input, sizeof input, "unit-%zu", inside / WIDTH + 1);
        else if (at >= ALLOC_FEATURES) {
            snprintf(input, sizeof input, "%s", alloc_features[inside % WIDTH].name);
            snprintf(unit, sizeof unit, " in unit %zu", inside / WIDTH + 1);
        } else
            snprintf(input, sizeof input, "%s", alloc_features[at].name);
        return rec_fail(
            err, REC_DATA,
            "%s: expert %zu has no weight of '%s'%s: learn wrote all weights, "
            "so a line was lost (without the #@ lines it would count as 0)",
            file, i / size + 1, input, unit);
    }
    return true;
}

static bool
read_records(struct alloc_scorer *s, struct rec_reader *reader, struct rec_error *err)
{
    struct rec rec;
    bool weights = false, experts = false, learned = false, ok = true;
    struct alloc_value *value = NULL; /* whose units come */
    uint32_t units = 0;
    int status = 0;
    while (ok && (status = rec_next(reader, &rec, err)) > 0) {
        if (value && rec.type != REC_UNIT && rec.type != REC_COMMENT &&
            !value_is_whole(value, units)) {
            ok = rec_reader_fail(reader, err, "units of the value before are missing");
            break;
        }
        if (rec.type == REC_WEIGHT) {
            ok = read_weight(s, reader, &rec, err);
            weights = true;
            learned = learned || is_from_learn(reader);
        } else if (rec.type == REC_POLICY) {
            ok = read_policy(s, reader, &rec, err);
        } else if (rec.type == REC_EXPERT) {
            ok = read_expert(s, !experts, reader, &rec, err);
            experts = true;
        } else if (rec.type == REC_VALUE) {
            ok = read_value(s, reader, &rec, err);
            value = ok ? s->expert[s->nexperts - 1].value : NULL;
            units = 0;
        } else if (rec.type == REC_UNIT) {
            ok = value_read_unit(value, &units, reader, &rec, err);
        }
    }
    if (ok && status == 0 && value && !value_is_whole(value, units))
        return rec_fail(err, REC_DATA, "%s: units of the last value are missing",
                        rec_reader_file(reader));
    return ok && status == 0 &&
           (weights || rec_fail(err, REC_DATA, "%s: there are no weights",
                                rec_reader_file(reader))) &&
           (!learned || check_weights(s, rec_reader_file(reader), err));
}

struct alloc_scorer *
alloc_scorer_read(const char *path, struct rec_error *err)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, err);
    struct alloc_scorer *s = reader ? alloc_scorer_new(0, 0, err) : NULL;
    if (s && !read_records(s, reader, err)) {
        alloc_scorer_free(s);
        s = NULL;
    }
    rec_reader_close(reader);
    for (uint32_t e = 0; s && e < s->nexperts; e++)
        for (size_t i = 0; i < alloc_scorer_size(s->units); i++)
            if (isnan(s->expert[e].weight[i]))
                s->expert[e].weight[i] = 0;
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

/* In the order of struct alloc_expert. */
static void
write_weights(const double *weight, uint32_t units, struct rec_writer *writer)
{
    for (uint32_t unit = 0; unit <= units; unit++) {
        char output[24];
        for (int i = 0; i < ALLOC_FEATURES; i++)
            write_weight(writer, alloc_features[i].name, *weight++, unit);
        snprintf(output, sizeof output, "unit-%u", unit);
        if (unit)
            write_weight(writer, output, *weight++, 0);
    }
}

void
alloc_scorer_write(const struct alloc_scorer *s, struct rec_writer *writer)
{
    if (s->ways.n) {
        char names[PLACE_WAYS_MAX];
        place_ways_format(s->ways, names);
        rec_begin(writer, "policy");
        rec_text_field(writer, names);
        rec_end(writer);
    }
    for (uint32_t e = 0; e < s->nexperts; e++) {
        if (s->nexperts > 1) {
            rec_begin(writer, "expert");
            rec_uint_field(writer, e + 1);
            for (int i = 0; i < ALLOC_REGIME; i++)
                rec_num_key(writer, alloc_features[alloc_regime[i].feature].name,
                            s->expert[e].center[i]);
            if (*s->expert[e].cluster)
                rec_text_key(writer, "cluster", s->expert[e].cluster);
            if (s->expert[e].after)
                rec_uint_key(writer, "after", s->expert[e].after);
            rec_end(writer);
        }
        write_weights(s->expert[e].weight, s->units, writer);
        if (s->expert[e].value)
            value_write(s->expert[e].value, writer);
    }
}
