/* Flows start, end and stop on links whose capacities may change. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* A flow has ended when less than this part of its bytes is left. */
#define REST 1e-12

/* ---- links ------------------------------------------------------------------ */

bool
flow_check_capacity(uint32_t link, double capacity, struct rec_error *err)
{
    if (capacity >= 0 && capacity < (double)INFINITY)
        return true;
    return rec_fail(err, REC_DATA,
                    "link %u: the capacity must be a finite number >= 0, got %g", link,
                    capacity);
}

struct flow_links *
flow_links_new(uint32_t n, const double *capacity, struct rec_error *err)
{
    struct flow_links *links = calloc(1, sizeof *links);
    size_t room = n > 0 ? n : 1;

    if (links) {
        links->link = calloc(room, sizeof *links->link);
        links->account = calloc(room, sizeof *links->account);
        links->queue = malloc(room * sizeof *links->queue);
    }
    if (!links || !links->link || !links->account || !links->queue) {
        rec_fail_memory(err);
        flow_links_free(links);
        return NULL;
    }
    links->free_bundle = FLOW_NONE;
    for (uint32_t i = 0; i < n; i++) {
        if (!flow_check_capacity(i, capacity[i], err)) {
            flow_links_free(links);
            return NULL;
        }
        links->link[i] = (struct link){.capacity = capacity[i],
                                       .level = (double)INFINITY,
                                       .slack = capacity[i],
                                       .key = (double)INFINITY};
        links->account[i].mark = FLOW_NONE;
        links->nlinks++;
    }
    return links;
}

void
flow_links_free(struct flow_links *links)
{
    if (!links)
        return;
    for (uint32_t i = 0; i < links->nlinks; i++)
        free(links->link[i].rider);
    ends_free(&links->ends);
    free(links->link);
    free(links->account);
    free(links->queue);
    free(links->flow);
    free(links->pace);
    free(links->bundle);
    free(links->bucket);
    free(links->free_flow);
    free(links->via);
    free(links->crossing);
    free(links->place);
    free(links->run);
    free(links->changed);
    free(links->above);
    free(links->ending);
    free(links);
}

/* ---- time ------------------------------------------------------------------- */

double
flow_next(struct flow_links *links)
{
    fill_rates(links);
    /* flow_advance() says what is wrong. */
    return links->stuck ? links->now : ends_first(&links->ends);
}

/* Something happens at `time`, which is not before the past, nor after an end. */
static bool
reach(struct flow_links *links, double time, struct rec_error *err)
{
    if (!(time >= links->now && time < (double)INFINITY))
        return rec_fail(err, REC_BUG, "flows: time %.17g comes after time %.17g", time,
                        links->now);
    if (time == links->now)
        return true;
    if (flow_next(links) < time)
        return rec_fail(err, REC_BUG, "flows: time %.17g comes before the end at %.17g",
                        time, flow_next(links));
    links->now = time;
    return true;
}

/* ---- starts ----------------------------------------------------------------- */

static bool
check_amount(const struct flow_spec *spec, const char *what, double value, bool zero,
             struct rec_error *err)
{
    if ((value > 0 || (zero && value == 0)) && value < (double)INFINITY)
        return true;
    return rec_fail(err, REC_DATA,
                    "flow %llu: the %s must be a finite number %s 0, got %g",
                    (unsigned long long)spec->id, what, zero ? ">=" : ">", value);
}

static bool
check_spec(const struct flow_links *links, const struct flow_spec *spec,
           struct rec_error *err)
{
    if (!check_amount(spec, "bytes", spec->bytes, true, err) ||
        !check_amount(spec, "weight", spec->weight, false, err))
        return false;
    for (uint32_t i = 0; i < spec->n; i++) {
        if (spec->link[i] >= links->nlinks)
            return rec_fail(err, REC_DATA,
                            "flow %llu: there is no link %u, only %u links",
                            (unsigned long long)spec->id, spec->link[i], links->nlinks);
        if (spec->crossing &&
            !check_amount(spec, "crossing", spec->crossing[i], false, err))
            return false;
    }
    return true;
}

