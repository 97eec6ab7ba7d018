/* graph2et [OPTION]... [FILE]... - write a graph and its layout as execution traces in
 * Chakra's format. The files are written at the end, when the input is known to be
 * whole. */
#include "ggo/graph2et.h"
#define CLI_UNSHOWN "prefix", "layout",
#include "main.h"

#include "rampipe/chakra.h"

#include <stdlib.h>

struct exporting {
    struct cli *cli;
    const char *wanted; /* NULL: the only layout */
    struct graph_stream stream;
    struct graph_layout layout; /* id NULL: it has not come */
    char *cluster;              /* its records, by line; owned; NULL: none has come */
    char *servers;              /* of the first job on the layout; owned; NULL: none */
};

static bool
take_layout(void *context, struct graph_layout *layout, struct rec_error *err)
{
    struct exporting *e = context;
    (void)err;
    if (e->wanted && strcmp(layout->id, e->wanted) != 0)
        return true;
    if (e->layout.id)
        return cli_usage(e->cli,
                         "the input has several layouts, '%s' and '%s': choose one by "
                         "--layout",
                         e->layout.id, layout->id);
    e->layout = *layout;
    *layout = (struct graph_layout){.id = NULL};
    return true;
}

/* Keeps a copy of a text, unless there is one already. */
static bool
keep(struct exporting *e, char **kept, struct rec_str text)
{
    return *kept || (*kept = strndup(text.ptr, text.len)) ||
           rec_fail_memory(&e->cli->err);
}

/* Adds a record to those of the cluster. */
static bool
keep_line(struct exporting *e, struct rec_str line)
{
    size_t have = e->cluster ? strlen(e->cluster) : 0;
    char *longer = realloc(e->cluster, have + line.len + 2);
    if (!longer)
        return rec_fail_memory(&e->cli->err);
    if (have)
        longer[have++] = '\n';
    memcpy(longer + have, line.ptr, line.len);
    longer[have + line.len] = '\0';
    e->cluster = longer;
    return true;
}

/* A job on the layout says on which servers its slots lie. */
static bool
take_servers(struct exporting *e, const struct rec *rec)
{
    return !e->layout.id || !rec_str_is(rec->field[3], e->layout.id) ||
           keep(e, &e->servers, rec->field[5]);
}

static bool
take(struct exporting *e, const struct rec *rec)
{
    struct graph_said said;
    if (!graph_stream_take(&e->stream, e->cli->reader, rec, &said, &e->cli->err))
        return false;
    rec_put_line(e->cli->writer, rec->line);
    if (rec_is_part(rec, REC_CLUSTER))
        return keep_line(e, rec->line);
    return rec->type != REC_ALLOC || take_servers(e, rec);
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
    if (!e->layout.id)
        return e->wanted ? rec_fail(&e->cli->err, REC_DATA,
                                    "there is no layout '%s' in the input", e->wanted)
                         : rec_fail(&e->cli->err, REC_DATA,
                                    "there is no layout in the input: has the stream "
                                    "been through an allocator?");
    path = malloc(room);
    plan = path ? chakra_plan_new(e->layout.graph, &e->layout, &e->cli->err) : NULL;
    ok = path ? plan != NULL : rec_fail_memory(&e->cli->err);
    if (ok && e->cluster && e->servers)
        ok = chakra_plan_cluster(plan, e->cluster, e->servers, &e->cli->err);
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
    struct exporting e = {.cli = cli,
                          .wanted = args->layout_arg,
                          .stream.laid = take_layout,
                          .stream.context = &e};
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
    graph_layout_free(&e.layout);
    graph_stream_free(&e.stream);
    free(e.cluster);
    free(e.servers);
    return ok;
}
