/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that are longer than what a checkpoint writes at once, 8 MiB: they come back,
 * each number to its place. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/checkpoint/archive.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

enum { PART = 8 << 20, FLOAT = (int)sizeof(float) };
static const int64_t lengths[] = {PART / FLOAT - 1, PART / FLOAT, PART / FLOAT + 1,
                                  2 * PART / FLOAT, 2 * PART / FLOAT + 3};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* A number that says where it is: no two of a tensor are the same. */
static float
number_at(int64_t i)
{
    return (float)i;
}

static et_status
archive_all(struct et_archive *a, struct et_tensor *const *t)
{
    char name[32];
    ET_TRY(et_archive_enter(a, "model"));
    for (int i = 0; i < LENGTHS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        ET_TRY(et_archive_tensor(a, name, t[i]));
    }
    et_archive_leave(a);
    return ET_OK;
}

static void
save(struct et_ctx *cx, const char *dir, struct et_tensor *const *t)
{
    struct et_archive a = {0};
    struct eti_manifest m = {
        .format = ETI_MANIFEST_FORMAT, .step = 1, .world_size = 1, .saved = 1e9};
    int64_t bytes;
    snprintf(m.label, sizeof m.label, "ep0-ba1");
    snprintf(m.run_id, sizeof m.run_id, "0123456789abcdef");
    snprintf(m.run_name, sizeof m.run_name, "brisk-otter");
    snprintf(m.recipe, sizeof m.recipe, "%064d", 7);
    m.algorithms = json_array();
    eti_archive_begin(&a, cx);
    need(cx, archive_all(&a, t));
    need(cx, eti_archive_end(&a));
    need(cx, eti_store_write(cx, dir, &a, &m, 1, &bytes));
    eti_archive_release(&a);
    json_decref(m.algorithms);
}

/* How many of the numbers of T are at their places. */
static int64_t
count_right(const struct et_tensor *t)
{
    const float *v = et_tensor_data(t);
    int64_t n = et_desc_count(&t->desc), right = 0;
    for (int64_t i = 0; i < n; i++)
        right += v[i] == number_at(i);
    return right;
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_device *dev;
    struct et_tensor *saved[LENGTHS], *loaded[LENGTHS];
    struct eti_checkpoint c;
    char dir[512], name[ETI_STEP_NAME];
    need(cx, et_device_open(cx, "ref", 0, 1, &dev));
    for (int i = 0; i < LENGTHS; i++) {
        need(cx, et_tensor_new(cx, dev, ET_F32, 1, &lengths[i], ET_ROW_MAJOR, NULL,
                               &saved[i]));
        need(cx, et_tensor_new(cx, dev, ET_F32, 1, &lengths[i], ET_ROW_MAJOR, NULL,
                               &loaded[i]));
        float *v = et_tensor_data(saved[i]);
        for (int64_t k = 0; k < lengths[i]; k++)
            v[k] = number_at(k);
    }
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    save(cx, dir, saved);
    need(cx, eti_store_read(cx, dir, eti_step_name(1, name), &c));
    c.archive.mode = ET_ARCHIVE_LOAD;
    need(cx, archive_all(&c.archive, loaded));
    for (int i = 0; i < LENGTHS; i++)
        is_int(count_right(loaded[i]), lengths[i],
               "%lld numbers are saved and come back, each to its place",
               (long long)lengths[i]);
    eti_checkpoint_release(&c);
    for (int i = 0; i < LENGTHS; i++) {
        et_tensor_free(&saved[i]);
        et_tensor_free(&loaded[i]);
    }
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
