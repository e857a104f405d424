/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: arrays of a test case as text.
 *
 *   f32[2,3]        row-major          f32[2,3,4,5]cl   channels-last
 *   f32[2,3]@1,2    these strides      -                an operand left out
 *
 * separated by spaces. */
#ifndef T_OPS_TEXT_H
#define T_OPS_TEXT_H

#include "etude/types.h"

/* Reads up to MAX descriptions; returns how many. Bails out on a mistake in the
 * test. */
int read_descs(const char *text, struct et_desc *out, int max);
/* "f32[2,3]@3,1"; returns BUF. */
const char *write_desc(const struct et_desc *d, char *buf, size_t n);

#endif
