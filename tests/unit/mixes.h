/* Small transformers and mixes of parallelism for unit tests. */
#include "unit.h"

#include "rampipe/parallel_step.h"

/* A GPT: MLP of four times the width, biases, a tied head. */
static inline struct input_transformer
gpt(unsigned layers, unsigned width, unsigned heads, unsigned words)
{
    return (struct input_transformer){.layers = layers,
                                      .width = width,
                                      .heads = heads,
                                      .kv_heads = heads,
                                      .head_width = width / heads,
                                      .inner = 4 * width,
                                      .words = words,
                                      .causal = true,
                                      .norm_before = true,
                                      .norm_final = true,
                                      .attention_bias = true,
                                      .output_bias = true,
                                      .mlp_bias = true,
                                      .head = true,
                                      .tied = true};
}

static inline struct parallel_model
make(const struct input_transformer *t, double sequence, bool unfused)
{
    const struct parallel_style style = {.unfused = unfused, .no_dropout = !unfused};
    struct parallel_model model;
    struct rec_error err;
    assert_true(parallel_model_make(t, sequence, &style, &model, &err));
    return model;
}

static inline struct parallel_mix
mix_of(uint32_t tp, uint32_t pp, uint32_t vp, uint32_t dp, uint32_t micro, uint32_t m)
{
    return (struct parallel_mix){
        .tp = tp,
        .pp = pp,
        .vp = vp,
        .dp = dp,
        .cp = 1,
        .ep = 1,
        .etp = 1,
        .micro = micro,
        .global = micro * m * dp,
        .schedule = parallel_schedule_find(vp > 1 ? "interleaved" : "1f1b")};
}
