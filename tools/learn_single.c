/* Experts one by one (learn_single.h). */
#include "learn_single.h"

#include <stdlib.h>

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

/* Adds how jobs come in a setting: its regime, in an episode. */
static bool
add_regime(const struct learn_single *single, const struct learn_setting *setting,
           double regime[ALLOC_REGIME])
{
    struct rec_error *err = &single->cli->err;
    const struct learn_options *o = single->options;
    const struct learn_world *world = &o->worlds[setting->world];
    struct learn_course_options options = world->course;
    struct alloc_choosing any = {.chooser = alloc_chooser_find(rec_str("learned"))};
    struct learn_course *course = NULL;
    double lost, here[ALLOC_REGIME];
    bool ok = (any.self = alloc_scorer_new(0, 1, err)) != NULL;
    options.admission.choosing = &any;
    ok = ok && (course = learn_course_new(&options, world->store, err)) &&
         learn_course_run(course, setting, o->seed, &lost, err);
    if (ok)
        learn_course_regime(course, here);
    for (int i = 0; ok && i < ALLOC_REGIME; i++)
        regime[i] += here[i];
    learn_course_free(course);
    alloc_scorer_free(any.self);
    return ok;
}

/* The mean regime of an expert's settings, as training makes it the center. */
static bool
regime_of(const struct learn_single *single, uint64_t number, double regime[ALLOC_REGIME])
{
    uint32_t n = 0;
    memset(regime, 0, ALLOC_REGIME * sizeof *regime);
    for (uint32_t i = 0; i < single->settings->n; i++) {
        const struct learn_setting *setting = &single->settings->setting[i];
        if (setting->expert + 1 != number)
            continue;
        if (!add_regime(single, setting, regime))
            return false;
        n++;
    }
    for (int i = 0; i < ALLOC_REGIME; i++)
        regime[i] /= n;
    return true;
}

/* An expert of --init may be for another cluster than its settings here, where it would
 * not decide what it learns; or for other arrivals. */
static bool
check_expert(const struct learn_single *single, const char *option, uint64_t number,
             const struct learn_setting *setting)
{
    const struct alloc_scorer *scorer = single->scorer;
    const char *own = scorer->expert[number - 1].cluster;
    char cluster[NET_TEXT_MAX];
    double regime[ALLOC_REGIME];
    uint32_t nearest;
    cluster_of(single, setting, cluster);
    if (*own && strcmp(own, cluster) != 0)
        return cli_usage(single->cli,
                         "--%s: expert %llu is for %s, and would learn here for %s",
                         option, (unsigned long long)number, own, cluster);
    if (scorer->nexperts == 1)
        return true;
    if (!regime_of(single, number, regime))
        return single->cli->err.code == REC_OK; /* interrupted */
    nearest = alloc_scorer_nearest(scorer, (uint32_t)number - 1, regime);
    if (nearest + 1 != number)
        cli_warn(single->cli,
                 "--%s: expert %llu would learn from arrivals as %s, %s, but expert %u, "
                 "whose center is nearer, decides there",
                 option, (unsigned long long)number, setting->interarrival,
                 setting->fraction, nearest + 1);
    return true;
}

/* Is a number in this part of a list? */
static bool
is_listed(const char *list, const char *end, uint64_t number)
{
    struct rec_str rest = {list, (size_t)(end - list)}, word;
    uint64_t other;
    while (rec_str_split(&rest, ',', &word))
        if (rec_parse_uint(word, &other) && other == number)
            return true;
    return false;
}

/* Of all experts of a list. `learns`: they learn from jobs, more than a margin. */
static bool
check_list(const struct learn_single *single, const char *option, bool several,
           bool learns, const char *list)
{
    struct rec_str rest = list ? rec_str(list) : (struct rec_str){0};
    const struct learn_setting *setting;
    uint64_t expert;
    while (rest.ptr) {
        const char *from = rest.ptr;
        if (!(setting = next_of(single, option, several, &rest, &expert)))
            return false;
        if (is_listed(list, from, expert))
            return cli_usage(single->cli, "--%s names expert %llu twice", option,
                             (unsigned long long)expert);
        if (single->begun && learns && !check_expert(single, option, expert, setting))
            return false;
    }
    return true;
}

/* An interrupt has come: what the list of an option has from `from` on is left out. The
 * provenance says what was done. `options` are this one and those that are for it. */
