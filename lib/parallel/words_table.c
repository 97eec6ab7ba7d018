/* Arguments of Megatron-LM (megatron/training/arguments.py, core 0.13), of torchrun, and
 * variables of MLPerf benchmarks, by the keys of training records. */
#include "words.h"

#include <stddef.h>

#define VALUE PARALLEL_ARG_VALUE
#define FLAG PARALLEL_ARG_FLAG
#define TRUE_ PARALLEL_ARG_TRUE
#define MAP PARALLEL_ARG_MAP
#define REFUSE PARALLEL_ARG_REFUSE
#define END                                  \
    {                                        \
        NULL, PARALLEL_ARG_VALUE, NULL, NULL \
    }

const struct parallel_arg_row parallel_arg_rows[] = {
    /* the mix */
    {"tensor-model-parallel-size", VALUE, "tp", NULL},
    {"pipeline-model-parallel-size", VALUE, "pp", NULL},
    {"num-virtual-stages-per-pipeline-rank", VALUE, "vp", NULL},
    {"num-layers-per-virtual-pipeline-stage", VALUE, "chunk_layers", NULL},
    {"context-parallel-size", VALUE, "cp", NULL},
    {"expert-model-parallel-size", VALUE, "ep", NULL},
    {"expert-tensor-parallel-size", VALUE, "etp", NULL},
    {"sequence-parallel", FLAG, "sp", "1"},
    {"micro-batch-size", VALUE, "mbs", NULL},
    {"global-batch-size", VALUE, "gbs", NULL},
    {"world-size", VALUE, "gpus", NULL},
    {"nnodes", VALUE, ".nodes", NULL},
    {"nproc-per-node", VALUE, ".each", NULL},
    {"use-tp-pp-dp-mapping", FLAG, "rank_order", "tp-cp-pp-dp"},
    {"account-for-embedding-in-pipeline-split", FLAG, ".first", "1"},
    {"account-for-loss-in-pipeline-split", FLAG, ".last", "1"},
    {"pipeline-model-parallel-layout", REFUSE, NULL, NULL},
    {"decoder-first-pipeline-num-layers", REFUSE, NULL, NULL},
    {"decoder-last-pipeline-num-layers", REFUSE, NULL, NULL},
    /* sharding, overlap */
    {"use-distributed-optimizer", FLAG, "zero", "1"},
    {"use-torch-fsdp2", FLAG, ".fsdp2", "1"},
    {"use-custom-fsdp", FLAG, ".fsdp", "1"},
    {"use-megatron-fsdp", FLAG, ".fsdp", "1"},
    {"data-parallel-sharding-strategy", MAP, ".strategy",
     "no_shard=0 optim=1 optim_grads=2 optim_grads_params=3"},
    {"overlap-grad-reduce", FLAG, "overlap", "dp"},
    {"overlap-param-gather", FLAG, ".gather", "1"},
    {"tp-comm-overlap", FLAG, "overlap", "tp"},
    {"overlap-moe-expert-parallel-comm", FLAG, "overlap", "ep"},
    {"cp-comm-type", MAP, ".cp", "p2p=p2p a2a=a2a allgather=gather all_gather=gather"},
    {"no-overlap-p2p-communication", FLAG, ".alone", "1"},
    {"fp8-param-gather", FLAG, "param_gather", "fp8"},
    {"grad-reduce-in-bf16", FLAG, "gradients", "bf16"},
    {"accumulate-allreduce-grads-in-fp32", FLAG, "gradients", "fp32"},
    /* what is kept and what runs again */
    {"recompute-activations", FLAG, ".selective", "1"},
    {"recompute-granularity", MAP, "recompute", "full=full selective=selective"},
    {"recompute-method", MAP, ".method", "block=block uniform=uniform"},
    {"recompute-num-layers", VALUE, ".again", NULL},
    {"attention-backend", MAP, "attention",
     "flash=fused fused=fused auto=fused unfused=unfused local=unfused"},
    {"use-flash-attn", FLAG, "attention", "fused"},
    /* numbers */
    {"bf16", FLAG, ".wide", "bf16"},
    {"fp16", FLAG, ".wide", "fp16"},
    {"fp8-format", MAP, "precision", "hybrid=fp8 e4m3=fp8"},
    {"fp8-recipe", MAP, ".recipe",
     "delayed=fp8 tensorwise=fp8 blockwise=fp8 mxfp8=mxfp8"},
    {"fp4-format", MAP, "precision", "e2m1=nvfp4"},
    {"enable-cuda-graph", FLAG, "cuda_graph", "layer"},
    {"external-cuda-graph", FLAG, "cuda_graph", "layer"},
    /* the model */
    {"num-layers", VALUE, "layers", NULL},
    {"hidden-size", VALUE, "hidden", NULL},
    {"ffn-hidden-size", VALUE, "ffn", NULL},
    {"num-attention-heads", VALUE, "heads", NULL},
    {"num-query-groups", VALUE, ".groups", NULL},
    {"group-query-attention", FLAG, ".grouped", "1"},
    {"kv-channels", VALUE, "head_dim", NULL},
    {"seq-length", VALUE, "seq", NULL},
    {"max-position-embeddings", VALUE, ".most", NULL},
    {"position-embedding-type", MAP, ".positions", "rope=0 none=0 learned_absolute=most"},
    {"use-rotary-position-embeddings", FLAG, ".positions", "0"},
    {"swiglu", FLAG, "mlp", "swiglu"},
    {"squared-relu", FLAG, "mlp", "relu2"},
    {"normalization", MAP, "norm", "RMSNorm=rms LayerNorm=layer"},
    {"disable-bias-linear", FLAG, "bias", "none"},
    {"add-qkv-bias", FLAG, ".qkv", "1"},
    {"untie-embeddings-and-output-weights", FLAG, "tied", "0"},
    {"qk-layernorm", FLAG, "qk_norm", "head"},
    {"attention-dropout", VALUE, ".drop_a", NULL},
    {"hidden-dropout", VALUE, ".drop_h", NULL},
    {"vocab-size", VALUE, "vocab", NULL},
    {"num-experts", VALUE, "experts", NULL},
    {"moe-router-topk", VALUE, "topk", NULL},
    {"moe-ffn-hidden-size", VALUE, "expert_ffn", NULL},
    {"moe-shared-expert-intermediate-size", VALUE, "shared_ffn", NULL},
    {"moe-layer-freq", MAP, ".freq", "1=1"},
    {"mtp-num-layers", REFUSE, NULL, NULL},
    {"multi-latent-attention", REFUSE, NULL, NULL},
    {"encoder-num-layers", REFUSE, NULL, NULL},
    END};

