/*
 * The table of families of transformers: which keys the config.json of each family has,
 * and what they set. Shapes are those of Hugging Face's transformers,
 * src/transformers/models/FAMILY/modeling_*.py; defaults are those of configuration_*.py.
 */
#include "family.h"

/* ---- keys ---------------------------------------------------------------- */

/* Keys by kind; `member` is a member of struct input_draft. A NEED is a COUNT that must
 * be given, by this key or by another one with the same member. */
#define AT(member) offsetof(struct input_draft, member)
#define NEED(key, member)                                \
    {                                                    \
        .name = key, .field = AT(member), .needed = true \
    }
#define COUNT(key, member)               \
    {                                    \
        .name = key, .field = AT(member) \
    }
#define AMOUNT(key, member)                                        \
    {                                                              \
        .name = key, .kind = INPUT_KEY_AMOUNT, .field = AT(member) \
    }
#define FLAG(key, member)                                        \
    {                                                            \
        .name = key, .kind = INPUT_KEY_FLAG, .field = AT(member) \
    }
#define PRESENT(key, member)                                        \
    {                                                               \
        .name = key, .kind = INPUT_KEY_PRESENT, .field = AT(member) \
    }
#define ACTIVATION(key)                                                      \
    {                                                                        \
        .name = key, .kind = INPUT_KEY_ACTIVATION, .field = AT(t.activation) \
    }
#define MUST(key, value)                                   \
    {                                                      \
        .name = key, .kind = INPUT_KEY_MUST, .must = value \
    }
#define UNUSED(key)                           \
    {                                         \
        .name = key, .kind = INPUT_KEY_UNUSED \
    }
#define ITEMS(key, member)                                        \
    {                                                             \
        .name = key, .kind = INPUT_KEY_ITEMS, .field = AT(member) \
    }
#define END          \
    {                \
        .name = NULL \
    }

/* Lists of keys; a family has one or more of them. */
typedef const struct input_key keys[];
typedef const struct input_key *const lists[];

static keys usual = {NEED("hidden_size", t.width),
                     NEED("num_hidden_layers", t.layers),
                     NEED("num_attention_heads", t.heads),
                     NEED("intermediate_size", t.inner),
                     NEED("max_position_embeddings", sequence),
                     NEED("vocab_size", t.words),
                     FLAG("tie_word_embeddings", t.tied),
                     ACTIVATION("hidden_act"),
                     END};
/* Without a number there are as many as the family's row says; null means as many as
 * heads. */
static keys grouped = {
    {.name = "num_key_value_heads", .field = AT(t.kv_heads), .null_is_0 = true},
    COUNT("head_dim", t.head_width),
    END};
static keys bert = {NEED("type_vocab_size", t.types), MUST("is_decoder", "false"),

                    MUST("position_embedding_type", "absolute"), END};
static keys gpt2 = {NEED("n_embd", t.width),
                    NEED("n_layer", t.layers),
                    NEED("n_head", t.heads),
                    COUNT("n_inner", t.inner),
                    NEED("n_positions", sequence),
                    NEED("vocab_size", t.words),
                    FLAG("tie_word_embeddings", t.tied),
                    ACTIVATION("activation_function"),

                    END};
static keys opt = {NEED("hidden_size", t.width),
                   NEED("num_hidden_layers", t.layers),
                   NEED("num_attention_heads", t.heads),
                   NEED("ffn_dim", t.inner),
                   NEED("max_position_embeddings", sequence),
                   NEED("vocab_size", t.words),
                   COUNT("word_embed_proj_dim", t.word_width),
                   FLAG("do_layer_norm_before", t.norm_before),
                   FLAG("_remove_final_layer_norm", last_norm_removed),
                   FLAG("enable_bias", t.attention_bias),
                   FLAG("enable_bias", t.output_bias),
                   FLAG("enable_bias", t.mlp_bias),
                   FLAG("tie_word_embeddings", t.tied),
                   ACTIVATION("activation_function"),
                   MUST("layer_norm_elementwise_affine", "true"),
                   END};
static keys bloom = {NEED("hidden_size", t.width),
                     NEED("n_embed", t.width),
                     NEED("n_layer", t.layers),
                     NEED("num_hidden_layers", t.layers),
                     NEED("n_head", t.heads),
                     NEED("num_attention_heads", t.heads),
                     COUNT("n_inner", t.inner),
                     NEED("vocab_size", t.words),
                     COUNT("seq_length", sequence),
                     FLAG("tie_word_embeddings", t.tied),
                     END};
