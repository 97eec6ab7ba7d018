/* All mixes of so many devices, by the closed form. */
#include "search.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *const parallel_choice_keys[PARALLEL_CHOICES] = {
    "tp", "cp", "pp", "vp", "ep", "dp", "zero", "recompute", "mbs", "sp", "ends"};

uint32_t
parallel_chosen(const struct parallel_mix *mix, enum parallel_choice choice)
{
    const uint32_t value[PARALLEL_CHOICES] = {
        mix->tp,   mix->cp,        mix->pp,    mix->vp,       mix->ep,  mix->dp,
        mix->zero, mix->recompute, mix->micro, mix->sequence, mix->ends};
    return value[choice];
}

/* ---- rules ------------------------------------------------------------------- */

static bool
allowed(const struct parallel_search *s, enum parallel_choice choice, uint32_t value)
{
    for (size_t i = 0; i < s->rules; i++) {
        const struct parallel_rule *rule = &s->rule[i];
        bool within = value >= rule->least && value <= rule->most;
        if (rule->choice == choice && within == rule->forbid)
            return false;
    }
    return true;
}

/* True if a rule asks for values of this choice. */
static bool
asked(const struct parallel_search *s, enum parallel_choice choice)
{
    for (size_t i = 0; i < s->rules; i++)
        if (s->rule[i].choice == choice && !s->rule[i].forbid)
            return true;
    return false;
}

/* Keeps why a mix is none, if it came further than those before. */
REC_PRINTF(3, 4)
static void
refuse(struct walk *w, int depth, const char *format, ...)
{
    va_list args;
    if (depth <= w->depth)
        return;
    w->depth = depth;
    va_start(args, format);
    vsnprintf(w->found->reason, sizeof w->found->reason, format, args);
    va_end(args);
}

static bool
add_value(const struct walk *w, enum parallel_choice choice, uint32_t value,
          struct values *values, struct rec_error *err)
{
    if (!allowed(w->search, choice, value))
        return true;
    if (!rec_grow(&values->value, &values->room, values->n + 1, sizeof *values->value,
                  err))
        return false;
    values->value[values->n++] = value;
    return true;
}

/* The values of a choice to try: divisors of `whole`; but each that a rule names alone,
 * so that there is a reason if it does not divide. */
static bool
list_values(struct walk *w, enum parallel_choice choice, uint32_t whole,
            struct values *values, struct rec_error *err)
{
    const struct parallel_search *s = w->search;
    uint32_t root = (uint32_t)sqrt(whole);
    for (uint32_t i = 1; i <= root; i++)
        if (whole % i == 0 && !add_value(w, choice, i, values, err))
            return false;
    for (uint32_t i = root; i >= 1; i--)
        if (whole % i == 0 && whole / i > root &&
            !add_value(w, choice, whole / i, values, err))
            return false;
    for (size_t i = 0; i < s->rules; i++) {
        const struct parallel_rule *rule = &s->rule[i];
        if (rule->choice == choice && !rule->forbid && rule->least == rule->most &&
            rule->least > 0 && whole % rule->least != 0 &&
            !add_value(w, choice, rule->least, values, err))
            return false;
    }
    if (values->n == 0)
        refuse(w, 1, "the rules leave no %s= that divides %u",
               parallel_choice_keys[choice], whole);
    return true;
}

/* ---- one split ------------------------------------------------------------------ */

/* Costs of layers for what the mix has chosen so far; `sharded`: their weights are. */
static struct closed_layers *
layers_of(struct walk *w, size_t e, size_t b, bool sharded)
{
    size_t at = (e * w->micro.n + b) * 4 + w->mix.recompute;
    struct closed_layers *layers = &w->layers[2 * at + sharded];
    if (!layers->made)
        closed_layers_make(&w->closed, &w->mix, layers);
    return layers;
}

