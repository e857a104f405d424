/* SPDX-License-Identifier: Apache-2.0 */
/* Which files beside a recipe it needs, and how copying them treats files that are
 * already there. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/recipe/beside.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static char from[512], to[512];

static void
put(const char *folder, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

static const char *
text_of(const char *folder, const char *name)
{
    static char text[256];
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    return f ? text : "none";
}

/* The files that belong to a recipe with TEXT, separated by blanks. */
static const char *
beside(struct eti_beside *k, const char *text)
{
    static char names[1024];
    char path[1024];
    size_t used = 0;
    put(from, "r.yaml", text);
    snprintf(path, sizeof path, "%s/r.yaml", from);
    eti_beside_find(path, k);
    names[0] = '\0';
    for (int i = 0; i < k->n; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                 i ? " " : "", k->name[i]);
    return names;
}

static void
test_find(void)
{
    static const struct {
        const char *what, *text, *names;
    } row[] = {
        {"the recipe alone, where it names no file", "seed: 1\n", "r.yaml"},
        {"an included file, and the files that it includes or names",
         "include: a.yaml\n", "r.yaml a.yaml b.yaml data.csv"},
        {"each file of a line once", "x: [data.csv, b.yaml, data.csv]\n",
         "r.yaml data.csv b.yaml"},
        {"no file that does not exist", "x: none.csv\n", "r.yaml"},
        {"no file of another folder", "x: other/data.csv\n", "r.yaml"},
        {"no file whose name is only a path's first part", "x: data.csv/part\n",
         "r.yaml"},
        {"no folder", "x: dir.d/y\nz: dir.d\n", "r.yaml"},
        {"no hidden file", "x: .hidden.csv\n", "r.yaml"},
        {"a script that a comment names, but no other file of a comment",
         "# see a.yaml, make.py\nseed: 1 # data.csv\n", "r.yaml make.py"},
        {"a file named behind a # within a word", "x: q#data.csv\n", "r.yaml data.csv"},
        {"no file that another file than a recipe names", "x: make.py\n",
         "r.yaml make.py"},
    };
    static struct eti_beside k;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        is_str(beside(&k, row[i].text), row[i].names, "the files of a recipe are %s",
               row[i].what);
}

static void
test_copy(struct et_ctx *cx)
{
    static struct eti_beside k;
    char target[PATH_MAX], want[1024];
    beside(&k, "x: [data.csv, make.py]\n");
    need(cx, eti_beside_check(cx, &k, 0, to));
    for (int i = 0; i < k.n; i++) {
        need(cx, eti_beside_copy(cx, &k, i, to, target));
        snprintf(want, sizeof want, "%s/%s", to, k.name[i]);
        is_str(target, want, "copying tells the path of the copy");
        char text[256];
        snprintf(text, sizeof text, "%s", text_of(from, k.name[i]));
        is_str(text_of(to, k.name[i]), text, "a copy has the contents of the file");
    }
    is_int(eti_beside_check(cx, &k, 0, to), ET_EIO,
           "a recipe that is already there is not overwritten, even by an equal one");
    et_error_clear(cx);
    is_int(eti_beside_check(cx, &k, 1, to), ET_OK,
           "an equal file other than the recipe may already be there");
    need(cx, eti_beside_copy(cx, &k, 1, to, target));
    is_str(target, "", "a file that is already there is not copied again");
    static const char *const others[] = {"1,2\n", "1,2\n3,4\n5,6\n", "1,2\n3,5\n", ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        put(to, "data.csv", others[i]);
        is_int(eti_beside_check(cx, &k, 1, to), ET_EIO,
               "a file that is already there and differs (shorter, longer, other or "
               "empty) is refused");
        et_error_clear(cx);
        is_str(text_of(to, "data.csv"), others[i],
               "a file that differs stays as it is");
    }
}

int
main(void)
{
    static const char *const made[] = {"r.yaml",  "a.yaml",      "b.yaml", "data.csv",
                                       "make.py", ".hidden.csv", "dir.d"};
    struct et_ctx *cx = need_ctx();
    char path[1024];
    snprintf(from, sizeof from, "%s/from", scratch_folder());
    snprintf(to, sizeof to, "%s/to", scratch_folder());
    snprintf(path, sizeof path, "%s/dir.d", from);
    if (mkdir(from, 0777) != 0 || mkdir(to, 0777) != 0 || mkdir(path, 0777) != 0)
        bail("no folders");
    put(from, "a.yaml", "include: [b.yaml]\n");
    put(from, "b.yaml", "train_data: {path: data.csv}\n");
    put(from, "data.csv", "1,2\n3,4\n");
    put(from, "make.py", "# reads b.yaml\nopen('data.csv')\n");
    put(from, ".hidden.csv", "");
    test_find();
    test_copy(cx);
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
            snprintf(path, sizeof path, "%s/%s", k ? to : from, made[i]);
            remove(path);
        }
        rmdir(k ? to : from);
    }
    et_ctx_free(&cx);
    return done();
}
