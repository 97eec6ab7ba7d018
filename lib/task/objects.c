/* The nodes of objects: finding the node of a name, and keeping the children of a node in
 * the order of their latest use, by moving each used one to the front. */
#include "hazards.h"

uint32_t
hazards_add_node(struct task_hazards *h, uint32_t parent, struct rec_error *err)
{
    struct node node = {.parent = parent};
    if (!rec_grow(&h->node, &h->room, h->nnodes + 1, sizeof *h->node, err))
        return NONE;
    for (int k = 0; k < NLISTS; k++)
        node.list[k] = (struct list){0, NONE, NONE, NONE};
    h->node[h->nnodes] = node;
    return (uint32_t)h->nnodes++;
}

/* The child of a node, made if there is none. One map holds the children of all nodes:
 * most nodes have few. NONE: *err. */
static uint32_t
child_of(struct task_hazards *h, uint32_t parent, struct rec_str component,
         struct rec_error *err)
{
    size_t n = sizeof parent + component.len;
    struct rec_str key;
    uint32_t child;
    if (!rec_grow(&h->key, &h->key_room, n, 1, err))
        return NONE;
    memcpy(h->key, &parent, sizeof parent);
    memcpy(h->key + sizeof parent, component.ptr, component.len);
    key = (struct rec_str){h->key, n};
    child = rec_map_get(&h->children, key);
    if (child != NONE)
        return child;
    if (!(key.ptr = rec_arena_copy(&h->arena, key, err)) ||
        (child = hazards_add_node(h, parent, err)) == NONE ||
        !rec_map_add(&h->children, key, child, err))
        return NONE;
    return child;
}

/* The node of the folder `levels` times .. above the present one. These are made on
 * demand, each as the parent of the one below it, whose latest turns it takes over. */
static uint32_t
up_node(struct task_hazards *h, size_t levels, struct rec_error *err)
{
    while (h->nup <= levels) {
        uint32_t child = h->nup > 0 ? h->up[h->nup - 1] : NONE, node = RELATIVE;
        if (!rec_grow(&h->up, &h->up_room, h->nup + 1, sizeof *h->up, err) ||
            (child != NONE && (node = hazards_add_node(h, NONE, err)) == NONE))
            return NONE;
        if (child != NONE) {
            h->node[child].parent = node;
            for (int k = 0; k < NLISTS; k++) {
                h->node[node].list[k].latest = h->node[child].list[k].latest;
                h->node[node].list[k].first = child;
            }
        }
        h->up[h->nup++] = node;
    }
    return h->up[levels];
}

uint32_t
hazards_find_node(struct task_hazards *h, const char *name, bool *below,
                  struct rec_error *err)
{
    struct rec_str rest = rec_str(name), part;
    uint32_t node = ABSOLUTE;
    size_t levels = 0;

    *below = *name != '@' && name[rest.len - 1] == '/';
    if (*name == '@')
        return child_of(h, SYMBOLIC, rest, err);
    if (*name != '/') {
        while (strncmp(name + 3 * levels, "..", 2) == 0 &&
               (name[3 * levels + 2] == '/' || name[3 * levels + 2] == '\0'))
            if (name[3 * levels++ + 2] == '\0')
                break;
        node = up_node(h, levels, err);
    }
    for (size_t i = 0; node != NONE && rec_str_split(&rest, '/', &part); i++)
        if (part.len > 0 && !rec_str_is(part, ".") && i >= levels)
            node = child_of(h, node, part, err);
    return node;
}

/* Puts a child first among its siblings. */
static void
move_first(struct task_hazards *h, uint32_t child, int which)
{
    struct list *own = &h->node[child].list[which];
    struct list *parent = &h->node[h->node[child].parent].list[which];
    if (parent->first == child)
        return;
    if (own->before != NONE)
        h->node[own->before].list[which].after = own->after;
    if (own->after != NONE)
        h->node[own->after].list[which].before = own->before;
    own->before = NONE;
    own->after = parent->first;
    if (parent->first != NONE)
        h->node[parent->first].list[which].before = child;
    parent->first = child;
}

/* Stops at the first node that was touched in this turn: so are all nodes above it. */
void
hazards_touch(struct task_hazards *h, uint32_t node, int which)
{
    for (; node != NONE && h->node[node].list[which].latest != h->turn;
         node = h->node[node].parent) {
        h->node[node].list[which].latest = h->turn;
        if (h->node[node].parent != NONE)
            move_first(h, node, which);
    }
}