/* Room for the flow, so that nothing fails once it has begun to change the links. */
static bool
reserve(struct flow_links *links, const struct flow_spec *spec, struct rec_error *err)
{
    size_t flows = (size_t)links->nflows + 1, steps = links->nsteps + spec->n;

    if (flows >= FLOW_NONE || steps >= FLOW_NONE)
        return rec_fail_memory(err);
    if (!rec_grow(&links->flow, &links->flow_room, flows, sizeof *links->flow, err) ||
        !rec_grow(&links->free_flow, &links->free_room, flows, sizeof *links->free_flow,
                  err) ||
        !rec_grow(&links->ending, &links->ending_room, flows, sizeof *links->ending,
                  err) ||
        !rec_grow(&links->via, &links->via_room, steps, sizeof *links->via, err) ||
        !rec_grow(&links->crossing, &links->crossing_room, steps, sizeof *links->crossing,
                  err) ||
        !rec_grow(&links->place, &links->place_room, steps, sizeof *links->place, err) ||
        !rec_grow(&links->run, &links->run_room, (size_t)spec->n + 1, sizeof *links->run,
                  err) ||
        !bundle_reserve(links, err))
        return false;
    while (links->nruns <= spec->n)
        links->run[links->nruns++] = FLOW_NONE;
    for (uint32_t i = 0; i < spec->n; i++) {
        struct link *l = &links->link[spec->link[i]];
        size_t room = l->room;
        if (!rec_grow(&l->rider, &room, (size_t)l->n + 1, sizeof *l->rider, err) ||
            !rec_grow(&links->above, &links->above_room, (size_t)l->n + 1,
                      sizeof *links->above, err))
            return false;
        l->room = (uint32_t)room;
    }
    return true;
}

/* Writes the steps of a route behind all others, each link once. Returns their number. */
static uint32_t
write_steps(struct flow_links *links, const struct flow_spec *spec)
{
    uint32_t first = (uint32_t)links->nsteps, n = 0;
    for (uint32_t i = 0; i < spec->n; i++) {
        uint32_t *mark = &links->account[spec->link[i]].mark;
        if (*mark == FLOW_NONE) {
            *mark = first + n++;
            links->via[*mark] = spec->link[i];
            links->crossing[*mark] = 0;
        }
        links->crossing[*mark] += spec->crossing ? spec->crossing[i] : spec->weight;
    }
    for (uint32_t i = 0; i < n; i++)
        links->account[links->via[first + i]].mark = FLOW_NONE;
    return n;
}

/* Moves these steps to where a route as long has ended, if there is such a place. */
static uint32_t
keep_steps(struct flow_links *links, uint32_t n)
{
    uint32_t from = (uint32_t)links->nsteps, to = links->run[n];
    if (to == FLOW_NONE || n == 0) {
        links->nsteps += n;
        return from;
    }
    links->run[n] = links->via[to];
    memcpy(links->via + to, links->via + from, n * sizeof *links->via);
    memcpy(links->crossing + to, links->crossing + from, n * sizeof *links->crossing);
    return to;
}

/*
 * The links of a new bundle whose level may change: those that are full, or else the one
 * that it would fill first. It has no rate yet, and the rate that one of these links
 * gives it makes the others be asked, if they cannot carry it.
 */
static void
ask_for(struct flow_links *links, const struct pace *pace)
{
    double least = (double)INFINITY;
    uint32_t tightest = FLOW_NONE;
    for (uint32_t i = pace->first; i < pace->first + pace->n; i++) {
        uint32_t link = links->via[i];
        struct link *l = &links->link[link];
        double slack = l->slack / links->crossing[i];
        if (l->level < (double)INFINITY) {
            fill_ask(links, link, l->level * l->top / (l->top + links->crossing[i]));
            least = -(double)INFINITY;
        } else if (slack < least) {
            least = slack;
            tightest = link;
        }
    }
    if (least > -(double)INFINITY && pace->n > 0)
        fill_ask(links, tightest, least > 0 ? least : 0);
}

