/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h: data sets made up by the tests, and files in a folder of their own. */
#ifndef ETUDE_T_DATA_FIXTURE_H
#define ETUDE_T_DATA_FIXTURE_H

#include "etude/data.h"

/* A context, or the end of the test. */
struct et_ctx *need_ctx(void);
/* Ends the test with the error that stands unless STATUS is ET_OK. */
void need(struct et_ctx *cx, et_status status);
/* The error's sentence, then cleared. Borrowed until the next call. */
const char *take_error(struct et_ctx *cx);

/* A clock of CX's own, in seconds of both kinds: since 1970, and of those that only
 * grow. It stands still but for what the test sets, so that nothing follows from how
 * long the machine takes. It begins late in 2027. */
struct own_clock {
    double now, step; /* each look at it adds STEP */
};
struct own_clock *own_clock(struct et_ctx *cx);

/* Options as the tables' defaults have them, for a batch size. */
struct et_data_options common_options(int64_t batch_size);

/* Counted images: H = 6, W = 8, C channels; pixel (y, x, c) of sample i is
 * (7 i + 8 y + x + 50 c) mod 256, its label i. Samples for which i % bad_every is
 * bad_every - 1 cannot be read. */
struct counted_options {
    struct et_data_options common;
    int64_t n;
    int C;
    int64_t bad_every; /* 0 = none */
};
extern const struct et_dataset_class counted_images;

/* A loader over counted images, unshuffled; what is to differ is set before it
 * begins. */
struct counted_loader {
    struct counted_options options;
    struct et_loader_config config;
    struct et_dataset *data;
    struct et_loader *loader;
};
/* TRANSFORMS as recipes have them; NULL: none. */
struct counted_loader counted_loader(struct et_ctx *cx, int64_t n, int64_t batch_size,
                                     int C, const char *transforms);
et_status counted_begin(struct et_ctx *cx, struct counted_loader *l);
/* The next batch, or NULL at an epoch's end; an error ends the test. */
const struct et_batch *counted_next(struct et_ctx *cx, struct counted_loader *l);
void counted_end(struct counted_loader *l);

/* Counted tokens: token i is i. */
extern const struct et_dataset_class counted_tokens;

/* Image AT of DATA and its label, which may be NULL; an error ends the test. The pixels
 * stay until the next call. */
struct et_pixels raw_image(const struct et_dataset *data, int64_t at, int32_t *label);

/* A folder that is removed, with its files, when the test ends. */
const char *scratch_folder(void);
/* Writes NAME in it; gzipped where ZIPPED. Returns its path, borrowed until the
 * next. */
const char *write_file(const char *name, const void *bytes, size_t n, bool zipped);

/* Writes into WHERE an MDS shard of N samples of one column, called text: SAMPLE[i],
 * SIZE[i] bytes in the ENCODING. */
void write_mds(const char *where, const char *encoding, int n,
               const void *const *sample, const uint32_t *size);

/* A .npy file as NumPy writes it: numbers of TYPE ("<i4"), an array of SHAPE
 * ("(2, 3)"), the N bytes of it. Writes it to OUT, which has room for 128 bytes more,
 * and returns its length. */
size_t make_npy(uint8_t *out, const char *type, const char *shape, const void *bytes,
                size_t n);

#endif
