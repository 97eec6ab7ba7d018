/*
 * Companies, jobs that share links: random plans, compared with a plain simulation of
 * every step of all jobs (brute()), which uses nothing of lib/sim.
 */
#include "buses.h"

enum { OPS = 6, SLOTS = 3, GRAPHS = 3 };

/* ---- every step of all, plainly -------------------------------------------- */

struct shape {
    uint32_t nops, nslots;
    double compute[OPS];
    uint32_t slot[OPS];
    double bytes[OPS][OPS]; /* of the dep from i to j > i; 0: no such dep */
};

struct plan {
    struct shape shape[GRAPHS];
    uint32_t njobs;
    struct planned {
        uint32_t shape, server[SLOTS];
        double alloc, steps;
    } job[JOBS];
};

/* What brute() knows of a job. */
struct progress {
    bool started, over;
    double start, finish, left; /* left: steps, with the one that runs */
    double remaining[OPS];
    bool ended[OPS];
    double flight[OPS][OPS]; /* bytes that are on their way; 0: none */
    bool arrived[OPS][OPS];
};

static bool
is_ready(const struct shape *s, const struct progress *p, uint32_t op)
{
    if (!p->started || p->over || p->ended[op])
        return false;
    for (uint32_t i = 0; i < op; i++)
        if (s->bytes[i][op] > 0 && !p->arrived[i][op])
            return false;
    return true;
}

/* On each slot the shortest ready op runs. */
static bool
is_running(const struct shape *s, const struct progress *p, uint32_t op)
{
    if (!is_ready(s, p, op))
        return false;
    for (uint32_t i = 0; i < s->nops; i++)
        if (s->slot[i] == s->slot[op] && s->compute[i] < s->compute[op] &&
            is_ready(s, p, i))
            return false;
    return true;
}

static void
begin_step(const struct shape *s, struct progress *p)
{
    memcpy(p->remaining, s->compute, sizeof p->remaining);
    memset(p->ended, 0, sizeof p->ended);
    memset(p->arrived, 0, sizeof p->arrived);
}

static bool
step_is_over(const struct shape *s, const struct progress *p)
{
    for (uint32_t i = 0; i < s->nops; i++) {
        if (!p->ended[i])
            return false;
        for (uint32_t j = 0; j < s->nops; j++)
            if (p->flight[i][j] > 0)
                return false;
    }
    return true;
}

static uint32_t
bus_from(const struct plan *plan, uint32_t job, uint32_t op)
{
    const struct planned *j = &plan->job[job];
    return bus_of(j->server[plan->shape[j->shape].slot[op]]);
}

/* Batches on a bus. */
static double
load(const struct plan *plan, const struct progress *all, uint32_t bus)
{
    double n = 0;
    for (uint32_t k = 0; k < plan->njobs; k++)
        for (uint32_t i = 0; i < OPS; i++)
            for (uint32_t j = 0; j < OPS; j++)
                n += all[k].flight[i][j] > 0 && bus_from(plan, k, i) == bus;
    return n;
}

/* A job starts when no job before it in the plan has one of its servers. */
static bool
is_free(const struct plan *plan, const struct progress *all, uint32_t job)
{
    for (uint32_t k = 0; k < job; k++)
        for (uint32_t i = 0; i < SLOTS; i++)
            for (uint32_t j = 0; j < SLOTS && !all[k].over; j++)
                if (plan->job[k].server[i] == plan->job[job].server[j] &&
                    plan->job[k].server[i] < SERVERS)
                    return false;
    return true;
}

/* Ends what takes no more time, and starts jobs whose time has come. */
static void
settle(const struct plan *plan, struct progress *all, double now)
{
    for (uint32_t k = 0; k < plan->njobs; k++) {
        struct progress *p = &all[k];
        const struct shape *s = &plan->shape[plan->job[k].shape];
        if (!p->started && plan->job[k].alloc <= now && is_free(plan, all, k)) {
            p->started = true;
            p->start = now;
            p->left = plan->job[k].steps;
            begin_step(s, p);
        }
        for (uint32_t i = 0; p->started && i < s->nops; i++)
            if (!p->ended[i] && p->remaining[i] == 0) {
                p->ended[i] = true;
                for (uint32_t j = 0; j < s->nops; j++)
                    if (s->bytes[i][j] > 0 && s->slot[i] == s->slot[j])
                        p->arrived[i][j] = true;
                    else
                        p->flight[i][j] = s->bytes[i][j];
            }
        if (p->started && !p->over && step_is_over(s, p)) {
            p->over = --p->left == 0;
            p->finish = now;
            if (!p->over)
                begin_step(s, p);
            settle(plan, all, now);
            return;
        }
    }
}

