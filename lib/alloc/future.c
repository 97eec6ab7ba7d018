/*
 * Futures on a small cluster. A row of the table has the alternatives of a kind of jobs
 * in a state of the cluster, each with the servers that it would take and the time of its
 * step. It is filled as the rule asks for them. Rows are found by open addressing in a
 * few neighbours; if all of these are used, one is overwritten, so memory is bounded.
 */
#include "future.h"
#include "private.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    LANES = 16,           /* futures that are played side by side */
    ROWS_BYTES = 1 << 28, /* of the table, at most */
    ROWS = 1 << 20,       /* the same */
    FIRST_ROWS = 1 << 8,  /* before it grows, at most */
    GROWTH = 16,          /* the factor by which it grows */
    PROBES = 4,           /* rows in which a state may be */
    LINE = 64             /* bytes that the processor reads at once */
};

/* An alternative. Of one that has not been tried both are 0. */
struct priced {
    uint64_t taken; /* bit s: it would take server s */
    double step;    /* time of a training step, seconds; INFINITY: it has no place */
};

struct row {
    uint64_t busy; /* bit s: server s is not free */
    uint32_t kind; /* the number of the job's, + 1; 0: the row is unused */
    /* Where a value decides, `priced` has this many alternatives - 1, each once and only
     * those that have a place; 0: they have not been listed. */
    uint32_t listed;
    struct priced priced[];
};

struct futures {
    struct pricer *pricer;            /* borrowed */
    const struct alloc_chooser *rule; /* that of the base; NULL: a value decides */
    uint32_t n, horizon, ways;
    char *rows; /* a table of entries of `row_bytes`, aligned to LINE in `space` */
    void *space;
    /* `nrows` is a power of two, or 0. It grows as rows are used, to `most_rows`. */
    size_t nrows, most_rows, nused, row_bytes;
    uint32_t wide;                   /* alternatives that a row has room for */
    struct value_option *option;     /* the same */
    const struct alloc_value *value; /* the last one that decided; NULL: none yet */
    struct value_sets *sets;         /* its own */
    struct lane start;               /* after the alternative of the job at hand */
    struct lane lane[LANES];
    /* After the first alternative, per future and job of it: the state before that job
     * arrives, and how many jobs are accepted from it on. */
    uint64_t *state;
    uint32_t *rest;
};

bool
futures_small(const struct alloc_admission_options *options)
{
    return net_servers(options->placer.net) <= 64 && options->queue == 0;
}

bool
futures_suit(const struct alloc_admission_options *options)
{
    return futures_small(options) && options->choosing->chooser->better;
}

struct futures *
futures_new(struct pricer *pricer, const struct alloc_choosing *base, uint32_t n,
            uint32_t horizon, struct rec_error *err)
{
    struct futures *f = calloc(1, sizeof *f);
    if (f) {
        f->pricer = pricer;
        f->rule = base ? base->chooser : NULL;
        f->n = n;
        f->horizon = horizon;
        f->ways = pricer_ways(pricer);
        f->state = calloc((size_t)n * horizon, sizeof *f->state);
        f->rest = calloc((size_t)n * horizon, sizeof *f->rest);
    }
    if (f && f->state && f->rest)
        return f;
    rec_fail_memory(err);
    futures_free(f);
    return NULL;
}

void
futures_free(struct futures *f)
{
    if (!f)
        return;
    free(f->space);
    free(f->option);
    value_sets_free(f->sets);
    free(f->state);
    free(f->rest);
    free(f);
}

/* ---- the table ----------------------------------------------------------- */

/* A table of this many rows, none of which is used. *space is what is to be freed. */
static char *
new_rows(size_t nrows, size_t row_bytes, void **space)
{
    *space = calloc(nrows * row_bytes + LINE, 1);
    return *space ? (char *)*space + (LINE - (uintptr_t)*space % LINE) % LINE : NULL;
}

