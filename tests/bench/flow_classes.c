/*
 * flow_classes tree PORTS BELOW | rail NODES [half] - an all-to-all of 1 MB between all
 * GPUs of a network (fabrics.h), by classes of flows; `half`: one link has half of its
 * capacity. Writes GPUs, flows, classes of flows and of links, passes, and the end.
 */
#include "../unit/fabrics.h"

int
main(int argc, char **argv)
{
    bool tree = argc > 3 && strcmp(argv[1], "tree") == 0;
    struct rec_error err = {.text = "usage: flow_classes tree PORTS BELOW | rail NODES"};
    struct fabric fabric;
    struct flow_source source;
    struct flow_classes *classes;
    double *capacity, *finish, last;

    if (argc < 3 || (!tree && strcmp(argv[1], "rail") != 0))
        goto failed;
    fabric = tree ? fabric_tree((uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), 1e6)
                  : fabric_rail((uint32_t)atoi(argv[2]), true, 16, 1e6);
    fabric.fans = fabric.fans && strcmp(argv[argc - 1], "single") != 0;
    source = fabric_source(&fabric);
    capacity = malloc(fabric.nlinks * sizeof *capacity);
    for (uint32_t i = 0; i < fabric.nlinks; i++)
        capacity[i] = 50e9;
    if (strcmp(argv[argc - 1], "half") == 0)
        capacity[2 * fabric.ngpus] /= 2;
    classes = flow_classes_find(fabric.nlinks, capacity, NULL, &source, 1 << 20, &err);
    if (!classes || !(finish = malloc((classes->n + 1) * sizeof *finish)) ||
        !flow_classes_run(classes, finish, &last, &err))
        goto failed;
    printf("%u GPUs, %.0f flows in %u classes, links in %u, %u passes: %.9g s\n",
           fabric.ngpus, classes->flows, classes->n, classes->ncolours, classes->passes,
           last);
    flow_classes_free(classes);
    free(finish);
    free(capacity);
    fabric_free(&fabric);
    return 0;
failed:
    fprintf(stderr, "flow_classes: %s\n", err.text);
    return 1;
}
