/* Answers collective records. */
#include "private.h"

static bool
is_answer(struct rec_str key)
{
    static const char *const keys[] = {"seconds", "busbw", "how", "law", "error"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (rec_str_is(key, keys[i]))
            return true;
    return false;
}

/* Writes the fields and keys of the question; those of an old answer are left out. */
static bool
write_question(const struct rec_reader *reader, const struct rec *rec,
               struct rec_writer *writer, struct rec_error *err)
{
    struct rec_str key, value;
    size_t at = 0;
    int status;

    rec_begin(writer, "collective");
    for (size_t i = 1; i <= rec->spec->nfields; i++)
        rec_str_field(writer, rec->field[i]);
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
write_answer(struct rec_writer *writer, const struct collective_answer *answer)
{
    rec_num_key(writer, "seconds", answer->seconds);
    if (answer->busbw > 0)
        rec_num_key(writer, "busbw", answer->busbw);
    rec_text_key(writer, "how", collective_hows[answer->how]);
    rec_text_key(writer, "law", answer->law);
    if (answer->check)
        rec_num_key(writer, "error", answer->check->mean);
}

bool
collective_answer_record(const struct collective_table *table,
                         const struct rec_reader *reader, const struct rec *rec,
                         struct rec_writer *writer, struct collective_count *count,
                         struct rec_error *err)
{
    struct rec_arena arena = {NULL, 0};
    struct collective_ask ask;
    struct collective_answer answer;
    bool ok, found = false;

    if (rec->type != REC_COLLECTIVE) {
        rec_put_line(writer, rec->line);
        return true;
    }
    ok = collective_ask_read(&ask, reader, rec, &arena, err);
    if (ok) {
        found = collective_seconds(table, &ask, &answer, err);
        ok = found || err->code == REC_NO || rec_locate(reader, err);
    }
    ok = ok && write_question(reader, rec, writer, err);
    if (ok) {
        count->asked++;
        if (found)
            write_answer(writer, &answer);
        else {
            count->refused++;
            rec_text_key(writer, "how", "none");
            rec_text_key(writer, "law", err->text);
        }
        rec_end(writer);
    }
    rec_arena_free(&arena);
    return ok;
}
