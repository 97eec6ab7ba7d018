/* plan train [OPTION]... [FILE]... - the best mix of parallelism for so many devices. */
#include "ggo/plan-train.h"
#define CLI_UNSHOWN "limit",
#define CLI_PATHS "gemm-table", "attention-table", "stacks", "devices", "cluster",
#include "main.h"
#include "mix_keys.h"
#include "plan-train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct planning {
    struct cli *cli;
    const struct plan_train_args *args;
    struct mix_options options;
    struct mix_tables tables;
    uint32_t *count; /* owned: numbers of devices */
    size_t ncount;
    struct plan_vary *vary; /* owned */
    size_t nvary;
    uint64_t top, steps, explain, simulations;
    double price, budget, memory;
    struct rec_limit limit;
    bool table;
    uint64_t asked;
};

static bool
read_options(struct planning *p)
{
    static const char *const formats[] = {"records", "table", NULL};
    const struct plan_train_args *args = p->args;
    struct cli *cli = p->cli;
    size_t format = 0;
    p->price = -1;
    p->memory = -1;
    if (!cli_count(cli, "top", args->top_arg, 1, 10000, &p->top) ||
        !cli_count(cli, "steps", args->steps_arg, 1, UINT32_MAX, &p->steps) ||
        !cli_count(cli, "simulate", args->simulate_arg, 1, 1000000, &p->simulations) ||
        (args->explain_given &&
         !cli_count(cli, "explain", args->explain_arg, 1, 10000, &p->explain)) ||
        (args->price_given &&
         !cli_amount(cli, "price", args->price_arg, false, &p->price)) ||
        !cli_amount(cli, "budget", args->budget_arg, true, &p->budget) ||
        (args->memory_given &&
         !cli_bytes(cli, "memory", args->memory_arg, true, &p->memory)) ||
        !cli_limit(cli, args->limit_arg, &p->limit) ||
        !cli_choice(cli, "format", args->format_arg, formats, &format) ||
        (args->gpus_given && !plan_counts(cli, args->gpus_arg, &p->count, &p->ncount)) ||
        (args->vary_given && !plan_varies(cli, args->vary_arg, &p->vary, &p->nvary)))
        return false;
    p->table = format == 1;
    if (args->budget_given && !args->price_given)
        return cli_usage(cli, "--budget needs a --price");
    if (args->steps_given && !args->price_given)
        return cli_usage(cli, "--steps needs a --price");
    if (args->explain_given + args->why_given + args->vary_given > 1)
        return cli_usage(cli, "give one of --explain, --why and --vary");
    if (args->format_given && args->explain_given + args->why_given > 0)
        return cli_usage(cli, "--explain and --why print text: leave out --format");
    if (args->top_given && args->why_given)
        return cli_usage(cli, "--why asks about the best mix: leave out --top");
    if (p->ncount > 1 && args->explain_given + args->why_given + args->vary_given > 0)
        return cli_usage(cli, "--explain, --why and --vary need one number of --gpus");
    for (struct mix_key *key = p->options.key; key->key; key++)
        if (strcmp(key->key, "gpus") == 0)
            key->value = NULL; /* perhaps several */
    return true;
}

/* The text of a table or a reason is no stream of records. */
static bool
writes_text(const struct planning *p)
{
    return p->table || p->args->explain_given || p->args->why_given;
}

/* ---- rows -------------------------------------------------------------------- */

struct rows {
    struct plan_row *row;
    size_t n, room;
};

static double
cost_of(const struct planning *p, const struct parallel_ranked *ranked)
{
    return p->price < 0 ? -1
                        : p->price / 3600 * ranked->step.seconds * (double)p->steps *
                              (double)parallel_ranks(&ranked->mix);
}

static bool
add_row(struct planning *p, struct rows *rows, const struct parallel_ranked *ranked)
{
    if (!rec_grow(&rows->row, &rows->room, rows->n + 1, sizeof *rows->row, &p->cli->err))
        return false;
    rows->row[rows->n++] =
        (struct plan_row){*ranked, {.cost = cost_of(p, ranked), .kept = -1}};
    return true;
}

/* Says of the best mixes of several numbers of devices which no other beats. */
static void
mark_frontiers(const struct planning *p, struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        struct plan_row *row = &rows->row[i];
        bool gpus = true, cost = p->price >= 0;
        for (size_t j = 0; j < rows->n; j++) {
            const struct plan_row *other = &rows->row[j];
            bool faster = other->ranked.step.seconds < row->ranked.step.seconds;
            bool as_fast = other->ranked.step.seconds <= row->ranked.step.seconds;
            uint64_t a = parallel_ranks(&other->ranked.mix);
            uint64_t b = parallel_ranks(&row->ranked.mix);
            gpus = gpus && !((as_fast && a < b) || (faster && a <= b));
            cost = cost && !((as_fast && other->planned.cost < row->planned.cost) ||
                             (faster && other->planned.cost <= row->planned.cost));
        }
        row->planned.frontier = gpus && cost ? "gpus,cost"
                                : gpus       ? "gpus"
                                : cost       ? "cost"
                                             : "none";
    }
}

