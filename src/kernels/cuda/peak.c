/* SPDX-License-Identifier: Apache-2.0 */
/* peak.c: the most that this GPU can do in a second: clocks times widths.
 *
 * FLOP a clock and multiprocessor are those of NVIDIA's white papers and data sheets,
 * without sparsity and with sums in f32. Checked against bf16 TFLOP/s, multiprocessors
 * and MHz of the A100 (312, 108, 1410), RTX A6000 (154.8, 84, 1800), L40S (362, 142,
 * 2490), H100 SXM (989.4, 132, 1830) and RTX PRO 6000 Blackwell (503.8, 188, 2617); the
 * data sheet of the B200 (2250, 148) names no clock: 1860 MHz would give it. GeForce
 * cards of 8.6, 8.9 and 12.0 reach half of it with sums in f32.
 *
 * Those figures are for the clock under load, the driver tells the highest there is: an
 * H200 says 1980 MHz and 3201 MHz, which gives 1.07 PFLOP/s and 4.92 TB/s, where its
 * data sheet has 0.99 and 4.8. Measured on one H200, a large product of random numbers
 * ran at 0.79 PFLOP/s and a copy at 4.3 TB/s: ETUDE_ROOFLINE takes such ceilings. */
#include "kernels/cuda/cuda.h"

#include <string.h>

struct rates {
    int major, minor; /* compute capability */
    int low;          /* bf16 and f16 products: FLOP a clock and multiprocessor */
    int tf32, f64;    /* f32 products rounded to TF32; f64 products */
    int plain;        /* f32 outside of tensor cores */
};

/* clang-format off */
static const struct rates table[] = {
    /* capability, low, tf32, f64, plain */
    { 8, 0,   2048, 1024,  128,  128},
    { 8, 6,   1024,  512,    4,  256},
    { 8, 9,   1024,  512,    4,  256},
    { 9, 0,   4096, 2048,  256,  256},
    {10, 0,   8192, 4096,  128,  256},
    {12, 0,   1024,  512,    4,  256},
};
/* clang-format on */

static int
attribute(const struct et_device_handle *d, enum cudaDeviceAttr attr)
{
    int value = 0;
    if (cudaDeviceGetAttribute(&value, attr, d->index) == cudaSuccess && value > 0)
        return value;
    (void)cudaGetLastError(); /* else the next launch would report it */
    return 0;
}

void
etk_peak(struct et_device_handle *d, struct et_device_peak *out)
{
    memset(out, 0, sizeof *out);
    double clock = 1e3 * attribute(d, cudaDevAttrClockRate);
    double memory_clock = 1e3 * attribute(d, cudaDevAttrMemoryClockRate);
    double bits = attribute(d, cudaDevAttrGlobalMemoryBusWidth);
    out->bytes = 2 * memory_clock * bits / 8; /* both edges of the clock */
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct rates *r = &table[i];
        if (r->major != d->gpu.major || r->minor != d->gpu.minor)
            continue;
        double each = clock * d->gpu.sm_count;
        out->plain = each * r->plain;
        out->product[ET_BF16] = out->product[ET_F16] = each * r->low;
        out->product[ET_F32] = each * (d->tf32 ? r->tf32 : r->plain);
        out->product[ET_F64] = each * r->f64;
    }
}
