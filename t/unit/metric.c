/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics, on the reference device: values, weighting, ignored positions, any batches
 * against the definitions, long sums. */
#include "etude/etude.h"
#include "t/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* f32 exponentials and logarithms of numbers near 1, a few terms added. */
static const double ROUNDED = 1e-6;

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

static struct et_tensor *
leaf(enum et_dtype dtype, int ndim, const int64_t *shape, const void *values)
{
    struct et_tensor *t;
    must(et_tensor_new(cx, dev, dtype, ndim, shape, ET_ROW_MAJOR, NULL, &t));
    must(et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)));
    return t;
}

/* One batch; takes both leaves. */
static void
feed(struct et_metric *m, struct et_tensor *outputs, struct et_tensor *target)
{
    et_metric_update(g, m, outputs, &(struct et_samples){.target = target});
    must(et_eval(g, NULL, 0));
    et_graph_reset(g);
    et_tensor_free(&outputs);
    et_tensor_free(&target);
}

static struct et_metric *
metric(const char *name, const struct et_metric_options *options)
{
    const struct et_metric_class *class = et_metric_find(name);
    struct et_metric *m;
    if (!class)
        bail("no metric %s", name);
    must(et_metric_new(cx, dev, class, options, &m));
    return m;
}

static double
value(const struct et_metric *m)
{
    double v;
    must(et_metric_value(m, &v));
    return v;
}

/* Rows of logits over 3 classes, with what they predict. */
static const float logits[5][3] = {
    {2, 1, 0}, {0, 3, 1}, {1, 0, 4}, {0, 1, 0.5f}, {5, 0, 0},
};

/* Cross entropy of row I with class T, in double. */
static double
loss(int i, int t)
{
    double sum = 0;
    for (int c = 0; c < 3; c++)
        sum += exp(logits[i][c]);
    return log(sum) - logits[i][t];
}

static void
feed_rows(struct et_metric *m, int first, int n, const int32_t *target)
{
    feed(m, leaf(ET_F32, 2, (const int64_t[]){n, 3}, logits[first]),
         leaf(ET_I32, 1, (const int64_t[]){n}, target));
}

static void
accuracy(void)
{
    struct et_metric *m = metric("Accuracy", NULL);
    ok(isnan(value(m)), "nothing measured is not a number");
    static const int32_t target[] = {0, 1, 0, 1, 2};
    feed_rows(m, 0, 5, target);
    is_near(value(m), 3.0 / 5, 1e-12, "accuracy is correct over all");
    must(et_metric_reset(m));
    feed_rows(m, 0, 4, target);
    feed_rows(m, 4, 1, target + 4);
    is_near(value(m), 3.0 / 5, 1e-12, "however the samples are batched");
    double sums[2];
    must(et_metric_read(m, sums));
    ok(sums[0] == 3 && sums[1] == 5, "the totals are there for ranks to add");

    must(et_metric_reset(m));
    feed_rows(m, 0, 5, (const int32_t[]){0, -100, 0, -100, 2});
    is_near(value(m), 1.0 / 3, 1e-12, "ignored positions do not count");
    must(et_metric_reset(m));
    static const float dense[2][3] = {{.7f, .3f, 0}, {.6f, .4f, 0}};
    feed(m, leaf(ET_F32, 2, (const int64_t[]){2, 3}, logits),
         leaf(ET_F32, 2, (const int64_t[]){2, 3}, dense));
    is_near(value(m), .5, 1e-12, "a dense target stands for its largest entry");

    /* [N=1, C=2, 2, 2]: predictions 0 1 / 1 1 */
    static const float image[] = {1, 0, 0, 0, 0, 1, 1, 1};
    must(et_metric_reset(m));
    feed(m, leaf(ET_F32, 4, (const int64_t[]){1, 2, 2, 2}, image),
         leaf(ET_I32, 3, (const int64_t[]){1, 2, 2}, (const int32_t[]){0, 1, 0, 1}));
    is_near(value(m), .75, 1e-12, "every pixel of a segmentation counts");
    et_metric_free(&m);

    m = metric("Accuracy", &(struct et_metric_options){.ignore_index = 2});
    feed_rows(m, 0, 5, target);
    is_near(value(m), 3.0 / 4, 1e-12, "which target is ignored can be chosen");
    et_metric_free(&m);
}