static keys gpt_neox = {FLAG("use_parallel_residual", t.parallel),
                        FLAG("attention_bias", t.attention_bias),
                        FLAG("attention_bias", t.output_bias), END};
static keys falcon = {NEED("hidden_size", t.width),
                      NEED("num_hidden_layers", t.layers),
                      NEED("n_layer", t.layers),
                      NEED("num_attention_heads", t.heads),
                      NEED("n_head", t.heads),
                      COUNT("num_kv_heads", t.kv_heads),
                      COUNT("n_head_kv", t.kv_heads),
                      COUNT("ffn_hidden_size", t.inner),
                      COUNT("max_position_embeddings", sequence),
                      NEED("vocab_size", t.words),
                      FLAG("multi_query", multi_query),
                      FLAG("new_decoder_architecture", grouped),
                      FLAG("parallel_attn", parallel),
                      COUNT("num_ln_in_parallel_attn", parallel_norms),
                      FLAG("alibi", t.alibi),
                      FLAG("bias", t.attention_bias),
                      FLAG("bias", t.output_bias),
                      FLAG("bias", t.mlp_bias),
                      FLAG("tie_word_embeddings", t.tied),
                      ACTIVATION("activation"),
                      END};
static keys t5 = {NEED("d_model", t.width),
                  NEED("num_layers", t.encoder_layers),
                  COUNT("num_decoder_layers", t.layers),
                  NEED("num_heads", t.heads),
                  NEED("d_kv", t.head_width),
                  NEED("d_ff", t.inner),
                  NEED("vocab_size", t.words),
                  COUNT("n_positions", sequence),
                  COUNT("relative_attention_num_buckets", t.relative_buckets),
                  FLAG("tie_word_embeddings", t.tied),
                  ACTIVATION("feed_forward_proj"),
                  MUST("is_encoder_decoder", "true"),
                  MUST("is_decoder", "false"),
                  END};
static keys vit = {NEED("hidden_size", t.width),
                   NEED("num_hidden_layers", t.layers),
                   NEED("num_attention_heads", t.heads),
                   NEED("intermediate_size", t.inner),
                   COUNT("image_size", t.image),
                   COUNT("patch_size", t.patch),
                   COUNT("num_channels", t.channels),
                   FLAG("qkv_bias", t.attention_bias),
                   COUNT("num_labels", t.labels),
                   ITEMS("id2label", t.labels),
                   ACTIVATION("hidden_act"),
                   END};

static keys all_bias = {FLAG("attention_bias", t.attention_bias),
                        FLAG("attention_bias", t.output_bias), END};
static keys no_bias = {MUST("attention_bias", "false"), END};
static keys llama = {FLAG("mlp_bias", t.mlp_bias), END};
static keys gemma = {ACTIVATION("hidden_activation"), END};
static keys caps = {PRESENT("attn_logit_softcapping", t.cap_scores),
                    PRESENT("final_logit_softcapping", t.cap_words),
                    MUST("use_bidirectional_attention", "false"), END};

static keys window = {{.name = "sliding_window",
                       .kind = INPUT_KEY_AMOUNT,
                       .field = AT(window),
                       .null_is_0 = true},
                      {.name = "layer_types", .kind = INPUT_KEY_TYPES},
                      END};
static keys gemma2 = {UNUSED("sliding_window_size"), END};
static keys window_switch = {FLAG("use_sliding_window", windowed), END};
static keys window_from = {AMOUNT("max_window_layers", window_from), END};
static keys window_until = {AMOUNT("max_window_layers", window_until), END};
static keys window_nowhere = {UNUSED("max_window_layers"), END};
static keys window_period = {COUNT("sliding_window_pattern", window_period),
                             COUNT("_sliding_window_pattern", window_period), END};

static keys mixtral = {NEED("num_local_experts", t.experts),
                       NEED("num_experts_per_tok", t.experts_used), END};
static keys gpt_oss = {COUNT("experts_per_token", t.experts_used), END};
static keys qwen_moe = {NEED("num_experts", t.experts),
                        NEED("num_local_experts", t.experts),
                        NEED("num_experts_per_tok", t.experts_used),
                        NEED("moe_intermediate_size", t.expert_inner),
                        COUNT("decoder_sparse_step", expert_step),
                        {.name = "mlp_only_layers", .kind = INPUT_KEY_DENSE},
                        END};
