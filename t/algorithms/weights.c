/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c: see weights.h. */
#include "t/algorithms/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/unit/rig.h"

enum { LINE = 1 << 14, MOST = 1024 };

void
weights_fill(struct et_ctx *cx, struct et_leaves *l, const char *path, const char *name)
{
    static char line[LINE];
    float v[MOST];
    char of[128];
    uint32_t stream = 0;
    FILE *file = rig_open_case(path, name);
    while (fgets(line, sizeof line, file) && rig_word(line, "param", of)) {
        struct et_leaf *leaf = et_leaves_find(l, of);
        int64_t n = leaf ? et_desc_count(&leaf->param->desc) : 0;
        if (!leaf || n > MOST)
            bail("%s: there is no %s", name, of);
        rig_values(stream++, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] *= 0.5F;
        need(cx, et_param_write(cx, leaf->param, v, n));
    }
    is_int(l->n, stream, "%s: %d parameters, as Composer has", name, (int)stream);
    fclose(file);
}

double
weights_compare(struct et_ctx *cx, struct et_leaves *l, const char *path,
                const char *name)
{
    static char line[LINE];
    float got[MOST];
    char of[128], *end;
    double worst = 0;
    FILE *file = rig_open_case(path, name);
    while (fgets(line, sizeof line, file) && !rig_word(line, "case", of)) {
        const char *text = rig_word(line, "weights", of);
        struct et_leaf *leaf = text ? et_leaves_find(l, of) : NULL;
        if (!text)
            continue;
        int64_t n = et_desc_count(&leaf->param->desc);
        need(cx, et_param_read(cx, leaf->param, of, 17, got, n));
        for (int64_t i = 0; i < n; i++, text = end) {
            double want = strtod(text, &end);
            worst = end == text ? INFINITY : fmax(worst, fabs(got[i] - want));
        }
        if (strspn(text, " \n") != strlen(text))
            worst = INFINITY;
    }
    fclose(file);
    return worst;
}
