/*
 * The reducer: takes records one by one, and adds each case to the sums and distributions
 * of the total, of its group, and of the intervals of time that it belongs to. No case is
 * kept (unless by metrics_keep()), so memory grows only with the groups, the labels and
 * the intervals.
 */
#include "engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- start and end ------------------------------------------------------- */

/* The specification of a key in the records of the family's cases; NULL: none has it. */
static const struct rec_field_spec *
find_row(const struct metrics_family *family, const char *key)
{
    for (size_t i = 0; i < family->ncases; i++) {
        const struct rec_spec *spec = rec_spec(family->cases[i].type);
        for (size_t k = 0; spec; spec = rec_spec_of_kind(family->cases[i].type, k++))
            for (const struct rec_field_spec *row = spec->keys; row->name; row++)
                if (strcmp(row->name, key) == 0)
                    return row;
    }
    return NULL;
}

/* Finds the index of a key among those to be read, and adds the key if it is new. */
static bool
add_key(struct metrics *m, const char *key, size_t *index, struct rec_error *err)
{
    const struct rec_field_spec *row = find_row(m->family, key);
    for (*index = 0; *index < m->nkeys; ++*index)
        if (m->key[*index] == row)
            return true;
    if (!row || m->nkeys == METRICS_MOST)
        return rec_fail(err, REC_BUG, "no record of %s has the key '%s'", m->family->name,
                        key);
    m->key[m->nkeys++] = row;
    return true;
}

/* Looks up what a family's row names: types and keys of records, figures of columns. An
 * error here is a mistake in the row. */
static bool
resolve(struct metrics *m, struct rec_error *err)
{
    const struct metrics_family *family = m->family;
    size_t figure, statistic;

    if (family->ncases > METRICS_RECORDS)
        return rec_fail(err, REC_BUG, "%s: too many records", family->name);
    for (size_t i = 0; i < family->ncases; i++) {
        const struct metrics_record *one = &family->cases[i];
        m->role[one->type] = CASE;
        m->what[one->type] = one->what;
        /* the first type with the same word: these share one set of names */
        while (m->named[one->type] < i &&
               (!one->what || !family->cases[m->named[one->type]].what ||
                strcmp(family->cases[m->named[one->type]].what, one->what) != 0))
            m->named[one->type]++;
    }
    for (size_t i = 0; i < family->nothers; i++)
        m->role[family->others[i]] = NOTE;
    for (size_t i = 0, index; i < family->nkeys; i++)
        if (!add_key(m, family->keys[i], &index, err))
            return false;
    for (size_t i = 0; i < family->nquantities; i++)
        if (family->quantities[i].key &&
            !add_key(m, family->quantities[i].key, &m->quantity_key[i], err))
            return false;
    for (size_t i = 0; i < family->nshown; i++)
        if (!metrics_find_shown(family, &family->shown[i], &figure, &statistic))
            return rec_fail(err, REC_BUG, "%s: the column '%s' shows no figure",
                            family->name, family->shown[i].title);
    return true;
}

/* Appends an empty group. Returns its index; REC_NONE: *err. */
static uint32_t
add_group(struct metrics *m, struct rec_str name, struct rec_error *err)
{
    struct group group = {.name = rec_arena_copy(&m->arena, name, err),
                          .id = (uint32_t)m->ngroups};
    if (!group.name ||
        !rec_grow(&m->group, &m->room, m->ngroups + 1, sizeof *m->group, err))
        return REC_NONE;
    group.dist = calloc(m->family->nquantities, sizeof *group.dist);
    if (!group.dist) {
        rec_fail_memory(err);
        return REC_NONE;
    }
    m->group[m->ngroups] = group;
    return (uint32_t)m->ngroups++;
}

/* Finds the index of a label. A new label is added, with the names of its figures.
 * REC_NONE: *err. */
static uint32_t
find_label(struct metrics *m, struct rec_str name, struct rec_error *err)
{
    size_t n = m->family->nlabel_figures;
    uint32_t index = rec_map_get(&m->labels, name);
    const char *kept;

    if (index != REC_NONE)
        return index;
    index = (uint32_t)m->nlabels;
    kept = rec_arena_copy(&m->arena, name, err);
    if (!kept || !rec_map_add(&m->labels, rec_str(kept), index, err) ||
        !rec_grow(&m->label, &m->label_room, index + 1, sizeof *m->label, err) ||
        !rec_grow(&m->label_figure, &m->label_figure_room, (index + 1) * n,
                  sizeof *m->label_figure, err))
        return REC_NONE;
    for (size_t k = 0; k < n; k++) {
        char *text;
        if (asprintf(&text, "%s%s", m->family->label_figures[k].name, kept) < 0) {
            rec_fail_memory(err);
            return REC_NONE;
        }
        m->label_figure[index * n + k] = rec_arena_copy(&m->arena, rec_str(text), err);
        free(text);
        if (!m->label_figure[index * n + k])
            return REC_NONE;
    }
    m->label[m->nlabels++] = (struct label){kept, index};
    return index;
}

