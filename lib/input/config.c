/* Reads a transformer from the config.json of Hugging Face. The row of its family
 * (family.c) says which keys are read and what the defaults are. A key that may change
 * the work but that no row has is reported to the caller: an answer that ignores it would
 * be wrong and look right. */
#include "family.h"
#include "rampipe/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Limits of what a file may ask for: any number; layers; patches in a row of an image.
 * They keep sums exact and networks small enough to build. */
enum { COUNT_MAX = 16777216, LAYERS_MAX = 10000, PATCHES_MAX = 4000 };

struct config {
    struct json_map map;
    bool *used; /* for each member: it has been read */
    const char *file;
    const struct input_family *family;
    struct input_draft draft;
    const struct json_member *types; /* the list layer_types; NULL: there is none */
    const struct json_member *dense; /* the list mlp_only_layers; NULL: there is none */
    struct rec_error *err;
};

static bool
fail(const struct config *c, const struct json_member *member, const char *key,
     const char *want)
{
    return rec_fail_at(c->err, c->file, member ? member->line : 1,
                       member ? "%s must be %s, got '%.60s'" : "%s is missing: %s", key,
                       want, member ? member->text : "");
}

/* Finds a key and marks it as used, so that list_left() does not report it. NULL: the
 * file does not have it. */
static const struct json_member *
look_up(const struct config *c, const char *key)
{
    const struct json_member *member = json_map_find(&c->map, key);
    if (member)
        c->used[member - c->map.member] = true;
    return member;
}

/* As look_up(), but a key whose value is null counts as missing. */
static const struct json_member *
find(const struct config *c, const char *key)
{
    const struct json_member *member = look_up(c, key);
    return member && member->kind != JSON_NULL ? member : NULL;
}

/* ---- values -------------------------------------------------------------- */

static bool
whole_number(const struct json_member *member, double least, double *number)
{
    return member->kind == JSON_NUMBER && rec_parse_num(rec_str(member->text), number) &&
           *number == floor(*number) && *number >= least && *number <= COUNT_MAX;
}

static bool
read_count(const struct config *c, const struct json_member *member,
           const struct input_key *key, unsigned *value)
{
    bool amount = key->kind == INPUT_KEY_AMOUNT;
    double number;
    if (!whole_number(member, amount ? 0 : 1, &number))
        return fail(c, member, key->name,
                    amount ? "an integer from 0 to 16777216"
                           : "an integer from 1 to 16777216");
    *value = (unsigned)number;
    return true;
}

static bool
read_flag(const struct config *c, const struct json_member *member, const char *key,
          bool *value)
{
    if (member->kind != JSON_BOOL)
        return fail(c, member, key, "true or false");
    *value = member->truth;
    return true;
}

/* An activation is known by its prefix: "gelu_new" and "gelu_pytorch_tanh" take the same
 * work as "gelu". T5 writes "gated-gelu" for an MLP that is gated. */
static bool
read_activation(struct config *c, const struct json_member *member, const char *key,
                enum input_activation *value)
{
    static const char *const prefix[] = {
        [INPUT_GELU] = "gelu", [INPUT_SILU] = "silu", [INPUT_RELU] = "relu"};
    bool gated = member->kind == JSON_TEXT && strncmp(member->text, "gated-", 6) == 0;
    for (int i = 0; member->kind == JSON_TEXT && i < 3; i++)
        if (strncmp(member->text + (gated ? 6 : 0), prefix[i], 4) == 0) {
            *value = (enum input_activation)i;
            c->draft.t.gated |= gated;
            return true;
        }
    return fail(c, member, key, "a gelu, silu or relu");
}

static bool
check_must(const struct config *c, const struct json_member *member,
           const struct input_key *key)
{
    const char *is =
        member->kind == JSON_BOOL ? member->truth ? "true" : "false" : member->text;
    if (strcmp(is, key->must) == 0 && member->nitems == 0)
        return true;
    return rec_fail_at(c->err, c->file, member->line,
                       "%s must be %s (no other value is modelled), got '%.60s'",
                       key->name, *key->must ? key->must : "empty",
                       member->nitems > 0 ? "..." : is);
}

