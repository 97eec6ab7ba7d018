/*
 * Keeps what is made of records: processes, groups, names, slices, marks, arrows.
 * All refer to each other by index, and each text is kept once.
 */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

#define LOOK_ROW(name, text, colour) {text, colour},
const struct timeline_look_row timeline_looks[TIMELINE_NLOOKS] = {
    TIMELINE_LOOKS(LOOK_ROW)};

void
timeline_free(struct timeline *t)
{
    if (!t)
        return;
    timeline_links_free(&t->links);
    free(t->slice);
    free(t->mark);
    free(t->arrow);
    free(t->process);
    free(t->group);
    free(t->name);
    free(t->text);
    free(t->provenance);
    rec_map_free(&t->origins);
    rec_map_free(&t->processes);
    rec_map_free(&t->groups);
    rec_map_free(&t->names);
    rec_arena_free(&t->arena);
    free(t);
}

uint64_t
timeline_count(const struct timeline *t)
{
    return t->nslices;
}

bool
timeline_any(const struct timeline *t)
{
    return t->any;
}

/* ---- names --------------------------------------------------------------- */

/* Copies a text, and adds it to a map with the value `index`. Returns the copy. NULL:
 * *err. */
static const char *
keep(struct timeline *t, struct rec_map *map, struct rec_str text, size_t index,
     struct rec_error *err)
{
    const char *kept = rec_arena_copy(&t->arena, text, err);
    return kept && rec_map_add(map, (struct rec_str){kept, text.len}, (uint32_t)index,
                               err)
               ? kept
               : NULL;
}

/* Joins two texts with a TAB between, which no field contains. *joined is valid until the
 * next call. */
static bool
join(struct timeline *t, struct rec_str a, struct rec_str b, struct rec_str *joined,
     struct rec_error *err)
{
    size_t len = a.len + 1 + b.len;
    if (!rec_grow(&t->text, &t->text_room, len + 1, 1, err))
        return false;
    memcpy(t->text, a.ptr, a.len);
    t->text[a.len] = '\t';
    memcpy(t->text + a.len + 1, b.ptr, b.len);
    *joined = (struct rec_str){t->text, len};
    return true;
}

bool
timeline_find_process(struct timeline *t, struct rec_str text, uint32_t *process,
                      struct rec_error *err)
{
    const char *kept;
    *process = rec_map_get(&t->processes, text);
    if (*process != REC_NONE)
        return true;
    if (!rec_grow(&t->process, &t->process_room, t->nprocesses + 1, sizeof *t->process,
                  err) ||
        !(kept = keep(t, &t->processes, text, t->nprocesses, err)))
        return false;
    *process = (uint32_t)t->nprocesses;
    t->process[t->nprocesses++] = kept;
    return true;
}

bool
timeline_find_group(struct timeline *t, uint32_t process, struct rec_str track,
                    const char *lane, uint32_t *group, struct rec_error *err)
{
    struct rec_str whole, number = {(const char *)&process, sizeof process};
    const char *kept;
    if (!join(t, number, track, &whole, err))
        return false;
    *group = rec_map_get(&t->groups, whole);
    if (*group != REC_NONE)
        return true;
    if (!rec_grow(&t->group, &t->group_room, t->ngroups + 1, sizeof *t->group, err) ||
        !(kept = keep(t, &t->groups, whole, t->ngroups, err)))
        return false;
    kept += sizeof process + 1;
    *group = (uint32_t)t->ngroups;
    t->group[t->ngroups++] =
        (struct timeline_group){process, track.len > 0 ? kept : NULL, lane};
    return true;
}

bool
timeline_find_name(struct timeline *t, struct rec_str scope, struct rec_str text,
                   uint32_t *name, struct rec_error *err)
{
    struct rec_str whole;
    const char *kept;
    if (!join(t, scope, text, &whole, err))
        return false;
    *name = rec_map_get(&t->names, whole);
    if (*name != REC_NONE)
        return true;
    if (!rec_grow(&t->name, &t->name_room, t->nnames + 1, sizeof *t->name, err) ||
        !(kept = keep(t, &t->names, whole, t->nnames, err)))
        return false;
    *name = (uint32_t)t->nnames;
    t->name[t->nnames++] =
        (struct timeline_name){kept + scope.len + 1, REC_NONE, REC_NONE};
    return true;
}

bool
timeline_get_name(struct timeline *t, struct rec_str text, uint32_t *name,
                  struct rec_error *err)
{
    struct rec_str whole;
    if (!join(t, rec_str(""), text, &whole, err))
        return false;
    *name = rec_map_get(&t->names, whole);
    return true;
}

/* The layer that a record names: label=, which a person gave, or else type=. */
static struct rec_str
find_layer(const char *line)
{
    struct rec_str rest = rec_str(line), value, key, layer = {"", 0};
    while (rec_str_split(&rest, '\t', &value)) {
        if (!rec_str_split(&value, '=', &key) || !value.ptr)
            continue;
        if (rec_str_is(key, "label") && value.len > 0)
            return value;
        if (rec_str_is(key, "type"))
            layer = value;
    }
    return layer;
}

