/* Finds what belongs together on several ranks: pairs of a send and a receive, and the
 * members of a collective. Files do not name the other end. As in MPI and NCCL, the n-th
 * send from one rank to another with a tag meets the n-th receive, and the n-th
 * collective of a group on one rank is the n-th on all of its ranks. */
#include "private.h"

#include <stdlib.h>

const char *const chakra_collectives[] = {"all-reduce",
                                          "reduce",
                                          "all-gather",
                                          "gather",
                                          "scatter",
                                          "broadcast",
                                          "all-to-all",
                                          "reduce-scatter",
                                          "reduce-scatter-block",
                                          "barrier",
                                          NULL};

uint32_t
chakra_find_collective(struct rec_str name)
{
    for (uint32_t i = 0; chakra_collectives[i]; i++)
        if (rec_str_is(name, chakra_collectives[i]))
            return i;
    return REC_NONE;
}

bool
chakra_add_link(struct chakra_traces *t, uint32_t src, uint32_t dst,
                const struct chakra_parent *as, struct rec_error *err)
{
    if (!rec_grow(&t->link, &t->link_room, t->nlinks + 1, sizeof *t->link, err))
        return false;
    t->link[t->nlinks] =
        (struct chakra_link){src, dst, as->order, as->bytes, as->keys, t->nlinks, 0};
    t->nlinks++;
    return true;
}

/* ---- messages -------------------------------------------------------------- */

static int
compare(double a, double b)
{
    return a < b ? -1 : a > b;
}

/* A channel is a source, a destination and a tag. */
static int
by_channel(const struct chakra_node *a, const struct chakra_node *b)
{
    int order = compare(a->src, b->src);
    order = order ? order : compare(a->dst, b->dst);
    return order ? order : compare(a->tag, b->tag);
}

static int
by_channel_and_turn(const void *x, const void *y, void *context)
{
    const struct chakra_node *node = context;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    int order = by_channel(&node[a], &node[b]);
    return order ? order : a < b ? -1 : 1;
}

/* Joins a send and its receive. The time that a foreign trace measured for them includes
 * waiting for the message, so it is dropped if both ends are here: the network takes its
 * time instead. */
static bool
join_ends(struct chakra_traces *t, uint32_t send, uint32_t receive, struct rec_error *err)
{
    struct chakra_node *a = &t->node[send], *b = &t->node[receive];
    if (a->bytes != b->bytes)
        return chakra_fail(t, b, err,
                           "it receives %.17g bytes, but node %llu of rank %u, the send "
                           "that it belongs to, sends %.17g",
                           b->bytes, (unsigned long long)a->id, a->rank, a->bytes);
    if (a->carries != b->carries)
        return chakra_fail(t, b, err,
                           "node %llu of rank %u belongs to it, but only one of the "
                           "two carries a dep of rampipe's",
                           (unsigned long long)a->id, a->rank);
    a->matched = b->matched = true;
    if (a->carries) {
        b->peer = send;
        return true;
    }
    if (!a->ours)
        a->op.compute = 0;
    if (!b->ours)
        b->op.compute = 0;
    return chakra_add_link(t, send, receive, &b->carried, err);
}

/* Joins the ends in end[0], ..., end[all - 1], of which the first n are sends and the
 * others receives: both are sorted by channel, and then merged. */
static bool
match_ends(struct chakra_traces *t, uint32_t *end, size_t n, size_t all,
           struct rec_error *err)
{
    size_t i = 0, j = n;
    qsort_r(end, n, sizeof *end, by_channel_and_turn, t->node);
    qsort_r(end + n, all - n, sizeof *end, by_channel_and_turn, t->node);
    while (i < n && j < all) {
        int order = by_channel(&t->node[end[i]], &t->node[end[j]]);
        if (order == 0) {
            if (!join_ends(t, end[i++], end[j++], err))
                return false;
        } else if (order < 0)
            i++;
        else
            j++;
    }
    return true;
}

