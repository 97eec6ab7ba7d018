/* Groups of transfers, and how their flows are enumerated (fold.h). */
#include "fold.h"

#include <math.h>
#include <stdlib.h>

#define NONE UINT32_MAX

struct group {
    const struct net_transfer *transfer; /* NULL: from each server to each other one */
    const uint32_t *server;              /* in the order given */
    void *key;                           /* whichever of the two; owned */
    uint32_t n;
    double latency;        /* the largest of a route, seconds */
    struct net_each *each; /* of servers that send to each other */
    uint32_t set;          /* number of the set of fans of its first port */
};

struct sim_fold {
    const struct net *net;
    struct group *group;
    size_t n, room;
    struct rec_map index; /* of the groups by their transfers or servers */
    double *latency;      /* per link, seconds */
    uint32_t *route;      /* room for one */
    uint32_t nsets;       /* of fans */
    uint32_t at, i;       /* of the enumeration: group; transfer */
};

/* ---- groups ------------------------------------------------------------------ */

struct sim_fold *
sim_fold_new(const struct net *net, struct rec_error *err)
{
    struct sim_fold *fold = calloc(1, sizeof *fold);
    size_t room = ((size_t)net_longest_route(net) + 1) * sizeof *fold->route;
    struct net_link link;
    if (fold) {
        fold->net = net;
        fold->latency = malloc(((size_t)net_links(net) + 1) * sizeof *fold->latency);
        fold->route = malloc(room);
    }
    if (fold && fold->latency && fold->route) {
        for (uint32_t i = 0; i < net_links(net); i++) {
            net_link(net, i, &link);
            fold->latency[i] = link.latency;
        }
        return fold;
    }
    rec_fail_memory(err);
    sim_fold_free(fold);
    return NULL;
}

static void
free_group(struct group *group)
{
    free(group->key);
    net_each_free(group->each);
}

void
sim_fold_free(struct sim_fold *fold)
{
    if (!fold)
        return;
    for (size_t i = 0; i < fold->n; i++)
        free_group(&fold->group[i]);
    free(fold->group);
    rec_map_free(&fold->index);
    free(fold->latency);
    free(fold->route);
    free(fold);
}

static double
latency_of(const struct sim_fold *fold, const uint32_t *route, uint32_t n)
{
    double seconds = 0;
    for (uint32_t i = 0; i < n; i++)
        seconds += fold->latency[route[i]];
    return seconds;
}

/* The largest latency of the routes of a group. */
static double
find_latency(const struct sim_fold *fold, const struct group *group)
{
    struct net_fan fan;
    double most = 0;
    for (uint32_t i = 0; group->transfer && i < group->n; i++)
        most = fmax(most, latency_of(fold, fold->route,
                                     net_route(fold->net, group->transfer[i].from,
                                               group->transfer[i].to, fold->route)));
    if (group->each)
        net_each_rewind(group->each);
    while (group->each && net_each_next(group->each, &fan))
        most = fmax(most, latency_of(fold, fan.route, fan.n));
    return most;
}

bool
sim_fold_add(struct sim_fold *fold, const struct net_transfer *transfer,
             const uint32_t *server, uint32_t n, uint32_t *number, struct rec_error *err)
{
    struct rec_str key = {(const char *)server, n * sizeof *server};
    struct group group = {.n = n};
    if (transfer)
        key = (struct rec_str){(const char *)transfer, n * sizeof *transfer};
    *number = rec_map_get(&fold->index, key);
    if (*number != REC_NONE)
        return true;
    if (!rec_grow(&fold->group, &fold->room, fold->n + 1, sizeof *fold->group, err))
        return false;
    if (!(group.key = malloc(key.len + 1)))
        return rec_fail_memory(err);
    key.ptr = memcpy(group.key, key.ptr, key.len);
    if (transfer)
        group.transfer = group.key;
    else
        group.server = group.key;
    *number = (uint32_t)fold->n;
    if ((!transfer && !(group.each = net_each_new(fold->net, group.server, n, err))) ||
        !rec_map_add(&fold->index, key, *number, err)) {
        free_group(&group);
        return false;
    }
    group.latency = find_latency(fold, &group);
    group.set = fold->nsets;
    fold->nsets += group.each ? net_each_ports(group.each) : 0;
    fold->group[fold->n++] = group;
    return true;
}

