/* What several words say together, and what Megatron takes for words that are not there
 * (megatron/training/arguments.py). */
#include "words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ending {
    struct parallel_words *args;
    const char *tp; /* said elsewhere; NULL: it is not */
    struct rec_error *err;
};

static bool
set(struct ending *r, const char *key, const char *value)
{
    return parallel_words_set(r->args, key, value, r->err);
}

static bool
ignore(struct ending *r, const char *word)
{
    return parallel_words_ignore(r->args, word, r->err);
}

static double
number(const struct parallel_words *args, const char *key, double without)
{
    const char *value = parallel_words_find(args, key);
    return value ? strtod(value, NULL) : without;
}

static bool
set_number(struct ending *r, const char *key, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.0f", value);
    return set(r, key, text);
}

/* Four times the hidden size; of a gated MLP, whose third product is as large, 2/3 of it,
 * in multiples of 64. */
static double
without_ffn(const struct parallel_words *args)
{
    double hidden = number(args, "hidden", 0);
    bool gated = strcmp(parallel_words_find(args, "mlp"), "swiglu") == 0;
    return gated ? floor(4 * hidden * 2 / 3 / 64) * 64 : 4 * hidden;
}

/* Of a model without experts what is said of them does not count. */
static bool
drop_experts(struct ending *r)
{
    static const char *const keys[][2] = {
        {"topk", "--moe-router-topk without --num-experts"},
        {"expert_ffn", "--moe-ffn-hidden-size without --num-experts"},
        {"shared_ffn", "--moe-shared-expert-intermediate-size without --num-experts"}};
    struct parallel_words *args = r->args;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct parallel_arg *a = parallel_words_arg(args, keys[i][0]);
        if (!a)
            continue;
        *a = args->arg[--args->n];
        if (!parallel_words_ignore(args, keys[i][1], r->err))
            return false;
    }
    return true;
}

/* What Megatron takes for a model without the word. */
static bool
finish_model(struct ending *r)
{
    static const struct parallel_arg without[] = {{"mlp", "gelu"},
                                                  {"norm", "layer"},
                                                  {"tied", "1"},
                                                  {"bias", "qkv,projection,mlp"}};
    const struct parallel_words *args = r->args;
    const char *positions = parallel_words_find(args, ".positions");
    bool dropout = number(args, ".drop_a", 0.1) > 0 || number(args, ".drop_h", 0.1) > 0;
    if (!parallel_words_arg(args, "layers") || !parallel_words_arg(args, "hidden"))
        return true;
    if (!parallel_words_arg(args, "experts") && !drop_experts(r))
        return false;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (!parallel_words_arg(args, without[i].key) &&
            !set(r, without[i].key, without[i].value))
            return false;
    if (parallel_words_arg(args, ".qkv") &&
        strcmp(parallel_words_find(args, "bias"), "none") == 0 && !set(r, "bias", "qkv"))
        return false;
    if (!parallel_words_arg(args, "ffn") && !set_number(r, "ffn", without_ffn(args)))
        return false;
    if (parallel_words_arg(args, "experts") && !parallel_words_arg(args, "topk") &&
        !set(r, "topk", "2"))
        return false;
    if (parallel_words_arg(args, "experts") && !parallel_words_arg(args, "expert_ffn") &&
        !set(r, "expert_ffn", parallel_words_find(args, "ffn")))
        return false;
    if (!parallel_words_arg(args, ".grouped") && parallel_words_arg(args, ".groups") &&
        !ignore(r, "--num-query-groups without --group-query-attention"))
        return false;
    if (parallel_words_arg(args, ".grouped") &&
        !set_number(r, "kv", number(args, ".groups", 1)))
        return false;
    if ((positions || !parallel_words_arg(args, "positions")) &&
        !set_number(r, "positions",
                    positions && strcmp(positions, "0") == 0
                        ? 0
                        : number(args, ".most", number(args, "seq", 0))))
        return false;
    return parallel_words_arg(args, "dropout") || set(r, "dropout", dropout ? "1" : "0");
}

/* A recipe says how 8 bits are scaled, and alone does not turn them on. */
static bool
finish_precision(struct ending *r)
{
    const char *narrow = parallel_words_find(r->args, "precision");
    const char *recipe = parallel_words_find(r->args, ".recipe");
    const char *wide = parallel_words_find(r->args, ".wide");
    if (recipe && !narrow &&
        !parallel_words_ignore(r->args, "--fp8-recipe without --fp8-format", r->err))
        return false;
    if (recipe && narrow && strcmp(narrow, "fp8") == 0)
        return set(r, "precision", recipe);
    return narrow || !wide || set(r, "precision", wide);
}

/* Keys and values go round beside computing unless another way is said. */
static bool
finish_context(struct ending *r)
{
    const struct parallel_words *args = r->args;
    const char *how = parallel_words_find(args, ".cp");
    if (!how && number(args, "cp", 1) > 1)
        how = "p2p";
    if (how && strcmp(how, "a2a") == 0)
        return set(r, "cp_comm", "a2a");
    if (how && strcmp(how, "gather") == 0 &&
        !ignore(r, "--cp-comm-type allgather (as p2p without overlap)"))
        return false;
    return !how || strcmp(how, "p2p") != 0 || set(r, "overlap", "cp");
}

