/* Experts one by one (learn_single.h). */
#include "learn_single.h"

static const char *
cluster_of(const struct learn_single *single, const struct learn_setting *setting,
           char text[NET_TEXT_MAX])
{
    net_describe(single->options->worlds[setting->world].course.admission.placer.net,
                 text);
    return text;
}

/* The first setting of an expert. *n counts its settings; 0: there is one that has not
 * the same cluster, or not the same --loads. */
static const struct learn_setting *
setting_of(const struct learn_single *single, uint64_t expert, uint32_t *n)
{
    const struct learn_setting *found = NULL;
    char cluster[NET_TEXT_MAX], other[NET_TEXT_MAX];
    *n = 0;
    for (uint32_t i = 0; i < single->settings->n; i++) {
        const struct learn_setting *setting = &single->settings->setting[i];
        if (setting->expert + 1 != expert)
            continue;
        if (found &&
            (single->shared || strcmp(cluster_of(single, found, cluster),
                                      cluster_of(single, setting, other)) != 0)) {
            *n = 0;
            break;
        }
        found = found ? found : setting;
        ++*n;
    }
    return found;
}

/* The next expert of the list of an option. NULL: there is no such one, or its settings
 * are too different. */
static const struct learn_setting *
next_of(const struct learn_single *single, const char *option, bool several,
        struct rec_str *list, uint64_t *expert)
{
    const struct learn_setting *setting = NULL;
    struct rec_str word;
    uint32_t n = 0;
    rec_str_split(list, ',', &word);
    if (!rec_parse_uint(word, expert) || *expert < 1 ||
        *expert > single->scorer->nexperts)
        cli_usage(single->cli, "--%s needs numbers of experts, 1 to %u, got '%.*s'",
                  option, single->scorer->nexperts, (int)word.len, word.ptr);
    else if ((setting = setting_of(single, *expert, &n)) &&
             (n == 1 || (several && n > 1)))
        return setting;
    else
        cli_usage(single->cli,
                  "--%s needs experts that are trained for one %s: expert %llu "
                  "is not",
                  option, several ? "cluster and load" : "setting",
                  (unsigned long long)*expert);
    return NULL;
}

/* Of all experts of a list. */
static bool
check_list(const struct learn_single *single, const char *option, bool several,
           const char *list)
{
    struct rec_str rest = list ? rec_str(list) : (struct rec_str){0};
    uint64_t expert;
    while (rest.ptr)
        if (!next_of(single, option, several, &rest, &expert))
            return false;
    return true;
}

/* An interrupt has ended what an expert was trained on last. */
static void
warn_interrupted(const struct learn_single *single, uint64_t expert)
{
    if (single->options->worlds->course.stop())
        cli_warn(single->cli,
                 "interrupted: expert %llu is not what the same command gives without an "
                 "interrupt",
                 (unsigned long long)expert);
}

/* --values. Each expert has as many seeds as streams. */
static bool
train_values(const struct learn_single *single)
{
    struct cli *cli = single->cli;
    struct rec_str rest = single->values ? rec_str(single->values) : (struct rec_str){0};
    uint64_t expert;
    while (rest.ptr) {
        struct alloc_value **value, *own;
        const struct alloc_value *start;
        if (!next_of(single, "values", true, &rest, &expert))
            return false;
        value = &single->scorer->expert[expert - 1].value;
        own = *value;
        start = alloc_scorer_valued(single->scorer, (uint32_t)expert - 1);
        *value = learn_value(
            single->options, (uint32_t)expert - 1, start, single->value_units,
            single->value_jobs, single->value_margin,
            single->options->seed + (uint32_t)expert * ALLOC_VALUE_STREAMS, &cli->err);
        alloc_value_free(own);
        if (!*value)
            return false;
        warn_interrupted(single, expert);
    }
    return true;
}

/* --teacher, which plays on the cluster of a lesson. */
static bool
teach(const struct learn_single *single, uint64_t expert, const struct learn_lesson *plan)
{
    struct cli *cli = single->cli;
    struct alloc_choosing teacher = {0}, base = {.chooser = alloc_choosers};
    const struct learn_world *world = plan->world;
    struct learn_lesson lesson = *plan;
    struct alloc_choice choice = {.admission = &world->course.admission,
                                  .store = world->store,
                                  .base = &base,
                                  .seed = plan->seed};
    bool ok = alloc_choosing_open(&teacher, single->teacher, &choice, &cli->err);
    if (!ok && cli->err.code == REC_USAGE)
        cli_usage(cli, "--teacher %s", cli->err.text);
    if (ok)
        alloc_cluster_compare(cli, single->clusters, teacher.argument,
                              alloc_choosing_trained(&teacher));
    lesson.teacher = &teacher;
    ok = ok && learn_teach(single->scorer, (uint32_t)expert - 1, &lesson, &cli->err);
    alloc_choosing_close(&teacher);
    return ok;
}

/* --taught. The seeds are those behind the ones of values. */
static bool
teach_all(const struct learn_single *single)
{
    struct rec_str rest = single->taught ? rec_str(single->taught) : (struct rec_str){0};
    uint64_t expert;
    while (rest.ptr) {
        const struct learn_setting *setting =
            next_of(single, "taught", false, &rest, &expert);
        struct learn_lesson lesson = {.world = &single->options->worlds[setting->world],
                                      .setting = setting,
                                      .jobs = single->taught_jobs,
                                      .seed = single->options->seed +
                                              (single->scorer->nexperts + 1) *
                                                  ALLOC_VALUE_STREAMS +
                                              (uint32_t)expert};
        if (!teach(single, expert, &lesson))
            return false;
        warn_interrupted(single, expert);
    }
    return true;
}

uint64_t
learn_single_seeds(const struct learn_single *single, uint32_t nexperts)
{
    uint64_t seeds = (nexperts + 1) * (uint64_t)ALLOC_VALUE_STREAMS;
    return single->taught ? seeds + nexperts + 1 : single->values ? seeds : 0;
}

bool
learn_single_check(const struct learn_single *single)
{
    return check_list(single, "values", true, single->values) &&
           check_list(single, "taught", false, single->taught);
}

bool
learn_single_train(const struct learn_single *single)
{
    return train_values(single) && teach_all(single);
}
