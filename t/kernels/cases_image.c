/* SPDX-License-Identifier: Apache-2.0 */
/* cases_image.c: cases of convolution, pooling, resizing, and of batches of
 * raw images. */
#include "etude/rng.h"
#include "t/kernels/families.h"

#include <string.h>

/* ---- convolution ---- */

struct conv_case {
    const char *what;
    int64_t x[4], w[4];
    int stride, dilation, groups; /* 0: 1 */
    int stride_x, dilation_x;     /* across, where other than down */
    int pad[2], output_pad;
};

static const struct conv_case convs[] = {
    {.what = "1x1", .x = {2, 5, 7, 3}, .w = {11, 5, 1, 1}},
    {.what = "1x1 stride 2", .x = {2, 16, 7, 9}, .w = {32, 16, 1, 1}, .stride = 2},
    {.what = "3x3 pad 1", .x = {2, 16, 8, 8}, .w = {16, 16, 3, 3}, .pad = {1, 1}},
    {.what = "3x3 stride 2 of an odd size",
     .x = {3, 3, 13, 11},
     .w = {17, 3, 3, 3},
     .stride = 2,
     .pad = {1, 1}},
    {.what = "3x3 stride 2 that leaves a row over",
     .x = {1, 4, 8, 8},
     .w = {4, 4, 3, 3},
     .stride = 2,
     .pad = {1, 1},
     .output_pad = 1},
    {.what = "7x7 stride 2 pad 3",
     .x = {1, 3, 23, 17},
     .w = {8, 3, 7, 7},
     .stride = 2,
     .pad = {3, 3}},
    {.what = "5x5 of one channel", .x = {2, 1, 12, 12}, .w = {6, 1, 5, 5}},
    {.what = "3x1 dilation 2",
     .x = {1, 4, 9, 5},
     .w = {3, 4, 3, 1},
     .dilation = 2,
     .pad = {2, 0}},
    {.what = "two groups",
     .x = {2, 6, 5, 7},
     .w = {4, 3, 3, 3},
     .groups = 2,
     .pad = {1, 1}},
    {.what = "depthwise",
     .x = {2, 17, 7, 5},
     .w = {17, 1, 3, 3},
     .groups = 17,
     .pad = {1, 1}},
    {.what = "depthwise 5x5 stride 2",
     .x = {1, 16, 11, 9},
     .w = {16, 1, 5, 5},
     .stride = 2,
     .groups = 16,
     .pad = {2, 2}},
    {.what = "depthwise, two results a channel",
     .x = {1, 5, 6, 6},
     .w = {10, 1, 3, 3},
     .groups = 5,
     .pad = {1, 1}},
    {.what = "depthwise 3x3 of 40 channels",
     .x = {2, 40, 6, 9},
     .w = {40, 1, 3, 3},
     .groups = 40,
     .pad = {1, 1}},
    {.what = "depthwise 3x3 stride 2 of 72 channels",
     .x = {2, 72, 7, 6},
     .w = {72, 1, 3, 3},
     .stride = 2,
     .groups = 72,
     .pad = {1, 1}},
    {.what = "depthwise 5x5 of 24 channels",
     .x = {1, 24, 9, 5},
     .w = {24, 1, 5, 5},
     .groups = 24,
     .pad = {2, 2}},
    {.what = "depthwise 3x3 without padding, 300 channels",
     .x = {1, 300, 5, 4},
     .w = {300, 1, 3, 3},
     .groups = 300},
    {.what = "patches of 4x4", .x = {2, 3, 16, 12}, .w = {9, 3, 4, 4}, .stride = 4},
    {.what = "as many 4x4 windows that touch, the first in the padding",
     .x = {2, 3, 16, 12},
     .w = {9, 3, 4, 4},
     .stride = 4,
     .pad = {1, 1}},
    {.what = "3x3 on maps of one pixel",
     .x = {5, 16, 1, 1},
     .w = {24, 16, 3, 3},
     .pad = {1, 1}},
    {.what = "3x3 on maps of two pixels by three",
     .x = {5, 16, 2, 3},
     .w = {24, 16, 3, 3},
     .pad = {1, 1}},
    {.what = "3x3 in steps of two from two pixels to one",
     .x = {5, 16, 2, 2},
     .w = {24, 16, 3, 3},
     .stride = 2,
     .pad = {1, 1}},
    {.what = "3x2 from the padding on, in steps that leave the last pixel out",
     .x = {3, 7, 8, 6},
     .w = {5, 7, 3, 2},
     .stride = 3,
     .dilation = 2,
     .pad = {0, 1}},
    {.what = "windows beyond all pixels",
     .x = {3, 8, 2, 1},
     .w = {8, 8, 5, 7},
     .pad = {2, 3}},
    {.what = "3x3 of three channels",
     .x = {2, 3, 9, 7},
     .w = {16, 3, 3, 3},
     .pad = {1, 1}},
    {.what = "3x3 of 16 to 48 channels, odd sizes",
     .x = {2, 16, 21, 23},
     .w = {48, 16, 3, 3},
     .pad = {1, 1}},
    {.what = "3x3 of 16 to 24 channels, padded in width alone",
     .x = {2, 16, 24, 21},
     .w = {24, 16, 3, 3},
     .pad = {0, 2}},
    {.what = "3x3 in steps of 2 down, and dilated across",
     .x = {2, 4, 9, 11},
     .w = {6, 4, 3, 3},
     .stride = 2,
     .stride_x = 1,
     .dilation = 1,
     .dilation_x = 2,
     .pad = {1, 2}},
    {.what = "two groups in steps of 2 down and 3 across",
     .x = {2, 6, 7, 10},
     .w = {4, 3, 3, 3},
     .stride = 2,
     .stride_x = 3,
     .groups = 2,
     .pad = {1, 1}},
    {.what = "1x1 in steps of 2 across",
     .x = {2, 16, 7, 9},
     .w = {32, 16, 1, 1},
     .stride = 1,
     .stride_x = 2},
    {.what = "patches of 2x4",
     .x = {2, 3, 16, 12},
     .w = {9, 3, 2, 4},
     .stride = 2,
     .stride_x = 4},
    {.what = "depthwise 5x5 stride 2 of images as narrow as 3, other padding down",
     .x = {1, 40, 9, 3},
     .w = {40, 1, 5, 5},
     .stride = 2,
     .groups = 40,
     .pad = {2, 1}},
    {.what = "depthwise in steps of 2 across",
     .x = {2, 24, 7, 9},
     .w = {24, 1, 3, 3},
     .stride = 1,
     .stride_x = 2,
     .groups = 24,
     .pad = {1, 1}},
    {.what = "depthwise, dilated across",
     .x = {1, 16, 7, 9},
     .w = {16, 1, 3, 3},
     .dilation = 1,
     .dilation_x = 2,
     .groups = 16,
     .pad = {1, 2}},
    {.what = "depthwise, dilated down",
     .x = {1, 16, 9, 7},
     .w = {16, 1, 3, 3},
     .dilation = 2,
     .dilation_x = 1,
     .groups = 16,
     .pad = {2, 1}},
    /* As many channels and pixels as are computed in tiles, but for one thing. */
    {.what = "tiles, padded across alone",
     .x = {1, 16, 17, 16},
     .w = {16, 16, 3, 3},
     .pad = {0, 1}},
    {.what = "tiles, but in steps of 2 down",
     .x = {1, 16, 33, 17},
     .w = {16, 16, 3, 3},
     .stride = 2,
     .stride_x = 1,
     .pad = {1, 1}},
    {.what = "tiles, but dilated across",
     .x = {1, 16, 16, 19},
     .w = {16, 16, 3, 3},
     .dilation = 1,
     .dilation_x = 2,
     .pad = {1, 2}},
    {.what = "tiles, but for 3x5",
     .x = {1, 16, 16, 18},
     .w = {16, 16, 3, 5},
     .pad = {1, 2}},
    {.what = "one pixel", .x = {31, 33, 1, 1}, .w = {7, 33, 1, 1}},
    {.what = "no image", .x = {0, 3, 5, 5}, .w = {4, 3, 3, 3}, .pad = {1, 1}},
};
enum { N_CONVS = sizeof convs / sizeof convs[0] };

