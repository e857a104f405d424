/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a batch: its pictures, masks, targets and tokens. */
#include "config.h"

#include <string.h>

#include "core/data/loader_impl.h"
#include "core/data/look.h"
#include "core/image/class_color.h"
#include "t/tap.h"

/* A batch of two samples, whose fields a test fills in. */
static struct et_loader loader;
static struct et_batch batch;
static struct et_data_facts facts;
static struct eti_batch_look look;

static void
begin(void)
{
    memset(&batch, 0, sizeof batch);
    memset(&facts, 0, sizeof facts);
    look = (struct eti_batch_look){.loader = &loader, .batch = &batch, .facts = &facts};
}

static void
add(const char *name, enum et_field_kind kind, enum et_dtype dtype, int ndim,
    const int64_t *shape, int64_t below, void *data)
{
    const int i = look.info.n_fields++;
    look.info.field[i] =
        (struct et_field){.name = name, .kind = kind, .dtype = dtype, .below = below};
    et_desc_init(&batch.field[i].desc, dtype, ndim, shape, ET_ROW_MAJOR);
    batch.field[i].host.any = data;
}

static void
is_bytes(const uint8_t *is, const uint8_t *want, int n, const char *name)
{
    if (!ok(memcmp(is, want, (size_t)n) == 0, "%s", name))
        for (int i = 0; i < n; i++)
            diag("%d: %d, not %d", i, is[i], want[i]);
}

/* ---- pictures ---- */

/* Each channel has its own black and white. */
static void
test_pixels(void)
{
    static const float black[] = {-1, 10, 3, 0}, white[] = {1, -10, 3, 255};
    /* Of the second sample, channels last: 2 x 2 pixels. */
    float x[2][12] = {{0},
                      {-1, 10, 3, /**/ 1, -10, 3, /**/ 0.5F, 5, 9, /**/ -2, -11, 0}};
    int32_t masks[2][4] = {{3, 3, 3, 3}, {0, 2, -100, 5}};
    uint8_t rgb[12], want[12] = {0, 0, 0, 255, 255, 0, 191, 64, 0, 0, 255, 0};
    uint8_t two[3], five[3];
    for (int c = 0; c < 4; c++) {
        loader.pipeline.table[c][0] = black[c];
        loader.pipeline.table[c][255] = white[c];
    }
    begin();
    add("image", ET_FIELD_IMAGE, ET_F32, 4, (const int64_t[]){2, 3, 2, 2}, 0, x);
    add("target", ET_FIELD_MASK, ET_I32, 3, (const int64_t[]){2, 2, 2}, 6, masks);
    eti_look_pixels(&look, 0, -1, 1, rgb);
    is_bytes(rgb, want, 12, "values become the bytes of their channel, rounded");
    (void)eti_class_color(2, two);
    (void)eti_class_color(5, five);
    for (int c = 0; c < 3; c++) {
        want[3 + c] = (uint8_t)((want[3 + c] + two[c]) / 2);
        want[9 + c] = (uint8_t)((want[9 + c] + five[c]) / 2);
    }
    eti_look_pixels(&look, 0, 1, 1, rgb);
    is_bytes(rgb, want, 12, "a mask tints what is of a class, not the ground");
    for (int i = 0; i < 4; i++)
        (void)eti_class_color(masks[1][i], want + 3 * i);
    eti_look_mask(&look, 1, 1, rgb);
    is_bytes(rgb, want, 12, "a mask alone has its classes' colours");
}

/* The first of one or two channels is shown in all three. */
static void
test_gray(void)
{
    float x[2][2][2] = {{{0}}, {{-1, 10}, {1, 10}}};
    uint8_t rgb[6];
    static const uint8_t want[] = {0, 0, 0, 255, 255, 255};
    for (int64_t C = 1; C <= 2; C++) {
        float one[] = {0, 0, -1, 1};
        begin();
        add("image", ET_FIELD_IMAGE, ET_F32, 4, (const int64_t[]){2, C, 1, 2}, 0,
            C == 1 ? (void *)one : (void *)x);
        eti_look_pixels(&look, 0, -1, 1, rgb);
        is_bytes(rgb, want, 6, C == 1 ? "one channel is gray" : "so is one of two");
    }
}

/* ---- targets ---- */

