/*
 * rampipe/event.h - discrete events: the queue, the clock, and what has a next event.
 *
 * A simulator is a model: it says when something happens next and lets it happen. A clock
 * runs several models on one stream of records:
 *
 *     records --- clock --- take ---> model 1, model 2, ...
 *                   |                      |
 *                   +-- the least next <---+
 */
#ifndef RAMPIPE_EVENT_H
#define RAMPIPE_EVENT_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

/* ---- the event queue ----------------------------------------------------- */

/** An event. The owner of the queue gives the key its meaning; of equal times, the
 * smaller key comes first. */
struct event_entry {
    double time; /* seconds; not negative */
    uint64_t key;
};

/** A priority queue, earliest first. Starts as {0}. */
struct event_queue {
    struct event_entry *event; /* a heap of four children a node */
    size_t n, room;
};

bool event_queue_push(struct event_queue *queue, struct event_entry event,
                      struct rec_error *err) REC_MUST_CHECK;
/** Takes the earliest event off; the queue must not be empty. */
struct event_entry event_queue_pop(struct event_queue *queue);
/** Takes the earliest event off, and puts another one in; the same as a pop and a push,
 * but faster if the new one comes soon. The queue must not be empty. */
void event_queue_replace(struct event_queue *queue, struct event_entry with);
void event_queue_free(struct event_queue *queue);

/* ---- times --------------------------------------------------------------- */

/** True if the end of what takes `seconds` from `time` on would be wrong by more than a
 * thousandth of them, because a double has no more digits there. */
static inline bool
event_is_late(double time, double seconds)
{
    double rounded = time + seconds - time;
    return (rounded > seconds ? rounded - seconds : seconds - rounded) > 1e-3 * seconds;
}

/* ---- models and their clock ---------------------------------------------- */

struct event_clock;

/**
 * What a clock needs to know of a simulator; one row a model. `self` is the model's own
 * data.
 *
 *     take     takes a record. 1: it is the model's; 0: it is not, or others need it,
 *              too; -1: *err. Before it acts on a record of time t it calls
 *              event_clock_reach(clock, t)
 *     next     the time of the model's next event, seconds; INFINITY: it has none
 *     advance  lets its events up to and at `time` happen
 *     end      time stops at `time`; INFINITY: no event is left
 *     close    no more records come. Returns the time at which the model ends, as its
 *              records say, seconds; INFINITY, or no such function: when no event is left
 */
struct event_model {
    const char *name;
    int (*take)(void *self, struct event_clock *clock, const struct rec_reader *reader,
                const struct rec *rec, struct rec_error *err);
    double (*next)(void *self);
    bool (*advance)(void *self, double time, struct rec_error *err);
    bool (*end)(void *self, double time, struct rec_error *err);
    double (*close)(void *self);
};

/** One clock for several models: the earliest event of all happens first; of equal times,
 * that of the model that was added first. Starts as {0}. */
struct event_clock {
    struct event_clocked *model; /* owned; event_clock_free() */
    size_t n, room;
};

/** `model` and `self` are borrowed. */
bool event_clock_add(struct event_clock *clock, const struct event_model *model,
                     void *self, struct rec_error *err) REC_MUST_CHECK;
/** Lets all events of all models before `time` happen. */
bool event_clock_reach(struct event_clock *clock, double time,
                       struct rec_error *err) REC_MUST_CHECK;
/** Gives a record to all models. 1: a model took it as its own; 0: none did; -1: *err. */
int event_clock_take(struct event_clock *clock, const struct rec_reader *reader,
                     const struct rec *rec, struct rec_error *err) REC_MUST_CHECK;
/** To be called when no more records come: lets all events up to and at `time` happen, of
 * each model only those up to its own end; then ends the models. */
bool event_clock_end(struct event_clock *clock, double time,
                     struct rec_error *err) REC_MUST_CHECK;
void event_clock_free(struct event_clock *clock);

REC_END_DECLS

#endif
