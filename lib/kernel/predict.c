/* Predicts kernels of a device and type, and remembers them. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* A point less similar than this changes an estimate by less than a quarter of its
 * surprise: the form alone decides. */
static const double least_similar = 0.25;

/* Launch of a kernel that only moves memory: reference parallel.md, section 4.3. */
static const double memory_launch = 2e-6;

/* Which law answers for an operation and pass, and what is changed in it. */
struct way {
    struct kernel_law *law, *ratio; /* law NULL: not looked for yet */
    double p[KERNEL_NPARAMETERS];
    double mean;
    bool none, own; /* own: of the device, type and pass */
    const struct kernel_check *large, *small;
};

struct memo {
    struct kernel_shape shape;
    struct kernel_answer answer; /* seconds 0: empty */
};
enum { MEMO_FIRST = 1 << 10, MEMO_MOST = 1 << 20 };

struct kernel {
    struct kernel_table *table;
    const struct device *device;
    enum kernel_dtype dtype;
    enum kernel_set set;
    struct kernel_sheet sheet;
    const struct device_reach *memory; /* NULL: there is none */
    struct way way[KERNEL_NOPS - 1][KERNEL_NPASSES];
    struct memo *memo;
    size_t memo_room, memo_used;
};

struct kernel *
kernel_open(struct kernel_table *table, const char *device, enum kernel_dtype dtype,
            enum kernel_set set, struct rec_error *err)
{
    const struct device *found = device_find(table->devices, device);
    struct kernel_sheet sheet;
    struct kernel *kernel;

    if (!found) {
        rec_fail(err, REC_DATA, "there is no device '%s'", device);
        return NULL;
    }
    if (!kernel_sheet_read(found, dtype, &sheet, err))
        return NULL;
    kernel = calloc(1, sizeof *kernel);
    if (!kernel || !(kernel->memo = calloc(MEMO_FIRST, sizeof *kernel->memo))) {
        free(kernel);
        rec_fail_memory(err);
        return NULL;
    }
    kernel->table = table;
    kernel->device = found;
    kernel->dtype = dtype;
    kernel->set = set;
    kernel->sheet = sheet;
    kernel->memo_room = MEMO_FIRST;
    kernel->memory = device_reach_find(table->devices, found->name,
                                       kernel_precisions[dtype], rec_str("memory"));
    return kernel;
}

void
kernel_close(struct kernel *kernel)
{
    if (kernel)
        free(kernel->memo);
    free(kernel);
}

static const struct kernel_check *
find_check(const struct kernel_table *table, const char *law, const char *size)
{
    char name[200];
    snprintf(name, sizeof name, "%s/%s", law, size);
    return kernel_check_find(table, name);
}

/* Finds the law for an operation and pass. A law without the pass gets the ratio to the
 * forward pass that another law has. */
static bool
find_way(struct kernel *kernel, const struct kernel_shape *shape, struct way *way,
         struct rec_error *err)
{
    enum kernel_pass pass = shape->pass;
    struct kernel_law *law = kernel_law_relative(kernel->table, kernel->device, shape->op,
                                                 kernel->dtype, kernel->set);
    if (law && !kernel_law_ready(law, err))
        return false;
    way->none = !law;
    if (!law)
        return true;
    if (isnan(law->mean[pass])) {
        /* the other library of the same device may have the pass */
        struct kernel_law *other = kernel_law_find(
            kernel->table, law->device, shape->op, law->dtype,
            law->set == KERNEL_TRAINING ? KERNEL_INFERENCE : KERNEL_TRAINING);
        if (other && !kernel_law_ready(other, err))
            return false;
        if (other && !isnan(other->mean[pass]))
            law = other;
    }
    memcpy(way->p, law->p, sizeof way->p);
    way->mean = law->mean[pass];
    way->own =
        kernel_unlike(law->device, kernel->device) <= 0 && law->dtype == kernel->dtype;
    if (isnan(way->mean)) {
        struct kernel_law *ratio;
        for (size_t i = 0; i < kernel->table->nlaws; i++)
            if (!kernel_law_ready(&kernel->table->law[i], err))
                return false;
        ratio = kernel_law_pass(kernel->table, kernel->device, shape->op, pass);
        way->none = !ratio || isnan(law->mean[KERNEL_FORWARD]);
        if (way->none)
            return true;
        way->ratio = ratio;
        way->own = false;
        way->p[KERNEL_BACK] = ratio->p[KERNEL_BACK];
        way->mean =
            law->mean[KERNEL_FORWARD] + ratio->mean[pass] - ratio->mean[KERNEL_FORWARD];
    }
    if (way->own && law->set == kernel->set) {
        way->large = find_check(kernel->table, law->name, "large");
        way->small = find_check(kernel->table, law->name, "small");
    } else if (!way->own)
        way->large = find_check(kernel->table, way->ratio ? "ratio" : "sheet",
                                kernel_ops[shape->op]);
    way->law = law;
    return true;
}

/* Products without a cast, of a law whose times include it, take the form without it. */
static void
predict(const struct kernel *kernel, const struct way *way,
        const struct kernel_shape *shape, struct kernel_answer *answer,
        struct kernel_form *form)
{
    const struct kernel_law *law = way->law;
    const struct kernel_point *point =
        way->own && law->set == kernel->set ? kernel_law_point(law, shape) : NULL;
    double similar, correction;

