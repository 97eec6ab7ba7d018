/*
 * When the devices of a pipeline come to their end, without running it.
 *
 * A device runs its list in order, so it ends at least as late as all its passes take,
 * plus the most that it has waited for one of them. It waits at the start: the first
 * microbatch reaches its passes along the stages, and from the passes that its list has
 * before them it has not that much to do. Likewise at the end, which is the start of the
 * same schedule run backwards in time, where backward passes take the place of forward
 * ones. In between, a microbatch that goes down from a stage and comes back takes its
 * time; if that is more than the device has to do meanwhile, it waits again each time.
 */
#include "closed.h"

#include <math.h>

struct pipe {
    const double *pass[2];   /* of each stage; the first kind runs first */
    const double *before[2]; /* of each stage and behind the last one */
    uint64_t p, v, m;
    double message;
};

/* Seconds of the first n passes of a kind of device r. They come in groups of p
 * microbatches, from one chunk to the next. */
static double
first_passes(const struct pipe *pipe, int kind, uint64_t r, uint64_t n, double all)
{
    const double *pass = pipe->pass[kind];
    uint64_t p = pipe->p, v = pipe->v, rest;
    double sum = (double)(n / (p * v)) * (double)p * all;
    if (v == 1)
        return (double)n * pass[r];
    rest = n % (p * v);
    for (uint64_t i = 0; i < rest / p; i++)
        sum += (double)p * pass[i * p + r];
    if (rest % p > 0)
        sum += (double)(rest % p) * pass[rest / p * p + r];
    return sum;
}

/* How long device r has waited in all when it comes to the passes of the first
 * microbatch, on its way forward through the stages and back: 2 v of them, in the order
 * of its list. `own` are its forward passes of a microbatch. */
static void
wait_first(const struct pipe *pipe, uint64_t r, double own, struct closed_wait *wait)
{
    uint64_t p = pipe->p, v = pipe->v, m = pipe->m, last = p * v;
    uint64_t warm = v > 1 ? 2 * (p - 1 - r) + (v - 1) * p : p - 1 - r;
    uint64_t group = m < p ? m : p;
    double done = 0, down = pipe->before[0][last] - pipe->message;
    uint64_t n = warm + 1 < m * v ? warm + 1 : m * v;
    double forward = first_passes(pipe, 0, r, n, own);
    for (uint64_t j = 0; j < v; j++) {
        uint64_t stage = j * p + r;
        *wait++ = (struct closed_wait){j * group, pipe->before[0][stage] - done};
        done += (double)group * pipe->pass[0][stage];
    }
    done = 0;
    for (uint64_t j = v; j-- > 0;) {
        uint64_t stage = j * p + r, back = (v - 1 - j) * group;
        double arrives = down + pipe->before[1][last] - pipe->before[1][stage + 1];
        *wait++ = (struct closed_wait){n + back, arrives - forward - done};
        done += (double)group * pipe->pass[1][stage];
        /* of two chunks one after the other */
        for (uint64_t more = p, next; more > 0 && n < m * v; more -= next, n += next) {
            next = p - n % p < more ? p - n % p : more;
            next = next < m * v - n ? next : m * v - n;
            forward += (double)next * pipe->pass[0][n / p % v * p + r];
        }
    }
}

/* The most that it waits at the start and at the end, by passes of its list of which the
 * one at the start comes first, or is the same. */
static double
wait_both(const struct closed_wait *start, const struct closed_wait *end, uint64_t v,
          uint64_t items)
{
    double most = 0, first = 0;
    uint64_t i = 0;
    for (uint64_t k = 2 * v; k-- > 0;) { /* what has more behind it comes sooner */
        for (; i < 2 * v && start[i].items + end[k].items < items; i++)
            first = fmax(first, start[i].seconds);
        if (i > 0)
            most = fmax(most, first + end[k].seconds);
    }
    return most;
}

/* Seconds of n backward passes of device r from number `from` of a group on. */
static double
backward_passes(const struct pipe *pipe, uint64_t r, uint64_t from, uint64_t n)
{
    uint64_t p = pipe->p, v = pipe->v, next;
    double sum = 0;
    for (uint64_t i = from; n > 0; i += next, n -= next) {
        next = p - i % p < n ? p - i % p : n;
        sum += (double)next * pipe->pass[1][(v - 1 - i / p % v) * p + r];
    }
    return sum;
}

/* How long it waits in between. From a forward pass of its first chunk until the same
 * microbatch comes back, the list has `advance` pairs of passes. */
