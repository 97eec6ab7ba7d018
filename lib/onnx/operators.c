/* The table of operators: the rule, the work and the operands of each. */
#include "private.h"

/* Operations per element. They are those of the layers of named networks (lib/input), so
 * that a network costs the same in both forms. FUNCTION is an exponential and what goes
 * with it; SERIES is a function of several such parts, as Tanh or Gelu. */
enum { MOVE = 0, ONE = 1, NORM = 4, FUNCTION = 4, SOFTMAX = 5, SERIES = 8 };

/* Operands that are not trained. */
enum {
    /* BatchNormalization: running mean and variance */
    STATISTICS = ONNX_BUFFER(3) | ONNX_BUFFER(4),
    /* RNN, GRU, LSTM: lengths of the samples, states before the first step */
    STATES = ONNX_BUFFER(4) | ONNX_BUFFER(5) | ONNX_BUFFER(6),
    /* RotaryEmbedding: cosines, sines and positions */
    ANGLES = ONNX_BUFFER(1) | ONNX_BUFFER(2) | ONNX_BUFFER(3),
    /* Attention: mask, keys and values of earlier calls */
    MASK_AND_PAST = ONNX_BUFFER(3) | ONNX_BUFFER(4) | ONNX_BUFFER(5)
};

/* Rows of one sort. Most operators have work, a first output that alone costs something,
 * and no buffers. */
#define WORKS(name, rule, each, kind, weights)                    \
    {                                                             \
        name, rule, each, kind, ONNX_WORK, weights, ONNX_FIRST, 0 \
    }
#define POINTWISE(name, each) WORKS(name, onnx_pointwise, each, NULL, ONNX_EITHER)
#define SAME(name, each) WORKS(name, onnx_same, each, NULL, ONNX_EITHER)
#define MOVES(name, rule) WORKS(name, rule, MOVE, NULL, ONNX_EITHER)
#define REDUCE(name) WORKS(name, onnx_reduce, ONE, NULL, ONNX_EITHER)
#define NORMALIZES(name, each) WORKS(name, onnx_same, each, NULL, ONNX_BEHIND)
#define MULTIPLIES(name, rule, kind, weights) WORKS(name, rule, ONE, kind, weights)
#define WORK(name, rule, kind) WORKS(name, rule, ONE, kind, ONNX_EITHER)
/* No gradient passes a comparison, so all its operands are buffers. */
#define COMPARES(name)                                                           \
    {                                                                            \
        name, onnx_pointwise, ONE, NULL, ONNX_WORK, ONNX_EITHER, ONNX_FIRST, ~0u \
    }
#define VIEW(name, rule)                                              \
    {                                                                 \
        name, rule, MOVE, NULL, ONNX_VIEW, ONNX_EITHER, ONNX_FIRST, 0 \
    }
#define FREE(name, rule)                                              \
    {                                                                 \
        name, rule, MOVE, NULL, ONNX_FREE, ONNX_EITHER, ONNX_FIRST, 0 \
    }
#define ATTENDS(name, rule, kind, weights, buffers)                       \
    {                                                                     \
        name, rule, ONE, kind, ONNX_WORK, weights, ONNX_TOGETHER, buffers \
    }
#define RECURRENT(name) ATTENDS(name, onnx_recurrent, "matmul", ONNX_RECURRENT, STATES)

