/* The reader and the writer on whole streams: what is read, passed on, refused. */
#include "stream.h"

#include <fcntl.h>
#include <unistd.h>

#define HEAD "#rampipe\t1\n"
#define SMALL                                                                       \
    HEAD "#@\tfirst 1\tfirst -x\n# why\ngraph\tg\tnet\nop\tg\t1\tforward\t0.5\t8\n" \
         "#end\n"

static void
expect_failure(const char *text, enum rec_code code, const char *part)
{
    struct result r = read_text(text);
    if (r.status != -1 || r.err.code != code || !strstr(r.err.text, part))
        fail_msg("'%s': status %d, code %d, '%s'; expected code %d, '%s'", text, r.status,
                 (int)r.err.code, r.err.text, (int)code, part);
}

/* ---- lines and fields ---------------------------------------------------- */

static void
fields_are_views_of_the_line(void **state)
{
    static const char *const files[] = {"in"};
    static const char text[] = "op\tg\t\tx=1\r\nodd-word_2\r\n";
    struct rec_reader *reader;
    struct rec_error err;
    struct rec rec;
    (void)state;
    write_file("in", text, sizeof text - 1);
    reader = rec_reader_open(files, 1, NULL, &err);
    assert_non_null(reader);
    assert_int_equal(rec_next(reader, &rec, &err), 1);
    assert_int_equal(rec.type, REC_OP);
    assert_int_equal(rec.nfields, 4);
    assert_true(rec_str_is(rec.line, "op\tg\t\tx=1"));
    assert_true(rec_str_is(rec.field[0], "op"));
    assert_true(rec_str_is(rec.field[2], ""));
    assert_true(rec_str_is(rec.field[3], "x=1"));
    assert_int_equal(rec_reader_line(reader), 1);
    assert_string_equal(rec_reader_file(reader), "in");
    assert_int_equal(rec_next(reader, &rec, &err), 1);
    assert_int_equal(rec.type, REC_OTHER);
    assert_true(rec_str_is(rec.field[0], "odd-word_2"));
    assert_int_equal(rec_next(reader, &rec, &err), 0);
    assert_int_equal(rec_reader_bytes(reader), sizeof text - 1);
    rec_reader_close(reader);
}

/* A byte at a time: what is there is read, for what is not nobody waits. */
static void
read_patiently(const char *bytes, size_t n, bool plain)
{
    char name[32];
    const char *const files[] = {name};
    struct rec_reader *reader;
    struct rec_error err;
    struct rec rec;
    size_t records = 0;
    int end[2], status = 2;
    assert_int_equal(pipe(end), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", end[0]);
    reader = rec_reader_open(files, 1, NULL, &err);
    assert_non_null(reader);
    assert_int_equal(rec_reader_descriptor(reader), -1);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(write(end[1], bytes + i, 1), 1);
        if (!plain && i == 0)
            continue; /* that it is a gzip is told by two bytes */
        while ((status = rec_try_next(reader, &rec, &err)) == 1)
            records += rec.type > REC_MARK;
        assert_int_equal(status, 2);
        assert_true(rec_reader_descriptor(reader) >= 0);
        if (plain && bytes[i] == '\n' && bytes + i > strstr(bytes, "\nop\t") + 1)
            assert_int_equal(records, 2);
    }
    close(end[1]);
    assert_int_equal(rec_try_next(reader, &rec, &err), 0);
    assert_int_equal(records, 2);
    assert_int_equal(rec_reader_line(reader), 6);
    rec_reader_close(reader);
    close(end[0]);
}

static void
a_patient_reader_waits_for_nothing(void **state)
{
    static const char text[] = SMALL;
    size_t n;
    unsigned char *zipped = gzip(text, sizeof text - 1, &n);
    (void)state;
    read_patiently(text, sizeof text - 1, true);
    read_patiently((const char *)zipped, n, false);
    free(zipped);
}

