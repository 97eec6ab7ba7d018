/*
 * rampipe/place.h - where the parts of a job go.
 *
 *     place_plan   what placing needs to know of a graph: units in order, parents
 *     place_on     places a plan on the free servers: a unit goes to the servers of one
 *                  of its parents if that is possible, else to a free block of a legal
 *                  shape; a task goes to the server that is free first
 *
 * How that is done is a row of place_kinds. Where a way of placing comes from is said in
 * its file.
 */
#ifndef RAMPIPE_PLACE_H
#define RAMPIPE_PLACE_H

#include "rampipe/graph.h"
#include "rampipe/net.h"

REC_BEGIN_DECLS

/** One unit to place; its twin goes to the same servers. */
struct place_step {
    uint32_t unit;
    uint32_t first_parent, nparents; /* its parents: plan->parent[first_parent...] */
    double memory; /* that the largest part needs; it and its twin share it, bytes */
};

/**
 * The units in the order in which they are placed: Kahn's order of the unpartitioned
 * graph, first in first out, in order of ops and deps. A backward unit that has a twin is
 * not among them: it goes where its twin goes.
 */
struct place_plan {
    const struct graph *graph; /* borrowed */
    struct place_step *step;
    uint32_t nsteps;
    uint32_t largest; /* most parts that a step has; at least 1 */
    /* Bytes of one part of each step, summed: no server can be asked for more, because
     * the parts of a unit go to different servers. */
    double memory;
    uint32_t *kind; /* for each number of parts that occurs: the first step that has it */
    uint32_t nkinds;
    bool tasks;  /* all ops are tasks, and none is split */
    bool across; /* what a part holds is released by another part, or by one of fewer */
    uint32_t *parent; /* earlier steps; those of one step are in order of deps */
    uint32_t *twin;   /* per index into graph->member: that of its twin, or its own */
};

bool place_plan_make(const struct graph *graph, struct place_plan *plan,
                     struct rec_error *err) REC_MUST_CHECK;
void place_plan_free(struct place_plan *plan);
/** Bytes that the largest part of a unit needs at most, its twin included: a part and its
 * twin share their memory, so the larger of the two counts; what both hold (struct
 * graph_hold) is added, as if it were never released. */
double place_part_memory(const struct graph *graph, uint32_t unit);

enum place_outcome {
    PLACE_PLACED,
    PLACE_NO_SERVERS,
    PLACE_NO_BLOCK,
    PLACE_NO_MEMORY,
    PLACE_APART /* an op lies on another server than the one whose hold it releases */
};
/** The CAUSE of a block record; "placed" for PLACE_PLACED. */
const char *place_outcome_name(enum place_outcome outcome);

struct place_kind;

/** Which servers are free: in service and held by no job. */
struct place_vacancy;

/** All servers of a cluster are free. It is made for a way of placing, and for no other.
 * NULL: out of memory. */
struct place_vacancy *place_vacancy_new(const struct place_kind *kind,
                                        const struct net *net,
                                        struct rec_error *err) REC_MUST_CHECK;
/** `vacancy` may be NULL. */
void place_vacancy_free(struct place_vacancy *vacancy);
/** How many servers are free. */
uint32_t place_count_free(const struct place_vacancy *vacancy);
bool place_is_free(const struct place_vacancy *vacancy, uint32_t server);
void place_set_free(struct place_vacancy *vacancy, uint32_t server, bool free);

struct place_placer; /* a cluster, and the job that is being placed on it */

struct place_options {
    const struct net *net;         /* borrowed */
    const struct place_kind *kind; /* borrowed; it must suit the network */
    const char *argument; /* borrowed; NULL: the kind's default, or it takes none */
};

/**
 * A way to place a plan, which says where a unit goes that cannot go to the servers of a
 * parent. Functions use lib/place/private.h. What is not marked as optional must be
 * there.
 */
struct place_kind {
    const char *name;     /* as users write it */
    const char *argument; /* what may follow it: "SHAPE". Optional: nothing may */
    const char *network;  /* which networks it is for, for messages */
    bool (*suits)(const struct net *net);

    /* What is kept of the servers that are free, beside which they are: begins with all
     * servers free, and is told of each change. NULL: *err. Optional, all three: nothing
     * is kept. */
    void *(*index_new)(const struct net *net, struct rec_error *err);
    void (*index_set)(void *index, uint32_t server, bool free);
    void (*index_free)(void *index);

    /* What a placer keeps. NULL: *err; REC_USAGE: the argument is wrong. */
    void *(*open)(const struct place_options *options, struct rec_error *err);
    void (*close)(void *own);
    /* Called for each job before the next two. What it returns, if that is not
     * PLACE_PLACED, becomes of the job. */
    enum place_outcome (*begin)(struct place_placer *placer,
                                const struct place_plan *plan);
    /* Puts a unit on free servers that have room for `memory` bytes. */
    bool (*find)(struct place_placer *placer, const struct graph_unit *unit,
                 double memory);
    /* Places the plan. If it fails, the caller ignores what it has placed. The same plan
     * on the same free servers always gets the same placement, so that it may be
     * remembered. */
    enum place_outcome (*place)(struct place_placer *placer,
                                const struct place_plan *plan);
    /* Where memory is no limit, all units with the same number of parts go to the same
     * servers, and nothing else is done for the plan: see place_light(). All such ways
     * that suit a network have a place for the plan, or none of them has, but for those
     * that are numbered. */
    bool whole;
    /* The argument is the number of a place, from 1: if there are fewer places, the plan
     * has none. */
    bool numbered;
    /* Wherever the plan is placed, its parts lie to each other as on an empty cluster:
     * the job holds as many servers, and on servers that are all as fast a step takes as
     * long. */
    bool alike;
};