/* Shares of classes at each pixel stand for the largest, in every metric that takes
 * them. */
static void
dense_pixels(void)
{
    static const char *const names[] = {"Accuracy", "MIoU", "Dice", "MatthewsCorrCoef"};
    static const float image[] = {1, 0, 0, 0, 0, 1, 1, 1};
    static const float shares[] = {.9f, .2f, .6f, .7f, .1f, .8f, .4f, .3f};
    static const int32_t classes[] = {0, 1, 0, 0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double got[2];
        for (int k = 0; k < 2; k++) {
            struct et_metric *m =
                metric(names[i], &(struct et_metric_options){.num_classes = 2,
                                                             .ignore_index = -1});
            feed(m, leaf(ET_F32, 4, (const int64_t[]){1, 2, 2, 2}, image),
                 k ? leaf(ET_F32, 4, (const int64_t[]){1, 2, 2, 2}, shares)
                   : leaf(ET_I32, 3, (const int64_t[]){1, 2, 2}, classes));
            got[k] = value(m);
            et_metric_free(&m);
        }
        ok(isfinite(got[0]) && got[0] == got[1],
           "%s of shares is that of the largest: %g", names[i], got[1]);
    }
}

static void
cross_entropy(void)
{
    static const int32_t target[] = {0, 1, 0, 1, 2};
    double want = 0;
    for (int i = 0; i < 5; i++)
        want += loss(i, target[i]) / 5;
    struct et_metric *m = metric("CrossEntropy", NULL);
    feed_rows(m, 0, 4, target);
    feed_rows(m, 4, 1, target + 4);
    is_near(value(m), want, ROUNDED, "a small last batch does not weigh more");
    must(et_metric_reset(m));
    feed_rows(m, 0, 2, (const int32_t[]){0, -100});
    is_near(value(m), loss(0, 0), ROUNDED, "ignored positions do not weigh");
    must(et_metric_reset(m));
    static const float dense[2][3] = {{.75f, .25f, 0}, {0, 1, 0}};
    feed(m, leaf(ET_F32, 2, (const int64_t[]){2, 3}, logits),
         leaf(ET_F32, 2, (const int64_t[]){2, 3}, dense));
    is_near(value(m), (.75 * loss(0, 0) + .25 * loss(0, 1) + loss(1, 1)) / 2, ROUNDED,
            "a dense target weighs its classes");
    et_metric_free(&m);
}

static void
language(void)
{
    static const int32_t target[] = {0, 1, -100, 2};
    double want = (loss(0, 0) + loss(1, 1) + loss(3, 2)) / 3;
    static const struct {
        const char *name;
        bool exponential;
    } rows[] = {{"LanguageCrossEntropy", false}, {"LanguagePerplexity", true}};
    for (int i = 0; i < 2; i++) {
        struct et_metric *m = metric(rows[i].name, NULL);
        feed(m, leaf(ET_F32, 3, (const int64_t[]){2, 2, 3}, logits),
             leaf(ET_I32, 2, (const int64_t[]){2, 2}, target));
        is_near(value(m), rows[i].exponential ? exp(want) : want, ROUNDED,
                "%s is over tokens that count", rows[i].name);
        et_metric_free(&m);
    }
}

