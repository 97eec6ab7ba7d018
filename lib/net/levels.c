/* What follows from the levels of a cluster: the names of its servers, and a geometry for
 * kinds whose servers are alike but for what they lie in together. */
#include "levels.h"

#include <stdlib.h>
#include <string.h>

bool
net_get_counts(const struct rec_reader *reader, const struct rec *rec, size_t first,
               uint32_t n, uint32_t *count, struct rec_error *err)
{
    uint64_t one, all = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (!rec_get_count(reader, rec, first + i, &one, err))
            return false;
        if (one < 1 || one > 1u << 24 || (all *= one) > 1u << 24)
            return rec_reader_fail(
                reader, err, "a cluster has from 1 to %u servers, got %llu as %s",
                1u << 24, (unsigned long long)one, rec->spec->fields[first + i - 1].name);
        count[i] = (uint32_t)one;
    }
    return true;
}

void
net_set_levels(struct net *net, uint32_t n, const char *const *name,
               const uint32_t *count)
{
    net->nlevels = n + 1;
    net->level[n] = (struct net_level){name[n], 1};
    while (n-- > 0)
        net->level[n] = (struct net_level){name[n], net->level[n + 1].servers * count[n]};
}

/* Writes a number, and returns the length. */
static size_t
format(uint32_t n, char *text)
{
    char digit[10];
    size_t left = sizeof digit;
    do
        digit[--left] = (char)('0' + n % 10);
    while ((n /= 10));
    memcpy(text, digit + left, sizeof digit - left);
    return sizeof digit - left;
}

size_t
net_format_server(const struct net *net, uint32_t server, char name[NET_NAME_MAX])
{
    size_t len = 0;
    if (net->kind->server_name) {
        const char *own = net->kind->server_name(net, server);
        len = strlen(own);
        memcpy(name, own, len + 1);
        return len;
    }
    for (uint32_t i = 1; i < net->nlevels; i++) {
        uint32_t each = net->level[i].servers;
        if (i > 1)
            name[len++] = net->kind->mark;
        len += format(server / each, name + len);
        server %= each;
    }
    name[len] = '\0';
    return len;
}

bool
levels_parse(const struct net *net, struct rec_str name, uint32_t *server)
{
    struct rec_str part;
    uint64_t n;
    *server = 0;
    for (uint32_t i = 1; i < net->nlevels; i++) {
        uint32_t each = net->level[i].servers;
        if (!rec_str_split(&name, net->kind->mark, &part) || !rec_parse_uint(part, &n) ||
            n >= net->level[i - 1].servers / each)
            return false;
        *server += (uint32_t)n * each;
    }
    return !name.ptr;
}

size_t
levels_numbers(const struct net *net)
{
    return net->nlevels - 2;
}

bool
net_rename(uint32_t *numbers, uint32_t n, size_t step, uint32_t names,
           struct rec_error *err)
{
    uint32_t *name = calloc(names, sizeof *name), next = 0;
    if (!name)
        return rec_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *one = &name[numbers[i * step]];
        numbers[i * step] = *one = *one ? *one : ++next;
    }
    free(name);
    return true;
}

/* On each level but the first, which is the whole, and the last, which is the server
 * itself, what the servers lie in is numbered in the order in which it first appears. */
bool
levels_geometry(const struct net *net, const uint32_t *server, uint32_t n,
                uint32_t *numbers, struct rec_error *err)
{
    size_t each = levels_numbers(net);
    for (size_t k = 0; k < each; k++) {
        uint32_t size = net->level[k + 1].servers;
        for (uint32_t i = 0; i < n; i++)
            numbers[i * each + k] = server[i] / size;
        if (!net_rename(numbers + k, n, each, net->level[0].servers / size, err))
            return false;
    }
    return true;
}