/* Makes room for jobs with more alternatives than any before: the table begins anew. */
static bool
widen(struct futures *f, uint32_t wide, struct rec_error *err)
{
    struct value_option *option;
    if (wide <= f->wide)
        return true;
    if (!(option = realloc(f->option, wide * sizeof *option)))
        return rec_fail_memory(err);
    f->option = option;
    free(f->space);
    f->wide = wide;
    f->row_bytes = sizeof(struct row) + wide * sizeof(struct priced);
    f->row_bytes += (LINE - f->row_bytes % LINE) % LINE;
    for (f->most_rows = ROWS; f->most_rows > PROBES; f->most_rows /= 2)
        if (f->most_rows * f->row_bytes <= ROWS_BYTES)
            break;
    f->nrows = f->most_rows < FIRST_ROWS ? f->most_rows : FIRST_ROWS;
    f->nused = 0;
    f->rows = new_rows(f->nrows, f->row_bytes, &f->space);
    return f->rows || rec_fail_memory(err);
}

/* The first of the rows in which this may be. */
static inline struct row *
place_of(const struct futures *f, uint64_t busy, uint32_t kind)
{
    size_t i = rec_mix(busy ^ (uint64_t)kind << 48) & (f->nrows - PROBES);
    return (void *)(f->rows + i * f->row_bytes);
}

/* The row that has this, or the one that is to have it. */
static struct row *
look_up(const struct futures *f, uint64_t busy, uint32_t kind)
{
    struct row *first = place_of(f, busy, kind), *row = first;
    for (int i = 0; i < PROBES; i++) {
        row = (void *)((char *)first + (size_t)i * f->row_bytes);
        if (!row->kind || (row->busy == busy && row->kind == kind + 1))
            return row;
    }
    return first;
}

/* Makes the table larger. Without memory for that it stays as it is. */
static void
grow(struct futures *f)
{
    size_t before = f->nrows;
    size_t n = before * GROWTH < f->most_rows ? before * GROWTH : f->most_rows;
    const char *old = f->rows;
    void *space, *old_space = f->space;
    char *rows = new_rows(n, f->row_bytes, &space);
    if (!rows)
        return;
    f->space = space;
    f->rows = rows;
    f->nrows = n;
    for (size_t i = 0; i < before; i++) {
        const struct row *row = (const void *)(old + i * f->row_bytes);
        if (row->kind)
            memcpy(look_up(f, row->busy, row->kind - 1), row, f->row_bytes);
    }
    free(old_space);
}

static struct row *
find_row(struct futures *f, uint64_t busy, uint32_t kind)
{
    struct row *row = look_up(f, busy, kind);
    if (row->kind == kind + 1 && row->busy == busy)
        return row;
    f->nused += row->kind == 0;
    if (f->nused > f->nrows / 2 && f->nrows < f->most_rows) {
        grow(f);
        row = look_up(f, busy, kind);
    }
    memset(row, 0, f->row_bytes);
    row->busy = busy;
    row->kind = kind + 1;
    return row;
}

/* Tries alternative i of a job in the state of a row. */
static bool
price(const struct futures *f, const struct row *row, const struct kind *kind, uint32_t i,
      struct priced *p, struct rec_error *err)
{
    const struct trial *trial;
    size_t nwords;
    uint64_t differ = *pricer_taken(f->pricer, &nwords) ^ row->busy;
    for (; differ; differ &= differ - 1)
        pricer_take(f->pricer, (uint32_t)__builtin_ctzll(differ));
    if (!pricer_forget(f->pricer, err) ||
        !(trial = pricer_try_way(f->pricer, kind->known[i / f->ways], i % f->ways, err)))
        return false;
    *p = (struct priced){0, INFINITY};
    if (trial->outcome == PLACE_PLACED) {
        p->step = trial->cost.step.seconds;
        (void)pricer_mask(f->pricer, trial, &p->taken);
    }
    return true;
}

/* ---- a future ------------------------------------------------------------ */