/* Families have two keys for one number, such as n_layer and num_hidden_layers. If a file
 * has both, they must be equal. Compares `key` with the keys before it in the list that
 * starts at `first`. */
static bool
check_other_name(const struct config *c, const struct input_key *first,
                 const struct input_key *key, unsigned value)
{
    for (const struct input_key *other = first; other < key; other++) {
        const struct json_member *member = json_map_find(&c->map, other->name);
        double number;
        if (other->field != key->field || other->kind != key->kind || !member ||
            !whole_number(member, 0, &number) || number == value)
            continue;
        return rec_fail_at(c->err, c->file, member->line,
                           "%s and %s must be the same number: %.0f and %u", other->name,
                           key->name, number, value);
    }
    return true;
}

/* ---- keys ---------------------------------------------------------------- */

static bool
read_value(struct config *c, const struct json_member *member,
           const struct input_key *first, const struct input_key *key)
{
    void *field = (char *)&c->draft + key->field;
    switch (key->kind) {
    case INPUT_KEY_COUNT:
    case INPUT_KEY_AMOUNT:
        return read_count(c, member, key, field) &&
               check_other_name(c, first, key, *(unsigned *)field);
    case INPUT_KEY_FLAG: return read_flag(c, member, key->name, field);
    case INPUT_KEY_ACTIVATION: return read_activation(c, member, key->name, field);
    case INPUT_KEY_PRESENT: *(bool *)field = true; return true;
    case INPUT_KEY_MUST: return check_must(c, member, key);
    case INPUT_KEY_ITEMS:
        if (member->kind != JSON_MAP && member->kind != JSON_LIST)
            return fail(c, member, key->name, "a map or list");
        *(unsigned *)field = (unsigned)member->nitems;
        return true;
    case INPUT_KEY_TYPES:
    case INPUT_KEY_DENSE:
        if (member->kind != JSON_LIST)
            return fail(c, member, key->name, "a list");
        *(key->kind == INPUT_KEY_TYPES ? &c->types : &c->dense) = member;
        return true;
    case INPUT_KEY_UNUSED: break;
    }
    return true;
}

static bool
read_key(struct config *c, const struct input_key *first, const struct input_key *key)
{
    const struct json_member *member = look_up(c, key->name);
    if (!member)
        return true;
    if (member->kind != JSON_NULL)
        return read_value(c, member, first, key);
    if (key->null_is_0)
        *(unsigned *)((char *)&c->draft + key->field) = 0;
    if (key->kind == INPUT_KEY_PRESENT)
        *(bool *)((char *)&c->draft + key->field) = false;
    return true;
}

/* Reads the keys of the family, and then checks that the needed numbers are there, which
 * another name of the key may have given. The common keys come last, since a family's own
 * row for such a key takes precedence. */
static bool
read_keys(struct config *c)
{
    for (const struct input_key *const *list = c->family->keys; *list; list++)
        for (const struct input_key *key = *list; key->name; key++)
            if (!read_key(c, *list, key))
                return false;
    for (const struct input_key *const *list = c->family->keys; *list; list++)
        for (const struct input_key *key = *list; key->name; key++)
            if (key->needed && *(unsigned *)((char *)&c->draft + key->field) == 0)
                return fail(c, NULL, key->name, "an integer from 1 to 16777216");
    for (const struct input_key *key = input_common_keys; key->name; key++) {
        const struct json_member *member = json_map_find(&c->map, key->name);
        if (member && !c->used[member - c->map.member] && !read_key(c, key, key))
            return false;
    }
    return true;
}

