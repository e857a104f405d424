/* SPDX-License-Identifier: Apache-2.0 */
/* svg.h: what pictures have in common: their beginning, texts, axes and colours. They
 * need no script and no font. */
#ifndef ETI_SVG_H
#define ETI_SVG_H

#include <stddef.h>
#include <stdio.h>

/* M. Okabe and K. Ito, "Color Universal Design", 2008. */
enum { ETI_SVG_COLORS = 7 };
extern const char *const eti_svg_colors[];

/* Begins a picture of so many pixels. Classes: of texts t (title), h (bold) and s
 * (small), of paths l (line), g (grid), a (axis) and m (dashed). "</svg>" ends it. */
void eti_svg_begin(FILE *f, int width, int height, const char *title);
/* TEXT as it stands between tags. */
void eti_svg_escape(FILE *f, const char *text);
/* ATTRIBUTES beyond the place: class, anchor. */
void eti_svg_text(FILE *f, double x, double y, const char *attributes,
                  const char *text);
/* 1, 2 or 5 times a power of ten, for about N steps from LOW to HIGH. */
double eti_svg_step(double low, double high, int n);
/* 0.25, 12k, 3.5M, 1e-05: as many digits as STEP asks for, in the unit that suits MOST,
 * the axis' greatest. BUF [SIZE] is returned. */
const char *eti_svg_tick(double value, double step, double most, char *buf,
                         size_t size);

#endif
