/* kernel fit [OPTION]... TABLE... - the laws of kernels from measured tables. */
#include "ggo/kernel-fit.h"
#define CLI_PATHS "devices",
#include "main.h"

#include "rampipe/kernel.h"

static bool
fit(struct cli *cli, const struct kernel_fit_args *args, struct kernel_table *table)
{
    uint64_t folds = 0;
    if (args->folds_given && !cli_count(cli, "folds", args->folds_arg, 2, 100, &folds))
        return false;
    if (cli->nfiles == 0 &&
        !(cli_open_reader(cli) && kernel_table_read(table, cli->reader, &cli->err)))
        return false;
    for (size_t i = 0; i < cli->nfiles; i++)
        if (!kernel_table_read_file(table, cli->files[i], &cli->err))
            return false;
    if (table->nlaws == 0)
        cli_warn(cli, "no row came, so there is nothing to fit");
    /* a check of folds ends with a fit to all */
    if (!(folds > 0 ? kernel_check_folds(table, (unsigned)folds, &cli->err)
                    : kernel_fit(table, &cli->err)) ||
        !cli_open_writer(cli, true))
        return false;
    if (table->provenance)
        rec_writer_next(cli->writer, table->provenance, cli->provenance);
    kernel_table_write(table, cli->writer);
    return true;
}

static bool
run(struct cli *cli, const struct kernel_fit_args *args)
{
    struct device_table devices = {.ndevices = 0};
    struct kernel_table table = {.devices = &devices};
    bool ok = device_table_read_with(&devices, args->devices_arg, &cli->err) &&
              fit(cli, args, &table);
    kernel_table_free(&table);
    device_table_free(&devices);
    return ok;
}