const struct parallel_arg_row parallel_variable_rows[] = {
    {"TENSOR_MODEL_PARALLEL", VALUE, "tp", NULL},
    {"PIPELINE_MODEL_PARALLEL", VALUE, "pp", NULL},
    {"INTERLEAVED_PIPELINE", VALUE, "vp", NULL},
    {"CONTEXT_PARALLEL", VALUE, "cp", NULL},
    {"EXPERT_MODEL_PARALLEL", VALUE, "ep", NULL},
    {"EXPERT_TENSOR_PARALLEL", VALUE, "etp", NULL},
    {"MICRO_BATCH_SIZE", VALUE, "mbs", NULL},
    {"MINIBS", VALUE, "replica_batch", NULL},
    {"GLOBAL_BATCH_SIZE", VALUE, "gbs", NULL},
    {"SEQ_LENGTH", VALUE, "seq", NULL},
    {"ENCODER_SEQ_LENGTH", VALUE, "seq", NULL},
    {"DGXNNODES", VALUE, ".nodes", NULL},
    {"DGXNGPU", VALUE, ".each", NULL},
    {"NNODES", VALUE, ".nodes", NULL},
    {"GPUS_PER_NODE", VALUE, ".each", NULL},
    {"WORLD_SIZE", VALUE, "gpus", NULL},
    {"SEQ_PARALLEL", TRUE_, ".sp", NULL},
    {"SEQUENCE_PARALLEL", TRUE_, ".sp", NULL},
    {"USE_DIST_OPTIMIZER", TRUE_, ".zero", NULL},
    {"TP_COMM_OVERLAP", TRUE_, ".tp_beside", NULL},
    {"FP8", TRUE_, ".fp8", NULL},
    END};
