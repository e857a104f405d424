/* SPDX-License-Identifier: Apache-2.0 */
/* dist.c: the ranks of a program of one's own: see etude/dist.h.
 *
 * A communicator adds up F32, F64 and I64, and has no products. What it does not do is
 * gathered and put together here, in the order of the ranks. Every call has a mark of
 * its own, which counts calls and has a digest of what is called: ranks that call
 * different things, or with different sizes, do not meet. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "core/base/need.h"
#include "dist/comm/rank_env.h"
#include "etude/dist.h"

struct et_dist {
    struct et_ctx *cx;
    struct etd_rank_env env;
    struct et_comm *comm; /* NULL: one rank */
    int calls;
};

/* ---- beginning and end ---- */

et_status
et_dist_init(struct et_ctx *cx, int timeout_s, struct et_dist **out)
{
    ETI_NEED(cx, cx, out);
    void *block;
    *out = NULL;
    if (timeout_s < 0 || timeout_s > INT32_MAX / 1000)
        return ET_FAIL(cx, ET_EINVAL, "a timeout of %d s: 0 to %d are possible",
                       timeout_s, INT32_MAX / 1000);
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_dist *d = block;
    d->cx = cx;
    et_status status = etd_rank_env_read(cx, &d->env);
    if (timeout_s > 0)
        d->env.timeout_ms = 1000 * timeout_s;
    if (status == ET_OK)
        status = etd_comm_open(cx, &d->env, &d->comm);
    if (status == ET_OK)
        *out = d;
    else
        et_free(cx, d);
    return status;
}

void
et_dist_end(struct et_dist **out)
{
    if (!out)
        return;
    struct et_dist *d = *out;
    *out = NULL;
    if (!d)
        return;
    et_comm_close(&d->comm);
    et_free(d->cx, d);
}

int
et_dist_global_rank(const struct et_dist *d)
{
    return d ? d->env.rank : 0;
}

int
et_dist_local_rank(const struct et_dist *d)
{
    return d ? d->env.local_rank : 0;
}

int
et_dist_node_rank(const struct et_dist *d)
{
    return d ? d->env.rank / d->env.local_world : 0;
}

int
et_dist_world_size(const struct et_dist *d)
{
    return d ? d->env.world : 1;
}

int
et_dist_local_world_size(const struct et_dist *d)
{
    return d ? d->env.local_world : 1;
}

int
et_dist_node_count(const struct et_dist *d)
{
    return d ? d->env.world / d->env.local_world : 1;
}

struct et_comm *
et_dist_comm(const struct et_dist *d)
{
    return d ? d->comm : NULL;
}

/* ---- what every call does first ---- */

enum call { BARRIER, REDUCE, GATHER, BROADCAST, SIZES, BYTES, FIRST };

/* The next collective is the D's next call. A, B and C say what it is of: the same
 * numbers on all ranks that are to meet in it. */
static void
mark(struct et_dist *d, enum call call, int64_t a, int b, int c)
{
    const uint64_t v[] = {(uint64_t)call, (uint64_t)a, (uint64_t)b, (uint64_t)c};
    uint64_t h = UINT64_C(1469598103934665603); /* FNV-1a, a number at a time */
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        h = (h ^ v[i]) * UINT64_C(1099511628211);
    d->calls = d->calls == INT32_MAX ? 1 : d->calls + 1;
    et_comm_set_mark(d->comm, -1, d->calls, (uint32_t)(h ^ h >> 32));
}

static et_status
check_rank(struct et_ctx *cx, const struct et_dist *d, const char *what, int rank)
{
    int world = et_dist_world_size(d);
    if (rank >= 0 && rank < world)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL, "%s is rank %d, and there are ranks 0 to %d", what,
                   rank, world - 1);
}

static et_status
check_count(struct et_ctx *cx, int64_t n, enum et_dtype dtype)
{
    if (dtype <= ET_NONE || dtype >= ET_DTYPE_COUNT)
        return ET_FAIL(cx, ET_EDTYPE, "%d is no dtype of numbers", (int)dtype);
    if (n < 0)
        return ET_FAIL(cx, ET_EINVAL, "%lld elements", (long long)n);
    return ET_OK;
}

et_status
et_dist_barrier(struct et_ctx *cx, struct et_dist *d)
{
    ETI_NEED(cx, cx, d);
    mark(d, BARRIER, 0, 0, 0);
    return et_comm_barrier(cx, d->comm);
}

/* ---- numbers ---- */

