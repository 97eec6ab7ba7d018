/* Memory: arrays that grow, and an arena for texts. */
#include "rampipe/record.h"

#include <stdlib.h>

bool
rec_grow_array(void *array, size_t *capacity, size_t need, size_t size,
               struct rec_error *err)
{
    void *old, *grown;
    size_t room = *capacity ? *capacity : 16;

    while (room < need) {
        if (room > SIZE_MAX / 2)
            return rec_fail_memory(err);
        room *= 2;
    }
    if (room > SIZE_MAX / size)
        return rec_fail_memory(err);
    /* `array` points to a pointer of any type; memcpy() reads it without breaking C's
     * aliasing rules. */
    memcpy(&old, array, sizeof old);
    grown = realloc(old, room * size);
    if (!grown)
        return rec_fail_memory(err);
    memcpy(array, &grown, sizeof grown);
    *capacity = room;
    return true;
}

/* ---- the arena ----------------------------------------------------------- */

/* Sizes in bytes. The first chunk of an arena is small, because a stage may have very
 * many arenas. Each further chunk is twice as large as the one before, up to the largest
 * size, which bounds what a nearly empty chunk wastes. A longer text gets a chunk of its
 * own. */
enum { FIRST_CHUNK = 256, LARGEST_CHUNK = 1 << 16 };

struct rec_arena_chunk {
    struct rec_arena_chunk *before;
    size_t size;
    char bytes[];
};

const char *
rec_arena_copy(struct rec_arena *arena, struct rec_str text, struct rec_error *err)
{
    char *to;
    if (text.len + 1 > arena->left) {
        size_t size = arena->chunk ? 2 * arena->chunk->size : FIRST_CHUNK;
        struct rec_arena_chunk *chunk;
        if (size > LARGEST_CHUNK)
            size = LARGEST_CHUNK;
        if (size < text.len + 1)
            size = text.len + 1;
        chunk = malloc(sizeof *chunk + size);
        if (!chunk) {
            rec_fail_memory(err);
            return NULL;
        }
        *chunk = (struct rec_arena_chunk){arena->chunk, size};
        arena->chunk = chunk;
        arena->left = size;
    }
    to = arena->chunk->bytes + (arena->chunk->size - arena->left);
    arena->left -= text.len + 1;
    if (text.len)
        memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
    return to;
}

void
rec_arena_free(struct rec_arena *arena)
{
    while (arena->chunk) {
        struct rec_arena_chunk *before = arena->chunk->before;
        free(arena->chunk);
        arena->chunk = before;
    }
    arena->left = 0;
}
