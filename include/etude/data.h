/* SPDX-License-Identifier: Apache-2.0 */
/* data.h: data sets, transforms, and the loader that turns them into batches.
 *
 * A data set gives raw samples by number, from any thread: each is a few named fields
 * (field.h), such as a picture and its class. A loader decides which samples, in which
 * order, and writes ready batches, a tensor for each field, into memory that it owns
 * and reuses. Everything it draws is a pure function of (seed, epoch, place), so a
 * batch is the same whatever the number of workers, ranks and resumes.
 *
 *     struct et_dataset *data;
 *     struct et_loader *loader;
 *     const struct et_dataset_class *c = et_dataset_find("fashion_mnist");
 *     ET_TRY(et_dataset_open(cx, c, &options, &data));
 *     ET_TRY(et_loader_new(cx, data, &(struct et_loader_config){.seed = 17}, &loader));
 *     for (;;) {
 *         const struct et_batch *b;
 *         ET_TRY(et_loader_next(cx, loader, &b));
 *         if (!b)
 *             break;  // end of the epoch; the next call begins another
 *         ...  // b->field[ET_FIELD_X].host.f32 ...
 *         et_loader_release(loader, b);
 *     }
 *
 * A data set of one's own is a struct et_dataset_class: examples/plugin_data.c.
 *
 * Letters: N samples, C channels, H W pixels, T tokens of a sequence. */
#ifndef ETUDE_DATA_H
#define ETUDE_DATA_H

#include <stdint.h>

#include "etude/ctx.h"
#include "etude/field.h"
#include "etude/option.h"
#include "etude/rng.h"
#include "etude/tensor.h"
#include "etude/transform.h"
#include "etude/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ET_MAX_CHANNELS = 4 };
enum et_split { ET_SPLIT_TRAIN = 0, ET_SPLIT_TEST = 1 };

/* ---- options that all data sets share ---- */

/* The first member of every data set's options struct. What a data set has no use for,
 * as sequences have none for transforms, its table does not have, and it stays 0. */
struct et_data_options {
    char *path;                 /* folder or file; see the dataset */
    int split;                  /* enum et_split */
    int64_t batch_size;         /* global; ET_INT_UNSET = not given */
    int64_t subset_num_batches; /* -1 = all */
    bool shuffle;               /* another order each epoch */
    bool drop_last;             /* leave the incomplete last batch out */
    int64_t workers;            /* threads; ET_INT_UNSET = by a sample's cost */
    int64_t resolution;         /* side to resize images to; 0 = as stored */
    struct et_parts transforms; /* of images: ET_KIND_TRANSFORM, in order */
    double max_corrupt;         /* fraction of unreadable samples to skip */
    int64_t seq_len;            /* T; where samples differ, none is longer */
    int pad;                    /* enum et_pad: how long such a batch is made */
    int64_t pad_to_multiple;    /* its length is one, and no more than 16 differ */
    bool bucket;                /* samples of like length go together */
    int transforms_on;          /* enum et_transforms_on */
};
/* Where transforms run: on the device where et_batch_x says so; never there; or there,
 * and otherwise the loader is refused. */
enum et_transforms_on {
    ET_TRANSFORMS_AUTO = 0,
    ET_TRANSFORMS_ON_HOST = 1,
    ET_TRANSFORMS_ON_DEVICE = 2
};
/* As its longest sample, rounded up to pad_to_multiple; or as seq_len says. */
enum et_pad { ET_PAD_LONGEST = 0, ET_PAD_MAX = 1 };

extern const char *const et_split_names[];         /* "train", "test", NULL */
extern const char *const et_data_auto[];           /* "auto", NULL */
extern const char *const et_pad_names[];           /* "longest", "max", NULL */
extern const char *const et_transforms_on_names[]; /* "auto", "host", "device", NULL */

/* Changes the defaults of any dataset's options to those of `train_data` (split train,
 * shuffled) or `eval_data` (test, in order): the `prepare` of their rows. */
