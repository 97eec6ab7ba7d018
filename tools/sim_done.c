/*
 * The done records of `sim`. Most of their keys depend on the layout and on what a step
 * on it costs, and most jobs share these with many others. So the texts of these keys are
 * kept, beside the numbers and texts that they were made from. They are used again only
 * if all of these are the same: a layout may be gone, and another one in its place.
 */
#include "sim_done.h"

#include <math.h>
#include <stdlib.h>

enum {
    ENTRIES = 256,  /* a power of two */
    PIECES = 3,     /* between them are the keys of the job: steps= and deadline= */
    TEXT_MAX = 1000 /* bytes of an entry: longer texts are not kept */
};

/* What the texts are made from, but for the model and the keys of the graph. */
struct source {
    struct sim_cost cost;
    double memory_sum, memory, op_memory, dep_bytes, flops;
    uint32_t nslots, used; /* used: 1 if the entry has texts */
};

/* The text of an entry has the pieces, and behind them the model and the keys of the
 * graph, each with a NUL. */
struct entry {
    struct source source;
    size_t end[PIECES], model, extra; /* where they end and begin */
    size_t len;
    char text[TEXT_MAX];
};

struct done_memo {
    struct rec_writer *writer; /* into ->into */
    struct entry *into;
    struct entry *entry[ENTRIES]; /* NULL: not used yet */
};

double
done_busy_share(const struct sim_done *done)
{
    const struct sim_step *step = &done->cost->step;
    return step->seconds > 0 ? step->busy / (done->layout->where.nslots * step->seconds)
                             : 0;
}

/* The memory of the server that holds most, bytes. */
static double
peak_of(const struct sim_done *done)
{
    uint32_t slot;
    return sim_layout_peak(done->layout, done->cost, &slot);
}

/* ---- the keys -------------------------------------------------------------- */

/* The keys of a piece. */
static void
put_piece(const struct sim_done *done, int piece, struct rec_writer *w)
{
    const struct sim_layout *layout = done->layout;
    const struct graph *graph = layout->where.graph;
    const struct sim_step *step = &done->cost->step;
    const struct net_traffic *traffic = &done->cost->traffic;

    if (piece == 0) {
        rec_text_key(w, "model", graph->model);
        graph_pass_key(graph, "degree", w);
    } else if (piece == 1) {
        rec_num_key(w, "step", step->seconds);
        rec_num_key(w, "comm", step->comm);
        rec_num_key(w, "comp", step->comp);
        rec_uint_key(w, "servers", layout->where.nslots);
        rec_num_key(w, "busy", done_busy_share(done));
        rec_num_key(w, "sequential", step->sequential);
        rec_uint_key(w, "flows", traffic->flows);
        rec_uint_key(w, "collectives", traffic->collectives);
    } else {
        rec_num_key(w, "memory", layout->memory_sum);
        rec_num_key(w, "peak_memory", peak_of(done));
        rec_num_key(w, "op_memory", layout->op_memory);
        rec_num_key(w, "dep_bytes", layout->dep_bytes);
        rec_num_key(w, "flow_bytes", traffic->flow_bytes);
        graph_pass_key(graph, "demand_memory", w);
        graph_pass_key(graph, "demand_bytes", w);
        graph_pass_key(graph, "batch", w);
        graph_pass_key(graph, "sequence", w);
        if (!isnan(layout->flops))
            rec_num_key(w, "flops", layout->flops);
        graph_pass_key(graph, "peak", w);
    }
}

/* ---- the memo -------------------------------------------------------------- */

/* Adds bytes to an entry. One that is too long gets the length TEXT_MAX + 1. */
static void
add(struct entry *entry, const char *bytes, size_t len)
{
    if (entry->len > TEXT_MAX || len > TEXT_MAX - entry->len) {
        entry->len = TEXT_MAX + 1;
        return;
    }
    memcpy(entry->text + entry->len, bytes, len);
    entry->len += len;
}

/* What a sink has to do. */
static int
put(void *context, const char *bytes, size_t len)
{
    struct done_memo *memo = context;
    if (len > 0) /* a writer also flushes nothing, before there is an entry */
        add(memo->into, bytes, len);
    return 0;
}

