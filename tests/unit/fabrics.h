/*
 * All-to-all on two kinds of network, enumerated without being stored; for tests and the
 * benchmark.
 *
 *     fat tree   k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches;
 *                below each port of an edge switch hang `below` GPUs, each with a link of
 *                its own. The way up is chosen by the destination (d-mod-k).
 *     rail       nodes of 8 GPUs around a switch; adapter i of each node goes to leaf i.
 *                To another index: inside the node to the GPU of that index first, or
 *                over the spine, to which each leaf has `below` links.
 */
#ifndef TESTS_FABRICS_H
#define TESTS_FABRICS_H

#include "rampipe/flow.h"

#include <stdlib.h>

enum { RAIL_GPUS = 8 };

struct fabric {
    uint32_t k, below; /* of the tree; k = 0: a rail */
    uint32_t nodes;    /* of the rail */
    bool spine;
    uint32_t ngpus, nlinks;
    double bytes;
    /* Of each GPU of a tree: its edge switch, its pod, which way up leads to it. */
    struct fabric_gpu {
        uint32_t edge, pod, way, core;
    } * gpu;
    bool fans; /* fans of flows, in a tree and over a spine */
    uint32_t from,
        to;        /* the next flow; with fans, `from` is an edge switch or an index */
    uint32_t part; /* what has come of the fan from there to one GPU */
    uint32_t link[6];
    uint32_t *fan; /* links from GPUs: by edge switch, or by index */
};

static inline void
fabric_no_memory(void)
{
    fprintf(stderr, "flow_classes: out of memory\n");
    exit(REC_IO);
}

/* The first links of all GPUs, so that those of a fan are neighbours. */
static inline void
fabric_make_fans(struct fabric *f)
{
    f->fan = malloc(f->ngpus * sizeof *f->fan);
    if (!f->fan)
        fabric_no_memory();
    for (uint32_t i = 0; i < f->ngpus; i++)
        f->fan[i] = f->k ? i : 2 * f->ngpus + i % f->nodes * RAIL_GPUS + i / f->nodes;
    f->fans = f->k > 0 || f->spine;
}

static inline void
fabric_free(struct fabric *f)
{
    free(f->gpu);
    free(f->fan);
}

static inline struct fabric
fabric_tree(uint32_t k, uint32_t below, double bytes)
{
    uint32_t half = k / 2, edges = k * half, at_edge = half * below;
    struct fabric f = {.k = k, .below = below, .bytes = bytes};
    f.ngpus = edges * at_edge;
    f.nlinks = 2 * f.ngpus + 4 * edges * half;
    f.gpu = malloc(f.ngpus * sizeof *f.gpu);
    if (!f.gpu)
        fabric_no_memory();
    for (uint32_t i = 0; i < f.ngpus; i++)
        f.gpu[i] = (struct fabric_gpu){i / at_edge, i / at_edge / half, i % half,
                                       i / half % half};
    fabric_make_fans(&f);
    return f;
}

static inline struct fabric
fabric_rail(uint32_t nodes, bool spine, uint32_t below, double bytes)
{
    struct fabric f = {.nodes = nodes, .spine = spine, .below = below, .bytes = bytes};
    f.ngpus = nodes * RAIL_GPUS;
    f.nlinks = 4 * f.ngpus + 2 * RAIL_GPUS * below;
    fabric_make_fans(&f);
    return f;
}

static inline uint32_t
fabric_tree_route(const struct fabric *f, uint32_t from, uint32_t to, uint32_t *link)
{
    const struct fabric_gpu *a = &f->gpu[from], *b = &f->gpu[to];
    uint32_t half = f->k / 2, edges = f->k * half, up = 2 * f->ngpus;
    uint32_t down = up + edges * half, core = down + edges * half;
    link[0] = from;
    if (a->edge == b->edge) {
        link[1] = f->ngpus + to;
        return 2;
    }
    link[1] = up + a->edge * half + b->way;
    if (a->pod == b->pod) {
        link[2] = down + b->edge * half + b->way;
        link[3] = f->ngpus + to;
        return 4;
    }
    link[2] = core + (a->pod * half + b->way) * half + b->core;
    link[3] = core + edges * half + (b->pod * half + b->way) * half + b->core;
    link[4] = down + b->edge * half + b->way;
    link[5] = f->ngpus + to;
    return 6;
}

