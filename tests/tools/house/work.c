/* Counts work, to be preloaded: characters that memcmp(), memmove(), memset(), strcmp()
 * and strverscmp() look at, and calls of snprintf(), fmin() and fmax(). What is in
 * $WORK_COUNT at the end is the sum. Unlike time it is nearly the same each run (tables
 * are seeded anew); what a search, a sort or a copy costs is in it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long long work;

int
memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *p = a, *q = b;
    for (size_t i = 0; i < n; i++) {
        work++;
        if (p[i] != q[i])
            return p[i] - q[i];
    }
    return 0;
}

int
strcmp(const char *a, const char *b)
{
    for (;; a++, b++) {
        work++;
        if (*a != *b || !*a)
            return (unsigned char)*a - (unsigned char)*b;
    }
}

void *
memmove(void *to, const void *from, size_t n)
{
    char *p = to;
    const char *q = from;
    work += n;
    if (p < q)
        for (size_t i = 0; i < n; i++)
            p[i] = q[i];
    else
        while (n-- > 0)
            p[n] = q[n];
    return to;
}

void *
memset(void *to, int byte, size_t n)
{
    work += n;
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = (char)byte;
    return to;
}

int
strverscmp(const char *a, const char *b)
{
    static int (*real)(const char *, const char *);
    if (!real)
        *(void **)(&real) = dlsym(RTLD_NEXT, "strverscmp");
    work += strlen(a);
    return real(a, b);
}

int
snprintf(char *to, size_t room, const char *format, ...)
{
    va_list args;
    int n;
    work++;
    va_start(args, format);
    n = vsnprintf(to, room, format, args);
    va_end(args);
    return n;
}

double
fmin(double a, double b)
{
    work++;
    return a < b || b != b ? a : b;
}

double
fmax(double a, double b)
{
    work++;
    return a > b || b != b ? a : b;
}

__attribute__((destructor)) static void
tell(void)
{
    const char *path = getenv("WORK_COUNT");
    FILE *out = path ? fopen(path, "w") : NULL;
    if (out) {
        fprintf(out, "%llu\n", work);
        fclose(out);
    }
}
