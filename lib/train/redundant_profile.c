/* Reads the profile of a network that trains with redundant computation: a file of lines
 * KEY TAB VALUE, and of lines step TAB stages TAB pipelines TAB seconds. */
#include "rampipe/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void
train_redundant_profile_free(struct train_redundant_profile *p)
{
    free(p->speed);
    rec_arena_free(&p->arena);
    *p = (struct train_redundant_profile){0};
}

struct reading {
    struct train_redundant_profile *profile;
    const struct rec_reader *reader;
    struct rec_map seen; /* keys of lines; of a step line with its two numbers */
};

/* A key: its name and kind, where its value goes, and its limits. Exactly one of
 * `number`, `ms` and `count` is not NULL. */
struct key {
    struct rec_field_spec spec;
    double *number;     /* the value as it is */
    int64_t *ms;        /* the value, in seconds, as milliseconds */
    uint64_t *count;    /* the value is a whole number, without limits */
    double least, most; /* limits of the value as it is written */
};

static bool
take_number(const struct rec_reader *reader, const struct rec *rec, const struct key *key,
            struct rec_error *err)
{
    double value;
    if (key->count)
        return rec_parse_uint(rec->field[1], key->count) ||
               rec_bad_text(reader, rec, &key->spec, rec->field[1], err);
    if (!rec_read_number(reader, rec, &key->spec, rec->field[1], &value, err))
        return false;
    if (value < key->least || value > key->most)
        return rec_reader_fail(reader, err, "%s must be from %g to %g", key->spec.name,
                               key->least, key->most);
    if (key->ms)
        *key->ms = llround(value * 1000);
    else
        *key->number = value;
    return true;
}

/* Of two lines that say the same figure one would be ignored. `key` is copied. */
static bool
only_once(struct reading *r, const char *key, struct rec_error *err)
{
    const char *copy;
    if (rec_map_get(&r->seen, rec_str(key)) != REC_NONE)
        return rec_reader_fail(r->reader, err, "'%s' comes twice", key);
    copy = rec_arena_copy(&r->profile->arena, rec_str(key), err);
    return copy && rec_map_add(&r->seen, rec_str(copy), 0, err);
}

static bool
take_speed(struct reading *r, const struct rec *rec, struct rec_error *err)
{
    struct train_redundant_profile *p = r->profile;
    const struct rec_reader *reader = r->reader;
    struct train_redundant_speed speed = {0};
    char text[80];
    double seconds = 0;
    const struct key keys[] = {
        {{"stages", REC_KIND_COUNT, NULL}, NULL, NULL, &speed.stages, 0, 0},
        {{"pipelines", REC_KIND_COUNT, NULL}, NULL, NULL, &speed.pipelines, 0, 0},
        {{"seconds", REC_KIND_AMOUNT, NULL}, &seconds, NULL, NULL, 0, INFINITY}};
    struct rec line = *rec;

    if (rec->nfields != 4)
        return rec_reader_fail(reader, err,
                               "a step line must be: step, stages, pipelines, seconds");
    for (size_t i = 0; i < 3; i++, line.field++)
        if (!take_number(reader, &line, &keys[i], err))
            return false;
    if (!rec_grow(&p->speed, &p->room, p->nspeeds + 1, sizeof *p->speed, err))
        return false;
    if (!(seconds >= 0.001 && seconds <= 1e9) || speed.pipelines < 1)
        return rec_reader_fail(
            reader, err,
            "a step must take from 0.001 to 1e9 seconds, on at least one pipeline");
    speed.ms = llround(seconds * 1000);
    snprintf(text, sizeof text, "step %llu %llu", (unsigned long long)speed.stages,
             (unsigned long long)speed.pipelines);
    if (!only_once(r, text, err))
        return false;
    p->speed[p->nspeeds++] = speed;
    return true;
}