static void
segmentation(void)
{
    struct et_metric_options three = {.ignore_index = -1, .num_classes = 3};
    struct et_metric *m = metric("MIoU", &three);
    ok(isnan(value(m)), "no pixels, no intersection");
    /* predictions 0 1 / 2 1 0; class 0: 1 of 3, class 1: 1 of 2, class 2: 0 of 1 */
    feed_rows(m, 0, 2, (const int32_t[]){0, 1});
    feed_rows(m, 2, 3, (const int32_t[]){0, -1, 1});
    double sums[9];
    is_int(et_metric_n_sums(m), 9, "there are three totals a class");
    must(et_metric_read(m, sums));
    static const double want[] = {1, 1, 0, 2, 1, 1, 2, 2, 0};
    ok(memcmp(sums, want, sizeof want) == 0,
       "what is both, said and true does not count ignored pixels");
    is_near(value(m), 100 * (1. / 3 + 1. / 2) / 3, 1e-12,
            "MIoU is a mean over classes");
    et_metric_free(&m);
    /* Predictions 0 1 / 1 1, of two classes of nine. */
    static const float image[9 * 4] = {1, 0, 0, 0, 0, 1, 1, 1};
    static const struct {
        const char *name;
        double want;
    } absent[] = {{"MIoU", 100 * (1. / 2 + 2. / 3) / 2},
                  {"Dice", 100 * (2. / 3 + 4. / 5) / 2}};
    for (int i = 0; i < 2; i++) {
        m = metric(absent[i].name,
                   &(struct et_metric_options){.ignore_index = -1, .num_classes = 9});
        feed(
            m, leaf(ET_F32, 4, (const int64_t[]){1, 9, 2, 2}, image),
            leaf(ET_I32, 3, (const int64_t[]){1, 2, 2}, (const int32_t[]){0, 1, 0, 1}));
        is_near(value(m), absent[i].want, 1e-12, "absent classes do not count in %s",
                absent[i].name);
        et_metric_free(&m);
    }
    ok(et_metric_new(cx, dev, et_metric_find("MIoU"), NULL, &m) == ET_EINVAL && !m,
       "MIoU must know how many classes there are");
    et_error_clear(cx);
}

/* Predictions 0 1 1 1 0 0, then one that is ignored. */
static void
confusion(void)
{
    static const float said[][2] = {{1, 0}, {0, 1}, {0, 1}, {0, 1},
                                    {1, 0}, {1, 0}, {1, 0}};
    static const int32_t is[] = {0, 1, 1, 0, 1, 0, -100};
    struct et_metric_options two = {.ignore_index = -100, .num_classes = 2};
    /* Of class 1: 2 hits, 1 false alarm, 1 miss; of class 0 likewise. */
    static const struct {
        const char *name;
        double want;
    } rows[] = {
        {"BinaryF1Score", 2. / 3},
        {"MatthewsCorrCoef", (2. * 2 - 1 * 1) / 9},
        {"Dice", 100 * 2. / 3},
    };
    for (int i = 0; i < 3; i++) {
        struct et_metric *m = metric(rows[i].name, &two);
        ok(isnan(value(m)), "%s of nothing is not a number", rows[i].name);
        feed(m, leaf(ET_F32, 2, (const int64_t[]){3, 2}, said),
             leaf(ET_I32, 1, (const int64_t[]){3}, is));
        feed(m, leaf(ET_F32, 2, (const int64_t[]){4, 2}, said[3]),
             leaf(ET_I32, 1, (const int64_t[]){4}, is + 3));
        is_near(value(m), rows[i].want, 1e-12, "%s is over all batches", rows[i].name);
        et_metric_free(&m);
    }
    struct et_metric *m;
    two.num_classes = 3;
    ok(et_metric_new(cx, dev, et_metric_find("BinaryF1Score"), &two, &m) == ET_EINVAL,
       "an F1 score of three classes is refused");
    is_str(et_error_get(cx)->message, "BinaryF1Score is of 2 classes, and there are 3",
           "by a sentence");
    et_error_clear(cx);

    /* torchmetrics' example of three classes: 4 samples, 3 right. */
    static const float three[][3] = {{0, 0, 1}, {0, 1, 0}, {1, 0, 0}, {0, 1, 0}};
    m = metric("MatthewsCorrCoef", &two);
    feed(m, leaf(ET_F32, 2, (const int64_t[]){4, 3}, three),
         leaf(ET_I32, 1, (const int64_t[]){4}, (const int32_t[]){2, 1, 0, 0}));
    is_near(value(m), 7 / 10., 1e-12, "MatthewsCorrCoef is of any number of classes");
    et_metric_free(&m);

    m = metric("MaskedAccuracy", NULL);
    feed(m, leaf(ET_F32, 3, (const int64_t[]){2, 3, 2}, said),
         leaf(ET_I32, 2, (const int64_t[]){2, 3},
              (const int32_t[]){0, -100, 0, 1, 0, -100}));
    is_near(value(m), 3. / 4, ROUNDED, "MaskedAccuracy is over tokens that count");
    et_metric_free(&m);
    ok(et_metric_new(cx, dev, et_metric_find("Loss"), NULL, &m) == ET_EINVAL,
       "whose loss Loss is must be said");
    et_error_clear(cx);
}

