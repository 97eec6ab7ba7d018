/* Classes of flows that are alike, run on the network of their links' colours. */
#include "rampipe/flow.h"

#include <math.h>
#include <stdlib.h>

struct ending {
    double *finish, last;
};

static void
note_end(void *context, uint64_t id, double time)
{
    struct ending *ending = context;
    ending->finish[id] = time;
    ending->last = time;
}

/* A class that starts. */
struct start {
    double time;
    uint32_t class;
};

static int
by_time(const void *a, const void *b)
{
    const struct start *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->class > y->class) - (x->class < y->class);
}

bool
flow_classes_run(const struct flow_classes *classes, double *finish, double *last,
                 struct rec_error *err)
{
    struct ending ending = {finish, 0};
    struct start *start = malloc((classes->n + (size_t)1) * sizeof *start);
    struct flow_links *links = flow_links_new(classes->ncolours, classes->capacity, err);
    bool ok = start && links;

    if (!start)
        rec_fail_memory(err);
    for (uint32_t i = 0; ok && i < classes->n; i++) {
        start[i] = (struct start){classes->of[i].delay, i};
        finish[i] = (double)INFINITY;
    }
    if (ok && classes->n > 0)
        qsort(start, classes->n, sizeof *start, by_time);
    for (uint32_t i = 0; ok && i < classes->n; i++) {
        const struct flow_class *class = &classes->of[start[i].class];
        const struct flow_spec spec = {start[i].class, class->bytes, class->flows,
                                       class->link,    class->n,     class->crossing};
        uint32_t flow;
        ok = flow_advance(links, start[i].time, note_end, &ending, err) &&
             flow_start(links, start[i].time, &spec, &flow, err);
    }
    ok = ok && flow_advance(links, (double)INFINITY, note_end, &ending, err);
    *last = ok && flow_still(links, 0) != FLOW_NONE ? (double)INFINITY : ending.last;
    flow_links_free(links);
    free(start);
    return ok;
}
