/* Data sheets of what connects the GPUs of a machine. */
#include "private.h"

#include <ctype.h>

/* How many characters `prefix` has if `name` begins with it, as a whole word: l40
 * does not begin l40s. 0 if it does not. Case does not count, and '_' is '-': tables
 * spell names in both ways. */
static size_t
begins(const char *name, const char *prefix)
{
    size_t n = 0;
    for (; prefix[n]; n++) {
        char a = name[n] == '_' ? '-' : (char)tolower((unsigned char)name[n]);
        char b = prefix[n] == '_' ? '-' : (char)tolower((unsigned char)prefix[n]);
        if (a != b)
            return 0;
    }
    return isalnum((unsigned char)name[n]) ? 0 : n;
}

const struct collective_fabric *
collective_fabric_find(const struct collective_table *table, const char *name)
{
    const struct collective_fabric *best = NULL;
    size_t longest = 1;
    for (size_t i = 0; i < table->nfabrics; i++) {
        size_t n = begins(name, table->fabric[i].name);
        if (n >= longest) {
            longest = n;
            best = &table->fabric[i];
        }
    }
    return best;
}

bool
collective_fabric_slots(const struct collective_fabric *fabric, uint64_t ranks)
{
    return fabric->link == COLLECTIVE_PCIE ||
           (fabric->link == COLLECTIVE_PAIRS && ranks > 2);
}

double
collective_fabric_bandwidth(const struct collective_fabric *fabric, uint64_t ranks)
{
    bool pairs = fabric->link == COLLECTIVE_PAIRS && ranks > 2;
    return pairs ? fabric->pcie : fabric->bandwidth;
}
