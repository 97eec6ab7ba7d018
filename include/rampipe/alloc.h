/*
 * rampipe/alloc.h - who gets servers, and when: policies, choosers, admission. Where the
 * parts of a job go is decided by rampipe/place.h.
 *
 *     alloc_policy     into how many parts the ops of a job may be split
 *     alloc_admission  jobs arrive, take servers, wait or are turned away
 *     alloc_relaxation an upper bound on how many jobs any chooser could start
 *
 * Source: the ddls simulator ("Partitioning Distributed Compute Jobs with Reinforcement
 * Learning and Graph Neural Networks").
 */
#ifndef RAMPIPE_ALLOC_H
#define RAMPIPE_ALLOC_H

#include "rampipe/graph.h"
#include "rampipe/net.h"
#include "rampipe/place.h"
#include "rampipe/random.h"
#include "rampipe/sim.h"

#include <sys/types.h>

REC_BEGIN_DECLS

/* ---- how much to partition ----------------------------------------------- */

/** The most degrees a policy can offer. */
#define ALLOC_DEGREES_MAX 4096

/**
 * Writes the degrees up to `most` that have a block on an empty cluster, in
 * ascending order: 1, and the even numbers for which net_has_block() is true. Returns how
 * many there are, at most ALLOC_DEGREES_MAX.
 */
uint32_t alloc_valid_degrees(const struct net *net, uint32_t most,
                             uint32_t degree[ALLOC_DEGREES_MAX]);

/** What a policy knows of a job. */
struct alloc_offer {
    const uint32_t *valid; /* ascending */
    uint32_t nvalid;       /* at least 1 */
    uint32_t limit;        /* the N of a policy NAME:N */
    double sequential;     /* time on one server, seconds */
    double deadline;       /* longest acceptable completion time, seconds */
    struct rng *rng;       /* for a policy that draws */
};

/** Which degrees a job is offered. Each policy is a row of alloc_policies. */
struct alloc_policy {
    const char *name; /* NULL ends the table */
    bool limited;     /* it can be written NAME:N */
    bool random;      /* it draws from offer->rng */
    /* Fills offered[] in order of preference, and returns how many degrees it has
     * written: at least 1, at most nvalid. */
    uint32_t (*offer)(const struct alloc_offer *offer, uint32_t *offered);
};

/**
 * Of the valid degrees,
 *     none            offers 1
 *     min             offers 2, then 1
 *     max             offers all, the largest first
 *     sip-ml[:N]      offers those up to N, the largest first
 *     acceptable-jct  offers the smallest that would meet the deadline if only computing
 *                     took time, then the smaller ones
 *     random          offers all in random order
 *     all             offers all, the smallest first
 * Source: the heuristics of the ddls simulator (NoParallelism, MinParallelism,
 * MaxParallelism, SiPML, AcceptableJCT), which take the first of these that the cluster
 * has servers for.
 */
extern const struct alloc_policy alloc_policies[];

/* ---- which alternative --------------------------------------------------- */

/** What trying an alternative of a job on the free servers gave; valid during the
 * decision. */
struct alloc_alternative {
    uint32_t graph;    /* its index in the store */
    uint32_t way;      /* in which it is placed: 0, or 1 + an index of options.more */
    const char *cause; /* why it cannot start; NULL: it can */
    /* An alternative before it has the same graph on the same servers, and so is as good:
     * one that compares all may leave it out. */
    bool repeats;
    /* If it was placed: it can start, or its cause is "deadline". */
    uint32_t nservers;
    const uint64_t *taken; /* its servers: bit s % 64 of taken[s / 64] */
    double step;           /* time of a training step, seconds */
    double finish;         /* when it would complete, seconds */
};

/** The job that is to be decided, and its alternatives. A chooser asks for them one by
 * one, because trying one takes time. */
struct alloc_question;

/** How many alternatives there are, at least 1: each graph of the job in each way of
 * placing, one graph after the other. */
uint32_t alloc_question_count(const struct alloc_question *question);
/** How many servers are free. */
uint32_t alloc_question_free_servers(const struct alloc_question *question);
/** The degree of an alternative's graph: its key degree=, or if it has none, the most
 * parts that one of its ops has. */
bool alloc_question_degree(struct alloc_question *question, uint32_t i, uint32_t *degree,
                           struct rec_error *err) REC_MUST_CHECK;
