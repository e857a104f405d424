/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a recipe needs of those that lie beside it, and what copying them does
 * where some are there already. */
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

/* The files beside a recipe with TEXT, blanks between. */
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
        {"a recipe that names none", "seed: 1\n", "r.yaml"},
        {"what it includes, and what that does", "include: a.yaml\n",
         "r.yaml a.yaml b.yaml data.csv"},
        {"several of a line, each once", "x: [data.csv, b.yaml, data.csv]\n",
         "r.yaml data.csv b.yaml"},
        {"not what is not there", "x: none.csv\n", "r.yaml"},
        {"nor what lies elsewhere", "x: other/data.csv\n", "r.yaml"},
        {"nor what has the name of a folder there", "x: data.csv/part\n", "r.yaml"},
        {"nor a folder", "x: dir.d/y\nz: dir.d\n", "r.yaml"},
        {"nor what is hidden", "x: .hidden.csv\n", "r.yaml"},
        {"of a comment scripts alone", "# see a.yaml, make.py\nseed: 1 # data.csv\n",
         "r.yaml make.py"},
        {"what stands behind a # within a word", "x: q#data.csv\n", "r.yaml data.csv"},
        {"what other files name is not read", "x: make.py\n", "r.yaml make.py"},
    };
    static struct eti_beside k;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        is_str(beside(&k, row[i].text), row[i].names, "beside is %s", row[i].what);
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
        is_str(target, want, "a file that is copied is told");
        char text[256];
        snprintf(text, sizeof text, "%s", text_of(from, k.name[i]));
        is_str(text_of(to, k.name[i]), text, "and is as it was");
    }
    is_int(eti_beside_check(cx, &k, 0, to), ET_EIO,
           "a recipe that is there is not written over, were it the same");
    et_error_clear(cx);
    is_int(eti_beside_check(cx, &k, 1, to), ET_OK, "other files may be there");
    need(cx, eti_beside_copy(cx, &k, 1, to, target));
    is_str(target, "", "and are not copied again");
    static const char *const others[] = {"1,2\n", "1,2\n3,4\n5,6\n", "1,2\n3,5\n", ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        put(to, "data.csv", others[i]);
        is_int(eti_beside_check(cx, &k, 1, to), ET_EIO,
               "but not where they differ: one is shorter, longer, other or empty");
        et_error_clear(cx);
        is_str(text_of(to, "data.csv"), others[i], "and they stay what they are");
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