const struct onnx_operator onnx_operators[] = {
    MULTIPLIES("Conv", onnx_convolution, "convolution", ONNX_BEHIND),
    MULTIPLIES("ConvTranspose", onnx_transposed, "convolution", ONNX_BEHIND),
    MULTIPLIES("Gemm", onnx_gemm, "matmul", ONNX_RIGHT),
    MULTIPLIES("MatMul", onnx_matmul, "matmul", ONNX_RIGHT),
    {"BatchNormalization", onnx_same, NORM, NULL, ONNX_WORK, ONNX_BEHIND, ONNX_FIRST,
     STATISTICS},
    NORMALIZES("InstanceNormalization", NORM),
    NORMALIZES("LayerNormalization", SERIES),
    NORMALIZES("GroupNormalization", SERIES),
    NORMALIZES("RMSNormalization", NORM),
    NORMALIZES("SimplifiedLayerNormalization", NORM),
    RECURRENT("RNN"),
    RECURRENT("GRU"),
    RECURRENT("LSTM"),
    {"Einsum", onnx_einsum, ONE, NULL, ONNX_WORK, ONNX_EITHER, ONNX_FIRST, 0},
    ATTENDS("Attention", onnx_attention, "attention", ONNX_ACTIVATIONS, MASK_AND_PAST),
    ATTENDS("RotaryEmbedding", onnx_rotary, NULL, ONNX_BEHIND, ANGLES),
    WORK("LRN", onnx_window, NULL),
    WORK("MaxPool", onnx_pool, NULL),
    WORK("AveragePool", onnx_pool, NULL),
    WORK("GlobalAveragePool", onnx_global_pool, NULL),
    WORK("GlobalMaxPool", onnx_global_pool, NULL),
    SAME("Softmax", SOFTMAX),
    SAME("LogSoftmax", SOFTMAX),
    SAME("Dropout", ONE),
    SAME("Clip", ONE),
    SAME("Trilu", ONE),
    SAME("CumSum", ONE),
    POINTWISE("Abs", ONE),
    POINTWISE("Neg", ONE),
    POINTWISE("Relu", ONE),
    POINTWISE("LeakyRelu", ONE),
    {"PRelu", onnx_pointwise, ONE, NULL, ONNX_WORK, ONNX_BEHIND, ONNX_FIRST, 0},
    POINTWISE("HardSigmoid", ONE),
    POINTWISE("HardSwish", ONE),
    POINTWISE("Elu", FUNCTION),
    POINTWISE("Selu", FUNCTION),
    POINTWISE("Exp", FUNCTION),
    POINTWISE("Log", FUNCTION),
    POINTWISE("Sin", FUNCTION),
    POINTWISE("Cos", FUNCTION),
    POINTWISE("Sigmoid", FUNCTION),
    POINTWISE("Softplus", SERIES),
    POINTWISE("Mish", SERIES),
    POINTWISE("Erf", SERIES),
    POINTWISE("Gelu", SERIES),
    POINTWISE("Tanh", SERIES),
    POINTWISE("Sqrt", ONE),
    POINTWISE("Reciprocal", ONE),
    POINTWISE("Floor", ONE),
    POINTWISE("Ceil", ONE),
    POINTWISE("Round", ONE),
    POINTWISE("Sign", ONE),
    COMPARES("Not"),
    COMPARES("IsNaN"),
    POINTWISE("Cast", MOVE),
    POINTWISE("Add", ONE),
    POINTWISE("Sub", ONE),
    POINTWISE("Mul", ONE),
    POINTWISE("Div", ONE),
    POINTWISE("Mod", ONE),
    POINTWISE("Pow", FUNCTION),
    POINTWISE("Sum", ONE),
    POINTWISE("Mean", ONE),
    POINTWISE("Max", ONE),
    POINTWISE("Min", ONE),
    {"Where", onnx_pointwise, ONE, NULL, ONNX_WORK, ONNX_EITHER, ONNX_FIRST,
     ONNX_BUFFER(0)},
    COMPARES("Equal"),
    COMPARES("Less"),
    COMPARES("LessOrEqual"),
    COMPARES("Greater"),
    COMPARES("GreaterOrEqual"),
    COMPARES("And"),
    COMPARES("Or"),
    COMPARES("Xor"),
    REDUCE("ReduceMean"),
    REDUCE("ReduceSum"),
    REDUCE("ReduceSumSquare"),
    REDUCE("ReduceMax"),
    REDUCE("ReduceMin"),
    REDUCE("ReduceProd"),
    REDUCE("ReduceL1"),
    REDUCE("ReduceL2"),
    REDUCE("ReduceLogSumExp"),
    REDUCE("ArgMax"),
    REDUCE("ArgMin"),
    {"TopK", onnx_top, ONE, NULL, ONNX_WORK, ONNX_EITHER, ONNX_TOGETHER, 0},
    VIEW("Reshape", onnx_reshape),
    VIEW("Flatten", onnx_flatten),
    VIEW("Squeeze", onnx_squeeze),
    VIEW("Unsqueeze", onnx_unsqueeze),
    VIEW("Identity", onnx_same),
    MOVES("Transpose", onnx_transpose),
    MOVES("Concat", onnx_concat),
    MOVES("Slice", onnx_slice),
    {"Split", onnx_split, MOVE, NULL, ONNX_WORK, ONNX_EITHER, ONNX_APART, 0},
    {"Gather", onnx_gather, MOVE, NULL, ONNX_WORK, ONNX_TABLE, ONNX_FIRST, 0},
    MOVES("Expand", onnx_expand),
    MOVES("Pad", onnx_pad),
    MOVES("ScatterND", onnx_same),
    MOVES("GatherND", onnx_said),
    MOVES("GatherElements", onnx_said),
    MOVES("Range", onnx_said),
    MOVES("Tile", onnx_said),
    MOVES("DepthToSpace", onnx_said),
    MOVES("SpaceToDepth", onnx_said),
    SAME("ScatterElements", MOVE),
    {"Resize", onnx_said, NORM, NULL, ONNX_WORK, ONNX_EITHER, ONNX_FIRST, 0},
    {"Upsample", onnx_said, NORM, NULL, ONNX_WORK, ONNX_EITHER, ONNX_FIRST, 0},
    FREE("Constant", onnx_constant),
    FREE("ConstantOfShape", onnx_constant_of_shape),
    FREE("Shape", onnx_shape),
    FREE("Size", onnx_size),
    {NULL, NULL, 0, NULL, ONNX_WORK, ONNX_EITHER, ONNX_FIRST, 0},
};
