/* The inputs of learn (learn_inputs.h). */
#include "learn_inputs.h"

#include <stdlib.h>
#include <string.h>

/* The input that is being read; a stream is an input of its own. NULL: cli->err. */
static struct learn_input *
current_input(struct learn_inputs *inputs)
{
    if (inputs->ended) {
        struct learn_input *in;
        if (!rec_grow(&inputs->input, &inputs->room, inputs->n + 1, sizeof *inputs->input,
                      &inputs->cli->err) ||
            !(in = inputs->input[inputs->n] = calloc(1, sizeof *in))) {
            rec_fail_memory(&inputs->cli->err);
            return NULL;
        }
        in->reading.store.advice = inputs->advice;
        inputs->n++;
        inputs->ended = false;
    }
    return inputs->input[inputs->n - 1];
}

/* What follows is another input. */
static bool
end_input(struct learn_inputs *inputs)
{
    bool ended = inputs->ended;
    inputs->ended = true;
    return ended ||
           graph_reading_end(&inputs->input[inputs->n - 1]->reading, &inputs->cli->err);
}

static bool
take_job(struct learn_inputs *inputs, struct learn_input *in)
{
    struct cli *cli = inputs->cli;
    const struct graph_job *job = &in->reading.job;
    struct rec_str rest, id;
    const struct graph_store *store = &in->reading.store;
    const char *graphs;

    if (rec_map_get(&in->known, job->graphs) != REC_NONE)
        return true;
    rest = job->graphs;
    rec_str_split(&rest, ',', &id);
    if (!(graphs = rec_arena_copy(&inputs->arena, job->graphs, &cli->err)) ||
        !rec_grow(&in->templates, &in->template_room, in->ntemplates + 1,
                  sizeof *in->templates, &cli->err) ||
        !rec_map_add(&in->known, rec_str(graphs), in->ntemplates, &cli->err))
        return false;
    in->templates[in->ntemplates++] = (struct learn_template){
        rec_str(graphs), graph_sequential(store->graph[graph_store_find(store, id)])};
    return true;
}

/* Keeps the provenance of a stream, unless it is that of the one before. */
static bool
keep_made(struct learn_inputs *inputs)
{
    const char *made = rec_reader_provenance(inputs->cli->reader);
    size_t len = strlen(made);
    if (inputs->made && strcmp(made, inputs->made + inputs->made_last) == 0)
        return true;
    if (!rec_grow(&inputs->made, &inputs->made_room, inputs->made_len + len + 1, 1,
                  &inputs->cli->err))
        return false;
    memcpy(inputs->made + inputs->made_len, made, len + 1);
    inputs->made_last = inputs->made_len;
    inputs->made_len += len;
    return true;
}

bool
learn_inputs_read(struct learn_inputs *inputs)
{
    struct cli *cli = inputs->cli;
    enum graph_taken taken;
    struct rec rec;
    int status;
    bool begins = true;
    inputs->ended = true;
    while ((status = cli_next(cli, &rec)) > 0) {
        struct learn_input *in;
        if (rec.type == REC_MARK && inputs->apart && !end_input(inputs))
            return false;
        begins = begins || rec.type == REC_MARK;
        if (rec.type == REC_MARK || rec.type == REC_COMMENT)
            continue;
        if (begins && !keep_made(inputs))
            return false;
        begins = false;
        if (rec.type == REC_CLUSTER)
            return rec_reader_fail(cli->reader, &cli->err,
                                   "the stream has a cluster, but training is on that of "
                                   "--shape or --cluster: take its record out");
        if (!(in = current_input(inputs)) ||
            !graph_reading_take(&in->reading, cli->reader, &rec, &taken, &cli->err) ||
            (taken == GRAPH_JOB_TAKEN && !take_job(inputs, in)))
            return false;
    }
    return status == 0 && end_input(inputs) && (inputs->n > 0 || current_input(inputs));
}

void
learn_inputs_free(struct learn_inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->n; i++) {
        graph_reading_free(&inputs->input[i]->reading);
        rec_map_free(&inputs->input[i]->known);
        free(inputs->input[i]->templates);
        free(inputs->input[i]);
    }
    free(inputs->input);
    free(inputs->made);
    rec_arena_free(&inputs->arena);
}
