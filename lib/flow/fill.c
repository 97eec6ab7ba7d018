/*
 * Max-min fair rates, found where something has changed.
 *
 * Each link has a level, the rate of the flows that it holds back; it is INFINITY if the
 * link is not full. A flow gets the least level of its links. If m[f] is the least level
 * of the other links of flow f, the level x of a full link solves
 *
 *     sum over its flows of crossing[f] * min(x, m[f]) = capacity
 *
 * Levels that solve this on all links give the max-min fair rates: a link of the least
 * level of a flow is full, and no flow on it has a higher rate. So only links of which a
 * flow's rate has changed are solved again, those of the lowest levels first, because
 * they decide about the others.
 */
#include "private.h"

#include <math.h>

/* A rate that changes by less than this part does not change: else rounding could go
 * round in a circle. */
#define SAME 1e-13
/* How many times links are solved, for each link, before they count as stuck. */
enum { MOST_TRIES = 1000 };

/* ---- the queue of links ------------------------------------------------------- */

static inline bool
before(struct asked a, struct asked b)
{
    return (a.key < b.key) | ((a.key == b.key) & (a.link < b.link));
}

static inline void
put(struct flow_links *links, uint32_t i, struct asked asked)
{
    links->queue[i] = asked;
    links->link[asked.link].place = i;
}

static void
rise(struct flow_links *links, uint32_t i, struct asked asked)
{
    for (; i > 0 && before(asked, links->queue[(i - 1) / 2]); i = (i - 1) / 2)
        put(links, i, links->queue[(i - 1) / 2]);
    put(links, i, asked);
}

void
fill_ask(struct flow_links *links, uint32_t link, double key)
{
    struct link *l = &links->link[link];
    if (!(key < l->key))
        return;
    if (isinf(l->key))
        l->place = links->nqueued++;
    l->key = key;
    rise(links, l->place, (struct asked){key, link});
}

static uint32_t
take(struct flow_links *links)
{
    struct asked *queue = links->queue;
    uint32_t first = queue[0].link, n = --links->nqueued, i = 0, child;

    links->link[first].key = (double)INFINITY;
    while ((child = 2 * i + 1) < n) {
        child +=
            (uint32_t)(child + 1 < n) & (uint32_t)before(queue[child + 1], queue[child]);
        put(links, i, queue[child]);
        i = child;
    }
    if (n > i)
        rise(links, i, queue[n]);
    return first;
}

/* ---- slack ---------------------------------------------------------------------- */

static void
sum_slack(struct flow_links *links, struct link *l)
{
    l->stale = 0;
    l->slack = l->capacity;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct pace *pace = &links->pace[l->rider[i].bundle];
        l->slack -= fill_crossing(links, pace, l->rider[i].step) * pace->rate;
    }
}

/* Each change leaves a rounding in the sum. So the slack is summed up anew after some
 * changes for each of its flows. */
void
fill_slack(struct flow_links *links, uint32_t link, double less)
{
    struct link *l = &links->link[link];
    l->slack -= less;
    if (++l->stale > 4 * l->n + 64)
        sum_slack(links, l);
}

/* ---- levels --------------------------------------------------------------------- */

/* `yes` or `no`, without a branch, which the processor would often predict wrongly. */
static inline double
pick(bool which, double yes, double no)
{
    uint64_t a, b, mask = -(uint64_t)which;
    memcpy(&a, &yes, sizeof a);
    memcpy(&b, &no, sizeof b);
    a = (a & mask) | (b & ~mask);
    memcpy(&yes, &a, sizeof yes);
    return yes;
}

/* Finds the two least levels of the links of a flow. */
void
fill_limits(const struct flow_links *links, struct pace *pace)
{
    const uint32_t *via = pace->n > 0 ? links->via + pace->first : NULL;
    double least = (double)INFINITY, next = least;
    uint32_t tight = via ? via[0] : FLOW_NONE;
    for (uint32_t i = 0; i < pace->n; i++) {
        double level = links->link[via[i]].level;
        bool less = level < least;
        double other = pick(less, least, level);
        next = other < next ? other : next;
        least = less ? level : least;
        tight = less ? via[i] : tight;
    }
    pace->least = least;
    pace->next = next;
    pace->tight = tight;
}

/* The level of link `self` of a flow has changed. */
static inline void
limit_anew(const struct flow_links *links, struct pace *pace, uint32_t self,
           double before, double level)
{
    if (self == pace->tight && level <= pace->next) {
        pace->least = level;
    } else if (self == pace->tight) {
        fill_limits(links, pace);
    } else if (level < pace->least) {
        pace->next = pace->least;
        pace->least = level;
        pace->tight = self;
    } else if (level < pace->next) {
        pace->next = level;
    } else if (before == pace->next && level != before) {
        fill_limits(links, pace);
    }
}

