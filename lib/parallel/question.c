/* Questions as records: a training record becomes a model, a mix and a machine, and gets
 * its answer. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------- */

struct field {
    const struct rec_reader *reader;
    const struct rec *rec;
    struct rec_error *err;
    bool ok;
};

static uint32_t
count(struct field *f, const char *key, uint32_t without)
{
    uint64_t value = without;
    f->ok = f->ok && rec_key_count(f->reader, f->rec, key, &value, f->err) &&
            (value <= INT32_MAX ||
             rec_reader_fail(f->reader, f->err, "%s is too large", key));
    return f->ok ? (uint32_t)value : 0;
}

/* A count that must be there, and at least 1. */
static uint32_t
needed(struct field *f, const char *key)
{
    uint32_t value = count(f, key, 0);
    if (f->ok && value == 0)
        f->ok =
            rec_reader_fail(f->reader, f->err, "a question needs %s=, at least 1", key);
    return value;
}

/* A degree: 1 without its key. */
static uint32_t
degree(struct field *f, const char *key)
{
    uint32_t value = count(f, key, 1);
    if (f->ok && value == 0)
        f->ok = rec_reader_fail(f->reader, f->err, "%s must be at least 1", key);
    return value;
}

/* Which of the words of a list the value is; the first without the key. */
static unsigned
word(struct field *f, const char *key, const char *const *list)
{
    struct rec_str value;
    char all[120] = "";
    unsigned i = 0;
    if (!f->ok || !rec_find_key(f->rec, key, &value))
        return 0;
    while (list[i] && !rec_str_is(value, list[i]))
        i++;
    if (list[i])
        return i;
    for (i = 0; list[i]; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "",
                 list[i]);
    f->ok = rec_reader_fail(f->reader, f->err, "%s must be one of %s, got '%.*s'", key,
                            all, (int)(value.len < 60 ? value.len : 60), value.ptr);
    return 0;
}

/* True if one of the words of a list with commas is this one. */
static bool
lists(const char *list, struct rec_str wanted)
{
    struct rec_str rest = rec_str(list), part;
    while (rec_str_split(&rest, ',', &part))
        if (part.len == wanted.len && memcmp(part.ptr, wanted.ptr, part.len) == 0)
            return true;
    return false;
}

static unsigned
overlap(struct field *f)
{
    static const char *const names[] = {"tp", "pp", "dp", "cp", "ep"};
    struct rec_str value, part;
    unsigned sum = 0;
    if (!f->ok || !rec_find_key(f->rec, "overlap", &value))
        return 0;
    while (f->ok && rec_str_split(&value, ',', &part)) {
        size_t i = 0;
        while (i < 5 && !rec_str_is(part, names[i]))
            i++;
        /* weights that are sharded are always gathered beside computing */
        if (i == 5 && !rec_str_is(part, "none") && !rec_str_is(part, "prefetch"))
            f->ok = rec_reader_fail(
                f->reader, f->err,
                "overlap must list tp, pp, dp, cp, ep, prefetch, or be none, got '%.*s'",
                (int)(part.len < 60 ? part.len : 60), part.ptr);
        sum |= i < 5 ? 1U << i : 0;
    }
    return sum;
}

/* Bits of the words that the value lists; `without` of a record without the key. */
static unsigned
words(struct field *f, const char *key, const char *const *list, unsigned without)
{
    struct rec_str value, part;
    unsigned sum = 0;
    if (!f->ok || !rec_find_key(f->rec, key, &value))
        return without;
    while (f->ok && rec_str_split(&value, ',', &part)) {
        unsigned i = 0;
        while (list[i] && !rec_str_is(part, list[i]))
            i++;
        if (!list[i] && !rec_str_is(part, "none"))
            f->ok = rec_reader_fail(f->reader, f->err, "%s has an unknown word '%.*s'",
                                    key, (int)(part.len < 60 ? part.len : 60), part.ptr);
        sum |= list[i] ? 1U << i : 0;
    }
    return sum;
}

