/*
 * The worth of a state of the cluster after a job was decided: how many jobs fewer than
 * usual will be blocked from then on, each later one counting `discount` times the one
 * before it. What is usual adds the same to all states, and only how they differ matters.
 * It is what a network of two hidden layers (rectified linear units) says, whose inputs
 * tell of each server when it will be free, how soon blocks of servers will be, and how
 * soon one server, two, three and so on, and which kinds of jobs are still to come.
 *
 * A cluster with its servers in another order, as back to front, may have the same blocks
 * of the same shapes: an image of it. A state and its images are worth the same, and so
 * the worth of a state is the mean of what the network says of all of them. Its errors
 * partly cancel.
 *
 * A policy that takes the answer with the most worthy state looks one step ahead of what
 * the network has learned (Sutton and Barto, "Reinforcement Learning", 2018, 6.8:
 * afterstates).
 */
#ifndef RAMPIPE_ALLOC_VALUE_H
#define RAMPIPE_ALLOC_VALUE_H

#include "question.h"

/* Blocks have the same shape if jobs in them take the same time (net_geometry()). Inputs
 * tell of VALUE_SHAPES shapes at most, and of VALUE_EACH blocks of each. A state has
 * VALUE_IMAGES images at most, with the state as it is. The first layer
 * has ALLOC_VALUE_UNITS units at most, and the second one VALUE_SECOND. They come in
 * groups of VALUE_GROUP and VALUE_SECOND_GROUP, so that the compiler can make vectors of
 * their loops. */
enum {
    VALUE_SCALES = 4,
    VALUE_SHAPES = 32,
    VALUE_EACH = 32,
    VALUE_IMAGES = 4,
    VALUE_GROUP = 16,
    VALUE_UNITS = 128, /* of the first layer, where nothing is said */
    VALUE_SECOND_GROUP = 32,
    VALUE_SECOND = 64
};

struct alloc_value {
    char cluster[NET_TEXT_MAX]; /* as net_describe() says it */
    uint32_t servers;
    uint32_t units, second;               /* of the first layer, and of the second */
    uint32_t nshapes, size[VALUE_SHAPES]; /* servers of a block of each shape */
    bool ordered; /* it has inputs of servers in the order in which they come free */
    double discount;
    /* How many jobs an answer must be worth more to take more servers than the fewest
     * with which the job can start. Where nearly all jobs fit, errors are larger than
     * what more servers can gain. */
    double margin;
    /* The mean of a job, server-seconds. 0: it is for jobs of any size, and times count
     * in the mean work of the jobs so far. */
    double work;
    /* Kinds of jobs that come in rounds: the sequential time of each over their mean, in
     * ascending order. 0: it does not ask what is still to come. */
    uint32_t nkinds;
    double kind[ROUNDS_KINDS];
    /* Owned. The weights of each input in the first layer, and their biases; of each of
     * these units in the second layer, and their biases; of each of those in the result,
     * and its bias. */
    float *weight;
    struct value_sets *sets; /* owned; of value_decide(); NULL: not yet asked */
    char *file;              /* owned: where its record stands; NULL: nowhere yet */
    uint64_t line;
};

/* A value with the fields of `form`. All weights are 0. NULL: *err. */
struct alloc_value *value_new(const struct alloc_value *form,
                              struct rec_error *err) REC_MUST_CHECK;
/* Writes the sizes of the shapes that a value for this cluster has. */
bool value_shapes_of(const struct net *net, uint32_t size[VALUE_SHAPES],
                     uint32_t *nshapes, struct rec_error *err) REC_MUST_CHECK;
/* How many inputs and weights there are, and the weights of a part. */
uint32_t value_inputs(const struct alloc_value *value);
/* The first input of servers in their order, if there are any. */
uint32_t value_ordered_at(const struct alloc_value *value);
/* The first input of kinds; they are the last. */
uint32_t value_kinds_at(const struct alloc_value *value);
size_t value_weights(const struct alloc_value *value);
float *value_first(const struct alloc_value *value, uint32_t input);
float *value_first_bias(const struct alloc_value *value);
float *value_second(const struct alloc_value *value, uint32_t unit);
float *value_second_bias(const struct alloc_value *value);
float *value_third(const struct alloc_value *value);
float *value_third_bias(const struct alloc_value *value);

/* The inputs of kinds: 1 of those that are still to come in a round (rounds_left()), else
 * 0; if that is not known, the mean. */
void value_kinds(const struct alloc_value *value, uint32_t left, float *input);
/* rounds_left() if the kinds are those of the value, a tenth more or less; else 0. */
uint32_t value_left(const struct alloc_value *value, const struct rounds *rounds);

/* Sets of servers: which blocks they touch, and their weights in the first layer added
 * up. It remembers as many as it has room for. For one thread. */
struct value_sets;
/* `net`, the cluster, may be NULL if the value has no shapes. All is borrowed. NULL:
 * *err, REC_DATA if the cluster has other shapes. */
struct value_sets *value_sets_new(const struct alloc_value *value, const struct net *net,
                                  struct rec_error *err) REC_MUST_CHECK;
void value_sets_free(struct value_sets *sets);
const struct alloc_value *value_of_sets(const struct value_sets *sets);
/* The mean work of the jobs, server-seconds, if the value has none of its own. It must be
 * called for such a value. */
