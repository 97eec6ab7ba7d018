/*
 * Which tasks of an earlier run must run again, so that in the end all files are as if
 * the list had been run from its beginning, on the files that are there now.
 *
 * A task that has finished stays finished if
 *   - each name that it read had been written by the tasks that the list says, in their
 *     last turns, and by nobody else since;
 *   - each name of which it is the last writer in the list is as the task left it;
 *   - all tasks that must come before it had ended before it began, and stay finished.
 * A task that runs again must find its inputs as the list says. If somebody else has
 * overwritten one since, the tasks that write it in the list run again, too. If no task
 * of the list writes it, the input is lost, and the run is refused; except for a file
 * that did not exist before the run, which is simply removed (given.c).
 */
#include "turns.h"

#include <stdlib.h>
#include <sys/stat.h>

/* ---- turns --------------------------------------------------------------- */

/* The last turn of a task; REC_NONE: it has had none. */
static uint32_t
turn_of(const struct run *run, uint32_t task)
{
    uint32_t logged = run->graph.task[task].logged;
    return logged == REC_NONE ? REC_NONE : run->log.logged[logged].turn;
}

/* Was it the last turn of one of the tasks that write this name before it is read? */
static bool
is_turn_of_any(const struct run *run, uint32_t turn, const struct run_name *name)
{
    uint32_t task = run_turn_task(run, turn);
    return task != REC_NONE && turn_of(run, task) == turn &&
           run_list_has(name->source, task);
}

/* Has a file that a task wrote in this turn been lost? If the log has a later state,
 * run_verify_files() has compared it. Otherwise only its existence can be checked. */
static bool
is_gone(const struct run *run, const char *name, uint32_t turn)
{
    uint32_t at = rec_map_get(&run->log.names, rec_str(name));
    struct stat status;
    if (at != REC_NONE && run->log.file[at].seen && run->log.file[at].turn > turn)
        return false;
    return !run->options->unchecked && stat(name, &status) != 0;
}

/* ---- what stays finished -------------------------------------------------- */

/* For a turn whose output was read as `name`, although no source of the name wrote it: do
 * tasks of the list write that object? Then it was read too early or too late, and not
 * as the list says. */
static bool
find_remade(const struct run *run, uint32_t turn, const struct run_name *name,
            bool *remade)
{
    *remade = false;
    if (run_turn_is_change(run, turn) ||
        !(run_turn_is_stranger(run, turn) || run_turn_task(run, turn) != REC_NONE))
        return true;
    for (const char *write = run->log.turn[turn].writes; !*remade && *write;
         write += strlen(write) + 1)
        if (task_overlap(write, name->text) &&
            !run_find_writer(run, name->below ? write : name->text, remade))
            return false;
    return true;
}

/* When a task read a name, had exactly the sources of the list written it, in their last
 * turns? `then`: the turns that had written it. Other turns are allowed only where they
 * wrote objects that the list does not write. */
static bool
check_sources(const struct run *run, const struct run_name *name, struct run_list then,
              bool *right)
{
    *right = true;
    for (uint32_t i = 0; i < name->source.n; i++) {
        uint32_t turn = turn_of(run, name->source.value[i]);
        *right = *right && turn != REC_NONE && run_list_has(then, turn);
    }
    for (uint32_t i = 0; *right && i < then.n; i++) {
        bool remade;
        if (is_turn_of_any(run, then.value[i], name))
            continue;
        if (!find_remade(run, then.value[i], name, &remade))
            return false;
        *right = !remade && (name->below || name->source.n == 0);
        for (uint32_t k = 0; k < name->source.n; k++)
            *right = *right && !run_turn_writes_same(run, then.value[i], name->text,
                                                     name->source.value[k]);
    }
    return true;
}

/* Would a finished task read the same now as it did? `then`: the turns that had written
 * the name when it began. Turns since then matter only if they are not its sources: those
 * are put right, or run again, by themselves. */
static bool
check_read(const struct run *run, uint32_t task, const struct run_name *name,
           struct run_list then, bool *right)
{
    uint32_t at =
        name->below ? rec_map_get(&run->log.names, rec_str(name->text)) : REC_NONE;
    const struct task_edge *now;
    size_t nnow;
    bool written;
    if (!check_sources(run, name, then, right))
        return false;
    if (at != REC_NONE && run->log.file[at].turn > turn_of(run, task))
        *right = false; /* a file of the folder that no task makes has changed since */
    if (!*right)
        return true;
    if (!run_find_writer(run, name->text, &written) ||
        !run_find_last(run, name->text, &now, &nnow))
        return false;
    for (size_t i = 0; i < nnow; i++) {
        uint32_t turn = now[i].src;
        if (run_list_has(then, turn) || turn < turn_of(run, task))
            continue;
        if (run_turn_is_change(run, turn)
                ? !run->log.turn[turn].same && (name->source.n == 0 || name->below)
                : name->source.n == 0 && !written && run->log.turn[turn].finished)
            *right = false;
    }
    return true;
}

