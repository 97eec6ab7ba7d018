/*
 * A stdio stream that writes to memory and reports when memory runs out. glibc's
 * open_memstream() loses bytes then without an error.
 */
#include "rampipe/record.h"

#include <stdlib.h>

static ssize_t
append(void *cookie, const char *bytes, size_t len)
{
    struct rec_text *text = cookie;
    if (text->failed ||
        !rec_grow(&text->bytes, &text->room, text->used + len + 1, 1, NULL)) {
        text->failed = true;
        return 0; /* fopencookie(3): a write function returns 0 for an error, not -1 */
    }
    memcpy(text->bytes + text->used, bytes, len);
    text->used += len;
    return (ssize_t)len;
}

bool
rec_text_open(struct rec_text *text, struct rec_error *err)
{
    *text = (struct rec_text){0};
    text->out = fopencookie(text, "w", (cookie_io_functions_t){.write = append});
    return text->out || rec_fail_memory(err);
}

char *
rec_text_close(struct rec_text *text, struct rec_error *err)
{
    bool whole = fclose(text->out) == 0 && !text->failed;
    whole = whole && rec_grow(&text->bytes, &text->room, text->used + 1, 1, NULL);
    if (!whole) {
        free(text->bytes);
        rec_fail_memory(err);
        return NULL;
    }
    text->bytes[text->used] = '\0';
    return text->bytes;
}
