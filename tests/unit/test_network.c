/* Networks: published parameter counts, and a layer's time worked by hand. */
#include "unit.h"

#include "rampipe/input.h"

static const struct input_network_spec *
find(const char *name)
{
    const struct input_network_spec *spec = input_networks;
    while (strcmp(spec->name, name) != 0)
        spec++;
    return spec;
}

/* Counts as published: torchvision's model cards; BertModel of bert-large-uncased, with
 * pooler; gpt2-xl, head tied; LLaMA paper and checkpoint. */
static void
test_published_counts(void **state)
{
    static const struct {
        const char *name;
        double params;
    } published[] = {{"alexnet", 61100840},   {"vgg16", 138357544},
                     {"resnet50", 25557032},  {"bert-large", 335141888},
                     {"gpt2-xl", 1557611200}, {"llama-7b", 6738415616}};
    struct rec_error err;
    struct input_network network;
    (void)state;
    for (const struct input_network_spec *spec = input_networks; spec->name; spec++) {
        size_t i = 0, n = sizeof published / sizeof *published;
        while (i < n && strcmp(published[i].name, spec->name) != 0)
            i++;
        if (i == n)
            fail_msg("network %s has no published count", spec->name);
        assert_true(input_network_build(spec, 3, 0, &network, &err));
        assert_true(input_network_params(&network) == published[i].params);
        input_network_free(&network);
    }
}

/* Time of a layer, or of its twin, by a flat roofline. */
static double
seconds(const struct input_layer *layer, bool backward, double peak, double bandwidth,
        double efficiency, double bytes)
{
    struct device_roofline roofline = {
        .peak = peak, .bandwidth = bandwidth, .flat = efficiency};
    struct device_work work =
        backward ? input_backward_work(layer, bytes) : input_forward_work(layer, bytes);
    struct rec_error err;
    double time;
    assert_true(device_seconds(&roofline, &work, &time, &err));
    return time;
}

/*
 * VGG-16's first convolution, batch 2, on a device of 1e12 FLOP/s and 1e9 bytes/s, 4
 * bytes an element, efficiency 1/2. Weights 64*3*3*3 = 1728, biases 64. FLOPs 2 * 1728 *
 * 2 * 224^2 = 346816512 (0.35 ms); elements 2 * 224^2 * (3 + 64) = 6723584 and 1792
 * parameters, 4 bytes each: 26901504 bytes (26.9 ms), which decides. Twice for
 * efficiency, and twice that backward, for it has parameters.
 */
static void
test_roofline(void **state)
{
    struct rec_error err;
    struct input_network network;
    const struct input_layer *conv;
    (void)state;
    assert_true(input_network_build(find("vgg16"), 2, 0, &network, &err));
    conv = &network.layer[1];
    assert_true(conv->params == 1792);
    assert_true(conv->flops == 346816512);
    assert_true(conv->in + conv->out == 6723584);
    assert_string_equal(conv->kind, "convolution");
    assert_near(seconds(conv, false, 1e12, 1e9, 0.5, 4), 2 * 26901504e-9, 1e-12);
    assert_near(seconds(conv, true, 1e12, 1e9, 0.5, 4), 4 * 26901504e-9, 1e-12);
    assert_near(seconds(conv, false, 1e9, 1e12, 0.5, 4), 2 * 346816512e-9, 1e-12);
    /* the input takes no time, a ReLU as long backward as forward */
    assert_true(seconds(&network.layer[0], false, 1e12, 1e9, 0.5, 4) == 0);
    assert_true(seconds(&network.layer[2], false, 1e12, 1e9, 0.5, 4) ==
                seconds(&network.layer[2], true, 1e12, 1e9, 0.5, 4));
    input_network_free(&network);
}

/*
 * GPT-2's head, batch 1, 2 tokens, 1e9 FLOP/s against boundless memory, then the reverse.
 * Its 50257 * 1600 = 80411200 weights belong to the embedding, but are read and have a
 * gradient: FLOPs 2 * 80411200 * 2 = 321644800; moved 2 * (1600 + 50257) + 80411200 =
 * 80514914 elements of 2 bytes. Twice that backward.
 */
static void
test_tied_head(void **state)
{
    struct rec_error err;
    struct input_network network;
    const struct input_layer *head;
    (void)state;
    assert_true(input_network_build(find("gpt2-xl"), 1, 2, &network, &err));
    head = &network.layer[network.nlayers - 1];
    assert_true(head->params == 0);
    assert_true(head->weights == 80411200);
    assert_true(head->gemm[0] == 1 && head->gemm[1] == 2 && head->gemm[2] == 50257 &&
                head->gemm[3] == 1600);
    assert_near(seconds(head, false, 1e9, 1e300, 1, 2), 321644800e-9, 1e-12);
    assert_near(seconds(head, true, 1e9, 1e300, 1, 2), 2 * 321644800e-9, 1e-12);
    assert_near(seconds(head, false, 1e300, 1e9, 1, 2), 2 * 80514914e-9, 1e-12);
    input_network_free(&network);
}

