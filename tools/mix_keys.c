/* Reads the options that tools/mix_keys.ggo gives to several tools. */
#include "mix_keys.h"
#include "net_option.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- tables ---------------------------------------------------------------- */

static bool
read_stacks(struct cli *cli, const char *path, struct parallel_stacks *stacks)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &cli->err);
    bool ok = reader && parallel_stacks_read(stacks, reader, &cli->err);
    rec_reader_close(reader);
    return ok;
}

/* Records of a device and of what it needs: of which table each kind is. */
enum { DEVICES, STACKS, COLLECTIVES, KERNELS, TABLES };

static int
table_of(enum rec_type type)
{
    switch (type) {
    case REC_COMMENT:
    case REC_MARK: return TABLES;
    case REC_STACK: return STACKS;
    case REC_SERIES:
    case REC_PIECE:
    case REC_FABRIC:
    case REC_CHECKED: return COLLECTIVES;
    case REC_LAW:
    case REC_TIMED: return KERNELS;
    default: return DEVICES; /* which refuses what it does not know */
    }
}

/* Tables of kernels are read behind the devices. */
static bool
open_kernels(struct cli *cli, struct mix_tables *tables)
{
    return tables->kernels ||
           (tables->kernels = parallel_kernels_new(&tables->devices, &cli->err));
}

static bool
read_kernels(struct cli *cli, const char *path, struct mix_tables *tables)
{
    size_t before, inference;
    if (!path)
        return true;
    if (!open_kernels(cli, tables))
        return false;
    before = parallel_kernels_inference(tables->kernels);
    if (!parallel_kernels_read(tables->kernels, path, &cli->err))
        return false;
    inference = parallel_kernels_inference(tables->kernels) - before;
    if (inference > 0)
        cli_warn(
            cli,
            "%s: %zu kernels are of inference, as rows with dtype and without set are: "
            "they only stand near those of training (set=training)",
            path, inference);
    return true;
}

/* The records of each table as a text; those of others are comments there, so that lines
 * keep their numbers. *kernels: there are some. */
static bool
divide(struct cli *cli, const char *path, char **part, bool *kernels)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &cli->err);
    struct rec_text text[TABLES] = {{0}};
    bool ok = reader;
    struct rec rec;
    int status = -1;
    for (int i = 0; i < TABLES; i++)
        ok = ok && rec_text_open(&text[i], &cli->err);
    while (ok && (status = rec_next(reader, &rec, &cli->err)) > 0) {
        *kernels = *kernels || table_of(rec.type) == KERNELS;
        for (int i = 0; i < TABLES; i++)
            fprintf(text[i].out, "%.*s\n",
                    table_of(rec.type) == i ? (int)rec.line.len : 1,
                    table_of(rec.type) == i ? rec.line.ptr : "#");
    }
    for (int i = 0; i < TABLES; i++)
        if (text[i].out && !(part[i] = rec_text_close(&text[i], &cli->err)))
            status = -1;
    rec_reader_close(reader);
    return status == 0;
}

static bool
read_machine(struct cli *cli, const char *path, struct mix_tables *tables)
{
    char *part[TABLES] = {NULL};
    bool kernels = false, ok = divide(cli, path, part, &kernels);
    for (int i = 0; ok && i < (kernels ? TABLES : KERNELS); i++) {
        struct rec_reader *reader =
            rec_reader_open_text(path, rec_str(part[i]), &cli->err);
        ok = reader && (i != KERNELS || open_kernels(cli, tables)) &&
             (i == DEVICES  ? device_table_read(&tables->devices, reader, &cli->err)
              : i == STACKS ? parallel_stacks_read(&tables->stacks, reader, &cli->err)
              : i == COLLECTIVES
                  ? collective_table_read(&tables->collectives, reader, &cli->err)
                  : parallel_kernels_take(tables->kernels, reader, &cli->err));
        rec_reader_close(reader);
    }
    for (int i = 0; i < TABLES; i++)
        free(part[i]);
    return ok;
}