static keys qwen2_moe = {AMOUNT("shared_expert_intermediate_size", t.shared_inner),
                         FLAG("qkv_bias", t.attention_bias), END};
static keys deepseek = {AMOUNT("q_lora_rank", t.q_rank),
                        NEED("kv_lora_rank", t.kv_rank),
                        NEED("qk_rope_head_dim", t.rope_width),
                        NEED("qk_nope_head_dim", nope),
                        NEED("v_head_dim", t.value_width),
                        COUNT("n_routed_experts", t.experts),
                        COUNT("num_local_experts", t.experts),
                        COUNT("num_experts_per_tok", t.experts_used),
                        COUNT("moe_intermediate_size", t.expert_inner),
                        AMOUNT("n_shared_experts", shared),
                        AMOUNT("first_k_dense_replace", dense_first),
                        COUNT("moe_layer_freq", expert_step),
                        UNUSED("num_key_value_heads"),
                        UNUSED("head_dim"),
                        END};

/* ---- values that depend on several keys ---------------------------------- */

/* In the new architecture (`grouped`), the file says how many heads have keys and values;
 * in the old one it is one head, or as many as have queries. Attention and MLP of a new
 * layer have a norm each unless the file says one; an old parallel layer has one norm. */
static void
finish_falcon(struct input_draft *d)
{
    if (!d->grouped)
        d->t.kv_heads = d->multi_query ? 1 : d->t.heads;
    d->t.parallel = d->grouped || d->parallel;
    d->t.one_norm = d->grouped ? d->parallel_norms == 1 : d->parallel;
}

/* OPT-350m has its norms behind attention and MLP, and none at the end. */
static void
finish_opt(struct input_draft *d)
{
    d->t.norm_behind = !d->t.norm_before;
    d->t.norm_final = d->t.norm_before && !d->last_norm_removed;
}

/* The position embedding has two rows for padding, which no token uses. */
static void
finish_roberta(struct input_draft *d)
{
    d->t.positions = d->sequence;
    d->sequence = d->sequence > 2 ? d->sequence - 2 : 1;
}

/* A file without a number of decoder layers means as many as the encoder has. */
static void
finish_t5(struct input_draft *d)
{
    if (d->t.layers == 0)
        d->t.layers = d->t.encoder_layers;
}

/* Without labels the file is of the bare model, which ends with a pooler. The class token
 * is a position, too. */
static void
finish_vit(struct input_draft *d)
{
    unsigned row = d->t.image / d->t.patch;
    d->t.pooler = d->t.labels == 0;
    d->sequence = row * row + 1;
}

/* The shared experts are computed as one MLP of their joint width. */
static void
finish_deepseek(struct input_draft *d)
{
    d->t.head_width = d->nope + d->t.rope_width;
    d->t.shared_inner = d->shared * d->t.expert_inner;
}

/* ---- rows ---------------------------------------------------------------- */

/* What many families have in common. */
#define BIASES .attention_bias = true, .output_bias = true, .mlp_bias = true
#define PRE .norm_before = true, .norm_final = true
#define DECODER .causal = true, .head = true
#define LLAMA DECODER, PRE, .rms = true, .gated = true, .activation = INPUT_SILU
#define GEMMA DECODER, PRE, .rms = true, .gated = true, .head_width = 256, .tied = true
#define BERT .pooler = true, .norm_embedding = true, .norm_behind = true, BIASES
#define LISTS(...) ((lists){__VA_ARGS__, NULL})

