/*
 * What the tests of companies share: a courier of their own, and a replay of a text.
 *
 * The links are buses, one for each rack number of a RAMP cluster: all batches that leave
 * servers with that number share 1 byte/s fairly.
 */
#ifndef TESTS_BUSES_H
#define TESTS_BUSES_H

#include "graphs.h"

#include "rampipe/sim.h"

enum { JOBS = 7, FLIGHTS = 200 };
/* 2 communication groups, 2 racks, 3 servers: 12 servers, of which 6 are on each bus. */
enum { GROUPS = 2, RACKS = 2, PLACES = 3, SERVERS = GROUPS * RACKS * PLACES };
#define CLUSTER "cluster ramp 2 2 3 1.6e12 inf\n"

/* ---- the buses ------------------------------------------------------------- */

static inline uint32_t
bus_of(uint32_t server)
{
    return server / PLACES % RACKS;
}

struct buses {
    double now;
    struct flight {
        uint64_t batch;
        uint32_t bus;
        double left; /* bytes */
    } flight[FLIGHTS];
    uint32_t n;
    struct sim_member member[JOBS];
    uint32_t nmembers;
};

/* What the tests count, and which call fails: the n-th from now on, if n > 0. A deaf bus
 * brings nothing to two jobs or more. */
static struct {
    int opened, closed, bad_open, bad_take, bad_send;
    bool deaf;
} seen;

/* Batches on the bus of a batch. */
static inline uint32_t
together(const struct buses *b, uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < b->n; k++)
        n += b->flight[k].bus == b->flight[i].bus;
    return n;
}

/* When a batch would arrive if nothing else changed. */
static inline double
arrival(const struct buses *b, uint32_t i)
{
    return b->now + b->flight[i].left * together(b, i);
}

static inline void
buses_reach(struct buses *b, double time)
{
    for (uint32_t i = 0; i < b->n; i++)
        b->flight[i].left = fmax(0, b->flight[i].left - (time - b->now) / together(b, i));
    b->now = time;
}

static inline bool
buses_send(void *self, uint64_t batch, uint32_t dep, uint32_t exchange, double time,
           struct rec_error *err)
{
    struct buses *b = self;
    const struct sim_member *member = b->member;
    const struct graph_exchanges *e;
    (void)dep;
    if (--seen.bad_send == 0)
        return rec_fail(err, REC_IO, "the bus is broken");
    while (member->number != batch >> 32)
        assert_true(++member < b->member + b->nmembers);
    assert_true(time >= b->now && b->n < FLIGHTS);
    buses_reach(b, time);
    e = &member->layout->exchanges;
    b->flight[b->n++] = (struct flight){
        batch, bus_of(member->servers[e->member[e->exchange[exchange].first]]),
        e->exchange[exchange].bytes};
    return true;
}

static inline double
buses_next(void *self)
{
    const struct buses *b = self;
    double least = INFINITY;
    for (uint32_t i = 0; i < b->n && !(seen.deaf && b->nmembers > 1); i++)
        least = fmin(least, arrival(b, i));
    return least;
}

static inline bool
buses_advance(void *self, double time, sim_arrived *arrived, void *context,
              struct rec_error *err)
{
    struct buses *b = self;
    bool arrives[FLIGHTS];
    (void)err;
    assert_same(buses_next(b), time);
    for (uint32_t i = 0; i < b->n; i++)
        arrives[i] = arrival(b, i) <= time;
    buses_reach(b, time);
    for (uint32_t i = b->n; i-- > 0;)
        if (arrives[i]) {
            uint64_t batch = b->flight[i].batch;
            b->flight[i] = b->flight[--b->n];
            arrived(context, batch);
        }
    return true;
}

static const struct sim_courier buses_row = {"buses", sim_key_by_exchange, buses_send,
                                             buses_next, buses_advance};

static inline bool
buses_share(void *self, const struct sim_member *a, const struct sim_member *b)
{
    (void)self;
    for (uint32_t i = 0; i < a->layout->where.nslots; i++)
        for (uint32_t k = 0; k < b->layout->where.nslots; k++)
            if (bus_of(a->servers[i]) == bus_of(b->servers[k]))
                return true;
    return false;
}

static inline void *
buses_open(void *self, struct rec_error *err)
{
    (void)self;
    if (--seen.bad_open == 0) {
        rec_fail(err, REC_IO, "no bus comes");
        return NULL;
    }
    seen.opened++;
    return calloc(1, sizeof(struct buses));
}

