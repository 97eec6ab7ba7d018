/* The table of families. */
#include "private.h"

static const struct metrics_family *const families[] = {
    &metrics_jobs,      &metrics_training, &metrics_queries,
    &metrics_tasks,     &metrics_bounds,   &metrics_links,
    &metrics_exchanges, &metrics_steps,    &metrics_devices};

const struct metrics_family *
metrics_family(size_t i)
{
    return i < METRICS_COUNT(families) ? families[i] : NULL;
}

const char *
metrics_family_name(const struct metrics_family *family)
{
    return family->name;
}

bool
metrics_has_objective(const struct metrics_family *family)
{
    return family->objective;
}

/* A family with a leading record is named by it alone: its other records may belong to
 * other families. */
const char *
metrics_family_record(const struct metrics_family *family, size_t i)
{
    size_t n = family->lead == REC_OTHER ? family->ncases : 1;
    return i < n ? rec_spec(family->cases[i].type)->name : NULL;
}
