/*
 * rampipe/yaml.h - YAML, document by document, as a tree whose values know their line.
 *
 *     degree: [1, 2]       a map, line 1, of one member, a list, line 1, of two texts
 *
 * YAML 1.1 as libyaml reads it, less what would let a few bytes mean something else than
 * they say: anchors and aliases, tags, keys that are no text, a key twice in a map, and
 * nesting of more than YAML_DEEPEST are refused. Scalars are text, whatever they look
 * like: 0.10 is 0.10, no is no. libyaml is known here and nowhere else.
 */
#ifndef RAMPIPE_YAML_H
#define RAMPIPE_YAML_H

#include "rampipe/record.h"

REC_BEGIN_DECLS

enum { YAML_DEEPEST = 16 };

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP };

/** A value. Texts are NUL-terminated and hold no other NUL. */
struct yaml_value {
    enum yaml_kind kind;
    bool plain;              /* a text without quotes, and no block */
    uint64_t line;           /* where it starts, from 1 */
    const char *key;         /* of a member of a map; NULL: it is none */
    const char *text;        /* of a text; "" if there is nothing: `key:` */
    struct yaml_value *item; /* of a list or map: the first one; NULL: it is empty */
    struct yaml_value *next; /* of the list or map that it is in */
};

struct yaml_source;

/** The documents of a reader, which is borrowed, and of one file. NULL: out of memory. */
struct yaml_source *yaml_source_new(struct rec_reader *reader,
                                    struct rec_error *err) REC_MUST_CHECK;
/** 1: *value is the next document, the source's until yaml_source_free(); 0: there is
 * none; -1: *err, with file and line. */
int yaml_source_next(struct yaml_source *source, const struct yaml_value **value,
                     struct rec_error *err) REC_MUST_CHECK;
void yaml_source_free(struct yaml_source *source);

REC_END_DECLS

#endif
