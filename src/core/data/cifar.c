/* SPDX-License-Identifier: Apache-2.0 */
/* cifar.c: CIFAR's binary files. See cifar.h.
 *
 * Source: A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009;
 * the data sets' page, "Binary version". Pixels stay planar, as in the file: the pass
 * that writes a batch reads them with strides. */
#include "core/data/cifar.h"

enum { SIDE = 32, PIXEL_BYTES = 3 * SIDE * SIDE, MAX_FILES = 5 };

et_status
eti_cifar_count(int64_t n, int label_bytes, int64_t *out, struct et_error *why)
{
    int64_t record = label_bytes + PIXEL_BYTES;
    *out = n / record;
    if (n % record)
        return eti_why(why, ET_EFORMAT, "%lld is not a multiple of %lld", (long long)n,
                       (long long)record);
    if (n == 0)
        return eti_why(why, ET_EFORMAT, "0 bytes: no samples");
    return ET_OK;
}

/* Loads one file into the set's next block, counts its records and reads their
 * labels. */
static et_status
load(struct et_ctx *cx, struct eti_image_set *set, const char *path,
     const struct eti_cifar *format, int64_t *n)
{
    struct eti_bytes *block = &set->block[set->n_blocks];
    struct et_error why = {0};
    ET_TRY(eti_file_load(cx, path, ETI_FILE_MAX, block));
    set->n_blocks++;
    if (eti_cifar_count(block->n, format->label_bytes, n, &why) != ET_OK)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %s", path, why.message);
    for (int64_t i = 0; i < *n; i++) {
        int label =
            block->data[i * (format->label_bytes + PIXEL_BYTES) + format->label_at];
        if (label >= format->num_classes)
            return ET_FAIL(cx, ET_EFORMAT, "%s: label %d at index %lld but %d classes",
                           path, label, (long long)i, format->num_classes);
    }
    return ET_OK;
}

et_status
eti_cifar_open(struct et_ctx *cx, struct et_dataset *self,
               const struct eti_cifar *format)
{
    struct eti_image_set *set = self->state;
    const char *const *files = format->files[self->common->split];
    int64_t counts[MAX_FILES] = {0}, n = 0;
    char path[ETI_PATH_MAX];
    for (int f = 0; files[f]; f++) {
        ET_TRY(eti_file_path(cx, path, self->common->path, files[f]));
        ET_TRY(load(cx, set, path, format, &counts[f]));
        n += counts[f];
    }
    et_facts_images(&self->facts, n, 3, SIDE, SIDE, format->num_classes);
    set->planar = true;
    ET_TRY(eti_image_set_reserve(cx, set, n));
    int64_t at = 0;
    for (int f = 0; files[f]; f++) {
        const uint8_t *record = set->block[f].data;
        for (int64_t i = 0; i < counts[f]; i++, at++) {
            set->labels[at] = record[format->label_at];
            set->pixels[at] = record + format->label_bytes;
            record += format->label_bytes + PIXEL_BYTES;
        }
    }
    return ET_OK;
}
