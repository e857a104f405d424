/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of samples and of batches: numbers of each type, the bytes of a data set, the
 * lengths of batches, the tokens that ranks are told, and what is logged of samples
 * that are skipped. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/data/fields.h"
#include "core/data/loader_impl.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- numbers of each type ---- */

static void
test_halves(void)
{
    static const struct {
        enum et_dtype type;
        uint16_t bits;
        float want;
    } rows[] = {
        {ET_F16, 0x0000, 0},          {ET_F16, 0x3e00, 1.5F},
        {ET_F16, 0xc080, -2.25F},     {ET_F16, 0x7bff, 65504},
        {ET_F16, 0xfbff, -65504},     {ET_F16, 0x0400, 0x1p-14F},
        {ET_F16, 0x0001, 0x1p-24F},   {ET_F16, 0x83ff, -0x3ffp-24F},
        {ET_F16, 0x7c00, INFINITY},   {ET_F16, 0xfc00, -INFINITY},
        {ET_F16, 0x7e01, NAN},        {ET_BF16, 0x3fc0, 1.5F},
        {ET_BF16, 0xc020, -2.5F},     {ET_BF16, 0x7f80, INFINITY},
        {ET_BF16, 0x0001, 0x1p-133F},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint16_t two[] = {0x3c00, rows[i].bits};
        float out[2] = {0};
        bool same = eti_convert(two, rows[i].type, 2, ET_F32, out);
        same = same && (isnan(rows[i].want) ? isnan(out[1]) : out[1] == rows[i].want);
        ok(same, "the 16-bit number %04x, of type %d, becomes %g", rows[i].bits,
           (int)rows[i].type, (double)rows[i].want);
    }
    static const uint8_t bytes[] = {0, 127, 128, 255};
    static const double doubles[] = {0.1, -1e30, 3};
    int32_t whole[4];
    float floats[3];
    ok(eti_convert(bytes, ET_U8, 4, ET_I32, whole) && whole[0] == 0 &&
           whole[1] == 127 && whole[2] == 128 && whole[3] == 255,
       "bytes become whole numbers, none of them negative");
    ok(eti_convert(doubles, ET_F64, 3, ET_F32, floats) && floats[0] == 0.1F &&
           floats[1] == -1e30F && floats[2] == 3,
       "numbers of 64 bits are rounded to 32");
}

