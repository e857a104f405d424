/* SPDX-License-Identifier: Apache-2.0 */
/* tracked.h: what a model made of the same samples at each evaluation of its run.
 *
 *     LABEL.track.jsonl   a line for each evaluation, oldest first:
 *         {"ep":1,"ba":469,"label":[9,2...],"class":[9,3...],"p":[0.91,0.44...],
 *          "names":{"2":"pullover","3":"dress","9":"ankle-boot"}}
 *                         names: of the classes that are in the line, where the data
 *                         have them
 *                         masks: "p" is the part of the pixels that are right, and
 *                         "mask":["0001..."...] their classes, two hexadecimal digits
 *                         each, "h" x "w" of them
 *     LABEL.track.ppm     the pictures (predictions.h, a sheet), sample by sample; with
 *                         masks the target's colours are beside each
 *
 * A run that goes on from a checkpoint evaluates anew what it had before: of lines of
 * one batch, and of those behind it, the last count. */
#ifndef ETI_TRACKED_H
#define ETI_TRACKED_H

#include <jansson.h>

#include "core/library/predictions.h"
#include "etude/tensor.h"

enum {
    ETI_TRACKED_MOST = 32, /* samples */
    ETI_TRACKED_SIDE = 48, /* pixels of a side of a mask that are kept */
    ETI_TRACKED_LINES = 1000
};

struct eti_tracked_batch {
    const float *outputs;      /* scores [N,C] or [N,C,H,W] */
    struct et_desc desc;       /* of them */
    const int32_t *target;     /* [N] or [N,H,W] */
    const float *image;        /* [N,C,H,W]; NULL: they are no pictures */
    struct et_desc image_desc; /* of them */
    int64_t epoch, batch;      /* of training */
    const char *const *names;  /* of the classes, [n_names]; NULL: numbers */
    int64_t n_names;
};
/* Adds a line to FOLDER/LABEL.track.jsonl, and the pictures where there are none.
 * EIO, ENOMEM. */
ET_NODISCARD et_status eti_tracked_write(struct et_ctx *cx, const char *folder,
                                         const char *label,
                                         const struct eti_tracked_batch *b);
/* The lines of PATH that count, as a list; the caller's. NULL: there is no such file,
 * or none of its lines can be read. */
json_t *eti_tracked_read(const char *path);
/* What LINE calls CLASS; NULL: it has no name for it. */
const char *eti_tracked_name(const json_t *line, int class);

#endif
