/* The jobs of a replay, from their start to their end. */
#include "explain.h"
#include "loads.h"
#include "replay.h"

#include <math.h>
#include <stdlib.h>

bool
sim_jobs_forget(struct sim_replay *r, uint32_t index, struct rec_error *err)
{
    struct live *live = &r->live[index];
    if (live->layout)
        sim_layout_release(live->layout);
    free(live->id);
    free(live->graphs);
    free(live->claim);
    sim_first_free(live->first);
    *live = (struct live){0};
    if (!rec_grow(&r->vacant, &r->vacant_room, r->nvacant + 1, sizeof *r->vacant, err))
        return false;
    r->vacant[r->nvacant++] = index;
    return true;
}

/* The graph that a job runs, or its first alternative. */
static const struct graph *
graph_of(const struct sim_replay *r, const struct live *live)
{
    struct rec_str rest = live->job.graphs, id;
    if (live->layout)
        return live->layout->where.graph;
    rec_str_split(&rest, ',', &id);
    return r->stream.store.graph[graph_store_find(&r->stream.store, id)];
}

/* True if the job has been allocated, but others still have servers of it. */
static bool
is_waiting(const struct live *live)
{
    return live->claim && live->claim->awaits > 0;
}

static struct sim_done
describe(const struct sim_replay *r, const struct live *live)
{
    return (struct sim_done){.job = live->job,
                             .graph = graph_of(r, live),
                             .layout = is_waiting(live) ? NULL : live->layout,
                             .cost = &live->cost,
                             .start = live->start,
                             .finish = live->finish,
                             .waited = live->waited,
                             .alone = r->companies ? live->alone : (double)NAN,
                             .healthy = live->healthy};
}

struct telling {
    const struct sim_replay *r;
    const struct sim_done *done;
};

static bool
tell_reason(void *context, const struct sim_reason *reason, struct rec_error *err)
{
    const struct telling *telling = context;
    const struct sim_replay *r = telling->r;
    return r->sink.explain(r->sink.context, telling->done, r->net, reason, err);
}

/* Tells what happened in a step, as if it had begun when the job did. */
static bool
tell_moments(const struct sim_replay *r, const struct live *live,
             const struct sim_done *done, struct rec_error *err)
{
    const struct sim_first *first = live->first;
    for (size_t i = 0; i < first->before.n; i++) {
        struct sim_moment moment = first->before.of[i];
        if (first->from != live->start) {
            moment.start = live->start + (moment.start - first->from);
            moment.end = live->start + (moment.end - first->from);
        }
        if (!r->sink.happened(r->sink.context, done, r->net, live->claim->server, &moment,
                              err))
            return false;
    }
    return true;
}

/* Tells of the first step of a job that leaves at `time`, if it is over by then.
 * INFINITY: the job is complete; if its steps take a mean, that may be shorter than the
 * first one. */
static bool
tell_first(struct sim_replay *r, uint32_t index, const struct sim_done *done, double time,
           struct rec_error *err)
{
    struct live *live = &r->live[index];
    struct telling telling = {r, done};
    struct sim_member member = {.number = index, .layout = live->layout, .net = r->net};
    double length = live->first ? live->first->length : live->cost.step.seconds;
    if ((!r->sink.explain && !live->first) || !live->layout || is_waiting(live) ||
        (live->first && !live->first->some) || live->start + length > time * (1 + 1e-12))
        return true;
    member.servers = live->claim->server;
    return (!r->sink.happened || !live->first || tell_moments(r, live, done, err)) &&
           (!r->sink.explain ||
            sim_explain(&member, live->first, tell_reason, &telling, err));
}

/* A job that takes time has been in a company. Its cost is then the mean of its steps. */
static bool
leave_company(struct sim_replay *r, uint32_t index, double time, struct rec_error *err)
{
    struct live *live = &r->live[index];
    r->left = isfinite(time) ? fmax(r->left, time) : r->left;
    if (live->first && live->first->open)
        live->first->some = false; /* its first step is not over */
    if (!r->companies || !(live->cost.step.seconds > 0) || is_waiting(live))
        return true;
    sim_companies_step(r->companies, index, time, &live->cost.step);
    return sim_companies_end(r->companies, index, time, err);
}

