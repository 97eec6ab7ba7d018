/*
 * rampipe/sim.h - simulation of jobs: one training step, layouts, replay.
 *
 * The model of sim_step(): a server has a lane or several, which run beside each other.
 * Each lane runs one op at a time: the ready op of highest priority, which preempts
 * others, unless these end within 1e-12 of the time; or strictly in an order that is
 * given, and then it waits for its next op, also if later ones are ready. Each dep leaves
 * at the end of its source, and a courier says when it arrives. An op is ready when the
 * deps of all its parents have arrived. The step ends when all ops and all deps are done,
 * sync deps included.
 *
 * A coll (struct graph_coll) is an exchange of a group of ops: it starts when all of them
 * have ended, and ends when the courier says so; the deps that leave it then arrive at
 * once. Colls of one lane run one at a time on each server of their groups, in the order
 * in which they become ready, at one instant in that of their records. The step ends when
 * all colls have ended, too.
 *
 * Memory: what an op holds (struct graph_hold) is held from its end to that of the op
 * that releases it, or of the step. What is released and what is held at one instant is
 * counted together: the peak is one of bytes that are held for some time.
 *
 * Where servers share no links, jobs do not contend once they are placed. So the cost of
 * a training step depends only on the graph, on which ops share a server, and on the
 * geometry: how the servers lie to each other. A layout (op -> slot) remembers its cost
 * for each geometry:
 *
 *     graph --- layout (op -> slot) --- geometry (how slots lie to each other) --- cost
 *
 * Where jobs share links, those that do are a company. It has a courier of its own, and
 * the steps of its members are simulated on one clock:
 *
 *     job --- layout on servers --+
 *                                 +-- company --- mean step, or every step, of each
 *     job --- layout on servers --+
 */
#ifndef RAMPIPE_SIM_H
#define RAMPIPE_SIM_H

#include "rampipe/event.h"
#include "rampipe/graph.h"
#include "rampipe/net.h"
#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- one training step --------------------------------------------------- */

struct sim_placed;

/** Told by a courier: a batch has arrived. */
typedef void sim_arrived(void *context, uint64_t batch);

/**
 * How what leaves an op arrives: one row a way. The deps that leave an op together and
 * have the same key are one batch, which arrives as a whole; the key 0 means that a dep
 * is no flow: it arrives at once, and the courier does not hear of it. `self` is the
 * courier's own data. Several steps may send by one courier, so a batch is known by a
 * token: the number of the step in its upper 32 bits, that of the batch in the lower.
 *
 *     key      the key of a dep
 *     send     a batch leaves at `time`, seconds, which never decreases; `dep` is one of
 *              its deps, `exchange` that of its deps, GRAPH_NONE if it is not known; or
 *              `dep` is GRAPH_NONE, and a coll starts, which is that exchange
 *     next     the time of the next event, seconds, at which batches may arrive;
 *              INFINITY: none is to come
 *     advance  lets the events at `time` happen, which is that of the next event, and
 *              calls arrived() for each batch that arrives; arrived() sends nothing
 */
struct sim_courier {
    const char *name;
    double (*key)(void *self, const struct sim_placed *placed, uint32_t dep);
    bool (*send)(void *self, uint64_t batch, uint32_t dep, uint32_t exchange, double time,
                 struct rec_error *err);
    double (*next)(void *self);
    bool (*advance)(void *self, double time, sim_arrived *arrived, void *context,
                    struct rec_error *err);
};

/** The key of a courier for which the deps of an exchange that leave an op are one batch.
 * Deps of no exchange (GRAPH_NONE) are no flows. It needs the exchanges of the deps. */
double sim_key_by_exchange(void *self, const struct sim_placed *placed, uint32_t dep);

/** What steps of a layout have in common if the keys of its courier are the same in all
 * of them: batches, their targets, ranks. */
struct sim_plan;
/** `plan` may be NULL. */
void sim_plan_free(struct sim_plan *plan);
/** About the bytes that one needs. */
size_t sim_plan_bytes(const struct graph *graph);

