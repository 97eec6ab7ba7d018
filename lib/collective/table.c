/* The table of measured collectives and of data sheets. */
#include "private.h"

#include <stdlib.h>

const char *const collective_hows[] = {"state", "ranks", "nodes", "sheet", NULL};

static bool
keep_field(struct rec_arena *arena, const struct rec *rec, size_t index,
           const char **text, struct rec_error *err)
{
    return (*text = rec_arena_copy(arena, rec->field[index], err)) != NULL;
}

/* What series and collective records have in common: SYSTEM, KIND, RANKS, NODES, keys. */
static bool
read_group(struct rec_arena *arena, const struct rec_reader *reader,
           const struct rec *rec, struct collective_what *what, const char **system,
           const char **version, uint64_t *ranks, uint64_t *nodes, struct rec_error *err)
{
    if (!keep_field(arena, rec, 2, system, err) ||
        !keep_field(arena, rec, 3, &what->kind, err) ||
        !rec_get_count(reader, rec, 4, ranks, err) ||
        !rec_get_count(reader, rec, 5, nodes, err) ||
        !rec_arena_key(arena, rec, "version", version, err) ||
        !rec_arena_key(arena, rec, "dtype", &what->dtype, err) ||
        !rec_key_count(reader, rec, "hidden", &what->hidden, err) ||
        !rec_key_count(reader, rec, "topk", &what->topk, err) ||
        !rec_key_count(reader, rec, "experts", &what->experts, err) ||
        !rec_key_count(reader, rec, "sms", &what->sms, err))
        return false;
    if (*ranks < 2)
        return rec_reader_fail(reader, err,
                               "RANKS must be at least 2, got %llu: a group of one has "
                               "nothing to exchange",
                               (unsigned long long)*ranks);
    if (*nodes < 1 || *ranks % *nodes != 0)
        return rec_reader_fail(reader, err,
                               "NODES must divide RANKS, got %llu ranks over %llu nodes",
                               (unsigned long long)*ranks, (unsigned long long)*nodes);
    return true;
}

bool
collective_ask_read(struct collective_ask *ask, const struct rec_reader *reader,
                    const struct rec *rec, struct rec_arena *arena, struct rec_error *err)
{
    *ask = (struct collective_ask){.size = 0};
    if (!rec_check(reader, rec, err) ||
        !read_group(arena, reader, rec, &ask->what, &ask->system, &ask->version,
                    &ask->ranks, &ask->nodes, err) ||
        !rec_get_number(reader, rec, 6, &ask->size, err) ||
        !rec_arena_key(arena, rec, "gpu", &ask->gpu, err))
        return false;
    return ask->size > 0 || rec_reader_fail(reader, err, "SIZE must be > 0");
}

static bool
take_series(struct collective_table *table, const struct rec_reader *reader,
            const struct rec *rec, struct rec_error *err)
{
    struct collective_series series = {.first = table->npieces};
    if (!keep_field(&table->arena, rec, 1, &series.id, err) ||
        !read_group(&table->arena, reader, rec, &series.what, &series.system,
                    &series.version, &series.ranks, &series.nodes, err) ||
        !rec_grow(&table->series, &table->series_room, table->nseries + 1, sizeof series,
                  err))
        return false;
    table->series[table->nseries++] = series;
    return true;
}

static bool
take_piece(struct collective_table *table, const struct rec_reader *reader,
           const struct rec *rec, bool open, struct rec_error *err)
{
    struct collective_piece piece;
    struct collective_series *series;
    if (!open || !rec_str_is(rec->field[1], table->series[table->nseries - 1].id))
        return rec_reader_fail(reader, err,
                               "a piece must follow the series record '%.*s'",
                               REC_SAID(rec->field[1]));
    series = &table->series[table->nseries - 1];
    if (!rec_get_number(reader, rec, 2, &piece.from, err) ||
        !rec_get_later(reader, rec, 3, piece.from, &piece.to, err) ||
        !rec_get_number(reader, rec, 4, &piece.latency, err) ||
        !rec_get_number(reader, rec, 5, &piece.rate, err))
        return false;
    if (piece.from <= 0 || piece.rate <= 0 ||
        piece.latency + piece.from / piece.rate <= 0)
        return rec_reader_fail(reader, err, "FROM, RATE and the time must be > 0");
    if (series->npieces > 0 && table->piece[table->npieces - 1].to >= piece.from)
        return rec_reader_fail(reader, err,
                               "FROM must be greater than TO of the piece before it");
    if (!rec_grow(&table->piece, &table->piece_room, table->npieces + 1, sizeof piece,
                  err))
        return false;
    table->piece[table->npieces++] = piece;
    series->npieces++;
    return true;
}

