#include "reasons.h"
#include "carrying.h"

#include <math.h>
#include <stdlib.h>

/* ---- tables ------------------------------------------------------------------ */

void
sim_reasons_send(struct sim_first *r, uint32_t exchange, double time)
{
    if (r && r->open && isnan(r->now.when[exchange].start))
        r->now.when[exchange].start = time - r->begun;
}

void
sim_reasons_arrive(struct sim_first *r, uint32_t exchange, double time)
{
    if (r && r->open)
        r->now.when[exchange].end = time - r->begun;
}

static size_t
slot_of(const struct sim_reasons_table *t, uint32_t exchange, uint32_t link)
{
    size_t i = rec_mix((uint64_t)exchange << 32 | link) & (t->nslots - 1);
    while (t->slot[i] != NONE &&
           (t->held[t->slot[i]].exchange != exchange || t->held[t->slot[i]].link != link))
        i = (i + 1) & (t->nslots - 1);
    return i;
}

static bool
grow_slots(struct sim_reasons_table *t, struct rec_error *err)
{
    size_t n = t->nslots ? 2 * t->nslots : 64;
    uint32_t *slot = malloc(n * sizeof *slot);
    if (!slot)
        return rec_fail_memory(err);
    free(t->slot);
    t->slot = slot;
    t->nslots = n;
    for (size_t i = 0; i < n; i++)
        slot[i] = NONE;
    for (size_t i = 0; i < t->nheld; i++)
        slot[slot_of(t, t->held[i].exchange, t->held[i].link)] = (uint32_t)i;
    return true;
}

/* The place of an exchange and a link. NULL: *err. */
static struct sim_held *
find_held(struct sim_first *r, uint32_t exchange, uint32_t link, struct rec_error *err)
{
    struct sim_reasons_table *t = &r->now;
    size_t at;
    if (2 * t->nheld >= t->nslots && !grow_slots(t, err))
        return NULL;
    at = slot_of(t, exchange, link);
    if (t->slot[at] == NONE) {
        if (!rec_grow(&t->held, &t->held_room, t->nheld + 1, sizeof *t->held, err))
            return NULL;
        t->slot[at] = (uint32_t)t->nheld;
        t->held[t->nheld++] = (struct sim_held){.exchange = exchange, .link = link};
    }
    return &t->held[t->slot[at]];
}

/* ---- results ----------------------------------------------------------------- */

/* Of links that held it back equally long, the one with more bytes counts, then the
 * first. */
static bool
is_worse(const struct sim_held *a, const struct sim_held *b)
{
    if (a->seconds != b->seconds)
        return a->seconds > b->seconds;
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->link < b->link;
}

void
sim_reasons_worst(const struct sim_first *r, uint32_t *worst, size_t n)
{
    const struct sim_reasons_table *t = &r->last;
    for (size_t i = 0; i < n; i++)
        worst[i] = NONE;
    for (size_t i = 0; i < t->nheld; i++) {
        uint32_t *most = &worst[t->held[i].exchange];
        if (*most == NONE || is_worse(&t->held[i], &t->held[*most]))
            *most = (uint32_t)i;
    }
}

bool
sim_reasons_of(const struct sim_first *r, uint32_t exchange, uint32_t worst,
               struct sim_reason *reason)
{
    const struct sim_reasons_table *t = &r->last;
    const struct sim_held *most = worst == NONE ? NULL : &t->held[worst];
    const struct sim_when *when = &t->when[exchange];
    if (!r->some || isnan(when->end))
        return false;
    *reason = (struct sim_reason){.exchange = exchange,
                                  .start = when->start,
                                  .seconds = when->end - when->start,
                                  .by = SIM_BY_LATENCY,
                                  .link = NONE,
                                  .held = when->latency};
    if (when->measured > reason->held) {
        reason->by = SIM_BY_TABLE;
        reason->held = when->measured;
    }
    if (most && most->seconds > 0 && most->seconds >= reason->held) {
        reason->by = SIM_BY_LINK;
        reason->link = most->link;
        reason->held = most->seconds;
        reason->bytes = most->bytes;
        reason->own = most->own / most->seconds - 1;
        reason->job = most->job / most->seconds;
        reason->others = most->others / most->seconds;
    }
    return true;
}

/* ---- an interval of a carrier ---------------------------------------------------- */

/* What an exchange does in an interval, the more telling the higher. */
enum { WAITS_MEASURED = 1, WAITS_LATENCY, FLOWS };

/* A link, or a colour of links, that a piece crosses. */
struct crossed {
    const uint32_t *link;
    const double *crossing; /* NULL: 1 each */
    uint32_t n;
};

