/*
 * What of an earlier run is done again, so that in the end all is as if the list had been
 * run from its beginning on what is there now.
 *
 * A task that has finished stays so, if
 *   - each name that it read had last been written by those tasks, in their last turns, that
 *     would have written it in the list, or by nobody else since;
 *   - each name that it is the last of the list to write is as it left it;
 *   - all that must come before it had ended before it began, and stays finished.
 * A task that runs now must find what it reads as it is in the list: where somebody else
 * has written it since, who writes it in the list runs again. If nobody in the list
 * writes it before then it is lost: the run is refused, but for what was not there at
 * all, which is removed.
 */
#include "run.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name that a task reads, or writes, and the tasks that wrote it before in the list. */
struct name {
    const char *text;
    bool below; /* it is all below a folder */
    struct run_list source;
};

/* A name of a task: first come those that it reads. */
static struct name
name_of(const struct run *run, uint32_t task, uint32_t i)
{
    size_t at = run->access.task[task].name + i;
    const char *text = run->access.name[at];
    return (struct name){text, *text != '@' && text[strlen(text) - 1] == '/',
                         run_lists_get(&run->access.source, at)};
}

/* ---- turns --------------------------------------------------------------- */

/* The task of the list whose turn it was, whatever it is like now; REC_NONE: none. */
static uint32_t
task_of(const struct run *run, uint32_t turn)
{
    uint32_t logged = run->log.turn[turn].logged;
    return logged == REC_NONE
               ? REC_NONE
               : rec_map_get(&run->ids, rec_str(run->log.logged[logged].id));
}

static bool
is_change(const struct run *run, uint32_t turn)
{
    return run->log.turn[turn].logged == REC_NONE;
}

/* Was it that of a task that the list does not name? It may do so yet, if it is not
 * whole. */
static bool
is_stranger(const struct run *run, uint32_t turn)
{
    return run->ended && !is_change(run, turn) && task_of(run, turn) == REC_NONE;
}

/* The last turn of a task; REC_NONE: it has had none. */
static uint32_t
turn_of(const struct run *run, uint32_t task)
{
    uint32_t logged = run->graph.task[task].logged;
    return logged == REC_NONE ? REC_NONE : run->log.logged[logged].turn;
}

/* Was it the last turn of one of those who write a name before it is read? */
static bool
is_turn_of_any(const struct run *run, uint32_t turn, const struct name *name)
{
    uint32_t task = task_of(run, turn);
    return task != REC_NONE && turn_of(run, task) == turn &&
           run_list_has(name->source, task);
}

static bool
overlap(const char *a, const char *b)
{
    return run_name_covers(a, b) || run_name_covers(b, a);
}

/* Did a turn write what, below `name`, a task writes, too? */
static bool
writes_the_same(const struct run *run, uint32_t turn, const char *name, uint32_t task)
{
    const struct run_access *a = &run->access.task[task];
    for (const char *write = run->log.turn[turn].writes; *write;
         write += strlen(write) + 1)
        for (size_t i = 0; overlap(write, name) && i < a->nwrites; i++)
            if (overlap(write, run->access.name[a->name + a->nreads + i]))
                return true;
    return false;
}

/* Turns that wrote last what is there now under a name. */
static bool
find_last(const struct run *run, const char *name, const struct task_edge **turns,
          size_t *n)
{
    return run_journal_last(&run->log, name, turns, n, run->err);
}

/* Does any task of the list write it, as far as that is known? */
static bool
find_writer(const struct run *run, const char *name, bool *any)
{
    const struct task_edge *tasks;
    size_t n;
    if (!task_hazards_writers(run->hazards, name, &tasks, &n, run->err))
        return false;
    *any = n > 0 || !run->ended;
    return true;
}

/* ---- files --------------------------------------------------------------- */

/* From here on a file is taken as it is, as if it had always been so. The log says so.
 * `same`: it is as those who read it found it. */
