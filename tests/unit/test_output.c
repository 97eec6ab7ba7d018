/* Files that are whole or not there: what is synced when, and what killed writers
 * leave. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- what the library asks of the system, in its order --------------------- */

static char calls[200];

static void
note(const char *call)
{
    strncat(calls, call, sizeof calls - strlen(calls) - 1);
}

/* (in place of libc's) */
int
fsync(int fd)
{
    struct stat is;
    assert_int_equal(fstat(fd, &is), 0);
    note(S_ISDIR(is.st_mode) ? "sync folder, " : "sync file, ");
    return (int)syscall(SYS_fsync, fd);
}

int
rename(const char *from, const char *to)
{
    note("rename, ");
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* ---- the folder -------------------------------------------------------------- */

static struct rec_writer *
open_writer(const char *path)
{
    struct rec_error err;
    struct rec_writer *writer = rec_writer_open(path, NULL, &err);
    assert_non_null(writer);
    return writer;
}

static void
close_writer(struct rec_writer *writer)
{
    struct rec_error err;
    rec_printf(writer, "text\n");
    assert_true(rec_writer_close(writer, true, &err));
}

static bool
is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* So many names in the folder, but . and .. */
static int
count_files(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = -2;
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* What a writer of a file that was killed leaves: its temporary file, which nobody has
 * open. */
static char *
make_litter(const char *path)
{
    struct rec_writer *writer = open_writer(path);
    char *name = strdup(rec_writer_temporary(writer));
    struct rec_error err;
    assert_non_null(name);
    (void)!rec_writer_close(writer, false, &err);
    write_file(name, "half", 4);
    return name;
}

/* ---- tests ------------------------------------------------------------------- */

/* After a power cut the file is there whole, under its name: its bytes are synced before
 * it takes the name, and the folder that has the name behind that. */
static void
name_is_synced_behind_bytes(void **state)
{
    (void)state;
    assert_int_equal(mkdir("synced", 0777), 0);
    calls[0] = '\0';
    close_writer(open_writer("synced/file"));
    assert_string_equal(calls, "sync file, rename, sync folder, ");
    calls[0] = '\0';
    close_writer(open_writer("here")); /* the folder is . */
    assert_string_equal(calls, "sync file, rename, sync folder, ");
}

static void
litter_of_killed_writers_goes(void **state)
{
    char *first, *fifth, *other;
    (void)state;
    assert_int_equal(mkdir("litter", 0777), 0);
    first = make_litter("litter/file");
    fifth = strdup(first);
    assert_non_null(fifth);
    assert_int_equal(fifth[strlen(fifth) - 1], '0');
    fifth[strlen(fifth) - 1] = '5'; /* five others wrote when that was killed */
    write_file(fifth, "half", 4);
    other = make_litter("litter/other");
    write_file("litter/.rampipe-1-0", "of 0.2, or of a writer without locks", 4);
    assert_int_equal(count_files("litter"), 4);
    close_writer(open_writer("litter/file"));
    assert_false(is_there(first));
    assert_false(is_there(fifth));
    assert_true(is_there(other)); /* its next writer's business */
    assert_int_equal(count_files("litter"), 3);
    close_writer(open_writer("litter/other"));
    assert_int_equal(count_files("litter"), 3); /* file, other, .rampipe-1-0 */
    free(first);
    free(fifth);
    free(other);
}

static void
living_writers_keep_their_files(void **state)
{
    struct rec_writer *writer[12];
    (void)state;
    assert_int_equal(mkdir("living", 0777), 0);
    for (int i = 0; i < 12; i++) {
        writer[i] = open_writer("living/file");
        assert_int_equal(count_files("living"), i + 1);
    }
    for (int i = 0; i < 12; i++) {
        char *text;
        rec_printf(writer[i], "%d ", i);
        close_writer(writer[i]);
        text = read_file("living/file", NULL);
        assert_int_equal(atoi(text), i);
        free(text);
    }
    assert_int_equal(count_files("living"), 1);
}

/* A claimed place: what came to be there meanwhile stays, whether or not there was a
 * file. */
static void
claimed_places_are_taken_once(void **state)
{
    (void)state;
    assert_int_equal(mkdir("claimed", 0777), 0);
    for (int there = 0; there < 2; there++) {
        struct rec_writer *writer[3];
        struct rec_error err;
        char *text;
        unlink("claimed/file");
        if (there)
            write_file("claimed/file", "old", 3);
        for (int i = 0; i < 3; i++) {
            writer[i] = open_writer("claimed/file");
            assert_true(rec_writer_claim(writer[i], &err));
            rec_printf(writer[i], "%d\n", i);
        }
        assert_true(rec_writer_close(writer[1], true, &err));
        for (int i = 0; i < 3; i += 2) {
            assert_false(rec_writer_close(writer[i], true, &err));
            assert_int_equal(err.code, REC_IO);
            assert_non_null(strstr(err.text, "claimed/file: another program"));
        }
        text = read_file("claimed/file", NULL);
        assert_string_equal(text, "1\n");
        free(text);
        assert_int_equal(count_files("claimed"), 1);
    }
}

/* What a writer has written into a sink. */
struct written {
    char bytes[1 << 12];
    size_t len;
};

static int
take_bytes(void *context, const char *bytes, size_t len)
{
    struct written *written = context;
    assert_true(len <= sizeof written->bytes - written->len);
    memcpy(written->bytes + written->len, bytes, len);
    written->len += len;
    return 0;
}

/* Short fields are copied in steps of 16 bytes. Here each one, of 0 to 40 bytes, ends
 * with the last byte of a page, behind which nothing may be read, or one byte before. */
static void
fields_at_the_end_of_a_page(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct written written = {.len = 0};
    struct rec_sink sink = {take_bytes, &written};
    struct rec_error err;
    struct rec_writer *writer = rec_writer_open_sink(&sink, "sink", NULL, &err);
    size_t want = 0;
    (void)state;
    assert_true(at != MAP_FAILED && writer);
    assert_int_equal(mprotect(at + page, page, PROT_NONE), 0);
    for (size_t i = 0; i < page; i++)
        at[i] = (char)('a' + i % 23);
    for (size_t len = 0; len <= 40; len++)
        for (size_t gap = 0; gap < 2; gap++) {
            const char *text = at + page - gap - len;
            rec_str_field(writer, (struct rec_str){text, len});
            rec_put_bytes(writer, text, len);
            rec_end(writer);
        }
    assert_true(rec_writer_close(writer, true, &err));
    for (size_t len = 0; len <= 40; len++)
        for (size_t gap = 0; gap < 2; gap++) {
            const char *text = at + page - gap - len, *got = written.bytes + want;
            assert_int_equal(got[0], '\t');
            assert_memory_equal(got + 1, text, len);
            assert_memory_equal(got + 1 + len, text, len);
            assert_int_equal(got[1 + 2 * len], '\n');
            want += 2 * len + 2;
        }
    assert_int_equal(written.len, want);
    munmap(at, 2 * page);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_is_synced_behind_bytes),
        cmocka_unit_test(litter_of_killed_writers_goes),
        cmocka_unit_test(living_writers_keep_their_files),
        cmocka_unit_test(claimed_places_are_taken_once),
        cmocka_unit_test(fields_at_the_end_of_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