static void
types_are_told_apart(void **state)
{
    (void)state;
    for (enum rec_type type = REC_MARK + 1; type < REC_NTYPES; type++) {
        static const char *const files[] = {"in"};
        char text[64];
        struct rec_reader *reader;
        struct rec_error err;
        struct rec rec;
        const char *name = rec_spec(type)->name;
        int n = snprintf(text, sizeof text, "%s\ta\n%sx\n%s-\n%.*s\n", name, name, name,
                         (int)strlen(name) - 1, name);
        write_file("in", text, (size_t)n);
        reader = rec_reader_open(files, 1, NULL, &err);
        assert_non_null(reader);
        assert_int_equal(rec_next(reader, &rec, &err), 1);
        assert_int_equal(rec.type, type);
        for (int i = 0; i < 3; i++) {
            bool another = false; /* rung without its last letter is run */
            assert_int_equal(rec_next(reader, &rec, &err), 1);
            for (enum rec_type t = REC_MARK + 1; i == 2 && t < REC_NTYPES; t++)
                another = another || rec_str_is(rec.field[0], rec_spec(t)->name);
            assert_int_equal(rec.type != REC_OTHER, another);
        }
        assert_int_equal(rec_next(reader, &rec, &err), 0);
        rec_reader_close(reader);
    }
    assert_int_equal(read_bytes("\0op\n", 4).status, -1);
    assert_int_equal(read_bytes("op\0\n", 4).status, -1);
}

static void
empty_lines_and_comments_count_as_comments(void **state)
{
    struct result r = read_text("\n# one\n#\n\nop\tx\n#end of it\n\r\n");
    (void)state;
    assert_int_equal(r.status, 0);
    assert_int_equal(r.records, 1);
    assert_int_equal(r.comments, 6);
    assert_int_equal(read_text("\n").status, 0);
    assert_int_equal(read_text("op\tx").records, 1);
    assert_int_equal(read_text(HEAD "op\tx\n#end").records, 1);
    assert_int_equal(read_text(HEAD "op\tx\r\n#end\r").records, 1);
}

static void
a_record_starts_with_a_word(void **state)
{
    static const char *const bad[] = {"Op\tx", "\tx",    " op",       "9\tx",
                                      "_a",    "op,\tx", "op \tx",    "=",
                                      "\xff",  "op\x01", "{\"a\": 1}"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[100];
        snprintf(text, sizeof text, "op\tx\n%s\n", bad[i]);
        expect_failure(text, REC_DATA, "in:2: a record starts with its type");
        expect_failure(text + 5, REC_DATA, "in:1: a record starts with its type");
    }
}

/* Lines and field counts around every internal boundary: blocks of 64, the buffer. */
static void
lines_of_any_length(void **state)
{
    static const size_t large[] = {65535, 65536, 196608, 262143, 262144, 262145, 5000000};
    char *text = malloc(5000100);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < 300 + sizeof large / sizeof *large; i++) {
        size_t n = i < 300 ? i : large[i - 300];
        struct result r;
        memcpy(text, "so\t", 3); /* no known type, whose fields would be looked at */
        memset(text + 3, 'x', n);
        memcpy(text + 3 + n, "\nso\ty\n", 6);
        r = read_bytes(text, n + 9);
        assert_int_equal(r.status, 0);
        assert_int_equal(r.records, 2);
        memset(text + 3, '\t', n);
        r = read_bytes(text, n + 3);
        assert_int_equal(r.status, 0);
        assert_int_equal(r.fields, n + 2);
    }
    free(text);
}

/* A writer that trickles: what counts is lines, not the pieces that read() gives. */
static void
pieces_from_a_pipe(void **state)
{
    int ends[2], kept = dup(0);
    (void)state;
    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        static const char text[] = SMALL SMALL;
        for (size_t i = 0; i < sizeof text - 1; i++)
            if (write(ends[1], text + i, 1) != 1)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    dup2(ends[0], 0);
    struct result r = read_files(NULL, 0, false, NULL);
    dup2(kept, 0);
    close(kept);
    close(ends[0]);
    assert_int_equal(r.status, 0);
    assert_int_equal(r.records, 4);
    assert_int_equal(r.marks, 2);
    free(r.provenance);
}

