/*
 * Lists all blocks of legal shapes, and answers which of them are free. Features ask it
 * for each alternative, so the answers must be quick: the servers of a position are also
 * a mask of 64 bits, in which server s sets bit s % 64. If the masks of two sets of
 * servers have no bit in common, neither have the sets. On clusters of up to 64 servers
 * the reverse holds, too: there all answers follow from the mask of the busy servers, and
 * are remembered by it.
 */
#include "blocks.h"

#include <math.h>
#include <stdlib.h>

enum { VIEWS = 1 << 15 }; /* that are remembered */

/* Keeps all degrees, or if they are too many, about BLOCKS_DEGREES of them: those nearest
 * to a geometric sequence from 1 to the largest. */
static void
choose_degrees(struct blocks *b, const uint32_t *valid, uint32_t n)
{
    if (n <= BLOCKS_DEGREES) {
        memcpy(b->degree, valid, n * sizeof *valid);
        b->ndegrees = n;
        return;
    }
    for (uint32_t i = 0, j = 0; i < BLOCKS_DEGREES; i++) {
        double aim = exp(log(valid[n - 1]) * i / (BLOCKS_DEGREES - 1));
        while (j + 1 < n && fabs(valid[j + 1] - aim) <= fabs(valid[j] - aim))
            j++;
        if (b->ndegrees == 0 || valid[j] > b->degree[b->ndegrees - 1])
            b->degree[b->ndegrees++] = valid[j];
    }
}

/* Lists the positions of degree[d]. If they are too many, those with the numbers all * i
 * / n are taken. */
static bool
add_positions(struct blocks *b, const struct net *net, uint32_t d, struct rec_error *err)
{
    uint32_t degree = b->degree[d], p = b->first[d];
    uint64_t all = net_count_blocks(net, degree), most = BLOCKS_SERVERS / degree + 1;
    b->first[d + 1] = p + (uint32_t)(all < most ? all : most);
    if (!rec_grow(&b->start, &b->start_room, b->first[d + 1] + 1, sizeof *b->start,
                  err) ||
        !rec_grow(&b->mask, &b->mask_room, b->first[d + 1], sizeof *b->mask, err))
        return false;
    if (p == 0)
        b->start[0] = 0;
    for (uint32_t i = 0, n = b->first[d + 1] - p; i < n; i++, p++) {
        b->start[p + 1] = b->start[p] + degree;
        if (!rec_grow(&b->server, &b->server_room, b->start[p + 1], sizeof *b->server,
                      err))
            return false;
        net_block(net, degree, all * i / n, b->server + b->start[p]);
        b->mask[p] = 0;
        for (uint32_t j = b->start[p]; j < b->start[p + 1]; j++)
            b->mask[p] |= (uint64_t)1 << b->server[j] % 64;
    }
    return true;
}

bool
blocks_init(struct blocks *b, const struct net *net, struct rec_error *err)
{
    static const struct blocks none;
    uint32_t *valid = malloc(ALLOC_DEGREES_MAX * sizeof *valid), n;
    *b = none;
    if (!valid)
        return rec_fail_memory(err);
    b->nservers = net_servers(net);
    n = alloc_valid_degrees(net, b->nservers, valid);
    choose_degrees(b, valid, n);
    free(valid);
    for (uint32_t d = 0; d < b->ndegrees; d++)
        if (!add_positions(b, net, d, err))
            return false;
    b->when = calloc(b->first[b->ndegrees] + 1, sizeof *b->when);
    b->open = calloc(b->first[b->ndegrees] + 1, sizeof *b->open);
    b->views = blocks_small(b) ? calloc(VIEWS, sizeof *b->views) : NULL;
    return (b->when && b->open && (b->views || !blocks_small(b))) || rec_fail_memory(err);
}

void
blocks_free(struct blocks *b)
{
    free(b->server);
    free(b->start);
    free(b->mask);
    free(b->views);
    free(b->when);
    free(b->open);
}

/* ---- up to 64 servers ---------------------------------------------------- */

bool
blocks_small(const struct blocks *b)
{
    return b->nservers <= 64;
}

/* The table is direct-mapped. Without busy servers an unused entry is looked at anew. */
const struct view *
blocks_view(struct blocks *b, uint64_t busy)
{
    struct view *v = &b->views[rec_mix(busy) % VIEWS];
    uint32_t d = b->ndegrees;
    if (v->busy == busy && busy)
        return v;
    *v = (struct view){.busy = busy};
    for (; d > 0 && v->largest == 0; d--)
        for (uint32_t p = b->first[d - 1]; p < b->first[d] && v->largest == 0; p++)
            if (!(b->mask[p] & busy))
                v->largest = (uint16_t)d;
    for (int i = 0; i < BLOCKS_SHARES; i++)
        for (uint32_t p = b->first[b->share[i]]; p < b->first[b->share[i] + 1]; p++)
            v->n[i] = (uint16_t)(v->n[i] + !(b->mask[p] & busy));
    return v;
}

/* ---- more servers -------------------------------------------------------- */

/* How long it takes until all servers of a position are free, seconds. */
static inline double
free_at(const struct blocks *b, uint32_t p, const double *when)
{
    double last = 0;
    for (uint32_t j = b->start[p]; j < b->start[p + 1]; j++)
        last = when[b->server[j]] > last ? when[b->server[j]] : last;
    return last;
}

/* Each position is written to open[n], but n grows only if it is open: so the loop has no
 * branch that cannot be predicted. */
void
blocks_set(struct blocks *b, const double *when)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < b->ndegrees; d++) {
        b->first_open[d] = n;
        for (uint32_t p = b->first[d]; p < b->first[d + 1]; p++) {
            b->when[p] = free_at(b, p, when);
            b->open[n] = p;
            n += b->when[p] == 0;
        }
    }
    b->first_open[b->ndegrees] = n;
}

static inline bool
is_taken(const struct blocks *b, uint32_t p, const struct taken *taken)
{
    if (!(b->mask[p] & taken->mask))
        return false;
    for (uint32_t j = b->start[p]; j < b->start[p + 1]; j++)
        if (taken->is[b->server[j]])
            return true;
    return false;
}

uint32_t
blocks_count(const struct blocks *b, uint32_t d, const struct taken *taken)
{
    uint32_t n = 0;
    for (uint32_t i = b->first_open[d]; i < b->first_open[d + 1]; i++)
        n += !is_taken(b, b->open[i], taken);
    return n;
}

/* A position that is free now is free at any time, too, so these are tried first: nothing
 * has to be compared for them. */
uint32_t
blocks_largest(const struct blocks *b, double within, const struct taken *taken)
{
    for (uint32_t d = b->ndegrees; d-- > 0;) {
        for (uint32_t i = b->first_open[d]; i < b->first_open[d + 1]; i++)
            if (!is_taken(b, b->open[i], taken))
                return d + 1;
        for (uint32_t p = b->first[d]; within > 0 && p < b->first[d + 1]; p++)
            if (b->when[p] <= within && !is_taken(b, p, taken))
                return d + 1;
    }
    return 0;
}
