/*
 * The loop of a run: it reads tasks, starts ready ones, and waits for events.
 *
 *     read_input() --- waits for other tasks --- ready --- run_start_ready() --- ends
 *                                                 ^                               |
 *                                                 +-- its next attempt, or tasks -+
 *                                                     that have waited for it
 *
 * The loop has one thread and never blocks but in run_pool_wait(): input, results and
 * the ends of processes are all events there. After bad input no more tasks are started,
 * and running ones may finish. After a signal or an I/O error running ones are ended.
 * Either way the loop goes on until nothing runs, so that no task outlives the run.
 */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

/* Records that are read at once, before ready tasks are started. Many, because the order
 * of starting is better the more of the graph is known; fewer for a client, because the
 * other clients wait meanwhile. */
enum { BATCH_RECORDS = 1 << 16, CLIENT_BATCH_RECORDS = 1 << 12 };
/* The time between two looks at the results of Slurm's jobs, seconds. */
#define JOBS_TICK 0.1

/* ---- stopping ------------------------------------------------------------ */

/* Stops reading and starting. The first error is the reason that is reported: later ones
 * are mostly its consequences. */
static void
fail(struct run *run)
{
    if (!run->failed)
        run->first = *run->err;
    run->failed = run->stopped = run->ended = true;
}

void
run_end_running(struct run *run)
{
    struct run_pool *pool = run->pool;
    run->stopped = true;
    if (run->ending)
        return;
    run->ending = true;
    /* a deadline that has passed: run_pool_wait() sends SIGTERM, and SIGKILL later */
    for (size_t i = 0; i < pool->nslots; i++)
        if (pool->slot[i].task != REC_NONE && pool->slot[i].run == run &&
            !pool->slot[i].warned)
            pool->slot[i].deadline = 0;
}

void
run_give_up(struct run *run)
{
    fail(run);
    run_end_running(run);
}

/* ---- input --------------------------------------------------------------- */

/* Checks the results that a task reads: each must belong to a task that stands before
 * this one, for else it could never come. */
static bool
check_results(struct run *run, const struct task *task)
{
    for (size_t i = 0; i < task->reads.n; i++) {
        const char *kind, *name = task->reads.name[i];
        struct rec_str id = task_output(name, &kind);
        if (id.ptr && strcmp(kind, "result") == 0 && !run_find_output(run, name, &kind))
            return rec_reader_fail(
                run->reader, run->err,
                "'%.300s' is not the result of a task in front of task '%s', which "
                "reads it",
                name, task->id);
    }
    return true;
}

/* Checks whether a task can be run at all: one that needs more cores or memory than there
 * are would wait for ever. */
static bool
check_needs(struct run *run, const struct task *task)
{
    const struct run_options *o = run->options;
    const char *kind;
    const struct run_task *from;
    if (task->cores > o->cores)
        return rec_reader_fail(run->reader, run->err,
                               "task '%s' needs %u cores, but there are only %u",
                               task->id, task->cores, o->cores);
    if (task->memory > o->memory)
        return rec_reader_fail(
            run->reader, run->err,
            "task '%s' needs %.15g bytes of memory, but there are only %.15g", task->id,
            task->memory, o->memory);
    if (!check_results(run, task))
        return false;
    if (!task->standard_input || *task->standard_input != '@')
        return true;
    from = run_find_output(run, task->standard_input, &kind);
    if (!from || strcmp(kind, "result") == 0)
        return rec_reader_fail(
            run->reader, run->err,
            "'%s' is not the output of a task in front of task '%s': stdin= must be a "
            "file, @ID.stdout or @ID.stderr",
            task->standard_input, task->id);
    return o->logs ||
           (strcmp(kind, "stdout") == 0 ? from->standard_output : from->standard_error) ||
           rec_reader_fail(
               run->reader, run->err,
               "the %s of task '%s' is needed, but not kept: give the task %s=FILE, or "
               "the run a folder for the output of tasks",
               kind, from->id, kind);
}

/* Finds a task that has failed, because of which there is nothing to read for the next
 * one: a fence leaves no edge between them. */
