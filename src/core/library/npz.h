/* SPDX-License-Identifier: Apache-2.0 */
/* npz.h: arrays as NumPy reads them.
 *
 * An .npz is a zip file of arrays, each an .npy: "\x93NUMPY", version 1.0, the length
 * of a header u16, the header, a Python dictionary that ends a multiple of 64 bytes,
 * and the numbers. Nothing is compressed. Sources: numpy.org, "NPY format"; PKWARE,
 * APPNOTE. */
#ifndef ETI_NPZ_H
#define ETI_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { ETI_NPZ_AXES = 4, ETI_NPZ_MOST = 8 };

struct eti_npz_array {
    const char *name, *type; /* "loss.npy"; "<f4", "|u1" */
    size_t each;             /* bytes of an element */
    const void *data;        /* row-major */
    int ndim;
    int64_t shape[ETI_NPZ_AXES];
};

/* Writes N arrays, at most ETI_NPZ_MOST, from where F stands, which must be its
 * beginning. False: they are 4 GB or more, which such a file cannot have, and nothing
 * is written. */
bool eti_npz_put(FILE *f, const struct eti_npz_array *array, int n);

#endif