/* Links of GPU i: i to its node's switch, n+i from there, 2n+i to its leaf, 3n+i back. */
static inline uint32_t
fabric_rail_route(const struct fabric *f, uint32_t from, uint32_t to, uint32_t *link)
{
    uint32_t n = f->ngpus, a = from % RAIL_GPUS, b = to % RAIL_GPUS, count = 0;
    uint32_t node = from / RAIL_GPUS, way = to / RAIL_GPUS % f->below;
    if (node == to / RAIL_GPUS) {
        link[0] = from;
        link[1] = n + to;
        return 2;
    }
    if (a != b && !f->spine) {
        link[count++] = from;
        from = node * RAIL_GPUS + b;
        link[count++] = n + from;
    }
    link[count++] = 2 * n + from;
    if (a != b && f->spine) {
        link[count++] = 4 * n + a * f->below + way;
        link[count++] = 4 * n + (RAIL_GPUS + b) * f->below + way;
    }
    link[count++] = 3 * n + to;
    return count;
}

static inline uint32_t
fabric_route(const struct fabric *f, uint32_t from, uint32_t to, uint32_t *link)
{
    return f->k ? fabric_tree_route(f, from, to, link)
                : fabric_rail_route(f, from, to, link);
}

static inline void
fabric_rewind(void *self)
{
    struct fabric *f = self;
    f->from = f->to = f->part = 0;
}

/* From all GPUs of an edge switch, or of one index, to one GPU, but for those that go
 * another way: the GPU itself, or that of its node. */
static inline void
fabric_make_fan(struct fabric *f, struct flow_route *route)
{
    uint32_t size = f->k ? f->k / 2 * f->below : f->nodes, first = f->from * size, from;
    uint32_t skip = f->k ? f->to - first : f->to / RAIL_GPUS;
    bool skips = f->k == 0 || f->gpu[f->to].edge == f->from;
    *route = (struct flow_route){.link = f->link + 1,
                                 .fan = f->fan + first,
                                 .nfan = size,
                                 .skip = skips ? skip : 0,
                                 .nskip = skips,
                                 .set = f->from,
                                 .weight = 1,
                                 .bytes = f->bytes};
    from = skips && skip == 0;
    if (size > route->nskip)
        route->n = fabric_route(f, f->k ? first + from : from * RAIL_GPUS + f->from,
                                f->to, f->link) -
                   1;
}

static inline bool
fabric_next_fan(struct fabric *f, struct flow_route *route)
{
    uint32_t groups = f->k ? f->k * f->k / 2 : RAIL_GPUS;
    for (; f->from < groups; f->from++, f->to = 0) {
        for (; f->to < f->ngpus; f->to++, f->part = 0) {
            if (f->part++ == 0) {
                fabric_make_fan(f, route);
                if (route->nfan > route->nskip)
                    return true;
            }
            if (f->k == 0 && f->part++ <= 2 && f->to % RAIL_GPUS != f->from) {
                uint32_t from = f->to / RAIL_GPUS * RAIL_GPUS + f->from;
                *route = (struct flow_route){.link = f->link,
                                             .n = fabric_route(f, from, f->to, f->link),
                                             .weight = 1,
                                             .bytes = f->bytes};
                return true;
            }
        }
    }
    return false;
}

static inline bool
fabric_next(void *self, struct flow_route *route)
{
    struct fabric *f = self;
    if (f->fans)
        return fabric_next_fan(f, route);
    f->to += f->from == f->to;
    if (f->to >= f->ngpus) {
        f->to = 0;
        f->from++;
    }
    if (f->from >= f->ngpus)
        return false;
    *route = (struct flow_route){.link = f->link,
                                 .n = fabric_route(f, f->from, f->to, f->link),
                                 .weight = 1,
                                 .bytes = f->bytes};
    f->to++;
    return true;
}

static inline struct flow_source
fabric_source(struct fabric *f)
{
    return (struct flow_source){fabric_rewind, fabric_next, f};
}

#endif
