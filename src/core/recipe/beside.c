/* SPDX-License-Identifier: Apache-2.0 */
/* beside.c: see beside.h.
 *
 * What a recipe needs is each word of its text that is the name of a file in its
 * folder; in comments those of scripts alone: they speak of other recipes, too. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/recipe/beside.h"

static bool
ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static FILE *
open_one(const struct eti_beside *k, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", k->folder, name);
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
}

/* Adds the file NAME if it exists and is not in the list. */
static void
add(struct eti_beside *k, const char *name)
{
    for (int i = 0; i < k->n; i++)
        if (strcmp(k->name[i], name) == 0)
            return;
    FILE *f = k->n < ETI_BESIDE ? open_one(k, name) : NULL;
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
read_line(struct eti_beside *k, const char *line)
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
read_recipe(struct eti_beside *k, int i)
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
is_same(const struct eti_beside *k, int i, const char *target)
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
target_of(const struct eti_beside *k, int i, const char *folder, char buf[PATH_MAX])
{
    snprintf(buf, PATH_MAX, "%s/%s", folder, k->name[i]);
    return buf;
}

static et_status
copy_one(struct et_ctx *cx, const struct eti_beside *k, int i, const char *target)
{
    char block[4096];
    size_t n;
    FILE *in = open_one(k, k->name[i]);
    if (!in)
        return ET_FAIL(cx, ET_ENOENT, "cannot read %s/%s: %s", k->folder, k->name[i],
                       strerror(errno));
    FILE *out = fopen(target, "wxe");
    while (out && (n = fread(block, 1, sizeof block, in)) > 0)
        fwrite(block, 1, n, out); /* raw: to a file */
    bool is_whole = out && !ferror(in) && !ferror(out);
    fclose(in);
    if (out && fclose(out) != 0)
        is_whole = false;
    return is_whole
               ? ET_OK
               : ET_FAIL(cx, ET_EIO, "cannot write %s: %s", target, strerror(errno));
}

void
eti_beside_find(const char *path, struct eti_beside *out)
{
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? path : ".";
    out->n = 0;
    snprintf(out->folder, sizeof out->folder, "%.*s", slash ? (int)(slash - path) : 1,
             folder);
    add(out, slash ? slash + 1 : path);
    for (int i = 0; i < out->n; i++) /* and of those that it adds */
        read_recipe(out, i);
}

et_status
eti_beside_check(struct et_ctx *cx, const struct eti_beside *k, int from,
                 const char *folder)
{
    char target[PATH_MAX];
    for (int i = from; i < k->n; i++)
        if (access(target_of(k, i, folder, target), F_OK) == 0 &&
            (i == 0 || !is_same(k, i, target)))
            return ET_FAIL(cx, ET_EIO, "cannot write %s: %s", target, strerror(EEXIST));
    return ET_OK;
}

et_status
eti_beside_copy(struct et_ctx *cx, const struct eti_beside *k, int i,
                const char *folder, char target[PATH_MAX])
{
    if (access(target_of(k, i, folder, target), F_OK) == 0) {
        target[0] = '\0';
        return ET_OK;
    }
    return copy_one(cx, k, i, target);
}
