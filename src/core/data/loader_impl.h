/* SPDX-License-Identifier: Apache-2.0 */
/* loader_impl.h: the inside of a loader: its slots, and how one is filled. */
#ifndef ETI_DATA_LOADER_IMPL_H
#define ETI_DATA_LOADER_IMPL_H

#include <pthread.h>

#include "core/data/fields.h"
#include "core/data/order.h"
#include "core/data/pipeline.h"
#include "core/data/resident.h"
#include "etude/archive.h"

enum eti_slot_state { ETI_SLOT_FREE, ETI_SLOT_FILLING, ETI_SLOT_READY, ETI_SLOT_HELD };

/* How a field becomes a part of a batch: see collate.c. */
struct eti_column {
    int from;            /* the data set's field; -1: the mask of what is padding */
    struct et_desc desc; /* of a full batch, as long as batches get */
    int64_t row;         /* numbers of one sample there */
    int64_t step;        /* of them, for one entry of a sample's first axis */
    bool differs;        /* in length, by batch */
};

enum { ETI_SKIPPED_NAMED = 8 };

struct eti_slot {
    struct et_batch batch;
    enum eti_slot_state state;
    int64_t number;      /* of the batch it is for */
    uint64_t generation; /* of the loader when claimed; a seek makes it stale */
    et_status status;    /* of filling */
    struct et_error why;
    bool masked;       /* some of the batch's targets are negative */
    int64_t n_skipped; /* samples first found unreadable here */
    struct et_error skipped[ETI_SKIPPED_NAMED]; /* the first of them */
    struct eti_room room[2];        /* of the sample that is written, and the next */
    struct eti_shot shot[2];        /* their images */
    int32_t *frames;                /* of resident images: [N,row_numbers] */
    struct eti_bucket {             /* where the order is one by length: */
        struct eti_bucketed *place; /* a window of it */
        int64_t epoch, window;      /* which, where it is FULL */
        bool full;
    } bucket;
    struct eti_views {
        void *memory;         /* on the host, for the longest batch */
        int32_t *length;      /* [N]: of this batch's samples; where they differ */
        struct et_tensor **v; /* on the device: all of it, and shapes that it has had */
        int64_t n, room;
    } of[ET_MAX_FIELDS];
    struct eti_lane *lane; /* to the tensors, where they lie elsewhere than the batch */
};

struct et_loader {
    struct et_ctx *cx;
    struct et_dataset *data;
    struct et_loader_config config;
    struct eti_pipeline pipeline; /* of the image, where there is one */
    int image;                    /* its place; -1: there is none */
    struct et_parts added;        /* transforms that the data do not name; owned */
    int64_t n;                    /* samples of the data set, per epoch */
    int64_t batch_size;           /* global */
    int64_t batches, samples;     /* per epoch, as consumed */
    int n_columns;                /* fields of a batch */
    struct eti_column column[ET_MAX_FIELDS];
    struct et_field field[ET_MAX_FIELDS]; /* what they are */
    int64_t multiple;                     /* lengths that differ are a multiple of it */
    int64_t raw_bytes;                    /* of a raw sample; INT64_MAX: it differs */
    struct eti_resident *resident; /* the data set on the device; NULL: it is not */
    int64_t row_numbers;           /* of what a sample shows there */
    struct et_tensor *table;       /* of resident images: the pipeline's, f32 [C,256] */

    pthread_mutex_t lock;       /* guards all below, and the slots' states */
    pthread_cond_t work, ready; /* for workers; for the caller */
    struct eti_slot *slots;
    int n_slots;
    int64_t next;  /* number to hand out */
    int64_t claim; /* number to fill next */
    int64_t limit; /* numbers below it may be claimed */
    uint64_t generation;
    bool at_end; /* the epoch's end is to be told first */
    bool stop;
    pthread_t *threads;
    int n_threads;
    int64_t *corrupt; /* samples that could not be read, each once */
    int64_t n_corrupt, max_corrupt;
};

/* loader.c: what of a loader depends on its transforms, made and freed; its place
 * stays. After a failure eti_loader_end frees what there is. */
