/* net2rec links [OPTION]... [FILE]... - which links a cluster of any kind has. */
#include "ggo/net2rec-links.h"
#include "main.h"

#include "rampipe/net.h"

/* A table, and no stream: link records stand behind a custom cluster alone. */
static void
write_links(struct cli *cli, const struct net *net)
{
    char from[NET_NODE_MAX], to[NET_NODE_MAX];
    rec_printf(cli->writer, "from\tto\tbandwidth\tlatency\n");
    for (uint32_t i = 0; i < net_links(net); i++) {
        struct net_link link;
        net_link(net, i, &link);
        net_format_node(net, link.from, from);
        net_format_node(net, link.to, to);
        rec_begin(cli->writer, from); /* a line with tabs, as of a record */
        rec_text_field(cli->writer, to);
        rec_num_field(cli->writer, link.capacity);
        rec_num_field(cli->writer, link.latency);
        rec_end(cli->writer);
    }
}

static bool
check_links(struct cli *cli, const struct net *net)
{
    char text[NET_TEXT_MAX];
    if (!net)
        return rec_fail(&cli->err, REC_NO, "no cluster is in the stream");
    if (net_links(net) > 0)
        return true;
    net_describe(net, text);
    return rec_fail(&cli->err, REC_DATA, "no links are known of %s: nothing is shared",
                    text);
}

static bool
run(struct cli *cli, const struct net2rec_links_args *args)
{
    struct net_reading reading = {.open = false};
    struct rec rec;
    int status = 1;
    bool ok = cli_open_reader(cli);
    (void)args;
    while (ok && (status = cli_next(cli, &rec)) > 0)
        ok = net_reading_take(&reading, cli->reader, &rec, NULL, &cli->err);
    ok = ok && status == 0 && net_reading_end(&reading, &cli->err) &&
         check_links(cli, reading.net) && cli_open_writer(cli, false);
    if (ok)
        write_links(cli, reading.net);
    net_free(reading.net);
    return ok;
}
