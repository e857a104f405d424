/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c: `etude logs`: the log of a rank, perhaps as it grows. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/workbench.h"
#include "core/base/folders.h"
#include "core/library/facts.h"

enum { LOOK_MS = 250 }; /* between looks at a log that grows */

/* "2025-11-20T14:03:22Z info text": the level, -1 for lines of another form (what the
 * rank printed); *TEXT is what follows. */
static int
level_of(const char *line, const char **text)
{
    const char *word = strchr(line, ' ');
    *text = line;
    if (!word || word - line < 20 || word[-1] != 'Z')
        return -1;
    word++;
    for (int level = ET_LOG_DEBUG; level <= ET_LOG_ERROR; level++) {
        const char *name = et_log_level_name((enum et_log_level)level);
        size_t n = strlen(name);
        if (strncmp(word, name, n) == 0 && word[n] == ' ') {
            *text = word + n + 1;
            return level;
        }
    }
    return -1;
}

/* Prints all of TEXT, made visible, in pieces: a rank may print long lines. */
static void
put_visible(FILE *to, const char *text, size_t n)
{
    char visible[ET_VISIBLE_MAX + 1];
    size_t at = 0, piece;
    do {
        piece = n - at < ET_VISIBLE_MAX / 8 ? n - at : ET_VISIBLE_MAX / 8;
        /* Not in the middle of a character of UTF-8, which has 4 bytes at most. */
        for (int i = 0; i < 3 && piece > 1 && at + piece < n &&
                        ((unsigned char)text[at + piece] & 0xc0) == 0x80;
             i++)
            piece--;
        fputs(et_visible(visible, sizeof visible, text + at, piece), to);
        at += piece;
    } while (at < n);
}

static void
print_line(const struct cli *c, const char *line, size_t n)
{
    const char *text;
    char *visible = NULL;
    size_t length;
    int level = level_of(line, &text);
    if ((level < 0 ? ET_LOG_INFO : level) < c->opt.level)
        return;
    if (!c->opt.json) {
        put_visible(stdout, line, n);
        putchar('\n');
        return;
    }
    FILE *to = open_memstream(&visible, &length);
    if (!to)
        return;
    put_visible(to, text, n - (size_t)(text - line));
    if (fclose(to) != 0)
        return;
    json_t *v = json_pack("{s:s%, s:s, s:s}", "t", line,
                          (size_t)(level < 0 ? 0 : strcspn(line, " ")), "level",
                          level < 0 ? "" : et_log_level_name((enum et_log_level)level),
                          "text", visible);
    if (level < 0)
        json_object_set_new(v, "t", json_null());
    cli_put_json_as(stdout, v, JSON_COMPACT);
    free(visible);
}

/* The whole lines that there are; at the END, also one that is not whole. */
static void
print_lines(const struct cli *c, FILE *f, char **line, size_t *room, bool end)
{
    for (;;) {
        long at = ftell(f);
        ssize_t n = getline(line, room, f);
        if (n <= 0)
            break;
        bool whole = (*line)[n - 1] == '\n';
        if (!whole && !end) {
            fseek(f, at, SEEK_SET); /* the rest will come */
            break;
        }
        (*line)[n - whole] = '\0';
        print_line(c, *line, (size_t)n - whole);
    }
    clearerr(f);
    fflush(stdout);
}

static bool
goes_on(struct cli *c, const char *directory)
{
    json_t *facts;
    bool alive = false;
    if (eti_facts_read_state(c->cx, directory, &facts) == ET_OK) {
        alive = eti_facts_is_alive(facts);
        json_decref(facts);
    }
    et_error_clear(c->cx);
    return alive;
}

static int
print_log(struct cli *c, const char *directory)
{
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    bool again;
    snprintf(path, sizeof path, "%s/logs/rank%lld.txt", directory,
             (long long)(c->opt.rank < 0 ? 0 : c->opt.rank));
    FILE *f = eti_open_regular(path);
    if (!f)
        return cli_fail(c, CLI_E_NO_RUN, NULL, "cannot read %s: %s", path,
                        errno == EINVAL ? "not a regular file" : strerror(errno));
    do {
        const struct timespec pause = {0, LOOK_MS * 1000000L};
        again = c->opt.follow && goes_on(c, directory);
        print_lines(c, f, &line, &room, !again);
        if (again)
            nanosleep(&pause, NULL);
    } while (again && !ferror(stdout));
    free(line);
    fclose(f);
    return CLI_OK;
}

int
cli_logs(struct cli *c)
{
    int code;
    if (c->n_args != 1)
        return cli_fail(c, CLI_E_OPERAND, "etude runs lists them",
                        "logs takes one run");
    json_t *facts = cli_run_find(c, c->arg[0], &code);
    if (!facts)
        return code;
    if (c->opt.dump_screen)
        code = cli_workbench_run(c, TUI_IN_logs, facts);
    else
        code = print_log(c, json_string_value(json_object_get(facts, "directory")));
    json_decref(facts);
    return code;
}