double
sim_fold_latency(const struct sim_fold *fold, uint32_t group)
{
    return fold->group[group].latency;
}

void
sim_fold_group(const struct sim_fold *fold, uint32_t number,
               const struct net_transfer **transfer, const uint32_t **server, uint32_t *n)
{
    const struct group *group = &fold->group[number];
    *transfer = group->transfer;
    *server = group->server;
    *n = group->n;
}

uint32_t
sim_fold_groups(const struct sim_fold *fold)
{
    return (uint32_t)fold->n;
}

/* ---- enumeration ------------------------------------------------------------- */

/* Goes to the group of number `at`. */
static void
go_to(struct sim_fold *fold, uint32_t at)
{
    fold->at = at;
    fold->i = 0;
    if (at < fold->n && fold->group[at].each)
        net_each_rewind(fold->group[at].each);
}

static void
fold_rewind(void *self)
{
    go_to(self, 0);
}

static bool
next_transfer(struct sim_fold *fold, const struct group *group, struct flow_route *route)
{
    const struct net_transfer *transfer = &group->transfer[fold->i];
    if (fold->i >= group->n)
        return false;
    route->link = fold->route;
    route->n = net_route(fold->net, transfer->from, transfer->to, fold->route);
    fold->i++;
    return true;
}

static bool
next_fan(const struct group *group, struct flow_route *route)
{
    struct net_fan fan;
    if (!net_each_next(group->each, &fan))
        return false;
    route->link = fan.shared;
    route->n = fan.n - (fan.ntips > 0);
    route->fan = fan.tip;
    route->nfan = fan.ntips;
    route->skip = fan.skip;
    route->nskip = fan.nskip;
    route->set = group->set + fan.port;
    return true;
}

static bool
fold_next(void *self, struct flow_route *route)
{
    struct sim_fold *fold = self;
    for (; fold->at < fold->n; go_to(fold, fold->at + 1)) {
        const struct group *group = &fold->group[fold->at];
        *route = (struct flow_route){.group = fold->at, .weight = 1, .bytes = 1};
        if (group->each ? next_fan(group, route) : next_transfer(fold, group, route))
            return true;
    }
    return false;
}

/* ---- classes ----------------------------------------------------------------- */

void
sim_classes_free(struct sim_classes *classes)
{
    flow_classes_free(classes->found);
    free(classes->first);
    free(classes->class);
    *classes = (struct sim_classes){.found = NULL};
}

bool
sim_fold_find(struct sim_fold *fold, const double *capacity, const uint32_t *label,
              struct sim_classes *classes, struct rec_error *err)
{
    const struct flow_source source = {fold_rewind, fold_next, fold};
    struct flow_classes *found = flow_classes_find(net_links(fold->net), capacity, label,
                                                   &source, SIM_FOLD_CLASSES_MAX, err);
    *classes = (struct sim_classes){.found = found, .groups = (uint32_t)fold->n};
    if (!found && err->code == REC_NO)
        err->code = REC_USAGE;
    if (!found)
        return false;
    classes->first = calloc(fold->n + 2, sizeof *classes->first);
    classes->class = malloc((found->n + (size_t)1) * sizeof *classes->class);
    if (!classes->first || !classes->class) {
        sim_classes_free(classes);
        return rec_fail_memory(err);
    }
    for (uint32_t k = 0; k < found->n; k++)
        classes->first[found->of[k].group + 2]++;
    for (size_t g = 2; g < fold->n + 2; g++)
        classes->first[g] += classes->first[g - 1];
    for (uint32_t k = 0; k < found->n; k++)
        classes->class[classes->first[found->of[k].group + 1]++] = k;
    return true;
}
