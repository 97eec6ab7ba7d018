/*
 * Draws a Gantt chart as SVG: a row for each track, a bar for each slice, a line for each
 * transfer. SVG has no means to measure text, so widths of texts are estimated.
 */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Sizes in pixels. */
enum {
    WIDTH = 1000, /* of the picture */
    MARGIN = 16,
    ROW = 24,    /* height of a track's row, */
    BAR = 16,    /* of a bar in it, */
    TITLE = 24,  /* of a process's name, */
    LEGEND = 28, /* of the legend, */
    AXIS = 44,   /* of the axis and its text */
    NAMES = 300  /* width to which the names of tracks are cut */
};
/* The width of a character at the font size used, in pixels: an estimate, fonts
 * differ. */
#define CHARACTER 6.2
/* How much wider bold text is: a factor. */
#define BOLD 1.15

struct chart {
    struct timeline *t;
    struct rec_writer *writer;
    struct timeline_lanes lanes;
    uint32_t *order;          /* the tracks, in the order of their rows */
    double *middle;           /* middle[track]: the y of the middle of its row */
    uint32_t *track;          /* track[group]: the group's first track; or REC_NONE */
    int64_t from, to;         /* the span of the axis, nanoseconds */
    double left, top, bottom; /* of the area of the bars, pixels */
    bool used[TIMELINE_NLOOKS];
};

/* ---- text ---------------------------------------------------------------- */

/* Writes text with XML's escapes. U+FFFE and U+FFFF, which XML forbids, become U+FFFD. */
static void
put_text(struct chart *c, const char *text)
{
    for (; *text; text++) {
        const char *code = *text == '&'   ? "&amp;"
                           : *text == '<' ? "&lt;"
                           : *text == '>' ? "&gt;"
                           : *text == '"' ? "&quot;"
                                          : NULL;
        if (strncmp(text, "\xef\xbf\xbe", 3) == 0 ||
            strncmp(text, "\xef\xbf\xbf", 3) == 0) {
            code = "\xef\xbf\xbd";
            text += 2;
        }
        if (code)
            rec_put_bytes(c->writer, code, strlen(code));
        else
            rec_put_bytes(c->writer, text, 1);
    }
}

/* The estimated width of a text, in pixels. */
static double
text_width(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += (*text & 0xc0) != 0x80; /* every byte that begins a UTF-8 character */
    return CHARACTER * (double)n;
}

static void
put_label(struct chart *c, double x, double y, const char *anchor, const char *text)
{
    rec_printf(c->writer, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">", x, y,
               anchor);
    put_text(c, text);
    rec_printf(c->writer, "</text>\n");
}

/* Writes a text that is at most `width` pixels wide: a longer one is cut and ends in
 * "...". */
static void
put_cut_label(struct chart *c, double x, double y, const char *anchor, const char *text,
              double width)
{
    /* Enough for `width` <= WIDTH: a character has up to 4 bytes, and takes more than 4
     * pixels. */
    char cut[WIDTH];
    size_t used = 0, room = (size_t)(width / CHARACTER) - 3;
    if (text_width(text) <= width) {
        put_label(c, x, y, anchor, text);
        return;
    }
    for (size_t n = 0;; used++) /* ends: the text has more than `room` characters */
        if ((text[used] & 0xc0) != 0x80 && n++ == room)
            break;
    snprintf(cut, sizeof cut, "%.*s...", (int)used, text);
    put_label(c, x, y, anchor, cut);
}

/* ---- where things are ---------------------------------------------------- */

/* Finds the first track of each group, and adds a track for each group that has none but
 * is an end of a transfer: a server that ran nothing, but sent or received. */
static bool
add_rows(struct chart *c, struct rec_error *err)
{
    const struct timeline *t = c->t;
    c->track = malloc((t->ngroups + 1) * sizeof *c->track);
    if (!c->track)
        return rec_fail_memory(err);
    for (size_t i = 0; i < t->ngroups; i++)
        c->track[i] = REC_NONE;
    for (size_t i = c->lanes.ntracks; i-- > 0;)
        c->track[c->lanes.track[i].group] = (uint32_t)i;
    for (size_t i = 0; i < t->nslices; i++)
        for (int end = 0; end < 2; end++) {
            uint32_t group = end ? t->slice[i].dst : t->slice[i].src;
            if (group == REC_NONE || c->track[group] != REC_NONE)
                continue;
            if (!rec_grow(&c->lanes.track, &c->lanes.track_room, c->lanes.ntracks + 1,
                          sizeof *c->lanes.track, err))
                return false;
            c->track[group] = (uint32_t)c->lanes.ntracks;
            c->lanes.track[c->lanes.ntracks++] =
                (struct timeline_track){group, 0, TIMELINE_SLICE};
        }
    return true;
}

static uint32_t
process_of(const struct chart *c, uint32_t track)
{
    return timeline_process(c->t, c->lanes.track[track]);
}

