/*
 * Tables of networks. Any bytes as the table of redundant computation: refused with a
 * message, or what is trained by it accounts for all its time. And the networks of pdgen
 * at any batch, sequence and device: layers in order, times that are none or positive.
 * And any bytes as a transformer's config.json.
 */
#include "fuzz.h"

#include "rampipe/input.h"
#include "rampipe/train.h"

#include <math.h>

/* Twelve instances, of which some leave and others come: 300 seconds, or 99 steps. */
static void
train(const struct train_redundant_profile *profile)
{
    static const struct spot_event event[] = {
        {10, SPOT_PREEMPT, 1, {NULL, 0}}, {60, SPOT_ADD, 3, {NULL, 0}},
        {61, SPOT_PREEMPT, 2, {NULL, 0}}, {120, SPOT_PREEMPT, 9, {NULL, 0}},
        {130, SPOT_ADD, 20, {NULL, 0}},
    };
    const struct train_redundant_options options = {
        .profile = profile, .steps = 99, .price = 1, .seed = 1, .end = 300, .start = 12};
    const struct train_redundant_sink sink = {0};
    struct train_redundant_result r;
    struct rec_error err = {.code = REC_OK, .text = ""};
    struct train_redundant *run = train_redundant_new(&options, &sink, &err);
    bool ok = run != NULL;
    double accounts = 0, states = 0, seconds = 0;

    for (size_t i = 0; ok && i < sizeof event / sizeof *event; i++)
        ok = train_redundant_take(run, &event[i], &err);
    if (ok && train_redundant_finish(run, 300, &r, &err)) {
        for (int i = 0; i < TRAIN_NACCOUNTS; i++) {
            seconds += r.seconds[i];
            accounts += r.instance_seconds[i];
        }
        for (int i = 0; i < TRAIN_NSTATES; i++)
            states += r.by_state[i];
        require(fabs(seconds - (r.end - r.begin)) < 1e-6, "time is accounted for");
        require(fabs(accounts - states) < 1e-6, "so is that of instances");
        require(r.steps <= 99, "no more steps than asked for");
    } else
        require(err.text[0] != '\0' && err.code != REC_BUG, "a message");
    train_redundant_free(run);
}

static void
read_table(const char *path)
{
    struct rec_error err = {.code = REC_OK, .text = ""};
    struct train_redundant_profile profile;
    if (train_redundant_profile_read(&profile, path, &err))
        train(&profile);
    else
        require(err.text[0] != '\0' && err.code != REC_OK && err.code != REC_BUG,
                "a message");
    train_redundant_profile_free(&profile);
}

static void
build(const struct input_network_spec *spec, double batch, double sequence,
      const struct device_roofline *roofline, double bytes)
{
    struct input_network network;
    struct rec_error err;
    require(input_network_build(spec, batch, sequence, &network, &err), "it is built");
    require(network.nlayers > 1 && input_network_params(&network) > 0, "it has layers");
    for (size_t i = 0; i < network.nlayers; i++) {
        const struct input_layer *layer = &network.layer[i];
        struct device_work work = input_forward_work(layer, bytes);
        struct device_work twin = input_backward_work(layer, bytes);
        double forward, backward;
        require(device_seconds(roofline, &work, &forward, &err) &&
                    device_seconds(roofline, &twin, &backward, &err),
                "it takes a time");
        require(layer->first + layer->ninputs <= network.nreads &&
                    (layer->ninputs > 0) == (i > 0),
                "all but the first read");
        for (size_t k = 0; k < layer->ninputs; k++)
            require(network.read[layer->first + k] < i, "what is earlier");
        require(i == 0 ? forward == 0 && backward == 0 : forward > 0 && backward > 0,
                "time is positive");
        require(backward <= 2.5 * forward * (1 + 1e-12),
                "backward is twice the work, or 2.5");
        require(memchr(layer->text, '\0', sizeof layer->text) && layer->text[0],
                "it has a text");
    }
    input_network_free(&network);
}

/* A number of at least `least` from two bytes. */
static double
number(const uint8_t *bytes, double least)
{
    return floor(least * (1 + bytes[0] * pow(2, bytes[1] % 24)));
}

/* The bytes as a config.json: refused with a message, or a network is built of it that
 * has parameters, if it is not huge. */
static void
read_config(const char *path)
{
    struct rec_error err = {.code = REC_OK, .text = ""};
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, &err);
    struct input_transformer t;
    struct input_network_spec spec = {.name = "x", .transformer = &t};
    struct input_network network;
    char left[INPUT_LEFT_MAX];

    if (!input_transformer_read(reader, &t, &spec.sequence, left, &err))
        require(strstr(err.text, path) && err.code != REC_OK && err.code != REC_BUG,
                "a message with the file");
    else if (t.layers < 200) {
        require(input_network_build(&spec, 2, 0, &network, &err), "it is built");
        require(input_network_params(&network) > 0, "it has parameters");
        input_network_free(&network);
    }
    input_transformer_free(&t);
    rec_reader_close(reader);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    int fd = fuzz_file(bytes, size, path);
    size_t n = 0;

    read_table(path);
    read_config(path);
    while (input_networks[n].name)
        n++;
    if (size >= 9) {
        const struct input_network_spec *spec = &input_networks[bytes[0] % n];
        struct device_roofline roofline = {.peak = number(bytes + 1, 1e3),
                                           .bandwidth = number(bytes + 3, 1e3),
                                           .flat = (bytes[5] + 1) / 256.0};
        double sequence =
            spec->sequence > 0 ? fmin(spec->sequence, number(bytes + 6, 1)) : 0;
        build(spec, number(bytes + 7, 1), sequence, &roofline, bytes[6] % 2 ? 4 : 2);
    }
    close(fd);
    return 0;
}
