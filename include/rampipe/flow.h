/*
 * rampipe/flow.h - flows that share links max-min fairly: the fluid model of a network.
 *
 *     links    directed, each of a capacity in bytes/s
 *     flow     bytes over a list of links; it has the same rate on all of them
 *     rates    all flows are raised together; when a link is full, its flows stay at the
 *              level that they have reached, and the others are raised further
 *
 * So each flow has a bottleneck: a full link on which no flow has a higher rate. Rates
 * change only when a flow starts or ends, or a capacity changes; between these instants
 * everything is linear. At one instant all ends come first, then all starts, then rates
 * are computed once. There is no latency here: a caller starts a flow later. (D.
 * Bertsekas and R. Gallager, Data Networks, 2nd edition, section 6.5.)
 *
 * Sharing is not monotone: a link that becomes wider may make the last flow end later.
 * Flow a has 9 bytes over links x and z, b 6 over x, c 12 over x and y; x carries 3
 * bytes/s, y 2, z 1. b ends at 6, a and c at 9. If z carries 2, a ends at 8, because
 * after 6 it takes more of x; so c gets less until then, and ends at 9.5.
 *
 * And it makes differences grow. A flow of B bytes has a link of capacity C for itself
 * until s, and shares it with n longer ones from then on: it ends at (n + 1) B / C - n s.
 * If the others start d later, it ends n d earlier. In a chain of such events the last
 * bit of a number grows to a difference that can be seen; no rounding is to blame, and no
 * arithmetic helps but one with more digits than the chain makes up for.
 */
#ifndef RAMPIPE_FLOW_H
#define RAMPIPE_FLOW_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/** No link, no flow. */
#define FLOW_NONE UINT32_MAX

/* ---- links and the flows on them ------------------------------------------ */

/** Links with all flows that are on them, at an instant that only moves forward. */
struct flow_links;

/**
 * Makes n links. capacity[n]: bytes/s, finite and >= 0. 0 is a link that has failed: its
 * flows stand still. Memory: O(links + active flows + sum of their routes). NULL: *err;
 * REC_DATA: a capacity is not allowed.
 */
struct flow_links *flow_links_new(uint32_t n, const double *capacity,
                                  struct rec_error *err) REC_MUST_CHECK;
/** `links` may be NULL. */
void flow_links_free(struct flow_links *links);

/** What flows. All arrays are borrowed during the call. */
struct flow_spec {
    uint64_t id;          /* the caller's name of it; need not be unique */
    double bytes;         /* of each flow; 0: it ends at once */
    double weight;        /* number of equal flows that this one stands for; > 0 */
    const uint32_t *link; /* the route, in any order; a link that a flow crosses twice is
                             there twice, and counts twice */
    uint32_t n;           /* links of the route; 0: it ends at once */
    /* For flows that are alike but whose routes differ: how many of them cross each link
       of the list, > 0. NULL: `weight` cross each. */
    const double *crossing;
};

/**
 * Starts a flow at `time`, seconds, which is not before any time of a call before, nor
 * after flow_next(). *flow is the number by which other functions know it; it is valid
 * until the flow has ended, and given to another flow then. False: *err, and nothing has
 * changed. REC_DATA: bytes, weight or a crossing is negative, infinite or not a number,
 * or there is no such link. REC_BUG: the time is not allowed.
 */
bool flow_start(struct flow_links *links, double time, const struct flow_spec *spec,
                uint32_t *flow, struct rec_error *err) REC_MUST_CHECK;

/** Takes a flow off its links before it has ended. *left, which may be NULL, is what it
 * has not sent, bytes. Errors as of flow_start(). */
bool flow_stop(struct flow_links *links, double time, uint32_t flow, double *left,
               struct rec_error *err) REC_MUST_CHECK;

/** From `time` on a link has this capacity: it degrades, fails (0) or recovers. Errors as
 * of flow_start() and flow_links_new(). */
bool flow_capacity(struct flow_links *links, double time, uint32_t link, double capacity,
                   struct rec_error *err) REC_MUST_CHECK;

/** The time of the next end, seconds; INFINITY: no flow ends unless something changes.
 * flow_still() says which flows stand still then. */
double flow_next(struct flow_links *links);

/** Told that a flow has ended. It calls no function with these links. */
typedef void flow_ended(void *context, uint64_t id, double time);

/**
 * Lets all ends up to and at `time` happen (INFINITY: all that come), and calls ended()
 * for each, in the order of the ends; flows that end at one instant come in the order of
 * their starts. A flow ends when less than 1e-12 of its bytes is left, so flows that
 * differ by rounding end together. False: *err; REC_BUG: the time is before that of a
 * call before, or rates do not settle.
 */
bool flow_advance(struct flow_links *links, double time, flow_ended *ended, void *context,
                  struct rec_error *err) REC_MUST_CHECK;

/* ---- what is known of a flow and of a link ---------------------------------- */

/** The rate of each of the flows that a flow stands for, bytes/s; INFINITY: it ends at
 * once. */
double flow_rate(struct flow_links *links, uint32_t flow);
/** The link that holds a flow back: of the least level, the first one of its route.
 * FLOW_NONE: it ends at once. */
