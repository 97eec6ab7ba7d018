/*
 * Many episodes at once. Each copy has an admission of its own; all share a host
 * (alloc.h), so that a placement that one copy has tried is known to all. The admission
 * asks a chooser, which here answers with the action that learn_batch_step() was given.
 */
#include "rampipe/learn_batch.h"

#include "draws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NO_ALTERNATIVE = UINT16_MAX };

struct copy {
    struct learn_batch *batch;
    struct alloc_choosing choosing;
    struct alloc_admission *admission;
    struct learn_draws *draws; /* NULL: the jobs are those of the input */
    uint64_t come;             /* jobs of this episode, this one included */
    bool playing;
    struct graph_job job; /* that waits for a decision */
    uint32_t template;
    int32_t action;
    bool placed;               /* by the last decision */
    double finish;             /* if it was placed */
    struct rec_writer *writer; /* of its records; NULL: none */
};

struct learn_batch {
    struct net *net;
    struct place_list ways;
    char (*way_name)[PLACE_NAME_MAX]; /* [ways.n] */
    struct alloc_admission_options admission;
    struct alloc_choosing choosing; /* of the host */
    struct alloc_admission *host;
    struct graph_job about; /* the job of the host's question, which borrows it */
    struct graph_reading reading;
    struct rec_arena arena; /* texts of templates, options and jobs */
    struct rec_map known;   /* alternatives -> template */
    struct learn_template *templates;
    size_t template_room;
    uint32_t ntemplates;
    struct learn_setting setting; /* interarrival NULL: the jobs below */
    struct graph_job *jobs;       /* of the input; their texts are the arena's */
    uint32_t *job_template;
    size_t job_room, index_room;
    uint64_t njobs;
    uint32_t *degree; /* ascending, from 0; an action is a degree in a way of placing */
    size_t degree_room;
    uint32_t ndegrees, nactions;
    uint16_t *alternative; /* [template * nactions + action] */
    struct copy *copy;
    uint32_t ncopies;
    struct learn_batch_arrays to; /* the caller's */
    struct rec_error err;
};

/* ---- the chooser, and what was decided ----------------------------------- */

/* Answers as an agent does. The cause of a block depends on what could have started; it
 * is only in records, so only for these all alternatives are tried before a job is
 * refused. */
static bool
decide(void *self, struct alloc_question *q, uint32_t *choice, struct rec_error *err)
{
    const struct copy *c = self;
    const struct learn_batch *b = c->batch;
    const struct alloc_alternative *tried;
    uint16_t i = b->alternative[c->template * b->nactions + (uint32_t)c->action];
    uint32_t degree;
    *choice = ALLOC_REFUSED;
    if (i == NO_ALTERNATIVE && !c->writer)
        return alloc_question_degree(q, 0, &degree, err); /* a block names a graph */
    if (i == NO_ALTERNATIVE) {
        for (uint32_t k = 0; k < alloc_question_count(q); k++)
            if (!alloc_question_try(q, k, err))
                return false;
        return true;
    }
    if (!(tried = alloc_question_try(q, i, err)))
        return false;
    *choice = tried->cause ? ALLOC_NONE : i;
    return true;
}

static const struct alloc_chooser chooser = {
    .name = "batch", .observes = true, .decide = decide};

/* The record that ramp-alloc would write. */
static void
write_decision(const struct copy *c, const struct alloc_decision *d)
{
    const struct graph_layout *where;
    if (d->cause) {
        graph_begin_block(c->writer, &d->job, d->time, d->cause, d->graph);
    } else {
        where = &d->layout->where;
        graph_begin_alloc(c->writer, d->job.id, where, d->time);
        net_servers_field(c->batch->net, d->servers, where->nslots, c->writer);
        if (d->graph->degree > 0 && where->nslots != d->graph->degree)
            rec_uint_key(c->writer, "degree", d->graph->degree);
    }
    rec_end(c->writer);
}

static bool
take_decision(void *context, const struct alloc_decision *d, struct rec_error *err)
{
    struct copy *c = context;
    (void)err;
    c->placed = d->cause == NULL;
    c->finish = d->finish;
    if (c->writer)
        write_decision(c, d);
    return true;
}

/* ---- the input ----------------------------------------------------------- */