const char *
timeline_name_slice(const struct timeline *t, const struct timeline_slice *slice,
                    char text[TIMELINE_SLICE_NAME])
{
    const char *name = t->name[slice->name].text;
    struct rec_str layer =
        slice->row->layer ? find_layer(slice->line) : (struct rec_str){"", 0};
    if (layer.len == 0 || strlen(name) + 1 + layer.len >= TIMELINE_SLICE_NAME)
        return name;
    snprintf(text, TIMELINE_SLICE_NAME, "%s %.*s", name, (int)layer.len, layer.ptr);
    return text;
}

/* ---- slices, marks, arrows ----------------------------------------------- */

bool
timeline_shows(const struct timeline *t, int64_t from, int64_t to)
{
    return to >= t->from && from <= t->to;
}

bool
timeline_add_slice(struct timeline *t, const struct timeline_slice *slice,
                   struct rec_error *err)
{
    if (!rec_grow(&t->slice, &t->slice_room, t->nslices + 1, sizeof *slice, err))
        return false;
    t->name[slice->name].last = (uint32_t)t->nslices;
    t->slice[t->nslices++] = *slice;
    return true;
}

bool
timeline_add_mark(struct timeline *t, const struct timeline_mark *mark,
                  struct rec_error *err)
{
    if (!rec_grow(&t->mark, &t->mark_room, t->nmarks + 1, sizeof *mark, err))
        return false;
    t->mark[t->nmarks++] = *mark;
    return true;
}

bool
timeline_add_arrow(struct timeline *t, const struct timeline_arrow *arrow,
                   struct rec_error *err)
{
    if (!rec_grow(&t->arrow, &t->arrow_room, t->narrows + 1, sizeof *arrow, err))
        return false;
    t->arrow[t->narrows++] = *arrow;
    return true;
}

bool
timeline_add_provenance(struct timeline *t, struct rec_str lines, struct rec_error *err)
{
    if (lines.len == 0 || rec_map_get(&t->origins, lines) != REC_NONE)
        return true;
    if (!keep(t, &t->origins, lines, 0, err) ||
        !rec_grow(&t->provenance, &t->provenance_room, t->provenance_len + lines.len, 1,
                  err))
        return false;
    memcpy(t->provenance + t->provenance_len, lines.ptr, lines.len);
    t->provenance_len += lines.len;
    return true;
}

bool
timeline_find_value(struct rec_str keys, const char *name, struct rec_str *value)
{
    struct rec_str field;
    size_t len = strlen(name);
    while (rec_str_split(&keys, '\t', &field))
        if (field.len > len && field.ptr[len] == '=' &&
            memcmp(field.ptr, name, len) == 0) {
            *value = (struct rec_str){field.ptr + len + 1, field.len - len - 1};
            return true;
        }
    return false;
}

/* ---- when all records are taken ------------------------------------------ */

void
timeline_find_ends(struct timeline *t)
{
    for (size_t i = 0; i < t->nslices; i++) {
        struct timeline_name *name = &t->name[t->slice[i].name];
        if (name->first == REC_NONE || t->slice[i].from < t->slice[name->first].from)
            name->first = (uint32_t)i;
        if (t->slice[i].to > t->slice[name->last].to)
            name->last = (uint32_t)i;
    }
}

/* An arrow leads from the last slice of one name to the first slice of another. It is
 * drawn only forward in time, and only between slices that have a length: viewers bind
 * the ends of an arrow to the slices that enclose them. */
bool
timeline_find_arrow(const struct timeline *t, const struct timeline_arrow *arrow,
                    uint32_t *from, uint32_t *to)
{
    const struct timeline_slice *tail, *head;
    *from = t->name[arrow->src].last;
    *to = t->name[arrow->dst].first;
    if (*from == REC_NONE || *to == REC_NONE)
        return false;
    tail = &t->slice[*from];
    head = &t->slice[*to];
    return tail->row->shape == TIMELINE_SLICE && head->row->shape == TIMELINE_SLICE &&
           tail->from != tail->to && head->from != head->to && tail->to <= head->from;
}

/* The name says what happened: a job or task was blocked, an instance came. */
void
timeline_name_mark(const struct timeline_mark *mark, char text[TIMELINE_MARK_NAME])
{
    struct rec_str rest = rec_str(mark->line), field[4] = {{"", 0}};
    for (int i = 0; i < 4; i++)
        (void)rec_str_split(&rest, '\t', &field[i]);
    if (mark->type == REC_BLOCK)
        snprintf(text, TIMELINE_MARK_NAME, "%.*s: %.*s",
                 (int)(field[1].len < 200 ? field[1].len : 200), field[1].ptr,
                 (int)(field[3].len < 80 ? field[3].len : 80), field[3].ptr);
    else
        snprintf(text, TIMELINE_MARK_NAME, "%.*s",
                 (int)(field[2].len < 200 ? field[2].len : 200), field[2].ptr);
}
