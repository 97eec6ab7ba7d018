/* Training steps under a mix of parallelism: times worked out by hand, and laws that hold
 * for any mix. test_memory.c has their memory. */
#include "mixes.h"

#include <math.h>
#include <string.h>

/* ---- times ------------------------------------------------------------------ */

static const struct parallel_stack plain = {.name = "plain",
                                            .share = 1,
                                            .memory = 1,
                                            .attention = 1,
                                            .exposed = 0.25,
                                            .adapter = 1,
                                            .gradient = 2};

static struct parallel_machine
machine_of(const struct parallel_stack *stack)
{
    return (struct parallel_machine){.peak = {1e14, 2e14, 4e14},
                                     .processors = 100,
                                     .bandwidth = 1e12,
                                     .memory = 8e10,
                                     .node = 8,
                                     .inside = 1e11,
                                     .adapter = 1e10,
                                     .inside_latency = 1e-6,
                                     .latency = 1e-5,
                                     .stack = stack,
                                     .system = ""};
}

/* 1F1B: with stages that are alike but for their ends, at least (m + p - 1) times the
 * shortest and at most that of the longest. All parts of a device's time, its waiting and
 * what follows add up to the step. */
static void
test_adds_up(void **state)
{
    const struct input_transformer t = gpt(24, 1024, 16, 50000);
    struct parallel_model model = make(&t, 1024, false);
    struct parallel_machine machine = machine_of(&plain);
    (void)state;
    for (uint32_t i = 0; i < 64; i++) {
        struct parallel_mix mix = mix_of(1U << (i & 3), 1U << (i >> 2 & 1),
                                         1 + (i >> 2 & 1) * (i >> 3 & 1), 8, 2, 8);
        struct parallel_step step;
        struct rec_error err;
        mix.zero = i >> 4;
        mix.sequence = mix.tp > 1 && (i & 1);
        mix.overlap = i & 16 ? PARALLEL_OVERLAP_DP | PARALLEL_OVERLAP_TP : 0;
        assert_true(parallel_step(&model, &mix, &machine, &step, &err));
        double sum = parallel_parts_sum(&step.parts) + step.transfer + step.idle +
                     step.once.gradients + step.once.weights + step.once.optimizer;
        assert_near(sum / step.seconds, 1, 1e-12);
        assert_true(step.idle >= -1e-12 && step.once.gradients >= 0);
        assert_near(step.flops / parallel_model_flops(&model, 128, 1, false), 1, 1e-12);
    }
    parallel_model_free(&model);
}

/* A machine that is twice as fast in everything, latencies too, takes half the time. */
static void
test_scales(void **state)
{
    const struct input_transformer t = gpt(16, 2048, 16, 50000);
    struct parallel_model model = make(&t, 2048, true);
    struct parallel_stack stack = plain, quick;
    struct parallel_machine slow, fast;
    struct parallel_mix mix = mix_of(4, 4, 2, 16, 1, 8);
    struct parallel_step a, b;
    struct rec_error err;
    (void)state;
    stack.host = 1e-5;
    stack.blocking = true;
    quick = stack;
    quick.host /= 2;
    slow = machine_of(&stack);
    fast = machine_of(&quick);
    for (int i = 0; i < 3; i++)
        fast.peak[i] *= 2;
    fast.bandwidth *= 2;
    fast.inside *= 2;
    fast.adapter *= 2;
    fast.inside_latency /= 2;
    fast.latency /= 2;
    mix.recompute = PARALLEL_SELECTIVE;
    assert_true(parallel_step(&model, &mix, &slow, &a, &err));
    assert_true(parallel_step(&model, &mix, &fast, &b, &err));
    assert_near(a.seconds / b.seconds, 2, 1e-12);
    parallel_model_free(&model);
}

/* Two matrices of scores are no multiple of four: softmax moves 32 bytes a score more
 * forward and 34 backward than the joined kernel does with twice as many samples, in
 * 4 kernels more (backward counts twice), and keeps its result in 32 bits. Other ops move
 * the same for each token. With a second for each kernel, the host sets the time. */
