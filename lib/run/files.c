/*
 * The state of files: looking at it, writing it to the log and reading it from there,
 * outputs that are missing or half written, and syncing files to the disk.
 *
 * A file counts as unchanged if its size and time of change are the same, as for make;
 * with checksums, if its size and CRC-32 are.
 */
#include "private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Times of files come from a clock of the kernel that ticks at least 100 times a second,
 * and so lag behind clock_gettime(). A file may seem older than the attempt that wrote it
 * by this much, seconds. */
#define FILE_TIME_LAG 0.02
/* Times in a log are rounded by up to this much, seconds. */
#define TIME_ERROR 1e-5

/* ---- a look at a file ------------------------------------------------------ */

static bool
is_folder(const char *name)
{
    return name[strlen(name) - 1] == '/';
}

/* The CRC-32 of the bytes of a file. O_NONBLOCK: opening a pipe must not wait for its
 * writer. False: the file cannot be read. */
static bool
sum_file(const char *path, uint32_t *sum)
{
    unsigned char bytes[1 << 15];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = -1;
    *sum = 0;
    if (fd < 0)
        return false;
    while ((n = read(fd, bytes, sizeof bytes)) != 0)
        if (n > 0)
            *sum = rec_crc32(*sum, bytes, (size_t)n);
        else if (errno != EINTR)
            break;
    close(fd);
    return n == 0;
}

static int64_t
time_of(const struct stat *status)
{
    return 1000000000 * (int64_t)status->st_mtim.tv_sec + status->st_mtim.tv_nsec;
}

/* FNV-1a, for the digest of a folder: unlike rec_hash() it gives the same value in every
 * process, so it can stand in the log. */
static uint64_t
mix(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3;
    return hash;
}

/* Does a task write this file, according to the list or to the log? */
static bool
find_maker(const struct run *run, const char *path, bool *made)
{
    const struct task_edge *tasks;
    size_t n;
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    if (!task_hazards_writers(run->hazards, path, &tasks, &n, run->err))
        return false;
    *made = n > 0;
    if (*made || !run->log.touched)
        return true;
    if (!run_journal_last(&run->log, path, &tasks, &n, run->err))
        return false;
    for (size_t i = 0; i < n; i++)
        *made = *made || run->log.turn[tasks[i].src].logged != REC_NONE;
    return true;
}

/* Adds a file to the digest of its folder, unless a task makes it: the digest shall tell
 * only what changes outside the tasks. Hashes are added, so that the order in which the
 * folder is read does not matter. */
static bool
look_at_entry(const struct run *run, const char *path, const struct stat *status,
              struct run_look *look)
{
    bool content = run->options->content, made = false;
    uint64_t hash = 0xcbf29ce484222325;
    int64_t changed = 0;
    uint32_t sum = 0;
    if (!find_maker(run, path, &made))
        return false;
    if (made)
        return true;
    if (S_ISREG(status->st_mode))
        changed = content && sum_file(path, &sum) ? status->st_size : time_of(status);
    hash = mix(hash, path, strlen(path));
    hash = mix(hash, &changed, sizeof changed);
    look->digest += mix(hash, &sum, sizeof sum);
    return true;
}

/* Adds all files below the folder `path`, which ends with a slash. A folder that does not
 * exist or may not be read counts as empty. Folders themselves are not part of the
 * digest: tasks make them along with their files. (Not fts_open(): the one of glibc
 * crashes if there is no memory.) */
static bool
look_at_folder(const struct run *run, const char *path, struct run_look *look)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool ok = true;
    if (!folder && errno == ENOMEM)
        return rec_fail_memory(run->err);
    if (!folder)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ||
               rec_fail(run->err, REC_IO, "%s: %s", path, strerror(errno));
    while (ok && (entry = readdir(folder))) {
        size_t len = strlen(path), n = strlen(entry->d_name);
        struct stat status;
        char *child;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!(child = malloc(len + n + 2))) {
            ok = rec_fail_memory(run->err);
            break;
        }
        memcpy(child, path, len);
        memcpy(child + len, entry->d_name, n + 1);
        if (lstat(child, &status) != 0)
            status = (struct stat){0}; /* removed meanwhile, or not permitted */
        if (S_ISDIR(status.st_mode)) {
            memcpy(child + len + n, "/", 2);
            ok = look_at_folder(run, child, look);
        } else
            ok = look_at_entry(run, child, &status, look);
        free(child);
    }
    closedir(folder);
    return ok;
}

/* First asks for a name below the folder that no real file has: if that has a writer, a
 * task writes the folder as a whole, and no file below it needs to be looked at. */
bool
run_look_below(const struct run *run, const char *name, struct run_look *look)
{
    char child[TASK_NAME_MAX + 8];
    bool made;
    *look = (struct run_look){.state = RUN_TREE};
    snprintf(child, sizeof child, "%s\1", name);
    if (!find_maker(run, child, &made))
        return false;
    return made || look_at_folder(run, name, look);
}

void
run_look_at(const char *name, bool content, struct run_look *look)
{
    struct stat status;
    *look = (struct run_look){.state = RUN_NONE};
    if (stat(name, &status) != 0)
        return;
    look->state = RUN_OTHER;
    if (!S_ISREG(status.st_mode))
        return;
    look->state = RUN_FILE;
    look->size = (uint64_t)status.st_size;
    look->mtime = time_of(&status);
    look->summed = content && sum_file(name, &look->sum);
}

bool
run_look_same(const struct run_look *a, const struct run_look *b)
{
    if (a->state != b->state || a->digest != b->digest || a->size != b->size)
        return false;
    return a->summed && b->summed ? a->sum == b->sum : a->mtime == b->mtime;
}

