/* SPDX-License-Identifier: Apache-2.0 */
/* Every loss with every kind of model and target: `validate` says of each pair whether
 * it fits, and each that fits trains, with losses that are numbers and that move. A row
 * of losses.def is tried without a line here; what fits is written down. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"

enum { N = 8, SIDE = 16, T = 8, BATCHES = 3 };

/* What learns what, and the losses that fit. */
struct row {
    const char *name, *model, *data, *fits;
};

#define CLASSES                                                                        \
    " soft_cross_entropy binary_cross_entropy_with_logits dice cross_entropy focal "
#define NUMBERS " mse l1 huber "
#define SHARES                                                                         \
    " soft_cross_entropy binary_cross_entropy_with_logits dice mse cross_entropy "     \
    "focal l1 huber "
#define SMALL "n_layers: 1, d_model: 16, n_heads: 2"
#define TEXT  SMALL ", max_seq_len: 8, vocab_size: 32"

static const struct row rows[] = {
    {"mlp, a class of an image", "mlp", "images-class", CLASSES},
    {"lenet, a class of an image", "lenet", "images-class", CLASSES},
    {"vit, a class of an image", "{name: vit_ti16, " SMALL "}", "images-class",
     CLASSES},
    {"mlp, a number of an image", "mlp", "images-number", NUMBERS},
    {"mlp, shares of an image", "mlp", "images-shares", SHARES},
    {"mlp, a class of a row", "mlp", "values-class", CLASSES},
    {"mlp, a number of a row", "mlp", "values-number", NUMBERS},
    {"unet, classes of pixels", "{name: unet, width: 4, depth: 2}", "images-mask",
     CLASSES},
    {"layers, classes of pixels",
     "{name: layers, layers: [{conv2d: {out: 3, kernel: 1}}]}", "images-mask", CLASSES},
    {"layers, fewer pixels than the mask",
     "{name: layers, layers: [{conv2d: {out: 3, kernel: 2, stride: 2}}]}",
     "images-mask", ""},
    {"unet, a class of an image", "{name: unet, width: 4, depth: 2}", "images-class",
     ""},
    {"mlp, classes of pixels", "mlp", "images-mask", ""},
    {"gpt2, the next token", "{name: gpt2, " TEXT "}", "tokens-next",
     " masked_language "},
    {"bert, hidden tokens", "{name: bert, " TEXT "}", "tokens-hidden",
     " masked_language "},
    {"bert_classifier, a class of a text", "{name: bert_classifier, " TEXT "}",
     "tokens-class", CLASSES},
    {"bert_classifier, a number of a text", "{name: bert_classifier, " TEXT "}",
     "tokens-number", NUMBERS},
    {"mlp, hidden tokens", "mlp", "tokens-hidden", ""},
};

/* ---- data ---- */

static void
write_array(const char *folder, const char *leaf, const char *type, const char *shape,
            const void *bytes, size_t n)
{
    static uint8_t file[16384];
    char name[64];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        bail("no folder %s", folder);
    snprintf(name, sizeof name, "%s/%s", folder, leaf);
    write_file(name, file, make_npy(file, type, shape, bytes, n), false);
}

static struct {
    uint8_t image[N][SIDE][SIDE][3], mask[N][SIDE][SIDE];
    float row[N][4], number[N], share[N][4];
    int32_t token[N][T], hidden[N][T], label[N];
} d;

static void
draw(void)
{
    struct et_rng rng = et_rng_at(17, ET_RNG_DATA, 0);
    uint8_t *byte = &d.image[0][0][0][0], *pixel = &d.mask[0][0][0];
    for (size_t i = 0; i < sizeof d.image; i++)
        byte[i] = (uint8_t)et_rng_below(&rng, 256);
    for (size_t i = 0; i < sizeof d.mask; i++)
        pixel[i] = (uint8_t)et_rng_below(&rng, 3);
    for (int i = 0; i < N; i++) {
        d.label[i] = i % 4;
        d.number[i] = (float)i / N;
        for (int k = 0; k < 4; k++) {
            d.row[i][k] = (float)et_rng_below(&rng, 100) / 50 - 1;
            d.share[i][k] = k == i % 4 ? 0.7F : 0.1F;
        }
        for (int t = 0; t < T; t++) {
            d.token[i][t] = (int32_t)et_rng_below(&rng, 32);
            d.hidden[i][t] = t % 3 ? -100 : d.token[i][t];
        }
    }
}

#define X(folder, type, shape, a)                                                      \
    write_array(folder, "x.npy", type, shape, a, sizeof(a))
#define Y(folder, type, shape, a)                                                      \
    write_array(folder, "y.npy", type, shape, a, sizeof(a))

