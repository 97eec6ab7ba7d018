/*
 * The matrix that `nvidia-smi topo -m` prints: how the GPUs and the network adapters of a
 * machine are joined.
 *
 *             GPU0    GPU1    NIC0    CPU Affinity ...
 *     GPU0     X      NV4     PIX     0-31
 *     GPU1    NV4      X      SYS     32-63
 *     NIC0    PIX     SYS      X
 *
 * NV4 are four NVLinks. The others name the farthest thing on the way: PIX one PCIe
 * switch, PXB several, PHB the host bridge of a CPU, NODE what joins the host bridges of
 * a NUMA node, SYS what joins these. So devices that are joined by PIX are below one
 * switch, those joined by PXB or nearer below one group of switches, and so on: a tree,
 * in which a device or group that is alone on its level has no node of its own.
 *
 * If all pairs of GPUs have as many NVLinks as each other, and these would be more than a
 * GPU has for all, the GPUs are joined by NVSwitches, which count as one node.
 */
#include "foreign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEVICES_MAX = 256,
    NVLINKS_MAX = 18, /* of a GPU: Hopper and Blackwell have the most */
    LEVELS = 5
};
static const char *const level_name[LEVELS] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
static const char *const node_name[LEVELS] = {"pcie", "pcie-group", "host", "numa",
                                              "machine"};
enum {
    HOST = 2,
    NUMA = 3,
    UNKNOWN = LEVELS /* of two devices whose NVLinks hide their PCIe */
};

struct matrix {
    struct rec_reader *reader;
    const struct net_assumed *assumed;
    uint32_t n, ngpus;
    char name[DEVICES_MAX][32];
    uint8_t level[DEVICES_MAX][DEVICES_MAX];
    uint8_t nvlinks[DEVICES_MAX][DEVICES_MAX];
    char cpus[DEVICES_MAX][64]; /* the CPU affinity, as it is printed; "": none */
    /* group[l][i] is the first device that is below the same node of level l; devices
     * that are alone on a level are below themselves. */
    uint32_t group[LEVELS][DEVICES_MAX];
};

/* ---- reading ------------------------------------------------------------------ */

/* The next word; blanks and escape sequences of terminals separate words. */
static struct rec_str
next_word(struct rec_str *rest)
{
    struct rec_str word;
    for (;;) {
        if (rest->len && strchr(" \t\r", *rest->ptr)) {
            rest->ptr++;
            rest->len--;
        } else if (rest->len > 1 && rest->ptr[0] == '\033' && rest->ptr[1] == '[') {
            while (rest->len && *rest->ptr != 'm') {
                rest->ptr++;
                rest->len--;
            }
            if (rest->len) {
                rest->ptr++;
                rest->len--;
            }
        } else
            break;
    }
    word = (struct rec_str){rest->ptr, 0};
    while (word.len < rest->len && !strchr(" \t\r\033", rest->ptr[word.len]))
        word.len++;
    rest->ptr += word.len;
    rest->len -= word.len;
    return word;
}

static bool
starts_with(struct rec_str word, const char *text)
{
    size_t n = strlen(text);
    return word.len >= n && memcmp(word.ptr, text, n) == 0;
}

static bool
is_word(struct rec_str word, const char *text)
{
    return word.len == strlen(text) && starts_with(word, text);
}

/* The names of the columns, up to those of CPUs. */
static bool
read_header(struct matrix *m, struct rec_str line, struct rec_error *err)
{
    struct rec_str word;
    bool ok = true;
    while ((word = next_word(&line)).len && !is_word(word, "CPU") && ok) {
        bool gpu = starts_with(word, "GPU");
        ok = m->n < DEVICES_MAX && word.len < sizeof m->name[0] && (gpu || m->ngpus) &&
             (!gpu || m->ngpus == m->n);
        for (uint32_t i = 0; ok && i < m->n; i++)
            ok = !is_word(word, m->name[i]);
        for (size_t i = 0; ok && i < word.len; i++)
            ok = (uint8_t)word.ptr[i] > ' ' && word.ptr[i] != ',' && word.ptr[i] != '=';
        if (ok)
            memcpy(m->name[m->n++], word.ptr, word.len);
        m->ngpus += gpu;
    }
    return ok ||
           rec_reader_fail(m->reader, err,
                           "the columns must be up to %d names, first of GPUs, then "
                           "of adapters, each once and shorter than %zu letters",
                           DEVICES_MAX, sizeof m->name[0]);
}

static bool
read_entry(struct matrix *m, uint32_t i, uint32_t k, struct rec_str word,
           struct rec_error *err)
{
    uint64_t links;
    if (i == k && is_word(word, "X"))
        return true;
    m->level[i][k] = UNKNOWN;
    for (uint8_t l = 0; i != k && l < LEVELS; l++)
        if (is_word(word, level_name[l])) {
            m->level[i][k] = l;
            return true;
        }
    if (i != k && i < m->ngpus && k < m->ngpus && starts_with(word, "NV") &&
        rec_parse_uint((struct rec_str){word.ptr + 2, word.len - 2}, &links) &&
        links > 0 && links <= NVLINKS_MAX) {
        m->nvlinks[i][k] = (uint8_t)links;
        return true;
    }
    return rec_reader_fail(
        m->reader, err, "between %s and %s there must be %s, got '%.*s'", m->name[i],
        m->name[k], i == k ? "X" : "NV1 to NV18 (of GPUs), PIX, PXB, PHB, NODE or SYS",
        REC_SAID(word));
}

