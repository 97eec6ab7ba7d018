/*
 * rampipe/alloc.h - who gets which servers: plans, heuristics, policies, admission.
 *
 *     alloc_plan       what placing needs to know of a graph: units in order, parents
 *     alloc_place      the plan on the free servers, by a heuristic: units to their
 *                      parents' servers if that is possible, else to a free block of a
 *                      legal shape; tasks to whichever server is free first
 *     alloc_policy     how much a job is offered to be partitioned
 *     alloc_admission  jobs arrive, take servers, wait or are turned away
 *     alloc_relaxation how many jobs could start, whoever chooses
 *
 * Sources: the GreedyBlockAllocator notebook of RAMP, and the ddls simulator
 * ("Partitioning Distributed Compute Jobs with Reinforcement Learning and Graph Neural
 * Networks").
 */
#ifndef RAMPIPE_ALLOC_H
#define RAMPIPE_ALLOC_H

#include "rampipe/graph.h"
#include "rampipe/net.h"
#include "rampipe/random.h"
#include "rampipe/sim.h"

#include <sys/types.h>

REC_BEGIN_DECLS

/* ---- placing ------------------------------------------------------------- */

/** One unit to place; its twin goes to the same servers. */
struct alloc_step {
    uint32_t unit;
    uint32_t first_parent, nparents; /* parent[first_parent...]: earlier steps */
    double memory; /* of one part (the largest), shared with its twin, bytes */
};

/**
 * The units that are placed (all but the twins of others), in Kahn's order of the
 * unpartitioned graph: first in first out, in order of ops and deps.
 */
struct alloc_plan {
    const struct graph *graph; /* borrowed */
    struct alloc_step *step;
    uint32_t nsteps;
    uint32_t largest; /* number of parts of a step; at least 1 */
    double memory;  /* of a part of every step: all that one server can be given, bytes */
    uint32_t *kind; /* steps: the first of each number of parts */
    uint32_t nkinds;
    bool tasks;       /* all ops are tasks, and whole */
    uint32_t *parent; /* in order of deps */
    uint32_t *twin; /* per member of graph->member: its twin's place there, or its own */
};

bool alloc_plan_make(const struct graph *graph, struct alloc_plan *plan,
                     struct rec_error *err) REC_MUST_CHECK;
void alloc_plan_free(struct alloc_plan *plan);
/** Bytes that one part of a unit (the largest) shares with its twin. */
double alloc_part_memory(const struct graph *graph, uint32_t unit);

enum alloc_outcome { ALLOC_PLACED, ALLOC_NO_SERVERS, ALLOC_NO_BLOCK, ALLOC_NO_MEMORY };
/** The CAUSE of a block record; "placed" for ALLOC_PLACED. */
const char *alloc_outcome_name(enum alloc_outcome outcome);

/** Which servers are free: nobody's, and in service. */
struct alloc_vacancy;

/** All servers of a cluster are free. NULL: out of memory. */
struct alloc_vacancy *alloc_vacancy_new(const struct net_cluster *cluster,
                                        struct rec_error *err) REC_MUST_CHECK;
/** `vacancy` may be NULL. */
void alloc_vacancy_free(struct alloc_vacancy *vacancy);
bool alloc_is_free(const struct alloc_vacancy *vacancy, uint32_t server);
void alloc_set_free(struct alloc_vacancy *vacancy, uint32_t server, bool free);

struct alloc_placer; /* a cluster, and the job that is being placed on it */

/** A way to place a plan; a row a heuristic. */
struct alloc_heuristic {
    const char *name; /* as users say it; NULL ends the table */
    /* Places the plan with the functions of lib/alloc/placer.h; what it placed before it
     * failed is forgotten. */
    enum alloc_outcome (*place)(struct alloc_placer *placer,
                                const struct alloc_plan *plan);
    bool
        pure; /* the same plan on the same free servers gives the same: a placement may be
                  remembered. One that is not draws from alloc_placer_rng() */
    bool whole; /* any free block in the cluster will do, the first is taken */
    bool alike; /* wherever there is room for a plan, its parts lie to each other as on an
                   empty cluster: it holds as many servers and takes as long */
};

extern const struct alloc_heuristic alloc_heuristics[];

struct alloc_placer_options {
    struct net_cluster cluster;              /* of kind ramp */
    const struct alloc_heuristic *heuristic; /* borrowed */
    uint32_t meta[3];                        /* shape of a meta-block: C, R, S */
    uint32_t seed;                           /* of heuristics that are not pure */
};

