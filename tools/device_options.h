/* The options that describe a device, for all tools whose .ggo includes
 * "device_options". */
#ifndef RAMPIPE_DEVICE_OPTIONS_H
#define RAMPIPE_DEVICE_OPTIONS_H

#include "rampipe/cli.h"
#include "rampipe/device.h"

/* The texts of the options, as the user gave them. */
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

/* Reads the shipped table and the file of --devices, and finds the device. False:
 * cli->err. Free *table even then, but not before the last use of *roofline, which
 * borrows it. */
bool device_options_read(struct cli *cli, const struct device_options *options,
                         struct device_table *table,
                         struct device_roofline *roofline) REC_MUST_CHECK;

#endif
