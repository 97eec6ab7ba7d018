/* Transformers by config.json: published parameters, work by closed forms, which
 * layers have what, and configurations that are damaged. */
#include "unit.h"

#include "models.h"
#include "rampipe/input.h"

#include <string.h>

static struct input_transformer transformer;
static struct input_network_spec spec = {.name = "x", .transformer = &transformer};
static char left[INPUT_LEFT_MAX];
static struct rec_error err;

static bool
read_config(const char *config)
{
    const char *path = "config.json";
    struct rec_reader *reader;
    bool ok;
    write_file(path, config, strlen(config));
    reader = rec_reader_open(&path, 1, NULL, &err);
    assert_non_null(reader);
    ok = input_transformer_read(reader, &transformer, &spec.sequence, left, &err);
    rec_reader_close(reader);
    return ok;
}

static const char *
config_of(const char *name)
{
    for (size_t i = 0; i < NMODELS; i++)
        if (strcmp(models[i].name, name) == 0)
            return models[i].config;
    fail_msg("no model %s", name);
    return NULL;
}

/* 0: as many tokens as there may be. */
static struct input_network
build(const char *name, double batch, double sequence)
{
    struct input_network network;
    if (!read_config(config_of(name)))
        fail_msg("%s: %s", name, err.text);
    assert_true(input_network_build(&spec, batch, sequence, &network, &err));
    return network;
}

static void
forget(struct input_network *network)
{
    input_network_free(network);
    input_transformer_free(&transformer);
}

/*
 * To the unit. DeepSeek-V3's is derived, for the hub's total has the weights of a second
 * head, and scales: embedding and head 2 * 129280 * 7168 = 1853358080. Attention: queries
 * 7168 * 1536 + 1536 + 1536 * 128 * 192, keys and values 7168 * (512 + 64) + 512 + 512 *
 * 128 * (128 + 128), output 128 * 128 * 7168; with two norms of 7168: 187121664, 61
 * times. Three dense MLPs of 3 * 7168 * 18432 = 396361728. 58 mixtures of a router, 7168
 * * 256, and 256 + 1 experts of 3 * 7168 * 2048: 11320164352. A norm of 7168.
 */
static void
test_published_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < NMODELS; i++) {
        struct input_network network = build(models[i].name, 1, 0);
        if (input_network_params(&network) != models[i].params)
            fail_msg("%s: %.0f, published %.0f (%s)", models[i].name,
                     input_network_params(&network), models[i].params, models[i].source);
        if (*left)
            fail_msg("%s: left out: %s", models[i].name, left);
        forget(&network);
    }
}

/* The families stand in the message about one that is none. */
static void
test_every_family(void **state)
{
    size_t n = 0;
    char *family;
    (void)state;
    assert_false(read_config("{\"model_type\": \"?\"}"));
    family = strstr(err.text, "one of ");
    assert_non_null(family);
    *strstr(family, ", got") = '\0';
    for (family = strtok(family + 7, ", "); family; family = strtok(NULL, ", "), n++) {
        char start[80];
        size_t i = 0;
        snprintf(start, sizeof start, "{\"model_type\": \"%s\",", family);
        while (i < NMODELS && strncmp(models[i].config, start, strlen(start)) != 0)
            i++;
        if (i == NMODELS)
            fail_msg("family %s has no published count", family);
    }
    assert_int_equal(n, 24);
}

/* FLOPs forward of all layers of a kind. */
static double
work(const struct input_network *network, const char *kind)
{
    double sum = 0;
    for (size_t i = 0; i < network->nlayers; i++)
        if (strcmp(network->layer[i].kind, kind) == 0)
            sum += network->layer[i].flops;
    return sum;
}

/* Two FLOPs for each weight of a product and each token. Of a mixture only
 * experts_used count. Of a score: products of the widths of keys and values, 5 for
 * softmax, 8 for a tanh, 1 for a bias. `half` is n^2 / 2: pairs below a causal mask.
 * window(n, w) are the pairs of a window of w: w^2 / 2 of the first w queries, w each
 * of the others. */
static double
window(double n, double w)
{
    return w * w / 2 + (n - w) * w;
}

static void
check_work(const char *name, double n, double weights, double attention)
{
    for (double batch = 1; batch <= 3; batch += 2) {
        struct input_network network = build(name, batch, n);
        if (work(&network, "matmul") != 2 * n * batch * weights ||
            work(&network, "attention") != batch * attention)
            fail_msg("%s: %.0f and %.0f, not %.0f and %.0f", name,
                     work(&network, "matmul"), work(&network, "attention"),
                     2 * n * batch * weights, batch * attention);
        forget(&network);
    }
}

