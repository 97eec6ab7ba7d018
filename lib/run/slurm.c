/* Making and running the commands of Slurm: sbatch, squeue, scancel, srun. */
#include "slurm.h"

#include "rampipe/task.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- words ----------------------------------------------------------------- */

/* Adds a word, and takes ownership of it; NULL stands for no memory. */
static bool
take(struct run_words *words, char *word, struct rec_error *err)
{
    if (!word)
        return rec_fail_memory(err);
    if (!rec_grow(&words->word, &words->room, words->n + 2, sizeof *words->word, err)) {
        free(word);
        return false;
    }
    words->word[words->n++] = word;
    words->word[words->n] = NULL;
    return true;
}

bool
run_words_add(struct run_words *words, struct rec_error *err, const char *format, ...)
{
    char *word;
    va_list args;
    va_start(args, format);
    if (vasprintf(&word, format, args) < 0)
        word = NULL;
    va_end(args);
    return take(words, word, err);
}

bool
run_words_split(struct run_words *words, const char *text, struct rec_error *err)
{
    struct rec_str rest = rec_str(text);
    char *word = malloc(rest.len + 1);
    int status = -1;
    bool ok = word || rec_fail_memory(err);
    while (ok && (status = task_word(&rest, word)) > 0)
        ok = take(words, strdup(word), err);
    free(word);
    return ok && (status == 0 ||
                  rec_fail(err, REC_USAGE, "a quote is not closed in '%s'", text));
}

void
run_words_cut(struct run_words *words, size_t n)
{
    while (words->n > n) {
        free(words->word[--words->n]);
        words->word[words->n] = NULL;
    }
}

void
run_words_free(struct run_words *words)
{
    run_words_cut(words, 0);
    free(words->word);
}

/* ---- running them ------------------------------------------------------------ */

/* Starts a command in a process group of its own, so that Ctrl-C reaches this process
 * only, which ends the command in its own way. If the command reads from the terminal it
 * stays in our group: other groups would be stopped when they read. */
static int
spawn(const struct run_words *words, int input, int output, bool all,
      const sigset_t *mask, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    short flags = POSIX_SPAWN_SETSIGMASK | (isatty(input) ? 0 : POSIX_SPAWN_SETPGROUP);
    int status = posix_spawn_file_actions_init(&files);
    if (status != 0)
        return status;
    if ((status = posix_spawnattr_init(&how)) == 0) {
        if ((status = posix_spawn_file_actions_adddup2(&files, input, 0)) == 0 &&
            (status = posix_spawn_file_actions_adddup2(&files, output, 1)) == 0 &&
            (!all ||
             (status = posix_spawn_file_actions_adddup2(&files, output, 2)) == 0) &&
            (status = posix_spawnattr_setsigmask(&how, mask)) == 0 &&
            (status = posix_spawnattr_setflags(&how, flags)) == 0)
            status =
                posix_spawnp(pid, words->word[0], &files, &how, words->word, environ);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return status;
}

bool
run_slurm_spawn(const struct run_words *words, int input, bool all, const sigset_t *mask,
                pid_t *pid, int *output, struct rec_error *err)
{
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return rec_fail(err, REC_IO, "%s: %s", words->word[0], strerror(errno));
    status = spawn(words, input, ends[1], all, mask, pid);
    close(ends[1]);
    *output = ends[0];
    if (status == 0)
        return true;
    close(ends[0]);
    return rec_fail(err, REC_IO, "cannot start %s: %s%s", words->word[0],
                    strerror(status),
                    status == ENOENT ? "; Debian has it in slurm-client" : "");
}

static char *
read_all(int fd, struct rec_error *err)
{
    struct rec_text text;
    char bytes[4096];
    ssize_t n;
    if (!rec_text_open(&text, err))
        return NULL;
    while ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            fwrite(bytes, 1, (size_t)n, text.out);
    return rec_text_close(&text, err);
}

char *
run_slurm_ask(const struct run_words *words, const sigset_t *mask, struct rec_error *err)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), output, status = 0;
    pid_t pid;
    char *said;
    bool ok = null >= 0 || rec_fail(err, REC_IO, "/dev/null: %s", strerror(errno));
    ok = ok && run_slurm_spawn(words, null, true, mask, &pid, &output, err);
    if (null >= 0)
        close(null);
    if (!ok)
        return NULL;
    said = read_all(output, err);
    close(output);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (said && status != 0) {
        rec_fail(err, REC_IO, "%.*s", *said ? (int)strcspn(said, "\n") : 500,
                 *said ? said : "Slurm's command failed, and did not say why");
        free(said);
        return NULL;
    }
    return said;
}
