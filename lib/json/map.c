/*
 * Reads a small JSON document with yajl's parser. The whole document is read into memory
 * first, so that yajl's demand for memory has a known bound, and errors can name a line.
 * yajl calls put_*(), enter_*() and leave() in the order of the text; they keep the two
 * outermost levels.
 */
#include "rampipe/json.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>

/* Bounds of a document: nesting, bytes, items that are kept. */
enum { DEPTH_MAX = 64, SIZE_MAX_READ = 1 << 24, ITEMS_MAX = 1 << 20 };

/* yajl does not check whether an allocation failed, so it gets a pool that cannot run
 * out. The pool is as large as yajl's need at most: its buffer for decoded text doubles
 * until the text fits, and its stack of states grows by steps. Nothing is returned to the
 * pool. */
struct pool {
    char *bytes;
    size_t used, size;
};

struct parse {
    struct json_map *map;
    struct rec_reader *reader; /* borrowed */
    yajl_handle handle;
    char *text; /* the whole document */
    size_t len, room;
    struct pool pool;
    const char *key; /* the last key of the outermost map */
    int depth;       /* open maps and lists */
    struct rec_error *err;
    bool failed; /* a callback has filled *err */
};

/* Bytes before each piece of the pool, which hold its size for get_more(). */
enum { HEAD = sizeof(max_align_t) };

static void *
get_memory(void *context, size_t size)
{
    struct pool *pool = context;
    char *memory = pool->bytes + pool->used;
    size_t whole = HEAD + (size + HEAD - 1) / HEAD * HEAD;
    if (whole > pool->size - pool->used)
        return NULL;
    pool->used += whole;
    memcpy(memory, &size, sizeof size);
    return memory + HEAD;
}

static void *
get_more(void *context, void *memory, size_t size)
{
    void *more = get_memory(context, size);
    size_t had = 0;
    if (memory)
        memcpy(&had, (char *)memory - HEAD, sizeof had);
    if (more && memory)
        memcpy(more, memory, had < size ? had : size);
    return more;
}

static void
give_back(void *context, void *memory)
{
    (void)context;
    (void)memory;
}

/* ---- what yajl found ----------------------------------------------------- */

/* The line that yajl has come to. Counted anew each time, so only members and errors ask
 * for it. */
static uint64_t
line_of(const struct parse *p)
{
    size_t at = yajl_get_bytes_consumed(p->handle);
    uint64_t line = 1;
    for (size_t i = 0; i < at && i < p->len; i++)
        line += p->text[i] == '\n';
    return line > 1 && at > 0 && p->text[at - 1] == '\n' ? line - 1 : line;
}

/* Fills *err. Returns 0, with which a callback stops yajl. */
static int
fail(struct parse *p, const char *what)
{
    rec_fail_at(p->err, rec_reader_file(p->reader), line_of(p), "%s", what);
    p->failed = true;
    return 0;
}

/* Makes room for the next item of the last member. NULL: *err. */
static struct json_member *
add_item(struct parse *p)
{
    struct json_map *map = p->map;
    if (map->nitems == ITEMS_MAX) {
        fail(p, "its lists and maps hold more than 1048576 values");
        return NULL;
    }
    if (!rec_grow(&map->item, &map->item_room, map->nitems + 1, sizeof *map->item,
                  p->err))
        return NULL;
    map->member[map->nmembers - 1].nitems++;
    return &map->item[map->nitems++];
}

/* Takes a value, or the beginning of a list or map, at the current depth. */
static int
put(struct parse *p, enum json_kind kind, bool truth, struct rec_str text)
{
    struct json_member *member;
    bool inside = p->depth == 2;
    if (p->depth == 0 && kind != JSON_MAP)
        return fail(p, "the outermost value must be a map, { ... }");
    if (p->depth != 1 && !inside)
        return 1;
    member = inside ? add_item(p) : &p->map->member[p->map->nmembers - 1];
    if (!member) {
        p->failed = true;
        return 0;
    }
    /* An item gets the line of its member: line_of() for each value of a long list would
     * take time that grows with the square of its length. */
    *member = (struct json_member){
        .key = inside ? "" : p->key,
        .kind = kind,
        .truth = truth,
        .line = inside ? p->map->member[p->map->nmembers - 1].line : line_of(p),
        .first = p->map->nitems};
    if (memchr(text.ptr, '\0', text.len))
        return fail(p, "a text must have no NUL in it");
    member->text = rec_arena_copy(&p->map->arena, text, p->err);
    p->failed = !member->text;
    return member->text != NULL;
}

static int
put_null(void *context)
{
    return put(context, JSON_NULL, false, rec_str(""));
}

static int
put_bool(void *context, int truth)
{
    return put(context, JSON_BOOL, truth, rec_str(""));
}