static void
read_model(struct field *f, struct parallel_question *q)
{
    static const char *const biases[] = {"qkv", "projection", "mlp", NULL};
    static const char *const norms[] = {"rms", "layer", NULL};
    static const char *const qk_norms[] = {"none", "head", "heads", NULL};
    static const char *const mlps[] = {"swiglu", "gelu", "relu2", NULL};
    static const char *const attentions[] = {"fused", "unfused", NULL};
    unsigned mlp = word(f, "mlp", mlps);
    struct input_transformer *t = &q->t;
    struct rec_str value;
    bool gelu = mlp == 1;
    unsigned bias = words(f, "bias", biases, gelu ? 7 : 0);
    bool rms =
        rec_find_key(f->rec, "norm", &value) ? word(f, "norm", norms) == 0 : mlp == 0;
    *t = (struct input_transformer){
        .layers = needed(f, "layers"),
        .width = needed(f, "hidden"),
        .heads = needed(f, "heads"),
        .inner = count(f, "ffn", 0),
        .words = needed(f, "vocab"),
        .experts = count(f, "experts", 0),
        .experts_used = count(f, "topk", 0),
        .expert_inner = count(f, "expert_ffn", 0),
        .shared_inner = count(f, "shared_ffn", 0),
        .q_rank = count(f, "q_rank", 0),
        .kv_rank = count(f, "kv_rank", 0),
        .rope_width = count(f, "rope_dim", 0),
        .value_width = count(f, "value_dim", 0),
        .causal = true,
        .norm_before = true,
        .norm_final = true,
        .head = true,
        .rms = rms,
        .gated = mlp == 0,
        .qk_norm = (enum input_qk_norm)word(f, "qk_norm", qk_norms),
        .attention_bias = bias & 1,
        .output_bias = bias & 2,
        .mlp_bias = bias & 4,
        .tied = count(f, "tied", gelu) > 0,
        .activation = gelu       ? INPUT_GELU
                      : mlp == 0 ? INPUT_SILU
                                 : INPUT_RELU,
    };
    t->kv_heads = count(f, "kv", t->heads);
    t->head_width = count(f, "head_dim", t->heads ? t->width / t->heads : 0);
    q->sequence = needed(f, "seq");
    t->positions = count(f, "positions", gelu ? (uint32_t)q->sequence : 0);
    q->style.unfused = word(f, "attention", attentions) == 1;
    q->style.no_dropout = count(f, "dropout", gelu) == 0;
    if (f->ok && t->experts > 0 && (t->experts_used == 0 || t->expert_inner == 0))
        f->ok = rec_reader_fail(f->reader, f->err, "experts need topk= and expert_ffn=");
    if (f->ok && t->kv_heads == 0)
        f->ok = rec_reader_fail(f->reader, f->err, "kv must be at least 1");
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
        if ((found != 2 && found != 3) || (kind != 'd' && kind != 'e') ||
            times > layers - n)
            return false;
        for (; times > 0; times--, n++)
            block[n] = (struct input_block){.mixture = kind == 'e', .window = window};
    }
    return n == layers;
}

/* Layers that are not all alike. */
static void
read_blocks(struct field *f, struct parallel_question *q)
{
    struct rec_str text;
    bool listed = rec_find_key(f->rec, "blocks", &text);
    uint32_t dense = count(f, "dense_layers", 0), window = count(f, "window", 0);
    if (!f->ok || (dense == 0 && window == 0 && !listed))
        return;
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
        f->ok = rec_reader_fail(
            f->reader, f->err, "blocks must list %u layers as 3xd,58xe128, got '%.*s'",
            q->t.layers, (int)(text.len < 60 ? text.len : 60), text.ptr);
    q->t.block = q->block;
}

