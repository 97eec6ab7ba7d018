/* Reads the keys of a training record. What is wrong makes `ok` false, and all that is
 * read behind it 0. */
#ifndef RAMPIPE_PARALLEL_KEYS_H
#define RAMPIPE_PARALLEL_KEYS_H

#include "private.h"

struct parallel_key {
    const struct rec_reader *reader;
    const struct rec *rec;
    struct rec_error *err;
    bool ok;
};

/* A count; `without` of a record without the key. */
uint32_t parallel_key_count(struct parallel_key *f, const char *key, uint32_t without);
/* A count that must be there, and at least 1. */
uint32_t parallel_key_needed(struct parallel_key *f, const char *key);
/* A degree: 1 without its key. */
uint32_t parallel_key_degree(struct parallel_key *f, const char *key);
/* Which of the words of a list the value is; the first without the key. */
unsigned parallel_key_word(struct parallel_key *f, const char *key,
                           const char *const *list);
/* Bits of the words that the value lists; `without` of a record without the key. */
unsigned parallel_key_words(struct parallel_key *f, const char *key,
                            const char *const *list, unsigned without);
/* True if one of the words of a list with commas is this one. */
bool parallel_key_lists(const char *list, struct rec_str wanted);

/* Counts with commas between: *n of them, which the caller frees. NULL: the record does
 * not have the key, or *f is not ok. */
uint32_t *parallel_key_counts(struct parallel_key *f, const char *key, size_t *n);

/* Reads how the model is divided (mix_read.c); q->t has been read. */
void parallel_mix_read(struct parallel_key *f, const struct parallel_tables *tables,
                       struct parallel_question *q);

#endif
