/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of named fields: what becomes of each kind in a batch, lengths that differ,
 * orders by length, and what a data set may not say of itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/fields.h"
#include "core/data/loader_impl.h"
#include "core/graph/tensor.h"
#include "t/data/fixture.h"
#include "t/device.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* A field of a made data set; its shape last, 0 where it has no axes. */
#define FIELD(its_name, its_kind, its_dtype, axes, ...)                                \
    {                                                                                  \
        .name = its_name, .kind = its_kind, .dtype = its_dtype, .ndim = axes,          \
        .shape = {__VA_ARGS__},                                                        \
    }

/* The data set under test, as a test has described it. */
static struct made {
    struct et_data_facts facts;
    et_status (*sample)(const struct et_dataset *self, int64_t at,
                        struct et_sample *out, struct et_error *why);
} made;

static et_status
open_made(struct et_ctx *c, struct et_dataset *self)
{
    (void)c;
    self->facts = made.facts;
    return ET_OK;
}

static et_status
read_made(const struct et_dataset *self, int64_t at, struct et_sample *out,
          struct et_error *why)
{
    return made.sample(self, at, out, why);
}

/* How long sample AT is: 1 to 23. */
static int64_t
length_of(const struct et_dataset *self, int64_t at)
{
    (void)self;
    return 1 + at * 7 % 23;
}

static const struct et_option table[] = {
    ET_DATA_IMAGE_OPTIONS(struct counted_options),
    {.name = NULL},
};

static const struct et_dataset_class of_samples = {
    .info = {.name = "made",
             .options = table,
             .options_size = sizeof(struct counted_options)},
    .open = open_made,
    .sample = read_made,
    .length = length_of,
};

struct setup {
    struct counted_options options;
    struct et_loader_config config;
    struct et_dataset *data;
    struct et_loader *loader;
};

static struct setup
setup(int64_t batch_size)
{
    struct setup s = {
        .options = {.common = common_options(batch_size)},
        .config = {.seed = 17, .train = true},
    };
    s.options.common.shuffle = false;
    s.options.common.workers = 0;
    return s;
}

static void
begin(struct setup *s)
{
    need(cx, et_dataset_open(cx, &of_samples, &s->options, &s->data));
    need(cx, et_loader_new(cx, s->data, &s->config, &s->loader));
}

static void
end(struct setup *s)
{
    et_loader_free(&s->loader);
    et_dataset_close(&s->data);
    et_options_release(table, &s->options);
}

static const struct et_batch *
next(struct setup *s)
{
    const struct et_batch *b;
    need(cx, et_loader_next(cx, s->loader, &b));
    return b;
}

/* ---- kinds ---- */

enum { SIDE = 5 };

/* An image whose pixel is its mask's class times 20, numbers of each type, a price. */
static et_status
read_all_kinds(const struct et_dataset *self, int64_t at, struct et_sample *out,
               struct et_error *why)
{
    const double large = 0x1p40;
    static const uint16_t half = 0x3e00; /* 1.5 */
    uint8_t *image = et_sample_room(out, 0, SIDE * SIDE);
    uint8_t *mask = et_sample_room(out, 1, SIDE * SIDE);
    double *values = et_sample_room(out, 2, 6 * sizeof *values);
    (void)self;
    (void)why;
    for (int i = 0; i < SIDE * SIDE; i++) {
        mask[i] = (uint8_t)((at + i) % 9 == 8 ? 255 : (at + i) % 9);
        image[i] = (uint8_t)(20 * (mask[i] == 255 ? 0 : mask[i]));
    }
    for (int i = 0; i < 6; i++)
        values[i] = (double)at + i / 4.0;
    out->v[0].pixels = et_pixels_hwc(image, 1, SIDE, SIDE);
    out->v[1].pixels = et_pixels_hwc(mask, 1, SIDE, SIDE);
    out->v[2].data = values;
    et_sample_number(out, 3, at == 11 ? large : (double)-at);
    out->v[4].data = &half;
    return ET_OK;
}

