/* SPDX-License-Identifier: Apache-2.0 */
/* functional.h: what the algorithms do, as functions.
 *
 * Each is the pure core of the algorithm that its comment names, of which
 * etude-algorithms(7) has the options and the source: no state, no events, random
 * numbers as arguments. Those on a graph append nodes and return NULL as the functions
 * of op.h do.
 *
 * ELAPSED is a fraction of the run, in [0, 1]. */
#ifndef ETUDE_FUNCTIONAL_H
#define ETUDE_FUNCTIONAL_H

#include "etude/module.h"
#include "etude/op.h"
#include "etude/optim.h"
#include "etude/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

/* LabelSmoothing: TARGET, I32 [N,...] or dense f32 [N,C,...], as dense targets of which
 * SMOOTHING is spread evenly over the classes. LOGITS [N,C,...] says how many. Rows of
 * ignored (negative) labels stay zero. */
struct et_tensor *et_smooth_labels(struct et_graph *g, struct et_tensor *logits,
                                   struct et_tensor *target, double smoothing);

/* MixUp: (1 - m) x + m batch[index]. X f32 [n,...], BATCH [N,...] whose rows INDEX
 * (I32 [n]) names, M f32 [1], the partner's weight. */
struct et_tensor *et_mixup_batch(struct et_graph *g, struct et_tensor *x,
                                 struct et_tensor *batch, struct et_tensor *index,
                                 struct et_tensor *m);
/* M: min(b, 1 - b) of b ~ Beta(alpha, alpha), in [0, 0.5]; for alpha 0 it is 0. */
double et_mixup_coefficient(struct et_rng *rng, double alpha);

/* Boxes in pictures are TOP, LEFT, BOTTOM, RIGHT: rows [top, bottom) and columns
 * [left, right). One whose middle is at row Y and column X, with HEIGHT / 2 rows before
 * that and as many from it on, columns likewise; what lies outside of H x W is cut
 * off. */
void et_box_at(int64_t y, int64_t x, int64_t height, int64_t width, int64_t H,
               int64_t W, int32_t box[4]);
/* One at a place that is drawn: its middle in the picture; or with UNIFORM_SAMPLING so
 * that it covers each pixel as often. */
void et_box_draw(struct et_rng *rng, int64_t height, int64_t width, int64_t H,
                 int64_t W, bool uniform_sampling, int32_t box[4]);

/* CutMix: X, pictures f32 [n,C,H,W] or masks [n,H,W], whose box BOX (I32 [1,4]) shows
 * batch[index]. BATCH [N,...] has the rows that INDEX (I32 [n]) names. */
struct et_tensor *et_cutmix_batch(struct et_graph *g, struct et_tensor *x,
                                  struct et_tensor *batch, struct et_tensor *index,
                                  struct et_tensor *box);
/* The share of the original before boxes are cut off: Beta(alpha, alpha); for alpha 0
 * it is 0. */
double et_cutmix_lambda(struct et_rng *rng, double alpha);
/* The sides of a box that leaves about LAMBDA of H x W. */
void et_cutmix_sides(double lambda, int64_t H, int64_t W, int64_t *height,
                     int64_t *width);
/* What BOX leaves of H x W: the weight of the original label. */
double et_cutmix_adjusted_lambda(const int32_t box[4], int64_t H, int64_t W);

/* CutOut: X f32 [N,C,H,W] or [C,H,W] which is 0 in each of BOXES (I32 [K,4]). Squares
 * are trunc(length min(H, W)) wide. */
struct et_tensor *et_cutout_batch(struct et_graph *g, struct et_tensor *x,
                                  struct et_tensor *boxes);

/* ColOut: how many of N rows or columns are kept, trunc((1 - p) n); 0: too few. */
int64_t et_colout_kept(double p, int64_t n);
/* Which: INDEX [N] begins with KEPT of the numbers 0 .. N - 1, ascending. */
void et_colout_draw(struct et_rng *rng, int64_t n, int64_t kept, int32_t *index);
/* The ROWS I32 [h] and COLUMNS I32 [w] of X [N,C,H,W], or of masks [N,H,W]. */
struct et_tensor *et_colout_batch(struct et_graph *g, struct et_tensor *x,
                                  struct et_tensor *rows, struct et_tensor *columns);

/* AugMix and RandAugment choose among these: all; without color, contrast, brightness
 * and sharpness; with these four as AugMix's authors have them. */
