/* The worth of a state of the cluster (value.h), and its records. */
#include "floats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIGITS = 4 };

/* With weights up to this, no sum of three layers can be more than a float holds. */
#define WEIGHT_MOST 1e9

/* In all layers. */
static uint32_t
units_of(const struct alloc_value *v)
{
    return v->units + v->second + 1;
}

uint32_t
value_inputs(const struct alloc_value *v)
{
    return value_kinds_at(v) + v->nkinds;
}

uint32_t
value_ordered_at(const struct alloc_value *v)
{
    return (v->servers + 2 * v->nshapes) * VALUE_SCALES;
}

uint32_t
value_kinds_at(const struct alloc_value *v)
{
    return value_ordered_at(v) + (v->ordered ? v->servers : 0) * VALUE_SCALES;
}

size_t
value_weights(const struct alloc_value *v)
{
    return ((size_t)value_inputs(v) + 1) * v->units + ((size_t)v->units + 1) * v->second +
           v->second + 1;
}

float *
value_first(const struct alloc_value *v, uint32_t input)
{
    return v->weight + (size_t)input * v->units;
}

float *
value_first_bias(const struct alloc_value *v)
{
    return value_first(v, value_inputs(v));
}

float *
value_second(const struct alloc_value *v, uint32_t unit)
{
    return value_first_bias(v) + v->units + (size_t)unit * v->second;
}

float *
value_second_bias(const struct alloc_value *v)
{
    return value_second(v, v->units);
}

float *
value_third(const struct alloc_value *v)
{
    return value_second_bias(v) + v->second;
}

float *
value_third_bias(const struct alloc_value *v)
{
    return value_third(v) + v->second;
}

struct alloc_value *
value_new(const struct alloc_value *form, struct rec_error *err)
{
    struct alloc_value *v = malloc(sizeof *v);
    if (v) {
        *v = *form;
        v->sets = NULL;
        v->file = NULL;
        if ((v->weight = calloc(value_weights(v), sizeof *v->weight)))
            return v;
    }
    free(v);
    rec_fail_memory(err);
    return NULL;
}

void
alloc_value_free(struct alloc_value *v)
{
    if (!v)
        return;
    free(v->weight);
    free(v->file);
    value_sets_free(v->sets);
    free(v);
}

/* ---- the network --------------------------------------------------------- */

/* Units are added up in four parts, for two vectors of outputs at a time, so that
 * additions need not wait for each other. */
double
value_of_sums(const struct alloc_value *v, const float sum[ALLOC_VALUE_UNITS],
              float second[VALUE_SECOND])
{
    const uint32_t width = v->second / WIDE;
    const float *third = value_third(v);
    const floats *bias = (const floats *)value_second_bias(v);
    double worth = *value_third_bias(v);
    floats4 zero = {0}, unit4[ALLOC_VALUE_UNITS / 4] = {zero};
    const float *unit = (const float *)unit4;
    for (uint32_t j = 0; j < v->units / 4; j++) {
        floats4 x = ((const floats4 *)sum)[j];
        unit4[j] = either(x > zero, x, zero);
    }
    for (uint32_t w = 0; w < width; w += 2) {
        const floats *weight = (const floats *)value_second(v, 0) + w;
        floats left0 = {0}, left1 = {0}, left2 = {0}, left3 = {0};
        floats right0 = {0}, right1 = {0}, right2 = {0}, right3 = {0};
        for (uint32_t j = 0; j < v->units; j += 4, weight += 4 * width) {
            left0 += unit[j] * weight[0];
            right0 += unit[j] * weight[1];
            left1 += unit[j + 1] * weight[width];
            right1 += unit[j + 1] * weight[width + 1];
            left2 += unit[j + 2] * weight[2 * width];
            right2 += unit[j + 2] * weight[2 * width + 1];
            left3 += unit[j + 3] * weight[3 * width];
            right3 += unit[j + 3] * weight[3 * width + 1];
        }
        ((floats *)second)[w] = ((left0 + left1) + (left2 + left3)) + bias[w];
        ((floats *)second)[w + 1] = ((right0 + right1) + (right2 + right3)) + bias[w + 1];
    }
    for (uint32_t i = 0; i < v->second; i++) {
        second[i] = second[i] > 0 ? second[i] : 0;
        worth += (double)(third[i] * second[i]);
    }
    return worth;
}

