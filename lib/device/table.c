/* The table of devices and of the shares of their peaks that ops reach. */
#include "private.h"

#include <stdlib.h>

const char *const device_precisions[] = {"fp32", "tf32", "fp16", "bf16", NULL};

double
device_element(enum device_precision precision)
{
    return precision == DEVICE_FP32 || precision == DEVICE_TF32 ? 4 : 2;
}

bool
device_key_precision(const struct rec_reader *reader, const struct rec *rec,
                     enum device_precision *precision, struct rec_error *err)
{
    struct rec_str name;
    if (!rec_find_key(rec, "precision", &name))
        return true;
    for (int p = 0; p < DEVICE_NPRECISIONS; p++)
        if (rec_str_is(name, device_precisions[p])) {
            *precision = (enum device_precision)p;
            return true;
        }
    return rec_reader_fail(reader, err,
                           "precision must be fp32, tf32, fp16 or bf16, got '%.*s'",
                           REC_SAID(name));
}

/* Copies a field, or the value of a key; "" if the record does not have the key. NULL:
 * *err. */
static const char *
keep(struct device_table *table, struct rec_str text, struct rec_error *err)
{
    return text.ptr ? rec_arena_copy(&table->arena, text, err) : "";
}

/* A precision without a peak stays 0: the device does not support it. */
static bool
take_device(struct device_table *table, const struct rec_reader *reader,
            const struct rec *rec, struct rec_error *err)
{
    struct rec_str source = {NULL, 0};
    struct device device = {.name = ""};

    for (int p = 0; p < DEVICE_NPRECISIONS; p++)
        if (!rec_key_number(reader, rec, device_precisions[p], &device.peak[p], err))
            return false;
    if (!rec_key_number(reader, rec, "fp8", &device.fp8, err) ||
        !rec_key_number(reader, rec, "fp4", &device.fp4, err) ||
        !rec_key_count(reader, rec, "processors", &device.processors, err) ||
        !rec_get_number(reader, rec, 2, &device.bandwidth, err) ||
        !rec_get_number(reader, rec, 3, &device.memory, err))
        return false;
    if (device.bandwidth <= 0)
        return rec_reader_fail(reader, err, "BANDWIDTH of device '%.*s' must be > 0",
                               (int)rec->field[1].len, rec->field[1].ptr);
    rec_find_key(rec, "source", &source);
    if (!(device.name = keep(table, rec->field[1], err)) ||
        !(device.source = keep(table, source, err)) ||
        !rec_grow(&table->device, &table->device_room, table->ndevices + 1, sizeof device,
                  err))
        return false;
    table->device[table->ndevices++] = device;
    return true;
}

/* A tile of 1, the default, means no padding; a share of 0 would make times infinite. */
static bool
take_reach(struct device_table *table, const struct rec_reader *reader,
           const struct rec *rec, struct rec_error *err)
{
    struct device_reach reach = {.precision = DEVICE_NPRECISIONS, .tile = 1};

    if (!rec_get_number(reader, rec, 3, &reach.share, err) ||
        !rec_key_number(reader, rec, "latency", &reach.latency, err) ||
        !rec_key_number(reader, rec, "tile", &reach.tile, err))
        return false;
    if (reach.share <= 0 || reach.tile < 1)
        return rec_reader_fail(reader, err, "SHARE must be > 0 and tile >= 1");
    if (!device_key_precision(reader, rec, &reach.precision, err))
        return false;
    if (!(reach.device = keep(table, rec->field[1], err)) ||
        !(reach.kind = keep(table, rec->field[2], err)) ||
        !rec_grow(&table->reach, &table->reach_room, table->nreaches + 1, sizeof reach,
                  err))
        return false;
    table->reach[table->nreaches++] = reach;
    return true;
}

bool
device_table_take(struct device_table *table, const struct rec_reader *reader,
                  const struct rec *rec, struct rec_error *err)
{
    if (rec->type != REC_DEVICE && rec->type != REC_REACH)
        return true;
    if (!rec_check(reader, rec, err))
        return false;
    return rec->type == REC_DEVICE ? take_device(table, reader, rec, err)
                                   : take_reach(table, reader, rec, err);
}

bool
device_table_read(struct device_table *table, struct rec_reader *reader,
                  struct rec_error *err)
{
    struct rec rec;
    int status;
    while ((status = rec_next(reader, &rec, err)) > 0) {
        if (rec.type != REC_DEVICE && rec.type != REC_REACH && rec.type != REC_COMMENT &&
            rec.type != REC_MARK)
            return rec_reader_fail(
                reader, err,
                "a table of devices has device and reach records, got '%.*s'",
                REC_SAID(rec.field[0]));
        if (!device_table_take(table, reader, &rec, err))
            return false;
    }
    return status == 0;
}

const struct device *
device_find(const struct device_table *table, const char *name)
{
    for (size_t i = table->ndevices; i-- > 0;) /* a later device replaces earlier ones */
        if (strcmp(table->device[i].name, name) == 0)
            return &table->device[i];
    return NULL;
}

void
device_table_free(struct device_table *table)
{
    free(table->device);
    free(table->reach);
    rec_arena_free(&table->arena);
    *table = (struct device_table){0};
}
