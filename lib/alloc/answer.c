/*
 * Answers of agents: which alternative a job starts on, or what the whole action before
 * the answer makes of one.
 */
#include "answer.h"

static bool
fail_answer(struct rec_str line, const char *what, struct rec_error *err)
{
    return rec_fail(
        err, REC_DATA,
        "%s; right is 'answer', a TAB, the job, a TAB, one of its alternatives or "
        "-, got '%.*s'",
        what, REC_SAID(line));
}

/* The answer is "-": the job is refused for good, or with cause=no_servers until servers
 * come free. False: no other cause is allowed. */
static bool
settle_refusal(struct alloc_question *q, struct rec_str cause, uint32_t *choice)
{
    if (rec_str_is(cause, "no_servers")) {
        *choice = ALLOC_NONE;
        q->cause = "no_servers";
        q->may_wait = true;
        return true;
    }
    *choice = ALLOC_REFUSED;
    return cause.len == 0 || rec_str_is(cause, "policy");
}

/*
 * Chooses alternative i. All alternatives were tried to offer them; here the question
 * gets the state that it has after a rule which tries alternatives one by one and stops
 * at i. Then a job waits, or is blocked with a cause, in the same way under an agent as
 * under the same rule of --choose.
 */
static bool
settle_alternative(struct alloc_question *q, uint32_t i, uint32_t *choice,
                   struct rec_error *err)
{
    const struct alloc_alternative *a = NULL;
    q->may_wait = false;
    for (uint32_t j = 0; j <= i; j++) {
        if (!(a = alloc_question_try(q, j, err)))
            return false;
        q->may_wait = q->may_wait || !a->cause;
    }
    *choice = a->cause ? ALLOC_NONE : i;
    return true;
}

/* The way of placing that the agent has named. False, with REC_DATA: there is none. */
static bool
find_way(const struct alloc_question *q, struct rec_str name, uint32_t *way,
         struct rec_error *err)
{
    for (*way = 0; *way < pricer_ways(q->pricer); ++*way)
        if (rec_str_is(name, pricer_way_name(q->pricer, *way)))
            return true;
    return rec_fail(err, REC_DATA, "it answered place=%.*s, but no job is placed so",
                    REC_SAID(name));
}

/* The first way in which the graph of alternative `first` can start; 0: it cannot. */
static uint32_t
first_way(const struct alloc_question *q, uint32_t first)
{
    for (uint32_t way = 0; way < pricer_ways(q->pricer); way++)
        if (!q->tried[first + way].alternative.cause)
            return way;
    return 0;
}

/* How the graph is split: what the answer says of it. */
static bool
read_split(struct rec_str sizes, struct rec_str sync, struct act_split *how,
           struct rec_error *err)
{
    static const char *const syncs[] = {"deps", "all-gather", "all-reduce"};
    bool known = sync.len == 0;
    *how = (struct act_split){GRAPH_SIZES_REFERENCE, GRAPH_GRADIENTS_DEPS};
    if (rec_str_is(sizes, "gradient"))
        how->sizes = GRAPH_SIZES_GRADIENT;
    else if (sizes.len && !rec_str_is(sizes, "reference"))
        return rec_fail(err, REC_DATA, "sizes= is neither reference nor gradient");
    for (int s = 0; s < 3; s++)
        if (rec_str_is(sync, syncs[s])) {
            how->gradients = (enum graph_gradients)s;
            known = true;
        }
    return known ||
           rec_fail(err, REC_DATA, "sync= is not one of deps, all-gather, all-reduce");
}

/* A key of an answer that is read. */
static void
take_key(struct rec_str field, const char *name, struct rec_str *value)
{
    struct rec_str key;
    rec_str_split(&field, '=', &key);
    if (rec_str_is(key, name) && field.len > 0)
        *value = field;
}

bool
answer_take(struct act *act, struct alloc_question *q, struct rec_str line,
            uint32_t *choice, struct rec_error *err)
{
    struct rec_str rest = line, word, job, graph, key, none = {"", 0}, cause = none,
                   sizes = none, sync = none, place = none, names = q->job->graphs, name;
    bool acts = act && act_bytes(act) > 0;
    struct act_split how;
    uint32_t first = 0, way = 0;
    if (!rec_str_split(&rest, '\t', &word) || !rec_str_is(word, "answer") ||
        !rec_str_split(&rest, '\t', &job) || !rec_str_split(&rest, '\t', &graph))
        return fail_answer(line, "it wrote a line that is not an answer", err);
    while (rec_str_split(&rest, '\t', &key)) {
        if (!memchr(key.ptr, '=', key.len))
            return fail_answer(line, "its answer has a field too many", err);
        take_key(key, "cause", &cause);
        take_key(key, "sizes", &sizes);
        take_key(key, "sync", &sync);
        take_key(key, "place", &place);
    }
    if (!rec_str_eq(job, q->job->id))
        return fail_answer(line, "it answered for another job", err);
    if (!read_split(sizes, sync, &how, err))
        return false;
    if (acts && rec_str_is(graph, "-"))
        return fail_answer(line, "it refuses the job, but says how it starts", err);
    if (rec_str_is(graph, "-"))
        return settle_refusal(q, cause, choice) ||
               fail_answer(line, "cause= is neither policy nor no_servers", err);
    if (place.len && !find_way(q, place, &way, err))
        return false;
    for (; rec_str_split(&names, ',', &name); first += pricer_ways(q->pricer))
        if (rec_str_eq(name, graph)) {
            if (acts)
                return act_apply(act, q, first, place.len ? &way : NULL, &how, choice,
                                 err);
            if (!place.len)
                way = first_way(q, first);
            return settle_alternative(q, first + way, choice, err);
        }
    return fail_answer(line, "it chose something that is not an alternative of the job",
                       err);
}