/* OUT = OUT op X, for N numbers of type T. */
#define COMBINE_ANY(T)                                                                 \
    static void combine_##T(T *out, const T *x, int64_t n, enum et_dist_op op)         \
    {                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                \
            switch (op) {                                                              \
            case ET_DIST_PRODUCT:                                                      \
                out[i] = (T)(out[i] * x[i]);                                           \
                break;                                                                 \
            case ET_DIST_MIN:                                                          \
                out[i] = x[i] < out[i] || x[i] != x[i] ? x[i] : out[i];                \
                break;                                                                 \
            case ET_DIST_MAX:                                                          \
                out[i] = x[i] > out[i] || x[i] != x[i] ? x[i] : out[i];                \
                break;                                                                 \
            default:                                                                   \
                out[i] = (T)(out[i] + x[i]);                                           \
            }                                                                          \
    }
COMBINE_ANY(float)
COMBINE_ANY(double)
COMBINE_ANY(int32_t)
COMBINE_ANY(int64_t)
COMBINE_ANY(uint8_t)

/* Bits do not know which type they are of. */
static void
combine_bits(uint8_t *out, const uint8_t *x, size_t bytes, enum et_dist_op op)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(op == ET_DIST_BAND  ? out[i] & x[i]
                           : op == ET_DIST_BOR ? out[i] | x[i]
                                               : out[i] ^ x[i]);
}

static void
combine(void *out, const void *x, int64_t n, enum et_dtype dtype, enum et_dist_op op)
{
    if (op >= ET_DIST_BAND)
        combine_bits(out, x, (size_t)n * et_dtype_size(dtype), op);
    else if (dtype == ET_F32)
        combine_float(out, x, n, op);
    else if (dtype == ET_F64)
        combine_double(out, x, n, op);
    else if (dtype == ET_I32)
        combine_int32_t(out, x, n, op);
    else if (dtype == ET_I64)
        combine_int64_t(out, x, n, op);
    else
        combine_uint8_t(out, x, n, op);
}

static et_status
check_op(struct et_ctx *cx, enum et_dtype dtype, enum et_dist_op op)
{
    static const char *const names[] = {"sum", "product", "min", "max",
                                        "and", "or",      "xor"};
    bool whole = dtype == ET_I32 || dtype == ET_I64 || dtype == ET_U8;
    if ((int)op < ET_DIST_SUM || op > ET_DIST_BXOR)
        return ET_FAIL(cx, ET_EINVAL, "%d is no reduction: 0 to %d are", (int)op,
                       ET_DIST_BXOR);
    if (whole || ((dtype == ET_F32 || dtype == ET_F64) && op < ET_DIST_BAND))
        return ET_OK;
    return ET_FAIL(cx, ET_EDTYPE, "ranks do not reduce %s by %s", et_dtype_name(dtype),
                   names[op]);
}

/* What the communicator does itself; -1: nothing. (It takes a U8 for a truth value.) */
static int
op_of_comm(enum et_dtype dtype, enum et_dist_op op)
{
    bool has = dtype == ET_F32 || dtype == ET_F64 || dtype == ET_I64;
    return !has                ? -1
           : op == ET_DIST_SUM ? ET_COMM_SUM
           : op == ET_DIST_MIN ? ET_COMM_MIN
           : op == ET_DIST_MAX ? ET_COMM_MAX
                               : -1;
}

/* OUT = the result over all ranks of IN; they may be the same. */
static et_status
reduce(struct et_ctx *cx, struct et_dist *d, const void *in, void *out, int64_t n,
       enum et_dtype dtype, enum et_dist_op op)
{
    size_t bytes = (size_t)n * et_dtype_size(dtype);
    int world = et_dist_world_size(d), own = op_of_comm(dtype, op);
    void *block;
    mark(d, REDUCE, n, (int)dtype, (int)op);
    if (own >= 0 || world == 1) {
        memmove(out, in, bytes);
        return world == 1 ? ET_OK
                          : et_comm_all_reduce(cx, d->comm, out, n, dtype,
                                               (enum et_comm_op)own);
    }
    ET_TRY(et_alloc(cx, (size_t)world * bytes + 1, &block));
    const char *all = block;
    et_status status = et_comm_all_gather(cx, d->comm, in, bytes, block);
    if (status == ET_OK)
        memcpy(out, all, bytes);
    for (int r = 1; r < world && status == ET_OK; r++)
        combine(out, all + (size_t)r * bytes, n, dtype, op);
    et_free(cx, block);
    return status;
}

et_status
et_dist_all_reduce(struct et_ctx *cx, struct et_dist *d, void *data, int64_t n,
                   enum et_dtype dtype, enum et_dist_op op)
{
    ETI_NEED(cx, cx, d);
    ET_TRY(check_count(cx, n, dtype));
    ET_TRY(check_op(cx, dtype, op));
    if (n == 0)
        return ET_OK;
    ETI_NEED(cx, data);
    return reduce(cx, d, data, data, n, dtype, op);
}

