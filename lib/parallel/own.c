/* Schedules as records: read and written. */
#include "private.h"

#include <stdlib.h>
#include <string.h>

static const char *const passes[] = {"forward", "backward", "weight"};

/* The schedule whose pass records come. */
struct reading {
    struct parallel_own *own;
    struct rec_reader *reader;
    struct rec_error *err;
    struct parallel_schedule schedule; /* name NULL: none yet */
    struct parallel_given given;
    struct row {
        uint32_t device;
        struct parallel_item item;
    } * row; /* owned */
    size_t n, room;
};

static bool
count(const struct reading *r, const struct rec *rec, size_t field, uint32_t below,
      const char *what, uint32_t *value)
{
    uint64_t n = 0;
    if (!rec_get_count(r->reader, rec, field, &n, r->err))
        return false;
    *value = (uint32_t)n;
    return n < below ||
           rec_reader_fail(r->reader, r->err, "schedule '%s' has %s 0 to %u, got %llu",
                           r->schedule.name, what, below - 1, (unsigned long long)n);
}

static bool
open_schedule(struct reading *r, const struct rec *rec)
{
    uint64_t chunks = 1, split = 0, stages = 0, m = 0;
    struct rec_str shape = {"", 0};
    if (!rec_get_count(r->reader, rec, 2, &stages, r->err) ||
        !rec_get_count(r->reader, rec, 3, &m, r->err) ||
        !rec_key_count(r->reader, rec, "chunks", &chunks, r->err) ||
        !rec_key_count(r->reader, rec, "split", &split, r->err))
        return false;
    if (stages == 0 || m == 0 || chunks == 0 || stages > UINT16_MAX || m > INT32_MAX ||
        chunks > UINT16_MAX)
        return rec_reader_fail(r->reader, r->err,
                               "STAGES and chunks must be 1 to 65535, MICROBATCHES at "
                               "least 1 and less than 2^31");
    if (rec_find_key(rec, "shape", &shape) && !rec_str_is(shape, "v"))
        return rec_reader_fail(r->reader, r->err, "shape must be v");
    if (shape.len > 0 && chunks != 2)
        return rec_reader_fail(r->reader, r->err, "shape=v needs chunks=2");
    r->schedule = (struct parallel_schedule){
        .name = rec_arena_copy(&r->own->arena, rec->field[1], r->err),
        .split = split > 0,
        .vshape = shape.len > 0,
    };
    r->given =
        (struct parallel_given){(uint32_t)stages, (uint32_t)chunks, (uint32_t)m, NULL};
    r->n = 0;
    return r->schedule.name != NULL;
}

static bool
take_pass(struct reading *r, const struct rec *rec)
{
    uint64_t chunk = 0;
    struct row row = {.device = 0};
    unsigned kinds = r->schedule.split ? 3 : 2, pass = 0;
    if (!r->schedule.name)
        return rec_reader_fail(r->reader, r->err, "no schedule record before it");
    if (!rec_str_is(rec->field[1], r->schedule.name))
        return rec_reader_fail(r->reader, r->err, "it is not of schedule '%s'",
                               r->schedule.name);
    while (pass < kinds && !rec_str_is(rec->field[3], passes[pass]))
        pass++;
    if (pass == kinds)
        return rec_reader_fail(r->reader, r->err, "PASS must be %s",
                               kinds == 3 ? "forward, backward or weight"
                                          : "forward or backward, without split=1");
    if (!count(r, rec, 2, r->given.stages, "devices", &row.device) ||
        !count(r, rec, 4, r->given.microbatches, "microbatches", &row.item.microbatch) ||
        !rec_key_count(r->reader, rec, "chunk", &chunk, r->err))
        return false;
    if (chunk >= r->given.chunks)
        return rec_reader_fail(r->reader, r->err, "schedule '%s' has chunks 0 to %u",
                               r->schedule.name, r->given.chunks - 1);
    row.item.chunk = (uint16_t)chunk;
    row.item.pass = (uint8_t)pass;
    if (!rec_grow(&r->row, &r->room, r->n + 1, sizeof row, r->err))
        return false;
    r->row[r->n++] = row;
    return true;
}

/* Puts the passes of each device one behind the other. Each must be there once. */
static bool
sort(const struct reading *r, struct parallel_item *item, bool *seen, size_t *next)
{
    const struct parallel_given *g = &r->given;
    size_t each = r->n / g->stages;
    for (size_t i = 0; i < r->n; i++) {
        const struct parallel_item *it = &r->row[i].item;
        uint32_t d = r->row[i].device;
        size_t at =
            ((size_t)it->pass * g->chunks + it->chunk) * g->microbatches + it->microbatch;
        if (seen[d * each + at])
            return rec_fail(r->err, REC_DATA,
                            "schedule '%s': device %u has the %s pass of microbatch %u, "
                            "chunk %u, twice",
                            r->schedule.name, d, passes[it->pass], it->microbatch,
                            it->chunk);
        seen[d * each + at] = true;
        item[d * each + next[d]++] = *it;
    }
    return true;
}

