/* States of the cluster as a value sees them (value.h): servers and blocks of servers. */
#include "floats.h"

#include <stdlib.h>

/* ---- shapes of blocks ---------------------------------------------------- */

struct block {
    uint32_t shape; /* shapes are numbered from 0, by size and by their first blocks */
    uint64_t servers;
};

struct shapes {
    struct block *block; /* owned */
    uint32_t nblocks, n;
    uint32_t *size; /* of each; owned */
    size_t block_room, size_room;
};

static void
shapes_free(struct shapes *s)
{
    free(s->block);
    free(s->size);
}

/* Adds the blocks of a size. `geometry` has room for that of all of them: that of the
 * first block of each shape stays there. */
static bool
add_blocks(struct shapes *s, const struct net *net, uint32_t size, uint32_t *geometry,
           struct rec_error *err)
{
    size_t width = net_geometry_numbers(net, size);
    uint32_t all = (uint32_t)net_count_blocks(net, size), server[64], known = 0;
    if (!rec_grow(&s->block, &s->block_room, s->nblocks + all, sizeof *s->block, err))
        return false;
    for (uint32_t i = 0; i < all; i++) {
        struct block *block = &s->block[s->nblocks++];
        uint32_t *own = geometry + known * width, k = 0;
        net_block(net, size, i, server);
        if (!net_geometry(net, server, size, own, err))
            return false;
        while (memcmp(geometry + k * width, own, width * sizeof *own) != 0)
            k++;
        if (k == known) {
            if (!rec_grow(&s->size, &s->size_room, s->n + 1, sizeof *s->size, err))
                return false;
            s->size[s->n++] = size;
            known++;
        }
        block->shape = s->n - known + k;
        block->servers = 0;
        for (uint32_t j = 0; j < size; j++)
            block->servers |= (uint64_t)1 << server[j];
    }
    return true;
}

/* Finds the shapes of all sizes of which there are two blocks or more: a single block, as
 * the whole cluster, is free when all others are. */
static bool
shapes_find(struct shapes *s, const struct net *net, struct rec_error *err)
{
    bool ok = true;
    for (uint32_t size = 2; ok && size < net_servers(net); size++) {
        uint64_t all = net_is_legal(net, size) ? net_count_blocks(net, size) : 0;
        uint32_t *geometry;
        if (all < 2)
            continue;
        geometry = calloc(all * net_geometry_numbers(net, size) + 1, sizeof *geometry);
        ok = geometry ? add_blocks(s, net, size, geometry, err) : rec_fail_memory(err);
        free(geometry);
    }
    return ok;
}

/* If there are too many shapes, they are taken evenly. */
static uint32_t
shapes_taken(const struct shapes *s)
{
    return s->n < VALUE_SHAPES ? s->n : VALUE_SHAPES;
}

static uint32_t
shapes_at(const struct shapes *s, uint32_t i)
{
    return i * s->n / shapes_taken(s);
}

bool
value_shapes_of(const struct net *net, uint32_t size[VALUE_SHAPES], uint32_t *nshapes,
                struct rec_error *err)
{
    struct shapes s = {0};
    bool ok = shapes_find(&s, net, err);
    *nshapes = ok ? shapes_taken(&s) : 0;
    for (uint32_t i = 0; i < *nshapes; i++)
        size[i] = s.size[shapes_at(&s, i)];
    shapes_free(&s);
    return ok;
}

/* ---- sets of servers ----------------------------------------------------- */

/* Entries are found by a hash; a new one takes the place of the one that was there. */
enum { SETS = 1024 };