/* A label of each type, made from a number that this type can hold. */
static void
test_labels(void)
{
    static const struct {
        enum et_dtype type;
        double number;
    } rows[] = {{ET_F32, 0.25},   {ET_F64, 0.1}, {ET_I32, -7},
                {ET_I64, 0x1p40}, {ET_U8, 200},  {ET_F16, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_data_facts f = {.n_fields = 2};
        struct eti_room room = {0};
        struct et_sample s = {.facts = &f, .room = &room};
        f.field[1] = (struct et_field){.dtype = rows[i].type};
        s.v[1].data = &f;
        et_sample_number(&s, 1, rows[i].number);
        const void *got = s.v[1].data;
        double v = !got                     ? NAN
                   : rows[i].type == ET_F32 ? (double)*(const float *)got
                   : rows[i].type == ET_F64 ? *(const double *)got
                   : rows[i].type == ET_I32 ? *(const int32_t *)got
                   : rows[i].type == ET_I64 ? (double)*(const int64_t *)got
                                            : *(const uint8_t *)got;
        ok(rows[i].type == ET_F16 ? !got : v == rows[i].number,
           "a label of type %d is made from %g, except in f16", (int)rows[i].type,
           rows[i].number);
        eti_room_free(&room);
    }
}

/* ---- the bytes of a data set ---- */

static void
test_facts(void)
{
    struct et_data_facts f;
    et_facts_images(&f, 7, 3, 5, 11, 4);
    ok(f.n_samples == 7 && f.bytes == 7 * 3 * 5 * 11 && f.field[1].below == 4,
       "a data set of images counts a byte for each value");
    et_facts_images(&f, 7, 3, -1, -1, 4);
    is_int(f.bytes, 0,
           "a data set of images of many sizes has no known number of bytes");
    et_facts_stream(&f, 9, 50);
    ok(f.n_tokens == 9 && f.bytes == 36 && f.field[0].below == 50 &&
           f.field[1].below == 50,
       "a token takes four bytes, and inputs and targets are below the vocabulary's "
       "size");
    struct et_field one = {.ndim = 3, .shape = {2, 3, 7}};
    is_int(eti_field_count(&one), 42,
           "the numbers of a field are the product of its axes");
    one.shape[1] = -1;
    is_int(eti_field_count(&one), -1,
           "a field with an axis that differs by sample has no known count");
}

static void
test_found(void)
{
    static double some[4]; /* addresses only; nothing is read from them */
    struct et_tensor *const t[] = {(void *)&some[0], (void *)&some[1], (void *)&some[2],
                                   (void *)&some[3]};
    const struct et_samples s = {.x = t[0],
                                 .target = t[1],
                                 .other = {{"one", t[2]}, {"two", t[3]}},
                                 .n_others = 2};
    ok(et_samples_find(&s, "target") == t[1] && et_samples_find(&s, "one") == t[2] &&
           et_samples_find(&s, "two") == t[3] && !et_samples_find(&s, "x"),
       "fields of a batch are found by their names");
}

/* ---- a data set made for these tests ---- */

static struct {
    int64_t (*length)(int64_t at);
    int32_t last_target; /* the last target of sample 2 */
    int64_t mask[2];     /* height and width of the mask of a picture of 4 x 6 */
} made;

static int64_t
length_of(const struct et_dataset *self, int64_t at)
{
    (void)self;
    return made.length(at);
}

static et_status
open_sequences(struct et_ctx *c, struct et_dataset *self)
{
    struct et_field f = {.name = "tokens",
                         .kind = ET_FIELD_TOKENS,
                         .dtype = ET_I32,
                         .ndim = 1,
                         .shape = {-1},
                         .below = 2000};
    (void)c;
    self->facts = (struct et_data_facts){
        .n_samples = ((const struct counted_options *)self->options)->n};
    et_facts_add(&self->facts, &f);
    f.name = "target";
    et_facts_add(&self->facts, &f);
    return ET_OK;
}

static et_status
read_sequence(const struct et_dataset *self, int64_t at, struct et_sample *out,
              struct et_error *why)
{
    const int64_t n = made.length(at);
    (void)self;
    (void)why;
    for (int k = 0; k < 2; k++) {
        int32_t *v = et_sample_room(out, k, (size_t)n * sizeof *v);
        for (int64_t i = 0; i < n; i++)
            v[i] = k ? 1 : (int32_t)at;
        if (k)
            v[n - 1] = at == 2 ? made.last_target : 1;
        out->v[k].data = v;
        out->v[k].shape[0] = n;
    }
    return ET_OK;
}

static const struct et_dataset_class sequences = {
    .info = {.name = "sequences", .options_size = sizeof(struct counted_options)},
    .open = open_sequences,
    .sample = read_sequence,
    .length = length_of,
};

static struct et_loader *
loader_of(struct counted_options *o, const struct et_loader_config *config,
          struct et_dataset **data)
{
    struct et_loader *l;
    o->common.shuffle = false;
    o->common.workers = 0;
    need(cx, et_dataset_open(cx, &sequences, o, data));
    need(cx, et_loader_new(cx, *data, config, &l));
    return l;
}

static int64_t
rising(int64_t at)
{
    return 1 + at;
}

/* Batches of one sample each, of every length up to seq_len: how long they become. */
static void
test_lengths(void)
{
    static const struct {
        int64_t seq_len, multiple, step;
    } rows[] = {{16, 1, 1},  {17, 1, 2},   {32, 1, 2},   {33, 1, 3},
                {23, 8, 8},  {640, 4, 40}, {641, 4, 44}, {647, 8, 48},
                {100, 7, 7}, {120, 9, 9},  {5, 64, 64},  {20, 0, 2}};
    made.length = rising;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t most = rows[i].seq_len, step = rows[i].step;
        struct counted_options o = {.common = common_options(1), .n = most};
        struct et_dataset *data;
        int64_t wrong = 0, different = 0, before = 0;
        o.common.seq_len = most;
        o.common.pad_to_multiple = rows[i].multiple;
        struct et_loader *l = loader_of(&o, &(struct et_loader_config){0}, &data);
        for (int64_t at = 0; at < most; at++) {
            const struct et_batch *b;
            need(cx, et_loader_next(cx, l, &b));
            const int64_t n = (at + step) / step * step, T = n < most ? n : most;
            wrong += b->field[0].desc.shape[1] != T || b->field[1].desc.shape[1] != T;
            different += T != before;
            before = T;
            et_loader_release(l, b);
        }
        ok(wrong == 0 && different <= 16,
           "samples of up to %d tokens, padded to multiples of %d, make batches of %d "
           "lengths",
           (int)most, (int)rows[i].multiple, (int)different);
        et_loader_free(&l);
        et_dataset_close(&data);
    }
}

