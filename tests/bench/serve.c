/*
 * serve PIPELINE - queries and events per second of the image driver, whose records are
 * in the file, with two configurations: batches of up to 16, and many replicas that take
 * one query at a time. 100 queries/s, a million of them, Poisson. With a second argument:
 * so many instead. Nothing is written.
 */
#include "rampipe/event.h"
#include "rampipe/serve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
die(const char *text)
{
    fprintf(stderr, "serve: %s\n", text);
    exit(1);
}

/* xorshift64: the same queries on every machine. */
static double
draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static void
read_pipeline(struct serve_pipeline *pipeline, const char *path)
{
    struct rec_error err;
    struct rec rec;
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &err);
    int status = 1;
    while (reader && (status = rec_next(reader, &rec, &err)) > 0)
        if (serve_pipeline_take(pipeline, reader, &rec, &err) < 0)
            die(err.text);
    if (status != 0 || !serve_pipeline_seal(pipeline, &err))
        die(err.text);
    rec_reader_close(reader);
}

/* A stage of the image driver. */
struct how {
    const char *model, *hardware;
    uint32_t batch, replicas;
};

static uint32_t
name_of(const struct serve_pipeline *pipeline, const char *name)
{
    return rec_map_get(&pipeline->names, rec_str(name));
}

static void
configure(const struct serve_pipeline *pipeline, const struct how *how,
          struct serve_config *config)
{
    for (size_t s = 0; s < pipeline->nstages; s++)
        for (size_t i = 0; i < 4; i++)
            if (strcmp(pipeline->stage[s].name, how[i].model) == 0)
                config[s] = (struct serve_config){
                    .profile = serve_profile_find(pipeline, pipeline->stage[s].model,
                                                  name_of(pipeline, how[i].hardware)),
                    .batch = how[i].batch,
                    .replicas = how[i].replicas};
}

static bool
count_reply(void *context, const struct serve_reply *reply, struct rec_error *err)
{
    uint64_t *replies = context;
    (void)reply;
    (void)err;
    ++*replies;
    return true;
}

/* The median processor time of ROUNDS, seconds. */
enum { ROUNDS = 5 };

static double
measure(const struct serve_pipeline *pipeline, const struct serve_config *config,
        const double *time, size_t n, uint64_t *events)
{
    struct serve_options options = {.drop_after = INFINITY, .seed = 1};
    double took[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t replies = 0;
        struct serve_sink sink = {count_reply, NULL, &replies};
        struct rec_error err;
        double t = now();
        struct serve_sim *sim = serve_sim_new(pipeline, config, &options, &sink, &err);
        bool ok = sim != NULL;
        for (size_t i = 0; i < n && ok; i++)
            ok = serve_sim_query(sim, time[i], rec_str(""), &err);
        if (!ok || !serve_sim_advance(sim, INFINITY, &err))
            die(err.text);
        took[round] = now() - t;
        if (replies != n)
            die("not every query has a reply");
        *events = serve_sim_events(sim);
        serve_sim_free(sim);
    }
    qsort(took, ROUNDS, sizeof *took, compare);
    return took[ROUNDS / 2];
}

int
main(int argc, char **argv)
{
    static const struct how how[2][4] = {{{"resnet", "v100", 16, 1},
                                          {"inception", "v100", 16, 1},
                                          {"ksvm", "cpu", 16, 1},
                                          {"logreg", "cpu", 2, 1}},
                                         {{"resnet", "v100", 1, 24},
                                          {"inception", "tpx", 1, 10},
                                          {"ksvm", "cpu", 1, 6},
                                          {"logreg", "cpu", 1, 1}}};
    static const char *const about[2] = {"batches of 16", "41 replicas, one at a time"};
    struct serve_pipeline pipeline = {0};
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
    uint64_t state = 88172645463325252u, events;
    double *time = malloc((n + 1) * sizeof *time), sum = 0;
    if (argc < 2 || !time)
        die("PIPELINE [QUERIES]");
    read_pipeline(&pipeline, argv[1]);
    for (size_t i = 0; i < n; i++)
        time[i] = sum += -0.01 * log(1 - draw(&state));
    for (size_t c = 0; c < 2; c++) {
        struct serve_config *config = calloc(pipeline.nstages, sizeof *config);
        double seconds;
        if (!config)
            die("out of memory");
        configure(&pipeline, how[c], config);
        seconds = measure(&pipeline, config, time, n, &events);
        printf("serve: image driver, %s\t%.1f\tM events/s\t>= 5\n", about[c],
               (double)events / seconds / 1e6);
        printf("serve: the same, queries\t%.1f\tM queries/s\t>= 3\n",
               (double)n / seconds / 1e6);
        free(config);
    }
    free(time);
    serve_pipeline_free(&pipeline);
    return 0;
}
