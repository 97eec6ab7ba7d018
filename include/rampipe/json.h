/*
 * rampipe/json.h - JSON. Written piece by piece: nothing is kept, a document may be of
 * any length. Read: what a small document says at its two outermost levels.
 *
 *     json_open_map(json);
 *     json_text(json, "values");       in a map, every other piece is a key
 *     json_open_list(json);
 *     json_num(json, 0.1);
 *     json_close_list(json);
 *     json_close_map(json);            {"values": [0.1]}
 *
 * What goes wrong is kept: json_close() reports it. yajl is known here and nowhere else.
 */
#ifndef RAMPIPE_JSON_H
#define RAMPIPE_JSON_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct json;

/**
 * A generator that writes through `writer`, which is borrowed. Maps and lists nested up
 * to `lines` deep (the outermost is 1) give each member a line, deeper ones stand on one.
 * NULL: out of memory.
 */
struct json *json_new(struct rec_writer *writer, int lines,
                      struct rec_error *err) REC_MUST_CHECK;

/** The document stands in a <script> of a page: < in texts is written as \u003c, so that
 * none ends the script. Before the first piece. */
void json_in_html(struct json *json);
void json_open_map(struct json *json);
void json_close_map(struct json *json);
void json_open_list(struct json *json);
void json_close_list(struct json *json);
/** A text, or a key. Bytes that are no UTF-8 become U+FFFD. */
void json_str(struct json *json, struct rec_str text);
void json_text(struct json *json, const char *text);
/** A number in its shortest form; null if it is not finite, for JSON has no other
 * word. */
void json_num(struct json *json, double value);

/** Frees the generator. False: out of memory, or (REC_BUG) the pieces make no
 * document. */
bool json_close(struct json *json, struct rec_error *err) REC_MUST_CHECK;

/* ---- reading ------------------------------------------------------------- */

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_MAP };

/** A member of a map, or a value in a list or map that is one, whose key is "". */
struct json_member {
    const char *key;
    enum json_kind kind;
    bool truth;
    const char *text; /* of a text, and of a number as it was written; no NUL is in it */
    uint64_t line;    /* of a value in a list or map: where that begins */
    size_t first, nitems; /* of a list or map: its values, map->item[first], ... */
};

/** The members of the outermost map, in order, and the values of lists and maps among
 * them; what lies deeper is checked to be JSON, and left. Starts as {0}. */
struct json_map {
    struct json_member *member, *item;
    size_t nmembers, room, nitems, item_room;
    struct rec_map index;
    struct rec_arena arena;
};

/** Reads the next file of the reader, a map. False: it is none, deeper than 64, longer
 * than 16 MB, has a key twice or more than 2^20 values to keep; free the map all the
 * same. */
bool json_map_read(struct json_map *map, struct rec_reader *reader,
                   struct rec_error *err) REC_MUST_CHECK;
/** NULL: there is no such member. */
const struct json_member *json_map_find(const struct json_map *map, const char *key);
void json_map_free(struct json_map *map);

REC_END_DECLS

#endif
