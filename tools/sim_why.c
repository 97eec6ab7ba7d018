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

void
why_free(struct why *why)
{
    for (size_t i = 0; i < why->nlevels; i++)
        free(why->level[i].name);
    free(why->level);
    *why = (struct why){.nlevels = 0};
}