static bool
find_cause(struct run *run, uint32_t *cause)
{
    const struct task_names *reads = &run->task.reads;
    *cause = REC_NONE;
    if (run->tally->failed + run->tally->skipped == 0)
        return true;
    for (size_t i = 0; i < reads->n && *cause == REC_NONE; i++) {
        const struct task_edge *writers;
        size_t n;
        if (!task_hazards_writers(run->hazards, reads->name[i], &writers, &n, run->err))
            return false;
        for (size_t k = 0; k < n && *cause == REC_NONE; k++) {
            const struct run_task *from = &run->graph.task[writers[k].src];
            if (from->state == RUN_FAILED)
                *cause = from->cause == REC_NONE ? writers[k].src : from->cause;
        }
    }
    return true;
}

/* A task that waits for none is ready, unless one whose output it reads has failed. */
static bool
make_ready(struct run *run, uint32_t number)
{
    struct run_task *task = &run->graph.task[number];
    if (task->cause == REC_NONE)
        return run_graph_push(&run->graph, number, run->err);
    task->state = RUN_FAILED;
    run->tally->skipped++;
    run_put_end(run, number, 0, run_now(run), 0, NULL);
    return true;
}

static bool
take_task(struct run *run, const struct rec *rec)
{
    const struct task_edge *edges;
    struct run_task *task;
    size_t n;
    uint64_t hash;
    uint32_t number = (uint32_t)run->graph.n, cause;
    if (!task_read(&run->task, run->reader, rec, run->err) ||
        !check_needs(run, &run->task) ||
        !task_streams_take(&run->streams, &run->task, run->err))
        return false;
    if (!run_log_access(run, &run->task) || !find_cause(run, &cause))
        return false;
    if (!task_hazards_add(run->hazards, &run->task, &edges, &n, run->err))
        return rec_locate(run->reader, run->err);
    if (!run_graph_add(&run->graph, &run->task, rec->line, run_now(run), run->err) ||
        !run_graph_link(&run->graph, edges, n, run->err))
        return false;
    task = &run->graph.task[number];
    task->cause = task->cause == REC_NONE ? cause : task->cause;
    if (!rec_map_add(&run->ids, rec_str(task->id), number, run->err))
        return false;
    run->tally->known++;
    if (run->options->resume) { /* resume() starts it, when all tasks are known */
        if (!run_task_hash(&run->task, &hash, run->err))
            return false;
        run_journal_recall(&run->log, task, hash);
        return true;
    }
    if (task->waits > 0)
        return true;
    return make_ready(run, number);
}

bool
run_take(struct run *run, const struct rec *rec)
{
    if (rec->type == REC_TASK)
        return take_task(run, rec);
    if (rec->type == REC_FENCE) {
        task_hazards_fence(run->hazards);
        run->fenced = true;
        return rec_need(run->reader, rec, run->err);
    }
    if (rec->type == REC_CLIENT && run->pool->serves)
        return rec_reader_fail(
            run->reader, run->err,
            "a client record may come only once, before all other records");
    rec_put_line(run->writer, rec->line);
    return true;
}

/* Called when the input has been read up to a fence or its end: tasks that an earlier run
 * has finished are done, the others become ready or wait. All states are set before the
 * first run_graph_end(), which otherwise would make finished tasks ready. */
static bool
resume(struct run *run)
{
    struct run_graph *graph = &run->graph;
    size_t first = run->resumed;
    if (!run_resume(run))
        return false;
    for (size_t i = first; i < graph->n; i++)
        if (graph->task[i].finished) {
            graph->task[i].state = RUN_DONE;
            run->tally->before++;
            /* a client waits for the record of each task, the reader of a call for its
             * result */
            if ((graph->task[i].call || run->pool->serves) &&
                !run_repeat(run, (uint32_t)i))
                return false;
        } else {
            run->anew = true;
            if (graph->task[i].waits == 0 && graph->task[i].cause == REC_NONE &&
                !make_ready(run, (uint32_t)i))
                return false;
        }
    for (size_t i = first; i < graph->n; i++) {
        const struct run_task *t = &graph->task[i];
        bool skipped = t->state == RUN_WAITS && t->waits == 0 && t->cause != REC_NONE;
        if ((skipped && !make_ready(run, (uint32_t)i)) ||
            ((skipped || t->finished) && !run_settle(run, (uint32_t)i)))
            return false;
    }
    run->resumed = graph->n;
    run->resumed_edges = graph->nedges;
    return true;
}

