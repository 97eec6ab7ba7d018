/* The mix of a training record. */
#include "keys.h"

#include <string.h>

static unsigned
overlap(struct parallel_key *f)
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
                REC_SAID(part));
        sum |= i < 5 ? 1U << i : 0;
    }
    return sum;
}

static unsigned
frozen(struct parallel_key *f)
{
    /* in the order of enum parallel_part */
    static const char *const parts[] = {"embedding", "attention", "mlp", "experts",
                                        "norms",     "head",      "all", NULL};
    unsigned sum = parallel_key_words(f, "frozen", parts, 0);
    return sum > PARALLEL_PART_ALL ? PARALLEL_PART_ALL : sum;
}

static unsigned
rank_order(struct parallel_key *f)
{
    struct rec_str value;
    unsigned order = 0;
    if (f->ok && rec_find_key(f->rec, "rank_order", &value) &&
        !parallel_order_read(value, &order))
        f->ok = rec_reader_fail(f->reader, f->err,
                                "rank_order must have tp, cp, dp, pp, each once, and may "
                                "have ep, as tp-cp-ep-dp-pp, got '%.*s'",
                                REC_SAID(value));
    return order;
}

/* none, full ..., or the numbers of layers that run again. */
static void
read_again(struct parallel_key *f, struct parallel_question *q)
{
    static const char *const names[] = {"none", "selective", "op-selective", "full",
                                        NULL};
    struct parallel_mix *mix = &q->mix;
    struct rec_str value;
    size_t n;
    if (!f->ok || !rec_find_key(f->rec, "recompute", &value))
        return;
    if (value.len == 0 || value.ptr[0] < '0' || value.ptr[0] > '9') {
        mix->recompute =
            (enum parallel_recompute)parallel_key_word(f, "recompute", names);
        return;
    }
    mix->recompute = PARALLEL_FULL;
    q->again_of = parallel_key_counts(f, "recompute", &n);
    for (size_t i = 0; f->ok && i < n; i++)
        if (q->again_of[i] > q->t.layers)
            f->ok = rec_reader_fail(f->reader, f->err,
                                    "recompute names %u layers of %llu; for all say "
                                    "recompute=full",
                                    q->again_of[i], (unsigned long long)q->t.layers);
    if (n == 1) {
        mix->again = q->again_of[0];
        if (mix->again == 0)
            mix->recompute = PARALLEL_KEEP_ALL;
        return;
    }
    mix->again_of = q->again_of;
    if (f->ok && n != (uint64_t)mix->pp * mix->vp)
        f->ok = rec_reader_fail(f->reader, f->err,
                                "recompute lists %zu numbers for %llu virtual stages "
                                "(pp x vp)",
                                n, (unsigned long long)mix->pp * mix->vp);
}

/* How the layers are cut into virtual stages. */
static void
read_stages(struct parallel_key *f, struct parallel_question *q)
{
    static const char *const ends[] = {"", "layers", NULL};
    struct parallel_mix *mix = &q->mix;
    struct rec_str value;
    uint64_t sum = 0, size = parallel_key_count(f, "chunk_layers", 0);
    size_t n;
    mix->ends = parallel_key_word(f, "ends", ends) == 1;
    if (f->ok && size > 0 && !rec_find_key(f->rec, "vp", &value)) {
        uint64_t all = q->t.layers + (mix->ends ? 2 : 0);
        if (all % (size * mix->pp) != 0)
            f->ok = rec_fail(f->err, REC_NO,
                             "%llu layers do not make whole virtual stages of %llu "
                             "layers on %u devices",
                             (unsigned long long)all, (unsigned long long)size, mix->pp);
        mix->vp = (uint32_t)(all / (size * mix->pp));
    }
    q->stage_layers = parallel_key_counts(f, "stage_layers", &n);
    if (!q->stage_layers)
        return;
    for (size_t i = 0; i < n; i++)
        sum += q->stage_layers[i];
    if (!rec_find_key(f->rec, "ends", &value))
        mix->ends = sum == (uint64_t)q->t.layers + 2;
    if (n != (uint64_t)mix->pp * mix->vp)
        f->ok = rec_reader_fail(f->reader, f->err,
                                "stage_layers lists %zu numbers for %llu virtual stages "
                                "(pp x vp)",
                                n, (unsigned long long)mix->pp * mix->vp);
    mix->layers = q->stage_layers;
}

static void
read_schedule(struct parallel_key *f, const struct parallel_tables *tables,
              struct parallel_mix *mix)
{
    struct rec_str name;
    mix->schedule = parallel_schedule_find(mix->vp > 1 ? "interleaved" : "1f1b");
    if (!f->ok || !rec_find_key(f->rec, "schedule", &name))
        return;
    mix->schedule = NULL;
    for (size_t i = 0; parallel_schedules[i] && !mix->schedule; i++)
        if (rec_str_is(name, parallel_schedules[i]->name))
            mix->schedule = parallel_schedules[i];
    for (size_t i = 0; tables->own && i < tables->own->n && !mix->schedule; i++)
        if (rec_str_is(name, tables->own->schedule[i].name))
            mix->schedule = &tables->own->schedule[i];
    if (!mix->schedule)
        f->ok = rec_reader_fail(f->reader, f->err, "there is no schedule '%.*s'",
                                REC_SAID(name));
}

