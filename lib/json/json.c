/* JSON through yajl's generator, whose output goes to the writer as it is made. */
#include "rampipe/json.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <yajl/yajl_gen.h>

struct json {
    yajl_gen gen;
    struct rec_writer *writer; /* borrowed */
    int lines, depth;
    bool html;
    bool opening; /* a map or list that stands on one line */
    char *text;   /* repaired */
    size_t room;
    struct rec_error err; /* the first one */
    bool starved;
    max_align_t spare[8];
};

/* yajl does not look whether it got its second, small piece of memory. */
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

static void
put(void *context, const char *bytes, size_t len)
{
    struct json *json = context;
    const char *next = bytes, *end = bytes + len, *less;
    /* only texts have it */
    while (json->html && (less = memchr(next, '<', (size_t)(end - next)))) {
        rec_put_bytes(json->writer, next, (size_t)(less - next));
        rec_put_bytes(json->writer, "\\u003c", 6);
        next = less + 1;
    }
    rec_put_bytes(json->writer, next, (size_t)(end - next));
    /* What stands before a bracket is of the lines around it, what follows is inside. */
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

static void
enter(struct json *json, yajl_gen_status (*generate)(yajl_gen))
{
    json->opening = ++json->depth > json->lines;
    check(json, generate(json->gen));
    json->opening = false;
}

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

/* The bytes of the character at the start of a text; 0: it is none. yajl escapes control
 * characters. */
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

/* The text with U+FFFD for each byte that belongs to no character. */
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
