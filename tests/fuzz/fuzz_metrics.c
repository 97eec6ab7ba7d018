/*
 * Any stream as results: refused with a message, or reduced to figures that agree: groups
 * add up to the total, quantiles lie in order between least and most, and intervals add
 * up.
 */
#include "fuzz.h"

#include "rampipe/metrics.h"

#include <math.h>

/* Of an interpolation. */
#define ROUNDING 1e-12

static void
require_of(bool ok, const char *what, const char *name)
{
    if (ok)
        return;
    fprintf(stderr, "broken: %s: %s\n", what, name);
    abort();
}

/* Of one group; the sum of its cases goes into *cases. */
static void
check_figure(const struct metrics_figure *f, double *cases)
{
    static const char *const order[] = {"min", "p5",  "p25", "p50",
                                        "p75", "p95", "p99", "max"};
    static const char *const counts[] = {"jobs", "runs", "queries", "stages"};
    double last = -INFINITY;
    require_of(f->n <= METRICS_STATISTICS, "few statistics", f->name);
    for (size_t o = 0; f->n > 1 && o < sizeof order / sizeof *order; o++)
        for (size_t i = 0; i < f->n; i++)
            if (strcmp(f->statistic[i], order[o]) == 0 && !isnan(f->value[i])) {
                require_of(f->value[i] >= last * (1 - ROUNDING), "quantiles are in order",
                           f->name);
                last = f->value[i];
            }
    for (size_t i = 0; f->n == 1 && i < sizeof counts / sizeof *counts; i++)
        if (strcmp(f->name, counts[i]) == 0 && !isnan(f->value[0]))
            *cases += f->value[0];
}

/* All values are in the bins, which lie beside each other. */
static void
check_bins(const struct metrics_bin *bin, size_t n, uint64_t values)
{
    for (size_t i = 0; i < n; i++) {
        require_of(bin[i].lower <= bin[i].upper, "edges are in order", "");
        require_of(i == 0 || bin[i].lower >= bin[i - 1].upper, "bins do not overlap", "");
        require_of(bin[i].n <= values, "a value is in one bin", "");
        values -= bin[i].n;
    }
    require_of(values == 0, "each value is in a bin", "");
}

static void
check_histogram(struct metrics *metrics, size_t group, size_t bins)
{
    struct metrics_histogram histogram;
    struct rec_error err;
    if (!metrics_histogram(metrics, group, bins, &histogram, &err))
        require_of(false, "a histogram", err.text);
    require_of(histogram.nbins <= bins + 1, "so many bins", histogram.name);
    check_bins(histogram.bin, histogram.nbins, histogram.n);
    free(histogram.bin);
}

static void
check(struct metrics *metrics)
{
    double total = 0, groups = 0;
    struct rec_error err;
    if (!metrics_end(metrics, &err))
        require_of(false, "it ends", err.text);
    for (size_t g = 0; g < metrics_ngroups(metrics); g++) {
        struct metrics_figure figure;
        struct metrics_value value;
        for (size_t i = 0; metrics_figure(metrics, g, i, &figure); i++)
            check_figure(&figure, g ? &groups : &total);
        for (size_t i = 0; metrics_column(metrics, g, i, &value); i++)
            require_of(value.name[0] != '\0', "a column has a name", "");
        require_of(g == 0 || g == 1 ||
                       strcmp(metrics_group_name(metrics, g),
                              metrics_group_name(metrics, g - 1)) != 0,
                   "groups differ", metrics_group_name(metrics, g));
    }
    for (size_t g = 0; !metrics_has_runs(metrics) && g < metrics_ngroups(metrics); g++)
        check_histogram(metrics, g, g % 9 + 1);
    if (!metrics_has_runs(metrics)) {
        require_of(total == (double)metrics_cases(metrics), "all cases are in the total",
                   "");
        /* queries and stages may be in none */
        require_of(metrics_ngroups(metrics) == 1 ||
                       (metrics_has_objective(metrics_family_of(metrics))
                            ? groups <= total
                            : groups == total),
                   "groups add up", "");
    }
    for (size_t i = 0, n = metrics_nintervals(metrics); i < n && i < 1000; i++) {
        struct metrics_value value;
        for (size_t k = 0; metrics_interval(metrics, i, k, &value); k++)
            require_of(value.name[0] != '\0', "a column has a name", "");
    }
}

static void
reduce(const struct metrics_family *family, const char *path, const char *by,
       double seconds, bool runs)
{
    struct rec_error err = {.code = REC_OK, .text = ""};
    struct metrics *metrics = metrics_new(family, by, seconds, runs, &err);
    if (metrics)
        metrics_set_objective(metrics, 1);
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &err);
    struct rec rec;
    int status = metrics && reader ? 1 : -1;

    while (status > 0 && (status = rec_next(reader, &rec, &err)) > 0)
        if (metrics_take(metrics, reader, &rec, &err) < 0)
            status = -1;
    if (status == 0)
        check(metrics);
    else if (err.text[0] == '\0' || err.code == REC_OK || err.code == REC_BUG)
        require_of(false, "a message", err.text);
    metrics_free(metrics);
    rec_reader_close(reader);
}

/* Each eight bytes a value. */
static void
distribute(const uint8_t *bytes, size_t size)
{
    static const double at[] = {0, 1e-9, 0.05, 0.25, 0.5, 0.75, 0.99, 1};
    struct metrics_dist dist = {0};
    struct metrics_bin *bin;
    struct rec_error err;
    double last = 0;
    size_t n;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        double value;
        memcpy(&value, bytes + i, 8);
        if (value > 1e-100 && value < 1e100 && !metrics_dist_add(&dist, value, &err))
            abort();
    }
    for (size_t i = 0; dist.n > 0 && i < sizeof at / sizeof *at; i++) {
        double value = metrics_dist_quantile(&dist, at[i]);
        require_of(value >= fmax(last, dist.least) * (1 - ROUNDING) &&
                       value <= dist.most * (1 + ROUNDING),
                   "quantiles are in order", "");
        last = value;
    }
    if (!metrics_dist_bins(&dist, size % 7 + 1, &bin, &n, &err))
        abort();
    check_bins(bin, n, dist.n);
    free(bin);
    require_of(dist.n < 2 || metrics_dist_deviation(&dist) >= 0, "a deviation", "");
    metrics_dist_free(&dist);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const by[] = {NULL,    "model",  "graph",    "cause",
                                     "stage", "degree", "deadline", "servers"};
    const struct metrics_family *family;
    char path[64];
    int fd = fuzz_file(bytes, size, path);
    distribute(bytes, size);
    for (size_t i = 0; (family = metrics_family(i)); i++) {
        reduce(family, path, by[size % 8], 0, size % 3 == 0);
        if (size % 16 == 0) /* many intervals take long */
            reduce(family, path, NULL, 1e3, false);
    }
    close(fd);
    return 0;
}
