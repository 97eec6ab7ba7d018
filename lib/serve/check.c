/* Checks streams of pipelines and their queries without serving them (reccheck). */
#include "private.h"

/* The stream ends. If it had queries, records of a pipeline in the next stream begin
 * another pipeline; else they are of the same one. */
static void
end_stream(struct serve_check *check)
{
    check->served |= check->order.begun;
    rec_ids_free(&check->order.ids);
    check->order = (struct serve_order){.begun = false};
}

/* Seals the pipeline when its first query or change comes. Without any records of a
 * pipeline there is nothing to seal: queries may be checked alone. */
static bool
seal(struct serve_check *check, const struct rec_reader *reader, struct rec_error *err)
{
    struct serve_pipeline *p = &check->pipeline;
    return p->sealed || p->nstages + p->nprofiles == 0 || serve_pipeline_seal(p, err) ||
           rec_locate(reader, err);
}

static bool
take_pipeline(struct serve_check *check, const struct rec_reader *reader,
              const struct rec *rec, struct rec_error *err)
{
    struct serve_pipeline *p = &check->pipeline;
    if (check->order.begun)
        return rec_reader_fail(reader, err,
                               "the records of a pipeline must come before its queries");
    if (check->served)
        serve_check_free(check);
    if (rec->type == REC_CONFIG && p->nstages == 0) {
        check->strays = true; /* results have the configuration, and no stages */
        return rec_need(reader, rec, err);
    }
    if (rec->type == REC_STAGE && check->strays)
        return rec_reader_fail(
            reader, err, "the config record of a stage must come after its stage record");
    return serve_pipeline_take(p, reader, rec, err) >= 0;
}

static bool
take_change(struct serve_check *check, const struct rec_reader *reader,
            const struct rec *rec, struct rec_error *err)
{
    struct serve_change change;
    double time = 0;
    return rec_need(reader, rec, err) &&
           rec_key_number(reader, rec, "time", &time, err) &&
           (check->pipeline.nstages == 0 ||
            serve_read_change(&check->pipeline, reader, rec, &change, err)) &&
           serve_order_time(&check->order, reader, time, err);
}

bool
serve_check_take(struct serve_check *check, const struct rec_reader *reader,
                 const struct rec *rec, struct rec_error *err)
{
    double time;
    if (rec->type == REC_MARK)
        end_stream(check);
    else if (serve_is_pipeline(rec))
        return take_pipeline(check, reader, rec, err);
    else if (rec->type == REC_QUERY)
        return seal(check, reader, err) &&
               serve_read_query(&check->order, reader, rec, &time, err);
    else if (rec->type == REC_CONFIG)
        return seal(check, reader, err) && take_change(check, reader, rec, err);
    return true;
}

bool
serve_check_end(struct serve_check *check, const struct rec_reader *reader,
                struct rec_error *err)
{
    return seal(check, reader, err);
}

void
serve_check_free(struct serve_check *check)
{
    serve_pipeline_free(&check->pipeline);
    rec_ids_free(&check->order.ids);
    *check = (struct serve_check){.served = false};
}