/* What is kept does not depend on stages and replicas unless weights are sharded. */
static void
forget_layers(struct walk *w, bool stored)
{
    for (size_t i = 0; i < w->experts.n * w->micro.n * 8; i++) {
        w->layers[i].made = false;
        if (stored || i % 2 == 1)
            w->layers[i].stored = false;
    }
}

/* All ways to shard. One that gains nothing over a lesser one that fits is counted, but
 * not ranked, and neither is one that surely finds no room in the pool. */
static bool
try_zero(struct walk *w, size_t e, size_t b, struct rec_error *err)
{
    struct parallel_found *found = w->found;
    double before = NAN, least = 0;
    bool any = false, summed = false;
    for (uint32_t zero = 0; zero <= 3; zero++) {
        struct closed_layers *layers;
        struct parallel_closed answer;
        if (!allowed(w->search, PARALLEL_ZERO, zero))
            continue;
        any = true;
        w->mix.zero = zero;
        layers = layers_of(w, e, b, zero == 3);
        if (!summed || zero == 3) {
            closed_stages(&w->closed, &w->mix, layers);
            least = closed_least(&w->closed);
        }
        summed = true;
        found->mixes++;
        answer.memory = closed_memory(&w->closed, &w->mix, layers);
        if (answer.memory < found->least.closed.memory) {
            found->least.mix = w->mix;
            found->least.closed.memory = answer.memory;
        }
        if (answer.memory > w->search->memory)
            continue;
        found->fit++;
        if (pool_refuses(&w->pool, least))
            continue;
        answer.seconds = closed_seconds(&w->closed, &w->mix);
        if (answer.seconds != before && !pool_add(&w->pool, &w->mix, &answer, err))
            return false;
        before = answer.seconds;
    }
    if (!any)
        refuse(w, 7, "the rules leave no zero=");
    return true;
}

static bool
try_recompute(struct walk *w, size_t e, size_t b, struct rec_error *err)
{
    const struct parallel_search *s = w->search;
    bool any = false;
    for (unsigned again = PARALLEL_KEEP_ALL; again <= PARALLEL_FULL; again++) {
        bool wanted = asked(s, PARALLEL_RECOMPUTE);
        if (!allowed(s, PARALLEL_RECOMPUTE, again) || (!wanted && again == PARALLEL_HALF))
            continue;
        if (again == PARALLEL_SELECTIVE && !s->model->style.unfused && !wanted)
            continue; /* there are no scores to compute again */
        any = true;
        w->mix.recompute = (enum parallel_recompute)again;
        if (!try_zero(w, e, b, err))
            return false;
    }
    if (!any)
        refuse(w, 6, "the rules leave no recompute=");
    return true;
}

static bool
try_micro(struct walk *w, size_t e, struct rec_error *err)
{
    struct parallel_mix *mix = &w->mix;
    for (size_t b = 0; b < w->micro.n; b++) {
        uint32_t each = mix->global / mix->dp, m;
        mix->micro = w->micro.value[b];
        if (each % mix->micro != 0) {
            refuse(w, 5, "mbs=%u does not divide the %u samples of a replica", mix->micro,
                   each);
            continue;
        }
        m = each / mix->micro;
        if (mix->vp > 1 && m % mix->pp != 0) {
            refuse(
                w, 5,
                "with chunks (vp=%u) only groups of pp=%u microbatches are tried, which "
                "does not divide the %u of a replica%s",
                mix->vp, mix->pp, m, m > mix->pp ? "; steptime takes them" : "");
            continue;
        }
        if (!rec_limit(&w->search->limit, (double)w->found->mixes, "mixes", err) ||
            !try_recompute(w, e, b, err))
            return false;
    }
    return true;
}

/* Chunks are of equal layers, with or without both ends, as far as some number of chunks
 * for these stages is; else, or if a rule asks for chunks, the first ones have one
 * more. */
