/* Answers training records. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
parallel_is_answer(struct rec_str key)
{
    static const char *const keys[] = {
        "seconds",      "memory",         "why",        "error",       "how",
        "law",          "samples_s",      "tokens_s",   "mfu",         "mfu_causal",
        "hfu",          "hfu_causal",     "bubble",     "exposed_tp",  "exposed_pp",
        "exposed_dp",   "exposed_cp",     "exposed_ep", "of_weights",  "of_gradients",
        "of_optimizer", "of_activations", "of_working", "of_overhead", "days",
        "dollars",      "closed",         "bound",      "cost",        "vary",
        "factor",       "frontier",       "kept",       "p10",         "p90",
        "from_table",   "from_form"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (rec_str_is(key, keys[i]))
            return true;
    return false;
}

static void
write_memory(struct rec_writer *writer, const struct parallel_memory *m)
{
    rec_num_key(writer, "of_weights", m->weights);
    rec_num_key(writer, "of_gradients", m->gradients);
    rec_num_key(writer, "of_optimizer", m->optimizer);
    rec_num_key(writer, "of_activations", m->activations);
    rec_num_key(writer, "of_working", m->working);
    if (m->overhead > 0)
        rec_num_key(writer, "of_overhead", m->overhead);
}

/* What there must be more of for a mix to fit. Replicas shard what they hold. If 1,024
 * times as many do not suffice, only ranks that divide the model do. */
static bool
what_helps(const struct parallel_question *q, const char **what, struct rec_error *err)
{
    enum { TIMES = 1024 };
    struct parallel_mix mix = q->mix;
    struct parallel_step step;
    mix.zero = 3, mix.recompute = PARALLEL_FULL, mix.again = 0, mix.again_of = NULL;
    mix.shard = 0;
    if (mix.dp <= UINT32_MAX / TIMES && mix.global <= UINT32_MAX / TIMES)
        mix.dp *= TIMES, mix.global *= TIMES;
    if (!mix.schedule->given)
        mix.micro = 1;
    *what = "devices";
    if (!parallel_step(&q->model, &mix, &q->machine, &step, err))
        return err->code == REC_DATA || err->code == REC_NO;
    if (parallel_memory_sum(&step.memory) > q->machine.memory)
        *what = "tensor, context or pipeline ranks (not replicas)";
    return true;
}

/* What fits where the mix does not, of what changes least of it, into text. */
static bool
what_fits(const struct parallel_question *q, char *text, size_t size,
          struct rec_error *err)
{
    static const struct {
        const char *name;
        uint32_t zero;
        bool full, one;
    } change[] = {
        {"zero=1", 1, false, false},
        {"mbs=1", 0, false, true},
        {"zero=1 and mbs=1", 1, false, true},
        {"recompute=full", 0, true, false},
        {"zero=1 and recompute=full", 1, true, false},
        {"zero=3", 3, false, false},
        {"zero=3 and recompute=full", 3, true, false},
        {"zero=3, recompute=full and mbs=1", 3, true, true},
    };
    struct parallel_step step;
    const char *what;
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        struct parallel_mix mix = q->mix;
        if (change[i].zero > mix.zero)
            mix.zero = change[i].zero;
        if (change[i].full) {
            mix.recompute = PARALLEL_FULL;
            mix.again = 0;
            mix.again_of = NULL;
        }
        if (change[i].one && !mix.schedule->given)
            mix.micro = 1;
        if (!parallel_step(&q->model, &mix, &q->machine, &step, err)) {
            if (err->code != REC_DATA && err->code != REC_NO)
                return false;
        } else if (parallel_memory_sum(&step.memory) <= q->machine.memory) {
            snprintf(text, size, "; %s would fit: %.3g GB", change[i].name,
                     parallel_memory_sum(&step.memory) / 1e9);
            return true;
        }
    }
    if (!what_helps(q, &what, err))
        return false;
    snprintf(text, size, "; neither shards nor recomputation suffice: more %s would",
             what);
    return true;
}

/* What follows from the seconds. */
static void
write_figures(struct rec_writer *writer, const struct parallel_question *q,
              const struct parallel_step *step, const struct parallel_count *count,
              bool measured)
{
    const struct parallel_mix *mix = &q->mix;
    double ranks = (double)parallel_ranks(mix), samples = mix->global / step->seconds;
    double run = step->seconds * ranks * q->machine.peak[mix->precision];
    double days = count->tokens / (samples * q->sequence) / 86400;
    rec_num_key(writer, "samples_s", samples);
    rec_num_key(writer, "tokens_s", samples * q->sequence);
    rec_num_key(writer, "mfu", step->flops / run);
    rec_num_key(writer, "mfu_causal", step->causal / run);
    rec_num_key(writer, "hfu", parallel_hardware_flops(&q->model, mix, 1) / run);
    rec_num_key(writer, "hfu_causal", parallel_hardware_flops(&q->model, mix, 0.5) / run);
    rec_num_key(writer, "bubble", step->bubble);
    if (measured) {
        double both = step->parts.products + step->parts.attention;
        rec_num_key(writer, "from_table", step->parts.measured / step->seconds);
        rec_num_key(writer, "from_form", (both - step->parts.measured) / step->seconds);
    }
    rec_num_key(writer, "exposed_tp", step->parts.tensor);
    rec_num_key(writer, "exposed_pp", step->transfer);
    rec_num_key(writer, "exposed_dp",
                step->parts.shards + step->once.gradients + step->once.weights);
    rec_num_key(writer, "exposed_cp", step->parts.context);
    rec_num_key(writer, "exposed_ep", step->parts.expert);
    write_memory(writer, &step->memory);
    if (count->tokens > 0)
        rec_num_key(writer, "days", days);
    if (count->tokens > 0 && count->price > 0)
        rec_num_key(writer, "dollars", days * 24 * ranks * count->price);
}

