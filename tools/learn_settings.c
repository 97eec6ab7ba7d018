/* The settings of learn: clusters and inputs, loads, fractions and steps. */
#include "learn_settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Experts are compared in each other's settings: memory grows with the square. */
enum { SETTINGS_MAX = 10000 };

static bool
check_dist(struct cli *cli, const char *option, const char *text)
{
    struct rec_error err;
    struct rng_dist *dist = rng_dist_new(text, 1, 1, &err);
    rng_dist_free(dist);
    if (dist)
        return true;
    if (err.code == REC_USAGE)
        return cli_usage(cli, "--%s: %s", option, err.text);
    cli->err = err;
    return false;
}

/* The next item of a list that is separated by commas. An item may have commas itself, as
 * "pmf:1=0.5,2=0.5": a piece with "=" and no ":" before it belongs to the last item. */
static bool
next_item(struct rec_str *rest, struct rec_str *item)
{
    struct rec_str more, ahead;
    if (!rec_str_split(rest, ',', item))
        return false;
    for (ahead = *rest; rec_str_split(&ahead, ',', &more); *rest = ahead) {
        const char *equals = memchr(more.ptr, '=', more.len);
        if (!equals || memchr(more.ptr, ':', (size_t)(equals - more.ptr)))
            break;
        item->len = (size_t)(more.ptr + more.len - item->ptr);
    }
    return true;
}

/* The mean number of steps, from draws: not every distribution has a known one. *most is
 * the largest that was drawn, before 0 becomes 1. */
static bool
mean_steps(const char *steps, double *mean, double *most, struct rec_error *err)
{
    enum { DRAWS = 10000 };
    struct rng_dist *dist = rng_dist_new(steps, 1, 1, err);
    double sum = 0;
    *most = 0;
    for (int i = 0; dist && i < DRAWS; i++) {
        double drawn = round(rng_dist_draw(dist));
        *most = fmax(*most, drawn);
        sum += fmax(1, drawn);
    }
    rng_dist_free(dist);
    *mean = sum / DRAWS;
    return dist != NULL;
}

/* A job of no steps would be trained on as one of a step. */
static bool
check_steps(struct cli *cli, const char *steps)
{
    double mean, most;
    return check_dist(cli, "steps", steps) &&
           mean_steps(steps, &mean, &most, &cli->err) &&
           (most > 0 ||
            cli_usage(cli, "--steps: a job has at least a step, got '%s'", steps));
}

/* The time between arrivals at which the sequential work of the jobs is this share of
 * what all servers can do, seconds. */
static bool
spacing_of(const struct learn_world *world, const char *steps, double share,
           double *spacing, struct rec_error *err)
{
    const struct learn_course_options *o = &world->course;
    double work = 0, mean, most;
    if (!mean_steps(steps, &mean, &most, err))
        return false;
    for (uint32_t i = 0; i < o->ntemplates; i++)
        work += o->templates[i].sequential / o->ntemplates;
    *spacing = work * mean / (share * net_servers(o->admission.placer.net));
    return true;
}

/* The interarrival distribution of a load: a number is the mean of an exponential one, as
 * is a share of the servers, NUMBER%. */
static const char *
copy_interarrival(struct learn_settings *s, struct rec_str load,
                  const struct learn_world *world, const char *steps)
{
    struct rec_error *err = &s->cli->err;
    const char *copy = NULL;
    double mean;
    char text[60];
    if (load.len > 1 && load.ptr[load.len - 1] == '%' &&
        rec_parse_num((struct rec_str){load.ptr, load.len - 1}, &mean)) {
        if (!(mean > 0 && mean < INFINITY)) {
            cli_usage(s->cli, "--loads: a share must be above 0 %%, got '%.*s'",
                      (int)load.len, load.ptr);
            return NULL;
        }
        if (world && !spacing_of(world, steps, mean / 100, &mean, err))
            return NULL;
        snprintf(text, sizeof text, "exponential:%.17g", mean);
        copy = rec_arena_copy(&s->arena, rec_str(text), err);
    } else if (rec_parse_num(load, &mean) && load.len < 40) {
        snprintf(text, sizeof text, "exponential:%.*s", (int)load.len, load.ptr);
        copy = rec_arena_copy(&s->arena, rec_str(text), err);
    } else
        copy = rec_arena_copy(&s->arena, load, err);
    return copy && check_dist(s->cli, "loads", copy) ? copy : NULL;
}

/* Where settings are added. */
struct corner {
    const struct learn_world *world; /* NULL: only to check the options */
    uint32_t number;                 /* of the world */
    const char *steps;
    uint32_t expert;
};

