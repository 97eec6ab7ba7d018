/*
 * Draws the cluster after a decision. A character is a server: the letter of its job, .
 * if it is free, # if it is out of service. A row is a group of the last level but one,
 * as an island. If jobs get blocks of servers, in which the columns count, a row is a
 * group of the level above, and its groups are the columns. Below, each server of the job
 * is listed with its ops.
 *
 *     time 0: job alexnet runs alexnet/8 on 8 servers (A)
 *             leaf 0  leaf 1  leaf 2  leaf 3
 *     pod 0    A A     A A     . .     . .
 *     pod 1    A A     A A     . .     . .
 *       0-0-0 A  1a 46a 2a 45a ...
 */
#include "alloc_map.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAMES_SHOWN = 60 }; /* characters of op names on the line of a server */

struct map_view {
    const struct net *net; /* borrowed */
    uint64_t started;      /* jobs so far; owners[] has this number for the newest one */
};

struct map_view *
map_view_new(const struct net *net, struct rec_error *err)
{
    struct map_view *view = calloc(1, sizeof *view);
    if (!view)
        rec_fail_memory(err);
    else
        view->net = net;
    return view;
}

void
map_view_free(struct map_view *view)
{
    free(view);
}

/* The character of a job: A to Z, a to z, 0 to 9, then A again. */
static char
letter(uint64_t job)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789";
    if (job == ALLOC_DOWN)
        return '#';
    return job ? letters[(job - 1) % (sizeof letters - 1)] : '.';
}

/* The last word of a level's name, and the number of a group: "group 0". */
static int
name_group(char text[40], const char *level, uint32_t number)
{
    const char *blank = strrchr(level, ' ');
    return snprintf(text, 40, "%s %u", blank ? blank + 1 : level, number);
}

static void
draw_servers(const uint64_t *owners, uint32_t n)
{
    fputs("  ", stderr);
    for (uint32_t s = 0; s < n; s++) {
        if (s > 0)
            fputc(' ', stderr);
        fputc(letter(owners[s]), stderr);
    }
}

/* Rows of `row->servers` servers each, in columns of `column->servers`; without titles if
 * there is one column. */
static void
draw_grid(const struct net_level *row, const struct net_level *column, uint32_t servers,
          const uint64_t *owners)
{
    uint32_t rows = servers / row->servers, columns = row->servers / column->servers;
    char text[40];
    int label = name_group(text, row->name, rows - 1);
    int cells = (int)(2 * column->servers) - 1;
    int title = name_group(text, column->name, columns - 1);
    int width = title > cells ? title : cells;

    if (row != column)
        fprintf(stderr, "  %*s", label, "");
    for (uint32_t r = 0; row != column && r < columns; r++) {
        name_group(text, column->name, r);
        fprintf(stderr, "  %*s", r + 1 < columns ? -width : 0, text);
    }
    for (uint32_t c = 0; c < rows; c++) {
        name_group(text, row->name, c);
        fprintf(stderr, "%s  %-*s", c > 0 || row != column ? "\n" : "", label, text);
        for (uint32_t r = 0; r < columns; r++) {
            draw_servers(owners + c * row->servers + r * column->servers,
                         column->servers);
            for (int i = cells; i < width && r + 1 < columns; i++)
                fputc(' ', stderr);
        }
    }
    fputc('\n', stderr);
}

static void
draw(const struct map_view *view, const uint64_t *owners)
{
    const struct net_level *level;
    size_t n = net_levels(view->net, &level);
    const struct net_level *column = n > 1 ? &level[n - 2] : &level[0];
    const struct net_level *row =
        n > 2 && !net_takes_any(view->net) ? &level[n - 3] : column;
    draw_grid(row, column, net_servers(view->net), owners);
}

/* Lists the ops of a slot in the order in which they were placed. A server without ops
 * belongs to the meta-block of the job and is only reserved. */
static void
list_ops(const struct graph_layout *layout, const uint32_t *order, uint32_t slot)
{
    size_t used = 0, hidden = 0;
    for (size_t i = 0; i < layout->graph->nops; i++) {
        const char *id = layout->graph->op[order[i]].id;
        if (layout->slot[order[i]] != slot)
            continue;
        if (hidden || used + strlen(id) + 1 > NAMES_SHOWN)
            hidden++;
        else
            used += (size_t)fprintf(stderr, " %s", id);
    }
    if (hidden)
        fprintf(stderr, "%s %zu more", used ? " and" : "", hidden);
    fputs(used || hidden ? "\n" : " reserved\n", stderr);
}

static bool
list_servers(const struct map_view *view, const struct alloc_decision *decision,
             struct rec_error *err)
{
    const struct graph_layout *layout = &decision->layout->where;
    uint32_t *order = malloc((layout->graph->nops + 1) * sizeof *order);
    char name[NET_NAME_MAX];

    if (!order)
        return rec_fail_memory(err);
    graph_layout_order(layout, order);
    for (uint32_t slot = 0; slot < layout->nslots; slot++) {
        net_format_server(view->net, decision->servers[slot], name);
        fprintf(stderr, "  %s", name);
        list_ops(layout, order, slot);
    }
    free(order);
    return true;
}

bool
map_view_show(struct map_view *view, const struct alloc_decision *decision,
              const uint64_t *owners, struct rec_error *err)
{
    char time[REC_NUM_MAX];
    rec_format_num(time, decision->time);
    fprintf(stderr, "time %s: job %.*s ", time, (int)decision->job.id.len,
            decision->job.id.ptr);
    if (decision->cause)
        fprintf(stderr, "is blocked (%s)\n", decision->cause);
    else
        fprintf(stderr, "runs %s on %u server%s (%c)\n", decision->graph->id,
                decision->layout->where.nslots,
                decision->layout->where.nslots == 1 ? "" : "s", letter(++view->started));
    draw(view, owners);
    return decision->cause || list_servers(view, decision, err);
}
