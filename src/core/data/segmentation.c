/* SPDX-License-Identifier: Apache-2.0 */
/* segmentation.c: pictures, and masks with the class of each of their pixels.
 *
 * The mask of images/NAME.jpg is masks/NAME.png, one value of up to 8 bits a pixel, or
 * the numbers of a palette. Layouts: `folders` is PATH/images and PATH/masks, or both
 * in PATH/train and PATH/val; `ade20k` and `voc` are those of the archives that these
 * competitions give out (ADEChallengeData2016, VOC2012). */
#include <stdio.h>
#include <string.h>

#include "core/data/file.h"
#include "core/data/mask_names.h"
#include "core/data/picture_list.h"

enum { FOLDERS, ADE20K, VOC };
static const char *const layout_names[] = {"folders", "ade20k", "voc", NULL};
static const char *const by_layout[] = {"auto", NULL};

struct options {
    struct et_data_options common;
    int color, layout;
    double test_fraction;
    int64_t num_classes, ignore_index;
    bool skip_zero;
    struct eti_mask_name_options names;
    struct eti_cache_options cache;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "folder with images and masks; see layout"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    ETI_CHANNELS_OPTION(struct options),
    {
        .name = "layout",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, layout),
        .def = "folders",
        .choices = layout_names,
        .help = "how the files lie",
    },
    ETI_TEST_FRACTION_OPTION(struct options),
    {
        .name = "num_classes",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_classes),
        .def = "auto",
        .choices = by_layout,
        .min = 1,
        .max = 255,
        .help = "values of masks are below it; auto: 150 of ade20k, 21 of voc",
    },
    {
        .name = "ignore_index",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, ignore_index),
        .def = "255",
        .max = 255,
        .help = "value of a mask that counts nothing, as 255 does",
    },
    {
        .name = "skip_zero",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, skip_zero),
        .def = "false",
        .help = "0 counts nothing and 1 is the first class; of ade20k always",
        .also = "reduce_zero_label",
    },
    ETI_MASK_NAME_OPTIONS(struct options),
    ETI_CACHE_OPTIONS(struct options),
    {.name = NULL},
};

/* Where pictures and masks of a split lie, and what names them. */
struct place {
    char images[ETI_PATH_MAX], masks[ETI_PATH_MAX];
    char list[ETI_PATH_MAX]; /* of names without endings; empty: the folder's own */
    bool by_hash;
};

/* Everingham et al., "The Pascal visual object classes challenge", 2010. */
static const char *const voc_names[] = {
    "background", "aeroplane", "bicycle",   "bird",   "boat",        "bottle",
    "bus",        "car",       "cat",       "chair",  "cow",         "diningtable",
    "dog",        "horse",     "motorbike", "person", "pottedplant", "sheep",
    "sofa",       "train",     "tvmonitor"};

static const struct layout {
    const char *images[2], *masks[2], *list[2]; /* by split */
    int64_t classes;
    const char *const *names; /* [classes]; NULL: they have none, or */
    const char *table;        /* this file of the archive has them */
} layouts[] = {
    [ADE20K] = {{"images/training", "images/validation"},
                {"annotations/training", "annotations/validation"},
                {NULL, NULL},
                150,
                NULL,
                "objectInfo150.txt"},
    [VOC] = {{"JPEGImages", "JPEGImages"},
             {"SegmentationClass", "SegmentationClass"},
             {"ImageSets/Segmentation/train.txt", "ImageSets/Segmentation/val.txt"},
             21,
             voc_names,
             NULL},
};

static et_status
find_fixed(struct et_ctx *cx, const struct options *o, struct place *p)
{
    const struct layout *l = &layouts[o->layout];
    int split = o->common.split;
    ET_TRY(eti_file_path(cx, p->images, o->common.path, l->images[split]));
    ET_TRY(eti_file_path(cx, p->masks, o->common.path, l->masks[split]));
    return l->list[split] ? eti_file_path(cx, p->list, o->common.path, l->list[split])
                          : ET_OK;
}

