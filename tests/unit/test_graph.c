/* Graphs: profiles, mirroring, records, units and twins, errors. */
#include "graphs.h"

static const struct input_profile_options seconds = {1, INPUT_MEMORY_TOTAL, true};

#define FIGURES "forward_compute_time=1, backward_compute_time=2, "

static struct graph
profile(const char *text, const struct input_profile_options *options)
{
    struct graph graph = {0};
    struct rec_error err = {.text = ""};
    if (!try_profile(&graph, text, options, &err))
        fail_msg("%s", err.text);
    return graph;
}

/*
 * Every form of a node: a list (1 + 2 + 3.5 = 6.5, an empty one 0), type text with
 * parentheses, blanks, commas, equal signs and even " -- ", stage_id as a fourth column
 * or as a fifth figure, figures in any order, blanks at both ends.
 */
static void
test_profile_forms(void **state)
{
    static const char text[] =
        "node1 -- Conv2d(3, 64, kernel_size=(11, 11), s -- t) -- " FIGURES
        "activation_size=[1; 2; 3.5], parameter_size=4\n"
        "node2 -- Embed Ding -- " FIGURES
        "activation_size=[], parameter_size=1e3 -- stage_id=3\n"
        "\n"
        "  node3 -- Loss() -- parameter_size=0, activation_size=[7], " FIGURES
        "stage_id=12  \n"
        "node4 -- (nothing) -- " FIGURES "activation_size=0, parameter_size=0\n"
        "node5 -- \xc3\xa9\x7f\x01z -- " FIGURES "activation_size=0, parameter_size=0\n"
        "\tnode1 -- node2\n"
        "node2 -- node3\n"
        "\t node3 -- node4\t\n";
    struct graph g = profile(text, &seconds);
    const struct graph_op *op = g.op;
    (void)state;
    assert_int_equal(g.nops, 10);
    assert_string_equal(op[4].extra, "\ttype=\xc3\xa9  z");
    assert_string_equal(op[0].extra, "\ttype=Conv2d");
    assert_same(op[0].activation, 6.5);
    assert_same(op[0].param, 4);
    assert_same(op[0].memory, 10.5);
    assert_string_equal(op[1].extra, "\ttype=Embed Ding\tstage=3");
    assert_same(op[1].activation, 0);
    assert_same(op[1].param, 1000);
    assert_string_equal(op[2].extra, "\ttype=Loss\tstage=12");
    assert_same(op[2].activation, 7);
    assert_string_equal(op[3].extra, "");
    graph_free(&g);
}

/* 0.5 in units of 1e-3 s is 0.0005 s; --memory activation leaves the parameters out;
 * without mirroring there is neither twin nor join. */
static void
test_profile_options(void **state)
{
    static const char text[] = "node1 -- A -- forward_compute_time=0.5, "
                               "backward_compute_time=2, activation_size=3, "
                               "parameter_size=4\nnode2 -- B -- " FIGURES
                               "activation_size=1, parameter_size=0\n\tnode1 -- node2\n";
    struct input_profile_options options = {1e-3, INPUT_MEMORY_ACTIVATION, false};
    struct graph g = profile(text, &options);
    (void)state;
    assert_int_equal(g.nops, 2);
    assert_int_equal(g.ndeps, 1);
    assert_same(g.op[0].compute, 0.0005);
    assert_same(g.op[0].memory, 3);
    assert_true(g.op[0].pair == GRAPH_NONE);
    graph_free(&g);
    options.mirror = true;
    g = profile(text, &options);
    assert_same(g.op[op_of(&g, "4")].compute, 0.002);
    assert_int_equal(g.ndeps, 3);
    graph_free(&g);
}

/*
 * The head: the last of two lines of a key counts, values are cut at the room there is
 * and cleaned, what is no "# key: value" is any comment; provenance is kept line by line.
 * A comment behind the head says nothing.
 */
