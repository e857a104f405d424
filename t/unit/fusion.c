/* SPDX-License-Identifier: Apache-2.0 */
/* What fusion must not join: graphs in which a joined kernel would read too early. On
 * the reference device. */
#include "etude/etude.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

static struct et_tensor *
leaf(int ndim, const int64_t *shape, const float *values)
{
    struct et_tensor *t;
    must(et_tensor_new(cx, dev, ET_F32, ndim, shape, ET_ROW_MAJOR, NULL, &t));
    must(et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)));
    return t;
}

static void
read_into(float *out, const struct et_tensor *t)
{
    must(et_tensor_read(cx, t, out, et_desc_bytes(&t->desc)));
}

/* Chain B reads of chain A, and A, through a flip and a sum that no chain takes, of B's
 * first step. (The flip stands before all of A.) */
static void
test_chains_in_a_ring(void)
{
    const int64_t shape[] = {3};
    const float values[] = {-1, -2, -3};
    float row[3], one;
    struct et_graph *g;
    struct et_tensor *x = leaf(1, shape, values), *want[2];
    must(et_graph_new(cx, dev, &g));
    struct et_tensor *b = et_neg(g, x), *flipped = et_flip(g, b, 1);
    struct et_tensor *a = et_neg(g, et_sum(g, x, 1, false));
    struct et_tensor *c = et_sum(g, flipped, 1, false);
    want[0] = et_maximum(g, b, a);
    want[1] = et_sub(g, et_mul_scalar(g, c, 2), a);
    must(et_eval(g, want, 2));
    read_into(row, want[0]);
    read_into(&one, want[1]);
    ok(row[0] == 6 && row[1] == 6 && row[2] == 6 && one == 6,
       "of two chains that read of each other each has what it reads: %g %g %g, %g",
       (double)row[0], (double)row[1], (double)row[2], (double)one);
    et_tensor_free(&x);
    et_graph_free(&g);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    must(et_device_open(cx, "ref", 0, 1, &dev));
    test_chains_in_a_ring();
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
