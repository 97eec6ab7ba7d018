/* What the files of lib/flow share: the links, the flows on them, and when these end. */
#ifndef FLOW_PRIVATE_H
#define FLOW_PRIVATE_H

#include "rampipe/flow.h"

/* ---- the ends of flows (ends.c) --------------------------------------------- */

enum { ENDS_FAN = 8, ENDS_LEVELS = 12 };

/** The least of many times, each of which changes often: a tree of minima with ENDS_FAN
 * children a node. Starts as {0}. */
struct ends {
    double *least[ENDS_LEVELS]; /* [0]: the times themselves, INFINITY: none */
    size_t size[ENDS_LEVELS];   /* nodes of each level: ENDS_FAN times the next */
    int levels;
};

/** Makes room for n times. */
bool ends_reserve(struct ends *ends, size_t n, struct rec_error *err) REC_MUST_CHECK;
void ends_set(struct ends *ends, size_t i, double time);
/** The least of all times; INFINITY: there is none. */
double ends_first(const struct ends *ends);
/** Puts the numbers of all times up to `time` into list[], which has room for all times.
 * Returns how many there are. */
size_t ends_until(const struct ends *ends, double time, uint32_t *list);
void ends_free(struct ends *ends);

/* ---- links and flows -------------------------------------------------------- */

/** A bundle on a link. */
struct rider {
    uint32_t bundle, step; /* the step of its route */
};

/** What the search for rates knows of a link: one cache line. */
struct link {
    double capacity;
    double level; /* the rate of the flows that it holds back; INFINITY: it is not full */
    double slack; /* what is left of it, bytes/s; of no meaning while the link is full */
    double top;   /* crossings by the flows that it holds back */
    struct rider *rider;
    uint32_t n, room;
    uint32_t stale; /* changes of the slack since it was summed up */
    uint32_t place; /* in the queue */
    double key;     /* the same as there; INFINITY: it is not in the queue */
};

/** What is known of a link besides. */
struct account {
    double bytes, busy, since; /* of flows that have ended; seconds; busy from */
    uint32_t mark;             /* while a flow starts: its step that crosses the link */
    uint32_t still;            /* bundles on it that stand still: others make it busy */
};

/** A bundle: all flows of one route, which have one rate at every instant. What the
 * search for rates knows of it: */
struct pace {
    double rate;
    double least, next; /* the least level of its links; the least of all but `tight` */
    double crossing;    /* of each of its links; 0: they differ, and are in crossing[] */
    uint32_t tight;     /* the link of the least level; FLOW_NONE: it has no link */
    uint32_t first, n;  /* its steps, each of another link */
    bool changed;       /* it is in the list of those whose rate changes */
};

/** An amount that is added up for long: the sum of both. */
struct amount {
    double high, low; /* bytes */
};

/** What else is known of it. */
struct bundle {
    double was;         /* the rate since `since` */
    double left, since; /* what the flow that ends first had left then, bytes */
    struct amount sent; /* by a flow that was there from the bundle's start to then */
    double weight;      /* of its flows in all */
    uint32_t flows;     /* how many there are */
    bool still;         /* they stand still, as a link of theirs has failed */
    double before;      /* sum over them, by weight, of what `sent` was at their start */
    uint32_t flow;      /* the one that ends first; FLOW_NONE: none is left */
    uint32_t next;      /* of the same bucket; of those whose number is free */
};

struct flow {
    double size, weight;
    struct amount due;   /* what its bundle has sent at its end */
    uint64_t id, serial; /* serial: counts starts; 0: the number is free */
    uint32_t bundle;
    /* A pairing heap: its first child, the next child of the same parent, and the child
       before it or, of the first one, the parent. */
    uint32_t child, next, before;
};

/** A link whose level is to be found again. */
struct asked {
    double key;
    uint32_t link;
};

struct flow_links {
    double now;
    bool stuck; /* rates do not settle */
    struct link *link;
    struct account *account;
    uint32_t nlinks;
    struct flow *flow;
    uint32_t nflows; /* numbers given so far */
    size_t flow_room;
    struct pace *pace; /* per bundle */
    struct bundle *bundle;
    uint32_t nbundles, free_bundle; /* numbers given so far; one to give again */
    size_t pace_room, bundle_room;
    uint32_t *bucket; /* a hash table of routes: bundles, by a power of two */
    size_t nbuckets;
    uint32_t *free_flow; /* numbers to give again */
    size_t nfree, free_room;
    uint64_t serial;
    /* The steps of all routes: their links, how often they are crossed, and the
       bundle's place in rider[] of the link. */
    uint32_t *via;
    double *crossing;
    uint32_t *place;
    size_t nsteps, via_room, crossing_room, place_room;
    uint32_t *run; /* per length: steps of a route that has ended, linked by via[] */
    size_t nruns, run_room;
    struct ends ends;    /* of the first flow of each bundle */
    struct asked *queue; /* a heap; it has room for all links */
    uint32_t nqueued;
    /* Room to work in. */
    uint32_t *changed; /* bundles whose rate changes */
    size_t nchanged, changed_room;
    struct above {
        double limit, crossing;
    } * above; /* per bundle of a link */
    size_t above_room;
    uint32_t *ending; /* flows that end at an instant */
    size_t ending_room;
};

/** Whether a link may have this capacity. */
bool flow_check_capacity(uint32_t link, double capacity,
                         struct rec_error *err) REC_MUST_CHECK;

/* ---- bundles (bundle.c) ------------------------------------------------------- */

/** Makes room for a bundle more. */
bool bundle_reserve(struct flow_links *links, struct rec_error *err) REC_MUST_CHECK;
/** The bundle of the route of n steps that stand behind all others, of flows of that
 * weight; FLOW_NONE: there is none. */
uint32_t bundle_find(const struct flow_links *links, uint32_t n, double weight);
/** Makes a bundle without flows of the steps of `pace`. */
uint32_t bundle_make(struct flow_links *links, const struct pace *pace);
/** Its number is free. */
void bundle_drop(struct flow_links *links, uint32_t bundle);
/** Reckons until now what its flows have sent. */
void bundle_reach(struct flow_links *links, uint32_t bundle);
/** Its first flow may be another: reckons anew when that ends. */
void bundle_end(struct flow_links *links, uint32_t bundle);
/** A flow starts now. */
void bundle_add(struct flow_links *links, uint32_t bundle, uint32_t flow);
/** Takes a flow out of those of its bundle. */
void bundle_remove(struct flow_links *links, uint32_t flow);
/** What a flow has not sent by now, bytes. */
double bundle_left(const struct flow_links *links, uint32_t flow);

/** Its flows stand still, or no longer do. */
void bundle_stand(struct flow_links *links, uint32_t bundle, bool still);

/* ---- rates (fill.c) ----------------------------------------------------------- */

/** How often the flows of a bundle cross the link of a step. */
static inline double
fill_crossing(const struct flow_links *links, const struct pace *pace, uint32_t step)
{
    return pace->crossing > 0 ? pace->crossing : links->crossing[step];
}
/** The level of a link is to be found again; it will hardly be less than `key`. */
void fill_ask(struct flow_links *links, uint32_t link, double key);
/** The flows on a link that is not full leave `less` bytes/s of slack than before. */
void fill_slack(struct flow_links *links, uint32_t link, double less);
/** Finds the two least levels of the links of a bundle. */
void fill_limits(const struct flow_links *links, struct pace *pace);
/** Finds all rates that follow from what was asked. */
void fill_rates(struct flow_links *links);

#endif
