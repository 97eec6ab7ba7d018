/*
 * The closed form of a step, in parts of which search repeats only what changes:
 *
 *     struct closed_layers   passes of each kind of layer         t c e b recompute ...
 *     closed_split()         which layers a stage holds           p v ends
 *     closed_stages()        passes of the stages                 both, and m
 *     closed_memory()        memory                               and zero
 *     closed_seconds()       when the devices come to their end   likewise
 */
#ifndef RAMPIPE_PARALLEL_CLOSED_H
#define RAMPIPE_PARALLEL_CLOSED_H

#include "private.h"

/* Kinds of layers, then the embedding, then the head. */
struct closed_layers {
    bool made;                  /* all of it */
    bool stored;                /* what is kept, at least */
    double *forward, *backward; /* seconds of a pass; all borrowed */
    double *kept;               /* bytes of a microbatch */
    double *working;            /* of a device, by signature. NAN: not asked for yet */
};

/* What a device holds for good, and what follows from it. */
struct closed_held {
    double dense, experts;
    bool head;
    double fixed[4];              /* bytes, by zero; NAN: not asked for yet */
    double copy[4];               /* of gradients, likewise */
    struct parallel_once once[4]; /* by zero; optimizer NAN: not asked for yet */
};

/* A pass of a device that waits. */
struct closed_wait {
    uint64_t items; /* before it in the list */
    double seconds; /* in all */
};

struct closed {
    const struct parallel_model *model;
    const struct parallel_machine *machine;
    const struct parallel_schedule *gpipe;
    uint32_t kinds;
    uint32_t signatures; /* fewer if there are many kinds */
    uint32_t *prefix; /* owned: of each kind, how many of the first i layers are of it */
    struct closed_params {
        double dense, experts;
    } * params; /* owned: of each kind, the embedding, the head; on a rank */

    /* Of the split. */
    uint32_t pp, vp;
    uint32_t *count;   /* owned: [virtual stage][kind] */
    uint32_t *holding; /* owned: of each device, which of `held` */
    uint32_t
        *signature; /* owned: of each device: 1 an embedding, 2 a head, 4 << k a layer
                            of kind k */
    struct closed_held *held;
    size_t nheld, room_held;

    /* Of the pipe. */
    double *pass[2], *kept; /* owned: of each virtual stage: seconds forward and backward,
                               bytes of a microbatch */
    double *before[2];      /* owned: seconds from the first stage to this one */
    struct closed_wait *wait[2]; /* owned: of a device, at the start and at the end */
    double *last;                /* owned: of each device: when its last pass ends */
    double *own[2];      /* owned: of each device: passes of a microbatch, forward and
                            backward, without messages */
    double *activations; /* owned: of each device; NAN: not asked for yet */
    uint64_t m;
    double message; /* blocking: part of the passes, and 0 here */
    bool ran;       /* `last` is known */
};

/* The model and the machine are borrowed. Free *c in any case. */
bool closed_open(struct closed *c, const struct parallel_model *model,
                 const struct parallel_machine *machine,
                 struct rec_error *err) REC_MUST_CHECK;
void closed_free(struct closed *c);

/* How many numbers the costs of layers have, and a place for them. */
size_t closed_layers_size(const struct closed *c);
void closed_layers_place(const struct closed *c, struct closed_layers *layers,
                         double *numbers);
void closed_layers_make(const struct closed *c, const struct parallel_mix *mix,
                        struct closed_layers *layers);

/* Forgets what devices held: tp, ep, etp, dp or cp have changed. */
void closed_params(struct closed *c, const struct parallel_mix *mix);
/* pp, vp or ends have changed. */
bool closed_split(struct closed *c, const struct parallel_mix *mix,
                  struct rec_error *err) REC_MUST_CHECK;
void closed_stages(struct closed *c, const struct parallel_mix *mix,
                   const struct closed_layers *layers);
/* Bytes of the device that needs most. */
double closed_memory(struct closed *c, const struct parallel_mix *mix,
                     struct closed_layers *layers);
/* What closed_seconds() is at least, in less time. */
double closed_least(const struct closed *c);
double closed_seconds(struct closed *c, const struct parallel_mix *mix);

/* The most that device r keeps (closed_pipe.c). */
double closed_kept(const struct closed *c, const struct parallel_mix *mix, uint32_t r);
/* Finds `last` (closed_pipe.c). */
void closed_run(struct closed *c, const struct parallel_mix *mix);

#endif
