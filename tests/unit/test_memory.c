/* Memory of training steps: the published formula, and sums worked out by hand. */
#include "mixes.h"

#include <math.h>

/* memory.tsv: id model layers hidden heads seq mbs tp pp vp variant activations. The
 * first device of 1F1B has p microbatches in flight, of L / p layers each; with v chunks
 * (1 + (p - 1) / (p v)) times as much. The ends are not counted there. */
static void
test_memory(void **state)
{
    char path[4096], line[2000];
    FILE *file;
    int rows = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/../shared/golden/parallel/memory.tsv",
             getenv("ROOT"));
    if (!(file = fopen(path, "r")))
        skip();
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        unsigned l, h, a, s, b, t, p, v;
        char variant[20];
        double want, got;
        assert_int_equal(sscanf(line, "%*s %*s %u %u %u %u %u %u %u %u %19s %lf", &l, &h,
                                &a, &s, &b, &t, &p, &v, variant, &want),
                         10);
        const struct input_transformer transformer = gpt(l, h, a, 51200);
        struct parallel_model model = make(&transformer, s, true);
        struct parallel_mix mix = mix_of(t, p, v, 1, b, p);
        mix.sequence = strncmp(variant, "seq", 3) == 0;
        mix.recompute = strcmp(variant, "full") == 0     ? PARALLEL_FULL
                        : strstr(variant, "sel") != NULL ? PARALLEL_SELECTIVE
                                                         : PARALLEL_KEEP_ALL;
        got = mix.recompute == PARALLEL_FULL
                  ? 2.0 * b * s * h
                  : parallel_kept(&model.kind[0], &model, &mix);
        got *= l * (v > 1 ? 1 + (p - 1.0) / (p * (double)v) : 1);
        if (fabs(got / want - 1) > 1e-8)
            fail_msg("%.60s: %.9g", line, got);
        parallel_model_free(&model);
        rows++;
    }
    fclose(file);
    assert_true(rows >= 10);
}

/* The part of test_memory_of() that is about copies of gradients. */
static void
test_copies(const struct parallel_model *model, struct parallel_mix *mix, double held,
            double layer)
{
    enum { H = 128, WORDS = 1000 };
    struct parallel_stack stack = {.held = 4, .loss = 14};
    struct parallel_memory memory;
    parallel_memory_of(mix, model, 0, &stack, &memory);
    assert_near(memory.optimizer, 12 * held / 4, 1e-12 * held);
    assert_near(memory.copy, 4 * held / 4, 1e-12 * held);
    parallel_memory_keep(&memory, 1e3); /* the copy outweighs it and the layer */
    assert_near(memory.working, fmax(layer + 2 * 4 * H * H, held - 1e3), 1e-6);
    assert_near(memory.activations, 1e3, 0);
    stack.flat = true;
    parallel_memory_of(mix, model, 0, &stack, &memory);
    assert_near(memory.copy, 6 * held / 4, 1e-12 * held);
    parallel_memory_keep(&memory, 1e12);
    assert_near(memory.working, layer + 2 * 4 * H * H, 1e-6);
    mix->zero = 0;
    parallel_memory_of(mix, model, 0, &stack, &memory);
    assert_near(memory.copy, 8 * held, 1e-12 * held);
    mix->fp16 = false;
    parallel_memory_of(mix, model, 0, &stack, &memory);
    assert_near(memory.copy, 4.0 * WORDS * H, 1e-6);
    assert_near(memory.working, layer + 2 * 4 * H * H, 1e-6);
    mix->zero = 1;
    mix->fp16 = true;
}

/* Two stages of two layers each, full recomputation: device 0 keeps of a microbatch the
 * inputs of two layers and its own result, of 2 s h bytes, and its embedding's masks of
 * s h; one layer is computed again, which needs s h (34 + 5 a s / h) and, for the
 * gradient of its largest weight, 2 + 4 bytes for each of 4 h^2, and 2 (4 h + 4 h) bytes
 * a token for the gradients around the activation of the MLP. Weights 2, gradients 4,
 * optimizer 12 bytes a parameter, the last divided over 4 replicas. fp16: gradients 2,
 * and 2 for the largest weight; when activations are free, gradients in 32 bits, which
 * are 4 bytes more, or flat ones 6, and 8 if each replica has all. Flat ones of bf16 are
 * 4 bytes of the embedding's weights. With an overhead they count as optimizer. Weights
 * sharded over 4 replicas, under a pipeline: 4 + 4 + 8 bytes in shards; between
 * microbatches 2 + 4 bytes of all; and 2 bytes of two layers while one is computed. */
