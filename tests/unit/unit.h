/* What the unit programs share: cmocka, random numbers, files in the scratch directory
 * (tests/run starts each program in its own). */
#ifndef RAMPIPE_TEST_UNIT_H
#define RAMPIPE_TEST_UNIT_H

#include "rampipe/record.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* splitmix64: the same numbers in every run. */
static uint64_t random_state = 1;

__attribute__((unused)) static uint64_t
random64(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

__attribute__((unused)) static uint64_t
random_below(uint64_t n)
{
    return random64() % n;
}

/* Of so many random settings make check tries a quarter; with EVERY=1, as in CI, all. */
__attribute__((unused)) static int
part_of(int all)
{
    const char *every = getenv("EVERY");
    return every && *every ? all : all / 4;
}

/* cmocka's assert_float_equal is of floats. */
#define assert_near(a, b, error) assert_true(fabs((a) - (b)) <= (error))

__attribute__((unused)) static void
write_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* The whole of a file, with a NUL behind it; free() it. */
__attribute__((unused)) static char *
read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    size_t room = 0, used = 0, n;
    assert_non_null(file);
    do {
        bytes = realloc(bytes, (room = room * 2 + 4096) + 1);
        assert_non_null(bytes);
        used += n = fread(bytes + used, 1, room - used, file);
    } while (n > 0);
    fclose(file);
    bytes[used] = '\0';
    if (len)
        *len = used;
    return bytes;
}

#endif