static void
test_masks(void)
{
    static const char *const names[] = {"ground", "Dress", "Bag", "Coat"};
    int32_t masks[2][8] = {{3, 3, 3, 3, 3, 3, 3, 3}, {2, 0, 2, 1, 4, 2, -100, 0}};
    int64_t count[4] = {0};
    char text[64];
    begin();
    add("image", ET_FIELD_IMAGE, ET_F32, 4, (const int64_t[]){2, 1, 2, 4}, 0, NULL);
    add("target", ET_FIELD_MASK, ET_I32, 3, (const int64_t[]){2, 2, 4}, 4, masks);
    is_int(eti_look_classes(&look, 1, 1, count), 6,
           "pixels of no class and of one too high are not counted");
    ok(count[0] == 2 && count[1] == 1 && count[2] == 3 && count[3] == 0,
       "others are, each for its class");
    is_str(eti_look_target(&look, 1, text, sizeof text), "38% 2, 12% 1",
           "of a mask the classes are named, the largest first, without the ground");
    facts.class_names = names;
    is_str(eti_look_target(&look, 1, text, sizeof text), "38% Bag, 12% Dress",
           "by their names where these are known");
    is_str(eti_look_target(&look, 0, text, sizeof text), "100% Coat",
           "of one sample its own");
    is_str(eti_look_target(&look, 1, text, 10), "38% Bag, ", "in the room there is");
    look.info.field[1].below = ETI_LOOK_CLASSES + 1;
    is_str(eti_look_target(&look, 1, text, sizeof text), "",
           "and not where there are too many classes");
    look.info.field[1].below = 1;
    is_str(eti_look_target(&look, 1, text, sizeof text), "", "or only the ground");
}

static void
test_targets(void)
{
    static const char *const names[] = {"Shirt", "Dress", "Bag"};
    int32_t classes[] = {2, 0, -100, 3, 1};
    static const char *const want[] = {"2 Bag", "0 Shirt", "-100", "3", "1 Dress"};
    float values[] = {0.5F, -1.25F, 2, 1, 0};
    char text[64];
    begin();
    add("image", ET_FIELD_IMAGE, ET_F32, 4, (const int64_t[]){5, 1, 1, 1}, 0, NULL);
    is_str(eti_look_target(&look, 1, text, sizeof text), "",
           "without a target there is nothing to tell");
    add("target", ET_FIELD_VALUES, ET_I32, 1, (const int64_t[]){5}, 3, classes);
    facts.class_names = names;
    for (int i = 0; i < 5; i++)
        is_str(eti_look_target(&look, i, text, sizeof text), want[i],
               "class %d is told, by its name if it has one", classes[i]);
    begin();
    add("values", ET_FIELD_VALUES, ET_F32, 2, (const int64_t[]){5, 1}, 0, NULL);
    add("target", ET_FIELD_VALUES, ET_F32, 2, (const int64_t[]){5, 1}, 0, values);
    is_str(eti_look_target(&look, 1, text, sizeof text), "-1.25", "a number is itself");
    batch.field[1].desc.shape[1] = 2;
    is_str(eti_look_target(&look, 1, text, sizeof text), "", "two are not told");
}

/* ---- tokens ---- */

static void
test_tokens(void)
{
    int32_t tokens[2][4] = {{5, 6, 7, 8}, {9, 4, 3, 0}};
    int32_t real[2][4] = {{1, 1, 1, 1}, {1, 1, 1, 0}};
    int32_t next[2][4] = {{6, 7, 8, 1}, {4, -100, 0, 2}};
    int32_t hidden[2][4] = {{-100, 6, -100, -100}, {-100, -100, 2, -100}};
    const int64_t shape[] = {2, 4};
    begin();
    add("tokens", ET_FIELD_TOKENS, ET_I32, 2, shape, 10, tokens);
    is_int(eti_look_tokens(&look, 0, 1), 4, "without a mask all tokens are real");
    is_int(eti_look_guessed(&look, 1, 0), -1, "and none is guessed without a target");
    add("target", ET_FIELD_TOKENS, ET_I32, 2, shape, 10, next);
    for (int t = 0; t < 4; t++)
        is_int(eti_look_guessed(&look, 1, t), -1,
               "nor is one that is the next token, at %d", t);
    batch.field[1].host.i32 = &hidden[0][0];
    for (int at = 0; at < 2; at++)
        for (int t = 0; t < 4; t++)
            is_int(eti_look_guessed(&look, at, t),
                   at == 0 && t == 1   ? 6
                   : at == 1 && t == 2 ? 2
                                       : -1,
                   "of what is hidden, sample %d has at %d what it was", at, t);
    is_int(eti_look_guessed(&look, 1, 4), -1, "behind the last there is none");
    add("attention_mask", ET_FIELD_VALUES, ET_I32, 2, shape, 2, real);
    is_int(eti_look_tokens(&look, 0, 1), 3, "padding is no token");
    is_int(eti_look_tokens(&look, 0, 0), 4, "of one sample its own");
    is_int(eti_look_find(&look, ET_FIELD_TOKENS), 0, "a field is found by its kind");
    is_int(eti_look_find(&look, ET_FIELD_VALUES), 2, "the third too");
    is_int(eti_look_find(&look, ET_FIELD_IMAGE), -1, "and what is not there is not");
}

int
main(void)
{
    test_pixels();
    test_gray();
    test_masks();
    test_targets();
    test_tokens();
    return done();
}
