/* SPDX-License-Identifier: Apache-2.0 */
/* encode.h: pictures as files. */
#ifndef ETI_IMAGE_ENCODE_H
#define ETI_IMAGE_ENCODE_H

#include <stdint.h>

#include "etude/ctx.h"

/* WIDTH * HEIGHT pixels of three bytes, rows from the top, to PATH, which is replaced
 * at once. EIO says what was refused. */
ET_NODISCARD et_status eti_png_write(struct et_ctx *cx, const char *path,
                                     const uint8_t *rgb, int64_t width, int64_t height);
/* The same of one number for each pixel, with Pascal VOC's palette. */
ET_NODISCARD et_status eti_png_write_mask(struct et_ctx *cx, const char *path,
                                          const uint8_t *mask, int64_t width,
                                          int64_t height);

#endif
