/* config.json of Hugging Face: the numbers of a transformer. */
#include "rampipe/input.h"
#include "rampipe/json.h"

#include <math.h>
#include <stdio.h>

/* What the models of a model_type have in common. */
struct family {
    const char *type;
    struct input_transformer like;
    bool old_names; /* GPT-2's */
    bool mixture;
};

#define BERT                                                                          \
    {                                                                                 \
        .pooler = true, .attention_bias = true, .output_bias = true, .mlp_bias = true \
    }
#define LLAMA                                                                     \
    .causal = true, .norm_first = true, .rms = true, .gated = true, .head = true, \
    .activation = INPUT_SILU

static const struct family families[] = {
    {"bert", BERT, false, false},
    {"gpt2",
     {.causal = true,
      .norm_first = true,
      .attention_bias = true,
      .output_bias = true,
      .mlp_bias = true,
      .head = true,
      .tied = true},
     true,
     false},
    {"llama", {LLAMA}, false, false},
    {"mistral", {LLAMA}, false, false},
    {"mixtral", {LLAMA}, false, true},
    {"qwen2", {LLAMA, .attention_bias = true}, false, false},
    {"roberta", BERT, false, false},
};

enum { NFAMILIES = sizeof families / sizeof *families };

struct config {
    struct json_map map;
    const char *file;
    struct rec_error *err;
};

static bool
fail(const struct config *c, const struct json_member *member, const char *key,
     const char *want)
{
    return rec_fail_at(c->err, c->file, member ? member->line : 1,
                       member ? "%s must be %s, got '%.60s'" : "%s is missing: %s", key,
                       want, member ? member->text : "");
}

/* null is as good as nothing. */
static const struct json_member *
find(const struct config *c, const char *key)
{
    const struct json_member *member = json_map_find(&c->map, key);
    return member && member->kind != JSON_NULL ? member : NULL;
}

/* An integer from 1 to 2^24; `missing`, if that is not 0, where there is none. */
static bool
read_count(const struct config *c, const char *key, unsigned missing, unsigned *value)
{
    const struct json_member *member = find(c, key);
    double number;
    if (!member && missing > 0) {
        *value = missing;
        return true;
    }
    if (!member || member->kind != JSON_NUMBER ||
        !rec_parse_num(rec_str(member->text), &number) || number != floor(number) ||
        number < 1 || number > 16777216)
        return fail(c, member, key, "an integer from 1 to 16777216");
    *value = (unsigned)number;
    return true;
}

static bool
read_bool(const struct config *c, const char *key, bool *value)
{
    const struct json_member *member = find(c, key);
    if (!member)
        return true;
    if (member->kind != JSON_BOOL)
        return fail(c, member, key, "true or false");
    *value = member->truth;
    return true;
}

static bool
read_activation(const struct config *c, const char *key, enum input_activation *value)
{
    static const char *const prefix[] = {
        [INPUT_GELU] = "gelu", [INPUT_SILU] = "silu", [INPUT_RELU] = "relu"};
    const struct json_member *member = find(c, key);
    if (!member)
        return true;
    for (int i = 0; member->kind == JSON_TEXT && i < 3; i++)
        if (strncmp(member->text, prefix[i], 4) == 0) {
            *value = (enum input_activation)i;
            return true;
        }
    return fail(c, member, key, "a gelu, silu or relu");
}

/* NULL: *err. */
static const struct family *
find_family(const struct config *c)
{
    const struct json_member *member = find(c, "model_type");
    char list[120] = "", want[140];
    for (size_t i = 0; i < NFAMILIES; i++) {
        if (member && member->kind == JSON_TEXT &&
            strcmp(member->text, families[i].type) == 0)
            return &families[i];
        rec_list_name(list, sizeof list, families[i].type);
    }
    snprintf(want, sizeof want, "one of %s", list);
    fail(c, member, "model_type", want);
    return NULL;
}

static bool
read_gpt2(const struct config *c, struct input_transformer *t, double *sequence)
{
    bool ok = read_count(c, "n_embd", 0, &t->width) &&
              read_count(c, "n_layer", 0, &t->layers) &&
              read_count(c, "n_head", 0, &t->heads) &&
              read_count(c, "n_inner", 4 * t->width, &t->inner) &&
              read_count(c, "n_positions", 0, &t->positions) &&
              read_activation(c, "activation_function", &t->activation);
    t->kv_heads = t->heads;
    *sequence = t->positions;
    return ok;
}

static bool
read_others(const struct config *c, struct input_transformer *t, double *sequence)
{
    unsigned positions = 0;
    bool ok = read_count(c, "hidden_size", 0, &t->width) &&
              read_count(c, "num_hidden_layers", 0, &t->layers) &&
              read_count(c, "num_attention_heads", 0, &t->heads) &&
              read_count(c, "num_key_value_heads", t->heads, &t->kv_heads) &&
              read_count(c, "intermediate_size", 0, &t->inner) &&
              read_count(c, "max_position_embeddings", 0, &positions) &&
              read_activation(c, "hidden_act", &t->activation);
    if (ok && t->pooler) { /* BERT and its kin */
        t->positions = positions;
        ok = read_count(c, "type_vocab_size", 0, &t->types);
    }
    *sequence = positions;
    return ok;
}

static bool
check(const struct config *c, const struct input_transformer *t)
{
    if (t->layers > 10000)
        return rec_fail_at(c->err, c->file, 1, "more than 10000 layers: %u", t->layers);
    if ((double)t->heads * t->head_width > 16777216)
        return rec_fail_at(c->err, c->file, 1, "%u heads of %u are too wide", t->heads,
                           t->head_width);
    if (t->heads % t->kv_heads != 0)
        return rec_fail_at(c->err, c->file, 1,
                           "num_attention_heads must be a multiple of "
                           "num_key_value_heads: %u and %u",
                           t->heads, t->kv_heads);
    return t->experts_used <= t->experts ||
           rec_fail_at(c->err, c->file, 1,
                       "num_experts_per_tok must be at most num_local_experts: %u and %u",
                       t->experts_used, t->experts);
}

static bool
read_config(const struct config *c, struct input_transformer *t, double *sequence)
{
    const struct family *family = find_family(c);
    if (!family)
        return false;
    *t = family->like;
    if (!(family->old_names ? read_gpt2 : read_others)(c, t, sequence) ||
        !read_count(c, "vocab_size", 0, &t->words))
        return false;
    if (!find(c, "head_dim") && t->width % t->heads != 0)
        return rec_fail_at(
            c->err, c->file, 1,
            "the width must be a multiple of the number of heads: %u and %u", t->width,
            t->heads);
    if (!read_count(c, "head_dim", t->width / t->heads, &t->head_width) ||
        (t->head && !read_bool(c, "tie_word_embeddings", &t->tied)))
        return false;
    if (strcmp(family->type, "llama") == 0) {
        if (!read_bool(c, "attention_bias", &t->attention_bias) ||
            !read_bool(c, "mlp_bias", &t->mlp_bias))
            return false;
        t->output_bias = t->attention_bias;
    }
    if (family->mixture && (!read_count(c, "num_local_experts", 0, &t->experts) ||
                            !read_count(c, "num_experts_per_tok", 0, &t->experts_used)))
        return false;
    return check(c, t);
}

bool
input_transformer_read(struct rec_reader *reader, struct input_transformer *transformer,
                       double *sequence, struct rec_error *err)
{
    struct config c = {.err = err};
    bool ok = json_map_read(&c.map, reader, err);
    c.file = rec_reader_file(reader);
    ok = ok && read_config(&c, transformer, sequence);
    json_map_free(&c.map);
    return ok;
}
