/* The table of software stacks. */
#include "private.h"

#include <stdlib.h>

static bool
take(struct parallel_stacks *stacks, const struct rec_reader *reader,
     const struct rec *rec, struct rec_error *err)
{
    /* the host draws samples, reads the loss and writes it: measured of
     * Megatron-DeepSpeed, ../shared/reference/parallel.md 8 */
    struct parallel_stack s = {.between = 7e-3, .error = -1, .like = -1};
    double *const number[] = {&s.share,   &s.memory, &s.attention,
                              &s.exposed, &s.host,   &s.adapter};
    uint64_t blocking = 0, copies = 0, gradient = 4, held, loss = 4, sharded,
             reserved = 0, unpadded = 0, frees = 0, flat = 0;
    if (!rec_check(reader, rec, err) ||
        !(s.name = rec_arena_copy(&stacks->arena, rec->field[1], err)))
        return false;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (!rec_get_number(reader, rec, i + 2, number[i], err))
            return false;
    if (s.share <= 0 || s.memory <= 0 || s.attention <= 0 || s.adapter <= 0)
        return rec_reader_fail(reader, err,
                               "SHARE, MEMORY, ATTENTION and ADAPTER must be > 0");
    if (!rec_key_count(reader, rec, "blocking", &blocking, err) ||
        !rec_key_count(reader, rec, "copies", &copies, err) ||
        !rec_key_count(reader, rec, "gradient", &gradient, err) ||
        !rec_key_number(reader, rec, "between", &s.between, err) ||
        !rec_key_count(reader, rec, "held", (held = gradient, &held), err) ||
        !rec_key_count(reader, rec, "loss", &loss, err) ||
        !rec_key_count(reader, rec, "sharded_loss", (sharded = loss, &sharded), err) ||
        !rec_key_count(reader, rec, "unpadded", &unpadded, err) ||
        !rec_key_count(reader, rec, "frees", &frees, err) ||
        !rec_key_count(reader, rec, "flat", &flat, err) ||
        !rec_key_count(reader, rec, "reserved", &reserved, err) ||
        !rec_key_number(reader, rec, "overhead", &s.overhead, err) ||
        !rec_key_count(reader, rec, "rows", &s.rows, err) ||
        !rec_key_number(reader, rec, "fit", &s.fit, err) ||
        !rec_key_number(reader, rec, "error", &s.error, err) ||
        !rec_key_number(reader, rec, "like", &s.like, err) ||
        !rec_arena_key(&stacks->arena, rec, "device", &s.device, err) ||
        !rec_arena_key(&stacks->arena, rec, "precision", &s.precision, err) ||
        !rec_arena_key(&stacks->arena, rec, "families", &s.families, err) ||
        !rec_arena_key(&stacks->arena, rec, "releases", &s.releases, err) ||
        !rec_grow(&stacks->stack, &stacks->room, stacks->n + 1, sizeof s, err))
        return false;
    s.blocking = blocking > 0;
    s.copies = copies > 0;
    s.gradient = (double)gradient;
    s.held = (double)held;
    s.loss = (double)loss;
    s.sharded_loss = (double)sharded;
    s.unpadded = unpadded > 0;
    s.frees = frees > 0;
    s.flat = flat > 0;
    s.reserved = reserved > 0;
    stacks->stack[stacks->n++] = s;
    return true;
}

bool
parallel_stacks_read(struct parallel_stacks *stacks, struct rec_reader *reader,
                     struct rec_error *err)
{
    struct rec rec;
    int status;
    while ((status = rec_next(reader, &rec, err)) > 0) {
        if (rec.type == REC_COMMENT || rec.type == REC_MARK)
            continue;
        if (rec.type != REC_STACK)
            return rec_reader_fail(reader, err,
                                   "a table of stacks has stack records, got '%.*s'",
                                   REC_SAID(rec.field[0]));
        if (!take(stacks, reader, &rec, err))
            return false;
    }
    return status == 0;
}

/* The file traces/stacks.rec is put into the library as it is, so that it is found
 * wherever the library is installed. The assembler reads it (.incbin), and appends a zero
 * byte. */
__asm__(".pushsection .rodata\n"
        ".hidden parallel_shipped, parallel_shipped_size\n"
        ".global parallel_shipped, parallel_shipped_size\n"
        ".balign 8\n"
        "parallel_shipped_size: .8byte 2f - 1f\n"
        "parallel_shipped:\n"
        "1: .incbin \"traces/stacks.rec\"\n"
        "2: .byte 0\n"
        ".popsection\n");

bool
parallel_stacks_read_shipped(struct parallel_stacks *stacks, struct rec_error *err)
{
    struct rec_str text = {parallel_shipped, parallel_shipped_size};
    struct rec_reader *reader = rec_reader_open_text("stacks.rec", text, err);
    bool ok = reader && parallel_stacks_read(stacks, reader, err);
    rec_reader_close(reader);
    return ok;
}

void
parallel_stacks_free(struct parallel_stacks *stacks)
{
    free(stacks->stack);
    rec_arena_free(&stacks->arena);
    *stacks = (struct parallel_stacks){0};
}
