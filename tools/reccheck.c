/* reccheck [FILE...] - validates a stream against the table; prints the table. */
#include "ggo/reccheck.h"
#include "main.h"

#include "rampipe/device.h"
#include "rampipe/graph.h"
#include "rampipe/metrics.h"
#include "rampipe/net.h"
#include "rampipe/serve.h"
#include "rampipe/spot.h"
#include "rampipe/task.h"

#include <stdlib.h>

static void
put_list(struct cli *cli, const char *type, const char *kind, const char *what,
         const struct rec_field_spec *row)
{
    for (; row->name; row++)
        rec_printf(cli->writer, "%s%s%s\t%s\t%s\t%s\t%s\n", type, *kind ? " " : "", kind,
                   what, row->name, rec_kind_text(row->kind), row->about);
}

static void
put_rows(struct cli *cli, const char *type, const char *kind, const struct rec_spec *spec)
{
    put_list(cli, type, kind, "field", spec->fields);
    put_list(cli, type, kind, "key", spec->keys);
}

static void
put_table(struct cli *cli)
{
    for (enum rec_type type = REC_MARK + 1; type < REC_NTYPES; type++) {
        const struct rec_spec *spec = rec_spec(type), *kind;
        put_rows(cli, spec->name, "", spec);
        for (size_t i = 0; (kind = rec_spec_of_kind(type, i)); i++)
            put_rows(cli, spec->name, kind->kind, kind);
    }
}

static const char man_head[] =
    ".TH RAMPIPE 5 \"\" \"rampipe " TOOL_VERSION "\" \"File Formats\"\n"
    ".SH NAME\nrampipe \\- the record stream of the rampipe suite, version 1\n"
    ".SH DESCRIPTION\n"
    "A stream is text in UTF-8. A line is a record; a TAB separates two fields. The "
    "first field is the type of the record, a lower-case word. The fixed fields of the "
    "type follow, and then optional key=value fields in any order. Any other field is "
    "refused by every reader: a field without a '=' cannot stand behind the fixed "
    "fields. Lines end in LF; CR LF is read, too. Ids contain no comma and no '='. Times "
    "are in seconds, sizes in bytes, rates in bytes per second, money in US$. Numbers "
    "are decimal; inf is allowed where a limit may be absent. A number that is printed "
    "reads back as the same IEEE double.\n"
    ".PP\n.nf\n"
    "#rampipe<TAB>1         first line: the format and its version\n"
    "#@<TAB>partition 0.1.0<TAB>partition \\-\\-degree=4\n"
    "                       one per stage so far, oldest first\n"
    "# anything             comment; so is an empty line\n"
    "#end                   last line: the stream is whole\n"
    "#end<TAB>9<TAB>5e04ac1b  the same, sealed: 9 records, CRC\\-32 of the bytes "
    "between\n"
    "                       the first and the last line\n"
    ".fi\n.PP\n"
    "A stream that opens with #rampipe and stops without #end was cut. So was an input "
    "of no bytes at all. Every tool then ends with status 4, unless \\-\\-partial is "
    "given. A trailer may be a seal: it has the number of records and, in 8 hexadecimal "
    "digits, the CRC\\-32 (as of gzip) of the bytes between header and trailer. A sealed "
    "stream in which any byte was changed is refused with status 4. This holds for its "
    "header and its trailer, too, and for line ends that were changed to CR LF. A tool "
    "that writes a stream anew writes no seal. Streams may be concatenated; between the "
    "#end of one and the #rampipe of the next only comments may stand. #@ lines come "
    "before the records. A stream without #rampipe is taken as written by hand and needs "
    "no #end. Every tool forwards unchanged what it does not consume or change, also "
    "types and keys that are not listed here. A file or pipe may be compressed with "
    "gzip.\n"
    ".PP\nThe records of one graph stand together, in any order. A record that refers to "
    "another (a job to its graphs, an alloc to its job, graph and layout) comes after "
    "it. Jobs, allocs and blocks come in the order of their times.\n";