/** Tries an alternative: places it and simulates a step. The result is remembered, so
 * that trying it again in the same decision costs nothing. NULL: *err. */
const struct alloc_alternative *alloc_question_try(struct alloc_question *question,
                                                   uint32_t i,
                                                   struct rec_error *err) REC_MUST_CHECK;

/**
 * A number without unit by which a learned scorer or an agent judges an alternative. The
 * formulas use
 *     N     servers of the cluster
 *     f     free servers
 *     W     mean of sequential time * steps over the jobs so far, this one included
 *     ia    mean time between their arrivals, kept between W/N e^-5 and W/N e^5; before
 *           the second arrival: W/N
 *     l     load, ln(W / (ia N)) / 2
 *     n     servers of the alternative
 *     t     time from the job's arrival to its completion by this alternative
 *     h(d)  log2(1 + d) / log2(1 + N)
 * The speed-up that a job needs is sequential time * steps / deadline, at most N.
 */
struct alloc_feature {
    const char *name;    /* NULL ends the table */
    const char *meaning; /* its formula */
    /* About how much it differs among alternatives or among jobs. Training measures
     * weights in units of 1 / spread. */
    double spread;
    /* It belongs to the regime, or is a product with a feature that does. Where the
     * regime does not change, it says nothing that the other features do not say. */
    bool regime;
};

extern const struct alloc_feature alloc_features[];
#define ALLOC_FEATURES 47

/**
 * The regime is how jobs come. Four features describe it (load, need, spread, variation);
 * they are the same for all alternatives of a job.
 */
struct alloc_regime {
    int feature; /* its index in alloc_features */
    double unit; /* a difference of two regimes in this feature is divided by it */
};
#define ALLOC_REGIME 4
extern const struct alloc_regime alloc_regime[ALLOC_REGIME];

/** The features, in order of the table, of an alternative that has been tried and can
 * start. */
bool alloc_question_features(struct alloc_question *question, uint32_t i,
                             double value[ALLOC_FEATURES],
                             struct rec_error *err) REC_MUST_CHECK;

/** The chooser's answer if no alternative can start. */
#define ALLOC_NONE UINT32_MAX
/** The chooser's answer if the job is not wanted. It is blocked: its cause is policy if
 * it could have started or waited, else what kept the last alternative from starting. */
#define ALLOC_REFUSED (UINT32_MAX - 1)
/** An agent's answer: the job starts in the way of its whole action. */
#define ALLOC_ACTED (UINT32_MAX - 2)

/** Most hidden units that an expert can have. */
#define ALLOC_UNITS_MAX 1000

/**
 * An expert scores an alternative by the weighted sum of its features and of the outputs
 * of hidden units. The output of a hidden unit is tanh of a weighted sum of the features.
 */
struct alloc_expert {
    double center[ALLOC_REGIME]; /* the regime that it was trained for */
    char cluster[NET_TEXT_MAX];  /* the only cluster that it was trained on; "": any */
    /* Other experts decide about the first `after` jobs: a few jobs do not tell how jobs
     * come. */
    uint64_t after;
    /* Owned, alloc_scorer_size() numbers: those of the ALLOC_FEATURES features, then for
     * each hidden unit those of the features in it, and that of its output. */
    double *weight;
    /* Owned; NULL: none. What states of one cluster are worth, a network that decides in
     * place of the weights on this cluster, unless jobs wait, or their mean work is not
     * within a factor of 2 of what it was trained on and it is not for jobs of any
     * size. */
    struct alloc_value *value;
};

/**
 * A learned scorer is a mixture of experts. The expert whose center is nearest to the
 * regime gives the scores: of those that were trained on this cluster alone; if there are
 * none, of those for any cluster; if there are none, of all. Experts that wait for more
 * jobs do not count, unless all of them wait. Distances are in the units of alloc_regime,
 * and of equally near experts the first counts (the hard gate of a nearest prototype,
 * after Jacobs, Jordan, Nowlan and Hinton, "Adaptive Mixtures of Local Experts", 1991).
 * The alternative with the highest score is chosen if that is at least 0; else the job is
 * refused. If the expert has a value for the cluster, the answer is chosen after which
 * the state is worth most.
 */
