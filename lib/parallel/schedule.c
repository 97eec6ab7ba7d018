/* The orders in which devices of a pipeline run their passes. Each kind is a row. */
#include "private.h"

#include <stdlib.h>
#include <string.h>

/* Passes of all devices that are held at once: 1 GB of them, and what runs them. */
#define MOST_PASSES ((size_t)1 << 27)

uint32_t
parallel_stage(const struct parallel_schedule *schedule, uint32_t stages, uint32_t r,
               uint32_t chunk)
{
    if (schedule->vshape)
        return chunk == 0 ? r : 2 * stages - 1 - r;
    return chunk * stages + r;
}

uint32_t
parallel_device(const struct parallel_schedule *schedule, uint32_t stages, uint32_t stage,
                uint32_t *chunk)
{
    *chunk = stage / stages;
    if (schedule->vshape && *chunk == 1)
        return 2 * stages - 1 - stage;
    return stage % stages;
}

size_t
parallel_items(const struct parallel_schedule *schedule, const struct parallel_pipe *pipe)
{
    return (size_t)(schedule->split ? 3 : 2) * pipe->microbatches * pipe->chunks;
}

/* ---- whole passes ---------------------------------------------------------- */

static bool
check_one_chunk(const struct parallel_pipe *pipe, struct rec_error *err)
{
    return pipe->chunks == 1 ||
           rec_fail(err, REC_DATA,
                    "this schedule has one chunk a device, and not %u: the schedule "
                    "interleaved has several",
                    pipe->chunks);
}

static bool
gpipe(const struct parallel_pipe *pipe, struct parallel_item *item, struct rec_error *err)
{
    (void)err;
    for (uint32_t r = 0; r < pipe->stages; r++) {
        for (uint32_t i = 0; i < pipe->microbatches; i++)
            *item++ = (struct parallel_item){i, 0, PARALLEL_FORWARD};
        for (uint32_t i = 0; i < pipe->microbatches; i++)
            *item++ = (struct parallel_item){i, 0, PARALLEL_BACKWARD};
    }
    return true;
}

/* How many microbatches go through a chunk before the next one's turn: p of them. If p
 * does not divide m, the least number with which the last group is whole or has p, too:
 * else devices would wait for it (microbatch_group_size_per_vp_stage of Megatron-LM,
 * which refuses a shorter one). */
static uint32_t
group_of(const struct parallel_pipe *pipe)
{
    uint32_t p = pipe->stages, m = pipe->microbatches, n = p;
    while (m % n != 0 && m % n < p)
        n++;
    return n;
}

/* The i-th forward or backward of a device with several chunks: groups of microbatches go
 * through chunk after chunk, backward from the last chunk to the first. */
static struct parallel_item
grouped(const struct parallel_pipe *pipe, uint32_t n, uint64_t i, enum parallel_pass pass)
{
    uint32_t v = pipe->chunks, m = pipe->microbatches;
    uint32_t group = (uint32_t)(i / ((uint64_t)n * v)), first = group * n;
    uint32_t size = m - first < n ? m - first : n; /* the last group may be short */
    uint32_t at = (uint32_t)(i - (uint64_t)first * v), chunk = at / size;
    return (struct parallel_item){
        first + at % size, (uint16_t)(pass == PARALLEL_FORWARD ? chunk : v - 1 - chunk),
        (uint8_t)pass};
}

/* `warm` forwards; then one forward and one backward in turn; then what is left of
 * backward. */
static struct parallel_item *
alternate(const struct parallel_pipe *pipe, uint64_t warm, struct parallel_item *item)
{
    uint64_t all = (uint64_t)pipe->microbatches * pipe->chunks;
    uint64_t forward = 0;
    uint32_t n = pipe->chunks > 1 ? group_of(pipe) : pipe->stages;
    while (forward < warm && forward < all)
        *item++ = grouped(pipe, n, forward++, PARALLEL_FORWARD);
    for (uint64_t backward = 0; backward < all; backward++) {
        if (forward < all)
            *item++ = grouped(pipe, n, forward++, PARALLEL_FORWARD);
        *item++ = grouped(pipe, n, backward, PARALLEL_BACKWARD);
    }
    return item;
}

static bool
one_f_one_b(const struct parallel_pipe *pipe, struct parallel_item *item,
            struct rec_error *err)
{
    (void)err;
    for (uint32_t r = 0; r < pipe->stages; r++)
        item = alternate(pipe, pipe->stages - 1 - r, item);
    return true;
}