/** A placed graph. All arrays are borrowed. */
struct sim_placed {
    const struct graph *graph;
    uint32_t nservers;
    const uint32_t *server;    /* per op: 0 to nservers-1 */
    const uint32_t *placed;    /* per op: its number in the order of placing; among ops of
                                  equal priority and length, the higher one runs first */
    const double *priority;    /* per op, higher first, NAN: none; NULL: shortest first */
    const double *dep_seconds; /* per dep: time on the way if nothing else is sent; 0: no
                                  flow. Only a courier may do without (NULL) */
    const uint32_t *exchange;  /* per dep: number of the exchange (a collective or a
                                  message) that it belongs to; NULL: not known */
    /* If the graph has colls: */
    const double *coll_seconds;    /* per coll, as dep_seconds */
    const uint32_t *coll_exchange; /* per coll: its exchange; GRAPH_NONE: it takes no time
                                      and is not sent. Needed with a courier */
    /* What carries the deps. NULL: each takes its own time, whatever else is sent. */
    const struct sim_courier *courier;
    void *carrier; /* the courier's data, borrowed */
    /* Where a plan is kept, for steps with this courier that differ in nothing above but
       the member: NULL at first, then one that the caller frees after the steps. NULL:
       each step makes its own. */
    struct sim_plan **plan;
    uint32_t member; /* the number of this step among those that share the courier */
    /* Lanes. Without them (NULL) each server has one, which runs by priority. */
    const uint32_t *lane; /* per op: 0 to nlanes-1; all ops of a lane are on one server;
                             NULL: lane i is server i */
    uint32_t nlanes;
    const uint32_t *turn; /* per op: its place in the order of its lane, from 0;
                             GRAPH_NONE: the lane runs by priority; NULL: all do */
    /* Memory, if ops hold bytes: */
    const double *memory; /* per server: bytes that it needs throughout; NULL: 0 */
    double *peak;         /* filled, per server: most bytes at an instant; or NULL */
    /* The speed of a server, as a part of a healthy one's, and the seconds by which the
     * first op that it runs starts later. NULL: all servers are healthy. */
    void (*pace)(const void *names, uint32_t server, double *speed, double *delay);
    bool may_stand; /* a courier may be unable to bring something, as a link has failed */
    /* For messages. NULL: a lane has no name, a server its number. */
    const char *const *lane_name; /* per lane */
    void (*name_server)(const void *names, uint32_t server, char name[NET_NAME_MAX]);
    const void *names; /* data of the functions */
};

/** Called for each time that an op has run without a break, and for each flow, with its
 * times (seconds); for timelines. Without a courier, flows are told of when they leave,
 * with one when they arrive; for each coll that takes time, when it ends; and for each
 * instant at which what the ops on a server hold
 * has changed, with the bytes that they hold then. Any function may be NULL. */
struct sim_observer {
    void (*run)(void *context, uint32_t op, double start, double end);
    void (*send)(void *context, uint32_t dep, double start, double end);
    void (*coll)(void *context, uint32_t coll, double start, double end);
    void (*hold)(void *context, uint32_t server, double time, double bytes);
    void *context;
};

struct sim_step {
    double seconds;    /* length of the step */
    double comm;       /* time with at least one flow or coll on its way, seconds */
    double comp;       /* time with at least one op running, seconds */
    double busy;       /* time that servers run ops on any lane, server-seconds */
    double sequential; /* sum of the ops' compute on healthy servers, seconds */
    uint32_t used;     /* servers with at least one op */
    uint64_t events;   /* ops, deps and colls completed */
    /* If ops hold bytes: */
    double peak_memory;   /* most bytes on a server, with what it needs throughout */
    uint32_t peak_server; /* that server */
    uint32_t peak_op;     /* the op at whose end that was; GRAPH_NONE: at no op's */
};

/**
 * Simulates one step from time 0. `observer` may be NULL. False: out of memory; times
 * that are not finite; a deadlock, whose cycle of ops or of lanes *err names; or an op
 * that ends before the one whose bytes it releases. REC_NO: a courier that may stand does
 * not bring what has left.
 */
bool sim_step(const struct sim_placed *placed, const struct sim_observer *observer,
              struct sim_step *step, struct rec_error *err) REC_MUST_CHECK;

/**
 * A step that is simulated piece by piece, for models that share a clock. sim_step() is
 * all of it at once, from time 0 on. A courier may carry for several of these steps, so
 * here its owner asks for its next event, lets it happen, and tells the steps what
 * arrives (sim_stepping_arrive()).
 */
struct sim_stepping;

