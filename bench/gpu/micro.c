/* SPDX-License-Identifier: Apache-2.0 */
/* micro.c: the time of single operations on a device, for bench/gpu/referee.py.
 *
 *   micro DEVICE [THREADS]
 *
 * Reads cases from standard input, a line each, "OP KEY=VALUE...", and answers with a
 * line of JSON: seconds of one run (the median of TRIALS), and what the device picked;
 * or error. Operations, and keys besides dtype=f32|bf16 and sets=N:
 *
 *   matmul m n k ta tb            sdpa b h t d (causal; heads as slices of packed rows)
 *   layer_norm rows cols          cross_entropy rows cols
 *   batch_norm n c s (with ReLU)  adamw n (f32, in place, as one fused kernel)
 *   copy n (bytes)                back=1: the gradient, where there is one
 *
 * N sets of operands, random numbers, take turns, so that no cache keeps them. A turn
 * of all sets is captured and replayed where the device can; the host waits at the
 * end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/program.h"
#include "core/graph/graph_impl.h"

enum { SETS = 64, OPERANDS = 8, TRIALS = 7, PERIOD = 1 << 25 };

static struct et_ctx *cx;
static const struct et_device_table *table;
static struct et_device_handle *device;

/* ---- cases ---- */

/* What a line of input says. */
struct asked {
    char op[16];
    int64_t m, n, k, b, h, t, d, rows, cols, c, s, ta, tb, back, sets;
    enum et_dtype dtype;
};

static const struct {
    const char *key;
    size_t offset;
} keys[] = {
#define KEY(name)                                                                      \
    {                                                                                  \
#name, offsetof(struct asked, name)                                            \
    }
    KEY(m), KEY(n), KEY(k),    KEY(b),    KEY(h),  KEY(t),  KEY(d),    KEY(rows),
    KEY(c), KEY(s), KEY(cols), KEY(back), KEY(ta), KEY(tb), KEY(sets), {NULL, 0},
#undef KEY
};

/* A prepared operation: its call, and from which outputs of the forward call before it
 * its operands come. */
struct work {
    struct et_call call;
    struct et_desc in[OPERANDS], out[OPERANDS];
    union {
        struct et_matmul_attr matmul;
        struct et_sdpa_attr sdpa;
        struct et_norm_attr norm;
        struct et_cross_entropy_attr cross_entropy;
        struct et_fused_attr fused;
    } attr;
    int64_t limit[OPERANDS]; /* operand of integers: below this */
    struct et_kernel *kernel;
    size_t workspace;
    void *ptr[SETS][2 * OPERANDS];
    void *space;
};

/* Operands of a gradient: DY, operand N of the forward call, or its result OUT(N). */
enum { DY = -1, RESULTS = 100, END = -2 };
#define OUT(n) (RESULTS + (n))

static const struct gradient {
    enum et_op_id forward, op;
    int from[OPERANDS];
} gradients[] = {
    {ET_OP_sdpa, ET_OP_sdpa_grad, {DY, 0, 1, 2, OUT(0), OUT(1), END}},
    {ET_OP_layer_norm, ET_OP_layer_norm_grad, {DY, 0, 1, OUT(1), OUT(2), END}},
    {ET_OP_batch_norm, ET_OP_batch_norm_grad, {DY, 0, 1, OUT(1), OUT(2), OUT(0), END}},
    {ET_OP_cross_entropy, ET_OP_cross_entropy_grad, {DY, 0, 1, OUT(1), END}},
};

static void
operand(struct work *w, enum et_dtype dtype, int ndim, const int64_t *shape)
{
    et_desc_init(&w->in[w->call.n_in++], dtype, ndim, shape,
                 ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR);
}
#define SHAPE(...)                                                                     \
    (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (const int64_t[])         \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }

static void
set_op(struct work *w, enum et_op_id op, size_t attr_size)
{
    w->call.op = op;
    w->call.in = w->in;
    w->call.out = w->out;
    w->call.attr = attr_size ? &w->attr : NULL;
    w->call.attr_size = attr_size;
}

/* p -= lr (m' / (sqrt v' + eps) + decay p), as core/optim/adamw.c, with its numbers as
 * constants: registers p g m v, then one a step. */
