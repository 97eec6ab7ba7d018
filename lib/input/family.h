/* Families of transformers, and which keys of a config.json say what about them. */
#ifndef RAMPIPE_INPUT_FAMILY_H
#define RAMPIPE_INPUT_FAMILY_H

#include "rampipe/input.h"

#include <stddef.h>

/* What the keys fill: the transformer, and what is only needed to make it. */
struct input_draft {
    struct input_transformer t;
    unsigned sequence; /* the largest number of tokens */
    bool learned;      /* the model learns an embedding for each position */
    unsigned spare;    /* rows of the position embedding that no position uses */
    unsigned nope;     /* latent attention: elements of a head without a position */
    unsigned shared;   /* experts that every token goes through */

    /* The window is active in the layers from window_from up to, but not including,
     * window_until (0: up to the last), except in each window_period-th layer (0: no
     * exception). If the file has a list layer_types, the list says it instead. */
    bool windowed;
    unsigned window, window_from, window_until, window_period;

    /* Layers that are a mixture: i >= dense_first, i + expert_shift a multiple of
     * expert_step. A list, mlp_only_layers, takes some out. */
    unsigned dense_first, expert_step, expert_shift;

    bool multi_query, grouped, parallel; /* Falcon's */
    unsigned parallel_norms;
    bool last_norm_removed; /* OPT's */
};

enum input_key_kind {
    INPUT_KEY_COUNT,  /* an integer from 1 */
    INPUT_KEY_AMOUNT, /* an integer from 0 */
    INPUT_KEY_FLAG,
    INPUT_KEY_ACTIVATION,
    INPUT_KEY_PRESENT, /* a flag: it is there, and not null */
    INPUT_KEY_MUST,    /* `must` is the only value that is modelled; "": an empty list */
    INPUT_KEY_ITEMS,   /* a map or list, whose values are counted */
    INPUT_KEY_TYPES,   /* the list layer_types */
    INPUT_KEY_DENSE,   /* the list mlp_only_layers */
    INPUT_KEY_UNUSED   /* the family's models have the key, and do not read it */
};

/* A key of config.json. Where it is missing or null, the field stays as the family's
 * row has it. */
struct input_key {
    const char *name;
    enum input_key_kind kind;
    size_t field;   /* offset in struct input_draft */
    bool needed;    /* the field may not stay 0 */
    bool null_is_0; /* null is not as good as nothing: it is 0 */
    const char *must;
};

struct input_family {
    const char *type; /* model_type */
    struct input_draft like;
    const struct input_key *const *keys; /* lists of keys, NULL at the end */
    /* What no key says by itself; may be NULL. */
    void (*finish)(struct input_draft *draft);
};

/* Ends with a NULL type. */
extern const struct input_family input_families[];

/* Ends with a NULL name. */
extern const struct input_key input_common_keys[];

/* Keys that change neither work nor parameters as they are counted here; NULL at the
 * end. */
extern const char *const input_harmless_keys[];

#endif
