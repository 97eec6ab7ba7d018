/* The fleet: against one that is slow and obviously right, and each victim as likely as
 * another. */
#include "unit.h"

#include "rampipe/random.h"
#include "rampipe/train.h"

/* ---- a slow fleet -------------------------------------------------------- */

enum { ROOM = 1000, NAMES = 90 };

struct slow_instance {
    char name[16];
    enum train_state state;
    uint32_t place;
    size_t leaving; /* the how manieth that left; 0: it stays */
    double ready;
};

struct slow {
    struct slow_instance at[ROOM]; /* in the order in which they came */
    size_t n, numbers, left;
    bool refused[NAMES];
    enum train_victims victims;
    struct rng *rng;
};

/* Names, some of which are numbers. */
static const char *
name_of(size_t i)
{
    static char name[16];
    snprintf(name, sizeof name, i % 3 == 0 ? "a%zu" : i % 3 == 1 ? "a0%zu" : "%zu", i);
    return name;
}

static size_t
slow_find(const struct slow *s, const char *name)
{
    size_t i = 0;
    while (i < s->n && (s->at[i].leaving || strcmp(s->at[i].name, name) != 0))
        i++;
    return i;
}

static void
slow_add(struct slow *s, const char *name, enum train_state state, double ready)
{
    struct slow_instance instance = {.state = state, .ready = ready};
    assert_true(s->n < ROOM);
    snprintf(instance.name, sizeof instance.name, "%s", name);
    while (instance.name[0] == '\0' || slow_find(s, instance.name) < s->n)
        snprintf(instance.name, sizeof instance.name, "%zu", s->numbers++);
    s->at[s->n++] = instance;
}

/* Of two that stay, which goes before the other? */
static bool
goes_first(const struct slow *s, size_t i, size_t j)
{
    return s->victims == TRAIN_OLDEST   ? i < j
           : s->victims == TRAIN_NEWEST ? i > j
                                        : strverscmp(s->at[i].name, s->at[j].name) < 0;
}

static void
slow_choose(struct slow *s, size_t count)
{
    size_t stay[ROOM], n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!s->at[i].leaving)
            stay[n++] = i;
    for (size_t i = 0; i < count && i < n; i++) {
        size_t j = i, other = stay[i];
        if (s->victims == TRAIN_RANDOM)
            j += rng_below(s->rng, (uint32_t)(n - i));
        else
            for (size_t k = i; k < n; k++)
                if (goes_first(s, stay[k], stay[j]))
                    j = k;
        stay[i] = stay[j];
        stay[j] = other;
        s->at[stay[i]].leaving = ++s->left;
    }
}

/* False: none leaves. */
static bool
slow_take(struct slow *s, bool last, struct slow_instance *gone)
{
    size_t best = s->n;
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i].leaving &&
            (best == s->n || (s->at[i].leaving > s->at[best].leaving) == last))
            best = i;
    if (best == s->n)
        return false;
    *gone = s->at[best];
    memmove(&s->at[best], &s->at[best + 1], (--s->n - best) * sizeof *s->at);
    return true;
}

static void
slow_move(struct slow *s, enum train_state from, enum train_state to, uint64_t count)
{
    uint32_t moved = 0;
    for (size_t i = 0; i < s->n && moved < count; i++)
        if (s->at[i].state == from) {
            s->at[i].state = to;
            s->at[i].place = moved++;
        }
}

/* ---- the same is done to both -------------------------------------------- */

static void
add(struct slow *s, struct train_fleet *f, double ready)
{
    uint64_t count = random_below(random_below(4) ? 6 : 30),
             capacity = random_below(4) ? ROOM : s->n + 2, added;
    enum train_state state = random_below(4) ? TRAIN_PREPARING : TRAIN_STANDBY;
    bool named = random_below(2), ok = true;
    size_t before = s->n, len = 0;
    struct rec_error err;
    char ids[200] = "";

    for (uint64_t i = 0; i < count; i++) {
        size_t k = random_below(NAMES);
        const char *name = named ? name_of(k) : "";
        len += (size_t)snprintf(ids + len, sizeof ids - len, "%s%s", i ? "," : "", name);
        if (!ok)
            continue;
        if (s->n >= capacity)
            s->refused[k] = s->refused[k] || named;
        else if (slow_find(s, name) < s->n)
            ok = false; /* those before are added */
        else
            slow_add(s, name, state, ready);
    }
    assert_true(train_fleet_add(f, count, named ? rec_str(ids) : (struct rec_str){0},
                                capacity, state, ready, &added, &err) == ok);
    assert_int_equal(added, s->n - before);
}

static void
leave_by_name(struct slow *s, struct train_fleet *f)
{
    size_t k = 0, i;
    struct rec_error err;
    char name[16];
    bool ok;

    snprintf(name, sizeof name, "%s",
             s->n > 0 && random_below(8) ? s->at[random_below(s->n)].name
                                         : name_of(random_below(NAMES)));
    i = slow_find(s, name);
    while (k < NAMES && strcmp(name, name_of(k)) != 0)
        k++;
    ok = i < s->n || (k < NAMES && s->refused[k]);
    if (i < s->n)
        s->at[i].leaving = ++s->left;
    else if (ok)
        s->refused[k] = false;
    assert_true(train_fleet_leave(f, rec_str(name), &err) == ok);
}

