#include "first.h"

#include <math.h>
#include <stdlib.h>

/* Rates that differ by no more than this part are one: rounding makes no new moment. */
#define SAME_RATE 1e-12

/* ---- moments ------------------------------------------------------------------- */

static void
note(struct sim_first *r, struct sim_moment moment)
{
    struct sim_moments *m = &r->moments;
    struct rec_error err; /* an observer cannot fail: sim_first_end() does */
    if (r->lost || !rec_grow(&m->of, &m->room, m->n + 1, sizeof *m->of, &err))
        r->lost = true;
    else
        m->of[m->n++] = moment;
}

static void
note_run(void *context, uint32_t op, double start, double end)
{
    note(context, (struct sim_moment){SIM_RAN, op, start, end, 0});
}

static void
note_send(void *context, uint32_t dep, double start, double end)
{
    note(context, (struct sim_moment){SIM_SENT, dep, start, end, 0});
}

static void
note_coll(void *context, uint32_t coll, double start, double end)
{
    note(context, (struct sim_moment){SIM_EXCHANGED, coll, start, end, 0});
}

static void
free_moments(struct sim_moments *m)
{
    free(m->of);
    *m = (struct sim_moments){.n = 0};
}

/* ---- rates --------------------------------------------------------------------- */

/* A link has another rate from `time` on. */
static void
set_rate(struct sim_first *r, uint32_t link, double rate, double time)
{
    struct sim_rates *rates = &r->rates;
    double before = rates->rate[link];
    if (fabs(rate - before) <= SAME_RATE * before)
        return;
    if (before > 0)
        note(r, (struct sim_moment){SIM_CARRIED, link, rates->since[link], time, before});
    rates->rate[link] = rate;
    rates->since[link] = time;
}

/* Nothing is sent from the end of the last interval on. */
static void
end_rates(struct sim_first *r)
{
    for (uint32_t i = 0; i < r->rates.n; i++)
        set_rate(r, i, 0, r->rates.upto);
}

void
sim_first_pass(struct sim_first *r, const uint32_t *colour, double from, double to)
{
    struct sim_rates *rates = &r->rates;
    if (from > rates->upto)
        end_rates(r);
    for (uint32_t i = 0; i < rates->n; i++)
        set_rate(r, i, rates->sum[colour ? colour[i] : i], from);
    for (uint32_t i = 0; i < rates->n; i++)
        rates->sum[i] = 0;
    rates->upto = to;
}

static bool
begin_rates(struct sim_first *r, double time, struct rec_error *err)
{
    struct sim_rates *rates = &r->rates;
    size_t room = (size_t)rates->n + 1;
    if (!rates->sum) {
        rates->sum = malloc(room * sizeof *rates->sum);
        rates->rate = malloc(room * sizeof *rates->rate);
        rates->since = malloc(room * sizeof *rates->since);
    }
    if (!rates->sum || !rates->rate || !rates->since)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < rates->n; i++)
        rates->sum[i] = rates->rate[i] = rates->since[i] = 0;
    rates->upto = time;
    return true;
}

/* ---- a step -------------------------------------------------------------------- */

static void
free_table(struct sim_reasons_table *t)
{
    free(t->when);
    free(t->held);
    free(t->slot);
    *t = (struct sim_reasons_table){.n = 0};
}

struct sim_first *
sim_first_new(struct sim_layouts *pool, const struct net *net, struct sim_asked asked,
              struct rec_error *err)
{
    struct sim_first *r = calloc(1, sizeof *r);
    if (!r) {
        rec_fail_memory(err);
        return NULL;
    }
    r->pool = pool;
    r->asked = asked;
    r->rates.n = asked.rates ? net_links(net) : 0;
    r->observer = (struct sim_observer){
        .run = note_run, .send = note_send, .coll = note_coll, .context = r};
    return r;
}

void
sim_first_free(struct sim_first *r)
{
    if (!r)
        return;
    sim_first_stop(r);
    free_table(&r->now);
    free_table(&r->last);
    free_moments(&r->moments);
    free_moments(&r->before);
    free(r->rates.sum);
    free(r->rates.rate);
    free(r->rates.since);
    free(r);
}

const struct sim_observer *
sim_first_observer(const struct sim_first *r)
{
    return r && r->asked.moments ? &r->observer : NULL;
}

bool
sim_first_is_watched(const struct sim_first *r)
{
    return r && (r->asked.reasons || r->asked.rates);
}

bool
sim_first_begin(struct sim_first *r, const struct sim_layout *layout, double time,
                struct rec_error *err)
{
    struct sim_reasons_table *t;
    if (!r)
        return true;
    t = &r->now;
    sim_first_stop(r);
    free_table(t);
    r->moments.n = 0;
    if (!begin_rates(r, time, err))
        return false;
    t->n = (uint32_t)layout->exchanges.n;
    if (!(t->when = malloc((t->n + (size_t)1) * sizeof *t->when)))
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < t->n; i++)
        t->when[i] = (struct sim_when){.start = (double)NAN, .end = (double)NAN};
    r->begun = time;
    r->open = true;
    r->pool->explained += sim_first_is_watched(r);
    return true;
}

void
sim_first_stop(struct sim_first *r)
{
    if (!r || !r->open)
        return;
    r->open = false;
    r->pool->explained -= sim_first_is_watched(r);
}

bool
sim_first_end(struct sim_first *r, double time, struct rec_error *err)
{
    if (!r || !r->open)
        return true;
    sim_first_stop(r);
    end_rates(r);
    free_table(&r->last);
    r->last = r->now;
    r->now = (struct sim_reasons_table){.n = 0};
    free_moments(&r->before);
    r->before = r->moments;
    r->moments = (struct sim_moments){.n = 0};
    r->from = r->begun;
    r->length = time - r->begun;
    r->some = true;
    return !r->lost || rec_fail_memory(err);
}
