/* SPDX-License-Identifier: Apache-2.0 */
/* One microbatch whose loss is not a number, among good ones: the batch says so and
 * changes nothing, nothing of it is left in the next one, whatever a microbatch weighs
 * by: its samples, its classes, or its tokens. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"

enum { BATCH = 8, T = 4, BAD = 5 };

/* Of two batches; the samples of the second are also a data set of their own. */
static struct {
    float row[2 * BATCH][T];
    int32_t token[2 * BATCH][T], type[2 * BATCH][T], hidden[2 * BATCH][T];
    int32_t label[2 * BATCH];
} d;

static void
write_array(const char *folder, const char *leaf, const char *type, const char *shape,
            const void *bytes, size_t n)
{
    static uint8_t file[8192];
    char name[64];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        bail("no folder %s", folder);
    snprintf(name, sizeof name, "%s/%s", folder, leaf);
    write_file(name, file, make_npy(file, type, shape, bytes, n), false);
}

/* All of A as BOTH/LEAF, its second half as LAST/LEAF. */
static void
write_halves(const char *both, const char *last, const char *leaf, const char *type,
             bool is_flat, const void *a, size_t n)
{
    write_array(both, leaf, type, is_flat ? "(16,)" : "(16, 4)", a, n);
    write_array(last, leaf, type, is_flat ? "(8,)" : "(8, 4)", (const char *)a + n / 2,
                n / 2);
}

static void
write_arrays(void)
{
    for (int i = 0; i < 2 * BATCH; i++) {
        d.label[i] = i % 3;
        for (int t = 0; t < T; t++) {
            d.row[i][t] = i == BAD && t == 1 ? NAN : (float)((i * 7 + t * 3) % 11) / 11;
            d.token[i][t] = (i * 5 + t * 3) % 16;
            d.type[i][t] = i == BAD;
            d.hidden[i][t] = t == i % 3 ? d.token[i][t] : -100;
        }
    }
    write_halves("rows", "row", "x.npy", "<f4", false, d.row, sizeof d.row);
    write_halves("rows", "row", "y.npy", "<i4", true, d.label, sizeof d.label);
    write_halves("texts", "text", "x.npy", "<i4", false, d.token, sizeof d.token);
    write_halves("texts", "text", "y.npy", "<i4", false, d.hidden, sizeof d.hidden);
    write_halves("texts", "text", "token_type.npy", "<i4", false, d.type,
                 sizeof d.type);
}

#define HEAD                                                                           \
    "max_duration: %dba\nseed: 17\noptimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"  \
    "nonfinite: {action: skip}\n"                                                      \
    "train_data: {name: npy, path: %s, batch_size: 8, workers: 0, shuffle: false"
#define ROWS HEAD "}\nmodel: {name: mlp, num_classes: 3}\n"
#define BERT                                                                           \
    HEAD ", others: [token_type]}\nmodel: {name: bert, n_layers: 1, d_model: 16, "     \
         "n_heads: 2, max_seq_len: 4, vocab_size: 16, dropout: 0}\n"

static const struct a_case {
    const char *name, *recipe, *both, *last;
} cases[] = {
    {"by samples", ROWS, "rows", "row"},
    {"by classes", ROWS "loss: {name: cross_entropy, weight: [0.5, 1, 2]}\n", "rows",
     "row"},
    {"by tokens", BERT, "texts", "text"},
};

/* The second type of tokens, which only the bad sample has, becomes NaN. */
static void
spoil_type(struct recipe_run *r)
{
    struct et_leaves l;
    float nan[16];
    for (int i = 0; i < 16; i++)
        nan[i] = NAN;
    need(r->cx, et_module_leaves(r->cx, r->parts.model->root, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++)
        if (strstr(l.v[i].name, "token_type")) {
            struct et_tensor one = *l.v[i].param->tensor;
            one.offset += 16;
            one.desc = (struct et_desc){ET_F32, 1, {16}, {1}};
            need(r->cx, et_tensor_write(r->cx, &one, nan, sizeof nan));
        }
    et_leaves_release(&l);
}

/* Parameters after BATCHES of DATA in K microbatches; LOSS: of each. */
static char *
train(struct et_ctx *cx, const struct a_case *c, const char *data, int batches, int k,
      double loss[2], size_t *bytes)
{
    char text[1024];
    struct recipe_run r;
    snprintf(text, sizeof text, c->recipe, batches, data);
    recipe_open(&r, cx, text,
                &(struct recipe_choice){.device = "cpu", .grad_accum = k});
    if (strcmp(c->both, "texts") == 0)
        spoil_type(&r);
    recipe_fit(&r);
    if (r.n_losses != batches)
        bail("%d batches", r.n_losses);
    memcpy(loss, r.loss, (size_t)batches * sizeof *loss);
    char *all = recipe_params(&r, bytes);
    recipe_close(&r);
    return all;
}

static void
check(struct et_ctx *cx, const struct a_case *c, int k)
{
    double two[2] = {0}, one[2] = {0};
    size_t n, n_alone;
    char *both = train(cx, c, c->both, 2, k, two, &n);
    char *alone = train(cx, c, c->last, 1, k, one, &n_alone);
    ok(isnan(two[0]), "weighed %s, %d microbatches: the batch's loss is not a number",
       c->name, k);
    ok(isfinite(two[1]) && two[1] == one[0] && n == n_alone &&
           memcmp(both, alone, n) == 0,
       "and the next one trains as if it were the first");
    if (two[1] != one[0])
        diag("its loss is %.9g, of the first it is %.9g", two[1], one[0]);
    free(both);
    free(alone);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    if (!have_device(cx, "cpu"))
        return done();
    if (chdir(scratch_folder()) != 0)
        bail("no folder for the data");
    write_arrays();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 1; k <= BATCH; k *= 2)
            check(cx, &cases[i], k);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
