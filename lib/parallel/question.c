/* Questions as records: a training record becomes a model, a mix and a machine. */
#include "keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Refuses numbers of a model that contradict each other, and those of parts that it does
 * not have. */
static void
check_model(struct parallel_key *f, const struct input_transformer *t)
{
    struct rec_str given;
    bool whole = rec_find_key(f->rec, "head_dim", &given) || t->width % t->heads == 0;
    bool mixture = t->experts_used || t->expert_inner || t->shared_inner;
    const char *why =
        !whole ? "hidden must be a multiple of heads; else head_dim= is needed"
        : t->head_width == 0                             ? "head_dim must be at least 1"
        : t->kv_rank == 0 && t->heads % t->kv_heads != 0 ? "kv must divide heads"
        : t->kv_rank == 0 && (t->q_rank > 0 || t->rope_width > 0)
            ? "q_rank and rope_dim are of latent attention, which needs kv_rank="
        : t->rope_width > t->head_width ? "rope_dim must be at most head_dim"
        : t->experts == 0 && mixture
            ? "topk, expert_ffn and shared_ffn are of a mixture, which needs experts="
        : t->experts > 0 && t->experts_used > t->experts ? "topk must be at most experts"
                                                         : NULL;
    if (why)
        f->ok = rec_reader_fail(f->reader, f->err, "%s", why);
}

static void
read_model(struct parallel_key *f, struct parallel_question *q)
{
    static const char *const biases[] = {"qkv", "projection", "mlp", NULL};
    static const char *const norms[] = {"rms", "layer", NULL};
    static const char *const qk_norms[] = {"none", "head", "heads", NULL};
    static const char *const mlps[] = {"swiglu", "gelu", "relu2", NULL};
    static const char *const attentions[] = {"fused", "unfused", NULL};
    unsigned mlp = parallel_key_word(f, "mlp", mlps);
    struct input_transformer *t = &q->t;
    struct rec_str value;
    bool gelu = mlp == 1;
    unsigned bias = parallel_key_words(f, "bias", biases, gelu ? 7 : 0);
    bool rms = rec_find_key(f->rec, "norm", &value)
                   ? parallel_key_word(f, "norm", norms) == 0
                   : mlp == 0;
    *t = (struct input_transformer){
        .layers = parallel_key_needed(f, "layers"),
        .width = parallel_key_needed(f, "hidden"),
        .heads = parallel_key_needed(f, "heads"),
        .inner = parallel_key_count(f, "ffn", 0),
        .words = parallel_key_needed(f, "vocab"),
        .experts = parallel_key_count(f, "experts", 0),
        .experts_used = parallel_key_count(f, "topk", 0),
        .expert_inner = parallel_key_count(f, "expert_ffn", 0),
        .shared_inner = parallel_key_count(f, "shared_ffn", 0),
        .q_rank = parallel_key_count(f, "q_rank", 0),
        .kv_rank = parallel_key_count(f, "kv_rank", 0),
        .rope_width = parallel_key_count(f, "rope_dim", 0),
        .value_width = parallel_key_count(f, "value_dim", 0),
        .causal = true,
        .norm_before = true,
        .norm_final = true,
        .head = true,
        .rms = rms,
        .gated = mlp == 0,
        .qk_norm = (enum input_qk_norm)parallel_key_word(f, "qk_norm", qk_norms),
        .attention_bias = bias & 1,
        .output_bias = bias & 2,
        .mlp_bias = bias & 4,
        .tied = parallel_key_count(f, "tied", gelu) > 0,
        .activation = gelu       ? INPUT_GELU
                      : mlp == 0 ? INPUT_SILU
                                 : INPUT_RELU,
    };
    t->kv_heads = parallel_key_count(f, "kv", t->heads);
    t->head_width = parallel_key_count(f, "head_dim", t->heads ? t->width / t->heads : 0);
    q->sequence = parallel_key_needed(f, "seq");
    t->positions = parallel_key_count(f, "positions", gelu ? (uint32_t)q->sequence : 0);
    q->style.unfused = parallel_key_word(f, "attention", attentions) == 1;
    q->style.no_dropout = parallel_key_count(f, "dropout", gelu) == 0;
    if (f->ok && t->experts > 0 && (t->experts_used == 0 || t->expert_inner == 0))
        f->ok = rec_reader_fail(f->reader, f->err, "experts need topk= and expert_ffn=");
    if (f->ok && t->kv_heads == 0)
        f->ok = rec_reader_fail(f->reader, f->err, "kv must be at least 1");
    if (f->ok && t->positions > 0 && t->positions < q->sequence)
        f->ok = rec_fail(f->err, REC_NO,
                         "seq is %.0f, but the model has positions for %u tokens",
                         q->sequence, t->positions);
    if (f->ok)
        check_model(f, t);
}

