/* SPDX-License-Identifier: Apache-2.0 */
/* predict.h: a run's model from one of its checkpoints, ready for new samples.
 *
 *     struct et_predictor *p;
 *     float scores[10];
 *     ET_TRY(et_checkpoint_load_model(cx, "runs/brisk-otter", NULL, NULL, &p));
 *     ET_TRY(et_predictor_run(p, image, 1, scores, 10));
 *     et_predictor_free(&p);
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
