/* Writes the training record of a model. */
#include "private.h"

#include <stdio.h>
#include <string.h>

/* Writes the layers of a model as a list, if they are not all alike. */
static void
write_blocks(struct rec_writer *writer, const struct input_transformer *t)
{
    const struct input_block *b = t->block;
    const char *key = "\tblocks=";
    bool alike = true;
    for (unsigned i = 0; b && i < t->layers; i++)
        alike = alike && b[i].mixture == (t->experts > 0) && b[i].window == 0;
    if (alike)
        return;
    for (unsigned i = 0, n; b && i < t->layers; i += n) {
        char text[40];
        for (n = 1; i + n < t->layers && b[i + n].mixture == b[i].mixture &&
                    b[i + n].window == b[i].window;
             n++)
            continue;
        snprintf(text, sizeof text, "%s%ux%c", i ? "," : key, n,
                 b[i].mixture ? 'e' : 'd');
        rec_put_bytes(writer, text, strlen(text));
        if (b[i].window > 0) {
            snprintf(text, sizeof text, "%u", b[i].window);
            rec_put_bytes(writer, text, strlen(text));
        }
    }
}

static void
write_count(struct rec_writer *writer, const char *key, double value)
{
    if (value > 0)
        rec_num_key(writer, key, value);
}

bool
parallel_training_write(const struct input_transformer *t, const char *id,
                        double sequence, struct rec_writer *writer, struct rec_error *err)
{
    static const char *const qk_norms[] = {"none", "head", "heads"};
    const struct parallel_style style = {.no_dropout = true};
    struct parallel_model model;
    char bias[40];
    if (!parallel_model_make(t, sequence, &style, &model, err))
        return false;
    parallel_model_free(&model);
    if (t->norm_inside || t->norm_behind || t->norm_embedding || !t->norm_before ||
        !t->norm_final || t->sinks || t->router_bias || t->shared_gate)
        return rec_fail(err, REC_DATA,
                        "the model has norms, sinks, biases or gates that a training "
                        "record has no keys for");
    snprintf(bias, sizeof bias, "%s%s%s", t->attention_bias ? ",qkv" : "",
             t->output_bias ? ",projection" : "", t->mlp_bias ? ",mlp" : "");
    rec_begin(writer, "training");
    rec_text_field(writer, id);
    write_count(writer, "layers", t->layers);
    write_count(writer, "hidden", t->width);
    write_count(writer, "ffn", t->inner);
    write_count(writer, "heads", t->heads);
    write_count(writer, "kv", t->kv_heads);
    write_count(writer, "head_dim", t->head_width);
    write_count(writer, "vocab", t->words);
    write_count(writer, "seq", sequence);
    rec_text_key(writer, "mlp", t->gated ? "swiglu" : "gelu");
    rec_text_key(writer, "norm", t->rms ? "rms" : "layer");
    rec_num_key(writer, "positions", t->positions);
    rec_text_key(writer, "bias", bias[0] ? bias + 1 : "none");
    if (t->qk_norm != INPUT_QK_NONE)
        rec_text_key(writer, "qk_norm", qk_norms[t->qk_norm]);
    rec_num_key(writer, "tied", t->tied);
    rec_num_key(writer, "dropout", 0);
    write_count(writer, "experts", t->experts);
    write_count(writer, "topk", t->experts > 0 ? t->experts_used : 0);
    write_count(writer, "expert_ffn",
                t->experts == 0   ? 0
                : t->expert_inner ? t->expert_inner
                                  : t->inner);
    write_count(writer, "shared_ffn", t->shared_inner);
    write_count(writer, "q_rank", t->q_rank);
    write_count(writer, "kv_rank", t->kv_rank);
    write_count(writer, "rope_dim", t->rope_width);
    write_count(writer, "value_dim", t->value_width);
    write_blocks(writer, t);
    rec_end(writer);
    return true;
}