/* Have all tasks so far ended, so that nothing more happens unless new tasks come? */
static bool
is_settled(const struct run *run)
{
    if (run->tally->running > 0)
        return false;
    return run->jobs ? run_jobs_all_submitted(run)
                     : run->npauses == 0 && run->graph.nready == 0;
}

/* The connection of a client broke before its #end. Its tasks go on or are cancelled, as
 * the options say. In a resumed run, tasks that resume() has not seen yet are always
 * cancelled: without the whole list nobody knows which of them must run. */
static void
lose(struct run *run)
{
    run->gone = run->ended = true;
    run->first = *run->err;
    if (run->options->cancel || (run->options->resume && run->graph.n > run->resumed))
        run_end_running(run);
}

/* Reads the input that has come, up to a fence; what follows a fence is not read before
 * all tasks in front of it have ended. Bad input sets ->failed but returns true: running
 * tasks may finish. */
static bool
read_input(struct run *run)
{
    bool serves = run->pool->serves;
    size_t batch = serves ? CLIENT_BATCH_RECORDS : BATCH_RECORDS, i;
    int status = 1;
    if (run->fenced && !is_settled(run))
        return true;
    run->fenced = false;
    for (i = 0; i < batch && status == 1 && !run->fenced; i++) {
        struct rec rec;
        status = rec_try_next(run->reader, &rec, run->err);
        if (status == 1 && serves && rec.type == REC_MARK)
            status = 0; /* #end: the client has sent all, but keeps the connection */
        else if (status < 0 && serves && run->err->code == REC_IO) {
            lose(run);
            return true;
        } else if (status == 1 && !run_take(run, &rec))
            status = -1;
    }
    run->unread = status == 1;
    if (status < 0)
        fail(run);
    run->ended = status <= 0;
    return status < 0 || !run->options->resume || !(run->ended || run->fenced) ||
           resume(run);
}

/* ---- waiting ------------------------------------------------------------- */

/* Seconds until the first pause before a new attempt is over. */
static double
next_pause(const struct run *run)
{
    double next = INFINITY;
    for (size_t i = 0; i < run->npauses; i++)
        next = fmin(next, run->pause[i].until);
    return next - run_now(run);
}

double
run_next(const struct run *run)
{
    double left = run->npauses ? next_pause(run) : INFINITY;
    if (!run->ended && (run->fenced ? is_settled(run) : run->unread))
        return 0;
    return run->jobs ? fmin(left, JOBS_TICK) : left;
}

bool
run_listens(const struct run *run)
{
    return !run->ended && !run->fenced;
}

static bool
wait_for_events(struct run *run)
{
    double left = fmin(run_next(run), 1); /* at least once a second, to show progress */
    struct pollfd input = {-1, POLLIN, 0};
    if (run_listens(run) && (input.fd = rec_reader_descriptor(run->reader)) < 0)
        left = 0;
    rec_writer_flush(run->writer);
    rec_writer_probe(run->writer);
    if (!run->ending && !rec_writer_ok(run->writer, run->err))
        return false;
    if (!run_pool_wait(run->pool, left, &input, 1, run->err))
        return false;
    if (run->pool->signals > 0) {
        run->ended = true;
        run_end_running(run);
    }
    if (run->pool->signals > 1 &&
        run->jobs) /* the second signal: do not wait for Slurm */
        run_jobs_leave(run);
    return true;
}

bool
run_is_over(const struct run *run)
{
    return run->ended && (run->stopped ? run->tally->running == 0 : is_settled(run));
}

/* A resumed run starts nothing before it knows all tasks up to a fence: only then
 * run_resume() can say which of them need not run. Slurm starts jobs itself. */