/* Adds n inputs, the first of which has this number. The last of four is the largest: if
 * it is 0, so are the others. */
static void
add_inputs(const struct alloc_value *v, const float *input, uint32_t first, uint32_t n,
           float sum[ALLOC_VALUE_UNITS])
{
    for (uint32_t i = 0; i < n; i += VALUE_SCALES)
        if (input[i + VALUE_SCALES - 1] > 0)
            add_four(sum, input + i, value_first(v, first + i), v->units);
}

void
value_shared(const struct alloc_value *v, const float *input,
             float sum[ALLOC_VALUE_UNITS])
{
    uint32_t blocks = v->servers * VALUE_SCALES;
    memcpy(sum, value_first_bias(v), v->units * sizeof *sum);
    add_inputs(v, input + blocks, blocks, value_kinds_at(v) - blocks, sum);
    for (uint32_t i = value_kinds_at(v); i < value_inputs(v); i++)
        add_times(sum, input[i], value_first(v, i), v->units);
}

void
value_servers(const struct value_sets *s, uint32_t image, const float *input,
              float sum[ALLOC_VALUE_UNITS])
{
    const struct alloc_value *v = value_of_sets(s);
    for (uint32_t i = 0; i < v->servers; i++, input += VALUE_SCALES)
        if (input[VALUE_SCALES - 1] > 0)
            add_four(sum, input, value_first(v, value_image(s, image, i) * VALUE_SCALES),
                     v->units);
}

void
value_kinds(const struct alloc_value *v, uint32_t left, float *input)
{
    for (uint32_t i = 0; i < v->nkinds; i++)
        input[i] = left ? (float)(left >> i & 1)
                        : (float)(v->nkinds + 1) / (float)(2 * v->nkinds);
}

uint32_t
value_left(const struct alloc_value *v, const struct rounds *rounds)
{
    double mean = 0;
    if (v->nkinds == 0 || rounds->n != v->nkinds)
        return 0;
    for (uint32_t i = 0; i < v->nkinds; i++)
        mean += rounds->kind[i].sequential / v->nkinds;
    for (uint32_t i = 0; i < v->nkinds; i++)
        if (!(fabs(rounds->kind[i].sequential / mean - v->kind[i]) <= v->kind[i] / 10))
            return 0;
    return rounds_left(rounds);
}

double
value_worth(const struct value_sets *s, const struct value_state *state)
{
    const struct alloc_value *v = value_of_sets(s);
    float input[(2 * VALUE_SHAPES + 64) * VALUE_SCALES], shared[ALLOC_VALUE_UNITS] = {0};
    uint32_t first = v->servers * VALUE_SCALES;
    double worth = 0;
    value_blocks(s, state, input);
    add_inputs(v, input, first, value_kinds_at(v) - first, shared);
    for (uint32_t i = 0; i < value_images(s); i++) {
        float sum[ALLOC_VALUE_UNITS], second[VALUE_SECOND] = {0};
        memcpy(sum, state->sum[i], v->units * sizeof *sum);
        add_times(sum, 1, shared, v->units);
        worth += value_of_sums(v, sum, second);
    }
    return worth / value_images(s);
}

/* What it is worth that the job starts so, and that it is refused. */
static double
started(struct value_sets *s, const struct value_state *state, struct value_option option)
{
    struct value_state after;
    value_copy(s, &after, state);
    value_add(s, &after, option.taken, option.seconds);
    return value_of_sets(s)->discount * value_worth(s, &after);
}

static double
refused(const struct value_sets *s, const struct value_state *state)
{
    return value_of_sets(s)->discount * value_worth(s, state) - 1;
}

static uint32_t
servers_of(struct value_option option)
{
    return (uint32_t)__builtin_popcountll(option.taken);
}

uint32_t
value_choose(struct value_sets *s, const struct value_state *state,
             const struct value_option *option, uint32_t n, double *worth)
{
    double margin = value_of_sets(s)->margin, most;
    uint32_t best = n, fewest = UINT32_MAX;
    for (uint32_t i = 0; margin > 0 && i < n; i++)
        if (servers_of(option[i]) < fewest)
            fewest = servers_of(option[i]);
    *worth = most = refused(s, state);
    for (uint32_t i = 0; i < n; i++) {
        double start = started(s, state, option[i]);
        double counted = start - (servers_of(option[i]) > fewest ? margin : 0);
        if (counted > most) {
            most = counted;
            *worth = start;
            best = i;
        }
    }
    return best;
}

