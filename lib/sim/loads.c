#include "loads.h"
#include "company.h"

#include <math.h>
#include <stdlib.h>

struct sim_loads *
sim_loads_new(const struct net *net, struct rec_error *err)
{
    struct sim_loads *loads = calloc(1, sizeof *loads);
    size_t room = (size_t)net_links(net) + 1;
    if (loads) {
        loads->n = net_links(net);
        loads->bytes = calloc(room, sizeof *loads->bytes);
        loads->busy = calloc(room, sizeof *loads->busy);
        loads->one = malloc(room * sizeof *loads->one);
        loads->other = malloc(room * sizeof *loads->other);
    }
    if (loads && loads->bytes && loads->busy && loads->one && loads->other)
        return loads;
    rec_fail_memory(err);
    sim_loads_free(loads);
    return NULL;
}

void
sim_loads_free(struct sim_loads *loads)
{
    if (!loads)
        return;
    free(loads->bytes);
    free(loads->busy);
    free(loads->one);
    free(loads->other);
    free(loads);
}

void
sim_loads_take(struct sim_loads *loads, struct flow_links *links, const uint32_t *colour,
               uint32_t ncolours)
{
    for (uint32_t i = 0; i < (colour ? ncolours : loads->n); i++)
        flow_load_take(links, i, &loads->one[i], &loads->other[i]);
    for (uint32_t i = 0; i < loads->n; i++) {
        if (!loads->by_steps)
            loads->bytes[i] += loads->one[colour ? colour[i] : i];
        loads->busy[i] += loads->other[colour ? colour[i] : i];
    }
}

void
sim_loads_clear(struct sim_loads *loads)
{
    for (uint32_t i = 0; i < loads->n; i++)
        loads->bytes[i] = loads->busy[i] = 0;
}

bool
sim_shares_make(const struct sim_loads *loads, struct sim_shares *shares,
                struct rec_error *err)
{
    uint32_t n = 0;
    sim_shares_free(shares);
    for (uint32_t i = 0; i < loads->n; i++)
        n += loads->bytes[i] > 0 || loads->busy[i] > 0;
    if (!(shares->of = malloc((n + (size_t)1) * sizeof *shares->of)))
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < loads->n; i++)
        if (loads->bytes[i] > 0 || loads->busy[i] > 0)
            shares->of[shares->n++] =
                (struct sim_share){i, loads->bytes[i], loads->busy[i]};
    return true;
}

void
sim_shares_free(struct sim_shares *shares)
{
    free(shares->of);
    *shares = (struct sim_shares){.n = 0};
}

void
sim_loads_add(struct sim_loads *loads, const struct sim_shares *shares, double bytes,
              double busy)
{
    for (uint32_t i = 0; i < shares->n; i++) {
        loads->bytes[shares->of[i].link] += bytes * shares->of[i].bytes;
        loads->busy[shares->of[i].link] += busy * shares->of[i].busy;
    }
}

bool
sim_loads_of_step(const struct sim_member *member, struct sim_shares *shares,
                  struct rec_error *err)
{
    struct sim_member one = *member;
    struct sim_loads *loads = sim_loads_new(member->net, err);
    struct sim_cost cost;
    bool ok;
    one.loads = loads;
    one.first = NULL;
    ok = loads && sim_member_observe(&one, NULL, &cost, err);
    if (ok && isinf(cost.step.seconds)) {
        sim_loads_clear(loads);
        one.health = SIM_LINKS_WELL;
        ok = sim_member_observe(&one, NULL, &cost, err);
    }
    ok = ok && sim_shares_make(loads, shares, err);
    sim_loads_free(loads);
    return ok;
}