static void
take(struct slow *s, struct train_fleet *f)
{
    struct train_instance gone;
    struct slow_instance want;
    uint64_t count = random_below(8);
    while (count-- > 0) {
        bool last = random_below(2), some = slow_take(s, last, &want);
        assert_true(train_fleet_take(f, last, &gone) == some);
        if (!some)
            break;
        assert_true(gone.state == want.state && gone.place == want.place &&
                    gone.ready == want.ready);
    }
}

static void
settle(struct slow *s, struct train_fleet *f, double now)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i].state == TRAIN_PREPARING && s->at[i].ready <= now) {
            s->at[i].state = TRAIN_STANDBY;
            s->at[i].place = 0;
        }
    train_fleet_settle(f, now);
}

static void
move(struct slow *s, struct train_fleet *f)
{
    bool grow = random_below(2);
    enum train_state from = grow ? TRAIN_STANDBY : TRAIN_ACTIVE;
    enum train_state to = grow ? TRAIN_ACTIVE : TRAIN_STANDBY;
    uint64_t count = random_below(2) ? random_below(20) : UINT64_MAX;
    slow_move(s, from, to, count);
    train_fleet_move(f, from, to, count);
}

static void
compare(const struct slow *s, const struct train_fleet *f)
{
    uint64_t count[TRAIN_NSTATES] = {0}, staying = 0;
    struct train_instance instance;
    double ready = INFINITY;
    size_t at = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct slow_instance *want = &s->at[i];
        assert_true(train_fleet_next(f, &at, &instance));
        assert_string_equal(instance.name, want->name);
        assert_true(instance.state == want->state && instance.place == want->place &&
                    instance.ready == want->ready &&
                    instance.leaving == (want->leaving > 0));
        count[want->state]++;
        staying += want->leaving == 0;
        if (want->state == TRAIN_PREPARING)
            ready = fmin(ready, want->ready);
    }
    assert_false(train_fleet_next(f, &at, &instance));
    for (int i = 0; i < TRAIN_NSTATES; i++)
        assert_int_equal(train_fleet_count(f, (enum train_state)i), count[i]);
    assert_int_equal(train_fleet_size(f), s->n);
    assert_int_equal(train_fleet_staying(f), staying);
    assert_true(train_fleet_next_ready(f) == ready);
    for (size_t i = random_below(10); i < NAMES; i += 10)
        assert_true(train_fleet_has(f, rec_str(name_of(i))) ==
                    (slow_find(s, name_of(i)) < s->n));
}

/* Fleets that grow for a while, then shrink, so that gaps are closed, and grow again. */
static void
play(enum train_victims victims, uint32_t seed)
{
    static struct slow s;
    struct rec_error err;
    struct train_fleet *f = train_fleet_new(victims, seed, 0, &err);
    double now = 0;

    s = (struct slow){.victims = victims, .rng = rng_new(seed, 0, &err)};
    assert_true(f && s.rng);
    for (int i = 0; i < 500; i++) {
        uint64_t count = random_below(i / 100 % 2 ? 12 : 4);
        now += (double)random_below(3);
        switch (random_below(6)) {
        case 0:
        case 1: add(&s, f, now + 10); break;
        case 2: leave_by_name(&s, f); break;
        case 3:
            slow_choose(&s, count);
            assert_true(train_fleet_choose(f, count, &err));
            break;
        case 4: take(&s, f); break;
        default:
            if (random_below(2))
                settle(&s, f, now);
            else
                move(&s, f);
        }
        compare(&s, f);
    }
    rng_free(s.rng);
    train_fleet_free(f);
}

static void
test_against_slow(void **state)
{
    (void)state;
    for (uint32_t seed = 0, n = (uint32_t)part_of(40); seed < n; seed++)
        for (int victims = TRAIN_RANDOM; victims <= TRAIN_LOWEST; victims++)
            play((enum train_victims)victims, seed);
}

/* Random victims: each of 8 goes as often as another; 5 errors of 100000 draws. */
static void
test_random_victims(void **state)
{
    struct rec_error err;
    struct train_instance one;
    uint64_t n, gone[8] = {0};
    (void)state;
    for (uint32_t seed = 0; seed < 20000; seed++) {
        struct train_fleet *f = train_fleet_new(TRAIN_RANDOM, seed, 0, &err);
        assert_non_null(f);
        assert_true(train_fleet_add(f, 8, (struct rec_str){NULL, 0}, 8, TRAIN_ACTIVE, 0,
                                    &n, &err));
        assert_true(train_fleet_choose(f, 3, &err));
        for (size_t at = 0; train_fleet_next(f, &at, &one);)
            gone[one.name[0] - '0'] += one.leaving;
        train_fleet_free(f);
    }
    for (int i = 0; i < 8; i++)
        assert_near((double)gone[i], 7500, 5 * sqrt(20000 * 0.375 * 0.625));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_slow),
                                       cmocka_unit_test(test_random_victims)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
