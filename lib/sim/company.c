/* What a company costs: the mean steps of its members. Those that were simulated are
 * remembered. */
#include "company.h"
#include "faults.h"
#include "loads.h"

#include <math.h>
#include <stdlib.h>

/* About the bytes that a remembered company needs apart from its key and its steps. */
enum { ENTRY_BYTES = 32 };

/* Times of servers that differ by no more than this part differ by rounding of sums. */
#define SAME_BUSY 1e-9

/* How far a member is. */
struct mark {
    double steps, ended;
    struct sim_step sum;
};

/* The members of a company whose steps take time, in an order that depends on nothing but
 * their layouts: equal companies are simulated alike. */
struct meeting {
    const struct sim_member *member; /* the caller's */
    const double *part;
    struct sim_step *step; /* the results, in the caller's order */
    uint32_t *order;       /* member[order[i]] is the i-th that takes time */
    uint32_t n;
    struct sim_run **run;
    struct mark *first, *mark; /* per run, where the first and the last window begin */
    double *mean;              /* per run: its mean step in the window before, seconds */
    struct sim_loads *busy;    /* when links are busy; NULL: nobody asks */
    double *before; /* per link: that of the windows before the last, seconds */
};

static double
part_of(const struct meeting *m, uint32_t i)
{
    return m->part ? m->part[m->order[i]] : 0;
}

/* ---- simulation ------------------------------------------------------------ */

/* Starts all runs at the least time that is not negative for any of them. */
static bool
assemble(struct meeting *m, struct sim_together *together, struct rec_error *err)
{
    double time = 0;
    for (uint32_t i = 0; i < m->n; i++)
        time = fmax(time, part_of(m, i) * m->step[m->order[i]].seconds);
    for (uint32_t i = 0; i < m->n; i++) {
        struct sim_member member = m->member[m->order[i]];
        member.number = i;
        member.loads = m->busy;
        m->run[i] = sim_run_new(together->pool, &member, (double)INFINITY,
                                part_of(m, i) * m->step[m->order[i]].seconds, time, err);
        if (!m->run[i] || !sim_together_join(together, m->run[i], time, err))
            return false;
    }
    return true;
}

static double
fewest_steps(const struct meeting *m)
{
    double least = (double)INFINITY;
    for (uint32_t i = 0; i < m->n; i++)
        least = fmin(least, m->run[i]->steps);
    return least;
}

double
sim_mean_busy(double mean, const struct sim_step *alone)
{
    return fabs(mean - alone->busy) <= SAME_BUSY * alone->busy ? alone->busy : mean;
}

/* The mean step of a member from a mark on. */
static void
mean_since(const struct mark *mark, const struct sim_run *run, struct sim_step *step)
{
    double n = run->steps - mark->steps;
    step->seconds = (run->ended - mark->ended) / n;
    step->comm = (run->sum.comm - mark->sum.comm) / n;
    step->comp = (run->sum.comp - mark->sum.comp) / n;
    step->busy = sim_mean_busy((run->sum.busy - mark->sum.busy) / n, step);
}

/* Ends a window: sets the results to its means, and begins the next one. True if no mean
 * differs much from that of the window before. */
static bool
is_settled(struct meeting *m)
{
    bool settled = true;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct sim_run *run = m->run[i];
        struct sim_step *step = &m->step[m->order[i]];
        mean_since(&m->mark[i], run, step);
        if (fabs(step->seconds - m->mean[i]) > SIM_COMPANY_SETTLED * step->seconds)
            settled = false;
        m->mean[i] = step->seconds;
        m->mark[i] = (struct mark){run->steps, run->ended, run->sum};
    }
    return settled;
}

/* Counts how long links were busy until `time`, where a window ends. What was before the
 * first one is forgotten; `rates`: so is all but the last `seconds`, and the result is
 * the part of that time. */
static bool
count_busy(struct meeting *m, struct sim_together *together, double time, bool first,
           bool rates, double seconds, struct rec_error *err)
{
    struct sim_loads *busy = m->busy;
    if (!busy)
        return true;
    if (!sim_together_count(together, time, err))
        return false;
    if (first)
        sim_loads_clear(busy);
    for (uint32_t i = 0; i < busy->n; i++) {
        double before = m->before[i];
        m->before[i] = busy->busy[i];
        if (rates)
            busy->busy[i] = (busy->busy[i] - before) / seconds;
    }
    return true;
}

