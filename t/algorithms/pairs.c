/* SPDX-License-Identifier: Apache-2.0 */
/* Every two methods that may meet in a recipe: ten batches of a small network with both
 * on. What is for pictures meets what is for pictures, what is for text what is for
 * text; the others meet each of these. One for pictures and one for text meet on both:
 * the run goes on and warns, or one of the two refuses what it gets. A method without a
 * row here fails. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/algorithms/methods.h"
#include "t/data/fixture.h"
#include "t/device.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"

enum { PICTURES = 1, TEXT = 2, BATCHES = 10 };

static const struct row {
    const char *name, *options;
    int for_what; /* each has a row for what it is for */
} rows[] = {
    {"alibi", "{max_sequence_length: 8, train_sequence_length_scaling: 0.5}", TEXT},
    {"augmix", "{}", PICTURES},
    {"blurpool", "{min_channels: 1}", PICTURES},
    {"channels_last", "{}", PICTURES},
    {"colout", "{}", PICTURES},
    {"cutmix", "{}", PICTURES},
    {"cutout", "{}", PICTURES},
    {"ema", "{half_life: 2ba}", PICTURES | TEXT},
    {"factorize", "{min_features: 8, min_channels: 8, latent_features: 0.25}",
     PICTURES | TEXT},
    {"gated_linear_units", "{}", TEXT},
    {"ghost_batchnorm", "{ghost_batch_size: 4}", PICTURES},
    {"gradient_clipping", "{clipping_type: norm, clipping_threshold: 0.1}",
     PICTURES | TEXT},
    {"gyro_dropout", "{sigma: 4, tau: 2}", PICTURES},
    {"label_smoothing", "{}", PICTURES},
    {"layer_freezing", "{freeze_start: 0.3}", PICTURES | TEXT},
    {"low_precision_groupnorm", "{}", PICTURES},
    {"low_precision_layernorm", "{}", TEXT},
    {"mixup", "{}", PICTURES},
    {"progressive_resizing", "{initial_scale: 0.5, size_increment: 4}", PICTURES},
    {"randaugment", "{}", PICTURES},
    {"reduce_lr_on_plateau",
     "{monitor: Accuracy, dataloader_label: train, patience: 0}", PICTURES},
    {"reduce_lr_on_plateau",
     "{monitor: LanguageCrossEntropy, dataloader_label: train, patience: 0}", TEXT},
    {"sam", "{interval: 2}", PICTURES | TEXT},
    {"selective_backprop", "{start: 0.0, keep: 0.5, interrupt: 3}", PICTURES | TEXT},
    {"seq_length_warmup",
     "{duration: 0.8, min_seq_length: 2, max_seq_length: 8, step_size: 2}", TEXT},
    {"squeeze_excite", "{min_channels: 8, latent_channels: 4}", PICTURES},
    {"stochastic_depth", "{target_layer_name: ResNetBottleneck, drop_rate: 0.5}",
     PICTURES},
    {"swa", "{swa_start: 0.2dur, swa_end: 0.8dur, update_interval: 1ba}",
     PICTURES | TEXT},
    {"weight_standardization", "{}", PICTURES},
};
enum { ROWS = sizeof rows / sizeof *rows };

#define HEAD "max_duration: 10ba\nseed: 17\noptimizer: {name: sgd, lr: 0.05}\n"

/* Something for each method. */
static const char *const pictures =
    HEAD "train_data: {name: synthetic_images, type: separable, num_samples: 16,\n"
         "  num_unique: 16, batch_size: 8, workers: 0, resolution: 16}\n"
         "model:\n  name: layers\n  layers:\n"
         "    - conv2d: {out: 8, kernel: 3, padding: 1}\n"
         "    - group_norm: {groups: 2}\n    - relu\n"
         "    - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1}\n"
         "    - batch_norm\n    - relu\n    - max_pool2d: {kernel: 2}\n"
         "    - bottleneck: {channels: 2}\n    - bottleneck: {channels: 2}\n"
         "    - adaptive_avg_pool2d\n    - flatten\n    - dropout: {p: 0.2}\n"
         "    - linear: {out: 10}\n";
static const char *const text =
    HEAD "train_data: {name: npy, path: guesses, batch_size: 8, workers: 0}\n"
         "model: {name: bert, n_layers: 2, d_model: 16, n_heads: 2, max_seq_len: 8,\n"
         "  dropout: 0.1}\n";

static void
write_texts(void)
{
    enum { N = 16, T = 8, VOCABULARY = 32 };
    static uint8_t file[4096];
    int32_t tokens[2][N][T];
    struct et_rng rng = et_rng_at(17, ET_RNG_DATA, 0);
    for (int i = 0; i < 2 * N * T; i++)
        tokens[i / N / T][i / T % N][i % T] = (int32_t)et_rng_below(&rng, VOCABULARY);
    if (mkdir("guesses", 0777) != 0 && errno != EEXIST)
        bail("no folder for the texts");
    for (int k = 0; k < 2; k++)
        write_file(k ? "guesses/y.npy" : "guesses/x.npy", file,
                   make_npy(file, "<i4", "(16, 8)", tokens[k], sizeof tokens[k]),
                   false);
}

/* Trains ten batches with A and B on; the losses are finite. */
static bool
runs(struct et_ctx *cx, const struct row *a, const struct row *b, const char *base)
{
    char recipe[4096];
    struct recipe_run r;
    snprintf(recipe, sizeof recipe, "%salgorithms:\n  %s: %s\n  %s: %s\n", base,
             a->name, a->options, b->name, b->options);
    recipe_open(&r, cx, recipe,
                &(struct recipe_choice){.device = "cpu", .grad_accum = 1});
    recipe_fit(&r);
    bool good = r.n_losses == BATCHES;
    for (int i = 0; i < r.n_losses; i++)
        good = good && isfinite(r.loss[i]);
    recipe_close(&r);
    return good;
}

