/* Words of a text as a shell reads them, as far as that is known without running it
 * (words_shell.c); words.c takes them. */
#ifndef RAMPIPE_PARALLEL_WORDS_SHELL_H
#define RAMPIPE_PARALLEL_WORDS_SHELL_H

#include "words.h"

#include <stdbool.h>
#include <stddef.h>

/* A variable that the text has set. */
struct parallel_variable {
    const char *name, *value;
    bool used;    /* it gave a key, or stands in another value */
    bool unknown; /* its value is not known without running something */
};

struct parallel_shell {
    struct parallel_words *args;
    const char *at; /* what is left of the text */
    struct rec_error *err;
    struct parallel_variable *variable; /* owned */
    size_t n, room;
    char *word; /* owned */
    size_t length, size;
    bool unknown; /* of the word: it has something that is not known here */
    int depth;    /* of values that have words themselves */
    int branches; /* of if and case that are open */
    int loops;    /* that are open: what they set to something else may change again */
    int groups;   /* of { and ( that are open and perhaps run */
    bool begins;  /* the next word is that of a command */
    /* a test stands in it; behind ||, until && without a test; behind a test and && */
    enum { ALWAYS, TESTED, OTHERWISE, PERHAPS } line;
    const char *end;  /* of the document that is read; or NULL */
    int outside;      /* the branches that are open around it */
    const char *said; /* the word that is taken */
};

/* Does it depend on the run whether what is read now counts? */
bool parallel_shell_perhaps(const struct parallel_shell *r);
/* The variable of this name; NULL: none is set. */
struct parallel_variable *parallel_shell_variable(const struct parallel_shell *r,
                                                  const char *name, size_t n);
/* How many characters of a text are a name. */
size_t parallel_shell_name(const char *text);
/* 1: r->word is the next word; 0: the end; -1: *err. */
int parallel_shell_next(struct parallel_shell *r);
/* Takes the marks of what is not known out of r->word. */
void parallel_shell_unmark(struct parallel_shell *r);
/* 1: the word opens a branch of the script; -1: it closes one; 0: neither. */
int parallel_shell_opens(const struct parallel_shell *r);
/* Keeps what the word means for those behind it. */
void parallel_shell_follow(struct parallel_shell *r);
/* NAME=VALUE, which words.c does. */
bool parallel_shell_assign(struct parallel_shell *r, const char *name, size_t length,
                           const char *value, bool unknown);

#endif
