/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c: all that the short runs of t/train/told tell, number by number
 * (told_file.h). ETUDE_UPDATE=1 writes the numbers anew, as the device "ref" has them;
 * they are compared with those of "cpu", or the device that ETUDE_DEVICE names. Where
 * the simulated GPU was built, whose host is two batches ahead of it, files that take
 * little of its time are run there, too. Each run is stopped and resumed as well, and
 * must tell the same. */
#include "config.h"

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

static char *
tell_in_two(const struct told_file *file, const char *recipe, int64_t stop)
{
    /* And by two threads that load, which must make no difference either. */
    return told_in_two(
        cx, recipe, &(struct recipe_choice){.device = file->where, .workers = 2}, stop);
}

static const char *const on_simulator[] = {"optim.txt", "sched.txt", "trainer.txt",
                                           "transforms.txt"};

/* Files of t/train/told by name, or one of them and the title of its case. */
int
main(int argc, char **argv)
{
    struct told_file file = {
        .folder = "t/train/told",
        .where = test_device("cpu"),
        .tell = tell,
        .write = tell_of_ref,
        .tell_in_two = tell_in_two,
    };
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    bool has_cpu = have_device(cx, "cpu");
    if (has_cpu)
        told_files_run(&file, argc, argv);
    file.where = "gpusim";
    file.write = NULL;
    for (size_t i = 0; argc < 2 && i < sizeof on_simulator / sizeof *on_simulator; i++)
        if (has_cpu && have_device(cx, "gpusim")) {
            file.name = on_simulator[i];
            file.tell_in_two =
                strcmp(file.name, "trainer.txt") == 0 ? tell_in_two : NULL;
            told_file_run(&file);
        }
    et_ctx_free(&cx);
    return done();
}