static void
test_softmax(void **state)
{
    const struct input_transformer t = gpt(1, 1024, 16, 50000);
    struct parallel_model model = make(&t, 512, true);
    struct parallel_stack stack = plain;
    struct parallel_machine machine = machine_of(&stack);
    struct parallel_mix one = mix_of(8, 1, 1, 1, 1, 1), two = mix_of(8, 1, 1, 1, 2, 1);
    struct parallel_step a, b;
    struct rec_error err;
    (void)state;
    assert_true(parallel_step(&model, &one, &machine, &a, &err));
    assert_true(parallel_step(&model, &two, &machine, &b, &err));
    assert_near(2 * a.parts.moves - b.parts.moves, 2 * 66 * 2 * 512 * 512 / 1e12, 1e-12);
    assert_near(2 * parallel_kept(&model.kind[0], &model, &one) -
                    parallel_kept(&model.kind[0], &model, &two),
                2 * 2 * 2 * 512 * 512, 1e-6);
    stack.host = 1;
    assert_true(parallel_step(&model, &one, &machine, &a, &err));
    assert_true(parallel_step(&model, &two, &machine, &b, &err));
    assert_near(parallel_parts_sum(&a.parts) - parallel_parts_sum(&b.parts), 3 * 4, 1e-9);
    /* of the 8 heads of tensor ranks, context ranks that deal them have 2 */
    one = mix_of(2, 1, 1, 1, 1, 1);
    one.cp = 4;
    two = one;
    two.deal_heads = true;
    assert_near(parallel_kept(&model.kind[0], &model, &two) -
                    parallel_kept(&model.kind[0], &model, &one),
                2 * 8 * 128 * 512, 1e-6);
    parallel_model_free(&model);
}

/* A message of 2 x 2 x 512 x 1024 bytes stays in a node of 8 devices if all stages do,
 * and takes 1e-6 s and its bytes at .78 x 1e11 / s; if one stage lies elsewhere, 1e-5 s
 * and its bytes at 1e10 / s. The first device, which ends last, sends one for each of 16
 * microbatches, which tensor ranks divide. Of pipelines of three neighbours, the third
 * one begins in one node and ends in the next. Messages inside set the pace if they are
 * slower, and if there are some: not if tensor ranks fill the node. */
static void
test_messages(void **state)
{
    static const uint32_t layers[] = {3, 3, 2};
    const struct input_transformer t = gpt(8, 1024, 16, 50000);
    struct parallel_model model = make(&t, 512, false);
    struct parallel_stack stack = plain;
    struct parallel_machine machine = machine_of(&stack);
    double bytes = 2 * 2 * 512 * 1024;
    (void)state;
    stack.blocking = true;
    for (uint32_t tp = 1; tp <= 8; tp *= 2) {
        struct parallel_mix mix = mix_of(tp, 4, 1, 1, 2, 16);
        struct parallel_step step;
        struct rec_error err;
        assert_true(parallel_step(&model, &mix, &machine, &step, &err));
        assert_near(
            step.transfer,
            16 * (tp <= 2 ? 1e-6 + bytes / tp / 0.78e11 : 1e-5 + bytes / tp / 1e10),
            1e-12);
    }
    {
        struct parallel_mix mix = mix_of(1, 3, 1, 8, 2, 16);
        struct parallel_step step;
        struct rec_error err;
        mix.layers = layers;
        assert_true(parallel_order_read(rec_str("tp-cp-pp-dp"), &mix.order));
        assert_true(parallel_step(&model, &mix, &machine, &step, &err));
        assert_near(step.transfer, 16 * (1e-5 + bytes / 1e10), 1e-12);
    }
    machine.inside = 1e9;
    for (uint32_t tp = 4; tp <= 8; tp *= 2) {
        struct parallel_mix mix = mix_of(tp, 4, 1, 1, 2, 16);
        struct parallel_step step;
        struct rec_error err;
        assert_true(parallel_step(&model, &mix, &machine, &step, &err));
        assert_near(step.transfer,
                    16 *
                        (tp == 4 ? 1e-6 + bytes / tp / 0.78e9 : 1e-5 + bytes / tp / 1e10),
                    1e-12);
    }
    parallel_model_free(&model);
}

/* Stages that have a copy each of an embedding of 50,000 words add up its gradients, 2
 * bytes an element: in a node as messages, in a ring of two; else in twice 1e-5 s and the
 * bytes at 1e10 / s. One replica exchanges nothing else. No copies: a device alone, the
 * last chunk on the first device, a head of its own, a frozen embedding. */
