/* What the fuzz targets share: bytes become a file that the library can open. */
#ifndef RAMPIPE_TEST_FUZZ_H
#define RAMPIPE_TEST_FUZZ_H

#include "rampipe/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file of these bytes; its path is put into `path`. The caller closes it. */
static inline int
fuzz_file(const uint8_t *bytes, size_t size, char path[64])
{
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

/* A law that does not hold is a crash. */
static inline void
require(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif
