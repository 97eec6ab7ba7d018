/* Any text as a distribution: refused with a message, or its values are numbers >= 0, the
 * same for the same seed. A line "@" behind it opens the file that it calls @. */
#include "fuzz.h"

#include "rampipe/random.h"

enum { DRAWS = 50 };

static void
require_message(const struct rec_error *err)
{
    if (err->text[0] == '\0' || err->code == REC_OK || err->code == REC_BUG) {
        fprintf(stderr, "message: %s\n", err->text);
        abort();
    }
}

static bool
draw(const char *text, uint32_t seed, double value[DRAWS])
{
    struct rec_error err = {.code = REC_OK, .text = ""};
    struct rng_dist *dist = rng_dist_new(text, seed, 0, &err);
    if (!dist)
        require_message(&err);
    for (int i = 0; dist && i < DRAWS; i++) {
        value[i] = rng_dist_draw(dist);
        if (!(value[i] >= 0)) {
            fprintf(stderr, "%s draws %g\n", text, value[i]);
            abort();
        }
    }
    rng_dist_free(dist);
    return dist != NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const uint8_t *mark = memmem(bytes, size, "\n@\n", 3);
    size_t spec = mark ? (size_t)(mark - bytes) : size;
    double value[DRAWS], again[DRAWS];
    char text[1000], path[64] = "", named[1100];
    const char *at;
    int fd = -1;

    if (spec >= sizeof text || memchr(bytes, '/', spec) ||
        (spec > 5 && memcmp(bytes, "file:", 5) == 0 && bytes[5] != '@'))
        return 0; /* no file but ours */
    memcpy(text, bytes, spec);
    text[spec] = '\0';
    if (mark)
        fd = fuzz_file(mark + 3, size - spec - 3, path);
    at = strchr(text, '@');
    if (at)
        snprintf(named, sizeof named, "%.*s%s%s", (int)(at - text), text, path, at + 1);
    else
        snprintf(named, sizeof named, "%s", text);
    if (draw(named, (uint32_t)size, value) &&
        (!draw(named, (uint32_t)size, again) || memcmp(value, again, sizeof value) != 0))
        abort();
    if (fd >= 0)
        close(fd);
    return 0;
}
