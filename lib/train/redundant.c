/* Training with redundant computation: the event simulation. */
#include "redundant_private.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

/* ---- telling ------------------------------------------------------------- */

void
train_redundant_tell(struct train_redundant *r, const char *event)
{
    struct train_redundant_row row = {(double)r->now / 1000,
                                      event,
                                      r->pipelines,
                                      r->stages,
                                      r->nnodes,
                                      r->waiting,
                                      r->steps,
                                      r->result.fatal,
                                      r->status};
    if (r->sink.train)
        r->sink.train(r->sink.context, &row);
}

static void
tell_state(struct train_redundant *r)
{
    uint64_t count[TRAIN_NSTATES] = {r->count[RUNNING], r->count[READY],
                                     r->count[CREATING]};
    bool degraded = r->status == TRAIN_REDUNDANT_RUNNING && r->fallback;
    if (!r->sink.state ||
        (r->told && r->told_status == r->status && r->told_degraded == degraded &&
         memcmp(count, r->told_count, sizeof count) == 0))
        return;
    r->told = true;
    r->told_status = r->status;
    r->told_degraded = degraded;
    memcpy(r->told_count, count, sizeof count);
    r->sink.state(r->sink.context, (double)r->now / 1000, r->status, degraded, count);
}

/* Time goes on to `time`. */
static void
spend(struct train_redundant *r, int64_t time)
{
    static const enum train_account accounts[] = {TRAIN_STALL, TRAIN_RECONFIGURE,
                                                  TRAIN_USEFUL};
    double ms = (double)(time - r->now), all = ms * (double)r->nnodes;
    if (ms == 0)
        return;
    tell_state(r); /* once an instant, when all of it has happened */
    r->result.seconds[accounts[r->status]] += ms / 1000;
    r->result.instance_seconds[accounts[r->status]] += all / 1000;
    r->result.by_state[TRAIN_ACTIVE] += ms * (double)r->count[RUNNING] / 1000;
    r->result.by_state[TRAIN_STANDBY] += ms * (double)r->count[READY] / 1000;
    r->result.by_state[TRAIN_PREPARING] += ms * (double)r->count[CREATING] / 1000;
    if (r->status == TRAIN_REDUNDANT_RUNNING && r->fallback)
        r->result.degraded += ms / 1000;
    r->nodes_ms += all;
    r->now = time;
}

static void
set_status(struct train_redundant *r, struct node *node, enum status status)
{
    r->count[node->status]--;
    r->count[status]++;
    node->status = status;
}

/* The node with a serial, NULL if it is gone. Those that meet are listed almost in the
 * order of the nodes: the search starts behind the last one, at *from. */
static struct node *
find_serial(struct train_redundant *r, uint64_t serial, size_t *from)
{
    for (size_t i = 0; i < r->nnodes; i++) {
        size_t at = *from < r->nnodes ? *from : 0;
        *from = at + 1;
        if (r->node[at].serial == serial)
            return &r->node[at];
    }
    return NULL;
}

/* Those that came first are ready first. */
void
train_redundant_find_next_ready(struct train_redundant *r)
{
    r->next_ready = TRAIN_REDUNDANT_NEVER;
    for (size_t i = 0; r->count[CREATING] > 0 && i < r->nnodes; i++)
        if (r->node[i].status == CREATING) {
            r->next_ready = r->node[i].start + r->profile->creation_ms;
            return;
        }
}

/* ---- rendezvous ---------------------------------------------------------- */

static bool
list_node(struct train_redundant *r, const struct node *node, struct rec_error *err)
{
    if (!rec_grow(&r->listed, &r->listed_room, r->nlisted + 1, sizeof *r->listed, err))
        return false;
    r->listed[r->nlisted++] = node->serial;
    return true;
}

bool
train_redundant_start_rendezvous(struct train_redundant *r, bool global,
                                 const char *event, struct rec_error *err)
{
    r->status = TRAIN_REDUNDANT_RENDEZVOUS;
    r->global = global;
    r->next_step = TRAIN_REDUNDANT_NEVER;
    r->timeout = r->now + (global ? r->profile->global_ms : r->profile->local_ms);
    r->nlisted = 0;
    for (size_t i = 0; i < r->nnodes; i++)
        if (r->node[i].status != CREATING && !list_node(r, &r->node[i], err))
            return false;
    train_redundant_tell(r, event);
    return true;
}

static int64_t
step_time(const struct train_redundant_profile *p, uint64_t pipelines)
{
    for (size_t i = 0; i < p->nspeeds; i++)
        if (p->speed[i].stages == p->stages && p->speed[i].pipelines == pipelines)
            return p->speed[i].ms;
    return TRAIN_REDUNDANT_NEVER;
}

/* So many pipelines can be formed of n nodes. */
static uint64_t
pipelines_of(const struct train_redundant_profile *p, uint64_t n)
{
    uint64_t pipelines = n / p->stages;
    while (pipelines > 0 && step_time(p, pipelines) == TRAIN_REDUNDANT_NEVER)
        pipelines--;
    return pipelines;
}

