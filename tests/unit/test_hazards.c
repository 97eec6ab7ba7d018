/* Task lists: names, words, and which task waits for which: the reference's vectors, and
 * random programs against a checker that knows leaves and nothing of trees. */
#include "unit.h"

#include "rampipe/task.h"

/* ---- names and words ----------------------------------------------------- */

static void
test_names(void **state)
{
    static const char *const same[][2] = {{"a", "a"},
                                          {"./a", "a"},
                                          {"a//b/./c", "a/b/c"},
                                          {"a/../b", "b"},
                                          {"a/b/../../c", "c"},
                                          {"../a", "../a"},
                                          {"a/../../b", "../b"},
                                          {"../../x/..", "../.."},
                                          {"/../a", "/a"},
                                          {"/", "/"},
                                          {"/a/..", "/"},
                                          {"a/", "a/"},
                                          {"a/b//", "a/b/"},
                                          {".", "."},
                                          {"./", "./"},
                                          {"a/..", "."},
                                          {"..", ".."},
                                          {"../", "../"},
                                          {"@x/../y", "@x/../y"},
                                          {"..a/..", "."},
                                          {"a../b/..", "a.."},
                                          {"/a/../..//b/", "/b/"}};
    char text[100];
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_true(task_normalise(text, rec_str(same[i][0])));
        assert_string_equal(text, same[i][1]);
        assert_true(task_normalise(text, rec_str(same[i][1]))); /* it stays */
        assert_string_equal(text, same[i][1]);
    }
    assert_false(task_normalise(text, rec_str("")));
    assert_false(task_normalise(text, rec_str("@")));
}

static void
test_overlap(void **state)
{
    static const struct {
        const char *a, *b;
        bool overlap;
    } pairs[] = {
        {"a", "a", true},        {"a", "b", false},      {"a/", "a/b/c", true},
        {"a", "a/b", false}, /* a is no folder: nothing lies below it */
        {"a/", "ab", false},     {"./", "a/b", true},    {"./", "/a", false},
        {"/", "/a", true},       {"@a", "@a", true},     {"./", "@a", false},
        {"@a/", "@a/b", false}, /* @NAMEs have no parts */
        {"a/", "a", true},      /* a folder is one of what dir/ stands for */
        {"a/b/", "a", false},    {"../", "a/b", true},   {"../", "..", true},
        {"../", "../a", true},   {"./", "../a", false},  {"../../", "../a", true},
        {"../a/", "../a", true}, {"../a/", "a", false},  {"../", "../..", false},
        {"./", "..a", true},     {"../", "/a", false},   {"/", "a", false},
        {"/a/", "/a", true},     {"../../", "@a", false}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(task_overlap(pairs[i].a, pairs[i].b), pairs[i].overlap);
        assert_int_equal(task_overlap(pairs[i].b, pairs[i].a), pairs[i].overlap);
    }
}

static void
test_words(void **state)
{
    struct rec_str rest =
        rec_str("  sh -c 'a \"b\" \\n'  \"x 'y' \\\"z\\q\" a\\ b'c'\"d\"\t");
    static const char *const words[] = {"sh", "-c", "a \"b\" \\n", "x 'y' \"z\\q",
                                        "a bcd"};
    char word[100];
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(task_word(&rest, word), 1);
        assert_string_equal(word, words[i]);
    }
    assert_int_equal(task_word(&rest, word), 0);
    for (size_t i = 0; i < 3; i++) {
        static const char *const open[] = {"'a", "a \"b", "a\\"};
        int status;
        rest = rec_str(open[i]);
        while ((status = task_word(&rest, word)) > 0)
            ;
        assert_int_equal(status, -1);
    }
}

/* ---- programs ------------------------------------------------------------ */

enum { TASKS = 64, NAMES = 4 };

struct program {
    struct task task[TASKS];
    const char *reads[TASKS][NAMES], *writes[TASKS][NAMES];
    char id[TASKS][8];
    size_t n;
};

static void
add_task(struct program *program, const char *const *reads, const char *const *writes)
{
    size_t i = program->n++;
    struct task *task = &program->task[i];
    snprintf(program->id[i], sizeof program->id[i], "t%zu", i);
    *task = (struct task){.id = program->id[i],
                          .reads = {.name = program->reads[i]},
                          .writes = {.name = program->writes[i]}};
    for (; reads && reads[task->reads.n]; task->reads.n++)
        program->reads[i][task->reads.n] = reads[task->reads.n];
    for (; writes && writes[task->writes.n]; task->writes.n++)
        program->writes[i][task->writes.n] = writes[task->writes.n];
}