/* (Every rank has the result then: no more goes over the wire than a ring takes.) */
et_status
et_dist_reduce(struct et_ctx *cx, struct et_dist *d, void *data, int64_t n,
               enum et_dtype dtype, enum et_dist_op op, int dst)
{
    ETI_NEED(cx, cx, d);
    void *own;
    ET_TRY(check_rank(cx, d, "dst", dst));
    ET_TRY(check_count(cx, n, dtype));
    ET_TRY(check_op(cx, dtype, op));
    if (n == 0)
        return ET_OK;
    ETI_NEED(cx, data);
    if (d->env.rank == dst)
        return reduce(cx, d, data, data, n, dtype, op);
    ET_TRY(et_alloc(cx, (size_t)n * et_dtype_size(dtype), &own));
    et_status status = reduce(cx, d, data, own, n, dtype, op);
    et_free(cx, own);
    return status;
}

et_status
et_dist_all_gather(struct et_ctx *cx, struct et_dist *d, const void *in, int64_t n,
                   enum et_dtype dtype, void *out)
{
    ETI_NEED(cx, cx, d);
    ET_TRY(check_count(cx, n, dtype));
    if (n == 0)
        return ET_OK;
    ETI_NEED(cx, in, out);
    mark(d, GATHER, n, (int)dtype, 0);
    return et_comm_all_gather(cx, d->comm, in, (size_t)n * et_dtype_size(dtype), out);
}

/* The N elements of IN, and behind them PAD until there are MOST, into OUT. */
static void
pad_to(char *out, const void *in, int64_t n, int64_t most, size_t each, const void *pad)
{
    if (n > 0)
        memcpy(out, in, (size_t)n * each);
    for (int64_t i = n; i < most; i++)
        if (pad)
            memcpy(out + (size_t)i * each, pad, each);
        else
            memset(out + (size_t)i * each, 0, each);
}

et_status
et_dist_all_gather_padded(struct et_ctx *cx, struct et_dist *d, const void *in,
                          int64_t n, enum et_dtype dtype, const void *pad,
                          int64_t *most, void **out)
{
    void *all, *own;
    ETI_NEED(cx, cx, d, most, out);
    *out = NULL;
    *most = n;
    ET_TRY(check_count(cx, n, dtype));
    if (n > 0)
        ETI_NEED(cx, in);
    ET_TRY(reduce(cx, d, most, most, 1, ET_I64, ET_DIST_MAX));
    if (*most == 0)
        return ET_OK;
    size_t each = et_dtype_size(dtype);
    int world = et_dist_world_size(d);
    ET_TRY(et_alloc(cx, (size_t)*most * each, &own));
    pad_to(own, in, n, *most, each, pad);
    et_status status = et_alloc(cx, (size_t)world * (size_t)*most * each, &all);
    if (status == ET_OK) {
        status = et_dist_all_gather(cx, d, own, *most, dtype, all);
        if (status == ET_OK)
            *out = all;
        else
            et_free(cx, all);
    }
    et_free(cx, own);
    return status;
}

et_status
et_dist_broadcast(struct et_ctx *cx, struct et_dist *d, void *data, int64_t n,
                  enum et_dtype dtype, int src)
{
    ETI_NEED(cx, cx, d);
    ET_TRY(check_rank(cx, d, "src", src));
    ET_TRY(check_count(cx, n, dtype));
    if (n == 0)
        return ET_OK;
    ETI_NEED(cx, data);
    mark(d, BROADCAST, n, (int)dtype, src);
    return et_comm_broadcast(cx, d->comm, data, (size_t)n * et_dtype_size(dtype), src);
}

/* ---- objects ---- */

enum { ALIGN = 16 };

static size_t
rounded(uint64_t bytes)
{
    return (size_t)((bytes + ALIGN - 1) / ALIGN * ALIGN);
}

/* ALL [world ROOM] has an object for each rank, of SIZES bytes: *OUT has them, and what
 * they hold, in one block. */
static et_status
unpack(struct et_ctx *cx, const char *all, size_t room, const uint64_t *sizes,
       int world, struct et_dist_object **out)
{
    size_t table = rounded((uint64_t)world * sizeof **out), total = table;
    void *block;
    for (int r = 0; r < world; r++)
        total += rounded(sizes[r]);
    ET_TRY(et_alloc(cx, total, &block));
    char *at = (char *)block + table;
    *out = block;
    for (int r = 0; r < world; r++) {
        if (sizes[r] > 0)
            memcpy(at, all + (size_t)r * room, (size_t)sizes[r]);
        (*out)[r] = (struct et_dist_object){at, (size_t)sizes[r]};
        at += rounded(sizes[r]);
    }
    return ET_OK;
}