/* The servers of a job are free from `time` on. Jobs that waited for nothing else are
 * due. */
static bool
pass_servers(struct sim_replay *r, const struct claim *claim, double time,
             struct rec_error *err)
{
    r->freed = time;
    for (uint32_t i = 0; i < claim->n; i++) {
        uint32_t next = claim->after[i];
        if (next == NONE || --r->live[next].claim->awaits > 0)
            continue;
        if (!rec_grow(&r->due, &r->due_room, r->ndue + 1, sizeof *r->due, err))
            return false;
        r->due[r->ndue++] = next;
    }
    return true;
}

/* Ends the job that finishes first. */
static bool
end_first(struct sim_replay *r, struct rec_error *err)
{
    struct event_entry end = event_queue_pop(&r->ends);
    uint32_t index = (uint32_t)end.key;
    struct live *live = &r->live[index];
    struct sim_done done;
    if (!leave_company(r, index, end.time, err))
        return false;
    done = describe(r, live);
    return tell_first(r, index, &done, (double)INFINITY, err) &&
           (!r->sink.done || r->sink.done(r->sink.context, &done, err)) &&
           (!live->claim || pass_servers(r, live->claim, end.time, err)) &&
           sim_jobs_forget(r, index, err);
}

/* ---- jobs that share links ------------------------------------------------- */

/* True unless the job has ended or ends at another time, as was reckoned later. */
static bool
is_valid(const struct sim_replay *r, struct event_entry end)
{
    const struct live *live = &r->live[(uint32_t)end.key];
    return (uint32_t)live->number == end.key >> 32 && live->finish == end.time;
}

/* Drops all ends that are void, so that they need no more memory than running jobs. */
static bool
sweep(struct sim_replay *r, struct rec_error *err)
{
    size_t n = r->ends.n;
    if (n < 2 * r->nlive + 64)
        return true;
    r->ends.n = 0; /* entry i goes where one of the first i was */
    for (size_t i = 0; i < n; i++) {
        struct event_entry end = r->ends.event[i];
        if (is_valid(r, end) && !event_queue_push(&r->ends, end, err))
            return false;
    }
    return true;
}

/* The end of a job that has started is `finish`; INFINITY: it is not known. */
static bool
reckoned(void *context, uint32_t job, double finish, struct rec_error *err)
{
    struct sim_replay *r = context;
    struct live *live = &r->live[job];
    if (live->finish == finish)
        return true;
    live->finish = finish;
    return sweep(r, err) &&
           (!isfinite(finish) ||
            event_queue_push(
                &r->ends, (struct event_entry){finish, live->number << 32 | job}, err));
}

static double
next_end(struct sim_replay *r)
{
    while (r->companies && r->ends.n && !is_valid(r, r->ends.event[0]))
        event_queue_pop(&r->ends);
    return r->ends.n ? r->ends.event[0].time : (double)INFINITY;
}

/* What a step would take on links or servers that are healthier. */
static bool
reckon_as_if(const struct sim_member *member, enum sim_health health, double *seconds,
             struct rec_error *err)
{
    struct sim_member as = *member;
    struct sim_cost cost;
    as.health = health;
    if (!sim_member_cost(&as, &cost, err))
        return false;
    *seconds = cost.step.seconds;
    return true;
}

/* What a step takes alone, now that the job starts, and without stragglers and faults. */
static bool
reckon_alone(const struct sim_replay *r, struct live *live,
             const struct sim_member *member, struct rec_error *err)
{
    live->alone = live->cost.step.seconds;
    live->healthy = (double)NAN;
    if (r->faults && (!sim_member_cost(member, &live->cost, err) ||
                      !reckon_as_if(member, SIM_LINKS_WELL, &live->alone, err)))
        return false;
    return !net_has_stragglers(r->net) ||
           reckon_as_if(member, SIM_ALL_WELL, &live->healthy, err);
}