static void
test_tied(void **state)
{
    static const uint32_t late[] = {1, 1, 1, 13};
    struct input_transformer t = gpt(16, 1024, 16, 50000);
    struct parallel_machine machine = machine_of(&plain);
    (void)state;
    for (uint32_t i = 0; i < 7; i++) {
        struct parallel_mix mix = mix_of(i == 1 ? 4 : 1, i == 2 ? 1 : 4, 1, 1, 2, 16);
        struct parallel_step step;
        struct parallel_model model;
        struct rec_error err;
        double bytes = 2.0 * 50000 * 1024 / mix.tp;
        double want[] = {2 * 1e-6 + bytes / 0.78e11, 2 * 1e-5 + bytes / 1e10};
        if (i == 3)
            mix.vp = 2, mix.schedule = parallel_schedule_find("v");
        if (i == 4)
            mix.frozen = PARALLEL_PART_EMBEDDING;
        t.tied = i != 5;
        if (i == 6) /* the last device ends last, and exchanges the same */
            mix.layers = late;
        model = make(&t, 512, false);
        assert_true(parallel_step(&model, &mix, &machine, &step, &err));
        assert_near(step.once.tied, i < 2 ? want[i] : i == 6 ? want[0] : 0, 1e-12);
        assert_near(step.once.gradients, step.once.tied, 1e-12);
        assert_int_equal(step.device, i == 6 ? 3 : 0);
        parallel_model_free(&model);
    }
}

/*
 * The head of 1,024 tokens, 1,024 elements and 50,304 words, 393 tiles of 128: forward
 * 4 x 393 tiles of 256 x 128 in 16 waves of 100, and the same for the gradient of the
 * weights: 1600 x 2 x 256 x 128 x (1024 + 140) / 1e14 s. For that of the input 8 x 8
 * tiles of 128 x 128 in a wave: 100 x 2 x 128 x 128 x (50304 + 140) / (.86 x 1e14) s.
 * 50,257 words have as many tiles, and take 2.1 times as long. Tensor ranks have a
 * multiple of 128 words in any case.
 */
static void
test_unpadded(void **state)
{
    const struct input_transformer t = gpt(1, 1024, 16, 50257);
    struct parallel_model model = make(&t, 512, true);
    struct parallel_stack stack = plain;
    struct parallel_machine padded = machine_of(&plain), machine = machine_of(&stack);
    double twice = 2 * 1600 * 2 * 256 * 128 * 1164.0;
    double once = 100 * 2 * 128 * 128 / 0.86, more;
    (void)state;
    stack.unpadded = true;
    more = 2.1 * (twice + once * (50257 + 140)) - (twice + once * (50304 + 140));
    for (uint32_t tp = 1; tp <= 2; tp++) {
        struct parallel_mix mix = mix_of(tp, 1, 1, 1, 2, 1);
        struct parallel_step a, b;
        struct rec_error err;
        assert_true(parallel_step(&model, &mix, &padded, &a, &err));
        assert_true(parallel_step(&model, &mix, &machine, &b, &err));
        assert_near(b.parts.products - a.parts.products, tp == 1 ? more / 1e14 : 0, 1e-9);
    }
    parallel_model_free(&model);
}

/* Llama-2 70B on 64 devices, 8 tensor ranks in a node and 8 replicas, one sequence of
 * 4,096 tokens each, by hand. Peak 989e12, of which products reach .75 and attention .4;
 * memory 3.35e12 x .7; links 450e9 x .78 in a node, 50e9 between nodes; nothing hidden.
 *
 *   products   a layer has 8192 (8192 + 2 x 1024) + 8192^2 + 3 x 8192 x 28672
 *              = 855.6e6 multiply-adds a token; 80 layers and the head (8192 x 32000)
 *              68.7e9. 6 x 68.7e9 x 4096 / 8 ranks / (.75 x 989e12)         = 0.285 s
 *   attention  4 x 4096^2 x 8192 x 3.5 x 80 / 8 / (.4 x 989e12), of which
 *              sequences of 4096 reach 4096 / 4896                          = 0.059 s
 *   tensor     4 all-reduces a layer of 2 x 4096 x 8192 = 67.1 MB, as gather and
 *              scatter: 80 x 4 x 2 x 7 / 8 x 67.1e6 / 351e9                 = 0.107 s
 *   gradients  8.62e9 parameters a rank, 2 bytes: 17.2e9 x 7 / 8 / 50e9     = 0.302 s
 *   gather     the same                                                     = 0.302 s
 *   optimizer  8.62e9 / 8 x 34 bytes / (3.35e12 x .7), and 4 bytes of each of
 *              the 8.62e9 gradients are cleared                             = 0.031 s
 *   memory     about 14 passes over 4096 x 8192 / 8 elements of 2 bytes and 12 over
 *              those of an MLP rank (4096 x 28672 / 8) a layer, forward and backward:
 *              80 x 2 x (14 x 4.2e6 + 12 x 14.7e6) / (3.35e12 x .7)         = 0.016 s
 *
 * in all 1.10 s. If exchanges are hidden as far as there is something beside them, those
 * of tensor groups are gone; gradients run beside backward (about 0.24 s), the gather
 * beside forward (0.12 s), and both are longer: 0.302 + 0.302 + 0.031 = 0.635 s. */
