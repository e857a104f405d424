/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that a caller has in memory, as facts of data: those of the data that they
 * stand for, as far as they are given (core/assemble/raw.h). */
#include "core/assemble/raw.h"

#include <string.h>

#include "etude/etude.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { N = 3, LENGTH = 8 };

static const struct et_dataset_class texts = {.info = {.name = "texts"}};
static const struct et_data_options options = {.seq_len = LENGTH};
static const int32_t tokens[N * LENGTH], mask[N * LENGTH];
static const uint8_t kinds[N * LENGTH];

static const struct et_field tokens_field = {
    .name = "tokens",
    .kind = ET_FIELD_TOKENS,
    .dtype = ET_I32,
    .ndim = 1,
    .shape = {-1},
    .below = 11,
};
static const struct et_field kinds_field = {
    .name = "token_type",
    .kind = ET_FIELD_TOKENS,
    .dtype = ET_U8,
    .ndim = 1,
    .shape = {-1},
    .below = 2,
};
static const struct et_field target_field = {
    .name = "target",
    .kind = ET_FIELD_TOKENS,
    .dtype = ET_I32,
    .ndim = 1,
    .shape = {-1},
    .below = 11,
};

/* Texts with a target of their length, or without one. */
static struct et_dataset
data_with(bool target)
{
    struct et_dataset d = {.type = &texts, .common = &options};
    et_facts_add(&d.facts, &tokens_field);
    if (target) {
        et_facts_add(&d.facts, &target_field);
        et_facts_add(&d.facts, &kinds_field);
        d.facts.wants_attention_mask = true;
    }
    return d;
}

static struct et_raw_field
given(const char *name, enum et_dtype dtype, const void *data)
{
    const int64_t shape[] = {N, LENGTH};
    struct et_raw_field f = {.name = name, .data = data};
    et_desc_init(&f.desc, dtype, 2, shape, ET_ROW_MAJOR);
    return f;
}

/* "tokens target ...": the fields of F. */
static const char *
names_of(const struct et_data_facts *f)
{
    static char text[128];
    text[0] = '\0';
    for (int i = 0; i < f->n_fields && i < ET_MAX_FIELDS; i++) {
        const char *name = f->field[i].name ? f->field[i].name : "(none)";
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "", name);
    }
    return text;
}

static void
test_mask(struct et_ctx *cx)
{
    const struct et_dataset like = data_with(true);
    const struct et_raw_field all[] = {given("tokens", ET_I32, tokens),
                                       given("token_type", ET_U8, kinds),
                                       given("attention_mask", ET_I32, mask)};
    const void *data[ET_MAX_FIELDS] = {0};
    struct et_data_facts facts;
    need(cx, eti_raw_take(cx, &like, all, 2, &facts, data));
    is_str(names_of(&facts), "tokens target token_type",
           "behind the first field stands the target, which nobody gives");
    ok(data[0] == tokens && !data[1] && data[2] == kinds, "each with its numbers");
    is_int(facts.field[ET_FIELD_TARGET].shape[0], LENGTH,
           "a target of any length is as long as the tokens");
    ok(facts.wants_attention_mask, "a mask that is not given is made of lengths");
    need(cx, eti_raw_take(cx, &like, all, 3, &facts, data));
    is_str(names_of(&facts), "tokens target token_type attention_mask",
           "a mask may be given");
    ok(data[3] == mask && !facts.wants_attention_mask, "and none is made then");
    is_int(facts.field[3].below, 2, "a mask holds 0 and 1");
}

static void
test_no_target(struct et_ctx *cx)
{
    const struct et_dataset like = data_with(false);
    const struct et_raw_field one[] = {given("tokens", ET_I32, tokens)};
    const void *data[ET_MAX_FIELDS] = {0};
    struct et_data_facts facts;
    need(cx, eti_raw_take(cx, &like, one, 1, &facts, data));
    is_str(names_of(&facts), "tokens", "data without a target get none");
    is_int(facts.n_samples, N, "and have as many samples as are given");
}

/* ---- what is taken, and what is refused ---- */

