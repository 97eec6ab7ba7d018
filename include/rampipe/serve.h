/*
 * rampipe/serve.h - serving pipelines: models behind queues, their simulation, their
 * tuner, their planner.
 *
 *     source --> stage: queue, replicas --> stage: queue, replicas --> sink
 *            \-> stage: queue, replicas --------------------------/
 *
 * A stage is a model with `replicas` copies on one kind of hardware. Queries wait in the
 * stage's one queue, first in, first out. An idle replica takes waiting queries, up to
 * `batch` of them, and is busy with this batch for the time that the model's profile
 * says; then each query goes on along every edge that it takes. A replica does not wait
 * for a batch to fill, but it may wait for the batching delay before it takes one. Where
 * several edges lead to a stage, a query enters the queue once it has come along each of
 * them that it takes. A query is done when all its branches are done.
 *
 * Events of equal times are ordered by kind (a batch is done; a replica takes a batch
 * after its delay; a query arrives or replicas change), then by stage in topological
 * order, then by the number of the batch in its stage. Before the next event, the queries
 * of a batch that is done go on, and idle replicas take them. So what a stage does never
 * depends on a stage whose queries do not come to it, except that a query may have been
 * dropped there. (tests/tools/serving_brute.py is an independent program of these rules.)
 *
 * Source: the simulator of Crankshaw et al., "InferLine: latency-aware provisioning and
 * scaling for prediction serving pipelines" (SoCC 2020), without two faults of its
 * scheduler (events of one instant happen last in, first out; events within 1e-8 ms
 * become one).
 */
#ifndef RAMPIPE_SERVE_H
#define RAMPIPE_SERVE_H

#include "rampipe/event.h"
#include "rampipe/random.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/** The latest time of a query or a change, seconds: a double still resolves 0.1 ms there.
 * Much later, a batch would end at the time at which it began. */
#define SERVE_TIME_MAX 1e12

/* ---- pipelines ----------------------------------------------------------- */

/** Where a record stands, for messages about it. The file's name is borrowed from the
 * reader. */
struct serve_place {
    const char *file;
    uint64_t line;
};

/** What was measured of a model on a kind of hardware: points by batch, ascending (once
 * the pipeline is sealed). */
struct serve_profile {
    uint32_t model, hardware; /* indices of names */
    struct serve_point {
        uint64_t batch;
        double p99;        /* latency as measured, seconds */
        double throughput; /* queries/s */
        struct serve_place place;
    } * point;
    size_t n, room;
};

/** What 1/throughput of a profile's point means. BATCH: the time per query, so that a
 * batch of n takes n/throughput; QUERY: the time of the whole batch, as the published
 * simulator takes it. */
enum serve_service { SERVE_BATCH, SERVE_QUERY };

/** The largest numbers of stages of a pipeline, of its edges with a probability below 1,
 * of replicas of a stage, and of queries in a batch. */
enum {
    SERVE_STAGES_MAX = 1000,
    SERVE_CHANCES_MAX = 64,
    SERVE_REPLICAS_MAX = 1 << 20,
    SERVE_BATCH_MAX = 1 << 16
};

/** How a stage is run. */
struct serve_config {
    uint32_t profile; /* index; REC_NONE: not configured, or no model */
    uint32_t batch, replicas;
    double delay; /* the batching delay, seconds */
    double load;  /* queries/s that the stage was planned for; NAN: not said */
    struct serve_place place;
};

struct serve_station_kind;

struct serve_stage {
    const char *name;
    uint32_t model; /* index of its name; REC_NONE: none */
    struct serve_config config;
    struct serve_place place;
    /* once sealed: */
    const struct serve_station_kind *kind; /* what its station does; NULL: no model */
    uint32_t rank;               /* the stage's index in `order` of the pipeline */
    uint32_t first_edge, nedges; /* the edges that leave it: their range in `out` */
    uint32_t parents;            /* number of edges that lead to it */
};

struct serve_edge {
    uint32_t src, dst; /* stages; REC_NONE: source, sink */
    double p;          /* the probability that a query takes it */
    uint32_t chance;   /* its index among the edges with p < 1; REC_NONE: p is 1 */
    struct serve_place place;
};

