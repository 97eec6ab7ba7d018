/* pd2graph [OPTION]... [FILE]... - read PipeDream profiles, write graphs and jobs. */
#include "ggo/pd2graph.h"
#include "main.h"

#include "rampipe/input.h"

#include <sys/stat.h>

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
        !cli_count(cli, "steps", args->steps_arg, 1, GRAPH_STEPS_MAX, &settings->steps))
        return false;
    if (args->dot_given && (args->no_job_given || args->steps_given))
        return cli_usage(cli, "--%s is of the job, and a picture has none",
                         args->no_job_given ? "no-job" : "steps");
    if (args->no_job_given && args->steps_given)
        return cli_usage(cli, "--steps is of the job, which --no-job leaves out");
    if (args->name_given && cli->nfiles > 1)
        return cli_usage(cli, "--name is for one input, got %zu files", cli->nfiles);
    if (args->name_given && (!*args->name_arg || strpbrk(args->name_arg, ",=\t\r\n") ||
                             !rec_is_text(rec_str(args->name_arg))))
        return cli_usage(cli,
                         "--name must be a name without comma, '=' or TAB, in UTF-8");
    settings->profile.mirror = pass == 1;
    settings->profile.time_unit = unit_seconds[unit];
    settings->profile.memory = memory ? INPUT_MEMORY_ACTIVATION : INPUT_MEMORY_TOTAL;
    settings->job = !args->no_job_given;
    settings->dot = args->dot_given;
    settings->name = args->name_arg;
    return true;
}

/* A profile. The heads of all profiles are read before anything is written, since the
 * provenance of all of them comes first in the output. */
struct source {
    const char *path;
    struct rec_reader *reader; /* NULL: a regular file, which is opened again later */
    struct input_head head;
    char model[300], id[320];
    unsigned namesakes; /* profiles after it whose files have the same name */
};

/* The name of a graph follows from its file: a/vgg16.txt.gz and a/vgg16/graph.txt both
 * give vgg16. */
static void
name_of_file(const char *path, char *name, size_t room)
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
        if (folder_end > folder && *folder != '.') { /* ., .. and / are no names */
            base = folder;
            end = folder_end;
        }
    }
    snprintf(name, room, "%.*s", (int)(end - base), base);
}

/*
 * Chooses the names of a graph and its model. A graph is named after its file, or after
 * its network if it comes on standard input. A model is named after its network, or like
 * the graph if the profile does not name the network. --name replaces both. A second
 * graph of one name becomes NAME-2.
 */
static bool
choose_names(struct source *all, uint32_t i, const char *given, struct rec_map *seen,
             struct rec_error *err)
{
    struct source *source = &all[i];
    const char *said = given ? given : source->head.network;
    bool standard = strcmp(source->path, "-") == 0;
    char base[sizeof source->model];
    uint32_t first;

    if (given || (standard && *said))
        snprintf(base, sizeof base, "%s", said);
    else
        name_of_file(standard ? "stdin" : source->path, base, sizeof base);
    rec_clean_id(base);
    if (!rec_is_text(rec_str(base)))
        return rec_fail(err, REC_USAGE,
                        "%s: a graph is called as its file, and the name is no UTF-8, or "
                        "too long: give --name",
                        source->path);
    snprintf(source->model, sizeof source->model, "%s", *said ? said : base);
    snprintf(source->id, sizeof source->id, "%s", base);
    first = rec_map_get(seen, rec_str(base));
    while (rec_map_get(seen, rec_str(source->id)) != REC_NONE)
        snprintf(source->id, sizeof source->id, "%s-%u", base,
                 ++all[first].namesakes + 1);
    return rec_map_add(seen, rec_str(source->id), i, err);
}

/* Reads the heads of all profiles. A regular file is then closed, and opened again for
 * the rest, since there may be more files than a process may have open. A pipe cannot be
 * opened again, and stays open. */
static bool
read_heads(struct cli *cli, const struct settings *settings, struct source *all, size_t n)
{
    struct source *source = all;
    struct rec_map seen = {0};
    struct stat status;
    bool ok = true;

    for (uint32_t i = 0; ok && i < n; i++, source++) {
        source->reader = rec_reader_open(&source->path, 1, NULL, &cli->err);
        ok = source->reader &&
             input_read_head(source->reader, &source->head, &cli->err) &&
             choose_names(all, i, settings->name, &seen, &cli->err);
        if (stat(source->path, &status) == 0 && S_ISREG(status.st_mode)) {
            rec_reader_close(source->reader);
            source->reader = NULL;
        }
    }
    rec_map_free(&seen);
    return ok;
}

/* Writes the provenance of the profiles before that of this tool; once for consecutive
 * files with the same provenance. */
static bool
write_provenance(struct cli *cli, const struct source *source, size_t n)
{
    char *before;
    const char *last = "";
    struct rec_text text;

    if (!rec_text_open(&text, &cli->err))
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *made = source[i].head.provenance;
        if (made && strcmp(made, last) != 0)
            fputs(last = made, text.out);
    }
    if (!(before = rec_text_close(&text, &cli->err)))
        return false;
    if (*before)
        rec_writer_next(cli->writer, before, cli->provenance);
    free(before);
    return true;
}

static bool
convert(struct cli *cli, const struct settings *settings, struct source *source)
{
    struct graph graph = {0};
    bool ok;

    if (!source->reader)
        source->reader = rec_reader_open(&source->path, 1, NULL, &cli->err);
    ok = source->reader && input_read_profile(&graph, source->reader, &settings->profile,
                                              rec_str(source->id), rec_str(source->model),
                                              &source->head, &cli->err);
    if (ok) {
        cli_note(cli, "%s: %zu ops, %zu deps", graph.id, graph.nops, graph.ndeps);
        if (settings->dot)
            graph_write_dot(&graph, cli->writer);
        else
            graph_write(&graph, cli->writer);
        if (settings->job && !settings->dot)
            graph_write_job(&graph, settings->steps, cli->writer);
    }
    graph_free(&graph);
    rec_reader_close(source->reader);
    source->reader = NULL;
    return ok;
}

static bool
run(struct cli *cli, const struct pd2graph_args *args)
{
    size_t n = cli->nfiles ? cli->nfiles : 1;
    struct source *source = calloc(n, sizeof *source);
    struct settings settings;
    bool ok = source || rec_fail_memory(&cli->err);

    for (size_t i = 0; ok && i < n; i++)
        source[i].path = cli->nfiles ? cli->files[i] : "-";
    ok = ok && read_settings(cli, args, &settings) &&
         read_heads(cli, &settings, source, n) && cli_open_writer(cli, !settings.dot) &&
         (settings.dot || write_provenance(cli, source, n));
    for (size_t i = 0; ok && i < n; i++)
        ok = convert(cli, &settings, &source[i]);
    for (size_t i = 0; source && i < n; i++) {
        rec_reader_close(source[i].reader);
        input_head_free(&source[i].head);
    }
    free(source);
    return ok;
}
