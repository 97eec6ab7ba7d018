/* Kernels: the form in closed form on a device of one or two processors, what measured
 * kernels change, and what is refused. */
#include "unit.h"

#include "rampipe/kernel.h"

#include <math.h>

/* A law of bf16 or fp8 on device d whose constants are 1, but for the start of a tile,
 * 140 steps, the launch, 1 us, and the cast, 2 us. */
#define LAW(dtype, op, constants)                                   \
    "law\tl\td\t" op "\t" dtype "\tinference\tconstants=" constants \
    "\tlengths=2,2,2,2,2,2,2,2,2,2,2,2,2\tspread=0.1,0.1,0.3,0.03,0.03\tmeans=0,0,0,-\n"
#define PRODUCTS "1,140,1,1e-6,1,1,1,1,2e-6,1,1"

struct room {
    struct device_table devices;
    struct kernel_table table;
    struct kernel *kernel;
};

static struct rec_reader *
open_text(const char *text)
{
    struct rec_error err;
    struct rec_reader *reader = rec_reader_open_text("table", rec_str(text), &err);
    assert_non_null(reader);
    return reader;
}

static void
open_room(struct room *room, const char *devices, const char *laws,
          enum kernel_dtype dtype)
{
    struct rec_error err = {.text = ""};
    struct rec_reader *reader = open_text(devices);
    *room = (struct room){.kernel = NULL};
    room->table.devices = &room->devices;
    assert_true(device_table_read(&room->devices, reader, &err));
    rec_reader_close(reader);
    reader = open_text(laws);
    if (!kernel_table_read(&room->table, reader, &err))
        fail_msg("%s", err.text);
    rec_reader_close(reader);
    room->kernel = kernel_open(&room->table, "d", dtype, KERNEL_INFERENCE, &err);
    if (!room->kernel)
        fail_msg("%s", err.text);
}

static void
close_room(struct room *room)
{
    kernel_close(room->kernel);
    kernel_table_free(&room->table);
    device_table_free(&room->devices);
}

static double
seconds(struct room *room, struct kernel_shape shape, enum kernel_how how)
{
    struct kernel_answer answer;
    struct rec_error err = {.text = ""};
    if (!kernel_seconds(room->kernel, &shape, &answer, &err))
        fail_msg("%s", err.text);
    assert_int_equal(answer.how, how);
    return answer.seconds;
}

static struct kernel_shape
product(uint64_t m, uint64_t k, uint64_t n)
{
    return (struct kernel_shape){.op = KERNEL_GEMM, .size = {m, k, n}};
}

/* One processor of 1e12 FLOP/s, and memory that takes no time. A tile of 256 x 128 with
 * 1,024 steps takes 2 x 256 x 128 x (1024 + 140) / 1e12 = 76.283904 us; smaller tiles
 * fill it as well, and parts of K start more often. Two products of a kernel
 * are two waves. */
static void
test_one_tile(void **state)
{
    struct kernel_shape two = product(256, 1024, 128);
    struct room room;
    (void)state;
    open_room(&room, "device\td\t1e30\t1e9\tbf16=1e12\tprocessors=1\n",
              LAW("bf16", "gemm", PRODUCTS), KERNEL_BF16);
    assert_near(seconds(&room, product(256, 1024, 128), KERNEL_TILES), 77.283904e-6,
                1e-12);
    two.groups = 2;
    assert_near(seconds(&room, two, KERNEL_TILES), 153.567808e-6, 1e-12);
    /* 100 columns take as long as 128, and kernels of narrow loads: 1.4 x 1.5 (section
     * 4.1 of parallel.md) */
    assert_near(seconds(&room, product(256, 1024, 100), KERNEL_TILES),
                76.283904e-6 * 2.1 + 1e-6, 1e-12);
    close_room(&room);
}

/* Two processors, and one tile of 64 x 64: K in two parts of 512 steps takes 2 x 64 x 64
 * x (512 + 140) / 1e12 = 5.341184 us; one part has 1,164 steps, four have two waves of
 * 396. */
static void
test_parts(void **state)
{
    struct room room;
    (void)state;
    open_room(&room, "device\td\t1e30\t1e9\tbf16=2e12\tprocessors=2\n",
              LAW("bf16", "gemm", PRODUCTS), KERNEL_BF16);
    assert_near(seconds(&room, product(64, 1024, 64), KERNEL_TILES), 6.341184e-6, 1e-12);
    close_room(&room);
}

/* A device that computes in no time: bytes over 1e9 bytes/s. Both inputs and the result
 * are 2 (64 x 1024 + 1024 x 1024 + 64 x 1024) bytes. A weight gradient in fp32 reads and
 * writes 8 bytes of an element of the result instead of 2. In fp8 the inputs take half,
 * and the cast reads 2 bytes and writes 1 of 64 x 1,024 elements. */
