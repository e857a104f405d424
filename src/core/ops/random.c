/* SPDX-License-Identifier: Apache-2.0 */
/* random.c: numbers drawn in the graph.
 *
 * What a sample gets is a function of (key, sample, ordinal) and of the element's place
 * in its sample, never of rank or microbatch, as a dropout's mask is.
 * kernels/ref/random.c defines the numbers. */
#include "core/base/need.h"
#include "core/ops/ops.h"

ETI_INFER(random_infer)
{
    const struct et_random_attr *o = call->attr;
    ET_TRY(eti_need_dtype(cx, call, 0, "rng", ET_I64));
    ET_TRY(eti_need_shape(cx, call, 0, "rng", 1, (int64_t[]){2}));
    if (o->ndim < 1 || o->ndim > ET_MAX_DIMS)
        return ETI_FAIL(cx, call, ET_ESHAPE,
                        "%d axes; there must be 1, the sample, to %d", o->ndim,
                        ET_MAX_DIMS);
    for (int i = 0; i < o->ndim; i++)
        if (o->shape[i] < 0)
            return ETI_FAIL(cx, call, ET_ESHAPE, "axis %d has the length %lld", i,
                            (long long)o->shape[i]);
    if (!(o->p >= 0 && o->p <= 1))
        return ETI_FAIL(cx, call, ET_EINVAL, "probability %g is outside [0, 1]", o->p);
    et_desc_init(out, ET_F32, o->ndim, o->shape, ET_ROW_MAJOR);
    return ET_OK;
}

const struct et_op et_op_random = {
    .name = "random",
    .summary = "numbers drawn for each sample",
    .id = ET_OP_random,
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct et_random_attr),
    .infer = random_infer,
};

static struct et_tensor *
draw(struct et_graph *g, enum et_random_kind kind, struct et_tensor *rng, double p,
     uint64_t ordinal, int ndim, const int64_t *shape)
{
    struct et_random_attr attr = {
        .kind = kind, .ndim = ndim, .p = p, .ordinal = ordinal};
    for (int i = 0; i < ndim && i < ET_MAX_DIMS; i++)
        attr.shape[i] = shape[i];
    return ETI_APPLY_ATTR(g, random, &attr, NULL, rng);
}

struct et_tensor *
et_random_uniform(struct et_graph *g, struct et_tensor *rng, uint64_t ordinal, int ndim,
                  const int64_t *shape)
{
    ETI_NEED_IN(g, g);
    if (ndim > 0)
        ETI_NEED_IN(g, shape);
    return rng ? draw(g, ET_RANDOM_UNIFORM, rng, 0, ordinal, ndim, shape)
               : ETI_MISSING(g, rng);
}

struct et_tensor *
et_random_normal(struct et_graph *g, struct et_tensor *rng, uint64_t ordinal, int ndim,
                 const int64_t *shape)
{
    ETI_NEED_IN(g, g);
    if (ndim > 0)
        ETI_NEED_IN(g, shape);
    return rng ? draw(g, ET_RANDOM_NORMAL, rng, 0, ordinal, ndim, shape)
               : ETI_MISSING(g, rng);
}

struct et_tensor *
et_random_bernoulli(struct et_graph *g, struct et_tensor *rng, double p,
                    uint64_t ordinal, int ndim, const int64_t *shape)
{
    ETI_NEED_IN(g, g);
    if (ndim > 0)
        ETI_NEED_IN(g, shape);
    return rng ? draw(g, ET_RANDOM_BERNOULLI, rng, p, ordinal, ndim, shape)
               : ETI_MISSING(g, rng);
}