static void
test_profile_head(void **state)
{
    char text[2000], name[INPUT_NAME_MAX];
    struct rec_reader *reader;
    struct input_head head;
    struct graph g = {0};
    struct rec_error err = {.text = ""};
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(
        text, sizeof text,
        "#@\ta\r\n# network: n\x01t\n#device:d: 1\n# device: e\n# batch: 7\n# network\n"
        "# network:\n#\n#@\tb\n# network: x%s\nnode1 -- A -- " FIGURES
        "activation_size=5, parameter_size=0\n# batch: 8\n",
        name);
    reader = open_text(text);
    assert_true(input_read_head(reader, &head, &err));
    assert_string_equal(head.network, name);
    assert_string_equal(head.device, "e");
    assert_string_equal(head.batch, "7");
    assert_string_equal(head.provenance, "#@\ta\n#@\tb\n");
    assert_true(input_read_profile(&g, reader, &seconds, rec_str("g"), rec_str("m"),
                                   &head, &err));
    assert_string_equal(g.extra, "\tdevice=e\tbatch=7");
    input_head_free(&head);
    graph_free(&g);
    close_text(reader);
    reader = open_text("node1 -- A\n");
    assert_true(input_read_head(reader, &head, &err));
    assert_string_equal(head.network, "");
    assert_null(head.provenance);
    close_text(reader);
    reader = open_text("# network: n\x01t\n# batch: -1\n");
    assert_false(input_read_head(reader, &head, &err));
    assert_int_equal(err.code, REC_DATA);
    assert_string_equal(head.network, "n t");
    input_head_free(&head);
    close_text(reader);
    reader = open_text("# network: \xe9t\xe9\n"); /* Latin-1 */
    assert_false(input_read_head(reader, &head, &err));
    assert_non_null(strstr(err.text, "must be UTF-8"));
    input_head_free(&head);
    close_text(reader);
}

/*
 * n = 4 in file order 2 1 3 4, edges 1->2 1->3 2->4; 3 is a second sink, as in gnmt. So
 * b = 8 7 6 5 for 1 2 3 4; backward edges 7->8, 6->8, 5->7; the join 4->5. b(3) = 6 has
 * no parents: a backward source. Ops: forward in file order, then backward in the same.
 * Deps: by source in file order, each source's in file order; the join follows op 4's.
 */
static void
test_mirror(void **state)
{
    static const char *const deps[][3] = {
        {"2", "4", "20"}, {"1", "2", "10"}, {"1", "3", "10"}, {"4", "5", "40"},
        {"7", "8", "20"}, {"6", "8", "30"}, {"5", "7", "40"}};
    static const char *const ops[] = {"2", "1", "3", "4", "7", "8", "6", "5"};
    struct graph g =
        profile("node2 -- B -- " FIGURES "activation_size=20, parameter_size=2\n"
                "node1 -- A -- " FIGURES "activation_size=10, parameter_size=1\n"
                "node3 -- C -- " FIGURES "activation_size=30, parameter_size=3\n"
                "node4 -- D -- " FIGURES "activation_size=40, parameter_size=4\n"
                "\tnode1 -- node2\n\tnode1 -- node3\n\tnode2 -- node4\n",
                &seconds);
    (void)state;
    assert_int_equal(g.nops, 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_string_equal(g.op[i].id, ops[i]);
        assert_int_equal(g.op[i].pair, (i + 4) % 8);
        assert_int_equal(g.op[i].pass, i < 4 ? GRAPH_FORWARD : GRAPH_BACKWARD);
        assert_same(g.op[i].compute, i < 4 ? 1 : 2);
        assert_same(g.op[i].memory, g.op[(i + 4) % 8].memory);
    }
    assert_int_equal(g.ndeps, 7);
    for (size_t d = 0; d < 7; d++) {
        assert_string_equal(g.op[g.dep[d].src].id, deps[d][0]);
        assert_string_equal(g.op[g.dep[d].dst].id, deps[d][1]);
        assert_same(g.dep[d].bytes, atof(deps[d][2]));
    }
    graph_free(&g);
}

/* One node: n = 1, its twin is 2, the join 1 -> 2 is the only dep. */
static void
test_mirror_single(void **state)
{
    struct graph g =
        profile("node1 -- A -- " FIGURES "activation_size=5, parameter_size=0", &seconds);
    (void)state;
    assert_int_equal(g.nops, 2);
    assert_int_equal(g.ndeps, 1);
    assert_same(dep_size(&g, "1", "2"), 5);
    graph_free(&g);
}

#define NODE(n) "node" #n " -- T -- " FIGURES "activation_size=1, parameter_size=1\n"

