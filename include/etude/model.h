/* SPDX-License-Identifier: Apache-2.0 */
/* model.h: a network with a task: what goes in, what the loss is, which metrics count.
 *
 * A model is made from its class, the options of a recipe, and what is known of the
 * data. Making one costs no device memory: its parameters are declared, not stored
 * (module.h).
 *
 *     const struct et_model_facts facts = {.channels = 1, .height = 28, .width = 28,
 *                                          .num_classes = 10};
 *     ET_TRY(et_model_new(cx, et_model_class_find("lenet"), NULL, &facts, &model));
 *     ET_TRY(et_model_bind_space(model, dev, seed, &space));
 *
 * A model of one's own is a struct et_model_class: examples/plugin_model.c. */
#ifndef ETUDE_MODEL_H
#define ETUDE_MODEL_H

#include <stdint.h>

#include "etude/module.h"
#include "etude/optim.h"
#include "etude/option.h"

#ifdef __cplusplus
extern "C" {
#endif

/* code, value, metrics to train with, metrics to evaluate with (metric.h), further ones
 * that an evaluation may ask for */
#define ET_TASK_MAP(X)                                                                 \
    X(CLASSIFICATION, 0, "Accuracy", "Accuracy CrossEntropy",                          \
      "BinaryF1Score MatthewsCorrCoef Loss")                                           \
    X(SEGMENTATION, 1, "MIoU", "MIoU CrossEntropy",                                    \
      "Dice Accuracy MatthewsCorrCoef Loss")                                           \
    X(LANGUAGE, 2, "LanguageCrossEntropy", "LanguageCrossEntropy LanguagePerplexity",  \
      "MaskedAccuracy Loss")                                                           \
    X(REGRESSION, 3, "MSE", "MSE MAE R2", "Loss")

enum et_task {
#define ET_TASK_ENUM(code, number, train, eval, more) ET_TASK_##code = number,
    ET_TASK_MAP(ET_TASK_ENUM)
#undef ET_TASK_ENUM
};

/* What a loss learns from. */
enum {
    ET_TAKES_CLASSES = 1, /* a class for each sample, or each of its pixels */
    ET_TAKES_SHARES = 2,  /* how much there is of each class, f32 as the outputs */
    ET_TAKES_NUMBERS = 4, /* real numbers, as many as outputs */
    ET_TAKES_TOKENS = 8,  /* a token for each of a sequence */
};

/* A loss as a component of recipes: `loss:`, in the place of the model's option. */
struct et_loss_class {
    struct et_component info;
    /* Appends the loss of each sample: f32 [N,...], whose mean is minimised. OUTPUTS
     * and the samples' target as et_model_loss has them; other fields, such as a mask
     * of what counts, by et_samples_find. */
    struct et_tensor *(*each)(struct et_graph *g, const void *options,
                              struct et_tensor *outputs,
                              const struct et_samples *samples);
    /* Instead of EACH, where a mean is not that over all positions: the loss by
     * REDUCTION, as et_model_loss returns it. */
    struct et_tensor *(*whole)(struct et_graph *g, const void *options,
                               struct et_tensor *outputs,
                               const struct et_samples *samples,
                               enum et_reduction reduction);
    unsigned takes; /* ET_TAKES_...: else it is refused before a step; 0: not said */
    /* What WHOLE's mean is over: f32, one number, the positions of SAMPLES that count,
     * or what they weigh. So that the mean over a batch can be put together of those
     * over its microbatches and ranks. MASKED: some of the batch's targets may be
     * negative. NULL, where the graph has not failed: all positions count alike. NULL
     * slot: samples do. (optional) */
    struct et_tensor *(*counted)(struct et_graph *g, const void *options,
                                 const struct et_samples *samples, bool masked);
};

/* The core's, in the order of losses.def, ending with NULL. */
extern const struct et_loss_class *const et_loss_classes[];
const struct et_loss_class *et_loss_find(const char *name); /* NULL: none */

/* What the model must fit: the loader's batches after all transforms, the dataset's
 * classes or vocabulary. 0 = unknown. A recipe's options go before. */
struct et_model_facts {
    int64_t channels, height, width; /* of an image; height 0: vectors of CHANNELS */
    int64_t num_classes;
    int64_t vocab_size, seq_len;        /* of token sequences */
    const struct et_registry *registry; /* whose layers a model of layers may have;
                                           NULL: the core's */
    const struct et_field *field; /* what arrives beside it, and what each is: of one
                                     sample of a batch, [n_fields]; NULL: not known */
    int n_fields;
};

/* First values, and what of them and of the model may be left out. */
struct et_model_weights {
    char *path;  /* file or folder of weights, or NULL: none */
    bool strict; /* names and shapes of the file are the model's, all of them */
    struct et_texts ignore; /* glob(7) patterns over names of tensors */
};

/* First member of every model's options. */
struct et_model_options {
    int64_t num_classes, in_channels; /* unset (INT64_MIN) or 0: from the data */
    struct et_texts initializer;      /* names of et_module_initializer, in turn */
    struct et_model_weights weights;  /* what to start from instead */
    int loss;                         /* which of et_loss_names */
};
extern const char *const et_loss_names[]; /* of et_loss_classes; NULL-terminated */

extern const struct et_option et_model_weights_options[];

/* Their rows, for the table of a model whose struct TAG begins with `common`: what
 * every model has, and what models of images have. */
/* clang-format off */
#define ET_MODEL_START_OPTIONS(tag)                                                    \
    {                                                                                  \
        .name = "initializer",                                                         \
        .type = ET_OPT_TEXTS,                                                          \
        .offset = offsetof(struct tag, common.initializer),                            \
        .flags = ET_OPT_OPTIONAL,                                                      \
        .help = "rules for the first weights, applied in turn over the model's own "   \
                "beginning",                                                           \
    },                                                                                 \
    {                                                                                  \
        .name = "weights",                                                             \
        .type = ET_OPT_TABLE,                                                          \
        .offset = offsetof(struct tag, common.weights),                                \
        .flags = ET_OPT_BRIEF,                                                         \
        .help = "file or folder of weights to start from, or a mapping with path, "    \
                "strict and ignore",                                                   \
        .sub = et_model_weights_options,                                               \
        .sub_size = sizeof(struct et_model_weights),                                   \
    }

#define ET_MODEL_OPTIONS(tag)                                                          \
    {                                                                                  \
        .name = "num_classes",                                                         \
        .type = ET_OPT_INT,                                                            \
        .offset = offsetof(struct tag, common.num_classes),                            \
        .min = 1,                                                                      \
        .max = 1 << 24,                                                                \
        .flags = ET_OPT_OPTIONAL,                                                      \
        .help = "outputs; unset: as the data have",                                    \
    },                                                                                 \
    {                                                                                  \
        .name = "in_channels",                                                         \
        .type = ET_OPT_INT,                                                            \
        .offset = offsetof(struct tag, common.in_channels),                            \
        .min = 1,                                                                      \
        .max = 1 << 16,                                                                \
        .flags = ET_OPT_OPTIONAL,                                                      \
        .help = "channels of an image; unset: as the data have",                       \
    },                                                                                 \
    {                                                                                  \
        .name = "loss",                                                                \
        .type = ET_OPT_ENUM,                                                           \
        .offset = offsetof(struct tag, common.loss),                                   \
        .def = "soft_cross_entropy",                                                   \
        .choices = et_loss_names,                                                      \
        .help = "what training minimises; mse where the data have numbers to learn",   \
    },                                                                                 \
    ET_MODEL_START_OPTIONS(tag)
/* clang-format on */

struct et_model;

struct et_model_class {
    struct et_component info; /* options begin with struct et_model_options */
    enum et_task task;
    /* How the first values are drawn where a recipe names no initializer, and whose
     * rule it is, in words; NULL: by the defaults of the layers, as PyTorch has
     * them. */
    const char *beginning;
    /* Those of et_module_initializer that make it so, NULL-terminated; laid over what
     * BUILD has declared, before the recipe's. (optional) */
    const char *const *initializer;
    /* Makes M->root. NUM_CLASSES and channels are settled in FACTS by now. */
    et_status (*build)(struct et_ctx *cx, struct et_model *m, const void *options,
                       const struct et_model_facts *facts);
    bool wants_masked; /* its targets are tokens that were masked, not the next ones */
    bool reads_tokens; /* as all of task LANGUAGE do */
};

struct et_model {
    const struct et_model_class *type;
    struct et_ctx *cx;
    struct et_module *root;
    enum et_task task;   /* the type's, or REGRESSION where a classifier is given
                            numbers to learn; et_model_new settles it */
    int64_t num_classes; /* outputs per position: classes; numbers to learn; the
                            vocabulary's size for language */
    const struct et_loss_class *loss;     /* et_model_set_loss changes it */
    const void *loss_options;             /* its struct; NULL: it has none */
    const struct et_loss_class *own_loss; /* internal: that of the option */
    void *own_loss_options;               /* internal: owned */
    bool has_numbers; /* internal: the data's target is real numbers */
    void *options;    /* owned: a copy of those it was made with, of TYPE's struct */
    struct et_model_facts facts; /* that it was made for, options put in; no fields */
};

/* All models, NULL-terminated; and one of them, NULL when unknown. */
extern const struct et_model_class *const et_model_classes[];
const struct et_model_class *et_model_class_find(const char *name);
/* TYPE's first values in words: what an initializer that is not set means. */
const char *et_model_beginning(const struct et_model_class *type);
/* Space-separated names of the metrics a task has by default. */
const char *et_task_metrics(enum et_task task, bool training);
/* Of those that make sense for it besides. */
const char *et_task_more_metrics(enum et_task task);

/* OPTIONS: the class's struct, filled (et_options_new), borrowed for the call; NULL =
 * all defaults. Loading `weights` is the caller's: et_model_load_weights, before or
 * after binding. */
ET_NODISCARD et_status et_model_new(struct et_ctx *cx,
                                    const struct et_model_class *type,
                                    const void *options,
                                    const struct et_model_facts *facts,
                                    struct et_model **out);
void et_model_free(struct et_model **m);

/* Images f32 [N,C,H,W] -> logits [N,classes]; segmentation -> [N,classes,H,W]; tokens
 * I32 [B,T] -> logits [B,T,V]. */
struct et_tensor *et_model_forward(struct et_model *m, struct et_forward *f,
                                   struct et_tensor *x);

/* From now on M's loss is LOSS with OPTIONS (its struct), both borrowed. */
void et_model_set_loss(struct et_model *m, const struct et_loss_class *loss,
                       const void *options);
/* Checks that M's loss can learn from FIELD, the target of the data; NULL: the data
 * have no target. EINVAL names the losses that can. */
ET_NODISCARD et_status et_model_check_loss(const struct et_model *m,
                                           const struct et_field *field);
/* The loss of OUTPUTS against the target of SAMPLES, of which a loss of one's own may
 * read more: classes I32 [N] or dense f32 [N,classes], or what M's loss takes;
 * language: I32 [B,T], target[b,t] the token that follows position t. ET_REDUCE_NONE
 * gives one value per sample, [N]. */
struct et_tensor *et_model_loss(struct et_model *m, struct et_graph *g,
                                struct et_tensor *outputs,
                                const struct et_samples *samples,
                                enum et_reduction reduction);

/* What parameter I of LEAVES, all of M's, is to its layer. The layer that gives the
 * outputs is the last linear or convolution layer, if it has as many as the model. */
enum et_param_role et_model_param_role(const struct et_model *m,
                                       const struct et_leaves *leaves, int i);

/* Gives the parameters of M their places in a flat space on DEV, made here, in the
 * order of et_module_leaves, and their first values: those they have, else drawn with
 * SEED; and buffers memory of their own. et_param_space_gradient then knows them. *OUT
 * is the caller's, to be freed after the model or before it. EINVAL: there are no
 * parameters. */
ET_NODISCARD et_status et_model_bind_space(struct et_model *m, struct et_device *dev,
                                           uint32_t seed, struct et_param_space **out);
/* The same of a module that no model has: for rules that ask, its last layer is a
 * hidden one. */
ET_NODISCARD et_status et_module_bind_space(struct et_ctx *cx, struct et_module *root,
                                            struct et_device *dev, uint32_t seed,
                                            struct et_param_space **out);
/* Values of one parameter or buffer by its full name, COUNT floats in row-major order.
 * ENOENT for a name that is not there, ESHAPE when COUNT differs. SEED matters only for
 * a value not yet drawn. */
ET_NODISCARD et_status et_model_get_param(struct et_model *m, const char *name,
                                          uint32_t seed, float *out, int64_t count);
ET_NODISCARD et_status et_model_set_param(struct et_model *m, const char *name,
                                          const float *values, int64_t count);

/* Every parameter and buffer from the safetensors file at PATH, or from the files of
 * the folder PATH as Hugging Face has them, by its full name, whatever its dtype; bound
 * or not. Names may also be those that Hugging Face, torchvision and timm give to the
 * same tensors, and have the prefixes that wrappers add ("module.", "_orig_mod.").
 * Names and shapes must be the model's, all of them; what other libraries save and
 * nothing is computed from (num_batches_tracked, masks, a tied head that equals its
 * table) may be there besides. ENOENT: no file. EFORMAT: it lies, is a pickle, or does
 * not fit; the model is as before. EIO, ENOMEM while reading values: some may have been
 * replaced. */
ET_NODISCARD et_status et_model_load_weights(struct et_ctx *cx, struct et_model *model,
                                             const char *path);
/* The same from WEIGHTS->path, without the tensors whose names, in the file or in the
 * model, a pattern of `ignore` matches; and, unless `strict`, without those that do not
 * fit. What is left out keeps its first values and is listed in one warning. EFORMAT
 * also when nothing is left, or a pattern matches nothing. */
ET_NODISCARD et_status et_model_load_some_weights(
    struct et_ctx *cx, struct et_model *model, const struct et_model_weights *weights);
/* The same as an f32 file, under our names. What is at PATH is replaced at once or not
 * at all. SEED as above. EIO says what the system refused. */
ET_NODISCARD et_status et_model_save_weights(struct et_ctx *cx,
                                             const struct et_model *model,
                                             uint32_t seed, const char *path);

/* ---- hubs ---- */

/* The model that config.json of the Hugging Face folder FOLDER describes, with the
 * weights that lie there: GPT-2, BERT, ViT or ResNet, to be freed with et_model_free.
 * FACTS: of the data, which go before what the config says of images and classes; NULL:
 * none. ENOENT, EIO; EFORMAT: a file lies, or the config asks for what no model here
 * has, which is named. Source: Hugging Face, transformers, configuration_*.py. */
ET_NODISCARD et_status et_model_from_folder(struct et_ctx *cx, const char *folder,
                                            const struct et_model_facts *facts,
                                            struct et_model **out);
/* M's parameters and buffers as the library of FORM loads them, f32: "hf" writes the
 * folder PATH (config.json, model.safetensors), "torchvision" and "timm" the
 * safetensors file PATH with these libraries' names, "etude" a file with ours. What is
 * at PATH is replaced. SEED as in et_model_save_weights. ENOTSUP: FORM has no such
 * model, or an algorithm has changed its layers; the message names what does not fit.
 * EINVAL: there is no such form. EIO says what the system refused. */
ET_NODISCARD et_status et_model_export(struct et_ctx *cx, const struct et_model *m,
                                       const char *form, uint32_t seed,
                                       const char *path);
extern const char *const et_model_forms[]; /* NULL-terminated */

/* Floating-point operations of the forward pass at X, whose parameters are bound.
 * Builds on G and resets it. Training takes about three times as many. */
ET_NODISCARD et_status et_model_flops(struct et_model *m, struct et_graph *g,
                                      struct et_tensor *x, int64_t *out);

#ifdef __cplusplus
}
#endif
#endif
