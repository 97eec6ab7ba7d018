/*
 * Networks that other simulators describe, as clusters.
 *
 * ASTRA-sim's analytical network is YAML: in each dimension NPUs are a Ring, joined each
 * to each other (FullyConnected), or below a Switch. The numbers of NPUs count through
 * the first dimension fastest. `bandwidth` is of a link in one direction, in GB/s of 2^30
 * bytes (as it computes), `latency` of a link, in ns. A network that another kind
 * describes becomes one of that kind; others are custom.
 *
 * SimAI's topology is text: a line of numbers (nodes, GPUs a server, NVSwitches, other
 * switches, links, type of the GPU), a line with the numbers of the switches, and a line
 * for each cable: two nodes, bandwidth (400Gbps) and latency (0.0005ms) of each
 * direction, an error rate.
 *
 * What is found is written as records to memory, and read as a cluster: so it is checked
 * as any other.
 */
#include "foreign.h"

#include "rampipe/yaml.h"

#include <math.h>
#include <stdlib.h>

enum {
    DIMENSIONS = 6,
    LINKS_MAX = 1 << 22 /* of a custom cluster: a few bytes can ask for more */
};

/* A unit in base units: up / down, in two numbers because 1e-9 is not exact. */
struct unit {
    double up, down;
};

/* ---- both ------------------------------------------------------------------- */

/* Reads the cluster that the records describe. */
static struct net *
read_records(const char *name, char *records, struct rec_error *err)
{
    struct rec_reader *reader = rec_reader_open_text(name, rec_str(records), err);
    struct net_reading reading = {NULL, false};
    struct rec rec;
    int status = 0;
    bool ok = reader != NULL;
    while (ok && (status = rec_next(reader, &rec, err)) > 0)
        ok = net_reading_take(&reading, reader, &rec, NULL, err);
    ok = ok && status == 0 && net_reading_end(&reading, err);
    rec_reader_close(reader);
    if (ok)
        return reading.net;
    net_free(reading.net);
    return NULL;
}

static void
put_num(FILE *out, const char *before, double value)
{
    char text[REC_NUM_MAX];
    rec_format_num(text, value);
    fprintf(out, "%s%s", before, text);
}

void
net_foreign_link(FILE *out, const char *from, const char *to, double bandwidth,
                 double latency)
{
    fprintf(out, "link\t%s\t%s", from, to);
    put_num(out, "\t", bandwidth);
    put_num(out, "\t", latency);
    fputs("\tboth=1\n", out);
}

/* ---- ASTRA-sim ---------------------------------------------------------------- */

enum shape { RING, FULL, SWITCH };
static const char *const shapes[] = {"Ring", "FullyConnected", "Switch", NULL};

struct astra {
    const struct rec_reader *reader;
    uint32_t n; /* dimensions */
    enum shape shape[DIMENSIONS];
    uint32_t count[DIMENSIONS];
    double bandwidth[DIMENSIONS], latency[DIMENSIONS]; /* bytes/s, seconds */
    double npus;
};

static bool
wrong(const struct astra *a, uint64_t line, struct rec_error *err, const char *what)
{
    return rec_fail_at(err, rec_reader_file(a->reader), line, "%s", what);
}

/* The list of that name: a->n values, or any number from 1 on if a->n is 0. */
static const struct yaml_value *
find_list(struct astra *a, const struct yaml_value *map, const char *name,
          struct rec_error *err)
{
    const struct yaml_value *v = map->kind == YAML_MAP ? map->item : NULL;
    char text[120];
    uint32_t n = 0;
    while (v && strcmp(v->key, name) != 0)
        v = v->next;
    snprintf(text, sizeof text, "there is no list '%s' in this network of ASTRA-sim",
             name);
    if (!v || v->kind != YAML_LIST) {
        wrong(a, v ? v->line : map->line, err, text);
        return NULL;
    }
    for (const struct yaml_value *i = v->item; i; i = i->next, n++)
        if (i->kind != YAML_TEXT) {
            wrong(a, i->line, err, "a value must be a text or a number");
            return NULL;
        }
    if (a->n == 0 && n >= 1 && n <= DIMENSIONS)
        a->n = n;
    if (n == 0 || n != a->n) {
        snprintf(text, sizeof text,
                 "'%s' must have a value for each of %u dimensions (at most %d), got %u",
                 name, a->n, DIMENSIONS, n);
        wrong(a, v->line, err, text);
        return NULL;
    }
    return v->item;
}

