/* Reads the options that tools/device_options.ggo gives to several tools: --device,
 * --precision, --devices, --efficiency, --peak, --bandwidth. */
#include "device_options.h"

#include <strings.h>

/* A name in another case is accepted, too. The list in the message leaves out devices
 * that a later one of the same name replaces. */
static bool
find_device(struct cli *cli, const char *name, const struct device_table *table,
            const struct device **device)
{
    char list[300] = "";
    if ((*device = device_find(table, name)))
        return true;
    for (size_t i = table->ndevices; i-- > 0;)
        if (strcasecmp(table->device[i].name, name) == 0) {
            *device = device_find(table, table->device[i].name);
            return true;
        }
    for (size_t i = 0; i < table->ndevices; i++)
        if (device_find(table, table->device[i].name) == &table->device[i])
            rec_list_name(list, sizeof list, table->device[i].name);
    return cli_usage(cli, "--device must be one of %s, got '%s'", list, name);
}

/* Replaces the device's peak and bandwidth by those that options give. */
static bool
read_roofs(struct cli *cli, const struct device_options *options,
           struct device_roofline *roofline)
{
    if (options->peak && !cli_amount(cli, "peak", options->peak, false, &roofline->peak))
        return false;
    if (options->bandwidth &&
        !cli_rate(cli, "bandwidth", options->bandwidth, false, &roofline->bandwidth))
        return false;
    if (options->efficiency &&
        !cli_amount(cli, "efficiency", options->efficiency, false, &roofline->flat))
        return false;
    if (roofline->peak <= 0)
        return cli_usage(cli,
                         options->peak ? "--peak must be > 0"
                                       : "device %s does not have precision %s",
                         options->device, options->precision);
    if (roofline->bandwidth <= 0)
        return cli_usage(cli, "--bandwidth must be > 0");
    if (options->efficiency && (roofline->flat <= 0 || roofline->flat > 1))
        return cli_usage(cli, "--efficiency must be > 0 and at most 1, got '%s'",
                         options->efficiency);
    return true;
}

bool
device_options_read(struct cli *cli, const struct device_options *options,
                    struct device_table *table, struct device_roofline *roofline)
{
    const struct device *device;
    size_t precision = 0;

    *table = (struct device_table){0};
    if (!device_table_read_with(table, options->devices, &cli->err) ||
        !find_device(cli, options->device, table, &device) ||
        !cli_choice(cli, "precision", options->precision, device_precisions, &precision))
        return false;
    *roofline = (struct device_roofline){.table = table,
                                         .device = device->name,
                                         .precision = (enum device_precision)precision,
                                         .peak = device->peak[precision],
                                         .bandwidth = device->bandwidth};
    return read_roofs(cli, options, roofline);
}