enum et_augmentation_set {
    ET_AUGMENT_ALL = 0,
    ET_AUGMENT_SAFE = 1,
    ET_AUGMENT_ORIGINAL = 2,
};
/* AugMix of the picture PIXELS [H,W,C], bytes, in place; C is 1 or 3, which are red,
 * green, blue. SEVERITY in [0, 10], WIDTH of 1 at least, ALPHA above 0; DEPTH below 1:
 * 1 to 3, drawn for each chain. EINVAL, ENOMEM. */
ET_NODISCARD et_status et_augmix_image(struct et_ctx *cx, uint8_t *pixels, int C,
                                       int64_t H, int64_t W, double severity,
                                       int64_t depth, int64_t width, double alpha,
                                       enum et_augmentation_set set,
                                       struct et_rng *rng);
/* RandAugment of such a picture. SEVERITY in [0, 10], DEPTH of 0 at least. */
ET_NODISCARD et_status et_randaugment_image(struct et_ctx *cx, uint8_t *pixels, int C,
                                            int64_t H, int64_t W, double severity,
                                            int64_t depth, enum et_augmentation_set set,
                                            struct et_rng *rng);

/* BlurPool on the tree below ROOT: strided convolutions with at least MIN_CHANNELS
 * input channels, and max pools; what it made earlier stays. *OUT: the replacements;
 * the caller releases them, also after a failure. */
ET_NODISCARD et_status et_apply_blurpool(struct et_ctx *cx, struct et_module *root,
                                         bool replace_convs, bool replace_maxpools,
                                         bool blur_first, int64_t min_channels,
                                         struct et_surgery *out);

/* StochasticDepth on the bottlenecks below ROOT, which stay where they are: each is
 * left out of a step, or each sample of it, with a rate of its own. Made again on the
 * same tree it takes the place of what was made first. DEV: the model's; borrowed.
 * EINVAL: a rate outside [0, 1]. */
struct et_stochastic_depth;
enum et_stochastic_method { ET_STOCHASTIC_BLOCK = 0, ET_STOCHASTIC_SAMPLE = 1 };
enum et_drop_distribution { ET_DROP_UNIFORM = 0, ET_DROP_LINEAR = 1 };
ET_NODISCARD et_status et_apply_stochastic_depth(
    struct et_ctx *cx, struct et_module *root, struct et_device *dev,
    enum et_stochastic_method method, double drop_rate,
    enum et_drop_distribution distribution, struct et_stochastic_depth **out);
/* How many blocks there are. */
int et_stochastic_depth_blocks(const struct et_stochastic_depth *d);
/* Another rate from the next draw on, as when it warms up. */
void et_stochastic_depth_set_rate(struct et_stochastic_depth *d, double drop_rate);
/* Before a step: which blocks it leaves out. One uniform number of RNG for each, in the
 * order of the tree. With ET_STOCHASTIC_SAMPLE, whose draws are those of a pass
 * (et_forward.rng), nothing is drawn. */
ET_NODISCARD et_status et_stochastic_depth_draw(struct et_stochastic_depth *d,
                                                struct et_rng *rng);
/* No block is left out after that; evaluations stay as they are. A parameter space that
 * was made before is not to be updated any more: its slots name the gates. */
void et_stochastic_depth_free(struct et_stochastic_depth **d);
/* That of block I of N, from 0: DROP_RATE, or (I + 1) / N of it. */
double et_block_drop_rate(double drop_rate, enum et_drop_distribution distribution,
                          int i, int n);

/* GyroDropout: each Dropout below ROOT takes its masks from a pool of SIGMA. TAU of
 * these are used at once, for a while, in a run of STEPS steps. P: the probability of
 * zero, for all layers. SEED: of all draws. The caller frees *OUT behind the model's
 * last step. DEV: the model's; borrowed. EINVAL: p outside [0, 1), or fewer STEPS than
 * SIGMA. */
struct et_gyro_dropout;
ET_NODISCARD et_status et_apply_gyro_dropout(struct et_ctx *cx, struct et_module *root,
                                             struct et_device *dev, int64_t steps,
                                             double p, int64_t sigma, int64_t tau,
                                             uint32_t seed,
                                             struct et_gyro_dropout **out);
/* How many layers it replaced. */
int et_gyro_dropout_layers(const struct et_gyro_dropout *d);
/* Before step STEP, from 0, on a batch of N samples: the masks that it uses. Sample i
 * has mask i TAU / N of those. EINVAL: TAU does not divide N. */
