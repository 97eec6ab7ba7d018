/* The time of work on a device. rampipe/device.h has the formula and its source. */
#include "rampipe/device.h"

#include <math.h>
#include <stdio.h>

const struct device_reach *
device_reach_find(const struct device_table *table, const char *device,
                  enum device_precision precision, struct rec_str kind)
{
    const struct device_reach *best = NULL;
    int most = -1;
    for (size_t i = 0; i < table->nreaches; i++) {
        const struct device_reach *row = &table->reach[i];
        bool own = strcmp(row->device, device) == 0;
        bool exact = row->precision == precision;
        if ((own || strcmp(row->device, "any") == 0) &&
            (exact || row->precision == DEVICE_NPRECISIONS) &&
            rec_str_is(kind, row->kind) && 2 * own + exact >= most) {
            best = row;
            most = 2 * own + exact;
        }
    }
    return best;
}

/* The class of an op that does not name its own follows from its work. */
static struct rec_str
class_of(const struct device_work *work)
{
    if (work->kind.len)
        return work->kind;
    return rec_str(work->gemm[0] > 0 ? "matmul" : work->flops > 0 ? "other" : "memory");
}

/* The factor by which n rows or columns grow when they are rounded up to whole tiles. If
 * n fits into half a tile, kernels use smaller tiles: half of it, a quarter, and so
 * on. */
static double
padding(double n, double tile)
{
    while (tile / 2 >= n && tile > 1)
        tile /= 2;
    return ceil(n / tile) * tile / n;
}

static bool
check_time(double seconds, struct rec_error *err)
{
    return isfinite(seconds) ||
           rec_fail(err, REC_DATA, "it takes longer than a number can say");
}

static bool
fail_class(const struct device_roofline *roofline, struct rec_str kind,
           struct rec_error *err)
{
    return rec_fail(
        err, REC_DATA, "no reach record says what class '%.*s' reaches on %s at %s",
        REC_SAID(kind), roofline->device, device_precisions[roofline->precision]);
}

bool
device_seconds(const struct device_roofline *roofline, const struct device_work *work,
               double *seconds, struct rec_error *err)
{
    struct rec_str kind = class_of(work);
    const struct device_reach *reach, *memory;
    double pad = 1;

    *seconds = 0;
    if (work->flops == 0 && work->moved == 0)
        return true;
    if (roofline->flat > 0) {
        *seconds = fmax(work->flops / roofline->peak, work->moved / roofline->bandwidth) /
                   roofline->flat;
        return check_time(*seconds, err);
    }
    reach =
        device_reach_find(roofline->table, roofline->device, roofline->precision, kind);
    memory = device_reach_find(roofline->table, roofline->device, roofline->precision,
                               rec_str("memory"));
    if (!reach || !memory)
        return fail_class(roofline, reach ? rec_str("memory") : kind, err);
    if (work->gemm[0] > 0)
        pad = padding(work->gemm[1], reach->tile) * padding(work->gemm[2], reach->tile);
    *seconds = fmax(work->flops * pad / (roofline->peak * reach->share),
                    work->moved / (roofline->bandwidth * memory->share)) +
               reach->latency;
    return check_time(*seconds, err);
}

void
device_work_keys(const struct device_work *work, char text[DEVICE_KEYS_MAX])
{
    char flops[REC_NUM_MAX], moved[REC_NUM_MAX];
    int n;
    rec_format_num(flops, work->flops);
    rec_format_num(moved, work->moved);
    n = snprintf(text, DEVICE_KEYS_MAX, "\tflops=%s\tmoved=%s", flops, moved);
    if (work->kind.len)
        n += snprintf(text + n, (size_t)(DEVICE_KEYS_MAX - n), "\tclass=%.*s",
                      REC_SAID(work->kind));
    if (work->gemm[0] > 0)
        snprintf(text + n, (size_t)(DEVICE_KEYS_MAX - n), "\tgemm=%.0fx%.0fx%.0fx%.0f",
                 work->gemm[0], work->gemm[1], work->gemm[2], work->gemm[3]);
}
