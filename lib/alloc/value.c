/* The worth of a state of the cluster (value.h), and its records. */
#include "value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIGITS = 4, UNITS = VALUE_FIRST + VALUE_SECOND + 1 };

size_t
value_size(uint32_t servers)
{
    return ((size_t)servers * VALUE_SCALES + 1) * VALUE_FIRST +
           (VALUE_FIRST + 1) * VALUE_SECOND + VALUE_SECOND + 1;
}

float *
value_first(const struct alloc_value *v, uint32_t input)
{
    return v->weight + (size_t)input * VALUE_FIRST;
}

float *
value_first_bias(const struct alloc_value *v)
{
    return value_first(v, v->servers * VALUE_SCALES);
}

float *
value_second(const struct alloc_value *v, uint32_t unit)
{
    return value_first_bias(v) + VALUE_FIRST + (size_t)unit * VALUE_SECOND;
}

float *
value_second_bias(const struct alloc_value *v)
{
    return value_second(v, VALUE_FIRST);
}

float *
value_third(const struct alloc_value *v)
{
    return value_second_bias(v) + VALUE_SECOND;
}

float *
value_third_bias(const struct alloc_value *v)
{
    return value_third(v) + VALUE_SECOND;
}

struct alloc_value *
value_new(const char *cluster, uint32_t servers, double work, struct rec_error *err)
{
    static const double parts[VALUE_SCALES] = {45, 15, 5, 1.5};
    struct alloc_value *v = calloc(1, sizeof *v);
    if (v && (v->weight = calloc(value_size(servers), sizeof *v->weight))) {
        snprintf(v->cluster, sizeof v->cluster, "%s", cluster);
        v->servers = servers;
        v->work = work;
        for (int i = 0; i < VALUE_SCALES; i++)
            v->scale[i] = work / parts[i];
        return v;
    }
    alloc_value_free(v);
    rec_fail_memory(err);
    return NULL;
}

void
alloc_value_free(struct alloc_value *v)
{
    if (v)
        free(v->weight);
    free(v);
}

/* ---- the network --------------------------------------------------------- */

static inline void
add(float *restrict to, float factor, const float *restrict from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += factor * from[i];
}

void
value_inputs(const struct alloc_value *v, double seconds, float input[VALUE_SCALES])
{
    for (int i = 0; i < VALUE_SCALES; i++)
        input[i] = seconds > 0 ? (float)(1 - rng_exp(-seconds / v->scale[i])) : 0;
}

void
value_empty(const struct alloc_value *v, float sum[VALUE_FIRST])
{
    memcpy(sum, value_first_bias(v), VALUE_FIRST * sizeof *sum);
}

void
value_add(const struct alloc_value *v, float sum[VALUE_FIRST], uint64_t taken,
          double seconds)
{
    float input[VALUE_SCALES];
    value_inputs(v, seconds, input);
    for (; taken; taken &= taken - 1) {
        const float *restrict weight =
            value_first(v, (uint32_t)__builtin_ctzll(taken) * VALUE_SCALES);
        for (int j = 0; j < VALUE_FIRST; j++) {
            float x = sum[j];
            for (int i = 0; i < VALUE_SCALES; i++)
                x += input[i] * weight[i * VALUE_FIRST + j];
            sum[j] = x;
        }
    }
}

void
value_add_sums(const struct alloc_value *v, float sum[VALUE_FIRST], const float *sums,
               double seconds)
{
    float input[VALUE_SCALES];
    value_inputs(v, seconds, input);
    for (int i = 0; i < VALUE_SCALES; i++)
        add(sum, input[i], sums + (size_t)i * VALUE_FIRST, VALUE_FIRST);
}

/* Entries are found by a hash; a new one takes the place of the one that was there. */
enum { SETS = 4096 };

struct value_sums {
    const struct alloc_value *value; /* borrowed */
    struct {
        uint64_t taken; /* 0: unused */
        float sums[VALUE_SCALES * VALUE_FIRST];
    } set[SETS];
};

struct value_sums *
value_sums_new(const struct alloc_value *v, struct rec_error *err)
{
    struct value_sums *s = calloc(1, sizeof *s);
    if (s)
        s->value = v;
    else
        rec_fail_memory(err);
    return s;
}