static bool
take_line(struct reading *r, const struct rec *rec, struct rec_error *err)
{
    struct train_redundant_profile *p = r->profile;
    const struct rec_reader *reader = r->reader;
    const struct key keys[] = {
        {{"samples", REC_KIND_AMOUNT, NULL}, &p->samples, NULL, NULL, 0, 1e12},
        {{"steps", REC_KIND_COUNT, NULL}, NULL, NULL, &p->steps, 0, 0},
        {{"stages", REC_KIND_COUNT, NULL}, NULL, NULL, &p->stages, 0, 0},
        {{"creation", REC_KIND_AMOUNT, NULL}, NULL, &p->creation_ms, NULL, 0, 1e9},
        {{"rendezvous_global", REC_KIND_AMOUNT, NULL}, NULL, &p->global_ms, NULL, 0, 1e9},
        {{"rendezvous_local", REC_KIND_AMOUNT, NULL}, NULL, &p->local_ms, NULL, 0, 1e9},
        {{"slowdown", REC_KIND_AMOUNT, NULL}, &p->slowdown, NULL, NULL, 1, 1000},
        {{"spot_price", REC_KIND_AMOUNT, NULL}, &p->price, NULL, NULL, 0, 1e12},
        {{"on_demand_price", REC_KIND_AMOUNT, NULL},
         &p->on_demand_price,
         NULL,
         NULL,
         0,
         1e12},
        {{"on_demand_instances", REC_KIND_AMOUNT, NULL},
         &p->on_demand_instances,
         NULL,
         NULL,
         0,
         1e12},
        {{"on_demand_step", REC_KIND_AMOUNT, NULL},
         &p->on_demand_step,
         NULL,
         NULL,
         0,
         1e12}};
    struct rec_str name = rec->field[0];

    if (rec_str_is(name, "step"))
        return take_speed(r, rec, err);
    if (rec->nfields != 2)
        return rec_reader_fail(reader, err, "a line must be a key, a TAB and its value");
    if (rec_str_is(name, "name") && !rec_is_text(rec->field[1]))
        return rec_reader_fail(reader, err, "name must be UTF-8");
    if (rec_str_is(name, "name"))
        return only_once(r, "name", err) &&
               (p->name = rec_arena_copy(&p->arena, rec->field[1], err)) != NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (rec_str_is(name, keys[i].spec.name))
            return only_once(r, keys[i].spec.name, err) &&
                   take_number(reader, rec, &keys[i], err);
    return rec_reader_fail(reader, err, "unknown key '%.*s'", (int)name.len, name.ptr);
}

/* A step line of one pipeline is necessary: without it, small clusters would never
 * run. */
static bool
is_complete(const struct train_redundant_profile *p, const char *path,
            struct rec_error *err)
{
    bool speed = false;
    for (size_t i = 0; i < p->nspeeds; i++)
        speed = speed || (p->speed[i].stages == p->stages && p->speed[i].pipelines == 1);
    if (p->samples > 0 && p->stages > 0 && speed)
        return true;
    return rec_fail(err, REC_DATA,
                    "%s: a profile needs samples, stages, and a step line for one "
                    "pipeline of that number of stages",
                    path);
}

bool
train_redundant_profile_read(struct train_redundant_profile *p, const char *path,
                             struct rec_error *err)
{
    struct rec_reader *reader =
        rec_reader_open(&path, 1, &(struct rec_reader_options){0}, err);
    struct reading reading = {.profile = p, .reader = reader};
    struct rec rec;
    int status = -1;

    *p = (struct train_redundant_profile){.name = "-",
                                          .creation_ms = 45000,
                                          .global_ms = 30000,
                                          .local_ms = 20000,
                                          .slowdown = 1.5,
                                          .price = 0.91,
                                          .on_demand_price = 3.06};
    while (reader && (status = rec_next(reader, &rec, err)) > 0)
        if (rec.type != REC_COMMENT && rec.type != REC_MARK &&
            !take_line(&reading, &rec, err)) {
            status = -1;
            break;
        }
    rec_map_free(&reading.seen);
    rec_reader_close(reader);
    return status == 0 && is_complete(p, path, err);
}
