/* The options that say what computes, of all tools that include "device_options" among
 * theirs. */
#ifndef RAMPIPE_DEVICE_OPTIONS_H
#define RAMPIPE_DEVICE_OPTIONS_H

#include "rampipe/cli.h"
#include "rampipe/device.h"

/* As given (tools/device_options.ggo). */
struct device_options {
    const char *device, *precision;
    const char *devices, *efficiency, *peak, *bandwidth; /* NULL: not given */
};
#define DEVICE_OPTIONS(args)                                                  \
    {                                                                         \
        .device = (args)->device_arg, .precision = (args)->precision_arg,     \
        .devices = (args)->devices_arg, .efficiency = (args)->efficiency_arg, \
        .peak = (args)->peak_arg, .bandwidth = (args)->bandwidth_arg          \
    }

/* Reads the shipped table and --devices, finds the device. False: cli->err; *table is to
 * be freed even then, and to stay as long as *roofline is used. */
bool device_options_read(struct cli *cli, const struct device_options *options,
                         struct device_table *table,
                         struct device_roofline *roofline) REC_MUST_CHECK;

#endif