static const char man_checked[] =
    ".SH WHAT IS CHECKED\n"
    "Every reader refuses a record in which a field is missing, a key stands twice, or a "
    "text is not UTF-8. A check looks at every field and every known key, too, and "
    "at what the records say of each other, as the tools do that read them:\n"
    ".IP \\(bu 2\nEach graph, op, dep, coll, job and layout comes once and is whole. A "
    "graph has at least one op and no cycle. The group of a coll has at least two ops, "
    "each once. All alternatives of a job are in the stream.\n"
    ".IP \\(bu 2\nEvery op of a layout is placed once, on one of its slots. An alloc is "
    "of a job that waits and has arrived, of one of its alternatives, of a layout of "
    "that graph, with a server for each slot.\n"
    ".IP \\(bu 2\nA cluster comes once, before its jobs. Each job behind it is started "
    "or turned away once, and ends once.\n"
    ".IP \\(bu 2\nA cluster is one that its kind allows. Its links and routes stand "
    "behind it, and lead from every server to every other one. So do its stragglers, "
    "each once, and its faults, which are of links that it has and stand in order of "
    "time.\n"
    ".IP \\(bu 2\nInstances come before they go. A training run has each account at most "
    "once.\n"
    ".IP \\(bu 2\nProfiles start at batch 1 and have each batch once. The edges of a "
    "pipeline lead to its stages and make no cycle. Each stage has a profile of its "
    "model and is configured once, with a batch in the range of the profile. All of this "
    "comes before the queries. Each query comes once, in the order of time.\n"
    ".IP \\(bu 2\nA task comes once, its command can be split into words, and its env= "
    "and streams have a form that can be run. Whether the tasks whose output it reads "
    "stand before it is checked by task2graph and runtasks.\n"
    ".PP\nServers are only names to a check. The simulator checks that they are in the "
    "cluster, free and large enough.\n"
    ".PP\nA check knows for good which job names have come if they count on (j1, j2, "
    "j3, ..., in up to 16 runs). Of other names it remembers at least the last 1048576 "
    "and at most twice as many, so that its memory does not grow with the number of "
    "jobs. It remembers hashes of 64 bits: the chance that a new name is taken for "
    "another one is below 1.2e-13 a job.\n"
    ".PP\nSome changes of a stream break no rule and are not seen without a seal:\n"
    ".IP \\(bu 2\na line that is removed, if it is a dep, a coll from which no dep "
    "leads, a result (cluster, block, done, run, send, exchange, train, state, account, "
    "trained, planned, reply, drop, visit, served), part of a trace (trace, and add and "
    "preempt without ids), a model, a profile between others, a price, envelope, edge, "
    "config or query, a task or fence, a job in a stream without a cluster, a link or "
    "route that no other record needs, or a server or fault;\n"
    ".IP \\(bu 2\na line that is there twice, if it is a comment, an add or preempt "
    "without ids, a run, send, exchange, train, state or model, a result of serving, a "
    "config with time=, or a fence;\n"
    ".IP \\(bu 2\ntwo lines that are swapped, where no order is asked for;\n"
    ".IP \\(bu 2\nanother number, or another name that nothing refers to.\n"
    ".PP\nRecords of types that are not listed below are not checked.\n"
    ".SH RECORDS\n";

static const char man_tail[] =
    ".SH EXIT STATUS\nOf every tool: 0 done; 1 a well-formed \"no\"; 2 wrong usage; 3 "
    "bad data; 4 input or output failed, or the input is cut; 70 a bug.\n";

/* Text as roff: a backslash and a leading point or quote would be commands. */
static void
put_roff(struct cli *cli, const char *text)
{
    if (*text == '.' || *text == '\'')
        rec_printf(cli->writer, "\\&");
    for (; *text; text++) {
        if (*text == '\\' || *text == '-')
            rec_printf(cli->writer, "\\");
        rec_printf(cli->writer, *text == '\t' ? "    " : "%c", *text);
    }
}

static void
put_man_rows(struct cli *cli, const struct rec_field_spec *row, const char *after)
{
    for (; row->name; row++) {
        rec_printf(cli->writer, ".TP\n\\fB");
        put_roff(cli, row->name);
        rec_printf(cli->writer, "\\fR%s\n", after);
        put_roff(cli, row->about);
        rec_printf(cli->writer, " (%s)\n", rec_kind_text(row->kind));
    }
}

static void
put_man_spec(struct cli *cli, const struct rec_spec *spec, const char *type,
             const char *kind)
{
    rec_printf(cli->writer, ".SS %s%s%s\n", type, *kind ? " " : "", kind);
    put_roff(cli, spec->about);
    rec_printf(cli->writer, "\n");
    put_man_rows(cli, spec->fields, "");
    put_man_rows(cli, spec->keys, "=");
    if (!spec->example)
        return;
    rec_printf(cli->writer, ".PP\nExample:\n.PP\n.nf\n.RS 2\n");
    put_roff(cli, spec->example);
    rec_printf(cli->writer, "\n.RE\n.fi\n");
}

static void
put_man(struct cli *cli)
{
    rec_put_bytes(cli->writer, man_head, sizeof man_head - 1);
    rec_put_bytes(cli->writer, man_checked, sizeof man_checked - 1);
    for (enum rec_type type = REC_MARK + 1; type < REC_NTYPES; type++) {
        const struct rec_spec *kind;
        put_man_spec(cli, rec_spec(type), rec_spec(type)->name, "");
        for (size_t i = 0; (kind = rec_spec_of_kind(type, i)); i++)
            put_man_spec(cli, kind, rec_spec(type)->name, kind->kind);
    }
    rec_put_bytes(cli->writer, man_tail, sizeof man_tail - 1);
}

/* What records say of each other. */
struct said {
    struct graph_stream graphs; /* and jobs, layouts, allocs, results */
    struct net_reading cluster; /* and its links */
    struct spot_order order;
    struct spot_names names;
    struct metrics_accounts accounts;
    struct serve_check serving;
    struct task_check tasks;
    struct device_table devices;
};

