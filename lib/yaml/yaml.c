/*
 * Reads YAML with libyaml, and builds a tree from its events (scalar, start and end of a
 * list or map). libyaml gets its input a line at a time through a rec_reader, so that
 * gzip, wrong UTF-8 and errors are treated as in all other inputs.
 */
#include "rampipe/yaml.h"

#include <stdlib.h>
#include <yaml.h>

/* Every value is in a chain, so that yaml_source_free() needs no recursion, and frees the
 * values of a document that turned out to be wrong, too. */
struct kept {
    struct yaml_value value;
    struct kept *before;
};

struct yaml_source {
    struct rec_reader *reader; /* borrowed */
    yaml_parser_t parser;
    yaml_event_t event; /* the current event, */
    bool open;          /* if there is one */
    struct kept *kept;
    struct rec_arena arena; /* of texts and keys */
    char *line;             /* the current line with its LF: `used` bytes, of which */
    size_t used, taken;     /* libyaml has taken `taken` */
    size_t room;
    bool failed; /* give() has filled *err */
    struct rec_error *err;
};

/* ---- lines for libyaml --------------------------------------------------- */

/* Reads the next line into source->line. 1; 0: the end; -1: *err. */
static int
read_line(struct yaml_source *source)
{
    struct rec_str line;
    int status = rec_next_line(source->reader, &line, source->err);
    if (status <= 0)
        return status;
    if (!rec_is_text(line)) {
        rec_reader_fail(source->reader, source->err,
                        "a line must be UTF-8 without control characters");
        return -1;
    }
    if (!rec_grow(&source->line, &source->room, line.len + 1, 1, source->err))
        return -1;
    if (line.len > 0)
        memcpy(source->line, line.ptr, line.len);
    source->line[line.len] = '\n';
    source->used = line.len + 1;
    source->taken = 0;
    return 1;
}

/* libyaml's read handler: gives up to `size` bytes. 1, with *given == 0 at the end; 0: it
 * failed. */
static int
give(void *context, unsigned char *bytes, size_t size, size_t *given)
{
    struct yaml_source *source = context;
    size_t n;
    *given = 0;
    if (source->taken == source->used) {
        int status = read_line(source);
        source->failed = status < 0;
        if (status <= 0)
            return status == 0;
    }
    n = source->used - source->taken;
    n = n < size ? n : size;
    memcpy(bytes, source->line + source->taken, n);
    source->taken += n;
    *given = n;
    return 1;
}

/* ---- events -------------------------------------------------------------- */

static bool
fail_at(struct yaml_source *source, size_t line, const char *text)
{
    return rec_fail_at(source->err, rec_reader_file(source->reader), line + 1, "%s",
                       text);
}

/* Fills *err after libyaml has failed. Returns false. */
static bool
explain(struct yaml_source *source)
{
    const yaml_parser_t *parser = &source->parser;
    char text[300], context[150] = "";
    if (source->failed)
        return false;
    if (parser->error == YAML_MEMORY_ERROR)
        return rec_fail_memory(source->err);
    if (parser->context)
        snprintf(context, sizeof context, "%s (line %zu), ", parser->context,
                 parser->context_mark.line + 1);
    snprintf(text, sizeof text, "this is no YAML: %s%s", context,
             parser->problem ? parser->problem : "it cannot be read");
    return fail_at(source, parser->problem_mark.line, text);
}

/* Replaces the current event by the next one. */
static bool
next_event(struct yaml_source *source)
{
    if (source->open)
        yaml_event_delete(&source->event);
    source->open = false;
    if (!yaml_parser_parse(&source->parser, &source->event))
        return explain(source);
    source->open = true;
    return true;
}

/* Refuses aliases, and anchors and tags of a scalar, list or map: an alias can make a
 * small file expand to a huge one, and a tag changes what a text means. */
static bool
check_properties(struct yaml_source *source)
{
    const yaml_event_t *event = &source->event;
    const yaml_char_t *anchor = NULL, *tag = NULL;
    size_t line = event->start_mark.line;

    if (event->type == YAML_ALIAS_EVENT)
        return fail_at(
            source, line,
            "an alias (*name) is not taken: write the value itself, or quote a "
            "text that begins with *");
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor)
        return fail_at(source, line,
                       "an anchor (&name) is not taken: quote a text that begins with &");
    return !tag || fail_at(source, line,
                           "a tag (!name) is not taken: quote a text that begins with !");
}

/* A copy of the current scalar in the arena. NULL: *err. */
static const char *
keep_text(struct yaml_source *source)
{
    const char *text = (const char *)source->event.data.scalar.value;
    size_t len = source->event.data.scalar.length;
    if (memchr(text, '\0', len)) {
        fail_at(source, source->event.start_mark.line, "a text holds a NUL");
        return NULL;
    }
    return rec_arena_copy(&source->arena, (struct rec_str){text, len}, source->err);
}

/* ---- values: each read_*() begins at the first event of a value and ends at its
 * last  */