/* Notes the alternatives of a job, and of a job of the input the job itself. */
static bool
take_job(struct learn_batch *b, const struct graph_job *job)
{
    struct rec_error *err = &b->err;
    const struct graph_store *store = &b->reading.store;
    uint32_t index = rec_map_get(&b->known, job->graphs);
    struct rec_str rest = job->graphs, id;
    const char *text;
    if (index == REC_NONE) {
        index = b->ntemplates;
        rec_str_split(&rest, ',', &id);
        if (!(text = rec_arena_copy(&b->arena, job->graphs, err)) ||
            !rec_grow(&b->templates, &b->template_room, index + 1, sizeof *b->templates,
                      err) ||
            !rec_map_add(&b->known, rec_str(text), index, err))
            return false;
        b->templates[b->ntemplates++] = (struct learn_template){
            rec_str(text), graph_sequential(store->graph[graph_store_find(store, id)])};
    }
    if (b->setting.interarrival)
        return true;
    if (!(text = rec_arena_copy(&b->arena, job->id, err)) ||
        !rec_grow(&b->jobs, &b->job_room, b->njobs + 1, sizeof *b->jobs, err) ||
        !rec_grow(&b->job_template, &b->index_room, b->njobs + 1, sizeof *b->job_template,
                  err))
        return false;
    b->job_template[b->njobs] = index;
    b->jobs[b->njobs] = *job;
    b->jobs[b->njobs].id = rec_str(text);
    b->jobs[b->njobs++].graphs = b->templates[index].graphs;
    return true;
}

static bool
read_input(struct learn_batch *b, const char *path)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &b->err);
    enum graph_taken taken;
    struct rec rec;
    int status = -1;
    while (reader && (status = rec_next(reader, &rec, &b->err)) > 0)
        if (!graph_reading_take(&b->reading, reader, &rec, &taken, &b->err) ||
            (taken == GRAPH_JOB_TAKEN && !take_job(b, &b->reading.job))) {
            status = -1;
            break;
        }
    rec_reader_close(reader);
    return status == 0 && graph_reading_end(&b->reading, &b->err) &&
           (b->ntemplates > 0 ||
            rec_fail(&b->err, REC_DATA, "%s has no job records", path));
}

static int
by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The degrees of a template's alternatives, by a question of the host about a job. NULL:
 * *err. */
static struct alloc_question *
ask_about(struct learn_batch *b, uint32_t template)
{
    b->about = (struct graph_job){.id = rec_str("degrees"),
                                  .graphs = b->templates[template].graphs,
                                  .steps = 1,
                                  .deadline = INFINITY};
    return alloc_admission_ask(b->host, &b->about, &b->err);
}

static bool
find_actions(struct learn_batch *b)
{
    uint32_t n = 1, degree;
    size_t room = 0;
    if (!rec_grow(&b->degree, &b->degree_room, 1, sizeof *b->degree, &b->err))
        return false;
    b->degree[0] = 0;
    for (uint32_t t = 0; t < b->ntemplates; t++) {
        struct alloc_question *q = ask_about(b, t);
        for (uint32_t i = 0; q && i < alloc_question_count(q); i++) {
            if (!alloc_question_degree(q, i, &degree, &b->err) ||
                !rec_grow(&b->degree, &b->degree_room, n + 1, sizeof *b->degree, &b->err))
                return false;
            b->degree[n++] = degree;
        }
        if (!q)
            return false;
    }
    qsort(b->degree, n, sizeof *b->degree, by_number);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || b->degree[i] != b->degree[b->ndegrees - 1])
            b->degree[b->ndegrees++] = b->degree[i];
    b->nactions = 1 + (b->ndegrees - 1) * b->ways.n;
    if (!rec_grow(&b->alternative, &room, (size_t)b->ntemplates * b->nactions,
                  sizeof *b->alternative, &b->err))
        return false;
    memset(b->alternative, 0xff, b->ntemplates * b->nactions * sizeof *b->alternative);
    for (uint32_t t = 0; t < b->ntemplates; t++) {
        struct alloc_question *q = ask_about(b, t);
        for (uint32_t i = q ? alloc_question_count(q) : 0; i-- > 0;) {
            const uint32_t *at;
            if (!alloc_question_degree(q, i, &degree, &b->err))
                return false;
            at = bsearch(&degree, b->degree, b->ndegrees, sizeof degree, by_number);
            b->alternative[t * b->nactions + 1 +
                           (uint32_t)(at - b->degree - 1) * b->ways.n + i % b->ways.n] =
                (uint16_t)i;
        }
        if (!q)
            return false;
    }
    return true;
}

/* ---- opening ------------------------------------------------------------- */

static bool
keep_text(struct learn_batch *b, const char *text, const char **copy)
{
    return !text || (*copy = rec_arena_copy(&b->arena, rec_str(text), &b->err)) != NULL;
}

/* Reads the ways of placing; their names are those of agents: free-block:1 and
 * free-block:2 are two. */
static bool
open_ways(struct learn_batch *b, const struct learn_batch_options *options)
{
    if (!place_list_parse(&b->ways, b->net, options->place, &b->err))
        return false;
    if (b->ways.left_out.n)
        return rec_fail(&b->err, REC_USAGE, "'%s' names ways that do not suit %s",
                        options->place, options->cluster);
    if (!(b->way_name = calloc(b->ways.n, sizeof *b->way_name)))
        return rec_fail_memory(&b->err);
    for (uint32_t i = 0; i < b->ways.n; i++)
        place_options_name(&b->ways.options[i], b->way_name[i]);
    b->admission.placer = b->ways.options[0];
    b->admission.more = b->ways.options + 1;
    b->admission.nmore = b->ways.n - 1;
    return true;
}