struct alloc_scorer {
    struct place_ways ways; /* used in training; none: not known */
    uint32_t units;         /* hidden units of each expert */
    uint32_t nexperts;
    struct alloc_expert *expert; /* owned */
};

/** A scorer whose weights and centers are all 0. NULL: *err. */
struct alloc_scorer *alloc_scorer_new(uint32_t units, uint32_t nexperts,
                                      struct rec_error *err) REC_MUST_CHECK;
/** `scorer` may be NULL. */
void alloc_scorer_free(void *scorer);
/** The number of weights of an expert that has `units` hidden units. */
size_t alloc_scorer_size(uint32_t units);
/** The score by the expert whose center is nearest to the regime in `feature`, on a
 * cluster that no expert is for, where `jobs` have come, the one in question included. */
double alloc_scorer_score(const struct alloc_scorer *scorer, uint64_t jobs,
                          const double feature[ALLOC_FEATURES]);
/** The value of the expert that has one and is nearest to an expert, from 0: its own, if
 * it has one. Experts for other clusters do not count. NULL: no expert has. Borrowed. */
const struct alloc_value *alloc_scorer_valued(const struct alloc_scorer *scorer,
                                              uint32_t expert);
/** The expert that is nearest to a regime: this one, or another one for the same cluster
 * that is nearer. */
uint32_t alloc_scorer_nearest(const struct alloc_scorer *scorer, uint32_t expert,
                              const double regime[ALLOC_REGIME]);
/** Reads policy, expert and weight records. NULL: *err. */
struct alloc_scorer *alloc_scorer_read(const char *path,
                                       struct rec_error *err) REC_MUST_CHECK;
/** Writes the records that alloc_scorer_read() reads. A scorer with one expert has no
 * expert record: its center does not matter. */
void alloc_scorer_write(const struct alloc_scorer *scorer, struct rec_writer *writer);

struct alloc_admission_options;

/** Streams of jobs that a value is trained on, side by side; and the most units that its
 * first layer can have. */
enum { ALLOC_VALUE_STREAMS = 128, ALLOC_VALUE_UNITS = 256 };

/** Jobs that come to a cluster. All is borrowed. */
struct alloc_value_world {
    const struct alloc_admission_options *admission; /* the cluster; without a queue */
    struct graph_store *store;
    const struct rec_str *graphs; /* the alternatives of each kind of jobs */
    const double *sequential;     /* the time of a step of each on one server, seconds */
    uint32_t nkinds;              /* which come in rounds */
    double work;                  /* mean sequential time * steps of a job, seconds */
};

struct alloc_value_options {
    /* The n-th stream is of world n % nworlds. All are of the same cluster. Of one world
     * with 2 to 16 kinds the value asks which are still to come. Of several it is for
     * jobs of any size. */
    const struct alloc_value_world *world;
    uint32_t nworlds;
    double discount; /* of a later job: 0 to below 1 */
    /* In all streams. 0: nothing is trained, and the start gets another margin. */
    uint64_t jobs;
    /* How many jobs an answer must be worth more to take more servers than the fewest
     * with which the job can start; nothing while it is trained. NAN: as of the start, or
     * 0. */
    double margin;
    /* Of the first layer: a multiple of 16, ALLOC_VALUE_UNITS at most. 0: as many as the
     * start has, or 128. */
    uint32_t units;
    /* Training goes on from it if it is for the same cluster, and for jobs of any size as
     * these, or for ones of half to twice the work of these. Else, or if it is NULL,
     * training begins anew. */
    const struct alloc_value *start;
    uint32_t seed, threads;
    /* Draws the next job of a stream, and its kind; from any thread, but for one stream
     * from one at a time. */
    bool (*next)(void *context, uint32_t stream, struct graph_job *job, uint32_t *kind,
                 struct rec_error *err);
    void *context;
    bool (*stop)(void); /* true ends the training without a value; may be NULL */
};

