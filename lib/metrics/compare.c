/*
 * Two reducers together: which family a stream belongs to, and the error of a prediction,
 * from cases of the same name.
 */
#include "engine.h"

#include <math.h>
#include <stdlib.h>

bool
metrics_covers(const struct metrics *m, const struct metrics *other)
{
    for (size_t i = 0; i < other->family->ncases; i++)
        if (m->role[other->family->cases[i].type] != CASE)
            return false;
    return m->leads;
}

bool
metrics_predict(struct metrics *m)
{
    m->predicted = true;
    m->lead = m->family->lead ? m->family->lead->prediction : REC_OTHER;
    return m->lead != REC_OTHER;
}

/* ---- values of cases, kept by name ------------------------------------------ */

struct kept_case {
    const char *id;
    double value; /* the family's main quantity; NAN: unknown */
};

struct metrics_kept {
    struct rec_map ids;
    struct kept_case *one;
    size_t n, room;
    struct rec_arena arena;
};

bool
metrics_keep(struct metrics *m, struct rec_error *err)
{
    return (m->kept = calloc(1, sizeof *m->kept)) || rec_fail_memory(err);
}

void
metrics_kept_free(struct metrics_kept *kept)
{
    if (!kept)
        return;
    rec_map_free(&kept->ids);
    rec_arena_free(&kept->arena);
    free(kept->one);
    free(kept);
}

bool
metrics_keep_case(struct metrics_kept *kept, struct rec_str id, double value,
                  struct rec_error *err)
{
    uint32_t at = rec_map_get(&kept->ids, id);
    const char *name;
    if (at != REC_NONE) {
        if (isfinite(value))
            kept->one[at].value = value;
        return true;
    }
    if (!rec_grow(&kept->one, &kept->room, kept->n + 1, sizeof *kept->one, err) ||
        !(name = rec_arena_copy(&kept->arena, id, err)) ||
        !rec_map_add(&kept->ids, rec_str(name), (uint32_t)kept->n, err))
        return false;
    kept->one[kept->n++] = (struct kept_case){name, value};
    return true;
}

/* ---- pairs ------------------------------------------------------------------ */

/* Compares the two values of a case. sum[]: the absolute differences, the second values.
 * Where a value is unknown the names are counted as a pair, but nothing is compared. */
static bool
add_pair(struct metrics_pairs *pairs, const struct kept_case *first, double second,
         double sum[2], struct rec_error *err)
{
    double off = fabs(first->value - second), error = off / second;
    pairs->both++;
    if (!isfinite(off))
        return true;
    sum[0] += off;
    sum[1] += second;
    if (!(second > 0) || !isfinite(error))
        return true;
    if (!pairs->worst || error > pairs->error.most) {
        pairs->worst = first->id;
        pairs->worst_first = first->value;
        pairs->worst_second = second;
    }
    return metrics_dist_add(&pairs->error, error, err);
}

bool
metrics_pair(const struct metrics *first, const struct metrics *second,
             struct metrics_pairs *pairs, struct rec_error *err)
{
    const struct metrics_kept *a = first->kept, *b = second->kept;
    double sum[2] = {0, 0};
    *pairs = (struct metrics_pairs){.worst = NULL};
    for (size_t i = 0; i < a->n; i++) {
        uint32_t at = rec_map_get(&b->ids, rec_str(a->one[i].id));
        if (at != REC_NONE && !add_pair(pairs, &a->one[i], b->one[at].value, sum, err))
            return false;
    }
    pairs->first = a->n - pairs->both;
    pairs->second = b->n - pairs->both;
    pairs->weighted = sum[1] > 0 ? sum[0] / sum[1] : (double)NAN;
    return true;
}

const char *
metrics_main_quantity(const struct metrics *m, const char **unit)
{
    *unit = m->family->quantities[0].unit;
    return m->family->quantities[0].name;
}

void
metrics_pairs_free(struct metrics_pairs *pairs)
{
    metrics_dist_free(&pairs->error);
}
