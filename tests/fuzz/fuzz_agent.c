/*
 * Any bytes as what an agent says: after each ask it says what comes up to the next NUL,
 * and after the last it is gone. It is late, refused with a message, or every job is
 * decided once, as it said.
 */
#include "fuzz.h"

#include "rampipe/alloc.h"
#include "../unit/published.h"

#include <pthread.h>
#include <string.h>

static const char stream[] =
    "graph\tg/1\tm\tdegree=1\nop\tg/1\t1\tforward\t4\t8\ngraph\tg/2\tm\n"
    "op\tg/2\t1\tforward\t9\t8\njob\ta\tg/2,g/1\t0\t5\tinf\njob\tb\tg/1,g/2\t0\t1\t6\n"
    "job\tc\tg/1\t1\t1\tinf\njob\td\tg/2\t2\t1\tinf\n";

struct agent {
    int asks, answers; /* descriptors */
    const char *at, *end;
};

static void *
run_agent(void *context)
{
    struct agent *agent = context;
    FILE *asks = fdopen(agent->asks, "r");
    char *line = NULL;
    size_t room = 0;
    while (agent->at < agent->end && getline(&line, &room, asks) > 0) {
        const char *stop = agent->at;
        if (strncmp(line, "ask\t", 4) != 0)
            continue;
        while (stop < agent->end && *stop)
            stop++;
        for (ssize_t n; agent->at < stop; agent->at += n)
            if ((n = write(agent->answers, agent->at, (size_t)(stop - agent->at))) < 0)
                abort();
        agent->at += agent->at < agent->end;
    }
    free(line);
    fclose(asks);
    close(agent->answers);
    return NULL;
}

static bool
count(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    (void)err;
    require(decision->graph != NULL, "a decision is about an alternative");
    ++*(int *)context;
    return true;
}

static bool
take(struct graph_store *store, struct graph_jobs *jobs,
     struct alloc_admission *admission, const struct rec_reader *reader,
     const struct rec *rec, struct rec_error *err)
{
    struct graph_job job;
    if (!rec_continues(rec, REC_GRAPH) && !graph_store_end(store, err))
        return false;
    if (rec->type == REC_JOB)
        return graph_jobs_read(jobs, store, reader, rec, &job, err) &&
               alloc_admission_advance(admission, &job, err) &&
               alloc_admission_arrive(admission, &job, err);
    return graph_store_read(store, reader, rec, err);
}

/* True: all is decided. */
static bool
decide(struct alloc_agent *agent, bool whole, struct graph_store *store,
       const struct net_ramp *cluster, int *decided, struct rec_error *err)
{
    const struct alloc_choosing choosing = {.chooser = &alloc_agent_chooser,
                                            .self = agent};
    const struct place_options more = {&cluster->net, place_kinds[2], NULL};
    struct alloc_admission_options options = {
        .choosing = &choosing,
        .queue = 2,
        .whole = whole,
        .placer = {&cluster->net, place_kinds[0], NULL},
        .more = &more,
        .nmore = 1};
    char path[64];
    const char *name = path;
    int fd = fuzz_file((const uint8_t *)stream, sizeof stream - 1, path);
    struct rec_reader *reader = rec_reader_open(&name, 1, NULL, err);
    struct graph_jobs jobs = {0};
    struct alloc_admission *admission =
        alloc_admission_new(&options, store, count, decided, err);
    struct rec rec;
    bool ok = true;
    while (ok && rec_next(reader, &rec, err) > 0)
        ok = take(store, &jobs, admission, reader, &rec, err);
    ok = ok && alloc_admission_end(admission, err) && alloc_agent_end(agent, err);
    alloc_admission_free(admission);
    graph_jobs_free(&jobs);
    rec_reader_close(reader);
    close(fd);
    return ok;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct net_ramp cluster = {.net = RAMP_NET(1, 1, 1, 1e6),
                                            .shape = {1, 1, 1},
                                            .bandwidth = 1e9,
                                            .propagation = 1e-9,
                                            .io = 1e-9};
    struct rec_error err = {.code = REC_OK, .text = ""};
    int asks[2], answers[2], decided = 0;
    struct graph_store store = {0};
    bool whole = size % 2; /* half of the agents have whole actions */
    struct alloc_agent *agent;
    pthread_t thread;
    if (pipe(asks) != 0 || pipe(answers) != 0)
        abort();
    struct agent said = {asks[0], answers[1], (const char *)bytes,
                         (const char *)bytes + size};
    struct alloc_agent_options options = {.name = "fuzz",
                                          .from = answers[0],
                                          .to = asks[1],
                                          .timeout = 0.05,
                                          .store = whole ? &store : NULL,
                                          .net = &cluster.net,
                                          .provenance = "#@\tx\ty"};
    if (pthread_create(&thread, NULL, run_agent, &said) != 0)
        abort();
    agent = alloc_agent_open(&options, &err);
    if (agent && decide(agent, whole, &store, &cluster, &decided, &err))
        require(decided == 4, "every job is decided");
    else
        require(err.text[0] && (err.code == REC_DATA || err.code == REC_IO),
                "it says what is wrong");
    alloc_agent_free(agent);
    graph_store_free(&store);
    close(asks[1]);
    for (char left[4096]; read(answers[0], left, sizeof left) > 0;)
        ;
    pthread_join(thread, NULL);
    close(answers[0]);
    return 0;
}
