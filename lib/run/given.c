/* Files that no task of the list makes: which of them somebody has changed since the
 * log's last state, and which must be given back as they were before the run. */
#include "turns.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files --------------------------------------------------------------- */

/* Takes a file as it is now for the right one, and logs that. `same`: it is as its
 * readers found it, so that they need not run again. */
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

bool
run_verify_files(struct run *run)
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
        if (!run_find_last(run, file->name, &turns, &nturns))
            return false;
        if (nturns > 0)
            last = &log->turn[turns[nturns - 1].src];
        /* is that state newer than the last turn that wrote the file? */
        known = nturns == 0 || turns[nturns - 1].src < file->turn;
        same = run_look_same(&file->look, &now);
        /* A task was killed before it changed the file that was there: the file is still
         * the one that its readers found, and its turn is undone by a `same` one. */
        changed = known ? !same
                        : same && !file->ours && nturns == 1 && !last->finished &&
                              last->logged != REC_NONE;
        if (changed && !take_as_given(run, file->name, same, &now))
            return false;
    }
    return true;
}

/* ---- what is lost ----------------------------------------------------------- */

/* A task reads a file that no earlier task of the list makes, but that a task has
 * changed. If the file did not exist before the run it is removed. Otherwise it is lost,
 * unless --again-in-place takes it as it is, which is logged. The same holds for an
 * object @NAME, of which nothing can be known. `half`: the task that wrote it did not
 * end. `act`: false only checks, so that nothing is removed before it is sure that the
 * run is not refused. */
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
                          "%s: task '%s' reads '%s', which may be half written: the task "
                          "that was writing it did not end, and does not write it in the "
                          "present list: remove it, or give it its right content",
                          log->path, id, name)
                    : rec_fail(
                          run->err, REC_DATA,
                          "%s: task '%s' must run again, but a task has changed '%s', "
                          "which it reads and which no earlier task makes: put it back "
                          "as it was before the run",
                          log->path, id, name);
    }
    if (!act)
        return true;
    run_look_at(name, log->content, &look);
    return take_as_given(run, name, false, &look);
}

/* Looks at all names of a turn that wrote what a task reads, although the list does not
 * say so, and gives back those that are not as they should be. The output of a task that
 * finished and that the list no longer has counts as a file from outside. */
static bool
give_back_turn(struct run *run, uint32_t task, const struct run_name *name, uint32_t turn,
               bool act)
{
    bool finished = run->log.turn[turn].finished, stays = run->graph.task[task].finished;
    for (const char *write = run->log.turn[turn].writes; *write;
         write += strlen(write) + 1) {
        const char *what = name->below ? write : name->text;
        bool made = false, written, other;
        if (!task_overlap(write, name->text) || (*write == '@' && name->below))
            continue;
        for (uint32_t k = 0; k < name->source.n && !made; k++)
            made = run_turn_writes_same(run, turn, what, name->source.value[k]);
        if (!run_find_writer(run, what, &written))
            return false;
        other = run_turn_is_stranger(run, turn) || !written;
        if (made || (stays && (finished || !other)) || (finished && !written))
            continue;
        if (!give_back(run, task, what, other && !finished, act))
            return false;
        if (!name->below)
            return true;
    }
    return true;
}

bool
run_check_given(struct run *run, uint32_t task, bool act)
{
    const struct run_access *a = &run->access.task[task];
    bool ok = true;
    for (uint32_t i = 0; ok && i < a->nreads; i++) {
        struct run_name name = run_name_of(run, task, i);
        const struct task_edge *now;
        uint32_t *turn;
        size_t n;
        if (name.source.n > 0 && !name.below)
            continue;
        if (!run_find_last(run, name.text, &now, &n))
            return false;
        /* a copy: acting adds turns, which makes `now` invalid */
        if (!(turn = calloc(n + 1, sizeof *turn)))
            return rec_fail_memory(run->err);
        for (size_t k = 0; k < n; k++)
            turn[k] = now[k].src;
        for (size_t k = 0; ok && k < n; k++)
            if (!run_turn_is_change(run, turn[k]) &&
                !run_list_has(name.source, run_turn_task(run, turn[k])))
                ok = give_back_turn(run, task, &name, turn[k], act);
        free(turn);
    }
    return ok;
}

void
run_keep_of_others(struct run *run)
{
    struct run_log *log = &run->log;
    for (uint32_t i = 0; i < log->nturns; i++) {
        uint32_t task = run_turn_task(run, i);
        const struct run_access *a = task == REC_NONE ? NULL : &run->access.task[task];
        for (const char *write = log->turn[i].writes;
             !run_turn_is_change(run, i) && *write; write += strlen(write) + 1) {
            uint32_t at = rec_map_get(&log->names, rec_str(write));
            bool own = a == NULL && !run->ended;
            for (size_t k = 0; a && !own && k < a->nwrites; k++)
                own = strcmp(run->access.name[a->name + a->nreads + k], write) == 0;
            if (at != REC_NONE && !own)
                log->file[at].there = true;
        }
    }
}
