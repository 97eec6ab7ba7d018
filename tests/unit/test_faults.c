/*
 * Stragglers and faults: random plans over one link, against a plain simulation of every
 * step that knows nothing of layouts, costs and companies.
 *
 *     server ai -> s -> t -> server bi
 *
 * Job i computes on ai, sends over the link from s to t to bi, and computes there. The
 * links of the servers are wide, but a fault may make the first of them narrower than its
 * share of the common one, or let it fail.
 */
#include "buses.h"

enum { FAULTS = 12 };
#define WIDE 1000.
#define COMMON 10.
#define LAST 400. /* when all links are well again, for good */

struct task {
    double speed[2], delay[2]; /* of its servers */
    double compute[2], bytes;
    double start;
    int steps;
    /* while it is simulated: */
    enum { WAITS, COMPUTES, TRAVELS, SENDS, ENDS, OVER } phase;
    double until; /* of a phase that ends by itself, seconds */
    double left;  /* bytes */
    double rate;
    double finish;
};

struct plan {
    struct task task[JOBS];
    int n;
    double latency; /* of the link from s to t */
    struct {
        double time, factor;
        int link; /* 0: from s to t; 1: from a0 to s */
    } fault[FAULTS];
    int nfaults;
};

/* ---- plainly ----------------------------------------------------------------- */

/* Max-min rates: all share the common link but for the first task, which may have
 * less. */
static void
set_rates(struct plan *plan, const double capacity[2])
{
    double all = capacity[0], share;
    int n = 0;
    for (int i = 0; i < plan->n; i++)
        n += plan->task[i].phase == SENDS;
    share = all / n;
    if (plan->task[0].phase == SENDS && capacity[1] < share)
        share = n > 1 ? (all - capacity[1]) / (n - 1) : all;
    for (int i = 0; i < plan->n; i++)
        plan->task[i].rate = i == 0 ? fmin(share, capacity[1]) : share;
    if (plan->task[0].phase == SENDS && capacity[1] < all / n)
        plan->task[0].rate = capacity[1];
}

static double
length(const struct task *task, int which)
{
    return task->delay[which] + task->compute[which] / task->speed[which];
}

/* The phase of a task has ended, at `time`. */
static void
go_on(const struct plan *plan, struct task *task, double time)
{
    if (task->phase == WAITS || (task->phase == ENDS && --task->steps > 0)) {
        task->phase = COMPUTES;
        task->until = time + length(task, 0);
    } else if (task->phase == COMPUTES) {
        task->phase = TRAVELS;
        task->until = time + plan->latency;
    } else if (task->phase == TRAVELS) {
        task->phase = SENDS;
        task->until = INFINITY;
        task->left = task->bytes;
    } else if (task->phase == SENDS) {
        task->phase = ENDS;
        task->until = time + length(task, 1);
    } else {
        task->phase = OVER;
        task->until = INFINITY;
        task->finish = time;
    }
}

static void
run_plainly(struct plan *plan)
{
    double capacity[2] = {COMMON, WIDE}, now = 0;
    int fault = 0, over = 0;
    for (int i = 0; i < plan->n; i++) {
        plan->task[i].phase = WAITS;
        plan->task[i].until = plan->task[i].start;
    }
    while (over < plan->n) {
        double next = fault < plan->nfaults ? plan->fault[fault].time : INFINITY;
        set_rates(plan, capacity);
        for (int i = 0; i < plan->n; i++) {
            const struct task *task = &plan->task[i];
            next = fmin(next, task->until);
            if (task->phase == SENDS && task->rate > 0)
                next = fmin(next, now + task->left / task->rate);
        }
        for (int i = 0; i < plan->n; i++) {
            struct task *task = &plan->task[i];
            if (task->phase == SENDS)
                task->left -= task->rate * (next - now);
            if (task->until <= next ||
                (task->phase == SENDS && task->left <= 1e-12 * task->bytes))
                go_on(plan, task, next);
        }
        now = next;
        while (fault < plan->nfaults && plan->fault[fault].time <= now) {
            capacity[plan->fault[fault].link] =
                (plan->fault[fault].link ? WIDE : COMMON) * plan->fault[fault].factor;
            fault++;
        }
        over = 0;
        for (int i = 0; i < plan->n; i++)
            over += plan->task[i].phase == OVER;
    }
}

/* ---- by the replay ------------------------------------------------------------- */

static struct sim_flows *flows;

static bool
share(void *self, const struct sim_member *a, const struct sim_member *b)
{
    (void)self;
    return sim_flows_sharing.shares(flows, a, b);
}

static bool
use(void *self, const struct sim_member *member, uint32_t link)
{
    (void)self;
    return sim_flows_sharing.uses(flows, member, link);
}