/* 3xd,58xe128: how many, dense or with experts, and a window. */
static bool
parse_blocks(struct rec_str text, struct input_block *block, uint32_t layers)
{
    struct rec_str part;
    uint32_t n = 0;
    while (rec_str_split(&text, ',', &part)) {
        char word[40], kind, end;
        unsigned times, window = 0;
        int found;
        snprintf(word, sizeof word, "%.*s", (int)(part.len < 39 ? part.len : 39),
                 part.ptr);
        found = sscanf(word, "%9ux%c%9u%c", &times, &kind, &window, &end);
        /* scanf takes signs and blanks, too: -5 as 2^32 - 5 */
        if ((found != 2 && found != 3) || (kind != 'd' && kind != 'e') ||
            word[strspn(word, "0123456789xde")] || times > layers - n)
            return false;
        for (; times > 0; times--, n++)
            block[n] = (struct input_block){.mixture = kind == 'e', .window = window};
    }
    return n == layers;
}

/* Layers that are not all alike. */
static void
read_blocks(struct parallel_key *f, struct parallel_question *q)
{
    struct rec_str text;
    bool listed = rec_find_key(f->rec, "blocks", &text);
    uint32_t dense = parallel_key_count(f, "dense_layers", 0),
             window = parallel_key_count(f, "window", 0);
    if (!f->ok || (dense == 0 && window == 0 && !listed))
        return;
    if (dense > q->t.layers || (dense > 0 && q->t.experts == 0)) {
        f->ok = rec_reader_fail(f->reader, f->err,
                                "dense_layers are the first of at most %u layers, the "
                                "others of which have experts=",
                                q->t.layers);
        return;
    }
    q->block = calloc(q->t.layers, sizeof *q->block);
    if (!q->block) {
        f->ok = rec_fail_memory(f->err);
        return;
    }
    for (uint32_t i = 0; i < q->t.layers; i++) {
        q->block[i].mixture = q->t.experts > 0 && i >= dense;
        q->block[i].window = i % 2 == 0 ? window : 0;
    }
    if (listed && !parse_blocks(text, q->block, q->t.layers))
        f->ok = rec_reader_fail(f->reader, f->err,
                                "blocks must list %u layers as 3xd,58xe128, got '%.*s'",
                                q->t.layers, REC_SAID(text));
    for (uint32_t i = 0; f->ok && q->t.experts == 0 && i < q->t.layers; i++)
        if (q->block[i].mixture)
            f->ok = rec_reader_fail(f->reader, f->err,
                                    "blocks has layers with experts, but there are none: "
                                    "experts= is needed");
    q->t.block = q->block;
}

/* ---- the machine ------------------------------------------------------------- */

/* Of stacks. */
static const char *
precision_name(const struct parallel_mix *mix)
{
    static const char *const names[] = {"bf16", "fp8", "fp4"};
    return mix->blocks ? "mxfp8" : names[mix->precision];
}

/* Chips of one kind: what a stack reaches on one, it is taken to reach on the other,
 * whose memory and links are its own. */
static bool
same_chip(const struct device *a, const struct device *b)
{
    return a->processors == b->processors &&
           a->peak[DEVICE_BF16] == b->peak[DEVICE_BF16] && a->fp8 == b->fp8 &&
           a->fp4 == b->fp4;
}

/* A stack of another device that has the same chip. */
static bool
stands_in(const struct parallel_stack *s, const struct device_table *devices,
          const char *name)
{
    const struct device *device = device_find(devices, name);
    struct rec_str rest = rec_str(s->device), part;
    while (device && rec_str_split(&rest, ',', &part)) {
        char other[64];
        const struct device *found;
        snprintf(other, sizeof other, "%.*s", (int)(part.len < 63 ? part.len : 63),
                 part.ptr);
        found = device_find(devices, other);
        if (found && same_chip(device, found))
            return true;
    }
    return false;
}

static bool
in_precision(const struct parallel_stack *s, const char *precision)
{
    return !s->precision[0] || parallel_key_lists(s->precision, rec_str(precision));
}

/* The stack that is named; else the last one of the family; else the first one of the
 * device and the precision, or of the chip. MXFP8 takes one of FP8 if it has none. */
