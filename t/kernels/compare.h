/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h: one op on a device against the same op on the reference.
 *
 * The device gets f32 operands, or bf16 or f16 ones where the bench narrows them; the
 * reference gets the same numbers as f64 and answers in f64. Results and workspace of
 * the device are filled with 0xff first (NaN, -1), and what lies between the elements
 * of a strided result must still be 0xff afterwards. */
#ifndef T_KERNELS_COMPARE_H
#define T_KERNELS_COMPARE_H

#include "etude/device.h"

enum layout {
    ROW,     /* row-major */
    LAST,    /* channels-last where 4-d, else row-major */
    GAPS,    /* row-major, every second element of a larger array, from its second on */
    TURNED,  /* the last two axes exchanged in memory */
    HEADS,   /* axes 1 and 2 exchanged in memory: attention heads beside each other */
    PACKED,  /* the same, as the second third of rows three times as long: GPT-2's keys
              */
    REPEAT,  /* axis 0 has stride 0: operands only */
    SHIFTED, /* as LAST, from the second element of its block on */
};

enum contents {
    NORMAL,   /* mean 0, variance 1 */
    POSITIVE, /* in [0.1, 2) */
    COARSE,   /* integers -3 .. 3: equals occur */
    FAR,      /* mean 100, variance 1 */
    INDEX,    /* integers 0 .. limit-1 */
    SPECIAL,  /* normal, with NaN, infinities and zeros among them */
    HOLES,    /* 0, or -infinity: one in three */
    GIVEN,    /* nothing is drawn: the case writes it */
};

/* An array in host memory. */
struct operand {
    struct et_desc d;
    int64_t base, extent; /* first element; elements of the block */
    char *block;
    enum contents contents; /* of an operand */
    int64_t limit;
    bool due; /* it is not filled yet */
    struct operand *next;
};

struct tally;
struct bench {
    const struct et_device_table *device;
    struct et_device_handle *handle;
    struct et_device_handle *reference;
    enum et_op_id op;         /* whose cases run */
    enum et_dtype narrow;     /* takes the place of f32 operands and results; or NONE */
    bool once;                /* no case runs again with other results */
    struct operand *operands; /* freed by bench_clear */
    struct tally *tally;      /* counts verdicts in place of printing them; or NULL */
};

const char *op_name(enum et_op_id op);
/* What keys all draws: the environment's ETUDE_KERNELS_SEED, or 17. */
uint32_t draws_seed(void);
void bench_clear(struct bench *b);

#define SHAPE(...)                                                                     \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])             \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define SCALAR                                                                         \
    0, (int64_t[])                                                                     \
    {                                                                                  \
        0                                                                              \
    }

/* Operands belong to the bench. What is in one is drawn when a case first uses it, by
 * the names of the op and the case and its place among their operands: a case has the
 * same numbers whatever runs before it. */
struct operand *operand(struct bench *b, enum et_dtype dtype, enum contents contents,
                        int64_t limit, enum layout layout, int ndim,
                        const int64_t *shape);
/* The same in f32, whatever stands for that elsewhere. */
struct operand *wide_operand(struct bench *b, enum contents contents,
                             enum layout layout, int ndim, const int64_t *shape);
struct operand *normal(struct bench *b, enum layout layout, int ndim,
                       const int64_t *shape);
struct operand *result(struct bench *b, enum et_dtype dtype, enum layout layout,
                       int ndim, const int64_t *shape);
/* Statistics and losses: f32 whatever the operands are. */
struct operand *wide_result(struct bench *b, int ndim, const int64_t *shape);
/* As D says, whatever stands for f32 elsewhere. */
struct operand *result_as(struct bench *b, const struct et_desc *d);
/* As X: dense in its axis order. */
struct operand *result_like(struct bench *b, enum et_dtype dtype,
                            const struct operand *x);

/* How a result that is no number, or made of one, is compared. */
enum lenience {
    AS_IT_IS,   /* NaN is NaN, and infinity the same infinity */
    NOT_FINITE, /* where the reference is not finite the device is not */
    MAY_SPREAD, /* the same, and NaN may also be elsewhere: of 0 times what is no number
                 */
};

struct trial {
    const void *attr;
    size_t attr_size;
    struct operand *in[20], *out[8]; /* NULL: left out, not wanted */
    int n_in, n_out;
    int64_t length;    /* terms summed into one result; 0: the result is exact */
    bool narrow_part;  /* each result is a sum with what was rounded to its dtype */
    bool narrow_terms; /* what lies between two kernels is in the operands' dtype: of
                          cuDNN's, and of a product and what follows it */
    int in_place;      /* so many results take the places of operands: 0 of 0, ... */
    bool signs;        /* a zero must have the reference's sign */
    enum lenience lenience;
    bool may_refuse; /* a layout the graph never makes: ENOTSUP will do */
};

/* Fills operand NUMBER of OP in the case NAME, where it is not filled yet. */
void fill_operand(struct operand *o, enum et_op_id op, const char *name, int number);

/* Reports one test, named after the op and FMT. */
void check(struct bench *b, const struct trial *t, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Runs OP on the reference in the dtypes the operands have: makes further operands of
 * the case that FMT names. */
void compute(struct bench *b, enum et_op_id op, const struct trial *t, const char *fmt,
             ...) __attribute__((format(printf, 4, 5)));

#define COUNT(...)                                                                     \
    (int)(sizeof((struct operand *[]){__VA_ARGS__}) / sizeof(struct operand *))
#define IN(...)    .in = {__VA_ARGS__}, .n_in = COUNT(__VA_ARGS__)
#define OUT(...)   .out = {__VA_ARGS__}, .n_out = COUNT(__VA_ARGS__)
#define ATTR(a)    .attr = &(a), .attr_size = sizeof(a)
#define TRIAL(...) (&(struct trial){__VA_ARGS__})

#endif
