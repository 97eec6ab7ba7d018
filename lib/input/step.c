/* The work of the layers of a network in a training step, and the graph that is made of
 * them. */
#include "rampipe/input.h"

#include <stdio.h>
#include <stdlib.h>

/* The work of a layer, with its flops and its bytes multiplied by two factors. A layer
 * that reads nothing is the input itself: it takes no work. */
static struct device_work
work_of(const struct input_layer *layer, double bytes, double flops, double moved)
{
    struct device_work work = {.flops = flops * layer->flops,
                               .moved = moved *
                                        (layer->in + layer->out + layer->weights) * bytes,
                               .kind = rec_str(layer->kind)};
    memcpy(work.gemm, layer->gemm, sizeof work.gemm);
    return layer->ninputs || layer->weights > 0
               ? work
               : (struct device_work){.kind = rec_str(layer->kind)};
}

struct device_work
input_forward_work(const struct input_layer *layer, double bytes)
{
    return work_of(layer, bytes, 1, 1);
}

/* The gradient of a product takes two products: one for each operand. Fused attention
 * does not keep its scores, and so computes them again: five products instead of the two
 * of the forward pass (Dao, FlashAttention-2, 2023, section 4.1). */
struct device_work
input_backward_work(const struct input_layer *layer, double bytes)
{
    bool fused = strcmp(layer->kind, "attention") == 0;
    bool product = strcmp(layer->kind, "memory") != 0;
    double times = product || layer->weights > 0 ? 2 : 1;
    return work_of(layer, bytes, fused ? 2.5 : times, times);
}

/* Is the layer a softmax, or one of at most `far` layers behind a softmax that only move
 * or mask its output? Such layers are of class memory and have at most three inputs. */
static bool
weighs(const struct input_network *network, const struct input_layer *layer, int far)
{
    if (strncmp(layer->text, "Softmax", 7) == 0)
        return true;
    if (far == 0 || strcmp(layer->kind, "memory") != 0 || layer->ninputs > 3)
        return false;
    for (size_t j = 0; j < layer->ninputs; j++)
        if (weighs(network, &network->layer[network->read[layer->first + j]], far - 1))
            return true;
    return false;
}

const char *
input_network_family(const struct input_network *network)
{
    /* The most layers between a softmax and the product with the values: dropout, a mask
     * and a conversion. */
    enum { BETWEEN = 3 };
    for (size_t i = 0; i < network->nlayers; i++) {
        const struct input_layer *layer = &network->layer[i];
        bool product = strcmp(layer->kind, "matmul") == 0 && layer->weights == 0;
        if (strcmp(layer->kind, "attention") == 0)
            return "transformer";
        for (size_t j = 0; product && j < layer->ninputs; j++)
            if (weighs(network, &network->layer[network->read[layer->first + j]],
                       BETWEEN))
                return "transformer";
    }
    return "";
}

/* Buffers for the texts of one op. */
struct texts {
    char id[24], src[24], type[100], keys[DEVICE_KEYS_MAX], extra[DEVICE_KEYS_MAX + 120];
};

/* Makes the keys of an op, t->extra, and its time on the device; 0 s without a device. */
static bool
make_op(struct texts *t, const struct input_layer *layer, struct device_work work,
        const struct device_roofline *roofline, double *seconds, struct rec_error *err)
{
    struct rec_error why;
    size_t len = strcspn(layer->text, "(");
    device_work_keys(&work, t->keys);
    snprintf(t->extra, sizeof t->extra, "\ttype=%.*s%s", (int)len, layer->text, t->keys);
    *seconds = 0;
    return !roofline->device || device_seconds(roofline, &work, seconds, &why) ||
           rec_fail(err, why.code, "node%s: %s", t->id, why.text);
}

/* Adds an op and its deps for each layer, and fills in the backward twins' times and
 * keys, which live in the arena of `forward`. */
static bool
add_layers(const struct input_network *network, const struct device_roofline *roofline,
           struct graph *forward, struct input_twin *twin, struct rec_error *err)
{
    double bytes = device_element(roofline->precision);
    struct texts t;

    for (size_t i = 0; i < network->nlayers; i++) {
        const struct input_layer *layer = &network->layer[i];
        struct graph_op op = {.id = t.id, .extra = t.extra, .part = 1, .parts = 1};
        op.activation = layer->out * bytes;
        op.param = layer->params * bytes;
        op.memory = op.activation + op.param;
        snprintf(t.id, sizeof t.id, "%zu", i + 1);
        if (!make_op(&t, layer, input_backward_work(layer, bytes), roofline,
                     &twin[i].compute, err) ||
            !(twin[i].extra = rec_arena_copy(&forward->arena, rec_str(t.extra), err)) ||
            !make_op(&t, layer, input_forward_work(layer, bytes), roofline, &op.compute,
                     err) ||
            !graph_add_op(forward, &op, NULL, err))
            return false;
        for (size_t j = 0; j < layer->ninputs; j++) {
            snprintf(t.src, sizeof t.src, "%u", network->read[layer->first + j] + 1);
            if (!graph_add_dep(forward, rec_str(t.src), rec_str(t.id), 0, false, "", 0,
                               err))
                return false;
        }
    }
    return graph_close(forward, err);
}

enum { KEYS_ROOM = 400 }; /* bytes */

/* Writes the keys of the graph record. */
static void
make_keys(const struct input_network *network, const struct device_roofline *roofline,
          char keys[KEYS_ROOM])
{
    const char *family = input_network_family(network);
    char number[REC_NUM_MAX];
    int n = 0;
    if (roofline->device) {
        rec_format_num(number, roofline->peak);
        n = snprintf(keys, KEYS_ROOM, "\tdevice=%.100s\tpeak=%s", roofline->device,
                     number);
    }
    n += snprintf(keys + n, (size_t)(KEYS_ROOM - n), "\tbatch=%.0f", network->batch);
    if (network->has_tokens)
        n += snprintf(keys + n, (size_t)(KEYS_ROOM - n), "\tsequence=%.0f",
                      network->sequence);
    snprintf(keys + n, (size_t)(KEYS_ROOM - n), "\tprecision=%s%s%s",
             device_precisions[roofline->precision], *family ? "\tfamily=" : "", family);
}

bool
input_network_graph(const struct input_network *network, const char *name,
                    const struct device_roofline *roofline, struct graph *graph,
                    struct rec_error *err)
{
    struct input_twin *twin = calloc(network->nlayers, sizeof *twin);
    struct graph forward = {0};
    char keys[KEYS_ROOM];
    bool ok = twin || rec_fail_memory(err);

    make_keys(network, roofline, keys);
    ok = ok && graph_start(&forward, rec_str(name), rec_str(name), "", err) &&
         add_layers(network, roofline, &forward, twin, err) &&
         graph_start(graph, rec_str(name), rec_str(name), keys, err) &&
         input_mirror(&forward, twin, graph, err);
    graph_free(&forward);
    free(twin);
    return ok;
}