static bool
even_chunks(const struct walk *w)
{
    uint32_t p = w->mix.pp, layers = w->search->model->t.layers;
    bool any = false;
    for (uint32_t v = 2; v <= (layers + 2) / p; v++)
        any = any || layers % (p * v) == 0 || (layers + 2) % (p * v) == 0;
    return any && !asked(w->search, PARALLEL_VP);
}

/* Is the model split so? */
static bool
splits(struct walk *w, uint32_t ends, bool even)
{
    const struct parallel_mix *mix = &w->mix;
    uint64_t layers = w->search->model->t.layers, parts = (uint64_t)mix->pp * mix->vp;
    if (!ends && parts > layers)
        refuse(w, 4, "pp=%u x vp=%u are more than the %llu layers", mix->pp, mix->vp,
               (unsigned long long)layers);
    if (ends && parts > 1 && (layers + 2) % parts != 0)
        refuse(w, 4, "pp=%u x vp=%u do not divide the %llu layers with both ends",
               mix->pp, mix->vp, (unsigned long long)layers + 2);
    if (ends)
        return parts > 1 && (layers + 2) % parts == 0;
    return parts <= layers && (!even || mix->vp == 1 || layers % parts == 0);
}

static bool
try_split(struct walk *w, size_t e, struct rec_error *err)
{
    const struct parallel_search *s = w->search;
    struct parallel_mix *mix = &w->mix;
    const struct parallel_schedule *schedule = s->common.schedule;
    uint32_t most = mix->pp > 1 ? (s->model->t.layers + 2) / mix->pp : 1;
    bool any = false, even = even_chunks(w);
    for (mix->vp = 1; mix->vp <= most; mix->vp++) {
        if (!allowed(s, PARALLEL_VP, mix->vp) ||
            (schedule && (schedule == w->interleaved) != (mix->vp > 1)))
            continue;
        mix->schedule = schedule       ? schedule
                        : mix->vp == 1 ? w->alternating
                                       : w->interleaved;
        for (uint32_t ends = 0; ends < 2; ends++) {
            if (!allowed(s, PARALLEL_ENDS, ends) || !splits(w, ends, even))
                continue;
            any = true;
            mix->ends = ends == 1;
            if (!closed_split(&w->closed, mix, err) || !try_micro(w, e, err))
                return false;
        }
    }
    if (!any)
        refuse(w, 3,
               "no vp= that the rules and the schedule allow suits pp=%u and the %u "
               "layers: it is 1 to %u",
               mix->pp, s->model->t.layers, most);
    return true;
}

/* ---- degrees ---------------------------------------------------------------------- */

static bool
try_experts(struct walk *w, struct rec_error *err)
{
    const struct parallel_search *s = w->search;
    struct parallel_mix *mix = &w->mix;
    uint32_t experts = s->model->t.experts;
    uint64_t group = (uint64_t)mix->tp * mix->cp * mix->dp;
    for (size_t e = 0; e < w->experts.n; e++) {
        mix->ep = w->experts.value[e];
        if (mix->ep > 1 && experts == 0) {
            refuse(w, 2, "ep=%u, but no layer has experts", mix->ep);
            continue;
        }
        if (experts > 0 && experts % mix->ep != 0) {
            refuse(w, 2, "ep=%u does not divide the %u experts", mix->ep, experts);
            continue;
        }
        if (group % ((uint64_t)mix->ep * mix->etp) != 0) {
            refuse(w, 2, "ep=%u does not divide the %llu ranks of a stage", mix->ep,
                   (unsigned long long)group / mix->etp);
            continue;
        }
        closed_params(&w->closed, mix);
        if (!try_split(w, e, err))
            return false;
    }
    return true;
}

