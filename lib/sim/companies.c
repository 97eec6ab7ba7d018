/*
 * Which running jobs are a company, and when each of them ends. A job goes on in one of
 * two ways: by its steps, which are simulated (`run`), or all its steps take the same
 * time, so that its end is known. Starts and ends only note what has changed. When their
 * instant is over, the companies that they touch are taken apart and formed anew.
 */
#include "company.h"
#include "faults.h"
#include "party.h"

#include <math.h>
#include <stdlib.h>

#define NONE UINT32_MAX

struct company {
    uint32_t *job;                 /* its members, in order of their start */
    uint32_t n;                    /* 0: this place is free */
    struct sim_together *together; /* NULL: no steps are simulated */
    double next;                   /* its next event, seconds */
    bool stirred;                  /* a job of it has ended, or one shares with it now */
    struct sim_shares busy;        /* of a mean step: the part of the time that each link
                                      is; none if nobody asks */
    double since;                  /* they are added up from then on, seconds */
};

struct sim_companies {
    const struct sim_layouts *pool;
    double exact;
    sim_reckoned *reckoned;
    void *context;
    struct sim_company costs;
    struct sim_party *party; /* by the number of the job */
    size_t party_room;
    uint32_t *running; /* jobs, in order of their start */
    size_t nrunning, running_room;
    struct company *company;
    size_t ncompanies, company_room;
    struct event_queue turns; /* next events; key: the company. Old ones are void */
    bool changed;             /* jobs have started or ended, or links have changed, at
                                 `now`, seconds */
    double now;
    uint32_t *scratch; /* two numbers per running job */
    size_t scratch_room;
};

/* ---- the steps of a job ---------------------------------------------------- */

/* All steps of a job take `step` from now on: so its end is known. */
static bool
take_steps(struct sim_companies *c, uint32_t job, const struct sim_step *step,
           double time, struct rec_error *err)
{
    struct sim_party *p = &c->party[job];
    double finish;
    p->step = *step;
    finish = time + (p->left - p->part) * step->seconds;
    if (!isfinite(finish))
        return rec_fail(err, REC_DATA,
                        "a job of graph '%s' would run longer than a number holds",
                        p->member.layout->where.graph->id);
    return c->reckoned(c->context, job, finish, err);
}

/* ---- companies ------------------------------------------------------------- */

/* The links of a company whose steps take the mean are busy until `time`. */
static void
count_busy(const struct sim_companies *c, struct company *company, double time)
{
    if (c->pool->loads)
        sim_loads_add(c->pool->loads, &company->busy, 0, time - company->since);
    company->since = time;
}

static void
dissolve(const struct sim_companies *c, struct company *company, double time)
{
    count_busy(c, company, time);
    sim_shares_free(&company->busy);
    free(company->job);
    *company = (struct company){.n = 0};
}

static bool
new_company(struct sim_companies *c, const uint32_t *job, uint32_t n, uint32_t *index,
            struct rec_error *err)
{
    struct company *company;
    size_t i = 0;
    while (i < c->ncompanies && c->company[i].n)
        i++;
    if (i == c->ncompanies) {
        if (!rec_grow(&c->company, &c->company_room, i + 1, sizeof *c->company, err))
            return false;
        c->company[c->ncompanies++] = (struct company){.n = 0};
    }
    company = &c->company[i];
    if (!(company->job = malloc(n * sizeof *company->job)))
        return rec_fail_memory(err);
    memcpy(company->job, job, n * sizeof *job);
    company->n = n;
    for (uint32_t k = 0; k < n; k++)
        c->party[job[k]].company = (uint32_t)i;
    *index = (uint32_t)i;
    return true;
}

static bool
await(struct sim_companies *c, uint32_t index, struct rec_error *err)
{
    struct company *company = &c->company[index];
    company->next = sim_together_next(company->together);
    return !isfinite(company->next) ||
           event_queue_push(&c->turns, (struct event_entry){company->next, index}, err);
}

/* Tells of the jobs of a company whose last step has ended, at `time`. */
static bool
tell_ended(struct sim_companies *c, const struct company *company, double time,
           struct rec_error *err)
{
    for (uint32_t i = 0; i < company->n; i++) {
        struct sim_party *p = &c->party[company->job[i]];
        if (p->run->stepping || p->told)
            continue;
        p->told = true;
        if (!c->reckoned(c->context, company->job[i], time, err))
            return false;
    }
    return true;
}