bool
run_may_start(const struct run *run)
{
    return !run->jobs && (run->ended || run->fenced || !run->options->resume);
}

bool
run_prepare(struct run *run)
{
    if (!run->ended && !read_input(run))
        return false;
    /* weights cost time in proportion to the graph: computed each time that it has grown
     * by a quarter, they cost O(n) in all */
    if (run->graph.n > run->graph.weighed &&
        (run->ended || run->graph.n >= run->graph.weighed + run->graph.weighed / 4))
        run_graph_weigh(&run->graph);
    return run->jobs ? run_jobs_step(run) : !run_may_start(run) || run_wake(run);
}

static bool
step(struct run *run)
{
    size_t started;
    if (!run_prepare(run) ||
        (run_may_start(run) && !run_start_ready(run, SIZE_MAX, &started)))
        return false;
    run->tally->open = !run->ended;
    run->options->tell(run->options->context, run->tally);
    return run_is_over(run) || wait_for_events(run);
}

void
run_put_not_started(struct run *run)
{
    for (size_t i = 0; i < run->graph.n && !run->failed && !run->pool->signal; i++)
        if (run->graph.task[i].state == RUN_WAITS) {
            run->graph.task[i].state = RUN_FAILED;
            run->tally->skipped++;
            run_put_end(run, (uint32_t)i, 0, run_now(run), 0, NULL);
        }
}

static void
loop(struct run *run)
{
    while (!run_is_over(run))
        if (!step(run))
            run_give_up(run);
    run_put_not_started(run);
    rec_writer_flush(run->writer); /* now, for workers may take long to exit */
    if (!run_pool_empty(run->pool, run->err))
        fail(run);
}

/* ---- the whole ----------------------------------------------------------- */

void
run_init(struct run *run, struct run_pool *pool, const struct run_options *options)
{
    run->pool = pool;
    run->options = options;
    run->head = REC_NONE;
    run->log.fd = run->log.lock = -1;
}

bool
run_open(struct run *run)
{
    run->origin = run_seconds(CLOCK_MONOTONIC);
    run->began = round(1e6 * run_seconds(CLOCK_REALTIME)) / 1e6;
    if (!run_log_open(&run->log, run->pool, run->options, run->err) ||
        !(run->hazards = task_hazards_new(run->err)))
        return false;
    run->gathers = (struct task_gathers){&run->graph, true, run_graph_gather};
    if (!run->options->runner) /* Slurm knows no gathers: a job waits for jobs only */
        task_hazards_gather(run->hazards, &run->gathers);
    return true;
}

void
run_free(struct run *run)
{
    free(run->pause);
    run_jobs_close(run);
    run_graph_free(&run->graph);
    run_log_close(&run->log);
    run_access_free(&run->access);
    rec_map_free(&run->ids);
    task_free(&run->task);
    task_hazards_free(run->hazards);
    task_streams_free(&run->streams);
}

bool
run_tasks(const struct run_options *options, struct rec_reader *reader,
          struct rec_writer *writer, struct run_tally *tally, int *signal_number,
          struct rec_error *err)
{
    struct sigaction plain = {.sa_handler = SIG_DFL}, before;
    struct run_pool pool;
    struct run run = {.reader = reader, .writer = writer, .err = err, .tally = tally};
    bool ok;

    *signal_number = 0;
    *tally = (struct run_tally){0};
    run_init(&run, &pool, options);
    ok = run_pool_open(&pool, options, options->log != NULL, err) && run_open(&run);
    if (ok) {
        /* if our parent ignored SIGCHLD, we inherit that, and wait() would fail */
        sigaction(SIGCHLD, &plain, &before);
        ok = run_watch_signals(&pool, err) && (!options->runner || run_jobs_open(&run));
        if (ok)
            loop(&run);
        if (run.failed)
            *err = run.first;
        ok = ok && !run.failed;
        sigaction(SIGCHLD, &before, NULL);
        *signal_number = pool.signal;
        sigprocmask(SIG_SETMASK, &pool.launch.mask, NULL);
    }
    run_free(&run);
    run_pool_close(&pool);
    return ok;
}