void et_data_prepare_train(void *options);
void et_data_prepare_eval(void *options);

/* The rows, once. T: the options struct, whose member `common` is the above. PATH: the
 * default as text, NULL where there is none. */
/* clang-format off */
#define ET_DATA_OPTION_AT(T, field) offsetof(T, common.field)
#define ET_DATA_OPTION_PATH(T, value, its_flags, its_help)                     \
    {                                                                          \
        .name = "path",                                                        \
        .type = ET_OPT_PATH,                                                   \
        .offset = ET_DATA_OPTION_AT(T, path),                                  \
        .def = value,                                                          \
        .flags = its_flags,                                                    \
        .help = its_help,                                                      \
    }
#define ET_DATA_OPTIONS(T)                                                     \
    {                                                                          \
        .name = "split",                                                       \
        .type = ET_OPT_ENUM,                                                   \
        .offset = ET_DATA_OPTION_AT(T, split),                                 \
        .def = "train",                                                        \
        .choices = et_split_names,                                             \
        .help = "which part; train for train_data, test for eval_data",        \
    },                                                                         \
    {                                                                          \
        .name = "batch_size",                                                  \
        .type = ET_OPT_INT,                                                    \
        .offset = ET_DATA_OPTION_AT(T, batch_size),                            \
        .min = 1,                                                              \
        .max = 1 << 24,                                                        \
        .flags = ET_OPT_OPTIONAL,                                              \
        .unit = "samples",                                                     \
        .help = "of all ranks and microbatches together; eval_data: as train_data", \
    },                                                                         \
    {                                                                          \
        .name = "subset_num_batches",                                          \
        .type = ET_OPT_INT,                                                    \
        .offset = ET_DATA_OPTION_AT(T, subset_num_batches),                    \
        .def = "-1",                                                           \
        .min = -1,                                                             \
        .max = 1e15,                                                           \
        .unit = "batches",                                                     \
        .help = "stop an epoch after so many batches; -1 = all",               \
    },                                                                         \
    {                                                                          \
        .name = "shuffle",                                                     \
        .type = ET_OPT_BOOL,                                                   \
        .offset = ET_DATA_OPTION_AT(T, shuffle),                               \
        .def = "true",                                                         \
        .help = "another order each epoch; true to train, false to evaluate",  \
    },                                                                         \
    {                                                                          \
        .name = "drop_last",                                                   \
        .type = ET_OPT_BOOL,                                                   \
        .offset = ET_DATA_OPTION_AT(T, drop_last),                             \
        .def = "false",                                                        \
        .help = "leave out a last batch that is not full",                     \
    },                                                                         \
    {                                                                          \
        .name = "workers",                                                     \
        .type = ET_OPT_INT,                                                    \
        .offset = ET_DATA_OPTION_AT(T, workers),                               \
        .def = "auto",                                                         \
        .choices = et_data_auto,                                               \
        .max = 64,                                                             \
        .unit = "threads",                                                     \
        .help = "that prepare batches ahead; 0 = none, auto = by cost",        \
        .also = "num_workers",                                                 \
    }
#define ET_DATA_IMAGE_OPTIONS(T)                                               \
    {                                                                          \
        .name = "resolution",                                                  \
        .type = ET_OPT_INT,                                                    \
        .offset = ET_DATA_OPTION_AT(T, resolution),                            \
        .def = "0",                                                            \
        .max = 4096,                                                           \
        .unit = "pixels",                                                      \
        .help = "side of the square that images are resized to; 0 = as stored", \
    },                                                                         \
    {                                                                          \
        .name = "transforms",                                                  \
        .type = ET_OPT_PARTS,                                                  \
        .kind = ET_KIND_TRANSFORM,                                             \
        .offset = ET_DATA_OPTION_AT(T, transforms),                            \
        .flags = ET_OPT_BY_NAME,                                               \
        .help = "list of transforms, in order; normalize is last",             \
    },                                                                         \
    {                                                                          \
        .name = "max_corrupt",                                                 \
        .type = ET_OPT_FLOAT,                                                  \
        .offset = ET_DATA_OPTION_AT(T, max_corrupt),                           \
        .def = "0.001",                                                        \
        .max = 1,                                                              \
        .help = "fraction of the samples that may be unreadable and skipped",  \
    },                                                                         \
    {                                                                          \
        .name = "transforms_on",                                               \
        .type = ET_OPT_ENUM,                                                   \
        .offset = ET_DATA_OPTION_AT(T, transforms_on),                         \
        .def = "auto",                                                         \
        .choices = et_transforms_on_names,                                     \
        .flags = ET_OPT_LATER,                                                 \
        .help = "host, device (in the step), auto: a GPU with 8 times the room", \
    }
