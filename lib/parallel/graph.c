/* Writes a training step as a graph for sim(1): see parallel_graph_record(). */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct writing {
    const struct parallel_question *q;
    const struct parallel_times *times;
    struct rec_writer *writer;
    const char *id;             /* of graph, layout and job */
    struct parallel_item *item; /* the orders of all devices; owned */
    size_t items;               /* of each device */
};

enum { NAME = 48 };
static const char letter[] = {'F', 'B', 'W'};

static void
name_pass(char name[NAME], unsigned pass, uint32_t microbatch, uint32_t stage)
{
    snprintf(name, NAME, "%c%u.%u", letter[pass], microbatch, stage);
}

/* ---- ops --------------------------------------------------------------------- */

static void
begin_op(const struct writing *w, const char *name, const char *pass, double seconds)
{
    rec_begin(w->writer, "op");
    rec_text_field(w->writer, w->id);
    rec_text_field(w->writer, name);
    rec_text_field(w->writer, pass);
    rec_num_field(w->writer, seconds);
    rec_num_field(w->writer, 0);
}

static void
write_dep(const struct writing *w, const char *from, const char *to)
{
    rec_begin(w->writer, "dep");
    rec_text_field(w->writer, w->id);
    rec_text_field(w->writer, from);
    rec_text_field(w->writer, to);
    rec_num_field(w->writer, 0);
    rec_end(w->writer);
}

static uint32_t
stage_of(const struct writing *w, uint32_t r, const struct parallel_item *item)
{
    return parallel_stage(w->q->mix.schedule, w->q->mix.pp, r, item->chunk);
}

static double
seconds_of(const struct writing *w, unsigned pass, uint32_t stage)
{
    const struct parallel_passes *p = &w->times->stage[stage];
    uint32_t stages = w->q->mix.pp * w->q->mix.vp;
    bool blocking = w->q->machine.stack->blocking;
    if (pass == PARALLEL_FORWARD)
        return parallel_parts_sum(&p->forward) +
               (blocking && stage + 1 < stages ? w->times->message : 0);
    return parallel_parts_sum(&p->backward) +
           (blocking && stage > 0 ? w->times->message : 0);
}

/* FLOPs of the model in a pass on a rank, attention in full. */
static double
flops_of(const struct writing *w, unsigned pass, uint32_t stage)
{
    const struct parallel_model *model = &w->q->model;
    struct parallel_chunk chunk = parallel_chunk_of(&w->q->mix, model, stage);
    double work = chunk.head ? parallel_kind_work(model, &model->head, 1) : 0;
    for (uint32_t i = 0; i < chunk.layers; i++)
        work += parallel_kind_work(model, &model->kind[model->of[chunk.first + i]], 1);
    return (pass == PARALLEL_FORWARD ? 2 : 4) * work *
           parallel_tokens(model, &w->q->mix) / w->q->mix.tp;
}

static bool
sends(const struct writing *w)
{
    return !w->q->machine.stack->blocking && w->times->message > 0;
}

/* Where a pass hands on: to the next virtual stage, or backward to the one before. */
static bool
next_stage(const struct writing *w, unsigned pass, uint32_t stage, uint32_t *next)
{
    uint32_t stages = w->q->mix.pp * w->q->mix.vp;
    if (pass == PARALLEL_FORWARD ? stage + 1 == stages : stage == 0)
        return false;
    *next = pass == PARALLEL_FORWARD ? stage + 1 : stage - 1;
    return true;
}

/* A message leaves a device only if the next virtual stage is on another one. */
static bool
leaves(const struct writing *w, uint32_t r, uint32_t next)
{
    uint32_t chunk;
    return parallel_device(w->q->mix.schedule, w->q->mix.pp, next, &chunk) != r;
}

static void
write_ops(const struct writing *w, uint32_t r)
{
    char name[NAME], other[NAME];
    uint32_t next;
    for (size_t i = 0; i < w->items; i++) {
        const struct parallel_item *item = &w->item[r * w->items + i];
        uint32_t stage = stage_of(w, r, item);
        name_pass(name, item->pass, item->microbatch, stage);
        begin_op(w, name, item->pass == PARALLEL_FORWARD ? "forward" : "backward",
                 seconds_of(w, item->pass, stage));
        rec_num_key(w->writer, "flops", flops_of(w, item->pass, stage));
        if (item->pass == PARALLEL_FORWARD) {
            name_pass(other, PARALLEL_BACKWARD, item->microbatch, stage);
            rec_num_key(w->writer, "hold",
                        parallel_stage_kept(&w->q->mix, &w->q->model, stage));
            rec_text_key(w->writer, "release", other);
        }
        rec_end(w->writer);
        if (sends(w) && next_stage(w, item->pass, stage, &next) && leaves(w, r, next)) {
            snprintf(other, sizeof other, "send.%.40s", name);
            begin_op(w, other, "task", w->times->message);
            rec_num_key(w->writer, "flops", 0);
            rec_end(w->writer);
        }
    }
}

