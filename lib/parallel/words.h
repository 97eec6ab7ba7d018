/* The words of others, and the keys that they become (words_table.c). */
#ifndef RAMPIPE_PARALLEL_WORDS_TABLE_H
#define RAMPIPE_PARALLEL_WORDS_TABLE_H

#include "rampipe/parallel_words.h"

enum parallel_arg_how {
    PARALLEL_ARG_VALUE, /* key=its value */
    PARALLEL_ARG_FLAG,  /* without a value: key=text */
    PARALLEL_ARG_TRUE,  /* a variable: key=1 if it is 1, True or yes, else key=0 */
    PARALLEL_ARG_MAP,   /* text lists value=value of the key, with blanks between; other
                           values are not modelled */
    PARALLEL_ARG_REFUSE /* not modelled */
};

/* A key that begins with a dot is put together with others at the end
 * (words_finish.c). The key overlap adds up. */
struct parallel_arg_row {
    const char *word;
    enum parallel_arg_how how;
    const char *key, *text;
};

/* Arguments, without their dashes. Ends with a word NULL. */
extern const struct parallel_arg_row parallel_arg_rows[];
/* Variables. */
extern const struct parallel_arg_row parallel_variable_rows[];

/* The argument of a key; NULL: there is none. */
struct parallel_arg *parallel_words_arg(const struct parallel_words *args,
                                        const char *key);
/* Gives a key a value, which is copied. */
bool parallel_words_set(struct parallel_words *args, const char *key, const char *value,
                        struct rec_error *err) REC_MUST_CHECK;
/* Notes a word that became no key. */
bool parallel_words_ignore(struct parallel_words *args, const char *word,
                           struct rec_error *err) REC_MUST_CHECK;

#endif
