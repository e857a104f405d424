/* SPDX-License-Identifier: Apache-2.0 */
/* field.h: the named tensors that a sample consists of.
 *
 * A sample is one tensor or more: a picture and its class; a picture and the class of
 * each of its pixels; tokens, which of them are padding, and what each is to become;
 * the numbers of a table's row and a price. Each of them is a field. A data set
 * describes its fields (struct et_field) and gives them sample by sample, the loader
 * makes a tensor of a whole batch of each, and what computes with a batch has all of
 * them at hand (struct et_samples): the model, the loss, the metrics, the algorithms.
 *
 * The first field is what the model reads. The second, where there is one, is called
 * "target": what the model is to answer. Further ones are found by their names. */
#ifndef ETUDE_FIELD_H
#define ETUDE_FIELD_H

#include <stdint.h>

#include "etude/tensor.h"
#include "etude/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ET_MAX_FIELDS = 8 };
/* The places of the first two. */
enum { ET_FIELD_X = 0, ET_FIELD_TARGET = 1 };

/* A target with this number counts nothing. */
#define ET_IGNORE_INDEX (-100)

/* What is done with a field on its way into a batch. */
enum et_field_kind {
    /* U8 [C,H,W], wherever in memory its pixels lie: transforms cut it, turn it and
     * make it f32 [N,C,H,W], channels last. A sample has one at most. */
    ET_FIELD_IMAGE = 0,
    /* U8 [H,W], classes of the image's pixels: cut and turned with it, by the nearest
     * pixel; I32 [N,H,W]. 255 counts nothing and becomes ET_IGNORE_INDEX. */
    ET_FIELD_MASK = 1,
    /* Integers of a sequence, [T]: I32 [N,T]. */
    ET_FIELD_TOKENS = 2,
    /* Numbers as they are, of any shape: real ones become f32, integers I32. */
    ET_FIELD_VALUES = 3,
};

/* One tensor of a sample; in what a loader says of its batches, of one sample of a
 * batch. */
struct et_field {
    const char *name; /* "image", "tokens", "values", "target", "mask", "token_type",
                         "document" and "position" of packed texts */
    enum et_field_kind kind;
    enum et_dtype dtype;
    int ndim;
    /* -1: differs by sample. H and W of an image and of masks may; of tokens and values
     * the first axis, and then no sample is longer there than the data's seq_len. */
    int64_t shape[ET_MAX_DIMS];
    int64_t below; /* integers are below it: classes, vocabulary; 0 = not known */
    double pad;    /* what a batch has where this sample is shorter than others */
};

/* The field called NAME among N; NULL where no field is called so. */
const struct et_field *et_field_find(const struct et_field *fields, int n,
                                     const char *name);

/* A tensor of a batch that is found by its name. */
struct et_named_tensor {
    const char *name;
    struct et_tensor *tensor;
};

/* Samples on their way through the model: a rank's batch, or one microbatch of it. All
 * its tensors have N rows. */
struct et_samples {
    struct et_tensor *x, *target; /* leaves, or values of the step's graph; target NULL:
                                     the data have none */
    int64_t n;                    /* rows */
    int64_t first_row;            /* microbatch: its first row in the rank's batch */
    struct et_named_tensor other[ET_MAX_FIELDS]; /* the fields behind these */
    int n_others;
};

/* The field NAME, which may be "target"; NULL: these samples have no such field. The
 * first is S->x, whatever its name is. */
struct et_tensor *et_samples_find(const struct et_samples *s, const char *name);

#ifdef __cplusplus
}
#endif
#endif