/* Can a key that was not read be ignored? Empty values say nothing. */
static bool
is_harmless(const struct json_member *member)
{
    bool collection = member->kind == JSON_LIST || member->kind == JSON_MAP;
    if (member->kind == JSON_NULL || (collection && member->nitems == 0))
        return true;
    for (const char *const *key = input_harmless_keys; *key; key++)
        if (strcmp(member->key, *key) == 0)
            return true;
    return false;
}

/* Lists the keys that have not been read and that may change the work. Control characters
 * in their names are replaced, since the list is shown on a terminal. */
static void
list_left(const struct config *c, char left[INPUT_LEFT_MAX])
{
    *left = '\0';
    for (size_t i = 0; i < c->map.nmembers; i++) {
        char name[64];
        if (c->used[i] || is_harmless(&c->map.member[i]))
            continue;
        snprintf(name, sizeof name, "%s", c->map.member[i].key);
        for (char *at = name; *at; at++)
            if ((unsigned char)*at < ' ' || *at == 0x7f)
                *at = '?';
        rec_list_name(left, INPUT_LEFT_MAX, name);
    }
}

/* ---- the model ----------------------------------------------------------- */

static bool
find_family(struct config *c)
{
    const struct json_member *member = find(c, "model_type");
    const struct json_member *text = find(c, "text_config");
    char list[320] = "", want[340];
    if (text)
        return rec_fail_at(c->err, c->file, text->line,
                           "a model that reads more than text is not modelled: give "
                           "the map text_config as a file of its own");
    for (c->family = input_families; c->family->type; c->family++) {
        if (member && member->kind == JSON_TEXT &&
            strcmp(member->text, c->family->type) == 0)
            return true;
        rec_list_name(list, sizeof list, c->family->type);
    }
    snprintf(want, sizeof want, "one of %s", list);
    return fail(c, member, "model_type", want);
}

/* Refuses numbers that contradict each other, or that are too large to build. */
static bool
check(const struct config *c)
{
    const struct input_draft *d = &c->draft;
    const struct input_transformer *t = &d->t;
    unsigned wide = t->head_width > t->value_width ? t->head_width : t->value_width;
    unsigned layers = t->layers > t->encoder_layers ? t->layers : t->encoder_layers;
    const char *file = c->file;
    if (layers > LAYERS_MAX)
        return rec_fail_at(c->err, file, 1, "more than 10000 layers: %u", layers);
    if ((double)t->heads * wide > COUNT_MAX)
        return rec_fail_at(c->err, file, 1, "%u heads of %u are too wide", t->heads,
                           wide);
    if (t->heads % t->kv_heads != 0)
        return rec_fail_at(c->err, file, 1,
                           "num_attention_heads must be a multiple of "
                           "num_key_value_heads: %u and %u",
                           t->heads, t->kv_heads);
    if ((double)d->shared * t->expert_inner > COUNT_MAX)
        return rec_fail_at(c->err, file, 1, "%u shared experts of %u are too wide",
                           d->shared, t->expert_inner);
    if (t->patch > 0 && (t->image < t->patch || t->image / t->patch > PATCHES_MAX))
        return rec_fail_at(c->err, file, 1,
                           "an image must be 1 to 4000 patches wide: image_size %u, "
                           "patch_size %u",
                           t->image, t->patch);
    return (t->experts_used <= t->experts && (t->experts_used > 0) == (t->experts > 0)) ||
           rec_fail_at(c->err, file, 1,
                       "num_experts_per_tok must be from 1 to the number of experts: %u "
                       "and %u",
                       t->experts_used, t->experts);
}

/* Derives the numbers that no key gave from other numbers, as the families' code does. */
static bool
derive(struct config *c)
{
    struct input_draft *d = &c->draft;
    struct input_transformer *t = &d->t;
    if (c->family->finish)
        c->family->finish(d);
    if (t->head_width == 0 && t->width % t->heads != 0)
        return rec_fail_at(
            c->err, c->file, 1,
            "the width must be a multiple of the number of heads: %u and %u", t->width,
            t->heads);
    if (t->head_width == 0)
        t->head_width = t->width / t->heads;
    if (t->kv_heads == 0)
        t->kv_heads = t->heads;
    if (t->inner == 0)
        t->inner = 4 * t->width;
    if (t->experts > 0 && t->expert_inner == 0)
        t->expert_inner = t->inner;
    if (d->learned)
        t->positions = d->sequence + d->spare;
    return check(c);
}

