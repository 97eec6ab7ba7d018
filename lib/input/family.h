/* The tables that family.c fills and config.c reads: families of transformers, and the
 * meaning of the keys in their config.json. */
#ifndef RAMPIPE_INPUT_FAMILY_H
#define RAMPIPE_INPUT_FAMILY_H

#include "rampipe/input.h"

#include <stddef.h>

/* The values of the keys: a transformer, and values from which parts of it are derived
 * once all keys have been read. */
struct input_draft {
    struct input_transformer t;
    unsigned sequence; /* the largest number of tokens */
    bool learned;      /* the model has a learned embedding for each position */
    unsigned spare;    /* rows of the position embedding that no position uses */
    unsigned nope;     /* latent attention: elements of a query or key without position */
    unsigned shared;   /* number of experts that every token goes through */

    /* The window is active in the layers from window_from up to, but not including,
     * window_until (0: up to the last), except in each window_period-th layer (0: no
     * exception). If the file has a list layer_types, the list says it instead. */
    bool windowed;
    unsigned window, window_from, window_until, window_period;

    /* Layer i, from 0, is a mixture of experts if i >= dense_first and i + expert_shift
     * is a multiple of expert_step. The list mlp_only_layers names exceptions. */
    unsigned dense_first, expert_step, expert_shift;

    bool multi_query, grouped, parallel; /* Falcon: see finish_falcon() */
    unsigned parallel_norms;             /* Falcon: norms of a parallel layer */
    bool last_norm_removed;              /* OPT: there is no norm at the end */
};

enum input_key_kind {
    INPUT_KEY_COUNT,  /* an integer from 1 */
    INPUT_KEY_AMOUNT, /* an integer from 0 */
    INPUT_KEY_FLAG,   /* true or false */
    INPUT_KEY_ACTIVATION,
    INPUT_KEY_PRESENT, /* sets a flag: the key is in the file, and not null */
    INPUT_KEY_MUST,    /* `must` is the only value that is modelled; "": an empty list */
    INPUT_KEY_ITEMS,   /* a map or list; the field is the number of its values */
    INPUT_KEY_TYPES,   /* the list layer_types */
    INPUT_KEY_DENSE,   /* the list mlp_only_layers */
    INPUT_KEY_UNUSED   /* files have the key, but the family's models do not read it */
};

/* A key of config.json. If it is missing or null, the field keeps the value that the row
 * of the family gives it. */
struct input_key {
    const char *name;
    enum input_key_kind kind;
    size_t field;     /* offset in struct input_draft */
    bool needed;      /* the field must not stay 0 */
    bool null_is_0;   /* null sets the field to 0 */
    const char *must; /* of INPUT_KEY_MUST */
};

struct input_family {
    const char *type;        /* model_type */
    struct input_draft like; /* the values before any key is read: the defaults */
    const struct input_key *const *keys; /* lists of keys, NULL at the end */
    /* Derives values that depend on several keys; may be NULL. */
    void (*finish)(struct input_draft *draft);
};

/* Ends with a NULL type. */
extern const struct input_family input_families[];

/* Keys that any file may have, unless its family has a row for them. Ends with a NULL
 * name. */
extern const struct input_key input_common_keys[];

/* Keys that change neither work nor parameters as they are counted here; NULL at the
 * end. */
extern const char *const input_harmless_keys[];

#endif