/* Reads a list of numbers, each > 0 or, if it may be, 0. */
static bool
read_numbers(struct astra *a, const struct yaml_value *map, const char *name, bool zero,
             struct unit unit, double *value, struct rec_error *err)
{
    const struct yaml_value *v = find_list(a, map, name, err);
    char text[120];
    for (uint32_t d = 0; v; v = v->next, d++) {
        if (!rec_parse_num(rec_str(v->text), &value[d]) || !isfinite(value[d]) ||
            !(value[d] > 0 || (zero && value[d] == 0))) {
            snprintf(text, sizeof text, "%s must be a number %s 0, got '%.40s'", name,
                     zero ? ">=" : ">", v->text);
            return wrong(a, v->line, err, text);
        }
        value[d] = value[d] * unit.up / unit.down;
        if (!v->next)
            return true;
    }
    return false;
}

static bool
read_astra(struct astra *a, const struct yaml_value *map, struct rec_error *err)
{
    const struct yaml_value *v = find_list(a, map, "topology", err);
    double count[DIMENSIONS];
    if (!v)
        return false;
    for (uint32_t d = 0; v; v = v->next, d++) {
        size_t s = 0;
        while (shapes[s] && strcmp(shapes[s], v->text) != 0)
            s++;
        if (!shapes[s])
            return wrong(a, v->line, err,
                         "topology must be Ring, FullyConnected or Switch");
        a->shape[d] = (enum shape)s;
    }
    if (!read_numbers(a, map, "npus_count", false, (struct unit){1, 1}, count, err) ||
        !read_numbers(a, map, "bandwidth", false, (struct unit){1073741824, 1},
                      a->bandwidth, err) ||
        !read_numbers(a, map, "latency", true, (struct unit){1, 1e9}, a->latency, err))
        return false;
    a->npus = 1;
    for (uint32_t d = 0; d < a->n; d++) {
        a->npus *= count[d];
        if (count[d] != floor(count[d]) || a->npus > 1 << 24)
            return wrong(a, map->line, err,
                         "npus_count must be integers whose product is at most 2^24");
        a->count[d] = (uint32_t)count[d];
    }
    return true;
}

/* A torus of rings whose links have one latency. The first dimension is the last one of a
 * torus, which its numbers count through fastest. */
static bool
put_torus(const struct astra *a, double memory, FILE *out)
{
    static const char *const keys[] = {"", "\tbandwidth_y=", "\tbandwidth_z="};
    uint32_t last = a->n - 1;
    for (uint32_t d = 0; d < a->n; d++)
        if (a->n > 3 || a->shape[d] != RING || a->latency[d] != a->latency[0])
            return false;
    fprintf(out, "cluster\ttorus\t%u", a->count[last]);
    for (uint32_t d = 1; d < a->n || d < 2; d++)
        fprintf(out, "x%u", d < a->n ? a->count[last - d] : 1);
    put_num(out, "\t", a->bandwidth[last]);
    put_num(out, "\t", a->latency[0]);
    put_num(out, "\t", memory);
    for (uint32_t d = 1; d < a->n; d++)
        put_num(out, keys[d], a->bandwidth[last - d]);
    return true;
}

/* One switch is an island, a switch in each node and one for each number a rail. */
static bool
put_switches(const struct astra *a, double memory, FILE *out)
{
    if (a->n > 2 || a->shape[0] != SWITCH || a->shape[a->n - 1] != SWITCH)
        return false;
    if (a->n == 1) {
        fprintf(out, "cluster\tisland\t%u", a->count[0]);
        put_num(out, "\t", a->bandwidth[0]);
        put_num(out, "\t", 2 * a->latency[0]);
        put_num(out, "\t", memory);
        return true;
    }
    fprintf(out, "cluster\trail\t1\t%u\t%u", a->count[1], a->count[0]);
    put_num(out, "\t", a->bandwidth[1]);
    put_num(out, "\t", a->latency[1]);
    put_num(out, "\t", a->bandwidth[0]);
    put_num(out, "\t", memory);
    put_num(out, "\tinside_latency=", 2 * a->latency[0]);
    return true;
}

/* The links of a dimension; `stride` is the distance of its neighbours. */
static void
put_dimension(const struct astra *a, uint32_t d, uint32_t stride, FILE *out)
{
    uint32_t n = a->count[d], all = (uint32_t)a->npus;
    char from[40], to[40];
    for (uint32_t i = 0; i < all; i++) {
        uint32_t at = i / stride % n, first = i - at * stride;
        snprintf(from, sizeof from, "%u", i);
        snprintf(to, sizeof to, "switch%u.%u", d + 1, first);
        if (a->shape[d] == SWITCH)
            net_foreign_link(out, from, to, a->bandwidth[d], a->latency[d]);
        for (uint32_t k = at + 1; a->shape[d] == FULL && k < n; k++) {
            snprintf(to, sizeof to, "%u", first + k * stride);
            net_foreign_link(out, from, to, a->bandwidth[d], a->latency[d]);
        }
        if (a->shape[d] != RING || n < 2 || (n == 2 && at == 1))
            continue;
        snprintf(to, sizeof to, "%u", first + (at + 1) % n * stride);
        net_foreign_link(out, from, to, a->bandwidth[d], a->latency[d]);
    }
}

