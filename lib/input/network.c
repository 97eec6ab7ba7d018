/* Networks layer by layer. Sources: see tools/pdgen.h2m. */
#include "rampipe/input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- building ------------------------------------------------------------ */

/* Appends a layer that reads the layers listed (NONE ends the list); its index. */
#define NONE UINT32_MAX

static uint32_t add(struct input_network *a, uint32_t x, uint32_t y, double params,
                    double flops, double out, const char *format, ...) REC_PRINTF(7, 8);

static uint32_t
add(struct input_network *a, uint32_t x, uint32_t y, double params, double flops,
    double out, const char *format, ...)
{
    struct input_layer *layer;
    struct rec_error err;
    va_list args;

    if (a->failed ||
        !rec_grow(&a->layer, &a->room, a->nlayers + 1, sizeof *a->layer, &err)) {
        a->failed = true;
        return 0;
    }
    layer = &a->layer[a->nlayers];
    *layer = (struct input_layer){
        .params = params, .weights = params, .flops = flops, .out = out};
    if (x != NONE)
        layer->input[layer->ninputs++] = x;
    if (y != NONE)
        layer->input[layer->ninputs++] = y;
    for (uint32_t i = 0; i < layer->ninputs; i++)
        layer->in += a->layer[layer->input[i]].out;
    va_start(args, format);
    vsnprintf(layer->text, sizeof layer->text, format, args);
    va_end(args);
    return (uint32_t)a->nlayers++;
}

/* An image on its way through a convolutional network. */
struct image {
    uint32_t at; /* the layer that made it */
    unsigned channels, size;
};

static double
pixels(const struct input_network *a, struct image x)
{
    return a->batch * x.channels * x.size * x.size;
}

static struct image
conv(struct input_network *a, struct image x, unsigned out, unsigned kernel,
     unsigned stride, unsigned pad, bool bias)
{
    struct image y = {0, out, (x.size + 2 * pad - kernel) / stride + 1};
    double weights = (double)out * x.channels * kernel * kernel;
    char padding[40] = "";
    if (pad) /* PyTorch does not print the default */
        snprintf(padding, sizeof padding, ", padding=(%u, %u)", pad, pad);
    y.at = add(a, x.at, NONE, weights + (bias ? out : 0),
               2 * weights * a->batch * y.size * y.size, pixels(a, y),
               "Conv2d(%u, %u, kernel_size=(%u, %u), stride=(%u, %u)%s%s)", x.channels,
               out, kernel, kernel, stride, stride, padding, bias ? "" : ", bias=False");
    return y;
}

static struct image
relu(struct input_network *a, struct image x)
{
    x.at = add(a, x.at, NONE, 0, pixels(a, x), pixels(a, x), "ReLU(inplace)");
    return x;
}

static struct image
batch_norm(struct input_network *a, struct image x)
{
    x.at = add(a, x.at, NONE, 2.0 * x.channels, 4 * pixels(a, x), pixels(a, x),
               "BatchNorm2d(%u, eps=1e-05, momentum=0.1, affine=True, "
               "track_running_stats=True)",
               x.channels);
    return x;
}

static struct image
pool(struct input_network *a, struct image x, bool max, unsigned kernel, unsigned stride,
     unsigned pad)
{
    struct image y = {0, x.channels, (x.size + 2 * pad - kernel) / stride + 1};
    y.at = add(a, x.at, NONE, 0, pixels(a, y) * kernel * kernel, pixels(a, y),
               "%sPool2d(kernel_size=%u, stride=%u, padding=%u%s)", max ? "Max" : "Avg",
               kernel, stride, pad, max ? ", dilation=1, ceil_mode=False" : "");
    return y;
}

static uint32_t
linear(struct input_network *a, uint32_t x, double rows, unsigned in, unsigned out,
       bool bias)
{
    double weights = (double)in * out;
    return add(a, x, NONE, weights + (bias ? out : 0), 2 * weights * rows, rows * out,
               "Linear(in_features=%u, out_features=%u, bias=%s)", in, out,
               bias ? "True" : "False");
}