static void
test_work(void **state)
{
    const double n = 4096, half = n * n / 2;
    (void)state;
    /* queries, keys and values of 32 + 2 * 8 heads of 128; three products of an MLP */
    check_work("llama3-8b", n,
               32 * (4096 * 6144.0 + 4096 * 4096.0 + 3 * 4096 * 14336.0) +
                   128256 * 4096.0,
               32 * half * 32 * (4 * 128 + 5));
    /* 8 of 128 experts, and the router */
    check_work(
        "qwen3-30b-a3b", n,
        48 * (2048 * 5120.0 + 4096 * 2048.0 + 2048 * 128.0 + 8 * 3 * 2048 * 768.0) +
            151936 * 2048.0,
        48 * half * 32 * (4 * 128 + 5));
    /* 4 of 60 experts, the shared one, its gate */
    check_work("qwen1.5-moe", n,
               24 * (4 * 2048 * 2048.0 + 2048 * 60.0 + 4 * 3 * 2048 * 1408.0 +
                     3 * 2048 * 5632.0 + 2048) +
                   151936 * 2048.0,
               24 * half * 16 * (4 * 128 + 5));
    /* queries and keys of 128 + 64, values of 128; 3 dense layers; 8 + 1 of 256
     * experts */
    check_work("deepseek-v3", n,
               61 * (7168 * 1536.0 + 1536 * 128 * 192.0 + 7168 * 576.0 +
                     512 * 128 * 256.0 + 128 * 128 * 7168.0) +
                   3 * 3 * 7168 * 18432.0 + 58 * (7168 * 256.0 + 9 * 3 * 7168 * 2048.0) +
                   129280 * 7168.0,
               61 * half * 128 * (2 * 192 + 2 * 128 + 5));
    /* queries straight from 2048 */
    check_work(
        "deepseek-v2-lite", n,
        27 * (2048 * 16 * 192.0 + 2048 * 576.0 + 512 * 16 * 256.0 + 16 * 128 * 2048.0) +
            3 * 2048 * 10944.0 + 26 * (2048 * 64.0 + 8 * 3 * 2048 * 1408.0) +
            102400 * 2048.0,
        27 * half * 16 * (2 * 192 + 2 * 128 + 5));
    /* one pair of keys and values for 71 heads of 64; an MLP of two products */
    check_work("falcon-7b", 2048,
               32 * (4544 * (4544 + 128.0) + 9 * 4544 * 4544.0) + 65024 * 4544.0,
               32 * 2048 * 2048 / 2.0 * 71 * (4 * 64 + 5));
    /* a bias of scores */
    check_work("bloom-560m", 2048, 24 * 12 * 1024 * 1024.0 + 250880 * 1024.0,
               24 * 2048 * 2048 / 2.0 * 16 * (4 * 64 + 5 + 1));
    /* words of 512 are made 1024 wide, and back */
    check_work("opt-350m", 2048,
               24 * 12 * 1024 * 1024.0 + 2 * 512 * 1024.0 + 50272 * 512.0,
               24 * 2048 * 2048 / 2.0 * 16 * (4 * 64 + 5));
}

static void
test_windows_work(void **state)
{
    const double n = 8192, half = n * n / 2;
    (void)state;
    /* all layers */
    check_work("mistral-7b", n,
               32 * (4096 * 6144.0 + 4096 * 4096.0 + 3 * 4096 * 14336.0) + 32000 * 4096.0,
               32 * window(n, 4096) * 32 * (4 * 128 + 5));
    /* the first of two; scores are bounded */
    check_work("gemma-2-2b", n,
               26 * (2304 * 4096.0 + 2048 * 2304.0 + 3 * 2304 * 9216.0) + 256000 * 2304.0,
               13 * (window(n, 4096) + half) * 8 * (4 * 256 + 5 + 8));
    /* all but each sixth, 22 of 26; by a list, 15 of 18 */
    check_work("gemma-3-1b", n,
               26 * (1152 * 1536.0 + 1024 * 1152.0 + 3 * 1152 * 6912.0) + 262144 * 1152.0,
               (22 * window(n, 512) + 4 * half) * 4 * (4 * 256 + 5));
    check_work("gemma-3-270m", n,
               18 * (640 * 1536.0 + 1024 * 640.0 + 3 * 640 * 2048.0) + 262144 * 640.0,
               (15 * window(n, 512) + 3 * half) * 4 * (4 * 256 + 5));
    /* the first of two, of 128; 4 of 32 experts */
    check_work(
        "gpt-oss-20b", n,
        24 * (2880 * 5120.0 + 4096 * 2880.0 + 2880 * 32.0 + 4 * 3 * 2880 * 2880.0) +
            201088 * 2880.0,
        12 * (window(n, 128) + half) * 64 * (4 * 64 + 5));
    /* a window that all tokens fit in is none */
    check_work("mistral-7b", 4096,
               32 * (4096 * 6144.0 + 4096 * 4096.0 + 3 * 4096 * 14336.0) + 32000 * 4096.0,
               32 * 4096 * 4096 / 2.0 * 32 * (4 * 128 + 5));
}

