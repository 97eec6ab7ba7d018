/* Lists of the writers of names. Equal lists are stored once: if n tasks read a folder
 * into which n others write, each has the same list of n writers. */
#include "private.h"

#include <stdlib.h>

/* The index of a list (its length, then its values) among the different ones; it is added
 * if it is new. Takes ownership of `list`. REC_NONE: *err. */
static uint32_t
keep(struct run_lists *lists, uint32_t *list, struct rec_error *err)
{
    struct rec_str key = {(const char *)list, (list[0] + (size_t)1) * sizeof *list};
    uint32_t number = rec_map_get(&lists->known, key);
    if (number != REC_NONE) {
        free(list);
        return number;
    }
    if (!rec_grow(&lists->list, &lists->list_room, lists->nlists + 1, sizeof list, err) ||
        !rec_map_add(&lists->known, key, (uint32_t)lists->nlists, err)) {
        free(list);
        return REC_NONE;
    }
    lists->list[lists->nlists] = list;
    return (uint32_t)lists->nlists++;
}

bool
run_lists_add(struct run_lists *lists, const struct task_edge *from, size_t n,
              struct rec_error *err)
{
    uint32_t *list, number;
    if (!rec_grow(&lists->number, &lists->room, lists->n + 1, sizeof number, err))
        return false;
    if (!(list = malloc((n + 1) * sizeof *list)))
        return rec_fail_memory(err);
    list[0] = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        list[i + 1] = from[i].src;
    if ((number = keep(lists, list, err)) == REC_NONE)
        return false;
    lists->number[lists->n++] = number;
    return true;
}

struct run_list
run_lists_get(const struct run_lists *lists, size_t at)
{
    const uint32_t *list = lists->list[lists->number[at]];
    return (struct run_list){list[0], list + 1};
}

/* Bisection: values increase, as edges are sorted by their source. */
bool
run_list_has(struct run_list list, uint32_t value)
{
    uint32_t from = 0, to = list.n;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (list.value[middle] < value)
            from = middle + 1;
        else
            to = middle;
    }
    return from < list.n && list.value[from] == value;
}

void
run_lists_free(struct run_lists *lists)
{
    for (size_t i = 0; i < lists->nlists; i++)
        free(lists->list[i]);
    free(lists->list);
    free(lists->number);
    rec_map_free(&lists->known);
}
