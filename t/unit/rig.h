/* SPDX-License-Identifier: Apache-2.0 */
/* rig.h: an optimizer at work on a few parameters, and lines of golden numbers. */
#ifndef ETUDE_T_UNIT_RIG_H
#define ETUDE_T_UNIT_RIG_H

#include <stdio.h>

#include "etude/etude.h"

enum { RIG_MOST = 64 }; /* elements of a parameter, at most */

struct rig {
    struct et_ctx *cx;
    struct et_device *dev;
    const struct et_optimizer_class *class;
    void *options;
    struct et_param_space *space;
    struct et_optimizer *opt;
    struct et_graph *g;
};

/* golden.py's values(): N numbers in [-1, 1) of STREAM, as f32. */
void rig_values(uint32_t stream, int64_t n, float *out);
/* A parameter, channels-last where it has four axes. */
struct et_param_spec rig_spec(const char *name, enum et_param_role role, int ndim,
                              const int64_t *shape);

/* The optimizer NAME with the options TEXT, "lr=0.02 momentum=0.8", on N parameters, of
 * which number i begins as stream i. Whatever fails ends the test. */
void rig_begin(struct rig *r, struct et_ctx *cx, struct et_device *dev,
               const char *name, const char *text, const struct et_param_spec *specs,
               int n);
/* The same with a class of the test's own. */
void rig_begin_class(struct rig *r, struct et_ctx *cx, struct et_device *dev,
                     const struct et_optimizer_class *class, const char *text,
                     const struct et_param_spec *specs, int n);
/* One update: the gradients are GRAD[i], row-major. */
void rig_step(struct rig *r, float (*grad)[RIG_MOST]);
/* Parameter I, row-major. */
void rig_get(const struct rig *r, int i, float *out);
void rig_end(struct rig *r);

/* t/golden/NAME, to read from; the test ends if it is not there. */
FILE *rig_golden(const char *name);
/* The same, with F behind its line "case TEXT"; without such a line the
 * test ends. */
FILE *rig_open_case(const char *name, const char *text);
/* The word behind KEY in LINE, into NAME; what follows it. NULL: another line. */
const char *rig_word(const char *line, const char *key, char name[128]);
/* Calls EACH for every line "case TEXT" of t/golden/NAME, with F behind it; how
 * many. */
int rig_cases(const char *name, void (*each)(FILE *f, const char *text));
/* A test for each parameter of R: it is what the line "NAME v v v ..." of F, which is
 * next, says, but for TOLERANCE. TEXT: of the case; SPECS: of the parameters. */
void rig_compare(const struct rig *r, const struct et_param_spec *specs, FILE *f,
                 double tolerance, const char *text);

#endif
