/* Reads options that describe a cluster. */
#include "net_option.h"

#include <stdio.h>

/* Copies a description with each number that has a unit replaced by the number in base
 * units. */
static bool
expand_units(struct cli *cli, const char *option, const char *text, char *out,
             size_t room)
{
    size_t len = 0;
    while (*text && len + REC_NUM_MAX < room) {
        size_t n = strcspn(text, ":,=");
        struct rec_str word = {text, n};
        double value;
        if (n && rec_parse_unit(word, &value))
            len += rec_format_num(out + len, value);
        else if (len + n + REC_NUM_MAX < room) {
            memcpy(out + len, text, n);
            len += n;
        } else
            break;
        text += n;
        if (*text)
            out[len++] = *text++;
    }
    out[len] = '\0';
    return !*text || cli_usage(cli, "--%s: the text is too long", option);
}

/* Reads the first cluster, with its parts. *found is false if there is none. NULL: that,
 * or an error. Closes the reader. */
static struct net *
read_first(struct cli *cli, struct rec_reader *reader, bool *found)
{
    struct net_reading reading = {NULL, false};
    struct rec rec;
    bool ok = true;
    int status;
    while (ok && (status = rec_next(reader, &rec, &cli->err)) > 0) {
        if (reading.net && !rec_continues(&rec, REC_CLUSTER))
            break;
        ok = net_reading_take(&reading, reader, &rec, NULL, &cli->err);
    }
    ok = ok && status >= 0 && net_reading_end(&reading, &cli->err);
    *found = !ok || reading.net;
    rec_reader_close(reader);
    if (ok)
        return reading.net;
    net_free(reading.net);
    return NULL;
}

static struct net *
read_file(struct cli *cli, const char *option, const char *path)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &cli->err);
    bool found;
    struct net *net = reader ? read_first(cli, reader, &found) : NULL;
    if (reader && !found)
        cli_usage(cli, "--%s: there is no cluster record in %s", option, path);
    return net;
}

struct net *
net_option_record(struct cli *cli, const char *name, const char *line)
{
    struct rec_reader *reader = rec_reader_open_text(name, rec_str(line), &cli->err);
    bool found;
    struct net *net = reader ? read_first(cli, reader, &found) : NULL;
    if (reader && !found)
        rec_fail(&cli->err, REC_DATA, "%s: it is no cluster record", name);
    return net;
}

struct net *
net_option(struct cli *cli, const char *option, const char *text)
{
    char expanded[1000];
    struct rec_error wrong;
    struct net *net;
    if (!strchr(text, ':'))
        return read_file(cli, option, text);
    if (!expand_units(cli, option, text, expanded, sizeof expanded))
        return NULL;
    if (!(net = net_parse(expanded, &wrong)))
        rec_fail(&cli->err, wrong.code, "--%s: %s", option, wrong.text);
    return net;
}
