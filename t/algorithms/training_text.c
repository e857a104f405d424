/* SPDX-License-Identifier: Apache-2.0 */
/* A whole training of a small BERT, and of a GPT-2, with the methods for text, alone
 * and together, against that of Composer's own trainer on Hugging Face's models:
 * t/golden/training_text.txt, by make_training_text.py, in f64. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/trainer/state.h"
#include "t/algorithms/weights.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/unit/rig.h"

enum { SAMPLES = 16, LENGTH = 8, VOCABULARY = 11, NOT = -100, STEPS = 12 };
#define FILE_NAME "training_text.txt"

/* Of a weight, which is below 1: twelve updates round it, and what they come from. */
#define TOLERANCE 2e-6
/* In bf16, whose numbers are 2^-8 apart. */
#define LOW_TOLERANCE 5e-3

#define ALIBI "alibi: {max_sequence_length: 8, train_sequence_length_scaling: 0.5}"
#define GATED "gated_linear_units: {}"
#define WARMUP                                                                         \
    "seq_length_warmup: {duration: 0.8, min_seq_length: 2, max_seq_length: 8, "        \
    "step_size: 2}"
#define CLIPPING "gradient_clipping: {clipping_type: norm, clipping_threshold: 0.1}"

static const struct row {
    const char *name, *methods;
    double tolerance;
} rows[] = {
    {"bert", "", TOLERANCE},
    {"alibi", ALIBI, TOLERANCE},
    {"gated_linear_units", GATED, TOLERANCE},
    {"seq_length_warmup", WARMUP, TOLERANCE},
    {"four", ALIBI ", " GATED ", " WARMUP ", " CLIPPING, TOLERANCE},
    {"low_precision_layernorm", "low_precision_layernorm: {}", LOW_TOLERANCE},
    {"gpt2", "", TOLERANCE},
    {"alibi_gpt2", "alibi: {max_sequence_length: 8, train_sequence_length_scaling: 1}",
     TOLERANCE},
};

/* make_training_text.py's tokens(). */
static void
fill_tokens(uint32_t stream, int32_t out[SAMPLES * LENGTH])
{
    float v[SAMPLES * LENGTH];
    rig_values(stream, SAMPLES * LENGTH, v);
    for (int i = 0; i < SAMPLES * LENGTH; i++)
        out[i] = (int32_t)(((double)v[i] + 1) / 2 * VOCABULARY);
}

static void
write_tokens(const char *name, const int32_t v[SAMPLES * LENGTH])
{
    static uint8_t file[4096];
    const size_t bytes = SAMPLES * LENGTH * sizeof *v;
    write_file(name, file, make_npy(file, "<i4", "(16, 8)", v, bytes), false);
}

/* A folder "guesses" of what a BERT learns, "next" of what a GPT-2 does. */
static void
write_texts(void)
{
    int32_t x[SAMPLES * LENGTH], y[SAMPLES * LENGTH];
    if (chdir(scratch_folder()) != 0 || mkdir("guesses", 0777) != 0 ||
        mkdir("next", 0777) != 0)
        bail("no folder for the texts");
    fill_tokens(2000, x);
    fill_tokens(2001, y);
    for (int i = 0; i < SAMPLES * LENGTH; i += 3)
        y[i] = NOT;
    write_tokens("guesses/x.npy", x);
    write_tokens("guesses/y.npy", y);
    for (int i = 0; i < SAMPLES * LENGTH; i++)
        y[i] = i % LENGTH == LENGTH - 1 ? NOT : x[i + 1];
    write_tokens("next/x.npy", x);
    write_tokens("next/y.npy", y);
}

static void
write_recipe(const char *name, const char *methods, char *out, size_t n)
{
    bool causal = strstr(name, "gpt2") != NULL;
    snprintf(out, n,
             "max_duration: 12ba\nseed: 17\nprecision: %s\n"
             "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
             "train_data: {name: npy, path: %s, batch_size: 4, workers: 0,\n"
             "  shuffle: false}\n"
             "model: {%s, max_seq_len: 8, vocab_size: 11, dropout: 0}\n"
             "algorithms: {%s}\n",
             strncmp(name, "low", 3) == 0 ? "amp_bf16" : "fp32",
             causal ? "next" : "guesses",
             causal ? "name: gpt2, n_layers: 1, d_model: 12, n_heads: 3"
                    : "name: bert, n_layers: 2, d_model: 8, n_heads: 2",
             methods);
}

/* The largest difference of a weight from case NAME's, trained with METHODS. */
static double
train_as(struct et_ctx *cx, const char *name, const char *methods)
{
    char recipe[4096];
    struct recipe_run r;
    struct et_leaves l;
    write_recipe(name, methods, recipe, sizeof recipe);
    recipe_open(&r, cx, recipe, &(struct recipe_choice){.device = "cpu"});
    need(cx, et_module_leaves(cx, r.state->model->root, ET_PARAM, &l));
    weights_fill(cx, &l, FILE_NAME, name);
    recipe_fit(&r);
    is_int(r.n_losses, STEPS, "%s: a loss for each step", name);
    double worst = weights_compare(cx, &l, FILE_NAME, name);
    et_leaves_release(&l);
    recipe_close(&r);
    return worst;
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    if (!have_device(cx, "cpu"))
        return done();
    write_texts();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double worst = train_as(cx, rows[i].name, rows[i].methods);
        ok(worst <= rows[i].tolerance,
           "%s: %d steps come to Composer's weights (worst %.1e)", rows[i].name, STEPS,
           worst);
    }
    ok(train_as(cx, "seq_length_warmup", "") > 1e-3,
       "without its method a training comes to other weights");
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