/* The sizes of one convolution, and its attributes. */
struct conv {
    int64_t x[4], w[4], y[4];
    struct et_conv2d_attr o;
};

static struct conv
conv_of(const struct conv_case *v)
{
    int stride = v->stride ? v->stride : 1, dilation = v->dilation ? v->dilation : 1;
    struct conv c = {
        .y = {v->x[0], v->w[0]},
        .o = {.stride = {stride, v->stride_x ? v->stride_x : stride},
              .pad = {v->pad[0], v->pad[1]},
              .dilation = {dilation, v->dilation_x ? v->dilation_x : dilation},
              .groups = v->groups ? v->groups : 1,
              .output_pad = {v->output_pad, v->output_pad}},
    };
    memcpy(c.x, v->x, sizeof c.x);
    memcpy(c.w, v->w, sizeof c.w);
    for (int k = 0; k < 2; k++)
        c.y[2 + k] =
            (v->x[2 + k] + 2 * v->pad[k] - c.o.dilation[k] * (v->w[2 + k] - 1) - 1) /
                c.o.stride[k] +
            1;
    return c;
}

static void
set_shape(struct et_conv2d_attr *o, const int64_t *shape)
{
    for (int k = 0; k < 4; k++)
        o->shape[k] = shape[k];
}

void
cases_conv2d(struct bench *b)
{
    for (int i = 0; i < N_CONVS; i++)
        for (int bias = 0; bias < 2; bias++) {
            struct conv c = conv_of(&convs[i]);
            c.o.output_pad[0] = c.o.output_pad[1] = 0;
            for (enum layout layout = ROW; layout <= LAST; layout++)
                check(b,
                      TRIAL(ATTR(c.o),
                            IN(normal(b, layout, 4, c.x), normal(b, layout, 4, c.w),
                               bias ? normal(b, ROW, 1, c.w) : NULL),
                            OUT(result(b, ET_F32, layout, 4, c.y)),
                            .length = c.w[1] * c.w[2] * c.w[3],
                            .may_refuse = layout == ROW),
                      "%s%s%s", convs[i].what, bias ? ", bias" : "",
                      layout == ROW ? ", row-major" : "");
        }
    /* One of the three is row-major where the others are not: what reads channels that
     * lie together has to look at each of them. */
    for (int i = 0; i < N_CONVS; i++)
        for (int odd = 0; odd < 3 && convs[i].w[1] % 16 == 0; odd++) {
            static const char *const which[] = {"image", "filters", "result"};
            struct conv c = conv_of(&convs[i]);
            c.o.output_pad[0] = c.o.output_pad[1] = 0;
            check(b,
                  TRIAL(ATTR(c.o),
                        IN(normal(b, odd == 0 ? ROW : LAST, 4, c.x),
                           normal(b, odd == 1 ? ROW : LAST, 4, c.w)),
                        OUT(result(b, ET_F32, odd == 2 ? ROW : LAST, 4, c.y)),
                        .length = c.w[1] * c.w[2] * c.w[3], .may_refuse = true),
                  "%s, its %s row-major", convs[i].what, which[odd]);
        }
}

