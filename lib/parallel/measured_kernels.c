/* Tables of measured kernels: what they say of a product or of attention of a step. */
#include "private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct opened {
    char device[64];
    enum kernel_dtype dtype;
    struct kernel *kernel; /* NULL: the device has no such numbers */
};

struct parallel_kernels {
    struct kernel_table table;
    struct opened *opened; /* owned */
    size_t n, room;
    bool pruned; /* nothing is read any more */
};

struct parallel_kernels *
parallel_kernels_new(const struct device_table *devices, struct rec_error *err)
{
    struct parallel_kernels *kernels = calloc(1, sizeof *kernels);
    if (!kernels) {
        rec_fail_memory(err);
        return NULL;
    }
    kernels->table.devices = devices;
    if (kernel_table_read_shipped(&kernels->table, err)) {
        /* the form of laws, but only what the caller measured */
        kernel_table_forget(&kernels->table);
        return kernels;
    }
    parallel_kernels_free(kernels);
    return NULL;
}

void
parallel_kernels_free(struct parallel_kernels *kernels)
{
    if (!kernels)
        return;
    for (size_t i = 0; i < kernels->n; i++)
        kernel_close(kernels->opened[i].kernel);
    free(kernels->opened);
    kernel_table_free(&kernels->table);
    free(kernels);
}

bool
parallel_kernels_read(struct parallel_kernels *kernels, const char *path,
                      struct rec_error *err)
{
    return kernel_table_read_file(&kernels->table, path, err);
}

bool
parallel_kernels_take(struct parallel_kernels *kernels, struct rec_reader *reader,
                      struct rec_error *err)
{
    return kernel_table_read(&kernels->table, reader, err);
}

size_t
parallel_kernels_inference(const struct parallel_kernels *kernels)
{
    size_t sum = 0;
    for (size_t i = 0; i < kernels->table.nlaws; i++)
        if (strstr(kernel_law_name(&kernels->table, i), "/inference"))
            sum += kernel_law_kernels(&kernels->table, i);
    return sum;
}

/* Opens the kernels of a device, or finds them. */
static bool
open_kernel(struct parallel_kernels *kernels, const char *device, enum kernel_dtype dtype,
            struct kernel **kernel, struct rec_error *err)
{
    struct opened *one;
    if (!kernels->pruned)
        kernel_table_prune(&kernels->table);
    kernels->pruned = true;
    for (size_t i = 0; i < kernels->n; i++)
        if (kernels->opened[i].dtype == dtype &&
            strcmp(kernels->opened[i].device, device) == 0) {
            *kernel = kernels->opened[i].kernel;
            return true;
        }
    if (!rec_grow(&kernels->opened, &kernels->room, kernels->n + 1,
                  sizeof *kernels->opened, err))
        return false;
    one = &kernels->opened[kernels->n++];
    *one = (struct opened){.dtype = dtype};
    snprintf(one->device, sizeof one->device, "%s", device);
    one->kernel = kernel_open(&kernels->table, device, dtype, KERNEL_TRAINING, err);
    *kernel = one->kernel;
    return one->kernel || err->code == REC_NO;
}

bool
parallel_kernels_open(struct parallel_kernels *kernels, const char *device, bool fp16,
                      struct parallel_machine *machine, struct rec_error *err)
{
    const enum kernel_dtype dtypes[] = {fp16 ? KERNEL_FP16 : KERNEL_BF16, KERNEL_FP8,
                                        KERNEL_NVFP4};
    for (int i = 0; i < 3; i++)
        if (!open_kernel(kernels, device, dtypes[i], &machine->kernel[i], err))
            return false;
    return true;
}

/* Sizes that are no whole numbers are those of no kernel. */
static bool
size(double number, uint64_t *whole)
{
    *whole = number >= 1 && number <= 0x1p40 ? (uint64_t)number : 0;
    return *whole > 0 && (double)*whole == number;
}

/* Measured, or between such that were; 0: neither. */
static double
ask(struct kernel *kernel, const struct kernel_shape *shape)
{
    struct kernel_answer answer;
    struct rec_error err;
    if (!kernel || !kernel_seconds(kernel, shape, &answer, &err) ||
        (answer.how != KERNEL_MEASURED && answer.how != KERNEL_NEIGHBOURS))
        return 0;
    return answer.seconds;
}

double
parallel_measured_product(const struct parallel_machine *machine,
                          const struct parallel_product *p)
{
    struct kernel_shape shape = {
        .op = KERNEL_GEMM, .pass = p->pass, .out = p->accumulate ? 4 : 2};
    if (!machine->kernel[p->precision] || p->batched || !size(p->m, &shape.size[0]) ||
        !size(p->k, &shape.size[1]) || !size(p->n, &shape.size[2]) ||
        !size(p->count, &shape.groups))
        return 0;
    return ask(machine->kernel[p->precision], &shape);
}

double
parallel_measured_attention(const struct parallel_model *model,
                            const struct parallel_mix *mix,
                            const struct parallel_machine *machine,
                            const struct parallel_kind *kind,
                            const struct parallel_op *op, enum kernel_pass pass)
{
    double parts = mix->deal_heads ? (double)mix->tp * mix->cp : mix->tp;
    double heads = model->t.heads / parts, s = model->sequence;
    double kv = model->t.kv_rank > 0 ? heads : fmax(1, model->t.kv_heads / parts);
    struct kernel_shape shape = {.op = KERNEL_ATTENTION, .pass = pass};
    struct kernel *kernel =
        machine->kernel[mix->attention_fp8 ? PARALLEL_FP8 : PARALLEL_BF16];
    bool whole = !(mix->cp > 1 && !mix->deal_heads) && model->t.causal &&
                 !(kind->window > 0 && kind->window < s);
    if (!kernel || !whole || !size(mix->micro, &shape.size[0]) ||
        !size(s, &shape.size[1]) || !size(heads, &shape.size[2]) ||
        !size(kv, &shape.size[3]) || !size(op->k, &shape.size[4]) ||
        !size(op->n, &shape.size[5]) || shape.size[2] % shape.size[3] != 0)
        return 0;
    return ask(kernel, &shape);
}
