/*
 * rampipe/parallel_words.h - a mix in the words of others: arguments of Megatron-LM, and
 * variables of shell scripts that configure benchmarks, become keys of training records.
 *
 *     --tensor-model-parallel-size 8      tp=8
 *     export TENSOR_MODEL_PARALLEL=8      tp=8
 *
 * What a script says is read as a shell reads it, as far as it consists of assignments
 * and arguments: quotes, lists in parentheses, continued lines, variables that it sets
 * itself. Nothing is run, and what depends on a condition is refused.
 */
#ifndef RAMPIPE_PARALLEL_WORDS_H
#define RAMPIPE_PARALLEL_WORDS_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct parallel_arg {
    const char *key, *value;
};

/** Starts as {0}; parallel_words_free() frees what it owns. */
struct parallel_words {
    struct parallel_arg *arg; /* keys of a training record, each once */
    size_t n, room;
    char *unused; /* words that have no key, with ", " between; NULL: all have one */
    size_t unused_room;
    struct rec_arena arena;
};

/** Reads a script or a file of arguments; REC_DATA: one is not modelled, or its value is
 * none that it may have. Keys that *args has already are replaced. */
bool parallel_words_read(struct parallel_words *args, struct rec_reader *reader,
                         struct rec_error *err) REC_MUST_CHECK;
/** Behind the last file: keys that several words make, and those that were left out. `tp`
 * are the tensor ranks if they are said elsewhere, else NULL. REC_DATA as above. */
bool parallel_words_finish(struct parallel_words *args, const char *tp,
                           struct rec_error *err) REC_MUST_CHECK;
/** True if a word of a command line, as --tensor-model-parallel-size=8, is an argument of
 * Megatron. *valued: its value is the next word. */
bool parallel_words_knows(const char *word, bool *valued);
/** The value of a key; NULL: it has none. */
const char *parallel_words_find(const struct parallel_words *args, const char *key);
void parallel_words_free(struct parallel_words *args);

REC_END_DECLS

#endif
