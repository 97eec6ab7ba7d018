/*
 * Writes JSON with yajl's generator, which passes each piece to the writer at once. yajl
 * escapes texts, and refuses pieces that do not fit together.
 */
#include "rampipe/json.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <yajl/yajl_gen.h>

struct json {
    yajl_gen gen;
    struct rec_writer *writer; /* borrowed */
    int lines;                 /* the depth up to which members get a line each */
    int depth;                 /* open maps and lists */
    bool html;
    bool opening; /* yajl is opening a map or list that stands on a single line */
    char *text;   /* buffer for texts that are repaired */
    size_t room;
    struct rec_error err; /* the first error; code REC_OK: none */
    bool starved;         /* memory ran out inside yajl */
    max_align_t spare[8]; /* what yajl got instead */
};

/* yajl_gen_alloc() makes two allocations, and uses the second, small one without a check.
 * If that fails, it gets `spare`, and json_new() sees that `starved` is set. */
static void *
get_memory(void *context, size_t size)
{
    struct json *json = context;
    void *memory = malloc(size);
    if (memory || size > sizeof json->spare)
        return memory;
    json->starved = true;
    return json->spare;
}

static void *
get_more(void *context, void *memory, size_t size)
{
    (void)context;
    return realloc(memory, size);
}

static void
give_back(void *context, void *memory)
{
    if (memory != ((struct json *)context)->spare)
        free(memory);
}

/* yajl's callback for output. */
static void
put(void *context, const char *bytes, size_t len)
{
    struct json *json = context;
    const char *next = bytes, *end = bytes + len, *less;
    /* A '<' can only be part of a text, so it may be escaped anywhere. */
    while (json->html && (less = memchr(next, '<', (size_t)(end - next)))) {
        rec_put_bytes(json->writer, next, (size_t)(less - next));
        rec_put_bytes(json->writer, "\\u003c", 6);
        next = less + 1;
    }
    rec_put_bytes(json->writer, next, (size_t)(end - next));
    /* Line breaks are switched off just behind the opening bracket: the break before it
     * belongs to the map or list around, the one behind it would be inside. */
    if (json->opening && (*bytes == '{' || *bytes == '['))
        yajl_gen_config(json->gen, yajl_gen_beautify, 0);
}

struct json *
json_new(struct rec_writer *writer, int lines, struct rec_error *err)
{
    struct json *json = calloc(1, sizeof *json);
    yajl_alloc_funcs memory = {get_memory, get_more, give_back, json};
    if (json)
        json->gen = yajl_gen_alloc(&memory);
    if (!json || !json->gen || json->starved) {
        if (json && json->gen)
            yajl_gen_free(json->gen);
        free(json);
        rec_fail_memory(err);
        return NULL;
    }
    json->writer = writer;
    json->lines = lines;
    yajl_gen_config(json->gen, yajl_gen_print_callback, put, json);
    yajl_gen_config(json->gen, yajl_gen_beautify, 1);
    yajl_gen_config(json->gen, yajl_gen_indent_string, "  ");
    return json;
}

void
json_in_html(struct json *json)
{
    json->html = true;
}

bool
json_close(struct json *json, struct rec_error *err)
{
    struct rec_error found = json->err;
    if (!found.code && json->depth != 0)
        rec_fail(&found, REC_BUG, "JSON: %d maps or lists are not closed", json->depth);
    yajl_gen_free(json->gen);
    free(json->text);
    free(json);
    if (found.code)
        *err = found;
    return !found.code;
}

static void
check(struct json *json, yajl_gen_status status)
{
    if (status != yajl_gen_status_ok && !json->err.code)
        rec_fail(&json->err, REC_BUG, "JSON: a piece that cannot stand here (%d)",
                 (int)status);
}

/* Opens a map or list. put() switches line breaks off if it is deeper than `lines`. */
static void
enter(struct json *json, yajl_gen_status (*generate)(yajl_gen))
{
    json->opening = ++json->depth > json->lines;
    check(json, generate(json->gen));
    json->opening = false;
}

/* Closes a map or list, and restores the line breaks of the one around it. */
static void
leave(struct json *json, yajl_gen_status (*generate)(yajl_gen))
{
    check(json, generate(json->gen));
    yajl_gen_config(json->gen, yajl_gen_beautify, --json->depth <= json->lines);
}

void
json_open_map(struct json *json)
{
    enter(json, yajl_gen_map_open);
}

void
json_close_map(struct json *json)
{
    leave(json, yajl_gen_map_close);
}

void
json_open_list(struct json *json)
{
    enter(json, yajl_gen_array_open);
}

void
json_close_list(struct json *json)
{
    leave(json, yajl_gen_array_close);
}

/* ---- text and numbers ---------------------------------------------------- */

/* The length in bytes of the character at the start of a text; 0: it is not UTF-8.
 * Control characters are valid here, because yajl escapes them. */
static size_t
character(struct rec_str text)
{
    if ((unsigned char)*text.ptr < 0x80)
        return 1;
    for (size_t n = 2; n <= 4 && n <= text.len; n++)
        if (rec_is_text((struct rec_str){text.ptr, n}))
            return n;
    return 0;
}

/* Replaces *text by a copy in which U+FFFD stands for each byte that is not UTF-8. */
static bool
repair(struct json *json, struct rec_str *text)
{
    static const char unknown[] = "\xef\xbf\xbd";
    size_t used = 0, n;
    if (!rec_grow(&json->text, &json->room, 3 * text->len, 1, &json->err))
        return false;
    for (; text->len > 0; text->ptr += n, text->len -= n) {
        size_t size = character(*text);
        n = size ? size : 1;
        memcpy(json->text + used, size ? text->ptr : unknown, size ? size : 3);
        used += size ? size : 3;
    }
    *text = (struct rec_str){json->text, used};
    return true;
}

void
json_str(struct json *json, struct rec_str text)
{
    if (!rec_is_text(text) && !repair(json, &text))
        return;
    check(json, yajl_gen_string(json->gen, (const unsigned char *)text.ptr, text.len));
}

void
json_text(struct json *json, const char *text)
{
    json_str(json, rec_str(text));
}

void
json_num(struct json *json, double value)
{
    char text[REC_NUM_MAX];
    if (!isfinite(value))
        check(json, yajl_gen_null(json->gen));
    else
        check(json, yajl_gen_number(json->gen, text, rec_format_num(text, value)));
}