/* The decoder's self attention is causal, and that of the encoder and across is not;
 * the scores of the former two have a bias. Four products of 768 x 768 in each
 * attention. */
static void
test_encoder_decoder_work(void **state)
{
    double n = 512, mlp = 2 * 768 * 3072.0, products = 4 * 768 * 768.0;
    (void)state;
    check_work("t5-base", n, 12 * (3 * products + 2 * mlp) + 32128 * 768.0,
               12 * n * n * 12 * ((4 * 64 + 6) * 1.5 + (4 * 64 + 5)));
}

/* Multiply-adds of an image in 1e9, as torchvision publishes them with its weights
 * ("GFLOPS"): all products, those of attention, too, without its softmax (5 n^2 of
 * each head). */
static void
test_published_image_work(void **state)
{
    static const struct {
        const char *name;
        double softmax, gflops;
    } published[] = {{"vit-base", 12 * 12 * 5.0, 17.564},
                     {"vit-large", 24 * 16 * 5.0, 61.555}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct input_network network = build(published[i].name, 1, 0);
        double all = work(&network, "convolution") + work(&network, "matmul") +
                     work(&network, "attention") - published[i].softmax * 197 * 197;
        assert_true(spec.sequence == 197);
        assert_near(all / 2e9, published[i].gflops, 0.0005);
        forget(&network);
    }
}

/* Every layer reads earlier ones, and all but the last are read by some. */
static void
test_order(void **state)
{
    (void)state;
    for (size_t m = 0; m < NMODELS; m++) {
        struct input_network network = build(models[m].name, 1, 0);
        bool *used = calloc(network.nlayers, sizeof *used);
        assert_non_null(used);
        for (size_t i = 0; i < network.nlayers; i++) {
            assert_true((network.layer[i].ninputs == 0) == (i == 0));
            for (size_t j = 0; j < network.layer[i].ninputs; j++) {
                uint32_t from = network.read[network.layer[i].first + j];
                assert_true(from < i);
                used[from] = true;
            }
        }
        for (size_t i = 0; i + 1 < network.nlayers; i++)
            if (!used[i])
                fail_msg("%s: nobody reads layer %zu", models[m].name, i + 1);
        free(used);
        forget(&network);
    }
}

/* ---- layers -------------------------------------------------------------- */

#define SMALL                                                                        \
    "\"hidden_size\": 8, \"num_hidden_layers\": 6, \"num_attention_heads\": 2, "     \
    "\"intermediate_size\": 8, \"vocab_size\": 9, \"max_position_embeddings\": 16, " \
    "\"head_dim\": 4, \"num_key_value_heads\": 2"
#define QWEN_MOE                                               \
    SMALL ", \"num_experts\": 4, \"num_experts_per_tok\": 2, " \
          "\"moe_intermediate_size\": 4"
#define DEEPSEEK                                                                  \
    SMALL ", \"kv_lora_rank\": 4, \"qk_rope_head_dim\": 2, "                      \
          "\"qk_nope_head_dim\": 2, \"v_head_dim\": 4, \"n_routed_experts\": 4, " \
          "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 4"

