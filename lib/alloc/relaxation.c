/*
 * An upper bound of how many jobs could start: the linear program of alloc.h. Which
 * alternative each job takes is an integer program; its relaxation, in which a job may
 * start in parts, is solved by the simplex of GLPK, and the integer program itself by its
 * branch and bound (lib/linear).
 */
#include "question.h"

#include "rampipe/linear.h"

#include <math.h>
#include <stdlib.h>

/* The lower bounds of a graph, once they are known: jobs share graphs. */
struct need {
    bool known;
    struct floor floor;
};

/* A column of the program: a job on an alternative that would meet the deadline. */
struct choice {
    uint32_t job;     /* its number among the able jobs */
    uint32_t arrival; /* index in instant[] */
    uint32_t servers; /* at least */
    double finish;    /* at the earliest, seconds */
};

struct alloc_relaxation {
    struct alloc_relaxation_options options;
    struct graph_store *store; /* borrowed */
    struct pricer *pricer;
    struct need *need; /* per graph */
    size_t nneeds, need_room;
    double *instant; /* distinct arrivals of able jobs, ascending, seconds */
    size_t ninstants, instant_room;
    struct choice *choice; /* job after job */
    size_t nchoices, choice_room;
    uint64_t jobs;    /* that have arrived */
    uint32_t able;    /* jobs that have a choice */
    uint32_t servers; /* in service */
};

struct alloc_relaxation *
alloc_relaxation_new(const struct alloc_relaxation_options *options,
                     struct graph_store *store, struct rec_error *err)
{
    struct alloc_relaxation *r = calloc(1, sizeof *r);
    if (!r) {
        rec_fail_memory(err);
        return NULL;
    }
    r->options = *options;
    r->store = store;
    r->servers = net_servers(options->placer.net);
    if (!(r->pricer =
              pricer_new(&r->options.placer, store, SIM_LAYOUTS_MAX_ALLOC, false, err))) {
        alloc_relaxation_free(r);
        return NULL;
    }
    for (uint32_t i = 0; i < options->ndown; i++)
        if (place_is_free(pricer_vacancy(r->pricer), options->down[i])) {
            pricer_set_down(r->pricer, options->down[i]);
            r->servers--;
        }
    return r;
}

void
alloc_relaxation_free(struct alloc_relaxation *r)
{
    if (!r)
        return;
    pricer_free(r->pricer);
    free(r->need);
    free(r->instant);
    free(r->choice);
    free(r);
}

/* ---- jobs ---------------------------------------------------------------- */

/* Adds an alternative of a job, if it can be placed and would meet the deadline. */
static bool
add_choice(struct alloc_relaxation *r, const struct graph_job *job, uint32_t index,
           struct rec_error *err)
{
    struct need *need;
    double seconds;
    if (!rec_grow(&r->need, &r->need_room, r->store->ngraphs, sizeof *r->need, err))
        return false;
    while (r->nneeds < r->store->ngraphs)
        r->need[r->nneeds++] = (struct need){.known = false};
    need = &r->need[index];
    if (!need->known && !pricer_floor(r->pricer, index, &need->floor, err))
        return false;
    need->known = true;
    seconds = need->floor.step * job->steps;
    if (need->floor.servers == 0 || need->floor.servers > r->servers ||
        seconds > job->deadline * alloc_allowance)
        return true;
    if (!rec_grow(&r->choice, &r->choice_room, r->nchoices + 1, sizeof *r->choice, err))
        return false;
    r->choice[r->nchoices++] =
        (struct choice){.servers = need->floor.servers, .finish = job->arrival + seconds};
    return true;
}

static int
by_servers(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    if (x->servers != y->servers)
        return x->servers < y->servers ? -1 : 1;
    return (x->finish > y->finish) - (x->finish < y->finish);
}

/* Removes the choices of a job that another one beats: with at most as many servers, it
 * finishes at least as early. The optimum stays the same, and the program is smaller. */
