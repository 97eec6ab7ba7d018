/* Pipelines: reads their records (profiles, prices, stages, edges, configs, envelope,
 * rungs) one at a time. What can only be checked when all have come is in seal.c. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

static struct serve_place
place_of(const struct rec_reader *reader)
{
    return (struct serve_place){rec_reader_file(reader), rec_reader_line(reader)};
}

/* ---- names --------------------------------------------------------------- */

/* The index of the name of a model or hardware; a new name is added. REC_NONE: *err. */
static uint32_t
name_index(struct serve_pipeline *p, struct rec_str name, struct rec_error *err)
{
    uint32_t index = rec_map_get(&p->names, name);
    const char *kept;
    if (index != REC_NONE)
        return index;
    index = (uint32_t)p->nnames;
    if (!(kept = rec_arena_copy(&p->arena, name, err)) ||
        !rec_grow(&p->name, &p->name_room, p->nnames + 1, sizeof *p->name, err) ||
        !rec_grow(&p->price, &p->price_room, p->nnames + 1, sizeof *p->price, err) ||
        !rec_map_add(&p->names, rec_str(kept), index, err))
        return REC_NONE;
    p->price[index] = NAN;
    p->name[p->nnames++] = kept;
    return index;
}

/* The key of a pair of indices in p->pairs; `kind` tells profiles ('p') from edges ('e').
 * It consists of chars only, so that it has no padding whose bytes would differ. */
struct pair {
    char kind, one[4], other[4];
};

static struct pair
make_pair(char kind, uint32_t one, uint32_t other)
{
    struct pair pair = {.kind = kind};
    memcpy(pair.one, &one, sizeof one);
    memcpy(pair.other, &other, sizeof other);
    return pair;
}

static uint32_t
find_pair(const struct serve_pipeline *p, struct pair pair)
{
    return rec_map_get(&p->pairs, (struct rec_str){(const char *)&pair, sizeof pair});
}

static bool
add_pair(struct serve_pipeline *p, struct pair pair, uint32_t value,
         struct rec_error *err)
{
    struct rec_str key = {(const char *)&pair, sizeof pair};
    return (key.ptr = rec_arena_copy(&p->arena, key, err)) &&
           rec_map_add(&p->pairs, key, value, err);
}

uint32_t
serve_profile_find(const struct serve_pipeline *p, uint32_t model, uint32_t hardware)
{
    return find_pair(p, make_pair('p', model, hardware));
}

/* ---- profiles and prices ------------------------------------------------- */

static bool
take_profile(struct serve_pipeline *p, const struct rec_reader *reader,
             const struct rec *rec, struct rec_error *err)
{
    struct serve_point point = {.place = place_of(reader)};
    struct rec_str model, hardware;
    struct serve_profile *profile;
    uint32_t m, h, index;

    if (!rec_get_id(reader, rec, 1, &model, err) ||
        !rec_get_id(reader, rec, 2, &hardware, err) ||
        !rec_get_count(reader, rec, 3, &point.batch, err) ||
        !rec_get_number(reader, rec, 4, &point.p99, err) ||
        !rec_get_number(reader, rec, 5, &point.throughput, err))
        return false;
    if (point.batch < 1 || point.batch > SERVE_BATCH_MAX)
        return rec_reader_fail(reader, err, "BATCH must be from 1 to %d, got %llu",
                               SERVE_BATCH_MAX, (unsigned long long)point.batch);
    if (!(point.throughput > 0) || isinf(1 / point.throughput))
        return rec_reader_fail(reader, err, "THROUGHPUT must be above 0");
    if ((m = name_index(p, model, err)) == REC_NONE ||
        (h = name_index(p, hardware, err)) == REC_NONE)
        return false;
    if ((index = serve_profile_find(p, m, h)) == REC_NONE) {
        index = (uint32_t)p->nprofiles;
        if (!rec_grow(&p->profile, &p->profile_room, p->nprofiles + 1, sizeof *p->profile,
                      err) ||
            !add_pair(p, make_pair('p', m, h), index, err))
            return false;
        p->profile[p->nprofiles++] = (struct serve_profile){.model = m, .hardware = h};
    }
    profile = &p->profile[index];
    if (!rec_grow(&profile->point, &profile->room, profile->n + 1, sizeof *profile->point,
                  err))
        return false;
    profile->point[profile->n++] = point;
    return true;
}