/* Simulates every step of all jobs on one clock. */
static void
brute(const struct plan *plan, struct progress *all)
{
    double now = 0;
    memset(all, 0, JOBS * sizeof *all);
    for (;;) {
        double dt = INFINITY;
        settle(plan, all, now);
        for (uint32_t k = 0; k < plan->njobs; k++) {
            const struct shape *s = &plan->shape[plan->job[k].shape];
            if (!all[k].started && plan->job[k].alloc > now)
                dt = fmin(dt, plan->job[k].alloc - now);
            for (uint32_t i = 0; i < s->nops; i++) {
                if (is_running(s, &all[k], i))
                    dt = fmin(dt, all[k].remaining[i]);
                for (uint32_t j = 0; j < s->nops; j++)
                    if (all[k].flight[i][j] > 0)
                        dt = fmin(dt, all[k].flight[i][j] *
                                          load(plan, all, bus_from(plan, k, i)));
            }
        }
        if (isinf(dt))
            return;
        {
            double share[RACKS];
            struct progress before[JOBS];
            memcpy(before, all, sizeof before);
            for (uint32_t b = 0; b < RACKS; b++)
                share[b] = load(plan, all, b);
            for (uint32_t k = 0; k < plan->njobs; k++) {
                const struct shape *s = &plan->shape[plan->job[k].shape];
                for (uint32_t i = 0; i < s->nops; i++) {
                    double *left = &all[k].remaining[i];
                    if (is_running(s, &before[k], i))
                        *left = *left <= dt ? 0 : *left - dt;
                    for (uint32_t j = 0; j < s->nops; j++) {
                        double n = share[bus_from(plan, k, i)];
                        left = &all[k].flight[i][j];
                        if (*left == 0)
                            continue;
                        all[k].arrived[i][j] = *left * n <= dt;
                        *left = *left * n <= dt ? 0 : *left - dt / n;
                    }
                }
            }
        }
        {
            double next = now + dt;
            for (uint32_t k = 0; k < plan->njobs; k++)
                if (!all[k].started && plan->job[k].alloc > now &&
                    plan->job[k].alloc - now <= dt)
                    next = plan->job[k].alloc;
            now = next;
        }
    }
}

/* ---- random plans ---------------------------------------------------------- */

static double
uniform(double from, double to)
{
    return from + (to - from) * draw(1u << 30) / (1u << 30);
}

static struct shape
random_shape(double time, double bytes)
{
    struct shape s = {.nops = 2 + draw(OPS - 1), .nslots = 1 + draw(SLOTS)};
    for (uint32_t i = 0; i < s.nops; i++) {
        s.compute[i] = time * uniform(0.1, 2);
        s.slot[i] = draw(s.nslots);
        for (uint32_t j = i + 1; j < s.nops; j++)
            if (draw(2))
                s.bytes[i][j] = bytes * uniform(0.1, 2);
    }
    return s;
}

/* The time of a step of one job that is alone. */
static double
step_alone(const struct plan *plan, uint32_t job)
{
    struct plan one = *plan;
    struct progress all[JOBS];
    one.job[0] = plan->job[job];
    one.job[0].alloc = 0;
    one.job[0].steps = 1;
    one.njobs = 1;
    brute(&one, all);
    return all[0].finish;
}

/* A plan by lone times: a server is given again when its job would have ended alone. */
static struct plan
random_plan(double steps)
{
    struct plan plan = {.njobs = 2 + draw(JOBS - 1)};
    double free_at[SERVERS] = {0}, now = 0, scale = uniform(0.2, 2);
    for (uint32_t g = 0; g < GRAPHS; g++)
        plan.shape[g] = random_shape(1, scale);
    for (uint32_t k = 0; k < plan.njobs; k++) {
        struct planned *job = &plan.job[k];
        double alone;
        job->shape = draw(GRAPHS);
        job->steps = 1 + floor(uniform(0, steps));
        now += draw(3) ? uniform(0, 3) : 0;
        for (uint32_t i = 0; i < SLOTS; i++)
            job->server[i] = SERVERS; /* none */
        for (uint32_t i = 0; i < plan.shape[job->shape].nslots; i++) {
            do
                job->server[i] = draw(SERVERS);
            while ((i > 0 && job->server[i] == job->server[0]) ||
                   (i > 1 && job->server[i] == job->server[1]));
            now = fmax(now, free_at[job->server[i]]);
        }
        job->alloc = now;
        alone = step_alone(&plan, k);
        for (uint32_t i = 0; i < plan.shape[job->shape].nslots; i++)
            free_at[job->server[i]] = now + alone * job->steps * (1 + 1e-12);
    }
    return plan;
}

