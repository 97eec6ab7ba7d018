/*
 * rampipe/json.h - JSON. It is written piece by piece without keeping anything, so a
 * document may have any length. It is read from small documents, of which the two
 * outermost levels are kept.
 *
 *     json_open_map(json);
 *     json_text(json, "values");       in a map, every other piece is a key
 *     json_open_list(json);
 *     json_num(json, 0.1);
 *     json_close_list(json);
 *     json_close_map(json);            {"values": [0.1]}
 *
 * The functions that write report no errors; json_close() reports the first one. Only
 * this room includes yajl.
 */
#ifndef RAMPIPE_JSON_H
#define RAMPIPE_JSON_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

struct json;

/**
 * Makes a generator that writes through `writer`, which the caller keeps. Maps and lists
 * up to the depth `lines` (the outermost has depth 1) are written with one member a line,
 * deeper ones on a single line. NULL: out of memory.
 */
struct json *json_new(struct rec_writer *writer, int lines,
                      struct rec_error *err) REC_MUST_CHECK;

/** Tells the generator that the document will be part of an HTML <script>. It then
 * writes < in texts as \u003c, so that no text ends the script. Call it before the
 * first piece. */
void json_in_html(struct json *json);
void json_open_map(struct json *json);
void json_close_map(struct json *json);
void json_open_list(struct json *json);
void json_close_list(struct json *json);
/** Writes a text, or a key. Bytes that are not UTF-8 become U+FFFD. */
void json_str(struct json *json, struct rec_str text);
void json_text(struct json *json, const char *text);
/** Writes a number in its shortest form, or null if it is not finite: JSON has no word
 * for infinity. */
void json_num(struct json *json, double value);

/** Frees the generator. False: *err is the first error: out of memory, or (REC_BUG) the
 * pieces do not make a JSON document. */
bool json_close(struct json *json, struct rec_error *err) REC_MUST_CHECK;

/* ---- reading ------------------------------------------------------------- */

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_MAP };

/** A member of the outermost map, or an item: a value in a member that is a list or
 * map. */
struct json_member {
    const char *key; /* "" for an item */
    enum json_kind kind;
    bool truth;       /* the value, if it is a bool */
    const char *text; /* a text, or a number as it was written; "" for other kinds */
    uint64_t line;    /* where the value begins; of an item: where its member's does */
    size_t first, nitems; /* of a list or map: its values are map->item[first], ... */
};

/** A document: the members of its outermost map, in order, and the items in them. Values
 * that lie deeper are checked to be JSON, but not kept. Starts as {0}. */
struct json_map {
    struct json_member *member, *item;
    size_t nmembers, room, nitems, item_room;
    struct rec_map index;
    struct rec_arena arena;
};

/** Reads all that is left of the reader's files as one document, which must be a map.
 * False: *err is filled. The document is not a map, is nested deeper than 64, is longer
 * than 16 MB, has a key twice, or has more than 2^20 items. Call json_map_free() in that
 * case, too. */
bool json_map_read(struct json_map *map, struct rec_reader *reader,
                   struct rec_error *err) REC_MUST_CHECK;
/** The member with this key; NULL: there is none. */
const struct json_member *json_map_find(const struct json_map *map, const char *key);
void json_map_free(struct json_map *map);

REC_END_DECLS

#endif