/** A window of the envelope, which says how many queries any interval of this length
 * held. */
struct serve_window {
    double seconds;
    uint64_t queries;   /* the most in the sample */
    uint64_t resampled; /* the most in what serve_resample() made of it; 0: not known */
};

/** How to run a stage when `rate` queries a second arrive at the pipeline. */
struct serve_rung {
    double rate; /* queries/s */
    uint32_t stage, batch, replicas;
    /* What the stage costs in a plan that was made for this rate alone, US$ an hour; NAN
     * if that is not known. */
    double fixed;
    struct serve_place place;
};

/** What records say of a pipeline. Starts as {0}. Owns what it points to. */
struct serve_pipeline {
    struct rec_arena arena;
    struct rec_map names; /* of models and hardware -> index */
    const char **name;
    size_t nnames, name_room;
    struct serve_profile *profile;
    size_t nprofiles, profile_room;
    double *price; /* per name, US$ an hour; NAN: none */
    size_t price_room;
    struct rec_map stages;
    struct serve_stage *stage;
    size_t nstages, stage_room;
    /* In the order of records. Sealing appends edges that no record says: from the source
     * to each stage that no edge leads to. */
    struct serve_edge *edge;
    size_t nedges, edge_room;
    struct rec_map pairs;        /* (model, hardware) -> profile, (src, dst) -> edge */
    struct serve_window *window; /* of the envelope, by width, ascending */
    size_t nwindows, window_room;
    struct serve_rung *rung; /* by rate, ascending */
    size_t nrungs, rung_room;
    bool planned;               /* a planned record came */
    enum serve_service service; /* that it was planned for; SERVE_BATCH: or not said */
    double rate;    /* queries/s that the pipeline was planned for; 0: not said */
    double carried; /* queries/s that its replicas carry; 0: not said */
    /* once sealed: */
    bool sealed;
    /* The stages in topological order; of several that could come next, the one whose
     * record came first. */
    uint32_t *order;
    /* The edges by their source, those of one source in the order of records; the first
     * `nentries` are from the source of the pipeline. */
    uint32_t *out;
    size_t nentries;
    size_t nchances; /* edges with p < 1 */
};

/** Is it a profile, price, stage, edge, config, envelope, planned or rung record? A
 * config with time= is not: it changes a pipeline. */
