/* How the files of lib/onnx work together. build.c walks over the nodes of the graph in
 * order. For each node it calls the rule of the operator, which infers the shape of an
 * output and the work from the shapes of the inputs (tensor.c, shape.c, work.c, ...). */
#ifndef RAMPIPE_ONNX_PRIVATE_H
#define RAMPIPE_ONNX_PRIVATE_H

#include "rampipe/onnx.h"

#include <proto/onnx.pb-c.h>

#include <math.h>

enum { ONNX_RANK_MAX = 8 }; /* dimensions of a tensor */

/* A tensor: its shape and, for short lists of integers, its values, since models compute
 * shapes from such lists. */
struct onnx_tensor {
    bool shaped; /* rank, dim and count are known */
    uint32_t rank;
    int64_t dim[ONNX_RANK_MAX];
    double count; /* elements */
    bool known;   /* value[0], ..., value[count - 1] are its elements */
    int64_t value[ONNX_RANK_MAX];
};

/* A value of the graph: an input, an initialiser, or the output of a node. */
struct onnx_value {
    struct onnx_tensor tensor;
    bool made;      /* an input, an initialiser or a node read so far makes it */
    bool starts;    /* it is an initialiser, or an input that is a weight */
    bool read;      /* a node has it as an operand */
    bool trained;   /* a gradient reaches it */
    bool owned;     /* a parameter that a layer counts already */
    uint32_t layer; /* the layer that writes it; REC_NONE: it is a constant */
    uint32_t param; /* the parameter, a value, of which it is made; REC_NONE: none */
};

struct onnx_building;

/* The node that is being read: its inputs, and the results of its operator's rule. */
struct onnx_node {
    struct onnx_building *b;
    const Onnx__Node *message;
    const struct onnx_operator *op;
    uint32_t *in; /* values; REC_NONE: the node leaves this input out */
    size_t nin, in_room;
    size_t output; /* the output whose shape the rule infers now, 0, 1, ... */
    /* Set by the rule: */
    struct onnx_tensor out; /* the output; not shaped: its shape cannot be inferred */
    double flops;           /* NAN: onnx_operator.each for each element written */
    double read;            /* elements of activations read; NAN: all inputs' elements */
    double gemm[4];         /* BATCH, M, N, K of a matrix product; else 0 */
    const char *kind;       /* class of the work; at first that of the operator's row */
};

enum onnx_cost {
    ONNX_WORK, /* it becomes a layer */
    ONNX_VIEW, /* its output is the first input in another shape: no layer */
    ONNX_FREE, /* its output is known before anything runs: no layer */
};

/* Which operands of an operator are weights and which are data. */
enum onnx_weights {
    ONNX_EITHER,     /* the operator does not tell */
    ONNX_BEHIND,     /* all operands behind the first one are weights */
    ONNX_RIGHT,      /* the second one, a matrix, is a weight */
    ONNX_TABLE,      /* the first one, of which data choose rows, is a weight */
    ONNX_RECURRENT,  /* all behind the first one that are no buffers are weights */
    ONNX_ACTIVATIONS /* all operands are data */
};

/* How the outputs of an operator become layers. */
enum onnx_outputs {
    ONNX_FIRST,   /* one layer writes the first output; other outputs, such as a mask or
                     statistics, cost nothing and belong to the same layer */
    ONNX_APART,   /* each output has a layer of its own */
    ONNX_TOGETHER /* one layer writes all outputs that the node names */
};

/* The bit of operand i in onnx_operator.buffers. A buffer is an operand that is not
 * trained, and so is no parameter even if the file has its values. */
#define ONNX_BUFFER(i) (1u << (i))

/* An operator. The rule infers node->out and the work of output node->output; false:
 * *err. */
struct onnx_operator {
    const char *name;
    bool (*rule)(struct onnx_node *node);
    double each;      /* operations per element written, unless the rule says flops */
    const char *kind; /* class of the work; NULL: memory */
    enum onnx_cost cost;
    enum onnx_weights weights;
    enum onnx_outputs outputs;
    unsigned buffers; /* ONNX_BUFFER() of its inputs */
};

/* Ends with a NULL name. */
extern const struct onnx_operator onnx_operators[];

/* The model that is being read. */
struct onnx_building {
    const char *name; /* of the file, for messages */
    const struct onnx_options *options;
    const Onnx__Graph *graph;
    struct onnx_value *value;
    size_t nvalues, value_room;
    struct rec_map values; /* name -> index of ->value */
    struct rec_map infos;  /* name -> index of graph->value_info; graph->output follows */
    struct input_network *network;
    double batch; /* samples in the file; 0: not known */
    struct onnx_inputs *inputs;
    struct rec_error *err;
};

/* ---- messages (message.c) --------------------------------------------------- */

/* Reads the model of a file; free it with onnx_message_free(). NULL: *err. */
Onnx__Model *onnx_message_read(const char *path, struct rec_error *err);
void onnx_message_free(Onnx__Model *model);

/* The attribute of this name; NULL: the node does not have it. */
const Onnx__Attribute *onnx_attribute(const Onnx__Node *node, const char *name);
/* A floating-point attribute; 0 if the node does not have it. */
double onnx_number(const Onnx__Node *node, const char *name);
/* An integer attribute; `otherwise` if the node does not have it. */
int64_t onnx_integer(const Onnx__Node *node, const char *name, int64_t otherwise);
/* Is a type of elements, by its number in the schema, a floating-point type? */
bool onnx_is_float(int32_t element);