/* Bandwidth from one server to another: what a message of twice the size takes longer. */
static bool
find_bandwidth(const struct net *net, uint32_t to, double *bandwidth,
               struct rec_error *err)
{
    const uint32_t server[] = {0, to};
    struct net_exchange e[2];
    double seconds[2];
    for (int i = 0; i < 2; i++)
        e[i] = (struct net_exchange){.kind = GRAPH_SEND,
                                     .server = server,
                                     .n = 2,
                                     .bytes = 1e9 * (i + 1),
                                     .flow = 1e9 * (i + 1)};
    if (!net_alone(net, e, 2, seconds, err))
        return false;
    *bandwidth = 1e9 / (seconds[1] - seconds[0]);
    return true;
}

/* What each server of a node has of the links to the next one, if all send at once: of an
 * adapter that several share, or of links that they cross together, a part. */
static bool
find_share(const struct net *net, uint32_t node, double *bandwidth, struct rec_error *err)
{
    uint32_t links = net_links(net), *route = NULL, *users = NULL;
    bool ok;
    if (links == 0)
        return true;
    route = calloc(net_longest_route(net), sizeof *route);
    users = calloc(links, sizeof *users);
    ok = (route && users) || rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < node && node + i < net_servers(net); i++)
        for (uint32_t j = net_route(net, i, node + i, route); j-- > 0;)
            users[route[j]]++;
    for (uint32_t i = 0; ok && i < links; i++) {
        struct net_link link;
        net_link(net, i, &link);
        if (users[i] > 1)
            *bandwidth = fmin(*bandwidth, link.capacity / users[i]);
    }
    free(route);
    free(users);
    return ok;
}

/* A node is the smallest set of servers above one, and what lies beside it is reached
 * over adapters. */
static bool
read_cluster(struct cli *cli, const char *text, struct mix_tables *tables)
{
    const struct net_level *level;
    uint32_t node;
    double nic;
    size_t n;
    if (!(tables->net = net_option(cli, "cluster", text)))
        return false;
    tables->memory = net_memory(tables->net);
    n = net_levels(tables->net, &level);
    node = n > 1 ? level[n - 2].servers : 1;
    snprintf(tables->node, sizeof tables->node, "%u", node);
    if (node > 1 && !find_bandwidth(tables->net, 1, &tables->inside, &cli->err))
        return false;
    if (node >= net_servers(tables->net))
        return true;
    if (!find_bandwidth(tables->net, node, &nic, &cli->err) ||
        !find_share(tables->net, node, &nic, &cli->err))
        return false;
    rec_format_num(tables->nic, nic);
    return true;
}

/* A schedule that is none of the built-in ones is a file. */
static bool
read_schedule(struct cli *cli, const char *name, struct mix_tables *tables)
{
    struct rec_reader *reader;
    bool ok;
    tables->schedule = name;
    if (parallel_schedule_find(name))
        return true;
    if (access(name, F_OK) != 0)
        return rec_fail(&cli->err, REC_USAGE,
                        "there is no schedule '%s', and no file: --schedule must be "
                        "gpipe, 1f1b, interleaved, zero-bubble, v, or a file",
                        name);
    reader = rec_reader_open(&name, 1, NULL, &cli->err);
    ok = reader && parallel_own_read(&tables->own, reader, &cli->err);
    rec_reader_close(reader);
    if (ok && tables->own.n != 1)
        ok = rec_fail(&cli->err, REC_DATA, "%s has %zu schedules, and not one", name,
                      tables->own.n);
    if (ok)
        tables->schedule = tables->own.schedule[0].name;
    return ok;
}

/* ---- words of others ----------------------------------------------------------- */

static char *gathered; /* what mix_words() puts into argv */

int
mix_words(int argc, char **argv)
{
    static const char option[] = "--megatron=";
    size_t room = sizeof option;
    int n = 0, first = 0;
    for (int i = 0; i < argc; i++)
        room += strlen(argv[i]) + 1;
    free(gathered);
    if (!(gathered = malloc(room))) {
        fprintf(stderr, "%s: out of memory\n", argv[0]);
        exit(REC_IO);
    }
    strcpy(gathered, option);
    for (int i = 0; i < argc; i++) {
        bool valued, all = i > 0 && strcmp(argv[i], "--") == 0;
        /* of both; it is ours */
        bool own = strcmp(argv[i], "--sequence-parallel") == 0;
        if (i == 0 || own || all || !parallel_words_knows(argv[i], &valued)) {
            argv[n++] = argv[i];
            while (all && ++i < argc)
                argv[n++] = argv[i];
            continue;
        }
        if (first == 0)
            first = n++;
        else
            strcat(gathered, " ");
        strcat(gathered, argv[i]);
        if (valued && i + 1 < argc)
            strcat(strcat(gathered, " "), argv[++i]);
    }
    if (first > 0)
        argv[first] = gathered;
    argv[n] = NULL;
    return n;
}