bool
parallel_answer_keys(struct rec_writer *writer, const struct parallel_question *q,
                     const struct parallel_step *step, double jitter,
                     struct rec_error *err)
{
    struct parallel_wait wait =
        parallel_wait(jitter, (double)parallel_ranks(&q->mix), step->seconds);
    double seconds = step->seconds + wait.mean;
    const struct parallel_stack *stack = q->machine.stack;
    double error = q->like ? stack->like : stack->error;
    bool little = parallel_memory_sum(&step->memory) > q->machine.memory;
    struct parallel_share part[PARALLEL_SHARES];
    char why[400] = "", law[300], fits[120] = "";
    parallel_shares(step, part);
    for (size_t i = 0; i < PARALLEL_SHARES; i++)
        if (part[i].seconds >= 0.0005 * seconds)
            snprintf(why + strlen(why), sizeof why - strlen(why), "%s%s %.1f",
                     why[0] ? ", " : "", part[i].name, 100 * part[i].seconds / seconds);
    if (wait.mean >= 0.0005 * seconds)
        snprintf(why + strlen(why), sizeof why - strlen(why), ", slowest %.1f",
                 100 * wait.mean / seconds);
    if (little && !what_fits(q, fits, sizeof fits, err))
        return false;
    snprintf(law, sizeof law, "stack %s%s%s%s", stack->name,
             q->chip   ? ", of a device with the same chip"
             : q->like ? ", of the same device and precision"
                       : "",
             little ? "; the device has too little memory" : "", fits);
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
    return true;
}

/* A device of the pipeline. Its parts are all of the step. */
static void
write_spent(struct rec_writer *writer, struct rec_str id, uint32_t device,
            const struct parallel_step *step)
{
    struct parallel_share part[PARALLEL_SHARES];
    parallel_shares(step, part);
    rec_begin(writer, "spent");
    rec_str_field(writer, id);
    rec_uint_field(writer, device);
    rec_num_field(writer, step->seconds);
    for (size_t i = 0; i < PARALLEL_SHARES; i++)
        rec_num_key(writer, part[i].name, part[i].seconds);
    write_memory(writer, &step->memory);
    rec_end(writer);
}

bool
parallel_answer_record(const struct parallel_tables *tables,
                       const struct rec_reader *reader, const struct rec *rec,
                       struct rec_writer *writer, struct parallel_count *count,
                       struct rec_error *err)
{
    struct parallel_question q;
    struct parallel_step step, waited, *each = NULL;
    bool found, ok;
    if (rec->type != REC_TRAINING) {
        rec_put_line(writer, rec->line);
        return true;
    }
    found = parallel_question_read(&q, tables, reader, rec, err);
    if (found && count->stages && !(each = calloc(q.mix.pp, sizeof *each)))
        found = rec_fail_memory(err);
    if (found && !parallel_step_each(&q.model, &q.mix, &q.machine, &step, each, err)) {
        found = false; /* its schedule has no order for these numbers */
        err->code = err->code == REC_DATA ? REC_NO : err->code;
    }
    ok = found || err->code == REC_NO;
    if (ok && rec_begin_answer(writer, reader, rec, parallel_is_answer, err)) {
        count->asked++;
        if (found) {
            ok = parallel_answer_keys(writer, &q, &step, count->jitter, err);
            waited = step;
            waited.seconds +=
                parallel_wait(count->jitter, (double)parallel_ranks(&q.mix), step.seconds)
                    .mean;
            write_figures(writer, &q, &waited, count, tables->kernels != NULL);
            count->unknown += tables->kernels && step.parts.measured <= 0;
            count->idle += parallel_again_is_idle(&q);
        } else {
            count->refused++;
            rec_text_key(writer, "how", "none");
            rec_text_key(writer, "law", err->text);
        }
        rec_end(writer);
        for (uint32_t r = 0; found && each && r < q.mix.pp; r++)
            write_spent(writer, rec->field[1], r, &each[r]);
        ok = ok &&
             (!found || count->near == 0 ||
              parallel_near_write(tables, &q, rec->field[1], count->near, writer, err));
    } else
        ok = false;
    free(each);
    parallel_question_free(&q);
    return ok;
}