static const struct et_field image_field = {
    .name = "image",
    .kind = ET_FIELD_IMAGE,
    .dtype = ET_U8,
    .ndim = 3,
    .shape = {2, 32, 48},
};
static const struct et_field outline_field = {
    .name = "target",
    .kind = ET_FIELD_MASK,
    .dtype = ET_U8,
    .ndim = 2,
    .shape = {-1, -1},
};

static void
describe_texts(const void *own, struct et_data_facts *facts)
{
    (void)own;
    et_facts_add(facts, &tokens_field);
    et_facts_add(facts, &target_field);
    et_facts_add(facts, &kinds_field);
}

static void
describe_images(const void *own, struct et_data_facts *facts)
{
    struct et_field any = image_field;
    (void)own;
    any.shape[1] = any.shape[2] = -1;
    et_facts_add(facts, &any);
}

static const struct et_dataset_class ragged = {.info = {.name = "ragged"},
                                               .describe = describe_texts};
static const struct et_dataset_class pictures = {.info = {.name = "pictures"},
                                                 .describe = describe_images};
static const uint8_t pixels[N * 5 * 7 * 2];

/* Texts of any length up to LENGTH; images of any size. */
static struct et_dataset
data_of(bool images)
{
    static const struct et_data_options no_length;
    struct et_dataset d = {.type = images ? &pictures : &ragged,
                           .common = images ? &no_length : &options};
    et_facts_add(&d.facts, images ? &image_field : &tokens_field);
    et_facts_add(&d.facts, images ? &outline_field : &target_field);
    if (!images)
        et_facts_add(&d.facts, &kinds_field);
    d.facts.wants_attention_mask = !images;
    return d;
}

static struct et_raw_field
shaped(const char *name, enum et_dtype dtype, const void *data, int ndim,
       const int64_t *shape)
{
    struct et_raw_field f = {.name = name, .data = data};
    et_desc_init(&f.desc, dtype, ndim, shape, ET_ROW_MAJOR);
    return f;
}

static void
test_sizes(struct et_ctx *cx)
{
    const struct et_dataset images = data_of(true), like = data_of(false);
    const void *data[ET_MAX_FIELDS] = {0};
    struct et_data_facts facts;
    const struct et_raw_field picture =
        shaped("image", ET_U8, pixels, 4, (int64_t[]){N, 5, 7, 2});
    need(cx, eti_raw_take(cx, &images, &picture, 1, &facts, data));
    const int64_t *x = facts.field[0].shape, *y = facts.field[1].shape;
    ok(x[0] == 2 && x[1] == 5 && x[2] == 7, "images are as high and wide as is given");
    ok(y[0] == 5 && y[1] == 7 && !data[1], "and so is what is drawn over them");
    const struct et_raw_field turned[] = {
        shaped("attention_mask", ET_I32, mask, 2, (int64_t[]){N, 6}),
        shaped("token_type", ET_U8, kinds, 2, (int64_t[]){N, 3}),
        shaped("tokens", ET_I32, tokens, 2, (int64_t[]){N, 5})};
    need(cx, eti_raw_take(cx, &like, turned, 3, &facts, data));
    is_str(names_of(&facts), "tokens target token_type attention_mask",
           "fields may be given in any order");
    ok(data[0] == tokens && data[2] == kinds && data[3] == mask, "with their numbers");
    ok(facts.field[0].shape[0] == 5 && facts.field[1].shape[0] == 5 &&
           facts.field[2].shape[0] == 3 && facts.field[3].shape[0] == 6,
       "and their lengths");
    ok(facts.field[0].below == 11 && facts.field[2].below == 2, "and their limits");
}