/* Experts have the tensor ranks of other layers unless it is said. */
static bool
finish_experts(struct ending *r)
{
    const struct parallel_words *args = r->args;
    const char *tp = r->tp ? r->tp : parallel_words_find(args, "tp");
    bool experts = parallel_words_arg(args, "experts") || number(args, "ep", 1) > 1;
    return !experts || !tp || parallel_words_arg(args, "etp") || set(r, "etp", tp);
}

/* Variables that are true or false. What is false does not count as said by a record. */
static bool
finish_truths(struct ending *r)
{
    static const char *const rows[][4] = {{".sp", "sp", "1", "0"},
                                          {".zero", "zero", "1", "0"},
                                          {".tp_beside", "overlap", "tp", NULL},
                                          {".fp8", "precision", "fp8", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *said = parallel_words_find(r->args, rows[i][0]);
        const char *value = said ? rows[i][*said == '1' ? 2 : 3] : NULL;
        bool is = *rows[i][1] != 'o' && parallel_words_arg(r->args, rows[i][1]);
        if (value && !is && !set(r, rows[i][1], value))
            return false;
    }
    return true;
}

/* What Megatron's FSDP shards counts, beside --use-distributed-optimizer, which it needs,
 * and only with it. */
static bool
finish_shards(struct ending *r)
{
    const char *strategy = parallel_words_find(r->args, ".strategy");
    if (parallel_words_arg(r->args, ".fsdp2"))
        return set(r, "zero", "3");
    if (parallel_words_arg(r->args, ".fsdp"))
        return set(r, "zero", strategy ? strategy : "0");
    return !strategy ||
           parallel_words_ignore(
               r->args, "--data-parallel-sharding-strategy without --use-megatron-fsdp",
               r->err);
}

/* The split counts embedding and head as a layer each, or none of them. */
static bool
finish_ends(struct ending *r)
{
    bool first = parallel_words_arg(r->args, ".first");
    bool last = parallel_words_arg(r->args, ".last");
    if (first != last)
        return rec_fail(r->err, REC_DATA,
                        "--account-for-%s-in-pipeline-split without "
                        "--account-for-%s-in-pipeline-split is not modelled",
                        first ? "embedding" : "loss", first ? "loss" : "embedding");
    return !first || set(r, "ends", "layers");
}

/* Of layers that run again in full: which. */
static bool
finish_recompute(struct ending *r)
{
    const struct parallel_words *args = r->args;
    const char *method = parallel_words_find(args, ".method"), *again;
    double layers = number(args, ".again", 1);
    if (parallel_words_arg(args, ".selective") && !set(r, "recompute", "selective"))
        return false;
    again = parallel_words_find(args, "recompute");
    if (!again || strcmp(again, "full") != 0) {
        if (method && !ignore(r, "--recompute-method without full recomputation"))
            return false;
        return !parallel_words_arg(args, ".again") ||
               ignore(r, "--recompute-num-layers without full recomputation");
    }
    if (!method && parallel_words_arg(args, ".again"))
        return rec_fail(r->err, REC_DATA,
                        "--recompute-num-layers needs --recompute-method");
    if (method && strcmp(method, "block") == 0)
        return set_number(r, "recompute", layers);
    if (layers > 1)
        return rec_fail(r->err, REC_DATA,
                        "--recompute-method uniform with groups of %.0f layers is "
                        "not modelled; --recompute-num-layers 1 is",
                        layers);
    return true;
}

/* Replicas exchange gradients and sharded weights beside computing, or neither. */
static bool
finish_overlap(struct ending *r)
{
    const struct parallel_words *args = r->args;
    const char *overlap = parallel_words_find(args, "overlap");
    bool gradients = overlap && strstr(overlap, "dp");
    if (parallel_words_arg(args, ".gather"))
        return set(r, "overlap", "dp");
    return !gradients || number(args, "zero", 0) != 1 ||
           ignore(r, "the lack of --overlap-param-gather beside --overlap-grad-reduce");
}

static bool
finish(struct ending *r)
{
    const struct parallel_words *args = r->args;
    double nodes = number(args, ".nodes", 0), each = number(args, ".each", 0);
    if (!finish_truths(r) || !finish_shards(r) || !finish_ends(r))
        return false;
    if (each > 0 && !set_number(r, "node", each))
        return false;
    if (nodes > 0 && each > 0 && !parallel_words_arg(args, "gpus") &&
        !set_number(r, "gpus", nodes * each))
        return false;
    if (!finish_precision(r) || !finish_context(r) || !finish_experts(r) ||
        !finish_recompute(r) || !finish_overlap(r))
        return false;
    /* interleaved pipelines of Megatron send beside computing, unless they are told not
     * to */
    if ((number(args, "vp", 1) > 1 || parallel_words_arg(args, "chunk_layers")) &&
        !parallel_words_arg(args, ".alone") && !set(r, "overlap", "pp"))
        return false;
    return finish_model(r);
}

/* Keys that were only there to be put together go out. */
static void
drop_parts(struct parallel_words *args)
{
    size_t n = 0;
    for (size_t i = 0; i < args->n; i++)
        if (args->arg[i].key[0] != '.')
            args->arg[n++] = args->arg[i];
    args->n = n;
}

bool
parallel_words_finish(struct parallel_words *args, const char *tp, struct rec_error *err)
{
    struct ending r = {args, tp, err};
    bool ok = finish(&r);
    drop_parts(args);
    return ok;
}
