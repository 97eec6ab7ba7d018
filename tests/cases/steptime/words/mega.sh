#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=16
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
TP=8
DISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES --master_addr ${MASTER_ADDR:-localhost})
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288   # of GPT-3
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto
)
MODEL_PARALLEL_ARGS=(
	--tensor-model-parallel-size ${TP}
	--pipeline-model-parallel-size "16"
)
TRAINING_ARGS="--micro-batch-size 1 --global-batch-size 1536 \
    --lr 6.0e-5 --bf16 --recompute-granularity full \
    --recompute-method block --recompute-num-layers 2"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${GPT_MODEL_ARGS[@]} ${MODEL_PARALLEL_ARGS[@]} $TRAINING_ARGS
