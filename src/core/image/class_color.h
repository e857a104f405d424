/* SPDX-License-Identifier: Apache-2.0 */
/* class_color.h: colours for the classes of a mask's pixels. */
#ifndef ETI_IMAGE_CLASS_COLOR_H
#define ETI_IMAGE_CLASS_COLOR_H

#include <stdbool.h>
#include <stdint.h>

/* Bright ones, far from each other, to lie over a picture. False: CLASS is 0, which is
 * the ground, or counts nothing, and RGB is black or grey. */
bool eti_class_color(int32_t class, uint8_t rgb[3]);
/* Pascal VOC's, which mask files have: the bits of the class spread over the high bits
 * of red, green and blue. What counts nothing is white. */
void eti_voc_color(int32_t class, uint8_t rgb[3]);

#endif
