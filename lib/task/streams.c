/* The files behind names such as @ID.stdout. */
#include "rampipe/task.h"

#include <stdlib.h>

/* The files of the standard output and error of a task; NULL: it has none. */
struct task_stream {
    const char *out, *error;
};

static bool
keep(struct task_streams *streams, const char *text, const char **kept,
     struct rec_error *err)
{
    *kept = NULL;
    return !text || (*kept = rec_arena_copy(&streams->arena, rec_str(text), err));
}

/* Keeps the files of a task. In a log a task may come again: the last one counts. */
static bool
remember(struct task_streams *streams, const struct task *task, struct rec_error *err)
{
    uint32_t at = rec_map_get(&streams->ids, rec_str(task->id));
    const char *id;
    if (at == REC_NONE) {
        if (!task->standard_output && !task->standard_error)
            return true;
        at = (uint32_t)streams->n;
        if (!rec_grow(&streams->stream, &streams->room, streams->n + 1,
                      sizeof *streams->stream, err) ||
            !keep(streams, task->id, &id, err) ||
            !rec_map_add(&streams->ids, rec_str(id), at, err))
            return false;
        streams->stream[streams->n++] = (struct task_stream){NULL, NULL};
    }
    return keep(streams, task->standard_output, &streams->stream[at].out, err) &&
           keep(streams, task->standard_error, &streams->stream[at].error, err);
}

/* Adds a file to the names that a task reads, unless it is one of them. `listed`: these
 * names; empty before the first file. */
static bool
add_file(struct task_names *names, struct rec_map *listed, const char *file,
         struct rec_error *err)
{
    for (size_t i = listed->used ? names->n : 0; i < names->n; i++)
        if (rec_map_get(listed, rec_str(names->name[i])) == REC_NONE &&
            !rec_map_add(listed, rec_str(names->name[i]), 0, err))
            return false;
    if (rec_map_get(listed, rec_str(file)) != REC_NONE)
        return true;
    if (!rec_grow(&names->name, &names->room, names->n + 1, sizeof *names->name, err))
        return false;
    names->name[names->n++] = file;
    return rec_map_add(listed, rec_str(file), 0, err);
}

bool
task_streams_take(struct task_streams *streams, struct task *task, struct rec_error *err)
{
    struct rec_map listed = {0};
    bool ok = true;
    for (size_t i = 0, n = task->reads.n; ok && i < n; i++) {
        const char *kind, *file;
        struct rec_str id = task_output(task->reads.name[i], &kind);
        uint32_t at = id.ptr ? rec_map_get(&streams->ids, id) : REC_NONE;
        if (at == REC_NONE || strcmp(kind, "result") == 0)
            continue;
        file = strcmp(kind, "stdout") == 0 ? streams->stream[at].out
                                           : streams->stream[at].error;
        ok = !file || add_file(&task->reads, &listed, file, err);
    }
    rec_map_free(&listed);
    return ok && remember(streams, task, err);
}

void
task_streams_free(struct task_streams *streams)
{
    rec_map_free(&streams->ids);
    rec_arena_free(&streams->arena);
    free(streams->stream);
}