const struct input_family input_families[] = {
    {"bert", {.t = {BERT}, .learned = true}, LISTS(usual, grouped, bert), NULL},
    {"bloom",
     {.t = {DECODER, PRE, BIASES, .norm_embedding = true, .tied = true, .alibi = true},
      .sequence = 2048},
     LISTS(bloom),
     NULL},
    {"deepseek_v2",
     {.t = {LLAMA}, .expert_step = 1},
     LISTS(usual, all_bias, deepseek),
     finish_deepseek},
    {"deepseek_v3",
     {.t = {LLAMA}, .expert_step = 1},
     LISTS(usual, all_bias, deepseek),
     finish_deepseek},
    {"falcon",
     {.t = {DECODER, PRE, .tied = true},
      .multi_query = true,
      .parallel = true,
      .parallel_norms = 2,
      .sequence = 2048},
     LISTS(falcon),
     finish_falcon},
    {"gemma",
     {.t = {GEMMA, .kv_heads = 16}},
     LISTS(usual, grouped, gemma, all_bias),
     NULL},
    {"gemma2",
     {.t = {GEMMA, .norm_inside = true, .cap_scores = true, .cap_words = true,
            .kv_heads = 4},
      .windowed = true,
      .window = 4096,
      .window_period = 2},
     LISTS(usual, grouped, gemma, all_bias, caps, window, gemma2),
     NULL},
    {"gemma3_text",
     {.t = {GEMMA, .norm_inside = true, .qk_norm = INPUT_QK_EACH_HEAD, .heads = 8,
            .kv_heads = 4, .words = 262208},
      .sequence = 131072,
      .windowed = true,
      .window = 4096,
      .window_period = 6},
     LISTS(usual, grouped, gemma, all_bias, caps, window, window_period),
     NULL},
    {"gpt2",
     {.t = {DECODER, PRE, BIASES, .tied = true}, .learned = true},
     LISTS(gpt2),
     NULL},
    {"gpt_neox",
     {.t = {DECODER, PRE, BIASES, .parallel = true}},
     LISTS(usual, gpt_neox),
     NULL},
    {"gpt_oss",
     {.t = {LLAMA, BIASES, .router_bias = true, .sinks = true, .head_width = 64,
            .kv_heads = 8},
      .windowed = true,
      .window = 128,
      .window_period = 2},
     LISTS(usual, grouped, all_bias, mixtral, gpt_oss, window),
     NULL},
    {"llama", {.t = {LLAMA}}, LISTS(usual, grouped, all_bias, llama), NULL},
    {"mistral",
     {.t = {LLAMA, .kv_heads = 8}, .windowed = true, .window = 4096},
     LISTS(usual, grouped, no_bias, window),
     NULL},
    {"mixtral",
     {.t = {LLAMA, .kv_heads = 8}, .windowed = true},
     LISTS(usual, grouped, no_bias, mixtral, window),
     NULL},
    {"olmo2",
     {.t = {DECODER, .norm_inside = true, .norm_final = true, .rms = true, .gated = true,
            .activation = INPUT_SILU, .qk_norm = INPUT_QK_ALL_HEADS}},
     LISTS(usual, grouped, all_bias),
     NULL},
    {"opt",
     {.t = {DECODER, BIASES, .norm_before = true, .tied = true, .activation = INPUT_RELU},
      .learned = true,
      .spare = 2},
     LISTS(opt),
     finish_opt},
    {"phi3",
     {.t = {LLAMA}, .windowed = true},
     LISTS(usual, grouped, no_bias, window),
     NULL},
    {"qwen2",
     {.t = {LLAMA, .attention_bias = true, .kv_heads = 32},
      .window = 4096,
      .window_from = 28},
     LISTS(usual, grouped, window, window_switch, window_from),
     NULL},
    {"qwen2_moe",
     {.t = {LLAMA, .attention_bias = true, .shared_gate = true, .kv_heads = 16},
      .window = 4096,
      .window_until = 28,
      .window_period = 2,
      .expert_step = 1,
      .expert_shift = 1},
     LISTS(usual, grouped, qwen_moe, qwen2_moe, window, window_switch, window_until),
     NULL},
    {"qwen3",
     {.t = {LLAMA, .head_width = 128, .qk_norm = INPUT_QK_EACH_HEAD, .kv_heads = 32},
      .window = 4096,
      .window_from = 28},
     LISTS(usual, grouped, all_bias, window, window_switch, window_from),
     NULL},
    {"qwen3_moe",
     {.t = {LLAMA, .qk_norm = INPUT_QK_EACH_HEAD, .kv_heads = 4},
      .window = 4096,
      .expert_step = 1,
      .expert_shift = 1},
     LISTS(usual, grouped, all_bias, qwen_moe, window, window_switch, window_nowhere),
     NULL},
    {"roberta", {.t = {BERT}}, LISTS(usual, grouped, bert), finish_roberta},
    {"t5",
     {.t = {DECODER, PRE, .rms = true, .tied = true, .activation = INPUT_RELU,
            .relative_buckets = 32},
      .sequence = 512},
     LISTS(t5),
     finish_t5},
    {"vit",
     {.t = {PRE, BIASES, .image = 224, .patch = 16, .channels = 3}},
     LISTS(vit),
     finish_vit},
    {.type = NULL}};

const struct input_key input_common_keys[] = {
    MUST("add_cross_attention", "false"), MUST("chunk_size_feed_forward", "0"),
    MUST("is_encoder_decoder", "false"),  MUST("pruned_heads", ""),
    MUST("tie_encoder_decoder", "false"), END};