static int64_t
of_all_sizes(int64_t at)
{
    return 1 + at * at % 13;
}

/* Three ranks whose samples differ in length: each is told its own tokens and the sum
 * of all. */
static void
test_told(void)
{
    enum { N = 22, BATCH = 9, RANKS = 3 };
    made.length = of_all_sizes;
    made.last_target = 1;
    int64_t own[3] = {0}, wrong = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        struct counted_options o = {.common = common_options(BATCH), .n = N};
        struct et_dataset *data;
        struct et_loader_info info;
        const struct et_batch *b;
        o.common.seq_len = 13;
        struct et_loader *l = loader_of(
            &o, &(struct et_loader_config){.rank = rank, .world_size = RANKS}, &data);
        et_loader_get_info(l, &info);
        wrong += info.batch_size != BATCH || info.batches_per_epoch != 3 ||
                 info.samples_per_epoch != N || info.desc[0].shape[0] != BATCH / RANKS;
        for (int k = 0; k < 3; k++) {
            int64_t all = 0, mine = 0;
            need(cx, et_loader_next(cx, l, &b));
            for (int64_t at = BATCH * k; at < N && at < BATCH * (k + 1); at++)
                all += of_all_sizes(at);
            for (int64_t i = 0; i < b->n_samples; i++)
                mine += of_all_sizes(b->first + i);
            wrong += b->all_tokens != all || b->n_tokens != mine || b->spare;
            own[k] += all - RANKS * mine;
            et_loader_release(l, b);
        }
        et_loader_free(&l);
        et_dataset_close(&data);
    }
    ok(wrong == 0,
       "each of three ranks is told its own tokens and those of the whole batch");
    ok(own[0] == 0 && own[1] == 0 && own[2] == 0,
       "the tokens of three ranks add up to those of the whole batch");
}

static int64_t
falling(int64_t at)
{
    return 40 - at;
}

/* Writes the samples that an epoch shows, in batches of SIZE sorted by length; returns
 * how many. */
static int
bucketed(int64_t size, int64_t subset, bool shuffle, int64_t epoch, int32_t out[40])
{
    struct counted_options o = {.common = common_options(size), .n = 40};
    struct et_dataset *data;
    struct et_loader *l;
    const struct et_batch *b;
    int n = 0;
    o.common.seq_len = 40;
    o.common.workers = 0;
    o.common.bucket = true;
    o.common.shuffle = shuffle;
    o.common.subset_num_batches = subset;
    need(cx, et_dataset_open(cx, &sequences, &o, &data));
    need(cx, et_loader_new(cx, data, &(struct et_loader_config){.train = true}, &l));
    need(cx, et_loader_seek(cx, l, epoch, 0));
    for (;;) {
        need(cx, et_loader_next(cx, l, &b));
        if (!b)
            break;
        for (int64_t i = 0; i < b->n_samples; i++)
            out[n++] = b->field[0].host.i32[i * b->field[0].desc.shape[1]];
        et_loader_release(l, b);
    }
    et_loader_free(&l);
    et_dataset_close(&data);
    return n;
}

static void
test_buckets(void)
{
    int32_t one[40], two[40];
    made.length = falling;
    int n = bucketed(3, 2, false, 0, one), wrong = n != 6;
    for (int i = 0; i < n && i < 6; i++)
        wrong += one[i] != 5 - i;
    is_int(wrong, 0, "bucketing by length sorts the samples of this epoch alone");
    n = bucketed(1, -1, true, 1, one);
    wrong = n != 40 || bucketed(1, -1, true, 2, two) != 40;
    ok(!wrong && memcmp(one, two, sizeof one) != 0,
       "bucketed batches come in another order in each epoch");
}

/* A batch in which only the last target may be negative. */
static void
test_masked(void)
{
    made.length = rising;
    for (int32_t target = 0; target >= -100; target -= 100) {
        struct counted_options o = {.common = common_options(3), .n = 3};
        struct et_dataset *data;
        const struct et_batch *b;
        o.common.seq_len = 3;
        made.last_target = target;
        struct et_loader *l = loader_of(&o, &(struct et_loader_config){0}, &data);
        need(cx, et_loader_next(cx, l, &b));
        ok(eti_batch_is_masked(b) == (target < 0), "a batch with a target of %d %s",
           (int)target, target < 0 ? "is known to be masked" : "is not masked");
        et_loader_release(l, b);
        et_loader_free(&l);
        et_dataset_close(&data);
    }
}

/* ---- samples that are skipped ---- */

struct heard {
    int named, rest, of_rank;
    char last[256];
};

