/* Networks: published parameter counts, and a layer's time worked by hand. */
#include "unit.h"

#include "rampipe/architecture.h"

static const struct arch_spec *
find(const char *name)
{
    const struct arch_spec *spec = arch_specs;
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
    struct arch arch;
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        assert_true(arch_build(find(published[i].name), 3, 0, &arch, &err));
        assert_true(arch_params(&arch) == published[i].params);
        arch_free(&arch);
    }
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
    struct arch_roofline memory = {1e12, 1e9, 0.5, 4}, compute = {1e9, 1e12, 0.5, 4};
    struct rec_error err;
    struct arch arch;
    const struct arch_layer *conv;
    (void)state;
    assert_true(arch_build(find("vgg16"), 2, 0, &arch, &err));
    conv = &arch.layer[1];
    assert_true(conv->params == 1792);
    assert_true(conv->flops == 346816512);
    assert_true(conv->in + conv->out == 6723584);
    assert_near(arch_forward_seconds(conv, &memory), 2 * 26901504e-9, 1e-12);
    assert_near(arch_backward_seconds(conv, &memory), 4 * 26901504e-9, 1e-12);
    assert_near(arch_forward_seconds(conv, &compute), 2 * 346816512e-9, 1e-12);
    /* the input takes no time, a ReLU as long backward as forward */
    assert_true(arch_forward_seconds(&arch.layer[0], &memory) == 0);
    assert_true(arch_forward_seconds(&arch.layer[2], &memory) ==
                arch_backward_seconds(&arch.layer[2], &memory));
    arch_free(&arch);
}

/* Every layer but the last feeds another, inputs come before, and the last is the sink.
 */
static void
test_order(void **state)
{
    struct rec_error err;
    struct arch arch;
    (void)state;
    for (const struct arch_spec *spec = arch_specs; spec->name; spec++) {
        bool used[2000] = {false};
        assert_true(arch_build(spec, 1, 0, &arch, &err));
        assert_true(arch.nlayers < 2000);
        for (size_t i = 0; i < arch.nlayers; i++)
            for (uint32_t j = 0; j < arch.layer[i].ninputs; j++) {
                assert_true(arch.layer[i].input[j] < i);
                used[arch.layer[i].input[j]] = true;
            }
        for (size_t i = 0; i + 1 < arch.nlayers; i++)
            assert_true(used[i]);
        arch_free(&arch);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published_counts),
                                       cmocka_unit_test(test_roofline),
                                       cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
