/* SPDX-License-Identifier: Apache-2.0 */
/* What data are known again by, what happens to a file under a run, where windows and
 * evaluations end, what ranks are told, and other places where one more or one less
 * would go unseen. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/checkpoint/archive.h"
#include "core/data/file.h"
#include "core/data/loader_impl.h"
#include "core/data/stand_in.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- a data set in memory ---- */

enum { MOST = 300, PIXELS = 2 * 3 * 4 };

static struct held {
    uint8_t pixels[MOST][PIXELS];
    int32_t label[MOST], token[MOST];
    int64_t looks; /* at images */
    pthread_mutex_t lock;
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

static et_status
held_image(const struct et_dataset *self, int64_t at, struct et_sample *out,
           struct et_error *why)
{
    const int64_t *n = self->facts.field[0].shape;
    (void)why;
    pthread_mutex_lock(&held.lock);
    held.looks++;
    pthread_mutex_unlock(&held.lock);
    out->v[0].pixels = et_pixels_chw(held.pixels[at], (int)n[0], n[1], n[2]);
    out->v[1].data = &held.label[at];
    return ET_OK;
}

static et_status
held_tokens(const struct et_dataset *self, int64_t at, int64_t n, int32_t *out,
            struct et_error *why)
{
    (void)why;
    if (at < 0 || at + n > self->facts.n_tokens)
        return ET_EINTERNAL;
    memcpy(out, held.token + at, (size_t)n * sizeof *out);
    return ET_OK;
}

static const struct et_dataset_class images_class = {.info = {.name = "held"},
                                                     .sample = held_image};
static const struct et_dataset_class tokens_class = {.info = {.name = "held"},
                                                     .tokens = held_tokens};

static void
fill_held(void)
{
    for (int i = 0; i < MOST; i++) {
        held.label[i] = i % 10;
        held.token[i] = i;
        for (int k = 0; k < PIXELS; k++)
            held.pixels[i][k] = (uint8_t)(5 * i + k);
    }
}

static struct et_dataset
images_of(int64_t n, struct et_data_options *common)
{
    struct et_dataset set = {
        .type = &images_class, .cx = cx, .common = common, .options = common};
    et_facts_images(&set.facts, n, 2, 3, 4, 10);
    return set;
}

static struct et_dataset
tokens_of(int64_t n, struct et_data_options *common)
{
    struct et_dataset set = {
        .type = &tokens_class, .cx = cx, .common = common, .options = common};
    et_facts_stream(&set.facts, n, MOST);
    set.facts.field[0].shape[0] = set.facts.field[1].shape[0] = common->seq_len;
    return set;
}

/* ---- fingerprints ---- */

static uint64_t
fingerprint(const struct et_dataset *set)
{
    uint64_t h;
    need(cx, eti_data_fingerprint(cx, set, &h));
    return h;
}

static void
test_fingerprints(void)
{
    struct et_data_options common = common_options(4);
    static const int64_t sizes[] = {1, 2, 63, 64};
    fill_held();
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct et_dataset set = images_of(sizes[s], &common);
        uint64_t h = fingerprint(&set);
        int same = fingerprint(&set) != h;
        for (int64_t i = 0; i < sizes[s]; i++) {
            held.label[i]++;
            same += fingerprint(&set) == h;
            held.label[i]--;
            held.pixels[i][PIXELS - 1]++;
            same += fingerprint(&set) == h;
            held.pixels[i][PIXELS - 1]--;
        }
        is_int(same, 0, "of %d images each counts, its label and its last byte",
               (int)sizes[s]);
    }
    struct et_dataset many = images_of(MOST, &common);
    uint64_t h = fingerprint(&many);
    held.label[MOST - 1]++;
    ok(fingerprint(&many) != h, "of more images the last one does");
    fill_held();
    held.label[0]++;
    ok(fingerprint(&many) != h, "and the first");
    fill_held();
    struct et_dataset words = tokens_of(MOST, &common);
    h = fingerprint(&words);
    int same = 0;
    for (int i = 0; i < MOST; i++) {
        held.token[i]++;
        same += fingerprint(&words) == h;
        held.token[i]--;
    }
    is_int(same, 0, "of %d tokens each counts", MOST);
    struct et_data_facts *f = &many.facts;
    int64_t *const counts[] = {&f->n_samples, &words.facts.n_tokens};
    int64_t *const sides = f->field[0].shape;
    h = fingerprint(&many);
    --*counts[0];
    ok(fingerprint(&many) != h, "how many images there are does");
    ++*counts[0];
    for (int i = 0; i < 3; i++) {
        --sides[i];
        ok(fingerprint(&many) != h, "and what they measure: %d", i);
        ++sides[i];
    }
    h = fingerprint(&words);
    --*counts[1];
    ok(fingerprint(&words) != h, "and how many tokens");
}

