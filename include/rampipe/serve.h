/*
 * rampipe/serve.h - serving pipelines: models behind queues, their simulation, their
 * tuner, their planner.
 *
 *     source --> stage: queue, replicas --> stage: queue, replicas --> sink
 *            \-> stage: queue, replicas --------------------------/
 *
 * A stage is a model, and `replicas` of it on one kind of hardware. What comes waits in
 * one queue, first in, first out. A replica that is idle takes what waits, up to `batch`
 * queries, and is busy with them for the time that the model's profile says; then all of
 * them go on along every edge that they take. Nobody waits for a batch to fill, but a
 * replica may wait for the batching delay before it takes one. A stage that several edges
 * lead to waits for a query on each that it takes; a query is done when all its branches
 * are.
 *
 * Equal times go by what happens (a batch is done, a replica takes one after its delay, a
 * query arrives or replicas change), then by stage in topological order, then by batch of
 * the stage; what is done goes on, and is taken, before the next happens. So what a stage
 * does never depends on a stage that it gets nothing from, but for queries that were
 * dropped there. (tests/serving_brute.py is another program of these rules.)
 *
 * Source: the simulator of Crankshaw et al., "InferLine: latency-aware provisioning and
 * scaling for prediction serving pipelines" (SoCC 2020), without the faults of its
 * scheduler (last in, first out at one instant; events within 1e-8 ms made one).
 */
#ifndef RAMPIPE_SERVE_H
#define RAMPIPE_SERVE_H

#include "rampipe/random.h"
#include "rampipe/record.h"
#include "rampipe/sim.h"

REC_BEGIN_DECLS

/* ---- pipelines ----------------------------------------------------------- */

/** Where a record stood, for messages about it; the file's name is borrowed of the
 * reader. */
struct serve_place {
    const char *file;
    uint64_t line;
};

/** A model on a kind of hardware, by batch, ascending. */
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

/** What a profile's throughput says of one batch: BATCH, that 1/throughput is the time of
 * a query in it; QUERY, that it is the time of the whole batch, as the published
 * simulator has it. */
enum serve_service { SERVE_BATCH, SERVE_QUERY };

/** Most stages of a pipeline, edges of it that have a probability, replicas of a stage,
 * queries in a batch. */
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
    double delay; /* seconds */
    double load;  /* queries/s that it was planned for; NAN: not said */
    struct serve_place place;
};

struct serve_stage {
    const char *name;
    uint32_t model; /* index of its name; REC_NONE: none */
    struct serve_config config;
    struct serve_place place;
    /* once sealed: */
    uint32_t rank;               /* its place in the topological order */
    uint32_t first_edge, nedges; /* that leave it, in `out` */
    uint32_t parents;            /* edges that lead to it */
};

struct serve_edge {
    uint32_t src, dst; /* stages; REC_NONE: source, sink */
    double p;
    uint32_t chance; /* which of those with p < 1; REC_NONE: none */
    struct serve_place place;
};

/** What a window of time may hold. */
struct serve_window {
    double seconds;
    uint64_t queries;
    uint64_t resampled; /* 0: not known */
};

/** How to run a stage when `rate` queries a second arrive at the pipeline. */
struct serve_rung {
    double rate; /* queries/s */
    uint32_t stage, batch, replicas;
    /* What the stage costs in a plan that was made for this rate alone, US$ an hour; NAN
     * if that is not known. */
    double fixed;
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
    struct serve_edge *edge; /* in the order of records; once sealed also those that no
                                record says: from the source, to stages that none leads to */
    size_t nedges, edge_room;
    struct rec_map pairs;        /* of profiles and edges */
    struct serve_window *window; /* of the envelope, by width, ascending */
    size_t nwindows, window_room;
    struct serve_rung *rung; /* by rate, ascending */
    size_t nrungs, rung_room;
    double rate;    /* queries/s that it was planned for; 0: not said */
    double carried; /* queries/s that its replicas carry; 0: not said */
    /* once sealed: */
    bool sealed;
    uint32_t *order; /* stages, topologically: of those that could come next, the one
                        whose record came first */
    uint32_t *out;   /* edges by their source, those of one in the order of records; the
                        first nentries are from the source */
    size_t nentries;
    size_t nchances; /* edges with p < 1 */
};