static struct crossed
links_of(const struct sim_carrier *c, const struct piece *piece)
{
    const struct flow_class *class;
    const uint32_t *link;
    if (!c->fold && piece->from == piece->to)
        return (struct crossed){NULL, NULL, 0};
    if (!c->fold) {
        uint32_t n = sim_carrier_route(c, piece->from, piece->to, &link)->n;
        return (struct crossed){link, NULL, n};
    }
    class = &c->classes.found->of[piece->class];
    return (struct crossed){class->link, class->crossing, class->n};
}

static struct sim_first *
first_of(const struct sim_carrier *c, const struct piece *piece)
{
    struct sim_first *r = piece->sent == NONE
                              ? NULL
                              : sim_carrier_member(c, c->sent[piece->sent].token)->first;
    return r && r->open ? r : NULL;
}

/* The first link of each colour, which stands for all of them. */
static bool
name_colours(struct sim_carrier *c, struct rec_error *err)
{
    const struct flow_classes *found = c->fold ? c->classes.found : NULL;
    uint32_t n = found ? found->ncolours : net_links(c->net);
    struct why *why = &c->why;
    if (!rec_grow(&why->head, &why->head_room, n + (size_t)1, sizeof *why->head, err) ||
        !rec_grow(&why->name, &why->name_room, n + (size_t)1, sizeof *why->name, err))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        why->head[i] = NONE;
        why->name[i] = i;
    }
    for (uint32_t i = net_links(c->net); found && i-- > 0;)
        why->name[found->colour[i]] = i;
    why->named = true;
    return true;
}

/* Lists an exchange that a link holds back in the present interval with its job. */
static bool
list_held(struct why *why, struct sim_first *r, uint32_t held, uint32_t member,
          uint32_t tight, struct rec_error *err)
{
    uint32_t *head = &why->head[tight], j = *head;
    if (!rec_grow(&why->list, &why->list_room, why->nlist + 1, sizeof *why->list, err) ||
        !rec_grow(&why->job, &why->job_room, why->njobs + 1, sizeof *why->job, err))
        return false;
    while (j != NONE && why->job[j].member != member)
        j = why->job[j].next;
    if (j == NONE) {
        j = (uint32_t)why->njobs++;
        why->job[j] = (struct held_job){.member = member, .first = NONE, .next = NONE};
        if (*head == NONE)
            *head = j;
        else { /* the first one stays, since it counts all flows */
            why->job[j].next = why->job[*head].next;
            why->job[*head].next = j;
        }
    }
    why->list[why->nlist] = (struct listed){r, held, j, tight, why->job[j].first};
    why->job[j].first = (uint32_t)why->nlist++;
    return true;
}

/* A piece of an exchange that is explained: who holds it back, and what it carries. */
static bool
add_piece(struct sim_carrier *c, const struct piece *piece, struct sim_first *r,
          double seconds, struct rec_error *err)
{
    struct why *why = &c->why;
    uint32_t exchange = c->sent[piece->sent].exchange, tight, state = FLOWS;
    struct sim_when *when = &r->now.when[exchange];
    struct sim_held *held;
    struct crossed on;
    double rate;
    if (piece->flow == NONE)
        state = piece->from == NONE ? WAITS_MEASURED : WAITS_LATENCY;
    if (when->mark != why->mark)
        when->state = 0;
    when->mark = why->mark;
    when->state = state > when->state ? state : when->state;
    if (state != FLOWS || (tight = flow_bottleneck(c->links, piece->flow)) == NONE)
        return true;
    rate = flow_rate(c->links, piece->flow);
    on = links_of(c, piece);
    for (uint32_t i = 0; i < on.n; i++) {
        if (!(held = find_held(r, exchange, why->name[on.link[i]], err)))
            return false;
        held->bytes += rate * seconds * (on.crossing ? on.crossing[i] : 1);
    }
    if (!(held = find_held(r, exchange, why->name[tight], err)))
        return false;
    if (held->mark == why->mark)
        return true;
    held->mark = why->mark;
    held->seconds += seconds;
    held->flows = 0;
    return list_held(why, r, (uint32_t)(held - r->now.held),
                     (uint32_t)(c->sent[piece->sent].token >> 32), tight, err);
}

/* Counts the flows that share links that hold something back, of a fold: those of a class
 * are many. */
static void
count_classes(struct sim_carrier *c, const struct piece *piece, double seconds)
{
    const struct sent *sent = &c->sent[piece->sent];
    const struct why *why = &c->why;
    struct crossed on = links_of(c, piece);
    for (uint32_t i = 0; i < on.n; i++)
        for (uint32_t j = why->head[on.link[i]]; j != NONE; j = why->job[j].next)
            for (uint32_t k = why->job[j].first; k != NONE; k = why->list[k].next) {
                const struct listed *one = &why->list[k];
                struct sim_held *held = &one->reasons->now.held[one->held];
                double flows = seconds * on.crossing[i];
                if (sent->token >> 32 != why->job[j].member)
                    held->others += flows;
                else if (sent->exchange != held->exchange)
                    held->job += flows;
                else
                    held->own += flows;
            }
}