/* ---- questions ----------------------------------------------------------- */

bool
value_suits(const struct alloc_value *v, const struct alloc_question *q)
{
    char text[NET_TEXT_MAX];
    const struct net *net = pricer_net(q->pricer);
    net_describe(net, text);
    return net_servers(net) == v->servers && strcmp(text, v->cluster) == 0 &&
           q->nwaiting == 0;
}

bool
value_knows(const struct alloc_value *v, const struct alloc_question *q)
{
    double work = q->features->mean_work;
    return v->work == 0 || (work <= 2 * v->work && work >= v->work / 2);
}

/* The fewest servers with which the job can start. */
static bool
find_fewest(struct alloc_question *q, uint32_t *fewest, struct rec_error *err)
{
    *fewest = UINT32_MAX;
    for (uint32_t i = 0, n = alloc_question_count(q); i < n; i++) {
        const struct alloc_alternative *a = alloc_question_try(q, i, err);
        if (!a)
            return false;
        if (!a->cause && a->nservers < *fewest)
            *fewest = a->nservers;
    }
    return true;
}

/* The state before the job is decided. Servers out of service are never free. */
static void
look(struct value_sets *s, const struct alloc_question *q, struct value_state *state)
{
    size_t nwords;
    uint64_t down = *pricer_taken(q->pricer, &nwords);
    value_sets_work(s, q->features->mean_work);
    value_empty(s, value_left(value_of_sets(s), &q->features->rounds), state);
    for (size_t i = 0; i < q->nrunning; i++)
        if (q->running[i].runs) {
            value_add(s, state, q->running[i].taken[0], q->running[i].finish - q->now);
            down &= ~q->running[i].taken[0];
        }
    value_add(s, state, down, INFINITY);
}

bool
value_decide(struct alloc_value *v, struct alloc_question *q, uint32_t *choice,
             double *worths, struct rec_error *err)
{
    uint32_t n = alloc_question_count(q), fewest = UINT32_MAX;
    struct value_state state;
    double best;
    if ((!v->sets && !(v->sets = value_sets_new(v, pricer_net(q->pricer), err))) ||
        (v->margin > 0 && !find_fewest(q, &fewest, err)))
        return false;
    look(v->sets, q, &state);
    best = refused(v->sets, &state);
    *choice = ALLOC_REFUSED;
    if (worths)
        worths[n] = best;
    for (uint32_t i = 0; i < n; i++) {
        const struct alloc_alternative *a = alloc_question_try(q, i, err);
        double worth = -INFINITY;
        if (!a)
            return false;
        if (!a->cause && !a->repeats)
            worth =
                started(v->sets, &state,
                        (struct value_option){q->tried[i].taken[0], a->finish - q->now});
        if (worths)
            worths[i] = worth;
        worth -= a->nservers > fewest ? v->margin : 0;
        if (worth > best) {
            best = worth;
            *choice = i;
        }
    }
    return true;
}

/* ---- records ------------------------------------------------------------- */

static uint32_t
layer_of(const struct alloc_value *v, uint32_t unit)
{
    return unit < v->units ? 1 : unit < v->units + v->second ? 2 : 3;
}

/* The weights of a unit, with its bias before them, are in rows of records: `index` 0 is
 * the bias. NULL: there are no more. */
static float *
weight_of(const struct alloc_value *v, uint32_t unit, uint32_t index)
{
    if (unit < v->units)
        return index > value_inputs(v) ? NULL
               : index == 0            ? value_first_bias(v) + unit
                                       : value_first(v, index - 1) + unit;
    unit -= v->units;
    if (unit < v->second)
        return index > v->units ? NULL
               : index == 0     ? value_second_bias(v) + unit
                                : value_second(v, index - 1) + unit;
    return index > v->second ? NULL
           : index == 0      ? value_third_bias(v)
                             : value_third(v) + index - 1;
}

void
value_round(struct alloc_value *v)
{
    for (size_t i = 0; i < value_weights(v); i++) {
        char text[40];
        double number;
        snprintf(text, sizeof text, "%.*g", DIGITS, (double)v->weight[i]);
        if (rec_parse_num(rec_str(text), &number))
            v->weight[i] = (float)number;
    }
}