static void
keep_best(struct alloc_relaxation *r, size_t first)
{
    size_t n = first;
    qsort(r->choice + first, r->nchoices - first, sizeof *r->choice, by_servers);
    for (size_t i = first; i < r->nchoices; i++)
        if (n == first || r->choice[i].finish < r->choice[n - 1].finish)
            r->choice[n++] = r->choice[i];
    r->nchoices = n;
}

bool
alloc_relaxation_arrive(struct alloc_relaxation *r, const struct graph_job *job,
                        struct rec_error *err)
{
    struct rec_str rest = job->graphs, id;
    size_t first = r->nchoices;
    uint32_t index;

    while (rec_str_split(&rest, ',', &id))
        if (!question_find(r->store, job, id, &index, err) ||
            !add_choice(r, job, index, err))
            return false;
    r->jobs++;
    if (r->nchoices == first)
        return true;
    keep_best(r, first);
    if (r->ninstants == 0 || r->instant[r->ninstants - 1] < job->arrival) {
        if (!rec_grow(&r->instant, &r->instant_room, r->ninstants + 1, sizeof *r->instant,
                      err))
            return false;
        r->instant[r->ninstants++] = job->arrival;
    }
    for (size_t i = first; i < r->nchoices; i++) {
        r->choice[i].job = r->able;
        r->choice[i].arrival = (uint32_t)r->ninstants - 1;
    }
    r->able++;
    return rec_limit(&r->options.limit, (double)r->nchoices, "alternatives", err);
}

/* ---- the program --------------------------------------------------------- */

/* The first instant at which a choice no longer runs; ninstants if there is none. */
static uint32_t
end_of(const struct alloc_relaxation *r, const struct choice *choice)
{
    uint32_t low = choice->arrival, high = (uint32_t)r->ninstants;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->instant[middle] < choice->finish)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * In the program of alloc.h a column has an entry in the row of each arrival while its
 * job runs, which may be thousands. Here the servers that are free after instant t are a
 * column of their own, free[t], and the row of an instant says how they change:
 *     free[t] - free[t - 1] + servers taken at t - servers given back by t = 0,
 * where free[-1] is the number of all servers. So a column has three entries at most.
 * Rows: one for each instant, then one for each able job, whose shares add up to at most
 * 1. Columns: free[t], then the choices. The search starts where no job is started and
 * all servers are free, which is feasible.
 */
static void
fill_program(const struct alloc_relaxation *r, struct linear_row *row,
             struct linear_column *column, struct linear_entry *entry,
             struct linear_program *program)
{
    uint32_t instants = (uint32_t)r->ninstants;
    size_t n = 0;

    for (uint32_t t = 0; t < instants; t++) {
        double before = t == 0 ? r->servers : 0;
        row[t] = (struct linear_row){before, before, t};
        column[t] = (struct linear_column){0, r->servers};
        entry[n++] = (struct linear_entry){t, t, 1};
        if (t + 1 < instants)
            entry[n++] = (struct linear_entry){t + 1, t, -1};
    }
    for (uint32_t j = 0; j < r->able; j++)
        row[instants + j] = (struct linear_row){-INFINITY, 1, LINEAR_OWN};
    for (uint32_t i = 0; i < r->nchoices; i++) {
        const struct choice *choice = &r->choice[i];
        uint32_t end = end_of(r, choice), c = instants + i;
        column[c] = (struct linear_column){1, 1};
        entry[n++] = (struct linear_entry){instants + choice->job, c, 1};
        if (end > choice->arrival)
            entry[n++] = (struct linear_entry){choice->arrival, c, choice->servers};
        if (end > choice->arrival && end < instants)
            entry[n++] = (struct linear_entry){end, c, -(double)choice->servers};
    }
    *program = (struct linear_program){
        row, column, entry, instants + r->able, instants + r->nchoices, n};
}

/* ---- whole jobs ---------------------------------------------------------- */

struct guesser {
    const struct alloc_relaxation *r;
    const double *x; /* per choice: of the optimum of a node */
    uint32_t *order; /* choices */
    uint32_t *used;  /* servers per instant */
    bool *starts;    /* per job */
};