/* ---- header, trailer, several streams ------------------------------------ */

static void
headers(void **state)
{
    (void)state;
    expect_failure("#rampipe\t2\n#end\n", REC_DATA, "in:1: the stream is of version 2");
    expect_failure("#rampipe\t99999\n#end\n", REC_DATA, "version 99999");
    expect_failure("#rampipe\t0\n#end\n", REC_DATA, "version 0");
    expect_failure("#rampipe 1\n#end\n", REC_DATA, "in:1: a header is");
    expect_failure("#rampipe\n#end\n", REC_DATA, "in:1: a header is");
    expect_failure("#rampipe\tone\n#end\n", REC_DATA, "in:1: a header is");
    expect_failure("#rampipe\t1\t1\n#end\n", REC_DATA, "in:1: a header is");
    expect_failure(SMALL "#rampipe\t2\n", REC_DATA, "in:7: ");
    expect_failure(HEAD "op\tx\n" HEAD "#end\n", REC_IO, "cut");
}

/* Every prefix of a stream is a cut stream, except all but its last LF. */
static void
every_prefix_is_a_cut(void **state)
{
    static const char text[] = SMALL;
    static const char twice[] = SMALL SMALL;
    size_t len = sizeof text - 1;
    (void)state;
    for (size_t n = 0; n <= len; n++) {
        struct result r = read_bytes(text, n);
        bool whole = n >= len - 1;
        if (r.status != (whole ? 0 : -1) || (!whole && r.err.code != REC_IO))
            fail_msg("%zu bytes: status %d, %s", n, r.status, r.err.text);
    }
    for (size_t n = len + 1; n < 2 * len - 1; n++) {
        struct result r = read_bytes(twice, n);
        if (r.status != -1 || r.err.code != REC_IO)
            fail_msg("%zu bytes: status %d, %s", n, r.status, r.err.text);
    }
}

static void
partial_accepts_a_cut_with_a_warning(void **state)
{
    static const char text[] = HEAD "op\tx\nop\ty\nop\tha";
    static const char *const files[] = {"in"};
    struct result r;
    char *out;
    (void)state;
    write_file("in", text, sizeof text - 1);
    r = read_files(files, 1, true, "out");
    assert_int_equal(r.status, 0);
    assert_int_equal(r.records, 2);
    assert_non_null(strstr(r.warning, "cut"));
    free(r.provenance);
    out = read_file("out", NULL);
    assert_string_equal(out, HEAD OWN "\nop\tx\nop\ty\n#end\n");
    free(out);
}

static void
several_streams_and_files(void **state)
{
    static const char *const files[] = {"a", "empty", "b"};
    static const char *const missing[] = {"a", "none"};
    struct result r;
    (void)state;
    r = read_text(SMALL SMALL);
    assert_int_equal(r.records, 4);
    assert_int_equal(r.marks, 2);
    write_file("a", SMALL, sizeof SMALL - 1);
    write_file("empty", "\n", 1);
    write_file("b", "op\tx\n\n=\n", 8);
    r = read_files(files, 3, false, NULL);
    assert_int_equal(r.status, -1);
    assert_int_equal(r.err.code, REC_DATA);
    assert_memory_equal(r.err.text, "b:3: ", 5);
    assert_string_equal(r.provenance, "#@\tfirst 1\tfirst -x\n");
    free(r.provenance);
    r = read_files(missing, 2, false, NULL);
    assert_int_equal(r.err.code, REC_IO);
    assert_string_equal(r.err.text, "none: No such file or directory");
    assert_int_equal(r.records, 2);
    free(r.provenance);
}