/* Simulates the steps of a company on one clock. The end of no member is known. */
static bool
begin_exact(struct sim_companies *c, uint32_t index, double time, struct rec_error *err)
{
    struct company *company = &c->company[index];
    struct sim_together *together = sim_together_new(c->pool, err);
    bool ok = together;
    for (uint32_t i = 0; ok && i < company->n; i++) {
        struct sim_party *p = &c->party[company->job[i]];
        ok = sim_party_simulate(p, c->pool, time, err) &&
             sim_together_join(together, p->run, time, err) &&
             c->reckoned(c->context, company->job[i], (double)INFINITY, err);
    }
    if (!ok) {
        if (together && together->n == 0) /* else its runs own it */
            sim_together_free(together);
        return false;
    }
    company->together = together;
    return tell_ended(c, company, time, err) && await(c, index, err);
}

/* Lets all steps of each member take the mean. */
static bool
begin_mean(struct sim_companies *c, struct company *company, double time,
           struct rec_error *err)
{
    uint32_t n = company->n;
    struct sim_member *member = malloc(n * sizeof *member);
    double *part = malloc(n * sizeof *part);
    struct sim_step *step = malloc(n * sizeof *step);
    bool ok = (member && part && step) || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < n; i++) {
        struct sim_party *p = &c->party[company->job[i]];
        sim_party_refresh(p, time);
        ok = sim_party_stop(p, time, err);
        p->mean = true;
        member[i] = p->member;
        if (p->left < p->total)
            member[i].first = NULL; /* its first step is over */
        part[i] = p->part;
    }
    ok = ok && sim_company_cost(&c->costs, member, part, n, step, err) &&
         (!c->costs.busy || sim_shares_make(c->costs.busy, &company->busy, err));
    company->since = time;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = take_steps(c, company->job[i], &step[i], time, err);
    free(member);
    free(part);
    free(step);
    return ok;
}

/* A job that shares with none ends its step, if that is simulated, and then all its steps
 * are alike. */
static bool
begin_alone(struct sim_companies *c, uint32_t index, double time, struct rec_error *err)
{
    uint32_t job = c->company[index].job[0];
    struct sim_party *p = &c->party[job];
    if ((p->run && p->run->begun < time) || p->stands)
        return begin_exact(c, index, time, err);
    sim_party_refresh(p, time);
    p->mean = false;
    return sim_party_stop(p, time, err) && take_steps(c, job, &p->alone, time, err);
}

/* Moves those of job[n] that stand to its end, and returns how many there are. */
static uint32_t
set_apart(const struct sim_companies *c, uint32_t *job, uint32_t n)
{
    uint32_t still = 0;
    for (uint32_t i = 0; i + still < n;) {
        uint32_t one = job[i];
        if (!c->party[one].stands) {
            i++;
            continue;
        }
        memmove(job + i, job + i + 1, (n - 1 - i) * sizeof *job);
        job[n - 1] = one;
        still++;
    }
    return still;
}

/* Forms a company of jobs that share links. There is no mean step of a job that stands:
 * it is simulated by itself, which ends before its step does, and takes no rate of
 * others. */
static bool
form(struct sim_companies *c, uint32_t *job, uint32_t n, double time,
     struct rec_error *err)
{
    double longest = 0;
    uint32_t index = 0, still;
    for (uint32_t i = 0; n > 1 && i < n; i++) {
        struct sim_party *p = &c->party[job[i]];
        sim_party_refresh(p, time);
        p->shared = true;
        longest = fmax(longest, p->run ? p->run->left : p->left);
    }
    still = n > 1 && longest > c->exact ? set_apart(c, job, n) : 0;
    for (; still > 0; still--)
        if (!form(c, job + --n, 1, time, err))
            return false;
    if (n == 0)
        return true;
    if (!new_company(c, job, n, &index, err))
        return false;
    if (n == 1)
        return begin_alone(c, index, time, err);
    return longest <= c->exact ? begin_exact(c, index, time, err)
                               : begin_mean(c, &c->company[index], time, err);
}

/* ---- who shares with whom -------------------------------------------------- */

static bool
shares(const struct sim_companies *c, uint32_t a, uint32_t b)
{
    return c->pool->sharing->shares(c->pool->shared, &c->party[a].member,
                                    &c->party[b].member);
}

/* Stirs the companies that a job touches. */
static void
stir_for(struct sim_companies *c, uint32_t job)
{
    for (size_t k = 0; k < c->nrunning; k++) {
        uint32_t company = c->party[c->running[k]].company;
        if (company != NONE && !c->company[company].stirred)
            c->company[company].stirred = shares(c, job, c->running[k]);
    }
}

