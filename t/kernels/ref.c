/* The reference device against numbers worked out by hand. */
#include "kernels/ref/ref.h"
#include "t/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARRAYS 8

/* The results are rounded to f32 once. */
#define TOL 1e-6

static const struct et_device_table *ref;
static struct et_device_handle *handle;

struct operand {
    struct et_desc d;
    void *p;
};

static struct operand
array(enum et_dtype dtype, void *p, int ndim, const int64_t *shape)
{
    struct operand a = {.p = p};
    et_desc_init(&a.d, dtype, ndim, shape, ET_ROW_MAJOR);
    return a;
}

#define SHAPE(...)                                                             \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}
#define F32(p, ...) array(ET_F32, p, SHAPE(__VA_ARGS__))
#define I32(p, ...) array(ET_I32, p, SHAPE(__VA_ARGS__))
#define NOTHING ((struct operand){.p = NULL})

/* Inputs, then outputs. */
static void
run(enum et_op_id op, const void *attr, size_t attr_size, int n_in, int n_out,
    const struct operand *a)
{
    struct et_desc d[MAX_ARRAYS];
    void *p[MAX_ARRAYS];
    for (int i = 0; i < n_in + n_out; i++) {
        d[i] = a[i].d;
        p[i] = a[i].p;
    }
    struct et_call call = {
        .op = op,
        .n_in = n_in,
        .n_out = n_out,
        .attr = attr,
        .attr_size = attr_size,
        .in = d,
        .out = d + n_in,
    };
    struct et_kernel *k;
    size_t bytes;
    char why[256] = "";
    if (ref->prepare(handle, &call, &k, &bytes, why, sizeof why) != ET_OK)
        bail("op %d: %s", op, why);
    void *workspace;
    if (ref->alloc(handle, bytes, &workspace) != ET_OK)
        bail("no memory");
    if (ref->run(k, p, workspace, NULL) != ET_OK)
        bail("op %d does not run", op);
    ref->free(handle, workspace, bytes);
    ref->release(k);
}

