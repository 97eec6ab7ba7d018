/* Clusters as users name them: a text whose numbers may have units, or a file. */
#include "rampipe/net.h"

/* Copies a description with each number that has a unit replaced by the number in base
 * units. */
static bool
expand_units(const char *text, char *out, size_t room, struct rec_error *err)
{
    size_t len = 0;
    while (*text && len + REC_NUM_MAX < room) {
        size_t n = strcspn(text, ":,=");
        struct rec_str word = {text, n};
        double value;
        if (n && rec_parse_unit(word, &value))
            len += rec_format_num(out + len, value);
        else if (len + n + REC_NUM_MAX < room) {
            memcpy(out + len, text, n);
            len += n;
        } else
            break;
        text += n;
        if (*text)
            out[len++] = *text++;
    }
    out[len] = '\0';
    return !*text || rec_fail(err, REC_USAGE, "the text is too long");
}

/* Reads the first cluster, with its parts. *found is false if there is none. NULL: that,
 * or an error. Closes the reader. */
static struct net *
read_first(struct rec_reader *reader, bool *found, struct rec_error *err)
{
    struct net_reading reading = {NULL, false};
    struct rec rec;
    bool ok = true;
    int status;
    while (ok && (status = rec_next(reader, &rec, err)) > 0) {
        if (reading.net && !rec_continues(&rec, REC_CLUSTER))
            break;
        ok = net_reading_take(&reading, reader, &rec, NULL, err);
    }
    ok = ok && status >= 0 && net_reading_end(&reading, err);
    *found = !ok || reading.net;
    rec_reader_close(reader);
    if (ok)
        return reading.net;
    net_free(reading.net);
    return NULL;
}

static struct net *
read_file(const char *path, struct rec_error *err)
{
    struct rec_reader *reader = rec_reader_open(&path, 1, NULL, err);
    bool found;
    struct net *net = reader ? read_first(reader, &found, err) : NULL;
    if (reader && !found)
        rec_fail(err, REC_USAGE, "there is no cluster record in %s", path);
    return net;
}

struct net *
net_find(const char *text, struct rec_error *err)
{
    char expanded[1000];
    if (!strchr(text, ':'))
        return read_file(text, err);
    return expand_units(text, expanded, sizeof expanded, err) ? net_parse(expanded, err)
                                                              : NULL;
}

struct net *
net_find_record(const char *name, const char *line, struct rec_error *err)
{
    struct rec_reader *reader = rec_reader_open_text(name, rec_str(line), err);
    bool found;
    struct net *net = reader ? read_first(reader, &found, err) : NULL;
    if (reader && !found)
        rec_fail(err, REC_DATA, "%s: it is no cluster record", name);
    return net;
}