#define ET_DATA_TOKEN_OPTIONS(T)                                               \
    {                                                                          \
        .name = "seq_len",                                                     \
        .type = ET_OPT_INT,                                                    \
        .offset = ET_DATA_OPTION_AT(T, seq_len),                               \
        .def = "128",                                                          \
        .min = 1,                                                              \
        .max = 1 << 20,                                                        \
        .unit = "tokens",                                                      \
        .help = "of one sample",                                               \
    }
/* Of samples that differ in length. LONGEST: the default of seq_len, as text. */
#define ET_DATA_SEQUENCE_OPTIONS(T, longest)                                   \
    {                                                                          \
        .name = "seq_len",                                                     \
        .type = ET_OPT_INT,                                                    \
        .offset = ET_DATA_OPTION_AT(T, seq_len),                               \
        .def = longest,                                                        \
        .min = 1,                                                              \
        .max = 1 << 20,                                                        \
        .unit = "tokens",                                                      \
        .help = "of the longest sample; what is longer is cut",                \
        .also = "max_seq_len",                                                 \
    },                                                                         \
    {                                                                          \
        .name = "pad",                                                         \
        .type = ET_OPT_ENUM,                                                   \
        .offset = ET_DATA_OPTION_AT(T, pad),                                   \
        .def = "longest",                                                      \
        .choices = et_pad_names,                                               \
        .help = "how long batches are made: as their longest sample, or seq_len", \
    },                                                                         \
    {                                                                          \
        .name = "pad_to_multiple",                                             \
        .type = ET_OPT_INT,                                                    \
        .offset = ET_DATA_OPTION_AT(T, pad_to_multiple),                       \
        .def = "8",                                                            \
        .min = 1,                                                              \
        .max = 1 << 20,                                                        \
        .unit = "tokens",                                                      \
        .help = "lengths of batches are rounded up to one; at most 16 differ", \
        .also = "pad_to_multiple_of",                                          \
    },                                                                         \
    {                                                                          \
        .name = "bucket",                                                      \
        .type = ET_OPT_BOOL,                                                   \
        .offset = ET_DATA_OPTION_AT(T, bucket),                                \
        .def = "false",                                                        \
        .help = "put samples of like length into one batch",                   \
    }
/* clang-format on */

/* ---- raw samples ---- */

struct et_data_facts;
struct eti_room;

/* One raw sample: its fields, in the order of the data set's facts. */
struct et_sample {
    struct et_sample_value {
        struct et_pixels pixels;    /* images and masks, unless DATA is their file */
        const void *data;           /* others: row-major, of the field's dtype; of an
                                       image or mask: shape[0] bytes of a JPEG, PNG or
                                       WebP file, of which what is shown is decoded */
        int64_t shape[ET_MAX_DIMS]; /* of DATA; already there but for what differs */
        const char *file;           /* its path, for messages; borrowed; NULL: none */
        const uint8_t *classes;     /* [256]: what values in a mask's file become; NULL:
                                       what they are; borrowed */
    } v[ET_MAX_FIELDS];
    const struct et_data_facts *facts;
    struct eti_room *room; /* internal: et_sample_room */
    /* For a data set that draws: to train by the sample's place in the run's order, so
     * another epoch draws otherwise; elsewhere by its number. */
    struct et_rng draws;
};