static bool
take_as_given(struct run *run, const char *name, bool same, const struct run_look *look)
{
    struct run_log *log = &run->log;
    struct run_file *file;
    struct rec_text text;
    char *line;
    bool ok;
    if (!rec_text_open(&text, run->err))
        return false;
    run_look_write(text.out, name, "-", true, look);
    line = rec_text_close(&text, run->err);
    ok = line && run_log_line(log, (struct rec_str){line, text.used}, run->err) &&
         (look->state == RUN_TREE || run_journal_change(log, name, same, run->err));
    free(line);
    if (!ok || !(file = run_log_file_of(log, name, run->err)))
        return false;
    *file = (struct run_file){.name = file->name,
                              .look = *look,
                              .turn = (uint32_t)log->nturns,
                              .seen = true,
                              .fresh = true,
                              .there = look->state != RUN_NONE};
    return true;
}

/* Compares files with what the log says: what is not as it was left, somebody has
 * changed. */
static bool
verify_files(struct run *run)
{
    struct run_log *log = &run->log;
    for (size_t i = 0, n = log->nfiles; i < n; i++) {
        struct run_file *file = &log->file[i];
        const struct task_edge *turns;
        const struct run_turn *last = NULL;
        struct run_look now;
        size_t nturns;
        bool known, same, changed;
        if (!file->seen)
            continue;
        if (file->look.state == RUN_TREE) {
            if (!run_look_below(run, file->name, &now) ||
                (!run_look_same(&file->look, &now) &&
                 !take_as_given(run, file->name, false, &now)))
                return false;
            continue;
        }
        run_look_at(file->name, log->content, &now);
        if (!find_last(run, file->name, &turns, &nturns))
            return false;
        if (nturns > 0)
            last = &log->turn[turns[nturns - 1].src];
        known = nturns == 0 || turns[nturns - 1].src < file->turn;
        same = run_look_same(&file->look, &now);
        /* a task that was interrupted before it touched what was there has changed
         * nothing, for those who had read it either */
        changed = known ? !same
                        : same && !file->ours && nturns == 1 && !last->finished &&
                              last->logged != REC_NONE;
        if (changed && !take_as_given(run, file->name, same, &now))
            return false;
    }
    return true;
}

/* Is what the log says of a file what it was after the last turn? If nothing is known, is
 * it there at all? */
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

/* Does the list write what a turn wrote and is read by this name? Then it had been read
 * as the list does not have it. */
static bool
find_remade(const struct run *run, uint32_t turn, const struct name *name, bool *remade)
{
    *remade = false;
    if (is_change(run, turn) ||
        !(is_stranger(run, turn) || task_of(run, turn) != REC_NONE))
        return true;
    for (const char *write = run->log.turn[turn].writes; !*remade && *write;
         write += strlen(write) + 1)
        if (overlap(write, name->text) &&
            !find_writer(run, name->below ? write : name->text, remade))
            return false;
    return true;
}

/* Had what a task read been written by these turns of those who write it in the list? */
static bool
check_sources(const struct run *run, const struct name *name, struct run_list then,
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
            *right = *right && !writes_the_same(run, then.value[i], name->text,
                                                name->source.value[k]);
    }
    return true;
}

/* Is what a task read, `then` written by these turns, what it would read now? */
static bool
check_read(const struct run *run, uint32_t task, const struct name *name,
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
        *right = false; /* what no task makes there has changed since */
    if (!*right)
        return true;
    if (!find_writer(run, name->text, &written) ||
        !find_last(run, name->text, &now, &nnow))
        return false;
    for (size_t i = 0; i < nnow; i++) {
        uint32_t turn = now[i].src;
        if (run_list_has(then, turn) || turn < turn_of(run, task))
            continue;
        if (is_change(run, turn)
                ? !run->log.turn[turn].same && (name->source.n == 0 || name->below)
                : name->source.n == 0 && !written && run->log.turn[turn].finished)
            *right = false;
    }
    return true;
}

/* Is what a task is the last to write as it left it? */
static bool
check_write(const struct run *run, uint32_t task, const struct name *name, bool *right)
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
    if (!find_last(run, name->text, &last, &n))
        return false;
    found = false;
    for (size_t i = 0; i < n; i++) {
        found = found || last[i].src == own;
        others =
            others || (last[i].src > own &&
                       (is_stranger(run, last[i].src) ||
                        (!name->below && (run->ended || is_change(run, last[i].src) ||
                                          task_of(run, last[i].src) != REC_NONE))));
    }
    if (!run->ended && !found && !others) /* whoever wrote it may come yet */
        return true;
    *right = found && !others &&
             (name->below || *name->text == '@' || !is_gone(run, name->text, own));
    return true;
}

