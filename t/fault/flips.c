/* SPDX-License-Identifier: Apache-2.0 */
/* R06: each bit of a checkpoint of 64 KiB turned over: never is it taken for whole. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/checkpoint/names.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

enum { FILES = ETI_MANIFEST_FILES + 1, STEP = 2 };

static struct {
    const char *name;
    uint8_t *bytes;
    size_t n;
} file[FILES] = {{.name = "MANIFEST"},
                 {.name = "model-00000.safetensors"},
                 {.name = "optim-00000.safetensors"},
                 {.name = "state-00000.safetensors"}};
static char dir[512], step_name[ETI_STEP_NAME];

static void
make_checkpoint(struct et_ctx *cx)
{
    const struct et_checkpoint_config to = saves_to(dir, 1);
    struct saving_run s;
    et_status status;
    if (!saving_open(&s, cx, &(struct saving_setup){.checkpoint = &to, .hidden = "57"},
                     &status))
        bail("%s", et_error_get(cx)->message);
    saving_train(&s, STEP);
    saving_close(&s);
    eti_step_name(STEP, step_name);
    size_t all = 0;
    for (int i = 0; i < FILES; i++) {
        file[i].bytes =
            read_whole(path_to(path_to(dir, step_name), file[i].name), &file[i].n);
        all += file[i].n;
    }
    ok(all >= (64 << 10) && all < (72 << 10),
       "a checkpoint of about 64 KiB (%zu bytes)", all);
}

/* ---- in memory: each bit ---- */

static bool
manifest_passes(struct et_ctx *cx)
{
    struct eti_manifest m;
    et_status status =
        eti_manifest_parse(cx, step_name, (char *)file[0].bytes, file[0].n, &m);
    eti_manifest_release(&m);
    et_error_clear(cx);
    return status == ET_OK;
}

static void
flip_all(struct et_ctx *cx)
{
    struct eti_checkpoint c = {.cx = cx};
    int64_t passed = 0, tried = 0;
    ok(manifest_passes(cx), "MANIFEST as it was written passes");
    for (size_t bit = 0; bit < 8 * file[0].n; bit++, tried++) {
        file[0].bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        passed += manifest_passes(cx);
        file[0].bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    is_int(passed, 0, "with any bit turned over it does not");
    need(cx, eti_manifest_parse(cx, step_name, (char *)file[0].bytes, file[0].n,
                                &c.manifest));
    for (int i = 0; i < c.manifest.n_files; i++) {
        const struct eti_manifest_file *f = &c.manifest.file[i];
        uint8_t *bytes = file[i + 1].bytes;
        int64_t n = (int64_t)file[i + 1].n;
        need(cx, eti_checkpoint_check_file(&c, f, bytes, n));
        passed = 0;
        for (int64_t bit = 0; bit < 8 * n; bit++, tried++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            passed += eti_checkpoint_check_file(&c, f, bytes, n) == ET_OK;
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            et_error_clear(cx);
        }
        is_int(passed, 0, "nor does %s", f->name);
    }
    diag("%lld bits", (long long)tried);
    eti_manifest_release(&c.manifest);
}

/* ---- from the disk: some, or each ---- */

static struct {
    int file; /* whose bit is turned over in what is read; -1: of none */
    size_t bit;
    int fd_file[64];
} turn = {.file = -1};

static int
turn_open(int at, const char *path, int flags, mode_t mode)
{
    int fd = eti_system.file.open(at, path, flags, mode);
    for (int i = 0; fd >= 0 && fd < 64 && i < FILES; i++)
        if (strcmp(path, file[i].name) == 0)
            turn.fd_file[fd] = i;
    return fd;
}

static ssize_t
turn_read(int fd, void *buf, size_t n, off_t at)
{
    ssize_t got = eti_system.file.read(fd, buf, n, at);
    int64_t place = (int64_t)(turn.bit / 8) - at;
    if (fd < 64 && turn.fd_file[fd] == turn.file && place >= 0 && place < got)
        ((uint8_t *)buf)[place] ^= (uint8_t)(1 << turn.bit % 8);
    return got;
}

static bool
reads(struct et_ctx *cx)
{
    struct eti_checkpoint c;
    et_status status = eti_store_read(cx, dir, step_name, &c);
    eti_checkpoint_release(&c);
    et_error_clear(cx);
    return status == ET_OK;
}

static void
flip_read(struct et_ctx *cx)
{
    struct eti_seams seams = eti_system;
    size_t every = is_long() ? 1 : 499;
    int passed = 0, tried = 0;
    seams.file.open = turn_open;
    seams.file.read = turn_read;
    eti_ctx_set_seams(cx, &seams);
    ok(reads(cx), "from the disk the checkpoint is read");
    for (turn.file = 0; turn.file < FILES; turn.file++)
        for (turn.bit = 0; turn.bit < 8 * file[turn.file].n; turn.bit += every, tried++)
            passed += reads(cx);
    is_int(passed, 0, "with a bit turned over on the way it is not (%d tried)", tried);
    turn.file = -1;
    ok(reads(cx), "and then it is again");
    eti_ctx_set_seams(cx, &eti_system);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    make_checkpoint(cx);
    flip_all(cx);
    flip_read(cx);
    for (int i = 0; i < FILES; i++)
        free(file[i].bytes);
    remove_tree(dir);
    et_ctx_free(&cx);
    return done();
}