/* The first window begins when each member has completed a step. If the means never
 * settle, which jobs can keep each other from, they are those of all windows. */
static bool
run_windows(struct meeting *m, struct sim_together *together, struct rec_error *err)
{
    bool settled = false;
    double begun = 0, before = 0, now = 0; /* of all windows, and of the last one */
    for (double until = 1; !settled && until <= SIM_COMPANY_STEPS_MAX;
         until += fmax(SIM_COMPANY_WINDOW, until - 1)) {
        while (fewest_steps(m) < until)
            if (!sim_together_advance(together, (double)INFINITY, true, &now, err) ||
                (!isfinite(now) &&
                 !rec_fail(err, REC_BUG, "a company stands still that should not")))
                return false;
        settled = is_settled(m);
        if (!count_busy(m, together, now, until == 1, settled, now - before, err))
            return false;
        before = now;
        if (until == 1)
            begun = now;
        for (uint32_t i = 0; until == 1 && i < m->n; i++)
            m->first[i] = m->mark[i];
    }
    for (uint32_t i = 0; !settled && i < m->n; i++)
        mean_since(&m->first[i], m->run[i], &m->step[m->order[i]]);
    for (uint32_t i = 0; !settled && m->busy && i < m->busy->n; i++)
        m->busy->busy[i] /= now - begun;
    return true;
}

/* The slowest member completes two windows and a step at least, and the others as many
 * steps as fit. */
static bool
check_work(const struct meeting *m, struct rec_error *err)
{
    static const struct rec_limit limit = {SIM_COMPANY_EVENTS_MAX, NULL};
    double slowest = 0, events = 0;
    for (uint32_t i = 0; i < m->n; i++)
        slowest = fmax(slowest, m->step[m->order[i]].seconds);
    for (uint32_t i = 0; i < m->n; i++)
        events +=
            (double)m->step[m->order[i]].events * slowest / m->step[m->order[i]].seconds;
    return rec_limit(&limit, (2 * SIM_COMPANY_WINDOW + 1) * events,
                     "events for a mean step of jobs that share links", err);
}

/* On entry the results are the steps alone. */
static bool
simulate(struct meeting *m, const struct sim_layouts *pool, struct rec_error *err)
{
    struct sim_together *together = NULL;
    bool ok = check_work(m, err);
    m->run = calloc(m->n, sizeof(struct sim_run *));
    m->mark = calloc(m->n, sizeof *m->mark);
    m->first = calloc(m->n, sizeof *m->first);
    m->mean = calloc(m->n, sizeof *m->mean);
    m->before = calloc(m->busy ? m->busy->n : 1, sizeof *m->before);
    if (ok && (!m->run || !m->mark || !m->first || !m->mean || !m->before))
        ok = rec_fail_memory(err);
    ok = ok && (together = sim_together_new(pool, err)) && assemble(m, together, err) &&
         run_windows(m, together, err);
    if (together && together->n == 0)
        sim_together_free(together);
    for (uint32_t i = 0; m->run && i < m->n; i++)
        sim_run_free(m->run[i]);
    free(m->run);
    free(m->mark);
    free(m->first);
    free(m->mean);
    free(m->before);
    return ok;
}

/* ---- what is remembered ---------------------------------------------------- */

/* Equal keys, equal costs: the layouts, how far each member is, how all their servers lie
 * to each other, and the state of their links, which is empty if all are well. *key is to
 * be freed. */