/* The largest share first; of equal ones that with the least servers * time. */
static int
by_share(const void *a, const void *b, void *context)
{
    const struct guesser *g = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct choice *x = &g->r->choice[i], *y = &g->r->choice[j];
    const double *instant = g->r->instant;
    double p, q;
    if (g->x[i] != g->x[j])
        return g->x[i] > g->x[j] ? -1 : 1;
    p = x->servers * (x->finish - instant[x->arrival]);
    q = y->servers * (y->finish - instant[y->arrival]);
    return p != q ? (p < q ? -1 : 1) : (i > j) - (i < j);
}

/* Starts whole jobs in the order of their shares, as long as there are servers. */
static void
guess(void *context, const double *x, double *value)
{
    struct guesser *g = context;
    const struct alloc_relaxation *r = g->r;
    g->x = x + r->ninstants;
    memset(g->used, 0, r->ninstants * sizeof *g->used);
    memset(g->starts, 0, r->able * sizeof *g->starts);
    memset(value, 0, (r->ninstants + r->nchoices) * sizeof *value);
    qsort_r(g->order, r->nchoices, sizeof *g->order, by_share, g);
    for (size_t i = 0; i < r->nchoices; i++) {
        const struct choice *choice = &r->choice[g->order[i]];
        uint32_t end = end_of(r, choice);
        bool fits = !g->starts[choice->job];
        for (uint32_t t = choice->arrival; fits && t < end; t++)
            fits = g->used[t] + choice->servers <= r->servers;
        if (!fits)
            continue;
        g->starts[choice->job] = true;
        value[r->ninstants + g->order[i]] = 1;
        for (uint32_t t = choice->arrival; t < end; t++)
            g->used[t] += choice->servers;
    }
    for (size_t t = 0; t < r->ninstants; t++)
        value[t] = r->servers - g->used[t];
}

static bool
solve_whole(const struct alloc_relaxation *r, const struct linear_program *program,
            struct alloc_relaxed *relaxed, struct rec_error *err)
{
    struct guesser g = {.r = r};
    struct linear_whole_options options = {.first = (uint32_t)r->ninstants,
                                           .nodes = r->options.nodes,
                                           .guess = guess,
                                           .context = &g};
    struct linear_whole whole;
    bool ok;
    g.order = calloc(r->nchoices, sizeof *g.order);
    g.used = calloc(r->ninstants, sizeof *g.used);
    g.starts = calloc(r->able, sizeof *g.starts);
    ok = g.order && g.used && g.starts;
    if (!ok)
        rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < r->nchoices; i++)
        g.order[i] = i;
    ok = ok && linear_solve_whole(program, &options, &whole, err);
    if (ok) {
        relaxed->whole = (uint64_t)whole.bound;
        relaxed->found = (uint64_t)fmax(whole.found, 0);
        relaxed->nodes = whole.nodes;
    }
    free(g.order);
    free(g.used);
    free(g.starts);
    return ok;
}

bool
alloc_relaxation_solve(const struct alloc_relaxation *r, struct alloc_relaxed *relaxed,
                       struct rec_error *err)
{
    size_t columns = r->ninstants + r->nchoices;
    struct linear_row *row = calloc(r->ninstants + r->able + 1, sizeof *row);
    struct linear_column *column = calloc(columns + 1, sizeof *column);
    struct linear_entry *entry = calloc(3 * columns + 1, sizeof *entry);
    struct linear_program program;
    bool ok = row && column && entry;

    *relaxed =
        (struct alloc_relaxed){.jobs = r->jobs, .able = r->able, .servers = r->servers};
    if (!ok)
        rec_fail_memory(err);
    else if (r->nchoices) {
        fill_program(r, row, column, entry, &program);
        ok = linear_solve(&program, &relaxed->accepted, err) &&
             (r->options.nodes == 0 || solve_whole(r, &program, relaxed, err));
        relaxed->accepted = round(relaxed->accepted * 1e6) / 1e6;
    }
    free(row);
    free(column);
    free(entry);
    return ok;
}
