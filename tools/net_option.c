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
        if (n && cli_parse_unit(word, &value))
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

static struct net *
read_file(struct cli *cli, const char *option, const char *path)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &cli->err);
    struct net *net = NULL;
    struct rec rec;
    int status = 0;
    bool found = false;
    if (!reader)
        return NULL;
    while (!found && (status = rec_next(reader, &rec, &cli->err)) > 0)
        if ((found = rec.type == REC_CLUSTER))
            net = net_read(reader, &rec, &cli->err);
    if (!found && status == 0)
        cli_usage(cli, "--%s: there is no cluster record in %s", option, path);
    rec_reader_close(reader);
    return net;
}

struct net *
net_option_record(struct cli *cli, const char *name, const char *line)
{
    struct rec_reader *reader = rec_reader_open_text(name, rec_str(line), &cli->err);
    struct net *net = NULL;
    struct rec rec;
    int status = reader ? rec_next(reader, &rec, &cli->err) : -1;
    if (status > 0 && rec.type == REC_CLUSTER)
        net = net_read(reader, &rec, &cli->err);
    else if (status >= 0)
        rec_fail(&cli->err, REC_DATA, "%s: it is no cluster record", name);
    rec_reader_close(reader);
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
