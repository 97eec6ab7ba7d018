source $(dirname ${BASH_SOURCE[0]})/config_common.sh
# Dl params
export MINIBS=128
export TENSOR_MODEL_PARALLEL=4
export PIPELINE_MODEL_PARALLEL=8
export INTERLEAVED_PIPELINE=6
export CONTEXT_PARALLEL=null
export MICRO_BATCH_SIZE=2
: ${SEQ_PARALLEL:=1}
export FP8=True TP_COMM_OVERLAP=False
export DGXNNODES=64
export DGXNGPU=8
export DGXSYSTEM=$(basename $(readlink -f ${BASH_SOURCE[0]}) | sed 's/^config_//')
export WALLTIME=$((5 + ${NEXP:-1} * 85))
