/* SPDX-License-Identifier: Apache-2.0 */
/* request.h: requests among each other (request.c). */
#ifndef ETI_TRAINER_REQUEST_H
#define ETI_TRAINER_REQUEST_H

#include "etude/control.h"

/* Do both change the same setting? */
bool eti_request_same(const struct et_request *a, const struct et_request *b);

#endif