/* Replicas, and with them the samples of a step. */
static void
read_replicas(struct parallel_key *f, struct parallel_mix *mix)
{
    uint64_t gpus = parallel_key_count(f, "gpus", 0), batch;
    uint64_t replica = (uint64_t)mix->tp * mix->pp * mix->cp;
    struct rec_str value;
    if (f->ok && gpus == 0 && rec_find_key(f->rec, "gpus", &value))
        f->ok = rec_reader_fail(f->reader, f->err, "gpus must be at least 1");
    if (f->ok && !rec_find_key(f->rec, "dp", &value) && gpus > 0) {
        if (gpus % replica != 0)
            f->ok = rec_fail(
                f->err, REC_NO,
                "%llu devices are no whole number of replicas of tp x pp x "
                "cp = %llu; %llu would be",
                (unsigned long long)gpus, (unsigned long long)replica,
                (unsigned long long)(gpus < replica ? replica : gpus - gpus % replica));
        mix->dp = (uint32_t)(gpus / replica);
    }
    if (f->ok && gpus > 0 && gpus != parallel_ranks(mix))
        f->ok = rec_reader_fail(
            f->reader, f->err,
            "tp x pp x cp x dp is %llu, but gpus=%llu; %s=%llu would do",
            (unsigned long long)parallel_ranks(mix), (unsigned long long)gpus,
            gpus % replica == 0 ? "dp" : "gpus",
            (unsigned long long)(gpus % replica == 0 ? gpus / replica
                                                     : parallel_ranks(mix)));
    batch = parallel_key_count(f, "replica_batch", 0);
    if (f->ok && batch > 0 && !rec_find_key(f->rec, "gbs", &value)) {
        if (batch * mix->dp > INT32_MAX)
            f->ok = rec_reader_fail(f->reader, f->err, "replica_batch is too large");
        mix->global = (uint32_t)(batch * mix->dp);
    } else
        mix->global = parallel_key_needed(f, "gbs");
}

void
parallel_mix_read(struct parallel_key *f, const struct parallel_tables *tables,
                  struct parallel_question *q)
{
    static const char *const precisions[] = {"bf16",  "fp16",  "fp8",
                                             "mxfp8", "nvfp4", NULL};
    static const char *const attentions[] = {"bf16", "fp8", NULL};
    static const char *const graphs[] = {"none", "layer", "iteration", NULL};
    static const char *const gathers[] = {"bf16", "fp8", NULL};
    static const char *const gradients[] = {"stack", "bf16", "fp32", NULL};
    static const char *const contexts[] = {"p2p", "a2a", NULL};
    static const char *const adapters[] = {"qkv", "proj", "mlp", NULL};
    unsigned precision = parallel_key_word(f, "precision", precisions);
    struct parallel_mix *mix = &q->mix;
    *mix = (struct parallel_mix){
        .tp = parallel_key_degree(f, "tp"),
        .pp = parallel_key_degree(f, "pp"),
        .vp = parallel_key_degree(f, "vp"),
        .dp = parallel_key_degree(f, "dp"),
        .cp = parallel_key_degree(f, "cp"),
        .ep = parallel_key_degree(f, "ep"),
        .zero = parallel_key_count(f, "zero", 0),
        .shard = parallel_key_count(f, "shard", 0),
        .sequence = parallel_key_count(f, "sp", 0) > 0,
        .micro = parallel_key_needed(f, "mbs"),
        .frozen = frozen(f),
        .lora = parallel_key_count(f, "lora_rank", 0),
        .adapters = parallel_key_words(f, "lora_on", adapters,
                                       PARALLEL_ADAPT_QKV | PARALLEL_ADAPT_PROJECTION),
        .overlap = overlap(f),
        .order = rank_order(f),
        .precision = precision < 2   ? PARALLEL_BF16
                     : precision < 4 ? PARALLEL_FP8
                                     : PARALLEL_FP4,
        .fp16 = precision == 1,
        .deal_heads = parallel_key_word(f, "cp_comm", contexts) == 1,
        .blocks = precision == 3,
        .attention_fp8 = parallel_key_word(f, "attention_precision", attentions) == 1,
        .activation_fp8 = parallel_key_word(f, "activation_input", attentions) == 1,
        .gather_fp8 = parallel_key_word(f, "param_gather", gathers) == 1,
        .gradient = 2 * parallel_key_word(f, "gradients", gradients),
        .taken = parallel_key_count(f, "exchange_processors", 0),
        .graph = parallel_key_word(f, "cuda_graph", graphs) > 0,
    };
    mix->etp =
        parallel_key_count(f, "etp", mix->sequence || q->t.experts == 0 ? 1 : mix->tp);
    if (f->ok && (mix->zero > 3 || mix->etp == 0))
        f->ok = rec_reader_fail(f->reader, f->err, "zero must be 0 to 3, etp at least 1");
    if (f->ok && mix->gather_fp8 && mix->precision == PARALLEL_BF16)
        f->ok = rec_reader_fail(f->reader, f->err,
                                "param_gather=fp8 needs a precision of 8 or 4 bits");
    read_stages(f, q);
    read_again(f, q);
    read_schedule(f, tables, mix);
    read_replicas(f, mix);
}
