/* SPDX-License-Identifier: Apache-2.0 */
/* mds_images.c: pictures and what they show in MosaicML's MDS shards.
 *
 * A column of encoding jpeg, png or bytes has the pictures, another one the labels:
 * numbers or texts, or masks (png). What lies where is read once (members.h). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/data/mds.h"
#include "core/data/members.h"

enum { LABEL_MOST = 1 << 16 };

struct options {
    struct et_data_options common;
    int color;
    char *image, *target;
    double test_fraction;
    struct eti_label_options labels;
    struct eti_cache_options cache;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "folder with index.json, or with train and val"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    ETI_CHANNELS_OPTION(struct options),
    {
        .name = "image",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, image),
        .flags = ET_OPT_OPTIONAL,
        .help = "column of pictures; unset: the first of encoding jpeg or png",
    },
    {
        .name = "target",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, target),
        .flags = ET_OPT_OPTIONAL,
        .help = "column of labels or masks; unset: the first other one",
    },
    ETI_TEST_FRACTION_OPTION(struct options),
    ETI_LABEL_OPTIONS(struct options),
    ETI_CACHE_OPTIONS(struct options),
    {.name = NULL},
};

/* The private state: a list, and what is needed until it is there. */
struct state {
    struct eti_picture_list l;
    struct eti_mds mds;
    int image, target; /* columns */
    bool masks;
};

static bool
is_picture(const struct eti_mds_column *c)
{
    return strcmp(c->encoding, "jpeg") == 0 || strcmp(c->encoding, "png") == 0;
}

static et_status
choose_columns(struct et_ctx *cx, const struct options *o, const char *folder,
               struct state *s)
{
    const struct eti_mds *m = &s->mds;
    s->image = s->target = -1;
    if (o->image)
        ET_TRY(eti_mds_need_column(cx, m, folder, o->image, &s->image));
    if (o->target)
        ET_TRY(eti_mds_need_column(cx, m, folder, o->target, &s->target));
    for (int i = 0; i < m->n_columns; i++) {
        if (s->image < 0 && i != s->target && is_picture(&m->column[i]))
            s->image = i;
        else if (s->target < 0 && i != s->image)
            s->target = i;
    }
    if (s->image < 0 || s->target < 0 || s->image == s->target)
        return ET_FAIL(cx, ET_EINVAL,
                       "%s: no column of pictures (jpeg, png) and another one: image "
                       "and target name them",
                       folder);
    const struct eti_mds_column *c = &m->column[s->image];
    if (!is_picture(c) && strcmp(c->encoding, "bytes") != 0)
        return ET_FAIL(cx, ET_ENOTSUP,
                       "%s: column '%s' is %s, and pictures are read from jpeg, png "
                       "and bytes",
                       folder, c->name, c->encoding);
    s->masks = strcmp(m->column[s->target].encoding, "png") == 0;
    return ET_OK;
}

/* ---- the index ---- */

/* Where column I of sample AT lies, as a place of the list. */
static et_status
place_of(const struct state *s, const struct eti_mds_file *f, int32_t shard, int64_t at,
         int i, struct eti_picture_at *out, struct et_error *why)
{
    int64_t offset, bytes;
    ET_TRY(eti_mds_place(&s->mds, f, at, i, &offset, &bytes, why));
    if (bytes > INT32_MAX)
        return eti_why(why, ET_EFORMAT, "a column of 2 GiB or more");
    *out = (struct eti_picture_at){offset, shard, (int32_t)bytes};
    return ET_OK;
}

static et_status
read_label(const struct state *s, const struct eti_mds_file *f,
           const struct eti_picture_at *at, char out[LABEL_MOST], struct et_error *why)
{
    uint8_t bytes[LABEL_MOST];
    if (at->bytes >= LABEL_MOST)
        return eti_why(why, ET_EFORMAT, "a label of %d bytes", (int)at->bytes);
    ET_TRY(eti_file_read(&f->file, bytes, at->bytes, at->offset, why));
    return eti_mds_text(s->mds.column[s->target].encoding, bytes, at->bytes, out,
                        LABEL_MOST, why);
}

