/* Groups of transfers, and how their flows are enumerated (fold.h). */
#include "fold.h"

#include <math.h>
#include <stdlib.h>

#define NONE UINT32_MAX

/* How the transfers from each of some servers to each other one are enumerated. */
enum way {
    SINGLY,     /* one by one */
    FROM_PORTS, /* from the servers of a port to one: routes differ in the first link */
    TO_PORTS    /* to the servers of a port from one: routes differ in the last link */
};

struct group {
    const struct net_transfer *transfer; /* NULL: from each server to each other one */
    const uint32_t *server;              /* in the order given */
    void *key;                           /* whichever of the two; owned */
    uint32_t n;
    double latency; /* the largest of a route, seconds */
    /* Of servers that send to each other: */
    enum way way;
    uint32_t *by_port;       /* the servers in order of their ports */
    uint32_t *tip;           /* of each of these the first or last link */
    uint32_t *first, nports; /* per port, and one more: its part of by_port[] */
    unsigned char *odd;      /* a bit per server and port: these are enumerated singly */
};

struct sim_fold {
    const struct net *net;
    struct group *group;
    size_t n, room;
    struct rec_map index;    /* of the groups by their transfers or servers */
    double *latency;         /* per link, seconds */
    uint32_t *route, *other; /* room for one each */
    /* Of the enumeration: */
    uint32_t at, i, port, k; /* group; server or transfer; port; place in it */
};

/* ---- routes ------------------------------------------------------------------ */

static double
latency_of(const struct sim_fold *fold, const uint32_t *route, uint32_t n)
{
    double seconds = 0;
    for (uint32_t i = 0; i < n; i++)
        seconds += fold->latency[route[i]];
    return seconds;
}

/* The route between a server of a port and another one. */
static uint32_t
route_of(const struct sim_fold *fold, enum way way, uint32_t in_port, uint32_t other,
         uint32_t *route)
{
    return way == TO_PORTS ? net_route(fold->net, other, in_port, route)
                           : net_route(fold->net, in_port, other, route);
}

/* The link in which the routes of a fan differ. */
static uint32_t
tip_of(enum way way, const uint32_t *route, uint32_t n)
{
    return route[way == TO_PORTS ? n - 1 : 0];
}

/* ---- ports ------------------------------------------------------------------- */

/* Servers of a port are those of the smallest level above them, as of a leaf; or those of
 * the same number in all of these, as of a rail. */
static uint32_t
port_of(const struct sim_fold *fold, enum way way, uint32_t server)
{
    const struct net_level *level;
    size_t n = net_levels(fold->net, &level);
    uint32_t each = level[n - 1].servers;
    while (n > 1 && each <= 1)
        each = level[--n - 1].servers;
    return way == FROM_PORTS ? server / each : server % each;
}

struct placed {
    uint32_t port, at;
};

static int
by_port(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->port != y->port)
        return x->port < y->port ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Orders the servers by ports, and finds the tip of each: that of a route between it and
 * the server that is halfway around the list, which is probably far away. */
static bool
make_ports(const struct sim_fold *fold, struct group *group, enum way way,
           struct rec_error *err)
{
    uint32_t n = group->n, hops;
    struct placed *placed = malloc(((size_t)n + 1) * sizeof *placed);
    bool ok = placed != NULL;
    group->way = way;
    group->nports = 0;
    for (uint32_t i = 0; ok && i < n; i++)
        placed[i] = (struct placed){port_of(fold, way, group->server[i]), i};
    if (ok)
        qsort(placed, n, sizeof *placed, by_port);
    for (uint32_t i = 0; ok && i < n; i++) {
        uint32_t at = placed[i].at, other = group->server[(at + n / 2) % n];
        if (i == 0 || placed[i].port != placed[i - 1].port)
            group->first[group->nports++] = i;
        group->by_port[i] = group->server[at];
        hops = route_of(fold, way, group->server[at], other, fold->route);
        group->tip[i] = hops ? tip_of(way, fold->route, hops) : NONE;
    }
    group->first[group->nports] = n;
    free(placed);
    return ok || rec_fail_memory(err);
}

/* True if the routes between `other` and all servers of a port differ in nothing but
 * their tips. Raises the latency of the group. */
static bool
is_fan(const struct sim_fold *fold, struct group *group, uint32_t other, uint32_t port)
{
    uint32_t n = 0, skip = group->way == FROM_PORTS;
    bool same = true;
    for (uint32_t i = group->first[port]; i < group->first[port + 1]; i++) {
        uint32_t *route = n ? fold->other : fold->route, hops;
        if (group->by_port[i] == other)
            continue;
        hops = route_of(fold, group->way, group->by_port[i], other, route);
        if (tip_of(group->way, route, hops) != group->tip[i])
            same = false;
        if (n == 0)
            n = hops;
        else if (hops != n ||
                 memcmp(route + skip, fold->route + skip, (n - 1) * sizeof *route) != 0)
            same = false;
        if (!same)
            return false;
    }
    return true;
}

/* The part of the flows that a way enumerates as fans, tried with some servers. */
static double
part_in_fans(const struct sim_fold *fold, struct group *group)
{
    uint32_t step = group->n / 16 + 1;
    double all = 0, fans = 0;
    for (uint32_t i = 0; i < group->n; i += step)
        for (uint32_t p = 0; p < group->nports; p++) {
            uint32_t size = group->first[p + 1] - group->first[p];
            all += size;
            if (is_fan(fold, group, group->server[i], p))
                fans += size - 1;
        }
    return fans / all;
}