/* Copies a foreign name to `text`, cut, and without characters that a terminal could take
 * for commands. Returns `text`. */
enum { ONNX_NAME_MAX = 64 };
const char *onnx_clean(const char *name, char text[ONNX_NAME_MAX]);

/* ---- inputs (build.c, weights.c) --------------------------------------------- */

/* What a shape in the file belongs to: a value inside the graph, an input that is data,
 * or one that is a weight. The first dimension of data may have a name instead of a
 * number: the samples. A weight's may not. */
enum onnx_shape_of { ONNX_INNER, ONNX_DATA, ONNX_WEIGHT };
/* Reads the shape that the file gives for a value. If it is not complete, an inner
 * value's tensor is not shaped; for an input this returns false, *err. */
bool onnx_take_info(const struct onnx_building *b, const Onnx__ValueInfo *info,
                    enum onnx_shape_of of, struct onnx_tensor *tensor);
/* Makes initialisers of the inputs that are weights. All values must have been added. */
bool onnx_find_weights(struct onnx_building *b);
/* Lists the inputs that are data in inputs->samples if their first dimensions differ, and
 * in inputs->unknown the dimensions of the options that the file does not have. False: an
 * input has no samples, *err. */
bool onnx_check_samples(struct onnx_building *b);
/* Marks the values that a gradient reaches. Initialisers that no gradient reaches, such
 * as a mask that is compared with 0, are then no parameters. */
void onnx_mark_trained(struct onnx_building *b);

/* ---- tensors (tensor.c) ------------------------------------------------------- */

/* Counts the elements of a tensor whose rank and dim are set, and makes it shaped. False:
 * a dimension is negative, or there are too many elements. */
bool onnx_count(struct onnx_tensor *tensor);
/* Makes a tensor of one known integer, of rank 0. */
void onnx_scalar(struct onnx_tensor *tensor, int64_t value);
/* Reads the tensor of an initialiser or constant. False: its dimensions are no shape. */
bool onnx_take_tensor(const Onnx__Tensor *message, struct onnx_tensor *tensor);
/* Reads the integers of input number `input` or, if the node leaves that out, of an
 * attribute: newer versions of an operator have as inputs what older ones have as
 * attributes. 1: they are in list[0], ..., list[*n - 1]; 0: the node has neither; -1:
 * their values are not known. */
int onnx_list(const struct onnx_node *node, size_t input, const char *attribute,
              int64_t list[ONNX_RANK_MAX], uint32_t *n);
/* The tensor of input i; NULL: the node leaves it out. */
const struct onnx_tensor *onnx_in(const struct onnx_node *node, size_t i);
/* Is input i a parameter? */
bool onnx_is_parameter(const struct onnx_node *node, size_t i);
/* Sets *at to an axis, which counts from the end if it is negative. False: a tensor of
 * this rank has no such axis, *err. */
bool onnx_axis(struct onnx_node *node, int64_t axis, uint32_t rank, uint32_t *at);
/* The number of different parameters that a node reads. */
size_t onnx_parameters(const struct onnx_node *node);
/* The sum of the elements of the inputs, each input once, without parameters. */
double onnx_reads(const struct onnx_node *node);
/* Sets *err to "FILE: node 'NAME' (TYPE): ..." with REC_DATA. Returns false. */
bool onnx_fail(const struct onnx_node *node, const char *format, ...) REC_PRINTF(2, 3);

/* ---- rules of operators --------------------------------------------------------- */

bool onnx_pointwise(struct onnx_node *node); /* tensor.c */
bool onnx_same(struct onnx_node *node);
bool onnx_convolution(struct onnx_node *node); /* work.c */
bool onnx_transposed(struct onnx_node *node);
bool onnx_pool(struct onnx_node *node);
bool onnx_global_pool(struct onnx_node *node);
bool onnx_gemm(struct onnx_node *node);
bool onnx_matmul(struct onnx_node *node);
bool onnx_reduce(struct onnx_node *node);
bool onnx_window(struct onnx_node *node);
bool onnx_constant(struct onnx_node *node); /* shape.c */
bool onnx_constant_of_shape(struct onnx_node *node);
bool onnx_shape(struct onnx_node *node);
bool onnx_size(struct onnx_node *node);
bool onnx_reshape(struct onnx_node *node);
bool onnx_flatten(struct onnx_node *node);
bool onnx_squeeze(struct onnx_node *node);
bool onnx_unsqueeze(struct onnx_node *node);
bool onnx_transpose(struct onnx_node *node);
bool onnx_concat(struct onnx_node *node);
bool onnx_slice(struct onnx_node *node);
bool onnx_split(struct onnx_node *node);
bool onnx_gather(struct onnx_node *node);
bool onnx_expand(struct onnx_node *node);
bool onnx_pad(struct onnx_node *node);
bool onnx_said(struct onnx_node *node);      /* the file must give the shape */
bool onnx_top(struct onnx_node *node);       /* work.c */
bool onnx_attention(struct onnx_node *node); /* attention.c */
bool onnx_rotary(struct onnx_node *node);
bool onnx_recurrent(struct onnx_node *node); /* recurrent.c */
bool onnx_einsum(struct onnx_node *node);    /* einsum.c */

#endif
