/*
 * Assigns slices to lanes: slices that overlap are on different lanes, each on the lowest
 * lane that is free when it starts (interval partitioning, which needs no more lanes than
 * slices overlap at one time). O(n log n) for n slices.
 */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* By shape, group, start; ties by index, so that the result is the same on all
 * machines. */
static int
compare_slices(const void *a, const void *b, void *context)
{
    const struct timeline *t = context;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct timeline_slice *x = &t->slice[i], *y = &t->slice[k];
    if (x->row->shape != y->row->shape)
        return x->row->shape < y->row->shape ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return i < k ? -1 : i > k;
}

/* Finds the lowest lane that is free when a slice starts, and takes it until the slice
 * ends. `tree` is a tournament tree: the leaves, tree[leaves + lane], are the times from
 * which lanes are free, and an inner node is the minimum of its children. So a node holds
 * a free lane if its value is not after the start, and the search goes left if it can. */
static uint32_t
take_lane(int64_t *tree, size_t leaves, const struct timeline_slice *slice)
{
    size_t at = 1, lane;
    while (at < leaves)
        at = tree[2 * at] <= slice->from ? 2 * at : 2 * at + 1;
    lane = at - leaves;
    tree[at] = slice->to;
    while ((at /= 2) > 0)
        tree[at] = tree[2 * at] < tree[2 * at + 1] ? tree[2 * at] : tree[2 * at + 1];
    return (uint32_t)lane;
}

/* Gives the slices order[0..n), of one group, their tracks. */
static bool
lay_group(struct timeline *t, struct timeline_lanes *lanes, int64_t *tree,
          const uint32_t *order, size_t n, struct rec_error *err)
{
    size_t leaves = 1, first = lanes->ntracks;
    while (leaves < n)
        leaves *= 2;
    for (size_t i = 0; i < 2 * leaves; i++)
        tree[i] = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        struct timeline_slice *slice = &t->slice[order[i]];
        uint32_t lane = take_lane(tree, leaves, slice);
        slice->track = (uint32_t)(first + lane);
        if (slice->track < lanes->ntracks)
            continue;
        /* A lane is used only after all lower ones, so a new lane is the next track. */
        if (!rec_grow(&lanes->track, &lanes->track_room, lanes->ntracks + 1,
                      sizeof *lanes->track, err))
            return false;
        lanes->track[lanes->ntracks++] =
            (struct timeline_track){slice->group, lane, slice->row->shape};
    }
    return true;
}

/* Gives the slices order[0..n), which are sorted by group, their tracks. */
static bool
lay_groups(struct timeline *t, struct timeline_lanes *lanes, bool flights, int64_t *tree,
           const uint32_t *order, size_t n, struct rec_error *err)
{
    for (size_t from = 0, to; from < n; from = to) {
        const struct timeline_slice *one = &t->slice[order[from]];
        if (one->row->shape != TIMELINE_SLICE && !flights)
            break;
        for (to = from + 1; to < n; to++) {
            const struct timeline_slice *next = &t->slice[order[to]];
            if (next->group != one->group || next->row->shape != one->row->shape)
                break;
        }
        if (!lay_group(t, lanes, tree, order + from, to - from, err))
            return false;
    }
    return true;
}

bool
timeline_lay(struct timeline *t, struct timeline_lanes *lanes, bool flights,
             struct rec_error *err)
{
    size_t n = t->nslices;
    uint32_t *order = malloc((n + 1) * sizeof *order);
    /* One tree serves all groups. It has a leaf for each slice of a group, rounded up to
     * a power of two, and as many inner nodes: fewer than 4 n. */
    int64_t *tree = malloc(4 * (n + 1) * sizeof *tree);
    bool ok = (order && tree) || rec_fail_memory(err);
    if (ok) {
        for (size_t i = 0; i < n; i++)
            order[i] = (uint32_t)i;
        qsort_r(order, n, sizeof *order, compare_slices, t);
        ok = lay_groups(t, lanes, flights, tree, order, n, err);
    }
    free(order);
    free(tree);
    return ok;
}

uint32_t
timeline_process(const struct timeline *t, struct timeline_track track)
{
    return track.shape == TIMELINE_FLIGHT ? track.group : t->group[track.group].process;
}

struct sorting {
    const struct timeline *t;
    const struct timeline_lanes *lanes;
};

/* The order of tracks: by process, slices before flights; servers by their numbers
 * (server 2 before server 10), lanes by theirs. */
static int
compare_tracks(const void *a, const void *b, void *context)
{
    const struct sorting *s = context;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    struct timeline_track x = s->lanes->track[i], y = s->lanes->track[k];
    uint32_t p = timeline_process(s->t, x), q = timeline_process(s->t, y);
    int order = 0;
    if (p != q)
        return p < q ? -1 : 1;
    if (x.shape != y.shape)
        return x.shape < y.shape ? -1 : 1;
    /* strverscmp() compares digits within names as numbers */
    if (x.shape == TIMELINE_SLICE && s->t->group[x.group].name &&
        s->t->group[y.group].name)
        order = strverscmp(s->t->group[x.group].name, s->t->group[y.group].name);
    if (order == 0 && x.group != y.group)
        order = x.group < y.group ? -1 : 1;
    return order ? order : x.lane < y.lane ? -1 : x.lane > y.lane;
}

void
timeline_order_tracks(const struct timeline *t, const struct timeline_lanes *lanes,
                      uint32_t *order)
{
    struct sorting sorting = {t, lanes};
    for (size_t i = 0; i < lanes->ntracks; i++)
        order[i] = (uint32_t)i;
    if (lanes->ntracks > 1)
        qsort_r(order, lanes->ntracks, sizeof *order, compare_tracks, &sorting);
}

void
timeline_lanes_free(struct timeline_lanes *lanes)
{
    free(lanes->track);
    *lanes = (struct timeline_lanes){.track = NULL};
}

void
timeline_name_track(const struct timeline *t, struct timeline_track track,
                    char text[TIMELINE_TRACK_NAME])
{
    const struct timeline_group *group = &t->group[track.group];
    if (group->name && track.lane == 0)
        snprintf(text, TIMELINE_TRACK_NAME, "%s", group->name);
    else
        snprintf(text, TIMELINE_TRACK_NAME, "%.200s%s%s %u",
                 group->name ? group->name : "", group->name ? ", " : "", group->lane,
                 track.lane + 1);
}