static bool
take_price(struct serve_pipeline *p, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct rec_str hardware;
    uint32_t index;
    if (!rec_get_id(reader, rec, 1, &hardware, err) ||
        (index = name_index(p, hardware, err)) == REC_NONE)
        return false;
    if (!isnan(p->price[index]))
        return rec_reader_fail(reader, err, "the price of '%s' comes twice",
                               p->name[index]);
    return rec_get_number(reader, rec, 2, &p->price[index], err);
}

static bool
take_envelope(struct serve_pipeline *p, const struct rec_reader *reader,
              const struct rec *rec, struct rec_error *err)
{
    struct serve_window window = {0};
    if (!rec_get_number(reader, rec, 1, &window.seconds, err) ||
        !rec_get_count(reader, rec, 2, &window.queries, err) ||
        !rec_key_count(reader, rec, "resampled", &window.resampled, err))
        return false;
    if (!(window.seconds > 0))
        return rec_reader_fail(reader, err, "SECONDS must be above 0");
    if (p->nwindows > 0 && window.seconds <= p->window[p->nwindows - 1].seconds)
        return rec_reader_fail(reader, err,
                               "envelope records must be in ascending order of SECONDS, "
                               "with no SECONDS twice");
    if (!rec_grow(&p->window, &p->window_room, p->nwindows + 1, sizeof *p->window, err))
        return false;
    p->window[p->nwindows++] = window;
    return true;
}

static bool
take_planned(struct serve_pipeline *p, const struct rec_reader *reader,
             const struct rec *rec, struct rec_error *err)
{
    struct rec_str service;
    if (p->planned)
        return rec_reader_fail(reader, err,
                               "a second planned record: a pipeline has one plan");
    p->planned = true;
    if (rec_find_key(rec, "service", &service)) {
        if (!rec_str_is(service, "batch") && !rec_str_is(service, "query"))
            return rec_reader_fail(reader, err, "service must be batch or query");
        p->service = rec_str_is(service, "query") ? SERVE_QUERY : SERVE_BATCH;
    }
    return rec_key_number(reader, rec, "rate", &p->rate, err) &&
           rec_key_number(reader, rec, "carried", &p->carried, err);
}

/* ---- stages and edges ---------------------------------------------------- */

static bool
take_stage(struct serve_pipeline *p, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct serve_stage stage = {.model = REC_NONE,
                                .config = {.profile = REC_NONE, .load = NAN},
                                .place = place_of(reader)};
    struct rec_str name, model;
    if (!rec_get_id(reader, rec, 1, &name, err) ||
        !rec_get_id(reader, rec, 2, &model, err))
        return false;
    if (rec_str_is(name, "source") || rec_str_is(name, "sink"))
        return rec_reader_fail(reader, err,
                               "a stage must not have the name source or sink");
    if (rec_map_get(&p->stages, name) != REC_NONE)
        return rec_reader_fail(reader, err, "stage '%.*s' comes twice", (int)name.len,
                               name.ptr);
    if (p->nstages == SERVE_STAGES_MAX)
        return rec_reader_fail(reader, err, "a pipeline has at most %d stages",
                               SERVE_STAGES_MAX);
    if ((!rec_str_is(model, "-") &&
         (stage.model = name_index(p, model, err)) == REC_NONE) ||
        !(stage.name = rec_arena_copy(&p->arena, name, err)) ||
        !rec_grow(&p->stage, &p->stage_room, p->nstages + 1, sizeof *p->stage, err) ||
        !rec_map_add(&p->stages, rec_str(stage.name), (uint32_t)p->nstages, err))
        return false;
    p->stage[p->nstages++] = stage;
    return true;
}

/* Reads the stage that a field names. `end` is the name of the pipeline's end that the
 * field may have instead ("source", "sink"), which gives REC_NONE; NULL: it may not. */
static bool
read_stage(const struct serve_pipeline *p, const struct rec_reader *reader,
           const struct rec *rec, size_t field, const char *end, uint32_t *stage,
           struct rec_error *err)
{
    struct rec_str name;
    *stage = REC_NONE;
    if (!rec_get_id(reader, rec, field, &name, err))
        return false;
    if (end && rec_str_is(name, end))
        return true;
    *stage = rec_map_get(&p->stages, name);
    return *stage != REC_NONE || rec_reader_fail(reader, err, "there is no stage '%.*s'",
                                                 (int)name.len, name.ptr);
}

bool
serve_add_edge(struct serve_pipeline *p, struct serve_edge edge, struct rec_error *err)
{
    if (!rec_grow(&p->edge, &p->edge_room, p->nedges + 1, sizeof *p->edge, err) ||
        !add_pair(p, make_pair('e', edge.src, edge.dst), (uint32_t)p->nedges, err))
        return false;
    p->edge[p->nedges++] = edge;
    return true;
}