/* Finds the place of each row, and the width of the column of names. */
static bool
place_rows(struct chart *c, struct rec_error *err)
{
    size_t n = c->lanes.ntracks;
    c->order = malloc((n + 1) * sizeof *c->order);
    c->middle = malloc((n + 1) * sizeof *c->middle);
    if (!c->order || !c->middle)
        return rec_fail_memory(err);
    timeline_order_tracks(c->t, &c->lanes, c->order);
    c->left = 40;
    c->bottom = c->top = MARGIN + LEGEND;
    for (size_t i = 0; i < n; i++) {
        char name[TIMELINE_TRACK_NAME];
        timeline_name_track(c->t, c->lanes.track[c->order[i]], name);
        c->left = fmin(fmax(c->left, text_width(name)), NAMES);
        if (i == 0 || process_of(c, c->order[i]) != process_of(c, c->order[i - 1]))
            c->bottom += TITLE;
        c->middle[c->order[i]] = c->bottom + ROW / 2.0;
        c->bottom += ROW;
    }
    c->left += 2 * MARGIN;
    return true;
}

/* Finds the span of the axis: that of all slices, cut to the span that is shown. */
static void
find_span(struct chart *c)
{
    const struct timeline *t = c->t;
    c->from = INT64_MAX;
    c->to = INT64_MIN;
    for (size_t i = 0; i < t->nslices; i++) {
        const struct timeline_slice *slice = &t->slice[i];
        c->from = slice->from < c->from ? slice->from : c->from;
        c->to = slice->to > c->to ? slice->to : c->to;
        c->used[slice->look] = true;
    }
    c->from = c->from < t->from ? t->from : c->from;
    c->to = c->to > t->to ? t->to : c->to;
    c->to = c->to > c->from ? c->to : c->from + 1;
}

/* The x of a time. Times outside of the axis are moved to its ends. */
static double
place(const struct chart *c, int64_t at)
{
    double share = (double)(at - c->from) / (double)(c->to - c->from);
    return c->left + fmin(fmax(share, 0), 1) * (WIDTH - MARGIN - c->left);
}

/* ---- what is drawn ------------------------------------------------------- */

/* Draws the bar of a slice, with its name and layer if both fit into it, or else its name
 * if that fits. A browser shows both as a tooltip. */
static void
put_bar(struct chart *c, const struct timeline_slice *slice)
{
    char text[TIMELINE_SLICE_NAME];
    const char *name = timeline_name_slice(c->t, slice, text);
    double x = place(c, slice->from), width = place(c, slice->to) - x;
    double y = c->middle[slice->track];
    rec_printf(c->writer,
               "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"%s>",
               x, y - BAR / 2.0, fmax(width, 0.3), BAR,
               timeline_looks[slice->look].colour,
               width > 2 ? " stroke=\"#ffffff\" stroke-width=\"0.5\"" : "");
    rec_printf(c->writer, "<title>");
    put_text(c, name);
    rec_printf(c->writer, "</title></rect>\n");
    if (text_width(name) + 4 > width)
        name = c->t->name[slice->name].text;
    if (text_width(name) + 4 <= width)
        put_label(c, x + width / 2, y + 4, "middle", name);
}

static void
put_flight(struct chart *c, const struct timeline_slice *slice)
{
    rec_printf(c->writer, "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\"/>\n",
               place(c, slice->from), c->middle[c->track[slice->src]],
               place(c, slice->to), c->middle[c->track[slice->dst]]);
}

static void
put_slices(struct chart *c)
{
    const struct timeline *t = c->t;
    struct rec_error ignored; /* the error is reported when the writer is closed */
    for (size_t i = 0; i < t->nslices && rec_writer_ok(c->writer, &ignored); i++)
        if (t->slice[i].row->shape == TIMELINE_SLICE)
            put_bar(c, &t->slice[i]);
    rec_printf(c->writer,
               "<g stroke=\"%s\" stroke-width=\"0.6\" stroke-opacity=\"0.6\">\n",
               timeline_looks[TIMELINE_SEND].colour);
    for (size_t i = 0; i < t->nslices && rec_writer_ok(c->writer, &ignored); i++)
        if (t->slice[i].src != REC_NONE)
            put_flight(c, &t->slice[i]);
    rec_printf(c->writer, "</g>\n");
}

static void
put_rows(struct chart *c)
{
    for (size_t i = 0; i < c->lanes.ntracks; i++) {
        uint32_t track = c->order[i];
        char name[TIMELINE_TRACK_NAME];
        double y = c->middle[track];
        if (i == 0 || process_of(c, track) != process_of(c, c->order[i - 1])) {
            rec_printf(c->writer, "<g font-weight=\"bold\">");
            put_cut_label(c, MARGIN, y - ROW / 2.0 - 6, "start",
                          c->t->process[process_of(c, track)],
                          (WIDTH - 2 * MARGIN) / BOLD);
            rec_printf(c->writer, "</g>\n");
        }
        timeline_name_track(c->t, c->lanes.track[track], name);
        put_cut_label(c, c->left - 6, y + 4, "end", name, NAMES);
        rec_printf(c->writer,
                   "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%d\" y2=\"%.2f\" "
                   "stroke=\"#dddddd\"/>\n",
                   c->left, y, WIDTH - MARGIN, y);
    }
}