/* BYTES of memory for field I of S, for what the data set does not have in memory: the
 * same block sample after sample, which lives until the loader asks for the next
 * sample with S. NULL: no memory. */
void *et_sample_room(struct et_sample *s, int i, size_t bytes);
/* The one number of field I, a label or a price, in its dtype. */
void et_sample_number(struct et_sample *s, int i, double number);

/* ---- data sets ---- */

/* What a data set says of itself once open. */
struct et_data_facts {
    struct et_field field[ET_MAX_FIELDS]; /* the first two: field.h */
    int n_fields;
    int64_t n_samples; /* of a stream: windows of seq_len, see et_loader_next */
    int64_t n_tokens;  /* of a stream, in this split; 0: not a stream */
    int64_t bytes;     /* of all raw samples, decoded */
    /* Batches have a further field "attention_mask", I32 of the first field's shape: 1
     * where a token is one of the sample's, 0 where it is padding. */
    bool wants_attention_mask;
    const char *const
        *class_names; /* of the target, [below], borrowed; NULL: numbers */
};

/* Facts of N images [C,H,W] with a class each, below NUM_CLASSES: the fields "image"
 * and "target". H and W may be -1. */
void et_facts_images(struct et_data_facts *f, int64_t n, int C, int64_t H, int64_t W,
                     int64_t num_classes);
/* Facts of a stream of tokens below VOCAB_SIZE: the fields "tokens" and "target". */
void et_facts_stream(struct et_data_facts *f, int64_t n_tokens, int64_t vocab_size);
/* Appends a field to F, which is checked when all are there. */
void et_facts_add(struct et_data_facts *f, const struct et_field *field);
/* The field of F that is the target, NULL where the data have no target. How many
 * classes the target has: 0 where it is not a class, or the number is not known. */
const struct et_field *et_facts_target(const struct et_data_facts *f);
int64_t et_facts_classes(const struct et_data_facts *f);

struct et_dataset {
    const struct et_dataset_class *type;
    struct et_ctx *cx;                    /* for open and close only */
    void *options;                        /* the class's struct; its own */
    const struct et_data_options *common; /* its first member */
    struct et_data_facts facts;           /* filled by open */
    void *state;                          /* type->state_size bytes, zeroed */
    struct eti_resident *resident;        /* the loaders': where it lies on devices */
};

/* One kind of data set. It is made of samples, and sets `sample`; or it is one stream
 * of tokens, of which the loader takes windows at a phase that changes by epoch, and
 * sets `tokens`. */
struct et_dataset_class {
    struct et_component info; /* the options struct begins with et_data_options */
    size_t state_size;        /* of the private state, allocated before open */

    /* Finds the data, checks its headers, fills self->facts but n_samples of a stream.
     * ENOENT, EIO: the file; EFORMAT: its contents; the sentence names the file. */
    et_status (*open)(struct et_ctx *cx, struct et_dataset *self);
    /* Gives sample AT: sets each of OUT->v, to point into the data set's own memory or
     * into et_sample_room. Called from any thread at once; says why in WHY->message.
     * EFORMAT skips the sample within max_corrupt; any other failure ends the run, as
     * does an integer that is not below its field's bound (negative ones of a target
     * count nothing). */
    et_status (*sample)(const struct et_dataset *self, int64_t at,
                        struct et_sample *out, struct et_error *why);
    /* Writes tokens [AT, AT + N) of the stream to OUT. Called from any thread at once.
     * One that is not below facts' bound ends the run. */
    et_status (*tokens)(const struct et_dataset *self, int64_t at, int64_t n,
                        int32_t *out, struct et_error *why);
    /* How many tokens sample AT has, without reading it: for `bucket`, and to count
     * tokens. Called from any thread at once. (optional) */
    int64_t (*length)(const struct et_dataset *self, int64_t at);
    /* Frees what open took, also after it failed half way (optional). */
    void (*close)(struct et_dataset *self);
    /* What is known of the data without their files: the fields, with shapes of -1
     * where these are not known. NULL: nothing. (optional) */
    void (*describe)(const void *options, struct et_data_facts *out);
    bool gives_next; /* targets are the tokens that follow, as those of streams always
                        are: a model that wants masked tokens would copy them */
};