static bool
check_task(const struct run *run, uint32_t task, bool *right)
{
    const struct run_access *a = &run->access.task[task];
    const struct run_log *log = &run->log;
    size_t source = log->logged[run->graph.task[task].logged].source;
    *right = true;
    for (uint32_t i = 0; *right && i < a->nreads; i++) {
        struct name name = name_of(run, task, i);
        if (!check_read(run, task, &name, run_lists_get(&log->source, source + i), right))
            return false;
    }
    for (uint32_t i = 0; *right && i < a->nwrites; i++) {
        struct name name = name_of(run, task, a->nreads + i);
        if (!check_write(run, task, &name, right))
            return false;
    }
    return true;
}

/* ---- what runs again ------------------------------------------------------- */

/* Is what a task wrote in its last turn there, or has one of `others` written it
 * since? */
static bool
is_there(const struct run *run, uint32_t task, const char *name, struct run_list last,
         struct run_list others)
{
    uint32_t turn = turn_of(run, task);
    bool there = run_list_has(last, turn);
    for (uint32_t i = others.n; there && i-- > 0 && others.value[i] > turn;)
        there = !writes_the_same(run, others.value[i], name, task);
    return there;
}

static void
run_again(struct run *run, uint32_t task, size_t *n)
{
    struct run_task *t = run_graph_node(&run->graph, task);
    if (t->finished)
        run->graph.stack[(*n)++] = task;
    t->finished = false;
}

/* Who wrote what a task is to read writes it again, if it is not among the last turns to
 * write it, or if others of these have written it since. */
static bool
renew_sources(struct run *run, uint32_t task, const struct name *name,
              struct run_list last, struct run_list others, size_t *n)
{
    for (uint32_t k = 0; k < name->source.n; k++) {
        uint32_t source = name->source.value[k];
        if (!run->graph.task[source].finished ||
            is_there(run, source, name->text, last, others))
            continue;
        if (source < run->resumed)
            return rec_fail(run->err, REC_DATA,
                            "%s: task '%s' must run again, and what it reads, '%s', has "
                            "been overwritten: '%s', which made it, stands in front of a "
                            "fence, and must run again with all that is behind it",
                            run->log.path, run->graph.task[task].id, name->text,
                            run->graph.task[source].id);
        run_again(run, source, n);
    }
    return true;
}