/* The sizes of shapes that have inputs; without the key, none. */
static bool
read_sizes(const struct rec_reader *reader, const struct rec *rec, struct alloc_value *v,
           struct rec_error *err)
{
    struct rec_str rest, word;
    uint64_t number;
    if (!rec_find_key(rec, "blocks", &rest))
        return true;
    while (rec_str_split(&rest, ',', &word)) {
        if (v->nshapes == VALUE_SHAPES || !rec_parse_uint(word, &number) || number < 2 ||
            number > v->servers || (v->nshapes && number < v->size[v->nshapes - 1]))
            return rec_reader_fail(reader, err,
                                   "blocks= must have at most %d sizes from 2 to %u, "
                                   "in ascending order",
                                   VALUE_SHAPES, v->servers);
        v->size[v->nshapes++] = (uint32_t)number;
    }
    return true;
}

/* The kinds that have inputs; without the key, none. */
static bool
read_kinds(const struct rec_reader *reader, const struct rec *rec, struct alloc_value *v,
           struct rec_error *err)
{
    struct rec_str rest, word;
    double number;
    if (!rec_find_key(rec, "kinds", &rest))
        return true;
    while (rec_str_split(&rest, ',', &word)) {
        if (v->nkinds == ROUNDS_KINDS || !rec_parse_num(word, &number) || !(number > 0) ||
            isinf(number) || (v->nkinds && number < v->kind[v->nkinds - 1]))
            return rec_reader_fail(reader, err,
                                   "kinds= must have at most %d numbers above 0 in "
                                   "ascending order",
                                   ROUNDS_KINDS);
        v->kind[v->nkinds++] = number;
    }
    return true;
}

/* The units of the layers; without the keys, as values had them before there were any. */
static bool
read_units(const struct rec_reader *reader, const struct rec *rec, struct alloc_value *v,
           struct rec_error *err)
{
    uint64_t units = VALUE_UNITS, second = VALUE_SECOND_GROUP, ordered = 0;
    if (!rec_key_count(reader, rec, "units", &units, err) ||
        !rec_key_count(reader, rec, "second", &second, err) ||
        !rec_key_count(reader, rec, "ordered", &ordered, err))
        return false;
    if (units < 1 || units > ALLOC_VALUE_UNITS || units % VALUE_GROUP)
        return rec_reader_fail(reader, err, "units= must be a multiple of %d, %d at most",
                               VALUE_GROUP, ALLOC_VALUE_UNITS);
    if (second < 1 || second > VALUE_SECOND || second % VALUE_SECOND_GROUP)
        return rec_reader_fail(reader, err,
                               "second= must be a multiple of %d, %d at most",
                               VALUE_SECOND_GROUP, VALUE_SECOND);
    if (ordered > 1)
        return rec_reader_fail(reader, err, "ordered= must be 0 or 1");
    v->units = (uint32_t)units;
    v->second = (uint32_t)second;
    v->ordered = ordered;
    return true;
}

/* What it counts in. */
static bool
read_scales(const struct rec_reader *reader, const struct rec *rec, struct alloc_value *v,
            struct rec_error *err)
{
    v->discount = v->work = (double)NAN;
    if (!rec_key_number(reader, rec, "discount", &v->discount, err) ||
        !rec_key_number(reader, rec, "work", &v->work, err) ||
        !rec_key_number(reader, rec, "margin", &v->margin, err))
        return false;
    if (isnan(v->work))
        v->work = 0; /* it is for jobs of any size */
    else if (!(v->work > 0 && !isinf(v->work)))
        return rec_reader_fail(reader, err, "work= must be server-seconds above 0");
    if (!(v->discount >= 0 && v->discount < 1))
        return rec_reader_fail(reader, err, "the value needs discount=, 0 to below 1");
    return (v->margin >= 0 && !isinf(v->margin)) ||
           rec_reader_fail(reader, err, "margin= must be a number of jobs, 0 or more");
}

