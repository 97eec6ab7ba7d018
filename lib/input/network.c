/* Networks as lists of layers: how layers are added, the convolutional networks, and the
 * table of named networks. Shapes and their sources: see tools/pdgen.h2m. Texts of layers
 * are as PyTorch prints them, as in PipeDream's profiles. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- building ------------------------------------------------------------ */

bool
input_network_add(struct input_network *network, const struct input_layer *layer,
                  const uint32_t *reads, size_t n, struct rec_error *err)
{
    struct input_layer *to;
    if (!rec_grow(&network->layer, &network->room, network->nlayers + 1,
                  sizeof *network->layer, err) ||
        !rec_grow(&network->read, &network->read_room, network->nreads + n + 1,
                  sizeof *network->read, err))
        return false;
    to = &network->layer[network->nlayers++];
    *to = *layer;
    to->first = network->nreads;
    to->ninputs = n;
    for (size_t i = 0; i < n; i++)
        network->read[network->nreads++] = reads[i];
    return true;
}

/* By default a layer reads all that its inputs write; input_reads() sets another
 * number. */
uint32_t
input_add(struct input_network *a, uint32_t x, uint32_t y, double params, double flops,
          double out, const char *format, ...)
{
    struct input_layer layer = {.params = params,
                                .weights = params,
                                .flops = flops,
                                .out = out,
                                .kind = "memory"};
    uint32_t reads[2], n = 0;
    struct rec_error err;
    va_list args;

    if (a->failed)
        return 0;
    if (x != INPUT_NONE)
        reads[n++] = x;
    if (y != INPUT_NONE)
        reads[n++] = y;
    for (uint32_t i = 0; i < n; i++)
        layer.in += a->layer[reads[i]].out;
    va_start(args, format);
    vsnprintf(layer.text, sizeof layer.text, format, args);
    va_end(args);
    a->failed = !input_network_add(a, &layer, reads, n, &err);
    return a->failed ? 0 : (uint32_t)a->nlayers - 1;
}

/* The inputs of a layer are consecutive in ->read, so only the last layer can get one. */
void
input_also(struct input_network *a, uint32_t at, uint32_t x)
{
    struct rec_error err;
    if (a->failed)
        return;
    a->failed = !rec_grow(&a->read, &a->read_room, a->nreads + 1, sizeof *a->read, &err);
    if (a->failed)
        return;
    a->read[a->nreads++] = x;
    a->layer[at].ninputs++;
}

uint32_t
input_reads(struct input_network *a, uint32_t at, double elements)
{
    if (!a->failed)
        a->layer[at].in = elements;
    return at;
}

uint32_t
input_classify(struct input_network *a, uint32_t at, const char *kind, double batch,
               double m, double n, double k)
{
    const double gemm[4] = {batch, m, n, k};
    if (!a->failed) {
        a->layer[at].kind = kind;
        memcpy(a->layer[at].gemm, gemm, sizeof gemm);
    }
    return at;
}

/* The output of a layer of a convolutional network: a square image. */
struct image {
    uint32_t at; /* the layer that writes it */
    unsigned channels;
    unsigned size; /* width and height, pixels */
};

/* The elements of the images of a whole batch. */
static double
pixels(const struct input_network *a, struct image x)
{
    return a->batch * x.channels * x.size * x.size;
}

/* A convolution with a square kernel: for each element written, one multiply-add for each
 * weight of its output channel. */
static struct image
conv(struct input_network *a, struct image x, unsigned out, unsigned kernel,
     unsigned stride, unsigned pad, bool bias)
{
    struct image y = {0, out, (x.size + 2 * pad - kernel) / stride + 1};
    double weights = (double)out * x.channels * kernel * kernel;
    char padding[40] = "";
    if (pad) /* PyTorch does not print a padding of 0, the default */
        snprintf(padding, sizeof padding, ", padding=(%u, %u)", pad, pad);
    y.at = input_add(a, x.at, INPUT_NONE, weights + (bias ? out : 0),
                     2 * weights * a->batch * y.size * y.size, pixels(a, y),
                     "Conv2d(%u, %u, kernel_size=(%u, %u), stride=(%u, %u)%s%s)",
                     x.channels, out, kernel, kernel, stride, stride, padding,
                     bias ? "" : ", bias=False");
    input_classify(a, y.at, "convolution", 0, 0, 0, 0);
    return y;
}