struct value_sets {
    const struct alloc_value *value;          /* borrowed */
    double work;                              /* the mean of a job, server-seconds */
    uint32_t first[VALUE_SHAPES + 1];         /* blocks of a shape, in fours */
    uint32_t count[VALUE_SHAPES];             /* of these, those that are blocks */
    uint64_t mask[VALUE_SHAPES * VALUE_EACH]; /* per block: its servers; 0: no block */
    /* Inputs of each; no block is never free. */
    float empty[VALUE_SHAPES * VALUE_EACH * VALUE_SCALES];
    uint32_t nimages;
    uint8_t image[VALUE_IMAGES][64]; /* of each server */
    float *touched; /* of each set as many numbers: 1 if it touches the block */
    /* Of each set and image, VALUE_SCALES of each unit of the first layer. */
    float *sums;
    uint64_t age; /* of the weights, from 1 */
    struct {
        uint64_t taken; /* 0: unused */
        uint64_t age;   /* of the sums; 0: none */
    } set[SETS];
};

static size_t
block_inputs(const struct value_sets *s)
{
    return (size_t)s->first[s->value->nshapes] * VALUE_SCALES;
}

/* How many numbers a set adds up in an image. */
static size_t
sums_of(const struct alloc_value *v)
{
    return (size_t)VALUE_SCALES * v->units;
}

/* Lists the blocks of a shape, as many as there is room for, taken evenly. */
static void
list_blocks(struct value_sets *s, const struct shapes *shapes, uint32_t i)
{
    uint32_t shape = shapes_at(shapes, i), at = s->first[i], all = 0, n = 0;
    for (uint32_t j = 0; j < shapes->nblocks; j++)
        all += shapes->block[j].shape == shape;
    s->count[i] = all < VALUE_EACH ? all : VALUE_EACH;
    for (uint32_t j = 0; j < shapes->nblocks; j++)
        if (shapes->block[j].shape == shape &&
            n++ == (at - s->first[i]) * all / s->count[i])
            s->mask[at++] = shapes->block[j].servers;
    for (; at % 4; at++)
        for (uint32_t k = 0; k < VALUE_SCALES; k++)
            s->empty[at * VALUE_SCALES + k] = 1;
    s->first[i + 1] = at;
}

/* Reverses the order of servers in each run of `run` of them. */
static uint32_t
turned(uint32_t server, uint32_t run)
{
    return server / run * run + run - 1 - server % run;
}

/* Is each block a block of its shape, with its servers in another order? */
static bool
is_image(const struct shapes *shapes, const uint8_t *order)
{
    for (uint32_t i = 0; i < shapes->nblocks; i++) {
        uint64_t there = 0, left = shapes->block[i].servers;
        uint32_t j = 0;
        for (; left; left &= left - 1)
            there |= (uint64_t)1 << order[__builtin_ctzll(left)];
        while (j < shapes->nblocks && (shapes->block[j].servers != there ||
                                       shapes->block[j].shape != shapes->block[i].shape))
            j++;
        if (j == shapes->nblocks)
            return false;
    }
    return true;
}

/* Tries the orders in which servers are reversed in runs, or in these and in longer runs
 * that consist of them. Runs of one server change nothing. Without blocks nothing is
 * known of the cluster. */
static void
find_images(struct value_sets *s, const struct shapes *shapes)
{
    uint32_t n = s->value->servers;
    for (uint32_t run = 1; run <= (shapes->nblocks ? n : 1); run++)
        for (uint32_t part = 1; part <= run && s->nimages < VALUE_IMAGES; part++) {
            uint8_t *order = s->image[s->nimages];
            if (n % run || run % part || (run == part && run > 1))
                continue;
            for (uint32_t i = 0; i < n; i++)
                order[i] = (uint8_t)turned(turned(i, run), part);
            s->nimages += is_image(shapes, order);
        }
}

static bool
list_shapes(struct value_sets *s, const struct net *net, struct rec_error *err)
{
    const struct alloc_value *v = s->value;
    struct shapes shapes = {0};
    bool ok = !net || shapes_find(&shapes, net, err), same;
    same = ok && shapes_taken(&shapes) == v->nshapes;
    for (uint32_t i = 0; same && i < v->nshapes; i++)
        same = shapes.size[shapes_at(&shapes, i)] == v->size[i];
    if (ok && !same) /* the job that is decided has no part in it */
        ok = rec_fail_at(err, v->file, v->line,
                         "the value for %s has inputs for other shapes of blocks",
                         v->cluster);
    for (uint32_t i = 0; ok && i < v->nshapes; i++)
        list_blocks(s, &shapes, i);
    if (ok)
        find_images(s, &shapes);
    shapes_free(&shapes);
    return ok;
}