/* 0: no edge, else 1 + hazard. */
typedef unsigned char edges[TASKS][TASKS];

static void
infer(const struct program *program, size_t fence, edges found)
{
    struct rec_error err;
    struct task_hazards *hazards = task_hazards_new(&err);
    const struct task_edge *edge;
    size_t n;
    assert_non_null(hazards);
    memset(found, 0, sizeof(edges));
    for (size_t i = 0; i < program->n; i++) {
        if (i == fence)
            task_hazards_fence(hazards);
        assert_true(task_hazards_add(hazards, &program->task[i], &edge, &n, &err));
        for (size_t k = 0; k < n; k++) {
            assert_true(edge[k].src < i && (k == 0 || edge[k - 1].src < edge[k].src));
            found[edge[k].src][i] = (unsigned char)(1 + edge[k].hazard);
        }
    }
    task_hazards_free(hazards);
}

/* A vector: R, W, RW (of x) by task, and the edges, "0>1 raw". */
static void
expect(const char *accesses, const char *want)
{
    static const char *const x[] = {"x", NULL};
    struct program program = {.n = 0};
    struct rec_str rest = rec_str(accesses), part;
    char text[400] = "";
    edges found;
    while (rec_str_split(&rest, ' ', &part))
        add_task(&program, memchr(part.ptr, 'R', part.len) ? x : NULL,
                 memchr(part.ptr, 'W', part.len) ? x : NULL);
    infer(&program, TASKS, found);
    for (size_t j = 0; j < program.n; j++)
        for (size_t i = 0; i < j; i++)
            if (found[i][j]) {
                static const char *const names[] = {"raw", "war", "waw"};
                size_t n = strlen(text);
                snprintf(text + n, sizeof text - n, "%s%zu>%zu %s", n ? ", " : "", i, j,
                         names[found[i][j] - 1]);
            }
    assert_string_equal(text, want);
}

static void
test_vectors(void **state)
{
    static const char *const two[] = {"x", "y", NULL}, *const one[] = {"a/../x", NULL},
                             *const other[] = {"./x", NULL};
    struct program program = {.n = 0};
    edges found;
    (void)state;
    expect("R W", "0>1 war");
    expect("R R W", "0>2 war, 1>2 war");
    expect("W W R R", "0>1 waw, 1>2 raw, 1>3 raw");
    expect("W R W", "0>1 raw, 1>2 war");
    expect("RW RW RW", "0>1 raw, 1>2 raw");
    expect("RW", "");
    expect("R R", "");
    /* two shared objects, one edge; names spelled differently are one object */
    add_task(&program, NULL, two);
    add_task(&program, two, two);
    infer(&program, TASKS, found);
    assert_int_equal(found[0][1], 1 + TASK_RAW);
    program.n = 0;
    for (size_t i = 0; i < 2; i++) {
        char name[10];
        assert_true(task_normalise(name, rec_str(i ? other[0] : one[0])));
        assert_string_equal(name, "x");
    }
    /* a reader after a fence */
    program.n = 0;
    add_task(&program, NULL, two);
    add_task(&program, two, NULL);
    infer(&program, 1, found);
    assert_int_equal(found[0][1], 0);
    /* what another printed */
    {
        static const char *const out[] = {"@t0.stdout", NULL};
        program.n = 0;
        add_task(&program, NULL, NULL);
        add_task(&program, out, NULL);
        infer(&program, TASKS, found);
        assert_int_equal(found[0][1], 1 + TASK_RAW);
    }
}

/* ---- random programs ------------------------------------------------------ */

/* Names, and the leaves that each stands for: of each folder, itself and a file in it
 * that nobody names are leaves, too. */
static const char *const leaves[] = {"a",   "a/x",   "a/y",  "a/b", "a/b/x", "a/b/y",
                                     "a/?", "a/b/?", "c",    "@a",  "/a",    "../z",
                                     "./?", "/?",    "../?", ".",   ".."};
static const char *const objects[] = {"a",  "a/x",  "a/y", "a/b", "a/b/x", "a/b/y",
                                      "a/", "a/b/", "c",   "@a",  "/a",    "../z",
                                      "./", "/",    "../", ".."};
enum {
    NLEAVES = sizeof leaves / sizeof *leaves,
    NOBJECTS = sizeof objects / sizeof *objects
};