/* Says of which words an error is. */
static bool
fail_args(struct cli *cli, const char *what)
{
    char text[sizeof cli->err.text];
    if (cli->err.code != REC_DATA)
        return false;
    memcpy(text, cli->err.text, sizeof text);
    return rec_fail(&cli->err, REC_DATA, "%s: %s", what, text);
}

static void
warn_unused(struct cli *cli, const char *what, struct parallel_words *args)
{
    if (args->unused)
        cli_warn(cli, "%s: not used: %s", what, args->unused);
    free(args->unused);
    args->unused = NULL;
    args->unused_room = 0;
}

static void
warn_none(struct cli *cli, const char *what, const struct parallel_words *args)
{
    if (args->n == 0)
        cli_warn(cli, "%s: it has no argument or variable that says how to train", what);
}

static bool
read_args(struct cli *cli, const char *what, struct rec_reader *reader,
          struct parallel_words *args)
{
    bool ok = reader && parallel_words_read(args, reader, &cli->err);
    rec_reader_close(reader);
    if (!ok)
        return fail_args(cli, what);
    warn_unused(cli, what, args);
    warn_none(cli, what, args);
    return true;
}

/* What the words of the file and of the command line say together. */
static bool
finish_args(struct cli *cli, const struct mix_options *options,
            struct parallel_words *args)
{
    const char *what = options->megatron ? "--megatron" : options->args, *tp = NULL;
    for (const struct mix_key *k = options->key; k->key; k++)
        if (strcmp(k->key, "tp") == 0)
            tp = k->value;
    bool some = args->n > 0;
    if (!what)
        return true;
    if (!parallel_words_finish(args, tp, &cli->err))
        return fail_args(cli, what);
    warn_unused(cli, what, args);
    if (some)
        warn_none(cli, what, args);
    return true;
}

bool
mix_tables_read(struct cli *cli, const struct mix_options *options, bool alone,
                struct mix_tables *tables)
{
    if (alone && !options->stacks)
        return cli_usage(cli, "--alone needs --stacks");
    return device_table_read_shipped(&tables->devices, &cli->err) &&
           collective_table_read_shipped(&tables->collectives, &cli->err) &&
           (alone || parallel_stacks_read_shipped(&tables->stacks, &cli->err)) &&
           (!options->stacks || read_stacks(cli, options->stacks, &tables->stacks)) &&
           (!options->devices || read_machine(cli, options->devices, tables)) &&
           read_kernels(cli, options->kernels[0], tables) &&
           read_kernels(cli, options->kernels[1], tables) &&
           (!options->schedule || read_schedule(cli, options->schedule, tables)) &&
           (!options->args ||
            read_args(cli, options->args,
                      rec_reader_open(&options->args, 1, NULL, &cli->err),
                      &tables->args)) &&
           (!options->megatron ||
            read_args(
                cli, "--megatron",
                rec_reader_open_text("--megatron", rec_str(options->megatron), &cli->err),
                &tables->args)) &&
           finish_args(cli, options, &tables->args) &&
           (!options->cluster || read_cluster(cli, options->cluster, tables));
}

void
mix_tables_free(struct mix_tables *tables)
{
    parallel_kernels_free(tables->kernels);
    parallel_stacks_free(&tables->stacks);
    device_table_free(&tables->devices);
    collective_table_free(&tables->collectives);
    parallel_own_free(&tables->own);
    parallel_words_free(&tables->args);
    net_free(tables->net);
    free(tables->compared);
}

/* ---- keys -------------------------------------------------------------------- */

