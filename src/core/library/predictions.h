/* SPDX-License-Identifier: Apache-2.0 */
/* predictions.h: what a model makes of each sample: kept in the run's directory for
 * screens, and written for other programs. What an answer is depends on the data:
 *
 *     a class     sample,label,class,loss,p0,p1...     p: probabilities
 *     masks       sample,pixels,right,loss,iou0...     a class for each pixel
 *     tokens      sample,tokens,right,loss             one at each place
 *     values      sample,loss,target0,value0...        numbers
 *
 * predictions/LABEL.csv has these lines, LABEL.json what they come to (summary.c), and
 * LABEL.ppm the pictures of the worst. Where classes have names a CSV of classes ends
 * with the columns label_name and class_name.
 *
 * What counts nothing, a label below 0, has no loss. */
#ifndef ETI_PREDICTIONS_H
#define ETI_PREDICTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "etude/ctx.h"

enum eti_answer {
    ETI_ANSWER_CLASS,
    ETI_ANSWER_MASK,
    ETI_ANSWER_TOKENS,
    ETI_ANSWER_VALUES,
    ETI_ANSWERS
};
/* "class", "mask", "tokens", "values". */
extern const char *const eti_answer_names[ETI_ANSWERS];

/* A sample of tokens, place by place. */
struct eti_sequence {
    int64_t sample;
    float mean;                     /* of its losses */
    int n;                          /* places */
    int32_t *input, *label, *class; /* [n]; what follows in one block */
    float *loss;                    /* [n]; NaN where nothing counts */
};
enum { ETI_SEQUENCES = 32, ETI_SEQUENCE_MOST = 1024 /* places that are kept */ };
struct eti_sequences {
    int n;
    bool is_bytes;                        /* tokens are bytes */
    struct eti_sequence v[ETI_SEQUENCES]; /* by mean, falling */
};

struct eti_predictions {
    struct et_ctx *cx;
    enum eti_answer answer;
    int64_t n, room;
    int classes;            /* how many there are; values: numbers of a sample */
    int32_t *label, *class; /* [n]; class: the one with the greatest score. Masks and
                               tokens: how many count, and how many of them are right */
    float *loss;            /* [n], a mean of what counts; NaN where nothing does */
    int columns;            /* of p */
    float *p;               /* [n][columns]. Classes: their probabilities. Masks: the
                               IoU of each class, NaN where neither mask has it. Values:
                               target and value by turns. Tokens: none */
    int64_t *confusion; /* masks: [classes][classes] pixels, label and class; NULL */
    char **name;        /* [classes] of the classes; NULL: they have numbers alone */
    struct eti_sequences
        *sequences; /* of tokens: those with the greatest losses; NULL */
};
void eti_predictions_release(struct eti_predictions *all);
/* Adds N samples of SCORES [N][CLASSES], whose softmax are the probabilities. ENOMEM;
 * EINVAL where others had as many classes not. */
ET_NODISCARD et_status eti_predictions_add(struct eti_predictions *all,
                                           const float *scores, const int32_t *label,
                                           int64_t n, int classes);
/* Adds the sample with SCORES [CLASSES][PIXELS] and LABEL [PIXELS]. CHOSEN [PIXELS]:
 * where to leave the classes of the greatest scores. ENOMEM, EINVAL. */
ET_NODISCARD et_status eti_predictions_add_mask(struct eti_predictions *all,
                                                const float *scores,
                                                const int32_t *label, int64_t pixels,
                                                int classes, int32_t *chosen);
/* Adds the sample with SCORES [T][CLASSES] and LABEL [T]. CHOSEN [T] likewise, and LOSS
 * [T] of each place, NaN where nothing counts. ENOMEM, EINVAL. */
ET_NODISCARD et_status eti_predictions_add_tokens(struct eti_predictions *all,
                                                  const float *scores,
                                                  const int32_t *label, int64_t T,
                                                  int classes, int32_t *chosen,
                                                  float *loss);
/* The last sample that was added, place by place: kept where it is among the worst.
 * INPUT, LABEL and CLASS [T], LOSS [T]. ENOMEM. */
ET_NODISCARD et_status eti_predictions_keep_sequence(struct eti_predictions *all,
                                                     const int32_t *input,
                                                     const int32_t *label,
                                                     const int32_t *class,
                                                     const float *loss, int64_t T);
/* Adds N samples of COUNT numbers each; their loss is the mean square of what differs.
 * ENOMEM, EINVAL. */
ET_NODISCARD et_status eti_predictions_add_values(struct eti_predictions *all,
                                                  const float *values,
                                                  const float *target, int64_t n,
                                                  int count);
/* The same of one that was read. ENOMEM. */
ET_NODISCARD et_status eti_predictions_add_sequence(struct eti_predictions *all,
                                                    const struct eti_sequence *p);
/* Room for N samples in all, of all->columns. ENOMEM. */
ET_NODISCARD et_status eti_predictions_make_room(struct eti_predictions *all,
                                                 int64_t n);
/* Copies the names of the classes, NAME [N]. ENOMEM. */
ET_NODISCARD et_status eti_predictions_set_names(struct eti_predictions *all,
                                                 const char *const *name, int n);
/* "3 Dress", or "3": as much as fits. Returns BUF. */
const char *eti_predictions_name(const struct eti_predictions *all, int class,
                                 char *buf, size_t size);
/* Numbers of the samples of LABEL that were taken for CLASS, by loss, the greatest
 * first: at most MOST, into OUT. LABEL -1, and all answers but classes: all that are
 * not right. Returns how many. */