static void
test_bytes(void **state)
{
    struct kernel_shape gradient = product(64, 1024, 1024), cast = gradient;
    struct room room;
    (void)state;
    open_room(&room, "device\td\t1e9\t1e9\tbf16=1e25\tfp8=1e25\tprocessors=1\n",
              LAW("bf16", "gemm", PRODUCTS), KERNEL_BF16);
    assert_near(seconds(&room, product(64, 1024, 1024), KERNEL_TILES), 2.360296e-3,
                1e-12);
    gradient.pass = KERNEL_WEIGHT;
    gradient.out = 4;
    assert_near(seconds(&room, gradient, KERNEL_TILES), 2.753512e-3, 1e-12);
    close_room(&room);

    open_room(&room, "device\td\t1e9\t1e9\tbf16=1e25\tfp8=1e25\tprocessors=1\n",
              LAW("fp8", "gemm", PRODUCTS), KERNEL_FP8);
    assert_near(seconds(&room, cast, KERNEL_TILES), 1.245184e-3 + 1e-6, 1e-12);
    cast.cast = true;
    assert_near(seconds(&room, cast, KERNEL_TILES), 1.245184e-3 + 3e-6 + 0.196608e-3,
                1e-12);
    close_room(&room);
}

/* Causal attention of one sequence of 1,023 tokens, heads 128 wide, one processor of 1e12
 * FLOP/s, start 1: rows x (rows + 1) / 2 pairs of 2 x 256 FLOPs in a head. The last block
 * has 128 rows of 1,024 pairs; it counts for a twentieth, at a right angle. */
static void
test_attention(void **state)
{
    struct kernel_shape shape = {.op = KERNEL_ATTENTION,
                                 .size = {4, 1023, 8, 8, 128, 128}};
    double all = 32 * 1023.0 * 1024 / 2 * 512e-12, last = 128 * 1024.0 * 512e-12 / 20;
    struct room room;
    (void)state;
    open_room(&room, "device\td\t1e30\t1e9\tbf16=1e12\tprocessors=1\n",
              LAW("bf16", "attention", "1,1,1,1e-6,1,1,1,1,2e-6,0.05,1"), KERNEL_BF16);
    assert_near(seconds(&room, shape, KERNEL_TILES), hypot(all, last) + 1e-6, 1e-12);
    close_room(&room);
}

/* A law has one measured product, which took twice as long as the form says: it is
 * answered as measured, and it makes similar products slower, other ones hardly. */
static void
test_measured(void **state)
{
    struct room room;
    double similar, other;
    (void)state;
    open_room(&room, "device\td\t1e30\t1e9\tbf16=1e12\tprocessors=1\n",
              LAW("bf16", "gemm", PRODUCTS) "timed\tl\t256,1024,128:154.567808\n",
              KERNEL_BF16);
    assert_near(seconds(&room, product(256, 1024, 128), KERNEL_MEASURED), 154.567808e-6,
                1e-12);
    similar = seconds(&room, product(256, 1088, 128), KERNEL_NEIGHBOURS) /
              (65536 * 1228e-12 + 1e-6);
    other = seconds(&room, product(25600, 65536, 25600), KERNEL_TILES) /
            (2 * 25600.0 * 25600 * 65676 * 1e-12 + 1e-6);
    assert_true(similar > 1.7 && similar < 2);
    assert_true(other >= 1 && other < 1.2);
    close_room(&room);
}

/* The shipped laws are found; a device of the same sheet has the same times. */
static void
test_shipped(void **state)
{
    struct device_table devices = {.ndevices = 0};
    struct kernel_table table = {.devices = &devices};
    struct kernel_shape shape = product(8192, 8192, 8192);
    struct rec_error err = {.text = ""};
    double time[2];
    (void)state;
    assert_true(device_table_read_shipped(&devices, &err));
    if (!kernel_table_read_shipped(&table, &err))
        fail_msg("%s", err.text);
    assert_true(table.nlaws >= 16);
    for (int i = 0; i < 2; i++) {
        struct kernel *kernel = kernel_open(&table, i ? "h100" : "h100-80", KERNEL_BF16,
                                            KERNEL_INFERENCE, &err);
        struct kernel_answer answer;
        assert_non_null(kernel);
        assert_true(kernel_seconds(kernel, &shape, &answer, &err));
        time[i] = answer.seconds;
        /* the best product that was ever measured reached 795 of 989 TFLOP/s */
        assert_true(answer.share > 0.5 && answer.share < 0.81);
        kernel_close(kernel);
    }
    assert_near(time[0], time[1], 1e-12);
    assert_null(kernel_open(&table, "a100-80", KERNEL_FP8, KERNEL_INFERENCE, &err));
    assert_int_equal(err.code, REC_NO);
    kernel_table_free(&table);
    device_table_free(&devices);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_tile), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_bytes),    cmocka_unit_test(test_attention),
        cmocka_unit_test(test_measured), cmocka_unit_test(test_shipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
