/* The best mixes as a table for a person. */
#include "plan-train.h"

#include <stdio.h>
#include <string.h>

static const char *const again_words[] = {"none", "selective", "op-selective", "full"};

void
plan_format_mix(const struct parallel_mix *mix, char text[PLAN_MIX_MAX])
{
    text[0] = '\0';
    for (int i = 0; i < PARALLEL_CHOICES; i++) {
        uint32_t value = parallel_chosen(mix, (enum parallel_choice)i);
        size_t used = strlen(text);
        const char *key = parallel_choice_keys[i], *gap = used ? " " : "";
        if (i == PARALLEL_RECOMPUTE)
            snprintf(text + used, PLAN_MIX_MAX - used, "%s%s=%s", gap, key,
                     again_words[value]);
        else if (i == PARALLEL_ENDS ? value > 0
                 : i == PARALLEL_SEQUENCE
                     ? value != (mix->tp > 1)
                     : i == PARALLEL_ZERO || i == PARALLEL_MICRO || value > 1)
            snprintf(text + used, PLAN_MIX_MAX - used, "%s%s=%u", gap, key, value);
    }
}

/* One row of numbers, or the head. */
static void
print_row(struct cli *cli, const struct parallel_search *search,
          const struct plan_row *row, size_t number)
{
    struct rec_writer *w = cli->writer;
    const struct parallel_mix *mix = &row->ranked.mix;
    const struct parallel_step *step = &row->ranked.step;
    rec_printf(w, "%3zu %6llu %3u %3u %3u %3u", number,
               (unsigned long long)parallel_ranks(mix), mix->tp, mix->cp, mix->pp,
               mix->vp);
    if (search->model->t.experts > 0)
        rec_printf(w, " %3u", mix->ep);
    rec_printf(
        w, " %5u %4u %3u %5u %-12s %9.4g %9.4g %5.1f %6.1f  %*s", mix->dp, mix->zero,
        mix->micro, parallel_microbatches(mix), again_words[mix->recompute],
        step->seconds, parallel_tokens_rate(search, &row->ranked),
        100 * parallel_utilisation(search, &row->ranked),
        parallel_memory_sum(&step->memory) / 1e9,
        row->planned.cost >= 0 || row->planned.frontier || row->planned.vary ? -9 : 0,
        parallel_bound(step));
    if (row->planned.cost >= 0)
        rec_printf(w, " %9.4g", row->planned.cost);
    if (row->planned.frontier)
        rec_printf(w, "  %s", row->planned.frontier);
    if (row->planned.vary) {
        rec_printf(w, "  %s x %.4g", row->planned.vary, row->planned.factor);
        if (row->planned.kept >= 0)
            rec_printf(w, ", old mix %.4g s", row->planned.kept);
        else
            rec_printf(w, ", old mix does not fit");
    }
    rec_printf(w, "\n");
}

void
plan_print(struct cli *cli, const struct parallel_plan *plan, const struct plan_row *row,
           size_t n)
{
    const struct parallel_search *search = &plan->search;
    bool like;
    double error = parallel_plan_error(plan, &like);
    rec_printf(cli->writer, "%3s %6s %3s %3s %3s %3s", "row", "gpus", "tp", "cp", "pp",
               "vp");
    if (search->model->t.experts > 0)
        rec_printf(cli->writer, " %3s", "ep");
    rec_printf(cli->writer, " %5s %4s %3s %5s %-12s %9s %9s %5s %6s  %s", "dp", "zero",
               "mbs", "m", "recompute", "step, s", "tokens/s", "MFU,%", "mem,GB",
               "bound by");
    if (row[0].planned.cost >= 0)
        rec_printf(cli->writer, " %10s", "US$");
    if (row[0].planned.frontier)
        rec_printf(cli->writer, "  frontier");
    if (row[0].planned.vary)
        rec_printf(cli->writer, "   machine");
    rec_printf(cli->writer, "\n");
    for (size_t i = 0; i < n; i++)
        print_row(cli, search, &row[i], i + 1);
    rec_printf(cli->writer, "predicted by   stack %s%s", search->machine->stack->name,
               like ? ", of the same device and precision" : "");
    if (error >= 0)
        rec_printf(cli->writer, "; mean error of such predictions %.1f %%", 100 * error);
    rec_printf(cli->writer, "\n");
}