ET_NODISCARD et_status et_gyro_dropout_begin(struct et_gyro_dropout *d, int64_t step,
                                             int64_t n);
/* The layers are the Dropouts that they were until the next step begins. */
void et_gyro_dropout_rest(struct et_gyro_dropout *d);
void et_gyro_dropout_free(struct et_gyro_dropout **d);
/* For how many steps masks are used: trunc(steps / sigma) tau. */
int64_t et_gyro_dropout_period(int64_t steps, int64_t sigma, int64_t tau);

/* SeqLengthWarmup: the length for STEP, from 0, of a run of STEPS steps: MIN_SEQ_LENGTH
 * and STEP_SIZE more each time, so that it is MAX_SEQ_LENGTH behind DURATION, a
 * fraction, of the run. EINVAL: the numbers do not fit each other. */
ET_NODISCARD et_status et_seq_length(struct et_ctx *cx, int64_t step, int64_t steps,
                                     double duration, int64_t min_seq_length,
                                     int64_t max_seq_length, int64_t step_size,
                                     int64_t *length);
/* Every field of BATCH, [N,T] or [N,T,...], becomes LENGTH columns long: with TRUNCATE
 * the first of each row; else the tokens of all rows are cut into rows of LENGTH, and
 * those left over are dropped. Where T is no longer than LENGTH nothing happens.
 * PRESERVE_END_OF_SEQUENCE: the last element that the field attention_mask has in a row
 * takes the place of the last one kept; that field is evaluated. EINVAL: fields that do
 * not fit. */
ET_NODISCARD et_status et_set_batch_sequence_length(struct et_graph *g,
                                                    struct et_samples *batch,
                                                    int64_t length, bool truncate,
                                                    bool preserve_end_of_sequence);

/* EMA: smoothing shadow + (1 - smoothing) value. Arrays of one shape. */
struct et_tensor *et_compute_ema(struct et_graph *g, struct et_tensor *shadow,
                                 struct et_tensor *value, double smoothing);
/* The smoothing with which a value counts half after HALF_LIFE; both in one unit. */
double et_ema_smoothing(double half_life, double update_interval);

/* GradientClipping: GRAD, flat f32 [total] as SPACE lays it out, bounded. AGC_EPS: the
 * least norm that weights count as having; used by ET_CLIP_ADAPTIVE, which also needs
 * to know which parameters have a gradient (space->has_grad). */
enum et_clipping { ET_CLIP_NORM = 0, ET_CLIP_VALUE = 1, ET_CLIP_ADAPTIVE = 2 };
struct et_tensor *et_apply_gradient_clipping(struct et_graph *g, struct et_tensor *grad,
                                             const struct et_param_space *space,
                                             enum et_clipping type, double threshold,
                                             double agc_eps);

/* ProgressiveResizing: X f32 [N,C,H,W], or labels I32 [N,H,W] whose values stay what
 * they are (nearest, whatever MODE), at another size: a pixel of it is STEP pixels of X
 * from the next, down as across. */
struct et_tensor *et_resize_batch(struct et_graph *g, struct et_tensor *x,
                                  enum et_resize_mode mode, int64_t height,
                                  int64_t width, double step);
/* The window of X [N,C,H,W] or [N,H,W] at ROWS I32 [h] and COLUMNS I32 [w]. */
struct et_tensor *et_crop_batch(struct et_graph *g, struct et_tensor *x,
                                struct et_tensor *rows, struct et_tensor *columns);
/* The scale at a fraction of the run: INITIAL_SCALE up to the delay, 1 in the finetune
 * fraction at the end, linear between. The fractions sum to less than 1. */
double et_resize_scale(double elapsed, double initial_scale, double delay_fraction,
                       double finetune_fraction);
/* SIZE (height, width) at that scale: the width a multiple of INCREMENT, half to even,
 * the height in proportion. Unchanged where that is no smaller. */
void et_resize_size(double scale, int64_t increment, int64_t size[2]);

/* SelectiveBackprop: is this batch pruned? BATCH_IN_EPOCH counts from 0. */
bool et_should_selective_backprop(double elapsed, int64_t batch_in_epoch, double start,
                                  double end, double keep, int64_t interrupt);