enum { INTERVALS_MAX = 1000000 /* intervals of a series, unless --limit says more */ };

struct metrics *
metrics_new(const struct metrics_family *family, const char *by, double seconds,
            bool runs, struct rec_error *err)
{
    struct metrics *m = calloc(1, sizeof *m);
    if (!m || !(m->state = calloc(1, family->state_size + 1))) {
        free(m);
        rec_fail_memory(err);
        return NULL;
    }
    m->family = family;
    m->by = by;
    m->seconds = seconds;
    m->objective = NAN;
    m->limit.most = INTERVALS_MAX;
    m->lead = family->lead ? family->lead->log : REC_OTHER;
    m->before = m->last = -(double)INFINITY;
    if (!resolve(m, err) || add_group(m, rec_str("all"), err) == REC_NONE ||
        (runs && !family->independent && !(m->runs = metrics_runs_new(err))))
        goto failed;
    metrics_clear(m);
    for (size_t i = 0; i < family->nlabels; i++)
        if (find_label(m, rec_str(family->labels[i]), err) == REC_NONE)
            goto failed;
    return m;
failed:
    metrics_free(m);
    return NULL;
}

static void
clear_group(const struct metrics *m, struct group *group)
{
    for (size_t q = 0; q < m->family->nquantities; q++)
        metrics_dist_free(&group->dist[q]);
    *group = (struct group){.name = group->name, .dist = group->dist, .id = group->id};
}

/* Keeps the labels, so that each run has figures of all labels that came in the runs
 * before; and the total's distributions, which are always needed. */
void
metrics_clear(struct metrics *m)
{
    for (size_t i = 0; i < m->ngroups; i++) {
        clear_group(m, &m->group[i]);
        if (i > 0)
            free(m->group[i].dist);
    }
    m->ngroups = m->ngroups > 0; /* the total stays */
    rec_map_clear(&m->names);
    rec_map_clear(&m->counted);
    m->ncounts = 0;
    memset(m->state, 0, m->family->state_size);
    m->cases = 0;
    for (size_t i = 0; i < METRICS_MOMENTS; i++)
        m->seen[i] = (struct metrics_span){NAN, NAN};
    m->before = m->last = -(double)INFINITY;
    m->apart = false;
    for (size_t i = 0; i < METRICS_RECORDS; i++)
        rec_ids_free(&m->ended[i]);
    memset(m->noted, 0, sizeof m->noted);
}

void
metrics_limit(struct metrics *m, struct rec_limit limit)
{
    m->limit = limit;
}

void
metrics_set_objective(struct metrics *m, double seconds)
{
    m->objective = seconds;
}

void
metrics_free(struct metrics *m)
{
    if (!m)
        return;
    metrics_clear(m);
    if (m->ngroups)
        free(m->group[0].dist);
    metrics_runs_free(m->runs);
    metrics_kept_free(m->kept);
    free(m->state);
    free(m->group);
    free(m->label);
    free(m->label_figure);
    free(m->count);
    for (size_t k = 0; k < METRICS_LEVELS; k++)
        free(m->level[k].sum);
    rec_map_free(&m->counted);
    rec_map_free(&m->names);
    rec_map_free(&m->labels);
    rec_arena_free(&m->arena);
    free(m);
}

int
metrics_compare_names(const char *a, const char *b)
{
    double p, q;
    bool pa = rec_parse_num(rec_str(a), &p), qb = rec_parse_num(rec_str(b), &q);
    if (pa && qb && p != q)
        return p < q ? -1 : 1;
    if (pa != qb)
        return pa ? -1 : 1;
    return strcmp(a, b);
}

static int
compare_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return metrics_compare_names(x->name, y->name);
}

static int
compare_labels(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    return strcmp(x->name, y->name);
}

bool
metrics_end(struct metrics *m, struct rec_error *err)
{
    size_t known = m->family->nlabels;
    if (m->runs) {
        bool ok = metrics_end_run(m, err);
        metrics_runs_end(m->runs);
        metrics_find_present(m);
        return ok;
    }
    metrics_find_present(m);
    qsort(m->group + 1, m->ngroups - 1, sizeof *m->group, compare_groups);
    if (m->nlabels > known)
        qsort(m->label + known, m->nlabels - known, sizeof *m->label, compare_labels);
    return true;
}

