/* SPDX-License-Identifier: Apache-2.0 */
/* attr.h: the attributes of operations, shared by the graph and the device modules.
 *
 * An attribute struct is plain data without pointers: it is hashed into a plan's
 * signature byte by byte, so builders zero it first. Everything that changes from step
 * to step (a learning rate, a mixing coefficient, a seed) is an operand instead. */
#ifndef ETUDE_ATTR_H
#define ETUDE_ATTR_H

#include <stdint.h>

#include "etude/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* add_scalar, mul_scalar, pow_scalar: a. clamp: [a, b]. */
struct et_scalar_attr {
    double a, b;
};

/* y = op(a) op(b) (+ bias). trans_* exchange the last two axes. */
struct et_matmul_attr {
    int32_t trans_a, trans_b;
};

/* What becomes of a product p = op(a) op(b) (+ bias) of matrices [M, K] and [K, N],
 * leading axes counted to M, in the kernel that makes it. */
enum et_epilogue {
    ET_EPILOGUE_GELU = 0, /* y = gelu_tanh(p), more = p */
    /* y = gelu_tanh_grad(p, pre), more[N] = y summed over M */
    ET_EPILOGUE_GELU_GRAD = 1,
    ET_EPILOGUE_SUM_A = 2, /* y = p, more[M] = op(a) summed over K */
    ET_EPILOGUE_SUM_B = 3, /* y = p, more[N] = op(b) summed over K */
    ET_EPILOGUES = 4
};

/* Y and MORE, which may be left out, have the operands' dtype, as PRE has, which
 * GELU_GRAD alone takes. Bias: GELU alone. */
struct et_matmul_fused_attr {
    int32_t trans_a, trans_b;
    int32_t form; /* enum et_epilogue */
    int32_t pad_;
};

/* Convolution, its gradients, and transposed convolution. Index 0 is the height. */
struct et_conv2d_attr {
    int32_t stride[2], pad[2], dilation[2], groups;
    int32_t output_pad[2]; /* transposed only: extra rows and columns at the end */
    int64_t shape[4];      /* gradients and transposed: the shape to produce */
};

/* A convolution and what follows it. */
struct et_conv2d_fused_attr {
    struct et_conv2d_attr conv; /* first */
    int32_t relu;               /* y = max(0, .) */
    int32_t pad_;
};

struct et_pool2d_attr {
    int32_t kernel[2], stride[2], pad[2], dilation[2];
    int32_t ceil_mode;         /* round the output size up */
    int32_t count_include_pad; /* average: zeros of the padding count */
    int64_t shape[4]; /* gradients: the input's shape; adaptive: output in [2..3] */
};

/* batch, layer and group norm. */
struct et_norm_attr {
    double eps;
    int32_t groups; /* group norm */
    int32_t axes;   /* layer norm: how many trailing axes are normalised */
    int32_t relu;   /* batch norm: y = max(0, .), set by fusion */
    /* batch norm with a residual: enum et_dtype that the norm is rounded to before the
     * sum, set by fusion; 0: y's */
    int32_t stored;
};

struct et_reduce_attr {
    uint32_t axes;   /* bit i = axis i is reduced */
    int32_t keepdim; /* reduced axes stay, with length 1 */
};

/* softmax, log_softmax, argmax, take, gather, concat, sort, cumsum: the axis. topk: k
 * in n. */
struct et_axis_attr {
    int32_t axis;
    int32_t reverse; /* sort: the largest first; cumsum: sums of all from each on */
    int64_t n; /* take_grad, scatter_add: length of the axis to produce; topk: k */
};

struct et_cross_entropy_attr {
    int64_t ignore_index; /* positions with this target count nothing (index targets) */
};

struct et_sdpa_attr {
    double scale;   /* of q k^T; 1/sqrt(D) by default */
    int32_t causal; /* position i sees positions <= i */
    int32_t pad_;
};

struct et_dropout_attr {
    double p;         /* probability of zero */
    uint64_t ordinal; /* which dropout of the model: keys the mask */
};

enum et_random_kind {
    ET_RANDOM_UNIFORM = 0,
    ET_RANDOM_NORMAL = 1,
    ET_RANDOM_BERNOULLI = 2
};

/* random: the shape, whose axis 0 is the sample. */
struct et_random_attr {
    int32_t kind; /* enum et_random_kind */
    int32_t ndim;
    double p;         /* Bernoulli: the probability of 1 */
    uint64_t ordinal; /* which draw of the model, dropouts included: keys the numbers */
    int64_t shape[ET_MAX_DIMS];
};

/* reshape, expand, fill, iota: the shape. */
struct et_shape_attr {
    int32_t dtype; /* fill, iota: enum et_dtype */
    int32_t ndim;
    int64_t shape[ET_MAX_DIMS];
    double value; /* fill */
};

struct et_permute_attr {
    int32_t ndim;
    int32_t axes[ET_MAX_DIMS]; /* output axis i is input axis axes[i] */
};

struct et_slice_attr {
    int64_t start[ET_MAX_DIMS], size[ET_MAX_DIMS], step[ET_MAX_DIMS];
};

struct et_pad_attr {
    int64_t before[ET_MAX_DIMS], after[ET_MAX_DIMS];
    double value;
};

struct et_cast_attr {
    int32_t dtype;
    int32_t pad_;
};

struct et_copy_attr {
    int32_t format; /* enum et_format */
    int32_t pad_;
};

struct et_flip_attr {
    uint32_t axes; /* bit mask */
    uint32_t pad_;
};

enum et_resize_mode { ET_RESIZE_NEAREST = 0, ET_RESIZE_BILINEAR = 1 };