/** Is it a profile, price, stage, edge, config, envelope or planned record? A config with
 * time= is none of the pipeline's: it changes one. */
bool serve_is_pipeline(const struct rec *rec);
/** Takes a record of a pipeline: 1; 0 it was another; -1 *err. */
int serve_pipeline_take(struct serve_pipeline *pipeline, const struct rec_reader *reader,
                        const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** No more records come: checks what they say of each other, puts the stages in order.
 * REC_DATA with file and line: a model that no profile has, a circle, a batch that is
 * larger than any profiled, ... */
bool serve_pipeline_seal(struct serve_pipeline *pipeline,
                         struct rec_error *err) REC_MUST_CHECK;
/** Every stage with a model is configured; REC_DATA says which is not. */
bool serve_pipeline_configured(const struct serve_pipeline *pipeline,
                               struct rec_error *err) REC_MUST_CHECK;
/** Frees what it owns; it is {0} again. */
void serve_pipeline_free(struct serve_pipeline *pipeline);
/** The profile of a model on a hardware, names' indices; REC_NONE: there is none. */
uint32_t serve_profile_find(const struct serve_pipeline *pipeline, uint32_t model,
                            uint32_t hardware);

/** The largest batch of a profile. */
uint64_t serve_largest(const struct serve_profile *profile);
/**
 * Time of a batch of n, seconds: with y(n) piecewise linear through 1/throughput of the
 * profile's points, BATCH: n y(n), QUERY: y(n); n is from 1 to the largest batch.
 */
double serve_seconds(const struct serve_profile *profile, enum serve_service service,
                     uint64_t n);
/** The most queries/s of one replica whose batches are at most n. */
double serve_throughput(const struct serve_profile *profile, enum serve_service service,
                        uint64_t n);

struct serve_change;
/** Reads a config record with time=, of a sealed pipeline: only REPLICAS and BATCH may be
 * others. */
bool serve_read_change(struct serve_pipeline *pipeline, const struct rec_reader *reader,
                       const struct rec *rec, struct serve_change *change,
                       struct rec_error *err) REC_MUST_CHECK;

/** Queries, and changes, so far. Starts as {0}. */
struct serve_order {
    bool begun;
    double last; /* seconds */
    struct rec_ids ids;
};

/** Something happens at `time`, not before what came before. */
bool serve_order_time(struct serve_order *order, const struct rec_reader *reader,
                      double time, struct rec_error *err) REC_MUST_CHECK;

/** Reads a query record: not before the one before, an id that is new. Free
 * order->ids. */
bool serve_read_query(struct serve_order *order, const struct rec_reader *reader,
                      const struct rec *rec, double *time,
                      struct rec_error *err) REC_MUST_CHECK;

/**
 * The most of n arrivals at `times`, seconds, ascending, that any window [t, t + seconds)
 * holds; `seconds` is above 0. Takes time O(n).
 */
uint64_t serve_envelope(const double *times, size_t n, double seconds);

/** How many times as long as the sample what is resampled is; how many pieces make a
 * sample. */
enum { SERVE_RESAMPLED = 20, SERVE_PIECES = 10 };

/**
 * Traffic such as that of n arrivals at `times`, from 1 to UINT32_MAX - 1, but
 * SERVE_RESAMPLED times as long: pieces of their spacings, a SERVE_PIECES-th of them
 * each, from places that are drawn, the first behind the last (a circular block
 * bootstrap: Politis and Romano, 1992). Pieces keep what spacings have to do with each
 * other. `longer` has room for SERVE_RESAMPLED * n.
 */
bool serve_resample(const double *times, size_t n, double *longer, uint32_t seed,
                    struct rec_error *err) REC_MUST_CHECK;

/**
 * Streams of pipelines, queries and changes, of which nothing is served: what they say of
 * each other, as a run checks it. Stages need no config, and queries and results no
 * pipeline. Starts as {0}.
 */
struct serve_check {
    struct serve_pipeline pipeline;
    struct serve_order order;
    bool served; /* by a stream before: the next record of a pipeline begins another */
    bool strays; /* config records without stages */
};

/** Takes any record, and the mark between two streams. */
bool serve_check_take(struct serve_check *check, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** No more records come. */
bool serve_check_end(struct serve_check *check, const struct rec_reader *reader,
                     struct rec_error *err) REC_MUST_CHECK;
/** Frees what it owns; it is {0} again. */
void serve_check_free(struct serve_check *check);

/* ---- simulation ---------------------------------------------------------- */

/** A query that leaves the pipeline, one that was at a stage; valid during the call. */
struct serve_reply {
    struct rec_str id;
    double arrival, finish; /* seconds */
    const char *dropped;    /* the stage that gave it up; NULL: it is done */
};

struct serve_visit {
    struct rec_str id;
    const char *stage;
    double enqueued, started, finished; /* seconds */
    uint32_t batch;
};

/** What a stage did. */
struct serve_usage {
    uint64_t queries, batches, longest;
    double busy, waiting, replicas; /* replica-, query-, replica-seconds */
};

/** Calls may be NULL. False stops the simulation: *err. */
struct serve_sink {
    bool (*reply)(void *context, const struct serve_reply *reply, struct rec_error *err);
    bool (*visit)(void *context, const struct serve_visit *visit, struct rec_error *err);
    void *context;
};

struct serve_options {
    enum serve_service service;
    double drop_after; /* seconds in the pipeline after which a query is not taken any
                          more; INFINITY: never */
    double warmup;     /* what arrives before is not told of, and usage is of what comes
                          after; seconds */
    uint32_t seed, stream; /* of the edges that queries take */
};

/** From `time` on a stage has `replicas`, at least 1, which take at most `batch` queries,
 * from 1 to the largest batch of the profile. New ones were ordered at `ordered`, not
 * after `time`, and are paid for since. Seconds. */
struct serve_change {
    uint32_t stage, replicas, batch;
    double ordered, time;
};

struct serve_sim;

/**
 * A simulation of a sealed pipeline, which is borrowed, as are the configurations, one a
 * stage (NULL: the pipeline's own). The edges that a query takes depend on the seed and
 * on how many queries came before it, on nothing else. NULL: *err.
 */
struct serve_sim *serve_sim_new(const struct serve_pipeline *pipeline,
                                const struct serve_config *config,
                                const struct serve_options *options,
                                const struct serve_sink *sink,
                                struct rec_error *err) REC_MUST_CHECK;
/** `sim` may be NULL. */
void serve_sim_free(struct serve_sim *sim);
/** A query arrives, not before the one before; all that is due by then happens first. The
 * id is copied; it may be empty. */
bool serve_sim_query(struct serve_sim *sim, double time, struct rec_str id,
                     struct rec_error *err) REC_MUST_CHECK;
/** A stage has another number of replicas, or another batch, from `time` on, which is not
 * before what has happened. New replicas work at once; of those that are too many busy
 * ones finish their batch. A batch that has begun keeps its size. */
bool serve_sim_change(struct serve_sim *sim, const struct serve_change *change,
                      struct rec_error *err) REC_MUST_CHECK;
/** When something happens next, seconds; INFINITY: nothing will. */
double serve_sim_next(const struct serve_sim *sim);
/** Lets everything happen up to and at `time`. */
bool serve_sim_advance(struct serve_sim *sim, double time,
                       struct rec_error *err) REC_MUST_CHECK;
/** When the first query came, and the last thing happened, seconds; NAN: nothing did. */
double serve_sim_begin(const struct serve_sim *sim);
double serve_sim_now(const struct serve_sim *sim);
/** What a stage did up to serve_sim_now(). */
struct serve_usage serve_sim_usage(const struct serve_sim *sim, uint32_t stage);
/** Things that happened: arrivals, and batches taken and done. */
uint64_t serve_sim_events(const struct serve_sim *sim);

/* ---- the tuner ----------------------------------------------------------- */

/**
 * SERVE_DAMPED, ours. At a constant rate the published rule orders replicas whenever a
 * window holds more than it held in the sample, and gives them back 15 s later. This one
 * asks which rate explains what arrives.
 *
 * Noise. Of a window of w seconds the envelope says E queries (resampled=, of a sequence
 * 20 times as long, or else queries) at the planned rate r0, queries/s. With spread =
 * 1.25 (E - r0 w), which leaves room for runs that are longer still, at most r w + spread
 * sqrt(r / r0) queries should arrive at the rate r: counts of traffic as irregular vary
 * as the root of their mean.
 *
 * Up. Replicas are for a rate, r0 at first. A step is a factor of SERVE_STEP. When more
 * arrive in a window than half a step above that rate explains, even if the sample showed
 * too low a rate (r0 may be as high as carried= of the planned record), the rate is
 * estimated with half of the spread. Replicas are then for the next step above it, and
 * each stage is run as the rung one step above that says, for the rate may rise while
 * replicas start. New replicas work `activation` seconds later. An estimate of the
 * queries that wait, with those that come until then, adds replicas that serve them
 * within 5 s; until then the stage takes its batch of most throughput.
 *
 * Down. `quiet` seconds after the last change, then every 5 s: the rate is the higher of
 * that of the last 10 s and that of the last 30 s with half of the spread on top. If it
 * is half a step below what replicas are for, and does not rise, each stage is run as the
 * rung one step above it says; below r0, where there are no rungs, with a = load / mu
 * replicas busy at r0, as a r / r0 + (k0 - a) sqrt(r / r0) replicas (square-root
 * staffing: Halfin and Whitt, Operations Research 29, 1981). The steps, times and factors
 * were chosen on the image driver, seeds 13 and 14, with a look at seed 11.
 *
 * SERVE_PUBLISHED:
 *
 * The tuner of InferLine changes the replicas of stages while queries are served. Of what
 * a stage m was planned for it knows its arrivals `load`, queries/s, its replicas k0, and
 * mu = serve_throughput() of one of them; so its share of the queries, s = load / rate,
 * and its utilisation, rho = load / (k0 mu). rate: of the planned record, or else the
 * highest load of all stages.
 *
 * Up. At every arrival, t: for each window of the envelope n = arrivals in (t - seconds,
 * t]. Of those with n > queries: r = the highest n / seconds. A stage needs
 *
 *     k = ceil(r s / (mu rho)) = ceil(k0 r / rate)
 *
 * replicas. Those it has not, nor has ordered, are ordered, and work `activation` later,
 * but not at t itself.
 *
 * Down. `quiet` after the first query, and after the last change (of ordered ones, since
 * they work), then every 5 s while nothing changes: r = the highest n / 5 of the six
 * windows of 5 s that end now, 5, 10, ..., 25 s ago. A stage needs
 *
 *     k = ceil(r s / (mu rho_max)), rho_max = max over stages of rho,
 *
 * replicas, at least 1, and as many as the envelope calls for now; the others go at once.
 * At an equal instant it comes before queries.
 *
 * Back. What has gone came of an r. When more than 5 r arrive in (t - 5, t], the rule for
 * going down is used on those, for up to k0 replicas: what is missing is ordered as
 * above. (The envelope alone would not call for replicas that were planned and have
 * gone.)
 *
 * It remembers the arrivals in the widest window, or in 30 s: 8 bytes each.
 *
 * Source: InferLine, section 5, but for: at least what the envelope calls for; Back.
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
    double fixed; /* with a tuner: US$ an hour of the stage in a plan that is made for the
                     highest rate; NAN: not known */
    struct serve_usage usage;
};

/** Calls may be NULL. */
struct serve_run_sink {
    struct serve_sink queries;
    /* at the end, of each stage with a model, in order of records */
    bool (*served)(void *context, const struct serve_served *served,
                   struct rec_error *err);
    /* the tuner changes replicas: before anything else happens at that time, but after
     * batches were done and taken */
    bool (*changed)(void *context, const struct serve_change *change,
                    struct rec_error *err);
};

struct serve_run;

/**
 * Queries served by a pipeline, which is borrowed, and filled by what the run takes, if
 * it is not sealed yet: a run may use that of the run before. free() of the pipeline
 * comes after that of the run.
 */
struct serve_run *serve_run_new(struct serve_pipeline *pipeline,
                                const struct serve_options *options,
                                const struct serve_run_sink *sink,
                                struct rec_error *err) REC_MUST_CHECK;
/** The run gets a tuner; before its first record. Config records with time= are
 * refused. */
void serve_run_tune(struct serve_run *run, const struct serve_tuning *tuning);
/** `run` may be NULL. */
void serve_run_free(struct serve_run *run);
/** Queries that came. */
uint64_t serve_run_queries(const struct serve_run *run);
/** As of its simulation; 0 if it has not begun. */
uint64_t serve_run_events(const struct serve_run *run);

/**
 * A run as a model; `self` is a struct serve_run. It takes the records of a pipeline,
 * which come before its queries, then queries and config records with time=; config and
 * planned records it leaves to whoever comes next, too.
 */
extern const struct sim_model serve_model;

/* ---- planning ------------------------------------------------------------ */

/*
 * A planner looks for the replicas, batches and hardware of all stages with which enough
 * queries of a sample meet a latency objective, by simulating the sample: no other is
 * true of bursts. Batches are those that were profiled, hardware is what has a profile
 * and a price. What was simulated once is remembered; what cannot meet the objective by
 * the throughput of a stage, or by the least time of a way through the pipeline, is not
 * simulated.
 */

enum serve_goal { SERVE_LEAST_COST, SERVE_MOST_THROUGHPUT };

struct serve_objective {
    enum serve_goal goal;
    double slo;        /* latency, seconds */
    double percentile; /* above 0, up to 100: of n queries n * percentile / 100 meet it */
    double budget;     /* of all replicas, US$ an hour; INFINITY: any */
    uint32_t replicas; /* of a stage, at most */
    struct serve_options options;                      /* no drop_after, no warmup */
    struct rec_limit limit;                            /* on simulations */
    void (*tell)(void *context, uint64_t simulations); /* progress; may be NULL */
    void *context;
};

struct serve_plan {
    struct serve_config *config; /* per stage; owned. NULL: nothing was found */
    double cost;                 /* US$ an hour */
    double throughput;           /* queries/s at which the first stage is at its end */
    double latency;              /* the percentile, seconds */
    uint64_t late;               /* queries that miss the objective */
    double bound; /* proved: least cost, or most throughput; NAN: not proved */
};

struct serve_planner;

/** `pipeline`, sealed, and the n arrival times, seconds, ascending, are borrowed. NULL:
 * *err; REC_DATA: a stage has no hardware with a price. */
struct serve_planner *serve_planner_new(const struct serve_pipeline *pipeline,
                                        const double *arrival, size_t n,
                                        const struct serve_objective *objective,
                                        struct rec_error *err) REC_MUST_CHECK;
/** `planner` may be NULL. */
void serve_planner_free(struct serve_planner *planner);

/**
 * The published planner (InferLine, section 4). Starts with batches of 1 on the fastest
 * hardware and adds replicas where there is least throughput until the objective is met;
 * then takes, as long as there is one, the action that leaves the least cost, of equal
 * ones the least latency: the next batch profiled, a replica less, the next cheaper
 * hardware with replicas and batch of that stage found anew. For throughput it then
 * spends the budget on the stage that has least: the next batch, a replica more, dearer
 * hardware. What it finds is not always the best. REC_NO: *err says which stage, or which
 * way through the pipeline, is why there is none.
 */
bool serve_plan_greedily(struct serve_planner *planner, struct serve_plan *plan,
                         struct rec_error *err) REC_MUST_CHECK;
/**
 * The best of all, by branch and bound, better than *plan (which may be {0}), or *plan
 * itself; its bound is then known. Stages whose queries never meet are searched apart:
 * each stage is simulated behind what was chosen for those before it, with the least time
 * that what comes behind it can take; what is late then is late whatever else is chosen.
 * REC_NO: there is none. REC_USAGE: it takes more simulations than the limit.
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
/**
 * As many arrivals as the n at `times`, drawn likewise with another seed, *seed; owned by
 * the caller. *again is NULL if it is not known how, or if what is known does not draw
 * `times` to the bit: these are others.
 */
bool serve_draw_again(const struct serve_arrivals *drawn, const double *times, size_t n,
                      double **again, uint32_t *seed,
                      struct rec_error *err) REC_MUST_CHECK;
void serve_arrivals_free(struct serve_arrivals *drawn);

/** From one rung to the next the rate is multiplied with this. */
#define SERVE_STEP 1.15

/** Queries that a plan is held against: n of them, at `arrival` / `speed`, seconds,
 * ascending; those from `from` on count. Borrowed. */
struct serve_trial {
    const double *arrival;
    size_t n, from; /* from < n < UINT32_MAX */
    double speed;   /* above 0 */
    uint32_t seed;  /* of the edges that they take */
};

/** What a plan attains: per cent of `queries` in time, and the ends of a confidence
 * interval of 95 per cent. */
struct serve_attained {
    size_t queries;
    uint64_t late, added; /* replicas that were added for it */
    double share, lower, upper;
    double carried; /* the rate that replicas carry, queries/s; 0: not known */
};

/** Of n queries, above 0, in the order in which they came: which are late. The interval
 * is Wilson's of as many independent queries as the means of 20 batches say that they are
 * worth. */
void serve_attain(const unsigned char *late, size_t n, struct serve_attained *attained);
/**
 * Adds replicas to a plan, each where it helps most for its price, until the lower end of
 * what it attains in a trial is no less than the objective's percentile, or no query of
 * the trial is late. The bound of the plan stays. REC_NO: the budget, or --max-replicas,
 * do not let it.
 */
bool serve_plan_secure(struct serve_planner *planner, const struct serve_trial *trial,
                       struct serve_plan *plan, struct serve_attained *attained,
                       struct rec_error *err) REC_MUST_CHECK;
/**
 * What each stage costs, US$ an hour, in a plan that is made for the sample coming
 * `trial->speed` times as fast: greedily, and held against the trial. Its hardware may be
 * other than that of the planner's plans. cost[s] is NAN if there is no such plan. It is
 * another planner, which may take as many simulations as the objective allows.
 */
bool serve_plan_fixed(const struct serve_planner *planner,
                      const struct serve_trial *trial, double *cost,
                      struct rec_error *err) REC_MUST_CHECK;
/**
 * How the pipeline is to be run, on the hardware of a plan, when queries come faster: for
 * n speeds, ascending, `rung` gets a config per stage. From one to the next batches
 * change where that helps, and replicas are added, as above; *n is less if that is not
 * enough for one.
 */
bool serve_plan_rungs(struct serve_planner *planner, const struct serve_trial *trial,
                      const struct serve_plan *plan, const double *speed, size_t *n,
                      struct serve_config *rung, struct rec_error *err) REC_MUST_CHECK;
void serve_plan_free(struct serve_plan *plan);
/** Simulations so far, of the whole pipeline or of a stage. */
uint64_t serve_planner_simulations(const struct serve_planner *planner);
/** What arrives on average, queries/s; NAN if all queries come at once. */
double serve_planner_rate(const struct serve_planner *planner);
/** What arrives at a stage. */
double serve_planner_load(const struct serve_planner *planner, uint32_t stage);
/** The least time that the longest way through the pipeline takes as planned, with
 * queries that are alone, seconds. */
double serve_plan_seconds(const struct serve_planner *planner,
                          const struct serve_plan *plan);

REC_END_DECLS

#endif