/* What a device does once. */
static const char *const once_names[] = {"gradients", "optimizer", "weights"};

static double
once_of(const struct parallel_once *once, int i)
{
    return i == 0 ? once->gradients : i == 1 ? once->optimizer : once->weights;
}

static void
write_once(const struct writing *w, uint32_t r)
{
    char name[NAME];
    struct parallel_memory memory;
    parallel_memory_of(&w->q->mix, &w->q->model, r, w->q->machine.stack, &memory);
    snprintf(name, sizeof name, "state.%u", r);
    begin_op(w, name, "task", 0);
    rec_num_key(w->writer, "flops", 0);
    rec_num_key(w->writer, "hold", parallel_memory_sum(&memory));
    rec_end(w->writer);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.%u", once_names[i], r);
        begin_op(w, name, "task", once_of(&w->times->device[r], i));
        rec_num_key(w->writer, "flops", 0);
        rec_end(w->writer);
    }
}

/* A pass needs what the stage before it made; the first backward of a microbatch, its
 * last forward. */
static void
write_deps(const struct writing *w, uint32_t r)
{
    char name[NAME], to[NAME], message[NAME];
    uint32_t next, last = w->q->mix.pp * w->q->mix.vp - 1;
    for (size_t i = 0; i < w->items; i++) {
        const struct parallel_item *item = &w->item[r * w->items + i];
        uint32_t stage = stage_of(w, r, item);
        name_pass(name, item->pass, item->microbatch, stage);
        if (item->pass == PARALLEL_FORWARD && stage == last) {
            name_pass(to, PARALLEL_BACKWARD, item->microbatch, stage);
            write_dep(w, name, to);
        }
        if (!next_stage(w, item->pass, stage, &next))
            continue;
        name_pass(to, item->pass, item->microbatch, next);
        if (sends(w) && leaves(w, r, next)) {
            snprintf(message, sizeof message, "send.%.40s", name);
            write_dep(w, name, message);
            write_dep(w, message, to);
        } else
            write_dep(w, name, to);
    }
}

/* ---- places -------------------------------------------------------------------- */

static void
write_place(const struct writing *w, const char *op, uint32_t r, const char *lane,
            uint64_t order)
{
    char number[24];
    rec_begin(w->writer, "place");
    rec_text_field(w->writer, w->id);
    rec_text_field(w->writer, op);
    rec_uint_field(w->writer, r);
    rec_text_key(w->writer, "lane", lane);
    snprintf(number, sizeof number, "%llu", (unsigned long long)order);
    rec_text_key(w->writer, "order", number);
    rec_end(w->writer);
}

static void
write_places(const struct writing *w, uint32_t r)
{
    char name[NAME], message[NAME];
    uint64_t order = 0, sent = 0;
    uint32_t next;
    snprintf(name, sizeof name, "state.%u", r);
    write_place(w, name, r, "compute", order++);
    for (size_t i = 0; i < w->items; i++) {
        const struct parallel_item *item = &w->item[r * w->items + i];
        uint32_t stage = stage_of(w, r, item);
        name_pass(name, item->pass, item->microbatch, stage);
        write_place(w, name, r, "compute", order++);
        if (sends(w) && next_stage(w, item->pass, stage, &next) && leaves(w, r, next)) {
            snprintf(message, sizeof message, "send.%.40s", name);
            write_place(w, message, r,
                        item->pass == PARALLEL_FORWARD ? "activations" : "gradients",
                        sent++);
        }
    }
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.%u", once_names[i], r);
        write_place(w, name, r, "compute", order++);
    }
}

/* The server of stage r: that of its first rank. */
static uint32_t
server_of(const struct parallel_mix *mix, uint32_t r)
{
    uint32_t stride = mix->tp * mix->cp;
    return r * (mix->order == PARALLEL_TP_CP_DP_PP ? stride * mix->dp : stride);
}

static bool
write_alloc(const struct writing *w, const struct net *net, uint64_t steps,
            struct rec_error *err)
{
    uint32_t pp = w->q->mix.pp, *server = calloc(pp, sizeof *server);
    if (!server)
        return rec_fail_memory(err);
    for (uint32_t r = 0; r < pp; r++)
        server[r] = server_of(&w->q->mix, r);
    rec_begin(w->writer, "job");
    rec_text_field(w->writer, w->id);
    rec_text_field(w->writer, w->id);
    rec_num_field(w->writer, 0);
    rec_uint_field(w->writer, steps);
    rec_num_field(w->writer, INFINITY);
    rec_end(w->writer);
    rec_begin(w->writer, "alloc");
    rec_text_field(w->writer, w->id);
    rec_text_field(w->writer, w->id);
    rec_text_field(w->writer, w->id);
    rec_num_field(w->writer, 0);
    net_servers_field(net, server, pp, w->writer);
    rec_end(w->writer);
    free(server);
    return true;
}