static void
read_mix(struct field *f, struct parallel_question *q)
{
    static const char *const again[] = {"none", "selective", "op-selective", "full",
                                        NULL};
    static const char *const precisions[] = {"bf16",  "fp16",  "fp8",
                                             "mxfp8", "nvfp4", NULL};
    static const char *const orders[] = {"tp-cp-dp-pp", "tp-cp-pp-dp", NULL};
    static const char *const attentions[] = {"bf16", "fp8", NULL};
    static const char *const ends[] = {"", "layers", NULL};
    static const char *const graphs[] = {"none", "layer", "iteration", NULL};
    static const char *const gathers[] = {"bf16", "fp8", NULL};
    unsigned precision = word(f, "precision", precisions);
    uint32_t gpus;
    struct rec_str schedule;
    struct parallel_mix *mix = &q->mix;
    char name[40];
    *mix = (struct parallel_mix){
        .tp = degree(f, "tp"),
        .pp = degree(f, "pp"),
        .vp = degree(f, "vp"),
        .dp = degree(f, "dp"),
        .cp = degree(f, "cp"),
        .ep = degree(f, "ep"),
        .zero = count(f, "zero", 0),
        .sequence = count(f, "sp", 0) > 0,
        .ends = word(f, "ends", ends) == 1,
        .micro = needed(f, "mbs"),
        .global = needed(f, "gbs"),
        .recompute = (enum parallel_recompute)word(f, "recompute", again),
        .lora = count(f, "lora_rank", 0),
        .overlap = overlap(f),
        .order = (enum parallel_order)word(f, "rank_order", orders),
        .precision = precision < 2   ? PARALLEL_BF16
                     : precision < 4 ? PARALLEL_FP8
                                     : PARALLEL_FP4,
        .fp16 = precision == 1,
        .attention_fp8 = word(f, "attention_precision", attentions) == 1,
        .gather_fp8 = word(f, "param_gather", gathers) == 1,
        .graph = word(f, "cuda_graph", graphs) > 0,
    };
    mix->etp = count(f, "etp", mix->sequence || q->t.experts == 0 ? 1 : mix->tp);
    snprintf(name, sizeof name, "%s", mix->vp > 1 ? "interleaved" : "1f1b");
    if (rec_find_key(f->rec, "schedule", &schedule))
        snprintf(name, sizeof name, "%.*s", (int)(schedule.len < 39 ? schedule.len : 39),
                 schedule.ptr);
    mix->schedule = parallel_schedule_find(name);
    if (f->ok && !mix->schedule)
        f->ok = rec_reader_fail(f->reader, f->err, "there is no schedule '%s'", name);
    if (f->ok && (mix->zero > 3 || mix->etp == 0))
        f->ok = rec_reader_fail(f->reader, f->err, "zero must be 0 to 3, etp at least 1");
    gpus = count(f, "gpus", 0);
    if (f->ok && !rec_find_key(f->rec, "dp", &schedule) && gpus > 0)
        mix->dp = gpus / (mix->tp * mix->pp * mix->cp);
    if (f->ok && gpus > 0 && gpus != parallel_ranks(mix))
        f->ok =
            rec_reader_fail(f->reader, f->err, "tp x pp x cp x dp is %llu, but gpus=%u",
                            (unsigned long long)parallel_ranks(mix), gpus);
}

/* ---- writing a model ----------------------------------------------------------- */

/* Writes the layers of a model as a list, if they are not all alike. */
static void
write_blocks(struct rec_writer *writer, const struct input_transformer *t)
{
    const struct input_block *b = t->block;
    const char *key = "\tblocks=";
    bool alike = true;
    for (unsigned i = 0; b && i < t->layers; i++)
        alike = alike && b[i].mixture == (t->experts > 0) && b[i].window == 0;
    if (alike)
        return;
    for (unsigned i = 0, n; b && i < t->layers; i += n) {
        char text[40];
        for (n = 1; i + n < t->layers && b[i + n].mixture == b[i].mixture &&
                    b[i + n].window == b[i].window;
             n++)
            continue;
        snprintf(text, sizeof text, "%s%ux%c", i ? "," : key, n,
                 b[i].mixture ? 'e' : 'd');
        rec_put_bytes(writer, text, strlen(text));
        if (b[i].window > 0) {
            snprintf(text, sizeof text, "%u", b[i].window);
            rec_put_bytes(writer, text, strlen(text));
        }
    }
}