void value_sets_work(struct value_sets *sets, double work);
/* Weights have changed. */
void value_sets_forget(struct value_sets *sets);
/* How many images the cluster has, and where a server is in one of them. In the first one
 * all servers are where they are. */
uint32_t value_images(const struct value_sets *sets);
uint32_t value_image(const struct value_sets *sets, uint32_t image, uint32_t server);

/* The inputs of a server that is free in `seconds`: 1 - exp(-seconds / s). The times s
 * are three fifths of the mean work of a job, a third of this, a ninth, and so on. */
void value_server(const struct value_sets *sets, double seconds,
                  float input[VALUE_SCALES]);

/* A state of the cluster. */
struct value_state {
    /* Of the first layer in each image, from kinds and servers. */
    float sum[VALUE_IMAGES][ALLOC_VALUE_UNITS];
    /* Of each block that is looked at, the inputs of its server that is free last. */
    float block[VALUE_SHAPES * VALUE_EACH * VALUE_SCALES];
    /* Servers that come free at one time: how many, and their inputs. */
    struct value_busy {
        float input[VALUE_SCALES];
        uint32_t servers;
    } busy[65];
    uint32_t nbusy;
};

/* It is made from that of an empty cluster with the kinds that are still to come, and for
 * each running job its servers and the seconds until it ends. */
void value_empty(const struct value_sets *sets, uint32_t left, struct value_state *state);
void value_add(struct value_sets *sets, struct value_state *state, uint64_t taken,
               double seconds);
void value_copy(const struct value_sets *sets, struct value_state *to,
                const struct value_state *from);
/* The inputs that follow those of servers, VALUE_SCALES numbers each: of each shape the
 * means over its blocks, then the least of them; then those of all servers, where these
 * are inputs, with the one first that is free last. */
void value_blocks(const struct value_sets *sets, const struct value_state *state,
                  float *input);
/* The sums of the first layer: over all inputs that are the same in all images, those of
 * blocks, of servers in their order and of kinds; and those of servers are added for one
 * of them. */
void value_shared(const struct alloc_value *value, const float *input,
                  float sum[ALLOC_VALUE_UNITS]);
void value_servers(const struct value_sets *sets, uint32_t image, const float *input,
                   float sum[ALLOC_VALUE_UNITS]);
/* The worth of a state, and what the network says of sums; `second` becomes the outputs
 * of the second layer. */
double value_worth(const struct value_sets *sets, const struct value_state *state);
double value_of_sums(const struct alloc_value *value, const float sum[ALLOC_VALUE_UNITS],
                     float second[VALUE_SECOND]);
/* Adds the slopes of half the squared error of a state that is worth `target` by each
 * weight to `slope`, which is laid out as the weights. Returns the error. */
double value_slope(const struct value_sets *sets, const float *input, double target,
                   float *slope);

/* A way to start a job. */
struct value_option {
    uint64_t taken; /* its servers */
    double seconds; /* until it ends */
};

/* The best answer in a state: an option, or n if the job is refused. *worth is what it is
 * worth now and later: a job that is refused costs 1. */
uint32_t value_choose(struct value_sets *sets, const struct value_state *state,
                      const struct value_option *option, uint32_t n, double *worth);
/* Does it know the cluster of a question, where no job waits? */
bool value_suits(const struct alloc_value *value, const struct alloc_question *question);
/* Is it for jobs of any size, or is their mean work so far within a factor of 2 of what
 * it was trained on? The features of the question must have been looked at. */
bool value_knows(const struct alloc_value *value, const struct alloc_question *question);
/* Decides a question all of whose alternatives have been tried, one of which can
 * start. What each is worth is noted in `worths`, -INFINITY if it cannot start, and last
 * what a refusal is worth, if it is not NULL. */
bool value_decide(struct alloc_value *value, struct alloc_question *question,
                  uint32_t *choice, double *worths, struct rec_error *err) REC_MUST_CHECK;

/* A value for a training: its weights are drawn, or are those of options->start if that
 * is for the same cluster and jobs: then *goes_on. Without jobs it is like the start.
 * NULL: *err, as alloc_value_train(). */
struct alloc_value *value_start(const struct alloc_value_options *options, bool *goes_on,
                                struct rec_error *err) REC_MUST_CHECK;

/* Rounds all weights to the digits that records have. */
void value_round(struct alloc_value *value);
/* Reads a value record, and the unit records that stand behind it; *units counts them. */
struct alloc_value *value_read(const struct rec_reader *reader, const struct rec *rec,
                               struct rec_error *err) REC_MUST_CHECK;
bool value_read_unit(struct alloc_value *value, uint32_t *units,
                     const struct rec_reader *reader, const struct rec *rec,
                     struct rec_error *err) REC_MUST_CHECK;
/* Have all units come? */
bool value_is_whole(const struct alloc_value *value, uint32_t units);
void value_write(const struct alloc_value *value, struct rec_writer *writer);

/* The value of the expert of a learned chooser (scorer.c) that decides the question, if
 * it has one that suits; else NULL. */
bool scorer_value(void *scorer, struct alloc_question *question,
                  struct alloc_value **value, struct rec_error *err) REC_MUST_CHECK;

#endif