/* ---- gzip ---------------------------------------------------------------- */

static void
gzip_in_any_number_of_members(void **state)
{
    static const char text[] = SMALL;
    unsigned char *one, *all = malloc(10000);
    size_t len, used = 0;
    struct result r;
    (void)state;
    assert_non_null(all);
    for (size_t at = 0; at < sizeof text - 1; at += 11) { /* members cut lines in two */
        size_t left = sizeof text - 1 - at;
        one = gzip(text + at, left < 11 ? left : 11, &len);
        memcpy(all + used, one, len);
        used += len;
        free(one);
    }
    r = read_bytes(all, used);
    assert_int_equal(r.status, 0);
    assert_int_equal(r.records, 2);
    memset(all + used, 0, 100); /* padding, as tapes have it */
    assert_int_equal(read_bytes(all, used + 100).records, 2);
    memcpy(all + used, "garbage", 7);
    r = read_bytes(all, used + 7);
    assert_int_equal(r.status, -1);
    assert_int_equal(r.err.code, REC_IO);
    assert_non_null(strstr(r.err.text, "garbage after"));
    free(all);
}

static void
a_damaged_gzip_is_refused(void **state)
{
    static const char text[] = "op\tx\nop\ty\n"; /* without header: only gzip can tell */
    size_t len, silent = 0;
    unsigned char *bytes = gzip(text, sizeof text - 1, &len);
    (void)state;
    for (size_t n = 1; n < len; n++) {
        struct result r = read_bytes(bytes, n);
        if (r.status != -1 || r.err.code != REC_IO)
            fail_msg("%zu of %zu bytes: status %d, %s", n, len, r.status, r.err.text);
    }
    for (size_t i = 10; i < len; i++) { /* all but padding bits is checked by its sum */
        struct result r;
        bytes[i] ^= 0x10;
        r = read_bytes(bytes, len);
        assert_true(r.status == -1 || r.records == 2);
        silent += r.status == 0;
        bytes[i] ^= 0x10;
    }
    assert_true(silent <= 1);
    assert_int_equal(read_bytes(bytes, len).records, 2);
    free(bytes);
}

/* ---- writing ------------------------------------------------------------- */

static void
header_provenance_and_trailer_are_written_once(void **state)
{
    (void)state;
    expect_filtered("\n", HEAD OWN "\n\n#end\n");
    expect_filtered("op\tx\n", HEAD OWN "\nop\tx\n#end\n");
    expect_filtered(HEAD "#end\n", HEAD OWN "\n#end\n");
    expect_filtered(SMALL, HEAD "#@\tfirst 1\tfirst -x\n" OWN "\n# why\ngraph\tg\tnet\n"
                                "op\tg\t1\tforward\t0.5\t8\n#end\n");
    expect_filtered(HEAD "#@\ta\n#@\tb\nop\tx\n#end\n" HEAD "#@\tc\nop\ty\n#end\n",
                    HEAD "#@\ta\n#@\tb\n" OWN "\nop\tx\n#end\n" HEAD "#@\tc\n" OWN
                         "\nop\ty\n#end\n");
    expect_filtered("op\tx\n" HEAD "op\ty\n#end\n",
                    HEAD OWN "\nop\tx\n#end\n" HEAD OWN "\nop\ty\n#end\n");
    expect_filtered("op\tx\r\n\r\nop\ty", HEAD OWN "\nop\tx\n\nop\ty\n#end\n");
}

