/* Hashing of texts: the mixing step of wyhash (Wang Yi, 2019), with a secret that is
 * drawn for each process. */
#include "private.h"

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

/* At most 7 bytes as a number, without a loop: of 4 and more the first and the last four,
 * which may overlap. Together with n no two texts give the same. */
static uint64_t
load(const unsigned char *p, size_t n)
{
    uint32_t first, last;
    if (n == 0)
        return 0;
    if (n < 4)
        return p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
    memcpy(&first, p, sizeof first);
    memcpy(&last, p + n - 4, sizeof last);
    return first | (uint64_t)last << 32;
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

/* `salt` is what the hash depends on besides the bytes. It is added to what the bytes and
 * the secret have become. Added to the bytes themselves, it could be undone by choosing
 * them. */
static inline uint64_t
hash_bytes(const unsigned char *p, size_t left, uint64_t salt)
{
    uint64_t hash = seed[0], other = seed[1];

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
    hash = mix(hash ^ load(p, left), 0xa0761d6478bd642fu);
    return mix(hash ^ other ^ salt, 0xe7037ed1a0b428dbu);
}

uint64_t
rec_hash(struct rec_str s)
{
    return hash_bytes((const unsigned char *)s.ptr, s.len, s.len);
}

uint64_t
rec_hash_family(struct rec_str s, unsigned *member)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    unsigned before, last;
    if (s.len < 2) {
        *member = 0;
        return rec_hash(s);
    }
    before = p[s.len - 2];
    last = p[s.len - 1];
    *member = (before & 15) << 4 | (last & 15);
    return hash_bytes(p, s.len - 2, s.len ^ (uint64_t)((before & 240) | last >> 4) << 56);
}
