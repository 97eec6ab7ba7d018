/* Why a mix is chosen, or not. */
#include "plan-train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where memory goes, as a list. */
static void
format_memory(const struct parallel_memory *memory, char text[160])
{
    char over[40] = "";
    if (memory->overhead > 0)
        snprintf(over, sizeof over, ", overhead %.3g", memory->overhead / 1e9);
    snprintf(text, 160,
             "weights %.3g, gradients %.3g, optimizer %.3g, activations %.3g, working "
             "%.3g%s GB",
             memory->weights / 1e9, memory->gradients / 1e9, memory->optimizer / 1e9,
             memory->activations / 1e9, memory->working / 1e9, over);
}

/* Of the mix that needs least. False: *err. */
static bool
format_lack(const struct parallel_search *search, const struct parallel_found *found,
            char text[500], struct rec_error *err)
{
    struct parallel_step step;
    char mix[PLAN_MIX_MAX], memory[160];
    plan_format_mix(&found->least.mix, mix);
    if (!parallel_step(search->model, &found->least.mix, search->machine, &step, err))
        return false;
    format_memory(&step.memory, memory);
    snprintf(text, 500,
             "a device may need %.4g GB; the mix that needs least, %s, needs "
             "%.4g GB (%s)",
             search->memory / 1e9, mix, found->least.closed.memory / 1e9, memory);
    return true;
}

bool
plan_fail(const struct parallel_search *search, const struct parallel_found *found,
          struct rec_error *err)
{
    const char *plural = search->devices == 1 ? "" : "s";
    char text[500];
    if (found->mixes == 0)
        return rec_fail(err, REC_NO, "no mix of %u device%s: %s", search->devices, plural,
                        found->reason);
    return format_lack(search, found, text, err) &&
           rec_fail(err, REC_NO, "no mix of %u device%s fits: %s", search->devices,
                    plural, text);
}

/* What a mix spends more time on than the best, the largest first. */
static void
format_differences(const struct parallel_step *step, const struct parallel_step *best,
                   char text[300])
{
    struct parallel_share a[PARALLEL_SHARES], b[PARALLEL_SHARES];
    parallel_shares(step, a);
    parallel_shares(best, b);
    text[0] = '\0';
    for (int listed = 0; listed < 3; listed++) {
        size_t most = 0, used = strlen(text);
        for (size_t i = 0; i < PARALLEL_SHARES; i++)
            if (a[i].seconds - b[i].seconds > a[most].seconds - b[most].seconds)
                most = i;
        if (a[most].seconds - b[most].seconds < 0.0005 * best->seconds)
            return;
        snprintf(text + used, 300 - used, "%s%s %+.1f %%", used ? ", " : "", a[most].name,
                 100 * (a[most].seconds - b[most].seconds) / best->seconds);
        a[most].seconds = -INFINITY;
    }
}

void
plan_explain(struct cli *cli, const struct parallel_search *search,
             const struct parallel_ranked *row, const struct parallel_ranked *best)
{
    struct rec_writer *w = cli->writer;
    struct parallel_share share[PARALLEL_SHARES];
    char text[300];
    plan_format_mix(&row->mix, text);
    rec_printf(w, "%s\n", text);
    rec_printf(w, "step      %.5g s; by the closed form %.5g s\n", row->step.seconds,
               row->closed.seconds);
    rec_printf(w, "on device %u of the pipeline, which ends last:\n", row->step.device);
    parallel_shares(&row->step, share);
    for (size_t i = 0; i < PARALLEL_SHARES; i++)
        if (share[i].seconds >= 0.0005 * row->step.seconds)
            rec_printf(w, "    %-10s %9.4g s %6.1f %%\n", share[i].name, share[i].seconds,
                       100 * share[i].seconds / row->step.seconds);
    format_memory(&row->step.memory, text);
    rec_printf(w, "memory    %.4g of %.4g GB: %s\n",
               parallel_memory_sum(&row->step.memory) / 1e9, search->memory / 1e9, text);
    if (row->step.seconds > best->step.seconds) {
        format_differences(&row->step, &best->step, text);
        rec_printf(w, "slower    than row 1 by %.2f %%: %s\n",
                   100 * (row->step.seconds / best->step.seconds - 1), text);
    }
}

/* Says of the best mix of a search how it compares; `against` names what with. */
static bool
compare_best(struct cli *cli, const struct parallel_search *search,
             const struct parallel_ranked *best, const char *against)
{
    struct parallel_found found;
    struct parallel_search one = *search;
    char mix[PLAN_MIX_MAX], text[500];
    bool ok;
    one.top = 1;
    ok = parallel_search(&one, &found, &cli->err);
    if (ok && found.n > 0) {
        const struct parallel_ranked *it = &found.best[0];
        double slower = it->step.seconds / best->step.seconds - 1;
        plan_format_mix(&it->mix, mix);
        format_differences(&it->step, &best->step, text);
        rec_printf(cli->writer, "%s: %.5g s, %.2f %% %s than %s%s%s\n", mix,
                   it->step.seconds, 100 * fabs(slower), slower < 0 ? "faster" : "slower",
                   against, text[0] ? ": " : "", text);
    } else if (ok && found.mixes > 0) {
        ok = format_lack(search, &found, text, &cli->err);
        if (ok)
            rec_printf(cli->writer, "none fits: %s\n", text);
    } else if (ok)
        rec_printf(cli->writer, "none: %s\n", found.reason);
    parallel_found_free(&found);
    return ok;
}

bool
plan_why(struct cli *cli, const struct parallel_search *search,
         const struct parallel_ranked *best)
{
    char mix[PLAN_MIX_MAX], text[2 * PLAN_MIX_MAX];
    plan_format_mix(&best->mix, mix);
    snprintf(text, sizeof text, "%s", mix);
    return compare_best(cli, search, best, text);
}

bool
plan_neighbours(struct cli *cli, const struct parallel_search *search,
                const struct parallel_ranked *row)
{
    for (int i = 0; i < PARALLEL_CHOICES; i++) {
        struct parallel_search other = *search;
        struct parallel_rule *rule =
            calloc(search->rules + PARALLEL_CHOICES, sizeof *rule);
        uint32_t value = parallel_chosen(&row->mix, (enum parallel_choice)i);
        bool ok;
        if (!rule)
            return rec_fail_memory(&cli->err);
        if (i == PARALLEL_DP || i == PARALLEL_SEQUENCE || i == PARALLEL_ENDS ||
            (i == PARALLEL_EP && search->model->t.experts == 0)) {
            free(rule); /* dp follows from the others */
            continue;
        }
        other.rule = rule;
        other.rules = 0;
        for (size_t j = 0; j < search->rules; j++)
            rule[other.rules++] = search->rule[j];
        for (int j = 0; j < PARALLEL_CHOICES; j++) {
            uint32_t same = parallel_chosen(&row->mix, (enum parallel_choice)j);
            if (j == i)
                rule[other.rules++] =
                    (struct parallel_rule){(enum parallel_choice)i, value, value, true};
            else if (j != PARALLEL_DP && j != PARALLEL_SEQUENCE && j != PARALLEL_ENDS)
                rule[other.rules++] =
                    (struct parallel_rule){(enum parallel_choice)j, same, same, false};
        }
        rec_printf(cli->writer, "another %s alone: ", parallel_choice_keys[i]);
        ok = compare_best(cli, &other, row, "this row");
        free(rule);
        if (!ok)
            return false;
    }
    return true;
}
