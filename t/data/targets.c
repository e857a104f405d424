/* SPDX-License-Identifier: Apache-2.0 */
/* A label that is no class, or a token that is none, ends the run where it is read,
 * with its number and that of its sample. */
#include "t/data/fixture.h"
#include "t/device.h"
#include "t/tap.h"

#include <stdio.h>
#include <string.h>

static struct et_ctx *cx;

enum { SAMPLES = 12, CLASSES = 10, VOCABULARY = 50, LENGTH = 4 };

/* The options of both data sets. */
struct options {
    struct et_data_options common;
    int64_t bad;    /* the sample, or place, that is not as the others */
    int64_t number; /* what it has */
};

static et_status
open_images(struct et_ctx *c, struct et_dataset *self)
{
    (void)c;
    et_facts_images(&self->facts, SAMPLES, 1, 2, 2, CLASSES);
    return ET_OK;
}

static et_status
read_image(const struct et_dataset *self, int64_t at, struct et_sample *out,
           struct et_error *why)
{
    static const uint8_t black[4];
    const struct options *o = self->options;
    (void)why;
    out->v[ET_FIELD_X].pixels = et_pixels_hwc(black, 1, 2, 2);
    et_sample_number(out, ET_FIELD_TARGET,
                     (double)(at == o->bad ? o->number : at % CLASSES));
    return ET_OK;
}

static const struct et_dataset_class images = {
    .info = {.name = "images_of_ours", .options_size = sizeof(struct options)},
    .open = open_images,
    .sample = read_image,
};

static et_status
open_tokens(struct et_ctx *c, struct et_dataset *self)
{
    (void)c;
    et_facts_stream(&self->facts, SAMPLES * LENGTH + 1, VOCABULARY);
    return ET_OK;
}

static et_status
read_tokens(const struct et_dataset *self, int64_t at, int64_t n, int32_t *out,
            struct et_error *why)
{
    const struct options *o = self->options;
    (void)why;
    for (int64_t i = 0; i < n; i++)
        out[i] = at + i == o->bad ? (int32_t)o->number : VOCABULARY - 1;
    return ET_OK;
}

static const struct et_dataset_class tokens = {
    .info = {.name = "tokens_of_ours", .options_size = sizeof(struct options)},
    .open = open_tokens,
    .tokens = read_tokens,
};

/* Reads all of a data set of class C in which BAD has NUMBER; what becomes of it. */
static et_status
read_all(const struct et_dataset_class *c, int64_t bad, int64_t number, int64_t workers,
         struct et_device *dev)
{
    struct options o = {.common = common_options(4), .bad = bad, .number = number};
    struct et_dataset *data;
    struct et_loader *loader;
    const struct et_batch *b;
    o.common.seq_len = LENGTH;
    o.common.workers = workers;
    o.common.shuffle = false;
    o.common.max_corrupt = 0.9; /* it is not one of those that may be skipped */
    need(cx, et_dataset_open(cx, c, &o, &data));
    need(cx, et_loader_new(cx, data, &(struct et_loader_config){.dev = dev}, &loader));
    et_status status;
    do {
        status = et_loader_next(cx, loader, &b);
        et_loader_release(loader, b);
    } while (status == ET_OK && b);
    et_loader_free(&loader);
    et_dataset_close(&data);
    return status;
}

static void
says(const char *want)
{
    ok(strstr(et_error_get(cx)->message, want) != NULL, "it is said: %s",
       et_error_get(cx)->message);
    et_error_clear(cx);
}

static void
test_labels(struct et_device *dev)
{
    for (int64_t workers = 0; workers < 3; workers += 2) {
        ok(read_all(&images, 7, 99, workers, dev) == ET_EFORMAT,
           "a label of 99 ends a run, by %d workers", (int)workers);
        says("images_of_ours: sample 7 has the label 99, and there are 10 classes");
        ok(read_all(&images, 11, CLASSES, workers, dev) == ET_EFORMAT,
           "so does one more than the last");
        says("images_of_ours: sample 11 has the label 10, and there are 10 classes");
        ok(read_all(&images, 3, CLASSES - 1, workers, dev) == ET_OK,
           "the last class is one");
        ok(read_all(&images, 3, -100, workers, dev) == ET_OK,
           "what is negative counts nothing, and is no error");
    }
}

static void
test_tokens(struct et_device *dev)
{
    ok(read_all(&tokens, 9, VOCABULARY, 0, dev) == ET_EFORMAT,
       "a token beyond the vocabulary ends a run");
    says("tokens_of_ours: sample 2 has the token 50, and there are 50");
    ok(read_all(&tokens, 0, VOCABULARY, 0, dev) == ET_EFORMAT, "also the first of all");
    says("tokens_of_ours: sample 0 has the token 50, and there are 50");
    ok(read_all(&tokens, SAMPLES * LENGTH, 1000, 0, dev) == ET_EFORMAT,
       "and the last, which is a target alone");
    says("tokens_of_ours: sample 11 has the token 1000, and there are 50");
    ok(read_all(&tokens, -1, 0, 0, dev) == ET_OK, "the last of the vocabulary is one");
}

int
main(void)
{
    struct et_device *dev;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    need(cx, et_device_open(cx, test_device(NULL), 0, 1, &dev));
    test_labels(NULL);
    test_labels(dev);
    test_tokens(dev);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
