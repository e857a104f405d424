/* SPDX-License-Identifier: Apache-2.0 */
/* imagefolder.c: pictures in a folder for each class, as torchvision's ImageFolder.
 *
 * PATH has the folders of classes; or "train" and "val" (or "valid", "validation",
 * "test") with those within. Classes are numbered in the order of their names' bytes,
 * those of the training folder for both. Every file right in the folder of a class is
 * one of its pictures, whatever its name ends in, but for names that begin with a
 * point. */
#include <stdio.h>
#include <string.h>

#include "core/data/file.h"
#include "core/data/picture_list.h"

struct options {
    struct et_data_options common;
    int color;
    double test_fraction;
    char *files;
    struct eti_cache_options cache;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "folder with a folder for each class, or with train and val"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    ETI_CHANNELS_OPTION(struct options),
    ETI_TEST_FRACTION_OPTION(struct options),
    {
        .name = "files",
        .type = ET_OPT_PATH,
        .offset = offsetof(struct options, files),
        .flags = ET_OPT_OPTIONAL,
        .help = "file with a line CLASS/NAME for each picture of this part",
    },
    ETI_CACHE_OPTIONS(struct options),
    {.name = NULL},
};

/* The folder of classes that those to train with lie in, and that of this split: the
 * same but where there is one for each. *APART: there is. */
static et_status
find_folders(struct et_ctx *cx, const struct options *o, char train[ETI_PATH_MAX],
             char own[ETI_PATH_MAX], bool *apart)
{
    static const char *const to_test[] = {"val", "valid", "validation", "test"};
    ET_TRY(eti_file_path(cx, train, o->common.path, "train"));
    *apart = eti_is_folder(cx, train);
    snprintf(own, ETI_PATH_MAX, "%s", *apart ? train : o->common.path);
    if (!*apart)
        snprintf(train, ETI_PATH_MAX, "%s", o->common.path);
    if (!*apart || o->common.split != ET_SPLIT_TEST)
        return ET_OK;
    for (size_t i = 0; i < sizeof to_test / sizeof *to_test; i++) {
        ET_TRY(eti_file_path(cx, own, o->common.path, to_test[i]));
        if (eti_is_folder(cx, own))
            return ET_OK;
    }
    return ET_FAIL(cx, ET_ENOENT,
                   "imagefolder: %s has a folder train, and none of val, "
                   "valid, validation and test",
                   o->common.path);
}

/* The folders in PATH are the classes. */
static et_status
find_classes(struct et_ctx *cx, const char *path, struct eti_strings *classes)
{
    struct eti_strings all = {0};
    et_status status = eti_strings_of_folder(cx, path, &all);
    for (int64_t i = 0; status == ET_OK && i < all.n; i++) {
        char folder[ETI_PATH_MAX];
        status = eti_file_path(cx, folder, path, eti_string(&all, i));
        if (status == ET_OK && eti_is_folder(cx, folder))
            status = eti_strings_add(cx, classes, eti_string(&all, i));
    }
    eti_strings_free(cx, &all);
    if (status == ET_OK && classes->n == 0)
        return ET_FAIL(cx, ET_EFORMAT,
                       "imagefolder: %s has no folders, which would be "
                       "the classes",
                       path);
    return status;
}

/* Adds the pictures of class K that lie in ROOT and belong to this split. */
static et_status
add_class(struct et_ctx *cx, const struct options *o, struct eti_picture_list *l,
          const char *root, int64_t k, bool by_hash)
{
    struct eti_strings files = {0};
    char folder[ETI_PATH_MAX], path[ETI_PATH_MAX];
    const char *class = eti_string(&l->classes, k);
    ET_TRY(eti_file_path(cx, folder, root, class));
    if (!eti_is_folder(cx, folder)) /* nothing of it to test with */
        return ET_OK;
    et_status status = eti_strings_of_folder(cx, folder, &files);
    for (int64_t i = 0; status == ET_OK && i < files.n; i++) {
        status = eti_file_path(cx, path, folder, eti_string(&files, i));
        const char *name = path + strlen(root) + 1; /* CLASS/NAME */
        if (status == ET_OK &&
            (!by_hash || eti_is_of_split(name, o->test_fraction, o->common.split)))
            status = eti_picture_list_add(cx, l, path, (int32_t)k);
    }
    eti_strings_free(cx, &files);
    return status;
}

/* The pictures that the file names. */
static et_status
add_listed(struct et_ctx *cx, const struct options *o, struct eti_picture_list *l,
           const char *root)
{
    struct eti_strings lines = {0};
    et_status status = eti_strings_of_lines(cx, o->files, &lines);
    for (int64_t i = 0; status == ET_OK && i < lines.n; i++) {
        char class[ETI_PATH_MAX], path[ETI_PATH_MAX];
        const char *line = eti_string(&lines, i);
        int n = (int)strcspn(line, "/");
        snprintf(class, sizeof class, "%.*s", n, line);
        int64_t k = eti_strings_find(&l->classes, class);
        if (line[n] != '/' || k < 0)
            status = ET_FAIL(cx, ET_EFORMAT,
                             "%s: '%.200s' does not begin with one of the %lld classes",
                             o->files, line, (long long)l->classes.n);
        else
            status = eti_file_path(cx, path, root, line);
        if (status == ET_OK)
            status = eti_picture_list_add(cx, l, path, (int32_t)k);
    }
    eti_strings_free(cx, &lines);
    return status;
}

static et_status
open_folder(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct eti_picture_list *l = self->state;
    char train[ETI_PATH_MAX], own[ETI_PATH_MAX];
    bool apart;
    ET_TRY(find_folders(cx, o, train, own, &apart));
    ET_TRY(find_classes(cx, train, &l->classes));
    if (o->files)
        ET_TRY(add_listed(cx, o, l, own));
    else if (!apart && o->common.split == ET_SPLIT_TEST && o->test_fraction == 0)
        return ET_FAIL(cx, ET_EINVAL,
                       "imagefolder: %s has no folders train and val: test_fraction or "
                       "files says which pictures are to evaluate with",
                       o->common.path);
    else
        for (int64_t k = 0; k < l->classes.n; k++)
            ET_TRY(add_class(cx, o, l, own, k, !apart));
    return eti_picture_list_end(cx, self, o->color ? 3 : 1, 0, &o->cache);
}

const struct et_dataset_class et_dataset_imagefolder = {
    .info =
        {
            .name = "imagefolder",
            .class_name = "ImageFolder",
            .summary = "JPEG, PNG and WebP pictures in a folder for each class",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_picture_list),
    .open = open_folder,
    .sample = eti_picture_list_sample,
    .close = eti_picture_list_close,
};