/* w: window, f: all tokens; m: mixture, d: dense. */
static void
test_layers(void **state)
{
    static const struct {
        const char *config, *windows, *mixtures;
    } cases[] = {
        {"\"mistral\", \"sliding_window\": 3, " SMALL, "wwwwww", "dddddd"},
        {"\"mistral\", \"sliding_window\": null, " SMALL, "ffffff", "dddddd"},
        {"\"mistral\", " SMALL, "wwwwww", "dddddd"}, /* 4096 is the default */
        {"\"phi3\", " SMALL, "ffffff", "dddddd"},
        {"\"qwen2\", \"sliding_window\": 3, \"max_window_layers\": 4, " SMALL, "ffffff",
         "dddddd"},
        {"\"qwen2\", \"sliding_window\": 3, \"use_sliding_window\": true, "
         "\"max_window_layers\": 4, " SMALL,
         "ffffww", "dddddd"},
        {"\"qwen3\", \"use_sliding_window\": true, \"max_window_layers\": 0, " SMALL,
         "wwwwww", "dddddd"},
        {"\"qwen3\", \"use_sliding_window\": true, \"layer_types\": "
         "[\"full_attention\", \"sliding_attention\", \"full_attention\", "
         "\"full_attention\", \"full_attention\", \"sliding_attention\"], " SMALL,
         "fwfffw", "dddddd"},
        {"\"gemma2\", " SMALL, "wfwfwf", "dddddd"},
        {"\"gemma3_text\", \"sliding_window_pattern\": 3, " SMALL, "wwfwwf", "dddddd"},
        {"\"qwen2_moe\", \"use_sliding_window\": true, \"max_window_layers\": 4, "
         "\"decoder_sparse_step\": 2, " QWEN_MOE,
         "wfwfff", "dmdmdm"},
        {"\"qwen3_moe\", \"mlp_only_layers\": [0, 4], " QWEN_MOE, "ffffff", "dmmmdm"},
        {"\"qwen3_moe\", \"use_sliding_window\": true, " QWEN_MOE, "wwwwww", "mmmmmm"},
        {"\"deepseek_v2\", \"first_k_dense_replace\": 1, " DEEPSEEK, "ffffff", "dmmmmm"},
        {"\"deepseek_v3\", \"first_k_dense_replace\": 1, "
         "\"moe_layer_freq\": 2, " DEEPSEEK,
         "ffffff", "ddmdmd"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[800];
        snprintf(text, sizeof text, "{\"model_type\": %s}", cases[i].config);
        if (!read_config(text) || *left)
            fail_msg("%s: %s%s", text, err.text, left);
        for (unsigned k = 0; k < 6; k++) {
            const struct input_block *block = &transformer.block[k];
            if ((block->window > 0) != (cases[i].windows[k] == 'w') ||
                block->mixture != (cases[i].mixtures[k] == 'm'))
                fail_msg("%s: layer %u", cases[i].config, k);
        }
        input_transformer_free(&transformer);
    }
}

/* Keys that no family reads are named, unless they are known to change nothing, or say
 * nothing. */
static void
test_left(void **state)
{
    (void)state;
    assert_true(read_config(
        "{\"model_type\": \"llama\", \"sliding_window\": 3, "
        "\"mystery\": 1, \"rope_theta\": 1e4, \"bos_token_id\": 1, "
        "\"nothing\": null, \"empty\": [], \"a\\u001b\": {\"b\": 1}, " SMALL "}"));
    assert_string_equal(left, "sliding_window, mystery, a?");
    input_transformer_free(&transformer);
}

/* ---- damage -------------------------------------------------------------- */

/* The first model of its family. */
static bool
is_first(size_t model)
{
    size_t len = strcspn(models[model].config, ",");
    for (size_t i = 0; i < model; i++)
        if (strncmp(models[i].config, models[model].config, len) == 0)
            return false;
    return true;
}

/* A configuration with the value behind `at` replaced: it is refused with a message
 * that has file and line, or a network comes of it. True: refused. */
static bool
replace(const char *config, const char *at, const char *wrong)
{
    const char *end = at + 2 + strcspn(at + 2, at[2] == '[' ? "]" : ",}");
    struct input_network network;
    char text[2000];
    bool ok;
    snprintf(text, sizeof text, "%.*s: %s%s", (int)(at - config), config, wrong,
             end + (*end == ']'));
    err = (struct rec_error){0};
    ok = read_config(text);
    if (!ok && (err.code != REC_DATA || strncmp(err.text, "config.json:1: ", 15) != 0))
        fail_msg("%s: %s", text, err.text);
    if (ok && transformer.layers < 200 && transformer.encoder_layers < 200) {
        assert_true(input_network_build(&spec, 2, 0, &network, &err));
        assert_true(input_network_params(&network) > 0);
        input_network_free(&network);
    }
    input_transformer_free(&transformer);
    return !ok;
}

/* Each value, of a model of each family, by what it hardly can be. */
static void
test_damage(void **state)
{
    static const char *const wrong[] = {"-1", "0", "16777216", "true", "null", "[1]"};
    size_t refused = 0;
    (void)state;
    for (size_t m = 0; m < NMODELS; m++) {
        const char *at = is_first(m) ? models[m].config : "";
        while ((at = strstr(at, ": ")) != NULL) {
            for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
                refused += replace(models[m].config, at, wrong[k]);
            at += 2;
        }
    }
    assert_true(refused > 700);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published_counts),
                                       cmocka_unit_test(test_every_family),
                                       cmocka_unit_test(test_work),
                                       cmocka_unit_test(test_windows_work),
                                       cmocka_unit_test(test_encoder_decoder_work),
                                       cmocka_unit_test(test_published_image_work),
                                       cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_layers),
                                       cmocka_unit_test(test_left),
                                       cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