static void
put_legend(struct chart *c)
{
    double x = c->left;
    rec_printf(c->writer, "<g id=\"legend\">\n");
    for (unsigned i = 0; i < TIMELINE_NLOOKS; i++) {
        bool flight = i >= TIMELINE_SEND;
        if (!c->used[i] || i == TIMELINE_WAIT)
            continue;
        rec_printf(c->writer,
                   flight ? "<line x1=\"%.2f\" y1=\"%d\" x2=\"%.2f\" y2=\"%d\" "
                            "stroke=\"%s\" stroke-width=\"0.6\"/>\n"
                          : "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" "
                            "fill=\"%s\"/>\n",
                   x, flight ? MARGIN + 10 : MARGIN, flight ? x + 14 : 14.0,
                   flight ? MARGIN + 2 : 12, timeline_looks[i].colour);
        put_label(c, x + 18, MARGIN + 10, "start", timeline_looks[i].name);
        x += 18 + text_width(timeline_looks[i].name) + 16;
    }
    rec_printf(c->writer, "</g>\n");
}

/* ---- the axis ------------------------------------------------------------ */

static const struct unit {
    const char *name;
    double nanoseconds;
    double from; /* the shortest span that is shown in this unit, seconds */
} units[] = {
    {"d", 86400e9, 5 * 86400.0}, {"h", 3600e9, 7200}, {"min", 60e9, 600}, {"s", 1e9, 1},
    {"ms", 1e6, 1e-3},           {"us", 1e3, 1e-6},   {"ns", 1, 0}};

/* Formats the time at the left end of the axis exactly, as whole numbers of units: "1 h
 * 17 min 36 s". A single number would have too many digits to read; if it were rounded,
 * the times at the ticks, which count from it, would be wrong. */
static void
format_start(char *text, size_t size, int64_t at)
{
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < sizeof units / sizeof *units && used < size; i++) {
        int64_t unit = (int64_t)units[i].nanoseconds;
        if (at / unit != 0)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%lld %s", used ? " " : "",
                                 (long long)(at / unit), units[i].name);
        at %= unit;
    }
}

/* The distance of ticks: 1, 2 or 5 times a power of ten, so that a span has about
 * eight. */
static double
choose_step(double span)
{
    double step = 1;
    while (step * 8 > span)
        step /= 10;
    while (step * 80 <= span)
        step *= 10;
    return span / step > 40 ? 5 * step : span / step > 16 ? 2 * step : step;
}

static void
put_axis(struct chart *c)
{
    const struct unit *unit = units;
    double span = (double)(c->to - c->from), step, y = c->bottom + 4;
    char start[100], text[200];
    while (span * 1e-9 < unit->from)
        unit++;
    span /= unit->nanoseconds;
    step = choose_step(span);
    rec_printf(
        c->writer,
        "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%d\" y2=\"%.2f\" stroke=\"#000000\"/>\n",
        c->left, y, WIDTH - MARGIN, y);
    for (int i = 0; i * step <= span * (1 + 1e-9); i++) {
        double x = c->left + fmin(i * step / span, 1) * (WIDTH - MARGIN - c->left);
        rec_printf(c->writer,
                   "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
                   "stroke=\"#000000\"/>\n",
                   x, y, x, y + 4);
        snprintf(text, sizeof text, "%.6g", i * step);
        put_label(c, x, y + 16, "middle", text);
    }
    format_start(start, sizeof start, c->from);
    if (c->from)
        snprintf(text, sizeof text, "time since %s, %s", start, unit->name);
    else
        snprintf(text, sizeof text, "time, %s", unit->name);
    put_label(c, (c->left + WIDTH - MARGIN) / 2, y + 32, "middle", text);
}

/* ---- all of it ----------------------------------------------------------- */

static void
put_chart(struct chart *c)
{
    int height = (int)c->bottom + AXIS;
    rec_printf(c->writer,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
               "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
               "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
               WIDTH, height, WIDTH, height, WIDTH, height);
    put_legend(c);
    put_rows(c);
    put_slices(c);
    put_axis(c);
    rec_printf(c->writer, "</svg>\n");
}

bool
timeline_draw(struct timeline *t, struct rec_writer *writer, struct rec_error *err)
{
    struct chart c = {.t = t, .writer = writer};
    bool ok =
        timeline_lay(t, &c.lanes, false, err) && add_rows(&c, err) && place_rows(&c, err);
    if (ok) {
        find_span(&c);
        put_chart(&c);
        ok = rec_writer_ok(writer, err);
    }
    timeline_lanes_free(&c.lanes);
    free(c.order);
    free(c.middle);
    free(c.track);
    return ok;
}
