/* SPDX-License-Identifier: Apache-2.0 */
/* The store of checkpoints: what is saved comes back, whatever its dtype and layout;
 * listing, retention, labels; and what is refused, with which sentence. With "write
 * DIR" it saves into DIR what t/unit/checkpoint_files.t reads. */
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/checkpoint/archive.h"
#include "etude/rng.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

static char dir[512];

/* ---- values ---- */

static const struct {
    const char *name;
    int ndim;
    int64_t shape[ET_MAX_DIMS];
    enum et_format format;
} shapes[] = {
    {"scalar", 0, {0}, ET_ROW_MAJOR},
    {"none", 2, {3, 0}, ET_ROW_MAJOR},
    {"vector", 1, {7}, ET_ROW_MAJOR},
    {"filter", 4, {2, 3, 5, 4}, ET_CHANNELS_LAST},
    {"rows", 4, {2, 3, 5, 4}, ET_ROW_MAJOR},
    {"deep", 6, {2, 1, 2, 3, 1, 2}, ET_ROW_MAJOR},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, MOST = 120 * 8 };

/* Some bytes that are finite numbers in every dtype. */
static void
fill(uint8_t *bytes, size_t n, size_t width, uint64_t seed)
{
    struct et_rng r = et_rng_at((uint32_t)seed, ET_RNG_SELECT, 0);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)et_rng_below(&r, 256);
        if (i % width == width - 1)
            bytes[i] &= 0xbf; /* an exponent's highest bit */
    }
}

struct values {
    struct et_tensor *tensor[ET_DTYPE_COUNT][SHAPES];
    struct et_tensor *places; /* f32 filter: each element is its place, row-major */
    int64_t i64[3];
    double f64[2];
    bool flag, other_flag;
    struct et_time time;
    struct et_timestamp ts;
    char text[16];
    int32_t *list;
    int64_t n_list;
};

/* Tensors of every dtype and shape; TURNED: 4-d ones lie the other way. */
static void
values_open(struct values *v, struct et_ctx *cx, struct et_device *dev, bool turned)
{
    *v = (struct values){0};
    for (int d = 1; d < ET_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++) {
            enum et_format format = shapes[s].format;
            if (turned && shapes[s].ndim == 4)
                format = format == ET_ROW_MAJOR ? ET_CHANNELS_LAST : ET_ROW_MAJOR;
            need(cx, et_tensor_new(cx, dev, (enum et_dtype)d, shapes[s].ndim,
                                   shapes[s].shape, format, NULL, &v->tensor[d][s]));
        }
    need(cx, et_tensor_new(cx, dev, ET_F32, ET_SHAPE(2, 3, 5, 4), ET_CHANNELS_LAST,
                           NULL, &v->places));
}

static void
values_fill(struct values *v, struct et_ctx *cx)
{
    uint8_t rows[MOST];
    void *block;
    for (int d = 1; d < ET_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++) {
            size_t n = et_desc_bytes(&v->tensor[d][s]->desc);
            fill(rows, n, et_dtype_size((enum et_dtype)d), (uint64_t)(d * SHAPES + s));
            need(cx, et_tensor_write(cx, v->tensor[d][s], rows, n));
        }
    float place[120];
    for (int i = 0; i < 120; i++)
        place[i] = (float)i;
    need(cx, et_tensor_write(cx, v->places, place, sizeof place));
    memcpy(v->i64, (int64_t[]){INT64_MIN, -1, INT64_MAX}, sizeof v->i64);
    memcpy(v->f64, (double[]){-0.0, 1e-310}, sizeof v->f64);
    v->flag = true;
    v->time = (struct et_time){2.5, ET_TIME_EPOCH};
    v->ts = (struct et_timestamp){.epoch = 3, .batch = 14, .token_in_epoch = 9};
    v->ts.batch_wct = 1.0 / 3;
    snprintf(v->text, sizeof v->text, "%s", "fifteen letters");
    need(cx, et_alloc(cx, 5 * sizeof *v->list, &block));
    v->list = block;
    v->n_list = 5;
    for (int i = 0; i < 5; i++)
        v->list[i] = i * i;
}

static void
values_close(struct values *v, struct et_ctx *cx)
{
    for (int d = 1; d < ET_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++)
            et_tensor_free(&v->tensor[d][s]);
    et_tensor_free(&v->places);
    et_free(cx, v->list);
}

