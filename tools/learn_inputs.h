/* The inputs of learn: graphs, and jobs whose alternatives it chooses from. */
#ifndef RAMPIPE_LEARN_INPUTS_H
#define RAMPIPE_LEARN_INPUTS_H

#include "rampipe/cli.h"
#include "rampipe/learn.h"

/* Graphs and jobs of a stream. */
struct learn_input {
    struct graph_reading reading;
    struct rec_map known; /* alternatives -> template */
    struct learn_template *templates;
    uint32_t ntemplates;
    size_t template_room;
};

/* Starts as {.cli, .advice, .apart}. */
struct learn_inputs {
    struct cli *cli;
    const char *advice; /* for graphs without times */
    bool apart;         /* each stream is an input of its own */
    struct learn_input **input;
    uint32_t n;
    size_t room;
    bool ended; /* the last of them */
    char *made; /* provenance of the streams; NULL: there is none */
    size_t made_len, made_room, made_last; /* ..., where that of the last one begins */
    struct rec_arena arena;
};

/* Reads all of the input; there is at least one then. False: cli->err. */
bool learn_inputs_read(struct learn_inputs *inputs) REC_MUST_CHECK;
void learn_inputs_free(struct learn_inputs *inputs);

#endif