/**
 * Trains what states of a cluster of at most 64 servers are worth, by temporal
 * differences: the worth of a state moves towards what the best answers to the next jobs
 * are worth, a mean in which each of up to 16 counts 0.8 of the one before (Sutton and
 * Barto, "Reinforcement Learning", 2018, 6.8 and 12.1). Blocked jobs count beyond their
 * usual share, which each world has of its own (10.3).
 * Steps are those of Adam (Kingma and Ba, 2015) over the streams, and shrink from 1e-3,
 * or with a start 3e-4, to 2e-6; a share of the answers, 0.02 at first and none in the
 * end, is drawn at random.
 * NULL: *err. REC_USAGE: the cluster has more servers, or the start more units. REC_OK:
 * training was stopped. The same options give the same value, whatever `threads` is.
 */
struct alloc_value *alloc_value_train(const struct alloc_value_options *options,
                                      struct rec_error *err) REC_MUST_CHECK;
/** `value` may be NULL. */
void alloc_value_free(struct alloc_value *value);

struct alloc_choosing;

/** What a chooser is opened with. All of it is borrowed for as long as it is open. */
struct alloc_choice {
    const char *argument; /* the text behind NAME: */
    /* For rollouts: */
    const struct alloc_admission_options *admission; /* the cluster and its rules */
    struct graph_store *store;
    /* The chooser that decides in the futures. NULL: rollouts are not to be opened. */
    const struct alloc_choosing *base;
    uint32_t horizon; /* jobs in a future; 0: 1 where a value decides, else 30 */
    uint32_t seed;
};

/** Chooses among the alternatives of a job. Each way to choose is a row. */
struct alloc_chooser {
    const char *name;     /* as users write it; NULL ends the table */
    const char *argument; /* what must follow behind a colon: "FILE"; NULL: nothing may */
    bool observes;        /* it uses features, so arrivals must be counted for it */
    /* Makes the state that `decide` gets as `self`, and that `free` frees. NULL: this
     * chooser has no state. */
    void *(*open)(const struct alloc_choice *choice, struct rec_error *err);
    void (*free)(void *self);
    /* A job has arrived. Called once for each, in order of arrival, before any decision
     * about it; NULL: the chooser needs not be told. False: *err. */
    bool (*arrive)(void *self, const struct graph_job *job, struct rec_error *err);
    /* Sets *choice to an alternative that was tried and can start, to ALLOC_NONE (the job
     * waits, or is blocked by what kept the last alternative from starting), to
     * ALLOC_REFUSED or ALLOC_ACTED. False: *err. */
    bool (*decide)(void *self, struct alloc_question *question, uint32_t *choice,
                   struct rec_error *err);
    /* Not NULL: a plain rule. Of the alternatives that can start it takes the first to
     * which no later one is preferred, by finish and nservers alone: is `a` preferred to
     * `b`, which comes before it? Futures of such a rule are played faster. */
    bool (*better)(const struct alloc_alternative *a, const struct alloc_alternative *b);
    /* As `decide`, and says what answers are worth (alloc_choosing_judge()), if it can;
     * `worths` may be NULL. NULL: it never can. */
    bool (*judge)(void *self, struct alloc_question *question, uint32_t *choice,
                  double *worths, struct rec_error *err);
};

/**
 *     first           the first alternative that can be placed and meets the deadline
 *     first-degree    the first whose degree is at most the number of free servers; if
 *                     that one cannot start, none (as in the published simulator)
 *     fastest         of those that can start, the one that completes first
 *     fewest-servers  of those that can start, the one with the fewest servers
 *     learned:FILE    the one that the scorer of a file scores highest
 *     rollout:N       improves the answer of another chooser, the base, by N futures
 *
 * The jobs of a future, and the times between them, are drawn from those that came; the
 * base decides in it. The base's answer for the job at hand is taken, unless another
 * answer leads to more accepted jobs in the same futures. (One
 * step of policy improvement; Bertsekas, "Rollout, Policy
 * Iteration, and Distributed Reinforcement Learning", 2020.)
 */
extern const struct alloc_chooser alloc_choosers[];

/** The row of this name; NULL: there is none. */
const struct alloc_chooser *alloc_chooser_find(struct rec_str name);

/** A chooser that is open. Starts as {0}. */
struct alloc_choosing {
    const struct alloc_chooser *chooser;
    void *self;     /* owned */
    char *argument; /* owned */
};

/** Opens the chooser that `text` names, as NAME or NAME:ARGUMENT; the rest of what it
 * needs is in *choice. REC_USAGE: *err says what would be right. */