/* Keys that change neither work nor parameters: names, special tokens, initial values,
 * dropout (the transformers of this room have none), epsilons, the rotation of positions,
 * the choice of routers, the settings of generation and training. */
const char *const input_harmless_keys[] = {"_attn_implementation",
                                           "_attn_implementation_autoset",
                                           "_name_or_path",
                                           "_num_labels",
                                           "activation_dropout",
                                           "apply_residual_connection_post_layernorm",
                                           "architectures",
                                           "attention_dropout",
                                           "attention_probs_dropout_prob",
                                           "attention_softmax_in_fp32",
                                           "attn_implementation",
                                           "attn_pdrop",
                                           "auto_map",
                                           "aux_loss_alpha",
                                           "bias_dropout_fusion",
                                           "bos_token_id",
                                           "cache_implementation",
                                           "classifier_dropout",
                                           "decoder_start_token_id",
                                           "dense_act_fn",
                                           "directionality",
                                           "diversity_penalty",
                                           "do_sample",
                                           "dropout",
                                           "dropout_rate",
                                           "dtype",
                                           "early_stopping",
                                           "embd_pdrop",
                                           "encoder_no_repeat_ngram_size",
                                           "encoder_stride",
                                           "eos_token_id",
                                           "ep_size",
                                           "finetuning_task",
                                           "gradient_checkpointing",
                                           "hidden_dropout",
                                           "hidden_dropout_prob",
                                           "id2label",
                                           "ignore_index",
                                           "init_std",
                                           "initial_context_length",
                                           "initializer_factor",
                                           "initializer_range",
                                           "is_decoder",
                                           "is_gated_act",
                                           "label2id",
                                           "layer_norm_eps",
                                           "layer_norm_epsilon",
                                           "layerdrop",
                                           "length_penalty",
                                           "mask_token_id",
                                           "masked_softmax_fusion",
                                           "max_length",
                                           "min_length",
                                           "model_max_length",
                                           "model_type",
                                           "n_ctx",
                                           "n_group",
                                           "no_repeat_ngram_size",
                                           "norm_topk_prob",
                                           "num_beam_groups",
                                           "num_beams",
                                           "num_return_sequences",
                                           "offset_alibi",
                                           "original_max_position_embeddings",
                                           "output_attentions",
                                           "output_hidden_states",
                                           "output_past",
                                           "output_router_logits",
                                           "output_scores",
                                           "pad_token_id",
                                           "partial_rotary_factor",
                                           "pooler_act",
                                           "pooler_fc_size",
                                           "pooler_num_attention_heads",
                                           "pooler_num_fc_layers",
                                           "pooler_size_per_head",
                                           "pooler_type",
                                           "prefix",
                                           "pretraining_tp",
                                           "problem_type",
                                           "qk_head_dim",
                                           "query_pre_attn_scalar",
                                           "relative_attention_max_distance",
                                           "remove_invalid_values",
                                           "reorder_and_upcast_attn",
                                           "repetition_penalty",
                                           "resid_pdrop",
                                           "return_dict",
                                           "return_dict_in_generate",
                                           "rms_norm_eps",
                                           "rope_interleave",
                                           "rope_local_base_freq",
                                           "rope_parameters",
                                           "rope_scaling",
                                           "rope_theta",
                                           "rotary_emb_base",
                                           "rotary_pct",
                                           "routed_scaling_factor",
                                           "router_aux_loss_coef",
                                           "router_jitter_noise",
                                           "scale_attn_by_inverse_layer_idx",
                                           "scale_attn_weights",
                                           "scoring_func",
                                           "sep_token_id",
                                           "seq_aux",
                                           "skip_bias_add",
                                           "skip_bias_add_qkv",
                                           "slow_but_exact",
                                           "summary_activation",
                                           "summary_first_dropout",
                                           "summary_proj_to_labels",
                                           "summary_type",
                                           "summary_use_proj",
                                           "swiglu_alpha",
                                           "swiglu_limit",
                                           "task_specific_params",
                                           "temperature",
                                           "tf_legacy_loss",
                                           "top_k",
                                           "top_p",
                                           "topk_group",
                                           "topk_method",
                                           "torch_dtype",
                                           "torchscript",
                                           "transformers_version",
                                           "typical_p",
                                           "unk_token",
                                           "unk_token_id",
                                           "use_bfloat16",
                                           "use_cache",
                                           "use_mrope",
                                           NULL};