/* One operand in, as many elements out. */
static uint32_t
pointwise(struct input_network *a, uint32_t x, double flops_each, const char *text)
{
    double n = a->failed ? 0 : a->layer[x].out;
    return add(a, x, NONE, 0, flops_each * n, n, "%s", text);
}

static struct image
input_image(struct input_network *a)
{
    struct image x = {0, 3, 224};
    x.at = add(a, NONE, NONE, 0, 0, pixels(a, x), "Input");
    return x;
}

/* ---- convolutional networks ---------------------------------------------- */

static void
build_alexnet(struct input_network *a)
{
    struct image x = input_image(a);
    uint32_t y;
    x = pool(a, relu(a, conv(a, x, 64, 11, 4, 2, true)), true, 3, 2, 0);
    x = pool(a, relu(a, conv(a, x, 192, 5, 1, 2, true)), true, 3, 2, 0);
    x = relu(a, conv(a, x, 384, 3, 1, 1, true));
    x = relu(a, conv(a, x, 256, 3, 1, 1, true));
    x = pool(a, relu(a, conv(a, x, 256, 3, 1, 1, true)), true, 3, 2, 0);
    y = pointwise(a, x.at, 1, "Dropout(p=0.5)");
    y = pointwise(a, linear(a, y, a->batch, 9216, 4096, true), 1, "ReLU(inplace)");
    y = pointwise(a, y, 1, "Dropout(p=0.5)");
    y = pointwise(a, linear(a, y, a->batch, 4096, 4096, true), 1, "ReLU(inplace)");
    linear(a, y, a->batch, 4096, 1000, true);
}

static void
build_vgg16(struct input_network *a)
{
    static const unsigned width[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                                     0,  512, 512, 512, 0,   512, 512, 512, 0};
    struct image x = input_image(a);
    uint32_t y;
    for (size_t i = 0; i < sizeof width / sizeof *width; i++)
        x = width[i] ? relu(a, conv(a, x, width[i], 3, 1, 1, true))
                     : pool(a, x, true, 2, 2, 0);
    y = pointwise(a, linear(a, x.at, a->batch, 25088, 4096, true), 1, "ReLU(inplace)");
    y = pointwise(a, y, 1, "Dropout(p=0.5)");
    y = pointwise(a, linear(a, y, a->batch, 4096, 4096, true), 1, "ReLU(inplace)");
    y = pointwise(a, y, 1, "Dropout(p=0.5)");
    linear(a, y, a->batch, 4096, 1000, true);
}

static struct image
bottleneck(struct input_network *a, struct image x, unsigned width, unsigned stride)
{
    struct image y = x, shortcut = x;
    y = relu(a, batch_norm(a, conv(a, y, width, 1, 1, 0, false)));
    y = relu(a, batch_norm(a, conv(a, y, width, 3, stride, 1, false)));
    y = batch_norm(a, conv(a, y, 4 * width, 1, 1, 0, false));
    if (stride != 1 || x.channels != 4 * width)
        shortcut = batch_norm(a, conv(a, x, 4 * width, 1, stride, 0, false));
    y.at = add(a, y.at, shortcut.at, 0, pixels(a, y), pixels(a, y), "Add");
    return relu(a, y);
}

static void
build_resnet50(struct input_network *a)
{
    static const unsigned blocks[] = {3, 4, 6, 3};
    struct image x = input_image(a);
    x = relu(a, batch_norm(a, conv(a, x, 64, 7, 2, 3, false)));
    x = pool(a, x, true, 3, 2, 1);
    for (unsigned stage = 0; stage < 4; stage++)
        for (unsigned i = 0; i < blocks[stage]; i++)
            x = bottleneck(a, x, 64u << stage, stage > 0 && i == 0 ? 2 : 1);
    x = pool(a, x, false, 7, 1, 0);
    linear(a, x.at, a->batch, 2048, 1000, true);
}

