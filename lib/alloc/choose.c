/* Which alternative of a job is taken. A new way to choose is a function and a row. */
#include "private.h"

static bool
first(void *self, struct alloc_question *q, uint32_t *choice, struct rec_error *err)
{
    uint32_t n = alloc_question_count(q);
    (void)self;
    *choice = ALLOC_NONE;
    for (uint32_t i = 0; *choice == ALLOC_NONE && i < n; i++) {
        const struct alloc_alternative *alternative = alloc_question_try(q, i, err);
        if (!alternative)
            return false;
        if (!alternative->cause)
            *choice = i;
    }
    return true;
}

static bool
first_degree(void *self, struct alloc_question *q, uint32_t *choice,
             struct rec_error *err)
{
    const struct alloc_alternative *alternative;
    uint32_t n = alloc_question_count(q), i = 0, degree;
    (void)self;
    *choice = ALLOC_NONE;
    do {
        if (!alloc_question_degree(q, i, &degree, err))
            return false;
    } while (degree > alloc_question_free_servers(q) && ++i < n);
    if (i == n)
        return true;
    alternative = alloc_question_try(q, i, err);
    if (alternative && !alternative->cause)
        *choice = i;
    return alternative != NULL;
}

/* The best of those that can start, the first of equal ones. */
static bool
best(struct alloc_question *q,
     bool (*better)(const struct alloc_alternative *a, const struct alloc_alternative *b),
     uint32_t *choice, struct rec_error *err)
{
    const struct alloc_alternative *so_far = NULL;
    uint32_t n = alloc_question_count(q);
    *choice = ALLOC_NONE;
    for (uint32_t i = 0; i < n; i++) {
        const struct alloc_alternative *alternative = alloc_question_try(q, i, err);
        if (!alternative)
            return false;
        if (alternative->cause || (so_far && !better(alternative, so_far)))
            continue;
        so_far = alternative;
        *choice = i;
    }
    return true;
}

static bool
is_faster(const struct alloc_alternative *a, const struct alloc_alternative *b)
{
    return a->finish < b->finish;
}

static bool
fastest(void *self, struct alloc_question *q, uint32_t *choice, struct rec_error *err)
{
    (void)self;
    return best(q, is_faster, choice, err);
}

static bool
is_smaller(const struct alloc_alternative *a, const struct alloc_alternative *b)
{
    return a->nservers < b->nservers;
}

static bool
fewest_servers(void *self, struct alloc_question *q, uint32_t *choice,
               struct rec_error *err)
{
    (void)self;
    return best(q, is_smaller, choice, err);
}

const struct alloc_chooser alloc_choosers[] = {
    {"first", NULL, false, NULL, NULL, first},
    {"first-degree", NULL, false, NULL, NULL, first_degree},
    {"fastest", NULL, false, NULL, NULL, fastest},
    {"fewest-servers", NULL, false, NULL, NULL, fewest_servers},
    {"learned", "FILE", true, alloc_scorer_open, alloc_scorer_free, alloc_scorer_decide},
    {NULL, NULL, false, NULL, NULL, NULL}};