static int
put_number(void *context, const char *text, size_t len)
{
    return put(context, JSON_NUMBER, false, (struct rec_str){text, len});
}

static int
put_text(void *context, const unsigned char *text, size_t len)
{
    return put(context, JSON_TEXT, false, (struct rec_str){(const char *)text, len});
}

static int
put_key(void *context, const unsigned char *text, size_t len)
{
    struct parse *p = context;
    struct rec_str key = {(const char *)text, len};
    struct json_map *map = p->map;
    char what[120];

    if (p->depth != 1)
        return 1;
    if (rec_map_get(&map->index, key) != REC_NONE) {
        snprintf(what, sizeof what, "the key '%.*s' is there twice", REC_SAID(key));
        return fail(p, what);
    }
    if (!(p->key = rec_arena_copy(&map->arena, key, p->err)) ||
        !rec_map_add(&map->index, (struct rec_str){p->key, len}, (uint32_t)map->nmembers,
                     p->err) ||
        !rec_grow(&map->member, &map->room, map->nmembers + 1, sizeof *map->member,
                  p->err)) {
        p->failed = true;
        return 0;
    }
    map->nmembers++;
    return 1;
}

/* Takes the beginning of a map or list. The depth is bounded, because yajl's stack is in
 * the pool. */
static int
enter(struct parse *p, enum json_kind kind)
{
    if (!put(p, kind, false, rec_str("")))
        return 0;
    return ++p->depth <= DEPTH_MAX ? 1 : fail(p, "maps and lists are nested too deep");
}

static int
enter_map(void *context)
{
    return enter(context, JSON_MAP);
}

static int
enter_list(void *context)
{
    return enter(context, JSON_LIST);
}

static int
leave(void *context)
{
    struct parse *p = context;
    p->depth--;
    return 1;
}

/* ---- the document -------------------------------------------------------- */

/* Reads all lines into p->text. */
static bool
read_text(struct parse *p)
{
    struct rec_str line;
    int status;
    while ((status = rec_next_line(p->reader, &line, p->err)) > 0) {
        if (p->len + line.len + 1 > SIZE_MAX_READ)
            return rec_reader_fail(p->reader, p->err, "it is longer than 16 MB");
        if (!rec_grow(&p->text, &p->room, p->len + line.len + 1, 1, p->err))
            return false;
        if (line.len > 0)
            memcpy(p->text + p->len, line.ptr, line.len);
        p->text[p->len + line.len] = '\n';
        p->len += line.len + 1;
    }
    return status == 0;
}

/* Fills *err after yajl has failed: with its message, of which only the first line says
 * what is wrong, unless a callback has failed. Returns false. */
static bool
explain(struct parse *p)
{
    unsigned char *text;
    if (p->failed)
        return false;
    text = yajl_get_error(p->handle, 0, (const unsigned char *)p->text, p->len);
    return rec_fail_at(
        p->err, rec_reader_file(p->reader), line_of(p), "this is no JSON: %.*s",
        text ? (int)strcspn((char *)text, "\n") : 0, text ? (char *)text : "");
}

static bool
parse(struct parse *p)
{
    static const yajl_callbacks callbacks = {put_null,   put_bool,   NULL,      NULL,
                                             put_number, put_text,   enter_map, put_key,
                                             leave,      enter_list, leave};
    yajl_alloc_funcs memory = {get_memory, get_more, give_back, &p->pool};
    const unsigned char *bytes = (const unsigned char *)p->text;

    /* The bound that struct pool explains. Pages that yajl never touches cost nothing. */
    p->pool.size = 16 * p->len + (1 << 20);
    if (!(p->pool.bytes = malloc(p->pool.size)))
        return rec_fail_memory(p->err);
    p->handle = yajl_alloc(&callbacks, &memory, p);
    if (!p->handle)
        return rec_fail(p->err, REC_BUG, "JSON: yajl has too little memory");
    if (yajl_parse(p->handle, bytes, p->len) != yajl_status_ok ||
        yajl_complete_parse(p->handle) != yajl_status_ok)
        return explain(p);
    return true;
}

bool
json_map_read(struct json_map *map, struct rec_reader *reader, struct rec_error *err)
{
    struct parse p = {.map = map, .reader = reader, .err = err};
    bool ok = read_text(&p) && parse(&p);
    if (p.handle)
        yajl_free(p.handle);
    free(p.pool.bytes);
    free(p.text);
    return ok;
}

const struct json_member *
json_map_find(const struct json_map *map, const char *key)
{
    uint32_t i = rec_map_get(&map->index, rec_str(key));
    return i == REC_NONE ? NULL : &map->member[i];
}

void
json_map_free(struct json_map *map)
{
    free(map->member);
    free(map->item);
    rec_map_free(&map->index);
    rec_arena_free(&map->arena);
    *map = (struct json_map){0};
}
