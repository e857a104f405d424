/* SPDX-License-Identifier: Apache-2.0 */
#include "t/unit/onnx_file.h"

#include <string.h>

#include "t/tap.h"

uint64_t
varint(struct span *s)
{
    uint64_t v = 0;
    for (int shift = 0; s->p < s->end && shift < 64; shift += 7) {
        v |= (uint64_t)(*s->p & 127) << shift;
        if (!(*s->p++ & 128))
            break;
    }
    return v;
}

bool
next(struct span *s, struct field *f)
{
    if (s->p >= s->end)
        return false;
    uint64_t key = varint(s);
    f->number = (int)(key >> 3);
    f->wire = (int)(key & 7);
    f->bytes = (struct span){s->p, s->p};
    if (f->wire == 0) {
        f->value = varint(s);
        return true;
    }
    uint64_t n = f->wire == 5 ? 4 : varint(s);
    if ((f->wire != 2 && f->wire != 5) || n > (uint64_t)(s->end - s->p))
        bail("a field is damaged");
    f->bytes = (struct span){s->p, s->p + n};
    s->p += n;
    return true;
}

bool
is_text(struct span s, const char *text)
{
    return (size_t)(s.end - s.p) == strlen(text) &&
           memcmp(s.p, text, strlen(text)) == 0;
}

struct span
text_of(struct span s, int number)
{
    struct field f;
    while (next(&s, &f))
        if (f.number == number && f.wire == 2)
            return f.bytes;
    return (struct span){0};
}
