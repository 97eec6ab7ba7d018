/* Answers kernel records. */
#include "private.h"

#include <stdlib.h>

struct kernel_asked {
    struct kernel_table *table;
    struct asked {
        const struct device *device;
        enum kernel_dtype dtype;
        enum kernel_set set;
        struct kernel *kernel;
    } * list;
    size_t n, room;
};

struct kernel_asked *
kernel_asked_new(struct kernel_table *table, struct rec_error *err)
{
    struct kernel_asked *asked = calloc(1, sizeof *asked);
    if (asked)
        asked->table = table;
    else
        rec_fail_memory(err);
    return asked;
}

void
kernel_asked_free(struct kernel_asked *asked)
{
    if (!asked)
        return;
    for (size_t i = 0; i < asked->n; i++)
        kernel_close(asked->list[i].kernel);
    free(asked->list);
    free(asked);
}

static struct kernel *
open_once(struct kernel_asked *asked, const struct device *device,
          enum kernel_dtype dtype, enum kernel_set set, struct rec_error *err)
{
    struct asked new = {device, dtype, set, NULL};
    for (size_t i = 0; i < asked->n; i++)
        if (asked->list[i].device == device && asked->list[i].dtype == dtype &&
            asked->list[i].set == set)
            return asked->list[i].kernel;
    if (!rec_grow(&asked->list, &asked->room, asked->n + 1, sizeof new, err) ||
        !(new.kernel = kernel_open(asked->table, device->name, dtype, set, err)))
        return NULL;
    asked->list[asked->n++] = new;
    return new.kernel;
}

/* The index of a word of a field, or of a key (index 0); -1: *err. An absent key leaves
 * `word` as it is. */
static bool
read_word(const struct rec_reader *reader, const struct rec *rec, size_t index,
          const char *key, const char *const *words, int *word, struct rec_error *err)
{
    struct rec_str text;
    if (index)
        text = rec->field[index];
    else if (!rec_find_key(rec, key, &text))
        return true;
    *word = kernel_word(words, text);
    return *word >= 0 ||
           rec_reader_fail(reader, err, "%s '%.*s' is not known", key, REC_SAID(text));
}

struct question {
    const struct device *device;
    int dtype, set;
    struct kernel_shape shape;
};

static bool
read_question(const struct kernel_table *table, const struct rec_reader *reader,
              const struct rec *rec, struct question *question, struct rec_error *err)
{
    int op = 0, pass = 0;
    uint64_t cast = 0;
    char name[100];

    *question = (struct question){.set = -1};
    if (!rec_check(reader, rec, err))
        return false;
    snprintf(name, sizeof name, "%.*s",
             (int)(rec->field[2].len < 99 ? rec->field[2].len : 99), rec->field[2].ptr);
    if (!(question->device = device_find(table->devices, name)))
        return rec_reader_fail(reader, err, "there is no device '%s'", name);
    if (!read_word(reader, rec, 3, "OP", kernel_ops, &op, err) ||
        !read_word(reader, rec, 4, "DTYPE", kernel_dtypes, &question->dtype, err) ||
        !read_word(reader, rec, 0, "pass", kernel_passes, &pass, err) ||
        !read_word(reader, rec, 0, "set", kernel_sets, &question->set, err) ||
        !rec_key_count(reader, rec, "groups", &question->shape.groups, err) ||
        !rec_key_count(reader, rec, "out", &question->shape.out, err) ||
        !rec_key_count(reader, rec, "cast", &cast, err))
        return false;
    question->shape.op = (enum kernel_op)op;
    question->shape.pass = (enum kernel_pass)pass;
    question->shape.cast = cast != 0;
    if (question->set < 0)
        question->set = pass == KERNEL_FORWARD ? KERNEL_INFERENCE : KERNEL_TRAINING;
    if (!kernel_shape_read(&question->shape, rec->field[5], err))
        return rec_locate(reader, err);
    if (pass != KERNEL_FORWARD &&
        (op == KERNEL_MEMORY || (op == KERNEL_ATTENTION) != (pass == KERNEL_BACKWARD)))
        return rec_reader_fail(reader, err, "%s has no pass %s", kernel_ops[op],
                               kernel_passes[pass]);
    if (question->shape.groups > 1 << 30 || (question->shape.groups && op != KERNEL_GEMM))
        return rec_reader_fail(reader, err, "groups= is for gemm, and at most 2^30");
    if (cast && (op != KERNEL_GEMM || question->dtype < KERNEL_FP8))
        return rec_reader_fail(reader, err, "cast= is for gemm in fp8 and nvfp4");
    if (question->shape.out && question->shape.out != 2 && question->shape.out != 4)
        return rec_reader_fail(reader, err, "out must be 2 or 4");
    return true;
}

static bool
is_answer(struct rec_str key)
{
    static const char *const keys[] = {"seconds", "share", "how", "law", "error", NULL};
    return kernel_word(keys, key) >= 0;
}

bool
kernel_answer_record(struct kernel_asked *asked, const struct rec_reader *reader,
                     const struct rec *rec, struct rec_writer *writer, bool why,
                     struct kernel_count *count, struct rec_error *err)
{
    struct question question;
    struct kernel_answer answer;
    struct kernel *kernel;
    char text[KERNEL_WHY_MAX];
    bool found;

    if (rec->type != REC_KERNEL) {
        rec_put_line(writer, rec->line);
        return true;
    }
    if (!read_question(asked->table, reader, rec, &question, err))
        return false;
    kernel = open_once(asked, question.device, (enum kernel_dtype)question.dtype,
                       (enum kernel_set)question.set, err);
    found = kernel && kernel_seconds(kernel, &question.shape, &answer, err);
    if (!found && err->code != REC_NO)
        return rec_locate(reader, err);
    if (!rec_begin_answer(writer, reader, rec, is_answer, err))
        return false;
    count->asked++;
    if (found) {
        count->how[answer.how]++;
        rec_num_key(writer, "seconds", answer.seconds);
        rec_num_key(writer, "share", answer.share);
        rec_text_key(writer, "how", kernel_hows[answer.how]);
        if (why) {
            kernel_why(kernel, &question.shape, text);
            rec_text_key(writer, "law", text);
        }
        if (answer.check)
            rec_num_key(writer, "error", answer.check->mean);
    } else {
        count->refused++;
        rec_text_key(writer, "how", "none");
        rec_text_key(writer, "law", err->text);
    }
    rec_end(writer);
    return true;
}
