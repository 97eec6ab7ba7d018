/*
 * Writes a page of HTML: the viewer, which is a program for a browser, and then the data
 * as JSON. To keep the page small, slices are written as columns of numbers, sorted by
 * track and time (so that starts can be written as differences), and each text is written
 * once and referred to by its number. viewer_data.js reads these columns.
 */
#include "private.h"

#include "rampipe/json.h"

#include <ctype.h>
#include <stdlib.h>

/* The files of the viewer, one behind the other. The assembler includes them as they are,
 * so that they need no installed file and no conversion to C. */
extern const char timeline_viewer[];
extern const uint64_t timeline_viewer_size;
__asm__(".pushsection .rodata\n"
        ".hidden timeline_viewer, timeline_viewer_size\n"
        ".global timeline_viewer, timeline_viewer_size\n"
        ".balign 8\n"
        "timeline_viewer_size: .8byte 2f - 1f\n"
        "timeline_viewer:\n"
        "1: .incbin \"lib/timeline/viewer_head.html\"\n"
        ".incbin \"lib/timeline/viewer.css\"\n"
        ".incbin \"lib/timeline/viewer_body.html\"\n"
        ".incbin \"lib/timeline/viewer_data.js\"\n"
        ".incbin \"lib/timeline/viewer_draw.js\"\n"
        ".incbin \"lib/timeline/viewer.js\"\n"
        "2: .byte 0\n"
        ".popsection\n");

/* A kind of slices: those of the same row and look. */
struct kind {
    const struct timeline_row *row;
    enum timeline_look look;
};

/* The texts that were written so far, and their numbers. */
struct texts {
    struct rec_map map;
    uint32_t n;
};

struct page {
    struct timeline *t;
    struct json *json;
    struct timeline_lanes lanes;
    uint32_t *order; /* the tracks in the order of the page */
    uint32_t *rank;  /* rank[track]: the position of a track in `order` */
    uint32_t *slice; /* the slices in the order of the page */
    uint32_t *place; /* place[slice]: the position of a slice in `slice` */
    uint32_t *text;  /* text[i]: the number of the text of the i-th slice of the page */
    struct kind kind[TIMELINE_NLOOKS * 8];
    size_t nkinds;
    struct rec_arena arena;
    char *detail; /* buffer of describe(): `len` bytes */
    size_t room;
    size_t len;
};

/* ---- order --------------------------------------------------------------- */

/* The order of the page: by track, as tracks are shown, then by start. */
static int
compare_slices(const void *a, const void *b, void *context)
{
    const struct page *p = context;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct timeline_slice *x = &p->t->slice[i], *y = &p->t->slice[k];
    if (x->track != y->track)
        return p->rank[x->track] < p->rank[y->track] ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return i < k ? -1 : i > k;
}

static bool
sort_all(struct page *p, struct rec_error *err)
{
    size_t n = p->t->nslices, ntracks = p->lanes.ntracks;
    p->order = malloc((ntracks + 1) * sizeof *p->order);
    p->rank = malloc((ntracks + 1) * sizeof *p->rank);
    p->slice = malloc((n + 1) * sizeof *p->slice);
    p->place = malloc((n + 1) * sizeof *p->place);
    p->text = malloc((n + 1) * sizeof *p->text);
    if (!p->order || !p->rank || !p->slice || !p->place || !p->text)
        return rec_fail_memory(err);
    timeline_order_tracks(p->t, &p->lanes, p->order);
    for (uint32_t i = 0; i < ntracks; i++)
        p->rank[p->order[i]] = i;
    for (uint32_t i = 0; i < n; i++)
        p->slice[i] = i;
    if (n > 1)
        qsort_r(p->slice, n, sizeof *p->slice, compare_slices, p);
    for (uint32_t i = 0; i < n; i++)
        p->place[p->slice[i]] = i;
    return true;
}

static const struct timeline_slice *
slice_at(const struct page *p, size_t i)
{
    return &p->t->slice[p->slice[i]];
}

/* ---- the details of a record --------------------------------------------- */

static bool
append(struct page *p, struct rec_str text, struct rec_error *err)
{
    if (!rec_grow(&p->detail, &p->room, p->len + text.len + 1, 1, err))
        return false;
    memcpy(p->detail + p->len, text.ptr, text.len);
    p->len += text.len;
    return true;
}

/* Appends a line name=value. Numbers are written in their shortest form, so that records
 * that spell them differently share a text. */
static bool
append_field(struct page *p, const struct rec_field_spec *spec, struct rec_str value,
             struct rec_error *err)
{
    char shortest[REC_NUM_MAX];
    bool word = spec->kind == REC_KIND_ID || spec->kind == REC_KIND_TEXT;
    double number;
    size_t start;
    if (!word && rec_parse_num(value, &number))
        value = (struct rec_str){shortest, rec_format_num(shortest, number)};
    if (p->len > 0 && !append(p, rec_str("\n"), err))
        return false;
    start = p->len;
    if (!append(p, rec_str(spec->name), err))
        return false;
    for (size_t i = start; i < p->len; i++)
        p->detail[i] = (char)tolower((unsigned char)p->detail[i]);
    return append(p, rec_str("="), err) && append(p, value, err);
}