static inline bool
buses_take(void *carrier, const struct sim_member *member, void *from, double time,
           struct rec_error *err)
{
    struct buses *b = carrier, *other = from;
    if (--seen.bad_take == 0)
        return rec_fail(err, REC_IO, "the bus is full");
    assert_true(b->nmembers < JOBS && time >= b->now);
    buses_reach(b, time);
    b->member[b->nmembers++] = *member;
    if (!other)
        return true;
    assert_true(time >= other->now && buses_next(other) >= time);
    buses_reach(other, time);
    for (uint32_t i = 0; i < other->n;)
        if (other->flight[i].batch >> 32 == member->number) {
            b->flight[b->n++] = other->flight[i];
            other->flight[i] = other->flight[--other->n];
        } else {
            i++;
        }
    return true;
}

static inline void
buses_close(void *carrier)
{
    seen.closed++;
    free(carrier);
}

static const struct sim_sharing buses_sharing = {"buses",    &buses_row, buses_share,
                                                 buses_open, buses_take, buses_close,
                                                 NULL,       NULL,       NULL};

/* ---- a replay of a text ---------------------------------------------------- */

struct heard {
    struct result {
        int done, unfinished;
        double start, finish, waited;
        struct sim_cost cost;
        bool started; /* at the end of the simulated time: it has */
    } of[JOBS];
    char order[200]; /* "+a" a starts, "-a" it is done */
    double last;
};

static inline struct result *
job_of(struct heard *heard, const struct sim_done *done, char sign)
{
    char text[3] = {sign, done->job.id.ptr[0], '\0'};
    if (strlen(heard->order) + 3 < sizeof heard->order)
        strcat(heard->order, text);
    return &heard->of[done->job.id.ptr[0] - 'a'];
}

static inline bool
hear_done(void *context, const struct sim_done *done, struct rec_error *err)
{
    struct heard *heard = context;
    struct result *result = job_of(heard, done, '-');
    (void)err;
    result->done++;
    result->start = done->start;
    result->finish = done->finish;
    result->waited = done->waited;
    result->cost = *done->cost;
    if (!(done->finish >= heard->last))
        fail_msg("done at %.17g after %.17g", done->finish, heard->last);
    heard->last = done->finish;
    return true;
}

static inline bool
hear_start(void *context, const struct sim_done *done, const struct net *net,
           const uint32_t *servers, struct rec_error *err)
{
    (void)net, (void)servers, (void)err;
    job_of(context, done, '+')->start = done->start;
    return true;
}

static inline bool
hear_unfinished(void *context, const struct sim_done *done, double time,
                struct rec_error *err)
{
    struct result *result = job_of(context, done, '?');
    (void)time, (void)err;
    result->unfinished++;
    result->started = done->layout;
    result->cost = *done->cost;
    return true;
}

static inline bool
try_replay(const char *text, const struct sim_sharing *sharing, double exact,
           double until, struct heard *heard, struct rec_error *err)
{
    struct sim_replay_sink sink = {.done = hear_done,
                                   .unfinished = hear_unfinished,
                                   .started = hear_start,
                                   .context = heard};
    struct sim_replay *r = sim_replay_new(&sink, until, err);
    struct event_clock clock = {0};
    char *copy = tabs(text);
    struct rec_reader *reader = open_text(copy);
    struct rec rec;
    int status;
    bool ok;

    *heard = (struct heard){.last = 0};
    if (sharing)
        sim_replay_share(r, sharing, NULL, exact);
    ok = event_clock_add(&clock, &sim_replay_model, r, err);
    while (ok && (status = rec_next(reader, &rec, err)) > 0)
        ok = event_clock_take(&clock, reader, &rec, err) >= 0;
    ok = ok && event_clock_end(&clock, until, err);
    event_clock_free(&clock);
    sim_replay_free(r);
    close_text(reader);
    free(copy);
    return ok;
}

static inline void
replay(const char *text, const struct sim_sharing *sharing, double exact, double until,
       struct heard *heard)
{
    struct rec_error err = {.text = ""};
    seen.opened = seen.closed = 0;
    if (!try_replay(text, sharing, exact, until, heard, &err))
        fail_msg("%s", err.text);
    assert_int_equal(seen.opened, seen.closed);
}

static inline void
assert_close(double ours, double expected, double error)
{
    if (!(fabs(ours - expected) <= error * fmax(1, fabs(expected))))
        fail_msg("got %.17g, expected %.17g", ours, expected);
}

#endif