static et_status
find_place(struct et_ctx *cx, const struct options *o, struct place *p)
{
    static const char *const parts[] = {"train", "val"};
    char root[ETI_PATH_MAX];
    *p = (struct place){.by_hash = false};
    if (o->layout != FOLDERS)
        return find_fixed(cx, o, p);
    ET_TRY(eti_file_path(cx, root, o->common.path, parts[o->common.split]));
    p->by_hash = !eti_is_folder(cx, root);
    if (p->by_hash)
        snprintf(root, sizeof root, "%s", o->common.path);
    if (p->by_hash && o->common.split == ET_SPLIT_TEST && o->test_fraction == 0)
        return ET_FAIL(
            cx, ET_EINVAL,
            "segmentation: %s has no folder val: test_fraction says how many "
            "of all are to evaluate with",
            o->common.path);
    ET_TRY(eti_file_path(cx, p->images, root, "images"));
    return eti_file_path(cx, p->masks, root, "masks");
}

/* Adds the picture FILE of the place, and its mask. */
static et_status
add(struct et_ctx *cx, struct eti_picture_list *l, const struct place *p,
    const char *file)
{
    char path[ETI_PATH_MAX], name[ETI_PATH_MAX];
    const char *dot = strrchr(file, '.');
    int n = (int)(dot ? dot - file : (long)strlen(file));
    snprintf(name, sizeof name, "%.*s.png", n, file);
    const struct eti_picture_at picture = {.file = (int32_t)l->files.n, .bytes = -1};
    const struct eti_picture_at mask = {.file = picture.file + 1, .bytes = -1};
    ET_TRY(eti_file_path(cx, path, p->images, file));
    ET_TRY(eti_strings_add(cx, &l->files, path));
    ET_TRY(eti_file_path(cx, path, p->masks, name));
    ET_TRY(eti_strings_add(cx, &l->files, path));
    return eti_picture_list_add_at(cx, l, &picture, &mask);
}

static et_status
add_all(struct et_ctx *cx, const struct options *o, struct eti_picture_list *l,
        const struct place *p)
{
    struct eti_strings names = {0};
    et_status status = p->list[0] ? eti_strings_of_lines(cx, p->list, &names)
                                  : eti_strings_of_folder(cx, p->images, &names);
    for (int64_t i = 0; status == ET_OK && i < names.n; i++) {
        char file[ETI_PATH_MAX];
        const char *name = eti_string(&names, i);
        snprintf(file, sizeof file, "%s%s", name, p->list[0] ? ".jpg" : "");
        if (!p->by_hash || eti_is_of_split(name, o->test_fraction, o->common.split))
            status = add(cx, l, p, file);
    }
    eti_strings_free(cx, &names);
    return status;
}

static void
fill_map(const struct options *o, uint8_t map[256])
{
    bool skip = o->skip_zero || o->layout == ADE20K;
    for (int v = 0; v < 256; v++)
        map[v] = (uint8_t)(v == o->ignore_index ? UINT8_MAX : skip ? v - 1 : v);
}

/* The layout's names, where it has its own number of classes. */
static et_status
name_classes(struct et_ctx *cx, const struct options *o, int64_t classes,
             struct eti_strings *out)
{
    const struct layout *layout = &layouts[o->layout];
    const bool is_own = classes == layout->classes;
    char table[ETI_PATH_MAX];
    if (is_own && layout->table)
        ET_TRY(eti_file_path(cx, table, o->common.path, layout->table));
    return eti_mask_names(cx, &o->names, is_own ? layout->names : NULL,
                          is_own && layout->table ? table : NULL, classes, out);
}

static et_status
open_pairs(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct eti_picture_list *l = self->state;
    struct place p;
    int64_t classes =
        o->num_classes == ET_INT_UNSET ? layouts[o->layout].classes : o->num_classes;
    if (classes == 0)
        return ET_FAIL(cx, ET_EINVAL,
                       "segmentation: num_classes is missing, which a "
                       "folder of masks does not tell");
    ET_TRY(find_place(cx, o, &p));
    ET_TRY(add_all(cx, o, l, &p));
    ET_TRY(name_classes(cx, o, classes, &l->classes));
    fill_map(o, l->map);
    return eti_picture_list_end(cx, self, o->color ? 3 : 1, classes, &o->cache);
}

const struct et_dataset_class et_dataset_segmentation = {
    .info =
        {
            .name = "segmentation",
            .class_name = "Segmentation",
            .summary = "pictures with masks of the class of each pixel",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_picture_list),
    .open = open_pairs,
    .sample = eti_picture_list_sample,
    .close = eti_picture_list_close,
};
