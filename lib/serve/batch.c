/* The station of batches: one queue, from which idle replicas take batches of waiting
 * queries (rampipe/serve.h). There are two kinds of event: a batch is done, or a replica
 * takes a batch after the batching delay. */
#include "engine.h"

#include <stdlib.h>

struct batch {
    struct serve_token *token;
    size_t room;
    uint32_t n;
    double started; /* seconds */
};

struct batches {
    struct serve_station station; /* its `waiting` are the queries in the ring */
    enum serve_service service;
    uint32_t most;   /* the most queries in a batch */
    double *seconds; /* [n - 1]: time of a batch of n, for n up to `known` */
    uint32_t known;
    /* the queue, a ring: its first query is at `head`, which counts modulo `room` */
    struct serve_token *ring;
    size_t room; /* a power of two, or 0 */
    size_t head;
    /* numbers of replicas: idle, waiting for the batching delay; the others are busy */
    uint32_t idle, taking;
    uint32_t surplus; /* of those that are not idle, those that go when they become so */
    struct batch *batch;
    size_t nbatches, batch_room;
    uint32_t *vacant; /* indices of batches that are not in use */
    size_t nvacant, vacant_room;
};

/* Times of batches are computed once, up to the largest batch so far: a change of the
 * batch needs only those that are new. */
static bool
set_batch(struct batches *b, uint32_t batch, struct rec_error *err)
{
    double *seconds;
    b->most = batch;
    if (batch <= b->known)
        return true;
    seconds = realloc(b->seconds, batch * sizeof *seconds);
    if (!seconds)
        return rec_fail_memory(err);
    b->seconds = seconds;
    while (b->known < batch) {
        b->known++;
        seconds[b->known - 1] = serve_seconds(b->station.profile, b->service, b->known);
    }
    return true;
}

static bool
open_batches(struct serve_station *station, const struct serve_options *options,
             struct rec_error *err)
{
    struct batches *b = (struct batches *)station;
    b->service = options->service;
    b->idle = station->replicas = station->config->replicas;
    return set_batch(b, station->config->batch, err);
}

static void
close_batches(struct serve_station *station)
{
    struct batches *b = (struct batches *)station;
    for (size_t i = 0; i < b->nbatches; i++)
        free(b->batch[i].token);
    free(b->batch);
    free(b->vacant);
    free(b->ring);
    free(b->seconds);
}

/* ---- the queue ------------------------------------------------------------- */

static bool
enqueue(struct batches *b, struct serve_token token, struct rec_error *err)
{
    size_t n = b->station.waiting;
    if (n == b->room) {
        struct serve_token *ring;
        if (n >= REC_NONE || !(ring = malloc((n ? 2 * n : 64) * sizeof *ring)))
            return rec_fail_memory(err);
        for (size_t i = 0; i < n; i++)
            ring[i] = b->ring[(b->head + i) & (n - 1)];
        free(b->ring);
        b->ring = ring;
        b->room = n ? 2 * n : 64;
        b->head = 0;
    }
    b->ring[(b->head + n) & (b->room - 1)] = token;
    b->station.waiting++;
    return true;
}

static struct serve_token
dequeue(struct batches *b)
{
    b->station.waiting--;
    return b->ring[b->head++ & (b->room - 1)];
}

/* ---- batches --------------------------------------------------------------- */

/* Finds a batch that is not in use. `vacant` grows with `batch`, so that giving one back
 * never needs memory. */
static bool
open_batch(struct batches *b, uint32_t *slot, struct rec_error *err)
{
    if (b->nvacant > 0) {
        *slot = b->vacant[--b->nvacant];
        return true;
    }
    *slot = (uint32_t)b->nbatches;
    if (!rec_grow(&b->batch, &b->batch_room, b->nbatches + 1, sizeof *b->batch, err) ||
        !rec_grow(&b->vacant, &b->vacant_room, b->nbatches + 1, sizeof *b->vacant, err))
        return false;
    b->batch[b->nbatches++] = (struct batch){0};
    return true;
}

/* A replica has nothing to do. It is removed if there is one replica too many; else it is
 * idle, and this returns true. */
static bool
rest(struct batches *b)
{
    if (b->surplus == 0) {
        b->idle++;
        return true;
    }
    b->surplus--;
    b->station.replicas--;
    return false;
}

/* A replica takes waiting queries, up to a batch. The caller has counted it as busy. It
 * rests if no query waits, or all were dropped. */