static double
wait_again(const struct pipe *pipe, uint64_t r, double forward, double backward)
{
    uint64_t p = pipe->p, v = pipe->v, last = p * v, groups = pipe->m / p;
    uint64_t advance = v > 1 ? 2 * (last - r) - 1 : p - r, times;
    double loop = pipe->before[0][last] - pipe->before[0][r] + pipe->before[1][last] -
                  pipe->before[1][r] - 2 * pipe->message;
    double work = (double)advance * (forward + backward);
    if (v > 1) { /* more than one group of p microbatches, less than two */
        uint64_t warm = 2 * (p - 1 - r) + (v - 1) * p;
        times = groups > 3 ? (groups - 3) / 2 : 0;
        if (times == 0)
            return 0;
        work = first_passes(pipe, 0, r, advance, forward) +
               backward_passes(pipe, r, (2 * last - warm) % last, advance);
    } else
        times = (pipe->m - 1) / advance > 1 ? (pipe->m - 1) / advance - 1 : 0;
    return loop > work ? (double)times * (loop - work) : 0;
}

/* All forward passes come first: both halves are flow shops of equal jobs, in which the
 * links between stages are machines, too. */
static void
run_gpipe(const struct pipe *pipe, double *last)
{
    uint64_t p = pipe->p;
    double most = p > 1 ? pipe->message : 0, at;
    for (uint64_t r = 0; r < p; r++)
        most = fmax(most, pipe->pass[0][r]);
    at = pipe->before[0][p] - pipe->message + (double)(pipe->m - 1) * most;
    most = 0;
    for (uint64_t r = p; r-- > 0;) {
        most = fmax(most, pipe->pass[1][r]);
        if (r + 1 < p)
            most = fmax(most, pipe->message);
        last[r] = at + pipe->before[1][p] - pipe->before[1][r] - pipe->message +
                  (double)(pipe->m - 1) * most;
    }
}

/* The first device's link carries a message for each of its forward passes, one after the
 * other. The last one goes on to the end of the model, and comes back. */
static double
by_link(const struct pipe *pipe)
{
    uint64_t p = pipe->p, last = p * pipe->v, next = last - p + 1;
    return p < 2 ? 0
                 : pipe->pass[0][0] + (double)(pipe->m * pipe->v) * pipe->message +
                       pipe->before[0][last] - pipe->before[0][next] +
                       pipe->before[1][last] - 2 * pipe->message;
}

static void
run_alternating(const struct pipe *pipe, struct closed_wait *const wait[2], double *last)
{
    uint64_t p = pipe->p;
    struct pipe reversed = *pipe;
    for (int i = 0; i < 2; i++) {
        reversed.pass[i] = pipe->pass[1 - i];
        reversed.before[i] = pipe->before[1 - i];
    }
    for (uint64_t r = p; r-- > 0;) {
        double forward = 0, backward = 0, all;
        for (uint64_t j = 0; j < pipe->v; j++) {
            forward += pipe->pass[0][j * p + r];
            backward += pipe->pass[1][j * p + r];
        }
        all = forward + backward;
        wait_first(pipe, r, forward, wait[0]);
        wait_first(&reversed, r, backward, wait[1]);
        /* the end is that of stage 0; this device's comes before */
        last[r] = wait_both(wait[0], wait[1], pipe->v, 2 * pipe->m * pipe->v) +
                  (double)pipe->m * all + wait_again(pipe, r, forward, backward) -
                  pipe->before[1][r];
        if (r + 1 < p)
            last[r] = fmax(last[r], last[r + 1] + pipe->message + pipe->pass[1][r]);
    }
    last[0] = fmax(last[0], by_link(pipe));
}

/* ---- activations ---------------------------------------------------------------- */

/* With chunks, forward passes run `warm` ahead of backward ones, and the most is where
 * one of both goes on to the next chunk. */