/** Starts a step at `time` (seconds), and lets everything happen that takes no time.
 * *placed and *observer are copied; what they point to is borrowed. NULL: *err. */
struct sim_stepping *sim_stepping_new(const struct sim_placed *placed,
                                      const struct sim_observer *observer, double time,
                                      struct rec_error *err) REC_MUST_CHECK;
/** The time of the next event, seconds; INFINITY: nothing is left to happen but what a
 * courier brings. */
double sim_stepping_next(struct sim_stepping *stepping);
/** A batch of a step with a courier arrives at `time`. No event of the step may be before
 * it. What follows from it happens in sim_stepping_advance(). */
void sim_stepping_arrive(struct sim_stepping *stepping, uint64_t batch, double time);
/** Lets all events up to and at `time` happen. */
bool sim_stepping_advance(struct sim_stepping *stepping, double time,
                          struct rec_error *err) REC_MUST_CHECK;
/** Fills *step, to be called once no event is left. False: a deadlock, as of
 * sim_step(). */
bool sim_stepping_end(struct sim_stepping *stepping, struct sim_step *step,
                      struct rec_error *err) REC_MUST_CHECK;
/** `stepping` may be NULL. */
void sim_stepping_free(struct sim_stepping *stepping);

/** A step on a clock; `self` is a struct sim_stepping. */
extern const struct event_model sim_step_model;

/* ---- layouts ------------------------------------------------------------- */

/** What one training step of a placed graph costs. */
struct sim_cost {
    struct sim_step step;
    double estimate; /* length of the step if each exchange took its time alone, as an
                        allocator reckons, seconds */
    struct net_traffic traffic;
};

/** A layout that can be simulated, and what that cost so far. */
struct sim_layout {
    struct graph_layout where; /* of all ops */
    double memory;             /* of the slot that needs most throughout, bytes */
    uint32_t full_slot;        /* that slot */
    double memory_sum;         /* of all slots, bytes */
    /* With all that ops hold at once: what a step needs at most, on which slot. What it
       does need is its peak_memory. Without holds it is `memory`. */
    double memory_bound;
    uint32_t bound_slot;
    double *slot_memory;         /* per slot, bytes; NULL: the ops hold nothing */
    struct graph_lanes lanes;    /* of the slots */
    double op_memory, dep_bytes; /* sums over the ops and the deps of the graph, bytes */
    double flops;                /* of a replay: graph_model_flops(); else 0 */
    struct graph_exchanges exchanges; /* found when a cost is first asked for */
    struct sim_plan *plan;            /* made by the first step where jobs share links */
    struct rec_map memo;              /* geometry -> index of cost */
    struct rec_map by_times;          /* times of the exchanges -> index of cost */
    struct sim_cost *cost;
    size_t ncosts, cost_room, cost_bytes;
    struct rec_arena arena;   /* of the geometries and times */
    uint32_t tag;             /* a number of the owner's, by which it knows it again */
    struct sim_layouts *pool; /* NULL: it is in none */
    uint64_t serial;          /* counts the layouts of the pool; no two have the same */
    struct sim_layout *before,
        *after;     /* neighbours in the pool's list of idle or held ones */
    uint64_t holds; /* jobs that run on it */
};

/**
 * A pool of layouts, which bounds their memory. When all of them need more than `limit`
 * bytes, those that no job holds go, first the one that has been idle longest. When the
 * remembered costs need more than SIM_COSTS_MAX bytes, all are forgotten, to be simulated
 * anew. Bytes are counted from the number of ops, so that all machines forget the same.
 * Starts as {.limit = ...}.
 */
struct sim_layouts {
    struct sim_layout_list {
        struct sim_layout *first, *last;
    } idle, held;
    size_t limit, bytes, cost_bytes, exchange_bytes;
    uint64_t serials; /* layouts that have been added */
    /* How jobs share links, and its data, borrowed; set before the first layout comes.
     * NULL: no job slows another, and each exchange takes its time alone. */
    const struct sim_sharing *sharing;
    void *shared;
    /* The links that have changed by now, borrowed; NULL: none ever does. */
    struct sim_faults *faults;
    /* Where what the links carry is added up, borrowed; NULL: nobody asks. */
    struct sim_loads *loads;
    bool explains; /* exchanges that take equally long stay apart: each is explained */
    /* First steps under way that are watched; counts intervals for these. */
    uint32_t explained, intervals;
};

