/* What the files of lib/onnx share with each other and with nobody else. */
#ifndef RAMPIPE_ONNX_PRIVATE_H
#define RAMPIPE_ONNX_PRIVATE_H

#include "rampipe/onnx.h"

#include <proto/onnx.pb-c.h>

#include <math.h>

enum { ONNX_RANK_MAX = 8 };

/* A tensor: its shape, and what it holds if that is integers that shapes come of. */
struct onnx_tensor {
    bool shaped;
    uint32_t rank;
    int64_t dim[ONNX_RANK_MAX];
    double count; /* elements */
    bool known;   /* value[count] */
    int64_t value[ONNX_RANK_MAX];
};

/* A value of the graph. */
struct onnx_value {
    struct onnx_tensor tensor;
    bool made;      /* by an input, an initialiser or a node that has been read */
    bool starts;    /* it is an initialiser, or an input that is a weight */
    bool read;      /* a node has it as an operand */
    bool trained;   /* a gradient reaches it */
    bool owned;     /* a parameter: a layer counts it */
    uint32_t layer; /* that writes it; REC_NONE: it is constant, */
    uint32_t param; /* and made of this parameter, a value; REC_NONE: it is none */
};

struct onnx_building;

/* A node at work: its inputs, and what is found out. */
struct onnx_node {
    struct onnx_building *b;
    const Onnx__Node *message;
    const struct onnx_operator *op;
    uint32_t *in; /* values; REC_NONE: left out */
    size_t nin, in_room;
    size_t output;          /* which one */
    struct onnx_tensor out; /* not shaped: it cannot be inferred */
    double flops;           /* NAN: each element takes what the operator's row says */
    double read;            /* elements of activations; NAN: all of its inputs */
    double gemm[4];
    const char *kind; /* of the work; the operator's row says it, if the rule does not */
};

enum onnx_cost {
    ONNX_WORK,
    ONNX_VIEW, /* the first input, seen in another shape */
    ONNX_FREE, /* known before anything runs */
};

/* Which operands of an operator are weights, and no data. */
enum onnx_weights {
    ONNX_EITHER,     /* it does not say */
    ONNX_BEHIND,     /* those behind the first one */
    ONNX_RIGHT,      /* the second one, a matrix */
    ONNX_TABLE,      /* the first one, of which data choose rows */
    ONNX_RECURRENT,  /* those behind the first one that are no buffers */
    ONNX_ACTIVATIONS /* none of them */
};

/* What the outputs of an operator are. */
enum onnx_outputs {
    ONNX_FIRST,   /* the first one counts; others, a mask or statistics, have its layer */
    ONNX_APART,   /* a layer each */
    ONNX_TOGETHER /* one layer writes all that have names; the rule gives each its shape */
};

/* The operator's inputs that are no parameters even if the file has their values. */
#define ONNX_BUFFER(i) (1u << (i))

/* An operator. The rule fills the node's tensor; false: *err. */
struct onnx_operator {
    const char *name;
    bool (*rule)(struct onnx_node *node);
    double each;      /* operations an element that is written */
    const char *kind; /* of the work; NULL: memory */
    enum onnx_cost cost;
    enum onnx_weights weights;
    enum onnx_outputs outputs;
    unsigned buffers; /* ONNX_BUFFER() of its inputs */
};

/* Ends with a NULL name. */
extern const struct onnx_operator onnx_operators[];

/* A model being read. */
struct onnx_building {
    const char *name; /* of the file */
    const struct onnx_options *options;
    const Onnx__Graph *graph;
    struct onnx_value *value;
    size_t nvalues, value_room;
    struct rec_map values; /* by name */
    struct rec_map infos;  /* by name: graph->value_info, then graph->output */
    struct input_network *network;
    double batch; /* of the file */
    struct onnx_inputs *inputs;
    struct rec_error *err;
};

/* ---- messages (message.c) --------------------------------------------------- */

/* The model of a file; onnx_message_free(). */
Onnx__Model *onnx_message_read(const char *path, struct rec_error *err);
void onnx_message_free(Onnx__Model *model);

const Onnx__Attribute *onnx_attribute(const Onnx__Node *node, const char *name);
/* A number of floating point; 0 if it is not there. */
double onnx_number(const Onnx__Node *node, const char *name);
int64_t onnx_integer(const Onnx__Node *node, const char *name, int64_t otherwise);
bool onnx_is_float(int32_t element);

/* A foreign name, fit for a message. */
enum { ONNX_NAME_MAX = 64 };
const char *onnx_clean(const char *name, char text[ONNX_NAME_MAX]);

/* ---- inputs (build.c, weights.c) --------------------------------------------- */

/* Whose shape a file says. Samples, the first dimension, may have a name, but not a
 * weight's. */
enum onnx_shape_of { ONNX_INNER, ONNX_DATA, ONNX_WEIGHT };
/* False: an input's shape is not known, *err. Others are then not shaped. */
bool onnx_take_info(const struct onnx_building *b, const Onnx__ValueInfo *info,
                    enum onnx_shape_of of, struct onnx_tensor *tensor);
/* Makes initialisers of the inputs that are weights. All values are there. */
bool onnx_find_weights(struct onnx_building *b);
/* Says of each value whether a gradient reaches it. Initialisers that none reaches, such
 * as a mask that is compared with 0, are no parameters. */
void onnx_mark_trained(struct onnx_building *b);

/* ---- tensors (tensor.c) ------------------------------------------------------- */

/* Counts its elements. False: a dimension is negative, or there are too many. */
bool onnx_count(struct onnx_tensor *tensor);
void onnx_scalar(struct onnx_tensor *tensor, int64_t value);
/* What an initialiser or constant is; false: its dimensions are no shape. */
bool onnx_take_tensor(const Onnx__Tensor *message, struct onnx_tensor *tensor);
/* The integers that an input holds or, without one, an attribute. 1: they are in
 * list[*n]; 0: there are none; -1: they are not known. */
int onnx_list(const struct onnx_node *node, size_t input, const char *attribute,
              int64_t list[ONNX_RANK_MAX], uint32_t *n);
/* Input i; NULL: it was left out. */
const struct onnx_tensor *onnx_in(const struct onnx_node *node, size_t i);
/* Is input i a parameter? */
bool onnx_is_parameter(const struct onnx_node *node, size_t i);
/* An axis, from the end if it is negative. False: there is none such, said. */
bool onnx_axis(struct onnx_node *node, int64_t axis, uint32_t rank, uint32_t *at);
/* Elements of its inputs, each once, but for parameters. */
double onnx_reads(const struct onnx_node *node);
/* "FILE: node 'NAME' (TYPE): what". Returns false. */
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
bool onnx_said(struct onnx_node *node);      /* the file must say it */
bool onnx_top(struct onnx_node *node);       /* work.c */
bool onnx_attention(struct onnx_node *node); /* attention.c */
bool onnx_rotary(struct onnx_node *node);
bool onnx_recurrent(struct onnx_node *node); /* recurrent.c */
bool onnx_einsum(struct onnx_node *node);    /* einsum.c */

#endif