struct value_sets *
value_sets_new(const struct alloc_value *v, const struct net *net, struct rec_error *err)
{
    struct value_sets *s = calloc(1, sizeof *s);
    if (!s) {
        rec_fail_memory(err);
        return NULL;
    }
    s->value = v;
    s->work = v->work;
    s->age = 1;
    if (list_shapes(s, net, err)) {
        s->touched = calloc(SETS * block_inputs(s) + 1, sizeof *s->touched);
        s->sums = calloc(SETS * s->nimages * sums_of(v), sizeof *s->sums);
        if (s->touched && s->sums)
            return s;
        rec_fail_memory(err);
    }
    value_sets_free(s);
    return NULL;
}

void
value_sets_free(struct value_sets *s)
{
    if (!s)
        return;
    free(s->touched);
    free(s->sums);
    free(s);
}

const struct alloc_value *
value_of_sets(const struct value_sets *s)
{
    return s->value;
}

void
value_sets_work(struct value_sets *s, double work)
{
    if (s->value->work == 0)
        s->work = work;
}

void
value_sets_forget(struct value_sets *s)
{
    s->age++;
}

uint32_t
value_images(const struct value_sets *s)
{
    return s->nimages;
}

uint32_t
value_image(const struct value_sets *s, uint32_t image, uint32_t server)
{
    return s->image[image][server];
}

/* The place of a set that is not empty. */
static size_t
place_of(struct value_sets *s, uint64_t taken)
{
    size_t at = rec_mix(taken) % SETS, n = block_inputs(s), nsums = sums_of(s->value);
    float *restrict touched = s->touched + at * n;
    float *sums = s->sums + at * nsums * s->nimages;
    if (s->set[at].taken != taken) {
        s->set[at].taken = taken;
        s->set[at].age = 0;
        for (size_t i = 0; i < n; i++)
            touched[i] = (s->mask[i / VALUE_SCALES] & taken) != 0;
    }
    if (s->set[at].age == s->age)
        return at;
    s->set[at].age = s->age;
    memset(sums, 0, nsums * s->nimages * sizeof *sums);
    for (uint32_t i = 0; i < s->nimages; i++, sums += nsums)
        for (uint64_t left = taken; left; left &= left - 1) {
            uint32_t server = s->image[i][__builtin_ctzll(left)];
            add_times(sums, 1, value_first(s->value, server * VALUE_SCALES), nsums);
        }
    return at;
}

/* ---- states -------------------------------------------------------------- */

void
value_server(const struct value_sets *s, double seconds, float input[VALUE_SCALES])
{
    double left = seconds > 0 ? rng_exp(-seconds / (0.6 * s->work)) : 1;
    for (int i = 0; i < VALUE_SCALES; i++, left *= left * left)
        input[i] = (float)(1 - left);
}

void
value_empty(const struct value_sets *s, uint32_t left, struct value_state *state)
{
    const struct alloc_value *v = s->value;
    float input[ROUNDS_KINDS];
    memcpy(state->sum[0], value_first_bias(v), v->units * sizeof *state->sum[0]);
    value_kinds(v, left, input);
    for (uint32_t i = 0; i < v->nkinds; i++)
        if (input[i] > 0)
            add_times(state->sum[0], input[i], value_first(v, value_kinds_at(v) + i),
                      v->units);
    for (uint32_t i = 1; i < s->nimages; i++)
        memcpy(state->sum[i], state->sum[0], v->units * sizeof *state->sum[i]);
    memcpy(state->block, s->empty, block_inputs(s) * sizeof *s->empty);
    state->nbusy = 0;
}

