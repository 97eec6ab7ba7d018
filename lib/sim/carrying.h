/* What carrier.c and folded.c share: pieces, and how they are carried. */
#ifndef SIM_CARRYING_H
#define SIM_CARRYING_H

#include "carrier.h"
#include "fold.h"
#include "loads.h"
#include "first.h"

#define NONE FLOW_NONE

struct piece {
    uint32_t sent;     /* index of its batch; NONE: it is free */
    uint32_t from, to; /* servers, if it has no group; NONE: it only waits, for the end of
                          a measured time */
    uint32_t flow;     /* NONE: it waits for its latency */
    double bytes;      /* that are left, while it waits */
    uint32_t version;  /* counts its uses: the start of an older one is void */
    uint32_t next;     /* free piece */
    uint32_t group;    /* of the fold; NONE: it is a flow of its own */
    uint32_t class;    /* of the group's flows, once they have started */
};

/* A batch on its way. */
struct sent {
    uint64_t token;
    uint32_t pieces; /* that have not arrived */
    union {
        uint32_t exchange; /* of which it is */
        uint32_t next;     /* free batch, if this one is free */
    };
};

/* What explains exchanges: an interval between two events. */
struct why {
    bool asked;                /* a member is watched */
    bool named;                /* name[] is that of the present colours */
    double passed;             /* until then, seconds */
    uint32_t mark;             /* counts intervals */
    struct sim_first *sending; /* those that ask for rates, in the present interval */
    uint32_t *name;            /* per link, or colour: the link that stands for it */
    uint32_t *head; /* per link, or colour: the first job that it holds back, of job[] */
    struct held_job {
        uint32_t member;
        uint32_t first;      /* of its exchanges, of list[] */
        uint32_t next;       /* job that the link holds back */
        uint32_t flows, all; /* on the link: of the job; of all jobs, in the first one */
    } * job;
    struct listed {
        struct sim_first *reasons;
        uint32_t held; /* index there */
        uint32_t job, tight, next;
    } * list;
    size_t name_room, head_room, njobs, job_room, nlist, list_room;
};

/* The route between two servers. */
struct known_route {
    uint32_t from, to; /* equal: none is known here */
    uint32_t n;        /* links */
    double latency;
};
/* The last routes that were asked for, by a hash of their servers: steps send over the
 * same ones again and again. */
enum { KNOWN_ROUTES = 4096 };

struct sim_carrier {
    const struct net *net;     /* NULL: no member has come */
    struct flow_links *links;  /* those of the cluster; of a fold, one for each colour */
    struct known_route *known; /* KNOWN_ROUTES */
    uint32_t *route;           /* room for one for each of these */
    uint32_t longest;          /* links of a route */
    struct event_queue starts; /* of pieces; key: version, piece (32 bits each) */
    struct piece *piece;
    struct sent *sent;
    size_t npieces, piece_room, nsent, sent_room;
    uint32_t free_piece, free_sent; /* NONE: none is free */
    struct sim_member *member;
    size_t nmembers, member_room;
    /* Once a round was folded: */
    struct sim_fold *fold;      /* NULL: none was */
    struct sim_classes classes; /* of its groups */
    double *capacity;           /* per link of the cluster, bytes/s */
    uint32_t fold_least;        /* servers of a round that is folded */
    bool stale; /* there are groups, or capacities, that have no classes */
    struct why why;
    struct sim_loads *loads; /* gets what the links carry; NULL: nobody asks */
    /* While events happen: who is told of arrivals. */
    sim_arrived *arrived;
    void *context;
};

/** The route between two servers, which are not the same; its links, *link, are there
 * until the next call. */
const struct known_route *sim_carrier_route(const struct sim_carrier *c, uint32_t from,
                                            uint32_t to, const uint32_t **link);
/** The index of a piece that was free; NONE: *err. */
uint32_t sim_carrier_take_piece(struct sim_carrier *c, struct rec_error *err);

/* ---- folded.c ---------------------------------------------------------------- */

/** A link of the cluster for one of c->links: of a fold, the first of its colour. */
uint32_t sim_folded_link(const struct sim_carrier *c, uint32_t link);
/** From now on all that is sent is folded. */
bool sim_folded_open(struct sim_carrier *c, struct rec_error *err) REC_MUST_CHECK;
void sim_folded_close(struct sim_carrier *c);
/** A piece has no group yet: gives it one, of its only transfer. */
bool sim_folded_join(struct sim_carrier *c, uint32_t i,
                     struct rec_error *err) REC_MUST_CHECK;
/** Finds the classes anew, if that is needed. What is under way is split into the new
 * ones. `beside` may be NULL: classes of links that are told apart, too. */
bool sim_folded_refresh(struct sim_carrier *c, const struct sim_classes *beside,
                        double time, struct rec_error *err) REC_MUST_CHECK;
/** Starts a piece as flows of the classes of its group. Of `within`, which may be NULL,
 * only those that belong to class `class` of group `group` there. */
bool sim_folded_start(struct sim_carrier *c, uint32_t i, double time,
                      const struct sim_classes *within, uint32_t group, uint32_t class,
                      struct rec_error *err) REC_MUST_CHECK;

#endif
