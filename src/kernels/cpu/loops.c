/* SPDX-License-Identifier: Apache-2.0 */
/* loops.c: the table of own loops for one instruction set. */
#include "kernels/cpu/loops.h"

#define TEXT_(isa) #isa
#define TEXT(isa)  TEXT_(isa)

static const struct etk_cpu_row rows[] = {
#define ETK_LOOP(op, family) {ET_OP_##op, ETK_NAME(etk_prepare_##family)},
#include "kernels/cpu/loops.def"
#undef ETK_LOOP
};

static const struct etk_loops loops = {
    .isa = TEXT(ETK_ISA),
    .row = rows,
    .n_row = sizeof rows / sizeof rows[0],
    .copy = ETK_NAME(etk_copy_run),
    .bias = ETK_NAME(etk_add_bias),
    .depthwise_weights = ETK_NAME(etk_prepare_depthwise_weights),
    .winograd = ETK_NAME(etk_prepare_winograd),
};

const struct etk_loops *
ETK_NAME(etk_loops)(void)
{
    return &loops;
}
