/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h: MANIFEST, the file that makes a folder a checkpoint: what was saved, by
 * whom, and digests of all of it. JSON; its last member is the BLAKE2b-256 of every
 * byte before that member. */
#ifndef ETI_CHECKPOINT_MANIFEST_H
#define ETI_CHECKPOINT_MANIFEST_H

#include <stdint.h>

#include "etude/ctx.h"

enum {
    ETI_MANIFEST_FORMAT = 1,
    ETI_MANIFEST_MAX = 64 << 20, /* bytes: 100,000 tensors with long names take 20 MB */
    ETI_MANIFEST_FILES = 3,      /* of a rank */
    ETI_DIGEST_TEXT = 33,        /* XXH3-128 in hexadecimal, with its zero */
    ETI_LABEL = 128,             /* bytes, the final zero included */
    ETI_RUN_ID_TEXT = 33,
    ETI_DATA_TEXT = 256, /* bytes, the final zero included */
};

/* The kinds of files of a rank: kind, text. */
#define ETI_SHARD_MAP(X)                                                               \
    X(MODEL, "model")                                                                  \
    X(OPTIM, "optim")                                                                  \
    X(STATE, "state")
enum eti_shard {
#define ETI_SHARD_ENUM(code, text) ETI_SHARD_##code,
    ETI_SHARD_MAP(ETI_SHARD_ENUM)
#undef ETI_SHARD_ENUM
        ETI_SHARD_COUNT
};
/* "model-00000.safetensors"; returns BUF. */
const char *eti_shard_name(enum eti_shard kind, int rank, char *buf, size_t size);

struct json_t;

struct eti_manifest_file {
    const char *name; /* borrowed from JSON */
    int64_t bytes;
    char digest[ETI_DIGEST_TEXT]; /* of the whole file */
    struct json_t *tensors;       /* borrowed: {name: digest} */
};

struct eti_manifest {
    int64_t format, incarnation, step, epoch, batch_in_epoch, sample, world_size;
    int64_t revision; /* of the settings that commands changed */
    bool weights_only;
    bool stays; /* saved at a time of the recipe's list: KEEP does not count it */
    char label[ETI_LABEL];
    char run_id[ETI_RUN_ID_TEXT], run_name[64];
    char recipe[65];          /* digest of what a resume may not change */
    char data[ETI_DATA_TEXT]; /* what the train data are, in words */
    double saved;             /* wall clock, seconds since the epoch of 1970 */
    struct eti_manifest_file file[ETI_MANIFEST_FILES];
    int n_files;
    struct json_t *algorithms; /* borrowed: [{"name", "options": {name: text}}] */
    struct json_t *switched;   /* borrowed: [{"name", "on": true or false}], in their
                                order: switches that changed the model; NULL: none */
    struct json_t *left_out;   /* borrowed: [pattern]; NULL: all is there */
    struct json_t *json;       /* owned */
};

/* Writes M down; *OUT is owned by the caller (et_free). FILE's names, digests and
 * TENSORS, and ALGORITHMS, are read from M and may be borrowed from anywhere. */
ET_NODISCARD et_status eti_manifest_print(struct et_ctx *cx,
                                          const struct eti_manifest *m, char **out,
                                          size_t *n);
/* Reads N bytes at TEXT; pure but for CX's error and memory. EFORMAT for anything that
 * eti_manifest_print did not write, EINVAL where the digest is right and it cannot be
 * parsed, as when memory is short, ENOTSUP for a later format. NAME is the
 * checkpoint's, for messages. Release in any case. */
ET_NODISCARD et_status eti_manifest_parse(struct et_ctx *cx, const char *name,
                                          const char *text, size_t n,
                                          struct eti_manifest *out);
void eti_manifest_release(struct eti_manifest *m);

/* A number that another checkpoint does not have, as good as surely: of the digests of
 * M's files. */
uint64_t eti_manifest_fold(const struct eti_manifest *m);

/* BLAKE2b-256 in 64 hexadecimal digits and a zero. */
void eti_digest_text(const void *bytes, size_t n, char out[65]);

#endif
