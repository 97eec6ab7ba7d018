/* The search for the best plan, which only its files see: exact.c, groups.c. */
#ifndef RAMPIPE_SERVE_SEARCH_H
#define RAMPIPE_SERVE_SEARCH_H

#include "planner.h"

/* A set of late queries, a bit for each query of the sample. */
struct late {
    uint64_t *bit;
    uint64_t n; /* elements */
};

/* Choices for all stages of a group. */
struct solution {
    struct serve_choice *choice; /* per stage of the group */
    struct late late;            /* queries that this group alone makes late */
    double cost, rate;           /* US$ an hour; least capacity of a stage, queries/s */
};

struct group {
    uint32_t *stage; /* in topological order; points into the search's `order` */
    size_t n;
    double cheapest; /* a lower bound of the cost of its solutions, US$ an hour */
    struct solution *solution;
    size_t nsolutions, room;
};

/* The simulation of a stage with what is chosen for it now. */
struct level {
    struct serve_trail trail;
    struct late late; /* queries that are late by this and earlier stages of the group */
};

struct search {
    struct serve_planner *planner;
    struct group *group;
    size_t ngroups;
    uint32_t *order; /* stages by group */
    struct parents {
        uint32_t *stage;
        size_t n;
    } * parents; /* per stage: those with a model that send it queries, directly or past
                    stages with no model */
    struct level *level;                /* per stage of the group that is searched */
    uint32_t *level_of;                 /* per stage: its index in its group */
    struct serve_choice *choice, *best; /* per stage */
    bool found;                         /* there is a best plan */
    double cost, rate;                  /* of the best plan */
    struct late
        *joint;   /* [g]: queries late by the chosen solutions of groups g and later */
    size_t words; /* of a set's bits */
};

bool serve_new_set(const struct search *search, struct late *late,
                   struct rec_error *err) REC_MUST_CHECK;
void serve_free_solution(struct solution *solution);
/* Makes the groups of stages, and room for the search. */
bool serve_open_search(struct search *search, struct rec_error *err) REC_MUST_CHECK;
void serve_close_search(struct search *search);

#endif
