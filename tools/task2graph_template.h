/* Tasks from a template: task2graph --template. */
#ifndef RAMPIPE_TASK2GRAPH_TEMPLATE_H
#define RAMPIPE_TASK2GRAPH_TEMPLATE_H

#include "rampipe/cli.h"
#include "rampipe/task.h"

struct template_options {
    const char *path, *limit;
    char *const *set; /* NAME=VALUE,... */
    unsigned nset;
};

/** Reads the template and the values of its parameters: those of options, and rows of
 * CSV, if there are files or a parameter has no value otherwise. NULL: cli->err. */
struct task_template *template_open(
    struct cli *cli, const struct template_options *options) REC_MUST_CHECK;

#endif