/* ---- the whole ----------------------------------------------------------------- */

static void
write_graph(const struct writing *w)
{
    const struct parallel_question *q = w->q;
    rec_begin(w->writer, "graph");
    rec_text_field(w->writer, w->id);
    rec_text_field(w->writer, w->id);
    rec_text_key(w->writer, "device", q->device);
    rec_num_key(w->writer, "peak", q->machine.peak[q->mix.precision]);
    rec_num_key(w->writer, "batch", q->mix.global);
    rec_num_key(w->writer, "sequence", q->sequence);
    rec_text_key(w->writer, "family", "transformer");
    rec_end(w->writer);
    for (uint32_t r = 0; r < q->mix.pp; r++) {
        write_once(w, r);
        write_ops(w, r);
    }
    for (uint32_t r = 0; r < q->mix.pp; r++)
        write_deps(w, r);
    rec_begin(w->writer, "layout");
    rec_text_field(w->writer, w->id);
    rec_text_field(w->writer, w->id);
    rec_uint_field(w->writer, q->mix.pp);
    rec_end(w->writer);
    for (uint32_t r = 0; r < q->mix.pp; r++)
        write_places(w, r);
}

/* The orders of all devices. NULL: *err. */
static struct parallel_item *
make_orders(const struct parallel_question *q, size_t *items, struct rec_error *err)
{
    const struct parallel_schedule *schedule = q->mix.schedule;
    struct parallel_pipe pipe = {.stages = q->mix.pp,
                                 .chunks = q->mix.vp,
                                 .microbatches = parallel_microbatches(&q->mix)};
    struct parallel_item *item = NULL;
    if (schedule->split)
        rec_fail(err, REC_NO,
                 "graphs of schedule %s are not written: times of the two halves of "
                 "backward are not known apart",
                 schedule->name);
    else if (!(item = parallel_orders(schedule, &pipe, err)) && err->code == REC_DATA)
        err->code = REC_NO;
    *items = parallel_items(schedule, &pipe);
    return item;
}

/* The island that stands for a cluster which is not given. */
static bool
make_net(struct parallel_graph *graph, const struct parallel_question *q,
         struct rec_error *err)
{
    char text[160];
    uint64_t ranks = parallel_ranks(&q->mix);
    snprintf(text, sizeof text, "island:%llu,%.17g,%.17g,%.17g",
             (unsigned long long)ranks, q->machine.inside, q->machine.inside_latency,
             q->machine.memory);
    if (!graph->net)
        graph->net = net_parse(text, err);
    if (!graph->net)
        return false;
    return ranks <= net_servers(graph->net) ||
           rec_fail(err, REC_NO, "the mix needs %llu devices, the cluster has %u",
                    (unsigned long long)ranks, net_servers(graph->net));
}

static bool
write_step(struct parallel_graph *graph, const struct parallel_question *q,
           const char *id, struct rec_writer *writer, struct rec_error *err)
{
    struct parallel_times times = {0};
    struct writing w = {.q = q, .times = &times, .writer = writer, .id = id};
    bool ok = make_net(graph, q, err) && (w.item = make_orders(q, &w.items, err)) &&
              parallel_times_make(&q->model, &q->mix, &q->machine, &times, err);
    if (ok) {
        net_write(graph->net, writer);
        write_graph(&w);
        ok = write_alloc(&w, graph->net, graph->steps, err);
    }
    free(w.item);
    parallel_times_free(&times);
    return ok;
}

bool
parallel_graph_record(struct parallel_graph *graph, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_writer *writer,
                      struct rec_error *err)
{
    struct parallel_question q;
    char id[NAME];
    bool ok;
    if (rec->type != REC_TRAINING) {
        rec_put_line(writer, rec->line);
        return true;
    }
    if (graph->written)
        return rec_reader_fail(reader, err,
                               "a stream has one training record: its job takes all "
                               "servers of the mix");
    ok = parallel_question_read(&q, graph->tables, reader, rec, err);
    if (ok && rec->field[1].len >= sizeof id)
        ok = rec_reader_fail(reader, err, "ID has more than %d bytes", NAME - 1);
    if (ok) {
        snprintf(id, sizeof id, "%.*s", (int)rec->field[1].len, rec->field[1].ptr);
        graph->written = true;
        ok = write_step(graph, &q, id, writer, err);
    }
    parallel_question_free(&q);
    return ok || (err->code == REC_NO && rec_locate(reader, err));
}