static bool
check_interleaved(const struct parallel_pipe *pipe, struct rec_error *err)
{
    uint32_t p = pipe->stages, m = pipe->microbatches;
    if (pipe->chunks < 2)
        return rec_fail(err, REC_DATA,
                        "the interleaved schedule has at least 2 chunks a device");
    return m >= p || rec_fail(err, REC_DATA,
                              "the interleaved schedule takes at least as many "
                              "microbatches as stages: %u would do, and not %u",
                              p, m);
}

static bool
interleaved(const struct parallel_pipe *pipe, struct parallel_item *item,
            struct rec_error *err)
{
    uint64_t p = pipe->stages, n = group_of(pipe);
    (void)err;
    for (uint64_t r = 0; r < p; r++)
        item = alternate(pipe, 2 * (p - 1 - r) + (pipe->chunks - 1) * n, item);
    return true;
}

/* ---- rows ------------------------------------------------------------------ */

static bool
check_v(const struct parallel_pipe *pipe, struct rec_error *err)
{
    return pipe->chunks == 2 ||
           rec_fail(err, REC_DATA,
                    "a pipeline in the shape of a V has 2 chunks a device, and not %u",
                    pipe->chunks);
}

/* The order of 1F1B, in which device r runs the weight gradient of microbatch i behind
 * the
 * backward pass of microbatch i + r (ZB-H1): so each device holds p microbatches, and has
 * weight gradients left for the holes at the end. */
static bool
zero_bubble(const struct parallel_pipe *pipe, struct parallel_item *item,
            struct rec_error *err)
{
    uint32_t p = pipe->stages, m = pipe->microbatches;
    (void)err;
    for (uint32_t r = 0; r < p; r++) {
        uint32_t forward = 0, weight = 0;
        while (forward < p - 1 - r && forward < m)
            *item++ = (struct parallel_item){forward++, 0, PARALLEL_FORWARD};
        for (uint32_t i = 0; i < m; i++) {
            if (forward < m)
                *item++ = (struct parallel_item){forward++, 0, PARALLEL_FORWARD};
            *item++ = (struct parallel_item){i, 0, PARALLEL_BACKWARD};
            if (i >= r)
                *item++ = (struct parallel_item){weight++, 0, PARALLEL_WEIGHT};
        }
        while (weight < m)
            *item++ = (struct parallel_item){weight++, 0, PARALLEL_WEIGHT};
    }
    return true;
}

static const struct parallel_schedule rows[] = {
    {"gpipe", false, false, false, check_one_chunk, gpipe, NULL},
    {"1f1b", true, false, false, check_one_chunk, one_f_one_b, NULL},
    {"interleaved", true, false, false, check_interleaved, interleaved, NULL},
    {"zero-bubble", true, true, false, check_one_chunk, zero_bubble, NULL},
    {"v", false, true, true, check_v, parallel_fill_holes, NULL},
};

const struct parallel_schedule *const parallel_schedules[] = {
    &rows[0], &rows[1], &rows[2], &rows[3], &rows[4], NULL};

const struct parallel_schedule *
parallel_schedule_find(const char *name)
{
    for (size_t i = 0; parallel_schedules[i]; i++)
        if (strcmp(parallel_schedules[i]->name, name) == 0)
            return parallel_schedules[i];
    return NULL;
}

static bool
check_given(const struct parallel_schedule *s, const struct parallel_pipe *pipe,
            struct rec_error *err)
{
    const struct parallel_given *g = s->given;
    return (g->stages == pipe->stages && g->chunks == pipe->chunks &&
            g->microbatches == pipe->microbatches) ||
           rec_fail(err, REC_DATA,
                    "schedule '%s' is of %u stages, %u chunks and %u microbatches, the "
                    "pipeline of %u, %u and %u",
                    s->name, g->stages, g->chunks, g->microbatches, pipe->stages,
                    pipe->chunks, pipe->microbatches);
}

struct parallel_item *
parallel_orders(const struct parallel_schedule *schedule,
                const struct parallel_pipe *pipe, struct rec_error *err)
{
    struct parallel_item *item = NULL;
    size_t n = parallel_items(schedule, pipe) * pipe->stages;
    if (n > MOST_PASSES)
        return rec_fail(err, REC_DATA,
                        "%zu passes are too many to run one after the other; with 1f1b, "
                        "interleaved or zero-bubble, the steady state is run once",
                        n),
               NULL;
    if (schedule->given ? !check_given(schedule, pipe, err) : !schedule->check(pipe, err))
        return NULL;
    item = calloc(n, sizeof *item);
    if (!item)
        rec_fail_memory(err);
    else if (schedule->given)
        memcpy(item, schedule->given->item, n * sizeof *item);
    else if (!schedule->order(pipe, item, err)) {
        free(item);
        item = NULL;
    }
    return item;
}