bool alloc_choosing_open(struct alloc_choosing *choosing, const char *text,
                         const struct alloc_choice *choice,
                         struct rec_error *err) REC_MUST_CHECK;
void alloc_choosing_close(struct alloc_choosing *choosing);
/** Decides, and writes what each alternative is worth, and last a refusal: of two answers
 * the one after which n jobs fewer will be blocked is worth n more. -INFINITY: not known;
 * choosers that only decide know it of no answer. */
bool alloc_choosing_judge(const struct alloc_choosing *choosing,
                          struct alloc_question *question, uint32_t *choice,
                          double *worths, struct rec_error *err) REC_MUST_CHECK;
/** The heuristics that a learned chooser was trained with. None: the chooser is not a
 * learned one, or its file does not name them. */
struct place_ways alloc_choosing_trained(const struct alloc_choosing *choosing);
/** Is it a learned one, all of whose experts are for other clusters than this? */
bool alloc_choosing_is_foreign(const struct alloc_choosing *choosing,
                               const struct net *net);

/* ---- agents: choosers that are processes --------------------------------- */

/** A process that is asked for every decision; see AGENTS in ramp-alloc(1). */
struct alloc_agent;
struct alloc_decision;

struct alloc_agent_options {
    const char *name;    /* for messages */
    const char *command; /* started in a shell; NULL: the agent is running already */
    /* Only if it is running already: the descriptors that answers are read from and asks
     * are written to. */
    int from, to;
    double timeout; /* for each answer, and for its end, seconds; may be INFINITY */
    /* Not NULL: it may answer with whole actions, and is told the graphs, the jobs and
     * what becomes of them. The store is that of the admission, borrowed; graphs are
     * added to it. */
    struct graph_store *store;
    const struct net *net;  /* written to the agent at the start */
    const char *provenance; /* the "#@" line of the stream that it reads */
    /* Called with the agent's process group right after its start, while signals are
     * still blocked, so that no handler runs that does not know of it. May be NULL. */
    void (*started)(pid_t group);
};

/** Starts the agent, or uses the descriptors, and writes the header and the cluster.
 * NULL: *err. */
struct alloc_agent *alloc_agent_open(const struct alloc_agent_options *options,
                                     struct rec_error *err) REC_MUST_CHECK;
/** Tells an agent of whole actions what was decided about a job. */
bool alloc_agent_tell(struct alloc_agent *agent, const struct alloc_decision *decision,
                      struct rec_error *err) REC_MUST_CHECK;
/** Ends the agent's input, and waits until an agent that was started here has ended.
 * False: *err (REC_IO: it died or was late; REC_DATA: it wrote something wrong). */
bool alloc_agent_end(struct alloc_agent *agent, struct rec_error *err) REC_MUST_CHECK;
/** Kills what is left of an agent that was started here. `agent` may be NULL. */
void alloc_agent_free(struct alloc_agent *agent);

/** The chooser that asks an agent; its self is the struct alloc_agent. */
extern const struct alloc_chooser alloc_agent_chooser;

/* ---- admission (ramp-alloc) ---------------------------------------------- */

/** The order in which waiting jobs are tried: by arrival, or by the sequential time
 * of their first alternatives. */
enum alloc_order { ALLOC_FIFO, ALLOC_SHORTEST };

struct alloc_admission_options {
    struct place_options placer;
    /* More ways of placing, on the same network: each makes an alternative of each graph
     * of a job. Borrowed. */
    const struct place_options *more;
    uint32_t nmore;
    /* Decisions are only counted: they come without layout, servers and cost, and the
     * causes of blocks without details; this is faster. */
    bool counted;
    const struct alloc_choosing *choosing; /* borrowed */
    size_t queue;                          /* how many jobs may wait */
    enum alloc_order order;
    /* The chooser may start a job in ways that none of its alternatives has. */
    bool whole;
    const uint32_t *down; /* servers out of service */
    uint32_t ndown;
    /* Layouts that no job holds are kept up to this many bytes; beyond it those that have
     * been idle longest are forgotten, and a job that would fit one gets a new layout. 0:
     * SIM_LAYOUTS_MAX_ALLOC. */
    size_t layouts;
    /* Another admission with the same options and the same store, which has no host
     * itself and outlives this one; borrowed. What is remembered of placements is shared
     * with it: a thousand admissions that take turns need no more memory for it than one.
     * No two of them may be used at once, and layouts are named in the order of all of
     * them. NULL: none. */
    struct alloc_admission *host;
};