static bool
try_stages(struct walk *w, struct rec_error *err)
{
    const struct parallel_search *s = w->search;
    struct parallel_mix *mix = &w->mix;
    uint32_t left = s->devices / (mix->tp * mix->cp), layers = s->model->t.layers;
    for (size_t i = 0; i < w->stages.n; i++) {
        mix->pp = w->stages.value[i];
        if (left % mix->pp != 0) {
            refuse(w, 1, "tp=%u x cp=%u x pp=%u do not divide %u devices", mix->tp,
                   mix->cp, mix->pp, s->devices);
            continue;
        }
        if (mix->pp > layers + 2) {
            refuse(w, 1, "pp=%u are more stages than the %u layers", mix->pp, layers);
            continue;
        }
        mix->dp = left / mix->pp;
        if (!allowed(s, PARALLEL_DP, mix->dp)) {
            refuse(w, 1, "tp=%u x cp=%u x pp=%u leave dp=%u, which the rules rule out",
                   mix->tp, mix->cp, mix->pp, mix->dp);
            continue;
        }
        if (mix->global % mix->dp != 0) {
            refuse(w, 1,
                   "tp=%u x cp=%u x pp=%u leave dp=%u, which does not divide the %u "
                   "samples of a step",
                   mix->tp, mix->cp, mix->pp, mix->dp, mix->global);
            continue;
        }
        forget_layers(w, false);
        if (!try_experts(w, err))
            return false;
    }
    return true;
}

/* With or without sequence parallelism, and the tensor ranks of an expert that go with
 * it. */
static bool
take_sequence(struct walk *w, bool sequence, struct rec_error *why)
{
    const struct parallel_search *s = w->search;
    struct parallel_mix *mix = &w->mix;
    mix->sequence = sequence;
    mix->etp = s->common.etp > 0                      ? s->common.etp
               : sequence || s->model->t.experts == 0 ? 1
                                                      : mix->tp;
    return parallel_tensor_check(mix, s->model, why) &&
           parallel_context_check(mix, s->model, why);
}

static bool
try_context(struct walk *w, struct rec_error *err)
{
    const struct parallel_search *s = w->search;
    struct parallel_mix *mix = &w->mix;
    struct rec_error why, without;
    bool sequence = mix->sequence; /* if tensor ranks divide the tokens */
    for (size_t i = 0; i < w->context.n; i++) {
        mix->cp = w->context.value[i];
        if ((uint64_t)s->model->sequence % mix->cp != 0) {
            refuse(w, 1, "cp=%u does not divide the %g tokens of a sample", mix->cp,
                   s->model->sequence);
            continue;
        }
        if (s->devices / mix->tp % mix->cp != 0) {
            refuse(w, 1, "tp=%u x cp=%u do not divide %u devices", mix->tp, mix->cp,
                   s->devices);
            continue;
        }
        if (!take_sequence(w, sequence, &why) &&
            (!sequence || !allowed(s, PARALLEL_SEQUENCE, 0) ||
             !take_sequence(w, false, &without))) {
            refuse(w, 1, "%s", why.text);
            continue;
        }
        forget_layers(w, true);
        if (!try_stages(w, err))
            return false;
    }
    return true;
}

static bool
try_tensor(struct walk *w, struct rec_error *err)
{
    const struct parallel_search *s = w->search;
    struct parallel_mix *mix = &w->mix;
    for (size_t i = 0; i < w->tensor.n; i++) {
        uint32_t t = mix->tp = w->tensor.value[i];
        if (s->devices % t != 0) {
            refuse(w, 1, "tp=%u does not divide %u devices", t, s->devices);
            continue;
        }
        if (s->model->t.heads % t != 0) {
            refuse(w, 1, "tp=%u does not divide the %u heads", t, s->model->t.heads);
            continue;
        }
        if (t > s->machine->node && !asked(s, PARALLEL_TP)) {
            refuse(w, 1, "tp=%u is more than the %u devices of an island; ask for it", t,
                   s->machine->node);
            continue;
        }
        mix->sequence = t > 1;
        if (!allowed(s, PARALLEL_SEQUENCE, mix->sequence))
            mix->sequence = !mix->sequence;
        if (!allowed(s, PARALLEL_SEQUENCE, mix->sequence)) {
            refuse(w, 1, "the rules leave no sp=");
            continue;
        }
        if (s->common.etp > 0 && t % s->common.etp != 0) {
            refuse(w, 1, "etp=%u does not divide tp=%u", s->common.etp, t);
            continue;
        }
        if (!try_context(w, err))
            return false;
    }
    return true;
}