static et_status
archive_numbers(struct values *v, struct et_archive *a)
{
    void *list = v->list;
    ET_TRY(et_archive_enter(a, "hooks"));
    ET_TRY(et_archive_enter(a, "one"));
    ET_TRY(et_archive_i64(a, "i64", v->i64, 3));
    ET_TRY(et_archive_f64(a, "f64", v->f64, 2));
    ET_TRY(et_archive_flag(a, "flag", &v->flag));
    ET_TRY(et_archive_flag(a, "other_flag", &v->other_flag));
    et_archive_leave(a);
    ET_TRY(et_archive_time(a, "time", &v->time));
    ET_TRY(et_archive_timestamp(a, "ts", &v->ts));
    ET_TRY(et_archive_text(a, "text", v->text, sizeof v->text));
    ET_TRY(et_archive_list(a, "list", &list, &v->n_list, sizeof *v->list));
    v->list = list;
    et_archive_leave(a);
    return ET_OK;
}

/* Every dtype goes through each of the three places that decide on the file. */
static et_status
archive_values(struct values *v, struct et_archive *a)
{
    char name[64];
    for (int place = 0; place < 2; place++) {
        ET_TRY(et_archive_enter(a, place ? "model" : "optimizer"));
        for (int d = 1; d < ET_DTYPE_COUNT; d++)
            for (int s = 0; s < SHAPES; s++) {
                snprintf(name, sizeof name, "%s.%s", shapes[s].name,
                         et_dtype_name((enum et_dtype)d));
                ET_TRY(et_archive_tensor(a, name, v->tensor[d][s]));
            }
        et_archive_leave(a);
    }
    ET_TRY(et_archive_tensor(a, "model/places", v->places));
    return archive_numbers(v, a);
}

/* ---- saving and reading ---- */

static struct eti_manifest
facts(int64_t step, json_t *algorithms)
{
    struct eti_manifest m = {
        .format = ETI_MANIFEST_FORMAT,
        .incarnation = 2,
        .step = step,
        .epoch = step / 2,
        .sample = 8 * step,
        .world_size = 1,
        .revision = 5,
        .saved = 1e9 + 0.125,
        .algorithms = algorithms,
    };
    snprintf(m.label, sizeof m.label, "ep%d-ba%d", (int)(step / 2), (int)step);
    snprintf(m.run_id, sizeof m.run_id, "0123456789abcdef");
    snprintf(m.run_name, sizeof m.run_name, "brisk-otter");
    snprintf(m.recipe, sizeof m.recipe, "%064d", 7);
    snprintf(m.data, sizeof m.data, "\"60000\" samples");
    return m;
}

static et_status
save_archive(struct et_ctx *cx, const struct et_archive *a, int64_t step, int64_t keep)
{
    int64_t bytes;
    json_t *algorithms =
        json_pack("[{s:s, s:{s:s}}]", "name", "ema", "options", "half_life", "2ba");
    struct eti_manifest m = facts(step, algorithms);
    et_status status = eti_store_write(cx, dir, a, &m, keep, &bytes);
    json_decref(algorithms);
    return status;
}

static void
save_values(struct et_ctx *cx, struct values *v, int64_t step, int64_t keep)
{
    struct et_archive a = {0};
    eti_archive_begin(&a, cx);
    need(cx, archive_values(v, &a));
    need(cx, eti_archive_end(&a));
    need(cx, save_archive(cx, &a, step, keep));
    eti_archive_release(&a);
}

static const char *
step_path(int64_t step, const char *file)
{
    char name[ETI_STEP_NAME];
    return path_to(path_to(dir, eti_step_name(step, name)), file);
}

/* "" when it can be read, or why not; *STATUS likewise. */
static const char *
read_back(struct et_ctx *cx, int64_t step, et_status *status)
{
    static char text[1024];
    char name[ETI_STEP_NAME];
    struct eti_checkpoint c;
    *status = eti_store_read(cx, dir, eti_step_name(step, name), &c);
    snprintf(text, sizeof text, "%s", et_error_get(cx)->message);
    et_error_clear(cx);
    eti_checkpoint_release(&c);
    return text;
}

static bool
same_tensors(struct et_ctx *cx, const struct values *a, const struct values *b)
{
    uint8_t x[MOST], y[MOST];
    for (int d = 1; d < ET_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++) {
            size_t n = et_desc_bytes(&a->tensor[d][s]->desc);
            need(cx, et_tensor_read(cx, a->tensor[d][s], x, n));
            need(cx, et_tensor_read(cx, b->tensor[d][s], y, n));
            if (memcmp(x, y, n) != 0) {
                diag("%s of %s differs", shapes[s].name,
                     et_dtype_name((enum et_dtype)d));
                return false;
            }
        }
    return true;
}