/* How many of N samples are kept: trunc(keep n), but one at least. */
int64_t et_selection_size(int64_t n, double keep);
/* WEIGHT [n] of each rank, easiest first; they sum to 1. */
void et_selection_weights(int64_t n, double keep, double *weight);
/* The rows kept, in the order drawn, into ROWS [et_selection_size(n, keep)]; no row
 * twice. LOSS [n], n > 0, on the host. NaN counts as hardest. */
ET_NODISCARD et_status et_select_using_loss(struct et_ctx *cx, const float *loss,
                                            int64_t n, double keep, struct et_rng *rng,
                                            int32_t *rows);

/* SqueezeExcite on the tree below ROOT: behind convolutions with at least MIN_CHANNELS
 * input and output channels; LATENT_CHANNELS below 1 are a fraction of a convolution's.
 * *OUT as of et_apply_blurpool, here and below. */
ET_NODISCARD et_status et_apply_squeeze_excite(struct et_ctx *cx,
                                               struct et_module *root,
                                               double latent_channels,
                                               int64_t min_channels,
                                               struct et_surgery *out);

/* LayerFreezing: how much of the layers is frozen at ELAPSED. */
double et_freeze_fraction(double elapsed, double freeze_start, double freeze_level);
/* The first trunc(FRACTION (n - 1)) of ROOT's n layers, modules with parameters and
 * without children in the order of declaration, require no gradient from here on.
 * *FROZEN of *LAYERS; the caller then follows as after et_module_freeze. */
void et_freeze_layers(struct et_module *root, double fraction, int *frozen,
                      int *layers);

/* GhostBatchNorm on the tree below ROOT: all batch norms. */
ET_NODISCARD et_status et_apply_ghost_batchnorm(struct et_ctx *cx,
                                                struct et_module *root,
                                                int64_t ghost_batch_size,
                                                struct et_surgery *out);

/* ChannelsLast: nothing is changed. *N of the *ALL parameters with four axes below ROOT
 * are channels-last in memory. */
ET_NODISCARD et_status et_apply_channels_last(struct et_ctx *cx, struct et_module *root,
                                              int *n, int *all);

/* Factorize on the tree below ROOT: convolutions of one group and linear layers with at
 * least so many inputs and outputs, where the two that take their place have less work.
 * Latent numbers below 1 are fractions of the smaller of inputs and outputs. */
ET_NODISCARD et_status et_apply_factorization(
    struct et_ctx *cx, struct et_module *root, bool factorize_convs,
    bool factorize_linears, int64_t min_channels, double latent_channels,
    int64_t min_features, double latent_features, struct et_surgery *out);

/* WeightStandardization on the tree below ROOT: all convolutions but the last so
 * many. */
ET_NODISCARD et_status et_apply_weight_standardization(struct et_ctx *cx,
                                                       struct et_module *root,
                                                       int64_t n_last_layers_ignore,
                                                       struct et_surgery *out);

/* LowPrecisionLayerNorm on the tree below ROOT: all layer norms. */
ET_NODISCARD et_status et_apply_low_precision_layernorm(struct et_ctx *cx,
                                                        struct et_module *root,
                                                        struct et_surgery *out);

/* LowPrecisionGroupNorm on the tree below ROOT: all group norms. */
ET_NODISCARD et_status et_apply_low_precision_groupnorm(struct et_ctx *cx,
                                                        struct et_module *root,
                                                        struct et_surgery *out);

/* GatedLinearUnits on the tree below ROOT: the feed-forward parts of a BERT model,
 * whose intermediate modules become identities. ACT: of the gate; NULL: the model's
 * own. EINVAL: the model is no BERT, or has activations of several kinds and ACT is
 * NULL. */
ET_NODISCARD et_status et_apply_gated_linear_units(
    struct et_ctx *cx, struct et_module *root, const struct et_module_class *act,
    bool gated_layer_bias, bool non_gated_layer_bias, struct et_surgery *out);

/* Alibi on the tree below ROOT: the attentions of GPT-2 and BERT get their bias for
 * MAX_SEQUENCE_LENGTH tokens, and the tables of positions go. *N: attentions. What has
 * to follow the change does so as after et_module_replace. */
ET_NODISCARD et_status et_apply_alibi(struct et_ctx *cx, struct et_module *root,
                                      int64_t max_sequence_length, int *n);
/* *X [B,T] as [B / scaling, T scaling], row-major. EINVAL: that does not divide. */
ET_NODISCARD et_status et_alibi_batch(struct et_graph *g, struct et_tensor **x,
                                      double scaling);

#ifdef __cplusplus
}
#endif
#endif