static void
describe_all_kinds(void)
{
    made = (struct made){.sample = read_all_kinds, .facts = {.n_samples = 12}};
    static const struct et_field all[] = {
        FIELD("image", ET_FIELD_IMAGE, ET_U8, 3, 1, SIDE, SIDE),
        {.name = "target",
         .kind = ET_FIELD_MASK,
         .dtype = ET_U8,
         .ndim = 2,
         .shape = {SIDE, SIDE},
         .below = 9},
        FIELD("values", ET_FIELD_VALUES, ET_F64, 2, 2, 3),
        FIELD("number", ET_FIELD_VALUES, ET_I64, 0, 0),
        FIELD("half", ET_FIELD_VALUES, ET_F16, 0, 0),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        et_facts_add(&made.facts, &all[i]);
}

/* Of a batch of all kinds: are images and masks the same places of the same sample, and
 * values those of the sample? Counts what is not. */
static int
count_faults(const struct et_batch *b, bool cut)
{
    const int64_t *n = b->field[0].desc.shape;
    int wrong = 0, outside = 0;
    for (int64_t r = 0; r < n[0]; r++) {
        for (int64_t i = 0; i < n[2] * n[3]; i++) {
            int32_t class = b->field[1].host.i32[r * n[2] * n[3] + i];
            float pixel = b->field[0].host.f32[r * n[2] * n[3] + i];
            outside += class == ET_IGNORE_INDEX;
            wrong += pixel != (float)((class < 0 ? 0 : 20 * class) / 255.0);
        }
        int64_t at = b->first + r;
        for (int i = 0; i < 6; i++)
            wrong += b->field[2].host.f32[6 * r + i] != (float)((double)at + i / 4.0);
        wrong += b->field[3].host.i32[r] != -at;
        wrong += b->field[4].host.f32[r] != 1.5F;
    }
    return wrong + (!cut && outside == 0);
}

static void
test_kinds(struct et_device *dev)
{
    static const char *const transforms[] = {
        "[]",
        "[horizontal_flip: {p: 0.5}]",
        "[random_crop: {size: 5, padding: 2}, horizontal_flip]",
        "[center_crop: {size: 3}]",
    };
    for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++) {
        struct setup s = setup(4);
        describe_all_kinds();
        s.config.dev = dev;
        need(cx, et_options_set(cx, table, &s.options, "transforms", transforms[i]));
        begin(&s);
        int wrong = 0;
        for (int k = 0; k < 2; k++) { /* the third batch has what is too large */
            const struct et_batch *b = next(&s);
            wrong += count_faults(b, i == 3);
            if (dev)
                wrong += et_batch_tensor(b, "values") != b->field[2].tensor ||
                         et_batch_tensor(b, "nothing") != NULL;
            et_loader_release(s.loader, b);
        }
        is_int(wrong, 0, "%s: masks follow their image, and numbers are the sample's",
               transforms[i]);
        const struct et_batch *b;
        is_int(et_loader_next(cx, s.loader, &b), ET_EFORMAT,
               "an integer of more than 32 bits ends the run");
        ok(strstr(take_error(cx), "made: sample 11 has a number in 'number'") != NULL,
           "with its sample and its field");
        end(&s);
    }
    struct setup s = setup(4);
    describe_all_kinds();
    begin(&s);
    struct et_loader_info info;
    et_loader_get_info(s.loader, &info);
    ok(info.n_fields == 5 && info.desc[1].dtype == ET_I32 && info.desc[1].ndim == 3 &&
           info.desc[2].dtype == ET_F32 && info.desc[2].shape[2] == 3 &&
           info.desc[3].ndim == 1 && strcmp(info.field[4].name, "half") == 0,
       "a loader says what fields its batches have");
    end(&s);
}

