/* Training records whose mix is searched: what they ask, and what is written of it. */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const again_words[] = {"none", "selective", "op-selective", "full"};

/* ---- reading ------------------------------------------------------------------- */

/* True of keys of the mix. */
static bool
is_mix(struct rec_str key)
{
    for (int i = 0; i < PARALLEL_CHOICES; i++)
        if (rec_str_is(key, parallel_choice_keys[i]))
            return true;
    return rec_str_is(key, "gpus") || rec_str_is(key, "etp");
}

/* True of what a plan answers. */
static bool
is_chosen(struct rec_str key)
{
    return parallel_is_answer(key) || is_mix(key) || rec_str_is(key, "overlap");
}

/* The record without its mix: one device, microbatches of one sample. */
static char *
write_bare(const struct rec_reader *reader, const struct rec *rec, struct rec_error *err)
{
    struct rec_text text;
    struct rec_str key, value;
    char *line;
    size_t at = 0;
    int status;
    if (!rec_text_open(&text, err))
        return NULL;
    fprintf(text.out, "training\t%.*s\tmbs=1", (int)rec->field[1].len, rec->field[1].ptr);
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        if (!is_mix(key))
            fprintf(text.out, "\t%.*s=%.*s", (int)key.len, key.ptr, (int)value.len,
                    value.ptr);
    fputc('\n', text.out);
    line = rec_text_close(&text, err);
    if (line && status < 0) {
        free(line);
        return NULL;
    }
    return line;
}

bool
parallel_plan_rule(struct parallel_plan *plan, const struct parallel_rule *rule,
                   struct rec_error *err)
{
    size_t n = plan->search.rules;
    if (!rec_grow(&plan->rule, &plan->room, n + 1, sizeof *plan->rule, err))
        return false;
    plan->rule[n] = *rule;
    plan->search.rule = plan->rule;
    plan->search.rules++;
    return true;
}

/* The value of a choice in a record. */
static bool
read_choice(const struct rec_reader *reader, const struct rec *rec,
            enum parallel_choice choice, struct rec_str text, uint64_t *value,
            struct rec_error *err)
{
    const char *key = parallel_choice_keys[choice];
    if (choice == PARALLEL_ENDS) {
        *value = rec_str_is(text, "layers");
        return true;
    }
    if (choice == PARALLEL_RECOMPUTE) {
        for (*value = 0; *value < 4; (*value)++)
            if (rec_str_is(text, again_words[*value]))
                return true;
        return rec_reader_fail(reader, err,
                               "recompute must be one of none, selective, op-selective, "
                               "full, got '%.*s'",
                               REC_SAID(text));
    }
    return rec_key_count(reader, rec, key, value, err) &&
           ((*value > 0 && *value <= INT32_MAX) || choice == PARALLEL_ZERO ||
            choice == PARALLEL_SEQUENCE ||
            rec_reader_fail(reader, err, "%s must be at least 1", key));
}

static bool
read_rules(struct parallel_plan *plan, const struct rec_reader *reader,
           const struct rec *rec, uint64_t *etp, struct rec_error *err)
{
    uint64_t value = 0;
    for (int i = 0; i < PARALLEL_CHOICES; i++) {
        enum parallel_choice choice = (enum parallel_choice)i;
        struct rec_str text;
        if (!rec_find_key(rec, parallel_choice_keys[i], &text))
            continue;
        if (!read_choice(reader, rec, choice, text, &value, err) ||
            !parallel_plan_rule(
                plan,
                &(struct parallel_rule){choice, (uint32_t)value, (uint32_t)value, false},
                err))
            return false;
    }
    value = 0;
    if (!rec_key_count(reader, rec, "gpus", &value, err))
        return false;
    plan->search.devices = value <= INT32_MAX ? (uint32_t)value : 0;
    return rec_key_count(reader, rec, "etp", etp, err) &&
           (*etp <= INT32_MAX || rec_reader_fail(reader, err, "etp is too large"));
}

bool
parallel_plan_read(struct parallel_plan *plan, const struct parallel_tables *tables,
                   const struct rec_reader *reader, const struct rec *rec,
                   struct rec_error *err)
{
    struct rec_reader *bare = NULL;
    struct parallel_question *q;
    struct rec_str text;
    struct rec one;
    uint64_t etp = 0;
    char *line;
    bool ok;
    *plan = (struct parallel_plan){.room = 0};
    plan->question = q = calloc(1, sizeof *q);
    if (!q)
        return rec_fail_memory(err);
    if (!rec_check(reader, rec, err) || !read_rules(plan, reader, rec, &etp, err) ||
        !(line = write_bare(reader, rec, err)))
        return false;
    bare = rec_reader_open_text("the training record", rec_str(line), err);
    ok = bare && rec_next(bare, &one, err) > 0 &&
         parallel_question_read(q, tables, bare, &one, err);
    rec_reader_close(bare);
    free(line);
    if (!ok)
        return false;
    plan->search.model = &q->model;
    plan->search.machine = &q->machine;
    plan->search.memory = q->machine.memory;
    plan->search.common = q->mix;
    plan->search.common.etp = (uint32_t)etp;
    if (!rec_find_key(rec, "schedule", &text))
        plan->search.common.schedule = NULL;
    if (!rec_find_key(rec, "overlap", &text) && !q->machine.stack->blocking)
        plan->search.common.overlap =
            PARALLEL_OVERLAP_TP | PARALLEL_OVERLAP_PP | PARALLEL_OVERLAP_DP;
    return true;
}

