/* SPDX-License-Identifier: Apache-2.0 */
#include "t/ops/text.h"
#include "t/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum et_dtype
read_dtype(const char **text)
{
    for (int t = ET_NONE + 1; t < ET_DTYPE_COUNT; t++) {
        const char *name = et_dtype_name((enum et_dtype)t);
        size_t n = strlen(name);
        if (!strncmp(*text, name, n) && (*text)[n] == '[') {
            *text += n + 1;
            return (enum et_dtype)t;
        }
    }
    bail("no dtype at '%s'", *text);
}

/* Numbers with commas between them; leaves *TEXT at the first other character. */
static int
read_numbers(const char **text, int64_t *out)
{
    int n = 0;
    while (n < ET_MAX_DIMS && **text >= '0' && **text <= '9') {
        char *end;
        out[n++] = strtoll(*text, &end, 10);
        *text = *end == ',' ? end + 1 : end;
    }
    return n;
}

static void
read_desc(const char **text, struct et_desc *d)
{
    int64_t shape[ET_MAX_DIMS] = {0};
    if (**text == '-') {
        memset(d, 0, sizeof *d);
        ++*text;
        return;
    }
    enum et_dtype dtype = read_dtype(text);
    int ndim = read_numbers(text, shape);
    if (**text != ']')
        bail("no ] at '%s'", *text);
    ++*text;
    bool last = !strncmp(*text, "cl", 2);
    *text += last ? 2 : 0;
    et_desc_init(d, dtype, ndim, shape, last ? ET_CHANNELS_LAST : ET_ROW_MAJOR);
    if (**text == '@') {
        ++*text;
        if (read_numbers(text, d->stride) != ndim)
            bail("not %d strides before '%s'", ndim, *text);
    }
}

int
read_descs(const char *text, struct et_desc *out, int max)
{
    int n = 0;
    while (*text) {
        if (n == max)
            bail("more than %d arrays", max);
        read_desc(&text, &out[n++]);
        text += strspn(text, " ");
    }
    return n;
}

const char *
write_desc(const struct et_desc *d, char *buf, size_t n)
{
    et_desc_text(d, buf, n);
    for (int i = 0; i < d->ndim; i++) {
        size_t used = strlen(buf);
        snprintf(buf + used, n - used, "%s%lld", i ? "," : "@",
                 (long long)d->stride[i]);
    }
    return buf;
}
