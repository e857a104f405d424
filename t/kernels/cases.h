/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h: every op with a kernel, on shapes and layouts that kernels get wrong. */
#ifndef T_KERNELS_CASES_H
#define T_KERNELS_CASES_H

#include "etude/device.h"

/* Runs the cases of each op of ops.def, or only of those named in ONLY (N of them), on
 * an open device against the reference. NARROW: the dtype that takes the place of f32;
 * ET_NONE for f32 itself. One TAP test per case; an op without cases
 * fails. The caller prints the plan (done). */
void cases_run(const struct et_device_table *device, struct et_device_handle *handle,
               enum et_dtype narrow, int n, char *const *only);

/* The same with the cases of edges.h: special values, and sizes about tiles. */
void edges_run(const struct et_device_table *device, struct et_device_handle *handle,
               enum et_dtype narrow, int n, char *const *only);

/* How many cases OP has, and how many fail. Nothing is printed. */
struct tally {
    int cases, failed;
};
struct tally cases_tally(const struct et_device_table *device,
                         struct et_device_handle *handle, enum et_dtype narrow,
                         const char *op);

/* Prints the names of the ops that have a kernel, each on a line: what ONLY may
 * have. */
void cases_list(void);

#endif