/** Takes over *where, also when it fails, and sums the memory of each slot
 * (graph_layout_memory()). NULL: *err, REC_DATA as of graph_layout_check(). */
struct sim_layout *sim_layout_new(struct graph_layout *where,
                                  struct rec_error *err) REC_MUST_CHECK;
/** `layout` may be NULL. It leaves its pool, if it is in one. */
void sim_layout_free(struct sim_layout *layout);
/** The most bytes that the layout needs on a server while a step of that cost runs; *slot
 * is its slot. */
double sim_layout_peak(const struct sim_layout *layout, const struct sim_cost *cost,
                       uint32_t *slot);
/** The cost with slot i on server servers[i] if nobody else sends; simulated once per
 * geometry, and per state of the links that it may use. In a pool with a sharing the
 * job's own exchanges share the links. If the step never ends, as a link that it needs
 * has failed, its `seconds` and `comm` are INFINITY, and all else is as if no link
 * had. */
bool sim_layout_cost(struct sim_layout *layout, const struct net *net,
                     const uint32_t *servers, struct sim_cost *cost,
                     struct rec_error *err) REC_MUST_CHECK;
/** The same, simulated anew for an observer. */
bool sim_layout_observe(struct sim_layout *layout, const struct net *net,
                        const uint32_t *servers, const struct sim_observer *observer,
                        struct sim_cost *cost, struct rec_error *err) REC_MUST_CHECK;

/** The limits of the pools of sim and of ramp-alloc, bytes. The allocator's is less, so
 * that it never names a layout that the simulator has forgotten. */
#define SIM_LAYOUTS_MAX ((size_t)1 << 28)
#define SIM_LAYOUTS_MAX_ALLOC ((size_t)1 << 26)
/** Bytes of the costs that all layouts of a pool remember. */
#define SIM_COSTS_MAX ((size_t)1 << 26)
/** Bytes of the exchanges that all layouts of a pool remember. */
#define SIM_EXCHANGES_MAX ((size_t)1 << 26)

/** Puts a layout that no job holds into a pool. The pool does not own it. */
void sim_layouts_add(struct sim_layouts *pool, struct sim_layout *layout);
/** A job starts on a layout of a pool (hold), or ends (release). */
void sim_layout_hold(struct sim_layout *layout);
void sim_layout_release(struct sim_layout *layout);
/** The layout that must go to make room for `bytes` more; NULL: none must go, or none
 * can. */
struct sim_layout *sim_layouts_excess(const struct sim_layouts *pool, size_t bytes);
/** The bytes that a layout of a graph counts for, if its deps have no channels; its costs
 * are counted separately. */
size_t sim_layout_bytes(const struct graph *graph);

/* ---- companies: jobs that share links ------------------------------------ */

/** With which servers and links a step is simulated. */
enum sim_health {
    SIM_AS_IT_IS,
    SIM_LINKS_WELL, /* as if no link had a fault */
    SIM_ALL_WELL    /* and no server were a straggler */
};

/** A job that runs. All pointers are borrowed, until it ends. */
struct sim_member {
    uint32_t number; /* of the job among those that run: the upper half of the tokens of
                        its batches */
    struct sim_layout *layout;
    const struct net *net;
    const uint32_t *servers; /* of the slots */
    enum sim_health health;  /* what its steps are simulated with */
    /* What carriers add to what links carry that take it as their first member; NULL:
       nobody asks. */
    struct sim_loads *loads;
    /* What is asked of its first step; NULL: nothing. */
    struct sim_first *first;
};

/** What links have carried (lib/sim/loads.h), and what is asked of the first step of a
 * job (lib/sim/first.h). */
struct sim_loads;
struct sim_first;

/** sim_layout_cost() of a member, with `health` as it says: what stragglers and faults
 * cost it is the difference. */
bool sim_member_cost(const struct sim_member *member, struct sim_cost *cost,
                     struct rec_error *err) REC_MUST_CHECK;
/** The same, simulated anew; `observer` may be NULL. */
bool sim_member_observe(const struct sim_member *member,
                        const struct sim_observer *observer, struct sim_cost *cost,
                        struct rec_error *err) REC_MUST_CHECK;

