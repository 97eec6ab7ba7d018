/*
 * Plays the futures of a rollout (rollout.c) on a small cluster: up to 64 servers, where
 * no job waits, and one of the plain rules decides. A set of servers is a word there, and
 * the running jobs are a short list in order of their ends. What placing the alternatives
 * of a job gives in a state of the cluster is a row of a table of its own: a decision of
 * a rule is one look into it. Several futures are played side by side, so that they
 * wait for memory together.
 *
 * The numbers of accepted jobs are those of an admission in which the rule decides.
 */
#ifndef RAMPIPE_ALLOC_FUTURE_H
#define RAMPIPE_ALLOC_FUTURE_H

#include "lane.h"
#include "value.h"

/* The jobs that have the same list of graphs. */
struct kind {
    uint32_t number; /* from 0 */
    uint32_t nknown;
    uint32_t *known; /* indexes of the graphs in the store; owned */
    char *graphs;    /* their names; owned */
    uint32_t round;  /* its number in rounds */
};

/* A job that came. */
struct past {
    const struct kind *kind;
    double steps;
    double deadline; /* from arrival, seconds */
    double spacing;  /* since the arrival of the job before, seconds; NAN: of the first */
};

/* A job of a future. */
struct coming {
    double arrival; /* seconds */
    const struct past *job;
    uint32_t left; /* kinds still to come after it, as rounds_left(); 0: not known */
};

struct futures;

/* True if states of an admission with these options can be played here; and if futures
 * can in which the chooser decides. */
bool futures_small(const struct alloc_admission_options *options);
bool futures_suit(const struct alloc_admission_options *options);
/* `base`, a plain rule, decides in `n` futures of `horizon` jobs each; without it only
 * futures_worth() can play. All is borrowed; the pricer is used by nobody else. NULL:
 * *err. */
struct futures *futures_new(struct pricer *pricer, const struct alloc_choosing *base,
                            uint32_t n, uint32_t horizon,
                            struct rec_error *err) REC_MUST_CHECK;
void futures_free(struct futures *futures);
/* How many jobs are accepted in all futures after the job of the question has taken an
 * alternative; NULL: none. `coming` has the jobs of one future after the other. After the
 * first alternative of a decision the states are noted; another alternative follows its
 * own way until it comes to one of them. */
bool futures_play(struct futures *futures, const struct alloc_question *question,
                  const struct tried *alternative, const struct coming *coming,
                  bool is_first, uint64_t *accepted,
                  struct rec_error *err) REC_MUST_CHECK;

/* The same where a value decides: *worth becomes what a future counts in the mean, that
 * is the job of the question, those of the future, and what the value says of the rest.
 * If `is_told`, it knows the kinds that are still to come. */
bool futures_worth(struct futures *futures, const struct alloc_question *question,
                   const struct tried *alternative, const struct coming *coming,
                   const struct alloc_value *value, bool is_told, double *worth,
                   struct rec_error *err) REC_MUST_CHECK;

/* Makes room for jobs of a kind; call it before the next one. */
bool futures_know(struct futures *futures, const struct kind *kind,
                  struct rec_error *err) REC_MUST_CHECK;
/* The ways to start a job in a state so that it meets its deadline, each once. They are
 * valid until the next call. */
bool futures_options(struct futures *futures, const struct lane *lane,
                     const struct kind *kind, double steps, double deadline,
                     const struct value_option **option, uint32_t *n,
                     struct rec_error *err) REC_MUST_CHECK;
/* The state for a value, with the kinds that are still to come. */
void lane_look(const struct lane *lane, double now, uint32_t left,
               struct value_sets *sets, struct value_state *state);

#endif