/* Moves those of job[] that share with job[0], also by way of others, to the front, in
 * order of their start as all are. Returns how many there are. `spare` has room for n. */
static uint32_t
gather(const struct sim_companies *c, uint32_t *job, uint32_t n, uint32_t *spare)
{
    uint32_t found = 1, rest = 0;
    /* those found stand in spare[0..found), the others in job[0..rest) */
    spare[0] = job[0];
    for (uint32_t i = 1; i < n; i++)
        job[rest++] = job[i];
    for (uint32_t i = 0; i < found; i++) {
        uint32_t kept = 0;
        for (uint32_t k = 0; k < rest; k++)
            if (shares(c, spare[i], job[k]))
                spare[found++] = job[k];
            else
                job[kept++] = job[k];
        rest = kept;
    }
    memmove(job + found, job, rest * sizeof *job);
    memcpy(job, spare, found * sizeof *job);
    return found;
}

/* Takes the companies apart that have changed, and forms new ones of their members. */
static bool
settle(struct sim_companies *c, struct rec_error *err)
{
    uint32_t *job, n = 0;
    if (!rec_grow(&c->scratch, &c->scratch_room, 2 * c->nrunning + 1, sizeof *c->scratch,
                  err))
        return false;
    job = c->scratch;
    for (size_t i = 0; i < c->nrunning; i++)
        if (c->party[c->running[i]].company == NONE) /* it has just started */
            stir_for(c, c->running[i]);
    for (size_t i = 0; i < c->nrunning; i++) {
        uint32_t company = c->party[c->running[i]].company;
        if (company == NONE || c->company[company].stirred)
            job[n++] = c->running[i];
    }
    for (size_t i = 0; i < c->ncompanies; i++)
        if (c->company[i].stirred)
            dissolve(c, &c->company[i], c->now);
    c->changed = false;
    while (n > 0) {
        uint32_t found = gather(c, job, n, c->scratch + c->nrunning);
        if (!form(c, job, found, c->now, err))
            return false;
        job += found;
        n -= found;
    }
    return true;
}

/* ---- links that change ----------------------------------------------------- */

/* The links of a job change. A step that has begun goes on over the new links, so what it
 * has on its way must be known: it is simulated from now on, if all its steps are. */
static bool
prepare_change(struct sim_companies *c, struct sim_party *p, double time,
               struct rec_error *err)
{
    struct company *company = p->company == NONE ? NULL : &c->company[p->company];
    p->touched = true;
    p->shared = true;
    if (!company)
        return true;
    company->stirred = true;
    return company->n > 1 || sim_party_simulate(p, c->pool, time, err);
}

/* What a step of a job takes alone, over the new links. */
static bool
reckon_alone(struct sim_party *p, struct rec_error *err)
{
    struct sim_cost cost;
    p->touched = false;
    if (!sim_member_cost(&p->member, &cost, err))
        return false;
    p->stands = !isfinite(cost.step.seconds);
    if (!p->stands)
        p->alone = cost.step;
    return sim_party_weigh(p, err);
}

static bool
change_links(struct sim_companies *c, double time, struct rec_error *err)
{
    for (size_t i = 0; i < c->nrunning; i++) {
        struct sim_party *p = &c->party[c->running[i]];
        if (sim_faults_touch(&p->member) && !prepare_change(c, p, time, err))
            return false;
    }
    if (!sim_faults_happen(c->pool->faults, err))
        return false;
    for (size_t i = 0; i < c->nrunning; i++) {
        struct sim_party *p = &c->party[c->running[i]];
        bool stood = p->stands;
        if (p->touched && !reckon_alone(p, err))
            return false;
        if (stood && !p->stands)
            stir_for(c, c->running[i]);
    }
    c->changed = true;
    c->now = time;
    return true;
}

uint32_t
sim_companies_still(const struct sim_companies *c, uint32_t job)
{
    const struct sim_run *run = c->party[job].run;
    return run && c->pool->sharing->still
               ? c->pool->sharing->still(run->together->carrier, job)
               : NONE;
}

/* ---- the interface --------------------------------------------------------- */

struct sim_companies *
sim_companies_new(const struct sim_layouts *pool, double exact, sim_reckoned *reckoned,
                  void *context, struct rec_error *err)
{
    struct sim_companies *c = calloc(1, sizeof *c);
    if (!c) {
        rec_fail_memory(err);
        return NULL;
    }
    *c = (struct sim_companies){
        .pool = pool, .exact = exact, .reckoned = reckoned, .context = context};
    return c;
}