/**
 * How jobs share the links of a network: one row a way. `self` is the row's own data, a
 * carrier the data of its courier. Jobs that share links form a company, and so do jobs
 * that share some with a third one. What a company sends goes through one carrier; for
 * the courier, layout->exchanges of a member has what the numbers of exchanges stand for,
 * and `servers` has where its slots lie. No dep_seconds are given.
 *
 *     courier  carries what the members of a company send
 *     shares   true if two jobs may slow each other. It must be true if both use a link
 *              that can saturate; that depends on nothing but the two members
 *     open     makes a carrier without members. NULL: *err
 *     take     `carrier` carries for a member from `time` on. What the member has on its
 *              way in the carrier `from` moves over with what is left of it; `from` NULL:
 *              the member has nothing on its way. No event of `from` is before `time`
 *     close    frees a carrier; what is on its way in it still is lost
 *     uses     true if a member may send over this link of its cluster; NULL: links have
 *              no faults
 *     still    the link of capacity 0 for which something of this member waits that is on
 *              its way in a carrier; UINT32_MAX: there is none
 *     count    adds what the links have carried by `time` to the `loads` of the first
 *              member; no event is before it. NULL: it is not known
 *
 * A carrier has the links as they are (pool->faults) when it takes its first member.
 *
 * Two lists of servers with equal net_geometry() must share alike: costs are remembered.
 */
struct sim_sharing {
    const char *name;
    const struct sim_courier *courier;
    bool (*shares)(void *self, const struct sim_member *a, const struct sim_member *b);
    void *(*open)(void *self, struct rec_error *err);
    bool (*take)(void *carrier, const struct sim_member *member, void *from, double time,
                 struct rec_error *err);
    void (*close)(void *carrier);
    bool (*uses)(void *self, const struct sim_member *member, uint32_t link);
    uint32_t (*still)(void *carrier, uint32_t member);
    bool (*count)(void *carrier, double time, struct rec_error *err);
};

/** Exchanges share the links of the cluster max-min fairly (rampipe/flow.h). An exchange
 * is sent as its deps say: for each dep, bytes from server to server over net_route(),
 * after the latency of the route. Colls, and sync deps if net_algorithm() is not direct,
 * are sent in the rounds of net_rounds_make() instead, from when the last op of the
 * exchange has ended; all of it arrives when its last round has ended. If a table says
 * how long a collective takes alone, what leaves does not arrive before. Jobs share links
 * if routes among their servers do. A cluster without links is refused (REC_DATA).
 * `self` is a struct sim_flows. */
extern const struct sim_sharing sim_flows_sharing;
/** Which links jobs use, as far as it is known. */
struct sim_flows;
/** NULL: *err. */
struct sim_flows *sim_flows_new(struct rec_error *err) REC_MUST_CHECK;
/** `flows` may be NULL. */
void sim_flows_free(struct sim_flows *flows);

/** What companies cost, as far as it is known. Starts as {0}; sim_company_forget(). */
struct sim_company {
    struct rec_map memo; /* members, geometry, phases -> index of the first in step[] */
    struct rec_arena arena; /* of these keys */
    struct sim_step *step;  /* per member of each company */
    size_t nsteps, room, bytes;
    struct sim_loads *busy; /* borrowed; if it is given, companies are simulated anew, and
                               it gets the part of the time that each link is busy */
};

enum { SIM_COMPANY_WINDOW = 10 };
/** A mean step has settled if it differs from the last one by no more than this part. */
#define SIM_COMPANY_SETTLED 1e-3
/** The most steps of the slowest member that are simulated for a mean. */
#define SIM_COMPANY_STEPS_MAX 641
/** The most events that are simulated for a mean, by an estimate. */
#define SIM_COMPANY_EVENTS_MAX 1e10
/** If no member of a company has more than this number of steps left, every step of the
 * company is simulated. */
#define SIM_COMPANY_EXACT 100

/**
 * The mean training step of each of n members that run together: step[n]. All layouts are
 * in one pool that has a sharing. part[i], 0 to 1, is how much of a step member i has
 * behind it at the beginning, as if it had run alone so far; NULL: all begin at once. The
 * phases matter: of two equal jobs, one may always send while the other computes.
 *
 * All steps are simulated on one clock, until the slowest member has completed a window
 * of at least SIM_COMPANY_WINDOW steps, and the mean step of no member differs from that
 * of the window before by more than SIM_COMPANY_SETTLED. If one does, the next window is
 * twice as long. The mean is that of the last window. Some jobs never settle: after
 * SIM_COMPANY_STEPS_MAX steps the mean is that of all windows. Equal companies are
 * simulated once. A company of one costs what sim_layout_cost() says, and a member whose
 * step takes no time slows nobody.
 *
 * False: *err; REC_USAGE if steps are so unlike that more than SIM_COMPANY_EVENTS_MAX
 * events are due.
 */