static void
test_by_hand(void **state)
{
    const struct input_transformer t = {.layers = 80,
                                        .width = 8192,
                                        .heads = 64,
                                        .kv_heads = 8,
                                        .head_width = 128,
                                        .inner = 28672,
                                        .words = 32000,
                                        .causal = true,
                                        .rms = true,
                                        .gated = true,
                                        .norm_before = true,
                                        .norm_final = true,
                                        .head = true};
    const struct parallel_stack stack = {.name = "by hand",
                                         .share = 0.75,
                                         .memory = 0.7,
                                         .attention = 0.4,
                                         .exposed = 0,
                                         .adapter = 1,
                                         .gradient = 2};
    struct parallel_machine machine = machine_of(&stack);
    struct parallel_model model = make(&t, 4096, false);
    struct parallel_mix mix = mix_of(8, 1, 1, 8, 1, 1);
    struct parallel_step step;
    struct rec_error err;
    (void)state;
    machine.peak[0] = 9.89e14;
    machine.processors = 132;
    machine.bandwidth = 3.35e12;
    machine.inside = 4.5e11;
    machine.adapter = 5e10;
    mix.sequence = true;
    mix.zero = 1;
    assert_true(parallel_step(&model, &mix, &machine, &step, &err));
    assert_near(step.seconds / 1.10, 1, 0.05);
    assert_near(step.parts.attention / 0.0586, 1, 0.02);
    assert_near(step.parts.tensor / 0.107, 1, 0.1);
    assert_near(step.once.gradients / 0.302, 1, 0.01);
    assert_near(step.once.weights / 0.302, 1, 0.01);
    assert_near(step.once.optimizer / 0.031, 1, 0.05);
    mix.overlap = PARALLEL_OVERLAP_TP | PARALLEL_OVERLAP_DP;
    assert_true(parallel_step(&model, &mix, &machine, &step, &err));
    assert_true(step.parts.tensor < 0.002); /* those of the ends */
    assert_near(step.seconds / 0.635, 1, 0.02);
    parallel_model_free(&model);
}

/* ---- mixes ------------------------------------------------------------------- */

/* All layers are on one virtual stage each, in order, whatever the numbers. */
static void
test_chunks(void **state)
{
    (void)state;
    for (unsigned layers = 1; layers <= 40; layers++)
        for (uint32_t p = 1; p <= 4; p++)
            for (uint32_t v = 1; v <= 3; v++)
                for (int ends = 0; ends < 2; ends++) {
                    struct input_transformer t = gpt(layers, 64, 4, 100);
                    struct parallel_model model = make(&t, 16, false);
                    struct parallel_mix mix = mix_of(1, p, v, 1, 1, p);
                    struct rec_error err;
                    uint32_t next = 0;
                    mix.ends = ends;
                    if (parallel_mix_check(&mix, &model, &err)) {
                        for (uint32_t i = 0; i < p * v; i++) {
                            struct parallel_chunk c = parallel_chunk_of(&mix, &model, i);
                            assert_true(c.layers == 0 || c.first == next);
                            next += c.layers;
                            assert_int_equal(c.embedding, i == 0);
                            assert_int_equal(c.head, i == p * v - 1);
                        }
                        assert_int_equal(next, layers);
                    } else
                        assert_true(layers + 2U * (unsigned)ends < p * v || ends);
                    parallel_model_free(&model);
                }
}