static void
test_refused(struct et_ctx *cx)
{
    static const struct {
        const char *what;
        et_status status;
        const char *name[2]; /* the second is NULL where one field is given */
        int64_t n[2], length[2];
        enum et_dtype dtype;
        bool no_data;
    } rows[] = {
        {"one token", ET_OK, {"tokens"}, {N}, {1}, ET_I32, false},
        {"seq_len tokens", ET_OK, {"tokens"}, {N}, {LENGTH}, ET_I32, false},
        {"the first field without a name", ET_OK, {NULL}, {N}, {2}, ET_I32, false},
        {"no token", ET_ESHAPE, {"tokens"}, {N}, {0}, ET_I32, false},
        {"a token too many", ET_ESHAPE, {"tokens"}, {N}, {LENGTH + 1}, ET_I32, false},
        {"no sample", ET_EINVAL, {"tokens"}, {0}, {2}, ET_I32, false},
        {"another dtype", ET_EDTYPE, {"tokens"}, {N}, {2}, ET_I64, false},
        {"no numbers", ET_EINVAL, {"tokens"}, {N}, {2}, ET_I32, true},
        {"a name that is not there", ET_EINVAL, {"token"}, {N}, {2}, ET_I32, false},
        {"the target", ET_EINVAL, {"target"}, {N}, {2}, ET_I32, false},
        {"a mask alone", ET_EINVAL, {"attention_mask"}, {N}, {2}, ET_I32, false},
        {"two fields",
         ET_OK,
         {"tokens", "attention_mask"},
         {N, N},
         {2, 2},
         ET_I32,
         false},
        {"one field twice",
         ET_EINVAL,
         {"tokens", "tokens"},
         {N, N},
         {2, 2},
         ET_I32,
         false},
        {"more samples of the second",
         ET_ESHAPE,
         {"tokens", "attention_mask"},
         {N, N + 1},
         {2, 2},
         ET_I32,
         false},
        {"fewer samples of the second",
         ET_ESHAPE,
         {"tokens", "attention_mask"},
         {N, N - 1},
         {2, 2},
         ET_I32,
         false},
    };
    const struct et_dataset like = data_of(false), images = data_of(true);
    const void *data[ET_MAX_FIELDS] = {0};
    struct et_data_facts facts;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_raw_field f[2];
        const int n = rows[i].name[1] ? 2 : 1;
        for (int k = 0; k < n; k++)
            f[k] =
                shaped(rows[i].name[k], rows[i].dtype, rows[i].no_data ? NULL : tokens,
                       2, (int64_t[]){rows[i].n[k], rows[i].length[k]});
        is_int(eti_raw_take(cx, &like, f, n, &facts, data), rows[i].status, "%s",
               rows[i].what);
        et_error_clear(cx);
    }
    struct et_raw_field f = shaped("image", ET_U8, pixels, 4, (int64_t[]){N, 5, 7, 1});
    is_int(eti_raw_take(cx, &images, &f, 1, &facts, data), ET_ESHAPE,
           "images of other channels");
    et_error_clear(cx);
    f = shaped("image", ET_U8, pixels, 4, (int64_t[]){N, 5, 7, 2});
    f.desc.stride[1] = 2; /* columns lie one after the other */
    f.desc.stride[2] = 10;
    is_int(eti_raw_take(cx, &images, &f, 1, &facts, data), ET_ESHAPE,
           "images that do not lie row by row");
    et_error_clear(cx);
}

static void
test_fields(void)
{
    const struct et_dataset images = data_of(true), like = data_of(false);
    struct et_raw_field f[ET_MAX_FIELDS];
    is_int(eti_raw_fields(&images, 4, f), 1, "of images nothing else is read");
    ok(f[0].desc.ndim == 4 && f[0].desc.shape[0] == 4 && f[0].desc.shape[1] == 32 &&
           f[0].desc.shape[2] == 48 && f[0].desc.shape[3] == 2 &&
           f[0].desc.dtype == ET_U8,
       "they lie with their channels last");
    is_int(eti_raw_fields(&like, 4, f), 3, "with texts a kind and a mask may be given");
    for (int i = 0; i < 3; i++)
        ok(f[i].desc.ndim == 2 && f[i].desc.shape[0] == 4 &&
               f[i].desc.shape[1] == LENGTH && !f[i].data &&
               f[i].desc.dtype == (i == 1 ? ET_U8 : ET_I32),
           "%s at their longest", f[i].name);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_mask(cx);
    test_no_target(cx);
    test_sizes(cx);
    test_refused(cx);
    test_fields();
    et_ctx_free(&cx);
    return done();
}