static void
test_round_trip(struct et_ctx *cx, struct et_device *dev)
{
    struct values saved, loaded;
    struct eti_checkpoint c;
    char name[ETI_STEP_NAME];
    values_open(&saved, cx, dev, false);
    values_open(&loaded, cx, dev, true);
    values_fill(&saved, cx);
    save_values(cx, &saved, 4, -1);
    need(cx, eti_store_read(cx, dir, eti_step_name(4, name), &c));
    need(cx, archive_values(&loaded, &c.archive));
    ok(loaded.list == NULL && !loaded.flag && loaded.i64[0] == 0,
       "checking writes nothing");
    c.archive.mode = ET_ARCHIVE_LOAD;
    need(cx, archive_values(&loaded, &c.archive));
    ok(same_tensors(cx, &saved, &loaded),
       "tensors of every dtype come back, also to memory that lies another way");
    ok(memcmp(saved.i64, loaded.i64, sizeof saved.i64) == 0 &&
           memcmp(saved.f64, loaded.f64, sizeof saved.f64) == 0 &&
           saved.flag == loaded.flag && saved.other_flag == loaded.other_flag &&
           saved.time.value == loaded.time.value &&
           saved.time.unit == loaded.time.unit &&
           memcmp(&saved.ts, &loaded.ts, sizeof saved.ts) == 0 &&
           strcmp(saved.text, loaded.text) == 0,
       "so do numbers, flags, times and text, bit for bit");
    ok(loaded.n_list == 5 && memcmp(saved.list, loaded.list, 5 * sizeof(int32_t)) == 0,
       "and lists");
    const struct eti_manifest *m = &c.manifest, want = facts(4, NULL);
    ok(m->step == 4 && m->epoch == want.epoch && m->sample == want.sample &&
           m->incarnation == 2 && m->revision == 5 && m->saved == want.saved &&
           strcmp(m->label, "ep2-ba4") == 0 && strcmp(m->run_id, want.run_id) == 0 &&
           strcmp(m->run_name, want.run_name) == 0 &&
           strcmp(m->recipe, want.recipe) == 0 && strcmp(m->data, want.data) == 0 &&
           json_array_size(m->algorithms) == 1 && m->n_files == 3,
       "MANIFEST says again what was put into it");
    eti_checkpoint_release(&c);
    values_close(&saved, cx);
    values_close(&loaded, cx);
    remove_tree(dir);
}

/* ---- the archive itself ---- */