static bool
put_custom(const struct astra *a, double memory, FILE *out, struct rec_error *err)
{
    double links = 0;
    uint32_t stride = 1;
    for (uint32_t d = 0; d < a->n; d++)
        links += a->npus * (a->shape[d] == FULL ? a->count[d] - 1 : 2);
    if (links > LINKS_MAX)
        return rec_fail(err, REC_DATA,
                        "%s: it would be a custom cluster of %.0f links, more than %d",
                        rec_reader_file(a->reader), links, LINKS_MAX);
    fputs("cluster\tcustom\t0", out);
    for (uint32_t i = 1; i < (uint32_t)a->npus; i++)
        fprintf(out, ",%u", i);
    put_num(out, "\t", memory);
    fputs("\tties=source\n", out);
    for (uint32_t d = 0; d < a->n; stride *= a->count[d++])
        put_dimension(a, d, stride, out);
    return true;
}

static bool
put_astra(struct rec_reader *reader, double memory, FILE *out, struct rec_error *err)
{
    struct astra a = {.reader = reader};
    struct yaml_source *source = yaml_source_new(reader, err);
    const struct yaml_value *map;
    int status = source ? yaml_source_next(source, &map, err) : -1;
    bool ok = status > 0 && read_astra(&a, map, err);
    if (status == 0)
        rec_fail(err, REC_DATA, "%s: it has no YAML document", rec_reader_file(reader));
    ok = ok && (put_torus(&a, memory, out) || put_switches(&a, memory, out) ||
                put_custom(&a, memory, out, err));
    yaml_source_free(source);
    return ok;
}

/* ---- SimAI --------------------------------------------------------------------- */

/* The next word of a line; words are separated by blanks. */
static struct rec_str
next_word(struct rec_str *rest)
{
    struct rec_str word;
    while (rest->len && (*rest->ptr == ' ' || *rest->ptr == '\t' || *rest->ptr == '\r')) {
        rest->ptr++;
        rest->len--;
    }
    word = (struct rec_str){rest->ptr, 0};
    while (word.len < rest->len && !strchr(" \t\r", rest->ptr[word.len]))
        word.len++;
    rest->ptr += word.len;
    rest->len -= word.len;
    return word;
}

/* A number and the name of one of the units. */
static bool
parse_unit(struct rec_str word, const char *const *name, const struct unit *unit,
           double *value)
{
    for (size_t i = 0; name[i]; i++) {
        size_t len = strlen(name[i]);
        if (word.len > len && memcmp(word.ptr + word.len - len, name[i], len) == 0 &&
            rec_parse_num((struct rec_str){word.ptr, word.len - len}, value) &&
            isfinite(*value) && *value >= 0) {
            *value = *value * unit[i].up / unit[i].down;
            return true;
        }
    }
    return false;
}

static bool
put_cable(const struct rec_reader *reader, struct rec_str line, uint64_t nodes, FILE *out,
          struct rec_error *err)
{
    static const char *const rates[] = {"Tbps", "Gbps", "Mbps", "Kbps", "bps", NULL};
    static const char *const times[] = {"ms", "us", "ns", "s", NULL};
    static const struct unit rate[] = {{1e12, 8}, {1e9, 8}, {1e6, 8}, {1e3, 8}, {1, 8}};
    static const struct unit time[] = {{1, 1e3}, {1, 1e6}, {1, 1e9}, {1, 1}};
    struct rec_str word[4], rest = line;
    double bandwidth = 0, latency = 0;
    uint64_t end[2];
    char name[2][24];
    for (int i = 0; i < 4; i++)
        word[i] = next_word(&rest);
    for (int i = 0; i < 2; i++) {
        if (!rec_parse_uint(word[i], &end[i]) || end[i] >= nodes)
            return rec_reader_fail(reader, err,
                                   "a link must begin with two nodes from 0 to %llu, got "
                                   "'%.*s'",
                                   (unsigned long long)nodes - 1, REC_SAID(word[i]));
        snprintf(name[i], sizeof name[i], "%llu", (unsigned long long)end[i]);
    }
    if (!parse_unit(word[2], rates, rate, &bandwidth) || bandwidth == 0 ||
        !parse_unit(word[3], times, time, &latency))
        return rec_reader_fail(reader, err,
                               "a link needs a bandwidth > 0 as 400Gbps and a latency as "
                               "0.0005ms behind its nodes, got '%.*s'",
                               REC_SAID(line));
    net_foreign_link(out, name[0], name[1], bandwidth, latency);
    return true;
}