bool sim_company_cost(struct sim_company *company, const struct sim_member *member,
                      const double *part, uint32_t n, struct sim_step *step,
                      struct rec_error *err) REC_MUST_CHECK;
/** Forgets all costs, and leaves {0}. */
void sim_company_forget(struct sim_company *company);

/* ---- replay (sim) -------------------------------------------------------- */

/** A job that has started; valid during the call. */
struct sim_done {
    struct graph_job job;
    const struct graph *graph; /* what it runs */
    struct sim_layout *layout;
    const struct sim_cost *cost; /* of a step: the mean of those that are over if the job
                                    was in a company, else (and when it starts) alone */
    double start, finish; /* seconds; finish INFINITY: not known, because the company is
                             simulated step by step */
    double waited;        /* for its servers, after its alloc record, seconds */
    double
        alone; /* a step if no other job sent anything and no link had a fault, seconds;
                     NAN: jobs share no links */
    double healthy; /* the same if no server were a straggler either; NAN: none is */
};

struct sim_replay;

/** What decides about the time of an exchange. */
enum sim_bound {
    SIM_BY_LINK,    /* a link, on which its flows have no higher rate */
    SIM_BY_LATENCY, /* the latency of its routes */
    SIM_BY_TABLE,   /* a time that was measured */
    SIM_BY_FORM     /* the formula of a cluster without links */
};

/** Why an exchange of the first step of a job takes as long as it does. */
struct sim_reason {
    uint32_t exchange; /* of the layout */
    uint32_t coll;     /* of the graph: that is sent; GRAPH_NONE: deps are, */
    uint32_t dep;      /* of which this is the first */
    double start;      /* from the start of the job to when the first of it leaves, s */
    double seconds;    /* from then on until all of it has arrived */
    double alone;      /* the same if nothing else is sent, seconds */
    enum sim_bound by;
    double held;   /* by that, seconds: where there are several links, by the one that
                      held one of its flows back longest */
    uint32_t link; /* if it is a link: which, */
    double bytes;  /* what it sent over it, */
    double own, job, others; /* and how many other flows were on it while it was held
                                back there, on average: of the same exchange, of others
                                of the job, of other jobs */
};

/** Something that happened in the first step of a job, where jobs share links. */
struct sim_moment {
    enum sim_happening {
        SIM_RAN,       /* an op ran without a break */
        SIM_SENT,      /* a dep was on its way */
        SIM_EXCHANGED, /* a coll was */
        SIM_CARRIED    /* a link carried what the job sent, at one rate */
    } what;
    uint32_t which;    /* of the graph; of the links of the cluster */
    double start, end; /* seconds */
    double rate;       /* of a link: bytes/s; the bytes of the step are the sum of
                          rate * (end - start) */
};

/** What a link has carried from time 0 on. */
struct sim_load {
    uint32_t link;
    double bytes, busy; /* bytes; seconds in which something moved over it */
    double seconds;     /* until all jobs had ended, or the simulated time was over */
    double capacity;    /* the mean over that time, bytes/s */
};

/** Callbacks of a replay; any may be NULL. */
struct sim_replay_sink {
    bool (*done)(void *context, const struct sim_done *done, struct rec_error *err);
    /* A job is not complete at the end of the simulated time. If it still waits, its
     * layout is NULL, and its graph is the one that was chosen, or the first
     * alternative. */
    bool (*unfinished)(void *context, const struct sim_done *done, double time,
                       struct rec_error *err);
    /* A job starts, on these servers. */
    bool (*started)(void *context, const struct sim_done *done, const struct net *net,
                    const uint32_t *servers, struct rec_error *err);
    /* At the end, for each link that has carried something, where jobs share links.
     * Bytes are exact; of the step of an unfinished job those of the part that is over
     * count, by time. The time of jobs whose steps take a mean is that of the mean. */
    bool (*load)(void *context, const struct net *net, const struct sim_load *load,
                 struct rec_error *err);
    /* Before `done` or `unfinished` of a job whose first step is over, for each exchange
     * of that step, in order of their starts. */
    bool (*explain)(void *context, const struct sim_done *done, const struct net *net,
                    const struct sim_reason *reason, struct rec_error *err);
    /* The same, where jobs share links, for all that happened in that step. It is told
     * before `explain`. What links carried is told only if there is `load`. */
    bool (*happened)(void *context, const struct sim_done *done, const struct net *net,
                     const uint32_t *servers, const struct sim_moment *moment,
                     struct rec_error *err);
    void *context;
};