int64_t eti_predictions_worst(const struct eti_predictions *all, int label, int class,
                              int64_t *out, int64_t most);
/* Is sample I wholly right? Values are never. */
bool eti_predictions_is_right(const struct eti_predictions *all, int64_t i);

/* ---- what they come to: predictions_sum.c ---- */

/* Of all samples. What has no meaning for the answer, or no sample that counts, is
 * NaN. */
struct eti_predictions_sum {
    int64_t counted;  /* samples, pixels or tokens with a label */
    int64_t right;    /* of them */
    double loss;      /* mean over samples; tokens: over tokens */
    double mean_iou;  /* of the classes that are anywhere */
    double mae, rmse; /* values: of all numbers */
    double r2;        /* of the first number of each sample */
};
void eti_predictions_sum(const struct eti_predictions *all,
                         struct eti_predictions_sum *out);
/* Of masks: the IoU of CLASS over all pixels; NaN where none has it. */
double eti_predictions_iou(const struct eti_predictions *all, int class);
/* All that, of the data called DATA, with what no line has: names of classes, the
 * confusion of pixels, the worst passages. The caller's; NULL: no memory. */
json_t *eti_predictions_json(const struct eti_predictions *all, const char *data);
/* Takes from such JSON what lines do not have. EFORMAT, ENOMEM. */
ET_NODISCARD et_status eti_predictions_take_json(struct eti_predictions *all,
                                                 const json_t *from);

/* ---- files ---- */

enum eti_predictions_as { ETI_AS_CSV, ETI_AS_JSONL, ETI_AS_NPZ, ETI_AS_FOLDER };
/* What a file of that name is written as; a name that ends with "/" is a folder's.
 * False: it ends otherwise, and not with .csv, .jsonl or .npz either. */
bool eti_predictions_format(const char *path, enum eti_predictions_as *out);
/* Writes all to PATH, which is replaced at once: the lines above, or in an npz an array
 * for each column. EIO. */
ET_NODISCARD et_status eti_predictions_write(const struct eti_predictions *all,
                                             const char *path,
                                             enum eti_predictions_as as);
/* PATH becomes a file with the N bytes of TEXT, at once. EIO. */
ET_NODISCARD et_status eti_text_replace(struct et_ctx *cx, const char *path,
                                        const char *text, size_t n);
/* What was predicted of LABEL's data in FOLDER as the run keeps it: LABEL.csv and
 * LABEL.json. EIO. */
ET_NODISCARD et_status eti_predictions_keep(const struct eti_predictions *all,
                                            const char *folder, const char *label);
/* Reads PATH, a CSV as above, and names, confusion and passages from the .json beside
 * it, where there is one. ENOENT; EFORMAT with the line. */
ET_NODISCARD et_status eti_predictions_read(struct et_ctx *cx, const char *path,
                                            struct eti_predictions *out);

/* ---- every pixel and token of them: predictions_detail.c ---- */

/* Answers in full, as they come: masks as the arrays mask, label u8 [N,H,W] and loss
 * f32 [N] of an npz, or as PNG files FOLDER/000000.png whose numbers are classes (255:
 * counts nothing); tokens as JSON lines with input, label, class and losses. */
struct eti_detail {
    struct et_ctx *cx;
    const char *path; /* borrowed */
    enum eti_predictions_as as;
    int64_t n, room, H, W;
    uint8_t *mask, *label; /* of an npz */
    FILE *lines;           /* of tokens, into TEXT */
    char *text;
    size_t n_text;
};
/* Is there more to write than eti_predictions_write does? */
bool eti_detail_has(enum eti_answer answer, enum eti_predictions_as as);
void eti_detail_release(struct eti_detail *d);
/* The next sample. ENOTSUP: sizes that differ, or more classes than bytes have
 * numbers; ENOMEM, EIO. */
ET_NODISCARD et_status eti_detail_mask(struct eti_detail *d, const int32_t *chosen,
                                       const int32_t *label, int64_t H, int64_t W);
ET_NODISCARD et_status eti_detail_tokens(struct eti_detail *d, const int32_t *input,
                                         const int32_t *label, const int32_t *chosen,
                                         const float *loss, int64_t T);
/* When all are there. EIO. */
ET_NODISCARD et_status eti_detail_write(struct eti_detail *d,
                                        const struct eti_predictions *all);

/* ---- pictures of some of them: predictions_sheet.c ---- */

enum { ETI_TILES = 64, ETI_TILE = 64 }; /* pictures, and pixels of a side, at most */

/* The samples with the greatest losses so far among those whose class is wrong. */
struct eti_sheet {
    struct et_ctx *cx;
    int n, w, h; /* tiles, and the size of each */
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
/* The same of a picture with masks LABEL and CHOSEN [H][W]: three pictures in a row,
 * the colours of CHOSEN over X, LABEL, CHOSEN. A sheet has such tiles or the others. */
ET_NODISCARD et_status eti_sheet_add_masks(struct eti_sheet *s, int64_t sample,
                                           float loss, const float *x, int C, int H,
                                           int W, const int32_t *label,
                                           const int32_t *chosen);
/* As a PPM whose comment says which samples they are: "# etude w h n sample...".
 * EIO. */
ET_NODISCARD et_status eti_sheet_write(const struct eti_sheet *s, const char *path);
/* ENOENT, EFORMAT. */
ET_NODISCARD et_status eti_sheet_read(struct et_ctx *cx, const char *path,
                                      struct eti_sheet *out);

#endif