static void
test_archive(struct et_ctx *cx, struct et_device *dev)
{
    struct et_archive a = {0};
    int64_t one = 1;
    char text[8] = "seven..", name[ETI_ARCHIVE_PATH + 1], step[ETI_STEP_NAME];
    void *list = NULL;
    struct eti_checkpoint c;
    struct et_tensor *t;
    struct et_time time = {1, ET_TIME_BATCH};
    need(cx, et_tensor_new(cx, dev, ET_F32, ET_SHAPE(2), ET_ROW_MAJOR, NULL, &t));
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    eti_archive_begin(&a, cx);
    ok(et_archive_mode(&a) == ET_ARCHIVE_SAVE && et_archive_has(&a, "anything") &&
           eti_archive_has_place(&a),
       "whoever saves is asked for everything");
    ok(et_archive_enter(&a, name) == ET_EINTERNAL, "a place with too long a name");
    et_error_clear(cx);
    ok(et_archive_i64(&a, name, &one, 1) == ET_EINTERNAL, "likewise a value");
    et_error_clear(cx);
    ok(et_archive_tensor(&a, name, t) == ET_EINTERNAL, "and a tensor");
    et_error_clear(cx);
    need(cx, et_archive_i64(&a, "twice", &one, 1));
    need(cx, et_archive_i64(&a, "twice", &one, 1));
    is_int(eti_archive_end(&a), ET_EINTERNAL, "two values of one name are refused");
    is_str(take_error(cx), "two values are called 'twice'", "which is said");

    /* Again with fewer and other values: nothing of before is left. */
    eti_archive_begin(&a, cx);
    need(cx, et_archive_i64(&a, "number", &one, 1));
    need(cx, et_archive_text(&a, "text", text, sizeof text));
    need(cx, et_archive_f64(&a, "pair", (double[]){1, 99}, 2));
    need(cx, et_archive_tensor(&a, "tensor", t));
    need(cx, eti_archive_end(&a));
    need(cx, save_archive(cx, &a, 4, 1));
    need(cx, eti_store_read(cx, dir, eti_step_name(4, step), &c));
    struct et_archive *r = &c.archive;
    ok(!et_archive_has(r, "twice") && et_archive_has(r, "number"),
       "a value that did not come again is not saved again");
    int64_t three[3];
    ok(et_archive_i64(r, "twice", &one, 1) == ET_EFORMAT, "a missing value");
    is_str(take_error(cx),
           "step-000000000004: 'twice' is missing, the run wants i64[1]", "is named");
    ok(et_archive_i64(r, "number", three, 3) == ET_EFORMAT, "another shape");
    is_str(take_error(cx),
           "step-000000000004: 'number' is i64[1], the run wants i64[3]", "likewise");
    ok(et_archive_f64(r, "number", (double[]){0}, 1) == ET_EFORMAT, "another dtype");
    et_error_clear(cx);
    ok(et_archive_i64(r, name, &one, 1) == ET_EINTERNAL, "a name that cannot be");
    et_error_clear(cx);
    ok(et_archive_list(r, name, &list, &one, 1) == ET_EINTERNAL, "for lists too");
    et_error_clear(cx);
    ok(et_archive_list(r, "gone", &list, &one, 1) == ET_EFORMAT,
       "a list that is not there");
    is_str(take_error(cx), "step-000000000004: 'gone' is missing", "is missing");
    ok(et_archive_list(r, "number", &list, &one, 1) == ET_EFORMAT,
       "a number is no list");
    et_error_clear(cx);
    ok(et_archive_list(r, "tensor", &list, &one, 1) == ET_EFORMAT, "nor is a tensor");
    et_error_clear(cx);
    ok(et_archive_list(r, "text", &list, &one, 4) == ET_EFORMAT,
       "7 bytes are no list of items of 4");
    is_str(take_error(cx), "step-000000000004: 'text' is no list of items of 4 bytes",
           "which is said");
    char small[4] = "";
    ok(et_archive_text(r, "text", small, sizeof small) == ET_EFORMAT,
       "text that has no room is refused");
    is_str(take_error(cx), "step-000000000004: 'text' is 7 bytes, not below 4", "so");
    r->mode = ET_ARCHIVE_LOAD;
    ok(et_archive_time(r, "pair", &time) == ET_EFORMAT, "a unit that is none");
    is_str(take_error(cx), "step-000000000004: 'pair' is no time", "is refused");
    eti_archive_find(r, "number")->ignored = true;
    eti_archive_find(r, "text")->ignored = true;
    one = 5;
    need(cx, et_archive_i64(r, "number", &one, 1));
    need(cx, et_archive_list(r, "text", &list, &one, 1));
    ok(one == 5 && list == NULL, "what is left out stays as it is");
    ok(eti_archive_find(&(struct et_archive){0}, "x") == NULL, "nothing is in nothing");
    eti_checkpoint_release(&c);
    eti_archive_release(&a);
    et_tensor_free(&t);
    remove_tree(dir);
}