static bool
add(struct learn_settings *s, struct corner *at, const char *interarrival,
    struct rec_str fraction)
{
    struct rec_error *err = &s->cli->err;
    const char *copy = rec_arena_copy(&s->arena, fraction, err);
    if (!copy || !check_dist(s->cli, "fractions", copy) ||
        !rec_grow(&s->setting, &s->room, s->n + 1, sizeof *s->setting, err))
        return false;
    s->setting[s->n++] =
        (struct learn_setting){interarrival, copy, at->steps, at->number, at->expert++};
    if (at->expert > s->nexperts)
        s->nexperts = at->expert;
    return true;
}

/* Adds a load with each of the fractions, or if it is LOAD@FRACTION, with its own. */
static bool
add_load(struct learn_settings *s, struct corner *at, struct rec_str own)
{
    struct rec_str rest = rec_str(s->fractions), load, fraction;
    const char *interarrival;

    rec_str_split(&own, '@', &load);
    if (!(interarrival = copy_interarrival(s, load, at->world, at->steps)))
        return false;
    if (own.ptr)
        return add(s, at, interarrival, own);
    while (next_item(&rest, &fraction))
        if (!add(s, at, interarrival, fraction))
            return false;
    return true;
}

static bool
add_world(struct learn_settings *s, const struct learn_world *world, uint32_t number)
{
    struct rec_str rest = rec_str(s->steps), steps, loads, load;
    while (next_item(&rest, &steps)) {
        struct corner at = {world, number, rec_arena_copy(&s->arena, steps, &s->cli->err),
                            0};
        if (!at.steps || !check_steps(s->cli, at.steps))
            return false;
        loads = rec_str(s->loads);
        while (next_item(&loads, &load))
            if (!add_load(s, &at, load))
                return false;
    }
    return s->n <= SETTINGS_MAX ||
           cli_usage(s->cli, "--loads and --fractions make %u pairs, at most are %d",
                     s->n, SETTINGS_MAX);
}

bool
learn_settings_check(struct learn_settings *s)
{
    bool ok = add_world(s, NULL, 0);
    s->n = 0;
    return ok;
}

bool
learn_settings_make(struct learn_settings *s, const struct learn_world *worlds,
                    uint32_t nworlds)
{
    s->n = 0;
    for (uint32_t i = 0; i < nworlds; i++) {
        uint32_t before = s->n;
        if (!add_world(s, &worlds[i], i))
            return false;
        s->several = nworlds > 1 || s->n - before > s->nexperts;
    }
    return true;
}

bool
learn_settings_judge(const struct learn_settings *s, uint32_t number,
                     const struct learn_world *worlds, struct alloc_scorer *scorer,
                     uint32_t seed, uint32_t episodes)
{
    static const char *const names[] = {"blocking rate", "share of work blocked",
                                        "completion", "cost"};
    const struct alloc_choosing choosing = {
        .chooser = alloc_chooser_find(rec_str("learned")), .self = scorer};
    const struct learn_setting *setting = &s->setting[number];
    const struct learn_world *world = &worlds[setting->world];
    struct learn_course_options options = world->course;
    double n = episodes, sum = 0, squares = 0, worst = 0, value = 0;
    char where[NET_TEXT_MAX], more[NET_TEXT_MAX + 200] = "";
    char error[320] = "-"; /* of one episode it is not known */
    struct learn_course *course;
    bool ok = true;

    options.admission.choosing = &choosing;
    if (!(course = learn_course_new(&options, world->store, &s->cli->err)))
        return false;
    for (uint32_t i = 0; ok && i < episodes; i++) {
        cli_progress(s->cli, number * episodes + i, s->n * episodes, "held-out episodes");
        ok = learn_course_run(course, setting, seed + i, &value, &s->cli->err);
        sum += value;
        squares += value * value;
        worst = fmax(worst, value);
    }
    learn_course_free(course);
    if (!ok)
        return false;
    net_describe(options.admission.placer.net, where);
    if (s->several)
        snprintf(more, sizeof more, ", %.80s steps, input or shape %u (%s)",
                 setting->steps, setting->world + 1, where);
    if (n > 1)
        snprintf(error, sizeof error, "%.4f",
                 sqrt(fmax(0, squares / n - sum / n * (sum / n)) / (n - 1)));
    cli_note(s->cli, "%s, %s%s: %s %.4f, standard error %s, largest %.4f",
             setting->interarrival, setting->fraction, more, names[options.objective],
             sum / n, error, worst);
    return true;
}

void
learn_settings_free(struct learn_settings *s)
{
    free(s->setting);
    rec_arena_free(&s->arena);
}