static void
configure(struct train_redundant *r)
{
    size_t from = 0;
    r->pipelines = pipelines_of(r->profile, r->nlisted);
    r->stages = r->pipelines > 0 ? r->profile->stages : 0;
    r->waiting = r->doubled = 0;
    for (size_t i = 0; i < r->nlisted; i++) {
        struct node *node = find_serial(r, r->listed[i], &from);
        if (i < r->pipelines * r->stages) {
            set_status(r, node, RUNNING);
            node->ncoordinates = 1;
            node->coordinate[0] = (struct coordinate){i / r->stages, i % r->stages};
        } else {
            set_status(r, node, READY);
            node->ncoordinates = 0;
            r->waiting++;
        }
    }
    r->fallback = false;
    r->nlisted = 0;
    r->timeout = TRAIN_REDUNDANT_NEVER;
    r->result.rendezvous++;
    r->status = r->pipelines > 0 ? TRAIN_REDUNDANT_RUNNING : TRAIN_REDUNDANT_STOPPED;
    if (r->pipelines > 0) {
        r->step_ms = step_time(r->profile, r->pipelines);
        r->step_start = r->now;
        r->start_nodes_ms = r->nodes_ms;
        r->next_step = r->now + r->step_ms;
        if (!r->configured) {
            r->configured = true;
            r->first = r->last = r->now;
            r->last_nodes_ms = r->nodes_ms;
        }
    }
    train_redundant_tell(r, "config");
}

static bool
end_rendezvous(struct train_redundant *r, struct rec_error *err)
{
    size_t from = 0;
    for (size_t i = 0; i < r->nlisted; i++)
        if (!find_serial(r, r->listed[i], &from))
            return train_redundant_start_rendezvous(r, r->global, "redo", err);
    configure(r);
    return true;
}

/* ---- steps --------------------------------------------------------------- */

static bool
should_reconfigure(const struct train_redundant *r)
{
    double doubled = (double)r->doubled;
    double running = (double)(r->pipelines * r->stages) - doubled;
    if (r->doubled > 0 && r->waiting >= r->doubled)
        return true;
    if (r->doubled > 0 && 2 * doubled / running > 0.05)
        return true;
    return pipelines_of(r->profile, (uint64_t)running + r->waiting) > r->pipelines;
}

static bool
end_step(struct train_redundant *r, struct rec_error *err)
{
    if (r->fallback && !r->handled && r->fallback_steps == r->steps) {
        /* the rest of the step that runs is slower too */
        r->handled = true;
        r->next_step = r->now + (int64_t)((double)(r->now - r->fallback_time) *
                                          (r->profile->slowdown - 1));
        return true;
    }
    r->steps++;
    r->inverse_cost += (double)(r->now - r->last) /
                       ((r->nodes_ms - r->last_nodes_ms) * r->options.price);
    r->start_nodes_ms = r->last_nodes_ms = r->nodes_ms;
    r->last = r->step_start = r->now;
    r->done = r->options.steps > 0 && r->steps == r->options.steps;
    r->next_step = r->now + r->step_ms;
    train_redundant_tell(r, "step");
    if (!r->done && should_reconfigure(r))
        return train_redundant_start_rendezvous(r, false, "rendezvous_local", err);
    return true;
}

static bool
get_ready(struct train_redundant *r, struct rec_error *err)
{
    struct node *node = r->node;
    bool ok = true;
    while (node->status != CREATING)
        node++;
    set_status(r, node, READY);
    if (r->status == TRAIN_REDUNDANT_STOPPED)
        ok = train_redundant_start_rendezvous(r, true, "rendezvous_global", err);
    else if (r->status == TRAIN_REDUNDANT_RENDEZVOUS)
        ok = list_node(r, node, err);
    else
        r->waiting++;
    train_redundant_tell(r, "ready");
    train_redundant_find_next_ready(r);
    return ok;
}