/* Masks when images are made larger: the nearest pixel's class. */
static void
test_resized(void)
{
    struct setup s = setup(1);
    describe_all_kinds();
    s.options.common.resolution = 2 * SIDE;
    begin(&s);
    const struct et_batch *b = next(&s);
    int same = 0;
    for (int y = 0; y < 2 * SIDE; y++)
        for (int x = 0; x < 2 * SIDE; x++) {
            int class = (y / 2 * SIDE + x / 2) % 9;
            same += b->field[1].host.i32[y * 2 * SIDE + x] ==
                    (class == 8 ? ET_IGNORE_INDEX : class);
        }
    is_int(same, 4 * SIDE * SIDE, "a mask twice as large has each class four times");
    et_loader_release(s.loader, b);
    end(&s);
}

/* ---- images of different sizes ---- */

static et_status
read_sizes(const struct et_dataset *self, int64_t at, struct et_sample *out,
           struct et_error *why)
{
    int64_t h = 3 + at, w = 9 - at;
    uint8_t *image = et_sample_room(out, 0, (size_t)(h * w));
    (void)self;
    (void)why;
    memset(image, (int)at * 10, (size_t)(h * w));
    out->v[0].pixels = et_pixels_hwc(image, 1, h, w);
    et_sample_number(out, 1, (double)at);
    return ET_OK;
}

static void
test_sizes(void)
{
    static const int64_t sides[][2] = {{-1, -1}, {3, -1}, {-1, 9}};
    struct setup s;
    made = (struct made){.sample = read_sizes};
    for (int i = 2; i >= 0; i--) {
        s = setup(3);
        made.facts = (struct et_data_facts){0};
        et_facts_images(&made.facts, 6, 1, sides[i][0], sides[i][1], 6);
        need(cx,
             et_options_set(cx, table, &s.options, "transforms", "[horizontal_flip]"));
        need(cx, et_dataset_open(cx, &of_samples, &s.options, &s.data));
        is_int(et_loader_new(cx, s.data, &s.config, &s.loader), ET_EINVAL,
               "images that differ in %s are refused where nothing gives them one size",
               i == 0   ? "size"
               : i == 1 ? "width"
                        : "height");
        ok(strstr(take_error(cx), "the images differ in size") != NULL,
           "in a sentence");
        end(&s);
    }
    s = setup(3);
    need(cx, et_options_set(cx, table, &s.options, "transforms",
                            "[resize: {size: 4}, center_crop: {size: 3}]"));
    begin(&s);
    int wrong = 0;
    for (int k = 0; k < 2; k++) {
        const struct et_batch *b = next(&s);
        wrong += b->field[0].desc.shape[2] != 3;
        for (int i = 0; i < 27; i++)
            wrong += b->field[0].host.f32[i] != (float)(10 * (3 * k + i / 9) / 255.0);
        et_loader_release(s.loader, b);
    }
    is_int(wrong, 0, "resized they are one batch");
    end(&s);
}

/* ---- lengths that differ ---- */

/* Tokens at, at + 1 ...; targets are their negatives; two weights a token. */
static et_status
read_sequence(const struct et_dataset *self, int64_t at, struct et_sample *out,
              struct et_error *why)
{
    int64_t n = length_of(self, at);
    int32_t *tokens = et_sample_room(out, 0, (size_t)n * sizeof *tokens);
    int32_t *target = et_sample_room(out, 1, (size_t)n * sizeof *target);
    float *weight = et_sample_room(out, 2, (size_t)(2 * n) * sizeof *weight);
    (void)why;
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = (int32_t)(at + i);
        target[i] = (int32_t)(-at - i);
        weight[2 * i] = (float)at;
        weight[2 * i + 1] = (float)i;
    }
    out->v[0].data = tokens;
    out->v[1].data = target;
    out->v[2].data = weight;
    out->v[0].shape[0] = out->v[1].shape[0] = out->v[2].shape[0] = n;
    return ET_OK;
}

