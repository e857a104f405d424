/* SPDX-License-Identifier: Apache-2.0 */
/* recipes_copy.c: `etude recipes NAME --copy DIR`: the recipe, and what stands beside
 * it that it does not run without: recipes that it includes, tokenizers, and the
 * scripts that its comments tell to run.
 *
 * That is each word of its text that is the name of a file in its folder; in comments
 * those of scripts alone, since they speak of other recipes, too. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

enum { FILES = 32 };

struct copying {
    struct cli *c;
    char folder[PATH_MAX];          /* of the recipe */
    char name[FILES][NAME_MAX + 1]; /* the recipe's own first */
    int n;
};

static bool
ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static FILE *
open_one(const struct copying *k, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", k->folder, name);
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
}

/* Adds the file NAME if it exists and is not in the list. */
static void
add(struct copying *k, const char *name)
{
    for (int i = 0; i < k->n; i++)
        if (strcmp(k->name[i], name) == 0)
            return;
    FILE *f = k->n < FILES ? open_one(k, name) : NULL;
    if (!f)
        return;
    fclose(f);
    snprintf(k->name[k->n++], sizeof k->name[0], "%s", name);
}

static bool
is_of_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '-' || ch == '.';
}

/* Adds the files that LINE names. */
static void
read_line(struct copying *k, const char *line)
{
    char word[NAME_MAX + 1];
    bool is_comment = false;
    for (const char *at = line; *at;) {
        size_t n = 0;
        is_comment = is_comment ||
                     (*at == '#' && (at == line || isspace((unsigned char)at[-1])));
        while (is_of_name(at[n]))
            n++;
        if (n == 0) {
            at++;
            continue;
        }
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        const bool is_path = at[n] == '/' || (at > line && at[-1] == '/');
        if (!is_path && strchr(word, '.') && word[0] != '.' &&
            (!is_comment || ends_with(word, ".py")))
            add(k, word);
        at += n;
    }
}

/* Finds all that recipe I names; recipes among them are read in turn. */
static void
read_recipe(struct copying *k, int i)
{
    char *line = NULL;
    size_t room = 0;
    FILE *f = ends_with(k->name[i], ".yaml") ? open_one(k, k->name[i]) : NULL;
    while (f && getline(&line, &room, f) > 0)
        read_line(k, line);
    free(line);
    if (f)
        fclose(f);
}

/* ---- files ---- */

/* Is what stands at TARGET the same as file I? */
static bool
is_same(const struct copying *k, int i, const char *target)
{
    FILE *a = open_one(k, k->name[i]), *b = fopen(target, "re");
    int x = 0, y = 0;
    while (a && b && x == y && x != EOF) {
        x = getc(a);
        y = getc(b);
    }
    const bool is_same = a && b && x == y;
    if (a)
        fclose(a);
    if (b)
        fclose(b);
    return is_same;
}

static char *
target_of(const struct copying *k, int i, char buf[PATH_MAX])
{
    snprintf(buf, PATH_MAX, "%s/%s", k->c->opt.copy, k->name[i]);
    return buf;
}

/* What is there stays: nothing is copied where one of the files is in the way. */
static int
look_ahead(const struct copying *k)
{
    char target[PATH_MAX];
    for (int i = 0; i < k->n; i++)
        if (access(target_of(k, i, target), F_OK) == 0 &&
            (i == 0 || !is_same(k, i, target)))
            return cli_fail(k->c, CLI_E_WRITE, NULL, "cannot write %s: %s", target,
                            strerror(EEXIST));
    return CLI_OK;
}

static int
copy_one(const struct copying *k, int i)
{
    char block[4096], target[PATH_MAX];
    size_t n;
    FILE *in = open_one(k, k->name[i]);
    if (!in)
        return cli_fail(k->c, CLI_E_NAME, NULL, "cannot read %s/%s: %s", k->folder,
                        k->name[i], strerror(errno));
    FILE *out = fopen(target_of(k, i, target), "wxe");
    while (out && (n = fread(block, 1, sizeof block, in)) > 0)
        fwrite(block, 1, n, out); /* raw: to a file */
    bool is_whole = out && !ferror(in) && !ferror(out);
    fclose(in);
    if (out && fclose(out) != 0)
        is_whole = false;
    if (!is_whole)
        return cli_fail(k->c, CLI_E_WRITE, NULL, "cannot write %s: %s", target,
                        strerror(errno));
    if (!k->c->opt.quiet)
        et_print(stdout, "%s\n", target);
    return CLI_OK;
}

int
cli_recipe_copy(struct cli *c, const char *path)
{
    char target[PATH_MAX];
    struct copying *k = calloc(1, sizeof *k);
    const char *slash = strrchr(path, '/');
    if (!k)
        return cli_fail(c, CLI_E_MEMORY, NULL, "out of memory: the recipe's files");
    k->c = c;
    snprintf(k->folder, sizeof k->folder, "%.*s", (int)(slash - path), path);
    add(k, slash + 1);
    for (int i = 0; i < k->n; i++) /* and of those that it adds */
        read_recipe(k, i);
    int code = look_ahead(k);
    for (int i = 0; i < k->n && code == CLI_OK; i++)
        if (access(target_of(k, i, target), F_OK) != 0)
            code = copy_one(k, i);
    free(k);
    return code;
}