static void
test_profile_errors(void **state)
{
    static const struct {
        const char *text, *message;
        int line;
    } bad[] = {
        {NODE(1) NODE(2) NODE(1), "op '1' is defined twice", 3},
        {NODE(1) "\tnode1 -- node7\n", "op '7' is named here", 2},
        {NODE(1) NODE(2) NODE(3) "\tnode1 -- node2\n\tnode2 -- node3\n\tnode3 -- node2\n",
         "has a cycle: '", 0},
        {NODE(1) "\tnode1 -- node1\n", "op '1' depends on itself", 2},
        {NODE(1) NODE(2) "node1 -- node2\nnode1 -- node2\n", "is there twice", 4},
        {NODE(1) "garbage\n", "a line is", 2},
        {NODE(1) "nodex -- node1\n", "the name of a node must be", 2},
        {NODE(1) "node -- node1\n", "the name of a node must be", 2},
        {NODE(1) "node1 -- node-1\n", "the name of a node must be", 2},
        {NODE(1) "node1 -- node99999999999\n", "the name of a node must be", 2},
        {"node1 -- T -- forward_compute_time=-1, backward_compute_time=0, "
         "activation_size=1, parameter_size=1",
         "forward_compute_time must be a number >= 0, got '-1'", 1},
        {"node1 -- T -- " FIGURES "activation_size=1x, parameter_size=1",
         "activation_size must be a number >= 0, got '1x'", 1},
        {"node1 -- T -- " FIGURES "activation_size=[1; -2], parameter_size=1",
         "activation_size must be", 1},
        {"node1 -- T -- " FIGURES "activation_size=[1; 2, parameter_size=1",
         "activation_size must be", 1},
        {"node1 -- T -- " FIGURES "activation_size=inf, parameter_size=1",
         "activation_size must be", 1},
        {"node1 -- T -- " FIGURES "activation_size=nan, parameter_size=1",
         "activation_size must be", 1},
        {"node1 -- T -- " FIGURES "activation_size=, parameter_size=1",
         "activation_size must be", 1},
        {"node1 -- T -- " FIGURES "activation_size=1", "parameter_size is missing", 1},
        {"node1 -- T -- " FIGURES "activation_size=1, parameter_size=1, colour=3",
         "the figures of a node are", 1},
        {"node1 -- T -- " FIGURES FIGURES "activation_size=1, parameter_size=1",
         "only once", 1},
        {"node1 -- T -- " FIGURES "activation_size=1, parameter_size=1,", "name=value",
         1},
        {"node1 -- T -- " FIGURES "activation_size=1, parameter_size=1, stage_id=x",
         "stage_id must be", 1},
        {"node1 -- T -- " FIGURES "activation_size=1, parameter_size=1 -- stage_id=-1",
         "stage_id must be", 1},
        {"node1 -- " FIGURES "activation_size=1, parameter_size=1", "a node", 1},
        {"\n", "the profile is empty", 0},
        {"\n \n", "the profile is empty", 0},
        /* Each figure is finite, the op's memory is not. */
        {"node1 -- T -- " FIGURES "activation_size=1e308, parameter_size=1e308", "memory",
         1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct graph g = {0};
        struct rec_error err = {.text = ""};
        char place[80];
        if (try_profile(&g, bad[i].text, &seconds, &err))
            fail_msg("accepted: %s", bad[i].text);
        assert_int_equal(err.code, REC_DATA);
        snprintf(place, sizeof place, "%s:%d: ", text_path, bad[i].line);
        if (!strstr(err.text, bad[i].message) ||
            (bad[i].line && strncmp(err.text, place, strlen(place)) != 0))
            fail_msg("message %s\nexpected %s at line %d", err.text, bad[i].message,
                     bad[i].line);
        graph_free(&g);
    }
}

/* ---- records ------------------------------------------------------------- */

/* Unknown keys stay, in their order; names may be used before they are defined. */
static void
test_records(void **state)
{
    struct graph g = graph_text("graph g m colour=red of=x\n"
                                "dep g b a 5 via=air\n"
                                "op g a backward 2 20 zz=1 pair=b yy=2\n"
                                "op g b forward 1 10 param=3 activation=4\n"
                                "dep g a b 6 kind=sync\n");
    struct rec_str value;
    (void)state;
    assert_true(graph_key(&g, "colour", &value) && rec_str_is(value, "red"));
    assert_true(graph_key(&g, "of", &value) && rec_str_is(value, "x"));
    assert_false(graph_key(&g, "degree", &value));
    assert_string_equal(g.op[op_of(&g, "a")].extra, "\tzz=1\tyy=2");
    assert_int_equal(g.op[op_of(&g, "b")].pair, op_of(&g, "a"));
    assert_string_equal(find_dep(&g, "b", "a")->extra, "\tvia=air");
    assert_true(find_dep(&g, "a", "b")->sync);
    assert_same(graph_sequential(&g), 3);
    assert_same(graph_memory_sum(&g), 30);
    assert_same(graph_dep_bytes(&g), 11);
    graph_free(&g);
}

/*
 * Units are in order of their first part; members in order of part, whatever the order of
 * records; twins are units of the other pass.
 */
static void
test_units(void **state)
{
    struct graph g = graph_text("graph g m\n"
                                "op g xb forward 1 1 of=x part=2/2 pair=yb\n"
                                "op g w forward 1 1\n"
                                "op g ya backward 1 1 of=y part=1/2 pair=xa\n"
                                "op g xa forward 1 1 of=x part=1/2\n"
                                "op g yb backward 1 1 of=y part=2/2\n");
    (void)state;
    assert_int_equal(g.nunits, 3);
    assert_int_equal(g.unit[0].parts, 2);
    assert_int_equal(g.unit[1].parts, 1);
    assert_string_equal(g.op[g.member[g.unit[0].first]].id, "xa");
    assert_string_equal(g.op[g.member[g.unit[0].first + 1]].id, "xb");
    assert_string_equal(g.op[g.member[g.unit[2].first]].id, "ya");
    assert_int_equal(g.unit[0].twin, 2);
    assert_int_equal(g.unit[2].twin, 0);
    assert_true(g.unit[1].twin == GRAPH_NONE);
    assert_int_equal(g.op[op_of(&g, "xb")].pair, op_of(&g, "yb"));
    graph_free(&g);
}

/* Kahn, first in first out: c a | (c's child) d, (a's) b, then e when its last came. */
static void
test_order(void **state)
{
    struct graph g = graph_text("graph g m\n"
                                "op g c forward 1 1\nop g a forward 1 1\n"
                                "op g b forward 1 1\nop g d forward 1 1\n"
                                "op g e forward 1 1\n"
                                "dep g a b 1\ndep g c d 1\ndep g d e 1\ndep g b e 1\n"
                                "dep g e c 1 kind=sync\n");
    static const char *const expected[] = {"c", "a", "d", "b", "e"};
    uint32_t order[5];
    struct rec_error err;
    (void)state;
    assert_true(graph_order(&g, order, &err));
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(g.op[order[i]].id, expected[i]);
    graph_free(&g);
}

#define OPS "graph g m\nop g 1 forward 1 1\nop g 2 forward 1 1\n"

static void
test_record_errors(void **state)
{
    static const struct {
        const char *text, *message;
        int line;
    } bad[] = {
        {OPS "op g 1 forward 1 1\n", "op '1' is defined twice", 4},
        {OPS "dep g 1 3 1\n", "op '3' is named here", 4},
        {OPS "dep g 1 2 1\ndep g 1 2 1 kind=sync\n", "is there twice", 5},
        {OPS "dep g 1 2 -1\n", "BYTES must be", 4},
        {OPS "dep g 1 1 1\n", "op '1' depends on itself", 4},
        {OPS "op g 3 sideways 1 1\n", "PASS must be", 4},
        {OPS "op g 3 forward -1 1\n", "op '3': COMPUTE", 4},
        {OPS "op g 3 forward 1 1x\n", "op '3': MEMORY", 4},
        {OPS "op g 3 forward inf 1\n", "op '3': COMPUTE", 4},
        {OPS "op g 3,4 forward 1 1\n", "is not a name for an op", 4},
        {OPS "op h 3 forward 1 1\n", "must come together", 4},
        {OPS "op g 3 forward 1\n", "", 4},
        {OPS "op g 3 forward 1 1 pair=4\n", "has pair=4, but the graph has no such op",
         4},
        {OPS "op g 3 backward 1 1 pair=3\n", "not its twin", 4},
        {OPS "op g 3 forward 1 1 part=1/2\n", "a part needs of=", 4},
        {OPS "op g 3 forward 1 1 of=x part=3/2\n", "part must be I/N", 4},
        {OPS "op g 3 forward 1 1 of=x part=0/2\n", "part must be I/N", 4},
        {OPS "op g 3 forward 1 1 of=x part=1/9999999\n", "lacks parts of its ops", 4},
        {OPS "op g a forward 1 1 of=x part=1/2\n", "lacks parts of its ops", 4},
        {OPS "op g a forward 1 1 of=x part=1/2\nop g b forward 1 1 of=x part=1/2\n",
         "does not fit its other parts", 5},
        {OPS "op g a forward 1 1 of=x part=1/2\nop g b forward 1 1 of=x part=2/3\n",
         "does not fit its other parts", 5},
        {OPS "op g a forward 1 1 of=1 part=1/1\n", "is whole, but other ops are parts",
         2},
        /* Two ops claim one twin. */
        {OPS "op g a forward 1 1 pair=c\nop g b forward 1 1 pair=c\n"
             "op g c backward 1 1\n",
         "not its twin", 5},
        /* A twin is of the other pass. */
        {OPS "op g a forward 1 1 pair=b\nop g b forward 1 1\n", "backward", 4},
        {OPS "op g a backward 1 1 pair=b\nop g b backward 1 1\n", "backward", 4},
        /* A twin is split as its op is. */
        {OPS "op g a forward 1 1 pair=ba\nop g ba backward 1 1 of=b part=1/2\n"
             "op g bb backward 1 1 of=b part=2/2\n",
         "twin", 4},
        {OPS "op g aa forward 1 1 pair=ba of=a part=1/2\n"
             "op g ab forward 1 1 of=a part=2/2\n"
             "op g ba backward 1 1 of=b part=1/2\nop g bb backward 1 1 of=b part=2/2\n",
         "twin", 5},
        /* Parts of one op are of one pass. */
        {OPS "op g a forward 1 1 of=x part=1/2\nop g b backward 1 1 of=x part=2/2\n",
         "pass", 5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct graph g = {0};
        struct rec_error err = {.text = ""};
        char place[80];
        if (try_graph_text(&g, bad[i].text, &err))
            fail_msg("accepted: %s", bad[i].text);
        assert_int_equal(err.code, REC_DATA);
        snprintf(place, sizeof place, "%s:%d: ", text_path, bad[i].line);
        if (!strstr(err.text, bad[i].message) ||
            strncmp(err.text, place, strlen(place)) != 0)
            fail_msg("message %s\nexpected %s at line %d", err.text, bad[i].message,
                     bad[i].line);
        graph_free(&g);
    }
}

/* 1 -> 2 -> 3 -> 2: the message walks the cycle and nothing else. */
static void
test_cycle(void **state)
{
    struct graph g = {0};
    struct rec_error err;
    (void)state;
    assert_false(try_graph_text(&g,
                                OPS "op g 3 forward 1 1\ndep g 1 2 1\ndep g 2 3 1\n"
                                    "dep g 3 2 1\n",
                                &err));
    assert_int_equal(err.code, REC_DATA);
    if (!strstr(err.text, "has a cycle: '2' waits for '3' waits for '2'") &&
        !strstr(err.text, "has a cycle: '3' waits for '2' waits for '3'"))
        fail_msg("%s", err.text);
    graph_free(&g);
}

/* What is written of a graph, in `written`. */
static void
write_graph(const struct graph *graph,
            void (*put)(const struct graph *graph, struct rec_writer *writer),
            char written[2000])
{
    char path[64];
    int fd = memfd_create("out", 0);
    struct rec_error err;
    struct rec_writer *writer;
    ssize_t n;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    writer = rec_writer_open(path, NULL, &err);
    assert_non_null(writer);
    put(graph, writer);
    assert_true(rec_writer_close(writer, true, &err));
    n = pread(fd, written, 1999, 0);
    assert_true(n > 0);
    written[n] = '\0';
    close(fd);
}

/* What graph_write() writes reads back as the same graph, extras and all. */
static void
test_write(void **state)
{
    static const char text[] =
        "graph g m colour=red\n"
        "op g 1a forward 0.1 10 type=X param=3 activation=4 pair=2a of=1 part=1/2\n"
        "op g 1b forward 0.1 10 pair=2b of=1 part=2/2\n"
        "op g 2a backward 1e-9 10 pair=1a of=2 part=1/2\n"
        "op g 2b backward 0 10 pair=1b of=2 part=2/2\n"
        "dep g 1a 2a 7 via=air\n"
        "dep g 2a 2b 8 kind=sync\n";
    struct graph g = graph_text(text);
    char *expected = tabs(text), written[2000];
    (void)state;
    write_graph(&g, graph_write, written);
    assert_string_equal(written, expected);
    free(expected);
    graph_free(&g);
}

/* A picture: label= before type=, work if it is given, and the time unless it is not
 * known; numbers with units. A coll stands between its ops and those that wait for it. */
static void
test_write_dot(void **state)
{
    struct graph g =
        graph_text("graph g m\n"
                   "op g 1 forward 0.0125 10 type=Conv2d label=a\"b flops=2.964e10\n"
                   "op g 2 backward 0 10 flops=5000\n"
                   "op g 3 backward 0 10 flops=0\n"
                   "op g 4 task 35 10 label=sort\n"
                   "dep g 1 2 38535168\n"
                   "dep g 2 3 8 kind=sync\n"
                   "coll g sum all-reduce 2000000 ops=1,2\n"
                   "dep g sum 4 0\n");
    char written[2000];
    (void)state;
    write_graph(&g, graph_write_dot, written);
    assert_string_equal(
        strstr(written, "    \"1\""),
        "    \"1\" [label=\"1\\na\\\"b\\nConv2d\\n29.6 GFLOP\\n12.5 ms\", "
        "fillcolor=lightblue];\n"
        "    \"2\" [label=\"2\\n5 kFLOP\", fillcolor=lightsalmon];\n"
        "    \"3\" [label=\"3\\n0 s\", fillcolor=lightsalmon];\n"
        "    \"4\" [label=\"4\\nsort\\n35 s\", fillcolor=lightgrey];\n"
        "    \"1\" -> \"2\" [label=\"38.5 MB\"];\n"
        "    \"2\" -> \"3\" [label=\"8 B\", style=dashed];\n"
        "    \"sum\" [shape=ellipse, fillcolor=white, "
        "label=\"sum\\nall-reduce\\n2 MB\"];\n"
        "    \"1\" -> \"sum\";\n"
        "    \"2\" -> \"sum\";\n"
        "    \"sum\" -> \"4\";\n}\n");
    graph_free(&g);
}

static double
flops_of(const char *text)
{
    struct graph g = graph_text(text);
    struct rec_error err = {.text = ""};
    double flops = 0;
    if (!graph_model_flops(&g, &flops, &err))
        fail_msg("%s", err.text);
    graph_free(&g);
    return flops;
}

#define WORK "graph g m\nop g 1 forward 1 1 flops=10 pair=2\n"

/* Forward 10; backward min(flops, 2 * 10); without a twin all that it says. Communication
 * adds nothing, and an op that only moves adds 0. Nothing is known if an op does not say
 * what it does, if nothing is computed, or if the sum is more than a double holds. */
static void
test_model_flops(void **state)
{
    struct graph g = graph_text(WORK "op g 2 backward 1 1 flops=-1 pair=1\n");
    struct rec_error err;
    double flops;
    (void)state;
    assert_same(flops_of(WORK "op g 2 backward 1 1 flops=15 pair=1\n"), 25);
    assert_same(flops_of(WORK "op g 2 backward 1 1 flops=25 pair=1\n"), 30);
    assert_same(flops_of(WORK "op g 2 backward 1 1 moved=25 pair=1\n"), 10);
    assert_same(flops_of("graph g m\nop g 1 backward 1 1 flops=25\n"), 25);
    assert_same(flops_of(WORK "op g 2 backward 1 1 flops=25 pair=1\n"
                              "op g 3 forward 1 1 coll=send flops=4\n"),
                30);
    assert_true(isnan(flops_of(WORK "op g 2 backward 1 1 flops=25 pair=1\n"
                                    "op g 3 forward 1 1\n")));
    assert_true(isnan(flops_of("graph g m\nop g 1 forward 1 1 moved=2\n")));
    assert_true(isnan(flops_of("graph g m\nop g 1 forward 1 1 flops=1e308\n"
                               "op g 2 forward 1 1 flops=1e308\n")));
    assert_false(graph_model_flops(&g, &flops, &err));
    assert_int_equal(err.code, REC_DATA);
    assert_non_null(strstr(err.text, "op '2': flops must be a number >= 0, got '-1'"));
    graph_free(&g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profile_forms), cmocka_unit_test(test_profile_options),
        cmocka_unit_test(test_profile_head),  cmocka_unit_test(test_mirror),
        cmocka_unit_test(test_mirror_single), cmocka_unit_test(test_profile_errors),
        cmocka_unit_test(test_records),       cmocka_unit_test(test_units),
        cmocka_unit_test(test_order),         cmocka_unit_test(test_record_errors),
        cmocka_unit_test(test_cycle),         cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_dot),     cmocka_unit_test(test_model_flops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
