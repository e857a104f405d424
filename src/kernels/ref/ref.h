/* SPDX-License-Identifier: Apache-2.0 */
/* ref.h: the device "ref", the oracle of every test.
 *
 * Plain C, one naive loop per op, no threads. Elements of any float dtype are read as
 * doubles and sums are kept in doubles; only results are rounded. Strides of operands
 * and results are arbitrary. Slow on purpose: what is clear enough to trust. */
#ifndef ETK_REF_H
#define ETK_REF_H

#include "etude/device.h"

#ifdef __cplusplus
extern "C" {
#endif

const struct et_device_table *etk_ref_device(void);

#ifdef __cplusplus
}
#endif
#endif
