/* The mix of a training record. */
#include "keys.h"

#include <stdio.h>

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
                (int)(part.len < 60 ? part.len : 60), part.ptr);
        sum |= i < 5 ? 1U << i : 0;
    }
    return sum;
}

void
parallel_mix_read(struct parallel_key *f, struct parallel_question *q)
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
    unsigned precision = parallel_key_word(f, "precision", precisions);
    uint32_t gpus;
    struct rec_str schedule;
    struct parallel_mix *mix = &q->mix;
    char name[40];
    *mix = (struct parallel_mix){
        .tp = parallel_key_degree(f, "tp"),
        .pp = parallel_key_degree(f, "pp"),
        .vp = parallel_key_degree(f, "vp"),
        .dp = parallel_key_degree(f, "dp"),
        .cp = parallel_key_degree(f, "cp"),
        .ep = parallel_key_degree(f, "ep"),
        .zero = parallel_key_count(f, "zero", 0),
        .sequence = parallel_key_count(f, "sp", 0) > 0,
        .ends = parallel_key_word(f, "ends", ends) == 1,
        .micro = parallel_key_needed(f, "mbs"),
        .global = parallel_key_needed(f, "gbs"),
        .recompute = (enum parallel_recompute)parallel_key_word(f, "recompute", again),
        .lora = parallel_key_count(f, "lora_rank", 0),
        .overlap = overlap(f),
        .order = (enum parallel_order)parallel_key_word(f, "rank_order", orders),
        .precision = precision < 2   ? PARALLEL_BF16
                     : precision < 4 ? PARALLEL_FP8
                                     : PARALLEL_FP4,
        .attention_fp8 = parallel_key_word(f, "attention_precision", attentions) == 1,
        .gather_fp8 = parallel_key_word(f, "param_gather", gathers) == 1,
        .graph = parallel_key_word(f, "cuda_graph", graphs) > 0,
    };
    mix->etp =
        parallel_key_count(f, "etp", mix->sequence || q->t.experts == 0 ? 1 : mix->tp);
    snprintf(name, sizeof name, "%s", mix->vp > 1 ? "interleaved" : "1f1b");
    if (rec_find_key(f->rec, "schedule", &schedule))
        snprintf(name, sizeof name, "%.*s", (int)(schedule.len < 39 ? schedule.len : 39),
                 schedule.ptr);
    mix->schedule = parallel_schedule_find(name);
    if (f->ok && !mix->schedule)
        f->ok = rec_reader_fail(f->reader, f->err, "there is no schedule '%s'", name);
    if (f->ok && (mix->zero > 3 || mix->etp == 0))
        f->ok = rec_reader_fail(f->reader, f->err, "zero must be 0 to 3, etp at least 1");
    gpus = parallel_key_count(f, "gpus", 0);
    if (f->ok && !rec_find_key(f->rec, "dp", &schedule) && gpus > 0)
        mix->dp = gpus / (mix->tp * mix->pp * mix->cp);
    if (f->ok && gpus > 0 && gpus != parallel_ranks(mix))
        f->ok =
            rec_reader_fail(f->reader, f->err, "tp x pp x cp x dp is %llu, but gpus=%u",
                            (unsigned long long)parallel_ranks(mix), gpus);
}