static bool
open_batch(struct learn_batch *b, const struct learn_batch_options *options)
{
    b->njobs = options->interarrival ? options->jobs : 0;
    b->setting.steps = "fixed:1";
    b->admission.choosing = &b->choosing;
    b->choosing.chooser = &chooser;
    if (options->copies < 1)
        return rec_fail(&b->err, REC_USAGE, "a batch needs one copy at least");
    if (options->interarrival && (!options->steps || options->jobs < 1))
        return rec_fail(&b->err, REC_USAGE,
                        "jobs that are drawn need steps, and one job at least");
    if (!keep_text(b, options->interarrival, &b->setting.interarrival) ||
        !keep_text(b, options->fraction, &b->setting.fraction) ||
        !keep_text(b, options->steps, &b->setting.steps) ||
        !(b->net = net_find(options->cluster, &b->err)) || !open_ways(b, options))
        return false;
    if (!read_input(b, options->input) ||
        !(b->host = alloc_admission_new(&b->admission, &b->reading.store, take_decision,
                                        NULL, &b->err)) ||
        !find_actions(b))
        return false;
    if (!(b->copy = calloc(options->copies, sizeof *b->copy)))
        return rec_fail_memory(&b->err);
    b->admission.host = b->host;
    for (uint32_t i = 0; i < options->copies; i++) {
        struct copy *c = &b->copy[b->ncopies++];
        struct alloc_admission_options own = b->admission;
        c->batch = b;
        c->choosing = (struct alloc_choosing){.chooser = &chooser, .self = c};
        own.choosing = &c->choosing;
        if (!(c->admission = alloc_admission_new(&own, &b->reading.store, take_decision,
                                                 c, &b->err)))
            return false;
    }
    return true;
}

struct learn_batch *
learn_batch_open(const struct learn_batch_options *options, char *message, size_t room)
{
    struct learn_batch *b = calloc(1, sizeof *b);
    if (b && open_batch(b, options))
        return b;
    snprintf(message, room, "%s", b ? b->err.text : "out of memory");
    learn_batch_close(b);
    return NULL;
}

void
learn_batch_close(struct learn_batch *b)
{
    struct rec_error ignored;
    if (!b)
        return;
    for (uint32_t i = 0; i < b->ncopies; i++) {
        struct copy *c = &b->copy[i];
        if (c->writer && !rec_writer_close(c->writer, false, &ignored))
            c->writer = NULL; /* nobody has ended the file, so nobody wants it */
        alloc_admission_free(c->admission);
        learn_draws_free(c->draws);
    }
    alloc_admission_free(b->host);
    graph_reading_free(&b->reading);
    place_list_free(&b->ways);
    free(b->way_name);
    net_free(b->net);
    rec_map_free(&b->known);
    rec_arena_free(&b->arena);
    free(b->templates);
    free(b->jobs);
    free(b->job_template);
    free(b->degree);
    free(b->alternative);
    free(b->copy);
    free(b);
}

const char *
learn_batch_message(const struct learn_batch *b)
{
    return b->err.text;
}

uint32_t
learn_batch_actions(const struct learn_batch *b)
{
    return b->nactions;
}

uint32_t
learn_batch_degree(const struct learn_batch *b, uint32_t action)
{
    return action ? b->degree[1 + (action - 1) / b->ways.n] : 0;
}

const char *
learn_batch_place(const struct learn_batch *b, uint32_t action)
{
    return action ? b->way_name[(action - 1) % b->ways.n] : "";
}

uint32_t
learn_batch_features(void)
{
    return ALLOC_FEATURES;
}

const char *
learn_batch_feature(uint32_t i)
{
    return alloc_features[i].name;
}

uint32_t
learn_batch_templates(const struct learn_batch *b)
{
    return b->ntemplates;
}

const char *
learn_batch_template(const struct learn_batch *b, uint32_t i)
{
    return b->templates[i].graphs.ptr;
}

/* ---- playing ------------------------------------------------------------- */

/* Lets the next job of an episode come; after the last one the episode has ended. */
static bool
go_on(struct copy *c)
{
    struct learn_batch *b = c->batch;
    c->playing = c->come < b->njobs;
    if (!c->playing)
        return true;
    if (c->draws) {
        if (!learn_draws_next(c->draws, &c->job, &c->template, &b->err))
            return false;
    } else {
        c->job = b->jobs[c->come];
        c->template = b->job_template[c->come];
    }
    c->come++;
    return alloc_admission_advance(c->admission, &c->job, &b->err);
}