void
value_sums_free(struct value_sums *s)
{
    free(s);
}

const float *
value_sums_of(struct value_sums *s, uint64_t taken)
{
    size_t at = rec_mix(taken) % SETS;
    float *restrict sums = s->set[at].sums;
    if (s->set[at].taken == taken)
        return sums;
    s->set[at].taken = taken;
    memset(sums, 0, sizeof s->set[at].sums);
    for (; taken; taken &= taken - 1) {
        const float *restrict weight =
            value_first(s->value, (uint32_t)__builtin_ctzll(taken) * VALUE_SCALES);
        for (int j = 0; j < VALUE_SCALES * VALUE_FIRST; j++)
            sums[j] += weight[j];
    }
    return sums;
}

double
value_worth(const struct alloc_value *v, const float sum[VALUE_FIRST],
            float second[VALUE_SECOND])
{
    const float *restrict weight = value_second(v, 0), *third = value_third(v);
    double worth = *value_third_bias(v);
    memcpy(second, value_second_bias(v), VALUE_SECOND * sizeof *second);
    for (int j = 0; j < VALUE_FIRST; j++, weight += VALUE_SECOND)
        if (sum[j] > 0)
            add(second, sum[j], weight, VALUE_SECOND);
    for (int i = 0; i < VALUE_SECOND; i++) {
        second[i] = second[i] > 0 ? second[i] : 0;
        worth += (double)(third[i] * second[i]);
    }
    return worth;
}

/* What is accepted now and later if the job starts so. */
static double
started(const struct alloc_value *v, struct value_sums *sums,
        const float sum[VALUE_FIRST], struct value_option option)
{
    float after[VALUE_FIRST], second[VALUE_SECOND];
    memcpy(after, sum, sizeof after);
    if (sums)
        value_add_sums(v, after, value_sums_of(sums, option.taken), option.seconds);
    else
        value_add(v, after, option.taken, option.seconds);
    return 1 + v->discount * value_worth(v, after, second);
}