void
cases_conv2d_fused(struct bench *b)
{
    static const char *const follows[] = {"scale and shift", "and ReLU", "and residual",
                                          "and residual, ReLU"};
    for (int i = 0; i < N_CONVS; i++)
        for (int what = 0; what < 4; what++) {
            struct conv c = conv_of(&convs[i]);
            struct et_conv2d_fused_attr o = {.conv = c.o, .relu = what & 1};
            o.conv.output_pad[0] = o.conv.output_pad[1] = 0;
            for (enum layout layout = ROW; layout <= LAST; layout++)
                check(b,
                      TRIAL(ATTR(o),
                            IN(normal(b, layout, 4, c.x), normal(b, layout, 4, c.w),
                               normal(b, ROW, 1, c.w), normal(b, ROW, 1, c.w),
                               what & 2 ? normal(b, layout, 4, c.y) : NULL),
                            OUT(result(b, ET_F32, layout, 4, c.y)),
                            .length = c.w[1] * c.w[2] * c.w[3] + 2,
                            .may_refuse =
                                layout == ROW || !b->device->fuses_convolutions),
                      "%s, %s%s", convs[i].what, follows[what],
                      layout == ROW ? ", row-major" : "");
        }
    const struct et_conv2d_fused_attr o = {
        .conv = {.stride = {1, 1}, .pad = {1, 1}, .dilation = {1, 1}, .groups = 1},
        .relu = 1};
    check(b,
          TRIAL(ATTR(o),
                IN(normal(b, LAST, SHAPE(1, 16, 17, 18)),
                   normal(b, LAST, SHAPE(16, 16, 3, 3)), normal(b, ROW, SHAPE(16)),
                   operand(b, ET_F32, SPECIAL, 0, ROW, SHAPE(16))),
                OUT(result(b, ET_F32, LAST, SHAPE(1, 16, 17, 18))),
                .length = 9 * 16 + 1, .may_refuse = !b->device->fuses_convolutions),
          "tiles, and what is no number passes the ReLU");
    struct operand *larger = normal(b, LAST, SHAPE(1, 16, 17, 21));
    larger->d.shape[3] = 18;
    check(b,
          TRIAL(ATTR(o),
                IN(normal(b, LAST, SHAPE(1, 16, 17, 18)),
                   normal(b, LAST, SHAPE(16, 16, 3, 3)), normal(b, ROW, SHAPE(16)),
                   normal(b, ROW, SHAPE(16)), larger),
                OUT(result(b, ET_F32, LAST, SHAPE(1, 16, 17, 18))),
                .length = 9 * 16 + 2, .may_refuse = !b->device->fuses_convolutions),
          "tiles, and a residual that is a part of a larger image");
}