static void
make_adamw(struct work *w, int64_t n)
{
    struct et_fused_attr *f = &w->attr.fused;
    static const struct et_fused_step steps[] = {
        {.op = ET_OP_mul_scalar, .src = {2}, .n_src = 1, .a = 0.9},      /* 4 */
        {.op = ET_OP_mul_scalar, .src = {1}, .n_src = 1, .a = 0.1},      /* 5 */
        {.op = ET_OP_add, .src = {4, 5}, .n_src = 2},                    /* 6: m' */
        {.op = ET_OP_square, .src = {1}, .n_src = 1},                    /* 7 */
        {.op = ET_OP_mul_scalar, .src = {7}, .n_src = 1, .a = 0.001},    /* 8 */
        {.op = ET_OP_mul_scalar, .src = {3}, .n_src = 1, .a = 0.999},    /* 9 */
        {.op = ET_OP_add, .src = {9, 8}, .n_src = 2},                    /* 10: v' */
        {.op = ET_OP_sqrt, .src = {10}, .n_src = 1},                     /* 11 */
        {.op = ET_OP_add_scalar, .src = {11}, .n_src = 1, .a = 1e-8},    /* 12 */
        {.op = ET_OP_div, .src = {6, 12}, .n_src = 2},                   /* 13 */
        {.op = ET_OP_mul_scalar, .src = {13}, .n_src = 1, .a = -1e-4},   /* 14 */
        {.op = ET_OP_mul_scalar, .src = {0}, .n_src = 1, .a = 1 - 1e-6}, /* 15 */
        {.op = ET_OP_add, .src = {15, 14}, .n_src = 2},                  /* 16: p' */
    };
    *f = (struct et_fused_attr){
        .n_in = 4,
        .n_out = 3,
        .n_steps = sizeof steps / sizeof *steps,
        .out = {16, 6, 10},
    };
    memcpy(f->step, steps, sizeof steps);
    for (int i = 0; i < 4; i++)
        operand(w, ET_F32, SHAPE(n));
    w->call.n_out = 3;
    for (int i = 0; i < 3; i++)
        w->out[i] = w->in[0];
    set_op(w, ET_OP_fused, sizeof *f);
}

static bool
make_call(struct work *w, const struct asked *a)
{
    enum et_dtype dtype = a->dtype;
    if (strcmp(a->op, "matmul") == 0) {
        w->attr.matmul = (struct et_matmul_attr){(int32_t)a->ta, (int32_t)a->tb};
        operand(w, dtype, SHAPE(a->ta ? a->k : a->m, a->ta ? a->m : a->k));
        operand(w, dtype, SHAPE(a->tb ? a->n : a->k, a->tb ? a->k : a->n));
        set_op(w, ET_OP_matmul, sizeof w->attr.matmul);
    } else if (strcmp(a->op, "sdpa") == 0) {
        const int64_t width = 3 * a->h * a->d;
        w->attr.sdpa =
            (struct et_sdpa_attr){.scale = 1 / sqrt((double)a->d), .causal = 1};
        for (int i = 0; i < 3; i++) {
            operand(w, dtype, SHAPE(a->b, a->h, a->t, a->d));
            const int64_t stride[] = {a->t * width, a->d, width, 1};
            memcpy(w->in[i].stride, stride, sizeof stride);
        }
        set_op(w, ET_OP_sdpa, sizeof w->attr.sdpa);
    } else if (strcmp(a->op, "layer_norm") == 0) {
        w->attr.norm = (struct et_norm_attr){.eps = 1e-5, .axes = 1};
        operand(w, dtype, SHAPE(a->rows, a->cols));
        operand(w, ET_F32, SHAPE(a->cols));
        operand(w, ET_F32, SHAPE(a->cols));
        set_op(w, ET_OP_layer_norm, sizeof w->attr.norm);
    } else if (strcmp(a->op, "batch_norm") == 0) {
        w->attr.norm = (struct et_norm_attr){.eps = 1e-5, .relu = 1};
        operand(w, dtype, SHAPE(a->n, a->c, a->s, a->s));
        operand(w, ET_F32, SHAPE(a->c));
        operand(w, ET_F32, SHAPE(a->c));
        set_op(w, ET_OP_batch_norm, sizeof w->attr.norm);
    } else if (strcmp(a->op, "cross_entropy") == 0) {
        w->attr.cross_entropy = (struct et_cross_entropy_attr){-100};
        operand(w, dtype, SHAPE(a->rows, a->cols));
        operand(w, ET_I32, SHAPE(a->rows));
        w->limit[1] = a->cols;
        set_op(w, ET_OP_cross_entropy, sizeof w->attr.cross_entropy);
    } else if (strcmp(a->op, "adamw") == 0) {
        make_adamw(w, a->n);
        return true;
    } else {
        return false;
    }
    w->call.n_out = w->call.op == ET_OP_matmul                                      ? 1
                    : w->call.op == ET_OP_sdpa || w->call.op == ET_OP_cross_entropy ? 2
                                                                                    : 3;
    int64_t offset;
    return et_op_get(w->call.op)->infer(cx, &w->call, w->out, &offset) == ET_OK;
}