static bool
stands_for(const char *object, const char *leaf)
{
    size_t n = strlen(object) - 1;
    bool relative = *leaf != '/' && *leaf != '@', up = strncmp(leaf, "..", 2) == 0;
    if (strcmp(object, "./") == 0)
        return relative && !up;
    if (strcmp(object, "../") == 0)
        return relative;
    if (strcmp(object, "/") == 0)
        return *leaf == '/';
    if (object[n] != '/')
        return strcmp(object, leaf) == 0;
    return strncmp(object, leaf, n) == 0 && (leaf[n] == '/' || leaf[n] == '\0');
}

static bool
touches(const struct task_names *names, const char *leaf)
{
    for (size_t i = 0; i < names->n; i++)
        if (stands_for(names->name[i], leaf))
            return true;
    return false;
}

/* All pairs with a leaf that one writes; those where one reads what the other wrote
 * last. */
static void
check_program(const struct program *program, size_t fence)
{
    bool ordered[TASKS][TASKS] = {{false}};
    edges found;
    infer(program, fence, found);
    for (size_t j = 0; j < program->n; j++)
        for (size_t i = j; i-- > 0;) {
            bool conflict = false, data = false;
            for (size_t l = 0; l < NLEAVES; l++) {
                const struct task *a = &program->task[i], *b = &program->task[j];
                bool wrote = touches(&a->writes, leaves[l]),
                     reads = touches(&b->reads, leaves[l]);
                bool last = wrote;
                conflict |=
                    (wrote && (reads || touches(&b->writes, leaves[l]))) ||
                    (touches(&a->reads, leaves[l]) && touches(&b->writes, leaves[l]));
                for (size_t k = i + 1; k < j; k++)
                    last = last && !touches(&program->task[k].writes, leaves[l]);
                data |= last && reads;
            }
            if (i < fence && j >= fence)
                conflict = data = false;
            if (found[i][j] && !conflict)
                fail_msg("edge %zu>%zu is spurious", i, j);
            if (data != (found[i][j] == 1 + TASK_RAW))
                fail_msg("edge %zu>%zu should%s be raw", i, j, data ? "" : " not");
            ordered[i][j] = found[i][j];
            for (size_t k = i + 1; k < j; k++)
                ordered[i][j] |= found[i][k] && ordered[k][j];
            if (conflict && !ordered[i][j])
                fail_msg("%zu and %zu conflict and are not ordered", i, j);
        }
}

static void
test_random_programs(void **state)
{
    (void)state;
    for (int i = part_of(20000); i-- > 0;) {
        struct program program = {.n = 0};
        size_t n = 2 + random_below(11), few = 2 + random_below(NOBJECTS - 1);
        while (program.n < n) {
            const char *names[2][NAMES] = {{NULL}};
            for (size_t w = 0; w < 2; w++)
                for (size_t k = random_below(NAMES); k-- > 0;)
                    names[w][k] = objects[random_below(few)];
            add_task(&program, names[0], names[1]);
        }
        check_program(&program, random_below(4) ? TASKS : random_below(n));
    }
}

/* ---- gathers --------------------------------------------------------------- */

/* What comes before each gather and task: a bit a task. */
struct order {
    uint64_t before[TASKS], gather[1000];
    uint64_t source[TASKS],
        gather_source[1000]; /* by raw edges, and raw ones to gathers */
    size_t ngathers, nedges;
};

static uint64_t
before_edges(struct order *order, const struct task_edge *edge, size_t n,
             uint64_t *source)
{
    uint64_t mask = 0;
    *source = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t gather = edge[i].src & ~TASK_GATHER;
        if (edge[i].src & TASK_GATHER) {
            assert_true(gather < order->ngathers);
            mask |= order->gather[gather];
        } else
            mask |= order->before[edge[i].src] | (uint64_t)1 << edge[i].src;
        if (edge[i].hazard == TASK_RAW)
            *source |= edge[i].src & TASK_GATHER ? order->gather_source[gather]
                                                 : (uint64_t)1 << edge[i].src;
    }
    order->nedges += n;
    return mask;
}

static bool
take_gather(void *context, const struct task_edge *edge, size_t n, struct rec_error *err)
{
    struct order *order = context;
    (void)err;
    assert_true(n > 0 && order->ngathers < 1000);
    order->gather[order->ngathers] =
        before_edges(order, edge, n, &order->gather_source[order->ngathers]);
    order->ngathers++;
    return true;
}