/* Decides a job by the rule, and starts it if it takes an alternative. */
static bool
decide(struct futures *f, struct lane *lane, const struct coming *coming,
       struct rec_error *err)
{
    const struct past *job = coming->job;
    struct row *row = find_row(f, lane->busy, job->kind->number);
    struct alloc_alternative best = {.cause = "none"}, a = {.cause = NULL};
    uint64_t taken = 0;
    double limit = job->deadline * alloc_allowance;
    for (uint32_t i = 0, n = job->kind->nknown * f->ways; i < n; i++) {
        const struct priced *p = &row->priced[i];
        double time;
        if (!p->taken && p->step == 0 &&
            !price(f, row, job->kind, i, &row->priced[i], err))
            return false;
        time = p->step * job->steps;
        if (!(time <= limit) || isinf(p->step))
            continue;
        a.finish = coming->arrival + time;
        a.nservers = (uint32_t)__builtin_popcountll(p->taken);
        if (best.cause || f->rule->better(&a, &best)) {
            best = a;
            taken = p->taken;
        }
        if (f->rule->better == alloc_never_better)
            break;
    }
    if (best.cause)
        return true;
    if (!isfinite(best.finish))
        return rec_fail(err, REC_DATA, "a job would run longer than a number holds");
    lane->accepted++;
    lane_occupy(lane, taken, best.finish);
    return true;
}

/* Plays some futures side by side: each comes to its next job, and then all of them
 * decide it, when the rows that they need have come from memory. */
static bool
play_lanes(struct futures *f, uint32_t first, uint32_t n, const struct coming *coming,
           bool is_first, struct rec_error *err)
{
    struct lane *lanes[LANES]; /* those that are still being played */
    for (uint32_t i = 0; i < n; i++) {
        lanes[i] = &f->lane[i];
        memcpy(lanes[i], &f->start,
               offsetof(struct lane, stay) + f->start.nstays * sizeof(struct stay));
        lanes[i]->future = first + i;
    }
    for (uint32_t i = 0, on = n; i < f->horizon && on; i++) {
        for (uint32_t l = 0; l < on;) {
            struct lane *lane = lanes[l];
            size_t at = (size_t)lane->future * f->horizon + i;
            lane_pass(lane, coming[at].arrival);
            if (is_first) {
                f->state[at] = lane->state;
                f->rest[at] = lane->accepted;
            } else if (f->state[at] == lane->state) {
                lane->accepted += f->rest[at];
                lanes[l] = lanes[--on];
                continue;
            }
            __builtin_prefetch(place_of(f, lane->busy, coming[at].job->kind->number));
            l++;
        }
        for (uint32_t l = 0; l < on; l++)
            if (!decide(f, lanes[l], &coming[(size_t)lanes[l]->future * f->horizon + i],
                        err))
                return false;
    }
    return true;
}

/* The running jobs, and the one that takes the alternative. */
static void
begin(struct futures *f, const struct alloc_question *q, const struct tried *alternative)
{
    size_t nwords;
    f->start.nstays = f->start.accepted = 0;
    f->start.busy = *pricer_taken(q->pricer, &nwords);
    f->start.state = 0;
    for (size_t i = 0; i < q->nrunning; i++)
        if (q->running[i].runs)
            lane_occupy(&f->start, q->running[i].taken[0], q->running[i].finish);
    if (alternative)
        lane_occupy(&f->start, alternative->taken[0], alternative->alternative.finish);
}

bool
futures_play(struct futures *f, const struct alloc_question *q,
             const struct tried *alternative, const struct coming *coming, bool is_first,
             uint64_t *accepted, struct rec_error *err)
{
    begin(f, q, alternative);
    *accepted = alternative ? f->n : 0;
    for (size_t i = 0; is_first && i < (size_t)f->n * f->horizon; i++)
        if (!widen(f, coming[i].job->kind->nknown * f->ways, err))
            return false;
    for (uint32_t first = 0; first < f->n; first += LANES) {
        uint32_t n = f->n - first < LANES ? f->n - first : LANES;
        if (!play_lanes(f, first, n, coming, is_first, err))
            return false;
        for (uint32_t l = 0; l < n; l++) {
            const struct lane *lane = &f->lane[l];
            uint32_t *rest = f->rest + (size_t)lane->future * f->horizon;
            *accepted += lane->accepted;
            for (uint32_t i = 0; is_first && i < f->horizon; i++)
                rest[i] = lane->accepted - rest[i];
        }
    }
    return true;
}

