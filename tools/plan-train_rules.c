/* Values of options of plan train: rules, numbers of devices, what to vary. */
#include "plan-train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
read_number(struct rec_str text, uint32_t *value)
{
    uint64_t all = 0;
    if (text.len == 0 || text.len > 9)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        all = 10 * all + (uint64_t)(text.ptr[i] - '0');
    }
    *value = (uint32_t)all;
    return true;
}

/* N or LEAST..MOST. */
static bool
read_range(struct rec_str text, uint32_t *least, uint32_t *most)
{
    for (size_t i = 0; i + 1 < text.len; i++)
        if (text.ptr[i] == '.' && text.ptr[i + 1] == '.')
            return read_number((struct rec_str){text.ptr, i}, least) &&
                   read_number((struct rec_str){text.ptr + i + 2, text.len - i - 2},
                               most) &&
                   *least <= *most;
    *most = 0;
    if (!read_number(text, least))
        return false;
    *most = *least;
    return true;
}

/* recompute and ends have words. */
static bool
read_word(enum parallel_choice choice, struct rec_str text, uint32_t *value)
{
    static const char *const again[] = {"none", "selective", "op-selective", "full"};
    if (choice == PARALLEL_ENDS && rec_str_is(text, "layers")) {
        *value = 1;
        return true;
    }
    for (uint32_t i = 0; choice == PARALLEL_RECOMPUTE && i < 4; i++)
        if (rec_str_is(text, again[i])) {
            *value = i;
            return true;
        }
    return false;
}

bool
plan_rules(struct cli *cli, const char *option, const char *text, bool forbid,
           struct parallel_plan *plan)
{
    struct rec_str rest = rec_str(text), part;
    while (rec_str_split(&rest, ',', &part)) {
        struct parallel_rule rule = {.forbid = forbid};
        struct rec_str value = part, key;
        int choice = 0;
        bool ok;
        rec_str_split(&value, '=', &key);
        while (choice < PARALLEL_CHOICES &&
               !rec_str_is(key, parallel_choice_keys[choice]))
            choice++;
        if (choice == PARALLEL_CHOICES)
            return cli_usage(cli,
                             "--%s must list KEY=VALUE, with tp, cp, pp, vp, ep, dp, "
                             "zero, recompute, mbs, sp or ends as KEY, got '%.*s'",
                             option, REC_SAID(part));
        rule.choice = (enum parallel_choice)choice;
        ok = read_word(rule.choice, value, &rule.least);
        rule.most = rule.least;
        if (!ok && !read_range(value, &rule.least, &rule.most))
            return cli_usage(cli, "--%s: %s must be a number, LEAST..MOST%s, got '%.*s'",
                             option, parallel_choice_keys[choice],
                             choice == PARALLEL_RECOMPUTE
                                 ? ", or none, selective, op-selective, full"
                                 : "",
                             REC_SAID(value));
        if (!parallel_plan_rule(plan, &rule, &cli->err))
            return false;
    }
    return true;
}

static int
compare_counts(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

bool
plan_counts(struct cli *cli, const char *text, uint32_t **count, size_t *n)
{
    struct rec_str rest = rec_str(text), part;
    size_t room = 0;
    *n = 0;
    while (rec_str_split(&rest, ',', &part)) {
        uint32_t least, most;
        if (!read_range(part, &least, &most) || least == 0)
            return cli_usage(cli,
                             "--gpus must be N, N,N,... or LEAST..MOST (which doubles), "
                             "got '%.60s'",
                             text);
        for (uint64_t i = least; i <= most; i *= 2) {
            if (!rec_grow(count, &room, *n + 1, sizeof **count, &cli->err))
                return false;
            (*count)[(*n)++] = (uint32_t)i;
        }
    }
    qsort(*count, *n, sizeof **count, compare_counts);
    for (size_t i = room = 0; i < *n; i++) /* each once */
        if (i == 0 || (*count)[i] != (*count)[room - 1])
            (*count)[room++] = (*count)[i];
    *n = room;
    return true;
}

/* ---- what to vary --------------------------------------------------------------- */

static bool
turn_bandwidth(struct parallel_machine *machine, double *memory, double factor)
{
    (void)memory;
    machine->adapter *= factor;
    return true;
}

static bool
turn_inside(struct parallel_machine *machine, double *memory, double factor)
{
    (void)memory;
    machine->inside *= factor;
    machine->widened = factor;
    return true;
}

static bool
turn_island(struct parallel_machine *machine, double *memory, double factor)
{
    double node = floor(machine->node * factor + 0.5);
    (void)memory;
    if (node < 1 || node > 1e6)
        return false;
    machine->node = (uint32_t)node;
    return true;
}

static bool
turn_memory(struct parallel_machine *machine, double *memory, double factor)
{
    *memory *= factor;
    machine->memory *= factor;
    return true;
}

static bool
turn_memory_bandwidth(struct parallel_machine *machine, double *memory, double factor)
{
    (void)memory;
    machine->bandwidth *= factor;
    return true;
}

static bool
turn_peak(struct parallel_machine *machine, double *memory, double factor)
{
    (void)memory;
    for (int i = 0; i < 3; i++)
        machine->peak[i] *= factor;
    return true;
}

static const struct plan_knob knobs[] = {{"bandwidth", turn_bandwidth},
                                         {"inside", turn_inside},
                                         {"island", turn_island},
                                         {"memory", turn_memory},
                                         {"memory-bandwidth", turn_memory_bandwidth},
                                         {"peak", turn_peak}};
enum { KNOBS = sizeof knobs / sizeof *knobs, POINTS_MAX = 100 };

static bool
read_vary(struct cli *cli, struct rec_str part, struct plan_vary *vary)
{
    struct rec_str value = part, name;
    char word[80], end;
    int found;
    *vary = (struct plan_vary){.points = 5};
    rec_str_split(&value, '=', &name);
    snprintf(word, sizeof word, "%.*s", (int)(value.len < 79 ? value.len : 79),
             value.ptr);
    for (size_t i = 0; i < KNOBS; i++)
        if (rec_str_is(name, knobs[i].name))
            vary->knob = &knobs[i];
    if (!vary->knob)
        return cli_usage(cli,
                         "--vary must list bandwidth, inside, island, memory, "
                         "memory-bandwidth, peak as NAME=LEAST:MOST, got '%.*s'",
                         REC_SAID(part));
    unsigned points = 5;
    found = sscanf(word, "%lf:%lf:%3u%c", &vary->least, &vary->most, &points, &end);
    if ((found != 2 && found != 3) || strspn(word, "0123456789.:eE+-") != strlen(word) ||
        (found == 2 && strchr(strchr(word, ':') + 1, ':')) || !(vary->least > 0) ||
        !(vary->most >= vary->least) || !isfinite(vary->most) || points < 1 ||
        points > POINTS_MAX)
        return cli_usage(cli,
                         "--vary: %s must be LEAST:MOST or LEAST:MOST:POINTS, factors "
                         "above 0 and 1 to 100 points, got '%s'",
                         vary->knob->name, word);
    vary->points = points;
    return true;
}

bool
plan_varies(struct cli *cli, const char *text, struct plan_vary **vary, size_t *n)
{
    struct rec_str rest = rec_str(text), part;
    size_t room = 0;
    *n = 0;
    while (rec_str_split(&rest, ',', &part))
        if (!rec_grow(vary, &room, *n + 1, sizeof **vary, &cli->err) ||
            !read_vary(cli, part, &(*vary)[(*n)++]))
            return false;
    return true;
}
