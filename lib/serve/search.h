/* The search for the best plan, which only its files see: exact.c, groups.c. */
#ifndef RAMPIPE_SERVE_SEARCH_H
#define RAMPIPE_SERVE_SEARCH_H

#include "planner.h"

/* A set of late queries. */
struct late {
    uint64_t *bit;
    uint64_t n;
};

/* A way to run the stages of a group. */
struct solution {
    struct serve_choice *choice; /* per stage of the group; before the bits */
    struct late late;
    double cost, rate;
};

struct group {
    uint32_t *stage; /* in topological order; part of the search's order */
    size_t n;
    double cheapest; /* US$ an hour, of any solution */
    struct solution *solution;
    size_t nsolutions, room;
};

/* What is known of a stage as it is chosen now. */
struct level {
    struct serve_trail trail;
    struct late late; /* of this group's stages up to this one */
};

struct search {
    struct serve_planner *planner;
    struct group *group;
    size_t ngroups;
    uint32_t *order; /* stages by group */
    struct parents {
        uint32_t *stage;
        size_t n;
    } * parents; /* per stage: those with a model whose queries come there, also past stages
                    with none */
    struct level *level;                /* per stage of the group at hand */
    uint32_t *level_of;                 /* per stage */
    struct serve_choice *choice, *best; /* per stage */
    bool found;
    double cost, rate;  /* of the best */
    struct late *joint; /* per group: of one solution of each up to it */
    size_t words;       /* of a set */
};

bool serve_new_set(const struct search *search, struct late *late,
                   struct rec_error *err) REC_MUST_CHECK;
void serve_free_solution(struct solution *solution);
/* Groups of stages, and room for what is chosen for them. */
bool serve_open_search(struct search *search, struct rec_error *err) REC_MUST_CHECK;
void serve_close_search(struct search *search);

#endif