/* Does the slice itself show the field: by its track, place, length or name? */
static bool
is_shown(const struct timeline_row *row, size_t field)
{
    return row && (field == row->start || field == row->end || field == row->process ||
                   field == row->track || field == row->name);
}

/* Describes a record: its fields and keys, without the fields that its slice shows. Few
 * records differ in the rest, so that few texts are written. */
static bool
describe(struct page *p, enum rec_type type, const struct timeline_row *row,
         const char *line, struct rec_str *detail, struct rec_error *err)
{
    const struct rec_spec *spec = rec_spec(type);
    struct rec_str rest = rec_str(line), value;
    p->len = 0;
    (void)rec_str_split(&rest, '\t', &value);
    for (size_t i = 0; i < spec->nfields && rec_str_split(&rest, '\t', &value); i++)
        if (!is_shown(row, i + 1) && !append_field(p, &spec->fields[i], value, err))
            return false;
    for (const struct rec_field_spec *key = spec->keys; key->name; key++)
        if (timeline_find_value(rest, key->name, &value) &&
            !append_field(p, key, value, err))
            return false;
    *detail = (struct rec_str){p->detail ? p->detail : "", p->len};
    return true;
}

/* ---- JSON ---------------------------------------------------------------- */

static void
open_list(struct page *p, const char *key)
{
    json_text(p->json, key);
    json_open_list(p->json);
}

/* Writes a text, unless it was written before, and returns its number. `copy`: the text
 * does not stay where it is, so the map gets a copy. */
static bool
put_once(struct page *p, struct texts *texts, struct rec_str text, bool copy,
         uint32_t *number, struct rec_error *err)
{
    *number = rec_map_get(&texts->map, text);
    if (*number != REC_NONE)
        return true;
    if (copy && !(text.ptr = rec_arena_copy(&p->arena, text, err)))
        return false;
    *number = texts->n++;
    json_str(p->json, text);
    return rec_map_add(&texts->map, text, *number, err);
}

static void
put_column(struct page *p, const char *key, double (*value)(struct page *p, size_t i),
           size_t n)
{
    open_list(p, key);
    for (size_t i = 0; i < n; i++)
        json_num(p->json, value(p, i));
    json_close_list(p->json);
}

/* The start of a slice: of the first one on a track since 0, of others since the start of
 * the slice before, which takes fewer digits. */
static double
start_of(struct page *p, size_t i)
{
    const struct timeline_slice *slice = slice_at(p, i);
    if (i > 0 && slice_at(p, i - 1)->track == slice->track)
        return (double)(slice->from - slice_at(p, i - 1)->from);
    return (double)slice->from;
}

static double
length_of(struct page *p, size_t i)
{
    return (double)(slice_at(p, i)->to - slice_at(p, i)->from);
}

static double
text_of(struct page *p, size_t i)
{
    return p->text[i];
}

/* The number of the slice's kind, which is added if it is new. A linear search: there are
 * only a few kinds. */
static double
kind_of(struct page *p, size_t i)
{
    const struct timeline_slice *slice = slice_at(p, i);
    size_t k = 0;
    while (k < p->nkinds &&
           (p->kind[k].row != slice->row || p->kind[k].look != slice->look))
        k++;
    if (k == p->nkinds)
        p->kind[p->nkinds++] = (struct kind){slice->row, slice->look};
    return (double)k;
}

/* Writes the list of names, and then the column that gives each slice the number of its
 * name. The numbers are known only when the list is written: hence the order. */
static bool
put_names(struct page *p, struct rec_error *err)
{
    struct texts texts = {.n = 0};
    char text[TIMELINE_SLICE_NAME];
    bool ok = true;
    open_list(p, "names");
    for (size_t i = 0; i < p->t->nslices && ok; i++) {
        const char *name = timeline_name_slice(p->t, slice_at(p, i), text);
        ok = put_once(p, &texts, rec_str(name), name == text, &p->text[i], err);
    }
    json_close_list(p->json);
    rec_map_free(&texts.map);
    if (ok)
        put_column(p, "name", text_of, p->t->nslices);
    return ok;
}

/* As put_names(), for the details of records. */
static bool
put_details(struct page *p, struct rec_error *err)
{
    struct texts texts = {.n = 0};
    struct rec_str detail;
    bool ok = true;
    open_list(p, "details");
    for (size_t i = 0; i < p->t->nslices && ok; i++) {
        const struct timeline_slice *slice = slice_at(p, i);
        ok = describe(p, slice->row->type, slice->row, slice->line, &detail, err) &&
             put_once(p, &texts, detail, true, &p->text[i], err);
    }
    json_close_list(p->json);
    rec_map_free(&texts.map);
    if (ok)
        put_column(p, "detail", text_of, p->t->nslices);
    return ok;
}

static void
put_member(struct page *p, const char *key, const char *text)
{
    json_text(p->json, key);
    json_text(p->json, text ? text : "");
}

