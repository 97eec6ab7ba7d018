#include "party.h"

#include <math.h>

/* Times that differ by no more than this part of them differ by rounding. */
#define SAME_LENGTH 1e-12

static void
add_steps(struct sim_party *p, double n, const struct sim_step *step)
{
    p->steps += n;
    p->sum.seconds += n * step->seconds;
    p->sum.comm += n * step->comm;
    p->sum.comp += n * step->comp;
    p->sum.busy += n * step->busy;
}

/* Counts the part of a step that is over, and took `passed` seconds. It was held up by
 * what it sends if that is more than it takes alone. */
static void
add_part(struct sim_party *p, double passed)
{
    double beyond = passed - p->part * p->alone.seconds;
    add_steps(p, p->part, &p->alone);
    if (fabs(beyond) <= SAME_LENGTH * passed)
        return;
    p->sum.seconds += beyond;
    p->sum.comm += fmax(beyond, 0);
}

void
sim_party_refresh(struct sim_party *p, double time)
{
    double passed = time - p->since, length = p->step.seconds, whole, part;
    if (p->run || !(passed > 0))
        return;
    whole = fmin(floor(p->part + passed / length), p->left - 1);
    part = fma(p->part - whole, length, passed) / length;
    part = fmin(fmax(part, 0), 1);
    add_steps(p, whole + part - p->part, &p->step);
    if (p->member.loads && !p->mean)
        sim_loads_add(p->member.loads, &p->own, 0, whole + part - p->part);
    p->left -= whole;
    p->part = part;
    p->since = time;
}

bool
sim_party_simulate(struct sim_party *p, const struct sim_layouts *pool, double time,
                   struct rec_error *err)
{
    struct sim_member member = p->member;
    double passed = 0;
    if (p->run)
        return true;
    sim_party_refresh(p, time);
    if (p->part > 0) /* else a step may take for ever */
        passed = p->part * p->alone.seconds;
    if (p->left < p->total)
        member.first = NULL; /* its first step is over */
    /* What is over of the step is measured now, where it was counted as a part of a step
     * alone, which sends at another pace than the mean over it. */
    if (p->mean)
        member.loads = NULL;
    else if (member.loads)
        sim_loads_add(member.loads, &p->own, 0, -p->part);
    p->run = sim_run_new(pool, &member, p->left, passed, time, err);
    if (p->run)
        p->run->member.loads = p->member.loads;
    if (p->part > 0)
        add_steps(p, -p->part, &p->alone);
    return p->run;
}

/* The part of the step that is simulated which is over. */
static double
part_of_step(const struct sim_party *p, double time)
{
    const struct sim_run *run = p->run;
    double length = run->steps > 0 ? run->sum.seconds / run->steps : p->alone.seconds;
    return fmin((time - run->begun) / length, 1);
}

bool
sim_party_stop(struct sim_party *p, double time, struct rec_error *err)
{
    struct sim_run *run = p->run;
    if (!run)
        return true;
    if (!sim_together_count(run->together, time, err))
        return false;
    if (run->steps > 0) {
        p->steps += run->steps;
        p->sum.seconds += run->sum.seconds;
        p->sum.comm += run->sum.comm;
        p->sum.comp += run->sum.comp;
        p->sum.busy += run->sum.busy;
    }
    p->left = run->left;
    p->part = part_of_step(p, time);
    p->since = time;
    add_part(p, time - run->begun);
    p->run = NULL;
    sim_run_free(run);
    return true;
}

bool
sim_party_weigh(struct sim_party *p, struct rec_error *err)
{
    return !p->member.loads || sim_loads_of_step(&p->member, &p->own, err);
}

bool
sim_party_count(struct sim_party *p, double time, struct rec_error *err)
{
    const struct sim_run *run = p->run;
    double left, part;
    if (!p->member.loads)
        return true;
    sim_party_refresh(p, time);
    left = run ? run->left : p->left;
    part = !run ? p->part : run->stepping ? part_of_step(p, time) : 0;
    if (run && !sim_together_count(run->together, time, err))
        return false;
    sim_loads_add(p->member.loads, &p->own, p->total - left + part, 0);
    sim_shares_free(&p->own);
    return true;
}

bool
sim_party_mean(struct sim_party *p, double time, struct sim_step *step)
{
    struct sim_step sum;
    double steps;
    if (!p->shared)
        return false;
    sim_party_refresh(p, time);
    sum = p->sum;
    steps = p->steps;
    if (p->run) {
        steps += p->run->steps;
        sum.seconds += p->run->sum.seconds;
        sum.comm += p->run->sum.comm;
        sum.comp += p->run->sum.comp;
        sum.busy += p->run->sum.busy;
    }
    if (!(steps > 0))
        return false;
    *step = p->alone;
    step->seconds = sum.seconds / steps;
    step->comm = sum.comm / steps;
    step->comp = sum.comp / steps;
    step->busy = sim_mean_busy(sum.busy / steps, &p->alone);
    return true;
}
