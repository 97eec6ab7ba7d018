/*
 * Any bytes as an ONNX model: refused with a message, or a network comes of it whose
 * numbers are finite and whose layers read earlier ones, and the graph of it is read back
 * as it is.
 */
#include "fuzz.h"

#include "rampipe/onnx.h"

#include <math.h>

static int
put(void *context, const char *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return 0;
}

static void
require_layers(const struct input_network *network)
{
    require(network->nlayers >= 1 && network->batch >= 1, "there are layers");
    for (size_t i = 0; i < network->nlayers; i++) {
        const struct input_layer *layer = &network->layer[i];
        struct device_work work = input_backward_work(layer, 4);
        require(isfinite(work.flops) && work.flops >= 0 && isfinite(work.moved) &&
                    work.moved >= 0 && layer->params >= 0 &&
                    (layer->params <= layer->weights ||
                     (layer->ninputs == 0 && layer->weights <= 0)),
                "work is a number");
        for (size_t k = 0; k < layer->ninputs; k++)
            require(network->read[layer->first + k] < i, "what is earlier");
    }
}

static void
require_graph(const struct input_network *network)
{
    const struct device_roofline none = {.precision = DEVICE_FP32};
    struct rec_sink sink = {put, NULL};
    struct graph graph = {0};
    struct rec_error err = {.text = ""};
    struct rec_writer *writer = rec_writer_open_sink(&sink, "sink", NULL, &err);
    if (!input_network_graph(network, "g", &none, &graph, &err)) {
        fprintf(stderr, "%s\n", err.text);
        require(false, "a network is a graph");
    }
    require(writer != NULL, "memory is enough");
    graph_write(&graph, writer);
    require(rec_writer_close(writer, true, &err), "it is written");
    require(graph.nops == 2 * network->nlayers, "an op and its twin");
    graph_free(&graph);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct onnx_dimension dimension[] = {{"n", 3}, {"sequence", 1000000}};
    static const char *const names[] = {"x"};
    const struct onnx_options options[] = {
        {.batch = 0},
        {.batch = 1000000, .dimension = dimension, .ndimensions = 2},
        {.batch = 2, .data = names, .ndata = 1}};
    char path[64];
    int fd = fuzz_file(data, size, path);
    for (size_t i = 0; i < 3; i++) {
        struct rec_error err = {.code = REC_OK, .text = ""};
        struct input_network network;
        struct onnx_inputs inputs;
        if (onnx_read(path, &options[i], &network, &inputs, &err)) {
            require(rec_is_text(rec_str(inputs.data)) &&
                        rec_is_text(rec_str(inputs.unsure)),
                    "names of inputs are text");
            require_layers(&network);
            require_graph(&network);
            input_network_free(&network);
        } else
            require(err.text[0] && err.code != REC_OK && err.code != REC_BUG &&
                        rec_is_text(rec_str(err.text)),
                    "a message says what is wrong");
    }
    close(fd);
    return 0;
}
