/* Errors, growth of arrays, hashing of texts: the base of all other files. */
#include "rampipe/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* Fills *err. `file` NULL: the message has no place. */
static void
set_error(struct rec_error *err, enum rec_code code, const char *file, uint64_t line,
          const char *format, va_list args)
{
    size_t used = 0;
    if (!err)
        return;
    err->code = code;
    err->located = file != NULL;
    if (file) {
        int n = snprintf(err->text, sizeof err->text, "%s:%llu: ", file,
                         (unsigned long long)line);
        used = n < 0 ? 0 : (size_t)n;
        if (used >= sizeof err->text)
            used = sizeof err->text - 1;
    }
    vsnprintf(err->text + used, sizeof err->text - used, format, args);
    /* A message repeats parts of the input. Without control characters it stays one line,
     * and cannot send escape sequences to the user's terminal. */
    for (unsigned char *p = (unsigned char *)err->text; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            *p = '?';
}

bool
rec_fail(struct rec_error *err, enum rec_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(err, code, NULL, 0, format, args);
    va_end(args);
    return false;
}

bool
rec_fail_at(struct rec_error *err, const char *file, uint64_t line, const char *format,
            ...)
{
    va_list args;
    va_start(args, format);
    set_error(err, REC_DATA, file, line, format, args);
    va_end(args);
    return false;
}

bool
rec_limit(const struct rec_limit *limit, double estimate, const char *what,
          struct rec_error *err)
{
    if (limit->most <= 0 || estimate <= limit->most)
        return true;
    return rec_fail(err, REC_USAGE, "it would be about %.4g %s, more than %.15g%s%s%s",
                    estimate, what, limit->most, limit->option ? " (" : "",
                    limit->option ? limit->option : "",
                    limit->option ? " lets more through)" : "");
}

bool
rec_fail_memory(struct rec_error *err)
{
    return rec_fail(err, REC_IO, "out of memory");
}

/* Always keeps room for ", ...", so that a list that is cut says so. A last character '.'
 * means that it was cut: names that end in a dot are not expected. */
bool
rec_list_name(char *list, size_t room, const char *name)
{
    static const char more[] = ", ...";
    size_t used = strlen(list);
    bool full = used > 0 && list[used - 1] == '.';
    if (!full && used + strlen(name) + 2 + sizeof more <= room) {
        snprintf(list + used, room - used, "%s%s", used ? ", " : "", name);
        return true;
    }
    if (!full && used + sizeof more <= room)
        memcpy(list + used, more, sizeof more);
    return false;
}

bool
rec_grow(void *array, size_t *capacity, size_t need, size_t size, struct rec_error *err)
{
    void *old, *grown;
    size_t room = *capacity ? *capacity : 16;

    if (need <= *capacity)
        return true;
    while (room < need) {
        if (room > SIZE_MAX / 2)
            return rec_fail_memory(err);
        room *= 2;
    }
    if (room > SIZE_MAX / size)
        return rec_fail_memory(err);
    /* `array` points to a pointer of any type; memcpy() reads it without breaking C's
     * aliasing rules. */
    memcpy(&old, array, sizeof old);
    grown = realloc(old, room * size);
    if (!grown)
        return rec_fail_memory(err);
    memcpy(array, &grown, sizeof grown);
    *capacity = room;
    return true;
}

/* ---- hashing: the mixing step of wyhash (Wang Yi, 2019) ------------------------- */

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

bool
rec_str_split(struct rec_str *rest, char mark, struct rec_str *part)
{
    const char *end;
    if (!rest->ptr)
        return false;
    end = rest->len ? memchr(rest->ptr, mark, rest->len) : NULL;
    if (!end) {
        *part = *rest;
        rest->ptr = NULL;
        rest->len = 0;
        return true;
    }
    part->ptr = rest->ptr;
    part->len = (size_t)(end - rest->ptr);
    rest->len -= part->len + 1;
    rest->ptr = end + 1;
    return true;
}