static bool
leave_out(const struct learn_single *single, const char *const *options, const char *list,
          const char *from)
{
    struct cli *cli = single->cli;
    char *done = strndup(list, from > list ? (size_t)(from - list) - 1 : 0);
    bool ok = done || rec_fail_memory(&cli->err);
    cli_warn(cli, "interrupted: --%s %s is left out", options[0], from);
    if (ok && *done)
        ok = cli_set_provenance_text(cli, options[0], done);
    for (; ok && !*done && *options; options++)
        ok = cli_set_provenance_text(cli, *options, NULL);
    free(done);
    return ok;
}

static bool
is_stopped(const struct learn_single *single)
{
    return single->options->worlds->course.stop();
}

/* --values. Each expert has as many seeds as streams. */
static bool
train_values(struct learn_single *single)
{
    static const char *const options[] = {"values", "value-jobs", "value-units",
                                          "value-margin", NULL};
    struct cli *cli = single->cli;
    struct rec_str rest = single->values ? rec_str(single->values) : (struct rec_str){0};
    uint64_t number;
    while (rest.ptr) {
        const char *from = rest.ptr;
        struct alloc_value *value = NULL;
        struct alloc_expert *expert;
        if (!next_of(single, "values", true, &rest, &number))
            return false;
        expert = &single->scorer->expert[number - 1];
        if (!is_stopped(single))
            value = learn_value(
                single->options, (uint32_t)number - 1,
                alloc_scorer_valued(single->scorer, (uint32_t)number - 1),
                single->value_units, single->value_jobs, single->value_margin,
                single->options->seed + (uint32_t)number * ALLOC_VALUE_STREAMS,
                &cli->err);
        if (!value)
            return cli->err.code == REC_OK &&
                   leave_out(single, options, single->values, from);
        alloc_value_free(expert->value);
        expert->value = value;
        single->changed = true;
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
    ok = ok && alloc_cluster_compare(cli, single->clusters, teacher.argument,
                                     alloc_choosing_trained(&teacher));
    lesson.teacher = &teacher;
    ok = ok && learn_teach(single->scorer, (uint32_t)expert - 1, &lesson, &cli->err);
    alloc_choosing_close(&teacher);
    return ok;
}

/* --taught. The seeds are those behind the ones of values. */
static bool
teach_all(struct learn_single *single)
{
    static const char *const options[] = {"taught", "teacher", "taught-jobs", NULL};
    struct rec_str rest = single->taught ? rec_str(single->taught) : (struct rec_str){0};
    uint64_t expert;
    while (rest.ptr) {
        const char *from = rest.ptr;
        const struct learn_setting *setting =
            next_of(single, "taught", false, &rest, &expert);
        struct learn_lesson lesson = {.world = &single->options->worlds[setting->world],
                                      .setting = setting,
                                      .jobs = single->taught_jobs,
                                      .seed = single->options->seed +
                                              (single->scorer->nexperts + 1) *
                                                  ALLOC_VALUE_STREAMS +
                                              (uint32_t)expert};
        if (is_stopped(single) || !teach(single, expert, &lesson))
            return single->cli->err.code == REC_OK &&
                   leave_out(single, options, single->taught, from);
        single->changed = true;
    }
    return true;
}

/* The largest number of a list; 0: there is none. */
static uint64_t
largest(const char *list)
{
    struct rec_str rest = list ? rec_str(list) : (struct rec_str){0}, word;
    uint64_t number, most = 0;
    while (rec_str_split(&rest, ',', &word))
        if (rec_parse_uint(word, &number) && number > most)
            most = number;
    return most;
}

uint64_t
learn_single_seeds(const struct learn_single *single, uint32_t nexperts)
{
    uint64_t valued = single->value_jobs > 0 ? largest(single->values) : 0;
    uint64_t taught = largest(single->taught);
    return taught   ? (nexperts + 1) * (uint64_t)ALLOC_VALUE_STREAMS + taught + 1
           : valued ? (valued + 1) * ALLOC_VALUE_STREAMS
                    : 0;
}

bool
learn_single_check(const struct learn_single *single)
{
    return check_list(single, "values", true, single->value_jobs > 0, single->values) &&
           check_list(single, "taught", false, true, single->taught);
}

bool
learn_single_train(struct learn_single *single)
{
    return train_values(single) && teach_all(single);
}