/* Reads the first two lines, and writes the cluster record: nodes that are no switches
 * are servers, and come first. */
static bool
put_servers(struct rec_reader *reader, double memory, uint64_t number[5], FILE *out,
            struct rec_error *err)
{
    static const char *const what[] = {"nodes", "GPUs of a server", "NVSwitches",
                                       "other switches", "links"};
    struct rec_str line, word;
    int status = rec_next_line(reader, &line, err);
    uint64_t gpus, id;
    for (int i = 0; status > 0 && i < 5; i++) {
        word = next_word(&line);
        if (!rec_parse_uint(word, &number[i]) || number[i] > 1 << 24)
            return rec_reader_fail(
                reader, err, "the first line must have the number of %s, got '%.*s'",
                what[i], REC_SAID(word));
    }
    gpus = number[0] - number[2] - number[3];
    if (status > 0 && (number[2] + number[3] >= number[0] || gpus > 1 << 20))
        return rec_reader_fail(reader, err,
                               "of %llu nodes there must be GPUs besides the switches",
                               (unsigned long long)number[0]);
    if (status <= 0 || (status = rec_next_line(reader, &line, err)) <= 0)
        return status < 0 || rec_fail(err, REC_DATA,
                                      "%s: a topology has two lines before "
                                      "its links",
                                      rec_reader_file(reader));
    for (uint64_t i = gpus; i < number[0]; i++)
        if (!rec_parse_uint(next_word(&line), &id) || id != i)
            return rec_reader_fail(
                reader, err, "the second line must list the switches, %llu to %llu",
                (unsigned long long)gpus, (unsigned long long)number[0] - 1);
    fputs("cluster\tcustom\t0", out);
    for (uint64_t i = 1; i < gpus; i++)
        fprintf(out, ",%llu", (unsigned long long)i);
    put_num(out, "\t", memory);
    fputs("\tties=source\n", out);
    return true;
}

static bool
put_simai(struct rec_reader *reader, double memory, FILE *out, struct rec_error *err)
{
    struct rec_str line, rest;
    uint64_t number[5] = {0}, links = 0;
    int status;
    if (!put_servers(reader, memory, number, out, err))
        return false;
    while ((status = rec_next_line(reader, &line, err)) > 0) {
        rest = line;
        if (next_word(&rest).len == 0)
            continue;
        if (!put_cable(reader, line, number[0], out, err))
            return false;
        links++;
    }
    if (status < 0 || links == number[4])
        return status == 0;
    return rec_fail(err, REC_DATA,
                    "%s: the first line says %llu links, and there are %llu: is the file "
                    "cut?",
                    rec_reader_file(reader), (unsigned long long)number[4],
                    (unsigned long long)links);
}

/* ---- all ------------------------------------------------------------------------ */

/* A matrix begins with the name of its first column; terminals underline it. */
static bool
is_matrix(struct rec_str line)
{
    for (size_t i = 0; i + 3 < line.len; i++)
        if (memcmp(line.ptr + i, "GPU", 3) == 0)
            return true;
        else if (!strchr(" \t\033[0123456789;m", line.ptr[i]))
            break;
    return false;
}

struct net *
net_convert(struct rec_reader *reader, const struct net_assumed *assumed,
            struct rec_error *err)
{
    struct rec_str line;
    struct rec_text text;
    struct net *net = NULL;
    char *records;
    int status = rec_peek_line(reader, &line, err);
    bool ok;
    if (status == 0)
        rec_fail(err, REC_DATA, "%s: it is empty", rec_reader_file(reader));
    if (status <= 0 || !rec_text_open(&text, err))
        return NULL;
    if (is_matrix(line))
        ok = net_foreign_matrix(reader, assumed, text.out, err);
    else if (!(isnan(assumed->nvlink) && isnan(assumed->pcie) && isnan(assumed->socket) &&
               isnan(assumed->latency)))
        ok = rec_fail(err, REC_USAGE,
                      "%s says its bandwidths and latencies itself: --nvlink, --pcie, "
                      "--socket and --latency are for a matrix of nvidia-smi",
                      rec_reader_file(reader));
    else if (line.len && *line.ptr >= '0' && *line.ptr <= '9')
        ok = put_simai(reader, assumed->memory, text.out, err);
    else
        ok = put_astra(reader, assumed->memory, text.out, err);
    fputc('\n', text.out);
    records = rec_text_close(&text, ok ? err : NULL);
    if (ok && records)
        net = read_records(rec_reader_file(reader), records, err);
    free(records);
    return net;
}