static void
test_memory_of(void **state)
{
    enum { S = 64, H = 128, A = 4, WORDS = 1000, LAYER = 12 * H * H + 13 * H };
    const struct input_transformer t = gpt(4, H, A, WORDS);
    struct parallel_model model = make(&t, S, true);
    struct parallel_mix mix = mix_of(1, 2, 1, 4, 1, 8);
    const struct parallel_stack stack = {.held = 4, .loss = 14, .overhead = 1e9};
    struct parallel_memory memory;
    (void)state;
    mix.zero = 1;
    mix.recompute = PARALLEL_FULL;
    parallel_memory_of(&mix, &model, 0, &stack, &memory);
    double held = 2.0 * LAYER + WORDS * H, layer = S * H * (34 + 5.0 * A * S / H + 16);
    assert_near(memory.weights, 2 * held, 1e-12 * held);
    assert_near(memory.gradients, 4 * held, 1e-12 * held);
    assert_near(memory.optimizer, 12 * held / 4, 1e-12 * held);
    assert_near(memory.overhead, 1e9, 0);
    assert_near(parallel_stage_kept(&mix, &model, 0), (3 * 2 + 1.0) * S * H, 1e-6);
    mix.frees = true; /* its own result */
    assert_near(parallel_stage_kept(&mix, &model, 0), (2 * 2 + 1.0) * S * H, 1e-6);
    mix.frees = false;
    assert_near(memory.working, layer + 6 * 4 * H * H, 1e-6);
    /* the last device: at the loss 14 bytes a score, its input and that of the norm */
    mix.recompute = PARALLEL_KEEP_ALL;
    parallel_memory_of(&mix, &model, 1, &stack, &memory);
    assert_near(memory.working, 14.0 * S * WORDS + 4.0 * S * H, 1e-6);
    mix.recompute = PARALLEL_FULL;
    mix.fp16 = true;
    parallel_memory_of(&mix, &model, 0, &stack, &memory);
    assert_near(memory.gradients, 2 * held, 1e-12 * held);
    assert_near(memory.optimizer, 16 * held / 4, 1e-12 * held);
    assert_near(memory.working, layer + 2 * 4 * H * H, 1e-6);
    assert_near(memory.copy, 0, 0);
    test_copies(&model, &mix, held, layer);
    mix.fp16 = false;
    mix.zero = 3;
    parallel_memory_of(&mix, &model, 0, &stack, &memory);
    assert_near(memory.weights, 2 * held, 1e-12 * held);
    assert_near(memory.gradients, 4 * held / 4 + 4 * held, 1e-12 * held);
    assert_near(memory.optimizer, 12 * held / 4, 1e-12 * held);
    assert_near(memory.working, layer + 4 * LAYER, 1e-6);
    /* one replica has the only shard, which is the whole */
    mix.dp = 1;
    parallel_memory_of(&mix, &model, 0, &stack, &memory);
    assert_near(memory.weights, 2 * held, 1e-12 * held);
    assert_near(memory.gradients, 4 * held, 1e-12 * held);
    assert_near(memory.optimizer, 12 * held, 1e-12 * held);
    /* so has each of several, if groups of one share */
    mix.dp = 4;
    mix.shard = 1;
    parallel_memory_of(&mix, &model, 0, &stack, &memory);
    assert_near(memory.gradients, 4 * held, 1e-12 * held);
    parallel_model_free(&model);
}

/* As PyTorch reserves it, on two tensor ranks with sequence parallelism: a layer that is
 * computed again keeps s h (34 / 2 + 5 a s / (2 h)) bytes and s h more of each of its two
 * gathered inputs, beside 2 bytes of two layers and 16 / 2 for gradients; the loss has 18
 * bytes a score, its input and that of the norm divided, and the gathered one of 2 s h.
 * The last device of a pipeline holds 2 + 2 bytes of each score of all 8 microbatches.
 * Without a pipeline the embedding, which is the head, stays whole. */
static void
test_memory_reserved(void **state)
{
    enum { S = 32, H = 128, A = 8, WORDS = 1000, RANK = 6 * H * H + 19 * H / 2 };
    const struct input_transformer t = gpt(4, H, A, WORDS);
    struct parallel_model model = make(&t, S, true);
    struct parallel_mix mix = mix_of(2, 2, 1, 4, 1, 8);
    const struct parallel_stack stack = {
        .held = 4, .loss = 14, .sharded_loss = 18, .reserved = true, .overhead = 1e9};
    struct parallel_memory memory;
    double layer = S * H * (17 + 5.0 * A * S / (2 * H) + 8);
    double loss = 18.0 * S * WORDS / 2 + 2.0 * S * H + 2.0 * S * H;
    (void)state;
    mix.zero = 3;
    mix.sequence = true;
    mix.recompute = PARALLEL_FULL;
    parallel_memory_of(&mix, &model, 1, &stack, &memory);
    assert_near(memory.working, layer + 2.0 * S * H + 4.0 * RANK + loss, 1e-6);
    assert_near(memory.overhead, 1e9 + 4.0 * 8 * S * WORDS / 2, 1e-6);
    parallel_memory_of(&mix, &model, 0, &stack, &memory);
    assert_near(memory.working, layer + 2.0 * S * H + 4.0 * RANK, 1e-6);
    assert_near(memory.overhead, 1e9, 1e-6);
    /* a gather in pieces beside the product leaves nothing to keep */
    mix.overlap = PARALLEL_OVERLAP_TP;
    parallel_memory_of(&mix, &model, 0, &stack, &memory);
    assert_near(memory.working, layer + 4.0 * RANK, 1e-6);
    /* attention and every second product are kept, the rest is computed again */
    mix.recompute = PARALLEL_HALF;
    parallel_memory_of(&mix, &model, 0, &stack, &memory);
    assert_near(memory.working,
                layer + 4.0 * RANK - parallel_kept(&model.kind[0], &model, &mix), 1e-6);
    mix.pp = 1;
    parallel_memory_of(&mix, &model, 0, &stack, &memory);
    assert_near(memory.weights, 2.0 * WORDS * H / 2, 1e-6);
    assert_near(memory.overhead, 1e9, 1e-6);
    parallel_model_free(&model);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_of),
        cmocka_unit_test(test_memory_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