static const struct parallel_stack *
find_stack(const struct parallel_key *f, const struct parallel_tables *tables,
           struct parallel_question *q)
{
    const struct parallel_stacks *stacks = tables->stacks;
    struct rec_str wanted, family, release, device = rec_str(q->device);
    const char *precision = precision_name(&q->mix);
    const struct parallel_stack *like = NULL, *chip = NULL, *other = NULL;
    bool named = rec_find_key(f->rec, "stack", &wanted);
    bool known = rec_find_key(f->rec, "family", &family);
    bool dated = rec_find_key(f->rec, "release", &release);
    for (size_t i = stacks->n; i-- > 0;) {
        const struct parallel_stack *s = &stacks->stack[i];
        bool here = !s->device[0] || parallel_key_lists(s->device, device);
        bool suits = here && in_precision(s, precision);
        bool now = !s->releases[0] || (dated && parallel_key_lists(s->releases, release));
        if (named && rec_str_is(wanted, s->name))
            return s;
        if (!named && known && suits && now && parallel_key_lists(s->families, family))
            return s;
        if (named || !s->device[0])
            continue;
        if (suits)
            like = s;
        else if (in_precision(s, precision) && stands_in(s, tables->devices, q->device))
            chip = s;
        else if (here && q->mix.blocks && in_precision(s, "fp8"))
            other = s;
    }
    q->like = true;
    q->chip = !like && chip;
    return like ? like : chip ? chip : other;
}

/* How many parts a name has, between dashes, if all of them stand in `device` in this
 * order, the first in front; else 0. */
static unsigned
parts_in(const char *name, const char *device)
{
    struct rec_str left = rec_str(device), rest = rec_str(name), part, other;
    unsigned n = 0;
    for (; rec_str_split(&rest, '-', &part); n++)
        do {
            if (!rec_str_split(&left, '-', &other) ||
                (n == 0 && !rec_str_eq(part, other)))
                return 0;
        } while (!rec_str_eq(part, other));
    return n;
}

const struct collective_fabric *
parallel_fabric(const struct collective_table *table, const char *device)
{
    const struct collective_fabric *best = NULL;
    unsigned most = 0;
    for (size_t i = table->nfabrics; i-- > 0;) {
        unsigned parts = parts_in(table->fabric[i].name, device);
        if (parts > most) {
            most = parts;
            best = &table->fabric[i];
        }
    }
    return best;
}

/* The system whose collectives those of a device are: the device, if they were measured
 * on it, or if its name begins as that of its fabric, which is found so. The name of
 * a100-80-pcie does not begin with a100-pcie. */
static const char *
system_of(const struct collective_table *table, const struct parallel_question *q,
          const struct collective_fabric *fabric)
{
    bool own = strncmp(q->device, fabric->name, strlen(fabric->name)) == 0;
    for (size_t i = 0; !own && i < table->nseries; i++)
        own = strcmp(table->series[i].system, q->device) == 0;
    return own ? q->device : fabric->name;
}

/* No device has this name: names those that a question can be about. */
static bool
refuse_device(const struct device_table *table, const char *name, struct rec_error *err)
{
    char known[400] = "";
    for (size_t i = 0; i < table->ndevices; i++)
        if (table->device[i].processors > 0)
            rec_list_name(known, sizeof known, table->device[i].name);
    return rec_fail(err, REC_NO, "the device must be one of %s, got '%s'", known, name);
}