/* All that exist, ending with NULL, in the order of datasets.def. */
extern const struct et_dataset_class *const et_dataset_classes[];
/* By name; NULL if there is none. */
const struct et_dataset_class *et_dataset_find(const char *name);

/* Opens data. OPTIONS, the class's struct, is copied (option.h) and has the class's
 * defaults where the user says nothing; NULL = all defaults. */
ET_NODISCARD et_status et_dataset_open(struct et_ctx *cx,
                                       const struct et_dataset_class *c,
                                       const void *options, struct et_dataset **out);
void et_dataset_close(struct et_dataset **data);

/* ---- the loader ---- */

/* How to read a dataset; its own options say batch_size, shuffle and so on. */
struct et_loader_config {
    uint32_t seed;         /* the run's */
    bool train;            /* windows of tokens get a phase per epoch, and
                              workers read on past an epoch's end */
    int world_size, rank;  /* 0 = alone */
    struct et_device *dev; /* batches carry tensors of it: in their own memory where the
                              host reaches that, else copied when handed out, or made
                              there (et_batch_x); NULL: et_alloc's memory, no tensors */
};

/* A field of a batch. */
struct et_batch_field {
    struct et_desc desc; /* images f32 [N,C,H,W], channels last; masks I32 [N,H,W];
                            others [N,...], f32 or I32 */
    union et_host {      /* as one of these; NULL where the device makes it (RAW) */
        void *any;
        float *f32;
        int32_t *i32;
    } host;
    struct et_tensor *tensor; /* the same numbers; with config.dev, and not RAW */
};

/* One batch of this rank. Valid, and the memory untouched, until it is released. */
struct et_batch {
    struct et_batch_field field[ET_MAX_FIELDS]; /* in the order of loader_info's */
    struct et_tensor *raw, *frames, *table; /* what et_batch_x makes x of where the data
                                               set lies on the device; else NULL */
    int64_t n_samples;                      /* N; the last batch may be smaller */
    int64_t n_tokens;    /* of sequences: without padding; 0 for others */
    int64_t all_samples; /* of all ranks' batches together; alone: n_samples */
    int64_t all_tokens;  /* likewise */
    bool spare; /* another rank's: the last global batch had none for this one, and it
                   counts nothing */
    int64_t epoch; /* from 0 */
    int64_t batch; /* within the epoch, from 0 */
    int64_t first; /* place of its first sample in the run's order of consumption */
    const struct et_field *fields; /* the loader's, [n_fields]: names and kinds */
    int n_fields;
};

/* The field NAME of a batch as a tensor, where the loader has a device; the first field
 * by et_batch_x. NULL: no field is called so. */
struct et_tensor *et_batch_tensor(const struct et_batch *batch, const char *name);

struct et_loader;

/* Makes a loader at epoch 0, batch 0. EINVAL: batch_size missing, or not divisible by
 * the ranks, a bad transform. DATA is borrowed until the loader is freed. */
ET_NODISCARD et_status et_loader_new_sized(struct et_ctx *cx, size_t size,
                                           struct et_dataset *data,
                                           const struct et_loader_config *config,
                                           struct et_loader **out);
/* et_loader_new(cx, data, config, out) */
#define et_loader_new(cx, ...)                                                         \
    et_loader_new_sized((cx), sizeof(struct et_loader_config), __VA_ARGS__)
/* Joins the workers. All batches end. */
void et_loader_free(struct et_loader **loader);

