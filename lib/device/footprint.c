/* Fills in the memory that training holds in op records, from their parameters and
 * outputs. Mixed precision holds an fp32 copy of the weights, which the optimizer updates
 * (Micikevicius et al., "Mixed precision training", 2018). */
#include "private.h"

#include <math.h>
#include <stdio.h>

const struct device_optimizer device_optimizers[] = {
    {"adam", 2, 1}, {"momentum", 1, 1}, {"sgd", 0, 1}, {"none", 0, 0}, {NULL, 0, 0}};

/* Weight and gradient have the size of an element; the optimizer's numbers are fp32. */
double
device_parameter_bytes(const struct device_optimizer *optimizer,
                       enum device_precision precision)
{
    double element = device_element(precision);
    double more = optimizer->state + (element < 4 ? optimizer->master : 0);
    return 2 * element + 4 * more;
}

bool
device_read_parameter(const struct device_optimizer *optimizer,
                      enum device_precision precision, const struct rec_reader *reader,
                      const struct rec *rec, double *parameter, struct rec_error *err)
{
    struct rec_str id = rec->field[1];
    enum device_precision given = precision;

    *parameter = 1;
    if (!optimizer)
        return true;
    if (!device_key_precision(reader, rec, &precision, err))
        return false;
    if (given != DEVICE_NPRECISIONS &&
        fabs(device_element(given) - device_element(precision)) > 0)
        return rec_reader_fail(
            reader, err,
            "graph '%.*s' has precision=%s, which its sizes are of, and "
            "not %s",
            REC_SAID(id), device_precisions[precision], device_precisions[given]);
    if (precision == DEVICE_NPRECISIONS)
        return rec_reader_fail(reader, err,
                               "graph '%.*s' has no precision=, so it is not known how "
                               "many bytes a parameter has: give the precision",
                               REC_SAID(id));
    *parameter = device_parameter_bytes(optimizer, precision) / device_element(precision);
    return true;
}

/* An old optimizer= is replaced, so that a stream may pass footprint twice. */
static bool
take_graph(struct device_footprint *footprint, const struct rec_reader *reader,
           const struct rec *rec, struct rec_writer *writer, struct rec_error *err)
{
    struct rec_str key, value;
    size_t at = 0;
    int status;

    if (!device_read_parameter(footprint->optimizer, footprint->precision, reader, rec,
                               &footprint->parameter, err))
        return false;
    footprint->file = rec_reader_file(reader);
    footprint->line = rec_reader_line(reader);
    snprintf(footprint->graph, sizeof footprint->graph, "%.*s", REC_SAID(rec->field[1]));
    rec_begin(writer, "graph");
    rec_str_field(writer, rec->field[1]);
    rec_str_field(writer, rec->field[2]);
    while ((status = rec_next_key(reader, rec, &at, &key, &value, err)) > 0)
        if (!rec_str_is(key, "optimizer"))
            rec_str_field(writer, (struct rec_str){key.ptr, key.len + 1 + value.len});
    if (footprint->optimizer)
        rec_text_key(writer, "optimizer", footprint->optimizer->name);
    rec_end(writer);
    return status == 0;
}

/* MEMORY is computed from param= and activation= alone, whatever it was before, so that
 * passing footprint twice changes nothing. An op with neither key keeps its MEMORY. */
static bool
take_op(struct device_footprint *footprint, const struct rec_reader *reader,
        const struct rec *rec, struct rec_writer *writer, struct rec_error *err)
{
    struct rec_str id = rec->field[2], pair;
    double param = NAN, activation = NAN, memory;

    footprint->file = NULL;
    if (!rec_key_number(reader, rec, "param", &param, err) ||
        !rec_key_number(reader, rec, "activation", &activation, err))
        return false;
    if (isnan(param) && isnan(activation)) {
        footprint->kept++;
        rec_put_line(writer, rec->line);
        return true;
    }
    if (footprint->parameter == 0)
        return rec_reader_fail(reader, err, "op '%.*s' comes before its graph",
                               REC_SAID(id));
    memory = isnan(param) ? 0 : param;
    if (rec_find_key(rec, "pair", &pair))
        memory *= footprint->parameter;
    memory += isnan(activation) ? 0 : activation;
    if (!isfinite(memory))
        return rec_reader_fail(reader, err, "op '%.*s' becomes too large", REC_SAID(id));
    footprint->filled++;
    rec_begin(writer, "op");
    for (size_t i = 1; i < rec->nfields; i++)
        if (i == 5)
            rec_num_field(writer, memory);
        else
            rec_str_field(writer, rec->field[i]);
    rec_end(writer);
    return true;
}

bool
device_footprint_end(const struct device_footprint *footprint, struct rec_error *err)
{
    return !footprint->file ||
           device_fail_no_ops(footprint->file, footprint->line, footprint->graph, err);
}

/* Deps, comments and unknown records may stand between a graph record and its ops; any
 * other record ends the graph. */
bool
device_footprint_take(struct device_footprint *footprint, const struct rec_reader *reader,
                      const struct rec *rec, struct rec_writer *writer,
                      struct rec_error *err)
{
    if ((rec->type == REC_GRAPH || rec->type == REC_OP) && !rec_need(reader, rec, err))
        return false;
    if (!rec_continues(rec, REC_GRAPH) && !device_footprint_end(footprint, err))
        return false;
    if (rec->type == REC_GRAPH)
        return take_graph(footprint, reader, rec, writer, err);
    if (rec->type == REC_OP)
        return take_op(footprint, reader, rec, writer, err);
    rec_put_line(writer, rec->line);
    return true;
}