static void
fields_and_keys_are_written(void **state)
{
    struct rec_error err;
    struct rec_writer *writer = rec_writer_open("out", NULL, &err);
    char *text;
    (void)state;
    assert_non_null(writer);
    rec_begin(writer, "op");
    rec_str_field(writer, (struct rec_str){"graph", 1});
    rec_text_field(writer, "");
    rec_num_field(writer, 0.1);
    rec_uint_field(writer, 0);
    rec_uint_field(writer, UINT64_MAX);
    rec_str_key(writer, "a", rec_str("b=c"));
    rec_text_key(writer, "empty", "");
    rec_num_key(writer, "n", 1e300);
    rec_uint_key(writer, "u", 7);
    rec_put_bytes(writer, ",8", 2);
    rec_end(writer);
    assert_true(rec_writer_close(writer, true, &err));
    text = read_file("out", NULL);
    assert_string_equal(text, "op\tg\t\t0.1\t0\t18446744073709551615\ta=b=c\tempty=\t"
                              "n=1e300\tu=7,8\n");
    free(text);
}

/* Fields of every length at every place of the buffer. */
static void
fields_of_any_length_are_copied(void **state)
{
    enum { MOST = 200000 };
    char *source = malloc(MOST), *want = malloc(40 * 1000 * 1000), *got;
    size_t used = 0, len;
    struct rec_error err;
    struct rec_writer *writer = rec_writer_open("out", NULL, &err);
    (void)state;
    assert_non_null(writer);
    assert_non_null(source);
    assert_non_null(want);
    for (size_t i = 0; i < MOST; i++)
        source[i] = (char)('a' + i % 23);
    for (int i = 0; i < 30000; i++) {
        size_t n = i % 1000 ? random_below(70) : random_below(MOST);
        size_t from = random_below(MOST - n);
        rec_str_field(writer, (struct rec_str){source + from, n});
        want[used++] = '\t';
        memcpy(want + used, source + from, n);
        used += n;
    }
    assert_true(rec_writer_close(writer, true, &err));
    got = read_file("out", &len);
    assert_int_equal(len, used);
    assert_memory_equal(got, want, used);
    free(got);
    free(want);
    free(source);
}

static void
gz_output_is_gzip(void **state)
{
    static const char *const files[] = {"in"}, *const packed[] = {"out.gz"};
    struct result r;
    char *text;
    (void)state;
    write_file("in", SMALL, sizeof SMALL - 1);
    r = read_files(files, 1, false, "out.gz");
    free(r.provenance);
    text = read_file("out.gz", NULL);
    assert_memory_equal(text, "\x1f\x8b", 2);
    free(text);
    r = read_files(packed, 1, false, NULL);
    assert_int_equal(r.status, 0);
    assert_int_equal(r.records, 2);
    assert_string_equal(r.provenance, "#@\tfirst 1\tfirst -x\n" OWN "\n");
    free(r.provenance);
}

/* A full disk shows when the buffer goes out, at the latest when closing. */
static void
a_full_disk_is_reported(void **state)
{
    static const char *const path[] = {"/dev/full", "full.gz"};
    (void)state;
    (void)!symlink("/dev/full", "full.gz");
    for (int i = 0; i < 2; i++)
        for (int lines = 0; lines < 100001; lines += 100000) {
            struct rec_error err = {0};
            struct rec_writer *writer = rec_writer_open(path[i], OWN, &err);
            assert_non_null(writer);
            for (int n = 0; n < lines; n++) {
                rec_begin(writer, "op");
                rec_uint_field(writer, random64());
                rec_end(writer);
            }
            if (lines > 0 && i == 0) {
                assert_false(rec_writer_ok(writer, &err));
                assert_string_equal(err.text, "/dev/full: No space left on device");
            }
            assert_false(rec_writer_close(writer, true, &err));
            assert_int_equal(err.code, REC_IO);
            assert_non_null(strstr(err.text, "No space left on device"));
        }
    struct rec_error err;
    assert_null(rec_writer_open("no/such/folder", OWN, &err));
    assert_int_equal(err.code, REC_IO);
}

/* ---- properties ---------------------------------------------------------- */

