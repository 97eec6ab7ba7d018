/* Any chances by hour of day: the trace is in order, who leaves was there, and nobody is
 * too many; the same seed draws the same. */
#include "fuzz.h"

#include "rampipe/spot.h"

enum { NODES = 1 << 13 };

struct seen {
    const struct spot_hourly *hourly;
    double last;
    uint64_t n, hash, largest;
    bool present[NODES];
};

static bool
see(void *context, const struct spot_event *event, struct rec_error *err)
{
    struct seen *seen = context;
    char line[100];
    unsigned long node;
    (void)err;
    require(event->time >= seen->last &&
                (event->time == 0 || event->time < seen->hourly->minutes * 60),
            "times are in order, before the end");
    require(event->count == 1 && event->ids.len > 4 && event->ids.len < 20 &&
                memcmp(event->ids.ptr, "node", 4) == 0,
            "an event is of one node");
    memcpy(line, event->ids.ptr, event->ids.len);
    line[event->ids.len] = '\0';
    node = strtoul(line + 4, NULL, 10);
    require(node > 0 && node < NODES, "nodes are numbered");
    require(seen->present[node] == (event->kind == SPOT_PREEMPT),
            "who comes was not there, who leaves was");
    require(event->kind == SPOT_PREEMPT || node == seen->largest + 1, "none is left out");
    seen->largest += event->kind == SPOT_ADD;
    seen->present[node] = event->kind == SPOT_ADD;
    seen->n = event->kind == SPOT_ADD ? seen->n + 1 : seen->n - 1;
    require(seen->n <= seen->hourly->desired, "no more than desired");
    seen->last = event->time;
    snprintf(line, sizeof line, "%.17g %lu %d", event->time, node, event->kind);
    seen->hash = seen->hash * 31 + rec_hash(rec_str(line));
    return true;
}

static uint64_t
draw(const struct spot_hourly *hourly)
{
    struct rec_error err = {.text = ""};
    struct seen *seen = calloc(1, sizeof *seen);
    uint64_t hash;
    if (!seen)
        abort();
    seen->hourly = hourly;
    require(spot_draw_hourly(hourly, see, seen, &err), "it is drawn");
    hash = seen->hash;
    free(seen);
    return hash;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    /* at most 15 nodes, for 21 hours */
    struct spot_hourly hourly = {.desired = size > 0 ? bytes[0] % 16 : 9,
                                 .random_addition = size > 1 && bytes[1] % 2,
                                 .start_hour = size > 2 ? bytes[2] % 24 : 0,
                                 .minutes = size > 3 ? bytes[3] * 4.9 : 60,
                                 .seed = size > 4 ? bytes[4] : 0};
    for (size_t i = 0; i < 24; i++) {
        hourly.addition[i] = size > 5 + i ? bytes[5 + i] / 255.0 : 1;
        hourly.removal[i] = size > 29 + i ? bytes[29 + i] / 255.0 : 0.5;
    }
    require(draw(&hourly) == draw(&hourly), "the same seed draws the same");
    return 0;
}
