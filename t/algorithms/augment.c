/* SPDX-License-Identifier: Apache-2.0 */
/* Image augmentations against Composer's, for given draws: t/golden/augment.txt, by
 * make_augment.py. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/algorithms/augment.h"
#include "t/image/noise.h"

enum { LINE = 1 << 15, NUMBERS = 256 };

static struct eti_scratch scratch;

/* A line "WORD TEXT = RESULT". */
struct line {
    char word[32];
    char *text, *result;
};

static bool
split(char *line, struct line *out)
{
    char *equals = strstr(line, " = ");
    int used;
    if (line[0] == '#' || !equals || sscanf(line, "%31s%n", out->word, &used) != 1)
        return false;
    *equals = '\0';
    out->text = line + used;
    out->result = equals + 3;
    return true;
}

/* The numbers that TEXT begins with; *TEXT goes behind them. */
static int
read_numbers(char **text, double *out)
{
    int n = 0;
    for (char *end; n < NUMBERS; *text = end, n++) {
        out[n] = strtod(*text, &end);
        if (end == *text)
            break;
    }
    return n;
}

/* How far bytes of C are from hexadecimal ones, at most. */
static int
distance_from(const struct et_canvas *c, const char *hex)
{
    int worst = 0, n = (int)(c->H * c->W * c->C);
    hex += strspn(hex, " ");
    for (int i = 0; i < n; i++) {
        unsigned v;
        if (sscanf(hex + 2 * i, "%2x", &v) != 1)
            return 256;
        int d = abs((int)v - c->data[i]);
        worst = d > worst ? d : worst;
    }
    return worst;
}

/* ---- the lines ---- */

/* "KIND PICTURE SEVERITY U U = VALUE BYTES" */
static void
check_op(const struct line *l)
{
    uint8_t data[NOISE_MOST], spare[NOISE_MOST];
    char name[16];
    int kind, used;
    double severity, u[2], value;
    if (sscanf(l->text, "%d %15s %lf %lf %lf", &kind, name, &severity, &u[0], &u[1]) !=
            5 ||
        sscanf(l->result, "%lf%n", &value, &used) != 1)
        bail("a line of op is not understood");
    struct et_canvas c = noise_picture(name, data, &scratch);
    struct eti_augment a =
        eti_augment_of((enum eti_augment_kind)kind, severity, c.H, c.W, u);
    bool same = fabs(a.value - value) <= 1e-15 * fabs(value);
    eti_augment_apply(&c, &a, spare);
    int d = distance_from(&c, l->result + used);
    ok(same && d == 0, "op%s: %.17g as Composer draws it (%.17g), and its bytes (%d)",
       l->text, a.value, value, d);
}

/* "PICTURE M W... : KIND VALUE ... / ... = BYTES" */
static void
check_augmix(struct line *l)
{
    uint8_t data[NOISE_MOST], chain[NOISE_MOST], spare[NOISE_MOST];
    float sum[NOISE_MOST] = {0};
    double w[NUMBERS], step[NUMBERS];
    char name[16];
    int used;
    if (sscanf(l->text, "%15s%n", name, &used) != 1)
        bail("a line of augmix is not understood");
    char *text = l->text + used;
    struct et_canvas c = noise_picture(name, data, &scratch), own = c;
    int n = (int)(c.H * c.W * c.C), chains = read_numbers(&text, w) - 1;
    own.data = chain;
    for (int i = 0; i < chains; i++) {
        memcpy(chain, data, (size_t)n);
        text += strspn(text, " :/");
        int steps = read_numbers(&text, step) / 2;
        for (int k = 0; k < steps; k++)
            eti_augment_apply(&own,
                              &(struct eti_augment){(enum eti_augment_kind)step[2 * k],
                                                    step[2 * k + 1]},
                              spare);
        eti_augmix_add(sum, chain, n, (float)w[i + 1]);
    }
    eti_augmix_end(data, sum, n, (float)w[0]);
    is_int(distance_from(&c, l->result), 0,
           "augmix %s of %d chains, mixed by %g: bytes", name, chains, w[0]);
}

/* "H W LAMBDA Y X = TOP LEFT BOTTOM RIGHT LAMBDA" */
static void
check_box(struct line *l)
{
    double a[NUMBERS], want[NUMBERS];
    int64_t height, width;
    int32_t box[4];
    if (read_numbers(&l->text, a) != 5 || read_numbers(&l->result, want) != 5)
        bail("a line of box is not understood");
    int64_t H = (int64_t)a[0], W = (int64_t)a[1];
    et_cutmix_sides(a[2], H, W, &height, &width);
    et_box_at((int64_t)a[3], (int64_t)a[4], height, width, H, W, box);
    bool same = true;
    for (int i = 0; i < 4; i++)
        same = same && box[i] == (int)want[i];
    double lambda = et_cutmix_adjusted_lambda(box, H, W);
    ok(same && fabs(lambda - want[4]) < 1e-15,
       "%dx%d, lambda %g at (%g, %g): box %d %d %d %d leaves %.9g", (int)H, (int)W,
       a[2], a[3], a[4], box[0], box[1], box[2], box[3], lambda);
}