/* ---- files ---- */

static void
test_sizes(void)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 bytes"},
        {1023, "1023 bytes"},
        {1024, "1.0 KiB"},
        {1048524, "1023.9 KiB"},
        {1048576, "1.0 MiB"},
        {INT64_C(1) << 30, "1.0 GiB"},
        {INT64_C(1) << 40, "1.0 TiB"},
        {INT64_C(1) << 50, "1024.0 TiB"},
    };
    char text[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_str(eti_size_text(rows[i].bytes, text, sizeof text), rows[i].text,
               "%lld bytes", (long long)rows[i].bytes);
}

/* A token file of 200 bytes, opened as the data set text_bytes. */
struct text {
    char path[600];
    void *options;
    struct et_dataset *data;
};

static struct text
open_text(const char *name)
{
    static char bytes[200];
    const struct et_dataset_class *type = et_dataset_find("text_bytes");
    struct text t;
    memset(bytes, 'a', sizeof bytes);
    snprintf(t.path, sizeof t.path, "%s", write_file(name, bytes, sizeof bytes, false));
    t.options = calloc(1, type->info.options_size);
    need(cx, et_options_init(cx, type->info.options, t.options));
    need(cx, et_options_set(cx, type->info.options, t.options, "path", t.path));
    need(cx, et_options_set(cx, type->info.options, t.options, "seq_len", "4"));
    need(cx, et_dataset_open(cx, type, t.options, &t.data));
    return t;
}

static void
close_text(struct text *t)
{
    const struct et_dataset_class *type = t->data->type;
    et_dataset_close(&t->data);
    et_options_release(type->info.options, t->options);
    free(t->options);
}

enum change { NOTHING, GROWN, CUT, TOUCHED, REMOVED, REPLACED, CLOSED };

/* The descriptor that the file of T is open as. */
static int
descriptor_of(const struct text *t)
{
    struct stat want, st;
    if (stat(t->path, &want) != 0)
        bail("cannot find %s", t->path);
    for (int fd = 3; fd < 1024; fd++)
        if (fstat(fd, &st) == 0 && st.st_ino == want.st_ino && st.st_dev == want.st_dev)
            return fd;
    bail("%s is not open", t->path);
}

static void
change(const struct text *t, enum change how)
{
    static const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    FILE *f;
    switch (how) {
    case GROWN:
        f = fopen(t->path, "a");
        if (!f || fputc('b', f) == EOF || fclose(f) != 0)
            bail("cannot write %s", t->path);
        break;
    case CUT:
        if (truncate(t->path, 199) != 0)
            bail("cannot cut %s", t->path);
        break;
    case TOUCHED:
        if (utimensat(-1, t->path, times, 0) != 0)
            bail("cannot date %s", t->path);
        break;
    case REMOVED:
        remove(t->path);
        break;
    case REPLACED:
        remove(t->path);
        write_file(strrchr(t->path, '/') + 1, "other", 5, false);
        break;
    case CLOSED:
        close(descriptor_of(t));
        break;
    default:
        break;
    }
}