struct done_memo *
done_memo_new(struct rec_error *err)
{
    struct done_memo *memo = calloc(1, sizeof *memo);
    struct rec_sink sink = {put, memo};
    if (!memo) {
        rec_fail_memory(err);
        return NULL;
    }
    memo->writer = rec_writer_open_sink(&sink, "done", NULL, err);
    if (memo->writer)
        return memo;
    free(memo);
    return NULL;
}

void
done_memo_free(struct done_memo *memo)
{
    struct rec_error ignored;
    if (!memo)
        return;
    for (size_t i = 0; i < ENTRIES; i++)
        free(memo->entry[i]);
    (void)!rec_writer_close(memo->writer, false, &ignored);
    free(memo);
}

/* Where the texts of a job may be. Another job's may be there instead. */
static struct entry **
place_of(struct done_memo *memo, const struct sim_done *done)
{
    uint64_t hash = (uintptr_t)done->layout, bits;
    memcpy(&bits, &done->cost->step.seconds, sizeof bits);
    hash = (hash ^ bits ^ bits >> 32) * 0x9e3779b97f4a7c15u;
    return &memo->entry[hash >> 32 & (ENTRIES - 1)];
}

static void
find_source(const struct sim_done *done, struct source *source)
{
    const struct sim_layout *layout = done->layout;
    memset(source, 0, sizeof *source); /* its padding is compared, too */
    source->cost = *done->cost;
    source->memory_sum = layout->memory_sum;
    source->memory = peak_of(done);
    source->op_memory = layout->op_memory;
    source->dep_bytes = layout->dep_bytes;
    source->flops = layout->flops;
    source->nslots = layout->where.nslots;
    source->used = 1;
}

static bool
is_same(const struct entry *entry, const struct source *source, const struct graph *graph)
{
    return memcmp(&entry->source, source, sizeof *source) == 0 &&
           strcmp(entry->text + entry->model, graph->model) == 0 &&
           strcmp(entry->text + entry->extra, graph->extra) == 0;
}

/* Makes the texts of an entry; it stays unused if they are too long. */
static void
fill(struct done_memo *memo, struct entry *entry, const struct source *source,
     const struct sim_done *done)
{
    const struct graph *graph = done->layout->where.graph;
    memo->into = entry;
    entry->len = 0;
    for (int i = 0; i < PIECES; i++) {
        put_piece(done, i, memo->writer);
        rec_writer_flush(memo->writer);
        entry->end[i] = entry->len;
    }
    entry->model = entry->len;
    add(entry, graph->model, strlen(graph->model) + 1);
    entry->extra = entry->len;
    add(entry, graph->extra, strlen(graph->extra) + 1);
    entry->source = *source;
    entry->source.used = entry->len <= TEXT_MAX;
}

/* The entry with the texts of a job; NULL: *err. */
static const struct entry *
find(struct done_memo *memo, const struct sim_done *done, struct rec_error *err)
{
    struct entry **place = place_of(memo, done);
    struct source source;
    if (!*place && !(*place = calloc(1, sizeof **place))) {
        rec_fail_memory(err);
        return NULL;
    }
    find_source(done, &source);
    if (!is_same(*place, &source, done->layout->where.graph))
        fill(memo, *place, &source, done);
    return *place;
}

bool
done_write(struct done_memo *memo, const struct sim_done *done, struct rec_writer *w,
           struct rec_error *err)
{
    const struct entry *entry = find(memo, done, err);
    if (!entry)
        return false;
    rec_begin(w, "done");
    rec_str_field(w, done->job.id);
    rec_text_field(w, done->layout->where.graph->id);
    rec_num_field(w, done->job.arrival);
    rec_num_field(w, done->start);
    rec_num_field(w, done->finish);
    for (int i = 0; i < PIECES; i++) {
        size_t from = i > 0 ? entry->end[i - 1] : 0;
        if (entry->source.used)
            rec_put_bytes(w, entry->text + from, entry->end[i] - from);
        else
            put_piece(done, i, w);
        if (i == 0)
            rec_num_key(w, "steps", done->job.steps);
        else if (i == 1)
            rec_num_key(w, "deadline", done->job.deadline);
    }
    if (!isnan(done->alone)) { /* jobs share links */
        rec_num_key(w, "alone", done->alone);
        if (done->waited > 0)
            rec_num_key(w, "waited", done->waited);
    }
    if (!isnan(done->healthy)) /* servers are slow or late */
        rec_num_key(w, "healthy", done->healthy);
    rec_end(w);
    return true;
}