/* ---- with a value -------------------------------------------------------- */

bool
futures_know(struct futures *f, const struct kind *kind, struct rec_error *err)
{
    return widen(f, kind->nknown * f->ways, err);
}

/* Lists the alternatives of a row. */
static bool
list(const struct futures *f, struct row *row, const struct kind *kind,
     struct rec_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < kind->nknown * f->ways; i++) {
        struct priced way;
        uint32_t j = 0;
        if (!price(f, row, kind, i, &way, err))
            return false;
        while (j < n &&
               (row->priced[j].taken != way.taken || row->priced[j].step != way.step))
            j++;
        if (j == n && !isinf(way.step))
            row->priced[n++] = way;
    }
    row->listed = n + 1;
    return true;
}

bool
futures_options(struct futures *f, const struct lane *lane, const struct kind *kind,
                double steps, double deadline, const struct value_option **option,
                uint32_t *n, struct rec_error *err)
{
    struct row *row = find_row(f, lane->busy, kind->number);
    uint32_t found = 0;
    if (!row->listed && !list(f, row, kind, err))
        return false;
    for (uint32_t i = 0; i + 1 < row->listed; i++) {
        const struct priced *p = &row->priced[i];
        if (p->step * steps <= deadline * alloc_allowance)
            f->option[found++] = (struct value_option){p->taken, p->step * steps};
    }
    *option = f->option;
    *n = found;
    return true;
}

void
lane_look(const struct lane *lane, double now, uint32_t left, struct value_sets *sets,
          struct value_state *state)
{
    uint64_t down = lane->busy;
    value_empty(sets, left, state);
    for (uint32_t i = 0; i < lane->nstays; i++) {
        const struct stay *stay = &lane->stay[i];
        value_add(sets, state, stay->taken, stay->finish - now);
        down &= ~stay->taken;
    }
    value_add(sets, state, down, INFINITY);
}

/* Adds what a future is worth from its first job on. */
static bool
play_valued(struct futures *f, struct lane *lane, const struct coming *coming,
            const struct alloc_value *value, bool is_told, double *worth,
            struct rec_error *err)
{
    double factor = value->discount;
    for (uint32_t i = 0; i < f->horizon; i++, coming++, factor *= value->discount) {
        const struct past *job = coming->job;
        const struct value_option *option;
        struct value_state state;
        uint32_t n, chosen;
        double best;
        lane_pass(lane, coming->arrival);
        if (!futures_options(f, lane, job->kind, job->steps, job->deadline, &option, &n,
                             err))
            return false;
        lane_look(lane, coming->arrival, is_told ? coming->left : 0, f->sets, &state);
        chosen = value_choose(f->sets, &state, option, n, &best);
        if (i + 1 == f->horizon)
            *worth += factor * best;
        else if (chosen < n)
            lane_occupy(lane, option[chosen].taken,
                        coming->arrival + option[chosen].seconds);
        else
            *worth -= factor;
    }
    return true;
}

bool
futures_worth(struct futures *f, const struct alloc_question *q,
              const struct tried *alternative, const struct coming *coming,
              const struct alloc_value *value, bool is_told, double *worth,
              struct rec_error *err)
{
    if (f->value != value) {
        value_sets_free(f->sets);
        f->value = NULL;
        if (!(f->sets = value_sets_new(value, pricer_net(f->pricer), err)))
            return false;
        f->value = value;
    }
    value_sets_work(f->sets, q->features->mean_work);
    begin(f, q, alternative);
    *worth = 0;
    for (size_t i = 0; i < (size_t)f->n * f->horizon; i++)
        if (!futures_know(f, coming[i].job->kind, err))
            return false;
    for (uint32_t i = 0; i < f->n; i++) {
        struct lane *lane = &f->lane[0];
        memcpy(lane, &f->start,
               offsetof(struct lane, stay) + f->start.nstays * sizeof(struct stay));
        if (!play_valued(f, lane, coming + (size_t)i * f->horizon, value, is_told, worth,
                         err))
            return false;
    }
    *worth = *worth / f->n - (alternative ? 0 : 1);
    return true;
}