static bool
make_key(const struct meeting *m, struct rec_str *key, struct rec_error *err)
{
    const struct net *net = m->member[m->order[0]].net;
    struct sim_state state = {0};
    size_t nservers = 0, at = 0, size, head = 8 + 16 * (size_t)m->n;
    const uint64_t n = m->n;
    uint32_t *servers;
    char *bytes;
    bool ok = true;

    for (uint32_t i = 0; i < m->n; i++) {
        nservers += m->member[m->order[i]].layout->where.nslots;
        ok = ok && sim_faults_state(&m->member[m->order[i]], i, &state, err);
    }
    size = head + net_geometry_numbers(net, (uint32_t)nservers) * sizeof(uint32_t);
    servers = ok ? malloc((nservers + 1) * sizeof *servers) : NULL;
    bytes = ok ? malloc(size + state.n) : NULL;
    if (bytes)
        memcpy(bytes, &n, sizeof n);
    for (uint32_t i = 0; servers && bytes && i < m->n; i++) {
        const struct sim_member *member = &m->member[m->order[i]];
        double part = part_of(m, i);
        memcpy(bytes + 8 + 16 * i, &member->layout->serial, sizeof(uint64_t));
        memcpy(bytes + 16 + 16 * i, &part, sizeof part);
        memcpy(servers + at, member->servers,
               member->layout->where.nslots * sizeof *servers);
        at += member->layout->where.nslots;
    }
    ok = ok && ((servers && bytes) || rec_fail_memory(err)) &&
         net_geometry(net, servers, (uint32_t)nservers, (uint32_t *)(bytes + head), err);
    if (ok && state.n > 0)
        memcpy(bytes + size, state.bytes, state.n);
    size += state.n;
    free(state.bytes);
    free(servers);
    if (!ok)
        free(bytes);
    *key = (struct rec_str){ok ? bytes : NULL, size};
    return ok;
}

void
sim_company_forget(struct sim_company *company)
{
    rec_map_free(&company->memo);
    rec_arena_free(&company->arena);
    free(company->step);
    *company = (struct sim_company){.step = NULL};
}

static bool
remember(struct sim_company *company, const struct meeting *m, struct rec_str key,
         struct rec_error *err)
{
    const char *copy;
    if (company->bytes > SIM_COSTS_MAX)
        sim_company_forget(company);
    if (!(copy = rec_arena_copy(&company->arena, key, err)) ||
        !rec_grow(&company->step, &company->room, company->nsteps + m->n,
                  sizeof *company->step, err) ||
        !rec_map_add(&company->memo, (struct rec_str){copy, key.len},
                     (uint32_t)company->nsteps, err))
        return false;
    for (uint32_t i = 0; i < m->n; i++)
        company->step[company->nsteps++] = m->step[m->order[i]];
    company->bytes += key.len + m->n * sizeof *company->step + ENTRY_BYTES;
    return true;
}

/* ---- the whole ------------------------------------------------------------- */

/* True if somebody asks why a member's step takes as long as it does. */
static bool
asks(const struct meeting *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->member[m->order[i]].first)
            return true;
    return false;
}

static bool
find_or_simulate(struct sim_company *company, struct meeting *m, struct rec_error *err)
{
    const struct sim_layouts *pool = m->member[0].layout->pool;
    struct rec_str key;
    uint32_t at;
    bool ok = true;

    if (!make_key(m, &key, err))
        return false;
    at = rec_map_get(&company->memo, key);
    if (at == REC_NONE || m->busy || asks(m))
        ok = simulate(m, pool, err);
    if (at == REC_NONE)
        ok = ok && remember(company, m, key, err);
    else
        for (uint32_t i = 0; i < m->n; i++)
            m->step[m->order[i]] = company->step[at + i];
    free((void *)(uintptr_t)key.ptr);
    return ok;
}

/* Members in order of their layouts; equal ones stay as they are. */
static void
add_member(struct meeting *m, uint32_t index)
{
    uint32_t i = m->n++;
    for (; i > 0 &&
           m->member[m->order[i - 1]].layout->serial > m->member[index].layout->serial;
         i--)
        m->order[i] = m->order[i - 1];
    m->order[i] = index;
}

bool
sim_company_cost(struct sim_company *company, const struct sim_member *member,
                 const double *part, uint32_t n, struct sim_step *step,
                 struct rec_error *err)
{
    struct meeting m = {
        .member = member, .part = part, .step = step, .busy = company->busy};
    struct sim_cost alone;
    uint32_t held = 0;
    bool ok = (m.order = malloc((n + 1) * sizeof *m.order)) || rec_fail_memory(err);

    if (m.busy)
        sim_loads_clear(m.busy);
    for (; ok && held < n; held++)
        sim_layout_hold(member[held].layout);
    for (uint32_t i = 0; ok && i < n; i++) {
        ok = sim_layout_cost(member[i].layout, member[i].net, member[i].servers, &alone,
                             err);
        if (!ok)
            break;
        step[i] = alone.step;
        if (step[i].seconds > 0)
            add_member(&m, i);
    }
    ok = ok && (m.n < 2 || find_or_simulate(company, &m, err));
    while (held > 0)
        sim_layout_release(member[--held].layout);
    free(m.order);
    return ok;
}