uint32_t
value_choose(const struct alloc_value *v, struct value_sums *sums,
             const float sum[VALUE_FIRST], const struct value_option *option, uint32_t n,
             double *worth)
{
    float second[VALUE_SECOND];
    uint32_t best = n;
    *worth = v->discount * value_worth(v, sum, second);
    for (uint32_t i = 0; i < n; i++) {
        double accepted = started(v, sums, sum, option[i]);
        if (accepted > *worth) {
            *worth = accepted;
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
    return !(work > 2 * v->work) && !(work < v->work / 2);
}

/* The state before the job is decided. Servers out of service are never free. */
static void
look(const struct alloc_value *v, const struct alloc_question *q, float sum[VALUE_FIRST])
{
    size_t nwords;
    uint64_t down = *pricer_taken(q->pricer, &nwords);
    value_empty(v, sum);
    for (size_t i = 0; i < q->nrunning; i++)
        if (q->running[i].runs) {
            value_add(v, sum, q->running[i].taken[0], q->running[i].finish - q->now);
            down &= ~q->running[i].taken[0];
        }
    value_add(v, sum, down, INFINITY);
}

bool
value_decide(const struct alloc_value *v, struct alloc_question *q, uint32_t *choice,
             double *worths, struct rec_error *err)
{
    uint32_t n = alloc_question_count(q);
    float sum[VALUE_FIRST], second[VALUE_SECOND];
    double best;
    look(v, q, sum);
    best = v->discount * value_worth(v, sum, second);
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
                started(v, NULL, sum,
                        (struct value_option){q->tried[i].taken[0], a->finish - q->now});
        if (worths)
            worths[i] = worth;
        if (worth > best) {
            best = worth;
            *choice = i;
        }
    }
    return true;
}

/* ---- records ------------------------------------------------------------- */

/* The weights of a unit, with its bias before them, are in rows of records: `index` 0 is
 * the bias. NULL: there are no more. */
static float *
weight_of(const struct alloc_value *v, uint32_t unit, uint32_t index)
{
    if (unit < VALUE_FIRST)
        return index > v->servers * VALUE_SCALES ? NULL
               : index == 0                      ? value_first_bias(v) + unit
                                                 : value_first(v, index - 1) + unit;
    unit -= VALUE_FIRST;
    if (unit < VALUE_SECOND)
        return index > VALUE_FIRST ? NULL
               : index == 0        ? value_second_bias(v) + unit
                                   : value_second(v, index - 1) + unit;
    return index > VALUE_SECOND ? NULL
           : index == 0         ? value_third_bias(v)
                                : value_third(v) + index - 1;
}

void
value_round(struct alloc_value *v)
{
    for (size_t i = 0; i < value_size(v->servers); i++) {
        char text[40];
        double number;
        snprintf(text, sizeof text, "%.*g", DIGITS, (double)v->weight[i]);
        if (rec_parse_num(rec_str(text), &number))
            v->weight[i] = (float)number;
    }
}

struct alloc_value *
value_read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    struct alloc_value *v = NULL;
    uint64_t servers;
    char *cluster = NULL;
    double discount = NAN, work = NAN;
    bool ok = rec_need(reader, rec, err) && rec_get_count(reader, rec, 2, &servers, err);
    if (ok && (servers < 1 || servers > 64))
        ok = rec_reader_fail(reader, err, "a value must have 1 to 64 servers");
    ok = ok && rec_key_number(reader, rec, "discount", &discount, err) &&
         rec_key_number(reader, rec, "work", &work, err);
    if (ok && !(discount >= 0 && discount < 1 && work > 0 && !isinf(work)))
        ok = rec_reader_fail(reader, err,
                             "the value needs discount=, 0 to below 1, and work=, "
                             "server-seconds above 0");
    if (ok && !(cluster = strndup(rec->field[1].ptr, rec->field[1].len)))
        ok = rec_fail_memory(err);
    if (ok && (v = value_new(cluster, (uint32_t)servers, work, err)))
        v->discount = discount;
    free(cluster);
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
    uint32_t wanted = unit < VALUE_FIRST ? 1 : unit < VALUE_FIRST + VALUE_SECOND ? 2 : 3;
    if (!rec_need(reader, rec, err) || !rec_get_count(reader, rec, 1, &layer, err))
        return false;
    if (!v || unit == UNITS)
        return rec_reader_fail(reader, err, "the unit belongs to no value record");
    if (layer != wanted)
        return rec_reader_fail(reader, err,
                               "a unit of layer %u must come here: %d of layer 1, %d of "
                               "2, one of 3",
                               wanted, VALUE_FIRST, VALUE_SECOND);
    for (rest = rec->field[2]; rec_str_split(&rest, ',', &word); n++) {
        float *weight = weight_of(v, unit, n);
        double number;
        if ((many = !weight))
            break;
        if (!rec_parse_num(word, &number) || !isfinite((float)number))
            return rec_reader_fail(reader, err, "'%.*s' is no weight", (int)word.len,
                                   word.ptr);
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
value_is_whole(uint32_t units)
{
    return units == UNITS;
}

void
value_write(const struct alloc_value *v, struct rec_writer *writer)
{
    char text[(64 * VALUE_SCALES + 1) * 16];
    snprintf(text, sizeof text, "%.*g", DIGITS, v->work);
    rec_begin(writer, "value");
    rec_text_field(writer, v->cluster);
    rec_uint_field(writer, v->servers);
    rec_num_key(writer, "discount", v->discount);
    rec_text_key(writer, "work", text);
    rec_end(writer);
    for (uint32_t unit = 0; unit < UNITS; unit++) {
        const float *weight;
        size_t length = 0;
        for (uint32_t i = 0; (weight = weight_of(v, unit, i)); i++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%.*g",
                                       i ? "," : "", DIGITS, (double)*weight);
        rec_begin(writer, "unit");
        rec_uint_field(writer, unit < VALUE_FIRST                  ? 1
                               : unit < VALUE_FIRST + VALUE_SECOND ? 2
                                                                   : 3);
        rec_text_field(writer, text);
        rec_end(writer);
    }
}
