/* Errors: the base of all other files. */
#include "rampipe/record.h"

#include <stdio.h>

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
