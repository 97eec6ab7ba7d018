/*
 * The family of devices of pipelines: each spent record is a case. The sums of the parts
 * are seconds of devices, so that those of a device, or of all, add up.
 */
#include "private.h"

#include <math.h>

/* clang-format off */

#define PARTS(X)                                                                         \
    X(PRODUCTS, "products") X(ATTENTION, "attention") X(MEMORY, "memory")                \
    X(HOST, "host") X(TENSOR, "tensor") X(CONTEXT, "context") X(EXPERT, "expert")        \
    X(SHARDS, "shards") X(MESSAGES, "messages") X(IDLE, "idle")                          \
    X(GRADIENTS, "gradients") X(GATHER, "gather") X(OPTIMIZER, "optimizer")

#define PART(name, text) name,
#define PART_KEY(name, text) text,
#define PART_SUM(name, text) {AT_END, false},
#define PART_FIGURE(name, text) {text, "s", name, ONE},

enum { AT_END };
enum { PARTS(PART) DEVICES, SECONDS, NSUMS, ONE = NSUMS };
enum { OF_WEIGHTS, OF_GRADIENTS, OF_OPTIMIZER, OF_ACTIVATIONS, OF_WORKING, NMEMORY,
       OF_ALL = NMEMORY };

static const char *const keys[] = {PARTS(PART_KEY) "of_weights", "of_gradients",
                                   "of_optimizer", "of_activations", "of_working",
                                   "of_overhead"};
static const struct metrics_sum sums[NSUMS] = {PARTS(PART_SUM) {AT_END, false},
                                               {AT_END, false}};

static const struct metrics_quantity quantities[] = {
    {"memory of weights", "B", NULL},
    {"memory of gradients", "B", NULL},
    {"memory of the optimizer", "B", NULL},
    {"memory of activations", "B", NULL},
    {"working memory", "B", NULL},
    {"memory of all", "B", NULL},
};

static const struct metrics_quotient figures[] = {
    {"devices", "", DEVICES, ONE},
    {"time of devices", "s", SECONDS, ONE},
    PARTS(PART_FIGURE)
};

static const struct metrics_show shown[] = {
    {"time", "time of devices", "value"},
    {"products", "products", "value"},
    {"attention", "attention", "value"},
    {"memory ops", "memory", "value"},
    {"tensor", "tensor", "value"},
    {"messages", "messages", "value"},
    {"idle", "idle", "value"},
    {"weights", "memory of weights", "mean"},
    {"activations", "memory of activations", "mean"},
    {"memory", "memory of all", "mean"},
};

/* clang-format on */

static bool
take(void *kept, const struct rec_reader *reader, const struct rec *rec,
     const double key[], struct metrics_case *one, struct rec_error *err)
{
    double seconds, all = isnan(key[DEVICES + NMEMORY]) ? 0 : key[DEVICES + NMEMORY];
    (void)kept;
    if (!rec_get_number(reader, rec, 3, &seconds, err))
        return false;
    one->at[AT_END] = (struct metrics_span){0, 0};
    for (int i = 0; i < DEVICES; i++)
        one->amount[i] = isnan(key[i]) ? 0 : key[i];
    one->amount[DEVICES] = 1;
    one->amount[SECONDS] = seconds;
    for (int i = 0; i < NMEMORY; i++) {
        one->quantity[i] = key[DEVICES + i];
        all += key[DEVICES + i];
    }
    one->quantity[OF_ALL] = all;
    return true;
}

static const struct metrics_record cases[] = {{REC_SPENT, NULL}};
static const struct metrics_group groups[] = {{"training", 1}, {"device", 2}};

const struct metrics_family metrics_devices = {
    METRICS_NEEDED("devices", cases, keys, sums, quantities, figures, shown, take),
    .groups = METRICS_LIST(groups),
};
