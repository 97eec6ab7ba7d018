/* The largest batch that fits, against trying one batch after the other. */
#include "graphs.h"

#include "rampipe/device.h"

enum { OPS = 5 };

struct op {
    unsigned param, activation; /* bytes; of outputs: a sample */
};

/* What ops i and i + OPS, twins, or an op alone (i = OPS - 1), hold; fp16 and Adam: 16
 * bytes a parameter of 2, 2 of one that is not trained. */
static double
held(const struct op op[2 * OPS], double batch)
{
    double sum = 0;
    for (int i = 0; i < OPS - 1; i++)
        sum += fmax(8.0 * op[i].param + op[i].activation * batch,
                    8.0 * op[i + OPS].param + op[i + OPS].activation * batch);
    return sum + op[OPS - 1].param + op[OPS - 1].activation * batch;
}

/* The graph record says a batch of 3. */
static void
print_graph(const struct op op[2 * OPS], char text[4000])
{
    int n = sprintf(text, "graph g m batch=3 precision=fp16\n");
    for (int i = 0; i < 2 * OPS - 1; i++) {
        n += sprintf(text + n, "op g %d %s 1 1 param=%u activation=%u", i,
                     i < OPS ? "forward" : "backward", op[i].param, 3 * op[i].activation);
        if (i != OPS - 1)
            n += sprintf(text + n, " pair=%d", (i + OPS) % (2 * OPS));
        n += sprintf(text + n, "\n");
    }
}

/* The fields BATCH and MEMORY of the answer, 0 and 0 if none fits. */
static void
answer(const char *text, double memory, double *batch, double *need)
{
    struct device_fit fit = {.optimizer = &device_optimizers[0],
                             .precision = DEVICE_NPRECISIONS,
                             .memory = memory};
    char *copy = tabs(text), path[64], written[2000];
    struct rec_reader *reader = open_text(copy);
    int fd = memfd_create("out", 0), status = 0;
    struct rec_error err, late;
    struct rec_writer *writer;
    struct rec rec;
    const char *record;
    bool ok = true;
    ssize_t n;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    writer = rec_writer_open(path, NULL, &err);
    assert_non_null(writer);
    while (ok && (status = rec_next(reader, &rec, &err)) > 0)
        ok = device_fit_take(&fit, reader, &rec, writer, &err);
    ok = ok && status == 0 && device_fit_end(&fit, writer, &err);
    if (!ok)
        assert_int_equal(err.code, REC_NO);
    assert_int_equal(fit.graphs, ok);
    device_fit_free(&fit);
    assert_true(rec_writer_close(writer, true, &late));
    n = pread(fd, written, sizeof written - 1, 0);
    assert_true(n >= 0);
    written[n] = '\0';
    close(fd);
    close_text(reader);
    free(copy);
    *batch = *need = 0;
    record = strstr(written, "\nfit\tg\t");
    assert_true(ok == (record != NULL));
    if (record)
        assert_int_equal(sscanf(record, "\nfit\tg\t%lf\t%lf", batch, need), 2);
}

/* Twins may need more of different things, so that one is larger up to some batch and the
 * other from there on. */
static void
test_every_batch(void **state)
{
    uint64_t random = 1;
    int none = 0, some = 0;
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct op op[2 * OPS];
        double memory, batch, need, want = 0;
        char text[4000];
        for (int i = 0; i < 2 * OPS; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            op[i].param = (unsigned)(random >> 40) % 50;
            op[i].activation = 1 + (unsigned)(random >> 50) % 20;
        }
        memory = (double)(random >> 33 & 4095);
        while (held(op, want + 1) <= memory)
            want++;
        print_graph(op, text);
        answer(text, memory, &batch, &need);
        assert_true(batch == want);
        if (want > 0)
            assert_true(need == held(op, want));
        *(want > 0 ? &some : &none) += 1;
    }
    assert_true(none > 10 && some > 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_batch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