static bool
take_fabric(struct collective_table *table, const struct rec_reader *reader,
            const struct rec *rec, struct rec_error *err)
{
    static const char *const links[] = {"nvlink", "pairs", "pcie"};
    struct collective_fabric fabric = {.reach = 0.8};
    size_t link = 0;
    while (link < 3 && !rec_str_is(rec->field[2], links[link]))
        link++;
    if (link == 3)
        return rec_reader_fail(reader, err,
                               "LINK must be nvlink, pairs or pcie, got '%.*s'",
                               REC_SAID(rec->field[2]));
    fabric.link = (enum collective_link)link;
    if (!keep_field(&table->arena, rec, 1, &fabric.name, err) ||
        !rec_get_number(reader, rec, 3, &fabric.bandwidth, err) ||
        !rec_get_number(reader, rec, 4, &fabric.latency, err) ||
        !rec_key_number(reader, rec, "pcie", &fabric.pcie, err) ||
        !rec_key_number(reader, rec, "adapter", &fabric.adapter, err) ||
        !rec_key_count(reader, rec, "adapters", &fabric.adapters, err) ||
        !rec_key_count(reader, rec, "adds", &fabric.adds, err) ||
        !rec_key_number(reader, rec, "reach", &fabric.reach, err) ||
        !rec_arena_key(&table->arena, rec, "like", &fabric.like, err))
        return false;
    if (fabric.bandwidth <= 0 || fabric.latency <= 0 || fabric.reach <= 0)
        return rec_reader_fail(reader, err, "BANDWIDTH, LATENCY and reach must be > 0");
    if (fabric.adds > 1)
        return rec_reader_fail(reader, err, "adds must be 0 or 1, got %llu",
                               (unsigned long long)fabric.adds);
    if (fabric.link == COLLECTIVE_PAIRS && fabric.pcie <= 0)
        return rec_reader_fail(reader, err,
                               "a fabric of pairs needs pcie=, the bandwidth of a slot");
    if (!rec_grow(&table->fabric, &table->fabric_room, table->nfabrics + 1, sizeof fabric,
                  err))
        return false;
    table->fabric[table->nfabrics++] = fabric;
    return true;
}

static bool
take_check(struct collective_table *table, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct collective_check check = {.trivial = 0};
    if (!keep_field(&table->arena, rec, 1, &check.name, err) ||
        !rec_get_count(reader, rec, 2, &check.rows, err) ||
        !rec_get_number(reader, rec, 3, &check.mean, err) ||
        !rec_get_number(reader, rec, 4, &check.p90, err) ||
        !rec_get_number(reader, rec, 5, &check.worst, err) ||
        !rec_key_number(reader, rec, "trivial", &check.trivial, err) ||
        !rec_grow(&table->check, &table->check_room, table->nchecks + 1, sizeof check,
                  err))
        return false;
    table->check[table->nchecks++] = check;
    return true;
}

/* A series without a piece has no time. */
static bool
check_last(const struct collective_table *table, const struct rec_reader *reader,
           bool open, struct rec_error *err)
{
    if (!open || table->series[table->nseries - 1].npieces > 0)
        return true;
    return rec_reader_fail(reader, err, "series '%s' has no piece record",
                           table->series[table->nseries - 1].id);
}

/* Sets of_system of all series. */
static bool
count_series(struct collective_table *table, struct rec_error *err)
{
    struct rec_map first = {0}; /* a system -> its first series, which counts them */
    bool ok = true;
    for (size_t i = 0; i < table->nseries; i++)
        table->series[i].of_system = 0;
    for (size_t i = 0; ok && i < table->nseries; i++) {
        struct rec_str system = rec_str(table->series[i].system);
        uint32_t at = rec_map_get(&first, system);
        if (at == REC_NONE)
            ok = rec_map_add(&first, system, at = (uint32_t)i, err);
        table->series[at].of_system++;
    }
    for (size_t i = 0; ok && i < table->nseries; i++) {
        struct rec_str system = rec_str(table->series[i].system);
        table->series[i].of_system = table->series[rec_map_get(&first, system)].of_system;
    }
    rec_map_free(&first);
    return ok;
}

bool
collective_table_read(struct collective_table *table, struct rec_reader *reader,
                      struct rec_error *err)
{
    struct rec rec;
    bool open = false; /* a series came, and its pieces may follow */
    int status;
    while ((status = rec_next(reader, &rec, err)) > 0) {
        bool ok;
        if (rec.type == REC_COMMENT || rec.type == REC_MARK)
            continue;
        if (rec.type != REC_SERIES && rec.type != REC_PIECE && rec.type != REC_FABRIC &&
            rec.type != REC_CHECKED)
            return rec_reader_fail(
                reader, err,
                "a table of collectives has series, piece, fabric and checked records, "
                "got '%.*s'",
                REC_SAID(rec.field[0]));
        if (!rec_check(reader, &rec, err))
            return false;
        if (rec.type != REC_PIECE && !check_last(table, reader, open, err))
            return false;
        ok = rec.type == REC_SERIES   ? take_series(table, reader, &rec, err)
             : rec.type == REC_PIECE  ? take_piece(table, reader, &rec, open, err)
             : rec.type == REC_FABRIC ? take_fabric(table, reader, &rec, err)
                                      : take_check(table, reader, &rec, err);
        if (!ok)
            return false;
        open = rec.type == REC_SERIES || rec.type == REC_PIECE;
    }
    return status == 0 && check_last(table, reader, open, err) &&
           count_series(table, err);
}

void
collective_table_free(struct collective_table *table)
{
    free(table->series);
    free(table->piece);
    free(table->fabric);
    free(table->check);
    rec_arena_free(&table->arena);
    *table = (struct collective_table){0};
}