/* With a bias it is a transposed convolution. */
void
cases_conv2d_grad_input(struct bench *b)
{
    for (int i = 0; i < N_CONVS; i++)
        for (int bias = 0; bias < 2; bias++) {
            struct conv c = conv_of(&convs[i]);
            set_shape(&c.o, c.x);
            check(b,
                  TRIAL(ATTR(c.o),
                        IN(normal(b, LAST, 4, c.y), normal(b, LAST, 4, c.w),
                           bias ? normal(b, ROW, 1, c.x + 1) : NULL),
                        OUT(result(b, ET_F32, LAST, 4, c.x)),
                        .length = c.w[0] / c.o.groups * c.w[2] * c.w[3]),
                  "%s%s", convs[i].what, bias ? ", bias" : "");
        }
}

void
cases_conv2d_grad_weight(struct bench *b)
{
    for (int i = 0; i < N_CONVS; i++) {
        struct conv c = conv_of(&convs[i]);
        set_shape(&c.o, c.w);
        check(b,
              TRIAL(ATTR(c.o), IN(normal(b, LAST, 4, c.x), normal(b, LAST, 4, c.y)),
                    OUT(result(b, ET_F32, LAST, 4, c.w)),
                    .length = c.y[0] * c.y[2] * c.y[3] + 1),
              "%s", convs[i].what);
    }
}

/* ---- pooling ---- */

struct pool_case {
    const char *what;
    int64_t x[4], y[2];
    struct et_pool2d_attr o;
    bool max_only;
};