/* The first attention of a network, or NULL. */
static const struct input_layer *
attention(const struct input_network *network)
{
    for (size_t i = 0; i < network->nlayers; i++)
        if (strncmp(network->layer[i].text, "Attention(", 10) == 0)
            return &network->layer[i];
    return NULL;
}

/*
 * Attention over 8 tokens of width 1024 with 16 heads, batch 3: scores 2 * 8^2 * 1024,
 * weighted sum as many, softmax 5 * 8^2 * 16; together 262144 + 5120 = 267264 a sample.
 * It reads queries, keys and values, 3 * 8 * 1024 a sample, and writes 8 * 1024. Llama's,
 * width 4096 and 32 heads, is causal: (4 * 64 * 4096 + 5 * 64 * 32) / 2 = 529408.
 */
static void
test_attention(void **state)
{
    struct rec_error err;
    struct input_network network;
    (void)state;
    assert_true(input_network_build(find("bert-large"), 3, 8, &network, &err));
    assert_non_null(attention(&network));
    assert_true(attention(&network)->flops == 3 * 267264);
    assert_true(attention(&network)->in == 3 * 3 * 8 * 1024);
    assert_true(attention(&network)->out == 3 * 8 * 1024);
    input_network_free(&network);
    assert_true(input_network_build(find("llama-7b"), 1, 8, &network, &err));
    assert_non_null(attention(&network));
    assert_true(attention(&network)->flops == 529408);
    input_network_free(&network);
}

/* Multiply-adds of convolutions and linear layers for one image, in 1e9, as torchvision
 * publishes them with its weights ("GFLOPS"). Half a unit of the last digit is allowed.
 */
static void
test_published_work(void **state)
{
    static const struct {
        const char *name;
        double gflops, unit;
    } published[] = {
        {"alexnet", 0.71, 0.01}, {"vgg16", 15.47, 0.01}, {"resnet50", 4.09, 0.01}};
    struct rec_error err;
    struct input_network network;
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        double sum = 0;
        assert_true(input_network_build(find(published[i].name), 1, 0, &network, &err));
        for (size_t j = 0; j < network.nlayers; j++)
            if (strncmp(network.layer[j].text, "Conv2d", 6) == 0 ||
                strncmp(network.layer[j].text, "Linear", 6) == 0)
                sum += network.layer[j].flops / 2e9;
        assert_near(sum, published[i].gflops, published[i].unit / 2);
        input_network_free(&network);
    }
}

/* The last layers give 1000 classes, a vector of 1024, or scores of every word; the last
 * feature map of the image networks is 6 x 6 x 256, 7 x 7 x 512, 2048. */
static void
test_shapes(void **state)
{
    static const struct {
        const char *name;
        double pooled, out;
    } want[] = {{"alexnet", 256 * 6 * 6, 1000}, {"vgg16", 512 * 7 * 7, 1000},
                {"resnet50", 2048, 1000},       {"bert-large", 0, 1024},
                {"gpt2-xl", 0, 7 * 50257},      {"llama-7b", 0, 7 * 32000}};
    struct rec_error err;
    struct input_network network;
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct input_network_spec *spec = find(want[i].name);
        double pooled = 0;
        assert_true(
            input_network_build(spec, 5, spec->sequence > 0 ? 7 : 0, &network, &err));
        assert_true(network.layer[network.nlayers - 1].out == 5 * want[i].out);
        for (size_t j = 0; j < network.nlayers; j++)
            if (strstr(network.layer[j].text, "Pool2d("))
                pooled = network.layer[j].out;
        assert_true(pooled == 5 * want[i].pooled);
        input_network_free(&network);
    }
}

/* Every layer but the last feeds another, inputs come before, the last is the sink. */
static void
test_order(void **state)
{
    struct rec_error err;
    struct input_network network;
    (void)state;
    for (const struct input_network_spec *spec = input_networks; spec->name; spec++) {
        bool used[2000] = {false};
        assert_true(input_network_build(spec, 1, 0, &network, &err));
        assert_true(network.nlayers < 2000);
        for (size_t i = 0; i < network.nlayers; i++)
            for (size_t j = 0; j < network.layer[i].ninputs; j++) {
                uint32_t from = network.read[network.layer[i].first + j];
                assert_true(from < i);
                used[from] = true;
            }
        for (size_t i = 0; i + 1 < network.nlayers; i++)
            assert_true(used[i]);
        input_network_free(&network);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published_counts),
                                       cmocka_unit_test(test_roofline),
                                       cmocka_unit_test(test_tied_head),
                                       cmocka_unit_test(test_attention),
                                       cmocka_unit_test(test_published_work),
                                       cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