    kernel_form(way->p, &kernel->sheet, shape, form);
    if (way->ratio) { /* the law knows the forward pass alone */
        if (shape->op == KERNEL_GEMM)
            form->x[10] = form->x[11] = 0;
        else
            form->x[8] = 0;
    }
    correction = kernel_estimate(law, form->x, &similar);
    answer->seconds = form->seconds * exp(way->mean + correction);
    answer->how = !way->own                  ? KERNEL_SHEET
                  : similar >= least_similar ? KERNEL_NEIGHBOURS
                                             : KERNEL_TILES;
    answer->check = answer->how == KERNEL_TILES           ? NULL
                    : way->own && !kernel_is_large(shape) ? way->small
                                                          : way->large;
    if (point) {
        answer->seconds = point->seconds;
        answer->how = KERNEL_MEASURED;
        answer->check = NULL;
    }
    answer->share = kernel_flops(shape) / answer->seconds / kernel->sheet.peak;
}

static struct memo *
memo_slot(struct kernel *kernel, const struct kernel_shape *shape)
{
    size_t at = kernel_shape_hash(shape) & (kernel->memo_room - 1);
    while (kernel->memo[at].answer.seconds > 0 &&
           !kernel_shape_same(&kernel->memo[at].shape, shape))
        at = (at + 1) & (kernel->memo_room - 1);
    return &kernel->memo[at];
}

/* Doubles the memo; one that is as large as it may be is emptied. */
static void
memo_grow(struct kernel *kernel)
{
    size_t room = kernel->memo_room * 2;
    struct memo *old = kernel->memo, *memo = NULL;
    if (room <= MEMO_MOST)
        memo = calloc(room, sizeof *memo);
    kernel->memo_used = 0;
    if (!memo) { /* a memo may forget: without memory it does, too */
        memset(old, 0, kernel->memo_room * sizeof *old);
        return;
    }
    kernel->memo = memo;
    kernel->memo_room = room;
    for (size_t i = 0; i < room / 2; i++)
        if (old[i].answer.seconds > 0) {
            *memo_slot(kernel, &old[i].shape) = old[i];
            kernel->memo_used++;
        }
    free(old);
}

static bool
predict_memory(const struct kernel *kernel, const struct kernel_shape *shape,
               struct kernel_answer *answer, struct rec_error *err)
{
    double least = (double)shape->size[0] / kernel->device->bandwidth;
    if (!kernel->memory)
        return rec_fail(err, REC_NO,
                        "no reach record says which share of the bandwidth ops of class "
                        "memory have");
    answer->seconds = memory_launch + least / kernel->memory->share;
    answer->share = least / answer->seconds;
    answer->how = KERNEL_SHEET;
    answer->check = NULL;
    return true;
}

bool
kernel_seconds(struct kernel *kernel, const struct kernel_shape *shape,
               struct kernel_answer *answer, struct rec_error *err)
{
    struct memo *memo;
    struct way *way;
    struct kernel_form form;

    if (shape->op == KERNEL_MEMORY)
        return predict_memory(kernel, shape, answer, err);
    memo = memo_slot(kernel, shape);
    if (memo->answer.seconds > 0) {
        *answer = memo->answer;
        return true;
    }
    way = &kernel->way[shape->op][shape->pass];
    if (!way->law && !way->none && !find_way(kernel, shape, way, err))
        return false;
    if (way->none)
        return rec_fail(err, REC_NO, "no law of %s has the %s pass of %s%s",
                        kernel_dtypes[kernel->dtype], kernel_passes[shape->pass],
                        kernel_ops[shape->op],
                        ", and no device with such a law is alike");
    predict(kernel, way, shape, answer, &form);
    if (!isfinite(answer->seconds) || !(answer->seconds > 0))
        return rec_fail(err, REC_NO, "the time of the kernel is beyond all numbers");
    memo->shape = *shape;
    memo->answer = *answer;
    if (++kernel->memo_used * 2 > kernel->memo_room)
        memo_grow(kernel);
    return true;
}

void
kernel_why(struct kernel *kernel, const struct kernel_shape *shape,
           char text[KERNEL_WHY_MAX])
{
    struct kernel_answer answer;
    struct kernel_form form;
    struct rec_error err;
    const struct way *way;
    int n;

    text[0] = '\0';
    if (!kernel_seconds(kernel, shape, &answer, &err))
        snprintf(text, KERNEL_WHY_MAX, "%.*s", KERNEL_WHY_MAX - 1, err.text);
    else if (shape->op == KERNEL_MEMORY)
        snprintf(text, KERNEL_WHY_MAX,
                 "bytes at %g of the bandwidth, and a launch of %g s; never checked",
                 kernel->memory->share, memory_launch);
    if (text[0])
        return;
    way = &kernel->way[shape->op][shape->pass];
    predict(kernel, way, shape, &answer, &form);
    n = snprintf(text, KERNEL_WHY_MAX, "law %s%s%s: ", way->law->name,
                 way->ratio ? ", pass by the ratio of " : "",
                 way->ratio ? way->ratio->name : "");
    snprintf(text + n, KERNEL_WHY_MAX - (size_t)n,
             "%ux%u tiles%s%.0u in %u waves %.4g s, bytes %.4g s, launch %.4g s, cast "
             "%.4g s; measured kernels make it %.3f times that",
             form.tile[0], form.tile[1], form.split > 1 ? ", K in parts: " : "",
             form.split > 1 ? form.split : 0, form.waves, form.compute, form.move,
             way->p[KERNEL_LAUNCH], form.cast, answer.seconds / form.seconds);
}