bool
metrics_has_runs(const struct metrics *m)
{
    return m->runs != NULL;
}

bool
metrics_mixed(const struct metrics *m)
{
    return m->mixed;
}

/* ---- one case ------------------------------------------------------------ */

/* The index of a key among those to be read; nkeys: it is not one. All records of a
 * stream have their keys in the same order, so the search starts behind the last key
 * found. */
static size_t
find_key(const struct metrics *m, struct rec_str name, size_t from)
{
    for (size_t i = 0, at = from; i < m->nkeys; i++, at++) {
        const char *key = m->key[at < m->nkeys ? at : (at -= m->nkeys)]->name;
        if (*key == *name.ptr && rec_str_is(name, key))
            return at;
    }
    return m->nkeys;
}

/* Reads the values of all keys that the family needs; NAN where the record has no key. */
static bool
read_keys(const struct metrics *m, const struct rec_reader *reader, const struct rec *rec,
          double value[], struct rec_error *err)
{
    struct rec_str name, text;
    size_t at = 0, next = 0;
    int status;

    for (size_t i = 0; i < m->nkeys; i++)
        value[i] = NAN;
    while ((status = rec_next_key(reader, rec, &at, &name, &text, err)) > 0) {
        size_t found = find_key(m, name, next);
        if (found == m->nkeys)
            continue;
        if (!rec_read_number(reader, rec, m->key[found], text, &value[found], err))
            return false;
        next = found + 1;
    }
    return status == 0;
}

/* Sets the initial values of a case, before its family fills it. */
static void
start_case(const struct metrics *m, const struct rec *rec, const double key[],
           struct metrics_case *one)
{
    const struct metrics_family *family = m->family;
    bool first = rec->type == family->cases[0].type;
    for (size_t i = 0; i < METRICS_MOMENTS; i++)
        one->at[i] = (struct metrics_span){NAN, NAN};
    for (size_t i = 0; i < family->nsums; i++)
        one->amount[i] = 1;
    for (size_t i = 0; i < family->nquantities; i++)
        one->quantity[i] =
            first && family->quantities[i].key ? key[m->quantity_key[i]] : (double)NAN;
    one->objective = m->objective;
    one->predicted = m->predicted;
    one->named = m->named[rec->type] == 0 && !family->independent;
    one->label = (struct rec_str){NULL, 0};
}

static struct rec_str
key_of(const struct labelled *which)
{
    return (struct rec_str){(const char *)which, sizeof *which};
}

uint64_t *
metrics_labelled(const struct metrics *m, uint32_t group, uint32_t label)
{
    const struct labelled which = {group, label};
    uint32_t i = rec_map_get(&m->counted, key_of(&which));
    return i == REC_NONE ? NULL : &m->count[i];
}

/* Counts a label of a case in a group. There may be many labels that are not in the
 * family's list, but a group has only few of them: they are counted in a map, not in an
 * array for each group. */
static bool
count_label(struct metrics *m, struct group *group, uint32_t label, struct rec_error *err)
{
    const struct labelled which = {group->id, label};
    struct rec_str key = key_of(&which);
    uint64_t *count = &group->labelled[label];

    if (label >= m->family->nlabels && !(count = metrics_labelled(m, group->id, label))) {
        if (!(key.ptr = rec_arena_copy(&m->arena, key, err)) ||
            !rec_grow(&m->count, &m->count_room, m->ncounts + 1, sizeof *count, err) ||
            !rec_map_add(&m->counted, key, (uint32_t)m->ncounts, err))
            return false;
        count = &m->count[m->ncounts++];
        *count = 0;
    }
    ++*count;
    return true;
}

/* Adds a case to the sums and distributions of a group. `label`: REC_NONE if it has
 * none. */
static bool
count_case(struct metrics *m, struct group *group, const struct metrics_case *one,
           uint32_t label, struct rec_error *err)
{
    const struct metrics_family *family = m->family;
    for (size_t i = 0; i < family->nsums; i++) {
        struct metrics_span at = one->at[family->sums[i].at];
        if (isnan(at.from))
            continue;
        if (isnan(one->amount[i])) {
            group->unknown |= (uint64_t)1 << i;
            continue;
        }
        group->known |= (uint64_t)1 << i;
        group->sum[i] += one->amount[i] * (family->sums[i].rate ? at.to - at.from : 1);
    }
    for (size_t i = 0; i < family->nquantities; i++)
        if (isfinite(one->quantity[i]) &&
            !metrics_dist_add(&group->dist[i], one->quantity[i], err))
            return false;
    return label == REC_NONE || count_label(m, group, label, err);
}

