/* SPDX-License-Identifier: Apache-2.0 */
/* predict.h: what `etude predict` makes of a batch: predict_take.c. */
#ifndef CLI_PREDICT_H
#define CLI_PREDICT_H

#include "core/library/predictions.h"
#include "etude/trainer.h"

struct cli_taken {
    struct et_ctx *cx;
    struct eti_predictions all;
    struct eti_sheet sheet;
    struct eti_detail detail; /* path NULL: nothing is written in full */
    float *picture;           /* of a batch, on the host, channels last; grows */
    int32_t *chosen;          /* of a sample */
    float *loss;              /* likewise */
    size_t bytes, places;     /* room of PICTURE; of CHOSEN and LOSS */
};

/* Takes the answers to a batch: an et_predict_fn, DATA is a struct cli_taken. ENOTSUP:
 * the model's outputs are none for the data's targets. */
ET_NODISCARD et_status cli_take_batch(void *data, const struct et_state *s,
                                      const struct et_prediction *p);
void cli_taken_release(struct cli_taken *t);

#endif