bool
sim_jobs_start(struct sim_replay *r, uint32_t index, const uint32_t *servers, double time,
               struct rec_error *err)
{
    struct live *live = &r->live[index];
    struct sim_member member = {.number = index,
                                .layout = live->layout,
                                .net = r->net,
                                .servers = servers,
                                .loads = r->pool.loads};
    struct sim_done done;

    live->waited = time - live->start;
    if (!reckon_alone(r, live, &member, err))
        return false;
    live->start = time;
    live->finish = time + live->cost.step.seconds * live->job.steps;
    done = describe(r, live);
    if (r->sink.started && !r->sink.started(r->sink.context, &done, r->net, servers, err))
        return false;
    if ((r->sink.explain || r->sink.happened) && r->companies) {
        struct sim_asked asked = {r->sink.explain, r->sink.happened,
                                  r->sink.happened && r->sink.load};
        struct sim_member unseen = member;
        struct sim_cost cost;
        if (!(live->first = sim_first_new(&r->pool, r->net, asked, err)))
            return false;
        unseen.loads = NULL;
        unseen.first = member.first = live->first;
        if (!sim_member_observe(&unseen, NULL, &cost, err))
            return false;
    }
    if (!r->companies || !(live->cost.step.seconds > 0))
        return event_queue_push(
            &r->ends, (struct event_entry){live->finish, live->number << 32 | index},
            err);
    live->finish = (double)INFINITY;
    return sim_companies_start(r->companies, &member, &live->cost.step, live->job.steps,
                               time, err);
}

/* Starts the jobs that are due, in the order of their alloc records. */
static bool
start_due(struct sim_replay *r, struct rec_error *err)
{
    while (r->ndue > 0) {
        size_t first = 0;
        uint32_t index;
        for (size_t i = 1; i < r->ndue; i++)
            if (r->live[r->due[i]].number < r->live[r->due[first]].number)
                first = i;
        index = r->due[first];
        r->due[first] = r->due[--r->ndue];
        if (!sim_jobs_start(r, index, r->live[index].claim->server, r->freed, err))
            return false;
    }
    return true;
}

/* At an instant first all jobs end, and then others start. */
static bool
advance_companies(struct sim_replay *r, double stop, struct rec_error *err)
{
    for (;;) {
        double end = next_end(r), event = sim_companies_next(r->companies);
        double next = fmin(end, event);
        bool ok;
        if (r->ndue && next > r->freed)
            ok = start_due(r, err);
        else if (next > stop || !isfinite(next))
            return true;
        else if (event <= end)
            ok = sim_companies_advance(r->companies, fmin(end, stop), err);
        else
            ok = end_first(r, err);
        if (!ok)
            return false;
    }
}

bool
sim_jobs_advance(struct sim_replay *r, double time, struct rec_error *err)
{
    double stop = time < r->until ? time : r->until;
    if (r->companies)
        return advance_companies(r, stop, err);
    while (r->ends.n && r->ends.event[0].time <= stop)
        if (!end_first(r, err))
            return false;
    return true;
}

/* ---- who waits for whose servers ------------------------------------------ */

bool
sim_jobs_claim(struct sim_replay *r, uint32_t index, struct rec_error *err)
{
    struct live *live = &r->live[index];
    uint32_t n = live->layout->where.nslots;
    struct claim *claim = malloc(sizeof *claim + 2 * (size_t)n * sizeof(uint32_t));
    if (!claim)
        return rec_fail_memory(err);
    *claim = (struct claim){.n = n, .after = claim->server + n};
    for (uint32_t i = 0; i < n; i++) {
        claim->server[i] = r->servers[i];
        claim->after[i] = NONE;
    }
    live->claim = claim;
    return true;
}

bool
sim_jobs_queue(struct sim_replay *r, uint32_t index, uint32_t slot)
{
    uint64_t holder = r->holder[r->servers[slot]];
    struct taken *taken = &r->taken[r->servers[slot]], last = *taken;
    *taken = (struct taken){index, slot};
    if (holder == 0 || r->live[last.job].number != holder)
        return false;
    r->live[last.job].claim->after[last.slot] = index;
    r->live[index].claim->awaits++;
    return true;
}