struct alloc_value *
value_read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    struct alloc_value form = {.line = rec_reader_line(reader)}, *v;
    uint64_t servers;
    if (!rec_need(reader, rec, err) || !rec_get_count(reader, rec, 2, &servers, err))
        return NULL;
    if (servers < 1 || servers > 64) {
        rec_reader_fail(reader, err, "a value must have 1 to 64 servers");
        return NULL;
    }
    if (rec->field[1].len >= NET_TEXT_MAX) {
        rec_reader_fail(reader, err,
                        "the cluster of a value must have fewer than %d bytes",
                        NET_TEXT_MAX);
        return NULL;
    }
    snprintf(form.cluster, sizeof form.cluster, "%.*s", (int)rec->field[1].len,
             rec->field[1].ptr);
    form.servers = (uint32_t)servers;
    if (!read_scales(reader, rec, &form, err) || !read_units(reader, rec, &form, err) ||
        !read_sizes(reader, rec, &form, err) || !read_kinds(reader, rec, &form, err))
        return NULL;
    if ((v = value_new(&form, err)) && !(v->file = strdup(rec_reader_file(reader)))) {
        alloc_value_free(v);
        v = NULL;
        rec_fail_memory(err);
    }
    return v;
}

bool
value_read_unit(struct alloc_value *v, uint32_t *units, const struct rec_reader *reader,
                const struct rec *rec, struct rec_error *err)
{
    struct rec_str rest, word;
    uint64_t layer;
    uint32_t unit = *units, n = 0;
    bool many = false;
    if (!rec_need(reader, rec, err) || !rec_get_count(reader, rec, 1, &layer, err))
        return false;
    if (!v || unit == units_of(v))
        return rec_reader_fail(reader, err, "the unit belongs to no value record");
    if (layer != layer_of(v, unit))
        return rec_reader_fail(reader, err,
                               "a unit of layer %u must come here: %u of layer 1, %u of "
                               "2, one of 3",
                               layer_of(v, unit), v->units, v->second);
    for (rest = rec->field[2]; rec_str_split(&rest, ',', &word); n++) {
        float *weight = weight_of(v, unit, n);
        double number;
        if ((many = !weight))
            break;
        if (!rec_parse_num(word, &number) || !(fabs(number) <= WEIGHT_MOST))
            return rec_reader_fail(reader, err, "'%.*s' is no weight from -1e9 to 1e9",
                                   (int)word.len, word.ptr);
        *weight = (float)number;
    }
    if (many || weight_of(v, unit, n))
        return rec_reader_fail(reader, err,
                               "the unit must have a bias and a weight for each of its "
                               "inputs, no more and no less");
    ++*units;
    return true;
}

bool
value_is_whole(const struct alloc_value *v, uint32_t units)
{
    return units == units_of(v);
}

void
value_write(const struct alloc_value *v, struct rec_writer *writer)
{
    char text[((2 * 64 + 2 * VALUE_SHAPES) * VALUE_SCALES + ROUNDS_KINDS + 1) * 16];
    size_t length = 0;
    rec_begin(writer, "value");
    rec_text_field(writer, v->cluster);
    rec_uint_field(writer, v->servers);
    rec_num_key(writer, "discount", v->discount);
    if (v->margin > 0)
        rec_num_key(writer, "margin", v->margin);
    snprintf(text, sizeof text, "%.*g", DIGITS, v->work);
    if (v->work > 0)
        rec_text_key(writer, "work", text);
    rec_uint_key(writer, "units", v->units);
    if (v->second != VALUE_SECOND_GROUP)
        rec_uint_key(writer, "second", v->second);
    if (v->ordered)
        rec_uint_key(writer, "ordered", 1);
    for (uint32_t i = 0; i < v->nshapes; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%u",
                                   i ? "," : "", v->size[i]);
    if (v->nshapes)
        rec_text_key(writer, "blocks", text);
    length = 0;
    for (uint32_t i = 0; i < v->nkinds; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%.*g",
                                   i ? "," : "", DIGITS, v->kind[i]);
    if (v->nkinds)
        rec_text_key(writer, "kinds", text);
    rec_end(writer);
    for (uint32_t unit = 0; unit < units_of(v); unit++) {
        const float *weight;
        length = 0;
        for (uint32_t i = 0; (weight = weight_of(v, unit, i)); i++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%.*g",
                                       i ? "," : "", DIGITS, (double)*weight);
        rec_begin(writer, "unit");
        rec_uint_field(writer, layer_of(v, unit));
        rec_text_field(writer, text);
        rec_end(writer);
    }
}