bool
run_changed_within(const char *name, double since, double until)
{
    struct stat status;
    double changed;
    if (stat(name, &status) != 0)
        return false;
    changed = 1e-9 * (double)time_of(&status);
    return !S_ISREG(status.st_mode) ||
           !(changed < since - FILE_TIME_LAG || changed > until + TIME_ERROR);
}

/* ---- its record ------------------------------------------------------------ */

static const char *const states[] = {"none", "file", "tree", "other"};

void
run_look_write(FILE *out, const char *name, const char *task, bool given,
               const struct run_look *look)
{
    fputs("file\t", out);
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        fprintf(out, *c < 0x20 || *c == 0x7f || *c == ',' || *c == '%' ? "%%%02X" : "%c",
                *c);
    fprintf(out, "\t%s\t%s", task, states[look->state]);
    if (look->state == RUN_FILE)
        fprintf(out, "\tsize=%llu\tmtime=%s%lld.%09lld", (unsigned long long)look->size,
                look->mtime < 0 ? "-" : "", llabs(look->mtime / 1000000000),
                llabs(look->mtime % 1000000000));
    if (look->summed)
        fprintf(out, "\tsum=%u", look->sum);
    if (look->state == RUN_TREE)
        fprintf(out, "\tdigest=%016llx", (unsigned long long)look->digest);
    fputs(given ? "\tgiven=1\n" : "\n", out);
}

bool
run_look_read(const struct rec_reader *reader, const struct rec *rec,
              struct run_look *look, struct rec_error *err)
{
    struct rec_str text, seconds;
    uint64_t sum = 0, s = 0, ns = 0;
    size_t state = 0;
    char digest[17] = "";
    bool before; /* before 1970 */
    while (state < 3 && !rec_str_is(rec->field[3], states[state]))
        state++;
    *look = (struct run_look){.state = (uint8_t)state};
    if (!rec_key_count(reader, rec, "size", &look->size, err) ||
        !rec_key_count(reader, rec, "sum", &sum, err))
        return false;
    look->summed = rec_find_key(rec, "sum", &text);
    look->sum = (uint32_t)sum;
    if (rec_find_key(rec, "digest", &text) && text.len < sizeof digest) {
        memcpy(digest, text.ptr, text.len);
        look->digest = strtoull(digest, NULL, 16);
    }
    before = rec_find_key(rec, "mtime", &text) && text.len > 0 && *text.ptr == '-';
    if (before)
        text = (struct rec_str){text.ptr + 1, text.len - 1};
    if (rec_find_key(rec, "mtime", &seconds) &&
        (!rec_str_split(&text, '.', &seconds) || !rec_parse_uint(seconds, &s) ||
         text.len != 9 || !rec_parse_uint(text, &ns)))
        return rec_reader_fail(reader, err, "mtime must be SECONDS.NANOSECONDS");
    look->mtime = (before ? -1 : 1) * (int64_t)(1000000000 * s + ns);
    return true;
}

/* ---- what a task has written ----------------------------------------------- */

const char *
run_find_missing(const struct run_task *task)
{
    const char *name = task->writes;
    struct stat file;
    for (uint32_t i = 0; i < task->nwrites; i++, name += strlen(name) + 1)
        if (*name != RUN_BELOW && stat(name + 1, &file) != 0)
            return name + 1;
    return NULL;
}

void
run_list_half(const struct run_task *task, double since, char *list, size_t room)
{
    const char *name = task->writes;
    struct stat file;
    *list = '\0';
    for (uint32_t i = 0; i < task->nwrites; i++, name += strlen(name) + 1)
        if (*name != RUN_BELOW && lstat(name + 1, &file) == 0 && S_ISREG(file.st_mode) &&
            1e-9 * (double)time_of(&file) >= since - FILE_TIME_LAG &&
            !rec_list_name(list, room, name + 1))
            return;
}

void
run_remove_half(const struct run_task *task)
{
    const char *name = task->writes;
    for (uint32_t i = 0; i < task->nwrites; i++, name += strlen(name) + 1) {
        struct stat file;
        if (*name == RUN_WRITES && lstat(name + 1, &file) == 0 && S_ISREG(file.st_mode))
            unlink(name + 1);
    }
}

/* ---- the disk ---------------------------------------------------------------- */

/* Syncs a file or, if `all`, the whole file system in which it is. It is no error if the
 * file does not exist, or is something that cannot be synced, such as a device. */
static bool
sync_path(const char *path, bool all, struct rec_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), status, why;
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ENXIO ||
               rec_fail(err, REC_IO, "%s: %s", path, strerror(errno));
    do
        status = all ? syncfs(fd) : fsync(fd);
    while (status != 0 && errno == EINTR);
    why = errno;
    close(fd);
    return status == 0 || why == EINVAL || why == EROFS ||
           rec_fail(err, REC_IO, "%s: %s", path, strerror(why));
}

/* The folder is synced, too: otherwise a new file could be gone after a power cut. What a
 * task writes below dir/ is not known file by file: the file system is synced instead. */
bool
run_sync_file(const char *name, struct rec_error *err)
{
    const char *slash = strrchr(name, '/');
    char *folder;
    bool ok;
    if (is_folder(name))
        return sync_path(name, true, err);
    folder = slash ? strndup(name, (size_t)(slash - name) + 1) : strdup(".");
    if (!folder)
        return rec_fail_memory(err);
    ok = sync_path(name, false, err) && sync_path(folder, false, err);
    free(folder);
    return ok;
}