static struct image
relu(struct input_network *a, struct image x)
{
    x.at = input_add(a, x.at, INPUT_NONE, 0, pixels(a, x), pixels(a, x), "ReLU(inplace)");
    return x;
}

/* Four operations per element: subtract the mean, divide, scale, shift. */
static struct image
batch_norm(struct input_network *a, struct image x)
{
    x.at =
        input_add(a, x.at, INPUT_NONE, 2.0 * x.channels, 4 * pixels(a, x), pixels(a, x),
                  "BatchNorm2d(%u, eps=1e-05, momentum=0.1, affine=True, "
                  "track_running_stats=True)",
                  x.channels);
    return x;
}

/* A pooling counts one operation for each element of its window. */
static struct image
pool(struct input_network *a, struct image x, bool max, unsigned kernel, unsigned stride,
     unsigned pad)
{
    struct image y = {0, x.channels, (x.size + 2 * pad - kernel) / stride + 1};
    y.at = input_add(a, x.at, INPUT_NONE, 0, pixels(a, y) * kernel * kernel, pixels(a, y),
                     "%sPool2d(kernel_size=%u, stride=%u, padding=%u%s)",
                     max ? "Max" : "Avg", kernel, stride, pad,
                     max ? ", dilation=1, ceil_mode=False" : "");
    return y;
}

uint32_t
input_linear(struct input_network *a, uint32_t x, double rows, unsigned in, unsigned out,
             bool bias)
{
    double weights = (double)in * out;
    uint32_t y =
        input_add(a, x, INPUT_NONE, weights + (bias ? out : 0), 2 * weights * rows,
                  rows * out, "Linear(in_features=%u, out_features=%u, bias=%s)", in, out,
                  bias ? "True" : "False");
    return input_classify(a, y, "matmul", 1, rows, out, in);
}

uint32_t
input_pointwise(struct input_network *a, uint32_t x, double flops_each, const char *text)
{
    double n = a->failed ? 0 : a->layer[x].out;
    return input_add(a, x, INPUT_NONE, 0, flops_each * n, n, "%s", text);
}

static struct image
input_image(struct input_network *a)
{
    struct image x = {0, 3, 224};
    x.at = input_add(a, INPUT_NONE, INPUT_NONE, 0, 0, pixels(a, x), "Input");
    return x;
}

/* ---- convolutional networks ---------------------------------------------- */

/* The network of Krizhevsky, "One weird trick for parallelizing convolutional neural
 * networks", 2014, with one tower. */
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
    y = input_pointwise(a, x.at, 1, "Dropout(p=0.5)");
    y = input_pointwise(a, input_linear(a, y, a->batch, 9216, 4096, true), 1,
                        "ReLU(inplace)");
    y = input_pointwise(a, y, 1, "Dropout(p=0.5)");
    y = input_pointwise(a, input_linear(a, y, a->batch, 4096, 4096, true), 1,
                        "ReLU(inplace)");
    input_linear(a, y, a->batch, 4096, 1000, true);
}

/* Configuration D of Simonyan and Zisserman, 2014. */
static void
build_vgg16(struct input_network *a)
{
    /* the output channels of the convolutions; 0: a pooling */
    static const unsigned width[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                                     0,  512, 512, 512, 0,   512, 512, 512, 0};
    struct image x = input_image(a);
    uint32_t y;
    for (size_t i = 0; i < sizeof width / sizeof *width; i++)
        x = width[i] ? relu(a, conv(a, x, width[i], 3, 1, 1, true))
                     : pool(a, x, true, 2, 2, 0);
    y = input_pointwise(a, input_linear(a, x.at, a->batch, 25088, 4096, true), 1,
                        "ReLU(inplace)");
    y = input_pointwise(a, y, 1, "Dropout(p=0.5)");
    y = input_pointwise(a, input_linear(a, y, a->batch, 4096, 4096, true), 1,
                        "ReLU(inplace)");
    y = input_pointwise(a, y, 1, "Dropout(p=0.5)");
    input_linear(a, y, a->batch, 4096, 1000, true);
}