/* ---- transformers -------------------------------------------------------- */

static uint32_t
embedding(struct input_network *a, uint32_t x, unsigned words, unsigned width)
{
    double out = a->batch * a->sequence * width;
    return add(a, x, NONE, (double)words * width, 0, out, "Embedding(%u, %u)", words,
               width);
}

static uint32_t
layer_norm(struct input_network *a, uint32_t x, unsigned width, bool rms)
{
    double out = a->batch * a->sequence * width;
    return add(a, x, NONE, (rms ? 1.0 : 2.0) * width, (rms ? 4 : 8) * out, out, "%s(%u)",
               rms ? "RMSNorm" : "LayerNorm", width);
}

/* Scores, softmax and their weighted sum: 4 n^2 width FLOPs for n tokens, half of them
 * below a causal mask; fused, so that only queries, keys, values and results are moved.
 */
static uint32_t
attention(struct input_network *a, uint32_t qkv, unsigned width, unsigned heads,
          bool causal)
{
    double n = a->sequence, flops = 4 * n * n * width + 5 * n * n * heads;
    return add(a, qkv, NONE, 0, a->batch * flops / (causal ? 2 : 1), a->batch * n * width,
               "Attention(heads=%u, width=%u%s)", heads, width, causal ? ", causal" : "");
}

static uint32_t
residual(struct input_network *a, uint32_t x, uint32_t y)
{
    double n = a->failed ? 0 : a->layer[x].out;
    return add(a, x, y, 0, n, n, "Add");
}

/* A block of BERT (norm after) or GPT-2 (norm before). */
static uint32_t
encoder_block(struct input_network *a, uint32_t x, unsigned width, unsigned heads,
              bool before)
{
    double rows = a->batch * a->sequence;
    uint32_t y = before ? layer_norm(a, x, width, false) : x;
    y = linear(a, y, rows, width, 3 * width, true);
    y = linear(a, attention(a, y, width, heads, before), rows, width, width, true);
    x = residual(a, y, x);
    if (!before)
        x = layer_norm(a, x, width, false);
    y = before ? layer_norm(a, x, width, false) : x;
    y = pointwise(a, linear(a, y, rows, width, 4 * width, true), 8, "GELU()");
    x = residual(a, linear(a, y, rows, 4 * width, width, true), x);
    return before ? x : layer_norm(a, x, width, false);
}

static uint32_t
input_tokens(struct input_network *a)
{
    return add(a, NONE, NONE, 0, 0, a->batch * a->sequence, "Input");
}

static void
build_bert_large(struct input_network *a)
{
    uint32_t tokens = input_tokens(a), x = embedding(a, tokens, 30522, 1024), first;
    x = residual(a, x, embedding(a, tokens, 512, 1024));
    x = residual(a, x, embedding(a, tokens, 2, 1024));
    x = layer_norm(a, x, 1024, false);
    for (int i = 0; i < 24; i++)
        x = encoder_block(a, x, 1024, 16, false);
    first = add(a, x, NONE, 0, 0, a->batch * 1024, "FirstToken()");
    pointwise(a, linear(a, first, a->batch, 1024, 1024, true), 8, "Tanh()");
}

static void
build_gpt2_xl(struct input_network *a)
{
    uint32_t tokens = input_tokens(a), x = embedding(a, tokens, 50257, 1600), head;
    double rows = a->batch * a->sequence;
    x = residual(a, x, embedding(a, tokens, 1024, 1600));
    for (int i = 0; i < 48; i++)
        x = encoder_block(a, x, 1600, 25, true);
    x = layer_norm(a, x, 1600, false);
    head = linear(a, x, rows, 1600, 50257, false);
    if (!a->failed)
        a->layer[head].params = 0; /* the embedding owns the weights; still read here */
}

