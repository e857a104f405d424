/* SPDX-License-Identifier: Apache-2.0 */
/* bible_kjv.c: the King James Bible, its bytes or a tokenizer's tokens, as Debian's
 * program `bible` prints it.
 *
 *     bible -f -p /usr/lib gen1:1-rev22:21
 *
 * -f turns pretty printing off: a verse a line, "Ge1:1 In the beginning ...", whatever
 * the width of a terminal; -p keeps it from looking for its data in the current
 * folder. 4.4 MB, 31,102 verses, the same bytes every time. Train is the first nine
 * tenths. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/data/cache.h"
#include "core/data/text_source.h"
#include "etude/diagnostic.h"

enum { VERSES = 31102 };

struct options {
    struct et_data_options common;
    struct eti_text_options text;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, "/usr/bin/bible", 0,
                        "the program that prints the text, of Debian's bible-kjv"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_TOKEN_OPTIONS(struct options),
    ETI_TEXT_OPTIONS(struct options),
    {.name = NULL},
};

/* Runs the program with its output in FD. */
static et_status
run(struct et_ctx *cx, const char *program, int fd)
{
    char *const arguments[] = {"bible",           "-f", "-p", "/usr/lib",
                               "gen1:1-rev22:21", NULL};
    char *const environment[] = {"LC_ALL=C", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    pid_t child;
    int error = posix_spawn(&child, program, &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    if (error) {
        et_status s =
            ET_FAIL(cx, ET_EIO, "cannot run %s: %s", program, strerror(error));
        if (error == EAGAIN)
            et_error_set_code(cx, ET_E_SYSTEM_LIMIT);
        return s;
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return ET_FAIL(cx, ET_EIO, "cannot wait for %s: %s", program,
                           strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return ET_FAIL(cx, ET_EIO, "%s failed with status %d", program,
                       WIFEXITED(status) ? WEXITSTATUS(status)
                                         : 128 + WTERMSIG(status));
    return ET_OK;
}

static et_status
print_text(struct et_ctx *cx, int fd, void *data)
{
    const char *program = data;
    ET_TRY(run(cx, program, fd));
    char bytes[1 << 14];
    int64_t lines = 0, at = 0;
    ssize_t n;
    while ((n = pread(fd, bytes, sizeof bytes, at)) > 0) {
        at += n;
        for (ssize_t i = 0; i < n; i++)
            lines += bytes[i] == '\n';
    }
    if (lines != VERSES)
        return ET_FAIL(cx, ET_EFORMAT, "%s printed %" PRId64 " verses, not %d", program,
                       lines, VERSES);
    return ET_OK;
}

/* A tokenizer's tokens of the text, which is in the cache by NAME. */
static et_status
open_tokens(struct et_ctx *cx, struct et_dataset *self, const char *name)
{
    const struct options *o = self->options;
    char folder[ETI_PATH_MAX], path[ETI_PATH_MAX];
    if (!eti_cache_folder(folder))
        return ET_FAIL(cx, ET_EIO, "no folder for a cache: set XDG_CACHE_HOME");
    ET_TRY(eti_file_path(cx, path, folder, name));
    return eti_text_open(cx, self, path, &o->text, NULL);
}

static et_status
open_bible(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    char *program = self->common->path;
    struct stat st;
    if (stat(program, &st) != 0) {
        et_status s = ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO,
                              "cannot run %s: %s", program, strerror(errno));
        et_hint(cx, "apt install bible-kjv");
        return s;
    }
    /* Another program has another name in the cache. */
    char name[128];
    snprintf(name, sizeof name, "bible_kjv-%" PRId64 "-%" PRId64 ".txt",
             (int64_t)st.st_size, (int64_t)st.st_mtime);
    int fd;
    if (eti_cache_open(NULL, name, -1, print_text, program, &fd) != ET_OK)
        ET_TRY(eti_temporary_open(cx, print_text, program, &fd));
    if (!o->text.tokenizer)
        return eti_token_file_open(cx, self, name, fd, 1, 0, 256, ETI_90_10);
    close(fd);
    return open_tokens(cx, self, name);
}

static void
describe_bible_kjv(const void *options, struct et_data_facts *out)
{
    const struct options *o = options;
    et_facts_stream(out, 0, o->text.tokenizer ? 0 : 256);
}

const struct et_dataset_class et_dataset_bible_kjv = {
    .info =
        {
            .name = "bible_kjv",
            .class_name = "BibleKJV",
            .summary = "the King James Bible: its bytes, or a tokenizer's tokens",
            .source = "Debian's package bible-kjv",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_token_file),
    .open = open_bible,
    .tokens = eti_token_file_tokens,
    .close = eti_token_file_close,
    .describe = describe_bible_kjv,
};
