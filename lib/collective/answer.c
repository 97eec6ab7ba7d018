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
    ok = ok && rec_begin_answer(writer, reader, rec, is_answer, err);
    if (ok) {
        count->asked++;
        if (found) {
            write_answer(writer, &answer);
            count->unchecked += !answer.check;
        } else {
            count->refused++;
            rec_text_key(writer, "how", "none");
            rec_text_key(writer, "law", err->text);
        }
        rec_end(writer);
    }
    rec_arena_free(&arena);
    return ok;
}
