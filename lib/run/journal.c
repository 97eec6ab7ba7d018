/*
 * Reading the log as a journal: who wrote what, in which order.
 *
 * There is a turn for each begin of a task, and one for each change that no task made.
 * The log shows such a change as a file record with another state than the one known so
 * far. Turns are added as tasks to the hazards ->touched, which so always know the last
 * turns that wrote a name (the same rules as for dependencies: folders cover what is
 * below them). For each name that a task reads, the turns that had written it are kept
 * when the task begins: resume.c compares them with what the list demands.
 */
#include "private.h"

#include <stdlib.h>

/* ---- the hash of a task --------------------------------------------------- */

static void
put_names(FILE *out, const struct task_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        fwrite(names->name[i], strlen(names->name[i]) + 1, 1, out);
    fputc('\n', out);
}

bool
run_task_hash(const struct task *task, uint64_t *hash, struct rec_error *err)
{
    const char *texts[] = {task->command,
                           task->cwd,
                           task->env,
                           task->standard_input,
                           task->standard_output,
                           task->standard_error,
                           task->call};
    struct rec_text text;
    char *bytes;
    if (!rec_text_open(&text, err))
        return false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        fprintf(text.out, "%s\t", texts[i] ? texts[i] : "");
    put_names(text.out, &task->reads);
    put_names(text.out, &task->writes);
    if (!(bytes = rec_text_close(&text, err)))
        return false;
    *hash = rec_hash((struct rec_str){bytes, text.used});
    free(bytes);
    return true;
}

/* ---- turns --------------------------------------------------------------- */

bool
run_journal_last(const struct run_log *log, const char *name,
                 const struct task_edge **turns, size_t *n, struct rec_error *err)
{
    return task_hazards_writers(log->touched, name, turns, n, err);
}

/* Adds a turn that writes these names and, if `id` is not NULL, the outputs @ID.stdout,
 * @ID.stderr and @ID.result of that task. A task that is begun twice has two turns, so
 * the id of the task in ->touched is the number of the turn instead. */
static bool
add_turn(struct run_log *log, const struct task_names *writes, const char *id,
         struct run_turn turn, struct rec_error *err)
{
    char name[24], *at;
    struct task task = {.id = name};
    const struct task_edge *edges;
    struct rec_text text;
    size_t n = 0, room = 0;
    bool ok;
    if (!rec_text_open(&text, err))
        return false;
    for (size_t i = 0; i < writes->n; i++)
        fwrite(writes->name[i], strlen(writes->name[i]) + 1, 1, text.out);
    if (id)
        fprintf(text.out, "@%s.stdout%c@%s.stderr%c@%s.result%c", id, 0, id, 0, id, 0);
    if (!(at = rec_text_close(&text, err)))
        return false;
    turn.writes = rec_arena_copy(&log->arena, (struct rec_str){at, text.used}, err);
    free(at);
    ok = turn.writes != NULL;
    for (const char *write = turn.writes; ok && *write; write += strlen(write) + 1) {
        ok = rec_grow(&task.writes.name, &room, n + 1, sizeof *task.writes.name, err);
        if (ok)
            task.writes.name[n++] = write;
    }
    task.writes.n = n;
    /* no id of a task has a comma: this one cannot be the ID of a name @ID.stdout */
    snprintf(name, sizeof name, ",%zu", log->nturns);
    ok = ok && task_hazards_add(log->touched, &task, &edges, &n, err) &&
         rec_grow(&log->turn, &log->turn_room, log->nturns + 1, sizeof turn, err);
    free(task.writes.name);
    if (ok)
        log->turn[log->nturns++] = turn;
    return ok;
}

bool
run_journal_change(struct run_log *log, const char *name, bool same,
                   struct rec_error *err)
{
    const struct task_names writes = {.name = &name, .n = 1};
    return add_turn(log, &writes, NULL,
                    (struct run_turn){.logged = REC_NONE,
                                      .runner = (uint32_t)log->nrunners - 1,
                                      .ended = true,
                                      .finished = true,
                                      .same = same},
                    err);
}

/* ---- records ------------------------------------------------------------- */

/* The task of this id in the log; made if there is none. NULL: *err. */
static struct run_logged *
find(struct run_log *log, struct rec_str id, struct rec_error *err)
{
    uint32_t at = rec_map_get(&log->ids, id);
    const char *kept;
    if (at != REC_NONE)
        return &log->logged[at];
    if (!rec_grow(&log->logged, &log->room, log->n + 1, sizeof *log->logged, err) ||
        !(kept = rec_arena_copy(&log->arena, id, err)) ||
        !rec_map_add(&log->ids, (struct rec_str){kept, id.len}, (uint32_t)log->n, err))
        return NULL;
    log->logged[log->n] = (struct run_logged){.id = kept, .turn = REC_NONE};
    return &log->logged[log->n++];
}

