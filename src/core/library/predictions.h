/* SPDX-License-Identifier: Apache-2.0 */
/* predictions.h: what a classifier makes of each sample: kept in the run's directory
 * for screens, and written for other programs.
 *
 *     predictions/eval.csv   sample,label,class,loss,p0,p1...
 *     predictions/eval.ppm   the pictures of the worst, side by side
 *
 * A label below 0 counts nothing: its sample has no loss. */
#ifndef ETI_PREDICTIONS_H
#define ETI_PREDICTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "etude/ctx.h"

struct eti_predictions {
    struct et_ctx *cx;
    int64_t n, room;
    int classes;
    int32_t *label, *class; /* [n]; class: the one with the greatest score */
    float *loss;            /* [n]; NaN where the label counts nothing */
    float *p;               /* [n][classes]: of each class its probability */
};
void eti_predictions_release(struct eti_predictions *all);
/* Adds N samples of SCORES [N][CLASSES], whose softmax are the probabilities. ENOMEM;
 * EINVAL where others had as many classes not. */
ET_NODISCARD et_status eti_predictions_add(struct eti_predictions *all,
                                           const float *scores, const int32_t *label,
                                           int64_t n, int classes);
/* Numbers of the samples of LABEL that were taken for CLASS, by loss, the greatest
 * first: at most MOST, into OUT. LABEL -1: all whose class is wrong. Returns how
 * many. */
int64_t eti_predictions_worst(const struct eti_predictions *all, int label, int class,
                              int64_t *out, int64_t most);

/* ---- files ---- */

enum eti_predictions_as { ETI_AS_CSV, ETI_AS_JSONL, ETI_AS_NPZ };
/* What a file of that name is written as; false: its ending is none of .csv, .jsonl,
 * .npz. */
bool eti_predictions_format(const char *path, enum eti_predictions_as *out);
/* Writes all to PATH, which is replaced at once. EIO. */
ET_NODISCARD et_status eti_predictions_write(const struct eti_predictions *all,
                                             const char *path,
                                             enum eti_predictions_as as);
/* Reads PATH, a CSV as above. ENOENT; EFORMAT with the line. */
ET_NODISCARD et_status eti_predictions_read(struct et_ctx *cx, const char *path,
                                            struct eti_predictions *out);

/* ---- pictures of some of them: predictions_sheet.c ---- */

enum { ETI_TILES = 64, ETI_TILE = 64 }; /* pictures, and pixels of a side, at most */

/* The samples with the greatest losses so far among those whose class is wrong. */
struct eti_sheet {
    struct et_ctx *cx;
    int n, w, h; /* pictures, and the size of each */
    int64_t sample[ETI_TILES];
    float loss[ETI_TILES];   /* falling */
    uint8_t *rgb[ETI_TILES]; /* [h][w][3] */
};
void eti_sheet_release(struct eti_sheet *s);
/* Would a sample of that LOSS be among them? */
bool eti_sheet_wants(const struct eti_sheet *s, float loss);
/* Adds the picture X [H][W][C] of SAMPLE: made smaller where it is larger than a tile,
 * stretched from its least value to its greatest; one channel is grey. ENOMEM. */
ET_NODISCARD et_status eti_sheet_add(struct eti_sheet *s, int64_t sample, float loss,
                                     const float *x, int C, int H, int W);
/* As a PPM whose comment says which samples they are: "# etude w h n sample...".
 * EIO. */
ET_NODISCARD et_status eti_sheet_write(const struct eti_sheet *s, const char *path);
/* ENOENT, EFORMAT. */
ET_NODISCARD et_status eti_sheet_read(struct et_ctx *cx, const char *path,
                                      struct eti_sheet *out);

#endif