/* A block of ResNet (He et al., 2016, figure 5): 1x1, 3x3 and 1x1 convolutions beside a
 * shortcut, which has a convolution of its own if the shapes differ. As in PyTorch, the
 * 3x3 convolution has the stride. */
static struct image
bottleneck(struct input_network *a, struct image x, unsigned width, unsigned stride)
{
    struct image y = x, shortcut = x;
    y = relu(a, batch_norm(a, conv(a, y, width, 1, 1, 0, false)));
    y = relu(a, batch_norm(a, conv(a, y, width, 3, stride, 1, false)));
    y = batch_norm(a, conv(a, y, 4 * width, 1, 1, 0, false));
    if (stride != 1 || x.channels != 4 * width)
        shortcut = batch_norm(a, conv(a, x, 4 * width, 1, stride, 0, false));
    y.at = input_add(a, y.at, shortcut.at, 0, pixels(a, y), pixels(a, y), "Add");
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
    input_linear(a, x.at, a->batch, 2048, 1000, true);
}

/* ---- the tables ---------------------------------------------------------- */

static const struct input_transformer bert_large = {.width = 1024,
                                                    .layers = 24,
                                                    .heads = 16,
                                                    .kv_heads = 16,
                                                    .head_width = 64,
                                                    .inner = 4096,
                                                    .words = 30522,
                                                    .positions = 512,
                                                    .types = 2,
                                                    .norm_embedding = true,
                                                    .norm_behind = true,
                                                    .pooler = true,
                                                    .attention_bias = true,
                                                    .output_bias = true,
                                                    .mlp_bias = true};
static const struct input_transformer gpt2_xl = {.width = 1600,
                                                 .layers = 48,
                                                 .heads = 25,
                                                 .kv_heads = 25,
                                                 .head_width = 64,
                                                 .inner = 6400,
                                                 .words = 50257,
                                                 .positions = 1024,
                                                 .causal = true,
                                                 .norm_before = true,
                                                 .norm_final = true,
                                                 .head = true,
                                                 .tied = true,
                                                 .attention_bias = true,
                                                 .output_bias = true,
                                                 .mlp_bias = true};
static const struct input_transformer llama_7b = {.width = 4096,
                                                  .layers = 32,
                                                  .heads = 32,
                                                  .kv_heads = 32,
                                                  .head_width = 128,
                                                  .inner = 11008,
                                                  .words = 32000,
                                                  .causal = true,
                                                  .norm_before = true,
                                                  .norm_final = true,
                                                  .rms = true,
                                                  .gated = true,
                                                  .head = true,
                                                  .activation = INPUT_SILU};

const struct input_network_spec input_networks[] = {
    {"alexnet", 0, build_alexnet, NULL, "AlexNet, one tower, images of 224 x 224"},
    {"vgg16", 0, build_vgg16, NULL, "VGG-16, images of 224 x 224"},
    {"resnet50", 0, build_resnet50, NULL, "ResNet-50, images of 224 x 224"},
    {"bert-large", 512, NULL, &bert_large, "BERT-large, uncased, with pooler"},
    {"gpt2-xl", 1024, NULL, &gpt2_xl, "GPT-2 XL, head tied to the embedding"},
    {"llama-7b", 2048, NULL, &llama_7b, "Llama-7B"},
    {NULL, 0, NULL, NULL, NULL}};

bool
input_network_build(const struct input_network_spec *spec, double batch, double sequence,
                    struct input_network *network, struct rec_error *err)
{
    *network = (struct input_network){.batch = batch, .sequence = sequence};
    if (sequence == 0)
        network->sequence = spec->sequence;
    network->has_tokens = spec->transformer && spec->transformer->patch == 0;
    if (spec->transformer)
        input_transformer_build(network, spec->transformer);
    else
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
    free(network->read);
    *network = (struct input_network){0};
}