/* The same without a fold. An op may send thousands of exchanges over one link, so each
 * flow is counted once there, and once for its job and for its exchange. */
static void
count_flow(struct sim_carrier *c, const struct piece *piece)
{
    const struct sent *sent = &c->sent[piece->sent];
    const struct why *why = &c->why;
    struct crossed on = links_of(c, piece);
    for (uint32_t i = 0; i < on.n; i++) {
        struct sim_reasons_table *t;
        uint32_t j = why->head[on.link[i]], held;
        if (j == NONE)
            continue;
        why->job[j].all++;
        while (j != NONE && why->job[j].member != sent->token >> 32)
            j = why->job[j].next;
        if (j == NONE)
            continue;
        why->job[j].flows++;
        t = &why->list[why->job[j].first].reasons->now;
        held = t->slot[slot_of(t, sent->exchange, on.link[i])];
        if (held != NONE)
            t->held[held].flows++;
    }
}

static void
add_counts(const struct why *why, double seconds)
{
    for (size_t i = 0; i < why->nlist; i++) {
        const struct listed *one = &why->list[i];
        const struct held_job *job = &why->job[one->job];
        struct sim_held *held = &one->reasons->now.held[one->held];
        held->own += seconds * held->flows;
        held->job += seconds * (job->flows - held->flows);
        held->others += seconds * (why->job[why->head[one->tight]].all - job->flows);
    }
}

static void
add_waits(struct sim_carrier *c, const struct piece *piece, struct sim_first *r,
          double seconds)
{
    struct sim_when *when = &r->now.when[c->sent[piece->sent].exchange];
    if (when->mark != c->why.mark)
        return;
    when->mark = 0; /* once for all of its pieces */
    if (when->state == WAITS_LATENCY)
        when->latency += seconds;
    else if (when->state == WAITS_MEASURED)
        when->measured += seconds;
}

/* Adds what a piece sends over links to the rates of its step. */
static void
add_rates(struct sim_carrier *c, const struct piece *piece, struct sim_first *r)
{
    struct why *why = &c->why;
    struct crossed on;
    double rate;
    if (r->rates.mark != why->mark) {
        r->rates.mark = why->mark;
        r->rates.next = why->sending;
        why->sending = r;
    }
    if (piece->flow == NONE)
        return;
    rate = flow_rate(c->links, piece->flow);
    on = links_of(c, piece);
    for (uint32_t i = 0; i < on.n; i++)
        r->rates.sum[on.link[i]] += rate * (on.crossing ? on.crossing[i] : 1);
}

static void
pass_rates(struct sim_carrier *c, double from, double to)
{
    const struct flow_classes *found = c->fold ? c->classes.found : NULL;
    const uint32_t *colour = found ? found->colour : NULL;
    struct sim_first *r;
    c->why.sending = NULL;
    for (size_t i = 0; i < c->npieces; i++)
        if ((r = first_of(c, &c->piece[i])) && r->asked.rates)
            add_rates(c, &c->piece[i], r);
    for (r = c->why.sending; r; r = r->rates.next)
        sim_first_pass(r, colour, from, to);
}

bool
sim_reasons_pass(struct sim_carrier *c, double time, struct rec_error *err)
{
    struct why *why = &c->why;
    double from = why->passed, seconds = time - from;
    struct sim_first *r;
    if (!(seconds > 0))
        return true;
    why->passed = time;
    if (c->npieces == 0 || !c->member[0].layout->pool->explained)
        return true;
    if (!why->named && !name_colours(c, err))
        return false;
    why->mark = ++c->member[0].layout->pool->intervals;
    why->nlist = why->njobs = 0;
    pass_rates(c, from, time);
    for (size_t i = 0; i < c->npieces; i++)
        if ((r = first_of(c, &c->piece[i])) && r->asked.reasons &&
            !add_piece(c, &c->piece[i], r, seconds, err))
            return false;
    for (size_t i = 0; why->nlist && i < c->npieces; i++)
        if (c->piece[i].sent != NONE && c->piece[i].flow != NONE) {
            if (c->fold)
                count_classes(c, &c->piece[i], seconds);
            else
                count_flow(c, &c->piece[i]);
        }
    if (!c->fold)
        add_counts(why, seconds);
    for (size_t i = 0; i < c->npieces; i++)
        if ((r = first_of(c, &c->piece[i])) && r->asked.reasons)
            add_waits(c, &c->piece[i], r, seconds);
    for (size_t i = 0; i < why->nlist; i++)
        why->head[why->list[i].tight] = NONE;
    return true;
}