static void
find_order(const struct program *program, size_t fence, bool gather, bool exact,
           struct order *order)
{
    struct task_gathers gathers = {order, exact, take_gather};
    struct rec_error err;
    struct task_hazards *hazards = task_hazards_new(&err);
    const struct task_edge *edge;
    size_t n;
    assert_non_null(hazards);
    *order = (struct order){.nedges = 0};
    if (gather)
        task_hazards_gather(hazards, &gathers);
    for (size_t i = 0; i < program->n; i++) {
        if (i == fence)
            task_hazards_fence(hazards);
        assert_true(task_hazards_add(hazards, &program->task[i], &edge, &n, &err));
        order->before[i] = before_edges(order, edge, n, &order->source[i]);
    }
    task_hazards_free(hazards);
}

/* A folder in a folder, and many files. */
static const char *const wide[] = {"a/",    "./",    "a/b/",  "a/1",   "a/2",   "a/3",
                                   "a/4",   "a/5",   "a/6",   "a/7",   "a/8",   "a/9",
                                   "a/b/1", "a/b/2", "a/b/3", "a/b/4", "a/b/5", "a/b/6",
                                   "a/b/7", "a",     "a/b"};
enum { NWIDE = sizeof wide / sizeof *wide };

/* With gathers the same tasks come before each, no more and no fewer. If they are to be
 * exact, raw edges lead from the same tasks, too: those that wrote what a task reads. */
static void
test_gathers_keep_the_order(void **state)
{
    size_t programs = (size_t)part_of(3000), gathers = 0, exact_gathers = 0, inexact = 0;
    (void)state;
    for (size_t i = 0; i < programs; i++) {
        struct program program = {.n = 0};
        struct order with, exact, without;
        size_t fence = random_below(4) ? TASKS : random_below(TASKS), few;
        few = 2 + random_below(NOBJECTS - 1);
        while (program.n < TASKS) {
            const char *names[2][NAMES] = {{NULL}};
            for (size_t w = 0; w < 2; w++)
                for (size_t k = random_below(3); k-- > 0;)
                    names[w][k] = i % 4 == 0 ? objects[random_below(few)]
                                  : random_below(w ? 40 : 3) == 0
                                      ? wide[random_below(3)]
                                      : wide[3 + random_below(NWIDE - 3)];
            add_task(&program, names[0], names[1]);
        }
        find_order(&program, fence, false, false, &without);
        find_order(&program, fence, true, false, &with);
        find_order(&program, fence, true, true, &exact);
        for (size_t j = 0; j < TASKS; j++)
            if (with.before[j] != without.before[j])
                fail_msg("program %zu: before task %zu come %llx, with gathers %llx", i,
                         j, (unsigned long long)without.before[j],
                         (unsigned long long)with.before[j]);
        assert_memory_equal(exact.before, without.before, sizeof exact.before);
        for (size_t j = 0; j < TASKS; j++)
            if (exact.source[j] != without.source[j])
                fail_msg("program %zu: task %zu reads what %llx wrote, with gathers %llx",
                         i, j, (unsigned long long)without.source[j],
                         (unsigned long long)exact.source[j]);
        gathers += with.ngathers;
        exact_gathers += exact.ngathers;
        inexact += memcmp(with.source, without.source, sizeof with.source) != 0;
    }
    assert_in_range(gathers, programs, programs * 1000); /* it was about them */
    assert_in_range(exact_gathers, programs, programs * 1000);
    assert_in_range(inexact, programs / 30,
                    programs); /* asking for it makes a difference */
}

/* n tasks write below d/ and n read it, in any order: at most 3 n edges, where there were
 * n * n. */
static void
test_edges_of_a_folder(void **state)
{
    static const char *const folder[] = {"d/", NULL};
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct program program = {.n = 0};
        struct order order;
        char name[TASKS][8];
        for (int i = 0; i < TASKS; i++) {
            const char *file[] = {name[i], NULL};
            bool writes = how == 0 ? i < TASKS / 2 : how == 1 ? i >= TASKS / 2 : i % 2;
            snprintf(name[i], sizeof name[i], "d/%d", i);
            add_task(&program, writes ? NULL : folder, writes ? file : NULL);
        }
        find_order(&program, TASKS, false, false, &order);
        assert_int_equal(order.nedges, TASKS * TASKS / 4);
        for (int exact = 0; exact < 2; exact++) {
            find_order(&program, TASKS, true, exact, &order);
            if (how < 2) {
                assert_int_equal(order.nedges, TASKS);
                assert_int_equal(order.ngathers, 1);
            } else
                assert_in_range(order.nedges, 1, 8 * TASKS);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_overlap),
                                       cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_random_programs),
                                       cmocka_unit_test(test_gathers_keep_the_order),
                                       cmocka_unit_test(test_edges_of_a_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