/** NULL: *err. */
struct alloc_placer *alloc_placer_new(const struct alloc_placer_options *options,
                                      struct rec_error *err) REC_MUST_CHECK;
/** `placer` may be NULL. */
void alloc_placer_free(struct alloc_placer *placer);
/** For heuristics that are not pure. */
struct rng *alloc_placer_rng(struct alloc_placer *placer);

/** A placement; the arrays belong to the placer until its next use. */
struct alloc_placement {
    enum alloc_outcome outcome;
    uint32_t failed;        /* if not placed: the unit of graph->unit that was not */
    double left;            /* no_memory: bytes left on every server of the block of free
                               servers with most, of those that the unit may go to */
    const uint32_t *server; /* per member of graph->member: its server; twins included */
    const uint32_t *held;   /* the job's servers: used ones in order of first use, then
                               others it reserves */
    uint32_t nheld, nused;
    const uint32_t
        *order; /* of tasks: the plan's steps in order of their starts; else NULL */
};

/**
 * Places a plan on an empty job, on servers that are free; nothing of `vacancy` is
 * changed. Each server is checked for memory. Tasks are placed by list scheduling,
 * whatever the heuristic: whenever a server is free, the task that is ready and has the
 * longest path behind it goes there (Graham 1966, with ranks of the critical path); so
 * many servers are the job's as that uses. False: out of memory.
 */
bool alloc_place(struct alloc_placer *placer, const struct alloc_plan *plan,
                 const struct alloc_vacancy *vacancy, struct alloc_placement *placement,
                 struct rec_error *err) REC_MUST_CHECK;

/* ---- how much to partition ----------------------------------------------- */

/** The most degrees a policy can offer. */
#define ALLOC_DEGREES_MAX 4096

/**
 * The degrees up to `most` that have a block on an empty cluster of this shape,
 * ascending: 1 and even numbers for which net_has_block(). Returns how many.
 */
uint32_t alloc_valid_degrees(const uint32_t shape[3], uint32_t most,
                             uint32_t degree[ALLOC_DEGREES_MAX]);

/** What a policy knows of a job. */
struct alloc_offer {
    const uint32_t *valid; /* ascending */
    uint32_t nvalid;       /* at least 1 */
    uint32_t limit;        /* of a policy that takes a number */
    double sequential;     /* time on one server, seconds */
    double deadline;       /* it may take, seconds */
    struct rng *rng;       /* of a policy that draws */
};

/** How much a job may be partitioned; a row a policy. */
struct alloc_policy {
    const char *name; /* NULL ends the table */
    bool limited;     /* takes a number, NAME:N */
    bool random;
    /* offered[], in order of preference; how many, at least 1 and at most nvalid */
    uint32_t (*offer)(const struct alloc_offer *offer, uint32_t *offered);
};

/**
 * none: 1; min: 2, then 1; max: the largest first; sip-ml[:N]: the largest up to N first;
 * acceptable-jct: the smallest that could meet the deadline if nothing but computing took
 * time, then smaller ones; random: all, in random order; all: the smallest first. Source:
 * the heuristics of the ddls simulator (NoParallelism, MinParallelism, MaxParallelism,
 * SiPML, AcceptableJCT), which take the first of these that the cluster has servers for.
 */
extern const struct alloc_policy alloc_policies[];

/* ---- which alternative --------------------------------------------------- */

/** An alternative of a job, tried on the servers that are free; valid during the
 * decision. */
struct alloc_alternative {
    uint32_t graph;    /* its number in the store */
    const char *cause; /* why it cannot start; NULL: it can, and then: */
    uint32_t nservers;
    const uint32_t *servers; /* per slot */
    double step;             /* time of a training step, seconds */
    double finish;           /* when it would complete, seconds */
};

/** A job at hand, and the alternatives that it came with: asked for one by one, for
 * trying one takes time. */
struct alloc_question;

/** How many alternatives there are, at least 1. */
uint32_t alloc_question_count(const struct alloc_question *question);
uint32_t alloc_question_free_servers(const struct alloc_question *question);
/** The degree of an alternative's graph: its degree=, or the most parts that an op
 * has. */
bool alloc_question_degree(struct alloc_question *question, uint32_t i, uint32_t *degree,
                           struct rec_error *err) REC_MUST_CHECK;
/** Tries an alternative; one that was tried in this decision is remembered. NULL:
 * *err. */
