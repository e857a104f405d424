/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c: all that the short runs of t/dist/told tell where two ranks train
 * together (t/train/told_file.h): what the first rank tells, and behind "rank1." the
 * lines of the second that differ. The runs of trainer.txt are stopped and resumed as
 * well, and must tell the same. ETUDE_UPDATE=1 writes the numbers anew, as the device
 * "ref" has them. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "etude/comm.h"
#include "t/data/fixture.h"
#include "t/dist/group.h"
#include "t/tap.h"
#include "t/train/told.h"
#include "t/train/told_file.h"

enum { RANKS = 2, TEXT = 1 << 16, MOST_S = 20 };

/* In memory that the test shares with its ranks. */
struct job {
    const char *recipe, *device;
    char folder[300]; /* of the run, for both */
    int64_t stop;     /* it is resumed after so many batches; 0: it is not */
    char says[RANKS][TEXT];
};

static struct job *job;

static int
be_rank(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct recipe_choice choice = {
        .device = job->device, .workers = -1, .comm = c, .folder = job->folder};
    (void)data;
    char *text = job->stop ? told_in_two(cx, job->recipe, &choice, job->stop)
                           : told(cx, job->recipe, &choice);
    int rank = et_comm_rank(c);
    if (snprintf(job->says[rank], TEXT, "%s", text) >= TEXT)
        bail("rank %d tells more than %d bytes", rank, TEXT);
    free(text);
    return 0;
}

/* Where the line at TEXT ends: behind its newline. */
static const char *
line_end(const char *text)
{
    return text + strcspn(text, "\n") + 1;
}

static bool
has_line(const char *text, const char *line)
{
    size_t n = (size_t)(line_end(line) - line);
    for (; *text; text = line_end(text))
        if (strncmp(text, line, n) == 0)
            return true;
    return false;
}

/* What both ranks of RECIPE tell on DEVICE, for free(). */
static char *
tell_of_ranks(const char *device, const char *recipe, int64_t stop)
{
    static int nth;
    struct group g;
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    memset(job, 0, sizeof *job);
    job->recipe = recipe;
    job->device = device;
    job->stop = stop;
    snprintf(job->folder, sizeof job->folder, "%s/%d", scratch_folder(), nth++);
    if (!out || mkdir(job->folder, 0700) != 0)
        bail("cannot make %s", job->folder);
    group_start(&g, RANKS, MOST_S, be_rank, NULL);
    group_wait(&g, 2 * MOST_S, -1);
    if (g.exit[0] != 0 || g.exit[1] != 0)
        bail("ranks ended with %d and %d: %s%sthe recipe:\n%s", g.exit[0], g.exit[1],
             g.text[0], g.text[1], recipe);
    fputs(job->says[0], out);
    for (const char *line = job->says[1]; *line; line = line_end(line))
        if (!has_line(job->says[0], line))
            fprintf(out, "rank1.%.*s", (int)(line_end(line) - line), line);
    fclose(out);
    return text;
}

static char *
tell(const struct told_file *file, const char *recipe)
{
    (void)file;
    return tell_of_ranks("cpu", recipe, 0);
}

static char *
tell_of_ref(const struct told_file *file, const char *recipe)
{
    (void)file;
    return tell_of_ranks("ref", recipe, 0);
}

static char *
tell_in_two(const struct told_file *file, const char *recipe, int64_t stop)
{
    if (strcmp(file->name, "trainer.txt") != 0)
        return NULL; /* what one rank does to resume is seen by t/train/streams */
    return tell_of_ranks("cpu", recipe, stop > 1 ? stop - 1 : 1); /* agreed on later */
}

/* Files of t/dist/told by name, or one of them and the title of its case. */
int
main(int argc, char **argv)
{
    struct told_file file = {
        .folder = "t/dist/told",
        .where = "two ranks",
        .tell = tell,
        .write = tell_of_ref,
        .tell_in_two = tell_in_two,
    };
    if (!group_possible()) {
        skip(1, "no library that ranks could talk through");
        return done();
    }
    job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
               -1, 0);
    if (job == MAP_FAILED)
        bail("no memory");
    told_files_run(&file, argc, argv);
    munmap(job, sizeof *job);
    return done();
}