static void
write_count(struct rec_writer *writer, const char *key, double value)
{
    if (value > 0)
        rec_num_key(writer, key, value);
}

bool
parallel_training_write(const struct input_transformer *t, const char *id,
                        double sequence, struct rec_writer *writer, struct rec_error *err)
{
    static const char *const qk_norms[] = {"none", "head", "heads"};
    const struct parallel_style style = {.no_dropout = true};
    struct parallel_model model;
    char bias[40];
    if (!parallel_model_make(t, sequence, &style, &model, err))
        return false;
    parallel_model_free(&model);
    if (t->norm_inside || t->norm_behind || t->norm_embedding || !t->norm_before ||
        !t->norm_final || t->sinks || t->router_bias || t->shared_gate)
        return rec_fail(err, REC_DATA,
                        "the model has norms, sinks, biases or gates that a training "
                        "record has no keys for");
    snprintf(bias, sizeof bias, "%s%s%s", t->attention_bias ? ",qkv" : "",
             t->output_bias ? ",projection" : "", t->mlp_bias ? ",mlp" : "");
    rec_begin(writer, "training");
    rec_text_field(writer, id);
    write_count(writer, "layers", t->layers);
    write_count(writer, "hidden", t->width);
    write_count(writer, "ffn", t->inner);
    write_count(writer, "heads", t->heads);
    write_count(writer, "kv", t->kv_heads);
    write_count(writer, "head_dim", t->head_width);
    write_count(writer, "vocab", t->words);
    write_count(writer, "seq", sequence);
    rec_text_key(writer, "mlp", t->gated ? "swiglu" : "gelu");
    rec_text_key(writer, "norm", t->rms ? "rms" : "layer");
    rec_num_key(writer, "positions", t->positions);
    rec_text_key(writer, "bias", bias[0] ? bias + 1 : "none");
    if (t->qk_norm != INPUT_QK_NONE)
        rec_text_key(writer, "qk_norm", qk_norms[t->qk_norm]);
    rec_num_key(writer, "tied", t->tied);
    rec_num_key(writer, "dropout", 0);
    write_count(writer, "experts", t->experts);
    write_count(writer, "topk", t->experts > 0 ? t->experts_used : 0);
    write_count(writer, "expert_ffn",
                t->experts == 0   ? 0
                : t->expert_inner ? t->expert_inner
                                  : t->inner);
    write_count(writer, "shared_ffn", t->shared_inner);
    write_count(writer, "q_rank", t->q_rank);
    write_count(writer, "kv_rank", t->kv_rank);
    write_count(writer, "rope_dim", t->rope_width);
    write_count(writer, "value_dim", t->value_width);
    write_blocks(writer, t);
    rec_end(writer);
    return true;
}

/* ---- the machine ------------------------------------------------------------- */

static const char *const precision_names[] = {"bf16", "fp8", "fp4"};

static const struct parallel_stack *
find_stack(const struct field *f, const struct parallel_stacks *stacks,
           struct parallel_question *q)
{
    struct rec_str wanted, family, release, device = rec_str(q->device);
    struct rec_str precision = rec_str(precision_names[q->mix.precision]);
    const struct parallel_stack *like = NULL;
    bool named = rec_find_key(f->rec, "stack", &wanted);
    bool known = rec_find_key(f->rec, "family", &family);
    bool dated = rec_find_key(f->rec, "release", &release);
    for (size_t i = stacks->n; i-- > 0;) {
        const struct parallel_stack *s = &stacks->stack[i];
        bool suits = (!s->device[0] || lists(s->device, device)) &&
                     (!s->precision[0] || lists(s->precision, precision));
        if (named && rec_str_is(wanted, s->name))
            return s;
        bool now = !s->releases[0] || (dated && lists(s->releases, release));
        if (!named && known && suits && now && lists(s->families, family))
            return s;
        if (!named && suits && s->device[0])
            like = s;
    }
    q->like = true;
    return like;
}

