/*
 * What links carry (sim --links) against what is sent: on random networks, for each link,
 * the bytes of all messages whose routes, listed here one by one, go through it. That
 * does not depend on who shares the links, on whether steps are simulated, and on whether
 * flows are folded, as those of a coll of more than 64 servers are.
 */
#include "buses.h"

enum { LINKS = 4000, STEPS = 3 };

static struct rec_error err;

struct carried {
    double bytes[LINKS], most; /* the largest part of the time that a link is busy */
    uint32_t links;
    double error; /* of the time: where steps take a mean, it is that of the mean */
};

static bool
hear_load(void *context, const struct net *net, const struct sim_load *load,
          struct rec_error *e)
{
    struct carried *carried = context;
    (void)net, (void)e;
    carried->bytes[load->link] = load->bytes;
    carried->links++;
    carried->most = fmax(carried->most, load->busy / load->seconds);
    /* it carries no more than it can while it is busy */
    if (!(load->bytes <= load->capacity * load->busy * (1 + carried->error)))
        fail_msg("link %u: %.17g bytes in %.17g s at %.17g", load->link, load->bytes,
                 load->busy, load->capacity);
    return true;
}

static void
carry(const char *text, double exact, struct carried *carried)
{
    struct sim_replay_sink sink = {.load = hear_load, .context = carried};
    struct sim_replay *r = sim_replay_new(&sink, INFINITY, &err);
    struct sim_flows *flows = sim_flows_new(&err);
    struct event_clock clock = {0};
    struct rec_reader *reader = open_text(text);
    struct rec rec;
    int status;
    bool ok;

    *carried = (struct carried){.error = exact > 0 ? 1e-9 : 0.1};
    sim_replay_share(r, &sim_flows_sharing, flows, exact);
    ok = event_clock_add(&clock, &sim_replay_model, r, &err);
    while (ok && (status = rec_next(reader, &rec, &err)) > 0)
        ok = event_clock_take(&clock, reader, &rec, &err) >= 0;
    if (!ok || !event_clock_end(&clock, INFINITY, &err))
        fail_msg("%s", err.text);
    event_clock_free(&clock);
    sim_replay_free(r);
    sim_flows_free(flows);
    close_text(reader);
}

/* Adds the bytes that go from one server to another. */
static void
send(const struct net *net, uint32_t from, uint32_t to, double bytes, double *on)
{
    uint32_t route[64], n = net_route(net, from, to, route);
    assert_true(n <= 64);
    for (uint32_t i = 0; i < n; i++)
        on[route[i]] += bytes;
}

/* An all-to-all of n ops on servers first, first + each, ..., in which each sends
 * BYTES/n to each other one, and a message from the first to the last. */
static void
write_job(FILE *out, const struct net *net, const char *job, uint32_t n, uint32_t first,
          uint32_t each, double bytes, double message, double *on)
{
    char name[NET_NAME_MAX];
    fprintf(out, "graph\tg%s\tm\n", job);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "op\tg%s\t%u\ttask\t%g\t0\n", job, i, 0.1 * (1 + i % 3));
    fprintf(out, "op\tg%s\tlast\ttask\t0.1\t0\n", job);
    fprintf(out, "coll\tg%s\tc\tall-to-all\t%.17g\tops=", job, bytes);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, i ? ",%u" : "%u", i);
    fprintf(out, "\ndep\tg%s\tc\tlast\t0\ndep\tg%s\t0\tlast\t%.17g\n", job, job, message);
    fprintf(out, "job\t%s\tg%s\t0\t%d\tinf\nlayout\tL%s\tg%s\t%u\n", job, job, STEPS, job,
            job, n);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "place\tL%s\t%u\t%u\n", job, i, i);
    fprintf(out, "place\tL%s\tlast\t%u\nalloc\t%s\tg%s\tL%s\t0\t", job, n - 1, job, job,
            job);
    for (uint32_t i = 0; i < n; i++) {
        net_format_server(net, first + i * each, name);
        fprintf(out, i ? ",%s" : "%s", name);
        for (uint32_t k = 0; k < n; k++)
            if (k != i)
                send(net, first + i * each, first + k * each, STEPS * bytes / n, on);
    }
    send(net, first, first + (n - 1) * each, STEPS * message, on);
    fputc('\n', out);
}

/* Some bytes, from 1 to 9. */
static double
some(void)
{
    return 1 + (double)draw(800) / 100;
}

/* Two jobs on every second server each: they share all links but those of servers. */
static void
try_cluster(const char *kind, uint32_t n)
{
    static struct carried carried;
    static double on[LINKS];
    struct net *net = net_parse(kind, &err);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    uint32_t used = 0;

    assert_non_null(net);
    assert_true(net_links(net) <= LINKS);
    memset(on, 0, sizeof on);
    fprintf(out, "cluster");
    for (const char *at = kind, *first = strchr(kind, ':'); *at; at++) {
        if (at == kind)
            fputc('\t', out);
        fputc(*at == ',' || at == first ? '\t' : *at, out);
    }
    fputc('\n', out);
    write_job(out, net, "a", n, 0, 2, some(), some(), on);
    write_job(out, net, "b", n / 2 + 1, 1, 2, some(), some(), on);
    fclose(out);
    for (int mean = 0; mean < 2; mean++) {
        carry(text, mean ? 0 : (double)INFINITY, &carried);
        used = 0;
        for (uint32_t i = 0; i < net_links(net); i++) {
            used += on[i] > 0;
            if (!(fabs(carried.bytes[i] - on[i]) <= 1e-9 * on[i]))
                fail_msg("%s, link %u: %.17g bytes, %.17g were sent", kind, i,
                         carried.bytes[i], on[i]);
        }
        assert_int_equal(carried.links, used);
        if (!(carried.most > 0 && carried.most <= 1 + 1e-9))
            fail_msg("%s: busy for %.17g of the time", kind, carried.most);
    }
    free(text);
    net_free(net);
}

static void
test_conservation(void **state)
{
    static const struct {
        const char *kind;
        uint32_t n;
    } tried[] = {{"island:12,8,0.5,1", 6},       {"fat-tree:3x4,8,0.25,1,taper=2", 6},
                 {"rail:2,2,3,8,0.25,64,1", 6},  {"torus:3x4,8,0.5,1", 6},
                 {"dragonfly:3,2,2,8,0.5,1", 6}, {"fat-tree:10x14,8,0.25,1,taper=2", 70},
                 {"island:140,8,0.5,1", 70}};
    (void)state;
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        try_cluster(tried[i].kind, tried[i].n);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conservation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
