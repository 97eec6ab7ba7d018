/* Any bytes as a template, and behind a line of == as CSV: refused with a message, or
 * task records that are read back as they are, no two of a name, and no more than was
 * said. */
#include "fuzz.h"

#include "rampipe/task.h"

enum { MOST = 2000 /* tasks */ };

static struct rec_reader *
open_file(const char *const *path)
{
    static const struct rec_reader_options none = {.partial = false};
    struct rec_error err = {.text = ""};
    return rec_reader_open(path, 1, &none, &err);
}

static void
check_error(const struct rec_error *err)
{
    require(err->code == REC_DATA || err->code == REC_USAGE || err->code == REC_IO,
            "an error that is none of the input's");
    require(err->text[0] != '\0', "an error without text");
}

/* Parameters that are given nowhere are given something. */
static struct task_template *
read_template(const char *path, const char *rows, double *tasks)
{
    static const char given[] = "a,%2C,1..3";
    struct rec_error err = {.text = ""};
    struct rec_reader *reader = open_file(&path), *csv = NULL;
    struct task_template *t = reader ? task_template_read(reader, &err) : NULL;
    bool ok = t != NULL;
    if (reader && !t)
        check_error(&err);
    if (ok && rows && (csv = open_file(&rows)) && !task_template_rows(t, csv, &err)) {
        check_error(&err);
        ok = false;
    }
    if (ok && !task_template_set(t, rec_str("x"), rec_str(given), &err))
        check_error(&err);
    if (ok && !task_template_count(t, tasks, &err)) {
        check_error(&err);
        ok = false;
    }
    if (csv)
        rec_reader_close(csv);
    if (reader)
        rec_reader_close(reader);
    if (ok && *tasks <= MOST)
        return t;
    task_template_free(t);
    return NULL;
}

static size_t
write_tasks(struct task_template *t, const char *path, double tasks)
{
    struct rec_error err = {.text = ""};
    struct rec_writer *writer = rec_writer_open(path, NULL, &err);
    struct task task = {0};
    size_t n = 0;
    int status;
    require(writer != NULL, "no writer");
    while ((status = task_template_next(t, &task, &err)) > 0) {
        task_write(writer, &task);
        n++;
    }
    if (status < 0)
        check_error(&err);
    require((double)n <= tasks, "more tasks than were said");
    task_free(&task);
    require(rec_writer_close(writer, true, &err), "not written");
    return n;
}

static void
compare(int a, int b)
{
    static char x[1 << 16], y[1 << 16];
    ssize_t n, m;
    off_t at = 0;
    do {
        n = pread(a, x, sizeof x, at);
        m = pread(b, y, sizeof y, at);
        require(n >= 0 && n == m && memcmp(x, y, (size_t)n) == 0, "not the same again");
        at += n;
    } while (n > 0);
}

/* Each record is one, and written again it is the same. */
static void
read_back(int file, const char *path, size_t n)
{
    struct rec_error err = {.text = ""};
    struct rec_reader *reader = open_file(&path);
    char again_path[64];
    int again = fuzz_file(NULL, 0, again_path);
    struct rec_writer *writer = rec_writer_open(again_path, NULL, &err);
    struct task task = {0};
    struct rec rec;
    struct rec_map ids = {0};
    struct rec_arena arena = {0};
    int status = 0;

    if (n > 0) {
        require(reader && writer, "cannot be read back");
        while ((status = rec_next(reader, &rec, &err)) > 0) {
            const char *id;
            require(rec.type == REC_TASK, "no task");
            require(rec_check(reader, &rec, &err) && task_read(&task, reader, &rec, &err),
                    err.text);
            require(rec_map_get(&ids, rec_str(task.id)) == REC_NONE, "two of a name");
            id = rec_arena_copy(&arena, rec_str(task.id), &err);
            require(id && rec_map_add(&ids, rec_str(id), 0, &err), "no memory");
            task_write(writer, &task);
            n--;
        }
        require(status == 0 && n == 0, err.text);
    }
    task_free(&task);
    rec_map_free(&ids);
    rec_arena_free(&arena);
    if (reader)
        rec_reader_close(reader);
    require(rec_writer_close(writer, true, &err), "not written");
    compare(file, again);
    close(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char mark[] = "\n==\n";
    const uint8_t *cut = size ? memmem(data, size, mark, sizeof mark - 1) : NULL;
    size_t first = cut ? (size_t)(cut - data) + 1 : size;
    size_t behind = cut ? first + 3 : size;
    char path[64], rows_path[64], out_path[64];
    int file = fuzz_file(data, first, path);
    int rows = fuzz_file(data + behind, size - behind, rows_path);
    int out = fuzz_file(NULL, 0, out_path);
    double tasks = 0;
    struct task_template *t = read_template(path, cut ? rows_path : NULL, &tasks);
    if (t) {
        size_t n = write_tasks(t, out_path, tasks);
        read_back(out, out_path, n);
        task_template_free(t);
    }
    close(file);
    close(rows);
    close(out);
    return 0;
}