static bool
match_messages(struct chakra_traces *t, struct rec_error *err)
{
    uint32_t *end = malloc((t->nnodes + 1) * sizeof *end);
    size_t n = 0, all;
    bool ok;
    if (!end)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < t->nnodes; i++)
        if (t->node[i].type == CHAKRA_SEND) {
            t->node[i].src = t->node[i].rank;
            end[n++] = i;
        }
    all = n;
    for (uint32_t i = 0; i < t->nnodes; i++)
        if (t->node[i].type == CHAKRA_RECV) {
            t->node[i].dst = t->node[i].rank;
            end[all++] = i;
        }
    ok = match_ends(t, end, n, all, err);
    for (size_t i = 0; ok && i < all; i++)
        if (!t->node[end[i]].matched)
            (*(i < n ? &t->counts.sends : &t->counts.receives))++;
    free(end);
    return ok;
}

/* ---- collectives ----------------------------------------------------------- */

/* A node that is a member of a collective. In files of chakra_write(), `join` identifies
 * the collective. In other files (`join` is CHAKRA_LAST) the group, and the number of
 * its collectives before this one on the rank, identify it. */
struct call {
    uint64_t join;
    uint64_t nth; /* collectives of this group before it on its rank */
    const char *group;
    uint32_t rank, node;
};

static int
by_group(const struct call *a, const struct call *b)
{
    return a->join != b->join ? (a->join < b->join ? -1 : 1) : strcmp(a->group, b->group);
}

static int
by_rank(const void *x, const void *y)
{
    const struct call *a = x, *b = y;
    int order = by_group(a, b);
    if (order || a->rank != b->rank)
        return order ? order : a->rank < b->rank ? -1 : 1;
    return a->node < b->node ? -1 : 1;
}

static int
by_instance(const void *x, const void *y)
{
    const struct call *a = x, *b = y;
    int order = by_group(a, b);
    if (order || a->nth != b->nth)
        return order ? order : a->nth < b->nth ? -1 : 1;
    return a->node < b->node ? -1 : 1;
}

/* Makes a gate of the n calls of one collective. */
static bool
add_gate(struct chakra_traces *t, const struct call *call, size_t n,
         const struct chakra_gate *as, struct rec_error *err)
{
    size_t member =
        t->ngates ? t->gate[t->ngates - 1].first + (size_t)t->gate[t->ngates - 1].members
                  : 0;
    if (!rec_grow(&t->gate, &t->gate_room, t->ngates + 1, sizeof *t->gate, err) ||
        !rec_grow(&t->member, &t->member_room, member + n, sizeof *t->member, err))
        return false;
    t->gate[t->ngates] = *as;
    t->gate[t->ngates].first = (uint32_t)member;
    t->gate[t->ngates].members = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        t->node[call[i].node].gate = (uint32_t)t->ngates;
        t->node[call[i].node].seat = (uint32_t)i;
        t->member[member + i] = call[i].node;
    }
    t->ngates++;
    return true;
}

/* All members must be of one kind. */
static bool
check_kinds(const struct chakra_traces *t, const struct call *call, size_t n,
            struct rec_error *err)
{
    const struct chakra_node *first = &t->node[call->node];
    for (size_t i = 1; i < n; i++) {
        const struct chakra_node *node = &t->node[call[i].node];
        if (node->collective != first->collective)
            return chakra_fail(
                t, node, err,
                "it is collective %llu of group '%s', %s, but on rank %u that is node "
                "%llu, %s",
                (unsigned long long)call->nth + 1, node->group,
                chakra_collectives[node->collective], first->rank,
                (unsigned long long)first->id, chakra_collectives[first->collective]);
    }
    return true;
}

/* A coll has one size, that of each member. */
static bool
check_sizes(const struct chakra_traces *t, const struct call *call, size_t n,
            struct rec_error *err)
{
    const struct chakra_node *first = &t->node[call->node];
    for (size_t i = 1; i < n; i++) {
        const struct chakra_node *node = &t->node[call[i].node];
        if (node->bytes != first->bytes)
            return chakra_fail(t, node, err,
                               "comm_size of this %s is %.17g, but %.17g in node %llu of "
                               "rank %u: without a duration they must be the same",
                               chakra_collectives[node->collective], node->bytes,
                               first->bytes, (unsigned long long)first->id, first->rank);
    }
    return true;
}

/* The rank of member i: of a group that a file describes, or of its first collective. */
static uint32_t
rank_of(const struct chakra_traces *t, const struct chakra_group *group,
        const struct call *first, size_t i)
{
    if (!group)
        return first[i].rank;
    return group->n ? t->group_rank[group->first + i] : t->file[i].rank;
}

