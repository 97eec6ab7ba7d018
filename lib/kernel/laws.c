/* Laws: shapes, which law answers for a device, and what was measured. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

const char *const kernel_ops[] = {"gemm", "attention", "memory", NULL};
const char *const kernel_dtypes[] = {"fp32", "tf32",  "fp16", "bf16",
                                     "fp8",  "nvfp4", NULL};
const char *const kernel_passes[] = {"forward", "input-gradient", "weight-gradient",
                                     "backward", NULL};
const char *const kernel_sets[] = {"inference", "training", NULL};
const char *const kernel_hows[] = {"measured", "neighbours", "tiles", "sheet", NULL};

int
kernel_word(const char *const *words, struct rec_str word)
{
    for (int i = 0; words[i]; i++)
        if (rec_str_is(word, words[i]))
            return i;
    return -1;
}

bool
kernel_shape_read(struct kernel_shape *shape, struct rec_str text, struct rec_error *err)
{
    static const char *const forms[] = {
        "M,K,N", "BATCH,SEQUENCE,HEADS,KV,QK,V or BATCH,SEQUENCE,HEADS,KV", "BYTES"};
    static const size_t counts[] = {3, 6, 1};
    struct rec_str rest = text, part;
    size_t n = 0;
    bool ok = true;

    while (ok && n < KERNEL_SIZES && rec_str_split(&rest, ',', &part)) {
        ok = rec_parse_uint(part, &shape->size[n]) && shape->size[n] >= 1 &&
             shape->size[n] <= (uint64_t)1 << 40;
        n++;
    }
    if (shape->op == KERNEL_ATTENTION && n == 4)
        while (n < 6)
            shape->size[n++] = 128;
    if (!ok || rest.ptr || n != counts[shape->op])
        return rec_fail(err, REC_DATA,
                        "the shape must be %s, integers from 1 to 2^40, got '%.*s'",
                        forms[shape->op], REC_SAID(text));
    if (shape->op == KERNEL_ATTENTION && shape->size[2] % shape->size[3] != 0)
        return rec_fail(err, REC_DATA, "KV must divide HEADS, got %llu of %llu heads",
                        (unsigned long long)shape->size[3],
                        (unsigned long long)shape->size[2]);
    return true;
}

bool
kernel_shape_same(const struct kernel_shape *a, const struct kernel_shape *b)
{
    for (int i = 0; i < KERNEL_SIZES; i++)
        if (a->size[i] != b->size[i])
            return false;
    return a->op == b->op && a->pass == b->pass && a->cast == b->cast &&
           (a->groups ? a->groups : 1) == (b->groups ? b->groups : 1) &&
           (a->out == 4) == (b->out == 4);
}

uint64_t
kernel_shape_hash(const struct kernel_shape *shape)
{
    uint64_t state = shape->op;
    for (int i = 0; i < KERNEL_SIZES; i++)
        state = rec_mix(state ^ shape->size[i]);
    return rec_mix(state ^ (shape->groups ? shape->groups : 1));
}

const struct kernel_check *
kernel_check_find(const struct kernel_table *table, const char *name)
{
    for (size_t i = table->nchecks; i-- > 0;)
        if (strcmp(table->check[i].name, name) == 0)
            return &table->check[i];
    return NULL;
}

const char *
kernel_law_name(const struct kernel_table *table, size_t i)
{
    return table->law[i].name;
}

size_t
kernel_law_kernels(const struct kernel_table *table, size_t i)
{
    return table->law[i].npoints;
}

struct kernel_law *
kernel_law_find(const struct kernel_table *table, const struct device *device,
                enum kernel_op op, enum kernel_dtype dtype, enum kernel_set set)
{
    for (size_t i = 0; i < table->nlaws; i++) {
        struct kernel_law *law = &table->law[i];
        if (law->device == device && law->op == op && law->dtype == dtype &&
            law->set == set && law != table->without &&
            law->device != table->without_device)
            return law;
    }
    return NULL;
}

/* How little two devices resemble each other by their data sheets: a processor of one
 * generation has one speed, so it counts most. Equal sheets have 0, unknown ones
 * infinity. */
double
kernel_unlike(const struct device *a, const struct device *b)
{
    double speed, memory, count;
    if (a == b)
        return 0;
    if (a->processors == 0 || b->processors == 0 || a->peak[DEVICE_BF16] <= 0 ||
        b->peak[DEVICE_BF16] <= 0)
        return INFINITY;
    count = log((double)a->processors / (double)b->processors);
    speed = log(a->peak[DEVICE_BF16] / b->peak[DEVICE_BF16]) - count;
    memory = log(a->bandwidth / b->bandwidth);
    return fabs(speed) + fabs(memory) / 2 + fabs(count) / 4;
}