uint32_t flow_bottleneck(struct flow_links *links, uint32_t flow);
/** The first flow from number `from` on that stands still, as a link of its route has
 * capacity 0: flow_bottleneck(). FLOW_NONE: there is none. */
uint32_t flow_still(struct flow_links *links, uint32_t from);
/** What a flow has not sent by the latest time of a call, bytes. */
double flow_left(const struct flow_links *links, uint32_t flow);
/** The caller's name of a flow. */
uint64_t flow_id(const struct flow_links *links, uint32_t flow);

/** What a link has carried until the latest time of a call. */
struct flow_load {
    double capacity; /* bytes/s */
    double rate;     /* bytes/s */
    double flows;    /* crossings of it by flows that are under way */
    double bytes;    /* so far */
    double busy;     /* seconds in which a flow moved; one that stands still does not */
    double level; /* bytes/s that it leaves to a flow at most; INFINITY: it is not full */
};
void flow_load(struct flow_links *links, uint32_t link, struct flow_load *load);
/** Sets *bytes and *busy as above, and counts both from 0 again. */
void flow_load_take(struct flow_links *links, uint32_t link, double *bytes, double *busy);

/* ---- classes: flows that are alike ------------------------------------------- */

/**
 * A flow of many that are enumerated, or a fan of flows, which differ only in one link:
 * as those from all hosts below a switch to one host differ in the first one. Fans of one
 * set have the same links to choose from, but each may skip some, as the host itself. A
 * fan costs as much as the colours that its links have, mostly one or two.
 */
struct flow_route {
    const uint32_t *link; /* in any order; valid until the next call */
    uint32_t n;
    /* A flow for each link of fan[nfan] but fan[skip..skip + nskip), over that link and
       those of link[n]; nfan = 0: it is one flow, over those of link[n]. */
    const uint32_t *fan; /* valid until the next rewind */
    uint32_t nfan, skip, nskip;
    uint32_t set;    /* of a fan: its number, from 0 on; a set has one fan[nfan] */
    uint32_t group;  /* flows that start together, as those of one exchange: flows of
                        different groups are of different classes */
    uint32_t weight; /* number of flows on each such route; at least 1 */
    double bytes;    /* of each */
    double delay;    /* seconds from the start of its group to its own: its latency */
};

/** Enumerates flows, without storing them. next() gives the next one; false: there is
 * none left. rewind() begins anew: then next() gives the same flows, in any order. */
struct flow_source {
    void (*rewind)(void *self);
    bool (*next)(void *self, struct flow_route *route);
    void *self;
};

/** Flows that have the same rate at every instant, whenever groups start. */
struct flow_class {
    double flows; /* number of flows */
    double bytes; /* of each */
    double delay; /* seconds */
    uint32_t group;
    /* Their links as colours, each once, and how many of the flows cross one link of the
       colour: a struct flow_spec has them so. */
    const uint32_t *link;
    const double *crossing;
    uint32_t n;
};

/** What flow_classes_find() found. */
struct flow_classes {
    struct flow_class *of;
    uint32_t n;
    /* Links of one colour are crossed by the same number of flows of each class. One link
       stands for all: */
    uint32_t ncolours;
    double *capacity; /* per colour: of each link, bytes/s */
    double *links;    /* per colour: number of links that have it */
    uint32_t *colour; /* per link */
    uint32_t passes;  /* enumerations that were needed */
    double flows;     /* flows of all classes */
    struct flow_search *search;
};

/**
 * Finds the classes of the flows of a source, by colour refinement: links get the
 * colour of their capacity and label, flows that of the multiset of their links'
 * colours, links that of the multiset of their flows' colours, and so on until nothing
 * new is told apart. Then a network with one link for each colour has the rates of the
 * whole one. label[n] tells links apart whose capacity will change; NULL: no link's
 * will. `most` bounds the classes: flows without symmetry have as many classes as
 * flows.
 *
 * Memory: O(links + classes and their routes + links of the sets of fans). Time: passes *
 * flows and fans * links of a route.
 * Colours are hashes of 64 bits: the chance that any two of n that differ are taken for
 * the same is n^2 / 2^65.
 *
 * NULL: *err; REC_DATA: a capacity, or a flow of the source, is not allowed; REC_NO:
 * there are more classes than `most`; REC_BUG: the source does not give the same flows
 * again.
 */
struct flow_classes *flow_classes_find(uint32_t n, const double *capacity,
                                       const uint32_t *label,
                                       const struct flow_source *source, uint32_t most,
                                       struct rec_error *err) REC_MUST_CHECK;
/** `classes` may be NULL. */
void flow_classes_free(struct flow_classes *classes);
/** The class of a flow, which is no fan; FLOW_NONE: the source has no such flow. */
uint32_t flow_classes_of(const struct flow_classes *classes,
                         const struct flow_route *route);
/** One of the flows of class k; its links are valid as long as the classes are. */
void flow_classes_example(const struct flow_classes *classes, uint32_t k,
                          struct flow_route *route);
/**
 * Runs all groups from time 0 on. finish[n] is the end of each class, seconds; INFINITY:
 * its flows stand still. *last is the end of the last one; 0: there are no flows.
 */
bool flow_classes_run(const struct flow_classes *classes, double *finish, double *last,
                      struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
