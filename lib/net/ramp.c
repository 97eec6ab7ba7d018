/* RAMP, a kind of cluster: its record, the names of its servers, and their geometry. The
 * server c-r-s has the index (c * R + r) * S + s. */
#include "ramp.h"

#include <stdio.h>
#include <stdlib.h>

bool
net_ramp_parse_shape(const char *text, uint32_t shape[3], struct rec_error *err)
{
    struct rec_str rest = rec_str(text), part;
    uint64_t n, all = 1;
    bool ok = true;
    for (int i = 0; ok && i < 3; i++) {
        ok = rec_str_split(&rest, 'x', &part) && rec_parse_uint(part, &n) && n >= 1 &&
             n <= 1u << 20 && (all *= n) <= 1u << 24;
        shape[i] = ok ? (uint32_t)n : 0;
    }
    return (ok && !rest.ptr) ||
           rec_fail(err, REC_USAGE,
                    "must be CxRxS, three integers >= 1 whose product is at most %u, "
                    "got '%s'",
                    1u << 24, text);
}

static const uint32_t *
shape_of(const struct net *net)
{
    return ((const struct net_ramp *)net)->shape;
}

const struct net_ramp *
net_ramp_of(const struct net *net)
{
    return net->kind == &net_ramp ? (const struct net_ramp *)net : NULL;
}

static bool
check(const struct net_ramp *ramp, struct rec_error *err)
{
    const uint32_t *n = ramp->shape;
    if (!(ramp->bandwidth > 0))
        return rec_fail(err, REC_DATA, "the bandwidth of a node must be > 0");
    if (n[1] > n[0])
        return rec_fail(err, REC_DATA,
                        "a RAMP has at most as many racks as communication groups "
                        "(R <= C), got %ux%ux%u",
                        n[0], n[1], n[2]);
    return true;
}

struct net *
net_ramp_new(const struct net_ramp *like, struct rec_error *err)
{
    static const char *const names[] = {"cluster", "communication group", "rack",
                                        "server"};
    struct net_ramp ramp = *like;
    if (!check(like, err))
        return NULL;
    ramp.net.kind = &net_ramp;
    net_set_levels(&ramp.net, 3, names, ramp.shape);
    return net_keep(&ramp.net, sizeof ramp, err);
}

static void
describe(const struct net *net, char text[NET_TEXT_MAX])
{
    const uint32_t *n = shape_of(net);
    snprintf(text, NET_TEXT_MAX, "a %ux%ux%u cluster", n[0], n[1], n[2]);
}

static bool
read_rates(struct net_ramp *ramp, const struct rec_reader *reader, const struct rec *rec,
           struct rec_error *err)
{
    static const char *const names[] = {"published", "node", NULL};
    struct rec_str rate;
    if (!rec_get_number(reader, rec, 5, &ramp->bandwidth, err) ||
        !rec_get_number(reader, rec, 6, &ramp->net.memory, err) ||
        !rec_key_number(reader, rec, "propagation", &ramp->propagation, err) ||
        !rec_key_number(reader, rec, "io", &ramp->io, err))
        return false;
    if (!rec_find_key(rec, "collective_rate", &rate))
        return true;
    for (int i = 0; names[i]; i++)
        if (rec_str_is(rate, names[i])) {
            ramp->collective_rate = (enum net_collective_rate)i;
            return true;
        }
    return rec_reader_fail(reader, err,
                           "collective_rate must be published or node, got '%.*s'",
                           REC_SAID(rate));
}

static struct net *
read(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    struct net_ramp ramp = {.propagation = NET_RAMP_PROPAGATION, .io = NET_RAMP_IO};
    struct rec_error inner;
    struct net *net;
    if (!net_get_counts(reader, rec, 2, 3, ramp.shape, err) ||
        !read_rates(&ramp, reader, rec, err))
        return NULL;
    /* net_ramp_new() knows no record; its error gets the file and line here. */
    if (!(net = net_ramp_new(&ramp, &inner)) && inner.code == REC_DATA)
        rec_reader_fail(reader, err, "%s", inner.text);
    else if (!net)
        *err = inner;
    return net;
}

static void
write(const struct net *net, struct rec_writer *writer)
{
    const struct net_ramp *ramp = (const struct net_ramp *)net;
    for (int i = 0; i < 3; i++)
        rec_uint_field(writer, ramp->shape[i]);
    rec_num_field(writer, ramp->bandwidth);
    rec_num_field(writer, net->memory);
    rec_num_key(writer, "propagation", ramp->propagation);
    rec_num_key(writer, "io", ramp->io);
    if (ramp->collective_rate == NET_COLLECTIVE_NODE)
        rec_text_key(writer, "collective_rate", "node");
}

static bool
has_block(const struct net *net, uint32_t parts)
{
    return net_ramp_has_block(shape_of(net), parts);
}

static bool
is_legal(const struct net *net, uint32_t parts)
{
    return net_ramp_is_legal(shape_of(net), parts);
}

/*
 * Two lists of servers cost the same if one becomes the other by renaming communication
 * groups, racks and positions: the time of a transfer depends only on how many of each it
 * touches. So in the geometry the values of each coordinate are numbered in the order in
 * which they first appear. On small clusters this is done for each alternative of a job:
 * there it allocates no memory.
 */
enum { FEW = 256 };

static bool
geometry(const struct net *net, const uint32_t *server, uint32_t n, uint32_t *numbers,
         struct rec_error *err)
{
    const uint32_t *shape = shape_of(net);
    uint32_t few[FEW], *all = few, *name[3], next[3] = {0};
    size_t size = (size_t)shape[0] + shape[1] + shape[2];
    if (size > FEW && !(all = malloc(size * sizeof *all)))
        return rec_fail_memory(err);
    memset(all, 0, size * sizeof *all);
    name[0] = all;
    name[1] = name[0] + shape[0];
    name[2] = name[1] + shape[1];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rack = server[i] / shape[2];
        uint32_t at[3] = {rack / shape[1], rack % shape[1], server[i] % shape[2]};
        for (int d = 0; d < 3; d++) {
            if (!name[d][at[d]])
                name[d][at[d]] = ++next[d];
            numbers[3 * i + (uint32_t)d] = name[d][at[d]];
        }
    }
    if (all != few)
        free(all);
    return true;
}

/* The published parameters, for a cluster that is described by its shape alone. */
static const char *const defaults[] = {NULL, NULL, NULL, "1.6e12", "80e9"};

const struct net_kind net_ramp = {.name = "ramp",
                                  .mark = '-',
                                  .defaults = defaults,
                                  .read = read,
                                  .write = write,
                                  .describe = describe,
                                  .has_block = has_block,
                                  .is_legal = is_legal,
                                  .count_blocks = net_ramp_count_blocks,
                                  .block = net_ramp_block,
                                  .numbers = 3,
                                  .geometry = geometry,
                                  .sync = GRAPH_SYNC_BY_PAIR,
                                  .uniform = true,
                                  .alone = net_ramp_alone};