static struct yaml_value *
new_value(struct yaml_source *source, enum yaml_kind kind)
{
    struct kept *kept = calloc(1, sizeof *kept);
    if (!kept) {
        rec_fail_memory(source->err);
        return NULL;
    }
    kept->before = source->kept;
    source->kept = kept;
    kept->value.kind = kind;
    kept->value.line = source->event.start_mark.line + 1;
    return &kept->value;
}

static struct yaml_value *read_value(struct yaml_source *source, int depth);

static struct yaml_value *
read_text(struct yaml_source *source)
{
    struct yaml_value *value = new_value(source, YAML_TEXT);
    if (!value || !(value->text = keep_text(source)))
        return NULL;
    value->plain = source->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return value;
}

static struct yaml_value *
read_list(struct yaml_source *source, int depth)
{
    struct yaml_value *list = new_value(source, YAML_LIST), **end;
    if (!list || !next_event(source))
        return NULL;
    for (end = &list->item; source->event.type != YAML_SEQUENCE_END_EVENT;
         end = &(*end)->next)
        if (!(*end = read_value(source, depth + 1)) || !next_event(source))
            return NULL;
    return list;
}

/* Reads a member of a map: the current event is its key. `keys` are those before it. */
static struct yaml_value *
read_member(struct yaml_source *source, struct rec_map *keys, int depth)
{
    size_t line = source->event.start_mark.line;
    struct yaml_value *value;
    const char *key;
    char text[200];

    if (!check_properties(source))
        return NULL;
    if (source->event.type != YAML_SCALAR_EVENT) {
        fail_at(source, line,
                "a key must be a text, and is a list or map; quote a text that "
                "begins with { or [");
        return NULL;
    }
    if (!(key = keep_text(source)))
        return NULL;
    if (rec_map_get(keys, rec_str(key)) != REC_NONE) {
        snprintf(text, sizeof text, "'%.80s' comes twice in this map", key);
        fail_at(source, line, text);
        return NULL;
    }
    if (!rec_map_add(keys, rec_str(key), 0, source->err) || !next_event(source) ||
        !(value = read_value(source, depth + 1)))
        return NULL;
    value->key = key;
    return value;
}

static struct yaml_value *
read_map(struct yaml_source *source, int depth)
{
    struct yaml_value *map = new_value(source, YAML_MAP), **end;
    struct rec_map keys = {0};
    bool ok = map && next_event(source);
    if (ok)
        for (end = &map->item; ok && source->event.type != YAML_MAPPING_END_EVENT;) {
            *end = read_member(source, &keys, depth);
            ok = *end && next_event(source);
            if (ok)
                end = &(*end)->next;
        }
    rec_map_free(&keys);
    return ok ? map : NULL;
}

/* Reads the value that begins with the current event, inside `depth` lists and maps. The
 * bound on the depth also bounds the recursion. */
static struct yaml_value *
read_value(struct yaml_source *source, int depth)
{
    char text[80];
    if (!check_properties(source))
        return NULL;
    if (source->event.type == YAML_SCALAR_EVENT)
        return read_text(source);
    if (depth >= YAML_DEEPEST) {
        snprintf(text, sizeof text, "lists and maps are nested more than %d deep",
                 YAML_DEEPEST);
        fail_at(source, source->event.start_mark.line, text);
        return NULL;
    }
    return source->event.type == YAML_SEQUENCE_START_EVENT ? read_list(source, depth)
                                                           : read_map(source, depth);
}

/* ---- documents ----------------------------------------------------------- */

struct yaml_source *
yaml_source_new(struct rec_reader *reader, struct rec_error *err)
{
    struct yaml_source *source = calloc(1, sizeof *source);
    if (!source || !yaml_parser_initialize(&source->parser)) {
        free(source);
        rec_fail_memory(err);
        return NULL;
    }
    source->reader = reader;
    yaml_parser_set_input(&source->parser, give, source);
    return source;
}

/* Skips the events between documents, then the start of the document, and reads its
 * value. The end of the document is skipped by the next call. */
int
yaml_source_next(struct yaml_source *source, const struct yaml_value **value,
                 struct rec_error *err)
{
    source->err = err;
    do {
        if (!next_event(source))
            return -1;
        if (source->event.type == YAML_STREAM_END_EVENT ||
            source->event.type == YAML_NO_EVENT) /* the end was reached before */
            return 0;
    } while (source->event.type == YAML_STREAM_START_EVENT ||
             source->event.type == YAML_DOCUMENT_END_EVENT);
    if (!next_event(source) || !(*value = read_value(source, 0)))
        return -1;
    return 1;
}

void
yaml_source_free(struct yaml_source *source)
{
    struct kept *kept, *before;
    if (!source)
        return;
    for (kept = source->kept; kept; kept = before) {
        before = kept->before;
        free(kept);
    }
    if (source->open)
        yaml_event_delete(&source->event);
    yaml_parser_delete(&source->parser);
    rec_arena_free(&source->arena);
    free(source->line);
    free(source);
}
