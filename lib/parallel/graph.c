/* Writes a training step as a graph for sim(1): see parallel_graph_record(). What its
 * devices do is in program.c. */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* All ranks are on the servers of their numbers; of a folded graph, the first rank of
 * each stage. */
static bool
write_alloc(const struct parallel_graph *graph, const struct parallel_question *q,
            const char *id, struct rec_writer *writer, struct rec_error *err)
{
    uint32_t n = graph->unfold ? (uint32_t)parallel_ranks(&q->mix) : q->mix.pp;
    uint32_t *server = calloc(n, sizeof *server);
    if (!server)
        return rec_fail_memory(err);
    for (uint32_t r = 0; r < n; r++)
        server[r] = graph->unfold ? r : (uint32_t)parallel_rank(&q->mix, r, 0);
    rec_begin(writer, "job");
    rec_text_field(writer, id);
    rec_text_field(writer, id);
    rec_num_field(writer, 0);
    rec_uint_field(writer, graph->steps);
    rec_num_field(writer, INFINITY);
    rec_end(writer);
    rec_begin(writer, "alloc");
    rec_text_field(writer, id);
    rec_text_field(writer, id);
    rec_text_field(writer, id);
    rec_num_field(writer, 0);
    net_servers_field(graph->net, server, n, writer);
    rec_end(writer);
    free(server);
    return true;
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
write_orders(const struct parallel_question *q, const char *id, struct rec_writer *writer,
             struct rec_error *err)
{
    struct parallel_times times = {0};
    struct parallel_pipe pipe = {.forward = NULL};
    bool ok = parallel_times_make(&q->model, &q->mix, &q->machine, &times, err) &&
              parallel_pipe_make(&q->mix, &q->machine, &times, &pipe, err) &&
              parallel_own_write(q->mix.schedule, &pipe, id, writer, err);
    if (!ok && err->code == REC_DATA)
        err->code = REC_NO;
    free((double *)(uintptr_t)pipe.forward);
    parallel_times_free(&times);
    return ok;
}

/* The records of the graph, its layout too, are known before one is written. */
static bool
check_size(const struct parallel_graph *graph, const struct parallel_question *q,
           const struct parallel_program *program, struct rec_error *err)
{
    double all = graph->unfold ? (double)parallel_ranks(&q->mix) / q->mix.pp : 1;
    double n = all * (2.0 * (double)program->nnodes + (double)program->nedges +
                      2.0 * (double)program->nswaps);
    struct rec_error why;
    return rec_limit(&graph->limit, n, "records", &why) ||
           rec_fail(err, why.code,
                    "%s; fewer microbatches, exchanges that the network times (colls), "
                    "or ranks (the folded graph) make less",
                    why.text);
}

static bool
write_step(struct parallel_graph *graph, const struct parallel_question *q,
           const char *id, struct rec_writer *writer, struct rec_error *err)
{
    struct parallel_times times = {0};
    struct parallel_program program = {0};
    unsigned beside = q->mix.overlap;
    bool ok;
    if (graph->orders)
        return write_orders(q, id, writer, err);
    if (parallel_zero(&q->mix) >= 3) /* shards are exchanged beside passes in any case */
        beside |= PARALLEL_OVERLAP_DP;
    if (q->mix.taken &&
        graph->colls & beside & (PARALLEL_OVERLAP_DP | PARALLEL_OVERLAP_PP))
        return rec_fail(err, REC_DATA,
                        "exchange_processors does not go with messages and exchanges of "
                        "replicas beside the passes that the network times (colls): what "
                        "those take is not modelled");
    ok = make_net(graph, q, err) &&
         parallel_times_make(&q->model, &q->mix, &q->machine, &times, err) &&
         parallel_program_make(&program, graph, q, &times, err) &&
         check_size(graph, q, &program, err);
    if (ok) {
        net_write(graph->net, writer);
        ok = parallel_program_write(&program, q, graph->unfold, id, writer, err) &&
             write_alloc(graph, q, id, writer, err);
    }
    parallel_program_free(&program);
    parallel_times_free(&times);
    return ok;
}

bool
parallel_graph_record(struct parallel_graph *graph, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_writer *writer,
                      struct rec_error *err)
{
    struct parallel_question q;
    char id[PARALLEL_NAME];
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
        ok = rec_reader_fail(reader, err, "ID has more than %d bytes", PARALLEL_NAME - 1);
    if (ok) {
        snprintf(id, sizeof id, "%.*s", (int)rec->field[1].len, rec->field[1].ptr);
        graph->written = true;
        graph->idle = parallel_again_is_idle(&q);
        ok = write_step(graph, &q, id, writer, err);
    }
    parallel_question_free(&q);
    return ok || (err->code == REC_NO && rec_locate(reader, err));
}
