/* graph2et [OPTION]... [FILE]... - write a graph and its layout as execution traces in
 * Chakra's format. The files are written at the end, when the input is known to be
 * whole. */
#include "ggo/graph2et.h"
#define CLI_UNSHOWN "prefix", "layout",
#include "main.h"

#include "rampipe/chakra.h"

#include <math.h>

struct exporting {
    struct cli *cli;
    const char *wanted; /* --layout; NULL: the only layout of the input */
    struct graph_stream stream;
    const struct graph *graph; /* of the layout; NULL: the layout has not come yet */
    struct chakra_layout layout;
    char *id;         /* of the layout */
    uint32_t nplaced; /* place records of it so far */
    bool open;        /* the place records that follow are of this layout */
};

static bool
open_layout(struct exporting *e, const struct rec *rec, const struct graph_said *said)
{
    struct rec_str id = rec->field[1];
    struct chakra_layout *layout = &e->layout;
    size_t n;
    e->open = !e->wanted || rec_str_is(id, e->wanted);
    if (!e->open)
        return true;
    if (e->graph)
        return cli_usage(e->cli,
                         "the input has several layouts, '%s' and '%.*s': choose one by "
                         "--layout",
                         layout->id, (int)id.len, id.ptr);
    e->graph = e->stream.store.graph[said->graph];
    n = e->graph->nops + 1;
    layout->nslots = said->slot;
    layout->id = e->id = strndup(id.ptr, id.len);
    layout->slot = malloc(n * sizeof *layout->slot);
    layout->order = malloc(n * sizeof *layout->order);
    layout->priority = malloc(n * sizeof *layout->priority);
    return (e->id && layout->slot && layout->order && layout->priority) ||
           rec_fail_memory(&e->cli->err);
}

static bool
add_place(struct exporting *e, const struct rec *rec, const struct graph_said *said)
{
    double priority = NAN;
    if (!e->open)
        return true;
    if (!rec_key_number(e->cli->reader, rec, "priority", &priority, &e->cli->err))
        return false;
    e->layout.slot[said->op] = said->slot;
    e->layout.order[e->nplaced++] = said->op;
    e->layout.priority[said->op] = priority;
    return true;
}

static bool
take(struct exporting *e, const struct rec *rec)
{
    struct graph_said said;
    if (!graph_stream_take(&e->stream, e->cli->reader, rec, &said, &e->cli->err))
        return false;
    if (rec->type == REC_LAYOUT && !open_layout(e, rec, &said))
        return false;
    if (rec->type == REC_PLACE && !add_place(e, rec, &said))
        return false;
    rec_put_line(e->cli->writer, rec->line);
    return true;
}

static bool
write_slot(struct exporting *e, const struct chakra_plan *plan, uint32_t slot, char *path)
{
    struct rec_error *err = &e->cli->err, late;
    struct rec_writer *writer = rec_writer_open(path, NULL, err);
    bool ok = writer && chakra_write(plan, slot, writer, err);
    if (writer && !rec_writer_close(writer, ok, ok ? err : &late))
        ok = false;
    return ok;
}

static bool
write_files(struct exporting *e, const char *prefix)
{
    size_t room = strlen(prefix) + 32;
    struct chakra_plan *plan;
    char *path;
    bool ok;
    if (!e->graph)
        return e->wanted ? rec_fail(&e->cli->err, REC_DATA,
                                    "there is no layout '%s' in the input", e->wanted)
                         : rec_fail(&e->cli->err, REC_DATA,
                                    "there is no layout in the input: has the stream "
                                    "been through an allocator?");
    path = malloc(room);
    plan = path ? chakra_plan_new(e->graph, &e->layout, &e->cli->err) : NULL;
    ok = path ? plan != NULL : rec_fail_memory(&e->cli->err);
    for (uint32_t slot = 0; ok && slot < e->layout.nslots; slot++) {
        snprintf(path, room, "%s.%u.et", prefix, slot);
        ok = write_slot(e, plan, slot, path);
        cli_progress(e->cli, slot + 1, e->layout.nslots, "files");
    }
    if (ok)
        cli_note(e->cli, "layout '%s': %u files", e->layout.id, e->layout.nslots);
    chakra_plan_free(plan);
    free(path);
    return ok;
}

static bool
run(struct cli *cli, const struct graph2et_args *args)
{
    struct exporting e = {.cli = cli, .wanted = args->layout_arg};
    struct rec rec;
    int status = 0;
    bool ok = (*args->prefix_arg || cli_usage(cli, "--prefix must not be empty")) &&
              cli_open_filter(cli);
    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = take(&e, &rec);
    ok = ok && status == 0 && graph_stream_end(&e.stream, &cli->err);
    if (ok) /* first the records: if they cannot be written, no files are */
        rec_writer_flush(cli->writer);
    ok = ok && rec_writer_ok(cli->writer, &cli->err) && write_files(&e, args->prefix_arg);
    chakra_layout_free(&e.layout);
    graph_stream_free(&e.stream);
    free(e.id);
    return ok;
}