/* The gradient of F, into W. */
static const struct gradient *
make_gradient(struct work *w, const struct work *f)
{
    const struct gradient *g = gradients;
    const struct gradient *end = g + sizeof gradients / sizeof *gradients;
    while (g < end && g->forward != f->call.op)
        g++;
    if (g == end)
        return NULL;
    w->attr = f->attr;
    set_op(w, g->op, f->call.attr_size);
    for (int i = 0; g->from[i] != END; i++) {
        int from = g->from[i];
        w->in[w->call.n_in++] = from == DY        ? f->out[0]
                                : from >= RESULTS ? f->out[from - RESULTS]
                                                  : f->in[from];
    }
    w->call.n_out = g->op == ET_OP_cross_entropy_grad ? 1 : 3;
    int64_t offset;
    if (et_op_get(g->op)->infer(cx, &w->call, w->out, &offset) != ET_OK)
        return NULL;
    return g;
}

/* ---- memory ---- */

/* Elements from the first to the last: of the array or, for a view, around it. */
static int64_t
extent(const struct et_desc *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++)
        n += (d->shape[i] - 1) * d->stride[i];
    return n;
}

/* N uniform numbers in [-1, 1), or integers below LIMIT. */
static void
fill_random(void *to, enum et_dtype dtype, int64_t n, int64_t limit, uint32_t seed)
{
    uint32_t x = seed * 0x9E3779B1u + 1;
    for (int64_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        float v = (float)(x >> 8) * 0x1p-23f - 1;
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        if (dtype == ET_I32)
            ((int32_t *)to)[i] = (int32_t)(x % (uint32_t)limit);
        else if (dtype == ET_BF16)
            ((uint16_t *)to)[i] = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
        else
            ((float *)to)[i] = v;
    }
}

static et_status
wait(void)
{
    return table->sync ? table->sync(device, NULL) : ET_OK;
}

/* The same PERIOD random numbers over and over: more of them than a cache holds. */
static et_status
upload_random(char *to, const struct et_desc *d, int64_t limit, uint32_t seed)
{
    size_t width = et_dtype_size(d->dtype), bytes = (size_t)extent(d) * width;
    size_t period = bytes < PERIOD * width ? bytes : PERIOD * width;
    void *host = malloc(period);
    et_status status = host ? ET_OK : ET_ENOMEM;
    if (host)
        fill_random(host, d->dtype, (int64_t)(period / width), limit, seed);
    for (size_t at = 0; status == ET_OK && at < bytes; at += period)
        status = table->copy(device, to + at, host,
                             bytes - at < period ? bytes - at : period, NULL);
    et_status waited = wait();
    free(host);
    return status != ET_OK ? status : waited;
}

static void *
device_array(const struct et_desc *d, int64_t limit, bool random, uint32_t seed)
{
    size_t bytes = (size_t)extent(d) * et_dtype_size(d->dtype);
    void *block;
    if (table->alloc(device, bytes, &block) != ET_OK)
        return NULL;
    if (!random || upload_random(block, d, limit, seed) == ET_OK)
        return block;
    table->free(device, block, bytes);
    return NULL;
}

