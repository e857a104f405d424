/* SPDX-License-Identifier: Apache-2.0 */
/* random_values.h: the values of a random graph, each as the graph has it and as this
 * test computes it, and the operations that make one of others.
 *
 * Numbers are whole. In f32 they are exact: an operation whose result might not be is
 * not built. In bf16 and f16 each operation's result is rounded, here as on the
 * device. */
#ifndef ETUDE_T_UNIT_RANDOM_VALUES_H
#define ETUDE_T_UNIT_RANDOM_VALUES_H

#include "etude/etude.h"

enum {
    DIMS = 4,
    ROOM = 128,  /* elements of a value, at most */
    VALUES = 64, /* of a graph */
    WORLD = 2,   /* ranks: another one that always adds the same as this one */
};

struct value {
    struct et_tensor *t;
    enum et_dtype dtype;
    int ndim;
    int64_t shape[DIMS];
    int64_t n;
    double bound; /* no element is larger, whatever the leaves hold */
    bool of_leaf; /* it may lie in a leaf's memory, and change with that */
    double v[ROOM];
};

/* The graph being made. */
struct rg {
    struct et_graph *graph;
    struct value value[VALUES]; /* the first ones are leaves */
    int n_values, n_leaves;
    uint64_t state;   /* of the random numbers */
    uint64_t variant; /* likewise: of what the layouts of a seed do not share */
    char listing[1 << 14];
    size_t listed;
};
extern struct rg rg;

/* 0 to N - 1, the same in all layouts. */
int rg_draw(int n);
/* 0 to N - 1, in each layout another. */
int rg_draw_apart(int n);

/* More of the text that describes the graph. */
void rg_list(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Elements of a shape. */
int64_t rg_count(int ndim, const int64_t *shape);
/* A value of that shape, whose elements the caller fills; NULL: it has no room, or
 * would hold numbers that are not exact. */
struct value *rg_claim(enum et_dtype dtype, int ndim, const int64_t *shape,
                       double bound);
/* V, which rg_claim gave, is T; the line tells what it is made of. */
void rg_add(struct value *v, struct et_tensor *t, const char *op, const struct value *a,
            const struct value *b, const char *fmt, ...);
int rg_number_of(const struct value *v);

/* One of the values, the newer the likelier: chains grow. Which of the leaves of a
 * shape that is depends on the layout. */
struct value *rg_pick(void);
/* One of dtype F32; NULL: the one that was drawn is not. */
struct value *rg_pick_f32(void);

/* The coordinates of element I of a row-major array. */
void rg_locate(int64_t i, int ndim, const int64_t *shape, int64_t *at);
/* The element of V at AT, whose last axes are V's: axes of length 1 repeat. */
double rg_element(const struct value *v, int ndim, const int64_t *at);
/* NumPy's rule; false: the shapes do not go together. */
bool rg_broadcast(const struct value *a, const struct value *b, int *ndim,
                  int64_t *shape);

/* Tries one operation on values that are drawn: makes a value, or nothing where what
 * was drawn does not fit. */
void rg_make_one(void);

#endif
