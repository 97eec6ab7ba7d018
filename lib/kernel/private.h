/* What the files of lib/kernel share: laws, the form that they correct, and estimates. */
#ifndef RAMPIPE_KERNEL_PRIVATE_H
#define RAMPIPE_KERNEL_PRIVATE_H

#include "rampipe/kernel.h"

/* The text of traces/kernels.rec (shipped.c). */
extern const char kernel_shipped[];
extern const uint64_t kernel_shipped_size;

/* Constants of a law, in the order of constants= of a law record. */
enum {
    KERNEL_REACH,  /* share of the peak in the main loop of the largest tile */
    KERNEL_START,  /* start and end of a tile, as steps of K (tokens) in the main loop */
    KERNEL_MOVE,   /* share of the memory bandwidth */
    KERNEL_LAUNCH, /* seconds */
    KERNEL_TILE_128,  /* of products: relative reach of tiles of 128 x 128 */
    KERNEL_TILE_64,   /* of smaller tiles, for each halving */
    KERNEL_ODD,       /* of rows that are no multiple of 16 */
    KERNEL_CAST_MOVE, /* share of the bandwidth that the cast of the input reaches */
    KERNEL_CAST,      /* seconds that it takes in addition */
    KERNEL_LONGEST,   /* of attention: weight of the longest block */
    KERNEL_BACK,      /* of attention: relative reach of the backward pass */
    KERNEL_NCONSTANTS
};
/* Coordinates in which kernels are similar, and lengths= of a law record. */
enum { KERNEL_NCOORDINATES = 13 };
/* spread= of a law record: the random field. */
enum {
    KERNEL_NEAR,  /* standard deviation of its part of short reach */
    KERNEL_FAR,   /* and of long reach, */
    KERNEL_RATE,  /* whose distances count by this factor */
    KERNEL_NOISE, /* standard deviation of a measurement */
    KERNEL_SHORT, /* and what a form of 10 us has in addition; inversely to its time */
    KERNEL_NSPREADS
};
enum { KERNEL_NPARAMETERS = KERNEL_NCONSTANTS + KERNEL_NCOORDINATES + KERNEL_NSPREADS };

/* What was measured, and where it lies once the law is ready. */
struct kernel_point {
    struct kernel_shape shape;
    double seconds;
    double x[KERNEL_NCOORDINATES];
    double y;     /* log(seconds / form), less the mean of its pass */
    double noise; /* variance */
};

struct kernel_law {
    const char *name; /* DEVICE/DTYPE/OP/SET */
    const struct device *device;
    enum kernel_op op;
    enum kernel_dtype dtype;
    enum kernel_set set;
    double p[KERNEL_NPARAMETERS];
    double mean[KERNEL_NPASSES]; /* of log(seconds / form); NAN: no such pass */
    struct kernel_point *point;
    size_t npoints, point_room;
    bool cast;  /* its times include the cast of the input */
    bool ready; /* x, y and noise of the points are known */
};

/* The precisions of device records, per type; DEVICE_NPRECISIONS: they do not have it. */
extern const enum device_precision kernel_precisions[];

/* A data sheet at one type. */
struct kernel_sheet {
    double processors, bandwidth, peak, element;
};
/* REC_NO: the device has no peak for the type, or its processors are not known. */
bool kernel_sheet_read(const struct device *device, enum kernel_dtype dtype,
                       struct kernel_sheet *sheet, struct rec_error *err) REC_MUST_CHECK;

/* The form: returns its seconds, and where the kernel lies. */
struct kernel_form {
    double seconds;
    double compute, move, cast; /* parts of it, seconds */
    unsigned tile[2], split, waves;
    double x[KERNEL_NCOORDINATES];
};
void kernel_form(const double p[KERNEL_NPARAMETERS], const struct kernel_sheet *sheet,
                 const struct kernel_shape *shape, struct kernel_form *form);

/* The covariance of the field in two places. */
double kernel_covariance(const double p[KERNEL_NPARAMETERS],
                         const double a[KERNEL_NCOORDINATES],
                         const double b[KERNEL_NCOORDINATES]);
/* Computes x, y and noise of the points, and the means of passes that are not known. */
bool kernel_law_ready(struct kernel_law *law, struct rec_error *err) REC_MUST_CHECK;
/* The estimate at a place; *similar: correlation with the most similar point. */
double kernel_estimate(const struct kernel_law *law, const double x[KERNEL_NCOORDINATES],
                       double *similar);

/* The law of a device, type and set, or NULL. */
struct kernel_law *kernel_law_find(const struct kernel_table *table,
                                   const struct device *device, enum kernel_op op,
                                   enum kernel_dtype dtype, enum kernel_set set);
/* How unlike two data sheets are; 0 if they are equal. */
double kernel_unlike(const struct device *a, const struct device *b);
/* The law that answers for a device: its own, or that of the device whose data sheet is
 * most like its own, of this set or the other; if none has the type, of bf16. NULL: there
 * is none. */
struct kernel_law *kernel_law_relative(const struct kernel_table *table,
                                       const struct device *device, enum kernel_op op,
                                       enum kernel_dtype dtype, enum kernel_set set);
/* A law with this pass and the forward pass, of the device that is most alike. */
struct kernel_law *kernel_law_pass(const struct kernel_table *table,
                                   const struct device *device, enum kernel_op op,
                                   enum kernel_pass pass);
/* A new law without points and means, with the constants that a search starts from.
 * NULL: *err. */
struct kernel_law *kernel_law_add(struct kernel_table *table, const struct device *device,
                                  enum kernel_op op, enum kernel_dtype dtype,
                                  enum kernel_set set, struct rec_error *err);
/* Adds what was measured; with `replace` in the place of an equal kernel. */
bool kernel_law_add_point(struct kernel_law *law, const struct kernel_shape *shape,
                          double seconds, bool replace,
                          struct rec_error *err) REC_MUST_CHECK;
/* The measured kernel of this shape, or NULL. */
struct kernel_point *kernel_law_point(const struct kernel_law *law,
                                      const struct kernel_shape *shape);
/* Where a search for parameters starts, and the range that it stays in. */
struct kernel_range {
    double start, low, high;
};
extern const struct kernel_range kernel_ranges[KERNEL_NOPS - 1][KERNEL_NPARAMETERS];
/* Rows of a table with a header line. */
bool kernel_rows_read(struct kernel_table *table, struct rec_reader *reader,
                      struct rec_error *err) REC_MUST_CHECK;
bool kernel_shape_same(const struct kernel_shape *a, const struct kernel_shape *b);
uint64_t kernel_shape_hash(const struct kernel_shape *shape);
/* Is it of the size that limits are set for: products of 1,024 rows and more, attention
 * of 0.1 TFLOP and more? */
bool kernel_is_large(const struct kernel_shape *shape);
const struct kernel_check *kernel_check_find(const struct kernel_table *table,
                                             const char *name);

/* The index of a word in a list that ends with NULL; -1: it is not there. */
int kernel_word(const char *const *words, struct rec_str word);

#endif
