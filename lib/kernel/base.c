/* The form of a kernel's time: tiles in waves, bytes, launch; and the coordinates in
 * which kernels are similar. */
#include "private.h"

#include <math.h>

const enum device_precision kernel_precisions[] = {
    DEVICE_FP32, DEVICE_TF32,        DEVICE_FP16,
    DEVICE_BF16, DEVICE_NPRECISIONS, DEVICE_NPRECISIONS};

static const double element[] = {4, 4, 2, 2, 1, 0.5625}; /* bytes, with scales */

bool
kernel_sheet_read(const struct device *device, enum kernel_dtype dtype,
                  struct kernel_sheet *sheet, struct rec_error *err)
{
    *sheet = (struct kernel_sheet){.processors = (double)device->processors,
                                   .bandwidth = device->bandwidth,
                                   .element = element[dtype]};
    sheet->peak = dtype == KERNEL_FP8     ? device->fp8
                  : dtype == KERNEL_NVFP4 ? device->fp4
                                          : device->peak[kernel_precisions[dtype]];
    if (sheet->peak <= 0)
        return rec_fail(err, REC_NO, "%s has no peak for %s", device->name,
                        kernel_dtypes[dtype]);
    if (sheet->processors <= 0)
        return rec_fail(err, REC_NO, "processors= of device '%s' is not known",
                        device->name);
    return true;
}

double
kernel_flops(const struct kernel_shape *shape)
{
    double n[KERNEL_SIZES];
    for (int i = 0; i < KERNEL_SIZES; i++)
        n[i] = (double)shape->size[i];
    if (shape->op == KERNEL_GEMM)
        return 2 * n[0] * n[1] * n[2] * (double)(shape->groups ? shape->groups : 1);
    if (shape->op == KERNEL_ATTENTION)
        return (shape->pass == KERNEL_BACKWARD ? 5 : 2) * n[0] * n[1] * n[1] * n[2] *
               (n[4] + n[5]);
    return 0;
}

bool
kernel_is_large(const struct kernel_shape *shape)
{
    return shape->op == KERNEL_GEMM ? shape->size[0] >= 1024 : kernel_flops(shape) > 1e11;
}

/* The fourth power keeps the longer of two times, and rounds the corner between them. */
static double
longer(double a, double b)
{
    double a4 = a * a * a * a, b4 = b * b * b * b;
    return sqrt(sqrt(a4 + b4));
}

/* Libraries choose among kernels of these tiles, and cut K into parts whose sums they
 * add. The fastest by the form is taken to be their choice. */
static const unsigned tiles[][2] = {{256, 128}, {128, 256}, {128, 128}, {64, 128},
                                    {128, 64},  {64, 64},   {256, 64},  {64, 256}};
enum { NTILES = sizeof tiles / sizeof *tiles };

static double
tile_reach(const double *p, double area)
{
    double reach = p[KERNEL_REACH];
    if (area < 32768)
        reach *= p[KERNEL_TILE_128];
    if (area < 16384)
        reach *= p[KERNEL_TILE_64];
    if (area < 8192)
        reach *= p[KERNEL_TILE_64];
    return reach;
}

/* Columns and steps that are no multiples of 64, or even of 8, take kernels of narrower
 * loads. The factors are those of steps measured with such shapes on A100 (reference
 * parallel.md, section 4.1). Rows have a constant of their own. */
static double
misaligned(const struct kernel_shape *shape)
{
    uint64_t k = shape->size[1], n = shape->size[2];
    return (k % 64 || n % 64 ? 1.4 : 1) * (k % 8 || n % 8 ? 1.5 : 1);
}

