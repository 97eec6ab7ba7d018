/* Answers training records. */
#include "private.h"

#include <stdio.h>
#include <string.h>

static bool
is_answer(struct rec_str key)
{
    static const char *const keys[] = {"seconds", "memory", "why", "error", "how", "law"};
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
             const struct parallel_step *step)
{
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
                {"optimizer", step->once.optimizer}};
    char why[400] = "", law[160];
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i].seconds >= 0.0005 * step->seconds)
            snprintf(why + strlen(why), sizeof why - strlen(why), "%s%s %.1f",
                     why[0] ? ", " : "", part[i].name,
                     100 * part[i].seconds / step->seconds);
    snprintf(law, sizeof law, "stack %s%s%s", stack->name,
             q->chip   ? ", of a device with the same chip"
             : q->like ? ", of the same device and precision"
                       : "",
             parallel_memory_sum(&step->memory) > q->machine.memory
                 ? "; the device has too little memory"
                 : "");
    rec_num_key(writer, "seconds", step->seconds);
    rec_num_key(writer, "memory", parallel_memory_sum(&step->memory));
    rec_text_key(writer, "why", why);
    rec_text_key(writer, "how", q->like ? "like" : "stack");
    rec_text_key(writer, "law", law);
    if (error >= 0)
        rec_num_key(writer, "error", error);
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
            write_answer(writer, &q, &step);
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
