/* The table of kinds. It is alone in its file, so that a program can bring a longer
 * one. */
#include "rampipe/net_kind.h"

const struct net_kind *const net_kinds[] = {NET_KINDS, NULL};