static void
hear(void *data, enum et_log_level level, const char *text)
{
    struct heard *h = data;
    if (level != ET_LOG_WARN)
        return;
    h->of_rank += strncmp(text, "rank 1: ", 8) == 0;
    h->named += strstr(text, "img/") != NULL;
    h->rest += strstr(text, " other samples of the batch were skipped") != NULL;
    snprintf(h->last, sizeof h->last, "%s", text);
}

/* Every second sample cannot be read: eight of a batch are named, the others counted.
 */
static void
test_many_unreadable(void)
{
    static const struct {
        int64_t size;
        int ranks, named;
        const char *rest;
    } rows[] = {{14, 1, 7, NULL},
                {16, 1, 8, NULL},
                {18, 1, 8, "and 1 other samples of the batch were skipped"},
                {44, 2, 8, "rank 1: and 3 other samples of the batch were skipped"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct counted_loader s = counted_loader(cx, 44, rows[i].size, 1, NULL);
        struct heard h = {0};
        s.options.bad_every = 2;
        s.options.common.max_corrupt = 0.6;
        s.config.world_size = rows[i].ranks;
        s.config.rank = rows[i].ranks - 1;
        need(cx, counted_begin(cx, &s));
        et_ctx_set_log(cx, ET_LOG_WARN, hear, &h);
        const struct et_batch *b = counted_next(cx, &s);
        et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
        ok(h.named == rows[i].named && h.rest == (rows[i].rest != NULL) &&
               h.of_rank == (rows[i].ranks > 1 ? h.named + h.rest : 0),
           "of %d samples of a batch that cannot be read %d are named",
           (int)(rows[i].size / rows[i].ranks / 2), h.named);
        if (rows[i].rest)
            is_str(h.last, rows[i].rest,
                   "the unreadable samples that are not named are counted");
        et_loader_release(s.loader, b);
        counted_end(&s);
    }
}

/* ---- masks ---- */

static et_status
open_masks(struct et_ctx *c, struct et_dataset *self)
{
    (void)c;
    et_facts_images(&self->facts, 2, 1, -1, -1, 3);
    self->facts.field[1] = (struct et_field){.name = "target",
                                             .kind = ET_FIELD_MASK,
                                             .dtype = ET_U8,
                                             .ndim = 2,
                                             .shape = {-1, -1},
                                             .below = 3};
    return ET_OK;
}

static et_status
read_mask(const struct et_dataset *self, int64_t at, struct et_sample *out,
          struct et_error *why)
{
    static const uint8_t zeros[64];
    (void)self;
    (void)at;
    (void)why;
    out->v[0].pixels = et_pixels_hwc(zeros, 1, 4, 6);
    out->v[1].pixels = et_pixels_hwc(zeros, 1, made.mask[0], made.mask[1]);
    return ET_OK;
}

/* A mask must be as large as its picture, in both directions. */
static void
test_mask_sizes(void)
{
    static const struct et_dataset_class masks = {
        .info = {.name = "masks", .options_size = sizeof(struct counted_options)},
        .open = open_masks,
        .sample = read_mask,
    };
    static const int64_t sizes[][2] = {{4, 6}, {3, 6}, {4, 7}, {6, 4}, {5, 6}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct counted_options o = {.common = common_options(1)};
        struct et_dataset *data;
        struct et_loader *l;
        const struct et_batch *b;
        char want[128];
        memcpy(made.mask, sizes[i], sizeof made.mask);
        o.common.shuffle = false;
        o.common.workers = 0;
        o.common.max_corrupt = 0;
        o.common.resolution = 4;
        need(cx, et_dataset_open(cx, &masks, &o, &data));
        need(cx, et_loader_new(cx, data, &(struct et_loader_config){0}, &l));
        et_status status = et_loader_next(cx, l, &b);
        snprintf(want, sizeof want,
                 "a mask of %d x %d pixels for a picture of 6 x 4 (sample 0",
                 (int)sizes[i][1], (int)sizes[i][0]);
        if (i == 0)
            is_int(status, ET_OK, "a mask as large as its picture is taken");
        else
            ok(status == ET_EFORMAT && strstr(take_error(cx), want),
               "a mask of another size is refused: %s", want);
        if (status == ET_OK)
            et_loader_release(l, b);
        et_loader_free(&l);
        et_dataset_close(&data);
    }
}

int
main(void)
{
    cx = need_ctx();
    test_halves();
    test_labels();
    test_facts();
    test_found();
    test_lengths();
    test_told();
    test_buckets();
    test_masked();
    test_many_unreadable();
    test_mask_sizes();
    et_ctx_free(&cx);
    return done();
}