/** What alloc_admission_owners() says of a server that is out of service. */
#define ALLOC_DOWN UINT64_MAX

/** What was decided about a job; valid during the call of alloc_decide. */
struct alloc_decision {
    struct graph_job job;
    double time;       /* seconds */
    const char *cause; /* why the job is blocked; NULL: it starts */
    uint32_t failed;   /* no_block, no_memory: the unit that was not placed */
    double left;       /* no_memory: as in struct place_placement */
    /* The op of `graph` with which a whole action breaks the rule that is the cause;
     * GRAPH_NONE: it breaks none. And the server where it does; REC_NONE: nowhere. */
    uint32_t op, server;
    /* Of the alternative taken, or of the last one tried; or it was made for a whole
     * action. */
    const struct graph *graph;
    bool new_graph; /* it was, and no decision has named it before */
    /* If the job starts, unless options.counted: */
    struct sim_layout *layout;
    bool new_layout;             /* no job has used this layout before */
    const uint32_t *servers;     /* per slot */
    const struct sim_cost *cost; /* of a training step */
    /* In any case, if it starts: */
    uint32_t nservers;
    double finish; /* seconds */
};

/** Adds op= and server= to the block record being written, if a whole action breaks a
 * rule. */
void alloc_decision_explain(const struct alloc_decision *decision, const struct net *net,
                            struct rec_writer *writer);

struct alloc_admission;

/** Called for each decision, in order of time. False stops the admission: *err. */
typedef bool alloc_decide(void *context, const struct alloc_decision *decision,
                          struct rec_error *err);

/** `store` and what *options points to are borrowed until alloc_admission_free(). NULL:
 * *err. */
struct alloc_admission *alloc_admission_new(const struct alloc_admission_options *options,
                                            struct graph_store *store,
                                            alloc_decide *decide, void *context,
                                            struct rec_error *err) REC_MUST_CHECK;
/** Lets time pass until `job` arrives: jobs end, and waiting jobs are decided. REC_DATA:
 * that is before the last arrival. */
bool alloc_admission_advance(struct alloc_admission *admission,
                             const struct graph_job *job,
                             struct rec_error *err) REC_MUST_CHECK;
/** The question that alloc_admission_arrive() will ask the chooser about this job, for
 * one who decides without being called. Call it after alloc_admission_advance() with the
 * same job, as often as you like; only without a queue. The question is valid until the
 * next call for this admission, or for one that shares its host. NULL: *err. */
struct alloc_question *alloc_admission_ask(struct alloc_admission *admission,
                                           const struct graph_job *job,
                                           struct rec_error *err) REC_MUST_CHECK;
/** Decides a job that arrives, or puts it into the queue. Call alloc_admission_advance()
 * with the same job before. */
bool alloc_admission_arrive(struct alloc_admission *admission,
                            const struct graph_job *job,
                            struct rec_error *err) REC_MUST_CHECK;
/** No more jobs arrive: waiting jobs are decided as the running ones end. */
bool alloc_admission_end(struct alloc_admission *admission,
                         struct rec_error *err) REC_MUST_CHECK;
/** Per server the number of the job that holds it, counted from 1 in order of starts; 0:
 * none does; ALLOC_DOWN: it is out of service. */
const uint64_t *alloc_admission_owners(const struct alloc_admission *admission);
/** Removes all jobs and sets the time to 0. Layouts and the costs of placements are kept,
 * so that the next run is faster. */
bool alloc_admission_reset(struct alloc_admission *admission,
                           struct rec_error *err) REC_MUST_CHECK;
/** Tells the processor that this admission is next, for those who play many in turn: more
 * of them than its caches hold. */
void alloc_admission_prefetch(const struct alloc_admission *admission);
/** The regime of the arrivals so far; only for a chooser that observes. */
void alloc_admission_regime(struct alloc_admission *admission,
                            double value[ALLOC_REGIME]);
void alloc_admission_free(struct alloc_admission *admission);

/* ---- how many jobs could start at most ----------------------------------- */