static bool
take_edge(struct serve_pipeline *p, const struct rec_reader *reader,
          const struct rec *rec, struct rec_error *err)
{
    struct serve_edge edge = {.p = 1, .chance = REC_NONE, .place = place_of(reader)};
    if (!read_stage(p, reader, rec, 1, "source", &edge.src, err) ||
        !read_stage(p, reader, rec, 2, "sink", &edge.dst, err) ||
        !rec_key_number(reader, rec, "p", &edge.p, err))
        return false;
    if (find_pair(p, make_pair('e', edge.src, edge.dst)) != REC_NONE)
        return rec_reader_fail(reader, err, "this edge comes twice");
    if (edge.src == edge.dst)
        return rec_reader_fail(
            reader, err,
            edge.src == REC_NONE
                ? "an edge must not lead from source to sink, past all stages"
                : "an edge must not lead from a stage to itself");
    if (edge.p < 1 && edge.dst == REC_NONE)
        return rec_reader_fail(
            reader, err,
            "an edge to sink must not have p= below 1: every query goes to "
            "sink when its branches are done");
    if (edge.p < 1 && p->nchances == SERVE_CHANCES_MAX)
        return rec_reader_fail(reader, err, "at most %d edges may have p= below 1",
                               SERVE_CHANCES_MAX);
    if (edge.p < 1)
        edge.chance = (uint32_t)p->nchances++;
    return serve_add_edge(p, edge, err);
}

static bool
check_counts(const struct rec_reader *reader, uint64_t batch, uint64_t replicas,
             struct rec_error *err)
{
    if (batch < 1 || batch > SERVE_BATCH_MAX)
        return rec_reader_fail(reader, err, "BATCH must be from 1 to %d, got %llu",
                               SERVE_BATCH_MAX, (unsigned long long)batch);
    return (replicas >= 1 && replicas <= SERVE_REPLICAS_MAX) ||
           rec_reader_fail(reader, err, "REPLICAS must be from 1 to %d, got %llu",
                           SERVE_REPLICAS_MAX, (unsigned long long)replicas);
}

static bool
take_rung(struct serve_pipeline *p, const struct rec_reader *reader,
          const struct rec *rec, struct rec_error *err)
{
    struct serve_rung rung = {.fixed = NAN, .place = place_of(reader)};
    uint64_t batch, replicas;
    if (!rec_get_number(reader, rec, 1, &rung.rate, err) ||
        !read_stage(p, reader, rec, 2, NULL, &rung.stage, err) ||
        !rec_get_count(reader, rec, 3, &batch, err) ||
        !rec_get_count(reader, rec, 4, &replicas, err) ||
        !rec_key_number(reader, rec, "static", &rung.fixed, err) ||
        !check_counts(reader, batch, replicas, err))
        return false;
    if (!(rung.rate > 0))
        return rec_reader_fail(reader, err, "RATE must be above 0");
    if (p->stage[rung.stage].model == REC_NONE)
        return rec_reader_fail(reader, err,
                               "stage '%s' has no model, so it must not have a rung",
                               p->stage[rung.stage].name);
    if (p->nrungs > 0 && rung.rate < p->rung[p->nrungs - 1].rate)
        return rec_reader_fail(reader, err,
                               "rung records must be in ascending order of RATE");
    for (size_t i = p->nrungs; i > 0 && p->rung[i - 1].rate == rung.rate; i--)
        if (p->rung[i - 1].stage == rung.stage)
            return rec_reader_fail(reader, err,
                                   "stage '%s' has a second rung at %.15g queries/s",
                                   p->stage[rung.stage].name, rung.rate);
    rung.batch = (uint32_t)batch;
    rung.replicas = (uint32_t)replicas;
    if (!rec_grow(&p->rung, &p->rung_room, p->nrungs + 1, sizeof *p->rung, err))
        return false;
    p->rung[p->nrungs++] = rung;
    return true;
}

/* Reads a config record. Until the pipeline is sealed, config->profile is the index of
 * its hardware's name: the profile's record may come later. */
static bool
read_config(struct serve_pipeline *p, const struct rec_reader *reader,
            const struct rec *rec, uint32_t *index, struct serve_config *config,
            struct rec_error *err)
{
    uint64_t batch, replicas;
    struct rec_str hardware;