/** All ways of placing; NULL ends the table. What each does is said in its file, and for
 * users in alloc(1). */
extern const struct place_kind *const place_kinds[];
/** The way of this name, whose letters may be of any case; NULL: there is none. */
const struct place_kind *place_kind_find(struct rec_str name);
/** The way that is the default on a network: the first one that suits it. */
const struct place_kind *place_kind_of(const struct net *net);
enum { PLACE_RANGES = 64, PLACE_WAYS_MAX = 1500, PLACE_PLACES_MAX = 999 };
/** Which ways of placing there are, in their order. Starts as {0}: none. */
struct place_ways {
    struct place_range {
        const struct place_kind *kind;
        uint32_t first, last; /* numbers of a numbered kind; else 0 */
    } range[PLACE_RANGES];
    uint32_t n;
};

/** Adds those of `first` and n more. If some of them are there already, the others go
 * where they have the same order. REC_USAGE: they are more than PLACE_RANGES ranges. */
bool place_ways_add(struct place_ways *ways, const struct place_options *first,
                    const struct place_options *more, uint32_t n,
                    struct rec_error *err) REC_MUST_CHECK;
/** Those of them that suit a network. */
struct place_ways place_ways_suiting(struct place_ways ways, const struct net *net);
/** Writes them as place_list_parse() reads them. */
void place_ways_format(struct place_ways ways, char text[PLACE_WAYS_MAX]);
/** Reads that; REC_DATA: *err says what would be right. */
bool place_ways_parse(struct place_ways *ways, struct rec_str text,
                      struct rec_error *err) REC_MUST_CHECK;
/** Sets options->kind and options->argument to the way that NAME or NAME:ARGUMENT says
 * for options->net; NULL: the default. `text` is borrowed. REC_USAGE: *err says what
 * would be right. */
bool place_options_parse(struct place_options *options, const char *text,
                         struct rec_error *err) REC_MUST_CHECK;

/** Writes NAME, or NAME:NUMBER of a numbered kind. */
enum { PLACE_NAME_MAX = 40 };
void place_options_name(const struct place_options *options, char name[PLACE_NAME_MAX]);
/** Which of the places the way takes, from 1; of a kind that is not numbered 1. */
uint64_t place_options_number(const struct place_options *options);

/** Several ways of placing on one network. Starts as {0}. */
struct place_list {
    struct place_options *options; /* [n] */
    uint32_t n;
    char *text; /* that they borrow */
    struct place_ways left_out;
};

/** Reads a list with commas, or "any": all ways that suit the network and are not
 * numbered. NAME:1-9 are the first nine ways of a numbered kind, whose numbers ascend.
 * Ways that do not suit the network are left out if others do. NULL: the default.
 * REC_USAGE: *err says what would be right. To be freed even after an error. */
bool place_list_parse(struct place_list *list, const struct net *net, const char *text,
                      struct rec_error *err) REC_MUST_CHECK;
void place_list_free(struct place_list *list);

/** NULL: *err. */
struct place_placer *place_placer_new(const struct place_options *options,
                                      struct rec_error *err) REC_MUST_CHECK;
/** `placer` may be NULL. */
void place_placer_free(struct place_placer *placer);

/** A placement. The placer owns the arrays; they are valid until its next use. */
struct place_placement {
    enum place_outcome outcome;
    uint32_t failed; /* if not placed: the index in graph->unit of the unit that failed */
    /* If the outcome is PLACE_NO_MEMORY: of the free blocks that the failed unit could
     * have gone to, the one with most room has this much left on its fullest server,
     * bytes. */
    double left;
    const uint32_t *server; /* per index into graph->member: its server; twins included */
    /* The job's servers: first those that it uses, in order of first use, then those that
     * it only reserves. */
    const uint32_t *held;
    uint32_t nheld, nused;
    const uint32_t *order; /* of tasks: steps of the plan in order of start; else NULL */
};

/**
 * Places a plan on free servers. `vacancy` is not changed: the caller marks the servers
 * as taken. No server is given more than its memory. Tasks are placed by list scheduling,
 * whatever the heuristic: whenever a server is free, it gets the ready task that has the
 * longest path from its start to the end (Graham 1966, with ranks of the critical path);
 * the job holds the servers that this uses. False: out of memory.
 */
bool place_on(struct place_placer *placer, const struct place_plan *plan,
              const struct place_vacancy *vacancy, struct place_placement *placement,
              struct rec_error *err) REC_MUST_CHECK;

/**
 * True if memory cannot decide where a unit goes: no server can be asked for more than it
 * has, and the heuristic takes the first free block of the cluster, or of a window. Then
 * all units of k parts go to the same block, whether as the first free one for k parts or
 * as that of a parent. So a placement is known once there is a
 * block for each number of parts.
 */
bool place_is_light(const struct place_placer *placer, const struct place_plan *plan);
/** Places a light plan: only the first unit of each number of parts. placement->server is
 * not valid for other units. False: out of memory. */
bool place_light(struct place_placer *placer, const struct place_plan *plan,
                 const struct place_vacancy *vacancy, struct place_placement *placement,
                 struct rec_error *err) REC_MUST_CHECK;

REC_END_DECLS

#endif