ET_NODISCARD et_status eti_loader_begin(struct et_ctx *cx, struct et_loader *l);
void eti_loader_end(struct et_loader *l);

/* ---- loader_added.c: transforms that algorithms add ---- */

/* Would ADDED do, instead of what has been added so far? EINVAL: no images, a list that
 * is too long, masks that would not follow. Sets the SIZE, height and width, of images
 * in batches. */
ET_NODISCARD et_status eti_loader_try(struct et_ctx *cx, const struct et_loader *l,
                                      const struct et_parts *added, int64_t size[2]);
/* Adds copies of ADDED instead of what has been added so far; the next batch is the one
 * that it would have been, made so. Nothing changes after a failure, but where memory
 * has run out for good. EINVAL: as above, or a batch is held; ENOMEM. */
ET_NODISCARD et_status eti_loader_add(struct et_ctx *cx, struct et_loader *l,
                                      const struct et_parts *added);
void eti_added_release(struct et_ctx *cx, struct et_parts *added);

/* fingerprint.c: a number that other data do not have, as good as surely. */
ET_NODISCARD et_status eti_data_fingerprint(struct et_ctx *cx,
                                            const struct et_dataset *set,
                                            uint64_t *out);
/* Names the samples that could not be read, for checkpoints. */
ET_NODISCARD et_status eti_loader_archive(struct et_loader *l, struct et_archive *a);
/* The same as a copy: *OUT is the caller's (et_free), *N of them. ENOMEM. */
ET_NODISCARD et_status eti_loader_unreadable(struct et_loader *l, int64_t **out,
                                             int64_t *n);
/* Samples of batch BATCH of all ranks. */
int64_t eti_loader_whole(const struct et_loader *l, int64_t batch);
/* The samples of batch BATCH that are this rank's: places [*FIRST, *FIRST + n) of the
 * epoch. *SPARE: the batch has none for this rank, which computes on another's. */
int64_t eti_loader_slice(const struct et_loader *l, int64_t batch, int64_t *first,
                         bool *spare);
/* Windows of T + 1 tokens that overlap by one, wherever in [0, T) they begin. */
int64_t eti_loader_windows(const struct et_data_facts *f, int64_t T, bool train);
/* Writes batch s->number into the slot. From any thread, without the lock; says what
 * went wrong in s->why. */
ET_NODISCARD et_status eti_loader_fill(struct et_loader *l, struct eti_slot *s);

/* ---- loader_slots.c: the memory of batches ---- */

/* Takes the memory of S, which is zero. After a failure too the caller frees it. */
ET_NODISCARD et_status eti_slot_make(struct et_ctx *cx, struct et_loader *l,
                                     struct eti_slot *s);
void eti_slot_free(struct et_loader *l, struct eti_slot *s);
/* Column I of the slot as D, a part of what it has room for: one that it has had, or
 * another. */
ET_NODISCARD et_status eti_slot_view(struct et_ctx *cx, struct eti_slot *s, int i,
                                     const struct et_desc *d, struct et_tensor **out);

/* ---- bucket.c: samples of like length together ---- */

/* Bytes of a window. */
size_t eti_bucket_bytes(const struct et_loader *l);
/* Which sample comes at PLACE of EPOCH. */
int64_t eti_bucket_at(const struct et_loader *l, struct eti_bucket *b,
                      const struct eti_order *order, int64_t epoch, int64_t place);

/* ---- collate.c: samples into batches ---- */

/* Which columns there are, and how long batches of what differs get. */
ET_NODISCARD et_status eti_collate_init(struct et_ctx *cx, struct et_loader *l);
/* Writes sample R of the slot's batch, but for its image. EFORMAT, told in s->why. */
ET_NODISCARD et_status eti_collate_sample(const struct et_loader *l, struct eti_slot *s,
                                          int64_t r, int64_t at, struct eti_shot *shot,
                                          const struct et_sample *sample);
/* When all are written: settles how long the batch is, and fills what is short. */
void eti_collate_end(const struct et_loader *l, struct eti_slot *s);
/* Are some of the targets of B, a loader's, negative, so that they count nothing? Asks
 * no device. */
bool eti_batch_is_masked(const struct et_batch *b);

#endif