/* All links of a bundle may be crossed equally often. */
static void
set_crossing(const struct flow_links *links, struct pace *pace)
{
    pace->crossing = pace->n > 0 ? links->crossing[pace->first] : 0;
    for (uint32_t i = pace->first; i < pace->first + pace->n; i++)
        if (links->crossing[i] != pace->crossing) {
            pace->crossing = 0;
            return;
        }
}

/* Puts a bundle of the n steps behind all others on its links. Returns its number. */
static uint32_t
attach(struct flow_links *links, uint32_t n)
{
    struct pace pace = {.n = n, .first = keep_steps(links, n)};
    uint32_t number;
    set_crossing(links, &pace);
    fill_limits(links, &pace);
    pace.rate = n == 0 ? (double)INFINITY : 0;
    number = bundle_make(links, &pace);
    for (uint32_t i = pace.first; i < pace.first + n; i++) {
        struct link *l = &links->link[links->via[i]];
        if (l->n == links->account[links->via[i]].still)
            links->account[links->via[i]].since = links->now;
        links->place[i] = l->n;
        l->rider[l->n++] = (struct rider){number, i};
    }
    ask_for(links, &pace);
    return number;
}

/* Flows more or fewer of a bundle cross a link: `more` crossings. */
static void
cross(struct flow_links *links, const struct pace *pace, uint32_t link, double more)
{
    struct link *l = &links->link[link];
    if (l->level < (double)INFINITY) {
        fill_ask(links, link, more > 0 ? l->level * l->top / (l->top + more) : l->level);
        return;
    }
    fill_slack(links, link, more * pace->rate);
    if (more > 0 && l->slack < 0)
        fill_ask(links, link, pace->rate);
}

/* A bundle gets a flow of the n steps behind all others. */
static void
widen(struct flow_links *links, uint32_t number, uint32_t n)
{
    const double *more = links->crossing + links->nsteps;
    struct pace *pace = &links->pace[number];
    for (uint32_t i = 0; i < n; i++)
        links->crossing[pace->first + i] += more[i];
    set_crossing(links, pace);
    if (pace->rate > 0)
        for (uint32_t i = 0; i < n; i++)
            cross(links, pace, links->via[pace->first + i], more[i]);
    else
        ask_for(links, pace);
}

bool
flow_start(struct flow_links *links, double time, const struct flow_spec *spec,
           uint32_t *number, struct rec_error *err)
{
    uint32_t bundle, n;

    if (!check_spec(links, spec, err) || !reach(links, time, err) ||
        !reserve(links, spec, err))
        return false;
    *number = links->nfree > 0 ? links->free_flow[--links->nfree] : links->nflows++;
    links->flow[*number] = (struct flow){.size = spec->bytes,
                                         .weight = spec->weight,
                                         .id = spec->id,
                                         .serial = ++links->serial};
    n = write_steps(links, spec);
    bundle = bundle_find(links, n, spec->weight);
    if (bundle == FLOW_NONE)
        bundle = attach(links, n);
    else
        widen(links, bundle, n);
    bundle_add(links, bundle, *number);
    return true;
}

/* ---- ends and changes --------------------------------------------------------- */

/* Takes a bundle off its links, with its last flow. */
static void
detach(struct flow_links *links, uint32_t number)
{
    const struct pace *pace = &links->pace[number];
    if (links->bundle[number].still)
        bundle_stand(links, number, false);
    bundle_drop(links, number);
    for (uint32_t i = pace->first; i < pace->first + pace->n; i++) {
        uint32_t link = links->via[i];
        struct link *l = &links->link[link];
        struct rider last = l->rider[--l->n];
        l->rider[links->place[i]] = last;
        links->place[last.step] = links->place[i];
        if (l->n == links->account[link].still)
            links->account[link].busy += links->now - links->account[link].since;
        cross(links, pace, link, -links->crossing[i]);
    }
    if (pace->n > 0) {
        links->via[pace->first] = links->run[pace->n];
        links->run[pace->n] = pace->first;
    }
}