double
closed_kept(const struct closed *c, const struct parallel_mix *mix, uint32_t r)
{
    uint64_t p = c->pp, v = c->vp, m = c->m, all = m * v, warm, next;
    /* chunks of the next forward and backward passes, and what is left of these */
    uint64_t f = 0, b = v - 1, to_f = p, to_b = p;
    double now = 0, most;
    if (v == 1)
        return (double)(mix->schedule == c->gpipe || m < p - r ? m : p - r) * c->kept[r];
    warm = 2 * (p - 1 - r) + (v - 1) * p;
    if (warm >= all)
        warm = all - 1;
    for (uint64_t left = warm + 1; left > 0; left -= next) {
        next = left < to_f ? left : to_f;
        now += (double)next * c->kept[f * p + r];
        to_f -= next;
        if (to_f == 0)
            to_f = p, f = f + 1 == v ? 0 : f + 1;
    }
    most = now;
    /* forward pass warm + i has run, and backward pass i is next; a round returns */
    for (uint64_t i = 0; i < p * v && warm + i + 1 < all; i += next) {
        next = to_f < to_b ? to_f : to_b;
        if (next > all - warm - 1 - i)
            next = all - warm - 1 - i;
        now += (double)next * (c->kept[f * p + r] - c->kept[b * p + r]);
        most = now > most ? now : most;
        to_f -= next;
        to_b -= next;
        if (to_f == 0)
            to_f = p, f = f + 1 == v ? 0 : f + 1;
        if (to_b == 0)
            to_b = p, b = b == 0 ? v - 1 : b - 1;
    }
    return most;
}

/* ---- the whole -------------------------------------------------------------------- */

/* Sums the layers of the stages. */
static void
sum_stages(struct closed *c, const struct closed_layers *layers, double blocking,
           double sent)
{
    uint32_t n = c->pp * c->vp, kinds = c->kinds;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *count = &c->count[i * kinds];
        double forward = i + 1 < n ? blocking : 0, backward = i > 0 ? blocking : 0;
        double kept = i == n - 1 ? 0 : sent;
        for (uint32_t k = 0; k < kinds; k++) {
            forward += count[k] * layers->forward[k];
            backward += count[k] * layers->backward[k];
            kept += count[k] * layers->kept[k];
        }
        if (i == 0) {
            forward += layers->forward[kinds];
            backward += layers->backward[kinds];
            kept += layers->kept[kinds];
        }
        if (i == n - 1) {
            forward += layers->forward[kinds + 1];
            backward += layers->backward[kinds + 1];
            kept += layers->kept[kinds + 1];
        }
        c->pass[0][i] = forward;
        c->pass[1][i] = backward;
        c->kept[i] = kept;
    }
}

void
closed_stages(struct closed *c, const struct parallel_mix *mix,
              const struct closed_layers *layers)
{
    double message = parallel_message_shown(c->model, mix, c->machine);
    double blocking = c->machine->stack->blocking ? message : 0;
    c->message = c->machine->stack->blocking ? 0 : message;
    c->m = parallel_microbatches(mix);
    c->ran = false;
    for (uint32_t r = 0; r < c->pp; r++)
        c->activations[r] = NAN;
    sum_stages(c, layers, blocking, parallel_sent_kept(mix, c->model));
    for (int kind = 0; kind < 2; kind++) {
        uint32_t none = kind == 0 ? c->pp * c->vp - 1 : 0; /* sends no message */
        for (uint32_t r = 0; r < c->pp; r++) {
            double sum = none % c->pp == r ? blocking : 0;
            for (uint32_t i = r; i < c->pp * c->vp; i += c->pp)
                sum += c->pass[kind][i] - blocking;
            c->own[kind][r] = sum;
        }
    }
}

/* A device starts when the first microbatch has come down to it; behind its last pass
 * another one ends on its way up. */
double
closed_least(const struct closed *c)
{
    double most = 0, before = 0;
    for (uint32_t r = 0; r < c->pp; r++) {
        double busy = 0;
        for (uint32_t i = r; (r == 0 || r + 1 == c->pp) && i < c->pp * c->vp; i += c->pp)
            busy += c->pass[0][i] + c->pass[1][i];
        most = fmax(most, before + (double)c->m * busy);
        before += c->pass[0][r] + c->pass[1][r] + 2 * c->message;
    }
    return most;
}

void
closed_run(struct closed *c, const struct parallel_mix *mix)
{
    struct pipe pipe = {.pass = {c->pass[0], c->pass[1]},
                        .before = {c->before[0], c->before[1]},
                        .p = c->pp,
                        .v = c->vp,
                        .m = c->m,
                        .message = c->message};
    for (int kind = 0; kind < 2; kind++)
        for (uint32_t i = 0; i < c->pp * c->vp; i++)
            c->before[kind][i + 1] = c->before[kind][i] + c->pass[kind][i] + c->message;
    if (mix->schedule == c->gpipe)
        run_gpipe(&pipe, c->last);
    else
        run_alternating(&pipe, c->wait, c->last);
}