static const struct pool_case pools[] = {
    {.what = "2x2",
     .x = {2, 5, 8, 6},
     .y = {4, 3},
     .o = {.kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}}},
    {.what = "3x3 stride 2 pad 1",
     .x = {2, 17, 9, 7},
     .y = {5, 4},
     .o = {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .dilation = {1, 1}}},
    {.what = "3x3 stride 2 pad 1, padding counts",
     .x = {2, 17, 9, 7},
     .y = {5, 4},
     .o = {.kernel = {3, 3},
           .stride = {2, 2},
           .pad = {1, 1},
           .dilation = {1, 1},
           .count_include_pad = 1}},
    {.what = "3x3 stride 2, ceil",
     .x = {1, 3, 8, 10},
     .y = {4, 5},
     .o = {.kernel = {3, 3}, .stride = {2, 2}, .dilation = {1, 1}, .ceil_mode = 1}},
    {.what = "3x3 stride 2 pad 1, ceil, padding counts",
     .x = {1, 3, 8, 10},
     .y = {5, 6},
     .o = {.kernel = {3, 3},
           .stride = {2, 2},
           .pad = {1, 1},
           .dilation = {1, 1},
           .ceil_mode = 1,
           .count_include_pad = 1}},
    {.what = "2x3 stride 1",
     .x = {3, 1, 5, 5},
     .y = {4, 3},
     .o = {.kernel = {2, 3}, .stride = {1, 1}, .dilation = {1, 1}}},
    {.what = "whole plane",
     .x = {3, 33, 5, 7},
     .y = {1, 1},
     .o = {.kernel = {5, 7}, .stride = {5, 7}, .dilation = {1, 1}}},
    {.what = "3x3 stride 2 pad 1, channels in packs",
     .x = {2, 24, 9, 7},
     .y = {5, 4},
     .o = {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .dilation = {1, 1}}},
    {.what = "whole plane, channels in packs",
     .x = {2, 16, 40, 31},
     .y = {1, 1},
     .o = {.kernel = {40, 31}, .stride = {1, 1}, .dilation = {1, 1}}},
    {.what = "5x4 dilation 2, padded by as much",
     .x = {2, 9, 13, 11},
     .y = {9, 9},
     .max_only = true,
     .o = {.kernel = {5, 4}, .stride = {1, 1}, .pad = {2, 2}, .dilation = {2, 2}}},
    {.what = "3x3 dilation 2",
     .x = {1, 5, 9, 8},
     .y = {7, 6},
     .max_only = true,
     .o = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1}, .dilation = {2, 2}}},
    {.what = "3x2 in steps of 2 across, padded down",
     .x = {2, 17, 8, 9},
     .y = {8, 4},
     .o = {.kernel = {3, 2},
           .stride = {1, 2},
           .pad = {1, 0},
           .dilation = {1, 1},
           .count_include_pad = 1}},
    {.what = "2x3 in steps of 3 down, padded across, channels in packs",
     .x = {1, 24, 8, 7},
     .y = {3, 7},
     .o = {.kernel = {2, 3},
           .stride = {3, 1},
           .pad = {0, 1},
           .dilation = {1, 1},
           .count_include_pad = 1}},
    {.what = "2x5 in steps of 2 down, dilated across",
     .x = {2, 9, 8, 11},
     .y = {5, 7},
     .max_only = true,
     .o = {.kernel = {2, 5}, .stride = {2, 1}, .pad = {1, 2}, .dilation = {1, 2}}},
    {.what = "no image",
     .x = {0, 3, 4, 4},
     .y = {2, 2},
     .o = {.kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}}},
};

