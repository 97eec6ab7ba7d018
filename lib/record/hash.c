/* Hashing of texts: the mixing step of wyhash (Wang Yi, 2019), with a secret that is
 * drawn for each process. */
#include "rampipe/record.h"

#include <sys/random.h>

/* Multiplies to 128 bits and folds the halves, so that every bit of a and b has an
 * influence on the result. */
static uint64_t
mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t
load8(const unsigned char *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static uint64_t
load(const unsigned char *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

/* The secret of this process: somebody who does not know it cannot construct ids that
 * collide, which would make hash tables take quadratic time. The constants stand in if
 * the kernel has no random bytes yet. */
static uint64_t seed[2] = {0x9e3779b97f4a7c15u, 0x2d358dccaa6c78a5u};

/* A constructor runs before main() and before any thread, so that no lock is needed. */
__attribute__((constructor)) static void
draw_seed(void)
{
    uint64_t drawn[2];
    if (getrandom(drawn, sizeof drawn, GRND_NONBLOCK) == (ssize_t)sizeof drawn)
        memcpy(seed, drawn, sizeof seed);
}

uint64_t
rec_hash(struct rec_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t left = s.len;
    uint64_t hash = seed[0] ^ s.len, other = seed[1];

    /* Two independent chains, which the processor computes in parallel. */
    for (; left >= 16; p += 16, left -= 16) {
        hash = mix(hash ^ load8(p), 0xa0761d6478bd642fu);
        other = mix(other ^ load8(p + 8), 0x8bb84b93962eacc9u);
    }
    if (left >= 8) {
        hash = mix(hash ^ load8(p), 0xa0761d6478bd642fu);
        p += 8;
        left -= 8;
    }
    return mix(hash ^ other ^ load(p, left), 0xe7037ed1a0b428dbu);
}
