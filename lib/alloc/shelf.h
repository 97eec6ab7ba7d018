/*
 * The layouts that graphs were placed in (which op shares a server with which), each with
 * the costs of the geometries it was used with (sim.h). Many placements of a graph have
 * the same layout: so a job whose layout is known takes time in proportion to its
 * servers.
 */
#ifndef RAMPIPE_ALLOC_SHELF_H
#define RAMPIPE_ALLOC_SHELF_H

#include "rampipe/place.h"
#include "rampipe/sim.h"

/* A layout. */
struct shelf_layout {
    struct sim_layout *layout; /* NULL: the entry is unused */
    uint64_t serial;           /* which layout has this entry: counts those made */
    uint32_t graph;            /* it is in shelf->graph[graph].layouts[light], */
    bool light;
    char *key; /* owned: with this key, */
    size_t key_len;
};

/* What is known of a graph of the store. */
struct shelf_graph {
    /* A key, see set_key(), set_long_key() and set_act_key() -> index into shelf->laid:
     * [true] of layouts by which light plans are placed. */
    struct rec_map layouts[2];
    uint32_t recent; /* the index into shelf->laid of the layout that was found last */
};

/* Starts as {0}. */
struct shelf {
    struct shelf_graph *graph;
    size_t ngraphs, graph_room;
    struct shelf_layout *laid;
    uint32_t *vacant; /* indexes of unused entries of laid */
    size_t nlaid, laid_room, nvacant, vacant_room;
    uint64_t serial;         /* layouts made so far */
    struct sim_layouts pool; /* bounds their memory */
    /* Scratch: */
    uint32_t *slots;    /* per server of a placement: its slot */
    uint32_t *op_slots; /* per op: its slot */
    uint32_t *key;      /* see set_key() */
    size_t op_slots_room, key_room, nkey;
};

/* Layouts that no job holds are kept up to `bytes`. To be freed even after an error. */
bool shelf_init(struct shelf *shelf, uint32_t nservers, size_t bytes,
                struct rec_error *err) REC_MUST_CHECK;
void shelf_free(struct shelf *shelf);
/* Finds the layout of a placement of graph `index` of the store, whose plan it is, or
 * makes it. The slot of a server is its position among the servers that the job holds.
 * `light`: place_light() has placed it. *place becomes its index in shelf->laid. */
bool shelf_place(struct shelf *shelf, uint32_t index, const struct place_plan *plan,
                 bool light, const struct place_placement *placement, uint32_t *place,
                 struct rec_error *err) REC_MUST_CHECK;
/* Finds the layout that equals *where, which an agent has made; if there is none, *where
 * is taken over, else the caller frees it. `light`: place_light() would place the
 * plan. */
bool shelf_take(struct shelf *shelf, uint32_t index, const struct place_plan *plan,
                bool light, struct graph_layout *where, uint32_t *place,
                struct rec_error *err) REC_MUST_CHECK;
/* Forgets layouts that no job holds, if they are too many. */
bool shelf_forget(struct shelf *shelf, struct rec_error *err) REC_MUST_CHECK;
/* Forgets all of a graph, unless a job runs on one of its layouts: then *dropped is
 * false. */
bool shelf_drop(struct shelf *shelf, uint32_t index, bool *dropped,
                struct rec_error *err) REC_MUST_CHECK;

#endif
