/* SPDX-License-Identifier: Apache-2.0 */
/* raw.h: samples that a caller has in memory, as fields of a data set (predict.h). */
#ifndef ETI_ASSEMBLE_RAW_H
#define ETI_ASSEMBLE_RAW_H

#include "etude/data.h"
#include "etude/predict.h"

/* What fields N samples may have that are prepared as those of LIKE, into OUT
 * [ET_MAX_FIELDS]; returns how many. et_predictor_fields says the rest. */
int eti_raw_fields(const struct et_dataset *like, int64_t n, struct et_raw_field *out);

/* Makes facts of FIELDS [N]: those of LIKE that are there, each with its shape, and the
 * target, which DATA [ET_MAX_FIELDS] has as NULL. Errors: et_predictor_run_fields. */
ET_NODISCARD et_status eti_raw_take(struct et_ctx *cx, const struct et_dataset *like,
                                    const struct et_raw_field *fields, int n,
                                    struct et_data_facts *facts, const void **data);

#endif
