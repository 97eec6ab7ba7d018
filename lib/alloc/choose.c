/*
 * The rules of --choose: which alternative of a job is taken. A new rule is a function
 * and a row of alloc_choosers. Trying an alternative costs time, and also decides what
 * becomes of a job that does not start: its cause is that of the last alternative tried,
 * and it may wait only if one that was tried could not be placed (question.c). So a rule
 * tries no more than it must.
 */
#include "private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool
alloc_never_better(const struct alloc_alternative *a, const struct alloc_alternative *b)
{
    (void)a;
    (void)b;
    return false;
}

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

/* As the published simulator does: it compares only the degree with the number of free
 * servers, and gives up if that alternative then cannot be placed. If all degrees are
 * above it nothing is tried, and the cause is no_servers, even on an empty cluster. */
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

/* Chooses the best of the alternatives that can start; of equally good ones the first. */
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
    {"first", NULL, false, NULL, NULL, NULL, first, alloc_never_better, NULL},
    {"first-degree", NULL, false, NULL, NULL, NULL, first_degree, NULL, NULL},
    {"fastest", NULL, false, NULL, NULL, NULL, fastest, is_faster, NULL},
    {"fewest-servers", NULL, false, NULL, NULL, NULL, fewest_servers, is_smaller, NULL},
    {"learned", "FILE", true, alloc_scorer_open, alloc_scorer_free, NULL,
     alloc_scorer_decide, NULL, alloc_scorer_judge},
    {"rollout", "N", true, alloc_rollout_open, alloc_rollout_free, alloc_rollout_arrive,
     alloc_rollout_decide, NULL, alloc_rollout_judge},
    {NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL}};

const struct alloc_chooser *
alloc_chooser_find(struct rec_str name)
{
    for (const struct alloc_chooser *row = alloc_choosers; row->name; row++)
        if (rec_str_is(name, row->name))
            return row;
    return NULL;
}

bool
alloc_choosing_judge(const struct alloc_choosing *c, struct alloc_question *q,
                     uint32_t *choice, double *worths, struct rec_error *err)
{
    uint32_t n = alloc_question_count(q);
    for (uint32_t i = 0; i <= n; i++)
        worths[i] = -INFINITY;
    if (c->chooser->judge)
        return c->chooser->judge(c->self, q, choice, worths, err);
    return c->chooser->decide(c->self, q, choice, err);
}

/* Writes the names of those that can be opened, with their arguments, for a message:
 * rollouts need a base. */
static const char *
list_choosers(const struct alloc_choice *choice, char *text, size_t room)
{
    char name[60];
    *text = '\0';
    for (const struct alloc_chooser *row = alloc_choosers; row->name; row++) {
        if (row->open == alloc_rollout_open && !choice->base)
            continue;
        snprintf(name, sizeof name, "%s%s%s", row->name, row->argument ? ":" : "",
                 row->argument ? row->argument : "");
        rec_list_name(text, room, name);
    }
    return text;
}

/* An argument must be given if and only if the row says so, and it must not be empty. */
bool
alloc_choosing_open(struct alloc_choosing *c, const char *text,
                    const struct alloc_choice *choice, struct rec_error *err)
{
    const char *colon = strchrnul(text, ':');
    const struct alloc_chooser *row =
        alloc_chooser_find((struct rec_str){text, (size_t)(colon - text)});
    struct alloc_choice with = *choice;
    char list[300];

    if (!row || !*colon != !row->argument || (*colon && !colon[1]))
        return rec_fail(err, REC_USAGE, "must be one of %s, got '%s'",
                        list_choosers(choice, list, sizeof list), text);
    c->chooser = row;
    if (!row->open)
        return true;
    if (!(c->argument = strdup(colon + 1)))
        return rec_fail_memory(err);
    with.argument = c->argument;
    return (c->self = row->open(&with, err)) != NULL;
}

struct place_ways
alloc_choosing_trained(const struct alloc_choosing *c)
{
    const struct alloc_scorer *scorer = c->self;
    return c->chooser && c->chooser->decide == alloc_scorer_decide
               ? scorer->ways
               : (struct place_ways){.n = 0};
}

bool
alloc_choosing_is_foreign(const struct alloc_choosing *c, const struct net *net)
{
    return c->chooser && c->chooser->decide == alloc_scorer_decide &&
           scorer_is_foreign(c->self, net);
}

void
alloc_choosing_close(struct alloc_choosing *c)
{
    if (c->self)
        c->chooser->free(c->self);
    free(c->argument);
    *c = (struct alloc_choosing){.chooser = NULL};
}