static void
free_arrays(struct work *w, int sets)
{
    int n_in = w->call.n_in;
    for (int s = 0; s < sets; s++)
        for (int i = 0; i < n_in + w->call.n_out; i++) {
            bool own = w->ptr[s][i] != NULL;
            for (int j = 0; own && j < i; j++) /* shared or in place: freed already */
                own = w->ptr[s][j] != w->ptr[s][i];
            if (own)
                table->free(device, w->ptr[s][i], 0);
        }
}

/* Kernel, workspace and SETS sets of arrays. Operands that F, the forward call, has or
 * gives are F's. */
static bool
prepare(struct work *w, const struct work *f, const struct gradient *g, int sets,
        char *why, size_t why_size)
{
    if (table->prepare(device, &w->call, &w->kernel, &w->workspace, why, why_size) !=
        ET_OK)
        return false;
    snprintf(why, why_size, "out of memory");
    if (table->alloc(device, w->workspace + 64, &w->space) != ET_OK)
        return false;
    for (int s = 0; s < sets; s++) {
        void **ptr = w->ptr[s];
        for (int i = 0; i < w->call.n_in; i++) {
            int from = g ? g->from[i] : DY;
            if (from >= RESULTS)
                ptr[i] = f->ptr[s][f->call.n_in + from - RESULTS];
            else if (from != DY)
                ptr[i] = f->ptr[s][from];
            else
                ptr[i] =
                    device_array(&w->in[i], w->limit[i], true, (uint32_t)(8 * s + i));
            if (!ptr[i])
                return false;
        }
        for (int i = 0; i < w->call.n_out; i++) {
            static const int in_place[] = {0, 2, 3}; /* p, m, v of adamw */
            void **to = &ptr[w->call.n_in + i];
            *to = w->call.op == ET_OP_fused ? ptr[in_place[i]]
                                            : device_array(&w->out[i], 0, false, 0);
            if (!*to)
                return false;
        }
    }
    return true;
}

/* ---- time ---- */

/* What one turn does: run W once on each set, or copy. */
struct turn {
    struct work *w;
    int sets;
    void *from, *to; /* W is NULL */
    size_t bytes;
};

static et_status
do_turn(const struct turn *t)
{
    if (!t->w)
        return table->copy(device, t->to, t->from, t->bytes, NULL);
    for (int s = 0; s < t->sets; s++)
        ET_TRY(table->run(t->w->kernel, t->w->ptr[s], t->w->space, NULL));
    return ET_OK;
}

