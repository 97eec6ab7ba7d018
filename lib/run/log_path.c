/* Checks that the log of a run is a file of its own: one that is also read as tasks, or
 * written as the output, would be spoilt. */
#include "rampipe/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The absolute path of a file, without links, even if the file does not exist yet; owned
 * by the caller. NULL: its folder does not exist, or there is no memory. */
static char *
resolve(const char *path)
{
    char *whole = realpath(path, NULL), *folder, *parent;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (whole)
        return whole;
    folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    parent = folder ? realpath(folder, NULL) : NULL;
    free(folder);
    if (!parent || !(whole = malloc(strlen(parent) + strlen(name) + 2))) {
        free(parent);
        return NULL;
    }
    sprintf(whole, "%s/%s", parent, name);
    free(parent);
    return whole;
}

/* Is `path` the same file as `other` or, if `other` is NULL, the file that is open as
 * `descriptor`? Files that exist are compared by inode, so links do not matter; devices
 * and pipes are never the same, for writing to them spoils nothing. Two files that do not
 * exist yet are compared by their paths. */
static bool
is_same(const char *path, const char *other, int descriptor)
{
    struct stat a, b;
    bool there = stat(path, &a) == 0,
         open = other ? stat(other, &b) == 0 : fstat(descriptor, &b) == 0, same;
    char *x, *y;
    if (there && open)
        return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (!other || there || open)
        return false;
    x = resolve(path);
    y = resolve(other);
    same = x && y && strcmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

bool
run_check_log(const char *log, const char *output, const char *const *inputs, size_t n,
              struct rec_error *err)
{
    bool input = n == 0 && is_same(log, NULL, STDIN_FILENO);
    for (size_t i = 0; i < n; i++)
        input = input || (strcmp(inputs[i], "-") == 0 ? is_same(log, NULL, STDIN_FILENO)
                                                      : is_same(log, inputs[i], -1));
    if (input)
        return rec_fail(err, REC_USAGE,
                        "%s: this file is the input: the log must be another file", log);
    return !is_same(log, output, STDOUT_FILENO) ||
           rec_fail(err, REC_USAGE,
                    "%s: this file is the output: the log must be another file", log);
}
