/* Any bytes as a task file: refused with a message, or task records that are read back as
 * they are, and a list that can be turned into all forms. */
#include "fuzz.h"

#include "rampipe/task.h"

static struct rec_reader *
open_file(const char *path)
{
    static const char *kept;
    struct rec_error err;
    struct rec_reader *reader;
    kept = path;
    reader = rec_reader_open(&kept, 1, NULL, &err);
    require(reader != NULL, "no reader");
    return reader;
}

static struct rec_writer *
open_writer(const char *path)
{
    struct rec_error err;
    struct rec_writer *writer = rec_writer_open(path, NULL, &err);
    require(writer != NULL, "no writer");
    return writer;
}

/* Writes the records of a task file. */
static bool
take_lines(struct task_file *file, struct rec_reader *reader, struct rec_writer *writer,
           struct rec_error *err)
{
    struct rec_str line;
    enum task_line kind;
    int status, whole = 0;
    while ((status = rec_next_line(reader, &line, err)) > 0)
        do {
            if ((whole = task_file_take(file, reader, line, &kind, err)) < 0)
                return false;
            if (whole > 0)
                task_write(writer, &file->task);
            if (kind == TASK_LINE_FENCE)
                rec_put_line(writer, rec_str("fence\tf"));
        } while (kind == TASK_LINE_AGAIN);
    if (status == 0 && (whole = task_file_end(file, reader, err)) > 0)
        task_write(writer, &file->task);
    return status == 0 && whole >= 0;
}

/* Each record is a task; written again it is the same. */
static void
read_back(const char *path)
{
    struct rec_reader *reader = open_file(path);
    struct rec_error err = {.text = ""};
    struct task task = {0};
    struct rec rec;
    int status;
    char again[64];
    int fd = fuzz_file(NULL, 0, again);
    while ((status = rec_next(reader, &rec, &err)) > 0) {
        struct rec_writer *writer;
        char bytes[1 << 14];
        ssize_t n;
        if (rec.type != REC_TASK)
            continue;
        require(task_read(&task, reader, &rec, &err), err.text);
        require(ftruncate(fd, 0) == 0, "no file");
        writer = open_writer(again);
        task_write(writer, &task);
        require(rec_writer_close(writer, true, &err), "not written");
        n = pread(fd, bytes, sizeof bytes, 0);
        require(n == (ssize_t)rec.line.len + 1 &&
                    memcmp(bytes, rec.line.ptr, rec.line.len) == 0,
                "not the same again");
    }
    require(status == 0, err.text);
    task_free(&task);
    rec_reader_close(reader);
    close(fd);
}

/* What a list refuses though each of its tasks is right. */
static bool
is_refusal(const struct rec_error *err)
{
    static const char *const says[] = {
        "comes twice",     "must not begin with '@gather-'",
        "is a call",       "of a task in front of task",
        "has the name of", "make keeps no output of",
        "has a line end"};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (strstr(err->text, says[i]))
            return true;
    return err->code == REC_NO;
}

static void
list_as(enum task_form form, const char *path)
{
    struct rec_reader *reader = open_file(path);
    char out[64];
    int fd = fuzz_file(NULL, 0, out);
    struct rec_writer *writer = open_writer(out);
    struct rec_error err = {.text = ""};
    struct task_list *list = task_list_new(form, writer, "g", 1, &err);
    struct task task = {0};
    struct rec rec;
    bool ok = list != NULL;
    while (ok && rec_next(reader, &rec, &err) > 0)
        ok = rec.type == REC_FENCE ? task_list_fence(list, "f", &err)
                                   : task_read(&task, reader, &rec, &err) &&
                                         task_list_add(list, &task, &err);
    ok = ok && task_list_end(list, &err);
    require(ok || is_refusal(&err), err.text);
    task_list_free(list);
    task_free(&task);
    rec_reader_close(reader);
    require(rec_writer_close(writer, true, &err), "not written");
    close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], records[64];
    int in = fuzz_file(data, size, path), out = fuzz_file(NULL, 0, records);
    struct rec_reader *reader = open_file(path);
    struct rec_writer *writer = open_writer(records);
    struct rec_error err = {.text = ""};
    struct task_file file = {.open = false};
    bool ok = take_lines(&file, reader, writer, &err);
    off_t written;
    require(ok || ((err.code == REC_DATA || err.code == REC_IO) && err.text[0]),
            "an error without text, or none of the input's");
    task_file_free(&file);
    rec_reader_close(reader);
    require(rec_writer_close(writer, true, &err), "not written");
    written = lseek(out, 0, SEEK_END);
    if (ok && written > 0) {
        read_back(records);
        for (int form = TASK_GRAPH; form <= TASK_CHECK; form++)
            list_as((enum task_form)form, records);
    }
    close(in);
    close(out);
    return 0;
}
