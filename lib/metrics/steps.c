/* The family of predicted training steps: each training record with an answer is a
 * case. */
#include "private.h"

/* clang-format off */

#define QUANTITIES(X)                                                                    \
    X(STEP, "step", "s", "seconds")                                                      \
    X(SAMPLES, "samples/s", "", "samples_s")                                             \
    X(TOKENS, "tokens/s", "", "tokens_s")                                                \
    X(MFU, "MFU", "%", "mfu")                                                            \
    X(MFU_CAUSAL, "MFU, causal", "%", "mfu_causal")                                      \
    X(HFU, "HFU", "%", "hfu")                                                            \
    X(HFU_CAUSAL, "HFU, causal", "%", "hfu_causal")                                      \
    X(BUBBLE, "bubble", "%", "bubble")                                                   \
    X(TP, "exposed tensor", "s", "exposed_tp")                                           \
    X(PP, "exposed messages", "s", "exposed_pp")                                         \
    X(DP, "exposed replicas", "s", "exposed_dp")                                         \
    X(CP, "exposed context", "s", "exposed_cp")                                          \
    X(EP, "exposed experts", "s", "exposed_ep")                                          \
    X(MEMORY, "memory", "B", "memory")                                                   \
    X(WEIGHTS, "weights", "B", "of_weights")                                             \
    X(GRADIENTS, "gradients", "B", "of_gradients")                                       \
    X(OPTIMIZER, "optimizer", "B", "of_optimizer")                                       \
    X(ACTIVATIONS, "activations", "B", "of_activations")                                 \
    X(WORKING, "working", "B", "of_working")                                             \
    X(DAYS, "days", "", "days")                                                          \
    X(DOLLARS, "cost", "US$", "dollars")                                                 \
    X(ERROR, "error of such predictions", "%", "error")

#define KEY_NAME(name, text, unit, key) key,
#define QUANTITY(name, text, unit, key) name,
#define QUANTITY_ROW(name, text, unit, key) {text, unit, NULL},

enum { QUANTITIES(QUANTITY) NQUANTITIES };
enum { AT_END };
enum { STEPS, NONE, NSUMS, ONE = NSUMS };

static const char *const keys[] = {QUANTITIES(KEY_NAME)};
static const struct metrics_sum sums[NSUMS] = {{AT_END, false}, {AT_END, false}};
static const struct metrics_quantity quantities[] = {QUANTITIES(QUANTITY_ROW)};

static const struct metrics_quotient figures[] = {
    {"steps", "", STEPS, ONE},
    {"questions without an answer", "", NONE, ONE},
};

static const struct metrics_show shown[] = {
    {"steps", "steps", "value"},
    {"step", "step", "mean"},
    {"tokens/s", "tokens/s", "mean"},
    {"MFU", "MFU", "mean"},
    {"HFU", "HFU", "mean"},
    {"bubble", "bubble", "mean"},
    {"memory", "memory", "mean"},
};

/* clang-format on */

static bool
take(void *kept, const struct rec_reader *reader, const struct rec *rec,
     const double key[], struct metrics_case *one, struct rec_error *err)
{
    struct rec_str how;
    bool asked = rec_find_key(rec, "how", &how);
    (void)kept;
    if (!asked)
        return rec_reader_fail(reader, err,
                               "the training record has no answer: put steptime before "
                               "metrics");
    one->at[AT_END] = (struct metrics_span){0, 0};
    one->amount[NONE] = rec_str_is(how, "none");
    one->amount[STEPS] = 1 - one->amount[NONE];
    for (int i = 0; i < NQUANTITIES; i++)
        one->quantity[i] = key[i];
    return true;
}

static const struct metrics_record cases[] = {{REC_TRAINING, NULL}};

const struct metrics_family metrics_steps = {
    METRICS_NEEDED("steps", cases, keys, sums, quantities, figures, shown, take),
};