/* A bundle has lost a flow, and others are left. */
static void
narrow(struct flow_links *links, uint32_t number, double weight)
{
    double whole = links->bundle[number].weight, rest = whole - weight;
    struct pace *pace = &links->pace[number];
    for (uint32_t i = pace->first; i < pace->first + pace->n; i++)
        links->crossing[i] = links->crossing[i] * rest / whole;
    set_crossing(links, pace);
    for (uint32_t i = pace->first; i < pace->first + pace->n; i++)
        cross(links, pace, links->via[i], -links->crossing[i] * weight / rest);
    links->bundle[number].weight = rest;
    links->bundle[number].flows--;
}

/* Accounts for a flow that is no longer one of those that its bundle knows. What it
 * leaves, the others get. */
static void
release(struct flow_links *links, uint32_t number, double left)
{
    const struct flow *flow = &links->flow[number];
    const struct bundle *bundle = &links->bundle[flow->bundle];
    const struct pace *pace = &links->pace[flow->bundle];
    bool last = bundle->flows == 1;
    double weight = last ? 1 : flow->weight, whole = last ? 1 : bundle->weight;

    for (uint32_t i = pace->first; i < pace->first + pace->n; i++)
        links->account[links->via[i]].bytes +=
            links->crossing[i] * weight / whole * (flow->size - left);
    if (last)
        detach(links, flow->bundle);
    else
        narrow(links, flow->bundle, flow->weight);
    links->flow[number].serial = 0;
    links->free_flow[links->nfree++] = number;
}

static int
by_serial(const void *a, const void *b, void *context)
{
    const struct flow_links *links = context;
    uint64_t x = links->flow[*(const uint32_t *)a].serial;
    uint64_t y = links->flow[*(const uint32_t *)b].serial;
    return (x > y) - (x < y);
}

/* The flows that end now, in the order of their starts, into ending[]; their bundles no
 * longer know them. Flows of which only what rounding leaves is still to come are among
 * them: they end within a part REST of the time. */
static size_t
find_ending(struct flow_links *links)
{
    size_t n = 0, found;
    uint32_t *bundle = links->changed; /* scratch: rates are not looked for now */
    found = ends_until(&links->ends, links->now * (1 + REST), bundle);
    for (size_t i = 0; i < found; i++) {
        uint32_t f;
        while ((f = links->bundle[bundle[i]].flow) != FLOW_NONE &&
               (links->ends.least[0][bundle[i]] <= links->now ||
                bundle_left(links, f) <= REST * links->flow[f].size)) {
            links->ending[n++] = f;
            bundle_remove(links, f);
        }
    }
    if (n > 1)
        qsort_r(links->ending, n, sizeof *links->ending, by_serial, links);
    return n;
}

bool
flow_advance(struct flow_links *links, double time, flow_ended *ended, void *context,
             struct rec_error *err)
{
    double next;

    if (!(time >= links->now))
        return rec_fail(err, REC_BUG, "flows: time %.17g comes after time %.17g", time,
                        links->now);
    /* Of what starts now, nothing ends now but what takes no time. So rates are found
     * once for all starts of an instant, also if they are advanced to one by one. */
    if (time == links->now && ends_first(&links->ends) > time && !links->stuck)
        return true;
    while ((next = flow_next(links)) <= time && next < (double)INFINITY &&
           !links->stuck) {
        size_t n;
        links->now = next;
        n = find_ending(links);
        for (size_t i = 0; i < n; i++)
            release(links, links->ending[i], 0);
        for (size_t i = 0; i < n; i++)
            ended(context, links->flow[links->ending[i]].id, next);
    }
    if (links->stuck)
        return rec_fail(err, REC_BUG, "flows: at time %.17g the rates do not settle",
                        links->now);
    if (time < (double)INFINITY)
        links->now = time;
    return true;
}

