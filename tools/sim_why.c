#include "sim_why.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEVEL_MAX = 2 * NET_NODE_MAX + 8 };

/* ---- what links carry ---------------------------------------------------------- */

static void
format_level(const struct net *net, const struct net_link *link, char text[LEVEL_MAX])
{
    char from[NET_NODE_MAX], to[NET_NODE_MAX];
    net_format_level(net, link->from, from);
    net_format_level(net, link->to, to);
    snprintf(text, LEVEL_MAX, "%s to %s", from, to);
}

static struct why_level *
find_level(const struct why *why, const char *name)
{
    for (size_t i = 0; i < why->nlevels; i++)
        if (strcmp(why->level[i].name, name) == 0)
            return &why->level[i];
    return NULL;
}

static bool
count_levels(struct why *why, const struct net *net, struct rec_error *err)
{
    for (uint32_t i = 0; i < net_links(net); i++) {
        struct why_level *level;
        struct net_link link;
        char name[LEVEL_MAX];
        net_link(net, i, &link);
        format_level(net, &link, name);
        if (!(level = find_level(why, name))) {
            if (!rec_grow(&why->level, &why->room, why->nlevels + 1, sizeof *why->level,
                          err))
                return false;
            level = &why->level[why->nlevels];
            *level = (struct why_level){strdup(name), 0};
            if (!level->name)
                return rec_fail_memory(err);
            why->nlevels++;
        }
        level->links++;
    }
    return true;
}

static void
put_node(struct rec_writer *writer, const struct net *net, uint32_t node)
{
    char name[NET_NODE_MAX];
    net_format_node(net, node, name);
    rec_text_field(writer, name);
}

bool
why_write_load(struct why *why, struct rec_writer *writer, const struct net *net,
               const struct sim_load *load, struct rec_error *err)
{
    const struct why_level *level;
    struct net_link link;
    char name[LEVEL_MAX];
    if (!why->level && !count_levels(why, net, err))
        return false;
    net_link(net, load->link, &link);
    format_level(net, &link, name);
    if (!(level = find_level(why, name)))
        return rec_fail(err, REC_BUG, "a link has no level");
    rec_begin(writer, "load");
    put_node(writer, net, link.from);
    put_node(writer, net, link.to);
    rec_num_field(writer, load->bytes);
    rec_num_field(writer, load->busy);
    rec_num_field(writer, load->seconds);
    rec_num_field(writer, load->capacity);
    rec_num_key(writer, "share", load->bytes / (load->capacity * load->seconds));
    rec_text_key(writer, "level", level->name);
    rec_uint_key(writer, "links", level->links);
    rec_end(writer);
    return true;
}

/* ---- why exchanges take as long as they do ---------------------------------------- */

static const char *
name_op(const struct graph_op *op)
{
    return op->of ? op->of : op->id;
}

/* The op that sends, or the coll, the kind, and the op that gets it, by the first dep. */
static void
put_exchange(struct rec_writer *writer, const struct sim_layout *layout,
             const struct sim_reason *reason, const char **dst)
{
    static const char *const kinds[] = {"message", "collective", "sync", "sync"};
    const struct graph *graph = layout->where.graph;
    uint32_t kind = (uint32_t)layout->exchanges.exchange[reason->exchange].kind;
    const struct graph_dep *dep;
    *dst = NULL;
    if (reason->coll != GRAPH_NONE) {
        rec_text_field(writer, graph->coll[reason->coll].id);
        rec_text_field(writer, graph_coll_name(&graph->coll[reason->coll]));
        return;
    }
    dep = &graph->dep[reason->dep];
    rec_text_field(writer, name_op(&graph->op[dep->src]));
    rec_text_field(writer, kinds[kind < 4 ? kind : 0]);
    if (kind < GRAPH_SYNC_PAIR)
        *dst = name_op(&graph->op[dep->dst]);
}

void
why_write_reason(struct rec_writer *writer, const struct sim_done *done,
                 const struct net *net, const struct sim_reason *reason)
{
    static const char *const by[] = {"link", "latency", "table", "form"};
    const char *dst;
    struct net_link link;
    char name[NET_NODE_MAX];
    rec_begin(writer, "explain");
    rec_str_field(writer, done->job.id);
    put_exchange(writer, done->layout, reason, &dst);
    rec_num_field(writer, reason->start);
    rec_num_field(writer, reason->seconds);
    rec_num_field(writer, reason->alone);
    rec_text_field(writer, by[reason->by]);
    if (dst)
        rec_text_key(writer, "dst", dst);
    if (reason->seconds > 0)
        rec_num_key(writer, "held", reason->held / reason->seconds);
    if (reason->by == SIM_BY_LINK) {
        net_link(net, reason->link, &link);
        net_format_node(net, link.from, name);
        rec_text_key(writer, "from", name);
        net_format_node(net, link.to, name);
        rec_text_key(writer, "to", name);
        rec_num_key(writer, "bytes", reason->bytes);
        rec_num_key(writer, "own", reason->own);
        rec_num_key(writer, "job", reason->job);
        rec_num_key(writer, "others", reason->others);
    }
    rec_end(writer);
}

void
why_free(struct why *why)
{
    for (size_t i = 0; i < why->nlevels; i++)
        free(why->level[i].name);
    free(why->level);
    *why = (struct why){.nlevels = 0};
}
