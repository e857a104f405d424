/* SPDX-License-Identifier: Apache-2.0 */
/* recipes.h: small recipes that between them touch most of the engine: convolution,
 * every norm, attention, dropout, augmentation, shuffling, workers, schedules. */
#ifndef ETUDE_T_TRAIN_RECIPES_H
#define ETUDE_T_TRAIN_RECIPES_H

/* 3x12x12 crops of 16x16 images, flipped. */
#define IMAGE_DATA                                                                     \
    "train_data:\n"                                                                    \
    "  name: synthetic_images\n"                                                       \
    "  num_samples: 32\n"                                                              \
    "  num_unique: 32\n"                                                               \
    "  type: separable\n"                                                              \
    "  resolution: 16\n"                                                               \
    "  batch_size: 8\n"                                                                \
    "  workers: 2\n"                                                                   \
    "  transforms:\n"                                                                  \
    "    - random_crop: {size: 12, padding: 2}\n"                                      \
    "    - horizontal_flip\n"                                                          \
    "    - normalize: {mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}\n"

#define TOKEN_DATA                                                                     \
    "train_data:\n"                                                                    \
    "  name: synthetic_tokens\n"                                                       \
    "  num_samples: 64\n"                                                              \
    "  vocab_size: 64\n"                                                               \
    "  seq_len: 16\n"                                                                  \
    "  batch_size: 16\n"                                                               \
    "  workers: 2\n"

#define SGD                                                                            \
    "optimizer: {name: sgd, lr: 0.01, momentum: 0.9, weight_decay: 5.0e-4}\n"          \
    "scheduler: {name: cosine_with_warmup, t_warmup: 2ba}\n"

#define ADAMW                                                                          \
    "optimizer: {name: adamw, lr: 1.0e-3, betas: [0.9, 0.95], weight_decay: 0.01}\n"   \
    "scheduler: {name: linear_with_warmup, t_warmup: 2ba}\n"

#define RESNET(duration)                                                               \
    "max_duration: " duration "\nseed: 17\nmodel: {name: resnet8}\n" IMAGE_DATA SGD

#define GPT_MODEL                                                                      \
    "model: {name: gpt2, n_layers: 2, d_model: 32, n_heads: 4, max_seq_len: 16,\n"     \
    "        vocab_size: 64, dropout: 0.1}\n"

#define GPT(duration)            GPT_SEED(duration, "17")
#define GPT_REST                 GPT_MODEL TOKEN_DATA ADAMW
#define GPT_SEED(duration, seed) "max_duration: " duration "\nseed: " seed "\n" GPT_REST

#define BERT(duration)                                                                 \
    "max_duration: " duration "\nseed: 17\n"                                           \
    "model: {name: bert, n_layers: 2, d_model: 32, n_heads: 4, max_seq_len: 16,\n"     \
    "        vocab_size: 64, dropout: 0.1}\n" TOKEN_DATA ADAMW

#define LENET(duration)                                                                \
    "max_duration: " duration "\nseed: 17\nmodel: {name: lenet}\n" IMAGE_DATA ADAMW

/* Layers that the models above have none of. */
#define LAYERS(duration)                                                               \
    "max_duration: " duration "\nseed: 17\n"                                           \
    "model:\n"                                                                         \
    "  name: layers\n"                                                                 \
    "  layers:\n"                                                                      \
    "    - conv2d: {out: 8, kernel: 3, padding: 1}\n"                                  \
    "    - group_norm: {groups: 2}\n"                                                  \
    "    - gelu\n"                                                                     \
    "    - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1, groups: 8}\n"            \
    "    - batch_norm\n"                                                               \
    "    - silu\n"                                                                     \
    "    - max_pool2d: {kernel: 2}\n"                                                  \
    "    - dropout: {p: 0.2}\n"                                                        \
    "    - flatten\n"                                                                  \
    "    - linear: {out: 24}\n"                                                        \
    "    - layer_norm\n"                                                               \
    "    - tanh\n"                                                                     \
    "    - linear: {out: 10}\n" IMAGE_DATA ADAMW

#endif