/* Does layer i have a window, by the numbers of the configuration? */
static bool
has_window(const struct input_draft *d, unsigned i)
{
    return d->windowed && i >= d->window_from &&
           (d->window_until == 0 || i < d->window_until) &&
           (d->window_period == 0 || (i + 1) % d->window_period != 0);
}

/* The list layer_types says which layers have a window, and overrides has_window(). */
static bool
read_types(struct config *c)
{
    const struct json_member *list = c->types;
    struct input_draft *d = &c->draft;
    if (list->nitems != d->t.layers)
        return rec_fail_at(c->err, c->file, list->line,
                           "layer_types must have a value for each of %u layers, got %zu",
                           d->t.layers, list->nitems);
    for (unsigned i = 0; i < d->t.layers; i++) {
        const struct json_member *item = &c->map.item[list->first + i];
        bool window = strcmp(item->text, "sliding_attention") == 0;
        if (item->kind != JSON_TEXT ||
            (!window && strcmp(item->text, "full_attention") != 0))
            return fail(c, item, "a value of layer_types",
                        "full_attention or sliding_attention");
        if (window && (!d->windowed || d->window == 0))
            return rec_fail_at(c->err, c->file, item->line,
                               "layer_types has sliding_attention, but by sliding_window "
                               "or use_sliding_window there is no window");
        d->t.block[i].window = window ? d->window : 0;
    }
    return true;
}

/* The list mlp_only_layers names layers that are no mixtures of experts. */
static bool
read_dense(struct config *c)
{
    for (size_t i = 0; i < c->dense->nitems; i++) {
        const struct json_member *item = &c->map.item[c->dense->first + i];
        double layer;
        if (!whole_number(item, 0, &layer) || layer >= c->draft.t.layers)
            return fail(c, item, "a value of mlp_only_layers",
                        "the index of a layer, from 0");
        c->draft.t.block[(unsigned)layer].mixture = false;
    }
    return true;
}

/* Says of each layer whether it has a window, and whether it is a mixture. */
static bool
make_blocks(struct config *c)
{
    struct input_draft *d = &c->draft;
    d->t.block = calloc(d->t.layers, sizeof *d->t.block);
    if (!d->t.block)
        return rec_fail_memory(c->err);
    for (unsigned i = 0; i < d->t.layers; i++) {
        unsigned step = d->expert_step > 0 ? d->expert_step : 1;
        d->t.block[i].window = has_window(d, i) ? d->window : 0;
        d->t.block[i].mixture =
            d->t.experts > 0 && i >= d->dense_first && (i + d->expert_shift) % step == 0;
    }
    return (!c->types || read_types(c)) && (!c->dense || read_dense(c));
}

bool
input_transformer_read(struct rec_reader *reader, struct input_transformer *transformer,
                       double *sequence, char left[INPUT_LEFT_MAX], struct rec_error *err)
{
    struct config c = {.err = err};
    bool ok = json_map_read(&c.map, reader, err);
    c.file = rec_reader_file(reader);
    c.used = ok ? calloc(c.map.nmembers + 1, sizeof *c.used) : NULL;
    ok = ok && (c.used || rec_fail_memory(err)) && find_family(&c);
    if (ok)
        c.draft = c.family->like;
    ok = ok && read_keys(&c) && derive(&c) && make_blocks(&c);
    if (ok)
        list_left(&c, left);
    *transformer = c.draft.t;
    *sequence = c.draft.sequence;
    free(c.used);
    json_map_free(&c.map);
    return ok;
}
