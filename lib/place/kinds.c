/* The table of the ways of placing. Of those that suit a network the first is the default
 * there. */
#include "private.h"
#include "ramp.h"

const struct place_kind *const place_kinds[] = {
    &place_ramp_first_fit, &place_ramp_block,     &place_ramp_compact,
    &place_ramp_compact_2, &place_ramp_compact_3, &place_ramp_compact_back,
    &place_free_block,     &place_near,           &place_lowest,
    &place_spread,         &place_random,         NULL};