/* Leaves out what costs more than the budget. */
static bool
keep_budget(struct planning *p, struct rows *rows)
{
    double least = INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        least = fmin(least, rows->row[i].planned.cost);
        if (!(rows->row[i].planned.cost > p->budget))
            rows->row[n++] = rows->row[i];
    }
    rows->n = n;
    return n > 0 ||
           rec_fail(&p->cli->err, REC_NO,
                    "no mix is within the budget: the cheapest costs US$ %.5g", least);
}

/* ---- search ------------------------------------------------------------------ */

static bool
search(struct planning *p, const struct parallel_search *asked, uint32_t devices,
       struct parallel_found *found)
{
    struct parallel_search s = *asked;
    double started = cli_now();
    s.devices = devices;
    *found = (struct parallel_found){.n = 0};
    if (p->tables.net && devices > net_servers(p->tables.net))
        return rec_fail(&p->cli->err, REC_NO, "no mix of %u devices: the cluster has %u",
                        devices, net_servers(p->tables.net));
    if (!parallel_search(&s, found, &p->cli->err))
        return false;
    cli_note(p->cli,
             "%u devices: %llu mixes, %llu fit; %zu simulated, in %.3g s; no other is "
             "faster than %.5g s",
             devices, (unsigned long long)found->mixes, (unsigned long long)found->fit,
             found->simulated, cli_now() - started, found->bound);
    if (found->n > 0 && found->bound < found->best[found->n - 1].step.seconds)
        cli_warn(
            p->cli,
            "of the mixes that fit %zu were simulated, and another may be as fast as "
            "%.5g s: --simulate sets how many",
            found->simulated, found->bound);
    return found->n > 0 || plan_fail(&s, found, &p->cli->err);
}

/* The best mixes of one number of devices, or the best of each of several. */
static bool
search_all(struct planning *p, struct parallel_plan *plan, struct rows *rows)
{
    const uint32_t *count = p->ncount > 0 ? p->count : &plan->search.devices;
    size_t n = p->ncount > 0 ? p->ncount : 1;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        struct parallel_found found;
        bool ok = search(p, &plan->search, count[i], &found);
        for (size_t j = 0; ok && j < (n > 1 ? 1 : found.n); j++)
            ok = add_row(p, rows, &found.best[j]);
        parallel_found_free(&found);
        if (!ok && (p->cli->err.code != REC_NO || n == 1))
            return false;
        if (!ok)
            cli_warn(p->cli, "%s", p->cli->err.text);
        any = any || ok;
    }
    if (!any)
        return false; /* the last message is in cli->err */
    if (n > 1)
        mark_frontiers(p, rows);
    return p->budget == INFINITY || keep_budget(p, rows);
}

/* ---- other machines ------------------------------------------------------------- */

/* Searches again for a machine of which one thing is multiplied. */
static bool
turn(struct planning *p, const struct parallel_plan *plan, const struct plan_vary *vary,
     double factor, struct rows *rows)
{
    struct parallel_machine machine = *plan->search.machine;
    struct parallel_search s = plan->search;
    struct parallel_found found;
    struct parallel_step kept;
    const struct parallel_mix base = rows->row[0].ranked.mix;
    bool ok;
    if (!vary->knob->turn(&machine, &s.memory, factor))
        return rec_fail(&p->cli->err, REC_NO, "%s x %g leaves no device in an island",
                        vary->knob->name, factor);
    s.machine = &machine;
    s.top = 1;
    ok = search(p, &s, (uint32_t)parallel_ranks(&base), &found) &&
         parallel_step(s.model, &base, &machine, &kept, &p->cli->err) &&
         add_row(p, rows, &found.best[0]);
    parallel_found_free(&found);
    if (!ok && p->cli->err.code == REC_NO) {
        cli_warn(p->cli, "%s x %g: %s", vary->knob->name, factor, p->cli->err.text);
        return true;
    }
    if (ok) {
        struct parallel_planned *planned = &rows->row[rows->n - 1].planned;
        planned->vary = vary->knob->name;
        planned->factor = factor;
        if (parallel_memory_sum(&kept.memory) <= s.memory)
            planned->kept = kept.seconds;
    }
    return ok;
}

/* The unchanged machine first, then each change at factors in equal ratios. */
static bool
turn_all(struct planning *p, const struct parallel_plan *plan, struct rows *rows)
{
    rows->n = 1;
    rows->row[0].planned.vary = "none";
    rows->row[0].planned.factor = 1;
    rows->row[0].planned.kept = rows->row[0].ranked.step.seconds;
    for (size_t i = 0; i < p->nvary; i++) {
        const struct plan_vary *vary = &p->vary[i];
        for (uint64_t j = 0; j < vary->points; j++) {
            double at = vary->points > 1 ? (double)j / (double)(vary->points - 1) : 0;
            double factor = j + 1 == vary->points && j > 0
                                ? vary->most
                                : vary->least * pow(vary->most / vary->least, at);
            if (!turn(p, plan, vary, factor, rows))
                return false;
        }
    }
    return true;
}