/* The plan as records. */
static char *
write_plan(const struct plan *plan)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs(CLUSTER, out);
    for (uint32_t g = 0; g < GRAPHS; g++) {
        const struct shape *s = &plan->shape[g];
        fprintf(out, "graph g%u m\n", g);
        for (uint32_t i = 0; i < s->nops; i++)
            fprintf(out, "op g%u %u forward %.17g 0\n", g, i, s->compute[i]);
        for (uint32_t i = 0; i < s->nops; i++)
            for (uint32_t j = 0; j < s->nops; j++)
                if (s->bytes[i][j] > 0)
                    fprintf(out, "dep g%u %u %u %.17g\n", g, i, j, s->bytes[i][j]);
        fprintf(out, "layout l%u g%u %u\n", g, g, s->nslots);
        for (uint32_t i = 0; i < s->nops; i++)
            fprintf(out, "place l%u %u %u\n", g, i, s->slot[i]);
    }
    for (uint32_t k = 0; k < plan->njobs; k++) {
        const struct planned *job = &plan->job[k];
        fprintf(out, "job %c g%u %.17g %.17g inf\n", 'a' + k, job->shape, job->alloc,
                job->steps);
        fprintf(out, "alloc %c g%u l%u %.17g ", 'a' + k, job->shape, job->shape,
                job->alloc);
        for (uint32_t i = 0; i < plan->shape[job->shape].nslots; i++)
            fprintf(out, "%s%u-%u-%u", i ? "," : "", job->server[i] / (RACKS * PLACES),
                    bus_of(job->server[i]), job->server[i] % PLACES);
        fputc('\n', out);
    }
    fclose(out);
    return text;
}

/*
 * Random plans, of which every step of all jobs is simulated: starts and finishes are
 * those of brute(), and so is the mean step. Work is conserved: servers are as busy in a
 * step as its ops are long.
 */
static void
test_exact(void **state)
{
    int shared = 0, waited = 0;
    (void)state;
    random_state = 1;
    for (int round = 0; round < 200; round++) {
        struct plan plan = random_plan(12);
        struct progress all[JOBS];
        struct heard heard;
        char *text = write_plan(&plan);
        brute(&plan, all);
        replay(text, &buses_sharing, INFINITY, INFINITY, &heard);
        for (uint32_t k = 0; k < plan.njobs; k++) {
            const struct result *result = &heard.of[k];
            const struct shape *s = &plan.shape[plan.job[k].shape];
            double work = 0, alone = step_alone(&plan, k);
            for (uint32_t i = 0; i < s->nops; i++)
                work += s->compute[i];
            assert_int_equal(result->done, 1);
            assert_close(result->start, all[k].start, 1e-12);
            assert_close(result->finish, all[k].finish, 1e-12);
            assert_close(result->waited, all[k].start - plan.job[k].alloc, 1e-12);
            assert_close(result->cost.step.seconds * plan.job[k].steps,
                         result->finish - result->start, 1e-12);
            assert_close(result->cost.step.busy, work, 1e-12);
            shared += result->cost.step.seconds > alone * 1.01;
            waited += result->waited > 0;
        }
        free(text);
    }
    assert_true(shared > 100 && waited > 20);
}

/*
 * The same with longer jobs, whose ends are reckoned from mean steps: how far the time
 * that a job takes is off if it was slowed, in plans of up to 7 jobs on two buses. The
 * bounds are what rampipe/sim.h says.
 */
static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void
check_mean(double steps, double exact, double median, double most, double worst)
{
    double error[60 * JOBS];
    size_t n = 0;
    for (int round = 0; round < 60; round++) {
        struct plan plan = random_plan(steps);
        struct heard truth, heard;
        char *text = write_plan(&plan);
        replay(text, &buses_sharing, INFINITY, INFINITY, &truth);
        replay(text, &buses_sharing, exact, INFINITY, &heard);
        for (uint32_t k = 0; k < plan.njobs; k++) {
            const struct result *a = &truth.of[k], *b = &heard.of[k];
            double takes = a->finish - a->start;
            assert_int_equal(b->done, 1);
            assert_close(b->cost.step.seconds * plan.job[k].steps, b->finish - b->start,
                         1e-9);
            if (takes > 1.001 * step_alone(&plan, k) * plan.job[k].steps)
                error[n++] = fabs(b->finish - b->start - takes) / takes;
        }
        free(text);
    }
    assert_true(n >= 25);
    qsort(error, n, sizeof *error, by_size);
    if (error[n / 2] > median || error[n * 9 / 10] > most || error[n - 1] > worst)
        fail_msg("errors of %zu jobs: median %g, 9 of 10 %g, worst %g", n, error[n / 2],
                 error[n * 9 / 10], error[n - 1]);
}