/* ---- the whole -------------------------------------------------------------------- */

static bool
open_walk(struct walk *w, struct rec_error *err)
{
    const struct parallel_search *s = w->search;
    uint32_t experts = s->model->t.experts;
    size_t n, size;
    w->machine = *s->machine;
    w->machine.looked = calloc(PARALLEL_LOOKED, sizeof *w->machine.looked);
    if (!w->machine.looked)
        return rec_fail_memory(err);
    if (!closed_open(&w->closed, s->model, &w->machine, err) ||
        !list_values(w, PARALLEL_TP, s->devices, &w->tensor, err) ||
        !list_values(w, PARALLEL_CP, s->devices, &w->context, err) ||
        !list_values(w, PARALLEL_PP, s->devices, &w->stages, err) ||
        !list_values(w, PARALLEL_EP, experts > 0 ? experts : 1, &w->experts, err) ||
        !list_values(w, PARALLEL_MICRO, s->common.global, &w->micro, err))
        return false;
    for (size_t i = 0; i < s->rules; i++)
        if (s->rule[i].choice == PARALLEL_DP && !s->rule[i].forbid &&
            s->rule[i].least == s->rule[i].most &&
            (s->rule[i].least == 0 || s->devices % s->rule[i].least != 0))
            refuse(w, 9, "dp=%u does not divide %u devices", s->rule[i].least,
                   s->devices);
    n = w->experts.n * w->micro.n * 8;
    size = closed_layers_size(&w->closed);
    w->layers = calloc(n + 1, sizeof *w->layers);
    w->numbers = calloc(n * size + 1, sizeof *w->numbers);
    if (!w->layers || !w->numbers)
        return rec_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        closed_layers_place(&w->closed, &w->layers[i], &w->numbers[i * size]);
    return true;
}

static void
close_walk(struct walk *w)
{
    free(w->layers);
    free(w->numbers);
    free(w->tensor.value);
    free(w->context.value);
    free(w->stages.value);
    free(w->experts.value);
    free(w->micro.value);
    free(w->pool.entry);
    free(w->machine.looked);
    closed_free(&w->closed);
}

static bool
check(const struct parallel_search *s, struct rec_error *err)
{
    const struct parallel_schedule *schedule = s->common.schedule;
    if (schedule && (schedule->split || schedule->vshape))
        return rec_fail(err, REC_DATA,
                        "the schedule %s has no closed form: gpipe, 1f1b and interleaved "
                        "have one",
                        schedule->name);
    if (s->common.layers)
        return rec_fail(err, REC_DATA,
                        "a list of layers belongs to one number of stages, and is not "
                        "searched: leave it out");
    return s->devices <= s->machine->node || s->machine->adapter > 0 ||
           rec_fail(err, REC_DATA, "the bandwidth between nodes is not known: nic=");
}

bool
parallel_search(const struct parallel_search *search, struct parallel_found *found,
                struct rec_error *err)
{
    struct walk w = {.search = search,
                     .found = found,
                     .mix = search->common,
                     .alternating = parallel_schedule_find("1f1b"),
                     .interleaved = parallel_schedule_find("interleaved")};
    bool ok;
    *found = (struct parallel_found){.n = 0};
    found->least.closed.memory = INFINITY;
    w.pool.limit = search->simulations > search->top ? search->simulations : search->top;
    ok = check(search, err) && open_walk(&w, err) && try_tensor(&w, err) &&
         search_simulate(&w, err);
    if (found->mixes > 0)
        found->reason[0] = '\0';
    close_walk(&w);
    return ok;
}

void
parallel_found_free(struct parallel_found *found)
{
    free(found->best);
    *found = (struct parallel_found){.n = 0};
}