static bool
start_batch(struct serve_sim *sim, struct batches *b, double time, struct rec_error *err)
{
    uint32_t most = b->station.waiting < b->most ? b->station.waiting : b->most, slot;
    struct batch *batch;

    if (!open_batch(b, &slot, err))
        return false;
    batch = &b->batch[slot];
    if (most > batch->room &&
        !rec_grow(&batch->token, &batch->room, most, sizeof *batch->token, err))
        return false;
    batch->n = 0;
    batch->started = time;
    while (batch->n < b->most && b->station.waiting > 0) {
        struct serve_token token = dequeue(b);
        bool late = false;
        if (sim->drops &&
            !serve_drop_late(sim, &b->station, token.query, time, &late, err))
            return false;
        if (!late)
            batch->token[batch->n++] = token;
    }
    sim->happened++;
    if (batch->n > 0)
        return serve_push(sim, &b->station, time + b->seconds[batch->n - 1], SERVE_ENDS,
                          slot, err);
    b->vacant[b->nvacant++] = slot;
    b->station.busy--;
    rest(b);
    return true;
}

/* Lets idle replicas take batches for `n` queries of the queue: as many replicas as these
 * queries need, or all idle ones if they are fewer. They take the batches at once, or
 * after the batching delay. */
static bool
wake(struct serve_sim *sim, struct batches *b, uint32_t n, double time,
     struct rec_error *err)
{
    double delay = b->station.config->delay;

    while (n > 0 && b->idle > 0) {
        n -= n < b->most ? n : b->most;
        b->idle--;
        if (delay > 0) {
            b->taking++;
            if (!serve_push(sim, &b->station, time + delay, SERVE_BEGINS, 0, err))
                return false;
        } else {
            b->station.busy++;
            if (!start_batch(sim, b, time, err))
                return false;
        }
    }
    return true;
}

/* The batch is given back only after its queries have gone on, so that no other batch
 * uses its memory before. */
static bool
finish_batch(struct serve_sim *sim, struct batches *b, uint32_t slot, double time,
             struct rec_error *err)
{
    const struct batch *batch = &b->batch[slot];
    b->station.busy--;
    if (!serve_leave(sim, &b->station, batch->token, batch->n, batch->started, time, err))
        return false;
    b->vacant[b->nvacant++] = slot;
    return !rest(b) || wake(sim, b, b->station.waiting > 0, time, err);
}

/* ---- what happens ---------------------------------------------------------- */

static bool
come_batches(struct serve_sim *sim, struct serve_station *station,
             const struct serve_token *token, uint32_t n, double time,
             struct rec_error *err)
{
    struct batches *b = (struct batches *)station;
    for (uint32_t i = 0; i < n; i++)
        if (!enqueue(b, (struct serve_token){token[i].query, time}, err))
            return false;
    return wake(sim, b, n, time, err);
}

static bool
happen_batches(struct serve_sim *sim, struct serve_station *station,
               enum serve_moment moment, uint32_t slot, double time,
               struct rec_error *err)
{
    struct batches *b = (struct batches *)station;
    if (moment == SERVE_ENDS)
        return finish_batch(sim, b, slot, time, err);
    b->taking--;
    station->busy++;
    return start_batch(sim, b, time, err);
}

/* If there are too many replicas, idle ones are removed at once; `surplus` is the number
 * of others that are removed when they become idle. If there are too few replicas, those
 * in `surplus` are kept before new ones are added. A replica in its batching delay is not
 * idle: it takes its batch first. With a smaller batch, such replicas may leave queries
 * for idle ones. */
static bool
change_batches(struct serve_sim *sim, struct serve_station *station,
               const struct serve_change *change, struct rec_error *err)
{
    struct batches *b = (struct batches *)station;
    uint32_t now = station->replicas - b->surplus, more, stay;
    uint64_t taken;
    if (!set_batch(b, change->batch, err))
        return false;
    if (change->replicas <= now) {
        more = now - change->replicas;
        stay = more < b->idle ? more : b->idle;
        b->idle -= stay;
        station->replicas -= stay;
        b->surplus += more - stay;
        taken = (uint64_t)b->taking * b->most;
        return station->waiting <= taken ||
               wake(sim, b, station->waiting - (uint32_t)taken, change->time, err);
    }
    more = change->replicas - now;
    stay = more < b->surplus ? more : b->surplus;
    b->surplus -= stay;
    b->idle += more - stay;
    station->replicas += more - stay;
    return wake(sim, b, station->waiting, change->time, err);
}

const struct serve_station_kind serve_batches = {
    sizeof(struct batches), open_batches,   come_batches,
    happen_batches,         change_batches, close_batches,
};
