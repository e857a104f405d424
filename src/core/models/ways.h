/* SPDX-License-Identifier: Apache-2.0 */
/* ways.h: modules of a network that is spelled out: lists of layers whose values have
 * names, ways around layers, and what joins them. */
#ifndef ETI_WAYS_H
#define ETI_WAYS_H

#include "etude/field.h"
#include "etude/nn.h"

enum {
    ETI_WAYS_NAMES = 64,
    ETI_WAYS_JOINED = 16,
    ETI_WAYS_FIELD = 32,
    ETI_WAYS_OWN = 128,
    ETI_WAYS_BLOCK = 32,
};

/* What a value is: one that an item of a list gave, what the network reads, or a field
 * of the samples. */
enum eti_way_kind { ETI_WAY_NAMED, ETI_WAY_INPUT, ETI_WAY_FIELD };

struct eti_ways_ref {
    enum eti_way_kind kind;
    int up;    /* NAMED: lists further out */
    int named; /* NAMED: of that list */
    char field[ETI_WAYS_FIELD];
    enum et_dtype dtype; /* FIELD: of the batch, */
    int ndim;            /* and of one sample */
    int64_t shape[ET_MAX_DIMS];
};

/* A list of layers. Its items are its children, in order. */
struct eti_row_module {
    struct et_module base;
    struct eti_row_module *outer; /* borrowed: the list around it; NULL: none is */
    char block[ETI_WAYS_BLOCK];   /* of the block that it is a use of, cut; "": none */
    struct et_tensor *x;          /* while it computes */
    int n_from, n_named;
    struct eti_row_from {
        int item;
        bool is_integer; /* the layer reads integers: a table that is looked up */
        struct eti_ways_ref way;
    } from[ETI_WAYS_NAMES]; /* items that do not read what the one before gives */
    struct {
        int item;
        struct et_tensor *y; /* while the list computes, and then for nobody */
    } named[ETI_WAYS_NAMES];
    /* The items that are a plugin's layers, the first ETI_WAYS_OWN of them: what each
     * was said to make of what. Their values are held against it. */
    int n_own;
    struct eti_row_own {
        int item, line, column; /* line 0: FILE is not known */
        int64_t in[3], out[3];  /* C, H, W; H = 0: a vector */
    } own[ETI_WAYS_OWN];
    char file[128];
};
extern const struct et_module_class eti_row_class, eti_repeat_class;

/* The name of the block that M uses; NULL where M uses no block. */
const char *eti_ways_block(const struct et_module *m);

/* y = residual(x) + shortcut(x); without a shortcut x itself. */
struct eti_residual_module {
    struct et_module base;
    struct et_module *residual, *shortcut; /* lists */
};
extern const struct et_module_class eti_residual_class;

/* What comes in with the values at WAY: their sum, their product, all channels. */
struct eti_join_module {
    struct et_module base;
    const struct eti_row_module *row; /* borrowed: the list that it is an item of */
    int n;
    struct eti_ways_ref way[ETI_WAYS_JOINED - 1];
};
extern const struct et_module_class eti_add_class, eti_mul_class, eti_concat_class;
/* What comes in, which is a value from elsewhere. */
extern const struct et_module_class eti_from_class;

/* *OUT: X, of which the network at ROOT computes, with zeros on DEV for each field that
 * it reads besides. Release it in any case; X stays the caller's. */
ET_NODISCARD et_status eti_ways_samples(struct et_ctx *cx, struct et_module *root,
                                        struct et_device *dev, struct et_tensor *x,
                                        struct et_samples *out);
void eti_ways_release(struct et_samples *samples);

#endif