static bool
make_machine(struct parallel_key *f, const struct parallel_tables *tables,
             struct parallel_question *q)
{
    /* A message over adapters; measured between nodes of H100: 10 to 20 us. */
    static const double latency = 2e-5;
    /* ../shared/reference/parallel.md, 4.3: 1 to 2 us */
    static const double launch = 1.5e-6;
    struct parallel_machine *m = &q->machine;
    const struct collective_fabric *fabric;
    const struct device *device;
    struct rec_str name;
    if (!rec_find_key(f->rec, "device", &name))
        return rec_reader_fail(f->reader, f->err, "a question needs device=");
    snprintf(q->device, sizeof q->device, "%.*s", (int)(name.len < 63 ? name.len : 63),
             name.ptr);
    device = device_find(tables->devices, q->device);
    fabric = parallel_fabric(tables->collectives, q->device);
    *m = (struct parallel_machine){
        .node = parallel_key_degree(f, "node"), .latency = latency, .launch = launch};
    if (!rec_find_key(f->rec, "node", &name))
        m->node = 8;
    if (!f->ok)
        return false;
    if (!device)
        return refuse_device(tables->devices, q->device, f->err);
    if (device->processors == 0)
        return rec_fail(
            f->err, REC_NO,
            "the record of device '%s' has no processors=, which a prediction needs",
            q->device);
    if (!fabric)
        return rec_fail(f->err, REC_NO, "no fabric record says what connects '%s'",
                        q->device);
    m->peak[PARALLEL_BF16] = device->peak[DEVICE_BF16];
    m->peak[PARALLEL_FP8] = device->fp8;
    m->peak[PARALLEL_FP4] = device->fp4;
    if (m->peak[q->mix.precision] <= 0 || m->peak[PARALLEL_BF16] <= 0 ||
        (q->mix.attention_fp8 && device->fp8 <= 0))
        return rec_fail(f->err, REC_NO, "device '%s' has no peak for %s", q->device,
                        precision_name(&q->mix));
    q->mix.turned = parallel_turned(&q->mix, m);
    m->processors = (double)device->processors;
    if (q->mix.taken >= device->processors)
        return rec_reader_fail(f->reader, f->err,
                               "exchange_processors must be fewer than the %.0f of '%s'",
                               m->processors, q->device);
    m->bandwidth = device->bandwidth;
    m->memory = device->memory;
    m->inside = fabric->bandwidth * fabric->reach;
    m->inside_latency = fabric->latency;
    m->adapter = fabric->adapter;
    m->table = tables->collectives;
    m->system = system_of(tables->collectives, q, fabric);
    if (!rec_key_number(f->reader, f->rec, "nic", &m->adapter, f->err))
        return false;
    if (m->adapter <= 0 && parallel_ranks(&q->mix) > m->node)
        return rec_fail(f->err, REC_NO, "the bandwidth between nodes is not known: nic=");
    if (tables->kernels &&
        !parallel_kernels_open(tables->kernels, q->device, q->mix.fp16, m, f->err))
        return false;
    m->stack = find_stack(f, tables, q);
    if (!m->stack && rec_find_key(f->rec, "stack", &name))
        return rec_fail(f->err, REC_NO,
                        "no stack is called '%.*s': steptime --list shows them",
                        (int)(name.len < 60 ? name.len : 60), name.ptr);
    if (!m->stack)
        return rec_fail(f->err, REC_NO, "no stack of %s in %s is known: stack= names one",
                        q->device, precision_name(&q->mix));
    q->mix.frees = m->stack->frees;
    return true;
}

/* A dense MLP has a width. */
static bool
check_widths(struct parallel_key *f, const struct parallel_model *model)
{
    for (unsigned i = 0; i < model->nkinds; i++)
        if (!model->kind[i].experts && model->t.inner == 0)
            return rec_reader_fail(f->reader, f->err,
                                   "a question needs ffn=, at least 1: it has layers "
                                   "without experts");
    return true;
}

bool
parallel_question_read(struct parallel_question *q, const struct parallel_tables *tables,
                       const struct rec_reader *reader, const struct rec *rec,
                       struct rec_error *err)
{
    struct parallel_key f = {reader, rec, err, true};
    bool ok;
    *q = (struct parallel_question){.like = false};
    if (!rec_check(reader, rec, err))
        return false;
    read_model(&f, q);
    parallel_mix_read(&f, tables, q);
    read_blocks(&f, q);
    if (!f.ok || !make_machine(&f, tables, q))
        return false;
    if (!parallel_model_make(&q->t, q->sequence, &q->style, &q->model, err))
        ok = false;
    else if (!check_widths(&f, &q->model))
        return false;
    else
        ok = parallel_mix_check(&q->mix, &q->model, err);
    if (ok && tables->servers > 0 && parallel_ranks(&q->mix) > tables->servers)
        ok = rec_fail(err, REC_NO, "the mix needs %llu devices, the cluster has %u",
                      (unsigned long long)parallel_ranks(&q->mix), tables->servers);
    if (!ok && err->code == REC_DATA)
        err->code = REC_NO; /* the record is well formed */
    return ok;
}

bool
parallel_again_is_idle(const struct parallel_question *q)
{
    return q->mix.recompute == PARALLEL_SELECTIVE && !q->model.style.unfused;
}

void
parallel_question_free(struct parallel_question *q)
{
    parallel_model_free(&q->model);
    free(q->block);
    free(q->stage_layers);
    free(q->again_of);
}
