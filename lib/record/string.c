/* Views of texts, and lists of names for messages. */
#include "rampipe/record.h"

#include <stdio.h>

bool
rec_str_split(struct rec_str *rest, char mark, struct rec_str *part)
{
    const char *end;
    if (!rest->ptr)
        return false;
    end = rest->len ? memchr(rest->ptr, mark, rest->len) : NULL;
    if (!end) {
        *part = *rest;
        rest->ptr = NULL;
        rest->len = 0;
        return true;
    }
    part->ptr = rest->ptr;
    part->len = (size_t)(end - rest->ptr);
    rest->len -= part->len + 1;
    rest->ptr = end + 1;
    return true;
}

/* Always keeps room for ", ...", so that a list that is cut says so. A last character '.'
 * means that it was cut: names that end in a dot are not expected. */
bool
rec_list_name(char *list, size_t room, const char *name)
{
    static const char more[] = ", ...";
    size_t used = strlen(list);
    bool full = used > 0 && list[used - 1] == '.';
    if (!full && used + strlen(name) + 2 + sizeof more <= room) {
        snprintf(list + used, room - used, "%s%s", used ? ", " : "", name);
        return true;
    }
    if (!full && used + sizeof more <= room)
        memcpy(list + used, more, sizeof more);
    return false;
}