static void
add_key(FILE *out, const char *key, const char *value)
{
    fprintf(out, "\t%s=", key);
    for (const char *c = value; *c; c++)
        fputc((unsigned char)*c < ' ' ? ' ' : *c, out);
}

/* What an option says of a key; NULL: nothing. */
static const char *
of_option(const struct mix_options *options, const struct mix_tables *tables,
          const char *key)
{
    if (strcmp(key, "schedule") == 0)
        return tables->schedule;
    for (const struct mix_key *k = options->key; k->key; k++)
        if (strcmp(key, k->key) == 0)
            return k->value;
    return NULL;
}

static bool
given(const struct mix_options *options, const struct mix_tables *tables, const char *key)
{
    return of_option(options, tables, key) || parallel_words_find(&tables->args, key);
}

/* Two keys for one number: the one that is given takes the place of the other. */
static bool
replaced(const struct mix_options *options, const struct mix_tables *tables,
         struct rec_str key)
{
    static const char *const pairs[][2] = {{"gbs", "replica_batch"},
                                           {"vp", "chunk_layers"}};
    char name[40];
    snprintf(name, sizeof name, "%.*s", (int)(key.len < 39 ? key.len : 39), key.ptr);
    if (given(options, tables, name))
        return true;
    for (size_t i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (strcmp(name, pairs[i][j]) == 0 && given(options, tables, pairs[i][!j]))
                return true;
    return false;
}

void
mix_warn_cluster(const struct cli *cli, const struct mix_options *options,
                 const struct rec *rec)
{
    if (rec->type == REC_CLUSTER && !options->cluster)
        cli_warn(cli, "a cluster in the stream changes no answer: give --cluster");
}

void
mix_warn_idle(const struct cli *cli, uint64_t idle, uint64_t asked)
{
    cli_warn(
        cli,
        "in %llu of %llu questions selective recomputation runs nothing again: fused "
        "attention keeps no scores (Megatron-LM would run it again)",
        (unsigned long long)idle, (unsigned long long)asked);
}

enum { DROPPED_MAX = 200 };

/* What Megatron has for a key of the model that its arguments leave out. */
static double
megatron_has(struct rec_str key, double hidden, double heads)
{
    return rec_str_is(key, "kv")         ? heads
           : rec_str_is(key, "head_dim") ? hidden / heads
                                         : 0;
}

/* Is the key one of a model that arguments of Megatron describe, and leave out? Then it
 * is as Megatron has it, and not as the record has it. If these differ, it goes into
 * `dropped`. */
static bool
left_out(const struct mix_tables *tables, struct rec_str key, struct rec_str value,
         char dropped[DROPPED_MAX])
{
    static const char *const keys[] = {
        "kv",         "head_dim",     "qk_norm",    "experts", "topk",
        "expert_ffn", "window",       "q_rank",     "kv_rank", "rope_dim",
        "value_dim",  "dense_layers", "shared_ffn", "blocks",  NULL};
    const char *hidden = parallel_words_find(&tables->args, "hidden");
    const char *heads = parallel_words_find(&tables->args, "heads");
    const char *const *k = keys;
    double number, megatron;
    if (!hidden || !heads || !parallel_words_find(&tables->args, "layers"))
        return false;
    while (*k && !rec_str_is(key, *k))
        k++;
    if (!*k)
        return false;
    megatron = megatron_has(key, strtod(hidden, NULL), strtod(heads, NULL));
    if (!rec_str_is(value, "none") &&
        !(rec_parse_num(value, &number) && fabs(number - megatron) < 1e-3))
        rec_list_name(dropped, DROPPED_MAX, *k);
    return true;
}

bool
mix_options_any(const struct mix_options *options, const struct mix_tables *tables)
{
    for (const struct mix_key *k = options->key; k->key; k++)
        if (k->value)
            return true;
    return options->cluster || tables->schedule || tables->args.n > 0;
}

static bool
write_line(struct cli *cli, const struct mix_options *options,
           const struct mix_tables *tables, const struct rec *rec, char **line)
{
    struct rec_text text;
    struct rec_str key, value;
    bool node = false, nic = false, precision = given(options, tables, "precision");
    char dropped[DROPPED_MAX] = "";
    size_t at = 0;
    int status;
    if (!rec_text_open(&text, &cli->err))
        return false;
    fprintf(text.out, "training\t%.*s", (int)rec->field[1].len, rec->field[1].ptr);
    while ((status = rec_next_key(cli->reader, rec, &at, &key, &value, &cli->err)) > 0) {
        node = node || rec_str_is(key, "node");
        nic = nic || rec_str_is(key, "nic");
        precision = precision || rec_str_is(key, "precision");
        if (!replaced(options, tables, key) && !left_out(tables, key, value, dropped))
            fprintf(text.out, "\t%.*s=%.*s", (int)key.len, key.ptr, (int)value.len,
                    value.ptr);
    }
    for (const struct mix_key *k = options->key; k->key; k++)
        if (k->value)
            add_key(text.out, k->key, k->value);
    if (tables->schedule)
        add_key(text.out, "schedule", tables->schedule);
    for (size_t i = 0; i < tables->args.n; i++) {
        const struct parallel_arg *a = &tables->args.arg[i];
        node = node || strcmp(a->key, "node") == 0;
        if (!of_option(options, tables, a->key))
            add_key(text.out, a->key, a->value);
    }
    if (!node && tables->node[0])
        add_key(text.out, "node", tables->node);
    if (!nic && tables->nic[0])
        add_key(text.out, "nic", tables->nic);
    fputc('\n', text.out);
    if (!precision && parallel_words_find(&tables->args, "layers") &&
        parallel_words_find(&tables->args, "hidden"))
        cli_warn(cli, "the arguments describe the model without --bf16 or --fp16: "
                      "Megatron-LM would train in 32 bits, and this is of bf16");
    if (*dropped)
        cli_warn(cli,
                 "the arguments describe the model, and what they leave out is as "
                 "Megatron-LM has it; of the record do not count: %s",
                 dropped);
    *line = rec_text_close(&text, &cli->err);
    return *line && status == 0;
}

/* Of a cluster only the size of islands and the adapters count: says if the links or the
 * memory of a device, which stand in for its own, are others; once for each device. */
static bool
compare(struct cli *cli, struct mix_tables *tables, const struct rec *rec)
{
    const struct collective_fabric *fabric;
    const struct device *device;
    struct rec_str name;
    char text[64];
    if ((tables->memory <= 0 && tables->inside <= 0) || tables->colls ||
        !rec_find_key(rec, "device", &name))
        return true;
    snprintf(text, sizeof text, "%.*s", (int)(name.len < 63 ? name.len : 63), name.ptr);
    fabric = parallel_fabric(&tables->collectives, text);
    if (!(device = device_find(&tables->devices, text)))
        return true; /* the question is refused */
    if (!tables->compared &&
        !(tables->compared = calloc(tables->devices.ndevices, sizeof(bool))))
        return rec_fail_memory(&cli->err);
    if (tables->compared[device - tables->devices.device])
        return true;
    tables->compared[device - tables->devices.device] = true;
    if (fabric && tables->inside > 0 &&
        fabs(log(tables->inside / fabric->bandwidth)) > log(1.1))
        cli_warn(
            cli,
            "links inside an island of the cluster carry %.4g GB/s, those of %s %.4g: "
            "exchanges inside take the times of %s",
            tables->inside / 1e9, text, fabric->bandwidth / 1e9, text);
    if (tables->memory > 0 && fabs(log(tables->memory / device->memory)) > log(1.1))
        cli_warn(
            cli,
            "servers of the cluster have %.4g GB, %s has %.4g: what fits is what fits "
            "on %s",
            tables->memory / 1e9, text, device->memory / 1e9, text);
    return true;
}

struct rec_reader *
mix_keys_apply(struct cli *cli, const struct mix_options *options,
               struct mix_tables *tables, struct rec *rec, char **line)
{
    struct rec_reader *reader;
    *line = NULL;
    if (!rec_check(cli->reader, rec, &cli->err) ||
        !write_line(cli, options, tables, rec, line))
        return NULL;
    reader = rec_reader_open_text("the training record", rec_str(*line), &cli->err);
    if (reader && rec_next(reader, rec, &cli->err) > 0 && compare(cli, tables, rec))
        return reader;
    rec_reader_close(reader);
    return NULL;
}
