/* The job that is being decided, and its alternatives, for admission.c, agent.c and
 * rollout.c. The part that all choosers use is in alloc.h. */
#ifndef RAMPIPE_ALLOC_QUESTION_H
#define RAMPIPE_ALLOC_QUESTION_H

#include "features.h"
#include "price.h"

/* A factor a little above 1: a job meets its deadline if it takes at most this times as
 * long, because sums of times are rounded. */
extern const double alloc_allowance;

/* An alternative of the job. */
struct tried {
    struct alloc_alternative alternative;
    struct {
        enum place_outcome outcome;
        uint64_t marks; /* as in struct outline */
    } trial;
    uint64_t *taken; /* owned; reused for the next job */
    bool is_tried;   /* the rest is filled, not only alternative.graph and .way */
};

/* Starts as {.store, .pricer}. */
struct alloc_question {
    const struct alloc_admission *admission; /* borrowed */
    const struct graph_store *store;         /* borrowed */
    struct pricer *pricer;                   /* borrowed */
    double now;                              /* seconds */
    uint32_t nfree;                          /* servers */
    const struct graph_job *job;
    struct rec_str
        rest; /* names of the graphs of the alternatives from tried[nknown] on */
    uint32_t n, nknown;        /* alternatives; those whose graphs have been looked up */
    size_t nwords;             /* of a set of servers */
    struct features *features; /* owned; NULL: the chooser does not observe */
    bool counted;              /* as in struct alloc_admission_options */
    const struct running *running; /* for the features */
    size_t nrunning;
    size_t nwaiting;        /* waiting jobs, this one included if it waits */
    struct features_job at; /* valid if `looked` */
    bool looked;            /* the features know the cluster and the job */
    struct tried *tried;
    size_t room;
    uint32_t nroom; /* entries of tried[] whose `taken` has been set */
    /* What a whole action of an agent gave, choice ALLOC_ACTED: as of an alternative, and
     * the trial, whose servers are owned. */
    struct tried acted;
    struct trial trial;
    size_t trial_room;
    /* True until a decision has named the graph that was made for the action. NULL: none
     * was made. */
    bool *unnamed;
    /* What the block record says if the job does not start; set by the alternative that
     * was looked at last: */
    uint32_t graph, way;
    const char *cause;
    bool explained;  /* these two are known, of a whole action: */
    uint32_t failed; /* as in struct place_placement */
    double left;     /* the same */
    uint32_t op;     /* that breaks a rule; GRAPH_NONE: none is broken */
    uint32_t server; /* on which it does; REC_NONE: on none */
    bool may_wait;   /* an alternative lacked free servers, and may fit later */
};

/* Counts the arrival of a job for the features. */
bool question_arrive(struct alloc_question *question, const struct graph_job *job,
                     struct rec_error *err) REC_MUST_CHECK;
/* Begins to decide a job; what was known of the last one is void. */
bool question_ask(struct alloc_question *question, const struct graph_job *job,
                  double now, uint32_t nfree, struct rec_error *err) REC_MUST_CHECK;
void question_free(struct alloc_question *question);
/* Judges the trial of a graph that need not be an alternative: question->acted. The block
 * record would name this graph, and its cause is that of the trial. */
bool question_settle(struct alloc_question *question, uint32_t graph,
                     const struct trial *trial, struct rec_error *err) REC_MUST_CHECK;
/* What placing the alternative that was looked at last gave. NULL: *err. */
const struct trial *question_explain(struct alloc_question *question,
                                     struct rec_error *err) REC_MUST_CHECK;
/* Looks up the graph of an alternative by its name. REC_DATA: there is none. */
bool question_find(const struct graph_store *store, const struct graph_job *job,
                   struct rec_str id, uint32_t *index,
                   struct rec_error *err) REC_MUST_CHECK;
/* Sequential time * steps of a job, seconds, whichever alternatives were tried. */
bool question_work(const struct graph_store *store, const struct graph_job *job,
                   double *work, struct rec_error *err) REC_MUST_CHECK;

/* For rollouts: gives `to` the time and the running jobs of another admission on the same
 * cluster. */
bool admission_copy(struct alloc_admission *to, const struct alloc_admission *from,
                    struct rec_error *err) REC_MUST_CHECK;
/* What an admission places by; borrowed. */
struct pricer *admission_pricer(struct alloc_admission *admission);
/* A number that is the same, but for a coincidence of 64 bits, if and only if the same
 * jobs run on the same servers until the same times, and none waits; 0: some wait. */
uint64_t admission_state(const struct alloc_admission *admission);
/* For rollouts: starts a job on an alternative, without asking a chooser and without
 * calling alloc_decide. */
bool admission_occupy(struct alloc_admission *admission, const struct tried *alternative,
                      struct rec_error *err) REC_MUST_CHECK;

#endif