static void
write_arrays(void)
{
    static const char *const pictures[] = {"images-class", "images-number",
                                           "images-shares", "images-mask"};
    static const char *const texts[] = {"tokens-hidden", "tokens-class",
                                        "tokens-number"};
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        X(pictures[i], "|u1", "(8, 16, 16, 3)", d.image);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        X(texts[i], "<i4", "(8, 8)", d.token);
    X("values-class", "<f4", "(8, 4)", d.row);
    X("values-number", "<f4", "(8, 4)", d.row);
    Y("images-class", "<i4", "(8,)", d.label);
    Y("values-class", "<i4", "(8,)", d.label);
    Y("tokens-class", "<i4", "(8,)", d.label);
    Y("images-number", "<f4", "(8,)", d.number);
    Y("values-number", "<f4", "(8,)", d.number);
    Y("tokens-number", "<f4", "(8,)", d.number);
    Y("images-shares", "<f4", "(8, 4)", d.share);
    Y("images-mask", "|u1", "(8, 16, 16)", d.mask);
    for (int i = 0; i < N; i++)
        d.label[i] = i % 5;
    X("images-five", "|u1", "(8, 16, 16, 3)", d.image);
    Y("images-five", "<i4", "(8,)", d.label);
    Y("tokens-hidden", "<i4", "(8, 8)", d.hidden);
}

/* ---- pairs ---- */

static void
spell(const struct row *r, const char *loss, char out[1024])
{
    const bool next = strcmp(r->data, "tokens-next") == 0;
    snprintf(out, 1024,
             "max_duration: 3ba\nseed: 17\noptimizer: {name: sgd, lr: 0.05}\n"
             "model: %s\nloss: %s\n"
             "train_data: {name: %s%s, %s, batch_size: 4, workers: 0}\n",
             r->model, loss,
             next ? "synthetic_tokens" : "npy, path: ", next ? "" : r->data,
             next ? "num_samples: 8, vocab_size: 32, seq_len: 8" : "shuffle: true");
}

/* What `validate` says of TEXT; WHY: its reason. */
static bool
is_valid(struct et_ctx *cx, const char *text, char why[1024])
{
    struct et_recipe *recipe;
    struct et_diagnostics errors = {0};
    bool tried = false;
    why[0] = '\0';
    et_status s = et_recipe_parse(cx, text, strlen(text), "test.yaml", NULL, 0, NULL,
                                  &recipe, &errors);
    if (s == ET_OK)
        s = eti_recipe_check_available(cx, recipe, &errors);
    if (s == ET_OK)
        s = eti_rehearse(cx, recipe, &tried);
    if (s != ET_OK)
        snprintf(why, 1024, "%s",
                 errors.n ? errors.v[0].message : et_error_get(cx)->message);
    et_error_clear(cx);
    et_recipe_free(&recipe);
    return s == ET_OK && tried;
}

/* Do three batches give losses that are numbers, and is the last another one? */
static bool
trains(struct et_ctx *cx, const char *text)
{
    struct recipe_run r;
    bool good = true;
    recipe_open(&r, cx, text,
                &(struct recipe_choice){.device = "cpu", .grad_accum = 2});
    recipe_fit(&r);
    for (int i = 0; i < r.n_losses; i++)
        good &= isfinite(r.loss[i]) && r.loss[i] > 0;
    good &= r.n_losses == BATCHES && r.loss[2] != r.loss[0];
    if (!good)
        diag("%d losses: %g %g %g", r.n_losses, r.loss[0], r.loss[1], r.loss[2]);
    recipe_close(&r);
    return good;
}

static bool
is_listed(const char *list, const char *name)
{
    char word[128];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word) != NULL;
}

/* Does WHY tell of the loss, the model or the data, and not of a shape in between? */
static bool
is_clear(const char *why, const char *loss)
{
    return (strncmp(why, "loss ", 5) == 0 && strstr(why, loss)) ||
           strncmp(why, "model ", 6) == 0 || strstr(why, "are to be told apart");
}

static void
check_row(struct et_ctx *cx, const struct row *r)
{
    char text[1024], why[1024];
    int wrong = 0, unclear = 0, untrained = 0, pairs = 0;
    for (; et_loss_classes[pairs]; pairs++) {
        const char *loss = et_loss_classes[pairs]->info.name;
        spell(r, loss, text);
        bool fits = is_valid(cx, text, why);
        if (fits != is_listed(r->fits, loss)) {
            diag("%s: %s: %s", loss, fits ? "fits" : "does not fit", why);
            wrong++;
        }
        if (fits)
            untrained += !trains(cx, text);
        else if (!is_clear(why, loss)) {
            diag("%s: %s", loss, why);
            unclear++;
        }
    }
    ok(wrong == 0, "%s: validate knows which of %d losses fit", r->name, pairs);
    ok(unclear == 0, "%s: of the others it says why", r->name);
    ok(untrained == 0, "%s: those that fit train", r->name);
}