/* The features of an alternative that can start. */
static bool
write_features(struct learn_batch *b, struct alloc_question *q, uint32_t i, float *to)
{
    double value[ALLOC_FEATURES];
    if (!alloc_question_features(q, i, value, &b->err))
        return false;
    for (uint32_t k = 0; k < ALLOC_FEATURES; k++)
        to[k] = (float)value[k];
    return true;
}

/* Describes the job that waits. This follows what has happened in the copy at once: while
 * the host has the state of this copy, nothing needs to be exchanged. */
static bool
observe(struct copy *c)
{
    struct learn_batch *b = c->batch;
    size_t at = (size_t)(c - b->copy), n = b->nactions;
    float *feature = b->to.feature ? b->to.feature + at * n * ALLOC_FEATURES : NULL;
    uint8_t *mask = b->to.mask ? b->to.mask + at * n : NULL;
    struct alloc_question *q;
    if (feature)
        memset(feature, 0, n * ALLOC_FEATURES * sizeof *feature);
    if (mask)
        memset(mask, 0, n);
    if (b->to.job)
        b->to.job[at] = c->playing ? c->template : 0;
    if (!c->playing || (!feature && !mask))
        return true;
    if (!(q = alloc_admission_ask(c->admission, &c->job, &b->err)))
        return false;
    if (mask)
        mask[0] = 1;
    for (uint32_t a = 1; a < n; a++) {
        uint16_t i = b->alternative[c->template * n + a];
        const struct alloc_alternative *tried;
        if (i == NO_ALTERNATIVE)
            continue;
        if (!(tried = alloc_question_try(q, i, &b->err)))
            return false;
        if (tried->cause)
            continue;
        if (mask)
            mask[a] = 1;
        if (feature && !write_features(b, q, i, feature + a * ALLOC_FEATURES))
            return false;
    }
    return true;
}

bool
learn_batch_reset(struct learn_batch *b, uint32_t copy, uint32_t seed)
{
    struct copy *c;
    if (copy >= b->ncopies)
        return rec_fail(&b->err, REC_USAGE, "there is no copy %u of %u", copy,
                        b->ncopies);
    c = &b->copy[copy];
    learn_draws_free(c->draws);
    c->draws = NULL;
    c->come = 0;
    c->playing = false;
    if (b->setting.interarrival &&
        !(c->draws =
              learn_draws_new(b->templates, b->ntemplates, &b->setting, seed, &b->err)))
        return false;
    return alloc_admission_reset(c->admission, &b->err) && go_on(c) && observe(c);
}

void
learn_batch_use(struct learn_batch *b, const struct learn_batch_arrays *arrays)
{
    b->to = *arrays;
}

/* Decides the job of a copy that is playing, and describes the next one. */
static bool
step(struct copy *c, float *reward, double *completion)
{
    struct learn_batch *b = c->batch;
    double arrival = c->job.arrival;
    if (!alloc_admission_arrive(c->admission, &c->job, &b->err) || !go_on(c))
        return false;
    *reward = c->placed ? 1 : -1;
    *completion = c->placed ? c->finish - arrival : (double)INFINITY;
    return observe(c);
}

bool
learn_batch_step(struct learn_batch *b, const int32_t *action)
{
    for (uint32_t i = 0; i < b->ncopies; i++)
        if (b->copy[i].playing && (action[i] < 0 || (uint32_t)action[i] >= b->nactions))
            return rec_fail(&b->err, REC_USAGE,
                            "an action is 0 to %u, got %d for copy %u", b->nactions - 1,
                            (int)action[i], i);
    for (uint32_t i = 0; i < b->ncopies; i++) {
        struct copy *c = &b->copy[i];
        bool playing = c->playing;
        double completion = 0;
        float reward = 0;
        if (i + 1 < b->ncopies)
            alloc_admission_prefetch(c[1].admission);
        c->action = action[i];
        if (playing && !step(c, &reward, &completion))
            return false;
        if (b->to.reward)
            b->to.reward[i] = reward;
        if (b->to.ended)
            b->to.ended[i] = playing && !c->playing;
        if (b->to.completion)
            b->to.completion[i] = completion;
    }
    return true;
}

bool
learn_batch_record(struct learn_batch *b, uint32_t copy, const char *path)
{
    struct copy *c;
    bool ok;
    if (copy >= b->ncopies)
        return rec_fail(&b->err, REC_USAGE, "there is no copy %u of %u", copy,
                        b->ncopies);
    c = &b->copy[copy];
    ok = !c->writer || rec_writer_close(c->writer, true, &b->err);
    c->writer = NULL;
    return ok && (!path || (c->writer = rec_writer_open(path, NULL, &b->err)) != NULL);
}