void
parallel_plan_free(struct parallel_plan *plan)
{
    if (plan->question)
        parallel_question_free(plan->question);
    free(plan->question);
    free(plan->rule);
    *plan = (struct parallel_plan){.room = 0};
}

double
parallel_plan_error(const struct parallel_plan *plan, bool *like)
{
    const struct parallel_stack *stack = plan->question->machine.stack;
    *like = plan->question->like;
    return *like ? stack->like : stack->error;
}

/* ---- figures --------------------------------------------------------------------- */

double
parallel_tokens_rate(const struct parallel_search *search,
                     const struct parallel_ranked *ranked)
{
    return ranked->mix.global * search->model->sequence / ranked->step.seconds;
}

double
parallel_utilisation(const struct parallel_search *search,
                     const struct parallel_ranked *ranked)
{
    return ranked->step.flops /
           (ranked->step.seconds * (double)parallel_ranks(&ranked->mix) *
            search->machine->peak[ranked->mix.precision]);
}

void
parallel_shares(const struct parallel_step *step,
                struct parallel_share share[PARALLEL_SHARES])
{
    const struct parallel_parts *p = &step->parts;
    const struct parallel_share all[PARALLEL_SHARES] = {
        {"products", p->products},
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
        {"optimizer", step->once.optimizer}};
    memcpy(share, all, sizeof all);
}

const char *
parallel_bound(const struct parallel_step *step)
{
    struct parallel_share share[PARALLEL_SHARES];
    size_t most = 0;
    parallel_shares(step, share);
    for (size_t i = 1; i < PARALLEL_SHARES; i++)
        if (share[i].seconds > share[most].seconds)
            most = i;
    return share[most].name;
}

/* ---- writing --------------------------------------------------------------------- */

static void
write_overlap(struct rec_writer *writer, unsigned overlap)
{
    static const char *const names[] = {"tp", "pp", "dp", "cp", "ep"};
    char text[20] = "";
    for (unsigned i = 0; i < 5; i++)
        if (overlap & 1U << i)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
                     text[0] ? "," : "", names[i]);
    rec_text_key(writer, "overlap", text[0] ? text : "none");
}

static void
write_mix(struct rec_writer *writer, const struct parallel_plan *plan,
          const struct parallel_mix *mix)
{
    rec_uint_key(writer, "gpus", parallel_ranks(mix));
    for (int i = 0; i < PARALLEL_CHOICES; i++) {
        uint32_t value = parallel_chosen(mix, (enum parallel_choice)i);
        const char *key = parallel_choice_keys[i];
        if (i == PARALLEL_RECOMPUTE)
            rec_text_key(writer, key, again_words[value]);
        else if (i == PARALLEL_ENDS && value > 0)
            rec_text_key(writer, key, "layers");
        else if (i != PARALLEL_ENDS &&
                 (i != PARALLEL_EP || plan->search.model->t.experts > 0))
            rec_uint_key(writer, key, value);
    }
    if (plan->search.common.etp > 0)
        rec_uint_key(writer, "etp", mix->etp);
    write_overlap(writer, mix->overlap);
}

bool
parallel_plan_write(const struct parallel_plan *plan, const struct rec_reader *reader,
                    const struct rec *rec, const struct parallel_ranked *ranked,
                    const struct parallel_planned *planned, struct rec_writer *writer,
                    struct rec_error *err)
{
    if (!rec_begin_answer(writer, reader, rec, is_chosen, err))
        return false;
    write_mix(writer, plan, &ranked->mix);
    if (!parallel_answer_keys(writer, plan->question, &ranked->step, 0, err))
        return false;
    rec_num_key(writer, "closed", ranked->closed.seconds);
    rec_num_key(writer, "tokens_s", parallel_tokens_rate(&plan->search, ranked));
    rec_num_key(writer, "mfu", parallel_utilisation(&plan->search, ranked));
    rec_text_key(writer, "bound", parallel_bound(&ranked->step));
    if (planned->cost >= 0)
        rec_num_key(writer, "cost", planned->cost);
    if (planned->frontier)
        rec_text_key(writer, "frontier", planned->frontier);
    if (planned->vary) {
        rec_text_key(writer, "vary", planned->vary);
        rec_num_key(writer, "factor", planned->factor);
        if (planned->kept >= 0)
            rec_num_key(writer, "kept", planned->kept);
    }
    rec_end(writer);
    return true;
}
