/* A job at hand and its alternatives, for admission.c; what choosers see is in
 * alloc.h. */
#ifndef RAMPIPE_ALLOC_QUESTION_H
#define RAMPIPE_ALLOC_QUESTION_H

#include "features.h"
#include "price.h"

/* A job may complete so much later than its deadline: sums of times are rounded. */
extern const double alloc_allowance;

struct tried {
    struct alloc_alternative alternative;
    struct trial trial; /* its servers are: */
    uint32_t *servers;
    size_t room;
    bool is_tried;
};

/* Starts as {.store, .pricer}. */
struct alloc_question {
    const struct alloc_admission *admission; /* borrowed */
    const struct graph_store *store;         /* borrowed */
    struct pricer *pricer;                   /* borrowed */
    double now;                              /* seconds */
    uint64_t arrivals;                       /* jobs that have come so far */
    uint32_t nfree;                          /* servers */
    const struct graph_job *job;
    struct rec_str rest; /* names of the alternatives that are not known yet */
    uint32_t n, nknown;
    struct features *features;     /* owned; NULL: the chooser looks at none */
    const struct running *running; /* for them */
    size_t nrunning;
    size_t nwaiting;        /* jobs, this one too if it has waited */
    struct features_job at; /* what they say of the job */
    bool looked;
    struct tried *tried;
    size_t room;
    uint32_t nroom; /* of tried: those whose servers are there */
    /* What becomes of it if none is chosen: */
    uint32_t graph;
    const char *cause;
    uint32_t failed; /* the unit that could not be placed */
    double left;     /* that it would have had, bytes */
    bool may_wait;   /* it failed for want of servers, which time may bring */
};

/* A job has arrived, which features are to know of. */
bool question_arrive(struct alloc_question *question, const struct graph_job *job,
                     struct rec_error *err) REC_MUST_CHECK;
/* Opens a question; the last one is closed. */
bool question_ask(struct alloc_question *question, const struct graph_job *job,
                  double now, uint32_t nfree, struct rec_error *err) REC_MUST_CHECK;
void question_free(struct alloc_question *question);
/* The graph of an alternative, by its name. */
bool question_find(const struct graph_store *store, const struct graph_job *job,
                   struct rec_str id, uint32_t *index,
                   struct rec_error *err) REC_MUST_CHECK;

/* For rollouts: time and running jobs are those of another admission on the same cluster;
 * a job starts there that is not asked about. */
bool admission_copy(struct alloc_admission *to, const struct alloc_admission *from,
                    struct rec_error *err) REC_MUST_CHECK;
bool admission_occupy(struct alloc_admission *admission,
                      const struct alloc_alternative *alternative,
                      struct rec_error *err) REC_MUST_CHECK;

#endif
