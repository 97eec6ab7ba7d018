/* Costs that could explode, where there is something to count. */
#include "graphs.h"
#include "published.h"

#include "rampipe/alloc.h"

static int questions;

/* The chooser `first`, which counts what it is asked. */
static bool
decide_counting(void *self, struct alloc_question *question, uint32_t *choice,
                struct rec_error *err)
{
    questions++;
    return alloc_choosers[0].decide(self, question, choice, err);
}

static bool
ignore(void *context, const struct alloc_decision *decision, struct rec_error *err)
{
    (void)context, (void)decision, (void)err;
    return true;
}

static void
arrive(struct alloc_admission *a, const char *id, const char *graphs, double arrival)
{
    struct graph_job job = {.id = rec_str(id),
                            .graphs = rec_str(graphs),
                            .arrival = arrival,
                            .steps = 1e6,
                            .deadline = INFINITY};
    struct rec_error err = {.text = ""};
    if (!alloc_admission_advance(a, &job, &err) || !alloc_admission_arrive(a, &job, &err))
        fail_msg("%s", err.text);
}

/* Graphs g0, g1, ... of two parts each, after `one` of one part, and their names with
 * commas between. */
static char *
many_graphs(struct graph_store *store, int n)
{
    struct rec_error err = {.text = ""};
    char *names = malloc((size_t)n * 8), *at = names, *text, *copy;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct rec_reader *reader;
    struct rec rec;
    fputs("graph one m\nop one 1 forward 1 1\n", out);
    for (int i = 0; i < n; i++) {
        fprintf(out,
                "graph g%d m\nop g%d 1a forward 5 1 of=1 part=1/2\n"
                "op g%d 1b forward 5 1 of=1 part=2/2\n",
                i, i, i);
        at += sprintf(at, "%sg%d", i ? "," : "", i);
    }
    fclose(out);
    copy = tabs(text);
    reader = open_text(copy);
    while (rec_next(reader, &rec, &err) > 0) {
        if (rec.type == REC_GRAPH)
            assert_true(graph_store_end(store, &err));
        assert_true(graph_store_read(store, reader, &rec, &err));
    }
    assert_true(graph_store_end(store, &err));
    close_text(reader);
    free(copy);
    free(text);
    return names;
}

/*
 * Of two servers one is taken. A job that needs both waits at the head of the queue, and
 * is not tried again until a job ends, however many others arrive: nobody is asked about
 * its 20,000 alternatives once more.
 */
static void
test_stuck(void **state)
{
    const struct alloc_chooser counting = {.name = "first", .decide = decide_counting};
    const struct net_ramp cluster = RAMP(2, 1, 1, NET_RAMP_MEMORY);
    struct alloc_admission_options options = {
        .placer = {&cluster.net, place_kinds[0], NULL},
        .choosing = &(struct alloc_choosing){.chooser = &counting},
        .queue = 100};
    struct graph_store store = {0};
    struct rec_error err = {.text = ""};
    char *names = many_graphs(&store, 20000);
    struct alloc_admission *a;
    int before;
    (void)state;
    a = alloc_admission_new(&options, &store, ignore, NULL, &err);
    assert_non_null(a);
    arrive(a, "first", "one", 0);
    arrive(a, "many", names, 1);
    arrive(a, "third", "g0", 2);
    before = questions;
    assert_int_equal(before,
                     3); /* first, many, and many again at the head of the queue */
    for (int i = 0; i < 20; i++)
        arrive(a, "other", "g0", 3 + i);
    assert_int_equal(questions, before);
    alloc_admission_free(a);
    graph_store_free(&store);
    free(names);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stuck)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
