/*
 * flow_classes tree PORTS BELOW | rail NODES [half | single] - an all-to-all of 1 MB
 * between all GPUs of a network (fabrics.h), by classes of flows. `half`: one link has
 * half of its capacity. `single`: flow by flow instead of fans. Writes GPUs, flows,
 * classes of flows and of links, passes, and the end.
 */
#include "../unit/fabrics.h"

static bool
run(struct fabric *fabric, const double *capacity, struct rec_error *err)
{
    const struct flow_source source = fabric_source(fabric);
    struct flow_classes *classes =
        flow_classes_find(fabric->nlinks, capacity, NULL, &source, 1 << 20, err);
    double *finish = classes ? malloc((classes->n + 1) * sizeof *finish) : NULL, last;
    bool ok = finish && flow_classes_run(classes, finish, &last, err);

    if (classes && !finish)
        rec_fail_memory(err);
    if (ok)
        printf("%u GPUs, %.0f flows in %u classes, links in %u, %u passes: %.9g s\n",
               fabric->ngpus, classes->flows, classes->n, classes->ncolours,
               classes->passes, last);
    flow_classes_free(classes);
    free(finish);
    return ok;
}

int
main(int argc, char **argv)
{
    bool tree = argc > 3 && strcmp(argv[1], "tree") == 0;
    struct rec_error err = {REC_USAGE, false, "give tree PORTS BELOW, or rail NODES"};
    struct fabric fabric = {.k = 0};
    double *capacity = NULL;
    bool ok = false;

    if (tree)
        fabric = fabric_tree((uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), 1e6);
    else if (argc > 2 && strcmp(argv[1], "rail") == 0)
        fabric = fabric_rail((uint32_t)atoi(argv[2]), true, 16, 1e6);
    if (fabric.ngpus > 0) {
        fabric.fans = strcmp(argv[argc - 1], "single") != 0;
        capacity = malloc(fabric.nlinks * sizeof *capacity);
        if (!capacity)
            rec_fail_memory(&err);
        for (uint32_t i = 0; capacity && i < fabric.nlinks; i++)
            capacity[i] = 50e9;
        if (capacity && strcmp(argv[argc - 1], "half") == 0)
            capacity[2 * fabric.ngpus] /= 2;
        ok = capacity && run(&fabric, capacity, &err);
    }
    if (!ok)
        fprintf(stderr, "flow_classes: %s\n", err.text);
    fabric_free(&fabric);
    free(capacity);
    return ok ? 0 : (int)err.code;
}