/* ---- models and data that do not belong together ---- */

/* What is known of them when they have been read: data alone to evaluate on, and each
 * of several, are looked at as those to train on are. */
static const struct {
    const char *model, *train, *eval[2], *want; /* want "": they fit */
} pairs[] = {
    {"gpt2, " TEXT,
     "images-class",
     {NULL},
     "model gpt2 reads tokens, npy gives images"},
    {"gpt2, " TEXT,
     "values-class",
     {NULL},
     "model gpt2 reads tokens, npy gives numbers"},
    {"bert_classifier, " TEXT,
     "images-class",
     {NULL},
     "model bert_classifier reads tokens, npy gives images"},
    {"mlp", "tokens-class", {NULL}, "model mlp reads images, npy gives tokens"},
    {"mlp", NULL, {"tokens-class"}, "model mlp reads images, npy gives tokens"},
    {"unet, width: 4, depth: 2",
     "images-class",
     {NULL},
     "model unet learns a class for each pixel, npy gives one for each image"},
    {"unet, width: 4, depth: 2",
     NULL,
     {"images-class"},
     "model unet learns a class for each pixel, npy gives one for each image"},
    {"mlp",
     "images-mask",
     {NULL},
     "model mlp learns a class for each image, npy gives one for each pixel"},
    {"mlp",
     NULL,
     {"images-mask"},
     "model mlp learns a class for each image, npy gives one for each pixel"},
    {"mlp", "images-class", {"images-class", "images-class"}, ""},
    {"mlp",
     "images-class",
     {"images-five"},
     "eval_data has 5 classes (labels 0 to 4), the model's num_classes is 4"},
    {"mlp",
     "images-class",
     {"images-class", "images-five"},
     "eval_data has 5 classes (labels 0 to 4), the model's num_classes is 4"},
    {"mlp", "images-five", {"images-class", "images-five"}, ""},
    {"mlp, num_classes: 5", "images-class", {"images-class", "images-five"}, ""},
    {"mlp, num_classes: 4",
     "images-five",
     {NULL},
     "train_data has 5 classes (labels 0 to 4), the model's num_classes is 4"},
};

static void
check_pair(struct et_ctx *cx, size_t i)
{
    const struct eti_assemble_options options = {.device = "cpu",
                                                 .threads = 1,
                                                 .with_train = pairs[i].train != NULL,
                                                 .with_eval = pairs[i].eval[0] != NULL};
    char text[1024];
    size_t n = (size_t)snprintf(
        text, sizeof text,
        "max_duration: 1ba\nseed: 17\noptimizer: {name: sgd, lr: 0.05}\n"
        "model: {name: %s}\n",
        pairs[i].model);
    if (pairs[i].train)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "train_data: {name: npy, path: %s, batch_size: 4}\n",
                              pairs[i].train);
    for (int k = 0; k < 2 && pairs[i].eval[k]; k++)
        n += (size_t)snprintf(
            text + n, sizeof text - n,
            "%s  - {name: npy, path: %s, batch_size: 4, label: of%d}\n",
            k ? "" : "eval_data:\n", pairs[i].eval[k], k);
    struct et_recipe *recipe;
    struct et_diagnostics errors = {0};
    struct eti_assembly a;
    need(cx, et_recipe_parse(cx, text, strlen(text), "test.yaml", NULL, 0, NULL,
                             &recipe, &errors));
    et_status s = eti_assemble(cx, recipe, &options, &a);
    const char *said = s == ET_OK ? "" : et_error_get(cx)->message;
    if (!ok(*pairs[i].want ? strstr(said, pairs[i].want) != NULL : s == ET_OK,
            "%s on %s and %s: %s", pairs[i].model,
            pairs[i].train ? pairs[i].train : "nothing",
            pairs[i].eval[0] ? pairs[i].eval[0] : "nothing",
            *pairs[i].want ? pairs[i].want : "fits"))
        diag("%s", said);
    et_error_clear(cx);
    eti_assembly_release(&a);
    et_recipe_free(&recipe);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    if (!have_device(cx, "cpu"))
        return done();
    if (chdir(scratch_folder()) != 0)
        bail("no folder for the data");
    draw();
    write_arrays();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(cx, &rows[i]);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        check_pair(cx, i);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