/* Metrics where a class is never predicted, or never true, or where there is nothing to
 * tell apart. */
static void
degenerate(void)
{
    static const float first[2] = {1, 0}, second[2] = {0, 1};
    struct et_metric_options two = {.ignore_index = -100, .num_classes = 2};
    static const struct {
        const char *name, *says;
        int said[2];
        int32_t is[2];
        double want;
    } rows[] = {
        {"MatthewsCorrCoef",
         "a class that is always predicted gives no correlation",
         {1, 1},
         {0, 1},
         0},
        {"MatthewsCorrCoef",
         "a class that is always true gives no correlation",
         {0, 1},
         {1, 1},
         0},
        {"MatthewsCorrCoef",
         "opposite predictions give a correlation of -1",
         {1, 0},
         {0, 1},
         -1},
        {"BinaryF1Score",
         "predictions that are all false positives score 0",
         {1, 0},
         {0, 0},
         0},
        {"BinaryF1Score",
         "a positive class that is never predicted scores 0",
         {0, 0},
         {1, 0},
         0},
        {"BinaryF1Score",
         "a positive class that is neither predicted nor true has no score",
         {0, 0},
         {0, 0},
         NAN},
        {"Dice", "a class that does not occur has no score", {0, 0}, {0, 0}, 100},
        {"MIoU",
         "a class that does not occur has no intersection",
         {0, 0},
         {0, 0},
         100},
        {"MIoU",
         "predictions that never meet their labels have no intersection",
         {1, 1},
         {0, 0},
         0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_metric *m = metric(rows[i].name, &two);
        float z[2][2];
        for (int k = 0; k < 2; k++)
            memcpy(z[k], rows[i].said[k] ? second : first, sizeof z[k]);
        feed(m, leaf(ET_F32, 2, (const int64_t[]){2, 2}, z),
             leaf(ET_I32, 1, (const int64_t[]){2}, rows[i].is));
        if (isnan(rows[i].want))
            ok(isnan(value(m)), "%s: %s", rows[i].name, rows[i].says);
        else
            is_near(value(m), rows[i].want, 1e-12, "%s: %s", rows[i].name,
                    rows[i].says);
        et_metric_free(&m);
    }
    static const float equal[] = {3, 3, 3}, apart[] = {1, 2, 6}, off[] = {1, 3, 3};
    struct et_metric *m = metric("R2", NULL);
    ok(isnan(value(m)), "R2 of no samples is not a number");
    feed(m, leaf(ET_F32, 1, (const int64_t[]){3}, off),
         leaf(ET_F32, 1, (const int64_t[]){3}, equal));
    ok(isnan(value(m)), "R2 of equal targets is not a number");
    must(et_metric_reset(m));
    feed(m, leaf(ET_F32, 1, (const int64_t[]){3}, equal),
         leaf(ET_F32, 1, (const int64_t[]){3}, apart));
    is_near(value(m), 0, ROUNDED, "R2 of predictions of the mean is 0");
    et_metric_free(&m);
    /* One number for each sample: outputs [3, 1] and targets [3]. */
    static const char *const names[] = {"MSE", "MAE", "R2"};
    static const double want[] = {(4. + 1 + 9) / 3, (2. + 1 + 3) / 3, 0};
    for (int i = 0; i < 3; i++) {
        m = metric(names[i], NULL);
        feed(m, leaf(ET_F32, 2, (const int64_t[]){3, 1}, equal),
             leaf(ET_F32, 1, (const int64_t[]){3}, apart));
        is_near(value(m), want[i], ROUNDED,
                "%s of outputs [3, 1] compares each number with its own target",
                names[i]);
        et_metric_free(&m);
    }
}

/* ---- any batches ---- */

enum { MOST_CLASSES = 5, PARTS = 4, MOST_ROWS = 150 };

/* What was said and true of every row that counts, and its loss. */
struct rows {
    int n, said[PARTS * MOST_ROWS], is[PARTS * MOST_ROWS];
    double loss;
};

/* Covariance of two lists of classes, each as one number a class: 1 where it is. */
static double
covariance(const int *a, const int *b, int n, int classes)
{
    double sum = 0;
    for (int k = 0; k < classes; k++) {
        double x = 0, y = 0, xy = 0;
        for (int i = 0; i < n; i++) {
            x += a[i] == k;
            y += b[i] == k;
            xy += a[i] == k && b[i] == k;
        }
        sum += xy - x * y / n;
    }
    return sum;
}

/* By the definitions, row by row. */
static double
by_hand(const char *name, const struct rows *r, int classes)
{
    double hits = 0, iou = 0, dice = 0, f1 = NAN;
    int present = 0;
    for (int i = 0; i < r->n; i++)
        hits += r->said[i] == r->is[i];
    for (int k = 0; k < classes; k++) {
        double both = 0, either = 0, sizes = 0;
        for (int i = 0; i < r->n; i++) {
            both += r->said[i] == k && r->is[i] == k;
            either += r->said[i] == k || r->is[i] == k;
            sizes += (r->said[i] == k) + (r->is[i] == k);
        }
        present += either > 0;
        iou += either > 0 ? both / either : 0;
        dice += either > 0 ? 2 * both / sizes : 0;
        f1 = k == 1 ? 2 * both / sizes : f1;
    }
    if (strstr(name, "Accuracy"))
        return hits / r->n;
    if (strcmp(name, "MIoU") == 0)
        return 100 * iou / present;
    if (strcmp(name, "Dice") == 0)
        return 100 * dice / present;
    if (strcmp(name, "BinaryF1Score") == 0)
        return f1;
    if (strcmp(name, "MatthewsCorrCoef") == 0)
        return covariance(r->said, r->is, r->n, classes) /
               sqrt(covariance(r->said, r->said, r->n, classes) *
                    covariance(r->is, r->is, r->n, classes));
    return strstr(name, "Perplexity") ? exp(r->loss / r->n) : r->loss / r->n;
}

/* A batch of N rows, which are added to R: a class that is true more seldom than
 * others, and one in ten rows that does not count. */
static void
draw_batch(struct et_rng *rng, int n, int classes, int32_t ignored, float *z,
           int32_t *target, struct rows *r)
{
    for (int i = 0; i < n; i++, z += classes) {
        double sum = 0;
        int said = 0;
        for (int c = 0; c < classes; c++) {
            z[c] = (float)et_rng_normal(rng) + (c == 1);
            sum += exp(z[c]);
            said = z[c] > z[said] ? c : said;
        }
        target[i] =
            et_rng_below(rng, 3) ? (int32_t)et_rng_below(rng, (uint64_t)classes) : 0;
        if (et_rng_below(rng, 10) == 0)
            target[i] = ignored;
        if (target[i] == ignored)
            continue;
        r->loss += log(sum) - z[target[i]];
        r->said[r->n] = said;
        r->is[r->n++] = target[i];
    }
}

/* The first batch BEGINS the metric, which is not fresh, or it is reset before. What is
 * ignored is no class, or the last one. */
static void
any_batches(const char *name, int classes, bool language, bool begins, uint64_t seed)
{
    static float z[MOST_ROWS * MOST_CLASSES];
    static int32_t target[MOST_ROWS];
    static struct rows r;
    struct et_rng rng = et_rng_at((uint32_t)seed, ET_RNG_DATA, 0);
    const int32_t ignored = begins && classes > 2 ? classes - 1 : -100;
    struct et_metric *m = metric(name, &(struct et_metric_options){
                                           .ignore_index = ignored,
                                           .num_classes = classes,
                                       });
    float sum[3 * MOST_CLASSES], carry[3 * MOST_CLASSES];
    struct et_tensor *totals[2];
    for (int b = -3; b < PARTS; b++) {
        int n = b < 0 ? MOST_ROWS : 80 + (int)et_rng_below(&rng, MOST_ROWS - 80);
        if (b <= 0)
            memset(&r, 0, sizeof r);
        if (b == 0 && !begins)
            must(et_metric_reset(m));
        draw_batch(&rng, n, classes, ignored, z, target, &r);
        struct et_tensor *x = leaf(ET_F32, language ? 3 : 2,
                                   language ? (const int64_t[]){1, n, classes}
                                            : (const int64_t[]){n, classes},
                                   z);
        struct et_tensor *t =
            leaf(ET_I32, language ? 2 : 1,
                 language ? (const int64_t[]){1, n} : (const int64_t[]){n}, target);
        (b == 0 && begins ? et_metric_begin : et_metric_update)(
            g, m, x, &(struct et_samples){.target = t});
        et_metric_totals(g, m, &totals[0], &totals[1]);
        must(et_eval(g, totals, 2));
        must(et_tensor_read(cx, totals[0], sum, et_desc_bytes(&totals[0]->desc)));
        must(et_tensor_read(cx, totals[1], carry, et_desc_bytes(&totals[1]->desc)));
        et_graph_reset(g);
        et_tensor_free(&x);
        et_tensor_free(&t);
    }
    /* Losses of up to 5 in f32, some 500 of them in one sum. */
    double want = by_hand(name, &r, classes), tolerance = 500 * 6e-8;
    is_near(value(m), want, tolerance, "%s of %d rows in %d batches, %s, seed %d", name,
            r.n, PARTS, begins ? "begun anew" : "reset before", (int)seed);
    is_near(et_metric_value_of(m, sum, carry), want, tolerance,
            "and by the totals that were read with the last batch");
    et_metric_free(&m);
}

static void
all_metrics(void)
{
    static const struct {
        const char *name;
        int classes;
        bool language;
    } rows[] = {
        {"Accuracy", 4, false},
        {"CrossEntropy", 3, false},
        {"MIoU", 5, false},
        {"Dice", 5, false},
        {"BinaryF1Score", 2, false},
        {"MatthewsCorrCoef", 2, false},
        {"MatthewsCorrCoef", 4, false},
        {"MaskedAccuracy", 4, true},
        {"LanguageCrossEntropy", 4, true},
        {"LanguagePerplexity", 3, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t seed = 1; seed <= 2; seed++)
            any_batches(rows[i].name, rows[i].classes, rows[i].language, seed % 2 == 0,
                        seed);
}

/* What is learned are numbers, of NDIM axes a batch: sums of squares and of distances,
 * and the part of the variance that is explained, by the definitions. */
static void
regression(int ndim, const int64_t *of_sample, uint64_t seed)
{
    enum { BATCHES = 3, MOST = 512 };
    static const char *const names[] = {"MSE", "MAE", "R2"};
    double y[BATCHES * MOST], t[BATCHES * MOST], want[3] = {0}, mean = 0, spread = 0;
    struct et_rng rng = et_rng_at((uint32_t)seed, ET_RNG_DATA, 0);
    struct et_metric *m[3];
    int n = 0;
    for (int k = 0; k < 3; k++)
        m[k] = metric(names[k], NULL);
    for (int b = 0; b < BATCHES; b++) {
        float said[MOST], is[MOST];
        int64_t shape[4] = {5 + (int64_t)et_rng_below(&rng, 20)}, count = shape[0];
        for (int i = 1; i < ndim; i++)
            count *= shape[i] = of_sample[i - 1];
        for (int i = 0; i < count; i++, n++) {
            t[n] = is[i] = (float)(2 + et_rng_normal(&rng));
            y[n] = said[i] = is[i] + 0.5f * (float)et_rng_normal(&rng);
        }
        for (int k = 0; k < 3; k++)
            feed(m[k], leaf(ET_F32, ndim, shape, said), leaf(ET_F32, ndim, shape, is));
    }
    for (int i = 0; i < n; i++) {
        want[0] += (y[i] - t[i]) * (y[i] - t[i]) / n;
        want[1] += fabs(y[i] - t[i]) / n;
        mean += t[i] / n;
    }
    for (int i = 0; i < n; i++)
        spread += (t[i] - mean) * (t[i] - mean) / n;
    want[2] = 1 - want[0] / spread;
    /* R2 takes a square from another that is five times as large. */
    for (int k = 0; k < 3; k++) {
        is_near(value(m[k]), want[k], 10 * ROUNDED, "%s of %d numbers, %d axes",
                names[k], n, ndim);
        et_metric_free(&m[k]);
    }
}

static void
long_sums(void)
{
    enum { BATCHES = 20000 };
    struct et_metric *m = metric("CrossEntropy", NULL);
    static const int32_t target[] = {1, 1, 1, 1};
    struct et_tensor *x = leaf(ET_F32, 2, (const int64_t[]){4, 3}, logits);
    struct et_tensor *t = leaf(ET_I32, 1, (const int64_t[]){4}, target);
    double once[2], many[2];
    for (int i = 0; i < BATCHES; i++) {
        et_metric_update(g, m, x, &(struct et_samples){.target = t});
        must(et_eval(g, NULL, 0));
        et_graph_reset(g);
        if (i == 0)
            must(et_metric_read(m, once));
    }
    must(et_metric_read(m, many));
    /* Each batch is rounded at half of 2^-16 below 256; plain f32 sums drift by
     * 1e-4. */
    is_near(many[0] / (once[0] * BATCHES), 1, 0x1p-17 / once[0], "long sums stay near");
    is_near(many[1], 4.0 * BATCHES, 0, "long counts are exact");
    struct et_graph_stats stats;
    et_graph_get_stats(g, &stats);
    uint64_t plans = stats.plans_built;
    et_metric_update(g, m, x, &(struct et_samples){.target = t});
    must(et_eval(g, NULL, 0));
    et_graph_reset(g);
    et_graph_get_stats(g, &stats);
    is_int((int64_t)stats.plans_built, (int64_t)plans, "an update replays its plan");
    et_metric_free(&m);
    et_tensor_free(&x);
    et_tensor_free(&t);
}

int
main(void)
{
    must(et_ctx_new(&cx));
    must(et_device_open(cx, "ref", 0, 0, &dev));
    must(et_graph_new(cx, dev, &g));
    accuracy();
    dense_pixels();
    cross_entropy();
    language();
    segmentation();
    confusion();
    degenerate();
    all_metrics();
    regression(1, NULL, 1);
    regression(2, (const int64_t[]){1}, 2);
    regression(2, (const int64_t[]){3}, 3);
    regression(4, (const int64_t[]){2, 3, 2}, 4);
    long_sums();
    ok(!et_metric_find("accuracy"), "names are those of metric keys");
    int n;
    const struct et_metric_class *const *list = et_metric_list(&n);
    for (int i = 0; i < n; i++)
        ok(et_metric_find(list[i]->info.name) == list[i], "%s is found by its name",
           list[i]->info.name);
    et_graph_free(&g);
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
