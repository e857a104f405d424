/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c: all that the short runs of t/train/told tell, number by number
 * (told_file.h). ETUDE_UPDATE=1 writes the numbers anew, as the device "ref" has them;
 * they are compared with those of "cpu", or the device that ETUDE_DEVICE names. Where
 * the simulated GPU was built, whose host is two batches ahead of it, files that take
 * little of its time are run there, too. Each run is stopped and resumed as well, and
 * must tell the same. */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/device.h"
#include "t/tap.h"
#include "t/train/told.h"
#include "t/train/told_file.h"

static struct et_ctx *cx;

static char *
tell_on(const char *device, const char *recipe)
{
    return told(cx, recipe, &(struct recipe_choice){.device = device, .workers = -1});
}

static char *
tell(const struct told_file *file, const char *recipe)
{
    return tell_on(file->where, recipe);
}

static char *
tell_of_ref(const struct told_file *file, const char *recipe)
{
    (void)file;
    return tell_on("ref", recipe);
}

/* How many batches TEXT, which a run told, is about. */
static int
n_batches(const char *text)
{
    int n = 0, first, last;
    for (const char *at = text; (at = strstr(at, " batch@")) && at < strchr(text, '\n');
         at++) {
        int found = sscanf(at, " batch@%d-%d", &first, &last);
        n += found == 2 ? last - first + 1 : found == 1;
    }
    return n;
}

/* The first line at TEXT or behind it that has nothing to do with a clock. */
static const char *
fixed_line(const char *text)
{
    while (*text && told_varies(text))
        text += strcspn(text, "\n") + 1;
    return text;
}

/* The run is told as WHOLE by one that is stopped and resumed, too: each case after
 * another of its batches. */
static void
resume(const struct told_file *file, const char *name, const char *recipe,
       const char *whole)
{
    static int nth;
    int most = n_batches(whole) - 1, stop;
    if (most < 1)
        return;
    stop = 1 + nth++ % most;
    char *got = told_in_two(
        cx, recipe, &(struct recipe_choice){.device = file->where, .workers = -1},
        stop);
    const char *a = fixed_line(got), *b = fixed_line(whole);
    for (size_t n; *a && *b; a = fixed_line(a + n), b = fixed_line(b + n)) {
        n = strcspn(a, "\n") + 1;
        if (strncmp(a, b, n) != 0)
            break;
    }
    ok(!*a && !*b, "%s, resumed after batch %d", name, stop);
    if (*a || *b)
        diag("%.*s\n  instead of\n%.*s", (int)strcspn(a, "\n"), a,
             (int)strcspn(b, "\n"), b);
    free(got);
}

static const char *const on_simulator[] = {"optim.txt", "sched.txt", "trainer.txt",
                                           "transforms.txt"};

static int
is_text(const struct dirent *d)
{
    const char *dot = strrchr(d->d_name, '.');
    return dot && strcmp(dot, ".txt") == 0;
}

/* Files of t/train/told by name, or one of them and the title of its case. */
int
main(int argc, char **argv)
{
    const char *root = getenv("ET_SRCDIR");
    char folder[4096];
    struct dirent **entry;
    struct told_file file = {
        .root = root ? root : ".",
        .folder = "t/train/told",
        .where = test_device("cpu"),
        .only = argc > 2 ? argv[2] : NULL,
        .tell = tell,
        .write = tell_of_ref,
        .also = resume,
    };
    snprintf(folder, sizeof folder, "%s/%s", file.root, file.folder);
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    int n = scandir(folder, &entry, is_text, alphasort);
    if (n < 1)
        bail("no files in %s", folder);
    bool has_cpu = have_device(cx, "cpu");
    for (int i = 0; i < n; i++) {
        file.name = entry[i]->d_name;
        if (has_cpu && (argc < 2 || strcmp(argv[1], file.name) == 0))
            told_file_run(&file);
        free(entry[i]);
    }
    free(entry);
    file.where = "gpusim";
    file.write = NULL;
    for (size_t i = 0; argc < 2 && i < sizeof on_simulator / sizeof *on_simulator; i++)
        if (has_cpu && have_device(cx, "gpusim")) {
            file.name = on_simulator[i];
            file.also = strcmp(file.name, "trainer.txt") == 0 ? resume : NULL;
            told_file_run(&file);
        }
    et_ctx_free(&cx);
    return done();
}