/* ---- two that are for different data ---- */

struct watch {
    struct et_sink sink; /* first */
    const char *names[2];
    int losses;  /* finite ones */
    int warned;  /* warnings that name one of the two */
    bool failed; /* with an error that names one of the two */
};

static bool
names_one(const struct watch *w, const char *said)
{
    return strstr(said, w->names[0]) != NULL || strstr(said, w->names[1]) != NULL;
}

static void
see_loss(struct et_sink *sink, const struct et_record *r)
{
    struct watch *w = (struct watch *)sink;
    for (int i = 0; r->kind == ET_RECORD_BATCH && i < r->n; i++)
        w->losses += strcmp(r->entry[i].name, "loss/train/total") == 0 &&
                     isfinite(r->entry[i].value);
}

static void
see_warning(void *data, enum et_log_level level, const char *said)
{
    struct watch *w = data;
    (void)level;
    w->warned += names_one(w, said);
}

static et_status
train(struct et_ctx *cx, const char *of, struct watch *w)
{
    const struct eti_assemble_options options = {
        .device = test_device("cpu"), .threads = 1, .with_train = true};
    struct et_diagnostics errors = {0};
    struct et_recipe *recipe;
    struct eti_assembly parts;
    struct et_trainer *trainer = NULL;
    if (et_recipe_parse(cx, of, strlen(of), "test.yaml", NULL, 0, NULL, &recipe,
                        &errors) != ET_OK)
        bail("test.yaml: %s", errors.n ? errors.v[0].message : "?");
    et_status status = eti_assemble(cx, recipe, &options, &parts);
    if (status == ET_OK) {
        parts.config.sink = &w->sink;
        status = et_trainer_new(cx, &parts.config, &trainer);
        if (status == ET_OK)
            status = et_trainer_fit(trainer, ET_TIME_UNSET);
        et_trainer_free(&trainer);
        eti_assembly_release(&parts);
    }
    et_recipe_free(&recipe);
    return status;
}

/* Trains as runs() does; what comes of it is said: all ten batches and a warning, or an
 * error. */
static bool
says(struct et_ctx *cx, const struct row *a, const struct row *b, const char *base)
{
    char recipe[4096];
    struct watch w = {.sink = {.write = see_loss}, .names = {a->name, b->name}};
    snprintf(recipe, sizeof recipe, "%salgorithms:\n  %s: %s\n  %s: %s\n", base,
             a->name, a->options, b->name, b->options);
    et_ctx_set_log(cx, ET_LOG_WARN, see_warning, &w);
    et_status status = train(cx, recipe, &w);
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    if (status != ET_OK) {
        const char *why = take_error(cx);
        w.failed = names_one(&w, why);
        if (!w.failed)
            diag("%s and %s: %s", a->name, b->name, why);
        return w.failed;
    }
    if (w.losses != BATCHES || w.warned == 0)
        diag("%s and %s: %d losses, %d warnings", a->name, b->name, w.losses, w.warned);
    return w.losses == BATCHES && w.warned > 0;
}

/* ---- all pairs ---- */

/* NULL: it is not for that. */
static const struct row *
row_of(const char *name, int what)
{
    bool known = false;
    for (int i = 0; i < ROWS; i++) {
        bool mine = strcmp(rows[i].name, name) == 0;
        known |= mine;
        if (mine && rows[i].for_what & what)
            return &rows[i];
    }
    if (!known)
        bail("%s has no row", name);
    return NULL;
}

/* t/algorithms/pairs NAME...: pairs with one of these alone. */
int
main(int argc, char **argv)
{
    struct et_ctx *cx = need_ctx();
    struct eti_method m[ETI_METHODS_MAX];
    if (!have_device(cx, "cpu"))
        return done();
    if (chdir(scratch_folder()) != 0)
        bail("no folder for the data");
    write_texts();
    int n = eti_methods(NULL, m, ETI_METHODS_MAX), met = 0, apart = 0, told = 0;
    for (int i = 0; i < n; i++) {
        int good = 0, all = 0;
        for (int k = i + 1; k < n; k++) {
            bool chosen =
                is_chosen(argc, argv, m[i].name) || is_chosen(argc, argv, m[k].name);
            int what = row_of(m[i].name, PICTURES) && row_of(m[k].name, PICTURES)
                           ? PICTURES
                           : TEXT;
            const struct row *a = row_of(m[i].name, what), *b = row_of(m[k].name, what);
            if (chosen && (!a || !b)) {
                a = a ? a : row_of(m[i].name, PICTURES);
                b = b ? b : row_of(m[k].name, PICTURES);
                told += says(cx, a, b, pictures) && says(cx, a, b, text);
                apart++;
                continue;
            }
            if (!chosen)
                continue;
            bool ran = runs(cx, a, b, what == PICTURES ? pictures : text);
            if (!ran)
                diag("not with %s", b->name);
            good += ran;
            all++;
        }
        met += all;
        is_int(good, all, "%s goes with the %d that follow", m[i].name, all);
    }
    is_int(told, apart, "%d pairs for other data than each other's refuse it, or warn",
           apart);
    if (argc < 2)
        is_int(met + apart, n * (n - 1) / 2, "all %d pairs", met + apart);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