static void
test_not_finite(struct et_ctx *cx, struct et_device *dev)
{
    static const struct {
        enum et_dtype dtype;
        uint64_t bits[3]; /* infinite, not a number, the largest that is finite */
    } rows[] = {
        {ET_F32, {0x7f800000, 0xffc00000, 0x7f7fffff}},
        {ET_F64, {0xfff0000000000000, 0x7ff8000000000000, 0x7fefffffffffffff}},
        {ET_BF16, {0x7f80, 0x7fc0, 0xff7f}},
        {ET_F16, {0xfc00, 0x7e00, 0x7bff}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 3; k++) {
            struct et_tensor *t;
            struct et_archive a = {0};
            size_t width = et_dtype_size(rows[i].dtype);
            uint8_t bytes[3 * 8] = {0};
            memcpy(bytes + 2 * width, &rows[i].bits[k], width);
            need(cx, et_tensor_new(cx, dev, rows[i].dtype, ET_SHAPE(3), ET_ROW_MAJOR,
                                   NULL, &t));
            need(cx, et_tensor_write(cx, t, bytes, 3 * width));
            eti_archive_begin(&a, cx);
            need(cx, et_archive_enter(&a, "model"));
            need(cx, et_archive_tensor(&a, "w", t));
            et_archive_leave(&a);
            need(cx, eti_archive_end(&a));
            et_status status = save_archive(cx, &a, 4, 1);
            ok(status == (k == 2 ? ET_OK : ET_EINVAL) &&
                   count_names(dir, "step-") == (k == 2) &&
                   count_names(dir, ".tmp") == 0,
               "%s: %s", et_dtype_name(rows[i].dtype),
               k == 2   ? "the largest number is saved"
               : k == 1 ? "what is not a number is never committed"
                        : "neither is infinity");
            et_error_clear(cx);
            eti_archive_release(&a);
            et_tensor_free(&t);
            remove_tree(dir);
        }
}

/* ---- names, listing, retention ---- */

/* A small archive: one weight. */
static void
save_small(struct et_ctx *cx, int64_t step, int64_t keep)
{
    struct et_archive a = {0};
    int64_t number = step;
    eti_archive_begin(&a, cx);
    need(cx, et_archive_i64(&a, "number", &number, 1));
    need(cx, eti_archive_end(&a));
    need(cx, save_archive(cx, &a, step, keep));
    eti_archive_release(&a);
}

static const char *
steps_text(struct et_ctx *cx)
{
    static char text[256];
    int64_t *steps, n;
    size_t used = 0;
    need(cx, eti_store_list(cx, dir, &steps, &n));
    text[0] = '\0';
    for (int64_t i = 0; i < n; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, " %" PRId64, steps[i]);
    et_free(cx, steps);
    return text;
}

static void
test_names(void)
{
    char name[ETI_STEP_NAME];
    is_str(eti_step_name(3750, name), "step-000000003750", "a folder's name");
    is_int(eti_step_parse(name), 3750, "and back");
    static const char *const others[] = {"step-00000000375",   "step-0000000037500",
                                         "step-00000000375x",  "stop-000000003750",
                                         "step-000000003750.", ".tmp-000000003750-00"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        is_int(eti_step_parse(others[i]), -1, "%s is no checkpoint", others[i]);
}

static void
test_retention(struct et_ctx *cx)
{
    is_str(steps_text(cx), "", "where there is no folder there is no checkpoint");
    for (int64_t step = 1; step <= 20; step++)
        save_small(cx, step, -1);
    is_str(steps_text(cx), " 20 19 18 17 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1",
           "keep -1: all stay");
    save_small(cx, 21, 3);
    is_str(steps_text(cx), " 21 20 19", "keep 3: the newest three");
    save_small(cx, 22, 1);
    is_str(steps_text(cx), " 22", "keep 1: the newest");
    save_small(cx, 23, 0);
    is_str(steps_text(cx), " 23", "the newest is never removed");
    is_int(count_names(dir, "."), 0, "nothing else is left");

    /* A run that was taken back to 23 finds later ones that nobody set aside. */
    save_small(cx, 90, -1);
    save_small(cx, 91, -1);
    save_small(cx, 24, 1);
    is_str(steps_text(cx), " 91 90 24",
           "later ones do not push out what was just saved");
    save_small(cx, 90, 2);
    is_str(steps_text(cx), " 91 90 24", "a step that was there is saved anew");
    is_int(count_names(dir, ".old-000000000090-"), 1,
           "and the one before is kept aside");
    remove_tree(dir);
}

static void
test_list(struct et_ctx *cx)
{
    struct et_checkpoint_info *v;
    int n, damaged, unfinished;
    need(cx, et_checkpoint_list(cx, dir, &v, &n, &damaged, &unfinished));
    ok(n == 0 && damaged == 0 && unfinished == 0, "no folder: an empty list");
    et_free(cx, v);
    for (int64_t step = 2; step <= 8; step += 2)
        save_small(cx, step, -1);
    make_folder(path_to(dir, ".tmp-000000000009-0123456789abcdef"));
    make_folder(path_to(dir, ".del-000000000001-0123456789abcdef"));
    make_folder(path_to(dir, "notes"));
    write_whole(step_path(4, "MANIFEST"), "{}", 2);
    if (rename(step_path(6, ""), step_path(5, "")) != 0)
        bail("cannot rename");
    need(cx, et_checkpoint_list(cx, dir, &v, &n, &damaged, &unfinished));
    ok(n == 2 && damaged == 2 && unfinished == 1,
       "2 whole ones, 2 damaged, 1 unfinished (%d, %d, %d)", n, damaged, unfinished);
    is_str(v[0].name, "step-000000000008", "the newest comes first");
    ok(v[1].step == 2 && v[1].epoch == 1 && strcmp(v[1].label, "ep1-ba2") == 0 &&
           v[1].saved == 1e9 + 0.125 && !v[1].weights_only,
       "with what its MANIFEST says");
    et_free(cx, v);
    need(cx, eti_store_clean(cx, dir, &n));
    ok(n == 2 && count_names(dir, ".") == 0 && count_names(dir, "step-") == 4,
       "cleaning removes .tmp- and .del- and nothing else");
    remove_tree(dir);
    need(cx, eti_store_clean(cx, dir, &n));
    is_int(n, 0, "where there is no folder there is nothing to clean");
    is_int(eti_store_set_aside(cx, dir, 4, "bad"), ET_ENOENT, "nor to set aside");
    et_error_clear(cx);
    write_whole(dir, "", 0);
    ok(eti_store_clean(cx, dir, &n) == ET_EIO, "a file is no folder");
    et_error_clear(cx);
    ok(et_checkpoint_list(cx, dir, &v, &n, &damaged, &unfinished) == ET_EIO, "to list");
    et_error_clear(cx);
    remove_tree(dir);
}

/* ---- labels ---- */

static void
test_labels(struct et_ctx *cx)
{
    static const struct et_timestamp ts = {
        .iteration = 1,
        .epoch = 2,
        .batch = 3,
        .sample = 4,
        .token = 5,
        .batch_in_epoch = 6,
        .sample_in_epoch = 7,
        .token_in_epoch = 8,
        .total_wct = 9.5,
        .epoch_wct = 10.25,
        .batch_wct = 0.125,
    };
    static const char *const rows[][2] = {
        {"ep{epoch}-ba{batch}", "ep2-ba3"},
        {"{run_name}", "otter"},
        {"{rank}{local_rank}{node_rank}", "000"},
        {"{world_size}{local_world_size}", "11"},
        {"{batch_in_epoch} {sample} {sample_in_epoch}", "6 4 7"},
        {"{token}:{token_in_epoch}:{iteration}", "5:8:1"},
        {"{total_wct}/{epoch_wct}/{batch_wct}", "9.5/10.25/0.125"},
        {"plain }", "plain }"},
        {"", ""},
    };
    char buf[24];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        need(cx, et_checkpoint_label(cx, rows[i][0], "otter", &ts, buf, sizeof buf));
        is_str(buf, rows[i][1], "the label \"%s\"", rows[i][0]);
    }
    static const char *const wrong[][2] = {
        {"a{epochs}b", "checkpoint.name: there is no placeholder {epochs}"},
        {"a{epoch", "checkpoint.name: there is no placeholder {epoch"},
        {"a{}", "checkpoint.name: there is no placeholder {}"},
        {"{run_name}{run_name}{run_name}{run_name}{run_name}",
         "checkpoint.name: longer than 23 bytes"},
        {"twenty-four letters here", "checkpoint.name: longer than 23 bytes"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        is_int(et_checkpoint_label(cx, wrong[i][0], "otter", &ts, buf, sizeof buf),
               ET_EINVAL, "\"%s\" is refused", wrong[i][0]);
        is_str(take_error(cx), wrong[i][1], "with a sentence");
    }
    need(cx,
         et_checkpoint_label(cx, "twenty-three letters in", "", &ts, buf, sizeof buf));
    is_str(buf, "twenty-three letters in", "what just fits does");
}

/* ---- refusals ---- */

/* Damage to step 4 of DIR; WITH as the row has it. */
typedef void damage_fn(const char *with, const char *more);

static void
change_manifest(const char *from, const char *to)
{
    reseal(dir, 4, from, to);
}

static void
flip(const char *file, const char *more)
{
    size_t n;
    (void)more;
    char *bytes = read_whole(step_path(4, file), &n);
    bytes[n / 2] ^= 4;
    write_whole(step_path(4, file), bytes, n);
    free(bytes);
}

static void
cut(const char *file, const char *more)
{
    if (truncate(step_path(4, file), strtol(more, NULL, 10)) != 0)
        bail("cannot cut %s", file);
}

static void
remove_file(const char *file, const char *more)
{
    (void)more;
    remove_tree(step_path(4, file));
}

static void
make_fifo(const char *file, const char *more)
{
    remove_file(file, more);
    if (mkfifo(step_path(4, file), 0600) != 0)
        bail("cannot make a fifo");
}

static void
make_link(const char *file, const char *more)
{
    remove_file(file, more);
    if (symlink(more, step_path(4, file)) != 0)
        bail("cannot make a link");
}

static void
replace(const char *file, const char *text)
{
    write_whole(step_path(4, file), text, strlen(text));
}

#define AT4 "step-000000000004: "
static const struct {
    const char *what;
    damage_fn *damage;
    const char *with, *more;
    et_status status;
    const char *why; /* how it begins */
} refusals[] = {
    {"a bit", flip, "optim-00000.safetensors", "", ET_EFORMAT,
     AT4 "optim-00000: digest mismatch"},
    {"a bit of the weights", flip, "model-00000.safetensors", "", ET_EFORMAT,
     AT4 "model-00000: digest mismatch"},
    {"a bit of MANIFEST", flip, "MANIFEST", "", ET_EFORMAT,
     AT4 "MANIFEST does not have the digest that it says"},
    {"a short file", cut, "state-00000.safetensors", "100", ET_EFORMAT,
     AT4 "state-00000: 100 bytes, MANIFEST says "},
    {"a file that is missing", remove_file, "state-00000.safetensors", "", ET_EFORMAT,
     AT4 "state-00000: the file is missing"},
    {"no MANIFEST", remove_file, "MANIFEST", "", ET_EFORMAT,
     AT4 "there is no MANIFEST"},
    {"an empty MANIFEST", cut, "MANIFEST", "0", ET_EFORMAT,
     AT4 "MANIFEST is cut off: 0 bytes"},
    {"half a MANIFEST", cut, "MANIFEST", "2000", ET_EFORMAT,
     AT4 "MANIFEST does not end in its digest"},
    {"a MANIFEST larger than any", cut, "MANIFEST", "67108865", ET_EFORMAT,
     AT4 "MANIFEST of 67108865 bytes exceeds 67108864"},
    {"a fifo for a file", make_fifo, "model-00000.safetensors", "", ET_EFORMAT,
     "model-00000.safetensors: not a regular file"},
    {"a link for a file", make_link, "model-00000.safetensors",
     "optim-00000.safetensors", ET_EIO, "cannot read model-00000.safetensors: "},
    {"a link for MANIFEST", make_link, "MANIFEST", "optim-00000.safetensors", ET_EIO,
     "cannot read MANIFEST: "},
    {"a later format", change_manifest, "\"format\": 1", "\"format\": 3", ET_ENOTSUP,
     AT4 "written by format 3, this etude reads <= 1"},
    {"another step's", change_manifest, "\"step\": 4", "\"step\": 5", ET_EFORMAT,
     AT4 "MANIFEST is of step 5"},
    {"a wrong size", change_manifest, "\"bytes\": ", "\"bytes\": 1", ET_EFORMAT,
     AT4 "model-00000: "},
    {"a size below 0", change_manifest, "\"bytes\": ", "\"bytes\": -", ET_EFORMAT,
     AT4 "MANIFEST has no bytes >= 0"},
    {"a member that is no number", change_manifest, "\"epoch\": 2", "\"epoch\": \"2\"",
     ET_EFORMAT, AT4 "MANIFEST has no epoch >= 0"},
    {"a negative one", change_manifest, "\"sample\": ", "\"sample\": -", ET_EFORMAT,
     AT4 "MANIFEST has no sample >= 0"},
    {"no revision", change_manifest, "\"revision\"", "\"revisions\"", ET_EFORMAT,
     AT4 "MANIFEST has no revision >= 0"},
    {"no label", change_manifest, "\"label\"", "\"name\"", ET_EFORMAT,
     AT4 "MANIFEST has no label of less than 128 bytes"},
    {"a run's id that is too long", change_manifest, "\"run_id\": \"",
     "\"run_id\": \"0123456789abcdef0123456789abcdef", ET_EFORMAT,
     AT4 "MANIFEST has no run_id of less than 33 bytes"},
    {"no run's name", change_manifest, "\"run_name\"", "\"x\"", ET_EFORMAT,
     AT4 "MANIFEST has no run_name of less than 64 bytes"},
    {"no recipe", change_manifest, "\"recipe\"", "\"x\"", ET_EFORMAT,
     AT4 "MANIFEST has no recipe of less than 65 bytes"},
    {"no data", change_manifest, "\"data\"", "\"x\"", ET_EFORMAT,
     AT4 "MANIFEST has no data of less than 256 bytes"},
    {"no weights_only", change_manifest, "\"weights_only\"", "\"x\"", ET_EFORMAT,
     AT4 "MANIFEST lacks weights_only or saved"},
    {"no time", change_manifest, "\"saved\"", "\"x\"", ET_EFORMAT,
     AT4 "MANIFEST lacks weights_only or saved"},
    {"a key twice", change_manifest, "\"label\"", "\"format\": 1,\n \"label\"",
     ET_EINVAL, AT4 "MANIFEST is not JSON, byte "},
    {"no algorithms", change_manifest, "\"algorithms\"", "\"x\"", ET_EFORMAT,
     AT4 "MANIFEST has no list of algorithms"},
    {"an algorithm without a name", change_manifest, "\"name\": \"ema\"", "\"name\": 1",
     ET_EFORMAT, AT4 "MANIFEST has no list of algorithms"},
    {"an algorithm without options", change_manifest, "\"options\"", "\"option\"",
     ET_EFORMAT, AT4 "MANIFEST has no list of algorithms"},
    {"an option that is no text", change_manifest, "\"half_life\": \"2ba\"",
     "\"half_life\": 2", ET_EFORMAT, AT4 "MANIFEST has no list of algorithms"},
    {"no files", change_manifest, "\"files\"", "\"x\"", ET_EFORMAT,
     AT4 "MANIFEST lists 0 files, not 1 to 3"},
    {"too many files", change_manifest, "\"files\": [", "\"files\": [{}, {}, ",
     ET_EFORMAT, AT4 "MANIFEST lists 5 files, not 1 to 3"},
    {"a file elsewhere", change_manifest, "\"model-00000.safetensors\"",
     "\"../model-00000.safetensors\"", ET_EFORMAT,
     AT4 "MANIFEST names a file that no checkpoint has"},
    {"a file without a name", change_manifest, "\"name\": \"model-00000.safetensors\"",
     "\"name\": 1", ET_EFORMAT, AT4 "MANIFEST names a file that no checkpoint has"},
    {"a file twice", change_manifest, "\"model-00000.safetensors\"",
     "\"optim-00000.safetensors\"", ET_EFORMAT,
     AT4 "MANIFEST lists optim-00000.safetensors twice"},
    {"a file without a digest", change_manifest, "\"xxh3_128\"", "\"xxh32\"",
     ET_EFORMAT, AT4 "MANIFEST has no xxh3_128 of less than 33 bytes"},
    {"a digest that is none", change_manifest, "\"xxh3_128\": \"",
     "\"xxh3_128\": \"\", \"x\": \"", ET_EFORMAT,
     AT4 "MANIFEST has no digests of model-00000.safetensors"},
    {"no tensors", change_manifest, "\"tensors\"", "\"x\"", ET_EFORMAT,
     AT4 "MANIFEST has no digests of model-00000.safetensors"},
    {"a tensor's digest that is none", change_manifest, "\"filter.f32\": \"",
     "\"filter.f32\": \"x", ET_EFORMAT,
     AT4 "MANIFEST has no digests of model-00000.safetensors"},
    {"a tensor's digest that is no text", change_manifest, "\"filter.f32\": \"",
     "\"filter.f32\": 1, \"x\": \"", ET_EFORMAT,
     AT4 "MANIFEST has no digests of model-00000.safetensors"},
    {"a tensor that is not listed", change_manifest, "\"filter.f32\"", "\"filter.x\"",
     ET_EINVAL, AT4 "model-00000: a tensor is not the one in MANIFEST"},
    {"a tensor too many in the list", change_manifest, "\"filter.f32\": \"",
     "\"x\": \"0123456789abcdef0123456789abcdef\", \"filter.f32\": \"", ET_EINVAL,
     AT4 "model-00000: not the tensors of MANIFEST"},
    {"a text that is not JSON", replace, "MANIFEST", "{", ET_EFORMAT,
     AT4 "MANIFEST is cut off: 1 bytes"},
};

static void
test_refusals(struct et_ctx *cx, struct et_device *dev)
{
    struct values v;
    et_status status;
    values_open(&v, cx, dev, false);
    values_fill(&v, cx);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        int before = count_descriptors();
        save_values(cx, &v, 4, -1);
        refusals[i].damage(refusals[i].with, refusals[i].more);
        const char *why = read_back(cx, 4, &status);
        bool said = strncmp(why, refusals[i].why, strlen(refusals[i].why)) == 0;
        ok(said && status == refusals[i].status && count_descriptors() == before,
           "%s: %s", refusals[i].what, refusals[i].why);
        if (!said)
            diag("%s", why);
        remove_tree(dir);
    }
    values_close(&v, cx);
}

int
main(int argc, char **argv)
{
    struct et_ctx *cx = need_ctx();
    struct et_device *dev;
    need(cx, et_device_open(cx, "ref", 0, 1, &dev));
    if (argc == 3 && strcmp(argv[1], "write") == 0) {
        struct values v;
        snprintf(dir, sizeof dir, "%s", argv[2]);
        values_open(&v, cx, dev, false);
        values_fill(&v, cx);
        save_values(cx, &v, 4, 1);
        values_close(&v, cx);
        et_device_close(&dev);
        et_ctx_free(&cx);
        return 0;
    }
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    test_round_trip(cx, dev);
    test_archive(cx, dev);
    test_not_finite(cx, dev);
    test_names();
    test_retention(cx);
    test_list(cx);
    test_labels(cx);
    test_refusals(cx, dev);
    struct et_alloc_stats stats;
    et_device_close(&dev);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "no memory is left");
    et_ctx_free(&cx);
    return done();
}