static void
pool(struct bench *b, const struct pool_case *p, enum contents contents)
{
    struct et_pool2d_attr o = p->o;
    int64_t y[4] = {p->x[0], p->x[1], p->y[0], p->y[1]};
    int64_t taps = o.kernel[0] * o.kernel[1];
    const char *with = contents == COARSE    ? ", equals"
                       : contents == SPECIAL ? ", NaN"
                                             : "";
    struct operand *x = operand(b, ET_F32, contents, 0, LAST, 4, p->x);
    struct operand *dy = normal(b, LAST, 4, y);
    struct operand *index = result(b, ET_I32, LAST, 4, y);
    if (b->op == ET_OP_max_pool2d) {
        struct operand *most = result(b, ET_F32, LAST, 4, y);
        check(b, TRIAL(ATTR(o), IN(x), OUT(most, index)), "%s%s", p->what, with);
        check(b,
              TRIAL(ATTR(o), IN(x), OUT(most, result(b, ET_I32, ROW, 4, y)),
                    .may_refuse = true),
              "%s%s, places row-major", p->what, with);
        return;
    }
    if (b->op == ET_OP_avg_pool2d) {
        check(b,
              TRIAL(ATTR(o), IN(x), OUT(result(b, ET_F32, LAST, 4, y)), .length = taps),
              "%s%s", p->what, with);
        return;
    }
    for (int k = 0; k < 4; k++)
        o.shape[k] = p->x[k];
    struct trial t = {ATTR(o), IN(dy), OUT(result(b, ET_F32, LAST, 4, p->x)),
                      .length = taps};
    if (b->op == ET_OP_max_pool2d_grad) {
        compute(b, ET_OP_max_pool2d, TRIAL(ATTR(o), IN(x), OUT(NULL, index)), "%s%s",
                p->what, with);
        t.in[t.n_in++] = index;
    }
    check(b, &t, "%s%s", p->what, with);
}

void
cases_pool(struct bench *b)
{
    bool max = b->op == ET_OP_max_pool2d || b->op == ET_OP_max_pool2d_grad;
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++)
        if (max || !pools[i].max_only) {
            pool(b, &pools[i], NORMAL);
            if (max)
                pool(b, &pools[i], COARSE);
        }
}

void
cases_adaptive_pool(struct bench *b)
{
    static const int64_t sizes[][4] = {{7, 5, 1, 1}, {7, 5, 3, 2}, {6, 8, 3, 4},
                                       {2, 3, 5, 3}, {1, 1, 1, 1}, {7, 7, 7, 7}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t *v = sizes[i];
        int64_t c = i % 2 ? 17 : 16;
        int64_t x[4] = {2, c, v[0], v[1]}, y[4] = {2, c, v[2], v[3]};
        bool grad = b->op == ET_OP_adaptive_avg_pool2d_grad;
        struct et_pool2d_attr o = {0};
        for (int k = 0; k < 4; k++)
            o.shape[k] = grad ? x[k] : y[k];
        enum layout layout = i == 2 ? SHIFTED : LAST;
        check(b,
              TRIAL(ATTR(o), IN(normal(b, layout, 4, grad ? y : x)),
                    OUT(result(b, ET_F32, LAST, 4, grad ? x : y)),
                    .length = v[0] * v[1]),
              "%dx%d and %dx%d", (int)v[0], (int)v[1], (int)v[2], (int)v[3]);
    }
}

/* ---- resizing ---- */