/* The name of a fabric: that of the device up to its memory, as h100 of h100-80. */
static const struct collective_fabric *
find_fabric(const struct collective_table *table, const char *device)
{
    size_t length = strcspn(device, "-");
    for (size_t i = table->nfabrics; i-- > 0;)
        if (strlen(table->fabric[i].name) == length &&
            strncmp(table->fabric[i].name, device, length) == 0)
            return &table->fabric[i];
    return NULL;
}

static bool
make_machine(struct field *f, const struct parallel_tables *tables,
             struct parallel_question *q)
{
    /* A message over adapters; measured between nodes of H100: 10 to 20 us. */
    static const double latency = 2e-5;
    struct parallel_machine *m = &q->machine;
    const struct collective_fabric *fabric;
    const struct device *device;
    struct rec_str name;
    if (!rec_find_key(f->rec, "device", &name))
        return rec_reader_fail(f->reader, f->err, "a question needs device=");
    snprintf(q->device, sizeof q->device, "%.*s", (int)(name.len < 63 ? name.len : 63),
             name.ptr);
    device = device_find(tables->devices, q->device);
    fabric = find_fabric(tables->collectives, q->device);
    *m = (struct parallel_machine){.node = degree(f, "node"), .latency = latency};
    if (!rec_find_key(f->rec, "node", &name))
        m->node = 8;
    if (!f->ok)
        return false;
    if (!device || device->processors == 0)
        return rec_fail(f->err, REC_NO, "no device '%s' with processors= is in the table",
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
                        precision_names[q->mix.precision]);
    m->processors = (double)device->processors;
    m->bandwidth = device->bandwidth;
    m->memory = device->memory;
    m->inside = fabric->bandwidth * fabric->reach;
    m->inside_latency = fabric->latency;
    m->adapter = fabric->adapter;
    m->table = tables->collectives;
    m->system = q->device;
    if (!rec_key_number(f->reader, f->rec, "nic", &m->adapter, f->err))
        return false;
    if (m->adapter <= 0 && parallel_ranks(&q->mix) > m->node)
        return rec_fail(f->err, REC_NO, "the bandwidth between nodes is not known: nic=");
    m->stack = find_stack(f, tables->stacks, q);
    if (!m->stack)
        return rec_fail(f->err, REC_NO, "no stack of %s in %s is known: stack= names one",
                        q->device, precision_names[q->mix.precision]);
    return true;
}

/* ---- answers ------------------------------------------------------------------- */