void
sim_companies_free(struct sim_companies *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->nrunning; i++) {
        sim_run_free(c->party[c->running[i]].run);
        sim_shares_free(&c->party[c->running[i]].own);
    }
    for (size_t i = 0; i < c->ncompanies; i++) {
        free(c->company[i].job);
        sim_shares_free(&c->company[i].busy);
    }
    sim_loads_free(c->costs.busy);
    sim_company_forget(&c->costs);
    event_queue_free(&c->turns);
    free(c->party);
    free(c->running);
    free(c->company);
    free(c->scratch);
    free(c);
}

bool
sim_companies_start(struct sim_companies *c, const struct sim_member *member,
                    const struct sim_step *alone, double steps, double time,
                    struct rec_error *err)
{
    uint32_t job = member->number;
    if (!rec_grow(&c->party, &c->party_room, (size_t)job + 1, sizeof *c->party, err) ||
        !rec_grow(&c->running, &c->running_room, c->nrunning + 1, sizeof *c->running,
                  err))
        return false;
    c->party[job] = (struct sim_party){.member = *member,
                                       .alone = *alone,
                                       .step = *alone,
                                       .since = time,
                                       .left = steps,
                                       .total = steps,
                                       .stands = !isfinite(alone->seconds),
                                       .company = NONE};
    c->running[c->nrunning++] = job;
    c->changed = true;
    c->now = time;
    if (member->loads && !c->costs.busy &&
        !(c->costs.busy = sim_loads_new(member->net, err)))
        return false;
    return sim_party_weigh(&c->party[job], err);
}

static void
remove_job(uint32_t *list, size_t n, uint32_t job)
{
    size_t i = 0;
    while (list[i] != job)
        i++;
    memmove(list + i, list + i + 1, (n - 1 - i) * sizeof *list);
}

bool
sim_companies_end(struct sim_companies *c, uint32_t job, double time,
                  struct rec_error *err)
{
    struct sim_party *p = &c->party[job];
    struct company *company = p->company == NONE ? NULL : &c->company[p->company];
    if (!sim_party_count(p, time, err))
        return false;
    remove_job(c->running, c->nrunning--, job);
    if (company) {
        remove_job(company->job, company->n--, job);
        company->stirred = true;
        count_busy(c, company, time);
        if (company->n == 0)
            dissolve(c, company, time);
    }
    sim_run_free(p->run);
    p->run = NULL;
    c->changed = true;
    c->now = time;
    return true;
}

bool
sim_companies_step(struct sim_companies *c, uint32_t job, double time,
                   struct sim_step *step)
{
    return sim_party_mean(&c->party[job], time, step);
}

/* The time of the next event of steps that are simulated. Void ones are dropped. */
static double
next_turn(struct sim_companies *c)
{
    while (c->turns.n) {
        struct event_entry turn = c->turns.event[0];
        const struct company *company = &c->company[turn.key];
        if (company->together && company->next == turn.time)
            return turn.time;
        event_queue_pop(&c->turns);
    }
    return (double)INFINITY;
}

double
sim_companies_next(struct sim_companies *c)
{
    double next = fmin(next_turn(c), sim_faults_next(c->pool->faults));
    return c->changed ? fmin(next, nextafter(c->now, (double)INFINITY)) : next;
}

/* Lets a company go on until another one has its turn, or links change. */
static bool
take_turn(struct sim_companies *c, double until, struct rec_error *err)
{
    uint32_t index = (uint32_t)event_queue_pop(&c->turns).key;
    struct company *company = &c->company[index];
    struct sim_party *p = &c->party[company->job[0]];
    double stopped;
    bool alone = company->n == 1;

    if (!sim_together_advance(company->together, fmin(until, next_turn(c)), alone,
                              &stopped, err))
        return false;
    if (isfinite(stopped) && alone && p->run->stepping && !p->stands) {
        company->together = NULL;
        p->mean = false;
        return sim_party_stop(p, stopped, err) &&
               take_steps(c, company->job[0], &p->alone, stopped, err);
    }
    return (!isfinite(stopped) || tell_ended(c, company, stopped, err)) &&
           await(c, index, err);
}

bool
sim_companies_advance(struct sim_companies *c, double until, struct rec_error *err)
{
    double turn = next_turn(c), fault = sim_faults_next(c->pool->faults);
    if (fault <= fmin(turn, until) && !(c->changed && c->now < fault))
        return change_links(c, fault, err);
    if (c->changed && turn > c->now)
        return nextafter(c->now, (double)INFINITY) > until || settle(c, err);
    return turn > until || turn == (double)INFINITY ||
           take_turn(c, c->changed ? c->now : fmin(until, fault), err);
}
