/*
 * How long the groups of a mix take to exchange. A group of z ranks that are q apart has
 * min(z, n / q) members in a node of n; its ring leaves a node through all the adapters
 * of its members there, so a group over nodes reaches the bandwidth of so many adapters,
 * or of the island if that is less. (Groups side by side in a node have other members and
 * so other adapters.)
 */
#include "private.h"

#include <math.h>
#include <string.h>

enum { ELEMENT = 2 };

struct group {
    double ranks;
    double here; /* members in a node */
};

/* Devices of an island that a job of this size fills: islands are filled evenly. */
static double
node_of(const struct parallel_mix *mix, const struct parallel_machine *machine)
{
    uint64_t ranks = parallel_ranks(mix), n = machine->node;
    if (n > ranks)
        n = ranks;
    while (ranks % n != 0)
        n--;
    return (double)n;
}

/* Of n columns that are so far apart, how many lie in a node with `columns` ones. */
static double
near(double n, double stride, double columns)
{
    double here = floor(columns / stride);
    return here < 1 ? 1 : here < n ? here : n;
}

static struct group
group_of(const struct parallel_mix *mix, const struct parallel_machine *machine,
         enum parallel_group which)
{
    struct parallel_spread s = parallel_spread_of(mix, which);
    double node = node_of(mix, machine), together = parallel_together(mix);
    /* of the columns of a stage, the first in a node: stages lie between them */
    double columns =
        node <= together ? node : together * fmax(1, floor(node / (together * mix->pp)));
    struct group g = {(double)s.n * s.rows, 1};
    g.here = near(s.n, s.stride, columns) * near(s.rows, s.far, columns);
    while (fmod(g.ranks, g.here) != 0)
        g.here--;
    return g;
}

/* The share of the buffer that a rank sends. */
static double
factor(const char *kind, double n)
{
    return (strcmp(kind, "all-reduce") == 0 ? 2 : 1) * (n - 1) / n;
}

static double
look_up(const struct parallel_machine *machine, const char *kind, double n, double bytes)
{
    struct collective_ask ask = {.what = {.kind = kind, .dtype = ""},
                                 .system = machine->system,
                                 .gpu = "",
                                 .version = "",
                                 .ranks = (uint64_t)n,
                                 .nodes = 1,
                                 .size = machine->widened > 0 ? bytes / machine->widened
                                                              : bytes};
    struct collective_answer answer;
    struct rec_error err;
    if (machine->table && collective_seconds(machine->table, &ask, &answer, &err))
        return answer.seconds;
    return machine->inside_latency * n +
           factor(kind, n) * bytes / (machine->inside * 0.78);
}

static double
inside(const struct parallel_machine *machine, const char *kind, double n, double bytes)
{
    struct parallel_looked *at;
    uint64_t hash;
    if (!machine->looked)
        return look_up(machine, kind, n, bytes);
    memcpy(&hash, &bytes, sizeof hash);
    hash = (hash ^ (uint64_t)n << 5 ^ (uint64_t)strlen(kind)) * 0x9e3779b97f4a7c15U;
    at = &machine->looked[hash >> 52]; /* of PARALLEL_LOOKED, 2^12 */
    if (at->kind != kind || at->ranks != n || at->bytes != bytes)
        *at = (struct parallel_looked){kind, n, bytes, look_up(machine, kind, n, bytes)};
    return at->seconds;
}

double
parallel_exchange(const struct parallel_mix *mix, const struct parallel_machine *machine,
                  enum parallel_group which, const char *kind, double bytes)
{
    struct group g = group_of(mix, machine, which);
    double n = g.ranks, nodes = n / g.here;
    double adapter = machine->adapter * machine->stack->adapter;
    if (n < 2 || bytes <= 0)
        return 0;
    if (nodes < 2)
        return inside(machine, kind, n, bytes);
    if (strcmp(kind, "all-to-all") == 0)
        return machine->latency * nodes + fmax((g.here - 1) / n * bytes / machine->inside,
                                               (n - g.here) / n * bytes / adapter);
    return machine->latency * log2(nodes) * 2 +
           factor(kind, n) * bytes / fmin(machine->inside * 0.78, g.here * adapter);
}

/* Of n that are drawn `times` times at random, the mean number that is drawn. */
static double
distinct(double n, double times)
{
    return n * (1 - pow(1 - 1 / n, times));
}

double
parallel_dispatch(const struct parallel_mix *mix, const struct parallel_machine *machine,
                  double bytes, double experts)
{
    struct group g = group_of(mix, machine, PARALLEL_EXPERT);
    double n = g.ranks, nodes = n / g.here;
    double adapter = machine->adapter * machine->stack->adapter;
    double here = distinct(n, experts) / n * (g.here - 1) * bytes / machine->inside;
    if (n < 2 || bytes <= 0)
        return 0;
    if (nodes < 2)
        return inside(machine, "all-to-all", n, distinct(n, experts) * bytes);
    return machine->latency * nodes +
           fmax(here, distinct(nodes, experts) * (nodes - 1) / nodes * bytes / adapter);
}

/* All stages of each pipeline lie in a node. If not, some message leaves it, and the
 * slowest sets the pace. */
static bool
is_inside(const struct parallel_mix *mix, const struct parallel_machine *machine)
{
    return fmod(node_of(mix, machine), (double)parallel_together(mix) * mix->pp) == 0;
}

double
parallel_message(const struct parallel_mix *mix, const struct parallel_machine *machine,
                 double bytes)
{
    double within = machine->inside_latency + bytes / (machine->inside * 0.78), across;
    if (is_inside(mix, machine))
        return within;
    across = machine->latency + bytes / (machine->adapter * machine->stack->adapter);
    return node_of(mix, machine) > parallel_together(mix) ? fmax(within, across) : across;
}

double
parallel_tied(const struct parallel_model *model, const struct parallel_mix *mix,
              const struct parallel_machine *machine)
{
    double bytes = parallel_gradient(mix, machine) * model->t.words * model->t.width;
    bytes /= mix->tp;
    if (!model->t.tied || mix->pp == 1 || parallel_frozen(mix, &model->embedding.op[0]))
        return 0;
    if (is_inside(mix, machine))
        return inside(machine, "all-reduce", 2, bytes);
    return 2 * machine->latency + bytes / (machine->adapter * machine->stack->adapter);
}

/* Keys and values of the whole sequence, in a ring; or, if heads are dealt, each rank
 * gets all tokens of a part of the heads, and after attention its own tokens of all
 * heads. Of fewer heads of keys than ranks each rank gets a copy of one. */
struct parallel_traffic
parallel_traffic_of(const struct parallel_model *model, const struct parallel_mix *mix)
{
    const struct input_transformer *t = &model->t;
    double kv = t->kv_rank > 0 ? t->heads : t->kv_heads, d = t->head_width;
    double value = t->value_width > 0 ? t->value_width : d;
    double rank = ELEMENT * parallel_tokens(model, mix) / mix->tp;
    struct parallel_traffic traffic = {.tensor = ELEMENT * parallel_tokens(model, mix) *
                                                 t->width};
    if (mix->deal_heads) {
        double copies = fmax(kv, (double)mix->tp * mix->cp);
        traffic.keys = rank * (t->heads * d + copies * (d + value));
        traffic.result = rank * t->heads * value;
    } else
        traffic.keys = ELEMENT * mix->micro * model->sequence * (d + value) * kv /
                       parallel_divided_kv(model, mix);
    traffic.dispatched =
        traffic.tensor * mix->etp / mix->tp * distinct(mix->ep, t->experts_used);
    return traffic;
}