static void
test_mean_error(void **state)
{
    (void)state;
    random_state = 7;
    check_mean(300, 0, 0.002, 0.02, 0.2);
    check_mean(300, SIM_COMPANY_EXACT, 0.002, 0.02, 0.2);
    check_mean(1000, 0, 0.002, 0.02, 0.2);
    check_mean(SIM_COMPANY_EXACT, SIM_COMPANY_EXACT, 0, 0, 0); /* all are exact */
}

/* ---- a courier by which each batch takes its time alone, as without one ---- */

static bool
own_send(void *self, uint64_t batch, uint32_t dep, uint32_t exchange, double time,
         struct rec_error *err)
{
    struct buses *b = self;
    const struct sim_member *member = b->member;
    const struct graph_exchange *e;
    struct net_exchange one;
    double seconds;
    uint32_t ends[2];
    (void)dep;
    while (member->number != batch >> 32)
        assert_true(++member < b->member + b->nmembers);
    e = &member->layout->exchanges.exchange[exchange];
    assert_true(e->kind == GRAPH_MESSAGE && b->n < FLIGHTS);
    for (int i = 0; i < 2; i++)
        ends[i] =
            member->servers[member->layout->exchanges.member[e->first + (uint32_t)i]];
    one = (struct net_exchange){e->kind, ends, 2, e->bytes, e->flow};
    if (!net_alone(member->net, &one, 1, &seconds, err))
        return false;
    /* `left` is the time at which it arrives, seconds */
    b->flight[b->n++] = (struct flight){batch, 0, time + seconds};
    return true;
}

static double
own_next(void *self)
{
    const struct buses *b = self;
    double least = INFINITY;
    for (uint32_t i = 0; i < b->n; i++)
        least = fmin(least, b->flight[i].left);
    return least;
}

static bool
own_advance(void *self, double time, sim_arrived *arrived, void *context,
            struct rec_error *err)
{
    struct buses *b = self;
    (void)err;
    for (uint32_t i = b->n; i-- > 0;)
        if (b->flight[i].left == time) {
            uint64_t batch = b->flight[i].batch;
            b->flight[i] = b->flight[--b->n];
            arrived(context, batch);
        }
    return true;
}

static bool
own_take(void *carrier, const struct sim_member *member, void *from, double time,
         struct rec_error *err)
{
    struct buses *b = carrier, *other = from;
    (void)time, (void)err;
    assert_true(b->nmembers < JOBS);
    b->member[b->nmembers++] = *member;
    for (uint32_t i = 0; other && i < other->n; i++)
        if (other->flight[i].batch >> 32 == member->number)
            b->flight[b->n++] = other->flight[i];
    return true;
}

static bool
all_share(void *self, const struct sim_member *a, const struct sim_member *b)
{
    (void)self, (void)a, (void)b;
    return true;
}

static bool
none_share(void *self, const struct sim_member *a, const struct sim_member *b)
{
    (void)self, (void)a, (void)b;
    return false;
}

static const struct sim_courier own_row = {"own", sim_key_by_exchange, own_send, own_next,
                                           own_advance};
static const struct sim_sharing own_alone = {
    "own", &own_row, none_share, buses_open, own_take, buses_close, NULL, NULL, NULL};
static const struct sim_sharing own_together = {
    "own", &own_row, all_share, buses_open, own_take, buses_close, NULL, NULL, NULL};

/* A courier by which nobody slows anybody: the results are those without a sharing, to
 * the bit where each job is treated alone; and nearly where all of them are simulated
 * together, or their means. */
static void
test_nobody_slows(void **state)
{
    (void)state;
    random_state = 3;
    for (int round = 0; round < 50; round++) {
        struct plan plan = random_plan(30);
        struct heard plain, alone, together, mean;
        char *text;
        for (uint32_t g = 0; g < GRAPHS; g++)
            for (uint32_t i = 0; i < OPS; i++)
                for (uint32_t j = 0; j < OPS; j++)
                    plan.shape[g].bytes[i][j] *= 4e11; /* half a second a byte */
        text = write_plan(&plan);
        replay(text, NULL, 0, INFINITY, &plain);
        replay(text, &own_alone, INFINITY, INFINITY, &alone);
        replay(text, &own_together, INFINITY, INFINITY, &together);
        replay(text, &own_together, 0, INFINITY, &mean);
        assert_memory_equal(&alone, &plain, sizeof plain);
        for (uint32_t k = 0; k < plan.njobs; k++) {
            assert_close(together.of[k].finish, plain.of[k].finish, 1e-12);
            assert_close(together.of[k].cost.step.comm, plain.of[k].cost.step.comm,
                         1e-12);
            assert_close(mean.of[k].finish, plain.of[k].finish, 1e-12);
        }
        free(text);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_mean_error),
        cmocka_unit_test(test_nobody_slows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
