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

/** An exchange on a link. */
struct sim_held {
    uint32_t exchange, link;
    double seconds;          /* for which the link held a flow of it back */
    double bytes;            /* of it on the link */
    double own, job, others; /* flows on the link in that time, itself included: of the
                                 exchange, of others of the job, of other jobs;
                                 flow-seconds */
    uint32_t mark, next;     /* of the present interval */
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

struct sim_reasons {
    struct sim_reasons_table now, last; /* of a step that runs, and of one that is over */
    double begun;                       /* when the step that runs began, seconds */
    double length;                      /* of the one that is over, seconds */
    bool open;                          /* a step runs */
    bool some;                          /* one is over */
    struct sim_layouts *pool;           /* counts those that are open */
};

struct sim_reasons *sim_reasons_new(struct sim_layouts *pool,
                                    struct rec_error *err) REC_MUST_CHECK;
/** `reasons` may be NULL, here and below. */
void sim_reasons_free(struct sim_reasons *reasons);
/** A step of a layout begins at `time`. What a step before it has left is forgotten, if
 * that has not ended. */
bool sim_reasons_begin(struct sim_reasons *reasons, const struct sim_layout *layout,
                       double time, struct rec_error *err) REC_MUST_CHECK;
/** It ends, or it is given up: then the last one that has ended counts. */
void sim_reasons_end(struct sim_reasons *reasons, double time);
void sim_reasons_stop(struct sim_reasons *reasons);

/** Something of an exchange leaves, or has arrived. */
void sim_reasons_send(struct sim_reasons *reasons, uint32_t exchange, double time);
void sim_reasons_arrive(struct sim_reasons *reasons, uint32_t exchange, double time);

/** The place of an exchange and a link. NULL: *err. */
struct sim_held *sim_reasons_find(struct sim_reasons *reasons, uint32_t exchange,
                                  uint32_t link, struct rec_error *err) REC_MUST_CHECK;

/** What the last step that is over says of an exchange; `alone` is not set. False: it was
 * not sent. */
bool sim_reasons_of(const struct sim_reasons *reasons, uint32_t exchange,
                    struct sim_reason *reason);

struct sim_carrier;
/** Adds the time from the last event of a carrier to this one; some of its members have
 * reasons. */
bool sim_reasons_pass(struct sim_carrier *carrier, double time,
                      struct rec_error *err) REC_MUST_CHECK;

#endif
