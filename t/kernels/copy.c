/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's copies: every order of axes on either side, and bytes of any number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "t/kernels/module.h"
#include "t/tap.h"

#define N_MAX (40 * 40 * 5 * 5)

static const struct et_device_table *table;
static struct et_device_handle *device;

/* Strides of a dense array whose axes lie in memory in the order of permutation P. */
static void
permuted(struct et_desc *d, enum et_dtype dtype, const int64_t *shape, int p)
{
    int axes[] = {0, 1, 2, 3}, order[4];
    for (int i = 0; i < 4; i++) {
        int pick = p % (4 - i);
        p /= 4 - i;
        order[i] = axes[pick];
        memmove(axes + pick, axes + pick + 1, (size_t)(3 - pick) * sizeof axes[0]);
    }
    memset(d, 0, sizeof *d);
    d->dtype = dtype;
    d->ndim = 4;
    int64_t stride = 1;
    for (int i = 3; i >= 0; i--) {
        d->shape[i] = shape[i];
        d->stride[order[i]] = stride;
        stride *= shape[order[i]];
    }
}

static int64_t
at(const struct et_desc *d, int64_t i)
{
    int64_t offset = 0;
    for (int axis = 3; axis >= 0; axis--) {
        offset += i % d->shape[axis] * d->stride[axis];
        i /= d->shape[axis];
    }
    return offset;
}

static bool
copies(const struct et_desc *from, const struct et_desc *to)
{
    static uint8_t a[N_MAX * 8], b[N_MAX * 8];
    struct et_call call = {
        .op = ET_OP_copy, .n_in = 1, .n_out = 1, .in = from, .out = to};
    struct et_kernel *k;
    size_t workspace, size = et_dtype_size(from->dtype);
    char why[256];
    if (table->prepare(device, &call, &k, &workspace, why, sizeof why) != ET_OK)
        return false;
    for (size_t i = 0; i < sizeof a; i++)
        a[i] = (uint8_t)(i * 2654435761u >> 7);
    memset(b, 0, sizeof b);
    void *ptr[] = {a, b};
    bool same = table->run(k, ptr, NULL, NULL) == ET_OK;
    for (int64_t i = 0; same && i < et_desc_count(from); i++)
        same = memcmp(a + (size_t)at(from, i) * size, b + (size_t)at(to, i) * size,
                      size) == 0;
    table->release(k);
    return same;
}

static void
test_orders(enum et_dtype dtype, const int64_t *shape)
{
    struct et_desc from, to;
    int wrong = 0;
    for (int p = 0; p < 24; p++)
        for (int q = 0; q < 24; q++) {
            permuted(&from, dtype, shape, p);
            permuted(&to, dtype, shape, q);
            wrong += !copies(&from, &to);
        }
    is_int(wrong, 0, "%s[%d,%d,%d,%d] is copied between all orders of its axes",
           et_dtype_name(dtype), (int)shape[0], (int)shape[1], (int)shape[2],
           (int)shape[3]);
}

/* As many bytes as were asked for are copied or set, however the threads share them. */
static void
test_bytes(void)
{
    enum { MIB = 1 << 20, MOST = MIB + 300, BEHIND = 64 };
    static const size_t sizes[] = {0,         1,         63,        64,
                                   MIB - 1,   MIB,       MIB + 1,   MIB + 64,
                                   MIB + 127, MIB + 128, MIB + 129, MIB + 257};
    unsigned char *from = malloc(MOST + BEHIND), *to = malloc(MOST + BEHIND);
    if (!from || !to)
        bail("no memory");
    for (int i = 0; i < MOST + BEHIND; i++)
        from[i] = (unsigned char)(i % 251);
    int copied = 0, filled = 0;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const size_t n = sizes[k];
        size_t right = 0, left = 0;
        memset(to, 255, MOST + BEHIND);
        bool done_well = table->copy(device, to, from, n, NULL) == ET_OK;
        for (size_t i = n; i < n + BEHIND; i++)
            left += to[i] == 255;
        copied += done_well && memcmp(to, from, n) == 0 && left == BEHIND;
        done_well = table->fill(device, to, 7, n, NULL) == ET_OK;
        for (size_t i = 0; i < n + BEHIND; i++)
            right += to[i] == (i < n ? 7 : 255);
        filled += done_well && right == n + BEHIND;
    }
    is_int(copied, sizeof sizes / sizeof *sizes, "all bytes are copied, and no others");
    is_int(filled, sizeof sizes / sizeof *sizes, "and set");
    free(from);
    free(to);
}

int
main(void)
{
    table = open_module();
    if (!table)
        skip_all("the CPU module was not built");
    char why[256] = "";
    et_status status = table->open(0, 2, &device, why, sizeof why);
    if (!ok(status == ET_OK, "the CPU device opens"))
        bail("%s", why);
    struct et_device_info info;
    table->info(device, &info);
    is_int(info.threads, 2, "it has the threads it was opened with");
    diag("%s, %s", info.name, info.library);

    test_orders(ET_F32, (int64_t[]){3, 17, 5, 33});
    test_orders(ET_F32, (int64_t[]){1, 40, 1, 40});
    test_orders(ET_I64, (int64_t[]){2, 16, 3, 4});
    test_orders(ET_BF16, (int64_t[]){31, 1, 2, 35});
    test_orders(ET_U8, (int64_t[]){1, 1, 1, 1});

    struct et_desc from, to;
    permuted(&from, ET_F32, (int64_t[]){2, 3, 4, 40}, 0);
    to = from;
    from.stride[1] = 0;
    ok(copies(&from, &to), "a repeated axis is written out");
    permuted(&to, ET_F32, (int64_t[]){0, 3, 4, 5}, 0);
    ok(copies(&to, &to), "an empty array is copied");
    test_bytes();
    table->close(device);
    return done();
}