static bool
read_row(struct matrix *m, uint32_t i, struct rec_error *err)
{
    struct rec_str line, word;
    int status = rec_next_line(m->reader, &line, err);
    if (status < 0)
        return false;
    word = status ? next_word(&line) : (struct rec_str){"", 0};
    if (!is_word(word, m->name[i]))
        return rec_reader_fail(m->reader, err,
                               "row %u of the matrix must be that of %s, got '%.*s'",
                               i + 1, m->name[i], REC_SAID(word));
    for (uint32_t k = 0; k < m->n; k++)
        if (!read_entry(m, i, k, next_word(&line), err))
            return false;
    word = next_word(&line);
    if (word.len < sizeof m->cpus[0])
        memcpy(m->cpus[i], word.ptr, word.len);
    for (uint32_t k = 0; k < i; k++)
        if (m->level[i][k] != m->level[k][i] || m->nvlinks[i][k] != m->nvlinks[k][i])
            return rec_reader_fail(m->reader, err,
                                   "%s to %s must be as %s to %s is in its row",
                                   m->name[i], m->name[k], m->name[k], m->name[i]);
    return true;
}

/* ---- the tree of PCIe ---------------------------------------------------------- */

/* Does a level join two devices? NVLinks hide on which level PCIe does, but those near
 * the same CPUs are in one NUMA node. */
static bool
joins(const struct matrix *m, uint32_t level, uint32_t i, uint32_t k)
{
    return m->level[i][k] <= level ||
           (level == NUMA && m->level[i][k] == UNKNOWN && *m->cpus[i] &&
            strcmp(m->cpus[i], m->cpus[k]) == 0);
}

/* Joins devices level by level. Two that a lower level has joined must not be farther
 * from each other than that. */
static bool
make_groups(struct matrix *m, struct rec_error *err)
{
    for (uint32_t l = 0; l < LEVELS; l++) {
        uint32_t *group = m->group[l];
        for (uint32_t i = 0; i < m->n; i++)
            group[i] = l ? m->group[l - 1][i] : i;
        for (uint32_t i = 0; i < m->n; i++)
            for (uint32_t k = 0; k < i; k++) {
                uint32_t a = group[i], b = group[k];
                if (!joins(m, l, i, k) || a == b)
                    continue;
                for (uint32_t j = 0; j < m->n; j++)
                    if (group[j] == (a > b ? a : b))
                        group[j] = a < b ? a : b;
            }
        for (uint32_t i = 0; i < m->n; i++)
            for (uint32_t k = 0; k < i; k++)
                if (group[i] == group[k] && m->level[i][k] > l &&
                    m->level[i][k] != UNKNOWN)
                    return rec_fail(err, REC_DATA,
                                    "%s: %s and %s cannot be joined by %s, as others "
                                    "join both by %s",
                                    rec_reader_file(m->reader), m->name[k], m->name[i],
                                    level_name[m->level[i][k]], level_name[l]);
    }
    return true;
}

/* Is there a node for a group of a level: does it join what no lower node does? */
static bool
has_node(const struct matrix *m, uint32_t level, uint32_t first)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->group[level][i] == first &&
            (level ? m->group[level - 1][i] : i) !=
                (level ? m->group[level - 1][first] : first))
            return true;
    return false;
}

/* The lowest node above level `above` (0: above the device itself) over a device: its
 * level; LEVELS: there is none. */
static uint32_t
node_over(const struct matrix *m, uint32_t device, uint32_t above)
{
    while (above < LEVELS && !has_node(m, above, m->group[above][device]))
        above++;
    return above;
}

static void
name_node(const struct matrix *m, uint32_t level, uint32_t device, char name[48])
{
    snprintf(name, 48, "%s-%s", node_name[level], m->name[m->group[level][device]]);
}

/* The rate of a link up from a device, or from the node of a level: PCIe leads up to host
 * bridges, and what joins these has another rate. */
static double
rate_up(const struct matrix *m, bool device, uint32_t level, uint32_t up)
{
    double pcie = m->assumed->pcie, socket = m->assumed->socket;
    return up < NUMA ? pcie : device || level < HOST ? fmin(pcie, socket) : socket;
}

static void
put_tree(const struct matrix *m, FILE *out)
{
    char from[48], to[48];
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t up = node_over(m, i, 0);
        if (up < LEVELS) {
            name_node(m, up, i, to);
            net_foreign_link(out, m->name[i], to, rate_up(m, true, 0, up),
                             m->assumed->latency);
        }
        for (uint32_t l = 0; l < LEVELS; l++) {
            if (m->group[l][i] != i || !has_node(m, l, i) ||
                (up = node_over(m, i, l + 1)) == LEVELS)
                continue;
            name_node(m, l, i, from);
            name_node(m, up, i, to);
            net_foreign_link(out, from, to, rate_up(m, false, l, up),
                             m->assumed->latency);
        }
    }
}