static void
refused(struct parallel_mix mix, const char *text)
{
    struct input_transformer t = gpt(12, 64, 12, 100);
    struct parallel_model model = make(&t, 16, false);
    struct rec_error err = {.text = ""};
    assert_false(parallel_mix_check(&mix, &model, &err));
    if (strcmp(err.text, text) != 0)
        fail_msg("'%s' and not '%s'", err.text, text);
    parallel_model_free(&model);
}

static void
test_refused(void **state)
{
    struct parallel_mix mix = mix_of(8, 1, 1, 1, 1, 1);
    (void)state;
    refused(mix, "heads over tensor ranks: 8 does not divide 12; 6 and 12 do");
    mix = mix_of(1, 1, 1, 2, 3, 1);
    mix.global = 16;
    refused(mix,
            "samples of a step over replicas and microbatches: 6 does not divide 16; "
            "4 and 8 do");
    mix = mix_of(1, 16, 1, 1, 1, 16);
    refused(mix, "16 stages and chunks for 12 layers: some would have none");
    mix = mix_of(1, 1, 1, 2, 1, 1);
    mix.ep = 2;
    refused(mix, "expert parallelism 2, but no layer has experts");
}

/* Hybrid shards. 16 replicas in two nodes of 8, P parameters, 2 bytes for each. Sharded
 * over all, gradients and weights go 15/16 of 2 P bytes each through the 8 adapters of a
 * node; in groups of a node only P / 8 of each device are summed with the other node: 2
 * (2 - 1) / 2 times 2 P / 8 bytes through its adapter. Adapters are so slow that nothing
 * else counts. A group has all replicas: nothing changes. Adam's 12 bytes are divided by
 * 8, and not by 16. */
static void
test_hybrid(void **state)
{
    const struct input_transformer t = gpt(4, 256, 4, 1000);
    struct parallel_model model = make(&t, 256, false);
    struct parallel_machine machine = machine_of(&plain);
    struct parallel_mix mix = mix_of(1, 1, 1, 16, 1, 1);
    struct parallel_step all, same, hybrid;
    struct rec_error err = {.text = ""};
    double params = parallel_model_params(&model);
    (void)state;
    machine.adapter = 1e3;
    mix.zero = 1;
    assert_true(parallel_step(&model, &mix, &machine, &all, &err));
    mix.shard = 16;
    assert_true(parallel_step(&model, &mix, &machine, &same, &err));
    assert_true(same.seconds == all.seconds);
    mix.shard = 8;
    assert_true(parallel_step(&model, &mix, &machine, &hybrid, &err));
    assert_near((all.once.gradients + all.once.weights) /
                    (2 * 15 / 16.0 * 2 * params / 8 / 1e3),
                1, 1e-4);
    assert_near((hybrid.once.gradients + hybrid.once.weights) / (2 * params / 8 / 1e3), 1,
                1e-4);
    assert_near(hybrid.memory.optimizer / (12 * params / 8), 1, 1e-12);
    mix.zero = 3; /* only the sum between the groups is left behind backward */
    assert_true(parallel_step(&model, &mix, &machine, &hybrid, &err));
    assert_near(hybrid.once.gradients / (2 * params / 8 / 1e3), 1, 1e-4);
    assert_true(hybrid.memory.weights == 0); /* Adam's copy in 32 bits is all there is */
    parallel_model_free(&model);
}

/* Layers that run again: none, one, or both of each of two stages. The time and the bytes
 * of one layer do not depend on the others, so one is in the middle; a list says the same
 * of each stage, and of one stage alone what it says. */
