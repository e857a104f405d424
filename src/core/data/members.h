/* SPDX-License-Identifier: Apache-2.0 */
/* members.h: pictures that lie in shards, many in a file: which shards, and an index of
 * what they have, which is made once and kept in the user's cache. */
#ifndef ETI_DATA_MEMBERS_H
#define ETI_DATA_MEMBERS_H

#include "core/data/picture_labels.h"

/* Appends what PATTERN stands for: each {a,b} is one of these texts, each {000..019}
 * one of these numbers, with zeros in front where one end has them. EINVAL: a brace
 * that is not closed, or more than a million. */
ET_NODISCARD et_status eti_strings_of_pattern(struct et_ctx *cx, const char *pattern,
                                              struct eti_strings *out);

/* What is looked for in shards. */
struct eti_member_scan {
    struct et_ctx *cx;
    const void *options;        /* of the data set */
    struct eti_picture_list *l; /* its files are the shards */
    int32_t shard;              /* the one that is read */
    char *text;                 /* of the index; owned */
    int64_t n, room;
};
/* Reads shard S->shard and adds its samples. */
typedef et_status eti_member_fn(struct eti_member_scan *s);
/* Adds a sample of shard S->shard. MASK or LABEL is NULL. NAME is what messages call
 * it, and what a split is drawn by. EFORMAT: a text that has a line's end in it. */
ET_NODISCARD et_status eti_member_add(struct eti_member_scan *s,
                                      const struct eti_picture_at *picture,
                                      const struct eti_picture_at *mask,
                                      const char *name, const char *label);

/* How samples of shards are read. */
struct eti_members_config {
    eti_member_fn *scan;
    const char *key; /* the options that SCAN reads, as text */
    const struct eti_label_options *labels;
    double test_fraction; /* 0: all are of this split */
};
/* Fills SELF's list, of which the files are all there, from the index of its shards:
 * pictures, names, masks or labels. EFORMAT: names the shard. */
ET_NODISCARD et_status eti_members_open(struct et_ctx *cx, struct et_dataset *self,
                                        const struct eti_members_config *c);

#endif