/* GPUs do not forward what others send, so those without NVLinks between them get their
 * route by PCIe. */
static void
put_route(const struct matrix *m, uint32_t from, uint32_t to, FILE *out)
{
    uint32_t up[LEVELS], down[LEVELS], nup = 0, ndown = 0, top = 0;
    char name[48];
    const char *mark = "\t";
    while (m->group[top][from] != m->group[top][to])
        top++;
    for (uint32_t l = node_over(m, from, 0); l < top; l = node_over(m, from, l + 1))
        up[nup++] = l;
    for (uint32_t l = node_over(m, to, 0); l < top; l = node_over(m, to, l + 1))
        down[ndown++] = l;
    fprintf(out, "route\t%s\t%s", m->name[from], m->name[to]);
    for (uint32_t i = 0; i < nup; i++, mark = ",") {
        name_node(m, up[i], from, name);
        fprintf(out, "%s%s", mark, name);
    }
    name_node(m, top, from, name);
    fprintf(out, "%s%s", mark, name);
    while (ndown > 0) {
        name_node(m, down[--ndown], to, name);
        fprintf(out, ",%s", name);
    }
    fputc('\n', out);
}

/* ---- NVLinks ------------------------------------------------------------------- */

/* The NVLinks that each GPU has to NVSwitches; 0: pairs are joined directly. */
static uint32_t
switched(const struct matrix *m)
{
    uint32_t links = m->ngpus > 1 ? m->nvlinks[0][1] : 0;
    for (uint32_t i = 0; i < m->ngpus; i++)
        for (uint32_t k = 0; k < m->ngpus; k++)
            if (i != k && m->nvlinks[i][k] != links)
                return 0;
    return links * (m->ngpus - 1) > NVLINKS_MAX ? links : 0;
}

static void
put_nvlinks(const struct matrix *m, FILE *out)
{
    double rate = m->assumed->nvlink, latency = m->assumed->latency;
    uint32_t links = switched(m);
    for (uint32_t i = 0; i < m->ngpus; i++) {
        if (links)
            net_foreign_link(out, m->name[i], "nvswitch", links * rate, latency);
        for (uint32_t k = i + 1; !links && k < m->ngpus; k++)
            if (m->nvlinks[i][k])
                net_foreign_link(out, m->name[i], m->name[k], m->nvlinks[i][k] * rate,
                                 latency);
    }
}

/* ---- all ------------------------------------------------------------------------ */

static bool
check_known(const struct matrix *m, double value, const char *what, struct rec_error *err)
{
    return !isnan(value) ||
           rec_fail(err, REC_USAGE,
                    "%s: a matrix does not say the %s, so it must be given",
                    rec_reader_file(m->reader), what);
}

/* Checks that the rates are known which the matrix needs. */
static bool
check_assumed(const struct matrix *m, struct rec_error *err)
{
    bool nvlink = false, pcie = false, socket = false;
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 0; k < i; k++) {
            nvlink = nvlink || m->nvlinks[i][k];
            pcie = pcie || m->level[i][k] < NUMA;
            socket = socket || (m->level[i][k] >= NUMA && m->level[i][k] < LEVELS);
        }
    return (!nvlink ||
            check_known(m, m->assumed->nvlink, "bandwidth of an NVLink", err)) &&
           (!(pcie || socket) ||
            check_known(m, m->assumed->pcie, "bandwidth of PCIe", err)) &&
           (!socket || check_known(m, m->assumed->socket,
                                   "bandwidth between host bridges (NODE, SYS)", err)) &&
           check_known(m, m->assumed->latency, "latency of a link", err);
}

bool
net_foreign_matrix(struct rec_reader *reader, const struct net_assumed *assumed,
                   FILE *out, struct rec_error *err)
{
    struct matrix *m = calloc(1, sizeof *m);
    struct rec_str line;
    bool ok = (m || rec_fail_memory(err)) && rec_next_line(reader, &line, err) > 0;
    if (ok) {
        m->reader = reader;
        m->assumed = assumed;
        ok = read_header(m, line, err);
    }
    for (uint32_t i = 0; ok && i < m->n; i++)
        ok = read_row(m, i, err);
    ok = ok && make_groups(m, err) && check_assumed(m, err);
    for (uint32_t i = 0; ok && i < m->ngpus; i++)
        fprintf(out, "%s%s", i ? "," : "cluster\tcustom\t", m->name[i]);
    if (ok) {
        char memory[REC_NUM_MAX];
        rec_format_num(memory, assumed->memory);
        fprintf(out, "\t%s\n", memory);
        put_nvlinks(m, out);
        put_tree(m, out);
    }
    for (uint32_t i = 0; ok && i < m->ngpus; i++)
        for (uint32_t k = 0; k < m->ngpus; k++)
            if (i != k && !m->nvlinks[i][k])
                put_route(m, i, k, out);
    free(m);
    return ok;
}