static bool
close_schedule(struct reading *r)
{
    const struct parallel_given *g = &r->given;
    struct parallel_given *kept = NULL;
    struct parallel_item *item = NULL;
    double all = (r->schedule.split ? 3.0 : 2.0) * g->stages * g->chunks;
    bool *seen = NULL, ok;
    size_t *next = NULL;
    if (!r->schedule.name)
        return true;
    all *= g->microbatches;
    if ((double)r->n != all)
        return rec_fail(r->err, REC_DATA,
                        "schedule '%s' has %zu passes, and %.0f are needed: each of each "
                        "microbatch, chunk and device once",
                        r->schedule.name, r->n, all);
    for (size_t i = 0; i < r->own->n; i++)
        if (strcmp(r->own->schedule[i].name, r->schedule.name) == 0)
            return rec_fail(r->err, REC_DATA, "schedule '%s' is there twice",
                            r->schedule.name);
    kept = malloc(sizeof *kept);
    item = calloc(r->n, sizeof *item);
    seen = calloc(r->n, sizeof *seen);
    next = calloc(g->stages, sizeof *next);
    ok = (kept && item && seen && next) || rec_fail_memory(r->err);
    ok = ok && sort(r, item, seen, next) &&
         rec_grow(&r->own->schedule, &r->own->room, r->own->n + 1,
                  sizeof *r->own->schedule, r->err);
    if (ok) {
        *kept = *g;
        kept->item = item;
        r->schedule.given = kept;
        r->own->schedule[r->own->n++] = r->schedule;
    } else {
        free(kept);
        free(item);
    }
    free(seen);
    free(next);
    r->schedule.name = NULL;
    return ok;
}

bool
parallel_own_read(struct parallel_own *own, struct rec_reader *reader,
                  struct rec_error *err)
{
    struct reading r = {.own = own, .reader = reader, .err = err};
    struct rec rec;
    int status;
    bool ok = true;
    while (ok && (status = rec_next(reader, &rec, err)) != 0) {
        if (status < 0)
            ok = false;
        else if (rec.type == REC_COMMENT || rec.type == REC_MARK)
            continue;
        else if (!rec_check(reader, &rec, err))
            ok = false;
        else if (rec.type == REC_SCHEDULE)
            ok = close_schedule(&r) && open_schedule(&r, &rec);
        else if (rec.type == REC_PASS)
            ok = take_pass(&r, &rec);
        else
            ok = rec_reader_fail(reader, err,
                                 "a schedule has schedule and pass records, got '%.*s'",
                                 REC_SAID(rec.field[0]));
    }
    ok = ok && close_schedule(&r);
    free(r.row);
    return ok;
}

void
parallel_own_free(struct parallel_own *own)
{
    for (size_t i = 0; i < own->n; i++) {
        struct parallel_given *given =
            (struct parallel_given *)(uintptr_t)own->schedule[i].given;
        free((struct parallel_item *)(uintptr_t)given->item);
        free(given);
    }
    free(own->schedule);
    rec_arena_free(&own->arena);
    *own = (struct parallel_own){0};
}

bool
parallel_own_write(const struct parallel_schedule *schedule,
                   const struct parallel_pipe *pipe, const char *id,
                   struct rec_writer *writer, struct rec_error *err)
{
    struct parallel_item *item = parallel_orders(schedule, pipe, err);
    size_t each = parallel_items(schedule, pipe);
    if (!item)
        return false;
    rec_begin(writer, "schedule");
    rec_text_field(writer, id);
    rec_uint_field(writer, pipe->stages);
    rec_uint_field(writer, pipe->microbatches);
    rec_num_key(writer, "chunks", pipe->chunks);
    if (schedule->split)
        rec_num_key(writer, "split", 1);
    if (schedule->vshape)
        rec_text_key(writer, "shape", "v");
    rec_end(writer);
    for (size_t i = 0; i < each * pipe->stages; i++) {
        rec_begin(writer, "pass");
        rec_text_field(writer, id);
        rec_uint_field(writer, i / each);
        rec_text_field(writer, passes[item[i].pass]);
        rec_uint_field(writer, item[i].microbatch);
        if (pipe->chunks > 1)
            rec_num_key(writer, "chunk", item[i].chunk);
        rec_end(writer);
    }
    free(item);
    return true;
}