static bool
renew_inputs(struct run *run, uint32_t task, size_t *n)
{
    const struct run_access *a = &run->access.task[task];
    bool ok = true;
    for (uint32_t i = 0; ok && i < a->nreads; i++) {
        struct name name = name_of(run, task, i);
        const struct task_edge *now;
        uint32_t *last, nothers = 0;
        size_t nlast;
        if (name.source.n == 0)
            continue;
        if (!find_last(run, name.text, &now, &nlast))
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

/* A task that had begun before what it must wait for had ended has not finished. */
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

/* Takes ->finished from all that must run again. */
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

/* ---- what is lost ----------------------------------------------------------- */

/* What is to be done with a file that a task reads as nobody in the list has made it, and
 * that tasks have changed. If it was not there, it goes; if it is to be taken as it is,
 * the log says so. Of a key of a dictionary nothing is known. */
static bool
give_back(struct run *run, uint32_t task, const char *name, bool half, bool act)
{
    struct run_log *log = &run->log;
    uint32_t at = rec_map_get(&log->names, rec_str(name));
    bool file = *name != '@', known = at != REC_NONE && name[strlen(name) - 1] != '/';
    struct run_look look;
    struct stat status;
    if (file && (half ? lstat(name, &status) != 0 : known && !log->file[at].there)) {
        if (!half && act && lstat(name, &status) == 0 && !S_ISDIR(status.st_mode))
            unlink(name);
    } else if (!run->options->again) {
        const char *id = run->graph.task[task].id;
        run->tally->lost = true;
        return half ? rec_fail(
                          run->err, REC_DATA,
                          "%s: task '%s' reads '%s', which was being written by a task "
                          "that did not end, and that the list does not name any more: "
                          "remove it, or put right what it should be",
                          log->path, id, name)
                    : rec_fail(
                          run->err, REC_DATA,
                          "%s: task '%s' must run again, but '%s', which it reads and "
                          "no task before it makes, has been changed by a task since: "
                          "put it back as it was before the run",
                          log->path, id, name);
    }
    if (!act)
        return true;
    run_look_at(name, log->content, &look);
    return take_as_given(run, name, false, &look);
}

/* A turn other than those that the list would have wrote what a task will read, or reads.
 * What nobody in the list writes any more is as somebody who is not in the list left
 * it. */
static bool
give_back_turn(struct run *run, uint32_t task, const struct name *name, uint32_t turn,
               bool act)
{
    bool finished = run->log.turn[turn].finished, stays = run->graph.task[task].finished;
    for (const char *write = run->log.turn[turn].writes; *write;
         write += strlen(write) + 1) {
        const char *what = name->below ? write : name->text;
        bool made = false, written, other;
        if (!overlap(write, name->text) || (*write == '@' && name->below))
            continue;
        for (uint32_t k = 0; k < name->source.n && !made; k++)
            made = writes_the_same(run, turn, what, name->source.value[k]);
        if (!find_writer(run, what, &written))
            return false;
        other = is_stranger(run, turn) || !written;
        if (made || (stays && (finished || !other)) || (finished && !written))
            continue;
        if (!give_back(run, task, what, other && !finished, act))
            return false;
        if (!name->below)
            return true;
    }
    return true;
}

/* Is all that a task reads, and that no task before it makes, what it was? `act`: it is
 * made so. */
static bool
check_given(struct run *run, uint32_t task, bool act)
{
    const struct run_access *a = &run->access.task[task];
    bool ok = true;
    for (uint32_t i = 0; ok && i < a->nreads; i++) {
        struct name name = name_of(run, task, i);
        const struct task_edge *now;
        uint32_t *turn;
        size_t n;
        if (name.source.n > 0 && !name.below)
            continue;
        if (!find_last(run, name.text, &now, &n))
            return false;
        if (!(turn = calloc(n + 1, sizeof *turn))) /* (acting may make more of them) */
            return rec_fail_memory(run->err);
        for (size_t k = 0; k < n; k++)
            turn[k] = now[k].src;
        for (size_t k = 0; ok && k < n; k++)
            if (!is_change(run, turn[k]) &&
                !run_list_has(name.source, task_of(run, turn[k])))
                ok = give_back_turn(run, task, &name, turn[k], act);
        free(turn);
    }
    return ok;
}

/* A file that was written by what the list does not have any more was there before the
 * rest of it was run. */
static void
keep_of_others(struct run *run)
{
    struct run_log *log = &run->log;
    for (uint32_t i = 0; i < log->nturns; i++) {
        uint32_t task = task_of(run, i);
        const struct run_access *a = task == REC_NONE ? NULL : &run->access.task[task];
        for (const char *write = log->turn[i].writes; !is_change(run, i) && *write;
             write += strlen(write) + 1) {
            uint32_t at = rec_map_get(&log->names, rec_str(write));
            bool own = a == NULL && !run->ended;
            for (size_t k = 0; a && !own && k < a->nwrites; k++)
                own = strcmp(run->access.name[a->name + a->nreads + k], write) == 0;
            if (at != REC_NONE && !own)
                log->file[at].there = true;
        }
    }
}

bool
run_resume(struct run *run)
{
    struct run_graph *graph = &run->graph;
    if (!run->verified && !verify_files(run))
        return false;
    run->verified = true;
    if (!choose(run))
        return false;
    keep_of_others(run);
    for (int act = 0; act < 2; act++)
        for (size_t i = run->resumed; i < graph->n; i++)
            if (!check_given(run, (uint32_t)i, act))
                return false;
    for (size_t i = 0; run->ended && i < run->resumed; i++) {
        bool right = true;
        if (graph->task[i].finished && !check_task(run, (uint32_t)i, &right))
            return false;
        if (!right)
            return rec_fail(
                run->err, REC_DATA,
                "%s: task '%s' must run again, which stands in front of a fence: "
                "begin without this log",
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