/* If a task is the last one of the list to write a name: is that still as it left it? */
static bool
check_write(const struct run *run, uint32_t task, const struct run_name *name,
            bool *right)
{
    uint32_t own = turn_of(run, task);
    const struct task_edge *last;
    bool found = false, others = false;
    size_t n;
    *right = true;
    if (!task_hazards_writers(run->hazards, name->text, &last, &n, run->err))
        return false;
    for (size_t i = 0; i < n; i++)
        found = found || last[i].src == task;
    if (!found)
        return true;
    if (!run_find_last(run, name->text, &last, &n))
        return false;
    found = false;
    for (size_t i = 0; i < n; i++) {
        found = found || last[i].src == own;
        others = others ||
                 (last[i].src > own &&
                  (run_turn_is_stranger(run, last[i].src) ||
                   (!name->below && (run->ended || run_turn_is_change(run, last[i].src) ||
                                     run_turn_task(run, last[i].src) != REC_NONE))));
    }
    if (!run->ended && !found && !others) /* the task that wrote it may still come */
        return true;
    *right = found && !others &&
             (name->below || *name->text == '@' || !is_gone(run, name->text, own));
    return true;
}

/* Is everything that a finished task read and wrote still right? */
static bool
check_task(const struct run *run, uint32_t task, bool *right)
{
    const struct run_access *a = &run->access.task[task];
    const struct run_log *log = &run->log;
    size_t source = log->logged[run->graph.task[task].logged].source;
    *right = true;
    for (uint32_t i = 0; *right && i < a->nreads; i++) {
        struct run_name name = run_name_of(run, task, i);
        if (!check_read(run, task, &name, run_lists_get(&log->source, source + i), right))
            return false;
    }
    for (uint32_t i = 0; *right && i < a->nwrites; i++) {
        struct run_name name = run_name_of(run, task, a->nreads + i);
        if (!check_write(run, task, &name, right))
            return false;
    }
    return true;
}

/* ---- what runs again ------------------------------------------------------- */

/* Is the output of a task's last turn still there? `last`: the turns that wrote what the
 * name holds now; `others`: those of them that are no sources of the name. */
static bool
is_there(const struct run *run, uint32_t task, const char *name, struct run_list last,
         struct run_list others)
{
    uint32_t turn = turn_of(run, task);
    bool there = run_list_has(last, turn);
    for (uint32_t i = others.n; there && i-- > 0 && others.value[i] > turn;)
        there = !run_turn_writes_same(run, others.value[i], name, task);
    return there;
}

/* Is what a task printed, and another reads as @ID.stdout, in the folder of logs as the
 * task left it? There are no file records of these files. So the file must have changed
 * last while the task ran: the folder may be another one now, or another run's, too. */
static bool
is_printed(const struct run *run, uint32_t task, const char *name, bool *kept)
{
    const struct run_task *t = &run->graph.task[task];
    const struct run_logged *logged = &run->log.logged[t->logged];
    const char *kind;
    struct rec_str id = task_output(name, &kind);
    char *path;
    *kept = true;
    if (!run->options->logs || !rec_str_is(id, t->id) || strcmp(kind, "result") == 0 ||
        (strcmp(kind, "stdout") == 0 ? t->standard_output : t->standard_error))
        return true;
    if (!(path = run_log_file(run->options->logs, t->id, kind)))
        return rec_fail_memory(run->err);
    *kept = run_changed_within(path, logged->since, logged->until);
    free(path);
    return true;
}

/* Marks a task as not finished, and puts it on the work list of choose(), once. */
static void
run_again(struct run *run, uint32_t task, size_t *n)
{
    struct run_task *t = run_graph_node(&run->graph, task);
    if (t->finished)
        run->graph.stack[(*n)++] = task;
    t->finished = false;
}

/* For a name that a task will read: each finished source whose output is not there any
 * more runs again. That is impossible for a task in front of a fence that has been
 * passed: all that came after it would have to run again as well. */
static bool
renew_sources(struct run *run, uint32_t task, const struct run_name *name,
              struct run_list last, struct run_list others, size_t *n)
{
    for (uint32_t k = 0; k < name->source.n; k++) {
        uint32_t source = name->source.value[k];
        bool kept;
        if (!run->graph.task[source].finished)
            continue;
        if (!is_printed(run, source, name->text, &kept))
            return false;
        if (kept && is_there(run, source, name->text, last, others))
            continue;
        if (source < run->resumed)
            return rec_fail(
                run->err, REC_DATA,
                "%s: task '%s' must run again, but '%s', which it reads, has been "
                "overwritten, and task '%s', which writes it, stands in front of a "
                "fence that has been passed: begin without this log",
                run->log.path, run->graph.task[task].id, name->text,
                run->graph.task[source].id);
        run_again(run, source, n);
    }
    return true;
}