static void
build_llama_7b(struct input_network *a)
{
    uint32_t x = embedding(a, input_tokens(a), 32000, 4096), y, gate;
    double rows = a->batch * a->sequence;
    for (int i = 0; i < 32; i++) {
        y = linear(a, layer_norm(a, x, 4096, true), rows, 4096, 3 * 4096, false);
        y = linear(a, attention(a, y, 4096, 32, true), rows, 4096, 4096, false);
        x = residual(a, y, x);
        y = layer_norm(a, x, 4096, true);
        gate = pointwise(a, linear(a, y, rows, 4096, 11008, false), 5, "SiLU()");
        y = linear(a, y, rows, 4096, 11008, false);
        y = add(a, gate, y, 0, rows * 11008, rows * 11008, "Mul");
        x = residual(a, linear(a, y, rows, 11008, 4096, false), x);
    }
    linear(a, layer_norm(a, x, 4096, true), rows, 4096, 32000, false);
}

/* ---- the tables ---------------------------------------------------------- */

const struct input_network_spec input_networks[] = {
    {"alexnet", 0, build_alexnet, "AlexNet, one tower, images of 224 x 224"},
    {"vgg16", 0, build_vgg16, "VGG-16, images of 224 x 224"},
    {"resnet50", 0, build_resnet50, "ResNet-50, images of 224 x 224"},
    {"bert-large", 512, build_bert_large, "BERT-large, uncased, with pooler"},
    {"gpt2-xl", 1024, build_gpt2_xl, "GPT-2 XL, head tied to the embedding"},
    {"llama-7b", 2048, build_llama_7b, "Llama-7B"},
    {NULL, 0, NULL, NULL}};

const struct input_device input_devices[] = {
    {"p100", {10.6e12, 0, 21.2e12, 0}, 732e9, "NVIDIA Tesla P100 SXM2 datasheet"},
    {"v100", {15.7e12, 0, 125e12, 0}, 900e9, "NVIDIA V100 SXM2 datasheet"},
    {"t4", {8.1e12, 0, 65e12, 0}, 320e9, "NVIDIA T4 datasheet"},
    {"a100",
     {19.5e12, 156e12, 312e12, 312e12},
     2.039e12,
     "NVIDIA A100 80GB SXM datasheet"},
    {"h100", {67e12, 494.7e12, 989.4e12, 989.4e12}, 3.35e12, "NVIDIA H100 SXM datasheet"},
    {NULL, {0}, 0, NULL}};

bool
input_network_build(const struct input_network_spec *spec, double batch, double sequence,
                    struct input_network *network, struct rec_error *err)
{
    *network = (struct input_network){.batch = batch, .sequence = sequence};
    if (sequence == 0)
        network->sequence = spec->sequence;
    spec->build(network);
    if (!network->failed)
        return true;
    input_network_free(network);
    return rec_fail_memory(err);
}

double
input_network_params(const struct input_network *network)
{
    double sum = 0;
    for (size_t i = 0; i < network->nlayers; i++)
        sum += network->layer[i].params;
    return sum;
}

void
input_network_free(struct input_network *network)
{
    free(network->layer);
    *network = (struct input_network){0};
}

static double
seconds(const struct input_layer *layer, const struct input_roofline *r, double times)
{
    double moved = (layer->in + layer->out + layer->weights) * r->bytes;
    return times * fmax(layer->flops / r->peak, moved / r->bandwidth) / r->efficiency;
}

double
input_forward_seconds(const struct input_layer *layer,
                      const struct input_roofline *roofline)
{
    return layer->ninputs ? seconds(layer, roofline, 1) : 0;
}

double
input_backward_seconds(const struct input_layer *layer,
                       const struct input_roofline *roofline)
{
    return layer->ninputs ? seconds(layer, roofline, layer->weights > 0 ? 2 : 1) : 0;
}