    *config = (struct serve_config){.load = NAN, .place = place_of(reader)};
    if (!read_stage(p, reader, rec, 1, NULL, index, err) ||
        !rec_get_id(reader, rec, 2, &hardware, err) ||
        !rec_get_count(reader, rec, 3, &batch, err) ||
        !rec_get_count(reader, rec, 4, &replicas, err) ||
        !rec_key_number(reader, rec, "delay", &config->delay, err) ||
        !rec_key_number(reader, rec, "load", &config->load, err))
        return false;
    if (p->stage[*index].model == REC_NONE)
        return rec_reader_fail(reader, err,
                               "stage '%s' has no model, so it must not have a config",
                               p->stage[*index].name);
    if (!check_counts(reader, batch, replicas, err))
        return false;
    config->profile = name_index(p, hardware, err);
    config->batch = (uint32_t)batch;
    config->replicas = (uint32_t)replicas;
    return config->profile != REC_NONE;
}

static bool
take_config(struct serve_pipeline *p, const struct rec_reader *reader,
            const struct rec *rec, struct rec_error *err)
{
    struct serve_config config;
    uint32_t stage;
    if (!read_config(p, reader, rec, &stage, &config, err))
        return false;
    if (p->stage[stage].config.place.line)
        return rec_reader_fail(reader, err,
                               "stage '%s' has two configs: the second must have time=, "
                               "the time from which it holds",
                               p->stage[stage].name);
    p->stage[stage].config = config;
    return true;
}

bool
serve_read_change(struct serve_pipeline *p, const struct rec_reader *reader,
                  const struct rec *rec, struct serve_change *change,
                  struct rec_error *err)
{
    struct serve_config config, *first;
    struct rec_str delay;
    if (!read_config(p, reader, rec, &change->stage, &config, err) ||
        !rec_key_number(reader, rec, "time", &change->time, err))
        return false;
    change->ordered = change->time;
    if (!rec_key_number(reader, rec, "ordered", &change->ordered, err))
        return false;
    if (change->ordered > change->time)
        return rec_reader_fail(reader, err, "ordered= must not be after time=");
    first = &p->stage[change->stage].config;
    change->replicas = config.replicas;
    change->batch = config.batch;
    if (first->profile == REC_NONE ||
        config.profile != p->profile[first->profile].hardware)
        return rec_reader_fail(
            reader, err,
            "a config with time= may change only REPLICAS and BATCH of stage '%s'",
            p->stage[change->stage].name);
    if (rec_find_key(rec, "delay", &delay) && config.delay != first->delay)
        return rec_reader_fail(
            reader, err,
            "a config with time= must not change delay=: stage '%s' has "
            "%.15g s",
            p->stage[change->stage].name, first->delay);
    if (config.batch > serve_largest(&p->profile[first->profile]))
        return rec_reader_fail(
            reader, err, "BATCH %u is larger than the largest batch of the profile, %llu",
            config.batch, (unsigned long long)serve_largest(&p->profile[first->profile]));
    return true;
}

typedef bool take_function(struct serve_pipeline *, const struct rec_reader *,
                           const struct rec *, struct rec_error *);
static take_function *const takes[REC_NTYPES] = {
    [REC_PROFILE] = take_profile, [REC_PRICE] = take_price,
    [REC_STAGE] = take_stage,     [REC_EDGE] = take_edge,
    [REC_CONFIG] = take_config,   [REC_ENVELOPE] = take_envelope,
    [REC_PLANNED] = take_planned, [REC_RUNG] = take_rung};

bool
serve_is_pipeline(const struct rec *rec)
{
    struct rec_str time;
    return takes[rec->type] &&
           !(rec->type == REC_CONFIG && rec_find_key(rec, "time", &time));
}

int
serve_pipeline_take(struct serve_pipeline *p, const struct rec_reader *reader,
                    const struct rec *rec, struct rec_error *err)
{
    if (!serve_is_pipeline(rec))
        return 0;
    if (!rec_need(reader, rec, err))
        return -1;
    if (p->sealed) {
        rec_reader_fail(reader, err,
                        "the records of a pipeline must come before its queries");
        return -1;
    }
    return takes[rec->type](p, reader, rec, err) ? 1 : -1;
}

void
serve_pipeline_free(struct serve_pipeline *p)
{
    for (size_t i = 0; i < p->nprofiles; i++)
        free(p->profile[i].point);
    free(p->name);
    free(p->price);
    free(p->profile);
    free(p->stage);
    free(p->edge);
    free(p->window);
    free(p->rung);
    free(p->order);
    free(p->out);
    rec_map_free(&p->names);
    rec_map_free(&p->stages);
    rec_map_free(&p->pairs);
    rec_arena_free(&p->arena);
    *p = (struct serve_pipeline){0};
}