/* Each rank's bytes, padded to the longest, behind a gather of the sizes. */
static et_status
gather(struct et_ctx *cx, struct et_dist *d, const void *data, uint64_t bytes,
       uint64_t *sizes, bool wanted, struct et_dist_object **out)
{
    int world = et_dist_world_size(d);
    size_t room = 0;
    void *block;
    mark(d, SIZES, 0, 0, 0);
    ET_TRY(et_comm_all_gather(cx, d->comm, &bytes, sizeof bytes, sizes));
    for (int r = 0; r < world; r++)
        room = rounded(sizes[r]) > room ? rounded(sizes[r]) : room;
    ET_TRY(et_alloc(cx, room * ((size_t)world + 1) + 1, &block));
    char *own = block, *all = own + room;
    if (bytes > 0)
        memcpy(own, data, (size_t)bytes);
    mark(d, BYTES, (int64_t)room, 0, 0);
    et_status status = et_comm_all_gather(cx, d->comm, own, room, all);
    if (status == ET_OK && wanted)
        status = unpack(cx, all, room, sizes, world, out);
    et_free(cx, block);
    return status;
}

static et_status
gather_object(struct et_ctx *cx, struct et_dist *d, const void *data, size_t bytes,
              bool wanted, struct et_dist_object **out)
{
    void *block;
    ET_TRY(et_alloc(cx, (size_t)et_dist_world_size(d) * sizeof(uint64_t), &block));
    et_status status = gather(cx, d, data, (uint64_t)bytes, block, wanted, out);
    et_free(cx, block);
    return status;
}

et_status
et_dist_all_gather_object(struct et_ctx *cx, struct et_dist *d, const void *data,
                          size_t bytes, struct et_dist_object **out)
{
    ETI_NEED(cx, cx, d, out);
    *out = NULL;
    if (bytes > 0)
        ETI_NEED(cx, data);
    return gather_object(cx, d, data, bytes, true, out);
}

et_status
et_dist_gather_object(struct et_ctx *cx, struct et_dist *d, const void *data,
                      size_t bytes, int dst, struct et_dist_object **out)
{
    ETI_NEED(cx, cx, d, out);
    *out = NULL;
    if (bytes > 0)
        ETI_NEED(cx, data);
    ET_TRY(check_rank(cx, d, "dst", dst));
    return gather_object(cx, d, data, bytes, d->env.rank == dst, out);
}

et_status
et_dist_broadcast_object(struct et_ctx *cx, struct et_dist *d, void **data,
                         size_t *bytes, int src)
{
    ETI_NEED(cx, cx, d, data, bytes);
    ET_TRY(check_rank(cx, d, "src", src));
    bool is_source = d->env.rank == src;
    uint64_t size = is_source ? *bytes : 0;
    void *own = is_source ? *data : NULL;
    if (is_source && size > 0)
        ETI_NEED(cx, *data);
    mark(d, SIZES, 0, 0, src);
    ET_TRY(et_comm_broadcast(cx, d->comm, &size, sizeof size, src));
    if (!is_source)
        ET_TRY(et_alloc(cx, (size_t)size + 1, &own));
    mark(d, BYTES, (int64_t)size, 0, src);
    et_status status = et_comm_broadcast(cx, d->comm, own, (size_t)size, src);
    if (status != ET_OK) {
        if (!is_source)
            et_free(cx, own);
        return status;
    }
    *data = own;
    *bytes = (size_t)size;
    return ET_OK;
}

/* ---- one after the other ---- */

et_status
et_dist_local_zero_first(struct et_ctx *cx, struct et_dist *d, et_dist_fn *fn,
                         void *data)
{
    ETI_NEED(cx, cx, d, fn);
    bool is_first = d->env.local_rank == 0;
    et_status status = is_first ? fn(data) : ET_OK;
    int64_t failed = status == ET_OK ? 0 : d->env.rank + 1;
    mark(d, FIRST, 0, 0, 0);
    et_status met = et_comm_all_reduce(cx, d->comm, &failed, 1, ET_I64, ET_COMM_MAX);
    if (status != ET_OK)
        return status;
    ET_TRY(met);
    if (failed)
        return ET_FAIL(cx, ET_EPEER, "rank %lld could not do what it does first",
                       (long long)failed - 1);
    return is_first ? ET_OK : fn(data);
}