/* ---- records ------------------------------------------------------------------ */

static bool
write_rows(struct planning *p, const struct parallel_plan *plan,
           const struct rec_reader *reader, const struct rec *rec,
           const struct rows *rows)
{
    if (p->table) {
        plan_print(p->cli, plan, rows->row, rows->n);
        return true;
    }
    for (size_t i = 0; i < rows->n; i++)
        if (!parallel_plan_write(plan, reader, rec, &rows->row[i].ranked,
                                 &rows->row[i].planned, p->cli->writer, &p->cli->err))
            return false;
    return true;
}

static bool
say_why(struct planning *p, struct parallel_plan *plan, const struct rows *rows)
{
    const struct parallel_ranked best = rows->row[0].ranked;
    plan->search.devices = (uint32_t)parallel_ranks(&best.mix);
    if (p->args->why_given)
        return plan_rules(p->cli, "why", p->args->why_arg, false, plan) &&
               plan_why(p->cli, &plan->search, &best);
    if (p->explain > rows->n)
        return rec_fail(&p->cli->err, REC_NO, "there is no row %llu of %zu: --top K",
                        (unsigned long long)p->explain, rows->n);
    plan_explain(p->cli, &plan->search, &rows->row[p->explain - 1].ranked, &best);
    return plan_neighbours(p->cli, &plan->search, &rows->row[p->explain - 1].ranked);
}

static bool
answer(struct planning *p, struct parallel_plan *plan, const struct rec_reader *reader,
       const struct rec *rec)
{
    struct cli *cli = p->cli;
    struct rows rows = {.row = NULL};
    struct parallel_search *s = &plan->search;
    bool ok;
    if (p->memory >= 0)
        s->memory = p->memory;
    s->top = p->top;
    s->simulations = p->simulations;
    s->limit = p->limit;
    if (p->ncount == 0 && s->devices == 0 && p->tables.net)
        s->devices = net_servers(p->tables.net);
    if (p->ncount == 0 && s->devices == 0)
        return cli_usage(cli, "give the number of devices: --gpus N, or a --cluster");
    ok = (!p->args->fix_given || plan_rules(cli, "fix", p->args->fix_arg, false, plan)) &&
         (!p->args->forbid_given ||
          plan_rules(cli, "forbid", p->args->forbid_arg, true, plan)) &&
         search_all(p, plan, &rows) && (p->nvary == 0 || turn_all(p, plan, &rows)) &&
         (p->args->why_given || p->args->explain_given
              ? say_why(p, plan, &rows)
              : write_rows(p, plan, reader, rec, &rows));
    free(rows.row);
    return ok;
}

static bool
take(struct planning *p, struct rec *rec)
{
    const struct parallel_tables tables = {&p->tables.stacks,      &p->tables.devices,
                                           &p->tables.collectives, &p->tables.own,
                                           p->tables.kernels,      0};
    struct cli *cli = p->cli;
    struct parallel_plan plan = {.room = 0};
    struct rec_reader *reader;
    char *line = NULL;
    bool ok;
    mix_warn_cluster(cli, &p->options, rec);
    if (rec->type != REC_TRAINING) {
        if (!writes_text(p))
            rec_put_line(cli->writer, rec->line);
        return true;
    }
    p->asked++;
    reader = mix_keys_apply(cli, &p->options, &p->tables, rec, &line);
    ok = reader && parallel_plan_read(&plan, &tables, reader, rec, &cli->err) &&
         answer(p, &plan, reader, rec);
    parallel_plan_free(&plan);
    rec_reader_close(reader);
    free(line);
    return ok;
}

static bool
run(struct cli *cli, const struct plan_train_args *args)
{
    struct planning p = {.cli = cli, .args = args, .options = MIX_OPTIONS(args)};
    struct rec rec;
    int status = 0;
    bool ok = (cli->gathers = true) && read_options(&p) &&
              mix_tables_read(cli, &p.options, false, &p.tables) &&
              (writes_text(&p) ? cli_open_reader(cli) && cli_open_writer(cli, false)
                               : cli_open_filter(cli));
    if (args->memory_given) /* it is neither the device's nor the cluster's */
        p.tables.memory = 0;
    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(&p, &rec);
    ok = ok && status == 0 &&
         (p.asked > 0 ||
          rec_fail(&cli->err, REC_DATA,
                   "no training record came: %spdgen --shapes makes one", cli->prefix));
    mix_tables_free(&p.tables);
    free(p.count);
    free(p.vary);
    return ok;
}