/* Keeps, for each name that a task reads, the turns that have written it so far. */
static bool
keep_sources(struct run_log *log, const struct task_names *reads, struct rec_error *err)
{
    for (size_t i = 0; i < reads->n; i++) {
        const struct task_edge *turns;
        size_t n;
        if (!run_journal_last(log, reads->name[i], &turns, &n, err) ||
            !run_lists_add(&log->source, turns, n, err))
            return false;
    }
    return true;
}

/* A task record: an attempt of the task begins. What an earlier attempt left is void. */
static bool
take_task(struct run_log *log, struct task *task, const struct rec_reader *reader,
          const struct rec *rec, struct rec_error *err)
{
    struct run_turn turn = {.runner = (uint32_t)log->nrunners - 1};
    struct run_logged *logged;
    if (!task_read(task, reader, rec, err) ||
        !task_streams_take(&log->streams, task, err) ||
        !(logged = find(log, rec_str(task->id), err)))
        return false;
    logged->finished = logged->number = false;
    logged->call = task->call != NULL;
    logged->attempt = NULL;
    logged->source = log->source.n;
    logged->turn = (uint32_t)log->nturns;
    logged->begin = log->records;
    logged->end = UINT64_MAX;
    turn.logged = (uint32_t)(logged - log->logged);
    turn.ok_any = task->ok_any;
    for (size_t i = 0; i < task->writes.n; i++) {
        const char *name = task->writes.name[i];
        struct run_file *file;
        if (rec_map_get(&log->names, rec_str(name)) != REC_NONE)
            continue;
        if (!(file = run_log_file_of(log, name, err)))
            return false;
        /* Logs of old versions, without runner records, do not tell whether a file was
         * there before; newer ones have a file record of it. */
        file->there = log->nrunners == 0;
    }
    return keep_sources(log, &task->reads, err) &&
           run_task_hash(task, &logged->hash, err) &&
           add_turn(log, &task->writes, task->id, turn, err);
}

/* An attempt record: the attempt has ended. A status that is no number (a signal, a
 * timeout, no_output) is a failure even with ok=any. */
static bool
take_attempt(struct run_log *log, const struct rec_reader *reader, const struct rec *rec,
             struct rec_error *err)
{
    struct run_logged *logged;
    double start, end, began = NAN;
    uint64_t status;
    if (!rec_check(reader, rec, err) || !rec_get_number(reader, rec, 3, &start, err) ||
        !rec_get_later(reader, rec, 4, start, &end, err) ||
        !rec_key_number(reader, rec, "began", &began, err) ||
        !(logged = find(log, rec->field[1], err)))
        return false;
    logged->since = began + start;
    logged->until = began + end;
    logged->number = rec_parse_uint(rec->field[5], &status);
    logged->finished = logged->number && status == 0;
    logged->end = log->records;
    if (logged->number &&
        !(logged->attempt = rec_arena_copy(&log->arena, rec->line, err)))
        return false;
    if (logged->turn != REC_NONE) {
        struct run_turn *turn = &log->turn[logged->turn];
        turn->ended = true;
        turn->finished = logged->finished || (logged->number && turn->ok_any);
    }
    return true;
}

static bool
take_runner(struct run_log *log, const struct rec_reader *reader, const struct rec *rec,
            struct rec_error *err)
{
    const char *text[3];
    if (!rec_check(reader, rec, err) ||
        !rec_grow(&log->runner, &log->runner_room, log->nrunners + 1, sizeof *log->runner,
                  err))
        return false;
    for (size_t i = 0; i < 3; i++)
        if (!(text[i] = rec_arena_copy(&log->arena, rec->field[i + 1], err)))
            return false;
    log->runner[log->nrunners++] = (struct run_runner){text[0], text[1], text[2]};
    return true;
}

static bool
take_process(struct run_log *log, const struct rec_reader *reader, const struct rec *rec,
             struct rec_error *err)
{
    struct run_logged *logged;
    struct run_turn *turn;
    uint64_t number, pid;
    double started;
    if (!rec_check(reader, rec, err) || !(logged = find(log, rec->field[1], err)) ||
        !rec_get_count(reader, rec, 2, &number, err) ||
        !rec_get_count(reader, rec, 3, &pid, err) ||
        !rec_get_number(reader, rec, 4, &started, err))
        return false;
    if (logged->turn == REC_NONE)
        return true;
    turn = &log->turn[logged->turn];
    turn->number = (uint32_t)number;
    turn->pid = (uint32_t)pid;
    turn->started = started;
    return true;
}