static void
describe_sequences(int64_t n)
{
    static const struct et_field all[] = {
        {"tokens", ET_FIELD_TOKENS, ET_I32, 1, {-1}, .below = 2000, .pad = 7},
        {"target", ET_FIELD_TOKENS, ET_I32, 1, {-1}, .pad = ET_IGNORE_INDEX},
        {"weight", ET_FIELD_VALUES, ET_F32, 2, {-1, 2}, .pad = 0.5},
    };
    made = (struct made){.sample = read_sequence,
                         .facts = {.n_samples = n, .wants_attention_mask = true}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        et_facts_add(&made.facts, &all[i]);
}

/* Row R of B is sample AT of length T, padded. */
static bool
is_sequence(const struct et_batch *b, int64_t r, int64_t at)
{
    const int64_t T = b->field[0].desc.shape[1], n = length_of(NULL, at);
    bool same = n <= T && b->field[1].desc.shape[1] == T &&
                b->field[2].desc.shape[1] == T && b->field[3].desc.shape[1] == T;
    for (int64_t i = 0; same && i < T; i++) {
        const float *weight = b->field[2].host.f32 + 2 * (r * T + i);
        same = i < n ? b->field[0].host.i32[r * T + i] == at + i &&
                           b->field[1].host.i32[r * T + i] == -at - i &&
                           weight[0] == (float)at && weight[1] == (float)i
                     : b->field[0].host.i32[r * T + i] == 7 &&
                           b->field[1].host.i32[r * T + i] == ET_IGNORE_INDEX &&
                           weight[0] == 0.5F && weight[1] == 0.5F;
        same = same && b->field[3].host.i32[r * T + i] == (i < n);
    }
    return same;
}

static void
test_padding(struct et_device *dev)
{
    static const struct {
        int pad;
        int64_t multiple, seq_len, step, most;
        const char *says;
    } rows[] = {
        {ET_PAD_LONGEST, 1, 23, 2, 23, "lengths are those of the longest sample"},
        {ET_PAD_LONGEST, 8, 23, 8, 23, "or a multiple, up to seq_len"},
        {ET_PAD_LONGEST, 8, 64, 8, 24, "whatever that is"},
        {ET_PAD_LONGEST, 4, 640, 40, 40, "and no more than 16 different ones"},
        {ET_PAD_MAX, 8, 30, 30, 30, "or all as seq_len says"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct setup s = setup(5);
        s.config.dev = dev;
        s.options.common.pad = rows[i].pad;
        s.options.common.pad_to_multiple = rows[i].multiple;
        s.options.common.seq_len = rows[i].seq_len;
        describe_sequences(43);
        begin(&s);
        int wrong = 0, tokens = 0, sum = 0, rest = 0;
        const struct et_batch *b;
        while ((b = next(&s))) {
            const int64_t T = b->field[0].desc.shape[1];
            int64_t longest = 0;
            for (int64_t r = 0; r < b->n_samples; r++) {
                int64_t at = b->first + r, n = length_of(NULL, at);
                wrong += !is_sequence(b, r, at);
                longest = n > longest ? n : longest;
                sum += (int)n;
            }
            tokens += (int)b->n_tokens;
            wrong += T % rows[i].step != 0 && T != rows[i].most;
            wrong += T - longest >= rows[i].step && rows[i].pad == ET_PAD_LONGEST;
            if (dev)
                for (int k = 0; k < 4; k++)
                    wrong +=
                        !et_desc_equal(&b->field[k].tensor->desc, &b->field[k].desc);
            rest = (int)b->n_samples;
            et_loader_release(s.loader, b);
        }
        is_int(wrong, 0, "%s", rows[i].says);
        ok(tokens == sum && rest == 3, "tokens are counted without padding");
        end(&s);
    }
}

static void
test_too_long(void)
{
    struct setup s = setup(5);
    const struct et_batch *b;
    describe_sequences(43);
    s.options.common.seq_len = 22;
    begin(&s);
    int status;
    do {
        status = et_loader_next(cx, s.loader, &b);
        et_loader_release(s.loader, b);
    } while (status == ET_OK && b);
    is_int(status, ET_EINVAL, "a sample longer than seq_len ends the run");
    ok(strstr(take_error(cx), "is 23 long in 'tokens', more than seq_len 22") != NULL,
       "with how long it is");
    end(&s);
}

/* ---- buckets ---- */

/* The samples of an epoch in the order in which they come, and where batches begin in
 * SPREAD: the sum of what batches are padded by. */
static int
read_epoch(struct setup *s, int64_t epoch, int32_t *order, int64_t *spread)
{
    const struct et_batch *b;
    int n = 0;
    *spread = 0;
    need(cx, et_loader_seek(cx, s->loader, epoch, 0));
    while ((b = next(s))) {
        const int64_t T = b->field[0].desc.shape[1];
        for (int64_t r = 0; r < b->n_samples; r++) {
            order[n++] = b->field[0].host.i32[r * T];
            *spread += T - length_of(NULL, order[n - 1]);
        }
        et_loader_release(s->loader, b);
    }
    return n;
}

/* Samples are sorted in their window, and batches of a window come in an order that is
 * drawn anew for each epoch. */
static void
test_order_of_buckets(void)
{
    enum { N = 403, WINDOW = 200 };
    static int32_t order[N], other[N];
    int64_t unused;
    int sorted = 0, alike = 0;
    struct setup s = setup(4);
    describe_sequences(N);
    s.options.common.seq_len = 23;
    s.options.common.bucket = true;
    begin(&s);
    read_epoch(&s, 1, order, &unused);
    for (int i = 0; i + 1 < N; i++) {
        const int64_t a = length_of(NULL, order[i]), b = length_of(NULL, order[i + 1]);
        sorted +=
            a < b || (a == b && order[i] < order[i + 1]) || i % WINDOW == WINDOW - 1;
    }
    is_int(sorted, N - 1,
           "by length, and those as long as each other by their numbers");
    end(&s);
    s.options.common.shuffle = true;
    begin(&s);
    read_epoch(&s, 1, order, &unused);
    read_epoch(&s, 2, other, &unused);
    for (int i = 0; i < WINDOW; i += 4)
        alike += llabs(length_of(NULL, order[i]) - length_of(NULL, other[i])) <= 1;
    ok(alike < WINDOW / 8, "another epoch has its short batches elsewhere (%d of %d)",
       alike, WINDOW / 4);
    end(&s);
}

static void
test_buckets(void)
{
    enum { N = 703 };
    static int32_t plain[N], order[N], again[N], part[N];
    int64_t without, with, unused;
    struct setup s = setup(4);
    describe_sequences(N);
    s.options.common.seq_len = 23;
    s.options.common.shuffle = true;
    begin(&s);
    read_epoch(&s, 1, plain, &without);
    end(&s);
    s.options.common.bucket = true;
    begin(&s);
    int n = read_epoch(&s, 1, order, &with), same = 0, once = 0, twin = 0;
    ok(n == N && with * 10 < without,
       "in buckets there is less padding: %d numbers of %d", (int)with, (int)without);
    static char seen[N];
    for (int i = 0; i < N; i++)
        once += !seen[order[i]]++;
    is_int(once, N, "each sample comes once");
    /* A window is 50 batches of 4. */
    for (int w = 0; w < N; w += 200) {
        int64_t in = 0, out = 0;
        for (int i = w; i < w + 200 && i < N; i++) {
            in += plain[i];
            out += order[i];
        }
        same += in == out;
    }
    is_int(same, 4, "a window has the samples that the order has there");
    ok(length_of(NULL, order[0]) != 1 || length_of(NULL, order[200]) != 1 ||
           length_of(NULL, order[400]) != 1,
       "and does not begin with its shortest each time");
    read_epoch(&s, 2, again, &unused);
    for (int i = 0; i < N; i++)
        twin += again[i] == order[i];
    ok(twin < N / 4, "another epoch has another order");
    end(&s);

    s.options.common.workers = 3;
    begin(&s);
    read_epoch(&s, 1, again, &unused);
    ok(memcmp(order, again, sizeof order) == 0, "workers change nothing");
    need(cx, et_loader_seek(cx, s.loader, 1, 60));
    const struct et_batch *b = next(&s);
    is_int(b->field[0].host.i32[0], order[240], "nor does it matter where one begins");
    et_loader_release(s.loader, b);
    end(&s);
    s.options.common.workers = 0;
    for (int rank = 0; rank < 2; rank++) {
        s.config.world_size = 2;
        s.config.rank = rank;
        begin(&s);
        need(cx, et_loader_seek(cx, s.loader, 1, 0));
        for (int k = 0; (b = next(&s)); k++) {
            for (int64_t r = 0; r < b->n_samples && !b->spare; r++)
                part[b->first - N + r] =
                    b->field[0].host.i32[r * b->field[0].desc.shape[1]];
            et_loader_release(s.loader, b);
        }
        end(&s);
    }
    ok(memcmp(order, part, sizeof order) == 0, "two ranks have the same between them");

    /* Of so few samples an epoch is one window: what the loader keeps is another's. */
    enum { FEW = 30 };
    describe_sequences(FEW);
    s.config.world_size = 1;
    s.config.rank = 0;
    begin(&s);
    read_epoch(&s, 1, plain, &unused);
    read_epoch(&s, 2, order, &unused);
    end(&s);
    begin(&s);
    read_epoch(&s, 2, again, &unused);
    ok(memcmp(order, again, FEW * sizeof *order) == 0 &&
           memcmp(order, plain, FEW * sizeof *order) != 0,
       "the epoch behind another is what it is alone");
    end(&s);

    struct et_dataset_class silent = of_samples;
    silent.length = NULL;
    need(cx, et_dataset_open(cx, &silent, &s.options, &s.data));
    is_int(et_loader_new(cx, s.data, &s.config, &s.loader), ET_EINVAL,
           "a data set that says no lengths has no buckets");
    take_error(cx);
    end(&s);
}

/* ---- what may not be ---- */

static void
test_refused(void)
{
    static const struct {
        int n;
        struct et_field field[3];
        const char *says;
    } rows[] = {
        {0, {{0}}, "data set made has no fields"},
        {1, {FIELD(NULL, ET_FIELD_VALUES, ET_F32, 0, 0)}, "has no name"},
        {1,
         {FIELD("x", (enum et_field_kind)9, ET_F32, 0, 0)},
         "is of no kind there is"},
        {1, {FIELD("x", ET_FIELD_VALUES, ET_NONE, 0, 0)}, "is of no type there is"},
        {1,
         {FIELD("x", ET_FIELD_VALUES, ET_F32, 6, 0)},
         "more axes than a batch can have"},
        {1, {FIELD("x", ET_FIELD_IMAGE, ET_F32, 3, 1, 2, 2)}, "and so bytes [C,H,W]"},
        {1, {FIELD("x", ET_FIELD_IMAGE, ET_U8, 3, 5, 2, 2)}, "of 1 to 4 channels"},
        {1, {FIELD("x", ET_FIELD_TOKENS, ET_F32, 1, 4)}, "and so integers [T]"},
        {1,
         {FIELD("x", ET_FIELD_VALUES, ET_F32, 2, 4, -1)},
         "may not differ by sample"},
        {2,
         {FIELD("x", ET_FIELD_VALUES, ET_F32, 0, 0),
          FIELD("y", ET_FIELD_VALUES, ET_F32, 0, 0)},
         "the one called \"target\""},
        {2,
         {FIELD("x", ET_FIELD_VALUES, ET_F32, 0, 0),
          FIELD("target", ET_FIELD_MASK, ET_U8, 2, 2, 2)},
         "is a mask, of no image"},
        {2,
         {FIELD("x", ET_FIELD_IMAGE, ET_U8, 3, 1, 2, 2),
          FIELD("target", ET_FIELD_IMAGE, ET_U8, 3, 1, 2, 2)},
         "is a second image"},
        {3,
         {FIELD("x", ET_FIELD_VALUES, ET_F32, 0, 0),
          FIELD("target", ET_FIELD_VALUES, ET_F32, 0, 0),
          FIELD("x", ET_FIELD_VALUES, ET_F32, 0, 0)},
         "is there twice"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct setup s = setup(1);
        made = (struct made){.facts = {.n_samples = 1}};
        for (int k = 0; k < rows[i].n; k++)
            et_facts_add(&made.facts, &rows[i].field[k]);
        et_status status = et_dataset_open(cx, &of_samples, &s.options, &s.data);
        const char *said = take_error(cx);
        ok(status == ET_EINVAL && strstr(said, rows[i].says), "refused: %s", said);
        end(&s);
    }
    struct setup s = setup(1);
    made = (struct made){.facts = {.n_samples = 1}};
    for (int k = 0; k <= ET_MAX_FIELDS; k++)
        et_facts_add(&made.facts, &rows[1].field[0]);
    is_int(et_dataset_open(cx, &of_samples, &s.options, &s.data), ET_EINVAL,
           "more fields than there can be are refused");
    take_error(cx);
    end(&s);
    struct et_dataset_class both = of_samples;
    both.tokens = counted_tokens.tokens;
    is_int(et_dataset_open(cx, &both, &s.options, &s.data), ET_EINVAL,
           "as is a class of samples and of a stream");
    take_error(cx);
}

/* Facts of one field more than fit, the last of them the attention mask. */
static void
test_counted(void)
{
    struct setup s = setup(1);
    struct et_data_facts *f = &made.facts;
    et_facts_stream(f, 100, 50);
    is_int(et_facts_classes(f), 0, "a vocabulary is no number of classes");
    et_facts_images(f, 1, 1, 4, 4, 9);
    is_int(et_facts_classes(f), 9, "that of labels is");
    describe_sequences(1);
    while (f->n_fields < ET_MAX_FIELDS) {
        static char name[ET_MAX_FIELDS][16];
        struct et_field more = FIELD(name[f->n_fields], ET_FIELD_VALUES, ET_F32, 0, 0);
        snprintf(name[f->n_fields], sizeof name[0], "v%d", f->n_fields);
        et_facts_add(f, &more);
    }
    is_int(et_dataset_open(cx, &of_samples, &s.options, &s.data), ET_EINVAL,
           "the attention mask is one of the fields that there is room for");
    ok(strstr(take_error(cx), "has 9 fields, more than 8") != NULL, "and counted");
    et_dataset_close(&s.data);
    f->wants_attention_mask = false;
    is_int(et_dataset_open(cx, &of_samples, &s.options, &s.data), ET_OK,
           "all others may be there without it");
    end(&s);
}

/* A sample that is not as its data set says ends the run. */
static struct {
    int64_t at, h, w;
} odd;

static et_status
read_small(const struct et_dataset *self, int64_t at, struct et_sample *out,
           struct et_error *why)
{
    static const uint8_t pixels[16];
    (void)self;
    (void)why;
    out->v[0].pixels =
        et_pixels_hwc(pixels, 1, at == odd.at ? odd.h : 4, at == odd.at ? odd.w : 4);
    et_sample_number(out, 1, 0);
    return ET_OK;
}

static void
test_other_size(void)
{
    static const struct {
        int64_t side, h, w; /* side: what the data set says */
    } rows[] = {{4, 3, 4}, {4, 4, 3}, {4, 5, 4}, {4, 4, 5}, {-1, 0, 4}, {-1, 4, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct setup s = setup(4);
        const struct et_batch *b;
        made = (struct made){.sample = read_small};
        odd.at = 2;
        odd.h = rows[i].h;
        odd.w = rows[i].w;
        s.options.common.max_corrupt = 0.9;
        need(cx, et_options_set(cx, table, &s.options, "transforms",
                                "[resize: {size: 4}]"));
        et_facts_images(&made.facts, 4, 1, rows[i].side, rows[i].side, 1);
        begin(&s);
        is_int(et_loader_next(cx, s.loader, &b), ET_EINVAL,
               "an image of %d x %d, of a data set of %d, ends the run", (int)odd.h,
               (int)odd.w, (int)rows[i].side);
        ok(strstr(take_error(cx), "made: sample 2 has a 'image' of another size") !=
               NULL,
           "with its number");
        end(&s);
    }
}

/* What stands for samples that cannot be read is as the data set says, whatever that
 * is. */
static et_status
read_zeros(const struct et_dataset *self, int64_t at, struct et_sample *out,
           struct et_error *why)
{
    (void)at;
    (void)why;
    for (int i = 0; i < self->facts.n_fields; i++)
        if (eti_sample_zero(out, i) != ET_OK)
            return ET_ENOMEM;
    return ET_OK;
}

static void
test_zeros(void)
{
    struct et_rng r = et_rng_at(11, ET_RNG_DATA, 0);
    int wrong = 0;
    for (int k = 0; k < 50; k++) {
        const int64_t C = 1 + (int64_t)et_rng_below(&r, 4),
                      h = 1 + (int64_t)et_rng_below(&r, 9),
                      w = 1 + (int64_t)et_rng_below(&r, 9);
        const struct et_field all[] = {
            FIELD("image", ET_FIELD_IMAGE, ET_U8, 3, C, h, w),
            FIELD("target", ET_FIELD_MASK, ET_U8, 2, h, w),
            FIELD("values", ET_FIELD_VALUES, ET_F64, 2, w, h),
            FIELD("tokens", ET_FIELD_TOKENS, ET_I32, 1, w),
        };
        struct setup s = setup(1);
        made = (struct made){.sample = read_zeros, .facts = {.n_samples = 1}};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            et_facts_add(&made.facts, &all[i]);
        begin(&s);
        const struct et_batch *b = next(&s);
        for (int f = 0; f < 4; f++) {
            const struct et_desc *d = &b->field[f].desc;
            for (int a = 0; a < all[f].ndim; a++)
                wrong += d->shape[a + 1] != all[f].shape[a];
            for (int64_t i = 0; i < et_desc_count(d); i++)
                wrong += b->field[f].host.i32[i] != 0;
        }
        et_loader_release(s.loader, b);
        end(&s);
    }
    is_int(wrong, 0, "a sample of zeros is one of its data set, of any shape");
}

/* Whole numbers of 64 bits become 32, or are said not to fit. */
static void
test_whole_numbers(void)
{
    static const struct {
        int64_t number;
        bool fits;
    } rows[] = {{INT64_MIN, false}, {(int64_t)INT32_MIN - 1, false},
                {INT32_MIN, true},  {-1, true},
                {INT32_MAX, true},  {INT32_MAX + 1LL, false},
                {1LL << 32, false}, {INT64_MAX, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t both[] = {7, rows[i].number};
        int32_t out[2] = {0};
        const bool fits = eti_convert(both, ET_I64, 2, ET_I32, out);
        ok(fits == rows[i].fits && (!fits || (out[0] == 7 && out[1] == both[1])),
           "%lld %s 32 bits", (long long)both[1], fits ? "fits" : "does not fit");
    }
}

int
main(void)
{
    struct et_device *dev;
    cx = need_ctx();
    need(cx, et_device_open(cx, test_device(NULL), 0, 1, &dev));
    test_kinds(NULL);
    test_kinds(dev);
    test_resized();
    test_sizes();
    test_padding(NULL);
    test_padding(dev);
    test_too_long();
    test_order_of_buckets();
    test_buckets();
    test_refused();
    test_counted();
    test_other_size();
    test_zeros();
    test_whole_numbers();
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