static void
put_kinds(struct page *p)
{
    open_list(p, "kinds");
    for (size_t i = 0; i < p->nkinds; i++) {
        const struct timeline_row *row = p->kind[i].row;
        json_open_map(p->json);
        put_member(p, "name", timeline_looks[p->kind[i].look].name);
        put_member(p, "colour", timeline_looks[p->kind[i].look].colour);
        put_member(p, "record", rec_spec(row->type)->name);
        put_member(p, "counter", row->counter);
        json_close_map(p->json);
    }
    json_close_list(p->json);
}

/* Each track is [process, name, 1 if it has flights, number of slices]. */
static void
put_tracks(struct page *p)
{
    const struct timeline *t = p->t;
    size_t next = 0;
    open_list(p, "processes");
    for (size_t i = 0; i < t->nprocesses; i++)
        json_text(p->json, t->process[i]);
    json_close_list(p->json);
    open_list(p, "tracks");
    for (size_t i = 0; i < p->lanes.ntracks; i++) {
        struct timeline_track track = p->lanes.track[p->order[i]];
        bool flights = track.shape == TIMELINE_FLIGHT;
        size_t first = next;
        char name[TIMELINE_TRACK_NAME] = "";
        if (!flights)
            timeline_name_track(t, track, name);
        while (next < t->nslices && slice_at(p, next)->track == p->order[i])
            next++;
        json_open_list(p->json);
        json_num(p->json, timeline_process(t, track));
        json_text(p->json, name);
        json_num(p->json, flights);
        json_num(p->json, (double)(next - first));
        json_close_list(p->json);
    }
    json_close_list(p->json);
}

/* Each mark is [time, process, name, details of its record]. */
static bool
put_marks(struct page *p, struct rec_error *err)
{
    open_list(p, "marks");
    for (size_t i = 0; i < p->t->nmarks; i++) {
        const struct timeline_mark *mark = &p->t->mark[i];
        char name[TIMELINE_MARK_NAME];
        struct rec_str detail;
        if (!describe(p, mark->type, NULL, mark->line, &detail, err))
            return false;
        timeline_name_mark(mark, name);
        json_open_list(p->json);
        json_num(p->json, (double)mark->at);
        json_num(p->json, mark->process);
        json_text(p->json, name);
        json_str(p->json, detail);
        json_close_list(p->json);
    }
    json_close_list(p->json);
    return true;
}

/* Each arrow is [slice, slice, category]. */
static void
put_arrows(struct page *p)
{
    uint32_t from, to;
    timeline_find_ends(p->t);
    open_list(p, "arrows");
    for (size_t i = 0; i < p->t->narrows; i++) {
        if (!timeline_find_arrow(p->t, &p->t->arrow[i], &from, &to))
            continue;
        json_open_list(p->json);
        json_num(p->json, p->place[from]);
        json_num(p->json, p->place[to]);
        json_text(p->json, p->t->arrow[i].category);
        json_close_list(p->json);
    }
    json_close_list(p->json);
}

/* The #@ lines of the streams, and then the caller's own. */
static void
put_provenance(struct page *p, const char *own)
{
    struct rec_str rest = {p->t->provenance, p->t->provenance_len}, line;
    open_list(p, "provenance");
    while (rec_str_split(&rest, '\n', &line))
        if (line.len > 0)
            json_str(p->json, line);
    json_text(p->json, own);
    json_close_list(p->json);
}

static bool
put_data(struct page *p, const char *own, struct rec_error *err)
{
    size_t n = p->t->nslices;
    bool ok;
    json_open_map(p->json);
    put_provenance(p, own);
    put_tracks(p);
    put_column(p, "start", start_of, n);
    put_column(p, "length", length_of, n);
    put_column(p, "kind", kind_of, n);
    put_kinds(p);
    ok = put_names(p, err) && put_details(p, err) && put_marks(p, err);
    if (ok)
        put_arrows(p);
    json_close_map(p->json);
    return ok;
}

/* The data stand in a script element of a type that no browser runs. start() follows them
 * at the very end, so that a page that was cut off never starts. */
static bool
put_page(struct page *p, struct rec_writer *writer, const char *own,
         struct rec_error *err)
{
    struct rec_error other;
    bool ok;
    p->json = json_new(writer, 1, err);
    if (!p->json)
        return false;
    json_in_html(p->json);
    rec_put_bytes(writer, timeline_viewer, timeline_viewer_size);
    rec_printf(writer, "</script>\n<script type=\"application/json\" id=\"data\">\n");
    ok = put_data(p, own, err);
    ok = json_close(p->json, ok ? err : &other) && ok;
    rec_printf(writer, "</script>\n<script>start();</script>\n</body>\n</html>\n");
    return ok && rec_writer_ok(writer, err);
}

bool
timeline_write_page(struct timeline *t, const char *provenance, struct rec_writer *writer,
                    struct rec_error *err)
{
    struct page p = {.t = t};
    bool ok = timeline_lay(t, &p.lanes, true, err) && sort_all(&p, err) &&
              put_page(&p, writer, provenance, err);
    timeline_lanes_free(&p.lanes);
    rec_arena_free(&p.arena);
    free(p.order);
    free(p.rank);
    free(p.slice);
    free(p.place);
    free(p.text);
    free(p.detail);
    return ok;
}