void
cases_resize(struct bench *b)
{
    static const int64_t sizes[][4] = {{8, 8, 4, 4},     {8, 8, 16, 16}, {7, 5, 3, 11},
                                       {32, 32, 20, 20}, {1, 1, 3, 3},   {13, 17, 1, 1},
                                       {14, 26, 46, 22}, {5, 5, 5, 5}};
    /* The last sizes again, with scales that are not the quotient of the sizes. */
    static const double steps[] = {0.7, 1.3};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    bool grad = b->op == ET_OP_resize2d_grad;
    for (size_t i = 0; i <= SIZES; i++)
        for (int mode = ET_RESIZE_NEAREST; mode <= ET_RESIZE_BILINEAR; mode++) {
            const int64_t *v = sizes[i < SIZES ? i : SIZES - 1];
            int64_t c = i % 2 ? 3 : 8;
            int64_t x[4] = {2, c, v[0], v[1]}, y[4] = {2, c, v[2], v[3]};
            struct et_resize_attr o = {.mode = mode};
            for (int k = 0; k < 2; k++)
                o.scale[k] = i < SIZES ? (double)v[k] / (double)v[2 + k] : steps[k];
            for (int k = 0; k < 4; k++)
                o.shape[k] = grad ? x[k] : y[k];
            /* Of a gradient's pixel, those that lie within one of it. */
            int64_t length = grad ? v[2] * v[3] : mode == ET_RESIZE_NEAREST ? 0 : 4;
            enum layout layout = i == 2 ? SHIFTED : LAST;
            check(b,
                  TRIAL(ATTR(o), IN(normal(b, LAST, 4, grad ? y : x)),
                        OUT(result(b, ET_F32, layout, 4, grad ? x : y)),
                        .length = length),
                  "%dx%d to %dx%d, %s%s", (int)v[0], (int)v[1], (int)v[2], (int)v[3],
                  mode == ET_RESIZE_NEAREST ? "nearest" : "bilinear",
                  i < SIZES ? "" : ", with other scales");
        }
}

/* ---- batches of raw images ---- */

struct batch_case {
    const char *what;
    int64_t raw[4];         /* S, C, R, Q */
    int64_t n, h, w, pad;   /* pad: how far frames hang over */
    enum layout lies;       /* the raw images */
    enum layout small, out; /* frames and table; the result: LAST in graphs */
    bool wild;              /* frames that are anything at all */
};

static const struct batch_case batches[] = {
    {.what = "planes, hanging over",
     .raw = {7, 3, 32, 32},
     .n = 5,
     .h = 32,
     .w = 32,
     .pad = 4,
     .out = LAST},
    {.what = "pixels whose channels are neighbours",
     .raw = {7, 3, 9, 11},
     .n = 6,
     .h = 5,
     .w = 5,
     .lies = LAST,
     .out = LAST},
    {.what = "grey", .raw = {11, 1, 28, 28}, .n = 33, .h = 28, .w = 28, .out = LAST},
    {.what = "grey, a frame wider than the image",
     .raw = {3, 1, 5, 4},
     .n = 9,
     .h = 4,
     .w = 8,
     .pad = 3,
     .out = LAST},
    {.what = "four channels, many tiles",
     .raw = {2, 4, 80, 90},
     .n = 3,
     .h = 64,
     .w = 72,
     .pad = 9,
     .out = LAST},
    {.what = "twenty channels",
     .raw = {2, 20, 6, 7},
     .n = 3,
     .h = 6,
     .w = 7,
     .out = LAST},
    {.what = "70001 of one pixel",
     .raw = {31, 1, 2, 3},
     .n = 70001,
     .h = 1,
     .w = 1,
     .out = LAST},
    {.what = "one of 301x403",
     .raw = {1, 3, 301, 403},
     .n = 1,
     .h = 301,
     .w = 403,
     .lies = LAST,
     .out = LAST},
    {.what = "none", .raw = {3, 1, 5, 4}, .n = 0, .h = 4, .w = 4, .out = LAST},
    {.what = "anything in the frames",
     .raw = {5, 3, 8, 8},
     .n = 40,
     .h = 8,
     .w = 8,
     .out = LAST,
     .wild = true},
    {.what = "everything with gaps",
     .raw = {5, 2, 7, 6},
     .n = 8,
     .h = 4,
     .w = 4,
     .pad = 2,
     .lies = GAPS,
     .small = GAPS,
     .out = GAPS},
    {.what = "everything turned",
     .raw = {5, 3, 7, 6},
     .n = 8,
     .h = 4,
     .w = 8,
     .pad = 2,
     .lies = TURNED,
     .small = TURNED,
     .out = TURNED},
    {.what = "into planes", .raw = {5, 3, 7, 6}, .n = 8, .h = 4, .w = 8, .out = ROW},
};

