/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise programs that are compiled at run time, on the simulator with the host's
 * compiler (or on the GPU with ETUDE_DEVICE=cuda), against the reference: a chain of
 * each form; and what is kept of them from one device to the next. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/ref/ref.h"
#include "t/kernels/compare.h"
#include "t/kernels/module.h"
#include "t/tap.h"

static char cache[] = "/tmp/etude-rtc-XXXXXX";

static struct et_fused_step
step(enum et_op_id op, int n_src, int s0, int s1, int s2, double a)
{
    return (struct et_fused_step){
        .op = (uint16_t)op,
        .n_src = (uint8_t)n_src,
        .src = {(uint8_t)s0, (uint8_t)s1, (uint8_t)s2},
        .a = a,
    };
}

/* m = 0.9 m + g; w = w - rate m, over N elements, the rate a number on the device. */
static void
momentum(struct bench *b, int64_t n, bool in_place)
{
    struct et_fused_attr o = {.n_in = 4, .n_out = 2, .n_steps = 4, .out = {7, 5}};
    o.step[0] = step(ET_OP_mul_scalar, 1, 1, 0, 0, 0.9);
    o.step[1] = step(ET_OP_add, 2, 4, 2, 0, 0);
    o.step[2] = step(ET_OP_mul, 2, 5, 3, 0, 0);
    o.step[3] = step(ET_OP_sub, 2, 0, 6, 0, 0);
    struct operand *in[3];
    for (int k = 0; k < 3; k++)
        in[k] = normal(b, ROW, SHAPE(n));
    check(b,
          TRIAL(ATTR(o),
                IN(in[0], in[1], in[2], operand(b, ET_F32, POSITIVE, 0, ROW, SCALAR)),
                OUT(result_like(b, ET_F32, in[0]), result_like(b, ET_F32, in[0])),
                .in_place = in_place, .length = 4),
          "momentum over %d elements%s", (int)n, in_place ? ", in place" : "");
}

/* gelu(x + y) z, where y and z repeat. */
static void
repeating(struct bench *b, const char *what, struct operand *x, struct operand *y,
          struct operand *z)
{
    struct et_fused_attr o = {.n_in = 3, .n_out = 1, .n_steps = 3, .out = {5}};
    o.step[0] = step(ET_OP_add, 2, 0, 1, 0, 0);
    o.step[1] = step(ET_OP_gelu_tanh, 1, 3, 0, 0, 0);
    o.step[2] = step(ET_OP_mul, 2, 4, 2, 0, 0);
    check(b, TRIAL(ATTR(o), IN(x, y, z), OUT(result_like(b, ET_F32, x)), .length = 3),
          "%s", what);
}

/* A mask in U8 chooses; the choice, rounded to bf16, is clamped below an infinity. */
static void
chosen(struct bench *b)
{
    struct et_fused_attr o = {.n_in = 3, .n_out = 1, .n_steps = 3, .out = {5}};
    o.step[0] = step(ET_OP_where, 3, 0, 1, 2, 0);
    o.step[1] = step(ET_OP_cast, 1, 3, 0, 0, ET_BF16);
    o.step[2] = step(ET_OP_clamp, 1, 4, 0, 0, -0.5);
    o.step[2].b = INFINITY;
    struct operand *y = normal(b, ROW, SHAPE(5, 37)), *z = normal(b, ROW, SHAPE(37));
    check(b,
          TRIAL(ATTR(o), IN(operand(b, ET_U8, INDEX, 2, ROW, SHAPE(5, 37)), y, z),
                OUT(result_like(b, ET_F32, y)), .length = 1),
          "a choice by a mask, rounded and clamped");
}

static void
chains(struct bench *b)
{
    for (int64_t n = 1; n <= 9; n++) /* fewer than, as many as and more than a place */
        momentum(b, n, false);
    momentum(b, 1013, false);
    momentum(b, 4096, true);
    repeating(b, "a bias and a gate by channel, channels-last",
              normal(b, LAST, SHAPE(2, 16, 3, 5)), normal(b, LAST, SHAPE(1, 16, 1, 1)),
              normal(b, LAST, SHAPE(2, 16, 1, 1)));
    repeating(b, "a number for each row, and one for all", normal(b, ROW, SHAPE(9, 32)),
              normal(b, ROW, SHAPE(9, 1)), normal(b, ROW, SCALAR));
    repeating(b, "turned, every second element and odd rows",
              normal(b, ROW, SHAPE(5, 7, 9)), normal(b, TURNED, SHAPE(5, 7, 9)),
              normal(b, GAPS, SHAPE(7, 9)));
    chosen(b);
}