static void
test_changes(void)
{
    static const struct {
        const char *what, *says;
        enum change how;
    } rows[] = {
        {"left alone", NULL, NOTHING},
        {"that grows", "grew from 200 bytes to 201 bytes", GROWN},
        {"that shrinks", "shrank from 200 bytes to 199 bytes", CUT},
        {"that is written to", "was changed while training", TOUCHED},
        {"that is removed", "was removed or replaced while training", REMOVED},
        {"that is replaced", "was removed or replaced while training", REPLACED},
        {"that cannot be read", "cannot read ", CLOSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text t = open_text("text");
        struct et_error why = {0};
        int32_t out[8];
        need(cx, t.data->type->tokens(t.data, 0, 8, out, &why));
        change(&t, rows[i].how);
        et_status status = t.data->type->tokens(t.data, 0, 8, out, &why);
        ok(status == (rows[i].says ? ET_EIO : ET_OK) &&
               (!rows[i].says || strstr(why.message, rows[i].says)),
           "a file %s %s", rows[i].what, rows[i].says ? "is an error" : "is read on");
        ok(t.data->type->tokens(t.data, 0, 0, out, &why) == status,
           "also where no token is asked for");
        close_text(&t);
    }
}

/* ---- loaders ---- */

static struct et_loader *
loader_of(struct et_dataset *set, const struct et_loader_config *config)
{
    struct et_loader *l;
    need(cx, et_loader_new(cx, set, config, &l));
    return l;
}

/* Every window of many epochs, of texts that end just behind one or just before. */
static void
test_windows(void)
{
    fill_held();
    for (int64_t n = 5; n <= 16; n++) {
        int64_t w = (n - 4) / 4 > 1 ? (n - 4) / 4 : 1;
        int64_t end = 4 * w + (n - 4 * w < 4 ? n - 4 * w : 4) - 1;
        struct et_data_options common = common_options(2);
        common.seq_len = 4;
        struct et_dataset set = tokens_of(n, &common);
        struct et_loader *l =
            loader_of(&set, &(struct et_loader_config){.seed = 3, .train = true});
        int wrong = 0, first = MOST, last = 0;
        for (int k = 0; k < 400; k++) {
            const struct et_batch *b;
            if (et_loader_next(cx, l, &b) != ET_OK)
                bail("%s", et_error_get(cx)->message);
            for (int64_t i = 0; b && i < b->n_samples * 4; i++) {
                const int32_t *x = b->field[0].host.any;
                wrong += b->field[1].host.i32[i] != x[i] + 1;
                first = x[i] < first ? x[i] : first;
                last = b->field[1].host.i32[i] > last ? b->field[1].host.i32[i] : last;
            }
            et_loader_release(l, b);
        }
        ok(wrong == 0 && first == 0 && last == end,
           "of %d tokens windows of 4 see the first and predict the last (%d to %d)",
           (int)n, first, last);
        et_loader_free(&l);
    }
}

/* Two ranks of a batch of three windows: each is told its own and all tokens. */
static void
test_told(void)
{
    struct et_data_options common = common_options(4);
    common.seq_len = 5;
    common.shuffle = false;
    struct et_dataset set = tokens_of(16, &common);
    int64_t own = 0;
    for (int rank = 0; rank < 2; rank++) {
        struct et_loader *l =
            loader_of(&set, &(struct et_loader_config){.rank = rank, .world_size = 2});
        const struct et_batch *b;
        need(cx, et_loader_next(cx, l, &b));
        ok(b->all_samples == 3 && b->all_tokens == 15 &&
               b->n_tokens == 5 * b->n_samples,
           "rank %d has %d of 15 tokens", rank, (int)b->n_tokens);
        own += b->n_tokens;
        et_loader_release(l, b);
        et_loader_free(&l);
    }
    is_int(own, 15, "together they have all");
}

/* An evaluation is read to its end, and not into the next one, however many workers
 * have nothing to do. The next one reads on. */
static void
test_evaluation(void)
{
    for (int workers = 0; workers <= 3; workers++) {
        struct et_data_options common = common_options(5);
        common.workers = workers;
        common.shuffle = false;
        struct et_dataset set = images_of(20, &common);
        struct et_loader *l = loader_of(&set, &(struct et_loader_config){0});
        held.looks = 0;
        for (int epoch = 1; epoch <= 2; epoch++) {
            const struct et_batch *b;
            int n = 0;
            do {
                need(cx, et_loader_next(cx, l, &b));
                n += b ? (int)b->n_samples : 0;
                et_loader_release(l, b);
            } while (b);
            pthread_mutex_lock(&held.lock);
            int looks = held.looks;
            pthread_mutex_unlock(&held.lock);
            pthread_mutex_lock(&l->lock);
            ok(n == 20 && looks == 20 * epoch && l->claim <= l->limit &&
                   l->limit <= epoch * l->batches,
               "%d workers: evaluation %d looks at %d images and no further", workers,
               epoch, 20 * epoch);
            pthread_mutex_unlock(&l->lock);
        }
        et_loader_free(&l);
    }
}

/* A resumed loader knows which samples could not be read, up to as many as there may
 * be. */
static void
test_unreadable(void)
{
    struct counted_options o = {.common = common_options(10), .n = 100, .C = 1};
    struct et_dataset *data;
    struct et_loader *first, *second;
    struct et_loader_info info;
    struct et_archive a = {0};
    const struct et_batch *b;
    int64_t *list, n;
    o.bad_every = 50;
    o.common.max_corrupt = 0.02;
    o.common.shuffle = false;
    need(cx, et_dataset_open(cx, &counted_images, &o, &data));
    first = loader_of(data, &(struct et_loader_config){.train = true});
    do {
        need(cx, et_loader_next(cx, first, &b));
        et_loader_release(first, b);
    } while (b);
    eti_archive_begin(&a, cx);
    need(cx, eti_loader_archive(first, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    a.source = "memory";
    second = loader_of(data, &(struct et_loader_config){.train = true});
    a.mode = ET_ARCHIVE_CHECK;
    need(cx, eti_loader_archive(second, &a));
    et_loader_get_info(second, &info);
    is_int(info.corrupt, 0, "checking a checkpoint changes nothing");
    a.mode = ET_ARCHIVE_LOAD;
    need(cx, eti_loader_archive(second, &a));
    et_loader_get_info(second, &info);
    need(cx, eti_loader_unreadable(second, &list, &n));
    ok(info.corrupt == 2 && n == 2 && list[0] == 49 && list[1] == 99,
       "what could not be read is known again");
    et_free(cx, list);
    do {
        need(cx, et_loader_next(cx, second, &b));
        et_loader_release(second, b);
    } while (b);
    et_loader_get_info(second, &info);
    is_int(info.corrupt, 2, "and counts no second time");
    et_loader_free(&first);
    et_loader_free(&second);
    et_dataset_close(&data);
    eti_archive_release(&a);
}

/* Samples whose successor cannot be read either, up to the last and round to the
 * first. */
static void
test_next_readable(void)
{
    struct counted_options o = {.common = common_options(10), .n = 10, .C = 1};
    struct et_dataset *data;
    const struct et_batch *b;
    o.bad_every = 10;
    o.common.max_corrupt = 0.1;
    o.common.shuffle = false;
    need(cx, et_dataset_open(cx, &counted_images, &o, &data));
    struct et_loader *l = loader_of(data, &(struct et_loader_config){.train = true});
    need(cx, et_loader_next(cx, l, &b));
    ok(b->n_samples == 10 && b->field[1].host.i32[8] == 8 &&
           b->field[1].host.i32[9] == 0,
       "in place of the last one the first is shown");
    et_loader_release(l, b);
    et_loader_free(&l);
    et_dataset_close(&data);
}

/* ---- transforms ---- */

static const struct et_option transforms_table[] = {
    ET_DATA_IMAGE_OPTIONS(struct counted_options),
    {.name = NULL},
};

/* The first image of a loader with TRANSFORMS, of which number OFF is switched off (-1:
 * none), into OUT; its elements, or 0 where the loader is refused. */
static int
first_image(const char *transforms, int off, int64_t resolution, float *out)
{
    struct counted_options o = {.common = common_options(1), .n = 3, .C = 1};
    struct et_dataset *data;
    struct et_loader *l;
    const struct et_batch *b;
    int n = 0;
    o.common.shuffle = false;
    o.common.resolution = resolution;
    need(cx, et_options_set(cx, transforms_table, &o, "transforms", transforms));
    if (off >= 0)
        o.common.transforms.v[off].off = true;
    need(cx, et_dataset_open(cx, &counted_images, &o, &data));
    if (et_loader_new(cx, data, &(struct et_loader_config){.seed = 1}, &l) == ET_OK) {
        need(cx, et_loader_next(cx, l, &b));
        n = (int)et_desc_count(&b->field[0].desc);
        memcpy(out, b->field[0].host.any, et_desc_bytes(&b->field[0].desc));
        et_loader_release(l, b);
    }
    et_loader_free(&l);
    et_dataset_close(&data);
    et_options_release(transforms_table, &o);
    return n;
}

static void
test_transforms(void)
{
    float plain[48], once[48], twice[48], got[144];
    first_image("[]", -1, 0, plain);
    is_int(first_image("[horizontal_flip: {p: 1}]", -1, 0, once), 48,
           "an image is flipped");
    ok(memcmp(plain, once, sizeof once) != 0 && once[0] == plain[7],
       "its last is first");
    first_image("[horizontal_flip: {p: 1}, horizontal_flip: {p: 1}]", -1, 0, twice);
    ok(memcmp(plain, twice, sizeof twice) == 0, "flipped twice it is as it was");
    first_image("[horizontal_flip: {p: 1}]", 0, 0, got);
    ok(memcmp(plain, got, sizeof plain) == 0, "a transform that is off does nothing");
    first_image("[center_crop: {size: 4}, horizontal_flip: {p: 1}]", 0, 0, got);
    ok(memcmp(once, got, sizeof once) == 0, "those beside it act");
    is_int(first_image("[resize: {size: 4}]", -1, 0, got), 16, "images are resized");
    is_int(first_image("[]", -1, 12, got), 144, "or have a resolution");
    is_int(first_image("[resize: {size: 4}]", -1, 12, got), 16,
           "or both, the resolution first");
    int columns = 0;
    first_image("[center_crop: {size: 2}]", -1, 0, got);
    for (int i = 0; i < 4; i++) /* of 6 rows and 8 columns: 2 and 3, 3 and 4 */
        columns += got[i] == plain[8 * (2 + i / 2) + 3 + i % 2];
    is_int(columns, 4, "a crop is of the middle in both directions");
}

/* Two epochs of 40 images, each turned or not, into OUT by their numbers, as RANKS
 * ranks see them in batches of SIZE. */
static void
draw(int64_t size, int ranks, float (*out)[48])
{
    struct counted_options o = {.common = common_options(size), .n = 40, .C = 1};
    struct et_dataset *data;
    struct et_loader *l;
    const struct et_batch *b;
    o.common.shuffle = false;
    need(cx, et_options_set(cx, transforms_table, &o, "transforms",
                            "[horizontal_flip: {p: 0.5}]"));
    need(cx, et_dataset_open(cx, &counted_images, &o, &data));
    for (int rank = 0; rank < ranks; rank++) {
        const struct et_loader_config config = {
            .seed = 1, .train = true, .rank = rank, .world_size = ranks};
        need(cx, et_loader_new(cx, data, &config, &l));
        for (int epochs = 0; epochs < 2;) {
            need(cx, et_loader_next(cx, l, &b));
            epochs += b == NULL;
            for (int64_t i = 0; b && i < b->n_samples && b->first + i < 80; i++)
                memcpy(out[b->first + i], b->field[0].host.f32 + i * 48, 192);
            et_loader_release(l, b);
        }
        et_loader_free(&l);
    }
    et_dataset_close(&data);
    et_options_release(transforms_table, &o);
}

static void
test_draws(void)
{
    static float one[80][48], other[80][48];
    int same = 0;
    draw(40, 1, one);
    for (int i = 0; i < 40; i++)
        same += memcmp(one[i], one[40 + i], sizeof one[0]) == 0;
    ok(same > 4 && same < 36, "%d of 40 images are drawn alike in two epochs", same);
    for (int ranks = 1; ranks <= 2; ranks++)
        for (int64_t size = 2; size <= 20; size += 6) {
            memset(other, 0, sizeof other);
            draw(size, ranks, other);
            ok(memcmp(one, other, sizeof one) == 0,
               "%d ranks with batches of %d draw the same", ranks, (int)size);
        }
}

/* ---- made up ---- */

/* An image of synthetic_images with SETTINGS: number AT. */
static uint64_t
synthetic(const char *const *settings, int64_t at, struct et_data_facts *facts)
{
    const struct et_dataset_class *type = et_dataset_find("synthetic_images");
    void *options = calloc(1, type->info.options_size);
    struct et_dataset *data;
    uint64_t h = 14695981039346656037u;
    need(cx, et_options_init(cx, type->info.options, options));
    for (; *settings; settings += 2)
        need(cx,
             et_options_set(cx, type->info.options, options, settings[0], settings[1]));
    need(cx, et_dataset_open(cx, type, options, &data));
    const struct et_pixels p = raw_image(data, at, NULL);
    *facts = data->facts;
    for (int i = 0; i < p.C * p.H * p.W; i++)
        h = (h ^ p.data[i]) * 1099511628211u;
    et_dataset_close(&data);
    et_options_release(type->info.options, options);
    free(options);
    return h;
}

#define SETTINGS(...) ((const char *const[]){"resolution", "4", __VA_ARGS__, NULL})

static void
test_synthetic(void)
{
    struct et_data_facts f;
    uint64_t train = synthetic(SETTINGS("split", "train"), 3, &f);
    ok(train != synthetic(SETTINGS("split", "test"), 3, &f),
       "images of the test split are others");
    ok(train != synthetic(SETTINGS("seed", "1"), 3, &f), "another seed has others");
    ok(train == synthetic(SETTINGS("num_unique", "3", "num_samples", "9"), 0, &f) ||
           f.n_samples == 9,
       "an epoch is as long as it says");
    is_int(f.bytes, 3 * 48, "memory is taken for those that differ");
    (void)synthetic(SETTINGS("num_unique", "30", "num_samples", "9"), 8, &f);
    is_int(f.bytes, 9 * 48, "and for no more than there are");
}

/* Blank samples for every data set whose shapes are known: batches, each epoch anew. */
static void
test_stand_ins(void)
{
    int opened = 0, known = 0;
    for (int i = 0; et_dataset_classes[i]; i++) {
        const struct et_dataset_class *c = et_dataset_classes[i];
        void *options = calloc(1, c->info.options_size);
        struct et_data_options *common = options;
        struct et_dataset *data;
        need(cx, et_options_init(cx, c->info.options, options));
        common->batch_size = 3;
        known += c->describe != NULL;
        if (eti_stand_in_open(cx, c, options, &data) == ET_OK) {
            struct et_loader *l =
                loader_of(data, &(struct et_loader_config){.seed = 1, .train = true});
            struct et_loader_info info;
            et_loader_get_info(l, &info);
            bool sound = info.batches_per_epoch == ETI_STAND_IN_BATCHES &&
                         info.samples_per_epoch == 3 * ETI_STAND_IN_BATCHES;
            for (int k = 0; k < ETI_STAND_IN_BATCHES + 60; k++) {
                const struct et_batch *b;
                sound = sound && et_loader_next(cx, l, &b) == ET_OK;
                sound = sound && (!b || b->n_samples == 3);
                et_loader_release(l, sound ? b : NULL);
            }
            ok(sound, "%s has a stand-in of %d batches", c->info.name,
               ETI_STAND_IN_BATCHES);
            opened++;
            et_loader_free(&l);
            et_dataset_close(&data);
        }
        et_error_clear(cx);
        et_options_release(c->info.options, options);
        free(options);
    }
    ok(opened == known && opened >= 8, "all %d that can be described have", known);
}

/* What a summary says of a text longer than it reads at once. */
static void
test_summary(void)
{
    enum { N = 10000 };
    static uint8_t bytes[N];
    const struct et_dataset_class *type = et_dataset_find("text_bytes");
    void *options = calloc(1, type->info.options_size);
    struct et_dataset *data;
    struct et_data_summary s;
    char path[600];
    int64_t wrong = 0;
    for (int i = 0; i < N; i++)
        bytes[i] = (uint8_t)(i / 100);
    snprintf(path, sizeof path, "%s", write_file("steps", bytes, N, false));
    need(cx, et_options_init(cx, type->info.options, options));
    need(cx, et_options_set(cx, type->info.options, options, "path", path));
    need(cx, et_dataset_open(cx, type, options, &data));
    need(cx, et_data_summarise(cx, data, 0, &s));
    for (int k = 0; k < 256; k++)
        wrong += s.counts[k] != (k < 90 ? 100 : 0); /* train: nine tenths */
    ok(s.n_read == 9000 && wrong == 0, "each token of a text is counted once");
    et_data_summary_release(cx, &s);
    need(cx, et_data_summarise(cx, data, 5050, &s));
    ok(s.n_read == 5050 && s.counts[49] == 100 && s.counts[50] == 50 &&
           s.counts[51] == 0,
       "up to as many as are asked for");
    et_data_summary_release(cx, &s);
    et_dataset_close(&data);
    et_options_release(type->info.options, options);
    free(options);
}

/* A gzip file that says it holds as much as deflate can, and a byte more. */
static void
test_claims(void)
{
    enum { SIZE = 100, RATIO = 1032 };
    for (int more = 0; more < 2; more++) {
        uint8_t bytes[SIZE] = {0x1f, 0x8b};
        uint32_t claim = SIZE * RATIO + (uint32_t)more;
        struct eti_bytes out;
        char path[600];
        memcpy(bytes + SIZE - 4, &claim, 4); /* little-endian, as x86-64 is */
        snprintf(path, sizeof path, "%s", write_file("lie", bytes, SIZE, false));
        et_status status = eti_file_load(cx, path, INT64_MAX, &out);
        bool early = strstr(take_error(cx), "cannot hold") != NULL;
        ok(status == ET_EFORMAT && early == (more == 1),
           "a claim of %u bytes in %d is %s", claim, SIZE,
           more ? "refused before memory is asked for" : "tried");
    }
}

int
main(void)
{
    cx = need_ctx();
    test_fingerprints();
    test_sizes();
    test_changes();
    test_windows();
    test_told();
    test_evaluation();
    test_unreadable();
    test_next_readable();
    test_transforms();
    test_draws();
    test_synthetic();
    test_stand_ins();
    test_summary();
    test_claims();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "all memory is given back");
    et_ctx_free(&cx);
    return done();
}