static bool
is_answer(struct rec_str key)
{
    static const char *const keys[] = {"seconds", "memory", "why", "error",
                                       "how",     "law",    "p10", "p90"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (rec_str_is(key, keys[i]))
            return true;
    return false;
}

/* Writes the question; an old answer is left out. */
static bool
write_question(const struct rec_reader *reader, const struct rec *rec,
               struct rec_writer *writer, struct rec_error *err)
{
    struct rec_str key, value;
    size_t at = 0;
    int status;
    rec_begin(writer, "training");
    rec_str_field(writer, rec->field[1]);
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        if (!is_answer(key)) {
            rec_put_bytes(writer, "\t", 1);
            rec_put_bytes(writer, key.ptr, key.len);
            rec_put_bytes(writer, "=", 1);
            rec_put_bytes(writer, value.ptr, value.len);
        }
    return status == 0;
}

static void
write_answer(struct rec_writer *writer, const struct parallel_question *q,
             const struct parallel_step *step, double jitter)
{
    struct parallel_wait wait =
        parallel_wait(jitter, (double)parallel_ranks(&q->mix), step->seconds);
    double seconds = step->seconds + wait.mean;
    const struct parallel_parts *p = &step->parts;
    const struct parallel_stack *stack = q->machine.stack;
    double error = q->like ? stack->like : stack->error;
    const struct {
        const char *name;
        double seconds;
    } part[] = {{"products", p->products},
                {"attention", p->attention},
                {"memory", p->moves},
                {"host", p->host},
                {"tensor", p->tensor},
                {"context", p->context},
                {"expert", p->expert},
                {"shards", p->shards},
                {"messages", step->transfer},
                {"idle", step->idle},
                {"gradients", step->once.gradients},
                {"gather", step->once.weights},
                {"optimizer", step->once.optimizer},
                {"slowest", wait.mean}};
    char why[400] = "", law[160];
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i].seconds >= 0.0005 * seconds)
            snprintf(why + strlen(why), sizeof why - strlen(why), "%s%s %.1f",
                     why[0] ? ", " : "", part[i].name, 100 * part[i].seconds / seconds);
    snprintf(law, sizeof law, "stack %s%s%s", stack->name,
             q->like ? ", of the same device and precision" : "",
             parallel_memory_sum(&step->memory) > q->machine.memory
                 ? "; the device has too little memory"
                 : "");
    rec_num_key(writer, "seconds", seconds);
    if (jitter > 0) {
        rec_num_key(writer, "p10", wait.p10);
        rec_num_key(writer, "p90", wait.p90);
    }
    rec_num_key(writer, "memory", parallel_memory_sum(&step->memory));
    rec_text_key(writer, "why", why);
    rec_text_key(writer, "how", q->like ? "like" : "stack");
    rec_text_key(writer, "law", law);
    if (error >= 0)
        rec_num_key(writer, "error", error);
}

bool
parallel_question_read(struct parallel_question *q, const struct parallel_tables *tables,
                       const struct rec_reader *reader, const struct rec *rec,
                       struct rec_error *err)
{
    struct field f = {reader, rec, err, true};
    bool ok;
    *q = (struct parallel_question){.like = false};
    if (!rec_check(reader, rec, err))
        return false;
    read_model(&f, q);
    read_mix(&f, q);
    read_blocks(&f, q);
    if (!f.ok || !make_machine(&f, tables, q))
        return false;
    ok = parallel_model_make(&q->t, q->sequence, &q->style, &q->model, err) &&
         parallel_mix_check(&q->mix, &q->model, err);
    if (!ok && err->code == REC_DATA)
        err->code = REC_NO; /* the record is well formed */
    return ok;
}

void
parallel_question_free(struct parallel_question *q)
{
    parallel_model_free(&q->model);
    free(q->block);
}

bool
parallel_answer_record(const struct parallel_tables *tables,
                       const struct rec_reader *reader, const struct rec *rec,
                       struct rec_writer *writer, struct parallel_count *count,
                       struct rec_error *err)
{
    struct parallel_question q;
    struct parallel_step step;
    bool found, ok;
    if (rec->type != REC_TRAINING) {
        rec_put_line(writer, rec->line);
        return true;
    }
    found = parallel_question_read(&q, tables, reader, rec, err);
    if (found && !parallel_step(&q.model, &q.mix, &q.machine, &step, err)) {
        found = false; /* its schedule has no order for these numbers */
        err->code = err->code == REC_DATA ? REC_NO : err->code;
    }
    ok = found || err->code == REC_NO;
    if (ok && write_question(reader, rec, writer, err)) {
        count->asked++;
        if (found)
            write_answer(writer, &q, &step, tables->jitter);
        else {
            count->refused++;
            rec_text_key(writer, "how", "none");
            rec_text_key(writer, "law", err->text);
        }
        rec_end(writer);
    } else
        ok = false;
    parallel_question_free(&q);
    return ok;
}