/* "LAMBDA Y X INDEX... = LAMBDA NUMBERS" of a batch [3,2,4,5] */
static void
check_cutmix(struct formula *f, struct line *l)
{
    double a[NUMBERS], want[NUMBERS];
    float x[120], expected[120], got[120];
    int32_t box[4], index[3];
    int64_t height, width;
    if (read_numbers(&l->text, a) != 6 || read_numbers(&l->result, want) != 121)
        bail("a line of cutmix is not understood");
    for (int i = 0; i < 120; i++) {
        x[i] = (float)noise_unit(77, (uint64_t)i);
        expected[i] = (float)want[i + 1];
    }
    for (int i = 0; i < 3; i++)
        index[i] = (int32_t)a[3 + i];
    et_cutmix_sides(a[0], 4, 5, &height, &width);
    et_box_at((int64_t)a[1], (int64_t)a[2], height, width, 4, 5, box);
    struct et_tensor *images = reals(f, x, ET_SHAPE(3, 2, 4, 5));
    struct et_tensor *rows = integers(f, index, ET_SHAPE(3));
    struct et_tensor *at = integers(f, box, ET_SHAPE(1, 4));
    evaluate(f, et_cutmix_batch(f->g, images, images, rows, at), got, 120);
    is_near_array(got, expected, 120, 1e-8, "cutmix%s: the batch is Composer's",
                  l->text);
    et_graph_reset(f->g);
    et_tensor_free(&images);
    et_tensor_free(&rows);
    et_tensor_free(&at);
}

/* "H W LENGTH Y X ... = NUMBERS": 0 in holes, 1 elsewhere */
static void
check_cutout(struct formula *f, struct line *l)
{
    double a[NUMBERS], want[NUMBERS];
    float x[2 * NUMBERS], expected[2 * NUMBERS], got[2 * NUMBERS];
    int32_t box[4 * 4];
    int holes = (read_numbers(&l->text, a) - 3) / 2;
    int64_t H = (int64_t)a[0], W = (int64_t)a[1];
    int64_t side = (int64_t)((double)(H < W ? H : W) * a[2]);
    int n = read_numbers(&l->result, want);
    if (n != H * W || holes < 1 || holes > 4)
        bail("a line of cutout is not understood");
    for (int i = 0; i < 2 * n; i++) { /* where zeros are not multiplied */
        x[i] = i % 7 == 3 ? NAN : 1;
        expected[i] = want[i % n] == 0 ? 0 : x[i];
    }
    for (int i = 0; i < holes; i++)
        et_box_at((int64_t)a[3 + 2 * i], (int64_t)a[4 + 2 * i], side, side, H, W,
                  box + 4 * i);
    struct et_tensor *images = reals(f, x, ET_SHAPE(2, 1, H, W));
    struct et_tensor *boxes = integers(f, box, ET_SHAPE(holes, 4));
    evaluate(f, et_cutout_batch(f->g, images, boxes), got, 2 * n);
    int wrong = 0;
    for (int i = 0; i < 2 * n; i++)
        wrong += isnan(expected[i]) ? !isnan(got[i]) : got[i] != expected[i];
    is_int(wrong, 0, "cutout %dx%d, %d holes of %d: those of Composer, without NaN",
           (int)H, (int)W, holes, (int)side);
    et_graph_reset(f->g);
    et_tensor_free(&images);
    et_tensor_free(&boxes);
}

/* "H W P_ROW P_COL = ROWS COLUMNS" */
static void
check_colout(struct line *l)
{
    double a[NUMBERS], want[NUMBERS];
    if (read_numbers(&l->text, a) != 4 || read_numbers(&l->result, want) != 2)
        bail("a line of colout is not understood");
    ok(et_colout_kept(a[2], (int64_t)a[0]) == (int64_t)want[0] &&
           et_colout_kept(a[3], (int64_t)a[1]) == (int64_t)want[1],
       "colout of %g and %g keeps %g of %g rows, %g of %g columns", a[2], a[3], want[0],
       a[0], want[1], a[1]);
}

int
main(void)
{
    static char line[LINE];
    struct et_ctx *cx = need_ctx();
    struct formula f;
    struct line l;
    char path[4096];
    int n = 0;
    formula_open(&f, cx);
    snprintf(path, sizeof path, "%s/t/golden/augment.txt", getenv("ET_SRCDIR"));
    FILE *file = fopen(path, "r");
    if (!file)
        bail("cannot read %s", path);
    while (fgets(line, sizeof line, file)) {
        if (!split(line, &l))
            continue;
        n++;
        if (strcmp(l.word, "op") == 0)
            check_op(&l);
        else if (strcmp(l.word, "augmix") == 0)
            check_augmix(&l);
        else if (strcmp(l.word, "box") == 0)
            check_box(&l);
        else if (strcmp(l.word, "cutmix") == 0)
            check_cutmix(&f, &l);
        else if (strcmp(l.word, "cutout") == 0)
            check_cutout(&f, &l);
        else if (strcmp(l.word, "colout") == 0)
            check_colout(&l);
        else
            bail("a line begins with %s", l.word);
    }
    fclose(file);
    ok(n > 150, "the file has %d lines", n);
    eti_scratch_free(&scratch);
    formula_close(&f);
    return finish(cx);
}