static void
test_again(void **state)
{
    const struct input_transformer t = gpt(4, 512, 8, 1000);
    struct parallel_model model = make(&t, 512, true);
    struct parallel_machine machine = machine_of(&plain);
    struct parallel_mix mix = mix_of(1, 2, 1, 1, 1, 4);
    const uint32_t ones[] = {1, 1}, first[] = {1, 0};
    struct parallel_times times[5] = {{0}};
    struct rec_error err = {.text = ""};
    double back[5], kept[5];
    (void)state;
    for (int i = 0; i < 5; i++) {
        mix.recompute = i == 0 ? PARALLEL_KEEP_ALL : PARALLEL_FULL;
        mix.again = i == 1 ? 1 : 0;
        mix.again_of = i == 3 ? ones : i == 4 ? first : NULL;
        assert_true(parallel_times_make(&model, &mix, &machine, &times[i], &err));
        back[i] = parallel_parts_sum(&times[i].stage[1].backward);
        kept[i] = parallel_stage_kept(&mix, &model, 1);
        parallel_times_free(&times[i]);
    }
    assert_true(back[0] < back[2] && kept[0] > kept[2]);
    assert_near(back[1] / ((back[0] + back[2]) / 2), 1, 1e-12);
    assert_near(kept[1] / ((kept[0] + kept[2]) / 2), 1, 1e-12);
    assert_true(back[3] == back[1] && kept[3] == kept[1]);
    assert_true(back[4] == back[0] && kept[4] == kept[0]);
    parallel_model_free(&model);
}

/* Frozen weights have no gradient (4 bytes), no optimizer (12), no product for the
 * gradient and no exchange. Frozen embedding: V h parameters. All but the head of h V:
 * only that is exchanged. Adapters freeze all of it, and are trained: of rank 16 those of
 * h x 3 h and h x h products have 16 (4 h + 2 h) parameters a layer. */
static void
test_frozen(void **state)
{
    struct input_transformer t = gpt(4, 256, 4, 1000);
    struct parallel_machine machine = machine_of(&plain);
    struct parallel_mix mix = mix_of(1, 1, 1, 2, 1, 1);
    struct parallel_step all, step;
    struct rec_error err = {.text = ""};
    const double words = 1000 * 256, adapters = 4 * 16.0 * 6 * 256;
    t.tied = false;
    struct parallel_model model = make(&t, 256, false);
    double params = parallel_model_params(&model);
    (void)state;
    assert_true(parallel_step(&model, &mix, &machine, &all, &err));
    mix.frozen = PARALLEL_PART_EMBEDDING;
    assert_true(parallel_step(&model, &mix, &machine, &step, &err));
    assert_near(all.memory.optimizer - step.memory.optimizer, 12 * words, 1);
    assert_near(all.memory.weights, step.memory.weights, 1e-6);
    assert_near(all.parts.products, step.parts.products, 1e-18);
    mix.frozen = PARALLEL_PART_ALL - PARALLEL_PART_HEAD;
    assert_true(parallel_step(&model, &mix, &machine, &step, &err));
    assert_near(step.memory.optimizer, 12 * words, 1);
    assert_near(step.memory.weights, 2 * params, 1);
    assert_true(step.parts.products < all.parts.products);
    mix.frozen = PARALLEL_PART_ALL;
    assert_false(parallel_step(&model, &mix, &machine, &step, &err));
    assert_non_null(strstr(err.text, "nothing is trained"));
    mix.lora = 16;
    mix.adapters = PARALLEL_ADAPT_QKV | PARALLEL_ADAPT_PROJECTION;
    assert_true(parallel_step(&model, &mix, &machine, &step, &err));
    assert_near(step.memory.optimizer, 12 * adapters, 1e-6);
    assert_near(step.memory.weights, 2 * (params + adapters), 1e-6);
    assert_true(step.once.gradients > 0 && step.once.gradients < all.once.gradients);
    mix.frozen = 0;
    assert_true(parallel_step(&model, &mix, &machine, &all, &err));
    assert_true(all.seconds == step.seconds);
    /* Frozen weights of products of layers in 8 bits, 12 h^2 + 9 h of a layer; or two
     * copies. A token of a layer keeps: inputs of norms 4 h, those of two adapters behind
     * dropout 6 h, Q, K, V 6 h and 4 bytes a head, their result 2 h, the input of the
     * activation function 8 h. */
    mix.precision = PARALLEL_FP8;
    parallel_memory_of(&mix, &model, 0, &plain, &step.memory);
    assert_near(step.memory.weights, 2 * (params + adapters) - 4 * (12.0 * 256 + 9) * 256,
                1e-6);
    assert_near(parallel_kept(&model.kind[0], &model, &mix), 256 * (26 * 256 + 16), 1e-6);
    mix.turned = true;
    parallel_memory_of(&mix, &model, 0, &plain, &step.memory);
    assert_near(step.memory.weights, 2 * (params + adapters), 1e-6);
    /* Q, K, V, their result and the input of the activation function in 8 bits; an
     * adapter of the MLP keeps 3 bytes of h and of 4 h elements */
    mix.attention_fp8 = mix.activation_fp8 = true;
    assert_near(parallel_kept(&model.kind[0], &model, &mix), 256 * (18 * 256 + 16), 1e-6);
    mix.adapters = PARALLEL_ADAPT_MLP;
    assert_near(parallel_kept(&model.kind[0], &model, &mix), 256 * (27 * 256 + 16), 1e-6);
    parallel_model_free(&model);
}