/** Makes a replay. `until` is the end of the simulated time, seconds; INFINITY: it ends
 * when all jobs are complete. NULL: *err. */
struct sim_replay *sim_replay_new(const struct sim_replay_sink *sink, double until,
                                  struct rec_error *err) REC_MUST_CHECK;
void sim_replay_free(struct sim_replay *replay);
/** Sets the limit of the pool of layouts, instead of SIM_LAYOUTS_MAX. An alloc record may
 * not name a layout that was forgotten, unless its records came again. */
void sim_replay_keep(struct sim_replay *replay, size_t bytes);
/**
 * Lets jobs share links; to be called before the first record. `sharing` and `self` are
 * borrowed. Running jobs that share links, two by two, are a company; whenever a job
 * starts or ends, the companies that it touches are formed anew, after all ends and
 * starts of that instant, and the ends of their members are reckoned anew. A company runs
 * in one of two ways:
 *
 *     exact  if none of its members has more than `exact` steps left (SIM_COMPANY_EXACT;
 *            INFINITY: always): all steps are simulated on one clock. A step that has
 *            begun when the company changes goes on, with what it has on its way.
 *     mean   else: all steps of a member take the mean of sim_company_cost(). When the
 *            company changes, a member is so much of a step further as has passed of it,
 *            and begins in the new company as if it had run that much alone.
 *
 * A job that shares no link runs as without a sharing, all steps alike: also one that is
 * left alone, from the end of its step on. So with `exact` INFINITY nothing is estimated.
 *
 * When links change (net_faults()), the companies of the jobs that may use them are
 * formed anew, too; the step of a job that runs alone goes on over the links as they are
 * now. A job that needs a link that has failed stands still until it recovers; so it is
 * no member of a company whose steps take the mean. If the link never recovers, the job
 * is unfinished at `until`; without such a time the replay ends with REC_DATA. Faults
 * come before the jobs that start at the same instant. Without a sharing they are
 * refused.
 *
 * How far `mean` is off: the time from start to finish of jobs that were slowed, in 400
 * random plans of up to 7 jobs on two buses, against `exact` (test_company.c): with up to
 * 300 steps a job, the median is 0.07 %, 9 of 10 are within 1 %, the worst is 15 %; with
 * up to 1000 steps 0.03 %, 0.5 % and 7 %. The worst are jobs whose steps take equally
 * long: which of them computes while the other sends is decided at the last change.
 *
 * An allocator upstream may have reckoned with times alone, and a job that is slowed
 * holds its servers longer. A job waits for them, behind those that were given them
 * before, and starts when all are free (`waited`). The rule "one job at a time on a
 * server" is broken only by an alloc record that comes before the server would be free if
 * the job on it ran from its own alloc record on, and each of its exchanges took its time
 * alone: no plan may say that.
 */
void sim_replay_share(struct sim_replay *replay, const struct sim_sharing *sharing,
                      void *self, double exact);
/** Collectives take the times of a table (net_measure()), which is borrowed; to be called
 * before the first record. A cluster without system= is refused. */
void sim_replay_measure(struct sim_replay *replay, const struct collective_table *table);
/** Graphs must pass graph_check_times(), whose message gives this advice; borrowed. */
void sim_replay_advise(struct sim_replay *replay, const char *advice);

/**
 * A replay as a model; `self` is a struct sim_replay. It takes the records of the plan
 * (graphs, layouts, jobs, allocs), in order of time, and block records after the end of
 * the simulated time. It reads cluster and other block records, too, but leaves them in
 * the stream. Before a record is acted on, the sink hears of all jobs that end by its
 * time. The rules of a plan are checked, and *err names the one that the stream breaks.
 */
extern const struct event_model sim_replay_model;

REC_END_DECLS

#endif