/* Goes to a batch of an epoch without reading what lies before. */
ET_NODISCARD et_status et_loader_seek(struct et_ctx *cx, struct et_loader *loader,
                                      int64_t epoch, int64_t batch);

/* Hands out the next batch, or NULL once at the end of each epoch.
 *
 * Order: without shuffle sample i is the i-th; with it, a permutation keyed by (seed,
 * epoch). A global batch is batch_size samples in that order; rank r has the slice
 * [r, r + 1) * size / world_size of it, or a sample of another rank where that is none
 * (spare). Tokens: sample i is the window of T + 1 tokens
 * at phase + i * T: x is its first T, target its last T, so that windows tile the text
 * and no token is predicted twice. The phase is 0, or to train in [0, T), keyed by
 * (seed, epoch). Crops and flips are keyed by the sample's place in the order of
 * consumption.
 *
 * EFORMAT, EIO: a sample could not be read; the sentence has its number. At most two
 * batches may be held at once (EINVAL). */
ET_NODISCARD et_status et_loader_next(struct et_ctx *cx, struct et_loader *loader,
                                      const struct et_batch **out);
/* The batch's first field in a graph on config.dev: its tensor, or a node that makes
 * the same bits from a data set on the device.
 *
 * A set of images is left on a device if every transform can run there: geometry, then
 * pixels whose transform tells its changes, then values; and if its samples can all be
 * read, lie in the host's memory and are of one size. With transforms_on auto that is
 * done where the host does not reach the device's memory and the raw bytes take at most
 * an eighth of what is free there. They are sent once, for all loaders of that set
 * there; a batch then sends its labels and what each sample shows of which image
 * (et_image_batch where it only cuts and flips, else et_image_augment), and making its
 * pixels is part of the step. */
struct et_graph;
struct et_tensor *et_batch_x(struct et_graph *g, const struct et_batch *batch);
/* All fields of the batch, in a graph on config.dev. */
struct et_samples et_batch_samples(struct et_graph *g, const struct et_batch *batch);
/* Gives the memory back to be filled again. NULL does nothing. */
void et_loader_release(struct et_loader *loader, const struct et_batch *batch);

struct et_loader_info {
    int64_t batches_per_epoch;
    int64_t samples_per_epoch; /* of all ranks, as consumed */
    int64_t batch_size;        /* global */
    int workers;               /* threads in use */
    int64_t corrupt;           /* samples skipped so far as unreadable */
    int n_fields;              /* of a batch: the data set's, and then what is
                                           made besides */
    struct et_field field[ET_MAX_FIELDS]; /* of one sample of a batch: after transforms,
                                             -1 where batches differ */
    struct et_desc desc[ET_MAX_FIELDS]; /* of a full batch of this rank, the longest */
};
void et_loader_get_info(const struct et_loader *loader, struct et_loader_info *out);

/* ---- for people ---- */

/* What `etude data inspect` shows. */
struct et_data_summary {
    struct et_data_facts facts;
    double mean[ET_MAX_CHANNELS]; /* images: of pixels in [0, 1] */
    double std[ET_MAX_CHANNELS];  /* likewise */
    int64_t n_read;               /* samples or tokens that the figures are of */
    int64_t n_unreadable;         /* samples besides, which a loader would skip */
    char unreadable[256];         /* what is wrong with the first of them */
    int64_t n_counts;             /* classes, or the vocabulary's size; 0: neither */
    int64_t *counts;              /* how often each label or token occurs; owned */
    int n_first;                  /* entries of FIRST */
    int32_t first[32];            /* labels, or tokens, from the beginning */
};
/* Reads at most LIMIT samples (tokens: that many tokens); 0 = all. */
ET_NODISCARD et_status et_data_summarise(struct et_ctx *cx,
                                         const struct et_dataset *data, int64_t limit,
                                         struct et_data_summary *out);
void et_data_summary_release(struct et_ctx *cx, struct et_data_summary *s);

#ifdef __cplusplus
}
#endif
#endif