/* The two halves of a split pass backward are the whole one; a product for the weights
 * has as many operations as one for the input, so it takes about half of their time. */
static void
test_halves(void **state)
{
    const struct input_transformer t = gpt(8, 2048, 16, 50000);
    struct parallel_model model = make(&t, 2048, false);
    struct parallel_machine machine = machine_of(&plain);
    struct parallel_mix mix = mix_of(1, 4, 1, 1, 1, 8);
    struct parallel_times whole = {0}, split = {0};
    struct parallel_step a, b;
    struct rec_error err = {.text = ""};
    (void)state;
    assert_true(parallel_times_make(&model, &mix, &machine, &whole, &err));
    assert_true(parallel_step(&model, &mix, &machine, &a, &err));
    mix.schedule = parallel_schedule_find("zero-bubble");
    assert_true(parallel_times_make(&model, &mix, &machine, &split, &err));
    assert_true(parallel_step(&model, &mix, &machine, &b, &err));
    for (int i = 0; i < 4; i++) {
        double products = split.stage[i].backward.products;
        assert_true(whole.stage[i].weight == 0);
        assert_true(parallel_parts_sum(&split.stage[i].backward) ==
                    parallel_parts_sum(&whole.stage[i].backward));
        assert_true(split.stage[i].weight > 0.4 * products);
        assert_true(split.stage[i].weight < 0.6 * products);
    }
    assert_true(b.idle < a.idle && b.seconds < a.seconds);
    parallel_times_free(&whole);
    parallel_times_free(&split);
    parallel_model_free(&model);
}

/* The largest of N normal numbers. Means: 0, 1 / sqrt(pi), 3 / (2 sqrt(pi)); of four and
 * five, of 100 and 1,000 as in tables of order statistics (Tippett, 1925). Its median
 * among two is where P^2 = 1/2. Of a step of 100 s on two ranks with 1 % it costs
 * 1 / sqrt(pi) s. */
static void
test_slowest(void **state)
{
    static const struct {
        double n, mean, within;
    } known[] = {{1, 0, 1e-12},
                 {2, 0.56418958354775628, 1e-12},
                 {3, 0.84628437532163443, 1e-12},
                 {4, 1.0293753730039641, 1e-10},
                 {5, 1.1629644736405196, 1e-10},
                 {100, 2.50759, 5e-6},
                 {1000, 3.24144, 5e-6}};
    struct parallel_wait wait = parallel_wait(0.01, 2, 100);
    double before = 0;
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_near(parallel_slowest(known[i].n), known[i].mean, known[i].within);
    for (double n = 1; n <= 1 << 20; n *= 2) {
        double low = parallel_slowest_quantile(n, 0.1), x;
        double high = parallel_slowest_quantile(n, 0.9);
        /* P(largest <= x) = P(one <= x)^n */
        x = 1 - erfc(high / sqrt(2)) / 2;
        assert_near(pow(x, n), 0.9, 1e-9);
        assert_true(low < parallel_slowest(n) && parallel_slowest(n) < high);
        assert_true(n == 1 || parallel_slowest(n) > before);
        before = parallel_slowest(n);
    }
    assert_near(parallel_slowest_quantile(1, 0.9), 1.2815515655446004, 1e-12);
    assert_near(erfc(-parallel_slowest_quantile(2, 0.5) / sqrt(2)) / 2, sqrt(0.5), 1e-12);
    assert_near(wait.mean, 0.56418958354775628, 1e-10);
    assert_near(wait.p90, 100 + parallel_slowest_quantile(2, 0.9), 1e-10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adds_up), cmocka_unit_test(test_scales),
        cmocka_unit_test(test_softmax), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_tied),    cmocka_unit_test(test_unpadded),
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_hybrid),  cmocka_unit_test(test_again),
        cmocka_unit_test(test_frozen),  cmocka_unit_test(test_halves),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_slowest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