const struct alloc_alternative *alloc_question_try(struct alloc_question *question,
                                                   uint32_t i,
                                                   struct rec_error *err) REC_MUST_CHECK;

/**
 * What a learned scorer and an agent see of an alternative, without units. Of the
 * cluster: N servers, f of them free; of the arrivals so far, this one included: W the
 * mean of sequential time times steps, ia the mean time between them, kept within W/N
 * e^-5 to W/N e^5 (of the first: W/N); load l = ln(W / (ia N)) / 2. Of the alternative: n
 * servers, t from arrival to completion. h(d) = log2(1 + d) / log2(1 + N). A job needs a
 * speed-up of sequential time times steps / deadline, here at most N.
 */
struct alloc_feature {
    const char *name;    /* NULL ends the table */
    const char *meaning; /* a formula */
    double
        spread; /* about how much alternatives, or jobs, differ in it: learning's unit */
    bool
        regime; /* the regime's, or a product with what is: hardly changes in a setting */
};

extern const struct alloc_feature alloc_features[];
#define ALLOC_FEATURES 47

/**
 * The regime: those features that say how jobs come (load, need, spread, variation), the
 * same for all alternatives of a job.
 */
struct alloc_regime {
    int feature; /* its number in the table */
    double unit; /* what two regimes differ in is measured in */
};
#define ALLOC_REGIME 4
extern const struct alloc_regime alloc_regime[ALLOC_REGIME];

/** The features of an alternative that was tried and can start, in order of the table. */
bool alloc_question_features(struct alloc_question *question, uint32_t i,
                             double value[ALLOC_FEATURES],
                             struct rec_error *err) REC_MUST_CHECK;

/** Answers that are no alternative's number: none can start; the job is not wanted. Its
 * block has the cause policy if it could have started or waited, else that of the last
 * alternative. */
#define ALLOC_NONE UINT32_MAX
#define ALLOC_REFUSED (UINT32_MAX - 1)

#define ALLOC_UNITS_MAX 1000

/**
 * An expert: the weighted sum of an alternative's features, and of the outputs of hidden
 * units, each tanh of a weighted sum of the features.
 */
struct alloc_expert {
    double center[ALLOC_REGIME]; /* the regime in which it is at home */
    double *weight; /* owned: ALLOC_FEATURES; of each unit as many, and its own */
};

/**
 * A learned scorer: experts, of which that one gives the scores whose center is nearest,
 * in the units of the regime (of equally near ones the first; a mixture of experts with
 * the hard gate of a nearest prototype, after Jacobs, Jordan, Nowlan and Hinton,
 * "Adaptive Mixtures of Local Experts", 1991). The alternative with the highest score is
 * chosen, if that is at least 0; else the job is refused.
 */
struct alloc_scorer {
    const struct alloc_heuristic
        *heuristic; /* it was trained with; NULL: that is not known */
    uint32_t units; /* each expert's */
    uint32_t nexperts;
    struct alloc_expert *expert; /* owned */
};

/** All weights and centers are 0. NULL: *err. */
struct alloc_scorer *alloc_scorer_new(uint32_t units, uint32_t nexperts,
                                      struct rec_error *err) REC_MUST_CHECK;
/** `scorer` may be NULL. */
void alloc_scorer_free(void *scorer);
/** How many weights an expert has. */
size_t alloc_scorer_size(uint32_t units);
double alloc_scorer_score(const struct alloc_scorer *scorer,
                          const double feature[ALLOC_FEATURES]);
/** Reads policy, expert and weight records. NULL: *err. */
struct alloc_scorer *alloc_scorer_read(const char *path,
                                       struct rec_error *err) REC_MUST_CHECK;
/** The center of an only expert, which is always the nearest, is not written. */
void alloc_scorer_write(const struct alloc_scorer *scorer, struct rec_writer *writer);

struct alloc_admission_options;

struct alloc_choosing;

/** What a chooser is opened with; borrowed for as long as it is open. */
struct alloc_choice {
    const char *argument;
    /* For rollouts: */
    const struct alloc_admission_options *admission; /* where jobs go, and wait */
    struct graph_store *store;
    const struct alloc_choosing *base; /* which chooses in their futures */
    uint32_t horizon;                  /* jobs of a future */
    uint32_t seed;
};