/* Renames a group that would have the name of the total, "all", to "KEY=all". So that no
 * two groups share a name, a group called "KEY=all" becomes "KEY=KEY=all", and so on: the
 * function puts "KEY=" before every name of the form [KEY=]...all. False: *err. */
static bool
set_apart(struct metrics *m, struct rec_str *name, struct rec_error *err)
{
    size_t len = strlen(m->by), skip = 0, room = 0;
    char *own = NULL;

    while (name->len > skip + len && memcmp(name->ptr + skip, m->by, len) == 0 &&
           name->ptr[skip + len] == '=')
        skip += len + 1;
    if (!rec_str_is((struct rec_str){name->ptr + skip, name->len - skip},
                    m->group[0].name))
        return true;
    if (!rec_grow(&own, &room, len + 1 + name->len, 1, err))
        return false;
    memcpy(own, m->by, len);
    own[len] = '=';
    memcpy(own + len + 1, name->ptr, name->len);
    name->ptr =
        rec_arena_copy(&m->arena, (struct rec_str){own, len + 1 + name->len}, err);
    name->len += len + 1;
    free(own);
    return name->ptr != NULL;
}

static bool
name_by_field(const struct metrics *m, const struct rec *rec, struct rec_str *name)
{
    for (size_t i = 0; i < m->family->ngroups; i++)
        if (strcmp(m->by, m->family->groups[i].by) == 0) {
            *name = rec->field[m->family->groups[i].field];
            return true;
        }
    return false;
}

/* Finds or makes the group of a record. *group is 0, the total's index, if the record is
 * in no other group. False: *err. */
static bool
find_group(struct metrics *m, const struct rec *rec, const double key[], uint32_t *group,
           struct rec_error *err)
{
    struct rec_str name = rec_str("-");
    char text[METRICS_NAME_MAX];

    *group = 0;
    if (!m->by)
        return true;
    if (!name_by_field(m, rec, &name) &&
        (!m->family->name_group || !m->family->name_group(rec, key, m->by, text, &name)))
        rec_find_key(rec, m->by, &name);
    if (!name.ptr)
        return true;
    if (!set_apart(m, &name, err))
        return false;
    *group = rec_map_get(&m->names, name);
    if (*group != REC_NONE)
        return true;
    *group = add_group(m, name, err);
    return *group != REC_NONE &&
           rec_map_add(&m->names, rec_str(m->group[*group].name), *group, err);
}

/* ---- records ------------------------------------------------------------- */

/* Adds a case to all that it belongs to. */
static bool
take_case(struct metrics *m, const struct metrics_case *one, const struct rec *rec,
          const double key[], struct rec_error *err)
{
    uint32_t label = REC_NONE, group;

    m->cases++;
    if (m->kept && one->named &&
        !metrics_keep_case(m->kept, rec->field[1], one->quantity[0], err))
        return false;
    for (size_t i = 0; i < METRICS_MOMENTS; i++) {
        m->seen[i].from = fmin(m->seen[i].from, one->at[i].from);
        m->seen[i].to = fmax(m->seen[i].to, one->at[i].to);
    }
    if (one->label.ptr && (label = find_label(m, one->label, err)) == REC_NONE)
        return false;
    if (!count_case(m, &m->group[0], one, label, err))
        return false;
    if (!find_group(m, rec, key, &group, err) ||
        (group != 0 && !count_case(m, &m->group[group], one, label, err)))
        return false;
    return m->seconds == 0 || m->family->nseries == 0 || metrics_spread_case(m, one, err);
}

int
metrics_take(struct metrics *m, const struct rec_reader *reader, const struct rec *rec,
             struct rec_error *err)
{
    struct metrics_case one;
    double key[METRICS_MOST];

    bool line = !m->family->independent; /* cases share a time line */

    m->marked = m->marked || rec->type == REC_MARK;
    if (m->role[rec->type] == NOTHING)
        return 0;
    m->leads = m->leads || (m->lead != REC_OTHER && rec->type == m->lead);
    if (m->lead != REC_OTHER && !m->leads)
        return 0;
    if (!rec_need(reader, rec, err) || (line && !metrics_next_stream(m, reader, err)))
        return -1;
    if (m->role[rec->type] == NOTE)
        return (!line || metrics_same_note(m, reader, rec, err)) &&
                       m->family->note(m->state, reader, rec, err)
                   ? 0
                   : -1;
    if (!read_keys(m, reader, rec, key, err))
        return -1;
    start_case(m, rec, key, &one);
    return m->family->take(m->state, reader, rec, key, &one, err) &&
                   (!line || metrics_follows(m, reader, rec, &one, err)) &&
                   take_case(m, &one, rec, key, err)
               ? 1
               : -1;
}