static void
form_product(const double *p, const struct kernel_sheet *sheet,
             const struct kernel_shape *shape, struct kernel_form *form)
{
    double m = (double)shape->size[0], k = (double)shape->size[1],
           n = (double)shape->size[2], groups = shape->groups ? (double)shape->groups : 1;
    double speed = sheet->bandwidth * p[KERNEL_MOVE], best = INFINITY, waste = 0;
    double each[NTILES] = {0}, odd = shape->size[0] % 16 ? p[KERNEL_ODD] : 1;
    double out = shape->out == 4 ? 4 : 2;

    for (int i = 0; i < NTILES; i++) {
        double tm = tiles[i][0], tn = tiles[i][1];
        double rate = sheet->peak * tile_reach(p, tm * tn) * odd / sheet->processors;
        double count = ceil(m / tm) * ceil(n / tn) * groups;
        each[i] = INFINITY;
        for (unsigned split = 1; split <= 8; split *= 2) {
            double waves, time;
            if (split > 1 && k < 256 * split)
                break;
            waves = ceil(count * split / sheet->processors);
            time = waves * 2 * tm * tn * (k / split + p[KERNEL_START]) / rate;
            if (split > 1)
                time += split * m * n * groups * 4 / speed;
            if (time < each[i])
                each[i] = time;
            if (time < best) {
                best = time;
                waste = log(waves * sheet->processors * tm * tn / (m * n * groups));
                form->tile[0] = tiles[i][0];
                form->tile[1] = tiles[i][1];
                form->split = split;
                form->waves = waves < 4e9 ? (unsigned)waves : 4000000000u;
            }
        }
    }
    /* a gradient that is added to is read, too */
    form->compute = best * misaligned(shape);
    form->move = groups *
                 (sheet->element * (m * k + k * n) +
                  m * n * (shape->pass == KERNEL_WEIGHT ? 2 * out : out)) /
                 speed;
    form->cast = shape->cast
                     ? p[KERNEL_CAST] + groups * m * k * (2 + sheet->element) /
                                            (sheet->bandwidth * p[KERNEL_CAST_MOVE])
                     : 0;
    form->seconds = longer(form->compute, form->move) + p[KERNEL_LAUNCH] + form->cast;
    form->x[0] = log(m);
    form->x[1] = log(n);
    form->x[2] = log(k);
    form->x[3] = waste;
    form->x[4] = log(form->compute / form->move);
    form->x[5] = shape->size[0] % 16 ? 1 : 0;
    form->x[6] = log((double)form->waves);
    form->x[7] = (form->x[0] + form->x[1] + form->x[2]) / 3;
    form->x[8] = log(each[0] / best);
    form->x[9] = log(each[1] / best);
    form->x[10] = shape->pass == KERNEL_INPUT ? 1 : 0;
    form->x[11] = shape->pass != KERNEL_WEIGHT ? 0 : out > 2 ? 1.5 : 1;
    form->x[12] = log(groups);
}

/* Blocks of 128 rows of Q go over the keys before them; the last one of a sequence takes
 * the longest, and nothing ends before it. */
static void
form_attention(const double *p, const struct kernel_sheet *sheet,
               const struct kernel_shape *shape, struct kernel_form *form)
{
    bool back = shape->pass == KERNEL_BACKWARD;
    double b = (double)shape->size[0], s = (double)shape->size[1],
           h = (double)shape->size[2], kv = (double)shape->size[3],
           width = (double)(shape->size[4] + shape->size[5]);
    double rate = sheet->peak * p[KERNEL_REACH] * (back ? p[KERNEL_BACK] : 1);
    double step = (back ? 5 : 2) * width / rate; /* of one row and one key */
    double all = b * h * s * (s + p[KERNEL_START]) / 2 * step;
    double rows = s < 128 ? s : 128;
    double longest = rows * (s + p[KERNEL_START]) * step * sheet->processors;

    form->tile[0] = form->tile[1] = 128;
    form->split = 1;
    form->waves = (unsigned)fmin(ceil(b * h * ceil(s / 128) / sheet->processors), 4e9);
    form->compute = hypot(all, longest * p[KERNEL_LONGEST]);
    form->move = b * s * width * (h + kv) * sheet->element * (back ? 2.5 : 1) /
                 (sheet->bandwidth * p[KERNEL_MOVE]);
    form->cast = 0;
    form->seconds = longer(form->compute, form->move) + p[KERNEL_LAUNCH];
    form->x[0] = log(b);
    form->x[1] = log(s);
    form->x[2] = log(h);
    form->x[3] = log(h / kv);
    form->x[4] = log(all / longest);
    form->x[5] = log(form->seconds);
    form->x[6] = log(width);
    form->x[7] = shape->size[4] != shape->size[5] ? 1 : 0;
    form->x[8] = back ? 1 : 0;
    for (int i = 9; i < KERNEL_NCOORDINATES; i++)
        form->x[i] = 0;
}

void
kernel_form(const double p[KERNEL_NPARAMETERS], const struct kernel_sheet *sheet,
            const struct kernel_shape *shape, struct kernel_form *form)
{
    if (shape->op == KERNEL_GEMM)
        form_product(p, sheet, shape, form);
    else
        form_attention(p, sheet, shape, form);
}