/** Chooses among the alternatives of a job; a row a way to choose. */
struct alloc_chooser {
    const char *name;     /* as users say it; NULL ends the table */
    const char *argument; /* what follows it behind a colon: "FILE"; NULL: nothing does */
    bool observes;        /* it asks for features */
    /* Makes its self; `free` is given it in the end. NULL: it has none. */
    void *(*open)(const struct alloc_choice *choice, struct rec_error *err);
    void (*free)(void *self);
    /* *choice: an alternative that was tried and can start, ALLOC_NONE (the job waits, or
     * is blocked by what kept the last one from starting) or ALLOC_REFUSED. False:
     * *err. */
    bool (*decide)(void *self, struct alloc_question *question, uint32_t *choice,
                   struct rec_error *err);
};

/**
 * first: the first that can be placed and meets the deadline; first-degree: the first
 * whose degree is at most the number of free servers; if that fails, none (the published
 * simulator); fastest: of those that can start, the one that completes first;
 * fewest-servers: the one with the fewest servers; learned:FILE: by the scorer of a file;
 * rollout:N: what another chooser, the base, would take, unless with another alternative,
 * or none, more jobs are accepted in N sampled futures in which the base decides, by more
 * than the standard error of the mean difference: jobs and times between them are drawn
 * from those that came, the same for all alternatives (one step of policy improvement;
 * Bertsekas, "Rollout, Policy Iteration, and Distributed Reinforcement Learning", 2020).
 */
extern const struct alloc_chooser alloc_choosers[];

/** The row of this name, NULL: there is none. */
const struct alloc_chooser *alloc_chooser_find(struct rec_str name);

/** A chooser that is open. Starts as {0}. */
struct alloc_choosing {
    const struct alloc_chooser *chooser;
    void *self;     /* owned */
    char *argument; /* owned */
};

/** Opens a chooser as users say it, NAME or NAME:ARGUMENT, with what else is in *choice.
 * REC_USAGE: what would be right. */
bool alloc_choosing_open(struct alloc_choosing *choosing, const char *text,
                         const struct alloc_choice *choice,
                         struct rec_error *err) REC_MUST_CHECK;
void alloc_choosing_close(struct alloc_choosing *choosing);
/** The heuristic that a learned chooser was trained with. NULL: it is no learned one, or
 * its file does not say. */
const struct alloc_heuristic *alloc_choosing_trained(
    const struct alloc_choosing *choosing);

/* ---- agents: choosers that are processes --------------------------------- */

/** A process that is asked for every decision; see AGENTS in ramp-alloc(1). */
struct alloc_agent;

struct alloc_agent_options {
    const char *name;    /* in messages */
    const char *command; /* for a shell: it is started; NULL: it is there already, and */
    int from, to;        /* it is heard and told on these descriptors */
    double timeout;      /* for each answer, and to end, seconds; inf: any */
    const struct net_cluster *cluster; /* it is told of it */
    const char *provenance;            /* of what it is told, a "#@" line */
    /* A process group has been started: called before any signal can come between. May be
     * NULL. */
    void (*started)(pid_t group);
};

/** NULL: *err. */
struct alloc_agent *alloc_agent_open(const struct alloc_agent_options *options,
                                     struct rec_error *err) REC_MUST_CHECK;
/** All is decided: tells it, and waits until it has ended. False: *err says how it failed
 * (REC_IO: it died, or was late; REC_DATA: it said what is not right). */
bool alloc_agent_end(struct alloc_agent *agent, struct rec_error *err) REC_MUST_CHECK;
/** What runs of it is killed. `agent` may be NULL. */
void alloc_agent_free(struct alloc_agent *agent);

/** Asks the agent that is its self. */
extern const struct alloc_chooser alloc_agent_chooser;

/* ---- admission (ramp-alloc) ---------------------------------------------- */

enum alloc_order { ALLOC_FIFO, ALLOC_SHORTEST };

struct alloc_admission_options {
    struct alloc_placer_options placer;
    const struct alloc_choosing *choosing; /* borrowed */
    size_t queue;                          /* jobs that may wait */
    enum alloc_order order;
    const uint32_t *down; /* servers out of service */
    uint32_t ndown;
    size_t
        layouts; /* bytes of layouts that no job holds and that are kept; those that were
                       idle longest are forgotten: a job that fits one gets a new one. 0:
                       SIM_LAYOUTS_MAX_ALLOC */
};

/** The owner of a server that is out of service. */
#define ALLOC_DOWN UINT64_MAX

