/*
 * lib/sim/rounds.h - exchanges whose rounds go through a carrier, one after the other.
 *
 * An exchange starts when all its batches have left: one of each op that sends to others
 * in it, or the one batch of a coll. All of them arrive when its last round has ended.
 */
#ifndef SIM_ROUNDS_H
#define SIM_ROUNDS_H

#include "carrier.h"

/** Exchanges that are under way, or of which batches have left. Starts as {0}. */
struct sim_rounds {
    struct sim_going **going; /* each owned */
    size_t n, room;
    struct rec_map by_what, by_first; /* their indices, by exchange and by token */
    uint32_t *ended;                  /* those of which a round ended at this instant */
    size_t nended, ended_room;
    uint32_t *server; /* members of an exchange */
    size_t server_room;
};

void sim_rounds_free(struct sim_rounds *rounds);
/** What is exchanged among the servers of a member. `server` of it is valid until the
 * next call. False: out of memory. */
bool sim_rounds_exchange(struct sim_rounds *rounds, const struct sim_member *member,
                         uint32_t exchange, struct net_exchange *e,
                         struct rec_error *err) REC_MUST_CHECK;
/** A batch of an exchange leaves, at `time`; `op` NONE: it is that of a coll. If it is
 * the last one, the first round starts. */
bool sim_rounds_send(struct sim_rounds *rounds, struct sim_carrier *carrier,
                     uint64_t token, uint32_t op, uint32_t exchange, double time,
                     struct rec_error *err) REC_MUST_CHECK;
/** A batch has arrived by the carrier. False: it was that of a round, which counts as
 * ended in sim_rounds_advance(). */
bool sim_rounds_arrived(struct sim_rounds *rounds, uint64_t token);
/** Starts the rounds behind those that ended at this instant, and tells of exchanges that
 * are over. To be called when the carrier's events at `time` have happened. */
bool sim_rounds_advance(struct sim_rounds *rounds, struct sim_carrier *carrier,
                        double time, sim_arrived *arrived, void *context,
                        struct rec_error *err) REC_MUST_CHECK;
/** Takes over the exchanges of a member. */
bool sim_rounds_take(struct sim_rounds *rounds, struct sim_rounds *from, uint32_t member,
                     struct rec_error *err) REC_MUST_CHECK;

#endif
