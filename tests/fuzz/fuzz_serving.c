/* Any bytes as pipelines and queries: served, and looked at. Whoever may be served is
 * right, who is right is served, if it is all there; nobody is lost. */
#include "fuzz.h"

#include "rampipe/event.h"
#include "rampipe/serve.h"

#include <math.h>
#include <string.h>

struct told {
    uint64_t ends;
    double latest;
};

static bool
hear_end(void *context, const struct serve_reply *reply, struct rec_error *err)
{
    struct told *told = context;
    (void)err;
    told->ends++;
    require(reply->finish >= reply->arrival && reply->finish >= told->latest,
            "replies are in order of time");
    told->latest = reply->finish;
    return true;
}

static bool
hear_visit(void *context, const struct serve_visit *visit, struct rec_error *err)
{
    (void)context;
    (void)err;
    require(visit->enqueued <= visit->started && visit->started <= visit->finished &&
                visit->batch > 0,
            "a visit is in order of time");
    return true;
}

static bool
hear_served(void *context, const struct serve_served *served, struct rec_error *err)
{
    const struct serve_usage *usage = &served->usage;
    (void)context;
    (void)err;
    require(isfinite(usage->busy) && isfinite(usage->waiting) &&
                usage->busy <= usage->replicas * (1 + 1e-9) + 1e-9 &&
                usage->batches <= usage->queries,
            "a stage does what it can");
    return true;
}

/* 1 served, -1 refused, 0 no query came. The first stream alone. */
static int
serve(const char *path, bool drops, struct rec_error *err)
{
    struct told told = {.latest = 0};
    struct serve_options options = {.drop_after = drops ? 0.5 : (double)INFINITY,
                                    .seed = 1};
    struct serve_run_sink sink = {{hear_end, hear_visit, &told}, hear_served};
    struct serve_pipeline pipeline = {0};
    struct serve_run *run = serve_run_new(&pipeline, &options, &sink, err);
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, err);
    struct event_clock clock = {0};
    struct rec rec;
    int status = 0, result = -1;
    bool ok = run && reader && event_clock_add(&clock, &serve_model, run, err);
    while (ok && (status = rec_next(reader, &rec, err)) > 0 && rec.type != REC_MARK)
        ok =
            rec.type == REC_COMMENT || (event_clock_take(&clock, reader, &rec, err) >= 0);
    if (ok && status >= 0 && event_clock_end(&clock, INFINITY, err)) {
        result = serve_run_queries(run) > 0;
        require(told.ends == serve_run_queries(run), "every query ends once");
    }
    event_clock_free(&clock);
    serve_run_free(run);
    serve_pipeline_free(&pipeline);
    rec_reader_close(reader);
    return result;
}

/* As reccheck, which looks at every field and key of a record, or without that. */
static bool
check(const char *path, bool fields, struct rec_error *err)
{
    struct serve_check check = {.served = false};
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, err);
    struct rec rec;
    int status = 0;
    bool ok = reader != NULL;
    while (ok && (status = rec_next(reader, &rec, err)) > 0 && rec.type != REC_MARK)
        if (serve_is_pipeline(&rec) || rec.type == REC_QUERY || rec.type == REC_CONFIG)
            ok = (!fields || rec_check(reader, &rec, err)) &&
                 serve_check_take(&check, reader, &rec, err);
    ok = ok && status >= 0 && serve_check_end(&check, reader, err);
    serve_check_free(&check);
    rec_reader_close(reader);
    return ok;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    int fd = fuzz_file(bytes, size, path);
    struct rec_error why_not = {.text = ""}, wrong = {.text = ""};
    int served = serve(path, size % 2, &why_not);
    bool right = check(path, true, &wrong);
    require(served <= 0 || check(path, false, &wrong), wrong.text);
    require(served >= 0 || !right || strstr(why_not.text, "has no config") ||
                strstr(why_not.text, "there is no stage") ||
                strstr(why_not.text, "only REPLICAS") ||
                strstr(why_not.text, "times must be below 1e300 s"),
            why_not.text);
    close(fd);
    return 0;
}