/* Tries all of them. */
static bool
find_odd(const struct sim_fold *fold, struct group *group, struct rec_error *err)
{
    if (!(group->odd = calloc((size_t)group->n * group->nports / 8 + 1, 1)))
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < group->n; i++)
        for (uint32_t p = 0; p < group->nports; p++)
            if (!is_fan(fold, group, group->server[i], p)) {
                size_t bit = (size_t)i * group->nports + p;
                group->odd[bit / 8] |= (unsigned char)(1 << bit % 8);
            }
    return true;
}

static bool
is_odd(const struct group *group, uint32_t i, uint32_t port)
{
    size_t bit = (size_t)i * group->nports + port;
    return group->odd[bit / 8] >> bit % 8 & 1;
}

/* Finds fans among servers that send to each other, if most of their routes are parts of
 * some. */
static bool
find_fans(const struct sim_fold *fold, struct group *group, struct rec_error *err)
{
    size_t n = group->n + (size_t)1;
    double from, to;
    group->by_port = malloc(n * sizeof *group->by_port);
    group->tip = malloc(n * sizeof *group->tip);
    group->first = malloc(n * sizeof *group->first);
    if (!group->by_port || !group->tip || !group->first)
        return rec_fail_memory(err);
    if (!make_ports(fold, group, TO_PORTS, err))
        return false;
    to = part_in_fans(fold, group);
    if (!make_ports(fold, group, FROM_PORTS, err))
        return false;
    from = part_in_fans(fold, group);
    if (from < 0.5 && to < 0.5) {
        group->way = SINGLY;
        return true;
    }
    return (from >= to || make_ports(fold, group, TO_PORTS, err)) &&
           find_odd(fold, group, err);
}

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
        fold->other = malloc(room);
    }
    if (fold && fold->latency && fold->route && fold->other) {
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
    free(group->by_port);
    free(group->tip);
    free(group->first);
    free(group->odd);
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
    free(fold->other);
    free(fold);
}

static bool fold_next(void *self, struct flow_route *route);

static void
fold_rewind(void *self)
{
    struct sim_fold *fold = self;
    fold->at = fold->i = fold->port = fold->k = 0;
}

/* The largest latency of the routes of the newest group. */
static double
find_latency(struct sim_fold *fold)
{
    struct flow_route route;
    double most = 0;
    fold_rewind(fold);
    fold->at = (uint32_t)fold->n - 1;
    while (fold_next(fold, &route)) {
        double seconds = latency_of(fold, route.link, route.n), tip = 0;
        for (uint32_t i = 0; i < route.nfan; i++)
            tip = fmax(tip, latency_of(fold, route.fan + i, 1));
        most = fmax(most, seconds + tip);
    }
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
    if ((!transfer && !find_fans(fold, &group, err)) ||
        !rec_map_add(&fold->index, key, *number, err)) {
        free_group(&group);
        return false;
    }
    fold->group[fold->n++] = group;
    fold->group[*number].latency = find_latency(fold);
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

static bool
next_transfer(struct sim_fold *fold, const struct group *group, struct flow_route *route)
{
    const struct net_transfer *transfer = &group->transfer[fold->i];
    if (fold->i >= group->n)
        return false;
    route->n = net_route(fold->net, transfer->from, transfer->to, fold->route);
    fold->i++;
    return true;
}

static bool
next_pair(struct sim_fold *fold, const struct group *group, struct flow_route *route)
{
    fold->k += fold->k == fold->i;
    if (fold->k >= group->n) {
        fold->k = 0;
        fold->i++;
    }
    if (fold->i >= group->n)
        return false;
    route->n =
        net_route(fold->net, group->server[fold->i], group->server[fold->k], fold->route);
    fold->k++;
    return true;
}

/* The next fan of server i and a port, or the next of its routes if they are odd. The
 * server itself may be in the port: fans end before it and begin behind it. */
static bool
next_of_port(struct sim_fold *fold, const struct group *group, struct flow_route *route)
{
    uint32_t self = group->server[fold->i], end = group->first[fold->port + 1];
    uint32_t at = group->first[fold->port] + fold->k, n = 1;
    const uint32_t *of = group->by_port;
    if (at < end && of[at] == self)
        at++;
    if (at >= end)
        return false;
    if (!is_odd(group, fold->i, fold->port))
        while (at + n < end && of[at + n] != self)
            n++;
    route->n = route_of(fold, group->way, of[at], self, fold->route);
    fold->k = at + n - group->first[fold->port];
    if (n > 1) {
        route->n--;
        route->link += group->way == FROM_PORTS;
        route->fan = group->tip + at;
        route->nfan = n;
    }
    return true;
}

static bool
next_of_ports(struct sim_fold *fold, const struct group *group, struct flow_route *route)
{
    for (; fold->i < group->n; fold->i++, fold->port = 0)
        for (; fold->port < group->nports; fold->port++, fold->k = 0)
            if (next_of_port(fold, group, route))
                return true;
    return false;
}

static bool
fold_next(void *self, struct flow_route *route)
{
    struct sim_fold *fold = self;
    for (; fold->at < fold->n; fold->at++, fold->i = fold->port = fold->k = 0) {
        const struct group *group = &fold->group[fold->at];
        *route = (struct flow_route){
            .link = fold->route, .group = fold->at, .weight = 1, .bytes = 1};
        if (group->transfer        ? next_transfer(fold, group, route)
            : group->way == SINGLY ? next_pair(fold, group, route)
                                   : next_of_ports(fold, group, route))
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