/* The calls must be those of all ranks of the group. What these are is not known if no
 * file describes it; then it has the ranks of its first collective, nfirst calls. */
static bool
check_members(const struct chakra_traces *t, const struct call *first, size_t nfirst,
              const struct call *call, size_t n, struct rec_error *err)
{
    const struct chakra_node *node = &t->node[call->node];
    const struct chakra_group *group = chakra_find_group(t, node->group);
    size_t most = !group ? nfirst : group->n ? group->n : t->nfiles;
    for (size_t i = 0; i < most || i < n; i++) {
        uint32_t want = i < most ? rank_of(t, group, first, i) : UINT32_MAX;
        uint32_t have = i < n ? call[i].rank : UINT32_MAX;
        if (want == have)
            continue;
        return chakra_fail(
            t, node, err, "it is collective %llu of group '%s': rank %u %s",
            (unsigned long long)call->nth + 1, node->group, want < have ? want : have,
            want > have ? "takes part, but is none of the group"
            : group     ? "of the group has none: is its file missing?"
                        : "takes part in the first one only");
    }
    if (n > 1 || (group && group->n == 1) || node->bytes == 0)
        return true;
    return chakra_fail(t, node, err,
                       "this %s has no duration, and no other file has a member of it: "
                       "are files of other ranks missing?",
                       chakra_collectives[node->collective]);
}

/* A collective without a duration becomes a coll, if what it does is known. */
static bool
check_coll(const struct chakra_traces *t, const struct call *first, size_t nfirst,
           const struct call *call, size_t n, enum graph_exchange_kind *kind,
           struct rec_error *err)
{
    const struct chakra_node *node = &t->node[call->node];
    if (!chakra_coll_kind(node->collective, kind))
        return chakra_fail(t, node, err, "a %s without a duration has no coll in rampipe",
                           chakra_collectives[node->collective]);
    if (node->partly && !*node->group)
        return chakra_fail(t, node, err,
                           "this %s has no duration, and its members lie along some "
                           "dimensions of a network (involved_dim): its ranks are not "
                           "known without pg_name",
                           chakra_collectives[node->collective]);
    return check_members(t, first, nfirst, call, n, err) && check_sizes(t, call, n, err);
}

static bool
is_measured(const struct chakra_traces *t, const struct call *call, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (t->node[call[i].node].op.compute > 0)
            return true;
    return false;
}

/* Sorts the calls by rank to number them, and then by number to group them. */
static bool
match_calls(struct chakra_traces *t, struct call *call, size_t n, struct rec_error *err)
{
    size_t first = 0, nfirst = 0;
    bool ok = true;
    qsort(call, n, sizeof *call, by_rank);
    for (size_t i = 1; i < n; i++)
        if (call[i].join == CHAKRA_LAST && call[i].rank == call[i - 1].rank &&
            by_group(&call[i], &call[i - 1]) == 0)
            call[i].nth = call[i - 1].nth + 1;
    qsort(call, n, sizeof *call, by_instance);
    for (size_t i = 0, end; ok && i < n; i = end) {
        struct chakra_gate gate = {.coll = false};
        for (end = i + 1; end < n && call[end].nth == call[i].nth &&
                          by_group(&call[end], &call[i]) == 0;
             end++)
            ;
        if (i == 0 || by_group(&call[i], &call[first]) != 0) {
            first = i;
            nfirst = end - i;
        }
        gate.coll = !is_measured(t, call + i, end - i);
        ok = check_kinds(t, call + i, end - i, err) &&
             (!gate.coll ||
              check_coll(t, call + first, nfirst, call + i, end - i, &gate.kind, err)) &&
             (end - i < 2 || add_gate(t, call + i, end - i, &gate, err));
    }
    return ok;
}

bool
chakra_match(struct chakra_traces *t, struct rec_error *err)
{
    struct call *call = malloc((t->nnodes + 1) * sizeof *call);
    size_t n = 0;
    bool ok;
    if (!call)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < t->nnodes; i++) {
        const struct chakra_node *node = &t->node[i];
        if (node->type == CHAKRA_COLL && (!node->ours || node->join != CHAKRA_LAST))
            call[n++] = (struct call){node->join, 0, node->group, node->rank, i};
    }
    ok = match_messages(t, err) && match_calls(t, call, n, err);
    free(call);
    return ok;
}