/*
 * A file record without a task: the state of a file that a task found when it began,
 * although no earlier task of its list makes the file. It counts as changed by somebody
 * else if
 *   - the run says so (given=1), or
 *   - it is not as the log knew it, or
 *   - a task wrote it last that did not finish, or that belongs to an earlier run: that
 *     run's list is not this one.
 */
static bool
take_given(struct run_log *log, struct run_file *file, const struct run_look *look,
           bool given, struct rec_error *err)
{
    const struct task_edge *turns;
    size_t n, at = (size_t)(file - log->file);
    bool known, changed, same;
    if (look->state == RUN_TREE) { /* writers below a folder have turns of their own */
        *file = (struct run_file){file->name, *look, (uint32_t)log->nturns, .seen = true};
        return true;
    }
    if (!run_journal_last(log, file->name, &turns, &n, err))
        return false;
    /* is the state that the log has newer than the last turn that wrote the file? */
    known = file->seen && (n == 0 || turns[n - 1].src < file->turn);
    changed = given || (known && !run_look_same(&file->look, look)) ||
              (n > 0 && log->turn[turns[n - 1].src].logged != REC_NONE &&
               (!log->turn[turns[n - 1].src].finished ||
                log->turn[turns[n - 1].src].runner + 1 < log->nrunners));
    same = given && file->seen && *file->name != '@' && run_look_same(&file->look, look);
    if (changed && !run_journal_change(log, file->name, same, err))
        return false;
    file = &log->file[at]; /* the array may have moved */
    if (changed || (!file->seen && n == 0))
        file->there = look->state != RUN_NONE;
    file->ours = !changed && n > 0 && log->turn[turns[n - 1].src].logged != REC_NONE;
    file->look = *look;
    file->turn = (uint32_t)log->nturns;
    file->seen = true;
    return true;
}

/* A file record: the state that a task left behind, or, for task "-", that it found. */
static bool
take_file(struct run_log *log, const struct rec_reader *reader, const struct rec *rec,
          struct rec_error *err)
{
    struct run_logged *logged;
    struct run_file *file;
    struct run_look look;
    struct rec_str given;
    char *name;
    if (!rec_check(reader, rec, err) || !run_look_read(reader, rec, &look, err))
        return false;
    if (!task_is_escaped(rec->field[1]) || rec->field[1].len == 0)
        return rec_reader_fail(reader, err,
                               "NAME: a %% must begin an escape such as %%2C");
    if (!(name = malloc(rec->field[1].len + 1)))
        return rec_fail_memory(err);
    task_unescape(name, rec->field[1]);
    file = run_log_file_of(log, name, err);
    free(name);
    if (!file)
        return false;
    if (rec_str_is(rec->field[2], "-"))
        return take_given(log, file, &look, rec_find_key(rec, "given", &given), err);
    if (!(logged = find(log, rec->field[2], err)))
        return false;
    file->look = look;
    file->seen = file->ours = true;
    file->turn = logged->turn == REC_NONE ? (uint32_t)log->nturns : logged->turn + 1;
    return true;
}

bool
run_journal_read(struct run_log *log, bool any, struct rec_error *err)
{
    struct rec_reader *reader;
    struct task task = {0};
    struct rec rec;
    int status = -1;
    if (!(log->touched = task_hazards_new(err)))
        return false;
    if (!any)
        return true;
    reader = rec_reader_open(&log->path, 1, NULL, err);
    while (reader && (status = rec_next(reader, &rec, err)) > 0) {
        bool ok = true;
        log->records++;
        if (rec.type == REC_TASK)
            ok = take_task(log, &task, reader, &rec, err);
        else if (rec.type == REC_ATTEMPT)
            ok = take_attempt(log, reader, &rec, err);
        else if (rec.type == REC_RUNNER)
            ok = take_runner(log, reader, &rec, err);
        else if (rec.type == REC_PROCESS)
            ok = take_process(log, reader, &rec, err);
        else if (rec.type == REC_FILE)
            ok = take_file(log, reader, &rec, err);
        if (!ok) {
            status = -1;
            break;
        }
    }
    task_free(&task);
    rec_reader_close(reader);
    return status == 0;
}

/* A task whose record has changed since is not finished, but it was begun: its files may
 * be half written. */
void
run_journal_recall(const struct run_log *log, struct run_task *task, uint64_t hash)
{
    uint32_t at = rec_map_get(&log->ids, rec_str(task->id));
    const struct run_logged *logged;
    if (at == REC_NONE || log->logged[at].turn == REC_NONE)
        return;
    logged = &log->logged[at];
    task->logged = at;
    task->begun = true;
    task->finished =
        logged->hash == hash && (logged->finished || (logged->number && task->ok_any));
}