/* Does that for all names that a task reads. `last` holds the last turns and, behind
 * them, those that are no sources of the name. */
static bool
renew_inputs(struct run *run, uint32_t task, size_t *n)
{
    const struct run_access *a = &run->access.task[task];
    bool ok = true;
    for (uint32_t i = 0; ok && i < a->nreads; i++) {
        struct run_name name = run_name_of(run, task, i);
        const struct task_edge *now;
        uint32_t *last, nothers = 0;
        size_t nlast;
        if (name.source.n == 0)
            continue;
        if (!run_find_last(run, name.text, &now, &nlast))
            return false;
        if (!(last = malloc((2 * nlast + 1) * sizeof *last)))
            return rec_fail_memory(run->err);
        for (size_t k = 0; k < nlast; k++) {
            last[k] = now[k].src;
            if (!is_turn_of_any(run, last[k], &name))
                last[nlast + nothers++] = last[k];
        }
        ok = renew_sources(run, task, &name, (struct run_list){(uint32_t)nlast, last},
                           (struct run_list){nothers, last + nlast}, n);
        free(last);
    }
    return ok;
}

/* A task that began before all tasks that it must wait for had ended, as the list is now,
 * may have read too early: it is not finished. A gather has ended with the latest of the
 * tasks that it waits for; edges come in the order in which these times are known. */
static bool
check_ends(struct run *run)
{
    const struct run_graph *graph = &run->graph;
    uint64_t *latest = calloc(graph->ngathers + 1, sizeof *latest); /* end before each */
    bool ok = latest || rec_fail_memory(run->err);
    for (size_t i = run->resumed_edges; ok && i < graph->nedges; i++) {
        uint32_t from = graph->edge[i].src, to = graph->edge[i].dst;
        const struct run_task *src = run_graph_node(graph, from);
        struct run_task *dst = run_graph_node(graph, to);
        uint64_t end = from & TASK_GATHER ? latest[from & ~TASK_GATHER]
                       : src->finished    ? run->log.logged[src->logged].end
                                          : 0;
        if (!(to & TASK_GATHER))
            dst->finished = dst->finished && end <= run->log.logged[dst->logged].begin;
        else if (end > latest[to & ~TASK_GATHER])
            latest[to & ~TASK_GATHER] = end;
    }
    free(latest);
    return ok;
}

/* Clears ->finished of all tasks that must run again: first those that are not right by
 * themselves, then, with a work list, all that come after such a task, and the sources of
 * all that it reads. Each task is put on the list once, so this ends. */
static bool
choose(struct run *run)
{
    struct run_graph *graph = &run->graph;
    size_t first = run->resumed, n = 0;
    for (size_t i = first; i < graph->n; i++) {
        struct run_task *t = &graph->task[i];
        bool right = false;
        if (t->finished && !run->anew &&
            run->log.logged[t->logged].begin >= run->resumed_end &&
            !check_task(run, (uint32_t)i, &right))
            return false;
        t->finished = right;
    }
    if (!check_ends(run))
        return false;
    for (size_t i = graph->n; i-- > first;)
        if (!graph->task[i].finished)
            graph->stack[n++] = (uint32_t)i;
    while (n > 0) {
        uint32_t task = graph->stack[--n];
        for (uint32_t e = run_graph_node(graph, task)->edge; e != REC_NONE;
             e = graph->edge[e].next)
            run_again(run, graph->edge[e].dst, &n);
        if (!(task & TASK_GATHER) && !renew_inputs(run, task, &n))
            return false;
    }
    return true;
}

/* Called at each fence and at the end. At the end, tasks in front of fences are checked
 * once more: what was unknown then, for the list was not whole, is known now. */
bool
run_resume(struct run *run)
{
    struct run_graph *graph = &run->graph;
    if (!run->verified && !run_verify_files(run))
        return false;
    run->verified = true;
    if (!choose(run))
        return false;
    run_keep_of_others(run);
    for (int act = 0; act < 2; act++)
        for (size_t i = run->resumed; i < graph->n; i++)
            if (!run_check_given(run, (uint32_t)i, act))
                return false;
    for (size_t i = 0; run->ended && i < run->resumed; i++) {
        bool right = true;
        if (graph->task[i].finished && !check_task(run, (uint32_t)i, &right))
            return false;
        if (!right)
            return rec_fail(
                run->err, REC_DATA,
                "%s: task '%s' must run again, but stands in front of a fence that has "
                "been passed: begin without this log",
                run->log.path, graph->task[i].id);
    }
    for (size_t i = run->resumed; i < graph->n; i++)
        if (graph->task[i].finished)
            run->resumed_end =
                run->resumed_end > run->log.logged[graph->task[i].logged].end
                    ? run->resumed_end
                    : run->log.logged[graph->task[i].logged].end;
    return true;
}