/*
 * The level of a link. It rises from the fair share: flows that cannot use theirs leave
 * the rest to the others. Once a flow is found to be limited elsewhere it stays so: the
 * level only rises, whatever rounding does to it.
 */
static double
solve(struct flow_links *links, uint32_t link, double *top)
{
    struct link *l = &links->link[link];
    struct above *above = links->above;
    double left = l->capacity, crossings = 0, least = (double)INFINITY, x = 0;
    uint32_t n = l->n, kept;

    for (uint32_t i = 0; i < n; i++) {
        const struct pace *pace = &links->pace[l->rider[i].bundle];
        double limit = pick(pace->tight == link, pace->next, pace->least);
        above[i] = (struct above){limit, fill_crossing(links, pace, l->rider[i].step)};
        crossings += above[i].crossing;
        least = limit < least ? limit : least;
    }
    *top = 0;
    for (; n > 0; n = kept) {
        double sum = 0, lowest = (double)INFINITY, share = left / crossings;
        x = share > x ? share : x;
        if (!(least < x)) {
            *top = crossings;
            return x;
        }
        kept = 0;
        for (uint32_t i = 0; i < n; i++) {
            struct above one = above[i];
            bool below = one.limit < x;
            double rest = pick(below, (double)INFINITY, one.limit);
            left -= one.crossing * pick(below, one.limit, 0);
            sum += pick(below, 0, one.crossing);
            lowest = rest < lowest ? rest : lowest;
            above[kept] = one;
            kept += !below;
        }
        crossings = sum;
        least = lowest;
    }
    return (double)INFINITY;
}

/* The rate of a flow has changed by the level of link `self`. */
static void
follow(struct flow_links *links, const struct pace *pace, uint32_t self, double was)
{
    const uint32_t *via = links->via + pace->first;
    double more = pace->rate - was, low = more > 0 ? was : pace->rate;

    for (uint32_t i = 0; i < pace->n; i++) {
        struct link *l = &links->link[via[i]];
        double change, key;
        if (via[i] == self)
            continue;
        change = more * fill_crossing(links, pace, pace->first + i);
        if (l->level < (double)INFINITY) {
            key = l->level - pick(more > 0, change, 0) / l->top;
            key = key > low ? key : low;
            if (key < l->key)
                fill_ask(links, via[i], key);
        } else {
            fill_slack(links, via[i], change);
            if (l->slack < -SAME * l->capacity)
                fill_ask(links, via[i], low);
        }
    }
}

/* Gives a link its level, and its flows their rates. */
static void
set_level(struct flow_links *links, uint32_t link, double x, double top)
{
    struct link *l = &links->link[link];
    double level = l->level;
    bool fails = !(x * level > 0); /* or recovers: one of them is 0 */
    l->level = x;
    l->top = top;
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t number = l->rider[i].bundle;
        struct pace *pace = &links->pace[number];
        double was = pace->rate;
        limit_anew(links, pace, link, level, x);
        if (fabs(pace->least - was) <= SAME * pace->least)
            continue;
        if (!pace->changed) {
            pace->changed = true;
            links->changed[links->nchanged++] = number;
        }
        pace->rate = pace->least;
        follow(links, pace, link, was);
    }
    if (isinf(x))
        sum_slack(links, l);
    if (fails)
        for (uint32_t i = 0; i < l->n; i++)
            bundle_stand(links, l->rider[i].bundle,
                         links->pace[l->rider[i].bundle].least == 0);
}

/* ---- the ends that follow from the rates ------------------------------------------ */

static void
settle(struct flow_links *links, uint32_t number)
{
    struct bundle *bundle = &links->bundle[number];
    struct pace *pace = &links->pace[number];
    pace->changed = false;
    if (pace->rate == bundle->was)
        return;
    bundle_reach(links, number);
    bundle->was = pace->rate;
    bundle_end(links, number);
}

void
fill_rates(struct flow_links *links)
{
    uint64_t tries = (uint64_t)MOST_TRIES * (links->nlinks + 1);

    while (links->nqueued > 0 && !links->stuck) {
        double top, x;
        uint32_t link = take(links);
        x = solve(links, link, &top);
        set_level(links, link, x, top);
        links->stuck = --tries == 0;
    }
    for (size_t i = 0; i < links->nchanged; i++)
        settle(links, links->changed[i]);
    links->nchanged = 0;
}