/* A processor four times as fast as any that was measured is none that we know. */
static const double most_unlike = 1.4;
/* The libraries of training and of serving differ by less than generations do. */
static const double other_set = 0.3;

struct kernel_law *
kernel_law_relative(const struct kernel_table *table, const struct device *device,
                    enum kernel_op op, enum kernel_dtype dtype, enum kernel_set set)
{
    struct kernel_law *found = NULL;
    double least = most_unlike;
    for (size_t i = 0; i < table->nlaws; i++) {
        struct kernel_law *law = &table->law[i];
        double unlike =
            kernel_unlike(device, law->device) + (law->set != set) * other_set;
        if (law->op != op || law->dtype != dtype || law == table->without ||
            law->device == table->without_device || !(unlike < least))
            continue;
        found = law;
        least = unlike;
    }
    return found || dtype == KERNEL_BF16
               ? found
               : kernel_law_relative(table, device, op, KERNEL_BF16, set);
}

struct kernel_law *
kernel_law_pass(const struct kernel_table *table, const struct device *device,
                enum kernel_op op, enum kernel_pass pass)
{
    struct kernel_law *found = NULL;
    double least = most_unlike;
    for (size_t i = 0; i < table->nlaws; i++) {
        struct kernel_law *law = &table->law[i];
        double unlike = kernel_unlike(device, law->device);
        if (law->op != op || law->dtype != KERNEL_BF16 || law->set != KERNEL_TRAINING ||
            law == table->without || law->device == table->without_device ||
            isnan(law->mean[pass]) || isnan(law->mean[KERNEL_FORWARD]) ||
            !(unlike < least))
            continue;
        found = law;
        least = unlike;
    }
    return found;
}

struct kernel_law *
kernel_law_add(struct kernel_table *table, const struct device *device, enum kernel_op op,
               enum kernel_dtype dtype, enum kernel_set set, struct rec_error *err)
{
    struct kernel_law law = {.device = device, .op = op, .dtype = dtype, .set = set};
    struct rec_text text;
    char *name;

    if (!rec_text_open(&text, err))
        return NULL;
    fprintf(text.out, "%s/%s/%s/%s", device->name, kernel_dtypes[dtype], kernel_ops[op],
            kernel_sets[set]);
    name = rec_text_close(&text, err);
    law.name = name ? rec_arena_copy(&table->arena, rec_str(name), err) : NULL;
    free(name);
    if (!law.name || !rec_grow(&table->law, &table->law_room, table->nlaws + 1,
                               sizeof *table->law, err))
        return NULL;
    for (int i = 0; i < KERNEL_NPARAMETERS; i++)
        law.p[i] = kernel_ranges[op][i].start;
    for (int i = 0; i < KERNEL_NPASSES; i++)
        law.mean[i] = (double)NAN;
    table->law[table->nlaws] = law;
    return &table->law[table->nlaws++];
}

struct kernel_point *
kernel_law_point(const struct kernel_law *law, const struct kernel_shape *shape)
{
    for (size_t i = 0; i < law->npoints; i++)
        if (law->point[i].shape.size[0] == shape->size[0] &&
            kernel_shape_same(&law->point[i].shape, shape))
            return &law->point[i];
    return NULL;
}

bool
kernel_law_add_point(struct kernel_law *law, const struct kernel_shape *shape,
                     double seconds, bool replace, struct rec_error *err)
{
    struct kernel_point *point = replace ? kernel_law_point(law, shape) : NULL;
    law->ready = false;
    if (!point) {
        if (!rec_grow(&law->point, &law->point_room, law->npoints + 1, sizeof *point,
                      err))
            return false;
        point = &law->point[law->npoints++];
    }
    *point = (struct kernel_point){.shape = *shape, .seconds = seconds};
    return true;
}

void
kernel_table_forget(struct kernel_table *table)
{
    for (size_t i = 0; i < table->nlaws; i++) {
        table->law[i].npoints = 0;
        table->law[i].ready = false;
    }
}

void
kernel_table_prune(struct kernel_table *table)
{
    size_t n = 0;
    for (size_t i = 0; i < table->nlaws; i++)
        if (table->law[i].npoints > 0)
            table->law[n++] = table->law[i];
        else
            free(table->law[i].point);
    table->nlaws = n;
}

void
kernel_table_free(struct kernel_table *table)
{
    for (size_t i = 0; i < table->nlaws; i++)
        free(table->law[i].point);
    free(table->law);
    free(table->check);
    rec_arena_free(&table->arena);
    *table = (struct kernel_table){.nlaws = 0};
}
