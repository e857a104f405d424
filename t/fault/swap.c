/* SPDX-License-Identifier: Apache-2.0 */
/* R33: a checkpoint whose files are exchanged while it is read, between any two calls:
 * what is loaded is what one writer wrote, or nothing. It follows from every byte being
 * read once, which is seen here too. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t/fault/fixture.h"
#include "t/tap.h"

enum { FILES = ETI_MANIFEST_FILES + 1, STEP = 3, MAX_READS = 256 };

static const char *const names[FILES] = {"MANIFEST", "model-00000.safetensors",
                                         "optim-00000.safetensors",
                                         "state-00000.safetensors"};
static char dir[512], step_name[ETI_STEP_NAME];

/* Two checkpoints of the same step, of runs that differ in their weights. */
static struct {
    struct {
        void *bytes;
        size_t n;
    } file[FILES];
    uint64_t digest; /* of what it holds */
} sound[2];

/* ---- two checkpoints ---- */

static const char *
place(int file)
{
    return path_to(path_to(dir, step_name), names[file]);
}

static void
put(int which, int file)
{
    write_whole(place(file), sound[which].file[file].bytes, sound[which].file[file].n);
}

static void
put_all(int which)
{
    for (int i = 0; i < FILES; i++)
        put(which, i);
}

/* What a run that begins from what lies in DIR holds; 0: it is refused. */
static uint64_t
load(struct et_ctx *cx)
{
    const struct et_load_config from = {.directory = dir, .name = step_name};
    const struct saving_setup setup = {.load = &from};
    struct saving_run s;
    et_status status;
    uint64_t digest = 0;
    if (saving_open(&s, cx, &setup, &status)) {
        digest = saving_digest(&s);
        saving_close(&s);
    } else if (status != ET_EFORMAT) {
        bail("%s", et_error_get(cx)->message);
    }
    et_error_clear(cx);
    return digest;
}

static void
change_weights(struct saving_run *s)
{
    struct et_tensor *values = s->r.state->params->values;
    size_t bytes = et_desc_bytes(&values->desc);
    float *v = malloc(bytes);
    if (!v)
        bail("no memory");
    need(s->cx, et_tensor_read(s->cx, values, v, bytes));
    for (size_t i = 0; i < bytes / sizeof *v; i++)
        v[i] *= 2;
    need(s->cx, et_tensor_write(s->cx, values, v, bytes));
    free(v);
}

/* The second begins from other weights. */
static void
make(struct et_ctx *cx, int which)
{
    const struct et_checkpoint_config to = saves_to(dir, -1);
    struct saving_run s;
    et_status status;
    if (!saving_open(&s, cx, &(struct saving_setup){.checkpoint = &to}, &status))
        bail("%s", et_error_get(cx)->message);
    if (which)
        change_weights(&s);
    saving_train(&s, STEP);
    saving_close(&s);
    for (int i = 0; i < FILES; i++)
        sound[which].file[i].bytes = read_whole(place(i), &sound[which].file[i].n);
    sound[which].digest = load(cx);
    remove_tree(dir);
}

/* ---- the reader's calls ---- */

static int calls;      /* of open, stat and read, so far */
static int swap_after; /* so many; 0: never */
static bool renamed;   /* exchanged by name; otherwise written over where they lie */

static void
count(void)
{
    if (++calls != swap_after)
        return;
    for (int i = 0; i < FILES; i++) {
        if (renamed)
            unlink(place(i));
        put(1, i);
    }
}

static struct {
    ino_t file;
    off_t at;
    ssize_t n;
} seen[MAX_READS];
static int n_seen;

static int
counted_open(int at, const char *path, int flags, mode_t mode)
{
    int fd = eti_system.file.open(at, path, flags, mode);
    count();
    return fd;
}

static int
counted_stat(int fd, struct stat *out)
{
    int failed = eti_system.file.stat(fd, out);
    count();
    return failed;
}

static ssize_t
counted_read(int fd, void *buf, size_t n, off_t at)
{
    struct stat st;
    ssize_t got = eti_system.file.read(fd, buf, n, at);
    if (fstat(fd, &st) == 0 && got > 0 && n_seen < MAX_READS) {
        seen[n_seen].file = st.st_ino;
        seen[n_seen].at = at;
        seen[n_seen++].n = got;
    }
    count();
    return got;
}

static int
count_overlaps(void)
{
    int overlaps = 0;
    for (int i = 0; i < n_seen; i++)
        for (int k = 0; k < i; k++)
            overlaps += seen[i].file == seen[k].file &&
                        seen[i].at < seen[k].at + seen[k].n &&
                        seen[k].at < seen[i].at + seen[i].n;
    return overlaps;
}

static void
read_once(struct et_ctx *cx)
{
    size_t bytes = 0, all = 0;
    put_all(0);
    n_seen = calls = 0;
    ok(load(cx) == sound[0].digest, "a checkpoint that nobody touches is loaded");
    is_int(count_overlaps(), 0, "and no byte of its files is read twice");
    for (int i = 0; i < n_seen; i++)
        bytes += (size_t)seen[i].n;
    for (int i = 0; i < FILES; i++)
        all += sound[0].file[i].n;
    is_int((int64_t)bytes, (int64_t)all, "but each once");
}

static void
swap(struct et_ctx *cx, const char *how)
{
    int outcomes[3] = {0}, mixed = 0, n = 0;
    swap_after = 0;
    put_all(0);
    calls = 0;
    (void)load(cx);
    n = calls;
    for (int k = 1; k <= n; k++) {
        put_all(0);
        calls = 0;
        swap_after = k;
        uint64_t got = load(cx);
        swap_after = 0;
        outcomes[got == 0 ? 2 : got == sound[0].digest ? 0 : 1]++;
        mixed += got != 0 && got != sound[0].digest && got != sound[1].digest;
    }
    is_int(mixed, 0,
           "files that are %s after any of %d calls: never some of one and some of the "
           "other",
           how, n);
    ok(outcomes[0] > 0 && outcomes[1] > 0 && outcomes[2] > 0,
       "but the old one (%d times), the new one (%d) or neither (%d)", outcomes[0],
       outcomes[1], outcomes[2]);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct eti_seams seams = eti_system;
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    eti_step_name(STEP, step_name);
    make(cx, 0);
    make(cx, 1);
    ok(sound[0].digest && sound[1].digest && sound[0].digest != sound[1].digest,
       "two checkpoints of one step, of different weights");
    make_folder(dir);
    make_folder(path_to(dir, step_name));
    seams.file.open = counted_open;
    seams.file.stat = counted_stat;
    seams.file.read = counted_read;
    eti_ctx_set_seams(cx, &seams);
    read_once(cx);
    renamed = true;
    swap(cx, "exchanged");
    renamed = false;
    swap(cx, "written over");
    eti_ctx_set_seams(cx, &eti_system);
    for (int i = 0; i < 2 * FILES; i++)
        free(sound[i / FILES].file[i % FILES].bytes);
    remove_tree(dir);
    et_ctx_free(&cx);
    return done();
}