/* Any bytes that are lines of records and comments come out as they went in. */
static void
passing_on_is_exact(void **state)
{
    static const char prefix[] = HEAD OWN "\n", suffix[] = "#end\n";
    char *text = malloc(1 << 20), *want = malloc((1 << 20) + 100);
    (void)state;
    assert_non_null(text);
    assert_non_null(want);
    for (int round = 0; round < 100; round++) {
        size_t len = 0, size = random_below(round % 10 ? 3000 : 600000);
        while (len < size) {
            size_t n = random_below(round % 3 ? 100 : 400);
            char tab = '\t';
            switch (random_below(4)) {
            case 0: text[len++] = '#', text[len++] = ' '; break;
            case 1: /* of a known type: no more fields than it has */
                len += (size_t)sprintf(text + len, "op\t");
                tab = ' ';
                break;
            case 2: len += (size_t)sprintf(text + len, "x-%u\t", (unsigned)n); break;
            default: n = 0;
            }
            for (; n > 0;
                 n--) { /* any byte but line ends and NUL; more TABs than chance */
                char c = (char)random64();
                text[len++] =
                    strchr("\n\r", c) || random_below(8) == 0 || c == '\t' ? tab : c;
            }
            text[len++] = '\n';
        }
        char *got = filter_text(text, len);
        size_t total = sizeof prefix - 1;
        memcpy(want, prefix, total);
        memcpy(want + total, text, len);
        memcpy(want + total + len, suffix, sizeof suffix);
        total += len + sizeof suffix - 1;
        assert_memory_equal(got, want, total);
        free(got);
    }
    free(text);
    free(want);
}

/* Names that have room are all there; then "..." stands for the first that has none and
 * all that follow, short ones too. */
static void
a_list_of_names_ends_where_its_room_does(void **state)
{
    char list[20] = "";
    (void)state;
    assert_true(rec_list_name(list, sizeof list, "first"));
    assert_true(rec_list_name(list, sizeof list, "second"));
    assert_string_equal(list, "first, second");
    assert_false(rec_list_name(list, sizeof list, "third"));
    assert_false(rec_list_name(list, sizeof list, "4"));
    assert_string_equal(list, "first, second, ...");
}

/* Ids that collide in one process do not in another: this program, run twice, says what
 * "a" hashes to. (They are the same once in 2^64 runs.) */
static void
nobody_knows_the_hash(void **state)
{
    char hash[2][40] = {"", ""};
    (void)state;
    for (int i = 0; i < 2; i++) {
        FILE *out = popen("/proc/$PPID/exe hash", "r");
        assert_non_null(out);
        assert_non_null(fgets(hash[i], sizeof hash[i], out));
        assert_int_equal(pclose(out), 0);
    }
    assert_string_not_equal(hash[0], hash[1]);
}

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "hash") == 0) {
        printf("%llx\n", (unsigned long long)rec_hash(rec_str("a")));
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_knows_the_hash),
        cmocka_unit_test(a_list_of_names_ends_where_its_room_does),
        cmocka_unit_test(fields_are_views_of_the_line),
        cmocka_unit_test(a_patient_reader_waits_for_nothing),
        cmocka_unit_test(types_are_told_apart),
        cmocka_unit_test(empty_lines_and_comments_count_as_comments),
        cmocka_unit_test(a_record_starts_with_a_word),
        cmocka_unit_test(lines_of_any_length),
        cmocka_unit_test(pieces_from_a_pipe),
        cmocka_unit_test(headers),
        cmocka_unit_test(every_prefix_is_a_cut),
        cmocka_unit_test(partial_accepts_a_cut_with_a_warning),
        cmocka_unit_test(several_streams_and_files),
        cmocka_unit_test(gzip_in_any_number_of_members),
        cmocka_unit_test(a_damaged_gzip_is_refused),
        cmocka_unit_test(header_provenance_and_trailer_are_written_once),
        cmocka_unit_test(fields_and_keys_are_written),
        cmocka_unit_test(fields_of_any_length_are_copied),
        cmocka_unit_test(gz_output_is_gzip),
        cmocka_unit_test(a_full_disk_is_reported),
        cmocka_unit_test(passing_on_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
