/* SPDX-License-Identifier: Apache-2.0 */
/* predict.h: a run's model from one of its checkpoints, ready for new samples.
 *
 *     struct et_predictor *p;
 *     float scores[10];
 *     ET_TRY(et_checkpoint_load_model(cx, "runs/brisk-otter", NULL, NULL, &p));
 *     ET_TRY(et_predictor_run(p, image, 1, scores, 10));
 *     et_predictor_free(&p);
 *
 * Where samples are more than one array, or their type is not known when the program is
 * written, each is passed with its name, dtype and shape, and these are checked:
 *
 *     struct et_raw_field text[2] = {{.name = "tokens", .data = tokens},
 *                                    {.name = "attention_mask", .data = mask}};
 *     const int64_t shape[] = {n, 128};
 *     for (int i = 0; i < 2; i++)
 *         et_desc_init(&text[i].desc, ET_I32, 2, shape, ET_ROW_MAJOR);
 *     ET_TRY(et_predictor_run_fields(p, text, 2, scores, count));
 *
 * The recipe that the run keeps says how the model is built, surgery included, and how
 * its inputs are made of raw samples: by the transforms of its first eval_data, or of
 * train_data where it has none. Those may not be random, as those of train_data often
 * are: a recipe that is to predict has an eval_data. */
#ifndef ETUDE_PREDICT_H
#define ETUDE_PREDICT_H

#include "etude/data.h"
#include "etude/model.h"
#include "etude/recipe.h"
#include "etude/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_predictor;

/* PATH: a run's directory (its newest checkpoint that verifies), a folder step-... in
 * it, or a run's directory with "/" and the name or label of one. DEV is borrowed until
 * the predictor is freed; NULL: one is opened, as the recipe says. ENV, which may be
 * NULL, is for the recipe: plugins that it names. ENOENT: there is nothing, or a
 * checkpoint lies alone, without the run's recipe. EFORMAT: it is damaged. EINVAL: the
 * transforms are random. Data are
 * opened only where their shapes are not known without (idx); else they need not be
 * there. */
ET_NODISCARD et_status et_checkpoint_load_model(struct et_ctx *cx, const char *path,
                                                struct et_device *dev,
                                                const struct et_recipe_env *env,
                                                struct et_predictor **out);
/* The model and all that came with it. */
void et_predictor_free(struct et_predictor **predictor);

/* The model, whose parameters are bound on et_predictor_device; borrowed. */
struct et_model *et_predictor_model(const struct et_predictor *p);
struct et_device *et_predictor_device(const struct et_predictor *p);
/* What a raw sample is: images of C, H and W bytes, or tokens; borrowed. */
const struct et_data_facts *et_predictor_facts(const struct et_predictor *p);
/* Tokens: how many a sample has. Images: 0. */
int64_t et_predictor_seq_len(const struct et_predictor *p);

/* The array that N raw samples are, U8 [N,H,W,C] or I32 [N,T], and the one that the
 * answers for them will be, f32. */
ET_NODISCARD et_status et_predictor_describe(struct et_predictor *p, int64_t n,
                                             struct et_desc *samples,
                                             struct et_desc *answers);

/* One field of N raw samples, in the host's memory. */
struct et_raw_field {
    const char *name;    /* as the data call it: "image", "tokens", "attention_mask";
                            NULL: the first */
    struct et_desc desc; /* of all N, row-major; the first axis is N */
    const void *data;    /* borrowed for the call */
    const void *reserved[2]; /* NULL: room for later versions */
};

/* What fields N raw samples may have, into OUT [ET_MAX_FIELDS], and how many into
 * *N_FIELDS: all of the data's but the target, the first one first, without data. Names
 * are borrowed from P. An axis that differs by sample, as the first of tokens and both
 * of pictures may, is the longest that there may be, or some size where there is no
 * bound. */
ET_NODISCARD et_status et_predictor_fields(struct et_predictor *p, int64_t n,
                                           struct et_raw_field *out, int *n_fields);
/* The array that the answers for N_FIELDS FIELDS will be: f32, as of
 * et_predictor_describe, and as long as these are. Errors: as below. */
ET_NODISCARD et_status et_predictor_describe_fields(struct et_predictor *p,
                                                    const struct et_raw_field *fields,
                                                    int n_fields,
                                                    struct et_desc *answers);
/* As et_predictor_run, of samples with N_FIELDS FIELDS. The first of the data's must be
 * there; what is left out of the others the model does not find (et_forward_input).
 * EINVAL: a name that the data do not have, with the nearest; a field twice. EDTYPE,
 * ESHAPE: with what it is and what it should be; fields that have another N; an array
 * that is not row-major. EFORMAT: an integer that is not below the field's bound. */
ET_NODISCARD et_status et_predictor_run_fields(struct et_predictor *p,
                                               const struct et_raw_field *fields,
                                               int n_fields, float *out, int64_t count);

/* N raw samples as the batches of a loader, for a graph of one's own: et_batch_x.
 * SAMPLES: images as bytes [N,H,W,C], tokens as int32_t [N,T], borrowed as long as the
 * loader. *OUT is borrowed from P, until the next call of this or of
 * et_predictor_run. */
ET_NODISCARD et_status et_predictor_loader(struct et_predictor *p, const void *samples,
                                           int64_t n, struct et_loader **out);
/* What the model makes of N raw samples, as above: row-major, f32 [N,classes],
 * [N,classes,H,W] or [N,T,V], COUNT numbers in all. ESHAPE, with the number that is
 * right, for another COUNT. */
ET_NODISCARD et_status et_predictor_run(struct et_predictor *p, const void *samples,
                                        int64_t n, float *out, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
