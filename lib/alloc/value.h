/*
 * The worth of a state of the cluster after a job was decided: how many jobs will be
 * accepted from then on, each later one counting `discount` times the one before it. It
 * is what a network of two hidden layers (rectified linear units) says, whose inputs tell
 * of each server when it will be free.
 *
 * A policy that takes the answer with the most worthy state looks one step ahead of what
 * the network has learned (Sutton and Barto, "Reinforcement Learning", 2018, 6.8:
 * afterstates).
 */
#ifndef RAMPIPE_ALLOC_VALUE_H
#define RAMPIPE_ALLOC_VALUE_H

#include "question.h"

/* Of a server that is free after a time r there are VALUE_SCALES inputs, 1 - exp(-r / s)
 * for times s, which are parts of the mean work of a job. The numbers of units are fixed,
 * so that the compiler can make vectors of their loops. */
enum { VALUE_SCALES = 4, VALUE_FIRST = 128, VALUE_SECOND = 32 };

struct alloc_value {
    char cluster[NET_TEXT_MAX]; /* as net_describe() says it */
    uint32_t servers;
    double discount;
    double work;                /* the mean of a job, server-seconds */
    double scale[VALUE_SCALES]; /* seconds */
    /* Owned. The weights of each input in the first layer, and their biases; of each of
     * these units in the second layer, and their biases; of each of those in the result,
     * and its bias. */
    float *weight;
};

/* All weights are 0. NULL: *err. */
struct alloc_value *value_new(const char *cluster, uint32_t servers, double work,
                              struct rec_error *err) REC_MUST_CHECK;
/* How many weights there are, and those of a part. */
size_t value_size(uint32_t servers);
float *value_first(const struct alloc_value *value, uint32_t input);
float *value_first_bias(const struct alloc_value *value);
float *value_second(const struct alloc_value *value, uint32_t unit);
float *value_second_bias(const struct alloc_value *value);
float *value_third(const struct alloc_value *value);
float *value_third_bias(const struct alloc_value *value);

/* The inputs of a server that is free in `seconds`. */
void value_inputs(const struct alloc_value *value, double seconds,
                  float input[VALUE_SCALES]);
/* A state is the sums of the first layer: those of an empty cluster, and for each running
 * job its servers and the seconds until it ends. */
void value_empty(const struct alloc_value *value, float sum[VALUE_FIRST]);
void value_add(const struct alloc_value *value, float sum[VALUE_FIRST], uint64_t taken,
               double seconds);
/* The same with the weights of the servers summed before, VALUE_SCALES rows. */
void value_add_sums(const struct alloc_value *value, float sum[VALUE_FIRST],
                    const float *sums, double seconds);
/* Sums of some sets of servers, as many as are kept. They are of one value, as long as it
 * does not change. NULL: *err. */
struct value_sums *value_sums_new(const struct alloc_value *value,
                                  struct rec_error *err) REC_MUST_CHECK;
void value_sums_free(struct value_sums *sums);
/* Valid until the next call. */
const float *value_sums_of(struct value_sums *sums, uint64_t taken);
/* Its worth; `second` becomes the outputs of the second layer. */
double value_worth(const struct alloc_value *value, const float sum[VALUE_FIRST],
                   float second[VALUE_SECOND]);

/* A way to start a job. */
struct value_option {
    uint64_t taken; /* its servers */
    double seconds; /* until it ends */
};

/* The best answer in a state: an option, or n if the job is refused. *worth is what is
 * accepted now and later. `sums` may be NULL. */
uint32_t value_choose(const struct alloc_value *value, struct value_sums *sums,
                      const float sum[VALUE_FIRST], const struct value_option *option,
                      uint32_t n, double *worth);
/* Does it know the cluster of a question, where no job waits? */
bool value_suits(const struct alloc_value *value, const struct alloc_question *question);
/* Is the mean work of the jobs so far within a factor of 2 of what it was trained on? The
 * features of the question must have been looked at. */
bool value_knows(const struct alloc_value *value, const struct alloc_question *question);
/* Decides a question all of whose alternatives have been tried, one of which can
 * start. What each is worth is noted in `worths`, -INFINITY if it cannot start, and last
 * what a refusal is worth, if it is not NULL. */
bool value_decide(const struct alloc_value *value, struct alloc_question *question,
                  uint32_t *choice, double *worths, struct rec_error *err) REC_MUST_CHECK;

/* Rounds all weights to the digits that records have. */
void value_round(struct alloc_value *value);
/* Reads a value record, and the unit records that stand behind it; *units counts them. */
struct alloc_value *value_read(const struct rec_reader *reader, const struct rec *rec,
                               struct rec_error *err) REC_MUST_CHECK;
bool value_read_unit(struct alloc_value *value, uint32_t *units,
                     const struct rec_reader *reader, const struct rec *rec,
                     struct rec_error *err) REC_MUST_CHECK;
/* Have all units come? */
bool value_is_whole(uint32_t units);
void value_write(const struct alloc_value *value, struct rec_writer *writer);

/* The value of the expert of a learned chooser (scorer.c) that decides the question, if
 * it has one that suits; else NULL. */
bool scorer_value(const void *scorer, struct alloc_question *question,
                  const struct alloc_value **value, struct rec_error *err) REC_MUST_CHECK;

#endif