/**
 * An upper bound on how many jobs start if none waits, whoever chooses among their
 * alternatives: the optimum of the linear program
 *
 *     most of sum x[j,a]   with   0 <= x[j,a],   of each job sum over a of x[j,a] <= 1,
 *         at each arrival, over the jobs that may run then, sum of n[a] x[j,a] <= servers
 *
 * over the alternatives that can be placed and meet the deadline. Job j on alternative a
 * runs at time t if arrival <= t < arrival + steps * step[a]. Whatever an allocator
 * starts is a solution of this program, with each x 0 or 1, so the optimum is at least as
 * large. It can be larger: the program knows all jobs in advance, may start half a job,
 * and asks how many servers are free, not which.
 *
 * n[a] and step[a] are lower bounds of the servers that alternative a holds and of the
 * time of its step, in any placement that the heuristic makes on any set of free servers.
 * If all placements of the heuristic are alike, they are those on the empty cluster; else
 * ramp-alloc-bound(1) proves them.
 */
struct alloc_relaxation;

struct alloc_relaxation_options {
    struct place_options placer;
    const uint32_t *down; /* servers out of service */
    uint32_t ndown;
    /* Limits the number of alternatives of all jobs; those do not count that another one
     * of the same job beats in servers and time. Solving takes time proportional to its
     * square. */
    struct rec_limit limit;
    uint64_t nodes; /* of branch and bound, see linear_solve_whole(); 0: without it */
};

struct alloc_relaxed {
    uint64_t jobs;    /* that arrived */
    uint64_t able;    /* of these, jobs with an alternative that counts */
    uint32_t servers; /* in service */
    double accepted;  /* the bound: within 1e-6 of the optimum, rounded to 1e-6 */
    /* If options.nodes is not 0, the bound of whole jobs: each x of the program is 0 or
     * 1. found is the most that the search has found; if equal, that is the optimum. */
    uint64_t whole, found, nodes;
};

/** `store` is borrowed, `options->down` until this returns. NULL: *err. */
struct alloc_relaxation *alloc_relaxation_new(
    const struct alloc_relaxation_options *options, struct graph_store *store,
    struct rec_error *err) REC_MUST_CHECK;
/** Adds the next job; jobs come in order of arrival (see graph_jobs_read()). REC_USAGE:
 * there are more alternatives than the limit allows. */
bool alloc_relaxation_arrive(struct alloc_relaxation *relaxation,
                             const struct graph_job *job,
                             struct rec_error *err) REC_MUST_CHECK;
bool alloc_relaxation_solve(const struct alloc_relaxation *relaxation,
                            struct alloc_relaxed *relaxed,
                            struct rec_error *err) REC_MUST_CHECK;
/** `relaxation` may be NULL. */
void alloc_relaxation_free(struct alloc_relaxation *relaxation);

/* ---- how many jobs a schedule starts ------------------------------------- */

/**
 * A schedule of jobs that are all known in advance, found by simulated annealing: it says
 * which jobs start, on which alternative and on which servers. A job may be placed by the
 * rules of the heuristic on any of the servers that are free, as if the others were not.
 * So the most jobs of such schedules lie between what this starts and what
 * alloc_relaxation proves.
 */
struct alloc_annealing;

struct alloc_annealing_options {
    struct place_options placer;
    const uint32_t *down; /* servers out of service; borrowed */
    uint32_t ndown;
    uint64_t steps; /* moves; at least 1 */
    uint32_t seed;
};

/** `store` is borrowed. The number of the placer must be 1: a job is placed as if only
 * its own servers were free, and there is no second place among these. NULL: *err. */
struct alloc_annealing *alloc_annealing_new(const struct alloc_annealing_options *options,
                                            struct graph_store *store,
                                            struct rec_error *err) REC_MUST_CHECK;
/** Adds the next job; jobs come in order of arrival. */
bool alloc_annealing_arrive(struct alloc_annealing *annealing,
                            const struct graph_job *job,
                            struct rec_error *err) REC_MUST_CHECK;
/** Searches a schedule, and then lets the jobs arrive at an admission that follows it:
 * *started is how many start there. Called once. */
bool alloc_annealing_run(struct alloc_annealing *annealing, uint64_t *started,
                         struct rec_error *err) REC_MUST_CHECK;
/** `annealing` may be NULL. */
void alloc_annealing_free(struct alloc_annealing *annealing);

REC_END_DECLS

#endif