bool serve_is_pipeline(const struct rec *rec);
/** Takes a record of a pipeline. 1: taken; 0: it is another record; -1: *err. */
int serve_pipeline_take(struct serve_pipeline *pipeline, const struct rec_reader *reader,
                        const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** To be called when no more records come: checks that records fit each other, and puts
 * the stages in order. REC_DATA with file and line: a model without a profile, a circle,
 * a batch larger than any profiled, ... */
bool serve_pipeline_seal(struct serve_pipeline *pipeline,
                         struct rec_error *err) REC_MUST_CHECK;
/** Has every stage with a model a config? If not, REC_DATA names the stage. */
bool serve_pipeline_configured(const struct serve_pipeline *pipeline,
                               struct rec_error *err) REC_MUST_CHECK;
/** Frees what the pipeline owns, and makes it {0}. */
void serve_pipeline_free(struct serve_pipeline *pipeline);
/** The index of the profile of a model on a hardware (indices of names); REC_NONE:
 * none. */
uint32_t serve_profile_find(const struct serve_pipeline *pipeline, uint32_t model,
                            uint32_t hardware);

/**
 * The time of a batch of n queries, seconds; n is from 1 to the largest batch. Let y(n)
 * be piecewise linear through 1/throughput of the profile's points. BATCH: n y(n); QUERY:
 * y(n).
 */
double serve_seconds(const struct serve_profile *profile, enum serve_service service,
                     uint64_t n);
/** The highest throughput of one replica whose batches are at most n, queries/s. O(n). */
double serve_throughput(const struct serve_profile *profile, enum serve_service service,
                        uint64_t n);

/** Checks that queries and changes are in order of time, and ids new. Starts as {0}. */
struct serve_order {
    bool begun;
    double last; /* time of the last query or change, seconds */
    struct rec_ids ids;
};

/** Reads a query record. False: *err, as time runs backwards or the id is not new. The
 * caller frees order->ids with rec_ids_free(). */
bool serve_read_query(struct serve_order *order, const struct rec_reader *reader,
                      const struct rec *rec, double *time,
                      struct rec_error *err) REC_MUST_CHECK;

/**
 * The most of n arrivals at `times`, seconds, ascending, that any window [t, t + seconds)
 * holds; `seconds` is above 0. Takes time O(n).
 */
uint64_t serve_envelope(const double *times, size_t n, double seconds);

/** A resampled sequence has SERVE_RESAMPLED times as many arrivals as the sample; each of
 * its pieces has a SERVE_PIECES-th of the sample's spacings. */
enum { SERVE_RESAMPLED = 20, SERVE_PIECES = 10 };

/**
 * Makes traffic like that of the n arrivals at `times` (n from 1 to UINT32_MAX - 1), but
 * SERVE_RESAMPLED times as long. It consists of pieces of the sample's spacings, each
 * from a place that is drawn; behind the last spacing comes the first (a circular block
 * bootstrap: Politis and Romano, 1992). Pieces, rather than single spacings, keep the
 * correlation of spacings that follow each other. `longer` has room for SERVE_RESAMPLED *
 * n times.
 */
bool serve_resample(const double *times, size_t n, double *longer, uint32_t seed,
                    struct rec_error *err) REC_MUST_CHECK;

/**
 * Checks streams of pipelines, queries and changes as a run does, without serving them:
 * whether their records fit each other. Stages need no config here; queries, and results
 * (which have config records), need no pipeline. Starts as {0}.
 */
struct serve_check {
    struct serve_pipeline pipeline;
    struct serve_order order;
    /* An earlier stream had queries for this pipeline: its next record begins another
     * one. */
    bool served;
    bool strays; /* config records came, and no stages */
};

/** Takes any record, including the mark between two streams. */
bool serve_check_take(struct serve_check *check, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** To be called when no more records come. */
bool serve_check_end(struct serve_check *check, const struct rec_reader *reader,
                     struct rec_error *err) REC_MUST_CHECK;
/** Frees what the check owns, and makes it {0}. */
void serve_check_free(struct serve_check *check);

/* ---- simulation ---------------------------------------------------------- */

/** A query that leaves the pipeline. Valid during the call, as is struct serve_visit. */
struct serve_reply {
    struct rec_str id;
    double arrival, finish; /* seconds */
    const char *dropped;    /* the stage that dropped it; NULL: it is done */
};

/** A query that was served at a stage. */
struct serve_visit {
    struct rec_str id;
    const char *stage;
    double enqueued, started, finished; /* seconds */
    uint32_t batch;
};

/** What a stage did. */
struct serve_usage {
    uint64_t queries, batches; /* that were done */
    uint64_t longest;          /* the longest queue, queries */
    double busy;               /* replica-seconds at work */
    double waiting;            /* query-seconds in the queue */
    double replicas;           /* replica-seconds that are paid for */
};

/** Callbacks; each may be NULL. One that returns false stops the simulation: *err. */
struct serve_sink {
    bool (*reply)(void *context, const struct serve_reply *reply, struct rec_error *err);
    bool (*visit)(void *context, const struct serve_visit *visit, struct rec_error *err);
    void *context;
};

struct serve_options {
    enum serve_service service;
    /* A query that has been in the pipeline for longer is dropped instead of joining a
     * batch, seconds; INFINITY: never. */
    double drop_after;
    /* Queries that arrive before this time are not reported, and usage counts from it,
     * seconds. */
    double warmup;
    uint32_t seed, stream; /* of the random edges that queries take */
};

/** From `time` on a stage has `replicas` (at least 1), which take at most `batch` queries
 * (1 to the largest batch of the profile). New replicas were ordered at `ordered` (not
 * after `time`), and are paid for since then. Seconds. */
struct serve_change {
    uint32_t stage, replicas, batch;
    double ordered, time;
};

struct serve_sim;

/**
 * Makes a simulation of a sealed pipeline. The pipeline is borrowed, and so is `config`,
 * which has one for each stage (NULL: the pipeline's own). The edges that a query takes
 * depend only on the seed and on the number of queries before it. NULL: *err.
 */
struct serve_sim *serve_sim_new(const struct serve_pipeline *pipeline,
                                const struct serve_config *config,
                                const struct serve_options *options,
                                const struct serve_sink *sink,
                                struct rec_error *err) REC_MUST_CHECK;
/** `sim` may be NULL. */
void serve_sim_free(struct serve_sim *sim);
/** A query arrives at `time`, which is not before any event so far. All events up to then
 * happen first. The id is copied; it may be empty. */
bool serve_sim_query(struct serve_sim *sim, double time, struct rec_str id,
                     struct rec_error *err) REC_MUST_CHECK;
/** Changes the replicas or the batch of a stage from change->time on, which is not before
 * any event so far. New replicas work at once. If there are too many, idle ones go
 * first, and busy ones finish their batch before they go. A batch that has begun keeps
 * its size. */
bool serve_sim_change(struct serve_sim *sim, const struct serve_change *change,
                      struct rec_error *err) REC_MUST_CHECK;
/** The time of the next event, seconds; INFINITY: there is none. */
double serve_sim_next(const struct serve_sim *sim);
/** Lets all events up to and at `time` happen. REC_BUG: `time` is INFINITY, and not all
 * queries have left the pipeline. */
bool serve_sim_advance(struct serve_sim *sim, double time,
                       struct rec_error *err) REC_MUST_CHECK;
/** The time of the first query, and that of the last event, seconds; NAN: no query
 * came. */
double serve_sim_begin(const struct serve_sim *sim);
double serve_sim_now(const struct serve_sim *sim);
/** What a stage did up to serve_sim_now(). */
struct serve_usage serve_sim_usage(const struct serve_sim *sim, uint32_t stage);
/** The number of events so far: arrivals at stages, batches taken, batches done. */
uint64_t serve_sim_events(const struct serve_sim *sim);

/* ---- the tuner ----------------------------------------------------------- */

/**
 * A tuner changes the replicas and the batch of stages while queries are served, as the
 * queries come. It knows the envelope of the sample, and what each stage was planned for.
 *
 * SERVE_PUBLISHED: the tuner of InferLine (section 5), with two additions of ours
 * (published.c). It orders replicas whenever a window holds more queries than it held in
 * the sample, and gives them back `quiet` seconds later. So at a constant rate it orders
 * and gives back replicas again and again.
 *
 * SERVE_DAMPED: our own rule (damped.c). It estimates the rate that explains the
 * arrivals, and follows that in steps, with the settings of the planned rungs.
 *
 * The tuner remembers the arrivals of the widest window, at least of 30 s: 8 bytes each.
 */
enum serve_rule { SERVE_DAMPED, SERVE_PUBLISHED };

struct serve_tuning {
    enum serve_rule rule;
    double activation; /* seconds until a new replica works */
    double quiet;      /* seconds without a change before replicas go */
};

/* ---- runs ---------------------------------------------------------------- */

/** What a stage did in a run, from begin to end. */
struct serve_served {
    const struct serve_stage *stage;
    const struct serve_config *config;
    const char *hardware;
    double price;      /* US$ an hour, of one replica; NAN: not known */
    double begin, end; /* seconds */
    /* With a tuner: the cost of the stage in a static plan for the highest rate that
     * came, US$ an hour; NAN: not known. */
    double fixed;
    struct serve_usage usage;
};

/** Callbacks; each may be NULL. */
struct serve_run_sink {
    struct serve_sink queries;
    /* at the end, of each stage with a model, in order of records */
    bool (*served)(void *context, const struct serve_served *served,
                   struct rec_error *err);
    /* the tuner changes a stage: after the batches of that time are done and taken,
     * before anything else of that time */
    bool (*changed)(void *context, const struct serve_change *change,
                    struct rec_error *err);
};

struct serve_run;

/**
 * Makes a run: queries that a pipeline serves. The pipeline is borrowed, and must be
 * freed after the run. If it is not sealed yet, the run fills it from the records that it
 * takes; so a run may use the pipeline of an earlier run.
 */
struct serve_run *serve_run_new(struct serve_pipeline *pipeline,
                                const struct serve_options *options,
                                const struct serve_run_sink *sink,
                                struct rec_error *err) REC_MUST_CHECK;
/** Gives the run a tuner; to be called before its first record. The run then refuses
 * config records with time=. */
void serve_run_tune(struct serve_run *run, const struct serve_tuning *tuning);
/** `run` may be NULL. */
void serve_run_free(struct serve_run *run);
/** The number of queries so far. */
uint64_t serve_run_queries(const struct serve_run *run);
/** serve_sim_events() of the run's simulation; 0 if it has not begun. */
uint64_t serve_run_events(const struct serve_run *run);

/**
 * A run as a model; `self` is a struct serve_run. It takes the records of a pipeline,
 * which come before its queries, then queries and config records with time=. Other models
 * and the output see config and planned records, too.
 */
extern const struct event_model serve_model;

/* ---- planning ------------------------------------------------------------ */

/*
 * A planner looks for replicas, batches and hardware of all stages with which enough
 * queries of a sample meet a latency objective. It simulates the sample, since only a
 * simulation tells what bursts do. It chooses from the batches that were profiled, and
 * from the hardware that has a profile and a price. Each configuration is simulated once;
 * and not at all if a stage's throughput, or the least time of a way through the
 * pipeline, rules it out.
 */

enum serve_goal { SERVE_LEAST_COST, SERVE_MOST_THROUGHPUT };

struct serve_objective {
    enum serve_goal goal;
    double slo;        /* latency, seconds */
    double percentile; /* above 0, up to 100: per cent of the queries that must meet it */
    double budget;     /* for all replicas, US$ an hour; INFINITY: any */
    uint32_t replicas; /* the most that a stage may have */
    struct serve_options options;                      /* no drop_after, no warmup */
    struct rec_limit limit;                            /* on simulations */
    void (*tell)(void *context, uint64_t simulations); /* progress; may be NULL */
    void *context;
};

struct serve_plan {
    struct serve_config *config; /* per stage; owned. NULL: nothing was found */
    double cost;                 /* US$ an hour */
    double throughput;           /* queries/s that the slowest stage can take */
    double latency;              /* the objective's percentile, seconds */
    uint64_t late;               /* queries that miss the objective */
    /* The proved optimum: least cost or most throughput; NAN: nothing was proved. */
    double bound;
};

struct serve_planner;

/** Makes a planner. The sealed `pipeline` and the n arrival times (seconds, ascending)
 * are borrowed. NULL: *err; REC_DATA: a stage has no hardware with a price. */
struct serve_planner *serve_planner_new(const struct serve_pipeline *pipeline,
                                        const double *arrival, size_t n,
                                        const struct serve_objective *objective,
                                        struct rec_error *err) REC_MUST_CHECK;
/** `planner` may be NULL. */
void serve_planner_free(struct serve_planner *planner);

/**
 * The published planner (InferLine, section 4). It starts with batches of 1 on the
 * fastest hardware, and adds replicas to the slowest stage until the objective is met.
 * Then, as long as there is one, it takes the action that leaves the least cost, of equal
 * costs the least latency: the next larger batch that was profiled; one replica less; the
 * next cheaper hardware, with replicas and batch of that stage found anew. If the goal is
 * throughput, it then spends the budget on the slowest stage: on the next batch, one more
 * replica, or dearer hardware. The plan it finds is not always the best. REC_NO: there is
 * none, and *err names the stage, or the way through the pipeline, that is the reason.
 */
bool serve_plan_greedily(struct serve_planner *planner, struct serve_plan *plan,
                         struct rec_error *err) REC_MUST_CHECK;
/**
 * The best plan of all, by branch and bound. *plan may be a plan to begin with, or {0};
 * it is replaced if there is a better one, and its bound is set. Stages that share no
 * ancestor are searched separately. Each stage is simulated behind what was chosen for
 * the stages before it; if a query is late even with the least time that the stages
 * behind can take, it is late whatever is chosen for them. REC_NO: no plan meets the
 * objective. REC_USAGE: the search needs more simulations than the limit.
 */
bool serve_plan_exactly(struct serve_planner *planner, struct serve_plan *plan,
                        struct rec_error *err) REC_MUST_CHECK;
/** How a sample was drawn. Starts as {0}. */
struct serve_arrivals {
    bool known;
    struct rng_arrivals_options options;
    struct rec_arena arena;
};

/** Reads an arrivals record. */
bool serve_read_arrivals(struct serve_arrivals *drawn, const struct rec_reader *reader,
                         const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** From the seed of a sample to that of queries that are drawn again, for arrivals and
 * for edges: half the range of seeds, so that a user's next seed, such as the first plus
 * 1, does not give the same queries. */
#define SERVE_SEED_DISTANCE ((uint32_t)1 << 31)
/**
 * Draws n arrivals as the n at `times` were drawn, but with another seed, *seed. The
 * caller owns *again. It is NULL if it is not known how `times` were drawn, or if drawing
 * them again does not give the same bits: then the arrivals record is of other arrivals.
 */
bool serve_draw_again(const struct serve_arrivals *drawn, const double *times, size_t n,
                      double **again, uint32_t *seed,
                      struct rec_error *err) REC_MUST_CHECK;
void serve_arrivals_free(struct serve_arrivals *drawn);

/** The rate of a rung divided by that of the rung before. */
#define SERVE_STEP 1.15

/** Queries by which a plan is judged: n of them, at the times `arrival` / `speed`,
 * seconds, ascending; borrowed. Those before index `from` are a warm-up and do not
 * count. */
struct serve_trial {
    const double *arrival;
    size_t n, from; /* from < n < UINT32_MAX */
    double speed;   /* above 0 */
    uint32_t seed;  /* of the random edges that queries take */
};

/** What a plan attains: `share` is the per cent of `queries` that are in time, `lower`
 * and `upper` the ends of its confidence interval of 95 per cent. */
struct serve_attained {
    size_t queries;
    uint64_t late;
    uint64_t added; /* replicas that serve_plan_secure() added */
    double share, lower, upper;
    double carried; /* the rate that replicas carry, queries/s; 0: not known */
};

/**
 * Adds replicas to a plan, each where it helps most for its price, until the lower end of
 * its interval in a trial is at least the objective's percentile, or no query of the
 * trial is late. The plan's bound stays. REC_NO: the budget, or the most replicas that a
 * stage may have, do not allow it.
 */
bool serve_plan_secure(struct serve_planner *planner, const struct serve_trial *trial,
                       struct serve_plan *plan, struct serve_attained *attained,
                       struct rec_error *err) REC_MUST_CHECK;
/**
 * The cost of each stage, US$ an hour, in a static plan for the sample at `trial->speed`
 * times its speed. The plan is made greedily, and secured by the trial; its hardware may
 * differ from that of the planner's plans. cost[s] is NAN if there is no such plan. A
 * planner of its own makes it, which may use as many simulations as the objective allows.
 */
bool serve_plan_fixed(const struct serve_planner *planner,
                      const struct serve_trial *trial, double *cost,
                      struct rec_error *err) REC_MUST_CHECK;
/**
 * Finds configurations, on the hardware of a plan, for queries that come faster: for each
 * of *n speeds, ascending, `rung` gets a config per stage. Each begins with that of the
 * speed before; batches are changed where that helps, and replicas are added as above. If
 * that is not enough for a speed, *n becomes the number of speeds before it.
 */
bool serve_plan_rungs(struct serve_planner *planner, const struct serve_trial *trial,
                      const struct serve_plan *plan, const double *speed, size_t *n,
                      struct serve_config *rung, struct rec_error *err) REC_MUST_CHECK;
void serve_plan_free(struct serve_plan *plan);
/** The number of simulations so far, of the whole pipeline or of one stage. */
uint64_t serve_planner_simulations(const struct serve_planner *planner);
/** The mean rate of the sample's arrivals, queries/s; NAN if all queries come at once. */
double serve_planner_rate(const struct serve_planner *planner);
/** The time that the longest way through the planned pipeline takes a query that is alone
 * in every batch and never waits, seconds. */
double serve_plan_seconds(const struct serve_planner *planner,
                          const struct serve_plan *plan);

REC_END_DECLS

#endif