/* Row N of frames as transforms make them: inside of the image grown by the padding,
 * seeing all of it or less; every other one is flipped. */
static void
draw_frame(const struct batch_case *v, struct et_rng *r, int32_t *f)
{
    int64_t R = v->raw[2], Q = v->raw[3];
    int64_t y = R + 2 * v->pad - v->h, x = Q + 2 * v->pad - v->w;
    *f++ = (int32_t)et_rng_below(r, (uint64_t)v->raw[0]);
    *f++ = (int32_t)((int64_t)et_rng_below(r, (uint64_t)y + 1) - v->pad);
    *f++ = (int32_t)((int64_t)et_rng_below(r, (uint64_t)x + 1) - v->pad);
    *f++ = (int32_t)et_rng_below(r, 4) - 2;
    *f++ = (int32_t)et_rng_below(r, 5) - 2;
    *f++ = (int32_t)(R + 1 - (int64_t)et_rng_below(r, 3));
    *f++ = (int32_t)(Q + 1 - (int64_t)et_rng_below(r, 3));
    *f = (int32_t)et_rng_below(r, 2);
}

/* Small numbers of both signs, or the largest there are. */
static void
draw_anything(struct et_rng *r, int32_t *f)
{
    static const int32_t far[] = {INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, INT32_MAX};
    for (int k = 0; k < ET_FRAME_NUMBERS; k++)
        f[k] = et_rng_below(r, 4) ? (int32_t)et_rng_below(r, 14) - 4
                                  : far[et_rng_below(r, 4)];
}

static struct operand *
frames_of(struct bench *b, const struct batch_case *v)
{
    struct operand *o =
        operand(b, ET_I32, GIVEN, 0, v->small, SHAPE(v->n, ET_FRAME_NUMBERS));
    struct et_rng r = et_rng_at(draws_seed(), ET_RNG_DATA, (uint64_t)v->n);
    int32_t *to = (int32_t *)(void *)o->block + o->base, f[ET_FRAME_NUMBERS];
    for (int64_t n = 0; n < v->n; n++) {
        if (v->wild)
            draw_anything(&r, f);
        else
            draw_frame(v, &r, f);
        for (int k = 0; k < ET_FRAME_NUMBERS; k++)
            to[n * o->d.stride[0] + k * o->d.stride[1]] = f[k];
    }
    return o;
}

/* A table in f32, a result in a 16-bit format. */
static void
rounded_batch(struct bench *b, const struct batch_case *v, enum et_dtype dtype)
{
    const struct et_image_batch_attr o = {.shape = {v->h, v->w},
                                          .dtype = (int32_t)dtype};
    int64_t table[2] = {v->raw[1], 256}, y[4] = {v->n, v->raw[1], v->h, v->w};
    check(b,
          TRIAL(ATTR(o),
                IN(operand(b, ET_U8, INDEX, 256, v->lies, 4, v->raw), frames_of(b, v),
                   wide_operand(b, NORMAL, v->small, 2, table)),
                OUT(result(b, dtype, v->out, 4, y))),
          "%s, rounded to %s", v->what, et_dtype_name(dtype));
}

void
cases_image_batch(struct bench *b)
{
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        rounded_batch(b, &batches[i], ET_BF16);
        rounded_batch(b, &batches[i], ET_F16);
    }
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        const struct batch_case *v = &batches[i];
        const struct et_image_batch_attr o = {.shape = {v->h, v->w}};
        int64_t table[2] = {v->raw[1], 256}, y[4] = {v->n, v->raw[1], v->h, v->w};
        check(
            b,
            TRIAL(ATTR(o),
                  IN(operand(b, ET_U8, INDEX, 256, v->lies, 4, v->raw), frames_of(b, v),
                     operand(b, ET_F32, NORMAL, 0, v->small, 2, table)),
                  OUT(result(b, ET_F32, v->out, 4, y))),
            "%s", v->what);
    }
}