static et_status
add_sample(struct eti_member_scan *scan, const struct state *s,
           const struct eti_mds_file *f, int64_t at, struct et_error *why)
{
    struct eti_picture_at picture, target;
    char label[LABEL_MOST], name[64];
    ET_TRY(place_of(s, f, scan->shard, at, s->image, &picture, why));
    ET_TRY(place_of(s, f, scan->shard, at, s->target, &target, why));
    if (!s->masks)
        ET_TRY(read_label(s, f, &target, label, why));
    snprintf(name, sizeof name, "sample %lld of shard %d", (long long)at,
             (int)scan->shard);
    return eti_member_add(scan, &picture, s->masks ? &target : NULL, name,
                          s->masks ? NULL : label);
}

static et_status
scan_samples(struct eti_member_scan *scan, const struct state *s,
             struct eti_mds_file *f)
{
    struct et_error why = {0};
    et_status status = eti_mds_begin(f, s->mds.shard[scan->shard].samples, &why);
    for (int64_t i = 0; status == ET_OK && i < f->n; i++)
        status = add_sample(scan, s, f, i, &why);
    eti_mds_end(f);
    if (status == ET_OK || !why.message[0])
        return status;
    return ET_FAIL(scan->cx, status, "%s: %s", f->file.path, why.message);
}

static et_status
scan_shard(struct eti_member_scan *scan)
{
    /* The list is the first member of the state. */
    const struct state *s = (const struct state *)scan->l;
    const char *path = eti_string(&scan->l->files, scan->shard);
    struct eti_mds_file f = {.n = 0};
    snprintf(f.file.path, sizeof f.file.path, "%s", path);
    ET_TRY(eti_file_open(scan->cx, path, &f.file.fd, &f.file.size));
    et_status status = scan_samples(scan, s, &f);
    close(f.file.fd);
    return status;
}

/* ---- the class ---- */

static et_status
open_mds(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct state *s = self->state;
    char folder[ETI_PATH_MAX], path[ETI_PATH_MAX], key[4 * ETI_MDS_NAME];
    bool apart;
    for (int i = 0; i < 256; i++)
        s->l.map[i] = (uint8_t)i;
    ET_TRY(eti_mds_folder(cx, o->common.path, o->common.split, folder, &apart));
    ET_TRY(eti_mds_read(cx, folder, &s->mds));
    ET_TRY(choose_columns(cx, o, folder, s));
    for (int64_t i = 0; i < s->mds.n_shards; i++) {
        ET_TRY(eti_mds_path(cx, folder, &s->mds.shard[i], path));
        ET_TRY(eti_strings_add(cx, &s->l.files, path));
    }
    snprintf(key, sizeof key, "mds %s|%s", s->mds.column[s->image].name,
             s->mds.column[s->target].name);
    const struct eti_members_config c = {
        .scan = scan_shard,
        .key = key,
        .labels = &o->labels,
        .test_fraction = apart ? 0 : o->test_fraction,
    };
    ET_TRY(eti_members_open(cx, self, &c));
    if (s->masks && o->labels.num_classes == ET_INT_UNSET)
        return ET_FAIL(cx, ET_EINVAL,
                       "mds_images: num_classes is missing, which masks do not tell");
    return eti_picture_list_end(cx, self, o->color ? 3 : 1, o->labels.num_classes,
                                &o->cache);
}

static void
close_mds(struct et_dataset *self)
{
    struct state *s = self->state;
    eti_mds_free(self->cx, &s->mds);
    eti_picture_list_close(self);
}

const struct et_dataset_class et_dataset_mds_images = {
    .info =
        {
            .name = "mds_images",
            .class_name = "MdsImages",
            .summary = "pictures and labels in shards as MosaicML's Streaming writes "
                       "them",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .open = open_mds,
    .sample = eti_picture_list_sample,
    .close = close_mds,
};