#define RUN(op, attr, n_in, n_out, ...)                                        \
    run(ET_OP_##op, &(attr), sizeof(attr), n_in, n_out, (struct operand[]){__VA_ARGS__})
#define RUN_PLAIN(op, n_in, n_out, ...)                                        \
    run(ET_OP_##op, NULL, 0, n_in, n_out, (struct operand[]){__VA_ARGS__})
#define IS(got, tol, name, ...)                                                \
    is_near_array(got, (float[]){__VA_ARGS__},                                 \
                  sizeof((float[]){__VA_ARGS__}) / sizeof(float), tol, name)

static void
elementwise(void)
{
    float x[4] = {-2, -0.5f, 0, 3}, y[4];
    RUN_PLAIN(relu, 1, 1, F32(x, 4), F32(y, 4));
    IS(y, 0, "relu clears what is negative", 0, 0, 0, 3);
    RUN_PLAIN(gelu, 1, 1, F32(x, 4), F32(y, 4));
    IS(y, TOL, "gelu is x times the normal distribution", -0.04550026f, -0.15426877f, 0,
       2.99595031f);
    RUN_PLAIN(softplus, 1, 1, F32(x, 4), F32(y, 4));
    IS(y, TOL, "softplus is log(1 + e^x)", 0.12692801f, 0.47407698f, 0.69314718f,
       3.04858735f);
    struct et_scalar_attr limits = {.a = -1, .b = 2};
    RUN(clamp, limits, 1, 1, F32(x, 4), F32(y, 4));
    IS(y, 0, "clamp limits both sides", -1, -0.5, 0, 2);

    float a[6] = {1, 2, 3, 4, 5, 6}, row[3] = {10, 20, 30}, sum[6];
    RUN_PLAIN(add, 2, 1, F32(a, 2, 3), F32(row, 3), F32(sum, 2, 3));
    IS(sum, 0, "a row broadcasts over a matrix", 11, 22, 33, 14, 25, 36);
    struct operand turned = F32(a, 2, 3);
    turned.d.shape[0] = 3, turned.d.shape[1] = 2;
    turned.d.stride[0] = 1, turned.d.stride[1] = 3;
    RUN_PLAIN(neg, 1, 1, turned, F32(sum, 3, 2));
    IS(sum, 0, "strides are followed", -1, -4, -2, -5, -3, -6);

    struct et_fused_attr program = {.n_in = 2, .n_out = 1, .n_steps = 2, .out = {3}};
    program.step[0] = (struct et_fused_step){.op = ET_OP_mul, .src = {0, 1}, .n_src = 2};
    program.step[1] = (struct et_fused_step){
        .op = ET_OP_add_scalar, .src = {2}, .n_src = 1, .a = 1};
    RUN(fused, program, 2, 1, F32(a, 2, 3), F32(row, 3), F32(a, 2, 3));
    IS(a, 0, "a fused program runs in place", 11, 41, 91, 41, 101, 181);
}

static void
dtypes(void)
{
    float x[4] = {1, -2.5f, 65536, 0x1p-24f}, back[4];
    uint16_t half[4];
    struct et_cast_attr to = {.dtype = ET_F16};
    RUN(cast, to, 1, 1, F32(x, 4), array(ET_F16, half, SHAPE(4)));
    ok(half[0] == 0x3c00 && half[1] == 0xc100 && half[2] == 0x7c00 && half[3] == 1,
       "f16: one, a negative, overflow and the smallest number");
    to.dtype = ET_F32;
    RUN(cast, to, 1, 1, array(ET_F16, half, SHAPE(4)), F32(back, 4));
    ok(back[0] == 1 && back[1] == -2.5f && isinf(back[2]) && back[3] == 0x1p-24f,
       "f16 reads back what it holds");
    float tie[3] = {1 + 0x1p-8f, 1 + 0x3p-8f, 3.4e38f};
    uint16_t brain[3];
    to.dtype = ET_BF16;
    RUN(cast, to, 1, 1, F32(tie, 3), array(ET_BF16, brain, SHAPE(3)));
    ok(brain[0] == 0x3f80 && brain[1] == 0x3f82 && brain[2] == 0x7f80,
       "bf16 rounds ties to even and overflows to infinity");
    float wild[4] = {-1.5f, 300, NAN, 2.9f};
    uint8_t byte[4];
    to.dtype = ET_U8;
    RUN(cast, to, 1, 1, F32(wild, 4), array(ET_U8, byte, SHAPE(4)));
    ok(byte[0] == 0 && byte[1] == 255 && byte[2] == 0 && byte[3] == 2,
       "integers truncate and saturate; NaN becomes 0");
}

static void
movement(void)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, y[12];
    struct et_flip_attr flip = {.axes = 2};
    RUN(flip, flip, 1, 1, F32(x, 2, 3), F32(y, 2, 3));
    IS(y, 0, "flip reverses one axis", 3, 2, 1, 6, 5, 4);
    struct et_pad_attr pad = {.before = {0, 1}, .after = {1, -1}, .value = 9};
    RUN(pad, pad, 1, 1, F32(x, 2, 3), F32(y, 3, 3));
    IS(y, 0, "pad adds a value, and cuts where negative", 9, 1, 2, 9, 4, 5, 9, 9, 9);
    struct et_axis_attr axis = {.axis = 1};
    RUN(concat, axis, 2, 1, F32(x, 2, 3), F32(((float[]){7, 8}), 2, 1), F32(y, 2, 4));
    IS(y, 0, "concat joins along an axis", 1, 2, 3, 7, 4, 5, 6, 8);
    int32_t index[3] = {2, 0, 5};
    RUN(take, axis, 2, 1, F32(x, 2, 3), I32(index, 3), F32(y, 2, 3));
    ok(y[0] == 3 && y[1] == 1 && isnan(y[2]) && y[3] == 6 && y[4] == 4 && isnan(y[5]),
       "take selects columns; an index out of range reads NaN");
    RUN(take_grad, axis, 2, 1, F32(x, 2, 3), I32(index, 3), F32(y, 2, 3));
    IS(y, 0, "its gradient adds back and drops what was out of range", 2, 0, 1, 5, 0, 4);
    int32_t where[4] = {0, 0, 1, -1};
    axis = (struct et_axis_attr){.axis = 0, .n = 2};
    RUN(scatter_add, axis, 2, 1, F32(x, 2, 2), I32(where, 2, 2), F32(y, 2, 2));
    IS(y, 0, "scatter_add sums where an index repeats", 1, 2, 3, 0);

    struct {
        struct et_pack_attr fixed;
        int64_t offset[2];
    } pack = {.fixed.total = 9, .offset = {4, 0}};
    struct operand turned = F32(x, 2, 2);
    turned.d.stride[0] = 1, turned.d.stride[1] = 2;
    RUN(pack, pack, 2, 1, turned, F32(((float[]){7, 8}), 2), F32(y, 9));
    IS(y, 0, "pack keeps memory order and clears the gaps", 7, 8, 0, 0, 1, 2, 3, 4, 0);
}

static void
reductions(void)
{
    float x[6] = {1, 5, 3, 4, 5, 0}, y[6];
    int32_t index[4];
    struct et_reduce_attr rows = {.axes = 2}, all = {.axes = 3};
    RUN(sum, rows, 1, 1, F32(x, 2, 3), F32(y, 2));
    IS(y, 0, "sum over the last axis", 9, 9);
    RUN(amin, all, 1, 1, F32(x, 2, 3), array(ET_F32, y, 0, NULL));
    IS(y, 0, "the least of all", 0);
    RUN_PLAIN(sum_squares, 1, 1, F32(x, 2, 3), array(ET_F32, y, 0, NULL));
    IS(y, 0, "the sum of squares", 76);
    struct et_axis_attr axis = {.axis = 0};
    RUN(argmax, axis, 1, 1, F32(x, 2, 3), I32(index, 3));
    ok(index[0] == 1 && index[1] == 0 && index[2] == 0, "argmax takes the first of equals");
    axis = (struct et_axis_attr){.axis = 1, .n = 2};
    RUN(topk, axis, 1, 2, F32(x, 2, 3), F32(y, 2, 2), I32(index, 2, 2));
    IS(y, 0, "topk descends", 5, 3, 5, 4);
    ok(index[0] == 1 && index[1] == 2 && index[2] == 1 && index[3] == 0,
       "topk says where its values were");
}

static void
products(void)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[4] = {1, -1, 2, 0}, y[6];
    struct et_matmul_attr plain = {0}, turn_a = {.trans_a = 1, .trans_b = 1};
    RUN(matmul, plain, 3, 1, F32(a, 3, 2), F32(b, 2, 2), F32(((float[]){10, 20}), 2),
        F32(y, 3, 2));
    IS(y, 0, "matmul adds its bias to each row", 15, 19, 21, 17, 27, 15);
    RUN(matmul, turn_a, 3, 1, F32(a, 2, 3), F32(b, 2, 2), NOTHING, F32(y, 3, 2));
    IS(y, 0, "matmul reads both operands turned", -3, 2, -3, 4, -3, 6);
}

int
main(void)
{
    ref = etk_ref_device();
    char why[256];
    if (ref->open(0, 1, &handle, why, sizeof why) != ET_OK)
        bail("%s", why);
    ok(ref->open(1, 1, &handle, why, sizeof why) == ET_EINVAL, "there is one device");
    elementwise();
    dtypes();
    movement();
    reductions();
    products();
    ref->close(handle);
    return done();
}