/* A flow that is under way. */
static bool
is_active(const struct flow_links *links, uint32_t number)
{
    return number < links->nflows && links->flow[number].serial > 0;
}

bool
flow_stop(struct flow_links *links, double time, uint32_t number, double *left,
          struct rec_error *err)
{
    double rest;
    if (!is_active(links, number))
        return rec_fail(err, REC_BUG, "flows: there is no flow of number %u", number);
    if (!reach(links, time, err))
        return false;
    rest = bundle_left(links, number);
    if (left)
        *left = rest;
    bundle_remove(links, number);
    release(links, number, rest);
    return true;
}

bool
flow_capacity(struct flow_links *links, double time, uint32_t link, double capacity,
              struct rec_error *err)
{
    struct link *l;

    if (link >= links->nlinks)
        return rec_fail(err, REC_DATA, "there is no link %u, only %u links", link,
                        links->nlinks);
    if (!flow_check_capacity(link, capacity, err) || !reach(links, time, err))
        return false;
    l = &links->link[link];
    if (l->level < (double)INFINITY)
        fill_ask(links, link, capacity < l->capacity ? 0 : l->level);
    l->slack += capacity - l->capacity;
    l->capacity = capacity;
    if (l->slack < 0)
        fill_ask(links, link, 0);
    return true;
}

/* ---- what is known ------------------------------------------------------------ */

double
flow_rate(struct flow_links *links, uint32_t number)
{
    fill_rates(links);
    return is_active(links, number) ? links->pace[links->flow[number].bundle].rate : 0;
}

double
flow_left(const struct flow_links *links, uint32_t number)
{
    return is_active(links, number) ? bundle_left(links, number) : 0;
}

uint32_t
flow_bottleneck(struct flow_links *links, uint32_t number)
{
    fill_rates(links);
    return is_active(links, number) ? links->pace[links->flow[number].bundle].tight
                                    : FLOW_NONE;
}

uint32_t
flow_still(struct flow_links *links, uint32_t from)
{
    fill_rates(links);
    for (uint32_t i = from; i < links->nflows; i++)
        if (is_active(links, i) && links->pace[links->flow[i].bundle].rate == 0)
            return i;
    return FLOW_NONE;
}

uint64_t
flow_id(const struct flow_links *links, uint32_t number)
{
    return links->flow[number].id;
}

/* What flows that have not ended have sent over a link, bytes. */
static double
under_way(const struct flow_links *links, const struct link *l)
{
    double bytes = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct bundle *bundle = &links->bundle[l->rider[i].bundle];
        double sent = bundle->sent.high + bundle->was * (links->now - bundle->since);
        bytes +=
            links->crossing[l->rider[i].step] * (sent - bundle->before / bundle->weight);
    }
    return bytes;
}

static double
busy_since(const struct flow_links *links, uint32_t link)
{
    const struct account *account = &links->account[link];
    return links->link[link].n > account->still ? links->now - account->since : 0;
}

void
flow_load(struct flow_links *links, uint32_t link, struct flow_load *load)
{
    const struct link *l = &links->link[link];
    const struct account *account = &links->account[link];

    fill_rates(links);
    *load = (struct flow_load){.capacity = l->capacity,
                               .bytes = account->bytes + under_way(links, l),
                               .busy = account->busy + busy_since(links, link),
                               .level = l->level};
    for (uint32_t i = 0; i < l->n; i++) {
        double crossing = links->crossing[l->rider[i].step];
        load->rate += crossing * links->pace[l->rider[i].bundle].rate;
        load->flows += crossing;
    }
}

void
flow_load_take(struct flow_links *links, uint32_t link, double *bytes, double *busy)
{
    struct account *account = &links->account[link];
    double sent = under_way(links, &links->link[link]);
    *bytes = account->bytes + sent;
    *busy = account->busy + busy_since(links, link);
    account->bytes = -sent;
    account->busy = 0;
    account->since = links->now;
}