void
value_copy(const struct value_sets *s, struct value_state *to,
           const struct value_state *from)
{
    for (uint32_t i = 0; i < s->nimages; i++)
        memcpy(to->sum[i], from->sum[i], s->value->units * sizeof *to->sum[i]);
    memcpy(to->block, from->block, block_inputs(s) * sizeof *to->block);
    memcpy(to->busy, from->busy, from->nbusy * sizeof *to->busy);
    to->nbusy = from->nbusy;
}

/* No block of a job is free before the job ends. */
static void
raise_blocks(float *block, const float input[VALUE_SCALES], const float *touched,
             size_t n)
{
    floats4 inputs = *(const floats4 *)input;
    for (size_t i = 0; i < n; i += VALUE_SCALES) {
        floats4 *b = (floats4 *)(block + i);
        floats4 x = inputs * *(const floats4 *)(touched + i);
        *b = either(x > *b, x, *b);
    }
}

/* Those that come free last are first. */
static void
insert_busy(struct value_state *state, uint32_t servers, const float input[VALUE_SCALES])
{
    uint32_t i = state->nbusy++;
    for (; i > 0 && state->busy[i - 1].input[0] < input[0]; i--)
        state->busy[i] = state->busy[i - 1];
    memcpy(state->busy[i].input, input, sizeof state->busy[i].input);
    state->busy[i].servers = servers;
}

void
value_add(struct value_sets *s, struct value_state *state, uint64_t taken, double seconds)
{
    float input[VALUE_SCALES];
    size_t at, n = block_inputs(s), nsums = sums_of(s->value);
    if (!taken)
        return;
    value_server(s, seconds, input);
    at = place_of(s, taken);
    for (uint32_t i = 0; i < s->nimages; i++)
        add_four(state->sum[i], input, s->sums + (at * s->nimages + i) * nsums,
                 s->value->units);
    raise_blocks(state->block, input, s->touched + at * n, n);
    insert_busy(state, (uint32_t)__builtin_popcountll(taken), input);
}

static void
list_busy(const struct value_state *state, uint32_t servers, float *input)
{
    memset(input, 0, (size_t)servers * VALUE_SCALES * sizeof *input);
    for (uint32_t i = 0; i < state->nbusy; i++)
        for (uint32_t j = 0; j < state->busy[i].servers; j++, input += VALUE_SCALES)
            memcpy(input, state->busy[i].input, sizeof state->busy[i].input);
}

static inline floats4
lesser(floats4 a, floats4 b)
{
    return either(b < a, b, a);
}

/* Blocks come in fours, each of which has its own sum, so that additions need not wait
 * for each other. */
void
value_blocks(const struct value_sets *s, const struct value_state *state, float *input)
{
    for (uint32_t i = 0; i < s->value->nshapes; i++, input += 2 * VALUE_SCALES) {
        const floats4 *b = (const floats4 *)state->block + s->first[i];
        const floats4 *end = (const floats4 *)state->block + s->first[i + 1];
        float share = 1 / (float)s->count[i];
        float none = (float)(s->first[i + 1] - s->first[i] - s->count[i]);
        floats4 sum0 = b[0], sum1 = b[1], sum2 = b[2], sum3 = b[3];
        floats4 least0 = sum0, least1 = sum1, least2 = sum2, least3 = sum3;
        while ((b += 4) < end) {
            sum0 += b[0];
            sum1 += b[1];
            sum2 += b[2];
            sum3 += b[3];
            least0 = lesser(least0, b[0]);
            least1 = lesser(least1, b[1]);
            least2 = lesser(least2, b[2]);
            least3 = lesser(least3, b[3]);
        }
        *(floats4 *)input = ((sum0 + sum1) + (sum2 + sum3) - none) * share;
        *(floats4 *)(input + VALUE_SCALES) =
            lesser(lesser(least0, least1), lesser(least2, least3));
    }
    if (s->value->ordered)
        list_busy(state, s->value->servers, input);
}