/** What became of a job; valid during the call. */
struct alloc_decision {
    struct graph_job job;
    double time;               /* seconds */
    const char *cause;         /* of a block; NULL: it starts */
    uint32_t failed;           /* no_block, no_memory: the unit that was not placed */
    double left;               /* no_memory: as in struct alloc_placement */
    const struct graph *graph; /* the alternative taken, or the last one tried */
    struct sim_layout *layout;
    bool new_layout;         /* used for the first time */
    const uint32_t *servers; /* per slot */
    const struct sim_cost *cost;
    double finish; /* seconds */
};

struct alloc_admission;

/** Called for each decision, in order of time. False: stop, *err filled. */
typedef bool alloc_decide(void *context, const struct alloc_decision *decision,
                          struct rec_error *err);

struct alloc_admission *alloc_admission_new(const struct alloc_admission_options *options,
                                            struct graph_store *store,
                                            alloc_decide *decide, void *context,
                                            struct rec_error *err) REC_MUST_CHECK;
/** Lets time pass: jobs end, jobs that wait are decided. Before the arrival of `job`. */
bool alloc_admission_advance(struct alloc_admission *admission,
                             const struct graph_job *job,
                             struct rec_error *err) REC_MUST_CHECK;
/** A job arrives, at the time that alloc_admission_advance() was called with. */
bool alloc_admission_arrive(struct alloc_admission *admission,
                            const struct graph_job *job,
                            struct rec_error *err) REC_MUST_CHECK;
/** No more arrivals: jobs that wait are decided as the others end. */
bool alloc_admission_end(struct alloc_admission *admission,
                         struct rec_error *err) REC_MUST_CHECK;
/** The job on each server: 0 none, else its number, counted from 1 in order of starts. */
const uint64_t *alloc_admission_owners(const struct alloc_admission *admission);
/** All jobs are gone, and time is 0 again; what placements cost is not forgotten. */
bool alloc_admission_reset(struct alloc_admission *admission,
                           struct rec_error *err) REC_MUST_CHECK;
/** The regime of the arrivals so far; the chooser must be one that observes. */
void alloc_admission_regime(struct alloc_admission *admission,
                            double value[ALLOC_REGIME]);
void alloc_admission_free(struct alloc_admission *admission);

/* ---- how many jobs could start at most ----------------------------------- */

/**
 * A bound on how many jobs any choice among their alternatives starts, if none waits: the
 * optimum of the linear program
 *
 *     most of sum x[j,a]   with   0 <= x[j,a],   of each job sum over a of x[j,a] <= 1,
 *         at each arrival, over the jobs that may run then, sum of n[a] x[j,a] <= servers
 *
 * over the alternatives that can be placed and meet the deadline. A job may run at t if
 * arrival <= t < arrival + steps * step[a]. It knows all jobs in advance, may start half
 * a job, and asks how many servers are free, not which: what an allocator starts is a
 * solution, if each x is 0 or 1, so the optimum is not less.
 *
 * n[a] and step[a] are at most what the alternative has in any placement that the
 * heuristic makes, on whichever servers are free: of a heuristic whose placements are all
 * alike, what it has on the empty cluster; else a lower bound, which ramp-alloc-bound(1)
 * proves.
 */
struct alloc_relaxation;

struct alloc_relaxation_options {
    struct alloc_placer_options placer;
    const uint32_t *down; /* servers out of service */
    uint32_t ndown;
    /* On the alternatives of all jobs, but for those that another of the job beats in
     * both servers and time; solving takes time with its square. */
    struct rec_limit limit;
};

struct alloc_relaxed {
    uint64_t jobs, able; /* able: have an alternative that may be placed, in time */
    uint32_t servers;    /* in service */
    double accepted; /* jobs at most, within 1e-6 of the optimum and rounded to 1e-6 */
};

/** `store` is borrowed, `options->down` until this returns. NULL: *err. */
struct alloc_relaxation *alloc_relaxation_new(
    const struct alloc_relaxation_options *options, struct graph_store *store,
    struct rec_error *err) REC_MUST_CHECK;
/** The next job, in order of arrival (graph_jobs_read()). */
bool alloc_relaxation_arrive(struct alloc_relaxation *relaxation,
                             const struct graph_job *job,
                             struct rec_error *err) REC_MUST_CHECK;
/** REC_USAGE: more than the limit. */
bool alloc_relaxation_solve(const struct alloc_relaxation *relaxation,
                            struct alloc_relaxed *relaxed,
                            struct rec_error *err) REC_MUST_CHECK;
/** `relaxation` may be NULL. */
void alloc_relaxation_free(struct alloc_relaxation *relaxation);

REC_END_DECLS

#endif
