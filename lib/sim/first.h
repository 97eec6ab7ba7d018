/*
 * lib/sim/first.h - what is asked of the first step of a job: what holds its exchanges
 * back (lib/sim/reasons.h), when its ops ran and its data were sent, and what it sends
 * over each link. It is recorded while the step is simulated, alone and then, if the job
 * is in a company, in the company: the last step that has ended counts.
 */
#ifndef SIM_FIRST_H
#define SIM_FIRST_H

#include "reasons.h"

/** What is asked for. */
struct sim_asked {
    bool reasons; /* what holds exchanges back */
    bool moments; /* when ops ran, and data were sent */
    bool rates;   /* what it sends over links; needs moments */
};

/** What happened in a step. Starts as {0}. */
struct sim_moments {
    struct sim_moment *of; /* times are those of the clock of the step */
    size_t n, room;
};

/** What a step sends over the links of the cluster. */
struct sim_rates {
    double *sum;   /* per link, or colour: bytes/s in the present interval */
    double *rate;  /* per link: bytes/s, */
    double *since; /* from then on, seconds */
    uint32_t n;
    double upto;            /* intervals are known until then, seconds */
    uint32_t mark;          /* of the present interval */
    struct sim_first *next; /* in the list of those that send in it */
};

struct sim_first {
    struct sim_asked asked;
    struct sim_reasons_table now, last; /* of a step that runs, and of one that is over */
    struct sim_moments moments, before; /* the same of both */
    double from;                        /* when the one that is over began, seconds */
    double begun;                       /* when the step that runs began, seconds */
    double length;                      /* of the one that is over, seconds */
    bool open;                          /* a step runs */
    bool some;                          /* one is over */
    bool lost;                          /* there was no memory for a moment */
    struct sim_rates rates;
    struct sim_observer observer; /* of moments */
    struct sim_layouts *pool;     /* counts those that are open and watched */
};

struct sim_first *sim_first_new(struct sim_layouts *pool, const struct net *net,
                                struct sim_asked asked,
                                struct rec_error *err) REC_MUST_CHECK;
/** `first` may be NULL, here and below. */
void sim_first_free(struct sim_first *first);
/** A step of a layout begins at `time`. What a step before it has left is forgotten, if
 * that has not ended. */
bool sim_first_begin(struct sim_first *first, const struct sim_layout *layout,
                     double time, struct rec_error *err) REC_MUST_CHECK;
/** It ends, or it is given up: then the last one that has ended counts. */
bool sim_first_end(struct sim_first *first, double time,
                   struct rec_error *err) REC_MUST_CHECK;
void sim_first_stop(struct sim_first *first);
/** What is to observe the step; NULL: nobody. */
const struct sim_observer *sim_first_observer(const struct sim_first *first);
/** True if the events of carriers count: their times, or their rates. */
bool sim_first_is_watched(const struct sim_first *first);

/** The rates of an interval from `from` to `to` are those in rates.sum, which begins
 * anew. If colour[] is given, those of a link are those of its colour. */
void sim_first_pass(struct sim_first *first, const uint32_t *colour, double from,
                    double to);

#endif
