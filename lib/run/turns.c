/* Turns of the log, and names of the list. */
#include "turns.h"

struct run_name
run_name_of(const struct run *run, uint32_t task, uint32_t i)
{
    size_t at = run->access.task[task].name + i;
    const char *text = run->access.name[at];
    return (struct run_name){text, *text != '@' && text[strlen(text) - 1] == '/',
                             run_lists_get(&run->access.source, at)};
}

uint32_t
run_turn_task(const struct run *run, uint32_t turn)
{
    uint32_t logged = run->log.turn[turn].logged;
    return logged == REC_NONE
               ? REC_NONE
               : rec_map_get(&run->ids, rec_str(run->log.logged[logged].id));
}

bool
run_turn_is_change(const struct run *run, uint32_t turn)
{
    return run->log.turn[turn].logged == REC_NONE;
}

bool
run_turn_is_stranger(const struct run *run, uint32_t turn)
{
    return run->ended && !run_turn_is_change(run, turn) &&
           run_turn_task(run, turn) == REC_NONE;
}

bool
run_turn_writes_same(const struct run *run, uint32_t turn, const char *name,
                     uint32_t task)
{
    const struct run_access *a = &run->access.task[task];
    for (const char *write = run->log.turn[turn].writes; *write;
         write += strlen(write) + 1)
        for (size_t i = 0; task_overlap(write, name) && i < a->nwrites; i++)
            if (task_overlap(write, run->access.name[a->name + a->nreads + i]))
                return true;
    return false;
}

bool
run_find_last(const struct run *run, const char *name, const struct task_edge **turns,
              size_t *n)
{
    return run_journal_last(&run->log, name, turns, n, run->err);
}

bool
run_find_writer(const struct run *run, const char *name, bool *any)
{
    const struct task_edge *tasks;
    size_t n;
    if (!task_hazards_writers(run->hazards, name, &tasks, &n, run->err))
        return false;
    *any = n > 0 || !run->ended;
    return true;
}