static int
files_kept(void)
{
    char path[sizeof cache + 16];
    snprintf(path, sizeof path, "%s/kernels", cache);
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* Programs that the simulator has loaded, each from a file without a name. */
static int
programs_loaded(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        char path[32], target[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        n += strncmp(target, "/memfd:gpusim", 13) == 0;
    }
    return n;
}

/* y = x + a on DEVICE, whose kernel must be a compiled one. */
static void
compiled(const struct et_device_table *gpu, struct et_device_handle *h, double a,
         const char *words)
{
    struct et_scalar_attr o = {.a = a};
    struct et_desc d;
    et_desc_init(&d, ET_F32, 1, (int64_t[]){64}, ET_ROW_MAJOR);
    struct et_call call = {.op = ET_OP_add_scalar,
                           .n_in = 1,
                           .n_out = 1,
                           .attr = &o,
                           .attr_size = sizeof o,
                           .in = &d,
                           .out = &d};
    struct et_kernel *k = NULL;
    size_t ws;
    char why[256] = "";
    et_status status = gpu->prepare(h, &call, &k, &ws, why, sizeof why);
    ok(status == ET_OK && !strstr(gpu->describe(k), "interpreted"), "%s", words);
    if (status == ET_OK)
        gpu->release(k);
}

/* Needs no compiler for what is kept: there is none that it could find. */
static void
kept(const struct et_device_table *gpu)
{
    struct et_device_handle *h;
    char why[256] = "";
    int before = files_kept(), loaded_before = programs_loaded();
    if (gpu->open(0, 0, &h, why, sizeof why) != ET_OK)
        bail("%s", why);
    compiled(gpu, h, 2.5, "a program is compiled");
    int after = files_kept(), loaded = programs_loaded();
    ok(after == before + 1, "and kept on disk");
    compiled(gpu, h, 2.5, "the same is compiled once");
    ok(files_kept() == after, "and kept once");
    is_int(programs_loaded(), loaded, "and loaded once");
    compiled(gpu, h, 3.5, "another number is another program");
    ok(files_kept() == after + 1, "with a file of its own");
    gpu->close(h);
    is_int(programs_loaded(), loaded_before,
           "none is loaded when its device is closed");
    setenv("TMPDIR", "/nowhere", 1); /* where the simulator compiles */
    if (gpu->open(0, 0, &h, why, sizeof why) != ET_OK)
        bail("%s", why);
    compiled(gpu, h, 2.5, "the next device takes what is kept, without a compiler");
    gpu->close(h);
}

static void
clean(void)
{
    char command[sizeof cache + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", cache);
    if (system(command) != 0)
        diag("%s is left", cache);
}

int
main(void)
{
    const char *name = getenv("ETUDE_DEVICE");
    struct bench b = {.op = ET_OP_fused};
    char why[256] = "";
    setenv("ETUDE_RTC", "1", 1);
    if (!mkdtemp(cache) || setenv("ETUDE_CACHE_DIR", cache, 1) != 0)
        bail("no folder for the cache");
    b.device = open_module_of(name ? name : "gpusim");
    if (!b.device || b.device->open(0, 0, &b.handle, why, sizeof why) != ET_OK) {
        clean();
        skip_all(b.device ? why : "the device's module was not built");
    }
    if (etk_ref_device()->open(0, 1, &b.reference, why, sizeof why) != ET_OK)
        bail("%s", why);
    chains(&b);
    b.narrow = ET_BF16;
    repeating(&b, "a bias by channel, 8 at once", normal(&b, LAST, SHAPE(2, 16, 3, 5)),
              normal(&b, LAST, SHAPE(1, 16, 1, 1)), normal(&b, ROW, SCALAR));
    bench_clear(&b);
    b.device->close(b.handle);
    etk_ref_device()->close(b.reference);
    kept(b.device);
    clean();
    return done();
}