static bool
check_model(struct cli *cli, const struct rec *rec)
{
    struct spot_model model;
    bool ok;
    spot_model_clear(&model);
    ok = spot_model_read(&model, cli->reader, rec, &cli->err);
    spot_model_free(&model);
    return ok;
}

/* A cluster and its links. Another stream may have another one. */
static bool
check_cluster(struct cli *cli, struct said *said, const struct rec *rec)
{
    if (!net_reading_take(&said->cluster, cli->reader, rec, NULL, &cli->err))
        return false;
    if (rec->type == REC_MARK) {
        net_free(said->cluster.net);
        said->cluster.net = NULL;
    }
    return true;
}

static bool
check_record(struct cli *cli, struct said *said, const struct rec *rec)
{
    const struct rec_reader *reader = cli->reader;
    struct rec_error *err = &cli->err;
    struct graph_said graph;
    struct spot_event event;
    size_t state;
    uint64_t jobs;
    double accepted;
    int happened;

    if (rec->type == REC_MARK) { /* each stream is a trace of its own */
        said->order = (struct spot_order){.framed = false};
        spot_names_free(&said->names);
    } else if (!rec_check(reader, rec, err))
        return false;
    if (!graph_stream_take(&said->graphs, reader, rec, &graph, err) ||
        !metrics_accounts_take(&said->accounts, reader, rec, &state, err) ||
        !metrics_bound_read(reader, rec, &jobs, &accepted, err) ||
        !serve_check_take(&said->serving, reader, rec, err) ||
        !task_check_take(&said->tasks, reader, rec, err) ||
        !device_table_take(&said->devices, reader, rec, err) ||
        !check_cluster(cli, said, rec) ||
        (rec->type == REC_MODEL && !check_model(cli, rec)))
        return false;
    happened = spot_read(&said->order, reader, rec, &event, err);
    return happened == 0 || (happened > 0 && spot_names_take(&said->names, &said->order,
                                                             &event, reader, err));
}

/* "ok: 3 records, 1 graph, 2 op", on standard error: a file or pipe that a stream is
 * checked into never gets it. */
static bool
say_verdict(struct cli *cli, const uint64_t count[REC_NTYPES], uint64_t total)
{
    struct rec_text text;
    char *list;
    if (!rec_text_open(&text, &cli->err))
        return false;
    for (enum rec_type type = REC_OTHER; type < REC_NTYPES; type++)
        if (count[type] && type != REC_COMMENT && type != REC_MARK)
            fprintf(text.out, ", %llu %s", (unsigned long long)count[type],
                    type == REC_OTHER ? "other" : rec_spec(type)->name);
    list = rec_text_close(&text, &cli->err);
    if (list)
        cli_tell(cli, "ok: %llu records%s", (unsigned long long)total, list);
    free(list);
    return list != NULL;
}

static bool
check(struct cli *cli, bool pass)
{
    struct said said = {.graphs = {.servers = true}};
    uint64_t count[REC_NTYPES] = {0}, total = 0;
    struct rec rec;
    bool ok = true;
    int status = 0;

    while (ok && (status = cli_next(cli, &rec)) > 0) {
        ok = check_record(cli, &said, &rec);
        count[rec.type]++;
        total += rec.type > REC_MARK || rec.type == REC_OTHER;
        if (ok && pass)
            rec_put_line(cli->writer, rec.line);
    }
    ok = ok && status == 0 && net_reading_end(&said.cluster, &cli->err) &&
         graph_stream_end(&said.graphs, &cli->err) &&
         graph_stream_decided(&said.graphs, &cli->err) &&
         serve_check_end(&said.serving, cli->reader, &cli->err);
    graph_stream_free(&said.graphs);
    net_free(said.cluster.net);
    spot_names_free(&said.names);
    serve_check_free(&said.serving);
    task_check_free(&said.tasks);
    device_table_free(&said.devices);
    return ok && (pass || say_verdict(cli, count, total));
}

static bool
run(struct cli *cli, const struct reccheck_args *args)
{
    if (args->man_given || args->list_given) {
        if (args->man_given + args->list_given + args->pass_given + args->seal_given > 1u)
            return cli_usage(cli,
                             "--man, --list, and --pass or --seal exclude each other");
        if (cli->nfiles > 0)
            return cli_usage(cli, "--man and --list read no stream: leave out %s",
                             cli->files[0]);
        if (!cli_open_writer(cli, false))
            return false;
        if (args->man_given)
            put_man(cli);
        else
            put_table(cli);
        return true;
    }
    if (args->pass_given || args->seal_given) {
        if (!cli_open_filter(cli))
            return false;
        if (args->seal_given)
            rec_writer_seal(cli->writer);
        return check(cli, true);
    }
    if (cli->output)
        return cli_usage(cli,
                         "-o needs --pass or --seal: only they write the stream (the "
                         "verdict goes to standard error)");
    return cli_open_reader(cli) && check(cli, false);
}