static et_status
do_turns(const struct turn *t, struct et_capture *capture, int n)
{
    for (int i = 0; i < n; i++)
        ET_TRY(capture ? table->replay(capture, NULL) : do_turn(t));
    return wait();
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one run: the median of TRIALS trials of 30 ms or three turns. */
static et_status
measure(const struct turn *t, double *seconds)
{
    struct et_capture *capture = NULL;
    double trial[TRIALS];
    ET_TRY(do_turns(t, NULL, 2));
    if (table->capture_begin && table->capture_begin(device, NULL) == ET_OK) {
        et_status status = do_turn(t);
        et_status ended = table->capture_end(device, NULL, &capture);
        ET_TRY(status);
        ET_TRY(ended);
    }
    double start = now();
    et_status status = do_turns(t, capture, 3);
    int turns = (int)(0.03 / fmax((now() - start) / 3, 1e-6)) + 3;
    for (int i = 0; status == ET_OK && i < TRIALS; i++) {
        start = now();
        status = do_turns(t, capture, turns);
        trial[i] = (now() - start) / turns / t->sets;
    }
    if (capture)
        table->capture_free(capture);
    qsort(trial, TRIALS, sizeof *trial, by_value);
    *seconds = trial[TRIALS / 2];
    return status;
}

/* ---- lines ---- */

static bool
read_case(char *line, struct asked *a)
{
    *a = (struct asked){.dtype = ET_F32, .sets = 2};
    char *rest, *word = strtok_r(line, " \n", &rest);
    snprintf(a->op, sizeof a->op, "%s", word ? word : "");
    while ((word = strtok_r(NULL, " \n", &rest))) {
        size_t n = strcspn(word, "=");
        if (word[n] != '=')
            return false;
        word[n] = '\0';
        const char *value = word + n + 1;
        int i = 0;
        while (keys[i].key && strcmp(keys[i].key, word) != 0)
            i++;
        if (keys[i].key)
            *(int64_t *)((char *)a + keys[i].offset) = strtoll(value, NULL, 10);
        else if (strcmp(word, "dtype") == 0 && strcmp(value, "bf16") == 0)
            a->dtype = ET_BF16;
        else if (strcmp(word, "dtype") != 0 || strcmp(value, "f32") != 0)
            return false;
    }
    return a->sets >= 1 && a->sets <= SETS;
}

static void
refuse(const char *why)
{
    printf("{\"error\": \"");
    for (; *why; why++)
        putchar(*why == '"' || *why == '\\' || (unsigned char)*why < ' ' ? '\'' : *why);
    printf("\"}\n");
}

static void
answer_copy(const struct asked *a)
{
    struct et_desc d;
    double seconds;
    et_desc_init(&d, ET_F32, 1, (const int64_t[]){a->n / 4}, ET_ROW_MAJOR);
    struct turn t = {.sets = 1, .bytes = (size_t)a->n / 4 * 4};
    t.from = device_array(&d, 0, true, 1);
    t.to = device_array(&d, 0, true, 2);
    if (t.from && t.to && measure(&t, &seconds) == ET_OK)
        printf("{\"seconds\": %.9g, \"picked\": \"copy\"}\n", seconds);
    else
        refuse("out of memory");
    table->free(device, t.from, t.bytes);
    table->free(device, t.to, t.bytes);
}

static void
release(struct work *w)
{
    if (w->kernel)
        table->release(w->kernel);
    if (w->space)
        table->free(device, w->space, w->workspace + 64);
    free(w);
}

static void
answer(const struct asked *a)
{
    char why[512] = "";
    struct work *f = calloc(1, sizeof *f), *w = calloc(1, sizeof *w);
    const struct gradient *g = NULL;
    int sets = (int)a->sets;
    double seconds;
    bool ok = make_call(f, a);
    if (!ok)
        snprintf(why, sizeof why, "there is no such case");
    if (ok && a->back) {
        g = make_gradient(w, f);
        ok = g != NULL;
        snprintf(why, sizeof why, "there is no such gradient");
    }
    ok = ok && prepare(f, NULL, NULL, sets, why, sizeof why);
    if (ok && g)
        ok = do_turns(&(struct turn){.w = f, .sets = sets}, NULL, 1) == ET_OK &&
             prepare(w, f, g, sets, why, sizeof why);
    struct work *timed = g ? w : f;
    if (ok && measure(&(struct turn){.w = timed, .sets = sets}, &seconds) == ET_OK)
        printf("{\"seconds\": %.9g, \"picked\": \"%s\"}\n", seconds,
               table->describe(timed->kernel));
    else
        refuse(why[0] ? why : "the device failed");
    wait();
    /* Arrays of both: what the gradient borrows is freed once, with the forward
     * call. */
    for (int s = 0; g && s < sets; s++)
        for (int i = 0; i < w->call.n_in; i++)
            if (g->from[i] != DY)
                w->ptr[s][i] = NULL;
    free_arrays(w, sets);
    free_arrays(f, sets);
    release(w);
    release(f);
}

int
main(int argc, char **argv)
{
    struct et_device *dev;
    if (argc < 2) {
        fprintf(stderr, "usage: micro DEVICE [THREADS]\n");
        return 64;
    }
    if (et_ctx_new(&cx) != ET_OK)
        return 1;
    int threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    if (et_device_open(cx, argv[1], 0, threads, &dev) != ET_OK) {
        fprintf(stderr, "micro: %s\n", et_error_get(cx)->message);
        return 1;
    }
    table = dev->table;
    device = dev->handle;
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        struct asked a;
        if (!read_case(line, &a))
            refuse("not understood");
        else if (strcmp(a.op, "copy") == 0)
            answer_copy(&a);
        else
            answer(&a);
        fflush(stdout);
    }
    et_device_close(&dev);
    et_ctx_free(&cx);
    return 0;
}