/* ---- the end of the simulated time ---------------------------------------- */

bool
sim_jobs_leave(struct sim_replay *r, uint32_t index, struct rec_error *err)
{
    struct sim_done done;
    if (!leave_company(r, index, r->until, err))
        return false;
    done = describe(r, &r->live[index]);
    return tell_first(r, index, &done, r->until, err) &&
           (!r->sink.unfinished ||
            r->sink.unfinished(r->sink.context, &done, r->until, err)) &&
           sim_jobs_forget(r, index, err);
}

/* Finds the first of the jobs that have an alloc record, whose end is not known. */
static bool
first_left(const struct sim_replay *r, uint32_t *index)
{
    *index = NONE;
    for (uint32_t i = 0; i < r->nlive; i++)
        if (r->live[i].number &&
            (*index == NONE || r->live[i].number < r->live[*index].number))
            *index = i;
    return *index != NONE;
}

/* Nothing happens any more, and the simulated time does not end. False: jobs have not
 * ended, because a link has failed. */
static bool
check_ended(const struct sim_replay *r, struct rec_error *err)
{
    for (uint32_t i = 0; r->faults && !isfinite(r->until) && i < r->nlive; i++) {
        const struct live *live = &r->live[i];
        uint32_t link = live->number && !is_waiting(live)
                            ? sim_companies_still(r->companies, i)
                            : NONE;
        if (link != NONE)
            return sim_faults_stop(r->faults, link, live->job.id, err);
    }
    return true;
}

bool
sim_jobs_leave_all(struct sim_replay *r, struct rec_error *err)
{
    uint32_t index;
    if (!check_ended(r, err))
        return false;
    while (isfinite(next_end(r)))
        if (!sim_jobs_leave(r, (uint32_t)event_queue_pop(&r->ends).key, err))
            return false;
    while (r->companies && first_left(r, &index))
        if (!sim_jobs_leave(r, index, err))
            return false;
    return true;
}

/* ---- what the links have carried ------------------------------------------- */

/* The capacity of a link times the time until `end`, bytes. The faults are in order of
 * time. */
static double
could_carry(const struct sim_replay *r, uint32_t link, double capacity, double end)
{
    const struct net_fault *fault;
    size_t n = net_faults(r->net, &fault);
    double since = 0, factor = 1, bytes = 0;
    for (size_t i = 0; i < n && fault[i].time < end; i++)
        if (fault[i].link == link) {
            bytes += factor * capacity * (fault[i].time - since);
            since = fault[i].time;
            factor = fault[i].factor;
        }
    return bytes + factor * capacity * (end - since);
}

bool
sim_jobs_loads(struct sim_replay *r, struct rec_error *err)
{
    const struct sim_loads *loads = r->pool.loads;
    for (uint32_t i = 0; loads && i < loads->n; i++) {
        struct net_link link;
        struct sim_load load = {i, loads->bytes[i], loads->busy[i], r->left, 0};
        if (!(load.bytes > 0))
            continue;
        net_link(r->net, i, &link);
        load.capacity = could_carry(r, i, link.capacity, r->left) / r->left;
        if (!r->sink.load(r->sink.context, r->net, &load, err))
            return false;
    }
    return true;
}

double
sim_jobs_next(struct sim_replay *r)
{
    double next = next_end(r);
    return r->companies ? fmin(next, sim_companies_next(r->companies)) : next;
}

bool
sim_jobs_share(struct sim_replay *r, struct rec_error *err)
{
    const struct net_fault *fault;
    r->taken = calloc(net_servers(r->net), sizeof *r->taken);
    if (!r->taken)
        return rec_fail_memory(err);
    if (net_faults(r->net, &fault) > 0) {
        if (!(r->faults = sim_faults_new(r->net, err)))
            return false;
        r->pool.faults = r->faults;
    }
    if (r->sink.load) {
        if (!(r->pool.loads = sim_loads_new(r->net, err)))
            return false;
        r->pool.loads->by_steps = true;
    }
    r->companies = sim_companies_new(&r->pool, r->exact, reckoned, r, err);
    return r->companies;
}
