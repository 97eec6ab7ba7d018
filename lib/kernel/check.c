/* How far predictions are from measured kernels that no fit has seen. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* Errors of one case. */
struct tally {
    double *error;
    size_t n, room;
};

static bool
tally_add(struct tally *tally, double error, struct rec_error *err)
{
    if (!rec_grow(&tally->error, &tally->room, tally->n + 1, sizeof error, err))
        return false;
    tally->error[tally->n++] = error;
    return true;
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool
write_check(struct kernel_table *table, const char *first, const char *second,
            struct tally *tally, struct rec_error *err)
{
    struct kernel_check check = {.rows = tally->n};
    char name[200];
    double sum = 0;

    if (tally->n == 0)
        return true;
    snprintf(name, sizeof name, "%s/%s", first, second);
    qsort(tally->error, tally->n, sizeof *tally->error, by_size);
    for (size_t i = 0; i < tally->n; i++)
        sum += tally->error[i];
    check.mean = sum / (double)tally->n;
    check.p90 = tally->error[(size_t)(0.9 * (double)tally->n)];
    check.worst = tally->error[tally->n - 1];
    if (!(check.name = rec_arena_copy(&table->arena, rec_str(name), err)) ||
        !rec_grow(&table->check, &table->check_room, table->nchecks + 1, sizeof check,
                  err))
        return false;
    table->check[table->nchecks++] = check;
    return true;
}

/* Predicts points of a law by a table, and adds their errors to two tallies: large ones,
 * and others. Passes before `from` are left out. */
static bool
compare(struct kernel_table *table, const struct kernel_law *law,
        const struct kernel_point *point, size_t n, enum kernel_pass from,
        struct tally tally[2], struct rec_error *err)
{
    struct kernel *kernel =
        kernel_open(table, law->device->name, law->dtype, law->set, err);
    bool ok = kernel != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        struct kernel_answer answer;
        if (point[i].shape.pass < from)
            continue;
        if (kernel_seconds(kernel, &point[i].shape, &answer, err))
            ok = tally_add(&tally[kernel_is_large(&point[i].shape) ? 0 : 1],
                           fabs(answer.seconds / point[i].seconds - 1), err);
        else
            ok = err->code == REC_NO; /* a device without relatives */
    }
    kernel_close(kernel);
    return ok;
}

/* Moves the points of a fold to the end; returns how many stay. A shape is in the same
 * fold on all devices. */
static size_t
divide(struct kernel_law *law, unsigned fold, unsigned folds)
{
    size_t stay = 0;
    for (size_t i = 0; i < law->npoints; i++)
        if (kernel_shape_hash(&law->point[i].shape) % folds != fold) {
            struct kernel_point point = law->point[i];
            law->point[i] = law->point[stay];
            law->point[stay++] = point;
        }
    return stay;
}

/* One fold: every law without it, and its errors. */
static bool
check_fold(struct kernel_table *table, unsigned fold, unsigned folds,
           struct tally (*tally)[2], struct rec_error *err)
{
    bool ok = true;
    size_t *all = malloc((table->nlaws + 1) * sizeof *all);
    if (!all)
        return rec_fail_memory(err);
    for (size_t i = 0; i < table->nlaws; i++) {
        all[i] = table->law[i].npoints;
        table->law[i].npoints = divide(&table->law[i], fold, folds);
    }
    ok = kernel_fit(table, err);
    for (size_t i = 0; ok && i < table->nlaws; i++) {
        const struct kernel_law *law = &table->law[i];
        if (law->npoints > 0)
            ok = compare(table, law, law->point + law->npoints, all[i] - law->npoints,
                         KERNEL_FORWARD, tally[i], err);
    }
    for (size_t i = 0; i < table->nlaws; i++) {
        table->law[i].npoints = all[i];
        table->law[i].ready = false;
    }
    free(all);
    return ok;
}

/* Every law is left out, and predicted from its relatives and the data sheet of its
 * device; backward passes of training by the ratio of another law. */
static bool
check_relatives(struct kernel_table *table, struct rec_error *err)
{
    static const enum kernel_pass from[] = {KERNEL_FORWARD, KERNEL_INPUT};
    static const char *const names[] = {"sheet", "ratio"};
    for (int op = KERNEL_GEMM; op <= KERNEL_ATTENTION; op++)
        for (int k = 0; k < 2; k++) {
            struct tally tally[2] = {{NULL, 0, 0}, {NULL, 0, 0}};
            bool ok = true;
            for (size_t i = 0; ok && i < table->nlaws; i++) {
                struct kernel_law *law = &table->law[i];
                if ((int)law->op != op ||
                    law->set != (k ? KERNEL_TRAINING : KERNEL_INFERENCE))
                    continue;
                table->without = law;
                table->without_device = k == 0 ? law->device : NULL;
                ok = compare(table, law, law->point, law->npoints, from[k], tally, err);
            }
            table->without = NULL;
            table->without_device = NULL;
            ok = ok && write_check(table, names[k], kernel_ops[op], &tally[0], err);
            free(tally[0].error);
            free(tally[1].error);
            if (!ok)
                return false;
        }
    return true;
}

bool
kernel_check_folds(struct kernel_table *table, unsigned folds, struct rec_error *err)
{
    struct tally(*tally)[2] = calloc(table->nlaws + 1, sizeof *tally);
    bool ok = tally != NULL || rec_fail_memory(err);
    for (unsigned fold = 0; ok && fold < folds; fold++)
        ok = check_fold(table, fold, folds, tally, err);
    for (size_t i = 0; ok && i < table->nlaws; i++)
        ok = write_check(table, table->law[i].name, "large", &tally[i][0], err) &&
             write_check(table, table->law[i].name, "small", &tally[i][1], err);
    /* kernels of inference, all devices and types */
    for (int op = KERNEL_GEMM; ok && op <= KERNEL_ATTENTION; op++) {
        struct tally sum = {NULL, 0, 0};
        for (size_t i = 0; ok && i < table->nlaws; i++)
            if ((int)table->law[i].op == op && table->law[i].set == KERNEL_INFERENCE)
                for (size_t j = 0; ok && j < tally[i][0].n; j++)
                    ok = tally_add(&sum, tally[i][0].error[j], err);
        ok = ok && write_check(table, "inference", kernel_ops[op], &sum, err);
        free(sum.error);
    }
    for (size_t i = 0; tally && i < table->nlaws; i++) {
        free(tally[i][0].error);
        free(tally[i][1].error);
    }
    free(tally);
    return ok && kernel_fit(table, err) && check_relatives(table, err);
}