/* Half-pixel centres for bilinear; src = floor(dst * scale) for nearest. */
struct et_resize_attr {
    int32_t mode;
    int32_t pad_;
    double scale[2];  /* source pixels per output pixel, height then width */
    int64_t shape[4]; /* the shape to produce (gradient: the input's) */
};

/* image_batch, image_augment: height and width of the result; its dtype: the table's
 * (ET_NONE), or BF16 or F16, to which those of an F32 table are rounded. */
struct et_image_batch_attr {
    int64_t shape[2];
    int32_t dtype; /* enum et_dtype */
    int32_t pad_;
};

/* Its second operand: what a row of it says. Rows and columns are the raw image's; what
 * lies before *_MIN or from *_MAX on is not seen. */
enum et_frame_number {
    ET_FRAME_SAMPLE = 0,  /* which image */
    ET_FRAME_Y = 1,       /* its row that the frame begins with; may be negative */
    ET_FRAME_X = 2,       /* likewise its column */
    ET_FRAME_Y_MIN = 3,   /* rows [Y_MIN, Y_MAX) are seen */
    ET_FRAME_X_MIN = 4,   /* columns [X_MIN, X_MAX) are */
    ET_FRAME_Y_MAX = 5,   /* see Y_MIN */
    ET_FRAME_X_MAX = 6,   /* see X_MIN */
    ET_FRAME_FLIPPED = 7, /* not 0: left and right are exchanged, within the frame */
    ET_FRAME_NUMBERS = 8
};

/* image_augment's second operand: a row of it is a struct et_shown, and behind it there
 * is room for some struct et_pixel_change; all as numbers of 32 bits. */
enum { ET_SHOWN_NUMBERS = 38, ET_CHANGE_NUMBERS = 8, ET_MAX_CHANGES = 12 };

/* One axis of what a sample shows of its raw image, as struct et_view has it
 * (transform.h): pixel FROM + i of the result has its middle at ORIGIN + (i + 1/2) STEP
 * of the image, and sees nothing outside [LO, HI) there. Those outside [FROM, TO) are
 * black. */
struct et_shown_axis {
    double origin, step;
    int32_t lo, hi, from, to;
};

/* What a sample shows. Where TURNED is not 0 the axes make a picture of H x W of which
 * the result is the turned one: its pixel (i, j) lies there at x = t[0] (j + 1/2) +
 * t[1] (i + 1/2) + t[2], y = t[3] (j + 1/2) + t[4] (i + 1/2) + t[5], and is black where
 * that is outside, or (i, j) outside of rows [EDGE[0], EDGE[1]) and columns [EDGE[2],
 * EDGE[3]). */
struct et_shown {
    int32_t sample;    /* which raw image; outside of them: NaN */
    int32_t n_changes; /* behind it */
    int32_t filter;    /* enum et_filter (transform.h), of the axes */
    int32_t turned;    /* 1: by the nearest pixel, 2: between four */
    struct et_shown_axis y, x;
    double turn[6];
    int32_t h, w, edge[4];
};

/* What is done with the bytes of a picture. CUT: cut off to a whole number from 0 to
 * 255; GREY: cut(0.2989 R + 0.587 G + 0.114 B). */
enum et_change_kind {
    ET_CHANGE_BLEND = 0, /* cut(v OWN + OTHER) */
    ET_CHANGE_CONTRAST =
        1, /* cut(v OWN + m OTHER), m: the mean of the picture's grey */
    ET_CHANGE_SATURATION = 2, /* cut(v OWN + grey OTHER) */
    ET_CHANGE_HUE = 3,        /* turned by OWN of six parts of a turn */
    ET_CHANGE_GREY = 4,
    ET_CHANGE_INVERT = 5,       /* 255 - v */
    ET_CHANGE_POSTERIZE = 6,    /* its upper VALUE bits */
    ET_CHANGE_SOLARIZE = 7,     /* 255 - v where that is VALUE at least */
    ET_CHANGE_AUTOCONTRAST = 8, /* each channel stretched to 0 .. 255 */
    ET_CHANGE_EQUALIZE = 9,     /* each channel with an even histogram */
    ET_CHANGE_ERASE = 10,       /* H x W pixels from (Y, X) on become VALUE */
    ET_CHANGES = 11
};

/* One of them. Pictures have one channel or three, which are red, green, blue; those of
 * one channel have no saturation and no hue. */
struct et_pixel_change {
    int32_t kind;       /* enum et_change_kind; another one changes nothing */
    int32_t y, x, h, w; /* ERASE */
    int32_t value;
    float own, other;
};

/* pack: n arrays into one flat array, each in its memory order, zeros between. */
#ifdef __clang__ /* which has no __extension__ for this in C++ */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc99-extensions"
#endif
struct et_pack_attr {
    int64_t total;                  /* elements of the result */
    __extension__ int64_t offset[]; /* one per input, in elements */
};
#ifdef __clang__
#pragma clang diagnostic pop
#endif

/* A fused element-wise program: what the fusion pass makes of a chain.
 * Registers 0 .. n_in-1 are the inputs; step k writes register n_in + k. All arithmetic
 * is in f32 (f64 when the program's dtype is). Inputs broadcast by strides of 0. */
#define ET_FUSED_MAX_IN    16
#define ET_FUSED_MAX_OUT   8
#define ET_FUSED_MAX_STEPS 40

struct et_fused_step {
    uint16_t op;    /* enum et_op_id of an element-wise op */
    uint8_t src[3]; /* registers */
    uint8_t n_src;
    uint16_t pad_;
    double a, b; /* scalar attributes */
};

struct et_fused_attr {
    int32_t n_in, n_out, n_steps, pad_;
    uint8_t out[ET_FUSED_MAX_OUT]; /* the register each output is stored from */
    struct et_fused_step step[ET_FUSED_MAX_STEPS];
};

#ifdef __cplusplus
}
#endif
#endif
