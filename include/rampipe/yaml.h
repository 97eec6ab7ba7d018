/*
 * rampipe/yaml.h - YAML, document by document, as a tree whose values know their line.
 *
 *     degree: [1, 2]       a map, line 1, of one member, a list, line 1, of two texts
 *
 * YAML 1.1 as libyaml reads it, without the parts that surprise people or that let a
 * small file expand to a huge one: anchors and aliases, tags, keys that are not texts, a
 * key twice in a map, and nesting deeper than YAML_DEEPEST are refused. Scalars are
 * always texts: 0.10 stays "0.10", and no stays "no". Only this room includes libyaml.
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
    bool plain;              /* a text without quotes that is not a block (| or >) */
    uint64_t line;           /* the line on which the value starts, from 1 */
    const char *key;         /* of a member of a map; NULL: the value is not one */
    const char *text;        /* of a text; "" if nothing follows the key, as in `key:` */
    struct yaml_value *item; /* of a list or map: its first value; NULL: it is empty */
    struct yaml_value *next; /* the next value of the list or map that holds this one */
};

struct yaml_source;

/** Opens a source of the documents of a reader over one file. The caller keeps `reader`.
 * NULL: out of memory, *err is filled. */
struct yaml_source *yaml_source_new(struct rec_reader *reader,
                                    struct rec_error *err) REC_MUST_CHECK;
/** Reads the next document. 1: *value is its outermost value, which the source owns until
 * yaml_source_free(); 0: there are no more documents; -1: *err is filled, with file and
 * line. */
int yaml_source_next(struct yaml_source *source, const struct yaml_value **value,
                     struct rec_error *err) REC_MUST_CHECK;
void yaml_source_free(struct yaml_source *source);

REC_END_DECLS

#endif
