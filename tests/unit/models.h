/*
 * Configurations of transformers, and how many parameters were published of them. hub:
 * the total of the safetensors of that model on the Hugging Face hub; card: the model's
 * card; num_parameters(): what the model that Hugging Face's transformers builds of its
 * config.json says.
 */
#ifndef TESTS_MODELS_H
#define TESTS_MODELS_H

#define JSON(...) #__VA_ARGS__

/* clang-format off */
static const struct model {
    const char *name, *source;
    double params;
    const char *config;
} models[] = {
    {"qwen3-0.6b", "num_parameters() of Qwen/Qwen3-0.6B", 596049920, JSON(
          {"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28,
           "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
           "intermediate_size": 3072, "vocab_size": 151936,
           "max_position_embeddings": 40960, "tie_word_embeddings": true})},
    {"qwen3-8b", "hub", 8190735360, JSON(
          {"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36,
           "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
           "intermediate_size": 12288, "vocab_size": 151936,
           "max_position_embeddings": 40960, "tie_word_embeddings": false})},
    {"qwen3-30b-a3b", "hub", 30532122624, JSON(
          {"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers":
           48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim":
           128, "intermediate_size": 6144, "moe_intermediate_size": 768,
           "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
           "max_position_embeddings": 40960, "tie_word_embeddings": false,
           "mlp_only_layers": [], "decoder_sparse_step": 1})},
    {"gemma-2b", "hub", 2506172416, JSON(
          {"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18,
           "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256,
           "intermediate_size": 16384, "vocab_size": 256000,
           "max_position_embeddings": 8192})},
    {"gemma-7b", "hub", 8537680896, JSON(
          {"model_type": "gemma", "hidden_size": 3072, "num_hidden_layers": 28,
           "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256,
           "intermediate_size": 24576, "vocab_size": 256000,
           "max_position_embeddings": 8192})},
    {"gemma-2-2b", "hub", 2614341888, JSON(
          {"model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26,
           "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
           "intermediate_size": 9216, "vocab_size": 256000,
           "max_position_embeddings": 8192, "sliding_window": 4096})},
    {"gemma-2-9b", "hub", 9241705984, JSON(
          {"model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42,
           "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
           "intermediate_size": 14336, "vocab_size": 256000,
           "max_position_embeddings": 8192, "sliding_window": 4096})},
    {"gemma-2-27b", "hub", 27227128320, JSON(
          {"model_type": "gemma2", "hidden_size": 4608, "num_hidden_layers": 46,
           "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128,
           "intermediate_size": 36864, "vocab_size": 256000,
           "max_position_embeddings": 8192, "sliding_window": 4096})},
    {"gemma-3-270m", "hub", 268098176, JSON(
          {"model_type": "gemma3_text", "hidden_size": 640, "num_hidden_layers":
           18, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim":
           256, "intermediate_size": 2048, "vocab_size": 262144,
           "max_position_embeddings": 32768, "sliding_window": 512,
           "_sliding_window_pattern": 6, "layer_types": ["sliding_attention",
           "sliding_attention", "sliding_attention", "sliding_attention",
           "sliding_attention", "full_attention", "sliding_attention",
           "sliding_attention", "sliding_attention", "sliding_attention",
           "sliding_attention", "full_attention", "sliding_attention",
           "sliding_attention", "sliding_attention", "sliding_attention",
           "sliding_attention", "full_attention"]})},
    {"gemma-3-1b", "hub", 999885952, JSON(
          {"model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers":
           26, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim":
           256, "intermediate_size": 6912, "vocab_size": 262144,
           "max_position_embeddings": 32768, "sliding_window": 512,
           "sliding_window_pattern": 6})},
    {"gemma-3-4b",
     "text_config of the hub's; derived: 262208 * 2560 + 34 * (2 * 2560 * 2048 + 2 * "
     "2560 * 1024 + 2 * 256 + 3 * 2560 * 10240 + 4 * 2560) + 2560", 3880263168, JSON(
          {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size":
           10240, "num_hidden_layers": 34, "sliding_window": 1024, "rope_scaling":
           {"factor": 8.0, "rope_type": "linear"}})},
    {"phi-3-mini", "hub", 3821079552, JSON(
          {"model_type": "phi3", "hidden_size": 3072, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 32,
           "intermediate_size": 8192, "vocab_size": 32064,
           "max_position_embeddings": 4096, "sliding_window": 2047,
           "attention_bias": false})},
    {"olmo2-7b", "hub", 7298617344, JSON(
          {"model_type": "olmo2", "hidden_size": 4096, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 32,
           "intermediate_size": 11008, "vocab_size": 100352,
           "max_position_embeddings": 4096})},
    {"olmo2-13b", "hub", 13716198400, JSON(
          {"model_type": "olmo2", "hidden_size": 5120, "num_hidden_layers": 40,
           "num_attention_heads": 40, "num_key_value_heads": 40,
           "intermediate_size": 13824, "vocab_size": 100352,
           "max_position_embeddings": 4096})},
    {"opt-125m", "num_parameters() of facebook/opt-125m", 125239296, JSON(
          {"model_type": "opt", "hidden_size": 768, "num_hidden_layers": 12,
           "num_attention_heads": 12, "ffn_dim": 3072, "vocab_size": 50272,
           "max_position_embeddings": 2048, "word_embed_proj_dim": 768,
           "do_layer_norm_before": true, "_remove_final_layer_norm": false,
           "activation_function": "relu"})},
    {"opt-350m", "num_parameters() of facebook/opt-350m", 331196416, JSON(
          {"model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24,
           "num_attention_heads": 16, "ffn_dim": 4096, "vocab_size": 50272,
           "max_position_embeddings": 2048, "word_embed_proj_dim": 512,
           "do_layer_norm_before": false})},
    {"opt-6.7b", "num_parameters() of facebook/opt-6.7b", 6658473984, JSON(
          {"model_type": "opt", "hidden_size": 4096, "num_hidden_layers": 32,
           "num_attention_heads": 32, "ffn_dim": 16384, "vocab_size": 50272,
           "max_position_embeddings": 2048})},
    {"bloom-560m", "card", 559214592, JSON(
          {"model_type": "bloom", "n_embed": 1024, "n_layer": 24,
           "num_attention_heads": 16, "vocab_size": 250880})},
    {"bloom-7b1", "card", 7069016064, JSON(
          {"model_type": "bloom", "n_embed": 4096, "n_layer": 30,
           "num_attention_heads": 32, "vocab_size": 250880})},
    {"bloom", "card", 176247271424, JSON(
          {"model_type": "bloom", "n_embed": 14336, "n_layer": 70,
           "num_attention_heads": 112, "vocab_size": 250880, "seq_length": 2048})},
    {"pythia-70m", "card", 70426624, JSON(
          {"model_type": "gpt_neox", "max_position_embeddings": 2048,
           "vocab_size": 50304, "use_parallel_residual": true, "hidden_act":
           "gelu", "hidden_size": 512, "num_hidden_layers": 6,
           "num_attention_heads": 8, "intermediate_size": 2048})},
    {"pythia-160m", "card", 162322944, JSON(
          {"model_type": "gpt_neox", "max_position_embeddings": 2048,
           "vocab_size": 50304, "use_parallel_residual": true, "hidden_act":
           "gelu", "hidden_size": 768, "num_hidden_layers": 12,
           "num_attention_heads": 12, "intermediate_size": 3072})},
    {"pythia-1b", "card", 1011781632, JSON(
          {"model_type": "gpt_neox", "max_position_embeddings": 2048,
           "vocab_size": 50304, "use_parallel_residual": true, "hidden_act":
           "gelu", "hidden_size": 2048, "num_hidden_layers": 16,
           "num_attention_heads": 8, "intermediate_size": 8192})},
    {"pythia-12b", "card", 11846072320, JSON(
          {"model_type": "gpt_neox", "max_position_embeddings": 2048,
           "vocab_size": 50688, "use_parallel_residual": true, "hidden_act":
           "gelu", "hidden_size": 5120, "num_hidden_layers": 36,
           "num_attention_heads": 40, "intermediate_size": 20480})},
    {"gpt-neox-20b", "card", 20554567680, JSON(
          {"model_type": "gpt_neox", "max_position_embeddings": 2048,
           "vocab_size": 50432, "use_parallel_residual": true, "hidden_act":
           "gelu", "hidden_size": 6144, "num_hidden_layers": 44,
           "num_attention_heads": 64, "intermediate_size": 24576})},
    {"falcon-7b",
     "hub's 7217189760 - 65024 * 4544: the tied head is stored, too", 6921720704, JSON(
          {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
           "num_attention_heads": 71, "num_kv_heads": 71, "vocab_size": 65024,
           "multi_query": true, "parallel_attn": true, "new_decoder_architecture":
           false, "bias": false})},
    {"falcon-40b",
     "hub's 41835970560 - 65024 * 8192: the tied head is stored, too", 41303293952, JSON(
          {"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60,
           "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024,
           "new_decoder_architecture": true, "bias": false})},
    {"falcon-180b",
     "hub's 179522565120 - 65024 * 14848: the tied head is stored, too",
     178557088768, JSON(
          {"model_type": "falcon", "hidden_size": 14848, "num_hidden_layers": 80,
           "num_attention_heads": 232, "num_kv_heads": 8, "vocab_size": 65024,
           "new_decoder_architecture": true, "bias": false})},
    {"falcon-rw-1b", "hub", 1311625216, JSON(
          {"model_type": "falcon", "hidden_size": 2048, "num_hidden_layers": 24,
           "num_attention_heads": 32, "vocab_size": 50304, "multi_query": false,
           "parallel_attn": false, "new_decoder_architecture": false, "bias":
           true, "alibi": true})},
    {"deepseek-v2-lite", "hub", 15706484224, JSON(
          {"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers":
           27, "num_attention_heads": 16, "num_key_value_heads": 16,
           "intermediate_size": 10944, "moe_intermediate_size": 1408,
           "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok":
           6, "first_k_dense_replace": 1, "moe_layer_freq": 1, "kv_lora_rank":
           512, "q_lora_rank": null, "qk_rope_head_dim": 64, "qk_nope_head_dim":
           128, "v_head_dim": 128, "vocab_size": 102400,
           "max_position_embeddings": 163840})},
    {"deepseek-v2", "hub", 235741434880, JSON(
          {"model_type": "deepseek_v2", "hidden_size": 5120, "num_hidden_layers":
           60, "num_attention_heads": 128, "num_key_value_heads": 128,
           "intermediate_size": 12288, "moe_intermediate_size": 1536,
           "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok":
           6, "first_k_dense_replace": 1, "moe_layer_freq": 1, "kv_lora_rank":
           512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim":
           128, "v_head_dim": 128, "vocab_size": 102400,
           "max_position_embeddings": 163840})},
    {"deepseek-v3", "derived, see test_published_counts", 671026404352, JSON(
          {"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers":
           61, "num_attention_heads": 128, "num_key_value_heads": 128,
           "intermediate_size": 18432, "moe_intermediate_size": 2048,
           "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok":
           8, "first_k_dense_replace": 3, "moe_layer_freq": 1, "kv_lora_rank":
           512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim":
           128, "v_head_dim": 128, "vocab_size": 129280,
           "max_position_embeddings": 163840})},
    {"gpt-oss-20b",
     "general.parameter_count of Ollama's; OpenAI's card: 20.91B", 20914757184, JSON(
          {"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24,
           "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
           "intermediate_size": 2880, "num_local_experts": 32,
           "num_experts_per_tok": 4, "experts_per_token": 4, "vocab_size": 201088,
           "max_position_embeddings": 131072, "sliding_window": 128,
           "attention_bias": true, "layer_types": ["sliding_attention",
           "full_attention", "sliding_attention", "full_attention",
           "sliding_attention", "full_attention", "sliding_attention",
           "full_attention", "sliding_attention", "full_attention",
           "sliding_attention", "full_attention", "sliding_attention",
           "full_attention", "sliding_attention", "full_attention",
           "sliding_attention", "full_attention", "sliding_attention",
           "full_attention", "sliding_attention", "full_attention",
           "sliding_attention", "full_attention"]})},
    {"gpt-oss-120b",
     "general.parameter_count of Ollama's; OpenAI's card: 116.83B", 116829156672, JSON(
          {"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 36,
           "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
           "intermediate_size": 2880, "num_local_experts": 128,
           "num_experts_per_tok": 4, "vocab_size": 201088,
           "max_position_embeddings": 131072, "sliding_window": 128,
           "attention_bias": true})},
    {"qwen1.5-moe", "hub", 14315784192, JSON(
          {"model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers":
           24, "num_attention_heads": 16, "num_key_value_heads": 16,
           "intermediate_size": 5632, "moe_intermediate_size": 1408,
           "shared_expert_intermediate_size": 5632, "num_experts": 60,
           "num_experts_per_tok": 4, "vocab_size": 151936,
           "max_position_embeddings": 8192, "tie_word_embeddings": false,
           "decoder_sparse_step": 1, "sliding_window": 32768, "max_window_layers":
           21, "use_sliding_window": false})},
    {"t5-small", "hub", 60506624, JSON(
          {"model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048,
           "num_layers": 6, "num_heads": 8, "vocab_size": 32128, "n_positions":
           512})},
    {"t5-base", "hub", 222903552, JSON(
          {"model_type": "t5", "d_model": 768, "d_kv": 64, "d_ff": 3072,
           "num_layers": 12, "num_heads": 12, "vocab_size": 32128, "n_positions":
           512})},
    {"t5-11b", "num_parameters() of google-t5/t5-11b", 11307321344, JSON(
          {"model_type": "t5", "d_model": 1024, "d_kv": 128, "d_ff": 65536,
           "num_layers": 24, "num_heads": 128, "vocab_size": 32128, "n_positions":
           512})},
    {"flan-t5-base", "hub", 247577856, JSON(
          {"model_type": "t5", "d_model": 768, "d_kv": 64, "d_ff": 2048,
           "num_layers": 12, "num_decoder_layers": 12, "num_heads": 12,
           "vocab_size": 32128, "n_positions": 512, "feed_forward_proj":
           "gated-gelu", "tie_word_embeddings": false})},
    {"vit-base", "hub; torchvision's vit_b_16", 86567656, JSON(
          {"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12,
           "num_attention_heads": 12, "intermediate_size": 3072, "image_size":
           224, "patch_size": 16, "num_channels": 3, "num_labels": 1000,
           "qkv_bias": true})},
    {"vit-base-in21k", "hub", 86389248, JSON(
          {"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12,
           "num_attention_heads": 12, "intermediate_size": 3072, "image_size":
           224, "patch_size": 16, "num_channels": 3, "qkv_bias": true})},
    {"vit-large", "torchvision's vit_l_16", 304326632, JSON(
          {"model_type": "vit", "hidden_size": 1024, "num_hidden_layers": 24,
           "num_attention_heads": 16, "intermediate_size": 4096, "num_labels":
           1000})},
    {"gpt2", "num_parameters() of openai-community/gpt2", 124439808, JSON(
          {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
           "n_positions": 1024, "vocab_size": 50257, "activation_function":
           "gelu_new"})},
    {"mixtral-8x7b", "hub", 46702792704, JSON(
          {"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8,
           "intermediate_size": 14336, "num_local_experts": 8,
           "num_experts_per_tok": 2, "vocab_size": 32000,
           "max_position_embeddings": 32768, "sliding_window": null,
           "tie_word_embeddings": false})},
    {"mistral-7b", "hub", 7241732096, JSON(
          {"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8,
           "intermediate_size": 14336, "vocab_size": 32000,
           "max_position_embeddings": 32768, "sliding_window": 4096})},
    {"qwen2-7b", "hub", 7615616512, JSON(
          {"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
           "num_attention_heads": 28, "num_key_value_heads": 4,
           "intermediate_size": 18944, "vocab_size": 152064,
           "max_position_embeddings": 131072, "tie_word_embeddings": false,
           "sliding_window": 131072, "use_sliding_window": false,
           "max_window_layers": 28})},
    {"qwen2.5-0.5b", "hub", 494032768, JSON(
          {"model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24,
           "num_attention_heads": 14, "num_key_value_heads": 2,
           "intermediate_size": 4864, "vocab_size": 151936,
           "max_position_embeddings": 32768, "tie_word_embeddings": true})},
    {"llama3-8b", "hub", 8030261248, JSON(
          {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8,
           "intermediate_size": 14336, "vocab_size": 128256,
           "max_position_embeddings": 8192})},
    {"roberta-base", "num_parameters() of RobertaModel", 124645632, JSON(
          {"model_type": "roberta", "hidden_size": 768, "num_hidden_layers": 12,
           "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size":
           50265, "max_position_embeddings": 514, "type_vocab_size": 1})},
    {"bert-base", "num_parameters() of BertModel", 109482240, JSON(
          {"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12,
           "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size":
           30522, "max_position_embeddings": 512, "type_vocab_size": 2})},
};
/* clang-format on */

enum { NMODELS = sizeof models / sizeof *models };

#endif
