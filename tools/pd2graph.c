/* pd2graph [OPTION]... [FILE]... - PipeDream profiles -> graphs and jobs. */
#include "ggo/pd2graph.h"
#include "main.h"

#include "rampipe/input.h"

struct settings {
    struct input_profile_options profile;
    uint64_t steps;
    bool job, dot;
    const char *name;
};

static bool
read_settings(struct cli *cli, const struct pd2graph_args *args,
              struct settings *settings)
{
    static const char *const passes[] = {"forward", "both", NULL};
    static const char *const units[] = {"ms", "s", "us", NULL};
    static const double unit_seconds[] = {1e-3, 1, 1e-6};
    static const char *const memories[] = {"total", "activation", NULL};
    size_t pass, unit, memory;

    if (!cli_choice(cli, "pass", args->pass_arg, passes, &pass) ||
        !cli_choice(cli, "time-unit", args->time_unit_arg, units, &unit) ||
        !cli_choice(cli, "memory", args->memory_arg, memories, &memory) ||
        !cli_count(cli, "steps", args->steps_arg, 1, UINT64_MAX, &settings->steps))
        return false;
    if (args->name_given && cli->nfiles > 1)
        return cli_usage(cli, "--name is for one input, got %zu files", cli->nfiles);
    if (args->name_given && (!*args->name_arg || strpbrk(args->name_arg, ",=\t\r\n")))
        return cli_usage(cli, "--name must be a name without comma, '=' or TAB");
    settings->profile.mirror = pass == 1;
    settings->profile.time_unit = unit_seconds[unit];
    settings->profile.memory = memory ? INPUT_MEMORY_ACTIVATION : INPUT_MEMORY_TOTAL;
    settings->job = !args->no_job_given;
    settings->dot = args->dot_given;
    settings->name = args->name_arg;
    return true;
}

/* a/vgg16.txt.gz -> vgg16; a/vgg16/graph.txt -> vgg16. Not an id's characters become _.
 */
static void
model_name(const char *path, char *name, size_t room)
{
    const char *end = path + strlen(path), *base, *dot;
    base = strrchr(path, '/');
    base = base ? base + 1 : path;
    if (end - base > 3 && strcmp(end - 3, ".gz") == 0)
        end -= 3;
    dot = memrchr(base, '.', (size_t)(end - base));
    if (dot && dot > base)
        end = dot;
    if (strncmp(base, "graph.txt", 9) == 0 && end - base == 5) {
        const char *folder_end = base, *folder;
        while (folder_end > path && folder_end[-1] == '/')
            folder_end--;
        for (folder = folder_end; folder > path && folder[-1] != '/'; folder--)
            ;
        if (folder_end > folder && *folder != '.') { /* not of ., .. or / */
            base = folder;
            end = folder_end;
        }
    }
    snprintf(name, room, "%.*s", (int)(end - base), base);
    for (char *p = name; *p; p++)
        if (*p == ',' || *p == '=' || (unsigned char)*p < ' ')
            *p = '_';
}

/* Two files of one name make graphs NAME and NAME-2. */
static bool
unique_id(struct rec_map *seen, struct rec_arena *arena, const char *model, char *id,
          size_t room, struct rec_error *err)
{
    const char *kept;
    snprintf(id, room, "%s", model);
    for (unsigned n = 2; rec_map_get(seen, rec_str(id)) != REC_NONE; n++)
        snprintf(id, room, "%s-%u", model, n);
    kept = rec_arena_copy(arena, rec_str(id), err);
    return kept && rec_map_add(seen, rec_str(kept), 1, err);
}

static void
write_job(struct rec_writer *writer, const char *id, uint64_t steps)
{
    rec_begin(writer, "job");
    rec_text_field(writer, id);
    rec_text_field(writer, id);
    rec_num_field(writer, 0);
    rec_uint_field(writer, steps);
    rec_text_field(writer, "inf");
    rec_end(writer);
}

static bool
convert(struct cli *cli, const struct settings *settings, const char *path,
        const char *id, const char *model)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &cli->err);
    struct graph graph = {0};
    bool ok = reader && input_read_profile(&graph, reader, &settings->profile,
                                           rec_str(id), rec_str(model), &cli->err);
    if (ok) {
        cli_note(cli, "%s: %zu ops, %zu deps", id, graph.nops, graph.ndeps);
        if (settings->dot)
            graph_write_dot(&graph, cli->writer);
        else
            graph_write(&graph, cli->writer);
        if (settings->job && !settings->dot)
            write_job(cli->writer, id, settings->steps);
    }
    graph_free(&graph);
    rec_reader_close(reader);
    return ok;
}

static bool
run(struct cli *cli, const struct pd2graph_args *args)
{
    static const char *const standard_input[] = {"-"};
    const char *const *files = cli->nfiles ? cli->files : standard_input;
    size_t nfiles = cli->nfiles ? cli->nfiles : 1;
    struct settings settings;
    struct rec_map seen = {0};
    struct rec_arena arena = {0};
    char model[300], id[320];
    bool ok =
        read_settings(cli, args, &settings) && cli_open_writer(cli, !args->dot_given);

    for (size_t i = 0; ok && i < nfiles; i++) {
        if (settings.name)
            snprintf(model, sizeof model, "%s", settings.name);
        else
            model_name(strcmp(files[i], "-") == 0 ? "stdin" : files[i], model,
                       sizeof model);
        ok = unique_id(&seen, &arena, model, id, sizeof id, &cli->err) &&
             convert(cli, &settings, files[i], id, model);
    }
    rec_map_free(&seen);
    rec_arena_free(&arena);
    return ok;
}
