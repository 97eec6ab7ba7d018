/* The rules that the placement of an agent is checked against, for act.c. */
#ifndef RAMPIPE_ALLOC_ACT_RULES_H
#define RAMPIPE_ALLOC_ACT_RULES_H

#include "question.h"

/* The sets of servers that are legal for the parts of an op; remembered. */
struct act_blocks;
/* NULL: *err. */
struct act_blocks *act_blocks_new(struct rec_error *err) REC_MUST_CHECK;
/* `blocks` may be NULL. */
void act_blocks_free(struct act_blocks *blocks);

/* The rule that is broken: the CAUSE of a block record. */
struct act_broken {
    const char *cause; /* NULL: none is */
    uint32_t op;       /* that breaks it */
    uint32_t server;   /* REC_NONE: none */
    uint32_t unit;     /* no_memory: that of the op, and */
    double left;       /* as in struct place_placement */
};

/*
 * Checks a layout in which ops may be unplaced, on servers[nslots] (all different):
 *
 *     every_op_placed       every op is placed once
 *     server_in_service     no server is out of service
 *     one_job_per_server    no server is held by another job
 *     legal_block           the parts of an op are spread evenly over servers that lie to
 *                           each other as those of a block of a legal shape do
 *     hold_and_release      what an op holds is released on the same server
 *     no_memory             the memory of a server is not exceeded
 */
bool act_check(struct act_blocks *blocks, const struct alloc_question *q,
               const struct graph_layout *where, const uint32_t *servers,
               struct act_broken *broken, struct rec_error *err) REC_MUST_CHECK;
/* Checks memory once a step is simulated: ops may hold bytes. */
void act_check_peak(const struct net *net, const struct trial *trial,
                    struct act_broken *broken);

#endif
