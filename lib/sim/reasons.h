/*
 * lib/sim/reasons.h - what holds the exchanges of a job's first step back.
 *
 * Between two events of a carrier all rates stay as they are. So at each event, and
 * before anything is sent, the time since the last one is added to what an exchange was
 * held back by: the links that hold one of its flows back; or, if none of it flows,
 * latency or a measured time.
 */
#ifndef SIM_REASONS_H
#define SIM_REASONS_H

#include "rampipe/sim.h"

struct sim_first;

/** An exchange on a link. */
struct sim_held {
    uint32_t exchange, link;
    double seconds;          /* for which the link held a flow of it back */
    double bytes;            /* of it on the link */
    double own, job, others; /* flows on the link in that time, itself included: of the
                                 exchange, of others of the job, of other jobs;
                                 flow-seconds */
    uint32_t mark, flows;    /* of the present interval; its own flows there */
};

/** A step. Starts as {0}. */
struct sim_reasons_table {
    struct sim_when {
        double start, end;        /* from the begin of the step on, seconds; NAN: none */
        double latency, measured; /* seconds in which it waited for these alone */
        uint32_t mark, state;     /* of the present interval */
    } * when;                     /* per exchange of the layout */
    uint32_t n;
    struct sim_held *held;
    size_t nheld, held_room;
    uint32_t *slot; /* a hash table of held[] */
    size_t nslots;  /* a power of two, or 0 */
};

/** Something of an exchange leaves, or has arrived. `first` may be NULL. */
void sim_reasons_send(struct sim_first *reasons, uint32_t exchange, double time);
void sim_reasons_arrive(struct sim_first *reasons, uint32_t exchange, double time);

/** Finds which link held each of n exchanges back longest in the last step that is over:
 * worst[exchange], for sim_reasons_of(). */
void sim_reasons_worst(const struct sim_first *reasons, uint32_t *worst, size_t n);
/** What that step says of an exchange; `alone` is not set. False: it was not sent. */
bool sim_reasons_of(const struct sim_first *reasons, uint32_t exchange, uint32_t worst,
                    struct sim_reason *reason);

struct sim_carrier;
/** Adds the time from the last event of a carrier to this one; some of its members are
 * watched. */
bool sim_reasons_pass(struct sim_carrier *carrier, double time,
                      struct rec_error *err) REC_MUST_CHECK;

#endif