/* Everything that happens by itself before `time`; ties: ready, rendezvous, step. */
static bool
advance(struct train_redundant *r, int64_t time, struct rec_error *err)
{
    while (!r->done) {
        int64_t next = r->next_ready;
        bool ok;
        if (r->timeout < next)
            next = r->timeout;
        if (r->next_step < next)
            next = r->next_step;
        if (next >= time)
            break;
        spend(r, next);
        if (next == r->next_ready)
            ok = get_ready(r, err);
        else if (next == r->timeout)
            ok = end_rendezvous(r, err);
        else
            ok = end_step(r, err);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- what comes from outside ---------------------------------------- */

bool
train_redundant_take(struct train_redundant *r, const struct spot_event *event,
                     struct rec_error *err)
{
    int64_t time = llround(event->time * 1000);
    struct rec_str ids = event->ids, id = {NULL, 0};

    if (r->done)
        return true;
    if (time > r->now && !train_redundant_end_instant(r, err))
        return false;
    if (!advance(r, time, err))
        return false;
    if (r->done)
        return true;
    spend(r, time);
    if (event->kind == SPOT_PREEMPT)
        return train_redundant_keep_removal(r, event, err);
    for (uint64_t i = 0; i < event->count; i++) {
        if (ids.len > 0)
            rec_str_split(&ids, ',', &id);
        if (!train_redundant_add_node(r, id, err))
            return false;
    }
    return true;
}

/* ---- start and end ------------------------------------------------------- */

struct train_redundant *
train_redundant_new(const struct train_redundant_options *options,
                    const struct train_redundant_sink *sink, struct rec_error *err)
{
    struct train_redundant *r = calloc(1, sizeof *r);
    struct spot_event start = {options->begin, SPOT_ADD, options->start, {NULL, 0}};

    if (!r) {
        rec_fail_memory(err);
        return NULL;
    }
    if (options->victims == TRAIN_RANDOM && !(r->rng = rng_new(options->seed, 0, err))) {
        free(r);
        return NULL;
    }
    r->options = *options;
    r->sink = *sink;
    r->profile = options->profile;
    r->now = llround(options->begin * 1000);
    r->next_step = r->timeout = r->next_ready = TRAIN_REDUNDANT_NEVER;
    r->last_removal = r->first_node = TRAIN_REDUNDANT_NEVER;
    r->result.begin = (double)r->now / 1000;
    if (start.count == 0 || train_redundant_take(r, &start, err))
        return r;
    train_redundant_free(r);
    return NULL;
}

/* Mean, median and sample deviation, in seconds; NAN where there is no value. */
static void
describe(struct sample *s, double *mean, double *median, double *stdev)
{
    *mean = *median = *stdev = NAN;
    if (s->n == 0)
        return;
    gsl_sort(s->value, 1, s->n);
    *mean = gsl_stats_mean(s->value, 1, s->n) / 1000;
    *median = gsl_stats_median_from_sorted_data(s->value, 1, s->n) / 1000;
    *stdev = s->n > 1 ? gsl_stats_sd(s->value, 1, s->n) / 1000 : 0;
}

static void
average(struct train_redundant *r)
{
    double begin = r->result.begin * 1000, until = (double)r->last - begin;
    double seconds = (double)(r->last - r->first) / 1000, nodes;

    r->result.first = r->result.last = r->result.instances = r->result.cost = NAN;
    r->result.performance = r->result.value = NAN;
    if (r->steps == 0)
        return;
    r->result.first = (double)r->first / 1000;
    r->result.last = (double)r->last / 1000;
    /* as published: if the number changed after the last step, the time back to that step
     * is taken off with the later number */
    nodes = r->changed > r->last
                ? r->changed_nodes_ms - (double)(r->changed - r->last) * (double)r->nnodes
                : r->last_nodes_ms;
    /* and before the first came, as many are counted as came */
    if ((double)r->first_node > begin)
        nodes += ((double)r->first_node - begin) * r->first_nodes;
    r->result.instances = nodes / until;
    r->result.cost = r->result.instances * r->options.price;
    r->result.performance = r->profile->samples * (double)r->steps / seconds;
    if (r->options.price > 0)
        r->result.value = r->profile->samples * r->inverse_cost / seconds;
}

bool
train_redundant_finish(struct train_redundant *r, double end,
                       struct train_redundant_result *result, struct rec_error *err)
{
    int64_t last = isinf(end) ? TRAIN_REDUNDANT_NEVER : llround(end * 1000) + 1;
    if (r->options.steps == 0 && last == TRAIN_REDUNDANT_NEVER)
        return rec_fail(err, REC_USAGE, "the training has no end");
    if (!r->done && (!train_redundant_end_instant(r, err) || !advance(r, last, err)))
        return false;
    tell_state(r);
    /* as published: the lives that go on end with the last event, if none is to come */
    r->happened = r->now;
    if (!r->done && last != TRAIN_REDUNDANT_NEVER) {
        spend(r, last - 1);
        if (r->next_step != TRAIN_REDUNDANT_NEVER ||
            r->timeout != TRAIN_REDUNDANT_NEVER || r->next_ready != TRAIN_REDUNDANT_NEVER)
            r->happened = r->now;
    }
    for (size_t i = 0; i < r->nnodes; i++)
        if (!train_redundant_keep_value(&r->lifetime, r->happened - r->node[i].start,
                                        err))
            return false;
    r->result.end = (double)r->now / 1000;
    r->result.steps = r->steps;
    describe(&r->lifetime, &r->result.lifetime_mean, &r->result.lifetime_median,
             &r->result.lifetime_stdev);
    describe(&r->gap, &r->result.preemption_mean, &r->result.preemption_median,
             &r->result.preemption_stdev);
    average(r);
    *result = r->result;
    return true;
}

void
train_redundant_free(struct train_redundant *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->nnodes; i++)
        free(r->node[i].name);
    for (size_t i = 0; i < r->nremovals; i++)
        free(r->removal[i]);
    rng_free(r->rng);
    rec_map_free(&r->names);
    free(r->node);
    free(r->listed);
    free(r->removal);
    free(r->removal_count);
    free(r->lifetime.value);
    free(r->gap.value);
    free(r);
}
