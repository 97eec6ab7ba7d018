/* rec2sqlite [OPTION]... [FILE]... - records as tables of an SQLite database. */
#include "ggo/rec2sqlite.h"
#include "main.h"

#include "rampipe/database.h"

#include <unistd.h>

static bool
read_types(struct cli *cli, const char *text, bool wanted[REC_NTYPES])
{
    struct rec_str rest = rec_str(text), word;
    while (rec_str_split(&rest, ',', &word)) {
        int type = REC_MARK + 1;
        while (type < REC_NTYPES &&
               !rec_str_is(word, rec_spec((enum rec_type)type)->name))
            type++;
        if (type == REC_NTYPES)
            return cli_usage(cli,
                             "--types must be types of records separated by commas "
                             "(%sreccheck --list shows them), got '%.*s'",
                             cli->prefix, (int)word.len, word.ptr);
        wanted[type] = true;
    }
    return true;
}

/* With --append, opens the database to add streams to; otherwise makes a new one, which
 * take_all() writes when it is whole. NULL: cli->err. */
static struct database *
open_database(struct cli *cli, bool append, const bool wanted[REC_NTYPES])
{
    if (append && !cli->output) {
        (void)!cli_usage(cli, "--append needs -o FILE, the database to add to");
        return NULL;
    }
    if (append)
        return database_open(cli->output, wanted, &cli->err);
    if (!cli->output && isatty(STDOUT_FILENO)) {
        (void)!cli_usage(cli,
                         "a database is nothing for a terminal: give it a file, -o FILE");
        return NULL;
    }
    if (!cli_open_writer(cli, false) || !rec_writer_claim(cli->writer, &cli->err))
        return NULL;
    /* This check follows rec_writer_claim(): a database that another program puts there
     * after the check is not replaced either. */
    if (cli->output && database_is_there(cli->output)) {
        (void)!cli_usage(cli,
                         "%s: a database is there: --append adds to it, else remove it",
                         cli->output);
        return NULL;
    }
    return database_new(cli->output ? cli->output : "<stdout>", wanted, &cli->err);
}

static bool
take_all(struct cli *cli, struct database *database)
{
    struct rec rec;
    int status;
    while ((status = cli_next(cli, &rec)) > 0)
        if (!database_take(database, cli->reader, &rec, &cli->err))
            return false;
    return status == 0 && database_finish(database, &cli->err) &&
           (!cli->writer || database_write(database, cli->writer, &cli->err));
}

static bool
run(struct cli *cli, const struct rec2sqlite_args *args)
{
    bool wanted[REC_NTYPES] = {false};
    struct database *database = NULL;
    uint64_t rows, streams;
    bool ok = read_types(cli, args->types_arg, wanted) &&
              (database = open_database(cli, args->append_given, wanted)) &&
              cli_open_reader(cli) && take_all(cli, database);
    if (database) {
        rows = database_rows(database);
        streams = database_streams(database);
        if (ok)
            cli_note(cli, "records: %llu, streams: %llu", (unsigned long long)rows,
                     (unsigned long long)streams);
        if (ok && rows == 0)
            cli_warn(cli, "the input has no record of --types %s", args->types_arg);
        if (!ok && !cli->writer && streams > 0)
            cli_warn(cli, "streams before the error, which stay in the database: %llu",
                     (unsigned long long)streams);
    }
    database_free(database);
    return ok;
}