/* The records of a plan, jobs in order of their start. */
static char *
write_plan(const struct plan *plan)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fprintf(out, "cluster custom ");
    for (int i = 0; i < plan->n; i++)
        fprintf(out, "%sa%d,b%d", i ? "," : "", i, i);
    fprintf(out, " inf\nlink s t %.17g %.17g both=1\n", COMMON, plan->latency);
    for (int i = 0; i < plan->n; i++)
        fprintf(out, "link a%d s %g 0 both=1\nlink b%d t %g 0 both=1\n", i, WIDE, i,
                WIDE);
    for (int i = 0; i < 2 * plan->n; i++) {
        const struct task *task = &plan->task[i / 2];
        if (task->speed[i % 2] < 1 || task->delay[i % 2] > 0)
            fprintf(out, "server %c%d speed=%.17g delay=%.17g\n", "ab"[i % 2], i / 2,
                    task->speed[i % 2], task->delay[i % 2]);
    }
    for (int i = 0; i < plan->nfaults; i++)
        fprintf(out, "fault %.17g %s %.17g\n", plan->fault[i].time,
                plan->fault[i].link ? "a0 s" : "s t", plan->fault[i].factor);
    for (int i = 0; i < plan->n; i++) {
        const struct task *task = &plan->task[i];
        fprintf(out,
                "graph %c m\nop %c x task %.17g 0\nop %c y task %.17g 0\n"
                "dep %c x y %.17g\nlayout %c %c 2\nplace %c x 0\nplace %c y 1\n",
                'a' + i, 'a' + i, task->compute[0], 'a' + i, task->compute[1], 'a' + i,
                task->bytes, 'a' + i, 'a' + i, 'a' + i, 'a' + i);
    }
    for (int i = 0; i < plan->n; i++)
        fprintf(out, "job %c %c %.17g %d inf\nalloc %c %c %c %.17g a%d,b%d\n", 'a' + i,
                'a' + i, plan->task[i].start, plan->task[i].steps, 'a' + i, 'a' + i,
                'a' + i, plan->task[i].start, i, i);
    assert_int_equal(fclose(out), 0);
    return text;
}

static double
some(double from, double to)
{
    return from + (to - from) * (double)draw(1u << 30) / (1u << 30);
}

/* Times on a grid now and then, so that faults, starts and ends meet. */
static double
some_time(double to)
{
    return draw(2) ? (double)draw((uint32_t)to + 1) : some(0, to);
}

static struct plan
random_plan(int most)
{
    static const double factors[] = {0, 0.25, 0.5, 1};
    struct plan plan = {.n = 1 + (int)draw((uint32_t)most),
                        .nfaults = (int)draw(FAULTS - 1),
                        .latency = draw(2) ? 0 : 0.5};
    double now = 0;
    for (int i = 0; i < plan.n; i++) {
        struct task *task = &plan.task[i];
        *task = (struct task){.start = now, .bytes = 10 * (1 + draw(5))};
        task->steps = 1 + (int)draw(draw(4) ? 4 : 30);
        for (int k = 0; k < 2; k++) {
            task->compute[k] = draw(2) ? 1 + draw(3) : some(0.1, 4);
            task->speed[k] = draw(3) ? 1 : 0.5;
            task->delay[k] = draw(3) ? 0 : 0.5;
        }
        now += draw(2) ? some_time(20) : 0;
    }
    for (int i = 0; i < plan.nfaults; i++) { /* sorted, each at a time of its own */
        double time = some_time(60);
        int k = i;
        for (; k > 0 && plan.fault[k - 1].time > time; k--)
            plan.fault[k] = plan.fault[k - 1];
        plan.fault[k].time = time;
        plan.fault[k].link = (int)draw(2);
        /* the common link has at least 5 bytes/s or nothing, the other one at least 3 */
        plan.fault[k].factor =
            plan.fault[k].link ? (draw(3) ? (double)draw(2) : 0.003) : factors[draw(4)];
    }
    for (int i = 1; i < plan.nfaults; i++)
        if (plan.fault[i].time <= plan.fault[i - 1].time)
            plan.fault[i].time = plan.fault[i - 1].time + 0.25;
    for (int link = 0; link < 2; link++, plan.nfaults++) {
        plan.fault[plan.nfaults].time = LAST + link;
        plan.fault[plan.nfaults].link = link;
        plan.fault[plan.nfaults].factor = 1;
    }
    return plan;
}

static void
check_plan(struct plan *plan, double exact, double error)
{
    struct sim_sharing row = sim_flows_sharing;
    struct rec_error err = {.text = ""};
    struct heard heard;
    char *text = write_plan(plan);
    row.shares = share;
    row.uses = use;
    flows = sim_flows_new(&err);
    assert_non_null(flows);
    run_plainly(plan);
    if (!try_replay(text, &row, exact, INFINITY, &heard, &err))
        fail_msg("%s\n%s", err.text, text);
    for (int i = 0; i < plan->n; i++) {
        double ours = heard.of[i].finish, expected = plan->task[i].finish;
        if (!(heard.of[i].done == 1 && fabs(ours - expected) <= error * expected))
            fail_msg("job %c ends at %.17g, not at %.17g:\n%s", 'a' + i, ours, expected,
                     text);
    }
    sim_flows_free(flows);
    free(text);
}

static void
test_random(void **state)
{
    (void)state;
    random_state = 1;
    for (int i = 0; i < 2000; i++) {
        struct plan plan = random_plan(4);
        check_plan(&plan, INFINITY, 1e-9);
    }
}

/* A job that is alone is simulated exactly, whatever its number of steps: only the steps
 * in which links change are, all others are alike. */
static void
test_alone(void **state)
{
    (void)state;
    random_state = 2;
    for (int i = 0; i < 1500; i++) {
        struct plan plan = random_plan(1);
        plan.task[0].steps *= 1 + (int)draw(20);
        check_plan(&plan, i % 2 ? 0 : SIM_COMPANY_EXACT, 1e-9);
    }
}

/* Mean steps of hundreds: of 1235 jobs the median is off by 0.2 %, 9 of 10 by less than
 * 1 %, the worst by 16 %, which is what companies are off without faults. */
static void
test_mean(void **state)
{
    (void)state;
    random_state = 3;
    for (int i = 0; i < 40; i++) {
        struct plan plan = random_plan(4);
        for (int k = 0; k < plan.n; k++)
            plan.task[k].steps = 100 + (int)draw(200);
        check_plan(&plan, 0, 0.2);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
